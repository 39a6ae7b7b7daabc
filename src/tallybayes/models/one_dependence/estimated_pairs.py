"""Estimated one-dependence classifiers: the values behind `AveragedOneDependence` and `TreeAugmentedNaiveBayes`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from tallybayes._utils.spanning_tree import SpanningTree, maximum_spanning_tree
from tallybayes.data.table import Table
from tallybayes.errors import printable
from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer, factor_cells
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.classification.methods.explanation import shown
from tallybayes.models.inputs.discretization import DiscretizedColumns
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.models.one_dependence.mutual_information import conditional_mutual_information
from tallybayes.models.one_dependence.pair_counts import PairCounts, discretize
from tallybayes.models.one_dependence.pair_scorer import AllParentsScorer, PairScorer, TreeScorer
from tallybayes.statistics.counts import Segments
from tallybayes.tally.factor import Factor, Name


@dataclass(frozen=True, eq=False)
class EstimatedPairs(ABC):
    """Estimated p(column | class, parent) of all pairs of columns, and what a one-dependence classifier makes of them.

    Attributes
    ----------
    counts : PairCounts
    columns : DiscretizedColumns
        The families and bins of the columns.
    strength : float
        The prior strength of p(column | class, parent), in rows.
    unseen : {"missing", "error"}
    target : name
    classes : sequence of labels
    """

    counts: PairCounts
    columns: DiscretizedColumns
    strength: float
    unseen: str
    target: Name
    classes: Sequence[Any]

    @abstractmethod
    def row_scorer(self, log_prior: np.ndarray) -> PairScorer:
        """Return the scorer of rows under a class prior."""

    @abstractmethod
    def sample_codes(self, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the level codes of rows of these classes: (n, columns)."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number of free parameters per class of the tables that score rows."""

    @abstractmethod
    def labeled_factors(self) -> list[LabeledFactor]:
        """Return the tables of the columns with labels."""

    @abstractmethod
    def write_work(self, sheet: CalculationSheet, codes: Sequence[int], log_likelihood: np.ndarray) -> None:
        """Add the calculation of log p(row | class) to a sheet.

        Parameters
        ----------
        sheet : CalculationSheet
        codes : sequence of int
            The level codes of one row, −1 where missing.
        log_likelihood : ndarray of shape (classes,)
            log p(row | class).
        """

    def codes(self, table: Table) -> list[np.ndarray]:
        """Return the level codes of each column of rows; −1 where a cell is missing or its level is unseen."""
        counts = self.counts
        if not counts.names:
            return []
        discretized = discretize(self.columns, table)
        if self.unseen == "error":
            return list(factor_cells(discretized, counts.names, Categorical(), counts.domains, "error").T)
        encoded, local_domains = discretized.levels(counts.names)
        columns = list(encoded.columns.T) if isinstance(encoded.columns, np.ndarray) else list(encoded.columns)
        out = []
        for column, local, domain, name in zip(columns, local_domains, counts.domains, counts.names, strict=True):
            codes = domain.positions_of(local.in_kind_of(domain.renamed(str(name))).levels)
            if np.array_equal(codes, np.arange(len(codes))):
                out.append(np.asarray(column))
            else:
                out.append(np.append(codes, -1).astype(np.int32)[column.astype(np.intp)])
        return out

    def table(self, column: int, parent: int | None = None) -> np.ndarray:
        """Return p(level | class, parent level), (classes, parent levels, levels), or p(level | class)."""
        if parent is None:
            return self.counts.level_proba[:, self.counts.span(column)]
        return self.counts.conditional(self.strength, parent, column)

    def labeled_factor(self, name: Name, parent: Name | None = None) -> LabeledFactor:
        """Return the table of a column given the class and a parent column, or given the class only, with labels."""
        counts = self.counts
        families = self.columns.families
        column = counts.names.index(name)
        above = None if parent is None else counts.names.index(parent)
        given: tuple[Name, ...] = (self.target,)
        groups: tuple[Sequence[Any], ...] = (self.classes,)
        if parent is not None and above is not None:
            given = (self.target, parent)
            groups = (self.classes, families[parent].bins or counts.domains[above].display_levels)
        family = families[name]
        factor = Factor(name, given, family if family.bins else family.present_family or family)
        parameters = LevelProbabilities(self.table(column, above), Segments(counts.sizes[[column]]))
        levels = () if family.bins else [counts.domains[column].display_levels]
        return LabeledFactor(FactorScorer(factor, parameters, False, NO_COLUMNS), given, groups, levels)

    def level_label(self, column: int, code: int) -> str:
        """Return a level as text: its label or its bin."""
        if code < 0:
            return "—"
        family = self.columns.families[self.counts.names[column]]
        return shown(family.bins[code] if family.bins else self.counts.domains[column].display_levels[code])


class EstimatedAverage(EstimatedPairs):
    """Every column in turn is the parent of all others, and the joint probabilities are averaged."""

    def row_scorer(self, log_prior: np.ndarray) -> PairScorer:
        """Return the scorer of rows under a class prior."""
        return AllParentsScorer(self.counts, self.strength, log_prior, self.codes)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters per class: each column, and all others given it."""
        sizes = self.counts.sizes
        free = np.maximum(sizes - 1, 0)
        return int(free.sum() + (sizes * (free.sum() - free)).sum())

    def labeled_factors(self) -> list[LabeledFactor]:
        """Return the tables of the columns given the class."""
        return [self.labeled_factor(name) for name in self.counts.names]

    def sample_codes(self, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the parent column uniformly, its level given the class, and the other levels given both."""
        counts = self.counts
        d = len(counts.sizes)
        codes = np.zeros((len(group), d), dtype=np.int64)
        if not d:
            return codes
        proba = counts.conditional(self.strength)
        parent = rng.integers(d, size=len(group))
        for i in range(d):
            rows = np.flatnonzero(parent == i)
            codes[rows, i] = sample_levels(counts.level_proba[group[rows], counts.span(i)], rng)
            for j in range(d):
                if j != i:
                    parent_level = counts.offsets[i] + codes[rows, i]
                    codes[rows, j] = sample_levels(proba[group[rows], parent_level, counts.span(j)], rng)
        return codes

    def write_work(self, sheet: CalculationSheet, codes: Sequence[int], log_likelihood: np.ndarray) -> None:
        """Add log p(row | class) with each column as the parent, and the log of their mean."""
        terms = []
        for i, name in enumerate(self.counts.names):
            children = [j for j in range(len(codes)) if j != i and codes[j] >= 0]
            log_proba = np.log(self.table(i))
            if children:
                tables = [np.log(self.table(j, i))[..., codes[j]] for j in children]
                log_proba = log_proba + sum(tables)
            levels = slice(None) if codes[i] < 0 else slice(codes[i], codes[i] + 1)
            terms.append(logsumexp(log_proba[:, levels], axis=1))
            sheet.add(f"  with parent {printable(name)}", terms[-1], self.level_label(i, codes[i]))
        if terms:
            sheet.add("log of their mean", logsumexp(np.array(terms), axis=0) - np.log(len(terms)))


class EstimatedTree(EstimatedPairs):
    """Every column has one parent column, except the root of the tree."""

    @cached_property
    def tree(self) -> SpanningTree:
        """The maximum spanning tree by conditional mutual information (Chow and Liu 1968)."""
        return maximum_spanning_tree(conditional_mutual_information(self.counts))

    @property
    def parents(self) -> dict[Name, Name | None]:
        """The parent of each column; None for the root."""
        names = self.counts.names
        return {name: None if p < 0 else names[p] for name, p in zip(names, self.tree.parents, strict=True)}

    def row_scorer(self, log_prior: np.ndarray) -> PairScorer:
        """Return the scorer of rows under a class prior."""
        return TreeScorer(self.counts, self.strength, log_prior, self.codes, self.tree)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters per class: each column given its parent."""
        sizes = self.counts.sizes
        n_parent_levels = np.array([1 if p < 0 else sizes[p] for p in self.tree.parents], dtype=np.int64)
        return int((n_parent_levels * np.maximum(sizes - 1, 0)).sum())

    def labeled_factors(self) -> list[LabeledFactor]:
        """Return the tables of the columns given the class and the parent."""
        return [self.labeled_factor(name, parent) for name, parent in self.parents.items()]

    def sample_codes(self, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the levels of the columns given the class and the parent, parents first."""
        codes = np.zeros((len(group), len(self.counts.sizes)), dtype=np.int64)
        for j in self.tree.order:
            parent = self.tree.parents[j]
            proba = self.table(j)[group] if parent < 0 else self.table(j, parent)[group, codes[:, parent]]
            codes[:, j] = sample_levels(proba, rng)
        return codes

    def write_work(self, sheet: CalculationSheet, codes: Sequence[int], log_likelihood: np.ndarray) -> None:
        """Add one term per column; a single term if a column that others depend on is missing."""
        names = self.counts.names
        parents = self.tree.parents
        if any(parent >= 0 and codes[parent] < 0 for parent in parents):
            sheet.add("log p(x | class)", log_likelihood)
            sheet.note("  a missing parent is summed over along the tree, so the rest is not a product")
            return
        for j, (name, parent) in enumerate(zip(names, parents, strict=True)):
            given = "" if parent < 0 else f", {printable(names[parent])}"
            title = f"log p({printable(name)} | class{given})"
            if codes[j] < 0:
                sheet.add(title, np.zeros(len(log_likelihood)), "—")
                sheet.note("  missing: marginalized, adds 0")
                continue
            table = self.table(j) if parent < 0 else self.table(j, parent)[:, codes[parent]]
            sheet.add(title, np.log(table[:, codes[j]]), self.level_label(j, codes[j]))


def sample_levels(proba: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a level code for each row of probabilities (n, levels)."""
    return np.asarray((rng.random((len(proba), 1)) > np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1))
