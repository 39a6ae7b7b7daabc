"""Chains of hidden states: what hidden Markov models compute, for many sequences at once.

Step t of a sequence has a hidden state sₜ and emits what is seen. A path of states and a sequence have the probability
start[s₁] · Π transition[sₜ₋₁, sₜ] · Π emission[t, sₜ] · end[last s]. Everything is given as logarithms.

Conventions shared by all functions, S being the number of states:

start
    Shape (S,). May hold −inf, as may `transition`, `end` and `emission`; none may hold NaN or +inf.
transition
    Shape (S, S), from row to column. Or `Gapped`, with how many silent steps lie before every step: then by NumPy, and
    the states of silent steps are summed out everywhere.
end
    Shape (S,), or None if a sequence may end in any state, at no cost.
emission
    ``float64`` of shape (N, S): log p(step | state), up to a factor that the states of a step share. Or a pair of codes
    (N,), any integer type, and a table (L, S) of log p(level | state); a missing code, −1 or the largest value of an
    unsigned type where that is no level, says nothing: it adds 0 in every state.
offsets
    Whole numbers of shape (M + 1,): the N steps lie end to end, and sequence m is those from ``offsets[m]`` up to
    ``offsets[m + 1]``. A sequence may be empty: its likelihood is 1 whatever `start` and `end` say.
threads
    0 for as many as there are cores. The result is the same to the last bit for every number of threads, and a
    sequence's does not depend on the others.

A sequence that the model cannot produce has log likelihood −inf; nothing ever is NaN. However small the probabilities,
and however far apart, none is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels import reference_chain as _reference_chain
from tallybayes.kernels import reference_gaps as _reference_gaps
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference_gaps import Gapped
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["Best", "Expected", "Gapped", "expected", "filter", "log_likelihood", "posterior", "trellis", "viterbi"]

Emission = Float64Array | tuple[AnyArray, npt.ArrayLike]
_Checked = tuple[Float64Array, Float64Array, Float64Array | None, Any, Int64Array]
Answer = TypeVar("Answer", bound=Callable[..., Any])
_MOST_LEVELS = 2**31 - 2


class Expected(NamedTuple):
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


def _with_gaps(question: Answer) -> Answer:
    """The same question where silent steps lie between those that are seen."""

    @wraps(question)
    def asked(start: Any, transition: Any, end: Any, emission: Any, offsets: Any, *more: Any, **options: Any) -> Any:
        if not isinstance(transition, Gapped):
            return question(start, transition, end, emission, offsets, *more, **options)
        first, moves, last, rows, cuts = _check(start, transition.transition, end, emission, offsets)
        options.pop("threads", None)
        gapped = Gapped(moves, transition.gaps)
        found = getattr(_reference_gaps, question.__name__)(first, gapped, last, rows, cuts, *more, **options)
        return Expected(*found) if question.__name__ == "expected" else found

    return asked  # type: ignore[return-value]


@_with_gaps
def log_likelihood(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
    threads: int = 0,
) -> Float64Array:
    """Return log p(sequence) of every sequence.

    Parameters
    ----------
    start, transition, end, emission, offsets, threads
        See the module's conventions.

    Returns
    -------
    float64 array of shape (M,)

    Raises
    ------
    IndexError
        At the first code that is neither a level nor missing.
    ValueError, TypeError
        Where an array has another shape or type, or holds NaN or +inf.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> found = chain.log_likelihood(start, transition, None, (np.array([0, 0, 1]), table), [0, 1, 3])
    >>> np.exp(found).round(4)
    array([0.4  , 0.165])
    """
    model = _check(start, transition, end, emission, offsets)
    found = np.empty(len(model[-1]) - 1)
    _implementation().chain_log_likelihood(*model, found, n_threads(threads))
    return found


@_with_gaps
def viterbi(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
    threads: int = 0,
) -> tuple[Int64Array, Float64Array]:
    """Return the most probable states of every sequence.

    Parameters
    ----------
    start, transition, end, emission, offsets, threads
        See the module's conventions.

    Returns
    -------
    path : int64 array of shape (N,)
        Of several best paths the one whose last state is the lowest; of these the one whose last but one is, and so on.
        All −1 where the sequence is impossible.
    score : float64 array of shape (M,)
        log p(path, sequence); −inf where the sequence is impossible.

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> path, score = chain.viterbi(start, transition, None, (np.array([0, 0, 1, 1, 1]), table), [0, 5])
    >>> path.tolist(), np.exp(score).round(5).tolist()
    ([0, 0, 1, 1, 1], [0.01029])
    """
    model = _check(start, transition, end, emission, offsets)
    path, score = np.empty(model[-1][-1], dtype=np.int64), np.empty(len(model[-1]) - 1)
    _implementation().chain_viterbi(*model, path, score, n_threads(threads))
    return path, score


def trellis(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
) -> list[Best]:
    """Return all that `viterbi` goes by, for reading: it takes the memory and the time of NumPy.

    Parameters
    ----------
    start, transition, end, emission, offsets
        See the module's conventions.

    Returns
    -------
    list of Best
    """
    first, moves, last, given, cuts = _check(start, transition, end, emission, offsets)
    path, score = viterbi(first, moves, last, given, cuts)
    rows, coded, out = _reference_chain._rows(given), isinstance(given, tuple), []
    for k, (a, b) in enumerate(pairwise(cuts.tolist())):
        log_delta, pointers = np.empty((b - a, len(first))), np.full((b - a, len(first)), -1, dtype=np.int64)
        if b > a:
            scores, taken = _reference_chain.trellis(first, moves, rows[a:b], coded=coded)
            log_delta = scores + taken.sum(axis=0).cumsum()[:, None]
            for t in range(1, b - a):
                pointers[t] = (scores[t - 1][:, None] + moves).argmax(axis=0)
            pointers[np.isneginf(log_delta)] = -1
        out.append(Best(log_delta, pointers, path[a:b], float(score[k])))
    return out


@_with_gaps
def filter(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
    threads: int = 0,
) -> tuple[Float64Array, Float64Array]:
    """Return p(state | this step and those before it) of every step.

    Parameters
    ----------
    start, transition, end, emission, offsets, threads
        See the module's conventions.

    Returns
    -------
    probabilities : float64 array of shape (N, S)
        Rows add up to 1; from the first impossible step of a sequence on they are 0. `end` says nothing here.
    log_likelihood : float64 array of shape (M,)

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> emission = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> chain.filter(start, transition, None, emission, [0, 2])[0].round(3)
    array([[0.875, 0.125],
           [0.591, 0.409]])
    """
    return _rows("chain_filter", start, transition, end, emission, offsets, threads)


@_with_gaps
def posterior(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
    threads: int = 0,
) -> tuple[Float64Array, Float64Array]:
    """Return p(state | whole sequence) of every step.

    Parameters
    ----------
    start, transition, end, emission, offsets, threads
        See the module's conventions.

    Returns
    -------
    probabilities : float64 array of shape (N, S)
        Rows add up to 1; those of an impossible sequence are 0.
    log_likelihood : float64 array of shape (M,)

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> emission = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> chain.posterior(start, transition, None, emission, [0, 2])[0].round(3)
    array([[0.764, 0.236],
           [0.591, 0.409]])
    """
    return _rows("chain_posterior", start, transition, end, emission, offsets, threads)


@_with_gaps
def expected(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Expected:
    """Return what is expected to have happened in the sequences, added up: the counts Baum-Welch learns from.

    Parameters
    ----------
    start, transition, end, emission, offsets, threads
        See the module's conventions.
    weight : array of shape (M,), optional
        How often each sequence counts, finite and at least 0; once by default.

    Returns
    -------
    Expected
        Impossible sequences and those of weight 0 add nothing, and their rows are 0.

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> found = chain.expected(start, transition, None, (np.array([0, 1, -1]), table), [0, 3])
    >>> found.start.round(3), found.transition.sum().round(3)
    (array([0.764, 0.236]), np.float64(2.0))
    >>> found.emission.round(3)  # a missing step is not counted
    array([[0.764, 0.236],
           [0.591, 0.409]])
    """
    model = _check(start, transition, end, emission, offsets)
    n_sequences, n_states = len(model[-1]) - 1, len(model[0])
    weights = None
    if weight is not None:
        weights = np.ascontiguousarray(weight, dtype=np.float64)
        if weights.shape != (n_sequences,):
            raise ValueError(f"weight has shape {weights.shape}, expected ({n_sequences},): one for each sequence")
        if weights.size and not (weights.min() >= 0.0 and weights.max() < np.inf):
            raise ValueError(f"weight runs from {weights.min()} to {weights.max()}, expected finite numbers from 0 on")
    rows = np.empty((len(model[3][1]) if isinstance(model[3], tuple) else len(model[3]), n_states))
    found = np.empty(n_sequences)
    workers = n_threads(threads)
    starts, moves, ends = _implementation().chain_expected(*model, weights, rows, found, workers)
    return Expected(starts, moves, ends, rows, found)


def _implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return _reference_chain if kernels._kernels is kernels._reference else kernels._kernels


def _rows(name: str, *arguments: Any) -> tuple[Float64Array, Float64Array]:
    """Call the implementation of that name with room for a row of each step."""
    *given, threads = arguments
    model = _check(*given)
    rows, found = np.empty((model[-1][-1], len(model[0]))), np.empty(len(model[-1]) - 1)
    getattr(_implementation(), name)(*model, rows, found, n_threads(threads))
    return rows, found


def _logarithms(values: npt.ArrayLike, name: str, shape: tuple[int | None, ...]) -> Float64Array:
    """Return contiguous float64 of that shape, None standing for any length; refuse NaN and +inf."""
    found = np.ascontiguousarray(values, dtype=np.float64)
    expected_shape = "(" + ", ".join("any" if n is None else str(n) for n in shape) + (",)" if len(shape) == 1 else ")")
    if found.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
        raise ValueError(f"{name} has shape {found.shape}, expected {expected_shape}")
    if found.size and not found.max() < np.inf:
        raise ValueError(f"{name} holds NaN or inf, expected logarithms: numbers or -inf")
    return found


def _check_emission(emission: Emission, n_states: int) -> tuple[Any, int]:
    """Return the emission as the loops take it, and the number of steps. Its values are checked where they are read."""
    if isinstance(emission, tuple):
        if len(emission) != 2:
            raise ValueError(f"emission is a tuple of {len(emission)}, expected codes and a table")
        codes, table = emission
        _arguments.check_array(codes, "the codes of emission", 1, _arguments.CODE_TYPES)
        logs = _logarithms(table, "the table of emission", (None, n_states))
        if len(logs) > _MOST_LEVELS:
            raise ValueError(f"the table of emission has {len(logs)} levels, expected at most {_MOST_LEVELS}")
        return (codes, logs), len(codes)
    _arguments.check_array(emission, "emission", 2, frozenset({_arguments.FLOAT64}))
    if emission.shape[1] != n_states:
        raise ValueError(f"emission has shape {emission.shape}, expected (steps, {n_states}): a column for each state")
    return _arguments.contiguous(emission), len(emission)


def _check(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
) -> _Checked:
    """Return the arguments as the loops take them, or say what is wrong with them."""
    first = _logarithms(start, "start", (None,))
    n_states = len(first)
    if not n_states:
        raise ValueError("start is empty, expected at least one state")
    moves = _logarithms(transition, "transition", (n_states, n_states))
    last = None if end is None else _logarithms(end, "end", (n_states,))
    rows, n_steps = _check_emission(emission, n_states)
    cuts = np.ascontiguousarray(offsets)
    if cuts.ndim != 1 or not len(cuts):
        raise ValueError(f"offsets has shape {cuts.shape}, expected one axis with at least one number")
    if cuts.dtype.kind not in "iu":
        raise TypeError(f"offsets has dtype {cuts.dtype}, expected whole numbers")
    cuts = cuts.astype(np.int64, copy=False)
    if cuts[0] != 0 or cuts[-1] != n_steps:
        raise ValueError(f"offsets runs from {cuts[0]} to {cuts[-1]}, expected 0 to {n_steps}, the number of steps")
    falls = cuts[1:] < cuts[:-1]
    if falls.any():
        k = int(falls.argmax())
        raise ValueError(f"offsets falls from {cuts[k]} to {cuts[k + 1]} at sequence {k}, expected rising numbers")
    return first, moves, last, rows, cuts
