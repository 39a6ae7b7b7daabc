"""How likely a mail is spam: naive Bayes over the distinct words of a mail, from counts of messages, tempered.

The words of a class are a multinomial (`tb.Multinomial` on a matrix of presence) with a prior that adds `ADDED` to each
count; a word's weight is its log odds. Words are no independent witnesses: so many of one kind (text, subject, …) weigh
together no more than `WITNESSES` times their mean. Each kind has a slope, and there is an intercept (`SpamCalibration`,
learned by `calibrate`). Standard library alone: a mail is judged without waiting for imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log
from typing import NamedTuple

PSEUDO_COUNT = 0.1  # to each count of a word in a class
MAX_EFFECTIVE_WORDS = 4  # independent words, as which words without number count
TOKEN_KINDS = ("text", "subject", "link", "style", "sign", "address", "route", "header")
_KIND_OF = {"subject": 1, "link": 2, "image": 2, "style": 3, "upper": 4, "shape": 4, "hidden": 4, "bytes": 4}
_KIND_OF |= {"from": 5, "to": 5, "received": 6}
_OTHER = 7


class SpamTotals(NamedTuple):
    """What is counted besides words: messages, the sum over words of the messages that have them, and words."""

    ham: int
    spam: int
    ham_words: int
    spam_words: int
    words: int


class SpamCalibration(NamedTuple):
    """The few numbers that make log odds honest: an intercept, and a slope for each of `KINDS`."""

    intercept: float
    slopes: tuple[float, ...]


class Judgment(NamedTuple):
    """Log odds that a mail is spam, as a probability, and what each of its tokens contributes to them."""

    log_odds: float
    probability: float
    weights: list[float]
    learned: bool  # of both classes: else nothing is known but their shares


class Thresholds(NamedTuple):
    """A mail is ham up to the first probability, spam from the second on, and between them it is not sure.

    Those that stand here cost least where a ham called spam is worth 200 mails to look at, and a spam called ham 10.
    """

    ham: float = 0.1
    spam: float = 0.995


def thresholds_of_costs(false_positive: float, false_negative: float, unsure: float) -> Thresholds:
    """Where each verdict costs least: a ham called spam, a spam called ham, and either called unsure.

    Examples
    --------
    >>> thresholds_of_costs(10.0, 1.0, 0.5)
    Thresholds(ham=0.5, spam=0.95)
    """
    ham, spam = unsure / false_negative, 1 - unsure / false_positive
    if ham > spam:  # to be unsure never costs least
        ham = spam = false_positive / (false_positive + false_negative)
    return Thresholds(min(ham, 1.0), max(spam, 0.0))


def decide(judgment: Judgment, thresholds: Thresholds) -> str:
    """Say "ham", "spam" or "unsure".

    Examples
    --------
    >>> decide(Judgment(7.0, 0.999, [], True), Thresholds())
    'spam'
    """
    if judgment.learned and judgment.probability >= thresholds.spam:
        return "spam"
    if judgment.learned and judgment.probability <= thresholds.ham:
        return "ham"
    return "unsure"


UNCALIBRATED = SpamCalibration(0.0, (1.0, *(0.3,) * (len(TOKEN_KINDS) - 1)))


def kind_of(token: str) -> int:
    """Which of `KINDS` a token is.

    Examples
    --------
    >>> TOKEN_KINDS[kind_of("win")], TOKEN_KINDS[kind_of("subject:win")], TOKEN_KINDS[kind_of("received:example.com")]
    ('text', 'subject', 'route')
    """
    prefix, colon, _ = token.partition(":")
    return _KIND_OF.get(prefix, _OTHER) if colon else 0


def kinds_of(tokens: Iterable[str]) -> list[int]:
    """The kinds of many tokens, quickly: it is their start alone that says it."""
    starts = [token[: token.find(":") + 1] for token in tokens]
    kinds = {start: kind_of(start) for start in set(starts)}
    return [kinds[start] for start in starts]


def judge(
    tokens: Sequence[str], ham: Sequence[int], spam: Sequence[int], totals: SpamTotals, calibration: SpamCalibration
) -> Judgment:
    """The probability that a mail is spam.

    Parameters
    ----------
    tokens : sequence of str
        The distinct tokens of a mail.
    ham, spam : sequences of int
        For each, how many messages of either class have it; (0, 0) if it is new.
    totals : Totals
        Of the counts.
    calibration : Calibration
        As `calibrate` found it.

    Returns
    -------
    judgment : Judgment
        While one of the classes has no message: what share of them is spam, whatever the words.

    Examples
    --------
    >>> found = judge(["win", "meeting"], [1, 8], [9, 1], SpamTotals(10, 10, 100, 120, 60), UNCALIBRATED)
    >>> round(found.probability, 2), [round(weight, 2) for weight in found.weights]
    (0.45, [1.55, -1.74])
    """
    prior = log_prior(totals)
    weights = [0.0] * len(tokens)
    if not totals.ham or not totals.spam:
        return Judgment(prior, logistic(prior), weights, False)
    base = log_base(totals)
    kinds = kinds_of(tokens)
    factors = [
        slope * MAX_EFFECTIVE_WORDS / (kinds.count(kind) + MAX_EFFECTIVE_WORDS - 1)
        for kind, slope in enumerate(calibration.slopes)
    ]
    for place, (n_ham, n_spam) in enumerate(zip(ham, spam, strict=True)):
        if n_ham or n_spam:
            weights[place] = factors[kinds[place]] * (base + log((n_spam + PSEUDO_COUNT) / (n_ham + PSEUDO_COUNT)))
    log_odds = calibration.intercept + prior + sum(weights)
    return Judgment(log_odds, logistic(log_odds), weights, True)


def log_prior(totals: SpamTotals) -> float:
    """Log odds of any mail, before a word of it is read."""
    return log((totals.spam + 1) / (totals.ham + 1))


def log_base(totals: SpamTotals) -> float:
    """Log odds of any word, before it is known which."""
    added = PSEUDO_COUNT * totals.words
    return log((totals.ham_words + added) / (totals.spam_words + added))


def logistic(log_odds: float) -> float:
    """Log odds as a probability, without overflow."""
    if log_odds < 0:
        part = exp(log_odds)
        return part / (1 + part)
    return 1 / (1 + exp(-log_odds))
