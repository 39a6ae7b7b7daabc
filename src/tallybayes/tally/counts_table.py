"""Statistics of a tally with their labels, as records in long format and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes._utils.text_table import text_table
from tallybayes.errors import printable
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.tally.domain import Domain
    from tallybayes.tally.factor import Factor
    from tallybayes.tally.tally import Tally

# Number of groups, levels, columns and statistics of a factor that are shown.
_MAX_GROUPS = 8
_MAX_LEVELS = 8
_MAX_COLUMNS = 4
_MAX_STATISTICS = 3


class Block(NamedTuple):
    """Numbers of some columns of a factor, (groups, cells), and (column, level, statistic) of every cell."""

    cells: list[tuple[Any, Any, str]]
    values: np.ndarray


def groups_of(tally: Tally, factor: Factor) -> list[tuple[Any, ...]]:
    """Return the levels of ``given`` for every group."""
    return list(product(*(tally.domain(name).levels for name in factor.given)))


def blocks_of(tally: Tally, factor: Factor, statistic: Statistics, most: int | None = None) -> Iterator[Block]:
    """Yield the numbers of a factor column by column, of at most the first `most` columns."""
    width = statistic.n_columns
    statistic = statistic if most is None or width <= most else statistic.columns(np.arange(most))
    n_groups = int(np.prod(statistic.given_shape, dtype=np.int64))
    if isinstance(statistic, Counts):
        tables = statistic.segments.split(statistic.table.reshape(n_groups, -1))
        for number, table in enumerate(tables):
            column = factor.column(number, width)
            levels: Iterable[Any] = range(table.shape[1])
            if factor.level_columns:
                levels = tally.domain(factor.columns[number]).levels
            yield Block([(column, level, "count") for level in levels], table)
        return
    parts = _parts(statistic)
    n_columns = statistic.n_columns
    words = tally.domain(factor.columns[0]).levels if factor.word_columns else ()
    names = [factor.column(number, width) for number in range(n_columns)]
    for number, name in enumerate(names):
        column, level = (factor.columns[0], words[number]) if words else (name, None)
        cells = [(column, level, quantity) for quantity in parts]
        values = [part.reshape(n_groups, -1)[:, number % max(1, part.shape[-1])] for part in parts.values()]
        if isinstance(statistic, Moments) and statistic.full:
            scatter = statistic.scatter.reshape(n_groups, n_columns, n_columns)
            values[-1] = scatter[:, number, number]
            cells += [(column, level, f"scatter with {other}") for other in names[:number]]
            values += [scatter[:, number, other] for other in range(number)]
        yield Block(cells, np.stack(values, axis=1))


def _parts(statistic: Statistics) -> dict[str, np.ndarray]:
    """Return the numbers of every column by name, each (*given, columns) or (*given, 1)."""
    if isinstance(statistic, Totals):
        return {"weight": statistic.weight, "total": statistic.total}
    if isinstance(statistic, Moments):
        return {"weight": statistic.weight, "mean": statistic.mean, "scatter": statistic.scatter}
    return {"weight": np.asarray(statistic.group_weights())[..., None]}  # statistics of a user-defined family


def to_records(tally: Tally) -> dict[str, list[Any]]:
    """Return all counts as columns: factor, levels of the conditioning columns, column, level, statistic, value."""
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
                axis = factor.given.index(name) if name in factor.given else None
                labels[name] += [None if axis is None else group[axis] for group in groups for _ in range(n)]
            for position, field in enumerate(("column", "level", "statistic")):
                rest[field] += [cell[position] for cell in block.cells] * len(groups)
            rest["value"] += block.values.ravel().tolist()
    named = {f"given {name}" if str(name) in (*out, *rest) else str(name): levels for name, levels in labels.items()}
    return {**out, **named, **rest}


def format_counts(tally: Tally, factor: Factor, statistic: Statistics) -> list[str]:
    """Return the numbers of a factor as aligned lines; only the first of a large factor."""
    groups = groups_of(tally, factor)
    is_counts = isinstance(statistic, Counts)
    most = _MAX_LEVELS if is_counts else _MAX_STATISTICS
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    for block in blocks_of(tally, factor, statistic, _MAX_COLUMNS):
        cells = block.cells[:most]
        ellipsis = ["…"] if is_counts and len(block.cells) > most else []
        heads = [printable(f"{column}={level}" if is_counts else quantity) for column, level, quantity in cells]
        names = [] if is_counts else ["column"]
        header = (*(printable(name) for name in factor.given), *names, *heads, *ellipsis)
        for group, values in zip(groups[:_MAX_GROUPS], block.values[:_MAX_GROUPS, :most], strict=True):
            column, level, _ = cells[0] if cells else ("", None, "")
            label = [] if is_counts else [printable(column if level is None else f"{column}={level}")]
            line = [*map(printable, group), *label, *(f"{value:.6g}" for value in values), *ellipsis]
            tables.setdefault(header, []).append(line)
    lines = []
    for header, body in tables.items():
        n_labels = len(factor.given) + (0 if is_counts else 1)
        lines += text_table([header, *body], right=range(n_labels, len(header)))
    if statistic.n_columns > _MAX_COLUMNS:
        lines.append(f"  … {statistic.n_columns - _MAX_COLUMNS:,} more columns")
    if len(groups) > _MAX_GROUPS:
        lines.append(f"  … {len(groups) - _MAX_GROUPS:,} more groups")
    return [f"  {line}" for line in lines]


def title(factor: Factor) -> str:
    """Return a factor as p(columns | given)."""
    shown = ", ".join(map(printable, factor.columns[:3])) + (", …" if len(factor.columns) > 3 else "")
    return f"p({shown}" + (f" | {', '.join(map(printable, factor.given))})" if factor.given else ")")


def format_levels(domain: Domain) -> str:
    """Return the first levels of a domain as text."""
    more = len(domain.levels) - 8
    return ", ".join(repr(level) for level in domain.levels[:8]) + (f", … {more} more" if more > 0 else "")
