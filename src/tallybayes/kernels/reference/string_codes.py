"""Strings as codes, by Arrow's hashing: what the compiled kernel is tested against, and what runs without it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.arguments import AnyArray, Int64Array


def distinct_strings(
    offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int, codes: npt.NDArray[np.int32]
) -> Int64Array:
    """Number strings in the order in which they first occur; see `tallybayes.kernels.text.string_codes`."""
    import pyarrow as pa

    n = len(offsets) - 1
    there = np.ones(n, dtype=bool)
    if valid is not None:
        there = np.unpackbits(valid, count=skipped + n, bitorder="little")[skipped:].astype(bool)
    starts, stops = offsets[:-1][there], offsets[1:][there]
    if len(starts) and (starts.min() < 0 or (stops < starts).any() or stops.max() > len(data)):
        raise IndexError("an offset leads out of the bytes")
    parts = (np.packbits(there, bitorder="little"), offsets.astype(np.int64), np.ascontiguousarray(data))
    array = pa.Array.from_buffers(pa.large_binary(), n, [pa.py_buffer(part) for part in parts])
    codes[:] = array.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(there)[::-1]
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[rows]] = rows  # what is written last is the first row
    return first
