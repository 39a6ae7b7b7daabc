"""Construction of the SQL query of a classifier, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tallybayes.data.sql.dialects import Dialect
from tallybayes.export.output_names import free_names
from tallybayes.export.portable_scorer import (
    IMPOSSIBLE,
    LARGEST,
    SMALLEST,
    Cell,
    Lookup,
    PatternScore,
    PortableScorer,
    RowDensity,
    Term,
)
from tallybayes.export.sql_arithmetic import Arithmetic, balanced
from tallybayes.families._shared.sql_aggregates import SqlColumn

JOINED = 40  # tables per join: SQLite allows at most 64
SMALLEST_EXPONENT = -700.0  # exponentials of much smaller numbers underflow, an error in PostgreSQL
_PATTERNS = 100_000  # size of a table of all patterns of missing cells; if larger, only complete rows have a result


class Select:
    """The steps of the query of a classifier, each a WITH query over the previous one."""

    def __init__(self, scores: PortableScorer, dialect: Dialect) -> None:
        self.scores = scores
        self.dialect = dialect
        self.arithmetic = Arithmetic(dialect)
        self.number_of: dict[Cell, int] = {cell: number for number, cell in enumerate(scores.cells)}
        self.n_classes = len(scores.classes)
        self.steps: list[tuple[str, str]] = []
        self.parts: list[list[str]] = [[] for _ in scores.classes]  # the terms of the score of every class
        self.no_result: list[str] = []  # conditions under which a row has no result, as in memory

    def real(self, value: float) -> str:
        """Return a number as a literal."""
        return self.arithmetic.real(value)

    def text(self, source: str, keep: Sequence[str], proba: bool) -> str:
        """Return the whole query."""
        self._cells(source, keep)
        self._readings()
        self._score()
        self._normalize()
        return self._written(keep, proba)

    def _score(self) -> None:
        """Add the log probabilities of all columns."""
        lookups = [lookup for lookup in self.scores.lookups if lookup.levels]
        for number, start in enumerate(range(0, len(lookups), JOINED)):
            self._look_up(f"tally_looked_up_{number}", lookups[start : start + JOINED])
        for number, rows in enumerate(self.scores.rows):
            self._add_density(number, rows)
        for term in self.scores.terms:
            self._add(term)
        for number, total in enumerate(self.scores.totals):
            for k, part in enumerate(self.arithmetic.rising(f"n{number}", total.start)):
                self.parts[k].append(f"0e0 - ({part})")

    def _step(self, name: str, columns: Sequence[str], joins: str = "") -> None:
        """Add a step whose columns are added to those of the previous step."""
        before = self.steps[-1][0]
        self.steps.append((name, f"SELECT a.*, {', '.join(columns)}\n  FROM {before} AS a{joins}"))

    def _cells(self, source: str, keep: Sequence[str]) -> None:
        """Add the first step: the columns to keep, categories and numbers, under internal names. NaN is missing."""
        dialect = self.dialect
        columns = [f"{dialect.quote(name)} AS k{number}" for number, name in enumerate(keep)]
        kinds = self._kinds()
        for cell, number in self.number_of.items():
            date = self.scores.date_of(cell.column)
            name = dialect.quote(cell.column) if date is None else dialect.part_of_date(str(cell.column), date)
            if cell.reading is not None:
                written = dialect.bool_as_number(name) if cell.support == "binary" else dialect.number(name)
                columns.append(f"{written} AS v{number}")
            elif kinds.get(cell) is str:
                columns.append(f"CAST({name} AS {dialect.label}) AS l{number}")
            elif kinds.get(cell) is int:
                columns.append(f"CASE WHEN {dialect.number(name)} IS NOT NULL THEN {name} END AS l{number}")
            else:
                columns.append(f"{name} AS l{number}")
        listed = ", ".join(columns) if columns else "1 AS l0"
        self.steps.append(("tally_cells", f"SELECT {listed}\n  FROM {source}"))

    def _kinds(self) -> dict[Cell, type]:
        """Return the type of the levels of every cell."""
        return {lookup.cell: type(lookup.levels[0]) for lookup in self.scores.lookups if lookup.levels}

    def _on_level(self, cell: Cell, alias: str) -> str:
        """Return the condition that joins a cell to a table of levels; text is compared with case."""
        binary = " COLLATE BINARY" if cell.reading is None and self.dialect.greatest == "MAX" else ""
        return f"{alias}.level = a.{'x' if cell.reading is not None else 'l'}{self.number_of[cell]}{binary}"

    def _readings(self) -> None:
        """Add the step that transforms numbers, NULL where invalid, and collect conditions of rows without a result.

        In a bag of words no cell is missing.
        """
        columns = []
        dialect = self.dialect
        for cell, number in self.number_of.items():
            if cell.reading is None:
                continue
            value = f"a.v{number}"
            is_tiny = f"ABS({value}) < {self.real(SMALLEST)}"
            ends = f"WHEN {value} > {self.real(LARGEST)} THEN {self.real(LARGEST)}"
            ends += f" WHEN {value} < {self.real(-LARGEST)} THEN {self.real(-LARGEST)} WHEN {is_tiny} THEN 0e0"
            read = f"CASE {ends} ELSE {value} END" if cell.reading == SqlColumn(0) else None
            read = dialect.write(cell.reading, [value], None) if read is None else read
            fits = {
                "binary": f"{value} IN (0, 1)",
                "count": f"{value} >= 0 AND FLOOR({value}) = {value}",
                "nonnegative": f"{value} >= 0",
            }.get(cell.support or "")
            columns.append(f"{read if fits is None else f'CASE WHEN {fits} THEN {read} END'} AS x{number}")
            self.no_result.append(f"ABS({value}) > 1e308")
            if cell.support == "nonnegative":
                self.no_result.append(f"x{number} IS NULL")
            elif self.scores.unseen == "error":
                self.no_result.append(f"(x{number} IS NULL AND v{number} IS NOT NULL)")
        if columns:
            self._step("tally_read", columns)
        columns = []
        for number, total in enumerate(self.scores.totals):
            columns.append(f"{balanced([f'a.x{self.number_of[cell]}' for cell in total.cells])} AS n{number}")
        has_indicator = dict.fromkeys(self.number_of[term.cell] for term in self.scores.terms if term.is_indicator)
        for number in has_indicator:
            if self.scores.cells[number].reading is not None:
                unknown = f"WHEN a.x{number} IS NULL THEN NULL"
                columns.append(f"CASE WHEN a.v{number} IS NULL THEN 0 {unknown} ELSE 1 END AS t{number}")
        if columns:
            self._step("tally_sums", columns)

    def _values(
        self, name: str, columns: Sequence[str], rows: Iterator[tuple[str, Sequence[Any]]], whole: int = 0
    ) -> None:
        """Insert a table of numbers by key, before all other steps; the first `whole` columns are integers."""
        lines: list[str] = []
        for key, numbers in rows:
            written = [self.real(value) for value in numbers[whole:]]
            if not lines:  # the first row determines the types
                written = [self.dialect.cast(value) for value in written]
            written = [*map(str, numbers[:whole]), *written]
            lines.append(f"({', '.join([key, *written])})")
        listed = ",\n    ".join(lines)
        self.steps.insert(0, (f"{name}(level, {', '.join(columns)})", f"VALUES\n    {listed}"))

    def _look_up(self, name: str, lookups: Sequence[Lookup]) -> None:
        """Join the log probabilities of levels and add them up by class."""
        joins = []
        columns = []
        parts: list[list[str]] = [[] for _ in self.scores.classes]
        weights = [f"w{k}" for k in range(self.n_classes)]
        indicators = {self.number_of[term.cell] for term in self.scores.terms if term.is_indicator}
        for lookup in lookups:
            number = self.number_of[lookup.cell]
            table = f"tally_levels_{number}"
            label = lookup.cell.reading is None
            value = f"a.{'l' if label else 'x'}{number}"
            keys = map(self.dialect.value, lookup.levels)
            self._values(table, weights, zip(keys, lookup.table.tolist(), strict=True))
            joins.append(f"\n  LEFT JOIN {table} AS b{number} ON {self._on_level(lookup.cell, f'b{number}')}")
            is_unseen = f"b{number}.level IS NULL AND {value} IS NOT NULL"
            if lookup.unseen is not None and isinstance(lookup.levels[0], int) and label:
                whole = self.dialect.number(value)
                is_unseen += f" AND FLOOR({whole}) = {whole}" if type(lookup.levels[0]) is int else ""
            for k, part in enumerate(parts):
                weight = f"b{number}.w{k}"
                added = f"COALESCE({weight}, 0e0)"
                if lookup.unseen is not None:
                    added = f"CASE WHEN {is_unseen} THEN {self.real(lookup.unseen[k])} ELSE {added} END"
                part.append(added)
            if self.scores.unseen == "error":
                columns.append(f"CASE WHEN {is_unseen} THEN 1 ELSE 0 END AS r{number}")
                self.no_result.append(f"r{number} = 1")
            if label and number in indicators:
                unknown = f"WHEN b{number}.level IS NULL THEN NULL " if self.scores.unseen == "missing" else ""
                columns.append(f"CASE WHEN {value} IS NULL THEN 0 {unknown}ELSE 1 END AS t{number}")
        stage = name.rpartition("_")[2]
        for k, part in enumerate(parts):
            columns.append(f"{balanced(part)} AS g{stage}_{k}")
            self.parts[k].append(f"g{stage}_{k}")
        self._step(name, columns, "".join(joins))

    def _add(self, term: Term) -> None:
        """Add the log probabilities of one column."""
        number = self.number_of[term.cell]
        value = f"{'t' if term.is_indicator else 'x'}{number}"
        for part, written in zip(self.parts, self.arithmetic.term(value, term.form), strict=True):
            part.append(f"COALESCE({written}, 0e0)")

    def _add_density(self, number: int, rows: RowDensity) -> None:
        """Add the log densities of several columns, with the parameters of each row's pattern of missing cells."""
        if not rows.cells:
            return
        codes, patterns = rows.patterns(_PATTERNS)
        complete = patterns[-1]
        self._whiten(number, rows, codes, patterns)
        lengths = []
        for k in range(self.n_classes):
            g = k if len(complete.inverse) > 1 else 0
            deviations = [f"(a.y{number}_{g}_{j} - a.z{number}_h{k}_{j})" for j in range(len(rows.cells))]
            squares = balanced([f"{deviation} * {deviation}" for deviation in deviations])
            lengths.append(f"a.z{number}_s{k} * {squares} AS q{number}_{k}")
        self._step(f"tally_lengths_{number}", lengths)
        for k, part in enumerate(self.parts):
            length = f"q{number}_{k}"
            log_ratio = self.arithmetic.log1p(length, float(complete.power.max())) if rows.bent else length
            part.append(f"z{number}_c{k} - z{number}_p{k} * {log_ratio}")

    def _whiten(self, number: int, rows: RowDensity, codes: list[int], patterns: list[PatternScore]) -> None:
        """Join the parameters of each row's pattern of missing cells, and multiply deviations by the inverse root."""
        classes = range(self.n_classes)
        cells = [f"a.x{self.number_of[cell]}" for cell in rows.cells]
        nonzero = np.argwhere(np.any([pattern.inverse != 0 for pattern in patterns], axis=0))
        entry_names = [f"a{g}_{j}_{i}" for g, j, i in nonzero.tolist()]
        parameter_names = [f"h{k}_{j}" for k in classes for j in range(len(cells))]
        for parameter in ("s", "p", "c"):
            parameter_names += map((parameter + "{}").format, classes)
        lines = zip(map(str, codes), (pattern.numbers(nonzero) for pattern in patterns), strict=True)
        self._values(f"tally_rows_{number}", [*entry_names, *parameter_names], lines)
        centers = map(self.real, patterns[-1].center)
        deviations = [f"COALESCE({x} - {center}, 0e0)" for x, center in zip(cells, centers, strict=True)]
        products: dict[str, list[str]] = {}
        for name, (g, j, i) in zip(entry_names, nonzero.tolist(), strict=True):
            products.setdefault(f"y{number}_{g}_{j}", []).append(f"b.{name} * {deviations[i]}")
        columns = [f"{balanced(parts)} AS {name}" for name, parts in products.items()]
        columns += [f"b.{name} AS z{number}_{name}" for name in parameter_names]
        join = f"\n  LEFT JOIN tally_rows_{number} AS b ON b.level = {_pattern_of(cells)}"
        self._step(f"tally_turned_{number}", columns, join)

    def _normalize(self) -> None:
        """Add the steps from scores to normalized probabilities; rows impossible in all classes get the class prior."""
        scores = self.scores
        calibration = self.scores.calibration
        no_result = " OR ".join(self.no_result)
        columns = []
        for k, part in enumerate(self.parts):
            total = balanced([self.real(scores.log_prior[k]), *part])
            columns.append(f"{f'CASE WHEN {no_result} THEN NULL ELSE {total} END' if no_result else total} AS s{k}")
        self._step("tally_scored", columns)
        classes = range(self.n_classes)
        self._step("tally_best", [f"{self._greatest([f'a.s{k}' for k in classes])} AS best"])
        is_impossible = f"a.best < {self.real(IMPOSSIBLE / 1e5)}"
        prior = scores.log_prior - scores.log_prior.max()
        scaled = f"{self.real(calibration.sharpness)} * " if calibration.sharpness != 1 else ""
        difference = f"{scaled}(CASE WHEN {is_impossible} THEN {{prior}} ELSE a.s{{k}} - a.best END) AS d{{k}}"
        self._step("tally_gaps", [difference.format(prior=self.real(prior[k]), k=k) for k in classes])
        smallest = self.real(SMALLEST_EXPONENT)
        weight = f"CASE WHEN a.d{{0}} > {smallest} THEN EXP(a.d{{0}}) WHEN a.d{{0}} IS NOT NULL THEN 0e0 END AS e{{0}}"
        self._step("tally_weighed", list(map(weight.format, classes)))
        if calibration.steps:
            self._calibrate(calibration.steps)
        weights = list(map(("a.f{}" if calibration.steps else "a.e{}").format, classes))
        self._step("tally_summed", [f"{balanced(weights)} AS total"])
        probabilities = [f"{weight} / a.total" for weight in weights]
        if calibration.contamination:
            kept = self.real(1 - calibration.contamination)
            base_rates = map(self.real, calibration.contamination * calibration.base_rates)
            probabilities = [f"{kept} * ({p}) + {base}" for p, base in zip(probabilities, base_rates, strict=True)]
        self._step("tally_shared", [f"{probability} AS p{k}" for k, probability in enumerate(probabilities)])
        if calibration.reorders:
            self._step("tally_ordered", [f"{self._greatest(list(map('a.p{}'.format, classes)))} AS top"])

    def _calibrate(self, steps: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        """Calibrate the probability of every class against the others, by linear interpolation at its log-odds."""
        odds = []
        for k in range(self.n_classes):
            rest = balanced([f"a.e{other}" for other in range(self.n_classes) if other != k])
            last = self.real(-SMALLEST_EXPONENT)
            odds.append(f"CASE WHEN {rest} > 0 THEN a.d{k} - LN({rest}) WHEN {rest} = 0 THEN {last} END AS o{k}")
        self._step("tally_odds", odds)
        values = []
        for k, (at, value) in enumerate(steps):
            slopes = np.diff(value) / np.diff(at)
            lines = [f"WHEN a.o{k} <= {self.real(at[0])} THEN {self.real(value[0])}"]
            for x, y, slope, end in zip(at[:-1], value[:-1], slopes, at[1:], strict=True):
                line = f"{self.real(y)} + {self.real(slope)} * (a.o{k} - {self.real(x)})" if slope else self.real(y)
                lines.append(f"WHEN a.o{k} <= {self.real(end)} THEN {line}")
            lines.append(f"WHEN a.o{k} IS NOT NULL THEN {self.real(value[-1])}")
            values.append(f"CASE {' '.join(lines)} END AS f{k}")
        self._step("tally_stepped", values)

    def _greatest(self, parts: list[str]) -> str:
        """Return the maximum of expressions, nested because databases limit the number of arguments."""
        while len(parts) > 1:
            groups = [parts[start : start + 90] for start in range(0, len(parts), 90)]
            parts = [f"{self.dialect.greatest}({', '.join(g)})" if len(g) > 1 else g[0] for g in groups]
        return parts[0]

    def _written(self, keep: Sequence[str], proba: bool) -> str:
        """Return the query with all steps and the output columns."""
        dialect = self.dialect
        scores = self.scores
        labels = [dialect.value(label) for label in scores.classes]
        if isinstance(scores.classes[0], float):
            labels = [dialect.cast(label) for label in labels]
        if scores.calibration.reorders:
            cases = [f"WHEN p{k} = top THEN {label}" for k, label in enumerate(labels)]
        else:
            first = f"WHEN best < {self.real(IMPOSSIBLE / 1e5)} THEN {labels[int(scores.log_prior.argmax())]}"
            cases = [first, *(f"WHEN s{k} = best THEN {label}" for k, label in enumerate(labels))]
        output_names = ["prediction", *(f"p({label})" for label in (scores.classes if proba else ()))]
        names = [*keep, *free_names(output_names, keep, dialect.most_bytes)]
        values = [f"k{number}" for number in range(len(keep))]
        values += [f"CASE {' '.join(cases)} END", *(f"p{k}" for k in range(len(output_names) - 1))]
        columns = ",\n  ".join(f"{value} AS {dialect.quote(name)}" for value, name in zip(values, names, strict=True))
        steps = []
        for name, text in self.steps:
            modifier = "" if text.startswith("VALUES") else dialect.materialized
            steps.append(f"{name} AS {modifier}(\n  {text}\n)")
        return "WITH " + ",\n".join(steps) + f"\nSELECT\n  {columns}\nFROM {self.steps[-1][0]}\n"


def _pattern_of(cells: Sequence[str]) -> str:
    """Return the bit mask of the cells that are not missing."""
    return balanced([f"CASE WHEN {cell} IS NULL THEN 0 ELSE {2**i} END" for i, cell in enumerate(cells)])
