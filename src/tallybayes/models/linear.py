"""Linear forms: log-odds as coefficients and an intercept, where a model has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import NotLinearError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multinomial import DirichletMultinomial, Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.families.poisson import Poisson
from tallybayes.models.scoring import Scored


class Linear(NamedTuple):
    """A linear classifier: scores x · coef.T + intercept.

    For two classes there is one row, and P(classes[1] | x) = σ(coef · x + intercept). For more, the scores of the
    classes, whose softmax is P(class | x).
    """

    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray
    columns: tuple[Any, ...]

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(class | row), shape (n, classes)."""
        scores = np.asarray(X, dtype=float) @ self.coef.T + self.intercept
        if len(self.classes) == 2:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def to_linear(scored: list[Scored], log_prior: np.ndarray, classes: np.ndarray) -> Linear:
    """The linear form of a classifier's factors.

    Parameters
    ----------
    scored : list of Scored
    log_prior : ndarray of shape (classes,)
    classes : ndarray

    Returns
    -------
    Linear
    """
    parts = [_linear(part) for part in scored]
    coef = np.concatenate([weights for weights, _ in parts], axis=-1)
    intercept = log_prior + sum(bias for _, bias in parts)
    columns = tuple(name for part in scored for name in part.factor.columns)
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise NotLinearError(
            "some values are impossible in some class, so log-odds are not finite.\n    Use a prior that allows them."
        )
    if len(classes) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return Linear(coef, intercept, classes, columns)


def gaussian_terms(part: Scored) -> tuple[np.ndarray, np.ndarray]:
    """Weights (classes, columns) and biases (classes,) of Gaussians whose classes share their covariance."""
    mean = np.array(part.parameters.mean, dtype=float)
    if isinstance(part.family, MultivariateGaussian):
        weights = np.linalg.solve(np.asarray(part.parameters.covariance)[0], mean.T).T
    else:
        weights = mean / np.asarray(part.parameters.variance)
    if len(part.constant):
        weights[:, part.constant] = 0.0
    return weights, -0.5 * (weights * mean).sum(axis=-1)


def _linear(part: Scored) -> tuple[np.ndarray, np.ndarray]:
    """Weights (classes, columns) and biases (classes,) of one factor, up to a constant common to all classes."""
    family = part.family
    with np.errstate(divide="ignore"):
        if type(family) is Bernoulli:
            p = np.asarray(part.parameters.mean() if part.predictive else part.parameters)
            return np.log(p) - np.log1p(-p), np.log1p(-p).sum(axis=-1)
        if isinstance(family, Multinomial) and not (isinstance(family, DirichletMultinomial) and part.predictive):
            p = np.asarray(part.parameters.mean() if part.predictive else part.parameters)
            return np.log(p), np.zeros(p.shape[:-1])
        if isinstance(family, Poisson) and not part.predictive:
            rate = np.asarray(part.parameters)
            return np.log(rate), -rate.sum(axis=-1)
    if isinstance(family, Gaussian | MultivariateGaussian) and not part.predictive and "groups" in family.shared:
        return gaussian_terms(part)
    raise NotLinearError.factor(family, "bayes" if part.predictive else "plug-in")
