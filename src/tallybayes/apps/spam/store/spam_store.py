"""What the filter has counted: words by class, and the words of every learned message, so that it can be forgotten."""

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
    default_place,
    storable,
)

if TYPE_CHECKING:
    from tallybayes.apps.spam.store.message_codec import Batch, Ids, Message, WordIdTable
    from tallybayes.apps.spam.store.store_changes import Change, Outcome

Label = Literal["ham", "spam"]
LABELS: tuple[Label, Label] = ("ham", "spam")
FORMAT = 1
_MESSAGES_AT_ONCE = 5000  # where all messages are read, not all are held
_WORDS_IN_MEMORY = 1_000_000  # whose counts are remembered
_NUMBERS = ("ham", "spam", "ham_words", "spam_words", "words", "imported_ham", "imported_spam", "revision", "removed")

# Totals include what was imported; `imported` says how much of a word's counts no message here stands for.
_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE words (id {integer} PRIMARY KEY, word TEXT NOT NULL UNIQUE, "
    "ham {integer} NOT NULL CHECK (ham >= 0), spam {integer} NOT NULL CHECK (spam >= 0), seen {integer} NOT NULL)",
    "CREATE TABLE messages (number {integer} PRIMARY KEY, id {bytes} NOT NULL UNIQUE, spam {integer} NOT NULL, "
    "words {bytes} NOT NULL, learned {integer} NOT NULL)",
    "CREATE TABLE imported (id {integer} PRIMARY KEY, ham {integer} NOT NULL, spam {integer} NOT NULL)",
)


class State(NamedTuple):
    """What a verdict needs besides the counts of words."""

    ham: int  # messages, those that were imported included
    spam: int
    ham_words: int  # the sum over words of the messages that have them
    spam_words: int
    words: int
    imported_ham: int
    imported_spam: int
    revision: int
    calibration: str  # as the calibration wrote it; empty before
    calibrated_at: int  # how many messages there were then


class Store:
    """The counts of a filter, in a file or on a server; several processes may use it at once.

    Every change is one transaction: whoever is told that it was made can rely on it, also after a crash.

    Parameters
    ----------
    place : str, optional
        A file, or postgresql://…; by default what TALLY_SPAM_STORE names, or a file of the user's.
    create : bool
        Make it where there is none.
    read_only : bool
        Only ask.
    """

    def __init__(self, place: str | None = None, *, create: bool = False, read_only: bool = False) -> None:
        self.database: Database = connect(place or default_place(), create=create, read_only=read_only)
        self.place = self.database.shown
        self._ids: WordIdTable | None = None
        self._removed = -1  # how often words had been removed when those ids were read
        self._all_at = -1  # the revision of which those are all there are
        self._counts: dict[str, tuple[int, int]] = {}
        self._revision = -1  # of those counts
        self._looked = 0  # how many of them were asked for; -1 where they are all there are
        try:
            if create:
                self._make()
            self._check_format()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        self.database.close()

    # ---- Making and describing ----------------------------------------------------------------------------------

    def _make(self) -> None:
        # A table that is there already is told by an error in one database and by a note in the other: ask first.
        database = self.database
        with database.writing():
            if database.ask(database.tables_query):
                return
            for text in _TABLES:
                database.do(text.format(**database.types))
            start = [("format", str(FORMAT)), *((name, "0") for name in _NUMBERS)]
            database.do_many("INSERT INTO meta (name, value) VALUES (?, ?)", start)

    def _check_format(self) -> None:
        if not self.database.ask(self.database.tables_query):
            raise MissingStoreError(f"there is no store in {self.place}.\n    'tally spam learn' makes one.")
        found = self._meta().get("format", "")
        if not found.isdigit() or int(found) < 1:
            raise StoreError(f"{self.place} has no format; expected the store of a spam filter.")
        if int(found) != FORMAT:
            raise StoreError(
                f"{self.place} has format version {found}; this version of Tallybayes reads version {FORMAT} only.\n"
                "    Learn the messages again into a new store, or use the version of Tallybayes that made this one."
            )

    def _meta(self) -> dict[str, str]:
        return dict(self.database.ask("SELECT name, value FROM meta"))

    def _set(self, **values: object) -> None:
        text = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        self.database.do_many(text, sorted((name, str(value)) for name, value in values.items()))

    def state(self) -> State:
        """Totals, calibration and revision, as they are now."""
        return _state(self._meta())

    # ---- Asking -------------------------------------------------------------------------------------------------

    def look_up(self, tokens: Sequence[str]) -> tuple[State, list[tuple[int, int]]]:
        """The state, and of every token how many ham and spam messages have it, both of one moment.

        What was asked before is remembered until something changes.
        """
        tokens = storable(list(tokens))
        with self.database.reading():
            state = self.state()
            if state.revision != self._revision:
                self._counts, self._revision, self._looked = {}, state.revision, 0
            pairs = list(map(self._counts.get, tokens))
            if None in pairs:
                self._look_for([token for token, pair in zip(tokens, pairs, strict=True) if pair is None], state)
                pairs = list(map(self._counts.get, tokens))
        return state, [pair or (0, 0) for pair in pairs]

    def _look_for(self, missing: list[str], state: State) -> None:
        """Remember the counts of words; of all there are, once so many were asked for that it is quicker."""
        counts = self._counts
        if self._looked < 0:  # all are there
            return
        self._looked += len(missing)
        if 4 * self._looked > state.words and state.words < _WORDS_IN_MEMORY:
            self._looked = -1
            rows: Iterable[Any] = self.database.ask("SELECT word, ham, spam FROM words")
        else:
            if len(counts) > _WORDS_IN_MEMORY:
                counts.clear()
            counts.update(dict.fromkeys(missing, (0, 0)))
            rows = self.database.ask_among("SELECT word, ham, spam FROM words WHERE word {among}", missing)
        counts.update((word, (ham, spam)) for word, ham, spam in rows)

    def counts_of(self, tokens: Iterable[str]) -> dict[str, tuple[int, int]]:
        """How many ham and spam messages have each of some tokens; those that none has are left out."""
        names = list(tokens)
        return {word: found for word, found in zip(names, self.look_up(names)[1], strict=True) if found != (0, 0)}

    def words(self) -> list[tuple[int, str, int, int]]:
        """All words: id, word, and the numbers of ham and spam messages that have it."""
        return self.database.ask("SELECT id, word, ham, spam FROM words ORDER BY id")

    def messages(self, until: int | None = None, step: int = 1) -> Iterator[tuple[list[bytes], Any, Any, Any]]:
        """All kept messages, some at a time, in the order in which they were learned.

        Parameters
        ----------
        until : int, optional
            Those that were learned before.
        step : int
            About one of so many, spread evenly.

        Yields
        ------
        ids, spam, words, lengths
            Content ids, whether it is spam, all their words' ids one after the other, and how many each has.
        """
        import numpy as np

        from tallybayes.apps.spam.store.message_codec import unpack

        number, before = -1, 2**62 if until is None else until
        text = "SELECT number, id, spam, words FROM messages WHERE number > ? AND learned < ? AND number % ? = 0 "
        text += "ORDER BY number LIMIT ?"
        while rows := self.database.ask(text, (number, before, step, _MESSAGES_AT_ONCE)):
            numbers, ids, spam, packed = zip(*rows, strict=True)
            number = numbers[-1]
            yield (list(map(bytes, ids)), np.array(spam, bool), *unpack(packed))

    def label_of(self, name: bytes) -> Label | None:
        """The class that a message was learned as; None where it was not."""
        rows = self.database.ask("SELECT spam FROM messages WHERE id = ?", (name,))
        return LABELS[rows[0][0]] if rows else None

    def ids_like(self, start: str) -> list[bytes]:
        """The ids of messages that begin so, in hexadecimal digits."""
        text = "SELECT id FROM messages WHERE id >= ? AND id <= ? ORDER BY id LIMIT 2"
        low, high = (bytes.fromhex(start + digit * (64 - len(start))) for digit in "0f")
        return [bytes(row[0]) for row in self.database.ask(text, (low, high))]

    # ---- Changing -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction. Where it fails, ids that were given in it are nobody's."""
        try:
            with self.database.writing():
                yield
        except BaseException:
            self._ids, self._removed, self._all_at = None, -1, -1
            raise

    def learn(self, messages: Sequence[Message | Batch], label: Label, now: int | None = None) -> list[Outcome]:
        """Count messages in, all in one transaction; each is counted once, however often it comes.

        Returns
        -------
        list of str
            Of every message "learned", "known" (it was learned before) or "other" (as the other class, and stays so).
        """
        return self._change(messages, label, move=False, now=now)

    def relearn(self, messages: Sequence[Message | Batch], label: Label, now: int | None = None) -> list[Outcome]:
        """Make messages those of a class, whatever they were before.

        Returns
        -------
        list of str
            Of every message "relearned", "learned" (it was of no class before) or "known".
        """
        return self._change(messages, label, move=True, now=now)

    def forget(self, ids: Sequence[bytes]) -> list[Outcome]:
        """Count messages out again, as if they had never been learned.

        Returns
        -------
        list of str
            Of every message "forgotten" or "unknown".
        """
        from tallybayes.apps.spam.store.message_codec import Message

        return self._change([Message(name, ()) for name in ids], None, move=True, now=0)

    def _change(
        self, messages: Sequence[Message | Batch], label: Label | None, *, move: bool, now: int | None
    ) -> list[Outcome]:
        from tallybayes.apps.spam.store.message_codec import batches_of
        from tallybayes.apps.spam.store.store_changes import Change

        batches = batches_of(messages)
        names = [name for batch in batches for name in batch.ids]
        with self.writing():
            meta = self._meta()
            self._keep_ids_of(meta)
            text = "SELECT id, spam, words FROM messages WHERE id {among}"
            found = self.database.ask_among(text, dict.fromkeys(names))
            change = Change({bytes(name): (spam, words) for name, spam, words in found}, label, move)
            outcomes = [change.outcome(name) for name in names]
            if not change.fresh and not change.moved:
                return outcomes
            self._apply(change, batches, meta, int(time.time()) if now is None else now)
        return outcomes

    def _apply(self, change: Change, batches: Sequence[Batch], meta: dict[str, str], when: int) -> None:
        """Write what changes, in a transaction that has begun."""
        database, target = self.database, change.target
        new: list[str] = []
        if change.fresh:
            mails = change.new_mails(batches)
            new, ids_of_words = self._number([batch.words for batch in mails])
            packed = change.add(mails, ids_of_words)
            number = database.ask("SELECT coalesce(max(number), 0) FROM messages")[0][0]
            mails_now = [
                (place, name, target, words, when) for place, (name, words) in enumerate(packed.items(), number + 1)
            ]
            database.insert("messages", ("number", "id", "spam", "words", "learned"), mails_now)
        ids, ham, spam = change.steps()
        old = len(ids) - len(new)  # new words have the highest ids
        rows = zip(ids[old:], new, ham[old:], spam[old:], [when] * len(new), strict=True)
        database.insert("words", ("id", "word", "ham", "spam", "seen"), rows)
        text = "UPDATE words SET ham = ham + ?, spam = spam + ?, seen = {greatest}(seen, ?) WHERE id = ?"
        database.do_many(
            text.format(**database.types), zip(ham[:old], spam[:old], [when] * old, ids[:old], strict=True)
        )
        removed = 0
        if target is None:
            database.do_many("DELETE FROM messages WHERE id = ?", [(name,) for name in change.moved])
            text = "DELETE FROM words WHERE ham = 0 AND spam = 0 AND id {among}"
            removed = database.do_among(text, ids)
        else:
            moved = [(target, name) for name in change.moved]
            database.do_many("UPDATE messages SET spam = ? WHERE id = ?", moved)
        totals = change.totals()
        self._step(
            meta,
            **dict(zip(LABELS, totals, strict=True)),
            ham_words=sum(ham),
            spam_words=sum(spam),
            words=len(new) - removed,
            removed=int(removed > 0),
        )
        revision = int(meta["revision"]) + 1
        self._all_at = revision if self._all_at == revision - 1 else -1

    def _keep_ids_of(self, meta: dict[str, str]) -> None:
        """Ids that are remembered stand for their words as long as nobody has removed words."""
        if int(meta["removed"]) != self._removed:
            self._ids, self._removed, self._all_at = None, int(meta["removed"]), -1
        elif self._all_at != int(meta["revision"]):
            self._all_at = -1

    def _number(self, parts: Sequence[bytes]) -> tuple[list[str], list[Ids]]:
        """The words of parts that are new, and the ids of all by part.

        New ones get the next ids, in order of spelling: it tells of no mail.
        """
        ids = self._known_ids()
        places = [ids.places(words) for words in parts]
        missing = ids.missing(places)
        first = self.database.ask("SELECT coalesce(max(id), 0) + 1 FROM words")[0][0]
        if self._all_at < 0 and len(missing):
            if 4 * len(missing) > first:  # many are asked for: all are had in one go
                self._know_all(ids)
            else:
                text = "SELECT word, id FROM words WHERE word {among}"
                ids.remember(self.database.ask_among(text, ids.words(missing)))
            missing = ids.missing([missing])
        return ids.give(missing, first), [ids.of(some) for some in places]

    def _known_ids(self) -> WordIdTable:
        from tallybayes.apps.spam.store.message_codec import WordIdTable

        self._ids = self._ids or WordIdTable()
        return self._ids

    def _know_all(self, ids: WordIdTable) -> None:
        ids.remember(self.database.ask("SELECT word, id FROM words"))
        self._all_at = int(self._meta()["revision"])

    def starts(self) -> tuple[list[str], Any, Any]:
        """How words begin, up to a colon or not at all; of every word which of these, and its id.

        What is remembered of words is not read again; in a transaction that has begun.
        """
        self._keep_ids_of(self._meta())
        ids = self._known_ids()
        if self._all_at < 0:
            self._know_all(ids)
        return ids.starts()

    def numbered(self, words: Sequence[str], when: int) -> list[int]:
        """The ids of words, in a transaction that has begun; those that are new are written with counts of 0."""
        from tallybayes.apps.spam.store.message_codec import words_to_bytes

        self._keep_ids_of(self._meta())
        new, ids = self._number([words_to_bytes(words)])
        first = int(ids[0].max(initial=0)) + 1 - len(new)  # new words have the highest ids
        text = "INSERT INTO words (id, word, ham, spam, seen) VALUES (?, ?, 0, 0, ?)"
        self.database.do_many(text, [(number, word, when) for number, word in enumerate(new, first)])
        return ids[0].tolist()

    def add_imported(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Say of how many (ham, spam) messages of a word (its id) none is kept, in a transaction that has begun."""
        text = (
            "INSERT INTO imported (ham, spam, id) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
            "SET ham = imported.ham + excluded.ham, spam = imported.spam + excluded.spam"
        )
        self.database.do_many(text, rows)

    def note_origin(self, origin: str) -> bool:
        """Remember where counts came from, in a transaction that has begun; False where they came before."""
        name = f"origin {origin}"
        if name in self._meta():
            return False
        self._set(**{name: 1})
        return True

    def count_again(self, **steps: int) -> None:
        """Have the sums of all words again, and add to other numbers, in a transaction that has begun."""
        meta = self._meta()
        names = ("words", "ham_words", "spam_words")
        sums = self.database.ask("SELECT count(*), coalesce(sum(ham), 0), coalesce(sum(spam), 0) FROM words")[0]
        steps |= {name: int(found) - int(meta[name]) for name, found in zip(names, sums, strict=True)}
        self._step(meta, **steps)

    def _step(self, meta: dict[str, str], **steps: int) -> None:
        """Add to numbers of the state; what anyone remembers of it is of the revision before."""
        self._set(**{name: int(meta[name]) + step for name, step in {**steps, "revision": 1}.items()})

    def calibrate(self, calibration: str, at: int) -> None:
        """Keep a calibration, made when there were so many messages."""
        with self.database.writing():
            self._set(calibration=calibration, calibrated_at=at)
            self._step(self._meta())


def _state(meta: dict[str, str]) -> State:
    numbers = {name: int(meta[name]) for name in _NUMBERS if name != "removed"}
    return State(**numbers, calibration=meta.get("calibration", ""), calibrated_at=int(meta.get("calibrated_at", 0)))
