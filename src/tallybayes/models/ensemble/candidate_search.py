"""Choosing: all candidates on the same rows, the best of them or their mixture, and the report."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from tallybayes.data.sampling import sampled_rows
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.calibration.temperature_scaling import calibrated_proba, fit_temperature_scaling
from tallybayes.estimation.resampling.folds import random_folds
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.family import out_of_support_cells
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.poisson import Poisson
from tallybayes.models.ensemble.candidate_models import CandidateModel, CandidateModels
from tallybayes.models.ensemble.ensemble_spec import EnsembleSpec, MemberSpec, TemperatureSpec
from tallybayes.models.ensemble.feature_views import numbers_of
from tallybayes.models.ensemble.leaderboard import Leaderboard, LeaderboardEntry, interval
from tallybayes.models.ensemble.leakage import LEAST_ACCURACY
from tallybayes.models.ensemble.stacking import bounded, stacking_weights
from tallybayes.models.inputs.labels import read_labels

_MOST_ROWS = 20_000  # that candidates are tried on, sampled at random; what is chosen counts all rows
_LEAST_WEIGHT = 0.01  # of a member


@cache
def blas_libraries() -> ThreadpoolController:
    """The libraries of linear algebra: to find those that are loaded takes longer than to choose by few rows."""
    return ThreadpoolController().select(user_api="blas")


def search_candidates(
    model: Any, table: Table, target: Any, weight: np.ndarray | None, start: float
) -> tuple[EnsembleSpec, Leaderboard]:
    """Try every candidate on the rows, and choose: the choice, and what is to be said about it."""
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        table = table.rows(kept)
        weight = weight[kept]
    n_total = table.n_rows
    if n_total == 0:
        raise DataError("the weight of every row is zero; expected at least one row that counts.")
    if table.n_rows > _MOST_ROWS:
        some = _with_invalid_cells(table, target, sampled_rows(table.n_rows, _MOST_ROWS, model.random_state))
        table = table.rows(some)
        weight = None if weight is None else weight[some]
    codes = read_labels(table, target).codes
    n_folds = max(2, min(int(model.folds), table.n_rows))
    if table.n_rows < 2:
        raise DataError(
            "there is 1 row, one sample, to choose by; expected at least 2.\n    tb.NaiveBayes learns from one."
        )
    fold = random_folds(np.asarray(codes).astype(np.intp), n_folds, model.random_state)
    trials = CandidateModels(table, target, weight, fold)
    tried = list(trials.run())
    if not tried:
        raise DataError("no candidate can be made of these rows:\n" + "\n".join(trials.skipped.values()))
    losses = [float(np.average(candidate.losses, weights=weight)) for candidate in tried]
    best: dict[str, int] = {}
    for number in np.argsort(losses, kind="stable").tolist():
        best.setdefault("one" if model.single else tried[number].kind, number)  # the best of all, or of every kind
    for number in best.values():
        tried[number] = trials.mended(tried[number])
    members, weights = _mixture([tried[number] for number in sorted(best.values())], weight)
    scores = np.log(
        sum(share * calibrated_proba(one.scores, one.tempering) for one, share in zip(members, weights, strict=True))
    )
    tempering = fit_temperature_scaling(bounded(scores), trials.codes, weight)
    found = calibrated_proba(bounded(scores), tempering)
    chosen = tuple(
        MemberSpec.of(one, float(share), trials.classes) for one, share in zip(members, weights, strict=True)
    )
    by_name = {one.name: one.weight for one in chosen}
    lines = [
        LeaderboardEntry(one.name, *interval(one.losses, weight), by_name.get(one.name, 0.0), one.seconds)
        for one in tried
    ]
    truth = -np.log(found[np.arange(len(found)), trials.codes])
    accuracy = float(np.average(found.argmax(axis=1) == trials.codes, weights=weight))
    report = Leaderboard(
        lines,
        interval(truth, weight),
        accuracy,
        trials.families,
        trials.dropped_columns,
        trials.skipped,
        time.perf_counter() - start,
        table.n_rows,
        n_folds,
        n_total,
        trials.leaks() if accuracy >= LEAST_ACCURACY else [],
    )
    return EnsembleSpec(chosen, TemperatureSpec.of(tempering, trials.classes)), report


def _with_invalid_cells(table: Table, target: Any, rows: np.ndarray) -> np.ndarray:
    """The rows, and for each family and column of which they all are in the support, a row that is not.

    A family is chosen only if it supports all rows that it is chosen from; and all rows of the table are counted.
    """
    more = []
    for name in table.columns:
        if name != target and not table.is_block(name) and table.kind(name) == "number":
            column = numbers_of(table, name)
            for family in (Poisson(), LogNormal(), Bernoulli()):
                wrong = out_of_support_cells(family, column)
                if wrong.any() and not wrong[rows].any():
                    more.append(int(wrong.argmax()))
    return np.union1d(rows, np.array(more, dtype=rows.dtype))


def _mixture(members: list[CandidateModel], weight: np.ndarray | None) -> tuple[list[CandidateModel], np.ndarray]:
    """The members and their weights, heaviest first; what weighs next to nothing is left out."""
    weights = stacking_weights(np.stack([-one.losses for one in members], axis=1), weight)
    kept = [k for k in np.argsort(-weights, kind="stable") if weights[k] >= min(_LEAST_WEIGHT, weights.max())]
    return [members[k] for k in kept], weights[kept] / weights[kept].sum()
