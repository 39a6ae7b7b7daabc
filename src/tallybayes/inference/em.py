"""EM: expected statistics of what is not observed, and the parameters that make them most probable, in turns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tallybayes.errors import EstimateError
from tallybayes.progress import progress

Parameters = TypeVar("Parameters")
Expected = TypeVar("Expected")


class Climb(NamedTuple):
    """How EM ended.

    Attributes
    ----------
    expected : the expected statistics, under the last parameters
    parameters : the last parameters
    history : list of float
        The objective after every step, in nats.
    converged : bool
    """

    expected: Any
    parameters: Any
    history: list[float]
    converged: bool


def climb(
    start: Expected,
    maximise: Callable[[Expected], tuple[Parameters, float]],
    expect: Callable[[Parameters], tuple[Expected, float]],
    *,
    n_iter: int,
    tol: float,
    what: str = "EM",
) -> Climb:
    """Take turns until the objective hardly rises.

    Parameters
    ----------
    start : expected statistics to begin with
    maximise : callable
        From statistics to the parameters that make them most probable, and the log prior of these (0 without a prior).
    expect : callable
        From parameters to the statistics they expect, and the log likelihood of what was observed.
    n_iter : int
        The most steps to take.
    tol : float
        It has converged when a step raises the objective by less than this.
    what : str
        The name of the work, for the progress line.

    Returns
    -------
    Climb

    Examples
    --------
    A coin was tossed five times; two tosses were not seen, the others were heads, heads, tails. Under maximum
    likelihood the unseen ones change nothing, and EM finds 2/3 from any start:

    >>> from math import log
    >>> from tallybayes.inference.em import climb
    >>> done = climb(1.0, lambda heads: (heads / 5, 0.0),
    ...              lambda p: (2 + 2 * p, 2 * log(p) + log(1 - p)), n_iter=100, tol=1e-12)
    >>> round(done.parameters, 5), done.converged
    (0.66667, True)
    """
    if n_iter < 1:
        raise EstimateError(f"n_iter is {n_iter!r}; expected at least 1 step.")
    expected, history = start, list[float]()
    parameters: Any = None
    for _ in progress(range(n_iter), what):
        parameters, log_prior = maximise(expected)
        expected, log_likelihood = expect(parameters)
        history.append(log_likelihood + log_prior)
        gain = history[-1] - history[-2] if len(history) > 1 else math.inf
        if gain < tol:
            return Climb(expected, parameters, history, True)
    return Climb(expected, parameters, history, False)
