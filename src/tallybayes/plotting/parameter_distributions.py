"""Plots of prior and posterior distributions of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.hypotheses import Hypotheses
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma, LinearParameters
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart
from tallybayes.errors import DataError
from tallybayes.families.estimates import read_estimate
from tallybayes.plotting.plot import Plot, PlotAxes, PlotTable
from tallybayes.plotting.style import (
    COLORS,
    WIDEST,
    GroupStyle,
    all_axes,
    group_styles,
    legend_beside,
    panels,
    set_title,
    ticks,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from scipy.stats import rv_continuous
    from scipy.stats.distributions import rv_frozen

    from tallybayes.distributions.parameter_distribution import ParameterDistribution
    from tallybayes.estimation.distribution_fit import FittedDistribution
    from tallybayes.typing import Prior

    Margins = dict[str, rv_frozen]  # of each parameter, the distributions over groups and columns

_POSTERIOR = COLORS[0]
_COLORS = {"prior": COLORS[1], "likelihood": COLORS[2]}  # of other distributions than posteriors
_ESTIMATES = {  # label, color, line and mark
    "mle": ("maximum likelihood", COLORS[2], ":", "x"),
    "map": ("posterior mode", COLORS[5], "--", "+"),
    "bayes": ("posterior mean", COLORS[0], "-", ""),
}
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
        shape = np.shape(_probabilities(distribution.mean()))
        groups = [f"group {k}" for k in range(int(np.prod(shape[:-1])))]
        return _plot_levels({"distribution": distribution}, list(range(shape[-1])), groups, ax)
    margins = _margins(distribution)
    names = _texts(distribution, _n_distributions(margins))
    plot = _plot_densities(margins, "distribution", names, "distributions", ax)
    if len(names) == 1:
        set_title(plot.axes[0], words(distribution, 80))
    return plot


def _texts(distribution: Any, n: int) -> list[str]:
    """Return the text of each distribution in an array of distributions."""
    if isinstance(distribution, NormalInverseWishart | LinearNormalInverseGamma):
        return [f"column {k}" for k in range(n)]
    values = np.broadcast_arrays(*(getattr(distribution, field.name) for field in fields(distribution)[:4]))
    return [repr(type(distribution)(*row)) for row in np.reshape(values, (-1, n)).T.tolist()]


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
    prior = np.exp(distribution.replace(log_weights=None).log_weights)
    posterior = np.exp(distribution.log_weights)
    probabilities = {"prior": prior, "posterior": posterior}
    if fitted is not None:  # the likelihood, normalized, is the posterior of a uniform prior
        uniform = Hypotheses(distribution.hypotheses)
        probabilities["likelihood"] = np.exp(fitted.posterior(uniform).log_weights)
    elif np.allclose(prior, posterior, rtol=1e-12):
        probabilities = {"probability": posterior}
    numeric = all(isinstance(name, int | float | np.number) for name in names) and len(names) > 8
    kept = np.sort(np.argsort(-np.maximum(prior, posterior), kind="stable")[:_MAX_LEVELS])
    (panel,) = all_axes(ax, 6.4, 3.8 if numeric else 1.2 + 0.34 * len(kept))
    height = 0.8 / len(probabilities)
    for k, (name, values) in enumerate(probabilities.items()):
        color = _COLORS.get(name, _POSTERIOR)
        if numeric:
            panel.step(names, values, where="mid", color=color, label=name)
        else:
            position = np.arange(len(kept)) + (k - (len(probabilities) - 1) / 2) * height
            panel.barh(position, values[kept], height, color=color, label=name)
    if numeric:
        panel.fill_between(names, posterior, step="mid", color=_POSTERIOR, alpha=0.3, linewidth=0)
        panel.set(xlabel="hypothesis", ylabel=f"probability of each of {len(names)} values")
        panel.set_ylim(bottom=0)
    else:
        panel.set(ylim=(len(kept) - 0.4, -0.6), xlim=(0, 1), xlabel="probability")
        ticks(panel, "y", [names[k] for k in kept])
        if len(kept) < len(names):
            set_title(panel, f"the {len(kept)} most probable of {len(names)} hypotheses")
    if len(probabilities) > 1:
        legend_beside(panel)
    return Plot(panel, {"hypothesis": names, **probabilities})


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
    estimates = _point_estimates(fitted, prior_distribution)
    groups = list(fitted.groups) or [""]
    if isinstance(posterior, Dirichlet):
        names = _level_names(fitted, np.size(_probabilities(posterior.mean())) // len(groups))
        return _plot_levels({"prior": before, "posterior": posterior}, names, groups, ax, estimates)
    margins = _margins(posterior)
    n = _n_distributions(margins)
    if n > 1:
        columns = _column_names(fitted, n // len(groups)) if n > len(groups) else [""]
        names = [", ".join(filter(None, map(str, pair))) for pair in ((g, c) for g in groups for c in columns)]
        plot = _plot_densities(margins, "group", names, "others", ax)
        set_title(plot.axes[0], f"{words(fitted.family, 40)}: posteriors")
        return plot
    axes = all_axes(ax, 5.8 * len(margins), 3.8, ncols=len(margins))
    tables: list[PlotTable] = []
    for panel, (name, margin), prior_margin in zip(axes, margins.items(), _margins(before).values(), strict=False):
        tables += _draw_update(panel, name, prior_margin, margin, fitted, estimates, joint=len(margins) > 1)
    weight = np.max(fitted.family.row_weight(fitted.statistics), initial=0.0)
    prior_text = words(_distribution_of_column(prior_distribution))
    prior_text = prior_text if len(prior_text) <= WIDEST else type(prior_distribution).__name__  # too long for a title
    set_title(axes[0], f"{words(fitted.family, WIDEST)}, weight {weight:.6g}", f"prior {prior_text}")
    return Plot(axes, *tables)


def _draw_update(
    panel: Axes,
    name: str,
    prior: rv_frozen,
    posterior: rv_frozen,
    fitted: FittedDistribution,
    estimates: Mapping[str, Any],
    *,
    joint: bool,
) -> list[PlotTable]:
    """Draw prior, likelihood and posterior of one parameter, and mark the estimates; `joint` if there are others."""
    points = {estimate: _of_parameter(point, name) for estimate, point in estimates.items()}
    grid = _density_grid(name, posterior, extra=[value for value in points.values() if np.isfinite(value)])
    likelihood = _likelihood(fitted, name, grid)
    curves = {"prior": prior.pdf(grid)}
    curves |= {} if likelihood is None else {"likelihood": likelihood}
    curves |= {"posterior": posterior.pdf(grid)}
    for curve, density in curves.items():
        label = "likelihood, scaled" if curve == "likelihood" else curve
        panel.plot(grid, density, color=_COLORS.get(curve, _POSTERIOR), linewidth=1.8, label=label)
    _shade(panel, posterior, grid)
    _set_axes(panel, name, np.array(list(curves.values())[1:]))
    for estimate, value in points.items():
        if np.isfinite(value) and grid[0] <= value <= grid[-1]:
            label, color, line, _ = _ESTIMATES[estimate]
            which = (
                "joint " if joint and read_estimate(estimate).takes_mode else ""
            )  # the joint mode differs from the marginal modes
            panel.axvline(value, color=color, linestyle=line, label=f"{which}{label} {value:.4g}", zorder=4)
    legend_beside(panel)
    return [{"curve": curve, "parameter": name, "value": grid, "density": density} for curve, density in curves.items()]


def _distribution_of_column(distribution: ParameterDistribution) -> object:
    """Return the distribution of one column of an array, if it can be indexed."""
    try:
        return distribution.column(0)
    except (IndexError, NotImplementedError):
        return distribution


def _plot_densities(margins: Margins, column: str, names: Sequence[str], noun: str, ax: PlotAxes) -> Plot:
    """Plot the densities of one or several distributions, in one panel for each parameter."""
    axes = all_axes(ax, 5.4 * len(margins), 3.7, ncols=len(margins))
    tables: list[PlotTable] = []
    is_single = len(names) == 1
    styles = [GroupStyle(_POSTERIOR)] if is_single else group_styles(names, noun=noun)
    for panel, (name, margin) in zip(axes, margins.items(), strict=False):
        grid = _density_grid(name, margin)
        densities = margin.pdf(grid[:, None]).T
        for label, style, density in zip(names, styles, densities, strict=False):
            panel.plot(grid, density, label="density" if is_single else None, **style.line)
            tables.append({column: label, "parameter": name, "value": grid, "density": density})
        _set_axes(panel, name, densities.max(axis=0))
        if is_single:
            _shade(panel, margin, grid, label="95 % interval")
            mean = margin.mean()[0]
            if np.isfinite(mean):
                panel.axvline(mean, color=_POSTERIOR, linewidth=1, label=f"mean {mean:.4g}")
            panel.legend(frameon=False, fontsize=9)
    if not is_single:
        legend_beside(axes[-1], styles=styles)
    return Plot(axes, *tables)


def _column_names(fitted: FittedDistribution, n: int) -> list[Any]:
    """Return the names of the columns, or of the words of a vocabulary."""
    return [fitted.tally.factors[0].column(k, n) for k in range(n)]


def _level_names(fitted: FittedDistribution, n: int) -> list[Any]:
    """Return the levels of all columns in order, or the words of a vocabulary."""
    levels = fitted.levels
    if not levels:
        return _column_names(fitted, n)
    return list(levels) if fitted.single else [level for column in levels for level in column]


def _plot_levels(
    distributions: Mapping[str, ParameterDistribution],
    names: Sequence[Any],
    groups: Sequence[Any],
    ax: PlotAxes,
    estimates: Mapping[str, Any] | None = None,
) -> Plot:
    """Plot mean and 95 % interval of each level probability, before and after the data, with point estimates."""
    size, is_single = len(names), len(groups) == 1
    numbers = {
        role: [_probabilities(values).reshape(len(groups), size) for values in (each.mean(), *each.interval())]
        for role, each in distributions.items()
    }
    means = list(numbers.values())[-1][0]
    axes = panels(len(groups), 3, 6.0 if is_single else 4.2, 1.4 + 0.3 * min(size, _MAX_LEVELS), ax)
    kept = np.sort(np.argsort(-means.max(axis=0), kind="stable")[:_MAX_LEVELS])
    position = np.arange(len(kept))
    tables: list[PlotTable] = []
    for k, (panel, group) in enumerate(zip(axes, groups, strict=False)):
        for role, values in numbers.items():
            mean, low, high = (rows[k] for rows in values)
            color = _COLORS.get(role, _POSTERIOR)
            at = position + 0.16 * (len(numbers) - 1) * (-1 if role == "prior" else 1)
            panel.hlines(at, low[kept], high[kept], color=color, linewidth=2, alpha=0.6)
            panel.plot(mean[kept], at, "o", color=color, markersize=5, label=f"{role}: mean, 95 %")
            tables.append({"group": group, "level": names, "role": role, "mean": mean, "low": low, "high": high})
        for estimate, point in (estimates or {}).items():
            label, color, _, mark = _ESTIMATES[estimate]
            if mark and is_single and isinstance(point, dict):
                probabilities = [point[names[level]] for level in kept]
                panel.plot(probabilities, position, mark, color=color, markersize=7, label=label)
        panel.set(ylim=(len(kept) - 0.4, -0.6), xlabel="probability")
        ticks(panel, "y", [names[level] for level in kept], 8.0)
        panel.set_xlim(left=0)
        shown = f"the {len(kept)} most probable of {size} levels" if len(kept) < size else ""
        set_title(panel, "" if is_single else words(group, WIDEST), shown)
    if len(distributions) > 1 or estimates:
        legend_beside(panel)
    return Plot(axes, *tables)


def _probabilities(value: Any) -> np.ndarray:
    """Return the probabilities of a mean or of an end of an interval as an array."""
    return np.asarray(getattr(value, "table", value), dtype=float)


def _margins(distribution: ParameterDistribution) -> Margins:
    """Return the marginal distributions of each parameter, over groups and columns."""
    from scipy import stats

    if isinstance(distribution, Beta):
        return {"θ": _frozen(stats.beta, distribution.alpha, distribution.beta)}
    if isinstance(distribution, Gamma):
        return {"λ": _frozen(stats.gamma, distribution.shape, 0.0, 1 / distribution.rate)}
    if isinstance(distribution, NormalInverseWishart):
        distribution = distribution.marginal()
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


def _frozen(family: rv_continuous, *parameters: npt.ArrayLike) -> rv_frozen:
    """Return distributions for the elements of the broadcast parameters, as one flat array."""
    return family(*map(np.ravel, np.broadcast_arrays(*parameters)))


def _n_distributions(margins: Margins) -> int:
    """Return the number of distributions of the first parameter."""
    return np.size(next(iter(margins.values())).ppf(0.5))


def _density_grid(name: str, margin: rv_frozen, extra: Sequence[float] = ()) -> np.ndarray:
    """Return the grid of a density: from 0 to 1 for a probability, else the central 99 % or so."""
    if name == "θ":
        return np.linspace(0.0, 1.0, _GRID_SIZE + 1)
    ends = [*margin.ppf(0.002), *margin.ppf(0.99 if name == "variance" else 0.998), *extra]
    edge = 0.05 * (max(ends) - min(ends))
    low = min(ends) - edge
    return np.linspace(low if name in ("mean", "slope") else max(low, 0.0), max(ends) + edge, _GRID_SIZE + 1)


def _shade(panel: Axes, margin: rv_frozen, grid: np.ndarray, label: str | None = None) -> None:
    """Shade the central 95 % of a density."""
    inside = (grid >= margin.ppf(0.025)) & (grid <= margin.ppf(0.975))
    density = np.nan_to_num(margin.pdf(grid), posinf=0.0)
    panel.fill_between(grid, density, where=inside, color=_POSTERIOR, alpha=0.15, linewidth=0, label=label)


def _set_axes(panel: Axes, name: str, densities: np.ndarray) -> None:
    """Set labels and limits of the axes; an infinite density does not set the limit."""
    panel.locator_params(axis="x", nbins=6)
    inner = densities[..., 1:-1]
    finite = inner[np.isfinite(inner)]
    peak = finite.max(initial=0.0)
    usual = peak if np.isfinite(densities).all() or not len(finite) else 5 * np.median(finite)
    panel.set(ylim=(0, 1.1 * (min(peak, usual) or peak or 1.0)), xlabel=name, ylabel="density")


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
    weight = np.sum(family.row_weight(statistics))
    if weight <= 0:
        return None
    if isinstance(family.maximum_likelihood(statistics), LinearParameters):
        return None  # several coefficients
    if name in ("θ", "λ"):
        with np.errstate(divide="ignore"):
            log = np.array([np.sum(family.log_likelihood(np.array([value]), statistics)) for value in grid])
    else:
        center = np.ravel(statistics.mean)[0]  # type: ignore[attr-defined]
        variance = np.ravel(statistics.diagonal().scatter)[0] / weight  # type: ignore[attr-defined]
        if variance <= 0:
            return None
        grid_variance = np.maximum(grid, 1e-300)
        log_of_mean = np.log(variance + (center - grid) ** 2)  # the variance at its maximum given the mean
        log = -0.5 * weight * (log_of_mean if name == "mean" else np.log(grid_variance) + variance / grid_variance)
    height = np.exp(log - log.max())
    return height / np.trapezoid(height, grid)
