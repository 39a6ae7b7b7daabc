"""Class-conditional distributions of single columns, and their mutual information with the class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import rel_entr

from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import chunk_of, chunk_rows
from tallybayes.families.protocols.counting import sql_group_value
from tallybayes.families.protocols.display import plot_grid, plot_scale
from tallybayes.models.classification.estimated_classifier import estimates_of

if TYPE_CHECKING:
    from tallybayes.data.table import Table
    from tallybayes.estimation.scoring.factor_scorer import FactorScorer
    from tallybayes.families.family import Family
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

    @property
    def family(self) -> Family:
        """The family of the column."""
        return self.scored.family

    @property
    def scale(self) -> str:
        """The scale of the axis: linear or log."""
        return "linear" if self.family.is_bag_of_words else plot_scale(self.family)

    @property
    def grid(self) -> np.ndarray:
        """The points at which to plot the distribution: numbers, or codes of levels."""
        if self.levels or self.family.cell_type == "codes":
            return np.arange(len(self.levels))
        if self.family.columnwise:
            return np.asarray(plot_grid(self.family, self.scored.parameters, self.position))
        mean = np.asarray(self.scored.point[0])[:, self.position]
        half_width = 4 * np.sqrt(covariances(self.scored)[:, self.position, self.position])
        return np.linspace((mean - half_width).min(), (mean + half_width).max(), 400)

    def density(self) -> np.ndarray:
        """Return p(column | class) on the grid, shape (points, classes)."""
        if self.family.is_bag_of_words:
            mean = np.asarray(self.family.mean(self.scored.parameters), dtype=float)
            total = mean.sum(axis=-1, keepdims=True)
            return np.divide(mean, total, out=np.zeros(mean.shape), where=total > 0).T
        batches = list(_log_densities(self.scored, [self.position], self.grid[:, None]))
        return np.exp(np.concatenate(batches)[..., 0])


def columns_in(model: ClassConditionalModel | NearestClassMean) -> list[PlotColumn]:
    """Return the columns of a model in order. The words of a vocabulary are the levels of one column."""
    columns: list[PlotColumn] = []
    column_names = model._column_names
    for scored in model._factor_scorers:
        factor = scored.factor
        n = n_columns(scored)
        keys = [factor.column(position, n) for position in range(n)]
        names = [column_names.display(key) for key in keys]
        if scored.family.is_bag_of_words:
            words = tuple(name[1] if isinstance(name, tuple) else name for name in names)
            name = factor.columns[0] if len(factor.columns) == 1 and n > 1 else "words"
            columns.append(PlotColumn(name, name, scored, 0, words))
        elif scored.family.cell_type == "codes":
            for position, key in enumerate(keys):
                bins = model._display_family(factor, key)
                levels = bins.bins or column_names.tally.domain(factor.columns[position]).levels
                middles = sql_group_value(bins, np.arange(len(bins.bins))) if bins.bins else None
                columns.append(PlotColumn(key, key, scored, position, levels, middles))
        else:
            columns += [PlotColumn(names[k], key, scored, k, ()) for k, key in enumerate(keys)]
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


def column_information(log_prior: np.ndarray, columns: list[PlotColumn]) -> np.ndarray:
    """Return the mutual information I(class; column) of each column under the model, in bits."""
    prior = np.exp(log_prior)
    information = np.zeros(len(columns))
    for scored in {id(column.scored): column.scored for column in columns}.values():
        indices = [index for index, column in enumerate(columns) if column.scored is scored]
        family = scored.family
        if family.is_bag_of_words:
            information[indices] = _information(columns[indices[0]].density(), prior).sum()
            continue
        grids = [columns[index].grid for index in indices]
        if family.is_continuous and not family.columnwise:
            grids = [grid[:: max(1, len(grid) // _COARSE_GRID)] for grid in grids]
        widths = [trapezoids(grid) if family.is_continuous else np.ones(len(grid)) for grid in grids]
        points = np.array(list(zip_longest(*grids, fillvalue=_missing(scored)))).reshape(-1, len(indices))
        weights = np.array(list(zip_longest(*widths, fillvalue=0.0))).reshape(points.shape)
        start = 0
        for log_density in _log_densities(scored, [columns[index].position for index in indices], points):
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
    bits = f"{information[kept].max():.2g} to {information[kept].min():.2g} bits"
    note = f"showing {most} of {len(columns)} columns, those with the largest information on the class: {bits}"
    return [columns[index] for index in kept], note


def most_informative_levels(density: np.ndarray, prior: np.ndarray, most: int) -> np.ndarray:
    """Return the indices of at most `most` levels with the largest information, in order."""
    return np.sort(np.argsort(-_information(density, prior), kind="stable")[:most])


def has_ellipse(scored: FactorScorer) -> bool:
    """Return whether a factor has means and covariances on the linear scale."""
    return plot_scale(scored.family) == "linear" and "mean" in getattr(scored.point, "_fields", ())


def covariances(scored: FactorScorer) -> np.ndarray:
    """Return the covariance matrix of each class, for a Gaussian factor."""
    covariance = np.asarray(scored.point[1])
    return covariance if covariance.ndim == 3 else covariance[..., None] * np.eye(covariance.shape[-1])


def trapezoids(grid: np.ndarray) -> np.ndarray:
    """Return the weights of the trapezoidal rule."""
    return np.diff((grid[1:] + grid[:-1]) / 2, prepend=grid[:1], append=grid[-1:])


def _missing(scored: FactorScorer) -> float:
    """Return the value of a missing cell: of codes a whole number, so that arrays of them are whole, too."""
    return -1 if scored.family.cell_type == "codes" else np.nan


def _log_densities(scored: FactorScorer, positions: list[int], points: np.ndarray) -> Iterator[np.ndarray]:
    """Yield log p of points of columns in batches, shape (points, classes, columns); other columns are missing."""
    missing = np.full((1, n_columns(scored)), _missing(scored))
    step = chunk_rows(np.shape(scored.log_prob(missing))[1], missing.size)
    # The columns of some families are scored at once, those of others one after another.
    groups = [positions] if scored.family.columnwise else [[position] for position in positions]
    for start in range(0, max(len(points), 1), step):  # at least once, for the shape
        batch = points[start : start + step]
        densities = []
        for group in groups:
            rows = missing.repeat(len(batch), axis=0)
            rows[:, group] = batch[:, [positions.index(position) for position in group]]
            log_prob = scored.log_prob(rows)
            densities.append(log_prob[:, :, group] if scored.family.columnwise else log_prob[..., None])
        yield np.concatenate(densities, axis=-1)


def _information(density: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return Σ p(class) p(x | class) log₂ p(x | class) / p(x) at each point; axis 1 is the class."""
    weight = prior.reshape(1, -1, *[1] * (density.ndim - 2))
    joint = np.nan_to_num(density * weight, posinf=0.0)
    return np.asarray(rel_entr(joint, joint.sum(axis=1, keepdims=True) * weight).sum(axis=1) / np.log(2))
