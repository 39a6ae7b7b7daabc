"""Step-by-step results of hidden Markov models in NumPy: messages, trellis, pairs of states, one-step predictions."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tallybayes.kernels import hmm as _hmm
from tallybayes.kernels.arguments import Float64Array, Int64Array
from tallybayes.kernels.hmm_arguments import CheckedInput, HMMInput, check
from tallybayes.kernels.reference import hmm as _reference


class Best(NamedTuple):
    """Most probable paths of one sequence: to every state of every step, and overall.

    Attributes
    ----------
    log_delta : array of shape (N, S)
        log p(observations up to this step, most probable path to this state).
    pointers : int64 array of shape (N, S)
        Previous state on that path; −1 at the first step, and if there is no path.
    path : int64 array of shape (N,)
        Result of `viterbi`.
    log_prob : float
        log p(path, sequence).
    """

    log_delta: Float64Array
    pointers: Int64Array
    path: Int64Array
    log_prob: float


def trellis(model: HMMInput) -> list[Best]:
    """Return the Viterbi trellis of every sequence.

    Parameters
    ----------
    model : HMMInput

    Returns
    -------
    list of Best
    """
    path, score = _hmm.viterbi(model)
    checked = check(model)
    log_delta, pointers = _reference.trellis(checked)
    pointers[np.isneginf(log_delta)] = -1
    return [
        Best(log_delta[a:b], pointers[a:b], path[a:b], float(score[k]))
        for k, (a, b) in enumerate(pairwise(checked.offsets.tolist()))
    ]


def messages(model: HMMInput) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the forward and backward messages of every step, as logarithms that do not underflow.

    Parameters
    ----------
    model : HMMInput

    Returns
    -------
    forward : array of shape (N, S)
        log p(observations up to this step, state).
    backward : array of shape (N, S)
        log p(later observations, end of the sequence | state).
    log_likelihood : array of shape (M,)
    """
    return _reference.messages(check(model))


def pairs(model: HMMInput) -> tuple[list[Float64Array], Float64Array]:
    """Return p(state, state of the next observed step | sequence) of every two consecutive steps.

    Parameters
    ----------
    model : HMMInput

    Returns
    -------
    pairs : list of arrays of shape (steps − 1, S, S)
    log_likelihood : array of shape (M,)
    """
    checked = check(model)
    if checked.gaps is not None:
        return _reference.pairs(checked)
    filtered, _ = _hmm.filter(model)
    smoothed, logs = _hmm.posterior(model)
    transition = np.exp(checked.transition)
    out = []
    for a, b in pairwise(checked.offsets.tolist()):
        ratios = smoothing_ratios(filtered[a:b], smoothed[a:b], transition)
        out.append(filtered[a:b][:-1, :, None] * transition * ratios[:, None, :])
    return out, logs


def smoothing_ratios(filtered: Float64Array, smoothed: Float64Array, transition: Float64Array) -> Float64Array:
    """Return p(state | sequence) / p(state | earlier observations) of every step after the first; 0 if impossible."""
    predicted = filtered[:-1] @ transition
    return np.divide(smoothed[1:], predicted, out=np.zeros_like(predicted), where=predicted > 0)


def one_step_predictive(model: HMMInput) -> tuple[Float64Array, Float64Array]:
    """Return the predictive distribution of every step given the earlier steps; `end` has no effect.

    Parameters
    ----------
    model : HMMInput

    Returns
    -------
    states : array of shape (N, S)
        log p(state, the sequence continues | earlier observations).
    log_prob : array of shape (N,)
        log p(observation | earlier observations); −inf from the first impossible step on.
    """
    endless = HMMInput(model.start, model.transition, None, model.emission, model.offsets)
    checked = check(endless)
    if checked.gaps is not None:
        return _reference.one_step_predictive(checked)
    filtered, score = _hmm.filter(endless)
    rows = _reference.emission_rows(checked.emission)
    with np.errstate(divide="ignore"):
        following = np.log(filtered @ np.exp(checked.transition))
    states = np.empty_like(following)
    states[1:] = following[:-1]
    states[checked.offsets[:-1][np.diff(checked.offsets) > 0]] = checked.start
    log_prob = np.logaddexp.reduce(states + rows, axis=1)
    for k, (first, last) in enumerate(pairwise(checked.offsets.tolist())):
        steps = slice(first, last)
        if np.isfinite(score[k]) and not np.isclose(log_prob[steps].sum(), score[k], rtol=1e-9, atol=1e-6):
            # The filtered probability of a relevant state underflowed: repeat the sequence in logarithms.
            offsets = np.array([0, last - first])
            single = CheckedInput(checked.start, checked.transition, None, rows[steps], offsets, None)
            states[steps], log_prob[steps] = _reference.one_step_predictive(single)
    return states, log_prob
