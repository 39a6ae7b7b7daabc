"""Calibration of a classifier with its training rows, scored by leave-one-out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallybayes._utils.string_options import StringOptions
from tallybayes.data.table import Table
from tallybayes.estimation.calibration.calibration import METHODS, Calibration, fit_calibration
from tallybayes.estimation.resampling.folds import group_folds
from tallybayes.models.classification.held_out_scores import FOLDS, held_out_scores
from tallybayes.models.inputs.features import open_features
from tallybayes.models.inputs.input_format import read_more_rows
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier


def calibrate(
    model: Classifier, X: Rows, y: Labels, method: str | None, sample_weight: SampleWeights, groups: Labels | None
) -> Calibration:
    """Return a calibration fitted to the training rows; see `Classifier.calibrate`."""
    method = model.calibration or "temperature" if method is None else method
    StringOptions(METHODS).check("method", method)
    if isinstance(groups, str):
        table = open_features(X)
        X = table.without(groups)
        groups = table.column(groups)
    table, weight = read_more_rows(model, X, y, sample_weight)
    if not model.tally_.soft:
        _ = model.tally_ - model._count_more_rows(table, weight)  # raises if the rows are not training rows
    return calibration_of(model, table, weight, method, groups)


def calibration_of(
    model: Classifier, table: Table, weight: SampleWeights, method: str, groups: Labels | None = None
) -> Calibration:
    """Return the calibration of the held-out probabilities of the training rows."""
    fold = None if groups is None else group_folds(groups, table.n_rows, FOLDS, 0)
    return fit_calibration(method, *held_out_scores(model, table, weight, fold), model.n_rows_)
