"""Prequential: metrics of models on a stream, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError, printable
from tallybayes.results.result import FrameData, Result, ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_LAST = 0.1  # the last tenth of the rows
MEASURES = {"error": "error", "log_loss": "log-loss in nats"}


class Prequential(Result):
    """Metrics of models on a stream, of each batch before it was fitted. Returned by `prequential`.

    Attributes
    ----------
    names : list of str
        The models.
    rows : ndarray of int of shape (batches,)
        The number of rows of each batch.
    error, log_loss : ndarray of shape (models, batches)
        The proportion of wrong predictions, and the mean of −log p(true class) in nats; NaN for the first batch of an
        unfitted model.
    unknown : ndarray of int of shape (models, batches)
        The number of rows of classes that the model did not have yet.
    seconds : ndarray of shape (models, batches)
        The time to predict and to fit the batch.
    columns : list
        The columns whose drift was computed.
    drift : ndarray of shape (models, batches, columns), or None
        The divergence of every column of a batch from the rows that the model had counted, in bits per cell.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=2000)
    >>> moved = np.where(np.arange(2000) < 1000, y, 1 - y)  # the classes change places
    >>> X = (rng.normal(size=2000) + 3 * moved)[:, None]
    >>> models = {"all rows": tb.NaiveBayes(), "the last 200": tb.Window(tb.NaiveBayes(), rows=200)}
    >>> tb.prequential(models, X, y, batch_size=50)
    2000 rows in 40 batches, each predicted before it was fitted
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
        self.names = list(names)
        self.rows = rows
        self.error = error
        self.log_loss = log_loss
        self.unknown = unknown
        self.seconds = seconds
        self.columns = list(columns)
        self.drift = drift

    def mean(self, what: str = "error", last: float = 1.0) -> np.ndarray:
        """Return the mean of a metric over the predicted rows, for every model.

        Parameters
        ----------
        what : {"error", "log_loss"}
        last : float, default 1
            The proportion of the rows, at the end of the stream, that are averaged.

        Returns
        -------
        ndarray of shape (models,)
        """
        values = getattr(self, _check_measure(what))
        ends = np.cumsum(self.rows)
        included = ~np.isnan(values) & (ends > (1 - last) * ends[-1])
        weight = np.where(included, self.rows, 0)
        with np.errstate(invalid="ignore"):
            mean: np.ndarray = (np.where(included, values, 0.0) * weight).sum(axis=1) / weight.sum(axis=1)
        return mean

    def decayed_mean(self, what: str = "error", rows: float | None = None) -> np.ndarray:
        """Return the exponentially weighted mean of a metric after every batch, for every model.

        Parameters
        ----------
        what : {"error", "log_loss"}
        rows : float, optional
            The half-life in rows; by default a twentieth of the stream.

        Returns
        -------
        ndarray of shape (models, batches)
        """
        values = getattr(self, _check_measure(what))
        half_life = self.rows.sum() / 20 if rows is None else rows
        total = np.zeros(len(self.names))
        weight = np.zeros(len(self.names))
        means = np.full(values.shape, np.nan)
        for k, n in enumerate(self.rows):
            known = ~np.isnan(values[:, k])
            decay = 0.5 ** (n / half_life)
            total = decay * total + np.where(known, n * np.nan_to_num(values[:, k]), 0)
            weight = decay * weight + np.where(known, n, 0)
            means[weight > 0, k] = (total / np.where(weight > 0, weight, 1))[weight > 0]
        return means

    def plot(self, what: str | Sequence[str] | None = None, ax: Axes | None = None) -> Plot:
        """Plot metrics by the number of rows: batches as points, decayed means as lines. Requires matplotlib.

        Parameters
        ----------
        what : "error", "log_loss", or a list of both, which is the default
        ax : as many matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.evaluation.prequential import plot_prequential

        requested = list(MEASURES) if what is None else [what] if isinstance(what, str) else list(what)
        return plot_prequential(self, [_check_measure(each) for each in requested], ax)

    def plot_drift(self, model: str | None = None, ax: Axes | None = None) -> Plot:
        """Plot the divergence of every column of every batch from the counted rows, in bits. Requires matplotlib.

        Undefined values are gray: no rows had been counted, or all numbers of a column were equal in a batch.

        Parameters
        ----------
        model : str, optional
            The name of the model; the first by default.
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.evaluation.prequential import plot_drift

        if self.drift is None:
            raise DataError("drift was not computed.\n    Use tb.prequential(..., drift=True).")
        name = self.names[0] if model is None else model
        if name not in self.names:
            raise DataError.wrong_type("model", repr(model), " or ".join(map(repr, self.names)))
        return plot_drift(self, self.names.index(name), ax)

    def _frame_data(self) -> FrameData:
        ends = np.cumsum(self.rows)
        return [self._record(m, k, int(end)) for m in range(len(self.names)) for k, end in enumerate(ends)]

    def _record(self, m: int, k: int, end: int) -> dict[str, object]:
        """Return the row of the data frame of a model and a batch."""
        record: dict[str, object] = {"model": self.names[m], "rows": end}
        record |= {what: float(getattr(self, what)[m, k]) for what in MEASURES}
        record |= {"unknown": int(self.unknown[m, k]), "seconds": float(self.seconds[m, k])}
        if self.drift is not None:
            record |= {f"bits of {column}": self.drift[m, k, c] for c, column in enumerate(self.columns)}
        return record

    def _content(self) -> list[str | ResultTable]:
        title = f"{int(self.rows.sum())} rows in {len(self.rows)} batches, each predicted before it was fitted"
        unknown = self.unknown.max(axis=0).sum()
        title += f"; {unknown} rows of classes that the models did not have yet" if unknown else ""
        means = [self.mean(what, last) for last in (1.0, _LAST) for what in MEASURES]
        rows = [
            [printable(name), *(f"{mean[m]:.4f}" for mean in means), f"{self.seconds[m].sum():.2f}"]
            for m, name in enumerate(self.names)
        ]
        head = ["model", "error", "log-loss", "last tenth: error", "log-loss", "seconds"]
        return [ResultTable(rows, head, title, "lllrlr")]


def _check_measure(what: str) -> str:
    """Return the name of a metric; raise DataError if there is none of this name."""
    if what not in MEASURES:
        raise DataError.wrong_type("what", repr(what), " or ".join(map(repr, MEASURES)))
    return what
