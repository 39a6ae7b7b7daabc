"""Concatenation of arrays in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Int64Array


def join_arrays(
    parts: list[Any], lengths: Int64Array, shorter: bool, item_bytes: int, at_most: int, threads: int
) -> tuple[AnyArray, int] | int | None:
    """Return the concatenated bytes and the size of an element, and write the length of every array.

    Return only the size in bytes if it exceeds `at_most`, and None if the arrays cannot be concatenated.
    """
    if not all(type(part) is np.ndarray and part.ndim for part in parts):
        return None
    nonempty = [part for part in parts if len(part)]
    if len({(part.dtype, part.shape[1:]) for part in nonempty}) > 1:
        return None
    lengths[:] = [len(part) for part in parts]
    size = sum(part.nbytes for part in nonempty)
    if size > at_most:
        return size
    joined = np.concatenate(nonempty)
    limits = np.iinfo(np.int16)
    if shorter and joined.size and limits.min <= joined.min() and joined.max() <= limits.max:
        joined = joined.astype(np.int16)
    return np.ascontiguousarray(joined).reshape(-1).view(np.uint8), joined.dtype.itemsize
