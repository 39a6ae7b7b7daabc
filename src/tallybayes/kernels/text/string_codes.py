"""Strings as codes: which rows have the same one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.arguments import AnyArray, Int64Array
from tallybayes.kernels.reference import string_codes as _reference_strings

__all__ = ["distinct_strings"]

_OFFSETS = (np.dtype(np.int32), np.dtype(np.int64))


def distinct_strings(
    offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int, codes: npt.NDArray[np.int32]
) -> Int64Array:
    """Number strings in the order in which they first occur. One thread works; others may run.

    Parameters
    ----------
    offsets : int32 or int64 array of shape (n + 1,)
        Where the bytes of every string begin, and the last one ends: row k has ``data[offsets[k] : offsets[k + 1]]``.
    data : uint8 array
    valid : uint8 array, or None
        Bits, the lowest first: 0 where there is no string. None: there is one in every row.
    skipped : int
        How many bits stand before that of the first row.
    codes : int32 array of shape (n,)
        Where the number of every row's string is written; −1 where there is none.

    Returns
    -------
    int64 array
        By number: the first row that has the string.

    Raises
    ------
    IndexError
        Where an offset leads out of the bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.text.string_codes import distinct_strings
    >>> codes = np.empty(4, np.int32)
    >>> first = distinct_strings(np.array([0, 2, 3, 5, 6]), np.frombuffer(b"noxnox", np.uint8), None, 0, codes)
    >>> first.tolist(), codes.tolist()
    ([0, 1], [0, 1, 0, 1])
    """
    if offsets.ndim != 1 or offsets.dtype not in _OFFSETS or not 1 <= len(offsets) <= 2**31:
        raise ValueError(f"offsets is {offsets.dtype} {offsets.shape}, expected 1 to 2**31 of int32 or int64")
    if skipped < 0 or (valid is not None and 8 * len(valid) < len(offsets) - 1 + skipped):
        raise ValueError(f"valid has too few bits for {len(offsets) - 1} rows after {skipped}")
    if codes.shape != (len(offsets) - 1,) or codes.dtype != np.int32 or not codes.flags.c_contiguous:
        raise ValueError(
            f"codes is {codes.dtype} {codes.shape}, expected int32 in one piece for {len(offsets) - 1} rows"
        )
    first: Int64Array = _implementation().distinct_strings(offsets, data, valid, skipped, codes)
    return first


def _implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return kernels._kernels if hasattr(kernels._kernels, "distinct_strings") else _reference_strings
