"""Held-out scores by subtraction: every row is scored by the counts of all other rows, or of the other folds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tallybayes._utils.progress import progress
from tallybayes.data.counting import check_weight, count
from tallybayes.data.table import Table
from tallybayes.errors import DataError, NotForgettableError
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.estimation.resampling.folds import random_folds, rows_by_code
from tallybayes.estimation.resampling.held_out import kfold_splits, subtract_tally
from tallybayes.estimation.resampling.leave_one_out import is_cellwise, leave_one_out_log_prob, leave_one_out_tables
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, ResolvedPrior, chunk_of, chunk_rows, factor_cells
from tallybayes.estimation.scoring.leave_one_out_scorer import LeaveOneOutScorer
from tallybayes.estimation.scoring.row_scorer import RowScorer, posterior_by_fold
from tallybayes.families._shared.blocks import Codes, SparseRows
from tallybayes.families.protocols.degenerate_estimates import add_unit_variance
from tallybayes.families.protocols.leave_one_out import leave_one_out_changes_all_groups
from tallybayes.models.classification.classifier_fit import class_factor
from tallybayes.models.classification.held_out_rows import LabeledRows
from tallybayes.models.inputs.features import free_name
from tallybayes.models.inputs.input_format import bound_texts, read_initial_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.factor import Factor
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier

FOLDS = 10  # number of folds for calibration, if rows are not left out one by one


class OpenedRows(NamedTuple):
    """Rows to count and to score: a model with their format, the table, the class codes and the weights."""

    model: Classifier
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
        pairs = zip(self.model.tally_.statistics, self.parts[fold], strict=True)
        return [whole._subtract(part) for whole, part in pairs]


def open_rows(model: Classifier, X: Rows, y: Labels | None, sample_weight: SampleWeights) -> OpenedRows:
    """Read the rows as `fit` does."""
    fresh = clone(model)
    fresh.input_format_, table, weight = read_initial_rows(X, y, sample_weight)
    labels = read_labels(table, fresh._target, fresh.missing_label)
    if labels.n_missing and fresh.unlabeled is not None:
        raise NotForgettableError.soft()
    labels.check_complete("Pass unlabeled='em' or 'skip', or leave the unlabeled rows out.", fresh.missing_label)
    found, _ = table.levels([fresh._target], lambda _: True)
    return OpenedRows(fresh, table, np.asarray(found.columns[0]), check_weight(weight, table.n_rows))


def count_rows(opened: OpenedRows, fold: np.ndarray | None = None) -> CountedFolds:
    """Count the rows once, with the fold as an additional axis of the statistics."""
    model, table, labels, weight = opened
    factors = [class_factor(model), *model._make_factors(table, model._target, weight)]
    schema = Schema(sorted_domains=(str(model._target),))
    counted = model._discretize(table)
    name = free_name("fold", list(table.columns))
    given = factors if fold is None else [Factor(f.columns, (name, *f.given), f.family) for f in factors]
    try:
        tally = count(counted if fold is None else counted.with_column(name, fold), given, weight=weight, schema=schema)
    except DataError as error:
        if rows_with_missing(
            table, factors
        ).any():  # EM imputes these values from all rows, so rows cannot be subtracted
            raise NotForgettableError.soft() from error
        raise
    if not tally.domains[str(model._target)].levels:
        raise DataError("no row has a positive weight; expected at least 1.")
    parts: list[list[Statistics]] = []
    if fold is not None:
        where = tally.domains[name].positions_of(range(int(fold.max()) + 1))
        parts = [[_of_fold(s, int(place)) for s in tally.statistics] for place in where]
        domains = {key: domain for key, domain in tally.domains.items() if key != name}
        tally = Tally(factors, [s._map(lambda part: part.sum(axis=(0,))) for s in tally.statistics], domains, schema)
    _, (local,) = table.levels([model._target], lambda _: True)
    codes = _codes_of(labels, tally.domains[str(model._target)].positions_of(local.levels))
    model = model._set_tally(tally)
    return CountedFolds(model, bound_texts(model, table), codes, weight, parts, {})


def _of_fold(statistics: Statistics, place: int) -> Statistics:
    """Return the statistics of one fold, the first axis; zeros for a fold without weight."""
    if place < 0:
        return statistics.take(0, np.array([-1])).reshape_groups(statistics.given_shape[1:])
    return statistics._move(lambda array: array[place])


def _codes_of(labels: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return the class codes; rows of zero weight, which may lack a label, have code 0."""
    if np.array_equal(where, np.arange(len(where))):
        return labels.astype(np.intp, copy=False)
    return np.maximum(where, 0)[labels.astype(np.intp)]


def score_folds(
    rows: CountedFolds,
    models: Sequence[Any],
    train: Callable[[int], list[Statistics]],
    fold: np.ndarray,
) -> list[ClassPosterior]:
    """Return the scores of every row by each model, estimated from the training rows of its fold.

    ``train`` returns the training statistics of a fold. Rows of fold −1 are training rows only; their scores are NaN.
    """
    n_folds = int(fold.max()) + 1
    n_classes = len(rows.model.classes_)
    out = [ClassPosterior(np.empty((len(fold), n_classes)), np.empty(len(fold))) for _ in models]
    apart = []
    without_first = train(0)
    for model, scores in zip(models, out, strict=True):
        if fold.min() < 0:
            scores.log_proba[fold < 0], scores.log_density[fold < 0] = np.nan, np.nan
        first = _plan(model, without_first)
        others = (_plan(model, train(k)) for k in range(1, n_folds))
        together = itertools.chain([first], others)
        if not posterior_by_fold(together, n_folds, fold, rows.table, scores, rows.log_base):
            apart.append((model, scores, first))
    if not apart:
        return out

    def learn(k: int) -> list[RowScorer]:
        here = train(k) if k else []
        plans = [_plan(model, here) if k else first for model, _, first in apart]
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


def _plan(model: Classifier, train: list[Statistics]) -> RowScorer:
    """Return the row scorer for training statistics, with fixed priors and levels."""
    held = model._with_tally(_tally(model, train))
    held._check_estimated(held.class_log_prior_)
    return held._row_scorer


def _tally(model: Classifier, statistics: list[Statistics]) -> Tally:
    return Tally(model.tally_.factors, statistics, model.tally_.domains, model.tally_.schema)


def score_left_out(rows: CountedFolds, model: Classifier) -> ClassPosterior:
    """Return the scores of every row by the model of all other rows (leave-one-out)."""
    n_rows = rows.table.n_rows
    n_classes = len(model.classes_)
    scores = ClassPosterior(np.empty((n_rows, n_classes)), np.empty(n_rows))
    left = np.ones(n_rows, dtype=bool)
    if hasattr(model._row_scorer, "left_out"):
        log_prior = _log_prior_without(model, rows.codes, rows.weight)
        return model._row_scorer.left_out(rows.table, rows.codes, rows.weight, log_prior)
    if model._statistics_are_per_row():
        model._check_estimated(model.class_log_prior_)
        left = _score_by_class(rows, model, scores)
        step = _step(model, rows.table, n_classes)
        whole = left.all()
        index = np.flatnonzero(left)
        for start in range(0, len(index), step):
            part = slice(start, min(start + step, n_rows)) if whole else index[start : start + step]
            log_prior = _log_prior_without(model, rows.codes[part], None if rows.weight is None else rows.weight[part])
            found = apply_bayes_rule(_joint_left_out(model, rows, part, log_prior), log_prior)
            scores.log_proba[part], scores.log_density[part] = found
        left = np.isnan(scores.log_density)
    for row in progress(np.flatnonzero(left).tolist(), "leaving rows out"):
        one = rows.table.rows(np.array([row]))
        its = None if rows.weight is None else rows.weight[row : row + 1]
        gone = count(one, model.tally_.factors, weight=its, schema=model.tally_.schema, like=model.tally_)
        gone = gone.reindex_like(model.tally_)
        train = [held - out for held, out in zip(model.tally_.statistics, gone.statistics, strict=True)]
        _plan(model, train).posterior_of(np.array([row]), rows.table, scores, rows.log_base)
    return scores


def _log_prior_without(model: Classifier, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return log p(class) without one row of the given classes and weight, shape (rows, classes)."""
    counts = model.tally_[model._target]
    assert isinstance(counts, Counts)
    n_classes = len(counts.table)
    if weight is None and len(codes) > n_classes:
        return _log_prior_without(model, np.arange(n_classes), None)[codes]
    rest = np.repeat(counts.table[None], len(codes), axis=0)
    rest[np.arange(len(codes)), codes] -= 1.0 if weight is None else weight
    return model._log_prior(model.class_prior, Counts(np.maximum(rest, 0.0), (n_classes,)))


def _score_by_class(rows: CountedFolds, model: Classifier, out: ClassPosterior) -> np.ndarray:
    """Score rows by one table per class from which a row is left out; return the rows that need more."""
    n_rows = rows.table.n_rows
    n_classes = len(model.classes_)
    everything = np.ones(n_rows, dtype=bool)
    if rows.weight is not None or n_rows == 0:
        return everything
    own = []
    for scored, statistics, resolved in _counted_factors(model):
        tables = leave_one_out_tables(scored.family, statistics, resolved.prior, model.estimate, resolved.constant)
        if tables is None:
            return everything
        own.append(tables)
    n_cells = sum(tables[0].size for tables in own) * n_classes
    if n_cells > max(1_000_000, n_rows * sum(len(scored.factor.columns) for scored in model._factor_scorers)):
        return everything  # the tables would be larger than the rows
    domains = [model._level_domains(scored) for scored in model._factor_scorers]
    log_prior = _log_prior_without(model, np.arange(n_classes), None)
    unknown = np.zeros(n_classes, dtype=bool)
    for array in itertools.chain.from_iterable(own):
        unknown |= np.isnan(array).any(axis=0)
    plans: list[RowScorer] = []
    place = np.full(n_classes, -1, dtype=np.int32)
    for code in np.flatnonzero(~unknown):
        plan = LeaveOneOutScorer(model._factor_scorers, log_prior[code], domains, model.unseen, own, int(code))
        if plan.uses_kernels(rows.table):
            place[code] = len(plans)
            plans.append(plan)
    part = place[rows.codes]
    if plans and not posterior_by_fold(iter(plans), len(plans), part, rows.table, out, rows.log_base):
        for each, test in zip(plans, rows_by_code(part, len(plans)), strict=True):
            each.posterior_of(test, rows.table, out, rows.log_base)
    return part < 0


def _counted_factors(model: Classifier) -> Iterator[tuple[FactorScorer, Any, ResolvedPrior]]:
    """Return every factor with the statistics that score rows, and its resolved prior."""
    fitted = model._scoring_factors
    for scored, (_, statistics), resolved in zip(
        fitted.checked_scorers, fitted.pairs, fitted.active_priors, strict=True
    ):
        yield scored, add_unit_variance(scored.family, statistics, resolved.constant), resolved


def _step(model: Classifier, table: Table, n_classes: int) -> int:
    """Return the number of rows to score at a time, limited by the widest factor."""
    width = 1
    for scored in model._factor_scorers:
        sparse = table.kind(scored.factor.columns[0]) in ("sparse", "text") if scored.factor.columns else False
        if not is_cellwise(scored.family, sparse):
            continue
        statistics: Any = model._selected_tally[scored.factor.columns]
        cells = statistics.table.shape[-1] if isinstance(statistics, Counts) else statistics.n_columns
        cells = cells * 8 if sparse else cells  # the statistics of every row, in several arrays
        width = max(width, cells * (n_classes if leave_one_out_changes_all_groups(scored.family) else 1))
    return min(chunk_rows(1, width), 65536)


def _joint_left_out(
    model: Classifier, rows: CountedFolds, part: slice | np.ndarray, log_prior: np.ndarray
) -> np.ndarray:
    """Return log p(class, row) without each row; NaN for rows that need other counts."""
    table = rows.table.rows(part)
    group = rows.codes[part]
    weight = None if rows.weight is None else rows.weight[part]
    own = np.zeros(len(group))
    together = np.zeros(log_prior.shape)
    apart: list[FactorScorer] = []
    for scored, statistics, resolved in _counted_factors(model):
        domains = model._level_domains(scored)
        cells: Any = factor_cells(table, scored.factor.columns, scored.family, domains, model.unseen)
        if scored.family.cell_type == "codes":
            cells = Codes(cells, statistics.segments.sizes)
        elif not isinstance(cells, SparseRows):
            cells = chunk_of(cells, slice(None))
        terms = leave_one_out_log_prob(
            scored.family, statistics, resolved.prior, model.estimate, cells, group, weight, resolved.constant
        )
        if leave_one_out_changes_all_groups(scored.family):
            together += terms
        else:
            apart.append(scored)
            own += terms[:, 0]
    if apart:
        joint = RowScorer(apart, np.zeros(log_prior.shape[1]), [model._level_domains(s) for s in apart], model.unseen)
        scores = joint.joint(table)
        scores[np.arange(len(group)), group] = own
        together += scores
    return together + log_prior


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
        kept = np.flatnonzero(read_labels(table, model._target, model.missing_label).codes >= 0)
        table = table.rows(kept)
        weight = None if weight is None else weight[kept]
        fold = None if fold is None else fold[kept]
    found, (local,) = table.levels([model._target], lambda _: True)
    codes = _codes_of(np.asarray(found.columns[0]), model._class_domain.positions_of(local.levels))
    rows = CountedFolds(model, bound_texts(model, table), codes, weight, [], {})
    if fold is None:
        return score_left_out(rows, model).log_proba, codes, weight

    def train(k: int) -> list[Statistics]:
        chosen = fold == k
        part = model._count_more_rows(table.rows(np.flatnonzero(chosen)), None if weight is None else weight[chosen])
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
    if not np.isclose(total, model._total_weight()):
        raise DataError(
            f"these rows have weight {total:.12g}, but the model has counted {model._total_weight():.12g}; expected "
            "all rows it was fitted on, since it is fitted again without some of them."
        )
    if fold is None:
        fold = np.full(table.n_rows, -1, dtype=np.int32)
        fold[known] = random_folds(rows.codes[known], min(FOLDS, len(known)), 0)
    found = rows.score(kfold_splits(fold, rows.codes >= 0))
    return found.log_proba[known], rows.codes[known], rows.some_weight(known)
