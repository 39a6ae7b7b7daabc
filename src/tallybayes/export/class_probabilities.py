"""Class probabilities of a classifier as operations on arrays, which SQL and ONNX have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.sql.row_arrays import MISSING, Array, Engine, Operand, evaluate
from tallybayes.export.column_log_probs import column_log_prob, log_rising
from tallybayes.export.portable_scorer import (
    IMPOSSIBLE,
    LARGEST,
    SMALLEST,
    Cell,
    Leaves,
    Lookup,
    Parents,
    Pool,
    PortableScorer,
    RowDensity,
    Terms,
    Tree,
)
from tallybayes.families._shared.sql_aggregates import Expression, SqlColumn

JOINED = 40  # lookups per step: SQLite joins at most 64 tables
SMALLEST_EXPONENT = -700.0  # exponentials of much smaller numbers underflow, an error in PostgreSQL


class RowEngine(Engine):
    """An engine with the rows of a table."""

    @abstractmethod
    def numbers(self, cells: Sequence[Cell]) -> Array:
        """Return numeric columns as they are: (columns,)."""

    @abstractmethod
    def look_up(self, lookup: Lookup, number: Array | None) -> tuple[Array, Array]:
        """Return the row of a table of levels, missing for other levels, (classes,), and whether the cell is missing.

        Parameters
        ----------
        lookup : Lookup
        number : Array of shape (1,), optional
            The number that is the level; default the category in the column.
        """

    @abstractmethod
    def rows_at(self, codes: Sequence[int], tables: Sequence[np.ndarray], key: Array) -> list[Array]:
        """Return one row of each of some tables, by the code of the row."""

    @abstractmethod
    def pair_scores(self, pairs: Parents | Tree, numbers: dict[Cell, Array]) -> Callable[[], Array]:
        """Return a function that returns the log probabilities by class of a model of pairs of columns."""

    @abstractmethod
    def leaf_sums(self, leaves: Leaves, cells: Sequence[Array]) -> list[Array]:
        """Return the sums over each group of trees of the values of the row's leaves, (classes,) each.

        Parameters
        ----------
        leaves : Leaves
        cells : sequence of Arrays of shape (1,)
            Numbers, and the codes of levels.
        """

    @abstractmethod
    def step(self, name: str, **arrays: Operand) -> list[Any]:
        """Return the same arrays, computed here: a step of a query, so that their expressions are not repeated.

        The keywords are the names of their columns, each of which is followed by the index of the element.
        """


class ClassProbabilities(NamedTuple):
    """The probabilities by class, and the numbers by which classes are ranked: at most 0, or probabilities."""

    probability: Array
    ranked: Array


def class_probabilities(scores: PortableScorer, engine: RowEngine, most: int) -> ClassProbabilities:
    """Return the class probabilities of every row; missing where a row has no result, as in memory.

    Parameters
    ----------
    scores : PortableScorer
    engine : RowEngine
    most : int
        The size of a table of all patterns of missing cells; if it is larger, only complete rows have a result.
    """
    return _RowScore(scores, engine, most).probabilities()


class _RowScore:
    """The score of a row, log p(class, row), as the sum of its terms."""

    def __init__(self, scores: PortableScorer, engine: RowEngine, most: int) -> None:
        self.scores = scores
        self.engine = engine
        self.most = most
        self.with_indicator = scores.with_indicator
        self.terms: list[Array] = []  # of shape (classes,)
        self.penalties: list[Array] = []  # missing where a row has no result, else 0: (1,)
        self.raw: dict[Cell, Array] = {}  # numbers as they are: (1,)
        self.numbers: dict[Cell, tuple[Array, int]] = {}  # transformed numbers of cells of one kind, and the position
        self.indicators: dict[Cell, Array] = {}  # missing-value indicators of categorical cells: (1,)
        self._read_numbers()
        self.pair_scores = [
            engine.pair_scores(part, {cell: self._columns((cell,)) for cell in part.cells if cell.reading is not None})
            for part in scores.parts
            if isinstance(part, Parents | Tree)
        ]

    def probabilities(self) -> ClassProbabilities:
        """Return the class probabilities."""
        return _normalized(self.scores, self.engine, self.total())

    def total(self) -> Operand:
        """Return the score: (classes,)."""
        parts = self.scores.parts
        lookups = [part for part in parts if isinstance(part, Lookup) and part.levels]
        for start in range(0, len(lookups), JOINED):
            self._look_up(lookups[start : start + JOINED], str(start // JOINED))
        for number, part in enumerate(parts):
            if isinstance(part, RowDensity) and part.cells:
                self._add_density(part, str(number))
            elif isinstance(part, Terms):
                self._add_terms(part, str(number))
            elif isinstance(part, Leaves):
                self.terms += self._leaf_sums(part, str(number))
            elif isinstance(part, Pool):
                self._add_pool(part, str(number))
        self.terms += [scores() for scores in self.pair_scores]
        if self.penalties:
            self.terms += self.engine.step("requirements", required=self.engine.total(self.penalties))
        return self.engine.total(self.terms) + self.scores.log_prior if self.terms else self.scores.log_prior

    # ---- Cells -----------------------------------------------------------------------------------------------------

    def _read_numbers(self) -> None:
        """Transform numbers; invalid ones are missing, and some of them leave a row without result."""
        groups: dict[tuple[Expression, str | None], list[Cell]] = {}
        for cell in self.scores.own_cells:
            if cell.reading is not None:
                groups.setdefault((cell.reading, cell.support), []).append(cell)
        raw = [self.engine.numbers(cells) for cells in groups.values()]
        read = [self._read(numbers, *kind) for numbers, kind in zip(raw, groups, strict=True)]
        read = self.engine.step("read", **{f"x{k}_": x for k, x in enumerate(read)})
        for x, numbers, ((_, support), cells) in zip(read, raw, groups.items(), strict=True):
            has_no_result = numbers.abs() > 1e308
            if support == "nonnegative":  # no cell of a bag of words is missing
                has_no_result = has_no_result | x.is_missing()
            elif self.scores.unseen == "error":
                has_no_result = has_no_result | (x.is_missing() & ~numbers.is_missing())
            self.penalties.append(self.engine.where(has_no_result, MISSING, 0.0).sum(keep=True))
            for position, cell in enumerate(cells):
                self.numbers[cell] = x, position
                self.raw[cell] = numbers.pick([position])

    def _read(self, numbers: Array, reading: Expression, support: str | None) -> Array:
        """Return transformed numbers; invalid ones are missing."""
        where = self.engine.where
        x = evaluate(reading, [numbers])
        if reading == SqlColumn(0):
            x = where(x.abs() < SMALLEST, 0.0, x)
            x = where(numbers > LARGEST, LARGEST, where(numbers < -LARGEST, -LARGEST, x))
        if support == "binary":
            return where(numbers.equals(0.0) | numbers.equals(1.0), x, MISSING)
        if support == "count":
            return where((numbers >= 0.0) & numbers.equals(numbers.floor()), x, MISSING)
        return x if support is None else where(numbers >= 0.0, x, MISSING)

    def _columns(self, cells: tuple[Cell, ...]) -> Array:
        """Return transformed numbers of one kind: (columns,)."""
        x, _ = self.numbers[cells[0]]
        return x.pick([self.numbers[cell][1] for cell in cells])

    # ---- Terms -----------------------------------------------------------------------------------------------------

    def _look_up(self, lookups: list[Lookup], stage: str) -> None:
        """Add log probabilities of levels; missing cells, and unseen levels without log probability, add 0."""
        where = self.engine.where
        parts = []
        penalties = []
        indicators = {}
        for lookup in lookups:
            cell = lookup.cell
            log_p, is_missing = self.engine.look_up(lookup, None if cell.reading is None else self._columns((cell,)))
            is_unseen = log_p.pick([0]).is_missing() & ~is_missing
            part = where(log_p.is_missing(), 0.0, log_p)
            parts.append(part if lookup.unseen is None else where(is_unseen, lookup.unseen, part))
            if self.scores.unseen == "error":
                penalties.append(where(is_unseen, MISSING, 0.0))
            if cell.reading is None and cell in self.with_indicator:
                present = where(is_unseen, MISSING, 1.0) if self.scores.unseen == "missing" else 1.0
                indicators[cell] = where(is_missing, 0.0, present)
        computed = {f"g{stage}_": self.engine.total(parts)}
        computed |= {f"r{stage}_{number}_": penalty for number, penalty in enumerate(penalties)}
        computed |= {f"t{stage}_{number}_": indicator for number, indicator in enumerate(indicators.values())}
        part, *arrays = self.engine.step(f"lookups_{stage}", **computed)
        self.terms.append(part)
        self.penalties += arrays[: len(penalties)]
        self.indicators |= dict(zip(indicators, arrays[len(penalties) :], strict=True))

    def _add_terms(self, terms: Terms, number: str) -> None:
        """Add the log probabilities of columns; missing cells add 0."""
        x = self._indicator(terms.cells[0]) if terms.is_indicator else self._columns(terms.cells)
        log_prob = column_log_prob(x.expand(-1), terms.form)
        self.terms.append(self.engine.where(x.expand(-1).is_missing(), 0.0, log_prob).sum(-2))
        if terms.total is not None:
            (n,) = self.engine.step(f"sum_{number}", **{f"n{number}_": x.sum(keep=True)})
            self.terms.append(0.0 - log_rising(n, terms.total))

    def _indicator(self, cell: Cell) -> Array:
        """Return a missing-value indicator; it is missing if the cell is invalid or unseen."""
        where = self.engine.where
        if cell in self.indicators:
            return self.indicators[cell]
        return where(self.raw[cell].is_missing(), 0.0, where(self._columns((cell,)).is_missing(), MISSING, 1.0))

    def _add_density(self, rows: RowDensity, number: str) -> None:
        """Add the log densities of several columns, with the parameters of each row's pattern of missing cells."""
        x = self._columns(rows.cells)
        codes, patterns = rows.patterns(self.most)
        center, *tables = (np.stack(values) for values in zip(*patterns, strict=True))
        deviation = x - center[-1]
        if len(codes) == 1:  # without the cells of incomplete rows
            inverse, *others = (table[0] for table in tables)
        else:
            bits = 1 << np.arange(len(rows.cells))
            key = self.engine.where(x.is_missing(), 0, bits).sum()
            inverse, *others = self.engine.rows_at(codes, tables, key)
            deviation = self.engine.where(x.is_missing(), 0.0, deviation)
        whitened = (inverse @ deviation.expand(-1, -3)).squeeze()
        names = (f"{letter}{number}_" for letter in "yhspc")
        computed = dict(zip(names, (whitened, *others), strict=True))
        whitened, shift, scale, power, log_norm = self.engine.step(f"whitened_{number}", **computed)
        distance = whitened - shift
        length = scale * (distance * distance).sum()
        (length,) = self.engine.step(f"lengths_{number}", **{f"q{number}_": length})
        log_ratio = length.log1p(patterns[-1].power.max()) if rows.bent else length
        self.terms.append(log_norm - power * log_ratio)

    def _add_pool(self, pool: Pool, number: str) -> None:
        """Add the weighted logarithms of the class probabilities of members."""
        read = [
            _RowScore(one, self.engine, self.most) if isinstance(one, PortableScorer) else one for one in pool.members
        ]
        members: list[Array] = []
        for k, member in enumerate(read):
            if isinstance(member, Leaves):
                members += self._leaf_sums(member, f"{number}_{k}")
            else:
                members.append(member.probabilities().probability)
        where = self.engine.where
        logs = [
            where(p < pool.least, pool.least, p).log() * weight for p, weight in zip(members, pool.weights, strict=True)
        ]
        self.terms += self.engine.step(f"pool_{number}", **{f"u{number}_": self.engine.total(logs)})

    def _leaf_sums(self, leaves: Leaves, number: str) -> list[Array]:
        """Return the scaled sums of the values of the row's leaves by group of trees."""
        read = [self.raw.get(cell) for cell in leaves.cells]
        found = {j: levels for j, levels in enumerate(leaves.levels) if levels is not None}
        for some in (list(found)[start : start + JOINED] for start in range(0, len(found), JOINED)):
            codes = {f"c{number}_{j}_": self._code(leaves.cells[j], found[j]) for j in some}
            for j, code in zip(some, self.engine.step(f"codes_{number}_{some[0]}", **codes), strict=True):
                read[j] = code
        sums = self.engine.leaf_sums(leaves, [x for x in read if x is not None])
        scaled = {f"m{number}_{k}_": one * scale for k, (one, scale) in enumerate(zip(sums, leaves.scale, strict=True))}
        return self.engine.step(f"means_{number}", **scaled)

    def _code(self, cell: Cell, levels: tuple[Any, ...]) -> Array:
        """Return the code of a categorical cell: 0 if it is missing, then the levels, and one for all others."""
        where = self.engine.where
        table, other = np.arange(1.0, len(levels) + 1)[:, None], np.array([len(levels) + 1.0])
        code, is_missing = self.engine.look_up(Lookup(cell, levels, table, other), None)
        return where(is_missing, 0.0, where(code.is_missing(), other, code))


def _normalized(scores: PortableScorer, engine: RowEngine, log_joint: Operand) -> ClassProbabilities:
    """Return normalized probabilities from scores; rows impossible in all classes get the class prior."""
    where = engine.where
    calibration = scores.calibration
    (score,) = engine.step("scored", s=log_joint)
    (best,) = engine.step("best", best=score.max())
    prior = scores.log_prior - scores.log_prior.max()
    difference = where(best < IMPOSSIBLE / 1e5, prior, score - best)
    if scores.least is not None:
        (difference,) = engine.step("relative", h=difference)
        (total,) = engine.step("totals", z=_exp(difference).sum(keep=True))
        (log_proba,) = engine.step("logs", lp=difference - total.log())
        difference = where(log_proba < scores.least, scores.least, log_proba)
    difference = difference / calibration.temperature
    (difference,) = engine.step("differences", d=difference)
    (weight,) = engine.step("weights", e=_exp(difference))
    if calibration.log_odds:
        n_classes = len(scores.classes)
        rest = (weight.expand(-2) * (1.0 - np.eye(n_classes))).sum()
        odds = where(rest.equals(0.0), -SMALLEST_EXPONENT, difference - rest.log())
        (odds,) = engine.step("odds", o=odds)
        (weight,) = engine.step("calibrated", f=_interpolated(odds, calibration.log_odds, calibration.values))
    probability = weight / engine.step("sum", total=weight.sum(keep=True))[0]
    if calibration.contamination:
        probability = probability * (1 - calibration.contamination) + calibration.contamination * calibration.base_rates
    (probability,) = engine.step("probabilities", p=probability)
    return ClassProbabilities(probability, probability if scores.reorders else difference)


def _exp(x: Array) -> Array:
    """Return the exponentials, 0 where they underflow."""
    return x.engine.where(x < SMALLEST_EXPONENT, 0.0, x.exp())


def _interpolated(x: Array, corners: tuple[np.ndarray, ...], values: tuple[np.ndarray, ...]) -> Array:
    """Return piecewise linear functions of the elements of an array, one for each, by their vertices."""
    widest = max(map(len, corners))
    at, value = (np.stack([np.pad(one, (0, widest - len(one)), "edge") for one in part]) for part in (corners, values))
    width = np.diff(at)
    slope = np.diff(value) / np.where(width > 0, width, 1.0)
    excess = x.expand(-1) - at[:, :-1]  # (classes, lines)
    where = x.engine.where
    excess = where(excess > width, width, where(excess < 0.0, 0.0, excess))
    return (excess * slope).sum() + value[:, 0]
