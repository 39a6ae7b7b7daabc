"""A mail as tokens: the words of its text, and of its headers, links and hidden text with a prefix of their kind."""

from __future__ import annotations

import hashlib
import re
from binascii import crc32
from collections.abc import Iterable

from tallybayes.apps.spam.folders import MAIL_BYTES, mails_in
from tallybayes.apps.spam.markup import read_page
from tallybayes.apps.spam.mime import fields, parts_of, split_head

__all__ = ["content_id", "mails_in", "tokens_of"]

TOKENS = 20_000  # of a mail
_LETTERS = 40  # of a token

# What identifies a mail: what its writer gave it. Those who carry it add other headers, and this filter one.
_IDENTITY = {"message-id", "date", "from", "to", "cc", "subject"}
_QUOTED_FROM = re.compile(rb"^>+(?=From )", re.MULTILINE)

# Headers that say nothing of the mail, or that filters wrote.
_SKIPPED = {"x-tally", "status", "x-status", "x-uid", "x-keywords", "lines", "content-length", "delivery-date", "date"}
_WORD = re.compile(r"\w+(?:['.-]\w+)*|[!$€£]+")
_HOST = re.compile(r"(?:[a-z0-9-]{1,63}\.){1,10}[a-z0-9-]{1,63}")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://([^\s\"'<>]{1,1000})")


def content_id(raw: bytes) -> bytes:
    r"""The identity of a mail, 32 bytes: the same after it was carried on, stored in an mbox, or marked by this filter.

    Parameters
    ----------
    raw : bytes
        A mail.

    Returns
    -------
    identity : bytes
        SHA-256 of what its writer gave it (sender, receivers, subject, date, message id) and of the body.

    Examples
    --------
    >>> mail = b"From: me@example.com\nSubject: hello\n\nDear all\n"
    >>> content_id(mail) == content_id(b"X-Tally: ham\r\n" + mail.replace(b"\n", b"\r\n"))
    True
    """
    raw = raw[:MAIL_BYTES]
    head, body = split_head(raw, 0, len(raw))
    own = sorted((name, " ".join(value.split())) for name, value in fields(raw[:head]) if name in _IDENTITY)
    identity = hashlib.sha256(repr(own).encode("utf-8", "replace"))
    content = raw[body:]
    if b"\r" in content:
        content = content.replace(b"\r", b"")
    if b">From " in content:
        content = _QUOTED_FROM.sub(b"", content)
    identity.update(content.rstrip())
    return identity.digest()


def tokens_of(raw: bytes) -> list[str]:
    r"""The distinct tokens of a mail, in order of their first occurrence.

    Parameters
    ----------
    raw : bytes
        A mail, or anything else: whatever the bytes, it takes bounded time and memory.

    Returns
    -------
    tokens : list of str
        Words of the text as they are, in lower case; others after the name of their kind and a colon.

    Examples
    --------
    >>> tokens_of(b"From: Ann <ann@example.com>\nSubject: Click to win\n\nWin a prize")
    ['from:ann', 'from:example.com', 'subject:click', 'subject:to', 'subject:win', 'win', 'a', 'prize']
    """
    found: dict[str, None] = {}
    for part in parts_of(raw[:MAIL_BYTES]):
        for name, value in part.headers:
            if name not in _SKIPPED:
                _add(found, _header_tokens(name, value))
        kind = part.kind
        if isinstance(part.content, bytes):
            _add(found, [f"part:{kind}", f"bytes:{crc32(part.content):08x}"])
            continue
        text = part.content
        if kind == "text/html" or text[:1000].lstrip()[:5].lower() in ("<html", "<!doc"):
            page = read_page(text)
            _add(found, (f"html:{tag}" for tag in page.tags))
            _add(found, _url_tokens("link", page.links))
            _add(found, _url_tokens("image", page.sources))
            _add(found, (f"hidden:{word[:_LETTERS]}" for word in _WORD.findall(page.hidden.lower())))
            text = page.visible
        text = text.lower()
        if "://" in text:
            _add(found, _url_tokens("link", _ADDRESS.findall(text)))
        _add(found, (word[:_LETTERS] for word in _WORD.findall(text)))
        if len(found) > TOKENS:
            break
    return list(found)[:TOKENS]


def _add(found: dict[str, None], tokens: Iterable[str]) -> None:
    found.update(dict.fromkeys(tokens))


def _header_tokens(name: str, value: str) -> list[str]:
    value = value.lower()
    return [f"{name}:{word[:_LETTERS]}" for word in _WORD.findall(value)]


def _url_tokens(kind: str, addresses: Iterable[str]) -> list[str]:
    found = []
    for address in addresses:
        host, _, path = address.lower().partition("://")[2].partition("/")
        found.append(f"{kind}:{host[:_LETTERS]}")
        found += [f"{kind}:{word[:_LETTERS]}" for word in _WORD.findall(path)]
    return found
