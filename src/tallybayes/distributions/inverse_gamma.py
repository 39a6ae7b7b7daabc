"""Inverse-gamma distribution of a variance, the part that the normal-inverse-gamma priors share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, gammaln

from tallybayes.distributions.log_gamma import log_growth, stirling_remainder


class InverseGamma(NamedTuple):
    """σ² ~ InverseGamma(a, b) with density ∝ σ^(−2(a + 1)) e^(−b/σ²), for arrays of parameters.

    Parameters
    ----------
    shape, scale : array
        The parameters a and b.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.distributions.inverse_gamma import InverseGamma
    >>> InverseGamma(np.array([3.0, 1.0]), np.array([4.0, 4.0])).mean()
    array([ 2., inf])
    """

    shape: np.ndarray
    scale: np.ndarray

    def mean(self) -> np.ndarray:
        """Return E[σ²] = b / (a − 1), infinite for a ≤ 1."""
        finite = self.shape > 1
        return np.where(finite, self.scale / np.where(finite, self.shape - 1, 1.0), np.inf)

    def quantile(self, probability: float) -> np.ndarray:
        """Return the quantile of σ²."""
        return np.asarray(self.scale / gammaincinv(self.shape, 1 - probability))

    def sample(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw random variances."""
        precision = np.maximum(rng.standard_gamma(self.shape, size), 1e-150)  # underflows to 0 for tiny a
        return np.asarray(self.scale / precision)

    def log_prob(self, variance: np.ndarray) -> np.ndarray:
        """Return log p(σ²) of positive variances."""
        norm = self.shape * np.log(self.scale) - gammaln(self.shape)
        return np.asarray(norm - (self.shape + 1) * np.log(variance) - self.scale / variance)

    def log_evidence(self, half_weight: np.ndarray, half_scatter: np.ndarray) -> np.ndarray:
        """Return the log marginal likelihood of n normal deviations with scatter s, given n/2 and s/2.

        log Γ(a + n/2) and n/2 · log b grow like n log n. They cancel up to the log of a variance, b over a.
        """
        growth = log_growth(self.shape, half_weight)
        log_variance = np.log(self.scale + half_scatter) - np.log(self.shape + half_weight)
        return np.asarray(
            -half_weight * (1 + np.log(2 * np.pi) + log_variance)
            - self.shape * (log_growth(self.scale, half_scatter) - growth)
            - 0.5 * growth
            + (stirling_remainder(self.shape + half_weight) - stirling_remainder(self.shape))
        )


def log_normal_density(deviation: np.ndarray, strength: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the log density of N(0, variance / strength) at a deviation from the mean."""
    return np.asarray(0.5 * (np.log(strength / (2 * np.pi * variance)) - strength * deviation**2 / variance))
