"""Mixture emissions: p(observation | state) = Σ p(component | state) · p(observation | state, component).

The components of all states lie in one axis, ordered by state: each is an emission group, as a state is without
components. In a tally they have two axes, states and components; a state with fewer components has empty cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tallybayes._utils.parameter_checks import is_integer_at_least
from tallybayes.errors import DataError, EstimateError, LabelError, StatisticsError, short_repr
from tallybayes.families._shared.fixed_parameters import check_parameters
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Parameters, take_groups
from tallybayes.models.hmm.chain_names import ChainNames
from tallybayes.models.inputs.parameter_input import read_groups, read_row
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Domain
from tallybayes.tally.tally import Tally

S = TypeVar("S", bound=Statistics)
ByState = Mapping[Any, Any] | Iterable[Any]  # one value for each state
ComponentNumbers = int | Mapping[Any, int] | None


def most_components(components: ComponentNumbers) -> int:
    """Return the largest number of components of any state; 1 without mixture emissions."""
    if components is None:
        return 1
    return max(map(int, components.values()), default=1) if isinstance(components, Mapping) else int(components)


def check_components(components: ComponentNumbers) -> None:
    """Raise EstimateError if `components` is neither an integer, a mapping to integers nor None."""
    numbers = components.values() if isinstance(components, Mapping) else [1 if components is None else components]
    invalid = [number for number in numbers if not is_integer_at_least(number)]
    if invalid:
        raise EstimateError(
            f"components is {short_repr(components)}; expected a whole number of at least 1, a mapping from states "
            "to such numbers, or None."
        )


@dataclass(frozen=True, eq=False)
class MixtureEmissions:
    """The numbers of mixture components of the states.

    Parameters
    ----------
    states : sequence of labels
    numbers : ndarray of int of shape (states,)
        The number of components of each state.
    most : int
        The largest number of components: the length of the second axis of a tally.
    tied : ndarray of int of shape (states,), or None
        The index of the mixture of each state.
    """

    states: Sequence[Any]
    numbers: np.ndarray
    most: int
    tied: np.ndarray | None = None

    @classmethod
    def of(
        cls, value: ComponentNumbers, states: Sequence[Any], tied: np.ndarray | None, *, complete: bool
    ) -> MixtureEmissions | None:
        """Return the components for the value of ``components=``; None without mixture emissions."""
        most = most_components(value)
        if most == 1:
            return None
        if isinstance(value, Mapping):
            unknown = [state for state in value if state not in states]
            if complete and unknown:
                raise LabelError.unknown_state("components", unknown[0], states)
            numbers = np.array([int(value.get(state, 1)) for state in states], dtype=np.intp)
        else:
            numbers = np.full(len(states), most, dtype=np.intp)
        if tied is not None:
            firsts = np.unique(tied, return_index=True)[1]
            different = np.flatnonzero(numbers != numbers[firsts][tied])
            if len(different):
                raise DataError(
                    f"components= has different numbers for the tied states {states[firsts[tied[different[0]]]]!r} and "
                    f"{states[different[0]]!r}; expected equal numbers."
                )
        return cls(states, numbers, most, tied)

    # ---- Axes -----------------------------------------------------------------------------------------------------

    @cached_property
    def owner(self) -> np.ndarray:
        """The index of the state of each component."""
        return np.repeat(np.arange(len(self.states)), self.numbers)

    @cached_property
    def exists(self) -> np.ndarray:
        """Which cells of (states, components) exist."""
        return np.arange(self.most) < self.numbers[:, None]

    @cached_property
    def number(self) -> np.ndarray:
        """The index of each component within its state."""
        return np.nonzero(self.exists)[1]

    @cached_property
    def first(self) -> np.ndarray:
        """The first component of each state."""
        return np.searchsorted(self.owner, np.arange(len(self.states)))

    @property
    def positions(self) -> np.ndarray:
        """The index of each component, (states, components); −1 for components that do not exist."""
        return np.where(self.exists, self.first[:, None] + np.arange(self.most), -1)

    @property
    def is_even(self) -> bool:
        """Whether all states have the same number of components."""
        return bool(self.exists.all())

    @property
    def setting(self) -> ComponentNumbers:
        """The corresponding value of ``components=``."""
        return self.most if self.is_even else dict(zip(self.states, self.numbers.tolist(), strict=True))

    @property
    def names(self) -> list[tuple[Any, int]]:
        """The names of the components: pairs (state, index within the state)."""
        return [(self.states[s], int(k)) for s, k in zip(self.owner, self.number, strict=True)]

    @property
    def axes(self) -> tuple[tuple[str, ...], tuple[Sequence[Any], ...]]:
        """The names and levels of the group axes of parameter tables."""
        if self.is_even:
            return ("state", "component"), (self.states, range(self.most))
        return ("state, component",), (self.names,)

    def flatten_components(self, statistics: S) -> S:
        """Return statistics (states, components, …) of a tally with one axis for the existing components."""
        flat = statistics.reshape_groups((self.exists.size,))
        return flat if self.is_even else flat.take(0, np.flatnonzero(self.exists))

    def unflatten_components(self, statistics: S) -> S:
        """Return statistics of components in one axis as (states, components, …), with empty cells."""
        return statistics.take(0, self.positions.ravel()).reshape_groups(self.exists.shape)

    def counts(self, each: np.ndarray) -> Counts:
        """Return the counts of p(component | state), given one number for each component."""
        table = np.zeros(self.exists.shape)
        table[self.exists] = each
        return Counts(table, (self.most,))

    def shaped(self, parameters: Parameters) -> Any:
        """Return parameters of components with axes (states, components) if all states have the same number."""
        if not self.is_even:
            return parameters
        return take_groups(parameters, self.positions)

    def flatten_values(self, value: ByState, what: str) -> list[Any]:
        """Return the user's parameters of all components of all states as one list."""
        out = []
        for state, n, part in zip(self.states, self.numbers, read_groups(value, self.states, what), strict=True):
            parameters = part if isinstance(part, list | tuple | np.ndarray) else [part]
            if len(parameters) != n:
                raise DataError.wrong_type(
                    f"{what} in state {state!r}", f"of {len(parameters)} components", f"one for each of its {n}"
                )
            out += list(parameters)
        return out

    def tied_components(self) -> np.ndarray | None:
        """Return the index of the emission of each component; None if no states are tied."""
        if self.tied is None:
            return None
        keys: dict[tuple[int, int], int] = {}
        pairs = zip(self.tied[self.owner].tolist(), self.number.tolist(), strict=True)
        return np.array([keys.setdefault(pair, len(keys)) for pair in pairs], dtype=np.intp)


class ComponentWeights(NamedTuple):
    """The component weights of a hidden Markov model.

    Attributes
    ----------
    components : MixtureEmissions
    log_weight : ndarray of shape (components,)
        log p(component | state).
    """

    components: MixtureEmissions
    log_weight: np.ndarray

    def marginalize(self, joint: np.ndarray) -> np.ndarray:
        """Return log p(step | state), (steps, states), from log p(step, component | state)."""
        owner, first = self.components.owner, self.components.first
        maximum = np.maximum.reduceat(joint, first, axis=1)
        shift = np.where(np.isneginf(maximum), 0.0, maximum)
        with np.errstate(divide="ignore"):
            log_prob: np.ndarray = np.log(np.add.reduceat(np.exp(joint - shift[:, owner]), first, axis=1)) + shift
        return log_prob

    def component_proba(self, proba: np.ndarray) -> np.ndarray:
        """Return p(component) from p(state), for an unobserved time step: (…, components)."""
        component_proba: np.ndarray = proba[..., self.components.owner] * np.exp(self.log_weight)
        return component_proba

    def component_posterior(self, joint: np.ndarray, proba: np.ndarray) -> np.ndarray:
        """Return p(component | step) from p(state | step): (steps, components); 0 for an impossible step."""
        owner = self.components.owner
        total = self.marginalize(joint)[:, owner]
        within = np.exp(joint - np.where(np.isneginf(total), 0.0, total))
        component_proba: np.ndarray = proba[:, owner] * within
        return component_proba

    def draw(self, path: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a component for every time step of a state path."""
        cumulative = np.cumsum(np.exp(self.log_weight))
        first = self.components.first
        last = first + self.components.numbers - 1
        low = cumulative[first] - np.exp(self.log_weight[first])
        uniform = low[path] + rng.random(len(path)) * (cumulative[last] - low)[path]
        return np.clip(np.searchsorted(cumulative, uniform, side="right"), first[path], last[path])


def read_components(value: ByState, states: Sequence[Any]) -> tuple[MixtureEmissions, np.ndarray]:
    """Return the numbers of components and the weights of all components from the user's ``component=``."""
    weights = []
    for state, part in zip(states, read_groups(value, states, "component"), strict=True):
        what = f"component, {state!r},"
        row = read_row(part, range(np.size(part)), what)
        weights.append(np.asarray(check_parameters(Categorical(), {"probability": row}, [len(row)], what).table))
    numbers = np.array(list(map(len, weights)), dtype=np.intp)
    return MixtureEmissions(states, numbers, int(numbers.max())), np.concatenate(weights)


def component_domain(name: str, most: int) -> Domain:
    """Return the domain of the component column: the integers from 0 on."""
    return Domain(range(most), name, declared=range(most), is_sorted=True)


def check_initial_components(expected: MixtureEmissions | None, given: MixtureEmissions | None) -> None:
    """Raise DataError if the initial model has other numbers of components."""
    needed, found = (None if part is None else part.numbers.tolist() for part in (expected, given))
    if needed != found:
        shown = ["none" if numbers is None else short_repr(numbers) for numbers in (found, needed)]
        raise DataError(f"initial= has {shown[0]} components by state, components= {shown[1]}; expected equal numbers.")


def check_other_components(value: ComponentNumbers, tally: Tally, names: ChainNames) -> None:
    """Raise StatisticsError if a tally has other numbers of components than ``components=``."""
    most = most_components(value)
    n_components = 1 if names.component is None else len(tally.domain(names.component).levels)
    if n_components != most:
        counted = "states without components" if n_components == 1 else f"{n_components} components a state"
        raise StatisticsError(
            f"components is {short_repr(value)}, but the tally has {counted}.\n"
            "    Pass the number of components of the tally."
        )
    if names.component is None or not isinstance(value, Mapping):
        return
    states = tally.domain(names.state).levels
    components: Any = MixtureEmissions.of(value, states, None, complete=False)
    table: Any = tally[names.component]
    excess = np.argwhere((table.table > 0) & ~components.exists)
    if len(excess):
        state, number = excess[0]
        raise StatisticsError(
            f"components is {components.numbers[state]} for state {states[state]!r}, but the tally has counts of its "
            f"component {number}.\n    Pass the number of components of the tally."
        )
