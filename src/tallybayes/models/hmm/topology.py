"""The structure of a chain: which states may follow each other or come first, and which share what they emit.

It changes no counts, only how they are read: a row of the transitions has as many cells as states may follow, and is a
column of its own beside the others (rows of different widths lie side by side in one flat table); states that are tied
are counted by themselves and estimated together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
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
ALLOWED_WORDS = StringOptions(
    (None, *_SHAPES), ("True and False for every two states", "a list of pairs (state, next state)")
)
START_WORDS = StringOptions((None, "stationary"), ("a list of states",))
_NOTHING = 1e-300  # a concentration as good as 0: what is forbidden is not unknown

_FEW = 64  # states whose places are changed until nothing helps; of more, once


@dataclass(frozen=True, eq=False)
class Topology:
    """What is fixed of a chain of some states; None where nothing is.

    Parameters
    ----------
    states : sequence of labels
    starts : ndarray of bool of shape (states,), or None
        Where sequences may begin.
    allowed : ndarray of bool of shape (states, states), or None
        Which states may follow.
    tied : ndarray of int of shape (states,), or None
        Which emission every state has; of states with components, every component.
    stationary : bool
        Whether sequences begin as they go on: p(first state) is the stationary distribution of the transitions.
    ends : bool
        Whether their end is modeled.
    components : Components, or None
        Where states are mixtures.
    """

    states: Sequence[Any]
    starts: np.ndarray | None = None
    allowed: np.ndarray | None = None
    tied: np.ndarray | None = None
    stationary: bool = False
    ends: bool = False
    components: MixtureEmissions | None = None

    @classmethod
    def of(cls, model: Any, states: Sequence[Any], *, whole: bool = False) -> Topology:
        """The structure that the settings of a model give to some states.

        Where these are the `whole` of the states there will be, names of others are refused; else they may come yet.
        """
        allowed = _read_allowed(model.allowed_transitions, states, whole)
        stationary, starts = isinstance(model.start, str), None
        if model.start is not None and not stationary:
            starts = np.zeros(len(states), dtype=bool)
            starts[_places(model.start, states, "start", whole)] = True
            if whole and not starts.any():
                raise DataError(
                    f"start is {short_repr(model.start)}: a sequence could begin nowhere; expected a state."
                )
        if stationary and model.end_state:
            raise DataError(
                "start='stationary' is of a chain that goes on for ever, and end_state=True says where it ends; "
                "expected one of them."
            )
        tied = _read_tied(model.tied, states, whole)
        components = MixtureEmissions.of(model.components, states, tied, whole=whole)
        tied = tied if components is None else components.tied_components()
        found = cls(states, starts, allowed, tied, stationary, model.end_state, components)
        if whole and allowed is not None:
            found._refuse_dead_ends()
            found.refuse_transient()
        return found

    def _refuse_dead_ends(self) -> None:
        assert self.allowed is not None
        lost = np.flatnonzero(~self.allowed.any(axis=1))
        if len(lost) and not self.ends:
            raise DataError(
                f"allowed= lets nothing follow state {self.states[lost[0]]!r}; expected at least one state.\n"
                "    Let it follow itself, or pass end_state=True where sequences end there."
            )

    def refuse_transient(self) -> None:
        """Refuse a stationary start where some states are left for good."""
        if self.stationary and self.allowed is not None and _n_parts(self.allowed) > 1:
            raise DataError(
                "start='stationary' needs a chain in which every state leads to every other, and under allowed= some "
                "are left for good: they would have no share in the long run, and could not come first.\n"
                "    Leave start out, or name the states where sequences begin."
            )

    @property
    def uniform_transitions(self) -> Any:
        """Where a state goes that nothing is known of: anywhere that it may."""
        n = len(self.states)
        return 1 / n if self.allowed is None else self.allowed / np.maximum(self.allowed.sum(axis=1, keepdims=True), 1)

    # ---- Counts as they are read ----------------------------------------------------------------------------------

    @property
    def parts(self) -> list[str]:
        """What is estimated besides the emissions."""
        more = [*(["end"] if self.ends else []), *([] if self.components is None else ["component"])]
        return [*([] if self.stationary else ["start"]), "transition", *more]

    @property
    def _n_more(self) -> int:
        """How many parts there are besides start and transition."""
        return self.ends + (self.components is not None)

    def factors(self, factors: Sequence[Factor]) -> list[Factor]:
        """Those of start, transition, perhaps end and components, and the emissions, as they are estimated."""
        start, moves, *rest = factors
        if self.components is not None:
            rest[self.ends] = self.components.factor(rest[self.ends])
        if self.allowed is not None:
            moves = Factor(moves.columns, (), moves.family)
        return [*([] if self.stationary else [start]), moves, *rest]

    def read(self, statistics: Sequence[Any]) -> list[Any]:
        """The statistics of all these as they are estimated from."""
        start, moves, *rest = statistics
        if self.starts is not None:
            start = Counts(start.table[self.starts])
        if self.allowed is not None:
            moves = Counts(moves.table[self.allowed], self._sizes)
        if self.components is not None:
            rest[self.ends] = self.components.read(rest[self.ends])
        if self.tied is not None:
            n_more = self._n_more
            rest = rest[:n_more] + [part.merge_groups(self.tied, len(self.groups)) for part in rest[n_more:]]
        return [*([] if self.stationary else [start]), moves, *rest]

    def points(self, found: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Parameters of all states as they would be estimated: of what is allowed, and of each emission once."""
        start, moves, *rest = found
        if self.starts is not None:
            start = with_table(start, start.point.table[self.starts])
        if self.allowed is not None:
            moves = with_table(moves, moves.point.table[self.allowed], self._sizes)
        if self.components is not None:
            rest[self.ends] = self.components.points(rest[self.ends])
        if self.tied is not None:
            firsts, n_more = self._firsts, self._n_more
            rest = rest[:n_more] + [
                one._replace(parameters=one.family.take(one.point, firsts), predictive=False) for one in rest[n_more:]
            ]
        return [*([] if self.stationary else [start]), moves, *rest]

    @property
    def groups(self) -> list[Any]:
        """What the emissions that are estimated are called: by the first state, or component, that has each."""
        names = self.emitting
        return names if self.tied is None else [names[k] for k in self._firsts]

    @property
    def emitting(self) -> list[Any]:
        """What emits: the states, or their components."""
        return list(self.states) if self.components is None else list(self.components.names)

    def called(self, place: int) -> str:
        """What emits, for a message."""
        name = self.emitting[place]
        return f"state {name!r}" if self.components is None else f"component {name[1]} of state {name[0]!r}"

    @property
    def _firsts(self) -> np.ndarray:
        return np.unique(np.arange(len(self.emitting)) if self.tied is None else self.tied, return_index=True)[1]

    @property
    def _sizes(self) -> list[int]:
        assert self.allowed is not None
        return [int(size) for size in self.allowed.sum(axis=1)]

    def prior(self, part: str, prior: Any) -> Any:
        """The prior of start, transition or components over what is there alone."""
        if part == "component" and self.components is not None:
            return self.components.prior(prior)
        kept = {"start": self.starts, "transition": self.allowed}.get(part)
        if kept is None or not isinstance(prior, Dirichlet) or prior.concentration.ndim == 0:
            return prior
        if prior.concentration.shape[-1] != len(self.states) or prior.sizes is not None:
            return prior  # as prior_ has it, or refused by its shape
        cells = np.broadcast_to(prior.concentration, kept.shape)[kept]
        return Dirichlet(cells, sizes=None if part == "start" else tuple(self._sizes))

    # ---- And back -------------------------------------------------------------------------------------------------

    def spread(self, found: Sequence[FactorScorer]) -> list[FactorScorer]:
        """What was estimated over all states again: what is forbidden has 0, what is tied is the same."""
        parts, emissions = dict(zip(self.parts, found, strict=False)), found[len(self.parts) :]
        for part, kept in (("start", self.starts), ("transition", self.allowed)):
            if kept is not None and part in parts:
                parts[part] = with_table(parts[part], self._filled(kept, parts[part].point.table, 0.0))
        if self.components is not None:
            parts["component"] = self.components.spread(parts["component"])
        if self.tied is not None:
            emissions = [one._replace(parameters=one.family.take(one.parameters, self.tied)) for one in emissions]
        return [*parts.values(), *emissions]

    def belief(self, part: str, belief: Any) -> Any:
        """A belief about a part with a place for what is forbidden, or not there, which is as good as certain."""
        if part == "component" and self.components is not None:
            return self.components.belief(belief, _NOTHING)
        kept = {"start": self.starts, "transition": self.allowed}.get(part)
        return belief if kept is None else Dirichlet(self._filled(kept, belief.concentration, _NOTHING))

    def as_full_matrix(self, cells: np.ndarray) -> np.ndarray:
        """Numbers of the transitions that are allowed as a matrix of all."""
        return cells if self.allowed is None else self._filled(self.allowed, cells, 0.0)

    def _filled(self, kept: np.ndarray, cells: np.ndarray, nothing: float) -> np.ndarray:
        out = np.full(kept.shape, nothing)
        out[kept] = cells
        return out

    # ---- What cannot be -------------------------------------------------------------------------------------------

    def refuse_counted(self, start: Any, moves: Any) -> None:
        """Refuse counts of what is forbidden."""
        if self.starts is not None and (start.table[~self.starts] > 0).any():
            state = self.states[int(np.flatnonzero((start.table > 0) & ~self.starts)[0])]
            raise DataError(f"sequences were counted that begin in state {state!r}, and start= does not allow it.")
        if self.allowed is not None and (moves.table[~self.allowed] > 0).any():
            before, after = np.argwhere((moves.table > 0) & ~self.allowed)[0]
            raise DataError(
                f"{moves.table[before, after]:.6g} transitions from {self.states[before]!r} to {self.states[after]!r} "
                "were counted, and allowed= forbids them.\n    Allow it, or count only sequences that keep to it."
            )

    def refuse_steps(self, codes: np.ndarray, offsets: np.ndarray, gaps: np.ndarray | None = None) -> None:
        """Refuse known states that cannot follow each other, or come first: the first such step is named.

        Those behind silent steps may have come another way.
        """
        bad = np.zeros(len(codes), dtype=bool)
        begins = offsets[:-1][offsets[:-1] < offsets[1:]]
        if self.starts is not None:
            bad[begins] = (codes[begins] >= 0) & ~self.starts[codes[begins]]
        if self.allowed is not None and len(codes) > 1:
            both = (codes[1:] >= 0) & (codes[:-1] >= 0) & ~self.allowed[codes[:-1], codes[1:]]
            both[begins[begins > 0] - 1] = False
            bad[1:] |= both
        if gaps is not None:
            bad &= gaps == 0
        if not bad.any():
            return
        place = int(np.flatnonzero(bad)[0])
        sequence = int(np.searchsorted(offsets, place, side="right")) - 1
        step, state = place - int(offsets[sequence]), self.states[codes[place]]
        if step == 0:
            raise DataError(f"sequence {sequence} begins in state {state!r}, and start= does not allow it.")
        raise DataError(
            f"step {step} of sequence {sequence} goes from {self.states[codes[place - 1]]!r} to {state!r}, and "
            "allowed= forbids it.\n    Allow it, or check the states of that sequence."
        )

    def refuse_parameters(self, start: np.ndarray, transition: np.ndarray, what: str) -> None:
        """Refuse tables that have probability where none is allowed."""
        if self.starts is not None and (start[~self.starts] > 0).any():
            state = self.states[int(np.flatnonzero((start > 0) & ~self.starts)[0])]
            raise DataError(
                f"{what} may begin in state {state!r}, and start= does not allow it; expected probability 0."
            )
        if self.allowed is not None and (transition[~self.allowed] > 0).any():
            before, after = np.argwhere((transition > 0) & ~self.allowed)[0]
            raise DataError(
                f"{what} goes from {self.states[before]!r} to {self.states[after]!r} with probability "
                f"{transition[before, after]:.4g}, and allowed= forbids it; expected 0."
            )

    def refuse_untied(self, scored: Sequence[FactorScorer], what: str) -> None:
        """Refuse emissions that differ between states that are tied."""
        if self.tied is None:
            return
        for one in scored:
            shared = one.family.take(one.point, self._firsts[self.tied])
            for part, same in zip(arrays_of(one.point), arrays_of(shared), strict=True):
                axes = tuple(range(1, part.ndim))
                apart = np.flatnonzero(~np.isclose(part, same, rtol=1e-9, equal_nan=True).all(axis=axes))
                if len(apart):
                    raise DataError(
                        f"{what} has other emissions of {one.factor.columns} in {self.called(apart[0])} than in "
                        f"{self.called(self._firsts[self.tied[apart[0]]])}, and tied= says that they share them."
                    )

    # ---- Where EM starts ------------------------------------------------------------------------------------------

    def best_state_order(self, starts: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """For states that have no names yet, the place of each at which most of what was counted is allowed.

        Any two change places, or one goes elsewhere and the others close up, while that helps.
        """
        n, order = len(self.states), np.arange(len(self.states))
        if self.allowed is None and self.starts is None:
            return order
        allowed = np.ones((n, n), dtype=bool) if self.allowed is None else self.allowed
        begins = np.ones(n, dtype=bool) if self.starts is None else self.starts

        def kept(places: np.ndarray) -> float:
            return float(moves[allowed[np.ix_(places, places)]].sum() + starts[begins[places]].sum())

        best, improved = kept(order), True
        while improved:
            improved = False
            for i, j in np.ndindex(n, n):
                swapped, moved = order.copy(), np.empty_like(order)
                swapped[[i, j]] = order[[j, i]]
                in_turn = np.insert(np.delete(np.argsort(order), i), j, np.argsort(order)[i])
                moved[in_turn] = np.arange(n)
                for other in (swapped, moved):
                    value = kept(other)
                    if value > best * (1 + 1e-12):
                        order, best, improved = other, value, True
            improved = improved and n <= _FEW
        return order


def arrays_of(parameters: Any) -> list[np.ndarray]:
    """The arrays of parameters, groups first."""
    if isinstance(parameters, LevelProbabilities):
        return [parameters.table]
    return list(map(np.asarray, parameters)) if isinstance(parameters, tuple) else [np.asarray(parameters)]


def _n_parts(allowed: np.ndarray) -> int:
    return int(connected_components(allowed, connection="strong")[0])


def check_structure(model: Any) -> None:
    """Refuse words that are none, and settings of another kind."""
    check_components(model.components)
    ALLOWED_WORDS.check("allowed_transitions", model.allowed_transitions)
    START_WORDS.check("start", model.start)
    if model.tied is not None and not isinstance(model.tied, Mapping):
        raise EstimateError(
            f"tied is {short_repr(model.tied)}; expected a mapping from states to what they share, or None."
        )
    if model.allowed_transitions is not None and not isinstance(
        model.allowed_transitions, str | Mapping | list | tuple | np.ndarray
    ):
        raise EstimateError(
            f"allowed is {short_repr(model.allowed_transitions)}; expected "
            f"{', '.join(map(str, (*_SHAPES, *ALLOWED_WORDS.others)))}."
        )


def _places(names: Any, states: Sequence[Any], setting: str, whole: bool) -> list[int]:
    """The places of some states, by name."""
    index = {state: place for place, state in enumerate(states)}
    found = [name.item() if isinstance(name, np.generic) else name for name in _listed(names)]
    if whole:
        for name in found:
            _known(name, index, setting)
    return [index[name] for name in found if name in index]


def _listed(names: Any) -> list[Any]:
    return list(names) if isinstance(names, list | tuple | set | frozenset | np.ndarray) else [names]


def _known(name: Any, index: Mapping[Any, int], setting: str) -> None:
    if name not in index:
        raise LabelError(f"{setting}= names the state {name!r}, and the states are {short_repr(list(index))}.")


def _read_tied(tied: Any, states: Sequence[Any], whole: bool) -> np.ndarray | None:
    """Which emission every state has, numbered as they come; a state that is not named has its own."""
    if tied is None:
        return None
    if whole:
        _places(list(tied), states, "tied", True)
    keys: dict[Any, int] = {}
    shared = [("tied", tied[state]) if state in tied else ("own", state) for state in states]
    return np.array([keys.setdefault(key, len(keys)) for key in shared], dtype=np.intp)


def _read_allowed(allowed: Any, states: Sequence[Any], whole: bool) -> np.ndarray | None:
    """Which states may follow which, from a word, a matrix, pairs, or a mapping from each state to the next ones."""
    n = len(states)
    if allowed is None:
        return None
    if isinstance(allowed, str):
        found: np.ndarray = _SHAPES[allowed](n)
        return found
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
    for before, after in _edges(allowed):
        here = _places(before, states, "allowed_transitions", whole)
        there = _places(after, states, "allowed_transitions", whole)
        out[np.ix_(here, there)] = True
    return out


def _edges(allowed: Any) -> Iterable[tuple[Any, Any]]:
    """Pairs of a state and what may follow it."""
    if isinstance(allowed, Mapping):
        return allowed.items()
    for edge in allowed:
        if not isinstance(edge, list | tuple) or len(edge) != 2:
            raise DataError.wrong_type("allowed_transitions", f"with {short_repr(edge)}", "pairs (state, next state)")
    return [tuple(edge) for edge in allowed]


def _are_bools(allowed: Any) -> bool:
    """Whether nested lists are a matrix, and not pairs of states."""
    rows = () if isinstance(allowed, Mapping) else allowed
    return bool(rows) and all(
        isinstance(row, list | tuple | np.ndarray) and all(isinstance(cell, bool | np.bool_) for cell in row)
        for row in rows
    )
