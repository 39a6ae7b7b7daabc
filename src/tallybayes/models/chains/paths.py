"""Whole paths of states, given a sequence: the best few, and such as are drawn at random."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError, printable
from tallybayes.html import html_table
from tallybayes.inference.em import is_whole
from tallybayes.kernels import chain as kernels
from tallybayes.models.chains.decoding import dense, labelled, open_asked, warn_impossible
from tallybayes.models.chains.messages import log_forward
from tallybayes.models.inputs.outside import answering

if TYPE_CHECKING:
    from tallybayes.models.chains.hidden_markov import HiddenMarkovModel

_STEPS = 12  # that are shown


@answering
def best_paths(
    model: HiddenMarkovModel,
    X: Any,
    k: int = 5,
    lengths: Any = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[BestPaths]:
    """The `k` most probable paths of every sequence, best first; fewer where there are not so many.

    Viterbi's algorithm with `k` paths to every state of every step: time and memory are `k` times those of one path.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.
    k : int, default 5

    Returns
    -------
    list of BestPaths
        Of an impossible sequence, none.
    """
    if not is_whole(k, 1):
        raise DataError.wrong_type("k", repr(k), "a whole number of at least 1")
    sequences, chain = open_asked(model, X, lengths, sequence, order), model._counted.answering
    found, scores = [], []
    for start, transition, end, emission, offsets in chain.questions(sequences):
        score = kernels.log_likelihood(start, transition, end, emission, offsets)
        scores.append(score)
        for (a, b), total in zip(pairwise(offsets.tolist()), score.tolist(), strict=True):
            rows = dense(part_of(emission, a, b))
            places, log_prob = _best(start, transition, end, rows, int(k))
            found.append(BestPaths(model.states_, places, log_prob, total))
    warn_impossible(model, sequences, np.concatenate(scores))
    return found


@answering
def sample_paths(
    model: HiddenMarkovModel,
    X: Any,
    n: int = 1,
    lengths: Any = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
    random_state: Any = None,
) -> list[np.ndarray]:
    """Paths of states drawn from p(path | whole sequence), `n` for every sequence, independent of each other.

    Forward, then backward drawing: whatever is asked of paths, such as how often a state was entered, is answered by
    these, with its uncertainty.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.
    n : int, default 1
    random_state : int, Generator or None

    Returns
    -------
    list of ndarray of shape (n, steps)
        The states; None at every step of an impossible sequence.
    """
    if not is_whole(n, 0):
        raise DataError.wrong_type("n", repr(n), "a whole number of at least 0")
    sequences, chain = open_asked(model, X, lengths, sequence, order), model._counted.answering
    rng, found, scores = np.random.default_rng(random_state), [], []
    for start, transition, end, emission, offsets in chain.questions(sequences):
        filtered, score = kernels.filter(start, transition, end, emission, offsets)
        scores.append(score)
        with np.errstate(divide="ignore"):
            log_filtered = np.log(filtered)
        for (a, b), total in zip(pairwise(offsets.tolist()), score.tolist(), strict=True):
            if np.isneginf(total):
                found.append(np.full((int(n), b - a), -1))
                continue
            drawn = _drawn(log_filtered[a:b], transition, end, int(n), rng)
            if drawn is None:  # a state that the end needs had less than floats can tell: once more, in logs
                alpha = log_forward(start, transition, dense(part_of(emission, a, b)))
                drawn = _drawn(alpha, transition, end, int(n), rng)
            assert drawn is not None
            found.append(drawn)
    warn_impossible(model, sequences, np.concatenate(scores))
    states = model.states_
    return [labelled(states, paths.ravel()).reshape(paths.shape) for paths in found]


class BestPaths:
    """The most probable paths of one sequence, best first.

    Attributes
    ----------
    states : ndarray of shape (states,)
    paths : ndarray of shape (k, steps)
        The states of every path.
    log_prob : ndarray of shape (k,)
        log p(path, sequence).
    probability : ndarray of shape (k,)
        p(path | sequence).

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    >>> model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)
    >>> model.best_paths([[1, 2, 3]], k=3)[0]
    the 2 best paths: together 1 of the probability
      p(path | steps)  path
               0.6154  cold cold hot
               0.3846  cold hot hot
    """

    def __init__(self, states: np.ndarray, places: np.ndarray, log_prob: np.ndarray, log_likelihood: float) -> None:
        self.states, self.log_prob = states, log_prob
        self.paths: np.ndarray = labelled(states, places.ravel()).reshape(places.shape)
        self.probability = np.exp(np.minimum(log_prob - log_likelihood, 0.0)) if len(log_prob) else np.zeros(0)

    def __len__(self) -> int:
        return len(self.paths)

    def to_frame(self) -> Any:
        """A pandas data frame: path, step, state, log_prob and probability of the path."""
        import pandas as pd

        n_paths, n_steps = self.paths.shape
        return pd.DataFrame(
            {
                "path": np.repeat(np.arange(n_paths), n_steps),
                "step": np.tile(np.arange(n_steps), n_paths),
                "state": self.paths.ravel(),
                "log_prob": np.repeat(self.log_prob, n_steps),
                "probability": np.repeat(self.probability, n_steps),
            }
        )

    def _cells(self) -> tuple[str, list[str], list[list[str]]]:
        if not len(self):
            return "no path: the sequence is impossible", ["p(path | steps)", "path"], []
        n_steps = self.paths.shape[1]
        more = f" … {n_steps - _STEPS} more" if n_steps > _STEPS else ""
        rows = [
            [f"{p:.4g}", " ".join(map(printable, path[:_STEPS])) + more]
            for p, path in zip(self.probability.tolist(), self.paths.tolist(), strict=True)
        ]
        many = f"the {len(self)} best paths" if len(self) > 1 else "the best path"
        together = f"{self.probability.sum():.4g} of the probability"
        return f"{many}: {'together ' if len(self) > 1 else ''}{together}", ["p(path | steps)", "path"], rows

    def __repr__(self) -> str:
        title, head, rows = self._cells()
        width = max(len(row[0]) for row in [head, *rows])
        return "\n".join([title, *(f"  {row[0]:>{width}}  {row[1]}".rstrip() for row in [head, *rows])])

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


def part_of(emission: Any, a: int, b: int) -> Any:
    """The emission of one sequence."""
    return (emission[0][a:b], emission[1]) if isinstance(emission, tuple) else emission[a:b]


def _best(
    start: np.ndarray, transition: np.ndarray, end: np.ndarray | None, emission: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The places of the best paths, (paths, steps), and log p(path, sequence) of each.

    Of equally good paths the one whose last state is the lowest comes first; of these the one whose last but one is.
    """
    n_steps, n_states = emission.shape
    if not n_steps:
        return np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    scores = np.full((n_states, k), -np.inf)  # of the best paths to every state, falling
    scores[:, 0] = start + emission[0]
    came = np.zeros((n_steps, n_states, k), dtype=np.min_scalar_type(n_states * k))  # from which of them, all in a row
    each = np.arange(n_states)
    for t in range(1, n_steps):
        best = np.empty_like(scores)
        taken = np.zeros((n_states, n_states), dtype=np.intp)  # how many of each state's paths go on to which
        heads = scores[:, :1] + transition
        for rank in range(k):
            origin = heads.argmax(axis=0)
            best[:, rank] = heads[origin, each]
            came[t, :, rank] = origin * k + taken[origin, each]
            taken[origin, each] += 1
            used = taken[origin, each]
            following = np.where(used < k, scores[origin, np.minimum(used, k - 1)], -np.inf)
            heads[origin, each] = following + transition[origin, each]
        scores = best + emission[t][:, None]
    if end is not None:
        scores = scores + end[:, None]
    last = np.argsort(-scores.ravel(), kind="stable")[:k]
    last = last[np.isfinite(scores.ravel()[last])]
    log_prob, places = scores.ravel()[last], np.empty((len(last), n_steps), dtype=np.int64)
    for t in range(n_steps - 1, -1, -1):
        places[:, t] = last // k
        last = came[t, last // k, last % k].astype(np.intp)
    return places, log_prob


def _drawn(
    log_filtered: np.ndarray, transition: np.ndarray, end: np.ndarray | None, n: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Places of `n` paths, from the last step back; None where every state before one has lost its probability.

    ``log_filtered`` is log p(state | steps so far), up to a constant at every step.
    """
    n_steps = len(log_filtered)
    places, moves = np.empty((n, n_steps), dtype=np.int64), np.ascontiguousarray(transition.T)
    for t in range(n_steps - 1, -1, -1):
        if t < n_steps - 1:
            here = log_filtered[t] + moves[places[:, t + 1]]
        else:
            here = np.broadcast_to(log_filtered[t] if end is None else log_filtered[t] + end, (n, len(transition)))
        top = here.max(axis=1, keepdims=True, initial=-np.inf)
        if np.isneginf(top).any():
            return None
        upto = np.cumsum(np.exp(here - top), axis=1)
        cut = np.minimum(rng.random(n) * upto[:, -1], np.nextafter(upto[:, -1], 0.0))  # rounding may not pass the last
        places[:, t] = (upto > cut[:, None]).argmax(axis=1)
    return places
