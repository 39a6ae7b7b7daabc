"""tb.prequential: test-then-train evaluation on a stream, batch by batch."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Hashable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from tallybayes._utils.parameter_checks import check_count
from tallybayes._utils.progress import progress_of
from tallybayes.data.array_input import as_array
from tallybayes.data.encoding import missing_mask
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, LabelError, printable
from tallybayes.evaluation.comparison.model_difference import difference
from tallybayes.evaluation.named_columns import names_in, without_columns
from tallybayes.evaluation.validation.arguments import named_models
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.estimator import Estimator
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.inputs.features import is_name, only_column, open_features
from tallybayes.models.name_hints import with_parameter_hints
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.inference.row_predictions import require_discrete
from tallybayes.results.model_curves import Prequential
from tallybayes.typing import EstimatorLike, Labels, Name, Rows

_LEAST = 1e-15  # smaller probabilities are raised to this: the log loss stays finite


class _Batch(NamedTuple):
    """A batch of rows with labels; the target and the time are arrays or names of columns of X."""

    X: Table
    target: Name | np.ndarray
    labels: np.ndarray
    time: Name | np.ndarray | None

    def features(self) -> Table:
        """Return the columns without the target and the time."""
        return without_columns(self.X, names_in((self.target, self.time)))

    def without_time(self) -> Table:
        """Return the columns without the time."""
        return without_columns(self.X, names_in([self.time]))


class _BatchMetrics(NamedTuple):
    """The metrics of one model on one batch."""

    error: float
    log_loss: float
    unknown: int
    seconds: float
    drift: dict[Name, float]


@with_parameter_hints
def prequential(
    models: EstimatorLike | Mapping[str, EstimatorLike],
    stream: Rows,
    target: Labels | None = None,
    *,
    batch_size: int = 100,
    time: Labels | None = None,
    classes: Iterable[Hashable] | None = None,
    drift: bool = False,
) -> Prequential:
    """Evaluate models on a stream by test-then-train: every batch is predicted first, and fitted afterwards.

    No rows are held out, and no row is predicted by a model that was fitted on it (Dawid 1984). An increasing error
    indicates drift that a model does not follow.

    Parameters
    ----------
    models : a classifier with ``partial_fit``, or mapping from names to such classifiers
        Models of this package, also in `Window` and `Decayed`, or of scikit-learn. They are not changed; copies of
        fitted ones continue from their state.
    stream : rows in the order of their arrival
        An array, a data frame, a mapping of columns, a list of texts, a file; or an iterable of batches, each a table
        or a pair (X, y).
    target : array-like of shape (n,), or the name of a column
        For a `BayesianNetwork`, the name of a discrete node, predicted given all others.
    batch_size : int, default 100
        The number of rows of a batch; batches of an iterable stay as they are.
    time : array-like of shape (n,), or the name of a column, optional
        The arrival time of every row, for models that use it.
    classes : list, optional
        All classes that may occur: scikit-learn's estimators require them.
    drift : bool, default False
        Whether to compute the divergence of every column of each batch from the rows that a model has counted.

    Returns
    -------
    Prequential

    Notes
    -----
    A class that a model does not have yet gets the probability 1/(n + K + 1) after n rows of K classes.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> result = tb.prequential(tb.NaiveBayes(tb.Poisson()), X, y)
    >>> bool(result.mean("error") < 0.2)
    True
    """
    streamed = {name: _streamed(model, name) for name, model in named_models(models).items()}
    check_count("batch_size", batch_size)
    n_rows: list[int] = []
    metrics: list[list[_BatchMetrics]] = []
    for batch in _batches(stream, target, time, batch_size):
        metrics.append([model.test_then_train(batch, classes, drift) for model in streamed.values()])
        n_rows.append(len(batch.labels))
    if not metrics:
        raise DataError("the stream has no rows; expected at least 1.")
    error, log_loss, unknown, seconds = (
        np.array([[model[field] for model in batch] for batch in metrics]).T for field in range(4)
    )
    columns: list[Name] = []
    bits = None
    if drift:
        columns = list(dict.fromkeys(column for batch in metrics for model in batch for column in model.drift))
        bits = np.array([[[one.drift.get(c, np.nan) for c in columns] for one in batch] for batch in metrics])
        bits = bits.transpose(1, 0, 2)
    return Prequential(list(streamed), np.array(n_rows), error, log_loss, unknown, seconds, columns, bits)


# ---- Models ---------------------------------------------------------------------------------------------------------


def _streamed(model: EstimatorLike, name: object) -> _StreamedModel:
    """Return a copy of a model to continue from; raise DataError if it cannot be fitted in batches."""
    title = f"model {printable(name)!r}"
    if isinstance(model, type) or not (hasattr(model, "partial_fit") and hasattr(model, "predict_proba")):
        expected = "a classifier with partial_fit and predict_proba"
        raise DataError.wrong_type(
            title, repr(model)[:60], expected, "Pass an instance." if isinstance(model, type) else ""
        )
    inner = getattr(model, "model", model)  # of a window or a decayed model
    if isinstance(inner, HiddenMarkovModel):
        raise DataError.wrong_type(title, type(model).__name__, "a model of rows", "Use tb.evaluate for sequences.")
    if isinstance(inner, BayesianNetwork):
        return _StreamedNetwork(model)
    return _StreamedModel(model) if isinstance(inner, Estimator) else _StreamedSklearn(model)


class _StreamedModel:
    """A classifier of this package, or a stream of one: it is predicted and fitted batch by batch."""

    def __init__(self, model: EstimatorLike) -> None:
        self.model: Any = model
        self.model = copy.deepcopy(model) if self.is_fitted else clone(model)

    @property
    def current(self) -> Any:
        """The model that makes the predictions: of a stream, that of its current rows."""
        return getattr(self.model, "model_", self.model)

    @property
    def is_fitted(self) -> bool:
        """Whether the model has counted rows."""
        return len(getattr(self.model, "classes_", ())) > 0

    def classes(self, batch: _Batch) -> np.ndarray:
        """Return the classes that the model has."""
        return np.asarray(self.model.classes_)

    def predict_proba(self, batch: _Batch) -> np.ndarray:
        """Return the class probabilities of a batch."""
        return np.asarray(self.model.predict_proba(batch.features()))

    def arguments(self, batch: _Batch) -> tuple[Rows, dict[str, Any]]:
        """Return the rows and the labels of a batch for ``partial_fit``."""
        return batch.without_time(), {"y": batch.target}

    def options(self, batch: _Batch, classes: Iterable[Hashable] | None) -> dict[str, Any]:
        """Return the times of a batch and the classes, if ``partial_fit`` accepts them."""
        accepted = inspect.signature(self.model.partial_fit).parameters
        options: dict[str, Any] = {"time": batch.time, "classes": None if self.is_fitted else classes}
        return {name: value for name, value in options.items() if value is not None and name in accepted}

    def test_then_train(self, batch: _Batch, classes: Iterable[Hashable] | None, drift: bool) -> _BatchMetrics:
        """Predict a batch, fit it, and return the metrics."""
        n = len(batch.labels)
        start = perf_counter()
        error = loss = np.nan
        unknown = 0
        rows, labels = self.arguments(batch)
        if self.is_fitted:
            code_of = {label: k for k, label in enumerate(self.classes(batch).tolist())}
            proba = self.predict_proba(batch)
            codes = np.array([code_of.get(label, -1) for label in batch.labels.tolist()])
            unknown = int((codes < 0).sum())
            unseen = 1 / (getattr(self.model, "n_rows_", n) + len(code_of) + 1)
            truth = np.where(codes < 0, unseen, proba[np.arange(n), codes])
            error = float(np.mean(proba.argmax(axis=1) != codes))
            loss = float(-np.log(np.maximum(truth, _LEAST)).mean())
        bits = self.drift(rows, labels) if drift and self.is_fitted else {}
        options = self.options(batch, classes)
        self.model.partial_fit(batch.X if "time" in options else rows, **labels, **options)
        return _BatchMetrics(error, loss, unknown, perf_counter() - start, bits)

    def drift(self, rows: Rows, labels: dict[str, Any]) -> dict[Name, float]:
        """Return the divergence of the columns of rows from the counted rows in bits; empty if it is not defined."""
        if not hasattr(self.current, "without_rows"):
            return {}
        of_batch = self.current.without_rows().partial_fit(rows, **labels)
        return {column.column: column.bits for column in difference(self.current, of_batch).columns}


class _StreamedNetwork(_StreamedModel):
    """A Bayesian network, or a stream of one: its target is one of the columns."""

    @property
    def is_fitted(self) -> bool:
        """Whether the network has counted rows."""
        return hasattr(self.current, "tally_")

    def classes(self, batch: _Batch) -> np.ndarray:
        """Return the levels of the target."""
        name: Any = batch.target
        require_discrete(self.current, [name])
        return np.asarray(self.current.levels_[name])

    def predict_proba(self, batch: _Batch) -> np.ndarray:
        """Return the probabilities of the levels of the target, given all other nodes."""
        return np.asarray(self.model.predict_proba(batch.features(), columns=batch.target))

    def arguments(self, batch: _Batch) -> tuple[Rows, dict[str, Any]]:
        """Return the rows of a batch for ``partial_fit``."""
        if not is_name(batch.target):
            raise LabelError("target is an array; expected the name of a node's column, which a network predicts.")
        return batch.without_time(), {}


class _StreamedSklearn(_StreamedModel):
    """An estimator of another library: its features are an array of numbers."""

    def predict_proba(self, batch: _Batch) -> np.ndarray:
        """Return the class probabilities of a batch."""
        return np.asarray(self.model.predict_proba(_as_matrix(batch.features())))

    def arguments(self, batch: _Batch) -> tuple[Rows, dict[str, Any]]:
        """Return the features and the labels of a batch for ``partial_fit``."""
        return _as_matrix(batch.features()), {"y": batch.labels}


def _as_matrix(table: Table) -> np.ndarray | csr_array:
    """Return columns as one array of numbers, for estimators of scikit-learn."""
    if table.matrix is not None:
        return table.matrix
    columns: Any = table.numbers(list(table.columns))
    if isinstance(columns, SparseRows):
        shape = (table.n_rows, columns.n_columns)
        return csr_array((columns.data, columns.indices, columns.indptr), shape=shape)
    return np.column_stack(columns)


# ---- The stream -----------------------------------------------------------------------------------------------------


def _batches(stream: Rows, target: Labels | None, when: Labels | None, size: int) -> Iterator[_Batch]:
    """Yield the batches of a stream."""
    is_iterable = _is_iterable_of_batches(stream)
    source = None if is_iterable and not isinstance(stream, Iterator) else open_source(stream)
    if source is not None:
        for part in progress_of(source.read_ahead(None), "prequential", len, source.n_rows):
            yield from _split(open_table(part), target, when, size)
    elif is_iterable:
        parts: Any = stream
        for part in parts:
            X, y = part if isinstance(part, tuple) else (part, target)
            yield from _split(X, y, when, None)
    else:
        yield from _split(stream, target, when, size)


def _is_iterable_of_batches(stream: Rows) -> bool:
    """Return whether a stream is an iterable of tables or of pairs, and not a table."""
    if isinstance(stream, list | tuple) and stream:
        first = stream[0]
        return (isinstance(first, tuple) and len(first) == 2 and not np.isscalar(first[0])) or hasattr(first, "columns")
    return isinstance(stream, Iterator) or (isinstance(stream, Iterable) and not hasattr(stream, "__len__"))


def _split(X: Rows, target: Labels | None, when: Labels | None, size: int | None) -> Iterator[_Batch]:
    """Split rows in memory into batches of at most `size` rows, or return all of them as one."""
    if target is None:
        raise LabelError("target is missing; expected the name of a column or the labels.")
    table = open_features(X)
    column = table.column(target) if is_name(target) else only_column(target)
    labels = np.asarray(as_array(column) if not hasattr(column, "to_pylist") else column.to_pylist())
    if len(labels) != table.n_rows:
        raise DataError.lengths_differ({"X": table.n_rows, "target": len(labels)})
    if missing_mask(labels).any():
        raise LabelError("a row of the stream has no label; expected one for every row.\n    Leave such rows out.")
    times: Any = when if when is None or is_name(when) else as_array(when)
    for start in range(0, table.n_rows, size or max(1, table.n_rows)):
        part = slice(start, start + (size or table.n_rows))
        own_target = target if is_name(target) else labels[part]
        own_times = times if when is None or is_name(when) else times[part]
        yield _Batch(table.rows(part), own_target, labels[part], own_times)
