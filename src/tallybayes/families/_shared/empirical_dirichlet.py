"""The Dirichlet under which the counts of several groups are most probable, from the counts that differ."""

from __future__ import annotations

import numpy as np

from tallybayes.kernels.dirichlet_fit import fit_dirichlet_newton
from tallybayes.statistics.segments import Segments


def fit_dirichlet(table: np.ndarray, segments: Segments) -> np.ndarray:
    """Concentrations that maximize Σ_groups [log Γ(A)/Γ(A + N) + Σ_k log Γ(α_k + n_k)/Γ(α_k)], per column; A = Σα.

    It does not matter which group has which count. So levels of a column with the same counts, in whichever groups,
    have one α, and columns whose levels are alike have the same ones. Of a hundred thousand words most are rare, and
    rare words were counted alike: only those that differ are solved for, in an order of their own. What is found does
    not depend on the order of groups, levels or columns, to the bit where the counts are whole; nor do its sums, as it
    is rounded to what adds up exactly.

    Parameters
    ----------
    table : ndarray of shape (groups, cells)
    segments : Segments
        How the cells fall into columns.

    Returns
    -------
    ndarray of shape (cells,)
    """
    rows = segments.sum(table)
    cell_key = _key_of(table)
    column_key = _mixed(_key_of(rows) + _ONE) + _sums(_mixed(cell_key + _TWO), segments)
    kinds, column, kind, n_columns = np.unique(column_key, return_index=True, return_inverse=True, return_counts=True)
    every_kind = np.repeat(kind, segments.sizes)
    _, cell, again, n_cells = np.unique(
        _mixed(cell_key + _mixed(kinds)[every_kind]), return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(every_kind[cell], kind="stable")
    cell, n_cells, of_kind = cell[order], n_cells[order], every_kind[cell][order]
    found = fit_dirichlet_newton(
        np.sort(table.T[cell], axis=1),
        np.sort(rows.T[column], axis=1),
        n_cells / n_columns[of_kind],
        np.bincount(of_kind, minlength=len(kinds)),
        segments.sizes[column],
    )
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return found[place[again]]


# ---- Keys: numbers of 64 bits that are the same for what is alike, and for nothing else --------------------------

_ONE, _TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x3C6EF372FE94F82A)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mixed(keys: np.ndarray) -> np.ndarray:
    """Keys with their bits stirred, so that sums of them tell apart what was summed; 0 stays 0 (splitmix64)."""
    keys = keys.copy()
    for factor in _FACTORS:
        keys ^= keys >> np.uint64(30)
        keys *= factor
    keys ^= keys >> np.uint64(31)
    return keys


def _key_of(table: np.ndarray) -> np.ndarray:
    """A key of the numbers in every column of a table, in whichever order."""
    keys = np.zeros(table.shape[1], dtype=np.uint64)
    for row in table:  # one at a time stays in cache
        keys += _mixed((np.ascontiguousarray(row, dtype=np.float64) + 0.0).view(np.uint64))  # −0 is 0
    return keys


def _sums(keys: np.ndarray, segments: Segments) -> np.ndarray:
    """The sum of the keys of every column, modulo 2⁶⁴."""
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(keys, dtype=np.uint64)])
    return ends[segments.offsets[1:]] - ends[segments.offsets[:-1]]
