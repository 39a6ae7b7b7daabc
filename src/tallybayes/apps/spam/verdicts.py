"""Verdicts: mails, what a store has counted of their words, and what follows. Light: it is loaded for every mail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tallybayes.apps.spam.spam_score import (
    TOKEN_KINDS,
    UNCALIBRATED,
    Judgment,
    SpamCalibration,
    SpamTotals,
    Thresholds,
    decide,
    judge,
)
from tallybayes.apps.spam.store.backends import StoreError
from tallybayes.apps.spam.store.spam_store import State, Store
from tallybayes.apps.spam.tokens.message_tokens import mails_in, tokens_of
from tallybayes.apps.spam.unpacking import NotMailError

CODES = {"ham": 0, "spam": 1, "unsure": 2}


class WordEvidence(NamedTuple):
    """What one word of a mail says: its weight, and how many ham and spam messages have it."""

    word: str
    weight: float
    ham: int
    spam: int


class Verdict(NamedTuple):
    """What a mail is taken for."""

    verdict: str
    probability: float
    log_odds: float
    words: int  # that were seen before


def calibration_of(state: State) -> SpamCalibration:
    """Return the calibration that a store keeps; the default before the first one."""
    if not state.calibration:
        return UNCALIBRATED
    intercept, *slopes = map(float, state.calibration.split())
    if len(slopes) != len(TOKEN_KINDS):
        raise StoreError(
            f"the calibration of the store has {1 + len(slopes)} numbers; expected {1 + len(TOKEN_KINDS)}.\n"
            "    Calibrate again: tally spam expire."
        )
    return SpamCalibration(intercept, tuple(slopes))


def as_text(calibration: SpamCalibration) -> str:
    """A calibration as a store keeps it."""
    return " ".join(map(repr, (calibration.intercept, *calibration.slopes)))


def classify_mail(store: Store, raw: bytes, thresholds: Thresholds) -> Verdict:
    """What a mail is taken for."""
    pairs, found = _judgment(store, tokens_of(raw))
    return verdict_of(found, len(pairs) - pairs.count((0, 0)), thresholds)


def verdict_of(found: Judgment, words: int, thresholds: Thresholds) -> Verdict:
    """The verdict of a judgment, and how many of a mail's words were seen before."""
    return Verdict(decide(found, thresholds), found.probability, found.log_odds, words)


def totals_of(state: State) -> SpamTotals:
    """What is counted besides words."""
    return SpamTotals(state.ham, state.spam, state.ham_words, state.spam_words, state.words)


def evidence_of(store: Store, raw: bytes) -> tuple[float, list[WordEvidence]]:
    """What each word of a mail that was seen before says, the strongest first; and what is said before any word."""
    tokens = tokens_of(raw)
    pairs, found = _judgment(store, tokens)
    rows = zip(tokens, found.weights, pairs, strict=True)
    evidence = [WordEvidence(token, weight, *pair) for token, weight, pair in rows if pair != (0, 0)]
    evidence.sort(key=lambda one: -abs(one.weight))
    return found.log_odds - sum(found.weights), evidence


def _judgment(store: Store, tokens: list[str]) -> tuple[list[tuple[int, int]], Judgment]:
    state, pairs = store.look_up(tokens)
    ham, spam = zip(*pairs, strict=True) if pairs else ((), ())
    return pairs, judge(tokens, ham, spam, totals_of(state), calibration_of(state))


def mails_or_reasons(
    paths: Iterable[str], skipped: list[NotMailError] | None = None
) -> Iterator[tuple[str, bytes | OSError]]:
    """Names and mails of all paths; of a path that cannot be read, why, and the others still come."""
    for path in paths:
        try:
            yield from mails_in([path], skipped)
        except OSError as error:
            yield path, error
