"""Steps of queries of classifiers that count pairs: SelectPairs averages over parents, SelectTree sums along a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.export.portable_scorer import Cell, Parents, Tree
from tallybayes.export.sql_select import JOINED, NOTHING, Select


class SelectPairs(Select):
    """As `Select`, of a classifier that averages over parents: cells become rows, which are summed by row and parent.

    Rows whose cells have the same levels are scored once.
    """

    def _kinds(self) -> dict[Cell, type]:
        return {cell: type(levels[0]) for cell, levels in zip(self._pairs.cells, self._pairs.levels, strict=True)}

    @property
    def _pairs(self) -> Parents | Tree:
        assert self.scores.pairs is not None
        return self.scores.pairs

    def _score(self) -> None:
        """Add what the rows of all levels sum to."""
        columns = [f"w{k}" for k in range(self.n_classes)]
        self._rank()
        self._tables(columns)
        self._sum(columns)
        join = "SELECT a.*, {}\n  FROM tally_ranked AS a JOIN tally_averaged AS b ON b.r = a.r"
        self.steps.append(("tally_joined", join.format(", ".join(f"b.{w}" for w in columns))))
        for w, part in zip(columns, self.parts, strict=True):
            part.append(w)

    def _distinct(self) -> None:
        """Rows of different levels, and their levels one below the other."""
        d = len(self._pairs.cells)
        self.steps.append(
            ("tally_rows", f"SELECT DISTINCT {', '.join(['r', *(f'c{j}' for j in range(d))])}\n  FROM tally_ranked")
        )
        known = [f"SELECT r, {j} AS field, c{j} AS cell FROM tally_rows WHERE c{j} >= 0" for j in range(d)]
        self.steps.append(("tally_known", "\n  UNION ALL ".join(known)))
        absent = [f"SELECT r, {j} AS field FROM tally_rows WHERE c{j} < 0" for j in range(d)]
        self.steps.append(("tally_absent", "\n  UNION ALL ".join(absent)))

    def _sum(self, columns: Sequence[str]) -> None:
        """Average over the parents that there may be: the levels of known cells, and all those of missing ones."""
        self._distinct()
        every = "SELECT a.r, a.field, b.level FROM tally_absent AS a JOIN tally_own AS b ON b.field = a.field"
        self.steps.append(("tally_parents", f"SELECT r, field, cell FROM tally_known\n  UNION ALL {every}"))
        d = len(self._pairs.cells)
        sums, joins = [f"MAX(b.{w}) AS s{w}" for w in columns], ""
        if d > 1:
            sums = [f"MAX(b.{w}) + COALESCE(SUM(e.{w}), 0e0) AS s{w}" for w in columns]
            joins = "\n  LEFT JOIN tally_known AS c ON c.r = a.r AND c.field <> a.field"
            joins += "\n  LEFT JOIN tally_pairs AS e ON e.level = a.cell AND e.child = c.cell"
        joins = f"\n  JOIN tally_own AS b ON b.level = a.cell{joins}\n  GROUP BY a.r, a.cell"
        self.steps.append(("tally_terms", f"SELECT a.r, a.cell, {', '.join(sums)}\n  FROM tally_parents AS a{joins}"))
        tops = ", ".join(f"MAX(s{w}) AS m{w}" for w in columns)
        self.steps.append(("tally_tops", f"SELECT r, {tops}\n  FROM tally_terms GROUP BY r"))
        logs = [f"MAX(b.m{w}) + LN(SUM({self._share(f'a.s{w} - b.m{w}')})) AS {w}" for w in columns]
        summed = (
            f"SELECT a.r, {', '.join(logs)}\n  FROM tally_terms AS a JOIN tally_tops AS b ON b.r = a.r\n  GROUP BY a.r"
        )
        self.steps.append(("tally_averaged", summed))

    def _share(self, gap: str) -> str:
        """The exponential of a difference to the largest, which is at most 0."""
        return f"CASE WHEN {gap} > {self.real(NOTHING)} THEN EXP({gap}) ELSE 0e0 END"

    def _rank(self) -> None:
        """The levels of every row, −1 where there is none, and a number that rows of the same levels have in common."""
        first, codes = 0, []
        for start in range(0, len(self._pairs.cells), JOINED):
            joins, columns = [], []
            for place in range(start, min(start + JOINED, len(self._pairs.cells))):
                cell, levels = self._pairs.cells[place], self._pairs.levels[place]
                table, value = f"tally_levels_{place}", "x" if cell.reading is not None else "l"
                rows = ((self.dialect.value(level), [first + code]) for code, level in enumerate(levels))
                self._values(table, ["cell"], rows, whole=1)
                joins.append(f"\n  LEFT JOIN {table} AS b{place} ON {self._on_level(cell, f'b{place}')}")
                columns.append(f"COALESCE(b{place}.cell, -1) AS c{place}")
                codes.append(f"a.c{place}")
                first += len(levels)
                if self.scores.unseen == "error":
                    self.refused.append(f"(c{place} < 0 AND {value}{self.number_of[cell]} IS NOT NULL)")
            self._step(f"tally_coded_{start}", columns, "".join(joins))
        self._step("tally_ranked", [f"DENSE_RANK() OVER (ORDER BY {', '.join(codes)}) AS r"])

    def _tables(self, columns: Sequence[str]) -> None:
        """What levels weigh as parents, and pairs of them."""
        parents = self._pairs
        assert isinstance(parents, Parents)
        own = zip(parents.column.tolist(), parents.own.tolist(), strict=True)
        lines = ((str(level), [field, *weights]) for level, (field, weights) in enumerate(own))
        self._values("tally_own", ["field", *columns], lines, whole=1)
        apart = np.argwhere(parents.column[:, None] != parents.column).tolist()
        if apart:
            pairs = ((str(above), [child, *parents.given[above, child].tolist()]) for above, child in apart)
            self._values("tally_pairs", ["child", *columns], pairs, whole=1)


class SelectTree(SelectPairs):
    """As `SelectPairs`, of a tree of columns: sums over missing cells go from the leaves up, a depth at a time."""

    def _tables(self, columns: Sequence[str]) -> None:
        """The weights of levels given those of their parents, of which a root has the level −1."""
        tree = self._pairs
        assert isinstance(tree, Tree)
        first = np.searchsorted(tree.column, np.arange(len(tree.cells))).tolist()
        depth: dict[int, int] = {-1: -1}
        lines: list[tuple[str, list[Any]]] = []
        for j in tree.order:
            depth[j], above = depth[tree.parents[j]] + 1, tree.parents[j]
            for up, rows in enumerate(tree.tables[j].tolist()):
                key = str(-1 if above < 0 else first[above] + up)
                lines += [(key, [first[j] + level, j, depth[j], *weights]) for level, weights in enumerate(rows)]
        self._values("tally_pairs", ["child", "field", "depth", *columns], iter(lines), whole=3)
        levels = ((str(level), [field]) for level, field in enumerate(tree.column.tolist()))
        self._values("tally_own", ["field"], levels, whole=1)
        self._depth = max(depth.values())

    def _sum(self, columns: Sequence[str]) -> None:
        """What the columns below each level that a row may have add to it, from the deepest columns up."""
        self._distinct()
        missing = "SELECT a.r, b.level FROM tally_absent AS a JOIN tally_own AS b ON b.field = a.field"
        known = "SELECT r, cell AS level FROM tally_known\n  UNION ALL SELECT r, -1 FROM tally_rows"
        self.steps.append(("tally_possible", f"{known}\n  UNION ALL {missing}"))
        for depth in range(self._depth, -1, -1):
            deepest = depth == self._depth
            sums = [f"p.{w}{'' if deepest else f' + COALESCE(b.{w}, 0e0)'} AS {w}" for w in columns]
            below = f"\n  LEFT JOIN tally_below_{depth + 1} AS b ON b.r = c.r AND b.level = c.level"
            joins = f"""
  FROM tally_possible AS c JOIN tally_pairs AS p ON p.child = c.level AND p.depth = {depth}
  JOIN tally_possible AS u ON u.r = c.r AND u.level = p.level{"" if deepest else below}"""
            self.steps.append((f"tally_paths_{depth}", f"SELECT c.r, p.level, p.field, {', '.join(sums)}{joins}"))
            tops = [f"MAX({w}) OVER (PARTITION BY r, level, field) AS m{w}" for w in columns]
            self.steps.append((f"tally_tops_{depth}", f"SELECT *, {', '.join(tops)}\n  FROM tally_paths_{depth}"))
            logs = [f"MAX(m{w}) + LN(SUM({self._share(f'{w} - m{w}')})) AS {w}" for w in columns]
            message = f"SELECT r, level, {', '.join(logs)}\n  FROM tally_tops_{depth} GROUP BY r, level, field"
            self.steps.append((f"tally_messages_{depth}", message))
            added = ", ".join(f"SUM({w}) AS {w}" for w in columns)
            name = f"tally_below_{depth}" if depth else "tally_averaged"
            self.steps.append((name, f"SELECT r, level, {added}\n  FROM tally_messages_{depth} GROUP BY r, level"))
