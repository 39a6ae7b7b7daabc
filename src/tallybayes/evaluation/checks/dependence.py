"""Dependence: which columns tell the same story twice, given the class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from tallybayes._utils.html import html_parts
from tallybayes.data.counting import count
from tallybayes.data.table import Table
from tallybayes.errors import DataError, printable
from tallybayes.evaluation.checks.mutual_information import LOG_2, Information, of_explained, of_labels
from tallybayes.families.categorical import Categorical
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.models.inputs.input_format import read_initial_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_CELLS = 1 << 22  # cells counted at a time, where a task can be cut into pieces
_MOST_CELLS = 1 << 25  # of one piece that cannot be cut: some 0.3 GB each for counts, 1 GB for moments
_SURE = 10.0  # bits of evidence, a thousand to one; more where one of many pairs is picked


class Pair(NamedTuple):
    """Two columns and what they share given the class: bits, with a credible interval and the evidence for any."""

    first: Any
    second: Any
    information: float
    low: float
    high: float
    evidence: float


class Dependence:
    """The conditional mutual information I(x; x' | class) of every pair of columns, in bits.

    Naive Bayes takes it to be 0 and counts what a pair shares twice.

    Attributes
    ----------
    columns : list
        The names of the columns, (block, place) for a column of a block.
    first, second : ndarray of int of shape (pairs,)
        The columns of every pair, by position, most information first; pairs never known together are last.
    information, low, high : ndarray of shape (pairs,)
        The posterior mean in bits and the ends of its credible interval; NaN if the two are never known together.
    evidence : ndarray of shape (pairs,)
        log₂ p(data | dependent) − log₂ p(data | independent): positive speaks for dependence, negative against it.
    mass : float
        The mass of the intervals.
    target : str
        The name of the class.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"a": [0.0, 1.0, 2.0, 3.0] * 5, "b": [0.1, 0.9, 2.1, 2.9] * 5, "c": list("xyzxy") * 4, "y": [0, 1] * 10}
    >>> found = tb.dependence(rows, "y")
    >>> found.table[0].first, found.table[0].second, found.table[0].evidence > 10
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
        self.columns, self.mass, self.target = columns, mass, target
        self.first, self.second = first[order], second[order]
        self.information, self.evidence = mean[order], information.evidence[order]
        self.low, self.high = interval.low[order], interval.high[order]

    @property
    def table(self) -> list[Pair]:
        """Every pair with its information, interval and evidence, most information first."""
        names = self.columns
        numbers = (part.tolist() for part in (self.information, self.low, self.high, self.evidence))
        ends = ([names[place] for place in part.tolist()] for part in (self.first, self.second))
        return [Pair(*row) for row in zip(*ends, *numbers, strict=True)]

    @property
    def matrix(self) -> np.ndarray:
        """The information of every pair, shape (columns, columns), symmetric; NaN on the diagonal."""
        out = np.full((len(self.columns),) * 2, np.nan)
        out[self.first, self.second] = out[self.second, self.first] = self.information
        return out

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas data frame, one line per pair."""
        import pandas as pd

        return pd.DataFrame(self.table, columns=list(Pair._fields))

    def plot(self, ax: Axes | None = None, most: int = 30) -> Plot:
        """A picture of the matrix; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        most : int, default 30
            Of more columns than this, those of the strongest pairs are drawn.

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.dependence import plot_dependence

        return plot_dependence(self, ax, most)

    def _title(self) -> str:
        return f"Dependence of {len(self.columns)} columns given {self.target!r}: {len(self.first)} pairs, in bits"

    def _top(self, most: int) -> list[str]:
        """The names of the first pairs."""
        ends = zip(self.first[:most].tolist(), self.second[:most].tolist(), strict=True)
        return [f"{printable(self.columns[i])} – {printable(self.columns[j])}" for i, j in ends]

    def _repr_html_(self) -> str:
        head = ["columns", "bits", f"{self.mass:.3g} interval", "evidence"]
        numbers = zip(self.information, self.low, self.high, self.evidence, strict=True)
        shown = ([f"{bits:.4f}", f"{low:.4f} – {high:.4f}", f"{found:+.1f}"] for bits, low, high, found in numbers)
        rows = ([pair, *cells] for pair, cells in zip(self._top(len(self.first)), shown, strict=True))
        return html_parts((self._title(), head, rows), *([self._reading()] if len(self.first) else []))

    def __repr__(self) -> str:
        n_pairs, shown, head = len(self.first), 10, self._title()
        if not n_pairs:
            return head
        top = self._top(shown)
        width = max(map(len, top))
        lines = [head, f"  {'':<{width}}  {'bits':>7}  {f'{self.mass:.3g} interval':>17}  evidence"]
        for k, pair in enumerate(top):
            interval = f"{self.low[k]:7.4f} – {self.high[k]:7.4f}"
            lines.append(f"  {pair:<{width}}  {self.information[k]:7.4f}  {interval}  {self.evidence[k]:+8.1f}")
        if n_pairs > shown:
            lines.append(f"  … {n_pairs - shown} more")
        return "\n".join([*lines, self._reading()])

    def _reading(self) -> str:
        """What the table says of naive Bayes."""
        n_pairs = len(self.first)
        enough = round(_SURE + float(np.log2(n_pairs)))
        sure = int((self.evidence > enough).sum())
        what = "naive Bayes counts what they share twice" if sure else "nothing here speaks against naive Bayes"
        return f"{sure} of {n_pairs} pairs are dependent beyond doubt (evidence above {enough} bits): {what}."


def dependence(data: Rows, target: Labels, *, sample_weight: SampleWeights = None, mass: float = 0.95) -> Dependence:
    """How much every pair of columns has in common given the class: where "naive" hurts.

    For two columns of labels this is the conditional mutual information Σ p(c) I(x; x' | c) of their joint table. For
    numbers it is the information under a Gaussian model: −½ log₂(1 − ρ²) of two numbers with correlation ρ in a class,
    and −½ log₂(1 − η²) of a label and a number, η² being the share of the number's variance in the class that the means
    of the levels explain (the correlation ratio), but no more than the label's entropy; averaged over the classes by
    weight. Dependence that leaves correlations and means alone does not show. Numbers that are multiples of each other
    share all the digits of a double, 26 bits.

    Everything is counted once per column, and given as a posterior mean with a credible interval. The prior shrinks
    towards independence by an amount that the data choose, so that tables with many cells and few rows are not taken
    for dependent. Intervals are approximate; where a table has about as many cells as rows, read the evidence instead.

    Parameters
    ----------
    data : array, data frame, list of dicts, or mapping of columns and blocks
        Strings, categories and booleans are labels, numbers are numbers. A pair is judged by the rows where both cells
        are known.
    target : array-like of shape (n,), or the name of a column of data
        The class.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
        How often every row counts.
    mass : float, default 0.95
        The mass of the credible intervals.

    Returns
    -------
    Dependence
        It prints as a table, and has ``table``, ``matrix``, ``to_frame`` and ``plot``.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(175, 8, 500)
    >>> rows = {"height": height, "shoe": height / 4 + rng.normal(0, 1, 500), "luck": rng.normal(size=500)}
    >>> tb.dependence(rows, rng.integers(0, 2, 500))
    Dependence of 3 columns given 'class': 3 pairs, in bits
                        bits      0.95 interval  evidence
      height – shoe   ...
    1 of 3 pairs are dependent beyond doubt (evidence above 12 bits): naive Bayes counts what they share twice.
    """
    shape, table, weight = read_initial_rows(data, target, sample_weight)
    read_labels(table, shape.target).check_complete("Leave the unlabeled rows out.")
    if table.n_rows == 0:
        raise DataError("there are 0 rows to look at; expected at least 1.")
    table, columns, names = _single_columns(table, shape.target)
    counter = _PairCounter(table, shape.target, weight)
    kinds = [table.kind(name) for name in names]
    labels = [place for place, kind in enumerate(kinds) if kind == "label"]
    numbers = [place for place, kind in enumerate(kinds) if kind == "number"]
    found = [*counter.labels(names, labels), *counter.mixed(names, labels, numbers)]
    if len(numbers) > 1:
        found.append(counter.numbers(names, numbers))
    none = np.zeros(0, dtype=np.intp)
    first, second = (np.concatenate([none, *(part[side] for part in found)]) for side in (0, 1))
    parts = [np.concatenate([np.zeros(0), *(part[2][field] for part in found)]) for field in range(4)]
    low, high = np.minimum(first, second), np.maximum(first, second)
    return Dependence(columns, low, high, Information(*parts), mass, shape.target)


_Found = tuple[np.ndarray, np.ndarray, Information]  # the columns of some pairs, and what they share


class _PairCounter:
    """The counting behind one table of pairs: a factor given the class, or given the class and a column of labels."""

    def __init__(self, table: Table, target: Name, weight: Any) -> None:
        self.table, self.target, self.weight = table, target, weight
        self.schema = Schema(sorted_domains=(str(target),))
        classes = count(table, [Factor(target, (), Categorical())], weight=weight, schema=self.schema)
        self.n_classes = len(classes.domains[str(target)].levels)
        if not self.n_classes:
            raise DataError("the weight of every row is zero; expected at least one row that counts.")

    def labels(self, names: Sequence[Name], places: list[int]) -> Iterator[_Found]:
        """The pairs of two columns of labels; the columns with most levels first, so that few tables are large."""
        sizes = {place: self._n_levels(names[place]) for place in places}
        order = sorted(places, key=lambda place: -sizes[place])
        for number, here in enumerate(order):
            rest = order[number + 1 :]
            per_level = self.n_classes * sizes[here]
            for some in _pieces(rest, [per_level * sizes[place] for place in rest]):
                self._check_size(per_level * max(sizes[place] for place in some), names[here], names[some[0]])
                counts = self._count([names[place] for place in some], Categorical(), names[here])
                assert isinstance(counts, Counts)
                beliefs = [
                    _unless_empty(of_labels(cells), cells.sum()) for cells in counts.segments.split(counts.table)
                ]
                yield np.full(len(some), here), np.array(some), Information(*map(np.array, zip(*beliefs, strict=True)))

    def mixed(self, names: Sequence[Name], labels: list[int], numbers: list[int]) -> Iterator[_Found]:
        """The pairs of a label and a number: means and scatter of the numbers within class and level."""
        for here in labels if numbers else []:
            per_column = self.n_classes * self._n_levels(names[here])
            self._check_size(per_column, names[here], names[numbers[0]])
            for some in _pieces(numbers, [per_column] * len(numbers)):
                moments = self._count([names[place] for place in some], Gaussian(), names[here])
                assert isinstance(moments, Moments)
                yield np.full(len(some), here), np.array(some), _between_levels(moments)

    def numbers(self, names: Sequence[Name], places: list[int]) -> _Found:
        """The pairs of two numbers, all at once."""
        chosen = [names[place] for place in places]
        first, second = np.triu_indices(len(places), 1)
        columns = self.table.numbers(chosen)
        if any(column.dtype.kind == "f" and np.isnan(column).any() for column in _listed(columns)):
            found = self._known_pairs(chosen, first, second)
        else:
            self._check_size(self.n_classes * len(places) ** 2, chosen[0], chosen[-1])
            moments = self._count(chosen, MultivariateGaussian())
            assert isinstance(moments, Moments)
            scatter = moments.scatter
            own = np.diagonal(scatter, axis1=1, axis2=2)
            held = np.diagonal(moments.second_sum.value, axis1=1, axis2=2)
            own = np.where(own > 1e-12 * held, own, 0.0)  # what rounding leaves of a constant is no spread
            weight = np.broadcast_to(moments.weight, (len(scatter), len(first)))
            found = _correlated(scatter[:, first, second], own[:, first], own[:, second], weight)
        where = np.array(places)
        return where[first], where[second], found

    def _known_pairs(self, names: list[Name], first: np.ndarray, second: np.ndarray) -> Information:
        """The correlations of numbers with missing cells, each from the rows where both are known.

        With z the centered cells (0 where missing), k = 1 where known, the products of the columns (z, z², k) hold all
        the sums that are needed: Σkk', Σzk', Σz²k' and Σzz'.
        """
        d = len(names)
        self._check_size(self.n_classes * (3 * d) ** 2, names[0], names[-1])
        single = self._count(names, Gaussian()).pool_groups()  # also refuses what is not finite, by name
        assert isinstance(single, Moments)
        mean = single.mean
        spread = np.sqrt(single.scatter / np.maximum(single.weight, 1.0))
        scale = np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)
        columns = _listed(self.table.numbers(names))
        target = np.asarray(self.table.levels([self.target], lambda _: True)[0].columns[0]).astype(np.int64)
        total: Any = 0
        step = max(1, _CELLS // (3 * d))
        for start in range(0, self.table.n_rows, step):
            part = slice(start, start + step)
            rows = (np.stack([column[part] for column in columns], axis=1).astype(np.float64) - mean) / scale
            known = ~np.isnan(rows)
            z = np.where(known, rows, 0.0)
            block = Table({"class": target[part], "block": np.concatenate([z, z**2, known], axis=1)})
            weight = None if self.weight is None else np.asarray(self.weight)[part]
            factor = Factor("block", ("class",), MultivariateGaussian())
            total = total + count(block, [factor], weight=weight, schema=Schema(sorted_domains=("class",)))
        sums = total["block"].rebase(np.zeros(3 * d)).second_sum.value
        at, squared, there = (slice(start, start + d) for start in (0, d, 2 * d))
        weight = sums[:, there, there][:, first, second]
        n = np.where(weight > 0, weight, 1.0)
        one, other = sums[:, at, there][:, first, second], sums[:, at, there][:, second, first]
        own = sums[:, squared, there][:, first, second] - one**2 / n
        others = sums[:, squared, there][:, second, first] - other**2 / n
        cross = sums[:, at, at][:, first, second] - one * other / n
        own, others = (np.where(part > 1e-12 * n, part, 0.0) for part in (own, others))
        return _correlated(cross, own, others, weight)

    def _count(self, names: Sequence[Name], family: Any, *given: Name) -> Any:
        factor = Factor(tuple(names), (self.target, *given), family)
        return count(self.table, [factor], weight=self.weight, schema=self.schema).statistics[0]

    def _n_levels(self, name: Name) -> int:
        return len(self.table.levels([name], lambda _: False)[1][0].levels)

    def _check_size(self, n_cells: int, first: Name, second: Name) -> None:
        if n_cells > _MOST_CELLS:
            raise DataError(
                f"the columns {first!r} to {second!r} and {self.n_classes} classes make a table of {n_cells} cells; "
                f"expected at most {_MOST_CELLS}.\n    Leave out columns with very many levels, or look at fewer "
                "columns at a time."
            )


def _single_columns(table: Table, target: Name) -> tuple[Table, list[Any], list[Name]]:
    """A table whose blocks are taken apart, the columns' names as shown, and as they are in the table."""
    features = [name for name in table.columns if name != target]
    for name in features:
        if table.kind(name) == "sparse":
            raise DataError.wrong_type(
                f"column {name!r}", "a sparse block", "numbers or labels", "Pass the words of interest as an array."
            )
    if not any(table.is_block(name) for name in features):
        return table, list(features), features
    columns: list[Any] = []
    single: dict[Name, Any] = {}
    for name in features:
        block = table.columns[name]
        for place in range(table.width(name)):
            columns.append((name, place) if table.is_block(name) else name)
            single[len(columns)] = block[:, place] if table.is_block(name) else block
    return Table({target: table.columns[target], **single}), columns, list(single)


def _pieces(places: list[int], sizes: list[int]) -> Iterator[list[int]]:
    """Places in runs of at most `_CELLS` cells together, or of a single one."""
    run: list[int] = []
    total = 0
    for place, size in zip(places, sizes, strict=True):
        if run and total + size > _CELLS:
            yield run
            run, total = [], 0
        run.append(place)
        total += size
    if run:
        yield run


def _listed(columns: Any) -> list[np.ndarray]:
    return list(columns.T) if isinstance(columns, np.ndarray) else list(columns)


def _unless_empty(found: Information, weight: Any) -> Information:
    """The belief, unknown where no row was counted."""
    mean = np.where(np.asarray(weight) > 0, found.mean, np.nan)
    return found._replace(mean=mean)


def _correlated(cross: np.ndarray, own: np.ndarray, others: np.ndarray, weight: np.ndarray) -> Information:
    """The information of pairs of numbers, from scatter and weight in every class: (classes, pairs)."""
    varied = (own > 0) & (others > 0)
    explained = np.where(varied, cross**2 / np.where(varied, own * others, 1.0), 0.0)
    return _unless_empty(of_explained(explained, weight, 1.0 * varied, np.full_like(own, 2.0)), weight.sum(axis=0))


def _between_levels(moments: Moments) -> Information:
    """The information of a label and numbers, from the moments within class and level."""
    weight = np.broadcast_to(moments.weight, moments.first_sum.shape)
    total = weight.sum(axis=1)
    n = np.where(total > 0, total, 1.0)
    mean = moments.first_sum.value / np.where(weight > 0, weight, 1.0)  # from the anchor, so that no digits are lost
    gap = np.where(weight > 0, mean - (moments.first_sum.value.sum(axis=1) / n)[:, None], 0.0)
    between = (weight * gap**2).sum(axis=1)
    fourth = (weight * gap**4).sum(axis=1)
    within = moments.scatter.sum(axis=1)
    level = np.abs(moments.second_sum.value).sum(axis=1)
    varied = between + within > 1e-13 * level  # what rounding leaves of a constant is no spread
    n_slopes = np.where(varied, np.maximum((weight > 0).sum(axis=1) - 1.0, 0.0), 0.0)
    explained = np.where(varied, between / np.where(varied, between + within, 1.0), 0.0)
    tail = np.where(between > 0, fourth * n / np.where(between > 0, between, 1.0) ** 2 - 1, 0.0)
    found = of_explained(explained, total, n_slopes, np.maximum(tail, 0.0))
    nats = (xlogy(total, n) - xlogy(weight, weight).sum(axis=1)).sum(axis=0)
    entropy = (
        nats / LOG_2 / np.maximum(total.sum(axis=0), 1e-300)
    )  # of the label given the class: it has no more to say
    return _unless_empty(found._replace(most=np.maximum(entropy, 0.0)), total.sum(axis=0))
