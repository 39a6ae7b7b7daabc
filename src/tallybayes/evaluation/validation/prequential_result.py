"""How models did on a stream, batch by batch: curves, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_table
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

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
    >>> tb.prequential(models, X, y, batch_size=50)
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

    def decayed_mean(self, what: str = "error", rows: float | None = None) -> np.ndarray:
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

    def to_frame(self) -> pd.DataFrame:
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

    def plot(self, what: str | Sequence[str] | None = None, ax: Axes | None = None) -> Plot:
        """Curves over the rows that came: every batch as a point, faded means as lines; needs matplotlib.

        Parameters
        ----------
        what : "error", "log_loss", or a list of both, which is the default
        ax : as many matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.prequential import plot_prequential

        wanted = list(MEASURES) if what is None else [what] if isinstance(what, str) else list(what)
        return plot_prequential(self, [self._measure(each) for each in wanted], ax)

    def plot_drift(self, model: str | None = None, ax: Axes | None = None) -> Plot:
        """How far every column of every batch was from what a model had counted, in bits; needs matplotlib.

        Gray is what cannot be told: nothing was counted before, or all numbers of a column were the same in a batch.

        Parameters
        ----------
        model : str, optional
            Its name; the first by default.
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.prequential import plot_drift

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
        return "\n".join([self._said(), *text_table([head, *rows], right=(3, 5))])

    def _repr_html_(self) -> str:
        return html_table(self._said(), *self._lines())
