"""Rows far from every class: their log densities are so low that the digits which tell the classes apart are lost.

At x = 1e17 the squares (x − 0)² and (x − 1)² are the same float64, and at 1e160 neither is one. Here a row is written
as s·u with |u| ≤ 1, squared lengths as s²·A − 2s·B + C, and classes are compared by the differences of A, B and C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from tallybayes.beliefs.log_gamma import log_gamma_half_step, log_rising
from tallybayes.families.gaussian import Gaussian, SphericalGaussian
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.families.squared_lengths import invert_lower, patterns_of
from tallybayes.models.fitted.scoring import Scored, chunk_of, rows_of

if TYPE_CHECKING:
    from tallybayes.models.fitted.bayes_rule import Normalised
    from tallybayes.models.fitted.plan import Plan
    from tallybayes.sources.table import Table

LOST = -1e15  # log probabilities below this are rounded to a tenth, or to more


def lost_rows(best: np.ndarray) -> np.ndarray | None:
    """The rows whose largest log p(class, row) has lost its digits, or None."""
    if not len(best) or best.min() >= LOST:
        return None
    return np.flatnonzero(~(best >= LOST))


def settled(plan: Plan, table: Table, found: Normalised) -> Normalised:
    """Bayes' rule with the rows compared once more that are far from every class."""
    lost = lost_rows(found.log_density)
    if lost is None or not any(measures(part) for part in plan.scored):
        return found
    joint, common = far_joint(plan, table.rows(lost))
    possible = np.isfinite(joint).any(axis=1)  # by labels, for example, a row can be impossible in every class
    joint, common, lost = joint[possible], common[possible], lost[possible]
    total = logsumexp(joint, axis=1)
    found.log_proba[lost] = joint - total[:, None]
    found.log_density[lost] = np.maximum(common + total, np.finfo(float).min)  # −inf is for what cannot be
    return found


def settled_best(plan: Plan, table: Table, best: np.ndarray, lost: np.ndarray | None) -> np.ndarray:
    """The most probable classes, found once more for the rows that are `lost`."""
    if lost is not None and any(measures(part) for part in plan.scored):
        joint, _ = far_joint(plan, table.rows(lost))
        best[lost] = joint.argmax(axis=1)
    return best


def measures(part: Scored) -> bool:
    """Whether a factor's log probability falls with the square of a distance."""
    return isinstance(part.family, Gaussian | MultivariateGaussian)


def far_joint(plan: Plan, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """log p(class, row), less a number of each row's own, and that number: −inf where no float64 holds it.

    Parameters
    ----------
    plan : Plan
    table : Table
        Rows that no class has near.

    Returns
    -------
    joint : ndarray of shape (n, classes)
    common : ndarray of shape (n,)
    """
    n_rows, n_classes = table.n_rows, len(plan.log_prior)
    joint = np.tile(plan.log_prior, (n_rows, 1))
    cells = {}
    for number, part in enumerate(plan.scored):
        if measures(part):
            rows = rows_of(table, part.factor.columns, part.family, plan.domains[number], plan.unseen)
            cells[number] = part._varied(np.asarray(chunk_of(rows, slice(None)), dtype=float))
        else:
            plan._add_terms(joint, table, number)
    size = np.ones(n_rows)
    for x in cells.values():
        np.maximum(size, np.nanmax(np.abs(np.where(np.isnan(x), 0.0, x)), axis=1, initial=0.0), out=size)
    lengths = np.zeros((3, n_rows, n_classes))  # A, B and C of what falls with the square itself
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for number, x in cells.items():
            _add(plan.scored[number], x / size[:, None], size, joint, lengths)
        return _compared(joint, lengths, size, plan._impossible)


def _compared(
    joint: np.ndarray, lengths: np.ndarray, size: np.ndarray, impossible: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The joint less half the squared lengths s²·A − 2s·B + C: beyond that of a row's best class, and of that one."""
    every, s = np.arange(len(joint)), size[:, None]
    joint[:, impossible] = -np.inf
    lengths[:, :, impossible] = 0.0
    best = joint.argmax(axis=1)
    for _ in range(joint.shape[1]):  # an infinite lead says which class leads, not which of those leads most
        a, b, c = (part - part[every, best, None] for part in lengths)
        lead = joint - joint[every, best, None] - 0.5 * ((a * s - 2 * b) * s + c)
        lead = np.where(np.isnan(lead), -np.inf, lead)
        better = lead.argmax(axis=1)
        if (lead[every, better] <= 0).all():
            break
        best = np.where(lead[every, better] > 0, better, best)
    a, b, c = (part[every, best] for part in lengths)
    return lead, joint[every, best] - 0.5 * ((a * size - 2 * b) * size + c)


def far_leads(rows: np.ndarray, means: np.ndarray, projection: np.ndarray) -> np.ndarray:
    """−½ ‖W(row − mean)‖² for every mean, beyond that of the nearest: the squares of the row itself cancel."""
    middle, size = means.mean(axis=0), np.abs(rows).max(axis=1, initial=1.0)
    means = (means - middle) @ projection.T
    joint, lengths = np.tile(-0.5 * (means**2).sum(axis=1), (len(rows), 1)), np.zeros((3, len(rows), len(means)))
    lengths[1] = (rows / size[:, None] - middle / size[:, None]) @ projection.T @ means.T
    with np.errstate(over="ignore"):
        return _compared(joint, lengths, size, np.zeros(len(means), dtype=bool))[0]


def _add(part: Scored, u: np.ndarray, size: np.ndarray, joint: np.ndarray, lengths: np.ndarray) -> None:
    """Add one factor's logarithms to the joint, and its squares, if they are not within a logarithm, to the lengths."""
    found: Any = part.parameters
    if isinstance(part.family, MultivariateGaussian):
        _add_rows(part, u, size, joint, lengths)
        return
    known = ~np.isnan(u)[:, None, :]
    mean = np.asarray(found.location if part.predictive else found.mean)
    spread = 2 * found.scale * (1 + 1 / found.strength) if part.predictive else np.asarray(found.variance)
    root = 1 / np.sqrt(np.broadcast_to(spread, mean.shape))
    y = np.where(known, u[:, None, :] * root, 0.0)
    at = np.where(known, mean * root, 0.0)
    terms = y * y, y * at, at * at
    if not part.predictive:
        joint -= 0.5 * np.where(known, np.log(2 * np.pi / root**2), 0.0).sum(axis=-1)
        lengths += np.stack([term.sum(axis=-1) for term in terms])
        return
    shape = np.broadcast_to(found.shape, mean.shape)
    log_norm = np.where(known, np.log(root) - 0.5 * np.log(np.pi), 0.0).sum(axis=-1)
    if isinstance(part.family, SphericalGaussian):
        n_known = known.sum(axis=-1)
        log_norm += log_rising(shape[:, 0], n_known / 2)
        joint += log_norm - (shape[:, 0] + n_known / 2) * _log1p([term.sum(axis=-1) for term in terms], size[:, None])
        return
    log_norm += np.where(known, log_gamma_half_step(shape), 0.0).sum(axis=-1)
    joint += log_norm - np.where(known, (shape + 0.5) * _log1p(terms, size[:, None, None]), 0.0).sum(axis=-1)


def _add_rows(part: Scored, u: np.ndarray, size: np.ndarray, joint: np.ndarray, lengths: np.ndarray) -> None:
    found, family = part.parameters, part.family
    assert isinstance(family, MultivariateGaussian)
    mean = np.asarray(found.location if part.predictive else found.mean)
    for known, index in patterns_of(u):
        if part.predictive:
            root = family.predictive_root(found, known)
        else:
            root = family._root(family._own(np.asarray(found.covariance))[:, known[:, None], known])
        inverse = invert_lower(root)
        y = np.einsum("kij,nj->nki", inverse, u[np.ix_(index, known)])
        at = np.einsum("kij,kj->ki", np.broadcast_to(inverse, (len(mean), *inverse.shape[1:])), mean[:, known])
        terms = np.stack(np.broadcast_arrays((y * y).sum(-1), (y * at).sum(-1), (at * at).sum(-1)))
        log_det, k = 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1), len(known)
        if part.predictive:
            freedom = found.freedom - mean.shape[-1] + 1
            log_norm = log_rising(freedom / 2, k / 2) - k / 2 * np.log(np.pi) - log_det / 2
            joint[index] += log_norm - (freedom + k) / 2 * _log1p(terms, size[index, None])
        else:
            joint[index] -= 0.5 * (log_det + k * np.log(2 * np.pi))
            lengths[:, index] += terms


def _log1p(lengths: Sequence[np.ndarray] | np.ndarray, size: np.ndarray) -> np.ndarray:
    """log(1 + s²·A − 2s·B + C), with nothing squared that would overflow."""
    a, b, c = lengths
    scaled = np.maximum(a - 2 * b / size + (c + 1) / size / size, 0.0)
    return np.where(scaled > 0, 2 * np.log(size) + np.log(np.where(scaled > 0, scaled, 1.0)), 0.0)
