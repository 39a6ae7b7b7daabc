"""SQL of classifiers that count pairs of columns: averages over parents, and sums over a tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.sql.row_arrays import Array
from tallybayes.data.sql.sql_arrays import balanced
from tallybayes.export.class_probabilities import JOINED, SMALLEST_EXPONENT
from tallybayes.export.portable_scorer import Cell, Parents, Tree

if TYPE_CHECKING:
    from tallybayes.export.sql_query import SqlQuery


class ParentsQuery:
    """The steps of a classifier that averages over parents.

    Cells become rows, which are summed by row and parent. Rows with equal levels are scored once.
    """

    def __init__(self, query: SqlQuery, pairs: Parents | Tree) -> None:
        self.query = query
        self.pairs: Any = pairs
        self.tag = query.free("pairs").removeprefix("pairs")  # of names, since members of a pool have the same steps
        self.required: list[str] = []
        self.columns = [self._named(weight) for weight in query.weights]

    def scores(self) -> Array:
        """Add the steps that compute the scores of every distinct row, and join them to the rows."""
        required, before = self.required, self.query.last
        self._add_tables()
        d = len(self.pairs.cells)
        self._add("rows", f"SELECT DISTINCT {', '.join(['r', *(f'c{j}' for j in range(d))])}\n  FROM tally_ranked")
        known = [f"SELECT r, {j} AS field, c{j} AS cell FROM tally_rows WHERE c{j} >= 0" for j in range(d)]
        self._add("known", "\n  UNION ALL ".join(known))
        missing = [f"SELECT r, {j} AS field FROM tally_rows WHERE c{j} < 0" for j in range(d)]
        self._add("absent", "\n  UNION ALL ".join(missing))
        self._sum()
        averaged = self._named("tally_averaged AS b ON b.r = a.r")
        text = f"SELECT a.*, {self._by_class('b.{0}')}\n  FROM {before} AS a JOIN {averaged}"
        self.query.last = self._named("tally_joined")
        self.query.steps.append((self.query.last, text))
        return self.query.array([f"({w} + {balanced(required)})" if required else w for w in self.columns])

    def _add(self, name: str, text: str) -> None:
        """Add a step."""
        self.query.steps.append((self._named(f"tally_{name}"), self._named(text)))

    def _named(self, text: str) -> str:
        """Return a text with the tag at the names of steps, tables and columns."""
        return re.sub(r"\b(tally_[a-z]\w*|r|[cw]\d+)\b", rf"\1{self.tag}", text) if self.tag else text

    def _by_class(self, template: str) -> str:
        """Return an expression for every class, in which {0} is the name of its column."""
        return ", ".join(map(template.format, self.columns))

    def rank(self, numbers: dict[Cell, Array]) -> None:
        """Add the steps that encode the levels of every row, −1 where missing, and number rows with equal levels.

        They come before the steps of other members, because SQLite copies all steps before them for each use.
        """
        query = self.query
        required = self.required  # expressions that are 0, or NULL where a row has no result
        first = 0
        cells = list(enumerate(zip(self.pairs.cells, self.pairs.levels, strict=True)))
        for start in range(0, len(cells), JOINED):
            columns = []
            for position, (cell, levels) in cells[start : start + JOINED]:
                rows = ((query.dialect.value(level), [first + code]) for code, level in enumerate(levels))
                table = self._named(f"tally_codes_of_{position}")
                query.add_table(table, ["cell"], rows, whole=1)
                level = query.level_of(cell, numbers.get(cell))
                query.join_table(table, f"b{position}", level)
                columns.append(f"COALESCE(b{position}.cell, -1) AS c{position}{self.tag}")
                if query.scores.unseen == "error":
                    required.append(
                        f"CASE WHEN c{position}{self.tag} < 0 AND {level} IS NOT NULL THEN NULL ELSE 0e0 END"
                    )
                first += len(levels)
            query.add_step(f"coded_{start}{self.tag}", columns)
        codes = ", ".join(f"c{position}{self.tag}" for position, _ in cells)
        query.add_step(f"ranked{self.tag}", [f"DENSE_RANK() OVER (ORDER BY {codes}) AS r{self.tag}"])

    def _add_tables(self) -> None:
        """Add the tables of the log probabilities of levels as parents, and of pairs of levels."""
        parents = self.pairs
        own = zip(parents.column.tolist(), parents.own.tolist(), strict=True)
        levels = ((str(level), [field, *weights]) for level, (field, weights) in enumerate(own))
        self.query.add_table(self._named("tally_own"), ["field", *self.columns], levels, whole=1)
        different = np.argwhere(parents.column[:, None] != parents.column).tolist()
        if different:
            pairs = ((str(parent), [child, *parents.given[parent, child].tolist()]) for parent, child in different)
            self.query.add_table(self._named("tally_pairs"), ["child", *self.columns], pairs, whole=1)

    def _sum(self) -> None:
        """Average over possible parents: the levels of known cells, and all levels of columns with missing cells."""
        all_levels = "SELECT a.r, a.field, b.level FROM tally_absent AS a JOIN tally_own AS b ON b.field = a.field"
        self._add("parents", f"SELECT r, field, cell FROM tally_known\n  UNION ALL {all_levels}")
        given = ""
        joins = "\n  JOIN tally_own AS b ON b.level = a.cell"
        if len(self.pairs.cells) > 1:
            given = " + COALESCE(SUM(e.{0}), 0e0)"
            joins += "\n  LEFT JOIN tally_known AS c ON c.r = a.r AND c.field <> a.field"
            joins += "\n  LEFT JOIN tally_pairs AS e ON e.level = a.cell AND e.child = c.cell"
        sums = self._by_class(f"MAX(b.{{0}}){given} AS s{{0}}")
        self._add("terms", f"SELECT a.r, a.cell, {sums}\n  FROM tally_parents AS a{joins}\n  GROUP BY a.r, a.cell")
        self._add("tops", f"SELECT r, {self._by_class('MAX(s{0}) AS m{0}')}\n  FROM tally_terms GROUP BY r")
        logs = self._by_class(f"{self._log_sum_exp('a.s{0}', 'b.m{0}')} AS {{0}}")
        joined = "FROM tally_terms AS a JOIN tally_tops AS b ON b.r = a.r\n  GROUP BY a.r"
        self._add("averaged", f"SELECT a.r, {logs}\n  {joined}")

    def _log_sum_exp(self, value: str, largest: str) -> str:
        """Return the logarithm of the sum of exponentials over a group of rows, in which the largest value is known."""
        difference = f"{value} - {largest}"
        exp = f"CASE WHEN {difference} > {self.query.literal(SMALLEST_EXPONENT)} THEN EXP({difference}) ELSE 0e0 END"
        return f"MAX({largest}) + LN(SUM({exp}))"


class TreeQuery(ParentsQuery):
    """The steps of a tree of columns; sums over missing cells are computed from the leaves upward, by depth."""

    def _add_tables(self) -> None:
        """Add the log probabilities of levels given the parent's level, which is −1 for roots."""
        tree: Tree = self.pairs
        first = np.searchsorted(tree.column, np.arange(len(tree.cells))).tolist()
        self.depth: dict[int, int] = {-1: -1}
        lines: list[tuple[str, list[Any]]] = []
        for j in tree.order:
            parent = tree.parents[j]
            self.depth[j] = self.depth[parent] + 1
            for parent_level, rows in enumerate(tree.tables[j].tolist()):
                key = str(-1 if parent < 0 else first[parent] + parent_level)
                lines += [(key, [first[j] + level, j, self.depth[j], *row]) for level, row in enumerate(rows)]
        self.query.add_table(self._named("tally_pairs"), ["child", "field", "depth", *self.columns], lines, whole=3)
        levels = ((str(level), [field]) for level, field in enumerate(tree.column.tolist()))
        self.query.add_table(self._named("tally_own"), ["field"], levels, whole=1)

    def _sum(self) -> None:
        """Add the messages of the columns below to each possible level of a row, from the deepest columns upward."""
        missing = "SELECT a.r, b.level FROM tally_absent AS a JOIN tally_own AS b ON b.field = a.field"
        known = "SELECT r, cell AS level FROM tally_known\n  UNION ALL SELECT r, -1 FROM tally_rows"
        self._add("possible", f"{known}\n  UNION ALL {missing}")
        below = added = ""
        for depth in range(max(self.depth.values()), -1, -1):
            sums = self._by_class(f"p.{{0}}{added} AS {{0}}")
            joins = f"""
  FROM tally_possible AS c JOIN tally_pairs AS p ON p.child = c.level AND p.depth = {depth}
  JOIN tally_possible AS u ON u.r = c.r AND u.level = p.level{below}"""
            self._add(f"paths_{depth}", f"SELECT c.r, p.level, p.field, {sums}{joins}")
            maxima = self._by_class("MAX({0}) OVER (PARTITION BY r, level, field) AS m{0}")
            self._add(f"tops_{depth}", f"SELECT *, {maxima}\n  FROM tally_paths_{depth}")
            logs = self._by_class(f"{self._log_sum_exp('{0}', 'm{0}')} AS {{0}}")
            grouped = f"FROM tally_tops_{depth} GROUP BY r, level, field"
            self._add(f"messages_{depth}", f"SELECT r, level, {logs}\n  {grouped}")
            total = self._by_class("SUM({0}) AS {0}")
            summed = f"SELECT r, level, {total}\n  FROM tally_messages_{depth} GROUP BY r, level"
            self._add(f"below_{depth}" if depth else "averaged", summed)
            below = f"\n  LEFT JOIN tally_below_{depth} AS b ON b.r = c.r AND b.level = c.level"
            added = " + COALESCE(b.{0}, 0e0)"
