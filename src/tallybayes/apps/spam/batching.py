"""Many mails as a batch: taken apart by the compiled kernel, and by Python where one is not plain or few come."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.apps.spam import mail, markup, mime, words
from tallybayes.apps.spam.databases import storable
from tallybayes.apps.spam.folders import MAIL_BYTES
from tallybayes.apps.spam.packing import Batch, Message, as_words, batch_of

if TYPE_CHECKING:
    from tallybayes.kernels._compiled import MailBatch

_FEW = 32  # mails that are read before the kernels are imported

# What the kernel does not repeat of the reference: its numbers, its words, and what it seldom needs.
REFERENCE = {
    "decoded": mime.decoded,
    "text": mime.text,
    "unquoted": mime.unquoted,
    "characters": markup.characters,
    "checksum": crc32,
    "wide": mime.WIDE,
    "skipped": mail.SKIPPED,
    "prefix": mail.PREFIX,
    "simple": markup.SIMPLE,
    "in_words": markup.INLINE,
    "unread": markup.UNREAD,
    "mail_bytes": MAIL_BYTES,
    "header_bytes": mime.HEADER_BYTES,
    "headers": mime.HEADERS,
    "part_bytes": mime.PART_BYTES,
    "text_bytes": mime.TEXT_BYTES,
    "parts": mime.PARTS,
    "depth": mime.DEPTH,
    "tokens": mail.TOKENS,
    "links": mail.LINKS,
    "letters": words.LETTERS,
    "tags": markup.TAGS,
    "number": mail.NUMBER,
}


def read_batch(raws: Sequence[bytes]) -> Batch:
    r"""Mails with their words as numbers.

    Examples
    --------
    >>> found = read_batch([b"Subject: hello\n\nDear all", b"Subject: hello\n\nDear Ann"])
    >>> b"\0ann\0" in found.words, found.lengths.tolist()
    (True, [12, 12])
    """
    ids = list(map(mail.content_id, raws))
    batch = _taken_apart(raws)
    if batch is None:
        return batch_of(Message(*both) for both in zip(ids, map(mail.tokens_of, raws), strict=True))
    tokens, lengths = np.frombuffer(batch.tokens(), np.int32), np.frombuffer(batch.lengths(), np.int64)
    return Batch(ids, batch.words(), tokens, lengths)


def tokens_of_each(raws: Sequence[bytes]) -> Iterator[list[str]]:
    r"""The tokens of mails, one after the other, as they are stored.

    Examples
    --------
    >>> [tokens[:3] for tokens in tokens_of_each([b"Subject: hello\n\nDear all", b"To: Ann\n\nHello"])]
    [['style:subject', 'style:subject size 3', 'style:subject capitals 0'], ['style:to', 'to:ann', 'hello']]
    """
    batch = _taken_apart(raws)
    if batch is None:
        yield from map(storable, map(mail.tokens_of, raws))
        return
    words, numbers, start = as_words(batch.words()), memoryview(batch.tokens()).cast("i"), 0
    for length in memoryview(batch.lengths()).cast("q"):
        yield [words[number] for number in numbers[start : start + length]]
        start += length


def _taken_apart(raws: Sequence[bytes]) -> MailBatch | None:
    batch = empty_batch() if len(raws) > _FEW else None
    if batch is not None:
        for raw in raws:
            if not batch.add(raw):
                batch.add_tokens(storable(mail.tokens_of(raw)))
    return batch


def empty_batch() -> MailBatch | None:
    """A batch of no mails by the kernel; None where it is not compiled."""
    from tallybayes.kernels.mail import mail_batch

    return mail_batch(REFERENCE)
