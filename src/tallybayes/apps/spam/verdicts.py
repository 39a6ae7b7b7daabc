"""Verdicts on mails by the counts of a store. This module is imported for every mail, so that it has few imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tallybayes.apps.spam.spam_score import (
    TOKEN_KINDS,
    UNCALIBRATED,
    SpamCalibration,
    SpamScore,
    SpamTotals,
    Thresholds,
    decide,
    score_tokens,
)
from tallybayes.apps.spam.store.backends import StoreError
from tallybayes.apps.spam.store.spam_store import State, Store
from tallybayes.apps.spam.tokens.message_tokens import mails_in, tokens_of
from tallybayes.apps.spam.unpacking import NotMailError

CODES = {"ham": 0, "spam": 1, "unsure": 2}


class WordEvidence(NamedTuple):
    """Weight of evidence of one word, and its numbers of ham and spam messages."""

    word: str
    weight: float
    ham: int
    spam: int


class Verdict(NamedTuple):
    """Verdict on a mail."""

    verdict: str
    probability: float
    log_odds: float
    words: int  # number of known words


def calibration_of(state: State) -> SpamCalibration:
    """Return the calibration of a store; the default before the first one."""
    if not state.calibration:
        return UNCALIBRATED
    intercept, *slopes = map(float, state.calibration.split())
    if len(slopes) != len(TOKEN_KINDS):
        raise StoreError(
            f"the calibration of the store has {1 + len(slopes)} coefficients; expected {1 + len(TOKEN_KINDS)}.\n"
            "    Run 'tally spam expire' to recalibrate."
        )
    return SpamCalibration(intercept, tuple(slopes))


def calibration_to_text(calibration: SpamCalibration) -> str:
    """Return a calibration as the text that a store contains."""
    return " ".join(map(repr, (calibration.intercept, *calibration.slopes)))


def classify_mail(store: Store, raw: bytes, thresholds: Thresholds) -> Verdict:
    """Return the verdict on a mail."""
    pairs, score = _score_mail(store, tokens_of(raw))
    return verdict_of(score, len(pairs) - pairs.count((0, 0)), thresholds)


def verdict_of(score: SpamScore, words: int, thresholds: Thresholds) -> Verdict:
    """Return the verdict of a score; `words` is the number of known words of the mail."""
    return Verdict(decide(score, thresholds), score.probability, score.log_odds, words)


def totals_of(state: State) -> SpamTotals:
    """Return the totals of the counts of a store."""
    return SpamTotals(state.ham, state.spam, state.ham_words, state.spam_words, state.words)


def evidence_of(store: Store, raw: bytes) -> tuple[float, list[WordEvidence]]:
    """Return the log-odds without any word, and the weights of the known words by absolute value."""
    tokens = tokens_of(raw)
    pairs, score = _score_mail(store, tokens)
    rows = zip(tokens, score.weights, pairs, strict=True)
    evidence = [WordEvidence(token, weight, *pair) for token, weight, pair in rows if pair != (0, 0)]
    evidence.sort(key=lambda word: -abs(word.weight))
    return score.log_odds - sum(score.weights), evidence


def _score_mail(store: Store, tokens: list[str]) -> tuple[list[tuple[int, int]], SpamScore]:
    """Return the counts of the tokens in both classes, and the score of the mail."""
    state, pairs = store.look_up(tokens)
    ham, spam = zip(*pairs, strict=True) if pairs else ((), ())
    return pairs, score_tokens(tokens, ham, spam, totals_of(state), calibration_of(state))


def mails_or_errors(
    paths: Iterable[str], skipped: list[NotMailError] | None = None
) -> Iterator[tuple[str, bytes | OSError]]:
    """Yield the name and content of each mail; for a path that cannot be read, its error."""
    for path in paths:
        try:
            yield from mails_in([path], skipped)
        except OSError as error:
            yield path, error
