"""Tokens of a mail: words of the text, and prefixed words of headers, links and hidden text."""

from __future__ import annotations

import hashlib
import re
from binascii import crc32

from tallybayes.apps.spam.tokens.html_text import read_page
from tallybayes.apps.spam.tokens.mailboxes import MAIL_BYTES, mails_in
from tallybayes.apps.spam.tokens.mime import HEADER_BYTES, HEADERS, parts_of, split_head, unfolded
from tallybayes.apps.spam.tokens.word_tokens import LETTERS, names_of, shapes, shouted, style, words_of

__all__ = ["content_id", "mails_in", "tokens_of"]

TOKENS = 20_000  # maximum number of tokens of a mail
LINKS = 1000  # maximum number of links of a part
NUMBER = 8  # maximum length of a word with digits in headers

# Headers set by the sender; mail servers and this filter add others.
_IDENTITY = {b"message-id", b"date", b"from", b"to", b"cc", b"subject"}
_QUOTED = 3  # maximum depth of mbox quoting of "From "

# Ignored headers: times of delivery, states of mail readers, and results of filters.
SKIPPED = {"x-tally", "status", "x-status", "x-uid", "x-keywords", "lines", "content-length", "date", "delivery-date"}
SKIPPED |= {"references", "in-reply-to", "thread-index", "dkim-signature"}
PREFIX = {"from": "from", "return-path": "from", "reply-to": "from", "sender": "from", "subject": "subject"}
PREFIX |= {"to": "to", "cc": "to", "delivered-to": "to", "received": "received"}
_LINK = re.compile(r"://([^\s\"'<>]{1,1000})")


def content_id(raw: bytes) -> bytes:
    r"""Return the identity of a mail, 32 bytes, which ignores delivery headers, mbox quoting and the filter's header.

    Parameters
    ----------
    raw : bytes
        A mail.

    Returns
    -------
    identity : bytes
        SHA-256 of the headers of the sender (sender, receivers, subject, date, message id) and of the body.

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
    r"""Return the distinct tokens of a mail, in order of first occurrence.

    Parameters
    ----------
    raw : bytes
        A mail, or any other bytes: time and memory are bounded.

    Returns
    -------
    tokens : list of str
        Words of the text in lower case; other tokens have their kind and a colon as prefix.

    Examples
    --------
    >>> tokens = tokens_of(b"From: Ann <ann@example.com>\nSubject: WIN now\n\nWin $500")
    >>> [token for token in tokens if not token.startswith("style:")]
    ['from:ann', 'from:example.com', 'subject:WIN', 'subject:win', 'subject:now', 'win', '500', 'shape:000']
    """
    tokens: list[str] = []
    for part in parts_of(raw[:MAIL_BYTES]):
        if part.headers:
            tokens += _header_tokens(part.headers)
        if isinstance(part.content, bytes):
            tokens += (f"style:{part.kind}", f"bytes:{crc32(part.content):08x}")
        elif part.content:
            tokens += _text_tokens(part.content, part.kind)
        if len(tokens) > 8 * TOKENS:
            break
    return list(dict.fromkeys(tokens))[:TOKENS]


def _header_tokens(headers: list[tuple[str, str]]) -> list[str]:
    """Return the tokens of headers."""
    values: dict[str, list[str]] = {}
    tokens = []
    for name, value in headers:
        if name == "received":
            value = value.partition(";")[0]  # the rest is the time
        if name not in SKIPPED:
            values.setdefault(PREFIX.get(name, "header"), []).append(value)
            tokens.append("style:" + name)
    for prefix, texts in values.items():
        text = " ".join(texts)
        words = names_of(text.lower()) if prefix != "subject" else words_of(text)
        if prefix == "subject":
            tokens += ["subject:" + word for word in shouted(words)]
            tokens += ["style:subject " + level for level in style(text)]
            words = " ".join(words).lower().split()
        elif prefix in ("received", "header"):  # drop identifiers that are unique to a mail
            words = [word for word in words if word.isalpha() or "." in word or len(word) < NUMBER]
        start = prefix + ":"
        tokens += [start + word for word in words]
    return tokens


def _text_tokens(text: str, kind: str) -> list[str]:
    """Return the tokens of a text or an HTML page."""
    tokens = []
    if kind == "text/html" or text[:200].lstrip()[:5].lower() in ("<html", "<!doc"):
        page = read_page(text)
        tokens += [f"style:<{tag[:LETTERS]}>" for tag in page.tags]
        tokens += _link_tokens("link", page.links)
        tokens += _link_tokens("image", page.sources)
        tokens += [f"hidden:{word}" for word in words_of(page.hidden.lower())]
        text = page.visible
    if "://" in text:
        tokens += _link_tokens("link", _LINK.findall(text))
    words = words_of(text)
    tokens += dict.fromkeys(" ".join(words).lower().split())
    tokens += ["upper:" + word for word in shouted(words)]
    tokens += ["shape:" + word for word in shapes(words)]
    tokens += ["style:" + level for level in style(text)]
    return tokens


def _link_tokens(kind: str, addresses: list[str]) -> list[str]:
    """Return the hosts of addresses, their parent domains, and the words of the paths."""
    split = [address.rpartition("://")[2].partition("/") for address in dict.fromkeys(addresses[:LINKS])]
    words = names_of(" ".join([path for _, _, path in split]).lower())
    for host in dict.fromkeys([host[:200].lower() for host, _, _ in split]):
        words.append(host[:LETTERS])
        while host := host.partition(".")[2]:
            words.append(host[:LETTERS])
    return [f"{kind}:{word}" for word in words]
