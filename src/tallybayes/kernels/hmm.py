"""Inference in hidden Markov models, for many sequences at once: likelihoods, Viterbi, forward–backward.

Step t of a sequence has a hidden state sₜ and an observation. The joint probability of a path of states and a sequence
is start[s₁] · Π transition[sₜ₋₁, sₜ] · Π emission[t, sₜ] · end[last s]. `HMMInput` holds these as logarithms.

``threads`` is the maximum number of threads, 0 for the maximum of `set_threads`. The result for a sequence depends
neither on it nor on the other sequences. A sequence that the model cannot generate has log likelihood −inf; results are
never NaN. Arbitrarily small probabilities do not underflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.arguments import threads as allowed_threads
from tallybayes.kernels.hmm_arguments import (
    CheckedInput,
    GappedTransitions,
    HMMInput,
    check,
    check_uniform,
    check_weight,
    laid_out,
)
from tallybayes.kernels.reference import hmm as _reference
from tallybayes.kernels.reference.hmm import ExpectedTransitions, log_power

__all__ = [
    "ExpectedTransitions",
    "GappedTransitions",
    "HMMInput",
    "best_paths",
    "draw_paths",
    "expected",
    "filter",
    "log_likelihood",
    "log_power",
    "posterior",
    "viterbi",
]


def log_likelihood(model: HMMInput, threads: int = 0) -> Float64Array:
    """Return log p(sequence) of every sequence (forward algorithm).

    Parameters
    ----------
    model : HMMInput
    threads : int, default 0

    Returns
    -------
    float64 array of shape (M,)

    Raises
    ------
    IndexError
        If a code is neither a level nor missing; the error names the first one.
    ValueError, TypeError
        If an array has a wrong shape or type, or contains NaN or +inf.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> model = hmm.HMMInput(start, transition, None, (np.array([0, 0, 1]), table), [0, 1, 3])
    >>> np.exp(hmm.log_likelihood(model)).round(4)
    array([0.4  , 0.165])
    """
    checked, _ = _with_unobserved_steps(model)
    compiled, n_threads = _implementation(checked, threads)
    if compiled is None:
        return _reference.log_likelihood(checked)
    logs = np.empty(checked.n_sequences)
    compiled.chain_log_likelihood(*checked.arrays, logs, n_threads)
    return logs


def viterbi(model: HMMInput, threads: int = 0) -> tuple[Int64Array, Float64Array]:
    """Return the most probable state sequence (Viterbi path) of every sequence.

    Parameters
    ----------
    model : HMMInput
    threads : int, default 0

    Returns
    -------
    path : int64 array of shape (N,)
        Among equally probable paths the one with the lowest last state, then the lowest previous state, and so on.
        −1 if the sequence is impossible.
    score : float64 array of shape (M,)
        log p(path, sequence); −inf if the sequence is impossible.

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> path, score = hmm.viterbi(hmm.HMMInput(start, transition, None, (np.array([0, 0, 1, 1, 1]), table), [0, 5]))
    >>> path.tolist(), np.exp(score).round(5).tolist()
    ([0, 0, 1, 1, 1], [0.01029])
    """
    checked = check(model)
    return _by_step("viterbi", checked, np.empty(checked.n_steps, dtype=np.int64), threads)


def best_paths(model: HMMInput, n_paths: int, threads: int = 0) -> tuple[Int64Array, Float64Array]:
    """Return the `n_paths` most probable state sequences of every sequence (list Viterbi).

    Parameters
    ----------
    model : HMMInput
    n_paths : int
        At least 1.
    threads : int, default 0

    Returns
    -------
    paths : int64 array of shape (N, n_paths)
        Most probable first; ties are broken as in `viterbi`, whose path is the first. −1 if there are fewer paths.
    score : float64 array of shape (M, n_paths)
        log p(path, sequence); −inf if there are fewer paths.

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> paths, score = hmm.best_paths(hmm.HMMInput(start, transition, None, (np.array([0, 0, 1]), table), [0, 3]), 2)
    >>> paths.T.tolist(), np.exp(score).round(4).tolist()
    ([[0, 0, 0], [0, 0, 1]], [[0.0595, 0.0198]])
    """
    checked = check(model)
    most = (2**32 - 1) // checked.n_states
    if not 1 <= n_paths <= most:
        raise ValueError(f"n_paths is {n_paths}, expected 1 to {most}")
    compiled, n_threads = _implementation(checked, threads)
    if compiled is None:
        return _reference.best_paths(checked, n_paths)
    paths = np.empty((checked.n_steps, n_paths), dtype=np.int64)
    score = np.empty((checked.n_sequences, n_paths))
    compiled.chain_best_paths(*checked.arrays, paths, score, n_threads)
    return paths, score


def draw_paths(model: HMMInput, uniform: npt.ArrayLike, threads: int = 0) -> tuple[Int64Array, Float64Array]:
    """Draw state sequences from p(path | sequence) (forward filtering, backward sampling).

    Parameters
    ----------
    model : HMMInput
    uniform : float64 array of shape (N, paths)
        Uniform random numbers in [0, 1).
    threads : int, default 0

    Returns
    -------
    paths : int64 array of shape (N, paths)
        −1 if the sequence is impossible.
    log_likelihood : float64 array of shape (M,)

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> model = hmm.HMMInput(start, transition, None, np.log([[0.7, 0.1], [0.3, 0.9]]), [0, 2])
    >>> hmm.draw_paths(model, np.array([[0.1, 0.9], [0.5, 0.9]]))[0].T
    array([[0, 0],
           [1, 1]])
    """
    checked = check(model)
    numbers = check_uniform(uniform, checked.n_steps)
    return _by_step("draw_paths", checked, np.empty(numbers.shape, dtype=np.int64), threads, numbers)


def filter(model: HMMInput, threads: int = 0) -> tuple[Float64Array, Float64Array]:
    """Return the filtered state probabilities p(state | observations up to this step) of every step.

    Parameters
    ----------
    model : HMMInput
        `end` affects only the log likelihood.
    threads : int, default 0

    Returns
    -------
    probabilities : float64 array of shape (N, S)
        Rows sum to 1; they are 0 from the first impossible step of a sequence on.
    log_likelihood : float64 array of shape (M,)

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> hmm.filter(hmm.HMMInput(start, transition, None, np.log([[0.7, 0.1], [0.3, 0.9]]), [0, 2]))[0].round(3)
    array([[0.875, 0.125],
           [0.591, 0.409]])
    """
    checked, observed = _with_unobserved_steps(model)
    rows, logs = _by_step("filter", checked, np.empty((checked.n_steps, checked.n_states)), threads)
    return rows if observed is None else rows[observed], logs


def posterior(model: HMMInput, threads: int = 0) -> tuple[Float64Array, Float64Array]:
    """Return the smoothed state probabilities p(state | sequence) of every step (forward–backward algorithm).

    Parameters
    ----------
    model : HMMInput
    threads : int, default 0

    Returns
    -------
    probabilities : float64 array of shape (N, S)
        Rows sum to 1; those of an impossible sequence are 0.
    log_likelihood : float64 array of shape (M,)

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> hmm.posterior(hmm.HMMInput(start, transition, None, np.log([[0.7, 0.1], [0.3, 0.9]]), [0, 2]))[0].round(3)
    array([[0.764, 0.236],
           [0.591, 0.409]])
    """
    checked, observed = _with_unobserved_steps(model)
    rows, logs = _by_step("posterior", checked, np.empty((checked.n_steps, checked.n_states)), threads)
    return rows if observed is None else rows[observed], logs


def expected(model: HMMInput, weight: npt.ArrayLike | None = None, threads: int = 0) -> ExpectedTransitions:
    """Return the expected sufficient statistics of all sequences: the E-step of Baum–Welch.

    Parameters
    ----------
    model : HMMInput
    weight : array of shape (M,), optional
        Weight of every sequence, finite and nonnegative; 1 by default.
    threads : int, default 0

    Returns
    -------
    ExpectedTransitions
        Impossible sequences and those of weight 0 contribute nothing, and their rows are 0.

    Raises
    ------
    IndexError, ValueError, TypeError
        As in `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels import hmm
    >>> start, transition = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> table = np.log([[0.7, 0.1], [0.3, 0.9]])
    >>> counts = hmm.expected(hmm.HMMInput(start, transition, None, (np.array([0, 1, -1]), table), [0, 3]))
    >>> counts.start.round(3), counts.transition.sum().round(3)
    (array([0.764, 0.236]), np.float64(2.0))
    >>> counts.emission.round(3)  # a missing observation is not counted
    array([[0.764, 0.236],
           [0.591, 0.409]])
    """
    checked, observed = _with_unobserved_steps(model)
    weights = check_weight(weight, checked.n_sequences)
    compiled, n_threads = _implementation(checked, threads)
    if compiled is None:
        return _reference.expected(checked, weights)
    emission = checked.emission
    counts = np.empty((len(emission[1] if isinstance(emission, tuple) else emission), checked.n_states))
    logs = np.empty(checked.n_sequences)
    starts, transitions, ends = compiled.chain_expected(*checked.arrays, weights, counts, logs, n_threads)
    if observed is not None and not isinstance(emission, tuple):
        counts = counts[observed]
    return ExpectedTransitions(starts, transitions, ends, counts, logs)


def _with_unobserved_steps(model: HMMInput) -> tuple[CheckedInput, Int64Array | None]:
    """Return the checked input, and the positions of the observed steps if the compiled kernels have all steps."""
    checked = check(model)
    unchanged = checked.gaps is None or implementation_for(_reference) is _reference
    return (checked, None) if unchanged else laid_out(checked)


def _implementation(checked: CheckedInput, threads: int) -> tuple[Any, int]:
    """Return the compiled kernels and their number of threads.

    None instead of the kernels where NumPy computes: with gaps, or if the reference is active.
    """
    kernels = implementation_for(_reference)
    return None if checked.gaps is not None or kernels is _reference else kernels, allowed_threads(threads)


def _by_step(
    name: str, checked: CheckedInput, rows: AnyArray, threads: int, *arguments: AnyArray
) -> tuple[AnyArray, Float64Array]:
    """Return results of every step, written to `rows`, and a number for every sequence."""
    compiled, n_threads = _implementation(checked, threads)
    if compiled is None:
        return getattr(_reference, name)(checked, *arguments)
    logs = np.empty(checked.n_sequences)
    getattr(compiled, f"chain_{name}")(*checked.arrays, *arguments, rows, logs, n_threads)
    return rows, logs
