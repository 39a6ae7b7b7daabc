"""Strings as codes: long columns on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from tallybayes.kernels.text.string_codes import distinct_strings
from tallybayes.kernels.threads import threads

_SLICE = 2**16  # so many rows are worth a thread
_SAMPLE, _FEW, _MOST = 2**10, 2**6, 2**12  # of so many rows so few objects, of all rows so many: they share them


def distinct(array: Any) -> tuple[np.ndarray, Any]:
    """Codes of an Arrow array, −1 for null, and what they stand for, in the order in which it first occurs."""
    import pyarrow as pa

    codes = np.empty(len(array), dtype=np.int32)
    n_slices = max(1, min(len(array) // _SLICE, threads() or pa.cpu_count()), len(array) >> 30)
    if n_slices == 1:
        return codes, _encode(array, codes)
    bounds = list(pairwise(len(array) * k // n_slices for k in range(n_slices + 1)))
    with ThreadPoolExecutor(n_slices) as pool:
        work = [pool.submit(_encode, array.slice(start, stop - start), codes[start:stop]) for start, stop in bounds]
        found = [one.result() for one in work]
    united = pa.concat_arrays(found).dictionary_encode()
    where, place = united.indices.to_numpy(zero_copy_only=False), 0
    for (start, stop), levels in zip(bounds, found, strict=True):
        now = where[place : place + len(levels)]
        if not np.array_equal(now, np.arange(len(levels))):
            np.take(np.append(now, -1), codes[start:stop], mode="wrap", out=codes[start:stop])  # −1 finds the last
        place += len(levels)
    return codes, united.dictionary


def _encode(array: Any, codes: np.ndarray) -> Any:
    """Write the codes of an array, on one core; what they stand for. Strings by our kernel, all else by Arrow."""
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
    """Codes of an array of NumPy's strings, whose bytes are hashed where they lie."""
    import pyarrow as pa

    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    cells = pa.Array.from_buffers(pa.binary(values.dtype.itemsize), len(values), [None, pa.py_buffer(values)])
    codes, dictionary = distinct(cells)
    levels = np.frombuffer(b"".join(dictionary.to_pylist()), dtype=values.dtype).tolist()
    return codes, levels


def shared_objects(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Codes of an array of objects and the objects, where many rows point to the same few; else None.

    Which object it is says a cell's address, without a look at the object.
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
    objects, start = np.empty(len(dictionary), dtype=object), 0
    n_found = 0
    while n_found < len(objects):
        fresh, place = np.unique(codes[start : start + _MOST], return_index=True)
        objects[fresh] = values[start + place]
        n_found, start = max(n_found, int(fresh[-1]) + 1), start + _MOST
    return codes, objects


def shared_labels(values: np.ndarray) -> Any:
    """An array of objects as a dictionary of Arrow's, where many rows point to the same few strings; else None."""
    import pyarrow as pa

    shared = shared_objects(values)
    if shared is None:
        return None
    codes, objects = shared
    missing = np.array([value is None or (isinstance(value, float) and value != value) for value in objects])
    if not all(gone or type(value) is str for value, gone in zip(objects, missing, strict=True)):
        return None
    indices = pa.array(codes, mask=missing[codes]) if missing.any() else pa.array(codes)
    try:
        return pa.DictionaryArray.from_arrays(indices, pa.array(np.where(missing, "", objects), pa.string()))
    except UnicodeError:  # no text; whoever encodes it says so
        return None
