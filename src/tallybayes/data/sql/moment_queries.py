"""Sums: the moments of numbers that lie in a database, from sums that it makes in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.table import open_table
from tallybayes.errors import DataError
from tallybayes.families._shared.sql_aggregates import with_constants
from tallybayes.families.family import Family
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.data.sql.query_source import Query

_TOGETHER = 600  # sums in one query
_FAR = 1000  # squared means over variances from which on sums of squares lose too much


def tally_from_sql_sums(query: Query, factor: Factor, weight: str | None, schema: Schema) -> Tally | None:
    """The tally of a factor of numbers, whose family says which sums it needs; None where rows have to be read.

    A database sums in float64, so it does that about a point near the numbers, which the first rows tell. Where a group
    turns out to be far from it, as class b is where a holds 0 and b the times of a day, the sums are made again, about
    the means of every group; and with care for NaN where one is not finite. Usually it is one pass, of sums alone.
    """
    family = factor.family
    measured = bool(family.transform(np.array([0.5])) == 0.5)  # the numbers themselves, not their logarithms
    about = _near(family, _first_ends(query, factor.columns))
    asked = _ask(query, factor, weight, about, careful=False, ends=not measured)
    careful = not np.isfinite(asked.sums).all()
    if careful:
        asked = _ask(query, factor, weight, about, careful=True, ends=True)
    if asked.ends is not None:
        query.check_ends(factor, asked.ends_of_all())
    if family.requires_complete_rows and asked.n_gaps:
        return None  # they are expected, from all rows
    points, sums = np.tile(about, (len(asked.groups), 1)), asked.sums
    if measured and _is_far(sums, len(about)):
        asked, points = _ask_about_means(query, factor, weight)
        low, high = asked.ends.swapaxes(0, 1)
        points = np.where(low == high, low, points)
        sums = with_constants(asked.sums, low == high)
    return _tally(factor, schema, asked.groups, points, sums)


def _tally(
    factor: Factor, schema: Schema, groups: list[tuple[Any, ...]], points: np.ndarray, sums: np.ndarray
) -> Tally:
    """The tally of groups, each of which has its sums about its own point."""
    if not np.isfinite(sums).all():
        raise DataError(f"sums of {factor.columns} are not finite: the columns hold numbers that are too large.")
    may_lack = [schema.domain(name) in schema.missing_level_domains for name in factor.given]
    known = [k for k, group in enumerate(groups) if not any(map(_lacks, group, may_lack))]
    domains = {}
    for axis, name in enumerate(factor.given):
        key = schema.domain(name)
        levels = dict.fromkeys(_plain(groups[k][axis]) for k in known)
        domains[key] = Domain(levels, key, is_sorted=key in schema.sorted_domains, has_missing_level=may_lack[axis])
    sizes = [len(domains[schema.domain(name)].levels) for name in factor.given]
    empty = np.zeros((*sizes, sums.shape[1]))
    tables: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
    for k in known:
        point, table = tables.setdefault(points[k].tobytes(), (points[k], empty.copy()))
        group = zip(factor.given, groups[k], strict=True)
        table[tuple(domains[schema.domain(name)].index[_plain(value)] for name, value in group)] = sums[k]
    found = []
    for point, table in tables.values() or [(np.zeros(len(factor.columns)), empty)]:
        statistics = factor.family.from_aggregates(table.reshape(-1, sums.shape[1]), point)
        found.append(Tally((factor,), [statistics.reshape_groups(tuple(sizes))], domains, schema))
    return sum(found[1:], found[0]).drop_unseen_levels()


def _lacks(value: Any, may_lack: bool) -> bool:
    """Whether a row is in no group: something that it is given is missing, and that is no level."""
    return value is None and not may_lack


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _GroupSums(NamedTuple):
    """What a database answers of the numbers of a block."""

    groups: list[tuple[Any, ...]]
    sums: np.ndarray  # (groups, sums)
    ends: Any = None  # (groups, 2, columns), if asked
    n_gaps: int = 0

    def ends_of_all(self) -> np.ndarray:
        """The smallest and the largest number of every column, (2, columns)."""
        low, high = self.ends.swapaxes(0, 1)
        return np.stack([np.fmin.reduce(low, initial=np.nan), np.fmax.reduce(high, initial=np.nan)])


def _ask(
    query: Query, factor: Factor, weight: str | None, about: np.ndarray, *, careful: bool, ends: bool
) -> _GroupSums:
    """In one pass: the sums of every group, the ends of every column if wanted, and how many rows lack a cell."""
    dialect = query.dialect
    number = dialect.number if careful else dialect.cast
    numbers = [number(query.written(name)) for name in factor.columns]
    texts = _written(query, factor, weight, numbers, about)
    n_sums = len(texts)
    texts += [f"{end}({text})" for end in ("MIN", "MAX") for text in numbers] if ends else []
    if factor.family.requires_complete_rows:
        texts += [f"SUM(CASE WHEN {' OR '.join(f'{text} IS NULL' for text in numbers)} THEN 1 ELSE 0 END)"]
    try:
        groups, values = _by_group(query, factor, texts)
    except DataError:  # a number that is too large, perhaps
        query.check_ends(factor, query.ends([dialect.number(query.written(name)) for name in factor.columns]))
        raise
    n_gaps = int(np.nansum(values[:, -1])) if factor.family.requires_complete_rows else 0
    found = values[:, n_sums : n_sums + 2 * len(numbers)].reshape(len(groups), 2, -1) if ends else None
    return _GroupSums(groups, values[:, :n_sums], found, n_gaps)


def _ask_about_means(query: Query, factor: Factor, weight: str | None) -> tuple[_GroupSums, np.ndarray]:
    """The sums of every group about the means of its numbers, the ends of these, and the means, (groups, columns)."""
    dialect, d = query.dialect, len(factor.columns)
    given = {str(name): query.written(name) for name in factor.given}
    over = f"OVER (PARTITION BY {', '.join(given.values())})" if given else "OVER ()"
    numbers = [dialect.number(query.written(name)) for name in factor.columns]
    cells = {f"number {k}": text for k, text in enumerate(numbers)}
    means = {f"mean {k}": f"AVG({text}) {over}" for k, text in enumerate(numbers)}
    weights = {} if weight is None else {weight: dialect.quote(weight)}
    there = query.selecting({**given, **weights, **cells, **means})
    cell, mean = (list(map(dialect.quote, names)) for names in (cells, means))
    gaps = [f"({one} - {other})" for one, other in zip(cell, mean, strict=True)]
    texts = _written(there, factor, weight, gaps, np.zeros(d))
    n_sums = len(texts)
    texts += [f"{end}({name})" for end, names in (("MIN", cell), ("MAX", cell), ("MAX", mean)) for name in names]
    groups, values = _by_group(there, factor, texts)
    rest = values[:, n_sums:].reshape(len(groups), 3, d)
    return _GroupSums(groups, values[:, :n_sums], rest[:, :2]), np.nan_to_num(rest[:, 2])


def _written(query: Query, factor: Factor, weight: str | None, numbers: list[str], about: np.ndarray) -> list[str]:
    """The sums that the family needs."""
    sums = factor.family.aggregates(len(numbers), about)
    assert sums is not None
    counted = None if weight is None else query.dialect.quote(weight)
    return [query.dialect.sum(one, numbers, counted) for one in sums]


def _by_group(query: Query, factor: Factor, texts: list[str]) -> tuple[list[tuple[Any, ...]], np.ndarray]:
    """What is asked of every group: the groups, and numbers (groups, texts)."""
    given = [query.written(name) for name in factor.given]
    by = f" GROUP BY {', '.join(given)}" if given else ""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for start in range(0, len(texts), _TOGETHER):
        asked = ", ".join([*given, *texts[start : start + _TOGETHER]])
        for row in query.dialect.run(f"SELECT {asked} FROM {query.table}{by}"):
            found.setdefault(row[: len(given)], []).extend(row[len(given) :])
    return list(found), np.array(list(found.values()), dtype=float).reshape(len(found), len(texts))


def _first_ends(query: Query, names: Sequence[Name]) -> np.ndarray:
    """The smallest and the largest number of every column among the first rows, (2, columns)."""
    table, found = open_table(query.first_batch()), np.zeros((2, len(names)))
    for place, name in enumerate(names):
        if table.has(name):
            cells = np.concatenate([np.asarray(part, dtype=float) for part in table.numbers([name])])
            cells = cells[np.isfinite(cells)]
            found[:, place] = (cells.min(), cells.max()) if len(cells) else 0.0
    return found


def _near(family: Family, ends: np.ndarray) -> np.ndarray:
    """A point per column to make sums about: 0 unless all numbers are far from it, then one among them."""
    with np.errstate(all="ignore"):
        low, high = np.asarray(family.transform(ends)).astype(float)
        middle, width = (low + high) / 2, high - low
    far = np.isfinite(middle) & (np.abs(middle) > 2 * width)
    middle = np.where(far, middle, 0.0)
    grid = np.exp2(np.ceil(np.log2(np.where(far & (width > 0), width, np.abs(middle) * 2.0**-20 + 1e-300))))
    return np.round(middle / grid) * grid


def _is_far(sums: np.ndarray, d: int) -> bool:
    """Whether the numbers of some group are far from the point that these sums are about, so that squares cancel."""
    n, first, second = sums[:, :d], sums[:, d : 2 * d], sums[:, 2 * d :]
    if second.shape[1] > d:
        rows, columns = np.triu_indices(d)
        second = second[:, rows == columns]
    lost = first * first > _FAR * (n * second - first * first)
    exact = (first == np.round(first)) & (second == np.round(second)) & (np.abs(n * second) < 2.0**53)
    return bool((lost & ~(exact & (n * second == first * first))).any())
