"""EM for Bayesian networks with missing discrete cells, hidden nodes, and missing connected continuous cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.data.counting import count
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_loop import EMSummary, warn_unless_converged
from tallybayes.estimation.em.em_objective import EMObjective, reindex_levels, with_constant_columns
from tallybayes.estimation.em.soft_counts import SoftCounter, check_same_vocabulary, expand_text
from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer, chunk_of, factor_cells
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import take_groups
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.network.e_step import (
    IncompleteBatch,
    component_cells,
    expected_moments,
    in_batches,
    without_incomplete_rows,
)
from tallybayes.models.network.estimated_network import EstimatedNetwork, EstimatedNode, network_of, nodes_of
from tallybayes.models.network.inference.evidence import Evidence, read_rows
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import with_selected_words

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork

_RANDOM_FRACTION = 0.8  # of the rows, whose hidden nodes have random initial levels
_BATCH_ROWS = 1 << 16  # rows whose nearest cluster centers are found at a time

Scorers = dict[Name, FactorScorer]  # the parameters of every node: the result of an M-step
FactorStatistics = list[Any]  # of every factor


def fit_by_em(
    model: BayesianNetwork,
    table: Table,
    weight: np.ndarray | None,
    available: Tally,
    initial: BayesianNetwork | None = None,
) -> tuple[Tally, EMSummary | None]:
    """Return the expected counts of all rows, incomplete ones included.

    Parameters
    ----------
    model : BayesianNetwork
        Its structure, estimate, priors and EM parameters are used.
    table : Table
    weight : ndarray of shape (n,), or None
    available : Tally
        The statistics of complete rows, factor by factor.
    initial : BayesianNetwork, optional
        The initial parameters.

    Returns
    -------
    tally : Tally
        Soft, unless no cell was missing.
    result : EMSummary or None
        None if no cell was missing.
    """
    expanded = expand_text(table, available.factors)
    all_words = available.align({**available.domains, **expanded.domains})
    texts = dict.fromkeys(f.columns[0] for f in available.factors if f.family.cell_type == "text")
    em = _NetworkEM(model, expanded.table, weight, with_selected_words(all_words, texts))
    if not em.batches:
        return available, None
    if initial is None:
        initializations: list[Callable[[], Any]] = em.initializations(model.n_init)
    else:
        estimated = network_of(initial)
        check_same_vocabulary(estimated.tally, expanded.domains)
        initializations = [partial(em.from_network, estimated)]
    result, summary = em.objective.run_restarts(em, initializations)
    warn_unless_converged(summary)
    return Tally(all_words.factors, result.expected, all_words.domains, all_words.schema, soft=True), summary


class _NetworkEM:
    """E-step and M-step for one network and one table.

    CPTs of rows in which no node of the family is missing are counted once, as `available`; the others in every
    iteration.
    """

    def __init__(self, model: BayesianNetwork, table: Table, weight: np.ndarray | None, available: Tally) -> None:
        self.available = available
        self.network = EstimatedNetwork(available, model.estimate, model.prior)
        self.nodes = self.network.nodes
        self.rng = random_generator(model.random_state)
        self.initial_log_prior = 0.0  # of the parameters of initial=
        weights = np.ones(table.n_rows) if weight is None else weight
        positive = np.flatnonzero(weights > 0)
        self.table, self.weights = table.rows(positive), weights[positive]
        levels, parents = self.network.levels, self.network.graph.parents
        uniform = {name: np.ones([len(levels[other]) for other in (*parents[name], name)]) for name in levels}
        self.inference = self.network.make_inference(uniform, {})
        evidence = self._read_evidence()
        self.observed = set(evidence.codes)
        self.incomplete_codes = {name: codes for name, codes in evidence.codes.items() if (codes < 0).any()}
        self.batches = in_batches(self.inference, evidence, self.weights)
        nodes = self.nodes.values()
        self.objective = EMObjective(model, [node.factor for node in nodes], float(self.weights.sum()))
        configurations = self.network.parent_configurations
        self.groups = [() if node.is_discrete else configurations(node.factor.given) for node in nodes]
        self.continuous_factors = [
            factor
            for factor in available.factors
            if factor.family.cell_type != "codes"
            and factor.given
            and factor.columns[-1] not in self.inference.component_index
        ]
        self._count_components(evidence)

    def _count_components(self, evidence: Evidence) -> None:
        """Count components in complete rows; incomplete rows are expected in every iteration."""
        self.constant: set[Name] = set()
        self.incomplete_leaves: list[Name] = []
        table = self.table
        for leaf, component in self.inference.components.items():
            cells = evidence.cells[leaf]
            if self.objective.has_prior:
                is_constant = np.nanmin(cells, axis=0) == np.nanmax(cells, axis=0)
                self.constant |= {component.nodes[k] for k in np.flatnonzero(is_constant)}
            is_complete = evidence.complete_rows(component.given) & ~np.isnan(cells).any(axis=1)
            if not is_complete.all():
                self.incomplete_leaves.append(leaf)
                table = without_incomplete_rows(table, component, is_complete)
        self.fixed = self._count(table) if self.incomplete_leaves else list(self.available.statistics)

    def _read_evidence(self) -> Evidence:
        """Return the evidence of the rows: discrete nodes, and the cells of continuous nodes."""
        table = self.table
        evidence = read_rows(self.inference, table, "missing")
        for factor in self.available.factors:
            if factor.family.cell_type != "codes":
                for name in (n for n in factor.columns if n not in self.inference.component_index):
                    cells = factor_cells(table, [name], factor.family, [], "missing")
                    evidence.cells[name] = cells if isinstance(cells, SparseRows) else chunk_of(cells, slice(None))
        for leaf, component in self.inference.components.items():
            evidence.cells[leaf] = component_cells(table, component)
            never_observed = np.flatnonzero(np.isnan(evidence.cells[leaf]).all(axis=0))
            if len(never_observed):
                raise DataError(
                    f"no row has {component.nodes[never_observed[0]]!r}, so its mean and variance are unknown.\n"
                    "    Remove the node, or pass rows that have it; only discrete nodes may be hidden."
                )
        return evidence

    def _count(self, table: Table) -> FactorStatistics:
        """Return the statistics of the rows that are complete, over all levels."""
        schema = self.available.schema
        tally = count(table, self.available.factors, weight=self.weights, schema=schema, like=self.available)
        return list(tally.reindex_like(self.available).statistics)

    # ---- Initialization ---------------------------------------------------------------------------------------------

    def initializations(self, n_init: int) -> list[Callable[[], Any]]:
        """Return the initializations: counts of observed or guessed cells, after iterations under default priors.

        With several initializations, hidden nodes have different guesses; without hidden nodes, missing cells have.
        """
        first = self._with_guessed_nodes()
        if first is not self.table:
            tables = [first, *(self._with_guessed_nodes() for _ in range(n_init - 1))]
            initial = [self._count(table) for table in tables]
        else:
            initial = [list(self.available.statistics)]
            if self.incomplete_codes:
                initial += [self._count(self._with_random_cells()) for _ in range(n_init - 1)]
        self._fix_priors(initial[0])  # all initializations have the same objective

        def warm_up(statistics: FactorStatistics, n_iterations: int) -> Any:
            with self.objective.with_default_priors(self._counted(statistics)):
                return self.objective.run(self, statistics, n_iterations)

        n_iterations = self.objective.warm_up_iterations
        return [partial(warm_up, statistics, n) for statistics in initial for n in n_iterations]

    def _fix_priors(self, statistics: FactorStatistics) -> None:
        """Resolve the priors, for all initializations and iterations."""
        if self.objective.has_prior:
            nodes = self._by_node(statistics)
            self.objective.fix_priors([node.counted for node in nodes], map(self.network.prior_of, nodes))

    def from_network(self, initial: EstimatedNetwork) -> Scorers:
        """Return the parameters of another network over the current levels; priors follow from its expected counts."""
        scorers = dict(zip(initial.nodes, initial.fitted.checked_scorers, strict=True))
        for name, node in self.nodes.items():
            if name in initial.nodes and initial.nodes[name].inputs != node.inputs:
                raise DataError(
                    f"initial= has {name!r} given {initial.nodes[name].inputs}; expected {node.inputs}.\n"
                    "    Use the same parents= and columns= in both."
                )
        parameters = {
            name: self._over_current_levels(node.factor, scorers.get(name), initial)
            for name, node in self.nodes.items()
        }
        expected, log_likelihood = self.expect(parameters)
        if log_likelihood == -np.inf:
            raise DataError(
                "some rows are impossible under initial=.\n    Give observed levels positive probabilities."
            )
        self._fix_priors(expected)
        varying = list(parameters.values())
        if self.objective.has_constant_columns:  # without them from the first iteration on
            varying = self.objective.without_constant_columns(varying)
            parameters = self._with_constant_nodes(varying, self._counted(expected))
            expected, _ = self.expect(parameters)
            self._fix_priors(expected)
        if self.objective.has_prior:
            self.initial_log_prior = self.objective.log_prior(varying, self._counted(expected))
        return parameters

    def _over_current_levels(
        self, factor: Factor, scorer: FactorScorer | None, initial: EstimatedNetwork
    ) -> FactorScorer:
        """Return the parameters of one node of another network over the current levels."""
        if (
            scorer is None
            or scorer.factor.given != factor.given
            or scorer.family.statistics_key != factor.family.statistics_key
        ):
            found = "no such node" if scorer is None else f"given {scorer.factor.given}, {scorer.family!r}"
            raise DataError(
                f"initial= has {found} for {factor.columns[0]!r}; expected given {factor.given}, {factor.family!r}.\n"
                "    Use the same parents= and columns= in both."
            )
        domains, initial_domains = self.available.domains, initial.tally.domains
        names = list(map(str, factor.given))
        sizes = [len(initial_domains[name].levels) for name in names]
        groups = np.arange(math.prod(sizes)).reshape(sizes)  # of the initial parameters
        for axis, name in enumerate(names):
            groups = reindex_levels(groups, axis, initial_domains[name], domains[name])
        if factor.family.cell_type != "codes":
            return FactorScorer(factor, take_groups(scorer.point, groups.ravel()), False, NO_COLUMNS)
        name = str(factor.columns[0])
        tables = scorer.point.table.reshape(-1, len(initial_domains[name].levels))
        table = reindex_levels(tables[groups], -1, initial_domains[name], domains[name])
        return FactorScorer(factor, LevelProbabilities(table, Segments([table.shape[-1]])), False, NO_COLUMNS)

    def _with_guessed_nodes(self) -> Table:
        """Return the rows with initial levels of hidden nodes.

        One row in five gets the level of its cluster (k-means++), the others a random level. With random levels only,
        all levels are alike for many rows, and EM stops at its first small steps; with clusters only, it stays near the
        clusters.
        """
        children = self.network.graph.children()
        observed = {name: node for name, node in self.nodes.items() if name in self.observed or not node.is_discrete}
        guessed = self.table
        for name, node in self.nodes.items():
            if name in observed or not observed:
                continue
            near = [other for other in (*node.factor.given, *children[name]) if other in observed] or list(observed)
            domain = self.available.domains[str(name)]
            families = [Gaussian() if observed[n].inputs else observed[n].family for n in near]
            factors = [Factor(n, (), family) for n, family in zip(near, families, strict=True)]
            counter = SoftCounter(factors, self.table, len(domain.levels))
            unknown = np.full(self.table.n_rows, -1)
            (nearest,) = counter.kmeans_assigners(self.table, unknown, self.weights, 1, self.rng)
            batches = (slice(start, start + _BATCH_ROWS) for start in range(0, self.table.n_rows, _BATCH_ROWS))
            codes = np.concatenate([nearest(self.table.rows(batch)) for batch in batches])
            is_random = np.flatnonzero(self.rng.random(self.table.n_rows) < _RANDOM_FRACTION)
            codes[is_random] = self.rng.integers(len(domain.levels), size=len(is_random))
            guessed = guessed.with_codes(name, codes, domain)
        return guessed

    def _with_random_cells(self) -> Table:
        """Return the rows with random levels in missing cells."""
        table = self.table
        for name, codes in self.incomplete_codes.items():
            domain = self.available.domains[str(name)]
            random = self.rng.integers(len(domain.levels), size=len(codes))
            table = table.with_codes(name, np.where(codes < 0, random, codes), domain)
        return table

    def _by_node(self, statistics: FactorStatistics) -> list[EstimatedNode]:
        """Return every node with its statistics."""
        nodes = nodes_of(self.available.factors, statistics)
        return [nodes[name] for name in self.nodes]

    def _counted(self, statistics: FactorStatistics) -> list[Any]:
        """Return the statistics of every node for estimation."""
        return [node.counted for node in self._by_node(statistics)]

    # ---- Iterations -------------------------------------------------------------------------------------------------

    def maximize(self, expected: FactorStatistics | Scorers) -> tuple[Scorers, float]:
        """M-step: return the parameters of every node and their log prior; initial parameters stay unchanged."""
        if isinstance(expected, dict):
            return expected, self.initial_log_prior
        counted = self._counted(expected)
        scorers, log_prior = self.objective.maximize(counted, self.groups)
        return self._with_constant_nodes(scorers, counted), log_prior

    def _with_constant_nodes(self, scorers: Sequence[FactorScorer], counted: Sequence[Any]) -> Scorers:
        """Return the parameters of every node, also of continuous nodes that are constant."""
        pairs = zip(scorers, counted, strict=True)
        with_constant = (
            with_constant_columns(scorer, statistics.pool_groups()) if len(scorer.constant) else scorer
            for scorer, statistics in pairs
        )
        return dict(zip(self.nodes, with_constant, strict=True))

    def expect(self, scorers: Scorers) -> tuple[FactorStatistics, float]:
        """E-step: return the expected statistics, and the log-likelihood of the observed cells."""
        tables = {name: scorer.parameters.table for name, scorer in scorers.items() if self.nodes[name].is_discrete}
        inference = self.inference.with_parameters(tables, self.network.leaves_of(scorers, self.constant))
        log_likelihood = self._complete_log_likelihood(scorers)
        expected = list(self.fixed)
        counts: list[Any] = [0.0] * len(tables)
        for batch in self.batches:
            batch_counts, group_weights, of_batch = batch.expect(inference)
            counts = [total + more for total, more in zip(counts, batch_counts, strict=True)]
            log_likelihood += of_batch + self._add_continuous(expected, inference, batch, group_weights)
        if self.batches:
            by_node = dict(zip(inference.levels, counts, strict=True))
            for k, factor in enumerate(self.available.factors):
                if factor.family.cell_type == "codes":
                    table = np.concatenate([by_node[name] for name in factor.columns], axis=-1)
                    expected[k] = expected[k] + Counts(table, expected[k].segments)
        return expected, log_likelihood

    def _add_continuous(
        self,
        expected: FactorStatistics,
        inference: NetworkInference,
        batch: IncompleteBatch,
        group_weights: dict[tuple[Name, ...], np.ndarray],
    ) -> float:
        """Add the expected statistics of continuous nodes; return the log-likelihood that `batch.expect` lacks."""
        for factor in self.continuous_factors:
            if factor.given in group_weights:
                k = self.available.factors.index(factor)
                soft = _soft_statistics(factor, batch, group_weights[factor.given], expected[k].pool_groups())
                expected[k] = expected[k] + soft.reshape_groups(expected[k].given_shape)
        log_likelihood = 0.0
        index = {factor.columns[-1]: k for k, factor in enumerate(self.available.factors)}
        for leaf in self.incomplete_leaves:
            cells, weights, of_cells = batch.expect_component(inference, leaf, group_weights)
            log_likelihood += of_cells
            like = {node: expected[index[node]] for node in inference.components[leaf].nodes}
            for node, moments in expected_moments(inference, leaf, cells, weights, self.nodes, like).items():
                expected[index[node]] = expected[index[node]] + moments
        return log_likelihood

    def _complete_log_likelihood(self, scorers: Scorers) -> float:
        """Return the log-likelihood of the statistics that are counted once."""
        total = 0.0
        for counted, scorer in zip(self._counted(self.fixed), scorers.values(), strict=True):
            logs = np.asarray(scorer.family.log_likelihood(scorer.parameters, counted))
            total += float(np.where(np.isnan(logs), 0.0, logs).sum())  # undefined parameters have no rows
        return total


def _soft_statistics(factor: Factor, batch: IncompleteBatch, group_weights: np.ndarray, like: Any) -> Any:
    """Return the statistics of continuous nodes, every row in each combination of parents' levels by its weight."""
    rows = batch.incomplete[factor.given]
    cells = [batch.evidence.cells[name] for name in factor.columns]
    block: Any
    if isinstance(cells[0], SparseRows):  # a factor of one block
        block = cells[0].rows(rows)
    else:
        block = np.concatenate([column[rows].reshape(len(rows), -1) for column in cells], axis=1)
    return factor.family.collect(block, None, group_weights.shape[1], np.ascontiguousarray(group_weights), like=like)
