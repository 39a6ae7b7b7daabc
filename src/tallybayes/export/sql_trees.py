"""SQL of trees: a CASE expression for each tree and class."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.data.sql.row_arrays import Array
from tallybayes.data.sql.sql_arrays import balanced
from tallybayes.errors import ExportError
from tallybayes.export.portable_scorer import Leaves
from tallybayes.export.portable_trees import decisions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tallybayes.export.sql_query import SqlQuery

MOST_NUMBERS = 200_000  # of leaves by class in a query
_STEP = 2_000  # of these in a step: databases plan large expressions slowly
_MOST_COLUMNS = 400  # of all steps


class LeavesQuery:
    """The steps of sums over trees."""

    def __init__(self, query: SqlQuery, leaves: Leaves, cells: Sequence[Array]) -> None:
        self.query = query
        self.leaves = leaves
        self.cells = [str(cell.value[0]) for cell in cells]
        self.n_codes = [
            2 + len(edges if levels is None else levels)
            for edges, levels in zip(leaves.edges, leaves.levels, strict=True)
        ]
        self.decisions = decisions_of(leaves.trees, 0, len(leaves.trees))
        n_leaves, n_classes = leaves.values.shape
        if n_leaves * n_classes > MOST_NUMBERS:
            raise ExportError(
                f"{len(leaves.trees)} trees with {n_leaves} leaves and {n_classes} classes are a query of "
                f"{n_leaves * n_classes} numbers; expected at most {MOST_NUMBERS}.\n"
                "    Use fewer trees (n_trees= or max_trees=) or larger leaves (min_leaf=), or export to ONNX."
            )

    def sums(self) -> list[Array]:
        """Add the steps that compute the sums by group, and return these, (classes,) each."""
        classes = self.leaves.values.T.astype(np.float64)
        n_steps = max(1, min(classes.size // _STEP, _MOST_COLUMNS // len(classes)))
        step_of = self.leaves.trees.leaf_starts[:-1] * n_steps // classes.shape[1]
        sums = []
        for first, last in pairwise(self.leaves.groups.tolist()):
            bounds = np.flatnonzero(np.diff(step_of[first:last], prepend=-1, append=n_steps)) + first
            parts = []
            for start, end in pairwise(bounds.tolist()):
                roots = self.decisions.roots[start:end].tolist()
                added = [balanced([self._value_of(node, values) for node in roots]) for values in classes]
                parts += self.query.step(f"trees_{start}", **{f"t{start}_": self.query.array(added)})
            sums.append(self.query.total(parts))
        return sums

    def _value_of(self, node: int, values: np.ndarray) -> str:
        """Return an expression of the value of the leaf below a node."""
        _, column, rule, goes_right, children, leaf = self.decisions
        if leaf[node] >= 0:
            return self.query.literal(float(values[leaf[node]]))
        right = goes_right[rule[node], : self.n_codes[column[node]]]
        if right.all() or not right.any():
            return self._value_of(int(children[node, int(right[0])]), values)
        cell, edges = self.cells[column[node]], self.leaves.edges[column[node]]
        is_level = self.leaves.levels[column[node]] is not None
        right, holds = (~right, False) if right[0] else (right, True)  # missing cells do not fulfil a comparison
        condition = level_condition(cell, right) if is_level else number_condition(cell, right, edges)
        then, otherwise = (self._value_of(int(children[node, int(side == holds)]), values) for side in (True, False))
        return f"CASE WHEN {condition} THEN {then} ELSE {otherwise} END"


def level_condition(code: str, selected: np.ndarray) -> str:
    """Return the condition that a code is selected; code 0 is not."""
    positions = np.flatnonzero(selected)
    if positions[-1] - positions[0] + 1 == len(positions) > 2:
        return f"{code} BETWEEN {positions[0]} AND {positions[-1]}"
    others = np.flatnonzero(~selected)
    few, operator = (positions, "IN") if len(positions) <= len(others) else (others, "NOT IN")
    return f"{code} {operator} ({', '.join(map(str, few.tolist()))})"


def number_condition(x: str, selected: np.ndarray, edges: Sequence[float]) -> str:
    """Return the condition that the bin of a number is selected; missing numbers, of code 0, are not.

    Parameters
    ----------
    x : str
    selected : bool array of shape (edges + 2,)
    edges : sequence of float
    """
    steps = np.flatnonzero(np.diff(np.append(selected, False)))  # the last codes before changes
    runs = []
    for low, high in zip(steps[::2].tolist(), steps[1::2].tolist(), strict=True):
        bounds = [f"{x} >= {edges[low - 1]!r}"] if low else []
        bounds += [f"{x} < {edges[high - 1]!r}"] if high <= len(edges) else []
        runs.append(" AND ".join(bounds) or f"{x} IS NOT NULL")
    return " OR ".join(f"({run})" for run in runs) if len(runs) > 1 else runs[0]
