"""Estimated coefficients of a linear regression, their uncertainty, the noise, the priors and the degree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
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
    """Return the family that estimates from the moments."""
    return LinearGaussian() if model.intercept else LinearGaussianThroughOrigin()


def degrees_of(model: Any) -> tuple[int, ...]:
    """Return the candidate degrees, one or several. Raise EstimateError if they are invalid."""
    several = not isinstance(model.degree, int | np.integer) or isinstance(model.degree, bool)
    try:
        degrees = tuple(model.degree) if several else (int(model.degree),)
    except TypeError:
        degrees = ()
    valid = [
        degree
        for degree in degrees
        if isinstance(degree, int | np.integer) and not isinstance(degree, bool) and degree >= 1
    ]
    if not degrees or len(valid) < len(degrees):
        raise EstimateError(
            f"degree is {model.degree!r}; expected a whole number of at least 1, or several, such as range(1, 6)."
        )
    return tuple(int(degree) for degree in degrees)


def read_pairs(model: Any, degree: int) -> list[tuple[Factor, Moments]]:
    """Return the factor and moments of every target, restricted to the terms with a coefficient at this degree."""
    design = model._design
    tally = model.tally_
    if degree > design.degree:
        raise EstimateError(
            f"degree is {degree}, but products were counted up to degree {design.degree}.\n"
            f"    Refit with degree={degree}; reestimate gives every lower degree from the same counts."
        )
    names = design.read_columns(levels_of(design, tally), degree, intercept=model.intercept)
    pairs = []
    for factor, moments in target_moments(design, tally):
        position = {name: index for index, name in enumerate(factor.columns)}
        columns = (*names, factor.columns[-1])
        selected = moments
        if columns != factor.columns:
            selected = moments.columns(np.array([position[name] for name in columns], dtype=np.intp))
        pairs.append((Factor(columns, factor.given, family_of(model)), selected))
    return pairs


def estimated_at_degree(model: Any, degree: int) -> EstimatedFactors:
    """Return the estimated factors of all targets at this degree."""
    by_degree = model._cached("fitted", dict)
    if degree not in by_degree:
        by_degree[degree] = EstimatedFactors(read_pairs(model, degree), priors_of(model), model.estimate)
    return by_degree[degree]


def priors_of(model: Any) -> list[Any]:
    """Return the prior of every target, as the user gave it."""
    prior = model.prior
    targets = model._design.targets
    if not isinstance(prior, Mapping):
        return [prior] * len(targets)
    unknown = [name for name in prior if name not in targets]
    if unknown:
        raise PriorError.unknown_column(unknown, targets)
    return [prior.get(name) for name in targets]


def degree_in_use(model: Any) -> int:
    """Return the degree in use: of several, the one with the largest log evidence."""
    check_is_fitted(model, "tally_")
    degrees = model._degrees()
    if len(degrees) == 1:
        return degrees[0]
    return model._cached(
        "degree", lambda: max(degrees, key=lambda degree: estimated_at_degree(model, degree).evidence().log_evidence)
    )


def all_targets(model: Any) -> EstimatedFactors:
    """Return the estimated factors of all targets at the degree in use."""
    check_is_fitted(model, "tally_")
    return estimated_at_degree(model, degree_in_use(model))


class LinearCoefficients(NamedTuple):
    """The coefficients of one target in every group, as needed for predictions."""

    slope: np.ndarray  # (groups, terms)
    intercept: np.ndarray  # (groups,)
    center: np.ndarray  # (groups, terms)
    noise: np.ndarray  # (groups,): the variance
    posterior: LinearNormalInverseGamma | None  # under "bayes"


def weights_of(model: Any) -> list[LinearCoefficients]:
    """Return the coefficients of every target."""
    return model._cached(
        "weights", lambda: [_weights(scorer.point, scorer.parameters) for scorer in all_targets(model).scorers]
    )


def _weights(line: LinearParameters, parameters: Any) -> LinearCoefficients:
    """Return the coefficients of one target from its point estimate and its parameters."""
    slope = np.atleast_2d(np.asarray(line.slope))
    n, p = slope.shape
    noise = np.broadcast_to(np.asarray(line.variance, dtype=float), (n,))
    if isinstance(parameters, ParameterDistribution):
        assert isinstance(parameters, LinearNormalInverseGamma)
        intercept = np.broadcast_to(parameters.intercept_location, (n,))
        return LinearCoefficients(slope, intercept, np.broadcast_to(parameters.input_center, (n, p)), noise, parameters)
    intercept = np.broadcast_to(np.asarray(line.intercept, dtype=float), (n,))
    return LinearCoefficients(slope, intercept, np.zeros((n, p)), noise, None)


def _shaped(model: Any, parts: list[Any]) -> Any:
    """Return numbers of all targets as one array, without the axis of targets if y was one-dimensional."""
    array = np.stack([np.asarray(part, dtype=float) for part in parts])
    shaped = array[0] if model._design.single else array
    return float(shaped) if shaped.ndim == 0 else shaped


def coef(model: Any) -> np.ndarray:
    """The coefficients, in the order of ``terms_``: ([targets,] [groups,] terms)."""
    return _shaped(model, [scorer.point.slope for scorer in all_targets(model).scorers])


def intercept(model: Any) -> Any:
    """The intercepts: ([targets,] [groups])."""
    return _shaped(model, [scorer.point.intercept for scorer in all_targets(model).scorers])


def noise(model: Any) -> Any:
    """The standard deviations of the noise: ([targets,] [groups])."""
    return _shaped(model, [np.sqrt(scorer.point.variance) for scorer in all_targets(model).scorers])


def terms(model: Any) -> list[Name]:
    """The names of the terms: columns, powers, products and indicators "column=level" of non-reference levels."""
    return list(all_targets(model).pairs[0][0].columns[:-1])


def posteriors(model: Any) -> dict[Name, Any]:
    """The posterior distribution of the coefficients and noise of every target, whatever the estimate."""
    estimated = all_targets(model)
    return {name: estimated.posterior(index) for index, name in enumerate(model._design.targets)}


def priors(model: Any) -> dict[Name, Any]:
    """The resolved prior of every target; ``prior=`` accepts it."""
    return dict(zip(model._design.targets, all_targets(model).prior_distributions, strict=True))


class CoefficientTable:
    """Coefficients of a regression with standard errors and intervals. `LinearRegression.coefficient_table` returns it.

    Attributes
    ----------
    rows : list of tuple
        (target, group, term, coefficient, standard error, low, high).
    mass : float
        The probability of the intervals.

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
        self.title = title
        self.rows = rows
        self.mass = mass

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per coefficient."""
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
    """Return the coefficients, their standard errors and intervals.

    Under ``"map"`` and ``"bayes"`` the intervals are credible intervals of the Student t posterior. Under ``"mle"`` and
    ``"unbiased"`` they are the confidence intervals of least squares, as R's ``confint(lm(...))`` computes them.

    Parameters
    ----------
    mass : float, default 0.95
        The probability of the intervals.

    Returns
    -------
    CoefficientTable
    """
    estimated = all_targets(model)
    ends = tail_probabilities(mass)
    design = model._design
    rows = []
    for index, target in enumerate(design.targets):
        (factor, moments) = estimated.pairs[index]
        scorer = estimated.scorers[index]
        posterior, scale = _uncertainty(estimated, index)
        slopes, at_zero = posterior._variances()
        from scipy.special import stdtrit

        groups = [None] if design.by is None else list(model.tally_.domains[str(design.by)].levels)
        for code, group in enumerate(groups):
            group_index = () if group is None else (code,)
            slope = np.asarray(scorer.point.slope)[group_index]
            constant = np.asarray(scorer.point.intercept)[group_index]
            freedom = 2 * np.broadcast_to(posterior.shape, moments.given_shape)[group_index]
            unit = np.broadcast_to(scale, moments.given_shape)[group_index]
            rows_of_terms = [*zip(factor.columns[:-1], slope, slopes[group_index], strict=True)]
            if model.intercept:
                rows_of_terms.insert(0, ("intercept", constant, np.asarray(at_zero)[group_index]))
            for term, weight, variance in rows_of_terms:
                error = float(np.sqrt(unit * variance))
                low, high = (float(weight + stdtrit(freedom, end) * error) for end in ends)
                rows.append((target, group, term, float(weight), error, low, high))
    name = design.targets[0] if len(design.targets) == 1 else f"{len(design.targets)} targets"
    title = f"{name}, weights of {model.n_rows_:.12g} rows, {100 * mass:.6g} % intervals"
    return CoefficientTable(title, rows, mass)


def _uncertainty(estimated: EstimatedFactors, index: int) -> tuple[LinearNormalInverseGamma, np.ndarray]:
    """Return the posterior that describes the uncertainty of the coefficients, and the variance of its unit."""
    if estimated.has_prior:
        posterior = estimated.posterior(index)
        return posterior, posterior.scale / posterior.shape
    factor, moments = estimated.pairs[index]
    family: Any = factor.family
    line = family.unbiased(moments)
    p = moments.n_columns - 1
    weight = moments.weight[..., 0]
    n_coefficients = p + family.intercept
    freedom = np.maximum(weight - n_coefficients, 1e-12)  # the degrees of freedom that are left
    strength = 0.0 if family.intercept else None
    posterior = LinearNormalInverseGamma(np.zeros(p), np.zeros((p, p)), 1.0, 1.0, strength=strength).update(moments)
    return posterior.replace(shape=freedom / 2), np.asarray(line.variance)
