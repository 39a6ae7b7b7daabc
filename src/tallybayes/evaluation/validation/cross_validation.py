"""Cross-validation by subtraction: all rows are counted once, and each fold's model is fitted to the difference.

Models whose counts cannot be subtracted are refitted for every fold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes.errors import DataError, NotForgettableError
from tallybayes.estimation.calibration.calibration import cross_fitted
from tallybayes.estimation.resampling.folds import given_folds, group_folds, ordered_folds, random_folds
from tallybayes.estimation.resampling.held_out import HoldOutRows, Split, forward_splits, kfold_splits
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.evaluation.evaluate import check_no_target
from tallybayes.evaluation.named_columns import split_columns
from tallybayes.evaluation.validation.parameter_grid import candidate_models, reestimated_models
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.held_out_rows import LabeledRows, UnlabeledRows
from tallybayes.models.classification.held_out_scores import (
    CountedFolds,
    count_rows,
    open_rows,
    score_folds,
    score_left_out,
)
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.hmm.hmm_held_out import HeldSequences
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.network_held_out import NetworkRows
from tallybayes.models.regression.linear_regression import LinearRegression
from tallybayes.models.regression.regression_held_out import HoldOutTargets
from tallybayes.results.validation import (
    CrossValidation,
    DensityValidation,
    HeldOut,
    RegressionValidation,
    Selection,
    SequenceValidation,
    Validation,
)
from tallybayes.typing import Candidates, Labels, RandomState, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

MOST_CALIBRATIONS = 10  # calibrations of leave-one-out
MOST_FITS = 500  # refits of leave-one-out


@overload
def cross_validate(
    model: Classifier | AutoClassifier | NearestClassMean,
    data: Rows,
    target: Labels,
    folds: int | npt.NDArray[Any] | Iterable[Any] = 10,
    groups: Labels | None = None,
    order: Labels | None = None,
    *,
    candidates: None = None,
    sample_weight: SampleWeights = None,
    random_state: RandomState = 0,
) -> CrossValidation: ...
@overload
def cross_validate(
    model: LinearRegression,
    data: Rows,
    target: Labels | None = None,
    folds: int | npt.NDArray[Any] | Iterable[Any] = 10,
    groups: Labels | None = None,
    order: Labels | None = None,
    *,
    candidates: None = None,
    sample_weight: SampleWeights = None,
    random_state: RandomState = 0,
) -> RegressionValidation: ...
@overload
def cross_validate(
    model: Mixture | BayesianNetwork | HiddenMarkovModel,
    data: Rows,
    target: None = None,
    folds: int | npt.NDArray[Any] | Iterable[Any] = 10,
    groups: Labels | None = None,
    order: Labels | None = None,
    *,
    candidates: None = None,
    sample_weight: SampleWeights = None,
    random_state: RandomState = 0,
) -> DensityValidation: ...
@overload
def cross_validate(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    folds: int | npt.NDArray[Any] | Iterable[Any] = 10,
    groups: Labels | None = None,
    order: Labels | None = None,
    *,
    candidates: Candidates,
    sample_weight: SampleWeights = None,
    random_state: RandomState = 0,
) -> Selection: ...
@overload
def cross_validate(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    folds: int | npt.NDArray[Any] | Iterable[Any] = 10,
    groups: Labels | None = None,
    order: Labels | None = None,
    *,
    candidates: Candidates | None = None,
    sample_weight: SampleWeights = None,
    random_state: RandomState = 0,
) -> Any: ...
def cross_validate(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    folds: int | npt.NDArray[Any] | Iterable[Any] = 10,
    groups: Labels | None = None,
    order: Labels | None = None,
    *,
    candidates: Candidates | None = None,
    sample_weight: SampleWeights = None,
    random_state: RandomState = 0,
) -> Any:
    """Compute the metrics of k-fold cross-validation, from one pass over the data if possible.

    The model of a fold is estimated from the tally of all rows less that of the fold. This equals refitting on the
    other rows, with the prior (``prior_``) and the levels of the columns of all rows. If the tally depends on EM
    (missing labels, missing cells under a covariance, hidden nodes, components and states) it cannot be subtracted: the
    model is refitted for every fold, as the result reports (``refitted``). If the model has ``calibration=``, the
    probabilities of every fold are calibrated on the held-out scores of the other folds (with ``order``, of earlier
    ones).

    Rows are not always independent. If several rows come from one patient, mail thread or document, pass ``groups``; if
    the model is to predict the future, pass ``order``. Otherwise dependent rows on both sides of a split make all
    metrics too optimistic.

    Parameters
    ----------
    model : any model of this package
        Fitted or not: it is not changed, only its parameters are used. Of a `HiddenMarkovModel`, whole sequences are
        held out: data is a list of them.
    data : as for ``fit``
    target : array-like of shape (n,), the name of a column of data, or None
        The classes; for a `BayesianNetwork`, the name of a discrete node, predicted given all others; for a
        `HiddenMarkovModel`, the states. Rows without a label are used for fitting in every fold, if the model accepts
        them. With None, a network, a `Mixture` or a hidden Markov model is evaluated by the density of rows or
        sequences.
    folds : int, or array-like of shape (n,), default 10
        The number of folds, drawn at random with equal class frequencies; or the fold of every row.
    groups : array-like of shape (n,), or the name of a column of data, optional
        Rows of one group are held out together.
    order : array-like of shape (n,), or the name of a column of data, optional
        Forward chaining: the rows in this order are split into ``folds + 1`` parts, each predicted from all earlier
        ones. The first is only used for fitting. Rows with the same value stay together.
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        Models to compare on the same folds and counts, such as ``{"shrinkage": [0, 0.1, 0.5]}``; all combinations of a
        mapping.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
        The weight of every row.
    random_state : int, Generator or None, default 0
        For the random folds.

    Returns
    -------
    CrossValidation, or a Selection of them if candidates are given
        A `SequenceValidation` of states, a `RegressionValidation` of a regression, a `DensityValidation` without a
        target.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> tb.cross_validate(tb.NaiveBayes(), X, y).log_loss
    0.07 (0.01 to 0.14)
    """
    if not isinstance(model, HiddenMarkovModel):
        data, groups, order, sample_weight = split_columns(data, groups, order, sample_weight)
    rule = _FoldRule(folds, groups, order, random_state)
    rule.check()
    try:
        if isinstance(model, Classifier):
            return _subtract_folds(model, data, target, sample_weight, candidates, rule)
    except NotForgettableError:
        pass  # the tally depends on EM: refit
    if isinstance(model, LinearRegression):
        rows = _count_targets(model, data, target, sample_weight, candidates)
        fold = rule.assign(np.zeros(rows.n_rows, dtype=np.intp))
        return _evaluate_targets(rows, candidates, fold, ordered=rule.ordered)
    models, parameters = candidate_models(model, candidates)
    subjects = [make_holdout(each, data, target, sample_weight) for each in models]
    known = subjects[0].codes >= 0
    fold = rule.assign(subjects[0].codes)
    splits = forward_splits(fold, known) if rule.ordered else kfold_splits(fold, known)
    fold = np.where(known, fold - rule.ordered, -1)
    return _evaluate_all(subjects, splits, fold, parameters, candidates, ordered=rule.ordered)


class _FoldRule(NamedTuple):
    """How rows are assigned to folds: at random, as given, by group or by order."""

    folds: Any
    groups: Labels | None
    order: Labels | None
    random_state: RandomState

    @property
    def ordered(self) -> bool:
        """Whether each fold is predicted from earlier ones only."""
        return self.order is not None

    def check(self) -> None:
        """Raise DataError if more than one way of assigning rows is given."""
        if (self.groups is not None) + (self.order is not None) + (np.ndim(self.folds) > 0) > 1:
            raise DataError(
                "folds by row, groups and order exclude each other, and several are given; expected one of them.\n"
                "    For groups in time, pass the time of each group as order."
            )

    def assign(self, codes: np.ndarray) -> np.ndarray:
        """Return the fold of every row, or its part of the order; −1 for rows that are only used for fitting."""
        if self.order is not None:
            return ordered_folds(self.order, len(codes), self.folds)
        if self.groups is not None:
            return group_folds(self.groups, len(codes), self.folds, self.random_state)
        if np.ndim(self.folds):
            return given_folds(self.folds, len(codes))
        fold = np.full(len(codes), -1, dtype=np.int32)
        known = np.flatnonzero(codes >= 0)
        fold[known] = random_folds(codes[known], self.folds, self.random_state)
        return fold


@overload
def leave_one_out(
    model: Classifier | AutoClassifier | NearestClassMean,
    data: Rows,
    target: Labels,
    *,
    candidates: None = None,
    sample_weight: SampleWeights = None,
) -> CrossValidation: ...
@overload
def leave_one_out(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    *,
    candidates: Candidates,
    sample_weight: SampleWeights = None,
) -> Selection: ...
@overload
def leave_one_out(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    *,
    candidates: Candidates | None = None,
    sample_weight: SampleWeights = None,
) -> Any: ...
def leave_one_out(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    *,
    candidates: Candidates | None = None,
    sample_weight: SampleWeights = None,
) -> Any:
    """Compute the metrics of leave-one-out cross-validation: every row is scored by the model of all other rows.

    The contribution of a row is subtracted in closed form (of covariances, by a rank-one update), so that this costs a
    few times as much as counting and scoring all rows once. Under ``shrinkage``, and for networks and sequences, rows
    are subtracted one by one. ``prior_`` and the levels of the columns are those of all rows. If the tally depends on
    EM, the model is refitted without every row, for at most 500 rows. If the model has ``calibration=``, the
    probabilities of every tenth of the rows are calibrated on the scores of the others.

    Parameters
    ----------
    model : any model of this package
        Fitted or not: it is not changed, only its parameters are used. Of a `HiddenMarkovModel`, whole sequences are
        held out: data is a list of them.
    data : as for ``fit``
    target : array-like of shape (n,), the name of a column of data, or None
        The classes; for a `BayesianNetwork`, the name of a discrete node, predicted given all others; for a
        `HiddenMarkovModel`, the states. Rows without a label are used for fitting only, if the model accepts them. With
        None, a network, a `Mixture` or a hidden Markov model is evaluated by the density of rows or sequences.
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        Models to compare on the same counts.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
        The weight of every row. A row is held out with all its weight.

    Returns
    -------
    CrossValidation, or a Selection of them if candidates are given
        A `SequenceValidation` of states, a `RegressionValidation` of a regression, a `DensityValidation` without a
        target.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "rain", "sun", "rain", "sun"], "picnic": [1, 0, 1, 0, 0]}
    >>> tb.leave_one_out(tb.NaiveBayes(), rows, "picnic").log_proba.shape
    (5, 2)
    """
    try:
        if isinstance(model, Classifier):
            return _subtract_rows(model, data, target, sample_weight, candidates)
    except NotForgettableError:
        pass  # the tally depends on EM: refit
    if isinstance(model, LinearRegression):
        return _evaluate_targets(_count_targets(model, data, target, sample_weight, candidates), candidates, None)
    models, parameters = candidate_models(model, candidates)
    subjects = [make_holdout(each, data, target, sample_weight) for each in models]
    known = subjects[0].codes >= 0
    if any(subject.requires_refit for subject in subjects) and known.sum() > MOST_FITS:
        raise DataError(
            f"{type(model).__name__} must be refitted without each of {int(known.sum())} rows; expected at most "
            f"{MOST_FITS} rows.\n    Use tb.cross_validate, which refits it once per fold."
        )
    fold = np.where(known, np.arange(len(known)), -1)
    return _evaluate_all(subjects, kfold_splits(fold, known), fold, parameters, candidates)


def make_holdout(
    model: Estimator, data: Rows, target: Labels | None, sample_weight: SampleWeights
) -> HeldSequences | HoldOutRows:
    """Return the rows or sequences to be held out, with the model fitted on all of them."""
    if isinstance(model, HiddenMarkovModel):
        return HeldSequences(model, data, target, sample_weight)
    if isinstance(model, BayesianNetwork):
        return NetworkRows(model, data, target, sample_weight)
    if isinstance(model, Mixture):
        check_no_target(target)
        return UnlabeledRows(model, data, sample_weight)
    if isinstance(model, Classifier | AutoClassifier | NearestClassMean):
        return LabeledRows.open(model, data, target, sample_weight)  # type: ignore[arg-type]  # None raises there
    hint = "Pass log-probabilities of other models to tb.Evaluation."
    raise DataError.wrong_type("model", type(model).__name__, "a model of this package", hint)


# ---- Classifiers: counts are subtracted -----------------------------------------------------------------------------


def _subtract_folds(
    model: Classifier,
    data: Rows,
    target: Labels | None,
    sample_weight: SampleWeights,
    candidates: Candidates | None,
    rule: _FoldRule,
) -> Validation | Selection:
    """Cross-validate a classifier: every fold is counted once and subtracted."""
    opened = open_rows(model, data, target, sample_weight)
    fold = rule.assign(opened.labels)
    rows = count_rows(opened, fold)
    models, parameters = reestimated_models(rows.model, candidates)
    if not rule.ordered:
        scores = score_folds(rows, models, rows.without, fold)
    else:
        fold = fold - 1
        sums = itertools.accumulate(rows.parts, lambda a, b: [x + y for x, y in zip(a, b, strict=True)])
        scores = score_folds(rows, models, list(sums).__getitem__, fold)
    return _classification_results(rows, models, parameters, scores, fold, candidates, ordered=rule.ordered)


def _subtract_rows(
    model: Classifier, data: Rows, target: Labels | None, sample_weight: SampleWeights, candidates: Candidates | None
) -> Validation | Selection:
    """Leave-one-out cross-validation of a classifier: rows are subtracted one by one."""
    rows = count_rows(open_rows(model, data, target, sample_weight))
    models, parameters = reestimated_models(rows.model, candidates)
    scores = [score_left_out(rows, each) for each in models]
    return _classification_results(rows, models, parameters, scores, np.arange(rows.table.n_rows), candidates)


def _classification_results(
    rows: CountedFolds,
    models: list[Any],
    parameters: list[dict[str, Any]],
    scores: list[ClassPosterior],
    fold: np.ndarray,
    candidates: Candidates | None,
    *,
    ordered: bool = False,
) -> Validation | Selection:
    """Return the results of classifiers whose rows were subtracted."""
    _warn_impossible([score.impossible for score in scores])
    results = []
    for model, score, own in zip(models, scores, parameters, strict=True):
        calibrated = _cross_calibrated(model, score, rows.codes, rows.weight, fold, ordered)
        held_out = HeldOut(model, fold, own)
        results.append(CrossValidation(held_out, model.classes_, rows.codes, calibrated, rows.weight))
    return _one_or_all(results, candidates)


def _cross_calibrated(
    model: object, scores: ClassPosterior, codes: np.ndarray, weight: np.ndarray | None, fold: np.ndarray, ordered: bool
) -> ClassPosterior:
    """Calibrate the scores of every fold on those of the other folds, if the model has a calibration method."""
    method = getattr(model, "calibration", None)
    if method is None:
        return scores
    known = np.flatnonzero(fold >= 0)
    if fold.max() + 1 > MOST_CALIBRATIONS and not ordered:
        fold = fold.copy()
        fold[known] = random_folds(codes[known], MOST_CALIBRATIONS, 0)
    log_proba = cross_fitted(method, scores.log_proba, codes, weight, fold, ordered=ordered)
    return ClassPosterior(log_proba, scores.log_density)


# ---- Regressions ----------------------------------------------------------------------------------------------------


def _count_targets(
    model: LinearRegression,
    data: Rows,
    target: Labels | None,
    sample_weight: SampleWeights,
    candidates: Candidates | None,
) -> HoldOutTargets:
    """Count the rows of a regression once, up to the highest degree of all candidates."""
    models, _ = candidate_models(model, candidates)
    degree = max(degree for each in models for degree in each._degrees())
    highest = clone(models[0]).set_params(degree=degree)
    return HoldOutTargets(highest, data, target, sample_weight)


def _evaluate_targets(
    rows: HoldOutTargets, candidates: Candidates | None, fold: np.ndarray | None, *, ordered: bool = False
) -> Validation | Selection:
    """Return the results of a regression whose rows are held out by fold, or one by one."""
    models, parameters = reestimated_models(rows.model, candidates)
    results = []
    for model, own in zip(models, parameters, strict=True):
        predictive = rows.one_by_one(model) if fold is None else rows.by_fold(model, fold, ordered=ordered)
        held_out = HeldOut(model, np.arange(rows.n_rows) if fold is None else fold - ordered, own)
        results.append(RegressionValidation(held_out, rows.target, predictive, rows.weight))
    return _one_or_all(results, candidates)


# ---- All other models -----------------------------------------------------------------------------------------------


def _evaluate_all(
    subjects: list[HeldSequences | HoldOutRows],
    splits: list[Split],
    fold: np.ndarray,
    parameters: list[dict[str, Any]],
    candidates: Candidates | None,
    *,
    ordered: bool = False,
) -> Validation | Selection:
    """Return the results of rows or sequences of all candidates, held out fold by fold."""
    results = [
        evaluate_held_out(subject, splits, fold, own, ordered=ordered)
        for subject, own in zip(subjects, parameters, strict=True)
    ]
    _warn_impossible([result.impossible for result in results if isinstance(result, CrossValidation)])
    return _one_or_all(results, candidates)


def evaluate_held_out(
    subject: HeldSequences | HoldOutRows,
    splits: list[Split],
    fold: np.ndarray,
    parameters: dict[str, Any],
    *,
    ordered: bool = False,
) -> Validation:
    """Return the metrics of held-out rows or sequences; fold −1 is only used for fitting."""
    held_out = HeldOut(subject.full_model, fold, parameters, subject.requires_refit)
    weight = subject.weight
    if isinstance(subject, HeldSequences):
        predictions = subject.score(splits)
        lengths = subject.sequences.lengths
        if subject.labels is None:
            return DensityValidation(held_out, predictions.log_likelihood, weight, steps=lengths)
        return SequenceValidation(held_out, subject.states, predictions, lengths, weight)
    scores = subject.score(splits)
    if not subject.n_classes:
        return DensityValidation(held_out, scores.log_density, weight)
    scores = _cross_calibrated(subject.full_model, scores, subject.codes, weight, fold, ordered)
    model = subject.full_model
    classes = model.levels_[subject.target] if isinstance(subject, NetworkRows) else model.classes_
    return CrossValidation(held_out, classes, subject.codes, scores, weight)


def _one_or_all(results: Sequence[Validation], candidates: Candidates | None) -> Validation | Selection:
    """Return the only result, or the selection of all candidates."""
    return results[0] if candidates is None else Selection(results)


def _warn_impossible(impossible: list[np.ndarray]) -> None:
    """Warn of held-out rows that have probability 0 in every class."""
    rows = np.flatnonzero(np.any(impossible, axis=0)) if impossible else np.zeros(0, dtype=np.intp)
    if len(rows):
        more = f", and {len(rows) - 1} more rows," if len(rows) > 1 else ""
        warn(
            f"row {rows[0]}{more} is impossible in every class when it is held out, so its class prior is used. "
            "With estimate='bayes' no value has probability 0 because it was not counted.",
            UserWarning,
        )
