"""Parameters of the topology of a hidden Markov model: allowed transitions, first states, tied states."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes._utils.string_options import StringOptions
from tallybayes.errors import DataError, EstimateError, LabelError, short_repr
from tallybayes.models.hmm.mixture_emissions import check_components

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

StateNames = Hashable | Iterable[Hashable]
_SHAPES: dict[str, Callable[[int], np.ndarray]] = {
    "left-to-right": lambda n: np.triu(np.ones((n, n), dtype=bool)),
    "banded": lambda n: np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1,
}
AllowedTransitions = str | npt.ArrayLike | Iterable[tuple[Any, Any]] | Mapping[Any, Any] | None
ALLOWED_WORDS = StringOptions(
    (None, *_SHAPES), ("True and False for every two states", "a list of pairs (state, next state)")
)
START_WORDS = StringOptions((None, "stationary"), ("a list of states",))


def check_topology_parameters(model: HiddenMarkovModel) -> None:
    """Raise an error for invalid topology parameters of a model."""
    check_components(model.components)
    ALLOWED_WORDS.check("allowed_transitions", model.allowed_transitions)
    START_WORDS.check("start", model.start)
    if model.tied is not None and not isinstance(model.tied, Mapping):
        raise EstimateError(
            f"tied is {short_repr(model.tied)}; expected a mapping from states to hashable values, or None."
        )
    if model.allowed_transitions is not None and not isinstance(
        model.allowed_transitions, str | Mapping | list | tuple | np.ndarray
    ):
        raise EstimateError(
            f"allowed_transitions is {short_repr(model.allowed_transitions)}; expected "
            f"{', '.join(map(str, (*_SHAPES, *ALLOWED_WORDS.others)))}."
        )


def state_positions(names: StateNames, states: Sequence[Any], parameter: str, complete: bool) -> list[int]:
    """Return the positions of states, by name."""
    index = {state: position for position, state in enumerate(states)}
    requested = [name.item() if isinstance(name, np.generic) else name for name in _as_list(names)]
    if complete:
        for name in requested:
            _check_state(name, index, parameter)
    return [index[name] for name in requested if name in index]


def _as_list(names: StateNames) -> list[Any]:
    """Return one name or several as a list."""
    return list(names) if isinstance(names, list | tuple | set | frozenset | np.ndarray) else [names]


def _check_state(name: Hashable, index: Mapping[Any, int], parameter: str) -> None:
    """Raise LabelError if a name is not a state."""
    if name not in index:
        raise LabelError(f"{parameter}= has the unknown state {name!r}; the states are {short_repr(list(index))}.")


def read_tied(tied: Mapping[Any, Hashable] | None, states: Sequence[Any], complete: bool) -> np.ndarray | None:
    """Return the emission index of each state, numbered in order; an unnamed state is not tied."""
    if tied is None:
        return None
    if complete:
        state_positions(list(tied), states, "tied", True)
    keys: dict[Any, int] = {}
    shared = [("tied", tied[state]) if state in tied else ("own", state) for state in states]
    return np.array([keys.setdefault(key, len(keys)) for key in shared], dtype=np.intp)


def read_allowed(allowed: AllowedTransitions, states: Sequence[Any], complete: bool) -> np.ndarray | None:
    """Return the matrix of allowed transitions from the value of the parameter."""
    n = len(states)
    if allowed is None:
        return None
    if isinstance(allowed, str):
        matrix: np.ndarray = _SHAPES[allowed](n)
        return matrix
    if isinstance(allowed, np.ndarray) or _are_bools(allowed):
        matrix = np.asarray(allowed)
        if matrix.dtype != bool:
            raise DataError.wrong_type(
                "allowed_transitions", f"an array of {matrix.dtype}", "True and False", "Pass matrix > 0."
            )
        if matrix.shape != (n, n):
            raise DataError.wrong_shape(
                "allowed_transitions", matrix.shape, f"({n}, {n}), for the states {short_repr(list(states))}"
            )
        return matrix
    out = np.zeros((n, n), dtype=bool)
    for before, after in _pairs(allowed):  # type: ignore[arg-type]
        rows = state_positions(before, states, "allowed_transitions", complete)
        columns = state_positions(after, states, "allowed_transitions", complete)
        out[np.ix_(rows, columns)] = True
    return out


def _pairs(allowed: Mapping[Any, Any] | Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Return pairs of a state, or several, and its next states."""
    if isinstance(allowed, Mapping):
        return allowed.items()
    for edge in allowed:
        if not isinstance(edge, list | tuple) or len(edge) != 2:
            raise DataError.wrong_type("allowed_transitions", f"with {short_repr(edge)}", "pairs (state, next state)")
    return [tuple(edge) for edge in allowed]


def _are_bools(allowed: AllowedTransitions) -> bool:
    """Return whether nested lists are a boolean matrix rather than pairs of states."""
    rows: Any = () if isinstance(allowed, Mapping) else allowed
    return bool(rows) and all(
        isinstance(row, list | tuple | np.ndarray) and all(isinstance(cell, bool | np.bool_) for cell in row)
        for row in rows
    )
