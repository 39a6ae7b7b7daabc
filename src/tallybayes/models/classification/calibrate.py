"""Calibration of a classifier with its training rows, scored by leave-one-out or by the other folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.data.counting import check_weight
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.calibration.calibration import METHODS, Calibration, fit_calibration
from tallybayes.estimation.resampling.folds import Folds, group_folds, random_folds
from tallybayes.models.classification.held_out_rows import CountedRows, LabeledRows, class_codes
from tallybayes.models.inputs.features import open_features
from tallybayes.models.inputs.input_format import read_more_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier

_FOLDS = 10  # of groups, and of models that are refitted


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
    model: Classifier, table: Table, sample_weight: SampleWeights, method: str, groups: Labels | None = None
) -> Calibration:
    """Return the calibration of the held-out probabilities of the training rows.

    Every row is held out alone or, with groups, together with its fold.
    """
    fold = None if groups is None else group_folds(groups, table.n_rows, _FOLDS, 0)
    weight = check_weight(sample_weight, table.n_rows)
    if model.tally_.soft:
        return _calibration(_rows_to_refit(model, table, weight), fold, method)
    if model.unlabeled == "skip":
        kept = np.flatnonzero(read_labels(table, model.target_, model.missing_label).codes >= 0)
        table = table.rows(kept)
        weight = None if weight is None else weight[kept]
        fold = None if fold is None else fold[kept]
    return _calibration(CountedRows(model, table, class_codes(model, table), weight, []), fold, method)


def _rows_to_refit(model: Classifier, table: Table, weight: np.ndarray | None) -> LabeledRows:
    """Return the rows of a model that depends on EM; raise DataError unless they are all of its training rows."""
    rows = LabeledRows(model, table, weight)
    size = np.ones(table.n_rows) if weight is None else weight
    total = float(np.where(rows.codes >= 0, size, model.unlabeled_weight * size).sum())
    if not np.isclose(total, model.n_rows_):
        raise DataError(
            f"these rows have weight {total:.12g}, but the model has counted {model.n_rows_:.12g}; expected "
            "all rows it was fitted on, since it is fitted again without some of them."
        )
    return rows


def _calibration(rows: CountedRows | LabeledRows, fold: np.ndarray | None, method: str) -> Calibration:
    """Return the calibration of held-out rows; without folds, each row by itself or, if the model is refitted, ten."""
    known = rows.codes >= 0
    labeled = np.flatnonzero(known)
    one_by_one = fold is None and not rows.requires_refit
    if fold is None:
        fold = np.full(len(known), -1, dtype=np.int32)
        fold[known] = labeled if one_by_one else random_folds(rows.codes[known], min(_FOLDS, len(labeled)), 0)
    log_proba = rows.score(Folds(fold, known, one_by_one=one_by_one)).log_proba
    total = rows.full_model.n_rows_
    return fit_calibration(method, log_proba[known], rows.codes[known], rows.some_weight(known), total)
