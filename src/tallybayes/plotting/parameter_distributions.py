"""Beliefs: densities of parameters, probabilities of levels and of hypotheses; what data made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.hypotheses import Hypotheses
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma, LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart
from tallybayes.errors import DataError
from tallybayes.plotting.plot import Plot, PlotTable
from tallybayes.plotting.style import (
    COLORS,
    WIDEST,
    GroupStyle,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    new_axes,
    panels,
    set_title,
    ticks,
    words,
)

if TYPE_CHECKING:
    from tallybayes.estimation.distribution_fit import FittedDistribution

PRIOR, LIKELIHOOD, POSTERIOR = COLORS[1], COLORS[2], COLORS[0]
_ESTIMATES = {"mle": ("maximum likelihood", COLORS[2], ":"), "map": ("posterior mode", COLORS[5], "--")}
_ESTIMATES |= {"bayes": ("posterior mean", COLORS[0], "-")}
_LEVELS = 30  # levels and hypotheses with a line of their own
_PLACES = 400


def plot_belief(belief: Any, ax: Any = None) -> Plot:
    """A belief: the density of every parameter with its mean and 95 % interval; of levels, intervals.

    Parameters
    ----------
    belief : Belief
    ax : matplotlib Axes, optional
        One for every parameter: two for means and variances.
    """
    if isinstance(belief, Hypotheses):
        return plot_hypotheses(belief, ax)
    if isinstance(belief, Dirichlet):
        return _plot_levels({"belief": belief}, {}, None, ax)
    margins = _margins(belief)
    axes = np.ravel(new_axes(ax, ncols=len(margins), figsize=(5.4 * len(margins), 3.6), layout="constrained"))
    parts: list[PlotTable] = []
    for panel, (name, margin) in zip(axes, margins.items(), strict=False):
        several = _several(margin)
        names = _each(belief, len(several))
        look = group_styles(names, what="beliefs") if len(several) > 1 else [GroupStyle(POSTERIOR, None, own=True)]
        at = _range(name, several)
        for k, (one, how) in enumerate(zip(several, look, strict=True)):
            density = one.pdf(at)
            label = how.label if len(several) > 1 else "density"
            panel.plot(at, density, color=how.color, linewidth=1.8 if how.own else 0.7, label=label)
            if len(several) == 1:
                _shade(panel, one, at, density)
            parts.append({"belief": names[k], "parameter": name, "value": at, "density": density})
        _frame(panel, name, [_density_of(several, at)])
        panel.legend(frameon=False, fontsize=9) if len(several) == 1 else legend_beside(panel)
    if len(parts) == len(margins):
        set_title(axes[0], words(belief, 80))
    return Plot(axes, *parts)


def _each(belief: Any, n: int) -> list[str]:
    """The name of every one of the beliefs in an array of them: how it would be written alone."""
    if isinstance(belief, NormalInverseWishart | LinearNormalInverseGamma):
        return [f"column {k}" for k in range(n)]
    arrays = [
        np.ravel(part) for part in np.broadcast_arrays(*(getattr(belief, one.name) for one in fields(belief)[:4]))
    ]
    kind = type(belief)
    return [repr(kind(*(float(part) for part in values))) for values in zip(*arrays, strict=True)]


def plot_hypotheses(belief: Hypotheses, ax: Any = None, *, learned: FittedDistribution | None = None) -> Plot:
    """The probability of every hypothesis, before and after data where there were any; steps on a grid of numbers.

    Parameters
    ----------
    belief : Hypotheses
    ax : matplotlib Axes, optional
    learned : Learned, optional
        The data: the likelihood is drawn, too.
    """
    if np.ndim(belief.log_weights) > 1:
        raise DataError("hypotheses about several groups are not drawn together; expected those of one.")
    names = belief.names
    before = belief._prior_weights()
    before, after = before / before.sum(), np.exp(belief.log_weights)
    sides = {"prior": (before, PRIOR), "posterior": (after, POSTERIOR)}
    if learned is not None:
        log_likelihood = learned._prior(belief)._log_likelihoods(learned.statistics)  # type: ignore[attr-defined]
        likely = np.exp(log_likelihood - log_likelihood.max())
        sides["likelihood"] = (likely / likely.sum(), LIKELIHOOD)
    elif np.allclose(before, after, rtol=1e-12):
        sides = {"probability": (after, POSTERIOR)}
    part = {"hypothesis": names, **{name: values for name, (values, _) in sides.items()}}
    numeric = all(isinstance(name, int | float | np.number) for name in names) and len(names) > 8
    if numeric:
        ax = new_axes(ax, figsize=(6.4, 3.8), layout="constrained")
        for name, (values, color) in sides.items():
            fill = 0.3 if name in ("posterior", "probability") else 0.0
            ax.fill_between(names, values, step="mid", color=color, alpha=fill, linewidth=0)
            ax.step(names, values, where="mid", color=color, linewidth=1.6, label=name)
        ax.set_xlabel("hypothesis")
        ax.set_ylabel(f"probability of each of {len(names)} values")
        ax.set_ylim(bottom=0)
    else:
        kept = np.sort(np.argsort(-np.maximum(before, after), kind="stable")[:_LEVELS])
        ax = new_axes(ax, figsize=(6.4, 1.2 + 0.34 * len(kept)), layout="constrained")
        height = 0.8 / len(sides)
        for k, (name, (values, color)) in enumerate(sides.items()):
            ax.barh(np.arange(len(kept)) + (k - (len(sides) - 1) / 2) * height, values[kept], height, color=color)
            ax.plot([], [], color=color, linewidth=6, label=name)
        ax.set_ylim(len(kept) - 0.4, -0.6)
        ticks(ax, "y", [names[k] for k in kept])
        ax.set_xlim(0, 1)
        ax.set_xlabel("probability")
        if len(kept) < len(names):
            set_title(ax, f"the {len(kept)} most probable of {len(names)} hypotheses")
    if len(sides) > 1:
        legend_beside(ax)
    hide_top_right_spines(ax)
    return Plot(ax, part)


def plot_learned(learned: FittedDistribution, prior: Any = None, ax: Any = None) -> Plot:
    """Prior, likelihood and posterior of what was learned, with the estimates marked.

    Of several groups or columns, the posteriors alone.

    Parameters
    ----------
    learned : Learned
    prior : as for `Learned.posterior`, optional
    ax : matplotlib Axes, optional
    """
    if isinstance(prior, Hypotheses):
        return plot_hypotheses(learned.posterior(prior), ax, learned=learned)
    before, after = learned._prior(prior), learned._posterior(prior)
    if isinstance(after, Dirichlet):
        # The prior in the shape of the statistics: what nothing was added to.
        beliefs = {"prior": before.update(learned.statistics.scale(0.0)), "posterior": after}
        return _plot_levels(beliefs, _point_estimates(learned, before), learned, ax)
    margins = {name: _several(margin) for name, margin in _margins(after).items()}
    n = len(next(iter(margins.values())))
    if n > 1:
        return _plot_several(learned, margins, ax)
    shaped = {name: _several(margin) for name, margin in _margins(before.update(learned.statistics.scale(0.0))).items()}
    axes = np.ravel(new_axes(ax, ncols=len(margins), figsize=(5.8 * len(margins), 3.8), layout="constrained"))
    points, parts = _point_estimates(learned, before), []
    for panel, name in zip(axes, margins, strict=False):
        known = [_of_parameter(point, name) for point in points.values()]
        at = _range(name, margins[name], extra=[value for value in known if np.isfinite(value)])
        curves = {"prior": shaped[name][0].pdf(at), "posterior": margins[name][0].pdf(at)}
        likely = _likelihood(learned, name, at)
        if likely is not None:
            curves["likelihood"] = likely
        colors = {"prior": PRIOR, "likelihood": LIKELIHOOD, "posterior": POSTERIOR}
        for curve in ("prior", "likelihood", "posterior"):
            if curve in curves:
                shown = "likelihood, scaled" if curve == "likelihood" else curve
                panel.plot(at, curves[curve], color=colors[curve], linewidth=1.8, label=shown)
                parts.append({"curve": curve, "parameter": name, "value": at, "density": curves[curve]})
        _shade(panel, margins[name][0], at, curves["posterior"], label=None)
        _frame(panel, name, [curves["posterior"], curves.get("likelihood", curves["posterior"])])
        for estimate, point in points.items():
            _mark(panel, estimate, _of_parameter(point, name), at, joint=len(margins) > 1)
        panel.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    weight = float(np.max(learned.family.row_weight(learned.statistics), initial=0.0))
    named = words(_shown(before))
    named = named if len(named) <= WIDEST else type(before).__name__  # its numbers would fill the picture
    set_title(axes[0], f"{words(learned.family, WIDEST)}, weight {weight:.6g}", f"prior {named}")
    return Plot(axes, *parts)


def _shown(belief: Any) -> Any:
    """A belief about one column as it would be written for it."""
    try:
        return belief.column(0)
    except (IndexError, NotImplementedError):
        return belief


def _plot_several(learned: FittedDistribution, margins: dict[str, list[Any]], ax: Any) -> Plot:
    """The posteriors of every group and column, and the names of both."""
    names = _names(learned, len(next(iter(margins.values()))))
    axes = np.ravel(new_axes(ax, ncols=len(margins), figsize=(5.4 * len(margins), 3.8), layout="constrained"))
    parts: list[PlotTable] = []
    look = group_styles(names, what="others")
    for panel, (name, several) in zip(axes, margins.items(), strict=False):
        at = _range(name, several)
        for k, one in enumerate(several):
            density = one.pdf(at)
            line = {"linewidth": 1.8, "zorder": 3} if look[k].own else {"linewidth": 0.7, "zorder": 2}
            panel.plot(at, density, color=look[k].color, label=look[k].label, **line)
            shown = names[k]
            parts.append({"of": shown, "parameter": name, "value": at, "density": density})
        _frame(panel, name, [_density_of(several, at)])
    legend_beside(axes[-1])
    set_title(axes[0], f"{words(learned.family, 40)}: posteriors")
    return Plot(axes, *parts)


def _names(learned: FittedDistribution, n: int) -> list[str]:
    """What every posterior is of: its group, its column, or both."""
    groups = [str(group) for group in learned.groups] or [""]
    per = n // len(groups)
    factor = learned.tally.factors[0]
    columns = [""] if per == 1 else [str(factor.column(place, per)) for place in range(per)]
    return [", ".join(part for part in (group, column) if part) or "all" for group in groups for column in columns]


def _plot_levels(beliefs: dict[str, Any], points: dict[str, Any], learned: FittedDistribution | None, ax: Any) -> Plot:
    """The mean and the 95 % interval of every level's probability, before and after; estimates beside."""
    last = list(beliefs.values())[-1]
    names, groups = _level_names(last, learned)
    size = len(names)
    mean = np.concatenate([np.ravel(part) for part in _as_arrays(last.mean())]).reshape(len(groups), size)
    width, height = 6.0 if len(groups) == 1 else 4.2, 1.4 + 0.3 * min(size, _LEVELS)
    axes = np.ravel(panels(len(groups), 3, width, height) if ax is None else ax)
    kept = np.sort(np.argsort(-mean.max(axis=0), kind="stable")[:_LEVELS])
    parts: list[PlotTable] = []
    for panel, group, row in zip(axes, groups, range(len(groups)), strict=False):
        for number, (which, belief) in enumerate(beliefs.items()):
            shift = 0.32 * ((len(beliefs) - 1) / 2 - number)
            ends = belief.interval()
            middle, low, high = (
                np.concatenate([np.ravel(part) for part in _as_arrays(each)]).reshape(-1, size)
                for each in (belief.mean(), ends.low, ends.high)
            )
            line = row if len(middle) > 1 else 0
            color = PRIOR if which == "prior" else POSTERIOR
            place = np.arange(len(kept)) - shift
            panel.hlines(place, low[line, kept], high[line, kept], color=color, linewidth=2, alpha=0.6)
            panel.plot(middle[line, kept], place, "o", color=color, markersize=5, label=f"{which}: mean, 95 %")
            numbers = {"mean": middle[line], "low": low[line], "high": high[line]}
            parts.append({"group": group, "level": names, "which": which, **numbers})
        for estimate, mark in (("mle", "x"), ("map", "+")):
            if estimate in points and len(groups) == 1 and isinstance(points[estimate], dict):
                values = np.array([points[estimate][name] for name in names])
                label, color, _ = _ESTIMATES[estimate]
                panel.plot(values[kept], np.arange(len(kept)), mark, color=color, markersize=7, label=label)
        panel.set_ylim(len(kept) - 0.4, -0.6)
        ticks(panel, "y", [names[k] for k in kept], 8.0)
        panel.set_xlabel("probability")
        panel.set_xlim(left=0)
        hide_top_right_spines(panel)
        shown = f"the {len(kept)} most probable of {size} levels" if len(kept) < size else ""
        set_title(panel, words(group, WIDEST) if len(groups) > 1 else "", shown)
    if len(beliefs) > 1 or points:
        legend_beside(axes[min(len(groups), len(axes)) - 1])
    return Plot(axes, *parts)


def _as_arrays(value: Any) -> list[np.ndarray]:
    """The probabilities in a mean or an end of an interval, whatever form they have."""
    return [np.asarray(getattr(value, "table", value), dtype=float)]


def _level_names(belief: Dirichlet, learned: FittedDistribution | None) -> tuple[list[Any], list[Any]]:
    """The levels of all columns in order, and the groups."""
    n = np.concatenate([np.ravel(part) for part in _as_arrays(belief.mean())]).size
    if learned is None:
        size = int(np.shape(_as_arrays(belief.mean())[0])[-1])
        return list(range(size)), [f"group {k}" for k in range(n // size)]
    groups = list(learned.groups) or [""]
    levels = learned.levels
    if not levels:  # the columns of a vocabulary
        return [learned.tally.factors[0].column(k, n // len(groups)) for k in range(n // len(groups))], groups
    flat = list(levels) if learned.single else [level for column in levels for level in column]
    return flat, groups


def _margins(belief: Any) -> dict[str, Any]:
    """The distribution of every parameter alone, as scipy has it; arrays over groups and columns."""
    from scipy import stats

    if isinstance(belief, Beta):
        return {"θ": stats.beta(belief.alpha, belief.beta)}
    if isinstance(belief, Gamma):
        return {"λ": stats.gamma(belief.shape, scale=1 / belief.rate)}
    if isinstance(belief, NormalInverseWishart):
        belief = belief._marginal()
    if isinstance(belief, NormalInverseGamma):
        spread = np.sqrt(belief.scale / (belief.shape * belief.strength))
        mean = stats.t(2 * belief.shape, loc=belief.location, scale=spread)
        return {"mean": mean, "variance": stats.invgamma(belief.shape, scale=belief.scale)}
    if isinstance(belief, LinearNormalInverseGamma):
        slopes, _ = belief._variances()
        unit = (belief.scale / belief.shape)[..., None]
        slope = stats.t(2 * belief.shape[..., None], loc=belief.location, scale=np.sqrt(unit * slopes))
        return {"slope": slope, "variance": stats.invgamma(belief.shape, scale=belief.scale)}
    raise DataError.wrong_type("the belief", type(belief).__name__, "one of the beliefs of this package, to draw it")


def _several(margin: Any) -> list[Any]:
    """An array of distributions as a list of them."""
    from scipy import stats

    arrays = [np.ravel(array) for array in np.broadcast_arrays(*margin.args, *margin.kwds.values())]
    kind, n_args, names = getattr(stats, margin.dist.name), len(margin.args), list(margin.kwds)
    return [
        kind(*values[:n_args], **dict(zip(names, values[n_args:], strict=True))) for values in zip(*arrays, strict=True)
    ]


def _range(name: str, several: Sequence[Any], extra: Sequence[float] = ()) -> np.ndarray:
    """Where densities are drawn: from 0 to 1 for a probability, else where nearly all of them are."""
    if name == "θ":
        return np.linspace(0.0, 1.0, _PLACES + 1)
    low = min(float(one.ppf(0.002)) for one in several)
    high = max(float(one.ppf(0.99 if name == "variance" else 0.998)) for one in several)
    low, high = min([low, *extra]), max([high, *extra])
    edge = 0.05 * (high - low)
    return np.linspace(low - edge if name in ("mean", "slope") else max(low - edge, 0.0), high + edge, _PLACES + 1)


def _density_of(several: Sequence[Any], at: np.ndarray) -> np.ndarray:
    return np.max([one.pdf(at) for one in several], axis=0)


def _shade(panel: Any, one: Any, at: np.ndarray, density: np.ndarray, label: str | None = "95 % interval") -> None:
    """The middle 95 % of a density, and where its mean is."""
    low, high = one.ppf(0.025), one.ppf(0.975)
    inside = (at >= low) & (at <= high)
    finite = np.where(np.isfinite(density), density, 0.0)
    panel.fill_between(at, finite, where=inside, color=POSTERIOR, alpha=0.15, linewidth=0, label=label)
    if label is not None and np.isfinite(one.mean()):
        panel.axvline(float(one.mean()), color=POSTERIOR, linewidth=1, label=f"mean {one.mean():.4g}")


def _frame(panel: Any, name: str, curves: Sequence[np.ndarray]) -> None:
    """Names of the sides; a density without end does not flatten the picture."""
    panel.locator_params(axis="x", nbins=6)
    inner = np.concatenate([curve[1:-1] for curve in curves])
    finite = inner[np.isfinite(inner)]
    peak = float(finite.max(initial=0.0))
    usual = 5 * float(np.median(finite)) if len(finite) and not np.isfinite(np.concatenate(curves)).all() else peak
    panel.set_ylim(0, 1.1 * (min(peak, usual) or peak or 1.0))
    panel.set_xlabel(name)
    panel.set_ylabel("density")
    hide_top_right_spines(panel)


def _mark(panel: Any, which: str, value: float, at: np.ndarray, *, joint: bool) -> None:
    """A line at an estimate, with its value; none where there is none."""
    if np.isfinite(value) and at[0] <= value <= at[-1]:
        label, color, line = _ESTIMATES[which]
        label = f"joint {label}" if joint and which == "map" else label  # not where the curve of one is highest
        panel.axvline(value, color=color, linewidth=1.3, linestyle=line, label=f"{label} {value:.4g}", zorder=4)


def _point_estimates(learned: FittedDistribution, prior: Any) -> dict[str, Any]:
    """The estimates that there are."""
    found = {}
    for estimate in _ESTIMATES:
        try:
            found[estimate] = learned.estimate(estimate, prior=prior)
        except ValueError:  # nothing was counted, or a prior without a mode
            continue
    return found


def _of_parameter(point: Any, name: str) -> float:
    """One number of an estimate."""
    value = getattr(point, name) if isinstance(point, tuple) else point
    return float(np.ravel(np.asarray(value, dtype=float))[0])


def _likelihood(learned: FittedDistribution, name: str, at: np.ndarray) -> np.ndarray | None:
    """The likelihood along one parameter, the other at its best, with an area of 1; None where nothing was counted."""
    statistics, family = learned.statistics, learned.family
    weight = float(np.sum(family.row_weight(statistics)))
    if weight <= 0:
        return None
    if isinstance(family.maximum_likelihood(statistics), LinearParameters):
        return None  # of several weights together, along one of them
    if name in ("θ", "λ"):
        parameters: list[Any] = [np.array([value]) for value in at]
    else:
        center, spread = float(np.ravel(statistics.mean)[0]), float(np.ravel(statistics.diagonal().scatter)[0]) / weight  # type: ignore[attr-defined]
        if spread <= 0:
            return None
        if name == "mean":
            parameters = [Normal(np.array([value]), np.array([spread + (center - value) ** 2])) for value in at]
        else:
            parameters = [Normal(np.array([center]), np.array([max(value, 1e-300)])) for value in at]
    with np.errstate(divide="ignore", over="ignore"):
        log = np.array([float(np.sum(family.log_likelihood(one, statistics))) for one in parameters])
    height = np.exp(log - log.max())
    return height / np.trapezoid(height, at)
