"""Store of the spam filter: word counts by class, and the words of every learned message, so that it can be removed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tallybayes.apps.spam.store.backends import (
    Database,
    MissingStoreError,
    StoreError,
    connect,
    default_location,
    storable,
)

if TYPE_CHECKING:
    from tallybayes.apps.spam.store.message_codec import Batch, Ids, Message, WordIdTable
    from tallybayes.apps.spam.store.store_changes import Change, Outcome

Label = Literal["ham", "spam"]
LABELS: tuple[Label, Label] = ("ham", "spam")
FORMAT = 1
_MESSAGES_AT_ONCE = 5000  # messages per batch when all are read
_WORDS_IN_MEMORY = 1_000_000  # maximum number of cached word counts
_NUMBERS = ("ham", "spam", "ham_words", "spam_words", "words", "imported_ham", "imported_spam", "revision", "removed")

# Totals include imported counts; `imported` has the part of the word counts without stored messages.
_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE words (id {integer} PRIMARY KEY, word TEXT NOT NULL UNIQUE, "
    "ham {integer} NOT NULL CHECK (ham >= 0), spam {integer} NOT NULL CHECK (spam >= 0), seen {integer} NOT NULL)",
    "CREATE TABLE messages (number {integer} PRIMARY KEY, id {bytes} NOT NULL UNIQUE, spam {integer} NOT NULL, "
    "words {bytes} NOT NULL, learned {integer} NOT NULL)",
    "CREATE TABLE imported (id {integer} PRIMARY KEY, ham {integer} NOT NULL, spam {integer} NOT NULL)",
)


class State(NamedTuple):
    """Totals, calibration and revision of a store."""

    ham: int  # messages, including imported ones
    spam: int
    ham_words: int  # sum over words of their messages
    spam_words: int
    words: int
    imported_ham: int
    imported_spam: int
    revision: int
    calibration: str  # text of the calibration; empty before the first one
    calibrated_at: int  # number of messages at the calibration


class Store:
    """Counts of the filter, in a file or on a server. Several processes may use it at once.

    Every change is one transaction: a change that was reported is durable, also after a crash.

    Parameters
    ----------
    location : str, optional
        File name or postgresql://…; by default TALLY_SPAM_STORE, or a file in the data folder of the user.
    create : bool
        Create the store if it does not exist.
    read_only : bool
        Open the store for reading only.
    """

    def __init__(self, location: str | None = None, *, create: bool = False, read_only: bool = False) -> None:
        self.database: Database = connect(location or default_location(), create=create, read_only=read_only)
        self.location = self.database.shown
        self._ids: WordIdTable | None = None
        self._removed = -1  # number of removals when the ids were read
        self._all_ids_at = -1  # revision at which the ids of all words are cached
        self._counts: dict[str, tuple[int, int]] = {}
        self._revision = -1  # revision of the cached counts
        self._n_looked_up = 0  # number of looked up words; -1 if all are cached
        try:
            if create:
                self._create_tables()
            self._check_format()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    # ---- Creation and metadata ----------------------------------------------------------------------------------

    def _create_tables(self) -> None:
        # CREATE TABLE IF NOT EXISTS is an error in one database and a notice in the other: query first.
        """Create the tables, unless they exist."""
        database = self.database
        with database.writing():
            if database.query(database.tables_query):
                return
            for text in _TABLES:
                database.execute(text.format(**database.types))
            metadata = [("format", str(FORMAT)), *((name, "0") for name in _NUMBERS)]
            database.execute_many("INSERT INTO meta (name, value) VALUES (?, ?)", metadata)

    def _check_format(self) -> None:
        """Raise StoreError unless the store has the format version of this program."""
        if not self.database.query(self.database.tables_query):
            raise MissingStoreError(f"no store in {self.location}.\n    'tally spam learn' creates one.")
        version = self._meta().get("format", "")
        if not version.isdigit() or int(version) < 1:
            raise StoreError(f"{self.location} has no format version; expected the store of a spam filter.")
        if int(version) != FORMAT:
            raise StoreError(
                f"{self.location} has format version {version}; this version of Tallybayes reads version {FORMAT} "
                "only.\n"
                "    Learn the messages into a new store, or use the version of Tallybayes that created this one."
            )

    def _meta(self) -> dict[str, str]:
        """Return the metadata."""
        return dict(self.database.query("SELECT name, value FROM meta"))

    def _set(self, **values: object) -> None:
        """Write metadata."""
        text = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        self.database.execute_many(text, sorted((name, str(value)) for name, value in values.items()))

    def state(self) -> State:
        """Return the current totals, calibration and revision."""
        return _state(self._meta())

    # ---- Queries -------------------------------------------------------------------------------------------------

    def look_up(self, tokens: Sequence[str]) -> tuple[State, list[tuple[int, int]]]:
        """Return the state, and the numbers of ham and spam messages with each token, of one snapshot.

        Counts are cached until the revision changes.
        """
        tokens = storable(list(tokens))
        with self.database.reading():
            state = self.state()
            if state.revision != self._revision:
                self._counts = {}
                self._revision = state.revision
                self._n_looked_up = 0
            pairs = list(map(self._counts.get, tokens))
            if None in pairs:
                self._cache_counts([token for token, pair in zip(tokens, pairs, strict=True) if pair is None], state)
                pairs = list(map(self._counts.get, tokens))
        return state, [pair or (0, 0) for pair in pairs]

    def _cache_counts(self, missing: list[str], state: State) -> None:
        """Cache the counts of some words, or of all words once a quarter of them was looked up."""
        counts = self._counts
        if self._n_looked_up < 0:  # all are cached
            return
        self._n_looked_up += len(missing)
        if 4 * self._n_looked_up > state.words and state.words < _WORDS_IN_MEMORY:
            self._n_looked_up = -1
            rows: Iterable[Any] = self.database.query("SELECT word, ham, spam FROM words")
        else:
            if len(counts) > _WORDS_IN_MEMORY:
                counts.clear()
            counts.update(dict.fromkeys(missing, (0, 0)))
            rows = self.database.query_among("SELECT word, ham, spam FROM words WHERE word {among}", missing)
        counts.update((word, (ham, spam)) for word, ham, spam in rows)

    def counts_of(self, tokens: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the numbers of ham and spam messages of the known tokens."""
        names = list(tokens)
        return {word: pair for word, pair in zip(names, self.look_up(names)[1], strict=True) if pair != (0, 0)}

    def words(self) -> list[tuple[int, str, int, int]]:
        """Return the id, the word, and the numbers of ham and spam messages of all words."""
        return self.database.query("SELECT id, word, ham, spam FROM words ORDER BY id")

    def messages(self, until: int | None = None, step: int = 1) -> Iterator[tuple[list[bytes], Any, Any, Any]]:
        """Yield the stored messages in batches, in the order in which they were learned.

        Parameters
        ----------
        until : int, optional
            Yield only messages learned before this time.
        step : int
            Yield about one of `step` messages, evenly spaced.

        Yields
        ------
        ids, spam, words, lengths
            Content ids, spam labels, concatenated word ids, and the number of words of each message.
        """
        import numpy as np

        from tallybayes.apps.spam.store.message_codec import unpack

        number = -1
        before = 2**62 if until is None else until
        text = "SELECT number, id, spam, words FROM messages WHERE number > ? AND learned < ? AND number % ? = 0 "
        text += "ORDER BY number LIMIT ?"
        while rows := self.database.query(text, (number, before, step, _MESSAGES_AT_ONCE)):
            numbers, ids, spam, packed = zip(*rows, strict=True)
            number = numbers[-1]
            yield (list(map(bytes, ids)), np.array(spam, bool), *unpack(packed))

    def label_of(self, name: bytes) -> Label | None:
        """Return the class of a learned message, or None."""
        rows = self.database.query("SELECT spam FROM messages WHERE id = ?", (name,))
        return LABELS[rows[0][0]] if rows else None

    def ids_like(self, start: str) -> list[bytes]:
        """Return at most two ids of messages that start with these hexadecimal digits."""
        text = "SELECT id FROM messages WHERE id >= ? AND id <= ? ORDER BY id LIMIT 2"
        low, high = (bytes.fromhex(start + digit * (64 - len(start))) for digit in "0f")
        return [bytes(row[0]) for row in self.database.query(text, (low, high))]

    # ---- Changes -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Return a context manager of a write transaction. If it fails, cached word ids are dropped."""
        try:
            with self.database.writing():
                yield
        except BaseException:
            self._ids = None
            self._removed = -1
            self._all_ids_at = -1
            raise

    def learn(self, messages: Sequence[Message | Batch], label: Label, now: int | None = None) -> list[Outcome]:
        """Count messages in one transaction. Each message is counted once.

        Returns
        -------
        list of str
            For each message "learned", "known" (learned before) or "other" (learned as the other class, unchanged).
        """
        return self._change(messages, label, move=False, now=now)

    def relearn(self, messages: Sequence[Message | Batch], label: Label, now: int | None = None) -> list[Outcome]:
        """Set the class of messages, whatever it was before.

        Returns
        -------
        list of str
            For each message "relearned", "learned" (not learned before) or "known".
        """
        return self._change(messages, label, move=True, now=now)

    def forget(self, ids: Sequence[bytes]) -> list[Outcome]:
        """Subtract messages from the counts, as if they had never been learned.

        Returns
        -------
        list of str
            For each message "forgotten" or "unknown".
        """
        from tallybayes.apps.spam.store.message_codec import Message

        return self._change([Message(name, ()) for name in ids], None, move=True, now=0)

    def _change(
        self, messages: Sequence[Message | Batch], label: Label | None, *, move: bool, now: int | None
    ) -> list[Outcome]:
        """Learn, move or forget messages in one transaction. Return the outcomes."""
        from tallybayes.apps.spam.store.message_codec import batches_of
        from tallybayes.apps.spam.store.store_changes import Change

        batches = batches_of(messages)
        names = [name for batch in batches for name in batch.ids]
        with self.writing():
            meta = self._meta()
            self._check_cached_ids(meta)
            text = "SELECT id, spam, words FROM messages WHERE id {among}"
            stored = self.database.query_among(text, dict.fromkeys(names))
            change = Change({bytes(name): (spam, words) for name, spam, words in stored}, label, move)
            outcomes = [change.outcome(name) for name in names]
            if not change.fresh and not change.moved:
                return outcomes
            self._apply(change, batches, meta, int(time.time()) if now is None else now)
        return outcomes

    def _apply(self, change: Change, batches: Sequence[Batch], meta: dict[str, str], when: int) -> None:
        """Write the changes within a transaction."""
        database = self.database
        target = change.target
        new_words: list[str] = []
        if change.fresh:
            mails = change.new_mails(batches)
            new_words, ids_of_words = self._ids_of_batches([batch.words for batch in mails])
            packed = change.add(mails, ids_of_words)
            number = database.query("SELECT coalesce(max(number), 0) FROM messages")[0][0]
            message_rows = [
                (row_number, name, target, words, when)
                for row_number, (name, words) in enumerate(packed.items(), number + 1)
            ]
            database.insert("messages", ("number", "id", "spam", "words", "learned"), message_rows)
        ids, ham, spam = change.steps()
        n_known = len(ids) - len(new_words)  # new words have the highest ids
        rows = zip(ids[n_known:], new_words, ham[n_known:], spam[n_known:], [when] * len(new_words), strict=True)
        database.insert("words", ("id", "word", "ham", "spam", "seen"), rows)
        text = "UPDATE words SET ham = ham + ?, spam = spam + ?, seen = {greatest}(seen, ?) WHERE id = ?"
        database.execute_many(
            text.format(**database.types),
            zip(ham[:n_known], spam[:n_known], [when] * n_known, ids[:n_known], strict=True),
        )
        removed = 0
        if target is None:
            database.execute_many("DELETE FROM messages WHERE id = ?", [(name,) for name in change.moved])
            text = "DELETE FROM words WHERE ham = 0 AND spam = 0 AND id {among}"
            removed = database.execute_among(text, ids)
        else:
            moved = [(target, name) for name in change.moved]
            database.execute_many("UPDATE messages SET spam = ? WHERE id = ?", moved)
        totals = change.totals()
        self._add_to_totals(
            meta,
            **dict(zip(LABELS, totals, strict=True)),
            ham_words=sum(ham),
            spam_words=sum(spam),
            words=len(new_words) - removed,
            removed=int(removed > 0),
        )
        revision = int(meta["revision"]) + 1
        self._all_ids_at = revision if self._all_ids_at == revision - 1 else -1

    def _check_cached_ids(self, meta: dict[str, str]) -> None:
        """Drop cached word ids if words have been removed since they were read."""
        if int(meta["removed"]) != self._removed:
            self._ids = None
            self._removed = int(meta["removed"])
            self._all_ids_at = -1
        elif self._all_ids_at != int(meta["revision"]):
            self._all_ids_at = -1

    def _ids_of_batches(self, batches: Sequence[bytes]) -> tuple[list[str], list[Ids]]:
        """Return the new words, and the word ids of each batch.

        New words get the next ids in alphabetical order, which reveals nothing about the mails.
        """
        ids = self._known_ids()
        indices = [ids.places(words) for words in batches]
        missing = ids.missing(indices)
        first = self.database.query("SELECT coalesce(max(id), 0) + 1 FROM words")[0][0]
        if self._all_ids_at < 0 and len(missing):
            if 4 * len(missing) > first:  # many: one query for all words is faster
                self._cache_all_ids(ids)
            else:
                text = "SELECT word, id FROM words WHERE word {among}"
                ids.remember(self.database.query_among(text, ids.words(missing)))
            missing = ids.missing([missing])
        return ids.give(missing, first), [ids.of(batch_indices) for batch_indices in indices]

    def _known_ids(self) -> WordIdTable:
        """Return the table of cached word ids."""
        from tallybayes.apps.spam.store.message_codec import WordIdTable

        self._ids = self._ids or WordIdTable()
        return self._ids

    def _cache_all_ids(self, ids: WordIdTable) -> None:
        """Cache the ids of all words."""
        ids.remember(self.database.query("SELECT word, id FROM words"))
        self._all_ids_at = int(self._meta()["revision"])

    def prefixes(self) -> tuple[list[str], Any, Any]:
        """Return the distinct prefixes of words, and the prefix and id of every word, within a transaction.

        A prefix ends with a colon or is empty. Cached words are not read again.
        """
        self._check_cached_ids(self._meta())
        ids = self._known_ids()
        if self._all_ids_at < 0:
            self._cache_all_ids(ids)
        return ids.prefixes()

    def ids_of_words(self, words: Sequence[str], when: int) -> list[int]:
        """Return the ids of words within a transaction. New words are inserted with counts of 0."""
        from tallybayes.apps.spam.store.message_codec import words_to_bytes

        self._check_cached_ids(self._meta())
        new, ids = self._ids_of_batches([words_to_bytes(words)])
        first = int(ids[0].max(initial=0)) + 1 - len(new)  # new words have the highest ids
        text = "INSERT INTO words (id, word, ham, spam, seen) VALUES (?, ?, 0, 0, ?)"
        self.database.execute_many(text, [(number, word, when) for number, word in enumerate(new, first)])
        return ids[0].tolist()

    def add_imported(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Add the counts (ham, spam) of word ids without stored messages, within a transaction."""
        text = (
            "INSERT INTO imported (ham, spam, id) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
            "SET ham = imported.ham + excluded.ham, spam = imported.spam + excluded.spam"
        )
        self.database.execute_many(text, rows)

    def record_origin(self, origin: str) -> bool:
        """Record the origin of imported counts within a transaction. Return False if it was recorded before."""
        name = f"origin {origin}"
        if name in self._meta():
            return False
        self._set(**{name: 1})
        return True

    def recount(self, **steps: int) -> None:
        """Recompute the sums over all words, and add to other totals, within a transaction."""
        meta = self._meta()
        names = ("words", "ham_words", "spam_words")
        sums = self.database.query("SELECT count(*), coalesce(sum(ham), 0), coalesce(sum(spam), 0) FROM words")[0]
        steps |= {name: int(total) - int(meta[name]) for name, total in zip(names, sums, strict=True)}
        self._add_to_totals(meta, **steps)

    def _add_to_totals(self, meta: dict[str, str], **steps: int) -> None:
        """Add to totals and increment the revision, which invalidates caches."""
        self._set(**{name: int(meta[name]) + step for name, step in {**steps, "revision": 1}.items()})

    def calibrate(self, calibration: str, at: int) -> None:
        """Store a calibration and the number of messages that it was fitted to."""
        with self.database.writing():
            self._set(calibration=calibration, calibrated_at=at)
            self._add_to_totals(self._meta())


def _state(meta: dict[str, str]) -> State:
    """Return the state for the metadata."""
    numbers = {name: int(meta[name]) for name in _NUMBERS if name != "removed"}
    return State(**numbers, calibration=meta.get("calibration", ""), calibrated_at=int(meta.get("calibrated_at", 0)))
