"""SQL queries of classifiers that count pairs of columns: averages over parents, and sums over a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.export.portable_scorer import Cell, Parents, Tree
from tallybayes.export.sql_select import JOINED, SMALLEST_EXPONENT, Select


class SelectPairs(Select):
    """The query of a classifier that averages over parents.

    Cells become rows, which are summed by row and parent. Rows with equal levels are scored once.
    """

    def _kinds(self) -> dict[Cell, type]:
        """Return the type of the levels of every cell."""
        return {cell: type(levels[0]) for cell, levels in zip(self._pairs.cells, self._pairs.levels, strict=True)}

    @property
    def _pairs(self) -> Parents | Tree:
        """The tables of the classifier."""
        assert self.scores.pairs is not None
        return self.scores.pairs

    def _score(self) -> None:
        """Add the steps that compute the scores of every distinct row, and join them to the rows."""
        columns = [f"w{k}" for k in range(self.n_classes)]
        self._rank()
        self._tables(columns)
        self._sum(columns)
        join = "SELECT a.*, {}\n  FROM tally_ranked AS a JOIN tally_averaged AS b ON b.r = a.r"
        self.steps.append(("tally_joined", join.format(", ".join(f"b.{w}" for w in columns))))
        for w, part in zip(columns, self.parts, strict=True):
            part.append(w)

    def _distinct(self) -> None:
        """Add the steps that select distinct rows, and their known and missing cells one below the other."""
        d = len(self._pairs.cells)
        self.steps.append(
            ("tally_rows", f"SELECT DISTINCT {', '.join(['r', *(f'c{j}' for j in range(d))])}\n  FROM tally_ranked")
        )
        known = [f"SELECT r, {j} AS field, c{j} AS cell FROM tally_rows WHERE c{j} >= 0" for j in range(d)]
        self.steps.append(("tally_known", "\n  UNION ALL ".join(known)))
        missing = [f"SELECT r, {j} AS field FROM tally_rows WHERE c{j} < 0" for j in range(d)]
        self.steps.append(("tally_absent", "\n  UNION ALL ".join(missing)))

    def _sum(self, columns: Sequence[str]) -> None:
        """Average over possible parents: the levels of known cells, and all levels of columns with missing cells."""
        self._distinct()
        all_levels = "SELECT a.r, a.field, b.level FROM tally_absent AS a JOIN tally_own AS b ON b.field = a.field"
        self.steps.append(("tally_parents", f"SELECT r, field, cell FROM tally_known\n  UNION ALL {all_levels}"))
        d = len(self._pairs.cells)
        sums = [f"MAX(b.{w}) AS s{w}" for w in columns]
        joins = ""
        if d > 1:
            sums = [f"MAX(b.{w}) + COALESCE(SUM(e.{w}), 0e0) AS s{w}" for w in columns]
            joins = "\n  LEFT JOIN tally_known AS c ON c.r = a.r AND c.field <> a.field"
            joins += "\n  LEFT JOIN tally_pairs AS e ON e.level = a.cell AND e.child = c.cell"
        joins = f"\n  JOIN tally_own AS b ON b.level = a.cell{joins}\n  GROUP BY a.r, a.cell"
        self.steps.append(("tally_terms", f"SELECT a.r, a.cell, {', '.join(sums)}\n  FROM tally_parents AS a{joins}"))
        maxima = ", ".join(f"MAX(s{w}) AS m{w}" for w in columns)
        self.steps.append(("tally_tops", f"SELECT r, {maxima}\n  FROM tally_terms GROUP BY r"))
        logs = [f"MAX(b.m{w}) + LN(SUM({self._exp_of(f'a.s{w} - b.m{w}')})) AS {w}" for w in columns]
        summed = (
            f"SELECT a.r, {', '.join(logs)}\n  FROM tally_terms AS a JOIN tally_tops AS b ON b.r = a.r\n  GROUP BY a.r"
        )
        self.steps.append(("tally_averaged", summed))

    def _exp_of(self, gap: str) -> str:
        """Return the exponential of a difference that is at most 0; 0 for very small ones."""
        return f"CASE WHEN {gap} > {self.real(SMALLEST_EXPONENT)} THEN EXP({gap}) ELSE 0e0 END"

    def _rank(self) -> None:
        """Add the steps that encode the levels of every row, −1 where missing, and number rows with equal levels."""
        first = 0
        codes = []
        for start in range(0, len(self._pairs.cells), JOINED):
            joins = []
            columns = []
            for position in range(start, min(start + JOINED, len(self._pairs.cells))):
                cell = self._pairs.cells[position]
                levels = self._pairs.levels[position]
                table = f"tally_levels_{position}"
                value = "x" if cell.reading is not None else "l"
                rows = ((self.dialect.value(level), [first + code]) for code, level in enumerate(levels))
                self._values(table, ["cell"], rows, whole=1)
                joins.append(f"\n  LEFT JOIN {table} AS b{position} ON {self._on_level(cell, f'b{position}')}")
                columns.append(f"COALESCE(b{position}.cell, -1) AS c{position}")
                codes.append(f"a.c{position}")
                first += len(levels)
                if self.scores.unseen == "error":
                    self.no_result.append(f"(c{position} < 0 AND {value}{self.number_of[cell]} IS NOT NULL)")
            self._step(f"tally_coded_{start}", columns, "".join(joins))
        self._step("tally_ranked", [f"DENSE_RANK() OVER (ORDER BY {', '.join(codes)}) AS r"])

    def _tables(self, columns: Sequence[str]) -> None:
        """Add the tables of the log probabilities of levels as parents, and of pairs of levels."""
        parents = self._pairs
        assert isinstance(parents, Parents)
        own = zip(parents.column.tolist(), parents.own.tolist(), strict=True)
        lines = ((str(level), [field, *weights]) for level, (field, weights) in enumerate(own))
        self._values("tally_own", ["field", *columns], lines, whole=1)
        pairs_of_columns = np.argwhere(parents.column[:, None] != parents.column).tolist()
        if pairs_of_columns:
            pairs = (
                (str(parent), [child, *parents.given[parent, child].tolist()]) for parent, child in pairs_of_columns
            )
            self._values("tally_pairs", ["child", *columns], pairs, whole=1)


class SelectTree(SelectPairs):
    """The query of a tree of columns; sums over missing cells are computed from the leaves upward, by depth."""

    def _tables(self, columns: Sequence[str]) -> None:
        """Add the log probabilities of levels given the parent's level, which is −1 for roots."""
        tree = self._pairs
        assert isinstance(tree, Tree)
        first = np.searchsorted(tree.column, np.arange(len(tree.cells))).tolist()
        depth: dict[int, int] = {-1: -1}
        lines: list[tuple[str, list[Any]]] = []
        for j in tree.order:
            depth[j] = depth[tree.parents[j]] + 1
            parent = tree.parents[j]
            for parent_level, rows in enumerate(tree.tables[j].tolist()):
                key = str(-1 if parent < 0 else first[parent] + parent_level)
                lines += [(key, [first[j] + level, j, depth[j], *weights]) for level, weights in enumerate(rows)]
        self._values("tally_pairs", ["child", "field", "depth", *columns], iter(lines), whole=3)
        levels = ((str(level), [field]) for level, field in enumerate(tree.column.tolist()))
        self._values("tally_own", ["field"], levels, whole=1)
        self._depth = max(depth.values())

    def _sum(self, columns: Sequence[str]) -> None:
        """Add the messages of the columns below to each possible level of a row, from the deepest columns upward."""
        self._distinct()
        missing = "SELECT a.r, b.level FROM tally_absent AS a JOIN tally_own AS b ON b.field = a.field"
        known = "SELECT r, cell AS level FROM tally_known\n  UNION ALL SELECT r, -1 FROM tally_rows"
        self.steps.append(("tally_possible", f"{known}\n  UNION ALL {missing}"))
        for depth in range(self._depth, -1, -1):
            is_deepest = depth == self._depth
            sums = [f"p.{w}{'' if is_deepest else f' + COALESCE(b.{w}, 0e0)'} AS {w}" for w in columns]
            below = f"\n  LEFT JOIN tally_below_{depth + 1} AS b ON b.r = c.r AND b.level = c.level"
            joins = f"""
  FROM tally_possible AS c JOIN tally_pairs AS p ON p.child = c.level AND p.depth = {depth}
  JOIN tally_possible AS u ON u.r = c.r AND u.level = p.level{"" if is_deepest else below}"""
            self.steps.append((f"tally_paths_{depth}", f"SELECT c.r, p.level, p.field, {', '.join(sums)}{joins}"))
            maxima = [f"MAX({w}) OVER (PARTITION BY r, level, field) AS m{w}" for w in columns]
            self.steps.append((f"tally_tops_{depth}", f"SELECT *, {', '.join(maxima)}\n  FROM tally_paths_{depth}"))
            logs = [f"MAX(m{w}) + LN(SUM({self._exp_of(f'{w} - m{w}')})) AS {w}" for w in columns]
            message = f"SELECT r, level, {', '.join(logs)}\n  FROM tally_tops_{depth} GROUP BY r, level, field"
            self.steps.append((f"tally_messages_{depth}", message))
            added = ", ".join(f"SUM({w}) AS {w}" for w in columns)
            name = f"tally_below_{depth}" if depth else "tally_averaged"
            self.steps.append((name, f"SELECT r, level, {added}\n  FROM tally_messages_{depth} GROUP BY r, level"))
