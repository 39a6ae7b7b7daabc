"""Baum-Welch: EM for hidden Markov models with unknown or partly known states (Baum et al. 1970)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.counting import check_size
from tallybayes.data.table import Table
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_loop import EMSummary, warn_unless_converged
from tallybayes.estimation.em.em_objective import EMObjective, with_constant_columns
from tallybayes.estimation.em.soft_counts import SoftCounter, expand_text
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, undefined_parameters
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.families.protocols.em_support import columnwise_statistics
from tallybayes.kernels import hmm as kernels
from tallybayes.kernels.hmm import HMMInput
from tallybayes.kernels.hmm_arguments import Emission
from tallybayes.models.hmm.factor_names import state_schema
from tallybayes.models.hmm.fitting import hmm_init
from tallybayes.models.hmm.fitting.stationary_mle import stationary_mle
from tallybayes.models.hmm.fitting.training_sequences import TrainingSequences
from tallybayes.models.hmm.hmm_criteria import entropy_of_states
from tallybayes.models.hmm.hmm_parameters import (
    HMMParameters,
    blocks_of_sequences,
    is_coded,
    read_prior,
)
from tallybayes.models.hmm.mixture_emissions import component_domain
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.column_priors import prior_in_groups
from tallybayes.models.inputs.labels import new_names
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.totals import Totals
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

# The expected statistics of initial states, transitions, ends and components (if modeled), then of the emissions.
Expected = list[Any]


def fit_baum_welch(
    model: HiddenMarkovModel, data: TrainingSequences, n_states: int, initial: HiddenMarkovModel | None
) -> tuple[Tally, EMSummary]:
    """Run EM from several initializations, or from an initial model; return the expected tally and the summary.

    Parameters
    ----------
    n_states : int
        The number of states: the known ones of `data`, and unnamed ones.
    """
    names = data.names
    transitions = Factor(names["to"], (names["from"],), Categorical())
    hint = "Pass a smaller n_states."
    name = type(model).__name__
    check_size(transitions, n_states, n_states, model=name, scored=transitions.family, copies=3, hint=hint)
    known = list(data.states.levels)
    states = Domain([*known, *new_names(known, n_states - len(known))], names["state"], is_sorted=True)
    topology = Topology.of(model, states.levels, complete=True)
    codes = np.full(int(data.sequences.offsets[-1]), -1)
    if data.codes is not None:
        codes = np.append(states.positions_of(known), -1)[data.codes].astype(np.int64)
        topology.check_steps(codes, data.sequences.offsets, data.sequences.gaps)
    if not data.emissions:
        raise DataError("X has no columns to fit; expected at least 1.")
    if not len(codes):
        raise DataError("X has 0 time steps; expected at least 1.")
    em = BaumWelch(model, data, codes, states, topology)
    em.check_possible()
    starts: Iterable[Callable[[], Any]]
    if initial is None:
        starts = hmm_init.initial_statistics(em, np.random.default_rng(model.random_state))
    else:
        starts = [partial(hmm_init.initial_parameters, em, initial)]
    best, summary = em.objective.run_restarts(em, starts)
    warn_unless_converged(summary)
    entropy = entropy_of_states(best.parameters, best.expected, best.log_likelihood)
    return em.tally(best.expected), summary._replace(entropy=entropy)


class BaumWelch:
    """E-step and M-step of a model on its training sequences.

    Parameters
    ----------
    model : HiddenMarkovModel
        Its parameters of estimation and EM are used.
    data : TrainingSequences
    codes : ndarray of int of shape (steps,)
        The index of the state of each time step, −1 if it is unknown.
    states : Domain
    topology : Topology

    Attributes
    ----------
    sequences : Sequences
        With the word counts of text columns.
    weight, step_weight : ndarray
        The weights of sequences and of time steps.
    parts, emissions : list of Factor
        The factors of initial states, transitions, ends and components (if modeled); the emission factors.
    objective : EMObjective
    counter : SoftCounter
    is_clamped : bool
        Whether some states are known.
    start_log_prior : float
        The log prior of the initial model.
    """

    def __init__(
        self, model: HiddenMarkovModel, data: TrainingSequences, codes: np.ndarray, states: Domain, topology: Topology
    ) -> None:
        table, self.emissions, self.words = expand_text(data.sequences.table, data.emissions)
        self.model = model
        self.sequences = data.sequences._replace(table=table)
        self.codes = codes
        self.states = states
        self.n_states = len(states.levels)
        self.names = data.names
        self.topology = topology
        self.components = topology.components
        self.weight = np.ones(self.sequences.n_sequences) if data.weight is None else data.weight
        self.step_weight = np.repeat(self.weight, self.sequences.lengths)
        self.parts = self._part_factors()
        self._counted_factors = [*self.parts, *data.emissions]  # columns of text before expansion
        factors = topology.reduce_factors([*self.parts, *self.emissions])
        self.objective = EMObjective(model, factors, float(self.step_weight.sum()), "Baum-Welch")
        self.counter = SoftCounter(self.emissions, self.sequences.table, len(topology.emitting))
        self.priors_fixed = False
        self.start_log_prior = 0.0
        self.is_clamped = bool((codes >= 0).any())
        self.transition: np.ndarray | None = None  # the previous estimate, under start="stationary"
        self.level_codes = self._level_codes() if is_coded(self.emissions) and self.components is None else None
        # Coded emissions need no memory by state, so that all sequences are one block, unless some states are known.
        single_block = self.level_codes is not None and not self.is_clamped
        all_sequences = [(0, self.sequences.n_sequences)]
        self.blocks = (
            all_sequences if single_block else blocks_of_sequences(self.sequences.offsets, self.counter.n_groups)
        )

    def _part_factors(self) -> list[Factor]:
        """Return the factors of initial states, transitions, ends and components."""
        names = self.names
        state = (names["state"],)
        parts = [Factor(names["start"], (), Categorical()), Factor(names["to"], (names["from"],), Categorical())]
        parts += [Factor(names["end"], state, Bernoulli())] if self.topology.ends else []
        parts += [] if self.components is None else [Factor(names["component"], state, Categorical())]
        return parts

    def _level_codes(self) -> np.ndarray:
        """Return the codes of a single categorical column, in the smallest integer type."""
        codes = self.counter.cells(self.sequences.table, 0)[:, 0]
        return codes.astype(np.min_scalar_type(-self.n_levels - 1))

    @property
    def n_levels(self) -> int:
        """The number of levels of a single categorical column."""
        return len(self.counter.level_domains(0)[0].levels)

    def fix_priors(self, statistics: Expected) -> None:
        """Resolve the priors from these statistics, for all initializations and iterations."""
        self.priors_fixed = True
        by_part = read_prior(self.model.prior, components=self.components is not None)
        priors = [table.reduce_prior(by_part[part]) for part, table in self.topology.tables.items()]
        priors += [prior_in_groups(by_part["emission"], factor, self.model.estimate) for factor in self.emissions]
        self.objective.fix_priors(self.topology.reduce_statistics(statistics), priors)

    def columnwise(self, expected: Expected) -> Expected:
        """Return the statistics without products of columns, from which priors are resolved."""
        factors = [*self.parts, *self.emissions]
        return [columnwise_statistics(f.family, statistics) for f, statistics in zip(factors, expected, strict=True)]

    # ---- M-step -----------------------------------------------------------------------------------------------------

    def maximize(self, expected: Expected | HMMParameters) -> tuple[HMMParameters, float]:
        """Return the most probable parameters for expected statistics, and their log prior (M-step).

        The parameters of an initial model are returned unchanged.
        """
        if isinstance(expected, HMMParameters):
            return expected, self.start_log_prior
        topology = self.topology
        reduced = topology.reduce_statistics(expected)
        stationary_step = {0: partial(self._maximize_stationary, expected[0].table)} if topology.stationary else {}
        groups = [topology.groups] * len(reduced)
        scorers, log_prior = self.objective.maximize(reduced, groups, otherwise=stationary_step)
        scorers = topology.expand_parameters(scorers)
        parts = dict(zip(topology.tables, scorers, strict=False))
        emissions = scorers[len(parts) :]
        for code, column in chain.from_iterable(map(undefined_parameters, emissions)):
            raise DataError.no_data(f"column {column!r} in {topology.group_name(code)}", self.model.estimate)
        # A state without data has uniform transitions and components, and never ends.
        emissions = self.with_all_columns(emissions)
        parameters = HMMParameters.from_parts(topology, parts, emissions, self.domains, "missing", uniform=True)
        return parameters, log_prior

    @cached_property
    def domains(self) -> list[list[Domain]]:
        """The levels of the categorical columns of every emission."""
        return [self.counter.level_domains(number) for number in range(len(self.emissions))]

    def with_all_columns(self, emissions: list[FactorScorer]) -> list[FactorScorer]:
        """Return emission parameters with the constant columns, of variance 1."""
        return [with_constant_columns(part, like) for part, like in zip(emissions, self.counter.like, strict=True)]

    def _maximize_stationary(self, start_counts: np.ndarray, posterior: Counts | Dirichlet) -> LevelProbabilities:
        """Return the most probable transitions under start="stationary"; never worse than the previous ones.

        Without a prior, `posterior` is the counts.
        """
        counts = posterior.table if isinstance(posterior, Counts) else np.maximum(posterior.concentration - 1, 0.0)
        allowed = self.topology.allowed
        transition_counts = self.topology.tables["transition"].expand(counts)
        self.transition = stationary_mle(start_counts, transition_counts, allowed, self.transition)
        if allowed is None:
            return LevelProbabilities(self.transition, Segments([self.n_states]))
        return LevelProbabilities(self.transition[allowed], Segments(allowed.sum(axis=1)))

    # ---- E-step -----------------------------------------------------------------------------------------------------

    def expect(self, parameters: HMMParameters) -> tuple[Expected, float]:
        """Return the expected statistics of all sequences, and their log-likelihood (E-step).

        Sequences of probability 0 are ignored.
        """
        log_likelihood = 0.0
        total: Expected | None = None
        mixed = parameters.mixed
        scorer = parameters.emission_scorer() if mixed is None else parameters.joint()
        log_table = np.zeros(0) if self.level_codes is None else parameters.log_table()
        start, transition, end = parameters.arguments
        for first, last in self.blocks:
            steps, offsets, table = self._block(first, last)
            joint: Any = scorer(table) if self.level_codes is None else (self.level_codes[steps], log_table)
            emission = joint if mixed is None else mixed.marginalize(joint)
            if self.is_clamped:
                emission = self._clamp(emission, self.codes[steps])
            weight = self.weight[first:last]
            moves = self.sequences.moves(transition, steps.start, steps.stop)
            counts = kernels.expected(HMMInput(start, moves, end, emission, offsets), weight)
            possible = np.isfinite(counts.log_likelihood)
            log_likelihood += float(weight[possible] @ counts.log_likelihood[possible])
            if isinstance(emission, tuple):  # the kernel has counted the levels
                statistics: list[Any] = [Counts(counts.emission.T, (len(counts.emission),))]
            else:
                proba = counts.emission if mixed is None else mixed.component_posterior(joint, counts.emission)
                emitted, _ = self.counter.count_soft(table, proba, parameters.scored)
                statistics = [*self.component_statistics(proba), *emitted]
            goes_on = counts.transition.sum(axis=1)
            expected = [*self.chain_statistics(counts.start, counts.transition, goes_on, counts.end), *statistics]
            total = expected if total is None else [a + b for a, b in zip(total, expected, strict=True)]
        assert total is not None
        return total, log_likelihood

    def chain_statistics(
        self, start: np.ndarray, transition: np.ndarray, goes_on: np.ndarray, ends: np.ndarray
    ) -> Expected:
        """Return the statistics of initial states, transitions and, if modeled, ends."""
        trials = Totals((goes_on + ends)[:, None], ends[:, None], failures=goes_on[:, None])
        sizes = (self.n_states,)
        return [Counts(start, sizes), Counts(transition, sizes), trials][: 2 + self.topology.ends]

    def component_statistics(self, proba: np.ndarray) -> Expected:
        """Return the statistics of mixture components, given their responsibilities; empty without components."""
        return [] if self.components is None else [self.components.counts(proba.sum(axis=0))]

    def _block(self, first: int, last: int) -> tuple[slice, np.ndarray, Table]:
        """Return the time steps of a range of sequences: their positions, offsets and rows."""
        offsets = self.sequences.offsets[first : last + 1]
        steps = slice(int(offsets[0]), int(offsets[-1]))
        return steps, offsets - offsets[0], self.sequences.table.rows(steps)

    def _clamp(self, emission: Emission, codes: np.ndarray) -> Emission:
        """Return emission log probabilities with −inf for all states other than the known one."""
        known = np.flatnonzero(codes >= 0)
        if not len(known):
            return emission
        if isinstance(emission, tuple):
            levels, table = map(np.asarray, emission)
            emission = np.where(levels[:, None] < 0, 0.0, table[np.maximum(levels, 0)])
        emission = emission.copy()
        kept = emission[known, codes[known]]
        emission[known] = -np.inf
        emission[known, codes[known]] = kept
        return emission

    def check_possible(self) -> None:
        """Raise DataError if no allowed path connects the known states of a sequence."""
        topology = self.topology
        if not self.is_clamped or (topology.starts is None and topology.allowed is None):
            return
        n = self.n_states
        with np.errstate(divide="ignore"):
            start = np.log(np.ones(n) if topology.starts is None else topology.starts)
            transition = np.log(np.ones((n, n)) if topology.allowed is None else topology.allowed)
        emission = self._clamp(np.zeros((len(self.codes), n)), self.codes)
        moves = self.sequences.moves(transition)
        log_prob = kernels.log_likelihood(HMMInput(start, moves, None, emission, self.sequences.offsets))
        impossible = np.flatnonzero(np.isneginf(log_prob))
        if len(impossible):
            raise DataError(
                f"sequence {impossible[0]} is impossible: allowed_transitions and start have no path through its known "
                "states.\n    Check these states, or allow more transitions."
            )

    # ---- Result -----------------------------------------------------------------------------------------------------

    def tally(self, expected: Expected) -> Tally:
        """Return the expected statistics as a soft tally, from which sequences cannot be forgotten; ends are last."""
        n_parts = len(self.parts)
        statistics = list(expected)
        domains = {**self.counter.domains, **self.words, self.names["state"]: self.states}
        if self.components is not None:
            name = self.names["component"]
            statistics[n_parts:] = [self.components.unflatten_components(part) for part in expected[n_parts:]]
            domains[name] = component_domain(name, self.components.most)
        order = [0, 1, *range(n_parts, len(expected)), *reversed(range(2, n_parts))]
        factors = [self._counted_factors[k] for k in order]
        return Tally(factors, [statistics[k] for k in order], domains, state_schema(self.names), soft=True)
