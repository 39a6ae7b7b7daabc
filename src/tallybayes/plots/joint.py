"""Two columns together, beside the product of each alone: what independence given the class takes for granted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from tallybayes.plots.asked import ByGroups
from tallybayes.plots.decision import choose, labels_of
from tallybayes.plots.picture import Picture
from tallybayes.plots.plane import Plane, draw_points, draw_regions, frame_plane, plane_of
from tallybayes.plots.style import Look, looks, new_axes, set_title

_LEVELS = (-2.0, -0.5)  # of a Gaussian, two deviations and one


def plot_joint(model: Any, X: Any = None, y: Any = None, columns: Any = None, ax: Any = None) -> Picture:
    """p(x₁, x₂ | class) as the model has it, beside p(x₁ | class) p(x₂ | class), with what is lost, in bits.

    Parameters
    ----------
    model : a fitted classifier or mixture
    X, y : as for `fit`, optional
        Rows to draw, and their classes.
    columns : two names, optional
    ax : two matplotlib Axes, optional
    """
    asked = ByGroups(model)
    two, note = choose(asked, columns, least=2)
    points = None if X is None else asked.points(X, two)
    here = plane_of(asked, two, note, points)
    prior = model.class_log_prior_
    safe = np.where(np.isfinite(prior), prior, 0.0)
    together = asked.log_joint(here, 0, 1) - safe
    apart = (asked.log_joint(here, 0) - safe) + (asked.log_joint(here, 1) - safe)
    options = {"figsize": (11.4, 4.8), "layout": "constrained", "sharey": True}
    axes = np.ravel(new_axes(ax, ncols=2, **options))
    look = looks(model.classes_.tolist(), np.exp(prior), model._groups)
    labels = None if y is None else labels_of(model, X, y)
    titles = "The joint of both columns", "The product of each alone"
    for panel, log_density, title in zip(axes, (together, apart), titles, strict=False):
        _draw_density(panel, here, log_density, look)
        draw_regions(panel, here, log_density + prior, look, filled=False)
        draw_points(panel, here, look, points, labels, model)
        frame_plane(panel, here)
        set_title(panel, title, here.note if panel is axes[0] else "")
    if axes[0].get_legend() is not None:
        axes[0].get_legend().remove()
    axes[1].set_ylabel("")
    lost = _lost(here, together, apart, prior)
    set_title(axes[1], titles[1], f"it loses {lost:.3g} bits a row")
    n = len(here.across.ravel())
    classes = model.classes_.tolist()
    place = {name: cells * len(classes) for name, cells in here.places().items()}
    both = {"log_joint": together.T.ravel(), "log_product": apart.T.ravel()}
    return Picture(axes, {"class": [label for label in classes for _ in range(n)], **place, **both})


def _draw_density(panel: Any, here: Plane, log_density: np.ndarray, look: list[Look]) -> None:
    """For every class with a colour, where its density is a share of its peak."""
    for k, one in enumerate(look):
        height = log_density[:, k].reshape(here.across.shape)
        top = height[np.isfinite(height)].max(initial=-np.inf)
        if one.own and np.isfinite(top):
            floor = np.where(np.isfinite(height), height - top, -1e3)
            line = {"colors": one.colour, "linewidths": 1.6, "linestyles": "-"}
            panel.contour(here.across, here.up, floor, levels=list(_LEVELS), **line)


def _lost(here: Plane, together: np.ndarray, apart: np.ndarray, log_prior: np.ndarray) -> float:
    """I(x₁; x₂ | class) in bits, over the places of the plane."""
    area = _cells(here)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):  # places too close together for their digits have no area
        log_mass = together + np.log(area)
        total = logsumexp(log_mass, axis=0)
        share = np.exp(log_mass - np.where(np.isfinite(total), total, 0.0))
        gap = np.where(share > 0, together - apart, 0.0)
    lost = float(np.nansum(np.exp(log_prior) * (share * gap).sum(axis=0)) / np.log(2))
    return max(0.0, round(lost, 9))


def _cells(here: Plane) -> np.ndarray:
    """The area that every place of the plane stands for."""
    across, up = (np.gradient(side) for side in (here.across[0], here.up[:, 0]))
    return np.asarray(np.outer(up, across).ravel())
