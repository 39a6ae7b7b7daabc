"""Encoding: columns of labels as small integer codes, with the levels they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes import kernels
from tallybayes.data.string_columns import distinct, encode_fixed, shared_objects
from tallybayes.errors import DataError, LabelError
from tallybayes.tally.domain import Domain, is_text

_DIRECT_LEVELS = 256  # whole numbers from 0 up to this are their own codes: no copy, no look-up
_DENSE_LEVELS = 4096  # in a range no wider than this (or than the rows are many), codes are found without sorting


def encode(values: Any, name: str, *, ordered: bool = False) -> tuple[np.ndarray, Domain]:
    """Codes of a column's labels, −1 where missing, and the levels they index.

    The levels are the batch's own and may hold some that do not occur (gaps between whole numbers, unused categories):
    a tally drops what has no weight.

    Parameters
    ----------
    values : array-like, Arrow array, or series of a data frame
    name : str
        What messages call the column.
    ordered : bool, default False
        Whether the domain is kept sorted.

    Returns
    -------
    codes : ndarray of int of shape (n,)
    domain : Domain
    """
    if hasattr(getattr(values, "cat", None), "codes"):  # pandas categories; Polars has a `cat` without codes
        return _relabel(np.asarray(values.cat.codes), _named(values.cat.categories), name, ordered)
    if hasattr(values, "codes") and hasattr(values, "categories"):  # a bare pandas.Categorical
        return _relabel(np.asarray(values.codes), _named(values.categories), name, ordered)
    if isinstance(values, np.ndarray):
        values = plain_array(values, name)
        if values.dtype.kind in "biuf":
            return _encode_numbers(values, name, ordered)
        if values.dtype.kind == "U" and values.dtype.itemsize and values.ndim == 1:
            return _relabel(*encode_fixed(values), name, ordered)
    return _encode_arrow(values, name, ordered)


def _named(categories: Any) -> list[Any]:
    """Categories as levels: intervals, as `pandas.cut` makes them, by the text they are shown as."""
    return [str(level) for level in categories] if is_interval(next(iter(categories), None)) else list(categories)


def is_interval(value: Any) -> bool:
    """Whether a value is an interval of pandas."""
    return type(value).__name__ == "Interval"


def direct_levels(block: np.ndarray) -> np.ndarray | None:
    """The largest number of every column where whole numbers from 0 up serve as their own codes, else None."""
    if len(block) == 0 or block.shape[1] == 0:
        return None
    try:
        low, high = kernels.column_ranges(block)
    except OverflowError:  # numbers beyond 2⁶³ are no small codes
        return None
    return high if low.min() >= 0 and high.max() < _DIRECT_LEVELS else None


def count_levels(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """How many rows have each code, whole numbers as floats; −1 is none."""
    return kernels.count_codes([codes], [n_levels], None, 1)[0]


def plain_array(array: np.ndarray, name: object) -> np.ndarray:
    """The array as the kernels read it; a copy only for byte orders and types that they do not know.

    Masked cells become missing ones.
    """
    if array.ndim == 0:
        raise DataError.wrong_shape(f"column {name!r}", (), "one value for every row")
    if array.dtype.names is not None:
        hint = "Pass its fields as columns: {name: array[name] for name in array.dtype.names}."
        raise DataError.wrong_type(f"column {name!r}", f"of dtype {array.dtype}", "one value in every cell", hint)
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        nothing = np.array(np.nan if array.dtype.kind == "f" else None)
        array = np.where(np.ma.getmaskarray(array), nothing, array.data)
    array = np.asarray(array)
    kind = array.dtype.kind
    if kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    if kind in "iuf" and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array if array.flags.aligned else array.copy()


def is_missing(value: Any) -> bool:
    """Whether a single value stands for none: None, NaN, NaT or pandas' NA."""
    kind = type(value)
    if kind is str or kind is int:  # most are, and the checks below take their time
        return False
    if isinstance(value, float | np.floating | np.datetime64 | np.timedelta64):
        return bool(value != value)
    return value is None or kind.__name__ in ("NAType", "NaTType")


def missing_mask(column: Any) -> np.ndarray:
    """Which cells of one column are missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return column != column if column.dtype.kind in "fcmM" else np.zeros(len(column), dtype=bool)
    if hasattr(column, "dictionary") and not column.dictionary.null_count:
        return np.asarray(column.indices.is_null())
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column
    return np.array([is_missing(cell) for cell in cells], dtype=bool)


def _encode_numbers(values: np.ndarray, name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Return the codes of an array of numbers or booleans, and their domain."""
    if values.ndim != 1:
        raise DataError.wrong_shape(f"column {name!r}", values.shape, "one axis")
    if values.dtype.kind == "b":
        return values.view(np.uint8), Domain([False, True], name, is_sorted=ordered)
    if values.dtype.kind == "f":
        return _encode_floats(values, name, ordered)
    if len(values) == 0:
        return values.astype(np.int8), Domain([], name, is_sorted=ordered)
    low, high = _range(values)
    if low >= 0 and high < _DIRECT_LEVELS:
        return values, Domain(range(high + 1), name, is_sorted=ordered)
    if high - low < _DIRECT_LEVELS:
        return _distance(values, low, np.uint8), Domain(range(low, high + 1), name, is_sorted=ordered)
    if high - low < min(max(_DENSE_LEVELS, len(values)), 2**31 - 2):  # a dense range: leave out what does not occur
        distance = _distance(values, low, np.int32)
        seen = np.flatnonzero(count_levels(distance, high - low + 1))
        domain = Domain([low + gap for gap in seen.tolist()], name, is_sorted=ordered)
        if len(seen) == high - low + 1:
            return distance, domain
        where = np.zeros(high - low + 1, dtype=np.int32)
        where[seen] = np.arange(len(seen))
        return where[distance], domain
    import pyarrow as pa

    codes, dictionary = distinct(pa.array(values))  # hashes; np.unique sorts, in eight times the time
    return _relabel(codes, dictionary.to_pylist(), name, ordered)


def _range(values: np.ndarray) -> tuple[int, int]:
    """The smallest and the largest of whole numbers."""
    try:
        (low,), (high,) = kernels.column_ranges([values])
    except OverflowError:  # beyond 2⁶³
        return int(values.min()), int(values.max())
    return int(low), int(high)


def _distance(values: np.ndarray, low: int, dtype: type) -> np.ndarray:
    """Whole numbers less the smallest of them, in one pass."""
    unsigned = values.view(f"u{values.dtype.itemsize}")  # in which a difference that wraps around is right all the same
    out: np.ndarray = np.empty(len(values), dtype)
    np.subtract(unsigned, unsigned.dtype.type(low % 2 ** (8 * values.dtype.itemsize)), out=out, casting="unsafe")
    return out


def _encode_floats(values: np.ndarray, name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Whole floats are whole numbers, NaN is missing; all else is no label."""
    with np.errstate(invalid="ignore"):
        whole = values.astype(np.int64)
    if np.array_equal(whole, values) and max(map(abs, _range(whole)), default=0) < 2**53:
        return _encode_numbers(whole, name, ordered)
    missing = np.isnan(values)
    known = values[~missing]
    wrong = ~(np.isfinite(known) & (known == np.floor(known)) & (np.abs(known) < 2.0**53))
    if wrong.any():
        level = float(known[wrong][0])
        raise (LabelError.too_large if level.is_integer() else LabelError.bad_level)(level, name)
    codes, domain = _encode_numbers(known.astype(np.int64), name, ordered)
    if not missing.any():
        return codes, domain
    out = np.full(len(values), -1, dtype=np.int64)
    out[~missing] = codes
    return out, domain


def _encode_arrow(values: Any, name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Strings and mixed objects, by Arrow's dictionary encoding."""
    import pyarrow as pa

    array = values
    if hasattr(values, "to_arrow"):  # a Polars or narwhals series
        array = values.to_arrow()
    elif not isinstance(values, pa.Array | pa.ChunkedArray):
        if isinstance(values, np.ndarray) and values.ndim != 1:
            raise DataError.wrong_shape(f"column {name!r}", values.shape, "one axis")
        if getattr(values, "dtype", None) == np.dtype(object):  # an array, or a series or index over one
            if is_interval(next((value for value in values if not is_missing(value)), None)):
                values = np.array([str(v) if is_interval(v) else v for v in values], dtype=object)
            shared = shared_objects(np.asarray(values))
            if shared is not None:
                codes, domain = _encode_arrow(shared[1], name, ordered)
                return np.take(codes, shared[0]), domain
        array = _to_arrow(values, name)
    return _encode_by_type(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array, name, ordered)


def _encode_by_type(array: Any, name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Codes and domain of an Arrow array of dictionaries, numbers, nulls or strings; other types are refused."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        # Polars has unsigned codes, which have no room for −1.
        codes = array.indices.cast(pa.int64()).fill_null(-1) if array.indices.null_count else array.indices
        return _relabel(codes.to_numpy(zero_copy_only=False), array.dictionary.to_pylist(), name, ordered)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if array.null_count == 0:
            return _encode_numbers(plain_array(array.to_numpy(zero_copy_only=False), name), name, ordered)
    elif pa.types.is_null(kind):
        return np.full(len(array), -1, dtype=np.int8), Domain([], name, is_sorted=ordered)
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        first = next((item.as_py() for item in array if item.is_valid), None)
        if first is None:  # of whatever type: no row shows it
            return np.full(len(array), -1, dtype=np.int8), Domain([], name, is_sorted=ordered)
        raise LabelError.bad_level(first, name)
    codes, dictionary = distinct(array.cast(pa.large_string()) if pa.types.is_string_view(kind) else array)
    return _relabel(codes, dictionary.to_pylist(), name, ordered)


def _to_arrow(values: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except UnicodeError:  # of objects one that cannot be encoded, of NumPy's strings one that cannot be decoded
        strange = next(value for value in values if isinstance(value, str) and not is_text(value))
        raise LabelError.no_text(str(strange), name) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError):
        if not isinstance(values, np.ndarray | list):
            return _to_arrow(np.asarray(values), name)  # a series of a type of its own, such as pandas' sparse ones
        # Objects that Arrow does not take as one type: find the first that does not go with those before it.
        known = [Domain([value], name) for value in values if not is_missing(value)]
        for one in known:
            if one.kind != known[0].kind:
                raise LabelError.kinds_differ(name, str(known[0].kind), str(one.kind)) from None
        if not known or known[0].kind != "int":
            raise
        Domain(dict.fromkeys(one.levels[0] for one in known), name)  # refuses numbers that 64 bits cannot hold
        return pa.array(values, pa.uint64(), from_pandas=True)


def _relabel(codes: np.ndarray, levels: list[Any], name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Codes into `levels`, put into a domain that may sort them or leave some out (null, NaN)."""
    known = dict.fromkeys(level for level in levels if not is_missing(level))  # Arrow allows a level to occur twice
    domain = Domain(known, name, is_sorted=ordered)
    if domain.levels == tuple(levels):
        return codes, domain
    where = np.append(domain.positions_of(_plain(level) for level in levels), -1)  # code −1 finds the last
    return np.take(where.astype(np.min_scalar_type(-max(1, len(levels)))), codes, mode="wrap"), domain


def _plain(level: Any) -> Any:
    return int(level) if isinstance(level, float) and level.is_integer() else level
