"""Predictions for held-out rows of a regression, in closed form or by subtraction."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from tallybayes.data.counting import check_weight
from tallybayes.data.numeric_columns import numeric
from tallybayes.data.table import Table
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families.estimates import read_estimate
from tallybayes.models.regression import regression_fit
from tallybayes.models.regression.coefficients import all_targets, priors_of
from tallybayes.models.regression.regression_counts import count_rows, subtract_tally_columns
from tallybayes.models.regression.target_prediction import TargetPredictive, inputs_of, of_group, predictive_of, shape
from tallybayes.typing import Labels, Rows, SampleWeights


class HoldOutTargets:
    """Rows of a regression and the model fitted to all of them, for cross-validation.

    Parameters
    ----------
    model : LinearRegression
    data, target, sample_weight
        As for its `fit`.
    """

    def __init__(self, model: Any, data: Rows, target: Labels, sample_weight: SampleWeights) -> None:
        self.model = clone(model).fit(data, target, sample_weight)
        self.table, weight = regression_fit.read_rows(self.model, data, target, sample_weight)
        self.weight = check_weight(weight, self.table.n_rows)
        columns = [np.asarray(numeric(self.table.column(name), name), float) for name in self.model._design.targets]
        self.target = shape(self.model, columns)
        self.lacking = self.model._design.missing(self.table).any(axis=1)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.table.n_rows

    def _part(self, rows: np.ndarray) -> tuple[Table, Any]:
        """Return those of some rows that were counted, and their weights."""
        rows = rows[~self.lacking[rows]]
        return self.table.rows(rows), None if self.weight is None else self.weight[rows]

    def by_fold(self, model: Any, fold: np.ndarray, *, ordered: bool = False) -> TargetPredictive:
        """Return the predictive distribution of every row under the model without its fold.

        Parameters
        ----------
        model : LinearRegression
        fold : ndarray of int of shape (n,)
        ordered : bool, default False
            Whether each fold is predicted from the earlier folds only.
        """
        parts = [np.full(self.target.shape, np.nan) for _ in range(3)]
        n_folds = int(fold.max()) + 1
        for code in range(n_folds):
            rows = np.flatnonzero(fold == code)
            if not len(rows) or (ordered and code == 0):
                continue
            others = np.flatnonzero(fold >= code) if ordered else rows
            remaining = clone(model)._copy_input_format(model)._set_tally(model.tally_)
            held = count_rows(remaining, *self._part(others), model.tally_)
            remaining._set_tally(subtract_tally_columns(model._design, model.tally_, held))
            predictive = predictive_of(remaining, self.table.rows(rows))
            for whole_part, part in zip(parts, predictive, strict=True):
                whole_part[rows] = part
        return TargetPredictive(*parts)

    def one_by_one(self, model: Any) -> TargetPredictive:
        """Return the leave-one-out predictive distribution of every row, in closed form.

        Let e be the residual of a row and h its leverage. Without the row, the residual is e / (1 − h) and the residual
        sum of squares decreases by e² / (1 − h). A ridge penalty λ found by maximizing the evidence of all rows is held
        fixed.
        """
        if self.lacking.any():  # these rows were not counted
            every = predictive_of(model, self.table)
            counted = np.flatnonzero(~self.lacking)
            subset = copy.copy(self)
            subset.table, subset.weight = self._part(counted)
            subset.target = self.target[counted]
            subset.lacking = self.lacking[counted]
            for all_rows, of_some in zip(every, subset.one_by_one(model), strict=True):
                all_rows[counted] = of_some
            return every
        x, group = inputs_of(model, self.table)
        targets = self.target.reshape(self.n_rows, -1)
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        parts = []
        for index in range(targets.shape[1]):
            posterior = _without_level(model, index)
            integrates = model._all_factors.scorers[index].predictive
            y = targets[:, index]
            parameters = np.full((3, self.n_rows), np.nan)
            moments = model._all_factors.pairs[index][1]
            n_groups = int(np.prod(moments.given_shape, dtype=int))
            for code in range(n_groups):
                rows = np.flatnonzero(group == code)
                of_this_group = posterior if not posterior._given else of_group(posterior, code, x.shape[1])
                parameters[:, rows] = _left_out(
                    of_this_group,
                    x[rows],
                    y[rows],
                    weight[rows],
                    integrates=integrates,
                    spent=_spent(model, x.shape[1]),
                )
            parts.append(parameters)
        return TargetPredictive(*(shape(model, list(part)) for part in np.stack(parts, axis=1)))


def _spent(model: Any, p: int) -> float | None:
    """Return the degrees of freedom used by the noise estimate; None under a prior."""
    if model._all_factors.has_prior:
        return None
    return float(read_estimate(model.estimate).df_per_mean * (p + model.intercept))


def _without_level(model: Any, index: int) -> LinearNormalInverseGamma:
    """Return the posterior of a target's coefficients. A prior mean taken from the rows gets strength 0."""
    fitted = all_targets(model)
    (_, moments) = fitted.pairs[index]
    given_prior = priors_of(model)[index]
    p = moments.n_columns - 1
    if not fitted.has_prior:
        strength = 0.0 if model.intercept else None
        prior = LinearNormalInverseGamma(np.zeros(p), np.zeros((p, p)), 1e-300, 1e-300, strength=strength)
    else:
        prior = fitted.prior_distributions[index]
        if not isinstance(given_prior, ParameterDistribution) and model.intercept:
            prior = prior.replace(strength=0.0)
    return prior.update(moments)


def _left_out(
    own: LinearNormalInverseGamma, x: np.ndarray, y: np.ndarray, weight: np.ndarray, *, integrates: bool, spent: Any
) -> np.ndarray:
    """Return location, scale and degrees of freedom of each row's predictive distribution without the row: (3, n)."""
    error = y - own.at(x)
    leverage = own.leverage(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        remaining = 1 - weight * leverage
        remaining = np.where(
            remaining > 1e-12, remaining, 0.0
        )  # leverage 1: the other rows do not determine the prediction
        location = y - error / remaining
        squares = np.maximum(own.scale - weight * error**2 / remaining / 2, 0.0)
        rows = own.shape - weight / 2
        if integrates:
            variance_factor = np.where(remaining > 0, leverage / remaining, np.inf)
            parameters = np.stack([location, np.sqrt(squares / rows * (1 + variance_factor)), 2 * rows])
        elif spent is None:  # the mode
            k = x.shape[1] + (own.strength is not None)
            parameters = np.stack([location, np.sqrt(squares / (rows + 1 + k / 2)), np.full(len(y), np.inf)])
        else:
            freedom = 2 * rows - spent
            parameters = np.stack([location, np.sqrt(2 * squares / freedom), np.full(len(y), np.inf)])
    return parameters
