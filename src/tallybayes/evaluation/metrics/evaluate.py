"""tb.evaluate: a fitted model's answers on some rows or sequences, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.counting import check_weight
from tallybayes.data.encoding import encode
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError
from tallybayes.evaluation.metrics.classification_evaluation import Evaluation
from tallybayes.evaluation.metrics.density_evaluation import DensityEvaluation, refuse_target
from tallybayes.evaluation.metrics.regression_evaluation import RegressionEvaluation
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.hmm.hmm_held_out import predict_sequences
from tallybayes.models.hmm.inference.decoding import open_sequences_for_query
from tallybayes.models.inputs.batching import joined_columns, query_batches
from tallybayes.models.inputs.features import check_target, continuous_target, is_name, open_features
from tallybayes.models.inputs.sequences import open_labels, step_weights
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.inference.row_predictions import require_labels
from tallybayes.models.network.network_fit import open_rows
from tallybayes.models.network.network_held_out import answer_rows, read_node
from tallybayes.models.regression.linear_regression import LinearRegression
from tallybayes.models.regression.target_prediction import predictions_and_targets
from tallybayes.models.streaming.stream_model import inner_model
from tallybayes.tally.domain import Domain
from tallybayes.typing import Labels, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator


@overload
def evaluate(
    model: Classifier | AutoClassifier | NearestClassMean,
    data: Rows,
    target: Labels | None = None,
    by: Labels | None = None,
    *,
    sample_weight: SampleWeights = None,
    mass: float = 0.95,
) -> Evaluation: ...
@overload
def evaluate(
    model: LinearRegression,
    data: Rows,
    target: Labels | None = None,
    by: Labels | None = None,
    *,
    sample_weight: SampleWeights = None,
    mass: float = 0.95,
) -> RegressionEvaluation: ...
@overload
def evaluate(
    model: BayesianNetwork | HiddenMarkovModel,
    data: Rows,
    target: Labels,
    by: Labels | None = None,
    *,
    sample_weight: SampleWeights = None,
    mass: float = 0.95,
) -> Evaluation: ...
@overload
def evaluate(
    model: Mixture | BayesianNetwork | HiddenMarkovModel,
    data: Rows,
    target: None = None,
    by: Labels | None = None,
    *,
    sample_weight: SampleWeights = None,
    mass: float = 0.95,
) -> DensityEvaluation: ...
@overload
def evaluate(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    by: Labels | None = None,
    *,
    sample_weight: SampleWeights = None,
    mass: float = 0.95,
) -> Any: ...
def evaluate(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    by: Labels | None = None,
    *,
    sample_weight: SampleWeights = None,
    mass: float = 0.95,
) -> Any:
    """How good a fitted model's answers are on some rows or sequences, with credible intervals.

    Rows that the model has learned from flatter it: pass others.

    Parameters
    ----------
    model : any model of this package
        Fitted; it is not changed.
    data : as for the model's ``score``; rows of files and databases are asked batch by batch, but of a network
        Of a `HiddenMarkovModel`, a list of sequences.
    target : array-like of shape (n,), the name of a column of data, or None
        The true classes; of a `BayesianNetwork`, a node with levels, by name or as a Series of that name; of a
        `HiddenMarkovModel`, the states of every sequence, None where a step's is not known. Every class must be known
        to the model; classes of the model that do not occur are fine. None, for a network, a `Mixture` or a hidden
        Markov model, judges the density of rows or sequences.
    by : array-like of shape (n,), or the name of a column of data, optional
        Measure each of these groups by itself too; of sequences, one label for each.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
    mass : float, default 0.95
        The mass of the intervals.

    Returns
    -------
    Evaluation; RegressionEvaluation of numbers; DensityEvaluation where there is no target

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tb.GaussianDiscriminant().fit(X[::2], y[::2])
    >>> result = tb.evaluate(model, X[1::2], y[1::2])
    >>> result.accuracy
    0.96 (0.89 to 0.99)
    >>> result.log_loss
    0.07 (0.02 to 0.15)
    >>> tb.evaluate(tb.Mixture(3, random_state=0).fit(X[::2]), X[1::2]).bits_per_row
    3.32 (2.66 to 3.99)
    """
    model = inner_model(model)
    known = (
        Classifier
        | AutoClassifier
        | NearestClassMean
        | BayesianNetwork
        | Mixture
        | HiddenMarkovModel
        | LinearRegression
    )
    if not isinstance(model, known):
        hint = "Score other models yourself, and pass their log-probabilities to tb.Evaluation."
        raise DataError.wrong_type("model", type(model).__name__, "a model of this package", hint)
    check_is_fitted(model)
    if isinstance(model, LinearRegression):
        return _evaluate_numbers(model, data, target, by, sample_weight, mass)
    if isinstance(model, HiddenMarkovModel):
        return _evaluate_sequences(model, data, target, by, sample_weight, mass)
    if isinstance(model, BayesianNetwork):
        data, target = read_node(data, target)
    elif isinstance(model, Mixture):
        refuse_target(target)
    names = [name for name in (target, by, sample_weight) if is_name(name)]
    told = _ModelPredictions(open_rows(model, data)) if isinstance(model, BayesianNetwork) else _ask(model, data, names)
    table = told.table
    name_of_by = str(by) if is_name(by) else "group"
    weight = table._column(sample_weight) if is_name(sample_weight) else sample_weight
    weight = check_weight(weight, told.n_rows, any_size=True)
    options: dict[str, Any] = {"weight": weight, "by": table._column(by) if is_name(by) else by, "mass": mass}
    found: Any
    if isinstance(model, BayesianNetwork):
        found = _evaluate_network(model, table, target, options)
    elif isinstance(model, Mixture):
        found = DensityEvaluation(told.log_density(), **options)
    else:
        labels = table._column(target) if is_name(target) else check_target(target, told.n_rows)
        codes = _codes_of(labels, model._class_domain, weight)
        log_density = told.log_density() if hasattr(model, "score_samples") else None
        found = Evaluation(model.classes_, codes, told.log_proba(), log_density=log_density, **options)
    found._by_name = name_of_by
    return found


def _evaluate_numbers(model: Any, data: Any, target: Any, by: Any, sample_weight: Any, mass: float) -> Any:
    """A regression's predictive distributions of some targets."""
    groups = open_features(data)._column(by) if is_name(by) else by
    told, found, weight = predictions_and_targets(model, data, target, sample_weight)
    result = RegressionEvaluation(found, told, weight=weight, by=groups, mass=mass)
    result._by_name = str(by) if is_name(by) else "group"
    return result


class _ModelPredictions:
    """What is measured: the columns that were named, of all rows, and what a classifier says of every row."""

    def __init__(self, table: Table, rows: Any = None, model: Any = None) -> None:
        self.table, self.n_rows, self.rows, self.model = table, table.n_rows, rows, model

    def log_density(self) -> np.ndarray:
        """log p(row)."""
        return self.model.score_samples(self.rows)

    def log_proba(self) -> np.ndarray:
        """log p(class | row)."""
        return self.model.predict_log_proba(self.rows)


class _BatchedPredictions(_ModelPredictions):
    """The same of rows that come in batches, in one pass: in another, a database may give them in another order."""

    def __init__(self, model: Any, source: Source, names: list[str]) -> None:
        self._density: list[np.ndarray] = []
        self._proba: list[np.ndarray] = []
        kept, n_rows = [], 0
        for rows, columns in query_batches(model, source, names, "evaluating"):
            if hasattr(model, "score_samples"):
                self._density.append(model.score_samples(rows))
            if not isinstance(model, Mixture):
                self._proba.append(model.predict_log_proba(rows))
            kept.append(columns)
            n_rows += rows.n_rows
        super().__init__(joined_columns(kept))
        self.n_rows = n_rows

    def log_density(self) -> np.ndarray:
        """log p(row)."""
        return np.concatenate(self._density)

    def log_proba(self) -> np.ndarray:
        """log p(class | row)."""
        return np.concatenate(self._proba)


def _ask(model: Any, data: Any, names: list[str]) -> _ModelPredictions:
    """The rows of some data as they are asked: all, or batch by batch."""
    source = open_source(data)
    if source is not None and len(source.first_batch()):
        return _BatchedPredictions(model, source, names)
    table = open_features(data if source is None else source.first_batch())
    return _ModelPredictions(table, _features(model, data, table, names), model)


def _evaluate_network(model: Any, table: Table, target: Any, options: dict[str, Any]) -> Any:
    """A node told from all others, or the density of whole rows."""
    if target is None:
        return DensityEvaluation(answer_rows(model, table, None).log_density, **options)
    require_labels(model, [target])
    codes = _codes_of(table._column(target), model._estimated_network.domains[target], options["weight"])
    scores = answer_rows(model, table, target)
    lost = np.flatnonzero(scores.impossible)
    if len(lost):
        warn(
            f"row {lost[0]} is impossible under this network ({len(lost)} of {table.n_rows} are), so nothing follows "
            "from it: it got the probabilities that hold without evidence.",
            UserWarning,
        )
    return Evaluation(model.levels_[target], codes, scores.log_proba, log_density=scores.log_density, **options)


def _evaluate_sequences(
    model: HiddenMarkovModel, data: Any, target: Any, by: Any, sample_weight: Any, mass: float
) -> Any:
    """The states of steps, where they are known, or the density of sequences."""
    sequences = open_sequences_for_query(model, data, None, None, None)
    weight = step_weights(sample_weight, sequences)
    scores = predict_sequences(model, sequences)
    if target is None:
        lengths = sequences.lengths
        return DensityEvaluation(scores.log_likelihood, steps=lengths, weight=weight, by=by, mass=mass)
    labels = open_labels(target, sequences, data)
    known = np.asarray(encode(labels, "target", ordered=True)[0]).astype(np.intp) >= 0
    per_step = np.where(known, 1.0 if weight is None else np.repeat(weight, sequences.lengths), 0.0)
    codes = _codes_of(labels, model._estimated_hmm.states, per_step)
    groups = None if by is None else np.repeat(np.asarray(by, dtype=object), sequences.lengths)
    options: dict[str, Any] = {"weight": per_step, "by": groups, "predicted": scores.path, "mass": mass}
    return Evaluation(model.states_, codes, scores.log_proba, **options)


def _features(model: Any, data: Any, table: Table, names: list[str]) -> Any:
    """The data without what was named and is no feature, where the model would take every column for one."""
    extra = [name for name in names if name not in set(model._required_columns)]
    if model._shape.by_name or not extra:
        return data
    for name in dict.fromkeys(extra):
        table = table.without(name)
    return table


def _codes_of(labels: Any, known: Domain, weight: np.ndarray | None) -> np.ndarray:
    """The position of every label among the model's classes; rows without weight may have any.

    A missing one has the position of absence, where that is a class.
    """
    try:
        codes, domain = encode(labels, "target", ordered=True)
    except LabelError as error:
        raise continuous_target(error) from None
    codes = np.asarray(codes).astype(np.intp)
    places = np.append(known.positions_of(domain.levels), known.index.get(None, -1))
    found = places[codes]  # code −1, a missing label, finds the last
    wrong = found < 0 if weight is None else (found < 0) & (weight > 0)
    if wrong.any():
        raise _unknown_labels(codes, wrong, domain.levels, known.display_levels)
    return np.maximum(found, 0)


def _unknown_labels(
    codes: np.ndarray, wrong: np.ndarray, labels: tuple[Any, ...], known: tuple[Any, ...]
) -> LabelError:
    missing = np.flatnonzero(wrong & (codes < 0))
    if len(missing):
        return LabelError(
            f"the label of row {int(missing[0])} is missing ({len(missing)} of {len(codes)} are); expected a label for "
            "every row.\n    Leave the unlabeled rows out."
        )
    new = [labels[k] for k in np.flatnonzero(np.bincount(codes[wrong])).tolist()]
    shown = ", ".join(map(repr, new[:8])) + (f", … {len(new) - 8} more" if len(new) > 8 else "")
    return LabelError(
        f"the target holds labels that the model does not know: {shown} ({int(wrong.sum())} of {len(codes)} rows); "
        f"expected {', '.join(map(repr, known[:8]))}{', …' if len(known) > 8 else ''}.\n"
        "    Leave those rows out, or learn the classes with partial_fit or add_class."
    )
