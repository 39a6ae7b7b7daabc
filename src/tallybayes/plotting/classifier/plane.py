"""Plane of two columns: its axes, its grid, and the functions that draw on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from tallybayes.estimation.scoring.factor_scorer import chunk_rows
from tallybayes.families.protocols.display import plot_grid, plot_scale
from tallybayes.plotting.classifier.marginals import PlotColumn, covariances, has_ellipse
from tallybayes.plotting.style import (
    GroupStyle,
    gray_first,
    group_handles,
    hide_top_right_spines,
    legend_beside,
    name_of,
    ticks,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.classifier.groups import Groups
    from tallybayes.typing import Rows


ACROSS = 240  # grid points along each axis
_FAR = 1e6  # limit of a difference of log probabilities
_MOST_POINTS = 5000  # maximum number of plotted rows


class Side(NamedTuple):
    """Column along an axis of a plane, and its range."""

    name: Any
    key: Any  # name in the rows
    levels: tuple[Any, ...]  # of a categorical column
    middles: np.ndarray | None  # midpoints of bins, for a discretized column
    scale: str
    whole: bool
    low: float
    high: float

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the number, or the level code, of each grid position."""
        if self.levels:
            return np.clip(np.round(places), 0, len(self.levels) - 1)
        return np.maximum(np.round(places), 0.0) if self.whole else places

    def cells(self, at: np.ndarray) -> np.ndarray:
        """Return cell values of the column for numbers or level codes."""
        if not self.levels:
            return at
        levels = np.empty(len(self.levels), dtype=object)
        levels[:] = self.levels
        return (levels if self.middles is None else self.middles)[at.astype(int)]

    def grid(self, points: np.ndarray | None, n: int) -> np.ndarray:
        """Return the grid along the axis: it covers the distribution and all rows."""
        low = self.low
        high = self.high
        if points is not None and np.isfinite(points).any() and not self.levels:
            smallest = float(np.nanmin(points))
            largest = float(np.nanmax(points))
            edge = 0.02 * (largest - smallest) if self.scale == "linear" else 0.0  # keep dots off the frame
            low = min(low, smallest - edge)
            high = max(high, largest + edge)
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
        return np.geomspace(low, high, n) if self.scale == "log" else np.linspace(low, high, n)


def side_of(column: PlotColumn) -> Side:
    """Return a column of a fitted model as the axis of a plane."""
    scored = column.scored
    position = column.position
    family = column.scored.family
    if column.levels:
        low = -0.5
        high = len(column.levels) - 0.5
    elif has_ellipse(scored):
        mean = scored.point[0][:, position]
        half_width = 3.5 * np.sqrt(covariances(scored)[:, position, position])
        low = float(np.nanmin(mean - half_width))
        high = float(np.nanmax(mean + half_width))
    else:
        grid = plot_grid(family, scored.parameters, position)
        low = float(grid.min())
        high = float(grid.max())
    return Side(
        column.name, column.key, column.levels, column.middles, plot_scale(family), not family.is_continuous, low, high
    )


class PlaneModel(Protocol):
    """Model that can be plotted in a plane of its columns."""

    model: Any
    groups: Groups
    names: list[Any]
    keys: list[Any]
    others: ClassVar[str]
    across: ClassVar[int]

    @property
    def title(self) -> str:
        """Return the title of the plot."""

    def column_information(self) -> np.ndarray:
        """Return the mutual information of each column with the class, in bits."""

    def side(self, k: int) -> Side:
        """Return a column as an axis of a plane."""

    def points(self, X: Rows, pair: list[int]) -> np.ndarray:
        """Return the cells of two columns: numbers or level codes; NaN if missing."""

    def scores(self, plane: Plane) -> np.ndarray:
        """Return the scores whose largest is the predicted class at each grid point, shape (points, classes)."""

    def draw_classes(self, ax: Axes, pair: list[int], styles: list[GroupStyle]) -> None:
        """Draw ellipses or means of the classes."""


class Plane(NamedTuple):
    """Grid of two columns, or of one."""

    columns: list[int]  # indices among the columns of the model
    sides: list[Side]
    note: str  # choice of the columns, and treatment of the others
    across: np.ndarray
    up: np.ndarray

    @property
    def known(self) -> range:
        """Return the indices of the axes: two, or one."""
        return range(len(self.sides))

    def evaluate(
        self, score: Callable[[dict[Any, np.ndarray], int], np.ndarray], width: int, *known: int
    ) -> np.ndarray:
        """Return the scores of a function of rows at every grid point, shape (points, classes).

        Rows have `width` columns; `score` receives the cells of the known columns and fills the others. Each distinct
        row is scored once: levels are few, and models with many columns are slow.
        """
        sides = [side.at(along) for side, along in zip(self.sides, (self.across[0], self.up[:, 0]), strict=False)]
        sides += [np.zeros(1)] * (2 - len(sides))
        (across, i), (up, j) = (
            np.unique(along if k in known else np.zeros(len(along)), return_inverse=True)
            for k, along in enumerate(sides)
        )
        points = [axis_grid.ravel() for axis_grid in np.meshgrid(across, up)]
        step = chunk_rows(1, width)
        n = len(points[0])
        batches = []
        for start in range(0, n, step):  # batches limit memory
            cells = {self.sides[k].key: self.sides[k].cells(points[k][start : start + step]) for k in known}
            batches.append(score(cells, min(step, n - start)))
        return np.concatenate(batches)[(j[:, None] * len(across) + i).ravel()]

    def grid(self) -> dict[str, list[Any]]:
        """Return the grid points by the names of the columns: numbers or levels."""
        names = [str(side.name) for side in self.sides]
        names = names if len(set(names)) == len(names) else [f"{name} {k}" for k, name in enumerate(names)]
        names = [f"{name}_" if name in ("class", "predicted", "log_joint", "log_product") else name for name in names]
        grid = self.across.ravel(), self.up.ravel()
        return {name: side.cells(side.at(at)).tolist() for name, side, at in zip(names, self.sides, grid, strict=False)}


def plane_of(plane_model: PlaneModel, columns: list[int], note: str, points: np.ndarray | None) -> Plane:
    """Return the plane of two columns, or the line of one, that covers all rows."""
    sides = [plane_model.side(k) for k in columns]
    grids = [side.grid(None if points is None else points[:, k], plane_model.across) for k, side in enumerate(sides)]
    return Plane(columns, sides, note, *np.meshgrid(*grids, *[np.zeros(1)] * (2 - len(sides))))


def draw_regions(ax: Axes, plane: Plane, scores: np.ndarray, styles: list[GroupStyle], *, filled: bool = True) -> None:
    """Fill the decision region of each class with its color, and draw the boundaries."""
    n = len(styles)
    for k in range(n):
        others = np.delete(scores, k, axis=1).max(axis=1) if n > 1 else np.full(len(scores), -np.inf)
        with np.errstate(invalid="ignore"):  # -inf - -inf
            margin = np.nan_to_num(scores[:, k] - others, nan=-1.0, posinf=_FAR, neginf=-_FAR)
        margin = np.clip(margin, -_FAR, _FAR).reshape(plane.across.shape)
        if filled and (margin > 0).any():
            ax.contourf(plane.across, plane.up, margin, levels=[0, 2 * _FAR], colors=[styles[k].color], alpha=0.15)
        if (margin > 0).any() and (margin < 0).any():
            ax.contour(plane.across, plane.up, margin, levels=[0], colors="#555555", linewidths=0.6)


def draw_probabilities(
    ax: Axes, plane: Plane, proba: np.ndarray, groups: Groups, points: np.ndarray | None, labels: np.ndarray | None
) -> None:
    """Draw p(class | x) along one column, and rows as short strokes below."""
    side = plane.sides[0]
    along = plane.across[0]
    styles = groups.styles()
    if side.levels:
        along, index = np.unique(side.at(along), return_index=True)
        proba = proba[index]
    line_style: dict[str, Any] = {"marker": "o", "linestyle": ":"} if side.levels else {"linewidth": 1.8}
    for k in gray_first(styles):
        ax.plot(along, proba[:, k], color=styles[k].color, label=styles[k].label, **line_style)
    if points is not None:
        shown, kept = _shown_points(plane, points)
        stroke: dict[str, Any] = {"linestyle": "", "markersize": 5, "marker": "|", "alpha": 0.5}
        if labels is None:
            ax.plot(shown[:, 0], np.full(len(shown), -0.05), color="black", **stroke)
        else:
            for k, in_class in enumerate(groups.of_labels(labels[kept])):
                height = np.full(in_class.sum(), -0.05 - 0.05 * (k % 8))
                ax.plot(shown[in_class, 0], height, color=styles[k].color, **stroke)
    ax.set_xlabel(name_of(side.name))
    ax.set_ylabel("p(class | x)")
    ax.set_xscale(side.scale)
    if side.levels:
        ticks(ax, "x", side.levels, 8.0, 16)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_ylim(None if points is not None else -0.02, 1.02)
    legend_beside(ax, groups.target)
    hide_top_right_spines(ax)


def draw_points(ax: Axes, plane: Plane, groups: Groups, points: np.ndarray | None, labels: np.ndarray | None) -> None:
    """Draw rows as dots, with gray classes behind; level codes are jittered."""
    styles = groups.styles()
    if points is not None:
        shown, kept = _shown_points(plane, points)
        if labels is None:
            ax.plot(*shown.T, ".", color="black", markersize=4)
            return
        in_class = groups.of_labels(labels[kept])
        for k in gray_first(styles):
            zorder = 3 if styles[k].own else 2
            ax.plot(*shown[in_class[k]].T, ".", color=styles[k].color, markersize=4, zorder=zorder)
    handles = group_handles(styles, marker="o", linestyle="")
    position: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": 9}
    ax.legend(handles=handles, title=words(groups.target, 24), **position)


def _shown_points(plane: Plane, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most 5,000 rows with jittered level codes, and their indices."""
    kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_POINTS)).astype(int))
    rng = np.random.default_rng(0)
    shown = points[kept].astype(float)
    for k, side in enumerate(plane.sides):
        if side.levels:
            shown[:, k] += rng.uniform(-0.3, 0.3, len(shown))
    return shown, kept


def frame_plane(ax: Axes, plane: Plane) -> None:
    """Set the labels, the ticks and the limits of the axes."""
    for axis, side in zip("xy", plane.sides, strict=True):
        getattr(ax, f"set_{axis}label")(name_of(side.name))
        getattr(ax, f"set_{axis}scale")(side.scale)
        if side.levels:
            ticks(ax, axis, side.levels, 8.0, 16)
    ax.set_xlim(plane.across.min(), plane.across.max())
    ax.set_ylim(plane.up.min(), plane.up.max())
    hide_top_right_spines(ax)
