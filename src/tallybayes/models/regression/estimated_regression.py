"""EstimatedRegression: the value behind a linear regression, its estimated coefficients and predictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.counting import check_weight
from tallybayes.data.encoding import numeric
from tallybayes.data.indicator_columns import hidden
from tallybayes.data.table import Table
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, EstimateError, LabelError
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.estimation.importance import FeatureImportance, chosen_columns
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.linear_gaussian import LinearGaussian, LinearGaussianThroughOrigin
from tallybayes.models.regression.design_matrix import Design, MissingInputError, codes_of
from tallybayes.models.regression.regression_counts import levels_of, target_moments
from tallybayes.models.regression.target_prediction import TargetPredictive
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import SampleWeights

if TYPE_CHECKING:
    import numpy.typing as npt


class LinearCoefficients(NamedTuple):
    """The coefficients of one target in every group, as needed for predictions."""

    slope: np.ndarray  # (groups, terms)
    intercept: np.ndarray  # (groups,)
    center: np.ndarray  # (groups, terms)
    noise: np.ndarray  # (groups,): the variance
    posterior: LinearNormalInverseGamma | None  # under "bayes"

    @classmethod
    def of(cls, scorer: FactorScorer) -> LinearCoefficients:
        """Return the coefficients of an estimated target."""
        point = scorer.point
        slope = np.atleast_2d(np.asarray(point.slope))
        n, p = slope.shape
        noise = np.broadcast_to(np.asarray(point.variance, dtype=float), (n,))
        posterior = scorer.parameters
        if isinstance(posterior, ParameterDistribution):
            assert isinstance(posterior, LinearNormalInverseGamma)
            intercept = np.broadcast_to(posterior.intercept_location, (n,))
            return cls(slope, intercept, np.broadcast_to(posterior.input_center, (n, p)), noise, posterior)
        intercept = np.broadcast_to(np.asarray(point.intercept, dtype=float), (n,))
        return cls(slope, intercept, np.zeros((n, p)), noise, None)

    def expected(self, x: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Return the expected target of each row of a design matrix, (n,)."""
        if len(self.slope) == 1:
            return (x - self.center[0]) @ self.slope[0] + self.intercept[0]
        return ((x - self.center[group]) * self.slope[group]).sum(axis=1) + self.intercept[group]

    def predictive(self, x: np.ndarray, group: np.ndarray) -> TargetPredictive:
        """Return the predictive distribution of each row of a design matrix."""
        location = self.expected(x, group)
        posterior = self.posterior
        if posterior is None:
            return TargetPredictive(location, np.sqrt(self.noise)[group], np.full(len(x), np.inf))
        n, p = self.slope.shape
        shape, scale = (np.broadcast_to(part, (n,)) for part in (posterior.shape, posterior.scale))
        leverage = np.zeros(len(x))
        for code in range(n):
            rows = np.flatnonzero(group == code)
            leverage[rows] = posterior_of_group(posterior, code, n, p).leverage(x[rows])
        return TargetPredictive(location, np.sqrt(scale[group] / shape[group] * (1 + leverage)), 2 * shape[group])


def posterior_of_group(posterior: LinearNormalInverseGamma, code: int, n: int, p: int) -> LinearNormalInverseGamma:
    """Return the posterior of the coefficients of one of `n` groups, with `p` terms."""

    def of_group(parameter: npt.ArrayLike, *shape: int) -> np.ndarray:
        return np.broadcast_to(np.asarray(parameter), (n, *shape))[code]

    return posterior.replace(
        location=of_group(posterior.location, p),
        precision=of_group(posterior.precision, p, p),
        precision_cholesky=of_group(posterior.precision_cholesky, p, p),
        input_center=of_group(posterior.input_center, p),
        intercept_location=of_group(posterior.intercept_location),
        shape=of_group(posterior.shape),
        scale=of_group(posterior.scale),
        strength=None if posterior.strength is None else of_group(posterior.strength),
    )


@dataclass(frozen=True, eq=False)
class EstimatedRegression:
    """A linear regression estimated from a tally.

    Attributes
    ----------
    design : Design
    tally : Tally
    degrees : tuple of int
        The candidate degrees; the one with the largest log evidence is used.
    estimate : {"bayes", "mle", "map", "unbiased"}
    priors : tuple
        The prior of each target, as the user gave it.
    intercept : bool
    """

    design: Design
    tally: Tally
    degrees: tuple[int, ...]
    estimate: str
    priors: tuple[Any, ...]
    intercept: bool
    _by_degree: dict[int, EstimatedFactors] = field(default_factory=dict, init=False, repr=False)
    _by_missing: dict[bytes, EstimatedRegression] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def levels(self) -> dict[Name, tuple[Any, ...]]:
        """The levels of every categorical column."""
        return levels_of(self.design, self.tally)

    @property
    def groups(self) -> tuple[Any, ...]:
        """The levels of the column `by`; one None without it."""
        by = self.design.by
        return (None,) if by is None else self.tally.domains[str(by)].levels

    def at_degree(self, degree: int) -> EstimatedFactors:
        """Return the estimated factors of all targets at a degree."""
        if degree not in self._by_degree:
            self._by_degree[degree] = EstimatedFactors(self._pairs(degree), self.priors, self.estimate)
        return self._by_degree[degree]

    def _pairs(self, degree: int) -> list[tuple[Factor, Moments]]:
        """Return the factor and moments of every target, of the terms with a coefficient at this degree."""
        if degree > self.design.degree:
            raise EstimateError(
                f"degree is {degree}, but products were counted up to degree {self.design.degree}.\n"
                f"    Refit with degree={degree}; reestimate gives every lower degree from the same counts."
            )
        names = self.design.read_columns(self.levels, degree, intercept=self.intercept)
        family = LinearGaussian() if self.intercept else LinearGaussianThroughOrigin()
        pairs = []
        for factor, moments in target_moments(self.design, self.tally):
            columns = (*names, factor.columns[-1])
            if columns != factor.columns:
                position = {name: index for index, name in enumerate(factor.columns)}
                moments = moments.columns(np.array([position[name] for name in columns], dtype=np.intp))
            pairs.append((Factor(columns, factor.given, family), moments))
        return pairs

    @cached_property
    def degree(self) -> int:
        """The degree in use: of several candidates, the one with the largest log evidence."""
        if len(self.degrees) == 1:
            return self.degrees[0]
        return max(self.degrees, key=lambda degree: self.at_degree(degree).evidence().log_evidence)

    @property
    def factors(self) -> EstimatedFactors:
        """The estimated factors of all targets at the degree in use."""
        return self.at_degree(self.degree)

    @property
    def terms(self) -> list[Name]:
        """The names of the terms with a coefficient."""
        return list(self.factors.pairs[0][0].columns[:-1])

    @cached_property
    def coefficients(self) -> list[LinearCoefficients]:
        """The coefficients of every target."""
        return [LinearCoefficients.of(scorer) for scorer in self.factors.scorers]

    def by_target(self, parts: list[Any]) -> Any:
        """Return numbers of all targets as one array, without the axis of targets if y was one-dimensional."""
        array = np.stack([np.asarray(part, dtype=float) for part in parts])
        shaped = array[0] if self.design.single else array
        return float(shaped) if shaped.ndim == 0 else shaped

    # ---- Prediction -------------------------------------------------------------------------------------------------

    def design_matrix(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the terms of some rows, (n, terms), and their group codes, (n,)."""
        columns = self.design._replace(degree=self.degree).expand(table, self.levels)
        x = np.zeros((table.n_rows, len(self.terms)))
        for index, name in enumerate(self.terms):
            x[:, index] = columns[name]
        if self.design.by is None:
            return x, np.zeros(table.n_rows, dtype=np.intp)
        codes, local_codes = codes_of(table, self.design.by, self.groups)
        group_of_code = np.full(int(codes.max(initial=0)) + 1, -1, dtype=np.intp)
        for group, level in enumerate(self.groups):
            if 0 <= local_codes[level] < len(group_of_code):
                group_of_code[local_codes[level]] = group
        return x, group_of_code[codes]

    def expected(self, table: Table) -> np.ndarray:
        """Return the expected target of each row, (n,) or (n, targets)."""
        try:
            x, group = self.design_matrix(table)
        except (MissingInputError, LabelError):
            return self.predictive(table).mean()
        return self.design.shape([coefficients.expected(x, group) for coefficients in self.coefficients])

    def predictive(self, table: Table) -> TargetPredictive:
        """Return the predictive distribution of each row; a missing input is removed from the regression."""
        try:
            x, group = self.design_matrix(table)
        except (MissingInputError, LabelError):
            missing = self.design.missing(table, self.levels)
            if not missing.any():
                raise
        else:
            parts = [coefficients.predictive(x, group) for coefficients in self.coefficients]
            return TargetPredictive(*(self.design.shape(list(part)) for part in zip(*parts, strict=True)))
        patterns, pattern_of_row = np.unique(missing, axis=0, return_inverse=True)
        shape = (table.n_rows,) if self.design.single else (table.n_rows, len(self.design.targets))
        out = TargetPredictive(*(np.full(shape, np.nan) for _ in range(3)))
        for number, pattern in enumerate(patterns):
            rows = np.flatnonzero(pattern_of_row.reshape(-1) == number)
            for all_rows, part in zip(out, self.without_inputs(pattern).predictive(table.rows(rows)), strict=True):
                all_rows[rows] = part
        return out

    def without_inputs(self, missing: np.ndarray) -> EstimatedRegression:
        """Return the regression on the other inputs only, from the same counts."""
        inputs = (*self.design.numbers, *self.design.labels)
        names = {name for name, is_missing in zip(inputs, missing, strict=True) if is_missing}
        if not names:
            return self
        key = missing.tobytes()
        if key not in self._by_missing:
            if any(np.ndim(getattr(prior, "location", 0.0)) for prior in self.priors):
                raise DataError(
                    f"column {min(names, key=str)!r} is missing in some row, and prior= has a parameter for every "
                    "term; expected all inputs.\n    Impute the cell, or use a prior with scalar parameters."
                )
            self._by_missing[key] = replace(self, design=self.design.without(names), degrees=(self.degree,))
        return self._by_missing[key]

    # ---- Uncertainty of the coefficients ----------------------------------------------------------------------------

    def uncertainty(self, index: int) -> tuple[LinearNormalInverseGamma, np.ndarray]:
        """Return the posterior that describes the uncertainty of a target's coefficients, and its unit of variance."""
        factors = self.factors
        if factors.has_prior:
            posterior = factors.posterior(index)
            return posterior, posterior.scale / posterior.shape
        factor, moments = factors.pairs[index]
        family: Any = factor.family
        p = moments.n_columns - 1
        strength = 0.0 if self.intercept else None
        posterior = LinearNormalInverseGamma(np.zeros(p), np.zeros((p, p)), 1.0, 1.0, strength=strength).update(moments)
        freedom = np.maximum(moments.weight[..., 0] - (p + self.intercept), 1e-12)
        return posterior.replace(shape=freedom / 2), np.asarray(family.unbiased(moments).variance)


def feature_importance(
    estimates: EstimatedRegression, table: Table, columns: Iterable[Name] | None, sample_weight: SampleWeights
) -> FeatureImportance:
    """Return the increase of the log loss of the targets in a table without each input column."""
    if table.n_rows == 0:
        raise DataError("X has 0 rows; expected at least 1 row with a target.")
    design = estimates.design
    targets = design.shape([np.asarray(numeric(table.column(name), "y"), dtype=float) for name in design.targets])

    def loss(rows: Table) -> np.ndarray:
        logs = estimates.predictive(rows).log_prob(targets)
        return -(logs if logs.ndim == 1 else logs.sum(axis=1))

    names = chosen_columns(columns, [*design.numbers, *design.labels])
    base = loss(table)
    increases = [loss(hidden(table, [name])) - base for name in names]
    return FeatureImportance.of_losses(names, base, increases, check_weight(sample_weight, table.n_rows, any_size=True))
