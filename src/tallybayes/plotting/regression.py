"""Plots of linear regression: predictions with bands, and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.evaluation.validation.arguments import listed
from tallybayes.models.regression.regression_counts import target_moments
from tallybayes.models.regression.regression_fit import read_rows
from tallybayes.models.regression.target_prediction import predict_targets
from tallybayes.plotting.charts import curve_with_band
from tallybayes.plotting.plot import Plot, PlotAxes, PlotTable
from tallybayes.plotting.style import (
    COLORS,
    NOTE,
    GroupStyle,
    group_styles,
    legend_beside,
    name_of,
    panels,
    set_title,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.regression.design_matrix import Design
    from tallybayes.models.regression.linear_regression import LinearRegression
    from tallybayes.typing import Candidates, Labels, Rows

_PLACES = 201
_MOST_POINTS = 5000


def plot_regression(
    model: LinearRegression,
    design: Design,
    X: Rows | None,
    y: Labels | None,
    candidates: Candidates | None,
    mass: float,
    ax: PlotAxes,
) -> Plot:
    """Plot the fitted regression of each candidate in one panel, or the residuals if there are several inputs."""
    if len(design.targets) > 1:
        raise DataError(
            f"plot shows one target; the model has {len(design.targets)}.\n    Fit a model with one target."
        )
    settings = listed(candidates)
    n_inputs = len(design.numbers) + len(design.labels)
    has_line = len(design.numbers) == n_inputs == 1
    if not has_line and X is None:
        raise DataError(
            f"X is missing; a model with {n_inputs} inputs has no regression line.\n"
            "    Pass X and y to plot the residuals by the predicted target."
        )
    axes = panels(len(settings), 3, 4.0 if len(settings) > 1 else 6.0, 3.6, ax, sharey=has_line)
    labels = [None] if design.by is None else list(model.tally_.domains[str(design.by)].levels)
    styles = [GroupStyle(COLORS[0])] if design.by is None else group_styles(labels, noun="groups")
    rows = _rows(model, design, X, y, labels) if has_line else []
    tables: list[PlotTable] = []
    for panel, parameters in zip(axes, settings, strict=True):
        candidate = model.reestimate(**parameters) if parameters else model
        if has_line:
            lines = _lines(candidate, design, rows, labels, mass)
            for line, style in zip(lines, styles, strict=True):
                x, mean, low, high = (np.asarray(line[name]) for name in ("input", "expected", "low", "high"))
                curve_with_band(panel, x, mean, low, high, 0.15 if style.own else 0.05, **style.line)
            for points, style in zip(rows, styles, strict=False):
                color = "#333333" if design.by is None else style.color
                panel.plot(points["input"], points["expected"], "o", color=color, markersize=3.5, alpha=0.8, zorder=4)
            tables += [*lines, *rows]
            panel.set_xlabel(name_of(design.numbers[0]))
        elif X is not None:
            tables.append(_draw_residuals(panel, candidate, design, X, y))
        if parameters:
            set_title(panel, ", ".join(f"{name} = {value!r}" for name, value in parameters.items()))
    if has_line:
        axes[0].set_ylabel(words(design.targets[0], 32))
        for panel in axes:
            panel.set_ylim(*_limits(tables, rows))
        if design.by is not None:
            legend_beside(axes[-1], styles=styles)
    return Plot(axes, *tables)


def _rows(
    model: LinearRegression, design: Design, X: Rows | None, y: Labels | None, labels: list[object]
) -> list[PlotTable]:
    """Return the rows of each group as tables; an empty list without rows."""
    if X is None:
        return []
    table, _ = read_rows(model, design, X, y, None)
    inputs, targets = (np.asarray(table.column(name), float) for name in (design.numbers[0], design.targets[0]))
    groups = np.full(len(inputs), None) if design.by is None else np.asarray(table.column(design.by), dtype=object)
    tables: list[PlotTable] = []
    for label in labels:
        kept = np.flatnonzero((groups == label) & ~np.isnan(targets))[:_MOST_POINTS]
        limits = dict.fromkeys(("expected", "low", "high"), targets[kept])
        tables.append({"group": label, "input": inputs[kept], **limits, "what": "row"})
    return tables


def _lines(
    model: LinearRegression, design: Design, rows: list[PlotTable], labels: list[object], mass: float
) -> list[PlotTable]:
    """Return the expected target and its predictive interval by the input, for each group."""
    if rows:
        inputs = np.concatenate([points["input"] for points in rows])
        low, high = inputs.min(), inputs.max()
        edge = 0.08 * (high - low or 1.0)
    else:
        _, moments = next(iter(target_moments(design, model.tally_)))
        pooled = moments.pool_groups()
        low = high = pooled.mean[0]
        edge = 2.5 * (float(np.sqrt(pooled.scatter[0, 0] / max(pooled.weight[0], 1.0))) or 1.0)
    at = np.linspace(low - edge, high + edge, _PLACES)
    tables: list[PlotTable] = []
    for label in labels:
        group = {} if design.by is None else {design.by: np.full(_PLACES, label, dtype=object)}
        predictive = model.predictive(Table({design.numbers[0]: at, **group}))
        bottom, top = predictive.interval(mass)
        line = {"input": at, "expected": predictive.mean(), "low": bottom, "high": top}
        tables.append({"group": label, **line, "what": "line"})
    return tables


def _limits(tables: list[PlotTable], rows: list[PlotTable]) -> tuple[float, float]:
    """Return the limits of the y axis: all rows and lines; a polynomial that leaves the rows is cut off."""
    values = np.concatenate([table["expected"] for table in tables])
    if rows:
        points = np.concatenate([table["expected"] for table in rows])
        reach = np.ptp(points) or 1.0
        values = np.clip(values, points.min() - reach, points.max() + reach)
    edge = 0.25 * (np.ptp(values) or 1.0)
    return float(values.min()) - edge, float(values.max()) + edge


def _draw_residuals(panel: Axes, model: LinearRegression, design: Design, X: Rows, y: Labels | None) -> PlotTable:
    """Plot the residuals by the predicted target."""
    predictions, targets, _ = predict_targets(model, X, y)
    kept = np.flatnonzero(~np.isnan(targets))[:_MOST_POINTS]
    predicted = predictions.mean()[kept]
    residual = targets[kept] - predicted
    panel.axhline(0.0, color=NOTE, linewidth=0.8)
    panel.plot(predicted, residual, "o", color=COLORS[0], markersize=3.5, alpha=0.7)
    panel.set(xlabel=f"predicted {words(design.targets[0], 24)}", ylabel="residual")
    return {"predicted": predicted, "error": residual}
