"""Arguments of the kernels of hidden Markov models, and their validation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array

__all__ = [
    "CheckedInput",
    "Emission",
    "GappedTransitions",
    "HMMInput",
    "check",
    "check_uniform",
    "check_weight",
    "laid_out",
]

Emission = Float64Array | tuple[AnyArray, npt.ArrayLike]
_MAX_LEVELS = 2**31 - 2
_MOST_UNOBSERVED = 4  # for each observed step: gaps of more steps take less time as powers of the transition matrix


class GappedTransitions(NamedTuple):
    """Log transition matrix, and the number of unobserved time steps before every step.

    The states of unobserved steps are summed out. With very many of them, the computation is in NumPy.
    """

    transition: npt.ArrayLike
    gaps: Int64Array


class HMMInput(NamedTuple):
    """Parameters of a hidden Markov model and the sequences to evaluate, all probabilities as logarithms.

    Attributes
    ----------
    start : array of shape (S,)
        Log initial state probabilities. These and all other logarithms may be −inf, but not NaN or +inf.
    transition : array of shape (S, S), or GappedTransitions
        Log transition probabilities from row to column.
    end : array of shape (S,), or None
        Log probabilities of ending in each state. None if sequences may end in any state (all zeros).
    emission : float64 array of shape (N, S), or pair of codes and table
        log p(observation | state) of every step, up to a constant per step. Or codes (N,) of any integer type and a
        table (L, S) of log p(level | state). A missing code, −1 or the largest value of an unsigned type if that is not
        a level, has log probability 0 in every state.
    offsets : integer array of shape (M + 1,)
        The N steps of M sequences are concatenated; sequence m has the steps ``offsets[m]`` to ``offsets[m + 1] − 1``.
        The likelihood of an empty sequence is 1.
    """

    start: npt.ArrayLike
    transition: npt.ArrayLike | GappedTransitions
    end: npt.ArrayLike | None
    emission: Emission
    offsets: npt.ArrayLike


class CheckedInput(NamedTuple):
    """A validated `HMMInput`, as contiguous arrays; `gaps` is None without unobserved steps."""

    start: Float64Array
    transition: Float64Array
    end: Float64Array | None
    emission: Float64Array | tuple[AnyArray, Float64Array]
    offsets: Int64Array
    gaps: Int64Array | None

    @property
    def arrays(self) -> tuple[object, ...]:
        """The first arguments of the compiled functions."""
        return self[:5]

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return len(self.start)

    @property
    def n_steps(self) -> int:
        """Number of steps N of all sequences."""
        return int(self.offsets[-1])

    @property
    def n_sequences(self) -> int:
        """Number of sequences M."""
        return len(self.offsets) - 1


def laid_out(checked: CheckedInput) -> tuple[CheckedInput, Int64Array | None]:
    """Return the input with a missing observation for every unobserved step, and the positions of the observed steps.

    The input itself, and None, with very many unobserved steps, and if codes have no type for missing ones.
    """
    emission, gaps = checked.emission, checked.gaps
    values = emission[0] if isinstance(emission, tuple) else emission
    if gaps is None or values.dtype.kind == "u" or gaps.sum() > _MOST_UNOBSERVED * len(gaps):
        return checked, None
    n_before = np.concatenate([[0], np.cumsum(gaps)])
    observed = np.arange(len(gaps)) + n_before[1:]
    missing = -1 if isinstance(emission, tuple) else 0.0
    laid = np.full((len(gaps) + int(n_before[-1]), *values.shape[1:]), missing, dtype=values.dtype)
    laid[observed] = values
    offsets = checked.offsets + n_before[checked.offsets]
    emission = (laid, emission[1]) if isinstance(emission, tuple) else laid
    return checked._replace(emission=emission, offsets=offsets, gaps=None), observed


def check(model: HMMInput) -> CheckedInput:
    """Return the input as contiguous arrays, or raise ValueError or TypeError. The kernels check the emissions."""
    start = _arguments.check_floats(model.start, "start", (None,), logs=True)
    n_states = len(start)
    if not n_states:
        raise ValueError("start is empty, expected at least one state")
    gapped = model.transition if isinstance(model.transition, GappedTransitions) else None
    transition = _arguments.check_floats(
        gapped.transition if gapped else model.transition, "transition", (n_states, n_states), logs=True
    )
    end = None if model.end is None else _arguments.check_floats(model.end, "end", (n_states,), logs=True)
    emission, n_steps = _check_emission(model.emission, n_states)
    offsets = _check_offsets(model.offsets, n_steps)
    return CheckedInput(start, transition, end, emission, offsets, gapped.gaps if gapped else None)


def check_weight(weight: npt.ArrayLike | None, n_sequences: int) -> Float64Array | None:
    """Return the weights of the sequences as contiguous float64, or raise ValueError."""
    if weight is None:
        return None
    weights = np.ascontiguousarray(weight, dtype=np.float64)
    if weights.shape != (n_sequences,):
        raise ValueError(f"weight has shape {weights.shape}, expected ({n_sequences},): one for each sequence")
    _check_range(weights, "weight", np.inf, "finite numbers from 0 on")
    return weights


def check_uniform(uniform: npt.ArrayLike, n_steps: int) -> Float64Array:
    """Return uniform random numbers as contiguous float64 of shape (N, paths), or raise ValueError."""
    numbers = np.ascontiguousarray(uniform, dtype=np.float64)
    if numbers.ndim != 2 or len(numbers) != n_steps:
        raise ValueError(f"uniform has shape {numbers.shape}, expected ({n_steps}, any): a row for each step")
    _check_range(numbers, "uniform", 1.0, "numbers from 0 up to 1")
    return numbers


def _check_range(numbers: Float64Array, name: str, below: float, expected: str) -> None:
    """Raise ValueError unless all numbers are at least 0 and less than a limit."""
    if numbers.size and not (numbers.min() >= 0.0 and numbers.max() < below):
        raise ValueError(f"{name} runs from {numbers.min()} to {numbers.max()}, expected {expected}")


def _check_emission(emission: Emission, n_states: int) -> tuple[Float64Array | tuple[AnyArray, Float64Array], int]:
    """Return the emissions as contiguous arrays, and the number of steps."""
    if isinstance(emission, tuple):
        if len(emission) != 2:
            raise ValueError(f"emission is a tuple of {len(emission)}, expected codes and a table")
        codes, table = emission
        _arguments.check_array(codes, "the codes of emission", 1, _arguments.CODE_TYPES)
        logs = _arguments.check_floats(table, "the table of emission", (None, n_states), logs=True)
        if len(logs) > _MAX_LEVELS:
            raise ValueError(f"the table of emission has {len(logs)} levels, expected at most {_MAX_LEVELS}")
        return (codes, logs), len(codes)
    _arguments.check_array(emission, "emission", 2, frozenset({_arguments.FLOAT64}))
    if emission.shape[1] != n_states:
        raise ValueError(f"emission has shape {emission.shape}, expected (steps, {n_states}): a column for each state")
    return _arguments.contiguous(emission), len(emission)


def _check_offsets(offsets: npt.ArrayLike, n_steps: int) -> Int64Array:
    """Return the offsets of the sequences as int64."""
    bounds = np.ascontiguousarray(offsets)
    if bounds.ndim != 1 or not len(bounds):
        raise ValueError(f"offsets has shape {bounds.shape}, expected one axis with at least one number")
    if bounds.dtype.kind not in "iu":
        raise TypeError(f"offsets has dtype {bounds.dtype}, expected whole numbers")
    bounds = bounds.astype(np.int64, copy=False)
    if bounds[0] != 0 or bounds[-1] != n_steps:
        raise ValueError(f"offsets runs from {bounds[0]} to {bounds[-1]}, expected 0 to {n_steps}, the number of steps")
    falls = bounds[1:] < bounds[:-1]
    if falls.any():
        k = int(falls.argmax())
        raise ValueError(f"offsets falls from {bounds[k]} to {bounds[k + 1]} at sequence {k}, expected rising numbers")
    return bounds
