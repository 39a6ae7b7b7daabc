"""Counts that travel: a store as a tally, which other stores, and anyone with the library, can add up."""

from __future__ import annotations

import time
from typing import Any

import tallybayes as tb
from tallybayes.apps.spam.store.backends import StoreError, storable
from tallybayes.apps.spam.store.spam_store import LABELS, Store

# The class of every message; and of each of its words, with how many messages of a class have it.
_CLASS = tb.Factor("class", (), tb.Categorical(levels=LABELS))
_WORD = tb.Factor("word", "class", tb.Categorical())


def to_tally(store: Store) -> tb.Tally:
    """The counts of a store: p(class) over its messages, and p(word | class) over what they have."""
    with store.database.reading():
        state, words = store.state(), store.words()
    names = [word for _, word, _, _ in words]
    classes = tb.count({"class": list(LABELS)}, [_CLASS], weight=[float(state.ham), float(state.spam)])
    rows = {"class": [one for one in LABELS for _ in names], "word": names * 2}
    counts = [float(row[place]) for place in (2, 3) for row in words]
    return classes | tb.count(rows, [_WORD], weight=counts)


def from_tally(store: Store, tally: Any, origin: str = "", now: int | None = None) -> tuple[int, int, int] | None:
    """Add the counts of a tally to those of a store; how many ham and spam messages, and words.

    They are counted like any others, but no message stands for them: they cannot be forgotten one by one. What has an
    `origin` is added once: None where it was before.
    """
    ham, spam, words = _read(tally)
    database, when = store.database, int(time.time()) if now is None else now
    with store.writing():
        if origin and not store.note_origin(origin):
            return None
        names = sorted(words)
        rows = [(*words[name], place) for name, place in zip(names, store.numbered(names, when), strict=True)]
        database.do_many("UPDATE words SET ham = ham + ?, spam = spam + ? WHERE id = ?", rows)
        store.add_imported(rows)
        store.count_again(ham=ham, spam=spam, imported_ham=ham, imported_spam=spam)
    return ham, spam, len(words)


def _read(tally: Any) -> tuple[int, int, dict[str, tuple[int, int]]]:
    """The counts of a tally that `to_tally` made, or the sum of several; whole, and of words."""
    expected = "expected the counts of a spam filter, as 'tally spam export' writes them."
    try:
        classes, words = tally["class"].table, tally["word"].table
        labels, names = list(tally.domains["class"].levels), list(tally.domains["word"].levels)
        place = [labels.index(one) for one in LABELS]
        totals, table = classes[place], words[place]
    except (AttributeError, KeyError, ValueError, IndexError, TypeError) as error:
        raise StoreError(f"this is a {type(tally).__name__} of something else; {expected}") from error
    names = storable(names) if all(isinstance(name, str) for name in names) else names
    if (
        len(labels) != 2
        or len(set(names)) != len(names)
        or table.shape != (2, len(names))
        or not all(isinstance(name, str) for name in names)
    ):
        raise StoreError(f"this is a tally of other classes or words; {expected}")
    if (table % 1).any() or (totals % 1).any() or (table < 0).any():
        raise StoreError(f"the counts of this tally are not whole; {expected}")
    if (table.max(axis=1, initial=0) > totals).any():
        raise StoreError(f"a word is in more messages than there are; {expected}")
    ham, spam = (list(map(int, row)) for row in table.tolist())
    return int(totals[0]), int(totals[1]), dict(zip(names, zip(ham, spam, strict=True), strict=True))
