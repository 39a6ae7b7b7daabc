"""MIME: headers, parts, transfer encodings and charsets of a mail, in bounded time and memory for any bytes.

Every pattern takes linear time, and every input has a named limit. Nothing raises an error: bytes that cannot be
decoded are read as they are.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

HEADER_BYTES = 1 << 17  # maximum bytes of the headers of a mail or a part
HEADERS = 1000  # maximum number of headers of a mail or a part
PART_BYTES = 1 << 18  # maximum bytes of decoded text of a part
TEXT_BYTES = 1 << 20  # maximum bytes of decoded text of all parts
PARTS = 1000  # maximum number of parts of a mail, including multiparts
DEPTH = 20  # maximum depth of parts
_UU_LINES = PART_BYTES // 45  # full lines

_FIELD = re.compile(rb"[!-9;-~]{1,100}[ \t]*:")
_KNOWN = re.compile(
    rb"(?:from|to|cc|subject|date|received|message-id|return-path|reply-to|delivered-to|mime-version|content-type)"
    rb"[ \t]*:",
    re.IGNORECASE,
)
_ENCODED = re.compile(r"=\?([!->@-~]{1,40})\?([bBqQ])\?([^?]{0,4000})\?=(?:\s{1,10}(?==\?))?")
_PARAMETER = re.compile(r'([!-~]{1,40}?)\s{0,9}=\s{0,9}(?:"([^"]{0,400})"|([^\s;"]{0,400}))')
_NOT_BASE64 = bytes(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
# Charsets that are detected by decoding, and codecs that are not charsets of mail.
_OWN = {"idna", "punycode", "undefined", "mbcs", "oem", "unicode-escape", "raw-unicode-escape"}
_OWN |= {name.replace("-", "_") for name in _OWN} | {"", "us-ascii", "ascii", "utf-8", "utf8"}
# Charsets whose ASCII bytes are not ASCII text.
WIDE = ("utf-16", "utf16", "utf-32", "utf32", "utf-7", "iso-2022", "iso2022", "csiso2022", "hz")


class MimePart(NamedTuple):
    """Leaf of a mail: its headers, its content type, and its text, or its first bytes if it is not text."""

    headers: list[tuple[str, str]]
    kind: str
    parameters: dict[str, str]
    content: str | bytes


def parts_of(raw: bytes) -> Iterator[MimePart]:
    """Yield the leaves of a mail in order. A multipart comes before its parts, without content."""
    budget = [PARTS, TEXT_BYTES]
    return _leaves(raw, 0, len(raw), 0, budget)


def _leaves(raw: bytes, start: int, end: int, depth: int, budget: list[int]) -> Iterator[MimePart]:
    """Yield the leaves of a part."""
    budget[0] -= 1
    head, body = split_head(raw, start, end)
    headers = fields(raw[start : min(head, start + HEADER_BYTES)]) if head > start else []
    values = {name: value for name, value in reversed(headers) if name[:8] == "content-"}
    kind, parameters = _content_type(values.get("content-type", ""))
    if "content-disposition" in values:
        parameters = _content_type(values["content-disposition"])[1] | parameters
    encoding = values.get("content-transfer-encoding", "").strip().lower()
    if kind.startswith("multipart/") and depth < DEPTH and (boundary := parameters.get("boundary", "").rstrip()):
        ranges = _part_ranges(raw, body, end, b"--" + boundary.encode("utf-8", "replace"), budget[0])
        if ranges:
            yield MimePart(headers, kind, parameters, "")
            for first, last in ranges:
                if budget[0] > 0:
                    yield from _leaves(raw, first, last, depth + 1, budget)
            return
    if kind.startswith("message/") and depth < DEPTH:
        yield MimePart(headers, kind, parameters, "")
        if budget[0] > 0:
            if encoding in ("base64", "quoted-printable"):
                raw = decoded(raw[body : min(end, body + 2 * PART_BYTES)], encoding)
                body = 0
                end = len(raw)
            if kind == "message/rfc822" or _KNOWN.match(raw, body):
                yield from _leaves(raw, body, end, depth + 1, budget)
            else:
                yield MimePart([], "text/plain", {}, text(raw[body : min(end, body + PART_BYTES)], ""))
        return
    size = min(PART_BYTES, budget[1])
    if kind.startswith(("text/", "multipart/", "message/")):
        content = decoded(raw[body : min(end, body + (size * 2 if encoding else size))], encoding)[:size]
        budget[1] -= len(content)
        yield MimePart(headers, kind, parameters, text(content, parameters.get("charset", "")))
    else:
        yield MimePart(headers, kind, parameters, raw[body : min(end, body + 4096)])


def split_head(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the end of the headers and the start of the body; a text without headers is all body."""
    if raw.startswith(b"From ", start, end) or raw.startswith(b">From ", start, end):  # separator line of an mbox
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
    """Join continuation lines of headers."""
    head = head[:HEADER_BYTES]
    if b"\r" in head:
        head = head.replace(b"\r\n", b"\n")
    return head.replace(b"\n ", b" ").replace(b"\n\t", b" ")


def fields(head: bytes) -> list[tuple[str, str]]:
    """Return the names in lower case and the decoded values of headers, in order."""
    headers = []
    for line in text(unfolded(head), "").split("\n", HEADERS)[:HEADERS]:
        name, colon, value = line.partition(":")
        name = name.rstrip()
        if colon and " " not in name:  # else it is the separator line of an mbox
            headers.append((name.lower()[:100], unquoted(value) if "=?" in value else value))
    return headers


def unquoted(value: str) -> str:
    """Decode the encoded words (RFC 2047) of a header."""
    return _ENCODED.sub(_word, value)


def _word(match: re.Match[str]) -> str:
    """Decode one encoded word."""
    charset, encoding, word = match.groups()
    raw = word.encode("utf-8", "replace")
    raw = decoded(raw, "base64") if encoding in "bB" else binascii.a2b_qp(raw, header=True)
    return text(raw, charset.partition("*")[0])


@lru_cache(256)
def _content_type(value: str) -> tuple[str, dict[str, str]]:
    """Return the content type, by default "text/plain", and its parameters."""
    kind, _, rest = value[:4000].partition(";")
    kind = kind.strip().lower()
    if "/" not in kind:
        kind = "text/plain"
    parameters: dict[str, str] = {}
    for name, quoted, plain in _PARAMETER.findall(rest):
        name = name.lstrip(";").partition("*")[0].lower()
        parameters[name] = parameters.get(name, "") + (quoted or plain)
    return kind, parameters


def _part_ranges(raw: bytes, start: int, end: int, mark: bytes, most: int) -> list[tuple[int, int]]:
    """Return the start and end of each part between boundaries, at most `most`."""
    ranges: list[tuple[int, int]] = []
    if not raw.startswith(mark, start, end):
        start = raw.find(b"\n" + mark, start, end) + 1
        if not start:
            return []
    while len(ranges) < most:
        after = start + len(mark)
        first = raw.find(b"\n", after, end) + 1
        if raw.startswith(b"--", after, end) or not first:
            break
        last = raw.find(b"\n" + mark, first - 1, end)
        if last < 0:
            ranges.append((first, end))
            break
        ranges.append((first, max(first, last)))
        start = last + 1
    return ranges


def decoded(raw: bytes, encoding: str) -> bytes:
    """Decode a transfer encoding; broken input as far as possible."""
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
    """Decode a line of uuencode."""
    try:
        return binascii.a2b_uu(line)
    except binascii.Error:
        return b""


def text(raw: bytes, charset: str) -> str:
    """Decode bytes by the declared charset, else as UTF-8, else as Latin-1."""
    charset = charset.strip().lower()
    if charset.startswith(WIDE) or (charset not in _OWN and not raw.isascii()):
        try:
            return raw.decode(charset, "replace")
        except (LookupError, ValueError, OSError):
            pass
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if len(raw) >= PART_BYTES and error.start >= len(raw) - 3:  # truncated within a character
            return raw[: error.start].decode()
        return raw.decode("latin-1")
