"""Forward and backward messages, and the Viterbi trellis, as tables for inspection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.errors import printable
from tallybayes.kernels import hmm_messages
from tallybayes.kernels.hmm_arguments import HMMInput
from tallybayes.models.hmm.inference.decoding import labeled, run_and_warn, warn_impossible
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.results.result import PlottedResult, Result, ResultTable

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM

# at most so many are shown
_STEPS = 8
_STATES = 24


def forward(hmm: EstimatedHMM, sequences: Sequences) -> list[ForwardBackwardTable]:
    """Return the forward messages α of every sequence."""
    title = "forward, p(steps so far, state)"
    return [
        ForwardBackwardTable(title, hmm.state_labels, alpha, np.logaddexp.reduce(alpha, axis=1))
        for alpha, _, _ in _messages(hmm, sequences)
    ]


def backward(hmm: EstimatedHMM, sequences: Sequences) -> list[ForwardBackwardTable]:
    """Return the backward messages β of every sequence."""
    title = "backward, p(steps to come | state)"
    tables = []
    for alpha, beta, log_likelihood in _messages(hmm, sequences):
        so_far = np.logaddexp.reduce(alpha, axis=1)
        to_come = np.full(len(alpha), -np.inf) if np.isneginf(log_likelihood) else log_likelihood - so_far
        tables.append(ForwardBackwardTable(title, hmm.state_labels, beta, to_come))
    return tables


def trellis(hmm: EstimatedHMM, sequences: Sequences) -> list[Trellis]:
    """Return the Viterbi trellis of every sequence."""
    inputs = hmm.checked_parameters.kernel_inputs(sequences)
    paths = [best for block in inputs for best in hmm_messages.trellis(block)]
    warn_impossible(hmm, sequences, np.array([best.log_prob for best in paths]))
    return [Trellis(hmm.state_labels, best) for best in paths]


def _messages(hmm: EstimatedHMM, sequences: Sequences) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Return log α, log β and log p(sequence) of every sequence; warn about impossible ones."""

    def kernel(block: HMMInput) -> tuple[np.ndarray, np.ndarray]:
        """Return both messages of every step, and the log-likelihood."""
        alpha, beta, log_likelihood = hmm_messages.messages(block)
        return np.stack([alpha, beta], axis=1), log_likelihood

    messages, log_likelihood = run_and_warn(hmm, kernel, sequences)
    return [(part[:, 0], part[:, 1], float(value)) for part, value in zip(messages, log_likelihood, strict=True)]


class ForwardBackwardTable(Result):
    """The forward or backward messages of one sequence.

    Attributes
    ----------
    states : ndarray of shape (states,)
    log : ndarray of shape (steps, states)
        The log messages; −inf if impossible.
    log_scale : ndarray of shape (steps,)
        The logarithm of the divisor of `scaled`.

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
        self.title = title
        self.states = states
        self.log = log
        self.log_scale = log_scale

    @property
    def scaled(self) -> np.ndarray:
        """Return the messages divided by their scale, which do not underflow; 0 where the scale is 0."""
        impossible = np.isneginf(self.log_scale)
        scaled: np.ndarray = np.exp(self.log - np.where(impossible, 0.0, self.log_scale)[:, None])
        scaled[impossible] = 0.0
        return scaled

    def to_frame(self) -> pd.DataFrame:
        """Return the log messages as a pandas DataFrame: one row for each time step, one column for each state."""
        import pandas as pd

        index = pd.RangeIndex(len(self.log), name="step")
        return pd.DataFrame(self.log, index=index, columns=pd.Index(self.states, name="state"))

    def _content(self) -> list[ResultTable]:
        """Return the table that is shown."""
        title, numbers = _readable(self.title, self.log)
        return [_steps_by_states(title, self.states, [[f"{x:.4g}" for x in row] for row in numbers.tolist()])]


class Trellis(PlottedResult):
    """The Viterbi trellis of one sequence: the most probable path to each state of each time step.

    Attributes
    ----------
    states : ndarray of shape (states,)
    log_delta : ndarray of shape (steps, states)
        log p(steps so far, most probable path that ends in this state).
    pointers : ndarray of int of shape (steps, states)
        The index of the previous state on that path; −1 at the first step and where no path exists.
    path : ndarray of shape (steps,)
        The states of the Viterbi path, as `predict` returns them; None if the sequence is impossible.
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

    _plot_function = "hmm.trellis.plot_trellis"

    def __init__(self, states: np.ndarray, best: hmm_messages.Best) -> None:
        self.states = states
        self.log_delta = best.log_delta
        self.pointers = best.pointers
        self.log_prob = best.log_prob
        self.path_indices = best.path  # −1 if the sequence is impossible
        self.path = labeled(states, best.path)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame: step, state, log_delta, the previous state (or None), and whether on the path."""
        import pandas as pd

        n_steps, n_states = self.log_delta.shape
        state = np.tile(np.arange(n_states), n_steps)
        before = [None if k < 0 else self.states[k] for k in self.pointers.ravel().tolist()]
        return pd.DataFrame(
            {
                "step": np.repeat(np.arange(n_steps), n_states),
                "state": self.states[state],
                "log_delta": self.log_delta.ravel(),
                "before": pd.Series(before, dtype=object),
                "on_path": np.repeat(self.path_indices, n_states) == state,
            }
        )

    def _content(self) -> list[ResultTable]:
        """Return the table that is shown."""
        title, numbers = _readable("trellis, p(steps so far, the best path to the state)", self.log_delta)
        if np.isneginf(self.log_prob):
            title += ": the sequence is impossible"
        else:
            best = self.log_prob if numbers is self.log_delta else np.exp(self.log_prob)
            title += f": {best:.4g}, * marks it"
        cells = []
        for row, pointers, index in zip(numbers, self.pointers.tolist(), self.path_indices.tolist(), strict=True):
            sources = ["" if k < 0 else f" ← {printable(self.states[k])}" for k in pointers]
            cells.append([f"{'*' * (k == index)}{x:.4g}{sources[k]}" for k, x in enumerate(row)])
        return [_steps_by_states(title, self.states, cells)]


def _readable(title: str, log: np.ndarray) -> tuple[str, np.ndarray]:
    """Return title and probabilities; log probabilities if some probability would underflow."""
    finite = log[np.isfinite(log)]
    small = bool(len(finite)) and finite.min() < np.log(np.finfo(float).tiny)
    return (title.replace("p(", "log p(", 1), log) if small else (title, np.exp(log))


def _steps_by_states(title: str, states: np.ndarray, cells: list[list[str]]) -> ResultTable:
    """Return a table with one column for each time step and one row for each state, truncated in both directions."""
    n_more = len(cells) - _STEPS
    more = [f"… {n_more} more"] if n_more > 0 else []
    shown = cells[:_STEPS]
    head = ["step", *map(str, range(len(shown))), *more]
    rows = [[printable(state), *(row[k] for row in shown), *("" for _ in more)] for k, state in enumerate(states)]
    return ResultTable(rows, head, title, align="lr", max_rows=_STATES)
