"""Files that may hold mail: compressed ones are decompressed within limits, others than mail are recognized."""

from __future__ import annotations

import errno
import re
from typing import Any, Protocol

LOOKED_AT = 1 << 13  # bytes of a file by which it is mail or not
RATIO, ALWAYS = 200, 1 << 26  # a file that becomes this many times larger, and larger than this, is rejected
_MEMORY = 1 << 28  # that decompression may need: more than any preset of xz
_HEADER = re.compile(rb"[!-9;-~]{1,100}[ \t]*:")
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))


class Readable(Protocol):
    """A binary file, of which only the next bytes are read."""

    def read(self, size: int, /) -> bytes:
        """So many bytes, or fewer; none at the end."""
        ...


class NotMailError(OSError):
    """A file that is not mail, or cannot be decompressed."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(errno.EINVAL, reason, name)
        self.reason = reason


def listed(skipped: list[NotMailError], most: int = 5) -> str:
    """The files that were skipped, in a line."""
    some = ", ".join(f"{error.filename} {error.reason}" for error in skipped[:most])
    more = f" and {len(skipped) - most:,} more" if len(skipped) > most else ""
    return f"skipped {len(skipped):,} file{'s' * (len(skipped) != 1)} without mail: {some}{more}"


def unpacked(stream: Readable, name: str) -> tuple[bytes, Readable]:
    """The first bytes of a file, and the stream of all others; of gzip, bzip2 and xz, those that are compressed.

    Parameters
    ----------
    stream : binary file
        At its start; it need not be seekable.
    name : str
        For errors.
    """
    start = read_up_to(stream, LOOKED_AT)
    if start.startswith((b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0")):
        stream = _Unpacked(start, stream, name)
        return read_up_to(stream, LOOKED_AT), stream
    return start, stream


def reason_against(start: bytes, strict: bool) -> str | None:
    """Why a file is not mail, by its first bytes; None where it may be.

    Parameters
    ----------
    start : bytes
    strict : bool
        Reject text without headers, too: a folder may hold other files.
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


class _Unpacked:
    """What a compressed file holds, some at a time, in bounded memory."""

    def __init__(self, start: bytes, stream: Readable, name: str) -> None:
        self._stream, self._name, self._waiting = stream, name, start
        self._taken, self._given = len(start), 0
        self._decompressor = self._made(start)

    def _made(self, start: bytes) -> Any:
        try:
            if start.startswith(b"\x1f"):
                import zlib

                return zlib.decompressobj(31)
            if start.startswith(b"B"):
                import bz2

                return bz2.BZ2Decompressor()
            import lzma

            return lzma.LZMADecompressor(memlimit=_MEMORY)
        except ModuleNotFoundError as error:  # a Python that was compiled without it
            raise NotMailError(self._name, f"is compressed, and this Python has no {error.name}") from None

    def read(self, size: int, /) -> bytes:
        """So many bytes, or fewer; none at the end."""
        found = b""
        while not found:
            if self._decompressor.eof:
                rest = getattr(self._decompressor, "unused_data", b"").lstrip(b"\0")
                while len(rest) < 6 and (piece := self._more()):
                    rest += piece
                if not rest.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")):
                    return b""  # whatever stands behind it is no further member
                self._decompressor, self._waiting = self._made(rest), rest
            waiting = self._waiting or self._more()
            try:
                found = self._decompressor.decompress(waiting, size)
            except Exception as error:  # zlib, bz2 and lzma each have their own
                raise NotMailError(self._name, f"cannot be decompressed ({error})") from None
            # bz2 and lzma keep what they did not need yet; zlib returns it
            self._waiting = getattr(self._decompressor, "unconsumed_tail", b"")
            if not found and not waiting and not self._decompressor.eof:
                raise NotMailError(self._name, "cannot be decompressed (it ends too early)")
        self._given += len(found)
        if self._given > ALWAYS and self._given > RATIO * self._taken:
            raise NotMailError(self._name, f"decompresses to more than {RATIO} times its size")
        return found

    def _more(self) -> bytes:
        if getattr(self._decompressor, "needs_input", True) or self._decompressor.eof:
            piece = self._stream.read(1 << 16)
            self._taken += len(piece)
            return piece
        return b""


def read_up_to(stream: Readable, size: int, at_once: int = 1 << 20) -> bytes:
    """So many bytes, or all that are left: a pipe gives them in small pieces."""
    pieces = []
    while size > 0 and (piece := stream.read(min(size, at_once))):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
