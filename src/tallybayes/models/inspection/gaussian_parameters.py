"""The means and covariances of all Gaussian columns of a model, as arrays: in every class, component or state."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import require_memory
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
from tallybayes.errors import EstimateError


class _Measured(NamedTuple):
    """A factor of Gaussian columns: where they stand among all of them, their means and their spread."""

    places: np.ndarray
    mean: np.ndarray
    spread: np.ndarray  # variances (*groups, columns), or covariances (*groups, columns, columns)


def _measured(model: Any, what: str) -> list[_Measured]:
    """The factors of Gaussian columns, which are numbered as X has them."""
    parts = [one for one in model._labeled_factors() if not one.family.transforms]
    parts = [one for one in parts if isinstance(one.point, Normal | MultivariateNormal)]
    names = [(name, place) for one in parts for name in one.columns for place in range(max(len(one.within), 1))]
    if not names:
        raise EstimateError(
            f"this {type(model).__name__} has no {what}: none of its columns is Gaussian.\n"
            "    parameters_ tells of every column in the words of its family."
        )
    order = {name: place for place, name in enumerate(getattr(model, "feature_names_in_", ()))}
    in_x = sorted(range(len(names)), key=lambda k: (order.get(names[k][0], _number(names[k][0])), names[k][1]))
    rank = np.argsort(in_x)
    found = []
    start = 0
    for one in parts:
        mean, spread = (np.asarray(part, dtype=float) for part in one.point)
        width = mean.shape[-1]
        spread = np.broadcast_to(spread, (*mean.shape, width) if spread.ndim > mean.ndim else mean.shape)
        groups = tuple(map(len, one.groups))
        spread = spread.reshape(groups + spread.shape[mean.ndim - 1 :])
        found.append(_Measured(rank[start : start + width], mean.reshape(*groups, width), spread))
        start += width
    return found


def _number(name: Any) -> int:
    return name if isinstance(name, int) else 0


def means(model: Any) -> np.ndarray:
    """The means of all Gaussian columns in every class or state, shape (groups, columns), columns in the order of X.

    Of states that are mixtures, (states, components, columns).
    """
    found = _measured(model, "means_")
    out = np.empty((*found[0].mean.shape[:-1], sum(len(one.places) for one in found)))
    for one in found:
        out[..., one.places] = one.mean
    return out


def covariances(model: Any) -> np.ndarray:
    """The covariances of all Gaussian columns in every class or state, (groups, columns, columns), as for ``means_``.

    Under the estimate, ``covariance=`` and ``shrinkage=`` in use; under ``"bayes"`` posterior means. What the model
    takes to be independent has covariance 0; a shared covariance is there once for each.
    """
    found = _measured(model, "covariances_")
    groups = found[0].mean.shape[:-1]
    d = sum(len(one.places) for one in found)
    n_groups = math.prod(groups)
    what = f"covariances_ of {d} columns in {n_groups} groups"
    require_memory(8 * n_groups * d * d, what, "parameters_ has the variances alone.")
    out = np.zeros((*groups, d, d))
    for one in found:
        if one.spread.ndim == one.mean.ndim:
            out[..., one.places, one.places] = one.spread
        else:
            out[..., one.places[:, None], one.places] = one.spread
    return out
