"""Mixtures within the states of a chain: p(step | state) = Σ p(component | state) · p(step | state, component).

The components of all states lie in a row, state by state: what a step is in each is a group of its own, as a state is
one in a plain chain. In a tally they have two axes, states and components; a state that has fewer leaves cells empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, EstimateError, LabelError, StatisticsError, short_repr
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families._shared.fixed_parameters import check_parameters
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.models.inputs.parameter_input import read_groups, read_row
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally


def most_components(setting: Any) -> int:
    """How many components a state has at most; 1 in a plain chain."""
    if setting is None:
        return 1
    return max(map(int, setting.values()), default=1) if isinstance(setting, Mapping) else int(setting)


def check_components(setting: Any) -> None:
    """Refuse what is no number of components, and no mapping from states to such."""
    numbers = setting.values() if isinstance(setting, Mapping) else [1 if setting is None else setting]
    wrong = [number for number in numbers if not is_integer_at_least(number)]
    if wrong:
        raise EstimateError(
            f"components is {short_repr(setting)}; expected a whole number of at least 1, a mapping from states "
            "to such, or None."
        )


@dataclass(frozen=True, eq=False)
class MixtureEmissions:
    """The components of some states.

    Parameters
    ----------
    states : sequence of labels
    numbers : ndarray of int of shape (states,)
        How many each state has.
    most : int
        How many a state may have: the second axis of a tally.
    tied : ndarray of int of shape (states,), or None
        Which mixture every state has.
    """

    states: Sequence[Any]
    numbers: np.ndarray
    most: int
    tied: np.ndarray | None = None

    @classmethod
    def of(
        cls, setting: Any, states: Sequence[Any], tied: np.ndarray | None, *, whole: bool
    ) -> MixtureEmissions | None:
        """Those that a setting gives to some states; None in a plain chain."""
        most = most_components(setting)
        if most == 1:
            return None
        if isinstance(setting, Mapping):
            unknown = [state for state in setting if state not in states]
            if whole and unknown:
                raise LabelError(
                    f"components= names the state {unknown[0]!r}, and the states are {short_repr(list(states))}."
                )
            numbers = np.array([int(setting.get(state, 1)) for state in states], dtype=np.intp)
        else:
            numbers = np.full(len(states), most, dtype=np.intp)
        if tied is not None:
            firsts = np.unique(tied, return_index=True)[1]
            apart = np.flatnonzero(numbers != numbers[firsts][tied])
            if len(apart):
                raise DataError(
                    f"states {states[firsts[tied[apart[0]]]]!r} and {states[apart[0]]!r} share their emissions "
                    "(tied=), and components= gives them different numbers; expected as many."
                )
        return cls(states, numbers, most, tied)

    # ---- Where they lie -------------------------------------------------------------------------------------------

    @cached_property
    def owner(self) -> np.ndarray:
        """The state of every component."""
        return np.repeat(np.arange(len(self.states)), self.numbers)

    @cached_property
    def there(self) -> np.ndarray:
        """Which cells of (states, components) there are: bool."""
        return np.arange(self.most) < self.numbers[:, None]

    @cached_property
    def number(self) -> np.ndarray:
        """The place of every component within its state."""
        return np.nonzero(self.there)[1]

    @property
    def even(self) -> bool:
        """Whether all states have as many."""
        return bool(self.there.all())

    @property
    def names(self) -> list[tuple[Any, int]]:
        """What every component is called: its state, and its place there."""
        return [(self.states[s], int(k)) for s, k in zip(self.owner, self.number, strict=True)]

    @property
    def axes(self) -> tuple[tuple[str, ...], tuple[Sequence[Any], ...]]:
        """What tables of all components are given, and how these levels are called."""
        if self.even:
            return ("state", "component"), (self.states, range(self.most))
        return ("state, component",), (self.names,)

    def flatten_components(self, statistics: Any) -> Any:
        """Statistics of a tally, (states, components, …), as those of the components that there are."""
        flat = statistics.reshape_groups((self.there.size,))
        return flat if self.even else flat.take(0, np.flatnonzero(self.there))

    def unflatten_components(self, statistics: Any) -> Any:
        """And back; cells that are not there are empty."""
        where = np.full(self.there.size, -1)
        where[np.flatnonzero(self.there)] = np.arange(len(self.owner))
        return statistics.take(0, where).reshape_groups(self.there.shape)

    def counts(self, each: np.ndarray) -> Counts:
        """Counts of every component as p(component | state) is counted."""
        table = np.zeros(self.there.shape)
        table[self.there] = each
        return Counts(table, (self.most,))

    def shaped(self, family: Any, parameters: Any) -> Any:
        """Parameters of all components over (states, components), where all states have as many; else in a row."""
        if not self.even:
            return parameters
        return family.take(parameters, np.arange(len(self.owner)).reshape(self.there.shape))

    def tied_components(self) -> np.ndarray | None:
        """Which emission every component has, numbered as they come; None where nothing is tied."""
        if self.tied is None:
            return None
        keys: dict[tuple[int, int], int] = {}
        pairs = zip(self.tied[self.owner].tolist(), self.number.tolist(), strict=True)
        return np.array([keys.setdefault(pair, len(keys)) for pair in pairs], dtype=np.intp)

    # ---- Their shares: as they are counted, and as they are estimated ----------------------------------------------

    @cached_property
    def _firsts(self) -> np.ndarray:
        """One state for every mixture."""
        return np.unique(np.arange(len(self.states)) if self.tied is None else self.tied, return_index=True)[1]

    @property
    def _sizes(self) -> list[int]:
        return [int(size) for size in self.numbers[self._firsts]]

    def factor(self, factor: Factor) -> Factor:
        """That of the shares, as it is estimated."""
        return factor if self.even else Factor(factor.columns, (), factor.family)

    def read(self, counts: Counts) -> Counts:
        """Their counts, as they are estimated from: of tied states together, and of what is there."""
        if self.tied is not None:
            counts = counts.merge_groups(self.tied, len(self._firsts))
        return counts if self.even else Counts(counts.table[self.there[self._firsts]], self._sizes)

    def points(self, shares: FactorScorer) -> FactorScorer:
        """Shares of all states as they would be estimated."""
        table = np.asarray(shares.point.table)[self._firsts]
        if self.even:
            return with_table(shares, table)
        return with_table(shares, table[self.there[self._firsts]], self._sizes)

    def spread(self, shares: FactorScorer) -> FactorScorer:
        """What was estimated over all states again: 0 where there is no component."""
        return with_table(shares, self._spread(np.asarray(shares.point.table), 0.0))

    def belief(self, belief: Dirichlet, nothing: float) -> Dirichlet:
        """The belief about all states."""
        return Dirichlet(self._spread(belief.concentration, nothing))

    def _spread(self, cells: np.ndarray, nothing: float) -> np.ndarray:
        if not self.even:
            kept = self.there[self._firsts]
            table = np.full(kept.shape, nothing)
            table[kept] = cells
            cells = table
        return cells if self.tied is None else cells[self.tied]

    def prior(self, prior: Any) -> Any:
        """The prior of the shares that there are."""
        if self.even or not isinstance(prior, Dirichlet) or prior.concentration.ndim == 0:
            return prior
        if prior.concentration.shape[-1] != self.most or prior.sizes is not None:
            return prior  # as prior_ has it, or refused by its shape
        kept = self.there[self._firsts]
        return Dirichlet(np.broadcast_to(prior.concentration, kept.shape)[kept], sizes=tuple(self._sizes))


class ComponentWeights(NamedTuple):
    """What a chain needs of its components: the state of each, its place there, and log p(component | state)."""

    owner: np.ndarray
    number: np.ndarray
    log_share: np.ndarray

    @classmethod
    def made(cls, components: MixtureEmissions, log_shares: np.ndarray) -> ComponentWeights:
        """From a table of shares, (states, components), in logs."""
        return cls(components.owner, components.number, log_shares[components.there])

    @property
    def _first(self) -> np.ndarray:
        return np.searchsorted(self.owner, np.arange(self.owner[-1] + 1))

    def summed(self, joint: np.ndarray) -> np.ndarray:
        """log p(step | state) from log p(step, component | state): (n, states)."""
        first = self._first
        top = np.maximum.reduceat(joint, first, axis=1)
        safe = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            logs: np.ndarray = np.log(np.add.reduceat(np.exp(joint - safe[:, self.owner]), first, axis=1)) + safe
        return logs

    def split_by_component(self, shares: np.ndarray) -> np.ndarray:
        """p(component) of steps of which p(state) is known, and nothing else: (…, components)."""
        found: np.ndarray = shares[..., self.owner] * np.exp(self.log_share)
        return found

    def parted_by(self, joint: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """p(component | step) of steps whose p(state) is known: (n, components); 0 of steps that cannot be."""
        total = self.summed(joint)[:, self.owner]
        within = np.exp(joint - np.where(np.isneginf(total), 0.0, total))
        found: np.ndarray = shares[:, self.owner] * within
        return found

    def drawn(self, path: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A component for every step of a path of states."""
        upto = np.cumsum(np.exp(self.log_share))
        first, last = self._first, np.searchsorted(self.owner, np.arange(self.owner[-1] + 1), side="right") - 1
        low = upto[first] - np.exp(self.log_share[first])
        cut = low[path] + rng.random(len(path)) * (upto[last] - low)[path]
        return np.clip(np.searchsorted(upto, cut, side="right"), first[path], last[path])


class StatedComponents(NamedTuple):
    """p(component | state) as it was stated, of states in the order in which they came."""

    states: Sequence[Any]
    shares: list[np.ndarray]

    @property
    def most(self) -> int:
        """How many components a state has at most."""
        return max(map(len, self.shares))

    @property
    def setting(self) -> Any:
        """``components=`` that says the same."""
        numbers = [len(row) for row in self.shares]
        return self.most if min(numbers) == self.most else dict(zip(self.states, numbers, strict=True))

    @property
    def names(self) -> list[Any]:
        """What every component is called; the state, where it has one."""
        pairs = zip(self.states, self.shares, strict=True)
        return [(state, k) if self.most > 1 else state for state, row in pairs for k in range(len(row))]

    @property
    def table(self) -> np.ndarray:
        """The shares, (states, components); 0 where there is none."""
        return np.stack([np.pad(row, (0, self.most - len(row))) for row in self.shares])

    @property
    def unflatten_components(self) -> np.ndarray:
        """Where the components of every state are in a row; its first, where there is none: it has the share 0."""
        first = np.cumsum([0, *map(len, self.shares)])[:-1]
        number = np.arange(self.most)
        return np.stack([a + np.where(number < len(row), number, 0) for a, row in zip(first, self.shares, strict=True)])

    def flatten_components(self, value: Any, what: str) -> list[Any]:
        """What is stated of every component of every state."""
        out = []
        for state, row, part in zip(self.states, self.shares, read_groups(value, self.states, what), strict=True):
            some = part if isinstance(part, list | tuple | np.ndarray) else [part]
            if len(some) != len(row):
                raise DataError.wrong_type(
                    f"{what} in state {state!r}", f"of {len(some)} components", f"one for each of its {len(row)}"
                )
            out += list(some)
        return out


def read_components(value: Any, states: Sequence[Any]) -> StatedComponents:
    """p(component | state) of every state, as it was stated."""
    shares = []
    for state, part in zip(states, read_groups(value, states, "component"), strict=True):
        what = f"component, {state!r},"
        row = read_row(part, range(np.size(part)), what)
        shares.append(np.asarray(check_parameters(Categorical(), {"probability": row}, [len(row)], what).table))
    return StatedComponents(states, shares)


def component_domain(name: str, most: int) -> Domain:
    """The numbers of components, seen or not."""
    return Domain(range(most), name, declared=range(most), is_sorted=True)


def refuse_others(wanted: MixtureEmissions | None, found: MixtureEmissions | None) -> None:
    """Refuse a model to start from whose states have other numbers of components."""
    if (wanted is None) != (found is None) or (
        wanted is not None and found is not None and not np.array_equal(wanted.numbers, found.numbers)
    ):
        shown = ["none" if one is None else short_repr(one.numbers.tolist()) for one in (found, wanted)]
        raise DataError(
            f"initial= has components in its states: {shown[0]}, and components= asks for {shown[1]}; expected as many."
        )


def refuse_other_components(setting: Any, tally: Tally, names: Mapping[str, str]) -> None:
    """Refuse counts that were made for other numbers of components than a model is set to."""
    column, most = names.get("component"), most_components(setting)
    found = 1 if column is None else len(tally.domains[tally.schema.domain(column)].levels)
    if found != most:
        counted = "states without components" if found == 1 else f"{found} components a state"
        raise StatisticsError(
            f"components is {short_repr(setting)}, and these counts are of {counted}.\n"
            "    Fit a model of that many components."
        )
    if column is None or not isinstance(setting, Mapping):
        return
    states = tally.domains[tally.schema.domain(names["state"])].levels
    components: Any = MixtureEmissions.of(setting, states, None, whole=False)
    table: Any = tally[column]
    beyond = np.argwhere((table.table > 0) & ~components.there)
    if len(beyond):
        state, number = beyond[0]
        raise StatisticsError(
            f"component {number} of state {states[state]!r} was counted, and components= gives it "
            f"{components.numbers[state]}.\n    Fit a model of that many components."
        )


def with_table(one: FactorScorer, table: np.ndarray, sizes: Any = None) -> FactorScorer:
    """Probabilities of levels, or of the lines of a table that are of different widths."""
    segments = Segments([table.shape[-1]] if sizes is None else sizes)
    return one._replace(parameters=LevelProbabilities(table, segments), predictive=False)
