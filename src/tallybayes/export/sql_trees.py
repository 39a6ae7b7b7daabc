"""SQL of trees: rows go down by joins with a table of nodes, one join for each level of the trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.data.sql.row_arrays import Array
from tallybayes.errors import ExportError
from tallybayes.export.portable_scorer import LARGEST, Leaves
from tallybayes.export.portable_trees import decisions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tallybayes.export.sql_query import SqlQuery

MOST_NUMBERS = 1_000_000  # of leaves by class in a query
_CHILD = (
    "CASE WHEN n.codes <> '' THEN CASE SUBSTR(n.codes, CAST(c.v AS INTEGER) + 1, 1) WHEN '1' THEN n.upper "
    "ELSE n.lower END WHEN c.v IS NULL THEN n.other WHEN c.v >= n.cut THEN n.upper ELSE n.lower END"
)
_NEXT = f"CASE WHEN n.level IS NULL THEN w.node ELSE {_CHILD} END"  # leaves stay


class LeavesQuery:
    """The steps of sums over trees."""

    def __init__(self, query: SqlQuery, leaves: Leaves, cells: Sequence[Array]) -> None:
        self.query = query
        self.leaves = leaves
        self.cells = [str(cell.value[0]) for cell in cells]
        self.decisions = decisions_of(leaves.trees, 0, len(leaves.trees))
        n_leaves, n_classes = leaves.values.shape
        if n_leaves * n_classes > MOST_NUMBERS:
            raise ExportError(
                f"{len(leaves.trees)} trees with {n_leaves} leaves and {n_classes} classes are a query of "
                f"{n_leaves * n_classes} numbers; expected at most {MOST_NUMBERS}.\n"
                "    Use fewer trees (n_trees= or max_trees=) or larger leaves (min_leaf=), or export to ONNX."
            )

    def sums(self) -> list[Array]:
        """Add the queries that compute the sums by group, and return these, (classes,) each."""
        query = self.query
        n_groups, n_classes = len(self.leaves.groups) - 1, self.leaves.values.shape[1]
        weights = [f"w{k}" for k in range(n_classes)]
        nodes = np.flatnonzero(self.decisions.leaf >= 0)
        values = self.leaves.values[self.decisions.leaf[nodes]].astype(np.float64).tolist()
        rows = [[node, *row] for node, row in zip(nodes.tolist(), values, strict=True)]
        leaves = query.add_rows("leaves", ["level", *weights], rows)
        summed = [
            f"SUM(CASE WHEN w.g = {group} THEN l.{weight} ELSE 0e0 END)" if n_groups > 1 else f"SUM(l.{weight})"
            for group in range(n_groups)
            for weight in weights
        ]
        columns = ", ".join(f"{value} AS s{number}" for number, value in enumerate(summed))
        found = f"{self._walk()} AS w JOIN {leaves} AS l ON l.level = w.node"
        sums = query.add_branch("sums", f"SELECT w.r0, {columns}\n  FROM {found}\n  GROUP BY w.r0")
        query.joins.append(f"\n  JOIN {sums} AS s ON s.r0 = a.r0")
        named = np.array([f"s.s{number}" for number in range(len(summed))]).reshape(n_groups, n_classes)
        return query.step("trees", **{f"t{group}_": query.array(list(named[group])) for group in range(n_groups)})

    def _walk(self) -> str:
        """Add the queries from the roots to the leaves; return the name of the last: rows, groups and nodes."""
        query, decisions = self.query, self.decisions
        group = np.repeat(np.arange(len(self.leaves.groups) - 1), np.diff(self.leaves.groups))
        roots = query.add_rows("roots", ["level", "g"], np.stack([decisions.roots, group], axis=1).tolist())
        start = f"SELECT a.r0, t.g, t.level AS node\n  FROM {query.last} AS a CROSS JOIN {roots} AS t"
        if not decisions.depth:
            return query.add_branch("walk", start)
        nodes = query.add_rows("nodes", ["level", "x", "lower", "upper", "other", "cut", "codes"], self._nodes())
        cells = self._cells_by_column()
        # The second condition on nodes is redundant: by it PostgreSQL expects few rows, and does not compile the query.
        below = f"SELECT w.r0, w.g, {_CHILD} AS node\n  FROM {{}} AS w JOIN {nodes} AS n ON n.level = w.node "
        below += f"AND n.level + 0 = w.node\n  JOIN {cells} AS c ON c.k = w.r0 * {len(self.cells)} + n.x"
        if query.dialect.recursive:
            return query.add_branch("walk", f"{start}\n  UNION ALL\n  {below}")
        walk = query.add_branch("walk", start)
        for _ in range(decisions.depth):
            walk = query.add_branch(
                "walk", below.replace("{}", walk).replace(" JOIN ", " LEFT JOIN ").replace(_CHILD, _NEXT)
            )
        return walk

    def _cells_by_column(self) -> str:
        """Add a query with a row for each row and column, and return its name.

        Rows and columns have one key, so that databases join cells last, after the nodes that name the columns.
        """
        query, used = self.query, np.unique(self.decisions.column[self.decisions.leaf < 0]).tolist()
        table = query.add_rows("columns", ["x"], [[column] for column in used])
        cells = " ".join(f"WHEN {column} THEN {query.dialect.cast(self.cells[column])}" for column in used)
        key = f"a.r0 * {len(self.cells)} + t.x AS k"
        rows = f"SELECT {key}, CASE t.x {cells} END AS v\n  FROM {query.last} AS a CROSS JOIN {table} AS t"
        return query.add_branch("cells_by_column", rows)

    def _nodes(self) -> list[list[int | float | str]]:
        """Return the inner nodes: number, column, child of low, of high and of missing values, cut or codes."""
        _, column, rule, goes_right, children, leaf = self.decisions
        conditions: dict[tuple[int, int], tuple[bool, int, float, str]] = {}
        rows = []
        for node in np.flatnonzero(leaf < 0).tolist():
            key = int(column[node]), int(rule[node])
            if key not in conditions:
                conditions[key] = self._condition(key[0], goes_right[key[1]])
            swapped, other, cut, codes = conditions[key]
            pair = children[node].tolist()
            rows.append([node, key[0], *(pair[::-1] if swapped else pair), pair[other], cut, codes])
        return rows

    def _condition(self, column: int, goes_right: np.ndarray) -> tuple[bool, int, float, str]:
        """Return whether children are swapped, the child of missing cells, and the cut or the codes that go right."""
        levels, edges = self.leaves.levels[column], self.leaves.edges[column]
        right = goes_right[: 2 + len(edges if levels is None else levels)]
        if levels is not None:
            return False, 0, 0.0, "".join("01"[int(one)] for one in right)
        swapped, other = bool(right[1]), int(right[0])
        changes = np.flatnonzero(np.diff(right[1:]))  # at most one
        return swapped, other, float(edges[changes[0]]) if len(changes) else 2 * LARGEST, ""
