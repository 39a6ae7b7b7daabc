"""Chains in which silent steps lie between those that are seen: the questions of `chain`, step by step, in logarithms.

Before step t of a sequence lie ``gaps[t]`` steps of which nothing is known, so that its state follows the one before by
Aᵍ⁺¹, and the first state the start by Aᵍ. A power takes about log₂ g products of matrices, once for every length of a
gap; what is expected to have happened within the gaps of one length takes as many, whatever their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.kernels.arguments import Float64Array, Int64Array
from tallybayes.kernels.reference.hmm import ExpectedTransitions, _rows, _sequences, drawn, several

_CELLS = 1 << 21  # of pairs of states that are looked at together


class GappedTransitions(NamedTuple):
    """The transitions of a chain, as logarithms, and how many silent steps lie before every step."""

    transition: Float64Array
    gaps: Int64Array


class _Steps(NamedTuple):
    """What all questions go by: the logs of the powers, which is each step's, and log p(step | state)."""

    start: Float64Array
    powers: Float64Array
    which: Int64Array
    lengths: Int64Array  # of the powers, as they stand
    end: Float64Array
    emission: Float64Array
    offsets: Int64Array

    def rounds(self) -> list[tuple[Int64Array, bool]]:
        """The steps of all sequences that are as far from their first, a few at a time, and whether they are first."""
        found = []
        most = max(1, _CELLS // len(self.start) ** 2)
        sizes, begins = np.diff(self.offsets), self.offsets[:-1]
        for place in range(int(sizes.max(initial=0))):
            steps = begins[sizes > place] + place
            found += [(steps[k : k + most], place == 0) for k in range(0, len(steps), most)]
        return found

    def moves_from(self, begin: int) -> Callable[[int], Float64Array]:
        """The moves that lead to every step of the sequence that begins there."""
        return lambda t: self.powers[self.which[begin + t]]


def log_likelihood(start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any) -> Float64Array:
    """Return log p(sequence) of every sequence."""
    steps = _prepared(start, moves, end, emission, offsets)
    return _total(steps, _forward(steps))


def viterbi(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any
) -> tuple[Int64Array, Float64Array]:
    """Return the most probable states of the steps that are seen, those of silent ones summed out."""
    steps = _prepared(start, moves, end, emission, offsets)
    best, pointers = _trellis(steps)
    path, score = np.full(len(best), -1, dtype=np.int64), np.zeros(len(steps.offsets) - 1)
    for k, (a, b) in enumerate(zip(steps.offsets[:-1], steps.offsets[1:], strict=True)):
        if b > a:
            last = best[b - 1] + steps.end
            score[k] = last.max()
            if score[k] > -np.inf:
                path[b - 1] = last.argmax()
                for t in range(b - 1, a, -1):
                    path[t - 1] = pointers[t, path[t]]
    return path, score


def trellis(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any
) -> tuple[Float64Array, Int64Array]:
    """Return the scores of the best paths to every state, and the states before on them; −1 at first steps."""
    return _trellis(_prepared(start, moves, end, emission, offsets))


def best_paths(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any, n_paths: int
) -> tuple[Int64Array, Float64Array]:
    """Return several paths of the steps that are seen, as `chain.best_paths` does."""
    steps = _prepared(start, moves, end, emission, offsets)
    paths = np.full((len(steps.emission), n_paths), -1, dtype=np.int64)
    score = np.full((len(steps.offsets) - 1, n_paths), -np.inf)
    score[np.diff(steps.offsets) == 0, 0] = 0.0
    for k, part in _sequences(steps.offsets):
        begun = _begun(steps, np.array([part.start]))[0]
        rows = steps.emission[part]
        places, found = several(begun, steps.moves_from(part.start), steps.end, rows, n_paths, coded=False)
        paths[part, : len(found)], score[k, : len(found)] = places, found
    return paths, score


def draw_paths(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any, uniform: Float64Array
) -> tuple[Int64Array, Float64Array]:
    """Return paths of the steps that are seen, drawn as `chain.draw_paths` does."""
    steps = _prepared(start, moves, end, emission, offsets)
    alpha = _forward(steps)
    found, paths = _total(steps, alpha), np.full(uniform.shape, -1, dtype=np.int64)
    for k, part in _sequences(steps.offsets):
        if not np.isneginf(found[k]):
            paths[part] = drawn(alpha[part], steps.moves_from(part.start), steps.end, uniform[part])
    return paths, found


def messages(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return log p(steps so far, state), log p(steps to come | state) and log p(sequence)."""
    steps = _prepared(start, moves, end, emission, offsets)
    alpha = _forward(steps)
    return alpha, _backward(steps), _total(steps, alpha)


def pairs(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any
) -> tuple[list[Float64Array], Float64Array]:
    """Return p(state, state of the next step that is seen | whole sequence) of every sequence."""
    steps = _prepared(start, moves, end, emission, offsets)
    alpha, beta = _forward(steps), _backward(steps)
    found, out = _total(steps, alpha), []
    for k, (a, b) in enumerate(zip(steps.offsets[:-1].tolist(), steps.offsets[1:].tolist(), strict=True)):
        ways = alpha[a : max(b - 1, a), :, None] + steps.powers[steps.which[a + 1 : b]]
        ways += (steps.emission[a + 1 : b] + beta[a + 1 : b])[:, None, :]
        out.append(np.exp(ways - _finite(found[k])))
    return out, found


def one_step_predictive(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any
) -> tuple[Float64Array, Float64Array]:
    """Return log p(state, and that it goes on | steps before) and log p(step | steps before) of every step."""
    steps = _prepared(start, moves, None, emission, offsets)
    alpha = _forward(steps)
    so_far = _sum(alpha, 1)
    first = steps.offsets[:-1][np.diff(steps.offsets) > 0]
    before = np.roll(so_far, 1)
    before[first] = 0.0
    expected = np.empty_like(alpha)
    for rows, begins in steps.rounds():
        expected[rows] = _ahead(steps, alpha, rows, begins)
    with np.errstate(invalid="ignore"):  # after what could not be
        told = np.where(np.isneginf(so_far), -np.inf, so_far - before)
    return np.where(np.isneginf(before)[:, None], -np.inf, expected - _finite(before)[:, None]), told


def filter(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any
) -> tuple[Float64Array, Float64Array]:
    """Return p(state | this step and those before it) of every step."""
    steps = _prepared(start, moves, end, emission, offsets)
    alpha = _forward(steps)
    return np.exp(alpha - _finite(_sum(alpha, 1))[:, None]), _total(steps, alpha)


def posterior(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any
) -> tuple[Float64Array, Float64Array]:
    """Return p(state | whole sequence) of every step."""
    steps = _prepared(start, moves, end, emission, offsets)
    alpha = _forward(steps)
    found = _total(steps, alpha)
    return _shares(steps, alpha, _backward(steps), found), found


def expected(
    start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any, weight: Any = None
) -> ExpectedTransitions:
    """Return starts, moves within gaps and without, ends, emissions and log likelihoods, as `chain.expected` does."""
    steps = _prepared(start, moves, end, emission, offsets)
    alpha, beta = _forward(steps), _backward(steps)
    found, sizes = _total(steps, alpha), np.diff(steps.offsets)
    weights = np.ones(len(found)) if weight is None else np.asarray(weight, dtype=np.float64)
    weights = np.repeat(np.where(np.isneginf(found), 0.0, weights), sizes)
    total = np.repeat(_finite(found), sizes)
    pairs, starts = np.zeros_like(steps.powers), np.zeros(len(steps.start))
    for rows, first in steps.rounds():
        before = np.broadcast_to(steps.start, (len(rows), len(starts))) if first else alpha[rows - 1]
        ways = before[:, :, None] + steps.powers[steps.which[rows]]
        ways += (steps.emission[rows] + beta[rows] - total[rows, None])[:, None, :]
        happened = np.exp(ways) * weights[rows, None, None]
        np.add.at(pairs, steps.which[rows], happened)
        if first:
            starts += happened.sum(axis=(0, 2))
    transition = np.exp(moves.transition)
    went = sum(
        (_within(transition, int(length), some, power)
         for length, some, power in zip(steps.lengths, pairs, steps.powers, strict=True) if length),
        np.zeros_like(transition),
    )  # fmt: skip
    shares = _shares(steps, alpha, beta, found) * weights[:, None]
    last = steps.offsets[1:][sizes > 0] - 1
    ends = shares[last].sum(axis=0)
    if isinstance(emission, tuple):
        codes, table = emission
        known = (codes >= 0) & (codes < len(table))
        counts = np.zeros((len(table), len(starts)))
        np.add.at(counts, codes[known].astype(np.intp), shares[known])
        shares = counts
    return ExpectedTransitions(starts, went, ends, shares, found)


def _prepared(start: Any, moves: GappedTransitions, end: Any, emission: Any, offsets: Any) -> _Steps:
    offsets = np.asarray(offsets, dtype=np.int64)
    rows = np.asarray(_rows(emission), dtype=np.float64)
    length = np.asarray(moves.gaps, dtype=np.int64) + 1
    length[offsets[:-1][np.diff(offsets) > 0]] -= 1  # nothing but the start lies before
    lengths, which = np.unique(length, return_inverse=True)
    powers = np.zeros((len(lengths), len(start), len(start)))  # none where no sequence has a step
    for k, n in enumerate(lengths):
        powers[k] = log_power(moves.transition, int(n))
    return _Steps(
        np.asarray(start), powers, which.ravel(), lengths, np.zeros(len(start)) if end is None else end, rows, offsets
    )


def log_power(logs: Float64Array, n: int) -> Float64Array:
    """The logs of a power of a matrix of these logs; scaled on the way, so that it does not vanish."""
    if n == 1:
        return logs  # however small
    out, scale = _scaled_power(np.exp(logs), n)
    with np.errstate(divide="ignore"):
        return np.log(out) + scale


def _scaled_power(matrix: Float64Array, n: int) -> tuple[Float64Array, float]:
    """A power of a matrix, and the log of what it is to be multiplied by."""
    out, scale = np.eye(len(matrix)), 0.0
    square, rising = matrix, 0.0
    while n:
        if n & 1:
            out, scale = out @ square, scale + rising
            largest = out.max()
            if largest > 0:
                out, scale = out / largest, scale + float(np.log(largest))
        n >>= 1
        if n:
            square, rising = square @ square, 2 * rising
            largest = square.max()
            if largest > 0:
                square, rising = square / largest, rising + float(np.log(largest))
    return out, scale


def _within(transition: Float64Array, n: int, pairs: Float64Array, log_power: Float64Array) -> Float64Array:
    """What is expected of n moves whose ends are in these pairs of states: A ∘ Σₘ (Aᵀ)ᵐ (pairs / Aⁿ) (Aᵀ)ⁿ⁻¹⁻ᵐ.

    The sum is a corner of the n-th power of [[Aᵀ, pairs / Aⁿ], [0, Aᵀ]].
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
    power, scale = _scaled_power(block, n)
    with np.errstate(divide="ignore"):
        logs = np.log(transition) + np.log(power[:size, size:]) + scale + shift
    return np.exp(logs)


def _begun(steps: _Steps, rows: Int64Array) -> Float64Array:
    """log p(state) of the first steps, before they are seen."""
    return _sum(steps.start[None, :, None] + steps.powers[steps.which[rows]], 1)


def _forward(steps: _Steps) -> Float64Array:
    """log p(steps so far, state)."""
    out = np.empty_like(steps.emission)
    for rows, first in steps.rounds():
        out[rows] = _ahead(steps, out, rows, first) + steps.emission[rows]
    return out


def _ahead(steps: _Steps, alpha: Float64Array, rows: Int64Array, first: bool) -> Float64Array:
    """log p(steps before, state) of some steps, from what the ones before them say."""
    return _begun(steps, rows) if first else _sum(alpha[rows - 1][:, :, None] + steps.powers[steps.which[rows]], 1)


def _trellis(steps: _Steps) -> tuple[Float64Array, Int64Array]:
    """log p(steps so far, the best path to the state), and the state before on it."""
    best, pointers = np.empty_like(steps.emission), np.full(steps.emission.shape, -1, dtype=np.int64)
    for rows, first in steps.rounds():
        if first:
            best[rows] = _begun(steps, rows)
        else:
            ways = best[rows - 1][:, :, None] + steps.powers[steps.which[rows]]
            pointers[rows], best[rows] = ways.argmax(axis=1), ways.max(axis=1)
        best[rows] += steps.emission[rows]
    return best, pointers


def _backward(steps: _Steps) -> Float64Array:
    """log p(steps to come | state)."""
    out = np.empty_like(steps.emission)
    out[steps.offsets[1:][np.diff(steps.offsets) > 0] - 1] = steps.end
    for rows, first in reversed(steps.rounds()):
        if not first:
            ahead = (steps.emission[rows] + out[rows])[:, None, :]
            out[rows - 1] = _sum(steps.powers[steps.which[rows]] + ahead, 2)
    return out


def _shares(steps: _Steps, alpha: Float64Array, beta: Float64Array, found: Float64Array) -> Float64Array:
    total = np.repeat(_finite(found), np.diff(steps.offsets))
    return np.exp(alpha + beta - total[:, None])


def _total(steps: _Steps, alpha: Float64Array) -> Float64Array:
    found = np.zeros(len(steps.offsets) - 1)
    some = np.flatnonzero(np.diff(steps.offsets))
    found[some] = _sum(alpha[steps.offsets[1:][some] - 1] + steps.end, 1)
    return found


def _sum(logs: Float64Array, axis: int) -> Float64Array:
    """The log of a sum of what these are the logs of."""
    top = _finite(logs.max(axis=axis, keepdims=True))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - top).sum(axis=axis)) + top.squeeze(axis))


def _finite(logs: Float64Array) -> Float64Array:
    """Logs, 0 where there is nothing."""
    return np.where(np.isneginf(logs), 0.0, logs)
