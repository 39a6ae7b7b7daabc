"""What a model says of its columns one by one: p(column | class), and what each tells of the class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import chunk_rows

_FEWER = 60  # places on a curve that say well enough how much a column tells


class PlotColumn(NamedTuple):
    """One column of a fitted model; `place` is its place in the factor."""

    name: Any
    key: Any  # what rows call it: of a block, its place there
    scored: Any
    place: int
    levels: tuple[Any, ...]  # of a column of labels
    middles: np.ndarray | None = None  # of bins, which are levels to some models


class Marginal(NamedTuple):
    """p(column | class) at some places: values of a number, or the levels of labels."""

    name: Any
    at: np.ndarray
    levels: tuple[Any, ...]
    density: np.ndarray  # (places, classes)
    measured: bool
    scale: str
    constant: bool


def columns_in(model: Any) -> list[PlotColumn]:
    """The columns of a model in their order; the words of a vocabulary are the levels of one."""
    found: list[PlotColumn] = []
    levels: tuple[Any, ...]
    for scored in model._factor_scorers:
        factor, family = scored.factor, scored.family
        if family.is_bag_of_words:
            n = np.shape(family.mean(scored.parameters))[-1]
            block = len(factor.columns) == 1 and n > 1
            name = factor.columns[0] if block else "words"
            levels = tuple(model._display_name((name, place)) for place in range(n)) if block else factor.columns
            levels = tuple(level[1] if isinstance(level, tuple) else level for level in levels)
            found.append(PlotColumn(name, name, scored, 0, levels))
            continue
        codes = family.cell_type == "codes"
        n = len(factor.columns) if codes else np.shape(family.mean(scored.parameters))[-1]
        for place in range(n):
            key = factor.column(place, n)
            if not codes:
                found.append(PlotColumn(model._display_name(key), key, scored, place, ()))
                continue
            bins = model._display_family(factor, key)
            middles = bins.sql_group_value(np.arange(len(bins.bins))) if bins.bins else None
            levels = bins.bins or model._level_domains(scored)[place].levels
            found.append(PlotColumn(key, key, scored, place, levels, middles))
    return found


def picked(known: Mapping[Any, Any], columns: Any) -> list[Any]:
    """What is known of these names, in the order in which they are named."""
    one = isinstance(columns, str | int) or (isinstance(columns, tuple) and columns in known)  # (block, place)
    names = [columns] if one else list(columns)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DataError.unknown_column(unknown, list(known))
    return [known[name] for name in names]


def marginal(column: PlotColumn) -> Marginal:
    """The distribution of a column in every class."""
    scored, family = column.scored, column.scored.family
    constant = column.place in scored.constant
    if family.is_bag_of_words:
        share = np.asarray(family.mean(scored.parameters), dtype=float)
        total = share.sum(axis=-1, keepdims=True)
        density = np.divide(share, total, out=np.zeros(share.shape), where=total > 0).T
        return Marginal(column.name, np.arange(len(column.levels)), column.levels, density, False, "linear", False)
    at = _places(column)
    density = np.exp(next(_log_densities(scored, [column], at[:, None]))[..., 0])
    return Marginal(column.name, at, column.levels, density, family.is_continuous, family.scale, constant)


def column_information(model: Any, found: list[PlotColumn]) -> np.ndarray:
    """I(class; column) of every column under the model, in bits: what knowing it tells of the class, on average."""
    prior = np.exp(model.class_log_prior_)
    told = np.zeros(len(found))
    for scored in model._factor_scorers:
        mine = [place for place, column in enumerate(found) if column.scored is scored]
        if not mine:
            continue
        if scored.family.is_bag_of_words:
            told[mine] = _information(marginal(found[mine[0]]).density, prior).sum()
            continue
        grids = [_places(found[place]) for place in mine]
        if scored.family.is_continuous and not scored.family.columnwise:
            grids = [grid[:: max(1, len(grid) // _FEWER)] for grid in grids]
        empty = -1 if scored.family.cell_type == "codes" else np.nan
        at = np.full((max(map(len, grids)), len(mine)), empty, dtype=grids[0].dtype if empty == -1 else float)
        share = np.zeros(at.shape)
        for k, grid in enumerate(grids):
            at[: len(grid), k] = grid
            share[: len(grid), k] = _widths(grid) if scored.family.is_continuous else 1.0
        start = 0
        for log_density in _log_densities(scored, [found[place] for place in mine], at):
            part = slice(start, start + len(log_density))
            start = part.stop
            told[mine] += (share[part] * _information(np.exp(log_density), prior)).sum(axis=0)
    return np.nan_to_num(told)


def most_informative_columns(model: Any, found: list[PlotColumn], most: int) -> tuple[list[PlotColumn], str]:
    """At most so many columns: those that tell most of the class, in their own order, and a note of the choice."""
    if len(found) <= most:
        return found, ""
    told = column_information(model, found)
    kept = np.sort(np.argsort(-told, kind="stable")[:most])
    low, high = told[kept].min(), told[kept].max()
    note = f"showing {most} of {len(found)} columns, those that tell most of the class: {high:.2g} to {low:.2g} bits"
    return [found[place] for place in kept], note


def most_informative_levels(density: np.ndarray, prior: np.ndarray, most: int) -> np.ndarray:
    """The places of at most so many levels, those that tell most, in their own order."""
    if len(density) <= most:
        return np.arange(len(density))
    return np.sort(np.argsort(-_information(density, prior), kind="stable")[:most])


def _places(column: PlotColumn) -> np.ndarray:
    """Where the distribution is looked at."""
    if column.levels or column.scored.family.cell_type == "codes":
        return np.arange(len(column.levels))
    scored, place = column.scored, column.place
    if scored.family.columnwise:
        return np.asarray(scored.family.plot_grid(scored.parameters, place))
    mean, reach = np.asarray(scored.point[0])[:, place], 4 * np.sqrt(covariances(scored)[:, place, place])
    return np.linspace((mean - reach).min(), (mean + reach).max(), 400)


def has_ellipse(scored: Any) -> bool:
    """Whether numbers have means and spreads as they are drawn: no logarithms of them, and no bins."""
    return scored.family.scale == "linear" and "mean" in getattr(scored.point, "_fields", ())


def covariances(scored: Any) -> np.ndarray:
    """A covariance matrix for every class, of a factor of numbers that are measured together."""
    spread = np.asarray(scored.point[1])
    return spread if spread.ndim == 3 else spread[..., None] * np.eye(spread.shape[-1])


def _log_densities(scored: Any, columns: list[PlotColumn], at: np.ndarray) -> Iterator[np.ndarray]:
    """log p at places of each of some columns, (places, classes, columns), in pieces; other columns are missing."""
    codes = scored.family.cell_type == "codes"
    n = len(scored.factor.columns) if codes else np.shape(scored.family.mean(scored.parameters))[-1]
    width = [column.place for column in columns]
    n_classes = np.shape(scored.log_prob(np.full((1, n), -1 if codes else np.nan)))[1]
    step = chunk_rows(n_classes, n)
    for start in range(0, max(len(at), 1), step):  # once at least, for the shape
        part = at[start : start + step]
        if scored.family.columnwise:
            rows = np.full((len(part), n), -1 if codes else np.nan, dtype=np.int64 if codes else np.float64)
            rows[:, width] = part
            yield scored.log_prob(rows)[:, :, width]
            continue
        alone = []
        for k, place in enumerate(width):
            rows = np.full((len(part), n), np.nan)
            rows[:, place] = part[:, k]
            alone.append(scored.log_prob(rows))
        yield np.stack(alone, axis=-1)


def _widths(grid: np.ndarray) -> np.ndarray:
    """The weights of the trapezoidal rule."""
    if len(grid) < 2:
        return np.ones(len(grid))
    gap = np.diff(grid)
    return np.concatenate([[0.0], gap / 2]) + np.concatenate([gap / 2, [0.0]])


def _information(density: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Σ p(class) p(x | class) log₂ p(x | class) / p(x) at every place; classes are the second axis."""
    weight = prior.reshape(1, -1, *[1] * (density.ndim - 2))
    joint = np.nan_to_num(density * weight, posinf=0.0)
    mixed = joint.sum(axis=1, keepdims=True)
    share = np.divide(joint, mixed * weight, out=np.ones(joint.shape), where=(mixed > 0) & (weight > 0) & (joint > 0))
    return np.asarray((joint * np.log2(share)).sum(axis=1))
