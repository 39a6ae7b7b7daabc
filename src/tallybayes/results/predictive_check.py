"""PredictiveCheck: statistics of the data compared with data sets drawn from the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from tallybayes.errors import DataError, printable
from tallybayes.results.result import FrameData, Result, ResultTable, columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.evaluation.checks.replicated_data import ReplicatedFactor
    from tallybayes.plotting.plot import Plot
    from tallybayes.typing import Name

ALL_ROWS = "all rows"  # the group of rows that are not compared by class
_SHOWN = 10  # rows in text
_TAIL = 0.005  # tail probability of a failed check


class Check(NamedTuple):
    """A statistic of a column in a class: of the data, and of data sets drawn from the model.

    ``expected`` is its mean over the drawn data sets, and (``low``, ``high``) contains 95 % of them; ``p`` is the
    proportion of drawn data sets whose statistic is at least the observed one; ``gap`` is the difference in their
    standard deviations.
    """

    column: Any
    label: Any
    statistic: str
    observed: float
    expected: float
    low: float
    high: float
    p: float
    gap: float


_FORMATS = {
    "statistic": "{column} in {label}: {statistic}",
    "observed": "{observed:10.4g}",
    "95 % of the draws": "{low:10.4g} – {high:10.4g}",
    "p": "{p:5.3f}",
    "gap": "{gap:+8.1f}",
}


@dataclass(eq=False, repr=False)
class PredictiveCheck(Result):
    """Statistics of the data by class compared with data sets drawn from the model. Returned by `predictive_check`.

    Attributes
    ----------
    table : list of Check
        In descending order of the gap between observed and drawn statistics, in standard deviations.
    n_draws : int
        The number of data sets drawn.
    n_rows : dict
        The number of compared rows of every class.
    parts : list of ReplicatedFactor
        The compared cells by factor, which can be drawn anew.
    seed : int
        The seed of `replicates`.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> X = np.stack([rng.normal(size=400), rng.lognormal(size=400)], axis=1)
    >>> y = rng.integers(0, 2, 400)
    >>> check = tb.predictive_check(tb.NaiveBayes().fit(X, y), X, y)
    >>> check.table[0].column, check.table[0].statistic
    (1, 'skewness')
    >>> {row.column for row in check.failed_checks}
    {1}
    """

    table: list[Check]
    n_draws: int
    n_rows: dict[Any, int]
    parts: list[ReplicatedFactor]
    seed: int

    def __post_init__(self) -> None:
        self.table = sorted(self.table, key=lambda row: -abs(row.gap))

    @property
    def failed_checks(self) -> list[Check]:
        """The checks whose observed statistic is outside 99 % of the drawn ones, with a large gap.

        The limit of the gap increases with the number of checks (Bonferroni), so that few of many fail by chance.
        """
        limit = float(-ndtri(_TAIL / max(len(self.table), 1)))
        return [row for row in self.table if not _TAIL < row.p < 1 - _TAIL and abs(row.gap) > limit]

    def plot(self, column: Name | None = None, ax: Axes | None = None) -> Plot:
        """Plot a histogram of a column in every class and the range of the drawn data sets. Requires matplotlib.

        Parameters
        ----------
        column : name of a column or block, optional
            By default the one with the largest gap. Of a block of words, the number of different words of a row.
        ax : array of matplotlib Axes, optional
            One for every class.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.evaluation.predictive_check import plot_predictive_check

        if column is None:
            column = self.table[0].column if self.table else self.parts[0].names[0]
        return plot_predictive_check(self, column, ax)

    def replicates(self, column: Name, n_draws: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Any, ...]]:
        """Return a column's cells, and cells drawn from the model.

        Parameters
        ----------
        column : name of a column or block
        n_draws : int, default 50

        Returns
        -------
        observed : ndarray of shape (n,)
            The compared rows: numbers, codes of levels (NaN if missing), or numbers of different words of a block.
        drawn : ndarray of shape (n_draws, n)
        labels : ndarray of shape (n,)
            The class of every row.
        levels : tuple
            The levels of the codes; () for numbers.
        """
        for part in self.parts:
            if column in part.names:
                k = part.names.index(column)
                rng = np.random.default_rng(self.seed)
                drawn = np.stack([part.values(part.draw(rng), k) for _ in range(n_draws)])
                return part.values(part.cells, k), drawn, part.labels[part.codes], part.levels_of(k)
        raise DataError.unknown_column([column], [name for part in self.parts for name in part.names])

    def _frame_data(self) -> FrameData:
        columns = columns_of(Check, self.table)
        return {"class" if name == "label" else name: values for name, values in columns.items()}

    def _content(self) -> list[str | ResultTable]:
        classes = ", ".join(f"{printable(label)}: {n}" for label, n in list(self.n_rows.items())[:8])
        compared = f"rows: {self.n_rows[ALL_ROWS]}" if ALL_ROWS in self.n_rows else f"rows of class {classes}"
        title = f"PredictiveCheck: {len(self.table)} statistics of {self.n_draws} draws ({compared})"
        if not self.table:
            return [title]
        return [ResultTable.of(self.table, _FORMATS, title, "lr", max_rows=_SHOWN), self._conclusion()]

    def _conclusion(self) -> str:
        """Return the columns with failed checks as text."""
        failed = list(dict.fromkeys(printable(row.column) for row in self.failed_checks))
        if not failed:
            return "No check failed."
        shown = ", ".join(failed[:8]) + (f", … {len(failed) - 8} more" if len(failed) > 8 else "")
        return f"The data differ from the model in: {shown}."
