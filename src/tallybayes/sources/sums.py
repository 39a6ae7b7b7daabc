"""Sums: the moments of numbers that lie in a database, from sums that it makes in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError
from tallybayes.families.aggregates import with_constants
from tallybayes.families.family import Family
from tallybayes.sources.table import open_table
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name, Schema
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.sources.queries import Query

_TOGETHER = 600  # sums in one query
_FAR = 16  # widths of a column from which on sums of squares lose too much


def sums_of(query: Query, factor: Factor, weight: str | None, schema: Schema) -> Tally | None:
    """The tally of a factor of numbers, whose family says which sums it needs; None where rows have to be read.

    A database sums in float64, so it does that about a point near the numbers, which the first rows tell. Where a group
    turns out to be far from it, as class b is where a holds 0 and b the times of a day, the sums are made again, of
    every group about its least number. Tallies about several points are added exactly.
    """
    family = factor.family
    about = _near(family, _first_ends(query, factor.columns))
    asked = _ask(query, factor, weight, about)
    query.check_ends(factor, asked.ends_of_all())
    if family.needs_whole_rows and asked.n_gaps:
        return None  # they are expected, from all rows
    points, sums = np.tile(about, (len(asked.groups), 1)), asked.sums
    if _is_far(family, points, asked.ends):
        if family.transform(np.array([0.5])) == 0.5:
            again = _ask(_about_least(query, factor, weight), factor, weight, np.zeros_like(about))
            points = np.nan_to_num(asked.ends[:, 0])
            sums = again.sums[[again.groups.index(group) for group in asked.groups]]
        else:
            points = np.tile(_near(family, asked.ends_of_all()), (len(asked.groups), 1))
            asked = _ask(query, factor, weight, points[0])
            sums = asked.sums
    low, high = asked.ends.swapaxes(0, 1)
    points = np.where(low == high, np.asarray(family.transform(low)), points)
    sums = with_constants(sums, low == high)
    return _tally(factor, schema, asked.groups, points, sums)


def _tally(
    factor: Factor, schema: Schema, groups: list[tuple[Any, ...]], points: np.ndarray, sums: np.ndarray
) -> Tally:
    """The tally of groups, each of which has its sums about its own point."""
    if not np.isfinite(sums).all():
        raise DataError(f"sums of {factor.columns} are not finite: the columns hold numbers that are too large.")
    known = [k for k, group in enumerate(groups) if None not in group]
    domains = {}
    for axis, name in enumerate(factor.given):
        key = schema.domain(name)
        levels = dict.fromkeys(_plain(groups[k][axis]) for k in known)
        domains[key] = Domain(levels, key, ordered=key in schema.ordered)
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
    return sum(found[1:], found[0]).pruned()


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _Asked(NamedTuple):
    """What a database answers of the numbers of a block."""

    groups: list[tuple[Any, ...]]
    sums: np.ndarray  # (groups, sums)
    ends: np.ndarray  # (groups, 2, columns)
    n_gaps: int

    def ends_of_all(self) -> np.ndarray:
        """The smallest and the largest number of every column, (2, columns)."""
        low, high = self.ends.swapaxes(0, 1)
        return np.stack([np.fmin.reduce(low, initial=np.nan), np.fmax.reduce(high, initial=np.nan)])


def _ask(query: Query, factor: Factor, weight: str | None, about: np.ndarray) -> _Asked:
    """In one pass: the sums of every group, the ends of every column, and how many rows lack a cell."""
    dialect = query.dialect
    columns, given = ([query.written(name) for name in names] for names in (factor.columns, factor.given))
    numbers = [dialect.number(text) for text in columns]
    sums = factor.family.aggregates(len(columns), about)
    assert sums is not None
    texts = [dialect.sum(one, columns, None if weight is None else dialect.quote(weight)) for one in sums]
    gap = " OR ".join(f"{text} IS NULL" for text in numbers)
    texts += [f"{end}({text})" for end in ("MIN", "MAX") for text in numbers]
    texts += [f"SUM(CASE WHEN {gap} THEN 1 ELSE 0 END)"]
    by = f" GROUP BY {', '.join(given)}" if given else ""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for start in range(0, len(texts), _TOGETHER):
        text = f"SELECT {', '.join([*given, *texts[start : start + _TOGETHER]])} FROM {query.table}{by}"
        try:
            rows = dialect.run(text)
        except Exception:  # a number that is too large, perhaps: every library has its own
            query.check_ends(factor, query.ends(numbers))
            raise
        for row in rows:
            found.setdefault(row[: len(given)], []).extend(row[len(given) :])
    values = np.array(list(found.values()), dtype=float).reshape(len(found), len(texts))
    ends = values[:, len(sums) : -1].reshape(len(found), 2, len(columns))
    return _Asked(list(found), values[:, : len(sums)], ends, int(np.nansum(values[:, -1])))


def _about_least(query: Query, factor: Factor, weight: str | None) -> Query:
    """The same rows with numbers less the least of their group."""
    given = {str(name): query.written(name) for name in factor.given}
    over = f"OVER (PARTITION BY {', '.join(given.values())})" if given else "OVER ()"
    numbers = {str(name): query.dialect.number(query.written(name)) for name in factor.columns}
    shifted = {name: f"{text} - MIN({text}) {over}" for name, text in numbers.items()}
    weights = {} if weight is None else {weight: query.dialect.quote(weight)}
    return query.selecting({**given, **weights, **shifted})


def _first_ends(query: Query, names: Sequence[Name]) -> np.ndarray:
    """The smallest and the largest number of every column among the first rows, (2, columns)."""
    table, found = open_table(query.first()), np.zeros((2, len(names)))
    for place, name in enumerate(names):
        if name in table.columns:
            cells = np.concatenate([np.asarray(part, dtype=float) for part in table.numbers([name])])
            cells = cells[np.isfinite(cells)]
            found[:, place] = (cells.min(), cells.max()) if len(cells) else 0.0
    return found


def _middle_and_width(family: Family, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of columns, as the family reads them; ends are (..., 2, columns)."""
    with np.errstate(all="ignore"):
        low, high = np.moveaxis(np.asarray(family.transform(ends)).astype(float), -2, 0)
        return (low + high) / 2, high - low


def _near(family: Family, ends: np.ndarray) -> np.ndarray:
    """A point per column to make sums about: 0 unless all numbers are far from it, then one among them."""
    middle, width = _middle_and_width(family, ends)
    far = np.isfinite(middle) & (np.abs(middle) > _FAR * width)
    middle = np.where(far, middle, 0.0)
    grid = np.exp2(np.ceil(np.log2(np.where(far & (width > 0), width, np.abs(middle) * 2.0**-20 + 1e-300))))
    return np.round(middle / grid) * grid


def _is_far(family: Family, points: np.ndarray, ends: np.ndarray) -> bool:
    """Whether the numbers of some group, if they are not all the same, are far from its point."""
    middle, width = _middle_and_width(family, ends)
    return bool(((width > 0) & (np.abs(middle - points) > _FAR * width)).any())
