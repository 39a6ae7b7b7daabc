"""What is read of chains step by step, in NumPy: messages, the trellis, pairs of states, what was expected of a step.

Arguments are those of `chain`, silent steps between those that are seen included.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.kernels import hmm as _chain
from tallybayes.kernels.arguments import Float64Array, Int64Array
from tallybayes.kernels.hmm_arguments import Emission, check, dispatch_gaps
from tallybayes.kernels.reference import hmm as _reference_chain
from tallybayes.kernels.reference import hmm_gaps as _reference_gaps
from tallybayes.kernels.reference.hmm_gaps import GappedTransitions


class Best(NamedTuple):
    """The best paths of one sequence: to every state of every step, and the best of all.

    Attributes
    ----------
    log_delta : array of shape (N, S)
        log p(steps so far, the best path that is in this state now).
    pointers : int64 array of shape (N, S)
        The state before on that path; −1 at the first step, and where no path leads.
    path : int64 array of shape (N,)
        As `viterbi` gives it.
    log_prob : float
        log p(path, sequence).
    """

    log_delta: Float64Array
    pointers: Int64Array
    path: Int64Array
    log_prob: float


def trellis(
    start: npt.ArrayLike,
    transition: npt.ArrayLike | GappedTransitions,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
) -> list[Best]:
    """Return all that `viterbi` goes by.

    Parameters
    ----------
    start, transition, end, emission, offsets
        See the conventions of `chain`.

    Returns
    -------
    list of Best
    """
    path, score = _chain.viterbi(start, transition, end, emission, offsets)
    if isinstance(transition, GappedTransitions):
        first, moves, last, given, cuts = check(start, transition.transition, end, emission, offsets)
        log_delta, pointers = _reference_gaps.trellis(
            first, GappedTransitions(moves, transition.gaps), last, given, cuts
        )
    else:
        first, moves, _, given, cuts = check(start, transition, end, emission, offsets)
        rows, coded = _reference_chain._rows(given), isinstance(given, tuple)
        log_delta, pointers = np.empty(rows.shape), np.full(rows.shape, -1, dtype=np.int64)
        for _, steps in _reference_chain._sequences(cuts):
            scores, taken = _reference_chain.trellis(first, moves, rows[steps], coded=coded)
            log_delta[steps] = scores + taken.sum(axis=0).cumsum()[:, None]
            for t in range(1, len(scores)):
                pointers[steps.start + t] = (scores[t - 1][:, None] + moves).argmax(axis=0)
    pointers[np.isneginf(log_delta)] = -1
    return [
        Best(log_delta[a:b], pointers[a:b], path[a:b], float(score[k]))
        for k, (a, b) in enumerate(pairwise(cuts.tolist()))
    ]


def messages(
    start: npt.ArrayLike,
    transition: npt.ArrayLike | GappedTransitions,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the forward and the backward messages of every step in logs, however small.

    Parameters
    ----------
    start, transition, end, emission, offsets
        See the conventions of `chain`.

    Returns
    -------
    forward : array of shape (N, S)
        log p(steps so far, state).
    backward : array of shape (N, S)
        log p(steps to come, and that it ends there | state).
    log_likelihood : array of shape (M,)
    """
    moves, gaps = transition if isinstance(transition, GappedTransitions) else (transition, None)
    first, checked, last, rows, cuts = check(start, moves, end, emission, offsets)
    gapped = GappedTransitions(checked, np.zeros(cuts[-1], dtype=np.int64) if gaps is None else gaps)
    return _reference_gaps.messages(first, gapped, last, rows, cuts)


@dispatch_gaps
def pairs(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
) -> tuple[list[Float64Array], Float64Array]:
    """Return p(state, state of the next step that is seen | whole sequence) of every two steps in a row.

    Parameters
    ----------
    start, transition, end, emission, offsets
        See the conventions of `chain`.

    Returns
    -------
    pairs : list of arrays of shape (steps − 1, S, S)
    log_likelihood : array of shape (M,)
    """
    given = (start, transition, end, emission, offsets)
    (filtered, _), (smoothed, found) = _chain.filter(*given), _chain.posterior(*given)
    moves, out = np.exp(np.asarray(transition, dtype=np.float64)), []
    for a, b in pairwise(np.asarray(offsets).tolist()):
        before, after = filtered[a:b], smoothed[a:b]
        out.append(before[:-1, :, None] * moves * smoothing_ratios(before, after, moves)[:, None, :])
    return out, found


def smoothing_ratios(before: Float64Array, after: Float64Array, transition: Float64Array) -> Float64Array:
    """What the whole sequence makes of the next step's states, beside what the steps so far expect: a ratio."""
    expected = before[:-1] @ transition
    return np.divide(after[1:], expected, out=np.zeros_like(expected), where=expected > 0)


@dispatch_gaps
def one_step_predictive(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
) -> tuple[Float64Array, Float64Array]:
    """Return what the steps before every step expect of it; `end` says nothing here.

    Parameters
    ----------
    start, transition, end, emission, offsets
        See the conventions of `chain`.

    Returns
    -------
    states : array of shape (N, S)
        log p(state, and that it goes on | steps before).
    log_prob : array of shape (N,)
        log p(step | steps before); −inf from an impossible step on.
    """
    first, moves, _, given, cuts = check(start, transition, None, emission, offsets)
    filtered, score = _chain.filter(first, moves, None, given, cuts)
    rows = _reference_chain._rows(given)
    with np.errstate(divide="ignore"):
        before = np.log(filtered @ np.exp(moves))
    before[1:] = before[:-1].copy()  # each was of the step after
    before[cuts[:-1][np.diff(cuts) > 0]] = first
    told = np.logaddexp.reduce(before + rows, axis=1)
    for k, steps in _reference_chain._sequences(cuts):
        if np.isfinite(score[k]) and not np.isclose(told[steps].sum(), score[k], rtol=1e-9, atol=1e-6):
            # A state that matters had less than floats can tell: once more, in logs.
            n = steps.stop - steps.start
            gapped, alone = GappedTransitions(moves, np.zeros(n, dtype=np.int64)), np.array([0, n])
            before[steps], told[steps] = _reference_gaps.one_step_predictive(first, gapped, None, rows[steps], alone)
    return before, told
