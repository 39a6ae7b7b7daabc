"""The two classifiers of `sklearn.discriminant_analysis`, fitted on moments of `tallybayes.GaussianDiscriminant`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sklearn.discriminant_analysis as theirs
from scipy import linalg
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.utils.validation import check_is_fitted, validate_data

import tallybayes as tb
from tallybayes.sklearn.drop_in import Batch, SklearnDropIn, counts_of, statistics_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from tallybayes.sklearn.drop_in import ClassModel, Matrix, Rows


class CovarianceCounting(SklearnDropIn):
    """Base class of Gaussian classifiers: means and covariances by class, with optional shrinkage."""

    solver: str
    shrinkage: Any
    covariance_estimator: Any
    priors: Any

    def fit(self, X: Rows, y: npt.ArrayLike) -> Self:
        """Compute the means and covariances of the classes; previously counted rows are discarded.

        Parameters
        ----------
        X : array-like of shape (n, columns)
        y : array-like of shape (n,)
            The class labels.

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _counted(self, rows: Matrix) -> Matrix:
        """Return the rows with booleans as numbers."""
        is_bool = isinstance(rows, np.ndarray) and rows.dtype == bool
        return np.asarray(rows, dtype=float) if is_bool else rows  # booleans would be a categorical column

    def _needs_rows(self) -> bool:
        """Return whether the covariance estimate needs the rows: fourth powers (Ledoit-Wolf) or an estimator object."""
        shrinkage = getattr(self, "shrinkage", None)  # not in older versions of scikit-learn
        return isinstance(shrinkage, str) or getattr(self, "covariance_estimator", None) is not None

    def _check_countable(self, what: str) -> None:
        """Raise StatisticsError if the covariance estimate needs the rows."""
        if self._needs_rows():
            raise tb.StatisticsError(
                f"{what} needs covariances computed from sufficient statistics; found shrinkage={self.shrinkage!r} and "
                f"covariance_estimator={self.covariance_estimator!r}.\n    Use a number as shrinkage, or None."
            )

    def _check_solver(self, message: str) -> None:
        """Raise if solver="svd" is combined with shrinkage or a covariance estimator."""
        if getattr(self, "solver", "svd") == "svd":
            if getattr(self, "shrinkage", None) is not None:
                raise NotImplementedError("shrinkage not supported with 'svd' solver.")
            if getattr(self, "covariance_estimator", None) is not None:
                raise ValueError(message)

    def _covariance(self, scatter: np.ndarray, weight: float, rows: np.ndarray | None) -> np.ndarray:
        """Return the covariance of a group of rows, with shrinkage; `rows` are required if `_needs_rows`."""
        covariance = scatter / weight
        estimator = getattr(self, "covariance_estimator", None)
        shrinkage = getattr(self, "shrinkage", None)
        if estimator is not None:
            if shrinkage is not None and shrinkage != 0:
                raise ValueError(
                    "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
                )
            estimator.fit(rows)
            if not hasattr(estimator, "covariance_"):
                raise ValueError(f"{type(estimator).__name__} does not have a covariance_ attribute")
            return np.atleast_2d(estimator.covariance_)
        if shrinkage is None:
            return covariance
        identity = np.eye(len(covariance))
        if not isinstance(shrinkage, str):
            return (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / len(covariance) * identity
        assert rows is not None
        scale = np.sqrt(np.diagonal(covariance))
        scale = np.where(scale > 0, scale, 1.0)
        standard = covariance / np.outer(scale, scale)
        amount = ledoit_wolf_shrinkage((rows - rows.mean(axis=0)) / scale)
        level = amount * np.trace(standard) / len(covariance)
        return ((1 - amount) * standard + level * identity) * np.outer(scale, scale)

    def _rows(self, batch: Batch | None) -> np.ndarray | None:
        """Return the training rows if the covariance estimate needs them."""
        return np.asarray(batch.X) if batch is not None and self._needs_rows() else None

    def _by_class(self, model: ClassModel, batch: Batch | None) -> list[np.ndarray]:
        """Return the covariance of each class."""
        rows = self._rows(batch)
        parts = zip(model.classes_, statistics_of(model).scatter, counts_of(model), strict=True)
        return [
            self._covariance(scatter, weight, None if rows is None or batch is None else rows[batch.y == label])
            for label, scatter, weight in parts
        ]


class LinearDiscriminantAnalysis(CovarianceCounting, theirs.LinearDiscriminantAnalysis):
    """Drop-in replacement for scikit-learn's class of this name: the same constructor, attributes and predictions.

    Directions (``scalings_`` and the columns of `transform`) agree up to their arbitrary sign.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default "svd"
        All three solvers work on cross products of the columns; the rows are not kept.
    shrinkage : "auto", float or None
        The shrinkage intensity of the covariance; "auto" is the estimate of Ledoit and Wolf.
    priors : array-like of shape (n_classes,), optional
        The prior class probabilities; the class frequencies by default.
    n_components : int, optional
        The number of columns of `transform`.
    store_covariance : bool, default False
        Whether ``covariance_`` is computed under ``solver="svd"``.
    tol : float, default 1e-4
        The smallest singular value that counts for the rank under ``solver="svd"``.
    covariance_estimator : estimator, optional
        An estimator with a ``fit`` method and a ``covariance_`` attribute.

    Attributes
    ----------
    model_ : GaussianDiscriminant
        The fitted model, with one covariance for all classes.

    Examples
    --------
    >>> from tallybayes.sklearn import LinearDiscriminantAnalysis
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = LinearDiscriminantAnalysis(n_components=2).fit(X, y)
    >>> lda.transform(X).shape, round(lda.score(X, y), 2)
    ((150, 2), 0.98)
    """

    _reads = {"ensure_min_samples": 2, "dtype": [np.float64, np.float32]}  # noqa: RUF012

    def _make_model(self) -> tb.GaussianDiscriminant:
        """Return the unfitted model that counts the rows."""
        return tb.GaussianDiscriminant("tied", estimate="mle", class_prior="frequency")

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of the estimator for a fitted model."""
        count = counts_of(model)
        moments = statistics_of(model)
        n_classes = len(count)
        n_rows = count.sum()
        if n_rows == n_classes:
            raise ValueError("The number of samples must be more than the number of classes.")
        priors = self._priors(count)
        n_directions_max = min(n_classes - 1, moments.n_columns)
        if self.n_components is not None and self.n_components > n_directions_max:
            raise ValueError("n_components cannot be larger than min(n_features, n_classes - 1).")
        n_directions = n_directions_max if self.n_components is None else self.n_components
        self._check_solver("covariance estimator is not supported with svd solver. Try another solver")
        attributes: dict[str, Any] = {"means_": np.array(moments.mean), "priors_": priors}
        if self.solver != "svd" or self.store_covariance:
            covariances = self._by_class(model, batch)
            attributes["covariance_"] = np.einsum("k,kij->ij", priors, np.stack(covariances))
        if self.solver == "svd":
            attributes |= self._of_singular_values(
                attributes["means_"], priors, moments.scatter.sum(axis=0), n_rows, n_directions
            )
        elif self.solver == "lsqr":
            attributes |= _linear(
                attributes["means_"], linalg.lstsq(attributes["covariance_"], attributes["means_"].T)[0].T, priors
            )
        else:
            pooled = moments.pool_groups()
            total = self._covariance(pooled.scatter, n_rows, self._rows(batch))
            attributes |= _of_eigenvalues(attributes["means_"], priors, attributes["covariance_"], total, n_directions)
        dtype = getattr(self, "means_", count).dtype if batch is None else batch.dtype
        if n_classes == 2:
            attributes["coef_"] = (attributes["coef_"][1] - attributes["coef_"][0])[None]
            attributes["intercept_"] = (attributes["intercept_"][1] - attributes["intercept_"][0])[None]
        narrow = {"means_", "priors_"} | ({"coef_", "intercept_"} if n_classes == 2 or self.solver == "svd" else set())
        narrow |= {"xbar_", "scalings_", "explained_variance_ratio_"} if self.solver == "svd" else set()
        attributes = {name: part.astype(dtype) if name in narrow else part for name, part in attributes.items()}
        return attributes | {"_max_components": n_directions, "_n_features_out": n_directions}

    def _priors(self, count: np.ndarray) -> np.ndarray:
        """Return the prior class probabilities, validated with scikit-learn's messages."""
        priors = count / count.sum() if self.priors is None else np.asarray(self.priors, dtype=float)
        if (priors < 0).any():
            raise ValueError("priors must be non-negative")
        if abs(priors.sum() - 1.0) > 1e-5:
            warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=4)
            return priors / priors.sum()
        return priors

    def _of_singular_values(
        self, means: np.ndarray, priors: np.ndarray, within: np.ndarray, n_rows: float, n_directions: int
    ) -> dict[str, Any]:
        """Return the attributes of ``solver="svd"``.

        The squared singular values of the centered rows are the eigenvalues of their cross products, so the rows are
        not
        needed.
        """
        std = np.sqrt(np.diagonal(within) / n_rows)
        std = np.where(std > 0, std, 1.0)
        squares, vectors = np.linalg.eigh(within / n_rows / np.outer(std, std))
        sizes = np.sqrt(np.maximum(squares[::-1], 0.0))
        vectors = vectors[:, ::-1]
        rank = int((sizes > self.tol).sum())
        white = vectors[:, :rank] / std[:, None] / sizes[:rank]
        center = priors @ means
        between = np.sqrt(n_rows * priors / max(len(priors) - 1, 1))[:, None] * (means - center) @ white
        _, sizes, rotation = linalg.svd(between, full_matrices=False)
        with np.errstate(invalid="ignore"):
            ratio = (sizes**2 / np.sum(sizes**2))[:n_directions] if n_directions else np.empty(0)
        scalings = white @ rotation[: int((sizes > self.tol * sizes[0]).sum()) if len(sizes) else 0].T
        projected = (means - center) @ scalings
        with np.errstate(divide="ignore"):
            bias = np.log(priors) - 0.5 * (projected**2).sum(axis=1)
        coef = projected @ scalings.T
        attributes = {"xbar_": center, "scalings_": scalings, "explained_variance_ratio_": ratio}
        return attributes | {"coef_": coef, "intercept_": bias - center @ coef.T}


class QuadraticDiscriminantAnalysis(CovarianceCounting, theirs.QuadraticDiscriminantAnalysis):
    """Drop-in replacement for scikit-learn's class of this name: the same constructor, attributes and predictions.

    Axes (``rotations_``) agree up to their arbitrary sign.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default "svd"
    shrinkage : "auto", float or None
        The shrinkage intensity of the covariances; "auto" is the estimate of Ledoit and Wolf.
    priors : array-like of shape (n_classes,), optional
        The prior class probabilities; the class frequencies by default.
    reg_param : float, default 0
        The weight of the identity matrix in every covariance, under ``solver="svd"``.
    store_covariance : bool, default False
        Whether ``covariance_`` is computed.
    tol : float, default 1e-4
        A covariance with a variance of at most `tol` along some axis is singular: `fit` raises LinAlgError.
    covariance_estimator : estimator, optional
        An estimator with a ``fit`` method and a ``covariance_`` attribute.

    Attributes
    ----------
    model_ : GaussianDiscriminant
        The fitted model, with one covariance for each class.

    Examples
    --------
    >>> from tallybayes.sklearn import QuadraticDiscriminantAnalysis
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> qda = QuadraticDiscriminantAnalysis().fit(X, y)
    >>> qda.predict(X[:3]), round(qda.score(X, y), 2)
    (array([0, 0, 0]), 0.98)
    """

    def _labels(self, model: ClassModel) -> np.ndarray:
        """Return the classes unchanged."""
        return model.classes_

    def _make_model(self) -> tb.GaussianDiscriminant:
        """Return the unfitted model that counts the rows."""
        return tb.GaussianDiscriminant("full", estimate="mle", class_prior="frequency")

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of the estimator for a fitted model."""
        count = counts_of(model)
        moments = statistics_of(model)
        classes = model.classes_
        if len(classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one. Got {len(classes)} class.")
        self._check_solver("covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead.")
        if (count == 1).any():
            label = classes[int(np.flatnonzero(count == 1)[0])]
            raise ValueError(f"y has only 1 sample in class {label}, covariance is ill defined.")
        priors = count / count.sum() if self.priors is None else np.array(self.priors)
        by_rows = getattr(self, "solver", "svd") == "svd"
        covariances = self._by_class(model, batch)
        scalings = []
        rotations = []
        for class_index, covariance in enumerate(covariances):
            variance, axes = np.linalg.eigh(covariance)
            variance = variance[::-1]
            axes = axes[:, ::-1]
            if by_rows:  # n rows have at most n singular values
                rank = min(int(count[class_index]), len(variance))
                variance = (1 - self.reg_param) * np.maximum(variance[:rank], 0.0) + self.reg_param
                axes = axes[:, :rank]
                covariances[class_index] = variance * axes @ axes.T
            if int((variance > self.tol).sum()) < len(covariance):
                self._raise_singular(classes[class_index], int(count[class_index]), len(covariance), by_rows)
            scalings.append(variance)
            rotations.append(axes)
        scorer = tb.GaussianDiscriminant.from_parameters(moments.mean, np.stack(covariances))
        dtype = getattr(self, "means_", count).dtype if batch is None else batch.dtype
        lists = {"scalings_": scalings, "rotations_": rotations} | (
            {"covariance_": covariances} if self.store_covariance else {}
        )
        attributes = {name: [part.astype(dtype) for part in arrays] for name, arrays in lists.items()}
        return attributes | {"means_": moments.mean.astype(dtype), "priors_": priors, "_scorer": scorer}

    def _raise_singular(self, label: object, n_rows: int, n_columns: int, by_rows: bool) -> None:
        """Raise LinAlgError: the covariance of a class is singular."""
        message = f"The covariance matrix of class {label} is not full rank. "
        if by_rows and n_rows <= n_columns:
            message += (
                "When using `solver='svd'` the number of samples in each class should be more than the number of "
                f"features, but class {label} has {n_rows} samples and {n_columns} features. Try using `solver='eigen'`"
                " and setting the parameter `shrinkage` for regularization."
            )
        else:
            message += f"Increase the value of `{'reg_param' if by_rows else 'shrinkage'}` to reduce the collinearity."
        raise linalg.LinAlgError(message)

    def _decision_function(self, X: Rows) -> np.ndarray:
        """Return the log posterior of each class up to a constant, as scikit-learn scales it."""
        check_is_fitted(self)
        rows: np.ndarray = validate_data(self, X, reset=False)
        n_classes, n_columns = self.means_.shape
        with np.errstate(divide="ignore"):
            shift = np.log(self.priors_) + np.log(n_classes) + n_columns / 2 * np.log(2 * np.pi)
        return self._scorer.predict_joint_log_proba(self._counted(rows)) + shift


def _linear(means: np.ndarray, coef: np.ndarray, priors: np.ndarray) -> dict[str, Any]:
    """Return coefficients and intercepts of the linear discriminant functions."""
    with np.errstate(divide="ignore"):
        return {"coef_": coef, "intercept_": np.log(priors) - 0.5 * (means * coef).sum(axis=1)}


def _of_eigenvalues(
    means: np.ndarray, priors: np.ndarray, within: np.ndarray, total: np.ndarray, n_directions: int
) -> dict[str, Any]:
    """Return the attributes of ``solver="eigen"``: eigenvectors of between-class by within-class scatter."""
    values, vectors = linalg.eigh(total - within, within)
    order = np.argsort(values)[::-1]
    vectors = vectors[:, order]
    ratio = (values / values.sum())[order][:n_directions]
    attributes = _linear(means, means @ vectors @ vectors.T, priors)
    return attributes | {"scalings_": vectors, "explained_variance_ratio_": ratio}
