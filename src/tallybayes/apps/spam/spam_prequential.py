"""A filter that starts from nothing: every mail is judged, then learned, in the order in which they were written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import NamedTuple

import numpy as np

from tallybayes.apps.spam.spam_calibration import CalibrationMessages, calibrate
from tallybayes.apps.spam.spam_score import UNCALIBRATED, SpamTotals, Thresholds, decide, judge, kind_of
from tallybayes.apps.spam.tokens.message_tokens import mails_in, tokens_of
from tallybayes.apps.spam.train import CALIBRATED, GROWN
from tallybayes.apps.spam.unpacking import NotMailError
from tallybayes.apps.spam.verdicts import Verdict

_DATE = re.compile(rb"^date:[ \t]*([^\r\n]{1,100})", re.IGNORECASE | re.MULTILINE)


class Judged(NamedTuple):
    """A mail that was judged before it was learned."""

    is_spam: bool
    verdict: Verdict


class Counter:
    """Counts of words in memory, and the messages they are of."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.kinds: list[int] = []
        self.counts: list[list[int]] = [[], []]  # of ham, of spam, by word
        self.messages: list[tuple[bool, list[int]]] = []
        self.n, self.sizes = [0, 0], [0, 0]
        self.calibration, self._calibrated = UNCALIBRATED, 0

    def judge(self, tokens: list[str], thresholds: Thresholds) -> Verdict:
        """What a mail is taken for."""
        places = [self.numbers.get(token, -1) for token in tokens]
        ham, spam = ([part[place] if place >= 0 else 0 for place in places] for part in self.counts)
        (n_ham, n_spam), (of_ham, of_spam) = self.n, self.sizes
        found = judge(tokens, ham, spam, SpamTotals(n_ham, n_spam, of_ham, of_spam, len(self.kinds)), self.calibration)
        known = sum(place >= 0 for place in places)
        return Verdict(decide(found, thresholds), found.probability, found.log_odds, known)

    def learn(self, tokens: list[str], *, is_spam: bool) -> None:
        """Count a mail."""
        places = []
        for token in tokens:
            if token not in self.numbers:
                self.numbers[token] = len(self.kinds)
                self.kinds.append(kind_of(token))
                for part in self.counts:
                    part.append(0)
            places.append(self.numbers[token])
            self.counts[is_spam][places[-1]] += 1
        self.messages.append((is_spam, places))
        self.n[is_spam] += 1
        self.sizes[is_spam] += len(places)
        if len(self.messages) >= max(GROWN * self._calibrated, 10):
            self._calibrated, self.calibration = len(self.messages), calibrate(self.kept())

    def kept(self) -> CalibrationMessages:
        """The messages as numbers, some of very many, with the counts of all."""
        some = self.messages[:: max(1, -(-len(self.messages) // CALIBRATED))]
        ids = [np.array(places, np.int64) for _, places in some]
        return CalibrationMessages(
            np.concatenate([[0], np.cumsum([len(part) for part in ids])]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int64), *ids]),
            np.array([is_spam for is_spam, _ in some]),
            np.array(self.kinds, np.int64),
            *(np.array(part, np.int64) for part in self.counts),
        )


def judged_then_learned(
    parts: Mapping[str, Iterable[str]],
    thresholds: Thresholds,
    counter: Counter | None = None,
    skipped: list[NotMailError] | None = None,
) -> Iterator[Judged]:
    """Every mail of some files and folders: what it was taken for before it was learned.

    Parameters
    ----------
    parts : mapping from "ham" and "spam" to paths
    thresholds : Thresholds
    counter : Counter, optional
        What has been learned so far: nothing, if left out.
    skipped : list, optional
        Receives an error for every file of a folder that is not mail.
    """
    mails = [
        (written(raw), label == "spam", tokens_of(raw))
        for label, paths in parts.items()
        for _, raw in mails_in(paths, skipped)
    ]
    counter = Counter() if counter is None else counter
    for _, is_spam, tokens in sorted(mails, key=lambda mail: mail[0]):
        yield Judged(is_spam, counter.judge(tokens, thresholds))
        counter.learn(tokens, is_spam=is_spam)


def written(raw: bytes) -> float:
    """When a mail says it was written; the beginning of time if it does not say."""
    found = _DATE.search(raw[:20_000])
    parsed = parsedate_tz(found[1].decode("latin-1")) if found else None
    try:
        return float(mktime_tz(parsed)) if parsed else 0.0
    except (ValueError, OverflowError):
        return 0.0


def curve_of(judged: list[Judged]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of mails that were learned, and the error and the log-loss of those judged since the number before."""
    is_spam = np.array([one.is_spam for one in judged])
    scores = np.array([one.verdict.log_odds for one in judged])
    wrong = (scores > 0) != is_spam
    loss = np.logaddexp(0.0, np.where(is_spam, -scores, scores))
    round_ones = [n for k in range(1, 7) for n in (10**k, 2 * 10**k, 5 * 10**k) if 1.4 * n < len(judged)]
    ends = np.array([*round_ones, len(judged)])
    starts = np.concatenate([[0], ends[:-1]])
    error, log_loss = (
        np.array([part[a:b].mean() for a, b in zip(starts, ends, strict=True)]) for part in (wrong, loss)
    )
    return ends, error, log_loss
