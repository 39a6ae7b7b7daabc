"""A mail as tokens: the words of its text, and of its headers, links and hidden text with a prefix of their kind."""

from __future__ import annotations

import hashlib
import re
from binascii import crc32

from tallybayes.apps.spam.tokens.html_text import read_page
from tallybayes.apps.spam.tokens.mailboxes import MAIL_BYTES, mails_in
from tallybayes.apps.spam.tokens.mime import HEADER_BYTES, HEADERS, parts_of, split_head, unfolded
from tallybayes.apps.spam.tokens.word_tokens import LETTERS, names_of, shapes, shouted, style, words_of

__all__ = ["content_id", "mails_in", "tokens_of"]

TOKENS = 20_000  # of a mail
LINKS = 1000  # of a part
NUMBER = 8  # letters of a word with digits in it that is told apart from other such words

# What identifies a mail: what its writer gave it. Those who carry it add other headers, and this filter one.
_IDENTITY = {b"message-id", b"date", b"from", b"to", b"cc", b"subject"}
_QUOTED = 3  # times that mboxes put a sign before "From ", each in each, which is not the mail's

# Headers that say when a mail came and where it is kept, not what it is; and what filters wrote.
SKIPPED = {"x-tally", "status", "x-status", "x-uid", "x-keywords", "lines", "content-length", "date", "delivery-date"}
SKIPPED |= {"references", "in-reply-to", "thread-index", "dkim-signature"}
PREFIX = {"from": "from", "return-path": "from", "reply-to": "from", "sender": "from", "subject": "subject"}
PREFIX |= {"to": "to", "cc": "to", "delivered-to": "to", "received": "received"}
_LINK = re.compile(r"://([^\s\"'<>]{1,1000})")


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
    lines = unfolded(raw[: min(head, HEADER_BYTES)]).split(b"\n", HEADERS)[:HEADERS]
    own = [line.split() for line in lines if line[: line.find(b":")].rstrip().lower() in _IDENTITY]
    identity = hashlib.sha256(repr(sorted(own)).encode())
    content = raw[body:]
    if b"\r" in content:
        content = content.replace(b"\r", b"")
    for _ in range(_QUOTED):
        if b">From " not in content:
            break
        content = content.replace(b">From ", b"From ")
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
    >>> found = tokens_of(b"From: Ann <ann@example.com>\nSubject: WIN now\n\nWin $500")
    >>> [token for token in found if not token.startswith("style:")]
    ['from:ann', 'from:example.com', 'subject:WIN', 'subject:win', 'subject:now', 'win', '500', 'shape:000']
    """
    found: list[str] = []
    for part in parts_of(raw[:MAIL_BYTES]):
        if part.headers:
            found += _header_tokens(part.headers)
        if isinstance(part.content, bytes):
            found += (f"style:{part.kind}", f"bytes:{crc32(part.content):08x}")
        elif part.content:
            found += _text_tokens(part.content, part.kind)
        if len(found) > 8 * TOKENS:
            break
    return list(dict.fromkeys(found))[:TOKENS]


def _header_tokens(headers: list[tuple[str, str]]) -> list[str]:
    values: dict[str, list[str]] = {}
    found = []
    for name, value in headers:
        if name == "received":
            value = value.partition(";")[0]  # what follows is when
        if name not in SKIPPED:
            values.setdefault(PREFIX.get(name, "header"), []).append(value)
            found.append("style:" + name)
    for prefix, texts in values.items():
        text = " ".join(texts)
        words = names_of(text.lower()) if prefix != "subject" else words_of(text)
        if prefix == "subject":
            found += ["subject:" + word for word in shouted(words)]
            found += ["style:subject " + step for step in style(text)]
            words = " ".join(words).lower().split()
        elif prefix in ("received", "header"):  # without the numbers that mails are given, each its own
            words = [word for word in words if word.isalpha() or "." in word or len(word) < NUMBER]
        start = prefix + ":"
        found += [start + word for word in words]
    return found


def _text_tokens(text: str, kind: str) -> list[str]:
    found = []
    if kind == "text/html" or text[:200].lstrip()[:5].lower() in ("<html", "<!doc"):
        page = read_page(text)
        found += [f"style:<{tag[:LETTERS]}>" for tag in page.tags]
        found += _link_tokens("link", page.links)
        found += _link_tokens("image", page.sources)
        found += [f"hidden:{word}" for word in words_of(page.hidden.lower())]
        text = page.visible
    if "://" in text:
        found += _link_tokens("link", _LINK.findall(text))
    words = words_of(text)
    found += dict.fromkeys(" ".join(words).lower().split())
    found += ["upper:" + word for word in shouted(words)]
    found += ["shape:" + word for word in shapes(words)]
    found += ["style:" + step for step in style(text)]
    return found


def _link_tokens(kind: str, addresses: list[str]) -> list[str]:
    """The hosts that addresses lead to, the domains they are of, and the words of the paths there."""
    split = [address.rpartition("://")[2].partition("/") for address in dict.fromkeys(addresses[:LINKS])]
    found = names_of(" ".join([path for _, _, path in split]).lower())
    for host in dict.fromkeys([host[:200].lower() for host, _, _ in split]):
        found.append(host[:LETTERS])
        while host := host.partition(".")[2]:
            found.append(host[:LETTERS])
    return [f"{kind}:{word}" for word in found]
