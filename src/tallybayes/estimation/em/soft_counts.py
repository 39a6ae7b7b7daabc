"""Expected sufficient statistics: rows counted in every class or state with their responsibilities as weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from tallybayes.data.counting import check_size, collect_block, declared_domain
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
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
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import Family
from tallybayes.families.protocols.em_support import columnwise_family
from tallybayes.families.text import Text
from tallybayes.statistics.counts import Segments
from tallybayes.statistics.moments import Moments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import as_word_factor

_SEEDING_ROWS = 2_500  # rows from which centers are chosen, of up to 10 groups; at most four times as many
_ROWS_PER_CENTER = 250
_CHUNK = 1 << 16  # rows that are searched for missing cells together


class AssignNearest(NamedTuple):
    """Assigns rows to the nearest k-means++ center."""

    counter: SoftCounter
    features: list[DistanceFeatures]  # of every factor
    centers: np.ndarray
    total_distance: float  # the weighted sum of squared distances of the sample

    def __call__(self, table: Table) -> np.ndarray:
        """Return the position of the nearest center of every row."""
        return squared_distances_to_centers(self.distance_features(table), self.centers).argmin(axis=1)

    def distance_features(self, table: Table) -> np.ndarray:
        """Return the features of the rows, whose distances are compared."""
        cells = (self.counter.cells(table, number) for number in range(len(self.features)))
        return np.concatenate([make(part) for make, part in zip(self.features, cells, strict=True)], axis=1)

    def has_same_centers(self, other: AssignNearest) -> bool:
        """Return whether the other centers are the same, in any order."""
        if not np.isclose(self.total_distance, other.total_distance, rtol=1e-6):
            return False
        nearest = squared_distances_to_centers(self.centers, other.centers)
        return bool((nearest.min(axis=0) < 1e-9).all() and (nearest.min(axis=1) < 1e-9).all())

    def parameters(self) -> list[Any]:
        """Return parameters of Gaussian and categorical factors under which the nearest center is the most probable."""
        found: list[Any] = []
        start = 0
        for number, make in enumerate(self.features):
            sizes = make.sizes
            end = start + (sum(map(make.n_directions, sizes)) if make.family.cell_type == "codes" else len(make.spread))
            centers = self.centers[:, start:end]
            start = end
            if make.family.cell_type == "codes":
                found.append(LevelProbabilities(np.exp(-0.5 * make.level_distances(centers)), Segments(sizes)))
                continue
            mean = centers * make.spread + make.center
            variance = np.broadcast_to(make.spread**2, mean.shape)
            is_full = self.counter.factors[number].family.requires_complete_rows
            found.append(
                MultivariateNormal(mean, variance[..., None] * np.eye(mean.shape[1]))
                if is_full
                else Normal(mean, variance)
            )
        return found


class SoftCounter:
    """Counts the rows of a table for some factors, in one group each or in all groups by responsibilities.

    Parameters
    ----------
    factors : list of Factor
        Their groups are the classes or states.
    table : Table
        All training rows: they define the levels and the anchors of the sums.
    n_groups : int
    pooled : Tally, optional
        The statistics of all training rows in one group, if the table has a sample of them.

    Attributes
    ----------
    table : Table
        The training rows, with codes of the levels in `domains`.
    domains : dict from name to Domain
        The levels of every categorical column: those that occur or are declared.
    like : list of Statistics
        The statistics of all rows together, whose anchors are used; None for categorical columns.
    """

    def __init__(self, factors: list[Factor], table: Table, n_groups: int, pooled: Tally | None = None) -> None:
        self.factors = factors
        self.n_groups = n_groups
        self.domains: dict[str, Domain] = {} if pooled is None else dict(pooled.domains)
        self.table = self.recoded(table)
        for number, factor in enumerate(factors):  # before the rows are counted
            n_levels = sum(len(domain.levels) for domain in self.level_domains(number))
            width = n_levels if factor.level_columns else sum(map(table.width, factor.columns))
            check_size(factor, n_groups, width, scored=factor.family, copies=3)  # a total, a chunk, and their sum
        everything = [None] * len(factors) if pooled is None else pooled.statistics
        self.like: list[Any] = [
            None if factor.level_columns else _pooled(factor, table) if known is None else known
            for factor, known in zip(factors, everything, strict=True)
        ]

    def recoded(self, table: Table) -> Table:
        """Return rows with the codes of the levels in `domains`, to which those of the first table are added."""
        codes: dict[tuple[Name, bool], tuple[np.ndarray, Domain]] = {}
        for factor in self.factors:
            for name in factor.level_columns:
                encoded = _encoded(table, name, factor.family, self.domains.get(str(name)))
                self.domains[str(name)] = encoded[1]
                codes[name, False] = codes[name, True] = encoded
        return table.recoded(codes) if codes else table

    def level_domains(self, number: int) -> list[Domain]:
        """Return the domains of a factor's categorical columns."""
        return [self.domains[str(name)] for name in self.factors[number].level_columns]

    def cells(self, table: Table, number: int) -> Any:
        """Return the cells of one factor: numbers, codes of levels, or sparse rows."""
        factor = self.factors[number]
        cells = factor_cells(table, factor.columns, factor.family, self.level_domains(number), "missing")
        return cells if isinstance(cells, SparseRows) else chunk_of(cells, slice(None))

    def block(self, table: Table, number: int) -> Any:
        """Return the cells of one factor as an argument of `Family.collect`."""
        cells = self.cells(table, number)
        domains = self.level_domains(number)
        return Codes(cells, np.array([len(domain.levels) for domain in domains])) if domains else cells

    def count_hard(
        self, table: Table, group: np.ndarray, weight: np.ndarray | None, *, columnwise: bool = False
    ) -> list[Any]:
        """Return the statistics of rows that belong to one group each, by observed cells only if `columnwise`.

        Parameters
        ----------
        table : Table
        group : ndarray of int of shape (n,)
            −1 for a row that is not counted.
        weight : ndarray of shape (n,), optional
        columnwise : bool, default False
            Whether a full covariance is counted without products of columns.
        """
        families = [columnwise_family(f.family) if columnwise else f.family for f in self.factors]
        return [
            family.collect(self.block(table, number), group, self.n_groups, weight, like=self.like[number])
            for number, family in enumerate(families)
        ]

    def count_soft(
        self, table: Table, responsibilities: np.ndarray, scorers: list[FactorScorer] | None
    ) -> tuple[list[Any], float]:
        """Return the expected statistics under ``responsibilities`` (n, groups), and the entropy of imputed cells.

        Under a full covariance, missing cells are imputed from the parameters of ``scorers``. Without parameters, only
        observed cells are counted, without products of columns.
        """
        statistics: list[Any] = []
        entropy = 0.0
        for number, factor in enumerate(self.factors):
            block = self.block(table, number)
            family = factor.family
            needs_complete_rows = family.requires_complete_rows
            if needs_complete_rows and scorers is not None and np.isnan(block).any():
                moments, more_entropy = expected_moments(
                    block, responsibilities, *mean_and_covariance(scorers[number]), self.like[number]
                )
                statistics.append(moments)
                entropy += more_entropy
                continue
            family = family if scorers is not None else columnwise_family(family)
            statistics.append(family.collect(block, None, self.n_groups, responsibilities, like=self.like[number]))
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
        """Return functions that assign rows to the nearest k-means++ center, by increasing sum of squared distances.

        Parameters
        ----------
        table : Table
        codes : ndarray of int of shape (n,)
            The group of every row; −1 where it is unknown, which holds for at least one row.
        weight : ndarray of shape (n,)
            All positive.
        n_starts : int
            The number of initializations.
        rng : Generator
        n_groups : int, optional
            The number of centers; by default that of the counted groups.
        """
        n_groups = self.n_groups if n_groups is None else n_groups
        candidates = [self._seed(table, codes, weight, rng, n_groups) for _ in range(n_starts)]
        return sorted(candidates, key=lambda seed: seed.total_distance)

    def _seed(
        self, table: Table, codes: np.ndarray, weight: np.ndarray, rng: np.random.Generator, n_groups: int
    ) -> AssignNearest:
        """Return the centers of one initialization.

        The center of a group with labeled rows is their mean; the other centers are from k-means++ on unlabeled rows.
        """
        labeled = np.flatnonzero(codes >= 0)
        unlabeled = np.flatnonzero(codes < 0) if len(labeled) else range(len(codes))
        most = min(max(_SEEDING_ROWS, _ROWS_PER_CENTER * n_groups), 4 * _SEEDING_ROWS)
        unlabeled = np.array(unlabeled) if len(unlabeled) <= most else _sample(unlabeled, most, rng)
        sample = table.rows(unlabeled)
        seed = int(rng.integers(2**31))
        features = []
        for number, factor in enumerate(self.factors):
            sizes = [len(domain.levels) for domain in self.level_domains(number)]
            features.append(DistanceFeatures(factor.family, sizes, self.cells(sample, number), seed, weight[unlabeled]))

        distance_features = AssignNearest(self, features, np.zeros((0, 0)), 0.0).distance_features
        labeled = rng.permutation(labeled)[:most] if len(labeled) > most else labeled
        examples = distance_features(table.rows(labeled))
        group_of = codes[labeled]
        rows = distance_features(sample)
        labeled_groups = np.unique(group_of)
        origin = np.zeros(rows.shape[1])
        means = [known_mean(examples[group_of == k], weight[labeled[group_of == k]], origin) for k in labeled_groups]
        fixed = np.array(means).reshape(len(labeled_groups), rows.shape[1])
        ordered = kmeans_plus_plus(rows, n_groups - len(labeled_groups), fixed, rng, weight[unlabeled])
        centers = np.empty_like(ordered)
        centers[[*labeled_groups, *np.setdiff1d(np.arange(n_groups), labeled_groups)]] = ordered
        total_distance = float(weight[unlabeled] @ squared_distances_to_centers(rows, centers).min(axis=1))
        return AssignNearest(self, features, centers, total_distance)


class ExpandedText(NamedTuple):
    """A table whose text columns are counts of words, its factors, and the vocabularies by column."""

    table: Table
    factors: list[Factor]
    domains: dict[str, Domain]


def expand_text(table: Table, factors: Iterable[Factor]) -> ExpandedText:
    """Count the words of text columns once for all iterations of EM, with all words in the vocabulary."""
    columns = dict[Name, Texts]()
    domains = dict[str, Domain]()
    factors = list(factors)
    for factor in factors:
        if factor.family.word_family is not None:
            name = factor.columns[0]
            family = cast("Text", factor.family)
            texts = columns[name] = table.texts(name, family).with_own_vocabulary()
            domains |= {} if texts.vocabulary is None else {str(name): texts.vocabulary}
    expanded = table.replaced({**table.columns, **columns}) if columns else table
    return ExpandedText(expanded, [as_word_factor(factor) for factor in factors], domains)


def check_same_vocabulary(initial: Tally, domains: Mapping[str, Domain]) -> None:
    """Raise DataError if the tally of the initial model has another vocabulary than the training rows."""
    for name, words in domains.items():
        if initial.domains[name].levels != words.levels:
            raise DataError(
                f"initial= has other words of {name!r} than these rows; expected the same, in the same order.\n"
                "    Without initial=, EM starts from labeled rows or from k-means++ clusters."
            )


def rows_with_missing(table: Table, factors: Iterable[Factor]) -> np.ndarray:
    """Return whether every row has missing cells in factors with a full covariance: bool, shape (n,)."""
    incomplete = np.zeros(table.n_rows, dtype=bool)
    for factor in factors:
        if factor.family.requires_complete_rows:
            cells = table.numbers(factor.columns)
            for start in range(0, table.n_rows, _CHUNK):
                part = slice(start, start + _CHUNK)
                incomplete[part] |= np.isnan(chunk_of(cells, part)).any(axis=1)
    return incomplete


def _sample(numbers: Sequence[int] | np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return some of the numbers, without repetition, in ascending order."""
    drawn = np.sort(rng.choice(len(numbers), n, replace=False, shuffle=False))
    return drawn if isinstance(numbers, range) else np.asarray(numbers)[drawn]


def _pooled(factor: Factor, table: Table) -> Any:
    """Return the statistics of all rows together, in a family that skips missing cells."""
    columnwise = factor.replace(family=columnwise_family(factor.family))
    return collect_block(columnwise, table.numbers(factor.columns))


def _encoded(table: Table, name: Name, family: Family, domain: Domain | None) -> tuple[np.ndarray, Domain]:
    """Return the codes of a categorical column in a domain; by default in the levels that occur or are declared."""
    codes, seen = table.observed(name, False)
    if domain is None:
        levels = getattr(family, "levels", None)
        if levels is None:
            return codes, seen
        domain = declared_domain(seen, levels, [(name, seen, np.ones(len(seen.levels)))])
    return np.append(domain.positions_of(seen.levels), -1)[codes], domain


def mean_and_covariance(scorer: FactorScorer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means, covariance matrices and whether columns are constant, for any Gaussian family."""
    mean, spread = (np.asarray(part, dtype=float) for part in scorer.parameters)
    covariance = spread if spread.ndim == 3 else spread[..., None] * np.eye(mean.shape[-1])
    return mean, covariance, np.isin(np.arange(mean.shape[-1]), scorer.constant)


def diagonal_moments_estimate(observed: Moments) -> Normal:
    """Return means and variances of the observed cells by group; pooled ones for a group without cells."""
    pooled = observed.pool_groups()
    weight = np.broadcast_to(observed.weight, observed.first_sum.shape)
    mean = np.where(weight > 0, observed.mean, pooled.mean)
    pooled_variance = pooled.scatter / np.maximum(pooled.weight, 1.0)
    pooled_variance = np.where(pooled_variance > 0, pooled_variance, 1.0)
    variance = np.where(weight > 1, observed.scatter / np.maximum(weight, 1.0), pooled_variance)
    return Normal(mean, np.where(variance > 0, variance, pooled_variance))
