"""Decisions by expected cost or threshold, and the class prior of unlabeled rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import lstsq
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.counting import check_weight
from tallybayes.data.table import Table
from tallybayes.errors import DataError, EstimateError
from tallybayes.messages import IMPOSSIBLE_HINT
from tallybayes.models.inputs.cost_matrix import finite_number, read_costs
from tallybayes.models.inputs.input_format import LabeledRowReader, read_codes
from tallybayes.results.threshold import Threshold, find_threshold, log_odds_of, place_of
from tallybayes.typing import ClassPrior, Labels, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier

_NEAREST = 1e-6  # weight of the distance to the last point in the least-squares problem of a Newton step


class Deciding(LabeledRowReader, Protocol):
    """A model with class probabilities: a classifier, a mixture, or an ensemble of classifiers."""

    @property
    def classes_(self) -> np.ndarray:
        """The sorted classes."""

    def predict_log_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """Return log p(class | row), shape (n, classes)."""


def decide(
    model: Deciding,
    X: Rows,
    cost: Mapping[Any, Mapping[Any, float]] | npt.ArrayLike | None = None,
    *,
    abstain: float | None = None,
    class_prior: ClassPrior = None,
    precision: float | None = None,
    recall: float | None = None,
    held_out: tuple[Rows, Labels] | None = None,
    positive: Hashable | None = None,
    threshold: Threshold | None = None,
) -> np.ndarray:
    """Return the decision of least expected cost for each row, or the class by a threshold on its probability."""
    check_is_fitted(model)
    if (precision, recall, held_out, positive, threshold) != (None,) * 5:
        if (cost, abstain) != (None, None):
            raise DataError("decide takes costs or a threshold; expected cost= and abstain=, or the other parameters.")
        if threshold is None:
            threshold = _threshold(model, held_out, class_prior, positive, precision, recall)
        elif (precision, recall, held_out, positive) != (None,) * 4:
            raise DataError("threshold is found already; expected no precision=, recall=, held_out= or positive=.")
        return _by_threshold(model.classes_, model.predict_log_proba(X, class_prior), threshold)
    labels, costs = (model.classes_, None) if cost is None else read_costs(cost, model.classes_)
    if abstain is not None:
        abstain = finite_number(abstain, "abstain")
    log_proba = model.predict_log_proba(X, class_prior)
    if costs is None:  # each error costs 1: the decision is the most probable class
        chosen = log_proba.argmax(axis=1)
        least = -np.expm1(log_proba.max(axis=1))
    else:
        expected = np.exp(log_proba) @ costs
        chosen = expected.argmin(axis=1)
        least = expected.min(axis=1)
    decided = labels[chosen]
    if abstain is None:
        return decided
    decided = decided.astype(object)
    decided[least > abstain] = None
    return decided


def _threshold(
    model: Deciding,
    held_out: tuple[Rows, Labels] | None,
    class_prior: ClassPrior,
    positive: Hashable,
    precision: float | None,
    recall: float | None,
) -> Threshold:
    """Return the threshold of a required precision or recall on held-out rows."""
    if not isinstance(held_out, tuple) or len(held_out) != 2:
        raise DataError(
            "held_out is missing; expected a pair of rows and their classes to find the threshold on.\n"
            "    Pass rows that the model was not fitted on: decide(X, precision=0.95, held_out=(X_val, y_val))."
        )
    codes, rows, weight = read_codes(model, *held_out)
    log_proba = model.predict_log_proba(rows, class_prior)
    classes = model.classes_.tolist()
    return find_threshold(log_proba, codes, weight, classes, positive, precision, recall)


def _by_threshold(classes: np.ndarray, log_proba: np.ndarray, threshold: Threshold) -> np.ndarray:
    """Return the positive class if its probability is at or above the threshold, else the most probable other class."""
    if not isinstance(threshold, Threshold):
        raise DataError.wrong_type("threshold", repr(threshold), "a Threshold, which evaluate(...).threshold() returns")
    k = place_of(threshold.positive, classes.tolist())
    others = log_proba.copy()
    others[:, k] = -np.inf
    accepted = log_odds_of(log_proba, k) >= threshold.log_odds
    return classes[np.where(accepted, k, others.argmax(axis=1))]


def estimate_class_prior(
    estimates: EstimatedClassifier, table: Table, sample_weight: SampleWeights, max_iter: int, tol: float
) -> dict[Any, float]:
    """Estimate the class frequencies of unlabeled rows by maximum likelihood."""
    if not max_iter >= 1 or not tol > 0:
        raise EstimateError(
            f"max_iter is {max_iter!r} and tol {tol!r}; expected at least one iteration, and a tol above 0."
        )
    class_weights = estimates.class_weights
    seen = class_weights > 0  # a class without rows has no estimates
    if not seen.any():
        raise DataError("no class has any rows, so unlabeled rows cannot be classified; expected at least one.")
    with np.errstate(divide="ignore"):
        joint = estimates.joint(table, np.log(seen.astype(float)), whole=False)[:, seen]
    given = check_weight(sample_weight, len(joint))
    weight = np.ones(len(joint)) if given is None else given
    best = joint.max(axis=1)
    impossible = np.isneginf(best) & (weight > 0)
    if impossible.any():
        warn(
            f"row {int(np.flatnonzero(impossible)[0])}, one of {int(impossible.sum())}, is impossible in every class "
            f"and is skipped.\n    {IMPOSSIBLE_HINT}"
        )
    used = (weight > 0) & ~impossible
    if not used.any():
        raise DataError("there are 0 rows to estimate the class prior from; expected at least 1 of positive weight.")
    likelihood = np.exp(joint[used] - best[used, None])
    row_weights = weight[used] / weight[used].sum()
    start = class_weights[seen] / class_weights[seen].sum()
    prior, bound = _maximize_mixing_weights(likelihood, row_weights, start, max_iter, tol)
    if bound > tol:
        warn(
            f"the class prior did not converge after {max_iter} iterations: the mean log-likelihood may be {bound:.3g} "
            f"below its maximum, more than tol={tol:.3g}.\n    Increase max_iter.",
            ConvergenceWarning,
        )
    out = np.zeros(len(seen))
    out[seen] = prior
    return dict(zip(estimates.classes.levels, out.tolist(), strict=True))


def _maximize_mixing_weights(
    likelihood: np.ndarray, weight: np.ndarray, start: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, float]:
    """Return the π that maximizes Σ w log Σ_c π_c p_c, and a bound on the distance to the maximum.

    EM multiplies π_c by its gradient g_c. Its steps are long while some π_c must at least double, and short where
    classes overlap; there a Newton step is taken instead. Let R = p/Σπp. The function −Σ w log Σ π_c p_c + Σ π_c + (Σ
    π_c − 1)²/2 has a minimum over π ≥ 0 with sum 1, and the Hessian Rᵀ W R + 1 1ᵀ. Its quadratic approximation is a
    non-negative least-squares problem (after Kim, Carbonetto, Stephens and Anitescu 2020). As the objective is concave,
    max_c g_c − 1 bounds the possible gain.
    """
    mixing = start
    density = likelihood @ mixing
    objective = float(weight @ np.log(density))
    for step in range(max_iter + 1):
        ratio = likelihood / density[:, None]
        gradient = weight @ ratio
        bound = float(gradient.max() - 1)
        if bound <= tol or step == max_iter:
            break
        use_em = bool((gradient[mixing > 0] > 2).any())
        target = mixing * gradient if use_em else _newton(ratio, weight, gradient, mixing, start)
        for length in 0.5 ** np.arange(40):
            candidate = mixing + length * (target - mixing)
            candidate = candidate / candidate.sum()
            candidate_density = likelihood @ candidate
            with np.errstate(divide="ignore"):
                candidate_objective = float(weight @ np.log(candidate_density))
            if candidate_objective > objective - 1e-13 * max(
                1.0, abs(objective)
            ):  # near the maximum, gains are below rounding errors
                break
        mixing = candidate
        density = candidate_density
        objective = candidate_objective
    return mixing, bound


def _newton(
    ratio: np.ndarray, weight: np.ndarray, gradient: np.ndarray, mixing: np.ndarray, initial: np.ndarray
) -> np.ndarray:
    """Return the minimizer of the quadratic approximation at `mixing`.

    With z = π/√mixing it is a non-negative least-squares problem, ‖A(z − √mixing) − b‖², reduced to one row per class
    by a QR factorization. Of all minimizers the nearest is used, by a small penalty of ‖z − √mixing‖²: the proportions
    of indistinguishable classes then change as in EM, and a class that returns from 0 gets its initial proportion.
    """
    scale = np.sqrt(np.maximum(mixing, 1e-6 * initial))
    root = np.sqrt(weight)
    terms = np.empty((len(root) + 1, len(mixing) + 1))
    terms[:-1, :-1], terms[:-1, -1] = root[:, None] * ratio * scale, root
    terms[-1, :-1], terms[-1, -1] = scale, -1.0
    reduced: Any = np.linalg.qr(terms, mode="r")
    system = reduced[:, :-1]
    start = mixing / scale
    # The penalty finds the positive weights; without it, the nearest minimizer over these is exact.
    penalized = np.concatenate([system, _NEAREST * np.eye(len(mixing))])
    target = np.concatenate([reduced[:, -1], np.zeros(len(mixing))])
    free = nnls(penalized, target + penalized @ start)[0] > 0
    found = np.zeros(len(mixing))
    residual = reduced[:, -1] + system[:, ~free] @ start[~free]
    found[free] = start[free] + lstsq(system[:, free], residual, cond=1e-12, lapack_driver="gelsy")[0]
    return np.maximum(found, 0.0) * scale
