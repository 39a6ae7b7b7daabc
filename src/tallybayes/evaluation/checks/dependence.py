"""tb.dependence: conditional mutual information of every pair of columns, given the class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy

from tallybayes.data.counting import count
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.evaluation.checks.mutual_information import LOG_2, Information, of_explained, of_labels
from tallybayes.evaluation.named_columns import check_rows
from tallybayes.families._shared.blocks import Dense, SparseRows
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.models.inputs.input_format import read_initial_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.results.dependence import Dependence
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import Labels, Rows, SampleWeights

_CELLS = 1 << 22  # cells counted at a time, if a task can be split
_MOST_CELLS = 1 << 25  # of one task that cannot be split: about 0.3 GB for counts, 1 GB for moments


def dependence(data: Rows, target: Labels, *, sample_weight: SampleWeights = None, mass: float = 0.95) -> Dependence:
    """Compute the conditional mutual information of every pair of columns given the class, which naive Bayes ignores.

    For two categorical columns this is the conditional mutual information Σ p(c) I(x; x' | c) of their joint table. For
    numbers it is the information under a Gaussian model: −½ log₂(1 − ρ²) of two numbers with correlation ρ in a class,
    and −½ log₂(1 − η²) of a categorical column and a number. There η² is the proportion of the number's variance in the
    class that the means of the levels explain (the correlation ratio); the information is at most the entropy of the
    levels. Classes are averaged by weight. Dependence without correlation or different means is not detected. Numbers
    that are multiples of each other share all the digits of a double, 26 bits.

    Every column is counted once; information is a posterior mean with a credible interval. The prior shrinks towards
    independence by an amount estimated from the data, so that tables with many cells and few rows are not dependent by
    chance. Intervals are approximate; if a table has about as many cells as rows, use the evidence instead.

    Parameters
    ----------
    data : array, data frame, list of dicts, or mapping of columns and blocks
        Strings, categories and booleans are categorical. A pair is compared in the rows that have both cells.
    target : array-like of shape (n,), or the name of a column of data
        The class.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
        The weight of every row.
    mass : float, default 0.95
        The probability of the credible intervals.

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
      columns            bits      0.95 interval  evidence
      height – shoe   ...
    1 of 3 pairs are dependent (evidence above 12 bits): naive Bayes counts what they share twice.
    """
    shape, table, weight = read_initial_rows(data, target, sample_weight)
    read_labels(table, shape.target).check_complete("Leave the unlabeled rows out.")
    table, columns, names = _single_columns(check_rows(table), shape.target)
    counter = _PairCounter(table, shape.target, weight)
    kinds = [table.kind(name) for name in names]
    categorical = [k for k, kind in enumerate(kinds) if kind == "label"]
    numeric = [k for k, kind in enumerate(kinds) if kind == "number"]
    pairs = [*counter.categorical(names, categorical), *counter.mixed(names, categorical, numeric)]
    if len(numeric) > 1:
        pairs.append(counter.numeric(names, numeric))
    empty = np.zeros(0, dtype=np.intp)
    first, second = (np.concatenate([empty, *(part[side] for part in pairs)]) for side in (0, 1))
    information = Information.joined(part[2] for part in pairs)
    return Dependence(columns, np.minimum(first, second), np.maximum(first, second), information, mass, shape.target)


_Pairs = tuple[np.ndarray, np.ndarray, Information]  # the columns of some pairs as indices, and their information


class _PairCounter:
    """Counts the columns of pairs: by class, or by class and a categorical column."""

    def __init__(self, table: Table, target: Name, weight: np.ndarray | None) -> None:
        self.table = table
        self.target = target
        self.weight = weight
        self.schema = Schema(sorted_domains=(str(target),))
        classes = count(table, [Factor(target, (), Categorical())], weight=weight, schema=self.schema)
        self.n_classes = len(classes.domains[str(target)].levels)
        if not self.n_classes:
            raise DataError("the weight of every row is zero; expected at least one row with weight.")

    def categorical(self, names: Sequence[Name], columns: list[int]) -> Iterator[_Pairs]:
        """Yield the pairs of two categorical columns; columns with most levels first, so that few tables are large."""
        sizes = {k: self._n_levels(names[k]) for k in columns}
        order = sorted(columns, key=lambda k: -sizes[k])
        for i, given in enumerate(order):
            others = order[i + 1 :]
            per_level = self.n_classes * sizes[given]
            for run in _runs(others, [per_level * sizes[k] for k in others]):
                self._check_size(per_level * max(sizes[k] for k in run), names[given], names[run[0]])
                counts = self._count([names[k] for k in run], Categorical(), names[given])
                assert isinstance(counts, Counts)
                information = Information.joined(map(of_labels, counts.segments.split(counts.table)))
                yield np.full(len(run), given), np.array(run), information

    def mixed(self, names: Sequence[Name], categorical: list[int], numeric: list[int]) -> Iterator[_Pairs]:
        """Yield the pairs of a categorical column and a number: moments of the numbers by class and level."""
        for given in categorical if numeric else []:
            per_column = self.n_classes * self._n_levels(names[given])
            self._check_size(per_column, names[given], names[numeric[0]])
            for run in _runs(numeric, [per_column] * len(numeric)):
                moments = self._count([names[k] for k in run], Gaussian(), names[given])
                assert isinstance(moments, Moments)
                yield np.full(len(run), given), np.array(run), _between_levels(moments)

    def numeric(self, names: Sequence[Name], columns: list[int]) -> _Pairs:
        """Return the pairs of two numbers, all at once."""
        chosen = [names[k] for k in columns]
        first, second = np.triu_indices(len(columns), 1)
        cells = self.table.numbers(chosen)
        if any(column.dtype.kind == "f" and np.isnan(column).any() for column in _listed(cells)):
            information = self._observed_pairs(chosen, first, second)
        else:
            self._check_size(self.n_classes * len(columns) ** 2, chosen[0], chosen[-1])
            moments = self._count(chosen, MultivariateGaussian())
            assert isinstance(moments, Moments)
            scatter = moments.scatter
            own = np.diagonal(scatter, axis1=1, axis2=2)
            second_sum = np.diagonal(moments.second_sum.value, axis1=1, axis2=2)
            own = np.where(own > 1e-12 * second_sum, own, 0.0)  # rounding errors of a constant
            weight = np.broadcast_to(moments.weight, (len(scatter), len(first)))
            information = _correlated(scatter[:, first, second], own[:, first], own[:, second], weight)
        index = np.array(columns)
        return index[first], index[second], information

    def _observed_pairs(self, names: list[Name], first: np.ndarray, second: np.ndarray) -> Information:
        """Return the information of numbers with missing cells, each pair from the rows that have both.

        With z the centered cells (0 if missing) and k = 1 if observed, the products of the columns (z, z², k) contain
        all required sums: Σkk', Σzk', Σz²k' and Σzz'.
        """
        d = len(names)
        self._check_size(self.n_classes * (3 * d) ** 2, names[0], names[-1])
        single = self._count(names, Gaussian()).pool_groups()  # raises an error for infinite values, by name
        assert isinstance(single, Moments)
        mean = single.mean
        std = np.sqrt(single.scatter / np.maximum(single.weight, 1.0))
        scale = np.where(std > 1e-12 * np.abs(mean), std, 1.0)
        columns = _listed(self.table.numbers(names))
        target = self.table.encoded(self.target, True)[0].astype(np.int64)
        total: Any = 0
        step = max(1, _CELLS // (3 * d))
        for start in range(0, self.table.n_rows, step):
            part = slice(start, start + step)
            rows = (np.stack([column[part] for column in columns], axis=1).astype(np.float64) - mean) / scale
            observed = ~np.isnan(rows)
            z = np.where(observed, rows, 0.0)
            block = Table({"class": target[part], "block": np.concatenate([z, z**2, observed], axis=1)})
            weight = None if self.weight is None else np.asarray(self.weight)[part]
            factor = Factor("block", ("class",), MultivariateGaussian())
            total = total + count(block, [factor], weight=weight, schema=Schema(sorted_domains=("class",)))
        sums = total["block"].rebase(np.zeros(3 * d)).second_sum.value
        of_z, of_squares, of_observed = (slice(start, start + d) for start in (0, d, 2 * d))

        def over_common_rows(part: slice) -> tuple[np.ndarray, np.ndarray]:
            """Return the sums of the first columns of all pairs, and those of the second columns."""
            by_observed = sums[:, part, of_observed]
            return by_observed[:, first, second], by_observed[:, second, first]

        weight, _ = over_common_rows(of_observed)
        n = np.where(weight > 0, weight, 1.0)
        totals = over_common_rows(of_z)
        scatters = [squares - part**2 / n for squares, part in zip(over_common_rows(of_squares), totals, strict=True)]
        cross = sums[:, of_z, of_z][:, first, second] - totals[0] * totals[1] / n
        scatter_first, scatter_second = (np.where(scatter > 1e-12 * n, scatter, 0.0) for scatter in scatters)
        return _correlated(cross, scatter_first, scatter_second, weight)

    def _count(self, names: Sequence[Name], family: Family, *given: Name) -> Statistics:
        """Return the statistics of some columns by class and other columns."""
        factor = Factor(tuple(names), (self.target, *given), family)
        return count(self.table, [factor], weight=self.weight, schema=self.schema).statistics[0]

    def _n_levels(self, name: Name) -> int:
        return len(self.table.encoded(name)[1].levels)

    def _check_size(self, n_cells: int, first: Name, second: Name) -> None:
        """Raise DataError if a table has too many cells."""
        if n_cells > _MOST_CELLS:
            raise DataError(
                f"columns {first!r} to {second!r} and {self.n_classes} classes form a table of {n_cells} cells; "
                f"expected at most {_MOST_CELLS}.\n    Leave out columns with many levels, or pass fewer columns."
            )


def _single_columns(table: Table, target: Name) -> tuple[Table, list[Any], list[Name]]:
    """Return a table with blocks split into columns, the shown names of the columns, and their names in the table."""
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
        for k in range(table.width(name)):
            columns.append((name, k) if table.is_block(name) else name)
            single[len(columns)] = block[:, k] if table.is_block(name) else block
    return Table({target: table.columns[target], **single}), columns, list(single)


def _runs(columns: list[int], sizes: list[int]) -> Iterator[list[int]]:
    """Yield consecutive columns with at most `_CELLS` cells together, or a single one."""
    run: list[int] = []
    total = 0
    for column, size in zip(columns, sizes, strict=True):
        if run and total + size > _CELLS:
            yield run
            run = []
            total = 0
        run.append(column)
        total += size
    if run:
        yield run


def _listed(columns: Dense | SparseRows) -> list[np.ndarray]:
    return list(columns.T) if isinstance(columns, np.ndarray) else list(columns)  # type: ignore[arg-type]  # sparse blocks were refused


def _ratio(part: np.ndarray, whole: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return part / whole where it is valid, else 0."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=valid)


def _correlated(
    cross: np.ndarray, scatter_first: np.ndarray, scatter_second: np.ndarray, weight: np.ndarray
) -> Information:
    """Return the information of pairs of numbers, from scatter and weight in every class: (classes, pairs)."""
    varies = (scatter_first > 0) & (scatter_second > 0)
    explained = _ratio(cross**2, scatter_first * scatter_second, varies)
    return of_explained(explained, weight, 1.0 * varies, np.full_like(scatter_first, 2.0))


def _between_levels(moments: Moments) -> Information:
    """Return the information of a categorical column and numbers, from the moments by class and level."""
    weight = np.broadcast_to(moments.weight, moments.first_sum.shape)
    total = weight.sum(axis=1)
    n = np.where(total > 0, total, 1.0)
    mean = _ratio(moments.first_sum.value, weight, weight > 0)  # about the anchor, so that no digits are lost
    gap = np.where(weight > 0, mean - (moments.first_sum.value.sum(axis=1) / n)[:, None], 0.0)
    between = (weight * gap**2).sum(axis=1)
    fourth = (weight * gap**4).sum(axis=1)
    within = moments.scatter.sum(axis=1)
    size = np.abs(moments.second_sum.value).sum(axis=1)
    varies = between + within > 1e-13 * size  # otherwise rounding errors of a constant
    n_slopes = np.where(varies, np.maximum((weight > 0).sum(axis=1) - 1.0, 0.0), 0.0)
    tail = np.maximum(_ratio(fourth * n, between**2, between > 0) - 1, 0.0)
    information = of_explained(_ratio(between, between + within, varies), total, n_slopes, tail)
    nats = (xlogy(total, n) - xlogy(weight, weight).sum(axis=1)).sum(axis=0)
    entropy = nats / LOG_2 / np.maximum(total.sum(axis=0), 1e-300)  # of the levels given the class: the upper bound
    return Information(*information[:-1], np.maximum(entropy, 0.0))
