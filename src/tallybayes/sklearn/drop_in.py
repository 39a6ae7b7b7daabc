"""Counting: what the drop-ins have in common. Rows are read as scikit-learn reads them, and counted by our models."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

import tallybayes as tb

if TYPE_CHECKING:
    import numpy.typing as npt

    from tallybayes.typing import SparseMatrix


class SklearnDropIn:
    """Stands before an estimator of scikit-learn: its constructor stays, its statistics are a model's of this package.

    A subclass says which model counts (`_make_model`), and what follows from the counts (`_attributes`).
    """

    model_: Any
    classes_: np.ndarray
    _reads: dict[str, Any] = {}  # noqa: RUF012 how scikit-learn's validation reads the rows

    def forget(
        self, X: npt.ArrayLike | SparseMatrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Take rows out again, exactly: as if they had never been seen. Not in scikit-learn.

        Parameters
        ----------
        X : array-like of shape (n, columns)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            As they were learned.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._check_countable("forget")
        X, y = self._read(X, y, reset=False)
        rows = self._counted(X)
        return self._set_tally(copy(self.model_).forget(self._named(rows), y, weights_of(sample_weight, X)))

    def __add__(self, other: Any) -> Self:
        """What both have learned, as if it had been learned by one. Not in scikit-learn."""
        if type(other) is not type(self):
            return NotImplemented
        for one in (self, other):
            check_is_fitted(one)
            one._check_countable("+")
        total: Any = clone(self)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(total, name, getattr(self, name))
        return total._set_tally(added(other.model_, self.model_))

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def _make_model(self) -> Any:
        """The model that counts, not yet fitted."""
        raise NotImplementedError

    def _attributes(self, model: Any, *args: Any, **options: Any) -> dict[str, Any]:
        """The public attributes of scikit-learn's estimator, from what a model counted; errors come from here."""
        raise NotImplementedError

    def _check_countable(self, what: str) -> None:
        """Refuse what needs more than counts."""

    def _set_tally(self, model: Any, **options: Any) -> Self:
        """Take over a model: compute, then assign."""
        found = {"model_": model, "classes_": self._labels(model), **self._attributes(model, **options)}
        vars(self).update(found)
        return self

    def _labels(self, model: Any) -> np.ndarray:
        """The classes in the type that scikit-learn gives them: strings, unless said otherwise, not as objects."""
        return np.array(model.classes_.tolist()) if model.classes_.dtype == object else model.classes_

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """Rows and labels, looked at once."""
        X, y = validate_data(self, X, y, reset=reset, **self._reads)
        if y.dtype.kind in "fO":  # whole numbers, strings, and yes and no are classes
            check_classification_targets(y)
        return X, y

    def _count(self, X: Any, y: np.ndarray, weight: Any = None, classes: npt.ArrayLike | None = None) -> Any:
        """A model of these rows; `classes` exist whether seen or not."""
        rows = self._named(self._counted(X))
        return self._make_model().partial_fit(rows, y, sample_weight=weight, classes=classes)

    def _counted(self, X: Any) -> Any:
        """What is counted of rows that were read."""
        return X

    def _named(self, X: Any) -> Any:
        """Rows as the model sees them, under the names that their columns had."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return X
        return dict(zip(names, X.T, strict=True)) if isinstance(X, np.ndarray) else tb.NamedMatrix(X, list(names))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = False  # the kernels read NumPy's arrays
        return tags


def weights_of(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Weights, checked as scikit-learn does; None where all rows count alike."""
    return None if sample_weight is None else _check_sample_weight(sample_weight, X)


def added(before: Any, model: Any) -> Any:
    """A model of the rows of both, under the settings of the second."""
    return before.reestimate(**model.get_params(deep=False)) + model


def counts_of(model: Any) -> np.ndarray:
    """What the rows of every class weigh."""
    return np.array(model.tally_.statistics[0].table, dtype=float)


def statistics_of(model: Any) -> Any:
    """The statistics of the columns, by class."""
    return model.tally_.statistics[1]


def by_class(model_classes: Sequence[Any], probabilities: Any) -> dict[Any, float]:
    """Probabilities of classes as our models take them."""
    return dict(zip(np.asarray(model_classes).tolist(), np.asarray(probabilities, dtype=float).tolist(), strict=True))
