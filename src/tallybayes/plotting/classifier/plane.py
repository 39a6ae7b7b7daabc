"""Plane of two columns: its axes, its grid, and the functions that draw on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.estimation.scoring.factor_scorer import chunk_rows
from tallybayes.plotting.classifier.marginals import PlotColumn, covariances, has_ellipse
from tallybayes.plotting.style import GroupStyle, hide_top_right_spines, legend_beside, name_of, ticks, words

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
        grid = family.plot_grid(scored.parameters, position)
        low = float(grid.min())
        high = float(grid.max())
    return Side(
        column.name, column.key, column.levels, column.middles, family.scale, not family.is_continuous, low, high
    )


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


def plane_of(plane_model: Any, columns: list[int], note: str, points: np.ndarray | None) -> Plane:
    """Return the plane of two columns, or the line of one, that covers all rows."""
    sides = [plane_model.side(k) for k in columns]
    grids = [side.grid(None if points is None else points[:, k], plane_model.across) for k, side in enumerate(sides)]
    return Plane(columns, sides, note, *np.meshgrid(*grids, *[np.zeros(1)] * (2 - len(sides))))


def draw_regions(ax: Any, plane: Plane, scores: np.ndarray, styles: list[GroupStyle], *, filled: bool = True) -> None:
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
    ax: Any,
    plane: Plane,
    proba: np.ndarray,
    styles: list[GroupStyle],
    points: np.ndarray | None,
    labels: Any,
    model: Any,
) -> None:
    """Draw p(class | x) along one column, and rows as short strokes below."""
    (side,), along = plane.sides, plane.across[0]
    if side.levels:
        along, index = np.unique(side.at(along), return_index=True)
        proba = proba[index]
    line_style = {"marker": "o", "linestyle": ":"} if side.levels else {"linewidth": 1.8}
    for k in sorted(range(len(styles)), key=lambda k: styles[k].own):
        ax.plot(along, proba[:, k], color=styles[k].color, label=styles[k].label, **line_style)
    if points is not None:
        kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_POINTS)).astype(int))
        at = points[kept, 0] + (np.random.default_rng(0).uniform(-0.3, 0.3, len(kept)) if side.levels else 0.0)
        classes = [None] if labels is None else model.classes_
        for k, label in enumerate(classes):
            in_class = np.ones(len(kept), dtype=bool) if label is None else labels[kept] == label
            height = -0.05 - 0.05 * (k % 8)
            style = {"color": "black" if label is None else styles[k].color, "marker": "|", "alpha": 0.5}
            ax.plot(at[in_class], np.full(in_class.sum(), height), linestyle="", markersize=5, **style)
    ax.set_xlabel(name_of(side.name))
    ax.set_ylabel("p(class | x)")
    ax.set_xscale(side.scale)
    if side.levels:
        ticks(ax, "x", side.levels, 8.0, 16)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_ylim(None if points is not None else -0.02, 1.02)
    legend_beside(ax, model._target)
    hide_top_right_spines(ax)


def draw_points(
    ax: Any, plane: Plane, styles: list[GroupStyle], points: np.ndarray | None, labels: Any, model: Any
) -> None:
    """Draw rows as dots, with gray classes behind; level codes are jittered."""
    from matplotlib.lines import Line2D

    if points is not None:
        kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_POINTS)).astype(int))
        rng = np.random.default_rng(0)
        shown = points[kept].astype(float)
        for k, side in enumerate(plane.sides):
            if side.levels:
                shown[:, k] += rng.uniform(-0.3, 0.3, len(shown))
        if labels is None:
            ax.plot(*shown.T, ".", color="black", markersize=4)
            return
        for k in sorted(range(len(styles)), key=lambda k: styles[k].own):
            in_class = labels[kept] == model.classes_[k]
            ax.plot(*shown[in_class].T, ".", color=styles[k].color, markersize=4, zorder=3 if styles[k].own else 2)
    entries = sorted((style for style in styles if style.label is not None), key=lambda style: not style.own)
    marks = [Line2D([], [], color=style.color, marker="o", linestyle="", label=style.label) for style in entries]
    position = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": 9}
    ax.legend(handles=marks, title=words(model._target, 24), **position)


def frame_plane(ax: Any, plane: Plane) -> None:
    """Set the labels, the ticks and the limits of the axes."""
    for axis, side in zip("xy", plane.sides, strict=True):
        getattr(ax, f"set_{axis}label")(name_of(side.name))
        getattr(ax, f"set_{axis}scale")(side.scale)
        if side.levels:
            ticks(ax, axis, side.levels, 8.0, 16)
    ax.set_xlim(plane.across.min(), plane.across.max())
    ax.set_ylim(plane.up.min(), plane.up.max())
    hide_top_right_spines(ax)
