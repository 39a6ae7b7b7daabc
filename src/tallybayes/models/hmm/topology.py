"""Topology of a hidden Markov model: allowed transitions and first states, tied states, mixture components.

The counts of the tally do not depend on it, only the factors that are estimated from them (`RestrictedTable`). Tied
states are counted separately and estimated together. "Reduce" converts values of all states to those of the estimated
factors, "expand" converts back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.sparse.csgraph import connected_components

from tallybayes.errors import DataError, short_repr
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import take_groups
from tallybayes.models.hmm.mixture_emissions import MixtureEmissions
from tallybayes.models.hmm.restricted_table import RestrictedTable
from tallybayes.models.hmm.topology_input import read_allowed, read_tied, state_positions
from tallybayes.tally.factor import Factor

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

T = TypeVar("T")
_FEW_STATES = 64  # with more states, the local search over state orders makes a single pass


@dataclass(frozen=True, eq=False)
class Topology:
    """The topology of a hidden Markov model with given states. None means no restriction.

    Parameters
    ----------
    states : sequence of labels
    starts : ndarray of bool of shape (states,), or None
        The possible first states.
    allowed : ndarray of bool of shape (states, states), or None
        The allowed transitions.
    tied : ndarray of int of shape (states,), or None
        The index of the emission of each state; of each component if states have components.
    stationary : bool
        Whether p(first state) is the stationary distribution of the transitions.
    ends : bool
        Whether p(end | state) is modeled.
    components : MixtureEmissions, or None
        The mixture components of the states.
    """

    states: Sequence[Any]
    starts: np.ndarray | None = None
    allowed: np.ndarray | None = None
    tied: np.ndarray | None = None
    stationary: bool = False
    ends: bool = False
    components: MixtureEmissions | None = None

    @classmethod
    def of(cls, model: HiddenMarkovModel, states: Sequence[Any], *, complete: bool = False) -> Topology:
        """Return the topology of a model with these states.

        Parameters
        ----------
        model : HiddenMarkovModel
        states : sequence of labels
        complete : bool, default False
            Whether there will be no other states. Then names of other states raise LabelError; otherwise they are
            ignored.
        """
        allowed = read_allowed(model.allowed_transitions, states, complete)
        stationary = isinstance(model.start, str)
        starts = None
        if model.start is not None and not stationary:
            starts = np.zeros(len(states), dtype=bool)
            starts[state_positions(model.start, states, "start", complete)] = True
            if complete and not starts.any():
                raise DataError(f"start is {short_repr(model.start)}; expected at least one state.")
        if stationary and model.end_state:
            raise DataError(
                "start='stationary' and end_state=True exclude each other: the stationary distribution is that of an "
                "endless sequence."
            )
        tied = read_tied(model.tied, states, complete)
        components = MixtureEmissions.of(model.components, states, tied, complete=complete)
        tied = tied if components is None else components.tied_components()
        topology = cls(states, starts, allowed, tied, stationary, model.end_state, components)
        if complete and allowed is not None:
            topology._check_dead_ends()
            topology.check_irreducible()
        return topology

    def _check_dead_ends(self) -> None:
        """Raise DataError if a state has no allowed transition and cannot end the sequence."""
        assert self.allowed is not None
        dead_ends = np.flatnonzero(~self.allowed.any(axis=1))
        if len(dead_ends) and not self.ends:
            raise DataError(
                f"allowed_transitions has no next state for {self.states[dead_ends[0]]!r}; expected at least one.\n"
                "    Allow a transition to itself, or pass end_state=True if sequences end there."
            )

    def check_irreducible(self) -> None:
        """Raise DataError if start='stationary' is combined with transitions that are not irreducible."""
        if self.stationary and self.allowed is not None and _n_strong_components(self.allowed) > 1:
            raise DataError(
                "start='stationary' needs an irreducible chain, and under allowed_transitions some states cannot be "
                "reached again.\n    Leave start out, or pass the list of first states."
            )

    @property
    def uniform_transitions(self) -> Any:
        """Transition probabilities of a state without data: uniform over the allowed transitions."""
        n = len(self.states)
        return 1 / n if self.allowed is None else self.allowed / np.maximum(self.allowed.sum(axis=1, keepdims=True), 1)

    # ---- Estimated factors ----------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> dict[str, RestrictedTable]:
        """The estimated parts before the emissions, by name."""
        tables = {} if self.stationary else {"start": RestrictedTable(self.starts)}
        tables["transition"] = RestrictedTable(self.allowed)
        if self.ends:
            tables["end"] = RestrictedTable()
        if self.components is not None:
            tables["component"] = self.components.weights
        return tables

    def _split(self, values: Sequence[T]) -> tuple[list[tuple[RestrictedTable, T]], list[T]]:
        """Return the values of the estimated parts with their tables, and those of the emissions.

        The values are those of initial states, transitions, ends and components (if modeled), and emissions.
        """
        values = values[self.stationary :]
        n_parts = len(self.tables)
        return list(zip(self.tables.values(), values[:n_parts], strict=True)), list(values[n_parts:])

    def reduce_factors(self, factors: Sequence[Factor]) -> list[Factor]:
        """Return the estimated factors, given those of all states."""
        parts, emissions = self._split(factors)
        return [table.reduce_factor(factor) for table, factor in parts] + emissions

    def reduce_statistics(self, statistics: Sequence[Any]) -> list[Any]:
        """Return the statistics of the estimated factors, given those of all states."""
        parts, emissions = self._split(statistics)
        if self.tied is not None:
            emissions = [counted.merge_groups(self.tied, len(self.groups)) for counted in emissions]
        return [table.reduce_counts(counted) for table, counted in parts] + emissions

    def reduce_parameters(self, scorers: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Return the parameters of the estimated factors, given those of all states."""
        parts, emissions = self._split(scorers)
        if self.tied is not None:
            emissions = [
                scorer._replace(parameters=take_groups(scorer.point, self._firsts), predictive=False)
                for scorer in emissions
            ]
        return [table.reduce_parameters(scorer) for table, scorer in parts] + emissions

    def expand_parameters(self, scorers: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Return the parameters of all states: 0 for forbidden transitions, equal parameters for tied states."""
        n_parts = len(self.tables)
        parts = zip(self.tables.values(), scorers[:n_parts], strict=True)
        expanded = [table.expand_parameters(scorer) for table, scorer in parts]
        for scorer in scorers[n_parts:]:
            if self.tied is not None:
                scorer = scorer._replace(parameters=take_groups(scorer.parameters, self.tied))
            expanded.append(scorer)
        return expanded

    @property
    def groups(self) -> list[Any]:
        """The names of the estimated emission groups: of tied states or components, the first one."""
        names = self.emitting
        return names if self.tied is None else [names[k] for k in self._firsts]

    @property
    def emitting(self) -> list[Any]:
        """The names of the emission groups: states, or pairs (state, component)."""
        return list(self.states) if self.components is None else list(self.components.names)

    def group_name(self, index: int) -> str:
        """Return the name of a state or component, for messages."""
        name = self.emitting[index]
        return f"state {name!r}" if self.components is None else f"component {name[1]} of state {name[0]!r}"

    @property
    def _firsts(self) -> np.ndarray:
        """The first state or component of each estimated emission."""
        return np.unique(np.arange(len(self.emitting)) if self.tied is None else self.tied, return_index=True)[1]

    # ---- Checks ----------------------------------------------------------------------------------------------------

    def check_zeros(self, start: np.ndarray, transition: np.ndarray, what: str, unit: str) -> None:
        """Raise DataError if forbidden first states or transitions have positive counts or probabilities.

        Parameters
        ----------
        start : ndarray of shape (states,)
        transition : ndarray of shape (states, states)
        what, unit : str
            The names of the tables and of their values, for the message.
        """
        if self.starts is not None and (start[~self.starts] > 0).any():
            state = self.states[int(np.flatnonzero((start > 0) & ~self.starts)[0])]
            raise DataError(f"{what} has first state {state!r}, which start does not allow; expected {unit} 0.")
        if self.allowed is not None and (transition[~self.allowed] > 0).any():
            before, after = np.argwhere((transition > 0) & ~self.allowed)[0]
            raise DataError(
                f"{what} goes from {self.states[before]!r} to {self.states[after]!r} with {unit} "
                f"{transition[before, after]:.6g}, which allowed_transitions forbids; expected 0."
            )

    def check_steps(self, codes: np.ndarray, offsets: np.ndarray, gaps: np.ndarray | None = None) -> None:
        """Raise DataError for the first time step whose known states are a forbidden transition or first state.

        Steps after a gap are ignored: the transition may be indirect.
        """
        forbidden = np.zeros(len(codes), dtype=bool)
        first = offsets[:-1][offsets[:-1] < offsets[1:]]
        if self.starts is not None:
            forbidden[first] = (codes[first] >= 0) & ~self.starts[codes[first]]
        if self.allowed is not None and len(codes) > 1:
            pair_forbidden = (codes[1:] >= 0) & (codes[:-1] >= 0) & ~self.allowed[codes[:-1], codes[1:]]
            pair_forbidden[first[first > 0] - 1] = False
            forbidden[1:] |= pair_forbidden
        if gaps is not None:
            forbidden &= gaps == 0
        if not forbidden.any():
            return
        index = int(np.flatnonzero(forbidden)[0])
        sequence = int(np.searchsorted(offsets, index, side="right")) - 1
        step = index - int(offsets[sequence])
        state = self.states[codes[index]]
        if step == 0:
            raise DataError(f"sequence {sequence} begins in state {state!r}, which start does not allow.")
        raise DataError(
            f"step {step} of sequence {sequence} goes from {self.states[codes[index - 1]]!r} to {state!r}, which "
            "allowed_transitions forbids.\n    Allow it, or check the states of that sequence."
        )

    def check_tied(self, scored: Sequence[FactorScorer], what: str) -> None:
        """Raise DataError if tied states have different emission parameters."""
        if self.tied is None:
            return
        for scorer in scored:
            shared = take_groups(scorer.point, self._firsts[self.tied])
            for part, tied_part in zip(arrays_of(scorer.point), arrays_of(shared), strict=True):
                axes = tuple(range(1, part.ndim))
                different = np.flatnonzero(~np.isclose(part, tied_part, rtol=1e-9, equal_nan=True).all(axis=axes))
                if len(different):
                    raise DataError(
                        f"{what} has different emissions of {scorer.factor.columns} in the tied groups "
                        f"{self.group_name(self._firsts[self.tied[different[0]]])} and {self.group_name(different[0])}."
                    )

    # ---- Initialization of EM --------------------------------------------------------------------------------------

    def best_state_order(self, starts: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """Return the position of each unnamed state that makes the most counts allowed.

        Local search: swap two states, or move one state and shift the others, until no change improves the total. With
        more than 64 states, a single pass.
        """
        n = len(self.states)
        order = np.arange(len(self.states))
        if self.allowed is None and self.starts is None:
            return order
        allowed = np.ones((n, n), dtype=bool) if self.allowed is None else self.allowed
        may_start = np.ones(n, dtype=bool) if self.starts is None else self.starts

        def n_allowed(positions: np.ndarray) -> float:
            """Return the total count of allowed first states and transitions."""
            return float(transitions[allowed[np.ix_(positions, positions)]].sum() + starts[may_start[positions]].sum())

        best = n_allowed(order)
        improved = True
        while improved:
            improved = False
            for i, j in np.ndindex(n, n):
                swapped = order.copy()
                moved = np.empty_like(order)
                swapped[[i, j]] = order[[j, i]]
                sequence = np.insert(np.delete(np.argsort(order), i), j, np.argsort(order)[i])
                moved[sequence] = np.arange(n)
                for candidate in (swapped, moved):
                    value = n_allowed(candidate)
                    if value > best * (1 + 1e-12):
                        order = candidate
                        best = value
                        improved = True
            improved = improved and n <= _FEW_STATES
        return order


def arrays_of(parameters: object) -> list[np.ndarray]:
    """Return the arrays of parameters; their first axis is the group."""
    if isinstance(parameters, LevelProbabilities):
        return [parameters.table]
    return list(map(np.asarray, parameters)) if isinstance(parameters, tuple) else [np.asarray(parameters)]


def _n_strong_components(allowed: np.ndarray) -> int:
    """Return the number of strongly connected components."""
    return int(connected_components(allowed, connection="strong")[0])
