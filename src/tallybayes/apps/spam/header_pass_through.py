"""A mail passed through: every byte as it came, and one header more."""

from __future__ import annotations

from typing import BinaryIO

from tallybayes.apps.spam.verdicts import Verdict

_MOST = 1 << 25  # bytes of a mail that are looked at; what comes after is passed on piece by piece


def header_of(verdict: Verdict) -> str:
    """What the header says; the first word is the verdict."""
    return f"X-Tally: {verdict.verdict}; probability={verdict.probability:.6f}"


def split(raw: bytes) -> tuple[bytes, bytes]:
    """The line with which an mbox starts a mail, if there is one, and the mail."""
    if not raw.startswith((b"From ", b">From ")):
        return b"", raw
    cut = raw.find(b"\n") + 1 or len(raw)
    return raw[:cut], raw[cut:]


def with_header(raw: bytes, header: str) -> list[bytes]:
    """A mail in pieces, with a header before all others, in the line ends that it has."""
    first, mail = split(raw)
    end = b"\r\n" if raw[: raw.find(b"\n") + 1].endswith(b"\r\n") else b"\n"
    return [first, header.encode("ascii"), end, mail]


def read_start(stream: BinaryIO) -> bytes:
    """The start of a mail, which for nearly all is the whole of it."""
    pieces, left = [], _MOST
    while left > 0 and (piece := stream.read(min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def pass_on(source: BinaryIO, target: BinaryIO) -> None:
    """Copy what is left."""
    while piece := source.read(1 << 20):
        target.write(piece)
    target.flush()
