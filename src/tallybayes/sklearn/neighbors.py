"""`NearestCentroid` of `sklearn.neighbors`, of moments that `tallybayes.NearestClassMean` counted."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sklearn.neighbors as theirs
from scipy.sparse import issparse

import tallybayes as tb
from tallybayes.sklearn.drop_in import SklearnDropIn, counts_of, statistics_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from tallybayes.typing import SparseMatrix


class NearestCentroid(SklearnDropIn, theirs.NearestCentroid):
    """`sklearn.neighbors.NearestCentroid`: the same constructor, attributes and predictions.

    Parameters
    ----------
    metric : {"euclidean", "manhattan"}, default "euclidean"
        The centroids are means, or medians.
    shrink_threshold : float, optional
    priors : {"uniform", "empirical"} or array-like of shape (n_classes,), default "uniform"

    Attributes
    ----------
    model_ : NearestClassMean
        What counted the rows: the nearest mean, neither shrunk nor scaled.

    Examples
    --------
    >>> from tallybayes.sklearn import NearestCentroid
    >>> clf = NearestCentroid().fit([[0, 0], [1, 1], [4, 5], [5, 4]], ["a", "a", "b", "b"])
    >>> clf.predict([[1, 2]]), clf.centroids_
    (array(['a'], dtype='<U1'), array([[0.5, 0.5],
           [4.5, 4.5]]))
    """

    _reads = {"accept_sparse": ["csr", "csc"]}  # noqa: RUF012

    def fit(self, X: npt.ArrayLike | SparseMatrix, y: npt.ArrayLike) -> Self:
        """Count means and spreads, forgetting any counted before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, columns)
        y : array-like of shape (n,)

        Returns
        -------
        self
        """
        self._validate_params()
        read, labels = self._read(X, y, reset=True)
        rows = self._counted(read)
        model = self._count(rows, labels)
        medians = None
        if self.metric == "manhattan":
            medians = np.stack([np.median(rows[labels == label], axis=0) for label in model.classes_])
        return self._set_tally(model, medians=medians)

    def _labels(self, model: Any) -> np.ndarray:
        return model.classes_

    def _make_model(self) -> Any:
        return tb.NearestClassMean("euclidean")

    def _counted(self, X: Any) -> Any:
        return X.toarray() if issparse(X) else X

    def _check_countable(self, what: str) -> None:
        if self.metric == "manhattan":
            raise tb.StatisticsError(
                f"{what} needs centroids that follow from counts; found metric='manhattan', whose are medians.\n"
                "    Use metric='euclidean'."
            )

    def _attributes(self, model: Any, *, medians: Any = None) -> dict[str, Any]:
        count, moments, n_classes = counts_of(model), statistics_of(model), len(model.classes_)
        if n_classes < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {n_classes} class")
        n_rows, pooled, means = count.sum(), moments.pool_groups(), np.array(moments.mean)
        prior, centroids = self._prior(count), means if medians is None else medians
        with np.errstate(divide="ignore", invalid="ignore"):
            about = moments.scatter + count[:, None] * (means - centroids) ** 2
            deviation = np.sqrt(about.sum(axis=0) / (n_rows - n_classes))
        if (deviation == 0).any():
            warnings.warn(
                "self.within_class_std_dev_ has at least 1 zero standard deviation."
                "Inputs within the same classes for at least 1 feature are identical.",
                UserWarning,
                stacklevel=4,
            )
        if (pooled.scatter == 0).all():
            raise ValueError("All features have zero variance. Division by zero.")
        unit = np.sqrt(1.0 / count - 1.0 / n_rows)[:, None] * (deviation + np.median(deviation))
        with np.errstate(divide="ignore", invalid="ignore"):
            far = (centroids - pooled.mean) / unit
        if self.shrink_threshold:
            far = np.sign(far) * np.maximum(np.abs(far) - self.shrink_threshold, 0.0)
            centroids = pooled.mean + unit * far
        found = {"class_prior_": prior, "centroids_": centroids, "deviations_": far}
        return found | {"within_class_std_dev_": deviation}

    def _prior(self, count: np.ndarray) -> np.ndarray:
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
