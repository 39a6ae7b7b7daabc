"""Plane of two columns: its axes, its grid, and the functions that draw on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tallybayes.estimation.scoring.factor_scorer import chunk_rows
from tallybayes.plotting.style import DOTS, GroupStyle, gray_first, legend_beside, name_of, ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.classifier.groups import Groups
    from tallybayes.plotting.classifier.marginals import PlotColumn
    from tallybayes.plotting.classifier.plane_models import ClassConditionalPlane, EnsemblePlane

    PlaneModel: TypeAlias = ClassConditionalPlane | EnsemblePlane

ACROSS = 240  # grid points along each axis
_FAR = 1e6  # limit of a difference of log probabilities
_MOST_POINTS = 5000  # maximum number of plotted rows


@dataclass(frozen=True)
class Side:
    """Column along an axis of a plane, and its range."""

    name: Any
    key: Any  # name in the rows
    low: float
    high: float
    levels: tuple[Any, ...] = ()  # of a categorical column
    middles: np.ndarray | None = None  # midpoints of bins, for a discretized column
    scale: str = "linear"
    whole: bool = False

    @classmethod
    def of_column(cls, column: PlotColumn) -> Side:
        """Return a column of a fitted model as the axis of a plane."""
        grid = column.grid
        edge = 0.5 if column.levels else 0.0
        low, high = grid.min() - edge, grid.max() + edge
        whole = not column.family.is_continuous
        return cls(column.name, column.key, low, high, column.levels, column.middles, column.scale, whole)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the number, or the level code, of each grid position."""
        if self.levels:
            return np.clip(np.round(places), 0, len(self.levels) - 1)
        return np.maximum(np.round(places), 0.0) if self.whole else places

    def cells(self, at: np.ndarray) -> np.ndarray:
        """Return cell values of the column for numbers or level codes."""
        if not self.levels:
            return at
        levels = np.fromiter(self.levels, dtype=object) if self.middles is None else self.middles
        return levels[at.astype(int)]

    def grid(self, points: np.ndarray, n: int) -> np.ndarray:
        """Return the grid along the axis: it covers the distribution and all rows, from 0 if none is negative."""
        low, high = self.low, self.high
        known = points[np.isfinite(points)]
        if len(known) and not self.levels:
            edge = 0.02 * np.ptp(known) if self.scale == "linear" else 0.0  # keep dots off the frame
            low = max(low, -edge) if known.min() >= 0 else low
            low, high = min(low, known.min() - edge), max(high, known.max() + edge)
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
        n = max(n, 4 * len(self.levels))
        return np.geomspace(low, high, n) if self.scale == "log" else np.linspace(low, high, n)


class Plane(NamedTuple):
    """Grid of two columns, or of one."""

    columns: list[int]  # indices among the columns of the model
    sides: list[Side]
    note: str  # choice of the columns, and treatment of the others
    along: list[np.ndarray]  # grid positions of each side

    @classmethod
    def of_columns(cls, plane_model: PlaneModel, columns: list[int], note: str, points: np.ndarray | None) -> Plane:
        """Return the plane of two columns, or the line of one, that covers all rows."""
        sides = [plane_model.side(k) for k in columns]
        cells = np.zeros((len(sides), 0)) if points is None else points.T
        along = [side.grid(known, plane_model.across) for side, known in zip(sides, cells, strict=True)]
        return cls(columns, sides, note, along)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of grid positions: of the second column, then of the first."""
        return tuple(map(len, self.along[::-1]))

    @property
    def values(self) -> list[np.ndarray]:
        """The distinct numbers or level codes at the grid positions of each side."""
        return [np.unique(side.at(along)) for side, along in zip(self.sides, self.along, strict=True)]

    def expand(self, scores: np.ndarray) -> np.ndarray:
        """Return scores of the distinct values at every grid point, shape (up, across, classes)."""
        values = self.values
        at = (side.at(along) for side, along in zip(self.sides, self.along, strict=True))
        index = [*map(np.searchsorted, values, at)]
        return scores.reshape(*map(len, values[::-1]), scores.shape[-1])[np.ix_(*index[::-1])]

    def evaluate(
        self, score: Callable[[dict[Any, np.ndarray], int], np.ndarray], width: int, known: Sequence[int] = (0, 1)
    ) -> np.ndarray:
        """Return the scores of a function of rows at all distinct values, shape (up, across, classes).

        Rows have `width` columns; `score` receives the cells of the known columns and fills the others. An axis whose
        column is not known has length 1.
        """
        values = [values if k in known else np.zeros(1) for k, values in enumerate(self.values)]
        points = [axis.ravel() for axis in np.meshgrid(*values)]
        step = chunk_rows(1, width)
        batches = []
        for start in range(0, len(points[0]), step):  # batches limit memory
            part = [axis[start : start + step] for axis in points]
            cells = {side.key: side.cells(part[k]) for k, side in enumerate(self.sides) if k in known}
            batches.append(score(cells, len(part[0])))
        return np.concatenate(batches).reshape(*map(len, values[::-1]), -1)

    def grid(self) -> dict[str, list[Any]]:
        """Return the grid points by the names of the columns: numbers or levels."""
        names = [str(side.name) for side in self.sides]
        names = names if len(set(names)) == len(names) else [f"{name} {k}" for k, name in enumerate(names)]
        names = [f"{name}_" if name in ("class", "predicted", "log_joint", "log_product") else name for name in names]
        grids = np.meshgrid(*(side.at(along) for side, along in zip(self.sides, self.along, strict=True)))
        return {name: side.cells(at.ravel()).tolist() for name, side, at in zip(names, self.sides, grids, strict=True)}


def draw_regions(ax: Axes, plane: Plane, scores: np.ndarray, styles: list[GroupStyle], *, filled: bool = True) -> None:
    """Fill the decision region of each class with its color, and draw the boundaries; scores are those of `expand`."""
    for k, style in enumerate(styles):
        others = np.delete(scores, k, axis=-1).max(axis=-1, initial=-np.inf)
        with np.errstate(invalid="ignore"):  # -inf - -inf
            margin = np.clip(np.nan_to_num(scores[..., k] - others, nan=-1.0), -_FAR, _FAR)
        if filled and (margin > 0).any():
            ax.contourf(*plane.along, margin, levels=[0, 2 * _FAR], colors=[style.color], alpha=0.15)
        if (margin > 0).any() and (margin < 0).any():
            ax.contour(*plane.along, margin, levels=[0], colors="#555555", linewidths=0.6)


def draw_probabilities(
    ax: Axes, plane: Plane, proba: np.ndarray, groups: Groups, points: np.ndarray | None, labels: np.ndarray | None
) -> None:
    """Draw p(class | x) of the distinct values of one column, and rows as short strokes below."""
    side = plane.sides[0]
    styles = groups.styles()
    line: dict[str, Any] = {"marker": "o", "linestyle": ":"} if side.levels else {"linewidth": 1.8}
    for k in gray_first(styles):
        ax.plot(plane.values[0], proba[:, k], color=styles[k].color, **line)
    if points is not None:
        for number, (of_group, color) in enumerate(_points_of_groups(plane, points, groups, labels)):
            height = np.full(len(of_group), -0.05 - 0.05 * (number % 8))
            ax.plot(of_group[:, 0], height, color=color, linestyle="", marker="|", markersize=5, alpha=0.5)
    ax.set(xlabel=name_of(side.name), ylabel="p(class | x)", xscale=side.scale, yticks=np.linspace(0, 1, 6))
    if side.levels:
        ticks(ax, "x", side.levels, 8.0, 16)
    ax.set_ylim(-0.02 if points is None else None, 1.02)
    legend_beside(ax, groups.target, styles)


def draw_points(ax: Axes, plane: Plane, groups: Groups, points: np.ndarray | None, labels: np.ndarray | None) -> None:
    """Draw rows as dots, with gray classes behind; level codes are jittered."""
    if points is not None:
        for of_group, color in _points_of_groups(plane, points, groups, labels):
            ax.plot(*of_group.T, ".", color=color, markersize=4, zorder=3)
    legend_beside(ax, groups.target, groups.styles(), **DOTS)


def _points_of_groups(
    plane: Plane, points: np.ndarray, groups: Groups, labels: np.ndarray | None
) -> list[tuple[np.ndarray, str]]:
    """Return at most 5,000 rows with jittered level codes: those of each group with its color, gray ones first."""
    kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_POINTS)).astype(int))
    rng = np.random.default_rng(0)
    shown = points[kept].astype(float)
    for k, side in enumerate(plane.sides):
        if side.levels:
            shown[:, k] += rng.uniform(-0.3, 0.3, len(shown))
    if labels is None:
        return [(shown, "black")]
    styles = groups.styles()
    return [(shown[labels[kept] == groups.labels[k]], styles[k].color) for k in gray_first(styles)]


def frame_plane(ax: Axes, plane: Plane) -> None:
    """Set the labels, the ticks and the limits of the axes."""
    for axis, side, along in zip("xy", plane.sides, plane.along, strict=True):
        shown = {"label": name_of(side.name), "scale": side.scale, "lim": (along.min(), along.max())}
        ax.set(**{f"{axis}{name}": value for name, value in shown.items()})
        if side.levels:
            ticks(ax, axis, side.levels, 8.0, 16)
