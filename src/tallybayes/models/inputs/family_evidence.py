"""The description length of a column in every family that supports it, for all rows and without each fold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from tallybayes import kernels
from tallybayes.data.counting import count
from tallybayes.data.sampling import sampled_rows
from tallybayes.data.table import Table
from tallybayes.errors import CellError
from tallybayes.estimation.resampling.fold_statistics import folds_as_columns, leave_fold_out
from tallybayes.families._shared.bin_edges import ValueCounts, quantile_cuts, with_outer_edges
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.binned import Binned
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.poisson import Poisson
from tallybayes.models.inputs.uninformative_columns import ColumnValues, Ranked
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.factor import Factor, Name

_BINS = (4, 8, 16)  # numbers of bins to try
MOST_LEVELS = 50  # integers with more distinct values are not tried as categories
MOST_ROWS = 20_000  # rows from which families are selected


class FamilySelectionRows(NamedTuple):
    """The rows from which families are selected, and their classes."""

    table: Table
    group: np.ndarray | None  # fold and class of every row as one number
    n_folds: int
    n_classes: int
    weight: np.ndarray | None
    subsampling_factor: float  # number of rows that each of these represents
    source: Table  # all rows
    there: np.ndarray | None  # which rows of the table are used, if not all

    @classmethod
    def of(
        cls, table: Table, target: Name | None, weight: np.ndarray | None, fold: np.ndarray | None = None
    ) -> FamilySelectionRows:
        """Return all rows with positive weight, or a random sample of them."""
        codes = None if target is None else table.encoded(target, True)[0]
        codes = None if codes is None or not len(codes) or codes.max() < 0 else codes
        there = None if weight is None or weight.all() else weight > 0
        if codes is not None and codes.min() < 0:
            there = codes >= 0 if there is None else there & (codes >= 0)
        part = None if there is None else np.flatnonzero(there)
        source = table
        n_rows = table.n_rows if part is None else len(part)
        if n_rows > MOST_ROWS:
            some = sampled_rows(n_rows, MOST_ROWS)
            part = some if part is None else part[some]
        if part is not None:
            table = table.rows(part)
            weight, codes, fold = (None if each is None else each[part] for each in (weight, codes, fold))
        n_classes = 1
        n_folds = 1 if fold is None else int(fold.max()) + 1
        group = None if codes is None and fold is None else np.zeros(table.n_rows, dtype=np.intp)
        if group is not None and codes is not None:
            seen = np.bincount(codes) > 0
            n_classes = int(seen.sum())
            group = (np.cumsum(seen) - 1)[codes]  # classes without rows are dropped
        if group is not None and fold is not None:
            group = group + n_classes * fold.astype(np.intp)
        thinned = n_rows / max(1, table.n_rows)
        if source.n_sampled_from is not None:
            thinned *= source.n_sampled_from / source.n_rows
        return cls(table, group, n_folds, n_classes, weight, thinned, source, there)

    @property
    def n_groups(self) -> int:
        """The number of folds times the number of classes."""
        return self.n_folds * self.n_classes

    def without_folds(self, counted: np.ndarray) -> np.ndarray:
        """Return counts of groups without each fold, and of all rows: (folds + 1, classes, …)."""
        return leave_fold_out(counted.reshape(self.n_folds, self.n_classes, *counted.shape[1:]))

    def check_moments(self, names: Sequence[Name]) -> None:
        """Raise DataError for a number without finite moments; name its row and column."""
        count(self.source, [Factor(list(names), (), Gaussian())])

    def numbers(self, name: Name) -> ColumnValues:
        """Return the distinct values of a numeric column."""
        block: Any = self.table.numbers([name])
        column = np.ascontiguousarray(block[:, 0] if isinstance(block, np.ndarray) else block[0], dtype=np.float64)
        order = np.argsort(column)
        every = column[order]
        n_known = int(every.searchsorted(np.nan))  # NaN is last
        every = every[:n_known]
        order = order[:n_known]
        if n_known and not (math.isfinite(every[0]) and math.isfinite(every[-1])):
            self.check_moments([name])
        weight = None if self.weight is None else self.weight[order]
        ranked = Ranked(every, None if self.group is None else self.group[order], self.n_groups, weight)
        new = np.ones(n_known, dtype=bool)
        np.not_equal(every[1:], every[:-1], out=new[1:])
        if weight is None and new.all():
            return ColumnValues(name, ValueCounts(every, np.ones(n_known)), n_known, column, ranked)
        starts = np.flatnonzero(new)
        if weight is None:
            times = np.diff(starts, append=n_known).astype(np.float64)
        else:
            times = np.add.reduceat(weight, starts) if len(starts) else weight
        return ColumnValues(name, ValueCounts(every[starts], times), n_known, column, ranked)

    def table_of(self, one: ColumnValues) -> np.ndarray:
        """Return the counts of the levels of a column by group, (groups, levels)."""
        size = int(one.values[-1]) + 1
        return kernels.count_codes([one.column], [size], self.group, self.n_groups, self.weight)[:, one.values]

    def sums(self, cells: np.ndarray) -> np.ndarray:
        """Return the weighted sum over the observed cells of every group."""
        group = np.zeros(len(cells), dtype=np.intp) if self.group is None else self.group
        cells = np.where(np.isnan(cells), 0.0, cells)
        return np.bincount(group, cells if self.weight is None else cells * self.weight, self.n_groups)

    def absence(self, there: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
        """Return the bits saved by one probability of a missing value per class instead of one for all classes.

        If the presence of another column is known, both cases are separate. Without each fold, and for all rows.
        """
        assert self.group is not None
        cell = there + 2 * self.group + (0 if other is None else 2 * self.n_groups * other)
        counts = np.bincount(cell, self.weight, minlength=4 * self.n_groups)
        table = leave_fold_out(counts.reshape(2, self.n_folds, self.n_classes, 2).swapaxes(0, 1))
        apart, pooled = (betaln(part[..., 0] + 1, part[..., 1] + 1) for part in (table, table.sum(axis=2)))
        return np.asarray(apart.sum(axis=(1, 2)) - pooled.sum(axis=1)) / math.log(2)

    def labels(self, name: Name) -> ColumnValues:
        """Return the codes of a categorical column."""
        column, domain = self.table.encoded(name)
        times = kernels.count_codes([column], [len(domain.levels)], None, 1, self.weight)[0]
        seen = np.flatnonzero(times)
        return ColumnValues(name, ValueCounts(seen, times[seen]), int(np.count_nonzero(column >= 0)), column)


def family_code_lengths(
    rows: FamilySelectionRows, seen: Sequence[ColumnValues]
) -> dict[Name, list[tuple[Family, np.ndarray]]]:
    """Return the description lengths of a column in nats, by family, in order of preference for equal lengths.

    Every family has a length without each of the folds, and the last for all rows.
    """
    found: dict[Name, list[tuple[Family, np.ndarray]]] = {one.name: [] for one in seen}
    numbers = [one for one in seen if one.is_number]
    labels = [one for one in seen if not one.is_number]
    whole = {one.name: one.cells.is_integer for one in numbers}
    counts = [one for one in numbers if whole[one.name] and one.values[0] >= 0]
    coins = [one for one in counts if one.values[-1] <= 1]
    coins += [one for one in labels if _is_bool(rows.table, one.name)]
    positive = [one for one in numbers if one.values[0] > 0]

    def add(family: Family, columns: Sequence[ColumnValues], nats: Iterable[np.ndarray]) -> None:
        for one, length in zip(columns, nats, strict=True):
            found[one.name].append((family, length))

    tables = [rows.table_of(one) for one in labels]
    cuts_of: list[tuple[ColumnValues, list[tuple[float, ...]]]] = []
    by_value: list[ColumnValues] = []
    for one in numbers:
        cuts = [cuts for cuts in dict.fromkeys(quantile_cuts(one.cells, n) for n in _BINS) if cuts]
        is_few = whole[one.name] and len(one.values) <= MOST_LEVELS
        by_value += [one] if is_few else []
        cuts_of.append((one, cuts))
        tables += one.ranked.counts(  # type: ignore[union-attr]
            [*([one.values[1:]] if is_few else []), *map(np.array, cuts)]
        )
    lengths = iter(_level_evidence(rows, tables))
    add(Categorical(), labels, (next(lengths)[1] for _ in labels))
    measured = _measured_evidence(rows, numbers, positive, whole)
    add(Gaussian(), numbers, measured[: len(numbers)])
    add(Bernoulli(), coins, _evidence(rows, Bernoulli(), coins))
    add(Poisson(), counts, _evidence(rows, Poisson(), counts))
    logs = dict(zip((one.name for one in positive), measured[len(numbers) :], strict=True))
    names_by_value = {one.name for one in by_value}
    beyond: list[tuple[np.ndarray, np.ndarray, np.ndarray, float]] = []
    for one, proposed in cuts_of:
        width = one.values[-1] - one.values[0]
        if one.name in names_by_value:
            add(Categorical(), [one], [next(lengths)[1] + _log_choose(width + 1, len(one.values))])
        if one.name in logs:
            add(LogNormal(), [one], [logs[one.name]])
        for each in proposed:
            (table, nats), family = next(lengths), Binned(with_outer_edges(one.cells, each))
            nats = nats + table @ np.log(family.widths)
            nats += _log_choose(width if whole[one.name] else len(one.values) - 1, len(each))
            for end, size in family.open_bins:
                below = end[0] == -math.inf
                far = one.ranked.sums(end[1] if below else end[0], below=below)  # type: ignore[union-attr]
                beyond.append((nats, table[:, 0 if below else -1], far, size))
            add(family, [one], [nats])
    _add_beyond(rows, beyond)
    return found


def _is_bool(table: Table, name: Name) -> bool:
    column = table.columns[name]
    return str(getattr(column, "dtype", None)) == "bool" or str(getattr(column, "type", "")) == "bool"


def _evidence(rows: FamilySelectionRows, family: Family, columns: Sequence[ColumnValues]) -> np.ndarray:
    """Return the negative log evidence of integer columns in one family."""
    if not columns:
        return np.zeros((0, 1))
    cells = [one.column if one.is_number else np.where(one.column < 0, np.nan, one.column) for one in columns]
    collected = family.collect(cells, rows.group, rows.n_groups, rows.weight)
    return _of(family, folds_as_columns(collected, rows.n_folds), len(columns))


def _of(family: Family, statistics: Statistics, n_columns: int) -> np.ndarray:
    """Return the negative log evidence of all classes, (columns, folds + 1), from folds as columns."""
    evidence = np.asarray(family.log_evidence(family.resolve_prior(None, statistics, "bayes"), statistics))
    by_column = evidence.reshape(statistics.given_shape[0], statistics.n_columns).sum(axis=0)
    return -by_column.reshape(-1, n_columns).T


def _measured_evidence(
    rows: FamilySelectionRows,
    numbers: Sequence[ColumnValues],
    positive: Sequence[ColumnValues],
    whole: dict[Name, bool],
) -> np.ndarray:
    """Return the negative log evidence of columns as Gaussian and, if positive, as log-normal.

    Integers are spread uniformly over cells of width 1. This adds 1/12 to the variance, or 1/(12x²) to that of the
    logarithm: the square of its slope. By Jensen's inequality the density of the spread values is a lower bound of the
    probability of the cells, which has no closed form. A log-normal column is a Gaussian column of logarithms; its
    density has the Jacobian 1/x.
    """
    if not numbers:
        return np.zeros((0, 1))
    family = Gaussian()
    logs = [np.log(one.column) for one in positive]
    width = len(numbers) + len(logs)
    try:
        moments = family.collect([*(one.column for one in numbers), *logs], rows.group, rows.n_groups, rows.weight)
    except CellError:  # squares of a number are not finite
        rows.check_moments([one.name for one in numbers])
        raise
    if any(whole.values()):
        weight = np.broadcast_to(moments.weight, moments.first_sum.shape)
        added = np.zeros(weight.shape)
        for place, one in enumerate(numbers):
            added[:, place] = weight[:, place] if whole[one.name] else 0.0
        for place, one in enumerate(positive, start=len(numbers)):
            added[:, place] = rows.sums(1 / one.column**2) if whole[one.name] else 0.0
        moments = moments.with_scatter(added / 12)
    moments = folds_as_columns(moments, rows.n_folds)
    nats = _of(family, moments, width)
    jacobian = (moments.mean * moments.weight).sum(axis=0).reshape(-1, width).T
    nats[len(numbers) :] += jacobian[len(numbers) :]
    return nats


def _level_evidence(rows: FamilySelectionRows, tables: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return the counts of levels, (folds + 1, levels), and their negative log evidence, (folds + 1,)."""
    if not tables:
        return
    counts = rows.without_folds(np.concatenate(tables, axis=1))
    sizes = [table.shape[1] for table in tables]
    flat = counts.swapaxes(0, 1).reshape(rows.n_classes, -1)
    nats = _of(Categorical(), Counts(flat, np.tile(sizes, len(counts))), len(tables))
    pooled = counts.sum(axis=1)
    ends = np.cumsum([0, *sizes])
    for place, length in enumerate(nats):
        yield pooled[:, ends[place] : ends[place + 1]], length


def _add_beyond(rows: FamilySelectionRows, beyond: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray, float]]) -> None:
    """Add the code length of values in open bins, in nats, beyond that of a uniform distribution over an equal width.

    The distance from the edge is exponential, with a prior of one value at the mean distance; so no single value
    decides. Every open bin has: where to add it, the number of values, the sum of their distances by group, and the
    width.
    """
    if not beyond:
        return
    _, n, far, width = (np.array(part) for part in zip(*beyond, strict=True))
    by_fold = np.abs(far).reshape(len(far), rows.n_folds, -1).sum(axis=2)
    more = (n + 1) * np.log1p(leave_fold_out(by_fold.T).T / width[:, None]) - gammaln(n + 1)
    for (nats, *_), length in zip(beyond, more, strict=True):
        nats += length


def _log_choose(n: float, k: float) -> float:
    """Return log of n choose k, in nats: the code length of k bin edges among n positions."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
