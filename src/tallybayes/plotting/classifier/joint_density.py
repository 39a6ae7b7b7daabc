"""Plot of the joint distribution of two columns in each class, and of the product of their marginals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp, ndtri

from tallybayes.errors import DataError
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.plotting.classifier.decision_boundary import choose_columns
from tallybayes.plotting.classifier.groups import labels_of
from tallybayes.plotting.classifier.plane import Plane, Side, draw_points, draw_regions, frame_plane
from tallybayes.plotting.classifier.plane_models import ClassConditionalPlane
from tallybayes.plotting.plot import Plot, PlotAxes
from tallybayes.plotting.style import GroupStyle, all_axes, name_of, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.typing import Labels, Names, Rows

_LEVELS = (-2.0, -0.5)  # two standard deviations and one of a Gaussian


def plot_joint(
    model: ClassConditionalModel,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Names | None = None,
    ax: PlotAxes = None,
) -> Plot:
    """Plot p(a, b | class) and p(a | class) p(b | class), with the bits per row that the product loses.

    Parameters
    ----------
    model : a fitted classifier or mixture
    X, y : as for `fit`, optional
        Rows to plot, and their classes. If the model is the product, the joint distribution is estimated from them.
    columns : two names, optional
    ax : two matplotlib Axes, optional
    """
    plane_model = ClassConditionalPlane(model)
    chosen, note = choose_columns(plane_model, columns, least=2)
    points = None if X is None else plane_model.points(X, chosen)
    plane = Plane.of_columns(plane_model, chosen, note, points)
    groups = plane_model.groups
    prior = groups.log_prior
    safe = np.where(np.isfinite(prior), prior, 0.0)
    first, second, joint = (plane_model.log_joint(plane, *known) - safe for known in ((0,), (1,), (0, 1)))
    product = first + second
    labels = None if X is None or y is None else labels_of(model, X, y)
    source = "of the model"
    with np.errstate(invalid="ignore"):
        is_product = not (np.isfinite(joint) & (np.abs(joint - product) > 1e-9 * (1 + np.abs(product)))).any()
    if is_product:  # the model has no joint distribution
        weight = _class_weights(plane_model, X, labels, chosen)
        assert points is not None
        known = ~np.isnan(points).any(axis=1)
        joint = _estimate_joint(plane, plane_model, points[known], weight[known], [first[0], second[:, 0]])
        source = f"estimated from {int(known.sum()):,} rows"
    loss = _information_loss(plane, joint, prior)
    axes = all_axes(ax, 11.4, 4.8, ncols=2, sharey=True)
    a, b = (name_of(side.name, 16) for side in plane.sides)
    group = "component" if groups.noun == "components" else "class"
    titles = f"Joint p({a}, {b} | {group})", f"Product p({a} | {group}) p({b} | {group})"
    notes = f"{source}; {plane.note}" if plane.note else source, f"loses {loss:.3g} bits per row"
    is_table = all(side.levels for side in plane.sides)
    styles = groups.styles()
    for panel, log_density, title, note_of_panel in zip(axes, (joint, product), titles, notes, strict=False):
        if is_table:
            _draw_table(panel, plane, log_density, styles)
        else:
            expanded = plane.expand(log_density)
            _draw_density(panel, plane, expanded, styles)
            draw_regions(panel, plane, expanded + prior, styles, filled=False)
        draw_points(panel, plane, groups, None if is_table else points, labels)
        frame_plane(panel, plane)
        set_title(panel, title, note_of_panel)
    axes[0].get_legend().remove()
    axes[1].set_ylabel("")
    grid = {name: cells * len(groups.labels) for name, cells in plane.grid().items()}
    densities = {
        name: np.moveaxis(plane.expand(log_density), -1, 0).ravel()
        for name, log_density in (("log_joint", joint), ("log_product", product))
    }
    n_points = np.prod(plane.shape)
    return Plot(axes, {"class": [label for label in groups.labels for _ in range(n_points)], **grid, **densities})


# ---- Joint distribution of the rows ---------------------------------------------------------------------------------


def _class_weights(
    plane_model: ClassConditionalPlane, X: Rows | None, labels: np.ndarray | None, chosen: list[int]
) -> np.ndarray:
    """Return the weight of each row in each class, shape (rows, classes): its label, or mixture responsibilities."""
    model = plane_model.model
    is_mixture = plane_model.groups.noun == "components"
    if X is None or (labels is None and not is_mixture):
        names = ", ".join(repr(plane_model.keys[k]) for k in chosen)
        rows = "X" if is_mixture else "X, y"
        raise DataError(
            f"X and y are missing: {type(model).__name__} has no joint distribution of {names}, only of each column.\n"
            f"    Pass the training rows: model.plot_joint({rows}, columns=({names}))."
        )
    if is_mixture:
        return np.asarray(model.predict_proba(X))
    assert labels is not None
    return np.asarray(labels[:, None] == model.classes_, dtype=float)


def _estimate_joint(
    plane: Plane,
    plane_model: ClassConditionalPlane,
    points: np.ndarray,
    weight: np.ndarray,
    marginals: list[np.ndarray],
) -> np.ndarray:
    """Estimate the joint distribution of two columns in each class.

    Two categorical columns: the contingency table. One continuous column: its distribution by class and level. Two
    continuous columns: the marginals with a Gaussian copula, which is a full covariance if both are Gaussian.
    """
    levels = [bool(side.levels) for side in plane.sides]
    product = marginals[0][None] + marginals[1][:, None]
    if all(levels):
        counts = np.zeros(product.shape)
        np.add.at(counts, tuple(points.T[::-1].astype(int)), weight)
        with np.errstate(divide="ignore"):  # one pseudo-row is spread as the product
            return np.log((counts + np.exp(product)) / (weight.sum(axis=0) + 1.0))
    if any(levels):
        return _density_by_level(plane, plane_model, points, weight, marginals, levels.index(True))
    log_densities = zip(*(marginal.T for marginal in marginals), strict=True)  # of each class
    copulas = [_copula(plane, points, *of_class) for of_class in zip(weight.T, log_densities, strict=True)]
    return product + np.stack(copulas, axis=-1)


def _copula(plane: Plane, points: np.ndarray, weight: np.ndarray, log_density: Sequence[np.ndarray]) -> np.ndarray:
    """Return the log density of the Gaussian copula of a class at all distinct values.

    Parameters
    ----------
    weight : ndarray of shape (rows,)
    log_density : pair of ndarrays
        The log densities of the class along both axes.
    """
    if not all(np.isfinite(along.max()) for along in log_density):  # a class with probability 0
        return np.zeros((len(log_density[1]), len(log_density[0])))
    normal = list(map(_normal_scores, plane.sides, plane.values, log_density))
    scores = np.array(list(map(np.interp, points.T, plane.values, normal)))
    products = (weight * scores) @ scores.T + np.eye(2)  # one pseudo-row without correlation
    rho = np.clip(products[0, 1] / np.sqrt(products[0, 0] * products[1, 1]), -1 + 1e-9, 1 - 1e-9)
    u, v = np.meshgrid(*normal)
    rest = 1 - rho**2
    return -0.5 * np.log(rest) - (rho**2 * (u**2 + v**2) - 2 * rho * u * v) / (2 * rest)


def _normal_scores(side: Side, values: np.ndarray, log_density: np.ndarray) -> np.ndarray:
    """Return the standard normal quantile of the cumulative probability at each value of an axis."""
    height = np.maximum(log_density - log_density.max(), -745.0)
    mass = np.exp(height) * _widths(side, values)
    tails = np.zeros(2)  # mass of the tails beyond the grid
    if not side.whole:
        slope = np.diff(height)[[0, -1]] / np.diff(values)[[0, -1]] * [1, -1]
        tails = np.where(slope > 0, np.exp(height[[0, -1]]) / np.maximum(slope, 1e-300), 0.0) - mass[[0, -1]] / 2
    below = tails[0] + np.cumsum(mass) - mass / 2
    above = tails[1] + np.cumsum(mass[::-1])[::-1] - mass / 2
    tail_probability = np.clip(np.minimum(below, above) / (below + above), 1e-300, 0.5)
    return np.where(below < above, 1, -1) * ndtri(tail_probability)


def _density_by_level(
    plane: Plane,
    plane_model: ClassConditionalPlane,
    points: np.ndarray,
    weight: np.ndarray,
    marginals: list[np.ndarray],
    categorical: int,
) -> np.ndarray:
    """Return log p(level | class) p(number | level, class) of all distinct values, shape (up, across, classes)."""
    numeric = 1 - categorical
    column = plane_model.columns[plane.columns[numeric]]
    rows, classes = np.nonzero(weight)
    n_levels = len(plane.sides[categorical].levels)
    group = classes * n_levels + points[rows, categorical].astype(int)
    # Without rows: the distribution of the class.
    by_level = np.repeat(marginals[numeric][:, None, :], n_levels, axis=1)
    if len(rows):
        inner = NaiveBayes({"x": column.family}, estimate=plane_model.model.estimate)
        inner.fit({"x": points[rows, numeric]}, group, weight[rows, classes])
        log_density = inner.predict_joint_log_proba({"x": plane.values[numeric]}) - inner.class_log_prior_
        by_level[:, inner.classes_ % n_levels, inner.classes_ // n_levels] = log_density
    joint = by_level + marginals[categorical]
    return joint if categorical == 0 else joint.swapaxes(0, 1)


# ---- Loss of the product ------------------------------------------------------------------------------------------


def _information_loss(plane: Plane, joint: np.ndarray, log_prior: np.ndarray) -> float:
    """Return the mutual information of the two columns in bits, averaged over the classes."""
    across, up = map(_widths, plane.sides, plane.values)
    with np.errstate(invalid="ignore", divide="ignore"):  # positions may coincide in floating point
        log_mass = joint + np.log(np.outer(up, across))[..., None]
        total = logsumexp(log_mass, axis=(0, 1))
        log_mass = log_mass - np.where(np.isfinite(total), total, 0.0)
        alone = logsumexp(log_mass, axis=0, keepdims=True) + logsumexp(log_mass, axis=1, keepdims=True)
        information = np.exp(log_mass) * np.where(np.isfinite(log_mass), log_mass - alone, 0.0)
    loss = np.nansum(np.exp(log_prior) * information.sum(axis=(0, 1))) / np.log(2)
    return max(0.0, round(loss, 9))


def _widths(side: Side, values: np.ndarray) -> np.ndarray:
    """Return the width of each distinct value of an axis; 1 for levels and whole numbers."""
    return np.ones(len(values)) if side.levels or side.whole or len(values) < 2 else np.gradient(values)


# ---- Drawing ---------------------------------------------------------------------------------------------------------


def _draw_density(panel: Axes, plane: Plane, log_density: np.ndarray, styles: list[GroupStyle]) -> None:
    """Draw density contours of each class with a color, relative to its maximum."""
    for style, of_class in zip(styles, np.moveaxis(log_density, -1, 0), strict=True):
        maximum = of_class[np.isfinite(of_class)].max(initial=-np.inf)
        if style.own and np.isfinite(maximum):
            relative = np.where(np.isfinite(of_class), of_class - maximum, -1e3)
            line: dict[str, Any] = {"colors": style.color, "linewidths": 1.6, "linestyles": "-", "zorder": 4}
            panel.contour(*plane.along, relative, levels=list(_LEVELS), **line)


def _draw_table(panel: Axes, plane: Plane, log_density: np.ndarray, styles: list[GroupStyle]) -> None:
    """Draw a disc for each class in each cell of a table; its area is the probability of the cell."""
    colored = [k for k, style in enumerate(styles) if style.own]
    x, y = np.meshgrid(*plane.values)
    width, height = np.multiply(panel.get_window_extent().size, 72 / panel.figure.dpi)
    diameter = 0.85 * min(width / (x.shape[1] * len(colored)), height / len(x))
    for position, k in enumerate(colored):
        shift = (position - (len(colored) - 1) / 2) / (len(colored) + 0.5)
        panel.scatter(x + shift, y, s=diameter**2 * np.exp(log_density[..., k]), color=styles[k].color, linewidths=0)
