"""EM: expected statistics of what is not observed, and the parameters that make them most probable, in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tallybayes._utils.progress import progress
from tallybayes._utils.sealed_file import refuse_rest
from tallybayes.errors import EstimateError
from tallybayes.warnings import warn

Parameters = TypeVar("Parameters")
Expected = TypeVar("Expected")


class EMResult(NamedTuple):
    """Where EM ended.

    Attributes
    ----------
    expected : the expected statistics, under the last parameters
    parameters : the last parameters
    history : list of float
        The objective after every step, in nats.
    converged : bool
    log_likelihood : float
        Of what was observed, under the last parameters.
    starts : tuple of lists of float
        The histories of all starts, of which this is the best.
    objectives : tuple of float
        Where every start ended; NaN of one that failed.
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
    """How EM ended: what a model remembers of it while its counts are those that EM expected."""

    history: list[float]  # the objective after every step, in nats
    objective: str
    converged: bool
    log_likelihood: float  # of what was observed, under the last parameters
    entropy: float = 0.0  # of what was not, given what was; 0 where it is not measured
    starts: tuple[list[float], ...] = ()  # the histories of all starts, to be drawn; a file keeps the best alone
    objectives: tuple[float, ...] = ()  # where every start ended

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the scalar fields and, as arrays, where EM went, for a file."""
        scalars = {name: value for name, value in self._asdict().items() if name not in _NOT_SCALAR}
        return {"em": scalars}, {"em/history": np.array(self.history), "em/objectives": np.array(self.objectives)}

    @classmethod
    def from_parts(cls, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> EMSummary | None:
        """Return what `to_parts` was called on; None where there was nothing."""
        if "em" not in state:
            return None
        history, objectives = (np.ravel(arrays.pop(f"em/{name}")).tolist() for name in ("history", "objectives"))
        kept = state.pop("em")
        found = cls(history, **{name: kept.pop(name) for name in cls._fields if name not in _NOT_SCALAR})
        refuse_rest("what the file says of EM", kept)
        return found._replace(
            objective=str(found.objective),
            converged=bool(found.converged),
            log_likelihood=float(found.log_likelihood),
            entropy=float(found.entropy),
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
    """Take turns until the objective hardly rises.

    Parameters
    ----------
    start : expected statistics to begin with
    maximize : callable
        From statistics to the parameters that make them most probable, and the log prior of these (0 without a prior).
    expect : callable
        From parameters to the statistics they expect, and the log likelihood of what was observed.
    max_iter : int
        The most steps to take.
    tol : float
        EM has converged when an iteration raises the objective by less than this; with 0, when it does not rise.
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
    >>> from tallybayes.estimation.em.em_loop import run_em
    >>> done = run_em(1.0, lambda heads: (heads / 5, 0.0),
    ...              lambda p: (2 + 2 * p, 2 * log(p) + log(1 - p)), max_iter=100, tol=1e-12)
    >>> round(done.parameters, 5), done.converged
    (0.66667, True)
    """
    if max_iter < 1:
        raise EstimateError(f"max_iter is {max_iter!r}; expected at least 1 step.")
    expected, history, converged = start, list[float](), False
    for _ in progress(range(max_iter), what):
        parameters, log_prior = maximize(expected)
        expected, log_likelihood = expect(parameters)
        history.append(log_likelihood + log_prior)
        rise = history[-1] - history[-2] if len(history) > 1 else np.inf
        converged = bool(rise < tol or rise <= 0)
        if converged:
            break
    return EMResult(expected, parameters, history, converged, log_likelihood)


def run_em_restarts(
    starts: Iterable[Callable[[], Expected]],
    maximize: Callable[[Expected], tuple[Parameters, float]],
    expect: Callable[[Parameters], tuple[Expected, float]],
    *,
    max_iter: int,
    tol: float,
    what: str = "EM",
) -> EMResult:
    """Climb from every start; the climb that ends highest counts.

    Parameters
    ----------
    starts : iterable of callables
        Each gives expected statistics to begin with. One may fail, as where a group falls in on few rows; not all.
    maximize, expect, max_iter, tol, what
        As for `climb`.

    Returns
    -------
    Climb
    """
    best, failed, histories, ends = None, None, [], list[float]()
    for start in starts:
        try:
            done = run_em(start(), maximize, expect, max_iter=max_iter, tol=tol, what=what)
        except EstimateError as error:
            failed = error
            ends.append(np.nan)
            continue
        histories.append(done.history)
        ends.append(done.history[-1])
        best = done if best is None or done.history[-1] > best.history[-1] else best
    if best is None:
        assert failed is not None
        raise failed
    return best._replace(starts=tuple(histories), objectives=tuple(ends))


def warn_unless_converged(climbed: EMSummary) -> None:
    """Say that EM had to stop on the way."""
    if not climbed.converged:
        warn(
            f"EM was still climbing after {len(climbed.history)} steps.\n"
            "    Raise max_iter, or tol if this is good enough.",
            ConvergenceWarning,
        )


def check_em_parameters(model: Any) -> None:
    """Refuse settings that EM cannot follow: of ``max_iter``, ``tol`` and, where a model has them, of others."""
    again = vars(model).get("warm_start", False)
    if not isinstance(again, bool | np.bool_):
        raise EstimateError(f"warm_start is {again!r}; expected True or False.")
    for name in ("max_iter", "n_init"):
        number = getattr(model, name, 1)
        if not is_integer_at_least(number):
            raise EstimateError(f"{name} is {number!r}; expected a whole number of at least 1.")
    for name in ("tol", "unlabeled_weight"):
        number, least = getattr(model, name, 1.0), "a number of at least 0" if name == "tol" else "a positive number"
        is_number = isinstance(number, int | float | np.integer | np.floating) and 0 <= number < np.inf
        if not is_number or (number == 0 and name != "tol"):
            raise EstimateError(f"{name} is {number!r}; expected {least}.")


def is_integer_at_least(number: Any, least: int = 1) -> bool:
    """Whether a setting is a whole number of at least so much; True and False are none."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and bool(number >= least)
