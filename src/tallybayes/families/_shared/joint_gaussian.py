"""Gaussian columns that are lines in each other: their joint distribution, and what some of them tell of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.families._shared.mahalanobis import by_missing_pattern, missing_patterns, whitened_squared_norms
from tallybayes.families.continuous import ContinuousFamily


class JointGaussianParameters(NamedTuple):
    """Parameters of linked columns in every group: their means, and W, by which W (x − mean) is white.

    W = D^(−1/2) (I − B), of the weights B of each column's line in those before it and the variances D of its noise: a
    lower triangle, that no matrix had to be inverted for. So a node that follows another all but exactly keeps its
    digits, which it would lose in a covariance.
    """

    mean: np.ndarray  # (groups, columns)
    root: np.ndarray  # (groups, columns, columns)


class ConditionalGaussian(NamedTuple):
    """What known columns tell of the others: x ~ N(mean + slope · (known − their mean), (rootᵀ root)⁻¹), by group."""

    known: np.ndarray  # positions
    others: np.ndarray
    slope: np.ndarray  # (groups, others, known)
    root: np.ndarray  # (groups, others, others), upper triangles

    @property
    def spread(self) -> np.ndarray:
        """A root of the covariance: (groups, others, others)."""
        return np.linalg.solve(self.root, np.broadcast_to(np.eye(len(self.others)), self.root.shape))

    @property
    def covariance(self) -> np.ndarray:
        """(groups, others, others)."""
        half = self.spread
        return half @ np.swapaxes(half, -1, -2)


@dataclass(frozen=True, eq=False, repr=False)
class JointGaussian(ContinuousFamily):
    """Columns of which each is a line in some of those before it, with Gaussian noise: together, one Gaussian.

    It scores rows and says what their known cells tell of the others. Nothing is counted in it: every column's line has
    moments of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.families._shared.joint_gaussian import JointGaussian
    >>> family, nan = JointGaussian(), np.nan
    >>> links = family.from_linear_models([([], (np.zeros((1, 0)), [0.0], [4.0])), ([0], ([[0.5]], [1.0], [1.0]))])
    >>> family.conditional_means(links, np.array([[2.0, nan], [nan, 1.0], [nan, nan]]))[:, 0]
    array([[2., 2.],
           [0., 1.],
           [0., 1.]])
    """

    columnwise: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "a finite number (or missing)"

    def from_linear_models(self, lines: Sequence[tuple[Sequence[int], Any]]) -> JointGaussianParameters:
        """The joint distribution of columns, from the line of each: in which columns before it, and its parameters.

        The parameters are a `LinearParameters` by group. A group is undefined (NaN) if one of its lines is.
        """
        read = [
            (list(inputs), LinearParameters(*(np.asarray(part, dtype=float) for part in line)))
            for inputs, line in lines
        ]
        n_groups, k = len(read[0][1].intercept), len(read)
        mean, root = np.zeros((n_groups, k)), np.zeros((n_groups, k, k))
        lost = np.zeros(n_groups, dtype=bool)
        for place, (inputs, (slope, intercept, variance)) in enumerate(read):
            lost |= np.isnan(slope).any(axis=-1) | np.isnan(intercept) | ~(variance > 0)
            deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
            mean[:, place] = intercept + (slope * mean[:, inputs]).sum(axis=-1)
            root[:, place, inputs] = -slope / deviation[:, None]
            root[:, place, place] = 1.0 / deviation
        return JointGaussianParameters(
            np.where(lost[:, None], np.nan, mean), np.where(lost[:, None, None], np.eye(k), root)
        )

    def intervene(
        self, parameters: JointGaussianParameters, places: Sequence[int], values: Sequence[float]
    ) -> JointGaussianParameters:
        """The distribution where some columns are set from outside, whatever those before them are.

        Each of them gets noise whose density is 1 where it is set, so that knowing it there, as is then meant, tells
        of nothing but what follows from it.
        """
        mean, root = parameters
        pulls = (root @ mean[..., None])[..., 0]
        root = root.copy()
        for place, value in zip(places, values, strict=True):
            root[:, place] = 0.0
            root[:, place, place] = np.sqrt(2 * np.pi)
            pulls[:, place] = np.sqrt(2 * np.pi) * value
        return JointGaussianParameters(np.linalg.solve(root, pulls[..., None])[..., 0], root)

    def mean(self, parameters: JointGaussianParameters) -> np.ndarray:
        """The means."""
        return parameters.mean

    def covariance(self, parameters: JointGaussianParameters) -> np.ndarray:
        """Of all columns: (groups, columns, columns)."""
        return self.condition_on(parameters, np.zeros(0, dtype=np.intp)).covariance

    def out_of_support(self, x: np.ndarray) -> np.ndarray:
        """No number."""
        return np.zeros(np.shape(x), dtype=bool)

    def log_prob(self, parameters: JointGaussianParameters, x: np.ndarray) -> np.ndarray:
        """log p(known cells of the row) in every group: (n, groups)."""
        mean = parameters.mean

        def density(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
            k, root = len(known), _among(parameters.root, known)
            there = mean[:, known]
            counted = there[~np.isnan(there).any(axis=-1)]
            center = counted.mean(axis=0) if len(counted) else np.zeros(k)
            shift = (root @ (there - center)[..., None])[..., 0]
            squares = whitened_squared_norms(np.ascontiguousarray(rows), center, root, shift)
            log_det = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
            return log_det - k / 2 * np.log(2 * np.pi) - squares / 2

        return by_missing_pattern(x, mean.shape[:-1], density)

    def condition_on(self, parameters: JointGaussianParameters, known: np.ndarray) -> ConditionalGaussian:
        """What some columns, by position, tell of the others."""
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
        """For every pattern of missing cells: what the known ones tell of them, and the rows that have it."""
        for known, index in missing_patterns(x, empty=True):
            yield self.condition_on(parameters, known), index

    def conditional_means(self, parameters: JointGaussianParameters, x: np.ndarray) -> np.ndarray:
        """E[x | the row's known cells] in every group: (n, groups, columns)."""
        mean = parameters.mean
        out = np.repeat(np.asarray(x, dtype=float)[:, None], len(mean), axis=1)
        for told, index in self.by_missing_pattern(parameters, x):
            if len(told.others):
                gaps = x[np.ix_(index, told.known)][:, None] - mean[:, told.known]
                filled = mean[:, told.others] + np.einsum("gmo,ngo->ngm", told.slope, gaps)
                out[np.ix_(index, np.arange(len(mean)), told.others)] = filled
        return out

    def draw(
        self, parameters: JointGaussianParameters, x: np.ndarray, group: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Rows, each in a group, with what is missing drawn given what is known: (n, columns)."""
        mean, out = parameters.mean, np.array(x, dtype=float)
        for told, index in self.by_missing_pattern(parameters, x):
            here, noise = group[index], rng.standard_normal((len(index), len(told.others)))
            gaps = x[np.ix_(index, told.known)] - mean[here][:, told.known]
            drawn = mean[here][:, told.others] + (told.slope[here] @ gaps[..., None])[..., 0]
            out[np.ix_(index, told.others)] = drawn + (told.spread[here] @ noise[..., None])[..., 0]
        return out


def _among(root: np.ndarray, known: np.ndarray) -> np.ndarray:
    """W of some columns alone, the others integrated out: lower triangles with positive diagonals, (groups, k, k)."""
    d = root.shape[-1]
    if len(known) == d:
        return np.ascontiguousarray(root)
    others = np.setdiff1d(np.arange(d), known)
    # The columns that stay come last, and in reverse: what is left of the triangle below is theirs, read from the end.
    upper: np.ndarray = np.linalg.qr(root[..., [*others, *known[::-1]]], mode="r")  # type: ignore[assignment]
    lower = upper[..., len(others) :, len(others) :][..., ::-1, ::-1]
    return np.ascontiguousarray(lower * np.sign(np.diagonal(lower, axis1=-2, axis2=-1))[..., None])
