"""Counting rows of a regression: joint moments of inputs and targets, and the levels of categorical columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tallybayes.data.counting import check_weight, count
from tallybayes.data.numeric_columns import numeric
from tallybayes.data.table import Table
from tallybayes.errors import DataError, StatisticsError
from tallybayes.families.categorical import Categorical
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.models.regression.design_matrix import Design, Levels
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.warnings import DataSourceWarning, warn

_CELLS = 1 << 23  # of terms that are made at a time


def check_counted(design: Design, tally: Tally) -> None:
    """Raise DataError if no row of a target was counted."""
    for target in design.targets:
        moments: Any = tally.statistics[_place(tally, target)]
        if not moments.group_weights().sum() > 0:
            raise DataError(
                f"target {target!r} has 0 complete rows (target, all inputs, positive weight); expected at least 1.\n"
                "    Check for missing cells and weights of zero."
            )


def label_factors(model: Any) -> list[Factor]:
    """Return p(column) of every categorical column, which records its levels."""
    declared = model.levels or {}
    return [Factor(name, (), Categorical(declared.get(name))) for name in model._design.labels]


def schema_of(model: Any) -> Schema:
    """Return the schema: levels are sorted, unless the user declared them in another order."""
    declared = model.levels or {}
    design = model._design
    names = [*design.labels, *([] if design.by is None else [design.by])]
    return Schema(sorted_domains=tuple(str(name) for name in names if declared.get(name) is None))


def count_rows(model: Any, table: Table, weight: Any, like: Tally | None) -> Tally:
    """Return the tally of rows in memory."""
    design: Design = model._design
    weights = check_weight(weight, table.n_rows)
    missing = design.missing(table)
    if missing.any():
        whole = np.flatnonzero(~missing.any(axis=1))
        _warn_of_missing(design, missing)
        table = table.rows(whole)
        weights = None if weights is None else weights[whole]
    counted = count(table, label_factors(model), weight=weights, schema=schema_of(model))
    levels = levels_of(design, counted)
    observed_levels = {
        name: read_level(table, name) for name in design.labels
    }  # rows of weight 0 may have further levels
    columns = design.columns(levels)
    given = () if design.by is None else (design.by,)
    if design.by is not None:
        _check_groups_present(table, design.by)
    step = max(1024, _CELLS // (len(columns) + 1))
    targets = {name: _target_of(table, name) for name in design.targets}
    slabs = list(_slabs(targets, max(8, len(columns))))
    totals: list[Tally | None] = [None] * len(slabs)
    for start in range(0, max(table.n_rows, 1), step):
        part = slice(start, start + step)
        rows = table if table.n_rows <= step else table.rows(part)
        weights_of_rows = None if weights is None else weights[part]
        columns_of_rows = design.expand(rows, {**levels, **_all_levels(observed_levels, levels)})
        columns_of_rows |= {name: rows.column(name) for name in given}
        for index, slab in enumerate(slabs):
            factor = Factor((*columns, *slab), given, LinearGaussian())
            before = totals[index]
            cells = {name: targets[name][part] for name in slab}
            moments = _count_slab(
                {**columns_of_rows, **cells}, factor, weights_of_rows, schema_of(model), _anchors(like, factor, before)
            )
            totals[index] = moments if before is None else before + moments
    for total, slab in zip(totals, slabs, strict=True):
        assert total is not None
        counted = counted | _apart(total, columns, slab)
    return counted


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


def _count_slab(columns: dict[Name, Any], factor: Factor, weight: Any, schema: Schema, like: Tally | None) -> Tally:
    """Return the moments of inputs and some targets, over the rows with observed targets."""
    table = Table({name: columns[name] for name in (*factor.columns, *factor.given)})
    known = ~np.isnan(columns[factor.columns[-1]])
    if not known.all():
        known_rows = np.flatnonzero(known)
        table = table.rows(known_rows)
        weight = None if weight is None else weight[known_rows]
    return count(table, [factor], weight=weight, schema=schema, like=like)


def _apart(total: Tally, columns: Sequence[Name], targets: Sequence[Name]) -> Tally:
    """Return one factor per target from moments counted together, bit-identical to counting each target alone."""
    (factor,) = total.factors
    (moments,) = total.statistics
    assert isinstance(moments, Moments)
    inputs = range(len(columns))
    columns_of_target = [np.array([*inputs, len(columns) + index], dtype=np.intp) for index in range(len(targets))]
    factors = tuple(factor.replace(columns=(*columns, target)) for target in targets)
    return Tally(factors, [moments.columns(positions) for positions in columns_of_target], total.domains, total.schema)


def read_level(table: Table, name: Name) -> tuple[Any, ...]:
    """Return the levels that a column has."""
    codes, (domain,) = table.levels([name], lambda _: True)
    seen = np.unique(np.asarray(codes.columns[0]).astype(np.int64))
    return tuple(domain.levels[code] for code in seen.tolist() if 0 <= code < len(domain.levels))


def _all_levels(shown: dict[Name, tuple[Any, ...]], levels: Levels) -> dict[Name, tuple[Any, ...]]:
    """Return the known levels of every column, then the further levels of these rows."""
    return {name: tuple(dict.fromkeys((*levels[name], *more))) for name, more in shown.items()}


def _anchors(like: Tally | None, factor: Factor, total: Tally | None) -> Tally | None:
    """Return a tally of the same factor, whose anchors the moments are centered at; None if there is none."""
    if total is not None or like is None:
        return total
    index = _place(like, factor.columns[-1])
    same = like.factors[index].columns == factor.columns
    return Tally((factor,), [like.statistics[index]], like.domains, like.schema) if same else None


def _check_groups_present(table: Table, by: Name) -> None:
    """Raise DataError if the group of a row is missing."""
    codes = np.asarray(table.levels([by], lambda _: True)[0].columns[0])
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


def _place(tally: Tally, target: Name) -> int:
    """Return the index of a target's factor."""
    return next(
        k for k, f in enumerate(tally.factors) if f.columns[-1] == target and isinstance(tally.statistics[k], Moments)
    )


def merge_tallies(design: Design, left: Tally, right: Tally) -> tuple[Tally, Tally]:
    """Return two tallies with the same columns: an indicator that one tally lacks gets moments of zero."""
    if not design.labels:
        return left, right
    try:
        levels = {name: left.domains[str(name)].union(right.domains[str(name)]).levels for name in design.labels}
    except KeyError as error:
        raise StatisticsError.incompatible("the columns of labels", list(left.domains), list(right.domains)) from error
    columns = design.columns(levels)
    return _with_columns(design, left, columns), _with_columns(design, right, columns)


def subtract_tally_columns(design: Design, left: Tally, right: Tally) -> Tally:
    """Return the difference of two tallies, without the indicators of levels that no longer occur."""
    minuend, subtrahend = merge_tallies(design, left, right)
    tally = minuend - subtrahend
    return _with_columns(design, tally, design.columns(levels_of(design, tally))) if design.labels else tally


def _with_columns(design: Design, tally: Tally, columns: Sequence[Name]) -> Tally:
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
        index = _place(tally, target)
        moments = tally.statistics[index]
        assert isinstance(moments, Moments)
        yield tally.factors[index], moments
