"""State occupancy: stationary distribution, expected durations, expected time in each state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.errors import EstimateError, printable
from tallybayes.kernels import hmm as kernels
from tallybayes.kernels.hmm_messages import smoothing_ratios
from tallybayes.models.hmm.fitting.stationary_mle import closed_classes, stationary_distribution
from tallybayes.models.hmm.inference.decoding import run_and_warn, run_kernel
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.results.result import FrameData, Result, ResultTable

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM

_SHOWN = 24  # at most so many states are shown


def stationary(hmm: EstimatedHMM) -> np.ndarray:
    """Return the stationary distribution of the transition matrix. Raise EstimateError if it is not unique."""
    transition = np.exp(hmm.checked_parameters.transition)
    states = hmm.states.levels
    undefined = np.flatnonzero(~(transition.sum(axis=1) > 0))
    if len(undefined):
        raise EstimateError(
            f"the stationary distribution is undefined: state {printable(states[undefined[0]])} has no observed "
            "transition.\n    Use estimate='bayes', under which all transitions have positive probability."
        )
    closed = closed_classes(transition)
    if len(closed) > 1:
        groups = "; ".join(", ".join(printable(states[k]) for k in group[:5]) for group in closed[:5])
        raise EstimateError(
            f"the stationary distribution is not unique: there are {len(closed)} closed classes of states "
            f"({groups}{'; …' if len(closed) > 5 else ''}).\n"
            "    Use predict_next(X, n) for a given sequence, or estimate='bayes'."
        )
    return stationary_distribution(transition)


def durations(hmm: EstimatedHMM) -> np.ndarray:
    """Return the mean number of consecutive time steps in each state, 1 / (1 − p(stay))."""
    _, log_transition, log_end = hmm.checked_parameters.arguments
    transition = np.exp(log_transition)
    end = 0.0 if log_end is None else np.exp(log_end)
    undefined = ~(transition.sum(axis=1) + end > 0)
    # Sum the probabilities of leaving: 1 − p(stay) loses all digits if p(stay) is close to 1.
    np.fill_diagonal(transition, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(undefined, np.nan, 1.0 / (transition.sum(axis=1) + end))


def expected_visits(hmm: EstimatedHMM, sequences: Sequences) -> ExpectedOccupancy:
    """Return the expected numbers of time steps and of visits in each state, given the sequences."""
    parameters = hmm.checked_parameters
    filtered, _ = run_kernel(parameters, kernels.filter, sequences)
    smoothed, _ = run_and_warn(hmm, kernels.posterior, sequences)
    transition = np.exp(parameters.arguments[1])
    steps, visits = np.zeros((2, len(filtered), len(transition)))
    for number, (before, after) in enumerate(zip(filtered, smoothed, strict=True)):
        stays = before[:-1] * np.diag(transition) * smoothing_ratios(before, after, transition)  # p(in it, and again)
        steps[number] = after.sum(axis=0)
        visits[number] = np.maximum(steps[number] - stays.sum(axis=0), 0.0)
    return ExpectedOccupancy(hmm.state_labels, steps, visits)


class ExpectedOccupancy(Result):
    """Expected time in each state, given all observations of the sequences.

    Attributes
    ----------
    states : ndarray of shape (states,)
    steps : ndarray of shape (sequences, states)
        The expected number of time steps in each state. They sum to the length of the sequence.
    stays : ndarray of shape (sequences, states)
        The expected number of visits: a sequence begins in the state, or enters it from another state.
    durations : ndarray of shape (states,)
        Steps per visit over all sequences; NaN for a state without visits. Compare with ``durations_`` of the model.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    >>> model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)
    >>> model.expected_visits(diary)
    expected visits in 3 sequences of 9 steps
      state  steps  stays  steps a stay
      cold    4.82   2.44          1.97
      hot     4.18   2.24          1.87
    """

    def __init__(self, states: np.ndarray, steps: np.ndarray, stays: np.ndarray) -> None:
        self.states = states
        self.steps = steps
        self.stays = stays

    @property
    def durations(self) -> np.ndarray:
        """Return the number of steps per visit, over all sequences."""
        steps, stays = self.steps.sum(axis=0), self.stays.sum(axis=0)
        return np.divide(steps, stays, out=np.full(len(steps), np.nan), where=stays > 0)

    def _frame_data(self) -> FrameData:
        """Return one row for each sequence and state."""
        n_sequences, n_states = self.steps.shape
        return {
            "sequence": np.repeat(np.arange(n_sequences), n_states),
            "state": np.tile(self.states, n_sequences),
            "steps": self.steps.ravel(),
            "stays": self.stays.ravel(),
        }

    def _content(self) -> list[ResultTable]:
        """Return the table that is shown."""
        steps, stays = self.steps.sum(axis=0), self.stays.sum(axis=0)
        numbers = zip(steps.tolist(), stays.tolist(), self.durations.tolist(), strict=True)
        rows = [[printable(state), *(f"{x:.2f}" for x in row)] for state, row in zip(self.states, numbers, strict=True)]
        many = "1 sequence" if len(self.steps) == 1 else f"{len(self.steps)} sequences"
        title = f"expected visits in {many} of {steps.sum():.0f} steps"
        head = ["state", "steps", "stays", "steps a stay"]
        return [ResultTable(rows, head, title, align="lr", max_rows=_SHOWN)]
