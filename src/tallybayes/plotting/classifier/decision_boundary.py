"""A classifier in the plane of two columns, or along one: its decisions, and rows on discriminant directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.data.array_input import as_array
from tallybayes.errors import DataError
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.models.inputs.input_format import read_more_rows
from tallybayes.plotting.classifier.marginals import picked
from tallybayes.plotting.classifier.plane import draw_points, draw_regions, draw_shares, frame_plane, plane_of
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import group_styles, hide_top_right_spines, legend_beside, new_axes, set_title


def choose(asked: Any, columns: Any, *, least: int = 1) -> tuple[list[int], str]:
    """Two columns, or one if that is enough; how they came to be chosen, and what becomes of all others."""
    names, keys = asked.names, asked.keys
    if columns is None:
        if len(names) < least:
            raise DataError.wrong_shape("the model's columns", (len(names),), f"{least} or more, to be drawn")
        two = (
            np.sort(np.argsort(-asked.column_information(), kind="stable")[:2]).tolist()
            if len(names) > 2
            else [*range(len(names))]
        )
    else:
        two = picked({key: k for found in (keys, names) for k, key in enumerate(found)}, columns)
        if not least <= len(two) <= 2:
            also = " or 1 name, to draw along it" if least == 1 else ""
            raise DataError.wrong_shape("columns", (len(two),), f"2 names, to draw in the plane{also}")
    others = len(names) - len(two)
    if not others:
        return two, ""
    said = "" if columns is not None else f"the two of {len(names)} columns that tell most; "
    return two, f"{said}the other {'one is' if others == 1 else f'{others} are'} {asked.others}"


def plot_decision_boundary(asked: Any, X: Any = None, y: Any = None, columns: Any = None, ax: Any = None) -> Plot:
    """The regions of the classes in the plane of two columns, or their probabilities along one; with rows, if given.

    Parameters
    ----------
    asked : ByGroups, ByDistances or ByMembers
        A fitted classifier, as a plane asks it.
    X, y : as for `fit`, optional
        Rows to draw on top, and their classes.
    columns : one or two names, optional
    ax : matplotlib Axes, optional
    """
    model = asked.model
    two, note = choose(asked, columns)
    points = None if X is None else asked.points(X, two)
    here = plane_of(asked, two, note, points)
    scores = asked.scores(here)
    ax = new_axes(ax, figsize=(6.6, 5 if len(two) == 2 else 3.4), layout="constrained")
    classes = model.classes_.tolist()
    look = group_styles(classes, np.exp(asked.log_prior))
    if len(two) == 1:
        proba = np.exp(apply_bayes_rule(scores, asked.log_prior).log_proba)
        draw_shares(ax, here, proba, look, points, None if y is None else labels_of(model, X, y), model)
        set_title(ax, asked.title, here.note)
        told = {f"p({label})": proba[:, k] for k, label in enumerate(classes)}
        return Plot(ax, {**here.places(), **told})
    draw_regions(ax, here, scores, look)
    asked.mark(ax, two, look)
    draw_points(ax, here, look, points, None if y is None else labels_of(model, X, y), model)
    frame_plane(ax, here)
    set_title(ax, asked.title, here.note)
    return Plot(ax, {**here.places(), "predicted": [classes[code] for code in scores.argmax(axis=1)]})


def labels_of(model: Any, X: Any, y: Any) -> np.ndarray | None:
    """The classes of the rows of X; None where there are no rows."""
    return None if X is None else as_array(read_more_rows(model, X, y, None)[0].columns[model._target])


def plot_projection(model: Any, X: Any, y: Any, ax: Any = None) -> Plot:
    """Rows on the first discriminant directions, colored by class."""
    seen = model.transform(X)
    if seen.shape[1] == 0:
        raise DataError("there is no discriminant direction to draw on; expected classes whose means differ.")
    labels = labels_of(model, X, y)
    assert labels is not None
    ax = new_axes(ax, figsize=(6.6, 5), layout="constrained")
    flat = seen.shape[1] == 1
    second = np.random.default_rng(0).uniform(-0.5, 0.5, len(seen)) if flat else seen[:, 1]
    look = group_styles(model.classes_.tolist(), np.exp(model.class_log_prior_))
    for k in sorted(range(len(look)), key=lambda k: look[k].own):
        mine = labels == model.classes_[k]
        ax.plot(seen[mine, 0], second[mine], ".", color=look[k].color, markersize=4, label=look[k].label)
    ax.set_xlabel("first discriminant")
    if flat:
        ax.set_yticks([])
    else:
        ax.set_ylabel("second discriminant")
    legend_beside(ax, model._target, markerscale=2)
    ax.set_title("Rows on the discriminant directions")
    hide_top_right_spines(ax)
    known = {"class": labels.tolist(), "first": seen[:, 0]}
    return Plot(ax, known if flat else {**known, "second": seen[:, 1]})
