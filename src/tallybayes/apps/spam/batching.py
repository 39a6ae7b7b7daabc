"""Many mails as a batch: taken apart by the compiled kernel, and by Python where one is not plain or few come."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.apps.spam import mail, markup, mime, words
from tallybayes.apps.spam.calibrate import by_kind
from tallybayes.apps.spam.databases import storable
from tallybayes.apps.spam.folders import MAIL_BYTES
from tallybayes.apps.spam.judging import Verdict, calibration_of, judge_mail, totals_of, verdict_of
from tallybayes.apps.spam.packing import Batch, Message, as_words, batch_of
from tallybayes.apps.spam.score import ADDED, Judgement, Thresholds, kinds_of, log_base, log_prior, logistic
from tallybayes.apps.spam.store import Store

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


def judge_batch(store: Store, raws: Sequence[bytes], thresholds: Thresholds) -> list[Verdict]:
    """What each of many mails is taken for: `judging.judge_mail`, with the words of all of them looked up once."""
    batch = _taken_apart(raws)
    if batch is None:
        return [judge_mail(store, raw, thresholds) for raw in raws]
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
        weights = np.where(seen, log_base(totals) + np.log((counts[:, 1] + ADDED) / (counts[:, 0] + ADDED)), 0.0)
        kinds = np.array(kinds_of(words), np.int64)
        together = by_kind(rows, kinds[tokens], weights[tokens], len(raws))
        log_odds += calibration.intercept + together @ np.array(calibration.slopes)
    known = np.bincount(rows, seen[tokens], len(raws)).astype(int).tolist()
    found = [Judgement(odds, logistic(odds), [], learned) for odds in log_odds.tolist()]
    return [verdict_of(one, n, thresholds) for one, n in zip(found, known, strict=True)]


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
