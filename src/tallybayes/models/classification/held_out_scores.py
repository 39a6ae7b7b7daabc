"""Held-out scores by subtraction: every row is scored by the counts of all other rows, or of the other folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.base import clone

from tallybayes._utils.progress import progress
from tallybayes.data.counting import check_weight, count
from tallybayes.data.table import Table
from tallybayes.errors import DataError, NotForgettableError
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.estimation.resampling.folds import random_folds, rows_by_code
from tallybayes.estimation.resampling.held_out import kfold_splits, subtract_all, subtract_tally
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.models.classification.classifier_fit import class_factor
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.classification.held_out_rows import LabeledRows
from tallybayes.models.inputs.features import free_name
from tallybayes.models.inputs.input_format import bound_texts, read_initial_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier

FOLDS = 10  # number of folds for calibration, if rows are not left out one by one


class OpenedRows(NamedTuple):
    """Rows to count and to score: a model with their format, the table, the class codes and the weights."""

    model: Classifier
    target: Name
    table: Table
    labels: np.ndarray
    weight: np.ndarray | None


class CountedFolds(NamedTuple):
    """Counted rows: the model of all rows, their class codes, and the statistics of every fold."""

    model: Classifier
    table: Table
    codes: np.ndarray
    weight: np.ndarray | None
    parts: list[list[Statistics]]
    log_base: dict[int, np.ndarray]  # terms of log p(row | class) that all classes share, see `RowScorer.posterior_of`

    def without(self, fold: int) -> list[Statistics]:
        """Return the statistics of all rows minus those of a fold."""
        return subtract_all(self.model.tally_.statistics, self.parts[fold])

    def empty_scores(self) -> ClassPosterior:
        """Return arrays for the scores of all rows."""
        n_rows = self.table.n_rows
        return ClassPosterior(np.empty((n_rows, len(self.model.classes_))), np.empty(n_rows))

    def some_weight(self, rows: slice | np.ndarray) -> np.ndarray | None:
        """Return the weights of some rows."""
        return None if self.weight is None else self.weight[rows]


def open_rows(model: Classifier, X: Rows, y: Labels | None, sample_weight: SampleWeights) -> OpenedRows:
    """Read the rows as `fit` does."""
    fresh = clone(model)
    fresh.input_format_, table, weight = read_initial_rows(X, y, sample_weight)
    target = fresh.input_format_.target
    labels = read_labels(table, target, fresh.missing_label)
    if labels.n_missing and fresh.unlabeled is not None:
        raise NotForgettableError.soft()
    labels.check_complete("Pass unlabeled='em' or 'skip', or leave the unlabeled rows out.", fresh.missing_label)
    found, _ = table.levels([target], lambda _: True)
    return OpenedRows(fresh, target, table, np.asarray(found.columns[0]), check_weight(weight, table.n_rows))


def count_rows(opened: OpenedRows, fold: np.ndarray | None = None) -> CountedFolds:
    """Count the rows once, with the fold as an additional axis of the statistics."""
    model, target, table, labels, weight = opened
    factors = [class_factor(model), *model._make_factors(table, target, weight)]
    schema = Schema(sorted_domains=(str(target),))
    counted = model._discretize(table)
    name = free_name("fold", list(table.columns))
    given = factors if fold is None else [Factor(f.columns, (name, *f.given), f.family) for f in factors]
    try:
        tally = count(counted if fold is None else counted.with_column(name, fold), given, weight=weight, schema=schema)
    except DataError as error:
        if rows_with_missing(table, factors).any():  # EM imputes these values from all rows: they cannot be subtracted
            raise NotForgettableError.soft() from error
        raise
    classes = tally.domains[str(target)]
    if not classes.levels:
        raise DataError("no row has a positive weight; expected at least 1.")
    parts: list[list[Statistics]] = []
    if fold is not None:
        where = tally.domains[name].positions_of(range(int(fold.max()) + 1))
        parts = [[_of_fold(s, int(place)) for s in tally.statistics] for place in where]
        domains = {key: domain for key, domain in tally.domains.items() if key != name}
        tally = Tally(factors, [s.pool_first_axis() for s in tally.statistics], domains, schema)
    _, (local,) = table.levels([target], lambda _: True)
    codes = _codes_of(labels, classes.positions_of(local.levels))
    model = model._set_tally(tally)
    return CountedFolds(model, bound_texts(model, table), codes, weight, parts, {})


def _of_fold(statistics: Statistics, place: int) -> Statistics:
    """Return the statistics of one fold, the first axis; zeros for a fold without weight."""
    if place < 0:
        return statistics.take(0, np.array([-1])).reshape_groups(statistics.given_shape[1:])
    return statistics.at(place)


def _codes_of(labels: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return the class codes; rows of zero weight, which may lack a label, have code 0."""
    if np.array_equal(where, np.arange(len(where))):
        return labels.astype(np.intp, copy=False)
    return np.maximum(where, 0)[labels.astype(np.intp)]


def score_folds(
    rows: CountedFolds,
    models: Sequence[Classifier],
    train: Callable[[int], list[Statistics]],
    fold: np.ndarray,
) -> list[ClassPosterior]:
    """Return the scores of every row by each model, estimated from the training rows of its fold.

    ``train`` returns the training statistics of a fold. Rows of fold −1 are training rows only; their scores are NaN.
    """
    n_folds = int(fold.max()) + 1
    out = [rows.empty_scores() for _ in models]
    apart = []
    without_first = train(0)
    for model, scores in zip(models, out, strict=True):
        estimates = estimates_of(model)
        scores.log_proba[fold < 0], scores.log_density[fold < 0] = np.nan, np.nan
        first = estimates.fold_scorer(without_first)
        others = (estimates.fold_scorer(train(k)) for k in range(1, n_folds))
        by_kernels = first.uses_kernels(rows.table)
        if not (by_kernels and first.posterior_by_fold(others, n_folds, fold, rows.table, scores, rows.log_base)):
            apart.append((estimates, scores, first))
    if not apart:
        return out

    def learn(k: int) -> list[RowScorer]:
        here = train(k) if k else []
        plans = [estimates.fold_scorer(here) if k else first for estimates, _, first in apart]
        for plan in plans:
            plan.uses_kernels(rows.table)  # it also makes its tables
        return plans

    tests = rows_by_code(fold, n_folds)
    with ThreadPoolExecutor(1) as aside:  # estimates the next fold while this one is scored
        soon = aside.submit(learn, 0)
        for k in progress(range(n_folds), "cross-validating"):
            plans = soon.result()
            if k + 1 < n_folds:
                soon = aside.submit(learn, k + 1)
            for plan, (_, scores, _) in zip(plans, apart, strict=True):
                plan.posterior_of(tests[k], rows.table, scores, rows.log_base)
    return out


def score_left_out(rows: CountedFolds, model: Classifier) -> ClassPosterior:
    """Return the scores of every row by the model of all other rows (leave-one-out)."""
    return estimates_of(model).score_left_out(rows)


def held_out_scores(
    model: Classifier, table: Table, weight: SampleWeights, fold: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return held-out log p(class | row) of training rows, their classes and weights.

    Every row is held out alone or, with folds, together with its fold. After EM, statistics cannot be subtracted: the
    model is refitted for ten folds.
    """
    weight = check_weight(weight, table.n_rows)
    if model.tally_.soft:
        return _refitted(model, table, weight, fold)
    if model.unlabeled == "skip":
        kept = np.flatnonzero(read_labels(table, model.target_, model.missing_label).codes >= 0)
        table = table.rows(kept)
        weight = None if weight is None else weight[kept]
        fold = None if fold is None else fold[kept]
    found, (local,) = table.levels([model.target_], lambda _: True)
    classes = model.tally_.domains[str(model.target_)]
    codes = _codes_of(np.asarray(found.columns[0]), classes.positions_of(local.levels))
    rows = CountedFolds(model, bound_texts(model, table), codes, weight, [], {})
    if fold is None:
        return score_left_out(rows, model).log_proba, codes, weight

    def train(k: int) -> list[Statistics]:
        chosen = np.flatnonzero(fold == k)
        part = model._count_more_rows(table.rows(chosen), rows.some_weight(chosen))
        return list(subtract_tally(model.tally_, part).statistics)

    return score_folds(rows, [model], train, fold)[0].log_proba, codes, weight


def _refitted(
    model: Classifier, table: Table, weight: SampleWeights, fold: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return log p(class | row) of labeled rows by models refitted without their fold, their classes and weights."""
    rows = LabeledRows(model, table, weight)
    known = np.flatnonzero(rows.codes >= 0)
    size = np.ones(table.n_rows) if rows.weight is None else rows.weight
    total = float(np.where(rows.codes >= 0, size, model.unlabeled_weight * size).sum())
    if not np.isclose(total, model.n_rows_):
        raise DataError(
            f"these rows have weight {total:.12g}, but the model has counted {model.n_rows_:.12g}; expected "
            "all rows it was fitted on, since it is fitted again without some of them."
        )
    if fold is None:
        fold = np.full(table.n_rows, -1, dtype=np.int32)
        fold[known] = random_folds(rows.codes[known], min(FOLDS, len(known)), 0)
    found = rows.score(kfold_splits(fold, rows.codes >= 0))
    return found.log_proba[known], rows.codes[known], rows.some_weight(known)
