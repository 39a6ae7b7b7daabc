"""Plot of the most characteristic words of each class, with credible intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.families.protocols.display import named_parameters
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.plotting.classifier.groups import groups_of
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, OTHERS, WIDEST, note_above, panels, set_log_ticks, set_title, words

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.typing import Name

_MOST_CLASSES = 12
_COLUMNS = ("class", "word", "probability", "low", "high", "against", "other")


def plot_words(model: ClassConditionalModel, column: Name | None = None, most: int = 10, mass: float = 0.95) -> Plot:
    """Plot the words with the largest weight for each class, with credible intervals.

    Parameters
    ----------
    model : a fitted classifier or mixture of word counts
    column : name of the column or block of words; optional for a single one
    most : int
        Maximum number of words for each class.
    mass : float
        Probability mass of the credible intervals.
    """
    factor = _word_factor(model, column)
    probability = next(iter(named_parameters(factor.family, factor.point).values()))
    probability = np.reshape(probability, (len(model.classes_), -1))
    groups = groups_of(model)
    classes = groups.labels
    kept = groups.most_frequent(_MOST_CLASSES)
    axes = panels(len(kept), 3, 3.7, 0.9 + 0.24 * min(most, probability.shape[1]))
    rows: list[tuple[Any, ...]] = []
    for ax, k in zip(axes, kept, strict=True):
        other = np.where(np.arange(len(classes))[:, None] == k, -np.inf, probability).argmax(axis=0)
        top = _by_weight(probability[k], probability[other, np.arange(probability.shape[1])])[:most].tolist()
        names = [factor.name_within(word) if factor.is_block else factor.columns[word] for word in top]
        for position, (word, name) in enumerate(zip(top, names, strict=True)):
            low, high = (np.asarray(end).reshape(-1) for end in factor.posterior_of(word).interval(mass))
            against = int(other[word])
            drawn = [(k, COLORS[0])] if len(classes) == 1 else [(against, OTHERS), (k, COLORS[0])]
            for group, color in drawn:
                ends = [low[group], high[group]]
                ax.plot(ends, [position, position], color=color, linewidth=2)
                ax.plot(probability[group, word], position, "o", color=color, markersize=4)
            numbers = probability[k, word], low[k], high[k]
            rows.append((classes[k], name, *numbers, classes[against], probability[against, word]))
        ax.set_yticks(range(len(top)), [words(name, WIDEST) for name in names])
        ax.set_xscale("log")
        set_log_ticks(ax, *ax.get_xlim())
        ax.invert_yaxis()
        ax.set_xlabel("word probability" if factor.family.is_bag_of_words else "probability of presence", fontsize=9)
        ax.tick_params(labelsize=9)
        set_title(ax, words(classes[k], WIDEST))
    note = f"blue: the class; gray: the other class with the highest probability; {mass:.0%} intervals"
    note_above(axes[0].figure, note, groups.note(len(kept)))
    return Plot(axes, {name: [row[k] for row in rows] for k, name in enumerate(_COLUMNS)})


def _by_weight(in_class: np.ndarray, in_other: np.ndarray) -> np.ndarray:
    """Return the words in decreasing order of weight: probability times the log of the ratio of probabilities."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = in_class * np.log(in_class / in_other)
    return np.argsort(-np.nan_to_num(weight, nan=-np.inf, posinf=np.inf), kind="stable")


def _word_factor(model: ClassConditionalModel, column: Name | None) -> LabeledFactor:
    """Return the factor of the words."""
    model._require_counts("a plot of words with intervals")
    blocks = [
        factor
        for factor in model._labeled_factors()
        if factor.is_block and (factor.family.is_bag_of_words or factor.family.sums_cells)
    ]
    matching = [factor for factor in blocks if column is None or factor.columns[0] == column]
    if len(matching) != 1:
        known = ", ".join(repr(factor.columns[0]) for factor in blocks) or "none"
        raise DataError(
            f"column is {column!r}; expected one of the blocks of words: {known}.\n"
            "    Text columns, columns={'subject': tb.Text()}, and sparse matrices are blocks of words."
        )
    return matching[0]
