"""Watch a Maildir: classify new mail, move or flag spam, and learn from moves between folders.

A database in the Maildir stores the folder of each mail, so that no mail is classified or learned twice, also after a
crash. A mail is identified by its content, because mail readers rename files when they move them.
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
DATABASE = "tally-watch.sqlite"
_IGNORED_FOLDERS = {
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
_RECORD_LIFETIME = 90 * _DAY  # seconds until the record of a removed mail is deleted
_MOST_BYTES = 1 << 24


class Event(NamedTuple):
    """Action on a mail."""

    what: Literal["judged", "learned"]
    file: str
    verdict: str  # or the learned class
    probability: float | None
    moved: bool


class _File(NamedTuple):
    """File of a mail: its folder ("" is the inbox), the subfolder new or cur, and its name."""

    folder: str
    part: str
    name: str

    @property
    def base(self) -> str:
        """Return the file name without flags."""
        return self.name.partition(":2,")[0]

    @property
    def flags(self) -> str:
        """Return the flags of the file name."""
        return self.name.partition(":2,")[2]


class MaildirWatcher:
    """Watcher of a Maildir.

    Parameters
    ----------
    root : path
        Path of the Maildir: it has `new`, `cur` and `tmp`, and other folders as `.Name`.
    store : Store
    junk : str
        Name of the folder of spam, without the dot.
    action : "move" or "flag"
        Move spam to the folder, or flag it.
    thresholds : Thresholds
    """

    def __init__(self, root: str, store: Store, junk: str, action: Action, thresholds: Thresholds) -> None:
        self.root = Path(root)
        self.store = store
        self.junk = junk
        self.action = action
        self.thresholds = thresholds
        if not all((self.root / part).is_dir() for part in ("new", "cur")):
            raise StoreError(f"{root} is not a Maildir; expected a folder with the subfolders new and cur.")
        (self.root / DATABASE).touch(mode=0o600)
        self._database = sqlite3.connect(self.root / DATABASE, timeout=60.0, isolation_level=None)
        try:
            self._first = self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise StoreError(f"{self.root / DATABASE}: {error}.\n    Remove the file to start again.") from error

    def _prepare(self) -> bool:
        """Create the tables, and return whether this Maildir is scanned for the first time."""
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("BEGIN IMMEDIATE")
        # The intended folder of a mail ("" is the inbox); `pending` until its file is moved there.
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS mails (id BLOB PRIMARY KEY, folder TEXT NOT NULL, "
            "pending INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID"
        )
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS files (folder TEXT, base TEXT, id BLOB NOT NULL, PRIMARY KEY (folder, base)) "
            "WITHOUT ROWID"
        )
        self._database.execute("CREATE TABLE IF NOT EXISTS looked (times INTEGER NOT NULL)")
        first = not self._database.execute("SELECT 1 FROM looked").fetchone()
        self._database.execute("COMMIT")
        return first

    def close(self) -> None:
        """Close the database of the watcher. The store stays open."""
        self._database.close()

    def scan_once(self, now: int | None = None) -> Iterator[Event]:
        """Scan all folders once, classify new mail and learn from moved mail. Yield each event."""
        when = int(time.time()) if now is None else now
        files_by_id = self._files_by_id()
        records = {name: record for name, *record in self._database.execute("SELECT id, folder, pending FROM mails")}
        unchanged = {
            name: files[0].folder
            for name, files in files_by_id.items()
            if name not in records and not self._is_new(files)
        }
        with self._writing():  # one transaction for all known mail
            rows = [(name, folder, when) for name, folder in unchanged.items()]
            self._database.executemany("INSERT OR REPLACE INTO mails VALUES (?, ?, 0, ?)", rows)
            if self._first:
                self._database.execute("INSERT INTO looked VALUES (1)")
        self._first = False
        for name, files in files_by_id.items():
            if name not in unchanged:
                record = records.get(name)
                yield from (
                    self._classify_new_mail(name, files, when)
                    if record is None
                    else self._settle(name, files, when, *record)
                )
        self._forget_files({(file.folder, file.base) for files in files_by_id.values() for file in files}, when)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Return a context manager of one transaction of the database of the watcher."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    # ---- Files and records ------------------------------------------------------------------------------------------

    def _files(self) -> Iterator[_File]:
        """Yield the files of all mails, except those of ignored folders such as Sent."""
        folders = [""]
        for entry in sorted(os.scandir(self.root), key=lambda entry: entry.name):
            name = entry.name[1:]
            if (
                entry.name.startswith(".")
                and name.lower() not in _IGNORED_FOLDERS
                and os.path.isdir(entry.path + "/cur")
            ):
                folders.append(name)
        for folder in folders:
            for subfolder in ("new", "cur"):
                with contextlib.suppress(FileNotFoundError):
                    names = sorted(os.listdir(self._folder_path(folder) / subfolder))
                    yield from (_File(folder, subfolder, name) for name in names if not name.startswith("."))

    def _folder_path(self, folder: str) -> Path:
        """Return the path of a folder."""
        return self.root / f".{folder}" if folder else self.root

    def _path(self, file: _File) -> Path:
        """Return the path of a file."""
        return self._folder_path(file.folder) / file.part / file.name

    def _read(self, file: _File) -> bytes | None:
        """Return the content of a mail, or None if it was moved meanwhile."""
        try:
            with open(self._path(file), "rb") as stream:
                return stream.read(_MOST_BYTES)
        except OSError:  # moved meanwhile: the next scan finds it
            return None

    def _files_by_id(self) -> dict[bytes, list[_File]]:
        """Return the files of each mail by content id. Each file is read once."""
        known = {(folder, base): name for folder, base, name in self._database.execute("SELECT * FROM files")}
        files_by_id: dict[bytes, list[_File]] = {}
        new_records = []
        for file in self._files():
            name = known.get((file.folder, file.base))
            if name is None:
                raw = self._read(file)
                if raw is None:
                    continue
                name = content_id(raw)
                new_records.append((file.folder, file.base, name))
            files_by_id.setdefault(name, []).append(file)
        if new_records:
            with self._writing():
                self._database.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", new_records)
        return files_by_id

    def _forget_files(self, present: set[tuple[str, str]], now: int) -> None:
        """Delete the records of removed files, and after 90 days those of their mails."""
        removed = [
            pair for pair in self._database.execute("SELECT folder, base FROM files").fetchall() if pair not in present
        ]
        old = self._database.execute("SELECT count(*) FROM mails WHERE seen < ?", (now - _DAY,)).fetchone()[0]
        if removed or old:
            with self._writing():
                self._database.executemany("DELETE FROM files WHERE folder = ? AND base = ?", removed)
                self._database.execute("UPDATE mails SET seen = ? WHERE id IN (SELECT id FROM files)", (now,))
                self._database.execute("DELETE FROM mails WHERE seen < ?", (now - _RECORD_LIFETIME,))

    # ---- Actions -------------------------------------------------------------------------------------------

    def _settle(self, name: bytes, files: list[_File], now: int, folder: str, pending: int) -> Iterator[Event]:
        """Complete a pending move, or learn the class of a mail that the user moved."""
        if pending:  # it was classified, but not moved yet
            for file in files:
                self._carry_out(file, folder)
            self._record(name, folder, now)
            return
        in_junk = {file.folder == self.junk for file in files}
        if len(in_junk) == 2 or (folder == self.junk) in in_junk:
            return  # copies are in both folders, or it was not moved
        label: Label = "ham" if folder == self.junk else "spam"
        raw = self._read(files[0])
        if raw is None:
            return
        from tallybayes.apps.spam.store.message_codec import Message

        outcome = self.store.relearn([Message(name, tokens_of(raw))], label)
        self._record(name, files[0].folder, now)
        yield Event("learned", str(self._path(files[0])), label, None, outcome == ["relearned"])

    def _is_new(self, files: list[_File]) -> bool:
        """Return whether a mail is unread in the inbox. In the first scan, mail of the subfolder cur is not new."""
        file = files[0]
        return file.folder == "" and "S" not in file.flags and not (self._first and file.part == "cur")

    def _classify_new_mail(self, name: bytes, files: list[_File], now: int) -> Iterator[Event]:
        """Classify a new mail, and move or flag it if it is spam."""
        file = files[0]
        raw = self._read(file)
        if raw is None:
            return
        verdict = classify_mail(self.store, raw, self.thresholds)
        is_spam = verdict.verdict == "spam"
        if is_spam:
            target = self.junk if self.action == "move" else "flag"
            self._record(name, target, now, pending=1)
            for other in files:
                self._carry_out(other, target)
        self._record(name, self.junk if is_spam and self.action == "move" else file.folder, now)
        yield Event("judged", str(self._path(file)), verdict.verdict, verdict.probability, is_spam)

    def _record(self, name: bytes, folder: str, now: int, pending: int = 0) -> None:
        """Record the folder of a mail."""
        stored_folder = "" if folder == "flag" and not pending else folder
        self._database.execute("INSERT OR REPLACE INTO mails VALUES (?, ?, ?, ?)", (name, stored_folder, pending, now))

    def _carry_out(self, file: _File, target: str) -> None:
        """Move a file of the inbox to a folder, or flag it. Files that are moved or flagged already are skipped."""
        if file.folder != "" or (target == "flag" and "F" in file.flags):
            return
        if target == "flag":
            flags = "".join(sorted({*file.flags, "F"}))
            destination = self.root / "cur" / f"{file.base}:2,{flags}"
        else:
            folder = self._folder_path(target)
            for subfolder in ("tmp", "new", "cur"):
                (folder / subfolder).mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / "maildirfolder").touch()
            destination = folder / file.part / file.name
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._path(file), destination)
