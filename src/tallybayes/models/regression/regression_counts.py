"""Counting rows of a regression: joint moments of inputs and targets, and the levels of categorical columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallybayes.data.counting import check_weight, count
from tallybayes.data.encoding import numeric
from tallybayes.data.table import Table
from tallybayes.errors import DataError, StatisticsError
from tallybayes.families.categorical import Categorical
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.models.regression.design_matrix import Design
from tallybayes.statistics.moments import Moments
from tallybayes.tally.domain import Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import SampleWeights
from tallybayes.warnings import DataSourceWarning, warn

_CELLS = 1 << 23  # of terms that are made at a time


def check_counted(design: Design, tally: Tally) -> None:
    """Raise DataError if no row of a target was counted."""
    for target, (_, moments) in zip(design.targets, target_moments(design, tally), strict=True):
        if not moments.group_weights().sum() > 0:
            raise DataError(
                f"target {target!r} has 0 complete rows (target, all inputs, positive weight); expected at least 1.\n"
                "    Check for missing cells and weights of zero."
            )


@dataclass(frozen=True)
class RegressionCounter:
    """How the rows of a regression are counted: its design, and the levels that the user declared.

    Attributes
    ----------
    design : Design
    declared : mapping from column to its levels, or None to take the levels of the data
    """

    design: Design
    declared: Mapping[Name, Iterable[Any] | None]

    @property
    def label_factors(self) -> list[Factor]:
        """p(column) of every categorical column, which records its levels."""
        return [Factor(name, (), Categorical(_as_tuple(self.declared.get(name)))) for name in self.design.labels]

    @property
    def schema(self) -> Schema:
        """The schema: levels are sorted, unless the user declared them in another order."""
        names = [*self.design.labels, *self.design.given]
        return Schema(sorted_domains=tuple(str(name) for name in names if self.declared.get(name) is None))

    def count(self, table: Table, weight: SampleWeights, like: Tally | None) -> Tally:
        """Return the tally of rows in memory; moments have the anchors of `like`, if it has the same columns."""
        design = self.design
        weights = check_weight(weight, table.n_rows)
        missing = design.missing(table)
        if missing.any():
            complete = np.flatnonzero(~missing.any(axis=1))
            _warn_of_missing(design, missing)
            table = table.rows(complete)
            weights = None if weights is None else weights[complete]
        counted = count(table, self.label_factors, weight=weights, schema=self.schema)
        levels = levels_of(design, counted)
        columns = design.columns(levels)
        # Rows of weight 0 may have further levels.
        levels = {name: tuple(dict.fromkeys((*levels[name], *levels_in(table, name)))) for name in design.labels}
        if design.by is not None:
            _check_groups_present(table, design.by)
        targets = {name: _target_of(table, name) for name in design.targets}
        slabs = list(_slabs(targets, max(8, len(columns))))
        totals: list[Tally | None] = [None] * len(slabs)
        step = max(1024, _CELLS // (len(columns) + 1))
        for start in range(0, max(table.n_rows, 1), step):
            chunk = slice(start, start + step)
            rows = table if table.n_rows <= step else table.rows(chunk)
            cells = design.expand(rows, levels) | {name: rows.column(name) for name in design.given}
            cells |= {name: column[chunk] for name, column in targets.items()}
            for index, slab in enumerate(slabs):
                factor = Factor((*columns, *slab), design.given, LinearGaussian())
                total = totals[index]
                anchors = _anchors(like, factor) if total is None else total
                part = self._count_slab(cells, factor, None if weights is None else weights[chunk], anchors)
                totals[index] = part if total is None else total + part
        for total, slab in zip(totals, slabs, strict=True):
            assert total is not None
            counted = counted | _apart(total, columns, slab)
        return counted

    def _count_slab(
        self, cells: Mapping[Name, Any], factor: Factor, weight: np.ndarray | None, like: Tally | None
    ) -> Tally:
        """Return the moments of inputs and some targets, over the rows with observed targets."""
        table = Table({name: cells[name] for name in (*factor.columns, *factor.given)})
        known = ~np.isnan(cells[factor.columns[-1]])
        if not known.all():
            rows = np.flatnonzero(known)
            table = table.rows(rows)
            weight = None if weight is None else weight[rows]
        return count(table, [factor], weight=weight, schema=self.schema, like=like)


def _as_tuple(levels: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """Return declared levels as a tuple."""
    return None if levels is None else tuple(levels)


def _warn_of_missing(design: Design, missing: np.ndarray) -> None:
    """Warn that rows with missing inputs are not counted."""
    n = int(missing.any(axis=1).sum())
    most = int(missing.sum(axis=0).argmax())
    warn(
        f"{n:,} of {len(missing):,} rows are not counted: an input is missing, most often column "
        f"{[*design.numbers, *design.labels][most]!r}.\n    Impute its cells or drop the column to count them.",
        DataSourceWarning,
    )


def _target_of(table: Table, name: Name) -> np.ndarray:
    """Return a target as floats, NaN where it is missing; raise DataError if it is infinite."""
    cells = np.asarray(numeric(table.column(name), name), dtype=np.float64)
    if np.isinf(cells).any():
        row = int(np.flatnonzero(np.isinf(cells))[0])
        raise DataError(
            f"Input y contains infinity: {name!r} is {cells[row]} in row {row}; expected a finite number, or NaN "
            "where it is missing.\n    Drop the row."
        )
    return cells


def _slabs(targets: dict[Name, np.ndarray], most: int) -> Iterator[tuple[Name, ...]]:
    """Yield groups of targets to count together: targets without missing cells share the products of the inputs."""
    whole = [name for name, cells in targets.items() if not np.isnan(cells).any()]
    yield from (tuple(whole[start : start + most]) for start in range(0, len(whole), most))
    yield from ((name,) for name in targets if name not in set(whole))


def _apart(total: Tally, columns: Sequence[Name], targets: Sequence[Name]) -> Tally:
    """Return one factor per target from moments counted together, bit-identical to counting each target alone."""
    (factor,) = total.factors
    (moments,) = total.statistics
    assert isinstance(moments, Moments)
    inputs = range(len(columns))
    columns_of_target = [np.array([*inputs, len(columns) + index], dtype=np.intp) for index in range(len(targets))]
    factors = tuple(factor.replace(columns=(*columns, target)) for target in targets)
    return Tally(factors, [moments.columns(positions) for positions in columns_of_target], total.domains, total.schema)


def levels_in(table: Table, name: Name) -> tuple[Any, ...]:
    """Return the levels that occur in a column."""
    codes, domain = table.encoded(name, True)
    seen = np.unique(codes.astype(np.int64))
    return tuple(domain.levels[code] for code in seen.tolist() if 0 <= code < len(domain.levels))


def _anchors(like: Tally | None, factor: Factor) -> Tally | None:
    """Return the part of a tally for the same factor, whose anchors the moments are centered at; None without it."""
    if like is None:
        return None
    index = _target_index(like, factor.columns[-1])
    same = like.factors[index].columns == factor.columns
    return Tally((factor,), [like.statistics[index]], like.domains, like.schema) if same else None


def _check_groups_present(table: Table, by: Name) -> None:
    """Raise DataError if the group of a row is missing."""
    codes = table.encoded(by, True)[0]
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise DataError(
            f"Input X contains NaN: column {by!r} is missing in row {row}; expected the group of every row.\n"
            "    Drop such rows."
        )


# ---- Merging and subtracting levels ---------------------------------------------------------------------------------


def levels_of(design: Design, tally: Tally) -> dict[Name, tuple[Any, ...]]:
    """Return the levels of every categorical column."""
    return {name: tally.domains[str(name)].levels for name in design.labels}


def _target_index(tally: Tally, target: Name) -> int:
    """Return the index of a target's factor."""
    return next(
        k for k, f in enumerate(tally.factors) if f.columns[-1] == target and isinstance(tally.statistics[k], Moments)
    )


def align_tallies(design: Design, left: Tally, right: Tally) -> tuple[Tally, Tally]:
    """Return two tallies with the same columns: an indicator that one tally lacks gets moments of zero."""
    if not design.labels:
        return left, right
    try:
        levels = {name: left.domains[str(name)].union(right.domains[str(name)]).levels for name in design.labels}
    except KeyError as error:
        raise StatisticsError.incompatible("the columns of labels", list(left.domains), list(right.domains)) from error
    columns = design.columns(levels)
    return _with_columns(left, columns), _with_columns(right, columns)


def merge_tallies(design: Design, left: Tally, right: Tally) -> Tally:
    """Return the sum of two tallies, with the indicators of the levels of both."""
    left, right = align_tallies(design, left, right)
    return left + right


def subtract_tally(design: Design, left: Tally, right: Tally) -> Tally:
    """Return the difference of two tallies, without the indicators of levels that no longer occur."""
    left, right = align_tallies(design, left, right)
    tally = left - right
    return _with_columns(tally, design.columns(levels_of(design, tally))) if design.labels else tally


def _with_columns(tally: Tally, columns: Sequence[Name]) -> Tally:
    """Return a tally whose moments have these input columns, in this order."""
    factors = list(tally.factors)
    statistics = list(tally.statistics)
    for index, (factor, moments) in enumerate(zip(tally.factors, tally.statistics, strict=True)):
        if isinstance(moments, Moments):
            names = (*columns, factor.columns[-1])
            if names != factor.columns:
                position = {name: k for k, name in enumerate(factor.columns)}
                factors[index] = factor.replace(columns=names)
                statistics[index] = moments.columns(np.array([position.get(name, -1) for name in names], dtype=np.intp))
    return Tally(factors, statistics, tally.domains, tally.schema, soft=tally.soft)


def target_moments(design: Design, tally: Tally) -> Iterator[tuple[Factor, Moments]]:
    """Yield every target's factor and moments."""
    for target in design.targets:
        index = _target_index(tally, target)
        moments = tally.statistics[index]
        assert isinstance(moments, Moments)
        yield tally.factors[index], moments
