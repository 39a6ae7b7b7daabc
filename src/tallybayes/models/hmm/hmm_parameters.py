"""Chain: the parameters of a hidden Markov model, ready to answer: start, transitions, end, emissions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, EstimateError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, map_to_known_levels
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.estimates import read_estimate
from tallybayes.families.prior_rules import is_pseudo_count
from tallybayes.models.hmm.mixture_emissions import ComponentWeights
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.sufficient_statistics import take_or_zero
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor

UNSEEN = ("new", "missing", "smooth", "error")  # what a label nobody has seen may be
_CELLS = 3 << 17  # of log p(step | state): so many stay in cache while they are made, used and dropped
_FEW, _MOST_CELLS = 64, 1 << 22  # of more states, whose transitions take as long to prepare as many steps do


class HMMParameters(NamedTuple):
    """log p(first state), log p(next | state), log p(end | state) if there is one, and the emissions of every state."""

    start: np.ndarray
    transition: np.ndarray
    end: np.ndarray | None
    scored: list[FactorScorer]
    domains: list[list[Domain]]
    unseen: str
    mixed: ComponentWeights | None = None  # where states are mixtures: the emissions are of every component

    def emission(self, table: Table) -> Any:
        """log p(step | state), shape (n, states); for one column of labels their codes and a table, which is faster.

        The codes are the table's own: rows are never rewritten, the small table is.
        """
        return self.emission_scorer()(table)

    def emission_scorer(self) -> Callable[[Table], Any]:
        """`emission`, prepared once for several tables."""
        if self.is_coded:
            return self._coded
        joint, mixed = self.joint(), self.mixed
        return joint if mixed is None else lambda table: mixed.summed(joint(table))

    def joint(self) -> Callable[[Table], np.ndarray]:
        """log p(step | state) or, where states are mixtures, log p(step, component | state): (n, components)."""
        log_share = np.zeros(len(self.start)) if self.mixed is None else self.mixed.log_share
        plan = RowScorer(self.scored, log_share, self.domains, self.unseen)
        return lambda table: np.ascontiguousarray(plan.joint(table))

    @property
    def n_emission_groups(self) -> int:
        """How many states emit, or components of them."""
        return len(self.start) if self.mixed is None else len(self.mixed.owner)

    def component_proba(self, shares: np.ndarray) -> np.ndarray:
        """p(state) as the shares of what emits: of components, where states are mixtures."""
        return shares if self.mixed is None else self.mixed.split_by_component(shares)

    def emitted(self, table: Table, shares: np.ndarray) -> np.ndarray:
        """As `emitting`, of steps that were seen."""
        if self.mixed is None or not len(shares):
            return self.component_proba(shares)
        return self.mixed.parted_by(self.joint()(table), shares)

    def _coded(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        names, (known,) = self.scored[0].factor.columns, self.domains[0]
        codes, (local,) = table.levels(names, lambda _: False)
        column = np.asarray(codes.columns[0] if not isinstance(codes.columns, np.ndarray) else codes.columns[:, 0])
        where = map_to_known_levels(column, local, known, names[0], self.unseen)
        return column, take_or_zero(self.log_table(), 0, where)

    def kernel_arguments(self, sequences: Sequences) -> Iterator[tuple[Any, Any, Any, Any, Any]]:
        """What the kernels take: start, transition, end, emission and offsets, of a few whole sequences at a time."""
        table, offsets, emit = sequences.table, sequences.offsets, self.emission_scorer()
        begin, moves, end = self.arguments
        if self.is_coded or not table.n_rows:
            emission = emit(table) if table.n_rows else np.zeros((0, len(self.start)))
            yield begin, sequences.moves(moves), end, emission, offsets
            return
        for part in self.scored:
            if part.family.cell_type == "codes":
                table.levels(part.factor.columns, lambda _: False)  # once, and of one kind in all blocks
        for first, last in stretches(offsets, self.n_emission_groups):
            start, stop = int(offsets[first]), int(offsets[last])
            try:
                emission = emit(table.rows(slice(start, stop)))
            except DataError:
                emit(table)  # which names the row as the caller counts them
                raise
            yield begin, sequences.moves(moves, start, stop), end, emission, offsets[first : last + 1] - start

    @property
    def is_coded(self) -> bool:
        """Whether a step is one label."""
        return self.mixed is None and is_coded([part.factor for part in self.scored])

    def log_table(self) -> np.ndarray:
        """For one column of labels: log p(level | state), shape (levels, states)."""
        with np.errstate(divide="ignore"):
            return np.ascontiguousarray(np.log(self.scored[0].parameters.table).T)

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Start, transition and end as the kernels take them: with an end, p(next | state) includes not to end."""
        if self.end is None:
            return self.start, self.transition, None
        with np.errstate(divide="ignore"):
            goes_on = np.log(-np.expm1(np.minimum(self.end, 0.0)))
        return self.start, self.transition + goes_on[:, None], self.end


def is_coded(emissions: Sequence[Factor]) -> bool:
    """Whether a step is one label."""
    return len(emissions) == 1 and emissions[0].family.cell_type == "codes" and len(emissions[0].columns) == 1


def stretches(offsets: np.ndarray, n_states: int) -> list[tuple[int, int]]:
    """Runs of whole sequences, at least one each, of about as many steps as stay in cache."""
    n_steps = max((_CELLS if n_states <= _FEW else _MOST_CELLS) // n_states, 1)
    n_sequences, first = len(offsets) - 1, 0
    found: list[tuple[int, int]] = []
    while first < n_sequences:
        last = int(np.searchsorted(offsets, offsets[first] + n_steps, side="right")) - 1
        found.append((first, min(max(last, first + 1), n_sequences)))
        first = found[-1][1]
    return found


def meaning_of(unseen: str, estimate: str) -> str:
    """What a label nobody has seen is under an estimate; a new one, where that has no prior, is missing."""
    return "missing" if unseen == "new" and not read_estimate(estimate).has_prior else unseen


def unseen_mass(counts: Counts) -> np.ndarray:
    """What the next new label is worth in every state, by column: the share of steps whose label occurs only there.

    Labels seen once tell what new ones are like (Good and Turing). A prior's count for one level more would not: it is
    worth most in the states with the fewest steps, whatever they emit.
    """
    once = np.where(np.abs(counts.pool_groups().table - 1) < 1e-6, counts.table, 0.0)  # expected counts are rounded
    some, rows = counts.segments.sum(once), counts.segments.sum(counts.table)
    share: np.ndarray = (some + 0.5) / (rows + 1.0)  # half a row either way, so that it is neither 0 nor all
    return share


def with_unseen_label(scored: FactorScorer, share: np.ndarray) -> FactorScorer:
    """Emissions with one level more in every column, behind the others, which stay as they are."""
    table, segments = scored.parameters
    columns = zip(segments.split(table), np.moveaxis(share, -1, 0), strict=True)
    wider = [part for column, new in columns for part in (column, new[:, None])]
    sizes = Segments([int(size) + 1 for size in segments.sizes])
    return scored._replace(parameters=LevelProbabilities(np.concatenate(wider, axis=-1), sizes))


def with_unseen_label_normalized(scored: FactorScorer, share: np.ndarray) -> FactorScorer:
    """As `with_unseen_label`, where the probabilities of known labels give way in proportion."""
    table, segments = scored.parameters
    return with_unseen_label(
        scored._replace(parameters=LevelProbabilities(table * segments.broadcast_to_cells(1 - share), segments)), share
    )


def log_shares(parameters: Any, nothing: float = 0.0) -> np.ndarray:
    """The logs of the shares of states; of `nothing`, where no row was counted."""
    shares = np.asarray(parameters.table if hasattr(parameters, "table") else parameters)
    with np.errstate(divide="ignore"):
        return np.log(np.where(np.isnan(shares), nothing, shares))


def read_prior(prior: Any, *, components: bool = False) -> dict[str, Any]:
    """The priors of a chain by part: a mapping, or one belief for all that it belongs to."""
    parts: tuple[str, ...] = ("start", "transition", "end", *(["component"] if components else []), "emission")
    if prior is None or isinstance(prior, str) or is_pseudo_count(prior):
        return dict.fromkeys(parts, prior)
    if isinstance(prior, dict):
        emission = {name: belief for name, belief in prior.items() if name not in parts}
        if emission and "emission" not in prior:
            prior = prior | {"emission": emission}
        if set(prior) <= {*parts, *emission}:
            return {part: prior.get(part) for part in parts}
    if isinstance(prior, Dirichlet):
        return dict.fromkeys(parts) | {"start": prior, "transition": prior}
    raise EstimateError(
        f"prior is {prior!r}; expected a mapping from {', '.join(map(repr, parts))} to beliefs, a Dirichlet for start "
        "and transition, a number of counts to add to every level, 'empirical' or None."
    )
