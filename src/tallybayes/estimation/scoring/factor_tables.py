"""FactorTables: one factor of a classifier as tables for the kernels, or scored by NumPy in chunks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.distributions.log_gamma import log_factorials
from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import (
    FactorScorer,
    chunk_of,
    chunk_rows,
    factor_cells,
    map_to_known_levels,
)
from tallybayes.families._shared.blocks import Dense, SparseRows, cell, n_columns
from tallybayes.families._shared.log_prob_forms import Form as LogProbForm
from tallybayes.families._shared.log_prob_forms import LinearLogForm, LogTableForm, NormalForm, StudentTForm, as_cells
from tallybayes.families.protocols.cell_checks import first_invalid_cell
from tallybayes.families.protocols.scoring_forms import log_jacobian, transform
from tallybayes.kernels.base_measure import log_base_csr
from tallybayes.statistics.sufficient_statistics import take_or_zero
from tallybayes.tally.domain import Domain

_DIRECT_LEVELS = 4096  # integers below this are looked up in the log tables directly
NATIVE = {np.dtype(name) for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}

KernelFactor = tuple[Any, ...]  # as `kernels.Scorer` takes it
Form = str | KernelFactor  # "dense", "sparse", "direct" or "words"; or a factor that depends on the rows


class SparseTables(NamedTuple):
    """The kernel factor of sparse rows, and the sum over a row of zeros."""

    factor: KernelFactor
    at_zero: np.ndarray


class FactorTables:
    """The log probabilities of one factor in the forms that the kernels score.

    Parameters
    ----------
    scorer : FactorScorer
    domains : list of Domain
        The levels of every column of a categorical factor.
    unseen : {"missing", "smooth", "error"}
    impossible : ndarray of bool of shape (classes,)
        The classes of probability zero; they may have undefined parameters.
    form : Form, optional
        That of the scorer, if it is computed already.
    """

    def __init__(
        self,
        scorer: FactorScorer,
        domains: Sequence[Domain],
        unseen: str,
        impossible: np.ndarray,
        form: LogProbForm | None = None,
    ) -> None:
        self.scorer = scorer
        self.family = scorer.family
        self.columns = scorer.factor.columns
        self.domains = domains
        self.unseen = unseen
        self.impossible = impossible
        self.form = scorer.form if form is None else form
        self.needs_complete_rows = isinstance(self.form, LinearLogForm) and self.form.support == "nonnegative"
        self.extra_factor: KernelFactor | None = None  # another kernel factor that reads the same block again

    def cells(self, table: Table) -> Any:
        """Return the cells of the factor, ready for its scorer."""
        return factor_cells(table, self.columns, self.family, self.domains, self.unseen)

    # ---- Tables -----------------------------------------------------------------------------------------------------

    @cached_property
    def log_table(self) -> np.ndarray:
        """log p(level | class) of a categorical factor, (cells, classes); zeros for impossible classes."""
        assert isinstance(self.form, LogTableForm)
        return np.where(self.impossible, 0.0, self.form.log_p.T)

    def tables(self, *, sparse: bool) -> KernelFactor | None:
        """Return the kernel tables (columns, classes) of numbers; None if NumPy scores the factor."""
        match self.form:
            case LinearLogForm(weight, bias, support) if sparse:
                return self.bounded("sparse", weight.T, bias.T, support, sparse=True)
            case LinearLogForm(weight, bias, support):
                check = "finite" if support == "nonnegative" else support  # the kernels check only this
                return self.bounded("linear", weight.T, np.broadcast_to(bias, weight.shape).T, check)
            case NormalForm(mean, precision, log_norm, _) if not sparse:
                return self.bounded("normal", mean.T, precision.T, log_norm.T)
            case LogTableForm(_, segments) if not sparse:
                return ("codes", segments.sizes, self.log_table, "missing")
            case StudentTForm(location, inverse_spread, power, log_norm) if not sparse:
                return self.bounded("student", location.T, inverse_spread.T, power.T, log_norm.T)
        return None

    def bounded(self, kind: str, *tables: Any, sparse: bool = False) -> KernelFactor | None:
        """Return tables with zeros for impossible classes; None if they have values that a kernel cannot look up."""
        if self.impossible.any():
            tables = tuple(np.where(self.impossible, 0.0, t) if isinstance(t, np.ndarray) else t for t in tables)
        arrays = [t for t in tables if isinstance(t, np.ndarray)]
        is_bounded = all(np.isfinite(t).all() or (sparse and (t < np.inf).all()) for t in arrays)  # −inf, but not NaN
        return (kind, *tables) if is_bounded else None

    @cached_property
    def dense(self) -> KernelFactor | None:
        """The kernel factor for dense rows; None if there is none."""
        return self.tables(sparse=False)

    @cached_property
    def sparse(self) -> SparseTables | None:
        """The kernel factor for sparse rows; None if there is none."""
        found = self.tables(sparse=True)
        if found is None:
            return None
        kind, weight, bias, check = found
        total = bias.sum(axis=0)
        return SparseTables((kind, weight, check), total) if np.isfinite(total).all() else None

    @cached_property
    def word_weights(self) -> np.ndarray:
        """The weights of words, (words, classes)."""
        assert self.sparse is not None
        return np.ascontiguousarray(self.sparse.factor[1])

    @cached_property
    def direct(self) -> KernelFactor | None:
        """The log table indexed by the values of small integer columns; None for other columns."""
        domains = self.domains
        if self.unseen != "missing" or not domains or any(domain.kind not in ("int", "bool") for domain in domains):
            return None
        sizes = [int(max(domain.levels)) + 1 for domain in domains]
        if max(sizes) > _DIRECT_LEVELS or min(min(domain.levels) for domain in domains) < 0:
            return None
        starts = itertools.accumulate(sizes, initial=0)
        rows = [start + level for start, domain in zip(starts, domains, strict=False) for level in domain.levels]
        table = np.zeros((sum(sizes), len(self.impossible)))  # an integer between the levels is unseen: it adds zero
        table[rows] = self.log_table
        return ("codes", np.array(sizes), table, "missing")

    def reads_directly(self, dtype: np.dtype) -> bool:
        """Return whether the integers of an array are the codes of a categorical factor."""
        kinds = {domain.kind for domain in self.domains}
        same = kinds == {"int"} if dtype.kind in "iu" else kinds == {"bool"} and dtype.kind == "b"
        return same and self.direct is not None

    def kernel_factor(self, form: Form) -> tuple[KernelFactor, np.ndarray | float]:
        """Return the kernel factor of a form, and what it adds to every row."""
        if not isinstance(form, str):
            return form, 0.0
        if form in ("sparse", "words"):
            assert self.sparse is not None
            return ("terms",) if form == "words" else self.sparse.factor, self.sparse.at_zero
        found = self.direct if form == "direct" else self.dense
        assert found is not None
        return found, 0.0

    # ---- Rows -------------------------------------------------------------------------------------------------------

    def block(self, table: Table, *, counted: bool, whole: bool) -> tuple[Any, Form] | None:
        """Return the block of a table for the kernels and its form; None if NumPy scores the factor.

        `counted` rows are valid and not checked. Unless `whole`, words are looked up while text is tokenized.
        """
        family = self.family
        if family.cell_type == "codes" and isinstance(self.form, LogTableForm):
            return self._label_block(table)
        if self.dense is None and self.sparse is None:
            return None
        texts = None if whole else table.columns.get(self.columns[0])
        if isinstance(texts, Texts) and (words := self._word_scores(texts)) is not None:
            return words, "words"
        block = table.numbers(self.columns)
        if isinstance(block, SparseRows):
            if self.sparse is None or (not self.needs_complete_rows and block.has_missing):
                return None
        elif self.dense is None:
            return None
        if not counted:
            self.check_rows(block)
        if isinstance(block, SparseRows):
            return block, "sparse"
        if family.transforms:
            key = (self.columns, family)
            table.cache[key] = block = table.cache[key] if key in table.cache else transform(family, block)
        return block, "dense"

    def array_block(self, X: np.ndarray) -> tuple[np.ndarray, Form] | None:
        """Return the columns of a plain array and their form; None if the kernels cannot read them directly."""
        names = self.columns
        first = names[0] if names else 0
        if not isinstance(first, int) or names != tuple(range(first, first + len(names))):
            return None
        if self.family.transforms:
            return None
        labels = isinstance(self.form, LogTableForm)
        if not (self.reads_directly(X.dtype) if labels else self.dense is not None):
            return None
        block = X if len(names) == X.shape[1] else X[:, first : first + len(names)]
        self.check_rows(block)
        return (block.view(np.uint8) if labels and X.dtype.kind == "b" else block), "direct" if labels else "dense"

    def _label_block(self, table: Table) -> tuple[Dense, Form]:
        """Return categorical columns as codes, and the kernel factor for them; the table is permuted, not the rows."""
        names = self.columns
        matrix = table.matrix
        if matrix is not None and matrix.dtype in NATIVE and self.reads_directly(matrix.dtype):
            block = table.numbers(names)
            if isinstance(block, np.ndarray):
                return (block.view(np.uint8) if matrix.dtype.kind == "b" else block), "direct"
        assert isinstance(self.form, LogTableForm)
        codes, found = table.levels(names)
        offsets = self.form.segments.offsets
        parts = []
        for place, (local, known) in enumerate(zip(found, self.domains, strict=True)):
            column = codes.columns[:, place] if isinstance(codes.columns, np.ndarray) else codes.columns[place]
            where = map_to_known_levels(np.asarray(column), local, known, names[place], self.unseen)
            parts.append(take_or_zero(self.log_table[offsets[place] : offsets[place + 1]], 0, where))
        return codes.columns, ("codes", codes.sizes, np.concatenate(parts), "missing")

    def _word_scores(self, texts: Texts) -> np.ndarray | None:
        """Return the contribution of words to every row, (n, classes); None if texts are missing."""
        if self.sparse is None or (texts.missing is not None and self.sparse.at_zero.any()):
            return None
        return texts.scores(self.word_weights)

    def check_rows(self, block: Dense | SparseRows) -> None:
        """Raise DataError for missing or negative cells if rows have to be complete; the kernels check other cells."""
        if self.family.transforms:  # the kernels see transformed cells
            check_cells(self.scorer, _as_array(block))
        elif self.needs_complete_rows and not isinstance(block, SparseRows) and n_columns(block):
            columns: Sequence[np.ndarray] = [block] if isinstance(block, np.ndarray) else block
            if not all(column.size == 0 or column.min() >= 0 for column in columns):
                check_cells(self.scorer, _as_array(block))

    def add_terms(self, out: np.ndarray, table: Table) -> None:
        """Add the log probabilities to `out`, (n, classes), in NumPy, a chunk of rows at a time."""
        rows = self.cells(table)
        cells = as_cells(self.form) if isinstance(rows, SparseRows) else None
        if cells is not None:
            check_cells(self.scorer, rows)
            out += cells.score(rows)
            return
        # Whitening rows needs no array of shape (rows, classes, columns), so an array is scored in one piece: NumPy's
        # threads then stay busy. An invalid cell shows in the result.
        family = self.family
        light = family.full_moments
        step = chunk_rows((out.shape[1] + 1) * (4 if isinstance(rows, SparseRows) else 1), n_columns(rows))
        if light:
            step = max(table.n_rows, 1) if isinstance(rows, np.ndarray) and rows.dtype == np.float64 else 65536
        for start in range(0, table.n_rows, step):
            piece = chunk_of(rows, slice(start, start + step))
            if not light:
                check_cells(self.scorer, piece, start)
            with np.errstate(invalid="ignore" if light else "warn", over="ignore"):  # far rows are scored again
                terms = self.scorer.log_prob(piece)
            if light and not np.isfinite(terms).all():
                check_cells(self.scorer, piece, start)
            out[start : start + step] += terms.sum(axis=-1) if family.columnwise else terms

    def log_base(self, block: Dense | SparseRows) -> np.ndarray | None:
        """Return the terms of log p(row) that all classes share and the forms leave out; None if there are none."""
        family = self.family
        if family.transforms:
            return log_jacobian(family, np.delete(_as_array(block), self.scorer.constant, axis=1))
        if not isinstance(self.form, LinearLogForm) or self.form.base is None:
            return None
        if isinstance(block, SparseRows):
            return log_base_csr(block.indptr, block.data, self.form.base)
        rows = _as_array(block)
        base = -np.where(np.isnan(rows), 0.0, log_factorials(rows)).sum(axis=1)
        return base + log_factorials(rows.sum(axis=1)) if self.form.base == "multinomial" else base


def check_cells(scorer: FactorScorer, rows: np.ndarray | SparseRows, start: int = 0) -> None:
    """Raise DataError for cells that the family cannot have."""
    wrong = first_invalid_cell(scorer.family, rows)
    if wrong is not None:
        row, column = wrong
        name = scorer.factor.column(column, n_columns(rows))
        raise DataError.bad_cell(cell(rows, row, column), start + row, name, scorer.family.allowed_values)


def _as_array(block: Dense | SparseRows) -> np.ndarray:
    """Return a block as one array."""
    return chunk_of(block, slice(None))
