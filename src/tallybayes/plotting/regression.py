"""Regression: lines with their bands, and errors over what was predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.evaluation.validation.parameter_grid import listed
from tallybayes.models.regression.regression_counts import target_moments
from tallybayes.models.regression.regression_fit import read_rows
from tallybayes.models.regression.target_prediction import predictions_and_targets
from tallybayes.plotting.plot import Plot, PlotTable
from tallybayes.plotting.style import (
    NOTE,
    GroupStyle,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    name_of,
    panels,
    set_title,
    words,
)

_PLACES = 201
_MOST_POINTS = 5000


def plot_regression(model: Any, X: Any, y: Any, candidates: Any, mass: float, ax: Any) -> Plot:
    """A panel for every candidate, or one."""
    design = model._design
    if len(design.targets) > 1:
        raise DataError(f"a picture shows one target; found {len(design.targets)}.\n    Fit one of them by itself.")
    settings = listed(candidates)
    models = [model.reestimate(**each) if each else model for each in settings]
    along = len(design.numbers) == 1 and not design.labels
    if not along and X is None:
        raise DataError(
            f"a line over {len(design.numbers) + len(design.labels)} inputs cannot be drawn; expected one of numbers.\n"
            "    Pass X and y: errors are drawn over what is predicted."
        )
    width = 4.0 if len(models) > 1 else 6.0
    axes = panels(len(models), 3, width, 3.6, sharey=along) if ax is None else np.ravel(ax)
    parts: list[PlotTable] = []
    for panel, each, own in zip(axes, models, settings, strict=True):
        parts += _line(panel, each, X, y, mass) if along else _errors(panel, each, X, y)
        if own:
            set_title(panel, ", ".join(f"{name} = {value!r}" for name, value in own.items()))
        hide_top_right_spines(panel)
    if along:
        low, high = _limits(parts)
        for panel in axes:
            panel.set_ylim(low, high)
        legend_beside(axes[-1])
    return Plot(axes, *parts)


def _line(panel: Any, model: Any, X: Any, y: Any, mass: float) -> list[PlotTable]:
    """The expected target and the band over the input, for every group."""
    design = model._design
    name, target = design.numbers[0], design.targets[0]
    _, moments = next(iter(target_moments(design, model.tally_)))
    pooled = moments.pool_groups()
    middle, spread = float(pooled.mean[0]), float(np.sqrt(pooled.scatter[0, 0] / max(float(pooled.weight[0]), 1.0)))
    low, high = middle - 2.5 * (spread or 1.0), middle + 2.5 * (spread or 1.0)
    rows = groups = None
    if X is not None:
        table, _ = read_rows(model, X, y, None)
        rows = np.asarray(table._column(name), float), np.asarray(table._column(target), float)
        groups = None if design.by is None else np.asarray(table._column(design.by), dtype=object)
        low, high = float(rows[0].min()), float(rows[0].max())
        edge = 0.08 * (high - low or 1.0)
        low, high = low - edge, high + edge
    at = np.linspace(low, high, _PLACES)
    labels = [None] if design.by is None else list(model.tally_.domains[str(design.by)].levels)
    look = [GroupStyle("#0072B2", None, own=True)] if design.by is None else group_styles(labels, what="groups")
    parts: list[PlotTable] = []
    for label, how in zip(labels, look, strict=True):
        asked_of: dict[Any, Any] = {name: at}
        if label is not None:
            asked_of[design.by] = np.array([label] * len(at), dtype=object)
        told = model.predictive(_as_rows(model, asked_of))
        bottom, top = told.interval(mass)
        panel.fill_between(at, bottom, top, color=how.color, alpha=0.15 if how.own else 0.05, linewidth=0)
        panel.plot(at, told.mean(), color=how.color, linewidth=1.8 if how.own else 0.7, label=how.label)
        parts.append({"group": label, "input": at, "expected": told.mean(), "low": bottom, "high": top, "what": "line"})
        if rows is not None:
            mine = np.ones(len(rows[0]), dtype=bool) if label is None else groups == label
            places = np.flatnonzero(mine & ~np.isnan(rows[1]))[:_MOST_POINTS]
            color = "#333333" if label is None else how.color
            panel.plot(rows[0][places], rows[1][places], "o", color=color, markersize=3.5, alpha=0.8, zorder=3)
            point = rows[1][places]
            parts.append(
                {
                    "group": label,
                    "input": rows[0][places],
                    "expected": point,
                    "low": point,
                    "high": point,
                    "what": "row",
                }
            )
    panel.set_xlabel(name_of(name))
    if panel.get_subplotspec() is None or panel.get_subplotspec().is_first_col():
        panel.set_ylabel(words(target, 32))
    return parts


def _as_rows(model: Any, columns: dict[Any, Any]) -> Any:
    """Columns as the model takes them: an array where it was fitted on one."""
    if all(isinstance(name, int) for name in columns):
        order = sorted(columns)
        return np.stack(
            [np.asarray(columns[name], dtype=object if len(order) > 1 else float) for name in order], axis=1
        )
    if model._design.feature_names is not None:
        import pandas as pd

        return pd.DataFrame({name: columns[name] for name in model._design.feature_names})
    return columns


def _limits(parts: list[PlotTable]) -> tuple[float, float]:
    """Where panels begin and end: rows and lines in full, and bands as far as they do not hide them."""
    values = np.concatenate([np.ravel(part["expected"]) for part in parts])
    drawn = [part for part in parts if part["what"] == "row"]
    if drawn:  # a wild polynomial shall not make all rows one line
        points = np.concatenate([np.ravel(part["expected"]) for part in drawn])
        reach = float(np.ptp(points)) or 1.0
        values = np.clip(values, points.min() - reach, points.max() + reach)
    low, high = float(values.min()), float(values.max())
    edge = 0.25 * (high - low or 1.0)
    return low - edge, high + edge


def _errors(panel: Any, model: Any, X: Any, y: Any) -> list[PlotTable]:
    """What every row is off by, over what is predicted."""
    told, found, _ = predictions_and_targets(model, X, y, None)
    kept = np.flatnonzero(~np.isnan(found))[:_MOST_POINTS]
    predicted, error = told.mean()[kept], (found - told.mean())[kept]
    panel.axhline(0.0, color=NOTE, linewidth=0.8)
    panel.plot(predicted, error, "o", color="#0072B2", markersize=3.5, alpha=0.7)
    panel.set_xlabel(f"predicted {words(model._design.targets[0], 24)}")
    panel.set_ylabel("error")
    return [{"predicted": predicted, "error": error}]
