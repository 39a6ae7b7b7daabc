"""Plots of an evaluation: confusion matrix, reliability diagram, precision-recall curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.plotting.charts import error_bars, heat_map
from tallybayes.plotting.plot import Plot, table_of
from tallybayes.plotting.style import COLORS, MOST_COLORS, WIDEST, legend_beside, new_axes, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.classification_evaluation import Evaluation

_MOST_CURVES = 6  # classes with colored curves: those with the lowest average precision
_MOST_POINTS = 4000  # of a curve
_REFERENCE: dict[str, Any] = {"color": "0.6", "linewidth": 1, "linestyle": (0, (4, 3))}


def plot_confusion(evaluation: Evaluation, ax: Axes | None = None) -> Plot:
    """Plot the confusion matrix: numbers are total weights, colors are proportions of each true class.

    Parameters
    ----------
    evaluation : Evaluation
    ax : matplotlib Axes, optional
    """
    from matplotlib.colors import Normalize

    table = evaluation.confusion_matrix
    classes = evaluation.classes.tolist()
    total = table.sum(axis=1, keepdims=True)
    proportion = np.divide(table, total, out=np.zeros(table.shape), where=total > 0)
    texts = [[_amount(weight) if weight > 0 else "" for weight in row] for row in table]
    bar: dict[str, Any] = {"ticks": [0, 0.5, 1], "label": "proportion of the true class"}
    ax = heat_map(ax, proportion, classes, classes, Normalize(0, 1), texts=texts, **bar)
    ax.set(xlabel="predicted", ylabel="true")
    set_title(ax, f"accuracy {evaluation.accuracy!r}")
    return Plot(ax, table_of(("true", "predicted", "weight"), classes, classes, table))


def plot_reliability(evaluation: Evaluation, ax: Axes | None = None) -> Plot:
    """Plot the reliability diagram: accuracy by predicted probability, and a histogram of the probabilities above.

    Parameters
    ----------
    evaluation : Evaluation
    ax : matplotlib Axes, optional
    """
    bins = evaluation.reliability
    accuracy = bins.accuracy
    ax = new_axes(ax, 5.6, 5.6)
    start = min(bins.edges.min(), 1 / len(evaluation.classes))
    ax.axline((0, 0), slope=1, **_REFERENCE, zorder=1)
    ax.vlines(bins.confidence, accuracy.value, bins.confidence, color=COLORS[5], alpha=0.35, linewidth=5, zorder=2)
    errors = error_bars(accuracy.value, accuracy.low, accuracy.high)
    ax.errorbar(bins.confidence, accuracy.value, errors, fmt="o", color=COLORS[0], markersize=5, capsize=2.5, zorder=3)
    ax.plot(bins.confidence, accuracy.value, color=COLORS[0], linewidth=1, alpha=0.5, zorder=2)
    ax.set_xlim(start - 0.01, 1.01)
    ax.set_ylim(min(start, accuracy.low.min()) - 0.02, 1.02)
    ax.set_xlabel("probability of the predicted class")
    ax.set_ylabel(f"accuracy, with {evaluation.mass:.0%} intervals")
    left, right = bins.edges.T
    proportion = bins.weight / bins.weight.sum()
    strip = ax.inset_axes((0, 1.02, 1, 0.13), sharex=ax)
    bars = strip.bar(left, proportion, right - left, align="edge", color="0.75", edgecolor="white")
    texts = ["" if part < 0.0005 else f"{part:.0%}" if part >= 0.01 else "<1%" for part in proportion]
    strip.bar_label(bars, texts, fontsize=7, color="0.4")
    strip.set_ylim(0, 1.25 * proportion.max())
    strip.set_yticks([])
    strip.tick_params(axis="x", length=0, labelbottom=False)
    strip.spines[["top", "left", "right"]].set_visible(False)
    set_title(strip, f"calibration error {evaluation.calibration_error!r}")
    columns = {"low": left, "high": right, "weight": bins.weight, "confidence": bins.confidence}
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
    is_binary = len(labels) == 2
    total = np.array(list(evaluation.support.values()))
    present = [k for k in ([1] if is_binary else range(len(labels))) if total[k] > 0]
    if not present:
        label = labels[1] if is_binary else labels
        raise DataError(f"no row is of class {label!r}: its recall is undefined; expected at least one.")
    curves = {k: evaluation.precision_recall_curve(labels[k]) for k in present}
    hardest = sorted(curves, key=lambda k: (curves[k].average_precision, k))
    shown = hardest[:_MOST_CURVES] if len(hardest) > MOST_COLORS else hardest
    others = len(present) - len(shown)
    ax = new_axes(ax, 8.6 if len(shown) > 4 else 6, 5)
    colors = dict(zip(sorted(shown), COLORS, strict=False))
    for k in sorted(present, key=lambda k: (k in colors, k)):
        curve = curves[k]
        kept = np.unique(np.linspace(0, len(curve.recall) - 1, _MOST_POINTS).astype(int))
        gray = f"{others} other classes" if others else None
        line: dict[str, Any] = {"color": "0.8", "linewidth": 0.8, "label": gray}
        if k in colors:
            text = f"{words(labels[k], WIDEST)}  (average {curve.average_precision:.3f})"
            line = {"color": colors[k], "linewidth": 1.8, "label": text}
            operating_point = evaluation.recall[labels[k]].value, evaluation.precision[labels[k]].value
            ax.plot(*operating_point, "o", color=colors[k], markersize=6, markeredgecolor="white", zorder=4)
        else:
            others = 0  # one entry in the legend for all
        ax.step(curve.recall[kept], curve.precision[kept], where="pre", **line)
    if len(present) == 1:
        base = total[present[0]] / total.sum()
        ax.axhline(base, **_REFERENCE, label=f"class frequency ({base:.3f})")
    ax.set(xlim=(-0.01, 1.01), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
    title = "Precision and recall" if is_binary else "Precision and recall of each class against the rest"
    set_title(ax, f"{title}: the {len(shown)} with the lowest average" if len(shown) < len(present) else title)
    if len(shown) > 4:  # the legend would hide curves
        legend_beside(ax)
    else:
        ax.legend(frameon=False, fontsize=9, loc="lower left")
    tables = [{"class": labels[k], "recall": curves[k].recall, "precision": curves[k].precision} for k in present]
    return Plot(ax, *tables)


def _amount(weight: float) -> str:
    """Format a weight."""
    whole = weight >= 100 or weight == round(weight)
    return f"{weight:.0f}" if whole and weight < 1e6 else f"{weight:.3g}"
