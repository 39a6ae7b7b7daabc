"""Concatenation of many small arrays, such as sequences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Int64Array
from tallybayes.kernels.arguments import threads as n_threads
from tallybayes.kernels.reference import concatenate as _reference

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
    lengths = np.empty(len(parts), dtype=np.int64)
    arguments = (parts, lengths, shorter, first.dtype.itemsize, limit, n_threads(threads))
    result = implementation_for(_reference).join_arrays(*arguments)
    if result is None:  # the compiled kernel only reads contiguous arrays
        result = _reference.join_arrays(*arguments)
    if result is None:
        return None
    if isinstance(result, int):  # the size in bytes, which exceeds the limit
        return Joined(None, lengths)
    data, item_bytes = result
    dtype = first.dtype if item_bytes == first.dtype.itemsize else np.dtype(np.int16)
    return Joined(data.view(dtype).reshape(-1, *first.shape[1:]), lengths)
