"""Moments of numeric columns in a database, from sums in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.table import open_table
from tallybayes.errors import DataError
from tallybayes.families._shared.sql_aggregates import with_constants
from tallybayes.families.family import Family
from tallybayes.families.protocols.counting import aggregates, from_aggregates
from tallybayes.families.protocols.scoring_forms import transform
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.data.sql.query_source import Query

_TOGETHER = 600  # sums per query
_FAR = 1000  # ratio of squared mean to variance from which sums of squares lose too many digits


def tally_from_sql_sums(query: Query, factor: Factor, weight: str | None, schema: Schema) -> Tally | None:
    """Return the tally of a factor of numeric columns, from the sums that its family needs; None if rows must be read.

    A database sums in float64. So sums are about a point near the numbers, estimated from the first rows. If the
    numbers of a group are far from that point, squares cancel, and the sums are computed again about the means of every
    group. If a sum is not finite, it is computed again with NaN as missing. Usually there is one pass of sums.

    """
    family = factor.family
    about = _near(family, _first_ends(query, factor.columns))
    found = _sums_about_point(query, factor, weight, about, query.dialect.cast)
    if not np.isfinite(found.sums).all():
        found = _sums_about_point(query, factor, weight, about, query.dialect.number)
    low, high = np.fmin.reduce(found.low, initial=np.nan), np.fmax.reduce(found.high, initial=np.nan)
    query.check_ends(factor, np.stack([low, high]))
    if family.requires_complete_rows and found.n_gaps:
        return None  # EM needs all rows
    is_untransformed = bool(transform(family, np.array([0.5])) == 0.5)  # not logarithms of the numbers
    if is_untransformed and _is_far(found.sums, len(about)):
        return _tally(factor, schema, *_sums_about_means(query, factor, weight))
    return _tally(factor, schema, found.groups, np.tile(about, (len(found.groups), 1)), found.sums)


def _tally(
    factor: Factor, schema: Schema, groups: list[tuple[Any, ...]], points: np.ndarray, sums: np.ndarray
) -> Tally:
    """Return the tally of groups whose sums are about points of their own."""
    if not np.isfinite(sums).all():
        raise DataError(
            f"sums of {factor.columns} are not finite: the columns contain numbers that are too large.\n"
            "    Divide them by a constant in the query."
        )
    keys = [schema.domain(name) for name in factor.given]
    has_missing_level = [key in schema.missing_level_domains for key in keys]
    rows = [
        k
        for k, group in enumerate(groups)
        if all(value is not None or has_level for value, has_level in zip(group, has_missing_level, strict=True))
    ]
    levels = [[_plain(value) for value in groups[k]] for k in rows]
    domains = {}
    for axis, key in enumerate(keys):
        levels_here = dict.fromkeys(group[axis] for group in levels)
        is_sorted = key in schema.sorted_domains
        domains[key] = Domain(levels_here, key, is_sorted=is_sorted, has_missing_level=has_missing_level[axis])
    sizes = tuple(len(domains[key].levels) for key in keys)
    tallies = []
    for point in np.unique(points[rows], axis=0) if rows else np.zeros((1, len(factor.columns))):
        table = np.zeros((*sizes, sums.shape[1]))
        for k, group in zip(rows, levels, strict=True):
            if (points[k] == point).all():
                table[tuple(domains[key].index[level] for key, level in zip(keys, group, strict=True))] = sums[k]
        statistics = from_aggregates(factor.family, table.reshape(-1, sums.shape[1]), point)
        tallies.append(Tally((factor,), [statistics.reshape_groups(sizes)], domains, schema))
    return sum(tallies[1:], tallies[0]).drop_unseen_levels()


def _plain(value: object) -> Any:
    """Return integer-valued floats as integers, and other values unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _GroupSums(NamedTuple):
    """The sums of a block of numeric columns by group, and the extremes, of shape (groups, columns)."""

    groups: list[tuple[Any, ...]]
    sums: np.ndarray  # (groups, sums)
    low: np.ndarray
    high: np.ndarray
    n_gaps: int  # rows with missing cells


def _sums_about_point(
    query: Query, factor: Factor, weight: str | None, about: np.ndarray, number: Callable[[str], str]
) -> _GroupSums:
    """Return the sums of every group about a point; `number` writes a column as a number."""
    numbers = [number(query.written(name)) for name in factor.columns]
    others = [f"{end}({text})" for end in ("MIN", "MAX") for text in numbers]
    others += [f"SUM(CASE WHEN {' OR '.join(f'{text} IS NULL' for text in numbers)} THEN 1 ELSE 0 END)"]
    try:
        groups, sums, rest = _sums(query, factor, weight, numbers, about, others)
    except DataError:  # perhaps a number is too large
        query.check_ends(factor, query.ends([query.dialect.number(query.written(name)) for name in factor.columns]))
        raise
    low, high, gaps = np.split(rest, [len(numbers), 2 * len(numbers)], axis=1)
    return _GroupSums(groups, sums, low, high, int(np.nansum(gaps)))


def _sums_about_means(
    query: Query, factor: Factor, weight: str | None
) -> tuple[list[tuple[Any, ...]], np.ndarray, np.ndarray]:
    """Return the groups, their means, (groups, columns), and the sums of every group about its means."""
    dialect = query.dialect
    given = {str(name): query.written(name) for name in factor.given}
    over = f"OVER (PARTITION BY {', '.join(given.values())})" if given else "OVER ()"
    numbers = [dialect.number(query.written(name)) for name in factor.columns]
    cells = {f"number {k}": text for k, text in enumerate(numbers)}
    means = {f"mean {k}": f"AVG({text}) {over}" for k, text in enumerate(numbers)}
    weights = {} if weight is None else {weight: dialect.quote(weight)}
    centered = query.selecting({**given, **weights, **cells, **means})
    cell, mean = (list(map(dialect.quote, names)) for names in (cells, means))
    deviations = [f"({cell_name} - {mean_name})" for cell_name, mean_name in zip(cell, mean, strict=True)]
    others = [f"{end}({name})" for end, names in (("MIN", cell), ("MAX", cell), ("MAX", mean)) for name in names]
    groups, sums, rest = _sums(centered, factor, weight, deviations, np.zeros(len(numbers)), others)
    low, high, points = np.split(rest, 3, axis=1)
    is_constant = low == high
    return groups, np.where(is_constant, low, np.nan_to_num(points)), with_constants(sums, is_constant)


def _sums(
    query: Query, factor: Factor, weight: str | None, numbers: list[str], about: np.ndarray, others: list[str]
) -> tuple[list[tuple[Any, ...]], np.ndarray, np.ndarray]:
    """Return the groups, and by group the sums that the family needs and the values of other expressions."""
    sums = aggregates(factor.family, len(numbers), about)
    assert sums is not None
    weight_name = None if weight is None else query.dialect.quote(weight)
    texts = [*(query.dialect.sum(one, numbers, weight_name) for one in sums), *others]
    given = [query.written(name) for name in factor.given]
    by = f" GROUP BY {', '.join(given)}" if given else ""
    values: dict[tuple[Any, ...], list[Any]] = {}
    for start in range(0, len(texts), _TOGETHER):
        expressions = ", ".join([*given, *texts[start : start + _TOGETHER]])
        for row in query.dialect.run(f"SELECT {expressions} FROM {query.table}{by}"):
            values.setdefault(row[: len(given)], []).extend(row[len(given) :])
    table = np.array(list(values.values()), dtype=float).reshape(len(values), len(texts))
    return list(values), table[:, : len(sums)], table[:, len(sums) :]


def _first_ends(query: Query, names: Sequence[Name]) -> np.ndarray:
    """Return the minimum and the maximum of every column in the first rows, of shape (2, columns)."""
    table = open_table(query.first_batch())
    ends = np.zeros((2, len(names)))
    for position, name in enumerate(names):
        if table.has(name):
            cells = np.concatenate([np.asarray(part, dtype=float) for part in table.numbers([name])])
            cells = cells[np.isfinite(cells)]
            ends[:, position] = (cells.min(), cells.max()) if len(cells) else 0.0
    return ends


def _near(family: Family, ends: np.ndarray) -> np.ndarray:
    """Return a point per column about which to sum: 0 unless all numbers are far from it, else a number near them."""
    with np.errstate(all="ignore"):
        low, high = np.asarray(transform(family, ends)).astype(float)
        middle = (low + high) / 2
        width = high - low
    is_far = np.isfinite(middle) & (np.abs(middle) > 2 * width)
    middle = np.where(is_far, middle, 0.0)
    grid = np.exp2(np.ceil(np.log2(np.where(is_far & (width > 0), width, np.abs(middle) * 2.0**-20 + 1e-300))))
    return np.round(middle / grid) * grid


def _is_far(sums: np.ndarray, d: int) -> bool:
    """Return whether the numbers of some group are so far from the point of the sums that squares cancel."""
    n = sums[:, :d]
    first = sums[:, d : 2 * d]
    second = sums[:, 2 * d :]
    if second.shape[1] > d:
        rows, columns = np.triu_indices(d)
        second = second[:, rows == columns]
    lost = first * first > _FAR * (n * second - first * first)
    exact = (first == np.round(first)) & (second == np.round(second)) & (np.abs(n * second) < 2.0**53)
    return bool((lost & ~(exact & (n * second == first * first))).any())
