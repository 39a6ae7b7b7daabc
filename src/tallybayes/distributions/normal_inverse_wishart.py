"""Normal-inverse-Wishart: the belief about a mean vector and a covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from tallybayes.distributions.log_gamma import log_growth, stirling_rest
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    broadcast_prior,
)
from tallybayes.errors import PriorError
from tallybayes.statistics.moments import Moments
from tallybayes.typing import RandomState

_FLAT = 1e-10  # a scale whose least eigenvalue, beside its variances, is below this is kept as its root too


class MultivariateNormal(NamedTuple):
    """Parameters of a multivariate Gaussian: (*given, columns) and (*given, columns, columns)."""

    mean: Any
    covariance: Any

    @property
    def std(self) -> Any:
        """σ of every column, the root of its variance."""
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))


@dataclass(frozen=True, eq=False, repr=False)
class NormalInverseWishart(ParameterDistribution):
    """Σ ~ InverseWishart(ν, Ψ), μ | Σ ~ N(m, Σ/κ): the conjugate belief of `MultivariateGaussian`.

    Parameters
    ----------
    location : array broadcasting to (*given, columns)
        m, the expected mean.
    strength : float or array broadcasting to (*given,)
        κ, worth how many rows that expectation is.
    freedom : float or array broadcasting to (*given,)
        ν > columns − 1, worth how many rows the covariance is.
    scale : array broadcasting to (*given, columns, columns)
        Ψ, symmetric and positive definite: the scatter those rows would have shown.
    shared : tuple of {"groups"}, default ()
        Over what one covariance is shared. The tied family sets it; the means stay apart.
    root : array broadcasting to (*given, columns, columns), optional
        The lower triangular root of Ψ, where Ψ itself is too flat for float64 to tell that it is definite. `update`
        sets it where data lie very far from the expected mean.

    Examples
    --------
    >>> import tallybayes as tb
    >>> prior = tb.NormalInverseWishart([0, 0], 1, 4, [[1, 0], [0, 1]])
    >>> prior.update(tb.Moments.of([[1.0, 2.0], [3.0, 1.0]], full=True)).mode().mean.round(4)
    array([1.3333, 1.    ])
    """

    location: np.ndarray
    strength: np.ndarray
    degrees_of_freedom: np.ndarray
    scale: np.ndarray
    tied_over: tuple[str, ...] = field(default=(), kw_only=True)
    root: Any = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # arrays are made of whatever is given

        def __init__(
            self,
            location: npt.ArrayLike,
            strength: npt.ArrayLike,
            degrees_of_freedom: npt.ArrayLike,
            scale: npt.ArrayLike,
            *,
            tied_over: tuple[str, ...] = (),
            root: npt.ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        self._set(
            location=self.location, strength=self.strength, degrees_of_freedom=self.degrees_of_freedom, scale=self.scale
        )
        object.__setattr__(self, "tied_over", tuple(self.tied_over))
        self._require_positive("strength", "degrees_of_freedom")
        if self.scale.ndim < 2 or self.scale.shape[-1] != self.scale.shape[-2]:
            raise PriorError.wrong_shape("NormalInverseWishart", self.scale.shape, (self.n_columns, self.n_columns))
        if not np.isfinite(self.location).all() or not np.isfinite(self.scale).all():
            raise PriorError("NormalInverseWishart needs finite numbers.")
        if not (self.degrees_of_freedom > self.n_columns - 1).all():
            raise PriorError(
                f"NormalInverseWishart needs freedom > columns − 1 = {self.n_columns - 1}, found {self.degrees_of_freedom}."
            )
        if not np.allclose(self.scale, np.swapaxes(self.scale, -1, -2), rtol=1e-9, atol=0):
            raise PriorError("NormalInverseWishart needs a symmetric scale matrix.")
        if self.root is not None:
            self._set(root=self.root)
            if self.root.shape[-2:] != self.scale.shape[-2:] or not (_pivots(self.root) > 0).all():
                raise PriorError(
                    "NormalInverseWishart needs a root with the shape of the scale and a positive diagonal."
                )
        elif not (_least_eigenvalues(self.scale) > self.n_columns * np.finfo(float).eps).all():
            raise PriorError(f"NormalInverseWishart needs a positive definite scale matrix, found {self.scale}.")

    @classmethod
    def from_mean(cls, mean: npt.ArrayLike, covariance: npt.ArrayLike, strength: float) -> NormalInverseWishart:
        """The belief with this expected mean and covariance, worth `strength` rows, which must exceed columns + 1.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.NormalInverseWishart.from_mean([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]], 6).mean().covariance
        array([[2. , 0.5],
               [0.5, 1. ]])
        """
        covariance = np.asarray(covariance, dtype=float)
        n_columns = covariance.shape[-1]
        if not strength > n_columns + 1:
            raise PriorError(f"NormalInverseWishart.from_mean needs strength > {n_columns + 1}, found {strength}.")
        return cls(mean, strength, strength, covariance * (strength - n_columns - 1))

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.scale.shape[-1])

    def tied(self, shared: tuple[str, ...]) -> NormalInverseWishart:
        """The same belief with one covariance for all of `shared`."""
        return self if shared == self.tied_over else self.replace(tied_over=shared)

    def update(self, statistics: Moments) -> NormalInverseWishart:
        """Add weight to strength and freedom, move the mean, add scatter to the scale."""
        mean, strength, freedom, scale, weight, scatter, pulls = self._combine(statistics)
        grown = strength + weight
        moved = mean + (statistics.mean - mean) * (weight / grown)[..., None]
        extra = scatter + pulls[..., :, None] * pulls[..., None, :]  # symmetric to the last bit
        after = scale + self._pool(extra, 2)
        flat = self.root is not None or not (_least_eigenvalues(after) > _FLAT).all()
        root = self._grown_root(scale, self._pool(scatter, 2), pulls) if flat else None
        return NormalInverseWishart(
            moved, grown, freedom + self._pool(weight, 0), after, tied_over=self.tied_over, root=root
        )

    def scale_cholesky(self) -> np.ndarray:
        """The lower triangular root of the scale."""
        return np.linalg.cholesky(self.scale) if self.root is None else np.asarray(self.root)

    def _grown_root(self, scale: np.ndarray, scatter: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """The root of scale + scatter + Σ pull·pullᵀ, which are added up as rows: the sum would round the rest away."""
        if self.root is None:
            return cholesky_update(np.swapaxes(np.linalg.cholesky(scale + scatter), -1, -2), self._pulled(pulls))
        values, axes = np.linalg.eigh(scatter)
        rows = np.sqrt(np.maximum(values, 0.0))[..., :, None] * np.swapaxes(axes, -1, -2)
        upper = np.broadcast_to(np.swapaxes(self.root, -1, -2), scale.shape)
        return cholesky_update(np.concatenate([upper, rows], axis=-2), self._pulled(pulls))

    def _combine(self, statistics: Moments) -> tuple[np.ndarray, ...]:
        """Prior parameters, weights, scatter, and what the gap from the prior mean adds to it, as the root of that.

        Freedom and scale have length 1 where shared.
        """
        given, n_columns = statistics.given_shape, statistics.n_columns
        name = "NormalInverseWishart"
        mean = broadcast_prior(name, self.location, (*given, n_columns))
        strength = broadcast_prior(name, self.strength, given)
        one = tuple(1 for _ in given) if "groups" in self.tied_over else given
        freedom = broadcast_prior(name, self.degrees_of_freedom, one)
        scale = broadcast_prior(name, self.scale, (*one, n_columns, n_columns))
        weight = np.broadcast_to(statistics.weight, (*given, n_columns))[..., 0]
        gap = statistics.mean - mean
        pulls = gap * np.sqrt(strength * (weight / (strength + weight)))[..., None]
        return mean, strength, freedom, scale, weight, statistics.scatter, pulls

    def _pulled(self, pulls: np.ndarray) -> np.ndarray:
        """The pulls on every covariance, as rows: one each, or those of all groups on the one that is shared."""
        if "groups" not in self.tied_over:
            return pulls[..., None, :]
        return pulls.reshape(*(1 for _ in pulls.shape[:-1]), -1, pulls.shape[-1])

    def _pool(self, array: np.ndarray, n_trailing: int) -> np.ndarray:
        axes = tuple(range(array.ndim - n_trailing))
        return array.sum(axis=axes, keepdims=True) if "groups" in self.tied_over and axes else array

    @property
    def _given(self) -> tuple[int, ...]:
        shapes = self.location.shape[:-1], self.strength.shape, self.degrees_of_freedom.shape, self.scale.shape[:-2]
        return np.broadcast_shapes(*shapes)

    @property
    def n_means(self) -> int:
        """How many mean vectors share one covariance."""
        return int(np.prod(self._given, dtype=np.int64)) if "groups" in self.tied_over else 1

    def _normal(self, divisor: np.ndarray) -> MultivariateNormal:
        size = (*self._given, self.n_columns)
        covariance = self.scale / np.asarray(divisor)[..., None, None]
        return MultivariateNormal(np.broadcast_to(self.location, size), np.broadcast_to(covariance, (*size, size[-1])))

    def mean(self) -> MultivariateNormal:
        """E[μ] = m, E[Σ] = Ψ / (ν − d − 1), infinite for ν ≤ d + 1."""
        divisor = self.degrees_of_freedom - self.n_columns - 1
        mean = self._normal(np.where(divisor > 0, divisor, 1.0))
        infinite = np.broadcast_to((divisor <= 0)[..., None, None], mean.covariance.shape)
        return mean._replace(covariance=np.where(infinite, np.inf, mean.covariance))

    def mode(self) -> MultivariateNormal:
        """The joint mode: μ = m, Σ = Ψ / (ν + d + 1 + k), k the number of means that share the covariance."""
        return self._normal(self.degrees_of_freedom + self.n_columns + 1 + self.n_means)

    def _marginal(self) -> NormalInverseGamma:
        """The belief about every column's own mean and variance."""
        shape = (self.degrees_of_freedom - self.n_columns + 1) / 2
        variances = np.diagonal(self.scale, axis1=-2, axis2=-1)
        return NormalInverseGamma(self.location, self.strength[..., None], shape[..., None], variances / 2)

    def interval(self, mass: float = 0.95) -> Interval:
        """Equal-tailed credible intervals of every column's mean and variance (their marginals)."""
        return self._marginal().interval(mass)

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> MultivariateNormal:
        """Means and covariances drawn from this belief (Bartlett's decomposition); a shared one is drawn once."""
        rng = np.random.default_rng(random_state)
        leading, d, given = as_size(n), self.n_columns, self._given
        one = tuple(1 for _ in given) if "groups" in self.tied_over else given
        freedom = np.broadcast_to(self.degrees_of_freedom, one)
        # Σ⁻¹ ~ Wishart(ν, Ψ⁻¹) = (L⁻ᵀ A)(L⁻ᵀ A)ᵀ with Ψ = L Lᵀ and A lower triangular, so Σ = B Bᵀ, B = L A⁻ᵀ.
        lower = np.zeros((*leading, *one, d, d))
        below = np.tril_indices(d, -1)
        lower[(..., *below)] = rng.standard_normal((*leading, *one, len(below[0])))
        degrees = freedom[..., None] - np.arange(d)
        lower[..., np.arange(d), np.arange(d)] = np.sqrt(2 * rng.standard_gamma(degrees / 2, (*leading, *one, d)))
        root = np.broadcast_to(self.scale_cholesky(), (*one, d, d))
        root = np.swapaxes(np.linalg.solve(lower, np.swapaxes(root, -1, -2) + np.zeros_like(lower)), -1, -2)
        covariance = np.broadcast_to(root @ np.swapaxes(root, -1, -2), (*leading, *given, d, d))
        noise = np.broadcast_to(root, covariance.shape) @ rng.standard_normal((*leading, *given, d, 1))
        mean = self.location + noise[..., 0] / np.sqrt(self.strength)[..., None]
        return MultivariateNormal(mean, covariance)

    def log_prob(self, parameter: MultivariateNormal) -> Any:
        """log p(μ, Σ), joint over the groups that share Σ; −inf where Σ is not positive definite."""
        d, given = self.n_columns, self._given
        shapes = np.shape(parameter[0])[:-1], np.shape(parameter[1])[:-2]
        size = np.broadcast_shapes(given, *shapes)
        mean = np.broadcast_to(np.asarray(parameter[0], dtype=float), (*size, d))
        covariance = np.broadcast_to(np.asarray(parameter[1], dtype=float), (*size, d, d))
        shared = tuple(range(len(size) - len(given), len(size))) if "groups" in self.tied_over else ()
        first = covariance[tuple(slice(0, 1) if axis in shared else slice(None) for axis in range(len(size)))]
        if not np.array_equal(np.broadcast_to(first, covariance.shape), covariance):
            raise PriorError("the covariances differ along the shared groups; expected one.")
        inside = _least_eigenvalues(covariance) > d * np.finfo(float).eps
        covariance = np.where(inside[..., None, None], covariance, np.eye(d))
        root = np.linalg.cholesky(covariance)
        log_det = 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
        gap = np.linalg.solve(root, (mean - self.location)[..., None])[..., 0]
        normal = 0.5 * (d * np.log(self.strength / (2 * np.pi)) - log_det - self.strength * (gap**2).sum(-1))
        trace = np.trace(np.linalg.solve(covariance, np.broadcast_to(self.scale, covariance.shape)), axis1=-2, axis2=-1)
        log_scale = 2 * np.log(_pivots(self.scale_cholesky())).sum(-1)
        log_norm = self.degrees_of_freedom / 2 * (log_scale - d * np.log(2)) - _log_gamma_d(
            self.degrees_of_freedom / 2, d
        )
        wishart = log_norm - (self.degrees_of_freedom + d + 1) / 2 * log_det - trace / 2
        normal, wishart = (np.where(inside, part, -np.inf) for part in (normal, wishart))
        if not shared:
            return as_float(normal + wishart)
        return as_float(normal.sum(axis=shared) + wishart.max(axis=shared))

    def log_evidence(self, statistics: Moments) -> Any:
        """The log marginal likelihood, one number for every covariance: per group, or one where it is shared."""
        d = self.n_columns
        _, strength, freedom, scale, weight, scatter, pulls = self._combine(statistics)
        half = self._pool(weight, 0) / 2
        # As for one column: what grows like n log n cancels but for the log determinants of covariances.
        shapes = (freedom[..., None] - np.arange(d)) / 2
        growth, ends = log_growth(shapes, half[..., None]), shapes + half[..., None]
        root = self._grown_root(scale, self._pool(scatter, 2), pulls)
        before = 2 * np.log(_pivots(self.scale_cholesky())).sum(-1) - np.log(shapes).sum(-1)
        after = 2 * np.log(_pivots(root)).sum(-1) - np.log(ends).sum(-1)
        covariance = (
            -half * (d * (1 + np.log(np.pi)) + after)
            - freedom / 2 * (after - before)
            - (growth * (1 + np.arange(d)) / 2).sum(-1)
            + (stirling_rest(ends) - stirling_rest(shapes)).sum(-1)
        )
        means = -0.5 * d * log_growth(strength, weight)
        shared = "groups" in self.tied_over
        return as_float(covariance.sum() + means.sum() if shared else covariance + means)

    def scaled(self, factor: float) -> NormalInverseWishart:
        """The same location and scatter per row, worth `factor` times as many rows.

        What counts as rows is the freedom above columns − 1, as in the marginal of a single column.
        """
        spent = self.n_columns - 1
        freedom = spent + factor * (self.degrees_of_freedom - spent)
        root = None if self.root is None else self.root * np.sqrt(factor)
        return self.replace(
            strength=self.strength * factor, degrees_of_freedom=freedom, scale=self.scale * factor, root=root
        )

    def column(self, index: int) -> NormalInverseGamma:
        """The marginal belief about one column's mean and variance."""
        return self._marginal().column(index)


def cholesky_update(upper: np.ndarray, pulls: np.ndarray) -> np.ndarray:
    """The lower root of Σ row·rowᵀ over the rows of two matrices, for pulls of any length beside the others.

    The sum itself would round short rows away, and with them every direction but those of the long ones. The rows are
    turned into the root instead, the longest first, so that short ones keep their digits.

    Parameters
    ----------
    upper : ndarray of shape (…, n, d)
    pulls : ndarray of shape (…, m, d)

    Returns
    -------
    ndarray of shape (…, d, d)
    """
    rows = np.concatenate([pulls, upper], axis=-2)
    unit = np.sqrt((rows**2).sum(axis=-2))[..., None, :]
    rows = rows / unit
    order = np.argsort(-np.abs(rows).max(axis=-1), axis=-1, kind="stable")
    turned = np.linalg.qr(np.take_along_axis(rows, order[..., None], axis=-2), mode="r") * unit
    signs = np.where(np.diagonal(turned, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return np.swapaxes(turned * signs[..., :, None], -1, -2)


def _pivots(root: np.ndarray) -> np.ndarray:
    return np.diagonal(root, axis1=-2, axis2=-1)


def _least_eigenvalues(matrices: np.ndarray) -> np.ndarray:
    """A lower bound of the eigenvalues of each symmetric matrix, in units of its variances; negative where it has none.

    1e-6 for all of them where that is known cheaply.
    """
    variances = np.diagonal(matrices, axis1=-2, axis2=-1)
    deviation = np.sqrt(np.where(variances > 0, variances, 1.0))
    scaled = matrices / (deviation[..., :, None] * deviation[..., None, :])
    possible = np.asarray((variances > 0).all(axis=-1))
    try:  # a root of what is left proves that all eigenvalues exceed what was taken, for a tenth of their price
        np.linalg.cholesky(scaled - 1e-6 * np.eye(matrices.shape[-1]))
        return np.where(possible, 1e-6, -1.0)
    except np.linalg.LinAlgError:
        return np.where(possible, np.linalg.eigvalsh(scaled)[..., 0], -1.0)


def _log_gamma_d(half_freedom: np.ndarray, n_columns: int) -> np.ndarray:
    """The log of the multivariate gamma function, elementwise (scipy's takes one number)."""
    steps = np.asarray(half_freedom)[..., None] - np.arange(n_columns) / 2
    return np.asarray(n_columns * (n_columns - 1) / 4 * np.log(np.pi) + gammaln(steps).sum(-1))
