"""Plots of linear regression: predictions with bands, and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.evaluation.validation.arguments import listed
from tallybayes.models.regression.regression_counts import target_moments
from tallybayes.models.regression.regression_fit import read_rows
from tallybayes.models.regression.target_prediction import predict_targets
from tallybayes.plotting.plot import Plot, PlotAxes, PlotTable
from tallybayes.plotting.style import (
    NOTE,
    GroupStyle,
    all_axes,
    group_styles,
    hide_top_right_spines,
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
    X: Rows | None,
    y: Labels | None,
    candidates: Candidates | None,
    mass: float,
    ax: PlotAxes,
) -> Plot:
    """Plot the fitted regression of each candidate in one panel, or the residuals if there are several inputs."""
    design = model._design
    if len(design.targets) > 1:
        raise DataError(
            f"plot shows one target; the model has {len(design.targets)}.\n    Fit a model with one target."
        )
    settings = listed(candidates)
    models = [model.reestimate(**candidate) if candidate else model for candidate in settings]
    has_line = len(design.numbers) == 1 and not design.labels
    if not has_line and X is None:
        raise DataError(
            f"X is missing; a model with {len(design.numbers) + len(design.labels)} inputs has no regression line.\n"
            "    Pass X and y to plot the residuals by the predicted target."
        )
    width = 4.0 if len(models) > 1 else 6.0
    axes = panels(len(models), 3, width, 3.6, sharey=has_line) if ax is None else all_axes(ax)
    parts: list[PlotTable] = []
    for panel, candidate, parameters in zip(axes, models, settings, strict=True):
        if has_line or X is None:
            parts += _line(panel, candidate, design, X, y, mass)
        else:
            parts += _errors(panel, candidate, design, X, y)
        if parameters:
            set_title(panel, ", ".join(f"{name} = {value!r}" for name, value in parameters.items()))
        hide_top_right_spines(panel)
    if has_line:
        low, high = _limits(parts)
        for panel in axes:
            panel.set_ylim(low, high)
        legend_beside(axes[-1])
    return Plot(axes, *parts)


def _line(
    panel: Axes, model: LinearRegression, design: Design, X: Rows | None, y: Labels | None, mass: float
) -> list[PlotTable]:
    """Plot the expected target and its predictive interval by the input, for each group."""
    name = design.numbers[0]
    target = design.targets[0]
    _, moments = next(iter(target_moments(design, model.tally_)))
    pooled = moments.pool_groups()
    center = float(pooled.mean[0])
    spread = float(np.sqrt(pooled.scatter[0, 0] / max(float(pooled.weight[0]), 1.0)))
    low = center - 2.5 * (spread or 1.0)
    high = center + 2.5 * (spread or 1.0)
    rows = groups = None
    if X is not None:
        table, _ = read_rows(model, design, X, y, None)
        rows = np.asarray(table.column(name), float), np.asarray(table.column(target), float)
        groups = None if design.by is None else np.asarray(table.column(design.by), dtype=object)
        low = float(rows[0].min())
        high = float(rows[0].max())
        edge = 0.08 * (high - low or 1.0)
        low = low - edge
        high = high + edge
    at = np.linspace(low, high, _PLACES)
    labels = [None] if design.by is None else list(model.tally_.domains[str(design.by)].levels)
    styles = [GroupStyle("#0072B2", None, own=True)] if design.by is None else group_styles(labels, noun="groups")
    parts: list[PlotTable] = []
    for label, style in zip(labels, styles, strict=True):
        columns: dict[Any, Any] = {name: at}
        if label is not None:
            columns[design.by] = np.array([label] * len(at), dtype=object)
        predictive = model.predictive(_as_rows(design, columns))
        bottom, top = predictive.interval(mass)
        panel.fill_between(at, bottom, top, color=style.color, alpha=0.15 if style.own else 0.05, linewidth=0)
        panel.plot(at, predictive.mean(), color=style.color, linewidth=1.8 if style.own else 0.7, label=style.label)
        parts.append(
            {"group": label, "input": at, "expected": predictive.mean(), "low": bottom, "high": top, "what": "line"}
        )
        if rows is not None:
            in_group = np.ones(len(rows[0]), dtype=bool) if label is None else groups == label
            kept = np.flatnonzero(in_group & ~np.isnan(rows[1]))[:_MOST_POINTS]
            color = "#333333" if label is None else style.color
            panel.plot(rows[0][kept], rows[1][kept], "o", color=color, markersize=3.5, alpha=0.8, zorder=3)
            inputs = rows[0][kept]
            targets = rows[1][kept]
            limits = {"expected": targets, "low": targets, "high": targets}
            parts.append({"group": label, "input": inputs, **limits, "what": "row"})
    panel.set_xlabel(name_of(name))
    position = panel.get_subplotspec()
    if position is None or position.is_first_col():
        panel.set_ylabel(words(target, 32))
    return parts


def _as_rows(design: Design, columns: dict[Any, np.ndarray]) -> Rows:
    """Return columns as input of the model: an array if it was fitted to an array."""
    if all(isinstance(name, int) for name in columns):
        order = sorted(columns)
        return np.stack(
            [np.asarray(columns[name], dtype=object if len(order) > 1 else float) for name in order], axis=1
        )
    if design.feature_names is not None:
        import pandas as pd

        return pd.DataFrame({name: columns[name] for name in design.feature_names})
    return columns


def _limits(parts: list[PlotTable]) -> tuple[float, float]:
    """Return the limits of the y axis: all rows and lines, and the bands unless they would hide them."""
    values = np.concatenate([np.ravel(part["expected"]) for part in parts])
    rows = [part for part in parts if part["what"] == "row"]
    if rows:  # limit the range of polynomials that leave the data
        points = np.concatenate([np.ravel(part["expected"]) for part in rows])
        reach = float(np.ptp(points)) or 1.0
        values = np.clip(values, points.min() - reach, points.max() + reach)
    low = float(values.min())
    high = float(values.max())
    edge = 0.25 * (high - low or 1.0)
    return low - edge, high + edge


def _errors(panel: Axes, model: LinearRegression, design: Design, X: Rows, y: Labels | None) -> list[PlotTable]:
    """Plot the residuals by the predicted target."""
    assert X is not None  # `plot_regression` checks it
    predictions, targets, _ = predict_targets(model, X, y)
    kept = np.flatnonzero(~np.isnan(targets))[:_MOST_POINTS]
    predicted = predictions.mean()[kept]
    residual = (targets - predictions.mean())[kept]
    panel.axhline(0.0, color=NOTE, linewidth=0.8)
    panel.plot(predicted, residual, "o", color="#0072B2", markersize=3.5, alpha=0.7)
    panel.set_xlabel(f"predicted {words(design.targets[0], 24)}")
    panel.set_ylabel("residual")
    return [{"predicted": predicted, "error": residual}]
