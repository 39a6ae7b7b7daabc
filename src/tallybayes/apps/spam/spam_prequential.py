"""Prequential (test-then-train) evaluation of an empty filter: each mail is classified, then learned, by date."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import NamedTuple

import numpy as np

from tallybayes.apps.spam.spam_calibration import CalibrationMessages, calibrate
from tallybayes.apps.spam.spam_score import UNCALIBRATED, SpamTotals, Thresholds, decide, kind_of, score_tokens
from tallybayes.apps.spam.tokens.message_tokens import mails_in, tokens_of
from tallybayes.apps.spam.train import CALIBRATED, GROWN
from tallybayes.apps.spam.unpacking import NotMailError
from tallybayes.apps.spam.verdicts import Verdict

_DATE = re.compile(rb"^date:[ \t]*([^\r\n]{1,100})", re.IGNORECASE | re.MULTILINE)


class PrequentialResult(NamedTuple):
    """Verdict on a mail before it was learned."""

    is_spam: bool
    verdict: Verdict


class InMemoryFilter:
    """Word counts and messages in memory."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.kinds: list[int] = []
        self.counts: list[list[int]] = [[], []]  # of ham, of spam, by word
        self.messages: list[tuple[bool, list[int]]] = []
        self.n = [0, 0]  # messages by class
        self.sizes = [0, 0]  # tokens by class
        self.calibration = UNCALIBRATED
        self._calibrated = 0  # number of messages at the last calibration

    def classify(self, tokens: list[str], thresholds: Thresholds) -> Verdict:
        """Return the verdict on the tokens of a mail."""
        numbers = [self.numbers.get(token, -1) for token in tokens]
        ham, spam = ([class_counts[number] if number >= 0 else 0 for number in numbers] for class_counts in self.counts)
        (n_ham, n_spam), (of_ham, of_spam) = self.n, self.sizes
        score = score_tokens(
            tokens, ham, spam, SpamTotals(n_ham, n_spam, of_ham, of_spam, len(self.kinds)), self.calibration
        )
        known = sum(number >= 0 for number in numbers)
        return Verdict(decide(score, thresholds), score.probability, score.log_odds, known)

    def learn(self, tokens: list[str], *, is_spam: bool) -> None:
        """Count the tokens of a mail, and recalibrate if the number of messages has grown by a tenth."""
        numbers = []
        for token in tokens:
            if token not in self.numbers:
                self.numbers[token] = len(self.kinds)
                self.kinds.append(kind_of(token))
                for class_counts in self.counts:
                    class_counts.append(0)
            numbers.append(self.numbers[token])
            self.counts[is_spam][numbers[-1]] += 1
        self.messages.append((is_spam, numbers))
        self.n[is_spam] += 1
        self.sizes[is_spam] += len(numbers)
        if len(self.messages) >= max(GROWN * self._calibrated, 10):
            self._calibrated = len(self.messages)
            self.calibration = calibrate(self.kept())

    def kept(self) -> CalibrationMessages:
        """Return the messages as arrays, at most `CALIBRATED` of them, with the counts of all."""
        subset = self.messages[:: max(1, -(-len(self.messages) // CALIBRATED))]
        ids = [np.array(numbers, np.int64) for _, numbers in subset]
        return CalibrationMessages(
            np.concatenate([[0], np.cumsum([len(part) for part in ids])]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int64), *ids]),
            np.array([is_spam for is_spam, _ in subset]),
            np.array(self.kinds, np.int64),
            *(np.array(part, np.int64) for part in self.counts),
        )


def prequential_verdicts(
    paths: Mapping[str, Iterable[str]],
    thresholds: Thresholds,
    counter: InMemoryFilter | None = None,
    skipped: list[NotMailError] | None = None,
) -> Iterator[PrequentialResult]:
    """Yield the verdict on each mail of the files before it is learned, in order of date.

    Parameters
    ----------
    paths : mapping from "ham" and "spam" to paths
    thresholds : Thresholds
    counter : Counter, optional
        Filter to continue with; by default an empty one.
    skipped : list, optional
        List to which an error is appended for each file of a folder that is not mail.
    """
    mails = [
        (date_of(raw), label == "spam", tokens_of(raw))
        for label, files in paths.items()
        for _, raw in mails_in(files, skipped)
    ]
    counter = InMemoryFilter() if counter is None else counter
    for _, is_spam, tokens in sorted(mails, key=lambda mail: mail[0]):
        yield PrequentialResult(is_spam, counter.classify(tokens, thresholds))
        counter.learn(tokens, is_spam=is_spam)


def date_of(raw: bytes) -> float:
    """Return the date of a mail in seconds; 0.0 without a valid date."""
    match = _DATE.search(raw[:20_000])
    parsed = parsedate_tz(match[1].decode("latin-1")) if match else None
    try:
        return float(mktime_tz(parsed)) if parsed else 0.0
    except (ValueError, OverflowError):
        return 0.0


def learning_curve(results: list[PrequentialResult]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers of learned mails, and the error rate and log loss of the mails since the previous number."""
    is_spam = np.array([result.is_spam for result in results])
    scores = np.array([result.verdict.log_odds for result in results])
    wrong = (scores > 0) != is_spam
    loss = np.logaddexp(0.0, np.where(is_spam, -scores, scores))
    round_numbers = [n for k in range(1, 7) for n in (10**k, 2 * 10**k, 5 * 10**k) if 1.4 * n < len(results)]
    ends = np.array([*round_numbers, len(results)])
    starts = np.concatenate([[0], ends[:-1]])
    error, log_loss = (
        np.array([values[a:b].mean() for a, b in zip(starts, ends, strict=True)]) for values in (wrong, loss)
    )
    return ends, error, log_loss
