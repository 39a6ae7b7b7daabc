"""What the algorithms of a hidden Markov model write down on their way: forward, backward, and Viterbi's trellis."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes._utils.html import html_table
from tallybayes._utils.text_table import text_table
from tallybayes.errors import printable
from tallybayes.kernels import hmm_messages
from tallybayes.models.hmm.inference.decoding import labeled, open_sequences_for_query, warn_impossible
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.typing import Rows

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
    from tallybayes.plotting.plot import Plot

_STEPS, _STATES = 8, 24  # that are shown


@answering
def forward(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[ForwardBackwardTable]:
    """α: p(steps so far, state now) of every step and state; −inf in logs, where no path leads.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of Messages
        Scaled, they are p(state | steps so far), as `filter_proba`; the scale is p(steps so far). The last step's add
        up to p(sequence), where its end is not modeled.
    """
    found = _asked(model, _passed, X, lengths, sequence, order)
    return [
        ForwardBackwardTable("forward, p(steps so far, state)", model.states_, each.alpha, each.so_far)
        for each in found
    ]


@answering
def backward(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[ForwardBackwardTable]:
    """β: p(steps to come | state now) of every step and state, and that it ends there, where the end is modeled.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of Messages
        Scaled by p(steps to come | steps so far), so that scaled `forward` times scaled `backward` is p(state | whole
        sequence), as `predict_proba`.
    """
    found = _asked(model, _passed, X, lengths, sequence, order)
    title = "backward, p(steps to come | state)"
    return [ForwardBackwardTable(title, model.states_, each.beta, each.to_come) for each in found]


@answering
def trellis(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[Trellis]:
    """The best path to every state of every step, and the best of all: what Viterbi's algorithm goes by.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of Trellis
    """
    return [Trellis(model.states_, best) for best in _asked(model, hmm_messages.trellis, X, lengths, sequence, order)]


class ForwardBackwardTable:
    """What the forward or the backward algorithm knows of every step and state of one sequence.

    Attributes
    ----------
    states : ndarray of shape (states,)
    log : ndarray of shape (steps, states)
        In logs: −inf is impossible.
    log_scale : ndarray of shape (steps,)
        What they are divided by to be `scaled`, in logs.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    >>> model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)
    >>> model.forward([[1, 2, 3]])[0]
    forward, p(steps so far, state)
      step    0        1        2
      cold  0.4   0.1067        0
      hot     0  0.03333  0.04333
    """

    def __init__(self, title: str, states: np.ndarray, log: np.ndarray, log_scale: np.ndarray) -> None:
        self.title, self.states, self.log, self.log_scale = title, states, log, log_scale

    @property
    def scaled(self) -> np.ndarray:
        """Divided by their scale, so that nothing underflows; 0 where that is 0. Shape (steps, states)."""
        impossible = np.isneginf(self.log_scale)
        scaled: np.ndarray = np.exp(self.log - np.where(impossible, 0.0, self.log_scale)[:, None])
        scaled[impossible] = 0.0
        return scaled

    def to_frame(self) -> Any:
        """A pandas data frame of the logs, a line for every step, a column for every state."""
        import pandas as pd

        index = pd.RangeIndex(len(self.log), name="step")
        return pd.DataFrame(self.log, index=index, columns=pd.Index(self.states, name="state"))

    def _cells(self) -> tuple[str, list[str], list[list[str]]]:
        title, numbers = _readable(self.title, self.log)
        return title, *_table(self.states, [[f"{x:.4g}" for x in row] for row in numbers.tolist()])

    def __repr__(self) -> str:
        return titled_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


class Trellis:
    """The best paths of one sequence: to every state of every step, and the best of all.

    Attributes
    ----------
    states : ndarray of shape (states,)
    log_delta : ndarray of shape (steps, states)
        log p(steps so far, the best path that is in this state now).
    pointers : ndarray of int of shape (steps, states)
        The number of the state before on that path; −1 at the first step, and where no path leads.
    path : ndarray of shape (steps,)
        The states of the best path of all, as `predict` gives them; None where the sequence is impossible.
    log_prob : float
        log p(path, sequence).

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    >>> model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)
    >>> model.trellis([[1, 2, 3]])[0]
    trellis, p(steps so far, the best path to the state): 0.02667, * marks it
      step     0               1                2
      cold  *0.4  *0.1067 ← cold                0
      hot      0  0.03333 ← cold  *0.02667 ← cold
    """

    def __init__(self, states: np.ndarray, best: hmm_messages.Best) -> None:
        self.states, self.log_delta, self.pointers, self.log_prob = states, best.log_delta, best.pointers, best.log_prob
        self._places = best.path
        self.path = labeled(states, best.path)

    def to_frame(self) -> Any:
        """A pandas data frame: step, state, log_delta, the state before, and whether it is on the best path."""
        import pandas as pd

        n_steps, n_states = self.log_delta.shape
        step, state = np.repeat(np.arange(n_steps), n_states), np.tile(np.arange(n_states), n_steps)
        before = [None if k < 0 else self.states[k] for k in self.pointers.ravel().tolist()]
        return pd.DataFrame(
            {
                "step": step,
                "state": self.states[state],
                "log_delta": self.log_delta.ravel(),
                "before": pd.Series(before, dtype=object),
                "on_path": np.repeat(self._places, n_states) == state,
            }
        )

    def plot(self, ax: Any = None) -> Plot:
        """A picture: states against steps, back-pointers as lines, the best path in color; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.hmm.trellis import plot_trellis

        return plot_trellis(self, ax)

    def _cells(self) -> tuple[str, list[str], list[list[str]]]:
        title, numbers = _readable("trellis, p(steps so far, the best path to the state)", self.log_delta)
        if np.isneginf(self.log_prob):
            title += ": the sequence is impossible"
        else:
            best = f"{self.log_prob:.4g}" if numbers is self.log_delta else f"{np.exp(self.log_prob):.4g}"
            title += f": {best}, * marks it"
        cells = []
        for row, before, place in zip(numbers, self.pointers.tolist(), self._places.tolist(), strict=True):
            marks = ["*" if k == place else "" for k in range(len(row))]
            comes = ["" if k < 0 else f" ← {printable(self.states[k])}" for k in before]
            cells.append([f"{mark}{x:.4g}{come}" for mark, x, come in zip(marks, row, comes, strict=True)])
        return title, *_table(self.states, cells)

    def __repr__(self) -> str:
        return titled_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


# ---- Reckoning ------------------------------------------------------------------------------------------------------


class _ForwardBackward(NamedTuple):
    """Forward and backward through one sequence, in logs: both, and their scales."""

    alpha: np.ndarray
    beta: np.ndarray
    so_far: np.ndarray
    to_come: np.ndarray
    log_prob: float


def _passed(*asked: Any) -> list[_ForwardBackward]:
    """Forward and backward through every sequence."""
    every_alpha, every_beta, score = hmm_messages.messages(*asked)
    found = []
    for (a, b), log_prob in zip(pairwise(asked[-1].tolist()), score.tolist(), strict=True):
        so_far = np.logaddexp.reduce(every_alpha[a:b], axis=1)
        to_come = np.full(b - a, -np.inf) if np.isneginf(log_prob) else log_prob - so_far
        found.append(_ForwardBackward(every_alpha[a:b], every_beta[a:b], so_far, to_come, log_prob))
    return found


def _asked(model: HiddenMarkovModel, question: Callable[..., list[Any]], *where: Any) -> list[Any]:
    """What is found of sequences as they are given; a warning names the first that is impossible."""
    sequences, chain = open_sequences_for_query(model, *where), model._estimated_hmm.checked_parameters
    found = [one for asked in chain.kernel_arguments(sequences) for one in question(*asked)]
    warn_impossible(model, sequences, np.array([one.log_prob for one in found]))
    return found


# ---- Showing --------------------------------------------------------------------------------------------------------


def _readable(title: str, log: np.ndarray) -> tuple[str, np.ndarray]:
    """Probabilities where all are numbers, else logs, and a title that says which."""
    finite = log[np.isfinite(log)]
    small = bool(len(finite)) and finite.min() < np.log(np.finfo(float).tiny)
    return (title.replace("p(", "log p(", 1), log) if small else (title, np.exp(log))


def _table(states: np.ndarray, cells: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Steps across and states down, of both the first ones, and how many more there are."""
    n_steps, n_states = len(cells), len(states)
    head = ["step", *map(str, range(min(n_steps, _STEPS)))] + [f"… {n_steps - _STEPS} more"] * (n_steps > _STEPS)
    more = [""] * (n_steps > _STEPS)
    lines = [
        [printable(state), *(step[k] for step in cells[:_STEPS]), *more] for k, state in enumerate(states[:_STATES])
    ]
    if n_states > _STATES:
        lines.append([f"… {n_states - _STATES} more", *[""] * (len(head) - 1)])
    return head, lines


def titled_table(title: str, head: list[str], lines: list[list[str]]) -> str:
    """A table as text, numbers to the right."""
    return "\n".join([title, *text_table([head, *lines], right=range(1, len(head)))])
