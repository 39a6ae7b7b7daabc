"""LearningCurves: metrics of several models by the number of training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.errors import DataError, printable
from tallybayes.results.result import FrameData, Result, ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

MEASURES = {
    "error": "error",
    "log_loss": "log-loss in nats",
    "calibration_error": "calibration error",
    "fit_seconds": "seconds to fit",
}


class LearningCurves(Result):
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

    def __init__(
        self,
        names: Sequence[str],
        sizes: np.ndarray,
        error: np.ndarray,
        log_loss: np.ndarray,
        calibration_error: np.ndarray | None = None,
        fit_seconds: np.ndarray | None = None,
        *,
        penalties: Sequence[str] | None = None,
        refitted: Sequence[bool] | None = None,
    ) -> None:
        self.names = list(names)
        self.sizes = sizes
        self.error = error
        self.log_loss = log_loss
        self.calibration_error = calibration_error
        self.fit_seconds = fit_seconds
        self.penalties = [""] * len(self.names) if penalties is None else list(penalties)
        self.refitted = [True] * len(self.names) if refitted is None else list(refitted)

    @property
    def measures(self) -> list[str]:
        """The metrics, by the names that `crossings` and `plot` accept."""
        return [what for what in MEASURES if getattr(self, what) is not None]

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
        values = getattr(self, self._check_measure(what))
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
        penalties = [f"{printable(name)}, {one}" for name, one in zip(self.names, self.penalties, strict=True) if one]
        return [f"Crossings depend on the penalty: {'; '.join(penalties)}"] if penalties else []

    def plot(self, what: str | Sequence[str] | None = None, ax: Axes | None = None) -> Plot:
        """Plot metrics by the number of rows, with bands of one standard error and crossings. Requires matplotlib.

        Parameters
        ----------
        what : str or list of them, optional
            The metrics: ``"error"``, ``"log_loss"``, ``"calibration_error"`` and ``"fit_seconds"``; all by default.
        ax : as many matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.evaluation.learning_curves import plot_learning_curves

        requested = self.measures if what is None else [what] if isinstance(what, str) else list(what)
        return plot_learning_curves(self, [self._check_measure(each) for each in requested], ax)

    def _check_measure(self, what: str) -> str:
        """Return the name of a metric; raise DataError if it was not computed."""
        if what not in self.measures:
            raise DataError.wrong_type("what", repr(what), " or ".join(map(repr, self.measures)))
        return what

    def _frame_data(self) -> FrameData:
        return [self._record(m, k) for m in range(len(self.names)) for k in range(len(self.sizes))]

    def _record(self, m: int, k: int) -> dict[str, object]:
        """Return the means over the splits, and their standard errors, of a model at a size."""
        record: dict[str, object] = {"model": self.names[m], "rows": int(self.sizes[k])}
        for what in self.measures:
            values = getattr(self, what)[m, k]
            record |= {what: float(values.mean()), f"{what}_se": float(_standard_error(values))}
        return record

    def _content(self) -> list[str | ResultTable]:
        n = self.error.shape[-1]
        title = f"Means of {'1 split' if n == 1 else f'{n} splits'}; fewest errors: {self.leader()}"
        rows = []
        for k, size in enumerate(self.sizes):
            for m, name in enumerate(self.names):
                cells = [_mean_with_error(what, getattr(self, what)[m, k]) for what in self.measures]
                rows.append([f"{size:,}", printable(name), *cells])
        head = ["rows", "model", *(MEASURES[what] for what in self.measures)]
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
