"""tb.prior_path: log evidence and held-out metrics under priors of several strengths."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes._utils.parameter_checks import read_numbers
from tallybayes.errors import DataError, EstimateError, NotForgettableError
from tallybayes.estimation.resampling.folds import Folds
from tallybayes.estimation.resampling.held_out import HoldOut, HoldOutRows
from tallybayes.evaluation.validation.cross_validation import (
    ONE_BY_ONE,
    FoldRule,
    evaluate_held_out,
    make_holdout,
)
from tallybayes.families.estimates import read_estimate
from tallybayes.models.base import Model
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.held_out_rows import count_rows
from tallybayes.models.hmm.hmm_held_out import HeldSequences
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.results.prior_path import PriorPath
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

_FOLDS = 10  # of models without leave-one-out in closed form
T = TypeVar("T", bound=HoldOut)
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
    strengths = read_numbers("grid", grid, "one or more positive numbers")
    if strengths.ndim != 1 or not len(strengths) or not (np.isfinite(strengths) & (strengths > 0)).all():
        raise DataError.wrong_type("grid", repr(grid), "one or more positive numbers")
    if not read_estimate(getattr(model, "estimate", "mle")).has_prior:
        raise EstimateError(
            f"{model!r} has no prior; expected a model whose prior can be scaled.\n"
            "    Use a model with estimate='bayes' or 'map'."
        )

    parameters = [{"strength": float(strength)} for strength in strengths]
    subjects, folds = _scaled_subjects(model, data, target, sample_weight, strengths)
    results = evaluate_held_out(subjects, parameters, folds)
    return PriorPath(strengths, np.array([_log2_evidence(result.model) for result in results]), results)


def _scaled_subjects(
    model: Estimator, data: Rows, target: Labels | None, sample_weight: SampleWeights, strengths: np.ndarray
) -> tuple[Sequence[HeldSequences | HoldOutRows], Folds]:
    """Return the rows to hold out of the model under every prior, and their folds; after EM the model is refitted."""
    subject: HeldSequences | HoldOutRows
    if isinstance(model, Classifier):
        with suppress(NotForgettableError):  # the tally depends on EM
            subject, folds = count_rows(model, data, target, sample_weight, ONE_BY_ONE.assign)
            return [_with_scaled_priors(subject, strength) for strength in strengths], folds
    subject = make_holdout(model, data, target, sample_weight)
    folds = FoldRule(_FOLDS, random_state=0, at_most=True).assign(subject.codes)
    if not subject.requires_refit:
        return [_with_scaled_priors(subject, strength) for strength in strengths], folds
    own = subject.full_model.prior_
    priors = [{name: prior.scaled(strength) for name, prior in own.items()} for strength in strengths]
    return [make_holdout(clone(model).set_params(prior=prior), data, target, sample_weight) for prior in priors], folds


def _with_scaled_priors(subject: T, strength: float) -> T:
    """Return the rows with a model of the same counts whose resolved priors are multiplied in strength."""
    return subject.with_model(subject.full_model._with_scaled_priors(strength))


def _log2_evidence(model: Model) -> float:
    """Return the log evidence in bits, or its lower bound of a mixture; NaN if undefined (shrunk covariances, EM)."""
    try:
        nats = model.evidence_lower_bound_ if isinstance(model, Mixture) else model.log_evidence()
    except EstimateError:
        return float("nan")
    return float(nats / np.log(2))
