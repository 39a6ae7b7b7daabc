"""tb.learning_curve: how the error and the log-loss of several models fall as rows come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from tallybayes.errors import DataError, printable
from tallybayes.html import html_table
from tallybayes.models.inputs.features import check_target, only_column
from tallybayes.models.inputs.folds import random_folds
from tallybayes.progress import progress
from tallybayes.sources.opening import open_source

if TYPE_CHECKING:
    from tallybayes.plots.picture import Picture

_LEAST = 1e-15  # a probability below is as good as none: the log-loss of models that rule classes out stays finite


class LearningCurve:
    """Error and log-loss of models by the number of rows that they learned from; made by `learning_curve`.

    Attributes
    ----------
    names : list of str
        The models.
    sizes : ndarray of int of shape (sizes,)
    error, log_loss : ndarray of shape (models, sizes, repeats)
        On rows that were held out: the share that is predicted wrong, and the mean of −log p(true class) in nats.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> curve = tb.learning_curve({"naive": tb.NaiveBayes(), "tied": tb.GaussianDiscriminant(covariance="tied")}, X, y)
    >>> curve.to_frame().columns.tolist()
    ['model', 'rows', 'error', 'error_se', 'log_loss', 'log_loss_se']
    """

    def __init__(self, names: Sequence[str], sizes: np.ndarray, error: np.ndarray, log_loss: np.ndarray) -> None:
        self.names, self.sizes, self.error, self.log_loss = list(names), sizes, error, log_loss

    def crossings(self, what: str = "error") -> list[tuple[int, str]]:
        """From how many rows on which model is ahead, on the mean: pairs of a size and a name.

        Parameters
        ----------
        what : {"error", "log_loss"}
        """
        if what not in ("error", "log_loss"):
            raise DataError(f"what is {what!r}; expected 'error' or 'log_loss'.")
        mean = getattr(self, what).mean(axis=-1)
        found = [(0, int(mean[:, 0].argmin()))]
        for k, column in enumerate(mean.T):
            if column.min() < column[found[-1][1]]:  # at a tie nobody is overtaken
                found.append((k, int(column.argmin())))
        return [(int(self.sizes[k]), self.names[m]) for k, m in found]

    def to_frame(self) -> Any:
        """A line for every model and size, as a pandas data frame: means, and their standard errors."""
        import pandas as pd

        lines = [
            (name, int(size), *_mean(self.error[m, k]), *_mean(self.log_loss[m, k]))
            for m, name in enumerate(self.names)
            for k, size in enumerate(self.sizes)
        ]
        return pd.DataFrame(lines, columns=["model", "rows", "error", "error_se", "log_loss", "log_loss_se"])

    def plot(self, ax: Any = None) -> Picture:
        """Both, against the number of rows, with their standard errors; needs matplotlib.

        Parameters
        ----------
        ax : two matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plots.learning_curve import plot_learning_curve

        return plot_learning_curve(self, ax)

    def _lines(self) -> tuple[list[str], list[list[str]]]:
        head = ["rows", *(f"{name}, {what}" for name in map(printable, self.names) for what in ("error", "log-loss"))]
        rows = [
            [str(size), *(f"{part[m, k].mean():.4f}" for m in range(len(self.names)) for part in self._parts)]
            for k, size in enumerate(self.sizes)
        ]
        return head, rows

    @property
    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        return self.error, self.log_loss

    def _said(self) -> str:
        found = self.crossings()
        ahead = ", ".join(f"{printable(name)} from {size} rows on" for size, name in found)
        return f"Means of {self.error.shape[-1]} splits; fewest errors: {ahead}"

    def __repr__(self) -> str:
        head, rows = self._lines()
        widths = [max(len(line[k]) for line in [head, *rows]) for k in range(len(head))]
        lines = [
            "  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(line, widths, strict=True)) for line in [head, *rows]
        ]
        return "\n".join([self._said(), *lines])

    def _repr_html_(self) -> str:
        return html_table(self._said(), *self._lines())


def learning_curve(
    models: Any, X: Any, y: Any, sizes: Sequence[int] | None = None, *, repeats: int = 5, random_state: Any = 0
) -> LearningCurve:
    """How models do after few rows and after many: generative ones are often ahead first, and overtaken later.

    A fifth of the rows is held out; of the others every model learns from the first few, then from more, and so on.
    That is done for several splits, the same for all models.

    Parameters
    ----------
    models : classifier, or mapping from names to classifiers
        Of this package or of scikit-learn; with ``predict_proba``.
    X : array, data frame or mapping of columns
    y : array-like of shape (n,), or the name of a column of X
    sizes : sequence of int, optional
        Numbers of rows to learn from; by default each twice the one before, up to all.
    repeats : int, default 5
        At most 5: every row is held out once.
    random_state : int, Generator or None

    Returns
    -------
    LearningCurve

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tb.learning_curve(tb.GaussianDiscriminant(covariance="tied"), X, y, [15, 120]).error.shape
    (1, 2, 5)
    """
    named = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise DataError("there is no model; expected at least one.")
    if isinstance(repeats, bool) or not isinstance(repeats, int) or not 1 <= repeats <= 5:
        raise DataError(f"repeats is {repeats!r}; expected a whole number from 1 to 5.")
    X, labels = _opened(X, y)
    classes, codes = np.unique(labels, return_inverse=True)
    fold = random_folds(codes, 5, random_state)
    most = len(codes) - int(np.bincount(fold).max())
    wanted = _sizes(sizes, most, len(classes))
    shape = (len(named), len(wanted), repeats)
    error, loss = np.empty(shape), np.empty(shape)
    rng = np.random.default_rng(random_state)
    places = [(split, k) for split in range(repeats) for k in range(len(wanted))]
    orders = [_spread(np.flatnonzero(fold != split), codes, rng) for split in range(repeats)]
    for split, k in progress(places, "learning curves"):
        test, train = np.flatnonzero(fold == split), orders[split][: wanted[k]]
        held_out = _safe_indexing(X, test)
        for m, model in enumerate(named.values()):
            fitted = clone(model).fit(_safe_indexing(X, train), labels[train])
            proba = np.zeros((len(test), len(classes)))
            proba[:, np.searchsorted(classes, fitted.classes_)] = fitted.predict_proba(held_out)
            error[m, k, split] = np.mean(proba.argmax(axis=1) != codes[test])
            truth = proba[np.arange(len(test)), codes[test]]
            loss[m, k, split] = -np.log(np.maximum(truth, _LEAST)).mean()
    return LearningCurve([str(name) for name in named], wanted, error, loss)


def _opened(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Rows that can be taken by number, and their labels as an array."""
    source = open_source(X)
    if source is not None:
        X = source.read("a learning curve").to_pandas()
    if isinstance(X, Mapping):
        import pandas as pd

        X = pd.DataFrame(dict(X))
    if isinstance(y, str):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        if y not in frame.columns:
            raise DataError.unknown_column([y], frame.columns)
        X, y = frame.drop(y).to_native(), frame[y].to_numpy()
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    labels = np.asarray(check_target(only_column(y), n_rows))
    return X, labels.astype(str) if labels.dtype == object else labels


def _sizes(sizes: Sequence[int] | None, most: int, n_classes: int) -> np.ndarray:
    if sizes is None:
        found, size = [], most
        while size >= max(10, 2 * n_classes):
            found.append(size)
            size //= 2
        return np.array(found[::-1] or [most], dtype=np.intp)
    wanted = np.array(sorted({int(size) for size in sizes}), dtype=np.intp)
    if not len(wanted) or wanted[0] < 1 or wanted[-1] > most:
        raise DataError(
            f"sizes are {list(sizes)!r:.60}; expected whole numbers from 1 to {most}, four fifths of the rows."
        )
    return wanted


def _spread(rows: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows in an order in which every class begins early: one of each, then all others at random."""
    rows = rng.permutation(rows)
    first = np.unique(codes[rows], return_index=True)[1]
    rest = np.setdiff1d(np.arange(len(rows)), first)
    return np.concatenate([rows[np.sort(first)], rows[rest]])


def _mean(values: np.ndarray) -> tuple[float, float]:
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(values.mean()), error
