"""Row scorers of one-dependence classifiers: every column as the parent in turn, or along a tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from tallybayes import kernels
from tallybayes.data.table import Table
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.kernels.pair_counts import panels_of, score_pairs
from tallybayes.models.one_dependence.pair_counts import PairCounts

_CELLS = 2_000_000  # of the largest array in NumPy
_IN_CACHE = 32_768  # of an array that stays in the cache


class PairScorer(ABC):
    """Row scorer of a one-dependence classifier.

    Parameters
    ----------
    pairs : PairCounts
    strength : float
        The prior strength of a pair's table, in rows.
    log_prior : ndarray of shape (classes,)
    codes_of : callable, optional
        From a table to the level codes of its rows; only needed to score tables.
    """

    def __init__(
        self,
        pairs: PairCounts,
        strength: float,
        log_prior: np.ndarray,
        codes_of: Callable[[Table], list[np.ndarray]] | None = None,
    ) -> None:
        self.pairs = pairs
        self.strength = float(strength)
        self.log_prior = log_prior
        self._codes_of = codes_of

    @abstractmethod
    def joint_of(self, codes: list[np.ndarray]) -> np.ndarray:
        """Return log p(class, row) of rows given by level codes, −1 where a cell is missing: (n, classes)."""

    @abstractmethod
    def own_class(self, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return log p(row | its class), with each row subtracted from the counts of its class: (n,)."""

    def _read(self, table: Table) -> list[np.ndarray]:
        assert self._codes_of is not None
        return self._codes_of(table)

    def joint(self, table: Table, *, whole: bool = True) -> np.ndarray:
        """Return log p(class, row) of each row: (n, classes)."""
        if not self.pairs.names:
            return np.repeat(self.log_prior[None], table.n_rows, axis=0)
        return self.joint_of(self._read(table))

    def posterior(self, table: Table, *, whole: bool = False) -> ClassPosterior:
        """Return log p(class | row) of each row, and log p(row)."""
        return apply_bayes_rule(self.joint(table), self.log_prior)

    def posterior_of(
        self, rows: np.ndarray, table: Table, out: ClassPosterior, log_base: dict[int, np.ndarray]
    ) -> None:
        """Write log p(class | row) and log p(row) of some rows into `out`; the table keeps the codes of all rows."""
        if not self.pairs.names:
            out.log_proba[rows], out.log_density[rows] = self.posterior(table.rows(rows))
            return
        key = ("codes", *self.pairs.names)
        if key not in table.cache:
            table.cache[key] = self._read(table)
        joint = self.joint_of([column[rows] for column in table.cache[key]])
        out.log_proba[rows], out.log_density[rows] = apply_bayes_rule(joint, self.log_prior)

    def uses_kernels(self, table: Table, n_scorers: int = 0) -> bool:
        """Return False: columns are not scored separately."""
        return False

    def argmax(self, table: Table) -> np.ndarray:
        """Return the code of the most probable class of each row; ties go to the first class."""
        return self.joint(table).argmax(axis=1)

    def argmax_array(self, X: np.ndarray) -> np.ndarray | None:
        """Return None: there is no faster path for arrays."""
        return None

    def left_out(
        self, table: Table, group: np.ndarray, weight: np.ndarray | None, log_prior: np.ndarray
    ) -> ClassPosterior:
        """Return the leave-one-out scores of each row; `log_prior` is that without each row, (n, classes)."""
        columns = self._read(table)
        joint = log_prior + (self.joint(table) - self.log_prior)
        codes = np.stack([column.astype(np.int64) for column in columns], axis=1) if columns else None
        for chunk in self._chunks(table.n_rows, len(self.pairs.sizes) * int(self.pairs.sizes.max(initial=1))):
            if codes is not None:
                weights = np.ones(len(group[chunk])) if weight is None else weight[chunk]
                own = self.own_class(codes[chunk], group[chunk], weights)
                rows = np.arange(table.n_rows)[chunk]
                joint[rows, group[chunk]] = own + log_prior[rows, group[chunk]]
        return apply_bayes_rule(joint, log_prior)

    def _chunks(self, n_rows: int, width: int, cells: int = _CELLS) -> Iterator[slice]:
        step = max(1, cells // max(1, width))
        yield from (slice(start, start + step) for start in range(0, n_rows, step))

    def _level_proba_without_row(self, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return p(cell | class) without the row: (n, columns), 1 where a cell is missing."""
        pairs = self.pairs
        known = codes >= 0
        level = np.where(known, codes + pairs.offsets[:-1], 0)
        total = pairs.smoothed_totals
        own_class = group[:, None]
        remaining = _subtract(pairs.level_counts[own_class, level], weight[:, None])
        remaining_total = _subtract(total[group], weight[:, None])
        return np.where(known, (remaining + pairs.prior_counts[own_class, level]) / remaining_total, 1.0)


def _subtract(counted: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return counts minus weights; negative rounding errors become 0."""
    return np.maximum(counted - weight, 0.0)


class AllParentsScorer(PairScorer):
    """Scorer of AODE, every column in turn as the parent: log 1/d Σᵢ p(class, xᵢ) Πⱼ p(xⱼ | class, xᵢ).

    `panels`, an array from `panels_of` of the same shape, is reused as memory.
    """

    def __init__(
        self,
        pairs: PairCounts,
        strength: float,
        log_prior: np.ndarray,
        codes_of: Callable[[Table], list[np.ndarray]] | None = None,
        panels: np.ndarray | None = None,
    ) -> None:
        super().__init__(pairs, strength, log_prior, codes_of)
        self._reused_panels = panels

    @cached_property
    def _panels(self) -> np.ndarray:
        """The log tables of all pairs, in the layout of the kernel."""
        pairs = self.pairs
        m = self.strength
        level_proba = pairs.level_proba
        n_classes, n_levels = level_proba.shape
        panels = panels_of(n_levels, n_classes) if self._reused_panels is None else self._reused_panels
        complete = pairs.level_column_totals.strides[-1] == 0  # without missing cells the totals are equal
        prior = m * level_proba[:, None]
        log_total = np.log((pairs.level_column_totals[..., :1] if complete else pairs.level_column_totals) + m)
        for chunk in self._chunks(n_levels, n_classes * n_levels, _IN_CACHE):
            terms = pairs.pair_counts[:, chunk] + prior
            np.log(terms, out=terms)
            terms -= log_total[:, chunk] if complete else np.repeat(log_total[:, chunk], pairs.sizes, axis=2)
            panels[chunk, 1:, :n_classes] = terms.transpose(1, 2, 0)
        own = np.log(level_proba).T + (self.log_prior - np.log(len(pairs.sizes)))
        for first, last in pairwise(pairs.offsets.tolist()):
            panels[first:last, 1 + first : 1 + last, :n_classes] = np.eye(last - first)[..., None] * own[first:last]
        return panels

    def joint_of(self, codes: list[np.ndarray]) -> np.ndarray:
        """Score rows by the kernel."""
        return score_pairs(codes, self.pairs.sizes, self._panels, len(self.log_prior))

    def own_class(self, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Score rows without their own counts in NumPy, one parent at a time."""
        pairs = self.pairs
        m = self.strength
        known = codes >= 0
        level_proba = self._level_proba_without_row(codes, group, weight)
        d = len(pairs.sizes)
        level = np.where(known, codes + pairs.offsets[:-1], 0)
        log_proba = np.log(level_proba)
        out = np.full(len(codes), -np.inf)
        columns = np.arange(d)
        for i in range(d):
            rows = np.flatnonzero(known[:, i])
            own_class = group[rows, None]
            parent = level[rows, i][:, None]
            row_weight = weight[rows, None]
            counted = _subtract(pairs.pair_counts[own_class, parent, level[rows]], row_weight)
            total = _subtract(pairs.level_column_totals[own_class, parent, columns], row_weight)
            term = np.log((counted + m * level_proba[rows]) / (total + m))
            term = np.where(known[rows] & (columns != i), term, 0.0).sum(axis=1) + log_proba[rows, i]
            out[rows] = np.logaddexp(out[rows], term)
            rows = np.flatnonzero(~known[:, i])
            for parent_level in range(pairs.offsets[i], pairs.offsets[i + 1]) if len(rows) else ():
                own_class = group[rows, None]
                counted = pairs.pair_counts[own_class, parent_level, level[rows]]
                term = np.log(
                    (counted + m * level_proba[rows])
                    / (pairs.level_column_totals[own_class, parent_level, columns] + m)
                )
                term = np.where(known[rows], term, 0.0).sum(axis=1)
                out[rows] = np.logaddexp(out[rows], term + np.log(pairs.level_proba[group[rows], parent_level]))
        return out - np.log(d)


class TreeScorer(PairScorer):
    """Scorer of TAN: log p(class) Πⱼ p(xⱼ | class, its parent)."""

    def __init__(
        self,
        pairs: PairCounts,
        strength: float,
        log_prior: np.ndarray,
        codes_of: Callable[[Table], list[np.ndarray]] | None = None,
        tree: Any = None,
    ) -> None:
        super().__init__(pairs, strength, log_prior, codes_of)
        self.parents, self.order = tree
        self.tables: list[np.ndarray] = []  # (parent's levels, levels, classes)
        if not pairs.names:
            return
        level_proba = pairs.level_proba
        tables = self.tables
        for j, parent in enumerate(self.parents):
            table = (
                level_proba[:, None, self.pairs.span(j)] if parent < 0 else pairs.conditional(self.strength, parent, j)
            )
            tables.append(np.log(table).transpose(1, 2, 0))
        flat = np.concatenate([table.reshape(-1, table.shape[-1]) for table in tables])
        self._joined = np.array([table.shape[0] * table.shape[1] for table in tables], dtype=np.int64)
        start = np.where(np.isneginf(log_prior), 0.0, log_prior)
        self._scorer = kernels.Scorer(start, [("codes", self._joined, flat, "missing")])

    def joint_of(self, codes: list[np.ndarray]) -> np.ndarray:
        """Score complete rows by the kernel, and rows with missing cells by message passing."""
        signed = [column.astype(np.int32) for column in codes]
        incomplete = np.zeros(len(signed[0]), dtype=bool)
        for column in signed:
            incomplete |= column < 0
        block = []
        for j, parent in enumerate(self.parents):
            column = signed[j] if parent < 0 else signed[parent] * self.pairs.sizes[j].astype(np.int32) + signed[j]
            block.append(np.where(incomplete, -1, column).astype(np.int32))
        out = self._scorer.joint([block], len(incomplete))
        incomplete_rows = np.flatnonzero(incomplete)
        if len(incomplete_rows):
            incomplete_codes = np.stack([column[incomplete_rows] for column in signed], axis=1)
            for chunk in self._chunks(len(incomplete_rows), out.shape[1] * int(self.pairs.sizes.max())):
                out[incomplete_rows[chunk]] = self._by_messages(incomplete_codes[chunk], slice(None)) + self.log_prior
        out[:, np.isneginf(self.log_prior)] = -np.inf
        return out

    def own_class(self, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Score rows without their own counts, by message passing."""
        level_proba = self._level_proba_without_row(codes, group, weight)
        out = np.empty(len(codes))
        for k in range(len(self.log_prior)):
            rows = np.flatnonzero(group == k)
            out[rows] = self._by_messages(codes[rows], slice(k, k + 1), level_proba[rows], weight[rows])[:, 0]
        return out

    def _by_messages(
        self, codes: np.ndarray, classes: slice, level_proba: np.ndarray | None = None, weight: np.ndarray | None = None
    ) -> np.ndarray:
        """Return log p(row | class), (n, classes), with missing cells summed out from the leaves to the root.

        This is the sum-product algorithm on a tree (Pearl 1982). With `weight`, the row is subtracted from the counts
        of one class.
        """
        known = codes >= 0
        incoming: list[Any] = [None] * len(self.parents)  # messages from the children of each column: (n, levels, …)
        total = np.zeros((len(codes), len(self.log_prior[classes])))
        for j in self.order[::-1]:
            parent = self.parents[j]
            messages = incoming[j]
            table = self.tables[j][..., classes]
            observed = np.flatnonzero(known[:, j])
            missing = np.flatnonzero(~known[:, j])
            message = np.zeros((len(codes), table.shape[0], total.shape[1]))
            cells = codes[observed, j]
            if weight is None or level_proba is None:
                message[observed] = table[:, cells].swapaxes(0, 1)
            else:
                terms = self._table_without_row(
                    j, codes[observed], int(classes.start), level_proba[observed, j], weight[observed]
                )
                message[observed] = terms[..., None]
            if messages is not None:  # without a message, the levels of a missing cell sum to 1
                message[observed] += messages[observed, cells][:, None]
                maximum = messages[missing].max(axis=1, initial=-np.inf)[:, None]
                message[missing] = maximum + np.log(
                    np.einsum("nlk,plk->npk", np.exp(messages[missing] - maximum), np.exp(table))
                )
            if parent < 0:
                total += message[:, 0]
            else:
                incoming[parent] = message if incoming[parent] is None else incoming[parent] + message
        return total

    def _table_without_row(
        self, j: int, codes: np.ndarray, k: int, level_proba: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Return log p(cell of column j | class k, each level of its parent) without the row, for observed cells."""
        pairs = self.pairs
        m = self.strength
        parent = self.parents[j]
        if parent < 0:
            return np.log(level_proba)[:, None]
        level = codes[:, j] + pairs.offsets[j]
        parent_levels = self.pairs.span(parent)
        counted = pairs.pair_counts[k][parent_levels, level].T
        total = pairs.level_column_totals[k, parent_levels, j]
        is_parent_level = np.arange(pairs.sizes[parent]) == codes[:, parent][:, None]  # all False for a missing parent
        subtracted = np.where(is_parent_level, weight[:, None], 0.0)
        return np.log((_subtract(counted, subtracted) + m * level_proba[:, None]) / (_subtract(total, subtracted) + m))
