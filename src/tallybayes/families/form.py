"""The form of a log probability: what a scorer must know of a family to score sparse rows without their zeros."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tallybayes.families.block import Sparse
from tallybayes.families.family import Family

_CELLS = 1 << 19  # entries of a stretch, and terms made at a time: some dozen arrays of them, about 64 MB

Term = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Cells:
    """log p(row) = Σ over columns of f_j(x_j), and perhaps a term in the sum of the row.

    A sparse row is then scored by what a row of zeros has, Σ f_j(0), and f_j(x) − f_j(0) at its other cells alone.

    Parameters
    ----------
    at_zero : ndarray of shape (*given, columns)
        f_j(0); −inf where no cell may be 0, NaN where the parameter is not known.
    term : callable
        ``term(value, column)``, both of shape (m,), is f_j(x) − f_j(0), shape (*given, m). Where f_j(0) is not finite,
        it is f_j(x).
    row_term : callable, optional
        Of the sums of rows, shape (m,), gives an array of shape (*given, m).

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.families.block import Sparse
    >>> from tallybayes.families.form import Cells
    >>> rate = np.array([[1.0, 2.0], [3.0, 0.5]])
    >>> form = Cells(-rate, lambda value, column: value * np.log(rate[:, column]))
    >>> form.score(Sparse(np.array([0, 0, 1]), np.array([0]), np.array([1.0]), 2)).round(4)
    array([[-3.    , -3.5   ],
           [-3.    , -2.4014]])
    """

    at_zero: np.ndarray
    term: Term
    row_term: Callable[[np.ndarray], np.ndarray] | None = None

    def score(self, rows: Sparse) -> np.ndarray:
        """log p of every row, shape (n, *given); a stored NaN is a missing cell. Memory stays bounded."""
        rows, given = rows.without_zeros(), self.at_zero.shape[:-1]
        out = np.empty((len(rows.indptr) - 1, self._flat.shape[0]))
        for part in stretches(rows.indptr):
            out[part] = self._score(rows.rows(part))
        return out.reshape(len(out), *given)

    def gap(self, row: Sparse, first: int, second: int) -> np.ndarray:
        """How much more likely every cell of one row is in one group than in another, shape (columns,).

        The term of the row as a whole is shared out among its cells as they share its sum.
        """
        row, pair = row.without_zeros(), np.array([first, second])
        value, column = np.asarray(row.data, dtype=np.float64), row.indices
        zero, terms = self._flat[pair], self._terms(value, column)[pair]
        if self.row_term is not None and len(value):
            total = value.sum()
            common = np.broadcast_to(self.row_term(np.array([total])), (*self.at_zero.shape[:-1], 1))
            terms = terms + common.reshape(-1, 1)[pair] * value / total
        here = zero[:, column]
        here = np.where(np.isnan(value), 0.0, np.where(np.isfinite(here), here, 0.0) + terms)
        with np.errstate(invalid="ignore"):
            out = np.asarray(zero[0] - zero[1])
            out[column] = here[0] - here[1]
        return out

    @cached_property
    def _flat(self) -> np.ndarray:
        return np.asarray(self.at_zero).reshape(-1, self.at_zero.shape[-1])

    @cached_property
    def _base(self) -> np.ndarray:
        """The sum for a row of zeros, of what is finite: (groups,)."""
        return np.where(np.isfinite(self._flat), self._flat, 0.0).sum(axis=1)

    @cached_property
    def _odd(self) -> np.ndarray | None:
        """Which zeros are impossible, and of which nothing is known, (2 · groups, columns); None where there are none.

        Both are counted apart: −inf − (−inf) is no number.
        """
        odd = np.concatenate([np.isneginf(self._flat), np.isnan(self._flat)])
        return odd if odd.any() else None

    def _terms(self, value: np.ndarray, column: np.ndarray) -> np.ndarray:
        """What cells add to a row of zeros, (groups, m), a few at a time; a missing one takes its zero away."""
        zero = self._flat
        out = np.empty((len(zero), len(value)))
        step = max(1, _CELLS // max(1, len(zero)))
        for start in range(0, len(value), step):
            x, j = value[start : start + step], column[start : start + step]
            missing = np.isnan(x)
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = self.term(np.where(missing, 1.0, x), j).reshape(len(zero), -1)
            if missing.any():
                terms = np.where(missing, -np.where(np.isfinite(zero[:, j]), zero[:, j], 0.0), terms)
            out[:, start : start + step] = terms
        return out

    def _score(self, rows: Sparse) -> np.ndarray:
        from scipy.sparse import csr_array

        value, column, which = _different(rows)
        shape = len(rows.indptr) - 1, len(value)
        entries = csr_array((np.ones(len(which)), which, rows.indptr), shape=shape)
        with np.errstate(invalid="ignore"):
            out = np.asarray(entries @ np.ascontiguousarray(self._terms(value, column).T)) + self._base
        if self.row_term is not None:
            out += np.reshape(self.row_term(rows.sum_rows(np.asarray(rows.data))), (-1, shape[0])).T
        if self._odd is not None:
            left = self._odd.sum(axis=1) - np.asarray(entries @ self._odd[:, column].T.astype(np.float64))
            impossible, unknown = np.split(left > 0, 2, axis=1)
            out = np.where(unknown, np.nan, np.where(impossible & ~np.isnan(out), -np.inf, out))
        return out


def has_form(family: Family, predictive: bool) -> bool:
    """Whether what a family says of its form is meant for how it scores.

    A family of a user's own that scores in another way than the one it is made from has no form until it says one.
    """
    said, meant = ("predictive_form", "log_predictive") if predictive else ("form", "log_prob")
    return _place(family, said) <= _place(family, meant)


def form_of(family: Family, parameters: Any, predictive: bool) -> Cells | None:
    """The form of a family's log probability, or None where it has not said one."""
    if not has_form(family, predictive) or (predictive and not isinstance(parameters, family.belief)):
        return None
    found: Cells | None = (family.predictive_form if predictive else family.form)(parameters)
    return found


def _place(family: Family, method: str) -> int:
    """How far up among a family's ancestors a method is written."""
    return next(place for place, kind in enumerate(type(family).__mro__) if method in vars(kind))


def stretches(indptr: np.ndarray) -> Iterator[slice]:
    """Rows that lie together, at least one each, of a bounded number of entries."""
    n_rows, first = len(indptr) - 1, 0
    while first < n_rows:
        last = int(np.searchsorted(indptr, int(indptr[first]) + _CELLS, side="right")) - 1
        last = min(max(last, first + 1), n_rows, first + _CELLS)
        yield slice(first, last)
        first = last


def _different(rows: Sparse) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The different cells of some rows, as values and columns, and which of them every entry is.

    Counts of words are mostly 1: there are far fewer different ones than entries, and each is computed once.
    """
    value = np.asarray(rows.data, dtype=np.float64)
    most = value.max(initial=0.0)  # NaN, if there is one
    if not most < 2**20 or not (value == np.floor(value)).all() or value.min(initial=0.0) < 0:
        return value, rows.indices, np.arange(len(value))
    size = int(most) + 1
    key, which = np.unique(rows.indices.astype(np.int64) * size + value.astype(np.int64), return_inverse=True)
    return (key % size).astype(np.float64), key // size, which
