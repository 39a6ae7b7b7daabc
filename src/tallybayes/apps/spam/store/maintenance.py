"""Maintenance of a store: remove old words, check the counts against the messages, report the size."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from tallybayes.apps.spam.store.message_codec import pack, unpack
from tallybayes.apps.spam.store.spam_store import LABELS, State, Store

_DAY = 86_400


class Expired(NamedTuple):
    """Result of an expiry."""

    words: int  # removed
    words_left: int
    messages: int  # stored messages that had some of these words
    released: int  # messages that remain counted, but are not stored any more
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
    """Remove rare, old words from the counts and from the stored messages at once.

    The counts remain exact: a message that is forgotten later subtracts its remaining words only.

    Parameters
    ----------
    store : Store
    days : float
        Remove words of one message that no message has had for this number of days.
    most : int, optional
        Maximum number of words: the rarest and oldest further words are removed, too.
    messages : int, optional
        Number of newest messages whose words are stored. Older messages remain counted like imported ones: they
        cannot be forgotten or moved, and would be counted again.
    now : int, optional
        Current time in seconds since 1970.
    """
    database = store.database
    cutoff = int(time.time() if now is None else now) - round(days * _DAY) + 1
    size = size_of(store)
    n_changed = 0
    with database.writing():
        released = 0 if messages is None else _drop_old_messages(store, messages)
        is_rare = "ham + spam <= 1 AND seen < ?"
        n_words = database.query("SELECT count(*) FROM words")[0][0]
        removed = [row[0] for row in database.query(f"SELECT id FROM words WHERE {is_rare}", (cutoff,))]
        until: int | None = cutoff  # messages learned since then have none of these words
        if most is not None and n_words - len(removed) > most:
            query = f"SELECT id FROM words WHERE NOT ({is_rare}) ORDER BY ham + spam, seen, id LIMIT ?"
            removed += [row[0] for row in database.query(query, (cutoff, n_words - len(removed) - most))]
            until = None
        if removed:
            n_changed = _remove_words(store, np.array(sorted(removed), np.int64), until)
            for table in ("words", "imported"):
                database.execute_among(f"DELETE FROM {table} WHERE id {{among}}", removed)
            store.recount(removed=1)
    if removed or released:
        database.vacuum()
    return Expired(len(removed), n_words - len(removed), n_changed, released, size, size_of(store))


def _drop_old_messages(store: Store, n_kept: int) -> int:
    """Delete the oldest messages but keep their counts. Return the number of deleted messages."""
    query = store.database.query
    n = query("SELECT count(*) FROM messages")[0][0] - n_kept
    if n <= 0:
        return 0
    last = query("SELECT number FROM messages ORDER BY number LIMIT 1 OFFSET ?", (n - 1,))[0][0]
    totals = []
    for spam in (0, 1):
        rows = query("SELECT words FROM messages WHERE number <= ? AND spam = ?", (last, spam))
        ids, counts = np.unique(unpack([bytes(row[0]) for row in rows])[0], return_counts=True)
        pairs = zip(ids.tolist(), counts.tolist(), strict=True)
        store.add_imported([(0, count, word) if spam else (count, 0, word) for word, count in pairs])
        totals.append(len(rows))
    store.database.execute("DELETE FROM messages WHERE number <= ?", (last,))
    store.recount(imported_ham=totals[0], imported_spam=totals[1])
    return n


def _remove_words(store: Store, removed: Any, until: int | None) -> int:
    """Remove words from the stored messages. Return the number of changed messages."""
    n_changed = 0
    for ids, _, words, lengths in store.messages(until):
        is_kept = ~np.isin(words, removed)
        message = np.repeat(np.arange(len(lengths)), lengths)
        remaining = np.bincount(message[is_kept], minlength=len(lengths))
        is_changed = remaining != lengths
        packed = pack(words[is_kept], remaining)
        rows = [(packed[index], ids[index]) for index in np.flatnonzero(is_changed).tolist()]
        store.database.execute_many("UPDATE messages SET words = ? WHERE id = ?", rows)
        n_changed += len(rows)
    return n_changed


def check_integrity(store: Store) -> list[str]:
    """Recount all stored messages. Return descriptions of the differences; an intact store returns []."""
    with store.database.reading():
        state = store.state()
        table = np.array([(word_id, ham, spam) for word_id, _, ham, spam in store.words()], np.int64).reshape(-1, 3)
        width = int(table[:, 0].max(initial=0)) + 1
        recounted, totals, problems = _recount(store, state, width)
        sums = (len(table), *table[:, 1:].sum(axis=0).tolist())
        stored_counts = np.zeros((2, width), np.int64)
        stored_counts[:, table[:, 0]] = table[:, 1:].T
        names: dict[int, str] = {}
        differ = np.flatnonzero((stored_counts != recounted).any(axis=0)).tolist()
        if differ:
            names = dict(store.database.query_among("SELECT id, word FROM words WHERE id {among}", differ[:5]))
    for word_id in differ[:5]:
        name = f"word {names.get(word_id, word_id)!r}"
        recount = recounted[:, word_id].tolist()
        stored = stored_counts[:, word_id].tolist()
        problems.append(f"{name}: {recount} in the messages, {stored} in the store (ham, spam)")
    if len(differ) > 5:
        problems.append(f"… and {len(differ) - 5:,} more words")
    for label, stored_total, total in zip(LABELS, (state.ham, state.spam), totals, strict=True):
        if stored_total != total:
            problems.append(f"{label}: {total:,} messages are stored, {stored_total:,} are counted")
    for title, stored_total, total in zip(("words", "ham words", "spam words"), _sums(state), sums, strict=True):
        if stored_total != total:
            problems.append(f"{title}: the sum is {total:,}, the store has {stored_total:,}")
    return problems


def _recount(store: Store, state: State, width: int) -> tuple[np.ndarray, list[int], list[str]]:
    """Count words by class, shape (2, width), and messages by class; describe words that are not in the store."""
    problems: list[str] = []
    counted = np.zeros((2, width), np.int64)
    totals = [state.imported_ham, state.imported_spam]
    for word_id, *counts in store.database.query("SELECT id, ham, spam FROM imported"):
        if word_id < width:
            counted[:, word_id] += counts
        else:
            problems.append(f"imported counts of word {word_id}, which is not in the store")
    for ids, spam, words, lengths in store.messages():
        if words.max(initial=0) >= width:
            problems.append(
                f"a message between {ids[0].hex()[:12]} and {ids[-1].hex()[:12]} has a word that is not in the store"
            )
            words = np.minimum(words, width - 1)
        owner = np.repeat(spam, lengths)
        for label in (0, 1):
            counted[label] += np.bincount(words[owner == label], minlength=width)
            totals[label] += int(np.sum(spam == label))
    return counted, totals, problems


def _sums(state: State) -> tuple[int, int, int]:
    """Return the stored sums over all words."""
    return state.words, state.ham_words, state.spam_words


def size_of(store: Store) -> int:
    """Return the size of a store in bytes."""
    return int(store.database.query(store.database.size_query)[0][0] or 0)


def stats(store: Store) -> dict[str, Any]:
    """Return the numbers of messages and words, and the size."""
    query = store.database.query
    with store.database.reading():
        state = store.state()
        words, n_once = query(
            "SELECT count(*), coalesce(sum(CASE WHEN ham + spam = 1 THEN 1 ELSE 0 END), 0) FROM words"
        )[0]
        messages, packed = query("SELECT count(*), coalesce(sum(length(words)), 0) FROM messages")[0]
        first, last = query("SELECT min(learned), max(learned) FROM messages")[0]
        size = size_of(store)
    return {
        "store": store.location,
        "ham": state.ham,
        "spam": state.spam,
        "imported_ham": state.imported_ham,
        "imported_spam": state.imported_spam,
        "messages": messages,
        "words": words,
        "words_seen_once": int(n_once),
        "bytes": size,
        "bytes_of_messages": int(packed),
        "first_learned": first,
        "last_learned": last,
        "calibrated_at": state.calibrated_at or None,
        "revision": state.revision,
    }
