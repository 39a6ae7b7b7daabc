"""The joint distribution of two columns in every class, beside the product of their marginals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtri

from tallybayes.errors import DataError
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.plotting.classifier.decision_boundary import choose, labels_of
from tallybayes.plotting.classifier.plane import Plane, Side, draw_points, draw_regions, frame_plane, plane_of
from tallybayes.plotting.classifier.plane_models import ClassConditionalPlane
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import GroupStyle, group_styles, name_of, new_axes, set_title

_LEVELS = (-2.0, -0.5)  # of a Gaussian, two deviations and one


def plot_joint(model: Any, X: Any = None, y: Any = None, columns: Any = None, ax: Any = None) -> Plot:
    """Draw p(a, b | class) beside p(a | class) p(b | class), with the bits per row that the product loses.

    Parameters
    ----------
    model : a fitted classifier or mixture
    X, y : as for `fit`, optional
        Rows to draw, and their classes; if the model is itself the product, the joint is estimated from them.
    columns : two names, optional
    ax : two matplotlib Axes, optional
    """
    asked = ClassConditionalPlane(model)
    two, note = choose(asked, columns, least=2)
    points = None if X is None else asked.points(X, two)
    here = plane_of(asked, two, note, points)
    prior = model.class_log_prior_
    safe = np.where(np.isfinite(prior), prior, 0.0)
    first, second = asked.log_joint(here, 0) - safe, asked.log_joint(here, 1) - safe
    together, apart = asked.log_joint(here, 0, 1) - safe, first + second
    labels = None if y is None else labels_of(model, X, y)
    source = "of the model"
    with np.errstate(invalid="ignore"):
        own = np.isfinite(together) & (np.abs(together - apart) > 1e-9 * (1 + np.abs(apart)))
    if own.any():  # the model has a joint distribution of its own
        lost = _lost(here, together, prior)
    else:
        weight = _class_weights(model, asked, X, labels, two)
        assert points is not None
        known = ~np.isnan(points).any(axis=1)
        together, lost = _estimated(here, asked, points[known], weight[known], (first, second), prior)
        source = f"estimated from {int(known.sum()):,} rows"
    options = {"figsize": (11.4, 4.8), "layout": "constrained", "sharey": True}
    axes = np.ravel(new_axes(ax, ncols=2, **options))
    look = group_styles(model.classes_.tolist(), np.exp(prior), model._group_word)
    a, b = (name_of(side.name, 16) for side in here.sides)
    group = "component" if model._group_word == "components" else "class"
    titles = f"Joint p({a}, {b} | {group})", f"Product p({a} | {group}) p({b} | {group})"
    notes = f"{source}; {here.note}" if here.note else source, f"loses {lost:.3g} bits per row"
    table = all(side.levels for side in here.sides)
    for panel, log_density, title, said in zip(axes, (together, apart), titles, notes, strict=False):
        if table:
            _draw_table(panel, here, log_density, look)
        else:
            _draw_density(panel, here, log_density, look)
            draw_regions(panel, here, log_density + prior, look, filled=False)
        draw_points(panel, here, look, None if table else points, labels, model)
        frame_plane(panel, here)
        set_title(panel, title, said)
    if axes[0].get_legend() is not None:
        axes[0].get_legend().remove()
    axes[1].set_ylabel("")
    n = len(here.across.ravel())
    classes = model.classes_.tolist()
    place = {name: cells * len(classes) for name, cells in here.places().items()}
    both = {"log_joint": together.T.ravel(), "log_product": apart.T.ravel()}
    return Plot(axes, {"class": [label for label in classes for _ in range(n)], **place, **both})


# ---- The joint of the rows -------------------------------------------------------------------------------------------


def _class_weights(model: Any, asked: ClassConditionalPlane, X: Any, labels: Any, two: list[int]) -> np.ndarray:
    """The weight of every row in every class, (rows, classes): its label, or responsibilities in a mixture."""
    mixture = model._group_word == "components"
    if X is None or (labels is None and not mixture):
        names = ", ".join(repr(asked.keys[k]) for k in two)
        rows = "X" if mixture else "X, y"
        raise DataError(
            f"plot_joint needs rows with their classes: {type(model).__name__} has no joint distribution of {names}, "
            f"only that of each column.\n    Pass the training rows: model.plot_joint({rows}, columns=({names}))."
        )
    if mixture:
        return np.asarray(model.predict_proba(X))
    return np.asarray(labels[:, None] == model.classes_, dtype=float)


def _estimated(
    here: Plane,
    asked: ClassConditionalPlane,
    points: np.ndarray,
    weight: np.ndarray,
    marginals: tuple[np.ndarray, np.ndarray],
    log_prior: np.ndarray,
) -> tuple[np.ndarray, float]:
    """The joint of two columns in every class by rows that have both, and the bits that the product loses.

    Of labels the table of both, of a number and a label the number's distribution by class and level, and of numbers
    the marginals with a Gaussian copula: a full covariance, if both are Gaussian.
    """
    shape = (*here.across.shape, -1)
    first, second = marginals[0].reshape(shape)[0], marginals[1].reshape(shape)[:, 0]
    levels = [bool(side.levels) for side in here.sides]
    product = first[None] + second[:, None]
    if all(levels):
        found = _table(here, points, weight, product)
    elif any(levels):
        found = _by_level(here, asked, points, weight, (first, second), levels.index(True))
    else:
        copula, rho = _copula(here, points, weight, (first, second))
        found = product + copula
        if not any(side.whole for side in here.sides):
            return found.reshape(-1, len(log_prior)), float(np.exp(log_prior) @ (-0.5 * np.log2(1 - rho**2)))
    found = found.reshape(-1, len(log_prior))
    return found, _lost(here, found, log_prior)


def _copula(
    here: Plane, points: np.ndarray, weight: np.ndarray, marginals: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The log density of the Gaussian copula of every class over the plane, and its correlation."""
    along = (here.across[0], here.up[:, 0])
    rho, grids = np.zeros(weight.shape[1]), []
    for k in range(weight.shape[1]):
        if not np.isfinite([marginal[:, k].max() for marginal in marginals]).all():  # the class is impossible
            grids.append(np.zeros(here.across.shape))
            continue
        normal = [
            _normal_scores(side, at, marginal[:, k])
            for side, at, marginal in zip(here.sides, along, marginals, strict=True)
        ]
        scores = [np.interp(cells, at, grid) for cells, at, grid in zip(points.T, along, normal, strict=True)]
        products = (weight[:, k] * np.array(scores)) @ np.array(scores).T
        spread = np.diagonal(products) + 1.0  # as if one more row had no correlation
        rho[k] = np.clip(products[0, 1] / np.sqrt(spread[0] * spread[1]), -1 + 1e-9, 1 - 1e-9)
        u, v = normal[0][None, :], normal[1][:, None]
        rest = 1 - rho[k] ** 2
        grids.append(-0.5 * np.log(rest) - (rho[k] ** 2 * (u**2 + v**2) - 2 * rho[k] * u * v) / (2 * rest))
    return np.stack(grids, axis=-1), rho


def _normal_scores(side: Side, along: np.ndarray, log_density: np.ndarray) -> np.ndarray:
    """The standard normal quantile at the cumulative probability of every place along a side."""
    at, where = np.unique(side.at(along), return_inverse=True)
    height = np.zeros(len(at))
    height[where] = np.maximum(log_density - log_density.max(), -745.0)
    mass = np.exp(height) * (1.0 if side.whole else np.gradient(at))
    beyond = np.zeros(2)  # the tails, as they go on beyond the first and the last place
    if not side.whole:
        slope = np.diff(height)[[0, -1]] / np.diff(at)[[0, -1]] * [1, -1]
        beyond = np.where(slope > 0, np.exp(height[[0, -1]]) / np.maximum(slope, 1e-300), 0.0) - mass[[0, -1]] / 2
    below = beyond[0] + np.cumsum(mass) - mass / 2
    above = beyond[1] + np.cumsum(mass[::-1])[::-1] - mass / 2
    small = np.clip(np.minimum(below, above) / (below + above), 1e-300, 0.5)
    return (np.where(below < above, 1, -1) * ndtri(small))[where]


def _table(here: Plane, points: np.ndarray, weight: np.ndarray, product: np.ndarray) -> np.ndarray:
    """The table of two columns of labels, (up, across, classes): counts, and one row more spread as the product."""
    codes = [
        side.at(along).astype(int) for side, along in zip(here.sides, (here.across[0], here.up[:, 0]), strict=True)
    ]
    sizes = [len(side.levels) for side in here.sides]
    counts = np.zeros((sizes[1], sizes[0], weight.shape[1]))
    np.add.at(counts, (points[:, 1].astype(int), points[:, 0].astype(int)), weight)
    with np.errstate(divide="ignore"):
        return np.log((counts[np.ix_(codes[1], codes[0])] + np.exp(product)) / (weight.sum(axis=0) + 1.0))


def _by_level(
    here: Plane,
    asked: ClassConditionalPlane,
    points: np.ndarray,
    weight: np.ndarray,
    marginals: tuple[np.ndarray, np.ndarray],
    label: int,
) -> np.ndarray:
    """p(level | class) p(number | level, class) over the plane, the number in its family: (up, across, classes)."""
    column = asked.columns[here.columns[1 - label]]
    along = (here.across[0], here.up[:, 0])
    codes = here.sides[label].at(along[label]).astype(int)
    numbers = here.sides[1 - label].at(along[1 - label])
    rows, classes = np.nonzero(weight)
    n_levels = len(here.sides[label].levels)
    group = classes * n_levels + points[rows, label].astype(int)
    numeric = np.repeat(marginals[1 - label][:, None, :], n_levels, axis=1)  # where no row is: as in the whole class
    if len(rows):
        inner = NaiveBayes({"x": column.scored.family}, estimate=asked.model.estimate)
        inner.fit({"x": points[rows, 1 - label]}, group, weight[rows, classes])
        found = inner.predict_joint_log_proba({"x": numbers}) - inner.class_log_prior_
        numeric[:, inner.classes_ % n_levels, inner.classes_ // n_levels] = found
    joint = numeric[:, codes] + marginals[label][None]
    return joint if label == 0 else joint.swapaxes(0, 1)


# ---- What the product loses ------------------------------------------------------------------------------------------


def _lost(here: Plane, together: np.ndarray, log_prior: np.ndarray) -> float:
    """The mutual information of the two columns in bits, averaged over the classes."""
    across, up = _widths(here)
    with np.errstate(invalid="ignore", divide="ignore"):  # places too close together for their digits have no area
        log_mass = together.reshape(*here.across.shape, -1) + np.log(np.outer(up, across))[..., None]
        total = logsumexp(log_mass, axis=(0, 1))
        log_mass = log_mass - np.where(np.isfinite(total), total, 0.0)
        alone = logsumexp(log_mass, axis=0, keepdims=True) + logsumexp(log_mass, axis=1, keepdims=True)
        information = np.exp(log_mass) * np.where(np.isfinite(log_mass), log_mass - alone, 0.0)
    lost = float(np.nansum(np.exp(log_prior) * information.sum(axis=(0, 1))) / np.log(2))
    return max(0.0, round(lost, 9))


def _widths(here: Plane) -> list[np.ndarray]:
    """How much of a side every place of it stands for: of a level or whole number, an equal part."""
    found = []
    for side, along in zip(here.sides, (here.across[0], here.up[:, 0]), strict=True):
        if side.levels or side.whole:
            _, where, counts = np.unique(side.at(along), return_inverse=True, return_counts=True)
            found.append(1.0 / counts[where])
        else:
            found.append(np.gradient(along))
    return found


# ---- Drawing ---------------------------------------------------------------------------------------------------------


def _draw_density(panel: Any, here: Plane, log_density: np.ndarray, look: list[GroupStyle]) -> None:
    """For every class with a color, where its density is a share of its peak."""
    for k, one in enumerate(look):
        height = log_density[:, k].reshape(here.across.shape)
        top = height[np.isfinite(height)].max(initial=-np.inf)
        if one.own and np.isfinite(top):
            floor = np.where(np.isfinite(height), height - top, -1e3)
            line = {"colors": one.color, "linewidths": 1.6, "linestyles": "-", "zorder": 4}  # over the rows
            panel.contour(here.across, here.up, floor, levels=list(_LEVELS), **line)


def _draw_table(panel: Any, here: Plane, log_density: np.ndarray, look: list[GroupStyle]) -> None:
    """A disc for every class in every cell of a table, its area the probability of the cell in the class."""
    sizes = [len(side.levels) for side in here.sides]
    own = [k for k, one in enumerate(look) if one.own]
    inches = panel.get_window_extent().transformed(panel.figure.dpi_scale_trans.inverted())
    widest = 72 * min(0.85 * inches.width / (sizes[0] * len(own)), 0.85 * inches.height / sizes[1])
    rows, columns = (
        np.unique(side.at(along), return_index=True)[1]
        for side, along in zip(here.sides[::-1], (here.up[:, 0], here.across[0]), strict=True)
    )
    density = log_density.reshape(*here.across.shape, -1)[np.ix_(rows, columns)]
    across, up = np.meshgrid(np.arange(sizes[0]), np.arange(sizes[1]))
    for place, k in enumerate(own):
        shift = (place - (len(own) - 1) / 2) / (len(own) + 0.5)
        area = widest**2 * np.exp(density[..., k].ravel())
        panel.scatter(across.ravel() + shift, up.ravel(), s=area, color=look[k].color, linewidths=0)
