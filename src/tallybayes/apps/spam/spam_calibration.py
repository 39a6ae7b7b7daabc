"""Calibration of the log-odds, fitted to the leave-one-out scores of the stored messages."""

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

_AT_ONCE = 1000  # messages per batch, to limit memory
_PRIOR_PRECISION = (1.0, *(5.0,) * len(TOKEN_KINDS))  # of the intercept and the slopes


class CalibrationMessages(NamedTuple):
    """Stored messages as arrays: the word ids of message i are ``ids[starts[i]:starts[i + 1]]``.

    `kinds` has the index in `spam_score.TOKEN_KINDS` of each word; `ham` and `spam` have its numbers of messages.
    """

    starts: NDArray[np.int64]
    ids: NDArray[np.int64]
    is_spam: NDArray[np.bool_]
    kinds: NDArray[np.int64]
    ham: NDArray[np.int64]
    spam: NDArray[np.int64]


def leave_one_out_scores(messages: CalibrationMessages) -> NDArray[np.float64]:
    """Return the scores of each message without its own counts, shape (n_messages, n_kinds), without slopes."""
    import numpy as np

    words = int(((messages.ham + messages.spam) > 0).sum())
    totals = int(messages.ham.sum()), int(messages.spam.sum())
    scores = [np.zeros((0, len(TOKEN_KINDS)))]
    for first in range(0, len(messages.is_spam), _AT_ONCE):
        starts = messages.starts[first : first + _AT_ONCE + 1]
        is_spam = messages.is_spam[first : first + _AT_ONCE]
        ids = messages.ids[starts[0] : starts[-1]]
        sizes = np.diff(starts)
        rows = np.repeat(np.arange(len(is_spam)), sizes)
        ham = messages.ham[ids] - ~is_spam[rows]
        spam = messages.spam[ids] - is_spam[rows]
        all_ham = totals[0] - sizes * ~is_spam
        all_spam = totals[1] - sizes * is_spam
        base = np.log((all_ham + PSEUDO_COUNT * words) / (all_spam + PSEUDO_COUNT * words))
        weights = np.where(ham + spam > 0, base[rows] + np.log((spam + PSEUDO_COUNT) / (ham + PSEUDO_COUNT)), 0.0)
        scores.append(by_kind(rows, messages.kinds[ids], weights, len(is_spam)))
    return np.concatenate(scores)


def by_kind(
    rows: NDArray[np.int64], kinds: NDArray[np.int64], weights: NDArray[np.float64], n_rows: int
) -> NDArray[np.float64]:
    """Return the sum of the word weights of each message by kind of token, shape (n_rows, n_kinds), without slopes."""
    import numpy as np

    cells = rows * len(TOKEN_KINDS) + kinds
    n_cells = n_rows * len(TOKEN_KINDS)
    sums = np.bincount(cells, weights, n_cells)
    n_words = np.bincount(cells, minlength=n_cells)
    scores: NDArray[np.float64] = sums * MAX_EFFECTIVE_WORDS / (n_words + MAX_EFFECTIVE_WORDS - 1)
    return scores.reshape(n_rows, len(TOKEN_KINDS))


def leave_one_out_log_odds(messages: CalibrationMessages, calibration: SpamCalibration) -> NDArray[np.float64]:
    """Return the log-odds of each stored message without its own counts, for the evaluation of a calibration."""
    import numpy as np

    n_spam = messages.is_spam.sum() - messages.is_spam
    n_ham = (~messages.is_spam).sum() - ~messages.is_spam
    prior = np.log((n_spam + 1) / (n_ham + 1))
    log_odds: NDArray[np.float64] = (
        calibration.intercept + prior + leave_one_out_scores(messages) @ np.array(calibration.slopes)
    )
    return log_odds


def calibrate(messages: CalibrationMessages) -> SpamCalibration:
    """Return the calibration that maximizes the posterior given the leave-one-out scores.

    Logistic regression on one column per kind of token, with a Gaussian prior around `UNCALIBRATED`. The prior
    regularizes separable data. Slopes are non-negative: a coefficient that becomes negative is fixed at 0.

    Examples
    --------
    >>> import numpy as np
    >>> starts, ids = np.arange(0, 41, 2), np.tile([0, 1, 2, 3], 10)
    >>> is_spam = np.arange(20) % 2 == 1
    >>> counts = np.array([10, 10, 0, 0])
    >>> calibration = calibrate(CalibrationMessages(starts, ids, is_spam, np.zeros(4, np.int64), counts, counts[::-1]))
    >>> calibration.slopes[0] > 0
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
        coefficients = _map_coefficients(columns, messages.is_spam, offset, free)
        if not (negative := coefficients[1:] < 0).any():
            return SpamCalibration(float(coefficients[0]), tuple(map(float, coefficients[1:])))
        free[1:] &= ~negative


def _map_coefficients(
    columns: NDArray[np.float64], is_spam: NDArray[np.bool_], offset: float, free: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the MAP coefficients by Newton's method with step halving; those that are not free are 0."""
    import numpy as np

    prior_mean = np.where(free, [UNCALIBRATED.intercept, *UNCALIBRATED.slopes], 0.0)
    precision = np.array(_PRIOR_PRECISION)
    sign = np.where(is_spam, -1.0, 1.0)

    def penalized_loss(coefficients: NDArray[np.float64]) -> float:
        log_loss = np.logaddexp(0.0, sign * (offset + columns @ coefficients)).sum()
        return float(log_loss + (precision * (coefficients - prior_mean) ** 2).sum() / 2)

    coefficients = prior_mean
    objective = penalized_loss(prior_mean)
    for _ in range(100):
        probability = 1 / (1 + np.exp(-np.clip(offset + columns @ coefficients, -500, 500)))
        gradient = columns.T @ (probability - is_spam) + precision * (coefficients - prior_mean)
        hessian = (columns * (probability * (1 - probability))[:, None]).T @ columns + np.diag(precision)
        step = np.zeros(len(coefficients))
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        step_size = 1.0
        while (new_objective := penalized_loss(coefficients - step_size * step)) > objective and step_size > 1e-9:
            step_size /= 2
        if new_objective > objective - 1e-9:
            break
        coefficients = coefficients - step_size * step
        objective = new_objective
    return coefficients
