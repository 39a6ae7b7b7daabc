"""`NearestCentroid` of `sklearn.neighbors`, fitted on moments of `tallybayes.NearestClassMean`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sklearn.neighbors as theirs

import tallybayes as tb
from tallybayes.sklearn.drop_in import Batch, SklearnDropIn, counts_of, statistics_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from tallybayes.sklearn.drop_in import ClassModel, Matrix, Rows


class NearestCentroid(SklearnDropIn, theirs.NearestCentroid):
    """Drop-in replacement for `sklearn.neighbors.NearestCentroid`: the same constructor, attributes and predictions.

    Parameters
    ----------
    metric : {"euclidean", "manhattan"}, default "euclidean"
        The distance. The centroids are means under "euclidean", medians under "manhattan".
    shrink_threshold : float, optional
        The threshold by which centroids are shrunk toward the mean of all rows.
    priors : {"uniform", "empirical"} or array-like of shape (n_classes,), default "uniform"
        The prior class probabilities.

    Attributes
    ----------
    model_ : NearestClassMean
        The fitted model, with means that are neither shrunk nor scaled.

    Examples
    --------
    >>> from tallybayes.sklearn import NearestCentroid
    >>> clf = NearestCentroid().fit([[0, 0], [1, 1], [4, 5], [5, 4]], ["a", "a", "b", "b"])
    >>> clf.predict([[1, 2]]), clf.centroids_
    (array(['a'], dtype='<U1'), array([[0.5, 0.5],
           [4.5, 4.5]]))
    """

    _reads = {"accept_sparse": ["csr", "csc"]}  # noqa: RUF012

    def fit(self, X: Rows, y: npt.ArrayLike) -> Self:
        """Compute the class means and standard deviations; previously counted rows are discarded.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, columns)
        y : array-like of shape (n,)
            The class labels.

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _labels(self, model: ClassModel) -> np.ndarray:
        """Return the classes unchanged."""
        return model.classes_

    def _make_model(self) -> tb.NearestClassMean:
        """Return the unfitted model that counts the rows."""
        return tb.NearestClassMean("euclidean")

    def _counted(self, rows: Matrix) -> np.ndarray:
        """Return the rows as a dense array."""
        return rows if isinstance(rows, np.ndarray) else rows.tocsr().toarray()

    def _check_countable(self, what: str) -> None:
        """Raise StatisticsError if the centroids are medians."""
        if self.metric == "manhattan":
            raise tb.StatisticsError(
                f"{what} needs centroids computed from counts; found metric='manhattan', whose centroids are medians.\n"
                "    Use metric='euclidean'."
            )

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of the estimator for a fitted model."""
        count = counts_of(model)
        moments = statistics_of(model)
        n_classes = len(model.classes_)
        if n_classes < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {n_classes} class")
        n_rows = count.sum()
        pooled = moments.pool_groups()
        means = np.array(moments.mean)
        prior = self._prior(count)
        centroids = means
        if self.metric == "manhattan" and batch is not None:
            rows = self._counted(batch.X)
            centroids = np.stack([np.median(rows[batch.y == label], axis=0) for label in model.classes_])
        with np.errstate(divide="ignore", invalid="ignore"):
            scatter = moments.scatter + count[:, None] * (means - centroids) ** 2
            std = np.sqrt(scatter.sum(axis=0) / (n_rows - n_classes))
        if (std == 0).any():
            warnings.warn(
                "self.within_class_std_dev_ has at least 1 zero standard deviation."
                "Inputs within the same classes for at least 1 feature are identical.",
                UserWarning,
                stacklevel=4,
            )
        if (pooled.scatter == 0).all():
            raise ValueError("All features have zero variance. Division by zero.")
        unit = np.sqrt(1.0 / count - 1.0 / n_rows)[:, None] * (std + np.median(std))
        with np.errstate(divide="ignore", invalid="ignore"):
            deviations = (centroids - pooled.mean) / unit
        if self.shrink_threshold:
            deviations = np.sign(deviations) * np.maximum(np.abs(deviations) - self.shrink_threshold, 0.0)
            centroids = pooled.mean + unit * deviations
        attributes = {"class_prior_": prior, "centroids_": centroids, "deviations_": deviations}
        return attributes | {"within_class_std_dev_": std}

    def _prior(self, count: np.ndarray) -> np.ndarray:
        """Return the prior class probabilities, validated with scikit-learn's messages."""
        if isinstance(self.priors, str):
            return count / count.sum() if self.priors == "empirical" else np.full(len(count), 1 / len(count))
        prior = np.asarray(self.priors)
        if (prior < 0).any():
            raise ValueError("priors must be non-negative")
        if not np.isclose(prior.sum(), 1.0):
            warnings.warn(
                "The priors do not sum to 1. Normalizing such that it sums to one.", UserWarning, stacklevel=5
            )
            return prior / prior.sum()
        return prior
