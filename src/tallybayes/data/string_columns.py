"""Dictionary encoding of string columns, in parallel for long columns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.kernels.arguments import threads
from tallybayes.kernels.text.string_codes import distinct_strings

if TYPE_CHECKING:
    import pyarrow as pa

_SLICE = 2**16  # rows per thread, at least
# Rows share objects if the first _SAMPLE rows have at most _FEW different objects, and all rows at most _MOST.
_SAMPLE = 2**10
_FEW = 2**6
_MOST = 2**12


def distinct(array: pa.Array) -> tuple[np.ndarray, Any]:
    """Return the codes of an Arrow array, −1 for null, and its distinct values in order of first occurrence."""
    import pyarrow as pa

    codes = np.empty(len(array), dtype=np.int32)
    n_slices = max(1, min(len(array) // _SLICE, threads() or pa.cpu_count()), len(array) >> 30)
    if n_slices == 1:
        return codes, _encode(array, codes)
    bounds = list(pairwise(len(array) * k // n_slices for k in range(n_slices + 1)))
    with ThreadPoolExecutor(n_slices) as pool:
        work = [pool.submit(_encode, array.slice(start, stop - start), codes[start:stop]) for start, stop in bounds]
        distinct_values = [one.result() for one in work]
    united = pa.concat_arrays(distinct_values).dictionary_encode()
    united_codes = united.indices.to_numpy(zero_copy_only=False)
    position = 0
    for (start, stop), values in zip(bounds, distinct_values, strict=True):
        new_codes = united_codes[position : position + len(values)]
        if not np.array_equal(new_codes, np.arange(len(values))):
            np.take(
                np.append(new_codes, -1), codes[start:stop], mode="wrap", out=codes[start:stop]
            )  # −1 selects the last
        position += len(values)
    return codes, united.dictionary


def _encode(array: pa.Array, codes: np.ndarray) -> Any:
    """Write the codes of an array into `codes` and return its distinct values, on one thread.

    Strings are encoded by a kernel of this package, other types by Arrow.
    """
    import pyarrow as pa

    large = pa.types.is_large_string(array.type)
    if not len(array) or not (large or pa.types.is_string(array.type)):
        encoded = array.dictionary_encode()
        codes[:] = (encoded.indices.fill_null(-1) if encoded.indices.null_count else encoded.indices).to_numpy()
        return encoded.dictionary
    bits, ends, data = array.buffers()
    width = np.dtype(np.int64 if large else np.int32)
    offsets = np.frombuffer(ends, width, len(array) + 1, array.offset * width.itemsize)
    valid = np.frombuffer(bits, np.uint8) if bits is not None and array.null_count else None
    first = distinct_strings(offsets, np.frombuffer(data or b"", np.uint8), valid, array.offset, codes)
    return array.take(pa.array(first))


def encode_fixed(values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return the codes and levels of a NumPy string array; the bytes of strings are hashed without conversion."""
    import pyarrow as pa

    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    cells = pa.Array.from_buffers(pa.binary(values.dtype.itemsize), len(values), [None, pa.py_buffer(values)])
    codes, dictionary = distinct(cells)
    levels = np.frombuffer(b"".join(dictionary.to_pylist()), dtype=values.dtype).tolist()
    return codes, levels


def shared_objects(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the codes and the distinct objects of an object array, or None unless many rows refer to few objects.

    Objects are compared by their addresses.
    """
    import pyarrow as pa

    address = np.dtype(np.intp).str
    interface = {**values.__array_interface__, "typestr": address, "descr": [("", address)]}
    addresses = np.asarray(SimpleNamespace(__array_interface__=interface))
    if len(values) <= _SAMPLE or len(np.unique(addresses[:_SAMPLE])) > _FEW:
        return None
    codes, dictionary = distinct(pa.array(addresses))
    if len(dictionary) > _MOST:
        return None
    objects = np.empty(len(dictionary), dtype=object)
    start = 0
    n_found = 0
    while n_found < len(objects):
        new_codes, position = np.unique(codes[start : start + _MOST], return_index=True)
        objects[new_codes] = values[start + position]
        n_found = max(n_found, int(new_codes[-1]) + 1)
        start = start + _MOST
    return codes, objects


def shared_labels(values: np.ndarray) -> Any:
    """Return an object array as an Arrow dictionary if many rows are references to few strings; else None."""
    import pyarrow as pa

    shared = shared_objects(values)
    if shared is None:
        return None
    codes, objects = shared
    is_null = np.array([value is None or (isinstance(value, float) and value != value) for value in objects])
    if not all(is_missing or type(value) is str for value, is_missing in zip(objects, is_null, strict=True)):
        return None
    indices = pa.array(codes, mask=is_null[codes]) if is_null.any() else pa.array(codes)
    try:
        return pa.DictionaryArray.from_arrays(indices, pa.array(np.where(is_null, "", objects), pa.string()))
    except UnicodeError:  # not valid Unicode; `encode` raises the error
        return None
