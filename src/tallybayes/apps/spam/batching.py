"""Many mails as a batch: taken apart by the compiled kernel, and by Python where one is not plain or few come."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.apps.spam import mail, markup, mime, words
from tallybayes.apps.spam.databases import storable
from tallybayes.apps.spam.folders import MAIL_BYTES
from tallybayes.apps.spam.packing import Batch, Message, batch_of

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
    >>> "ann" in found.words, found.lengths.tolist()
    (True, [12, 12])
    """
    ids = list(map(mail.content_id, raws))
    batch = _kernel() if len(raws) > _FEW else None
    if batch is None:
        return batch_of(Message(*both) for both in zip(ids, map(mail.tokens_of, raws), strict=True))
    for raw in raws:
        if not batch.add(raw):
            batch.add_tokens(storable(mail.tokens_of(raw)))
    tokens, lengths = np.frombuffer(batch.tokens(), np.int32), np.frombuffer(batch.lengths(), np.int64)
    return Batch(ids, storable(batch.words()), tokens, lengths)


def _kernel() -> MailBatch | None:
    from tallybayes.kernels.mail import mail_batch

    return mail_batch(REFERENCE)
