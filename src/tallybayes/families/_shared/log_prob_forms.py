"""Functional forms of log probabilities: the interface between families and the kernels that score rows.

A form is one of `LogTableForm`, `LinearLogForm`, `NormalForm`, `StudentTForm`, `MultivariateNormalForm`,
`MultivariateTForm` and `CellSumForm`. Arrays have shape (*given, columns) unless stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from tallybayes.distributions.log_gamma import log_choose, log_factorials
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families._shared.mahalanobis import whiten
from tallybayes.families.family import broadcast_over_groups
from tallybayes.statistics.counts import Segments

_CELLS = 1 << 19  # entries per chunk of rows, and terms per batch: about 64 MB in a dozen arrays

Term = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class LogTableForm:
    """Lookup by code: log p = log_p[offset of the column + code]; code −1 (missing) contributes 0.

    Parameters
    ----------
    log_p : ndarray of shape (*given, cells)
    segments : Segments
        Segments of the cells by column.
    """

    log_p: np.ndarray
    segments: Segments

    def evaluate(self, codes: np.ndarray) -> np.ndarray:
        """Return log p of every cell: (n, *given, columns)."""
        if self.log_p.shape[-1] == 0:  # no column has levels
            return np.zeros((len(codes), *self.log_p.shape[:-1], codes.shape[1]))
        missing = codes < 0
        picked = self.log_p[..., np.where(missing, 0, codes + self.segments.offsets[:-1])]
        return np.where(broadcast_over_groups(missing, self.log_p.ndim - 1), 0.0, np.moveaxis(picked, -2, 0))


class ColumnForm:
    """Base of forms of numeric columns: log p of a row is the sum over the columns; a missing cell contributes 0."""

    silenced: ClassVar[tuple[str, ...]]  # arrays that are 0 for a column without contribution; the first has full shape

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """Return log p of every cell: (n, *given, columns)."""
        x = broadcast_over_groups(x, getattr(self, self.silenced[0]).ndim - 1)
        return np.where(np.isnan(x), 0.0, self.terms(x))

    def terms(self, x: np.ndarray) -> np.ndarray:
        """Return log p of cells that are not missing."""
        raise NotImplementedError

    def without_columns(self, columns: np.ndarray) -> Self:
        """Return the form with contribution 0 of some columns."""
        size = getattr(self, self.silenced[0]).shape
        zeroed = {name: np.array(np.broadcast_to(getattr(self, name), size)) for name in self.silenced}
        for array in zeroed.values():
            array[..., columns] = 0.0
        return replace(self, **zeroed)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class LinearLogForm(ColumnForm):
    """Linear in the cell: log p = bias + weight · x + a term equal in all groups.

    Parameters
    ----------
    weight : ndarray
        −inf if only 0 is possible.
    bias : ndarray, or of shape (*given, 1) where it is 0
        log p(0); if it is −inf, ``weight`` alone is log p of any other x.
    support : {"binary", "count", "nonnegative"}
        Valid cells. ``"nonnegative"`` does not allow missing cells.
    base : {None, "poisson", "multinomial"}
        Term equal in all groups: none, −Σ log x!, or −Σ log x! + log (Σx)!.
    """

    weight: np.ndarray
    bias: np.ndarray
    support: str
    base: str | None = None

    silenced: ClassVar[tuple[str, ...]] = ("weight", "bias")

    def terms(self, x: np.ndarray) -> np.ndarray:
        """Return log p of cells, without the row term of a multinomial."""
        with np.errstate(invalid="ignore"):
            terms = np.where(x != 0, np.where(np.isneginf(self.bias), 0.0, self.bias) + x * self.weight, self.bias)
        return terms if self.base is None else terms - log_factorials(np.where(np.isnan(x), 0.0, x))

    @cached_property
    def cells(self) -> CellSumForm:
        """Return the form as a sum over cells, for sparse rows that no kernel supports."""
        zero, weight = np.broadcast_to(self.bias, self.weight.shape), self.weight
        if self.base is None:
            return CellSumForm(zero, lambda x, j: x * weight[..., j])
        row_term = log_factorials if self.base == "multinomial" else None
        return CellSumForm(zero, lambda x, j: x * weight[..., j] - log_factorials(x), row_term)


@dataclass(frozen=True, eq=False)
class NormalForm(ColumnForm):
    """A normal density of every column: log p = log_norm − ½ · precision · (x − mean)².

    ``shared`` marks a precision shared by all groups.
    """

    mean: np.ndarray
    precision: np.ndarray
    log_norm: np.ndarray
    shared: bool = False

    silenced: ClassVar[tuple[str, ...]] = ("precision", "log_norm")

    def terms(self, x: np.ndarray) -> np.ndarray:
        """Return log p of cells."""
        return self.log_norm - 0.5 * self.precision * (x - self.mean) ** 2


@dataclass(frozen=True, eq=False)
class StudentTForm(ColumnForm):
    """A Student's t density of every column: log p = log_norm − power · log(1 + inverse_spread · (x − location)²)."""

    location: np.ndarray
    inverse_spread: np.ndarray
    power: np.ndarray
    log_norm: np.ndarray

    silenced: ClassVar[tuple[str, ...]] = ("inverse_spread", "log_norm")

    def terms(self, x: np.ndarray) -> np.ndarray:
        """Return log p of cells."""
        return self.log_norm - self.power * np.log1p(self.inverse_spread * (x - self.location) ** 2)


@dataclass(frozen=True, eq=False)
class MultivariateNormalForm:
    """A normal density of whole rows, columns varying together.

    Parameters
    ----------
    mean : ndarray of shape (*given, columns)
    covariance : ndarray of shape (*given, columns, columns)
    shared : bool
        Whether all groups have the same covariance.
    evaluate : callable
        log p of every row, (n, *given); missing cells are marginalized.
    """

    mean: np.ndarray
    covariance: np.ndarray
    shared: bool
    evaluate: Callable[[np.ndarray], np.ndarray]

    def without_columns(self, columns: np.ndarray) -> MultivariateNormalForm:
        """Return the form with contribution 0 of some columns."""
        mean, covariance = np.array(self.mean), np.array(self.covariance)
        mean[..., columns] = 0.0
        covariance[..., columns, :] = covariance[..., :, columns] = 0.0
        covariance[..., columns, columns] = 1.0

        def evaluate(x: np.ndarray) -> np.ndarray:
            x = np.array(x, dtype=np.float64)
            x[:, columns] = np.nan
            return self.evaluate(x)

        return MultivariateNormalForm(mean, covariance, self.shared, evaluate)

    def whitened(self, rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of known columns whitened by every covariance, (n, groups, k), and the log determinants."""
        distinct = self.covariance[:1] if self.shared else self.covariance
        distinct = distinct[:, known[:, None], known]
        return whiten(rows, np.linalg.cholesky(np.where(np.isnan(distinct), np.eye(len(known)), distinct)))


@dataclass(frozen=True, eq=False)
class MultivariateTForm:
    """A multivariate t density: log p = log_norm − (shape + k/2) · log(1 + squared distance), for k known cells.

    Parameters
    ----------
    location : ndarray of shape (*given, columns)
    shape : ndarray of shape (*given,)
        Half the degrees of freedom.
    whitened : callable
        Maps rows (n, k) and their known columns to rows whitened by every group's scale, (n, groups, k), and the log
        determinants, (groups,); groups that share a scale have length 1.
    evaluate : callable
        log p of every row, (n, *given); missing cells are marginalized.
    """

    location: np.ndarray
    shape: np.ndarray
    whitened: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    evaluate: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class CellSumForm:
    """log p(row) = Σ over columns of f_j(x_j), plus an optional term of the row sum.

    A sparse row is scored by Σ f_j(0) and the differences f_j(x) − f_j(0) at its nonzero cells.

    Parameters
    ----------
    at_zero : ndarray of shape (*given, columns)
        f_j(0); −inf if no cell may be 0, NaN if the parameter is undefined.
    term : callable
        ``term(value, column)``, both of shape (m,), returns f_j(x) − f_j(0), shape (*given, m); f_j(x) if f_j(0) is not
        finite.
    row_term : callable, optional
        Maps row sums, shape (m,), to an array of shape (*given, m).

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.families._shared.blocks import SparseRows
    >>> from tallybayes.families._shared.log_prob_forms import CellSumForm
    >>> rate = np.array([[1.0, 2.0], [3.0, 0.5]])
    >>> form = CellSumForm(-rate, lambda value, column: value * np.log(rate[:, column]))
    >>> form.score(SparseRows(np.array([0, 0, 1]), np.array([0]), np.array([1.0]), 2)).round(4)
    array([[-3.    , -3.5   ],
           [-3.    , -2.4014]])
    """

    at_zero: np.ndarray
    term: Term
    row_term: Callable[[np.ndarray], np.ndarray] | None = None

    def score(self, rows: SparseRows) -> np.ndarray:
        """Return log p of every row, shape (n, *given); a stored NaN is a missing cell. Memory is bounded."""
        rows, given = rows.without_zeros(), self.at_zero.shape[:-1]
        out = np.empty((len(rows.indptr) - 1, self._flat.shape[0]))
        for chunk in row_chunks(rows.indptr):
            out[chunk] = self._score(rows.rows(chunk))
        if rows.missing_rows is not None:
            out[rows.missing_rows] = 0.0
        return out.reshape(len(out), *given)

    def gap(self, row: SparseRows, first: int, second: int) -> np.ndarray:
        """Return the difference of log p between two groups for every cell of one row, shape (columns,).

        The row term is distributed over the cells in proportion to their values.
        """
        if row.missing_rows is not None and row.missing_rows.all():
            return np.zeros(row.n_columns)
        row, pair = row.without_zeros(), np.array([first, second])
        value, column = np.asarray(row.data, dtype=np.float64), row.indices
        zero, terms = self._flat[pair], self._terms(value, column)[pair]
        if self.row_term is not None and len(value):
            total = value.sum()
            row_term = np.broadcast_to(self.row_term(np.array([total])), (*self.at_zero.shape[:-1], 1))
            terms = terms + row_term.reshape(-1, 1)[pair] * value / total
        log_p = zero[:, column]
        log_p = np.where(np.isnan(value), 0.0, np.where(np.isfinite(log_p), log_p, 0.0) + terms)
        with np.errstate(invalid="ignore"):
            out = np.asarray(zero[0] - zero[1])
            out[column] = log_p[0] - log_p[1]
        return out

    @cached_property
    def _flat(self) -> np.ndarray:
        """Return `at_zero` with one axis of groups."""
        return np.asarray(self.at_zero).reshape(math.prod(self.at_zero.shape[:-1]), self.at_zero.shape[-1])

    @cached_property
    def _base(self) -> np.ndarray:
        """Return the sum over a row of zeros, of the finite terms: (groups,)."""
        return np.where(np.isfinite(self._flat), self._flat, 0.0).sum(axis=1)

    @cached_property
    def _nonfinite(self) -> np.ndarray | None:
        """Return which f_j(0) are −inf and which NaN, (2 · groups, columns); None if all are finite.

        They are counted separately, since −inf − (−inf) is undefined.
        """
        nonfinite = np.concatenate([np.isneginf(self._flat), np.isnan(self._flat)])
        return nonfinite if nonfinite.any() else None

    def _terms(self, value: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Return the terms of cells, (groups, m), in batches; a missing cell cancels its f_j(0)."""
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

    def _score(self, rows: SparseRows) -> np.ndarray:
        """Return log p of rows that fit in memory, by a sparse matrix product over distinct cells."""
        from scipy.sparse import csr_array

        value, column, cell_of_entry = _distinct_cells(rows)
        shape = len(rows.indptr) - 1, len(value)
        entries = csr_array((np.ones(len(cell_of_entry)), cell_of_entry, rows.indptr), shape=shape)
        with np.errstate(invalid="ignore"):
            out = np.asarray(entries @ np.ascontiguousarray(self._terms(value, column).T)) + self._base
        if self.row_term is not None:
            out += np.reshape(self.row_term(rows.sum_rows(np.asarray(rows.data))), (-1, shape[0])).T
        if self._nonfinite is not None:
            remaining = self._nonfinite.sum(axis=1) - np.asarray(
                entries @ self._nonfinite[:, column].T.astype(np.float64)
            )
            impossible, undefined = np.split(remaining > 0, 2, axis=1)
            out = np.where(undefined, np.nan, np.where(impossible & ~np.isnan(out), -np.inf, out))
        return out


class PolyaUrnForm(CellSumForm):
    """Pólya urns: f_j(x) = at_zero + log_choose(start, x) + slope · x.

    Parameters
    ----------
    at_zero, start, slope : ndarray of shape (*given, columns)
    total : ndarray of shape (*given, 1), optional
        For one urn over all columns: adds −log_choose(total, N) for the sum N of a complete row.
    """

    def __init__(
        self, at_zero: np.ndarray, start: np.ndarray, slope: np.ndarray, total: np.ndarray | None = None
    ) -> None:
        def term(x: np.ndarray, j: np.ndarray) -> np.ndarray:
            return log_choose(start[..., j], x) + x * slope[..., j]

        super().__init__(at_zero, term, None if total is None else lambda n: -log_choose(total, n))
        self.start, self.slope, self.total = start, slope, total


Form = (
    LogTableForm | LinearLogForm | NormalForm | StudentTForm | MultivariateNormalForm | MultivariateTForm | CellSumForm
)


def as_cells(form: Form | None) -> CellSumForm | None:
    """Return a form as a sum over cells, or None if it is not one."""
    return form.cells if isinstance(form, LinearLogForm) else form if isinstance(form, CellSumForm) else None


def row_chunks(indptr: np.ndarray) -> Iterator[slice]:
    """Yield slices of consecutive rows, at least one each, with a bounded number of entries."""
    n_rows, first = len(indptr) - 1, 0
    while first < n_rows:
        last = int(np.searchsorted(indptr, int(indptr[first]) + _CELLS, side="right")) - 1
        last = min(max(last, first + 1), n_rows, first + _CELLS)
        yield slice(first, last)
        first = last


def _distinct_cells(rows: SparseRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct cells of rows as values and columns, and the index of every entry's cell.

    Most word counts are 1, so there are far fewer distinct cells than entries.
    """
    value = np.asarray(rows.data, dtype=np.float64)
    most = value.max(initial=0.0)  # NaN, if there is one
    if not most < 2**20 or not (value == np.floor(value)).all() or value.min(initial=0.0) < 0:
        return value, rows.indices, np.arange(len(value))
    size = int(most) + 1
    key, inverse = np.unique(rows.indices.astype(np.int64) * size + value.astype(np.int64), return_inverse=True)
    return (key % size).astype(np.float64), key // size, inverse
