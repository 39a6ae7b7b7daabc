"""Linear and polynomial regression estimated from moments of the inputs and targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.string_options import StringOptions
from tallybayes.errors import printable
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.families.estimates import ESTIMATE_WORDS, read_estimate
from tallybayes.models.base import Model
from tallybayes.models.inspection import information_criteria
from tallybayes.models.inspection.model_summary import ColumnSummary, Summary
from tallybayes.models.regression import (
    coefficients,
    regression_counts,
    regression_fit,
    regression_plots,
    target_prediction,
)
from tallybayes.models.regression.design_matrix import Design
from tallybayes.models.sklearn_bases import RegressorMixin, typed_property
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import Name

if TYPE_CHECKING:
    from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma

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

    fit = regression_fit.fit
    partial_fit = regression_fit.partial_fit
    forget = regression_fit.forget
    predict = target_prediction.predict
    predict_interval = target_prediction.predict_interval
    predictive = target_prediction.predictive
    sample = target_prediction.sample
    score = target_prediction.score
    log_prob = target_prediction.log_prob
    feature_importance = target_prediction.feature_importance
    log_likelihood = target_prediction.log_likelihood
    coefficient_table = coefficients.table
    plot = regression_plots.plot
    coef_ = typed_property(coefficients.coef)
    intercept_ = typed_property(coefficients.intercept)
    noise_std_ = typed_property(coefficients.noise)
    terms_ = typed_property(coefficients.terms)
    degree_ = typed_property(coefficients.degree_in_use)
    prior_ = typed_property(coefficients.priors)
    posterior_ = typed_property(coefficients.posteriors)
    log_evidence = information_criteria.log_evidence
    description_length = information_criteria.description_length
    bic_ = typed_property(information_criteria.bic)
    aic_ = typed_property(information_criteria.aic)
    n_parameters_ = typed_property(information_criteria.n_parameters)
    _degrees = coefficients.degrees_of
    _all_factors = typed_property(coefficients.all_targets)

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
        coefficients.priors_of(self)

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

    def _copy_input_format(self, other: Any) -> Self:
        self._design = other._design
        return self

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for model in (self, other):
            check_is_fitted(model, "tally_")
        names = (other if self._design.unnamed else self)._design.targets
        first, second = (regression_fit.with_targets(model, names) for model in (self, other))
        tallies = regression_counts.merge_tallies(first._design, first.tally_, second.tally_)
        left, right = (
            clone(m)._copy_input_format(m)._set_tally(tally) for m, tally in zip((first, second), tallies, strict=True)
        )
        both = Model.__add__(left, right)
        both._frame_library = self._frame_library
        return both

    def _total_weight(self) -> float:
        target_moments = regression_counts.target_moments(self._design, self.tally_)
        return max(float(moments.group_weights().sum()) for _, moments in target_moments)

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
