"""Models of the first rows of a table, by the number of rows: counted incrementally if possible, otherwise refitted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing

from tallybayes.errors import TallybayesError
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.inputs.columns import chooses_from_values
from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
from tallybayes.typing import EstimatorLike, Rows


class PrefixModel(NamedTuple):
    """A model of the first rows, the seconds to fit it and to predict one row, and whether it was refitted."""

    model: Any
    seconds: float
    refitted: bool


def is_incremental(model: object) -> bool:
    """Return whether counting some rows and then more equals fitting all of them.

    It does not if families, bins or covariances are chosen from values, metrics are learned, or probabilities are
    calibrated, which need all rows; nor with EM.
    """
    if not isinstance(model, Classifier | NearestClassMean):
        return False
    needs_all_rows = [getattr(model, name, None) for name in ("calibration", "unlabeled", "n_classes")]
    metric: Any = getattr(model, "metric", None)
    return (
        not chooses_from_values(model)
        and all(parameter is None for parameter in needs_all_rows)
        and not (isinstance(metric, str) and metric == "learned")
    )


def models_of_prefixes(
    model: EstimatorLike, X: Rows, labels: np.ndarray, order: np.ndarray, sizes: np.ndarray, test_row: Rows
) -> Iterator[PrefixModel]:
    """Yield the model of the first rows in an order, for increasing numbers of rows.

    If counts add up, only the rows between two sizes are counted, so that all sizes take one pass. Parameters are
    estimated at the first prediction; the time therefore includes the prediction of one row.

    Parameters
    ----------
    model : classifier
        It is not changed: copies are fitted.
    X : rows that can be indexed
    labels : ndarray of shape (n,)
    order : ndarray of int
    sizes : ndarray of int
        In ascending order.
    test_row : one row as for `predict_proba`
    """
    counted = clone(model) if is_incremental(model) else None
    class_prior = getattr(model, "class_prior", None)
    declared = list(class_prior) if isinstance(class_prior, Mapping) else None  # classes that may have no rows
    seconds = 0.0
    n_counted = 0
    for size in sizes:
        if counted is not None:
            part = order[n_counted:size]
            start = perf_counter()
            try:
                counted.partial_fit(_safe_indexing(X, part), labels[part], classes=declared)
                seconds += perf_counter() - start
                n_counted = size
                counted = None if counted.tally_.soft else counted
            except TallybayesError:  # the rows cannot be added, such as missing cells under a covariance
                counted = None
        if counted is not None:
            yield PrefixModel(counted, seconds + _prediction_seconds(counted, test_row), refitted=False)
            continue
        part = order[:size]
        if len(np.unique(labels[part])) == 1:  # some classifiers require two classes
            yield PrefixModel(DummyClassifier().fit(part, labels[part]), 0.0, refitted=True)
            continue
        rows = _safe_indexing(X, part)
        start = perf_counter()
        fitted = clone(model).fit(rows, labels[part])
        fit_seconds = perf_counter() - start
        yield PrefixModel(fitted, fit_seconds + _prediction_seconds(fitted, test_row), refitted=True)


def _prediction_seconds(model: Classifier | NearestClassMean, test_row: Rows) -> float:
    """Return the time to predict one row."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the row is predicted again, with all others
        model.predict_proba(test_row)
    return perf_counter() - start
