"""Keeping a store in order: old words leave it, its counts are checked against its messages, its size is told."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from tallybayes.apps.spam.store.message_codec import pack, unpack
from tallybayes.apps.spam.store.spam_store import LABELS, State, Store

_DAY = 86_400


class Expired(NamedTuple):
    """What an expiry did."""

    words: int  # that left
    words_left: int
    messages: int  # kept, of which words left
    released: int  # messages that are counted, but no longer kept
    bytes_before: int
    bytes_after: int


def expire_words(
    store: Store,
    *,
    days: float = 90.0,
    most: int | None = None,
    messages: int | None = None,
    now: int | None = None,
) -> Expired:
    """Let words go that one message had, long ago; from the counts and from the kept messages at once.

    Whatever is left adds up as before: what is forgotten later is taken out of the words that are left.

    Parameters
    ----------
    store : Store
    days : float
        A word that one message had, and none in so many days, goes.
    most : int, optional
        Where more words than that are left, the rarest go too, the longest unseen first.
    messages : int, optional
        Of so many, the newest, the words are kept. Older ones stay counted like those that were imported: they are not
        known any more, so they can neither be forgotten nor moved, and would be learned again.
    now : int, optional
        Seconds since 1970.
    """
    database = store.database
    cutoff = int(time.time() if now is None else now) - round(days * _DAY) + 1
    size = size_of(store)
    changed = 0
    with database.writing():
        released = 0 if messages is None else _drop_old_messages(store, messages)
        once = "ham + spam <= 1 AND seen < ?"
        there = database.ask("SELECT count(*) FROM words")[0][0]
        gone = [row[0] for row in database.ask(f"SELECT id FROM words WHERE {once}", (cutoff,))]
        until: int | None = cutoff  # a message that was learned since then has none of these words
        if most is not None and there - len(gone) > most:
            text = f"SELECT id FROM words WHERE NOT ({once}) ORDER BY ham + spam, seen, id LIMIT ?"
            gone += [row[0] for row in database.ask(text, (cutoff, there - len(gone) - most))]
            until = None
        if gone:
            changed = _take_out(store, np.array(sorted(gone), np.int64), until)
            for table in ("words", "imported"):
                database.do_among(f"DELETE FROM {table} WHERE id {{among}}", gone)
            store.count_again(removed=1)
    if gone or released:
        database.tidy()
    return Expired(len(gone), there - len(gone), changed, released, size, size_of(store))


def _drop_old_messages(store: Store, kept: int) -> int:
    """Let the oldest messages go, and keep their counts; how many."""
    ask = store.database.ask
    n = ask("SELECT count(*) FROM messages")[0][0] - kept
    if n <= 0:
        return 0
    last = ask("SELECT number FROM messages ORDER BY number LIMIT 1 OFFSET ?", (n - 1,))[0][0]
    totals = []
    for spam in (0, 1):
        rows = ask("SELECT words FROM messages WHERE number <= ? AND spam = ?", (last, spam))
        ids, counts = np.unique(unpack([bytes(row[0]) for row in rows])[0], return_counts=True)
        pairs = zip(ids.tolist(), counts.tolist(), strict=True)
        store.add_imported([(0, found, one) if spam else (found, 0, one) for one, found in pairs])
        totals.append(len(rows))
    store.database.do("DELETE FROM messages WHERE number <= ?", (last,))
    store.count_again(imported_ham=totals[0], imported_spam=totals[1])
    return n


def _take_out(store: Store, gone: Any, until: int | None) -> int:
    """Take words out of the kept messages; how many of these had some."""
    changed = 0
    for ids, _, words, lengths in store.messages(until):
        stays = ~np.isin(words, gone)
        message = np.repeat(np.arange(len(lengths)), lengths)
        left = np.bincount(message[stays], minlength=len(lengths))
        touched = left != lengths
        packed = pack(words[stays], left)
        rows = [(packed[place], ids[place]) for place in np.flatnonzero(touched).tolist()]
        store.database.do_many("UPDATE messages SET words = ? WHERE id = ?", rows)
        changed += len(rows)
    return changed


def check_integrity(store: Store) -> list[str]:
    """Count all kept messages again and describe what differs from the stored counts; an intact store gives []."""
    with store.database.reading():
        state = store.state()
        table = np.array([(one, ham, spam) for one, _, ham, spam in store.words()], np.int64).reshape(-1, 3)
        width = int(table[:, 0].max(initial=0)) + 1
        counted, totals, wrong = _count_again(store, state, width)
        sums = (len(table), *table[:, 1:].sum(axis=0).tolist())
        kept = np.zeros((2, width), np.int64)
        kept[:, table[:, 0]] = table[:, 1:].T
        names: dict[int, str] = {}
        differ = np.flatnonzero((kept != counted).any(axis=0)).tolist()
        if differ:
            names = dict(store.database.ask_among("SELECT id, word FROM words WHERE id {among}", differ[:5]))
    for one in differ[:5]:
        told = f"word {names.get(one, one)!r}: counted {counted[:, one].tolist()} in the messages"
        wrong.append(f"{told}, {kept[:, one].tolist()} in the store (ham, spam)")
    if len(differ) > 5:
        wrong.append(f"… and {len(differ) - 5:,} more words")
    for label, found, total in zip(LABELS, (state.ham, state.spam), totals, strict=True):
        if found != total:
            wrong.append(f"{label}: {total:,} messages are there, {found:,} were counted")
    for what, found, total in zip(("words", "ham words", "spam words"), _sums(state), sums, strict=True):
        if found != total:
            wrong.append(f"{what}: the sum is {total:,}, {found:,} was kept")
    return wrong


def _count_again(store: Store, state: State, width: int) -> tuple[np.ndarray, list[int], list[str]]:
    """Count words by class, shape (2, width), and messages by class; describe words that are not in the store."""
    wrong: list[str] = []
    counted = np.zeros((2, width), np.int64)
    totals = [state.imported_ham, state.imported_spam]
    for one, *counts in store.database.ask("SELECT id, ham, spam FROM imported"):
        if one < width:
            counted[:, one] += counts
        else:
            wrong.append(f"imported counts of a word {one} that is not there")
    for ids, spam, words, lengths in store.messages():
        if words.max(initial=0) >= width:
            wrong.append(f"a message between {ids[0].hex()[:12]} and {ids[-1].hex()[:12]} has a word that is not there")
            words = np.minimum(words, width - 1)
        owner = np.repeat(spam, lengths)
        for place in (0, 1):
            counted[place] += np.bincount(words[owner == place], minlength=width)
            totals[place] += int(np.sum(spam == place))
    return counted, totals, wrong


def _sums(state: State) -> tuple[int, int, int]:
    return state.words, state.ham_words, state.spam_words


def size_of(store: Store) -> int:
    """How many bytes it takes."""
    return int(store.database.ask(store.database.size_query)[0][0] or 0)


def stats(store: Store) -> dict[str, Any]:
    """What there is, in numbers."""
    ask = store.database.ask
    with store.database.reading():
        state = store.state()
        words, once = ask("SELECT count(*), coalesce(sum(CASE WHEN ham + spam = 1 THEN 1 ELSE 0 END), 0) FROM words")[0]
        messages, packed = ask("SELECT count(*), coalesce(sum(length(words)), 0) FROM messages")[0]
        first, last = ask("SELECT min(learned), max(learned) FROM messages")[0]
        size = size_of(store)
    return {
        "store": store.place,
        "ham": state.ham,
        "spam": state.spam,
        "imported_ham": state.imported_ham,
        "imported_spam": state.imported_spam,
        "messages": messages,
        "words": words,
        "words_seen_once": int(once),
        "bytes": size,
        "bytes_of_messages": int(packed),
        "first_learned": first,
        "last_learned": last,
        "calibrated_at": state.calibrated_at or None,
        "revision": state.revision,
    }
