"""Protocol of network nodes that are linear in continuous parents."""

from __future__ import annotations

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
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


def as_linear_model(family: Family, parameters: Parameters) -> LinearParameters:
    """Return the parameters of a node as a linear model of its continuous parents; without inputs for `Gaussian`."""
    if isinstance(parameters, LinearParameters):
        return parameters
    if not isinstance(family, Gaussian):
        raise NotImplementedError
    mean, variance = np.broadcast_arrays(*(np.asarray(part, dtype=float)[..., 0] for part in parameters))
    return LinearParameters(np.zeros((*mean.shape, 0)), mean, variance)
