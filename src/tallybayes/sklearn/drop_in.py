"""Base class of the drop-in replacements for scikit-learn."""

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
    """Base class: the constructor of an estimator of scikit-learn, with statistics counted by a model of this package.

    A subclass defines `_make_model` (the unfitted model that counts the rows) and `_attributes` (the public attributes
    of the estimator, computed from the counts).
    """

    model_: Any
    classes_: np.ndarray
    _reads: dict[str, Any] = {}  # noqa: RUF012 options of scikit-learn's `validate_data`

    def forget(
        self, X: npt.ArrayLike | SparseMatrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Remove training rows exactly, as if they had never been counted. Not in scikit-learn.

        Parameters
        ----------
        X : array-like of shape (n, columns)
            Rows that were counted by `fit` or `partial_fit`.
        y : array-like of shape (n,)
            Their class labels.
        sample_weight : array-like of shape (n,), optional
            The weights with which they were counted.

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
        """Return an estimator fitted on the training rows of both. Not in scikit-learn."""
        if type(other) is not type(self):
            return NotImplemented
        for estimator in (self, other):
            check_is_fitted(estimator)
            estimator._check_countable("+")
        merged: Any = clone(self)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        return merged._set_tally(merged_model(other.model_, self.model_))

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def _make_model(self) -> Any:
        """Return the unfitted model of this package that counts the rows."""
        raise NotImplementedError

    def _attributes(self, model: Any, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the public attributes of scikit-learn's estimator for a fitted model."""
        raise NotImplementedError

    def _check_countable(self, what: str) -> None:
        """Raise StatisticsError if the parameters require more than sufficient statistics."""

    def _set_tally(self, model: Any, **options: Any) -> Self:
        """Set the fitted attributes. All are computed first, so that an exception leaves the estimator unchanged."""
        attributes = {"model_": model, "classes_": self._labels(model), **self._attributes(model, **options)}
        vars(self).update(attributes)
        return self

    def _labels(self, model: Any) -> np.ndarray:
        """Return the classes with the dtype of scikit-learn: an array of strings rather than of objects."""
        return np.array(model.classes_.tolist()) if model.classes_.dtype == object else model.classes_

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """Return validated rows and class labels."""
        X, y = validate_data(self, X, y, reset=reset, **self._reads)
        if y.dtype.kind in "fO":  # integers, strings and booleans are always classes
            check_classification_targets(y)
        return X, y

    def _count(self, X: Any, y: np.ndarray, weight: Any = None, classes: npt.ArrayLike | None = None) -> Any:
        """Return a model fitted on these rows; `classes` exist even if no row has them."""
        rows = self._named(self._counted(X))
        return self._make_model().partial_fit(rows, y, sample_weight=weight, classes=classes)

    def _counted(self, X: Any) -> Any:
        """Return the rows as the model counts them, given the validated rows."""
        return X

    def _named(self, X: Any) -> Any:
        """Return the rows under the column names seen by `fit`, if any."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return X
        return dict(zip(names, X.T, strict=True)) if isinstance(X, np.ndarray) else tb.NamedMatrix(X, list(names))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = False  # the kernels read NumPy's arrays
        return tags


def weights_of(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Return the weights after scikit-learn's validation; None if all rows have weight 1."""
    return None if sample_weight is None else _check_sample_weight(sample_weight, X)


def merged_model(before: Any, model: Any) -> Any:
    """Return the merged model, with the parameters of the second."""
    return before.reestimate(**model.get_params(deep=False)) + model


def counts_of(model: Any) -> np.ndarray:
    """Return the total weight of the rows of each class."""
    return np.array(model.tally_.statistics[0].table, dtype=float)


def statistics_of(model: Any) -> Any:
    """Return the sufficient statistics of the columns, by class."""
    return model.tally_.statistics[1]


def by_class(model_classes: Sequence[Any], probabilities: Any) -> dict[Any, float]:
    """Return class probabilities as a mapping from class to probability."""
    return dict(zip(np.asarray(model_classes).tolist(), np.asarray(probabilities, dtype=float).tolist(), strict=True))
