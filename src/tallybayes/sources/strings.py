"""Strings as codes: long columns on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from tallybayes.kernels.strings import distinct_strings
from tallybayes.kernels.threads import threads

_SLICE = 2**16  # so many rows are worth a thread
_SAMPLE, _FEW, _MOST = 2**10, 2**6, 2**12  # of so many rows so few objects, of all rows so many: they share them


def distinct(array: Any) -> tuple[np.ndarray, Any]:
    """Codes of an Arrow array, −1 for null, and what they stand for, in the order in which it first occurs."""
    import pyarrow as pa

    n_slices = max(1, min(len(array) // _SLICE, threads() or pa.cpu_count()))
    bounds = [len(array) * k // n_slices for k in range(n_slices + 1)]
    parts = [array.slice(start, stop - start) for start, stop in pairwise(bounds)]
    if n_slices == 1:
        return _distinct(array)
    with ThreadPoolExecutor(n_slices) as pool:
        found = list(pool.map(_distinct, parts))
    united = pa.concat_arrays([levels for _, levels in found]).dictionary_encode()
    ends = np.cumsum([0, *(len(levels) for _, levels in found)])
    where = united.indices.to_numpy(zero_copy_only=False)
    out = np.empty(len(array), dtype=np.int32)
    for (codes, levels), place, (start, stop) in zip(found, ends, pairwise(bounds), strict=False):
        now = np.append(where[place : place + len(levels)], -1)  # code −1 finds the last
        if np.array_equal(now[:-1], np.arange(len(levels))):
            out[start:stop] = codes
        else:
            np.take(now, codes, mode="wrap", out=out[start:stop])
    return out, united.dictionary


def _distinct(array: Any) -> tuple[np.ndarray, Any]:
    """As `distinct`, on one core: strings by our kernel, all else by Arrow."""
    import pyarrow as pa

    large = pa.types.is_large_string(array.type)
    if not (large or pa.types.is_string(array.type)) or len(array) >= 2**31 - 1:
        encoded = array.dictionary_encode()
        codes = encoded.indices.fill_null(-1) if encoded.indices.null_count else encoded.indices
        return codes.to_numpy(zero_copy_only=False), encoded.dictionary
    bits, ends, data = array.buffers()
    width = np.dtype(np.int64 if large else np.int32)
    offsets = (
        np.frombuffer(ends, width, len(array) + 1, array.offset * width.itemsize) if len(array) else np.zeros(1, width)
    )
    cells = np.frombuffer(data or b"", np.uint8)
    valid = np.frombuffer(bits, np.uint8) if bits is not None and array.null_count else None
    codes, first = distinct_strings(offsets, cells, valid, array.offset)
    return codes, array.take(pa.array(first))


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
