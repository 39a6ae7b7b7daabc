"""Encoding of strings as integer codes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Int64Array
from tallybayes.kernels.reference import string_codes as _reference

__all__ = ["distinct_strings"]

_OFFSETS = (np.dtype(np.int32), np.dtype(np.int64))


def distinct_strings(
    offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int, codes: npt.NDArray[np.int32]
) -> Int64Array:
    """Number distinct strings in order of first occurrence. The kernel is single-threaded and releases the GIL.

    Parameters
    ----------
    offsets : int32 or int64 array of shape (n + 1,)
        Start of every string, and end of the last: row k is ``data[offsets[k] : offsets[k + 1]]`` (Arrow's layout).
    data : uint8 array
        The strings in UTF-8, concatenated.
    valid : uint8 array, or None
        Bits, least significant first: 0 for a missing string. None if no string is missing.
    skipped : int
        Number of bits before that of the first row.
    codes : int32 array of shape (n,)
        Output: the number of every row's string, −1 for a missing string.

    Returns
    -------
    int64 array
        First row with each string.

    Raises
    ------
    IndexError
        If an offset is outside the data.

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
        raise ValueError(f"codes is {codes.dtype} {codes.shape}, expected contiguous int32 for {len(offsets) - 1} rows")
    return np.asarray(implementation_for(_reference).distinct_strings(offsets, data, valid, skipped, codes))
