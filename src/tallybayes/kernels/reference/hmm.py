"""Hidden Markov chains in NumPy, on logarithms: what the compiled loops must give, written for reading."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array

Emission = Float64Array | tuple[AnyArray, Float64Array]
SCALED_STEPS = 4  # once in so many, scores are brought back to 0


class ExpectedTransitions(NamedTuple):
    """What is expected to have happened in the sequences, added up: the statistics of one step of Baum-Welch.

    Attributes
    ----------
    start : array of shape (S,)
        Of the first steps, how many were in each state.
    transition : array of shape (S, S)
        Moves from row to column.
    end : array of shape (S,)
        Of the last steps.
    emission : array of shape (N, S), or (L, S) for codes
        p(state | sequence) of every step, times the weight of its sequence; for codes the sum of these over the steps
        with each level.
    log_likelihood : array of shape (M,)
        Not weighted.
    """

    start: Float64Array
    transition: Float64Array
    end: Float64Array
    emission: Float64Array
    log_likelihood: Float64Array


def _log_sum(x: Float64Array, axis: int | None = None) -> Any:
    """Return log Σ exp x; −inf where there is nothing but −inf."""
    largest = np.max(x, axis=axis, keepdims=True)
    middle = np.where(np.isneginf(largest), 0.0, largest)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(x - middle), axis=axis)) + np.squeeze(middle, axis=axis)


def _levels(codes: AnyArray, n_levels: int) -> Int64Array:
    """Return the codes as int64, −1 where one is missing; refuse those that are neither valid nor missing."""
    missing = codes == (np.iinfo(codes.dtype).max if codes.dtype.kind == "u" else -1)
    valid = (codes >= 0) & (codes < n_levels)
    refused = ~valid & ~missing
    if refused.any():
        step = int(refused.argmax())
        raise IndexError(f"step {step} has code {codes[step]}, expected 0 to {n_levels - 1}, or -1 where it is missing")
    return np.where(valid, codes.astype(np.int64), -1)


def _rows(emission: Emission) -> Float64Array:
    """Return the log probability of every step in every state, shape (steps, states)."""
    if isinstance(emission, tuple):
        codes, table = emission
        levels = _levels(codes, len(table))
        rows = np.zeros((len(levels), table.shape[1]))
        rows[levels >= 0] = table[levels[levels >= 0]]
        return rows
    refused = ~(emission < np.inf)
    if refused.any():
        step, state = np.unravel_index(refused.argmax(), emission.shape)
        raise ValueError(
            f"emission holds {emission[step, state]} at step {step}, state {state}; expected logarithms: "
            "numbers or -inf"
        )
    return emission


def _sequences(offsets: Int64Array) -> Iterator[tuple[int, slice]]:
    """Yield the number and the steps of every sequence that has any."""
    for k, (first, last) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        if last > first:
            yield k, slice(first, last)


def _forward(start: Float64Array, transition: Float64Array, rows: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return log p(state | steps so far), (steps, states), and log p(step | those before it), (steps,).

    From the first impossible step on both are −inf.
    """
    states, gains = np.full_like(rows, -np.inf), np.full(len(rows), -np.inf)
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
    """Return log p(later steps | state) less log p(later steps | steps so far), of a possible sequence."""
    beliefs = np.empty_like(rows)
    beliefs[-1] = end
    for t in range(len(rows) - 1, -1, -1):
        if t + 1 < len(rows):
            beliefs[t] = _log_sum(transition + (rows[t + 1] + beliefs[t + 1]), axis=1)
        beliefs[t] -= _log_sum(states[t] + beliefs[t])
    return beliefs


def _ending(start: Float64Array, end: Float64Array | None) -> Float64Array:
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
    """Write p(state | steps so far) of every step, and log p(sequence)."""
    given = _rows(emission)
    log_likelihood[:] = 0.0
    for k, steps in _sequences(offsets):
        states, gains = _forward(start, transition, given[steps])
        rows[steps] = np.exp(states)
        log_likelihood[k] = gains.sum() + _log_sum(states[-1] + _ending(start, end))


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
    """Write p(state | whole sequence) of every step, and log p(sequence)."""
    given = _rows(emission)
    log_likelihood[:] = 0.0
    rows[:] = 0.0
    for k, steps in _sequences(offsets):
        states, gains = _forward(start, transition, given[steps])
        log_likelihood[k] = gains.sum() + _log_sum(states[-1] + _ending(start, end))
        if not np.isneginf(log_likelihood[k]):
            rows[steps] = np.exp(states + _backward(transition, _ending(start, end), given[steps], states))


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

    The emissions are (steps, states) or, for codes, (levels, states).
    """
    given = _rows(emission)
    n_states = len(start)
    starts, moves, ends = np.zeros(n_states), np.zeros((n_states, n_states)), np.zeros(n_states)
    log_likelihood[:] = 0.0
    rows[:] = 0.0
    for k, steps in _sequences(offsets):
        states, gains = _forward(start, transition, given[steps])
        log_likelihood[k] = gains.sum() + _log_sum(states[-1] + _ending(start, end))
        share = 1.0 if weight is None else weight[k]
        if np.isneginf(log_likelihood[k]) or share == 0.0:
            continue
        beliefs = _backward(transition, _ending(start, end), given[steps], states)
        shares = share * np.exp(states + beliefs)
        starts += shares[0]
        ends += shares[-1]
        after = given[steps] + beliefs
        for t in range(len(states) - 1):
            joint = states[t][:, None] + transition + after[t + 1]
            moves += share * np.exp(joint - _log_sum(joint))
        if isinstance(emission, tuple):
            levels = _levels(emission[0][steps], len(emission[1]))
            np.add.at(rows, levels[levels >= 0], shares[levels >= 0])
        else:
            rows[steps] = shares
    return starts, moves, ends


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

    The largest is taken out of the scores now and then, so that no digits are lost: where and how the compiled loops do
    it, because paths that are equally good are told apart by rounding.
    """
    given = _rows(emission)
    score[:] = 0.0
    for k, steps in _sequences(offsets):
        scores, taken = trellis(start, transition, given[steps], coded=isinstance(emission, tuple))
        final = scores[-1] + _ending(start, end)
        best = int(final.argmax())
        if np.isneginf(final[best]):
            score[k] = -np.inf
            path[steps] = -1
            continue
        score[k] = final[best] + math.fsum(taken.ravel())
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
    """Write the most probable paths of every sequence, and log p(path, sequence) of each; −1 and −inf where fewer."""
    given, ending = _rows(emission), _ending(start, end)
    score[:] = -np.inf
    score[np.diff(offsets) == 0, 0] = 0.0
    for k, steps in _sequences(offsets):
        coded = isinstance(emission, tuple)
        places, found = several(start, lambda _: transition, ending, given[steps], score.shape[1], coded=coded)
        paths[steps] = -1
        paths[steps, : len(found)], score[k, : len(found)] = places, found


def several(
    start: Float64Array,
    moves: Callable[[int], Float64Array],
    end: Float64Array,
    rows: Float64Array,
    n_paths: int,
    *,
    coded: bool,
) -> tuple[Int64Array, Float64Array]:
    """Return the best paths of one sequence, (steps, paths), and their scores; ``moves(t)`` lead to step t.

    The largest is taken out of the scores as in `trellis`.
    """
    n_steps, n_states = rows.shape
    taken = np.zeros((2, n_steps))
    if not coded:
        taken[0] = [_largest(row) for row in rows]
    rows = rows - taken[0][:, None]
    scores = np.full((n_states, n_paths), -np.inf)  # of the best paths to every state, falling
    scores[:, 0] = start + rows[0]
    came = np.zeros((n_steps, n_states, n_paths), dtype=np.int64)  # from which of them, all in a row
    each = np.arange(n_states)
    for t in range(1, n_steps):
        taken[1, t] = _largest(scores[:, 0]) if t % SCALED_STEPS == 0 else 0.0
        best, transition = np.empty_like(scores), moves(t)
        used = np.zeros((n_states, n_states), dtype=np.intp)  # how many of each state's paths go on to which
        heads = scores[:, :1] + transition
        for rank in range(n_paths):
            origin = heads.argmax(axis=0)
            best[:, rank] = heads[origin, each]
            came[t, :, rank] = origin * n_paths + used[origin, each]
            used[origin, each] += 1
            now = used[origin, each]
            following = np.where(now < n_paths, scores[origin, np.minimum(now, n_paths - 1)], -np.inf)
            heads[origin, each] = following + transition[origin, each]
        scores = best + (rows[t] - taken[1, t])[:, None]
    final = (scores + end[:, None]).ravel()
    last = np.argsort(-final, kind="stable")[:n_paths]
    last = last[np.isfinite(final[last])]
    found, places = final[last] + math.fsum(taken.ravel()), np.empty((n_steps, len(last)), dtype=np.int64)
    for t in range(n_steps - 1, -1, -1):
        places[t] = last // n_paths
        last = came[t, last // n_paths, last % n_paths]
    return places, found


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
    """Write paths drawn by numbers from 0 up to 1, and log p(sequence); −1 where that is impossible."""
    given, ending = _rows(emission), _ending(start, end)
    log_likelihood[:] = 0.0
    for k, steps in _sequences(offsets):
        states, gains = _forward(start, transition, given[steps])
        log_likelihood[k] = gains.sum() + _log_sum(states[-1] + ending)
        possible = not np.isneginf(log_likelihood[k])
        paths[steps] = drawn(states, lambda _: transition, ending, uniform[steps]) if possible else -1


def drawn(
    states: Float64Array, moves: Callable[[int], Float64Array], end: Float64Array, uniform: Float64Array
) -> Int64Array:
    """Return paths of one sequence, (steps, paths), drawn from the last step back; ``moves(t)`` lead to step t.

    ``states`` are log p(state, steps so far), up to a constant at every step.
    """
    paths = np.empty(uniform.shape, dtype=np.int64)
    for t in range(len(states) - 1, -1, -1):
        after = (
            np.broadcast_to(end, (len(paths[t]), len(end))) if t + 1 == len(states) else moves(t + 1).T[paths[t + 1]]
        )
        here = states[t] + after
        upto = np.cumsum(np.exp(here - here.max(axis=1, keepdims=True, initial=-np.inf)), axis=1)
        total = upto[:, -1]
        cut = np.minimum(uniform[t] * total, np.nextafter(total, 0.0))  # rounding may not pass the last one
        paths[t] = (upto > cut[:, None]).argmax(axis=1)
    return paths


def trellis(
    start: Float64Array, transition: Float64Array, rows: Float64Array, *, coded: bool
) -> tuple[Float64Array, Float64Array]:
    """Return the scores of the best paths to every state of every step, and what was taken out of them, (2, steps).

    The scores of a step lack all that was taken out up to it: of its emission, and of the scores before it.
    """
    taken = np.zeros((2, len(rows)))
    if not coded:
        taken[0] = [_largest(row) for row in rows]
    rows = rows - taken[0][:, None]
    scores = np.empty_like(rows)
    scores[0] = start + rows[0]
    for t in range(1, len(rows)):
        taken[1, t] = _largest(scores[t - 1]) if t % SCALED_STEPS == 0 else 0.0
        scores[t] = (scores[t - 1][:, None] + transition).max(axis=0) + (rows[t] - taken[1, t])
    return scores, taken


def _largest(x: Float64Array) -> float:
    """Return the largest number, or 0 where there is nothing but −inf."""
    largest = float(x.max())
    return 0.0 if largest == -math.inf else largest
