"""tb.prequential: rows as they come, each batch told first and learned afterwards."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from tallybayes.errors import DataError, LabelError, printable
from tallybayes.families.block import Sparse
from tallybayes.html import html_table
from tallybayes.insight.difference import difference
from tallybayes.models.inputs.features import only_column, open_features
from tallybayes.progress import progress_of
from tallybayes.sources.arrays import as_array
from tallybayes.sources.encode import is_missing
from tallybayes.sources.opening import open_source
from tallybayes.sources.table import Table, open_table
from tallybayes.typing import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plots.picture import Picture

_LEAST = 1e-15  # a probability below is as good as none
_LAST = 0.1  # the share of the rows that the end of a stream is
MEASURES = {"error": "error", "log_loss": "log-loss in nats"}


class Prequential:
    """How models did on a stream, each batch before it was learned; made by `prequential`.

    Attributes
    ----------
    names : list of str
        The models.
    rows : ndarray of int of shape (batches,)
        How many rows each batch had.
    error, log_loss : ndarray of shape (models, batches)
        The share of the rows that were told wrong, and the mean of −log p(true class) in nats; NaN of the first batch
        of a model that knew nothing.
    unknown : ndarray of int of shape (models, batches)
        How many rows were of a class that the model did not know yet.
    seconds : ndarray of shape (models, batches)
        What it took to tell and to learn.
    columns : list
        Those whose drift was looked at.
    drift : ndarray of shape (models, batches, columns), or None
        How far every column of a batch was from what the model had counted, in bits a cell.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=2000)
    >>> moved = np.where(np.arange(2000) < 1000, y, 1 - y)  # the classes change places
    >>> X = (rng.normal(size=2000) + 3 * moved)[:, None]
    >>> models = {"all rows": tb.NaiveBayes(), "the last 200": tb.Window(tb.NaiveBayes(), rows=200)}
    >>> tb.prequential(models, X, y, batch=50)
    2000 rows in 40 batches, each told before it was learned
      model         error   log-loss  last tenth: error  log-loss  seconds
      all rows      0.4903  0.7915               0.7650  0.7486       ...
      the last 200  0.1185  0.3260               0.0550  0.1507       ...
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: np.ndarray,
        error: np.ndarray,
        log_loss: np.ndarray,
        unknown: np.ndarray,
        seconds: np.ndarray,
        columns: Sequence[Any] = (),
        drift: np.ndarray | None = None,
    ) -> None:
        self.names, self.rows, self.error, self.log_loss = list(names), rows, error, log_loss
        self.unknown, self.seconds, self.columns, self.drift = unknown, seconds, list(columns), drift

    def mean(self, what: str = "error", last: float = 1.0) -> np.ndarray:
        """The mean over the rows that were told, of every model.

        Parameters
        ----------
        what : {"error", "log_loss"}
        last : float, default 1
            Of the end of the stream alone: this share of its rows.

        Returns
        -------
        ndarray of shape (models,)
        """
        values = getattr(self, self._measure(what))
        ends = np.cumsum(self.rows)
        told = ~np.isnan(values) & (ends > (1 - last) * ends[-1])
        weight = np.where(told, self.rows, 0)
        with np.errstate(invalid="ignore"):
            found: np.ndarray = (np.where(told, values, 0.0) * weight).sum(axis=1) / weight.sum(axis=1)
        return found

    def faded(self, what: str = "error", rows: float | None = None) -> np.ndarray:
        """The curve of every model: a mean in which a row counts half as much after so many rows.

        Parameters
        ----------
        what : {"error", "log_loss"}
        rows : float, optional
            The half-life; by default a twentieth of the stream.

        Returns
        -------
        ndarray of shape (models, batches)
        """
        values = getattr(self, self._measure(what))
        half = self.rows.sum() / 20 if rows is None else rows
        total, weight = np.zeros(len(self.names)), np.zeros(len(self.names))
        curve = np.full(values.shape, np.nan)
        for k, n in enumerate(self.rows):
            told = ~np.isnan(values[:, k])
            fade = 0.5 ** (n / half)
            total = fade * total + np.where(told, n * np.nan_to_num(values[:, k]), 0)
            weight = fade * weight + np.where(told, n, 0)
            curve[weight > 0, k] = (total / np.where(weight > 0, weight, 1))[weight > 0]
        return curve

    def _measure(self, what: str) -> str:
        if what not in MEASURES:
            raise DataError.wrong_type("what", repr(what), " or ".join(map(repr, MEASURES)))
        return what

    def to_frame(self) -> Any:
        """A line for every model and batch, as a pandas data frame."""
        import pandas as pd

        ends = np.cumsum(self.rows)
        lines = []
        for m, name in enumerate(self.names):
            for k, end in enumerate(ends):
                line: dict[str, Any] = {"model": name, "rows": int(end)}
                line |= {what: float(getattr(self, what)[m, k]) for what in MEASURES}
                line |= {"unknown": int(self.unknown[m, k]), "seconds": float(self.seconds[m, k])}
                if self.drift is not None:
                    line |= {f"bits of {column}": self.drift[m, k, c] for c, column in enumerate(self.columns)}
                lines.append(line)
        return pd.DataFrame(lines)

    def plot(self, what: str | Sequence[str] | None = None, ax: Axes | None = None) -> Picture:
        """Curves over the rows that came: every batch as a point, faded means as lines; needs matplotlib.

        Parameters
        ----------
        what : "error", "log_loss", or a list of both, which is the default
        ax : as many matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plots.prequential import plot_prequential

        wanted = list(MEASURES) if what is None else [what] if isinstance(what, str) else list(what)
        return plot_prequential(self, [self._measure(each) for each in wanted], ax)

    def plot_drift(self, model: str | None = None, ax: Axes | None = None) -> Picture:
        """How far every column of every batch was from what a model had counted, in bits; needs matplotlib.

        Grey is what cannot be told: nothing was counted before, or all numbers of a column were the same in a batch.

        Parameters
        ----------
        model : str, optional
            Its name; the first by default.
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plots.prequential import plot_drift

        if self.drift is None:
            raise DataError("drift was not looked at.\n    Ask for it: tb.prequential(..., drift=True).")
        name = self.names[0] if model is None else model
        if name not in self.names:
            raise DataError.wrong_type("model", repr(model), " or ".join(map(repr, self.names)))
        return plot_drift(self, self.names.index(name), ax)

    def _lines(self) -> tuple[list[str], list[list[str]]]:
        head = ["model", "error", "log-loss", "last tenth: error", "log-loss", "seconds"]
        lines = []
        for m, name in enumerate(self.names):
            cells = [f"{self.mean(what, last)[m]:.4f}" for last in (1.0, _LAST) for what in MEASURES]
            lines.append([printable(name), *cells, f"{self.seconds[m].sum():.2f}"])
        return head, lines

    def _said(self) -> str:
        said = f"{int(self.rows.sum())} rows in {len(self.rows)} batches, each told before it was learned"
        unknown = self.unknown.max(axis=0).sum()
        return said + (f"; {unknown} rows of classes that were not known yet" if unknown else "")

    def __repr__(self) -> str:
        head, rows = self._lines()
        widths = [max(len(line[k]) for line in [head, *rows]) for k in range(len(head))]
        lines = ("  ".join(f"{cell:<{width}}" if k < 3 or k == 4 else f"{cell:>{width}}"
                           for k, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip()
                 for line in [head, *rows])  # fmt: skip
        return "\n".join([self._said(), *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        return html_table(self._said(), *self._lines())


class _Batch(NamedTuple):
    X: Table
    y: Any  # an array, or the name of a column of X
    labels: np.ndarray
    time: Any


def prequential(
    models: Any,
    stream: Any,
    target: Labels | None = None,
    *,
    batch: int = 100,
    time: Any = None,
    classes: Any = None,
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
    batch : int, default 100
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
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise DataError.wrong_type("batch", repr(batch), "a whole number of at least 1")
    steps = [_told_then_learned(one, named, classes, drift) for one in _batches(stream, target, time, batch)]
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
    if hasattr(getattr(model, "model", model), "predict_pairs"):
        raise DataError.wrong_type(
            f"model {printable(name)!r}", type(model).__name__, "a model of rows", "tb.evaluate judges sequences."
        )
    return copy.deepcopy(model) if _knows(model) else clone(model)


def _knows(model: Any) -> bool:
    """Whether a model has learned anything."""
    return hasattr(model, "classes_") and len(model.classes_) > 0


def _told_then_learned(one: _Batch, named: dict[str, Any], classes: Any, drift: bool) -> tuple[Any, ...]:
    """What every model says of a batch, and then learns: its rows, errors, losses, unknown ones, seconds, bits."""
    n = len(one.labels)
    found: list[tuple[float, float, int, float]] = []
    bits: list[dict[Any, float]] = []
    for model in named.values():
        start = time.perf_counter()
        error = loss = np.nan
        unknown = 0
        if _knows(model):
            known = {label: k for k, label in enumerate(np.asarray(model.classes_).tolist())}
            features = _features(one)
            proba = np.asarray(model.predict_proba(features if _is_ours(model) else _numbers(features)))
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
        if isinstance(name, str):
            table = table.without(name)
    return table


def _numbers(table: Table) -> Any:
    """Columns as one array of numbers, for estimators that know nothing else."""
    if table.matrix is not None:
        return table.matrix
    found: Any = table.numbers(list(table.columns))
    if isinstance(found, Sparse):
        return csr_array((found.data, found.indices, found.indptr), shape=(table.n_rows, found.n_columns))
    return np.column_stack(found)


def _learn(model: Any, one: _Batch, classes: Any) -> None:
    takes = inspect.signature(model.partial_fit).parameters
    more = {"time": one.time} if one.time is not None and "time" in takes else {}
    if classes is not None and "classes" in takes and not _knows(model):
        more["classes"] = classes
    if not _is_ours(model):
        model.partial_fit(_numbers(_features(one)), one.labels, **more)
    elif isinstance(one.time, str) and not more:
        model.partial_fit(one.X.without(one.time), one.y, **more)
    else:
        model.partial_fit(one.X, one.y, **more)


def _bits(model: Any, one: _Batch) -> dict[Any, float]:
    """How far the columns of a batch are from what a model has counted; nothing where it cannot tell."""
    if not _knows(model) or not hasattr(model, "without_rows"):
        return {}
    X = one.X.without(one.time) if isinstance(one.time, str) else one.X
    now = model.without_rows().partial_fit(X, one.y)
    return {column.column: column.bits for column in difference(model, now).columns}


# ---- The stream ----------------------------------------------------------------------------------------------------


def _batches(stream: Any, target: Any, when: Any, size: int) -> Iterator[_Batch]:
    """The stream in batches, whatever it is."""
    source = open_source(stream)
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
    column = table._column(target) if isinstance(target, str) else only_column(target)
    labels = np.asarray(as_array(column) if not hasattr(column, "to_pylist") else column.to_pylist())
    if len(labels) != table.n_rows:
        raise DataError.lengths_differ({"X": table.n_rows, "target": len(labels)})
    if any(is_missing(label) for label in labels.tolist()):
        raise LabelError("a row of the stream has no label; expected one for every row.\n    Leave such rows out.")
    for start in range(0, table.n_rows, size):
        part = slice(start, start + size)
        moment = when if when is None or isinstance(when, str) else as_array(when)[part]
        yield _Batch(table.rows(part), target if isinstance(target, str) else labels[part], labels[part], moment)
