"""Plots of a classifier in the plane of two columns or along one, and of rows on discriminant directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.errors import DataError
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.plotting.classifier.groups import groups_of, labels_of
from tallybayes.plotting.classifier.marginals import select
from tallybayes.plotting.classifier.plane import draw_points, draw_probabilities, draw_regions, frame_plane, plane_of
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import gray_first, hide_top_right_spines, legend_beside, new_axes, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.discriminant.gaussian_discriminant import GaussianDiscriminant
    from tallybayes.plotting.classifier.plane import PlaneModel
    from tallybayes.typing import Labels, Names, Rows


def choose_columns(plane_model: PlaneModel, columns: Names | None, *, least: int = 1) -> tuple[list[int], str]:
    """Return the two columns to plot (or one), and a note about their choice and the other columns."""
    names = plane_model.names
    keys = plane_model.keys
    if columns is None:
        if len(names) < least:
            raise DataError.wrong_shape("the model's columns", (len(names),), f"at least {least}, to plot")
        chosen = (
            np.sort(np.argsort(-plane_model.column_information(), kind="stable")[:2]).tolist()
            if len(names) > 2
            else [*range(len(names))]
        )
    else:
        chosen = select({key: k for labels in (keys, names) for k, key in enumerate(labels)}, columns)
        if not least <= len(chosen) <= 2:
            also = ", or 1 name to plot along it" if least == 1 else ""
            raise DataError.wrong_shape("columns", (len(chosen),), f"2 names{also}")
    others = len(names) - len(chosen)
    if not others:
        return chosen, ""
    choice = "" if columns is not None else f"the two of {len(names)} columns with the largest information; "
    return chosen, f"{choice}the other {'one is' if others == 1 else f'{others} are'} {plane_model.others}"


def plot_decision_boundary(
    plane_model: PlaneModel,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Names | None = None,
    ax: Axes | None = None,
) -> Plot:
    """Plot the decision regions in the plane of two columns, or class probabilities along one column.

    Parameters
    ----------
    plane_model : ClassConditionalPlane, DistancePlane or EnsemblePlane
        Fitted classifier with its scores in a plane.
    X, y : as for `fit`, optional
        Rows to plot, and their classes.
    columns : one or two names, optional
    ax : matplotlib Axes, optional
    """
    chosen, note = choose_columns(plane_model, columns)
    points = None if X is None else plane_model.points(X, chosen)
    plane = plane_of(plane_model, chosen, note, points)
    scores = plane_model.scores(plane)
    ax = new_axes(ax, figsize=(6.6, 5 if len(chosen) == 2 else 3.4))
    groups = plane_model.groups
    labels = None if X is None or y is None else labels_of(plane_model.model, X, y)
    if len(chosen) == 1:
        proba = np.exp(apply_bayes_rule(scores, groups.log_prior).log_proba)
        draw_probabilities(ax, plane, proba, groups, points, labels)
        set_title(ax, plane_model.title, plane.note)
        probabilities = {f"p({label})": proba[:, k] for k, label in enumerate(groups.labels)}
        return Plot(ax, {**plane.grid(), **probabilities})
    draw_regions(ax, plane, scores, groups.styles())
    plane_model.draw_classes(ax, chosen, groups.styles())
    draw_points(ax, plane, groups, points, labels)
    frame_plane(ax, plane)
    set_title(ax, plane_model.title, plane.note)
    return Plot(ax, {**plane.grid(), "predicted": [groups.labels[code] for code in scores.argmax(axis=1)]})


def plot_projection(model: GaussianDiscriminant, X: Rows, y: Labels, ax: Axes | None = None) -> Plot:
    """Plot rows on the first discriminant directions, colored by class."""
    projected = model.transform(X)
    if projected.shape[1] == 0:
        raise DataError("the model has no discriminant direction; expected classes with different means.")
    labels = labels_of(model, X, y)
    groups = groups_of(model)
    ax = new_axes(ax, figsize=(6.6, 5))
    is_one_dimensional = projected.shape[1] == 1
    second = np.random.default_rng(0).uniform(-0.5, 0.5, len(projected)) if is_one_dimensional else projected[:, 1]
    styles = groups.styles()
    for k in gray_first(styles):
        in_class = labels == groups.labels[k]
        ax.plot(
            projected[in_class, 0], second[in_class], ".", color=styles[k].color, markersize=4, label=styles[k].label
        )
    ax.set_xlabel("first discriminant")
    if is_one_dimensional:
        ax.set_yticks([])
    else:
        ax.set_ylabel("second discriminant")
    legend_beside(ax, groups.target, markerscale=2)
    ax.set_title("Rows on the discriminant directions")
    hide_top_right_spines(ax)
    table = {"class": labels.tolist(), "first": projected[:, 0]}
    return Plot(ax, table if is_one_dimensional else {**table, "second": projected[:, 1]})
