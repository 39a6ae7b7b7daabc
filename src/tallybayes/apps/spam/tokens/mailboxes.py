"""Mails where people keep them: mbox files, Maildirs, directories of files, single files and standard input."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator

from tallybayes.apps.spam.unpacking import LOOKED_AT, NotMailError, Readable, read_up_to, reason_against, unpacked

MAIL_BYTES = 1 << 24  # of one mail: what comes after is not read
_PIECE = 1 << 20  # of a file, at a time
_LINE = 1 << 10  # more than the line that starts a mail is long
# A mail of an mbox starts after an empty line, with the sender and a time: "From " alone starts sentences too.
_START = re.compile(rb"\n\r?\nFrom [^\n]{1,800}[0-9]:[0-9][0-9][^\n]{0,100}\n")


def mails_in(
    paths: Iterable[str | os.PathLike[str]], skipped: list[NotMailError] | None = None
) -> Iterator[tuple[str, bytes]]:
    r"""Names and bytes of the mails in files and folders, one in memory at a time.

    Parameters
    ----------
    paths : iterable of paths
        Each an mbox file, a Maildir (its `new` and `cur`, not the folders beside them), a directory of files (and of
        directories), a file with one mail, or "-" for standard input, one mail or an mbox. Each may be compressed
        (gzip, bzip2 or xz).
    skipped : list, optional
        Receives an error for every file of a folder that is not mail. A path that is not mail raises its error.

    Yields
    ------
    name : str
        The file, with ``#2`` for the second mail of an mbox.
    raw : bytes
        The mail without the mbox's own line, at most `MAIL_BYTES` of it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "one").write_bytes(b"Subject: hello\n\nDear all")
    >>> [raw for name, raw in mails_in([folder])]
    [b'Subject: hello\n\nDear all']
    """
    for path in paths:
        if path == "-":
            yield from _mails_of(sys.stdin.buffer, "-")
            continue
        name = os.fspath(path)
        for file in _files(name) if os.path.isdir(name) else [name]:
            try:
                with open(file, "rb", buffering=0) as stream:
                    yield from _mails_of(stream, file, strict=file != name)
            except FileNotFoundError:
                if file == name:
                    raise  # others were moved since the folder was read, as mails are
            except NotMailError as error:
                if file == name:
                    raise
                if skipped is not None:
                    skipped.append(error)


def _files(folder: str) -> Iterator[str]:
    """Files in a folder and below, in order of their names; of a Maildir, those that were delivered."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    folders = {entry.name for entry in entries if entry.is_dir()}
    if {"cur", "new"} <= folders:
        entries = [entry for entry in entries if entry.name in ("cur", "new")]
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif entry.is_file():
            yield entry.path


def _mails_of(stream: Readable, name: str, strict: bool = False) -> Iterator[tuple[str, bytes]]:
    """The mails of one open file; text without headers is one, too, unless this is strict."""
    start, stream = unpacked(stream, name)
    if not start and name != "-":  # a mailbox without mail
        return
    reason = reason_against(start, strict)
    if reason is not None:
        raise NotMailError(name, reason)
    more = len(start) == LOOKED_AT
    piece = start + read_up_to(stream, _PIECE - len(start), _PIECE) if more else start
    if _START.match(b"\n\n" + piece[:_LINE]):
        for number, raw in enumerate(_split(stream, b"\n\n" + piece), start=1):
            yield name if number == 1 else f"{name}#{number}", raw
    else:
        yield name, (piece + read_up_to(stream, MAIL_BYTES - len(piece), _PIECE) if more else piece)[:MAIL_BYTES]


def _split(stream: Readable, rest: bytes) -> Iterator[bytes]:
    """The mails of an mbox, without the lines they start with."""
    mail, place, begun = bytearray(), 0, False
    while True:
        found = _START.search(rest, place)
        if found:
            if begun:
                mail += rest[place : found.start() + 1][: MAIL_BYTES - len(mail)]
                yield bytes(mail)
            mail, place, begun = bytearray(), found.end(), True
            continue
        whole = max(place, len(rest) - _LINE)  # what comes after may start a mail, when more of it is there
        mail += rest[place:whole][: MAIL_BYTES - len(mail)]
        piece = read_up_to(stream, _PIECE, _PIECE)
        if not piece:
            mail += rest[whole:][: MAIL_BYTES - len(mail)]
            yield bytes(mail)
            return
        rest, place = rest[whole:] + piece, 0
