"""Joint Gaussian of columns that are linear in each other (a linear Gaussian network), and its conditionals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallybayes.families._shared.mahalanobis import by_missing_pattern, distances_by_inverse, missing_patterns
from tallybayes.families.continuous import ContinuousFamily


class JointGaussianParameters(NamedTuple):
    """Means, and W such that W (x − mean) is white, in every group.

    W = D^(−1/2) (I − B), with the coefficients B of each column on those before it and the noise variances D. It is
    lower triangular and needs no inversion, so a node with little noise keeps the precision that a covariance would
    lose.
    """

    mean: np.ndarray  # (groups, columns)
    root: np.ndarray  # (groups, columns, columns)


class ConditionalGaussian(NamedTuple):
    """Conditional distribution of columns given others: x ~ N(mean + slope · (known − mean_known), (rootᵀ root)⁻¹)."""

    known: np.ndarray  # positions
    others: np.ndarray
    slope: np.ndarray  # (groups, others, known)
    root: np.ndarray  # (groups, others, others), upper triangles

    @property
    def spread(self) -> np.ndarray:
        """Return a square root of the covariance: (groups, others, others)."""
        return np.linalg.solve(self.root, np.broadcast_to(np.eye(len(self.others)), self.root.shape))

    @property
    def covariance(self) -> np.ndarray:
        """Return the covariance: (groups, others, others)."""
        root = self.spread
        return root @ np.swapaxes(root, -1, -2)


@dataclass(frozen=True, eq=False, repr=False)
class JointGaussian(ContinuousFamily):
    """Columns that are each linear in some of those before them, with Gaussian noise: jointly Gaussian.

    It scores rows and gives conditional distributions. It has no statistics of its own: every column has its own
    regression moments.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.families._shared.joint_gaussian import JointGaussian
    >>> from tallybayes.families.protocols.distribution_functions import conditional_means
    >>> family, nan = JointGaussian(), np.nan
    >>> links = family.from_linear_models([([], (np.zeros((1, 0)), [0.0], [4.0])), ([0], ([[0.5]], [1.0], [1.0]))])
    >>> conditional_means(family, links, np.array([[2.0, nan], [nan, 1.0], [nan, nan]]))[:, 0]
    array([[2., 2.],
           [0., 1.],
           [0., 1.]])
    """

    columnwise: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "a finite number (or missing)"

    def from_linear_models(self, models: Sequence[tuple[Sequence[int], Any]]) -> JointGaussianParameters:
        """Return the joint distribution from every column's inputs and linear parameters.

        The parameters are `LinearParameters` by group. A group is undefined (NaN) if one of its models is.
        """
        n_groups, k = len(models[0][1][1]), len(models)
        mean, root = np.zeros((n_groups, k)), np.zeros((n_groups, k, k))
        undefined = np.zeros(n_groups, dtype=bool)
        for column, (inputs, parameters) in enumerate(models):
            slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
            undefined |= np.isnan(slope).any(axis=-1) | np.isnan(intercept) | ~(variance > 0)
            std = np.sqrt(np.where(variance > 0, variance, 1.0))
            mean[:, column] = intercept + (slope * mean[:, [*inputs]]).sum(axis=-1)
            root[:, column, [*inputs]] = -slope / std[:, None]
            root[:, column, column] = 1.0 / std
        return JointGaussianParameters(
            np.where(undefined[:, None], np.nan, mean), np.where(undefined[:, None, None], np.eye(k), root)
        )

    def intervene(
        self, parameters: JointGaussianParameters, columns: Sequence[int], values: Sequence[float]
    ) -> JointGaussianParameters:
        """Return the distribution under the intervention do(columns = values).

        An intervened column gets noise with density 1 at its value, so that conditioning on it adds nothing to log p.
        """
        mean, root = parameters
        offsets = (root @ mean[..., None])[..., 0]
        root = root.copy()
        for column, value in zip(columns, values, strict=True):
            root[:, column] = 0.0
            root[:, column, column] = np.sqrt(2 * np.pi)
            offsets[:, column] = np.sqrt(2 * np.pi) * value
        return JointGaussianParameters(np.linalg.solve(root, offsets[..., None])[..., 0], root)

    def covariance(self, parameters: JointGaussianParameters) -> np.ndarray:
        """Return the covariance of all columns: (groups, columns, columns)."""
        return self.condition_on(parameters, np.zeros(0, dtype=np.intp)).covariance

    def log_prob(self, parameters: JointGaussianParameters, x: np.ndarray) -> np.ndarray:
        """Return log p(observed cells of the row) in every group: (n, groups)."""
        mean = parameters.mean

        def density(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
            k, root = len(known), _marginal_root(parameters.root, known)
            squares = distances_by_inverse(rows, mean[:, known], root)
            log_det = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
            return log_det - k / 2 * np.log(2 * np.pi) - squares / 2

        return by_missing_pattern(x, mean.shape[:-1], density)

    def condition_on(self, parameters: JointGaussianParameters, known: np.ndarray) -> ConditionalGaussian:
        """Return the conditional distribution of the other columns given the columns at `known`."""
        root = parameters.root
        others = np.setdiff1d(np.arange(root.shape[-1]), known)
        m = len(others)
        upper: np.ndarray = np.linalg.qr(root[..., [*others, *known]], mode="r")  # type: ignore[assignment]
        return ConditionalGaussian(
            known, others, -np.linalg.solve(upper[..., :m, :m], upper[..., :m, m:]), upper[..., :m, :m]
        )

    def by_missing_pattern(
        self, parameters: JointGaussianParameters, x: np.ndarray
    ) -> Iterator[tuple[ConditionalGaussian, np.ndarray]]:
        """Yield the conditional distribution and the row indices of every pattern of missing cells."""
        for known, index in missing_patterns(x, empty=True):
            yield self.condition_on(parameters, known), index

    def draw(
        self, parameters: JointGaussianParameters, x: np.ndarray, group: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return rows with missing cells drawn given the observed ones, each in its group: (n, columns)."""
        mean, out = parameters.mean, np.array(x, dtype=float)
        for conditional, index in self.by_missing_pattern(parameters, x):
            groups, noise = group[index], rng.standard_normal((len(index), len(conditional.others)))
            differences = x[np.ix_(index, conditional.known)] - mean[groups][:, conditional.known]
            means = mean[groups][:, conditional.others] + (conditional.slope[groups] @ differences[..., None])[..., 0]
            out[np.ix_(index, conditional.others)] = means + (conditional.spread[groups] @ noise[..., None])[..., 0]
        return out


def _marginal_root(root: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the factor W of some columns with the others integrated out: (groups, k, k), by QR decomposition."""
    d = root.shape[-1]
    if len(known) == d:
        return np.ascontiguousarray(root)
    others = np.setdiff1d(np.arange(d), known)
    # The retained columns come last and in reverse order: the lower right triangle, read from the end, is their factor.
    upper: np.ndarray = np.linalg.qr(root[..., [*others, *known[::-1]]], mode="r")  # type: ignore[assignment]
    lower = upper[..., len(others) :, len(others) :][..., ::-1, ::-1]
    return np.ascontiguousarray(lower * np.sign(np.diagonal(lower, axis1=-2, axis2=-1))[..., None])
