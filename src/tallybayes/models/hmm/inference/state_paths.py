"""State paths given a sequence: the k most probable ones, and random draws."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.errors import DataError, printable
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.inference.decoding import labeled, warn_impossible
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.results.result import FrameData, Result, ResultTable
from tallybayes.typing import RandomState

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM

_STEPS = 12  # at most so many are shown


def best_paths(hmm: EstimatedHMM, sequences: Sequences, k: int) -> list[BestPaths]:
    """Return the `k` most probable state paths of every sequence, by list Viterbi decoding."""
    if not is_integer_at_least(k, 1):
        raise DataError.wrong_type("k", repr(k), "a whole number of at least 1")
    labels = hmm.state_labels
    by_sequence = []
    scores = []
    for block in hmm.checked_parameters.kernel_inputs(sequences):
        totals = kernels.log_likelihood(block)
        scores.append(totals)
        offsets = np.asarray(block.offsets).tolist()
        longest = max(np.diff(offsets).tolist(), default=0)
        n_paths = len(labels) ** min(longest, 40)  # the number of different paths, bounded
        paths, log_prob = kernels.best_paths(block, min(int(k), n_paths))
        for (a, b), score, total in zip(pairwise(offsets), log_prob, totals.tolist(), strict=True):
            n = int(np.isfinite(score).sum())
            by_sequence.append(BestPaths(labels, paths[a:b, :n].T, score[:n], total))
    warn_impossible(hmm, sequences, np.concatenate(scores))
    return by_sequence


def sample_paths(hmm: EstimatedHMM, sequences: Sequences, n: int, random_state: RandomState) -> list[np.ndarray]:
    """Return `n` paths drawn from p(path | sequence) for every sequence, by forward filtering, backward sampling."""
    if not is_integer_at_least(n, 0):
        raise DataError.wrong_type("n", repr(n), "a whole number of at least 0")
    rng = np.random.default_rng(random_state)
    drawn = []
    scores = []
    for block in hmm.checked_parameters.kernel_inputs(sequences):
        offsets = np.asarray(block.offsets).tolist()
        paths, score = kernels.draw_paths(block, rng.random((offsets[-1], int(n))))
        scores.append(score)
        for a, b in pairwise(offsets):
            drawn.append(labeled(hmm.state_labels, paths[a:b].T.ravel()).reshape(int(n), b - a))
    warn_impossible(hmm, sequences, np.concatenate(scores))
    return drawn


class BestPaths(Result):
    """The most probable state paths of one sequence, in order of decreasing probability.

    Attributes
    ----------
    states : ndarray of shape (states,)
    paths : ndarray of shape (k, steps)
        The states of each path.
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

    def __init__(self, states: np.ndarray, indices: np.ndarray, log_prob: np.ndarray, log_likelihood: float) -> None:
        self.states = states
        self.log_prob = log_prob
        self.paths: np.ndarray = labeled(states, indices.ravel()).reshape(indices.shape)
        self.probability = np.exp(np.minimum(log_prob - log_likelihood, 0.0)) if len(log_prob) else np.zeros(0)

    def __len__(self) -> int:
        return len(self.paths)

    def _frame_data(self) -> FrameData:
        """Return one row for each path and time step."""
        n_paths, n_steps = self.paths.shape
        return {
            "path": np.repeat(np.arange(n_paths), n_steps),
            "step": np.tile(np.arange(n_steps), n_paths),
            "state": self.paths.ravel(),
            "log_prob": np.repeat(self.log_prob, n_steps),
            "probability": np.repeat(self.probability, n_steps),
        }

    def _content(self) -> list[ResultTable]:
        """Return the table that is shown."""
        head = ["p(path | steps)", "path"]
        if not len(self):
            return [ResultTable([], head, "no path: the sequence is impossible", align="rl")]
        n_more = self.paths.shape[1] - _STEPS
        more = f" … {n_more} more" if n_more > 0 else ""
        rows = [
            [f"{p:.4g}", " ".join(map(printable, path[:_STEPS])) + more]
            for p, path in zip(self.probability.tolist(), self.paths.tolist(), strict=True)
        ]
        title = f"the {len(self)} best paths: together" if len(self) > 1 else "the best path:"
        return [ResultTable(rows, head, f"{title} {self.probability.sum():.4g} of the probability", align="rl")]
