"""Linear forms: log-odds as coefficients and an intercept, where a model has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import NotLinearError
from tallybayes.families.form import Bell, Linear, RowBell
from tallybayes.models.fitted.scoring import Scored


class LinearForm(NamedTuple):
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


def to_linear(model: Any) -> LinearForm:
    """The linear form: P(classes_[1] | x) = σ(coef · x + intercept), or the weights of every class.

    It exists for `Bernoulli` and `Multinomial` columns under every estimate, for `Poisson` and `TiedGaussian` under
    ``"mle"``, ``"unbiased"`` and ``"map"``; elsewhere `NotLinearError` says which columns bend it.

    Returns
    -------
    LinearForm
    """
    check_is_fitted(model, "tally_")
    scored, classes = model._scored, model.classes_
    parts = [linear_terms(part) for part in scored]
    coef = np.concatenate([weights for weights, _ in parts], axis=-1)
    intercept = model.class_log_prior_ + sum(bias for _, bias in parts)
    columns: list[Any] = [name for part in scored for name in part.factor.columns]
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise NotLinearError(
            "some values are impossible in some class, so log-odds are not finite.\n    Use a prior that allows them."
        )
    if len(classes) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    fitted = list(getattr(model, "feature_names_in_", ())) or sorted(c for c in columns if isinstance(c, int))
    if coef.shape[1] == len(columns) and set(columns) <= set(fitted):
        order = sorted(range(len(columns)), key=lambda place: fitted.index(columns[place]))  # as X has them
        coef, columns = coef[:, order], [columns[place] for place in order]
    return LinearForm(coef, intercept, classes, tuple(columns))


def linear_terms(part: Scored) -> tuple[np.ndarray, np.ndarray]:
    """Weights (classes, columns) and biases (classes,) of one factor, up to a constant common to all classes."""
    match part.form:
        case Linear(weight, bias):
            return weight, np.broadcast_to(bias, weight.shape).sum(axis=-1)
        case Bell(mean, precision, _, True):
            return _about_means(mean, mean * precision)
        case RowBell(mean, covariance, True):
            return _about_means(mean, np.linalg.solve(covariance[0], mean.T).T if len(mean) else mean)
    raise NotLinearError.factor(part.family, "bayes" if part.predictive else "plug-in")


def _about_means(mean: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return weights, -0.5 * (weights * mean).sum(axis=-1)
