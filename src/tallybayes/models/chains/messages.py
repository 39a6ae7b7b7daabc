"""What the algorithms of a hidden Markov model write down on their way: forward, backward, and Viterbi's trellis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import printable
from tallybayes.html import html_table
from tallybayes.kernels import chain as kernels
from tallybayes.models.chains.decoding import dense, open_asked, warn_impossible
from tallybayes.models.inputs.outside import answering

if TYPE_CHECKING:
    from tallybayes.models.chains.hidden_markov import HiddenMarkovModel

_STEPS, _STATES = 8, 24  # that are shown


@answering
def forward(
    model: HiddenMarkovModel, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
) -> list[Messages]:
    """α: p(steps so far, state now) of every step and state; −inf in logs, where no path leads.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of Messages
        Scaled, they are p(state | steps so far), as `filter_proba`; the scale is p(steps so far). The last step's add
        up to p(sequence), where its end is not modelled.
    """
    found = _asked(model, _Passed, X, lengths, sequence, order)
    return [Messages("forward, p(steps so far, state)", model.states_, each.alpha, each.so_far) for each in found]


@answering
def backward(
    model: HiddenMarkovModel, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
) -> list[Messages]:
    """β: p(steps to come | state now) of every step and state, and that it ends there, where the end is modelled.

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
    found = _asked(model, _Passed, X, lengths, sequence, order)
    title = "backward, p(steps to come | state)"
    return [Messages(title, model.states_, each.beta, each.total - each.so_far) for each in found]


@answering
def trellis(
    model: HiddenMarkovModel, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
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
    return _asked(model, partial(Trellis, model.states_), X, lengths, sequence, order)


class _Passed:
    """Forward and backward through one sequence, in logs."""

    def __init__(self, start: Any, transition: Any, end: Any, emission: np.ndarray) -> None:
        self.alpha, self.beta = np.full_like(emission, -np.inf), np.zeros_like(emission)
        ending = np.zeros_like(start) if end is None else end
        for t, row in enumerate(emission):
            before = start if t == 0 else np.logaddexp.reduce(self.alpha[t - 1][:, None] + transition, axis=0)
            self.alpha[t] = before + row
        for t in range(len(emission) - 1, -1, -1):
            last = t + 1 == len(emission)
            after = ending if last else transition + (emission[t + 1] + self.beta[t + 1])
            self.beta[t] = after if last else np.logaddexp.reduce(after, axis=1)
        self.so_far = np.logaddexp.reduce(self.alpha, axis=1)
        self.total = np.logaddexp.reduce(self.alpha[-1] + ending) if len(emission) else 0.0
        self.so_far[np.isneginf(self.so_far)] = 0.0 if np.isneginf(self.total) else -np.inf  # −inf − −inf is nothing
        self.log_prob = float(self.total)
