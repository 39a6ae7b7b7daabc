"""Parameters of a hidden Markov model as log probabilities, ready for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, map_to_known_levels, undefined_parameters
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.estimates import read_estimate
from tallybayes.kernels.hmm import HMMInput
from tallybayes.kernels.hmm_arguments import Emission
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution
from tallybayes.models.hmm.mixture_emissions import ComponentWeights
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.statistics.sufficient_statistics import take_or_zero
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor

UNSEEN = ("new", "missing", "smooth", "error")  # the values of `unseen=`

# Emission log probabilities are computed for blocks of sequences. A block of so many cells fits into the cache, and the
# allocator reuses its memory for the next block.
_CELLS = 1 << 18
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
        if (components := topology.components) is not None:
            weights = log_probabilities(parts["component"].point, 1 / components.most if uniform else 0.0)
            mixed = ComponentWeights(components, weights[components.exists])
        return cls(start, transition, end, scored, domains, unseen, mixed)

    def emission_scorer(self) -> Callable[[Table], tuple[Emission, Emission]]:
        """Return a function of a table: log p(step | state), and log p(step, component | state) with components.

        The first is an array (steps, states). For a single categorical column, it is a pair of its codes and a table
        (levels, states), which is faster. The codes are those of the input; the table is reordered to match them.
        """
        if self.is_coded:
            return self._coded
        log_weight = np.zeros(len(self.start)) if self.mixed is None else self.mixed.log_weight
        scorer = RowScorer(self.scored, log_weight, self.domains, self.unseen)

        def score(table: Table) -> tuple[Emission, Emission]:
            """Return log p(step | state), and log p(step, component | state)."""
            joint = np.ascontiguousarray(scorer.joint(table))
            return joint if self.mixed is None else self.mixed.marginalize(joint), joint

        return score

    @property
    def tables(self) -> dict[str, np.ndarray]:
        """The probabilities of initial states, transitions, ends and components (if modeled), by part."""
        tables = {"start": np.exp(self.start), "transition": np.exp(self.transition)}
        if self.end is not None:
            tables["end"] = np.exp(self.end)
        if self.mixed is not None:
            tables["component"] = self.mixed.components.counts(np.exp(self.mixed.log_weight)).table
        return tables

    @property
    def n_emission_groups(self) -> int:
        """The number of states or, with mixture emissions, of all components."""
        return len(self.start if self.mixed is None else self.mixed.log_weight)

    def component_proba(self, proba: np.ndarray) -> np.ndarray:
        """Return p(component) from p(state); p(state) itself without mixture emissions."""
        return proba if self.mixed is None else self.mixed.component_proba(proba)

    def component_posterior(self, joint: Emission, proba: np.ndarray) -> np.ndarray:
        """Return p(component | step) from p(state | step); p(state | step) itself without mixture emissions."""
        return proba if self.mixed is None else self.mixed.component_posterior(np.asarray(joint), proba)

    def _coded(self, table: Table) -> tuple[Emission, Emission]:
        """Return the codes of a single categorical column and log p(level | state) in their order, twice."""
        names = self.scored[0].factor.columns
        codes, (local,) = table.levels(names)
        column = np.asarray(codes.columns[0] if not isinstance(codes.columns, np.ndarray) else codes.columns[:, 0])
        log_prob = self.log_table()
        known = self.domains[0][0]
        if local is not known:
            log_prob = take_or_zero(log_prob, 0, map_to_known_levels(column, local, known, names[0], self.unseen))
        return (column, log_prob), (column, log_prob)

    def kernel_inputs(self, sequences: Sequences) -> Iterator[HMMInput]:
        """Yield the input of the kernels, by block of sequences."""
        return (block.inputs for block in self.blocks(sequences))

    def blocks(self, sequences: Sequences, known: np.ndarray | None = None) -> Iterator[SequenceBlock]:
        """Yield all sequences in blocks, with the input of the kernels.

        Parameters
        ----------
        sequences : Sequences
        known : ndarray of int of shape (steps,), optional
            The index of the known state of each time step, −1 if it is unknown. All other states get probability 0.
        """
        table = sequences.table
        offsets = sequences.offsets
        start, transition, end = self.arguments
        if not table.n_rows:
            inputs = HMMInput(start, transition, end, np.zeros((0, len(start))), offsets)
            no_joint = np.zeros((0, self.n_emission_groups))
            yield SequenceBlock(slice(0, sequences.n_sequences), table, inputs, no_joint)
            return
        scorer = self.emission_scorer()
        if self.is_coded and known is None:  # needs no memory by state
            blocks = [(0, sequences.n_sequences)]
        else:
            blocks = blocks_of_sequences(offsets, self.n_emission_groups)
        for part in self.scored if len(blocks) > 1 else ():
            if part.family.cell_type == "codes":
                table.levels(part.factor.columns)  # encode once, with one type for all blocks
        for first, last in blocks:
            steps = slice(int(offsets[first]), int(offsets[last]))
            rows = table if len(blocks) == 1 else table.rows(steps)
            try:
                emission, joint = scorer(rows)
            except DataError:
                scorer(table)  # so that the message has the row number of the whole table
                raise
            if known is not None:
                emission = clamp(emission, known[steps])
            moves = sequences.moves(transition, steps.start, steps.stop)
            inputs = HMMInput(start, moves, end, emission, offsets[first : last + 1] - steps.start)
            yield SequenceBlock(slice(first, last), rows, inputs, joint)

    def states_ahead(self, filtered: np.ndarray, n: int) -> np.ndarray:
        """Return p(state) of the `n` time steps after the last one, given that the sequence continues: (n, states).

        Parameters
        ----------
        filtered : ndarray of shape (steps, states)
            p(state | observations so far) of every step of a sequence.
        n : int
        """
        transition = np.exp(self.transition)
        proba = filtered[-1] @ transition if len(filtered) else np.exp(self.start)
        ahead = np.empty((n, len(proba)))
        for step in range(n):
            ahead[step] = proba
            proba = proba @ transition
        return ahead

    def check_defined(self, topology: Topology, estimate: str) -> None:
        """Raise DataError if a state or component has no data for a column."""
        for code, column in chain.from_iterable(map(undefined_parameters, self.scored)):
            raise DataError.no_data(f"column {column!r} in {topology.group_name(code)}", estimate)

    def with_scored(self, scored: list[FactorScorer]) -> HMMParameters:
        """Return the parameters with other emissions."""
        return self._replace(scored=scored)

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


class SequenceBlock(NamedTuple):
    """Consecutive sequences whose emission probabilities are computed at once.

    Attributes
    ----------
    sequences : slice
    table : Table
        The time steps of the sequences.
    inputs : HMMInput
    joint : Emission
        log p(step, component | state) with mixture emissions, otherwise log p(step | state).
    """

    sequences: slice
    table: Table
    inputs: HMMInput
    joint: Emission


def is_coded(emissions: Sequence[Factor]) -> bool:
    """Return whether a time step is a single categorical column."""
    return len(emissions) == 1 and emissions[0].family.cell_type == "codes" and len(emissions[0].columns) == 1


def dense(emission: Emission) -> np.ndarray:
    """Return log p(step | state) as an array of shape (steps, states)."""
    if not isinstance(emission, tuple):
        return np.asarray(emission)
    codes, table = map(np.asarray, emission)
    known = (codes >= 0) & (codes < len(table))
    out = np.zeros((len(codes), table.shape[1]))
    out[known] = table[codes[known].astype(np.intp)]
    return out


def clamp(emission: Emission, codes: np.ndarray) -> Emission:
    """Return emission log probabilities with −inf for all states other than the known one; −1 is unknown."""
    known = np.flatnonzero(codes >= 0)
    if not len(known):
        return emission
    log_prob = dense(emission)
    clamped = np.array(log_prob)
    clamped[known] = -np.inf
    clamped[known, codes[known]] = log_prob[known, codes[known]]
    return clamped


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
    extended = np.insert(table, segments.offsets[1:], mass, axis=-1)  # at the end of every column
    return scorer.with_parameters(LevelProbabilities(extended, Segments(segments.sizes + 1)))


def with_unseen_level_normalized(scorer: FactorScorer, mass: np.ndarray) -> FactorScorer:
    """Return `with_unseen_level` with the other probabilities multiplied by 1 − mass."""
    table, segments = scorer.parameters
    scaled = LevelProbabilities(table * segments.broadcast_to_cells(1 - mass), segments)
    return with_unseen_level(scorer.with_parameters(scaled), mass)


def log_probabilities(parameters: LevelProbabilities | np.ndarray, default: float | np.ndarray = 0.0) -> np.ndarray:
    """Return the logarithms of probabilities; of `default` where they are undefined (NaN)."""
    table = np.asarray(parameters.table if isinstance(parameters, LevelProbabilities) else parameters)
    with np.errstate(divide="ignore"):
        return np.log(np.where(np.isnan(table), default, table))
