"""tb.evaluate: metrics of a fitted model on some rows or sequences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.counting import check_weight
from tallybayes.data.encoding import encode
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError
from tallybayes.evaluation.named_columns import (
    class_domain,
    column_or_values,
    names_in,
    required_columns,
    without_columns,
)
from tallybayes.messages import IMPOSSIBLE_HINT
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.estimator import Estimator
from tallybayes.models.forest.tree_classifier import TreeClassifier
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.hmm.hmm_held_out import predict_sequences
from tallybayes.models.hmm.query_sequences import SequenceReader
from tallybayes.models.inputs.batching import joined_columns, query_batches
from tallybayes.models.inputs.features import check_target, continuous_target, is_name, open_features
from tallybayes.models.inputs.sequences import open_labels, step_weights
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.name_hints import with_parameter_hints
from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.inference.row_predictions import require_discrete
from tallybayes.models.network.network_fit import open_rows
from tallybayes.models.network.network_held_out import read_node, target_posterior
from tallybayes.models.regression.linear_regression import LinearRegression
from tallybayes.models.regression.target_prediction import predict_targets
from tallybayes.models.streaming.stream_model import inner_model
from tallybayes.results.classification_evaluation import Evaluation, SequenceEvaluation
from tallybayes.results.density_evaluation import DensityEvaluation
from tallybayes.results.evaluation import RowEvaluation
from tallybayes.results.regression_evaluation import RegressionEvaluation
from tallybayes.tally.domain import Domain
from tallybayes.typing import Labels, Rows, SampleWeights
from tallybayes.warnings import warn

ClassPredictor = Classifier | AutoClassifier | NearestClassMean | TreeClassifier


@overload
def evaluate(
    model: Classifier | AutoClassifier | NearestClassMean | TreeClassifier,
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
@with_parameter_hints
def evaluate(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    by: Labels | None = None,
    *,
    sample_weight: SampleWeights = None,
    mass: float = 0.95,
) -> Any:
    """Compute the metrics of a fitted model on some rows or sequences, with credible intervals.

    Use rows that the model was not fitted on: metrics of the training rows are too optimistic.

    Parameters
    ----------
    model : any model of this package
        Fitted; it is not changed.
    data : as for the model's ``score``
        Rows of files and databases are read in batches, except for a network. For a `HiddenMarkovModel`, a list of
        sequences.
    target : array-like of shape (n,), the name of a column of data, or None
        The true classes; for a `BayesianNetwork`, a discrete node, by name or as a Series of that name; for a
        `HiddenMarkovModel`, the states of every sequence, None for unknown states. The model must have every class that
        occurs. With None, a network, a `Mixture` or a hidden Markov model is evaluated by the density of rows or
        sequences.
    by : array-like of shape (n,), or the name of a column of data, optional
        The group of every row, or sequence: all metrics are computed by group too.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
        The weight of every row, or sequence.
    mass : float, default 0.95
        The probability of the intervals.

    Returns
    -------
    Evaluation; RegressionEvaluation for a regression; DensityEvaluation without a target

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
    3.32 (2.66 to 3.98)
    """
    model = inner_model(model)
    for kind, function in _EVALUATORS.items():
        if isinstance(model, kind):
            check_is_fitted(model)
            return function(model, _Request(data, target, by, sample_weight, mass))
    raise DataError.no_model(model)


class _Request(NamedTuple):
    """The rows of an evaluation and its options; target, groups and weights are arrays or names of columns."""

    data: Rows
    target: Labels | None
    by: Labels | None
    sample_weight: SampleWeights
    mass: float

    @property
    def names(self) -> list[Any]:
        """The arguments that are names of columns."""
        return names_in((self.target, self.by, self.sample_weight))

    def weight(self, table: Table, n_rows: int) -> np.ndarray | None:
        """Return the weights of the rows, which may be a column of a table."""
        return check_weight(column_or_values(table, self.sample_weight), n_rows, any_size=True)

    def groups(self, table: Table) -> dict[str, Any]:
        """Return the arguments of an evaluation that concern groups and intervals."""
        name = str(self.by) if is_name(self.by) else "group"
        return {"by": column_or_values(table, self.by), "by_name": name, "mass": self.mass}


def check_no_target(target: object) -> None:
    """Raise DataError if a mixture is evaluated with a target."""
    if target is not None:
        raise DataError(
            "target is given and the model is a Mixture, whose components are not classes; expected no target.\n"
            "    Leave target out to evaluate the density of rows, or use a classifier such as tb.NaiveBayes."
        )


def _evaluate_mixture(model: Mixture, request: _Request) -> DensityEvaluation:
    """Evaluate the density of rows."""
    check_no_target(request.target)
    scored = _score_rows(model, request)
    weight = request.weight(scored.columns, scored.n_rows)
    _, log_density = scored.scores()
    assert log_density is not None
    return DensityEvaluation(log_density, weight=weight, **request.groups(scored.columns))


def _evaluate_classes(model: ClassPredictor, request: _Request) -> Evaluation:
    """Evaluate the predicted classes of rows."""
    scored = _score_rows(model, request)
    table = scored.columns
    weight = request.weight(table, scored.n_rows)
    target = request.target
    labels = table.column(target) if is_name(target) else check_target(target, scored.n_rows)
    codes = _codes_of(labels, class_domain(model), weight)
    options = request.groups(table)
    log_proba, log_density = scored.scores()
    assert log_proba is not None
    return Evaluation(model.classes_, codes, log_proba, weight=weight, log_density=log_density, **options)


_Scores = tuple[np.ndarray | None, np.ndarray | None]  # log p(class | row) and log p(row), None if the model has none


class _ScoredRows(NamedTuple):
    """The named columns of rows, and a function that returns their scores."""

    columns: Table
    n_rows: int
    scores: Callable[[], _Scores]


def _score_rows(model: ClassPredictor | Mixture, request: _Request) -> _ScoredRows:
    """Score rows, of a source in batches; rows in memory are scored later, after the labels are checked.

    Named columns and scores of a source come from one pass: in a second one, a database may return the rows in another
    order.
    """
    data = request.data
    names = request.names
    source = open_source(data)
    if source is None or not len(source.first_batch()):
        table = open_features(data if source is None else source.first_batch())
        extra = [name for name in names if name not in set(required_columns(model))]
        if extra and not model.input_format_.by_name:
            data = without_columns(table, extra)
        return _ScoredRows(table, table.n_rows, partial(_scores, model, data))
    batches = [
        (named, rows.n_rows, *_scores(model, rows)) for rows, named in query_batches(model, source, names, "evaluating")
    ]
    columns, n_rows, *scores = zip(*batches, strict=True)
    log_proba, log_density = (None if part[0] is None else np.concatenate(part) for part in scores)
    return _ScoredRows(joined_columns(list(columns)), sum(n_rows), lambda: (log_proba, log_density))


def _scores(model: ClassPredictor | Mixture, rows: Rows) -> _Scores:
    """Return log p(class | row) and log p(row) of some rows, None where the model has none."""
    log_proba = None if isinstance(model, Mixture) else model.predict_log_proba(rows)
    return log_proba, model.score_samples(rows) if hasattr(model, "score_samples") else None


def _evaluate_regression(model: LinearRegression, request: _Request) -> RegressionEvaluation:
    """Evaluate the predictive distributions of a regression."""
    options = request.groups(open_features(request.data) if is_name(request.by) else Table({}))
    predictive, targets, weight = predict_targets(model, request.data, request.target, request.sample_weight)
    return RegressionEvaluation(targets, predictive, weight=weight, **options)


def _evaluate_network(model: BayesianNetwork, request: _Request) -> Evaluation | DensityEvaluation:
    """Evaluate the predictions of a node given all others, or the density of whole rows."""
    data, node = read_node(request.data, request.target)
    table = open_rows(model, data)
    weight = request.weight(table, table.n_rows)
    options = request.groups(table)
    if node is None:
        return DensityEvaluation(target_posterior(model, table, None).log_density, weight=weight, **options)
    require_discrete(model, [node])
    codes = _codes_of(table.column(node), class_domain(model, node), weight)
    scores = target_posterior(model, table, node)
    impossible = np.flatnonzero(scores.impossible)
    if len(impossible):
        warn(
            f"row {impossible[0]} is impossible under this network ({len(impossible)} of {table.n_rows} rows are); its "
            f"prediction uses no evidence.\n    {IMPOSSIBLE_HINT}"
        )
    classes = model.levels_[node]
    return Evaluation(classes, codes, scores.log_proba, weight=weight, log_density=scores.log_density, **options)


def _evaluate_sequences(model: HiddenMarkovModel, request: _Request) -> SequenceEvaluation | DensityEvaluation:
    """Evaluate the predicted states of the steps whose state is known, or the density of sequences."""
    _, target, by, sample_weight, mass = request
    sequences = SequenceReader.of(model).open(request.data)
    lengths = sequences.lengths
    weight = step_weights(sample_weight, sequences)
    scores = predict_sequences(model, sequences)
    if target is None:
        return DensityEvaluation(scores.log_likelihood, steps=lengths, weight=weight, by=by, mass=mass)
    labels = open_labels(target, sequences, request.data)
    known = np.asarray(encode(labels, "target", ordered=True)[0]) >= 0
    step_weight = np.where(known, 1.0 if weight is None else np.repeat(weight, lengths), 0.0)
    codes = np.where(known, _codes_of(labels, class_domain(model), step_weight), -1)
    return SequenceEvaluation(model.states_, codes, scores, lengths, weight, by=by, mass=mass)


_EVALUATORS: dict[type[Estimator], Callable[[Any, _Request], RowEvaluation]] = {
    LinearRegression: _evaluate_regression,
    HiddenMarkovModel: _evaluate_sequences,
    BayesianNetwork: _evaluate_network,
    Mixture: _evaluate_mixture,
    Classifier: _evaluate_classes,
    AutoClassifier: _evaluate_classes,
    NearestClassMean: _evaluate_classes,
    TreeClassifier: _evaluate_classes,
}


def _codes_of(labels: Labels, known: Domain, weight: np.ndarray | None) -> np.ndarray:
    """Return the index of every label among the model's classes; rows of weight 0 may have unknown labels.

    A missing label has the index of the missing level, if the model has that class.
    """
    try:
        codes, domain = encode(labels, "target", ordered=True)
    except LabelError as error:
        raise continuous_target(error) from None
    codes = np.asarray(codes).astype(np.intp)
    index_of_level = np.append(known.positions_of(domain.levels), known.index.get(None, -1))
    index = index_of_level[codes]  # code −1, a missing label, selects the last entry
    wrong = index < 0 if weight is None else (index < 0) & (weight > 0)
    if wrong.any():
        raise _unknown_labels(codes, wrong, domain.levels, known.display_levels)
    return np.maximum(index, 0)


def _unknown_labels(
    codes: np.ndarray, wrong: np.ndarray, labels: tuple[Any, ...], known: tuple[Any, ...]
) -> LabelError:
    """Return the error for missing labels, or for labels that are not classes of the model."""
    missing = np.flatnonzero(wrong & (codes < 0))
    if len(missing):
        return LabelError(
            f"the label of row {int(missing[0])} is missing ({len(missing)} of {len(codes)} are); expected a label for "
            "every row.\n    Leave the unlabeled rows out."
        )
    new = [labels[k] for k in np.unique(codes[wrong]).tolist()]
    shown = ", ".join(map(repr, new[:8])) + (f", … {len(new) - 8} more" if len(new) > 8 else "")
    return LabelError(
        f"the target has labels that are not classes of the model: {shown} ({int(wrong.sum())} of {len(codes)} rows); "
        f"expected {', '.join(map(repr, known[:8]))}{', …' if len(known) > 8 else ''}.\n"
        "    Leave those rows out, or add the classes with partial_fit or add_class."
    )
