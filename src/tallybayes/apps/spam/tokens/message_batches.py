"""Tokens of many mails as a batch: by the compiled kernel, or in Python for unusual mails and small batches."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.apps.spam.spam_calibration import by_kind
from tallybayes.apps.spam.spam_score import PSEUDO_COUNT, SpamScore, Thresholds, kinds_of, log_base, log_prior, logistic
from tallybayes.apps.spam.store.backends import storable
from tallybayes.apps.spam.store.message_codec import Batch, Message, batch_of, words_from_bytes
from tallybayes.apps.spam.store.spam_store import Store
from tallybayes.apps.spam.tokens import html_text, message_tokens, mime, word_tokens
from tallybayes.apps.spam.tokens.mailboxes import MAIL_BYTES
from tallybayes.apps.spam.verdicts import Verdict, calibration_of, classify_mail, totals_of, verdict_of

if TYPE_CHECKING:
    from tallybayes.kernels._compiled import MailBatch

_FEW = 32  # mails that Python parses faster than the kernels are imported

# Constants, word lists and rarely used functions of the reference, which the kernel takes from here.
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
    r"""Return mails as a batch with numbered words.

    Examples
    --------
    >>> batch = read_batch([b"Subject: hello\n\nDear all", b"Subject: hello\n\nDear Ann"])
    >>> b"\0ann\0" in batch.words, batch.lengths.tolist()
    (True, [12, 12])
    """
    ids = list(map(message_tokens.content_id, raws))
    batch = _tokenize(raws)
    if batch is None:
        return batch_of(Message(*both) for both in zip(ids, map(message_tokens.tokens_of, raws), strict=True))
    tokens = np.frombuffer(batch.tokens(), np.int32)
    lengths = np.frombuffer(batch.lengths(), np.int64)
    return Batch(ids, batch.words(), tokens, lengths)


def classify_batch(store: Store, raws: Sequence[bytes], thresholds: Thresholds) -> list[Verdict]:
    """Return the verdict on each mail: `verdicts.classify_mail`, with one look-up of the words of all mails."""
    batch = _tokenize(raws)
    if batch is None:
        return [classify_mail(store, raw, thresholds) for raw in raws]
    tokens = np.frombuffer(batch.tokens(), np.int32)
    sizes = np.frombuffer(batch.lengths(), np.int64)
    words = words_from_bytes(batch.words())
    state, pairs = store.look_up(words)
    totals = totals_of(state)
    calibration = calibration_of(state)
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
        scores_by_kind = by_kind(rows, kinds[tokens], weights[tokens], len(raws))
        log_odds += calibration.intercept + scores_by_kind @ np.array(calibration.slopes)
    n_known = np.bincount(rows, seen[tokens], len(raws)).astype(int).tolist()
    scores = [SpamScore(odds, logistic(odds), [], learned) for odds in log_odds.tolist()]
    return [verdict_of(score, n, thresholds) for score, n in zip(scores, n_known, strict=True)]


def _tokenize(raws: Sequence[bytes]) -> MailBatch | None:
    """Return the tokens of mails by the kernel; None for few mails or without compiled kernels."""
    batch = empty_batch() if len(raws) > _FEW else None
    if batch is not None:
        for raw in raws:
            if not batch.add(raw):
                batch.add_tokens(storable(message_tokens.tokens_of(raw)))
    return batch


def empty_batch() -> MailBatch | None:
    """Return an empty batch of the kernel, or None if it is not compiled."""
    from tallybayes.apps.spam.tokens.token_kernel import mail_batch

    return mail_batch(REFERENCE)
