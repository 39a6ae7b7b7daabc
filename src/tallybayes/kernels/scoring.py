"""Scoring of rows: log p(row, class) of every class, and the most probable class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.arguments import threads as n_threads
from tallybayes.kernels.reference import scoring as _reference

__all__ = ["Scorer", "posterior_by_part"]

Block = Columns | tuple[AnyArray, AnyArray, AnyArray]
Factor = tuple[Any, ...]


class _Prepared(Protocol):
    """Scorer of the compiled module or of the reference."""

    def joint(self, blocks: Sequence[Block], n_rows: int, threads: int) -> Float64Array:
        """Return log p(row, class) of every row and class."""

    def argmax(self, blocks: Sequence[Block], n_rows: int, threads: int) -> Int64Array:
        """Return the best class of every row, or its complement if its score is inexact."""

    def posterior(
        self,
        blocks: Sequence[Block],
        n_rows: int,
        log_prior: Float64Array,
        rows: Int64Array | None,
        log_proba: Float64Array,
        log_density: Float64Array,
        threads: int,
    ) -> None:
        """Write log p(class | row) and log p(row)."""


class Scorer:
    """The factors of a classifier, prepared to score any number of rows.

    The score of a row for class k is ``start[k]`` plus the term of every factor. A factor is a tuple. K is the number
    of classes, and d the number of columns of the factor's block:

    ``("codes", sizes (d,), table (sum(sizes), K), beyond)``
        adds ``table[offset_j + code]`` for every column j, where ``offset_j`` is the sum of the previous sizes. Entries
        may be −inf. A missing code (−1, or the largest value of an unsigned type if it is not a valid code) adds 0. Any
        other code outside ``[0, size)`` adds 0 if `beyond` is ``"missing"``, and raises if it is ``"error"``.
    ``("linear", weight (d, K), bias (d, K), check)``
        adds Σ x·weight + bias. `check` are the allowed values: ``"binary"``, ``"count"`` or ``"finite"``.
    ``("normal", mean (d, K), precision (d, K), log_norm (d, K))``
        adds Σ log_norm − ½·precision·(x − mean)².
    ``("student", mean (d, K), inverse_spread (d, K), power (d, K), log_norm (d, K))``
        adds Σ log_norm − power·log(1 + (x − mean)²·inverse_spread). One logarithm per row and class if all columns of a
        class have the same power.
    ``("left_out", k, mean (d,), inverse_spread (d,), power (d,), log_norm (d,))``
        adds Σ log_norm + power·log(1 − (x − mean)²·inverse_spread) to class k only: the leave-one-out Student t. NaN if
        1 − … is below 1e-5, where the formula loses all digits.
    ``("sparse", weight (d, K), check)``
        adds Σ x·weight over the stored entries of CSR rows. `check` may also be ``"nonnegative"``. Weights may be −inf,
        except with ``"finite"``; a stored 0 adds nothing.
    ``("terms",)``
        adds its block, a float64 array of shape (n, K).

    NaN in dense blocks is a missing value and adds nothing. Infinite values raise, as does a stored NaN.

    Parameters
    ----------
    start : array of shape (K,)
        log p(class); may be −inf.
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
        log_prior = _arguments.check_floats(start, "start", (None,), logs=True)
        if not len(log_prior):
            raise ValueError("start is empty, expected at least one class")
        checked = [_check_factor(factor, f"factors[{i}]", len(log_prior)) for i, factor in enumerate(factors)]
        self.n_classes = len(log_prior)
        self.n_bytes = sum(part.nbytes for factor in checked for part in factor if isinstance(part, np.ndarray))
        self.shape = (len(log_prior), *((part[0], len(part[-2]) if len(part) > 1 else 0) for part in checked))
        self._sparse = [i for i, factor in enumerate(checked) if factor[0] == "sparse"]
        self._prepared: _Prepared = implementation_for(_reference).Scorer(log_prior, checked)

    def joint(self, blocks: Sequence[Block], n_rows: int, threads: int = 0) -> Float64Array:
        """Return log p(row, class) of every row and class.

        Parameters
        ----------
        blocks : sequence, one block of data per factor
            A 2-D array of any memory layout or a list of 1-D columns (integers for codes; otherwise bool, integers,
            float32 or float64); for a sparse factor a tuple ``(indptr, indices, data)``. Read without copying.
        n_rows : int
        threads : int
            See the conventions of `tallybayes.kernels`.

        Returns
        -------
        float64 array of shape (n_rows, K)

        Raises
        ------
        CellError
            If its factor does not allow a value; the error names the first such cell, by factor, row and column. Its
            attribute ``factor`` is the index of the factor.
        IndexError
            If indptr or indices are outside the matrix.
        ValueError, TypeError
            If a block does not have `n_rows` rows and the factor's columns, or has a wrong type.
        """
        return self._prepared.joint(self._readable(blocks, n_rows), n_rows, n_threads(threads))

    def argmax(self, blocks: Sequence[Block], n_rows: int, threads: int = 0) -> Int64Array:
        """Return the class with the largest score of every row, the first one if several are equal.

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
        """Return the result of `argmax`, and the rows whose largest score is NaN or below −1e15.

        In such rows the differences between classes may be rounding errors.

        Returns
        -------
        best : int64 array of shape (n_rows,)
        lost : int64 array, or None if there are no such rows
        """
        best = self._prepared.argmax(self._readable(blocks, n_rows), n_rows, n_threads(threads))
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
            log p(class), the result for rows with −inf in every class; need not be normalized.
        rows : int64 array, optional
            Indices of the rows to score, without duplicates; all rows by default.
        log_proba : float64 array of shape (n_rows, K), optional
            Output array; only the scored rows are written. By default a new array with NaN in all other rows. May be
            the block of a factor ``("terms",)``.
        log_density : float64 array of shape (n_rows,), optional
            Output array.

        Returns
        -------
        log_proba, log_density
            A row with −inf in every class has the normalized `log_prior` and a density of −inf.

        Raises
        ------
        CellError, IndexError, ValueError, TypeError
            As in `joint`, for the scored rows; also IndexError for an invalid row index.

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
        readable = self._readable(blocks, n_rows)
        prior = _check_prior(log_prior, (self.n_classes,))
        make = np.empty if rows is None else _filled_with_nan
        log_proba = make((n_rows, self.n_classes)) if log_proba is None else log_proba
        log_density = make((n_rows,)) if log_density is None else log_density
        _check_output(log_proba, "log_proba", (n_rows, self.n_classes))
        _check_output(log_density, "log_density", (n_rows,))
        if rows is not None and (rows.dtype != np.int64 or rows.ndim != 1):
            raise TypeError(f"rows is {rows.dtype} with {rows.ndim} axes, expected int64 with one")
        rows = None if rows is None else np.ascontiguousarray(rows)
        self._prepared.posterior(readable, n_rows, prior, rows, log_proba, log_density, n_threads(threads))
        return log_proba, log_density

    def _readable(self, blocks: Sequence[Block], n_rows: int) -> Sequence[Block]:
        """Return the blocks, with the arrays of CSR matrices copied unless they are contiguous."""
        if n_rows < 0:
            raise ValueError(f"n_rows is {n_rows}, expected 0 or more")
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
    """Write log p(class | row) and log p(row) of every row under the scorer of its part, in one pass.

    Equivalent to ``Scorer.posterior`` for the rows of each part, but faster if the tables of all scorers fit into the
    cache together.

    Parameters
    ----------
    scorers : sequence of P scorers
        Scorers with the same kinds of factors, columns and classes.
    blocks, n_rows, threads
        As in `Scorer.joint`.
    part : int array of shape (n_rows,)
        From 0 to P − 1, or −1 for rows that are not written.
    log_prior : array of shape (P, K)
        log p(class), the result for rows with −inf in every class; need not be normalized.
    log_proba : float64 array of shape (n_rows, K)
        Output array.
    log_density : float64 array of shape (n_rows,)
        Output array.

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
    _check_output(log_proba, "log_proba", (n_rows, n_classes))
    _check_output(log_density, "log_density", (n_rows,))
    if part.shape != (n_rows,) or part.dtype.kind not in "iu":
        raise ValueError(f"part is {part.dtype} of shape {part.shape}, expected whole numbers of shape ({n_rows},)")
    codes = np.ascontiguousarray(part, dtype=np.int32)
    prepared = [scorer._prepared for scorer in scorers]
    readable = scorers[0]._readable(blocks, n_rows)
    implementation_for(_reference).posterior_by_part(
        prepared, readable, n_rows, codes, prior, log_proba, log_density, n_threads(threads)
    )


def _check_prior(log_prior: npt.ArrayLike, shape: tuple[int, ...]) -> Float64Array:
    """Return the log priors, normalized."""
    prior = np.ascontiguousarray(log_prior, dtype=np.float64)
    if prior.shape != shape:
        raise ValueError(f"log_prior has shape {prior.shape}, expected {shape}")
    with np.errstate(invalid="ignore"):  # −inf − −inf, if every class is impossible
        return np.ascontiguousarray(prior - np.logaddexp.reduce(prior, axis=-1, keepdims=True))


def _filled_with_nan(shape: tuple[int, ...]) -> Float64Array:
    """Return a new array of NaN."""
    return np.full(shape, np.nan)


def _check_output(array: Float64Array, name: str, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless results can be written to the array."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    if array.dtype != np.float64 or not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
        raise ValueError(f"{name} cannot be written to, expected contiguous float64")


class _Kind(NamedTuple):
    """The parts of a kind of factor: its tables, one row per column and one column per class, and a choice."""

    length: int
    first: int  # of the tables
    n_tables: int
    choices: tuple[str, ...] = ()  # the allowed values of the last part


_KINDS: dict[object, _Kind] = {
    "codes": _Kind(4, 2, 1, ("missing", "error")),
    "linear": _Kind(4, 1, 2, ("binary", "count", "finite")),
    "normal": _Kind(4, 1, 3),
    "student": _Kind(5, 1, 4),
    "left_out": _Kind(6, 2, 4),
    "sparse": _Kind(3, 1, 1, ("binary", "count", "finite", "nonnegative")),
    "terms": _Kind(1, 1, 0),
}


def _check_factor(factor: Factor, name: str, n_classes: int) -> Factor:
    """Return the factor with its tables as contiguous float64, or raise ValueError."""
    kind = factor[0] if isinstance(factor, tuple) and factor else None
    if kind not in _KINDS:
        kinds = ", ".join(map(str, _KINDS))
        raise ValueError(f"{name} is of kind {kind!r}, expected a tuple that starts with one of {kinds}")
    length, first, n_tables, choices = _KINDS[kind]
    if len(factor) != length:
        raise ValueError(f"{name} of kind {kind} has {len(factor)} parts, expected {length}")
    if choices and factor[-1] not in choices:
        raise ValueError(f"the last part of {name} is {factor[-1]!r}, expected one of {', '.join(choices)}")
    tables = _check_tables(factor, name, n_classes)
    if kind == "codes":
        sizes = _arguments.check_sizes(factor[1], np.size(factor[1]))
        if len(tables[0]) != sizes.sum():
            expected = f"expected {sizes.sum()}: the sum of the sizes"
            raise ValueError(f"the table of {name} has {len(tables[0])} rows, {expected}")
        return "codes", sizes, *tables, factor[3]
    if kind == "left_out":
        if not 0 <= factor[1] < n_classes:
            raise ValueError(f"{name} is of class {factor[1]}, expected 0 to {n_classes - 1}")
        return "left_out", int(factor[1]), *tables
    return (*factor[:first], *tables, *factor[first + n_tables :])


def _check_tables(factor: Factor, name: str, n_classes: int) -> list[Float64Array]:
    """Return the tables of a factor as contiguous float64, or raise ValueError."""
    kind, (_, first, n_tables, _) = factor[0], _KINDS[factor[0]]
    logs = kind == "codes" or (kind == "sparse" and factor[-1] != "finite")
    shape = (None,) if kind == "left_out" else (None, n_classes)
    parts = enumerate(factor[first : first + n_tables], first)
    tables = [_arguments.check_floats(part, f"part {i} of {name}", shape, logs=logs) for i, part in parts]
    rows = [len(table) for table in tables]
    if len(set(rows)) > 1:
        raise ValueError(f"the tables of {name} have {rows} rows, expected as many in each: one for each column")
    if kind in ("normal", "student", "left_out") and any((table < 0).any() for table in tables[1:-1]):
        raise ValueError(f"{name} holds a negative precision, spread or power, expected 0 or more")
    return tables
