"""Read files that may contain mail: decompress within limits, and detect files that are not mail."""

from __future__ import annotations

import errno
import re
from typing import Any, Protocol

LOOKED_AT = 1 << 13  # bytes of a file that decide whether it is mail
RATIO = 200  # maximum ratio of decompressed to compressed size,
ALWAYS = 1 << 26  # beyond this decompressed size
_MEMORY = 1 << 28  # memory limit of xz; its presets need less
_HEADER = re.compile(rb"[!-9;-~]{1,100}[ \t]*:")
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))


class Readable(Protocol):
    """Protocol of a binary file that is read sequentially."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; none at the end of the file."""
        ...


class NotMailError(OSError):
    """File that is not mail or cannot be decompressed."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(errno.EINVAL, reason, name)
        self.reason = reason


def describe_skipped(skipped: list[NotMailError], most: int = 5) -> str:
    """Describe the skipped files in one line."""
    names = ", ".join(f"{error.filename} {error.reason}" for error in skipped[:most])
    more = f" and {len(skipped) - most:,} more" if len(skipped) > most else ""
    return f"skipped {len(skipped):,} file{'s' * (len(skipped) != 1)} without mail: {names}{more}"


def open_compressed(stream: Readable, name: str) -> tuple[bytes, Readable]:
    """Return the first bytes of a file and the stream of the rest, decompressed if it is gzip, bzip2 or xz.

    Parameters
    ----------
    stream : binary file
        Binary file at its start; it need not be seekable.
    name : str
        File name, for errors.
    """
    start = read_up_to(stream, LOOKED_AT)
    if start.startswith((b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0")):
        stream = _DecompressedStream(start, stream, name)
        return read_up_to(stream, LOOKED_AT), stream
    return start, stream


def reason_not_mail(start: bytes, strict: bool) -> str | None:
    """Return why a file is not mail by its first bytes, or None if it may be mail.

    Parameters
    ----------
    start : bytes
    strict : bool
        Whether text without headers is rejected: a folder may contain other files.
    """
    text = start.lstrip(b"\r\n")
    if text.startswith((b"From ", b">From ")):
        return None
    lines = text.split(b"\n", 20)[:20]
    head = lines[: next((k for k, line in enumerate(lines) if not line.strip()), len(lines))]
    header = next((k for k, line in enumerate(head) if _HEADER.match(line)), None)
    if not text or (header is not None and b"\0" not in b"".join(head[: header + 1])):
        return None
    if b"\0" in text or 10 * (len(text) - len(text.translate(None, _CONTROL))) > len(text):
        return "is binary, not mail"
    return "has no mail headers" if strict else None


class _DecompressedStream:
    """Stream of decompressed bytes in bounded memory."""

    def __init__(self, start: bytes, stream: Readable, name: str) -> None:
        self._stream = stream
        self._name = name
        self._waiting = start  # compressed bytes not passed to the decompressor yet
        self._n_read = len(start)
        self._n_returned = 0
        self._decompressor = self._make_decompressor(start)

    def _make_decompressor(self, start: bytes) -> Any:
        """Return the decompressor for the first bytes of a compressed stream."""
        try:
            if start.startswith(b"\x1f"):
                import zlib

                return zlib.decompressobj(31)
            if start.startswith(b"B"):
                import bz2

                return bz2.BZ2Decompressor()
            import lzma

            return lzma.LZMADecompressor(memlimit=_MEMORY)
        except ModuleNotFoundError as error:  # Python compiled without this library
            raise NotMailError(self._name, f"is compressed, and this Python has no {error.name}") from None

    def read(self, size: int, /) -> bytes:
        """Read at most `size` decompressed bytes; none at the end."""
        content = b""
        while not content:
            if self._decompressor.eof:
                following = getattr(self._decompressor, "unused_data", b"").lstrip(b"\0")
                while len(following) < 6 and (piece := self._more()):
                    following += piece
                if not following.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")):
                    return b""  # trailing bytes that are no further member
                self._decompressor = self._make_decompressor(following)
                self._waiting = following
            waiting = self._waiting or self._more()
            try:
                content = self._decompressor.decompress(waiting, size)
            except Exception as error:  # zlib, bz2 and lzma raise different errors
                raise NotMailError(self._name, f"cannot be decompressed ({error})") from None
            # bz2 and lzma buffer the unused input; zlib returns it
            self._waiting = getattr(self._decompressor, "unconsumed_tail", b"")
            if not content and not waiting and not self._decompressor.eof:
                raise NotMailError(self._name, "cannot be decompressed (it ends too early)")
        self._n_returned += len(content)
        if self._n_returned > ALWAYS and self._n_returned > RATIO * self._n_read:
            raise NotMailError(self._name, f"decompresses to more than {RATIO} times its size")
        return content

    def _more(self) -> bytes:
        """Read compressed bytes, if the decompressor needs input."""
        if getattr(self._decompressor, "needs_input", True) or self._decompressor.eof:
            piece = self._stream.read(1 << 16)
            self._n_read += len(piece)
            return piece
        return b""


def read_up_to(stream: Readable, size: int, at_once: int = 1 << 20) -> bytes:
    """Read `size` bytes, or all that remain: a pipe returns few bytes at a time."""
    pieces = []
    while size > 0 and (piece := stream.read(min(size, at_once))):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
