"""tb.prequential: test-then-train evaluation on a stream, batch by batch."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from tallybayes._utils.progress import progress_of
from tallybayes.data.array_input import as_array
from tallybayes.data.encoding import is_missing
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, LabelError, printable
from tallybayes.evaluation.comparison.model_difference import difference
from tallybayes.evaluation.named_columns import names_in, without_columns
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.inputs.features import is_name, only_column, open_features
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.inference.row_predictions import require_discrete
from tallybayes.results.model_curves import Prequential
from tallybayes.typing import EstimatorLike, Labels, Rows

_LEAST = 1e-15  # smaller probabilities are raised to this: the log loss stays finite


class _Batch(NamedTuple):
    """A batch of rows with labels; the target and the time are arrays or names of columns of X."""

    X: Table
    target: Any
    labels: np.ndarray
    time: Any

    def features(self) -> Table:
        """Return the columns without the target and the time."""
        return without_columns(self.X, names_in((self.target, self.time)))

    def without_time(self) -> Table:
        """Return the columns without the time."""
        return self.X.without(self.time) if isinstance(self.time, str) else self.X


class _BatchMetrics(NamedTuple):
    """The metrics of one model on one batch."""

    error: float
    log_loss: float
    unknown: int
    seconds: float
    drift: dict[Any, float]


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
    named: dict[Any, Any] = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise DataError("models is empty; expected at least one model.")
    copies = {str(name): _copy(model, name) for name, model in named.items()}
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise DataError.wrong_type("batch_size", repr(batch_size), "a whole number of at least 1")
    n_rows: list[int] = []
    metrics: list[list[_BatchMetrics]] = []
    for batch in _batches(stream, target, time, batch_size):
        if not is_name(batch.target) and any(map(_is_network, copies.values())):
            raise LabelError("target is an array; expected the name of a node's column, which a network predicts.")
        metrics.append([_test_then_train(model, batch, classes, drift) for model in copies.values()])
        n_rows.append(len(batch.labels))
    if not metrics:
        raise DataError("the stream has no rows; expected at least 1.")
    error, log_loss, unknown, seconds = (
        np.array([[model[field] for model in batch] for batch in metrics]).T for field in range(4)
    )
    columns: list[Any] = []
    bits = None
    if drift:
        columns = list(dict.fromkeys(column for batch in metrics for model in batch for column in model.drift))
        bits = np.array([[[one.drift.get(c, np.nan) for c in columns] for one in batch] for batch in metrics])
        bits = bits.transpose(1, 0, 2)
    return Prequential(list(copies), np.array(n_rows), error, log_loss, unknown, seconds, columns, bits)


# ---- Models ---------------------------------------------------------------------------------------------------------


def _copy(model: Any, name: object) -> Any:
    """Return a copy of a model to continue from; raise DataError if it cannot be fitted in batches."""
    for method in ("partial_fit", "predict_proba"):
        if isinstance(model, type) or not hasattr(model, method):
            hint = "Pass an instance." if isinstance(model, type) else ""
            raise DataError.wrong_type(
                f"model {printable(name)!r}", repr(model)[:60], "a classifier with partial_fit and predict_proba", hint
            )
    if hasattr(getattr(model, "model", model), "predict_transition_proba"):
        raise DataError.wrong_type(
            f"model {printable(name)!r}", type(model).__name__, "a model of rows", "Use tb.evaluate for sequences."
        )
    return copy.deepcopy(model) if _is_fitted(model) else clone(model)


def _is_network(model: Any) -> bool:
    """Return whether a model is a network, or a stream of one: its target is one of the columns."""
    return isinstance(getattr(model, "model", model), BayesianNetwork)


def _is_of_package(model: object) -> bool:
    return type(model).__module__.startswith("tallybayes.")


def _is_fitted(model: Any) -> bool:
    """Return whether a model has counted rows."""
    if _is_network(model):
        return hasattr(getattr(model, "model_", model), "tally_")
    return hasattr(model, "classes_") and len(model.classes_) > 0


def _classes(model: Any, batch: _Batch) -> list[Any]:
    """Return the classes that a model has."""
    if not _is_network(model):
        return list(np.asarray(model.classes_).tolist())
    network = getattr(model, "model_", model)
    require_discrete(network, [batch.target])
    return list(network.levels_[batch.target])


def _predict_proba(model: Any, batch: _Batch) -> np.ndarray:
    """Return the class probabilities of a batch before it is fitted."""
    features = batch.features()
    if _is_network(model):
        return np.asarray(model.predict_proba(features, columns=batch.target))
    return np.asarray(model.predict_proba(features if _is_of_package(model) else _as_matrix(features)))


def _test_then_train(model: Any, batch: _Batch, classes: Iterable[Hashable] | None, drift: bool) -> _BatchMetrics:
    """Predict a batch, fit it, and return the metrics."""
    n = len(batch.labels)
    start = time.perf_counter()
    error = loss = np.nan
    unknown = 0
    if _is_fitted(model):
        code_of = {label: k for k, label in enumerate(_classes(model, batch))}
        proba = _predict_proba(model, batch)
        codes = np.array([code_of.get(label, -1) for label in batch.labels.tolist()])
        unknown = int((codes < 0).sum())
        unseen = 1 / (getattr(model, "n_rows_", n) + len(code_of) + 1)
        truth = np.where(codes < 0, unseen, proba[np.arange(n), codes])
        error = float(np.mean(proba.argmax(axis=1) != codes))
        loss = float(-np.log(np.maximum(truth, _LEAST)).mean())
    bits = _drift(getattr(model, "model_", model), batch) if drift else {}
    _partial_fit(model, batch, classes)
    return _BatchMetrics(error, loss, unknown, time.perf_counter() - start, bits)


def _as_matrix(table: Table) -> Any:
    """Return columns as one array of numbers, for estimators of scikit-learn."""
    if table.matrix is not None:
        return table.matrix
    columns: Any = table.numbers(list(table.columns))
    if isinstance(columns, SparseRows):
        shape = (table.n_rows, columns.n_columns)
        return csr_array((columns.data, columns.indices, columns.indptr), shape=shape)
    return np.column_stack(columns)


def _partial_fit(model: Any, batch: _Batch, classes: Iterable[Hashable] | None) -> None:
    """Fit a batch, with the times and the classes if the model accepts them."""
    accepted = inspect.signature(model.partial_fit).parameters
    options = {"time": batch.time} if batch.time is not None and "time" in accepted else {}
    if classes is not None and "classes" in accepted and not _is_fitted(model):
        options["classes"] = classes
    if not _is_of_package(model):
        model.partial_fit(_as_matrix(batch.features()), batch.labels, **options)
    else:
        model.partial_fit(batch.X if options else batch.without_time(), **_target_argument(model, batch), **options)


def _target_argument(model: Any, batch: _Batch) -> dict[str, Any]:
    """Return the argument y of ``partial_fit``; a network has none."""
    return {} if _is_network(model) else {"y": batch.target}


def _drift(model: Any, batch: _Batch) -> dict[Any, float]:
    """Return the divergence of the columns of a batch from the counted rows in bits; empty if it is not defined."""
    if not _is_fitted(model) or not hasattr(model, "without_rows"):
        return {}
    of_batch = model.without_rows().partial_fit(batch.without_time(), **_target_argument(model, batch))
    return {column.column: column.bits for column in difference(model, of_batch).columns}


# ---- The stream -----------------------------------------------------------------------------------------------------


def _batches(stream: Any, target: Any, when: Any, size: int) -> Iterator[_Batch]:
    """Yield the batches of a stream."""
    is_iterable = _is_iterable_of_batches(stream)
    source = None if is_iterable and not isinstance(stream, Iterator) else open_source(stream)
    if source is not None:
        for part in progress_of(source.read_ahead(None), "prequential", len, source.n_rows):
            yield from _split(open_table(part), target, when, size)
    elif is_iterable:
        for part in stream:
            X, y = part if isinstance(part, tuple) else (part, target)
            yield from _split(X, y, when, max(1, open_features(X).n_rows))
    else:
        yield from _split(stream, target, when, size)


def _is_iterable_of_batches(stream: Any) -> bool:
    """Return whether a stream is an iterable of tables or of pairs, and not a table."""
    if isinstance(stream, Iterator):
        return True
    if isinstance(stream, list | tuple) and stream:
        first = stream[0]
        return (isinstance(first, tuple) and len(first) == 2 and not np.isscalar(first[0])) or hasattr(first, "columns")
    return isinstance(stream, Iterable) and not hasattr(stream, "__len__")


def _split(X: Rows, target: Any, when: Any, size: int) -> Iterator[_Batch]:
    """Split rows in memory into batches of at most `size` rows."""
    if target is None:
        raise LabelError("target is missing; expected the name of a column or the labels.")
    table = open_features(X)
    column = table.column(target) if is_name(target) else only_column(target)
    labels = np.asarray(as_array(column) if not hasattr(column, "to_pylist") else column.to_pylist())
    if len(labels) != table.n_rows:
        raise DataError.lengths_differ({"X": table.n_rows, "target": len(labels)})
    if any(is_missing(label) for label in labels.tolist()):
        raise LabelError("a row of the stream has no label; expected one for every row.\n    Leave such rows out.")
    for start in range(0, table.n_rows, size):
        part = slice(start, start + size)
        moment = when if when is None or isinstance(when, str) else as_array(when)[part]
        yield _Batch(table.rows(part), target if is_name(target) else labels[part], labels[part], moment)
