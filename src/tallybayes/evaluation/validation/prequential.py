"""tb.prequential: rows as they come, each batch told first and learned afterwards."""

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
from tallybayes.evaluation.validation.prequential_result import Prequential
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.inputs.features import is_name, only_column, open_features
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.inference.row_predictions import require_labels
from tallybayes.typing import EstimatorLike, Labels, Rows

_LEAST = 1e-15  # a probability below is as good as none


class _Batch(NamedTuple):
    X: Table
    y: Any  # an array, or the name of a column of X
    labels: np.ndarray
    time: Any


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
    """Judge models on a stream as it would have been: every batch is told first, and learned afterwards.

    No row is held out, and none is told by a model that has seen it. This is Dawid's prequential principle, and what
    shows drift: the error of a model that cannot follow rises.

    Parameters
    ----------
    models : a classifier that learns batch by batch, or mapping from names to such
        Models of this package, `Window` and `Decayed` around them, or scikit-learn's with ``partial_fit``. They are not
        changed; one that is fitted goes on from there.
    stream : rows in the order in which they came
        An array, a data frame, a mapping of columns, a list of texts, a file; or an iterable of tables, or of pairs
        (X, y), which are its batches.
    target : array-like of shape (n,), or the name of a column
        Of a `BayesianNetwork`, the name of a node of labels, which is told from all others.
    batch_size : int, default 100
        How many rows are told and learned at a time; batches of an iterable stay as they are.
    time : array-like of shape (n,), or the name of a column, optional
        When the rows came, for those models that go by time.
    classes : list, optional
        All classes that may come: scikit-learn's estimators must know them.
    drift : bool, default False
        Also say how far every column of each batch was from what a model had counted.

    Returns
    -------
    Prequential

    Notes
    -----
    A class that a model does not know yet has the probability 1/(n + K + 1) after n rows of K classes.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> found = tb.prequential(tb.NaiveBayes(tb.Poisson()), X, y)
    >>> bool(found.mean("error") < 0.2)
    True
    """
    named = {str(name): _started(each, name) for name, each in _named(models).items()}
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise DataError.wrong_type("batch", repr(batch_size), "a whole number of at least 1")
    steps = [_told_then_learned(one, named, classes, drift) for one in _batches(stream, target, time, batch_size)]
    if not steps:
        raise DataError("the stream has no rows; expected at least 1.")
    rows, error, loss, unknown, seconds = (np.array(part) for part in zip(*(step[:5] for step in steps), strict=True))
    columns: list[Any] = []
    moved = None
    if drift:
        columns = list(dict.fromkeys(column for step in steps for one in step[5] for column in one))
        found = [[[one.get(column, np.nan) for column in columns] for one in step[5]] for step in steps]
        moved = np.array(found).transpose(1, 0, 2)
    return Prequential(list(named), rows, error.T, loss.T, unknown.T, seconds.T, columns, moved)


def _named(models: Any) -> dict[Any, Any]:
    named = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise DataError("there is no model; expected at least one.")
    return named


def _started(model: Any, name: Any) -> Any:
    """A model to go on with, the user's own unchanged."""
    for method in ("partial_fit", "predict_proba"):
        if isinstance(model, type) or not hasattr(model, method):
            hint = "Write brackets after it." if isinstance(model, type) else "Of scikit-learn, those that have both."
            raise DataError.wrong_type(
                f"model {printable(name)!r}", repr(model)[:60], "a classifier with partial_fit and predict_proba", hint
            )
    if hasattr(getattr(model, "model", model), "predict_transition_proba"):
        raise DataError.wrong_type(
            f"model {printable(name)!r}", type(model).__name__, "a model of rows", "tb.evaluate judges sequences."
        )
    return copy.deepcopy(model) if _knows(model) else clone(model)


def _is_network(model: Any) -> bool:
    """Whether a model is a network, or a stream of one: its target is a column like the others."""
    return isinstance(getattr(model, "model", model), BayesianNetwork)


def _knows(model: Any) -> bool:
    """Whether a model has learned anything."""
    if _is_network(model):
        return hasattr(getattr(model, "model_", model), "tally_")
    return hasattr(model, "classes_") and len(model.classes_) > 0


def _classes(model: Any, one: _Batch) -> list[Any]:
    """The classes that a model knows."""
    if _is_network(model):
        network = getattr(model, "model_", model)
        require_labels(network, [one.y])
        return list(network.levels_[one.y])
    return list(np.asarray(model.classes_).tolist())


def _proba(model: Any, one: _Batch) -> np.ndarray:
    """What a model says of a batch before it is learned."""
    features = _features(one)
    if _is_network(model):
        return np.asarray(model.predict_proba(features, columns=one.y))
    return np.asarray(model.predict_proba(features if _is_ours(model) else _numbers(features)))


def _told_then_learned(one: _Batch, named: dict[str, Any], classes: Any, drift: bool) -> tuple[Any, ...]:
    """What every model says of a batch, and then learns: its rows, errors, losses, unknown ones, seconds, bits."""
    if not is_name(one.y) and any(map(_is_network, named.values())):
        raise LabelError("a network tells the levels of a node.\n    Pass target= as the name of its column.")
    n = len(one.labels)
    found: list[tuple[float, float, int, float]] = []
    bits: list[dict[Any, float]] = []
    for model in named.values():
        start = time.perf_counter()
        error = loss = np.nan
        unknown = 0
        if _knows(model):
            known = {label: k for k, label in enumerate(_classes(model, one))}
            proba = _proba(model, one)
            codes = np.array([known.get(label, -1) for label in one.labels.tolist()])
            unknown = int((codes < 0).sum())
            least = 1 / (getattr(model, "n_rows_", n) + len(known) + 1)
            truth = np.where(codes < 0, least, proba[np.arange(n), codes])
            error = float(np.mean(proba.argmax(axis=1) != codes))
            loss = float(-np.log(np.maximum(truth, _LEAST)).mean())
        if drift:
            bits.append(_bits(getattr(model, "model_", model), one))
        _learn(model, one, classes)
        found.append((error, loss, unknown, time.perf_counter() - start))
    return (n, *zip(*found, strict=True), bits)


def _is_ours(model: Any) -> bool:
    return type(model).__module__.startswith("tallybayes.")


def _features(one: _Batch) -> Table:
    """The columns without the target and the time."""
    table = one.X
    for name in (one.y, one.time):
        if is_name(name):
            table = table.without(name)
    return table


def _numbers(table: Table) -> Any:
    """Columns as one array of numbers, for estimators that know nothing else."""
    if table.matrix is not None:
        return table.matrix
    found: Any = table.numbers(list(table.columns))
    if isinstance(found, SparseRows):
        return csr_array((found.data, found.indices, found.indptr), shape=(table.n_rows, found.n_columns))
    return np.column_stack(found)


def _learn(model: Any, one: _Batch, classes: Any) -> None:
    takes = inspect.signature(model.partial_fit).parameters
    more = {"time": one.time} if one.time is not None and "time" in takes else {}
    if classes is not None and "classes" in takes and not _knows(model):
        more["classes"] = classes
    if not _is_ours(model):
        model.partial_fit(_numbers(_features(one)), one.labels, **more)
    else:
        X = one.X.without(one.time) if isinstance(one.time, str) and not more else one.X
        model.partial_fit(X, **_labels(model, one), **more)


def _labels(model: Any, one: _Batch) -> dict[str, Any]:
    return {} if _is_network(model) else {"y": one.y}


def _bits(model: Any, one: _Batch) -> dict[Any, float]:
    """How far the columns of a batch are from what a model has counted; nothing where it cannot tell."""
    if not _knows(model) or not hasattr(model, "without_rows"):
        return {}
    X = one.X.without(one.time) if isinstance(one.time, str) else one.X
    now = model.without_rows().partial_fit(X, **_labels(model, one))
    return {column.column: column.bits for column in difference(model, now).columns}


# ---- The stream ----------------------------------------------------------------------------------------------------


def _batches(stream: Any, target: Any, when: Any, size: int) -> Iterator[_Batch]:
    """The stream in batches, whatever it is."""
    source = None if _is_of_batches(stream) and not isinstance(stream, Iterator) else open_source(stream)
    if source is not None:
        for part in progress_of(source.read_ahead(None), "prequential", len, source.n_rows):
            yield from _cut(open_table(part), target, when, size)
        return
    if _is_of_batches(stream):
        for part in stream:
            X, y = part if isinstance(part, tuple) else (part, target)
            n = open_features(X).n_rows
            yield from _cut(X, y, when, max(1, n))
        return
    yield from _cut(stream, target, when, size)


def _is_of_batches(stream: Any) -> bool:
    """Whether this is an iterable of tables or of pairs, and no table."""
    if isinstance(stream, Iterator):
        return True
    if isinstance(stream, list | tuple) and stream:
        first = stream[0]
        return (isinstance(first, tuple) and len(first) == 2 and not np.isscalar(first[0])) or hasattr(first, "columns")
    return isinstance(stream, Iterable) and not hasattr(stream, "__len__")


def _cut(X: Any, target: Any, when: Any, size: int) -> Iterator[_Batch]:
    """Rows in memory, cut where batches end."""
    if target is None:
        raise LabelError("prequential needs to know what is to be told.\n    Pass target=, a column's name or labels.")
    table = open_features(X)
    column = table._column(target) if is_name(target) else only_column(target)
    labels = np.asarray(as_array(column) if not hasattr(column, "to_pylist") else column.to_pylist())
    if len(labels) != table.n_rows:
        raise DataError.lengths_differ({"X": table.n_rows, "target": len(labels)})
    if any(is_missing(label) for label in labels.tolist()):
        raise LabelError("a row of the stream has no label; expected one for every row.\n    Leave such rows out.")
    for start in range(0, table.n_rows, size):
        part = slice(start, start + size)
        moment = when if when is None or isinstance(when, str) else as_array(when)[part]
        yield _Batch(table.rows(part), target if is_name(target) else labels[part], labels[part], moment)
