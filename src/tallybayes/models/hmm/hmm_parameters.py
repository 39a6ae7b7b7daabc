"""Parameters of a hidden Markov model as log probabilities, ready for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from tallybayes.kernels.hmm import HMMInput
from tallybayes.kernels.hmm_arguments import Emission
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution
from tallybayes.models.hmm.mixture_emissions import ComponentWeights
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.sufficient_statistics import take_or_zero
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.typing import Priors

UNSEEN = ("new", "missing", "smooth", "error")  # the values of `unseen=`

# Emission log probabilities are computed for blocks of sequences. A block of so many cells fits into the cache.
_CELLS = 3 << 17
# With more states than this, blocks are larger: preparing the transition matrix costs as much as many time steps.
_FEW_STATES = 64
_CELLS_OF_MANY_STATES = 1 << 22


class HMMParameters(NamedTuple):
    """The parameters of a hidden Markov model.

    Attributes
    ----------
    start : ndarray of shape (states,)
        log p(first state).
    transition : ndarray of shape (states, states)
        log p(next state | state), given that the sequence continues.
    end : ndarray of shape (states,), or None
        log p(end | state).
    scored : list of FactorScorer
        The emissions of every state or, with mixture emissions, of every component.
    domains : list of lists of Domain
        The levels of the categorical columns of every emission.
    unseen : str
        The treatment of unseen levels, as `RowScorer` takes it.
    mixed : ComponentWeights, optional
        The component weights of mixture emissions.
    """

    start: np.ndarray
    transition: np.ndarray
    end: np.ndarray | None
    scored: list[FactorScorer]
    domains: list[list[Domain]]
    unseen: str
    mixed: ComponentWeights | None = None

    @classmethod
    def from_parts(
        cls,
        topology: Topology,
        parts: Mapping[str, FactorScorer],
        scored: list[FactorScorer],
        domains: list[list[Domain]],
        unseen: str,
        *,
        uniform: bool,
    ) -> HMMParameters:
        """Return the parameters, given the scorers of initial states, transitions, ends and components by name.

        Parameters
        ----------
        uniform : bool
            Whether a state without data has uniform transitions and components; otherwise they are 0.
        """
        n = len(topology.states)
        transition = log_probabilities(parts["transition"].point, topology.uniform_transitions if uniform else 0.0)
        if topology.stationary:
            start = log_probabilities(stationary_distribution(np.exp(transition)))
        else:
            start = log_probabilities(parts["start"].point, 1 / n if uniform else 0.0)
        end = log_probabilities(parts["end"].point)[:, 0] if topology.ends else None
        mixed = None
        if topology.components is not None:
            default = 1 / topology.components.most if uniform else 0.0
            weights = log_probabilities(parts["component"].point, default)
            mixed = ComponentWeights.from_table(topology.components, weights)
        return cls(start, transition, end, scored, domains, unseen, mixed)

    def emission(self, table: Table) -> Emission:
        """Return log p(step | state), (steps, states).

        For a single categorical column, return its codes and a table (levels, states), which is faster. The codes are
        those of the input; the table is reordered to match them.
        """
        return self.emission_scorer()(table)

    def emission_scorer(self) -> Callable[[Table], Emission]:
        """Return `emission` as a function, prepared once for several tables."""
        if self.is_coded:
            return self._coded
        joint = self.joint()
        mixed = self.mixed
        return joint if mixed is None else lambda table: mixed.marginalize(joint(table))

    def joint(self) -> Callable[[Table], np.ndarray]:
        """Return a function for log p(step | state) or, with mixture emissions, log p(step, component | state)."""
        log_weight = np.zeros(len(self.start)) if self.mixed is None else self.mixed.log_weight
        scorer = RowScorer(self.scored, log_weight, self.domains, self.unseen)
        return lambda table: np.ascontiguousarray(scorer.joint(table))

    @property
    def n_emission_groups(self) -> int:
        """The number of states or, with mixture emissions, of all components."""
        return len(self.start) if self.mixed is None else len(self.mixed.owner)

    def component_proba(self, proba: np.ndarray) -> np.ndarray:
        """Return p(component) from p(state); p(state) itself without mixture emissions."""
        return proba if self.mixed is None else self.mixed.component_proba(proba)

    def component_posterior(self, table: Table, proba: np.ndarray) -> np.ndarray:
        """Return p(component | step) from p(state | step); p(state | step) itself without mixture emissions."""
        if self.mixed is None or not len(proba):
            return self.component_proba(proba)
        return self.mixed.component_posterior(self.joint()(table), proba)

    def _coded(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of a single categorical column, and log p(level | state) in their order."""
        names = self.scored[0].factor.columns
        codes, (local,) = table.levels(names, lambda _: False)
        column = np.asarray(codes.columns[0] if not isinstance(codes.columns, np.ndarray) else codes.columns[:, 0])
        known = map_to_known_levels(column, local, self.domains[0][0], names[0], self.unseen)
        return column, take_or_zero(self.log_table(), 0, known)

    def kernel_inputs(self, sequences: Sequences) -> Iterator[HMMInput]:
        """Yield the input of the kernels, by block of sequences."""
        table = sequences.table
        offsets = sequences.offsets
        scorer = self.emission_scorer()
        start, transition, end = self.arguments
        if self.is_coded or not table.n_rows:
            emission = scorer(table) if table.n_rows else np.zeros((0, len(self.start)))
            yield HMMInput(start, sequences.moves(transition), end, emission, offsets)
            return
        for part in self.scored:
            if part.family.cell_type == "codes":
                table.levels(part.factor.columns, lambda _: False)  # encode once, with one type for all blocks
        for first, last in blocks_of_sequences(offsets, self.n_emission_groups):
            steps = slice(int(offsets[first]), int(offsets[last]))
            try:
                emission = scorer(table.rows(steps))
            except DataError:
                scorer(table)  # so that the message has the row number of the whole table
                raise
            moves = sequences.moves(transition, steps.start, steps.stop)
            yield HMMInput(start, moves, end, emission, offsets[first : last + 1] - steps.start)

    @property
    def is_coded(self) -> bool:
        """Whether a time step is a single categorical column."""
        return self.mixed is None and is_coded([part.factor for part in self.scored])

    def log_table(self) -> np.ndarray:
        """Return log p(level | state) of a single categorical column, (levels, states)."""
        with np.errstate(divide="ignore"):
            return np.ascontiguousarray(np.log(self.scored[0].parameters.table).T)

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Start, transition and end for the kernels; if the end is modeled, transitions include p(no end | state)."""
        if self.end is None:
            return self.start, self.transition, None
        with np.errstate(divide="ignore"):
            log_continue = np.log(-np.expm1(np.minimum(self.end, 0.0)))
        return self.start, self.transition + log_continue[:, None], self.end


def is_coded(emissions: Sequence[Factor]) -> bool:
    """Return whether a time step is a single categorical column."""
    return len(emissions) == 1 and emissions[0].family.cell_type == "codes" and len(emissions[0].columns) == 1


def blocks_of_sequences(offsets: np.ndarray, n_states: int) -> list[tuple[int, int]]:
    """Return consecutive ranges of whole sequences, each with about as many time steps as fit into the cache."""
    n_steps = max((_CELLS if n_states <= _FEW_STATES else _CELLS_OF_MANY_STATES) // n_states, 1)
    n_sequences = len(offsets) - 1
    blocks: list[tuple[int, int]] = []
    first = 0
    while first < n_sequences:
        last = int(np.searchsorted(offsets, offsets[first] + n_steps, side="right")) - 1
        blocks.append((first, min(max(last, first + 1), n_sequences)))
        first = blocks[-1][1]
    return blocks


def effective_unseen(unseen: str, estimate: str) -> str:
    """Return the treatment of unseen levels: "new" is "missing" under an estimate without a prior."""
    return "missing" if unseen == "new" and not read_estimate(estimate).has_prior else unseen


def unseen_mass(counts: Counts) -> np.ndarray:
    """Return the probability of an unseen level in every state, by column (Good and Turing).

    It is the proportion of time steps whose level occurs only once, plus half a pseudo-count. The prior probability of
    one more level would be highest in the states with the fewest time steps.
    """
    once = np.where(np.abs(counts.pool_groups().table - 1) < 1e-6, counts.table, 0.0)  # expected counts are rounded
    n_once = counts.segments.sum(once)
    n_steps = counts.segments.sum(counts.table)
    mass: np.ndarray = (n_once + 0.5) / (n_steps + 1.0)
    return mass


def with_unseen_level(scorer: FactorScorer, mass: np.ndarray) -> FactorScorer:
    """Return emissions with one more level in every column, of the given probability; the others are unchanged."""
    table, segments = scorer.parameters
    columns = zip(segments.split(table), np.moveaxis(mass, -1, 0), strict=True)
    parts = [part for column, unseen in columns for part in (column, unseen[:, None])]
    sizes = Segments([int(size) + 1 for size in segments.sizes])
    return scorer._replace(parameters=LevelProbabilities(np.concatenate(parts, axis=-1), sizes))


def with_unseen_level_normalized(scorer: FactorScorer, mass: np.ndarray) -> FactorScorer:
    """Return `with_unseen_level` with the other probabilities multiplied by 1 − mass."""
    table, segments = scorer.parameters
    scaled = LevelProbabilities(table * segments.broadcast_to_cells(1 - mass), segments)
    return with_unseen_level(scorer._replace(parameters=scaled), mass)


def log_probabilities(parameters: LevelProbabilities | np.ndarray, default: float | np.ndarray = 0.0) -> np.ndarray:
    """Return the logarithms of probabilities; of `default` where they are undefined (NaN)."""
    table = np.asarray(parameters.table if isinstance(parameters, LevelProbabilities) else parameters)
    with np.errstate(divide="ignore"):
        return np.log(np.where(np.isnan(table), default, table))


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
