"""EM for Bayesian networks: missing labels, and linked measured nodes, as the rest of their row expects them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tallybayes.data.counting import count
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_loop import EMSummary, warn_unless_converged
from tallybayes.estimation.em.em_objective import EMObjective, reindex_levels, with_constant_columns
from tallybayes.estimation.em.soft_counts import SoftCounter, check_same_vocabulary, expand_text
from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer, chunk_of, factor_cells
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.network.e_step_continuous import IncompleteContinuousRows, cells_of, expected_of, without_gaps
from tallybayes.models.network.e_step_discrete import IncompleteDiscreteRows, in_parts
from tallybayes.models.network.estimated_network import EstimatedNetwork, EstimatedNode, nodes_of
from tallybayes.models.network.inference.evidence import Evidence, read_rows
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import with_selected_words

_BY_CHANCE = 0.8  # of the rows start with any level of a node that is never seen
_ROWS = 1 << 16  # whose nearest centers are found at a time


Estimated = dict[Name, FactorScorer]  # the parameters of every node: what an M-step finds


def learn_network(
    model: Any, table: Table, weight: np.ndarray | None, available: Tally, initial: Any = None
) -> tuple[Tally, EMSummary | None]:
    """The expected counts of all rows, missing labels included.

    Parameters
    ----------
    model : BayesianNetwork
        Its structure, estimate, priors and EM settings.
    table : Table
    weight : ndarray of shape (n,), or None
    available : Tally
        The statistics of complete rows, factor by factor.
    initial : BayesianNetwork, optional
        Where to start.

    Returns
    -------
    tally : Tally
        Soft, unless no label was missing.
    climbed : Climbed or None
        How EM ended, if it was needed.
    """
    worded = expand_text(table, available.factors)
    whole = available.align({**available.domains, **worded.domains})
    texts = dict.fromkeys(f.columns[0] for f in available.factors if f.family.cell_type == "text")
    work = _NetworkEM(model, worded.table, weight, with_selected_words(whole, texts))
    if not work.parts and not work.linked:
        return available, None
    if initial is not None:
        check_same_vocabulary(initial, worded.domains)
    starts = work.starts() if initial is None else [partial(work.from_model, initial)]
    done, climbed = work.hill.run_restarts(work, starts)
    warn_unless_converged(climbed)
    return Tally(whole.factors, done.expected, whole.domains, whole.schema, soft=True), climbed


class _NetworkEM:
    """The steps of EM for one network and one table.

    Tables of which a row misses no node were counted before it begins, as available; the others at every step.
    """

    def __init__(self, model: Any, table: Table, weight: np.ndarray | None, available: Tally) -> None:
        self.available, self.network = available, EstimatedNetwork(available, model.estimate, model.prior)
        self.nodes = self.network.nodes
        self.rng, self.n_init = np.random.default_rng(model.random_state), model.n_init
        self.start_log_prior = 0.0  # of the network that EM starts from
        weights = np.ones(table.n_rows) if weight is None else weight
        counted = np.flatnonzero(weights > 0)
        table, weights = table.rows(counted), weights[counted]
        levels = self.network.levels
        parents = self.network.graph.parents
        even = {name: np.ones([len(levels[other]) for other in (*parents[name], name)]) for name in levels}
        self.inference = self.network.make_inference(even, {})
        known = self._known(table)
        self.seen = set(known.codes)
        self.gaps = {name: codes for name, codes in known.codes.items() if (codes < 0).any()}
        rest = np.flatnonzero(~known.whole(levels))
        self.parts = in_parts(self.inference, known.take(rest), weights[rest])
        nodes = self.nodes.values()
        self.hill = EMObjective(model, [node.factor for node in nodes], float(weights.sum()))
        self.groups = [() if node.is_label else self.network.parent_configurations(node.factor.given) for node in nodes]
        self.all, self.all_weights = table, weights
        self.measured = [
            factor
            for factor in available.factors
            if factor.family.cell_type != "codes"
            and factor.given
            and factor.columns[-1] not in self.inference.component_index
        ]
        self._take_linked(table, known, weights)

    def _take_linked(self, table: Table, known: Evidence, weights: np.ndarray) -> None:
        """Count linked nodes where all of them are known, with all labels they depend on; the rest at every step."""
        every = {
            leaf: IncompleteContinuousRows(self.inference, leaf, known, weights) for leaf in self.inference.components
        }
        holed = {leaf: rows for leaf, rows in every.items() if not rows.counted.all()}
        self.linked = [rows for rows in holed.values() if len(rows.cells)]
        self.same: set[Name] = set()
        for leaf, component in self.inference.components.items() if self.hill.has_prior else ():
            low, high = np.nanmin(known.cells[leaf], axis=0), np.nanmax(known.cells[leaf], axis=0)
            self.same |= {node for node, flat in zip(component.nodes, low == high, strict=True) if flat}
        self.holed, self.fixed = tuple(holed), list[Any](self.available.statistics)
        if holed:
            for leaf, rows in holed.items():
                table = without_gaps(table, self.inference.components[leaf], rows.counted)
            self.fixed = self._counted(table, weights)

    def _known(self, table: Table) -> Evidence:
        """What is known of the rows: labels, and the cells of measured nodes."""
        known = read_rows(self.inference, table, "missing")
        for factor in self.available.factors:
            if factor.family.cell_type != "codes":
                for name in (n for n in factor.columns if n not in self.inference.component_index):
                    cells = factor_cells(table, [name], factor.family, [], "missing")
                    known.cells[name] = cells if isinstance(cells, SparseRows) else chunk_of(cells, slice(None))
        for leaf, component in self.inference.components.items():
            known.cells[leaf] = cells_of(table, component)
            never = np.flatnonzero(np.isnan(known.cells[leaf]).all(axis=0))
            if len(never):
                raise DataError(
                    f"no row shows {component.nodes[never[0]]!r}, so nothing tells where it is, or how wide.\n"
                    "    Leave it out, or pass rows that have it; only nodes of labels may be hidden."
                )
        return known

    def _counted(self, table: Table, weight: np.ndarray) -> list[Any]:
        """The statistics of some rows, where they are complete, over all levels."""
        tally = count(table, self.available.factors, weight=weight, schema=self.available.schema, like=self.available)
        return list(tally.reindex_like(self.available).statistics)

    # ---- The start --------------------------------------------------------------------------------------------------

    def starts(self) -> list[Callable[[], list[Any]]]:
        """Where to start: at the counts of what is known, or guessed, after some steps under default priors.

        More starts than one have other guesses of nodes that are never seen; where there are none, of missing labels.
        """
        guessed = [self._with_guesses(self.all)]
        if guessed[0] is not self.all:  # each time others
            guessed += [self._with_guesses(self.all) for _ in range(self.n_init - 1)]
            begun = [self._counted(table, self.all_weights) for table in guessed]
        else:
            begun = [list(self.available.statistics)]
            if self.gaps:
                drawn = (self._with_draws(self.all) for _ in range(self.n_init - 1))
                begun += [self._counted(table, self.all_weights) for table in drawn]
        self._hold(begun[0])  # all initializations have the same objective

        def by_defaults(start: list[Any], n_steps: int) -> list[Any]:
            with self.hill.with_default_priors([node.counted for node in self._by_node(start)]):
                return self.hill.run(self, start, n_steps)

        return [partial(by_defaults, start, n_steps) for start in begun for n_steps in self.hill.warm_up_iterations]

    def _hold(self, statistics: list[Any]) -> None:
        """Find the priors, for all starts and steps."""
        if self.hill.has_prior:
            nodes = self._by_node(statistics)
            self.hill.fix_priors([node.counted for node in nodes], map(self.network.prior_of, nodes))

    def from_model(self, initial: Any) -> Estimated:
        """The parameters of another network, over the levels that there are; priors are found from what it expects."""
        its = initial._estimated_network
        known = dict(zip(its.nodes, its.fitted.checked_scorers, strict=True))
        for name, node in self.nodes.items():
            if name in its.nodes and its.nodes[name].inputs != node.inputs:
                raise DataError(
                    f"initial= has {name!r} given {its.nodes[name].inputs} where it is given {node.inputs} here.\n"
                    "    Use the same parents= and columns= in both."
                )
        found = {name: self._taken(node.factor, known.get(name), its) for name, node in self.nodes.items()}
        expected, value = self.expect(found)
        if value == -np.inf:
            raise DataError(
                "some rows are impossible under initial=.\n    Give nothing that was seen the probability 0."
            )
        self._hold(expected)
        narrow = list(found.values())
        if self.hill.has_constant_columns:  # from the start, as in all steps after it
            narrow = self.hill.without_constant_columns(narrow)
            found = self._widened(narrow, [node.counted for node in self._by_node(expected)])
            expected, _ = self.expect(found)
            self._hold(expected)
        if self.hill.has_prior:
            counted = [node.counted for node in self._by_node(expected)]
            self.start_log_prior = self.hill.log_prior(narrow, counted)
        return found

    def _taken(self, factor: Factor, scored: FactorScorer | None, its: EstimatedNetwork) -> FactorScorer:
        """The parameters of one node of another network, over the levels that there are now."""
        if (
            scored is None
            or scored.factor.given != factor.given
            or scored.family.statistics_key != factor.family.statistics_key
        ):
            other = "no such node" if scored is None else f"given {scored.factor.given}, {scored.family!r}"
            raise DataError(
                f"initial= has {other} where {factor.columns[0]!r} is given {factor.given}, {factor.family!r}.\n"
                "    Use the same parents= and columns= in both."
            )
        parents = [(self.available.domains[str(name)], its.tally.domains[str(name)]) for name in factor.given]
        point = scored.point
        if factor.family.cell_type != "codes":
            if any(now.levels != before.levels for now, before in parents):
                place = np.arange(len(its.parent_configurations(factor.given))).reshape(
                    [len(b.levels) for _, b in parents]
                )
                for axis, (now, before) in enumerate(parents):
                    place = reindex_levels(place, axis, before, now)
                point = factor.family.take(point, place.ravel())
            return FactorScorer(factor, point, False, NO_COLUMNS)
        table, own = point.table, str(factor.columns[0])
        for axis, (now, before) in enumerate([*parents, (self.available.domains[own], its.tally.domains[own])]):
            table = reindex_levels(table, axis, before, now)
        return FactorScorer(factor, LevelProbabilities(table, Segments([table.shape[-1]])), False, NO_COLUMNS)

    def _with_guesses(self, table: Table) -> Table:
        """The rows with a first guess for nodes that are never seen.

        One row in five gets the level of its cluster (k-means++), the others a random one. With random levels alone,
        all levels look alike where there are many rows, and EM stops at its first small steps; with clusters alone, it
        stays near what k-means finds.
        """
        children, whole = self.network.graph.children(), table
        seen = {name: node for name, node in self.nodes.items() if name in self.seen or not node.is_label}
        for name, node in self.nodes.items():
            if name in seen or not seen:
                continue
            near = [other for other in (*node.factor.given, *children[name]) if other in seen] or list(seen)
            domain = self.available.domains[str(name)]
            factors = [Factor(n, (), Gaussian() if seen[n].inputs else seen[n].family) for n in near]
            counter = SoftCounter(factors, whole, len(domain.levels))
            unknown = np.full(whole.n_rows, -1)
            (nearest,) = counter.kmeans_assigners(whole, unknown, self.all_weights, 1, self.rng)
            parts = (slice(start, start + _ROWS) for start in range(0, whole.n_rows, _ROWS))
            levels = np.concatenate([nearest(whole.rows(part)) for part in parts])
            chance = np.flatnonzero(self.rng.random(whole.n_rows) < _BY_CHANCE)
            levels[chance] = self.rng.integers(len(domain.levels), size=len(chance))
            table = table.with_codes(name, levels, domain)
        return table

    def _with_draws(self, table: Table) -> Table:
        """The rows with any level in the place of a missing one."""
        for name, codes in self.gaps.items():
            domain = self.available.domains[str(name)]
            drawn = self.rng.integers(len(domain.levels), size=len(codes))
            table = table.with_codes(name, np.where(codes < 0, drawn, codes), domain)
        return table

    def _by_node(self, statistics: list[Any]) -> list[EstimatedNode]:
        """Every node with its statistics."""
        found = nodes_of(self.available.factors, statistics)
        return [found[name] for name in self.nodes]

    # ---- The steps --------------------------------------------------------------------------------------------------

    def maximize(self, expected: list[Any] | Estimated) -> tuple[Estimated, float]:
        """The M-step: the most probable parameters of every node, and their log prior; those to start from are."""
        if isinstance(expected, dict):
            return expected, self.start_log_prior
        counted = [node.counted for node in self._by_node(expected)]
        found, log_prior = self.hill.maximize(counted, self.groups)
        return self._widened(found, counted), log_prior

    def _widened(self, found: list[FactorScorer], counted: list[Any]) -> Estimated:
        """The parameters of every node, of leaves that are the same in every row, too."""
        pairs = zip(found, counted, strict=True)
        wide = [
            with_constant_columns(scored, counts.pool_groups()) if len(scored.constant) else scored
            for scored, counts in pairs
        ]
        return dict(zip(self.nodes, wide, strict=True))

    def expect(self, found: Estimated) -> tuple[list[Any], float]:
        """The E-step: the counts that the parameters expect, and the log likelihood of what is known."""
        tables = {name: part.parameters.table for name, part in found.items() if self.nodes[name].is_label}
        inference = self.inference.with_parameters(tables, self.network.leaves_of(found, self.same))
        value, out = self._available_likelihood(found), list(self.fixed)
        value += sum(rows.log_likelihood(inference) for rows in self.linked)
        for rows in self.linked:
            self._add_linked(out, inference, rows.leaf, rows.cells, rows.shares)
        labels: list[Any] = [0.0] * len(tables)
        for part in self.parts:
            counts, shares, log_likelihood = part.expect(inference)
            value += log_likelihood
            labels = [before + more for before, more in zip(labels, counts, strict=True)]
            for factor in (factor for factor in self.measured if factor.given in shares):
                place = self.available.factors.index(factor)
                soft = self._soft(factor, part, shares[factor.given], out[place].pool_groups())
                out[place] = out[place] + soft.reshape_groups(out[place].given_shape)
            for leaf in self.holed:
                labels_above = self.inference.components[leaf].labels
                if labels_above in shares:
                    cells = part.known.cells[leaf][part.lacking[labels_above]]
                    self._add_linked(out, inference, leaf, cells, shares[labels_above])
        expected = dict(zip(inference.levels, labels, strict=True))
        for place, factor in enumerate(self.available.factors if self.parts else ()):
            if factor.family.cell_type == "codes":
                table = np.concatenate([expected[name] for name in factor.columns], axis=-1)
                out[place] = out[place] + Counts(table, out[place].segments)
        return out, value

    def _add_linked(
        self, out: list[Any], inference: NetworkInference, leaf: Name, cells: np.ndarray, shares: np.ndarray
    ) -> None:
        """Add the expected statistics of connected continuous nodes."""
        places = {factor.columns[-1]: place for place, factor in enumerate(self.available.factors)}
        like = {node: out[places[node]] for node in inference.components[leaf].nodes}
        for node, moments in expected_of(inference, leaf, cells, shares, self.nodes, like).items():
            out[places[node]] = out[places[node]] + moments

    def _soft(self, factor: Factor, part: IncompleteDiscreteRows, shares: np.ndarray, like: Any) -> Any:
        """The statistics of measured nodes: a row counts in every combination of parents' levels as it is probable."""
        rows = part.lacking[factor.given]
        cells = [part.known.cells[name] for name in factor.columns]
        block: Any
        if isinstance(cells[0], SparseRows):  # a factor of its own
            block = cells[0].rows(rows)
        else:
            block = np.concatenate([column[rows].reshape(len(rows), -1) for column in cells], axis=1)
        return factor.family.collect(block, None, shares.shape[1], np.ascontiguousarray(shares), like=like)

    def _available_likelihood(self, found: Estimated) -> float:
        """Log p of what is counted once."""
        value = 0.0
        for node, scored in zip(self._by_node(self.fixed), found.values(), strict=True):
            logs = np.asarray(scored.family.log_likelihood(scored.parameters, node.counted))
            value += float(np.where(np.isnan(logs), 0.0, logs).sum())  # nothing was counted where nothing is known
        return value
