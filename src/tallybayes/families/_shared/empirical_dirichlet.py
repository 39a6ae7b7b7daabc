"""Maximum likelihood Dirichlet prior of the counts of several groups, from the distinct counts."""

from __future__ import annotations

import numpy as np

from tallybayes.kernels.dirichlet_fit import fit_dirichlet_newton
from tallybayes.statistics.counts import Segments


def fit_dirichlet(table: np.ndarray, segments: Segments) -> np.ndarray:
    """Return the α that maximize Σ_groups [log Γ(A)/Γ(A + N) + Σ_k log Γ(α_k + n_k)/Γ(α_k)], per column; A = Σα.

    The objective does not depend on the order of groups. So levels of a column with the same counts, in any order of
    groups, have the same α, and columns with the same levels have the same solution. Among a hundred thousand words
    most are rare and share their counts: only distinct levels are solved for, in a canonical order. The result does not
    depend on the order of groups, levels or columns, to the bit if counts are integers.

    Parameters
    ----------
    table : ndarray of shape (groups, cells)
    segments : Segments
        Segments of the cells by column.

    Returns
    -------
    ndarray of shape (cells,)
    """
    rows = segments.sum(table)
    cell_key = _column_keys(table)
    column_key = _mix(_column_keys(rows) + _ONE) + _sums(_mix(cell_key + _TWO), segments)
    distinct_keys, column, kind_of_column, n_columns = np.unique(
        column_key, return_index=True, return_inverse=True, return_counts=True
    )
    kind_of_cell = np.repeat(kind_of_column, segments.sizes)
    _, cell, inverse, n_cells = np.unique(
        _mix(cell_key + _mix(distinct_keys)[kind_of_cell]), return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(kind_of_cell[cell], kind="stable")
    cell, n_cells, of_kind = cell[order], n_cells[order], kind_of_cell[cell][order]
    concentrations = fit_dirichlet_newton(
        np.sort(table.T[cell], axis=1),
        np.sort(rows.T[column], axis=1),
        n_cells / n_columns[of_kind],
        np.bincount(of_kind, minlength=len(distinct_keys)),
        segments.sizes[column],
    )
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    return concentrations[position[inverse]]


# ---- Hash keys: 64-bit numbers that are equal for equal multisets -------------------------------------------------

_ONE, _TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x3C6EF372FE94F82A)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mix(keys: np.ndarray) -> np.ndarray:
    """Return keys mixed by splitmix64 (Steele et al. 2014), so that their sums identify multisets; 0 stays 0."""
    keys = keys.copy()
    for factor in _FACTORS:
        keys ^= keys >> np.uint64(30)
        keys *= factor
    keys ^= keys >> np.uint64(31)
    return keys


def _column_keys(table: np.ndarray) -> np.ndarray:
    """Return a key of the multiset of numbers in every column of a table."""
    keys = np.zeros(table.shape[1], dtype=np.uint64)
    for row in table:  # row by row, to stay in cache
        keys += _mix((np.ascontiguousarray(row, dtype=np.float64) + 0.0).view(np.uint64))  # −0 is 0
    return keys


def _sums(keys: np.ndarray, segments: Segments) -> np.ndarray:
    """Return the sum of the keys of every column, modulo 2⁶⁴."""
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(keys, dtype=np.uint64)])
    return ends[segments.offsets[1:]] - ends[segments.offsets[:-1]]
