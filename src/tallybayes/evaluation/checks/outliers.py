"""Rows that are less probable than those a model draws itself, and which column is to blame."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.data.encoding import missing_mask
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.evaluation.checks.audit_result import OutlierRow
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.inputs.features import open_features

_LEAST_DRAWS, _MOST_DRAWS, _DRAWS = 10_000, 200_000, 20  # for every row
_MOST_CELLS, _FEWEST_DRAWS = 20_000_000, 1000  # cells of all draws; fewer draws of many columns, but at least these
_BY_CHANCE = 0.05  # rows that may be called improbable by chance
_TAIL = 0.01  # of the draws: where log p falls off as it will farther out
_PATTERNS = 6  # sets of missing cells that are compared by themselves
_BLAMED = 400_000  # cells that are left out one by one
_STACKED = 4_000_000  # cells of copies of rows that are scored in one call


def find_outliers(asked: Any, table: Table, notes: list[str]) -> tuple[list[OutlierRow], float, np.ndarray | None]:
    """Rows below what the model draws itself, how many are by chance, and log p of every row."""
    model = _of_densities(asked, table)
    why = None
    if model is None:
        why = "no member of the mixture describes all columns as they are"
    elif any(isinstance(column, Texts) for column in table.columns.values()) or _counts_tokens(model):
        why = "how many words or tokens a row has is no part of the model"
    elif any(isinstance(column, SparseRows) for column in table.columns.values()):
        why = "they are sparse"
    if why is not None:
        notes.append(f"rows are not compared with drawn ones: {why}")
        return [], 0.0, None
    density = model.score_samples(table)
    n = table.n_rows
    n_cells = sum(table.width(name) for name in table.columns)
    most = int(np.clip(_MOST_CELLS // max(1, n_cells), _FEWEST_DRAWS, _MOST_DRAWS))
    n_draws = min(most, max(_LEAST_DRAWS, _DRAWS * n))
    drawn = model.sample(n_draws, random_state=0)
    draws = open_features(drawn[0] if isinstance(drawn, tuple) else drawn)
    found, expected = np.zeros(n, dtype=bool), 0.0
    for rows, lacking in _patterns(table, draws):
        other = _lacking(draws, lacking) if lacking else draws
        lowest, share = _threshold(model.score_samples(other), n)
        found[rows] = density[rows] < lowest
        expected += share * len(rows)
    where = np.flatnonzero(found)
    where = where[np.argsort(density[where], kind="stable")]
    return _most_responsible_column(model, table, where, density), expected, density


def _counts_tokens(model: Any) -> bool:
    return any(factor.family.is_bag_of_words for factor in model.tally_.factors)


def _of_densities(model: Any, table: Table) -> Any:
    """The model that says how probable a row is: of several, the heaviest that reads the columns as they are."""
    if not hasattr(model, "members_"):
        return model
    fit = [one for one in model.members_ if set(one.model._required_columns) <= set(table.columns)]
    return max(fit, key=lambda one: one.spec.weight).model if fit else None


def _threshold(density: np.ndarray, n: int) -> tuple[float, float]:
    """Below which log p a row is improbable, and the share of rows that are by chance."""
    ordered = np.sort(density[np.isfinite(density)])
    lowest, share = float(ordered[0]), 1 / (len(ordered) + 1)
    slack = 1e-9 * (1 + abs(lowest))
    if n * share <= _BY_CHANCE:
        return lowest - slack, share
    # log p falls off about exponentially, whatever the model: as fast as in the lowest part that was drawn.
    tail = ordered[: max(2, int(_TAIL * len(ordered)))]
    return lowest - slack - float(tail[-1] - tail.mean()) * np.log(n * share / _BY_CHANCE), _BY_CHANCE / n


def _patterns(table: Table, draws: Table) -> list[tuple[np.ndarray, dict[Any, np.ndarray]]]:
    """Rows that lack the same cells, and which; those of rare patterns together, each with its own."""
    names = [name for name in draws.columns if name in table.columns and getattr(table.columns[name], "ndim", 1) == 1]
    there = {name: ~missing_mask(table.columns[name]) for name in names}
    names = [name for name in names if not there[name].all() and not _ever_missing(draws.columns[name])]
    if not names:
        return [(np.arange(table.n_rows), {})]
    absent = ~np.column_stack([there[name] for name in names])
    kinds, of_row, counts = np.unique(absent, axis=0, return_inverse=True, return_counts=True)
    of_row = np.ravel(of_row)
    often = np.argsort(-counts, kind="stable")[:_PATTERNS].tolist()
    found = [
        (np.flatnonzero(of_row == kind), {name: kinds[kind, k : k + 1] for k, name in enumerate(names)})
        for kind in often
    ]
    rest = np.flatnonzero(~np.isin(of_row, often))
    if len(rest):
        found.append((rest, {name: absent[rest, k] for k, name in enumerate(names)}))
    return found


def _ever_missing(column: Any) -> bool:
    """Whether the model draws absence itself, or nothing."""
    return bool(missing_mask(column[:_LEAST_DRAWS]).any())


def _lacking(draws: Table, lacking: dict[Any, np.ndarray]) -> Table:
    """Draws without some cells: those that the rows lack, one after the other."""
    columns = dict(draws.columns)
    for name, absent in lacking.items():
        if absent.any():
            columns[name] = emptied(columns[name], np.resize(absent, draws.n_rows))
    return Table(columns)


def _most_responsible_column(model: Any, table: Table, where: np.ndarray, density: np.ndarray) -> list[OutlierRow]:
    """Every improbable row with the column without which it is most probable."""
    names = [name for name in model._required_columns if name in table.columns]
    asked = where[: max(20, _BLAMED // max(1, len(names)))]
    some = table.rows(asked)
    best, who = np.zeros(len(asked)), np.full(len(asked), -1)
    size = max(1, _STACKED // max(1, len(asked) * len(names)))  # columns that are left out in one call
    for first in range(0, len(names) if len(asked) else 0, size):
        part = names[first : first + size]
        stacked = some.rows(np.tile(np.arange(len(asked)), len(part)))
        of_column = np.repeat(np.arange(len(part)), len(asked))
        without = {name: emptied(stacked.columns[name], of_column == k) for k, name in enumerate(part)}
        scores = model.score_samples(stacked.replaced({**stacked.columns, **without})).reshape(len(part), -1)
        for place, score in enumerate(scores, first):
            with np.errstate(invalid="ignore"):
                gain = np.nan_to_num(score - density[asked], nan=0.0, posinf=np.inf)
            who, best = np.where(gain > best, place, who), np.maximum(gain, best)
    rows = [
        OutlierRow(int(row), float(density[row]), names[k] if k >= 0 else None, float(nats))
        for row, k, nats in zip(asked.tolist(), who.tolist(), best.tolist(), strict=True)
    ]
    return rows + [OutlierRow(int(row), float(density[row]), None, 0.0) for row in where[len(asked) :].tolist()]


def cells_of(column: Any) -> list[Any]:
    """The cells of a column, in a list."""
    return column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column).tolist()


def emptied(column: Any, mask: np.ndarray | None = None) -> Any:
    """A column without some of its cells, or all."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return np.where(True if mask is None else mask.reshape(-1, *[1] * (column.ndim - 1)), np.nan, column)
    cells = np.empty(len(column), dtype=object)
    cells[:] = [None] * len(column) if mask is None else cells_of(column)
    if mask is not None:
        cells[mask] = None
    numbers = {type(cell) for cell in cells.tolist()} <= {int, float, type(None)}
    return cells.astype(float) if numbers and any(isinstance(cell, float) for cell in cells.tolist()) else cells
