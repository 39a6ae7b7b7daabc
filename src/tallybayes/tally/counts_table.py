"""The counts of a tally with their labels: as one long table, and as a few lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes._utils.text_table import text_table
from tallybayes.errors import printable
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.tally.domain import Domain
    from tallybayes.tally.factor import Factor
    from tallybayes.tally.tally import Tally

_GROUPS, _CELLS, _COLUMNS, _MOMENTS = 8, 8, 4, 3  # of a factor, that are shown


class Block(NamedTuple):
    """Numbers of some columns of a factor, (groups, cells): what every cell is, as (column, level, statistic)."""

    cells: list[tuple[Any, Any, str]]
    values: np.ndarray


def groups_of(tally: Tally, factor: Factor) -> list[tuple[Any, ...]]:
    """The levels of ``given``, of every group in turn."""
    return list(product(*(tally._domain(name).levels for name in factor.given)))


def blocks_of(tally: Tally, factor: Factor, statistic: Any, most: int | None = None) -> Iterator[Block]:
    """The numbers of a factor, column by column; of the first columns, if not of all."""
    width = int(statistic.n_columns)
    statistic = statistic if most is None or width <= most else statistic.columns(np.arange(most))
    n_groups = int(np.prod(statistic.given_shape, dtype=np.int64))
    if isinstance(statistic, Counts):
        table, place = statistic.table.reshape(n_groups, -1), 0
        for number, size in enumerate(statistic.segments.sizes.tolist()):
            column = factor.column(number, width)
            levels = tally._domain(factor.columns[number]).levels if factor.level_columns else range(size)
            yield Block([(column, level, "count") for level in levels], table[:, place : place + size])
            place += size
        return
    parts = _parts(statistic)
    n_columns = int(statistic.n_columns)
    words = tally._domain(factor.columns[0]).levels if factor.word_columns else ()
    names = [factor.column(number, width) for number in range(n_columns)]
    for number, name in enumerate(names):
        column, level = (factor.columns[0], words[number]) if words else (name, None)
        cells = [(column, level, what) for what in parts]
        values = [part.reshape(n_groups, -1)[:, number % max(1, part.shape[-1])] for part in parts.values()]
        if isinstance(statistic, Moments) and statistic.full:
            scatter = statistic.scatter.reshape(n_groups, n_columns, n_columns)
            values[-1] = scatter[:, number, number]
            cells += [(column, level, f"scatter with {other}") for other in names[:number]]
            values += [scatter[:, number, other] for other in range(number)]
        yield Block(cells, np.stack(values, axis=1))


def _parts(statistic: Any) -> dict[str, np.ndarray]:
    """The numbers of every column, (*given, columns) or (*given, 1)."""
    if isinstance(statistic, Totals):
        return {"weight": statistic.weight, "total": statistic.total}
    if isinstance(statistic, Moments):
        return {"weight": statistic.weight, "mean": statistic.mean, "scatter": statistic.scatter}
    return {"weight": np.asarray(statistic.group_weights())[..., None]}  # a family's own statistics


def to_records(tally: Tally) -> dict[str, list[Any]]:
    """All counts, a line for each: the factor, the levels of what it is given, the column, and the number."""
    given = list(dict.fromkeys(name for factor in tally.factors for name in factor.given))
    out: dict[str, list[Any]] = {"factor": []}
    labels: dict[Any, list[Any]] = {name: [] for name in given}
    rest: dict[str, list[Any]] = {"column": [], "level": [], "statistic": [], "value": []}
    for factor, statistic in zip(tally.factors, tally.statistics, strict=True):
        groups = groups_of(tally, factor)
        for block in blocks_of(tally, factor, statistic):
            n = len(block.cells)
            out["factor"] += [title(factor)] * (n * len(groups))
            for name in given:
                place = factor.given.index(name) if name in factor.given else None
                labels[name] += [None if place is None else group[place] for group in groups for _ in range(n)]
            for place, what in enumerate(("column", "level", "statistic")):
                rest[what] += [cell[place] for cell in block.cells] * len(groups)
            rest["value"] += block.values.ravel().tolist()
    named = {f"given {name}" if str(name) in (*out, *rest) else str(name): found for name, found in labels.items()}
    return {**out, **named, **rest}


def lines_of(tally: Tally, factor: Factor, statistic: Any) -> list[str]:
    """The numbers of a factor as aligned text, of a large one the first."""
    groups = groups_of(tally, factor)
    shown, more = groups[:_GROUPS], []
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    for block in blocks_of(tally, factor, statistic, _COLUMNS):
        counted = isinstance(statistic, Counts)
        most = _CELLS if counted else _MOMENTS
        cells, cut = block.cells[:most], ["…"] if counted and len(block.cells) > most else []
        heads = [printable(f"{column}={level}" if counted else what) for column, level, what in cells]
        names = [] if counted else ["column"]
        header = (*(printable(name) for name in factor.given), *names, *heads, *cut)
        for group, values in zip(shown, block.values[: len(shown), :most], strict=True):
            column, level, _ = cells[0] if cells else ("", None, "")
            told = [] if counted else [printable(column if level is None else f"{column}={level}")]
            line = [*map(printable, group), *told, *(f"{value:.6g}" for value in values), *cut]
            tables.setdefault(header, []).append(line)
    if int(statistic.n_columns) > _COLUMNS:
        more.append(f"… {int(statistic.n_columns) - _COLUMNS:,} more columns")
    if len(groups) > _GROUPS:
        more.append(f"… {len(groups) - _GROUPS:,} more groups")
    found = []
    for header, lines in tables.items():
        labels = len(factor.given) + (0 if isinstance(statistic, Counts) else 1)
        found += text_table([header, *lines], right=range(labels, len(header)))
    return [f"  {line}" for line in [*found, *(f"  {line}" for line in more)]]


def title(factor: Factor) -> str:
    """What a factor is: p(columns | given)."""
    shown = ", ".join(map(printable, factor.columns[:3])) + (", …" if len(factor.columns) > 3 else "")
    return f"p({shown}" + (f" | {', '.join(map(printable, factor.given))})" if factor.given else ")")


def levels_of(domain: Domain) -> str:
    """The first levels of a domain."""
    more = len(domain.levels) - 8
    return ", ".join(repr(level) for level in domain.levels[:8]) + (f", … {more} more" if more > 0 else "")
