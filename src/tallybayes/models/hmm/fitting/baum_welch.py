"""Baum-Welch: EM for hidden Markov models with unknown or partly known states (Baum et al. 1970)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_loop import EMSummary, warn_unless_converged
from tallybayes.estimation.em.em_objective import (
    EMObjective,
    varying_columns,
    with_constant_columns,
    without_columns,
)
from tallybayes.estimation.em.soft_counts import SoftCounter, expand_text
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.protocols.em_support import columnwise_statistics
from tallybayes.kernels import hmm as kernels
from tallybayes.kernels.hmm import HMMInput
from tallybayes.models.hmm.chain_names import in_tally_order
from tallybayes.models.hmm.fitting import hmm_init
from tallybayes.models.hmm.fitting.stationary_mle import stationary_mle
from tallybayes.models.hmm.fitting.training_sequences import TrainingSequences, chain_statistics, sampled_sequences
from tallybayes.models.hmm.hmm_options import TopologyOptions
from tallybayes.models.hmm.hmm_parameters import HMMParameters, SequenceBlock, clamp, is_coded
from tallybayes.models.hmm.mixture_emissions import component_domain
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

# The expected statistics of initial states, transitions, ends and components (if modeled), then of the emissions.
Expected = list[Any]
# EM starts from expected statistics, or from parameters.
Start = Expected | HMMParameters


def fit_baum_welch(
    model: HiddenMarkovModel, options: TopologyOptions, data: TrainingSequences, initial: EstimatedHMM | None
) -> tuple[Tally, EMSummary]:
    """Run EM from several initializations, or from an initial model; return the expected tally and the summary.

    Parameters
    ----------
    model : HiddenMarkovModel
        Its parameters of estimation and of EM are used.
    options : TopologyOptions
    data : TrainingSequences
        Its states are the known ones and unnamed ones.
    initial : EstimatedHMM, optional
    """
    topology = Topology.of(options, data.states.levels, complete=True)
    topology.check_steps(data.codes, data.sequences)
    if not data.emissions:
        raise DataError("X has no columns to fit; expected at least 1.")
    if not len(data.codes):
        raise DataError("X has 0 time steps; expected at least 1.")
    em = BaumWelch(model, data, topology)
    em.check_possible()
    starts: Iterable[Callable[[], Any]]
    if initial is None:
        starts = hmm_init.initial_statistics(em, random_generator(model.random_state))
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
    topology : Topology

    Attributes
    ----------
    sequences : Sequences
        From which EM is initialized: all, or a sample if none has known states. With codes of the levels of categorical
        columns, and the word counts of text columns.
    codes : ndarray of int of shape (steps,)
        The index of the state of each of their time steps, −1 if it is unknown.
    is_clamped : bool
        Whether some states are known.
    weight, step_weight : ndarray
        The weights of these sequences and of their time steps.
    scale : float
        The weight of all sequences relative to these.
    parts, emissions : list of Factor
        The factors of initial states, transitions, ends and components (if modeled); the emission factors.
    objective : EMObjective
    counter : SoftCounter
    domains : list of lists of Domain
        The levels of the categorical columns of every emission.
    is_coded : bool
        Whether a time step is a single categorical column.
    start_log_prior : float
        The log prior of the initial model.
    """

    def __init__(self, model: HiddenMarkovModel, data: TrainingSequences, topology: Topology) -> None:
        table, self.emissions, self.words = expand_text(data.sequences.table, data.emissions)
        self.model = model
        self.data = data
        self.topology = topology
        self.components = topology.components
        self.is_clamped = bool((data.codes >= 0).any())
        self.n_states = len(topology.states)
        self.parts = data.names.factors(ends=topology.ends)
        factors = [*self.parts, *self.emissions][topology.stationary :]
        self.counter = SoftCounter(self.emissions, table, len(topology.emitting), data.pooled)
        self.domains = [self.counter.level_domains(number) for number in range(len(self.emissions))]
        self.everything = self.sequences = data.sequences.with_table(self.counter.table)
        self.codes, self.weight = data.codes, data.sequence_weight
        if not self.is_clamped and len(chosen := sampled_sequences(self.sequences.lengths)) < len(self.weight):
            steps, self.sequences = self.sequences.some(chosen)
            self.codes, self.weight = data.codes[steps], self.weight[chosen]
        self.step_weight = np.repeat(self.weight, self.sequences.lengths)
        total = float(data.step_weight.sum() if data.stored is None else data.stored.lengths.sum())
        self.scale = total / float(self.step_weight.sum())
        self.objective = EMObjective(model, factors, total, "Baum-Welch")
        self.is_coded = is_coded(self.emissions) and self.components is None
        self.priors_fixed = False
        self.start_log_prior = 0.0
        self.transition: np.ndarray | None = None  # the previous estimate, under start="stationary"

    def fix_priors(self, statistics: Expected) -> None:
        """Resolve the priors from these statistics, for all initializations and iterations.

        Products of columns are not used.
        """
        self.priors_fixed = True
        priors = self.topology.reduce_priors(self.model.prior, self.emissions, self.model.estimate)
        self.objective.fix_priors(self.reduced_columnwise(statistics), priors)

    def reduced_columnwise(self, expected: Expected) -> Expected:
        """Return the statistics of the estimated factors without products of columns."""
        families = [factor.family for factor in (*self.parts, *self.emissions)]
        columnwise = [columnwise_statistics(family, part) for family, part in zip(families, expected, strict=True)]
        return self.topology.reduce_statistics(columnwise)

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
        emissions = self.with_all_columns(scorers[len(parts) :])
        # A state without data has uniform transitions and components, and never ends.
        parameters = HMMParameters.from_parts(topology, parts, emissions, self.domains, "missing", uniform=True)
        parameters.check_defined(topology, self.model.estimate)
        return parameters, log_prior

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
        total: Expected = []
        known = self.codes if self.is_clamped else None
        for sequences, weights in self._training_data():
            for block in parameters.blocks(sequences, known):
                expected, log_prob = self._expect_block(parameters, block, weights[block.sequences])
                log_likelihood += log_prob
                total = [a + b for a, b in zip(total, expected, strict=True)] if total else expected
        return total, log_likelihood

    def _training_data(self) -> Iterator[tuple[Sequences, np.ndarray]]:
        """Yield all sequences and their weights, in blocks if they are in a file."""
        if self.data.stored is None:
            yield self.everything, self.data.sequence_weight
            return
        for sequences in self.data.stored:
            yield sequences.with_table(self.counter.recoded(sequences.table)), np.ones(sequences.n_sequences)

    def _expect_block(
        self, parameters: HMMParameters, block: SequenceBlock, weight: np.ndarray
    ) -> tuple[Expected, float]:
        """Return the expected statistics and the log-likelihood of a block of sequences."""
        counts = kernels.expected(block.inputs, weight)
        possible = np.isfinite(counts.log_likelihood)
        log_likelihood = float(weight[possible] @ counts.log_likelihood[possible])
        goes_on = counts.transition.sum(axis=1)
        chain = chain_statistics(counts.start, counts.transition, goes_on, counts.end, ends=self.topology.ends)
        if isinstance(block.inputs.emission, tuple):  # the kernel has counted the levels
            return [*chain, Counts(counts.emission.T)], log_likelihood
        proba = parameters.component_posterior(block.joint, counts.emission)
        emitted, _ = self.counter.count_soft(block.table, proba, parameters.scored)
        components = [] if self.components is None else [self.components.counts(proba.sum(axis=0))]
        return [*chain, *components, *emitted], log_likelihood

    def check_possible(self) -> None:
        """Raise DataError if no allowed path connects the known states of a sequence."""
        topology = self.topology
        if not self.is_clamped or not topology.restricts_paths:
            return
        with np.errstate(divide="ignore"):
            start, transition = np.log(topology.may_start), np.log(topology.may_follow)
        emission = clamp(np.zeros((len(self.codes), self.n_states)), self.codes)
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
        """Return the expected statistics as a soft tally, from which sequences cannot be forgotten."""
        n_parts = len(self.parts)
        names = self.data.names
        domains = {**self.counter.domains, **self.words, names.state: self.data.states}
        statistics = list(expected)
        if self.components is not None and names.component is not None:
            statistics[n_parts:] = [self.components.unflatten_components(part) for part in expected[n_parts:]]
            domains[names.component] = component_domain(names.component, self.components.most)
        factors = [*self.parts, *self.data.emissions]  # columns of text before expansion
        tally = Tally(factors, statistics, domains, names.schema, soft=True)
        return in_tally_order(tally, n_parts)


def entropy_of_states(parameters: HMMParameters, expected: Sequence[Any], log_likelihood: float) -> float:
    """Return the entropy of the unobserved states and cells given the sequences, in nats.

    With q = p(unobserved | sequences), the entropy is log p(sequences) − E_q[log p(all)]. The expectation is a function
    of the expected statistics.

    Parameters
    ----------
    expected : sequence of Statistics
        Of initial states, transitions, ends and components (if modeled), then of the emissions.
    """
    start, transition, end = parameters.arguments
    total = _expected_log(expected[0].table, start) + _expected_log(expected[1].table, transition)
    if end is not None:
        total += _expected_log(expected[2].total[:, 0], end)
    n_parts = len(expected) - len(parameters.scored)
    if parameters.mixed is not None:
        components, log_weight = parameters.mixed
        total += _expected_log(expected[n_parts - 1].table[components.exists], log_weight)
    for scorer, statistics in zip(parameters.scored, expected[n_parts:], strict=True):
        varying = varying_columns(statistics, scorer.constant)
        if varying.n_columns:
            point = without_columns(scorer, scorer.constant).parameters
            total += float(np.sum(scorer.family.log_likelihood(point, varying)))
    return max(log_likelihood - total, 0.0)


def _expected_log(counts: np.ndarray, log_prob: np.ndarray) -> float:
    """Return Σ n log p, with 0 · log 0 = 0."""
    positive = counts > 0
    return float(counts[positive] @ log_prob[positive])
