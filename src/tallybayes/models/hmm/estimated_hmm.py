"""EstimatedHMM: the parameters of a hidden Markov model, estimated from its tally."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import xlogy

from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, NoCountsError
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family, take_groups
from tallybayes.families.protocols.degenerate_estimates import add_unit_variance
from tallybayes.models.hmm.chain_names import ChainNames
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution, stationary_mle
from tallybayes.models.hmm.hmm_parameters import (
    HMMParameters,
    effective_unseen,
    unseen_mass,
    with_unseen_level,
    with_unseen_level_normalized,
)
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inspection.labeled_parameters import UNSEEN, LabeledFactor
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.totals import Totals
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Priors

if TYPE_CHECKING:
    from tallybayes.models.inspection.column_names import ColumnNames

Pair = tuple[Factor, Any]  # a factor with its sufficient statistics
EmissionStatistics = Counts | Totals | Moments


@dataclass(frozen=True, eq=False)
class EstimatedEmission:
    """The estimate of one emission factor.

    Parameters
    ----------
    scorer : FactorScorer
        Its parameters in every state or component.
    domains : list of Domain
        The levels of its categorical columns.
    statistics : Statistics
    is_text : bool
        Whether the column has text, counted as words.
    """

    scorer: FactorScorer
    domains: list[Domain]
    statistics: EmissionStatistics
    is_text: bool

    @property
    def columns(self) -> tuple[Name, ...]:
        """The names of the columns."""
        return self.scorer.factor.columns

    @property
    def family(self) -> Family:
        """The family of the columns."""
        return self.scorer.family

    @property
    def is_coded(self) -> bool:
        """Whether the columns are categorical."""
        return self.family.cell_type == "codes"

    def level_tables(self) -> Iterator[tuple[Name, Domain, np.ndarray]]:
        """Yield every categorical column with its levels and their probabilities, (groups, levels)."""
        if self.is_coded:
            tables = self.scorer.parameters.segments.split(self.scorer.parameters.table)
            yield from zip(self.columns, self.domains, tables, strict=True)


@dataclass(frozen=True, eq=False)
class EstimatedHMM:
    """The estimates of a hidden Markov model: a frozen value; every attribute is computed at first use.

    Parameters
    ----------
    tally : Tally
        The sufficient statistics, with columns of text as word counts.
    names : ChainNames
    topology : Topology
    estimate, prior, unseen
        Parameters of `HiddenMarkovModel`.
    given : tuple, optional
        Fixed (user-specified) parameters, one for every factor of the tally.
    text_columns : frozenset
        The columns of text.
    estimated : EstimatedFactors, optional
        The estimated factors, if the priors are not resolved from the tally.
    """

    tally: Tally
    names: ChainNames
    topology: Topology
    estimate: str
    prior: Priors
    unseen: str
    given: tuple[Any, ...] | None = None
    text_columns: frozenset[Name] = frozenset()
    estimated: EstimatedFactors | None = None

    # ---- Factors ----------------------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> Domain:
        """The states, sorted."""
        return self.tally.domain(self.names.state)

    @cached_property
    def state_labels(self) -> np.ndarray:
        """The states as an array."""
        return labels_of(self.states.levels, None)

    @property
    def parts(self) -> list[str]:
        """The names of the estimated factors before the emissions."""
        return list(self.topology.tables)

    @cached_property
    def chain_factors(self) -> list[Factor]:
        """The factors before the emissions: initial states, transitions, ends and components (if modeled)."""
        return self.names.factors(ends=self.topology.ends)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The `chain_factors`, then the emissions: factors with their statistics."""
        by_columns = {pair[0].columns: pair for pair in zip(self.tally.factors, self.tally.statistics, strict=True)}
        first = [by_columns.pop(factor.columns) for factor in self.chain_factors]
        emissions = [pair for pair in by_columns.values() if pair[0].given[:1] == (self.names.state,)]
        components = self.topology.components
        if components is not None:
            emissions = [(factor, components.flatten_components(statistics)) for factor, statistics in emissions]
        return first + emissions

    @property
    def emissions(self) -> list[Pair]:
        """The emission factors with their statistics."""
        return self.pairs[len(self.chain_factors) :]

    @cached_property
    def emission_factors(self) -> list[Factor]:
        """The emission factors."""
        return [factor for factor, _ in self.emissions]

    def words(self, column: Name) -> list[str]:
        """Return the words of a column of text."""
        domain = self.tally.domains.get(self.tally.schema.domain(column))
        return [] if domain is None else list(domain.levels)

    @cached_property
    def reduced_pairs(self) -> list[Pair]:
        """The factors as they are estimated: allowed transitions only, tied states merged."""
        factors, statistics = zip(*self.pairs, strict=True)
        reduced = zip(factors[self.topology.stationary :], self.topology.reduce_statistics(statistics), strict=True)
        return list(reduced)

    @property
    def _state_statistics(self) -> list[Any]:
        """The statistics of every emission in every state, tied states merged."""
        statistics = [counted for _, counted in self.reduced_pairs[len(self.parts) :]]
        tied = self.topology.tied
        return statistics if tied is None else [counted.take(0, tied) for counted in statistics]

    # ---- Estimates --------------------------------------------------------------------------------------------------

    @cached_property
    def fitted(self) -> EstimatedFactors:
        """The estimated factors. Under "bayes" they use posterior means: sequences have no closed predictive."""
        topology = self.topology
        if self.estimated is not None:
            return self.estimated
        if self.given is not None:
            fixed = [scorer.parameters for scorer in topology.reduce_parameters(self.given_scorers)]
            return EstimatedFactors.from_fixed_parameters(self.reduced_pairs, fixed, topology.emitting)
        priors = topology.reduce_priors(self.prior, self.emission_factors, self.estimate, self._levels_of)
        return EstimatedFactors(self.reduced_pairs, priors, self.estimate, groups=topology.groups, plug_in=True)

    def _levels_of(self, name: Name) -> Sequence[Any]:
        """Return the levels of a categorical column."""
        return self.tally.domains[str(name)].levels

    @property
    def given_scorers(self) -> list[FactorScorer]:
        """The fixed parameters in the order of `pairs`, with mixture components in one axis."""
        by_columns = dict(zip((factor.columns for factor in self.tally.factors), self.given or (), strict=True))
        scorers = [FactorScorer(factor, by_columns[factor.columns]) for factor, _ in self.pairs]
        n_parts = len(self.chain_factors)
        components = self.topology.components
        if components is None:
            return scorers
        position = (components.owner, components.number)
        emissions = [scorer.with_parameters(take_groups(scorer.parameters, position)) for scorer in scorers[n_parts:]]
        return scorers[:n_parts] + emissions

    @cached_property
    def part_scorers(self) -> dict[str, FactorScorer]:
        """The estimates of the parts before the emissions, over all states and transitions."""
        return dict(zip(self.parts, self._expanded, strict=False))

    @cached_property
    def scored(self) -> list[FactorScorer]:
        """The emissions of every state, without unseen levels."""
        return self._expanded[len(self.parts) :]

    @cached_property
    def domains(self) -> list[list[Domain]]:
        """The levels of the categorical columns of every emission."""
        return [[self.tally.domains[str(name)] for name in factor.level_columns] for factor in self.emission_factors]

    @cached_property
    def estimated_emissions(self) -> list[EstimatedEmission]:
        """The emissions of every state, with their levels and statistics."""
        statistics = [counted for _, counted in self.emissions]
        return [
            EstimatedEmission(scorer, domains, counted, scorer.factor.columns[0] in self.text_columns)
            for scorer, domains, counted in zip(self.scored, self.domains, statistics, strict=True)
        ]

    @cached_property
    def _expanded(self) -> list[FactorScorer]:
        """The estimates of all factors, over all states and transitions."""
        return self._expand_to_states(self.fitted.checked_scorers)

    def _expand_to_states(self, scorers: list[FactorScorer]) -> list[FactorScorer]:
        """Return the estimates over all states and transitions."""
        expanded = self.topology.expand_parameters(scorers)
        if self.topology.stationary:
            expanded[0] = expanded[0].with_parameters(self._stationary_transitions)
        return expanded

    @cached_property
    def _stationary_transitions(self) -> LevelProbabilities:
        """The transition matrix under start='stationary'."""
        self.topology.check_irreducible()
        if not self.states.levels:
            return LevelProbabilities(np.zeros((0, 0)), Segments([0]))
        counts = self.reduced_pairs[0][1].table
        if self.fitted.has_prior:
            posterior = self.fitted.posterior(0)
            counts = np.maximum(posterior.concentration - read_estimate(self.estimate).takes_mode, 0.0)
        return self._stationary_mle(counts)

    def _stationary_mle(self, counts: np.ndarray) -> LevelProbabilities:
        """Return the maximum likelihood transition matrix for counts of allowed transitions and of first states."""
        transitions = self.topology.tables["transition"].expand(counts)
        table = stationary_mle(self.pairs[0][1].table, transitions, self.topology.allowed)
        return LevelProbabilities(table, Segments([len(table)]))

    @property
    def stationary_log_prob(self) -> float:
        """The change of the maximum log-likelihood of the transitions under start='stationary'; 0 otherwise."""
        if not self.topology.stationary or not self.states.levels:
            return 0.0
        (_, first), (_, transitions) = self.pairs[:2]
        table = self._stationary_mle(self.reduced_pairs[0][1].table).table
        total = np.maximum(transitions.table.sum(axis=1, keepdims=True), 1e-300)
        constrained = xlogy(first.table, stationary_distribution(table)).sum() + xlogy(transitions.table, table).sum()
        return float(constrained - xlogy(transitions.table, transitions.table / total).sum())

    @cached_property
    def meaning_of_unseen(self) -> str:
        """The treatment of unseen levels; without counts, the frequency of levels seen once is unknown."""
        treatment = effective_unseen(self.unseen, self.estimate)
        if self.given is None:
            return treatment
        if treatment == "smooth":
            raise NoCountsError(
                "unseen='smooth' needs counts, and the parameters of this model are fixed.\n"
                "    Use unseen='missing' or 'error'."
            )
        return "missing" if treatment == "new" else treatment

    @cached_property
    def parameters(self) -> HMMParameters:
        """The parameters as the kernels take them."""
        scored = self.scored
        unseen = self.meaning_of_unseen
        if unseen in ("new", "smooth"):
            add_level = with_unseen_level if unseen == "new" else with_unseen_level_normalized
            scored = [
                add_level(scorer, unseen_mass(statistics)) if scorer.family.cell_type == "codes" else scorer
                for scorer, statistics in zip(scored, self._state_statistics, strict=True)
            ]
            unseen = "smooth"  # row scorers code an unseen level as the last one
        return HMMParameters.from_parts(self.topology, self.part_scorers, scored, self.domains, unseen, uniform=False)

    @cached_property
    def checked_parameters(self) -> HMMParameters:
        """The parameters. Raise DataError if there is no state, or if a state has no data for a column."""
        if not self.states.levels:
            raise DataError("the model has no states: all sequences were forgotten.\n    Fit it on at least one step.")
        self.parameters.check_defined(self.topology, self.estimate)
        return self.parameters

    def over(self, tally: Tally) -> EstimatedHMM:
        """Return the estimates for another tally of the same levels, with the priors held fixed."""
        other = replace(self, tally=tally)
        return replace(other, estimated=self.fitted.with_statistics(other.reduced_pairs))

    def scaled(self, strength: float) -> EstimatedHMM:
        """Return the estimates with all prior strengths multiplied by `strength`."""
        return replace(self, estimated=self.fitted.scaled(strength))

    # ---- Inspection -------------------------------------------------------------------------------------------------

    @property
    def emission_parameters(self) -> dict[Any, Any]:
        """The emission parameters by column, or by tuple of columns; see `HiddenMarkovModel.emission_`."""
        by_column: dict[Any, Any] = {}
        components = self.topology.components
        for scorer, emission in zip(self.parameters.scored, self.estimated_emissions, strict=True):
            if components is not None:
                scorer = scorer.with_parameters(components.shaped(scorer.parameters))
            if not emission.is_coded:
                names = emission.columns
                by_column[names if len(names) > 1 else names[0]] = scorer.parameters
            for name, domain, table in replace(emission, scorer=scorer).level_tables():
                by_column[name] = dict(zip(domain.levels, np.moveaxis(table, -1, 0), strict=False))
        return by_column

    @property
    def resolved_priors(self) -> dict[Any, Any]:
        """The resolved prior of every part and of every emission, as ``prior=`` takes them."""
        priors = list(self.fitted.priors_by_column.items())
        parts = {part: prior for part, (_, prior) in zip(self.parts, priors, strict=False)}
        return parts | {(key,) if key in parts else key: prior for key, prior in priors[len(self.parts) :]}

    def labeled_factors(self, column_names: ColumnNames) -> list[LabeledFactor]:
        """Return all parts and emissions with the names of their states, levels and columns."""
        expanded = self._expand_to_states(self.fitted.scorers_or_mle)
        n_parts = len(self.parts)
        parts = [self._labeled_part(number, scorer) for number, scorer in enumerate(expanded[:n_parts])]
        emissions = zip(expanded[n_parts:], self._state_statistics, strict=True)
        return parts + [
            self._labeled_emission(column_names, number, scorer, statistics)
            for number, (scorer, statistics) in enumerate(emissions, n_parts)
        ]

    def _labeled_part(self, number: int, scorer: FactorScorer) -> LabeledFactor:
        """Return one part with the names of its states."""
        part = self.parts[number]
        states = self.states.levels
        given, groups = ((), ()) if part == "start" else (("state",), (states,))
        components = self.topology.components
        values = range(components.most) if part == "component" and components is not None else states
        levels = [values] if scorer.factor.level_columns else ()
        # Under start='stationary' first states contribute to the transitions: their posterior is not a Dirichlet.
        has_posterior = not (part == "transition" and self.topology.stationary)
        posterior = partial(self._posterior, number) if has_posterior else None
        return LabeledFactor(scorer, given, groups, levels, names=(part,), posterior=posterior)

    def _labeled_emission(
        self, column_names: ColumnNames, number: int, scorer: FactorScorer, statistics: EmissionStatistics
    ) -> LabeledFactor:
        """Return one emission with the names of its states, levels and columns."""
        factor = scorer.factor
        unseen: tuple[str, ...] = ()
        if self.meaning_of_unseen == "smooth" and isinstance(statistics, Counts) and factor.level_columns:
            scorer = with_unseen_level_normalized(scorer, unseen_mass(statistics))
            unseen = (UNSEEN,)
        components = self.topology.components
        axes: tuple[Any, Any] = (("state",), (self.states.levels,)) if components is None else components.axes
        levels = [(*self._levels_of(name), *unseen) for name in factor.level_columns]
        names = [(name,) if name in self.parts else name for name in factor.columns]
        whole = factor.family.order > 0  # an autoregressive column: its lags are not columns of their own
        within = () if whole else column_names.of_block(factor.columns, statistics.n_columns)
        posterior = partial(self._posterior, number)
        return LabeledFactor(scorer, *axes, levels, names, within, posterior=posterior, whole=whole)

    def _posterior(self, number: int) -> ParameterDistribution:
        """Return the posterior distribution of a part or an emission, for all states."""
        n_parts = len(self.parts)
        if number < n_parts:
            return self.topology.tables[self.parts[number]].expand_distribution(self.fitted.posterior(number))
        if self.topology.tied is None:
            return self.fitted.posterior(number)
        prior, constant = self.fitted.resolved_priors[number]
        statistics = self._state_statistics[number - n_parts]
        return prior.update(add_unit_variance(self.reduced_pairs[number][0].family, statistics, constant))
