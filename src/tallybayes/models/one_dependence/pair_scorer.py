"""How classifiers that count pairs score rows: with every column as the parent in turn, or along a tree."""

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
from tallybayes.models.one_dependence.pair_model import PairCounts

_CELLS = 2_000_000  # of the largest array while rows are scored by NumPy
_IN_CACHE = 32_768  # of one that is read again at once


class PairScorer(ABC):
    """The tables of a classifier that counts pairs, prepared to score any rows.

    Parameters
    ----------
    pairs : Pairs
    strength : float
    log_prior : ndarray of shape (classes,)
    codes_of : callable
        From a table to the levels of its rows; only codes are scored if left out.
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
        """log p(class, row) of rows given by their codes, −1 where a cell is missing: (n, classes)."""

    @abstractmethod
    def own_class(self, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """log p(row | its class), each row of this weight taken out of the counts of its class: (n,)."""

    def _read(self, table: Table) -> list[np.ndarray]:
        assert self._codes_of is not None
        return self._codes_of(table)

    def joint(self, table: Table, *, whole: bool = True) -> np.ndarray:
        """log p(class, row) of every row: (n, classes)."""
        if not self.pairs.names:
            return np.repeat(self.log_prior[None], table.n_rows, axis=0)
        return self.joint_of(self._read(table))

    def posterior(self, table: Table, *, whole: bool = False) -> ClassPosterior:
        """log p(class | row) of every row, and log p(row)."""
        return apply_bayes_rule(self.joint(table), self.log_prior)

    def posterior_of(
        self, rows: np.ndarray, table: Table, out: ClassPosterior, log_base: dict[int, np.ndarray]
    ) -> None:
        """Write log p(class | row) and log p(row) of some rows, by number; the table's codes are found once."""
        if not self.pairs.names:
            out.log_proba[rows], out.log_density[rows] = self.posterior(table.rows(rows))
            return
        key = ("codes", *self.pairs.names)
        if key not in table.cache:
            table.cache[key] = self._read(table)
        joint = self.joint_of([column[rows] for column in table.cache[key]])
        out.log_proba[rows], out.log_density[rows] = apply_bayes_rule(joint, self.log_prior)

    def uses_kernels(self, table: Table) -> bool:
        """No: not by those that score columns apart."""
        return False

    def argmax(self, table: Table) -> np.ndarray:
        """The most probable class of every row, as a code; ties go to the first."""
        return self.joint(table).argmax(axis=1)

    def argmax_array(self, X: np.ndarray) -> np.ndarray | None:
        """None: there is no shorter way."""
        return None

    def left_out(
        self, table: Table, group: np.ndarray, weight: np.ndarray | None, log_prior: np.ndarray
    ) -> ClassPosterior:
        """The scores of every row by the counts of all others; `log_prior` is without each row, (n, classes)."""
        every = self._read(table)
        joint = log_prior + (self.joint(table) - self.log_prior)
        codes = np.stack([column.astype(np.int64) for column in every], axis=1) if every else None
        for part in self._chunks(table.n_rows, len(self.pairs.sizes) * int(self.pairs.sizes.max(initial=1))):
            if codes is not None:
                heavy = np.ones(len(group[part])) if weight is None else weight[part]
                own = self.own_class(codes[part], group[part], heavy)
                rows = np.arange(table.n_rows)[part]
                joint[rows, group[part]] = own + log_prior[rows, group[part]]
        return apply_bayes_rule(joint, log_prior)

    def _chunks(self, n_rows: int, width: int, cells: int = _CELLS) -> Iterator[slice]:
        step = max(1, cells // max(1, width))
        yield from (slice(start, start + step) for start in range(0, n_rows, step))

    def _own_shares(self, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """p(cell | class) without the row: (n, columns), 1 where a cell is missing."""
        pairs = self.pairs
        known = codes >= 0
        level = np.where(known, codes + pairs.offsets[:-1], 0)
        total = pairs.column_totals + np.add.reduceat(pairs.prior_counts, pairs.offsets[:-1], axis=1)
        mine = group[:, None]
        left = _less(pairs.level_counts[mine, level], weight[:, None])
        rest = _less(total[group], weight[:, None])
        return np.where(known, (left + pairs.prior_counts[mine, level]) / rest, 1.0)


def _less(counted: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What is left of counts, not below 0 by rounding."""
    return np.maximum(counted - weight, 0.0)


class AllParentsScorer(PairScorer):
    """Every column in turn is the parent of all others: log 1/d Σᵢ p(class, xᵢ) Πⱼ p(xⱼ | class, xᵢ).

    `room`: of `panels_of`, which a plan of as many levels had before.
    """

    def __init__(
        self,
        pairs: PairCounts,
        strength: float,
        log_prior: np.ndarray,
        codes_of: Callable[[Table], list[np.ndarray]] | None = None,
        room: np.ndarray | None = None,
    ) -> None:
        super().__init__(pairs, strength, log_prior, codes_of)
        self._room = room

    @cached_property
    def _panels(self) -> np.ndarray:
        pairs = self.pairs
        m = self.strength
        shares = pairs.shares
        n_classes, n_levels = shares.shape
        panels = panels_of(n_levels, n_classes) if self._room is None else self._room
        alike = pairs.level_column_totals.strides[-1] == 0  # no cell is missing: all columns are known in as many rows
        prior = m * shares[:, None]
        log_total = np.log((pairs.level_column_totals[..., :1] if alike else pairs.level_column_totals) + m)
        for part in self._chunks(n_levels, n_classes * n_levels, _IN_CACHE):
            terms = pairs.pair_counts[:, part] + prior
            np.log(terms, out=terms)
            terms -= log_total[:, part] if alike else np.repeat(log_total[:, part], pairs.sizes, axis=2)
            panels[part, 1:, :n_classes] = terms.transpose(1, 2, 0)
        own = np.log(shares).T + (self.log_prior - np.log(len(pairs.sizes)))
        for first, last in pairwise(pairs.offsets.tolist()):
            panels[first:last, 1 + first : 1 + last, :n_classes] = np.eye(last - first)[..., None] * own[first:last]
        return panels

    def joint_of(self, codes: list[np.ndarray]) -> np.ndarray:
        """By the kernel."""
        return score_pairs(codes, self.pairs.sizes, self._panels, len(self.log_prior))

    def own_class(self, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """By NumPy, a parent at a time."""
        pairs = self.pairs
        m = self.strength
        known = codes >= 0
        shares = self._own_shares(codes, group, weight)
        d = len(pairs.sizes)
        level = np.where(known, codes + pairs.offsets[:-1], 0)
        log_shares = np.log(shares)
        out = np.full(len(codes), -np.inf)
        columns = np.arange(d)
        for i in range(d):
            here = np.flatnonzero(known[:, i])
            mine = group[here, None]
            parent = level[here, i][:, None]
            w = weight[here, None]
            counted = _less(pairs.pair_counts[mine, parent, level[here]], w)
            total = _less(pairs.level_column_totals[mine, parent, columns], w)
            term = np.log((counted + m * shares[here]) / (total + m))
            term = np.where(known[here] & (columns != i), term, 0.0).sum(axis=1) + log_shares[here, i]
            out[here] = np.logaddexp(out[here], term)
            here = np.flatnonzero(~known[:, i])
            for parent_level in range(pairs.offsets[i], pairs.offsets[i + 1]) if len(here) else ():
                mine = group[here, None]
                counted = pairs.pair_counts[mine, parent_level, level[here]]
                term = np.log(
                    (counted + m * shares[here]) / (pairs.level_column_totals[mine, parent_level, columns] + m)
                )
                term = np.where(known[here], term, 0.0).sum(axis=1)
                out[here] = np.logaddexp(out[here], term + np.log(pairs.shares[group[here], parent_level]))
        return out - np.log(d)


class TreeScorer(PairScorer):
    """Every column but the first has one parent: log p(class) Πⱼ p(xⱼ | class, its parent)."""

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
        shares = pairs.shares
        tables = self.tables
        for j, parent in enumerate(self.parents):
            table = shares[:, None, self._span(j)] if parent < 0 else pairs.given(self.strength, parent, j)
            tables.append(np.log(table).transpose(1, 2, 0))
        flat = np.concatenate([table.reshape(-1, table.shape[-1]) for table in tables])
        self._joined = np.array([table.shape[0] * table.shape[1] for table in tables], dtype=np.int64)
        start = np.where(np.isneginf(log_prior), 0.0, log_prior)
        self._scorer = kernels.Scorer(start, [("codes", self._joined, flat, "missing")])

    def _span(self, column: int) -> slice:
        return slice(self.pairs.offsets[column], self.pairs.offsets[column + 1])

    def joint_of(self, codes: list[np.ndarray]) -> np.ndarray:
        """Whole rows by the kernel, those with missing cells by messages."""
        signed = [column.astype(np.int32) for column in codes]
        broken = np.zeros(len(signed[0]), dtype=bool)
        for column in signed:
            broken |= column < 0
        block = []
        for j, parent in enumerate(self.parents):
            column = signed[j] if parent < 0 else signed[parent] * self.pairs.sizes[j].astype(np.int32) + signed[j]
            block.append(np.where(broken, -1, column).astype(np.int32))
        out = self._scorer.joint([block], len(broken))
        lost = np.flatnonzero(broken)
        if len(lost):
            some = np.stack([column[lost] for column in signed], axis=1)
            for part in self._chunks(len(lost), out.shape[1] * int(self.pairs.sizes.max())):
                out[lost[part]] = self._by_messages(some[part], slice(None)) + self.log_prior
        out[:, np.isneginf(self.log_prior)] = -np.inf
        return out

    def own_class(self, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """By messages, each row's own counts taken out."""
        shares = self._own_shares(codes, group, weight)
        out = np.empty(len(codes))
        for k in range(len(self.log_prior)):
            mine = np.flatnonzero(group == k)
            out[mine] = self._by_messages(codes[mine], slice(k, k + 1), shares[mine], weight[mine])[:, 0]
        return out

    def _by_messages(
        self, codes: np.ndarray, classes: slice, shares: np.ndarray | None = None, weight: np.ndarray | None = None
    ) -> np.ndarray:
        """log p(row | class), (n, classes), missing cells summed over from the leaves up.

        `weight` is taken out of the counts, of one class.
        """
        known = codes >= 0
        below: list[Any] = [None] * len(self.parents)  # what the columns under each say of its levels: (n, levels, …)
        total = np.zeros((len(codes), len(self.log_prior[classes])))
        for j in self.order[::-1]:
            parent = self.parents[j]
            said = below[j]
            table = self.tables[j][..., classes]
            here = np.flatnonzero(known[:, j])
            lost = np.flatnonzero(~known[:, j])
            message = np.zeros((len(codes), table.shape[0], total.shape[1]))
            cells = codes[here, j]
            if weight is None or shares is None:
                message[here] = table[:, cells].swapaxes(0, 1)
            else:
                rest = self._from_rest(j, codes[here], int(classes.start), shares[here, j], weight[here])
                message[here] = rest[..., None]
            if said is not None:  # else a missing cell says nothing: its levels sum to 1
                message[here] += said[here, cells][:, None]
                top = said[lost].max(axis=1, initial=-np.inf)[:, None]
                message[lost] = top + np.log(np.einsum("nlk,plk->npk", np.exp(said[lost] - top), np.exp(table)))
            if parent < 0:
                total += message[:, 0]
            else:
                below[parent] = message if below[parent] is None else below[parent] + message
        return total

    def _from_rest(self, j: int, codes: np.ndarray, k: int, shares: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """log p(cell of column j | class k, every level of its parent) without the row, in which it is known."""
        pairs = self.pairs
        m = self.strength
        parent = self.parents[j]
        if parent < 0:
            return np.log(shares)[:, None]
        level = codes[:, j] + pairs.offsets[j]
        above = self._span(parent)
        counted = pairs.pair_counts[k][above, level].T
        total = pairs.level_column_totals[k, above, j]
        mine = np.arange(pairs.sizes[parent]) == codes[:, parent][:, None]  # nowhere, if it is missing
        out = np.where(mine, weight[:, None], 0.0)
        return np.log((_less(counted, out) + m * shares[:, None]) / (_less(total, out) + m))
