"""Chains of hidden states: what hidden Markov models compute, for many sequences at once.

Step t of a sequence has a hidden state sₜ and emits what is seen. A path of states and a sequence have the probability
start[s₁] · Π transition[sₜ₋₁, sₜ] · Π emission[t, sₜ] · end[last s]. Everything is given as logarithms.

Conventions shared by all functions, S being the number of states:

start
    Shape (S,). May hold −inf, as may `transition`, `end` and `emission`; none may hold NaN or +inf.
transition
    Shape (S, S), from row to column. Or `GappedTransitions`, with the number of unobserved steps before every step:
    computed by NumPy, with the states of unobserved steps summed out.
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

from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.arguments import Float64Array, Int64Array
from tallybayes.kernels.hmm_arguments import Emission, check, check_uniform, dispatch_gaps, implementation
from tallybayes.kernels.reference.hmm import ExpectedTransitions
from tallybayes.kernels.reference.hmm_gaps import GappedTransitions
from tallybayes.kernels.threads import threads as n_threads

__all__ = [
    "ExpectedTransitions",
    "GappedTransitions",
    "best_paths",
    "draw_paths",
    "expected",
    "filter",
    "log_likelihood",
    "posterior",
    "viterbi",
]  # fmt: skip


@dispatch_gaps
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
    >>> from tallybayes.kernels import hmm as chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> found = chain.log_likelihood(start, transition, None, (np.array([0, 0, 1]), table), [0, 1, 3])
    >>> np.exp(found).round(4)
    array([0.4  , 0.165])
    """
    model = check(start, transition, end, emission, offsets)
    found = np.empty(len(model[-1]) - 1)
    implementation().chain_log_likelihood(*model, found, n_threads(threads))
    return found


@dispatch_gaps
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
    >>> from tallybayes.kernels import hmm as chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> path, score = chain.viterbi(start, transition, None, (np.array([0, 0, 1, 1, 1]), table), [0, 5])
    >>> path.tolist(), np.exp(score).round(5).tolist()
    ([0, 0, 1, 1, 1], [0.01029])
    """
    model = check(start, transition, end, emission, offsets)
    path, score = np.empty(model[-1][-1], dtype=np.int64), np.empty(len(model[-1]) - 1)
    implementation().chain_viterbi(*model, path, score, n_threads(threads))
    return path, score


@dispatch_gaps
def best_paths(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
    n_paths: int,
    threads: int = 0,
) -> tuple[Int64Array, Float64Array]:
    """Return the most probable paths of every sequence, several of each.

    Parameters
    ----------
    start, transition, end, emission, offsets, threads
        See the module's conventions.
    n_paths : int
        At least 1.

    Returns
    -------
    paths : int64 array of shape (N, n_paths)
        Best first, and of equally good ones in the order of `viterbi`, whose path is the first. −1 where there are
        fewer.
    score : float64 array of shape (M, n_paths)
        log p(path, sequence); −inf where there are fewer.

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm as chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> paths, score = chain.best_paths(start, transition, None, (np.array([0, 0, 1]), table), [0, 3], 2)
    >>> paths.T.tolist(), np.exp(score).round(4).tolist()
    ([[0, 0, 0], [0, 0, 1]], [[0.0595, 0.0198]])
    """
    model = check(start, transition, end, emission, offsets)
    most = (2**32 - 1) // len(model[0])
    if not 1 <= n_paths <= most:
        raise ValueError(f"n_paths is {n_paths}, expected 1 to {most}")
    paths = np.empty((model[-1][-1], n_paths), dtype=np.int64)
    score = np.empty((len(model[-1]) - 1, n_paths))
    implementation().chain_best_paths(*model, paths, score, n_threads(threads))
    return paths, score


@dispatch_gaps
def draw_paths(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
    uniform: Float64Array,
    threads: int = 0,
) -> tuple[Int64Array, Float64Array]:
    """Return paths of states drawn from p(path | whole sequence).

    Parameters
    ----------
    start, transition, end, emission, offsets, threads
        See the module's conventions.
    uniform : float64 array of shape (N, paths)
        By which to draw: from 0 up to, but not including, 1.

    Returns
    -------
    paths : int64 array of shape (N, paths)
        −1 where the sequence is impossible.
    log_likelihood : float64 array of shape (M,)

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm as chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> emission = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> chain.draw_paths(start, transition, None, emission, [0, 2], np.array([[0.1, 0.9], [0.5, 0.9]]))[0].T
    array([[0, 0],
           [1, 1]])
    """
    model = check(start, transition, end, emission, offsets)
    drawn = check_uniform(uniform, int(model[-1][-1]))
    paths, found = np.empty(drawn.shape, dtype=np.int64), np.empty(len(model[-1]) - 1)
    implementation().chain_draw_paths(*model, drawn, paths, found, n_threads(threads))
    return paths, found


@dispatch_gaps
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
    >>> from tallybayes.kernels import hmm as chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> emission = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> chain.filter(start, transition, None, emission, [0, 2])[0].round(3)
    array([[0.875, 0.125],
           [0.591, 0.409]])
    """
    return _rows("chain_filter", start, transition, end, emission, offsets, threads)


@dispatch_gaps
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
    >>> from tallybayes.kernels import hmm as chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> emission = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> chain.posterior(start, transition, None, emission, [0, 2])[0].round(3)
    array([[0.764, 0.236],
           [0.591, 0.409]])
    """
    return _rows("chain_posterior", start, transition, end, emission, offsets, threads)


@dispatch_gaps
def expected(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> ExpectedTransitions:
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
    >>> from tallybayes.kernels import hmm as chain
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> found = chain.expected(start, transition, None, (np.array([0, 1, -1]), table), [0, 3])
    >>> found.start.round(3), found.transition.sum().round(3)
    (array([0.764, 0.236]), np.float64(2.0))
    >>> found.emission.round(3)  # a missing step is not counted
    array([[0.764, 0.236],
           [0.591, 0.409]])
    """
    model = check(start, transition, end, emission, offsets)
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
    starts, moves, ends = implementation().chain_expected(*model, weights, rows, found, workers)
    return ExpectedTransitions(starts, moves, ends, rows, found)


def _rows(name: str, *arguments: Any) -> tuple[Float64Array, Float64Array]:
    """Call the implementation of that name with room for a row of each step."""
    *given, threads = arguments
    model = check(*given)
    rows, found = np.empty((model[-1][-1], len(model[0]))), np.empty(len(model[-1]) - 1)
    getattr(implementation(), name)(*model, rows, found, n_threads(threads))
    return rows, found
