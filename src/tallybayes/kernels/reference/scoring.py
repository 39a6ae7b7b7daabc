"""Scoring of rows in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.errors import CellError
from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.reference.groups import column_list, entry_positions, raise_first, valid_codes

Block = Columns | tuple[AnyArray, AnyArray, AnyArray]
BoolArray = npt.NDArray[np.bool_]

MIN_EXACT_SCORE = -1e15  # the absolute rounding error of smaller log probabilities exceeds 0.1
_MAX_SQUARABLE = 1e150
MIN_REMAINING = 1e-5  # proportion of the spread left without the row; less has lost too many digits


class Scorer:
    """The scorer of `tallybayes.kernels.Scorer`, which validates the arguments."""

    def __init__(self, start: Float64Array, factors: list[tuple[Any, ...]]) -> None:
        self._start = start
        self._factors = factors

    def joint(self, blocks: Sequence[Any], n_rows: int, threads: int) -> Float64Array:
        """Return log p(row, class) of every row and class."""
        return self._joint(blocks, n_rows, np.arange(n_rows))

    def _joint(self, blocks: Sequence[Any], n_rows: int, rows: Int64Array) -> Float64Array:
        """Return log p(row, class) of some rows."""
        if len(blocks) != len(self._factors):
            raise ValueError(f"there are {len(blocks)} blocks, expected {len(self._factors)}: one for each factor")
        for i, (factor, block) in enumerate(zip(self._factors, blocks, strict=True)):
            _check_block(factor, block, f"blocks[{i}]", n_rows, len(self._start))
        if len(rows) and not (rows.min() >= 0 and rows.max() < n_rows):
            raise IndexError(f"rows holds {rows.min()} to {rows.max()}, expected 0 to {n_rows - 1}")
        scores = np.tile(self._start, (len(rows), 1))
        with np.errstate(all="ignore"):
            for i, (factor, block) in enumerate(zip(self._factors, blocks, strict=True)):
                try:
                    if factor[0] == "left_out":
                        scores[:, factor[1]] += _score_left_out(factor, _take(block, rows), len(rows))
                    else:
                        scores += _SCORES[factor[0]](factor, _take(block, rows), len(rows))
                except CellError as error:
                    cell_error = CellError(int(rows[error.row]), error.column)
                    cell_error.factor = i
                    raise cell_error from None
        return scores

    def argmax(self, blocks: Sequence[Any], n_rows: int, threads: int) -> Int64Array:
        """Return the class with the largest score of every row, or its complement ~k if that score is inexact."""
        joint = self.joint(blocks, n_rows, threads)
        best = joint.argmax(axis=1).astype(np.int64)
        return np.where(np.take_along_axis(joint, best[:, None], axis=1)[:, 0] >= MIN_EXACT_SCORE, best, ~best)

    def posterior(
        self,
        blocks: Sequence[Any],
        n_rows: int,
        log_prior: Float64Array,
        rows: Int64Array | None,
        log_proba: Float64Array,
        log_density: Float64Array,
        threads: int,
    ) -> None:
        """Write log p(class | row) and log p(row) of all rows, or of those with these indices."""
        rows = np.arange(n_rows) if rows is None else rows
        joint = self._joint(blocks, n_rows, rows)
        index = joint.argmax(axis=1)  # the position of NaN, if there is one
        best = joint[np.arange(len(joint)), index]
        impossible = np.isneginf(best)
        with np.errstate(all="ignore"):
            difference = joint - np.where(impossible, 0.0, best)[:, None]
            ratio = np.exp(difference)
            ratio[np.arange(len(joint)), index] = np.where(np.isnan(best), np.nan, 0.0)
            log_total = np.log1p(ratio.sum(axis=1))  # log1p adds the 1 of the best class without rounding
        log_proba[rows] = np.where(impossible[:, None], log_prior, difference - log_total[:, None])
        log_density[rows] = np.where(impossible, -np.inf, best + log_total)


def posterior_by_part(
    scorers: list[Scorer],
    blocks: Sequence[Any],
    n_rows: int,
    part: AnyArray,
    log_prior: Float64Array,
    log_proba: Float64Array,
    log_density: Float64Array,
    threads: int,
) -> None:
    """Write log p(class | row) and log p(row) of every row under the scorer of its part."""
    if len(part) and not (part.min() >= -1 and part.max() < len(scorers)):
        raise IndexError(f"part holds {part.min()} to {part.max()}, expected -1 to {len(scorers) - 1}")
    for number, (scorer, prior) in enumerate(zip(scorers, log_prior, strict=True)):
        rows = np.flatnonzero(part == number)
        scorer.posterior(blocks, n_rows, prior, rows, log_proba, log_density, threads)


def _take(block: Block, rows: Int64Array) -> Any:
    """Return some rows of a block; for a CSR matrix their starts, stops and numbers, and all entries."""
    if isinstance(block, np.ndarray):
        return block[rows]
    if isinstance(block, tuple):
        indptr, indices, data = block
        return indptr[:-1][rows].astype(np.int64), indptr[1:][rows].astype(np.int64), rows, indices, data
    return [column[rows] for column in block]


def _check_block(factor: tuple[Any, ...], block: Block, name: str, n_rows: int, n_classes: int) -> None:
    """Raise TypeError or ValueError unless shape and type of a block fit its factor."""
    kind = factor[0]
    if kind == "sparse":
        if not isinstance(block, tuple) or len(block) != 3:
            raise TypeError(f"{name} must be a tuple (indptr, indices, data), found {type(block).__name__}")
        length = _arguments.check_sparse(*block, n_columns=len(factor[1]))
        expected = n_columns = 0
    elif kind == "terms":
        if not isinstance(block, np.ndarray) or block.dtype != np.float64:
            raise TypeError(f"{name} must be a float64 array")
        length, n_columns = _arguments.check_columns(block, name, _arguments.NUMBER_TYPES, n_rows)
        expected = n_classes
    else:
        types = _arguments.LEVEL_TYPES if kind == "codes" else _arguments.NUMBER_TYPES
        length, n_columns = _arguments.check_columns(block, name, types, n_rows)
        expected = len(factor[2 if kind == "left_out" else 1])
    if length != n_rows:
        raise ValueError(f"{name} has {length} rows, expected {n_rows}")
    if n_columns != expected:
        raise ValueError(f"{name} has {n_columns} columns, expected {expected}")


def _allowed(x: Float64Array, check: str) -> BoolArray:
    """Return a mask of the allowed values."""
    if check == "binary":
        return (x == 0) | (x == 1)
    allowed = np.isfinite(x)
    if check != "finite":
        allowed &= x >= 0
    if check == "count":
        allowed &= x == np.floor(x)
    return allowed


def _cells(block: Columns, n_rows: int, check: str) -> Float64Array:
    """Return the values as float64, or raise CellError for a value that is not allowed; NaN is missing."""
    by_column = column_list(block)
    X = np.empty((n_rows, len(by_column)))
    for j, column in enumerate(by_column):
        X[:, j] = column
    raise_first(~(_allowed(X, check) | np.isnan(X)))
    return X


def _score_codes(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    """Return the sums of the table rows that codes select."""
    _, sizes, table, beyond = factor
    scores = np.zeros((n_rows, table.shape[1]))
    bad = np.zeros((n_rows, len(sizes)), np.bool_)
    offset = 0
    for j, (codes, size) in enumerate(zip(column_list(block), sizes.tolist(), strict=True)):
        valid, bad[:, j] = valid_codes(codes, size)
        scores[valid] += table[offset + codes[valid].astype(np.int64)]
        offset += size
    if beyond == "error":
        raise_first(bad)
    return scores


def _score_linear(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    """Return Σ x·weight + bias over the present cells."""
    _, weight, bias, check = factor
    X = _cells(block, n_rows, check)
    present = ~np.isnan(X)
    scores = np.zeros((n_rows, weight.shape[1]))
    for j in range(X.shape[1]):
        scores[present[:, j]] += X[present[:, j], j, None] * weight[j] + bias[j]
    return scores


def _score_normal(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    """Return the sums of normal log densities."""
    _, mean, precision, log_norm = factor
    X = _cells(block, n_rows, "finite")
    root = np.sqrt(0.5 * precision)
    scores = np.zeros((n_rows, mean.shape[1]))
    for j in range(X.shape[1]):
        z = (X[:, j, None] - mean[j]) * root[j]
        scores += np.where(np.isnan(z), 0.0, log_norm[j] - z * z)
    return scores


def _score_student(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    """Return the sums of Student t log densities."""
    _, mean, inverse_spread, power, log_norm = factor
    X = _cells(block, n_rows, "finite")
    root = np.sqrt(inverse_spread)
    scores = np.zeros((n_rows, mean.shape[1]))
    for j in range(X.shape[1]):
        z = np.abs((X[:, j, None] - mean[j]) * root[j])
        squared = np.minimum(z, _MAX_SQUARABLE) ** 2
        log_term = np.where(z < _MAX_SQUARABLE, np.log1p(squared), 2.0 * np.log(z))
        decay = np.where(power[j] > 0.0, power[j] * log_term, 0.0)
        scores += np.where(np.isnan(X[:, j, None]), 0.0, log_norm[j] - decay)
    return scores


def _score_left_out(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    """Return the sums of leave-one-out Student t log densities."""
    _, _, mean, inverse_spread, power, log_norm = factor
    X = _cells(block, n_rows, "finite")
    t = ((X - mean) * np.sqrt(inverse_spread)) ** 2
    terms = np.where(1.0 - t >= MIN_REMAINING, log_norm + power * np.log1p(-t), np.nan)
    scores: Float64Array = np.where(np.isnan(X), 0.0, terms).sum(axis=1)
    return scores


def _score_terms(factor: tuple[Any, ...], block: Float64Array, n_rows: int) -> Float64Array:
    """Return the block."""
    return block


def _score_sparse(factor: tuple[Any, ...], block: tuple[Any, ...], n_rows: int) -> Float64Array:
    """Return Σ x·weight over the stored entries of CSR rows."""
    _, weight, check = factor
    starts, stops, numbers, indices, data = block
    rows, position = entry_positions(starts, stops, len(data), numbers)
    columns = indices[position].astype(np.int64)
    x = data[position].astype(np.float64)
    invalid = (columns < 0) | (columns >= len(weight))
    if invalid.any():
        first = int(invalid.argmax())
        raise _arguments.index_error(int(numbers[rows[first]]), int(columns[first]), len(weight))
    bad = ~_allowed(x, check)
    if bad.any():
        row = int(rows[bad].min())
        raise CellError(row, int(columns[bad & (rows == row)].min()))
    nonzero = x != 0  # 0 · −inf is 0
    rows = rows[nonzero]
    columns = columns[nonzero]
    x = x[nonzero]
    by_class = [np.bincount(rows, x * weight[columns, k], n_rows) for k in range(weight.shape[1])]
    return np.stack(by_class, axis=1)


_SCORES: dict[str, Any] = {
    "codes": _score_codes,
    "linear": _score_linear,
    "normal": _score_normal,
    "student": _score_student,
    "sparse": _score_sparse,
    "terms": _score_terms,
}
