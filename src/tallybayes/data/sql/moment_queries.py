"""Moments of numeric columns in a database, from sums in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.table import open_table
from tallybayes.errors import DataError
from tallybayes.families._shared.sql_aggregates import with_constants
from tallybayes.families.family import Family
from tallybayes.families.protocols.counting import aggregates, from_aggregates
from tallybayes.families.protocols.scoring_forms import transform
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
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
    is_untransformed = bool(transform(family, np.array([0.5])) == 0.5)  # not logarithms of the numbers
    about = _near(family, _first_ends(query, factor.columns))
    group_sums = _sums_about_point(query, factor, weight, about, skip_nan=False, ends=not is_untransformed)
    skip_nan = not np.isfinite(group_sums.sums).all()
    if skip_nan:
        group_sums = _sums_about_point(query, factor, weight, about, skip_nan=True, ends=True)
    if group_sums.ends is not None:
        query.check_ends(factor, group_sums.ends_of_all())
    if family.requires_complete_rows and group_sums.n_gaps:
        return None  # EM needs all rows
    points = np.tile(about, (len(group_sums.groups), 1))
    sums = group_sums.sums
    if is_untransformed and _is_far(sums, len(about)):
        group_sums, points = _sums_about_means(query, factor, weight)
        low, high = group_sums.ends.swapaxes(0, 1)
        points = np.where(low == high, low, points)
        sums = with_constants(group_sums.sums, low == high)
    return _tally(factor, schema, group_sums.groups, points, sums)


def _tally(
    factor: Factor, schema: Schema, groups: list[tuple[Any, ...]], points: np.ndarray, sums: np.ndarray
) -> Tally:
    """Return the tally of groups whose sums are about points of their own."""
    if not np.isfinite(sums).all():
        raise DataError(f"sums of {factor.columns} are not finite: the columns contain numbers that are too large.")
    has_missing_level = [schema.domain(name) in schema.missing_level_domains for name in factor.given]
    rows = [k for k, group in enumerate(groups) if not any(map(_lacks, group, has_missing_level))]
    domains = {}
    for axis, name in enumerate(factor.given):
        key = schema.domain(name)
        levels = dict.fromkeys(_plain(groups[k][axis]) for k in rows)
        domains[key] = Domain(
            levels, key, is_sorted=key in schema.sorted_domains, has_missing_level=has_missing_level[axis]
        )
    sizes = [len(domains[schema.domain(name)].levels) for name in factor.given]
    empty = np.zeros((*sizes, sums.shape[1]))
    tables: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
    for k in rows:
        point, table = tables.setdefault(points[k].tobytes(), (points[k], empty.copy()))
        group = zip(factor.given, groups[k], strict=True)
        table[tuple(domains[schema.domain(name)].index[_plain(value)] for name, value in group)] = sums[k]
    tallies = []
    for point, table in tables.values() or [(np.zeros(len(factor.columns)), empty)]:
        statistics = from_aggregates(factor.family, table.reshape(-1, sums.shape[1]), point)
        tallies.append(Tally((factor,), [statistics.reshape_groups(tuple(sizes))], domains, schema))
    return sum(tallies[1:], tallies[0]).drop_unseen_levels()


def _lacks(value: object, has_missing_level: bool) -> bool:
    """Return whether a row belongs to no group, since a conditioning column is missing and that is not a level."""
    return value is None and not has_missing_level


def _plain(value: object) -> Any:
    """Return integer-valued floats as integers, and other values unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _GroupSums(NamedTuple):
    """The sums of a block of numeric columns by group."""

    groups: list[tuple[Any, ...]]
    sums: np.ndarray  # (groups, sums)
    ends: Any = None  # (groups, 2, columns), if requested
    n_gaps: int = 0

    def ends_of_all(self) -> np.ndarray:
        """Return the minimum and the maximum of every column over all groups, of shape (2, columns)."""
        low, high = self.ends.swapaxes(0, 1)
        return np.stack([np.fmin.reduce(low, initial=np.nan), np.fmax.reduce(high, initial=np.nan)])


def _sums_about_point(
    query: Query, factor: Factor, weight: str | None, about: np.ndarray, *, skip_nan: bool, ends: bool
) -> _GroupSums:
    """Return the sums of every group, minima and maxima if `ends`, and the number of rows with missing cells."""
    dialect = query.dialect
    number = dialect.number if skip_nan else dialect.cast
    numbers = [number(query.written(name)) for name in factor.columns]
    texts = _written(query, factor, weight, numbers, about)
    n_sums = len(texts)
    texts += [f"{end}({text})" for end in ("MIN", "MAX") for text in numbers] if ends else []
    if factor.family.requires_complete_rows:
        texts += [f"SUM(CASE WHEN {' OR '.join(f'{text} IS NULL' for text in numbers)} THEN 1 ELSE 0 END)"]
    try:
        groups, values = _by_group(query, factor, texts)
    except DataError:  # perhaps a number is too large
        query.check_ends(factor, query.ends([dialect.number(query.written(name)) for name in factor.columns]))
        raise
    n_gaps = int(np.nansum(values[:, -1])) if factor.family.requires_complete_rows else 0
    extremes = values[:, n_sums : n_sums + 2 * len(numbers)].reshape(len(groups), 2, -1) if ends else None
    return _GroupSums(groups, values[:, :n_sums], extremes, n_gaps)


def _sums_about_means(query: Query, factor: Factor, weight: str | None) -> tuple[_GroupSums, np.ndarray]:
    """Return the sums of every group about its means, minima and maxima, and the means, of shape (groups, columns)."""
    dialect = query.dialect
    d = len(factor.columns)
    given = {str(name): query.written(name) for name in factor.given}
    over = f"OVER (PARTITION BY {', '.join(given.values())})" if given else "OVER ()"
    numbers = [dialect.number(query.written(name)) for name in factor.columns]
    cells = {f"number {k}": text for k, text in enumerate(numbers)}
    means = {f"mean {k}": f"AVG({text}) {over}" for k, text in enumerate(numbers)}
    weights = {} if weight is None else {weight: dialect.quote(weight)}
    centered = query.selecting({**given, **weights, **cells, **means})
    cell, mean = (list(map(dialect.quote, names)) for names in (cells, means))
    deviations = [f"({cell_name} - {mean_name})" for cell_name, mean_name in zip(cell, mean, strict=True)]
    texts = _written(centered, factor, weight, deviations, np.zeros(d))
    n_sums = len(texts)
    texts += [f"{end}({name})" for end, names in (("MIN", cell), ("MAX", cell), ("MAX", mean)) for name in names]
    groups, values = _by_group(centered, factor, texts)
    rest = values[:, n_sums:].reshape(len(groups), 3, d)
    return _GroupSums(groups, values[:, :n_sums], rest[:, :2]), np.nan_to_num(rest[:, 2])


def _written(query: Query, factor: Factor, weight: str | None, numbers: list[str], about: np.ndarray) -> list[str]:
    """Return the SQL of the sums that the family needs."""
    sums = aggregates(factor.family, len(numbers), about)
    assert sums is not None
    weight_name = None if weight is None else query.dialect.quote(weight)
    return [query.dialect.sum(aggregate, numbers, weight_name) for aggregate in sums]


def _by_group(query: Query, factor: Factor, texts: list[str]) -> tuple[list[tuple[Any, ...]], np.ndarray]:
    """Return the groups, and the values of expressions by group, of shape (groups, expressions)."""
    given = [query.written(name) for name in factor.given]
    by = f" GROUP BY {', '.join(given)}" if given else ""
    values: dict[tuple[Any, ...], list[Any]] = {}
    for start in range(0, len(texts), _TOGETHER):
        expressions = ", ".join([*given, *texts[start : start + _TOGETHER]])
        for row in query.dialect.run(f"SELECT {expressions} FROM {query.table}{by}"):
            values.setdefault(row[: len(given)], []).extend(row[len(given) :])
    return list(values), np.array(list(values.values()), dtype=float).reshape(len(values), len(texts))


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
