"""Soft counting: the statistics of rows that count in part, in every class or state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from tallybayes.data.counting import check_size, count
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.errors import DataError
from tallybayes.estimation.em.kmeans_init import (
    DistanceFeatures,
    kmeans_plus_plus,
    known_mean,
    squared_distances_to_centers,
)
from tallybayes.estimation.em.missing_cells import expected_moments
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of, factor_cells
from tallybayes.families._shared.blocks import Codes, SparseRows
from tallybayes.families.text import Text
from tallybayes.statistics.moments import Moments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.text_selection import in_family_of_words

_SEEDING_ROWS = 10_000
AssignNearest = Callable[[Table], np.ndarray]


class SoftCounter:
    """Counts rows of a table for some factors, each row in part in every group.

    Parameters
    ----------
    factors : list of Factor
        Each given the class or state.
    table : Table
        All rows there will be: their levels and the anchors of their sums.
    n_groups : int
    """

    def __init__(self, factors: list[Factor], table: Table, n_groups: int) -> None:
        self.factors, self.n_groups = factors, n_groups
        pooled = count(table, [_alone(factor) for factor in factors])
        self.like: list[Any] = list(pooled.statistics)
        self.domains = pooled.domains
        for number, (factor, statistics) in enumerate(zip(factors, self.like, strict=True)):
            domains = self.level_domains(number)
            width = sum(len(domain.levels) for domain in domains) if domains else statistics.n_columns
            check_size(factor, n_groups, width, scored=factor.family, copies=3)  # so far, of some rows, and their sum

    def level_domains(self, number: int) -> list[Domain]:
        """The levels of every column of a factor of labels."""
        return [self.domains[str(name)] for name in self.factors[number].level_columns]

    def cells(self, table: Table, number: int) -> Any:
        """The cells of one factor: numbers, codes of levels, or sparse rows."""
        factor = self.factors[number]
        cells = factor_cells(table, factor.columns, factor.family, self.level_domains(number), "missing")
        return cells if isinstance(cells, SparseRows) else chunk_of(cells, slice(None))

    def block(self, table: Table, number: int) -> Any:
        """The cells as `Family.collect` takes them."""
        cells, domains = self.cells(table, number), self.level_domains(number)
        return Codes(cells, np.array([len(domain.levels) for domain in domains])) if domains else cells

    def count_hard(self, table: Table, group: np.ndarray, weight: np.ndarray | None) -> list[Any]:
        """The statistics of rows that count in one group each."""
        return [
            factor.family.collect(self.block(table, number), group, self.n_groups, weight, like=self.like[number])
            for number, factor in enumerate(self.factors)
        ]

    def count_soft(
        self, table: Table, shares: np.ndarray, scored: list[FactorScorer] | None
    ) -> tuple[list[Any], float]:
        """The statistics of rows that count in every group as `shares` says, and how unsure what was filled in is.

        Missing cells under a full covariance are as the parameters expect them; without parameters, only known cells
        count, and no products.
        """
        statistics: list[Any] = []
        entropy = 0.0
        for number, factor in enumerate(self.factors):
            block, family = self.block(table, number), factor.family
            whole = family.requires_complete_rows
            if whole and scored is not None and np.isnan(block).any():
                moments, unsure = expected_moments(block, shares, *matrices(scored[number]), self.like[number])
                statistics.append(moments)
                entropy += unsure
                continue
            family = family if scored is not None else family.columnwise_family
            statistics.append(family.collect(block, None, self.n_groups, shares, like=self.like[number]))
        return statistics, entropy

    def kmeans_assigners(
        self,
        table: Table,
        codes: np.ndarray,
        weight: np.ndarray,
        n_starts: int,
        rng: np.random.Generator,
        n_groups: int | None = None,
    ) -> list[AssignNearest]:
        """Where to start: functions that tell the groups of rows, by the nearest of some centers; the tightest first.

        Parameters
        ----------
        table : Table
        codes : ndarray of int of shape (n,)
            The group of every row, −1 where it is not known; of some it is not.
        weight : ndarray of shape (n,)
            All above 0.
        n_starts : int
        rng : Generator
        n_groups : int, optional
            How many groups there are to tell, if not those that are counted.
        """
        n_groups = self.n_groups if n_groups is None else n_groups
        found = [self._seed(table, codes, weight, rng, n_groups) for _ in range(n_starts)]
        return [nearest for _, nearest in sorted(found, key=lambda seed: seed[0])]

    def _seed(
        self, table: Table, codes: np.ndarray, weight: np.ndarray, rng: np.random.Generator, n_groups: int
    ) -> tuple[float, AssignNearest]:
        """How far off rows are, squared and summed, and what finds the nearest center.

        A group that rows are known of has its center at their mean; the others are at heaps of the rest (k-means++).
        """
        known, rest = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
        if len(rest) > _SEEDING_ROWS:
            rest = np.sort(rng.choice(rest, _SEEDING_ROWS, replace=False))
        sample, seed, rulers = table.rows(rest), int(rng.integers(2**31)), []
        for number, factor in enumerate(self.factors):
            sizes = [len(domain.levels) for domain in self.level_domains(number)]
            rulers.append(DistanceFeatures(factor.family, sizes, self.cells(sample, number), seed, weight[rest]))

        def measured(some: Table) -> np.ndarray:
            return np.concatenate([ruler(self.cells(some, number)) for number, ruler in enumerate(rulers)], axis=1)

        known = rng.permutation(known)[:_SEEDING_ROWS] if len(known) > _SEEDING_ROWS else known
        examples, of, rows = measured(table.rows(known)), codes[known], measured(sample)
        seen, middle = np.unique(of), np.zeros(rows.shape[1])
        means = [known_mean(examples[of == k], weight[known[of == k]], middle) for k in seen]
        fixed = np.array(means).reshape(len(seen), rows.shape[1])
        found = kmeans_plus_plus(rows, n_groups - len(seen), fixed, rng, weight[rest])
        centers = np.empty_like(found)
        centers[[*seen, *np.setdiff1d(np.arange(n_groups), seen)]] = found
        far = float(weight[rest] @ squared_distances_to_centers(rows, centers).min(axis=1))
        return far, lambda some: squared_distances_to_centers(measured(some), centers).argmin(axis=1)


class ExpandedText(NamedTuple):
    """Rows whose columns of text are blocks of the words of all of them, the factors of these, and the words."""

    table: Table
    factors: list[Factor]
    domains: dict[str, Domain]


def expand_text(table: Table, factors: Iterable[Factor]) -> ExpandedText:
    """Columns of text as blocks of counts, as EM goes through them again and again: it goes by all words."""
    columns, domains = dict[Name, Texts](), dict[str, Domain]()
    factors = list(factors)
    for factor in factors:
        if factor.family.word_family is not None:
            name, family = factor.columns[0], cast("Text", factor.family)
            texts = columns[name] = table.texts(name, family).with_own_vocabulary()
            domains |= {} if texts.vocabulary is None else {str(name): texts.vocabulary}
    worded = table.replaced({**table.columns, **columns}) if columns else table
    return ExpandedText(worded, [in_family_of_words(factor) for factor in factors], domains)


def refuse_other_words(initial: Any, domains: Mapping[str, Domain]) -> None:
    """Refuse a model to start from whose words are not those of the rows."""
    for name, words in domains.items():
        if initial._selected_tally.domains[name].levels != words.levels:
            raise DataError(
                f"initial= has other words of {name!r} than these rows; expected the same, in the same order.\n"
                "    Leave initial= out: labeled rows, or heaps of rows, are where EM sets out then."
            )


def rows_with_missing(table: Table, factors: Iterable[Factor]) -> np.ndarray:
    """Which rows lack cells that a covariance needs, so that they have to be expected: bool, shape (n,)."""
    holed = np.zeros(table.n_rows, dtype=bool)
    for factor in factors:
        if factor.family.requires_complete_rows:
            holed |= np.isnan(chunk_of(table.numbers(factor.columns), slice(None))).any(axis=1)
    return holed


def _alone(factor: Factor) -> Factor:
    """A factor without what it is given, in a family that skips missing cells."""
    return Factor(factor.columns, (), factor.family.columnwise_family)


def matrices(scored: FactorScorer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, covariance matrices, and which columns have no spread, of any Gaussian family."""
    mean, spread = (np.asarray(part, dtype=float) for part in scored.parameters)
    covariance = spread if spread.ndim == 3 else spread[..., None] * np.eye(mean.shape[-1])
    return mean, covariance, np.isin(np.arange(mean.shape[-1]), scored.constant)


def diagonal_moments_estimate(known: Moments) -> Normal:
    """Means and variances of the cells that are known; the pooled ones where a group has none."""
    pooled = known.pool_groups()
    weight = np.broadcast_to(known.weight, known.first_sum.shape)
    mean = np.where(weight > 0, known.mean, pooled.mean)
    spread = pooled.scatter / np.maximum(pooled.weight, 1.0)
    spread = np.where(spread > 0, spread, 1.0)
    variance = np.where(weight > 1, known.scatter / np.maximum(weight, 1.0), spread)
    return Normal(mean, np.where(variance > 0, variance, spread))
