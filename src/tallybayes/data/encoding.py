"""Columns as codes of levels, or as numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes import kernels
from tallybayes.data.source import reading
from tallybayes.data.string_columns import distinct, encode_fixed, shared_objects
from tallybayes.errors import DataError, LabelError, short_repr
from tallybayes.messages import conversion_hint
from tallybayes.tally.domain import Domain, is_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from tallybayes.typing import Column, Name

_DIRECT_LEVELS = 256  # integers from 0 up to this are their own codes: no copy, no look-up
_DENSE_LEVELS = 4096  # ranges up to this, or up to the number of rows, are encoded by a table instead of hashing


def encode(values: Column, name: str, *, ordered: bool = False) -> tuple[np.ndarray, Domain]:
    """Return the integer codes of a categorical column, −1 where missing, and the domain of levels they index.

    The levels are those of the batch and may contain levels that do not occur, such as gaps between integers or unused
    categories. A tally drops levels without weight.


    Parameters
    ----------
    values : array-like, Arrow array, or series of a data frame
    name : str
        The name of the column in messages.
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
    with reading(f"column {name!r}"):
        return _encode_arrow(values, name, ordered)


def _named(categories: Iterable[object]) -> list[Any]:
    """Return categories as levels; pandas intervals, as from `pandas.cut`, become strings."""
    return [str(level) for level in categories] if is_interval(next(iter(categories), None)) else list(categories)


def is_interval(value: object) -> bool:
    """Return whether a value is a pandas Interval."""
    return type(value).__name__ == "Interval"


def direct_levels(block: np.ndarray) -> np.ndarray | None:
    """Return the maximum of every column if all values are small integers that serve as their own codes; else None."""
    if len(block) == 0 or block.shape[1] == 0:
        return None
    try:
        low, high = kernels.column_ranges(block)
    except OverflowError:  # numbers above 2⁶³
        return None
    return high if low.min() >= 0 and high.max() < _DIRECT_LEVELS else None


def count_levels(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """Return the number of rows with each code as floats; −1 is not counted."""
    return kernels.count_codes([codes], [n_levels], None, 1)[0]


def plain_array(array: np.ndarray, name: object) -> np.ndarray:
    """Return the array in a form that the kernels read; copied only for other byte orders and types.

    Masked cells become missing values.
    """
    if array.ndim == 0:
        raise DataError.wrong_shape(f"column {name!r}", (), "one value for every row")
    if array.dtype.names is not None:
        hint = "Pass its fields as columns: {name: array[name] for name in array.dtype.names}."
        raise DataError.wrong_type(f"column {name!r}", f"of dtype {array.dtype}", "one value in every cell", hint)
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        missing_value = np.array(np.nan if array.dtype.kind == "f" else None)
        array = np.where(np.ma.getmaskarray(array), missing_value, array.data)
    array = np.asarray(array)
    kind = array.dtype.kind
    if kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    if kind in "iuf" and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array if array.flags.aligned else array.copy()


def is_missing(value: object) -> bool:
    """Return whether a value is a missing value: None, NaN, NaT or pandas' NA."""
    kind = type(value)
    if kind is str or kind is int:  # the most frequent types; the checks below are slow
        return False
    if isinstance(value, float | np.floating | np.datetime64 | np.timedelta64):
        return bool(value != value)
    return value is None or kind.__name__ in ("NAType", "NaTType")


def missing_mask(column: Column) -> np.ndarray:
    """Return a boolean array that is True where the cell of a column is missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return column != column if column.dtype.kind in "fcmM" else np.zeros(len(column), dtype=bool)
    if hasattr(column, "dictionary") and not column.dictionary.null_count:
        return np.asarray(column.indices.is_null())
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column
    return np.array([is_missing(cell) for cell in cells], dtype=bool)


def _encode_numbers(values: np.ndarray, name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Return the codes and the domain of an array of numbers or booleans."""
    if values.ndim != 1:
        raise DataError.wrong_shape(f"column {name!r}", values.shape, "one axis")
    if values.dtype.kind == "b":
        return values.view(np.uint8), Domain([False, True], name, is_sorted=ordered)
    if values.dtype.kind == "f":
        return _encode_floats(values, name, ordered)
    if len(values) == 0:
        return values.astype(np.int8), Domain.of_integers([], name, is_sorted=ordered)
    low, high = _range(values)
    if low >= 0 and high < _DIRECT_LEVELS:
        return values, Domain.of_integers(range(high + 1), name, is_sorted=ordered)
    if high - low < _DIRECT_LEVELS:
        return _distance(values, low, np.uint8), Domain.of_integers(range(low, high + 1), name, is_sorted=ordered)
    if high - low < min(max(_DENSE_LEVELS, len(values)), 2**31 - 2):  # a dense range: drop unobserved values
        distance = _distance(values, low, np.int32)
        observed = np.flatnonzero(count_levels(distance, high - low + 1))
        domain = Domain.of_integers([low + gap for gap in observed.tolist()], name, is_sorted=ordered)
        if len(observed) == high - low + 1:
            return distance, domain
        new_codes = np.zeros(high - low + 1, dtype=np.int32)
        new_codes[observed] = np.arange(len(observed))
        return new_codes[distance], domain
    import pyarrow as pa

    codes, dictionary = distinct(pa.array(values))  # np.unique sorts, which takes eight times as long
    return _relabel(codes, dictionary.to_pylist(), name, ordered)


def _range(values: np.ndarray) -> tuple[int, int]:
    """Return the minimum and the maximum of an integer array."""
    try:
        (low,), (high,) = kernels.column_ranges([values])
    except OverflowError:  # beyond 2⁶³
        return int(values.min()), int(values.max())
    return int(low), int(high)


def _distance(values: np.ndarray, low: int, dtype: type) -> np.ndarray:
    """Return integers minus their minimum, in one pass."""
    unsigned = values.view(f"u{values.dtype.itemsize}")  # differences are correct modulo 2^bits
    out: np.ndarray = np.empty(len(values), dtype)
    np.subtract(unsigned, unsigned.dtype.type(low % 2 ** (8 * values.dtype.itemsize)), out=out, casting="unsafe")
    return out


def _encode_floats(values: np.ndarray, name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Return the codes and the domain of integer-valued floats; NaN is missing, other floats raise LabelError."""
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    if np.array_equal(integers, values) and max(map(abs, _range(integers)), default=0) < 2**53:
        return _encode_numbers(integers, name, ordered)
    is_null = np.isnan(values)
    known = values[~is_null]
    is_invalid = ~(np.isfinite(known) & (known == np.floor(known)) & (np.abs(known) < 2.0**53))
    if is_invalid.any():
        level = float(known[is_invalid][0])
        raise (LabelError.too_large if level.is_integer() else LabelError.bad_level)(level, name)
    codes, domain = _encode_numbers(known.astype(np.int64), name, ordered)
    if not is_null.any():
        return codes, domain
    out = np.full(len(values), -1, dtype=np.int64)
    out[~is_null] = codes
    return out, domain


def _encode_arrow(values: Column, name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Return the codes and the domain of strings and mixed objects, by Arrow's dictionary encoding."""
    import pyarrow as pa

    array = values
    if hasattr(values, "to_arrow"):  # Polars or narwhals series
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


def _encode_by_type(array: pa.Array, name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Return the codes and the domain of an Arrow array of dictionaries, numbers, nulls or strings.

    Raise LabelError for other types.
    """
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        # The codes of Polars are unsigned, which excludes −1.
        codes = array.indices.cast(pa.int64()).fill_null(-1) if array.indices.null_count else array.indices
        return _relabel(codes.to_numpy(zero_copy_only=False), array.dictionary.to_pylist(), name, ordered)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if array.null_count == 0:
            return _encode_numbers(plain_array(array.to_numpy(zero_copy_only=False), name), name, ordered)
    elif pa.types.is_null(kind):
        return np.full(len(array), -1, dtype=np.int8), Domain([], name, is_sorted=ordered)
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        first = next((item.as_py() for item in array if item.is_valid), None)
        if first is None:  # all cells are missing
            return np.full(len(array), -1, dtype=np.int8), Domain([], name, is_sorted=ordered)
        raise LabelError.bad_level(first, name)
    codes, dictionary = distinct(array.cast(pa.large_string()) if pa.types.is_string_view(kind) else array)
    return _relabel(codes, dictionary.to_pylist(), name, ordered)


def _to_arrow(values: Column, name: str) -> Any:
    """Convert values to an Arrow array; raise LabelError if they are of several kinds."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except UnicodeError:  # an object that cannot be encoded, or a NumPy string that cannot be decoded
        invalid = next(value for value in values if isinstance(value, str) and not is_text(value))
        raise LabelError.no_text(str(invalid), name) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError):
        if not isinstance(values, np.ndarray | list):
            return _to_arrow(np.asarray(values), name)  # a series of an extension type, such as pandas' sparse types
        # Objects without a common Arrow type: find the first whose kind differs from those before it.
        domains = [Domain([value], name) for value in values if not is_missing(value)]
        for domain in domains:
            if domain.kind != domains[0].kind:
                raise LabelError.kinds_differ(name, str(domains[0].kind), str(domain.kind)) from None
        if not domains or domains[0].kind != "int":
            raise
        Domain(dict.fromkeys(domain.levels[0] for domain in domains), name)  # raises for numbers of more than 64 bits
        return pa.array(values, pa.uint64(), from_pandas=True)


def _relabel(codes: np.ndarray, levels: list[Any], name: str, ordered: bool) -> tuple[np.ndarray, Domain]:
    """Return codes and a domain, from codes into `levels`; the domain may sort levels and drop missing ones."""
    unique_levels = dict.fromkeys(level for level in levels if not is_missing(level))  # Arrow allows duplicate levels
    domain = Domain(unique_levels, name, is_sorted=ordered)
    if domain.levels == tuple(levels):
        return codes, domain
    new_codes = np.append(domain.positions_of(_plain(level) for level in levels), -1)  # code −1 selects the last
    return np.take(new_codes.astype(np.min_scalar_type(-max(1, len(levels)))), codes, mode="wrap"), domain


def _plain(level: object) -> Any:
    """Return integer-valued floats as integers, and other values unchanged."""
    return int(level) if isinstance(level, float) and level.is_integer() else level


def numeric(column: Column, name: Name) -> np.ndarray:
    """Convert a column or block to an array of numbers; None and NA become NaN, True becomes 1."""
    if not isinstance(column, np.ndarray):
        column = column.to_numpy(zero_copy_only=False) if hasattr(column, "type") else np.asarray(column)
    column = plain_array(column, name)
    if column.dtype.kind in "biuf":
        return column.view(np.uint8) if column.dtype.kind == "b" else column
    cells = column.ravel().tolist() if column.dtype.kind in "OU" else list(column.ravel())
    for value in cells:
        if not is_missing(value) and not is_number(value):
            found_text = f"partly {short_repr(value)} ({type(value).__name__})"
            example = next((other for other in cells if not is_missing(other) and is_number(other)), None)
            if isinstance(value, str) and example is not None:
                found_text += f" and partly {short_repr(example)}"
            raise DataError.wrong_type(
                f"column {name!r}", found_text, "numbers", conversion_hint(value) or _NUMBERS_OR_LEVELS
            )
    return np.array([np.nan if is_missing(v) else v for v in cells], dtype=np.float64).reshape(column.shape)


_NUMBERS_OR_LEVELS = (  # at fitting and at prediction
    "Convert it with pd.to_numeric(column, errors='coerce'). To fit categories, use column.astype(str) with "
    "Categorical() or Bernoulli(success=...)."
)


def is_number(value: object) -> bool:
    """Return whether a cell is a real number."""
    is_numeric = isinstance(value, int | float | Decimal | np.bool_ | np.number)
    return is_numeric and not isinstance(value, np.complexfloating | np.timedelta64)
