"""Scoring rows: log p(row, class) of every class, and the class where it is largest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.reference import scoring as _reference_scoring
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["Scorer", "column_ranges", "posterior_by_part"]

Block = Columns | tuple[AnyArray, AnyArray, AnyArray]
Factor = tuple[Any, ...]

_LENGTHS = {"codes": 4, "linear": 4, "normal": 4, "student": 5, "left_out": 6, "sparse": 3, "terms": 1}
_CHECKS = {"linear": ("binary", "count", "finite"), "sparse": ("binary", "count", "finite", "nonnegative")}
_BEYOND = ("missing", "error")


class _Prepared(Protocol):
    """What both implementations offer."""

    def joint(self, blocks: Sequence[Block], n_rows: int, threads: int) -> Float64Array: ...
    def argmax(self, blocks: Sequence[Block], n_rows: int, threads: int) -> Int64Array: ...
    def posterior(
        self,
        blocks: Sequence[Block],
        n_rows: int,
        log_prior: Float64Array,
        rows: Int64Array | None,
        log_proba: Float64Array,
        log_density: Float64Array,
        threads: int,
    ) -> None: ...


def _implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return _reference_scoring if kernels._kernels is kernels._reference else kernels._kernels


def column_ranges(columns: Columns, threads: int = 0) -> tuple[Int64Array, Int64Array]:
    """Find the smallest and the largest value of every integer column.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, any integer type or bool
    threads : int
        0 for as many as there are cores.

    Returns
    -------
    low, high : int64 arrays of shape (d,)
        0 and −1 where there are no rows.

    Raises
    ------
    OverflowError
        Where an unsigned number exceeds 2⁶³ − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> low, high = kernels.column_ranges(np.array([[3, -1], [0, 7]]))
    >>> low.tolist(), high.tolist()
    ([0, -1], [3, 7])
    """
    _arguments.check_columns(columns, "columns", _arguments.LEVEL_TYPES, None)
    found: tuple[Int64Array, Int64Array] = _implementation().column_ranges(columns, n_threads(threads))
    return found


class Scorer:
    """The factors of a classifier, prepared once to score any number of rows.

    The score of row x for class k is ``start[k]`` plus what every factor adds. A factor is a tuple; K is the number of
    classes, d the number of columns of its block:

    ``("codes", sizes (d,), table (sum(sizes), K), beyond)``
        adds ``table[offset_j + code]`` for every column j, ``offset_j`` being the sum of the earlier sizes. Entries may
        be −inf. A missing code (−1, or the largest value of an unsigned type where that is no valid code) adds 0; any
        other code outside ``[0, size)`` too if `beyond` is ``"missing"``, and is an error if it is ``"error"``.
    ``("linear", weight (d, K), bias (d, K), check)``
        adds Σ x·weight + bias. `check`: which cells are allowed, ``"binary"``, ``"count"`` or ``"finite"``.
    ``("normal", mean (d, K), precision (d, K), log_norm (d, K))``
        adds Σ log_norm − ½·precision·(x − mean)².
    ``("student", mean (d, K), inverse_spread (d, K), power (d, K), log_norm (d, K))``
        adds Σ log_norm − power·log(1 + (x − mean)²·inverse_spread). One logarithm for each row and class if the columns
        of a class share their power.
    ``("left_out", k, mean (d,), inverse_spread (d,), power (d,), log_norm (d,))``
        adds Σ log_norm + power·log(1 − (x − mean)²·inverse_spread) to class k alone: a Student t from which the row
        itself was taken out. NaN where 1 − … is below 1e-5, which is too little to go by.
    ``("sparse", weight (d, K), check)``
        adds Σ x·weight over the stored entries of CSR rows. `check` may also be ``"nonnegative"``. Weights may be −inf,
        except with ``"finite"``; a stored 0 adds nothing even there.
    ``("terms",)``
        adds its block, a float64 array of shape (n, K), as it is.

    Dense cells that are NaN are missing and add nothing. Infinite cells are errors, and so is a stored NaN.

    Parameters
    ----------
    start : array of shape (K,)
        log p(class); may hold −inf.
    factors : sequence of tuples

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> table = np.log([[0.9, 0.2], [0.1, 0.8]])
    >>> scorer = kernels.Scorer(np.log([0.5, 0.5]), [("codes", [2], table, "missing")])
    >>> scorer.argmax([np.array([[0], [1], [-1]])], 3).tolist()
    [0, 1, 0]
    >>> np.exp(scorer.joint([np.array([[1]])], 1)).round(3)
    array([[0.05, 0.4 ]])
    """

    __slots__ = ("_prepared", "_sparse", "n_bytes", "n_classes", "shape")

    def __init__(self, start: npt.ArrayLike, factors: Sequence[Factor]) -> None:
        first = np.ascontiguousarray(start, dtype=np.float64)
        if first.ndim != 1 or not len(first):
            raise ValueError(f"start has shape {first.shape}, expected one axis with at least one class")
        _refuse_unbounded(first, "start")
        checked = [_check_factor(factor, f"factors[{i}]", len(first)) for i, factor in enumerate(factors)]
        self.n_classes = len(first)
        self.n_bytes = sum(part.nbytes for factor in checked for part in factor if isinstance(part, np.ndarray))
        self.shape = (len(first), *((part[0], len(part[-2]) if len(part) > 1 else 0) for part in checked))
        self._sparse = [i for i, factor in enumerate(checked) if factor[0] == "sparse"]
        self._prepared: _Prepared = _implementation().Scorer(first, checked)

    def joint(self, blocks: Sequence[Block], n_rows: int, threads: int = 0) -> Float64Array:
        """Return log p(row, class) of every row and class.

        Parameters
        ----------
        blocks : sequence, one block of data for each factor
            A 2-D array of any layout or a list of 1-D columns (codes: integers; otherwise bool, integers, float32 or
            float64); for a sparse factor a tuple ``(indptr, indices, data)``. Read in place.
        n_rows : int
        threads : int
            0 for as many as there are cores. The result is the same to the last bit for every number.

        Returns
        -------
        float64 array of shape (n_rows, K)

        Raises
        ------
        CellError
            At the first cell, by factor, then row, then column, that its factor refuses; its attribute ``factor`` is
            the factor's position.
        IndexError
            Where indptr or indices point outside the matrix.
        ValueError, TypeError
            Where a block does not have `n_rows` rows, the factor's columns, or a type that can be read.
        """
        if n_rows < 0:
            raise ValueError(f"n_rows is {n_rows}, expected 0 or more")
        return self._prepared.joint(self._readable(blocks), n_rows, n_threads(threads))

    def argmax(self, blocks: Sequence[Block], n_rows: int, threads: int = 0) -> Int64Array:
        """Return the class with the largest score of every row, the first of them where several are equal.

        Parameters
        ----------
        blocks, n_rows, threads
            As in `joint`.

        Returns
        -------
        int64 array of shape (n_rows,)
            ``joint(blocks, n_rows).argmax(axis=1)``, without that array.

        Raises
        ------
        CellError, IndexError, ValueError, TypeError
            As in `joint`.
        """
        return self.argmax_and_lost(blocks, n_rows, threads)[0]

    def argmax_and_lost(
        self, blocks: Sequence[Block], n_rows: int, threads: int = 0
    ) -> tuple[Int64Array, Int64Array | None]:
        """As `argmax`, and the rows whose largest score is below −1e15, or NaN: ties there may be due to rounding.

        Returns
        -------
        best : int64 array of shape (n_rows,)
        lost : int64 array, or None where there are none
        """
        if n_rows < 0:
            raise ValueError(f"n_rows is {n_rows}, expected 0 or more")
        best = self._prepared.argmax(self._readable(blocks), n_rows, n_threads(threads))
        if not n_rows or best.min() >= 0:
            return best, None
        lost = np.flatnonzero(best < 0)
        best[lost] = ~best[lost]
        return best, lost

    def posterior(
        self,
        blocks: Sequence[Block],
        n_rows: int,
        log_prior: npt.ArrayLike,
        rows: Int64Array | None = None,
        log_proba: Float64Array | None = None,
        log_density: Float64Array | None = None,
        threads: int = 0,
    ) -> tuple[Float64Array, Float64Array]:
        """Return log p(class | row) and log p(row).

        Parameters
        ----------
        blocks, n_rows, threads
            As in `joint`.
        log_prior : array of shape (K,)
            log p(class), for rows that are −inf in every class; it need not sum to 1.
        rows : int64 array, optional
            The numbers of the rows to score, each at most once; all of them by default.
        log_proba : float64 array of shape (n_rows, K), optional
            Where to write, at the rows scored; by default a new array, NaN at all others. May be the block of a factor
            ``("terms",)``.
        log_density : float64 array of shape (n_rows,), optional

        Returns
        -------
        log_proba, log_density
            A row that is −inf in every class has `log_prior`, normalized, and a density of −inf.

        Raises
        ------
        CellError, IndexError, ValueError, TypeError
            As in `joint`, for the rows to score; IndexError also where a number of a row is none.

        Examples
        --------
        >>> import numpy as np
        >>> from tallybayes import kernels
        >>> scorer = kernels.Scorer(np.log([0.5, 0.5]), [("codes", [2], np.log([[0.9, 0.2], [0.1, 0.8]]), "missing")])
        >>> log_proba, log_density = scorer.posterior([np.array([[0], [1]])], 2, np.log([0.5, 0.5]))
        >>> np.exp(log_proba).round(3), np.exp(log_density).round(3)
        (array([[0.818, 0.182],
               [0.111, 0.889]]), array([0.55, 0.45]))
        """
        if n_rows < 0:
            raise ValueError(f"n_rows is {n_rows}, expected 0 or more")
        prior = _check_prior(log_prior, (self.n_classes,))
        make = np.empty if rows is None else _nothing
        log_proba = make((n_rows, self.n_classes)) if log_proba is None else log_proba
        log_density = make(n_rows) if log_density is None else log_density
        _check_result(log_proba, "log_proba", (n_rows, self.n_classes))
        _check_result(log_density, "log_density", (n_rows,))
        if rows is not None and (rows.dtype != np.int64 or rows.ndim != 1):
            raise TypeError(f"rows is {rows.dtype} with {rows.ndim} axes, expected int64 with one")
        chosen = None if rows is None else np.ascontiguousarray(rows)
        self._prepared.posterior(
            self._readable(blocks), n_rows, prior, chosen, log_proba, log_density, n_threads(threads)
        )
        return log_proba, log_density

    def _readable(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Return the blocks with the arrays of CSR matrices made contiguous; those that are, are not copied."""
        if not self._sparse or len(blocks) <= self._sparse[-1]:
            return blocks
        readable: list[Any] = list(blocks)
        for i in self._sparse:
            if isinstance(readable[i], tuple):
                readable[i] = tuple(np.require(part, requirements=["C", "A"]) for part in readable[i])
        return readable


def posterior_by_part(
    scorers: Sequence[Scorer],
    blocks: Sequence[Block],
    n_rows: int,
    part: AnyArray,
    log_prior: npt.ArrayLike,
    log_proba: Float64Array,
    log_density: Float64Array,
    threads: int = 0,
) -> None:
    """Write log p(class | row) and log p(row) of every row, each by the scorer of its part, in one pass.

    What ``Scorer.posterior`` does for the rows of one part after another, quicker as long as the tables of all scorers
    fit the cache together.

    Parameters
    ----------
    scorers : sequence of P scorers
        Of the same kinds of factors, columns and classes.
    blocks, n_rows, threads
        As in `Scorer.joint`.
    part : int array of shape (n_rows,)
        From 0 to P − 1, or −1 for rows to leave alone.
    log_prior : array of shape (P, K)
        log p(class), for rows that are −inf in every class; they need not sum to 1.
    log_proba : float64 array of shape (n_rows, K)
    log_density : float64 array of shape (n_rows,)

    Raises
    ------
    CellError, IndexError, ValueError, TypeError
        As in `Scorer.posterior`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> even, odd = (kernels.Scorer(np.log([p, 1 - p]), []) for p in (0.5, 0.25))
    >>> log_proba, log_density = np.empty((2, 2)), np.empty(2)
    >>> kernels.posterior_by_part([even, odd], [], 2, np.array([1, 0]), np.zeros((2, 2)), log_proba, log_density)
    >>> np.exp(log_proba)
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    if n_rows < 0 or not scorers:
        raise ValueError(f"n_rows is {n_rows} and scorers {len(scorers)}, expected 0 and 1 or more")
    shapes = {scorer.shape for scorer in scorers}
    if len(shapes) > 1:
        raise ValueError(f"the scorers have {shapes} classes, kinds and columns, expected the same in all")
    n_classes = scorers[0].n_classes
    prior = _check_prior(log_prior, (len(scorers), n_classes))
    _check_result(log_proba, "log_proba", (n_rows, n_classes))
    _check_result(log_density, "log_density", (n_rows,))
    if part.shape != (n_rows,) or part.dtype.kind not in "iu":
        raise ValueError(f"part is {part.dtype} of shape {part.shape}, expected whole numbers of shape ({n_rows},)")
    codes = np.ascontiguousarray(part, dtype=np.int32)
    prepared = [scorer._prepared for scorer in scorers]
    readable = scorers[0]._readable(blocks)
    _implementation().posterior_by_part(
        prepared, readable, n_rows, codes, prior, log_proba, log_density, n_threads(threads)
    )


def _check_prior(log_prior: npt.ArrayLike, shape: tuple[int, ...]) -> Float64Array:
    """Return the priors, normalized."""
    prior = np.ascontiguousarray(log_prior, dtype=np.float64)
    if prior.shape != shape:
        raise ValueError(f"log_prior has shape {prior.shape}, expected {shape}")
    with np.errstate(invalid="ignore"):  # −inf less −inf: where nothing is possible at all
        return np.ascontiguousarray(prior - np.logaddexp.reduce(prior, axis=-1, keepdims=True))


def _nothing(shape: Any) -> Float64Array:
    return np.full(shape, np.nan)


def _check_result(array: Float64Array, name: str, shape: tuple[int, ...]) -> None:
    """Refuse an array that results cannot be written to."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    if array.dtype != np.float64 or not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
        raise ValueError(f"{name} cannot be written to, expected contiguous float64")


def _refuse_unbounded(values: Float64Array, name: str) -> None:
    """Refuse NaN and +inf."""
    if values.size and not values.max() < np.inf:
        raise ValueError(f"{name} holds NaN or inf, expected logarithms: numbers or -inf")


def _check_table(values: npt.ArrayLike, name: str, n_classes: int, finite: bool = True) -> Float64Array:
    """Return a table of one factor as contiguous float64 with a column for every class."""
    table = np.ascontiguousarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != n_classes:
        raise ValueError(f"{name} has shape {table.shape}, expected two axes, the second of length {n_classes}")
    if not finite:
        _refuse_unbounded(table, name)
    elif not np.isfinite(table).all():
        raise ValueError(f"{name} holds a number that is not finite")
    return table


def _check_choice(found: object, name: str, known: tuple[str, ...]) -> str:
    if found not in known:
        raise ValueError(f"{name} is {found!r}, expected one of {', '.join(known)}")
    return str(found)


def _check_factor(factor: Factor, name: str, n_classes: int) -> Factor:
    """Return the factor with its tables as contiguous float64, or say what is wrong with it."""
    kind = factor[0] if isinstance(factor, tuple) and factor else None
    if kind not in _LENGTHS:
        raise ValueError(f"{name} is of kind {kind!r}, expected a tuple that starts with one of {', '.join(_LENGTHS)}")
    if len(factor) != _LENGTHS[kind]:
        raise ValueError(f"{name} of kind {kind} has {len(factor)} parts, expected {_LENGTHS[kind]}")
    if kind == "codes":
        sizes = _arguments.check_sizes(factor[1], np.size(factor[1]))
        table = _check_table(factor[2], f"the table of {name}", n_classes, finite=False)
        if len(table) != sizes.sum():
            raise ValueError(f"the table of {name} has {len(table)} rows, expected {sizes.sum()}: the sum of the sizes")
        return kind, sizes, table, _check_choice(factor[3], f"beyond of {name}", _BEYOND)
    if kind == "sparse":
        check = _check_choice(factor[2], f"check of {name}", _CHECKS[kind])
        return kind, _check_table(factor[1], f"the weight of {name}", n_classes, finite=check == "finite"), check
    if kind == "terms":
        return (kind,)
    if kind == "left_out":
        return _check_left_out(factor, name, n_classes)
    n_tables = 2 if kind == "linear" else len(factor) - 1
    tables = [
        _check_table(part, f"part {i} of {name}", n_classes) for i, part in enumerate(factor[1 : n_tables + 1], 1)
    ]
    rows = [len(table) for table in tables]
    if len(set(rows)) > 1:
        raise ValueError(f"the tables of {name} have {rows} rows, expected as many in each: one for each column")
    if kind == "linear":
        return kind, *tables, _check_choice(factor[3], f"check of {name}", _CHECKS[kind])
    for table in tables[1:-1]:
        if table.size and table.min() < 0.0:
            raise ValueError(f"{name} holds a negative precision, spread or power, expected 0 or more")
    return kind, *tables


def _check_left_out(factor: Factor, name: str, n_classes: int) -> Factor:
    """Return the factor of one class, its tables with one column."""
    kind, of_class, *parts = factor
    if not 0 <= of_class < n_classes:
        raise ValueError(f"{name} is of class {of_class}, expected 0 to {n_classes - 1}")
    columns = [np.asarray(part, dtype=np.float64).reshape(-1, 1) for part in parts]
    tables = [_check_table(column, f"part {i} of {name}", 1)[:, 0] for i, column in enumerate(columns, 2)]
    if len({len(table) for table in tables}) > 1:
        raise ValueError(f"the tables of {name} differ in length, expected as many in each: one for each column")
    if any(table.size and table.min() < 0.0 for table in tables[1:3]):
        raise ValueError(f"{name} holds a negative spread or power, expected 0 or more")
    return kind, int(of_class), *tables
