"""The plane of two columns: its sides, its places, and what is drawn in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.estimation.scoring.factor_scorer import chunk_rows
from tallybayes.plotting.classifier.marginals import PlotColumn, covariances, has_ellipse
from tallybayes.plotting.style import GroupStyle, hide_top_right_spines, legend_beside, name_of, ticks, words

ACROSS = 240  # places of the plane along each side
_FAR = 1e6  # a lead that is as good as any larger one
_MOST_POINTS = 5000  # rows that are drawn: more hide each other


class Side(NamedTuple):
    """A column along a side of a plane, and how far it is drawn: over where its distribution is."""

    name: Any
    key: Any  # what rows call it
    levels: tuple[Any, ...]  # of a column of labels
    middles: np.ndarray | None  # of bins, which are levels to some models
    scale: str
    whole: bool
    low: float
    high: float

    def at(self, places: np.ndarray) -> np.ndarray:
        """Places along the side, each at the number, or the code of a level, that it stands for."""
        if self.levels:
            return np.clip(np.round(places), 0, len(self.levels) - 1)
        return np.maximum(np.round(places), 0.0) if self.whole else places

    def cells(self, at: np.ndarray) -> np.ndarray:
        """Numbers, or codes of levels, as cells of the column."""
        if not self.levels:
            return at
        levels = np.empty(len(self.levels), dtype=object)
        levels[:] = self.levels
        return (levels if self.middles is None else self.middles)[at.astype(int)]

    def places(self, points: np.ndarray | None, n: int) -> np.ndarray:
        """Where along the side the model is asked: over its distribution, and all rows."""
        low, high = self.low, self.high
        if points is not None and np.isfinite(points).any() and not self.levels:
            least, most = float(np.nanmin(points)), float(np.nanmax(points))
            edge = 0.02 * (most - least) if self.scale == "linear" else 0.0  # no dot lies on the frame
            low, high = min(low, least - edge), max(high, most + edge)
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
        return np.geomspace(low, high, n) if self.scale == "log" else np.linspace(low, high, n)


def side_of(column: PlotColumn) -> Side:
    """A column of a fitted model as the side of a plane."""
    scored, place, family = column.scored, column.place, column.scored.family
    if column.levels:
        low, high = -0.5, len(column.levels) - 0.5
    elif has_ellipse(scored):
        mean, spread = scored.point[0][:, place], 3.5 * np.sqrt(covariances(scored)[:, place, place])
        low, high = float(np.nanmin(mean - spread)), float(np.nanmax(mean + spread))
    else:
        grid = family.plot_grid(scored.parameters, place)
        low, high = float(grid.min()), float(grid.max())
    return Side(
        column.name, column.key, column.levels, column.middles, family.scale, not family.is_continuous, low, high
    )


class Plane(NamedTuple):
    """Two columns, and the places at which a model is asked; or one column, and places along it."""

    columns: list[int]  # which they are of those that could be drawn
    sides: list[Side]
    note: str  # how they came to be chosen, and what became of the other columns
    across: np.ndarray
    up: np.ndarray

    @property
    def known(self) -> range:
        """Both of the columns, or the one there is."""
        return range(len(self.sides))

    def ask(self, answer: Callable[[dict[Any, np.ndarray], int], np.ndarray], width: int, *known: int) -> np.ndarray:
        """What rows of the known ones of the two columns are answered at every place, (places, classes).

        Rows have `width` columns, of which all others are for `answer` to fill, given cells by what rows call them.
        Every different row is asked once: levels are few, and a model of many columns takes its time.
        """
        sides = [side.at(along) for side, along in zip(self.sides, (self.across[0], self.up[:, 0]), strict=False)]
        sides += [np.zeros(1)] * (2 - len(sides))
        (across, i), (up, j) = (
            np.unique(along if k in known else np.zeros(len(along)), return_inverse=True)
            for k, along in enumerate(sides)
        )
        grid = [part.ravel() for part in np.meshgrid(across, up)]
        step, n = chunk_rows(1, width), len(grid[0])
        parts = []
        for start in range(0, n, step):  # cells that are not known take memory, too
            some = {self.sides[k].key: self.sides[k].cells(grid[k][start : start + step]) for k in known}
            parts.append(answer(some, min(step, n - start)))
        return np.concatenate(parts)[(j[:, None] * len(across) + i).ravel()]

    def places(self) -> dict[str, list[Any]]:
        """The places by the names of their columns: numbers, or the levels they stand for."""
        names = [str(side.name) for side in self.sides]
        names = names if len(set(names)) == len(names) else [f"{name} {k}" for k, name in enumerate(names)]
        names = [f"{name}_" if name in ("class", "predicted", "log_joint", "log_product") else name for name in names]
        grid = self.across.ravel(), self.up.ravel()
        return {name: side.cells(side.at(at)).tolist() for name, side, at in zip(names, self.sides, grid, strict=False)}


def plane_of(asked: Any, columns: list[int], note: str, points: np.ndarray | None) -> Plane:
    """The plane of two columns, or the line of one, that reaches over all rows."""
    sides = [asked.side(k) for k in columns]
    ends = [side.places(None if points is None else points[:, k], asked.across) for k, side in enumerate(sides)]
    return Plane(columns, sides, note, *np.meshgrid(*ends, *[np.zeros(1)] * (2 - len(sides))))


def draw_regions(ax: Any, here: Plane, scores: np.ndarray, look: list[GroupStyle], *, filled: bool = True) -> None:
    """Every class's region in its color, with lines where the lead of one class over all others ends."""
    n = len(look)
    for k in range(n):
        others = np.delete(scores, k, axis=1).max(axis=1) if n > 1 else np.full(len(scores), -np.inf)
        with np.errstate(invalid="ignore"):  # impossible in both
            lead = np.nan_to_num(scores[:, k] - others, nan=-1.0, posinf=_FAR, neginf=-_FAR)
        lead = np.clip(lead, -_FAR, _FAR).reshape(here.across.shape)
        if filled and (lead > 0).any():
            ax.contourf(here.across, here.up, lead, levels=[0, 2 * _FAR], colors=[look[k].color], alpha=0.15)
        if (lead > 0).any() and (lead < 0).any():
            ax.contour(here.across, here.up, lead, levels=[0], colors="#555555", linewidths=0.6)


def draw_shares(
    ax: Any, here: Plane, proba: np.ndarray, look: list[GroupStyle], points: np.ndarray | None, labels: Any, model: Any
) -> None:
    """p(class | x) along one column, in the colors of the classes; rows as short strokes below."""
    (side,), along = here.sides, here.across[0]
    if side.levels:
        along, first = np.unique(side.at(along), return_index=True)
        proba = proba[first]
    mark = {"marker": "o", "linestyle": ":"} if side.levels else {"linewidth": 1.8}
    for k in sorted(range(len(look)), key=lambda k: look[k].own):
        ax.plot(along, proba[:, k], color=look[k].color, label=look[k].label, **mark)
    if points is not None:
        kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_POINTS)).astype(int))
        at = points[kept, 0] + (np.random.default_rng(0).uniform(-0.3, 0.3, len(kept)) if side.levels else 0.0)
        classes = [None] if labels is None else model.classes_
        for k, label in enumerate(classes):
            mine = np.ones(len(kept), dtype=bool) if label is None else labels[kept] == label
            height = -0.05 - 0.05 * (k % 8)
            stroke = {"color": "black" if label is None else look[k].color, "marker": "|", "alpha": 0.5}
            ax.plot(at[mine], np.full(mine.sum(), height), linestyle="", markersize=5, **stroke)
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
    ax: Any, here: Plane, look: list[GroupStyle], points: np.ndarray | None, labels: Any, model: Any
) -> None:
    """Rows as dots, those in gray behind; columns of labels are spread a little."""
    from matplotlib.lines import Line2D

    if points is not None:
        kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_POINTS)).astype(int))
        rng = np.random.default_rng(0)
        shown = points[kept].astype(float)
        for k, side in enumerate(here.sides):
            if side.levels:
                shown[:, k] += rng.uniform(-0.3, 0.3, len(shown))
        if labels is None:
            ax.plot(*shown.T, ".", color="black", markersize=4)
            return
        for k in sorted(range(len(look)), key=lambda k: look[k].own):
            mine = labels[kept] == model.classes_[k]
            ax.plot(*shown[mine].T, ".", color=look[k].color, markersize=4, zorder=3 if look[k].own else 2)
    named = sorted((one for one in look if one.label is not None), key=lambda one: not one.own)
    marks = [Line2D([], [], color=one.color, marker="o", linestyle="", label=one.label) for one in named]
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": 9}
    ax.legend(handles=marks, title=words(model._target, 24), **place)


def frame_plane(ax: Any, here: Plane) -> None:
    """The names of the columns, and their levels."""
    for axis, side in zip("xy", here.sides, strict=True):
        getattr(ax, f"set_{axis}label")(name_of(side.name))
        getattr(ax, f"set_{axis}scale")(side.scale)
        if side.levels:
            ticks(ax, axis, side.levels, 8.0, 16)
    ax.set_xlim(here.across.min(), here.across.max())
    ax.set_ylim(here.up.min(), here.up.max())
    hide_top_right_spines(ax)
