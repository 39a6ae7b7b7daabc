"""EM (Dempster, Laird and Rubin 1977): E-steps and M-steps in turn until convergence, and its restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tallybayes._utils.progress import progress
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.errors import EstimateError
from tallybayes.warnings import warn

Parameters = TypeVar("Parameters")
Expected = TypeVar("Expected")


class EMResult(NamedTuple):
    """The result of EM.

    Attributes
    ----------
    expected : expected statistics
        Computed under the last parameters.
    parameters : the last parameters
    history : list of float
        The objective after every iteration, in nats.
    converged : bool
    log_likelihood : float
        The log likelihood of the observed data under the last parameters.
    starts : tuple of lists of float
        The histories of all initializations; this result is the best of them.
    objectives : tuple of float
        The last objective of every initialization; NaN if it failed.
    """

    expected: Any
    parameters: Any
    history: list[float]
    converged: bool
    log_likelihood: float
    starts: tuple[list[float], ...] = ()
    objectives: tuple[float, ...] = ()


_NOT_SCALAR = ("history", "starts", "objectives")  # the fields of EMSummary that are not written as JSON


class EMSummary(NamedTuple):
    """A summary of EM, which a model keeps until its counts change."""

    history: list[float]  # the objective after every iteration, in nats
    objective: str
    converged: bool
    log_likelihood: float  # of the observed data, under the last parameters
    entropy: float = 0.0  # of the unobserved data given the observed; 0 if not computed
    starts: tuple[list[float], ...] = ()  # the histories of all initializations, for plots; files keep only the best
    objectives: tuple[float, ...] = ()  # the last objective of every initialization

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the scalar fields, and the history and objectives as arrays, for a file."""
        scalars = {name: value for name, value in self._asdict().items() if name not in _NOT_SCALAR}
        return {"em": scalars}, {"em/history": np.array(self.history), "em/objectives": np.array(self.objectives)}

    @classmethod
    def from_parts(cls, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> EMSummary | None:
        """Return the summary written by `to_parts`, or None if the file has none."""
        if "em" not in state:
            return None
        history, objectives = (np.ravel(arrays.pop(f"em/{name}")).tolist() for name in ("history", "objectives"))
        scalars = state.pop("em")
        summary = cls(history, **{name: scalars.pop(name) for name in cls._fields if name not in _NOT_SCALAR})
        check_no_unknown_entries("the file's EM summary", scalars)
        return summary._replace(
            objective=str(summary.objective),
            converged=bool(summary.converged),
            log_likelihood=float(summary.log_likelihood),
            entropy=float(summary.entropy),
            objectives=tuple(objectives),
        )


def run_em(
    start: Expected,
    maximize: Callable[[Expected], tuple[Parameters, float]],
    expect: Callable[[Parameters], tuple[Expected, float]],
    *,
    max_iter: int,
    tol: float,
    what: str = "EM",
) -> EMResult:
    """Run EM: alternate M-steps and E-steps until the objective converges.

    Parameters
    ----------
    start : initial expected statistics
    maximize : callable
        The M-step: returns the most probable parameters for expected statistics, and their log prior (0 without one).
    expect : callable
        The E-step: returns the expected statistics under parameters, and the log likelihood of the observed data.
    max_iter : int
        The maximum number of iterations.
    tol : float
        EM has converged when an iteration raises the objective by less than this; with 0, when it does not rise.
    what : str
        The text of the progress bar.

    Returns
    -------
    EMResult

    Examples
    --------
    A coin was tossed five times. Two tosses are unobserved; the others were heads, heads, tails. The maximum likelihood
    estimate does not depend on the unobserved tosses, and EM converges to 2/3 from any start:

    >>> from math import log
    >>> from tallybayes.estimation.em.em_loop import run_em
    >>> done = run_em(1.0, lambda heads: (heads / 5, 0.0),
    ...              lambda p: (2 + 2 * p, 2 * log(p) + log(1 - p)), max_iter=100, tol=1e-12)
    >>> round(done.parameters, 5), done.converged
    (0.66667, True)
    """
    if max_iter < 1:
        raise EstimateError(f"max_iter is {max_iter!r}; expected at least 1.")
    expected = start
    history = list[float]()
    result: EMResult | None = None
    for _ in progress(range(max_iter), what):
        parameters, log_prior = maximize(expected)
        expected, log_likelihood = expect(parameters)
        objective = log_likelihood + log_prior
        rise = np.inf if result is None else objective - history[-1]
        if result is not None and rise < 0:  # by rounding errors: the previous parameters, and their objective, stay
            history.append(history[-1])
            return result._replace(converged=True)
        history.append(objective)  # equal objectives: the later parameters are nearer to the maximum
        result = EMResult(expected, parameters, history, bool(rise < tol or rise <= 0), log_likelihood)
        if result.converged:
            break
    assert result is not None
    return result


def run_em_restarts(
    starts: Iterable[Callable[[], Expected | EMResult]],
    maximize: Callable[[Expected], tuple[Parameters, float]],
    expect: Callable[[Parameters], tuple[Expected, float]],
    *,
    max_iter: int,
    tol: float,
    what: str = "EM",
) -> EMResult:
    """Run EM from every start and return the result with the highest objective.

    Parameters
    ----------
    starts : iterable of callables
        Each returns initial expected statistics, or the result of its own EM. A start may fail with EstimateError, for
        example if a variance becomes zero; an error is raised if all fail.
    maximize, expect, max_iter, tol, what
        As for `run_em`.

    Returns
    -------
    EMResult
    """
    best = None
    last_error = None
    histories = []
    objectives = list[float]()
    for start in starts:
        try:
            begun: Any = start()
            if not isinstance(begun, EMResult):
                begun = run_em(begun, maximize, expect, max_iter=max_iter, tol=tol, what=what)
            result: EMResult = begun
        except EstimateError as error:
            last_error = error
            objectives.append(np.nan)
            continue
        histories.append(result.history)
        objectives.append(result.history[-1])
        best = result if best is None or result.history[-1] > best.history[-1] else best
    if best is None:
        assert last_error is not None
        raise last_error
    return best._replace(starts=tuple(histories), objectives=tuple(objectives))


def warn_unless_converged(summary: EMSummary) -> None:
    """Warn if EM did not converge."""
    if not summary.converged:
        warn(
            f"EM did not converge after {len(summary.history)} iterations: parameters may still change.\n"
            "    Increase max_iter or tol.",
            ConvergenceWarning,
        )
