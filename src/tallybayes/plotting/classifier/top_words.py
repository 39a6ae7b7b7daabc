"""The words that tell classes apart, with how sure their shares are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import (
    COLORS,
    OTHERS,
    WIDEST,
    hide_top_right_spines,
    note_above,
    panels,
    set_log_ticks,
    set_title,
    words,
)

_MOST_CLASSES = 12


def plot_words(model: Any, column: Any = None, most: int = 10, mass: float = 0.95) -> Plot:
    """Of every class the words that tell it from the others most, with credible intervals.

    Parameters
    ----------
    model : a fitted classifier or mixture of counts of words
    column : name of the column, or block, of words; may be left out where there is one
    most : int
        How many words of each class.
    mass : float
        Of the intervals.
    """
    told = _words_of(model, column)
    share = np.reshape(next(iter(told.family.named_parameters(told.point).values())), (len(model.classes_), -1))
    prior, classes = np.exp(model.class_log_prior_), model.classes_.tolist()
    kept = np.sort(np.argsort(-prior, kind="stable")[:_MOST_CLASSES])
    axes = panels(len(kept), 3, 3.7, 0.9 + 0.24 * min(most, share.shape[1]))
    drawn: dict[str, list[Any]] = {name: [] for name in ("class", "word", "share", "low", "high", "against", "other")}
    for ax, k in zip(axes, kept, strict=True):
        other = np.where(np.arange(len(classes))[:, None] == k, -np.inf, share).argmax(axis=0)
        places = _telling(share[k], share[other, np.arange(share.shape[1])])[:most]
        for row, place in enumerate(places):
            low, high = (np.asarray(end).reshape(-1) for end in told.posterior_of(int(place)).interval(mass))
            against = int(other[place])
            name = told.name_within(int(place)) if told.is_block else told.columns[int(place)]
            if len(classes) > 1:
                ax.plot([low[against], high[against]], [row, row], color=OTHERS, linewidth=2, zorder=1)
                ax.plot(share[against, place], row, "o", color=OTHERS, markersize=4, zorder=2)
            ax.plot([low[k], high[k]], [row, row], color=COLORS[0], linewidth=2, zorder=3)
            ax.plot(share[k, place], row, "o", color=COLORS[0], markersize=4, zorder=4)
            found = (classes[k], name, share[k, place], low[k], high[k], classes[against], share[against, place])
            for key, value in zip(drawn, found, strict=True):
                drawn[key].append(value)
        shown = drawn["word"][len(drawn["word"]) - len(places) :]
        ax.set_yticks(range(len(places)), [words(name, WIDEST) for name in shown])
        ax.set_xscale("log")
        set_log_ticks(ax, *ax.get_xlim())
        ax.invert_yaxis()
        ax.set_xlabel("share of the words" if told.family.is_bag_of_words else "how often it is there", fontsize=9)
        ax.tick_params(labelsize=9)
        set_title(ax, words(classes[k], WIDEST))
        hide_top_right_spines(ax)
    notes = [f"blue: in the class; gray: in the other that has it most; {mass:.0%} credible"]
    notes += [f"showing {len(kept)} of {len(classes)} {model._group_word}, the most frequent"] * (
        len(kept) < len(classes)
    )
    note_above(axes[0].figure, *notes)
    return Plot(axes, drawn)


def _telling(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """The places of words, first what is said most for the class: how often it occurs, times the log of the ratio."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = here * np.log(here / there)
    return np.argsort(-np.nan_to_num(weight, nan=-np.inf, posinf=np.inf), kind="stable")


def _words_of(model: Any, column: Any) -> LabeledFactor:
    """The factor of the words."""
    model._require_counts("a picture of words, with intervals")
    found = [
        one
        for one in model._labeled_factors()
        if one.is_block and (one.family.is_bag_of_words or one.family.sums_cells)
    ]
    named = [one for one in found if column is None or one.columns[0] == column]
    if len(named) != 1:
        known = ", ".join(repr(one.columns[0]) for one in found) or "none"
        raise DataError(
            f"column is {column!r}, and the model's blocks of words are: {known}; expected the name of one of them.\n"
            "    Columns of text are words, columns={'subject': tb.Text()}, and so are sparse matrices."
        )
    return named[0]
