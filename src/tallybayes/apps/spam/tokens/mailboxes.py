"""Mails of mbox files, Maildirs, folders of files, single files and standard input."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator

from tallybayes.apps.spam.unpacking import (
    LOOKED_AT,
    NotMailError,
    Readable,
    open_compressed,
    read_up_to,
    reason_not_mail,
)

MAIL_BYTES = 1 << 24  # maximum bytes of a mail; the rest is ignored
_PIECE = 1 << 20  # bytes read at a time
_LINE = 1 << 10  # upper bound of the length of a separator line
# Separator line of an mbox: after an empty line, with sender and time. Sentences may start with "From ", too.
_START = re.compile(rb"\n\r?\nFrom [^\n]{1,800}[0-9]:[0-9][0-9][^\n]{0,100}\n")


def mails_in(
    paths: Iterable[str | os.PathLike[str]], skipped: list[NotMailError] | None = None
) -> Iterator[tuple[str, bytes]]:
    r"""Yield the name and content of each mail of the paths, one in memory at a time.

    Parameters
    ----------
    paths : iterable of paths
        Each an mbox file, a Maildir (its `new` and `cur` only), a folder of files and folders, a file with one mail,
        or "-" for standard input. Each may be compressed (gzip, bzip2 or xz).
    skipped : list, optional
        List to which an error is appended for each file of a folder that is not mail. A path that is not mail raises
        its error.

    Yields
    ------
    name : str
        File name, with the suffix ``#2`` for the second mail of an mbox.
    raw : bytes
        The mail without the separator line, at most `MAIL_BYTES`.

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
                    raise  # a file that was moved since the folder was read
            except NotMailError as error:
                if file == name:
                    raise
                if skipped is not None:
                    skipped.append(error)


def _files(folder: str) -> Iterator[str]:
    """Yield the files of a folder and its subfolders by name; of a Maildir, those of `new` and `cur`."""
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
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
    """Yield the mails of an open file. Text without headers is one mail, unless `strict`."""
    start, stream = open_compressed(stream, name)
    if not start and name != "-":  # an empty mailbox
        return
    reason = reason_not_mail(start, strict)
    if reason is not None:
        raise NotMailError(name, reason)
    more = len(start) == LOOKED_AT
    piece = start + read_up_to(stream, _PIECE - len(start), _PIECE) if more else start
    if _START.match(b"\n\n" + piece[:_LINE]):
        for number, raw in enumerate(_split(stream, b"\n\n" + piece), start=1):
            yield name if number == 1 else f"{name}#{number}", raw
    else:
        yield name, (piece + read_up_to(stream, MAIL_BYTES - len(piece), _PIECE) if more else piece)[:MAIL_BYTES]


def _split(stream: Readable, buffer: bytes) -> Iterator[bytes]:
    """Yield the mails of an mbox without its separator lines."""
    mail = bytearray()
    position = 0
    begun = False  # whether a separator line was found
    while True:
        match = _START.search(buffer, position)
        if match:
            if begun:
                mail += buffer[position : match.start() + 1][: MAIL_BYTES - len(mail)]
                yield bytes(mail)
            mail = bytearray()
            position = match.end()
            begun = True
            continue
        complete = max(position, len(buffer) - _LINE)  # the last bytes may be the start of a separator line
        mail += buffer[position:complete][: MAIL_BYTES - len(mail)]
        piece = read_up_to(stream, _PIECE, _PIECE)
        if not piece:
            mail += buffer[complete:][: MAIL_BYTES - len(mail)]
            yield bytes(mail)
            return
        buffer = buffer[complete:] + piece
        position = 0
