"""Parameters of the constructor of `HiddenMarkovModel`: those of the topology, and the priors of all parts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, EstimateError, LabelError, short_repr
from tallybayes.families.prior_rules import check_pseudo_count, is_pseudo_count
from tallybayes.models.hmm.mixture_emissions import ComponentNumbers, check_components
from tallybayes.models.inputs.column_priors import check_is_prior, check_priors
from tallybayes.tally.factor import Factor
from tallybayes.tally.text_selection import as_word_factor
from tallybayes.typing import Priors

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


class TopologyOptions(NamedTuple):
    """The parameters of `HiddenMarkovModel` that determine its topology, as given by the user."""

    allowed_transitions: AllowedTransitions = None
    start: str | Iterable[Hashable] | None = None
    tied: Mapping[Any, Hashable] | None = None
    end_state: bool = False
    components: ComponentNumbers = None

    @classmethod
    def of(cls, model: HiddenMarkovModel) -> TopologyOptions:
        """Return the parameters of a model."""
        return cls(model.allowed_transitions, model.start, model.tied, model.end_state, model.components)

    @property
    def restricts_states(self) -> bool:
        """Whether initial states, transitions or emissions are restricted."""
        return self.allowed_transitions is not None or self.start is not None or self.tied is not None

    def check(self) -> None:
        """Raise an error for invalid parameters."""
        check_components(self.components)
        ALLOWED_WORDS.check("allowed_transitions", self.allowed_transitions)
        START_WORDS.check("start", self.start)
        if self.tied is not None and not isinstance(self.tied, Mapping):
            raise EstimateError(
                f"tied is {short_repr(self.tied)}; expected a mapping from states to hashable values, or None."
            )
        if not isinstance(self.end_state, bool | np.bool_):
            raise DataError.wrong_type("end_state", short_repr(self.end_state), "True or False")
        if not isinstance(self.allowed_transitions, str | Mapping | list | tuple | np.ndarray | None):
            raise EstimateError(
                f"allowed_transitions is {short_repr(self.allowed_transitions)}; expected "
                f"{', '.join(map(str, (*_SHAPES, *ALLOWED_WORDS.others)))}."
            )


def state_positions(names: StateNames, states: Sequence[Any], parameter: str, complete: bool) -> list[int]:
    """Return the positions of states, by name. If they are complete, raise LabelError for another name."""
    several: Iterable[Any] = names if isinstance(names, list | tuple | set | frozenset | np.ndarray) else [names]
    requested = [name.item() if isinstance(name, np.generic) else name for name in several]
    index = {state: position for position, state in enumerate(states)}
    unknown = [name for name in requested if not isinstance(name, Hashable) or name not in index]
    if unknown and (complete or not isinstance(unknown[0], Hashable)):
        raise LabelError.unknown_state(parameter, unknown[0], states)
    return [index[name] for name in requested if name not in unknown]


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


# ---- Priors ---------------------------------------------------------------------------------------------------------


def read_prior(prior: Priors, *, components: bool = False) -> dict[str, Any]:
    """Return the priors by part: start, transition, end, component (if any) and emission."""
    parts: tuple[str, ...] = ("start", "transition", "end", *(["component"] if components else []), "emission")
    if prior is None or isinstance(prior, str) or is_pseudo_count(prior):
        return dict.fromkeys(parts, prior)
    if isinstance(prior, dict):
        emission = {name: value for name, value in prior.items() if name not in parts}
        if emission and "emission" not in prior:
            prior = prior | {"emission": emission}
        if set(prior) <= {*parts, *emission}:
            return {part: prior.get(part) for part in parts}
    if isinstance(prior, Dirichlet):
        return dict.fromkeys(parts) | {"start": prior, "transition": prior}
    raise EstimateError(
        f"prior is {prior!r}; expected a mapping from {', '.join(map(repr, parts))} to priors, a Dirichlet for start "
        "and transition, a pseudo-count, 'empirical' or None."
    )


def check_prior(prior: Priors, emissions: Iterable[Factor], estimate: str, *, components: bool) -> None:
    """Raise an error if a prior does not fit any factor."""
    if prior is None:
        return
    if is_pseudo_count(prior):
        check_pseudo_count(prior, estimate)
        return
    priors = read_prior(prior, components=components)
    check_priors(priors.pop("emission"), map(as_word_factor, emissions), estimate, tuple(priors))
    for part in priors.values():
        check_is_prior(part)
        check_pseudo_count(part, estimate)
