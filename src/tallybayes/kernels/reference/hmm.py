"""Inference in hidden Markov models in NumPy, in logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference.groups import valid_codes

Emission = Float64Array | tuple[AnyArray, Float64Array]
_SHIFT_INTERVAL = 4  # number of steps after which the largest score is subtracted, as in the compiled kernels


class ExpectedTransitions(NamedTuple):
    """Expected sufficient statistics of all sequences: the result of the E-step of Baum–Welch.

    Attributes
    ----------
    start : array of shape (S,)
        Expected counts of the states of first steps.
    transition : array of shape (S, S)
        Expected transitions from row to column.
    end : array of shape (S,)
        Expected counts of the states of last steps.
    emission : array of shape (N, S), or (L, S) for codes
        p(state | sequence) of every step times the weight of its sequence; for codes its sum over the steps with each
        level.
    log_likelihood : array of shape (M,)
        Log likelihood of every sequence, without weights.
    """

    start: Float64Array
    transition: Float64Array
    end: Float64Array
    emission: Float64Array
    log_likelihood: Float64Array


def _log_sum(x: Float64Array, axis: int | None = None) -> Any:
    """Return log Σ exp x; −inf if all elements are −inf."""
    largest = np.max(x, axis=axis, keepdims=True)
    middle = np.where(np.isneginf(largest), 0.0, largest)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(x - middle), axis=axis)) + np.squeeze(middle, axis=axis)


def _levels(codes: AnyArray, n_levels: int) -> Int64Array:
    """Return the codes as int64, −1 for a missing one. Raise IndexError for an invalid code."""
    valid, invalid = valid_codes(codes, n_levels)
    if invalid.any():
        step = int(invalid.argmax())
        raise IndexError(f"step {step} has code {codes[step]}, expected 0 to {n_levels - 1}, or -1 where it is missing")
    return np.where(valid, codes.astype(np.int64), -1)


def emission_rows(emission: Emission) -> Float64Array:
    """Return log p(observation | state) of every step, shape (steps, states)."""
    if isinstance(emission, tuple):
        codes, table = emission
        levels = _levels(codes, len(table))
        rows = np.zeros((len(levels), table.shape[1]))
        rows[levels >= 0] = table[levels[levels >= 0]]
        return rows
    invalid = ~(emission < np.inf)
    if invalid.any():
        step, state = np.unravel_index(invalid.argmax(), emission.shape)
        raise ValueError(
            f"emission holds {emission[step, state]} at step {step}, state {state}; expected logarithms: "
            "numbers or -inf"
        )
    return emission


def nonempty_sequences(offsets: Int64Array) -> Iterator[tuple[int, slice]]:
    """Yield the index and the steps of every nonempty sequence."""
    for k, (first, last) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        if last > first:
            yield k, slice(first, last)


def _forward(start: Float64Array, transition: Float64Array, rows: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return log p(state | observations so far), (steps, states), and log p(observation | earlier ones), (steps,).

    Both are −inf from the first impossible step on.
    """
    states = np.full_like(rows, -np.inf)
    gains = np.full(len(rows), -np.inf)
    predicted = start
    for t, row in enumerate(rows):
        joint = predicted + row
        gains[t] = _log_sum(joint)
        if np.isneginf(gains[t]):
            break
        states[t] = joint - gains[t]
        predicted = _log_sum(states[t][:, None] + transition, axis=0)
    return states, gains


def _backward(transition: Float64Array, end: Float64Array, rows: Float64Array, states: Float64Array) -> Float64Array:
    """Return log p(later observations | state) − log p(later observations | observations so far) of every step."""
    beta = np.empty_like(rows)
    beta[-1] = end
    for t in range(len(rows) - 1, -1, -1):
        if t + 1 < len(rows):
            beta[t] = _log_sum(transition + (rows[t + 1] + beta[t + 1]), axis=1)
        beta[t] -= _log_sum(states[t] + beta[t])
    return beta


def end_or_zeros(start: Float64Array, end: Float64Array | None) -> Float64Array:
    """Return the log end probabilities, by default 0 for all states."""
    return np.zeros_like(start) if end is None else end


def chain_log_likelihood(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Emission,
    offsets: Int64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> None:
    """Write log p(sequence) of every sequence."""
    rows = np.empty((offsets[-1], len(start)))
    chain_filter(start, transition, end, emission, offsets, rows, log_likelihood, threads)


def chain_filter(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Emission,
    offsets: Int64Array,
    rows: Float64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> None:
    """Write p(state | observations so far) of every step, and log p(sequence)."""
    all_rows = emission_rows(emission)
    log_likelihood[:] = 0.0
    for k, steps in nonempty_sequences(offsets):
        states, gains = _forward(start, transition, all_rows[steps])
        rows[steps] = np.exp(states)
        log_likelihood[k] = gains.sum() + _log_sum(states[-1] + end_or_zeros(start, end))


def chain_posterior(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Emission,
    offsets: Int64Array,
    rows: Float64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> None:
    """Write p(state | sequence) of every step, and log p(sequence)."""
    all_rows = emission_rows(emission)
    ends = end_or_zeros(start, end)
    log_likelihood[:] = 0.0
    rows[:] = 0.0
    for k, steps in nonempty_sequences(offsets):
        states, gains = _forward(start, transition, all_rows[steps])
        log_likelihood[k] = gains.sum() + _log_sum(states[-1] + ends)
        if not np.isneginf(log_likelihood[k]):
            rows[steps] = np.exp(states + _backward(transition, ends, all_rows[steps], states))


def chain_expected(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Emission,
    offsets: Int64Array,
    weight: Float64Array | None,
    rows: Float64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return expected starts, transitions and ends; write expected emissions to `rows`, and log p(sequence).

    The expected emissions are (steps, states) or, for codes, (levels, states).
    """
    all_rows = emission_rows(emission)
    n_states = len(start)
    starts = np.zeros(n_states)
    transitions = np.zeros((n_states, n_states))
    ends = np.zeros(n_states)
    log_likelihood[:] = 0.0
    rows[:] = 0.0
    for k, steps in nonempty_sequences(offsets):
        states, gains = _forward(start, transition, all_rows[steps])
        log_likelihood[k] = gains.sum() + _log_sum(states[-1] + end_or_zeros(start, end))
        sequence_weight = 1.0 if weight is None else weight[k]
        if np.isneginf(log_likelihood[k]) or sequence_weight == 0.0:
            continue
        beta = _backward(transition, end_or_zeros(start, end), all_rows[steps], states)
        counts = sequence_weight * np.exp(states + beta)
        starts += counts[0]
        ends += counts[-1]
        following = all_rows[steps] + beta
        for t in range(len(states) - 1):
            joint = states[t][:, None] + transition + following[t + 1]
            transitions += sequence_weight * np.exp(joint - _log_sum(joint))
        if isinstance(emission, tuple):
            levels = _levels(emission[0][steps], len(emission[1]))
            np.add.at(rows, levels[levels >= 0], counts[levels >= 0])
        else:
            rows[steps] = counts
    return starts, transitions, ends


def chain_viterbi(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Emission,
    offsets: Int64Array,
    path: Int64Array,
    score: Float64Array,
    threads: int,
) -> None:
    """Write the most probable states of every sequence, and log p(states, sequence).

    The largest score is subtracted from time to time, at the same steps as in the compiled kernels: rounding decides
    between equally probable paths.
    """
    all_rows = emission_rows(emission)
    score[:] = 0.0
    for k, steps in nonempty_sequences(offsets):
        scores, shifts = trellis(start, transition, all_rows[steps], coded=isinstance(emission, tuple))
        final = scores[-1] + end_or_zeros(start, end)
        best = int(final.argmax())
        if np.isneginf(final[best]):
            score[k] = -np.inf
            path[steps] = -1
            continue
        score[k] = final[best] + math.fsum(shifts.ravel())
        path[steps.stop - 1] = best
        for t in range(len(scores) - 2, -1, -1):
            best = int((scores[t] + transition[:, best]).argmax())
            path[steps.start + t] = best


def chain_best_paths(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Emission,
    offsets: Int64Array,
    paths: Int64Array,
    score: Float64Array,
    threads: int,
) -> None:
    """Write the most probable paths of every sequence, and log p(path, sequence); −1 and −inf if there are fewer."""
    all_rows = emission_rows(emission)
    ends = end_or_zeros(start, end)
    coded = isinstance(emission, tuple)
    score[:] = -np.inf
    score[np.diff(offsets) == 0, 0] = 0.0
    for k, steps in nonempty_sequences(offsets):
        states, logs = n_best_paths(start, lambda _: transition, ends, all_rows[steps], score.shape[1], coded=coded)
        paths[steps] = -1
        paths[steps, : len(logs)] = states
        score[k, : len(logs)] = logs


def n_best_paths(
    start: Float64Array,
    transitions: Callable[[int], Float64Array],
    end: Float64Array,
    rows: Float64Array,
    n_paths: int,
    *,
    coded: bool,
) -> tuple[Int64Array, Float64Array]:
    """Return the best paths of one sequence, (steps, paths), and their scores; ``transitions(t)`` lead to step t.

    The list Viterbi algorithm: every state keeps its `n_paths` best partial paths. Scores are shifted as in `trellis`.
    """
    n_steps, n_states = rows.shape
    shifts = np.zeros((2, n_steps))
    if not coded:
        shifts[0] = [_largest(row) for row in rows]
    rows = rows - shifts[0][:, None]
    scores = np.full((n_states, n_paths), -np.inf)  # of the best paths to every state, descending
    scores[:, 0] = start + rows[0]
    origins = np.zeros((n_steps, n_states, n_paths), dtype=np.int64)  # index of the previous path, state by state
    state = np.arange(n_states)
    for t in range(1, n_steps):
        shifts[1, t] = _largest(scores[:, 0]) if t % _SHIFT_INTERVAL == 0 else 0.0
        transition = transitions(t)
        best = np.empty_like(scores)
        used = np.zeros((n_states, n_states), dtype=np.intp)  # number of paths of one state that continue to another
        heads = scores[:, :1] + transition
        for rank in range(n_paths):
            origin = heads.argmax(axis=0)
            best[:, rank] = heads[origin, state]
            origins[t, :, rank] = origin * n_paths + used[origin, state]
            used[origin, state] += 1
            count = used[origin, state]
            following = np.where(count < n_paths, scores[origin, np.minimum(count, n_paths - 1)], -np.inf)
            heads[origin, state] = following + transition[origin, state]
        scores = best + (rows[t] - shifts[1, t])[:, None]
    final = (scores + end[:, None]).ravel()
    last = np.argsort(-final, kind="stable")[:n_paths]
    last = last[np.isfinite(final[last])]
    logs = final[last] + math.fsum(shifts.ravel())
    states = np.empty((n_steps, len(last)), dtype=np.int64)
    for t in range(n_steps - 1, -1, -1):
        states[t] = last // n_paths
        last = origins[t, last // n_paths, last % n_paths]
    return states, logs


def chain_draw_paths(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Emission,
    offsets: Int64Array,
    uniform: Float64Array,
    paths: Int64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> None:
    """Write paths drawn by uniform random numbers, and log p(sequence); −1 if the sequence is impossible."""
    all_rows = emission_rows(emission)
    ends = end_or_zeros(start, end)
    log_likelihood[:] = 0.0
    for k, steps in nonempty_sequences(offsets):
        states, gains = _forward(start, transition, all_rows[steps])
        log_likelihood[k] = gains.sum() + _log_sum(states[-1] + ends)
        possible = not np.isneginf(log_likelihood[k])
        paths[steps] = sample_paths(states, lambda _: transition, ends, uniform[steps]) if possible else -1


def sample_paths(
    states: Float64Array, transitions: Callable[[int], Float64Array], end: Float64Array, uniform: Float64Array
) -> Int64Array:
    """Draw paths of one sequence, (steps, paths), from the last step backward; ``transitions(t)`` lead to step t.

    ``states`` is log p(state, observations so far), up to a constant per step.
    """
    paths = np.empty(uniform.shape, dtype=np.int64)
    following = np.broadcast_to(end, (uniform.shape[1], len(end)))
    for t in range(len(states) - 1, -1, -1):
        logs = states[t] + following
        cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf)), axis=1)
        total = cumulative[:, -1]
        threshold = np.minimum(uniform[t] * total, np.nextafter(total, 0.0))  # below the total despite rounding
        paths[t] = (cumulative > threshold[:, None]).argmax(axis=1)
        following = transitions(t).T[paths[t]] if t else following
    return paths


def trellis(
    start: Float64Array, transition: Float64Array, rows: Float64Array, *, coded: bool
) -> tuple[Float64Array, Float64Array]:
    """Return the scores of the best paths to every state of every step, and the shifts, (2, steps).

    The score of a step is the log probability minus all shifts up to it: of the emissions and of previous scores.
    """
    shifts = np.zeros((2, len(rows)))
    if not coded:
        shifts[0] = [_largest(row) for row in rows]
    rows = rows - shifts[0][:, None]
    scores = np.empty_like(rows)
    scores[0] = start + rows[0]
    for t in range(1, len(rows)):
        shifts[1, t] = _largest(scores[t - 1]) if t % _SHIFT_INTERVAL == 0 else 0.0
        scores[t] = (scores[t - 1][:, None] + transition).max(axis=0) + (rows[t] - shifts[1, t])
    return scores, shifts


def _largest(x: Float64Array) -> float:
    """Return the largest number, or 0 if all are −inf."""
    largest = float(x.max())
    return 0.0 if largest == -math.inf else largest
