"""Predictive checks: whether data drawn from a model look like the data it was given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.html import html_parts
from tallybayes.errors import DataError, printable
from tallybayes.evaluation.checks.replicated_data import ALL_ROWS, ReplicatedFactor, make_replicated_factor, sources
from tallybayes.evaluation.checks.summary_statistics import TokenCounts
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.typing import Labels, Name, RandomState, Rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.models.estimator import Estimator
    from tallybayes.plotting.plot import Plot


class Check(NamedTuple):
    """One statistic of one column in one class: in the data, and in data sets drawn from the model.

    ``expected`` is its mean over the replicates and (``low``, ``high``) holds 95 % of them; ``p`` is the share of
    replicates whose statistic is at least the observed one; ``gap`` is the distance in their standard deviations.
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


class PredictiveCheck:
    """Statistics of the data within each class beside those of data sets drawn from the model.

    Attributes
    ----------
    table : list of Check
        The most surprising first: by the gap between data and replicates, in standard deviations of the replicates.
    n_draws : int
        The number of data sets drawn.
    n_rows : dict
        The number of rows of every class that were looked at.

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

    def __init__(
        self, table: list[Check], n_draws: int, n_rows: dict[Any, int], parts: list[ReplicatedFactor], seed: RandomState
    ) -> None:
        self.table = sorted(table, key=lambda row: -abs(row.gap))
        self.n_draws, self.n_rows = n_draws, n_rows
        self._parts, self._seed = parts, seed

    @property
    def failed_checks(self) -> list[Check]:
        """The checks whose observed statistic lies beyond 99 % of the replicates, and far beyond.

        How many deviations away grows with the number of checks, so that of many some are not flagged by chance.
        """
        far = float(-ndtri(0.005 / max(len(self.table), 1)))
        return [row for row in self.table if not 0.005 < row.p < 0.995 and abs(row.gap) > far]

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas data frame, one line per column, class and statistic."""
        import pandas as pd

        names = ["class" if name == "label" else name for name in Check._fields]
        return pd.DataFrame(self.table, columns=names)

    def plot(self, column: Name | None = None, ax: Axes | None = None) -> Plot:
        """A histogram of a column in every class over the envelope of the replicates; needs matplotlib.

        Parameters
        ----------
        column : name of a column or block, optional
            The most surprising one if left out. Of a block of words, the number of different words in a row is drawn.
        ax : array of matplotlib Axes, optional
            One for every class.

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.predictive_check import plot_predictive_check

        if column is None:
            column = self.table[0].column if self.table else self._parts[0].names[0]
        return plot_predictive_check(self, column, ax)

    def replicates(self, column: Name, n_draws: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Any, ...]]:
        """A column's cells beside some drawn from the model.

        Parameters
        ----------
        column : name of a column or block
        n_draws : int, default 50

        Returns
        -------
        observed : ndarray of shape (n,)
            The rows looked at: numbers, or codes of levels (NaN where missing), or different words in a row of a block.
        drawn : ndarray of shape (n_draws, n)
        labels : ndarray of shape (n,)
            The class of every row.
        levels : tuple
            The levels that codes stand for, () for numbers.
        """
        for part in self._parts:
            if column in part.names:
                place = part.names.index(column)
                rng = np.random.default_rng(self._seed)
                drawn = np.stack([part.values(part.draw(rng), place) for _ in range(n_draws)])
                return part.values(part.cells, place), drawn, part.labels[part.codes], part.levels_of(place)
        raise DataError.unknown_column([column], [name for part in self._parts for name in part.names])

    def _title(self) -> str:
        rows = ", ".join(f"{printable(label)}: {n}" for label, n in list(self.n_rows.items())[:8])
        of = f"rows: {self.n_rows[ALL_ROWS]}" if ALL_ROWS in self.n_rows else f"rows of class {rows}"
        return f"PredictiveCheck: {len(self.table)} statistics beside {self.n_draws} draws ({of})"

    def _repr_html_(self) -> str:
        head = ["column", "in", "statistic", "observed", "95 % of the draws", "p", "gap"]
        rows = (
            [row.column, row.label, row.statistic, row.observed, f"{row.low:.4g} – {row.high:.4g}", *cells]
            for row in self.table
            for cells in [(f"{row.p:.3f}", f"{row.gap:+.1f}")]
        )
        return html_parts((self._title(), head, rows), *([self._reading()] if self.table else []))

    def __repr__(self) -> str:
        head, top = self._title(), self.table[:10]
        if not top:
            return head
        names = [printable(f"{row.column} in {row.label}: {row.statistic}") for row in top]
        width = max(map(len, names))
        lines = [head, f"  {'':<{width}}  {'observed':>10}  {'95 % of the draws':>23}  {'p':>5}  {'gap':>8}"]
        for name, row in zip(names, top, strict=True):
            draws = f"{row.low:10.4g} – {row.high:10.4g}"
            lines.append(f"  {name:<{width}}  {row.observed:10.4g}  {draws}  {row.p:5.3f}  {row.gap:+8.1f}")
        if len(self.table) > len(top):
            lines.append(f"  … {len(self.table) - len(top)} more")
        return "\n".join([*lines, self._reading()])

    def _reading(self) -> str:
        """Where model and data differ."""
        wrong = list(dict.fromkeys(printable(row.column) for row in self.failed_checks))
        shown = ", ".join(wrong[:8]) + (f", … {len(wrong) - 8} more" if len(wrong) > 8 else "")
        return f"The model does not look like the data in: {shown}." if wrong else "Nothing is surprising."


def predictive_check(
    model: Estimator, data: Rows, target: Labels | None = None, *, n_draws: int = 200, random_state: RandomState = 0
) -> PredictiveCheck:
    """Draw data sets from a fitted model and see which columns of the real one look different: a wrong family.

    For every draw, parameters come from the posterior (under a point estimate they are the estimate), then as many rows
    of every class as the data have, with the same cells missing. Of every column and class these statistics are
    compared: for numbers mean, standard deviation, skewness, minimum, maximum and the share of zeros; for counts mean,
    dispersion (variance over mean), maximum and the share of zeros; for yes/no columns the share of ones; for labels
    the share of the most common level and the entropy in bits; for blocks of words, given the rows' lengths, the mean
    number of different words in a row and the chance that two words of a row are the same.

    Every node of a `BayesianNetwork` is drawn given its parents as observed: labels are compared over all rows,
    measured nodes for every combination of their parents' levels; those that are linear in others are passed over, for
    their mean is another in every row. Of a `Mixture` whole rows are drawn, of a
    `HiddenMarkovModel` without states whole sequences of the same lengths (at its point estimate), and columns are
    compared over all rows.

    At most 2,000 rows of every class are looked at, chosen by `random_state`, and fewer of wide data (of words, 200,000
    tokens of a class), so that time and memory stay bounded.

    Parameters
    ----------
    model : any fitted model of this package but NearestClassMean
    data, target
        Rows as for ``model.fit``: those it was fitted on, or new ones. Rows without a label are left out. Of a
        `HiddenMarkovModel`, sequences: with their states, steps are drawn given these.
    n_draws : int, default 200
        The number of data sets drawn.
    random_state : int, Generator or None, default 0

    Returns
    -------
    PredictiveCheck
        It prints as a table, the most surprising statistic first, and has ``table``, ``to_frame`` and ``plot``.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> bursts = rng.poisson(rng.gamma(0.5, 6, 300))                # counts with more spread than a Poisson allows
    >>> rows = {"bursts": bursts, "steady": rng.poisson(3, 300), "y": rng.integers(0, 2, 300)}
    >>> model = tb.NaiveBayes({("bursts", "steady"): tb.Poisson()}).fit(rows, "y")
    >>> tb.predictive_check(model, rows, "y").failed_checks[0].column
    'bursts'
    """
    if not isinstance(model, ClassConditionalModel | BayesianNetwork | HiddenMarkovModel):
        expected = "a model that says how rows come about, such as tb.NaiveBayes or tb.BayesianNetwork"
        raise DataError.wrong_type("model", type(model).__name__, expected)
    check_is_fitted(model, "tally_")
    if not isinstance(n_draws, int | np.integer) or n_draws < 1:
        raise DataError(f"n_draws is {n_draws!r}; expected a whole number of at least 1.")
    rng = np.random.default_rng(random_state)
    checks: list[Check] = []
    parts, n_rows = [], dict[Any, int]()
    for source in sources(model, data, target, rng):
        part = make_replicated_factor(source, int(n_draws), rng)
        parts.append(part)
        checks += _compare(part, int(n_draws), rng)
        for code, n in zip(*np.unique(part.codes, return_counts=True), strict=True):
            label = part.labels.tolist()[code]
            n_rows[label] = max(int(n), n_rows.get(label, 0))
    if not parts:
        raise DataError(
            "no row shows a node together with all its parents, so there is nothing to draw a node from.\n"
            "    Pass rows with the columns of the network."
        )
    return PredictiveCheck(checks, int(n_draws), n_rows, parts, int(rng.integers(2**32)))


def _compare(part: ReplicatedFactor, n_draws: int, rng: np.random.Generator) -> Iterator[Check]:
    """Every statistic of every column in every class, beside its replicates."""
    summaries = part.summaries
    groups = [(code, np.flatnonzero(part.codes == code)) for code in np.unique(part.codes)]

    def measure(cells: Any) -> np.ndarray:
        taken = [cells.take(mine) if isinstance(cells, TokenCounts) else cells[mine] for _, mine in groups]
        return np.array([summaries.measure(rows) for rows in taken])

    observed = measure(part.cells)  # (classes, statistics, columns)
    drawn = np.array([measure(part.draw(rng)) for _ in range(n_draws)])
    expected, deviation = drawn.mean(axis=0), drawn.std(axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    # Equal but for rounding is equal: where a column is constant, or all draws agree.
    equal = np.isclose(drawn, observed, rtol=1e-14, atol=0.0)
    p = ((drawn > observed) | equal).mean(axis=0)
    n_rows = np.array([len(mine) for _, mine in groups])[:, None, None]
    shares = np.array([name.startswith("share") for name in summaries.names])[None, :, None]
    deviation = np.where(shares, np.maximum(deviation, 1 / n_rows), deviation)  # one row more or less is no surprise
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(equal.all(axis=0), 0.0, (observed - expected) / deviation)
    labels = part.labels.tolist()
    for k, (code, _) in enumerate(groups):
        for s, statistic in enumerate(summaries.names):
            for place, name in enumerate(part.names):
                numbers = [array[k, s, place] for array in (observed, expected, low, high, p, gap)]
                if not np.isnan(numbers[0]):  # a column without a known cell has no statistics
                    yield Check(name, labels[code], statistic, *(float(number) for number in numbers))
