"""Class-conditional distributions of single columns, and their mutual information with the class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import chunk_of, chunk_rows
from tallybayes.families.protocols.counting import sql_group_value
from tallybayes.families.protocols.display import plot_grid, plot_scale
from tallybayes.models.classification.estimated_classifier import estimates_of

if TYPE_CHECKING:
    from tallybayes.data.table import Table
    from tallybayes.estimation.scoring.factor_scorer import FactorScorer
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean

_COARSE_GRID = 60  # grid points that suffice for the mutual information


class PlotColumn(NamedTuple):
    """Column of a fitted model; `position` is its position in the factor."""

    name: Any
    key: Any  # name in the rows; of a block, (block, position)
    scored: FactorScorer
    position: int
    levels: tuple[Any, ...]  # of a categorical column
    middles: np.ndarray | None = None  # midpoints of bins, for a discretized column


class Marginal(NamedTuple):
    """p(column | class) on a grid of numbers, or for the levels of a categorical column."""

    name: Any
    at: np.ndarray
    levels: tuple[Any, ...]
    density: np.ndarray  # (points, classes)
    is_continuous: bool
    scale: str
    constant: bool


def columns_in(model: ClassConditionalModel | NearestClassMean) -> list[PlotColumn]:
    """Return the columns of a model in order. The words of a vocabulary are the levels of one column."""
    columns: list[PlotColumn] = []
    levels: tuple[Any, ...]
    names = model._column_names
    for scored in model._factor_scorers:
        factor = scored.factor
        family = scored.family
        if family.is_bag_of_words:
            n = n_columns(scored)
            block = len(factor.columns) == 1 and n > 1
            name = factor.columns[0] if block else "words"
            levels = tuple(names.display((name, position)) for position in range(n)) if block else factor.columns
            levels = tuple(level[1] if isinstance(level, tuple) else level for level in levels)
            columns.append(PlotColumn(name, name, scored, 0, levels))
            continue
        n = n_columns(scored)
        for position in range(n):
            key = factor.column(position, n)
            if family.cell_type != "codes":
                columns.append(PlotColumn(names.display(key), key, scored, position, ()))
                continue
            bins = model._display_family(factor, key)
            middles = sql_group_value(bins, np.arange(len(bins.bins))) if bins.bins else None
            levels = bins.bins or names.tally.domain(factor.columns[position]).levels
            columns.append(PlotColumn(key, key, scored, position, levels, middles))
    return columns


def cells_of(model: ClassConditionalModel, table: Table, column: PlotColumn) -> np.ndarray:
    """Return the cells of a column as numbers: values, or codes of levels."""
    cells = estimates_of(model).cells(table, column.scored)
    return chunk_of(cells, slice(None))[:, column.position].astype(float)


def n_columns(scored: FactorScorer) -> int:
    """Return the number of columns of a factor; the columns of a block count one by one."""
    if scored.family.cell_type == "codes":
        return len(scored.factor.columns)
    return int(np.shape(scored.family.mean(scored.parameters))[-1])


def select(values: Mapping[Any, Any], columns: Any) -> list[Any]:
    """Return the values of these names, in the order of the names."""
    is_single = isinstance(columns, str | int) or (isinstance(columns, tuple) and columns in values)  # (block, place)
    names = [columns] if is_single else list(columns)
    unknown = [name for name in names if name not in values]
    if unknown:
        raise DataError.unknown_column(unknown, list(values))
    return [values[name] for name in names]


def marginal(column: PlotColumn) -> Marginal:
    """Return the distribution of a column in each class."""
    scored = column.scored
    family = column.scored.family
    constant = column.position in scored.constant
    if family.is_bag_of_words:
        mean = np.asarray(family.mean(scored.parameters), dtype=float)
        total = mean.sum(axis=-1, keepdims=True)
        density = np.divide(mean, total, out=np.zeros(mean.shape), where=total > 0).T
        return Marginal(column.name, np.arange(len(column.levels)), column.levels, density, False, "linear", False)
    grid = _grid_of(column)
    density = np.exp(next(_log_densities(scored, [column], grid[:, None]))[..., 0])
    return Marginal(column.name, grid, column.levels, density, family.is_continuous, plot_scale(family), constant)


def column_information(log_prior: np.ndarray, columns: list[PlotColumn]) -> np.ndarray:
    """Return the mutual information I(class; column) of each column under the model, in bits."""
    prior = np.exp(log_prior)
    information = np.zeros(len(columns))
    for scored in {id(column.scored): column.scored for column in columns}.values():
        indices = [index for index, column in enumerate(columns) if column.scored is scored]
        if scored.family.is_bag_of_words:
            information[indices] = _information(marginal(columns[indices[0]]).density, prior).sum()
            continue
        grids = [_grid_of(columns[index]) for index in indices]
        if scored.family.is_continuous and not scored.family.columnwise:
            grids = [grid[:: max(1, len(grid) // _COARSE_GRID)] for grid in grids]
        missing = -1 if scored.family.cell_type == "codes" else np.nan
        points = np.full(
            (max(map(len, grids)), len(indices)), missing, dtype=grids[0].dtype if missing == -1 else float
        )
        weights = np.zeros(points.shape)
        for k, grid in enumerate(grids):
            points[: len(grid), k] = grid
            weights[: len(grid), k] = _widths(grid) if scored.family.is_continuous else 1.0
        start = 0
        for log_density in _log_densities(scored, [columns[index] for index in indices], points):
            batch = slice(start, start + len(log_density))
            start = batch.stop
            information[indices] += (weights[batch] * _information(np.exp(log_density), prior)).sum(axis=0)
    return np.nan_to_num(information)


def most_informative_columns(
    log_prior: np.ndarray, columns: list[PlotColumn], most: int
) -> tuple[list[PlotColumn], str]:
    """Return at most `most` columns with the largest information, in order, and a note about the choice."""
    if len(columns) <= most:
        return columns, ""
    information = column_information(log_prior, columns)
    kept = np.sort(np.argsort(-information, kind="stable")[:most])
    low = information[kept].min()
    high = information[kept].max()
    bits = f"{high:.2g} to {low:.2g} bits"
    note = f"showing {most} of {len(columns)} columns, those with the largest information on the class: {bits}"
    return [columns[index] for index in kept], note


def most_informative_levels(density: np.ndarray, prior: np.ndarray, most: int) -> np.ndarray:
    """Return the indices of at most `most` levels with the largest information, in order."""
    if len(density) <= most:
        return np.arange(len(density))
    return np.sort(np.argsort(-_information(density, prior), kind="stable")[:most])


def _grid_of(column: PlotColumn) -> np.ndarray:
    """Return the grid of a column: numbers, or codes of levels."""
    if column.levels or column.scored.family.cell_type == "codes":
        return np.arange(len(column.levels))
    scored = column.scored
    position = column.position
    if scored.family.columnwise:
        return np.asarray(plot_grid(scored.family, scored.parameters, position))
    mean = np.asarray(scored.point[0])[:, position]
    half_width = 4 * np.sqrt(covariances(scored)[:, position, position])
    return np.linspace((mean - half_width).min(), (mean + half_width).max(), 400)


def has_ellipse(scored: FactorScorer) -> bool:
    """Return whether a factor has means and covariances on the linear scale."""
    return plot_scale(scored.family) == "linear" and "mean" in getattr(scored.point, "_fields", ())


def covariances(scored: FactorScorer) -> np.ndarray:
    """Return the covariance matrix of each class, for a Gaussian factor."""
    covariance = np.asarray(scored.point[1])
    return covariance if covariance.ndim == 3 else covariance[..., None] * np.eye(covariance.shape[-1])


def _log_densities(scored: FactorScorer, columns: list[PlotColumn], at: np.ndarray) -> Iterator[np.ndarray]:
    """Yield log p on the grids of columns in batches, shape (points, classes, columns); other columns are missing."""
    codes = scored.family.cell_type == "codes"
    n = n_columns(scored)
    positions = [column.position for column in columns]
    n_classes = np.shape(scored.log_prob(np.full((1, n), -1 if codes else np.nan)))[1]
    step = chunk_rows(n_classes, n)
    for start in range(0, max(len(at), 1), step):  # at least once, for the shape
        points = at[start : start + step]
        if scored.family.columnwise:
            rows = np.full((len(points), n), -1 if codes else np.nan, dtype=np.int64 if codes else np.float64)
            rows[:, positions] = points
            yield scored.log_prob(rows)[:, :, positions]
            continue
        densities = []
        for k, position in enumerate(positions):
            rows = np.full((len(points), n), np.nan)
            rows[:, position] = points[:, k]
            densities.append(scored.log_prob(rows))
        yield np.stack(densities, axis=-1)


def _widths(grid: np.ndarray) -> np.ndarray:
    """Return the weights of the trapezoidal rule."""
    if len(grid) < 2:
        return np.ones(len(grid))
    gap = np.diff(grid)
    return np.concatenate([[0.0], gap / 2]) + np.concatenate([gap / 2, [0.0]])


def _information(density: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return Σ p(class) p(x | class) log₂ p(x | class) / p(x) at each point; axis 1 is the class."""
    weight = prior.reshape(1, -1, *[1] * (density.ndim - 2))
    joint = np.nan_to_num(density * weight, posinf=0.0)
    marginal_density = joint.sum(axis=1, keepdims=True)
    ratio = np.divide(
        joint,
        marginal_density * weight,
        out=np.ones(joint.shape),
        where=(marginal_density > 0) & (weight > 0) & (joint > 0),
    )
    return np.asarray((joint * np.log2(ratio)).sum(axis=1))
