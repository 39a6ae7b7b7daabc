"""`GaussianMixture` of `sklearn.mixture`: scikit-learn's initialization, this package's EM iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn.mixture as theirs

import tallybayes as tb

if TYPE_CHECKING:
    import numpy.typing as npt

    from tallybayes.typing import SparseMatrix

_FAMILIES = {
    "full": tb.MultivariateGaussian,
    "tied": tb.TiedMultivariateGaussian,
    "diag": tb.Gaussian,
    "spherical": tb.SphericalGaussian,
}


class GaussianMixture(theirs.GaussianMixture):
    """Drop-in replacement for `sklearn.mixture.GaussianMixture`: the same constructor, attributes and predictions.

    Initial values are those of scikit-learn, so that the same ``random_state`` gives the same local maximum.

    Parameters
    ----------
    n_components : int, default 1
    covariance_type : {"full", "tied", "diag", "spherical"}, default "full"
    tol : float, default 1e-3
        EM stops when an iteration increases the mean log-likelihood by less than this.
    reg_covar : float, default 1e-6
        Added to every variance in each M-step.
    max_iter : int, default 100
    n_init : int, default 1
        The number of initializations; the best result is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default "kmeans"
        The initialization method.
    weights_init, means_init, precisions_init : array-like, optional
        Initial values.
    random_state : int, RandomState or None
    warm_start : bool, default False
        Whether `fit` starts from the previous solution.
    verbose, verbose_interval : int

    Attributes
    ----------
    model_ : Mixture
        The model of the expected counts of the last iteration; they do not include `reg_covar`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.sklearn import GaussianMixture
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> found = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> found.means_[found.predict([[0, 0], [12, 3]])].round(6)
    array([[ 1.,  2.],
           [10.,  2.]])
    """

    model_: Any
    weights_: Any
    means_: Any
    covariances_: Any
    precisions_cholesky_: Any
    _moments: Any = None  # the expected moments of the last iteration

    def fit_predict(self, X: npt.ArrayLike | SparseMatrix, y: npt.ArrayLike | None = None) -> np.ndarray:
        """Fit the mixture by EM and return the most probable component of every row.

        Parameters
        ----------
        X : array-like of shape (n, columns)
        y : ignored

        Returns
        -------
        ndarray of int of shape (n,)
        """
        labels = super().fit_predict(X, y)
        self.model_ = self._as_model()
        return labels

    def _initialize(self, X: np.ndarray, resp: np.ndarray | None, **options: object) -> None:
        """Set the initial parameters from initial responsibilities, or from the given ones."""
        weights: Any = None
        means: Any = None
        covariances: Any = None
        self._moments = None
        if resp is not None:
            weights, means, covariances = self._estimated(X, resp)
            weights = weights / len(X)
        self.weights_ = weights if self.weights_init is None else np.asarray(self.weights_init)
        self.means_ = means if self.means_init is None else self.means_init
        if self.precisions_init is None:
            self.covariances_ = covariances
            self.precisions_cholesky_ = self._precisions_of(covariances)
        else:
            self.covariances_, self.precisions_cholesky_ = self._of_precisions(np.asarray(self.precisions_init))

    def _m_step(self, X: np.ndarray, log_resp: np.ndarray, **options: object) -> None:
        """Set the parameters from responsibilities."""
        weights, self.means_, self.covariances_ = self._estimated(X, np.exp(log_resp))
        self.weights_ = weights / weights.sum()
        self.precisions_cholesky_ = self._precisions_of(self.covariances_)

    def _estimated(self, X: np.ndarray, responsibilities: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return weights, means and covariances of the components for responsibilities (n, components)."""
        kind = self.covariance_type
        n_columns = X.shape[1]
        moments: Any = _FAMILIES[kind]().collect(
            X, None, responsibilities.shape[1], np.asarray(responsibilities, dtype=float)
        )
        self._moments = moments
        weight = (
            moments.weight[:, 0] + 10 * np.finfo(responsibilities.dtype).eps
        )  # as scikit-learn, to avoid division by 0
        if kind == "full":
            covariances = moments.scatter / weight[:, None, None] + self.reg_covar * np.eye(n_columns)
        elif kind == "tied":
            scatter = moments.scatter.sum(axis=0)
            rest = 1 - responsibilities.sum(axis=1)
            if (
                np.abs(rest).max(initial=0.0) > 1e-6
            ):  # initial values from few rows: scikit-learn's tied covariance uses all rows
                scatter = scatter + (X * rest[:, None]).T @ X
            covariances = scatter / weight.sum() + self.reg_covar * np.eye(n_columns)
        else:
            covariances = moments.scatter / weight[:, None] + self.reg_covar
            if self.reg_covar == 0:  # scikit-learn's variance of a single row is a rounding error
                covariances = np.where(covariances == 0, np.finfo(float).eps * moments.mean**2, covariances)
            covariances = covariances.mean(axis=1) if kind == "spherical" else covariances
        return tuple(part.astype(X.dtype) for part in (weight, moments.mean, covariances))

    def _precisions_of(self, covariances: np.ndarray) -> np.ndarray:
        """Return upper triangular matrices U such that U Uᵀ is the inverse covariance."""
        message = (
            "Fitting the mixture model failed because some components have ill-defined empirical covariance (for "
            "instance caused by singleton or collapsed samples). Try to decrease the number of components, increase "
            "reg_covar, or scale the input data."
        )
        if covariances.dtype == np.float32:
            message += " The numerical accuracy can also be improved by passing float64 data instead of float32."
        if self.covariance_type in ("diag", "spherical"):
            if (covariances <= 0).any():
                raise ValueError(message)
            return 1 / np.sqrt(covariances)
        matrices = covariances if covariances.ndim == 3 else covariances[None]
        try:
            lower = np.linalg.cholesky(matrices)
        except np.linalg.LinAlgError:
            raise ValueError(message) from None
        upper = np.triu(np.swapaxes(np.linalg.inv(lower), -1, -2))
        return upper if covariances.ndim == 3 else upper[0]

    def _of_precisions(self, precisions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return covariances and upper triangular factors of the given precision matrices."""
        if self.covariance_type in ("diag", "spherical"):
            return 1 / precisions, np.sqrt(precisions)
        upper = np.linalg.cholesky(precisions[..., ::-1, ::-1])[..., ::-1, ::-1]
        covariances = np.linalg.inv(precisions)
        return (covariances + np.swapaxes(covariances, -1, -2)) / 2, np.ascontiguousarray(upper)

    def _estimate_log_prob(self, X: np.ndarray, **options: object) -> np.ndarray:
        """Return log p(row | component)."""
        if self.covariance_type in ("full", "tied"):
            family: Any = tb.MultivariateGaussian()
            log_prob = family.log_prob(family.as_parameters((self.means_, self._matrices()), None), X)
        else:
            covariance_type = "diagonal" if self.covariance_type == "diag" else "spherical"
            model = tb.GaussianDiscriminant.from_parameters(self.means_, self.covariances_, covariance=covariance_type)
            log_prob = model.predict_joint_log_proba(X) + np.log(len(self.means_))
        return log_prob.astype(np.result_type(X.dtype, self.means_.dtype), copy=False)

    def _get_parameters(self) -> Any:
        """Return the parameters and moments of the current initialization."""
        return (*super()._get_parameters(), self._moments)

    def _set_parameters(self, params: tuple[Any, ...], **options: object) -> None:
        """Restore the parameters and moments of the best initialization."""
        super()._set_parameters(params[:4], **options)
        self._moments = params[4] if len(params) > 4 else None

    def _as_model(self) -> Any:
        """Return the mixture of the expected counts of the last iteration; without one, of the current parameters."""
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_)).tolist()
        columns = tuple(names)
        family = _FAMILIES[self.covariance_type]()
        if self._moments is None:
            matrices = self._matrices()
            parameters = [
                {"mean": mean, "covariance": matrix} for mean, matrix in zip(self.means_, matrices, strict=True)
            ]
            return tb.Mixture.from_parameters({columns: parameters}, self.weights_ / self.weights_.sum())
        component = "component" if "component" not in names else "component_"
        factors = [tb.Factor(component, (), tb.Categorical()), tb.Factor(columns, component, family)]
        table = {component: np.arange(len(self.means_)), **dict(zip(names, self.means_.T, strict=True))}
        like = tb.count(table, factors)
        parts = [tb.Counts(self._moments.weight[:, 0]), self._moments]
        tally = tb.Tally(factors, parts, like.domains, like.schema, soft=True)
        return tb.Mixture(len(self.means_), {columns: family}, estimate="mle", class_prior="frequency").fit_tally(tally)

    def _matrices(self) -> np.ndarray:
        """Return the covariance matrix of each component."""
        n_components, n_columns = self.means_.shape
        covariances = self.covariances_
        if self.covariance_type == "spherical":
            covariances = np.repeat(covariances[:, None], n_columns, axis=1)
        if self.covariance_type in ("diag", "spherical"):
            return covariances[:, :, None] * np.eye(n_columns)
        return np.broadcast_to(covariances, (n_components, n_columns, n_columns))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False  # the kernels read NumPy's arrays
        return tags
