"""Hash index of words stored in one buffer, without Python objects for single words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Int64Array
from tallybayes.kernels.reference import text_counts as _reference

__all__ = ["WordIndex", "buckets"]

_MAX_BITS = 30
_BYTES: _arguments.Types = frozenset({np.dtype(np.uint8)})


class WordIndex:
    """Words in a fixed order, with a hash index of their positions.

    Parameters
    ----------
    data : uint8 array
        The words in UTF-8, concatenated.
    offsets : int64 array of shape (n + 1,)
        Start of every word, and end of the last. Words must be distinct.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.text.word_index import WordIndex
    >>> vocabulary = WordIndex(np.frombuffer(b"clicktowin", np.uint8), np.array([0, 5, 7, 10]))
    >>> vocabulary.positions(np.frombuffer(b"winmoneyto", np.uint8), np.array([0, 3, 8, 10])).tolist()
    [2, -1, 1]
    >>> len(vocabulary), vocabulary.words()
    (3, ['click', 'to', 'win'])
    """

    def __init__(self, data: AnyArray, offsets: Int64Array) -> None:
        check_words(data, offsets)
        self.data = data
        self.offsets = offsets
        self.index = implementation_for(_reference).Vocabulary(data, offsets)  # hash table of the kernels

    def __reduce__(self) -> tuple[Any, ...]:
        return WordIndex, (self.data, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def positions(self, data: AnyArray, offsets: Int64Array) -> Int64Array:
        """Return the positions of other words in this vocabulary, −1 for unknown words."""
        check_words(data, offsets)
        return np.asarray(self.index.positions(data, offsets))

    def words(self) -> list[str]:
        """Return the words as strings."""
        buffer = self.data.tobytes()
        return [buffer[start:stop].decode("utf-8") for start, stop in pairwise(self.offsets.tolist())]


def buckets(data: AnyArray, offsets: Int64Array, hashing: int) -> Int64Array:
    """Return the hash buckets of words.

    Parameters
    ----------
    data, offsets
        Words in the layout of `WordIndex`.
    hashing : int
        Logarithm of the number of buckets, to base 2.

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
    return np.asarray(implementation_for(_reference).buckets(data, offsets, hashing))


def check_texts(offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int) -> int:
    """Return the number of strings, or raise TypeError or ValueError if the arrays cannot contain strings."""
    _arguments.check_array(offsets, "offsets", 1, _arguments.INDEX_TYPES)
    _arguments.check_array(data, "data", 1, _BYTES)
    n_rows = len(offsets) - 1
    if not 0 <= n_rows < 2**31:
        raise ValueError(f"offsets has {len(offsets)} numbers, expected 1 to 2**31")
    if skipped < 0 or (valid is not None and 8 * len(valid) < n_rows + skipped):
        raise ValueError(f"valid has too few bits for {n_rows} rows after {skipped}")
    return n_rows


def check_words(data: AnyArray, offsets: Int64Array) -> None:
    """Raise TypeError or ValueError unless the arrays can contain words."""
    if offsets.dtype != np.int64:
        raise TypeError(f"offsets has dtype {offsets.dtype}, expected int64; convert it with .astype")
    check_texts(offsets, data, None, 0)


def check_hashing(hashing: int) -> None:
    """Raise ValueError unless `hashing` is a valid number of bits."""
    if not 1 <= hashing <= _MAX_BITS:
        raise ValueError(f"hashing is {hashing}, expected 1 to {_MAX_BITS}: the buckets are 2**hashing")
