"""Inference in hidden Markov models in NumPy, in logarithms, with or without unobserved time steps.

Sequences are processed together, step by step. Forward and backward messages are normalized at every step, so that
long sequences lose no digits.

Before step t of a sequence there may be ``gaps[t]`` unobserved steps. Its transition matrix is therefore Aᵍ⁺¹, and the
first state has the distribution start · Aᵍ. A matrix power takes about log₂ g products, once for every distinct gap.
The expected transitions within all gaps of one length take as many products, regardless of their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.hmm_arguments import CheckedInput
from tallybayes.kernels.reference.groups import valid_codes

_MAX_CELLS = 1 << 21  # of the matrices of pairs of states that are computed at once
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


class _Steps(NamedTuple):
    """The steps of all sequences, with the log transition matrix that leads to each."""

    start: Float64Array
    powers: Float64Array  # logs of the distinct powers of the transition matrix
    power_of: Int64Array  # index of the power of every step
    exponents: Int64Array  # of the powers
    end: Float64Array
    emission: Float64Array
    offsets: Int64Array

    def rounds(self) -> Iterator[tuple[int, Int64Array]]:
        """Yield batches of steps with the same position in their sequences, and that position."""
        most = max(1, _MAX_CELLS // len(self.start) ** 2)
        sizes = np.diff(self.offsets)
        for position in range(int(sizes.max(initial=0))):
            steps = self.offsets[:-1][sizes > position] + position
            yield from ((position, steps[k : k + most]) for k in range(0, len(steps), most))

    def joint(self, before: Float64Array, position: int, rows: Int64Array) -> Float64Array:
        """Return log probabilities of the previous state and the state, given those of the previous states."""
        previous = before[rows - 1] if position else self.start[None]
        return previous[:, :, None] + self.powers[self.power_of[rows]]

    def transitions_from(self, first: int) -> Callable[[int], Float64Array]:
        """Return a function from t to the transition matrix to step t of the sequence that starts at `first`."""
        return lambda t: self.powers[self.power_of[first + t]]

    def sequences(self) -> Iterator[tuple[int, slice]]:
        """Yield the index and the steps of every nonempty sequence."""
        for k, (first, last) in enumerate(zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)):
            if last > first:
                yield k, slice(first, last)

    def last_steps(self) -> Int64Array:
        """Return the last step of every nonempty sequence."""
        return self.offsets[1:][np.diff(self.offsets) > 0] - 1


def log_likelihood(checked: CheckedInput) -> Float64Array:
    """Return log p(sequence) of every sequence."""
    steps = _prepare(checked)
    return _total(steps, *_forward(steps))


def filter(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return p(state | observations up to this step) of every step, and log p(sequence)."""
    steps = _prepare(checked)
    states, gains = _forward(steps)
    return np.exp(states), _total(steps, states, gains)


def posterior(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return p(state | sequence) of every step, and log p(sequence)."""
    steps = _prepare(checked)
    states, gains = _forward(steps)
    logs = _total(steps, states, gains)
    return _smoothed(steps, states, _backward(steps, states)[0], np.isfinite(logs)), logs


def messages(checked: CheckedInput) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return log p(observations so far, state), log p(later observations | state) and log p(sequence)."""
    steps = _prepare(checked)
    states, gains = _forward(steps)
    beta, norms = _backward(steps, states)
    for _, part in steps.sequences():
        beta[part] += norms[part][::-1].cumsum()[::-1][:, None]
        gains[part] = gains[part].cumsum()
    return states + gains[:, None], beta, log_likelihood(checked)


def pairs(checked: CheckedInput) -> tuple[list[Float64Array], Float64Array]:
    """Return p(state, state of the next observed step | sequence) for every sequence, and log p(sequence)."""
    steps = _prepare(checked)
    states, gains = _forward(steps)
    logs = _total(steps, states, gains)
    ahead = steps.emission + _backward(steps, states)[0]
    out = [np.zeros((max(n - 1, 0), checked.n_states, checked.n_states)) for n in np.diff(steps.offsets).tolist()]
    for k, part in steps.sequences():
        if part.stop - part.start > 1 and np.isfinite(logs[k]):
            rows = np.arange(part.start + 1, part.stop)
            out[k] = _normalized(steps.joint(states, 1, rows) + ahead[rows, None, :])
    return out, logs


def one_step_predictive(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return log p(state | earlier observations) and log p(observation | earlier observations) of every step."""
    steps = _prepare(checked)
    states, gains = _forward(steps)
    predicted = np.empty_like(states)
    for position, rows in steps.rounds():
        predicted[rows] = _log_sum(steps.joint(states, position, rows), 1)
    return predicted, gains


def expected(checked: CheckedInput, weight: Float64Array | None) -> ExpectedTransitions:
    """Return the expected sufficient statistics, including the transitions within gaps."""
    steps = _prepare(checked)
    states, gains = _forward(steps)
    logs = _total(steps, states, gains)
    beta, _ = _backward(steps, states)
    possible = np.isfinite(logs)
    weights = np.repeat(np.where(possible, 1.0 if weight is None else weight, 0.0), np.diff(steps.offsets))
    counts = np.zeros_like(steps.powers)
    starts = np.zeros(checked.n_states)
    for position, rows in steps.rounds():
        rows = rows[weights[rows] > 0]
        joint = steps.joint(states, position, rows) + (steps.emission[rows] + beta[rows])[:, None, :]
        probabilities = _normalized(joint) * weights[rows, None, None]
        np.add.at(counts, steps.power_of[rows], probabilities)
        if not position:
            starts += probabilities.sum(axis=(0, 2))
    transition = np.exp(checked.transition)
    transitions = np.zeros_like(transition)
    for n, ends_of_gaps, power in zip(steps.exponents.tolist(), counts, steps.powers, strict=True):
        if n:
            transitions += _transitions_within(transition, n, ends_of_gaps, power)
    emissions = _smoothed(steps, states, beta, possible) * weights[:, None]
    ends = emissions[steps.last_steps()].sum(axis=0)
    if isinstance(checked.emission, tuple):
        codes, table = checked.emission
        valid, _ = valid_codes(codes, len(table))
        by_level = np.zeros((len(table), len(starts)))
        np.add.at(by_level, codes[valid].astype(np.intp), emissions[valid])
        emissions = by_level
    return ExpectedTransitions(starts, transitions, ends, emissions, logs)


def viterbi(checked: CheckedInput) -> tuple[Int64Array, Float64Array]:
    """Return the most probable states of the observed steps; states of unobserved steps are summed out."""
    steps = _prepare(checked)
    scores, shifts, pointers = _scores(steps, coded=isinstance(checked.emission, tuple))
    path = np.full(len(scores), -1, dtype=np.int64)
    score = np.zeros(checked.n_sequences)
    for k, part in steps.sequences():
        final = scores[part.stop - 1] + steps.end
        best = int(final.argmax())
        score[k] = final[best] + math.fsum(shifts[:, part].ravel())
        if not np.isneginf(score[k]):
            for t in range(part.stop - 1, part.start - 1, -1):
                path[t] = best
                best = int(pointers[t, best])
    return path, score


def trellis(checked: CheckedInput) -> tuple[Float64Array, Int64Array]:
    """Return the log probabilities of the best paths to every state, and their previous states; −1 at first steps."""
    steps = _prepare(checked)
    scores, shifts, pointers = _scores(steps, coded=isinstance(checked.emission, tuple))
    for _, part in steps.sequences():
        scores[part] += shifts[:, part].sum(axis=0).cumsum()[:, None]
    return scores, pointers


def best_paths(checked: CheckedInput, n_paths: int) -> tuple[Int64Array, Float64Array]:
    """Return the most probable paths of the observed steps, as `tallybayes.kernels.hmm.best_paths`."""
    steps = _prepare(checked)
    paths = np.full((len(steps.emission), n_paths), -1, dtype=np.int64)
    score = np.full((checked.n_sequences, n_paths), -np.inf)
    score[np.diff(steps.offsets) == 0, 0] = 0.0
    for k, part in steps.sequences():
        states, logs = _n_best_paths(steps, part, n_paths, coded=isinstance(checked.emission, tuple))
        paths[part, : len(logs)] = states
        score[k, : len(logs)] = logs
    return paths, score


def draw_paths(checked: CheckedInput, uniform: Float64Array) -> tuple[Int64Array, Float64Array]:
    """Draw states of the observed steps, as `tallybayes.kernels.hmm.draw_paths`."""
    steps = _prepare(checked)
    states, gains = _forward(steps)
    logs = _total(steps, states, gains)
    paths = np.full(uniform.shape, -1, dtype=np.int64)
    for k, part in steps.sequences():
        if not np.isneginf(logs[k]):
            paths[part] = _sample_paths(states[part], steps.transitions_from(part.start), steps.end, uniform[part])
    return paths, logs


def emission_rows(emission: Float64Array | tuple[AnyArray, Float64Array]) -> Float64Array:
    """Return log p(observation | state) of every step, shape (steps, states); raise for an invalid code or NaN."""
    if isinstance(emission, tuple):
        codes, table = emission
        valid, bad = valid_codes(codes, len(table))
        if bad.any():
            step = int(bad.argmax())
            raise IndexError(
                f"step {step} has code {codes[step]}, expected 0 to {len(table) - 1}, or -1 where it is missing"
            )
        rows = np.zeros((len(codes), table.shape[1]))
        rows[valid] = table[codes[valid].astype(np.int64)]
        return rows
    invalid = ~(emission < np.inf)
    if invalid.any():
        step, state = divmod(int(invalid.argmax()), emission.shape[1])
        raise ValueError(
            f"emission holds {emission[step, state]} at step {step}, state {state}; expected logarithms: "
            "numbers or -inf"
        )
    return emission


def _prepare(checked: CheckedInput) -> _Steps:
    """Return the emissions of all steps and the powers of the transition matrix."""
    offsets = checked.offsets
    rows = emission_rows(checked.emission)
    exponent = np.ones(len(rows), dtype=np.int64) if checked.gaps is None else np.asarray(checked.gaps, np.int64) + 1
    exponent[offsets[:-1][np.diff(offsets) > 0]] -= 1  # the first step has no observed step before it
    exponents, power_of = np.unique(exponent, return_inverse=True)
    powers = np.zeros((len(exponents), checked.n_states, checked.n_states))  # empty without steps
    for k, n in enumerate(exponents):
        powers[k] = log_power(checked.transition, int(n))
    end = np.zeros(checked.n_states) if checked.end is None else checked.end
    return _Steps(checked.start, powers, power_of.ravel(), exponents, end, rows, offsets)


def _forward(steps: _Steps) -> tuple[Float64Array, Float64Array]:
    """Return log p(state | observations so far), (steps, states), and log p(observation | earlier ones), (steps,).

    Both are −inf from the first impossible step of a sequence on.
    """
    states = np.empty(steps.emission.shape)
    gains = np.empty(len(states))
    for position, rows in steps.rounds():
        joint = _log_sum(steps.joint(states, position, rows), 1) + steps.emission[rows]
        gains[rows] = _log_sum(joint, 1)
        states[rows] = joint - _finite(gains[rows])[:, None]
    return states, gains


def _backward(steps: _Steps, states: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return log p(later observations | state) of every step, minus a norm per step, and these norms.

    A norm is log p(later observations | observations so far), minus the norms of later steps.
    """
    beta = np.empty(steps.emission.shape)
    beta[steps.last_steps()] = steps.end
    norms = np.empty(len(beta))
    for position, rows in reversed(list(steps.rounds())):
        norms[rows] = _finite(_log_sum(states[rows] + beta[rows], 1))
        beta[rows] -= norms[rows, None]
        if position:
            ahead = (steps.emission[rows] + beta[rows])[:, None, :]
            beta[rows - 1] = _log_sum(steps.powers[steps.power_of[rows]] + ahead, 2)
    return beta, norms


def _total(steps: _Steps, states: Float64Array, gains: Float64Array) -> Float64Array:
    """Return log p(sequence) of every sequence from the forward messages; 0 for empty sequences."""
    logs = np.zeros(len(steps.offsets) - 1)
    filled = np.diff(steps.offsets) > 0
    if filled.any():
        last = _log_sum(states[steps.last_steps()] + steps.end, 1)
        logs[filled] = np.add.reduceat(gains, steps.offsets[:-1][filled]) + last
    return logs


def _smoothed(steps: _Steps, states: Float64Array, beta: Float64Array, possible: np.ndarray) -> Float64Array:
    """Return p(state | sequence) of every step; 0 for impossible sequences."""
    return np.exp(states + beta) * np.repeat(possible, np.diff(steps.offsets))[:, None]


def _scores(steps: _Steps, *, coded: bool) -> tuple[Float64Array, Float64Array, Int64Array]:
    """Return the scores of the best paths to every state, the shifts, (2, steps), and the previous states on the paths.

    The score of a step is the log probability minus all shifts up to it: of the emissions and of previous scores. The
    shifts are those of the compiled kernels, because rounding decides between equally probable paths.
    """
    shifts = np.zeros((2, len(steps.emission)))
    if not coded:
        shifts[0] = _finite(steps.emission.max(axis=1, initial=-np.inf))
    emission = steps.emission - shifts[0][:, None]
    scores = np.empty(emission.shape)
    pointers = np.full(emission.shape, -1, dtype=np.int64)
    for position, rows in steps.rounds():
        joint = steps.joint(scores, position, rows)
        if not position:
            scores[rows] = _log_sum(joint, 1) + emission[rows]
            continue
        if position % _SHIFT_INTERVAL == 0:
            shifts[1, rows] = _finite(scores[rows - 1].max(axis=1))
        pointers[rows] = joint.argmax(axis=1)
        scores[rows] = joint.max(axis=1) + (emission[rows] - shifts[1, rows, None])
    return scores, shifts, pointers


def _n_best_paths(steps: _Steps, part: slice, n_paths: int, *, coded: bool) -> tuple[Int64Array, Float64Array]:
    """Return the best paths of one sequence, (steps, paths), and their scores.

    The list Viterbi algorithm: every state keeps its `n_paths` best partial paths. Scores are shifted as in `_scores`.
    """
    rows = steps.emission[part]
    n_steps, n_states = rows.shape
    transitions = steps.transitions_from(part.start)
    shifts = np.zeros((2, n_steps))
    if not coded:
        shifts[0] = _finite(rows.max(axis=1))
    rows = rows - shifts[0][:, None]
    scores = np.full((n_states, n_paths), -np.inf)  # of the best paths to every state, descending
    scores[:, 0] = _log_sum(steps.joint(rows, 0, np.array([part.start])), 1)[0] + rows[0]
    origins = np.zeros((n_steps, n_states, n_paths), dtype=np.int64)  # index of the previous path, state by state
    state = np.arange(n_states)
    for t in range(1, n_steps):
        shifts[1, t] = _finite(scores[:, 0].max()) if t % _SHIFT_INTERVAL == 0 else 0.0
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
    final = (scores + steps.end[:, None]).ravel()
    last = np.argsort(-final, kind="stable")[:n_paths]
    last = last[np.isfinite(final[last])]
    logs = final[last] + math.fsum(shifts.ravel())
    states = np.empty((n_steps, len(last)), dtype=np.int64)
    for t in range(n_steps - 1, -1, -1):
        states[t] = last // n_paths
        last = origins[t, last // n_paths, last % n_paths]
    return states, logs


def _sample_paths(
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


def log_power(logs: Float64Array, n: int) -> Float64Array:
    """Return the log of the n-th power of the matrix exp(logs), rescaled during the computation to avoid underflow."""
    if n == 1:
        return logs
    power, log_scale = _scaled_power(np.exp(logs), n) if n else (np.eye(len(logs)), 0.0)
    with np.errstate(divide="ignore"):
        return np.log(power) + log_scale


def _rescale(matrix: Float64Array, log_scale: float) -> tuple[Float64Array, float]:
    """Divide by the largest element, and add its logarithm to the scale."""
    largest = matrix.max()
    return (matrix / largest, log_scale + float(np.log(largest))) if largest > 0 else (matrix, log_scale)


def _scaled_power(matrix: Float64Array, n: int) -> tuple[Float64Array, float]:
    """Return a power of a matrix up to a factor, and the log of that factor (exponentiation by squaring)."""
    power = np.eye(len(matrix))
    log_scale = 0.0
    square = matrix
    square_scale = 0.0
    while n:
        if n & 1:
            power, log_scale = _rescale(power @ square, log_scale + square_scale)
        n >>= 1
        if n:
            square, square_scale = _rescale(square @ square, 2 * square_scale)
    return power, log_scale


def _transitions_within(transition: Float64Array, n: int, pairs: Float64Array, log_power: Float64Array) -> Float64Array:
    """Return the expected transitions among n consecutive ones with these counts of first and last states.

    They are A ∘ Σₘ (Aᵀ)ᵐ (pairs / Aⁿ) (Aᵀ)ⁿ⁻¹⁻ᵐ. The sum is the upper right block of the n-th power of the block matrix
    [[Aᵀ, pairs / Aⁿ], [0, Aᵀ]].
    """
    if n == 1 or not pairs.any():
        return pairs if n == 1 else np.zeros_like(pairs)
    with np.errstate(divide="ignore"):
        ratio = np.where(pairs > 0, np.log(pairs) - _finite(log_power), -np.inf)
    shift = ratio.max()
    size = len(transition)
    block = np.zeros((2 * size, 2 * size))
    block[:size, :size] = block[size:, size:] = transition.T
    block[:size, size:] = np.exp(ratio - shift)
    power, log_scale = _scaled_power(block, n)
    with np.errstate(divide="ignore"):
        logs = np.log(transition) + np.log(power[:size, size:]) + log_scale + shift
    return np.exp(logs)


def _normalized(joint: Float64Array) -> Float64Array:
    """Return the probabilities of pairs of states from their logarithms, up to a constant per pair of steps."""
    return np.exp(joint - _finite(_log_sum(joint, (1, 2)))[:, None, None])


def _log_sum(logs: Float64Array, axis: int | tuple[int, int]) -> Float64Array:
    """Return log Σ exp(logs) along an axis, or two."""
    largest = _finite(logs.max(axis=axis, keepdims=True))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - largest).sum(axis=axis)) + largest.squeeze(axis))


def _finite(logs: Float64Array | np.float64) -> Float64Array:
    """Return the logarithms, with 0 in place of −inf."""
    return np.where(np.isneginf(logs), 0.0, logs)
