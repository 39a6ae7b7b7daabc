"""RowScorer: log p(class, row) of a fitted classifier; common families by the kernels, others by NumPy in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes import kernels
from tallybayes.data.table import Table
from tallybayes.errors import CellError, DataError
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.estimation.scoring.extreme_rows import (
    LOST,
    rescore_extreme_rows,
    rows_without_precision,
    settled_best,
)
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.estimation.scoring.factor_tables import NATIVE, FactorTables, Form
from tallybayes.families._shared.blocks import SparseRows, cell, n_columns
from tallybayes.tally.domain import Domain

_TOGETHER = 262_144  # bytes of log tables that are looked up together, so that they stay in the cache


class KernelRows(NamedTuple):
    """The rows of a table for the kernels: the numbers of the factors that they score, the scorer, and the blocks."""

    numbers: list[int]
    scorer: kernels.Scorer
    blocks: list[Any]


class RowScorer:
    """The factors of a classifier, prepared to score rows.

    Parameters
    ----------
    scored : list of FactorScorer
    log_prior : ndarray of shape (classes,)
    domains : list of lists of Domain
        The levels of every column of every categorical factor; empty lists for the others.
    unseen : {"missing", "smooth", "error"}
    """

    def __init__(
        self, scored: Sequence[FactorScorer], log_prior: np.ndarray, domains: Sequence[Sequence[Domain]], unseen: str
    ) -> None:
        self.log_prior = log_prior
        self.impossible = np.isneginf(log_prior)
        pairs = zip(scored, domains, strict=True)
        self.factors = [FactorTables(scorer, levels, unseen, self.impossible) for scorer, levels in pairs]
        self._scorers: dict[Any, kernels.Scorer] = {}

    def joint(self, table: Table, *, whole: bool = True) -> np.ndarray:
        """Return log p(class, row), shape (n, classes); unless `whole`, without the terms that all classes share."""
        rows = self._kernel_rows(table, whole=whole)
        out = self._run(rows.scorer.joint, rows, table.n_rows)
        blocks = dict(zip(rows.numbers, rows.blocks, strict=False))
        for number, factor in enumerate(self.factors):
            if number not in blocks:
                factor.add_terms(out, table)
            elif whole and (base := factor.log_base(blocks[number])) is not None:
                out += base[:, None]
        out[:, self.impossible] = -np.inf  # such a class may have undefined parameters
        return out

    def posterior(self, table: Table, *, whole: bool = False) -> ClassPosterior:
        """Return log p(class | row) and log p(row).

        Unless `whole`, log p(row) lacks the terms that all classes share.
        """
        rows = self._kernel_rows(table, whole=whole)
        if len(rows.numbers) < len(self.factors):
            found = apply_bayes_rule(self.joint(table, whole=whole), self.log_prior)
        else:
            found = ClassPosterior(*self._run(rows.scorer.posterior, rows, table.n_rows, self.log_prior))
            for base in self._log_bases(rows.blocks, {}) if whole else ():
                found.log_density[:] += base
        if table.n_rows and not found.log_density.min() >= LOST:
            rescore_extreme_rows(self, table, found)
        return found

    def uses_kernels(self, table: Table, n_scorers: int = 0) -> bool:
        """Return whether the kernels score every factor of these rows, and this number of scorers fits the cache."""
        rows = self._kernel_rows(table, counted=True)
        return len(rows.numbers) >= len(self.factors) and n_scorers * rows.scorer.n_bytes <= _TOGETHER

    def posterior_of(
        self, rows: np.ndarray, table: Table, out: ClassPosterior, log_base: dict[int, np.ndarray]
    ) -> None:
        """Write log p(class | row) and log p(row) of some rows, by number, that were counted before.

        ``log_base`` caches the terms that all classes share, by the number of the factor.
        """
        all_rows = self._kernel_rows(table, counted=True)
        if len(all_rows.numbers) < len(self.factors):
            found = apply_bayes_rule(self.joint(table.rows(rows)), self.log_prior)
            out.log_proba[rows], out.log_density[rows] = found
            return
        self._run(all_rows.scorer.posterior, all_rows, table.n_rows, self.log_prior, rows, *out)
        for base in self._log_bases(all_rows.blocks, log_base):
            out.log_density[rows] += base[rows]

    def _log_bases(self, blocks: Sequence[Any], kept: dict[int, np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the terms that all classes share, of every factor that has some."""
        for number, factor in enumerate(self.factors):
            if number not in kept:
                base = factor.log_base(blocks[number])
                kept[number] = np.zeros(0) if base is None else base
            if kept[number].size:
                yield kept[number]

    def argmax(self, table: Table) -> np.ndarray:
        """Return the code of the most probable class of every row; ties go to the first class."""
        rows = self._kernel_rows(table, whole=False)
        if len(rows.numbers) < len(self.factors):
            joint = self.joint(table, whole=False)
            best = joint.argmax(axis=1)
            return settled_best(self, table, best, rows_without_precision(joint[np.arange(len(best)), best]))
        return settled_best(self, table, *self._run(rows.scorer.argmax_and_lost, rows, table.n_rows))

    def argmax_array(self, X: np.ndarray) -> np.ndarray | None:
        """Return `argmax` of a plain array with the model's columns; None if the kernels cannot read it directly."""
        found = [factor.array_block(X) for factor in self.factors] if X.dtype in NATIVE else [None]
        prepared = [part for part in found if part is not None]
        if len(prepared) < len(found):
            return None
        numbers = list(range(len(prepared)))
        scorer = self._scorer(numbers, [form for _, form in prepared])
        rows = KernelRows(numbers, scorer, [block for block, _ in prepared])
        codes, lost = self._run(scorer.argmax_and_lost, rows, len(X))
        return codes if lost is None else None

    def _run(self, score: Callable[..., Any], rows: KernelRows, n_rows: int, *arguments: Any) -> Any:
        try:
            return score(
                [block[:3] if isinstance(block, SparseRows) else block for block in rows.blocks], n_rows, *arguments
            )
        except CellError as error:
            place = int(getattr(error, "factor", 0))
            factor = self.factors[rows.numbers[place]].scorer.factor
            block = rows.blocks[place]
            name = factor.column(error.column, n_columns(block))
            value = cell(block, error.row, error.column)
            raise DataError.bad_cell(value, error.row, name, factor.family.allowed_values) from None

    def _kernel_rows(self, table: Table, *, counted: bool = False, whole: bool = True) -> KernelRows:
        """Return the rows of a table for the kernels, without the factors that NumPy scores.

        `counted` rows are valid and not checked. Unless `whole`, words are looked up while text is tokenized.
        """
        found = ((k, factor.block(table, counted=counted, whole=whole)) for k, factor in enumerate(self.factors))
        prepared = [(number, *part) for number, part in found if part is not None]
        numbers = [number for number, _, _ in prepared]
        blocks = [block for _, block, _ in prepared]
        blocks += [block for number, block, _ in prepared if self.factors[number].extra_factor is not None]
        return KernelRows(numbers, self._scorer(numbers, [form for _, _, form in prepared]), blocks)

    def _scorer(self, numbers: Sequence[int], forms: Sequence[Form]) -> kernels.Scorer:
        """Return the kernel scorer of some factors in some forms; it is cached unless a form depends on the table."""
        key = (*numbers, *forms) if all(isinstance(form, str) for form in forms) else None
        if key is not None and key in self._scorers:
            return self._scorers[key]
        chosen = [self.factors[number] for number in numbers]
        parts = [factor.kernel_factor(form) for factor, form in zip(chosen, forms, strict=True)]
        start = sum((added for _, added in parts), self.log_prior)
        extra = [factor.extra_factor for factor in chosen if factor.extra_factor is not None]
        scorer = kernels.Scorer(start, [*(factor for factor, _ in parts), *extra])
        if key is not None:
            self._scorers[key] = scorer
        return scorer


def posterior_by_part(
    scorers: Sequence[RowScorer],
    part: np.ndarray,
    table: Table,
    out: ClassPosterior,
    log_base: dict[int, np.ndarray],
) -> bool:
    """Compute `RowScorer.posterior_of` for all rows in one pass, with the scorer of their part.

    Return False if it is not possible. ``part`` has shape (n,); −1 skips a row.
    """
    first = scorers[0]
    rows = first._kernel_rows(table, counted=True)
    prepared = [scorer._kernel_rows(table, counted=True).scorer for scorer in scorers]
    if len({each.shape for each in prepared}) > 1:  # some tables have values that a kernel cannot score
        return False
    log_prior = np.stack([scorer.log_prior for scorer in scorers])

    def score(blocks: Sequence[Any], n_rows: int) -> None:
        kernels.posterior_by_part(prepared, blocks, n_rows, part, log_prior, *out)

    first._run(score, rows, table.n_rows)
    for base in first._log_bases(rows.blocks, log_base):
        out.log_density[part >= 0] += base[part >= 0]
    return True
