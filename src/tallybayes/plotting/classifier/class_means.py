"""Classes as images: what is expected of every column, where columns are the pixels of a picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.plotting.classifier.marginals import columns_in, marginal
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import amount, note_above, panels, words

_MOST = 40  # classes in a picture
_ACROSS = 10


def plot_class_means(model: Any, shape: tuple[int, int], rows_of: Any = None) -> Plot:
    """The expected value of every column in each class, as an image of this shape, row by row.

    Parameters
    ----------
    model : a fitted classifier or mixture
    shape : (rows, columns)
    rows_of : a fitted model, optional
        The one whose rows have all columns, if this one reads some of them only.
    """
    names, values = _expected(model, (rows_of or model)._shape)
    if len(tuple(shape)) != 2 or math.prod(shape) != len(names):
        raise DataError.wrong_shape("shape", tuple(shape), f"two numbers whose product is {len(names)}, the columns")
    classes, prior = model.classes_.tolist(), np.exp(model.class_log_prior_)
    kept = np.sort(np.argsort(-prior, kind="stable")[:_MOST])
    across = _ACROSS if len(kept) > 6 else 6
    axes = panels(len(kept), across, 1.25, 1.5)
    low, high = _ends(values)
    for ax, k in zip(axes, kept, strict=True):
        image = ax.imshow(values[k].reshape(shape), cmap="Grays", vmin=low, vmax=high)
        ax.set(xticks=[], yticks=[])
        ax.set_title(words(classes[k], 12), fontsize=9)
        for spine in ax.spines.values():
            spine.set_edgecolor("#DDDDDD")
    figure = axes[0].figure
    figure.set_figwidth(figure.get_figwidth() + 0.9)  # for the bar, so that labels stay over their images
    bar = figure.colorbar(image, ax=axes.tolist(), shrink=0.9, aspect=16)
    bar.set_label("expected", fontsize=8)
    bar.outline.set_visible(False)
    blank = int(np.isnan(values).all(axis=0).sum())
    notes = [f"showing {len(kept)} of {len(classes)} {model._group_word}, the most frequent"] * (
        len(kept) < len(classes)
    )
    notes += [f"blank: {amount(blank, 'columns')} of which the model says nothing"] * (blank > 0)
    note_above(figure, *notes)
    part = {"class": [label for label in classes for _ in names], "column": names * len(classes)}
    return Plot(axes, {**part, "expected": values.ravel()})


def _ends(values: np.ndarray) -> tuple[float, float]:
    """What is white and what is black: shares from 0 to 1, all else from the least to the most."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return min(low, 0.0), high


def _expected(model: Any, shape: Any) -> tuple[list[Any], np.ndarray]:
    """The columns in the order of the data, and what is expected of each in every class; NaN of those left out."""
    found: dict[Any, np.ndarray] = {}
    for column in columns_in(model):
        scored = column.scored
        if column.levels and not scored.family.is_bag_of_words:
            at = np.asarray(column.levels if column.middles is None else column.middles)
            if at.dtype.kind not in "biuf":
                said = f"column {column.name!r} holds labels, so classes have no image; expected numbers alone."
                raise DataError(said)
            found[column.name] = at @ marginal(column).density
            continue
        values = np.asarray(scored.family.mean(scored.parameters), dtype=float)
        values = np.broadcast_to(values, (len(model.classes_), values.shape[-1]))
        places = enumerate(column.levels) if scored.family.is_bag_of_words else [(column.place, column.name)]
        found |= {name: values[:, place] for place, name in places}
    every = range(shape.n_features or 0) if shape.feature_names is None else shape.feature_names.tolist()
    names = list(every) if set(every) >= set(found) else list(found)
    nothing = np.full(len(model.classes_), np.nan)
    return names, np.stack([found.get(name, nothing) for name in names], axis=1)
