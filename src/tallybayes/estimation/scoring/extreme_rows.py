"""Rows far from every class, whose log densities are too large for float64 to tell classes apart.

At x = 1e17 the squares (x − 0)² and (x − 1)² are the same float64, and at 1e160 they overflow. Here a row is written
as s·u with |u| ≤ 1, squared lengths as s²·A − 2s·B + C, and classes are compared by the differences of A, B and C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from tallybayes.distributions.log_gamma import log_rising
from tallybayes.estimation.scoring.factor_scorer import chunk_of
from tallybayes.families._shared.log_prob_forms import (
    MultivariateNormalForm,
    MultivariateTForm,
    NormalForm,
    StudentTForm,
)
from tallybayes.families._shared.mahalanobis import missing_patterns
from tallybayes.families.protocols.scoring_forms import form_of, log_jacobian, transform

if TYPE_CHECKING:
    from tallybayes.data.table import Table
    from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
    from tallybayes.estimation.scoring.row_scorer import RowScorer

Measured = NormalForm | StudentTForm | MultivariateNormalForm | MultivariateTForm
LOST = -1e15  # log probabilities below this have a rounding error of 0.1 or more


def rows_without_precision(best: np.ndarray) -> np.ndarray | None:
    """Return the rows whose largest log p(class, row) has lost its precision, or None."""
    if not len(best) or best.min() >= LOST:
        return None
    return np.flatnonzero(~(best >= LOST))


def rescore_extreme_rows(plan: RowScorer, table: Table, found: ClassPosterior) -> None:
    """Score the rows again that are far from every class, precisely."""
    lost = np.flatnonzero(~(found.log_density >= LOST))
    forms = _measured_forms(plan)
    if not forms:
        return
    joint, common = far_joint(plan, table.rows(lost), forms)
    possible = np.isfinite(joint).any(
        axis=1
    )  # a row can be impossible in every class, for example by a categorical column
    joint = joint[possible]
    common = common[possible]
    lost = lost[possible]
    total = logsumexp(joint, axis=1)
    found.log_proba[lost] = joint - total[:, None]
    found.log_density[lost] = np.maximum(common + total, np.finfo(float).min)  # −inf is for impossible rows


def settled_best(plan: RowScorer, table: Table, best: np.ndarray, lost: np.ndarray | None) -> np.ndarray:
    """Return the most probable classes, with `lost` rows scored again.

    Impossible rows get the class of highest prior.
    """
    if lost is not None:
        rows = table.rows(lost)
        forms = _measured_forms(plan)
        joint = far_joint(plan, rows, forms)[0] if forms else plan.joint(rows, whole=False)
        possible = np.isfinite(joint).any(axis=1)
        best[lost] = np.where(possible, joint.argmax(axis=1), plan.log_prior.argmax())
    return best


def _measured_forms(plan: RowScorer) -> dict[int, Measured]:
    """Return the forms that are quadratic in the row, by the number of their factor."""
    scorers = (factor.scorer for factor in plan.factors)
    forms = [form_of(scorer.family, scorer.parameters, scorer.predictive) for scorer in scorers]
    return {number: form for number, form in enumerate(forms) if isinstance(form, Measured)}


def far_joint(plan: RowScorer, table: Table, forms: dict[int, Measured]) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(class, row) minus a number per row, and that number; −inf where float64 cannot represent it.

    Parameters
    ----------
    scorer : RowScorer
    table : Table
        Rows that are far from every class.
    forms : dict
        The quadratic forms, by the number of their factor; at least one.

    Returns
    -------
    joint : ndarray of shape (n, classes)
    common : ndarray of shape (n,)
    """
    n_rows = table.n_rows
    n_classes = len(plan.log_prior)
    joint = np.tile(plan.log_prior, (n_rows, 1))
    cells = {}
    for number, factor in enumerate(plan.factors):
        if number in forms:
            scorer = factor.scorer
            rows = scorer.varying(chunk_of(factor.cells(table), slice(None)))
            cells[number] = np.asarray(transform(scorer.family, rows), dtype=float)
            base = log_jacobian(scorer.family, cells[number])
            joint += 0.0 if base is None else base[:, None]
        else:
            factor.add_terms(joint, table)
    size = np.ones(n_rows)
    for x in cells.values():
        np.maximum(size, np.nanmax(np.abs(np.where(np.isnan(x), 0.0, x)), axis=1, initial=0.0), out=size)
    lengths = np.zeros((3, n_rows, n_classes))  # A, B and C of the quadratic terms
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for number, x in cells.items():
            _add(forms[number], x / size[:, None], size, joint, lengths)
        return _compared(joint, lengths, size, plan.impossible)


def _compared(
    joint: np.ndarray, lengths: np.ndarray, size: np.ndarray, impossible: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint minus half of s²·A − 2s·B + C, relative to the best class of the row, and that class value."""
    every = np.arange(len(joint))
    s = size[:, None]
    joint[:, impossible] = -np.inf
    lengths[:, :, impossible] = 0.0
    best = joint.argmax(axis=1)
    for _ in range(joint.shape[1]):  # an infinite difference does not say by how much a class leads
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
    """Return −½ ‖W(row − mean)‖² for every mean, relative to the nearest; the squares of the row itself cancel."""
    middle = means.mean(axis=0)
    size = np.abs(rows).max(axis=1, initial=1.0)
    means = (means - middle) @ projection.T
    joint = np.tile(-0.5 * (means**2).sum(axis=1), (len(rows), 1))
    lengths = np.zeros((3, len(rows), len(means)))
    lengths[1] = (rows / size[:, None] - middle / size[:, None]) @ projection.T @ means.T
    with np.errstate(over="ignore"):
        return _compared(joint, lengths, size, np.zeros(len(means), dtype=bool))[0]


def _add(form: Measured, u: np.ndarray, size: np.ndarray, joint: np.ndarray, lengths: np.ndarray) -> None:
    """Add one factor's log probabilities to the joint, and its squares to the quadratic terms."""
    if isinstance(form, MultivariateNormalForm | MultivariateTForm):
        _add_rows(form, u, size, joint, lengths)
        return
    known = ~np.isnan(u)[:, None, :]
    mean, root = (form.mean, form.precision) if isinstance(form, NormalForm) else (form.location, form.inverse_spread)
    root = np.sqrt(root)
    y = np.where(known, u[:, None, :] * root, 0.0)
    at = np.where(known, mean * root, 0.0)
    terms = y * y, y * at, at * at
    if isinstance(form, NormalForm):
        lengths += np.stack([term.sum(axis=-1) for term in terms])
        joint += np.where(known, form.log_norm, 0.0).sum(axis=-1)
    else:
        bent = form.log_norm - form.power * _log1p(terms, size[:, None, None])
        joint += np.where(known, bent, 0.0).sum(axis=-1)


def _add_rows(
    form: MultivariateNormalForm | MultivariateTForm,
    u: np.ndarray,
    size: np.ndarray,
    joint: np.ndarray,
    lengths: np.ndarray,
) -> None:
    mean = form.mean if isinstance(form, MultivariateNormalForm) else form.location
    every = np.arange(len(mean))
    for known, index in missing_patterns(u):
        y, log_det = form.whitened(u[np.ix_(index, known)], known)
        at = form.whitened(mean[:, known], known)[0]
        k = len(known)
        at = np.broadcast_to(at, (len(mean), *mean.shape[:1], k))[every, every]
        terms = np.stack(np.broadcast_arrays((y * y).sum(-1), (y * at).sum(-1), (at * at).sum(-1)))
        if isinstance(form, MultivariateNormalForm):
            joint[index] -= 0.5 * (log_det + k * np.log(2 * np.pi))
            lengths[:, index] += terms
        else:
            log_norm = log_rising(form.shape, k / 2) - k / 2 * np.log(np.pi) - log_det / 2
            joint[index] += log_norm - (form.shape + k / 2) * _log1p(terms, size[index, None])


def _log1p(lengths: Sequence[np.ndarray] | np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return log(1 + s²·A − 2s·B + C) without overflow of squares."""
    a, b, c = lengths
    scaled = np.maximum(a - 2 * b / size + (c + 1) / size / size, 0.0)
    return np.where(scaled > 0, 2 * np.log(size) + np.log(np.where(scaled > 0, scaled, 1.0)), 0.0)
