"""Models of the first rows of a table, by the number of rows: counted once where counts add up, else fitted again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from tallybayes.errors import TallybayesError
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.inputs.columns import says
from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
from tallybayes.typing import Rows


class PrefixModel(NamedTuple):
    """A model of the first rows, the seconds to learn them and to answer one, and whether it was fitted again."""

    model: Any
    seconds: float
    refitted: bool


class SingleClassPredictor:
    """What a classifier that needs two classes would say of rows that show one."""

    def __init__(self, label: np.ndarray) -> None:
        self.classes_ = label

    def predict_proba(self, X: Any) -> np.ndarray:
        """1 for every row."""
        return np.ones((X.shape[0] if hasattr(X, "shape") else len(X), 1))


def is_incremental(model: Any) -> bool:
    """Whether counting some rows and then more is the same as fitting all of them: nothing is chosen by the first.

    Families and bins that look at values are chosen, metrics learned and calibrations made of all rows that are fitted;
    EM expects classes from all of them.
    """
    if not isinstance(model, Classifier | NearestClassMean):
        return False
    chosen = ("suggest", "auto") if hasattr(model, "bins") else ("suggest",)
    by_all = [getattr(model, name, None) for name in ("calibration", "unlabeled", "n_classes")]
    metric: Any = getattr(model, "metric", None)
    return (
        not says(getattr(model, "columns", "auto"), *chosen)
        and all(setting is None for setting in by_all)
        and not (isinstance(metric, str) and metric == "learned")
    )


def models_of_prefixes(
    model: Any, X: Rows, labels: np.ndarray, order: np.ndarray, sizes: np.ndarray, asked: Any
) -> Iterator[PrefixModel]:
    """The model of the first rows in this order, size by size, which rise.

    Where counts add up, only the rows between two sizes are counted, so that all sizes cost one pass. What is asked for
    at the first answer only, such as parameters, is part of the time, so one row is asked.

    Parameters
    ----------
    model : classifier
        Not fitted here; copies are.
    X : rows that can be taken by number
    labels : ndarray of shape (n,)
    order : ndarray of int
    sizes : ndarray of int
    asked : a row as `predict_proba` takes it
    """
    counted = clone(model) if is_incremental(model) else None
    stated = getattr(model, "class_prior", None)
    declared = (
        list(stated) if isinstance(stated, Mapping) else None
    )  # classes that exist whether or not a row shows them
    spent, start = 0.0, 0
    for size in sizes:
        if counted is not None:
            part, begun = order[start:size], perf_counter()
            try:
                counted.partial_fit(_safe_indexing(X, part), labels[part], classes=declared)
            except TallybayesError:  # these rows are no more of the same, such as cells that a covariance lacks
                counted = None
            else:
                spent, start = spent + perf_counter() - begun, size
                if not counted.tally_.soft:
                    yield PrefixModel(counted, spent + _seconds_to_answer(counted, asked), refitted=False)
                    continue
                counted = None
        part = order[:size]
        found = np.unique(labels[part])
        if len(found) == 1:
            yield PrefixModel(SingleClassPredictor(found), 0.0, refitted=True)
            continue
        rows, begun = _safe_indexing(X, part), perf_counter()
        fitted = clone(model).fit(rows, labels[part])
        seconds = perf_counter() - begun
        yield PrefixModel(fitted, seconds + _seconds_to_answer(fitted, asked), refitted=True)


def _seconds_to_answer(model: Any, asked: Any) -> float:
    begun = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same row is asked once more, with all others
        model.predict_proba(asked)
    return perf_counter() - begun
