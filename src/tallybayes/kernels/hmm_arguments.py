"""What the functions of `chain` take, checked; and the same questions where silent steps lie between those seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference import hmm as _reference_chain
from tallybayes.kernels.reference import hmm_gaps as _reference_gaps
from tallybayes.kernels.reference.hmm_gaps import GappedTransitions

Emission = Float64Array | tuple[AnyArray, npt.ArrayLike]
Checked = tuple[Float64Array, Float64Array, Float64Array | None, Any, Int64Array]
Answer = TypeVar("Answer", bound=Callable[..., Any])
_MOST_LEVELS = 2**31 - 2


def implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return _reference_chain if kernels._kernels is kernels._reference else kernels._kernels


def dispatch_gaps(question: Answer) -> Answer:
    """The same question where silent steps lie between those that are seen, as `reference_gaps` answers it."""

    @wraps(question)
    def asked(start: Any, transition: Any, end: Any, emission: Any, offsets: Any, *more: Any, **options: Any) -> Any:
        if not isinstance(transition, GappedTransitions):
            return question(start, transition, end, emission, offsets, *more, **options)
        first, moves, last, rows, cuts = check(start, transition.transition, end, emission, offsets)
        options.pop("threads", None)
        gapped = GappedTransitions(moves, transition.gaps)
        return getattr(_reference_gaps, question.__name__)(first, gapped, last, rows, cuts, *more, **options)

    return asked  # type: ignore[return-value]


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


def check(
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    end: npt.ArrayLike | None,
    emission: Emission,
    offsets: npt.ArrayLike,
) -> Checked:
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


def check_uniform(uniform: Float64Array, n_steps: int) -> Float64Array:
    """Return numbers to draw by as the loops take them, or say what is wrong with them."""
    found = np.ascontiguousarray(uniform, dtype=np.float64)
    if found.ndim != 2 or len(found) != n_steps:
        raise ValueError(f"uniform has shape {found.shape}, expected ({n_steps}, any): a row for each step")
    if found.size and not (found.min() >= 0.0 and found.max() < 1.0):
        raise ValueError(f"uniform runs from {found.min()} to {found.max()}, expected numbers from 0 up to 1")
    return found
