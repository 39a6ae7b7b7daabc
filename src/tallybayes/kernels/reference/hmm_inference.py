"""Hidden Markov models with unobserved time steps between the observed ones, in logarithms.

Before step t of a sequence there are ``gaps[t]`` unobserved steps. Its transition matrix is therefore Aᵍ⁺¹, and the
first state has the distribution start · Aᵍ. A matrix power takes about log₂ g products, once for every distinct gap.
The expected transitions within all gaps of one length take as many products, regardless of their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tallybayes.kernels.arguments import Float64Array, Int64Array
from tallybayes.kernels.hmm_arguments import CheckedInput
from tallybayes.kernels.reference.hmm import (
    ExpectedTransitions,
    emission_rows,
    end_or_zeros,
    n_best_paths,
    nonempty_sequences,
    sample_paths,
)

_MAX_CELLS = 1 << 21  # of the matrices of pairs of states that are computed at once


class _Steps(NamedTuple):
    """The steps of all sequences, with the log transition matrix that leads to each."""

    start: Float64Array
    powers: Float64Array  # logs of the distinct powers of the transition matrix
    power_of: Int64Array  # index of the power of every step
    exponents: Int64Array  # of the powers
    end: Float64Array
    emission: Float64Array
    offsets: Int64Array

    def rounds(self) -> list[tuple[Int64Array, bool]]:
        """Return batches of steps with the same position in their sequences, and whether these are first steps."""
        batches = []
        most = max(1, _MAX_CELLS // len(self.start) ** 2)
        sizes = np.diff(self.offsets)
        for position in range(int(sizes.max(initial=0))):
            steps = self.offsets[:-1][sizes > position] + position
            batches += [(steps[k : k + most], position == 0) for k in range(0, len(steps), most)]
        return batches

    def transitions_from(self, first: int) -> Callable[[int], Float64Array]:
        """Return a function from t to the transition matrix to step t of the sequence that starts at `first`."""
        return lambda t: self.powers[self.power_of[first + t]]

    def last_steps(self) -> Int64Array:
        """Return the last step of every nonempty sequence."""
        return self.offsets[1:][np.diff(self.offsets) > 0] - 1


def with_gaps(checked: CheckedInput) -> CheckedInput:
    """Return the input with gaps of length 0 unless it has gaps."""
    return checked if checked.gaps is not None else checked._replace(gaps=np.zeros(checked.n_steps, dtype=np.int64))


def log_likelihood(checked: CheckedInput) -> Float64Array:
    """Return log p(sequence) of every sequence."""
    steps = _prepare(checked)
    return _total(steps, _forward(steps))


def viterbi(checked: CheckedInput) -> tuple[Int64Array, Float64Array]:
    """Return the most probable states of the observed steps; states of unobserved steps are summed out."""
    steps = _prepare(checked)
    best, pointers = _trellis(steps)
    path = np.full(len(best), -1, dtype=np.int64)
    score = np.zeros(checked.n_sequences)
    for k, part in nonempty_sequences(steps.offsets):
        final = best[part.stop - 1] + steps.end
        score[k] = final.max()
        if score[k] > -np.inf:
            path[part.stop - 1] = final.argmax()
            for t in range(part.stop - 1, part.start, -1):
                path[t - 1] = pointers[t, path[t]]
    return path, score


def trellis(checked: CheckedInput) -> tuple[Float64Array, Int64Array]:
    """Return the log probabilities of the best paths to every state, and their previous states; −1 at first steps."""
    return _trellis(_prepare(checked))


def best_paths(checked: CheckedInput, n_paths: int) -> tuple[Int64Array, Float64Array]:
    """Return the most probable paths of the observed steps, as `tallybayes.kernels.hmm.best_paths`."""
    steps = _prepare(checked)
    paths = np.full((len(steps.emission), n_paths), -1, dtype=np.int64)
    score = np.full((checked.n_sequences, n_paths), -np.inf)
    score[np.diff(steps.offsets) == 0, 0] = 0.0
    for k, part in nonempty_sequences(steps.offsets):
        first = _first_states(steps, np.array([part.start]))[0]
        transitions = steps.transitions_from(part.start)
        states, logs = n_best_paths(first, transitions, steps.end, steps.emission[part], n_paths, coded=False)
        paths[part, : len(logs)] = states
        score[k, : len(logs)] = logs
    return paths, score


def draw_paths(checked: CheckedInput, uniform: Float64Array) -> tuple[Int64Array, Float64Array]:
    """Draw states of the observed steps, as `tallybayes.kernels.hmm.draw_paths`."""
    steps = _prepare(checked)
    alpha = _forward(steps)
    logs = _total(steps, alpha)
    paths = np.full(uniform.shape, -1, dtype=np.int64)
    for k, part in nonempty_sequences(steps.offsets):
        if not np.isneginf(logs[k]):
            paths[part] = sample_paths(alpha[part], steps.transitions_from(part.start), steps.end, uniform[part])
    return paths, logs


def messages(checked: CheckedInput) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return log p(observations so far, state), log p(later observations | state) and log p(sequence)."""
    steps = _prepare(checked)
    alpha = _forward(steps)
    return alpha, _backward(steps), _total(steps, alpha)


def pairs(checked: CheckedInput) -> tuple[list[Float64Array], Float64Array]:
    """Return p(state, state of the next observed step | sequence) for every sequence."""
    steps = _prepare(checked)
    alpha = _forward(steps)
    beta = _backward(steps)
    logs = _total(steps, alpha)
    out = []
    for k, (a, b) in enumerate(zip(steps.offsets[:-1].tolist(), steps.offsets[1:].tolist(), strict=True)):
        joint = alpha[a : max(b - 1, a), :, None] + steps.powers[steps.power_of[a + 1 : b]]
        joint += (steps.emission[a + 1 : b] + beta[a + 1 : b])[:, None, :]
        out.append(np.exp(joint - _finite(logs[k])))
    return out, logs


def one_step_predictive(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return log p(state | earlier observations) and log p(observation | earlier observations) of every step."""
    steps = _prepare(checked)
    alpha = _forward(steps)
    so_far = _log_sum(alpha, 1)
    before = np.roll(so_far, 1)
    before[steps.offsets[:-1][np.diff(steps.offsets) > 0]] = 0.0
    predicted = np.empty_like(alpha)
    for rows, first in steps.rounds():
        predicted[rows] = _predict(steps, alpha, rows, first)
    with np.errstate(invalid="ignore"):  # −inf − −inf after an impossible step
        log_prob = np.where(np.isneginf(so_far), -np.inf, so_far - before)
    return np.where(np.isneginf(before)[:, None], -np.inf, predicted - _finite(before)[:, None]), log_prob


def filter(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return p(state | observations up to this step) of every step."""
    steps = _prepare(checked)
    alpha = _forward(steps)
    return np.exp(alpha - _finite(_log_sum(alpha, 1))[:, None]), _total(steps, alpha)


def posterior(checked: CheckedInput) -> tuple[Float64Array, Float64Array]:
    """Return p(state | sequence) of every step."""
    steps = _prepare(checked)
    alpha = _forward(steps)
    logs = _total(steps, alpha)
    return _smoothed(steps, alpha, _backward(steps), logs), logs


def expected(checked: CheckedInput, weight: Float64Array | None) -> ExpectedTransitions:
    """Return the expected sufficient statistics, including the transitions within gaps."""
    steps = _prepare(checked)
    alpha = _forward(steps)
    beta = _backward(steps)
    logs = _total(steps, alpha)
    sizes = np.diff(steps.offsets)
    weights = np.repeat(np.where(np.isneginf(logs), 0.0, 1.0 if weight is None else weight), sizes)
    total = np.repeat(_finite(logs), sizes)
    pairs = np.zeros_like(steps.powers)
    starts = np.zeros(checked.n_states)
    for rows, first in steps.rounds():
        before = np.broadcast_to(steps.start, (len(rows), len(starts))) if first else alpha[rows - 1]
        joint = before[:, :, None] + steps.powers[steps.power_of[rows]]
        joint += (steps.emission[rows] + beta[rows] - total[rows, None])[:, None, :]
        probabilities = np.exp(joint) * weights[rows, None, None]
        np.add.at(pairs, steps.power_of[rows], probabilities)
        if first:
            starts += probabilities.sum(axis=(0, 2))
    transition = np.exp(checked.transition)
    transitions = np.zeros_like(transition)
    for n, counts, power in zip(steps.exponents.tolist(), pairs, steps.powers, strict=True):
        if n:
            transitions += _transitions_within(transition, n, counts, power)
    states = _smoothed(steps, alpha, beta, logs) * weights[:, None]
    ends = states[steps.last_steps()].sum(axis=0)
    if not isinstance(checked.emission, tuple):
        return ExpectedTransitions(starts, transitions, ends, states, logs)
    codes, table = checked.emission
    valid = (codes >= 0) & (codes < len(table))
    counts = np.zeros((len(table), len(starts)))
    np.add.at(counts, codes[valid].astype(np.intp), states[valid])
    return ExpectedTransitions(starts, transitions, ends, counts, logs)


def _prepare(checked: CheckedInput) -> _Steps:
    """Return the emissions of all steps and the powers of the transition matrix."""
    offsets = checked.offsets
    exponent = np.asarray(checked.gaps, dtype=np.int64) + 1
    exponent[offsets[:-1][np.diff(offsets) > 0]] -= 1  # the first step has no observed step before it
    exponents, index = np.unique(exponent, return_inverse=True)
    powers = np.zeros((len(exponents), checked.n_states, checked.n_states))  # empty without steps
    for k, n in enumerate(exponents):
        powers[k] = log_power(checked.transition, int(n))
    rows = np.asarray(emission_rows(checked.emission), dtype=np.float64)
    end = end_or_zeros(checked.start, checked.end)
    return _Steps(checked.start, powers, index.ravel(), exponents, end, rows, offsets)


def log_power(logs: Float64Array, n: int) -> Float64Array:
    """Return the log of the n-th power of the matrix exp(logs), rescaled during the computation to avoid underflow."""
    if n == 1:
        return logs
    power, log_scale = _scaled_power(np.exp(logs), n)
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


def _first_states(steps: _Steps, rows: Int64Array) -> Float64Array:
    """Return log p(state) of first steps, before their observation."""
    return _log_sum(steps.start[None, :, None] + steps.powers[steps.power_of[rows]], 1)


def _forward(steps: _Steps) -> Float64Array:
    """Return log p(observations so far, state) of every step."""
    alpha = np.empty_like(steps.emission)
    for rows, first in steps.rounds():
        alpha[rows] = _predict(steps, alpha, rows, first) + steps.emission[rows]
    return alpha


def _predict(steps: _Steps, alpha: Float64Array, rows: Int64Array, first: bool) -> Float64Array:
    """Return log p(earlier observations, state) of some steps, from the forward messages of the previous steps."""
    if first:
        return _first_states(steps, rows)
    return _log_sum(alpha[rows - 1][:, :, None] + steps.powers[steps.power_of[rows]], 1)


def _trellis(steps: _Steps) -> tuple[Float64Array, Int64Array]:
    """Return log p(observations so far, best path to the state), and the previous state on that path."""
    best = np.empty_like(steps.emission)
    pointers = np.full(steps.emission.shape, -1, dtype=np.int64)
    for rows, first in steps.rounds():
        if first:
            best[rows] = _first_states(steps, rows)
        else:
            joint = best[rows - 1][:, :, None] + steps.powers[steps.power_of[rows]]
            pointers[rows] = joint.argmax(axis=1)
            best[rows] = joint.max(axis=1)
        best[rows] += steps.emission[rows]
    return best, pointers


def _backward(steps: _Steps) -> Float64Array:
    """Return log p(later observations | state) of every step."""
    beta = np.empty_like(steps.emission)
    beta[steps.last_steps()] = steps.end
    for rows, first in reversed(steps.rounds()):
        if not first:
            ahead = (steps.emission[rows] + beta[rows])[:, None, :]
            beta[rows - 1] = _log_sum(steps.powers[steps.power_of[rows]] + ahead, 2)
    return beta


def _smoothed(steps: _Steps, alpha: Float64Array, beta: Float64Array, logs: Float64Array) -> Float64Array:
    """Return p(state | sequence) of every step from the messages and the log likelihoods."""
    total = np.repeat(_finite(logs), np.diff(steps.offsets))
    return np.exp(alpha + beta - total[:, None])


def _total(steps: _Steps, alpha: Float64Array) -> Float64Array:
    """Return log p(sequence) of every sequence from the forward messages; 0 for empty sequences."""
    logs = np.zeros(len(steps.offsets) - 1)
    logs[np.diff(steps.offsets) > 0] = _log_sum(alpha[steps.last_steps()] + steps.end, 1)
    return logs


def _log_sum(logs: Float64Array, axis: int) -> Float64Array:
    """Return log Σ exp(logs) along an axis."""
    largest = _finite(logs.max(axis=axis, keepdims=True))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - largest).sum(axis=axis)) + largest.squeeze(axis))


def _finite(logs: Float64Array) -> Float64Array:
    """Return the logarithms, with 0 in place of −inf."""
    return np.where(np.isneginf(logs), 0.0, logs)
