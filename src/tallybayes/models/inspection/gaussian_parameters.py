"""Means and covariances of all Gaussian columns of a model as arrays, for every class, component or state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tallybayes._utils.memory import require_memory
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
from tallybayes.errors import EstimateError
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.tally.factor import Name


class _GaussianFactor(NamedTuple):
    """A factor of Gaussian columns: their positions among all Gaussian columns, means and variances or covariances."""

    positions: np.ndarray
    mean: np.ndarray
    spread: np.ndarray  # variances (*groups, columns), or covariances (*groups, columns, columns)


def _gaussian_factors(
    factors: Sequence[LabeledFactor], feature_names: Iterable[Name], model: str, what: str
) -> list[_GaussianFactor]:
    """Return the factors of Gaussian columns, numbered in the order of the columns of X."""
    parts = [factor for factor in factors if not factor.family.transforms]
    parts = [factor for factor in parts if isinstance(factor.point, Normal | MultivariateNormal)]
    names = [
        (name, index) for factor in parts for name in factor.columns for index in range(max(len(factor.within), 1))
    ]
    if not names:
        raise EstimateError(
            f"this {model} has no {what}: none of its columns is Gaussian.\n"
            "    parameters_ has the parameters of every column."
        )
    order = {name: index for index, name in enumerate(feature_names)}
    in_x = sorted(range(len(names)), key=lambda k: (order.get(names[k][0], _number(names[k][0])), names[k][1]))
    rank = np.argsort(in_x)
    gaussian_factors = []
    start = 0
    for factor in parts:
        mean, spread = (np.asarray(part, dtype=float) for part in factor.point)
        width = mean.shape[-1]
        spread = np.broadcast_to(spread, (*mean.shape, width) if spread.ndim > mean.ndim else mean.shape)
        groups = tuple(map(len, factor.groups))
        spread = spread.reshape(groups + spread.shape[mean.ndim - 1 :])
        gaussian_factors.append(_GaussianFactor(rank[start : start + width], mean.reshape(*groups, width), spread))
        start += width
    return gaussian_factors


def _number(name: Name) -> int:
    """Return an integer name, else 0."""
    return name if isinstance(name, int) else 0


def means(labeled: Sequence[LabeledFactor], feature_names: Iterable[Name], model: str) -> np.ndarray:
    """Return the means of all Gaussian columns in every class or state, shape (groups, columns), in the order of X.

    Parameters
    ----------
    labeled : sequence of LabeledFactor
    feature_names : iterable of names
        The columns of X, if they have names.
    model : str
        The name of the model, for errors.
    """
    factors = _gaussian_factors(labeled, feature_names, model, "means_")
    out = np.empty((*factors[0].mean.shape[:-1], sum(len(factor.positions) for factor in factors)))
    for factor in factors:
        out[..., factor.positions] = factor.mean
    return out


def covariances(labeled: Sequence[LabeledFactor], feature_names: Iterable[Name], model: str) -> np.ndarray:
    """Return the covariances of all Gaussian columns in every class or state, shape (groups, columns, columns).

    The parameters are those of `means`.
    """
    factors = _gaussian_factors(labeled, feature_names, model, "covariances_")
    groups = factors[0].mean.shape[:-1]
    d = sum(len(factor.positions) for factor in factors)
    n_groups = math.prod(groups)
    what = f"covariances_ of {d} columns in {n_groups} groups"
    require_memory(8 * n_groups * d * d, what, "parameters_ has the variances only.")
    out = np.zeros((*groups, d, d))
    for factor in factors:
        if factor.spread.ndim == factor.mean.ndim:
            out[..., factor.positions, factor.positions] = factor.spread
        else:
            out[..., factor.positions[:, None], factor.positions] = factor.spread
    return out
