"""Tally: the sufficient statistics of every factor and the levels of every axis. Supports +, −, | and files."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_parts, html_text
from tallybayes.errors import NotForgettableError, StatisticsError, printable, short_repr
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.counts_table import format_counts, format_levels, title, to_records
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor, Name

if TYPE_CHECKING:
    import pandas as pd

_MAX_LINES = 40  # number of factors, and of domains, that `summary` shows


class Tally:
    """The sufficient statistics of every factor of a model, and the levels of its categorical columns.

    Tallies of the same factors can be added and subtracted; their levels are aligned first. A level without remaining
    rows is dropped, unless it was declared. ``a | b`` combines tallies of different factors.

    Parameters
    ----------
    factors : sequence of Factor
        The factors p(columns | given).
    statistics : sequence of Statistics
        One for every factor. The leading axes are the levels of ``given``; the last axis of `Counts` concatenates the
        levels of the columns.
    domains : mapping from name to Domain
        The levels of every categorical column.
    schema : Schema, optional
        Which columns share a domain. By default every column has its own.
    soft : bool, default False
        Whether EM imputed missing values: such a tally can be added, but rows cannot be removed from it.

    Examples
    --------
    >>> import tallybayes as tb
    >>> factors = [tb.Factor("folder", (), tb.Categorical()), tb.Factor("size", "folder", tb.Gaussian())]
    >>> monday = tb.count({"folder": ["inbox", "news"], "size": [3.0, 8.0]}, factors)
    >>> tuesday = tb.count({"folder": ["inbox"], "size": [4.0]}, factors)
    >>> monday + tuesday
    Tally: 2 factors
      p(folder)         Categorical()  weight 3
        folder=inbox  folder=news
                   2            1
      p(size | folder)  Gaussian()     weight 3
        folder  column  weight  mean  scatter
        inbox   size         2   3.5      0.5
        news    size         1     8        0
      folder: 'inbox', 'news'
    >>> monday + tuesday - tuesday == monday
    True
    """

    def __init__(
        self,
        factors: Iterable[Factor],
        statistics: Iterable[Statistics],
        domains: Mapping[str, Domain],
        schema: Schema | None = None,
        *,
        soft: bool = False,
    ) -> None:
        self.soft = soft
        self.factors = tuple(factors)
        self.statistics = tuple(statistics)
        self.domains = dict(domains)
        self.schema = Schema() if schema is None else schema
        if len(self.factors) != len(self.statistics):
            raise StatisticsError.incompatible(
                "the numbers of factors and statistics", len(self.factors), len(self.statistics)
            )
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            expected = tuple(len(self.domain(name).levels) for name in factor.given)
            if statistic.given_shape != expected:
                raise StatisticsError.incompatible(f"the groups of {title(factor)}", statistic.given_shape, expected)
            if isinstance(statistic, Counts) and factor.level_columns:
                sizes = [len(self.domain(name).levels) for name in factor.columns]
                if statistic.segments.sizes.tolist() != sizes:
                    raise StatisticsError.incompatible(
                        f"the levels of {title(factor)}", statistic.segments.sizes.tolist(), sizes
                    )
            for name in factor.word_columns:
                n_columns = statistic.n_columns
                n_words = len(self.domain(name).levels)
                if n_columns != n_words:
                    raise StatisticsError.incompatible(f"the words of {title(factor)}", n_columns, n_words)

    def _with(self, **fields: Any) -> Tally:
        """Return a tally with other values of some fields."""
        return Tally(
            **{
                "factors": self.factors,
                "statistics": self.statistics,
                "domains": self.domains,
                "schema": self.schema,
                "soft": self.soft,
                **fields,
            }
        )

    def domain(self, column: Name) -> Domain:
        """Return the domain of a categorical column."""
        name = self.schema.domain(column)
        if name not in self.domains:
            raise StatisticsError(
                f"column {column!r} has no levels in this tally; expected one of {short_repr(list(self.domains))}."
            )
        return self.domains[name]

    def __getitem__(self, column: Name | tuple[Name, ...]) -> Statistics:
        """Return the statistics of the factor of these columns, or of one column, by name or as (block, position)."""
        wanted = column if isinstance(column, tuple) else (column,)
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            if factor.columns == wanted:
                return statistic
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            n_columns = statistic.n_columns
            index = factor.index_of(wanted[0] if len(wanted) == 1 else column, n_columns)
            if index is not None:
                return statistic.columns(np.array([index]))
        raise KeyError(f"no factor of columns {wanted}; found {[f.columns for f in self.factors]}")

    def _repr_html_(self) -> str:
        """Return the tally as HTML tables."""
        pairs = list(zip(self.factors, self.statistics, strict=True))
        counted = ([title(factor), short_repr(factor.family, 100), _weight(statistic)] for factor, statistic in pairs)
        domains = ([name, len(domain.levels), format_levels(domain)] for name, domain in self.domains.items())
        parts = [("", ["labels", "levels", ""], domains)] if self.domains else []
        texts = (
            f"{title(factor)}\n" + "\n".join(format_counts(self, factor, statistic))
            for factor, statistic in pairs[:_MAX_LINES]
        )
        tables = html_parts((self._heading(), ["counted", "family", "weight"], counted), *parts)
        return tables + html_text("\n".join(texts))

    def _heading(self) -> str:
        """Return the first line of `summary`."""
        return f"Tally: {len(self.factors)} factor{'s' * (len(self.factors) != 1)}"

    def __repr__(self) -> str:
        return self.summary(counts=True)

    def summary(self, *, counts: bool = False) -> str:
        """Return a description of the factors, their families and weights, and of the levels.

        Parameters
        ----------
        counts : bool, default False
            Whether to include the counts; only the first ones of a large factor.
        """
        titles = [title(factor) for factor in self.factors[:_MAX_LINES]]
        families = [short_repr(factor.family, 100) for factor in self.factors[:_MAX_LINES]]
        widths = max(map(len, titles), default=0), max(map(len, families), default=0)
        lines = [self._heading()]
        for name, family, factor, statistic in zip(titles, families, self.factors, self.statistics, strict=False):
            lines.append(f"  {name:<{widths[0]}}  {family:<{widths[1]}}  weight {_weight(statistic):.12g}")
            if counts and len(lines) < _MAX_LINES:
                lines += format_counts(self, factor, statistic)
        lines += [f"  … {len(self.factors) - _MAX_LINES} more"] if len(self.factors) > _MAX_LINES else []
        for name, domain in list(self.domains.items())[:_MAX_LINES]:
            lines.append(f"  {printable(name)}: {format_levels(domain) or 'no levels'}")
        lines += [f"  … {len(self.domains) - _MAX_LINES} more"] if len(self.domains) > _MAX_LINES else []
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return all counts as one table in long format.

        Returns
        -------
        pandas.DataFrame
            One row per number: the ``factor``, the level of every conditioning column, the ``column``, the ``level``
            (of a categorical column), the ``statistic`` and its ``value``. A statistic is a count, weight, total, mean,
            or scatter (sum of squared deviations from the mean).

        Examples
        --------
        >>> import tallybayes as tb
        >>> rows = {"sky": ["sun", "rain", "sun"], "picnic": ["yes", "no", "yes"]}
        >>> tb.NaiveBayes().fit(rows, "picnic").tally_.to_frame().tail(4)
                    factor picnic  column level statistic  value
        2  p(sky | picnic)     no     sky   sun     count    0.0
        3  p(sky | picnic)     no     sky  rain     count    1.0
        4  p(sky | picnic)    yes     sky   sun     count    2.0
        5  p(sky | picnic)    yes     sky  rain     count    0.0
        """
        import pandas as pd

        return pd.DataFrame(to_records(self))

    def __eq__(self, other: object) -> bool:
        return self.isclose(other, 0.0) if isinstance(other, Tally) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def isclose(self, other: Tally, tolerance: float = 1e-12) -> bool:
        """Return whether both have the same levels, in any order, and equal statistics up to `tolerance`."""
        if self.statistics_keys != other.statistics_keys or self.domains != other.domains:
            return False
        aligned = other.align(self.domains).statistics
        return all(left.isclose(right, tolerance) for left, right in zip(self.statistics, aligned, strict=True))

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        left, right = self._aligned_pair(other)
        total = [a + b for a, b in zip(left.statistics, right.statistics, strict=True)]
        return left._with(statistics=total, soft=self.soft or other.soft)

    def __radd__(self, other: object) -> Tally:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # supports sum()

    def __sub__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if self.soft or other.soft:
            raise NotForgettableError.soft()
        left, right = self._aligned_pair(other)
        for factor, held, removed in zip(self.factors, left.statistics, right.statistics, strict=True):
            deficit = held.first_deficit(removed)
            if deficit is not None:
                index, quantity, have, take = deficit
                raise StatisticsError.removes_too_much(left._describe_cell(factor, held, index), quantity, have, take)
        difference = [a - b for a, b in zip(left.statistics, right.statistics, strict=True)]
        return left._with(statistics=difference).drop_unseen_levels()

    def __or__(self, other: Tally) -> Tally:
        """Combine the factors of two tallies; the levels of shared domains are aligned."""
        if not isinstance(other, Tally):
            return NotImplemented
        keys = {factor.statistics_key[:2] for factor in other.factors}
        for factor in self.factors:
            if factor.statistics_key[:2] in keys:
                raise StatisticsError(
                    f"both tallies have the factor {title(factor)}; expected different factors.\n    Use + to add them."
                )
        domains = self._union_of_domains(other)
        schema = Schema(
            dict(self.schema.domains) | dict(other.schema.domains),
            tuple(dict.fromkeys(self.schema.sorted_domains + other.schema.sorted_domains)),
            tuple(dict.fromkeys(self.schema.missing_level_domains + other.schema.missing_level_domains)),
        )
        statistics = self.align(domains).statistics + other.align(domains).statistics
        return Tally(self.factors + other.factors, statistics, domains, schema, soft=self.soft or other.soft)

    def scale(self, factor: float) -> Tally:
        """Multiply every count by `factor`, as if all sample weights were multiplied by it."""
        scaled = [part.scale(factor) for part in self.statistics]
        return self._with(statistics=scaled).drop_unseen_levels()

    def with_factors(self, factors: Iterable[Factor]) -> Tally:
        """Return the same statistics with other priors, or families that keep the same statistics."""
        factors = tuple(factors)
        if tuple(factor.statistics_key for factor in factors) != self.statistics_keys:
            raise factors_differ(self.factors, factors)
        return self._with(factors=factors)

    def renamed(self, old: Name, new: Name) -> Tally:
        """Rename a column, and its domain unless other columns share it."""

        def names(columns: tuple[Name, ...]) -> tuple[Name, ...]:
            """Return the column names after renaming."""
            return tuple(new if name == old else name for name in columns)

        factors = [Factor(names(f.columns), names(f.given), f.family, f.prior) for f in self.factors]
        domains = {str(new) if name == str(old) else name: domain for name, domain in self.domains.items()}
        if str(old) in self.domains:
            domains[str(new)] = self.domains[str(old)].renamed(str(new))
        ordered = tuple(str(new) if name == str(old) else name for name in self.schema.sorted_domains)
        schema = Schema(self.schema.domains, ordered, self.schema.missing_level_domains)
        return self._with(factors=factors, domains=domains, schema=schema)

    def drop_unseen_levels(self) -> Tally:
        """Drop the levels without rows that were not declared."""
        present = {name: np.zeros(len(domain.levels), dtype=bool) for name, domain in self.domains.items()}
        incomplete = {name for name, mask in present.items() if len(mask)}  # domains with a level without rows so far
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            names = {self.schema.domain(name) for name in (*factor.given, *factor.level_columns, *factor.word_columns)}
            if incomplete.isdisjoint(names):
                continue
            for column, weight in weights_of_levels(factor, statistic):
                present[self.schema.domain(column)] |= weight > 0
            incomplete -= {name for name in names if present[name].all()}
        if not incomplete:
            return self
        return self.align({name: domain.filter(present[name]) for name, domain in self.domains.items()})

    def declare(self, column: Name, levels: Iterable[Any]) -> Tally:
        """Declare levels of a column: they exist even without rows."""
        name = self.schema.domain(column)
        old = self.domains[name]
        more = Domain(levels, old.name, is_sorted=old.is_sorted)
        return self.align(self.domains | {name: old.union(Domain(more.levels, old.name, declared=more.levels))})

    def reindex_like(self, other: Tally) -> Tally:
        """Return the same counts over another tally's levels: new levels are empty, levels it lacks are dropped."""
        if self.statistics_keys != other.statistics_keys:
            raise factors_differ(self.factors, other.factors)
        self._union_of_domains(other)  # raises LabelError if the kinds of levels differ
        return self.align(other.domains)

    def drop_level(self, column: Name, level: Hashable) -> Tally:
        """Remove a level with its rows, and the levels of other columns that only these rows had."""
        name = self.schema.domain(column)
        old = self.domains[name]
        kept = [other for other in old.levels if other != level]
        domain = old.with_levels(kept, declared=old.declared - {level})
        return self.align(self.domains | {name: domain}).drop_unseen_levels()

    def small_counts(self, below: float = 5.0) -> list[tuple[str, float]]:
        """Return the cells with small counts, smallest first, to review before a tally is shared.

        A tally contains no rows, but a count of 1 describes a single row, as do the sums of a group of one row.

        Parameters
        ----------
        below : float, default 5
            Counts above 0 and below this threshold are returned.

        Returns
        -------
        list of pairs
            Description of the cell, and its count.

        Examples
        --------
        >>> import tallybayes as tb
        >>> factors = [tb.Factor("ward", (), tb.Categorical()), tb.Factor("age", "ward", tb.Gaussian())]
        >>> tb.count({"ward": ["A", "A", "B"], "age": [40.0, 50.0, 73.0]}, factors).small_counts(2)
        [("ward 'B'", 1.0), ("ward 'B', column 'age'", 1.0)]
        """
        small = []
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            parts = statistic.nonnegative()
            suffixes: dict[str, str] = {"successes": " = yes", "failures": " = no"}
            names = [name for name in suffixes if name in parts][: 1 if factor.word_columns else 2]
            for name in names or (["total"] if factor.word_columns else list(parts)[:1]):
                counts = np.asarray(parts[name])
                suffix = suffixes.get(name, "")
                for position in np.argwhere((counts > 0) & (counts < below)):
                    index = tuple(int(i) for i in position)
                    small.append((self._describe_cell(factor, statistic, index) + suffix, float(counts[index])))
        return sorted(small, key=lambda pair: pair[1])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tally to a file with a checksum, which `tb.load` reads.

        Parameters
        ----------
        path : str or path-like
        """
        from tallybayes.tally.tally_io import save_tally

        save_tally(self, path)

    @property
    def statistics_keys(self) -> tuple[Any, ...]:
        """Columns and layout of the statistics of every factor. Tallies with equal keys can be added."""
        return tuple(factor.statistics_key for factor in self.factors)

    def _union_of_domains(self, other: Tally) -> dict[str, Domain]:
        """Return the domains of both, with the union of the levels of shared ones."""
        domains = dict(self.domains)
        for name, domain in other.domains.items():
            domains[name] = domains[name].union(domain) if name in domains else domain
        return domains

    def _aligned_pair(self, other: Tally) -> tuple[Tally, Tally]:
        """Return both over the same levels and in the same order of factors and columns."""
        other = other._in_order_of(self)
        domains = self._union_of_domains(other)
        return self.align(domains), other.align(domains)

    def _in_order_of(self, other: Tally) -> Tally:
        """Return the same counts with factors and their columns in the order of `other`, which has the same ones."""
        if self.statistics_keys == other.statistics_keys:
            return self
        positions = {(frozenset(f.columns), *f.statistics_key[1:]): k for k, f in enumerate(self.factors)}
        order = [positions.get((frozenset(f.columns), *f.statistics_key[1:])) for f in other.factors]
        if None in order or len(set(order)) != len(self.factors) or len(order) != len(self.factors):
            raise factors_differ(other.factors, self.factors)
        statistics = []
        for factor, k in zip(other.factors, order, strict=True):
            columns = self.factors[k].columns  # type: ignore[index]
            statistic = self.statistics[k]  # type: ignore[index]
            if columns != factor.columns:
                statistic = statistic.columns(np.array([columns.index(name) for name in factor.columns], dtype=np.intp))
            statistics.append(statistic)
        return self._with(factors=other.factors, statistics=statistics)

    def align(self, domains: Mapping[str, Domain]) -> Tally:
        """Return the same statistics over other levels: new levels are empty, levels not in `domains` are dropped."""
        source = {
            name: None if domain.levels == self.domains[name].levels else self.domains[name].positions_of(domain.levels)
            for name, domain in domains.items()
            if name in self.domains
        }
        statistics: Iterable[Statistics] = self.statistics
        if any(positions is not None for positions in source.values()) or source.keys() != domains.keys():
            statistics = (
                realign(
                    factor, statistic, {c: source.get(self.schema.domain(c)) for c in factor.given + factor.columns}
                )
                for factor, statistic in zip(self.factors, self.statistics, strict=True)
            )
        return self._with(statistics=statistics, domains=domains)

    def _describe_cell(self, factor: Factor, statistic: Statistics, index: tuple[int, ...]) -> str:
        """Return a description of a cell of a statistic: its group, and its level or column."""
        names = [f"{c} {self.domain(c).levels[i]!r}" for c, i in zip(factor.given, index, strict=False)]
        last = index[-1]
        if isinstance(statistic, Counts):
            column = int(np.searchsorted(statistic.segments.offsets, last, side="right")) - 1
            position = last - int(statistic.segments.offsets[column])
            if factor.level_columns:
                names.append(f"{factor.columns[column]} {self.domain(factor.columns[column]).levels[position]!r}")
            else:
                names.append(f"column {factor.column(column, statistic.n_columns)!r}, bin {position}")
        elif factor.word_columns and last < len(self.domain(factor.columns[0]).levels):
            names.append(f"word {self.domain(factor.columns[0]).levels[last]!r} of {factor.columns[0]!r}")
        elif len(factor.columns) > 1:
            names.append(f"column {factor.columns[last]!r}" if last < len(factor.columns) else f"column {last}")
        else:
            names.append(f"column {factor.columns[0]!r}")
        return ", ".join(names)


def realign(factor: Factor, statistic: Statistics, source: Mapping[Name, np.ndarray | None]) -> Statistics:
    """Return statistics over other levels.

    ``source[column]`` has the old position of every new level, −1 for a level that is new. None keeps the levels.
    """
    for axis, column in enumerate(factor.given):
        positions = source[column]
        if positions is not None:
            statistic = statistic.take(axis, positions)
    if isinstance(statistic, Counts) and any(source[column] is not None for column in factor.level_columns):
        segments = statistic.segments
        cells = []
        for column, start, size in zip(factor.columns, segments.offsets, segments.sizes, strict=False):
            positions = source[column]
            local = np.arange(size) if positions is None else positions
            cells.append(np.where(local < 0, -1, local + start))
        statistic = statistic.take_cells(np.concatenate(cells), Segments([len(part) for part in cells]))
    for column in factor.word_columns:
        words = source[column]
        if words is not None:
            statistic = statistic.take_columns(words)  # type: ignore[attr-defined]
    return statistic


def weights_of_levels(factor: Factor, statistic: Statistics) -> Iterator[tuple[Name, np.ndarray]]:
    """Yield the weight of every level or word of every column: of the groups, and of the counted columns."""
    weight = statistic.group_weights()
    for axis, column in enumerate(factor.given):
        yield column, weight.sum(axis=tuple(a for a in range(weight.ndim) if a != axis))
    if isinstance(statistic, Counts) and factor.level_columns:
        yield from zip(factor.columns, statistic.segments.split(statistic.pool_groups().table), strict=True)
    for column in factor.word_columns:
        yield column, statistic.pool_groups().total  # type: ignore[attr-defined]


def factors_differ(left: Sequence[Factor], right: Sequence[Factor]) -> StatisticsError:
    """Return the error for different factors, which names those that only one side has."""
    both = {factor.statistics_key for factor in left} & {factor.statistics_key for factor in right}
    only = [[factor for factor in side if factor.statistics_key not in both] for side in (left, right)]
    if not any(only):
        return StatisticsError.incompatible("the orders of the factors", _titles(left), _titles(right))
    return StatisticsError.incompatible("the factors", *map(_titles, only))


def _titles(factors: Sequence[Factor], most: int = 3) -> str:
    """Return the first factors as text."""
    shown = "; ".join(f"{title(factor)} {factor.family!r}" for factor in factors[:most])
    return f"{shown}; … {len(factors) - most} more" if len(factors) > most else shown or "no other"


def _weight(statistic: Statistics) -> float:
    """Return the total weight of a statistic: the largest of its columns."""
    return float(np.max(statistic.pool_groups().weight, initial=0.0))  # type: ignore[attr-defined]
