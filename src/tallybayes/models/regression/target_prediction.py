"""Predictions of a linear regression: expected targets, predictive distributions, random draws and scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit
from sklearn.base import clone
from sklearn.metrics import r2_score

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.counting import check_weight
from tallybayes.data.dates import origins, with_parts_of_dates
from tallybayes.data.indicator_columns import hidden
from tallybayes.data.numeric_columns import numeric
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table
from tallybayes.distributions.log_gamma import log_gamma_half_step
from tallybayes.distributions.parameter_distribution import Interval, tail_probabilities
from tallybayes.errors import DataError, LabelError
from tallybayes.estimation.importance import FeatureImportance, chosen_columns
from tallybayes.models.inputs.batching import joined_columns, predict_in_batches, query_batches
from tallybayes.models.inputs.features import as_rows, is_rows_of_mappings, open_features, with_absent_keys
from tallybayes.models.inspection.information_criteria import weighted_sum
from tallybayes.models.regression import coefficients
from tallybayes.models.regression.coefficients import degree_in_use, terms, weights_of
from tallybayes.models.regression.design_matrix import MissingInputError, codes_of
from tallybayes.models.regression.regression_counts import levels_of
from tallybayes.models.regression.regression_fit import check_features, named_targets, read_rows
from tallybayes.typing import Labels, Name, RandomState, Rows, SampleWeights


class TargetPredictive(NamedTuple):
    """Predictive distribution of each row's target: Student t, or normal if the degrees of freedom are infinite.

    `LinearRegression.predictive` returns it. Arrays have the shape of `LinearRegression.predict`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> model = tb.LinearRegression(prior=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9])
    >>> predictive = model.predictive([[1.5]])
    >>> predictive.mean().round(3), predictive.interval(0.5).low.round(3)
    (array([1.5]), array([1.127]))
    """

    location: np.ndarray
    scale: np.ndarray
    degrees_of_freedom: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the expected targets."""
        return self.location

    def std(self) -> np.ndarray:
        """Return the standard deviations; infinite for up to two degrees of freedom."""
        usual = self.degrees_of_freedom > 2
        degrees = np.where(usual, self.degrees_of_freedom, 3.0)
        with np.errstate(invalid="ignore"):
            factor = np.where(np.isinf(degrees), 1.0, degrees / (degrees - 2))
        return np.where(usual, self.scale * np.sqrt(factor), np.inf)

    def interval(self, mass: float = 0.95) -> Interval:
        """Return equal-tailed intervals of probability `mass`."""
        return Interval(
            *(
                self.location + self.scale * _quantile(self.degrees_of_freedom, tail)
                for tail in tail_probabilities(mass)
            )
        )

    def cdf(self, y: npt.ArrayLike) -> np.ndarray:
        """Return the cumulative distribution function, P(target ≤ y)."""
        from scipy.special import ndtr

        z = (np.asarray(y, dtype=float) - self.location) / self.scale
        return np.where(
            np.isinf(self.degrees_of_freedom),
            ndtr(z),
            stdtr(np.where(np.isinf(self.degrees_of_freedom), 1.0, self.degrees_of_freedom), z),
        )

    def log_prob(self, y: npt.ArrayLike) -> np.ndarray:
        """Return log p(y); 0 where y is missing."""
        y = np.asarray(y, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(y == self.location, 0.0, (y - self.location) / self.scale)
            shape = np.where(np.isinf(self.degrees_of_freedom), 1.0, self.degrees_of_freedom / 2)
            student = (
                log_gamma_half_step(shape)
                - 0.5 * np.log(2 * np.pi * shape)
                - (shape + 0.5) * np.log1p(z**2 / (2 * shape))
            )
            log_density = np.where(
                np.isinf(self.degrees_of_freedom), -0.5 * (np.log(2 * np.pi) + z**2), student
            ) - np.log(self.scale)
        return np.where(np.isnan(y), 0.0, log_density)

    def sample(self, n: int, *, random_state: RandomState = None) -> np.ndarray:
        """Draw `n` targets for every row: (n, *rows)."""
        rng = np.random.default_rng(random_state)
        noise = rng.standard_normal((n, *self.location.shape))
        shape = np.where(np.isinf(self.degrees_of_freedom), 1.0, self.degrees_of_freedom / 2)
        precision = np.where(np.isinf(self.degrees_of_freedom), 1.0, rng.standard_gamma(shape, noise.shape) / shape)
        return self.location + self.scale * noise / np.sqrt(precision)

    @classmethod
    def joined(cls, parts: list[TargetPredictive]) -> TargetPredictive:
        """Concatenate the predictive distributions of batches of rows."""
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _quantile(freedom: np.ndarray, tail: float) -> np.ndarray:
    """Return the quantile of a standard Student t; of the standard normal if the degrees of freedom are infinite."""
    from scipy.special import ndtri

    return np.where(np.isinf(freedom), ndtri(tail), stdtrit(np.where(np.isinf(freedom), 1.0, freedom), tail))


def open_inputs(model: Any, X: Any) -> Table:
    """Return rows as a table, checked against the columns of `fit`."""
    check_is_fitted(model, "tally_")
    X = as_rows(X, model)
    table = open_features(X)
    if is_rows_of_mappings(X):  # a key that a mapping lacks is a missing cell
        inputs = model._design.inputs
        known = {origin for name in inputs for origin in origins(name)}
        table = with_absent_keys(
            X, table, [name for name in inputs if not table.has(name)], known.union(model._design.targets)
        )
    check_features(model, X, table)
    return with_parts_of_dates(table, model._design.inputs)


def inputs_of(model: Any, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the design matrix of some rows, (n, terms), and their group codes, (n,)."""
    design = model._design
    columns = design._replace(degree=degree_in_use(model)).expand(table, levels_of(design, model.tally_))
    names = terms(model)
    x = np.stack([columns[name] for name in names], axis=1) if names else np.zeros((table.n_rows, 0))
    if design.by is None:
        return x, np.zeros(table.n_rows, dtype=np.intp)
    levels = model.tally_.domains[str(design.by)].levels
    codes, known = codes_of(table, design.by, levels)
    where = np.full(max([*codes.tolist(), 0]) + 1, -1, dtype=np.intp)
    for code, level in enumerate(levels):
        if 0 <= known[level] < len(where):
            where[known[level]] = code
    return x, where[codes]


def _expected(weights: coefficients.LinearCoefficients, x: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the expected target of every row, (n,)."""
    if len(weights.slope) == 1:
        return (x - weights.center[0]) @ weights.slope[0] + weights.intercept[0]
    return ((x - weights.center[group]) * weights.slope[group]).sum(axis=1) + weights.intercept[group]


def shape(model: Any, parts: list[np.ndarray]) -> np.ndarray:
    """Return the arrays of all targets as one: (n,) if y was one-dimensional, else (n, targets)."""
    return parts[0] if model._design.single else np.stack(parts, axis=1)


@overload
def predict(model: Any, X: Rows, return_std: Literal[False] = False) -> np.ndarray: ...
@overload
def predict(model: Any, X: Rows, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...
@predict_in_batches
def predict(model: Any, X: Rows, return_std: bool = False) -> Any:
    """Return the expected target of every row.

    Parameters
    ----------
    X : as for `fit`, without the targets
    return_std : bool, default False
        Also return the standard deviation of the predictive distribution. It includes the noise and, under ``"bayes"``,
        the uncertainty of the coefficients.

    Returns
    -------
    ndarray of shape (n,), or (n, targets) if y had two axes; a tuple of two arrays with ``return_std=True``
    """
    if return_std:
        distribution = predictive(model, X)
        return PredictionArrays((distribution.mean(), distribution.std()))
    table = open_inputs(model, X)
    try:
        x, group = inputs_of(model, table)
    except (MissingInputError, LabelError):
        return predictive_of(model, table).mean()
    return shape(model, [_expected(weights, x, group) for weights in weights_of(model)])


class PredictionArrays(tuple[np.ndarray, ...]):
    """A tuple of arrays of predictions, which batches concatenate."""

    @classmethod
    def joined(cls, parts: list[PredictionArrays]) -> PredictionArrays:
        """Concatenate the predictions of batches of rows."""
        return cls(np.concatenate(part) for part in zip(*parts, strict=True))


@predict_in_batches
def predictive(model: Any, X: Rows) -> TargetPredictive:
    """Return the predictive distribution of every row's target: Student t under ``"bayes"``, else normal.

    A row with missing inputs is predicted by the regression on its other inputs, from the same counts.

    Parameters
    ----------
    X : as for `predict`

    Returns
    -------
    TargetPredictive
    """
    return predictive_of(model, open_inputs(model, X))


def predictive_of(model: Any, table: Table) -> TargetPredictive:
    """Return the predictive distribution of the rows of a table."""
    try:
        return _predictive(model, *inputs_of(model, table))
    except (MissingInputError, LabelError):
        missing = model._design.missing(table, levels_of(model._design, model.tally_))
        if not missing.any():
            raise
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    shape_of = (table.n_rows,) if model._design.single else (table.n_rows, len(model._design.targets))
    out = [np.full(shape_of, np.nan) for _ in TargetPredictive._fields]
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.reshape(-1) == number)
        part = table.rows(rows)
        for all_rows, subset in zip(out, predictive_of(without_inputs(model, pattern), part), strict=True):
            all_rows[rows] = subset
    return TargetPredictive(*out)


def without_inputs(model: Any, missing: np.ndarray) -> Any:
    """Return the regression on the observed inputs only, from the same counts."""
    design = model._design
    names = {n for n, gone in zip((*design.numbers, *design.labels), missing, strict=True) if gone}
    if not names:
        return model
    models = model._cached("without inputs", dict)
    if missing.tobytes() not in models:
        if any(np.ndim(getattr(prior, "location", 0.0)) for prior in coefficients.priors_of(model)):
            raise DataError(
                f"column {min(names, key=str)!r} is missing in some row, and prior= has a parameter for every term; "
                "expected all inputs.\n    Impute the cell, or use a prior with scalar parameters."
            )
        other = clone(model).set_params(degree=degree_in_use(model))._copy_input_format(model)
        other._design = design.without(names)
        models[missing.tobytes()] = other._set_tally(model.tally_)
    return models[missing.tobytes()]


def _predictive(model: Any, x: np.ndarray, group: np.ndarray) -> TargetPredictive:
    """Return the predictive distribution from the design matrix and the group codes."""
    parts = []
    for weights in weights_of(model):
        location = _expected(weights, x, group)
        posterior = weights.posterior
        if posterior is None:
            parts.append((location, np.sqrt(weights.noise)[group], np.full(len(x), np.inf)))
            continue
        n = len(weights.slope)
        half, scale = (np.broadcast_to(part, (n,)) for part in (posterior.shape, posterior.scale))
        leverage = np.zeros(len(x))
        for code in range(n):
            rows = np.flatnonzero(group == code)
            of_this_group = posterior if not posterior._given else of_group(posterior, code, weights.slope.shape[1])
            leverage[rows] = of_this_group.leverage(x[rows])
        parts.append((location, np.sqrt(scale[group] / half[group] * (1 + leverage)), 2 * half[group]))
    return TargetPredictive(*(shape(model, list(part)) for part in zip(*parts, strict=True)))


def of_group(posterior: Any, code: int, p: int) -> Any:
    """Return the posterior of one group's coefficients."""
    given = posterior._given
    return posterior.replace(
        location=np.broadcast_to(posterior.location, (*given, p))[code],
        precision=np.broadcast_to(posterior.precision, (*given, p, p))[code],
        precision_cholesky=np.broadcast_to(posterior.precision_cholesky, (*given, p, p))[code],
        input_center=np.broadcast_to(posterior.input_center, (*given, p))[code],
        intercept_location=np.broadcast_to(posterior.intercept_location, given)[code],
        shape=np.broadcast_to(posterior.shape, given)[code],
        scale=np.broadcast_to(posterior.scale, given)[code],
        strength=None if posterior.strength is None else np.broadcast_to(posterior.strength, given)[code],
    )


def predict_interval(model: Any, X: Rows, mass: float = 0.95) -> Interval:
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
    return predictive(model, X).interval(mass)


def sample(model: Any, X: Rows, n: int = 1, *, random_state: RandomState = None) -> np.ndarray:
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
    return predictive(model, X).sample(n, random_state=random_state)


def predictions_and_targets(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[TargetPredictive, np.ndarray, Any]:
    """Return the predictive distributions of the rows, their targets, (n,) or (n, targets), and the weights."""
    check_is_fitted(model, "tally_")
    source = open_source(X)
    if source is not None:
        names = [*named_targets(y), *([] if sample_weight is None else [sample_weight])]
        parts = [(predictive(model, rows), columns) for rows, columns in query_batches(model, source, names, "scoring")]
        predictions = TargetPredictive.joined([part for part, _ in parts])
        table = joined_columns([c for _, c in parts])
        weight = None if sample_weight is None else np.asarray(table.column(sample_weight))
        columns = [table.column(name) for name in named_targets(y)]
    else:
        table, weight = read_rows(model, X, y, sample_weight)
        predictions = predictive_of(model, table)
        columns = [table.column(name) for name in model._design.targets]
    cells = [np.asarray(numeric(column, "y"), dtype=float) for column in columns]
    return predictions, shape(model, cells), weight


def score(model: Any, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> float:
    """Return the coefficient of determination R²: 1 at best, 0 for predicting the mean.

    Parameters
    ----------
    X, y, sample_weight
        As for `fit`. Rows with a missing target are skipped.
    """
    predictive, observed, weight = predictions_and_targets(model, X, y, sample_weight)
    known = ~np.isnan(observed) if observed.ndim == 1 else ~np.isnan(observed).any(axis=1)
    weight = None if weight is None else np.asarray(weight)[known]
    return float(r2_score(observed[known], predictive.mean()[known], sample_weight=weight))


def log_prob(model: Any, X: Rows, y: Labels | None = None) -> np.ndarray:
    """Return log p(targets | inputs) of every row, in nats; a missing target adds 0.

    Parameters
    ----------
    X, y
        As for `fit`.

    Returns
    -------
    ndarray of shape (n,)
    """
    predictive, observed, _ = predictions_and_targets(model, X, y, None)
    logs = predictive.log_prob(observed)
    return logs if logs.ndim == 1 else logs.sum(axis=1)


def log_likelihood(model: Any, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> float:
    """Return the weighted sum of log p(targets | inputs) over the rows, in nats.

    Parameters
    ----------
    X, y, sample_weight
        As for `fit`.
    """
    predictive, observed, weight = predictions_and_targets(model, X, y, sample_weight)
    logs = predictive.log_prob(observed)
    return weighted_sum(logs if logs.ndim == 1 else logs.sum(axis=1), weight)


def feature_importance(
    model: Any,
    X: Rows,
    y: Labels | None = None,
    *,
    columns: Iterable[Name] | None = None,
    sample_weight: SampleWeights = None,
) -> FeatureImportance:
    """Return the increase of the log loss, −log p(targets | inputs), without each input column.

    A column is removed as if its cells were missing: with the same rows this is the regression on the other columns.
    Permutation importance replaces the cells by those of other rows instead. Use rows that the model was not fitted on.

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
    check_is_fitted(model, "tally_")
    table, weight = read_rows(model, X, y, sample_weight)
    if table.n_rows == 0:
        raise DataError("X has 0 rows; expected at least 1 row with a target.")
    design = model._design
    targets = shape(model, [np.asarray(numeric(table.column(name), "y"), dtype=float) for name in design.targets])

    def loss(rows: Table) -> np.ndarray:
        logs = predictive_of(model, rows).log_prob(targets)
        return -(logs if logs.ndim == 1 else logs.sum(axis=1))

    names = chosen_columns(columns, [*design.numbers, *design.labels])
    base = loss(table)
    lost = [loss(hidden(table, [name])) - base for name in names]
    return FeatureImportance.of_losses(names, base, lost, check_weight(weight, table.n_rows, any_size=True))
