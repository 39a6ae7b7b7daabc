"""A Maildir that is looked after: new mail is judged and put where it belongs, and moves between folders are learned.

What was seen where is kept in a file of its own in the Maildir, so that nothing is judged or learned twice, also after
a crash. A mail is known by its content: names of files change when mail readers move them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from tallybayes.apps.spam.spam_score import Thresholds
from tallybayes.apps.spam.store.backends import StoreError
from tallybayes.apps.spam.store.spam_store import Label, Store
from tallybayes.apps.spam.tokens.message_tokens import content_id, tokens_of
from tallybayes.apps.spam.verdicts import classify_mail

Action = Literal["move", "flag"]
NOTES = "tally-watch.sqlite"
_LEFT_ALONE = {
    "trash",
    "deleted messages",
    "deleted items",
    "sent",
    "sent messages",
    "sent items",
    "drafts",
    "templates",
}
_DAY = 86_400
_REMEMBERED = 90 * _DAY  # seconds that a mail is remembered which is nowhere any more
_MOST_BYTES = 1 << 24


class Event(NamedTuple):
    """What was done with a mail."""

    what: Literal["judged", "learned"]
    file: str
    verdict: str  # or what it was learned as
    probability: float | None
    moved: bool


class _File(NamedTuple):
    """A mail where it lies: its folder ("" is the inbox), new or cur, and the name of its file."""

    folder: str
    part: str
    name: str

    @property
    def base(self) -> str:
        return self.name.partition(":2,")[0]

    @property
    def flags(self) -> str:
        return self.name.partition(":2,")[2]


class MaildirWatcher:
    """A Maildir, its junk folder, and what is known of its mail.

    Parameters
    ----------
    root : path
        A Maildir: `new`, `cur` and `tmp`, other folders beside them as `.Name`.
    store : Store
    junk : str
        The folder of spam, without the dot.
    action : "move" or "flag"
        What becomes of spam: it is moved there, or stays and is flagged.
    thresholds : Thresholds
    """

    def __init__(self, root: str, store: Store, junk: str, action: Action, thresholds: Thresholds) -> None:
        self.root, self.store, self.junk = Path(root), store, junk
        self.action, self.thresholds = action, thresholds
        if not all((self.root / part).is_dir() for part in ("new", "cur")):
            raise StoreError(f"{root} is no Maildir: it has no new and cur.\n    Name the folder that they are in.")
        (self.root / NOTES).touch(mode=0o600)
        self._notes = sqlite3.connect(self.root / NOTES, timeout=60.0, isolation_level=None)
        try:
            self._first = self._prepare()
        except sqlite3.Error as error:
            self._notes.close()
            raise StoreError(f"{self.root / NOTES}: {error}.\n    Remove it to start anew.") from error

    def _prepare(self) -> bool:
        """Whether this Maildir was never looked at."""
        self._notes.execute("PRAGMA synchronous = FULL")
        self._notes.execute("BEGIN IMMEDIATE")
        # Where a mail is meant to be ("" is the inbox); `pending` while its file is still to be moved there.
        self._notes.execute(
            "CREATE TABLE IF NOT EXISTS mails (id BLOB PRIMARY KEY, folder TEXT NOT NULL, "
            "pending INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID"
        )
        self._notes.execute(
            "CREATE TABLE IF NOT EXISTS files (folder TEXT, base TEXT, id BLOB NOT NULL, PRIMARY KEY (folder, base)) "
            "WITHOUT ROWID"
        )
        self._notes.execute("CREATE TABLE IF NOT EXISTS looked (times INTEGER NOT NULL)")
        first = not self._notes.execute("SELECT 1 FROM looked").fetchone()
        self._notes.execute("COMMIT")
        return first

    def close(self) -> None:
        """Let go of the notes; the store is its owner's."""
        self._notes.close()

    def scan_once(self, now: int | None = None) -> Iterator[Event]:
        """Look once at all folders, and do what is to be done; what was done, one by one."""
        when = int(time.time()) if now is None else now
        places = self._places()
        known = {name: rest for name, *rest in self._notes.execute("SELECT id, folder, pending FROM mails")}
        taken = {
            name: files[0].folder for name, files in places.items() if name not in known and not self._is_new(files)
        }
        with self._writing():  # as they are, all at once: there may be thousands
            rows = [(name, folder, when) for name, folder in taken.items()]
            self._notes.executemany("INSERT OR REPLACE INTO mails VALUES (?, ?, 0, ?)", rows)
            if self._first:
                self._notes.execute("INSERT INTO looked VALUES (1)")
        self._first = False
        for name, files in places.items():
            if name not in taken:
                met = known.get(name)
                yield from (
                    self._classify_new_mail(name, files, when) if met is None else self._settle(name, files, when, *met)
                )
        self._forget_files({(file.folder, file.base) for files in places.values() for file in files}, when)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction of notes."""
        self._notes.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._notes.execute("ROLLBACK")
            raise
        self._notes.execute("COMMIT")

    # ---- What is there ------------------------------------------------------------------------------------------

    def _files(self) -> Iterator[_File]:
        """All mails of the inbox and of the other folders, but those where nothing is told by what is in them."""
        folders = [""]
        for entry in sorted(os.scandir(self.root), key=lambda entry: entry.name):
            name = entry.name[1:]
            if entry.name.startswith(".") and name.lower() not in _LEFT_ALONE and os.path.isdir(entry.path + "/cur"):
                folders.append(name)
        for folder in folders:
            for part in ("new", "cur"):
                with contextlib.suppress(FileNotFoundError):
                    names = sorted(os.listdir(self._place(folder) / part))
                    yield from (_File(folder, part, name) for name in names if not name.startswith("."))

    def _place(self, folder: str) -> Path:
        return self.root / f".{folder}" if folder else self.root

    def _path(self, file: _File) -> Path:
        return self._place(file.folder) / file.part / file.name

    def _read(self, file: _File) -> bytes | None:
        try:
            with open(self._path(file), "rb") as stream:
                return stream.read(_MOST_BYTES)
        except OSError:  # moved meanwhile: next time it is where it is then
            return None

    def _places(self) -> dict[bytes, list[_File]]:
        """Where every mail lies, by its content id; a mail is read once where it lies."""
        known = {(folder, base): name for folder, base, name in self._notes.execute("SELECT * FROM files")}
        places: dict[bytes, list[_File]] = {}
        fresh = []
        for file in self._files():
            name = known.get((file.folder, file.base))
            if name is None:
                raw = self._read(file)
                if raw is None:
                    continue
                name = content_id(raw)
                fresh.append((file.folder, file.base, name))
            places.setdefault(name, []).append(file)
        if fresh:
            with self._writing():
                self._notes.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", fresh)
        return places

    def _forget_files(self, there: set[tuple[str, str]], now: int) -> None:
        """Forget files that have gone, and after a while their mails; where nothing changed, nothing is written."""
        gone = [pair for pair in self._notes.execute("SELECT folder, base FROM files").fetchall() if pair not in there]
        old = self._notes.execute("SELECT count(*) FROM mails WHERE seen < ?", (now - _DAY,)).fetchone()[0]
        if gone or old:
            with self._writing():
                self._notes.executemany("DELETE FROM files WHERE folder = ? AND base = ?", gone)
                self._notes.execute("UPDATE mails SET seen = ? WHERE id IN (SELECT id FROM files)", (now,))
                self._notes.execute("DELETE FROM mails WHERE seen < ?", (now - _REMEMBERED,))

    # ---- What is done -------------------------------------------------------------------------------------------

    def _settle(self, name: bytes, files: list[_File], now: int, folder: str, pending: int) -> Iterator[Event]:
        """Do what a mail needs that is meant to be in a folder, where it lies now."""
        if pending:  # it was judged, but not all was done
            for file in files:
                self._carry_out(file, folder)
            self._note(name, folder, now)
            return
        in_junk = {file.folder == self.junk for file in files}
        if len(in_junk) == 2 or (folder == self.junk) in in_junk:
            return  # a copy is on either side, or it is where it was
        label: Label = "ham" if folder == self.junk else "spam"
        raw = self._read(files[0])
        if raw is None:
            return
        from tallybayes.apps.spam.store.message_codec import Message

        outcome = self.store.relearn([Message(name, tokens_of(raw))], label)
        self._note(name, files[0].folder, now)
        yield Event("learned", str(self._path(files[0])), label, None, outcome == ["relearned"])

    def _is_new(self, files: list[_File]) -> bool:
        """Whether nobody has looked at a mail yet; at the very start, those in cur were there before."""
        file = files[0]
        return file.folder == "" and "S" not in file.flags and not (self._first and file.part == "cur")

    def _classify_new_mail(self, name: bytes, files: list[_File], now: int) -> Iterator[Event]:
        """Judge a mail that was never seen."""
        file = files[0]
        raw = self._read(file)
        if raw is None:
            return
        verdict = classify_mail(self.store, raw, self.thresholds)
        spam = verdict.verdict == "spam"
        if spam:
            target = self.junk if self.action == "move" else "flag"
            self._note(name, target, now, pending=1)
            for one in files:
                self._carry_out(one, target)
        self._note(name, self.junk if spam and self.action == "move" else file.folder, now)
        yield Event("judged", str(self._path(file)), verdict.verdict, verdict.probability, spam)

    def _note(self, name: bytes, folder: str, now: int, pending: int = 0) -> None:
        where = "" if folder == "flag" and not pending else folder
        self._notes.execute("INSERT OR REPLACE INTO mails VALUES (?, ?, ?, ?)", (name, where, pending, now))

    def _carry_out(self, file: _File, target: str) -> None:
        """Move a file of the inbox, or flag it; what is done already, or gone, is left alone."""
        if file.folder != "" or (target == "flag" and "F" in file.flags):
            return
        if target == "flag":
            flags = "".join(sorted({*file.flags, "F"}))
            goal = self.root / "cur" / f"{file.base}:2,{flags}"
        else:
            place = self._place(target)
            for part in ("tmp", "new", "cur"):
                (place / part).mkdir(parents=True, exist_ok=True, mode=0o700)
            (place / "maildirfolder").touch()
            goal = place / file.part / file.name
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._path(file), goal)
