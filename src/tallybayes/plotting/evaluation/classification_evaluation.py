"""Plots of an evaluation: confusion matrix, reliability diagram, precision-recall curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.plotting.plot import Plot, table_of
from tallybayes.plotting.style import COLORS, WIDEST, hide_top_right_spines, new_axes, set_title, words
from tallybayes.results.classification_metrics import PrecisionRecallCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.classification_evaluation import Evaluation

_MOST_NUMBERS = 25  # classes of a confusion matrix with numbers
_MOST_CURVES = 6  # classes with colored curves: those with the lowest average precision


def plot_confusion(evaluation: Evaluation, ax: Axes | None = None) -> Plot:
    """Plot the confusion matrix: numbers are total weights, colors are proportions of each true class.

    Parameters
    ----------
    evaluation : Evaluation
    ax : matplotlib Axes, optional
    """
    table = evaluation.confusion_matrix
    labels = [words(label, WIDEST) for label in evaluation.classes.tolist()]
    n = len(labels)
    longest = max(map(len, labels))
    side = min(max(0.42 * n, 2.4), 10.0)
    ax = new_axes(ax, figsize=(side + 1.6 + 0.08 * longest, side + 1.0 + 0.06 * longest))
    total = table.sum(axis=1, keepdims=True)
    proportion = np.divide(table, total, out=np.zeros(table.shape), where=total > 0)
    image = ax.imshow(proportion, cmap="Blues", vmin=0, vmax=1)
    rotated = longest > 8 or n > 8
    step = -(-n // 40)  # label every k-th of many classes
    at = range(0, n, step)
    size = 10 if n <= 12 else 8
    style: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if rotated else {}
    ax.set_xticks(at, labels[::step], fontsize=size, **style)
    ax.set_yticks(at, labels[::step], fontsize=size)
    if n <= _MOST_NUMBERS:
        for i, j in np.argwhere(table > 0):
            color = "white" if proportion[i, j] > 0.55 else "black"
            text = _amount(table[i, j])
            number = min(11, 60 * side / n / max(len(text), 3))
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize=number)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title(f"accuracy {evaluation.accuracy!r}", fontsize=11)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(1, n) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, n) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5 if n <= 12 else 0.6)
    ax.tick_params(which="minor", length=0)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, ticks=[0, 0.5, 1], label="proportion of the true class")
    bar.outline.set_visible(False)
    classes = evaluation.classes.tolist()
    return Plot(ax, table_of(("true", "predicted", "weight"), classes, classes, table))


def plot_reliability(evaluation: Evaluation, ax: Axes | None = None) -> Plot:
    """Plot the reliability diagram: accuracy by predicted probability, and a histogram of the probabilities above.

    Parameters
    ----------
    evaluation : Evaluation
    ax : matplotlib Axes, optional
    """
    bins = evaluation.reliability
    ax = new_axes(ax, figsize=(5.6, 5.6))
    start = min(float(bins.edges.min()), 1 / len(evaluation.classes))
    ax.plot([start, 1], [start, 1], color="0.6", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    accuracy = bins.accuracy
    errors = np.stack([accuracy.value - accuracy.low, accuracy.high - accuracy.value])
    ax.vlines(bins.confidence, accuracy.value, bins.confidence, color=COLORS[5], alpha=0.35, linewidth=5, zorder=2)
    style: dict[str, Any] = {"fmt": "o", "color": COLORS[0], "markersize": 5, "capsize": 2.5, "linewidth": 1.3}
    ax.errorbar(bins.confidence, accuracy.value, errors, zorder=3, **style)
    ax.plot(bins.confidence, accuracy.value, color=COLORS[0], linewidth=1, alpha=0.5, zorder=2)
    ax.set_xlim(start - 0.01, 1.01)
    ax.set_ylim(min(start, float(accuracy.low.min())) - 0.02, 1.02)
    ax.set_xlabel("probability of the predicted class")
    ax.set_ylabel(f"accuracy, with {evaluation.mass:.0%} intervals")
    hide_top_right_spines(ax)
    strip = ax.inset_axes((0, 1.02, 1, 0.13))
    proportion = bins.weight / bins.weight.sum()
    strip.bar(bins.edges[:, 0], proportion, np.diff(bins.edges)[:, 0], align="edge", color="0.75", edgecolor="white")
    strip.set_xlim(ax.get_xlim())
    strip.set_ylim(0, 1.25 * proportion.max())
    strip.set_xticks([])
    strip.set_yticks([])
    for side in ("top", "left", "right"):
        strip.spines[side].set_visible(False)
    for (left, right), part in zip(bins.edges, proportion, strict=True):
        if part >= 0.0005:
            text = f"{part:.0%}" if part >= 0.01 else "<1%"
            strip.text((left + right) / 2, part, text, ha="center", va="bottom", fontsize=7, color="0.4")
    strip.set_title(f"calibration error {evaluation.calibration_error!r}", fontsize=11)
    columns = {"low": bins.edges[:, 0], "high": bins.edges[:, 1], "weight": bins.weight, "confidence": bins.confidence}
    accuracies = {"accuracy": accuracy.value, "accuracy_low": accuracy.low, "accuracy_high": accuracy.high}
    return Plot(ax, {**columns, **accuracies})


def plot_precision_recall(evaluation: Evaluation, ax: Axes | None = None) -> Plot:
    """Plot precision by recall; a dot marks the prediction of the most probable class.

    Parameters
    ----------
    evaluation : Evaluation
    ax : matplotlib Axes, optional
    """
    labels = evaluation.classes.tolist()
    total = np.array(list(evaluation.support.values()))
    present = [k for k in ([1] if len(labels) == 2 else range(len(labels))) if total[k] > 0]
    if not present:
        label = labels[1] if len(labels) == 2 else labels
        raise DataError(f"no row is of class {label!r}: its recall is undefined; expected at least one.")
    curves = {k: evaluation.precision_recall_curve(labels[k]) for k in present}
    hardest = sorted(curves, key=lambda k: (curves[k].average_precision, k))
    shown = sorted(hardest[:_MOST_CURVES] if len(hardest) > 8 else hardest)
    legend_outside = len(shown) > 4  # the legend would hide curves
    ax = new_axes(ax, figsize=(8.6, 5) if legend_outside else (6, 5))
    others = [k for k in present if k not in shown]
    for position, k in enumerate(others):
        name = f"{len(others)} other classes" if position == 0 else None
        _draw(ax, curves[k], color="0.8", linewidth=0.8, label=name, zorder=1)
    for position, k in enumerate(shown):
        color = COLORS[position % len(COLORS)]
        text = f"{words(labels[k], WIDEST)}  (average {curves[k].average_precision:.3f})"
        _draw(ax, curves[k], color=color, linewidth=1.8, label=text, zorder=2)
        operating_point = evaluation.recall[labels[k]].value, evaluation.precision[labels[k]].value
        if not np.isnan(operating_point).any():
            ax.plot(*operating_point, "o", color=color, markersize=6, markeredgecolor="white", zorder=4)
    if len(present) == 1:
        base = float(total[present[0]] / total.sum())
        ax.axhline(base, color="0.6", linewidth=1, linestyle=(0, (4, 3)), label=f"class frequency ({base:.3f})")
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("recall")
    ax.set_ylabel("precision")
    title = "Precision and recall" if len(labels) == 2 else "Precision and recall of each class against the rest"
    set_title(ax, f"{title}: the {len(shown)} with the lowest average" if others else title)
    legend_position = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if legend_outside else {"loc": "lower left"}
    ax.legend(frameon=False, fontsize=9, **legend_position)
    hide_top_right_spines(ax)
    tables = [{"class": labels[k], "recall": curves[k].recall, "precision": curves[k].precision} for k in present]
    return Plot(ax, *tables)


def _draw(ax: Axes, curve: PrecisionRecallCurve, **style: Any) -> None:
    """Draw a curve as steps with at most 4,000 points."""
    keep = np.unique(np.linspace(0, len(curve.recall) - 1, min(len(curve.recall), 4000)).astype(int))
    ax.step(curve.recall[keep], curve.precision[keep], where="pre", **style)


def _amount(weight: float) -> str:
    """Format a weight."""
    whole = weight >= 100 or weight == round(weight)
    return f"{weight:.0f}" if whole and weight < 1e6 else f"{weight:.3g}"
