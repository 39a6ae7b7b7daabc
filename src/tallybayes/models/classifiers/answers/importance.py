"""Feature importance: how much the log loss of labelled rows grows where a column is marginalized out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.aligned import aligned
from tallybayes.errors import DataError, printable
from tallybayes.html import html_parts
from tallybayes.models.inputs.outside import answering
from tallybayes.models.inputs.presence import hidden, is_presence
from tallybayes.models.inputs.shape import read_codes
from tallybayes.sources.table import Table
from tallybayes.typing import Labels, Name, Rows, Weights

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plots.picture import Picture

_LEAST = -700.0  # log p(class | row) below is as good as impossible
_SHOWN = 20


class FeatureImportance:
    """The increase of the log loss without each column, the most important column first. It prints as a table.

    Attributes
    ----------
    columns : list of names
    increase, low, high : ndarray of shape (columns,)
        The mean increase of the log loss of a row in nats, with a 95 % interval. A negative one is a decrease.
    log_loss : float
        The log loss with all columns.
    n_rows : int

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows, y = {"x": [1.0, 1.2, 3.0, 3.1] * 5, "z": [1.0, 2.0] * 10}, ["a", "a", "b", "b"] * 5
    >>> tb.NaiveBayes().fit(rows, y).feature_importance(rows, y).to_frame()["column"].tolist()
    ['x', 'z']
    """

    def __init__(self, columns: list[Name], found: np.ndarray, log_loss: float, n_rows: int) -> None:
        order = np.argsort(-found[:, 0], kind="stable")
        self.columns = [columns[place] for place in order]
        self.increase, self.low, self.high = found[order].T
        self.log_loss, self.n_rows = log_loss, n_rows

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame, one line per column."""
        import pandas as pd

        return pd.DataFrame({"column": self.columns, "increase": self.increase, "low": self.low, "high": self.high})

    def plot(self, ax: Axes | None = None, *, most: int = 20) -> Picture:
        """Plot a bar with its 95 % interval for each of the most important columns; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        most : int, default 20
            The number of columns.

        Returns
        -------
        Picture
        """
        from tallybayes.plots.importance import plot_importance

        return plot_importance(self, ax, most)

    def _lines(self) -> list[list[str]]:
        rows = zip(self.columns, self.increase, self.low, self.high, strict=True)
        return [[printable(str(name)), f"{n:.4f}", f"{low:.4f} to {high:.4f}"] for name, n, low, high in rows]

    def _title(self) -> str:
        return f"Feature importance, {self.n_rows:,} rows: increase of the log loss from {self.log_loss:.4f} nats"

    def __repr__(self) -> str:
        lines = aligned([["column", "increase", "95 % interval"], *self._lines()[:_SHOWN]], right=[1])
        more = len(self.columns) - _SHOWN
        return "\n".join([self._title(), "", *lines, *([f"  … {more} more"] if more > 0 else [])])

    def _repr_html_(self) -> str:
        return html_parts((self._title(), ["column", "increase", "95 % interval"], self._lines()))


def feature_importance(
    model: Any, X: Rows, y: Labels, *, columns: Iterable[Name] | None = None, sample_weight: Weights = None
) -> FeatureImportance:
    """Return the increase of the log loss of labelled rows without each column.

    A column is removed by marginalizing it out, as a missing value is: exact under the model, without refitting and
    without randomness. Permutation importance (Breiman 2001; scikit-learn's ``permutation_importance``) replaces the
    cells of a column by those of other rows instead, which makes rows that cannot occur and differs from draw to draw.
    In both, a column whose information other columns repeat has a low importance. Use rows that the model was not
    fitted on: training rows overstate the importance of columns that the model has overfitted.

    Parameters
    ----------
    X : as for `fit`
    y : array-like of shape (n,), or the name of a column of X
    columns : list of names, optional
        The columns to remove, one at a time; all columns that the model reads if left out.
    sample_weight : array-like of shape (n,), or the name of a column of X, optional

    Returns
    -------
    FeatureImportance
        It prints as a table; see ``to_frame()`` and ``plot()``.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = tb.GaussianDiscriminant().fit(X[::2], y[::2]).feature_importance(X[1::2], y[1::2])
    >>> found.columns[0]
    'petal length (cm)'
    """
    check_is_fitted(model)
    codes, rows, weights = read_codes(model, X, y, sample_weight)
    known = set(model._read_names)
    names = [name for name in dict.fromkeys(model._read_names) if not is_presence(name, known)]
    if columns is not None:
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise DataError.unknown_column(unknown, names)
        names = list(columns)
    for name in names:
        if rows.is_block(name) or rows.kind(name) == "text":
            kind, hint = "text or a block of columns", "Name other columns: columns=[...]."
            raise DataError.wrong_type(f"column {name!r}", kind, "a single column of numbers or labels", hint)
    share = np.full(rows.n_rows, 1.0 / rows.n_rows) if weights is None else weights / weights.sum()
    base, lost = _losses(model, rows, codes, names)
    mean = lost @ share
    error = 1.96 * np.sqrt((lost - mean[:, None]) ** 2 @ share**2)
    found = np.stack([mean, mean - error, mean + error], axis=1)
    return FeatureImportance(names, found, float(share @ base), rows.n_rows)


@answering
def _losses(model: Any, rows: Table, codes: np.ndarray, names: list[Name]) -> tuple[np.ndarray, np.ndarray]:
    """The log loss of every row, and its increase without each column, (columns, rows)."""

    def loss(log_proba: np.ndarray) -> np.ndarray:
        return -np.maximum(log_proba[np.arange(len(codes)), codes], _LEAST)

    base = loss(model.predict_log_proba(rows))
    lost = [loss(model._log_proba_without(rows, name)) - base for name in names]
    return base, np.array(lost).reshape(len(names), len(codes))


def log_proba_without(model: Any, table: Table, name: Name) -> np.ndarray:
    """log p(class | row) with a column marginalized out."""
    return np.asarray(model.predict_log_proba(hidden(table, [name])))
