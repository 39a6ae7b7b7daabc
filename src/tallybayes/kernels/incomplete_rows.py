"""Exact inference in discrete Bayesian networks for many rows with missing values.

Given the observed values of a row, its missing variables separate into independent components, most of them of one or
two variables. Rows with equal observed values around a component share its computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.arguments import threads as n_threads
from tallybayes.kernels.reference import incomplete_rows as _reference

__all__ = ["IncompleteRows"]


class IncompleteRows:
    """Rows with missing values under a product of factors; prepares everything that does not depend on the tables.

    Parameters
    ----------
    codes : int32 array of shape (n, d)
        Codes in ``[0, size)``; −1 is a missing value.
    sizes : sequence of d int
        Number of levels of every variable, at least 1.
    scopes : sequence of sequences of int
        Variables of every factor, in the order of its table's axes. Every variable is in at least one scope.
    order : sequence of d int
        Elimination order of the variables within a component.
    by_row : int, default 0
        Number of factors, the last ones, with a separate table for every row.
    weight : float64 array of shape (n,), optional
        Sample weights, 1 by default.
    sums_to_one : sequence of int, optional
        Variable over which each factor sums to one, −1 for none. A factor is skipped if this variable and all its
        descendants are missing (barren nodes). By default no factor is skipped.
    requested : sequence of int, optional
        Variables whose posterior can be computed; all by default.

    Attributes
    ----------
    cells : float
        Largest total number of table cells of a component.

    Raises
    ------
    ValueError, TypeError
        If an array has a wrong shape or type, a code is invalid, or a scope is empty, repeats a variable or contains an
        unknown variable.

    Examples
    --------
    Rain makes the grass wet. The second row has wet grass, and rain is missing:

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
        requested: Sequence[int] | None = None,
    ) -> None:
        _arguments.check_array(codes, "codes", 2, frozenset({np.dtype(np.int32)}))
        n, d = codes.shape
        levels = np.asarray(sizes, dtype=np.int64)
        if levels.shape != (d,) or not d or levels.min() < 1:
            raise ValueError(f"sizes are {levels.tolist()}, expected {d} whole numbers of at least 1")
        if n and (codes.min() < -1 or (codes >= levels).any()):
            raise ValueError("codes has an invalid code, expected −1 or less than the size of its variable")
        _arguments.check_groups(None, 1, weight, n)
        members = _check_scopes(scopes, d)
        if sorted(order) != list(range(d)):
            raise ValueError(f"order is {list(order)}, expected every variable from 0 to {d - 1} once")
        if not 0 <= by_row <= len(members):
            raise ValueError(f"by_row is {by_row}, expected 0 to {len(members)}")
        allowed = np.ones(d, dtype=np.uint8) if requested is None else _flags(requested, d)
        self._n_rows = n
        self._sizes = levels
        self._n_shared = len(members) - by_row
        self._shapes = [tuple(levels[list(scope)].tolist()) for scope in members]
        self._rows = implementation_for(_reference).PartlyKnown(
            np.ascontiguousarray(codes).reshape(-1),
            levels,
            np.array([variable for scope in members for variable in scope], dtype=np.int64),
            np.cumsum([len(scope) for scope in members], dtype=np.int64),
            (np.arange(len(members)) >= self._n_shared).astype(np.uint8),
            _check_sums_to_one(sums_to_one, members),
            np.asarray(order, dtype=np.int64),
            allowed,
            weight,
        )
        self.cells = float(self._rows.cells)

    def expected_counts(self, tables: Sequence[AnyArray], threads: int = 0) -> tuple[list[Float64Array], float]:
        """Return the expected weight of every cell of each table, summed over all rows, and the log likelihood.

        For rows in which all variables of a factor are observed, the factor is excluded from both.

        Parameters
        ----------
        tables : sequence of arrays
            Table of every factor, with one axis per variable. Tables by row contain logarithms, and their first axis is
            the row.
        threads : int, default 0
            See the conventions of `tallybayes.kernels`.
        """
        flat, logs = self._flatten(tables)
        counts, log_likelihood = self._rows.expect(flat, logs, n_threads(threads))
        ends = np.cumsum([0, *(np.size(table) for table in tables)])
        parts = [counts[first:last] for first, last in pairwise(ends.tolist())]
        return [part.reshape(np.shape(table)) for part, table in zip(parts, tables, strict=True)], float(log_likelihood)

    def posterior(
        self, tables: Sequence[AnyArray], requested: Sequence[int] = (), threads: int = 0
    ) -> tuple[list[Float64Array], Float64Array]:
        """Return the posterior of some variables where they are missing, (n, levels), and the rows' log likelihoods.

        The posterior of an observed variable is 0. Factors whose variables are all observed are excluded from the log
        likelihood.

        Parameters
        ----------
        tables : sequence of arrays
            As in `expected_counts`.
        requested : sequence of int
            Variables in ascending order.
        threads : int, default 0
        """
        flat, logs = self._flatten(tables)
        flags = _flags(requested, len(self._sizes))
        probabilities, log_likelihood = self._rows.answer(flat, logs, flags, n_threads(threads))
        sizes = [int(self._sizes[variable]) for variable in requested]
        ends = np.cumsum([0, *(self._n_rows * size for size in sizes)]).tolist()
        parts = [
            probabilities[first:last].reshape(-1, size)
            for (first, last), size in zip(pairwise(ends), sizes, strict=True)
        ]
        return parts, log_likelihood

    def _flatten(self, tables: Sequence[AnyArray]) -> tuple[Float64Array, Float64Array]:
        """Return all tables concatenated, and their logarithms."""
        for number, (table, shape) in enumerate(zip(tables, self._shapes, strict=True)):
            expected = shape if number < self._n_shared else (self._n_rows, *shape)
            if np.shape(table) != expected:
                raise ValueError(f"table {number} has shape {np.shape(table)}, expected {expected}")
        shared = [np.ravel(table) for table in tables[: self._n_shared]]
        flat = np.concatenate(shared, dtype=np.float64) if shared else np.zeros(0)
        with np.errstate(divide="ignore"):
            logs = np.log(flat)
        by_row = [np.ravel(table) for table in tables[self._n_shared :]]
        if not by_row:
            return flat, logs
        row_logs = np.concatenate(by_row, dtype=np.float64)
        return np.concatenate([flat, np.exp(row_logs)]), np.concatenate([logs, row_logs])


def _flags(variables: Sequence[int], n_variables: int) -> AnyArray:
    """Return 1 for the given variables and 0 for all others."""
    flags = np.zeros(n_variables, dtype=np.uint8)
    flags[list(variables)] = 1
    return flags


def _check_scopes(scopes: Sequence[Sequence[int]], n_variables: int) -> list[tuple[int, ...]]:
    """Return the scopes as tuples of int, or raise ValueError."""
    members = [tuple(map(int, scope)) for scope in scopes]
    if not all(scope and len(set(scope)) == len(scope) for scope in members):
        raise ValueError("a scope is empty or repeats a variable, expected distinct variables")
    if {variable for scope in members for variable in scope} != set(range(n_variables)):
        raise ValueError(f"the scopes do not cover exactly the variables, expected 0 to {n_variables - 1}")
    return members


def _check_sums_to_one(sums_to_one: Sequence[int] | None, members: list[tuple[int, ...]]) -> Int64Array:
    """Return the variable over which each factor sums to one, −1 for none, or raise ValueError."""
    if sums_to_one is None:
        return np.full(len(members), -1, dtype=np.int64)
    variables = np.asarray(sums_to_one, dtype=np.int64)
    if variables.shape != (len(members),) or any(
        k >= 0 and k not in scope for k, scope in zip(variables, members, strict=True)
    ):
        raise ValueError("sums_to_one has to name a variable of every factor, or −1")
    return variables
