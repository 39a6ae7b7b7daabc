"""A table over several arrays that are concatenated in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.data.table import Table, open_table
from tallybayes.kernels.concatenate import Joined, join_arrays


class ConcatenatedTable(Table):
    """The rows of several arrays of one kind, concatenated.

    A slice that consists of whole arrays is concatenated alone. It is then used while it is in the processor's cache,
    and the memory of all rows is not needed. Other access concatenates all arrays, once.

    Parameters
    ----------
    arrays : sequence of ndarrays
        As `join_arrays` takes them, not all of them empty.
    lengths : int64 array
    """

    def __init__(self, arrays: Sequence[Any], lengths: np.ndarray) -> None:
        self._arrays = arrays
        self._offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.n_rows = int(self._offsets[-1])
        self._empty = open_table(arrays[int(np.argmax(lengths > 0))][:0])

    def __getattr__(self, name: str) -> Any:
        if name == "_empty" or name not in vars(self._empty):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        vars(self).update(vars(_open(self._arrays)))
        return vars(self)[name]

    @property
    def names(self) -> Any:
        """The names of the columns."""
        return self._empty.names

    def rows(self, part: slice | np.ndarray) -> Table:
        """Return some rows, by a slice or by their numbers."""
        if isinstance(part, slice) and "columns" not in vars(self):
            start, stop, step = part.indices(self.n_rows)
            first, last = np.searchsorted(self._offsets, [start, stop])
            if step == 1 and self._offsets[first] == start and self._offsets[last] == stop:
                return _open(self._arrays[first:last]) if start < stop else self._empty
        return super().rows(part)


def _open(arrays: Sequence[Any]) -> Table:
    """Return the table of concatenated arrays."""
    joined = join_arrays(arrays)
    assert isinstance(joined, Joined)
    return open_table(joined.array)
