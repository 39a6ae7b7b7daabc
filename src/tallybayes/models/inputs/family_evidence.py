"""The length of a column's code in every family that it allows, by all rows and without each fold."""

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
from tallybayes.tally.factor import Factor, Name

_BINS = (4, 8, 16)  # numbers of bins that are tried
MOST_LEVELS = 50  # whole numbers with more different values are not tried as labels
MOST_ROWS = 20_000  # families are chosen from no more rows than these


class FamilySelectionRows(NamedTuple):
    """The rows that families are chosen from, and how they fall into classes."""

    table: Table
    group: np.ndarray | None  # the fold and class of every row as one number
    n_folds: int
    n_classes: int
    weight: np.ndarray | None
    subsampling_factor: float  # how many rows each of these stands for
    source: Table  # all rows
    there: np.ndarray | None  # which rows of the table count, where not all do

    @classmethod
    def of(
        cls, table: Table, target: Name | None, weight: np.ndarray | None, fold: np.ndarray | None = None
    ) -> FamilySelectionRows:
        """All rows that count, or a random sample that is large enough to choose by."""
        codes = None if target is None else np.asarray(table.levels([target], lambda _: True)[0].columns[0])
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
            group = (np.cumsum(seen) - 1)[codes]  # classes without a row are none
        if group is not None and fold is not None:
            group = group + n_classes * fold.astype(np.intp)
        thinned = n_rows / max(1, table.n_rows)
        if source.n_sampled_from is not None:
            thinned *= source.n_sampled_from / source.n_rows
        return cls(table, group, n_folds, n_classes, weight, thinned, source, there)

    @property
    def n_groups(self) -> int:
        """The number of folds times that of classes."""
        return self.n_folds * self.n_classes

    def without_folds(self, counted: np.ndarray) -> np.ndarray:
        """Counts of groups without each fold, and of all rows: (folds + 1, classes, …)."""
        return leave_fold_out(counted.reshape(self.n_folds, self.n_classes, *counted.shape[1:]))

    def refuse(self, names: Sequence[Name]) -> None:
        """Refuse columns with a number of which there are no moments, by its row and column."""
        count(self.source, [Factor(list(names), (), Gaussian())])

    def numbers(self, name: Name) -> ColumnValues:
        """The different values of a column of numbers."""
        block: Any = self.table.numbers([name])
        column = np.ascontiguousarray(block[:, 0] if isinstance(block, np.ndarray) else block[0], dtype=np.float64)
        order = np.argsort(column)
        every = column[order]
        n_known = int(every.searchsorted(np.nan))  # they are last
        every = every[:n_known]
        order = order[:n_known]
        if n_known and not (math.isfinite(every[0]) and math.isfinite(every[-1])):
            self.refuse([name])
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
        """How often every group has each label of a column, (groups, labels)."""
        size = int(one.values[-1]) + 1
        return kernels.count_codes([one.column], [size], self.group, self.n_groups, self.weight)[:, one.values]

    def sums(self, cells: np.ndarray) -> np.ndarray:
        """The weighted sum over the cells of every group that are there."""
        group = np.zeros(len(cells), dtype=np.intp) if self.group is None else self.group
        cells = np.where(np.isnan(cells), 0.0, cells)
        return np.bincount(group, cells if self.weight is None else cells * self.weight, self.n_groups)

    def absence(self, there: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
        """By how many bits it is shorter to say for every class how often a column is there than for all together.

        Where it is known whether another one is there, in both cases apart. Without each fold, and by all rows.
        """
        assert self.group is not None
        cell = there + 2 * self.group + (0 if other is None else 2 * self.n_groups * other)
        counts = np.bincount(cell, self.weight, minlength=4 * self.n_groups)
        table = leave_fold_out(counts.reshape(2, self.n_folds, self.n_classes, 2).swapaxes(0, 1))
        apart, pooled = (betaln(part[..., 0] + 1, part[..., 1] + 1) for part in (table, table.sum(axis=2)))
        return np.asarray(apart.sum(axis=(1, 2)) - pooled.sum(axis=1)) / math.log(2)

    def labels(self, name: Name) -> ColumnValues:
        """The different labels of a column, as codes."""
        codes, _ = self.table.levels([name], lambda _: False)
        column = np.asarray(codes.columns[0])
        times = kernels.count_codes([column], codes.sizes, None, 1, self.weight)[0]
        seen = np.flatnonzero(times)
        return ColumnValues(name, ValueCounts(seen, times[seen]), int(np.count_nonzero(column >= 0)), column)


def family_code_lengths(
    rows: FamilySelectionRows, seen: Sequence[ColumnValues]
) -> dict[Name, list[tuple[Family, np.ndarray]]]:
    """Every family that was tried for a column, with its code length in nats; at equal evidence the first is meant.

    A length for each of the folds, without it, and the last for all rows.
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
    """−log of the evidence of columns of whole numbers in one family."""
    if not columns:
        return np.zeros((0, 1))
    cells = [one.column if one.is_number else np.where(one.column < 0, np.nan, one.column) for one in columns]
    collected = family.collect(cells, rows.group, rows.n_groups, rows.weight)
    return _of(family, folds_as_columns(collected, rows.n_folds), len(columns))


def _of(family: Family, statistics: Any, n_columns: int) -> np.ndarray:
    """−log of the evidence of all classes, (columns, folds + 1), from folds as columns."""
    evidence = np.asarray(family.log_evidence(family.resolve_prior(None, statistics, "bayes"), statistics))
    by_column = evidence.reshape(statistics.given_shape[0], statistics.n_columns).sum(axis=0)
    return -by_column.reshape(-1, n_columns).T


def _measured_evidence(
    rows: FamilySelectionRows,
    numbers: Sequence[ColumnValues],
    positive: Sequence[ColumnValues],
    whole: dict[Name, bool],
) -> np.ndarray:
    """−log of the evidence of columns as Gaussian ones, then of those above 0 as log-normal ones, all at once.

    Whole numbers are spread evenly over cells of width 1. That adds 1/12 to the variance, or 1/(12x²) to that of the
    logarithm: the square of its slope. By Jensen's inequality the density of what is so spread is no more than the
    probability of the cells, which has no closed form. A log-normal column is a Gaussian one of logarithms, each with
    a density of x that is 1/x of it.
    """
    if not numbers:
        return np.zeros((0, 1))
    family = Gaussian()
    logs = [np.log(one.column) for one in positive]
    width = len(numbers) + len(logs)
    try:
        moments = family.collect([*(one.column for one in numbers), *logs], rows.group, rows.n_groups, rows.weight)
    except CellError:  # squares of a number are not finite
        rows.refuse([one.name for one in numbers])
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
    """How often levels occur in all classes, (folds + 1, levels), and −log of their evidence, (folds + 1,)."""
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
    """Add what the values in open bins take, in nats, more than if they were spread evenly over ones of that width.

    How far they lie beyond their edge is exponential, with a rate of which as much is known beforehand as one value at
    that distance tells: so their code is one, and still no single value decides about it. Of every open bin: where to
    add it, how many values there are, how far they lie in all in every group, and the width.
    """
    if not beyond:
        return
    _, n, far, width = (np.array(part) for part in zip(*beyond, strict=True))
    by_fold = np.abs(far).reshape(len(far), rows.n_folds, -1).sum(axis=2)
    more = (n + 1) * np.log1p(leave_fold_out(by_fold.T).T / width[:, None]) - gammaln(n + 1)
    for (nats, *_), length in zip(beyond, more, strict=True):
        nats += length


def _log_choose(n: float, k: float) -> float:
    """What naming k places among n costs, in nats: edges of bins, or whole numbers that are labels."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
