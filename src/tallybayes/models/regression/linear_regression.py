"""Linear and polynomial regression estimated from moments of the inputs and targets."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np
from sklearn.metrics import r2_score

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import StringOptions, is_integer_at_least
from tallybayes.data.data_frames import frame_kind
from tallybayes.errors import EstimateError, PriorError, printable
from tallybayes.estimation.distribution_fit import DescriptionLength
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.estimation.importance import FeatureImportance
from tallybayes.families.estimates import ESTIMATE_WORDS, read_estimate
from tallybayes.models.base import Model
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inspection.information_criteria import weighted_sum
from tallybayes.models.inspection.model_summary import ColumnSummary, Summary
from tallybayes.models.receipt import with_receipt
from tallybayes.models.regression.coefficients import CoefficientTable, coefficient_table
from tallybayes.models.regression.design_matrix import Design
from tallybayes.models.regression.estimated_regression import EstimatedRegression, feature_importance
from tallybayes.models.regression.regression_counts import (
    RegressionCounter,
    align_tallies,
    merge_tallies,
    subtract_tally,
    target_moments,
)
from tallybayes.models.regression.regression_fit import count_first, count_more, open_inputs, read_rows
from tallybayes.models.regression.target_prediction import PredictionArrays, TargetPredictive, predict_targets
from tallybayes.models.sklearn_bases import RegressorMixin
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import Candidates, Labels, Name, RandomState, Rows, SampleWeights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma
    from tallybayes.distributions.parameter_distribution import Interval
    from tallybayes.plotting.plot import Plot

_MOST_TERMS = 6  # that a fitted model's repr shows


class LinearRegression(RegressorMixin, Model):
    """Linear regression on inputs, their powers and products, and indicators of levels, with Gaussian noise.

    The model keeps the joint moments of inputs and targets. From one tally `reestimate` computes least squares, ridge
    regression and the Bayesian predictive distribution, at every lower degree and every λ. Rows can be added, removed,
    and counted inside a database.

    Parameters
    ----------
    degree : int or iterable of int, default 1
        Include all monomials of the numeric columns up to this degree, as scikit-learn's ``PolynomialFeatures`` does.
        Of several degrees, ``range(1, 8)``, the model uses the one with the largest log evidence: ``degree_``.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"mle"`` is least squares, with minimum-norm coefficients if columns are collinear. ``"unbiased"`` divides the
        residual sum of squares by the number of rows minus the number of coefficients. ``"map"`` is ridge regression.
        ``"bayes"`` integrates over coefficients and noise variance: a Student t predictive distribution.
    prior : float, LinearNormalInverseGamma, mapping from target to one, or None
        A number is the ridge penalty λ, added as λ·|w|² to the squared errors, with an unpenalized intercept: ``"map"``
        is then scikit-learn's ``Ridge(alpha=λ)``. None maximizes the evidence over λ, on inputs of unit variance.
    intercept : bool, default True
        Whether to fit an intercept. False fits lines through the origin.
    by : column name, optional
        Fit separate coefficients for every level of this column.
    levels : mapping from column to a sequence of levels or None, optional
        Columns to treat as categorical, and their levels; None takes the levels of the data. Categorical columns become
        indicators. The reference level is the first in sort order, or the first declared.

    Attributes
    ----------
    tally_ : Tally
        The sufficient statistics.
    coef_ : ndarray
        The coefficients of ``terms_``: ([targets,] [groups,] terms).
    intercept_, noise_std_ : float or ndarray
        The intercept, and the standard deviation of the noise.

    Examples
    --------
    >>> import tallybayes as tb
    >>> x, y = [[-2.0], [-1.0], [0.0], [1.0], [2.0]], [5.0, 0.0, 1.0, 1.0, 4.0]
    >>> model = tb.LinearRegression(4, estimate="mle").fit(x, y)          # interpolates all points
    >>> parabola = model.reestimate(degree=2)                       # no data needed
    >>> parabola.predict([[-3.0], [3.0]]).round(2)
    array([10. ,  9.4])
    >>> low, high = parabola.reestimate(estimate="bayes").predict_interval([[3.0]], mass=0.8)
    >>> bool(low[0] < 9 < high[0])
    True
    """

    _string_options: ClassVar[Mapping[str, StringOptions]] = {"estimate": ESTIMATE_WORDS}
    _design: Design
    tally_: Tally

    def __init__(
        self,
        degree: int | Iterable[int] = 1,
        *,
        estimate: str = "bayes",
        prior: float | LinearNormalInverseGamma | Mapping[Any, float | LinearNormalInverseGamma] | None = None,
        intercept: bool = True,
        by: Name | None = None,
        levels: Mapping[Any, Iterable[Any] | None] | None = None,
    ) -> None:
        self.degree = degree
        self.estimate = estimate
        self.prior = prior
        self.intercept = intercept
        self.by = by
        self.levels = levels

    # ---- Fitting ----------------------------------------------------------------------------------------------------

    def fit(self, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> Self:
        """Fit the model to the rows, replacing any earlier counts.

        Parameters
        ----------
        X : array, data frame, mapping of columns, list of dicts; path, source or table of a database
            Numeric, categorical and date columns. Categorical columns become indicators; dates are split into their
            parts. Rows with a missing input are not counted, with a warning.
        y : array-like of shape (n,) or (n, targets), column name of X, or list of column names
            The targets. A missing target (NaN) is skipped, for that target only.
        sample_weight : array-like of shape (n,), or column name of X, optional

        Returns
        -------
        self
        """
        self._check_settings()
        degree = max(self._degrees())
        self._design, tally = count_first(X, y, sample_weight, degree, self.by, self.levels or {})
        self._frame_library = frame_kind(X)
        return self._set_tally(tally)

    def partial_fit(self, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> Self:
        """Count more rows, possibly with new levels; any order and split of the rows gives the same model as `fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        if not hasattr(self, "tally_"):
            return self.fit(X, y, sample_weight)
        more = count_more(self, self._counter, X, y, sample_weight)
        return self._set_tally(merge_tallies(self._design, self.tally_, more))

    @with_receipt
    def forget(self, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> Self:
        """Remove training rows exactly: the model becomes as if they had never been counted.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were counted, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        rows = count_more(self, self._counter, X, y, sample_weight)
        return self._set_tally(subtract_tally(self._design, self.tally_, rows))

    # ---- Estimated parameters ---------------------------------------------------------------------------------------

    @property
    def coef_(self) -> np.ndarray:
        """The coefficients, in the order of ``terms_``: ([targets,] [groups,] terms)."""
        coef: np.ndarray = self._by_target("slope")
        return coef

    @property
    def intercept_(self) -> float | np.ndarray:
        """The intercepts: ([targets,] [groups])."""
        return self._by_target("intercept")

    @property
    def noise_std_(self) -> float | np.ndarray:
        """The standard deviations of the noise: ([targets,] [groups])."""
        estimates = self._estimates
        return estimates.by_target([np.sqrt(scorer.point.variance) for scorer in estimates.factors.scorers])

    @property
    def terms_(self) -> list[Name]:
        """The names of the terms: columns, powers, products and indicators "column=level" of non-reference levels."""
        return self._estimates.terms

    @property
    def degree_(self) -> int:
        """The degree in use: of several, the one with the largest log evidence."""
        return self._estimates.degree

    @property
    def prior_(self) -> dict[Name, Any]:
        """The resolved prior of every target; ``prior=`` accepts it."""
        return dict(zip(self._design.targets, self._all_factors.prior_distributions, strict=True))

    @property
    def posterior_(self) -> dict[Name, Any]:
        """The posterior distribution of the coefficients and noise of every target, whatever the estimate."""
        factors = self._all_factors
        return {name: factors.posterior(index) for index, name in enumerate(self._design.targets)}

    def coefficient_table(self, mass: float = 0.95) -> CoefficientTable:
        """Return the coefficients, their standard errors and intervals.

        Under ``"map"`` and ``"bayes"`` the intervals are credible intervals of the Student t posterior. Under ``"mle"``
        and ``"unbiased"`` they are the confidence intervals of least squares, as R's ``confint(lm(...))`` computes
        them.

        Parameters
        ----------
        mass : float, default 0.95
            The probability of the intervals.

        Returns
        -------
        CoefficientTable
        """
        return coefficient_table(self._estimates, self.n_rows_, mass)

    # ---- Prediction -------------------------------------------------------------------------------------------------

    @overload
    def predict(self, X: Rows, return_std: Literal[False] = False) -> np.ndarray: ...
    @overload
    def predict(self, X: Rows, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...
    @predict_in_batches
    def predict(self, X: Rows, return_std: bool = False) -> Any:
        """Return the expected target of every row.

        Parameters
        ----------
        X : as for `fit`, without the targets
        return_std : bool, default False
            Also return the standard deviation of the predictive distribution. It includes the noise and, under
            ``"bayes"``, the uncertainty of the coefficients.

        Returns
        -------
        ndarray of shape (n,), or (n, targets) if y had two axes; a tuple of two arrays with ``return_std=True``
        """
        if return_std:
            predictive = self.predictive(X)
            return PredictionArrays((predictive.mean(), predictive.std()))
        return self._estimates.expected(open_inputs(self, self._design, X))

    @predict_in_batches
    def predictive(self, X: Rows) -> TargetPredictive:
        """Return the predictive distribution of every row's target: Student t under ``"bayes"``, else normal.

        A row with missing inputs is predicted by the regression on its other inputs, from the same counts.

        Parameters
        ----------
        X : as for `predict`

        Returns
        -------
        TargetPredictive
        """
        return self._estimates.predictive(open_inputs(self, self._design, X))

    def predict_interval(self, X: Rows, mass: float = 0.95) -> Interval:
        """Return equal-tailed predictive intervals of the targets.

        Parameters
        ----------
        X : as for `predict`
        mass : float, default 0.95
            The probability that an interval contains its target.

        Returns
        -------
        Interval
            ``low`` and ``high``, each of the shape of `predict`.
        """
        return self.predictive(X).interval(mass)

    def sample(self, X: Rows, n: int = 1, *, random_state: RandomState = None) -> np.ndarray:
        """Draw targets from the predictive distribution of every row.

        Parameters
        ----------
        X : as for `predict`
        n : int, default 1
            The number of draws per row.
        random_state : int, Generator or None

        Returns
        -------
        ndarray of shape (n, rows), or (n, rows, targets)
        """
        return self.predictive(X).sample(n, random_state=random_state)

    # ---- Evaluation -------------------------------------------------------------------------------------------------

    def score(self, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> float:
        """Return the coefficient of determination R²: 1 at best, 0 for predicting the mean.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. Rows with a missing target are skipped.
        """
        predictive, targets, weight = predict_targets(self, X, y, sample_weight)
        known = ~np.isnan(targets).any(axis=tuple(range(1, targets.ndim)))
        weight = None if weight is None else np.asarray(weight)[known]
        return float(r2_score(targets[known], predictive.mean()[known], sample_weight=weight))

    def log_prob(self, X: Rows, y: Labels | None = None) -> np.ndarray:
        """Return log p(targets | inputs) of every row, in nats; a missing target adds 0.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        ndarray of shape (n,)
        """
        return predict_targets(self, X, y).log_prob()

    def log_likelihood(self, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> float:
        """Return the weighted sum of log p(targets | inputs) over the rows, in nats.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        predicted = predict_targets(self, X, y, sample_weight)
        return weighted_sum(predicted.log_prob(), predicted.weight)

    def feature_importance(
        self,
        X: Rows,
        y: Labels | None = None,
        *,
        columns: Iterable[Name] | None = None,
        sample_weight: SampleWeights = None,
    ) -> FeatureImportance:
        """Return the increase of the log loss, −log p(targets | inputs), without each input column.

        A column is removed as if its cells were missing: with the same rows this is the regression on the other
        columns. Permutation importance replaces the cells by those of other rows instead. Use rows that the model was
        not fitted on.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; missing targets add nothing.
        columns : list of names, optional
            The columns to remove, one at a time; all inputs if left out.

        Returns
        -------
        FeatureImportance
            It prints as a table; see ``to_frame()`` and ``plot()``.

        Examples
        --------
        >>> import tallybayes as tb
        >>> rows = {"size": [1.0, 2.0, 3.0, 4.0] * 5, "noise": [0.3, 0.1] * 10, "price": [1.1, 1.9, 3.2, 3.9] * 5}
        >>> tb.LinearRegression().fit(rows, "price").feature_importance(rows, "price").columns
        ['size', 'noise']
        """
        check_is_fitted(self, "tally_")
        table, weight = read_rows(self, self._design, X, y, sample_weight)
        return feature_importance(self._estimates, table, columns, weight)

    def log_evidence(self) -> float:
        """Return the log marginal likelihood (log evidence) of the targets given the inputs, in nats.

        The coefficients and the noise are integrated under ``prior_``, whatever the ``estimate``. `tb.compare` computes
        Bayes factors.

        Returns
        -------
        float
        """
        return self._likelihood_measures("evidence").evidence().log_evidence

    def description_length(self) -> DescriptionLength:
        """Return the description lengths of the targets: given the MAP parameters, parameters, and by the evidence.

        Returns
        -------
        DescriptionLength
            In bits. The density term may be negative, because a density may exceed 1.
        """
        return self._likelihood_measures("code length").description_length()

    @property
    def bic_(self) -> float:
        """The Bayesian information criterion, −2 log p(targets) + parameters · log(weight): lower is better."""
        return self._likelihood_measures("BIC").bic

    @property
    def aic_(self) -> float:
        """Akaike's information criterion, −2 log p(targets) + 2 · parameters: lower is better."""
        return self._likelihood_measures("AIC").aic

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters."""
        return self._all_factors.n_parameters

    def plot(
        self,
        X: Rows | None = None,
        y: Labels | None = None,
        *,
        candidates: Candidates | None = None,
        mass: float = 0.95,
        ax: Axes | None = None,
    ) -> Plot:
        """Plot the regression line with its predictive interval; with several inputs, residuals against predictions.

        Parameters
        ----------
        X, y : as for `fit`, optional
            Rows to plot, with one target. Required if there are several inputs.
        candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
            Draw one panel per combination, from the same counts: ``{"degree": [1, 2, 4]}``.
        mass : float, default 0.95
            The probability of the interval.
        ax : matplotlib Axes, optional
            The axes to draw on; with several panels, one per panel.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.regression import plot_regression

        check_is_fitted(self, "tally_")
        return plot_regression(self, self._design, X, y, candidates, mass, ax)

    # ---- Internals --------------------------------------------------------------------------------------------------

    @property
    def _estimates(self) -> EstimatedRegression:
        """The regression estimated from the tally."""
        return self._cached("estimated", self._estimate)

    def _estimate(self) -> EstimatedRegression:
        degrees = self._degrees()
        return EstimatedRegression(
            self._design, self.tally_, degrees, self.estimate, self._target_priors(), self.intercept
        )

    @property
    def _all_factors(self) -> EstimatedFactors:
        """The estimated factors of all targets at the degree in use."""
        return self._estimates.factors

    @property
    def _counter(self) -> RegressionCounter:
        """How rows are counted."""
        return RegressionCounter(self._design, self.levels or {})

    def _by_target(self, parameter: str) -> Any:
        """Return a point estimate of all targets as one array."""
        return self._estimates.by_target([getattr(scorer.point, parameter) for scorer in self._all_factors.scorers])

    def _degrees(self) -> tuple[int, ...]:
        """Return the candidate degrees, one or several. Raise EstimateError if they are invalid."""
        degree = self.degree
        candidates: Any = degree if isinstance(degree, Iterable) else (degree,)
        degrees = tuple(candidates)
        if not degrees or not all(is_integer_at_least(candidate) for candidate in degrees):
            raise EstimateError(
                f"degree is {degree!r}; expected a whole number of at least 1, or several, such as range(1, 6)."
            )
        return tuple(int(candidate) for candidate in degrees)

    def _target_priors(self) -> tuple[Any, ...]:
        """Return the prior of every target, as the user gave it; raise PriorError for unknown targets."""
        targets = self._design.targets
        if not isinstance(self.prior, Mapping):
            return (self.prior,) * len(targets)
        unknown = [name for name in self.prior if name not in targets]
        if unknown:
            raise PriorError.unknown_column(unknown, targets)
        return tuple(self.prior.get(name) for name in targets)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.input_tags.allow_nan = True
        return tags

    def _check_settings(self) -> None:
        super()._check_settings()
        self._degrees()

    def _check_prior(self, factors: list[Factor]) -> None:
        """Raise PriorError if the prior does not fit the targets."""
        self._target_priors()

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        check_is_fitted(self, "tally_")
        return len(self._design.columns_in) if self._design.n_features is None else self._design.n_features

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The column names of X; AttributeError if X had none."""
        check_is_fitted(self, "tally_")
        names = self._design.feature_names or self._design.columns_in
        if not all(isinstance(name, str) for name in names):
            raise AttributeError("X has no column names")
        return np.array(names, dtype=object)

    def _copy_input_format(self, other: LinearRegression) -> Self:
        self._design = other._design
        return self

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for model in (self, other):
            check_is_fitted(model, "tally_")
        names = (other if self._design.unnamed else self)._design.targets
        left = self._with_targets(names)
        right = other._with_targets(names)
        design = left._design
        left.tally_, right.tally_ = align_tallies(design, left.tally_, right.tally_)
        both = Model.__add__(left, right)
        both._frame_library = self._frame_library
        return both

    def _with_targets(self, names: tuple[Name, ...]) -> Self:
        """Return a copy of the model with other target names, if its own are the default ones."""
        design = self._design
        renamed = copy.copy(self)
        if design.unnamed and len(names) == len(design.targets) and not {*names} & {*design.inputs}:
            tally = self.tally_
            for old, new in zip(design.targets, names, strict=True):
                tally = tally.renamed(old, new)
            renamed._design = design._replace(targets=names)
            renamed._set_tally(tally)
        return renamed

    def _total_weight(self) -> float:
        moments_of_targets = target_moments(self._design, self.tally_)
        return max(float(moments.group_weights().sum()) for _, moments in moments_of_targets)

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        return [f for f, s in zip(tally.factors, tally.statistics, strict=True) if isinstance(s, Moments)]

    @property
    def _required_columns(self) -> list[Any]:
        return self._design.inputs

    def _shape_to_json(self) -> dict[str, Any]:
        """Return the design as JSON, for a file."""
        return self._design.to_json()

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        self._design = Design.from_json(state)

    def _check_loaded(self) -> None:
        """Raise an error if the columns of a file do not match its tally."""
        _ = self._total_weight()

    def summary(self) -> Summary:
        """Return a table of the inputs and targets, with the fraction of missing targets and the ridge penalty.

        Returns
        -------
        Summary
            It prints as a table.
        """
        check_is_fitted(self, "tally_")
        n_rows = self._total_weight()
        design = self._design
        rows = []
        for name in (*design.numbers, *design.labels):
            levels = len(self.tally_.domains[str(name)].levels) if name in design.labels else None
            rows.append(ColumnSummary(name, "indicators" if levels else "number", levels, 0.0, ""))
        fitted: EstimatedFactors = self._all_factors
        for index, (factor, moments) in enumerate(fitted.pairs):
            prior = ""
            if read_estimate(self.estimate).has_prior:
                decay = np.diagonal(fitted.prior_distributions[index].precision)
                prior = f"weight decay {decay[0]:.4g}" if len({*decay}) == 1 else "weight decay by column"
            missing = max(0.0, 1 - float(moments.group_weights().sum()) / n_rows) if n_rows else 0.0
            rows.append(ColumnSummary(factor.columns[-1], f"target, {factor.family!r}", None, missing, prior))
        return Summary(f"Regression of {n_rows:.12g} rows, degree {self.degree_}", rows, {})

    def _repr_lines(self) -> list[str]:
        """Return the fitted equations, one line per target, if they are short."""
        try:
            names = self.terms_
            scorers = self._all_factors.scorers
        except Exception:  # the repr of a model must not raise
            return []
        if self._design.by is not None or len(names) > _MOST_TERMS or len(scorers) > _MOST_TERMS:
            return []
        out = []
        for target, scorer in zip(self._design.targets, scorers, strict=True):
            line = scorer.point
            parts = []
            if self.intercept:
                parts.append(f"{line.intercept:.4g}")
            for name, slope in zip(names, np.asarray(line.slope), strict=True):
                sign = " - " if slope < 0 else " + " if parts else ""
                shown = f"x{name}" if isinstance(name, int) else printable(name)
                parts.append(f"{sign}{abs(slope):.4g} {shown}")
            out.append(f"  {printable(target)} = {''.join(parts) or '0'}, noise {np.sqrt(line.variance):.4g}")
        return out
