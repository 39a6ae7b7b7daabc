"""Questions to a Bayesian network as likelihoods on a clique tree: what is known of rows, and what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import CellError, DataError, EstimateError, LabelError
from tallybayes.families.block import Sparse
from tallybayes.families.categorical import Categorical
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.inference.junction import CliqueTree, Likelihood, Propagated
from tallybayes.models.graph import Graph
from tallybayes.models.scoring import Scored, chunk_of, rows_of, wrong_cell
from tallybayes.progress import progress
from tallybayes.sources.encode import is_missing
from tallybayes.sources.table import Table
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

_LABELS = Categorical()
_KEPT = 8  # trees of other questions than the plain ones
_CELLS = 1 << 22  # of the scores of some rows of a measured node


class Known(NamedTuple):
    """What is known of some rows.

    Attributes
    ----------
    n_rows : int
    codes : dict from node to an array of int of shape (n,)
        −1 where the level is not known.
    likelihoods : dict from node to an array of shape (levels,)
        Soft evidence, the same for all rows.
    cells : dict from measured node to its cells
        NaN where they are not known.
    """

    n_rows: int
    codes: dict[Name, np.ndarray]
    likelihoods: dict[Name, np.ndarray]
    cells: dict[Name, Any]

    def is_known(self, node: Name, rows: slice) -> np.ndarray | bool:
        """In which rows something is known of a node."""
        if node in self.codes:
            return self.codes[node][rows] >= 0
        if node in self.cells:
            cells = chunk_of(self.cells[node], rows)
            return ~np.isnan(cells).reshape(len(cells), -1).all(axis=1)
        return node in self.likelihoods

    def whole(self, labels: Iterable[Name]) -> np.ndarray:
        """The rows of which all labels are known."""
        found = np.full(self.n_rows, not self.likelihoods)
        for node in labels:
            found &= self.is_known(node, slice(None))
        return found

    def take(self, rows: np.ndarray) -> Known:
        """Some of the rows."""
        codes = {node: found[rows] for node, found in self.codes.items()}
        cells = {n: found.rows(rows) if isinstance(found, Sparse) else found[rows] for n, found in self.cells.items()}
        return Known(len(rows), codes, self.likelihoods, cells)


class Compiled(NamedTuple):
    """A clique tree of one network, perhaps with some nodes set from outside."""

    tree: CliqueTree
    potentials: list[np.ndarray]


class NetworkInference:
    """The tables of a network, ready for questions.

    Parameters
    ----------
    graph : Graph
    levels : mapping from node to a tuple of labels
        Of the nodes that have labels.
    tables : mapping from node to an array of shape (*parents, levels)
        NaN in rows that are not known.
    leaves : mapping from measured node to Scored
    widths : mapping from measured node to int, optional
        How many columns each has.
    """

    def __init__(
        self,
        graph: Graph,
        levels: Mapping[Name, tuple[Any, ...]],
        tables: Mapping[Name, np.ndarray],
        leaves: Mapping[Name, Scored],
        widths: Mapping[Name, int] | None = None,
    ) -> None:
        self.graph, self.levels, self.widths = graph, levels, widths or {}
        self.leaves = {node: _without_flat_groups(scored) for node, scored in leaves.items()}
        self.domains = {node: Domain(found, str(node)) for node, found in levels.items()}
        self.index = {node: place for place, node in enumerate(levels)}
        self.sizes = [len(found) for found in levels.values()]
        self.unknown = {node: np.isnan(table).any(axis=-1) for node, table in tables.items()}
        self.unknown = {node: rows for node, rows in self.unknown.items() if rows.any()}
        self.tables = {node: _filled(table) for node, table in tables.items()}
        self.trees: dict[Any, CliqueTree] = {}
        self.compiled: dict[Any, Compiled] = {}

    def with_parameters(self, tables: Mapping[Name, np.ndarray], leaves: Mapping[Name, Scored]) -> NetworkInference:
        """The same network with other numbers: its trees are kept."""
        other = NetworkInference(self.graph, self.levels, tables, leaves, self.widths)
        other.trees = self.trees
        return other

    def scope(self, nodes: Iterable[Name]) -> tuple[int, ...]:
        """The places of some nodes."""
        return tuple(self.index[node] for node in nodes)

    def compile(self, do: Iterable[Name] = (), together: Iterable[Name] = ()) -> Compiled:
        """The tree in which the nodes of `do` depend on nothing, and those of `together` share a clique."""
        cut, joined = frozenset(do), frozenset(together)
        if joined:
            plain, wanted = self.compile(cut), set(self.scope(joined))
            if any(wanted.issubset(clique.variables) for clique in plain.tree.cliques):
                return plain
        if (cut, joined) not in self.compiled:
            graph = self.graph.cut(cut)
            married = [nodes for nodes in (*(graph.parents[leaf] for leaf in self.leaves), tuple(joined)) if nodes]
            scopes = [self.scope(nodes) for nodes in (*((*graph.parents[n], n) for n in self.levels), *married)]
            if (cut, joined) not in self.trees:  # sizes are checked here, before anything is made
                self.trees[cut, joined] = CliqueTree(self.sizes, scopes, list(self.levels))
            tree = self.trees[cut, joined]
            tables = [np.ones(len(self.levels[n])) if n in cut else self.tables[n] for n in self.levels]
            tables += [np.ones([len(self.levels[name]) for name in nodes]) for nodes in married]
            self.compiled[cut, joined] = Compiled(tree, tree.load(tables))
            for kept in (self.compiled, self.trees):  # the plain tree, and the last few
                for key in list(kept)[1:-_KEPT]:
                    del kept[key]
        return self.compiled[cut, joined]

    # ---- What is known ----------------------------------------------------------------------------------------------

    def read_rows(self, table: Table, unseen: str, without: Iterable[Name] = ()) -> Known:
        """What the rows of a table tell; columns that are absent are not known."""
        left_out = set(without)
        labels = [node for node in self.levels if node in table.columns and node not in left_out]
        codes = {}
        for node in labels:
            found = rows_of(table, [node], _LABELS, [self.domains[node]], unseen)[:, 0]
            if (found >= 0).any():
                codes[node] = found
        cells = {}
        for node, scored in self.leaves.items():
            if node in table.columns and node not in left_out:
                cells[node] = self._read_leaf(node, rows_of(table, [node], scored.family, [], unseen))
        return Known(table.n_rows, codes, {}, cells)

    def _read_leaf(self, node: Name, found: Any) -> Any:
        """The cells of a measured node, if they are what was fitted."""
        family, cells = self.leaves[node].family, chunk_of(found, slice(None)) if isinstance(found, list) else found
        width = cells.n_columns if isinstance(cells, Sparse) else math.prod(np.shape(cells)[1:])
        if width != self.widths.get(node, width):
            raise DataError(f"node {node!r} has {width} columns here; expected {self.widths[node]}, as at fitting.")
        wrong = None
        try:
            if isinstance(cells, Sparse):
                family.collect(cells)
            else:
                wrong = wrong_cell(family, np.asarray(cells, dtype=float).reshape(len(cells), width))
        except CellError as error:
            wrong = error.row, error.column
        if wrong is not None:
            row = np.ravel(chunk_of(cells, slice(wrong[0], wrong[0] + 1)))
            raise DataError.bad_cell(row[wrong[1]].item(), wrong[0], node, family.expects)
        return cells

    def read_evidence(self, evidence: Mapping[Name, Any] | None, do: Mapping[Name, Any] | None = None) -> Known:
        """What a mapping from nodes to levels, to likelihoods of their levels, or to measured values tells."""
        for name, value in (("evidence", evidence), ("do", do)):
            if value is not None and not isinstance(value, Mapping):
                raise DataError.wrong_type(name, repr(value)[:60], "a mapping, as in {'fire': True}")
        given, done = dict(evidence or {}), dict(do or {})
        self.graph.require([*given, *done])
        both = [node for node in done if node in given]
        if both:
            raise DataError(f"node {both[0]!r} is both observed and set by do=; expected one of them.")
        codes: dict[Name, np.ndarray] = {}
        likelihoods: dict[Name, np.ndarray] = {}
        cells: dict[Name, Any] = {}
        for node, value in (given | done).items():
            if node in self.leaves:
                if is_missing(value) or isinstance(value, Mapping):
                    raise DataError(f"node {node!r} is measured, and known as {value!r}; expected a number.")
                cells |= self.read_rows(Table({node: np.asarray([value])}), "error").cells
            elif isinstance(value, Mapping):
                if node in done:
                    raise DataError(f"do= sets {node!r} to {value!r}; expected one level.")
                likelihoods[node] = self._likelihood(node, value)
            else:
                codes[node] = np.array([self._code(node, value)])
        return Known(1, codes, likelihoods, cells)

    def _code(self, node: Name, level: Any) -> int:
        domain = self.domains[node]
        plain = level.item() if isinstance(level, np.generic) else level
        plain = int(plain) if isinstance(plain, float) and plain.is_integer() else plain
        known = domain.index.get(plain) if isinstance(plain, bool | int | float | str) else None
        if known is None or type(domain.levels[known]) is not type(plain):
            raise LabelError(
                f"node {node!r} has no level {level!r} (known: {', '.join(map(repr, domain.levels[:8]))}).\n"
                "    Check its spelling and type, or leave the node out where it is not known."
            )
        return known

    def _likelihood(self, node: Name, value: Mapping[Any, Any]) -> np.ndarray:
        places = {self._code(node, level): number for level, number in value.items()}
        levels = self.levels[node]
        try:
            found = np.array([float(places[place]) for place in range(len(levels))])
        except (KeyError, TypeError, ValueError):
            found = np.full(1, np.nan)
        if not (np.isfinite(found) & (found >= 0)).all():
            raise DataError.wrong_type(
                f"the soft evidence of {node!r}",
                repr(dict(value)),
                f"a likelihood of at least 0 for each of {', '.join(map(repr, levels[:8]))}",
            )
        return found

    def likelihoods(self, known: Known, rows: slice, do: Iterable[Name] = ()) -> tuple[list[Likelihood], np.ndarray]:
        """The evidence of some rows, and the logs of the factors taken out of it."""
        n_rows = len(range(known.n_rows)[rows])
        found, offset, cut = [], np.zeros(n_rows), set(do)
        for node, codes in known.codes.items():
            part = codes[rows]
            if (part >= 0).any():
                levels = np.arange(len(self.levels[node]))[:, None]
                found.append(Likelihood(self.scope([node]), ((part == levels) | (part < 0)).astype(float)))
        for node, likelihood in known.likelihoods.items():
            found.append(Likelihood(self.scope([node]), likelihood[:, None]))
        for node, cells in known.cells.items():
            if node in cut:
                continue
            logs = _leaf_logs(self.leaves[node], chunk_of(cells, rows))
            parents = self.graph.parents[node]
            if not parents:
                offset += logs[:, 0]
                continue
            lost = np.isnan(logs)  # not known under maximum likelihood: as likely as the best, until looked at
            best = np.where(lost, -np.inf, logs).max(axis=1, keepdims=True)
            logs = np.where(lost, np.where(np.isneginf(best), 0.0, best), logs)
            top = logs.max(axis=1)
            finite = np.where(np.isneginf(top), 0.0, top)
            offset += finite
            shape = [len(self.levels[name]) for name in parents]
            found.append(Likelihood(self.scope(parents), (logs - finite[:, None]).T.reshape(*shape, -1), True))
        return found, offset

    def batches(
        self, known: Known, do: Iterable[Name] = (), *, down: bool = True, what: str | None = None
    ) -> Iterator[tuple[slice, Propagated]]:
        """What follows from the rows, some at a time; `what` is the name of the work, if it shall show progress."""
        compiled = self.compile(do)
        step = min([compiled.tree.batch_rows, *(self._step(node, known) for node in known.cells)])
        starts = range(0, known.n_rows, step)
        for start in starts if what is None else progress(starts, what):
            rows = slice(start, min(start + step, known.n_rows))
            evidence, offset = self.likelihoods(known, rows, do)
            found = compiled.tree.propagate(compiled.potentials, evidence, rows.stop - rows.start, down=down)
            found.log_evidence[:] += offset
            yield rows, found

    # ---- What follows -----------------------------------------------------------------------------------------------

    def log_joint(self, known: Known, rows: np.ndarray) -> np.ndarray:
        """Log p(row) of rows of which all labels are known: a look-up in every table."""
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
                logs = _leaf_logs(self.leaves[node], chunk_of(cells, part))
                logs = logs[np.arange(len(logs)), group[part]]
                lost.setdefault(node, np.zeros(len(rows), dtype=bool))[part] = np.isnan(logs)
                out[part] += np.where(np.isnan(logs), 0.0, logs)
        for node, unknown in lost.items():
            asked = np.flatnonzero(unknown & ~np.isneginf(out))  # an impossible row is so whatever the others say
            if len(asked):
                where = [int(some.codes[name][asked[0]]) for name in self.graph.parents[node]]
                raise self._not_known(node, where, f" (row {int(rows[asked[0]])})")
        return out

    def _step(self, node: Name, known: Known) -> int:
        """How many rows of a measured node to score at a time."""
        cells = known.cells[node]
        width = cells.n_columns if isinstance(cells, Sparse) else math.prod(np.shape(cells)[1:])
        return max(1, _CELLS // max(1, width * self._n_groups(node)))

    def _n_groups(self, node: Name) -> int:
        return math.prod(len(self.levels[name]) for name in self.graph.parents[node])

    def group(self, node: Name, codes: Mapping[Name, np.ndarray], n_rows: int) -> np.ndarray:
        """Which combination of its parents' levels every row has."""
        group = np.zeros(n_rows, dtype=np.intp)
        for name in self.graph.parents[node]:
            group = group * len(self.levels[name]) + codes[name]
        return group

    def expected(self, node: Name, found: Propagated, known: Known, rows: slice) -> np.ndarray:
        """The mean of a measured node in every row; where it is known, what it is."""
        scored, n_rows = self.leaves[node], len(found.log_evidence)
        parents = self.graph.parents[node]
        shares = found.marginal(self.scope(parents)).reshape(-1, n_rows) if parents else np.ones((1, n_rows))
        means = scored.family.expected(scored.parameters).reshape(self._n_groups(node), -1)
        if node not in known.cells:
            out = shares.T @ np.nan_to_num(means)
        else:
            cells = np.asarray(chunk_of(known.cells[node], rows), dtype=float).reshape(n_rows, means.shape[1])
            each = scored.family.conditional_means(scored.parameters, cells).reshape(n_rows, len(means), -1)
            out = np.where(np.isnan(cells), np.einsum("gn,ngc->nc", shares, np.nan_to_num(each)), cells)
        return out if out.shape[1] > 1 else out[:, 0]

    def _not_known(self, node: Name, place: Sequence[int], where: str = "") -> EstimateError:
        pairs = zip(self.graph.parents[node], place, strict=True)
        shown = ", ".join(f"{parent} = {self.levels[parent][k]!r}" for parent, k in pairs) or "nothing is given"
        spread = ", or none with any spread" if node in self.leaves else ""
        return EstimateError(
            f"no row shows {node!r} where {shown}{spread}, so its probability there is not known under maximum "
            f"likelihood, and this answer{where} depends on it.\n"
            "    Use estimate='bayes' or 'map', where a prior speaks for what was not seen."
        )

    # ---- What is not known ------------------------------------------------------------------------------------------

    def refuse_unknown(
        self, found: Propagated, known: Known, rows: slice, asked: Iterable[Name] | None, do: Iterable[Name] = ()
    ) -> None:
        """Refuse an answer that depends on a row of a table that maximum likelihood could not tell.

        Asked for are the posteriors of some nodes or, if None, the probability of what is known.
        """
        lost_rows = self._unknown_rows()
        if not lost_rows:
            return
        graph, cut = self.graph.cut(do), set(do)
        possible = ~np.isneginf(found.log_evidence)
        sure = [known.is_known(node, rows) & (node not in known.likelihoods) for node in graph.nodes]
        patterns = np.stack([np.broadcast_to(here, len(possible)) for here in sure], axis=1)
        depends: dict[Any, bool] = {}
        for node, lost in lost_rows.items():
            parents = graph.parents[node]
            if node in cut:
                continue
            whole = found.marginal(self.scope(parents)) if parents else np.ones((1, len(possible)))
            some = (whole[lost] > 0) & possible
            for row in np.flatnonzero(some.any(axis=0)):
                key = node, patterns[row].tobytes()
                if key not in depends:
                    observed = [other for other, here in zip(graph.nodes, patterns[row], strict=True) if here]
                    depends[key] = self._depends(graph, node, observed, known.likelihoods, asked)
                if depends[key]:
                    place = int(np.flatnonzero(some[:, row])[0])
                    of_row = f" (row {rows.start + row})" if known.n_rows > 1 else ""
                    raise self._not_known(node, np.argwhere(lost)[place].tolist() if parents else [], of_row)

    def _depends(
        self, graph: Graph, node: Name, observed: list[Name], hinted: Iterable[Name], asked: Iterable[Name] | None
    ) -> bool:
        """Whether the table of a node has a say in what is asked, by the graph alone."""
        if asked is None:
            return node in graph.ancestors([*observed, *hinted])
        return bool(graph.reached(node, observed, hinted) & set(asked))

    def _unknown_rows(self) -> dict[Name, np.ndarray]:
        """Which combinations of parents' levels nothing is known of, by node."""
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


def _without_flat_groups(scored: Scored) -> Scored:
    """The parameters, those of groups without any spread as unknown as those of groups without a row."""
    if scored.predictive or not isinstance(scored.family, Gaussian | LogNormal | MultivariateGaussian):
        return scored
    mean, spread = (np.array(part, dtype=float) for part in scored.parameters)
    if isinstance(scored.family, MultivariateGaussian):
        flat: np.ndarray = np.array([not scored.family.is_definite(matrix) for matrix in spread])
    else:
        flat = np.asarray(~(np.broadcast_to(spread, mean.shape) > 0).all(axis=-1))
    spread = np.where(flat.reshape(-1, *(1,) * (spread.ndim - 1)), np.nan, spread)
    return scored._replace(parameters=type(scored.parameters)(np.where(flat[:, None], np.nan, mean), spread))


def _leaf_logs(scored: Scored, cells: np.ndarray) -> np.ndarray:
    """Log p(cell | every combination of parents' levels), (n, combinations)."""
    with np.errstate(over="ignore"):  # as far away as numbers go
        logs = scored.log_prob(cells if cells.ndim == 2 else cells[:, None])
    return logs.sum(axis=-1) if scored.family.columnwise else logs


def _filled(table: np.ndarray) -> np.ndarray:
    """The table with rows that are not known made even: they are looked for where they matter."""
    lost = np.isnan(table).any(axis=-1, keepdims=True)
    return np.where(lost, 1.0 / table.shape[-1], table) if lost.any() else table
