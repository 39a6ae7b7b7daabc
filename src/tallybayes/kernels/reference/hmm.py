"""Inference in hidden Markov models in NumPy, in logarithms, with or without unobserved time steps.

Sequences are processed together, step by step. Forward and backward messages are normalized at every step, so that
long sequences lose no digits.

Before step t of a sequence there may be ``gaps[t]`` unobserved steps. Its transition matrix is therefore Aᵍ⁺¹, and the
first state has the distribution start · Aᵍ. A matrix power takes about log₂ g products, once for every distinct gap.
The expected transitions within all gaps of one length take as many products, regardless of their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
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


class _Chain:
    """The steps of all sequences, with the log transition matrix that leads to each, and the messages between them."""

    def __init__(self, checked: CheckedInput) -> None:
        self.start = checked.start
        self.end = np.zeros(checked.n_states) if checked.end is None else checked.end
        self.emission = emission_rows(checked.emission)
        self.offsets = checked.offsets
        self.filled = np.diff(self.offsets) > 0  # whether a sequence has steps
        self.last_steps = self.offsets[1:][self.filled] - 1
        exponent = np.ones(len(self.emission), np.int64) if checked.gaps is None else checked.gaps.astype(np.int64) + 1
        exponent[self.offsets[:-1][self.filled]] -= 1  # the first step has no observed step before it
        self.exponents, power_of = np.unique(exponent, return_inverse=True)
        self.power_of = power_of.ravel()  # the index of the power of every step
        powers = [log_power(checked.transition, n) for n in self.exponents.tolist()]
        self.powers = np.reshape(powers, (-1, checked.n_states, checked.n_states))  # the distinct powers, as logarithms

    def rounds(self) -> Iterator[tuple[int, Int64Array]]:
        """Yield batches of steps with the same position in their sequences, and that position."""
        most = max(1, _MAX_CELLS // len(self.start) ** 2)
        sizes = np.diff(self.offsets)
        for position in range(int(sizes.max(initial=0))):
            steps = self.offsets[:-1][sizes > position] + position
            yield from ((position, steps[k : k + most]) for k in range(0, len(steps), most))

    def transition(self, steps: Int64Array | int) -> Float64Array:
        """Return the log transition matrices that lead to some steps."""
        return np.asarray(self.powers[self.power_of[steps]])

    def joint(self, before: Float64Array, position: int, rows: Int64Array) -> Float64Array:
        """Return log probabilities of the previous state and the state, given those of the previous states."""
        previous = before[rows - 1] if position else self.start[None]
        return previous[:, :, None] + self.transition(rows)

    def sequences(self) -> Iterator[tuple[int, slice]]:
        """Yield the index and the steps of every nonempty sequence."""
        for k, (first, last) in enumerate(pairwise(self.offsets.tolist())):
            if last > first:
                yield k, slice(first, last)

    def by_step(self, of_sequences: Float64Array | np.ndarray) -> np.ndarray:
        """Return a number of every sequence for each of its steps."""
        return np.repeat(of_sequences, np.diff(self.offsets))

    @cached_property
    def forward(self) -> tuple[Float64Array, Float64Array]:
        """log p(state | observations so far), (steps, states), and log p(observation | earlier ones), (steps,).

        Both are −inf from the first impossible step of a sequence on.
        """
        states = np.empty(self.emission.shape)
        gains = np.empty(len(states))
        for position, rows in self.rounds():
            joint = _log_sum(self.joint(states, position, rows), 1) + self.emission[rows]
            gains[rows] = _log_sum(joint, 1)
            states[rows] = joint - _finite(gains[rows])[:, None]
        return states, gains

    @cached_property
    def backward(self) -> tuple[Float64Array, Float64Array]:
        """log p(later observations | state) of every step, minus a norm per step, and these norms.

        A norm is log p(later observations | observations so far), minus the norms of later steps.
        """
        states, _ = self.forward
        beta = np.empty(self.emission.shape)
        beta[self.last_steps] = self.end
        norms = np.empty(len(beta))
        for position, rows in reversed(list(self.rounds())):
            norms[rows] = _finite(_log_sum(states[rows] + beta[rows], 1))
            beta[rows] -= norms[rows, None]
            if position:
                ahead = (self.emission[rows] + beta[rows])[:, None, :]
                beta[rows - 1] = _log_sum(self.transition(rows) + ahead, 2)
        return beta, norms

    @cached_property
    def log_likelihood(self) -> Float64Array:
        """log p(sequence) of every sequence; 0 for empty sequences."""
        states, gains = self.forward
        logs = np.zeros(len(self.filled))
        if self.filled.any():
            last = _log_sum(states[self.last_steps] + self.end, 1)
            logs[self.filled] = np.add.reduceat(gains, self.offsets[:-1][self.filled]) + last
        return logs

    @property
    def smoothed(self) -> Float64Array:
        """p(state | sequence) of every step; 0 for impossible sequences."""
        proba = np.exp(self.forward[0] + self.backward[0])
        return proba * self.by_step(np.isfinite(self.log_likelihood))[:, None]

    def pair_probabilities(self, position: int, rows: Int64Array) -> Float64Array:
        """Return p(previous state, state | sequence) of some steps of possible sequences."""
        ahead = self.emission[rows] + self.backward[0][rows]
        joint = self.joint(self.forward[0], position, rows) + ahead[:, None, :]
        return np.exp(joint - _finite(_log_sum(joint, (1, 2)))[:, None, None])


def log_likelihood(checked: CheckedInput) -> Float64Array:
    """Return log p(sequence) of every sequence."""
    return _Chain(checked).log_likelihood


def filter(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return p(state | observations up to this step) of every step, and log p(sequence)."""
    chain = _Chain(checked)
    return np.exp(chain.forward[0]), chain.log_likelihood


def posterior(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return p(state | sequence) of every step, and log p(sequence)."""
    chain = _Chain(checked)
    return chain.smoothed, chain.log_likelihood


def messages(checked: CheckedInput) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return log p(observations so far, state), log p(later observations | state) and log p(sequence)."""
    chain = _Chain(checked)
    alpha, beta = chain.forward[0].copy(), chain.backward[0].copy()
    for _, part in chain.sequences():
        alpha[part] += chain.forward[1][part].cumsum()[:, None]
        beta[part] += chain.backward[1][part][::-1].cumsum()[::-1][:, None]
    return alpha, beta, chain.log_likelihood


def pairs(checked: CheckedInput) -> tuple[list[Float64Array], Float64Array]:
    """Return p(state, state of the next observed step | sequence) for every sequence, and log p(sequence)."""
    chain = _Chain(checked)
    shape = (checked.n_states, checked.n_states)
    out = [np.zeros((max(n - 1, 0), *shape)) for n in np.diff(chain.offsets).tolist()]
    for k, part in chain.sequences():
        if np.isfinite(chain.log_likelihood[k]):
            out[k] = chain.pair_probabilities(1, np.arange(part.start + 1, part.stop))
    return out, chain.log_likelihood


def one_step_predictive(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return log p(state | earlier observations) and log p(observation | earlier observations) of every step."""
    chain = _Chain(checked)
    states, gains = chain.forward
    predicted = np.empty_like(states)
    for position, rows in chain.rounds():
        predicted[rows] = _log_sum(chain.joint(states, position, rows), 1)
    return predicted, gains


def expected(checked: CheckedInput, weight: Float64Array | None) -> ExpectedTransitions:
    """Return the expected sufficient statistics, including the transitions within gaps."""
    chain = _Chain(checked)
    weights = chain.by_step(np.where(np.isfinite(chain.log_likelihood), 1.0 if weight is None else weight, 0.0))
    counts = np.zeros_like(chain.powers)  # pairs of states at the ends of the transitions of every power
    starts = np.zeros(checked.n_states)
    for position, rows in chain.rounds():
        rows = rows[weights[rows] > 0]
        probabilities = chain.pair_probabilities(position, rows) * weights[rows, None, None]
        np.add.at(counts, chain.power_of[rows], probabilities)
        if not position:
            starts += probabilities.sum(axis=(0, 2))
    transition = np.exp(checked.transition)
    transitions = np.zeros_like(transition)
    for n, ends_of_gaps, power in zip(chain.exponents.tolist(), counts, chain.powers, strict=True):
        if n:
            transitions += _transitions_within(transition, n, ends_of_gaps, power)
    emissions = chain.smoothed * weights[:, None]
    ends = emissions[chain.last_steps].sum(axis=0)
    if isinstance(checked.emission, tuple):
        codes, table = checked.emission
        valid, _ = valid_codes(codes, len(table))
        by_level = np.zeros((len(table), len(starts)))
        np.add.at(by_level, codes[valid].astype(np.intp), emissions[valid])
        emissions = by_level
    return ExpectedTransitions(starts, transitions, ends, emissions, chain.log_likelihood)


def viterbi(checked: CheckedInput) -> tuple[Int64Array, Float64Array]:
    """Return the most probable states of the observed steps; states of unobserved steps are summed out."""
    paths, score = best_paths(checked, 1)
    return paths[:, 0], score[:, 0]


def trellis(checked: CheckedInput) -> tuple[Float64Array, Int64Array]:
    """Return the log probabilities of the best paths to every state, and their previous states; −1 at first steps."""
    chain = _Chain(checked)
    best = _best_partial_paths(chain, 1, coded=isinstance(checked.emission, tuple))
    scores = best.scores[:, :, 0]
    for _, part in chain.sequences():
        scores[part] += best.shifts[:, part].sum(axis=0).cumsum()[:, None]
    return scores, best.origins[:, :, 0]


def best_paths(checked: CheckedInput, n_paths: int) -> tuple[Int64Array, Float64Array]:
    """Return the most probable paths of the observed steps, as `tallybayes.kernels.hmm.best_paths`."""
    chain = _Chain(checked)
    best = _best_partial_paths(chain, n_paths, coded=isinstance(checked.emission, tuple))
    paths = np.full((len(chain.emission), n_paths), -1, dtype=np.int64)
    score = np.full((checked.n_sequences, n_paths), -np.inf)
    score[~chain.filled, 0] = 0.0
    for k, part in chain.sequences():
        final = (best.scores[part.stop - 1] + chain.end[:, None]).ravel()
        path = np.argsort(-final, kind="stable")[:n_paths]  # index of the path at its last step, state by state
        path = path[np.isfinite(final[path])]
        score[k, : len(path)] = final[path] + math.fsum(best.shifts[:, part].ravel())
        for t in range(part.stop - 1, part.start - 1, -1):
            state, rank = divmod(path, n_paths)
            paths[t, : len(path)] = state
            path = best.origins[t, state, rank]
    return paths, score


def draw_paths(checked: CheckedInput, uniform: Float64Array) -> tuple[Int64Array, Float64Array]:
    """Draw states of the observed steps, as `tallybayes.kernels.hmm.draw_paths`: from the last step backward."""
    chain = _Chain(checked)
    states, _ = chain.forward
    paths = np.full(uniform.shape, -1, dtype=np.int64)
    for k, part in chain.sequences():
        if np.isneginf(chain.log_likelihood[k]):
            continue
        following = np.broadcast_to(chain.end, (uniform.shape[1], checked.n_states))
        for t in range(part.stop - 1, part.start - 1, -1):
            logs = states[t] + following
            cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf)), axis=1)
            total = cumulative[:, -1]
            threshold = np.minimum(uniform[t] * total, np.nextafter(total, 0.0))  # below the total despite rounding
            paths[t] = (cumulative > threshold[:, None]).argmax(axis=1)
            following = chain.transition(t).T[paths[t]]
    return paths, chain.log_likelihood


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


class _PartialPaths(NamedTuple):
    """The best partial paths to every state of every step.

    The score of a step is the log probability minus all shifts up to it: of the emissions and of previous scores.
    """

    scores: Float64Array  # (steps, states, paths), descending
    shifts: Float64Array  # (2, steps)
    origins: Int64Array  # index of the previous path, state by state; −1 at first steps


def _best_partial_paths(chain: _Chain, n_paths: int, *, coded: bool) -> _PartialPaths:
    """Return the `n_paths` best partial paths to every state of every step (list Viterbi algorithm).

    The shifts are those of the compiled kernels, because rounding decides between equally probable paths.
    """
    shape = (*chain.emission.shape, n_paths)
    shifts = np.zeros((2, len(chain.emission)))
    if not coded:
        shifts[0] = _finite(chain.emission.max(axis=1, initial=-np.inf))
    emission = chain.emission - shifts[0][:, None]
    scores = np.full(shape, -np.inf)
    origins = np.full(shape, -1, dtype=np.int64)
    for position, rows in chain.rounds():
        if not position:
            scores[rows, :, 0] = _log_sum(chain.joint(emission, 0, rows), 1) + emission[rows]
            continue
        before = np.pad(scores[rows - 1], ((0, 0), (0, 0), (0, 1)), constant_values=-np.inf)  # no path is left
        if position % _SHIFT_INTERVAL == 0:
            shifts[1, rows] = _finite(before[:, :, 0].max(axis=1))
        transition = chain.transition(rows)
        heads = before[:, :, :1] + transition  # of the paths of one state that may continue to another
        used = np.zeros(heads.shape, dtype=np.intp)  # number of paths of one state that continue to another
        step, state = np.ogrid[: len(rows), : len(chain.start)]
        for rank in range(n_paths):
            origin = heads.argmax(axis=1)
            pair = (step, origin, state)
            scores[rows, :, rank] = heads[pair]
            origins[rows, :, rank] = origin * n_paths + used[pair]
            used[pair] += 1
            heads[pair] = before[step, origin, used[pair]] + transition[pair]
        scores[rows] += (emission[rows] - shifts[1, rows, None])[:, :, None]
    return _PartialPaths(scores, shifts, origins)


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


def _log_sum(logs: Float64Array, axis: int | tuple[int, int]) -> Float64Array:
    """Return log Σ exp(logs) along an axis, or two."""
    largest = _finite(logs.max(axis=axis, keepdims=True))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - largest).sum(axis=axis)) + largest.squeeze(axis))


def _finite(logs: Float64Array | np.float64) -> Float64Array:
    """Return the logarithms, with 0 in place of −inf."""
    return np.where(np.isneginf(logs), 0.0, logs)
