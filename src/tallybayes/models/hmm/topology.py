"""Topology of a hidden Markov model: allowed transitions and first states, tied states, mixture components.

The counts of the tally do not depend on it, only the factors that are estimated from them (`RestrictedTable`). Tied
states are counted separately and estimated together. "Reduce" converts values of all states to those of the estimated
factors, "expand" converts back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Any, TypeVar

import numpy as np
from scipy.sparse.csgraph import connected_components

from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, short_repr
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import take_groups
from tallybayes.models.hmm.hmm_options import TopologyOptions, read_allowed, read_prior, read_tied, state_positions
from tallybayes.models.hmm.mixture_emissions import MixtureEmissions
from tallybayes.models.inputs.column_priors import Levels, prior_in_groups
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.tally.factor import Factor
from tallybayes.typing import Prior, Priors

T = TypeVar("T")
_NEGLIGIBLE = 1e-300  # the Dirichlet concentration of cells that are zero by definition
_FEW_STATES = 64  # with more states, the local search over state orders makes a single pass


@dataclass(frozen=True, eq=False)
class RestrictedTable:
    """Conversion between the parameters of all groups and the distinct, nonzero ones that are estimated.

    "Reduce" converts counts, priors and parameters to those of the estimated cells, "expand" converts back.
    The rows of a restricted table differ in width: they lie side by side in one flat table, as columns of one factor.

    Parameters
    ----------
    mask : ndarray of bool of shape (levels,) or (rows, levels), optional
        The level probabilities that may be positive; all by default. Parameters that are not level probabilities have
        no mask.
    tied : ndarray of int of shape (rows,), optional
        The index of the estimated row of each row; by default, all rows are estimated separately.
    """

    mask: np.ndarray | None = None
    tied: np.ndarray | None = None

    @cached_property
    def first_rows(self) -> np.ndarray:
        """The first row of each group of tied rows."""
        return np.zeros(0, np.intp) if self.tied is None else np.unique(self.tied, return_index=True)[1]

    @cached_property
    def _kept(self) -> np.ndarray | None:
        """The mask of the estimated rows."""
        return self.mask if self.mask is None or self.tied is None else self.mask[self.first_rows]

    @property
    def _sizes(self) -> tuple[int, ...] | None:
        """The widths of the estimated rows; None if they are equal."""
        return None if self._kept is None or self._kept.ndim == 1 else tuple(self._kept.sum(axis=1).tolist())

    def reduce_statistics(self, statistics: Any) -> Any:
        """Return the statistics of the estimated cells; those of tied rows are added."""
        if self.tied is not None:
            statistics = statistics.merge_groups(self.tied, len(self.first_rows))
        return statistics if self._kept is None else Counts(statistics.table[self._kept], self._sizes)

    def reduce_parameters(self, scorer: FactorScorer) -> FactorScorer:
        """Return the parameters of the estimated cells."""
        if self.tied is not None:
            scorer = scorer.with_parameters(take_groups(scorer.point, self.first_rows))
        return scorer if self._kept is None else with_table(scorer, scorer.point.table[self._kept], self._sizes)

    def reduce_prior(self, prior: Prior) -> Prior:
        """Return the prior of the estimated cells.

        A prior that is already reduced, as in ``prior_``, is unchanged. So is one of an invalid shape, which is
        reported when it is used.
        """
        if self._kept is None or not isinstance(prior, Dirichlet) or prior.concentration.ndim == 0:
            return prior
        if prior.concentration.shape[-1] != self._kept.shape[-1] or prior.sizes is not None:
            return prior
        return Dirichlet(np.broadcast_to(prior.concentration, self._kept.shape)[self._kept], sizes=self._sizes)

    def expand(self, cells: np.ndarray, default: float = 0.0) -> np.ndarray:
        """Return the full table of the estimated cells, with `default` in the others."""
        if self._kept is not None:
            table = np.full(self._kept.shape, default)
            table[self._kept] = cells
            cells = table
        return cells if self.tied is None else cells[self.tied]

    def expand_parameters(self, scorer: FactorScorer) -> FactorScorer:
        """Return the parameters of all rows, with level probability 0 in the other cells."""
        if self._kept is not None:
            return with_table(scorer, self.expand(scorer.point.table))
        return scorer if self.tied is None else scorer.with_parameters(take_groups(scorer.point, self.tied))

    def expand_distribution(self, distribution: Dirichlet) -> Dirichlet:
        """Return the distribution of the full table."""
        if self.mask is None and self.tied is None:
            return distribution
        return Dirichlet(self.expand(distribution.concentration, _NEGLIGIBLE))


def with_table(scorer: FactorScorer, table: np.ndarray, sizes: tuple[int, ...] | None = None) -> FactorScorer:
    """Return a scorer with other level probabilities; rows of different widths are one flat table with `sizes`."""
    segments = Segments([table.shape[-1]] if sizes is None else sizes)
    return scorer.with_parameters(LevelProbabilities(table, segments))


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
    def of(cls, options: TopologyOptions, states: Sequence[Any], *, complete: bool = False) -> Topology:
        """Return the topology of these states.

        Parameters
        ----------
        options : TopologyOptions
        states : sequence of labels
        complete : bool, default False
            Whether there will be no other states. Then names of other states raise LabelError; otherwise they are
            ignored.
        """
        allowed = read_allowed(options.allowed_transitions, states, complete)
        stationary = isinstance(options.start, str)
        starts = None
        if options.start is not None and not stationary:
            starts = np.zeros(len(states), dtype=bool)
            starts[state_positions(options.start, states, "start", complete)] = True
            if complete and not starts.any():
                raise DataError(f"start is {short_repr(options.start)}; expected at least one state.")
        if stationary and options.end_state:
            raise DataError(
                "start='stationary' is the distribution of an endless sequence, but end_state=True.\n"
                "    Pass only one of them."
            )
        tied = read_tied(options.tied, states, complete)
        components = MixtureEmissions.of(options.components, states, tied, complete=complete)
        tied = tied if components is None else components.tied_components()
        topology = cls(states, starts, allowed, tied, stationary, options.end_state, components)
        if complete and allowed is not None:
            dead_ends = np.flatnonzero(~allowed.any(axis=1))
            if len(dead_ends) and not options.end_state:
                raise DataError(
                    f"allowed_transitions has no next state for {states[dead_ends[0]]!r}; expected at least one.\n"
                    "    Allow a transition to itself, or pass end_state=True if sequences end there."
                )
            topology.check_irreducible()
        return topology

    def check_irreducible(self) -> None:
        """Raise DataError if start='stationary' is combined with transitions that are not irreducible."""
        if not self.stationary or self.allowed is None:
            return
        n_components, _ = connected_components(self.allowed, connection="strong")
        if n_components > 1:
            raise DataError(
                "start='stationary' needs an irreducible chain, and under allowed_transitions some states cannot be "
                "reached again.\n    Leave start out, or pass the list of first states."
            )

    @property
    def restricts_paths(self) -> bool:
        """Whether some first states or transitions are forbidden."""
        return self.starts is not None or self.allowed is not None

    @property
    def may_start(self) -> np.ndarray:
        """Whether each state may be the first one."""
        return np.ones(len(self.states), dtype=bool) if self.starts is None else self.starts

    @property
    def may_follow(self) -> np.ndarray:
        """Whether each transition is allowed."""
        return np.ones((len(self.states),) * 2, dtype=bool) if self.allowed is None else self.allowed

    @property
    def uniform_transitions(self) -> np.ndarray:
        """Transition probabilities of a state without data: uniform over the allowed transitions."""
        allowed = self.may_follow
        return np.asarray(allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1))

    # ---- Estimated factors ----------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> dict[str, RestrictedTable]:
        """The estimated parts before the emissions, by name."""
        tables = {} if self.stationary else {"start": RestrictedTable(self.starts)}
        tables["transition"] = RestrictedTable(self.allowed)
        if self.ends:
            tables["end"] = RestrictedTable()
        if self.components is not None:
            mask = None if self.components.is_even else self.components.exists
            tables["component"] = RestrictedTable(mask, self.components.tied)
        return tables

    @cached_property
    def emission_table(self) -> RestrictedTable:
        """The emissions of states or components, of which those of tied states are estimated together."""
        return RestrictedTable(tied=self.tied)

    def _convert(self, values: Sequence[T], convert: Callable[[RestrictedTable, T], T]) -> list[T]:
        """Return values of the estimated factors (the emissions last), converted by the tables that are restricted."""
        tables = chain(self.tables.values(), repeat(self.emission_table))
        pairs = zip(tables, values, strict=False)
        return [value if table.mask is table.tied is None else convert(table, value) for table, value in pairs]

    def reduce_statistics(self, statistics: Sequence[Any]) -> list[Any]:
        """Return the statistics of the estimated factors, given those of all states."""
        return self._convert(statistics[self.stationary :], RestrictedTable.reduce_statistics)

    def reduce_parameters(self, scorers: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Return the parameters of the estimated factors, given those of all states."""
        return self._convert(scorers[self.stationary :], RestrictedTable.reduce_parameters)

    def expand_parameters(self, scorers: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Return the parameters of all states: 0 for forbidden transitions, equal parameters for tied states."""
        return self._convert(scorers, RestrictedTable.expand_parameters)

    def reduce_priors(
        self, prior: Priors, emissions: Iterable[Factor], estimate: str, levels: Levels | None = None
    ) -> list[Any]:
        """Return the user's prior of every estimated factor.

        Parameters
        ----------
        prior : value of the parameter of `HiddenMarkovModel`
        emissions : iterable of Factor
        estimate : str
        levels : callable, optional
            Returns the levels of a categorical column.
        """
        by_part = read_prior(prior, components=self.components is not None)
        parts = self._convert([by_part[part] for part in self.tables], RestrictedTable.reduce_prior)
        return parts + [prior_in_groups(by_part["emission"], factor, estimate, levels) for factor in emissions]

    @property
    def groups(self) -> list[Any]:
        """The names of the estimated emission groups: of tied states or components, the first one."""
        names = self.emitting
        return names if self.tied is None else [names[k] for k in self.emission_table.first_rows]

    @property
    def emitting(self) -> list[Any]:
        """The names of the emission groups: states, or pairs (state, component)."""
        return list(self.states) if self.components is None else list(self.components.names)

    def group_name(self, index: int) -> str:
        """Return the name of a state or component, for messages."""
        name = self.emitting[index]
        return f"state {name!r}" if self.components is None else f"component {name[1]} of state {name[0]!r}"

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
        forbidden_starts = np.flatnonzero((start > 0) & ~self.may_start)
        if len(forbidden_starts):
            state = self.states[forbidden_starts[0]]
            raise DataError(f"{what} has first state {state!r}, which start does not allow; expected {unit} 0.")
        for before, after in np.argwhere((transition > 0) & ~self.may_follow)[:1]:
            raise DataError(
                f"{what} goes from {self.states[before]!r} to {self.states[after]!r} with {unit} "
                f"{transition[before, after]:.6g}, which allowed_transitions forbids; expected 0."
            )

    def check_steps(self, codes: np.ndarray, sequences: Sequences) -> None:
        """Raise DataError for the first time step whose known states are a forbidden transition or first state.

        Steps after a gap are ignored: the transition may be indirect.
        """
        if not self.restricts_paths:
            return
        first, _, after = sequences.places()
        forbidden = np.zeros(len(codes), dtype=bool)
        forbidden[first] = (codes[first] >= 0) & ~self.may_start[codes[first]]
        is_known = (codes[after - 1] >= 0) & (codes[after] >= 0)
        forbidden[after] = is_known & ~self.may_follow[codes[after - 1], codes[after]]
        if sequences.gaps is not None:
            forbidden &= sequences.gaps == 0
        for index in np.flatnonzero(forbidden)[:1]:
            sequence = int(np.searchsorted(sequences.offsets, index, side="right")) - 1
            step = index - sequences.offsets[sequence]
            state = self.states[codes[index]]
            if step == 0:
                raise DataError(
                    f"sequence {sequence} begins in state {state!r}, which start does not allow.\n"
                    "    Add it to start=, or check the states of that sequence."
                )
            raise DataError(
                f"step {step} of sequence {sequence} goes from {self.states[codes[index - 1]]!r} to {state!r}, which "
                "allowed_transitions forbids.\n    Allow it, or check the states of that sequence."
            )

    def check_tied(self, scored: Sequence[FactorScorer], what: str) -> None:
        """Raise DataError if tied states have different emission parameters."""
        if self.tied is None:
            return
        like = self.emission_table.first_rows[self.tied]
        for scorer in scored:
            shared = take_groups(scorer.point, like)
            for part, tied_part in zip(arrays_of(scorer.point), arrays_of(shared), strict=True):
                axes = tuple(range(1, part.ndim))
                different = np.flatnonzero(~np.isclose(part, tied_part, rtol=1e-9, equal_nan=True).all(axis=axes))
                if len(different):
                    raise DataError(
                        f"{what} has different emissions of {scorer.factor.columns} in the tied groups "
                        f"{self.group_name(like[different[0]])} and {self.group_name(different[0])}.\n"
                        "    Give them equal parameters, or change tied=."
                    )

    # ---- Initialization of EM --------------------------------------------------------------------------------------

    def best_state_order(self, starts: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """Return the position of each unnamed state that makes the most counts allowed.

        Local search: swap two states, or move one state and shift the others, until no change improves the total. With
        more than 64 states, a single pass.
        """

        def n_allowed(positions: np.ndarray) -> float:
            """Return the total count of allowed first states and transitions."""
            allowed = self.may_follow[np.ix_(positions, positions)]
            return float(transitions[allowed].sum() + starts[self.may_start[positions]].sum())

        n = len(self.states)
        order = np.arange(n)
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
