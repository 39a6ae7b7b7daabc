"""Images of class means, for columns that are pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.plotting.classifier.groups import groups_of
from tallybayes.plotting.classifier.marginals import columns_in, marginal
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import amount, note_above, panels, words

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier
    from tallybayes.models.inputs.input_format import InputFormat
    from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean

_MAX_CLASSES = 40  # maximum number of classes
_ACROSS = 10


def plot_class_means(
    model: ClassConditionalModel | NearestClassMean, shape: tuple[int, int], rows_of: AutoClassifier | None = None
) -> Plot:
    """Plot the expected value of the columns in each class as an image of the given shape, row by row.

    Parameters
    ----------
    model : a fitted classifier or mixture
    shape : (rows, columns)
    rows_of : a fitted model, optional
        Model whose rows have all columns, if `model` reads a part of them.
    """
    names, values = _expected_values(model, (rows_of or model).input_format_)
    if len(tuple(shape)) != 2 or math.prod(shape) != len(names):
        raise DataError.wrong_shape("shape", tuple(shape), f"two numbers whose product is {len(names)}, the columns")
    groups = groups_of(model)
    classes = groups.labels
    kept = groups.most_frequent(_MAX_CLASSES)
    across = _ACROSS if len(kept) > 6 else 6
    axes = panels(len(kept), across, 1.25, 1.5)
    low, high = _color_limits(values)
    for ax, k in zip(axes, kept, strict=True):
        image = ax.imshow(values[k].reshape(shape), cmap="Grays", vmin=low, vmax=high)
        ax.set(xticks=[], yticks=[])
        ax.set_title(words(classes[k], 12), fontsize=9)
        for spine in ax.spines.values():
            spine.set_edgecolor("#DDDDDD")
    figure = axes[0].figure
    figure.set_figwidth(figure.get_figwidth() + 0.9)  # room for the color bar
    bar = figure.colorbar(image, ax=axes.tolist(), shrink=0.9, aspect=16)
    bar.set_label("expected", fontsize=8)
    bar.outline.set_visible(False)
    blank = int(np.isnan(values).all(axis=0).sum())
    blank_note = f"blank: {amount(blank, 'columns')} that are not in the model" if blank else ""
    note_above(figure, groups.note(len(kept)), blank_note)
    table = {"class": [label for label in classes for _ in names], "column": names * len(classes)}
    return Plot(axes, {**table, "expected": values.ravel()})


def _color_limits(values: np.ndarray) -> tuple[float, float]:
    """Return the values of white and black: 0 and 1 for proportions, else the range of the values."""
    low = float(np.nanmin(values))
    high = float(np.nanmax(values))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return min(low, 0.0), high


def _expected_values(
    model: ClassConditionalModel | NearestClassMean, shape: InputFormat
) -> tuple[list[Any], np.ndarray]:
    """Return the columns in the order of the data, and their expected values by class; NaN for dropped columns."""
    expected: dict[Any, np.ndarray] = {}
    for column in columns_in(model):
        scored = column.scored
        if column.levels and not scored.family.is_bag_of_words:
            values_of_levels = np.asarray(column.levels if column.middles is None else column.middles)
            if values_of_levels.dtype.kind not in "biuf":
                raise DataError(
                    f"column {column.name!r} is categorical; expected numeric columns only, to plot images."
                )
            expected[column.name] = values_of_levels @ marginal(column).density
            continue
        values = np.asarray(scored.family.mean(scored.parameters), dtype=float)
        values = np.broadcast_to(values, (len(model.classes_), values.shape[-1]))
        positions = enumerate(column.levels) if scored.family.is_bag_of_words else [(column.position, column.name)]
        expected |= {name: values[:, position] for position, name in positions}
    data_columns = range(shape.n_features or 0) if shape.feature_names is None else shape.feature_names.tolist()
    names = list(data_columns) if set(data_columns) >= set(expected) else list(expected)
    undefined = np.full(len(model.classes_), np.nan)
    return names, np.stack([expected.get(name, undefined) for name in names], axis=1)
