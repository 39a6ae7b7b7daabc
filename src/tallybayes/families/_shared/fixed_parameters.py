"""Parameters that are stated, not counted: their numbers by name, checked, and a belief that is worth so many rows.

What a family's parameters are follows from its conjugate belief.
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
from tallybayes.errors import EstimateError, PriorError
from tallybayes.families._shared.mahalanobis import cholesky
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import Family
from tallybayes.statistics.segments import Segments

_NAMES: dict[type[ParameterDistribution], tuple[str, ...]] = {
    Beta: ("probability",),
    Dirichlet: ("probability",),
    Gamma: ("rate",),
    NormalInverseGamma: ("mean", "variance"),
    NormalInverseWishart: ("mean", "covariance"),
    LinearNormalInverseGamma: ("slope", "intercept", "variance"),
}
_TOLERANCE = 1e-6  # of sums of probabilities, as people round them


def parameter_names(family: Family) -> tuple[str, ...]:
    """What the parameters of a family are called; none where they cannot be stated."""
    if family.present_family is not None or (
        family.is_conditional and not family.number_is_weight_decay
    ):  # lines are stated of a network's nodes
        return ()
    return _NAMES.get(family.conjugate_prior, ())


def check_parameters(
    family: Family, numbers: Mapping[str, Any], sizes: Sequence[int], what: str, *, as_they_are: bool = False
) -> Any:
    """A family's parameters from their numbers by name, or an error that says what is wrong with them.

    Parameters
    ----------
    family : Family
    numbers : mapping from name to array
        Shape (*given, columns), of levels (*given, cells), of a covariance (*given, columns, columns); of a line the
        slopes (*given, columns), all else (*given,).
    sizes : sequence of int
        Of columns that fall into levels: how many each has.
    what : str
        What a message calls them.
    as_they_are : bool, default False
        Whether probabilities that sum to 1 but for rounding stay so, to the last bit: those of a file do.
    """
    arrays = {name: np.array(numbers[name], dtype=np.float64) for name in parameter_names(family)}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise EstimateError(f"{what} has a {name} that is no number; expected finite ones.")
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
    """Probabilities from 0 to 1, normalized where they are those of levels; refused where they do not sum to 1."""
    allowed = (table >= 0) & (table <= 1 + _TOLERANCE)
    if not allowed.all():
        wrong = float(table[~allowed][0])
        raise EstimateError(f"{what} has the probability {wrong:.6g}; expected numbers from 0 to 1.")
    if family.conjugate_prior is Beta:
        return np.minimum(table, 1.0)
    segments = Segments([table.shape[-1]] if family.is_bag_of_words else sizes)
    sums = segments.sum(table)
    wrong_sums = sums[np.abs(sums - 1) > _TOLERANCE]
    if len(wrong_sums):
        raise EstimateError(f"{what} sums to {wrong_sums[0]:.6g}; expected probabilities that sum to 1.")
    table = table if as_they_are else table / segments.broadcast_to_cells(sums)
    return table if family.is_bag_of_words else LevelProbabilities(table, segments)


def _check_covariance(covariance: np.ndarray, what: str) -> None:
    """Refuse covariance matrices that are not symmetric or not positive definite."""
    if not np.allclose(covariance, np.swapaxes(covariance, -1, -2), rtol=1e-9, atol=0):
        raise EstimateError(f"{what} has a covariance that is not symmetric.")
    if cholesky(covariance) is None:
        raise EstimateError(
            f"{what} has a covariance that is not positive definite; expected one with an inverse.\n"
            "    Every variance is above 0, and no column is a sum of others."
        )


def parameter_arrays(family: Family, parameters: Any) -> dict[str, np.ndarray]:
    """The numbers of parameters by name: what `stated` takes."""
    names = parameter_names(family)
    parts = parameters if len(names) > 1 else [getattr(parameters, "table", parameters)]
    return {name: np.array(part, dtype=np.float64) for name, part in zip(names, parts, strict=False)}


def prior_of_strength(family: Family, parameters: Any, rows: np.ndarray, what: str) -> ParameterDistribution:
    """The belief that expects these parameters and is worth so many rows of every group, shape (*given,)."""
    numbers = parameter_arrays(family, parameters)
    each = np.asarray(rows, dtype=np.float64)[..., None]
    if "variance" in numbers:
        mean, variance = numbers["mean"], numbers["variance"]
        seen = np.broadcast_to(each, mean.shape)
        pooled = [axis for axis, name in ((0, "groups"), (-1, "columns")) if name in family.tied_over and mean.ndim > 1]
        total = seen.sum(axis=tuple(pooled), keepdims=True)
        if not (total > 2).all():
            raise _too_weak(what, 2, float(total.min()))
        variance = variance.mean(axis=tuple(pooled), keepdims=True)
        return NormalInverseGamma(mean, seen, total / 2, variance * (total / 2 - 1), tied_over=family.tied_over)
    if "covariance" in numbers:
        mean, covariance = numbers["mean"], numbers["covariance"]
        total, width = np.asarray(rows, dtype=np.float64), mean.shape[-1]
        if "groups" in family.tied_over:
            total, covariance = total.sum(keepdims=True), covariance[:1]
        if not (total > width + 1).all():
            raise _too_weak(what, width + 1, float(total.min()))
        scale = covariance * (total - width - 1)[..., None, None]
        return NormalInverseWishart(mean, rows, total, scale, tied_over=family.tied_over)
    (numbers_only,) = numbers.values()
    zero = numbers_only <= 0 if family.conjugate_prior is not Beta else (numbers_only <= 0) | (numbers_only >= 1)
    if zero.any() or not (each > 0).all():
        raise PriorError(
            f"{what} has a 0, which no number of rows is worth: a belief in it could never change.\n"
            "    State a small probability instead, or leave strength= out."
        )
    if family.conjugate_prior is Gamma:
        return Gamma(numbers_only * each, np.broadcast_to(each, numbers_only.shape))
    if family.conjugate_prior is Beta:
        trials = each * getattr(family, "n", 1)
        return Beta(numbers_only * trials, (1 - numbers_only) * trials)
    sizes = (
        None
        if family.is_bag_of_words or parameters.segments.n_columns == 1
        else tuple(parameters.segments.sizes.tolist())
    )
    return Dirichlet(numbers_only * each, sizes=sizes)


def _too_weak(what: str, least: float, found: float) -> PriorError:
    return PriorError(
        f"{what} would be worth {found:.4g} rows, and a belief about a spread expects one only when worth more than "
        f"{least:g}.\n    Pass a larger strength."
    )
