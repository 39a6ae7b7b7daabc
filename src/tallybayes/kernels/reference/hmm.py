"""Inference in hidden Markov models in NumPy, with the signatures of the compiled functions."""

from __future__ import annotations

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.hmm_arguments import CheckedInput
from tallybayes.kernels.reference import hmm_inference

Emission = Float64Array | tuple[AnyArray, Float64Array]


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
    model = CheckedInput(start, transition, end, emission, offsets, None)
    log_likelihood[:] = hmm_inference.log_likelihood(model)


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
    model = CheckedInput(start, transition, end, emission, offsets, None)
    rows[:], log_likelihood[:] = hmm_inference.filter(model)


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
    model = CheckedInput(start, transition, end, emission, offsets, None)
    rows[:], log_likelihood[:] = hmm_inference.posterior(model)


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
    """Return expected starts, transitions and ends; write expected emissions to `rows`, and log p(sequence)."""
    model = CheckedInput(start, transition, end, emission, offsets, None)
    starts, transitions, ends, rows[:], log_likelihood[:] = hmm_inference.expected(model, weight)
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
    """Write the most probable states of every sequence, and log p(states, sequence)."""
    path[:], score[:] = hmm_inference.viterbi(CheckedInput(start, transition, end, emission, offsets, None))


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
    model = CheckedInput(start, transition, end, emission, offsets, None)
    paths[:], score[:] = hmm_inference.best_paths(model, paths.shape[1])


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
    model = CheckedInput(start, transition, end, emission, offsets, None)
    paths[:], log_likelihood[:] = hmm_inference.draw_paths(model, uniform)
