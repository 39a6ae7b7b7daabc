"""Decoding: log-likelihoods of sequences, and the probabilities of their states."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tallybayes._utils.parameter_checks import check_count
from tallybayes.errors import DataError
from tallybayes.kernels import hmm as kernels
from tallybayes.kernels import hmm_messages
from tallybayes.kernels.hmm import HMMInput
from tallybayes.messages import IMPOSSIBLE_HINT
from tallybayes.models.hmm.fitting.training_sequences import read_states
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.typing import Labels
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
    from tallybayes.models.hmm.hmm_parameters import HMMParameters

Kernel = Callable[[HMMInput], tuple[np.ndarray, np.ndarray]]  # arrays of all steps, and of all sequences

_DECODERS: dict[str, Kernel] = {"viterbi": kernels.viterbi, "posterior": kernels.posterior}


def score_samples(hmm: EstimatedHMM, sequences: Sequences) -> np.ndarray:
    """Return log p(sequence) of every sequence, states summed out."""
    inputs = hmm.checked_parameters.kernel_inputs(sequences)
    log_prob = np.concatenate([kernels.log_likelihood(block) for block in inputs])
    warn_impossible(hmm, sequences, log_prob)
    return log_prob


def accuracy(hmm: EstimatedHMM, sequences: Sequences, labels: Labels) -> float:
    """Return the proportion of labeled time steps whose state on the Viterbi path is the given one."""
    codes, domain = read_states(labels)
    assert codes is not None
    path = viterbi_path(hmm.checked_parameters, sequences)
    truth = np.append(hmm.states.positions_of(domain.levels), -1)[codes]
    return float(np.mean((path == truth)[codes >= 0]))


def predict(hmm: EstimatedHMM, sequences: Sequences, decode: str) -> list[np.ndarray]:
    """Return the Viterbi path of every sequence or, under "posterior", the most probable state of every time step."""
    if decode not in _DECODERS:
        raise DataError.wrong_type("decode", repr(decode), " or ".join(map(repr, _DECODERS)))
    steps, log_prob = run_and_warn(hmm, _DECODERS[decode], sequences)
    paths = steps if decode == "viterbi" else [proba.argmax(axis=1) for proba in steps]
    labels = hmm.state_labels
    if not _are_numbered(labels):
        paths = [labels[path] for path in paths]
    for number in np.flatnonzero(np.isneginf(log_prob)):
        paths[number] = np.full(len(paths[number]), None)
    return paths


def predict_proba(hmm: EstimatedHMM, sequences: Sequences) -> list[np.ndarray]:
    """Return the smoothed probabilities p(state | whole sequence) of every time step."""
    return run_and_warn(hmm, kernels.posterior, sequences)[0]


def filter_proba(hmm: EstimatedHMM, sequences: Sequences) -> list[np.ndarray]:
    """Return the filtered probabilities p(state | observations so far) of every time step."""
    return run_and_warn(hmm, kernels.filter, sequences)[0]


def predict_transition_proba(hmm: EstimatedHMM, sequences: Sequences) -> list[np.ndarray]:
    """Return p(state, next state | whole sequence) of every two consecutive time steps (the ξ of Baum and Welch)."""
    inputs = hmm.checked_parameters.kernel_inputs(sequences)
    parts = [hmm_messages.pairs(block) for block in inputs]
    warn_impossible(hmm, sequences, np.concatenate([log_prob for _, log_prob in parts]))
    return [proba for by_sequence, _ in parts for proba in by_sequence]


def predict_next(hmm: EstimatedHMM, sequences: Sequences, n: int) -> np.ndarray:
    """Return p(state) of the `n` time steps after every sequence, given that it continues."""
    n = check_count("n", n)
    parameters = hmm.checked_parameters
    filtered, _ = run_kernel(parameters, kernels.filter, sequences)
    out = np.empty((len(filtered), n, len(parameters.start)))
    for number, steps in enumerate(filtered):
        out[number] = parameters.states_ahead(steps, n)
    return out


def log_joint(hmm: EstimatedHMM, sequences: Sequences, labels: Labels) -> np.ndarray:
    """Return log p(sequence, states) of every sequence."""
    codes, domain = read_states(labels)
    if codes is None or (codes < 0).any():
        raise DataError(
            "y has time steps without a state; log p(sequence, states) needs all states.\n"
            "    Use score_samples, which sums over unknown states."
        )
    path = hmm.states.positions_of(domain.levels)[codes]
    blocks = hmm.checked_parameters.blocks(sequences, path)
    log_prob = np.concatenate([kernels.log_likelihood(block.inputs) for block in blocks])
    unknown = np.flatnonzero(path < 0)  # no state of the model
    log_prob[np.searchsorted(sequences.offsets, unknown, side="right") - 1] = -np.inf
    return log_prob


def run_kernel(parameters: HMMParameters, kernel: Kernel, sequences: Sequences) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the result of a kernel: one array for each sequence, and its numbers for all sequences."""
    steps: list[np.ndarray] = []
    scores = []
    for block in parameters.kernel_inputs(sequences):
        rows, score = kernel(block)
        steps += [rows[first:last] for first, last in pairwise(np.asarray(block.offsets).tolist())]
        scores.append(score)
    return steps, np.concatenate(scores)


def run_and_warn(hmm: EstimatedHMM, kernel: Kernel, sequences: Sequences) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the result of a kernel; warn about sequences whose first number is −inf."""
    steps, scores = run_kernel(hmm.checked_parameters, kernel, sequences)
    warn_impossible(hmm, sequences, scores if scores.ndim == 1 else scores[:, 0])
    return steps, scores


def viterbi_path(parameters: HMMParameters, sequences: Sequences) -> np.ndarray:
    """Return the state indices of the Viterbi paths of all sequences; 0 for an impossible sequence."""
    paths, _ = run_kernel(parameters, kernels.viterbi, sequences)
    return np.maximum(np.concatenate([np.zeros(0, dtype=np.int64), *paths]), 0)


def warn_impossible(hmm: EstimatedHMM, sequences: Sequences, log_prob: np.ndarray) -> None:
    """Warn about sequences of probability 0: name the first one, and the time step at which it becomes impossible."""
    impossible = np.flatnonzero(np.isneginf(log_prob))
    if not len(impossible):
        return
    (filtered,), _ = run_kernel(hmm.checked_parameters, kernels.filter, sequences.some(impossible[:1])[1])
    steps = np.flatnonzero(filtered.sum(axis=1) == 0)
    where = f" at step {steps[0]}" if len(steps) else " at its end"
    more = f", and {len(impossible) - 1} more," if len(impossible) > 1 else ""
    warn(f"sequence {impossible[0]}{more} is impossible{where}: its states are undefined.\n    {IMPOSSIBLE_HINT}")


def labeled(labels: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Return the labels of a path of state indices, in their own type; None at every step if the path is −1."""
    if len(path) and path[0] < 0:
        return np.full(len(path), None)
    return path if _are_numbered(labels) else labels[path]


def _are_numbered(labels: np.ndarray) -> bool:
    """Return whether the states are the integers from 0 on."""
    return labels.dtype == np.int64 and np.array_equal(labels, np.arange(len(labels)))
