"""tb.prior_path: log evidence and held-out metrics under priors of several strengths."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes._utils.progress import progress
from tallybayes.errors import DataError, EstimateError, NotForgettableError
from tallybayes.evaluation.validation.cross_validation import FoldRule, evaluate_held_out, make_holdout
from tallybayes.families.estimates import read_estimate
from tallybayes.models.base import Model
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.held_out_scores import count_rows, open_rows, score_left_out
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.results.classification_evaluation import Evaluation
from tallybayes.results.evaluation import HeldOut, RowEvaluation
from tallybayes.results.prior_path import PriorPath
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

_FOLDS = 10  # of models without leave-one-out in closed form
GRID = tuple(float(strength) for strength in 10.0 ** np.linspace(-3, 3, 13))


def prior_path(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    grid: npt.ArrayLike = GRID,
    *,
    sample_weight: SampleWeights = None,
) -> PriorPath:
    """Compute log evidence, log loss and accuracy under priors of several strengths.

    Every prior has the mean of the model's own (``prior_``) and a multiple of its strength. For classifiers the
    held-out metrics are those of leave-one-out, from one pass over the data; for other models of ten-fold
    cross-validation. If the tally depends on EM, the model is refitted under every prior and for every fold.

    Parameters
    ----------
    model : any model of this package but NearestClassMean
        With ``estimate="bayes"`` or ``"map"``: other estimates have no prior. It is not changed.
    data : as for ``fit``
    target : as for `cross_validate`
    grid : array-like of positive numbers, default 0.001 to 1000
        The multiples.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
        The weight of every row.

    Returns
    -------
    PriorPath

    Examples
    --------
    >>> import tallybayes as tb
    >>> coins = {"x": ["h", "h", "t", "h", "t", "t"], "y": [0, 0, 0, 1, 1, 1]}
    >>> tb.prior_path(tb.NaiveBayes(), coins, "y", [0.01, 1, 100]).by_log_loss
    100.0
    """
    strengths = np.asarray(grid, dtype=float)
    if strengths.ndim != 1 or not len(strengths) or not (np.isfinite(strengths) & (strengths > 0)).all():
        raise DataError.wrong_type("grid", repr(grid), "one or more positive numbers")
    if not read_estimate(getattr(model, "estimate", "mle")).has_prior:
        raise EstimateError(
            f"{model!r} has no prior; expected a model whose prior can be scaled.\n"
            "    Use a model with estimate='bayes' or 'map'."
        )
    try:
        evaluate = _leave_one_out if isinstance(model, Classifier) else _ten_folds
        evaluated = evaluate(model, data, target, sample_weight)
    except NotForgettableError:  # the tally depends on EM: refit
        evaluated = _ten_folds(model, data, target, sample_weight)
    results = [evaluated(strength) for strength in progress(strengths.tolist(), "trying priors")]
    return PriorPath(strengths, np.array([_log2_evidence(result.model) for result in results]), results)


Evaluated = Callable[[float], RowEvaluation]  # from a strength to the held-out metrics


def _leave_one_out(model: Estimator, data: Rows, target: Labels | None, sample_weight: SampleWeights) -> Evaluated:
    """Return a function that evaluates a classifier by leave-one-out, from one count of all rows."""
    rows = count_rows(open_rows(model, data, target, sample_weight))  # type: ignore[arg-type]  # a classifier
    fold = np.arange(rows.table.n_rows)

    def evaluated(strength: float) -> RowEvaluation:
        scaled: Any = _with_scaled_priors(rows.model, strength)
        scores = score_left_out(rows, scaled)
        options: Any = {"weight": rows.weight, "log_density": scores.log_density}
        held_out = HeldOut(scaled, fold, {"strength": strength}, impossible=scores.impossible)
        return Evaluation(scaled.classes_, rows.codes, scores.log_proba, held_out=held_out, **options)

    return evaluated


def _ten_folds(model: Estimator, data: Rows, target: Labels | None, sample_weight: SampleWeights) -> Evaluated:
    """Return a function that evaluates any model by ten-fold cross-validation; it is refitted if it must be."""
    subject = make_holdout(model, data, target, sample_weight)
    known = subject.codes >= 0
    rule = FoldRule(min(_FOLDS, int(known.sum())), random_state=0)
    fold = rule.assign(subject.codes)

    def evaluated(strength: float) -> RowEvaluation:
        if subject.requires_refit:
            prior = {name: own.scaled(strength) for name, own in subject.full_model.prior_.items()}
            other = make_holdout(clone(model).set_params(prior=prior), data, target, sample_weight)
        else:
            other = copy.copy(subject)
            other.full_model = _with_scaled_priors(subject.full_model, strength)
        return evaluate_held_out(other, fold, known, {"strength": strength}, rule)

    return evaluated


def _with_scaled_priors(model: Model, strength: float) -> Model:
    """Return a model of the same counts whose resolved priors are multiplied in strength."""
    return model._with_scaled_priors(strength)


def _log2_evidence(model: Model) -> float:
    """Return the log evidence in bits, or its lower bound of a mixture; NaN if undefined (shrunk covariances, EM)."""
    try:
        nats = model.evidence_lower_bound_ if isinstance(model, Mixture) else model.log_evidence()
    except EstimateError:
        return float("nan")
    return float(nats / np.log(2))
