"""User-specified parameters: names, validation, and priors of a given strength around them.

The parameters of a family follow from its conjugate prior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma, LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal, NormalInverseWishart
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.distributions.tied_variance import first_along, pool_tied, tied_axes
from tallybayes.errors import EstimateError, PriorError
from tallybayes.families._shared.mahalanobis import cholesky
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import Family, Parameters
from tallybayes.statistics.counts import Segments

_NAMES: dict[type[ParameterDistribution], tuple[str, ...]] = {
    Beta: ("probability",),
    Dirichlet: ("probability",),
    Gamma: ("rate",),
    NormalInverseGamma: ("mean", "variance"),
    NormalInverseWishart: ("mean", "covariance"),
    LinearNormalInverseGamma: ("slope", "intercept", "variance"),
}
_TOLERANCE = 1e-6  # of sums of probabilities, for rounded input


def parameter_names(family: Family) -> tuple[str, ...]:
    """Return the names of a family's parameters; empty if they cannot be specified."""
    if family.present_family is not None or (
        family.is_conditional and not family.number_is_weight_decay
    ):  # linear parameters are specified for network nodes only
        return ()
    return _NAMES.get(family.conjugate_prior, ())


def check_parameters(
    family: Family, numbers: Mapping[str, Any], sizes: Sequence[int], what: str, *, as_they_are: bool = False
) -> Any:
    """Return a family's parameters from arrays by name, or raise EstimateError.

    Parameters
    ----------
    family : Family
    numbers : mapping from name to array
        Shape (*given, columns); level probabilities (*given, cells); covariances (*given, columns, columns). For linear
        models the slopes have shape (*given, columns), the intercept and variance (*given,).
    sizes : sequence of int
        Number of levels of every column, for columns with levels.
    what : str
        Name of the parameters in error messages.
    as_they_are : bool, default False
        Whether to keep probabilities bit by bit instead of normalizing them, as for files.
    """
    arrays = {name: np.array(numbers[name], dtype=np.float64) for name in parameter_names(family)}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise EstimateError(f"{what} has a non-finite {name}; expected finite numbers.")
    if "probability" in arrays:
        return _check_probabilities(family, arrays["probability"], sizes, what, as_they_are=as_they_are)
    if "rate" in arrays:
        if not (arrays["rate"] >= 0).all():
            raise EstimateError(f"{what} has the rate {arrays['rate'].min():.6g}; expected numbers of at least 0.")
        return arrays["rate"]
    if "variance" in arrays:
        if not (arrays["variance"] > 0).all():
            raise EstimateError(f"{what} has the variance {arrays['variance'].min():.6g}; expected one above 0.")
        if "slope" in arrays:
            return LinearParameters(arrays["slope"], arrays["intercept"], arrays["variance"])
        return Normal(arrays["mean"], arrays["variance"])
    _check_covariance(arrays["covariance"], what)
    return MultivariateNormal(arrays["mean"], arrays["covariance"])


def _check_probabilities(
    family: Family, table: np.ndarray, sizes: Sequence[int], what: str, *, as_they_are: bool
) -> Any:
    """Return probabilities, normalized over levels; raise EstimateError if invalid."""
    valid = (table >= 0) & (table <= 1 + _TOLERANCE)
    if not valid.all():
        invalid = float(table[~valid][0])
        raise EstimateError(f"{what} has the probability {invalid:.6g}; expected numbers from 0 to 1.")
    if family.conjugate_prior is Beta:
        return np.minimum(table, 1.0)
    segments = Segments([table.shape[-1]] if family.is_bag_of_words else sizes)
    sums = segments.sum(table)
    invalid_sums = sums[np.abs(sums - 1) > _TOLERANCE]
    if len(invalid_sums):
        raise EstimateError(f"{what} sums to {invalid_sums[0]:.6g}; expected probabilities that sum to 1.")
    table = table if as_they_are else table / segments.broadcast_to_cells(sums)
    return table if family.is_bag_of_words else LevelProbabilities(table, segments)


def _check_covariance(covariance: np.ndarray, what: str) -> None:
    """Raise EstimateError if a covariance is not symmetric or not positive definite."""
    if not np.allclose(covariance, np.swapaxes(covariance, -1, -2), rtol=1e-9, atol=0):
        raise EstimateError(
            f"{what} has a covariance that is not symmetric: {covariance}.\n"
            "    If the differences are rounding errors, pass (A + A.T) / 2."
        )
    if cholesky(covariance) is None:
        raise EstimateError(
            f"{what} has a covariance that is not positive definite; expected an invertible matrix.\n"
            "    Variances must be above 0, and no column may be a linear combination of others."
        )


def parameter_arrays(family: Family, parameters: Parameters) -> dict[str, np.ndarray]:
    """Return the arrays of parameters by name, as `check_parameters` accepts them."""
    names = parameter_names(family)
    parts = parameters if len(names) > 1 else [getattr(parameters, "table", parameters)]
    return {name: np.array(part, dtype=np.float64) for name, part in zip(names, parts, strict=False)}


def prior_of_strength(family: Family, parameters: Any, rows: np.ndarray, what: str) -> ParameterDistribution:
    """Return the prior with these parameters as its mean and a strength in rows per group, shape (*given,)."""
    arrays = parameter_arrays(family, parameters)
    strength = np.asarray(rows, dtype=np.float64)
    if "mean" in arrays:
        return _gaussian_prior(family, arrays, strength, what)
    strength = strength[..., None]
    (parameter,) = arrays.values()
    is_degenerate = parameter <= 0 if family.conjugate_prior is not Beta else (parameter <= 0) | (parameter >= 1)
    if is_degenerate.any() or not (strength > 0).all():
        raise PriorError(
            f"{what} contains 0, which is not the mean of any prior; expected positive probabilities or rates.\n"
            "    Specify a small probability instead, or omit strength=."
        )
    if family.conjugate_prior is Gamma:
        return Gamma.from_mean(parameter, strength)
    if family.conjugate_prior is Beta:
        return Beta.from_mean(parameter, strength * getattr(family, "n", 1))
    sizes = (
        None
        if family.is_bag_of_words or parameters.segments.n_columns == 1
        else tuple(parameters.segments.sizes.tolist())
    )
    return Dirichlet(parameter * strength, sizes=sizes)


def _gaussian_prior(
    family: Family, arrays: Mapping[str, np.ndarray], strength: np.ndarray, what: str
) -> NormalInverseGamma | NormalInverseWishart:
    """Return the prior with this mean and variance or covariance; strength in rows, shape (*given,).

    A variance that several means share has the sum of their strengths.
    """
    mean, covariance, tied = arrays["mean"], arrays.get("covariance"), family.tied_over
    n_trailing, least = (1, 2) if covariance is None else (0, mean.shape[-1] + 1)
    strength = np.broadcast_to(strength[..., None], mean.shape) if covariance is None else strength
    total = pool_tied(strength, tied, n_trailing)
    if not (total > least).all():
        raise PriorError(
            f"{what} has a prior strength of {float(total.min()):.4g} rows; expected more than {least:g}, so that the "
            "prior mean of a variance exists.\n    Pass a larger strength."
        )
    if covariance is None:
        variance = arrays["variance"].mean(axis=tied_axes(tied, mean.ndim), keepdims=True)
        return NormalInverseGamma(mean, strength, total / 2, variance * (total / 2 - 1), tied_over=tied)
    scale = first_along(covariance, tied_axes(tied, covariance.ndim, 2)) * (total - least)[..., None, None]
    return NormalInverseWishart(mean, strength, total, scale, tied_over=tied)
