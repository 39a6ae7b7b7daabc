"""Scoring in NumPy: what the compiled scorer must give, written for reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.errors import CellError
from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array

BoolArray = npt.NDArray[np.bool_]

LEAST_CLEAR_SCORE = -1e15  # log probabilities below are rounded to a tenth, or to more
_LARGE = 1e150  # whose square is still finite
LEAST_LEFT = 1e-5  # of a spread, when a row is taken out of it: less has lost too many digits


def column_ranges(columns: Columns, threads: int) -> tuple[Int64Array, Int64Array]:
    """Find the smallest and the largest value of every integer column."""
    listed = _as_list(columns)
    low, high = np.zeros(len(listed), np.int64), np.full(len(listed), -1, np.int64)
    for j, column in enumerate(listed):
        if len(column):
            least, most = int(np.min(column)), int(np.max(column))
            if most > np.iinfo(np.int64).max:
                raise OverflowError(f"a column holds a number above {np.iinfo(np.int64).max}, the largest int64")
            low[j], high[j] = least, most
    return low, high


class Scorer:
    """The scorer of `tallybayes.kernels.Scorer`, whose arguments were checked there."""

    def __init__(self, start: Float64Array, factors: list[tuple[Any, ...]]) -> None:
        self._start = start
        self._factors = factors

    def joint(self, blocks: Sequence[Any], n_rows: int, threads: int) -> Float64Array:
        """Return log p(row, class) of every row and class."""
        return self._joint(blocks, n_rows, np.arange(n_rows))

    def _joint(self, blocks: Sequence[Any], n_rows: int, rows: Int64Array) -> Float64Array:
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
                    found = CellError(int(rows[error.row]), error.column)
                    found.factor = i
                    raise found from None
        return scores

    def argmax(self, blocks: Sequence[Any], n_rows: int, threads: int) -> Int64Array:
        """Return the class with the largest score of every row, or −1 less it where that score has lost its digits."""
        joint = self.joint(blocks, n_rows, threads)
        best = joint.argmax(axis=1).astype(np.int64)
        return np.where(np.take_along_axis(joint, best[:, None], axis=1)[:, 0] >= LEAST_CLEAR_SCORE, best, ~best)

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
        """Write log p(class | row) and log p(row) of all rows, or of those with these numbers."""
        chosen = np.arange(n_rows) if rows is None else rows
        joint = self._joint(blocks, n_rows, chosen)
        index = joint.argmax(axis=1)  # that of a NaN, if there is one
        best = joint[np.arange(len(joint)), index]
        impossible = np.isneginf(best)
        with np.errstate(all="ignore"):
            distance = joint - np.where(impossible, 0.0, best)[:, None]
            share = np.exp(distance)
            share[np.arange(len(joint)), index] = np.where(np.isnan(best), np.nan, 0.0)
            log_total = np.log1p(share.sum(axis=1))  # the best class's own 1 is not in the sum, nor rounded with it
        log_proba[chosen] = np.where(impossible[:, None], log_prior, distance - log_total[:, None])
        log_density[chosen] = np.where(impossible, -np.inf, best + log_total)


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
    """Write log p(class | row) and log p(row) of every row by the scorer of its part."""
    if len(part) and not (part.min() >= -1 and part.max() < len(scorers)):
        raise IndexError(f"part holds {part.min()} to {part.max()}, expected -1 to {len(scorers) - 1}")
    for number, (scorer, prior) in enumerate(zip(scorers, log_prior, strict=True)):
        rows = np.flatnonzero(part == number)
        scorer.posterior(blocks, n_rows, prior, rows, log_proba, log_density, threads)


def _take(block: Any, rows: Int64Array) -> Any:
    """Return some rows of a block; of a CSR matrix their starts, stops and numbers, and all entries."""
    if isinstance(block, np.ndarray):
        return block[rows]
    if isinstance(block, tuple):
        indptr, indices, data = block
        return indptr[:-1][rows].astype(np.int64), indptr[1:][rows].astype(np.int64), rows, indices, data
    return [column[rows] for column in block]


def _as_list(columns: Columns) -> list[Any]:
    return list(columns.T) if isinstance(columns, np.ndarray) else list(columns)


def _check_block(factor: tuple[Any, ...], block: Any, name: str, n_rows: int, n_classes: int) -> None:
    """Refuse a block whose shape or type does not fit its factor."""
    kind = factor[0]
    if kind == "sparse":
        if not isinstance(block, tuple) or len(block) != 3:
            raise TypeError(f"{name} must be a tuple (indptr, indices, data), found {type(block).__name__}")
        found = _arguments.check_sparse(*block, n_columns=len(factor[1]))
        expected = n_columns = 0
    elif kind == "terms":
        if not isinstance(block, np.ndarray) or block.dtype != np.float64:
            raise TypeError(f"{name} must be a float64 array")
        found, n_columns = _arguments.check_columns(block, name, _arguments.NUMBER_TYPES, n_rows)
        expected = n_classes
    else:
        types = _arguments.LEVEL_TYPES if kind == "codes" else _arguments.NUMBER_TYPES
        found, n_columns = _arguments.check_columns(block, name, types, n_rows)
        expected = len(factor[2 if kind == "left_out" else 1])
    if found != n_rows:
        raise ValueError(f"{name} has {found} rows, expected {n_rows}")
    if n_columns != expected:
        raise ValueError(f"{name} has {n_columns} columns, expected {expected}")


def _first(bad: BoolArray) -> None:
    """Raise at the first cell marked."""
    if bad.any():
        row, column = divmod(int(bad.argmax()), bad.shape[1])
        raise CellError(row, column)


def _allowed(x: Float64Array, check: str) -> BoolArray:
    if check == "binary":
        return (x == 0) | (x == 1)
    allowed = np.isfinite(x)
    if check != "finite":
        allowed &= x >= 0
    if check == "count":
        allowed &= x == np.floor(x)
    return allowed


def _cells(block: Columns, n_rows: int, check: str) -> Float64Array:
    """Return the cells as float64, after refusing those the check forbids; NaN is missing."""
    X = np.empty((n_rows, len(_as_list(block))))
    for j, column in enumerate(_as_list(block)):
        X[:, j] = column
    _first(~(_allowed(X, check) | np.isnan(X)))
    return X


def _score_codes(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    _, sizes, table, beyond = factor
    scores = np.zeros((n_rows, table.shape[1]))
    bad = np.zeros((n_rows, len(sizes)), np.bool_)
    offset = 0
    for j, (codes, size) in enumerate(zip(_as_list(block), sizes.tolist(), strict=True)):
        if codes.dtype == np.bool_:
            codes = codes.view(np.uint8)
        valid = (codes >= 0) & (codes < size)
        missing = codes == (np.iinfo(codes.dtype).max if codes.dtype.kind == "u" else -1)
        bad[:, j] = ~valid & ~missing
        scores[valid] += table[offset + codes[valid].astype(np.int64)]
        offset += size
    if beyond == "error":
        _first(bad)
    return scores


def _score_linear(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    _, weight, bias, check = factor
    X = _cells(block, n_rows, check)
    present = ~np.isnan(X)
    scores = np.zeros((n_rows, weight.shape[1]))
    for j in range(X.shape[1]):
        scores[present[:, j]] += X[present[:, j], j, None] * weight[j] + bias[j]
    return scores


def _score_normal(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    _, mean, precision, log_norm = factor
    X = _cells(block, n_rows, "finite")
    root = np.sqrt(0.5 * precision)
    scores = np.zeros((n_rows, mean.shape[1]))
    for j in range(X.shape[1]):
        z = (X[:, j, None] - mean[j]) * root[j]
        scores += np.where(np.isnan(z), 0.0, log_norm[j] - z * z)
    return scores


def _score_student(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    _, mean, inverse_spread, power, log_norm = factor
    X = _cells(block, n_rows, "finite")
    root = np.sqrt(inverse_spread)
    scores = np.zeros((n_rows, mean.shape[1]))
    for j in range(X.shape[1]):
        z = np.abs((X[:, j, None] - mean[j]) * root[j])
        log_term = np.where(z < _LARGE, np.log1p(np.minimum(z, _LARGE) ** 2), 2.0 * np.log(z))
        decay = np.where(power[j] > 0.0, power[j] * log_term, 0.0)
        scores += np.where(np.isnan(X[:, j, None]), 0.0, log_norm[j] - decay)
    return scores


def _score_left_out(factor: tuple[Any, ...], block: Columns, n_rows: int) -> Float64Array:
    _, _, mean, inverse_spread, power, log_norm = factor
    X = _cells(block, n_rows, "finite")
    t = ((X - mean) * np.sqrt(inverse_spread)) ** 2
    terms = np.where(1.0 - t >= LEAST_LEFT, log_norm + power * np.log1p(-t), np.nan)
    scores: Float64Array = np.where(np.isnan(X), 0.0, terms).sum(axis=1)
    return scores


def _score_terms(factor: tuple[Any, ...], block: Float64Array, n_rows: int) -> Float64Array:
    return block


def _score_sparse(factor: tuple[Any, ...], block: tuple[Any, ...], n_rows: int) -> Float64Array:
    _, weight, check = factor
    starts, stops, numbers, indices, data = block
    outside = (starts < 0) | (stops < starts) | (stops > len(data))
    if outside.any():
        row = int(outside.argmax())
        raise _arguments.indptr_error(int(numbers[row]), int(starts[row]), int(stops[row]), len(data))
    rows = np.repeat(np.arange(n_rows), stops - starts)
    # Rows may lie anywhere among the entries, so the positions are counted up within each row.
    counted = np.arange(len(rows)) - np.repeat(np.cumsum(stops - starts) - (stops - starts), stops - starts)
    position = np.repeat(starts, stops - starts) + counted
    columns, x = indices[position].astype(np.int64), data[position].astype(np.float64)
    outside = (columns < 0) | (columns >= len(weight))
    if outside.any():
        first = int(outside.argmax())
        raise _arguments.index_error(int(numbers[rows[first]]), int(columns[first]), len(weight))
    bad = ~_allowed(x, check)
    if bad.any():
        row = int(rows[bad].min())
        raise CellError(row, int(columns[bad & (rows == row)].min()))
    there = x != 0  # 0 · −inf is no evidence
    rows, columns, x = rows[there], columns[there], x[there]
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
