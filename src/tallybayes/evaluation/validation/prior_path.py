"""tb.prior_path: log evidence and held-out metrics under priors of several strengths."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes.errors import DataError, EstimateError, NotForgettableError
from tallybayes.estimation.resampling.held_out import HoldOutRows
from tallybayes.evaluation.validation.cross_validation import (
    ONE_BY_ONE,
    FoldRule,
    hold_out,
    make_holdout,
    subtract_folds,
)
from tallybayes.families.estimates import read_estimate
from tallybayes.models.base import Model
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.hmm.hmm_held_out import HeldSequences
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.results.evaluation import RowEvaluation
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

    parameters = [{"strength": float(strength)} for strength in strengths]

    def scaled(fitted: Model) -> tuple[list[Any], list[dict[str, Any]]]:
        """Return the models of the same counts under all priors."""
        return [_with_scaled_priors(fitted, strength) for strength in strengths], parameters

    results: list[RowEvaluation] = []
    if isinstance(model, Classifier):
        with suppress(NotForgettableError):  # the tally depends on EM
            results = subtract_folds(model, data, target, sample_weight, scaled, ONE_BY_ONE)
    if not results:
        subjects = _scaled_subjects(model, data, target, sample_weight, strengths)
        results = hold_out(subjects, parameters, FoldRule(_FOLDS, random_state=0, at_most=True))
    return PriorPath(strengths, np.array([_log2_evidence(result.model) for result in results]), results)


def _scaled_subjects(
    model: Estimator, data: Rows, target: Labels | None, sample_weight: SampleWeights, strengths: np.ndarray
) -> list[HeldSequences | HoldOutRows]:
    """Return the rows to hold out of the model under every prior; after EM the model is refitted."""
    subject = make_holdout(model, data, target, sample_weight)
    whole = subject.full_model
    if subject.requires_refit:
        priors = [{name: own.scaled(strength) for name, own in whole.prior_.items()} for strength in strengths]
        return [make_holdout(clone(model).set_params(prior=prior), data, target, sample_weight) for prior in priors]
    subjects = []
    for strength in strengths:
        subjects.append(copy.copy(subject))
        subjects[-1].full_model = _with_scaled_priors(whole, strength)
    return subjects


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
