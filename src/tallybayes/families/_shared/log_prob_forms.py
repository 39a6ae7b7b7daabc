"""The form of a log probability: all that a scorer must know of a family.

A form is one of `LogTableForm`, `LinearLogForm`, `NormalForm`, `StudentTForm`, `MultivariateNormalForm`,
`MultivariateTForm` and `CellSumForm`. Arrays have shape (*given, columns) unless stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tallybayes.distributions.log_gamma import log_choose, log_factorials
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families._shared.mahalanobis import whiten
from tallybayes.families.family import Family, broadcast_over_groups, is_not_overridden
from tallybayes.statistics.segments import Segments

_CELLS = 1 << 19  # entries of a stretch, and terms made at a time: some dozen arrays of them, about 64 MB

Term = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class LogTableForm:
    """Looked up by code: log p = log_p[offset of the column + code]; code −1, missing, adds 0.

    Parameters
    ----------
    log_p : ndarray of shape (*given, cells)
    segments : Segments
        How the cells fall into columns.
    """

    log_p: np.ndarray
    segments: Segments

    def evaluate(self, codes: np.ndarray) -> np.ndarray:
        """log p of every cell: (n, *given, columns)."""
        if self.log_p.shape[-1] == 0:  # a column may have no level at all
            return np.zeros((len(codes), *self.log_p.shape[:-1], codes.shape[1]))
        missing = codes < 0
        picked = self.log_p[..., np.where(missing, 0, codes + self.segments.offsets[:-1])]
        return np.where(broadcast_over_groups(missing, self.log_p.ndim - 1), 0.0, np.moveaxis(picked, -2, 0))


@dataclass(frozen=True, eq=False)
class LinearLogForm:
    """Linear in the cell: log p = bias + weight · x, and what is the same in every group.

    Parameters
    ----------
    weight : ndarray
        May hold −inf, where only 0 is possible.
    bias : ndarray, or of shape (*given, 1) where it is 0
        log p(0); −inf where 0 is impossible, and then ``weight`` alone is log p of any other x.
    support : {"binary", "count", "nonnegative"}
        What cells may hold. Rows of ``"nonnegative"`` cells may lack none.
    base : {None, "poisson", "multinomial"}
        What a row has in common in all groups: nothing, −Σ log x!, or that and log (Σx)!.
    """

    weight: np.ndarray
    bias: np.ndarray
    support: str
    base: str | None = None

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """log p of every cell: (n, *given, columns); a row's own term of a multinomial is not among them."""
        x = broadcast_over_groups(np.asarray(x, dtype=np.float64), self.weight.ndim - 1)
        with np.errstate(invalid="ignore"):
            terms = np.where(x != 0, np.where(np.isneginf(self.bias), 0.0, self.bias) + x * self.weight, self.bias)
        terms = terms if self.base is None else terms - log_factorials(np.where(np.isnan(x), 0.0, x))
        return np.where(np.isnan(x), 0.0, terms)

    @cached_property
    def cells(self) -> CellSumForm:
        """The same as a sum over cells, which sparse rows are scored by where a kernel cannot."""
        zero, weight = np.broadcast_to(self.bias, self.weight.shape), self.weight
        if self.base is None:
            return CellSumForm(zero, lambda x, j: x * weight[..., j])
        row_term = log_factorials if self.base == "multinomial" else None
        return CellSumForm(zero, lambda x, j: x * weight[..., j] - log_factorials(x), row_term)

    def without_columns(self, columns: np.ndarray) -> LinearLogForm:
        """The same with nothing added by some columns."""
        bias = np.array(np.broadcast_to(self.bias, self.weight.shape))
        return LinearLogForm(_silenced(self.weight, columns), _silenced(bias, columns), self.support, self.base)


@dataclass(frozen=True, eq=False)
class NormalForm:
    """A normal density of every column: log p = log_norm − ½ · precision · (x − mean)².

    ``shared`` says whether all groups have the same precision.
    """

    mean: np.ndarray
    precision: np.ndarray
    log_norm: np.ndarray
    shared: bool = False

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """log p of every cell: (n, *given, columns)."""
        x = broadcast_over_groups(np.asarray(x, dtype=np.float64), self.mean.ndim - 1)
        return np.where(np.isnan(x), 0.0, self.log_norm - 0.5 * self.precision * (x - self.mean) ** 2)

    def without_columns(self, columns: np.ndarray) -> NormalForm:
        """The same with nothing added by some columns."""
        return NormalForm(self.mean, _silenced(self.precision, columns), _silenced(self.log_norm, columns), self.shared)


@dataclass(frozen=True, eq=False)
class StudentTForm:
    """A Student density of every column: log p = log_norm − power · log(1 + inverse_spread · (x − location)²)."""

    location: np.ndarray
    inverse_spread: np.ndarray
    power: np.ndarray
    log_norm: np.ndarray

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """log p of every cell: (n, *given, columns)."""
        x = broadcast_over_groups(np.asarray(x, dtype=np.float64), self.location.ndim - 1)
        terms = self.log_norm - self.power * np.log1p(self.inverse_spread * (x - self.location) ** 2)
        return np.where(np.isnan(x), 0.0, terms)

    def without_columns(self, columns: np.ndarray) -> StudentTForm:
        """The same with nothing added by some columns."""
        spread, log_norm = (_silenced(part, columns) for part in (self.inverse_spread, self.log_norm))
        return StudentTForm(self.location, spread, self.power, log_norm)


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
        """The same with nothing added by some columns."""
        mean, covariance = _silenced(self.mean, columns), np.array(self.covariance)
        covariance[..., columns, :] = covariance[..., :, columns] = 0.0
        covariance[..., columns, columns] = 1.0

        def evaluate(x: np.ndarray) -> np.ndarray:
            x = np.array(x, dtype=np.float64)
            x[:, columns] = np.nan
            return self.evaluate(x)

        return MultivariateNormalForm(mean, covariance, self.shared, evaluate)

    def whitened(self, rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of known columns by the inverse root of every covariance, (n, groups, k), and the log determinants."""
        own = self.covariance[:1] if self.shared else self.covariance
        own = own[:, known[:, None], known]
        return whiten(rows, np.linalg.cholesky(np.where(np.isnan(own), np.eye(len(known)), own)))


@dataclass(frozen=True, eq=False)
class MultivariateTForm:
    """A Student density of whole rows: log p = log_norm − (shape + k/2) · log(1 + squared length), of k known cells.

    Parameters
    ----------
    location : ndarray of shape (*given, columns)
    shape : ndarray of shape (*given,)
        Half the degrees of freedom.
    turned : callable
        Of rows (n, k) and the columns known, gives the rows by the inverse root of every group's scale, (n, groups, k),
        and the log determinants of these, (groups,); groups that share one as one.
    evaluate : callable
        log p of every row, (n, *given); missing cells are marginalized.
    """

    location: np.ndarray
    shape: np.ndarray
    whitened: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    evaluate: Callable[[np.ndarray], np.ndarray]


def _silenced(array: np.ndarray, columns: np.ndarray) -> np.ndarray:
    out = np.array(array)
    out[..., columns] = 0.0
    return out


@dataclass(frozen=True, eq=False)
class CellSumForm:
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
        """log p of every row, shape (n, *given); a stored NaN is a missing cell. Memory stays bounded."""
        rows, given = rows.without_zeros(), self.at_zero.shape[:-1]
        out = np.empty((len(rows.indptr) - 1, self._flat.shape[0]))
        for part in row_chunks(rows.indptr):
            out[part] = self._score(rows.rows(part))
        if rows.missing_rows is not None:
            out[rows.missing_rows] = 0.0
        return out.reshape(len(out), *given)

    def gap(self, row: SparseRows, first: int, second: int) -> np.ndarray:
        """How much more likely every cell of one row is in one group than in another, shape (columns,).

        The term of the row as a whole is shared out among its cells as they share its sum.
        """
        if row.missing_rows is not None and row.missing_rows.all():
            return np.zeros(row.n_columns)
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
        return np.asarray(self.at_zero).reshape(math.prod(self.at_zero.shape[:-1]), self.at_zero.shape[-1])

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

    def _score(self, rows: SparseRows) -> np.ndarray:
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


class PolyaUrnForm(CellSumForm):
    """Urns that grow by what is drawn: f_j(x) = at_zero + log_choose(start, x) + slope · x.

    Parameters
    ----------
    at_zero, start, slope : ndarray of shape (*given, columns)
    total : ndarray of shape (*given, 1), optional
        Of one urn for all columns: −log_choose(total, N) is added for the sum N of a row, which lacks no cell.
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


def form_of(family: Family, parameters: Any, predictive: bool) -> Form | None:
    """The form of a family's log probability, or None where it has not said one.

    A family of a user's own that scores in another way than the one it is made from has no form until it says one.
    """
    said, meant = ("log_predictive_form", "log_predictive") if predictive else ("log_prob_form", "log_prob")
    if not is_not_overridden(family, said, meant) or (
        predictive and not isinstance(parameters, family.conjugate_prior)
    ):
        return None
    return (family.log_predictive_form if predictive else family.log_prob_form)(parameters)


def as_cells(form: Form | None) -> CellSumForm | None:
    """A form as a sum over cells, where it is one that sparse rows can be scored by."""
    return form.cells if isinstance(form, LinearLogForm) else form if isinstance(form, CellSumForm) else None


def row_chunks(indptr: np.ndarray) -> Iterator[slice]:
    """Rows that lie together, at least one each, of a bounded number of entries."""
    n_rows, first = len(indptr) - 1, 0
    while first < n_rows:
        last = int(np.searchsorted(indptr, int(indptr[first]) + _CELLS, side="right")) - 1
        last = min(max(last, first + 1), n_rows, first + _CELLS)
        yield slice(first, last)
        first = last


def _different(rows: SparseRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
