"""Initialization of mixtures: k-means++ (Arthur and Vassilvitskii 2007) on the observed cells of any column type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallybayes.families._shared.blocks import SparseRows, compressed, n_rows
from tallybayes.families.family import Family
from tallybayes.families.protocols.em_support import distance_features
from tallybayes.kernels import active

_DIRECTIONS = 64  # columns of the random projection of sparse rows and of columns with more levels
_LLOYD_STEPS = 8


class DistanceFeatures:
    """Transforms the cells of a factor to features whose squared distances are comparable between column types.

    The expected squared difference of two unlike rows is about 2 per column.

    Parameters
    ----------
    family : Family
    sizes : sequence of int
        The numbers of levels of categorical columns.
    cells : array or SparseRows
        Rows from which the scale of numbers is estimated.
    seed : int
    weight : ndarray of shape (n,), optional
        The weights of these rows.
    """

    def __init__(
        self,
        family: Family,
        sizes: Sequence[int],
        cells: np.ndarray | SparseRows,
        seed: int,
        weight: np.ndarray | None = None,
    ) -> None:
        self.family = family
        self.sizes = sizes
        self.seed = seed
        if family.cell_type != "codes":
            numbers, unit = self._numbers(cells)
            weight = np.ones(n_rows(numbers)) if weight is None else weight
            self.center, variance = _mean_and_variance(numbers, weight)
            self.spread = (
                np.sqrt(np.where(variance > 0, variance, 1.0)) if unit is None else np.full(variance.shape, unit)
            )

    def _numbers(self, cells: np.ndarray | SparseRows) -> tuple[np.ndarray | SparseRows, float | None]:
        """Return the cells on the family's scale, sparse if they have many columns, and their standard deviation."""
        rows, unit = distance_features(
            self.family, cells if isinstance(cells, SparseRows) else np.asarray(cells, dtype=float)
        )
        if isinstance(rows, SparseRows):
            return (rows if rows.n_columns > _DIRECTIONS else rows.dense()), unit
        return (compressed(rows) if self.family.accepts_sparse and rows.shape[1] > _DIRECTIONS else rows), unit

    def _level_features(self, codes: np.ndarray, column: int) -> np.ndarray:
        """Return one-hot codes of a categorical column; of many levels, their random projection to fewer columns."""
        size = int(self.sizes[column])
        if self.n_directions(size) < size:
            projection = np.random.default_rng([self.seed, column]).standard_normal((size, _DIRECTIONS))
            corners = projection / np.sqrt(_DIRECTIONS)
        else:
            corners = np.eye(size)
        return np.concatenate([corners, np.full((1, corners.shape[1]), np.nan)])[codes]  # −1, missing, is the last

    def __call__(self, cells: np.ndarray | SparseRows) -> np.ndarray:
        """Return the features of the cells, NaN where missing: shape (n, features)."""
        if self.family.cell_type == "codes" and isinstance(cells, np.ndarray):
            return np.concatenate([self._level_features(cells[:, j], j) for j in range(len(self.sizes))], axis=1)
        numbers, _ = self._numbers(cells)
        return (
            self._random_projection(numbers)
            if isinstance(numbers, SparseRows)
            else (numbers - self.center) / self.spread
        )

    def n_directions(self, size: int) -> int:
        """Return the number of features of a categorical column with so many levels."""
        return min(size, _DIRECTIONS)

    def level_distances(self, centers: np.ndarray) -> np.ndarray:
        """Return the squared distances of all levels of categorical columns from some centers: (centers, levels)."""
        found, start = [np.zeros((len(centers), 0))], 0
        for column, size in enumerate(self.sizes):
            corners = self._level_features(np.arange(size), column)
            end = start + corners.shape[1]
            found.append(squared_distances_to_centers(corners, centers[:, start:end]).T)
            start = end
        return np.concatenate(found, axis=1)

    def _random_projection(self, rows: SparseRows) -> np.ndarray:
        """Project sparse rows on random directions, which keeps distances approximately (Johnson and Lindenstrauss).

        A missing cell has the mean of its column.
        """
        value = np.asarray(rows.data, dtype=float)
        value = np.where(np.isnan(value), self.center[rows.indices], value)
        directions = np.random.default_rng(self.seed).standard_normal((rows.n_columns, _DIRECTIONS))
        directions /= self.spread[:, None] * np.sqrt(_DIRECTIONS)
        return np.asarray(_matrix(rows, value) @ directions) - self.center @ directions


def _matrix(rows: SparseRows, value: np.ndarray) -> Any:
    """Return a SciPy matrix of the sparse rows with other values."""
    from scipy.sparse import csr_array

    return csr_array((value, rows.indices, rows.indptr), shape=(n_rows(rows), rows.n_columns))


def _mean_and_variance(rows: np.ndarray | SparseRows, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the variance of the observed cells of every column; 0 where none is observed."""
    if not isinstance(rows, SparseRows):
        mean = known_mean(rows, weight, np.zeros(rows.shape[1]))
        return mean, known_mean((rows - mean) ** 2, weight, np.zeros(rows.shape[1]))
    value = np.asarray(rows.data, dtype=float)
    cell_weight = np.repeat(weight, np.diff(rows.indptr))
    missing = np.isnan(value)

    def sums(of: np.ndarray) -> np.ndarray:
        return np.bincount(rows.indices, cell_weight * of, rows.n_columns)

    observed = weight.sum() - sums(missing)
    total = np.where(observed > 0, observed, 1.0)
    mean = sums(np.where(missing, 0.0, value)) / total
    center = mean[rows.indices]
    excess = np.where(missing, 0.0, (value - center) ** 2 - center**2)  # beyond the square of a zero cell
    return mean, np.maximum(sums(excess) / total + mean**2, 0.0)


def known_mean(rows: np.ndarray, weight: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return the mean of the observed cells of every column, and `otherwise` where there are none."""
    known = weight[:, None] * ~np.isnan(rows)
    total = known.sum(axis=0)
    sums = (known * np.where(np.isnan(rows), 0.0, rows)).sum(axis=0)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), otherwise)


def kmeans_plus_plus(
    rows: np.ndarray, n_more: int, fixed: np.ndarray, rng: np.random.Generator, weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the fixed centers and `n_more` others: greedy k-means++, followed by Lloyd's algorithm.

    Parameters
    ----------
    rows : ndarray of shape (n, columns)
        NaN where missing.
    n_more : int
        The number of centers to find.
    fixed : ndarray of shape (n_fixed, columns)
        Centers that do not move.
    rng : Generator
    weight : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (n_fixed + n_more, columns)
    """
    weight = np.ones(len(rows)) if weight is None else weight
    order = _order_by_values(rows)
    rows = rows[order]
    weight = weight[order]
    imputed = np.where(np.isnan(rows), 0.0, rows)  # features have mean 0
    centers = fixed
    distances_to = squared_distances_from(rows)
    distance = distances_to(centers).min(axis=1, initial=np.inf)  # to the nearest center
    n_trials = 2 + int(np.log(n_more + 1))
    for _ in range(n_more):
        potential = weight * distance if len(centers) else weight
        potential = potential if potential.sum() > 0 else weight
        index = rng.choice(len(rows), n_trials, p=potential / potential.sum())
        nearer = np.minimum(distance[:, None], distances_to(imputed[index]))
        best = int((weight @ nearer).argmin())
        centers = np.concatenate([centers, imputed[index[best : best + 1]]])
        distance = nearer[:, best]
    move = _lloyd_step(rows, weight, len(centers))
    for _ in range(_LLOYD_STEPS):
        moved = np.concatenate([fixed, move(centers)[len(fixed) :]])
        if np.allclose(moved, centers):
            break
        centers = moved
    return centers


def _lloyd_step(rows: np.ndarray, weight: np.ndarray, n_centers: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of centers: the means of the rows that are nearest to each, which stays if there are none."""
    if hasattr(active.module, "MixtureEM") and rows.size and n_centers:
        zeros, ones = np.zeros(rows.shape[1]), np.ones(n_centers * rows.shape[1])
        block = (np.ascontiguousarray(rows), False, True, True, zeros, zeros)
        em = active.module.MixtureEM(len(rows), n_centers, [block], [], np.ascontiguousarray(weight), None, 1)

        def move(centers: np.ndarray) -> np.ndarray:
            em.expect(np.zeros(n_centers), [(centers.reshape(-1), ones)], [], True)
            _, [(total, about, first, _)], _ = em.sums()
            return np.asarray(about + np.where(total > 0, first / np.where(total > 0, total, 1.0), 0.0))

        return move
    distances_to = squared_distances_from(rows)

    def move_by_groups(centers: np.ndarray) -> np.ndarray:
        nearest = distances_to(centers).argmin(axis=1)
        groups = [nearest == k for k in range(n_centers)]
        return np.array([known_mean(rows[k], weight[k], old) for k, old in zip(groups, centers, strict=True)])

    return move_by_groups


def _order_by_values(rows: np.ndarray) -> np.ndarray:
    """Return an order of the rows that depends on their values only: the same draws choose the same rows."""
    directions = np.random.default_rng(0).standard_normal((2, rows.shape[1]))
    missing = np.isnan(rows)
    return np.argsort(
        (np.where(missing, 0.0, rows) * directions[0] + missing * directions[1]).sum(axis=1), kind="stable"
    )


def squared_distances_to_centers(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return squared distances (n, centers) over the observed cells, scaled up to the number of columns."""
    return squared_distances_from(rows)(centers)


def squared_distances_from(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of centers: the `squared_distances_to_centers` of these rows, which are prepared once."""
    observed = ~np.isnan(rows)
    values = np.where(observed, rows, 0.0)
    squares = (values**2).sum(axis=1)[:, None]
    values *= 2
    fraction = observed.mean(axis=1, keepdims=True) if rows.shape[1] else np.ones((len(rows), 1))
    scale = np.where(fraction > 0, fraction, 1.0)
    is_observed = observed.astype(float)

    def to(centers: np.ndarray) -> np.ndarray:
        """Return the squared distances to some centers."""
        distances = squares - values @ centers.T + is_observed @ (centers**2).T
        return np.maximum(distances, 0.0) / scale

    return to
