"""Conversion of the counts of a store to a tally and back."""

from __future__ import annotations

import time
from typing import Any

import tallybayes as tb
from tallybayes.apps.spam.store.backends import StoreError, storable
from tallybayes.apps.spam.store.spam_store import LABELS, Store

# Class of each message; words of the messages by class.
_CLASS = tb.Factor("class", (), tb.Categorical(levels=LABELS))
_WORD = tb.Factor("word", "class", tb.Categorical())


def to_tally(store: Store) -> tb.Tally:
    """Return the counts of a store as a tally: p(class) over messages, and p(word | class) over their words."""
    with store.database.reading():
        state = store.state()
        words = store.words()
    names = [word for _, word, _, _ in words]
    classes = tb.count({"class": list(LABELS)}, [_CLASS], weight=[float(state.ham), float(state.spam)])
    rows = {"class": [label for label in LABELS for _ in names], "word": names * 2}
    counts = [float(row[column]) for column in (2, 3) for row in words]
    return classes | tb.count(rows, [_WORD], weight=counts)


def from_tally(store: Store, tally: Any, origin: str = "", now: int | None = None) -> tuple[int, int, int] | None:
    """Add the counts of a tally to a store. Return the numbers of ham messages, spam messages and words.

    No stored message has these counts, so that they cannot be forgotten by message. A tally with an `origin` is added
    once: None is returned if it was added before.
    """
    ham, spam, words = _read(tally)
    database = store.database
    when = int(time.time()) if now is None else now
    with store.writing():
        if origin and not store.record_origin(origin):
            return None
        names = sorted(words)
        rows = [(*words[name], word_id) for name, word_id in zip(names, store.ids_of_words(names, when), strict=True)]
        database.execute_many("UPDATE words SET ham = ham + ?, spam = spam + ? WHERE id = ?", rows)
        store.add_imported(rows)
        store.recount(ham=ham, spam=spam, imported_ham=ham, imported_spam=spam)
    return ham, spam, len(words)


def _read(tally: Any) -> tuple[int, int, dict[str, tuple[int, int]]]:
    """Return the counts of a tally of `to_tally`, or of a sum of such tallies."""
    expected = "expected a tally written by 'tally spam export'."
    try:
        classes = tally["class"].table
        words = tally["word"].table
        labels = list(tally.domains["class"].levels)
        names = list(tally.domains["word"].levels)
        order = [labels.index(label) for label in LABELS]
        totals = classes[order]
        table = words[order]
    except (AttributeError, KeyError, ValueError, IndexError, TypeError) as error:
        raise StoreError(f"the {type(tally).__name__} is not of a spam filter; {expected}") from error
    names = storable(names) if all(isinstance(name, str) for name in names) else names
    if (
        len(labels) != 2
        or len(set(names)) != len(names)
        or table.shape != (2, len(names))
        or not all(isinstance(name, str) for name in names)
    ):
        raise StoreError(f"the tally has other classes or invalid words; {expected}")
    if (table % 1).any() or (totals % 1).any() or (table < 0).any():
        raise StoreError(f"the tally has counts that are not non-negative integers; {expected}")
    if (table.max(axis=1, initial=0) > totals).any():
        raise StoreError(f"a word has more messages than its class; {expected}")
    ham, spam = (list(map(int, row)) for row in table.tolist())
    return int(totals[0]), int(totals[1]), dict(zip(names, zip(ham, spam, strict=True), strict=True))
