"""Inference in a Bayesian network: evidence of rows as likelihoods on a clique tree."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes._utils.progress import progress
from tallybayes.data.text_columns import WordReader
from tallybayes.errors import EstimateError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families._shared.log_prob_forms import CellSumForm
from tallybayes.models.network.continuous_components import ContinuousComponent, with_intervention, with_leaves
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.clique_tree import CliqueTree, Likelihood, Propagated
from tallybayes.models.network.inference.evidence import Evidence, read_evidence
from tallybayes.models.network.inference.triangulation import find_order
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

_WORTH_A_TREE = 1 << 16  # levels of all nodes and rows together: above, a tree of its own for what is always known
_KEPT = 8  # trees of other questions than the plain ones
_CELLS = 1 << 22  # of the scores of some rows of a measured node


class Compiled(NamedTuple):
    """A clique tree of one network, possibly under interventions."""

    tree: CliqueTree
    potentials: list[np.ndarray]


class NetworkInference:
    """The parameters of a network, compiled for inference.

    Parameters
    ----------
    graph : Graph
    domains : mapping from node to Domain
        The levels of the nodes that have labels.
    tables : mapping from node to an array of shape (*parents, levels)
        NaN in rows that are not known.
    leaves : mapping from measured node to Scored
    widths : mapping from measured node to int, optional
        How many columns each has.
    readers : mapping from node to WordReader, optional
        How those are read that are text.
    presence : mapping from measured node to another, optional
        Which says whether it is there, where absence is a value.
    components : mapping from leaf to Component, optional
        Measured nodes that arrows link; `leaves` has one for all of them, of as many columns. Their own graph is
        ``structure``, and ``graph`` the one with these leaves; ``places`` has the leaf of each, and the column there.
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
        self.structure, self.components = graph, components or {}
        self.graph = with_leaves(graph, self.components)
        self.component_index = {
            node: (leaf, place) for leaf, found in self.components.items() for place, node in enumerate(found.nodes)
        }
        self.domains, self.widths, self.readers = domains, widths or {}, readers or {}
        self.presence, levels = presence or {}, {node: domain.display_levels for node, domain in domains.items()}
        self.levels: dict[Name, tuple[Any, ...]] = levels
        self.leaves = {node: _without_flat_groups(scored) for node, scored in leaves.items()}
        self.index = {node: place for place, node in enumerate(levels)}
        self.sizes = [len(found) for found in levels.values()]
        self.unknown = {node: np.isnan(table).any(axis=-1) for node, table in tables.items()}
        self.unknown = {node: rows for node, rows in self.unknown.items() if rows.any()}
        self.tables = {node: _filled(table) for node, table in tables.items()}
        self.trees: dict[Any, CliqueTree] = {}
        self.compiled: dict[Any, Compiled] = {}

    def with_parameters(
        self, tables: Mapping[Name, np.ndarray], leaves: Mapping[Name, FactorScorer]
    ) -> NetworkInference:
        """Return the same network with other parameters; clique trees are kept."""
        kept = (self.widths, self.readers, self.presence)
        other = NetworkInference(self.structure, self.domains, tables, leaves, *kept, components=self.components)
        other.trees = self.trees
        return other

    def is_measured(self, node: Name) -> bool:
        """Return whether a node is continuous."""
        return node in self.leaves or node in self.component_index

    def leaf_of(self, node: Name) -> Name:
        """Return the leaf of a continuous node: itself, or that of its connected component."""
        return self.component_index[node][0] if node in self.component_index else node

    def intervened(self, do: Mapping[Any, Any] | None) -> NetworkInference:
        """Return the network under interventions on connected continuous nodes; those on others act in `compile`."""
        if not isinstance(do, Mapping) or self.component_index.keys().isdisjoint(do):
            return self
        other = copy.copy(self)  # its tables and trees are the same
        cells = read_evidence(self, None, do).cells
        other.leaves = self.leaves | {
            leaf: with_intervention(self.leaves[leaf], cells[leaf][0]) for leaf in self.components if leaf in cells
        }
        return other

    def nodes_to_cut(self, do: Iterable[Name]) -> frozenset[Name]:
        """Return the intervened nodes whose incoming edges are to be removed; `under` did it for connected ones."""
        return frozenset(do).difference(self.component_index)

    @cached_property
    def order(self) -> list[int]:
        """The elimination order of the nodes (see `triangulation`)."""
        families = [(*self.graph.parents[node], node) for node in self.levels]
        families += [self.graph.parents[leaf] for leaf in self.leaves]
        return find_order(self.sizes, [self.scope(nodes) for nodes in families], available_memory() / 8)

    def scope(self, nodes: Iterable[Name]) -> tuple[int, ...]:
        """Return the indices of nodes in the clique tree."""
        return tuple(self.index[node] for node in nodes)

    def compile(self, do: Iterable[Name] = (), together: Iterable[Name] = (), fixed: Iterable[Name] = ()) -> Compiled:
        """Compile the tree under interventions on `do`, with a clique that has all nodes of `together`.

        Those of `fixed` are known in every row: they have one level, and tables that have them are looked up by row.
        """
        key = cut, joined, held = self.nodes_to_cut(do), frozenset(together), frozenset(fixed)
        if joined:
            plain, wanted = self.compile(cut), set(self.scope(joined))
            if any(wanted.issubset(clique.variables) for clique in plain.tree.cliques):
                return plain
        if key not in self.compiled:
            graph = self.graph.without_incoming_edges(cut)
            families = [(*graph.parents[node], node) for node in self.levels]
            families += [nodes for nodes in (*(graph.parents[leaf] for leaf in self.leaves), tuple(joined)) if nodes]
            scopes = [self.scope(name for name in nodes if name not in held) for nodes in families]
            some = [place for place, scope in enumerate(scopes) if scope]
            if key not in self.trees:  # sizes are checked here, before anything is made
                sizes = [1 if node in held else len(found) for node, found in self.levels.items()]
                self.trees[key] = CliqueTree(sizes, [scopes[place] for place in some], list(self.levels))
            tree = self.trees[key]
            given = {
                place: self.tables[node]
                for place, node in enumerate(self.levels)
                if node not in cut and not held.intersection(families[place])
            }
            even = {place: np.ones([tree.sizes[variable] for variable in scopes[place]]) for place in some}
            self.compiled[key] = Compiled(tree, tree.load([given.get(place, even[place]) for place in some]))
            for kept in (self.compiled, self.trees):  # the plain tree, and the last few
                for old in list(kept)[1:-_KEPT]:
                    del kept[old]
        return self.compiled[key]

    def likelihoods(
        self, known: Evidence, rows: slice, do: Iterable[Name] = (), fixed: frozenset[Name] = frozenset()
    ) -> tuple[list[Likelihood], np.ndarray]:
        """Return the evidence of some rows as likelihoods, and the logs of the factors divided out of them."""
        n_rows, cut = len(range(known.n_rows)[rows]), self.nodes_to_cut(do)
        found, offset, graph = [], np.zeros(n_rows), self.graph.without_incoming_edges(cut)
        for node, codes in known.codes.items():
            part = codes[rows]
            if node not in fixed and (part >= 0).any():
                levels = np.arange(len(self.levels[node]))[:, None]
                found.append(Likelihood(self.scope([node]), ((part == levels) | (part < 0)).astype(float)))
        for node, likelihood in known.likelihoods.items():
            if node not in fixed:
                found.append(Likelihood(self.scope([node]), likelihood[:, None]))
        for node in self.levels if fixed else ():
            names = (*graph.parents[node], node)
            if fixed.intersection(names) and node not in cut:
                table = np.broadcast_to(self.tables[node], (1, *self.tables[node].shape))
                scope, picked = self._picked(names, table, known, rows, fixed)
                if scope:
                    found.append(Likelihood(scope, picked))
                else:
                    with np.errstate(divide="ignore"):
                        offset += np.log(picked)
        for node, cells in known.cells.items():
            if node in cut:
                continue
            logs = self.leaf_logs(node, cells, rows)
            parents = self.graph.parents[node]
            shaped = logs.reshape(n_rows, *(len(self.levels[name]) for name in parents))
            scope, picked = self._picked(parents, shaped, known, rows, fixed)
            top = picked.reshape(-1, n_rows).max(axis=0)
            finite = np.where(np.isneginf(top), 0.0, top)
            offset += finite if scope else top
            if scope:
                found.append(Likelihood(scope, picked - finite, True))
        return found, offset

    def _picked(
        self, names: Sequence[Name], tables: np.ndarray, known: Evidence, rows: slice, fixed: frozenset[Name]
    ) -> tuple[tuple[int, ...], np.ndarray]:
        """Reduce tables (rows, *levels) by nodes observed in every row: other nodes, and (*their levels, rows)."""
        n_rows = len(range(known.n_rows)[rows])
        place: list[Any] = [np.arange(n_rows) if len(tables) > 1 else np.zeros(n_rows, dtype=np.intp)]
        place += [known.codes[name][rows] if name in fixed else slice(None) for name in names]
        return self.scope(name for name in names if name not in fixed), np.moveaxis(tables[tuple(place)], 0, -1)

    def shares(self, nodes: Sequence[Name], found: Propagated, known: Evidence, rows: slice) -> np.ndarray:
        """Return p(combination of levels of some nodes | evidence), (combinations, rows)."""
        n_rows = len(found.log_likelihood)
        full = tuple(len(self.levels[name]) for name in nodes)
        free = [n for n, size in zip(nodes, full, strict=True) if found.tree.sizes[self.index[n]] == size]
        table = found.marginal(self.scope(free)) if free else np.ones(n_rows)
        if len(free) < len(nodes):  # the others are known in every row
            place: list[Any] = [np.arange(n_rows)]
            place += [slice(None) if name in free else known.codes[name][rows] for name in nodes]
            spread = np.zeros((n_rows, *full))
            spread[tuple(place)] = np.moveaxis(table, -1, 0)
            table = np.moveaxis(spread, 0, -1)
        return table.reshape(-1, n_rows)

    def batches(
        self,
        known: Evidence,
        do: Iterable[Name] = (),
        *,
        down: bool = True,
        what: str | None = None,
        look_up: bool = False,
        together: Iterable[Name] = (),
    ) -> Iterator[tuple[slice, Propagated]]:
        """Propagate the evidence of batches of rows.

        Parameters
        ----------
        known : Known
        do : nodes
        down : bool, default True
            Whether distributions are wanted, or only the probability of what is known.
        what : str, optional
            The name of the work, if it shall show progress.
        look_up : bool, default False
            Whether nodes that are known in every row may be looked up, where that saves work; see `shares`.
        together : nodes, optional
            Whose joint distribution is wanted.
        """
        fixed: frozenset[Name] = frozenset()
        if look_up and known.n_rows * sum(self.sizes) > _WORTH_A_TREE:
            fixed = frozenset(node for node, codes in known.codes.items() if (codes >= 0).all())
        compiled = self.compile(do, together, fixed)
        step = min([compiled.tree.batch_rows, *(self._step(node, known) for node in known.cells)])
        starts = range(0, known.n_rows, step)
        for start in starts if what is None else progress(starts, what):
            rows = slice(start, min(start + step, known.n_rows))
            likelihoods, offset = self.likelihoods(known, rows, do, fixed)
            found = compiled.tree.propagate(compiled.potentials, likelihoods, rows.stop - rows.start, down=down)
            found.log_likelihood[:] += offset
            yield rows, found

    # ---- Results ----------------------------------------------------------------------------------------------------

    def log_joint(self, known: Evidence, rows: np.ndarray) -> np.ndarray:
        """Return log p(row) of rows whose discrete nodes are all observed: a look-up in every CPT."""
        some, out = known.take(rows), np.zeros(len(rows))
        lost: dict[Name, np.ndarray] = {}
        for node in self.levels:
            names = (*self.graph.parents[node], node)
            place = tuple(some.codes[name] for name in names)
            if node in self.unknown:
                lost[node] = self.unknown[node][place[:-1]]
            with np.errstate(divide="ignore"):
                out += np.log(self.tables[node])[place]
        for node, cells in some.cells.items():
            step = self._step(node, some)
            group = self.group(node, some.codes, len(rows))
            for start in range(0, len(rows), step):
                part = slice(start, start + step)
                logs = self._leaf_logs(node, cells, part)
                logs = logs[np.arange(len(logs)), group[part]]
                lost.setdefault(node, np.zeros(len(rows), dtype=bool))[part] = np.isnan(logs)
                out[part] += np.where(np.isnan(logs), 0.0, logs)
        for node, unknown in lost.items():
            undefined_rows = np.flatnonzero(
                unknown & ~np.isneginf(out)
            )  # an impossible row is so whatever the others say
            if len(undefined_rows):
                where = [int(some.codes[name][undefined_rows[0]]) for name in self.graph.parents[node]]
                raise self.undefined_row_error(node, where, f" (row {int(rows[undefined_rows[0]])})")
        return out

    def leaf_logs(self, node: Name, cells: Any, rows: slice = slice(None)) -> np.ndarray:
        """Log p(cell | every combination of parents' levels) of some rows, as likely as the best where not known."""
        logs = self._leaf_logs(node, cells, rows)
        lost = np.isnan(logs)  # under maximum likelihood; until looked at
        best = np.where(lost, -np.inf, logs).max(axis=1, keepdims=True)
        return np.where(lost, np.where(np.isneginf(best), 0.0, best), logs)

    def _leaf_logs(self, node: Name, cells: Any, rows: slice) -> np.ndarray:
        """Log p(cell | every combination of parents' levels) of some rows, (n, combinations)."""
        scored = self.leaves[node]
        if isinstance(cells, SparseRows) and (form := self._forms[node]) is not None:
            return form.score(cells.rows(rows))
        some = chunk_of(cells, rows)
        with np.errstate(over="ignore"):  # as far away as numbers go
            logs = scored.log_prob(some if some.ndim == 2 else some[:, None])
        return logs.sum(axis=-1) if scored.family.columnwise else logs

    @cached_property
    def _forms(self) -> dict[Name, CellSumForm | None]:
        """The log probability of every measured node as a sum over cells, where its family says one."""
        return {node: scored.cells for node, scored in self.leaves.items()}

    def _step(self, node: Name, known: Evidence) -> int:
        """Return the batch size for scores of a continuous node."""
        cells = known.cells[node]
        if isinstance(cells, SparseRows) and self._forms[node] is not None:
            return max(1, _CELLS // max(1, self.n_groups(node)))
        width = cells.n_columns if isinstance(cells, SparseRows) else math.prod(np.shape(cells)[1:])
        return max(1, _CELLS // max(1, width * self.n_groups(node)))

    def n_groups(self, node: Name) -> int:
        """Return the number of combinations of levels of a node's parents."""
        return math.prod(len(self.levels[name]) for name in self.graph.parents[node])

    def group(self, node: Name, codes: Mapping[Name, np.ndarray], n_rows: int) -> np.ndarray:
        """Return the index of the combination of parents' levels of every row."""
        group = np.zeros(n_rows, dtype=np.intp)
        for name in self.graph.parents[node]:
            group = group * len(self.levels[name]) + codes[name]
        return group

    def expected(self, node: Name, found: Propagated, known: Evidence, rows: slice) -> np.ndarray:
        """Return the mean of a continuous node in every row: its value if observed, NaN if probably missing."""
        if node in self.component_index:
            leaf, place = self.component_index[node]
            return self._expected(leaf, found, known, rows)[:, place]
        return self._expected(node, found, known, rows)

    def _expected(self, node: Name, found: Propagated, known: Evidence, rows: slice) -> np.ndarray:
        """Return `expected` of all columns of a leaf."""
        scored, n_rows = self.leaves[node], len(found.log_likelihood)
        shares = self.shares(self.graph.parents[node], found, known, rows)
        absent = np.zeros(n_rows, dtype=bool)
        if node in self.presence:
            shares, absent = self._if_there(node, shares, known, rows)
        means = scored.family.mean(scored.parameters).reshape(self.n_groups(node), -1)
        if node not in known.cells:
            out = shares.T @ np.nan_to_num(means)
        elif isinstance(known.cells[node], SparseRows) and not known.cells[node].has_missing:
            out = known.cells[node].dense(rows)
        else:
            cells = np.asarray(chunk_of(known.cells[node], rows), dtype=float).reshape(n_rows, means.shape[1])
            each = scored.family.conditional_means(scored.parameters, cells).reshape(n_rows, len(means), -1)
            out = np.where(np.isnan(cells), np.einsum("gn,ngc->nc", shares, np.nan_to_num(each)), cells)
        out[absent] = np.nan
        return out if out.shape[1] > 1 else out[:, 0]

    def _if_there(self, node: Name, shares: np.ndarray, known: Evidence, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """The shares of the combinations of parents' levels if a node is there, and the rows in which it rather is not.

        Where it is known, nothing but that is asked; a node that is set from outside is there unless it is set to be
        absent.
        """
        beside = self.leaves[self.presence[node]]
        there = np.nan_to_num(beside.family.mean(beside.parameters).reshape(-1, 1))
        total = (shares * there).sum(axis=0)
        absent, n_rows = total < 0.5, shares.shape[1]
        if self.presence[node] in known.cells:
            presence_codes = chunk_of(known.cells[self.presence[node]], rows).reshape(n_rows)
            absent = np.where(np.isnan(presence_codes), absent, presence_codes == 0)
        elif node in known.cells:
            absent = np.isnan(chunk_of(known.cells[node], rows)).reshape(n_rows)
        return shares * there / np.where(total > 0, total, 1.0), absent

    def undefined_row_error(self, node: Name, place: Sequence[int], where: str = "") -> EstimateError:
        """Return the error for a result that depends on an undefined row of a CPT, given by its parents' levels."""
        pairs = zip(self.graph.parents[node], place, strict=True)
        shown = ", ".join(f"{parent} = {self.levels[parent][k]!r}" for parent, k in pairs) or "nothing is given"
        spread = ", or none with any spread" if node in self.leaves else ""
        linked = self.components[node].nodes if node in self.components else (node,)
        return EstimateError(
            f"no row shows {' or '.join(map(repr, linked))} where {shown}{spread}, so its probability there is not "
            f"known under maximum likelihood, and this answer{where} depends on it.\n"
            "    Use estimate='bayes' or 'map', where a prior speaks for what was not seen."
        )

    # ---- Undefined parameters ---------------------------------------------------------------------------------------

    def check_defined(
        self,
        found: Propagated,
        known: Evidence,
        rows: slice,
        undefined_rows: Iterable[Name] | None,
        do: Iterable[Name] = (),
    ) -> None:
        """Raise EstimateError if a result depends on a row of a CPT that is undefined under maximum likelihood.

        Asked for are the posteriors of some nodes or, if None, the probability of what is known.
        """
        lost_rows = self.unknown_lines()
        if not lost_rows:
            return
        cut = self.nodes_to_cut(do)
        graph = self.graph.without_incoming_edges(cut)
        possible = ~np.isneginf(found.log_likelihood)
        sure = [known.is_known(node, rows) & (node not in known.likelihoods) for node in graph.nodes]
        patterns = np.stack([np.broadcast_to(here, len(possible)) for here in sure], axis=1)
        depends: dict[Any, bool] = {}
        for node, lost in lost_rows.items():
            parents = graph.parents[node]
            if node in cut:
                continue
            some = (self.shares(parents, found, known, rows)[lost.ravel()] > 0) & possible
            for row in np.flatnonzero(some.any(axis=0)):
                key = node, patterns[row].tobytes()
                if key not in depends:
                    observed = [other for other, here in zip(graph.nodes, patterns[row], strict=True) if here]
                    if undefined_rows is None:
                        depends[key] = node in graph.ancestors([*observed, *known.likelihoods])
                    else:
                        asked_for = {self.leaf_of(other) for other in undefined_rows}
                        depends[key] = bool(graph.influenced_nodes(node, observed, known.likelihoods) & asked_for)
                if depends[key]:
                    place = int(np.flatnonzero(some[:, row])[0])
                    of_row = f" (row {rows.start + row})" if known.n_rows > 1 else ""
                    raise self.undefined_row_error(node, np.argwhere(lost)[place].tolist() if parents else [], of_row)

    def unknown_lines(self) -> dict[Name, np.ndarray]:
        """Return the combinations of parents' levels with undefined parameters, by node."""
        found = dict(self.unknown)
        for node, scored in self.leaves.items():
            parameters = scored.parameters
            if not scored.predictive:
                first = np.asarray(parameters[0] if isinstance(parameters, tuple) else parameters, dtype=float)
                lost = np.isnan(first).reshape(len(first), -1).any(axis=1)
                if lost.any():
                    shape = [len(self.levels[name]) for name in self.graph.parents[node]]
                    found[node] = lost.reshape(shape or [1])
        return found


def _without_flat_groups(scored: FactorScorer) -> FactorScorer:
    """Return the scorer of a continuous node; groups of zero variance are undefined, as groups without rows."""
    return (
        scored
        if scored.predictive
        else scored._replace(parameters=scored.family.mask_degenerate_groups(scored.parameters))
    )


def _filled(table: np.ndarray) -> np.ndarray:
    """Return the CPT with equal probabilities in undefined rows; `refuse_unknown` rejects results that use them."""
    lost = np.isnan(table).any(axis=-1, keepdims=True)
    return np.where(lost, 1.0 / table.shape[-1], table) if lost.any() else table
