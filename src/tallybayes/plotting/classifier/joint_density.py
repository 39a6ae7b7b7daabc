"""Plot of the joint distribution of two columns in each class, and of the product of their marginals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp, ndtri

from tallybayes.errors import DataError
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.plotting.classifier.decision_boundary import choose_columns
from tallybayes.plotting.classifier.groups import labels_of
from tallybayes.plotting.classifier.plane import Plane, Side, draw_points, draw_regions, frame_plane, plane_of
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
    plane = plane_of(plane_model, chosen, note, points)
    groups = plane_model.groups
    prior = groups.log_prior
    safe = np.where(np.isfinite(prior), prior, 0.0)
    log_first = plane_model.log_joint(plane, 0) - safe
    log_second = plane_model.log_joint(plane, 1) - safe
    joint = plane_model.log_joint(plane, 0, 1) - safe
    product = log_first + log_second
    labels = None if X is None or y is None else labels_of(model, X, y)
    source = "of the model"
    with np.errstate(invalid="ignore"):
        differs = np.isfinite(joint) & (np.abs(joint - product) > 1e-9 * (1 + np.abs(product)))
    if differs.any():  # the model has a joint distribution
        loss = _information_loss(plane, joint, prior)
    else:
        weight = _class_weights(plane_model, X, labels, chosen)
        assert points is not None
        known = ~np.isnan(points).any(axis=1)
        joint, loss = _estimate_joint(plane, plane_model, points[known], weight[known], (log_first, log_second), prior)
        source = f"estimated from {int(known.sum()):,} rows"
    axes = all_axes(ax, ncols=2, figsize=(11.4, 4.8), sharey=True)
    styles = groups.styles()
    a, b = (name_of(side.name, 16) for side in plane.sides)
    group = "component" if groups.noun == "components" else "class"
    titles = f"Joint p({a}, {b} | {group})", f"Product p({a} | {group}) p({b} | {group})"
    notes = f"{source}; {plane.note}" if plane.note else source, f"loses {loss:.3g} bits per row"
    is_table = all(side.levels for side in plane.sides)
    for panel, log_density, title, note_of_panel in zip(axes, (joint, product), titles, notes, strict=False):
        if is_table:
            _draw_table(panel, plane, log_density, styles)
        else:
            _draw_density(panel, plane, log_density, styles)
            draw_regions(panel, plane, log_density + prior, styles, filled=False)
        draw_points(panel, plane, groups, None if is_table else points, labels)
        frame_plane(panel, plane)
        set_title(panel, title, note_of_panel)
    if axes[0].get_legend() is not None:
        axes[0].get_legend().remove()
    axes[1].set_ylabel("")
    grid = {name: cells * len(groups.labels) for name, cells in plane.grid().items()}
    densities = {"log_joint": joint.T.ravel(), "log_product": product.T.ravel()}
    return Plot(
        axes, {"class": [label for label in groups.labels for _ in range(plane.across.size)], **grid, **densities}
    )


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
    marginals: tuple[np.ndarray, np.ndarray],
    log_prior: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Estimate the joint distribution of two columns in each class, and the bits that the product loses.

    Two categorical columns: the contingency table. One continuous column: its distribution by class and level. Two
    continuous columns: the marginals with a Gaussian copula, which is a full covariance if both are Gaussian.
    """
    shape = (*plane.across.shape, -1)
    first = marginals[0].reshape(shape)[0]
    second = marginals[1].reshape(shape)[:, 0]
    levels = [bool(side.levels) for side in plane.sides]
    product = first[None] + second[:, None]
    if all(levels):
        joint = _log_table(plane, points, weight, product)
    elif any(levels):
        joint = _density_by_level(plane, plane_model, points, weight, (first, second), levels.index(True))
    else:
        copula, rho = _copula(plane, points, weight, (first, second))
        joint = product + copula
        if not any(side.whole for side in plane.sides):
            return joint.reshape(-1, len(log_prior)), float(np.exp(log_prior) @ (-0.5 * np.log2(1 - rho**2)))
    joint = joint.reshape(-1, len(log_prior))
    return joint, _information_loss(plane, joint, log_prior)


def _copula(
    plane: Plane, points: np.ndarray, weight: np.ndarray, marginals: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log density of the Gaussian copula of each class on the grid, and its correlation."""
    grids_of_axes = (plane.across[0], plane.up[:, 0])
    rho = np.zeros(weight.shape[1])
    grids = []
    for k in range(weight.shape[1]):
        if not np.isfinite([marginal[:, k].max() for marginal in marginals]).all():  # a class with probability 0
            grids.append(np.zeros(plane.across.shape))
            continue
        normal = [
            _normal_scores(side, positions, marginal[:, k])
            for side, positions, marginal in zip(plane.sides, grids_of_axes, marginals, strict=True)
        ]
        scores = [
            np.interp(cells, positions, grid)
            for cells, positions, grid in zip(points.T, grids_of_axes, normal, strict=True)
        ]
        products = (weight[:, k] * np.array(scores)) @ np.array(scores).T
        variances = np.diagonal(products) + 1.0  # one pseudo-row without correlation
        rho[k] = np.clip(products[0, 1] / np.sqrt(variances[0] * variances[1]), -1 + 1e-9, 1 - 1e-9)
        u = normal[0][None, :]
        v = normal[1][:, None]
        rest = 1 - rho[k] ** 2
        grids.append(-0.5 * np.log(rest) - (rho[k] ** 2 * (u**2 + v**2) - 2 * rho[k] * u * v) / (2 * rest))
    return np.stack(grids, axis=-1), rho


def _normal_scores(side: Side, along: np.ndarray, log_density: np.ndarray) -> np.ndarray:
    """Return the standard normal quantile of the cumulative probability at each grid position of an axis."""
    positions, inverse = np.unique(side.at(along), return_inverse=True)
    height = np.zeros(len(positions))
    height[inverse] = np.maximum(log_density - log_density.max(), -745.0)
    mass = np.exp(height) * (1.0 if side.whole else np.gradient(positions))
    tails = np.zeros(2)  # mass of the tails beyond the grid
    if not side.whole:
        slope = np.diff(height)[[0, -1]] / np.diff(positions)[[0, -1]] * [1, -1]
        tails = np.where(slope > 0, np.exp(height[[0, -1]]) / np.maximum(slope, 1e-300), 0.0) - mass[[0, -1]] / 2
    below = tails[0] + np.cumsum(mass) - mass / 2
    above = tails[1] + np.cumsum(mass[::-1])[::-1] - mass / 2
    tail_probability = np.clip(np.minimum(below, above) / (below + above), 1e-300, 0.5)
    return (np.where(below < above, 1, -1) * ndtri(tail_probability))[inverse]


def _log_table(plane: Plane, points: np.ndarray, weight: np.ndarray, product: np.ndarray) -> np.ndarray:
    """Return the log contingency table, shape (up, across, classes), with one pseudo-row spread as the product."""
    codes = [
        side.at(along).astype(int) for side, along in zip(plane.sides, (plane.across[0], plane.up[:, 0]), strict=True)
    ]
    sizes = [len(side.levels) for side in plane.sides]
    counts = np.zeros((sizes[1], sizes[0], weight.shape[1]))
    np.add.at(counts, (points[:, 1].astype(int), points[:, 0].astype(int)), weight)
    with np.errstate(divide="ignore"):
        return np.log((counts[np.ix_(codes[1], codes[0])] + np.exp(product)) / (weight.sum(axis=0) + 1.0))


def _density_by_level(
    plane: Plane,
    plane_model: ClassConditionalPlane,
    points: np.ndarray,
    weight: np.ndarray,
    marginals: tuple[np.ndarray, np.ndarray],
    categorical: int,
) -> np.ndarray:
    """Return log p(level | class) p(number | level, class) on the grid, shape (up, across, classes)."""
    column = plane_model.columns[plane.columns[1 - categorical]]
    along = (plane.across[0], plane.up[:, 0])
    codes = plane.sides[categorical].at(along[categorical]).astype(int)
    grid_numbers = plane.sides[1 - categorical].at(along[1 - categorical])
    rows, classes = np.nonzero(weight)
    n_levels = len(plane.sides[categorical].levels)
    group = classes * n_levels + points[rows, categorical].astype(int)
    numeric = np.repeat(
        marginals[1 - categorical][:, None, :], n_levels, axis=1
    )  # without rows: the distribution of the class
    if len(rows):
        inner = NaiveBayes({"x": column.scored.family}, estimate=plane_model.model.estimate)
        inner.fit({"x": points[rows, 1 - categorical]}, group, weight[rows, classes])
        log_density = inner.predict_joint_log_proba({"x": grid_numbers}) - inner.class_log_prior_
        numeric[:, inner.classes_ % n_levels, inner.classes_ // n_levels] = log_density
    joint = numeric[:, codes] + marginals[categorical][None]
    return joint if categorical == 0 else joint.swapaxes(0, 1)


# ---- Loss of the product ------------------------------------------------------------------------------------------


def _information_loss(plane: Plane, joint: np.ndarray, log_prior: np.ndarray) -> float:
    """Return the mutual information of the two columns in bits, averaged over the classes."""
    across, up = _widths(plane)
    with np.errstate(invalid="ignore", divide="ignore"):  # positions may coincide in floating point
        log_mass = joint.reshape(*plane.across.shape, -1) + np.log(np.outer(up, across))[..., None]
        total = logsumexp(log_mass, axis=(0, 1))
        log_mass = log_mass - np.where(np.isfinite(total), total, 0.0)
        alone = logsumexp(log_mass, axis=0, keepdims=True) + logsumexp(log_mass, axis=1, keepdims=True)
        information = np.exp(log_mass) * np.where(np.isfinite(log_mass), log_mass - alone, 0.0)
    loss = float(np.nansum(np.exp(log_prior) * information.sum(axis=(0, 1))) / np.log(2))
    return max(0.0, round(loss, 9))


def _widths(plane: Plane) -> list[np.ndarray]:
    """Return the width of each grid position; the positions of a level or an integer have equal parts of 1."""
    widths = []
    for side, along in zip(plane.sides, (plane.across[0], plane.up[:, 0]), strict=True):
        if side.levels or side.whole:
            _, inverse, counts = np.unique(side.at(along), return_inverse=True, return_counts=True)
            widths.append(1.0 / counts[inverse])
        else:
            widths.append(np.gradient(along))
    return widths


# ---- Drawing ---------------------------------------------------------------------------------------------------------


def _draw_density(panel: Axes, plane: Plane, log_density: np.ndarray, styles: list[GroupStyle]) -> None:
    """Draw density contours of each class with a color, relative to its maximum."""
    for k, style in enumerate(styles):
        height = log_density[:, k].reshape(plane.across.shape)
        maximum = height[np.isfinite(height)].max(initial=-np.inf)
        if style.own and np.isfinite(maximum):
            relative = np.where(np.isfinite(height), height - maximum, -1e3)
            line: dict[str, Any] = {
                "colors": style.color,
                "linewidths": 1.6,
                "linestyles": "-",
                "zorder": 4,
            }
            panel.contour(plane.across, plane.up, relative, levels=list(_LEVELS), **line)


def _draw_table(panel: Axes, plane: Plane, log_density: np.ndarray, styles: list[GroupStyle]) -> None:
    """Draw a disc for each class in each cell of a table; its area is the probability of the cell."""
    sizes = [len(side.levels) for side in plane.sides]
    colored = [k for k, style in enumerate(styles) if style.own]
    inches = panel.get_window_extent().transformed(panel.figure.dpi_scale_trans.inverted())
    diameter = 72 * min(0.85 * inches.width / (sizes[0] * len(colored)), 0.85 * inches.height / sizes[1])
    rows, columns = (
        np.unique(side.at(along), return_index=True)[1]
        for side, along in zip(plane.sides[::-1], (plane.up[:, 0], plane.across[0]), strict=True)
    )
    density = log_density.reshape(*plane.across.shape, -1)[np.ix_(rows, columns)]
    across, up = np.meshgrid(np.arange(sizes[0]), np.arange(sizes[1]))
    for position, k in enumerate(colored):
        shift = (position - (len(colored) - 1) / 2) / (len(colored) + 0.5)
        area = diameter**2 * np.exp(density[..., k].ravel())
        panel.scatter(across.ravel() + shift, up.ravel(), s=area, color=styles[k].color, linewidths=0)
