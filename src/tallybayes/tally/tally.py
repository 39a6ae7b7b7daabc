"""Tally: the statistics of every factor, and the labels of every axis. It adds, subtracts and travels in files."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_parts, html_text
from tallybayes.errors import NotForgettableError, StatisticsError, printable, short_repr
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.sufficient_statistics import Statistics, first_deficit_of
from tallybayes.tally.counts_table import levels_of, lines_of, title, to_records
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

_MOST_LINES = 40  # factors, and domains, that are shown


class Tally:
    """All that a model keeps of its data.

    Tallies of the same factors add and subtract; their levels are united first, so neither side needs to have seen
    them all. A level whose last row is taken out disappears, unless it was declared. ``a | b`` puts tallies of
    different factors side by side.

    Parameters
    ----------
    factors : sequence of Factor
    statistics : sequence of Statistics
        One for every factor; leading axes are the domains of ``given``, a `Counts`' last axis the columns' levels.
    domains : mapping from name to Domain
    schema : Schema, optional
    soft : bool, default False
        Whether EM filled in what was missing: such a tally adds, but nothing can be taken out of it.

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
            expected = tuple(len(self._domain(name).levels) for name in factor.given)
            if statistic.given_shape != expected:
                raise StatisticsError.incompatible(f"the groups of {title(factor)}", statistic.given_shape, expected)
            if isinstance(statistic, Counts) and factor.level_columns:
                sizes = [len(self._domain(name).levels) for name in factor.columns]
                if statistic.segments.sizes.tolist() != sizes:
                    raise StatisticsError.incompatible(
                        f"the levels of {title(factor)}", statistic.segments.sizes.tolist(), sizes
                    )
            for name in factor.word_columns:
                found, n_words = int(statistic.n_columns), len(self._domain(name).levels)  # type: ignore[attr-defined]
                if found != n_words:
                    raise StatisticsError.incompatible(f"the words of {title(factor)}", found, n_words)

    def _domain(self, column: Name) -> Domain:
        """Return the domain of a column."""
        name = self.schema.domain(column)
        if name not in self.domains:
            raise StatisticsError(f"no domain {name!r} for column {column!r}; found {list(self.domains)}.")
        return self.domains[name]

    def __getitem__(self, column: Name | tuple[Name, ...]) -> Statistics:
        """The statistics of the factor of these columns; of one column of several, or (block, place), its own."""
        wanted = column if isinstance(column, tuple) else (column,)
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            if factor.columns == wanted:
                return statistic
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            place = factor.index_of(wanted[0] if len(wanted) == 1 else column, int(statistic.n_columns))  # type: ignore[attr-defined]
            if place is not None:
                return statistic.columns(np.array([place]))
        raise KeyError(f"no factor of columns {wanted}; found {[f.columns for f in self.factors]}")

    def _repr_html_(self) -> str:
        factors = zip(self.factors, self.statistics, strict=True)
        counted = ([title(factor), short_repr(factor.family, 100), _rows(found)] for factor, found in factors)
        domains = ([name, len(domain.levels), levels_of(domain)] for name, domain in self.domains.items())
        parts = [("", ["labels", "levels", ""], domains)] if self.domains else []
        counts = zip(self.factors[:_MOST_LINES], self.statistics, strict=False)
        texts = (f"{title(factor)}\n" + "\n".join(lines_of(self, factor, found)) for factor, found in counts)
        tables = html_parts((self._heading(), ["counted", "family", "weight"], counted), *parts)
        return tables + html_text("\n".join(texts))

    def _heading(self) -> str:
        return f"Tally: {len(self.factors)} factor{'s' * (len(self.factors) != 1)}"

    def __repr__(self) -> str:
        return self.summary(counts=True)

    def summary(self, *, counts: bool = False) -> str:
        """What is counted, in a few lines.

        Parameters
        ----------
        counts : bool, default False
            Whether the counts are shown, too, of a large factor the first ones.
        """
        titles = [title(factor) for factor in self.factors[:_MOST_LINES]]
        families = [short_repr(factor.family, 100) for factor in self.factors[:_MOST_LINES]]
        widths = max(map(len, titles), default=0), max(map(len, families), default=0)
        lines = [self._heading()]
        for name, family, factor, statistic in zip(titles, families, self.factors, self.statistics, strict=False):
            lines.append(f"  {name:<{widths[0]}}  {family:<{widths[1]}}  weight {_rows(statistic):.12g}")
            if counts and len(lines) < _MOST_LINES:
                lines += lines_of(self, factor, statistic)
        lines += [f"  … {len(self.factors) - _MOST_LINES} more"] if len(self.factors) > _MOST_LINES else []
        for name, domain in list(self.domains.items())[:_MOST_LINES]:
            lines.append(f"  {printable(name)}: {levels_of(domain) or 'no levels'}")
        lines += [f"  … {len(self.domains) - _MOST_LINES} more"] if len(self.domains) > _MOST_LINES else []
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """All counts as one long table.

        Returns
        -------
        pandas.DataFrame
            A row for every number: the ``factor``, the level of each column that it is given, the ``column``, the
            ``level`` (of labels), the ``statistic`` (a count, weight, total, mean, or scatter: the sum of squared
            deviations from the mean) and its ``value``.

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
        """Whether both hold the same levels, in any order, and the same numbers to `tolerance`."""
        if self._counting() != other._counting() or self.domains != other.domains:
            return False
        aligned = other.align(self.domains).statistics
        return all(mine.isclose(its, tolerance) for mine, its in zip(self.statistics, aligned, strict=True))

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        mine, its = self._united(other)
        total = [a + b for a, b in zip(mine.statistics, its.statistics, strict=True)]
        return Tally(self.factors, total, mine.domains, self.schema, soft=self.soft or other.soft)

    def __radd__(self, other: object) -> Tally:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def __sub__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if self.soft or other.soft:
            raise NotForgettableError.soft()
        mine, its = self._united(other)
        for factor, held, removed in zip(self.factors, mine.statistics, its.statistics, strict=True):
            short = first_deficit_of(factor.family.nonnegative(held), factor.family.nonnegative(removed))
            short = held.first_deficit(removed) if short is None else short
            if short is not None:
                index, what, have, take = short
                raise StatisticsError.removes_too_much(mine._place(factor, held, index), what, have, take)
        rest = [a - b for a, b in zip(mine.statistics, its.statistics, strict=True)]
        return Tally(self.factors, rest, mine.domains, self.schema).drop_unseen_levels()

    def __or__(self, other: Tally) -> Tally:
        """Side by side: the factors of both, with shared domains united."""
        if not isinstance(other, Tally):
            return NotImplemented
        taken = {factor.statistics_key[:2] for factor in other.factors}
        for factor in self.factors:
            if factor.statistics_key[:2] in taken:
                raise StatisticsError(
                    f"both tallies have the factor {title(factor)}; expected others.\n    Use + to add them."
                )
        domains = self._unite_domains(other)
        pairs = dict(self.schema.domains) | dict(other.schema.domains)
        ordered = tuple(dict.fromkeys(self.schema.sorted_domains + other.schema.sorted_domains))
        absent = tuple(dict.fromkeys(self.schema.missing_level_domains + other.schema.missing_level_domains))
        mine, its = self.align(domains), other.align(domains)
        statistics = mine.statistics + its.statistics
        factors, schema = self.factors + other.factors, Schema(pairs, ordered, absent)
        return Tally(factors, statistics, domains, schema, soft=self.soft or other.soft)

    def scale(self, factor: float) -> Tally:
        """Every count times `factor`: a tally worth more or fewer rows."""
        scaled = [part.scale(factor) for part in self.statistics]
        return Tally(self.factors, scaled, self.domains, self.schema, soft=self.soft).drop_unseen_levels()

    def with_factors(self, factors: Iterable[Factor]) -> Tally:
        """The same statistics read by other families or priors, where they keep the same ones."""
        factors = tuple(factors)
        if tuple(factor.statistics_key for factor in factors) != self._counting():
            raise other_factors(self.factors, factors)
        return Tally(factors, self.statistics, self.domains, self.schema, soft=self.soft)

    def renamed(self, old: Name, new: Name) -> Tally:
        """The same counts with another name for a column, and for its domain if the column has one of its own."""

        def names(found: tuple[Name, ...]) -> tuple[Name, ...]:
            return tuple(new if name == old else name for name in found)

        factors = [Factor(names(f.columns), names(f.given), f.family, f.prior) for f in self.factors]
        domains = {str(new) if name == str(old) else name: domain for name, domain in self.domains.items()}
        if str(old) in self.domains:
            domains[str(new)] = self.domains[str(old)].renamed(str(new))
        ordered = tuple(str(new) if name == str(old) else name for name in self.schema.sorted_domains)
        schema = Schema(self.schema.domains, ordered, self.schema.missing_level_domains)
        return Tally(factors, self.statistics, domains, schema, soft=self.soft)

    def drop_unseen_levels(self) -> Tally:
        """Without the levels that were neither declared nor seen."""
        present = {name: np.zeros(len(domain.levels), dtype=bool) for name, domain in self.domains.items()}
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            weight = statistic.group_weights()
            for axis, column in enumerate(factor.given):
                others = tuple(a for a in range(weight.ndim) if a != axis)
                present[self.schema.domain(column)] |= weight.sum(axis=others) > 0
            if isinstance(statistic, Counts) and factor.level_columns:
                cells = statistic.pool_groups().table > 0
                for column, here in zip(factor.columns, statistic.segments.split(cells), strict=True):
                    present[self.schema.domain(column)] |= here
            for column in factor.word_columns:
                present[self.schema.domain(column)] |= statistic.pool_groups().total > 0  # type: ignore[attr-defined]
        if all(mask.all() for mask in present.values()):
            return self
        return self.align({name: domain.filter(present[name]) for name, domain in self.domains.items()})

    def declare(self, column: Name, levels: Iterable[Any]) -> Tally:
        """The same counts where some levels of a column exist whether seen or not."""
        name = self.schema.domain(column)
        old = self.domains[name]
        more = Domain(levels, old.name, is_sorted=old.is_sorted)
        return self.align(self.domains | {name: old.union(Domain(more.levels, old.name, declared=more.levels))})

    def reindex_like(self, other: Tally) -> Tally:
        """The same counts over another tally's levels: its new ones empty, this one's own dropped."""
        if self._counting() != other._counting():
            raise other_factors(self.factors, other.factors)
        self._unite_domains(other)  # raises where the kinds of levels differ
        return self.align(other.domains)

    def drop_level(self, column: Name, level: Hashable) -> Tally:
        """Without a level, its rows, and the levels only they had."""
        name = self.schema.domain(column)
        old = self.domains[name]
        kept = [other for other in old.levels if other != level]
        domain = Domain(
            kept,
            old.name,
            declared=old.declared - {level},
            is_sorted=old.is_sorted,
            has_missing_level=old.has_missing_level,
        )
        return self.align(self.domains | {name: domain}).drop_unseen_levels()

    def small_counts(self, below: float = 5.0) -> list[tuple[str, float]]:
        """What was counted of few rows, the fewest first: what to look at before a tally is handed on.

        A tally holds no row, but a count of one is one row's, and so are the sums of a group of one.

        Parameters
        ----------
        below : float, default 5
            More than 0 and less than this is few.

        Returns
        -------
        list of pairs
            Where, in words, and how many.

        Examples
        --------
        >>> import tallybayes as tb
        >>> factors = [tb.Factor("ward", (), tb.Categorical()), tb.Factor("age", "ward", tb.Gaussian())]
        >>> tb.count({"ward": ["A", "A", "B"], "age": [40.0, 50.0, 73.0]}, factors).small_counts(2)
        [("ward 'B'", 1.0), ("ward 'B', column 'age'", 1.0)]
        """
        found = []
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            parts = {**statistic.nonnegative(), **factor.family.nonnegative(statistic)}
            names = (
                ["total"] if factor.word_columns else ["total", "failures"] if "failures" in parts else list(parts)[:1]
            )
            for name in names:
                held = np.asarray(parts[name])
                said = {"failures": " = no", "total": " = yes"}.get(name, "") if "failures" in parts else ""
                for index in np.argwhere((held > 0) & (held < below)):
                    place = tuple(int(i) for i in index)
                    found.append((self._place(factor, statistic, place) + said, float(held[place])))
        return sorted(found, key=lambda one: one[1])

    def save(self, path: str | PathLike[str]) -> None:
        """Write this tally to a sealed file that `tb.load` reads.

        Parameters
        ----------
        path : str or path-like
        """
        from tallybayes.tally.tally_io import save_tally

        save_tally(self, path)

    def _counting(self) -> tuple[Any, ...]:
        return tuple(factor.statistics_key for factor in self.factors)

    def _unite_domains(self, other: Tally) -> dict[str, Domain]:
        united = dict(self.domains)
        for name, domain in other.domains.items():
            united[name] = united[name].union(domain) if name in united else domain
        return united

    def _united(self, other: Tally) -> tuple[Tally, Tally]:
        """Both over the same levels, and in the same order of factors and columns."""
        other = other._in_order_of(self)
        domains = self._unite_domains(other)
        return self.align(domains), other.align(domains)

    def _in_order_of(self, other: Tally) -> Tally:
        """The same counts, factors and their columns in the order of another tally that has the same ones."""
        if self._counting() == other._counting():
            return self
        mine = {(frozenset(f.columns), *f.statistics_key[1:]): place for place, f in enumerate(self.factors)}
        places = [mine.get((frozenset(f.columns), *f.statistics_key[1:])) for f in other.factors]
        if None in places or len(set(places)) != len(self.factors) or len(places) != len(self.factors):
            raise other_factors(other.factors, self.factors)
        moved = []
        for factor, place in zip(other.factors, places, strict=True):
            columns, statistic = self.factors[place].columns, self.statistics[place]  # type: ignore[index]
            same = columns == factor.columns
            order = np.array([columns.index(name) for name in factor.columns], dtype=np.intp)
            moved.append(statistic if same else statistic.columns(order))
        return Tally(other.factors, moved, self.domains, self.schema, soft=self.soft)

    def align(self, domains: Mapping[str, Domain]) -> Tally:
        """The same statistics over other levels: new ones empty, absent ones dropped."""
        source = {
            name: None if domain.levels == self.domains[name].levels else self.domains[name].positions_of(domain.levels)
            for name, domain in domains.items()
            if name in self.domains
        }
        if all(where is None for where in source.values()) and source.keys() == domains.keys():
            return Tally(self.factors, self.statistics, domains, self.schema, soft=self.soft)
        moved = []
        for factor, statistic in zip(self.factors, self.statistics, strict=True):
            columns = factor.given + factor.columns
            where = {c: source.get(self.schema.domain(c)) for c in columns}
            moved.append(realign(factor, statistic, where))
        return Tally(self.factors, moved, domains, self.schema, soft=self.soft)

    def _place(self, factor: Factor, statistic: Statistics, index: tuple[int, ...]) -> str:
        """Words for a place in a statistic: the group, and the level or the column."""
        names = [f"{c} {self._domain(c).levels[i]!r}" for c, i in zip(factor.given, index, strict=False)]
        last = index[-1]
        if isinstance(statistic, Counts):
            column = int(np.searchsorted(statistic.segments.offsets, last, side="right")) - 1
            place = last - int(statistic.segments.offsets[column])
            if factor.level_columns:
                names.append(f"{factor.columns[column]} {self._domain(factor.columns[column]).levels[place]!r}")
            else:
                names.append(f"column {factor.column(column, statistic.n_columns)!r}, bin {place}")
        elif factor.word_columns and last < len(self._domain(factor.columns[0]).levels):
            names.append(f"word {self._domain(factor.columns[0]).levels[last]!r} of {factor.columns[0]!r}")
        elif len(factor.columns) > 1:
            names.append(f"column {factor.columns[last]!r}" if last < len(factor.columns) else f"column {last}")
        else:
            names.append(f"column {factor.columns[0]!r}")
        return ", ".join(names)


def realign(factor: Factor, statistic: Statistics, where: Mapping[Name, np.ndarray | None]) -> Statistics:
    """Statistics over other levels: ``where[column]`` has the old position of every new level, −1 for a new one.

    None leaves a column's levels as they are.
    """
    for axis, column in enumerate(factor.given):
        source = where[column]
        if source is not None:
            statistic = statistic.take(axis, source)
    if isinstance(statistic, Counts) and any(where[column] is not None for column in factor.level_columns):
        old, cells = statistic.segments, []
        for column, start, size in zip(factor.columns, old.offsets, old.sizes, strict=False):
            source = where[column]
            local = np.arange(size) if source is None else source
            cells.append(np.where(local < 0, -1, local + start))
        statistic = statistic.take_cells(np.concatenate(cells), Segments([len(part) for part in cells]))
    for column in factor.word_columns:
        words = where[column]
        if words is not None:
            statistic = statistic.take_columns(words)  # type: ignore[attr-defined]
    return statistic


def other_factors(mine: Sequence[Factor], its: Sequence[Factor]) -> StatisticsError:
    """The error for factors that differ; it names those that only one side has."""
    both = {factor.statistics_key for factor in mine} & {factor.statistics_key for factor in its}
    found = [[factor for factor in one if factor.statistics_key not in both] for one in (mine, its)]
    if not any(found):
        return StatisticsError.incompatible("the orders of the factors", _titles(mine), _titles(its))
    return StatisticsError.incompatible("the factors", *map(_titles, found))


def _titles(factors: Sequence[Factor], most: int = 3) -> str:
    shown = "; ".join(f"{title(factor)} {factor.family!r}" for factor in factors[:most])
    return f"{shown}; … {len(factors) - most} more" if len(factors) > most else shown or "no other"


def _rows(statistic: Statistics) -> float:
    """The weight behind a statistic, of its fullest column."""
    weight = statistic.pool_groups().weight  # type: ignore[attr-defined]
    return float(np.max(weight, initial=0.0))
