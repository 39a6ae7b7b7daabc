"""Choice between full and tied covariances by the leave-one-out log loss of training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from tallybayes.data.counting import check_weight
from tallybayes.data.sampling import sampled_rows
from tallybayes.data.table import Table
from tallybayes.errors import EstimateError
from tallybayes.estimation.resampling.folds import Folds, random_folds
from tallybayes.estimation.scoring.factor_scorer import chunk_of
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.classification.held_out_rows import CountedRows, class_codes
from tallybayes.models.classification.leave_one_out_scores import scores_in_closed_form
from tallybayes.models.inputs.family_evidence import MOST_ROWS
from tallybayes.models.inputs.labels import read_labels
from tallybayes.tally.factor import Name
from tallybayes.typing import SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.discriminant.gaussian_discriminant import GaussianDiscriminant

CANDIDATES = ("tied", "full")  # for equal losses, the first
_FOLDS = 5  # under shrinkage, which has no closed form of leave-one-out
_SCORED = (1000, 5000)  # the least and the largest number of rows that are scored
_PRODUCTS = 2e8  # multiplications for the distances of the scored rows, where the number is between


def choose_covariance(
    model: GaussianDiscriminant, table: Table, names: tuple[Name, ...], target: Name, sample_weight: SampleWeights
) -> str:
    """Return the covariance of the lowest leave-one-out log loss; "tied" if no row can be left out.

    The moments cannot show it: rows that are not Gaussian may have the same moments as Gaussian rows, for which full
    covariances are better. At most `MOST_ROWS` random rows are counted, of which those with a label and without
    missing cells are used; at most 5,000 are scored, in wide tables fewer. A row of weight above 1 is left out once.

    Parameters
    ----------
    model : GaussianDiscriminant
        With the parameters of the estimates.
    table : Table
    names : tuple of names
        The numeric columns.
    target : name
    sample_weight : array of shape (n,), optional
    """
    weight = check_weight(sample_weight, table.n_rows)
    weight = np.ones(table.n_rows) if weight is None else weight
    labeled = read_labels(table, target, model.missing_label).codes >= 0
    index = np.flatnonzero(labeled & (weight > 0))
    index = index[sampled_rows(len(index), MOST_ROWS)]
    if len(index) < 2 or not names:
        return CANDIDATES[0]
    index = index[np.isfinite(chunk_of(table.rows(index).numbers(names), slice(None))).all(axis=1)]
    if len(index) < 2:
        return CANDIDATES[0]
    rows, weight = table.rows(index), weight[index]
    options = {"class_prior": None, "calibration": None, "unlabeled": None, "n_classes": None}
    counted = clone(model).set_params(covariance=CANDIDATES[0], **options).fit(rows, target, weight)
    n_scored = np.clip(_PRODUCTS / (len(names) ** 2 * len(counted.classes_)), *_SCORED)
    scored = sampled_rows(len(index), int(n_scored))
    losses = np.stack([_losses(counted.reestimate(covariance=each), rows, weight, scored) for each in CANDIDATES])
    defined = np.isfinite(losses).any(axis=0)
    means = np.nan_to_num(losses[:, defined], nan=np.inf, posinf=np.inf) @ weight[scored][defined]
    return CANDIDATES[int(means.argmin())]


def _losses(model: GaussianDiscriminant, rows: Table, weight: np.ndarray, scored: np.ndarray) -> np.ndarray:
    """Return the log loss of some rows, each without itself or without its fold; infinite if a class is singular."""
    part = rows.rows(scored)
    codes = class_codes(model, part)
    held = CountedRows(model, part, codes, np.minimum(weight[scored], 1.0), [])
    try:
        if model.shrinkage is None:
            log_proba = scores_in_closed_form(held, estimates_of(model)).log_proba
        else:
            fold = random_folds(codes, min(_FOLDS, len(codes)), 0)
            log_proba = held.score(Folds(fold, np.ones(len(codes), dtype=bool))).log_proba
    except EstimateError:
        return np.full(len(codes), np.inf)
    return np.asarray(-log_proba[np.arange(len(codes)), codes])
