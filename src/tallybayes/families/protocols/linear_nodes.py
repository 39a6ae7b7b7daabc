"""Protocol of network nodes that are linear in continuous parents."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian
from tallybayes.families.family import Family, Parameters
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.linear_gaussian import LinearGaussian


def family_given_continuous_parents(family: Family) -> Family | None:
    """Return the family of such a node given continuous parents, or None if there is none.

    Variances must not be shared, and cells must not be transformed.
    """
    if isinstance(family, ConditionalLinearGaussian):
        return family
    return ConditionalLinearGaussian() if type(family) in (Gaussian, LinearGaussian) else None


@singledispatch
def as_linear_model(family: Family, parameters: Parameters) -> LinearParameters:
    """Return the parameters of a node as a linear model of its continuous parents."""
    raise NotImplementedError


@as_linear_model.register(LinearGaussian)
def _(family: LinearGaussian, parameters: LinearParameters) -> LinearParameters:
    """Return the parameters unchanged."""
    return parameters


@as_linear_model.register(Gaussian)
def _(family: Gaussian, parameters: Normal) -> LinearParameters:
    """Return a linear model without inputs: the intercept is the mean."""
    mean, variance = np.broadcast_arrays(*(np.asarray(part, dtype=float)[..., 0] for part in parameters))
    return LinearParameters(np.zeros((*mean.shape, 0)), mean, variance)
