"""tb.bias_variance: bias² and variance of a regression, by simulation from a known truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from tallybayes._utils.parameter_checks import check_count, random_generator
from tallybayes._utils.progress import progress
from tallybayes.errors import DataError
from tallybayes.evaluation.validation.arguments import listed
from tallybayes.results.bias_variance import BiasVariance
from tallybayes.typing import Candidates, EstimatorLike, RandomState, Rows


def bias_variance(
    model: EstimatorLike,
    X: Rows,
    truth: Callable[[Any], Any],
    *,
    candidates: Candidates | None = None,
    noise: float = 1.0,
    at: Rows | None = None,
    n_draws: int = 200,
    random_state: RandomState = 0,
) -> BiasVariance:
    """Compute bias² and variance of a regression: it is fitted to many draws of noise about a known truth.

    The expected squared error of a prediction is bias² (of the mean fit from the truth) + variance (of the fits about
    their mean) + noise². All draws are targets of one fit.

    Parameters
    ----------
    model : regression, of this library or of scikit-learn
        One that accepts several targets.
    X : rows as for the model's ``fit``
        The inputs, the same in every draw.
    truth : callable
        Returns the true target of every row: ``truth(X)``.
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        The models to compare: ``{"degree": range(1, 8)}``.
    noise : float, default 1
        The standard deviation of the noise added to the truth.
    at : rows, optional
        The inputs at which predictions are compared to the truth; `X` if left out.
    n_draws : int, default 200
        The number of draws.
    random_state : int, Generator or None, default 0

    Returns
    -------
    BiasVariance

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> x = np.linspace(-2, 2, 9)[:, None]
    >>> prior = {"prior": [0.1, 100.0]}
    >>> result = tb.bias_variance(tb.LinearRegression(), x, lambda x: x[:, 0], candidates=prior, n_draws=50)
    >>> bool(result.bias[0] < result.bias[1]), bool(result.variance[0] > result.variance[1])
    (True, True)
    """
    if not callable(truth):
        raise DataError.wrong_type("truth", repr(truth), "a function of the rows, such as lambda x: x[:, 0] ** 2")
    if not (np.isfinite(noise) and noise >= 0):
        raise DataError(f"noise is {noise!r}; expected a finite number of at least 0.")
    check_count("n_draws", n_draws, 2)
    settings = listed(candidates)
    inputs = X if at is None else at
    center = _true_targets(truth, X)
    expected = _true_targets(truth, inputs)
    draws = center[:, None] + noise * random_generator(random_state).standard_normal((len(center), int(n_draws)))
    squared_bias: list[float] = []
    variance: list[float] = []
    for each in progress(settings, "fitting"):
        predicted = np.asarray(clone(model).set_params(**each).fit(X, draws).predict(inputs), dtype=float)
        squared_bias.append(float(((predicted.mean(axis=1) - expected) ** 2).mean()))
        variance.append(float(predicted.var(axis=1, ddof=1).mean()))
    # The mean of the draws has itself a variance: subtract it.
    unbiased = np.maximum(np.array(squared_bias) - np.array(variance) / n_draws, 0.0)
    return BiasVariance(settings, unbiased, np.array(variance), float(noise), int(n_draws))


def _true_targets(truth: Callable[[Any], Any], rows: Rows) -> np.ndarray:
    """Return the true targets of rows; raise DataError unless there is a finite number for every row."""
    targets = np.asarray(truth(rows), dtype=float)
    finite = bool(np.isfinite(targets).all())
    if targets.ndim != 1 or len(targets) != _num_samples(rows) or not finite:
        raise DataError(
            f"truth returned an array of shape {targets.shape}, finite: {finite}; expected a finite number for each of "
            f"{_num_samples(rows)} rows."
        )
    return targets
