"""Honest probabilities: a calibration learned from what each kept message scores without its own counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tallybayes.apps.spam.score import ADDED, KINDS, UNCALIBRATED, Calibration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Messages(NamedTuple):
    """All kept messages as numbers: the ids of message i are ``ids[starts[i]:starts[i + 1]]``.

    `kinds` says of each id which of `score.KINDS` it is; `ham` and `spam`, how many messages of either class have it.
    """

    starts: NDArray[np.int64]
    ids: NDArray[np.int64]
    is_spam: NDArray[np.bool_]
    kinds: NDArray[np.int64]
    ham: NDArray[np.int64]
    spam: NDArray[np.int64]


def left_out(messages: Messages) -> NDArray[np.float64]:
    """What each message scores without its own counts, for each kind: the columns that the slopes multiply."""
    import numpy as np

    n_spam = int(messages.is_spam.sum())
    n_ham = len(messages.is_spam) - n_spam
    n_words = int(((messages.ham + messages.spam) > 0).sum())
    rows = np.repeat(np.arange(len(messages.is_spam)), np.diff(messages.starts))
    own = messages.is_spam[rows]
    ham = messages.ham[messages.ids] - ~own
    spam = messages.spam[messages.ids] - own
    sizes = np.diff(messages.starts)
    total_ham = int(messages.ham.sum()) - np.where(messages.is_spam, 0, sizes)
    total_spam = int(messages.spam.sum()) - np.where(messages.is_spam, sizes, 0)
    base = np.log((total_ham + ADDED * n_words) / (total_spam + ADDED * n_words))
    known = ham + spam > 0
    weights = np.where(known, base[rows] + np.log((spam + ADDED) / (ham + ADDED)), 0.0)
    cells = rows * len(KINDS) + messages.kinds[messages.ids]
    shape = (len(sizes), len(KINDS))
    sums = np.bincount(cells, weights, minlength=shape[0] * shape[1]).reshape(shape)
    numbers = np.bincount(cells, known, minlength=shape[0] * shape[1]).reshape(shape)
    del n_ham
    return sums / np.sqrt(numbers + 1)


def calibrate(messages: Messages) -> Calibration:
    """The calibration under which the left out scores of the kept messages are most likely.

    Examples
    --------
    >>> import numpy as np
    >>> starts, ids = np.arange(0, 41, 2), np.tile([0, 1, 2, 3], 10)
    >>> is_spam = np.arange(20) % 2 == 1
    >>> counts = np.array([10, 10, 0, 0])
    >>> found = calibrate(Messages(starts, ids, is_spam, np.zeros(4, np.int64), counts, counts[::-1]))
    >>> found.slopes[0] > 0
    True
    """
    import numpy as np

    n_spam = int(messages.is_spam.sum())
    n_ham = len(messages.is_spam) - n_spam
    if not n_ham or not n_spam:
        return UNCALIBRATED
    scores = left_out(messages)
    columns = np.column_stack([np.ones(len(scores)), scores])
    offset = np.log((n_spam + 0.5) / (n_ham + 0.5))
    start = np.array([UNCALIBRATED.intercept, *UNCALIBRATED.slopes])
    found = _logistic_regression(columns, messages.is_spam, offset, start)
    return Calibration(float(found[0]), tuple(map(float, found[1:])))


def _logistic_regression(
    columns: NDArray[np.float64], is_spam: NDArray[np.bool_], offset: float, start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Newton's steps to the most likely coefficients, under a Gaussian belief around where they start."""
    import numpy as np

    sign = np.where(is_spam, -1.0, 1.0)

    def cost(point: NDArray[np.float64]) -> float:
        return float(np.logaddexp(0.0, sign * (offset + columns @ point)).sum() + ((point - start) ** 2).sum() / 2)

    point, now = start, cost(start)
    for _ in range(100):
        share = 1 / (1 + np.exp(-np.clip(offset + columns @ point, -500, 500)))
        slope = columns.T @ (share - is_spam) + (point - start)
        curve = (columns * (share * (1 - share))[:, None]).T @ columns + np.eye(len(point))
        step, size = np.linalg.solve(curve, slope), 1.0
        while (then := cost(point - size * step)) > now and size > 1e-9:
            size /= 2
        if then >= now - 1e-10:
            break
        point, now = point - size * step, then
    return point
