"""Sampling of rows from one-dependence classifiers, and imputation of missing cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from tallybayes.data.table import Table
from tallybayes.estimation.factor_sampling import MissingCellPrediction
from tallybayes.families.protocols.counting import sql_group_value
from tallybayes.models.one_dependence.estimated_pairs import EstimatedPairs
from tallybayes.models.one_dependence.pair_counts import discretize
from tallybayes.models.one_dependence.pair_scorer import PairScorer
from tallybayes.tally.domain import labels_at
from tallybayes.typing import Name


def columns_of_codes(pairs: EstimatedPairs, codes: np.ndarray, rng: np.random.Generator) -> dict[Name, Any]:
    """Return the columns of rows with these level codes; binned numbers are uniform within their bin.

    Dropped columns and columns without levels are NaN.
    """
    index = {name: position for position, name in enumerate(pairs.counts.names)}
    columns: dict[Name, Any] = {}
    for name, family in pairs.columns.families.items():
        if name not in index:
            columns[name] = np.full(len(codes), np.nan)
            continue
        code = codes[:, index[name]]
        if not family.bins:
            columns[name] = labels_at(pairs.counts.domains[index[name]].levels, code)
            continue
        binned: Any = family.present_family or family
        ends = binned.ends
        if family.present_family is not None:
            ends = np.append(ends, np.nan)  # the bin of missing values
        columns[name] = ends[code] + (ends[code + 1] - ends[code]) * rng.random(len(code))
    return columns | {name: np.full(len(codes), np.nan) for name in pairs.columns.dropped_columns}


def predict_missing(
    pairs: EstimatedPairs, scorer: PairScorer, table: Table, proba: np.ndarray, how: str
) -> dict[Any, MissingCellPrediction]:
    """Return the predictive distribution of each missing cell given the other cells of its row.

    Numbers are predicted by the mean of the bin midpoints, or by the midpoint of the most probable bin with "mode".

    Parameters
    ----------
    pairs : EstimatedPairs
    scorer : PairScorer
    table : Table
    proba : ndarray of shape (n, classes)
        p(class | row).
    how : {"mean", "mode", "distribution"}
    """
    all_codes = [np.asarray(column) for column in pairs.codes(table)]
    discretized = discretize(pairs.columns, table)
    predictions: dict[Any, MissingCellPrediction] = {}
    for index, (name, domain) in enumerate(zip(pairs.counts.names, pairs.counts.domains, strict=True)):
        family = pairs.columns.families[name]
        missing_level = pairs.columns.absent_level(name, domain)
        cells, local = discretized.encoded(name)
        codes = cells.astype(np.int64)  # an unseen level is not missing
        missing = codes < 0
        if missing_level is not None:
            missing |= codes == pairs.columns.absent_level(name, local)
        rows = np.flatnonzero(missing)
        if not len(rows):
            continue
        levels = [level for level in range(len(domain.levels)) if level != missing_level]
        log_p = np.empty((len(rows), len(levels)))
        candidate = [column[rows].astype(np.int32) for column in all_codes]
        for out, level in enumerate(levels):
            candidate[index] = np.full(len(rows), level, dtype=np.int32)
            log_p[:, out] = np.logaddexp.reduce(scorer.joint_of(candidate), axis=1)
        level_proba = softmax(log_p, axis=1) if levels else log_p
        if family.bins:
            midpoints = sql_group_value(family.present_family or family, np.arange(len(levels)))
            mean = midpoints[level_proba.argmax(axis=1)] if how == "mode" else level_proba @ midpoints
            predictions[name] = MissingCellPrediction(rows, np.ones((len(rows), 1)), means=mean[:, None])
        else:
            labels = tuple(domain.levels[level] for level in levels)
            predictions[name] = MissingCellPrediction(rows, proba[rows], labels, level_proba)
    return predictions
