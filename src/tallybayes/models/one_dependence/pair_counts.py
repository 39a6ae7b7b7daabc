"""Pair counts: the sufficient statistics of one-dependence classifiers, every pair of columns given the class.

One tally holds p(class), every column given the class, and every pair of columns given the class, as the later columns
given the class and an earlier one. Tallies are merged, rows are forgotten, and folds are held out, all by addition and
subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tallybayes._utils.memory import require_memory
from tallybayes.data.table import Table
from tallybayes.errors import StatisticsError
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.models.inputs.discretization import DiscretizedColumns
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Counts and probabilities with one axis for the levels of all columns, (classes, levels), or with two such axes.

    Attributes
    ----------
    names : tuple of names
        The columns with at least one level.
    domains : list of Domain
    sizes : ndarray of shape (columns,)
        The number of levels of each column.
    offsets : ndarray of shape (columns + 1,)
        The index of each column's first level; the last entry is the number of levels.
    level_counts : ndarray of shape (classes, levels)
        The weight of each level.
    column_totals : ndarray of shape (classes, columns)
        The weight of the rows in which the column is observed.
    prior_counts : ndarray of shape (classes, levels)
        The pseudo-counts of the prior of each level.
    pair_counts : ndarray of shape (classes, levels, levels)
        The weight of each pair of levels; 0 within a column.
    level_column_totals : ndarray of shape (classes, levels, columns)
        The weight of the rows with a level in which the column is observed.
    """

    names: tuple[Name, ...]
    domains: list[Domain]
    sizes: np.ndarray
    offsets: np.ndarray
    level_counts: np.ndarray
    column_totals: np.ndarray
    prior_counts: np.ndarray
    pair_counts: np.ndarray
    level_column_totals: np.ndarray

    @cached_property
    def column(self) -> np.ndarray:
        """The column index of every level."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def span(self, column: int) -> slice:
        """Return the indices of the levels of a column."""
        return slice(int(self.offsets[column]), int(self.offsets[column + 1]))

    @cached_property
    def smoothed_totals(self) -> np.ndarray:
        """The weight of each column's observed rows plus the pseudo-counts of its levels: (classes, columns)."""
        if not len(self.sizes):
            return self.column_totals
        return self.column_totals + np.add.reduceat(self.prior_counts, self.offsets[:-1], axis=1)

    @cached_property
    def level_proba(self) -> np.ndarray:
        """p(level | class), the posterior mean: (classes, levels)."""
        return (self.level_counts + self.prior_counts) / self.smoothed_totals[:, self.column]

    def conditional(self, strength: float, parent: int | None = None, column: int | None = None) -> np.ndarray:
        """Return p(level | class, parent level), the posterior mean: (classes, parent levels, levels).

        The prior is p(level | class) with this strength, in rows. Without `parent` and `column`, the array has all
        columns given all others.
        """
        levels = slice(None) if column is None else self.span(column)
        parent_levels = slice(None) if parent is None else self.span(parent)
        prior = strength * self.level_proba[:, None, levels]
        totals = self.level_column_totals[:, parent_levels][:, :, self.column[levels]]
        return (self.pair_counts[:, parent_levels, levels] + prior) / (totals + strength)

    @classmethod
    def of_tally(cls, tally: Tally, columns: Sequence[Name], singles: EstimatedFactors, n_classes: int) -> PairCounts:
        """Gather the counts of a tally into arrays.

        Parameters
        ----------
        tally : Tally
        columns : sequence of names
        singles : EstimatedFactors
            The estimated factors of single columns given the class, for their priors.
        n_classes : int
        """
        names = tuple(name for name in columns if len(tally.domains[str(name)].levels))  # others have no known cell
        domains = [tally.domains[str(name)] for name in names]
        sizes = np.array([len(domain.levels) for domain in domains], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        span = {name: slice(*map(int, offsets[index : index + 2])) for index, name in enumerate(names)}
        total = int(offsets[-1])
        level_counts, prior_counts = np.zeros((2, n_classes, total))
        pair_counts = np.zeros((n_classes, total, total))
        column_totals = np.zeros((n_classes, len(names)))
        priors = {
            factor.columns: resolved.prior
            for (factor, _), resolved in zip(singles.pairs, singles.resolved_priors, strict=True)
        }
        for factor, statistics in zip(tally.factors, tally.statistics, strict=True):
            if not factor.given:
                continue
            assert isinstance(statistics, Counts)
            tables = dict(zip(factor.columns, statistics.segments.split(statistics.table), strict=True))
            tables = {name: cells for name, cells in tables.items() if name in span}
            parent = factor.given[-1]
            if len(factor.given) > 1:
                for name, cells in tables.items() if parent in span else ():
                    pair_counts[:, span[parent], span[name]] = cells
                    pair_counts[:, span[name], span[parent]] = cells.transpose(0, 2, 1)
                continue
            prior: Any = priors[factor.columns]
            concentration = np.broadcast_to(np.asarray(prior.concentration, dtype=float), statistics.table.shape)
            pseudo_counts = dict(zip(factor.columns, statistics.segments.split(concentration), strict=True))
            for name, cells in tables.items():
                level_counts[:, span[name]] = cells
                prior_counts[:, span[name]] = pseudo_counts[name]
                column_totals[:, names.index(name)] = cells.sum(axis=-1)
        level_column_totals = np.zeros((n_classes, 0, 0))
        if names:
            level_column_totals = np.add.reduceat(pair_counts, offsets[:-1], axis=2)
        arrays = (sizes, offsets, level_counts, column_totals, prior_counts, pair_counts, level_column_totals)
        return cls(names, domains, *arrays)


def pair_factors(columns: DiscretizedColumns, target: Name) -> list[Factor]:
    """Return the factors of each column given the class, and of all later columns given the class and each column.

    Columns of the same family share a factor.
    """
    names = tuple(columns.families)
    by_family: dict[Family, list[Name]] = {}
    for name in names:
        by_family.setdefault(columns.counted(name), []).append(name)
    singles = [Factor(tuple(alike), (target,), family) for family, alike in by_family.items()]
    return singles + [Factor(names[i + 1 :], (target, name), Categorical()) for i, name in enumerate(names[:-1])]


def check_pair_tally(tally: Tally, columns: DiscretizedColumns, target: Name) -> None:
    """Raise StatisticsError unless the factors of a tally are those of `pair_factors`."""
    expected = [Factor(target, (), Categorical()), *pair_factors(columns, target)]
    if [factor.statistics_key for factor in tally.factors] != [factor.statistics_key for factor in expected]:
        raise StatisticsError(
            "this tally is not one of pairs: expected p(class), and every column and pair of columns given it, found\n"
            + "\n".join("    " + line for line in tally.summary().splitlines()[:20])
        )


def columns_in_order(tally: Tally, names: Sequence[Name]) -> list[Name]:
    """Return the columns in the order in which their pairs were counted."""
    parents = [factor.given[1] for factor in tally.factors if len(factor.given) == 2]
    return [*parents, *(name for name in names if name not in parents)]


def check_memory(model: str, n_classes: int, sizes: Sequence[int]) -> None:
    """Raise MemoryError if the counts of all pairs of levels do not fit into memory."""
    total = sum(sizes)
    padded = -(-n_classes // 8) * 8
    what = f"{model}: the pairs of {total} levels in {len(sizes)} columns and {n_classes} classes"
    hint = "Drop columns with very many levels, use fewer bins, or use tb.NaiveBayes."
    require_memory(8 * total * total * (2 * n_classes + padded), what, hint)


def discretize(columns: DiscretizedColumns, table: Table) -> Table:
    """Return the rows with numbers as bins; the table keeps the result for further calls."""
    known, discretized = table.cache.get("discretized", (None, table))
    if known is not columns:
        discretized = columns.discretize(table)
        table.cache["discretized"] = columns, discretized
    return discretized
