"""Images of class means, for columns that are pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.plotting.classifier.groups import groups_of
from tallybayes.plotting.classifier.marginals import PlotColumn, columns_in
from tallybayes.plotting.plot import Plot, table_of
from tallybayes.plotting.style import amount, note_above, panels, words

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier
    from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean

_MAX_CLASSES = 40  # maximum number of classes


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
    names, values = _expected_values(model, rows_of or model)
    if len(tuple(shape)) != 2 or math.prod(shape) != len(names):
        raise DataError.wrong_shape("shape", tuple(shape), f"two numbers whose product is {len(names)}, the columns")
    groups = groups_of(model)
    kept = groups.most_frequent(_MAX_CLASSES)
    axes = panels(len(kept), 10 if len(kept) > 6 else 6, 1.25, 1.5)
    low, high = np.nanmin(values), np.nanmax(values)
    # White and black: 0 and 1 for proportions, else the range of the values.
    limits = (0.0, 1.0) if low >= 0 and high <= 1 else (min(low, 0.0), high)
    for ax, k in zip(axes, kept, strict=True):
        image = ax.imshow(values[k].reshape(shape), cmap="Grays", clim=limits)
        ax.set(xticks=[], yticks=[])
        ax.set_title(words(groups.labels[k], 12), fontsize=9)
        ax.spines[:].set(edgecolor="#DDDDDD", visible=True)
    figure = axes[0].figure
    figure.set_figwidth(figure.get_figwidth() + 0.9)  # room for the color bar
    bar = figure.colorbar(image, ax=axes.tolist(), shrink=0.9, aspect=16, label="expected")
    bar.outline.set_visible(False)
    blank = int(np.isnan(values).all(axis=0).sum())
    blank_note = f"blank: {amount(blank, 'columns')} that are not in the model" if blank else ""
    note_above(figure, groups.note(len(kept)), blank_note)
    return Plot(axes, table_of(("class", "column", "expected"), groups.labels, names, values))


def _expected_values(
    model: ClassConditionalModel | NearestClassMean,
    rows_of: ClassConditionalModel | NearestClassMean | AutoClassifier,
) -> tuple[list[Any], np.ndarray]:
    """Return the columns in the order of the data, and their expected values by class; NaN for dropped columns."""
    expected: dict[Any, np.ndarray] = {}
    for column in columns_in(model):
        expected |= _expected_of_column(column)
    undefined = np.full(len(model.classes_), np.nan)
    names = list(getattr(rows_of, "feature_names_in_", range(getattr(rows_of, "n_features_in_", 0))))
    names = names if set(names) >= set(expected) else list(expected)
    values = [np.broadcast_to(expected.get(name, undefined), undefined.shape) for name in names]
    return names, np.stack(values, axis=1)


def _expected_of_column(column: PlotColumn) -> dict[Any, np.ndarray]:
    """Return the expected values of a column by class, or those of all words of a vocabulary."""
    family = column.family
    if column.levels and not family.is_bag_of_words:
        values_of_levels = np.asarray(column.levels if column.middles is None else column.middles)
        if values_of_levels.dtype.kind not in "biuf":
            raise DataError(f"column {column.name!r} is categorical; expected numeric columns only, to plot images.")
        return {column.name: values_of_levels @ column.density()}
    values = np.asarray(family.mean(column.scored.parameters), dtype=float).T
    if family.is_bag_of_words:
        return dict(zip(column.levels, values, strict=True))
    return {column.name: values[column.position]}
