"""Cross-validation by subtraction: one count of all rows, and every fold's model is the whole less the fold.

Models whose counts cannot be subtracted are fitted again for every fold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes.data.table import Table
from tallybayes.errors import DataError, NotForgettableError
from tallybayes.estimation.calibration.calibration import cross_fitted
from tallybayes.estimation.resampling.folds import given_folds, group_folds, ordered_folds, random_folds
from tallybayes.estimation.resampling.held_out import HoldOut, Split, forward_splits, kfold_splits
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.evaluation.metrics.density_evaluation import refuse_target
from tallybayes.evaluation.metrics.regression_evaluation import RegressionValidation
from tallybayes.evaluation.validation.cross_validation_results import (
    CrossValidation,
    DensityValidation,
    SequenceValidation,
)
from tallybayes.evaluation.validation.model_selection import Selection
from tallybayes.evaluation.validation.parameter_grid import models_of
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.held_out_rows import LabeledRows, UnlabeledRows
from tallybayes.models.classification.held_out_scores import count_rows, open_rows, score_folds, score_left_out
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.hmm.hmm_held_out import HeldSequences
from tallybayes.models.inputs.features import is_name, open_features
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.network_held_out import NetworkRows
from tallybayes.models.regression.linear_regression import LinearRegression
from tallybayes.models.regression.regression_held_out import HoldOutTargets
from tallybayes.typing import Candidates, Labels, RandomState, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

MOST_CALIBRATIONS = 10  # where every row is held out alone
MOST_FITS = 500  # of a model that is fitted again without every row


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
    model: Any,
    data: Rows,
    target: Labels | None = None,
    folds: Any = 10,
    groups: Labels | None = None,
    order: Labels | None = None,
    *,
    candidates: Candidates | None = None,
    sample_weight: SampleWeights = None,
    random_state: RandomState = 0,
) -> Any:
    """Score every row by a model that has not counted it: exact k-fold cross-validation from one counting pass.

    The model of a fold is the whole tally less the fold's: what refitting on the other rows gives, with the prior
    (``prior_``) and the levels of the columns as found on all rows. Where EM expected what was missing (labels, cells
    that a covariance needs, hidden nodes, components and states) nothing can be subtracted: the model is fitted again
    without every fold, and the result says so (``refitted``). Where the model has ``calibration=``, every fold's
    probabilities are mended by a calibration of the other folds' held-out scores (under ``order``, of earlier ones').

    Rows are not always independent. Where several come from one patient, mail thread or document, pass ``groups``;
    where the future is to be predicted from the past, pass ``order``. Otherwise related rows on both sides of a split
    make every figure too good.

    Parameters
    ----------
    model : any model of this package
        Fitted or not: it is not changed, only its parameters are used. Of a `HiddenMarkovModel`, whole sequences are
        held out: data is a list of them.
    data : as for ``fit``
    target : array-like of shape (n,), the name of a column of data, or None
        The classes; of a `BayesianNetwork`, the name of a node of labels, which is told from all others; of a
        `HiddenMarkovModel`, the states. Rows without a label are learned from by every fold's model, where it takes
        them. None, for a network, a `Mixture` or a hidden Markov model, judges the density of rows or sequences.
    folds : int, or array-like of shape (n,), default 10
        How many folds, dealt at random with every class spread evenly; or the fold of every row.
    groups : array-like of shape (n,), or the name of a column of data, optional
        Rows of one group are held out together.
    order : array-like of shape (n,), or the name of a column of data, optional
        Forward chaining: the rows in this order are cut into ``folds + 1`` stretches, each predicted from all earlier
        ones. The first is only learned from. Rows at the same time stay together.
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        Models to compare on the same folds and the same counts, such as ``{"shrinkage": [0, 0.1, 0.5]}``; all
        combinations of a mapping.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
    random_state : int, Generator or None, default 0
        For the dealing of folds.

    Returns
    -------
    CrossValidation, or a Selection of them where there are candidates
        A `SequenceValidation` of states, a `RegressionValidation` of numbers, a `DensityValidation` where there is no
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
        data, groups, order, sample_weight = _columns_apart(data, groups, order, sample_weight)
    if (groups is not None) + (order is not None) + (np.ndim(folds) > 0) > 1:
        raise DataError(
            "folds by number, groups and order are different ways to hold rows out; expected one of them.\n"
            "    For groups in time, pass the time of each group as order."
        )

    def deal(codes: np.ndarray) -> np.ndarray:
        """The fold of every row, or its stretch of time; −1 for rows that are only learned from."""
        if order is not None:
            return ordered_folds(order, len(codes), folds)
        if groups is not None:
            return group_folds(groups, len(codes), folds, random_state)
        if np.ndim(folds):
            return given_folds(folds, len(codes))
        fold, known = np.full(len(codes), -1, dtype=np.int32), np.flatnonzero(codes >= 0)
        fold[known] = random_folds(codes[known], folds, random_state)
        return fold

    try:
        if isinstance(model, Classifier):
            return _subtract_folds(model, data, target, sample_weight, candidates, deal, order is not None)
    except NotForgettableError:
        pass  # EM has to expect what the rows lack
    if isinstance(model, LinearRegression):
        rows = _counted_numbers(model, data, target, sample_weight, candidates)
        return _judge_numbers(rows, candidates, deal(np.zeros(rows.n_rows, dtype=np.intp)), ordered=order is not None)
    models, parameters = models_of(model, candidates)
    subjects = [make_holdout(each, data, target, sample_weight) for each in models]
    known, fold = subjects[0].codes >= 0, deal(subjects[0].codes)
    if order is None:
        return _result(subjects, kfold_splits(fold, known), np.where(known, fold, -1), parameters, candidates)
    splits = forward_splits(fold, known)
    return _result(subjects, splits, np.where(known, fold - 1, -1), parameters, candidates, ordered=True)


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
    """Score every row by the model of all other rows.

    What a row brought to the counts is taken out in closed form (for covariances, by a change of rank one), so this
    costs a few times what counting and scoring once do. Under ``shrinkage``, and of networks and sequences, rows are
    counted out one by one. ``prior_`` and the levels of the columns are held as found on all rows. Where EM expected
    what was missing, the model is fitted again without every row, of at most 500. Where the model has
    ``calibration=``, the probabilities of every tenth of the rows are mended by a calibration of the others' scores.

    Parameters
    ----------
    model : any model of this package
        Fitted or not: it is not changed, only its parameters are used. Of a `HiddenMarkovModel`, whole sequences are
        held out: data is a list of them.
    data : as for ``fit``
    target : array-like of shape (n,), the name of a column of data, or None
        The classes; of a `BayesianNetwork`, the name of a node of labels, which is told from all others; of a
        `HiddenMarkovModel`, the states. Rows without a label are learned from by every fold's model, where it takes
        them. None, for a network, a `Mixture` or a hidden Markov model, judges the density of rows or sequences.
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        Models to compare on the same counts.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
        A row is left out with all its weight.

    Returns
    -------
    CrossValidation, or a Selection of them where there are candidates
        A `SequenceValidation` of states, a `RegressionValidation` of numbers, a `DensityValidation` where there is no
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
        pass  # EM has to expect what the rows lack
    if isinstance(model, LinearRegression):
        return _judge_numbers(_counted_numbers(model, data, target, sample_weight, candidates), candidates, None)
    models, parameters = models_of(model, candidates)
    subjects = [make_holdout(each, data, target, sample_weight) for each in models]
    known = subjects[0].codes >= 0
    if any(subject.requires_refit for subject in subjects) and known.sum() > MOST_FITS:
        raise DataError(
            f"{type(model).__name__} has to be fitted again without every one of {int(known.sum())} rows; expected at "
            f"most {MOST_FITS}, since that takes long.\n    Use tb.cross_validate, which fits it once a fold."
        )
    fold = np.where(known, np.arange(len(known)), -1)
    return _result(subjects, kfold_splits(fold, known), fold, parameters, candidates)


def make_holdout(model: Any, data: Rows, target: Any, sample_weight: SampleWeights) -> HoldOut:
    """What can be held out of a model, which is fitted on all of it."""
    if isinstance(model, HiddenMarkovModel):
        return HeldSequences(model, data, target, sample_weight)
    if isinstance(model, BayesianNetwork):
        return NetworkRows(model, data, target, sample_weight)
    if isinstance(model, Mixture):
        refuse_target(target)
        return UnlabeledRows(model, data, sample_weight)
    if isinstance(model, Classifier | AutoClassifier | NearestClassMean):
        return LabeledRows.open(model, data, target, sample_weight)
    hint = "Score other models yourself, and pass their log-probabilities to tb.Evaluation."
    raise DataError.wrong_type("model", type(model).__name__, "a model of this package", hint)


def _subtract_folds(
    model: Any, data: Any, target: Any, sample_weight: Any, candidates: Any, deal: Any, ordered: bool
) -> Any:
    """Folds of a classifier, all counted at once."""
    opened = open_rows(model, data, target, sample_weight)
    fold = deal(opened.labels)
    rows = count_rows(opened, fold)
    models, parameters = models_of(rows.model, candidates, again=False)
    if not ordered:
        return _counted(rows, models, parameters, score_folds(rows, models, rows.without, fold), fold, candidates)
    before = list(itertools.accumulate(rows.parts, lambda a, b: [x + y for x, y in zip(a, b, strict=True)]))
    scores = score_folds(rows, models, lambda k: before[k], fold - 1)
    return _counted(rows, models, parameters, scores, fold - 1, candidates, ordered=True)


def _subtract_rows(model: Any, data: Any, target: Any, sample_weight: Any, candidates: Any) -> Any:
    """Rows of a classifier, taken out one by one."""
    rows = count_rows(open_rows(model, data, target, sample_weight))
    models, parameters = models_of(rows.model, candidates, again=False)
    scores = [score_left_out(rows, each) for each in models]
    return _counted(rows, models, parameters, scores, np.arange(rows.table.n_rows), candidates)


def _counted_numbers(model: Any, data: Any, target: Any, sample_weight: Any, candidates: Any) -> HoldOutTargets:
    """Rows of a regression, counted once, up to the highest degree of all candidates."""
    models, _ = models_of(model, candidates)
    degree = max(one for each in models for one in each._degrees())
    return HoldOutTargets(clone(models[0]).set_params(degree=degree), data, target, sample_weight)


def _judge_numbers(rows: HoldOutTargets, candidates: Any, fold: np.ndarray | None, *, ordered: bool = False) -> Any:
    """The result of a regression's rows, held out by folds, or one by one."""
    models, parameters = models_of(rows.model, candidates, again=False)
    found = []
    for each, own in zip(models, parameters, strict=True):
        told = rows.one_by_one(each) if fold is None else rows.by_fold(each, fold, ordered=ordered)
        held = np.arange(rows.n_rows) if fold is None else fold - ordered
        found.append(RegressionValidation(each, rows.target, told, rows.weight, held, own))
    return found[0] if candidates is None else Selection(found)


def _columns_apart(data: Any, *columns: Any) -> tuple[Any, ...]:
    """The data without the columns that are named but no features, and those columns."""
    names = [name for name in columns if is_name(name)]
    if not names:
        return data, *columns
    table: Table = open_features(data)
    found = tuple(table._column(each) if is_name(each) else each for each in columns)
    for name in dict.fromkeys(names):
        table = table.without(name)
    return table, *found


def _counted(
    rows: Any,
    models: list[Any],
    parameters: list[dict[str, Any]],
    scores: list[ClassPosterior],
    fold: np.ndarray,
    candidates: Any,
    *,
    ordered: bool = False,
) -> Any:
    """The result for rows that were subtracted."""
    _warn_impossible([score.impossible for score in scores])
    scores = [
        _cross_calibrated(*pair, rows.codes, rows.weight, fold, ordered) for pair in zip(models, scores, strict=True)
    ]
    found = [
        CrossValidation(model, model.classes_, rows.codes, score, rows.weight, fold, each)
        for model, score, each in zip(models, scores, parameters, strict=True)
    ]
    return found[0] if candidates is None else Selection(found)


def _cross_calibrated(
    model: Any, scores: ClassPosterior, codes: np.ndarray, weight: np.ndarray | None, fold: np.ndarray, ordered: bool
) -> ClassPosterior:
    """Scores calibrated as the model asks for, every fold's by what was learned from the other folds' scores."""
    method = getattr(model, "calibration", None)
    if method is None:
        return scores
    known = np.flatnonzero(fold >= 0)
    if fold.max() + 1 > MOST_CALIBRATIONS and not ordered:
        fold = fold.copy()
        fold[known] = random_folds(codes[known], MOST_CALIBRATIONS, 0)
    return ClassPosterior(
        cross_fitted(method, scores.log_proba, codes, weight, fold, ordered=ordered), scores.log_density
    )


def _result(
    subjects: list[Any],
    splits: list[Split],
    fold: np.ndarray,
    parameters: list[dict[str, Any]],
    candidates: Any,
    *,
    ordered: bool = False,
) -> Any:
    """The result for rows and sequences that were held out fold by fold."""
    found = [
        evaluate_held_out(held, splits, fold, each, ordered=ordered)
        for held, each in zip(subjects, parameters, strict=True)
    ]
    _warn_impossible([each.impossible for each in found if isinstance(each, CrossValidation)])
    return found[0] if candidates is None else Selection(found)


def evaluate_held_out(
    held: Any, splits: list[Split], fold: np.ndarray, parameters: dict[str, Any], *, ordered: bool = False
) -> Any:
    """How well what is held out is told by the models of the rest; fold −1 is only learned from."""
    scores, weight, how = held.score(splits), held.weight, {"refitted": held.requires_refit}
    if isinstance(held, HeldSequences):
        lengths = held.sequences.lengths
        if held.labels is None:
            return DensityValidation(
                held.full_model, scores.log_likelihood, weight, fold, parameters, steps=lengths, **how
            )
        return SequenceValidation(held.full_model, held.states, scores, lengths, weight, fold, parameters, **how)
    if not held.n_classes:
        return DensityValidation(held.full_model, scores.log_density, weight, fold, parameters, **how)
    scores = _cross_calibrated(held.full_model, scores, held.codes, weight, fold, ordered)
    classes = held.full_model.levels_[held.target] if isinstance(held, NetworkRows) else held.full_model.classes_
    return CrossValidation(held.full_model, classes, held.codes, scores, weight, fold, parameters, **how)


def _warn_impossible(found: list[np.ndarray]) -> None:
    lost = np.flatnonzero(np.any(found, axis=0)) if found else np.zeros(0, dtype=np.intp)
    if len(lost):
        more = f", and {len(lost) - 1} more rows," if len(lost) > 1 else ""
        warn(
            f"row {lost[0]}{more} is impossible in every class when it is held out, so its class prior is used. With "
            "estimate='bayes' nothing is impossible only because it was not seen.",
            UserWarning,
        )
