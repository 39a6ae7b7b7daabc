"""Rows of codes of which some are missing, under a product of tables: what the rest of each row makes probable.

These are the rows of a Bayesian network. Given what is known of a row, its missing cells fall apart into components
that tell nothing about each other, most of them of one or two cells; rows that agree around one are answered together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Float64Array
from tallybayes.kernels.reference import incomplete_rows as _reference_partly_known
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["IncompleteRows"]


class IncompleteRows:
    """Rows of codes of which some are missing; all that does not depend on the numbers in the tables is found once.

    Parameters
    ----------
    codes : int32 array of shape (n, d)
        Codes in ``[0, size)``; −1 where one is missing.
    sizes : sequence of d int
        The number of levels of every variable, at least 1.
    scopes : sequence of sequences of int
        The variables of every factor, in the order of its table's axes. Every variable is in one at least.
    order : sequence of d int
        The order in which variables are summed out where several are missing that hang together.
    by_row : int, default 0
        How many of the factors, the last ones, have a table for every row.
    weight : float64 array of shape (n,), optional
        1 for every row if left out.
    sums_to_one : sequence of int, optional
        The variable over which each factor sums to one, −1 for none, so that it need not be looked at where nothing
        is known of that variable nor of what depends on it; without, nothing is left out.
    asked : sequence of int, optional
        The variables that may be asked for, all if left out.

    Attributes
    ----------
    cells : float
        The cells of all tables that a row needs at a time, at most.

    Raises
    ------
    ValueError, TypeError
        Where an array has another shape or type, a code is neither valid nor −1, or a factor names no variables, one
        twice, or one that does not exist.

    Examples
    --------
    Rain makes the grass wet. Of the second of two days only that is known:

    >>> import numpy as np
    >>> from tallybayes.kernels.incomplete_rows import IncompleteRows
    >>> rows = IncompleteRows(np.array([[0, 1], [-1, 1]], dtype=np.int32), [2, 2], [(0,), (0, 1)], [1, 0])
    >>> tables = [np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.2, 0.8]])]
    >>> (rain, wet), log_likelihood = rows.expected_counts(tables)
    >>> rain.round(3), wet.round(3)
    (array([0.333, 0.667]), array([[0.   , 0.333],
           [0.   , 0.667]]))
    >>> float(np.exp(log_likelihood).round(3))
    0.24
    >>> (rain,), log_likelihoods = rows.posterior(tables, [0])
    >>> rain.round(3), np.exp(log_likelihoods).round(3)
    (array([[0.   , 0.   ],
           [0.333, 0.667]]), array([1.  , 0.24]))
    """

    def __init__(
        self,
        codes: AnyArray,
        sizes: Sequence[int],
        scopes: Sequence[Sequence[int]],
        order: Sequence[int],
        *,
        by_row: int = 0,
        weight: Float64Array | None = None,
        sums_to_one: Sequence[int] | None = None,
        asked: Sequence[int] | None = None,
    ) -> None:
        _arguments.check_array(codes, "codes", 2, frozenset({np.dtype(np.int32)}))
        n, d = codes.shape
        levels = np.asarray(sizes, dtype=np.int64)
        if levels.shape != (d,) or not d or levels.min() < 1:
            raise ValueError(f"sizes are {levels.tolist()}, expected {d} whole numbers of at least 1")
        if n and (codes.min() < -1 or (codes >= levels).any()):
            raise ValueError("codes has one that is no level, expected −1 or less than its variable's size")
        _arguments.check_groups(None, 1, weight, n)
        chosen = [tuple(map(int, scope)) for scope in scopes]
        if not all(scope and len(set(scope)) == len(scope) for scope in chosen):
            raise ValueError("a scope is empty or names a variable twice, expected every one once")
        if {place for scope in chosen for place in scope} != set(range(d)):
            raise ValueError(f"the scopes do not name all variables and no others, expected 0 to {d - 1}")
        if sorted(order) != list(range(d)):
            raise ValueError(f"order is {list(order)}, expected every variable from 0 to {d - 1} once")
        if not 0 <= by_row <= len(chosen):
            raise ValueError(f"by_row is {by_row}, expected 0 to {len(chosen)}")
        normal = np.full(len(chosen), -1) if sums_to_one is None else np.asarray(sums_to_one)
        if normal.shape != (len(chosen),) or not all(
            k < 0 or k in scope for k, scope in zip(normal, chosen, strict=True)
        ):
            raise ValueError("sums_to_one has to name a variable of every factor, or −1")
        kept = np.ones(d, dtype=np.uint8)
        if asked is not None:
            kept[:] = 0
            kept[list(asked)] = 1
        self._n_rows, self._sizes, self._n_shared = n, levels, len(chosen) - by_row
        self._shapes = [tuple(levels[list(scope)].tolist()) for scope in chosen]
        self._rows = _implementation().PartlyKnown(
            np.ascontiguousarray(codes).reshape(-1),
            levels,
            np.array([place for scope in chosen for place in scope], dtype=np.int64),
            np.cumsum([len(scope) for scope in chosen], dtype=np.int64),
            (np.arange(len(chosen)) >= self._n_shared).astype(np.uint8),
            np.full(len(chosen), -1, dtype=np.int64)
            if sums_to_one is None
            else np.asarray(sums_to_one, dtype=np.int64),
            np.asarray(order, dtype=np.int64),
            kept,
            weight,
        )
        self.cells = float(self._rows.cells)

    def expected_counts(self, tables: Sequence[AnyArray], threads: int = 0) -> tuple[list[Float64Array], float]:
        """Return the expected weight of every cell of each table, over all rows, and the log likelihood.

        Factors of which a row misses no variable are left out of both: they are to be counted once.

        Parameters
        ----------
        tables : sequence of arrays
            Of every factor, one axis a variable; of those by row their logarithms, rows first.
        threads : int, default 0
            0 for as many as there are cores. The result is the same to the last bit for every number of threads.
        """
        flat, logs = self._numbers(tables)
        counts, log_likelihood = self._rows.expect(flat, logs, n_threads(threads))
        ends = np.cumsum([0, *(np.size(table) for table in tables)])
        parts = [counts[first:last] for first, last in pairwise(ends.tolist())]
        return [part.reshape(np.shape(table)) for part, table in zip(parts, tables, strict=True)], float(log_likelihood)

    def posterior(
        self, tables: Sequence[AnyArray], asked: Sequence[int] = (), threads: int = 0
    ) -> tuple[list[Float64Array], Float64Array]:
        """Return the distribution of some variables where they are missing, (n, levels), and the rows' log likelihood.

        What is known has zeros in the former; factors of which a row misses no variable are left out of the latter.

        Parameters
        ----------
        tables : sequence of arrays
            As for `expected_counts`.
        asked : sequence of int
            Rising.
        threads : int, default 0
        """
        flat, logs = self._numbers(tables)
        flags = np.zeros(len(self._sizes), dtype=np.uint8)
        flags[list(asked)] = 1
        found, log_likelihood = self._rows.answer(flat, logs, flags, n_threads(threads))
        sizes = [int(self._sizes[variable]) for variable in asked]
        ends = np.cumsum([0, *(self._n_rows * size for size in sizes)]).tolist()
        parts = [found[first:last].reshape(-1, size) for (first, last), size in zip(pairwise(ends), sizes, strict=True)]
        return parts, log_likelihood

    def _numbers(self, tables: Sequence[AnyArray]) -> tuple[Float64Array, Float64Array]:
        """All tables in one line, and their logarithms."""
        for number, (table, shape) in enumerate(zip(tables, self._shapes, strict=True)):
            wanted = shape if number < self._n_shared else (self._n_rows, *shape)
            if np.shape(table) != wanted:
                raise ValueError(f"table {number} has shape {np.shape(table)}, expected {wanted}")
        shared = [np.ravel(table) for table in tables[: self._n_shared]]
        flat = np.concatenate(shared, dtype=np.float64) if shared else np.zeros(0)
        with np.errstate(divide="ignore"):
            logs = np.log(flat)
        own = [np.ravel(table) for table in tables[self._n_shared :]]
        if not own:
            return flat, logs
        more = np.concatenate(own, dtype=np.float64)
        return np.concatenate([flat, np.exp(more)]), np.concatenate([logs, more])


def _implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return _reference_partly_known if kernels._kernels is kernels._reference else kernels._kernels
