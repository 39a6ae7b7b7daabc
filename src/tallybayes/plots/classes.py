"""Classes as images: what is expected of every column, where columns are the pixels of a picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.plots.picture import Picture
from tallybayes.plots.style import NOTE, panels, words

_MOST = 40  # classes in a picture
_ACROSS = 10


def plot_classes(model: Any, shape: tuple[int, int]) -> Picture:
    """The expected value of every column in each class, as an image of this shape, row by row.

    Parameters
    ----------
    model : a fitted classifier or mixture
    shape : (rows, columns)
    """
    names, values = _expected(model)
    if len(tuple(shape)) != 2 or math.prod(shape) != len(names):
        raise DataError.wrong_shape("shape", tuple(shape), f"two numbers whose product is {len(names)}, the columns")
    classes, prior = model.classes_.tolist(), np.exp(model.class_log_prior_)
    kept = np.sort(np.argsort(-prior, kind="stable")[:_MOST])
    across = _ACROSS if len(kept) > 6 else 6
    axes = panels(len(kept), across, 1.25, 1.5)
    low, high = _ends(values)
    for ax, k in zip(axes, kept, strict=True):
        image = ax.imshow(values[k].reshape(shape), cmap="Greys", vmin=low, vmax=high)
        ax.set(xticks=[], yticks=[])
        ax.set_title(words(classes[k], 12), fontsize=9)
        for spine in ax.spines.values():
            spine.set_edgecolor("#DDDDDD")
    figure = axes[0].figure
    bar = figure.colorbar(image, ax=axes.tolist(), shrink=0.9, aspect=16, label="expected value")
    bar.outline.set_visible(False)
    if len(kept) < len(classes):
        note = f"showing {len(kept)} of {len(classes)} {model._groups}, the most frequent"
        figure.suptitle(note, fontsize=10, color=NOTE)
    part = {"class": [label for label in classes for _ in names], "column": names * len(classes)}
    return Picture(axes, {**part, "expected": values.ravel()})


def _ends(values: np.ndarray) -> tuple[float, float]:
    """What is white and what is black: shares from 0 to 1, all else from the least to the most."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return min(low, 0.0), high


def _expected(model: Any) -> tuple[list[Any], np.ndarray]:
    """The columns in the order of the data, and what is expected of each in every class."""
    found: dict[Any, np.ndarray] = {}
    for scored in model._scored:
        if scored.family.reads == "codes":
            name = scored.factor.columns[0]
            raise DataError(f"column {name!r} holds labels, so classes have no image; expected numbers alone.")
        values = np.asarray(scored.family.expected(scored.parameters), dtype=float)
        values = np.broadcast_to(values, (len(model.classes_), values.shape[-1]))
        found |= {scored.factor.column(place, values.shape[1]): values[:, place] for place in range(values.shape[1])}
    order = model._shape.feature_names
    names = list(found)
    if order is not None and set(order.tolist()) == set(names):
        names = order.tolist()
    elif all(isinstance(name, int) for name in names):
        names = sorted(names)
    return names, np.stack([found[name] for name in names], axis=1)
