"""Copy a mail with one more header; every other byte stays the same."""

from __future__ import annotations

from typing import BinaryIO

from tallybayes.apps.spam.verdicts import Verdict

_MOST = 1 << 25  # bytes of a mail to classify; the rest is copied piece by piece


def header_of(verdict: Verdict) -> str:
    """Return the header with the verdict as its first word."""
    return f"X-Tally: {verdict.verdict}; probability={verdict.probability:.6f}"


def split(raw: bytes) -> tuple[bytes, bytes]:
    """Split a mail into the mbox separator line, if any, and the rest."""
    if not raw.startswith((b"From ", b">From ")):
        return b"", raw
    end = raw.find(b"\n") + 1 or len(raw)
    return raw[:end], raw[end:]


def with_header(raw: bytes, header: str) -> list[bytes]:
    """Return the mail in pieces, with the header before all others and with its own line ends."""
    first, mail = split(raw)
    end = b"\r\n" if raw[: raw.find(b"\n") + 1].endswith(b"\r\n") else b"\n"
    return [first, header.encode("ascii"), end, mail]


def read_start(stream: BinaryIO) -> bytes:
    """Read the first bytes of a mail, at most `_MOST`; nearly all mails are shorter."""
    pieces: list[bytes] = []
    remaining = _MOST
    while remaining > 0 and (piece := stream.read(min(remaining, 1 << 20))):
        pieces.append(piece)
        remaining -= len(piece)
    return b"".join(pieces)


def pass_on(source: BinaryIO, target: BinaryIO) -> None:
    """Copy the rest of a stream."""
    while piece := source.read(1 << 20):
        target.write(piece)
    target.flush()
