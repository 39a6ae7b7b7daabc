"""The empirical prior of Gaussians: how far the groups' means and variances lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.beliefs.log_gamma import digamma_rising, log_rising, trigamma_rising
from tallybayes.beliefs.normal_inverse_gamma import NormalInverseGamma
from tallybayes.beliefs.normal_inverse_wishart import NormalInverseWishart
from tallybayes.families.climb import climb
from tallybayes.families.family import Family
from tallybayes.families.gaussian import pooled_spread
from tallybayes.statistics.moments import Moments

_FACTOR = 100.0  # how far the typical variance may lie from that within groups
_ROUNDS = 8  # of moving the location and climbing from there


def fit_gamma_of_variances(family: Family, statistics: Moments, flat: Moments, estimate: str) -> NormalInverseGamma:
    """The normal-inverse-gamma prior of every column, or of all that share a variance.

    Parameters
    ----------
    family : Family
    statistics : Moments
        As they are, for the default prior.
    flat : Moments
        With one axis of groups.
    estimate : {"bayes", "map"}

    Returns
    -------
    NormalInverseGamma
    """
    default: Any = family.default_prior(statistics, "bayes")
    shared = tuple(getattr(family, "shared", ()))
    moments = flat.diagonal()
    n = np.broadcast_to(moments.weight, moments.first_sum.shape)
    centre, spread = pooled_spread(flat)
    unit = np.where(spread > 0, spread, 1.0)
    one = "columns" in shared
    if one:
        unit = np.full_like(unit, spread.mean())
    mean = np.where(n > 0, (moments.mean - centre) / np.sqrt(unit), 0.0)
    scatter = moments.scatter / unit

    def pool(cells: np.ndarray) -> np.ndarray:
        """Sums over what shares one variance: (variances, units), of (groups, columns)."""
        cells = cells.sum(axis=1, keepdims=True) if one else cells
        return cells.sum(axis=0, keepdims=True) if "groups" in shared else cells

    def over(cells: np.ndarray) -> np.ndarray:
        """Sums over the groups, and the columns that share their numbers: (units,)."""
        total = cells.sum(axis=0)
        return total.sum(keepdims=True) if one else total

    half = pool(n) / 2

    def make(location: np.ndarray) -> Any:
        square = (mean - location) ** 2

        def evaluate(place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            kappa, a = np.exp(place[:, 0]), np.exp(place[:, 1])
            b = a * np.exp(place[:, 2])
            part = n / (kappa + n)  # of a group's distance from the location that counts as scatter, over κ
            moved = kappa * part * square / 2
            e, e1 = pool(scatter / 2 + moved), pool(moved * part)
            e2 = pool(moved * part * (2 * part - 1))
            full, sure = b + e, a + half
            value = (log_rising(a, half) - a * np.log1p(e / b) - half * np.log(full)).sum(axis=0)
            value += over(-0.5 * np.log1p(n / kappa))
            by_k = -(sure * e1 / full).sum(axis=0) + over(part) / 2
            by_b = (a - sure * b / full).sum(axis=0)
            by_a = a * (digamma_rising(a, half) - np.log1p(e / b)).sum(axis=0)
            by_kk = -(sure * (e2 / full - (e1 / full) ** 2)).sum(axis=0) - over(part * (1 - part)) / 2
            by_aa = by_a + a**2 * trigamma_rising(a, half).sum(axis=0)
            by_ab = (a * e / full).sum(axis=0)
            by_bb = -(sure * b * e / full**2).sum(axis=0)
            by_ka = -(a * e1 / full).sum(axis=0)
            by_kb = (sure * b * e1 / full**2).sum(axis=0)
            # b = a · typical: a larger a at the same typical variance moves b along
            slope = np.stack([by_k, by_a + by_b, by_b], -1)
            rows = [
                [by_kk, by_ka + by_kb, by_kb],
                [by_ka + by_kb, by_aa + 2 * by_ab + by_bb, by_ab + by_bb],
                [by_kb, by_ab + by_bb, by_bb],
            ]
            return value, slope, np.stack([np.stack(row, -1) for row in rows], -2)

        return evaluate

    total = over(n) / (len(unit) if one else 1)
    within = over(scatter)
    lonely = (over((n > 0).astype(float)) <= (len(unit) if one else 1)) | ~(within > 0)
    start = np.log(np.stack([np.full_like(total, 0.01), np.full_like(total, 1.5), np.ones_like(total)], -1))
    low, high = _bounds(total, start, lonely, tied="groups" in shared)
    place, location = _alternate(make, start, low, high, mean, n)
    kappa, a, typical = (np.exp(place[:, i]) for i in range(3))
    location = np.where(lonely, 0.0, location)
    n_means = (len(n) if "groups" in shared else 1) * (len(unit) if one else 1)
    factor = a + 1 + n_means / 2 if estimate == "map" else a
    keep = slice(0, 1) if one else slice(None)
    scale = typical * factor * unit[keep]
    del default
    return NormalInverseGamma(centre + location * np.sqrt(unit), kappa, a, scale, shared=shared)


def fit_wishart(family: Family, statistics: Moments, flat: Moments, estimate: str) -> NormalInverseWishart:
    """The normal-inverse-Wishart prior of a block of columns.

    Parameters
    ----------
    family : Family
    statistics : Moments
        As they are, for the default prior.
    flat : Moments
        With one axis of groups.
    estimate : {"bayes", "map"}

    Returns
    -------
    NormalInverseWishart
    """
    raise NotImplementedError


def _bounds(total: np.ndarray, start: np.ndarray, lonely: np.ndarray, *, tied: bool) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of log κ, log a and the log of the typical variance, for that many rows; what is not found is held."""
    rows = np.maximum(total, 1.0)
    zero = np.zeros_like(rows)
    low = np.stack([zero - 30.0, zero + np.log(0.5), zero - np.log(_FACTOR)], -1)
    high = np.stack([np.log(rows), np.log(np.maximum(rows, 1.0) / 2), zero + np.log(_FACTOR)], -1)
    high = np.maximum(high, low)
    hold = lonely[:, None] | (np.array([False, True, True]) if tied else np.zeros(3, dtype=bool))
    return np.where(hold, start, low), np.where(hold, start, high)


def _alternate(
    make: Any, start: np.ndarray, low: np.ndarray, high: np.ndarray, mean: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Climb, move the location to the mean of the groups' means weighted n/(n + κ), and climb again."""
    place = start
    for _ in range(_ROUNDS):
        weight = n / (n + np.exp(place[:, 0]))
        location = (weight * mean).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
        new = climb(make(location), place, low, high)
        if np.abs(new - place).max(initial=0.0) < 1e-7:
            return new, location
        place = new
    return place, location
