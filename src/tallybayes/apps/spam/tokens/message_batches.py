"""Many mails as a batch: taken apart by the compiled kernel, and by Python where one is not plain or few come."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.apps.spam.spam_calibration import by_kind
from tallybayes.apps.spam.spam_score import PSEUDO_COUNT, Judgment, Thresholds, kinds_of, log_base, log_prior, logistic
from tallybayes.apps.spam.store.backends import storable
from tallybayes.apps.spam.store.message_codec import Batch, Message, as_words, batch_of
from tallybayes.apps.spam.store.spam_store import Store
from tallybayes.apps.spam.tokens import html_text, message_tokens, mime, word_tokens
from tallybayes.apps.spam.tokens.mailboxes import MAIL_BYTES
from tallybayes.apps.spam.verdicts import Verdict, calibration_of, classify_mail, totals_of, verdict_of

if TYPE_CHECKING:
    from tallybayes.kernels._compiled import MailBatch

_FEW = 32  # mails that are read before the kernels are imported

# What the kernel does not repeat of the reference: its numbers, its words, and what it seldom needs.
REFERENCE = {
    "decoded": mime.decoded,
    "text": mime.text,
    "unquoted": mime.unquoted,
    "characters": html_text.characters,
    "checksum": crc32,
    "wide": mime.WIDE,
    "skipped": message_tokens.SKIPPED,
    "prefix": message_tokens.PREFIX,
    "simple": html_text.SIMPLE,
    "in_words": html_text.INLINE,
    "unread": html_text.UNREAD,
    "mail_bytes": MAIL_BYTES,
    "header_bytes": mime.HEADER_BYTES,
    "headers": mime.HEADERS,
    "part_bytes": mime.PART_BYTES,
    "text_bytes": mime.TEXT_BYTES,
    "parts": mime.PARTS,
    "depth": mime.DEPTH,
    "tokens": message_tokens.TOKENS,
    "links": message_tokens.LINKS,
    "letters": word_tokens.LETTERS,
    "tags": html_text.TAGS,
    "number": message_tokens.NUMBER,
}


def read_batch(raws: Sequence[bytes]) -> Batch:
    r"""Mails with their words as numbers.

    Examples
    --------
    >>> found = read_batch([b"Subject: hello\n\nDear all", b"Subject: hello\n\nDear Ann"])
    >>> b"\0ann\0" in found.words, found.lengths.tolist()
    (True, [12, 12])
    """
    ids = list(map(message_tokens.content_id, raws))
    batch = _taken_apart(raws)
    if batch is None:
        return batch_of(Message(*both) for both in zip(ids, map(message_tokens.tokens_of, raws), strict=True))
    tokens, lengths = np.frombuffer(batch.tokens(), np.int32), np.frombuffer(batch.lengths(), np.int64)
    return Batch(ids, batch.words(), tokens, lengths)


def judge_batch(store: Store, raws: Sequence[bytes], thresholds: Thresholds) -> list[Verdict]:
    """What each of many mails is taken for: `judging.judge_mail`, with the words of all of them looked up once."""
    batch = _taken_apart(raws)
    if batch is None:
        return [classify_mail(store, raw, thresholds) for raw in raws]
    tokens, sizes = np.frombuffer(batch.tokens(), np.int32), np.frombuffer(batch.lengths(), np.int64)
    words = as_words(batch.words())
    state, pairs = store.look_up(words)
    totals, calibration = totals_of(state), calibration_of(state)
    counts = np.array(pairs, np.int64).reshape(-1, 2)
    seen = counts.sum(axis=1) > 0
    rows = np.repeat(np.arange(len(raws)), sizes)
    log_odds = np.full(len(raws), log_prior(totals))
    learned = bool(totals.ham and totals.spam)
    if learned:
        weights = np.where(
            seen, log_base(totals) + np.log((counts[:, 1] + PSEUDO_COUNT) / (counts[:, 0] + PSEUDO_COUNT)), 0.0
        )
        kinds = np.array(kinds_of(words), np.int64)
        together = by_kind(rows, kinds[tokens], weights[tokens], len(raws))
        log_odds += calibration.intercept + together @ np.array(calibration.slopes)
    known = np.bincount(rows, seen[tokens], len(raws)).astype(int).tolist()
    found = [Judgment(odds, logistic(odds), [], learned) for odds in log_odds.tolist()]
    return [verdict_of(one, n, thresholds) for one, n in zip(found, known, strict=True)]


def _taken_apart(raws: Sequence[bytes]) -> MailBatch | None:
    batch = empty_batch() if len(raws) > _FEW else None
    if batch is not None:
        for raw in raws:
            if not batch.add(raw):
                batch.add_tokens(storable(message_tokens.tokens_of(raw)))
    return batch


def empty_batch() -> MailBatch | None:
    """A batch of no mails by the kernel; None where it is not compiled."""
    from tallybayes.apps.spam.tokens.token_kernel import mail_batch

    return mail_batch(REFERENCE)
