"""Changes of a transaction: new, removed and moved messages, and the differences of the word counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tallybayes.apps.spam.store.message_codec import Batch, Ids, pack_words_of, select_mails, unpack

Outcome = Literal["learned", "known", "other", "relearned", "forgotten", "unknown"]


class Change:
    """Change of a set of messages.

    Parameters
    ----------
    known : mapping from content id to (spam, packed words)
        Stored messages among them.
    label : "ham", "spam" or None
        New class; None forgets the messages.
    move : bool
        Whether messages of the other class are moved.
    """

    def __init__(self, known: Mapping[bytes, tuple[int, bytes]], label: str | None, move: bool) -> None:
        self.target = None if label is None else int(label == "spam")
        self.fresh: set[bytes] = set()
        self.moved: dict[bytes, tuple[int, bytes]] = {}
        self._known = known
        self._move = move
        self._steps: list[tuple[int, Ids, Ids]] = []  # class, word ids, differences

    def outcome(self, name: bytes) -> Outcome:
        """Return the outcome of the next message."""
        unchanged: Outcome = "unknown" if self.target is None else "known"
        if name in self.fresh or name in self.moved:
            return unchanged
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
        """Return the mails to be counted, each once, with their words only."""
        remaining = set(self.fresh)
        selected = []
        for batch in batches:
            kept = np.zeros(len(batch.ids), bool)
            for position, name in enumerate(batch.ids):
                if name in remaining:
                    remaining.remove(name)
                    kept[position] = True
            selected.append(select_mails(batch, kept))
        return selected

    def add(self, batches: Sequence[Batch], ids: Sequence[Ids]) -> dict[bytes, bytes]:
        """Count new mails with these word ids. Return the packed words of each."""
        assert self.target is not None
        packed: dict[bytes, bytes] = {}
        for batch, word_ids in zip(batches, ids, strict=True):
            content, words, counts = pack_words_of(word_ids, batch.tokens, batch.lengths)
            self._steps.append((self.target, words, counts))
            packed.update(zip(batch.ids, content, strict=True))
        return packed

    def steps(self) -> tuple[list[int], list[int], list[int]]:
        """Return the ids of the words whose counts change, in order, and the differences in ham and in spam."""
        for spam in (0, 1):
            words = unpack([packed for label, packed in self.moved.values() if label == spam])[0]
            self._steps.append((spam, words, np.full(len(words), -1)))
            if self.target is not None:
                self._steps.append((self.target, words, np.ones(len(words), np.int64)))
        all_words = np.concatenate([words for _, words, _ in self._steps])
        low = int(all_words.min(initial=0))
        high = int(all_words.max(initial=0))
        if high - low < 8 * len(all_words):  # dense ids: count by index without sorting
            ids = np.arange(low, high + 1)
            index = all_words - low
        else:
            ids, index = np.unique(all_words, return_inverse=True)
        table = np.zeros((2, len(ids)), np.int64)
        start = 0
        for spam, words, counts in self._steps:
            np.add.at(table[spam], index[start : start + len(words)], counts)
            start += len(words)
        occurs = np.bincount(index, minlength=len(ids)) > 0
        return ids[occurs].tolist(), table[0][occurs].tolist(), table[1][occurs].tolist()

    def totals(self) -> tuple[int, int]:
        """Return the differences of the numbers of ham and spam messages."""
        totals: list[Any] = [0, 0]
        for spam, _ in self.moved.values():
            totals[spam] -= 1
        if self.target is not None:
            totals[self.target] += len(self.fresh) + len(self.moved)
        return totals[0], totals[1]
