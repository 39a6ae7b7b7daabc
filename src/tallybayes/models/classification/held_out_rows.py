"""Held-out rows of classifiers and mixtures: their counts are subtracted or, after EM, the model is refitted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from tallybayes._utils.progress import progress
from tallybayes._utils.threads import computed_ahead, single_blas_thread
from tallybayes.data.counting import check_weight, count
from tallybayes.data.table import Table
from tallybayes.errors import DataError, NotForgettableError
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.estimation.resampling.folds import Folds
from tallybayes.estimation.resampling.held_out import HoldOutRows, subtract_tally, with_statistics
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.estimation.scoring.row_scorer import RowScorer, posterior_by_part
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.classification.classifier_fit import class_factor
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.inputs.features import free_name, open_features
from tallybayes.models.inputs.input_format import bound_texts, open_rows, read_initial_rows, with_weight
from tallybayes.models.inputs.labels import read_labels
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Schema
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier
    from tallybayes.models.forest.tree_classifier import TreeClassifier
    from tallybayes.models.mixture.mixture_model import Mixture
    from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean

    AnyClassifier: TypeAlias = Classifier | AutoClassifier | NearestClassMean | TreeClassifier


# ---- Subtraction ----------------------------------------------------------------------------------------------------


class CountedRows(HoldOutRows):
    """Labeled rows of a classifier whose counts can be subtracted.

    Parameters
    ----------
    model : Classifier
        Fitted to these rows.
    table : Table
    codes : ndarray of int of shape (n,)
        The class codes.
    weight : ndarray of shape (n,), or None
    parts : list of lists of Statistics
        The statistics of every fold if they are counted, over the levels of all rows; of ordered folds, first those of
        the rows before them.
    """

    requires_refit = False

    def __init__(
        self,
        model: Classifier,
        table: Table,
        codes: np.ndarray,
        weight: np.ndarray | None,
        parts: list[list[Statistics]],
    ) -> None:
        self.full_model = model
        self.table = bound_texts(model, table)
        self._rows = table
        self.codes = codes
        self.weight = weight
        self.n_classes = len(model.classes_)
        self.parts = parts
        self.log_base: dict[int, np.ndarray] = {}  # terms of log p(row | class) that all classes share

    def count(self, chosen: np.ndarray) -> Tally:
        """Return the tally of some rows."""
        return self.full_model._count_more_rows(self._rows.rows(chosen), self.some_weight(chosen))

    def fit(self, model: Classifier, chosen: np.ndarray) -> Classifier:
        """Raise an error: the counts are subtracted."""
        raise NotImplementedError

    def predict_rows(self, model: Classifier, chosen: np.ndarray) -> ClassPosterior:
        """Return log p(class | row) and log p(row) of some rows."""
        return _posterior(model, self._rows.rows(chosen))

    def empty_scores(self) -> ClassPosterior:
        """Return arrays for the predictions of all rows; the kernels write them first, in several threads."""
        n_rows = len(self.codes)
        return ClassPosterior(np.empty((n_rows, self.n_classes)), np.empty(n_rows))

    def training_tallies(self, folds: Folds) -> Iterator[Tally]:
        """Yield the tally of the training rows of every fold."""
        if not self.parts:
            return (self.tally_without(folds.held_out(number)) for number in range(folds.n_folds))
        whole = self.full_model.tally_
        if folds.ordered:
            earlier = itertools.accumulate(self.parts[:-1], lambda a, b: [x + y for x, y in zip(a, b, strict=True)])
            return (with_statistics(whole, statistics) for statistics in earlier)
        return (subtract_tally(whole, part) for part in self.parts)

    def score(self, folds: Folds) -> ClassPosterior:
        """Return the predictions of every row by the model without its fold; NaN for rows that are not predicted."""
        estimates = estimates_of(self.full_model)
        if folds.one_by_one:
            return estimates.score_left_out(self)
        out = self.empty_scores()
        unscored = folds.predicted < 0
        out.log_proba[unscored], out.log_density[unscored] = np.nan, np.nan
        scorers: Iterator[RowScorer] = (
            estimates.with_tally(tally).row_scorer for tally in self.training_tallies(folds)
        )
        first = next(scorers)
        if first.uses_kernels(self.table, folds.n_folds):
            every = [first, *scorers]
            if posterior_by_part(every, folds.predicted, self.table, out, self.log_base):
                return out
            scorers = iter(every[1:])
        with single_blas_thread():
            prepared = computed_ahead(map(self._prepared, itertools.chain([first], scorers)))
            for test, scorer in zip(progress(folds.tests(), "cross-validating"), prepared, strict=True):
                scorer.posterior_of(test, self.table, out, self.log_base)
        return out

    def _prepared(self, scorer: RowScorer) -> RowScorer:
        """Return a scorer whose tables for these rows are made."""
        scorer.uses_kernels(self.table)
        return scorer


def count_rows(
    model: Classifier,
    X: Rows,
    y: Labels | None,
    sample_weight: SampleWeights,
    assign: Callable[[np.ndarray], Folds],
) -> tuple[CountedRows, Folds]:
    """Read the rows as `fit` does, assign folds by class codes, and count the rows once, by fold.

    Raise NotForgettableError if the counts depend on EM.
    """
    fresh = clone(model)
    fresh.input_format_, table, weight = read_initial_rows(X, y, sample_weight)
    target = fresh.input_format_.target
    labels = read_labels(table, target, fresh.missing_label)
    if labels.n_missing and fresh.unlabeled is not None:
        raise NotForgettableError.soft()
    labels.check_complete("Pass unlabeled='em' or 'skip', or leave the unlabeled rows out.", fresh.missing_label)
    weight = check_weight(weight, table.n_rows)
    folds = assign(table.encoded(target, True)[0])
    fresh, parts = _count_by_fold(fresh, table, weight, folds)
    return CountedRows(fresh, table, class_codes(fresh, table), weight, parts), folds


def _count_by_fold(
    model: Classifier, table: Table, weight: np.ndarray | None, folds: Folds
) -> tuple[Classifier, list[list[Statistics]]]:
    """Return the model of all rows and the tally of every fold; the fold is an additional axis of the statistics."""
    target = model.input_format_.target
    factors = [class_factor(target), *model._make_factors(table, target, weight)]
    schema = Schema(sorted_domains=(str(target),))
    rows, given, name = model._discretize(table), factors, free_name("fold", table.columns)
    if not folds.one_by_one:
        rows = rows.with_column(name, folds.fold)
        given = [Factor(factor.columns, (name, *factor.given), factor.family) for factor in factors]
    try:
        tally = count(rows, given, weight=weight, schema=schema)
    except DataError as error:
        if rows_with_missing(table, factors).any():  # EM imputes these values from all rows: they cannot be subtracted
            raise NotForgettableError.soft() from error
        raise
    if not tally.domains[str(target)].levels:
        raise DataError("no row has a positive weight; expected at least 1.")
    if folds.one_by_one:
        return model._set_tally(tally), []
    domains = {key: domain for key, domain in tally.domains.items() if key != name}
    whole = Tally(factors, [each.pool_first_axis() for each in tally.statistics], domains, schema)
    positions = tally.domains[name].positions_of(range(-folds.ordered, folds.n_folds)).tolist()
    return model._set_tally(whole), [[_of_fold(each, place) for each in tally.statistics] for place in positions]


def _of_fold(statistics: Statistics, position: int) -> Statistics:
    """Return the statistics of one fold, the first axis; zeros for a fold without weight."""
    if position < 0:
        return statistics.take(0, np.array([-1])).reshape_groups(statistics.given_shape[1:])
    return statistics.at(position)


def class_codes(model: Classifier, table: Table) -> np.ndarray:
    """Return the class codes of labeled rows; rows of zero weight, which may lack a label, have code 0."""
    codes, local = table.encoded(model.target_, True)
    position = model.tally_.domains[str(model.target_)].positions_of(local.levels)
    if np.array_equal(position, np.arange(len(position))):
        return codes.astype(np.intp, copy=False)
    return np.maximum(position, 0)[codes.astype(np.intp)]


# ---- Refitting ------------------------------------------------------------------------------------------------------


class LabeledRows(HoldOutRows):
    """Rows of a classifier for cross-validation by refitting. Unlabeled rows are training rows of every fold."""

    def __init__(self, full_model: AnyClassifier, table: Table, weight: SampleWeights) -> None:
        self.full_model = full_model
        self.table = table
        self.index = {label: k for k, label in enumerate(full_model.classes_.tolist())}
        self.n_classes = len(self.index)
        self.weight = check_weight(weight, table.n_rows)
        labels = read_labels(table, full_model.target_, getattr(full_model, "missing_label", None))
        codes = np.array([*(self.index.get(level, -1) for level in labels.domain.levels), -1])
        self.codes = codes[labels.codes.astype(np.intp)]

    @classmethod
    def open(cls, model: AnyClassifier, data: Rows, target: Labels, sample_weight: SampleWeights) -> Self:
        """Read the rows as `fit` does."""
        whole = _as_counted(clone(model)).fit(data, target, sample_weight)
        _, table, weight = read_initial_rows(data, target, sample_weight)
        return cls(whole.set_params(**model.get_params(deep=False)), table, weight)

    @property
    def requires_refit(self) -> bool:
        """Return whether rows cannot be subtracted: after EM, and with a learned metric."""
        return not isinstance(self.full_model, ClassConditionalModel) or super().requires_refit

    def count(self, chosen: np.ndarray) -> Tally:
        """Return the tally of some rows."""
        return self.full_model._count_more_rows(self.table.rows(chosen), self.some_weight(chosen))

    def fit(self, model: AnyClassifier, chosen: np.ndarray) -> AnyClassifier:
        """Return the model fitted to some rows."""
        return _as_counted(model).fit(self.table.rows(chosen), self.full_model.target_, self.some_weight(chosen))

    def predict_rows(self, model: AnyClassifier, chosen: np.ndarray) -> ClassPosterior:
        """Return log p(class | row) and log p(row) of some rows; log p(row) is NaN for models without densities."""
        rows = self.table.rows(chosen)
        if isinstance(model, ClassConditionalModel):
            return _posterior(model, rows)
        out = np.full((len(chosen), self.n_classes), -np.inf)
        out[:, [self.index[label] for label in model.classes_.tolist()]] = model.predict_log_proba(rows)
        return ClassPosterior(out, np.full(len(chosen), np.nan))


def _as_counted(model: AnyClassifier) -> Any:
    """Return the model without its calibration; held-out scores are calibrated later."""
    return model.set_params(calibration=None) if hasattr(model, "calibration") else model


def _posterior(model: ClassConditionalModel, rows: Table) -> ClassPosterior:
    return estimates_of(model).row_scorer.posterior(open_rows(model, rows), whole=True)


class UnlabeledRows(HoldOutRows):
    """Rows of a mixture for cross-validation: their components are unknown, so only the density is evaluated."""

    def __init__(self, model: Mixture, data: Rows, sample_weight: SampleWeights) -> None:
        self.full_model = clone(model).fit(data, sample_weight=sample_weight)
        self.n_classes = 0
        self.table, weight = with_weight(open_features(data), sample_weight)
        self.weight = check_weight(weight, self.table.n_rows)
        self.codes = np.zeros(self.table.n_rows, dtype=np.intp)

    def count(self, chosen: np.ndarray) -> Tally:
        """Raise an error: the counts of a mixture are expected counts."""
        raise NotImplementedError

    def fit(self, model: Mixture, chosen: np.ndarray) -> Mixture:
        """Return the mixture fitted to some rows."""
        return model.fit(self.table.rows(chosen), sample_weight=self.some_weight(chosen))

    def predict_rows(self, model: Mixture, chosen: np.ndarray) -> ClassPosterior:
        """Return log p(row) of some rows."""
        return ClassPosterior(np.empty((len(chosen), 0)), model.score_samples(self.table.rows(chosen)))
