"""Plots of a classifier in the plane of two columns or along one, and of rows on discriminant directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.errors import DataError
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.plotting.classifier.groups import groups_of, labels_of
from tallybayes.plotting.classifier.marginals import select
from tallybayes.plotting.classifier.plane import Plane, draw_points, draw_probabilities, draw_regions, frame_plane
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import DOTS, gray_first, legend_beside, new_axes, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.discriminant.gaussian_discriminant import GaussianDiscriminant
    from tallybayes.plotting.classifier.plane import PlaneModel
    from tallybayes.typing import Labels, Names, Rows


def choose_columns(plane_model: PlaneModel, columns: Names | None, *, least: int = 1) -> tuple[list[int], str]:
    """Return the two columns to plot (or one), and a note about their choice and the other columns."""
    names = plane_model.names
    n = len(names)
    if columns is None:
        if n < least:
            raise DataError.wrong_shape("the model's columns", (n,), f"at least {least}, to plot")
        information = plane_model.column_information() if n > 2 else np.zeros(n)
        chosen = np.sort(np.argsort(-information, kind="stable")[:2]).tolist()
    else:
        chosen = select({key: k for labels in (plane_model.keys, names) for k, key in enumerate(labels)}, columns)
        if not least <= len(chosen) <= 2:
            also = ", or 1 name to plot along it" if least == 1 else ""
            raise DataError.wrong_shape("columns", (len(chosen),), f"2 names{also}")
    others = n - len(chosen)
    if not others:
        return chosen, ""
    choice = "" if columns is not None else f"the two of {n} columns with the largest information; "
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
    plane = Plane.of_columns(plane_model, chosen, note, points)
    scores = plane_model.scores(plane)
    groups = plane_model.groups
    labels = None if X is None or y is None else labels_of(plane_model.model, X, y)
    is_plane = len(chosen) == 2
    ax = new_axes(ax, 6.6, 5 if is_plane else 3.4)
    if is_plane:
        scores = plane.expand(scores)
        draw_regions(ax, plane, scores, groups.styles())
        plane_model.draw_classes(ax, chosen, groups.styles())
        draw_points(ax, plane, groups, points, labels)
        frame_plane(ax, plane)
        table = {"predicted": [groups.labels[code] for code in scores.argmax(axis=-1).ravel()]}
    else:
        log_joint = scores.reshape(-1, scores.shape[-1])
        proba = np.exp(apply_bayes_rule(log_joint, groups.log_prior).log_proba)
        draw_probabilities(ax, plane, proba, groups, points, labels)
        table = {f"p({label})": of_class for label, of_class in zip(groups.labels, plane.expand(proba).T, strict=True)}
    set_title(ax, plane_model.title, plane.note)
    return Plot(ax, {**plane.grid(), **table})


def plot_projection(model: GaussianDiscriminant, X: Rows, y: Labels, ax: Axes | None = None) -> Plot:
    """Plot rows on the first discriminant directions, colored by class."""
    projected = model.transform(X)
    if projected.shape[1] == 0:
        raise DataError("the model has no discriminant direction; expected classes with different means.")
    labels = labels_of(model, X, y)
    groups = groups_of(model)
    ax = new_axes(ax, 6.6, 5)
    table = {"class": labels.tolist(), "first": projected[:, 0]}
    ax.set_xlabel("first discriminant")
    if projected.shape[1] == 1:
        ax.set_yticks([])
        up = np.random.default_rng(0).uniform(-0.5, 0.5, len(projected))
    else:
        ax.set_ylabel("second discriminant")
        up = table["second"] = projected[:, 1]
    styles = groups.styles()
    for k in gray_first(styles):
        in_class = labels == groups.labels[k]
        ax.plot(projected[in_class, 0], up[in_class], ".", color=styles[k].color, markersize=4)
    legend_beside(ax, groups.target, styles, **DOTS)
    set_title(ax, "Rows on the discriminant directions")
    return Plot(ax, table)
