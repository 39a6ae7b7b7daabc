"""Topology of a hidden Markov model: allowed transitions and first states, tied states, mixture components.

The counts of the tally do not depend on it, only the factors that are estimated from them. Each row of a restricted
transition matrix is a column of its own, with one cell for each allowed transition; rows of different widths lie side
by side in one flat table. Tied states are counted separately and estimated together. "Reduce" converts statistics,
priors and parameters of all states to those of the estimated factors, "expand" converts back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from tallybayes._utils.string_options import StringOptions
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, EstimateError, LabelError, short_repr
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.models.hmm.mixture_emissions import MixtureEmissions, check_components, with_table
from tallybayes.statistics.counts import Counts
from tallybayes.tally.factor import Factor

_SHAPES: dict[str, Callable[[int], np.ndarray]] = {
    "left-to-right": lambda n: np.triu(np.ones((n, n), dtype=bool)),
    "banded": lambda n: np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1,
}
AllowedTransitions = str | npt.ArrayLike | Iterable[tuple[Any, Any]] | Mapping[Any, Any] | None
ALLOWED_WORDS = StringOptions(
    (None, *_SHAPES), ("True and False for every two states", "a list of pairs (state, next state)")
)
START_WORDS = StringOptions((None, "stationary"), ("a list of states",))
_NEGLIGIBLE = 1e-300  # the Dirichlet concentration of forbidden transitions

_FEW_STATES = 64  # with more states, the local search over state orders makes a single pass


class TopologyOptions(Protocol):
    """The parameters of `HiddenMarkovModel` that determine the topology: the model itself, or an `EstimatedHMM`."""

    @property
    def allowed_transitions(self) -> AllowedTransitions: ...  # noqa: D102

    @property
    def start(self) -> str | Iterable[Hashable] | None: ...  # noqa: D102

    @property
    def tied(self) -> Mapping[Any, Hashable] | None: ...  # noqa: D102

    @property
    def components(self) -> int | Mapping[Any, int] | None: ...  # noqa: D102

    @property
    def end_state(self) -> bool: ...  # noqa: D102


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
    def of(cls, options: TopologyOptions, states: Sequence[Any], *, whole: bool = False) -> Topology:
        """Return the topology of a model with these states.

        Parameters
        ----------
        options : model or EstimatedHMM
        states : sequence of labels
        whole : bool, default False
            Whether there will be no other states. Then names of other states raise LabelError; otherwise they are
            ignored.
        """
        allowed = _read_allowed(options.allowed_transitions, states, whole)
        stationary, starts = isinstance(options.start, str), None
        if options.start is not None and not stationary:
            starts = np.zeros(len(states), dtype=bool)
            starts[_positions(options.start, states, "start", whole)] = True
            if whole and not starts.any():
                raise DataError(f"start is {short_repr(options.start)}; expected at least one state.")
        if stationary and options.end_state:
            raise DataError(
                "start='stationary' and end_state=True exclude each other: the stationary distribution is that of an "
                "endless sequence."
            )
        tied = _read_tied(options.tied, states, whole)
        components = MixtureEmissions.of(options.components, states, tied, whole=whole)
        tied = tied if components is None else components.tied_components()
        topology = cls(states, starts, allowed, tied, stationary, options.end_state, components)
        if whole and allowed is not None:
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

    # ---- From all states to estimated factors ---------------------------------------------------------------------

    @property
    def parts(self) -> list[str]:
        """The names of the estimated factors before the emissions."""
        more = [*(["end"] if self.ends else []), *([] if self.components is None else ["component"])]
        return [*([] if self.stationary else ["start"]), "transition", *more]

    @property
    def _n_optional_parts(self) -> int:
        """The number of estimated parts besides initial states and transitions."""
        return self.ends + (self.components is not None)

    def reduce_factors(self, factors: Sequence[Factor]) -> list[Factor]:
        """Return the estimated factors, given those of initial states, transitions, ends, components and emissions."""
        start, transition, *rest = factors
        if self.components is not None:
            rest[self.ends] = self.components.reduce_factor(rest[self.ends])
        if self.allowed is not None:
            transition = Factor(transition.columns, (), transition.family)
        return [*([] if self.stationary else [start]), transition, *rest]

    def reduce_statistics(self, statistics: Sequence[Any]) -> list[Any]:
        """Return the statistics of the estimated factors, given those of all states."""
        start, transition, *rest = statistics
        if self.starts is not None:
            start = Counts(start.table[self.starts])
        if self.allowed is not None:
            transition = Counts(transition.table[self.allowed], self._sizes)
        if self.components is not None:
            rest[self.ends] = self.components.reduce_counts(rest[self.ends])
        if self.tied is not None:
            n_more = self._n_optional_parts
            rest = rest[:n_more] + [part.merge_groups(self.tied, len(self.groups)) for part in rest[n_more:]]
        return [*([] if self.stationary else [start]), transition, *rest]

    def reduce_parameters(self, scorers: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Return the parameters of the estimated factors, given those of all states."""
        start, transition, *rest = scorers
        if self.starts is not None:
            start = with_table(start, start.point.table[self.starts])
        if self.allowed is not None:
            transition = with_table(transition, transition.point.table[self.allowed], self._sizes)
        if self.components is not None:
            rest[self.ends] = self.components.reduce_weights(rest[self.ends])
        if self.tied is not None:
            firsts, n_more = self._firsts, self._n_optional_parts
            rest = rest[:n_more] + [
                scorer._replace(parameters=scorer.family.take(scorer.point, firsts), predictive=False)
                for scorer in rest[n_more:]
            ]
        return [*([] if self.stationary else [start]), transition, *rest]

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

    @property
    def _sizes(self) -> list[int]:
        """The number of allowed transitions from each state."""
        assert self.allowed is not None
        return [int(size) for size in self.allowed.sum(axis=1)]

    def reduce_prior(self, part: str, prior: Any) -> Any:
        """Return the prior of an estimated part, given the prior of all states."""
        if part == "component" and self.components is not None:
            return self.components.reduce_prior(prior)
        kept = {"start": self.starts, "transition": self.allowed}.get(part)
        if kept is None or not isinstance(prior, Dirichlet) or prior.concentration.ndim == 0:
            return prior
        if prior.concentration.shape[-1] != len(self.states) or prior.sizes is not None:
            return prior  # in the form of prior_, or of an invalid shape that is reported later
        cells = np.broadcast_to(prior.concentration, kept.shape)[kept]
        return Dirichlet(cells, sizes=None if part == "start" else tuple(self._sizes))

    # ---- From estimated factors to all states ---------------------------------------------------------------------

    def expand_parameters(self, scorers: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Return the parameters of all states: 0 for forbidden transitions, equal parameters for tied states."""
        parts, emissions = dict(zip(self.parts, scorers, strict=False)), scorers[len(self.parts) :]
        for part, kept in (("start", self.starts), ("transition", self.allowed)):
            if kept is not None and part in parts:
                parts[part] = with_table(parts[part], self._filled(kept, parts[part].point.table, 0.0))
        if self.components is not None:
            parts["component"] = self.components.expand_weights(parts["component"])
        if self.tied is not None:
            emissions = [
                scorer._replace(parameters=scorer.family.take(scorer.parameters, self.tied)) for scorer in emissions
            ]
        return [*parts.values(), *emissions]

    def expand_distribution(self, part: str, distribution: Any) -> Any:
        """Return the distribution of a part over all states; forbidden transitions have a concentration of almost 0."""
        if part == "component" and self.components is not None:
            return self.components.expand_distribution(distribution, _NEGLIGIBLE)
        kept = {"start": self.starts, "transition": self.allowed}.get(part)
        return distribution if kept is None else Dirichlet(self._filled(kept, distribution.concentration, _NEGLIGIBLE))

    def as_full_matrix(self, cells: np.ndarray) -> np.ndarray:
        """Return values of the allowed transitions as a matrix, with 0 elsewhere."""
        return cells if self.allowed is None else self._filled(self.allowed, cells, 0.0)

    def _filled(self, kept: np.ndarray, cells: np.ndarray, default: float) -> np.ndarray:
        """Return an array with the given cells where `kept` is True, and a constant elsewhere."""
        out = np.full(kept.shape, default)
        out[kept] = cells
        return out

    # ---- Checks ----------------------------------------------------------------------------------------------------

    def check_counts(self, start: Any, transition: Any) -> None:
        """Raise DataError if forbidden transitions or first states were counted."""
        if self.starts is not None and (start.table[~self.starts] > 0).any():
            state = self.states[int(np.flatnonzero((start.table > 0) & ~self.starts)[0])]
            raise DataError(f"start does not allow state {state!r}, in which counted sequences begin.")
        if self.allowed is not None and (transition.table[~self.allowed] > 0).any():
            before, after = np.argwhere((transition.table > 0) & ~self.allowed)[0]
            raise DataError(
                f"allowed_transitions forbids {self.states[before]!r} to {self.states[after]!r}, and "
                f"{transition.table[before, after]:.6g} such transitions were counted.\n"
                "    Allow it, or remove these sequences."
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
        step, state = index - int(offsets[sequence]), self.states[codes[index]]
        if step == 0:
            raise DataError(f"sequence {sequence} begins in state {state!r}, which start does not allow.")
        raise DataError(
            f"step {step} of sequence {sequence} goes from {self.states[codes[index - 1]]!r} to {state!r}, which "
            "allowed_transitions forbids.\n    Allow it, or check the states of that sequence."
        )

    def check_parameters(self, start: np.ndarray, transition: np.ndarray, what: str) -> None:
        """Raise DataError if forbidden transitions or first states have positive probability."""
        if self.starts is not None and (start[~self.starts] > 0).any():
            state = self.states[int(np.flatnonzero((start > 0) & ~self.starts)[0])]
            raise DataError(f"{what} has first state {state!r}, which start does not allow; expected probability 0.")
        if self.allowed is not None and (transition[~self.allowed] > 0).any():
            before, after = np.argwhere((transition > 0) & ~self.allowed)[0]
            raise DataError(
                f"{what} goes from {self.states[before]!r} to {self.states[after]!r} with probability "
                f"{transition[before, after]:.4g}, which allowed_transitions forbids; expected 0."
            )

    def check_tied(self, scored: Sequence[FactorScorer], what: str) -> None:
        """Raise DataError if tied states have different emission parameters."""
        if self.tied is None:
            return
        for scorer in scored:
            shared = scorer.family.take(scorer.point, self._firsts[self.tied])
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
        n, order = len(self.states), np.arange(len(self.states))
        if self.allowed is None and self.starts is None:
            return order
        allowed = np.ones((n, n), dtype=bool) if self.allowed is None else self.allowed
        may_start = np.ones(n, dtype=bool) if self.starts is None else self.starts

        def n_allowed(positions: np.ndarray) -> float:
            return float(transitions[allowed[np.ix_(positions, positions)]].sum() + starts[may_start[positions]].sum())

        best, improved = n_allowed(order), True
        while improved:
            improved = False
            for i, j in np.ndindex(n, n):
                swapped, moved = order.copy(), np.empty_like(order)
                swapped[[i, j]] = order[[j, i]]
                sequence = np.insert(np.delete(np.argsort(order), i), j, np.argsort(order)[i])
                moved[sequence] = np.arange(n)
                for candidate in (swapped, moved):
                    value = n_allowed(candidate)
                    if value > best * (1 + 1e-12):
                        order, best, improved = candidate, value, True
            improved = improved and n <= _FEW_STATES
        return order


def arrays_of(parameters: Any) -> list[np.ndarray]:
    """Return the arrays of parameters; their first axis is the group."""
    if isinstance(parameters, LevelProbabilities):
        return [parameters.table]
    return list(map(np.asarray, parameters)) if isinstance(parameters, tuple) else [np.asarray(parameters)]


def _n_strong_components(allowed: np.ndarray) -> int:
    """Return the number of strongly connected components."""
    return int(connected_components(allowed, connection="strong")[0])


def check_topology_parameters(options: TopologyOptions) -> None:
    """Raise an error for invalid topology parameters of a model."""
    check_components(options.components)
    ALLOWED_WORDS.check("allowed_transitions", options.allowed_transitions)
    START_WORDS.check("start", options.start)
    if options.tied is not None and not isinstance(options.tied, Mapping):
        raise EstimateError(
            f"tied is {short_repr(options.tied)}; expected a mapping from states to hashable values, or None."
        )
    if options.allowed_transitions is not None and not isinstance(
        options.allowed_transitions, str | Mapping | list | tuple | np.ndarray
    ):
        raise EstimateError(
            f"allowed_transitions is {short_repr(options.allowed_transitions)}; expected "
            f"{', '.join(map(str, (*_SHAPES, *ALLOWED_WORDS.others)))}."
        )


def _positions(names: Any, states: Sequence[Any], parameter: str, whole: bool) -> list[int]:
    """Return the positions of states, by name."""
    index = {state: position for position, state in enumerate(states)}
    requested = [name.item() if isinstance(name, np.generic) else name for name in _as_list(names)]
    if whole:
        for name in requested:
            _check_state(name, index, parameter)
    return [index[name] for name in requested if name in index]


def _as_list(names: Any) -> list[Any]:
    """Return one name or several as a list."""
    return list(names) if isinstance(names, list | tuple | set | frozenset | np.ndarray) else [names]


def _check_state(name: Any, index: Mapping[Any, int], parameter: str) -> None:
    """Raise LabelError if a name is not a state."""
    if name not in index:
        raise LabelError(f"{parameter}= has the unknown state {name!r}; the states are {short_repr(list(index))}.")


def _read_tied(tied: Any, states: Sequence[Any], whole: bool) -> np.ndarray | None:
    """Return the emission index of each state, numbered in order; an unnamed state is not tied."""
    if tied is None:
        return None
    if whole:
        _positions(list(tied), states, "tied", True)
    keys: dict[Any, int] = {}
    shared = [("tied", tied[state]) if state in tied else ("own", state) for state in states]
    return np.array([keys.setdefault(key, len(keys)) for key in shared], dtype=np.intp)


def _read_allowed(allowed: Any, states: Sequence[Any], whole: bool) -> np.ndarray | None:
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
    for before, after in _pairs(allowed):
        rows = _positions(before, states, "allowed_transitions", whole)
        columns = _positions(after, states, "allowed_transitions", whole)
        out[np.ix_(rows, columns)] = True
    return out


def _pairs(allowed: Any) -> Iterable[tuple[Any, Any]]:
    """Return pairs of a state, or several, and its next states."""
    if isinstance(allowed, Mapping):
        return allowed.items()
    for edge in allowed:
        if not isinstance(edge, list | tuple) or len(edge) != 2:
            raise DataError.wrong_type("allowed_transitions", f"with {short_repr(edge)}", "pairs (state, next state)")
    return [tuple(edge) for edge in allowed]


def _are_bools(allowed: Any) -> bool:
    """Return whether nested lists are a boolean matrix rather than pairs of states."""
    rows = () if isinstance(allowed, Mapping) else allowed
    return bool(rows) and all(
        isinstance(row, list | tuple | np.ndarray) and all(isinstance(cell, bool | np.bool_) for cell in row)
        for row in rows
    )
