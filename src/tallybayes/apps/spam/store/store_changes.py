"""What a transaction changes: which messages come, go or move, and the steps of every word's counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tallybayes.apps.spam.store.message_codec import Batch, Ids, only, packed_words, unpack

Outcome = Literal["learned", "known", "other", "relearned", "forgotten", "unknown"]


class Change:
    """What becomes of some messages.

    Parameters
    ----------
    known : mapping from content id to (spam, packed words)
        Those of them that are kept already.
    label : "ham", "spam" or None
        What they are to be; None for nothing, which forgets them.
    move : bool
        Whether those of the other class are to be moved.
    """

    def __init__(self, known: Mapping[bytes, tuple[int, bytes]], label: str | None, move: bool) -> None:
        self.target = None if label is None else int(label == "spam")
        self.fresh: set[bytes] = set()
        self.moved: dict[bytes, tuple[int, bytes]] = {}
        self._known, self._move = known, move
        self._steps: list[tuple[int, Ids, Ids]] = []  # class, words, by how much

    def outcome(self, name: bytes) -> Outcome:
        """What becomes of the next message."""
        again: Outcome = "unknown" if self.target is None else "known"
        if name in self.fresh or name in self.moved:
            return again
        if name not in self._known:
            if self.target is None:
                return "unknown"
            self.fresh.add(name)
            return "learned"
        if self._known[name][0] == self.target:
            return "known"
        if not self._move:
            return "other"
        self.moved[name] = self._known[name]
        return "forgotten" if self.target is None else "relearned"

    def new_mails(self, batches: Sequence[Batch]) -> list[Batch]:
        """Those that are to be counted, each once, and with their words alone: others have none to be numbered."""
        left, found = set(self.fresh), []
        for batch in batches:
            kept = np.zeros(len(batch.ids), bool)
            for place, name in enumerate(batch.ids):
                if name in left:
                    left.remove(name)
                    kept[place] = True
            found.append(only(batch, kept))
        return found

    def add(self, batches: Sequence[Batch], ids: Sequence[Ids]) -> dict[bytes, bytes]:
        """Count new mails, of whose words these are the ids; the words of each, packed."""
        assert self.target is not None
        packed: dict[bytes, bytes] = {}
        for batch, named in zip(batches, ids, strict=True):
            content, words, counts = packed_words(named, batch.tokens, batch.lengths)
            self._steps.append((self.target, words, counts))
            packed.update(zip(batch.ids, content, strict=True))
        return packed

    def steps(self) -> tuple[list[int], list[int], list[int]]:
        """The words whose counts change, in order, and by how much in ham and in spam."""
        for spam in (0, 1):
            words = unpack([packed for label, packed in self.moved.values() if label == spam])[0]
            self._steps.append((spam, words, np.full(len(words), -1)))
            if self.target is not None:
                self._steps.append((self.target, words, np.ones(len(words), np.int64)))
        every = np.concatenate([words for _, words, _ in self._steps])
        low, high = int(every.min(initial=0)), int(every.max(initial=0))
        if high - low < 8 * len(every):  # many words: each has its place, and nothing is sorted
            ids, place = np.arange(low, high + 1), every - low
        else:
            ids, place = np.unique(every, return_inverse=True)
        table, start = np.zeros((2, len(ids)), np.int64), 0
        for spam, words, counts in self._steps:
            np.add.at(table[spam], place[start : start + len(words)], counts)
            start += len(words)
        kept = np.bincount(place, minlength=len(ids)) > 0
        return ids[kept].tolist(), table[0][kept].tolist(), table[1][kept].tolist()

    def totals(self) -> tuple[int, int]:
        """By how much the numbers of ham and of spam messages change."""
        found: list[Any] = [0, 0]
        for spam, _ in self.moved.values():
            found[spam] -= 1
        if self.target is not None:
            found[self.target] += len(self.fresh) + len(self.moved)
        return found[0], found[1]
