"""Cross-validation by subtraction: all rows are counted once, and each fold's model is fitted to the difference.

Models whose counts cannot be subtracted are refitted for every fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes.errors import DataError, NotForgettableError
from tallybayes.estimation.calibration.calibration import cross_fitted
from tallybayes.estimation.resampling.folds import Folds, given_folds, group_folds, ordered_folds, random_folds
from tallybayes.estimation.resampling.held_out import HoldOutRows
from tallybayes.evaluation.evaluate import check_no_target
from tallybayes.evaluation.named_columns import split_columns
from tallybayes.evaluation.validation.arguments import candidate_models, reestimated_models
from tallybayes.messages import IMPOSSIBLE_HINT
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.held_out_rows import LabeledRows, UnlabeledRows, count_rows
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.forest.tree_classifier import TreeClassifier
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.hmm.hmm_held_out import HeldSequences
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.name_hints import with_parameter_hints
from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.network_held_out import NetworkRows
from tallybayes.models.regression.linear_regression import LinearRegression
from tallybayes.models.regression.regression_held_out import HeldTargets
from tallybayes.results.classification_evaluation import Evaluation, SequenceEvaluation
from tallybayes.results.density_evaluation import DensityEvaluation
from tallybayes.results.evaluation import HeldOut, RowEvaluation
from tallybayes.results.regression_evaluation import RegressionEvaluation, predictive_rows
from tallybayes.results.selection import Selection
from tallybayes.typing import Candidates, Labels, RandomState, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

MOST_CALIBRATIONS = 10  # calibrations of leave-one-out
MOST_FITS = 500  # refits of leave-one-out


@overload
def cross_validate(
    model: Classifier | AutoClassifier | NearestClassMean | TreeClassifier,
    data: Rows,
    target: Labels,
    folds: int | npt.NDArray[Any] | Iterable[Any] = 10,
    groups: Labels | None = None,
    order: Labels | None = None,
    *,
    candidates: None = None,
    sample_weight: SampleWeights = None,
    random_state: RandomState = 0,
) -> Evaluation: ...
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
) -> RegressionEvaluation: ...
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
) -> DensityEvaluation: ...
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
@with_parameter_hints
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
        Rows of one group are held out together. A named column is not used as a feature, neither here nor as `order` or
        `sample_weight`.
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
    Evaluation, or a Selection of them if candidates are given
        Its ``held_out``, ``fold``, ``rows``, ``model`` and ``by_fold`` tell how the rows were held out. It is a
        `SequenceEvaluation` of states, a `RegressionEvaluation` of a regression, a `DensityEvaluation` without a
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
    return _validate(model, data, target, sample_weight, candidates, FoldRule(folds, groups, order, random_state))


@overload
def leave_one_out(
    model: Classifier | AutoClassifier | NearestClassMean | TreeClassifier,
    data: Rows,
    target: Labels,
    *,
    candidates: None = None,
    sample_weight: SampleWeights = None,
) -> Evaluation: ...
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
@with_parameter_hints
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
    Evaluation, or a Selection of them if candidates are given
        Its ``held_out``, ``fold``, ``rows``, ``model`` and ``by_fold`` tell how the rows were held out. It is a
        `SequenceEvaluation` of states, a `RegressionEvaluation` of a regression, a `DensityEvaluation` without a
        target.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "rain", "sun", "rain", "sun"], "picnic": [1, 0, 1, 0, 0]}
    >>> tb.leave_one_out(tb.NaiveBayes(), rows, "picnic").log_proba.shape
    (5, 2)
    """
    return _validate(model, data, target, sample_weight, candidates, ONE_BY_ONE)


class FoldRule(NamedTuple):
    """How rows are assigned to folds: at random, as given, by group or by order; or every row is a fold."""

    folds: Any = None
    groups: Labels | None = None
    order: Labels | None = None
    random_state: RandomState = None
    one_by_one: bool = False
    at_most: bool = False  # whether few rows are assigned to fewer folds

    def check(self) -> None:
        """Raise DataError if more than one way of assigning rows is given."""
        if (self.groups is not None) + (self.order is not None) + (np.ndim(self.folds) > 0) > 1:
            raise DataError(
                "folds by row, groups and order exclude each other, and several are given; expected one of them.\n"
                "    For groups in time, pass the time of each group as order."
            )

    def assign(self, codes: np.ndarray) -> Folds:
        """Return the fold of every row; rows with code −1 are not predicted."""
        known = codes >= 0
        if self.order is not None:  # the first part of the order is only used for fitting
            return Folds(ordered_folds(self.order, len(codes), self.folds) - 1, known, ordered=True)
        if self.groups is not None:
            return Folds(group_folds(self.groups, len(codes), self.folds, self.random_state), known)
        if np.ndim(self.folds):
            return Folds(given_folds(self.folds, len(codes)), known)
        fold = np.full(len(codes), -1, dtype=np.int32)
        if self.one_by_one:
            fold[known] = np.flatnonzero(known)
        else:
            n_known = int(known.sum())
            n_folds = min(self.folds, n_known) if self.at_most else self.folds
            fold[known] = random_folds(codes[known], n_folds, self.random_state)
        return Folds(fold, known, one_by_one=self.one_by_one)


ONE_BY_ONE = FoldRule(one_by_one=True)


def _validate(
    model: Estimator,
    data: Rows,
    target: Labels | None,
    sample_weight: SampleWeights,
    candidates: Candidates | None,
    rule: FoldRule,
) -> RowEvaluation | Selection:
    """Return the metrics of held-out rows, of a model or of all candidates."""
    rule.check()
    results = _results(model, (data, target, sample_weight), candidates, rule)
    _warn_impossible(results)
    return results[0] if candidates is None else Selection(results)


Held: TypeAlias = HeldSequences | HeldTargets | HoldOutRows
Training = tuple[Rows, Labels | None, SampleWeights]  # the arguments of `fit`


def _results(
    model: Estimator, training: Training, candidates: Candidates | None, rule: FoldRule
) -> list[RowEvaluation]:
    """Return the metrics of all candidates: estimated from the same counts or, if these depend on EM, counted apart."""
    unfitted, parameters = candidate_models(model, candidates)
    rows: Held
    if isinstance(model, LinearRegression):  # counted up to the highest degree of all candidates
        degree = max(degree for each in unfitted for degree in each._degrees())
        rows = HeldTargets(clone(unfitted[0]).set_params(degree=degree), *training)
        models, _ = reestimated_models(rows.full_model, candidates)
        return evaluate_held_out([rows.with_model(each) for each in models], parameters, rule.assign(rows.codes))
    if isinstance(model, Classifier):
        with suppress(NotForgettableError):
            rows, folds = count_rows(model, *training, rule.assign)
            models, _ = reestimated_models(rows.full_model, candidates)
            return evaluate_held_out([rows.with_model(each) for each in models], parameters, folds)
    subjects = [make_holdout(each, *training) for each in unfitted]
    return evaluate_held_out(subjects, parameters, rule.assign(subjects[0].codes))


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
    if isinstance(model, Classifier | AutoClassifier | NearestClassMean | TreeClassifier):
        return LabeledRows.open(model, data, target, sample_weight)  # type: ignore[arg-type]  # None raises there
    raise DataError.no_model(model)


def evaluate_held_out(subjects: Sequence[Held], parameters: list[dict[str, Any]], folds: Folds) -> list[RowEvaluation]:
    """Return the metrics of models of rows or sequences, each predicted by the model without its fold."""
    n_known = int(folds.known.sum())
    if folds.one_by_one and any(subject.requires_refit for subject in subjects) and n_known > MOST_FITS:
        raise DataError(
            f"{type(subjects[0].full_model).__name__} must be refitted without each of {n_known} rows; "
            f"expected at most {MOST_FITS} rows.\n    Use tb.cross_validate, which refits it once per fold."
        )
    return [_evaluated(subject, own, folds) for subject, own in zip(subjects, parameters, strict=True)]


def _evaluated(subject: Held, parameters: dict[str, Any], folds: Folds) -> RowEvaluation:
    """Return the metrics of the rows or sequences that are predicted."""
    model = subject.full_model
    held_out = HeldOut(model, folds.predicted, parameters, subject.requires_refit)
    rows = held_out.rows
    weight = None if subject.weight is None else subject.weight[rows]
    if isinstance(subject, HeldTargets):
        predicted = predictive_rows(subject.score(folds), rows)
        return RegressionEvaluation(subject.target[rows], predicted, weight=weight, held_out=held_out)
    if isinstance(subject, HeldSequences):
        predictions, lengths = subject.score(folds), subject.sequences.lengths
        if subject.labels is not None:
            data = model.states_, subject.states, predictions, lengths
            return SequenceEvaluation(*data, weight=subject.weight, held_out=held_out)
        return DensityEvaluation(
            predictions.log_likelihood[rows], steps=lengths[rows], weight=weight, held_out=held_out
        )
    scores = subject.score(folds)
    if not subject.n_classes:
        return DensityEvaluation(scores.log_density[rows], weight=weight, held_out=held_out)
    held_out = held_out._replace(impossible=scores.impossible)
    classes = model.levels_[subject.target] if isinstance(subject, NetworkRows) else model.classes_
    index = held_out.selected
    density = scores.log_density[index]
    log_proba = _calibrated(model, scores.log_proba, subject, folds)
    return Evaluation(
        classes,
        subject.codes[index],
        log_proba[index],
        weight=None if subject.weight is None else subject.weight[index],
        log_density=None if np.isnan(density).any() else density,  # nearest class means have no density
        held_out=held_out,
    )


def _calibrated(model: Any, log_proba: np.ndarray, rows: HoldOutRows, folds: Folds) -> np.ndarray:
    """Calibrate the probabilities of every fold on those of the others, if the model has a calibration method."""
    method = getattr(model, "calibration", None)
    if method is None:
        return log_proba
    fold = folds.predicted
    if folds.n_folds > MOST_CALIBRATIONS and not folds.ordered:
        fold = FoldRule(MOST_CALIBRATIONS, random_state=0).assign(np.where(fold < 0, -1, rows.codes)).fold
    return cross_fitted(method, log_proba, rows.codes, rows.weight, fold, ordered=folds.ordered)


def _warn_impossible(results: list[RowEvaluation]) -> None:
    """Warn of held-out rows that have probability 0 in every class."""
    impossible = [each.held_out.impossible for each in results if each.held_out is not None]
    rows = np.flatnonzero(np.any([each for each in impossible if each is not None], axis=0))
    if len(rows):
        more = f", and {len(rows) - 1} more rows," if len(rows) > 1 else ""
        warn(
            f"row {rows[0]}{more} is impossible in every class when it is held out, so its class prior is used.\n"
            f"    {IMPOSSIBLE_HINT}"
        )
