"""Dependence: conditional mutual information of every pair of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.results.result import FrameData, Result, ResultTable, columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.evaluation.checks.mutual_information import Information
    from tallybayes.plotting.plot import Plot
    from tallybayes.typing import Name

_SIGNIFICANT = 10.0  # bits of evidence, odds of 1000 to 1; log₂ of the number of pairs is added
_SHOWN = 10  # pairs in text
_MOST_ROWS = 40  # pairs in HTML


class Pair(NamedTuple):
    """Two columns: their information given the class in bits, with a credible interval, and the log Bayes factor."""

    first: Any
    second: Any
    information: float
    low: float
    high: float
    evidence: float


class Dependence(Result):
    """The conditional mutual information I(x; x' | class) of every pair of columns, in bits.

    Naive Bayes assumes that it is 0, and counts the information that a pair shares twice.

    Attributes
    ----------
    columns : list
        The names of the columns, (block, position) for a column of a block.
    first, second : ndarray of int of shape (pairs,)
        The columns of every pair as indices, in descending order of information; pairs that are never observed together
        are last.
    information, low, high : ndarray of shape (pairs,)
        The posterior mean in bits and the ends of its credible interval; NaN if the two are never observed together.
    evidence : ndarray of shape (pairs,)
        The Bayes factor log₂ p(data | dependent) − log₂ p(data | independent): positive values favor dependence.
    mass : float
        The probability of the intervals.
    target : str
        The name of the class.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"a": [0.0, 1.0, 2.0, 3.0] * 5, "b": [0.1, 0.9, 2.1, 2.9] * 5, "c": list("xyzxy") * 4, "y": [0, 1] * 10}
    >>> result = tb.dependence(rows, "y")
    >>> result.table[0].first, result.table[0].second, result.table[0].evidence > 10
    ('a', 'b', True)
    """

    def __init__(
        self,
        columns: list[Any],
        first: np.ndarray,
        second: np.ndarray,
        information: Information,
        mass: float,
        target: Name | None,
    ) -> None:
        interval = information.interval(mass)
        mean = np.minimum(information.mean, information.most)
        order = np.lexsort((second, first, -np.nan_to_num(mean, nan=-1.0)))
        self.columns = columns
        self.mass = mass
        self.target = target
        self.first = first[order]
        self.second = second[order]
        self.information = mean[order]
        self.low = interval.low[order]
        self.high = interval.high[order]
        self.evidence = information.evidence[order]

    @property
    def table(self) -> list[Pair]:
        """Every pair with its information, interval and evidence, in descending order of information."""
        names = self.columns
        numbers = (part.tolist() for part in (self.information, self.low, self.high, self.evidence))
        ends = ([names[k] for k in part.tolist()] for part in (self.first, self.second))
        return [Pair(*row) for row in zip(*ends, *numbers, strict=True)]

    @property
    def matrix(self) -> np.ndarray:
        """The information of every pair, of shape (columns, columns), symmetric; NaN on the diagonal."""
        out = np.full((len(self.columns),) * 2, np.nan)
        out[self.first, self.second] = out[self.second, self.first] = self.information
        return out

    def plot(self, ax: Axes | None = None, most: int = 30) -> Plot:
        """Plot the matrix of information. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        most : int, default 30
            The number of columns: of more, those of the pairs with most information are plotted.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.evaluation.dependence import plot_dependence

        return plot_dependence(self, ax, most)

    def _frame_data(self) -> FrameData:
        return columns_of(Pair, self.table)

    def _content(self) -> list[str | ResultTable]:
        title = f"Dependence of {len(self.columns)} columns given {self.target!r}: {len(self.first)} pairs, in bits"
        if not len(self.first):
            return [title]
        formats = {
            "columns": "{first} – {second}",
            "bits": "{information:7.4f}",
            f"{self.mass:.3g} interval": "{low:7.4f} – {high:7.4f}",
            "evidence": "{evidence:+8.1f}",
        }
        shown = self.table[:_MOST_ROWS]
        table = ResultTable.of(shown, formats, title, "lr", max_rows=_SHOWN, n_rows=len(self.first))
        return [table, self._conclusion()]

    def _conclusion(self) -> str:
        """Return the number of dependent pairs as text."""
        n_pairs = len(self.first)
        threshold = round(_SIGNIFICANT + float(np.log2(n_pairs)))
        n_dependent = int((self.evidence > threshold).sum())
        meaning = "naive Bayes counts what they share twice" if n_dependent else "naive Bayes is not contradicted"
        return f"{n_dependent} of {n_pairs} pairs are dependent (evidence above {threshold} bits): {meaning}."
