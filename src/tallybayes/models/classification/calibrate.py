"""A classifier's probabilities mended by its own rows, left out: when it is fitted, or when it is asked to."""

from __future__ import annotations

from typing import Any, TypeVar

from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.string_options import StringOptions
from tallybayes.data.table import Table
from tallybayes.estimation.calibration.calibration import METHODS, Calibration, fit_calibration
from tallybayes.estimation.resampling.folds import group_folds
from tallybayes.models.classification.held_out_scores import FOLDS, held_out_scores
from tallybayes.models.inputs.features import open_features
from tallybayes.models.inputs.input_format import read_more_rows
from tallybayes.typing import Labels, Rows, SampleWeights
from tallybayes.warnings import CalibrationWarning, warn

Model = TypeVar("Model", bound=Any)


def calibrate(
    model: Model,
    data: Rows,
    target: Labels,
    method: str | None = None,
    *,
    sample_weight: SampleWeights = None,
    groups: Labels | None = None,
) -> Model:
    """Mend the predicted probabilities by how the model does on its own rows, each left out in turn.

    No rows need to be kept back for it. From then on `predict_proba` and all that stands on it give mended
    probabilities; ``calibration_`` tells how. The calibration is stored in the model's file. It is dropped by
    `reestimate`, ``+``, `fit_tally`, `set_params` and when classes come or go, and the next `predict_proba` says so;
    `partial_fit` and `forget` keep it, and warn when the weight counted has changed by more than a tenth. `explain`,
    `score_samples` and `predict_proba_interval` do not use the calibration. ``calibration=`` of the constructor does
    the same when the model is fitted.

    Where EM expected labels or cells, no row can be left out of the counts: the model is fitted ten times, each time
    without a tenth of the labeled rows.

    Parameters
    ----------
    data, target, sample_weight
        The rows the model was fitted on, as for `fit`, or some of them; all, where it is fitted again.
    method : {"temperature", "isotonic", "auto"}, optional
        One number T for all, p ∝ p^(1/T), with a share of doubt for rows that contradict the model; or, for every
        class, a rising function of its log-odds, which needs some hundred rows of each class; or whichever of these,
        or nothing, has the lowest log-loss on rows it was not fitted to. If left out, the constructor's
        ``calibration=``, or ``"temperature"``.
    groups : array-like of shape (n,), or the name of a column of data, optional
        Rows of one group are left out together, in ten parts.

    Returns
    -------
    self

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = np.repeat(rng.normal(y, 2.0)[:, None], 5, axis=1)   # one column five times: too sure of itself
    >>> model = tb.NaiveBayes().fit(X, y)
    >>> model.calibrate(X, y).calibration_
    Calibration('temperature', temperature 4.891, contamination 0.005: log loss 1.012 to 0.6438 on held-out rows)
    """
    check_is_fitted(model, "tally_")
    model._require_counts("leaving rows out")
    method = model.calibration or "temperature" if method is None else method
    StringOptions(METHODS).check("method", method)
    if isinstance(groups, str):
        table = open_features(data)
        data, groups = table.without(groups), table._column(groups)
    table, weight = read_more_rows(model, data, target, sample_weight)
    if not model.tally_.soft:
        counted = model._count_more_rows(table, weight)
        _ = model.tally_ - counted  # refuses rows that the model cannot have learned from
    return model._set_calibration(_learned(model, table, weight, method, groups))


def calibrate_on_fit(model: Any, table: Table, weight: Any) -> Calibration:
    """What the constructor asked for, from the rows that were just counted."""
    return _learned(model, table, weight, model.calibration)


def _learned(model: Any, table: Table, weight: Any, method: str, groups: Any = None) -> Calibration:
    fold = None
    if groups is not None:
        fold = group_folds(groups, table.n_rows, FOLDS, 0)
    return fit_calibration(method, *held_out_scores(model, table, weight, fold), model._total_weight())


def warn_uncalibrated(model: Any) -> None:
    """Say, once, that a calibration was asked for or lost."""
    model._calibration_pending = False
    warn(
        "the probabilities are not calibrated: how they are to be mended was not learned from these counts. "
        "Call calibrate(X, y) with the rows the model was fitted on.",
        CalibrationWarning,
    )
