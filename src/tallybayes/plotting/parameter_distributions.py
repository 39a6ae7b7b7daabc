"""Plots of prior and posterior distributions of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.hypotheses import Hypotheses
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma, LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart
from tallybayes.errors import DataError
from tallybayes.plotting.plot import Plot, PlotAxes, PlotTable
from tallybayes.plotting.style import (
    COLORS,
    WIDEST,
    all_axes,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    panels,
    set_title,
    ticks,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.distributions.parameter_distribution import ParameterDistribution
    from tallybayes.estimation.distribution_fit import FittedDistribution
    from tallybayes.typing import Prior

PRIOR = COLORS[1]
LIKELIHOOD = COLORS[2]
POSTERIOR = COLORS[0]
_ESTIMATES = {"mle": ("maximum likelihood", COLORS[2], ":"), "map": ("posterior mode", COLORS[5], "--")}
_ESTIMATES |= {"bayes": ("posterior mean", COLORS[0], "-")}
_MAX_LEVELS = 30  # maximum number of levels or hypotheses
_GRID_SIZE = 400


def plot_distribution(distribution: ParameterDistribution, ax: PlotAxes = None) -> Plot:
    """Plot a prior or posterior: densities with mean and 95 % interval, or intervals of level probabilities.

    Parameters
    ----------
    distribution : ParameterDistribution
    ax : matplotlib Axes, optional
        One for each parameter: two for mean and variance.
    """
    if isinstance(distribution, Hypotheses):
        return plot_hypotheses(distribution, ax)
    if isinstance(distribution, Dirichlet):
        return _plot_levels({"distribution": distribution}, {}, None, ax)
    margins = _margins(distribution)
    n = len(next(iter(margins.values())))
    names = _texts(distribution, n)
    if n > 1:
        return _plot_several(margins, "distribution", names, "distributions", ax)
    axes = all_axes(ax, ncols=len(margins), figsize=(5.4 * len(margins), 3.6))
    tables: list[PlotTable] = []
    for panel, (name, [margin]) in zip(axes, margins.items(), strict=False):
        grid = _density_grid(name, [margin])
        density = margin.pdf(grid)
        panel.plot(grid, density, color=POSTERIOR, linewidth=1.8, label="density")
        _shade(panel, margin, grid, density)
        tables.append({"distribution": names[0], "parameter": name, "value": grid, "density": density})
        _set_axes(panel, name, [density])
        panel.legend(frameon=False, fontsize=9)
    set_title(axes[0], words(distribution, 80))
    return Plot(axes, *tables)


def _texts(distribution: Any, n: int) -> list[str]:
    """Return the text of each distribution in an array of distributions."""
    if isinstance(distribution, NormalInverseWishart | LinearNormalInverseGamma):
        return [f"column {k}" for k in range(n)]
    values = np.broadcast_arrays(*(getattr(distribution, field.name) for field in fields(distribution)[:4]))
    return [
        repr(type(distribution)(*map(float, parameters))) for parameters in zip(*map(np.ravel, values), strict=True)
    ]


def plot_hypotheses(distribution: Hypotheses, ax: PlotAxes = None, *, fitted: FittedDistribution | None = None) -> Plot:
    """Plot the prior and posterior probability of each hypothesis; as steps if the hypotheses are numbers.

    Parameters
    ----------
    distribution : Hypotheses
    ax : matplotlib Axes, optional
    fitted : FittedDistribution, optional
        The data, to plot the likelihood, too.
    """
    if np.ndim(distribution.log_weights) > 1:
        raise DataError("hypotheses have several groups; expected one group to plot.")
    names = distribution.names
    before = distribution._prior_weights()
    before = before / before.sum()
    after = np.exp(distribution.log_weights)
    probabilities = {"prior": (before, PRIOR), "posterior": (after, POSTERIOR)}
    if fitted is not None:
        log_likelihood = fitted._prior(distribution)._log_likelihoods(fitted.statistics)  # type: ignore[attr-defined]
        likelihood = np.exp(log_likelihood - log_likelihood.max())
        probabilities["likelihood"] = (likelihood / likelihood.sum(), LIKELIHOOD)
    elif np.allclose(before, after, rtol=1e-12):
        probabilities = {"probability": (after, POSTERIOR)}
    part = {"hypothesis": names, **{name: values for name, (values, _) in probabilities.items()}}
    numeric = all(isinstance(name, int | float | np.number) for name in names) and len(names) > 8
    kept = np.sort(np.argsort(-np.maximum(before, after), kind="stable")[:_MAX_LEVELS])
    panel = all_axes(ax, figsize=(6.4, 3.8 if numeric else 1.2 + 0.34 * len(kept)))[0]
    height = 0.8 / len(probabilities)
    for k, (name, (values, color)) in enumerate(probabilities.items()):
        if numeric:
            fill = 0.3 if name in ("posterior", "probability") else 0.0
            panel.fill_between(names, values, step="mid", color=color, alpha=fill, linewidth=0)
            panel.step(names, values, where="mid", color=color, linewidth=1.6, label=name)
        else:
            position = np.arange(len(kept)) + (k - (len(probabilities) - 1) / 2) * height
            panel.barh(position, values[kept], height, color=color)
            panel.plot([], [], color=color, linewidth=6, label=name)
    if numeric:
        panel.set_xlabel("hypothesis")
        panel.set_ylabel(f"probability of each of {len(names)} values")
        panel.set_ylim(bottom=0)
    else:
        panel.set_ylim(len(kept) - 0.4, -0.6)
        ticks(panel, "y", [names[k] for k in kept])
        panel.set_xlim(0, 1)
        panel.set_xlabel("probability")
        if len(kept) < len(names):
            set_title(panel, f"the {len(kept)} most probable of {len(names)} hypotheses")
    if len(probabilities) > 1:
        legend_beside(panel)
    hide_top_right_spines(panel)
    return Plot(panel, part)


def plot_fitted_distribution(fitted: FittedDistribution, prior: Prior = None, ax: PlotAxes = None) -> Plot:
    """Plot prior, likelihood and posterior with the point estimates. Of several groups or columns, plot the posteriors.

    Parameters
    ----------
    fitted : FittedDistribution
    prior : as for `FittedDistribution.posterior`, optional
    ax : matplotlib Axes, optional
    """
    if isinstance(prior, Hypotheses):
        return plot_hypotheses(fitted.posterior(prior), ax, fitted=fitted)
    prior_distribution = fitted.family.resolve_prior(prior, fitted.statistics, "bayes")
    before = prior_distribution.update(fitted.statistics.scale(0.0))  # the prior in the shape of the statistics
    posterior = prior_distribution.update(fitted.statistics)
    if isinstance(posterior, Dirichlet):
        distributions = {"prior": before, "posterior": posterior}
        return _plot_levels(distributions, _point_estimates(fitted, prior_distribution), fitted, ax)
    margins = _margins(posterior)
    n = len(next(iter(margins.values())))
    if n > 1:
        plot = _plot_several(margins, "group", _names(fitted, n), "others", ax)
        set_title(plot.axes[0], f"{words(fitted.family, 40)}: posteriors")
        return plot
    prior_margins = _margins(before)
    axes = all_axes(ax, ncols=len(margins), figsize=(5.8 * len(margins), 3.8))
    estimates = _point_estimates(fitted, prior_distribution)
    tables = []
    for panel, name in zip(axes, margins, strict=False):
        point_values = [_of_parameter(point, name) for point in estimates.values()]
        grid = _density_grid(name, margins[name], extra=[value for value in point_values if np.isfinite(value)])
        curves = {"prior": prior_margins[name][0].pdf(grid), "posterior": margins[name][0].pdf(grid)}
        likelihood = _likelihood(fitted, name, grid)
        if likelihood is not None:
            curves["likelihood"] = likelihood
        colors = {"prior": PRIOR, "likelihood": LIKELIHOOD, "posterior": POSTERIOR}
        for curve in ("prior", "likelihood", "posterior"):
            if curve in curves:
                label = "likelihood, scaled" if curve == "likelihood" else curve
                panel.plot(grid, curves[curve], color=colors[curve], linewidth=1.8, label=label)
                tables.append({"curve": curve, "parameter": name, "value": grid, "density": curves[curve]})
        _shade(panel, margins[name][0], grid, curves["posterior"], label=None)
        _set_axes(panel, name, [curves["posterior"], curves.get("likelihood", curves["posterior"])])
        for estimate, point in estimates.items():
            _mark(panel, estimate, _of_parameter(point, name), grid, joint=len(margins) > 1)
        panel.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    weight = float(np.max(fitted.family.row_weight(fitted.statistics), initial=0.0))
    prior_text = words(_distribution_of_column(prior_distribution))
    prior_text = prior_text if len(prior_text) <= WIDEST else type(prior_distribution).__name__  # too long for a title
    set_title(axes[0], f"{words(fitted.family, WIDEST)}, weight {weight:.6g}", f"prior {prior_text}")
    return Plot(axes, *tables)


def _distribution_of_column(distribution: ParameterDistribution) -> object:
    """Return the distribution of one column of an array, if it can be indexed."""
    try:
        return distribution.column(0)
    except (IndexError, NotImplementedError):
        return distribution


def _plot_several(margins: dict[str, list[Any]], column: str, names: list[str], noun: str, ax: PlotAxes) -> Plot:
    """Plot the densities of several distributions, in one panel for each parameter."""
    axes = all_axes(ax, ncols=len(margins), figsize=(5.4 * len(margins), 3.8))
    tables: list[PlotTable] = []
    styles = group_styles(names, noun=noun)
    for panel, (name, distributions) in zip(axes, margins.items(), strict=False):
        grid = _density_grid(name, distributions)
        densities = [distribution.pdf(grid) for distribution in distributions]
        for k, density in enumerate(densities):
            width = {"linewidth": 1.8, "zorder": 3} if styles[k].own else {"linewidth": 0.7, "zorder": 2}
            panel.plot(grid, density, color=styles[k].color, label=styles[k].label, **width)
            tables.append({column: names[k], "parameter": name, "value": grid, "density": density})
        _set_axes(panel, name, [np.max(densities, axis=0)])
    legend_beside(axes[-1])
    return Plot(axes, *tables)


def _names(fitted: FittedDistribution, n: int) -> list[str]:
    """Return the group, the column, or both, of each posterior."""
    groups = [str(group) for group in fitted.groups] or [""]
    n_columns = n // len(groups)
    factor = fitted.tally.factors[0]
    columns = [""] if n_columns == 1 else [str(factor.column(place, n_columns)) for place in range(n_columns)]
    return [", ".join(part for part in (group, column) if part) or "all" for group in groups for column in columns]


def _plot_levels(
    distributions: dict[str, Any], estimates: dict[str, Any], fitted: FittedDistribution | None, ax: PlotAxes
) -> Plot:
    """Plot mean and 95 % interval of each level probability, before and after the data, with point estimates."""
    posterior = list(distributions.values())[-1]
    names, groups = _level_names(posterior, fitted)
    size = len(names)
    mean = _flat(posterior.mean()).reshape(len(groups), size)
    width = 6.0 if len(groups) == 1 else 4.2
    height = 1.4 + 0.3 * min(size, _MAX_LEVELS)
    axes = panels(len(groups), 3, width, height) if ax is None else all_axes(ax)
    kept = np.sort(np.argsort(-mean.max(axis=0), kind="stable")[:_MAX_LEVELS])
    tables: list[PlotTable] = []
    for row, (panel, group) in enumerate(zip(axes, groups, strict=False)):
        for number, (role, distribution) in enumerate(distributions.items()):
            shift = 0.32 * ((len(distributions) - 1) / 2 - number)
            ends = distribution.interval()
            middle, low, high = (
                _flat(values).reshape(-1, size) for values in (distribution.mean(), ends.low, ends.high)
            )
            line = row if len(middle) > 1 else 0
            color = PRIOR if role == "prior" else POSTERIOR
            position = np.arange(len(kept)) - shift
            panel.hlines(position, low[line, kept], high[line, kept], color=color, linewidth=2, alpha=0.6)
            panel.plot(middle[line, kept], position, "o", color=color, markersize=5, label=f"{role}: mean, 95 %")
            numbers = {"mean": middle[line], "low": low[line], "high": high[line]}
            tables.append({"group": group, "level": names, "role": role, **numbers})
        for estimate, mark in (("mle", "x"), ("map", "+")):
            if estimate in estimates and len(groups) == 1 and isinstance(estimates[estimate], dict):
                values = np.array([estimates[estimate][name] for name in names])
                label, color, _ = _ESTIMATES[estimate]
                panel.plot(values[kept], np.arange(len(kept)), mark, color=color, markersize=7, label=label)
        panel.set_ylim(len(kept) - 0.4, -0.6)
        ticks(panel, "y", [names[k] for k in kept], 8.0)
        panel.set_xlabel("probability")
        panel.set_xlim(left=0)
        hide_top_right_spines(panel)
        shown = f"the {len(kept)} most probable of {size} levels" if len(kept) < size else ""
        set_title(panel, words(group, WIDEST) if len(groups) > 1 else "", shown)
    if len(distributions) > 1 or estimates:
        legend_beside(axes[min(len(groups), len(axes)) - 1])
    return Plot(axes, *tables)


def _flat(value: Any) -> np.ndarray:
    """Return the probabilities of a mean or of an end of an interval as a flat array."""
    return np.ravel(np.asarray(getattr(value, "table", value), dtype=float))


def _level_names(distribution: Dirichlet, fitted: FittedDistribution | None) -> tuple[list[Any], list[Any]]:
    """Return the levels of all columns in order, and the groups."""
    mean: Any = distribution.mean()
    n = _flat(mean).size
    if fitted is None:
        size = int(np.shape(getattr(mean, "table", mean))[-1])
        return list(range(size)), [f"group {k}" for k in range(n // size)]
    groups = list(fitted.groups) or [""]
    levels = fitted.levels
    if not levels:  # words of a vocabulary
        return [fitted.tally.factors[0].column(k, n // len(groups)) for k in range(n // len(groups))], groups
    flat = list(levels) if fitted.single else [level for column in levels for level in column]
    return flat, groups


def _margins(distribution: ParameterDistribution) -> dict[str, list[Any]]:
    """Return the marginal distributions of each parameter as frozen SciPy distributions, over groups and columns."""
    from scipy import stats

    if isinstance(distribution, Beta):
        return {"θ": _frozen(stats.beta, distribution.alpha, distribution.beta)}
    if isinstance(distribution, Gamma):
        return {"λ": _frozen(stats.gamma, distribution.shape, 0.0, 1 / distribution.rate)}
    if isinstance(distribution, NormalInverseWishart):
        distribution = distribution._marginal()
    if not isinstance(distribution, NormalInverseGamma | LinearNormalInverseGamma):
        raise DataError.wrong_type(
            "the distribution", type(distribution).__name__, "a prior or posterior distribution of this package"
        )
    variance = _frozen(stats.invgamma, distribution.shape, 0.0, distribution.scale)
    if isinstance(distribution, NormalInverseGamma):
        scale = np.sqrt(distribution.scale / (distribution.shape * distribution.strength))
        return {"mean": _frozen(stats.t, 2 * distribution.shape, distribution.location, scale), "variance": variance}
    slopes, _ = distribution.coefficient_variances()
    scale = np.sqrt((distribution.scale / distribution.shape)[..., None] * slopes)
    slope = _frozen(stats.t, 2 * distribution.shape[..., None], distribution.location, scale)
    return {"slope": slope, "variance": variance}


def _frozen(family: Any, *parameters: npt.ArrayLike) -> list[Any]:
    """Return a frozen SciPy distribution for each element of the broadcast parameters."""
    return [family(*values) for values in zip(*map(np.ravel, np.broadcast_arrays(*parameters)), strict=True)]


def _density_grid(name: str, distributions: Sequence[Any], extra: Sequence[float] = ()) -> np.ndarray:
    """Return the grid of a density: from 0 to 1 for a probability, else the central 99 % or so."""
    if name == "θ":
        return np.linspace(0.0, 1.0, _GRID_SIZE + 1)
    low = min(float(distribution.ppf(0.002)) for distribution in distributions)
    high = max(float(distribution.ppf(0.99 if name == "variance" else 0.998)) for distribution in distributions)
    low = min([low, *extra])
    high = max([high, *extra])
    edge = 0.05 * (high - low)
    return np.linspace(low - edge if name in ("mean", "slope") else max(low - edge, 0.0), high + edge, _GRID_SIZE + 1)


def _shade(
    panel: Axes, distribution: Any, grid: np.ndarray, density: np.ndarray, label: str | None = "95 % interval"
) -> None:
    """Shade the central 95 % of a density, and mark its mean."""
    low = distribution.ppf(0.025)
    high = distribution.ppf(0.975)
    inside = (grid >= low) & (grid <= high)
    finite = np.where(np.isfinite(density), density, 0.0)
    panel.fill_between(grid, finite, where=inside, color=POSTERIOR, alpha=0.15, linewidth=0, label=label)
    if label is not None and np.isfinite(distribution.mean()):
        panel.axvline(float(distribution.mean()), color=POSTERIOR, linewidth=1, label=f"mean {distribution.mean():.4g}")


def _set_axes(panel: Axes, name: str, curves: Sequence[np.ndarray]) -> None:
    """Set labels and limits of the axes; an infinite density does not set the limit."""
    panel.locator_params(axis="x", nbins=6)
    inner = np.concatenate([curve[1:-1] for curve in curves])
    finite = inner[np.isfinite(inner)]
    peak = float(finite.max(initial=0.0))
    usual = 5 * float(np.median(finite)) if len(finite) and not np.isfinite(np.concatenate(curves)).all() else peak
    panel.set_ylim(0, 1.1 * (min(peak, usual) or peak or 1.0))
    panel.set_xlabel(name)
    panel.set_ylabel("density")
    hide_top_right_spines(panel)


def _mark(panel: Axes, estimate: str, value: float, grid: np.ndarray, *, joint: bool) -> None:
    """Mark an estimate with a vertical line and its value, if it is finite and in range."""
    if np.isfinite(value) and grid[0] <= value <= grid[-1]:
        label, color, line = _ESTIMATES[estimate]
        label = (
            f"joint {label}" if joint and estimate == "map" else label
        )  # the joint mode differs from the marginal modes
        panel.axvline(value, color=color, linewidth=1.3, linestyle=line, label=f"{label} {value:.4g}", zorder=4)


def _point_estimates(fitted: FittedDistribution, prior: ParameterDistribution) -> dict[str, Any]:
    """Return the estimates that exist."""
    estimates = {}
    for estimate in _ESTIMATES:
        try:
            estimates[estimate] = fitted.estimate(estimate, prior=prior)
        except ValueError:  # no data, or a prior without a mode
            continue
    return estimates


def _of_parameter(point: Any, name: str) -> float:
    """Return one parameter of an estimate."""
    value = getattr(point, name) if isinstance(point, tuple) else point
    return float(np.ravel(np.asarray(value, dtype=float))[0])


def _likelihood(fitted: FittedDistribution, name: str, grid: np.ndarray) -> np.ndarray | None:
    """Return the profile likelihood of one parameter, normalized to area 1; None without data."""
    statistics = fitted.statistics
    family = fitted.family
    weight = float(np.sum(family.row_weight(statistics)))
    if weight <= 0:
        return None
    if isinstance(family.maximum_likelihood(statistics), LinearParameters):
        return None  # several coefficients
    if name in ("θ", "λ"):
        parameters: list[Any] = [np.array([value]) for value in grid]
    else:
        center = float(np.ravel(statistics.mean)[0])  # type: ignore[attr-defined]
        variance = float(np.ravel(statistics.diagonal().scatter)[0]) / weight  # type: ignore[attr-defined]
        if variance <= 0:
            return None
        if name == "mean":
            parameters = [Normal(np.array([value]), np.array([variance + (center - value) ** 2])) for value in grid]
        else:
            parameters = [Normal(np.array([center]), np.array([max(value, 1e-300)])) for value in grid]
    with np.errstate(divide="ignore", over="ignore"):
        log = np.array([float(np.sum(family.log_likelihood(one, statistics))) for one in parameters])
    height = np.exp(log - log.max())
    return height / np.trapezoid(height, grid)
