"""Counting the rows of a regression: the moments of every target and the inputs, and the levels of labels."""

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
    """Refuse targets of which no row was counted."""
    for target in design.targets:
        moments: Any = tally.statistics[_place(tally, target)]
        if not moments.group_weights().sum() > 0:
            raise DataError(
                f"no row has the target {target!r}, all inputs and some weight; expected at least 1.\n"
                "    Look for missing cells, and weights of zero."
            )


def label_factors(model: Any) -> list[Factor]:
    """p(label) of every column of labels, which tells what levels there are."""
    declared = model.levels or {}
    return [Factor(name, (), Categorical(declared.get(name))) for name in model._design.labels]


def schema_of(model: Any) -> Schema:
    """Levels are kept in order, unless they were declared in another."""
    declared, design = model.levels or {}, model._design
    names = [*design.labels, *([] if design.by is None else [design.by])]
    return Schema(sorted_domains=tuple(str(name) for name in names if declared.get(name) is None))


def count_rows(model: Any, table: Table, weight: Any, like: Tally | None) -> Tally:
    """The tally of rows in memory."""
    design: Design = model._design
    weights = check_weight(weight, table.n_rows)
    missing = design.missing(table)
    if missing.any():
        whole = np.flatnonzero(~missing.any(axis=1))
        _warn_of_missing(design, missing)
        table, weights = table.rows(whole), None if weights is None else weights[whole]
    counted = count(table, label_factors(model), weight=weights, schema=schema_of(model))
    levels = levels_of(design, counted)
    shown = {name: read_level(table, name) for name in design.labels}  # rows without weight may show others
    columns, given = design.columns(levels), () if design.by is None else (design.by,)
    if design.by is not None:
        _refuse_missing_groups(table, design.by)
    step = max(1024, _CELLS // (len(columns) + 1))
    targets = {name: _target_of(table, name) for name in design.targets}
    slabs = list(_slabs(targets, max(8, len(columns))))
    totals: list[Tally | None] = [None] * len(slabs)
    for start in range(0, max(table.n_rows, 1), step):
        part = slice(start, start + step)
        rows = table if table.n_rows <= step else table.rows(part)
        some = None if weights is None else weights[part]
        beside = design.expand(rows, {**levels, **_all_levels(shown, levels)})
        beside |= {name: rows._column(name) for name in given}
        for place, slab in enumerate(slabs):
            factor, before = Factor((*columns, *slab), given, LinearGaussian()), totals[place]
            cells = {name: targets[name][part] for name in slab}
            found = _count_slab({**beside, **cells}, factor, some, schema_of(model), _anchors(like, factor, before))
            totals[place] = found if before is None else before + found
    for total, slab in zip(totals, slabs, strict=True):
        assert total is not None
        counted = counted | _apart(total, columns, slab)
    return counted


def _warn_of_missing(design: Design, missing: np.ndarray) -> None:
    n, most = int(missing.any(axis=1).sum()), int(missing.sum(axis=0).argmax())
    warn(
        f"{n:,} of {len(missing):,} rows are not counted: they lack an input, most often column "
        f"{[*design.numbers, *design.labels][most]!r}.\n    Fill in its cells, or leave the column out, to count them.",
        DataSourceWarning,
    )


def _target_of(table: Table, name: Name) -> np.ndarray:
    """A target of all rows; NaN where it is missing."""
    cells = np.asarray(numeric(table._column(name), name), dtype=np.float64)
    if np.isinf(cells).any():
        row = int(np.flatnonzero(np.isinf(cells))[0])
        raise DataError(
            f"Input y contains infinity: {name!r} is {cells[row]} in row {row}; expected a finite number, or NaN "
            "where it is missing.\n    Leave the row out."
        )
    return cells


def _slabs(targets: dict[Name, np.ndarray], most: int) -> Iterator[tuple[Name, ...]]:
    """Targets that are counted together, since every row has them all: products of the inputs are summed once."""
    whole = [name for name, cells in targets.items() if not np.isnan(cells).any()]
    yield from (tuple(whole[start : start + most]) for start in range(0, len(whole), most))
    yield from ((name,) for name in targets if name not in set(whole))


def _count_slab(columns: dict[Name, Any], factor: Factor, weight: Any, schema: Schema, like: Tally | None) -> Tally:
    """The moments of inputs and targets, over the rows that have these."""
    table = Table({name: columns[name] for name in (*factor.columns, *factor.given)})
    known = ~np.isnan(columns[factor.columns[-1]])
    if not known.all():
        places = np.flatnonzero(known)
        table, weight = table.rows(places), None if weight is None else weight[places]
    return count(table, [factor], weight=weight, schema=schema, like=like)


def _apart(total: Tally, columns: Sequence[Name], targets: Sequence[Name]) -> Tally:
    """A factor for each of the targets that were counted together: to the bit as if it had been alone."""
    (factor,), (moments,) = total.factors, total.statistics
    assert isinstance(moments, Moments)
    inputs = range(len(columns))
    kept = [np.array([*inputs, len(columns) + place], dtype=np.intp) for place in range(len(targets))]
    factors = tuple(factor.replace(columns=(*columns, target)) for target in targets)
    return Tally(factors, [moments.columns(places) for places in kept], total.domains, total.schema)


def read_level(table: Table, name: Name) -> tuple[Any, ...]:
    """All labels that a column shows."""
    codes, (domain,) = table.levels([name], lambda _: True)
    seen = np.unique(np.asarray(codes.columns[0]).astype(np.int64))
    return tuple(domain.levels[code] for code in seen.tolist() if 0 <= code < len(domain.levels))


def _all_levels(shown: dict[Name, tuple[Any, ...]], levels: Levels) -> dict[Name, tuple[Any, ...]]:
    return {name: tuple(dict.fromkeys((*levels[name], *found))) for name, found in shown.items()}


def _anchors(like: Tally | None, factor: Factor, total: Tally | None) -> Tally | None:
    """A tally of the same factor, about whose anchors sums are made."""
    if total is not None or like is None:
        return total
    place = _place(like, factor.columns[-1])
    same = like.factors[place].columns == factor.columns
    return Tally((factor,), [like.statistics[place]], like.domains, like.schema) if same else None


def _refuse_missing_groups(table: Table, by: Name) -> None:
    codes = np.asarray(table.levels([by], lambda _: True)[0].columns[0])
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise DataError(
            f"Input X contains NaN: column {by!r} has no label in row {row}; expected the group of every row.\n"
            "    Leave such rows out."
        )


# ---- Levels that come and go -----------------------------------------------------------------------------------------


def levels_of(design: Design, tally: Tally) -> dict[Name, tuple[Any, ...]]:
    """The levels of every column of labels."""
    return {name: tally.domains[str(name)].levels for name in design.labels}


def _place(tally: Tally, target: Name) -> int:
    """The place of a target's factor."""
    return next(
        k for k, f in enumerate(tally.factors) if f.columns[-1] == target and isinstance(tally.statistics[k], Moments)
    )


def merge_tallies(design: Design, mine: Tally, its: Tally) -> tuple[Tally, Tally]:
    """Two tallies with the same columns: a level that one has not seen is a column of zeros, products included."""
    if not design.labels:
        return mine, its
    try:
        levels = {name: mine.domains[str(name)].union(its.domains[str(name)]).levels for name in design.labels}
    except KeyError as error:
        raise StatisticsError.incompatible("the columns of labels", list(mine.domains), list(its.domains)) from error
    columns = design.columns(levels)
    return _with_columns(design, mine, columns), _with_columns(design, its, columns)


def subtract_tally_columns(design: Design, mine: Tally, its: Tally) -> Tally:
    """A tally less another, without the columns of levels that are gone."""
    held, less = merge_tallies(design, mine, its)
    tally = held - less
    return _with_columns(design, tally, design.columns(levels_of(design, tally))) if design.labels else tally


def _with_columns(design: Design, tally: Tally, columns: Sequence[Name]) -> Tally:
    factors, statistics = list(tally.factors), list(tally.statistics)
    for place, (factor, moments) in enumerate(zip(tally.factors, tally.statistics, strict=True)):
        if isinstance(moments, Moments):
            names = (*columns, factor.columns[-1])
            if names != factor.columns:
                where = {name: k for k, name in enumerate(factor.columns)}
                factors[place] = factor.replace(columns=names)
                statistics[place] = moments.columns(np.array([where.get(name, -1) for name in names], dtype=np.intp))
    return Tally(factors, statistics, tally.domains, tally.schema, soft=tally.soft)


def target_moments(design: Design, tally: Tally) -> Iterator[tuple[Factor, Moments]]:
    """Every target's factor and moments."""
    for target in design.targets:
        place = _place(tally, target)
        moments = tally.statistics[place]
        assert isinstance(moments, Moments)
        yield tally.factors[place], moments
