"""Concatenation of many small arrays, such as sequences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.kernels import active
from tallybayes.kernels.arguments import AnyArray, Int64Array
from tallybayes.kernels.reference import sums as _reference_sums
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["Joined", "join_arrays"]

_NO_LIMIT = 2**63 - 1


class Joined(NamedTuple):
    """The concatenated arrays, or None if they exceed the size limit, and the length of each."""

    array: AnyArray | None
    lengths: Int64Array


def join_arrays(
    arrays: Iterable[Any], *, shorter: bool = False, at_most: int | None = None, threads: int = 0
) -> Joined | None:
    """Concatenate numeric arrays along the first axis.

    Parameters
    ----------
    arrays : iterable
        The arrays. Consecutive slices of one array are not copied.
    shorter : bool, default False
        Whether to convert signed integers to int16 if all values fit.
    at_most : int, optional
        Maximum size in bytes of a copy; larger arrays are not concatenated.
    threads : int, default 0
        See the conventions of `tallybayes.kernels`.

    Returns
    -------
    Joined, or None
        None if an element is not an array, or if nonempty arrays differ in dtype or in the shape of their rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.concatenate import join_arrays
    >>> observations, lengths = join_arrays([np.array([1, 2]), np.array([3])], shorter=True)
    >>> observations, lengths
    (array([1, 2, 3], dtype=int16), array([2, 1]))
    """
    parts = list(arrays)  # keeps a reference to every array that is read in place
    nonempty = (part for part in parts if type(part) is not np.ndarray or part.shape[:1] != (0,))
    first = next(nonempty, None)
    if type(first) is not np.ndarray or not first.ndim or first.dtype.kind not in "biuf" or not first.dtype.isnative:
        return None
    shorter = shorter and first.dtype.kind == "i" and first.dtype.itemsize > 2
    limit = _NO_LIMIT if at_most is None else at_most
    joined = _compiled(parts, first, shorter, limit, n_threads(threads))
    return _reference(parts, first, shorter, limit) if joined is None else joined


def _compiled(parts: list[Any], first: AnyArray, shorter: bool, at_most: int, threads: int) -> Joined | None:
    """Concatenate by the compiled kernel; None if it is not active or cannot."""
    if active.module is _reference_sums:
        return None
    lengths = np.empty(len(parts), dtype=np.int64)
    result = active.module.join_arrays(parts, lengths, shorter, first.dtype.itemsize, at_most, threads)
    if result is None:
        return None
    if isinstance(result, int):  # the size in bytes, which exceeds the limit
        return Joined(None, lengths)
    data, item_bytes = result
    dtype = first.dtype if item_bytes == first.dtype.itemsize else np.dtype(np.int16)
    return Joined(data.view(dtype).reshape(-1, *first.shape[1:]), lengths)


def _reference(parts: list[Any], first: AnyArray, shorter: bool, at_most: int) -> Joined | None:
    """Concatenate by NumPy."""
    if not all(type(part) is np.ndarray and part.ndim for part in parts):
        return None
    nonempty = [part for part in parts if len(part)]
    if any(part.dtype != first.dtype or part.shape[1:] != first.shape[1:] for part in nonempty):
        return None
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    if sum(part.nbytes for part in nonempty) > at_most:
        return Joined(None, lengths)
    joined = np.concatenate(nonempty)
    limits = np.iinfo(np.int16)
    if shorter and joined.size and limits.min <= joined.min() and joined.max() <= limits.max:
        joined = joined.astype(np.int16)
    return Joined(joined, lengths)
