"""Metrics of several models by the number of rows: learning curves, and prequential metrics of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallybayes.errors import DataError, printable
from tallybayes.results.result import FrameData, Result, ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_LAST = 0.1  # the last tenth of the rows of a stream


class ModelCurves(Result):
    """Metrics of several models by the number of rows: arrays of shape (models, numbers of rows, …).

    A subclass names the metrics and their labels, and the function of `tallybayes.plotting.evaluation` that draws them.
    """

    LABELS: ClassVar[dict[str, str]]
    _plot_function: ClassVar[str]  # such as "prequential.plot_prequential"
    names: list[str]

    @property
    def measures(self) -> list[str]:
        """The metrics, by the names that the methods accept."""
        return [what for what in self.LABELS if getattr(self, what) is not None]

    def plot(self, what: str | Sequence[str] | None = None, ax: Axes | None = None) -> Plot:
        """Plot metrics by the number of rows, with a curve for every model. Requires matplotlib.

        Parameters
        ----------
        what : str or list of them, optional
            The metrics, see `measures`; all by default.
        ax : as many matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        requested = self.measures if what is None else [what] if isinstance(what, str) else list(what)
        module, _, function = self._plot_function.partition(".")
        draw = getattr(import_module(f"tallybayes.plotting.evaluation.{module}"), function)
        for each in requested:
            self._values(each)
        drawn: Plot = draw(self, requested, ax)
        return drawn

    def _values(self, what: str) -> np.ndarray:
        """Return a metric by name; raise DataError if there is none of this name."""
        if what not in self.measures:
            raise DataError.wrong_type("what", repr(what), " or ".join(map(repr, self.measures)))
        values: np.ndarray = getattr(self, what)
        return values

    def _frame_index(self, n_rows: np.ndarray) -> dict[str, Any]:
        """Return the columns "model" and "rows" of a data frame with a row for every model and number of rows."""
        return {
            "model": [name for name in self.names for _ in n_rows],
            "rows": np.tile(n_rows, len(self.names)),
        }


@dataclass(eq=False, repr=False)
class LearningCurves(ModelCurves):
    """Metrics of models by the number of training rows. Returned by `learning_curves`.

    Attributes
    ----------
    names : list of str
        The models.
    sizes : ndarray of int of shape (sizes,)
        The numbers of training rows.
    error, log_loss : ndarray of shape (models, sizes, repeats)
        On held-out rows: the proportion of wrong predictions, and the mean of −log p(true class) in nats.
    calibration_error : ndarray of shape (models, sizes, repeats), or None
        The expected calibration error, as in `Evaluation`.
    fit_seconds : ndarray of shape (models, sizes, repeats), or None
        The time to fit and to predict one row.
    penalties : list of str
        The penalty of linear models of scikit-learn, such as ``"C = 1"``; empty for other models.
    refitted : list of bool
        Whether a model was refitted at every size; otherwise all sizes were counted in one pass.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> models = {"naive": tb.NaiveBayes(), "tied": tb.GaussianDiscriminant(covariance="tied")}
    >>> curves = tb.learning_curves(models, X, y, [20, 140])
    >>> curves.leader()
    'tied at every size'
    """

    LABELS: ClassVar[dict[str, str]] = {
        "error": "error",
        "log_loss": "log loss in nats",
        "calibration_error": "calibration error",
        "fit_seconds": "seconds to fit",
    }
    _plot_function: ClassVar[str] = "learning_curves.plot_learning_curves"

    names: list[str]
    sizes: np.ndarray
    error: np.ndarray
    log_loss: np.ndarray
    calibration_error: np.ndarray | None = None
    fit_seconds: np.ndarray | None = None
    penalties: Sequence[str] = ()
    refitted: Sequence[bool] = ()

    def crossings(self, what: str = "error") -> list[tuple[int, str]]:
        """Return the sizes from which on a model is best: pairs of a size and a name, the first with the smallest size.

        A model is better than another if its mean is lower by more than the standard error of the paired differences.
        The first model is the one that is first better than all others.

        Parameters
        ----------
        what : {"error", "log_loss", "calibration_error", "fit_seconds"}

        Returns
        -------
        list of tuple
        """
        values = self._values(what)
        best = [m for k in range(len(self.sizes)) for m in _better_than_all(values[:, k])]
        leaders = [(0, best[0] if best else int(values[:, 0].mean(axis=-1).argmin()))]
        for k in range(1, len(self.sizes)):
            gain = values[leaders[-1][1], k] - values[:, k]
            better = np.flatnonzero(_beyond_noise(gain))
            if len(better):
                leaders.append((k, int(better[gain[better].mean(axis=-1).argmax()])))
        return [(int(self.sizes[k]), self.names[m]) for k, m in leaders]

    def leader(self, what: str = "error") -> str:
        """Return the best model as text: at every size, or from a number of rows on.

        Parameters
        ----------
        what : as for `crossings`

        Returns
        -------
        str
        """
        (_, first), *rest = self.crossings(what)
        if not rest:
            return f"{printable(first)} at every size" if len(self.names) > 1 else printable(first)
        return ", ".join([printable(first), *(f"{printable(name)} from {size:,} rows on" for size, name in rest)])

    def notes(self) -> list[str]:
        """Return notes on the crossings: the penalties of linear models.

        Returns
        -------
        list of str
        """
        penalties = [f"{printable(name)}, {one}" for name, one in zip(self.names, self.penalties, strict=False) if one]
        return [f"Crossings depend on the penalty: {'; '.join(penalties)}"] if penalties else []

    def _frame_data(self) -> FrameData:
        columns = self._frame_index(self.sizes)
        for what in self.measures:
            values = self._values(what)
            columns |= {what: values.mean(axis=-1).ravel(), f"{what}_se": _standard_error(values).ravel()}
        return columns

    def _content(self) -> list[str | ResultTable]:
        n = self.error.shape[-1]
        title = f"Means of {'1 split' if n == 1 else f'{n} splits'}; fewest errors: {self.leader()}"
        rows = [
            [
                f"{size:,}",
                printable(name),
                *(_mean_with_error(what, self._values(what)[m, k]) for what in self.measures),
            ]
            for k, size in enumerate(self.sizes)
            for m, name in enumerate(self.names)
        ]
        head = ["rows", "model", *(self.LABELS[what] for what in self.measures)]
        return [ResultTable(rows, head, "\n".join([title, *self.notes()]), "rlr")]


def _mean_with_error(what: str, values: np.ndarray) -> str:
    """Return the mean of a metric over the splits as text, with its standard error; of seconds the mean alone."""
    mean = float(values.mean())
    error = float(_standard_error(values))
    if what == "fit_seconds":
        return f"{mean:.2g}"
    return f"{mean:.4f}" if np.isnan(error) else f"{mean:.4f} ± {error:.4f}"


def _better_than_all(values: np.ndarray) -> list[int]:
    """Return the model that is better than all others, as a list that is empty if there is none."""
    best = int(values.mean(axis=-1).argmin())
    return [best] if _beyond_noise(np.delete(values, best, axis=0) - values[best]).all() else []


def _beyond_noise(gain: np.ndarray) -> np.ndarray:
    """Return whether the mean over the last axis exceeds its standard error; of a single value, 0."""
    mean = gain.mean(axis=-1)
    return (mean > 0) & ~(mean <= _standard_error(gain))


def _standard_error(values: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean over the last axis; NaN of a single value."""
    n = values.shape[-1]
    return values.std(axis=-1, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[:-1], np.nan)


@dataclass(eq=False, repr=False)
class Prequential(ModelCurves):
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
      model         error   log loss  last tenth: error  log loss  seconds
      all rows      0.4903  0.7915               0.7650  0.7486       ...
      the last 200  0.1185  0.3260               0.0550  0.1507       ...
    """

    LABELS: ClassVar[dict[str, str]] = {"error": "error", "log_loss": "log loss in nats"}
    _plot_function: ClassVar[str] = "prequential.plot_prequential"

    names: list[str]
    rows: np.ndarray
    error: np.ndarray
    log_loss: np.ndarray
    unknown: np.ndarray
    seconds: np.ndarray
    columns: Sequence[Any] = ()
    drift: np.ndarray | None = None

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
        ends = np.cumsum(self.rows)
        included = ends > (1 - last) * ends[-1]
        values = np.ma.masked_invalid(self._values(what)[:, included])
        mean: Any = np.ma.average(values, axis=1, weights=self.rows[included])
        return np.asarray(mean.filled(np.nan))

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
        values = self._values(what)
        half_life = self.rows.sum() / 20 if rows is None else rows
        total = np.zeros(len(self.names))
        weight = np.zeros(len(self.names))
        means = np.empty(values.shape)
        for k, n in enumerate(self.rows):
            decay = 0.5 ** (n / half_life)
            total = decay * total + n * np.nan_to_num(values[:, k])
            weight = decay * weight + n * ~np.isnan(values[:, k])
            with np.errstate(invalid="ignore"):
                means[:, k] = total / weight  # NaN before the first prediction
        return means

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
        return plot_drift(self, self.drift[self.names.index(name)], name, ax)

    def _frame_data(self) -> FrameData:
        columns = self._frame_index(np.cumsum(self.rows))
        columns |= {what: getattr(self, what).ravel() for what in (*self.LABELS, "unknown", "seconds")}
        if self.drift is not None:
            columns |= {f"bits of {column}": self.drift[..., c].ravel() for c, column in enumerate(self.columns)}
        return columns

    def _content(self) -> list[str | ResultTable]:
        title = f"{int(self.rows.sum())} rows in {len(self.rows)} batches, each predicted before it was fitted"
        unknown = int(self.unknown.max(axis=0).sum())
        title += f"; {unknown} rows of classes that the models did not have yet" if unknown else ""
        means = [self.mean(what, last) for last in (1.0, _LAST) for what in self.LABELS]
        rows = [
            [printable(name), *(f"{mean[m]:.4f}" for mean in means), f"{self.seconds[m].sum():.2f}"]
            for m, name in enumerate(self.names)
        ]
        head = ["model", "error", "log loss", "last tenth: error", "log loss", "seconds"]
        return [ResultTable(rows, head, title, "lllrlr")]
