"""Vocabulary: the words of a text column as a domain, stored in one buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import numpy as np

from tallybayes._utils import sealed_file
from tallybayes.errors import LabelError
from tallybayes.kernels.text import text_counts
from tallybayes.tally.domain import Domain

NO_WORDS = np.zeros(0, np.uint8), np.zeros(1, np.int64)


class Strings(Sequence[str]):
    """Sequence of strings stored in one UTF-8 buffer and decoded on access.

    Parameters
    ----------
    data : ndarray of uint8
        The strings in UTF-8, concatenated.
    offsets : ndarray of int64, shape (n + 1,)
        String ``i`` is ``data[offsets[i]:offsets[i + 1]]``.
    """

    __slots__ = ("data", "offsets")

    def __init__(self, data: np.ndarray, offsets: np.ndarray) -> None:
        self.data = data
        self.offsets = offsets

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Create from an iterable of strings."""
        return strings if isinstance(strings, Strings) else cls(*sealed_file.pack_strings(list(strings)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[k] for k in range(len(self))[index])
        k = range(len(self))[index]
        return self.data[self.offsets[k] : self.offsets[k + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        buffer = self.data.tobytes()
        ends = self.offsets.tolist()
        return (buffer[start:stop].decode() for start, stop in pairwise(ends))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strings):
            return NotImplemented
        same = self is other or np.array_equal(self.offsets, other.offsets)
        return same and (self.data is other.data or np.array_equal(self.data, other.data))

    __hash__ = None  # type: ignore[assignment]

    def take(self, indices: np.ndarray) -> Strings:
        """Return the strings with these indices."""
        lengths = np.diff(self.offsets)[indices]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return Strings(self.data[np.repeat(self.offsets[:-1][indices], lengths) + within], offsets)

    def joined(self, other: Strings) -> Strings:
        """Return these strings followed by `other`."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        return Strings(np.concatenate([self.data, other.data]), offsets)


class Vocabulary(Domain):
    """The words of a text column, in order of first occurrence.

    It supports the operations of a domain: union, filter and positions. Words are decoded only on access.

    Parameters
    ----------
    words : Strings, or iterable of str
        The words without duplicates.
    name : str
        Name in error messages.

    Examples
    --------
    >>> from tallybayes.tally.vocabulary import Vocabulary
    >>> Vocabulary(["win", "click"], "subject").union(Vocabulary(["to", "win"], "subject")).levels[:]
    ('win', 'click', 'to')
    """

    levels: Any

    def __init__(self, words: Iterable[str], name: str) -> None:
        self.name = name
        self.is_sorted = False
        self.declared = frozenset()
        self.kind = "string"
        self.levels = Strings.of(words)

    @cached_property
    def lookup(self) -> text_counts.WordIndex:
        """Hash index of the words for the kernels."""
        return text_counts.WordIndex(self.levels.data, self.levels.offsets)

    @cached_property
    def index(self) -> dict[Any, int]:
        """Position of every word, as a dictionary. `lookup` is faster and needs less memory."""
        return {word: position for position, word in enumerate(self.levels)}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("lookup", "index")}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented if not isinstance(other, Domain) else False
        if self.name != other.name or len(self.levels) != len(other.levels):
            return False
        return self.levels == other.levels or bool((self.positions_of(other.levels) >= 0).all())

    def __hash__(self) -> int:
        return hash((self.name, len(self.levels)))

    def union(self, other: Domain) -> Vocabulary:
        """Return the words of both, this domain's first."""
        if not isinstance(other, Vocabulary):
            raise LabelError.kinds_differ(self.name, "words", str(other.kind))
        if self.levels == other.levels:
            return self
        new = np.flatnonzero(self.positions_of(other.levels) < 0)
        return Vocabulary(self.levels.joined(other.levels.take(new)), self.name) if len(new) else self

    def positions_of(self, levels: Iterable[Any]) -> np.ndarray:
        """Return the position of each word, −1 for unknown words."""
        words = Strings.of(levels)
        return self.lookup.positions(words.data, words.offsets)

    def filter(self, present: np.ndarray) -> Vocabulary:
        """Keep only the words that are present (a mask)."""
        return self if present.all() else Vocabulary(self.levels.take(np.flatnonzero(present)), self.name)
