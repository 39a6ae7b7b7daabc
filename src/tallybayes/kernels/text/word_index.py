"""Words in their order, and where each of them stands, without a Python object for any of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Int64Array
from tallybayes.kernels.text.tokenizer import implementation

__all__ = ["WordIndex", "buckets"]

_MOST_BITS = 30
_BYTES: _arguments.Types = frozenset({np.dtype(np.uint8)})


class WordIndex:
    """Words in their order, and where each of them stands. No Python object for any of them.

    Parameters
    ----------
    data : uint8 array
        The words in UTF-8, one after another.
    offsets : int64 array of shape (n + 1,)
        Where each begins, and the last one ends. Every word occurs once.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.text.word_index import WordIndex
    >>> known = WordIndex(np.frombuffer(b"clicktowin", np.uint8), np.array([0, 5, 7, 10]))
    >>> known.positions(np.frombuffer(b"winmoneyto", np.uint8), np.array([0, 3, 8, 10])).tolist()
    [2, -1, 1]
    >>> len(known), known.words()
    (3, ['click', 'to', 'win'])
    """

    def __init__(self, data: AnyArray, offsets: Int64Array) -> None:
        check_words(data, offsets)
        self.data, self.offsets = data, offsets
        self._index = implementation().Vocabulary(data, offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        return WordIndex, (self.data, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def positions(self, data: AnyArray, offsets: Int64Array) -> Int64Array:
        """Where other words stand in this vocabulary; −1 for those that do not."""
        check_words(data, offsets)
        found: Int64Array = self._index.positions(data, offsets)
        return found

    def words(self) -> list[str]:
        """The words as strings."""
        whole, ends = self.data.tobytes(), self.offsets.tolist()
        return [whole[start:stop].decode("utf-8") for start, stop in pairwise(ends)]


def buckets(data: AnyArray, offsets: Int64Array, hashing: int) -> Int64Array:
    """The buckets that words fall into.

    Parameters
    ----------
    data, offsets
        As `WordIndex` takes them.
    hashing : int
        There are ``2**hashing`` buckets.

    Returns
    -------
    int64 array

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.text.word_index import buckets
    >>> buckets(np.frombuffer(b"clicktowin", np.uint8), np.array([0, 5, 7, 10]), 10).tolist()
    [928, 726, 181]
    """
    check_words(data, offsets)
    check_hashing(hashing)
    found: Int64Array = implementation().buckets(data, offsets, hashing)
    return found


def check_texts(offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int) -> int:
    """Refuse what cannot be strings; the number of rows."""
    _arguments.check_array(offsets, "offsets", 1, _arguments.INDEX_TYPES)
    _arguments.check_array(data, "data", 1, _BYTES)
    n_rows = len(offsets) - 1
    if not 0 <= n_rows < 2**31:
        raise ValueError(f"offsets has {len(offsets)} numbers, expected 1 to 2**31")
    if skipped < 0 or (valid is not None and 8 * len(valid) < n_rows + skipped):
        raise ValueError(f"valid has too few bits for {n_rows} rows after {skipped}")
    return n_rows


def check_words(data: AnyArray, offsets: Int64Array) -> None:
    if offsets.dtype != np.int64:
        raise TypeError(f"offsets has dtype {offsets.dtype}, expected int64; convert it with .astype")
    check_texts(offsets, data, None, 0)


def check_hashing(hashing: int) -> None:
    if not 1 <= hashing <= _MOST_BITS:
        raise ValueError(f"hashing is {hashing}, expected 1 to {_MOST_BITS}: the buckets are 2**hashing")
