"""FeatureImportance: the increase of the log loss of labeled rows without each column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from tallybayes.errors import DataError, printable
from tallybayes.results.result import FrameData, Result, ResultTable
from tallybayes.typing import Name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_SHOWN = 20


class FeatureImportance(Result):
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
        self.log_loss = log_loss
        self.n_rows = n_rows

    @classmethod
    def of_losses(
        cls, columns: list[Name], base: np.ndarray, lost: list[np.ndarray], weight: np.ndarray | None
    ) -> Self:
        """Return the result from row losses, their increase without each column, and the weights of rows."""
        share = np.full(len(base), 1.0 / len(base)) if weight is None else weight / weight.sum()
        rows = np.array(lost).reshape(len(columns), len(base))
        mean = rows @ share
        error = 1.96 * np.sqrt((rows - mean[:, None]) ** 2 @ share**2)
        return cls(columns, np.stack([mean, mean - error, mean + error], axis=1), float(share @ base), len(base))

    def plot(self, ax: Axes | None = None, *, most: int = 20) -> Plot:
        """Plot the increase and its 95 % interval for the most important columns; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        most : int, default 20
            The number of columns.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.importance import plot_importance

        return plot_importance(self, ax, most)

    def _frame_data(self) -> FrameData:
        return {"column": self.columns, "increase": self.increase, "low": self.low, "high": self.high}

    def _content(self) -> list[str | ResultTable]:
        parts = zip(self.columns, self.increase, self.low, self.high, strict=True)
        rows = [[printable(str(name)), f"{n:.4f}", f"{low:.4f} to {high:.4f}"] for name, n, low, high in parts]
        title = f"Feature importance, {self.n_rows:,} rows: increase of the log loss from {self.log_loss:.4f} nats"
        return [ResultTable(rows, ["column", "increase", "95 % interval"], title, "lrl", max_rows=_SHOWN)]


def chosen_columns(columns: Iterable[Name] | None, known: Sequence[Name]) -> list[Name]:
    """Return the requested columns, or all known ones."""
    names = list(known if columns is None else columns)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DataError.unknown_column(unknown, known)
    return names
