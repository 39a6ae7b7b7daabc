"""Protocol of EM: distances for the initialization, and families that count incomplete rows."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal, min_eigenvalues
from tallybayes.families._shared.blocks import (
    SparseRows,
    compressed,
)
from tallybayes.families.autoregressive import Autoregressive
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.continuous import (
    least_variance,
)
from tallybayes.families.family import Family, Parameters
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.log_normal import LogNormal, log_cells
from tallybayes.families.multinomial import Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.families.poisson import Poisson
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics

_MAX_COLUMNS = 64  # bound on the weight of a row of counts relative to other columns in k-means++
_MIN_EIGENVALUE = 1e-10  # least eigenvalue of a correlation matrix; below it, a group collapses to a hyperplane


@singledispatch
def distance_features(family: Family, cells: np.ndarray | SparseRows) -> tuple[np.ndarray | SparseRows, float | None]:
    """Return cells on a scale suited to Euclidean distances, for k-means++ in EM, and their unit.

    The unit is None if it is the standard deviation of every column. Sparse rows stay sparse.
    """
    return cells, None


@distance_features.register(Autoregressive)
def _(family: Autoregressive, cells: np.ndarray) -> tuple[Any, float | None]:
    """Return the step and its absolute change, which separate states by level, slope and noise."""
    rows = np.asarray(cells, dtype=float)
    return np.stack([rows[:, -1], np.abs(rows[:, -1] - rows[:, 0])], axis=-1), None


@distance_features.register(Bernoulli)
def _(family: Bernoulli, cells: np.ndarray | SparseRows) -> tuple[np.ndarray | SparseRows, float | None]:
    """Return the cells, with the largest standard deviation of a binary column as unit.

    The fixed unit prevents near-constant binary columns from dominating the distances.
    """
    return cells, 0.5 if family.is_binary else None


@distance_features.register(LogNormal)
def _(family: LogNormal, cells: np.ndarray) -> tuple[np.ndarray, None]:
    """Return the logarithms."""
    return log_cells(cells), None


@distance_features.register(Multinomial)
def _(family: Multinomial, cells: np.ndarray | SparseRows) -> tuple[SparseRows, float]:
    """Return the square roots of word proportions, so that rows of any length compare (Hellinger distance)."""
    rows = cells if isinstance(cells, SparseRows) else compressed(cells)
    length = np.maximum(rows.sum_rows(rows.data), 1e-300)
    proportions = rows.data / np.repeat(length, np.diff(rows.indptr))
    return rows._replace(data=np.sqrt(proportions)), 1 / np.sqrt(min(max(rows.n_columns, 1), _MAX_COLUMNS))


@distance_features.register(Poisson)
def _(family: Poisson, cells: np.ndarray | SparseRows) -> tuple[np.ndarray | SparseRows, float | None]:
    """Return square roots, whose variance does not depend on the rate."""
    if isinstance(cells, SparseRows):
        return cells._replace(data=np.sqrt(cells.data)), None
    return np.sqrt(cells), None


def columnwise_family(family: Family) -> Family:
    """Return the family that models each column separately."""
    return Gaussian() if isinstance(family, MultivariateGaussian) else family


def columnwise_statistics(family: Family, statistics: Any) -> Any:
    """Return the statistics of `columnwise_family`: moments without products of columns."""
    return statistics.diagonal() if isinstance(family, MultivariateGaussian) else statistics


@singledispatch
def zero_small_variances(family: Family, parameters: Parameters, statistics: Statistics) -> Any:
    """Return the maximum likelihood estimate with variances at rounding level set to 0."""
    return parameters


@zero_small_variances.register(Gaussian)
def _(family: Gaussian, parameters: Normal, statistics: Moments) -> Normal:
    """Return the estimate with variances at rounding level set to 0; a group may collapse to one row."""
    variance = parameters.variance
    return parameters._replace(variance=np.where(variance < least_variance(statistics), 0.0, variance))


@zero_small_variances.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal, statistics: Moments) -> MultivariateNormal:
    """Return the estimate with nearly singular covariances set to 0; EM would not converge."""
    covariance = parameters.covariance
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    regular = np.asarray((variance > 0).all(axis=-1))
    least_eigenvalue = min_eigenvalues(np.where(regular[..., None, None], covariance, np.eye(covariance.shape[-1])))
    collapsed = (variance < least_variance(statistics)).any(axis=-1) | (least_eigenvalue < _MIN_EIGENVALUE)
    return parameters._replace(covariance=np.where(collapsed[..., None, None], 0.0, covariance))
