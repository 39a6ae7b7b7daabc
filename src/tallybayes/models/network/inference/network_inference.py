"""Inference in a Bayesian network: posteriors of many rows with any pattern of evidence."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.progress import progress
from tallybayes.data.text_columns import WordReader
from tallybayes.errors import DataError, EstimateError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families._shared.log_prob_forms import CellSumForm
from tallybayes.families.protocols.degenerate_estimates import mask_degenerate_groups
from tallybayes.families.protocols.distribution_functions import conditional_means
from tallybayes.kernels.incomplete_rows import IncompleteRows
from tallybayes.models.network.continuous_components import ContinuousComponent, with_intervention, with_leaves
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.evidence import Cells, Evidence, read_evidence
from tallybayes.models.network.inference.small_networks import MAX_CELLS, small_posteriors
from tallybayes.models.network.inference.triangulation import find_order
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

_MANY_ROWS = 64  # rows from which small networks are evaluated with an axis of rows
_MAX_KEPT = 8  # elimination orders
_MAX_CELLS = 1 << 22  # scores of a batch of rows of a continuous node, or entries of their posteriors

Scope = tuple[int, ...]


class Posterior(NamedTuple):
    """Posterior of some rows.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n,)
        Log p(evidence); −inf for impossible evidence.
    tables : dict from nodes to an array of shape (n, combinations of their levels)
        p(nodes | evidence) of the requested sets of nodes; meaningless for impossible evidence.
    """

    log_likelihood: np.ndarray
    tables: dict[tuple[Name, ...], np.ndarray]

    def joint(self, nodes: Iterable[Name]) -> np.ndarray:
        """Return p(combination of levels of some nodes | evidence), (n, combinations)."""
        nodes = tuple(nodes)
        return self.tables[nodes] if nodes else np.ones((len(self.log_likelihood), 1))


class NetworkInference:
    """The parameters of a network, compiled for inference.

    Connected continuous nodes form one leaf. Their own graph is ``structure``; ``graph`` has the leaves instead.
    ``component_index`` has the leaf of every connected node, and its column there. ``undefined`` has the rows of CPTs
    that are undefined under maximum likelihood.

    Parameters
    ----------
    graph : Graph
    domains : mapping from discrete node to Domain
    tables : mapping from discrete node to an array of shape (*parents, levels)
        NaN in undefined rows.
    leaves : mapping from continuous node to FactorScorer
    widths : mapping from continuous node to int, optional
        The number of columns of each.
    readers : mapping from node to WordReader, optional
        The readers of nodes that are text.
    presence : mapping from continuous node to another node, optional
        The missing-value indicators of nodes with informative missing values.
    components : mapping from leaf to ContinuousComponent, optional
        Connected continuous nodes; `leaves` has one scorer for all of them, with as many columns.
    """

    def __init__(
        self,
        graph: Graph,
        domains: Mapping[Name, Domain],
        tables: Mapping[Name, np.ndarray],
        leaves: Mapping[Name, FactorScorer],
        widths: Mapping[Name, int] | None = None,
        readers: Mapping[Name, WordReader] | None = None,
        presence: Mapping[Name, Name] | None = None,
        *,
        components: Mapping[Name, ContinuousComponent] | None = None,
    ) -> None:
        self.structure = graph
        self.components = components or {}
        self.graph = with_leaves(graph, self.components)
        self.component_index = {
            node: (leaf, k) for leaf, component in self.components.items() for k, node in enumerate(component.nodes)
        }
        self.domains = domains
        self.widths = widths or {}
        self.readers = readers or {}
        self.presence = presence or {}
        self.levels: dict[Name, tuple[Any, ...]] = {node: domain.display_levels for node, domain in domains.items()}
        self.index = {node: k for k, node in enumerate(domains)}
        self.sizes = [len(levels) for levels in self.levels.values()]
        self.interventions: frozenset[Name] = frozenset()  # the nodes that `intervened` has set
        self.orders: dict[Any, list[int]] = {}
        self.set_parameters(tables, leaves)

    def set_parameters(self, tables: Mapping[Name, np.ndarray], leaves: Mapping[Name, FactorScorer]) -> None:
        """Replace the parameters; undefined rows of CPTs get equal probabilities, and `check_defined` rejects them."""
        undefined = {node: np.isnan(table).any(axis=-1) for node, table in tables.items()}
        self.undefined = {node: rows for node, rows in undefined.items() if rows.any()}
        self.tables = {
            node: np.where(undefined[node][..., None], 1.0 / table.shape[-1], table)
            if node in self.undefined
            else table
            for node, table in tables.items()
        }
        self.leaves = {node: _mask_degenerate_groups(scorer) for node, scorer in leaves.items()}

    def with_parameters(
        self, tables: Mapping[Name, np.ndarray], leaves: Mapping[Name, FactorScorer]
    ) -> NetworkInference:
        """Return the same network with other parameters; elimination orders are kept."""
        other = copy.copy(self)
        vars(other).pop("_forms", None)
        other.set_parameters(tables, leaves)
        return other

    def is_continuous(self, node: Name) -> bool:
        """Return whether a node is continuous."""
        return node in self.leaves or node in self.component_index

    def require_discrete(self, nodes: Collection[Name]) -> None:
        """Raise DataError if a node is continuous, or no node of the network."""
        self.structure.require(nodes)
        continuous = [node for node in nodes if self.is_continuous(node)]
        if continuous:
            raise DataError(
                f"node {continuous[0]!r} is continuous, so it has no probabilities of levels.\n"
                "    Use query for the distribution of a Gaussian node, predict for its mean, sample for draws, or "
                "probability for a density."
            )

    def leaf_of(self, node: Name) -> Name:
        """Return the leaf of a continuous node: itself, or that of its connected component."""
        return self.component_index[node][0] if node in self.component_index else node

    def intervened(self, do: Mapping[Any, Any] | None) -> NetworkInference:
        """Return the mutilated network of an intervention: without edges into the nodes that are set.

        The values of discrete and unconnected continuous nodes are evidence (see `read_evidence`), whose probability
        is 1; those of connected nodes change the distribution of their component.
        """
        if not isinstance(do, Mapping) or not do:
            return self
        cells = read_evidence(self, None, do).cells
        other = copy.copy(self)  # with the same orders, whose keys have the interventions
        vars(other).pop("_forms", None)
        other.interventions = frozenset(do).difference(self.component_index)
        other.graph = self.graph.without_incoming_edges(other.interventions)
        set_tables = {node: np.ones(len(self.levels[node])) for node in other.interventions & self.levels.keys()}
        other.tables = self.tables | set_tables
        other.undefined = {node: rows for node, rows in self.undefined.items() if node not in set_tables}
        other.leaves = self.leaves | {
            leaf: with_intervention(self.leaves[leaf], cells[leaf][0]) for leaf in self.components if leaf in cells
        }
        return other

    @cached_property
    def order(self) -> list[int]:
        """The elimination order of the nodes (see `triangulation`), whatever memory it needs."""
        return find_order(self.sizes, self._scopes())

    def scope(self, nodes: Iterable[Name]) -> Scope:
        """Return the indices of discrete nodes."""
        return tuple(self.index[node] for node in nodes)

    def shape(self, scope: Scope) -> tuple[int, ...]:
        """Return the numbers of levels of some nodes, given by index."""
        return tuple(self.sizes[k] for k in scope)

    @property
    def families(self) -> list[Scope]:
        """The indices of the parents of every discrete node, and of itself."""
        return [self.scope((*self.graph.parents[node], node)) for node in self.levels]

    def _scopes(self) -> list[Scope]:
        """Return the scopes of all factors: CPTs, and the parents of continuous nodes."""
        parents = (self.graph.parents[leaf] for leaf in self.leaves)
        return [*self.families, *(self.scope(names) for names in parents if names)]

    def order_with(self, scopes: Collection[Scope] = ()) -> list[int]:
        """Return the elimination order if some nodes are joined; raise TooLargeError if it needs too much memory."""
        joined = frozenset(frozenset(scope) for scope in scopes if len(scope) > 1)
        key = self.interventions, joined
        if key not in self.orders:
            order = find_order(self.sizes, [*self._scopes(), *map(sorted, joined)], list(self.levels))
            for old in list(self.orders)[: 1 - _MAX_KEPT]:
                del self.orders[old]
            self.orders[key] = order
        return self.orders[key]

    def codes(self, evidence: Evidence) -> np.ndarray:
        """Return the codes of all discrete nodes, (n, nodes); −1 for unobserved ones."""
        codes = np.full((evidence.n_rows, len(self.levels)), -1, dtype=np.int32)
        for node, of_node in evidence.codes.items():
            codes[:, self.index[node]] = of_node
        return codes

    def likelihoods(self, evidence: Evidence) -> tuple[list[tuple[Scope, np.ndarray]], np.ndarray]:
        """Return the soft evidence and that on continuous nodes, and the logs of the factors divided out of it.

        Each is the log likelihood of all combinations of levels of some nodes: their indices, and (n, *levels).
        """
        likelihoods = []
        offset = np.zeros(evidence.n_rows)
        for node, likelihood in evidence.likelihoods.items():
            with np.errstate(divide="ignore"):
                logs = np.broadcast_to(np.log(likelihood), (evidence.n_rows, len(likelihood)))
            likelihoods.append((self.scope([node]), logs))
        for node, cells in evidence.cells.items():
            if node not in self.interventions:
                scope = self.scope(self.graph.parents[node])
                logs = self.leaf_log_prob(node, cells)
                largest = logs.max(axis=1)
                finite = np.where(np.isneginf(largest), 0.0, largest)
                offset += finite if scope else largest
                if scope:
                    table = (logs - finite[:, None]).reshape(-1, *self.shape(scope))
                    likelihoods.append((scope, table))
        return likelihoods, offset

    def scopes_of(self, nodes: Iterable[Name]) -> list[tuple[Name, ...]]:
        """Return the nodes whose joint posterior gives the posterior of each node: itself, or its discrete parents."""
        return [(node,) if node in self.levels else self.graph.parents[self.leaf_of(node)] for node in nodes]

    def posteriors(
        self, evidence: Evidence, requested: Iterable[Iterable[Name]] = (), *, what: str | None = None
    ) -> Iterator[tuple[slice, Posterior]]:
        """Compute posteriors of batches of rows.

        Parameters
        ----------
        evidence : Evidence
        requested : iterable of nodes
            Sets of discrete nodes whose joint posterior is requested.
        what : str, optional
            The text of the progress bar; None shows none.
        """
        wanted = dict.fromkeys(map(tuple, requested))
        wanted |= dict.fromkeys(self.graph.parents[node] for node in self.undefined_rows())
        scopes = {nodes: self.scope(nodes) for nodes in wanted if nodes}
        is_complete = not scopes and evidence.complete_rows(self.levels).all()
        order = [] if is_complete else self.order_with(scopes.values())
        n_entries = sum(math.prod(self.shape(scope)) for scope in scopes.values()) + len(self.levels)
        step = min([max(1, _MAX_CELLS // max(1, n_entries)), *(self._batch_rows(n, evidence) for n in evidence.cells)])
        starts = range(0, evidence.n_rows, step)
        for start in starts if what is None else progress(starts, what):
            rows = slice(start, min(start + step, evidence.n_rows))
            batch = evidence if step >= evidence.n_rows else evidence.take(np.arange(rows.start, rows.stop))
            yield rows, self._posterior(batch, scopes, order)

    def _posterior(self, evidence: Evidence, scopes: Mapping[tuple[Name, ...], Scope], order: list[int]) -> Posterior:
        """Compute the posterior of one batch of rows."""
        codes = self.codes(evidence)
        families = self.families
        tables = [self.tables[node] for node in self.levels]
        likelihoods, log_likelihood = self.likelihoods(evidence)
        joined = [scope for scope in scopes.values() if len(scope) > 1]
        has_codes_only = order and not evidence.cells and not evidence.likelihoods
        if has_codes_only and evidence.n_rows >= _MANY_ROWS and sum(table.size for table in tables) <= MAX_CELLS:
            small = small_posteriors(self._small_factors(codes, families, joined), order, self.sizes, scopes.values())
            if small is not None:
                return Posterior(small[0], dict(zip(scopes, small[1], strict=True)))
        with np.errstate(divide="ignore"):
            for scope, table in zip(families, tables, strict=True):
                rows, index = _complete(codes, scope)
                logs = np.log(table)[index] if table.size < len(rows) else np.log(table[index])
                log_likelihood[rows] += logs
        for scope, logs in likelihoods:
            rows, index = _complete(codes, scope)
            log_likelihood[rows] += logs[(rows, *index)]
        found = {nodes: np.zeros((len(codes), math.prod(self.shape(scope)))) for nodes, scope in scopes.items()}
        if (codes < 0).any():
            single = sorted({scope[0] for scope in scopes.values() if len(scope) == 1})
            joint = {nodes: scope for nodes, scope in scopes.items() if len(scope) > 1}
            by_row = [
                *likelihoods,
                *((scope, found[nodes].reshape(-1, *self.shape(scope))) for nodes, scope in joint.items()),
            ]
            tables += [logs for _, logs in by_row]
            members = [*families, *(scope for scope, _ in by_row)]
            engine = IncompleteRows(codes, self.sizes, members, order, by_row=len(by_row))
            by_node, of_missing = engine.posterior(tables, single)
            log_likelihood += of_missing
            found |= {nodes: by_node[single.index(scope[0])] for nodes, scope in scopes.items() if len(scope) == 1}
            if joint:
                counts, _ = engine.expected_counts(tables)
                last = counts[len(counts) - len(joint) :]
                found |= {nodes: table.reshape(len(codes), -1) for nodes, table in zip(joint, last, strict=True)}
        for nodes, scope in scopes.items():
            rows, index = _complete(codes, scope)
            found[nodes][rows, self.group_of(nodes, index)] = 1.0
        return Posterior(log_likelihood, found)

    def _small_factors(
        self, codes: np.ndarray, families: list[Scope], joined: list[Scope]
    ) -> Iterator[tuple[Scope, np.ndarray]]:
        """Yield the factors for `small_posteriors`: CPTs, the evidence of every row, and ones for joined nodes."""
        for node, scope, of_node in zip(self.levels, families, codes.T, strict=True):
            yield scope, self.tables[node][..., None]
            levels = np.arange(len(self.levels[node]))[:, None]
            yield scope[-1:], ((of_node == levels) | (of_node < 0)).astype(float)
        for scope in joined:
            yield scope, np.ones((*self.shape(scope), 1))

    # ---- Results ----------------------------------------------------------------------------------------------------

    def leaf_log_prob(self, node: Name, cells: Cells, rows: slice = slice(None)) -> np.ndarray:
        """Return log p(cell | combination of parents' levels), (rows, combinations); the maximum where undefined."""
        logs = self._leaf_log_prob(node, cells, rows)
        undefined = np.isnan(logs)  # under maximum likelihood; `check_defined` rejects results that need it
        largest = np.where(undefined, -np.inf, logs).max(axis=1, keepdims=True)
        return np.where(undefined, np.where(np.isneginf(largest), 0.0, largest), logs)

    def _leaf_log_prob(self, node: Name, cells: Cells, rows: slice) -> np.ndarray:
        """Return log p(cell | combination of parents' levels), (rows, combinations); NaN where undefined."""
        scorer = self.leaves[node]
        if isinstance(cells, SparseRows) and (form := self._forms[node]) is not None:
            return form.score(cells.rows(rows))
        block = chunk_of(cells, rows)
        with np.errstate(over="ignore"):  # squared distances beyond the largest float
            logs = scorer.log_prob(block if block.ndim == 2 else block[:, None])
        return logs.sum(axis=-1) if scorer.family.columnwise else logs

    @cached_property
    def _forms(self) -> dict[Name, CellSumForm | None]:
        """The log probability of every continuous node as a sum over cells, if its family has this form."""
        return {node: scorer.cells for node, scorer in self.leaves.items()}

    def _batch_rows(self, node: Name, evidence: Evidence) -> int:
        """Return the batch size for scores of a continuous node."""
        cells = evidence.cells[node]
        width = cells.n_columns if isinstance(cells, SparseRows) else math.prod(np.shape(cells)[1:])
        if isinstance(cells, SparseRows) and self._forms[node] is not None:
            width = 1
        return max(1, _MAX_CELLS // max(1, width * self.n_groups(node)))

    def n_groups(self, node: Name) -> int:
        """Return the number of combinations of levels of a node's parents."""
        return math.prod(len(self.levels[name]) for name in self.graph.parents[node])

    def group(self, node: Name, codes: Mapping[Name, np.ndarray], n_rows: int) -> np.ndarray:
        """Return the index of the combination of parents' levels of every row."""
        parents = self.graph.parents[node]
        return self.group_of(parents, [codes[name] for name in parents]) + np.zeros(n_rows, dtype=np.intp)

    def group_of(self, nodes: Sequence[Name], codes: Iterable[np.ndarray]) -> np.ndarray:
        """Return the index of the combination of levels of some nodes, given by the codes of each."""
        group = np.zeros(1, dtype=np.intp)
        for node, of_node in zip(nodes, codes, strict=True):
            group = group * len(self.levels[node]) + of_node
        return group

    def posterior_mean(self, node: Name, posterior: Posterior, evidence: Evidence, rows: slice) -> np.ndarray:
        """Return the mean of a continuous node in every row: its value if observed, NaN if probably missing."""
        if node in self.interventions:
            return np.asarray(chunk_of(evidence.cells[node], rows), dtype=float)[:, 0]
        leaf, column = self.component_index.get(node, (node, None))
        means = self._leaf_means(leaf, posterior, evidence, rows)
        return means if column is None else means[:, column]

    def _leaf_means(self, node: Name, posterior: Posterior, evidence: Evidence, rows: slice) -> np.ndarray:
        """Return the means of all columns of a leaf."""
        scorer = self.leaves[node]
        n_rows = len(posterior.log_likelihood)
        proba = posterior.joint(self.graph.parents[node])
        absent = np.zeros(n_rows, dtype=bool)
        if node in self.presence:
            proba, absent = self._given_present(node, proba, evidence, rows)
        means = scorer.family.mean(scorer.parameters).reshape(self.n_groups(node), -1)
        if node not in evidence.cells:
            result = proba @ np.nan_to_num(means)
        elif isinstance(evidence.cells[node], SparseRows) and not evidence.cells[node].has_missing:
            result = evidence.cells[node].dense(rows)
        else:
            cells = np.asarray(chunk_of(evidence.cells[node], rows), dtype=float).reshape(n_rows, means.shape[1])
            by_group = conditional_means(scorer.family, scorer.parameters, cells).reshape(n_rows, len(means), -1)
            result = np.where(np.isnan(cells), np.einsum("ng,ngc->nc", proba, np.nan_to_num(by_group)), cells)
        result[absent] = np.nan
        return result if result.shape[1] > 1 else result[:, 0]

    def _given_present(
        self, node: Name, proba: np.ndarray, evidence: Evidence, rows: slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return p(combination of parents' levels | node is present), and the rows in which it is probably missing.

        Evidence on the missing-value indicator or on the node takes precedence. A node of an intervention is present
        unless it is set to the missing value.
        """
        indicator = self.presence[node]
        scorer = self.leaves[indicator]
        is_present = np.nan_to_num(scorer.family.mean(scorer.parameters).ravel())
        total = proba @ is_present
        absent, n_rows = total < 0.5, len(proba)
        if indicator in evidence.cells:
            observed = chunk_of(evidence.cells[indicator], rows).reshape(n_rows)
            absent = np.where(np.isnan(observed), absent, observed == 0)
        elif node in evidence.cells:
            absent = np.isnan(chunk_of(evidence.cells[node], rows)).reshape(n_rows)
        return proba * is_present / np.where(total > 0, total, 1.0)[:, None], absent

    # ---- Undefined parameters ---------------------------------------------------------------------------------------

    def undefined_row_error(self, node: Name, codes: Sequence[int], where: str = "") -> EstimateError:
        """Return the error for a result that depends on an undefined row of a CPT, given by its parents' levels."""
        pairs = zip(self.graph.parents[node], codes, strict=True)
        shown = ", ".join(f"{parent} = {self.levels[parent][k]!r}" for parent, k in pairs)
        variation = ", or no variation" if node in self.leaves else ""
        members = self.components[node].nodes if node in self.components else (node,)
        return EstimateError(
            f"no row has {' or '.join(map(repr, members))}{' with ' + shown if shown else ''}{variation}: its "
            f"distribution there is undefined under maximum likelihood, and this result{where} depends on it.\n"
            "    Use estimate='bayes' or 'map': then the prior defines it."
        )

    def check_defined(
        self, posterior: Posterior, evidence: Evidence, rows: slice, query_nodes: Iterable[Name] | None
    ) -> None:
        """Raise EstimateError if a result depends on a row of a CPT that is undefined under maximum likelihood.

        The result is the posterior of `query_nodes`, or the probability of the evidence if it is None.
        """
        undefined = self.undefined_rows()
        if not undefined:
            return
        graph = self.graph
        is_observed = [evidence.is_observed(node, rows) & (node not in evidence.likelihoods) for node in graph.nodes]
        patterns = np.stack(
            [np.broadcast_to(of_node, len(posterior.log_likelihood)) for of_node in is_observed], axis=1
        )
        for node, groups in undefined.items():
            parents = graph.parents[node]
            reached = posterior.joint(parents)[:, groups.ravel()] > 0
            reached[np.isneginf(posterior.log_likelihood)] = False
            some = np.flatnonzero(reached.any(axis=1))
            for row in some[np.sort(np.unique(patterns[some], axis=0, return_index=True)[1])]:
                observed = [other for other, known in zip(graph.nodes, patterns[row], strict=True) if known]
                if query_nodes is None:
                    depends = node in graph.ancestors([*observed, *evidence.likelihoods])
                else:
                    influenced = graph.influenced_nodes(node, observed, evidence.likelihoods)
                    depends = not influenced.isdisjoint(map(self.leaf_of, query_nodes))
                if depends:
                    codes = np.argwhere(groups)[int(reached[row].argmax())].tolist() if parents else []
                    of_row = f" (row {rows.start + row})" if evidence.n_rows > 1 else ""
                    raise self.undefined_row_error(node, codes, of_row)

    def undefined_rows(self) -> dict[Name, np.ndarray]:
        """Return the combinations of parents' levels with undefined parameters, by node."""
        undefined = dict(self.undefined)
        for node, scorer in self.leaves.items():
            parameters = scorer.parameters
            if not scorer.predictive and node not in self.interventions:
                first = np.asarray(parameters[0] if isinstance(parameters, tuple) else parameters, dtype=float)
                groups = np.isnan(first).reshape(len(first), -1).any(axis=1)
                if groups.any():
                    shape = [len(self.levels[name]) for name in self.graph.parents[node]]
                    undefined[node] = groups.reshape(shape or [1])
        return undefined


def _mask_degenerate_groups(scorer: FactorScorer) -> FactorScorer:
    """Return the scorer of a continuous node; groups of zero variance are undefined, as groups without rows."""
    if scorer.predictive:
        return scorer
    parameters = mask_degenerate_groups(scorer.family, scorer.parameters)
    return FactorScorer(scorer.factor, parameters, False, scorer.constant)


def _complete(codes: np.ndarray, scope: Sequence[int]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return the rows in which some nodes are all observed, and the codes of each node there."""
    columns = codes[:, list(scope)]
    rows = np.flatnonzero((columns >= 0).all(axis=1))
    return rows, tuple(columns[rows].T)
