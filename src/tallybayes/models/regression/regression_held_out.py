"""Rows that are held out: what the model of all others says of them, in closed form or by subtraction."""

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
    """Rows of a regression, read once, and the model of all of them.

    Parameters
    ----------
    model : Regression
    data, target, sample_weight
        As for its `fit`.
    """

    def __init__(self, model: Any, data: Rows, target: Labels, sample_weight: SampleWeights) -> None:
        self.model = clone(model).fit(data, target, sample_weight)
        self.table, weight = regression_fit.read_rows(self.model, data, target, sample_weight)
        self.weight = check_weight(weight, self.table.n_rows)
        columns = [np.asarray(numeric(self.table._column(name), name), float) for name in self.model._design.targets]
        self.target = shape(self.model, columns)
        self.lacking = self.model._design.missing(self.table).any(axis=1)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.table.n_rows

    def _part(self, rows: np.ndarray) -> tuple[Table, Any]:
        """Those of some rows that were counted."""
        rows = rows[~self.lacking[rows]]
        return self.table.rows(rows), None if self.weight is None else self.weight[rows]

    def by_fold(self, model: Any, fold: np.ndarray, *, ordered: bool = False) -> TargetPredictive:
        """What is said of every row by the model without its fold or, in order, by that of the folds before."""
        parts = [np.full(self.target.shape, np.nan) for _ in range(3)]
        n_folds = int(fold.max()) + 1
        for code in range(n_folds):
            rows = np.flatnonzero(fold == code)
            if not len(rows) or (ordered and code == 0):
                continue
            others = np.flatnonzero(fold >= code) if ordered else rows
            rest = clone(model)._copy_input_format(model)._set_tally(model.tally_)
            held = count_rows(rest, *self._part(others), model.tally_)
            rest._set_tally(subtract_tally_columns(model._design, model.tally_, held))
            told = predictive_of(rest, self.table.rows(rows))
            for whole_part, part in zip(parts, told, strict=True):
                whole_part[rows] = part
        return TargetPredictive(*parts)

    def one_by_one(self, model: Any) -> TargetPredictive:
        """What is said of every row by the model of all others, in closed form.

        With e the row's error and h its leverage, the error of the line without it is e / (1 − h), and its squares
        are less by e² / (1 − h). The λ that was found on all rows is held.
        """
        if self.lacking.any():  # they were not counted
            every, kept = predictive_of(model, self.table), np.flatnonzero(~self.lacking)
            some = copy.copy(self)
            some.table, some.weight = self._part(kept)
            some.target, some.lacking = self.target[kept], self.lacking[kept]
            for all_rows, of_some in zip(every, some.one_by_one(model), strict=True):
                all_rows[kept] = of_some
            return every
        x, group = inputs_of(model, self.table)
        targets = self.target.reshape(self.n_rows, -1)
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        parts = []
        for place in range(targets.shape[1]):
            posterior, integrates = _without_level(model, place), model._all_factors.scorers[place].predictive
            y, found = targets[:, place], np.full((3, self.n_rows), np.nan)
            moments = model._all_factors.pairs[place][1]
            n_groups = int(np.prod(moments.given_shape, dtype=int))
            for code in range(n_groups):
                rows = np.flatnonzero(group == code)
                own = posterior if not posterior._given else of_group(posterior, code, x.shape[1])
                found[:, rows] = _left_out(
                    own, x[rows], y[rows], weight[rows], integrates=integrates, spent=_spent(model, x.shape[1])
                )
            parts.append(found)
        return TargetPredictive(*(shape(model, list(part)) for part in np.stack(parts, axis=1)))


def _spent(model: Any, p: int) -> float | None:
    """The degrees of freedom that the noise's estimate takes; None where it has a prior."""
    if model._all_factors.has_prior:
        return None
    return float(read_estimate(model.estimate).df_per_mean * (p + model.intercept))


def _without_level(model: Any, place: int) -> LinearNormalInverseGamma:
    """The posterior of a target's weights: a level that a rule puts at the mean of the rows holds nothing."""
    fitted = all_targets(model)
    (_, moments), meant = fitted.pairs[place], priors_of(model)[place]
    p = moments.n_columns - 1
    if not fitted.has_prior:
        strength = 0.0 if model.intercept else None
        prior = LinearNormalInverseGamma(np.zeros(p), np.zeros((p, p)), 1e-300, 1e-300, strength=strength)
    else:
        prior = fitted.prior_distributions[place]
        if not isinstance(meant, ParameterDistribution) and model.intercept:
            prior = prior.replace(strength=0.0)
    return prior.update(moments)


def _left_out(
    own: LinearNormalInverseGamma, x: np.ndarray, y: np.ndarray, weight: np.ndarray, *, integrates: bool, spent: Any
) -> np.ndarray:
    """Location, scale and freedom of every row's predictive without it."""
    error, lever = y - own.at(x), own.leverage(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = 1 - weight * lever
        left = np.where(left > 1e-12, left, 0.0)  # a row that the line has to meet is told by no other
        location = y - error / left
        squares = np.maximum(own.scale - weight * error**2 / left / 2, 0.0)
        rows = own.shape - weight / 2
        if integrates:
            wide = np.where(left > 0, lever / left, np.inf)
            found = np.stack([location, np.sqrt(squares / rows * (1 + wide)), 2 * rows])
        elif spent is None:  # the mode
            k = x.shape[1] + (own.strength is not None)
            found = np.stack([location, np.sqrt(squares / (rows + 1 + k / 2)), np.full(len(y), np.inf)])
        else:
            freedom = 2 * rows - spent
            found = np.stack([location, np.sqrt(2 * squares / freedom), np.full(len(y), np.inf)])
    return found
