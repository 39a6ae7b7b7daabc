"""Whole paths of states, given a sequence: the best few, and such as are drawn at random."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes._utils.html import html_table
from tallybayes.errors import DataError, printable
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.inference.decoding import labeled, open_sequences_for_query, warn_impossible
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.typing import RandomState, Rows

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

_STEPS = 12  # that are shown


@answering
def best_paths(
    model: HiddenMarkovModel,
    X: Rows,
    k: int = 5,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[BestPaths]:
    """The `k` most probable paths of every sequence, best first; fewer where there are not so many.

    Viterbi's algorithm with `k` paths to every state of every step. It takes no more memory than the paths and some 32
    MiB: what is not kept is found again on the way back.

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
    if not is_integer_at_least(k, 1):
        raise DataError.wrong_type("k", repr(k), "a whole number of at least 1")
    sequences, chain = (
        open_sequences_for_query(model, X, lengths, sequence, order),
        model._estimated_hmm.checked_parameters,
    )
    states, found, scores = model.states_, [], []
    for asked in chain.kernel_arguments(sequences):
        totals, offsets = kernels.log_likelihood(*asked), asked[-1].tolist()
        scores.append(totals)
        longest = max(np.diff(offsets).tolist(), default=0)
        most = len(states) ** min(longest, 40)  # as many paths as there are at most
        paths, log_prob = kernels.best_paths(*asked, min(int(k), most))
        for (a, b), score, total in zip(pairwise(offsets), log_prob, totals.tolist(), strict=True):
            n = int(np.isfinite(score).sum())
            found.append(BestPaths(states, paths[a:b, :n].T, score[:n], total))
    warn_impossible(model, sequences, np.concatenate(scores))
    return found


@answering
def sample_paths(
    model: HiddenMarkovModel,
    X: Rows,
    n: int = 1,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
    random_state: RandomState = None,
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
    if not is_integer_at_least(n, 0):
        raise DataError.wrong_type("n", repr(n), "a whole number of at least 0")
    sequences, chain = (
        open_sequences_for_query(model, X, lengths, sequence, order),
        model._estimated_hmm.checked_parameters,
    )
    rng, states, found, scores = np.random.default_rng(random_state), model.states_, [], []
    for asked in chain.kernel_arguments(sequences):
        offsets = asked[-1].tolist()
        paths, score = kernels.draw_paths(*asked, rng.random((offsets[-1], int(n))))
        scores.append(score)
        found += [labeled(states, paths[a:b].T.ravel()).reshape(int(n), b - a) for a, b in pairwise(offsets)]
    warn_impossible(model, sequences, np.concatenate(scores))
    return found


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
        self.paths: np.ndarray = labeled(states, places.ravel()).reshape(places.shape)
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
