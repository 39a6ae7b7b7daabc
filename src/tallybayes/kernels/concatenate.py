"""Arrays laid end to end: as many as there are sequences, so that each must cost next to nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Int64Array
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["Joined", "join_arrays"]

_ANY = 2**63 - 1


class Joined(NamedTuple):
    """Several arrays of numbers below each other, unless they were too long, and the length of each."""

    array: AnyArray | None
    lengths: Int64Array


def join_arrays(
    arrays: Iterable[Any], *, shorter: bool = False, at_most: int | None = None, threads: int = 0
) -> Joined | None:
    """Return several arrays of numbers below each other, and the length of each.

    Parameters
    ----------
    arrays : iterable
        Where they lie end to end already, as slices of one array do, they are read where they are.
    shorter : bool, default False
        Whole numbers take two bytes each, if that is less and all of them fit.
    at_most : int, optional
        Arrays of more bytes together are not joined, if they would have to be copied.
    threads : int, default 0
        0 for as many as there are cores.

    Returns
    -------
    Joined, or None
        None where something else than an array is among them, or where those that are not empty differ in type or in
        the columns that they have.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.concatenate import join_arrays
    >>> steps, lengths = join_arrays([np.array([1, 2]), np.array([3])], shorter=True)
    >>> steps, lengths
    (array([1, 2, 3], dtype=int16), array([2, 1]))
    """
    parts = list(arrays)  # a list of our own, by which arrays that are read in place are kept
    some = (part for part in parts if type(part) is not np.ndarray or part.shape[:1] != (0,))
    first = next(some, None)
    if type(first) is not np.ndarray or not first.ndim or first.dtype.kind not in "biuf" or not first.dtype.isnative:
        return None
    shorter = shorter and first.dtype.kind == "i" and first.dtype.itemsize > 2
    most = _ANY if at_most is None else at_most
    found = _compiled(parts, first, shorter, most, n_threads(threads))
    return _reference(parts, first, shorter, most) if found is None else found


def _compiled(parts: list[Any], first: AnyArray, shorter: bool, at_most: int, threads: int) -> Joined | None:
    from tallybayes import kernels

    if kernels._kernels is kernels._reference:
        return None
    lengths = np.empty(len(parts), dtype=np.int64)
    found = kernels._kernels.join_arrays(parts, lengths, shorter, first.dtype.itemsize, at_most, threads)
    if found is None:
        return None
    if isinstance(found, int):
        return Joined(None, lengths)
    data, item_bytes = found
    dtype = first.dtype if item_bytes == first.dtype.itemsize else np.dtype(np.int16)
    return Joined(data.view(dtype).reshape(-1, *first.shape[1:]), lengths)


def _reference(parts: list[Any], first: AnyArray, shorter: bool, at_most: int) -> Joined | None:
    if not all(type(part) is np.ndarray and part.ndim for part in parts):
        return None
    some = [part for part in parts if len(part)]
    if any(part.dtype != first.dtype or part.shape[1:] != first.shape[1:] for part in some):
        return None
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    if sum(part.nbytes for part in some) > at_most:
        return Joined(None, lengths)
    joined, small = np.concatenate(some), np.iinfo(np.int16)
    if shorter and joined.size and small.min <= joined.min() and joined.max() <= small.max:
        joined = joined.astype(np.int16)
    return Joined(joined, lengths)
