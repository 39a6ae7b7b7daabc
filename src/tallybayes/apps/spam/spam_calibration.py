"""Honest probabilities: a calibration learned from what each kept message scores without its own counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tallybayes.apps.spam.spam_score import (
    MAX_EFFECTIVE_WORDS,
    PSEUDO_COUNT,
    TOKEN_KINDS,
    UNCALIBRATED,
    SpamCalibration,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AT_ONCE = 1000  # messages, so that memory does not grow with all of them
_PULL = (
    1.0,
    *(5.0,) * len(TOKEN_KINDS),
)  # of the belief around the calibration that all start from: one over its variance


class CalibrationMessages(NamedTuple):
    """All kept messages as numbers: the ids of message i are ``ids[starts[i]:starts[i + 1]]``.

    `kinds` says of each id which of `score.KINDS` it is; `ham` and `spam`, how many messages of either class have it.
    """

    starts: NDArray[np.int64]
    ids: NDArray[np.int64]
    is_spam: NDArray[np.bool_]
    kinds: NDArray[np.int64]
    ham: NDArray[np.int64]
    spam: NDArray[np.int64]


def leave_one_out_scores(messages: CalibrationMessages) -> NDArray[np.float64]:
    """What each message scores without its own counts, a column for each kind: what the slopes multiply."""
    import numpy as np

    words = int(((messages.ham + messages.spam) > 0).sum())
    totals = int(messages.ham.sum()), int(messages.spam.sum())
    found = [np.zeros((0, len(TOKEN_KINDS)))]
    for first in range(0, len(messages.is_spam), _AT_ONCE):
        starts = messages.starts[first : first + _AT_ONCE + 1]
        own = messages.is_spam[first : first + _AT_ONCE]
        ids, sizes = messages.ids[starts[0] : starts[-1]], np.diff(starts)
        rows = np.repeat(np.arange(len(own)), sizes)
        ham, spam = messages.ham[ids] - ~own[rows], messages.spam[ids] - own[rows]
        all_ham, all_spam = totals[0] - sizes * ~own, totals[1] - sizes * own
        base = np.log((all_ham + PSEUDO_COUNT * words) / (all_spam + PSEUDO_COUNT * words))
        weights = np.where(ham + spam > 0, base[rows] + np.log((spam + PSEUDO_COUNT) / (ham + PSEUDO_COUNT)), 0.0)
        found.append(by_kind(rows, messages.kinds[ids], weights, len(own)))
    return np.concatenate(found)


def by_kind(
    rows: NDArray[np.int64], kinds: NDArray[np.int64], weights: NDArray[np.float64], n_rows: int
) -> NDArray[np.float64]:
    """What the words of messages weigh together, a column for each kind, before its slope."""
    import numpy as np

    cells, n_cells = rows * len(TOKEN_KINDS) + kinds, n_rows * len(TOKEN_KINDS)
    sums, numbers = np.bincount(cells, weights, n_cells), np.bincount(cells, minlength=n_cells)
    together: NDArray[np.float64] = sums * MAX_EFFECTIVE_WORDS / (numbers + MAX_EFFECTIVE_WORDS - 1)
    return together.reshape(n_rows, len(TOKEN_KINDS))


def left_out_log_odds(messages: CalibrationMessages, calibration: SpamCalibration) -> NDArray[np.float64]:
    """The log odds of each kept message without its own counts: how well the filter does, before and after."""
    import numpy as np

    n_spam = messages.is_spam.sum() - messages.is_spam
    n_ham = (~messages.is_spam).sum() - ~messages.is_spam
    prior = np.log((n_spam + 1) / (n_ham + 1))
    found: NDArray[np.float64] = (
        calibration.intercept + prior + leave_one_out_scores(messages) @ np.array(calibration.slopes)
    )
    return found


def calibrate(messages: CalibrationMessages) -> SpamCalibration:
    """The calibration under which the left out scores of the kept messages are most likely.

    A logistic regression on a column for each kind of words. Its prior, around `score.UNCALIBRATED`, holds few messages
    back, which are easily told apart; slopes are never negative, so that a word of ham is never a sign of spam.

    Examples
    --------
    >>> import numpy as np
    >>> starts, ids = np.arange(0, 41, 2), np.tile([0, 1, 2, 3], 10)
    >>> is_spam = np.arange(20) % 2 == 1
    >>> counts = np.array([10, 10, 0, 0])
    >>> found = calibrate(CalibrationMessages(starts, ids, is_spam, np.zeros(4, np.int64), counts, counts[::-1]))
    >>> found.slopes[0] > 0
    True
    """
    import numpy as np

    n_spam = int(messages.is_spam.sum())
    n_ham = len(messages.is_spam) - n_spam
    if not n_ham or not n_spam:
        return UNCALIBRATED
    columns = np.column_stack([np.ones(len(messages.is_spam)), leave_one_out_scores(messages)])
    offset = float(np.log((n_spam + 1) / (n_ham + 1)))
    free = np.ones(1 + len(TOKEN_KINDS), bool)
    while True:
        found = _most_likely(columns, messages.is_spam, offset, free)
        if not (negative := found[1:] < 0).any():
            return SpamCalibration(float(found[0]), tuple(map(float, found[1:])))
        free[1:] &= ~negative


def _most_likely(
    columns: NDArray[np.float64], is_spam: NDArray[np.bool_], offset: float, free: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Newton's steps to the most likely coefficients, of which those that are not free are zero."""
    import numpy as np

    start = np.where(free, [UNCALIBRATED.intercept, *UNCALIBRATED.slopes], 0.0)
    pull, sign = np.array(_PULL), np.where(is_spam, -1.0, 1.0)

    def cost(point: NDArray[np.float64]) -> float:
        unlikely = np.logaddexp(0.0, sign * (offset + columns @ point)).sum()
        return float(unlikely + (pull * (point - start) ** 2).sum() / 2)

    point, now = start, cost(start)
    for _ in range(100):
        share = 1 / (1 + np.exp(-np.clip(offset + columns @ point, -500, 500)))
        slope = columns.T @ (share - is_spam) + pull * (point - start)
        curve = (columns * (share * (1 - share))[:, None]).T @ columns + np.diag(pull)
        step = np.zeros(len(point))
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        size = 1.0
        while (then := cost(point - size * step)) > now and size > 1e-9:
            size /= 2
        if then > now - 1e-9:
            break
        point, now = point - size * step, then
    return point
