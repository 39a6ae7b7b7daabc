"""How a chain spends its time: in the long run, at a stretch, and in sequences that were seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes._utils.html import html_table
from tallybayes.errors import EstimateError, printable
from tallybayes.kernels import hmm as kernels
from tallybayes.kernels.hmm_messages import smoothing_ratios
from tallybayes.models.hmm.fitting.stationary_mle import closed_classes, stationary_distribution
from tallybayes.models.hmm.inference.decoding import open_sequences_for_query, run_kernel, warn_impossible
from tallybayes.models.hmm.inference.forward_backward import titled_table
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.typing import Rows

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

_SHOWN = 24  # states


def stationary(model: HiddenMarkovModel) -> np.ndarray:
    """The share of its steps that an endless sequence spends in every state, wherever it starts.

    The one distribution that a step of ``transition_`` leaves as it is; what `predict_next` tends to, unless the states
    come round in a fixed period. States that are left for good have 0. Where several groups of states are never left,
    the shares depend on which of them it falls into, and there is no such distribution.

    Returns
    -------
    ndarray of shape (states,)
    """
    chain = model._estimated_hmm.checked_parameters
    transition, states = np.exp(chain.transition), model._estimated_hmm.states.levels
    unknown = np.flatnonzero(~(transition.sum(axis=1) > 0))
    if len(unknown):
        raise EstimateError(
            f"there is no stationary distribution: no step after state {printable(states[unknown[0]])} was seen, so "
            "what follows it is not known.\n    Use estimate='bayes', under which every state can follow."
        )
    closed = closed_classes(transition)
    if len(closed) > 1:
        groups = "; ".join(", ".join(printable(states[k]) for k in group[:5]) for group in closed[:5])
        raise EstimateError(
            f"there is no one stationary distribution: {len(closed)} groups of states are never left once entered "
            f"({groups}{'; …' if len(closed) > 5 else ''}), and the shares depend on which one a sequence falls into.\n"
            "    Ask predict_next(X, n) for a sequence at hand, or use estimate='bayes', where every state may follow."
        )
    return stationary_distribution(transition)


def durations(model: HiddenMarkovModel) -> np.ndarray:
    """How many steps a stay in every state lasts on average, 1 / (1 − p(stay)): inf for a state that is never left.

    NaN where no step after a state was seen. A stay is geometric: its most probable length is always 1. Where the end
    is modeled, the end ends it, too.

    Returns
    -------
    ndarray of shape (states,)
    """
    _, transition, end = model._estimated_hmm.checked_parameters.arguments
    moves = np.exp(transition)
    unknown = ~(moves.sum(axis=1) + (0.0 if end is None else np.exp(end)) > 0)
    np.fill_diagonal(moves, 0.0)  # what leaves is added up: 1 − p(stay) has no digits where a state is hardly ever left
    leaves = moves.sum(axis=1) + (0.0 if end is None else np.exp(end))
    with np.errstate(divide="ignore"):
        return np.where(unknown, np.nan, 1.0 / leaves)


@answering
def expected_visits(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> ExpectedOccupancy:
    """How many steps of every sequence are expected in every state, and how many stays, given the whole sequence.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    Visits
        All 0 for an impossible sequence.
    """
    sequences, chain = (
        open_sequences_for_query(model, X, lengths, sequence, order, silent=False),
        model._estimated_hmm.checked_parameters,
    )
    filtered, found = run_kernel(chain, kernels.filter, sequences)
    smoothed, score = run_kernel(chain, kernels.posterior, sequences)
    warn_impossible(model, sequences, score)
    transition = np.exp(chain.arguments[1])
    steps, stays = np.zeros((2, len(found), len(transition)))
    for number, (before, after) in enumerate(zip(filtered, smoothed, strict=True)):
        goes_on = before[:-1] * np.diag(transition) * smoothing_ratios(before, after, transition)  # p(in it, and again)
        steps[number] = after.sum(axis=0)
        stays[number] = np.maximum(steps[number] - goes_on.sum(axis=0), 0.0)
    return ExpectedOccupancy(model.states_, steps, stays)


class ExpectedOccupancy:
    """How sequences spent their time, as expected: given all their steps, states averaged over.

    Attributes
    ----------
    states : ndarray of shape (states,)
    steps : ndarray of shape (sequences, states)
        The expected number of steps in every state; a sequence's add up to its length.
    stays : ndarray of shape (sequences, states)
        The expected number of stays: how often a sequence began in a state, or came to it from another one.
    durations : ndarray of shape (states,)
        Steps by stays of all sequences together; NaN for a state in which none ever was. Beside the model's
        ``durations_``, they show whether stays last as long as it says.

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
        self.states, self.steps, self.stays = states, steps, stays

    @property
    def durations(self) -> np.ndarray:
        """The steps of a stay, of all sequences together."""
        steps, stays = self.steps.sum(axis=0), self.stays.sum(axis=0)
        return np.divide(steps, stays, out=np.full(len(steps), np.nan), where=stays > 0)

    def to_frame(self) -> Any:
        """A pandas data frame: sequence, state, steps and stays."""
        import pandas as pd

        n_sequences, n_states = self.steps.shape
        return pd.DataFrame(
            {
                "sequence": np.repeat(np.arange(n_sequences), n_states),
                "state": np.tile(self.states, n_sequences),
                "steps": self.steps.ravel(),
                "stays": self.stays.ravel(),
            }
        )

    def _cells(self) -> tuple[str, list[str], list[list[str]]]:
        steps, stays, n = self.steps.sum(axis=0), self.stays.sum(axis=0), len(self.steps)
        numbers = zip(steps.tolist(), stays.tolist(), self.durations.tolist(), strict=True)
        rows = [
            [printable(s), *(f"{x:.2f}" for x in row)] for s, row in zip(self.states[:_SHOWN], numbers, strict=False)
        ]
        rows += [[f"… {len(self.states) - _SHOWN} more", "", "", ""]] if len(self.states) > _SHOWN else []
        many = "1 sequence" if n == 1 else f"{n} sequences"
        return (
            f"expected visits in {many} of {steps.sum():.0f} steps",
            ["state", "steps", "stays", "steps a stay"],
            rows,
        )

    def __repr__(self) -> str:
        return titled_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells())
