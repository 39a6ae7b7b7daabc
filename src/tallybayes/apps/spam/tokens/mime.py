"""A mail's bytes taken apart: headers, parts, encodings and charsets, in bounded time and memory whatever the bytes.

Every pattern here is linear in what it reads, and what is read has a limit with a name. Nothing is an error: what
cannot be decoded is read as it stands.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

HEADER_BYTES = 1 << 17  # of the headers of a mail or a part
HEADERS = 1000  # of a mail or a part
PART_BYTES = 1 << 18  # of text that is decoded, of one part
TEXT_BYTES = 1 << 20  # of text that is decoded, of all parts
PARTS = 1000  # of a mail, those that hold others included
DEPTH = 20  # of parts within parts
_UU_LINES = PART_BYTES // 45  # full ones

_FIELD = re.compile(rb"[!-9;-~]{1,100}[ \t]*:")
_KNOWN = re.compile(
    rb"(?:from|to|cc|subject|date|received|message-id|return-path|reply-to|delivered-to|mime-version|content-type)"
    rb"[ \t]*:",
    re.IGNORECASE,
)
_ENCODED = re.compile(r"=\?([!->@-~]{1,40})\?([bBqQ])\?([^?]{0,4000})\?=(?:\s{1,10}(?==\?))?")
_PARAMETER = re.compile(r'([!-~]{1,40}?)\s{0,9}=\s{0,9}(?:"([^"]{0,400})"|([^\s;"]{0,400}))')
_NOT_BASE64 = bytes(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
# Charsets that are found out by trying, and codecs that are no charsets of mail: slow, or of a programming language.
_OWN = {"idna", "punycode", "undefined", "mbcs", "oem", "unicode-escape", "raw-unicode-escape"}
_OWN |= {name.replace("-", "_") for name in _OWN} | {"", "us-ascii", "ascii", "utf-8", "utf8"}
# ASCII bytes that are no ASCII text.
WIDE = ("utf-16", "utf16", "utf-32", "utf32", "utf-7", "iso-2022", "iso2022", "csiso2022", "hz")


class MimePart(NamedTuple):
    """A leaf of a mail: what it says it is, and its text (of a picture or a program: its bytes as they came, some)."""

    headers: list[tuple[str, str]]
    kind: str
    parameters: dict[str, str]
    content: str | bytes


def parts_of(raw: bytes) -> Iterator[MimePart]:
    """The leaves of a mail, in their order; a part that holds others comes before them, with no content."""
    left = [PARTS, TEXT_BYTES]
    return _leaves(raw, 0, len(raw), 0, left)


def _leaves(raw: bytes, start: int, end: int, depth: int, left: list[int]) -> Iterator[MimePart]:
    left[0] -= 1
    head, body = split_head(raw, start, end)
    headers = fields(raw[start : min(head, start + HEADER_BYTES)]) if head > start else []
    values = {name: value for name, value in reversed(headers) if name[:8] == "content-"}
    kind, parameters = _content_type(values.get("content-type", ""))
    if "content-disposition" in values:
        parameters = _content_type(values["content-disposition"])[1] | parameters
    encoding = values.get("content-transfer-encoding", "").strip().lower()
    if kind.startswith("multipart/") and depth < DEPTH and (boundary := parameters.get("boundary", "").rstrip()):
        places = _places(raw, body, end, b"--" + boundary.encode("utf-8", "replace"), left[0])
        if places:
            yield MimePart(headers, kind, parameters, "")
            for first, last in places:
                if left[0] > 0:
                    yield from _leaves(raw, first, last, depth + 1, left)
            return
    if kind.startswith("message/") and depth < DEPTH:
        yield MimePart(headers, kind, parameters, "")
        if left[0] > 0:
            if encoding in ("base64", "quoted-printable"):
                raw = decoded(raw[body : min(end, body + 2 * PART_BYTES)], encoding)
                body, end = 0, len(raw)
            if kind == "message/rfc822" or _KNOWN.match(raw, body):
                yield from _leaves(raw, body, end, depth + 1, left)
            else:
                yield MimePart([], "text/plain", {}, text(raw[body : min(end, body + PART_BYTES)], ""))
        return
    size = min(PART_BYTES, left[1])
    if kind.startswith(("text/", "multipart/", "message/")):
        content = decoded(raw[body : min(end, body + (size * 2 if encoding else size))], encoding)[:size]
        left[1] -= len(content)
        yield MimePart(headers, kind, parameters, text(content, parameters.get("charset", "")))
    else:
        yield MimePart(headers, kind, parameters, raw[body : min(end, body + 4096)])


def split_head(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the headers end and where the body begins; a text without headers is all body."""
    if raw.startswith(b"From ", start, end) or raw.startswith(b">From ", start, end):  # of an mbox
        start = raw.find(b"\n", start, end) + 1 or end
    if raw.startswith((b"\n", b"\r\n"), start, end):
        return start, raw.find(b"\n", start, end) + 1
    if not _FIELD.match(raw, start, end):
        return start, start
    blank = raw.find(b"\n\n", start, end)
    returned = raw.find(b"\n\r\n", start, blank if blank >= 0 else end)
    if returned >= 0:
        return returned + 1, returned + 3
    if blank >= 0:
        return blank + 1, blank + 2
    if _KNOWN.match(raw, start, end):
        return end, end
    return start, start


def unfolded(head: bytes) -> bytes:
    """Headers, each in a line of its own."""
    head = head[:HEADER_BYTES]
    if b"\r" in head:
        head = head.replace(b"\r\n", b"\n")
    return head.replace(b"\n ", b" ").replace(b"\n\t", b" ")


def fields(head: bytes) -> list[tuple[str, str]]:
    """Names in lower case and decoded values of headers, in their order."""
    found = []
    for line in text(unfolded(head), "").split("\n", HEADERS)[:HEADERS]:
        name, colon, value = line.partition(":")
        name = name.rstrip()
        if colon and " " not in name:  # else it is the line before the headers, of an mbox
            found.append((name.lower()[:100], unquoted(value) if "=?" in value else value))
    return found


def unquoted(value: str) -> str:
    """A header with its encoded words (RFC 2047) decoded."""
    return _ENCODED.sub(_word, value)


def _word(found: re.Match[str]) -> str:
    charset, how, word = found.groups()
    raw = word.encode("utf-8", "replace")
    raw = decoded(raw, "base64") if how in "bB" else binascii.a2b_qp(raw, header=True)
    return text(raw, charset.partition("*")[0])


@lru_cache(256)
def _content_type(value: str) -> tuple[str, dict[str, str]]:
    """A kind, "text/plain" if none is said, and its parameters."""
    kind, _, rest = value[:4000].partition(";")
    kind = kind.strip().lower()
    if "/" not in kind:
        kind = "text/plain"
    parameters: dict[str, str] = {}
    for name, quoted, plain in _PARAMETER.findall(rest):
        name = name.lstrip(";").partition("*")[0].lower()
        parameters[name] = parameters.get(name, "") + (quoted or plain)
    return kind, parameters


def _places(raw: bytes, start: int, end: int, mark: bytes, most: int) -> list[tuple[int, int]]:
    """Where the parts between boundaries begin and end, at most so many."""
    found: list[tuple[int, int]] = []
    if not raw.startswith(mark, start, end):
        start = raw.find(b"\n" + mark, start, end) + 1
        if not start:
            return []
    while len(found) < most:
        after = start + len(mark)
        first = raw.find(b"\n", after, end) + 1
        if raw.startswith(b"--", after, end) or not first:
            break
        last = raw.find(b"\n" + mark, first - 1, end)
        if last < 0:
            found.append((first, end))
            break
        found.append((first, max(first, last)))
        start = last + 1
    return found


def decoded(raw: bytes, encoding: str) -> bytes:
    """Bytes without their transfer encoding; broken ones as far as they go."""
    if encoding == "base64":
        try:
            return binascii.a2b_base64(raw)
        except binascii.Error:
            clean = raw.translate(None, _NOT_BASE64)
            return binascii.a2b_base64(clean[: len(clean) // 4 * 4])
    if encoding == "quoted-printable":
        return binascii.a2b_qp(raw)
    if encoding in ("x-uuencode", "uuencode", "x-uue"):
        return b"".join(map(_uu, raw.split(b"\n", _UU_LINES)[:_UU_LINES]))
    return raw


def _uu(line: bytes) -> bytes:
    try:
        return binascii.a2b_uu(line)
    except binascii.Error:
        return b""


def text(raw: bytes, charset: str) -> str:
    """Bytes as text: by the charset that is said, else as UTF-8, else as Latin-1, which everything is."""
    charset = charset.strip().lower()
    if charset.startswith(WIDE) or (charset not in _OWN and not raw.isascii()):
        try:
            return raw.decode(charset, "replace")
        except (LookupError, ValueError, OSError):
            pass
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if len(raw) >= PART_BYTES and error.start >= len(raw) - 3:  # cut off within a character
            return raw[: error.start].decode()
        return raw.decode("latin-1")
