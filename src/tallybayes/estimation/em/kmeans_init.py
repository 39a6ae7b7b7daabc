"""Where a mixture starts: k-means++ on what is observed, whatever the columns are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.families._shared.blocks import SparseRows, compressed, n_rows
from tallybayes.families.family import Family

_DIRECTIONS = 64  # sparse rows, and labels of many kinds, are seen from this many random sides
_LLOYD_STEPS = 20


class DistanceFeatures:
    """Cells of one block as numbers whose squared differences are comparable: about 2 a column for unlike rows.

    Parameters
    ----------
    family : Family
    sizes : sequence of int
        The numbers of levels of columns of labels.
    cells : array or Sparse
        Some rows, to find the spread of numbers.
    seed : int
    weight : ndarray of shape (n,), optional
        Of those rows.
    """

    def __init__(self, family: Family, sizes: Any, cells: Any, seed: int, weight: np.ndarray | None = None) -> None:
        self.family, self.sizes, self.seed = family, sizes, seed
        if family.cell_type != "codes":
            numbers, unit = self._numbers(cells)
            weight = np.ones(n_rows(numbers)) if weight is None else weight
            self.center, square = _mean_and_square(numbers, weight)
            self.spread = np.sqrt(np.where(square > 0, square, 1.0)) if unit is None else np.full(square.shape, unit)

    def _numbers(self, cells: Any) -> tuple[np.ndarray | SparseRows, float | None]:
        """The cells on the family's scale; of many columns, those that may be sparse are so."""
        rows, unit = self.family.distance_features(
            cells if isinstance(cells, SparseRows) else np.asarray(cells, dtype=float)
        )
        if isinstance(rows, SparseRows):
            return (rows if rows.n_columns > _DIRECTIONS else rows.dense()), unit
        return (compressed(rows) if self.family.accepts_sparse and rows.shape[1] > _DIRECTIONS else rows), unit

    def _places(self, codes: np.ndarray, column: int) -> np.ndarray:
        """Where labels lie: at the corners of a simplex or, if they are many, about as far apart in fewer columns."""
        size = int(self.sizes[column])
        if size > _DIRECTIONS:
            sides = np.random.default_rng([self.seed, column]).standard_normal((size, _DIRECTIONS))
            corners = sides / np.sqrt(_DIRECTIONS)
        else:
            corners = np.eye(size)
        return np.concatenate([corners, np.full((1, corners.shape[1]), np.nan)])[codes]  # −1, missing, is the last

    def __call__(self, cells: Any) -> np.ndarray:
        """The cells as numbers, NaN where missing: shape (n, some columns)."""
        if self.family.cell_type == "codes":
            return np.concatenate([self._places(cells[:, j], j) for j in range(len(self.sizes))], axis=1)
        numbers, _ = self._numbers(cells)
        return (
            self._random_projection(numbers)
            if isinstance(numbers, SparseRows)
            else (numbers - self.center) / self.spread
        )

    def _random_projection(self, rows: SparseRows) -> np.ndarray:
        """Rows of many columns seen from random sides, about as far apart; a missing cell lies in the middle."""
        value = np.asarray(rows.data, dtype=float)
        value = np.where(np.isnan(value), self.center[rows.indices], value)
        sides = np.random.default_rng(self.seed).standard_normal((rows.n_columns, _DIRECTIONS))
        sides /= self.spread[:, None] * np.sqrt(_DIRECTIONS)
        return np.asarray(_matrix(rows, value) @ sides) - self.center @ sides


def _matrix(rows: SparseRows, value: np.ndarray) -> Any:
    """Sparse rows for SciPy, with other values."""
    from scipy.sparse import csr_array

    return csr_array((value, rows.indices, rows.indptr), shape=(n_rows(rows), rows.n_columns))


def _mean_and_square(rows: np.ndarray | SparseRows, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of every column's known cells, and of their squared gaps to it; 0 where none is known."""
    if not isinstance(rows, SparseRows):
        mean = known_mean(rows, weight, np.zeros(rows.shape[1]))
        return mean, known_mean((rows - mean) ** 2, weight, np.zeros(rows.shape[1]))
    value, share = np.asarray(rows.data, dtype=float), np.repeat(weight, np.diff(rows.indptr))
    missing = np.isnan(value)

    def sums(of: np.ndarray) -> np.ndarray:
        return np.bincount(rows.indices, share * of, rows.n_columns)

    known = weight.sum() - sums(missing)
    whole = np.where(known > 0, known, 1.0)
    mean = sums(np.where(missing, 0.0, value)) / whole
    middle = mean[rows.indices]
    more = np.where(missing, 0.0, (value - middle) ** 2 - middle**2)  # than the square of a 0
    return mean, np.maximum(sums(more) / whole + mean**2, 0.0)


def known_mean(rows: np.ndarray, weight: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """The mean of the known cells of every column, and `otherwise` where there are none."""
    known = weight[:, None] * ~np.isnan(rows)
    total = known.sum(axis=0)
    sums = (known * np.where(np.isnan(rows), 0.0, rows)).sum(axis=0)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), otherwise)


def kmeans_plus_plus(
    rows: np.ndarray, n_more: int, fixed: np.ndarray, rng: np.random.Generator, weight: np.ndarray | None = None
) -> np.ndarray:
    """The fixed centers and `n_more` others: far-off rows (k-means++), then moved to the middle of what is nearest.

    Parameters
    ----------
    rows : ndarray of shape (n, columns)
        NaN where missing.
    n_more : int
    fixed : ndarray of shape (some, columns)
        Centers that stay where they are.
    rng : Generator
    weight : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (some + n_more, columns)
    """
    weight = np.ones(len(rows)) if weight is None else weight
    order = _by_content(rows)
    rows, weight = rows[order], weight[order]
    filled = np.where(np.isnan(rows), 0.0, rows)  # a seed's own unknown cells lie in the middle of all
    centers = fixed
    for _ in range(n_more):
        far = weight * (squared_distances_to_centers(rows, centers).min(axis=1) if len(centers) else 1.0)
        far = far if far.sum() > 0 else weight
        place = int(rng.choice(len(rows), p=far / far.sum()))
        centers = np.concatenate([centers, filled[place : place + 1]])
    for _ in range(_LLOYD_STEPS):
        nearest = squared_distances_to_centers(rows, centers).argmin(axis=1)
        moved = centers.copy()
        for k in range(len(fixed), len(centers)):
            moved[k] = known_mean(rows[nearest == k], weight[nearest == k], centers[k])
        if np.allclose(moved, centers):
            break
        centers = moved
    return centers


def _by_content(rows: np.ndarray) -> np.ndarray:
    """An order of the rows that does not depend on the one they came in, so that the same draws find the same rows."""
    sides = np.random.default_rng(0).standard_normal((2, rows.shape[1]))
    missing = np.isnan(rows)
    return np.argsort((np.where(missing, 0.0, rows) * sides[0] + missing * sides[1]).sum(axis=1), kind="stable")


def squared_distances_to_centers(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Squared distances of rows to centers over the known cells, as if the others were like them: (n, centers)."""
    known = ~np.isnan(rows)
    whole = np.where(known, rows, 0.0)
    squares = (whole**2).sum(axis=1)[:, None] - 2 * whole @ centers.T + known.astype(float) @ (centers**2).T
    share = known.mean(axis=1, keepdims=True) if rows.shape[1] else np.ones((len(rows), 1))
    return np.maximum(squares, 0.0) / np.where(share > 0, share, 1.0)
