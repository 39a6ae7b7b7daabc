"""Pictures of a fitted model: its columns, its decisions, one row's evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.fitted.scoring import chunk_of
from tallybayes.models.inputs.shape import open_rows
from tallybayes.plots.style import COLOURS, new_axes, quiet, words
from tallybayes.sources.table import as_array

if TYPE_CHECKING:
    from tallybayes.models.classifiers.answers.explain import Explanation


def plot_explanation(explanation: Explanation, row: int = 0, ax: Any = None, most: int = 12) -> Any:
    """One row's weights of evidence as bars, the largest first."""
    found = list(explanation.to_dict(row).items())
    rest = sum(weight for _, weight in found[most:])
    shown = found[:most] + ([(f"{len(found) - most} more", rest)] if len(found) > most else [])
    ax = new_axes(ax, figsize=(7, 1.2 + 0.32 * len(shown)), layout="constrained")
    cells = dict(zip(explanation.columns, explanation.values[row], strict=True))
    labels = []
    for column, _ in shown:
        value = cells.get(column)
        text = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        labels.append(words(column if value is None else f"{column} = {text}"))
    weights = np.nan_to_num([weight for _, weight in shown], posinf=np.inf, neginf=-np.inf)
    infinite = np.isinf(weights)
    longest = 1.25 * float(np.abs(weights[~infinite]).max(initial=0.0)) or 1.0
    for place in np.flatnonzero(infinite):  # as far as the picture goes, and said so
        weights[place] = np.copysign(longest, weights[place])
        ax.annotate("∞", (weights[place], place), ha="center", va="center")
    ax.barh(range(len(shown)), weights, color=[COLOURS[0] if w >= 0 else COLOURS[5] for w in weights])
    ax.set_yticks(range(len(shown)), labels)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    top, other = words(explanation.classes[row]), words(explanation.others[row])
    ax.set_xlabel(f"weight of evidence (nats)   ← {other}   |   {top} →")
    ax.set_title(f"{top} against {other}: log-odds {explanation.log_odds[row]:+.2f}")
    quiet(ax)
    return ax


def plot_columns(model: Any, columns: Any = None, n_across: int = 3) -> Any:
    """The class-conditional distribution of every column: densities for numbers, bars for labels.

    Parameters
    ----------
    model : a fitted classifier
    columns : list of names, optional
        Which to draw; the first twelve if left out.
    n_across : int, default 3

    Returns
    -------
    matplotlib Figure
    """
    import matplotlib.pyplot as plt

    places = [
        (scored, place, name)
        for scored in model._scored
        if scored.family.columnwise
        for place, name in enumerate(scored.factor.columns)
        if columns is None or name in columns
    ][:12]
    n_down = -(-len(places) // n_across)
    figure, axes = plt.subplots(
        max(n_down, 1), n_across, figsize=(4 * n_across, 2.6 * max(n_down, 1)), layout="constrained", squeeze=False
    )
    for ax in axes.ravel()[len(places) :]:
        ax.set_visible(False)
    for ax, (scored, place, name) in zip(axes.ravel(), places, strict=False):
        _plot_column(ax, model, scored, place)
        ax.set_title(words(name))
        quiet(ax)
    if places:
        axes[0, 0].legend(title=words(model._target), frameon=False)
    return figure


def _plot_column(ax: Any, model: Any, scored: Any, place: int) -> None:
    classes = model.classes_
    n_columns = len(scored.factor.columns)
    if scored.family.reads == "codes":
        name = scored.factor.columns[place]
        levels = model._family_of(scored.factor, name).bins or model.tally_.domains[str(name)].levels
        cells = np.full((len(levels), n_columns), -1)
        cells[:, place] = np.arange(len(levels))
        density = np.exp(scored.log_prob(cells)[:, :, place])
        width = 0.8 / len(classes)
        for k, label in enumerate(classes):
            left = np.arange(len(levels)) + (k - (len(classes) - 1) / 2) * width
            ax.bar(left, density[:, k], width, color=COLOURS[k % len(COLOURS)], label=words(label))
        ax.set_xticks(range(len(levels)), [words(level) for level in levels], rotation=30 if len(levels) > 5 else 0)
        ax.set_ylabel("probability")
        return
    grid = scored.family.grid(scored.parameters, place)
    ax.set_xscale(scored.family.scale)
    rows = np.full((len(grid), n_columns), np.nan)
    rows[:, place] = grid
    density = np.exp(scored.log_prob(rows)[:, :, place])
    measured = scored.family.measured
    style = {} if measured else {"marker": "o", "markersize": 3}
    for k, label in enumerate(classes):
        ax.plot(grid, density[:, k], color=COLOURS[k % len(COLOURS)], label=words(label), **style)
    ax.set_ylabel("density" if measured else "probability")
    ax.set_ylim(bottom=0)


def plot_decision(model: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """The regions of the classes in the plane of a model of two columns, with the ellipse of two deviations of each."""
    from matplotlib.colors import ListedColormap

    scored = model._scored[0]
    mean = scored.family.expected(scored.parameters)
    if mean.shape[1] != 2:
        raise DataError.wrong_shape("the model's columns", (mean.shape[1],), "2 columns, to draw in the plane")
    covariance = _covariances(scored)
    ax = new_axes(ax, figsize=(6, 5), layout="constrained")
    reach = 3.5 * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    low, high = (mean - reach).min(axis=0), (mean + reach).max(axis=0)
    points = None if X is None else chunk_of(model._rows(open_rows(model, X), scored), slice(None))
    if points is not None:
        low, high = (f.reduce(np.vstack([edge, points])) for f, edge in ((np.fmin, low), (np.fmax, high)))
    across, up = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
    grid = np.column_stack([across.ravel(), up.ravel()])
    names = list(getattr(model, "feature_names_in_", scored.factor.columns))
    rows: Any = grid if not hasattr(model, "feature_names_in_") else dict(zip(names, grid.T, strict=True))
    region = model.predict_joint_log_proba(rows).argmax(axis=1).reshape(across.shape)
    n_classes = len(model.classes_)
    shades = ListedColormap([COLOURS[k % len(COLOURS)] for k in range(n_classes)])
    ax.contourf(across, up, region, levels=np.arange(n_classes + 1) - 0.5, cmap=shades, alpha=0.15)
    ax.contour(across, up, region, levels=np.arange(n_classes - 1) + 0.5, colors="black", linewidths=0.8)
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for k, label in enumerate(model.classes_):
        values, vectors = np.linalg.eigh(covariance[k])
        ring = mean[k][:, None] + 2 * vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
        ax.plot(*ring, color=COLOURS[k % len(COLOURS)], linewidth=1.5)
        ax.plot(*mean[k], marker="+", color=COLOURS[k % len(COLOURS)], markersize=10, markeredgewidth=2)
        if points is not None and y is not None:
            mine = as_array(y) == label
            ax.plot(*points[mine].T, ".", color=COLOURS[k % len(COLOURS)], markersize=4, label=words(label))
    if points is not None and y is None:
        ax.plot(*points.T, ".", color="black", markersize=4)
    elif points is not None:
        ax.legend(frameon=False)
    names = [words(name if isinstance(name, str) else f"column {name}") for name in names]
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.set_title(f"{getattr(model, 'covariance', '')} covariance, {model.estimate} estimate".strip())
    quiet(ax)
    return ax


def _covariances(scored: Any) -> np.ndarray:
    """A covariance matrix for every class, whatever the family."""
    found = scored.family.from_belief(scored.parameters, "mean") if scored.predictive else scored.parameters
    spread = np.asarray(found[1])
    return spread if spread.ndim == 3 else spread[..., None] * np.eye(spread.shape[-1])


def plot_projection(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """Rows on the first discriminant directions, coloured by class."""
    seen = model.transform(X)
    if seen.shape[1] == 0:
        raise DataError("there is no discriminant direction to draw on; expected classes whose means differ.")
    ax = new_axes(ax, figsize=(6, 5), layout="constrained")
    second = seen[:, 1] if seen.shape[1] > 1 else np.random.default_rng(0).uniform(-0.5, 0.5, len(seen))
    for k, label in enumerate(model.classes_):
        mine = as_array(y) == label
        ax.plot(seen[mine, 0], second[mine], ".", color=COLOURS[k % len(COLOURS)], markersize=4, label=words(label))
    ax.set_xlabel("first discriminant")
    if seen.shape[1] > 1:
        ax.set_ylabel("second discriminant")
    else:
        ax.set_yticks([])
    ax.legend(frameon=False)
    ax.set_title("Rows on the discriminant directions")
    quiet(ax)
    return ax
