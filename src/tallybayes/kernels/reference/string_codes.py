"""Encoding of strings as integer codes by PyArrow's dictionary encoding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.arguments import AnyArray, Int64Array


def present_strings(valid: AnyArray | None, skipped: int, n: int) -> np.ndarray:
    """Return a mask of the rows with a string, from the bits of Arrow's validity bitmap."""
    if valid is None:
        return np.ones(n, dtype=bool)
    return np.unpackbits(valid, count=skipped + n, bitorder="little")[skipped:].astype(bool)


def distinct_strings(
    offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int, codes: npt.NDArray[np.int32]
) -> Int64Array:
    """Number distinct strings in order of first occurrence; see `tallybayes.kernels.text.string_codes`."""
    import pyarrow as pa

    n = len(offsets) - 1
    present = present_strings(valid, skipped, n)
    starts = offsets[:-1][present]
    stops = offsets[1:][present]
    if len(starts) and (starts.min() < 0 or (stops < starts).any() or stops.max() > len(data)):
        raise IndexError("an offset leads out of the bytes")
    parts = (np.packbits(present, bitorder="little"), offsets.astype(np.int64), np.ascontiguousarray(data))
    array = pa.Array.from_buffers(pa.large_binary(), n, [pa.py_buffer(part) for part in parts])
    codes[:] = array.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(present)[::-1]
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[rows]] = rows  # the last assignment to an element wins: the first row
    return first
