"""A classifier in the plane of two columns: its decisions, and rows on discriminant directions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.fitted.bayes_rule import normalised
from tallybayes.models.fitted.scoring import chunk_of, chunk_rows, rows_of
from tallybayes.models.inputs.shape import open_rows, read_more
from tallybayes.plots.marginals import Column, columns_in, covariances, pick, telling
from tallybayes.plots.picture import Picture
from tallybayes.plots.style import Look, legend_beside, looks, name_of, new_axes, quiet, set_title, ticks, words
from tallybayes.sources.arrays import as_array
from tallybayes.sources.table import Table

_ACROSS = 240  # places of the plane along each side
_FAR = 1e6  # a lead that is as good as any larger one
_MOST_POINTS = 5000  # rows that are drawn: more hide each other


class Plane(NamedTuple):
    """Two columns of a model, and the places at which it is asked."""

    model: Any
    columns: list[Column]
    note: str  # what became of the other columns
    across: np.ndarray
    up: np.ndarray

    def log_joint(self, *known: int) -> np.ndarray:
        """log p(class, x) at every place, (places, classes), of the known ones of the two columns; others missing."""
        model, grid = self.model, (self.across.ravel(), self.up.ravel())
        model._check_estimated(model.class_log_prior_)
        given = {self.columns[k].name: _as_cells(self.columns[k], grid[k]) for k in known}
        step = chunk_rows(1, sum(len(one.factor.columns) for one in model._scored))
        parts = []
        for start in range(0, self.across.size, step):  # missing cells take memory, too
            some = {name: cells[start : start + step] for name, cells in given.items()}
            parts.append(model._plan.joint(_rows(model, some, min(step, self.across.size - start)), whole=True))
        return np.concatenate(parts)

    def scores(self) -> np.ndarray:
        """By what the class of every place is predicted: the largest of its row, (places, classes)."""
        found, model = self.log_joint(0, 1), self.model
        if model._calibration is not None:  # it may change the order
            found = model._calibration.apply(normalised(found, model.class_log_prior_).log_proba)
        return np.asarray(found)

    def places(self) -> dict[str, list[Any]]:
        """The places by the names of their columns: numbers, or the levels they stand for."""
        names = [str(column.name) for column in self.columns]
        names = names if names[0] != names[1] else [f"{name} {k}" for k, name in enumerate(names)]
        names = [f"{name}_" if name in ("class", "predicted", "log_joint", "log_product") else name for name in names]
        sides = (_as_cells(column, at.ravel()) for column, at in zip(self.columns, (self.across, self.up), strict=True))
        return {name: cells.tolist() for name, cells in zip(names, sides, strict=True)}


def plane(model: Any, columns: Any, points: np.ndarray | None = None, chosen: Any = None) -> Plane:
    """The plane of two columns: those named, all that there are, or those that tell most of the class."""
    if chosen is None:
        chosen = choose(model, columns)
    two, note = chosen
    ends = [_span(column, None if points is None else points[:, k]) for k, column in enumerate(two)]
    sides = [
        np.geomspace(*end, _ACROSS) if column.scored.family.scale == "log" else np.linspace(*end, _ACROSS)
        for column, end in zip(two, ends, strict=True)
    ]
    return Plane(model, two, note, *np.meshgrid(*sides))


def choose(model: Any, columns: Any) -> tuple[list[Column], str]:
    """Two columns, and a note on how they came to be chosen and what becomes of all others."""
    found = [column for column in columns_in(model) if not column.scored.family.tokens]
    if columns is None:
        if len(found) < 2:
            raise DataError.wrong_shape("the model's columns", (len(found),), "2 columns or more, to draw in the plane")
        two, note = telling(model, found, 2)
        how = "that tell most" if note else ""
    else:
        two, how = pick(found, columns), ""
        if len(two) != 2:
            raise DataError.wrong_shape("columns", (len(two),), "2 names, to draw in the plane")
    others = len(found) - 2
    if not others:
        return two, ""
    said = f"the two of {len(found)} columns {how}; " if how else ""
    return two, f"{said}the other {'one is' if others == 1 else f'{others} are'} marginalised"


def plot_decision(model: Any, X: Any = None, y: Any = None, columns: Any = None, ax: Any = None) -> Picture:
    """The regions of the classes in the plane of two columns, with rows where they are given.

    Parameters
    ----------
    model : a fitted classifier
    X, y : as for `fit`, optional
        Rows to draw on top, and their classes.
    columns : two names, optional
    ax : matplotlib Axes, optional
    """
    chosen = choose(model, columns)
    points = None if X is None else points_of(model, X, chosen[0])
    here = plane(model, columns, points, chosen)
    scores = here.scores()
    ax = new_axes(ax, figsize=(6.6, 5), layout="constrained")
    classes = model.classes_.tolist()
    look = looks(classes, np.exp(model.class_log_prior_))
    draw_regions(ax, here, scores, look)
    for k, one in enumerate(look):
        if one.own:
            _draw_ellipse(ax, here.columns, k, one.colour)
    draw_points(ax, here, look, points, None if y is None else labels_of(model, X, y))
    frame_plane(ax, here)
    what = f"{model.covariance} covariance" if hasattr(model, "covariance") else type(model).__name__
    set_title(ax, f"{what}, as given" if model._given is not None else f"{what}, {model.estimate} estimate", here.note)
    return Picture(ax, {**here.places(), "predicted": [classes[code] for code in scores.argmax(axis=1)]})


def plot_nearest(model: Any, X: Any = None, y: Any = None, ax: Any = None) -> Picture:
    """The regions of a `NearestClassMean` of two columns, and its means.

    Parameters
    ----------
    model : NearestClassMean
    X, y : as for `fit`, optional
    ax : matplotlib Axes, optional
    """
    factor, means = next(one for one in model.tally_.factors if one.given), np.asarray(model.means_)
    if means.shape[1] != 2:
        raise DataError.wrong_shape("the model's columns", (means.shape[1],), "2 columns: distances need them all")
    points = None
    if X is not None:
        points = chunk_of(rows_of(open_rows(model, X), factor.columns, factor.family, [], "missing"), slice(None))
    seen = means if points is None else np.vstack([means, points])
    low, high = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
    edge = np.where(high > low, 0.08 * (high - low), 0.5)
    sides = [np.linspace(a, b, _ACROSS) for a, b in zip(low - edge, high + edge, strict=True)]
    names = [factor.column(place, 2) for place in range(2)]
    shown = [Column(name, SimpleNamespace(family=factor.family), place, ()) for place, name in enumerate(names)]
    here = Plane(model, shown, "", *np.meshgrid(*sides))
    grid = np.column_stack([here.across.ravel(), here.up.ravel()])
    one_block = len(factor.columns) == 1
    rows = Table({factor.columns[0]: grid} if one_block else dict(zip(factor.columns, grid.T, strict=True)))
    classes = model.classes_.tolist()
    scores = model.predict_log_proba(rows)
    ax = new_axes(ax, figsize=(6.6, 5), layout="constrained")
    look = looks(classes)
    draw_regions(ax, here, scores, look)
    draw_points(ax, here, look, points, None if y is None else labels_of(model, X, y))
    for k, one in enumerate(look):
        if one.own:
            ax.plot(*means[k], marker="+", color="black", markersize=10, markeredgewidth=2)
    frame_plane(ax, here)
    metric = model.metric if isinstance(model.metric, str) else "given"
    set_title(ax, f"the nearest mean, {metric} metric")
    return Picture(ax, {**here.places(), "predicted": model.predict(rows).tolist()})


def draw_regions(ax: Any, here: Plane, scores: np.ndarray, look: list[Look], *, filled: bool = True) -> None:
    """Every class's region in its colour, with lines where the lead of one class over all others ends."""
    n = len(look)
    for k in range(n):
        others = np.delete(scores, k, axis=1).max(axis=1) if n > 1 else np.full(len(scores), -np.inf)
        with np.errstate(invalid="ignore"):  # impossible in both
            lead = np.nan_to_num(scores[:, k] - others, nan=-1.0, posinf=_FAR, neginf=-_FAR)
        lead = np.clip(lead, -_FAR, _FAR).reshape(here.across.shape)
        if filled and (lead > 0).any():
            ax.contourf(here.across, here.up, lead, levels=[0, 2 * _FAR], colors=[look[k].colour], alpha=0.15)
        if (lead > 0).any() and (lead < 0).any():
            ax.contour(here.across, here.up, lead, levels=[0], colors="#555555", linewidths=0.6)


def draw_points(ax: Any, here: Plane, look: list[Look], points: np.ndarray | None, labels: Any) -> None:
    """Rows as dots, those in grey behind; columns of labels are spread a little."""
    from matplotlib.lines import Line2D

    if points is not None:
        kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_POINTS)).astype(int))
        rng = np.random.default_rng(0)
        shown = points[kept].astype(float)
        for k, column in enumerate(here.columns):
            if column.levels:
                shown[:, k] += rng.uniform(-0.3, 0.3, len(shown))
        if labels is None:
            ax.plot(*shown.T, ".", color="black", markersize=4)
            return
        for k in sorted(range(len(look)), key=lambda k: look[k].own):
            mine = labels[kept] == here.model.classes_[k]
            ax.plot(*shown[mine].T, ".", color=look[k].colour, markersize=4, zorder=3 if look[k].own else 2)
    named = sorted((one for one in look if one.label is not None), key=lambda one: not one.own)
    marks = [Line2D([], [], color=one.colour, marker="o", linestyle="", label=one.label) for one in named]
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": 9}
    ax.legend(handles=marks, title=words(here.model._target, 24), **place)


def frame_plane(ax: Any, here: Plane) -> None:
    """The names of the columns, and their levels."""
    for side, column in zip("xy", here.columns, strict=True):
        getattr(ax, f"set_{side}label")(name_of(column.name))
        getattr(ax, f"set_{side}scale")(column.scored.family.scale)
        if column.levels:
            ticks(ax, side, column.levels, 8.0, 16)
    ax.set_xlim(here.across.min(), here.across.max())
    ax.set_ylim(here.up.min(), here.up.max())
    quiet(ax)


def points_of(model: Any, X: Any, two: list[Column]) -> np.ndarray:
    """The cells of two columns of some rows: numbers, or codes of levels; NaN where missing."""
    table = open_rows(model, X)
    table = model._cut(table) if hasattr(model, "_cut") else table
    sides = []
    for column in two:
        cells = chunk_of(model._rows(table, column.scored), slice(None))[:, column.place].astype(float)
        sides.append(np.where(cells < 0, np.nan, cells) if column.levels else cells)
    return np.stack(sides, axis=1)


def labels_of(model: Any, X: Any, y: Any) -> np.ndarray | None:
    """The classes of the rows of X; None where there are no rows."""
    return None if X is None else as_array(read_more(model, X, y, None)[0].columns[model._target])


def _span(column: Column, points: np.ndarray | None) -> tuple[float, float]:
    """How far the plane reaches along a column: over where its distribution is, and all rows."""
    if column.levels:
        return -0.5, len(column.levels) - 0.5
    scored, place = column.scored, column.place
    if scored.family.measured and scored.family.scale == "linear" and isinstance(scored.point, tuple):
        mean, spread = scored.point[0][:, place], 3.5 * np.sqrt(covariances(scored)[:, place, place])
        low, high = float(np.nanmin(mean - spread)), float(np.nanmax(mean + spread))
    else:
        grid = scored.family.grid(scored.parameters, place)
        low, high = float(grid.min()), float(grid.max())
    if points is not None and np.isfinite(points).any():
        low, high = min(low, float(np.nanmin(points))), max(high, float(np.nanmax(points)))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _draw_ellipse(ax: Any, two: list[Column], k: int, colour: str) -> None:
    """The mean of a class and two deviations about it, where both columns are measured in one factor."""
    scored = two[0].scored
    if scored is not two[1].scored or not scored.family.measured or scored.family.scale != "linear":
        return
    if not isinstance(scored.point, tuple):
        return
    places = [column.place for column in two]
    mean = np.asarray(scored.point[0])[k, places]
    values, vectors = np.linalg.eigh(covariances(scored)[k][np.ix_(places, places)])
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    ring = mean[:, None] + 2 * vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
    ax.plot(*ring, color=colour, linewidth=1.5)
    ax.plot(*mean, marker="+", color=colour, markersize=10, markeredgewidth=2)


def _as_cells(column: Column, at: np.ndarray) -> np.ndarray:
    """Places along a side as cells of the column."""
    if not column.levels:
        whole = not column.scored.family.measured
        return np.asarray(np.maximum(np.round(at), 0.0) if whole else at)
    levels = np.empty(len(column.levels), dtype=object)
    levels[:] = column.levels
    levels = levels if column.middles is None else column.middles
    return levels[np.clip(np.round(at).astype(int), 0, len(levels) - 1)]


def _rows(model: Any, given: dict[Any, np.ndarray], n: int) -> Table:
    """Rows that know some columns, all others missing: what was not asked of is marginalised."""
    found: dict[Any, Any] = {}
    for scored in model._scored:
        names, codes = scored.factor.columns, scored.family.reads == "codes"
        width = len(names) if codes else np.shape(scored.family.expected(scored.parameters))[-1]
        if len(names) == 1 and width > 1:  # a block
            block = np.full((n, width), np.nan)
            for place in range(width):
                if (names[0], place) in given:
                    block[:, place] = given[names[0], place]
            found[names[0]] = block
            continue
        for name in names:
            labels = codes and not model._family_of(scored.factor, name).bins
            found[name] = given.get(name, np.full(n, None if labels else np.nan, dtype=object if labels else float))
    return Table(found)


def plot_projection(model: Any, X: Any, y: Any, ax: Any = None) -> Picture:
    """Rows on the first discriminant directions, coloured by class."""
    seen = model.transform(X)
    if seen.shape[1] == 0:
        raise DataError("there is no discriminant direction to draw on; expected classes whose means differ.")
    labels = labels_of(model, X, y)
    assert labels is not None
    ax = new_axes(ax, figsize=(6.6, 5), layout="constrained")
    flat = seen.shape[1] == 1
    second = np.random.default_rng(0).uniform(-0.5, 0.5, len(seen)) if flat else seen[:, 1]
    look = looks(model.classes_.tolist(), np.exp(model.class_log_prior_))
    for k in sorted(range(len(look)), key=lambda k: look[k].own):
        mine = labels == model.classes_[k]
        ax.plot(seen[mine, 0], second[mine], ".", color=look[k].colour, markersize=4, label=look[k].label)
    ax.set_xlabel("first discriminant")
    if flat:
        ax.set_yticks([])
    else:
        ax.set_ylabel("second discriminant")
    legend_beside(ax, model._target, markerscale=2)
    ax.set_title("Rows on the discriminant directions")
    quiet(ax)
    known = {"class": labels.tolist(), "first": seen[:, 0]}
    return Picture(ax, known if flat else {**known, "second": seen[:, 1]})
