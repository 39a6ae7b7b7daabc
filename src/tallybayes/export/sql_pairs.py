"""SelectPairs: the steps of a query that averages over the parents of one-dependence classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallybayes.export.scores import Cell, Parents
from tallybayes.export.sql_select import JOINED, NOTHING, Select


class SelectPairs(Select):
    """As `Select`, of a classifier that averages over parents: cells become rows, which are summed by row and parent.

    Rows whose cells have the same levels are scored once.
    """

    def _kinds(self) -> dict[Cell, type]:
        return {cell: type(levels[0]) for cell, levels in zip(self._parents.cells, self._parents.levels, strict=True)}

    @property
    def _parents(self) -> Parents:
        assert self.scores.parents is not None
        return self.scores.parents

    def _score(self) -> None:
        columns = [f"w{k}" for k in range(self.n_classes)]
        self._rank()
        self._tables(columns)
        d = len(self._parents.cells)
        self.steps.append(
            ("tally_rows", f"SELECT DISTINCT {', '.join(['r', *(f'c{j}' for j in range(d))])}\n  FROM tally_ranked")
        )
        known = [f"SELECT r, {j} AS field, c{j} AS cell FROM tally_rows WHERE c{j} >= 0" for j in range(d)]
        self.steps.append(("tally_known", "\n  UNION ALL ".join(known)))
        absent = [f"SELECT r, {j} AS field FROM tally_rows WHERE c{j} < 0" for j in range(d)]
        self.steps.append(("tally_absent", "\n  UNION ALL ".join(absent)))
        every = "SELECT a.r, a.field, b.level FROM tally_absent AS a JOIN tally_own AS b ON b.field = a.field"
        self.steps.append(("tally_parents", f"SELECT r, field, cell FROM tally_known\n  UNION ALL {every}"))
        sums, joins = [f"MAX(b.{w}) AS s{w}" for w in columns], ""
        if d > 1:
            sums = [f"MAX(b.{w}) + COALESCE(SUM(e.{w}), 0e0) AS s{w}" for w in columns]
            joins = "\n  LEFT JOIN tally_known AS c ON c.r = a.r AND c.field <> a.field"
            joins += "\n  LEFT JOIN tally_pairs AS e ON e.level = a.cell AND e.child = c.cell"
        joins = f"\n  JOIN tally_own AS b ON b.level = a.cell{joins}\n  GROUP BY a.r, a.cell"
        self.steps.append(("tally_terms", f"SELECT a.r, a.cell, {', '.join(sums)}\n  FROM tally_parents AS a{joins}"))
        tops = ", ".join(f"MAX(s{w}) AS m{w}" for w in columns)
        self.steps.append(("tally_tops", f"SELECT r, {tops}\n  FROM tally_terms GROUP BY r"))
        logs = []
        for w in columns:
            gap = f"a.s{w} - b.m{w}"
            share = f"CASE WHEN {gap} > {self.real(NOTHING)} THEN EXP({gap}) ELSE 0e0 END"
            logs.append(f"MAX(b.m{w}) + LN(SUM({share})) AS {w}")
        summed = (
            f"SELECT a.r, {', '.join(logs)}\n  FROM tally_terms AS a JOIN tally_tops AS b ON b.r = a.r\n  GROUP BY a.r"
        )
        self.steps.append(("tally_averaged", summed))
        join = "SELECT a.*, {}\n  FROM tally_ranked AS a JOIN tally_averaged AS b ON b.r = a.r"
        self.steps.append(("tally_joined", join.format(", ".join(f"b.{w}" for w in columns))))
        for w, part in zip(columns, self.parts, strict=True):
            part.append(w)

    def _rank(self) -> None:
        """The levels of every row, −1 where there is none, and a number that rows of the same levels have in common."""
        first, codes = 0, []
        for start in range(0, len(self._parents.cells), JOINED):
            joins, columns = [], []
            for place in range(start, min(start + JOINED, len(self._parents.cells))):
                cell, levels = self._parents.cells[place], self._parents.levels[place]
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
        parents = self._parents
        own = zip(parents.column.tolist(), parents.own.tolist(), strict=True)
        lines = ((str(level), [field, *weights]) for level, (field, weights) in enumerate(own))
        self._values("tally_own", ["field", *columns], lines, whole=1)
        apart = np.argwhere(parents.column[:, None] != parents.column).tolist()
        if apart:
            pairs = ((str(above), [child, *parents.given[above, child].tolist()]) for above, child in apart)
            self._values("tally_pairs", ["child", *columns], pairs, whole=1)
