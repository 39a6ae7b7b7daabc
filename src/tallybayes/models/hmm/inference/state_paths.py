"""State paths given a sequence: the k most probable ones, and random draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes._utils.parameter_checks import check_count, random_generator
from tallybayes.errors import printable
from tallybayes.kernels import hmm as kernels
from tallybayes.kernels.hmm import HMMInput
from tallybayes.models.hmm.inference.decoding import labeled, run_and_warn
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.results.result import FrameData, Result, ResultTable
from tallybayes.typing import RandomState

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM

_STEPS = 12  # at most so many are shown


def best_paths(hmm: EstimatedHMM, sequences: Sequences, k: int) -> list[BestPaths]:
    """Return the `k` most probable state paths of every sequence, by list Viterbi decoding."""
    labels = hmm.state_labels
    longest = int(sequences.lengths.max(initial=0))
    n_paths = min(check_count("k", k), len(labels) ** min(longest, 40))  # at most the number of different paths

    def kernel(block: HMMInput) -> tuple[np.ndarray, np.ndarray]:
        """Return the paths, and the log-likelihood with the log probabilities of the paths."""
        paths, log_prob = kernels.best_paths(block, n_paths)
        return paths, np.column_stack([kernels.log_likelihood(block), log_prob])

    paths, scores = run_and_warn(hmm, kernel, sequences)
    n_possible = np.isfinite(scores[:, 1:]).sum(axis=1).tolist()
    return [
        BestPaths(labels, path[:, :n].T, score[1 : n + 1], score[0])
        for path, score, n in zip(paths, scores, n_possible, strict=True)
    ]


def sample_paths(hmm: EstimatedHMM, sequences: Sequences, n: int, random_state: RandomState) -> list[np.ndarray]:
    """Return `n` paths drawn from p(path | sequence) for every sequence, by forward filtering, backward sampling."""
    n = check_count("n", n, 0)
    rng = random_generator(random_state)

    def kernel(block: HMMInput) -> tuple[np.ndarray, np.ndarray]:
        """Return drawn paths, and the log-likelihood."""
        n_steps = int(np.asarray(block.offsets)[-1])
        return kernels.draw_paths(block, rng.random((n_steps, n)))

    paths, _ = run_and_warn(hmm, kernel, sequences)
    return [labeled(hmm.state_labels, path.T.ravel()).reshape(path.T.shape) for path in paths]


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
