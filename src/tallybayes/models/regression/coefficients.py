"""The lines that follow from the counts: weights, noise, priors, and which degree is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.text_table import text_table
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma, LinearParameters
from tallybayes.distributions.parameter_distribution import ParameterDistribution, tail_probabilities
from tallybayes.errors import EstimateError, PriorError
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.families.linear_gaussian import LinearGaussian, LinearGaussianThroughOrigin
from tallybayes.models.regression.regression_counts import levels_of, target_moments
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor, Name

if TYPE_CHECKING:
    import pandas as pd


def family_of(model: Any) -> LinearGaussian:
    """The family that reads the moments."""
    return LinearGaussian() if model.intercept else LinearGaussianThroughOrigin()


def degrees_of(model: Any) -> tuple[int, ...]:
    """The degrees to choose from: one, or several."""
    several = not isinstance(model.degree, int | np.integer) or isinstance(model.degree, bool)
    try:
        found = tuple(model.degree) if several else (int(model.degree),)
    except TypeError:
        found = ()
    whole_ones = [one for one in found if isinstance(one, int | np.integer) and not isinstance(one, bool) and one >= 1]
    if not found or len(whole_ones) < len(found):
        raise EstimateError(
            f"degree is {model.degree!r}; expected a whole number of at least 1, or several, such as range(1, 6)."
        )
    return tuple(int(one) for one in found)


def read_pairs(model: Any, degree: int) -> list[tuple[Factor, Moments]]:
    """Every target's factor and moments, of the terms that have a weight at this degree."""
    design, tally = model._design, model.tally_
    if degree > design.degree:
        raise EstimateError(
            f"degree is {degree}, but products were counted up to degree {design.degree} only.\n"
            f"    Fit again with degree={degree}; every lower one can then be had from the same counts."
        )
    names = design.read_columns(levels_of(design, tally), degree, intercept=model.intercept)
    pairs = []
    for factor, moments in target_moments(design, tally):
        where = {name: place for place, name in enumerate(factor.columns)}
        columns = (*names, factor.columns[-1])
        kept = moments
        if columns != factor.columns:
            kept = moments.columns(np.array([where[name] for name in columns], dtype=np.intp))
        pairs.append((Factor(columns, factor.given, family_of(model)), kept))
    return pairs


def estimated_at_degree(model: Any, degree: int) -> EstimatedFactors:
    """The lines of every target at this degree, after estimating."""
    made = model._cached("fitted", dict)
    if degree not in made:
        made[degree] = EstimatedFactors(read_pairs(model, degree), priors_of(model), model.estimate)
    return made[degree]


def priors_of(model: Any) -> list[Any]:
    """The prior meant for every target."""
    prior, targets = model.prior, model._design.targets
    if not isinstance(prior, Mapping):
        return [prior] * len(targets)
    unknown = [name for name in prior if name not in targets]
    if unknown:
        raise PriorError.unknown_column(unknown, targets)
    return [prior.get(name) for name in targets]


def degree_in_use(model: Any) -> int:
    """The degree that is read: of several, the one under which the targets are most probable."""
    check_is_fitted(model, "tally_")
    found = model._degrees()
    if len(found) == 1:
        return found[0]
    return model._cached(
        "degree", lambda: max(found, key=lambda one: estimated_at_degree(model, one).evidence().log_evidence)
    )


def all_targets(model: Any) -> EstimatedFactors:
    """The lines of all targets, after estimating."""
    check_is_fitted(model, "tally_")
    return estimated_at_degree(model, degree_in_use(model))


class LinearCoefficients(NamedTuple):
    """The lines of one target, in every group: how rows are answered."""

    slope: np.ndarray  # (groups, terms)
    intercept: np.ndarray  # (groups,)
    center: np.ndarray  # (groups, terms)
    noise: np.ndarray  # (groups,): the variance
    posterior: LinearNormalInverseGamma | None  # under "bayes"


def weights_of(model: Any) -> list[LinearCoefficients]:
    """The lines of every target."""
    return model._cached("weights", lambda: [_weights(one.point, one.parameters) for one in all_targets(model).scorers])


def _weights(line: LinearParameters, parameters: Any) -> LinearCoefficients:
    slope = np.atleast_2d(np.asarray(line.slope))
    n, p = slope.shape
    noise = np.broadcast_to(np.asarray(line.variance, dtype=float), (n,))
    if isinstance(parameters, ParameterDistribution):
        assert isinstance(parameters, LinearNormalInverseGamma)
        level = np.broadcast_to(parameters.intercept_location, (n,))
        return LinearCoefficients(slope, level, np.broadcast_to(parameters.input_center, (n, p)), noise, parameters)
    level = np.broadcast_to(np.asarray(line.intercept, dtype=float), (n,))
    return LinearCoefficients(slope, level, np.zeros((n, p)), noise, None)


def _shaped(model: Any, parts: list[Any]) -> Any:
    """Numbers of every target: without an axis where there is one target, as y was."""
    array = np.stack([np.asarray(part, dtype=float) for part in parts])
    found = array[0] if model._design.single else array
    return float(found) if found.ndim == 0 else found


def coef(model: Any) -> np.ndarray:
    """The slopes, as ``terms_`` are ordered: ([targets,] [groups,] terms)."""
    return _shaped(model, [one.point.slope for one in all_targets(model).scorers])


def intercept(model: Any) -> Any:
    """Where the inputs are 0: ([targets,] [groups])."""
    return _shaped(model, [one.point.intercept for one in all_targets(model).scorers])


def noise(model: Any) -> Any:
    """The standard deviation of targets about the line: ([targets,] [groups])."""
    return _shaped(model, [np.sqrt(one.point.variance) for one in all_targets(model).scorers])


def terms(model: Any) -> list[Name]:
    """What the weights are of: columns, their powers and products, and labels but the first, "column=label"."""
    return list(all_targets(model).pairs[0][0].columns[:-1])


def posteriors(model: Any) -> dict[Name, Any]:
    """What is believed of every target's weights and noise, whatever the estimate makes of it."""
    found = all_targets(model)
    return {name: found.posterior(place) for place, name in enumerate(model._design.targets)}


def priors(model: Any) -> dict[Name, Any]:
    """The prior of every target as resolved; ``prior=`` takes it."""
    return dict(zip(model._design.targets, all_targets(model).prior_distributions, strict=True))


class CoefficientTable:
    """The weights of a regression, with their uncertainty. Made by ``model.table()``.

    Attributes
    ----------
    rows : list of tuple
        (target, group, term, weight, error, low, high).
    mass : float
        Of the intervals.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"x": [1.0, 2.0, 3.0, 4.0], "y": [3.1, 4.9, 7.0, 9.0]}
    >>> tb.LinearRegression(estimate="unbiased").fit(rows, "y").coefficient_table()
    y, weights of 4 rows, 95 % intervals
      term       weight    error  low     high
      intercept    1.05   0.1162  0.5501  1.55
      x            1.98  0.04243  1.797   2.163
    """

    def __init__(self, title: str, rows: list[tuple[Any, ...]], mass: float) -> None:
        self.title, self.rows, self.mass = title, rows, mass

    def to_frame(self) -> pd.DataFrame:
        """One line for every weight, as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=["target", "group", "term", "weight", "error", "low", "high"])

    def __repr__(self) -> str:
        groups = any(row[1] is not None for row in self.rows)
        several = len({row[0] for row in self.rows}) > 1
        lines: list[tuple[str, ...]] = [("term", "weight", "error", "low", "high")]
        for target, group, term, *numbers in self.rows:
            name = " ".join([*([f"{target}:"] if several else []), *([f"[{group}]"] if groups else []), str(term)])
            lines.append((name, *(f"{number:.4g}" for number in numbers)))
        return "\n".join([self.title, *text_table(lines, right=(1, 2))])


def table(model: Any, mass: float = 0.95) -> CoefficientTable:
    """The weights, their standard errors, and intervals that hold them.

    Under ``"map"`` and ``"bayes"`` credible intervals, of the posterior's Student t; under ``"mle"`` and ``"unbiased"``
    those of least squares, as R's ``lm`` prints them.

    Parameters
    ----------
    mass : float, default 0.95

    Returns
    -------
    WeightTable
    """
    found, ends = all_targets(model), tail_probabilities(mass)
    design, rows = model._design, []
    for place, target in enumerate(design.targets):
        (factor, moments), one = found.pairs[place], found.scorers[place]
        belief, scale = _uncertainty(found, place)
        slopes, at_zero = belief._variances()
        from scipy.special import stdtrit

        groups = [None] if design.by is None else list(model.tally_.domains[str(design.by)].levels)
        for code, group in enumerate(groups):
            index = () if group is None else (code,)
            slope, constant = np.asarray(one.point.slope)[index], np.asarray(one.point.intercept)[index]
            freedom = 2 * np.broadcast_to(belief.shape, moments.given_shape)[index]
            unit = np.broadcast_to(scale, moments.given_shape)[index]
            named = [*zip(factor.columns[:-1], slope, slopes[index], strict=True)]
            if model.intercept:
                named.insert(0, ("intercept", constant, np.asarray(at_zero)[index]))
            for term, weight, variance in named:
                error = float(np.sqrt(unit * variance))
                low, high = (float(weight + stdtrit(freedom, end) * error) for end in ends)
                rows.append((target, group, term, float(weight), error, low, high))
    name = design.targets[0] if len(design.targets) == 1 else f"{len(design.targets)} targets"
    title = f"{name}, weights of {model.n_rows_:.12g} rows, {100 * mass:.6g} % intervals"
    return CoefficientTable(title, rows, mass)


def _uncertainty(found: EstimatedFactors, place: int) -> tuple[LinearNormalInverseGamma, np.ndarray]:
    """The belief that tells how uncertain weights are, and the variance that its unit is."""
    if found.has_prior:
        posterior = found.posterior(place)
        return posterior, posterior.scale / posterior.shape
    factor, moments = found.pairs[place]
    family: Any = factor.family
    line, p = family.unbiased(moments), moments.n_columns - 1
    weight = moments.weight[..., 0]
    spent = p + family.intercept
    known = np.maximum(weight - spent, 1e-12)  # the degrees of freedom that are left
    strength = 0.0 if family.intercept else None
    flat = LinearNormalInverseGamma(np.zeros(p), np.zeros((p, p)), 1.0, 1.0, strength=strength).update(moments)
    return flat.replace(shape=known / 2), np.asarray(line.variance)
