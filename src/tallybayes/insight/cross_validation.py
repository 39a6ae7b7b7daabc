"""Cross-validation by subtraction: one count of all rows, and every fold's model is the whole less the fold."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.insight.evaluation import Evaluation
from tallybayes.insight.folds import given_folds, group_folds, ordered_folds, random_folds
from tallybayes.insight.intervals import Measure, average
from tallybayes.insight.sequence_validation import validate_sequences
from tallybayes.models.chains.hidden_markov import HiddenMarkovModel
from tallybayes.models.classifiers.answers.held_out import Rows, count_rows, open_rows, score_folds, score_left_out
from tallybayes.models.classifiers.classifier import Classifier
from tallybayes.models.fitted.bayes_rule import Normalised
from tallybayes.models.inputs.features import open_features
from tallybayes.sources.table import Table


class CrossValidation(Evaluation):
    """How well a model predicts rows it has not counted; made by `cross_validate` and `leave_one_out`.

    An `Evaluation` of held-out scores, which also has the fold of every row and the model of all rows.

    Attributes
    ----------
    model : fitted classifier
        Of all rows: nothing more has to be fitted.
    fold : ndarray of shape (n,)
        The fold every row was held out with; −1 for rows that were only learned from.
    rows : ndarray of int
        The rows that were scored, in the order of `log_proba`.
    parameters : dict
        Those of a candidate, by name; empty without candidates.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = tb.cross_validate(tb.GaussianDiscriminant(), X, y)
    >>> found.accuracy
    0.980 (0.943 to 0.993)
    >>> found.model.predict(X[:1])
    array([0])
    """

    _normalised = True

    def __init__(
        self, rows: Rows, model: Classifier, scores: Normalised, fold: np.ndarray, parameters: dict[str, Any]
    ) -> None:
        scored = np.arange(len(fold)) if fold.min() >= 0 else np.flatnonzero(fold >= 0)
        here = slice(None) if len(scored) == len(fold) else scored
        super().__init__(
            model.classes_,
            rows.codes[here],
            scores.log_proba[here],
            weight=None if rows.weight is None else rows.weight[here],
            log_density=scores.log_density[here],
        )
        self.model, self.fold, self.rows, self.parameters = model, fold, scored, parameters

    def by_fold(self) -> Any:
        """The accuracy and log-loss of every fold, as a pandas DataFrame."""
        import pandas as pd

        weight = np.ones(len(self.rows)) if self.weight is None else self.weight
        fold = self.fold[self.rows]
        total = np.bincount(fold, weight)
        right = np.bincount(fold, weight * (self.log_proba.argmax(axis=1) == self.codes))
        loss = np.bincount(fold, -weight * self.log_proba[np.arange(len(fold)), self.codes])
        here = np.flatnonzero(total > 0)
        found = {"weight": total[here], "accuracy": right[here] / total[here], "log_loss": loss[here] / total[here]}
        return pd.DataFrame(found, index=pd.Index(here, name="fold"))


class Selection(Sequence[CrossValidation]):
    """Candidates compared on the same held-out rows; a sequence of `CrossValidation`, in the order given.

    Attributes
    ----------
    best : CrossValidation
        The candidate with the lowest log-loss.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = tb.leave_one_out(tb.GaussianDiscriminant(), X, y, candidates={"covariance": ["full", "tied"]})
    >>> found
    Selection: 2 candidates, best first
      covariance  log-loss             behind the best          accuracy
      'full'      0.05 (0.02 to 0.10)                           0.980 (0.943 to 0.993)
      'tied'      0.05 (0.02 to 0.10)  0.002 (-0.009 to 0.013)  0.980 (0.943 to 0.993)
    """

    def __init__(self, results: Sequence[CrossValidation]) -> None:
        self._results = list(results)

    def __getitem__(self, index: Any) -> Any:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def best(self) -> CrossValidation:
        """The candidate with the lowest log-loss."""
        return self._ordered()[0]

    def _ordered(self) -> list[CrossValidation]:
        return sorted(self._results, key=lambda result: result.log_loss.value)

    def behind(self, result: CrossValidation) -> Measure:
        """By how much a candidate's log-loss exceeds the best one's, row by row: far surer than two figures apart."""
        best = self.best
        kept = best._counts
        rows = np.arange(len(best.codes))
        with np.errstate(invalid="ignore"):
            gap = (best.log_proba - result.log_proba)[rows, best.codes][kept]
        gap = np.where(np.isnan(gap), 0.0, gap)  # both found the class impossible
        return average(gap, None if best.weight is None else best.weight[kept], best.mass)

    def to_frame(self) -> Any:
        """One row for every candidate, as a pandas DataFrame."""
        import pandas as pd

        measures = ("log_loss", "accuracy", "brier", "calibration_error")
        return pd.DataFrame([r.parameters | {m: getattr(r, m).value for m in measures} for r in self._results])

    def __repr__(self) -> str:
        names = list(dict.fromkeys(name for result in self._results for name in result.parameters))
        lines, ordered = [[*names, "log-loss", "behind the best", "accuracy"]], self._ordered()
        for result in ordered:
            shown = [f"{result.parameters[name]!r}" if name in result.parameters else "" for name in names]
            shown = [text if len(text) <= 40 else text[:37] + "…" for text in shown]
            behind = "" if result is ordered[0] else repr(self.behind(result))
            lines.append([*shown, repr(result.log_loss), behind, repr(result.accuracy)])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)) for line in lines]
        title = f"Selection: {len(self)} candidates, best first"
        return "\n".join([title, *(f"  {line}".rstrip() for line in table)])


def cross_validate(
    model: Any,
    data: Any,
    target: Any,
    folds: Any = 10,
    groups: Any = None,
    order: Any = None,
    *,
    candidates: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> Any:
    """Score every row by a model that has not counted it: exact k-fold cross-validation from one counting pass.

    The model of a fold is the whole tally less the fold's: what refitting on the other rows gives, with the prior
    (``prior_``) and the levels of the columns as found on all rows.

    Rows are not always independent. Where several come from one patient, mail thread or document, pass ``groups``;
    where the future is to be predicted from the past, pass ``order``. Otherwise related rows on both sides of a split
    make every figure too good.

    Parameters
    ----------
    model : NaiveBayes, GaussianDiscriminant or HiddenMarkovModel
        Fitted or not: it is not changed, only its parameters are used. Of a `HiddenMarkovModel`, whole sequences are
        held out: data is a list of them, target their states, and the result a `SequenceValidation`.
    data : as for ``fit``
    target : array-like of shape (n,), or the name of a column of data
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

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> tb.cross_validate(tb.NaiveBayes(), X, y).log_loss
    0.07 (0.01 to 0.14)
    """
    if isinstance(model, HiddenMarkovModel):
        _refuse_candidates(candidates)
        if order is not None or np.ndim(folds):
            raise DataError("sequences are held out whole, in a number of folds or by groups of sequences.")
        return validate_sequences(model, data, target, sample_weight, folds, groups, random_state)
    data, groups, order, sample_weight = _columns_apart(data, groups, order, sample_weight)
    if (groups is not None) + (order is not None) + (np.ndim(folds) > 0) > 1:
        raise DataError(
            "folds by number, groups and order are different ways to hold rows out; expected one of them.\n"
            "    For groups in time, pass the time of each group as order."
        )
    opened = open_rows(model, data, target, sample_weight)
    codes = opened.labels
    if order is not None:
        fold = ordered_folds(order, len(codes), folds)
    elif groups is not None:
        fold = group_folds(groups, len(codes), folds, random_state)
    else:
        fold = given_folds(folds, len(codes)) if np.ndim(folds) else random_folds(codes, folds, random_state)
    rows = count_rows(opened, fold)
    models, parameters = _candidates(rows, candidates)
    if order is None:
        scores = score_folds(rows, models, rows.without, fold)
        return _result(rows, models, parameters, scores, fold, candidates)
    before = list(itertools.accumulate(rows.parts, lambda a, b: [x + y for x, y in zip(a, b, strict=True)]))
    scores = score_folds(rows, models, lambda k: before[k], fold - 1)
    return _result(rows, models, parameters, scores, fold - 1, candidates)


def leave_one_out(model: Any, data: Any, target: Any, *, candidates: Any = None, sample_weight: Any = None) -> Any:
    """Score every row by the model of all other rows.

    What a row brought to the counts is taken out in closed form (for covariances, by a change of rank one), so this
    costs a few times what counting and scoring once do. Only under ``shrinkage`` are rows counted out one by one.
    ``prior_`` and the levels of the columns are held as found on all rows.

    Parameters
    ----------
    model : NaiveBayes, GaussianDiscriminant or HiddenMarkovModel
        Fitted or not: it is not changed, only its parameters are used. Of a `HiddenMarkovModel`, whole sequences are
        held out: data is a list of them, target their states, and the result a `SequenceValidation`.
    data : as for ``fit``
    target : array-like of shape (n,), or the name of a column of data
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        Models to compare on the same counts.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
        A row is left out with all its weight.

    Returns
    -------
    CrossValidation, or a Selection of them where there are candidates

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "rain", "sun", "rain", "sun"], "picnic": [1, 0, 1, 0, 0]}
    >>> tb.leave_one_out(tb.NaiveBayes(), rows, "picnic").log_proba.shape
    (5, 2)
    """
    if isinstance(model, HiddenMarkovModel):
        _refuse_candidates(candidates)
        return validate_sequences(model, data, target, sample_weight, None, None, None)
    rows = count_rows(open_rows(model, data, target, sample_weight))
    models, parameters = _candidates(rows, candidates)
    scores = [score_left_out(rows, each) for each in models]
    return _result(rows, models, parameters, scores, np.arange(rows.table.n_rows), candidates)


def _refuse_candidates(candidates: Any) -> None:
    if candidates is not None:
        raise DataError("candidates are for classifiers of rows.\n    Call this once for every hidden Markov model.")


def _columns_apart(data: Any, *columns: Any) -> tuple[Any, ...]:
    """The data without the columns that are named but no features, and those columns."""
    names = [name for name in columns if isinstance(name, str)]
    if not names:
        return data, *columns
    table: Table = open_features(data)
    found = tuple(table._column(each) if isinstance(each, str) else each for each in columns)
    for name in dict.fromkeys(names):
        table = table.without(name)
    return table, *found


def _candidates(rows: Rows, candidates: Any) -> tuple[list[Classifier], list[dict[str, Any]]]:
    if candidates is None:
        return [rows.model], [{}]
    if isinstance(candidates, Mapping):
        for name, values in candidates.items():
            if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
                raise DataError.wrong_type(f"candidates[{name!r}]", repr(values), "a list of values")
        combinations = itertools.product(*candidates.values())
        candidates = [dict(zip(candidates, values, strict=True)) for values in combinations]
    listed = [dict(parameters) for parameters in candidates]
    if not listed:
        raise DataError.wrong_type("candidates", "none", "at least one set of parameters")
    return [rows.model.reestimate(**parameters) for parameters in listed], listed


def _result(
    rows: Rows,
    models: list[Classifier],
    parameters: list[dict[str, Any]],
    scores: list[Normalised],
    fold: np.ndarray,
    candidates: Any,
) -> Any:
    lost = np.flatnonzero(np.any([score.impossible for score in scores], axis=0))
    if len(lost):
        more = f", and {len(lost) - 1} more rows," if len(lost) > 1 else ""
        warnings.warn(
            f"row {lost[0]}{more} is impossible in every class when it is held out, so its class prior is used. With "
            "estimate='bayes' nothing is impossible only because it was not seen.",
            UserWarning,
            stacklevel=3,
        )
    found = [
        CrossValidation(rows, model, score, fold, each)
        for model, score, each in zip(models, scores, parameters, strict=True)
    ]
    return found[0] if candidates is None else Selection(found)
