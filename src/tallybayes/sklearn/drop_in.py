"""Base class of the drop-in replacements for scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

import tallybayes as tb

if TYPE_CHECKING:
    import numpy.typing as npt

    from tallybayes.typing import SparseMatrix

    Rows = npt.ArrayLike | SparseMatrix
    Matrix = np.ndarray | SparseMatrix
    ClassModel = tb.NaiveBayes | tb.GaussianDiscriminant | tb.NearestClassMean


class Batch(NamedTuple):
    """The validated rows, class labels and weights of one call of `fit` or `partial_fit`.

    ``is_first`` is False if rows were counted before.
    """

    X: Matrix
    y: np.ndarray
    weight: np.ndarray | None
    is_first: bool = True

    @property
    def dtype(self) -> np.dtype:
        """The type of the fitted attributes: that of the rows, if they are floats."""
        dtype = np.asarray(self.X).dtype if isinstance(self.X, np.ndarray) else np.dtype(float)
        return dtype if dtype.kind == "f" else np.dtype(float)


class SklearnDropIn:
    """Base class: the constructor of an estimator of scikit-learn, with statistics counted by a model of this package.

    A subclass defines `_make_model` (the unfitted model that counts the rows) and `_attributes` (the public attributes
    of the estimator, computed from the counts).
    """

    model_: Any
    classes_: np.ndarray
    _reads: dict[str, Any] = {}  # noqa: RUF012 options of scikit-learn's `validate_data`

    def forget(self, X: Rows, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
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
        rows, labels = self._validate(X, y, reset=False)
        removed = self._named(self._counted(rows))
        return self._set_tally(copy(self.model_).forget(removed, labels, weights_of(sample_weight, rows)))

    def __add__(self, other: object) -> Self:
        """Return an estimator fitted on the training rows of both. Not in scikit-learn."""
        if not isinstance(other, type(self)) or type(other) is not type(self):
            return NotImplemented
        for estimator in (self, other):
            check_is_fitted(estimator)
            estimator._check_countable("+")
        merged: Self = clone(self)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        return merged._set_tally(merged_model(other.model_, self.model_))

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def _make_model(self) -> ClassModel:
        """Return the unfitted model of this package that counts the rows."""
        raise NotImplementedError

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of scikit-learn's estimator for a fitted model.

        Parameters
        ----------
        model : model
        batch : Batch, optional
            The rows of the current call of `fit` or `partial_fit`, for what does not follow from the counts.
        """
        raise NotImplementedError

    def _check_countable(self, what: str) -> None:
        """Raise StatisticsError if the parameters require more than sufficient statistics."""

    def _fit(self, X: Rows, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Validate the rows, count them and set the fitted attributes."""
        self._validate_params()  # type: ignore[attr-defined]
        rows, labels = self._validate(X, y, reset=True)
        weight = weights_of(sample_weight, rows)
        # As in scikit-learn, a class exists even if all of its rows have weight 0.
        model = self._count(rows, labels, weight, None if weight is None else np.unique(labels))
        return self._set_tally(model, Batch(rows, labels, weight))

    def _set_tally(self, model: ClassModel, batch: Batch | None = None) -> Self:
        """Set the fitted attributes. All are computed first, so that an exception leaves the estimator unchanged."""
        attributes = {"model_": model, "classes_": self._labels(model), **self._attributes(model, batch)}
        vars(self).update(attributes)
        return self

    def _labels(self, model: ClassModel) -> np.ndarray:
        """Return the classes with the dtype of scikit-learn: an array of strings rather than of objects."""
        return np.array(model.classes_.tolist()) if model.classes_.dtype == object else model.classes_

    def _validate(self, X: Rows, y: npt.ArrayLike, *, reset: bool) -> tuple[Matrix, np.ndarray]:
        """Return validated rows and class labels."""
        rows, labels = validate_data(self, X, y, reset=reset, **self._reads)
        if labels.dtype.kind in "fO":  # integers, strings and booleans are always classes
            check_classification_targets(labels)
        return rows, labels

    def _count(
        self,
        rows: Matrix,
        labels: np.ndarray,
        weight: np.ndarray | None = None,
        classes: np.ndarray | None = None,
    ) -> ClassModel:
        """Return a model fitted on these rows; `classes` exist even if no row has them."""
        counted = self._named(self._counted(rows))
        return self._make_model().partial_fit(counted, labels, sample_weight=weight, classes=classes)

    def _counted(self, rows: Matrix) -> Matrix:
        """Return the rows as the model counts them, given the validated rows."""
        return rows

    def _named(self, rows: Matrix) -> Any:
        """Return the rows under the column names seen by `fit`, if any."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return rows
        return dict(zip(names, rows.T, strict=True)) if isinstance(rows, np.ndarray) else tb.NamedMatrix(rows, [*names])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = False  # the kernels read NumPy's arrays
        return tags


def weights_of(sample_weight: npt.ArrayLike | None, rows: Matrix) -> np.ndarray | None:
    """Return the weights after scikit-learn's validation; None if all rows have weight 1."""
    return None if sample_weight is None else np.asarray(_check_sample_weight(sample_weight, rows))


def merged_model(before: ClassModel, model: ClassModel) -> ClassModel:
    """Return the merged model, with the parameters of the second."""
    return before.reestimate(**model.get_params(deep=False)) + model


def counts_of(model: ClassModel) -> np.ndarray:
    """Return the total weight of the rows of each class."""
    counts: Any = model.tally_.statistics[0]
    return np.array(counts.table, dtype=float)


def statistics_of(model: ClassModel) -> Any:
    """Return the sufficient statistics of the columns, by class."""
    return model.tally_.statistics[1]


def by_class(classes: Sequence[Any] | np.ndarray, probabilities: npt.ArrayLike) -> dict[Any, float]:
    """Return class probabilities as a mapping from class to probability."""
    return dict(zip(np.asarray(classes).tolist(), np.asarray(probabilities, dtype=float).tolist(), strict=True))
