"""Mixture of Student's t or normal distributions: the distribution of continuous nodes of a Bayesian network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr, stdtr

_MAX_BISECTIONS = 200  # more than a float has digits


class StudentTMixture(NamedTuple):
    """Student's t components; a component is normal where its degrees of freedom are infinite.

    Attributes
    ----------
    weights : ndarray of shape (k,)
    locations : ndarray of shape (k, d)
    scatters : ndarray of shape (k, d, d)
        Covariance of a normal component; squared scale of a t component.
    degrees_of_freedom : ndarray of shape (k, d)
    combinations : ndarray of int of shape (k,)
        The combination of levels of the queried discrete nodes that each component belongs to: its index in their
        table of probabilities, flattened.
    """

    weights: np.ndarray
    locations: np.ndarray
    scatters: np.ndarray
    degrees_of_freedom: np.ndarray
    combinations: np.ndarray

    def conditional(self, selected: np.ndarray) -> StudentTMixture:
        """Return the mixture of some components, of one combination of levels."""
        weights, locations, scatters, nu = (part[selected] for part in self[:-1])
        return StudentTMixture(weights / weights.sum(), locations, scatters, nu, np.zeros(len(weights), dtype=np.intp))

    def marginal(self, columns: np.ndarray, combinations: np.ndarray) -> StudentTMixture:
        """Return the mixture of some dimensions, with other combinations of levels."""
        scatters = self.scatters[:, columns[:, None], columns]
        degrees_of_freedom = self.degrees_of_freedom[:, columns]
        return StudentTMixture(self.weights, self.locations[:, columns], scatters, degrees_of_freedom, combinations)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of shape (d,) and the covariance of shape (d, d); variances may be infinite."""
        nu = self.degrees_of_freedom
        mean = self.weights @ self.locations
        centered = self.locations - mean
        with np.errstate(divide="ignore", invalid="ignore"):
            inflation = np.where(np.isinf(nu), 1.0, nu / (nu - 2))
            inflation = np.sqrt(np.where(nu > 2, inflation, np.inf))
            # a node with a t component is independent of the others, so its scatter is diagonal
            scale = np.where(self.scatters == 0, 1.0, inflation[:, :, None] * inflation[:, None, :])
            within = self.scatters * scale
        between = centered[:, :, None] * centered[:, None, :]
        return mean, np.einsum("k,kij->ij", self.weights, within + between)

    def pdf(self, x: np.ndarray) -> np.ndarray:
        """Return the density at each x of the one dimension: (...)."""
        z, scale, nu = self._standardize(x)
        normal = np.isinf(nu)
        finite = np.where(normal, 1.0, nu)
        log_t = gammaln((finite + 1) / 2) - gammaln(finite / 2) - 0.5 * np.log(np.pi * finite)
        log_t = log_t - (finite + 1) / 2 * np.log1p(z**2 / finite)
        log_density = np.where(normal, -0.5 * z**2 - 0.5 * np.log(2 * np.pi), log_t)
        density: np.ndarray = np.exp(log_density - np.log(scale)) @ self.weights
        return density

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Return the probability of a value of at most each x of the one dimension: (...)."""
        z, _, nu = self._standardize(x)
        below = np.where(np.isinf(nu), ndtr(z), stdtr(np.where(np.isinf(nu), 1.0, nu), z))
        probability: np.ndarray = below @ self.weights
        return probability

    def quantile(self, q: np.ndarray) -> np.ndarray:
        """Invert `cdf` by bisection: a value for each probability."""
        low, high = np.full(q.shape, self.locations[:, 0].min()), np.full(q.shape, self.locations[:, 0].max())
        step = np.sqrt(self.scatters[:, 0, 0].max())
        while (outside := (self.cdf(low) > q) | (self.cdf(high) < q)).any():
            low, high = np.where(outside, low - step, low), np.where(outside, high + step, high)
            step = 2 * step
        for _ in range(_MAX_BISECTIONS):
            middle = low + (high - low) / 2
            if ((middle <= low) | (middle >= high)).all():
                break
            reached = self.cdf(middle) >= q
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    def _standardize(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        scale = np.sqrt(self.scatters[:, 0, 0])
        return (x[..., None] - self.locations[:, 0]) / scale, scale, self.degrees_of_freedom[:, 0]
