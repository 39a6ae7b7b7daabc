"""Probability of spam: calibrated naive Bayes over the distinct tokens of a mail.

The tokens of a class have a multinomial distribution (`tb.Multinomial` on a matrix of presence) with additive
smoothing by `PSEUDO_COUNT`; the weight of a token is its log-odds. Tokens are not independent: any number of tokens of
one kind (text, subject, …) weighs at most `MAX_EFFECTIVE_WORDS` times their mean. Calibration adds an intercept and a
slope for each kind (`SpamCalibration`, fitted by `calibrate`). This module uses the standard library only, so that a
mail is classified without slow imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log
from typing import NamedTuple

PSEUDO_COUNT = 0.1  # added to the count of each word in each class
MAX_EFFECTIVE_WORDS = 4  # effective number of independent words of one kind
TOKEN_KINDS = ("text", "subject", "link", "style", "sign", "address", "route", "header")
_KIND_OF = {"subject": 1, "link": 2, "image": 2, "style": 3, "upper": 4, "shape": 4, "hidden": 4, "bytes": 4}
_KIND_OF |= {"from": 5, "to": 5, "received": 6}
_OTHER = 7


class SpamTotals(NamedTuple):
    """Totals of the counts: messages of each class, sums over words of their messages, and distinct words."""

    ham: int
    spam: int
    ham_words: int
    spam_words: int
    words: int


class SpamCalibration(NamedTuple):
    """Calibration of the log-odds: an intercept, and a slope for each of `TOKEN_KINDS`."""

    intercept: float
    slopes: tuple[float, ...]


class SpamScore(NamedTuple):
    """Log-odds of spam, its probability, and the contribution of each token to the log-odds."""

    log_odds: float
    probability: float
    weights: list[float]
    learned: bool  # whether both classes have messages


class Thresholds(NamedTuple):
    """Thresholds of the probability of spam: ham up to the first, spam from the second, unsure between them.

    The defaults minimize the expected cost if a false positive costs 200 and a false negative 10 unsure verdicts.
    """

    ham: float = 0.1
    spam: float = 0.995


def thresholds_of_costs(false_positive: float, false_negative: float, unsure: float) -> Thresholds:
    """Return the thresholds of minimum expected cost: of a false positive, a false negative and an unsure verdict.

    Examples
    --------
    >>> thresholds_of_costs(10.0, 1.0, 0.5)
    Thresholds(ham=0.5, spam=0.95)
    """
    ham = unsure / false_negative
    spam = 1 - unsure / false_positive
    if ham > spam:  # an unsure verdict is never optimal
        ham = spam = false_positive / (false_positive + false_negative)
    return Thresholds(min(ham, 1.0), max(spam, 0.0))


def decide(score: SpamScore, thresholds: Thresholds) -> str:
    """Return the verdict "ham", "spam" or "unsure".

    Examples
    --------
    >>> decide(SpamScore(7.0, 0.999, [], True), Thresholds())
    'spam'
    """
    if score.learned and score.probability >= thresholds.spam:
        return "spam"
    if score.learned and score.probability <= thresholds.ham:
        return "ham"
    return "unsure"


UNCALIBRATED = SpamCalibration(0.0, (1.0, *(0.3,) * (len(TOKEN_KINDS) - 1)))


def kind_of(token: str) -> int:
    """Return the index in `TOKEN_KINDS` of the kind of a token.

    Examples
    --------
    >>> TOKEN_KINDS[kind_of("win")], TOKEN_KINDS[kind_of("subject:win")], TOKEN_KINDS[kind_of("received:example.com")]
    ('text', 'subject', 'route')
    """
    prefix, colon, _ = token.partition(":")
    return _KIND_OF.get(prefix, _OTHER) if colon else 0


def kinds_of(tokens: Iterable[str]) -> list[int]:
    """Return the kinds of many tokens: only their prefixes are looked up."""
    prefixes = [token[: token.find(":") + 1] for token in tokens]
    kinds = {prefix: kind_of(prefix) for prefix in set(prefixes)}
    return [kinds[prefix] for prefix in prefixes]


def score_tokens(
    tokens: Sequence[str], ham: Sequence[int], spam: Sequence[int], totals: SpamTotals, calibration: SpamCalibration
) -> SpamScore:
    """Return the log-odds of spam given the tokens of a mail.

    Parameters
    ----------
    tokens : sequence of str
        The distinct tokens of a mail.
    ham, spam : sequences of int
        Number of messages of each class with each token; 0 and 0 for an unseen token.
    totals : SpamTotals
        Totals of the counts.
    calibration : SpamCalibration
        Result of `calibrate`.

    Returns
    -------
    score : SpamScore
        If one of the classes has no message, the log-odds are those of the class prior.

    Examples
    --------
    >>> score = score_tokens(["win", "meeting"], [1, 8], [9, 1], SpamTotals(10, 10, 100, 120, 60), UNCALIBRATED)
    >>> round(score.probability, 2), [round(weight, 2) for weight in score.weights]
    (0.45, [1.55, -1.74])
    """
    prior = log_prior(totals)
    weights = [0.0] * len(tokens)
    if not totals.ham or not totals.spam:
        return SpamScore(prior, logistic(prior), weights, False)
    base = log_base(totals)
    kinds = kinds_of(tokens)
    factors = [
        slope * MAX_EFFECTIVE_WORDS / (kinds.count(kind) + MAX_EFFECTIVE_WORDS - 1)
        for kind, slope in enumerate(calibration.slopes)
    ]
    for position, (n_ham, n_spam) in enumerate(zip(ham, spam, strict=True)):
        if n_ham or n_spam:
            weights[position] = factors[kinds[position]] * (
                base + log((n_spam + PSEUDO_COUNT) / (n_ham + PSEUDO_COUNT))
            )
    log_odds = calibration.intercept + prior + sum(weights)
    return SpamScore(log_odds, logistic(log_odds), weights, True)


def log_prior(totals: SpamTotals) -> float:
    """Return the log-odds of the class prior."""
    return log((totals.spam + 1) / (totals.ham + 1))


def log_base(totals: SpamTotals) -> float:
    """Return the term of a word weight that is the same for all words: the log ratio of the class totals."""
    added = PSEUDO_COUNT * totals.words
    return log((totals.ham_words + added) / (totals.spam_words + added))


def logistic(log_odds: float) -> float:
    """Return the probability of some log-odds without overflow."""
    if log_odds < 0:
        odds = exp(log_odds)
        return odds / (1 + odds)
    return 1 / (1 + exp(-log_odds))
