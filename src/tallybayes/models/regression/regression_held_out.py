"""Predictions for held-out rows of a regression, in closed form or by subtraction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from tallybayes.data.counting import check_weight
from tallybayes.data.encoding import numeric
from tallybayes.data.table import Table
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.estimation.resampling.folds import Folds
from tallybayes.estimation.resampling.held_out import HoldOut
from tallybayes.families.estimates import read_estimate
from tallybayes.models.regression.estimated_regression import EstimatedRegression, posterior_of_group
from tallybayes.models.regression.regression_counts import subtract_tally
from tallybayes.models.regression.regression_fit import read_rows
from tallybayes.models.regression.target_prediction import TargetPredictive
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.regression.linear_regression import LinearRegression


class HeldTargets(HoldOut):
    """Rows of a regression that can be held out.

    Parameters
    ----------
    model : LinearRegression
    data, target, sample_weight
        As for its `fit`.
    """

    def __init__(
        self, model: LinearRegression, data: Rows, target: Labels | None, sample_weight: SampleWeights
    ) -> None:
        self.full_model: LinearRegression = clone(model).fit(data, target, sample_weight)
        self.counter = self.full_model._counter
        design = self.counter.design
        self.table, weight = read_rows(self.full_model, design, data, target, sample_weight)
        self.weight = check_weight(weight, self.table.n_rows)
        columns = [np.asarray(numeric(self.table.column(name), name), float) for name in design.targets]
        self.target = design.shape(columns)
        self.complete = ~design.missing(self.table).any(axis=1)
        self.codes = np.zeros(self.table.n_rows, dtype=np.intp)

    def fit(self, model: LinearRegression, chosen: np.ndarray) -> LinearRegression:
        """Raise an error: the counts are subtracted."""
        raise NotImplementedError

    def _counted(self, rows: np.ndarray) -> tuple[Table, np.ndarray | None]:
        """Return those of some rows that were counted, and their weights."""
        rows = rows[self.complete[rows]]
        return self.table.rows(rows), self.some_weight(rows)

    def count(self, chosen: np.ndarray) -> Tally:
        """Return the tally of some rows."""
        return self.counter.count(*self._counted(chosen), self.full_model._estimates.tally)

    def model_without(self, out: np.ndarray) -> EstimatedRegression:
        """Return the estimates from all other rows."""
        estimates = self.full_model._estimates
        return replace(estimates, tally=subtract_tally(estimates.design, estimates.tally, self.count(out)))

    def score(self, folds: Folds) -> TargetPredictive:
        """Return the predictive distribution of every row under the model without its fold; NaN if not predicted."""
        if folds.one_by_one:
            return self._leave_one_out()
        out = TargetPredictive(*(np.full(self.target.shape, np.nan) for _ in range(3)))
        for test, estimates in self.models(folds):
            for all_rows, part in zip(out, estimates.predictive(self.table.rows(test)), strict=True):
                all_rows[test] = part
        return out

    def _leave_one_out(self) -> TargetPredictive:
        """Return the leave-one-out predictive distribution of every row, in closed form.

        Let e be the residual of a row and h its leverage. Without the row, the residual is e / (1 − h) and the residual
        sum of squares decreases by e² / (1 − h). A ridge penalty λ found by maximizing the evidence of all rows is held
        fixed. Rows with missing inputs were not counted: the model of all rows predicts them.
        """
        estimates = self.full_model._estimates
        counted = np.flatnonzero(self.complete)
        table, weights = self._counted(counted)
        x, group = estimates.design_matrix(table)
        weight = np.ones(len(counted)) if weights is None else weights
        targets = self.target[counted].reshape(len(counted), -1)
        parameters = np.full((3, *targets.shape), np.nan)
        freedom = _noise_freedom(estimates, x.shape[1])
        for index, moments in enumerate(moments for _, moments in estimates.factors.pairs):
            integrates = estimates.factors.scorers[index].predictive
            posterior = _posterior_without_level(estimates, index)
            n_groups = int(np.prod(moments.given_shape, dtype=int))
            for code in range(n_groups):
                rows = np.flatnonzero(group == code)
                own = posterior_of_group(posterior, code, n_groups, x.shape[1])
                arguments = (own, x[rows], targets[rows, index], weight[rows])
                parameters[:, rows, index] = _without_row(*arguments, integrates=integrates, noise_freedom=freedom)
        if self.complete.all():
            return TargetPredictive(*(self.counter.design.shape(list(part.T)) for part in parameters))
        out = estimates.predictive(self.table)
        for all_rows, part in zip(out, parameters, strict=True):
            all_rows[counted] = self.counter.design.shape(list(part.T))
        return out


def _noise_freedom(estimates: EstimatedRegression, p: int) -> float | None:
    """Return the degrees of freedom used by the noise estimate; None under a prior."""
    if estimates.factors.has_prior:
        return None
    return float(read_estimate(estimates.estimate).df_per_mean * (p + estimates.intercept))


def _posterior_without_level(estimates: EstimatedRegression, index: int) -> LinearNormalInverseGamma:
    """Return the posterior of a target's coefficients. A prior mean taken from the rows gets strength 0."""
    factors = estimates.factors
    moments = factors.pairs[index][1]
    p = moments.n_columns - 1
    if not factors.has_prior:
        strength = 0.0 if estimates.intercept else None
        prior = LinearNormalInverseGamma(np.zeros(p), np.zeros((p, p)), 1e-300, 1e-300, strength=strength)
    else:
        prior = factors.prior_distributions[index]
        if estimates.intercept and not isinstance(estimates.priors[index], ParameterDistribution):
            prior = prior.replace(strength=0.0)
    return prior.update(moments)


def _without_row(
    posterior: LinearNormalInverseGamma,
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    *,
    integrates: bool,
    noise_freedom: float | None,
) -> np.ndarray:
    """Return location, scale and degrees of freedom of each row's predictive distribution without the row: (3, n)."""
    error = y - posterior.at(x)
    leverage = posterior.leverage(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        remaining = 1 - weight * leverage
        # Leverage 1: the other rows do not determine the prediction.
        remaining = np.where(remaining > 1e-12, remaining, 0.0)
        location = y - error / remaining
        squares = np.maximum(posterior.scale - weight * error**2 / remaining / 2, 0.0)
        shape = posterior.shape - weight / 2
        if integrates:
            variance_factor = np.where(remaining > 0, leverage / remaining, np.inf)
            return np.stack([location, np.sqrt(squares / shape * (1 + variance_factor)), 2 * shape])
        if noise_freedom is None:  # the posterior mode
            k = x.shape[1] + (posterior.strength is not None)
            variance = squares / (shape + 1 + k / 2)
        else:
            variance = 2 * squares / (2 * shape - noise_freedom)
        return np.stack([location, np.sqrt(variance), np.full(len(y), np.inf)])
