"""Decisions: the least expected cost, and the class prior that fits some unlabeled rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import lstsq
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.counting import check_weight
from tallybayes.errors import DataError, EstimateError
from tallybayes.models.inputs.cost_matrix import finite_number, read_costs
from tallybayes.models.inputs.features import open_features
from tallybayes.models.inputs.input_format import read_codes
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.models.inputs.threshold import Threshold, find_threshold, log_odds_of, place_of
from tallybayes.typing import ClassPrior, Labels, Rows, SampleWeights
from tallybayes.warnings import warn


@answering
def decide(
    model: Any,
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
    """Return the decision of least expected cost for every row, or the class by a threshold on its probability.

    Uneven costs and uneven classes belong here: rows need no resampling for them. A stated precision or recall of one
    class is reached by a threshold, which is found on held-out rows: a row is of the positive class if its probability
    is at or above the threshold, otherwise of the most probable other class.

    Parameters
    ----------
    X : as for `fit`, without the target
    cost : {true: {decided: cost}}, or array of shape (classes, classes), optional
        What deciding costs, by the class that is true. The rows of an array are true classes, its columns decided
        ones, in the order of ``classes_``. The decisions of a mapping need not be classes. Costs are any finite
        numbers, gains negative. Left out, every error costs 1.
    abstain : float, optional
        The cost of not deciding.
    class_prior : as for the constructor, optional
        The share of the classes where the decisions are taken, if it differs.
    precision : float, optional
        The least precision of the positive class on the held-out rows; of such thresholds that of the highest recall.
    recall : float, optional
        The least recall of the positive class on the held-out rows; of such thresholds that of the highest precision.
    held_out : pair (X, y), optional
        Rows with their classes that the model was not fitted on, to find the threshold for `precision` or `recall`.
    positive : label, optional
        The class of the threshold; of two classes the second one if left out.
    threshold : Threshold, optional
        A threshold found before, by ``tb.evaluate(model, X, y).threshold(precision=...)``.

    Returns
    -------
    ndarray of shape (n,)
        The decisions, in the type of ``classes_`` where they are classes; where `abstain` is given, objects, and
        None where every decision would cost more than that. Ties go to the first.

    Examples
    --------
    >>> import tallybayes as tb
    >>> words = {"offer": [1, 1, 1, 0, 1, 0], "mail": ["spam", "spam", "spam", "ham", "ham", "ham"]}
    >>> model = tb.NaiveBayes({"offer": tb.Bernoulli()}).fit(words, "mail")
    >>> model.predict({"offer": [1, 0]}).tolist()
    ['spam', 'ham']
    >>> cost = {"spam": {"delete": 0, "keep": 1}, "ham": {"delete": 10, "keep": 0}}
    >>> model.decide({"offer": [1, 0]}, cost).tolist()
    ['keep', 'keep']
    >>> model.decide({"offer": [1, 0]}, abstain=0.3).tolist()
    [None, 'ham']
    >>> checked = {"offer": [1, 1, 0, 0]}, ["spam", "ham", "ham", "ham"]
    >>> model.decide({"offer": [1, 0]}, recall=1, held_out=checked, positive="spam").tolist()
    ['spam', 'ham']
    """
    check_is_fitted(model)
    if (precision, recall, held_out, positive, threshold) != (None,) * 5:
        if (cost, abstain) != (None, None):
            raise DataError("decide takes costs or a threshold; expected cost= and abstain=, or the other parameters.")
        if threshold is None:
            threshold = _threshold(model, held_out, class_prior, positive, precision, recall)
        elif (precision, recall, held_out, positive) != (None,) * 4:
            raise DataError("threshold is found already; expected no precision=, recall=, held_out= or positive=.")
        return _by_threshold(model, model.predict_log_proba(X, class_prior), threshold)
    labels, costs = (model.classes_, None) if cost is None else read_costs(cost, model.classes_)
    if abstain is not None:
        abstain = finite_number(abstain, "abstain")
    log_proba = model.predict_log_proba(X, class_prior)
    if costs is None:  # every error costs 1: the most probable class, and what it leaves to the others
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


def _threshold(model: Any, held_out: Any, class_prior: Any, positive: Any, precision: Any, recall: Any) -> Threshold:
    """The threshold of a stated precision or recall on held-out rows."""
    if not isinstance(held_out, tuple) or len(held_out) != 2:
        raise DataError(
            "held_out is missing; expected a pair of rows and their classes to find the threshold on.\n"
            "    Pass rows that the model was not fitted on: decide(X, precision=0.95, held_out=(X_val, y_val))."
        )
    codes, rows, weight = read_codes(model, *held_out)
    log_proba = model.predict_log_proba(rows, class_prior)
    classes = model.classes_.tolist()
    return find_threshold(log_proba, codes, weight, classes, positive, precision, recall)


def _by_threshold(model: Any, log_proba: np.ndarray, threshold: Threshold) -> np.ndarray:
    """The positive class where its probability is at or above the threshold, else the most probable other class."""
    if not isinstance(threshold, Threshold):
        raise DataError.wrong_type("threshold", repr(threshold), "a Threshold, which evaluate(...).threshold() returns")
    k = place_of(threshold.positive, model.classes_.tolist())
    others = log_proba.copy()
    others[:, k] = -np.inf
    accepted = log_odds_of(log_proba, k) >= threshold.log_odds
    return model.classes_[np.where(accepted, k, others.argmax(axis=1))]


@answering
def estimate_class_prior(
    model: Any, X: Rows, *, sample_weight: SampleWeights = None, max_iter: int = 100, tol: float = 1e-9
) -> dict[Any, float]:
    """The share of the classes among unlabeled rows: the one under which they are most probable.

    What the classes look like is taken as learned, only how frequent they are is new: the maximum that EM on the
    prior alone climbs to (Saerens, Latinne and Decaestecker, 2002), here by Newton steps. Where the rows cannot
    tell classes apart, those keep the proportions they were learned with. A class without rows gets 0.

    Parameters
    ----------
    X : as for `fit`, without the target
    sample_weight : array-like of shape (n,), or the name of a column of X, optional
    max_iter : int, default 100
        The most steps to take; a warning says if they were too few.
    tol : float, default 1e-9
        How far the mean log-likelihood of a row may stay below its maximum.

    Returns
    -------
    dict
        The probability of every class, as ``class_prior`` takes it.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["ill", "well"], 1000)                    # as many ill as well, unlike elsewhere
    >>> model = tb.NaiveBayes().fit(rng.normal(3.0 * (y == "ill"))[:, None], y)
    >>> elsewhere = rng.normal(np.where(rng.random(5000) < 0.1, 3.0, 0.0))[:, None]
    >>> prior = model.estimate_class_prior(elsewhere)
    >>> round(prior["ill"], 1)
    0.1
    >>> model.predict_proba([[2.0]])[0, 0].round(1), model.predict_proba([[2.0]], class_prior=prior)[0, 0].round(1)
    (np.float64(0.8), np.float64(0.3))
    """
    check_is_fitted(model)
    if not max_iter >= 1 or not tol > 0:
        raise EstimateError(f"max_iter is {max_iter!r} and tol {tol!r}; expected at least one step, and a tol above 0.")
    counts: Any = model.tally_[model._target] if model._fixed_parameters is None else model._fixed_parameters[0]
    seen = counts.table > 0  # what was never seen has no rows to recognize it by
    if not seen.any():
        raise DataError("no class has any rows, so unlabeled ones cannot be told apart; expected at least one.")
    if isinstance(sample_weight, str):
        sample_weight = np.asarray(open_features(X)._column(sample_weight))
    with np.errstate(divide="ignore"):
        joint = model._joint(model._open(X), np.log(seen.astype(float)), whole=False)[:, seen]
    given = check_weight(sample_weight, len(joint))
    weight = np.ones(len(joint)) if given is None else given
    best = joint.max(axis=1)
    lost = np.isneginf(best) & (weight > 0)
    if lost.any():
        warn(
            f"row {int(np.flatnonzero(lost)[0])}, one of {int(lost.sum())}, is impossible in every class and is left "
            "out. With estimate='bayes' nothing is impossible only because it was not seen.",
            UserWarning,
        )
    kept = (weight > 0) & ~lost
    if not kept.any():
        raise DataError("there are 0 rows to estimate the class prior from; expected at least 1 that counts.")
    likelihood = np.exp(joint[kept] - best[kept, None])
    share = weight[kept] / weight[kept].sum()
    start = counts.table[seen] / counts.table[seen].sum()
    prior, gap = _most_likely_shares(likelihood, share, start, max_iter, tol)
    if gap > tol:
        warn(
            f"the class prior was still moving after {max_iter} steps: the mean log-likelihood may be {gap:.3g} below "
            f"its maximum, more than tol={tol:.3g}. Raise max_iter.",
            ConvergenceWarning,
        )
    out = np.zeros(len(seen))
    out[seen] = prior
    return dict(zip(model._class_domain.levels, out.tolist(), strict=True))


def _most_likely_shares(
    likelihood: np.ndarray, weight: np.ndarray, start: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, float]:
    """The π that maximizes Σ w log Σ_c π_c p_c, and how far below the maximum it may still be.

    EM multiplies π_c by its gradient g_c: a great stride where a share must at least double, a creep where classes
    overlap. There a Newton step is taken. With R = p/Σπp, −Σ w log Σ π_c p_c + Σ π_c + (Σ π_c − 1)²/2, whose minimum
    over π ≥ 0 sums to 1, has the Hessian Rᵀ W R + 1 1ᵀ, so that its quadratic is one of non-negative least squares
    (after Kim, Carbonetto, Stephens and Anitescu, 2020). As the function is concave, max_c g_c − 1 bounds what is to
    gain.
    """
    shares = start
    mixed = likelihood @ shares
    height = float(weight @ np.log(mixed))
    for step in range(max_iter + 1):
        ratio = likelihood / mixed[:, None]
        gradient = weight @ ratio
        gap = float(gradient.max() - 1)
        if gap <= tol or step == max_iter:
            break
        far = bool((gradient[shares > 0] > 2).any())
        target = shares * gradient if far else _newton(ratio, weight, gradient, shares, start)
        for length in 0.5 ** np.arange(40):
            found = shares + length * (target - shares)
            found = found / found.sum()
            mixed_found = likelihood @ found
            with np.errstate(divide="ignore"):
                height_found = float(weight @ np.log(mixed_found))
            if height_found > height - 1e-13 * max(1.0, abs(height)):  # near the top, gains drown in rounding
                break
        shares = found
        mixed = mixed_found
        height = height_found
    return shares, gap


def _newton(
    ratio: np.ndarray, weight: np.ndarray, gradient: np.ndarray, shares: np.ndarray, begun: np.ndarray
) -> np.ndarray:
    """Where the quadratic at `shares` is least, or a lower point on the way to it.

    With z = π/√shares it is a problem of least squares, ‖A(z − z₀) − b‖², reduced to a row for every class. Of all its
    solutions the nearest is taken: what the rows cannot tell apart then moves in proportion, as EM would move it, and
    in the proportions it began with where it comes back from 0.
    """
    scale = np.sqrt(np.maximum(shares, 1e-6 * begun))
    root = np.sqrt(weight)
    terms = np.empty((len(root) + 1, len(shares) + 1))
    terms[:-1, :-1], terms[:-1, -1] = root[:, None] * ratio * scale, root
    terms[-1, :-1], terms[-1, -1] = scale, -1.0
    reduced: Any = np.linalg.qr(terms, mode="r")
    system = reduced[:, :-1]
    right = reduced[:, -1]
    start = shares / scale
    here = start
    left = right
    free = (shares > 0) | (gradient > 1)
    while True:
        step = np.zeros(len(shares))
        step[free] = lstsq(system[:, free], left, cond=1e-12, lapack_driver="gelsy")[0]
        found = here + step
        wrong = free & (found < 0)
        if not wrong.any():
            return found * scale
        found = np.maximum(found, 0.0)
        left_there = right - system @ (found - start)
        if left_there @ left_there >= left @ left:  # too many at once: as far as the first that reaches 0
            lengths = np.where(wrong, here / np.where(wrong, -step, 1.0), np.inf)
            wrong = lengths == lengths.min()
            found = np.maximum(here + lengths.min() * step, 0.0)
            found[wrong] = 0.0
            left_there = right - system @ (found - start)
        here = found
        left = left_there
        free &= ~wrong
