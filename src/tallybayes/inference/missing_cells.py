"""Missing cells under a full covariance: expected moments by EM.

A missing cell of one column is informed by the others, so its row cannot simply be skipped there. EM fills it in by its
conditional mean, adds its conditional covariance to the scatter, re-estimates, and repeats; every step raises the
objective. The moments it ends with depend on the parameters, so they add but cannot be taken apart again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.families.estimates import estimate_parameters
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian, pooled_spread
from tallybayes.families.multivariate_gaussian import MultivariateGaussian, patterns_of
from tallybayes.statistics.moments import Moments


class Completed(NamedTuple):
    """Expected moments, and how EM ended."""

    moments: Moments
    history: list[float]  # the objective after every step, in nats
    objective: str
    converged: bool


def complete_moments(
    rows: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    weight: np.ndarray | None,
    family: Family,
    prior: Any,
    estimate: str,
    *,
    check: Callable[[Any, Moments], None] | None = None,
    n_iter: int = 200,
    tol: float = 1e-8,
) -> Completed:
    """Expected moments of rows with missing cells.

    Parameters
    ----------
    rows : ndarray of shape (n, columns)
        NaN where a cell is missing.
    group : ndarray of int of shape (n,)
    n_groups : int
    weight : ndarray of shape (n,), optional
    family : a Gaussian family
        What the rows follow in every group.
    prior : Belief, rule or None
        Resolved once, from the cells that are known, and held.
    estimate : {"bayes", "map", "mle", "unbiased"}
        ``"bayes"`` and ``"map"`` climb the log posterior, the others the log likelihood.
    check : callable, optional
        Called with the parameters of every step and the moments they are of, to refuse those without a density.
    n_iter : int, default 200
    tol : float, default 1e-8
        It has converged when a step raises the objective by less than this, per row.

    Returns
    -------
    Completed
    """
    weights = np.ones(len(rows)) if weight is None else weight
    known = Gaussian().collect(rows, group, n_groups, weight)
    how = "map" if estimate in ("bayes", "map") else "mle"
    if how == "map" and (prior is None or isinstance(prior, str)):
        flat = ~(pooled_spread(known)[1] > 0)
        if flat.all() or (flat.any() and "columns" not in family.shared):  # type: ignore[attr-defined]
            options: dict[str, Any] = {"n_iter": n_iter, "tol": tol}
            return _around_flat(rows, group, n_groups, weight, family, prior, estimate, known, flat, options)
    belief = None if how == "mle" else family.prior(prior, known, "map")
    parameters = _start(known)
    history: list[float] = []
    counted = (group >= 0) & (weights > 0)
    index = np.flatnonzero(counted)
    moments = _expected(rows, group, n_groups, weight, parameters, known)
    converged = False
    for _ in range(n_iter):
        parameters = estimate_parameters(family, belief, moments, how)
        if check is not None:
            check(parameters, moments)
        score = _row_scores(family, parameters, rows[index])[np.arange(len(index)), group[index]]
        value = float(weights[index] @ score)
        if belief is not None:
            value += float(np.sum(belief.update(moments.scale(0.0)).log_prob(parameters)))
        history.append(value)
        if len(history) > 1 and history[-1] - history[-2] < tol * max(weights[index].sum(), 1.0):
            converged = True
            break
        moments = _expected(rows, group, n_groups, weight, _matrices(parameters), known)
    return Completed(moments, history, "log posterior" if belief is not None else "log likelihood", converged)


def _around_flat(
    rows: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    weight: np.ndarray | None,
    family: Family,
    prior: Any,
    estimate: str,
    known: Moments,
    flat: np.ndarray,
    options: dict[str, Any],
) -> Completed:
    """Expected moments where some columns have no spread: those say nothing, and stay as constant as they are."""
    varied = np.flatnonzero(~flat)
    if len(varied):
        done = complete_moments(rows[:, varied], group, n_groups, weight, family, prior, estimate, **options)
    else:
        none = MultivariateGaussian().collect(np.zeros((len(rows), 1)), group, n_groups, weight)
        done = Completed(none, [], "log posterior", True)
    anchor = np.where(flat, known.pooled().mean, 0.0)  # about its own value, a constant column has sums of 0
    anchor[varied] = done.moments.anchor[: len(varied)]

    def first(array: np.ndarray) -> np.ndarray:
        out = np.zeros((n_groups, len(flat)))
        out[:, varied] = array[:, : len(varied)]
        return out

    def second(array: np.ndarray) -> np.ndarray:
        out = np.zeros((n_groups, len(flat), len(flat)))
        out[:, varied[:, None], varied] = array[:, : len(varied), : len(varied)]
        return out

    some = done.moments
    whole = Moments(anchor, some.weight_sum, some.first_sum.map(first), some.second_sum.map(second))
    return done._replace(moments=whole)


def _start(known: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Means and uncorrelated covariances of the cells that are known; the pooled ones where a group has none."""
    pooled = known.pooled()
    weight = np.broadcast_to(known.weight, known.first_sum.shape)
    mean = np.where(weight > 0, known.mean, pooled.mean)
    spread = pooled.scatter / np.maximum(pooled.weight, 1.0)
    spread = np.where(spread > 0, spread, 1.0)
    variance = np.where(weight > 1, known.scatter / np.maximum(weight, 1.0), spread)
    variance = np.where(variance > 0, variance, spread)
    return mean, variance[..., None] * np.eye(known.n_columns)


def _matrices(parameters: Any) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariance matrices of any Gaussian family's parameters."""
    mean, spread = np.asarray(parameters[0]), np.asarray(parameters[1])
    return mean, spread if spread.ndim == 3 else spread[..., None] * np.eye(mean.shape[-1])


def _row_scores(family: Family, parameters: Any, rows: np.ndarray) -> np.ndarray:
    terms = family.log_prob(parameters, rows)
    return terms.sum(axis=-1) if family.columnwise else terms


def _expected(
    rows: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    weight: np.ndarray | None,
    parameters: tuple[np.ndarray, np.ndarray],
    like: Moments,
) -> Moments:
    """The E-step: rows filled in by their conditional means, and what is still uncertain about them as scatter."""
    mean, covariance = parameters
    filled = rows.copy()
    extra = np.zeros((n_groups, rows.shape[1], rows.shape[1]))
    for known, index in patterns_of(rows, empty=True):
        absent = np.setdiff1d(np.arange(rows.shape[1]), known)
        if not len(absent):
            continue
        for code in np.unique(group[index]):
            if code < 0:
                continue
            mine = index[group[index] == code]
            spread = covariance[code]
            slope = np.linalg.solve(spread[np.ix_(known, known)], spread[np.ix_(known, absent)])
            gap = rows[np.ix_(mine, known)] - mean[code, known]
            filled[np.ix_(mine, absent)] = mean[code, absent] + gap @ slope
            rest = spread[np.ix_(absent, absent)] - spread[np.ix_(absent, known)] @ slope
            total = float(len(mine) if weight is None else weight[mine].sum())
            extra[code][np.ix_(absent, absent)] += total * (rest + rest.T) / 2
    filled[group < 0] = np.where(np.isnan(filled[group < 0]), 0.0, filled[group < 0])
    moments = MultivariateGaussian().collect(filled, group, n_groups, weight, like=like)
    return moments.with_scatter(extra)
