"""RowScorer: log p(class, row) of a fitted classifier; common families by the kernels, others by NumPy in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tallybayes import kernels
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.distributions.log_gamma import log_factorials
from tallybayes.errors import CellError, DataError
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.estimation.scoring.extreme_rows import rescore_extreme_rows, rows_without_precision, settled_best
from tallybayes.estimation.scoring.factor_scorer import (
    FactorScorer,
    chunk_of,
    chunk_rows,
    factor_cells,
    map_to_known_levels,
)
from tallybayes.families._shared.blocks import Dense, SparseRows, cell, n_columns
from tallybayes.families._shared.log_prob_forms import LinearLogForm, LogTableForm, NormalForm, StudentTForm, as_cells
from tallybayes.families.protocols.cell_checks import first_invalid_cell
from tallybayes.families.protocols.scoring_forms import log_jacobian, transform
from tallybayes.kernels.base_measure import log_base_csr
from tallybayes.statistics.sufficient_statistics import take_or_zero
from tallybayes.tally.domain import Domain

_DIRECT_LEVELS = 4096  # integers below this are looked up in the log tables directly
_TOGETHER = 262_144  # bytes of log tables that are looked up together, so that they stay in the cache
_NATIVE = {np.dtype(name) for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}


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
        self, scored: list[FactorScorer], log_prior: np.ndarray, domains: list[list[Domain]], unseen: str
    ) -> None:
        self.scored = scored
        self.log_prior = log_prior
        self.domains = domains
        self.unseen = unseen
        self._impossible = np.isneginf(log_prior)
        self.forms = [part.form for part in scored]
        self._dense: dict[int, Any] = {}
        self._sparse: dict[int, Any] = {}
        self._words: dict[int, np.ndarray] = {}
        self._direct = [self._direct_table(number) for number in range(len(scored))]
        self._scorers: dict[Any, kernels.Scorer] = {}

    def joint(self, table: Table, *, whole: bool = True) -> np.ndarray:
        """Return log p(class, row), shape (n, classes); unless `whole`, without the terms that all classes share."""
        numbers, scorer, blocks = self._kernel_parts(table, whole=whole)
        out = self._run(scorer.joint, numbers, blocks, table.n_rows)
        for number in range(len(self.forms)):
            if number in numbers:
                base = self._log_base(number, blocks[numbers.index(number)]) if whole else None
                if base is not None:
                    out += base[:, None]
            else:
                self._add_terms(out, table, number)
        out[:, self._impossible] = -np.inf  # such a class may have undefined parameters
        return out

    def posterior(self, table: Table, *, whole: bool = False) -> ClassPosterior:
        """Return log p(class | row) and log p(row).

        Unless `whole`, log p(row) lacks the terms that all classes share.
        """
        numbers, scorer, blocks = self._kernel_parts(table, whole=whole)
        if len(numbers) < len(self.scored):
            return rescore_extreme_rows(self, table, apply_bayes_rule(self.joint(table, whole=whole), self.log_prior))
        found = ClassPosterior(*self._run(scorer.posterior, numbers, blocks, table.n_rows, self.log_prior))
        for base in self._log_bases(blocks, {}) if whole else ():
            found.log_density[:] += base
        return rescore_extreme_rows(self, table, found)

    def uses_kernels(self, table: Table) -> bool:
        """Return whether the kernels score every factor of these rows."""
        return len(self._kernel_parts(table, counted=True)[0]) >= len(self.scored)

    def posterior_of(
        self, rows: np.ndarray, table: Table, out: ClassPosterior, log_base: dict[int, np.ndarray]
    ) -> None:
        """Write log p(class | row) and log p(row) of some rows, by number, that were counted before.

        ``log_base`` caches the terms that all classes share, by the number of the factor.
        """
        numbers, scorer, blocks = self._kernel_parts(table, counted=True)
        if len(numbers) < len(self.scored):
            found = apply_bayes_rule(self.joint(table.rows(rows)), self.log_prior)
            out.log_proba[rows], out.log_density[rows] = found
            return
        self._run(scorer.posterior, numbers, blocks, table.n_rows, self.log_prior, rows, *out)
        for base in self._log_bases(blocks, log_base):
            out.log_density[rows] += base[rows]

    def _log_bases(self, blocks: Sequence[Any], kept: dict[int, np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the terms that all classes share, of every factor that has some."""
        for number in range(len(self.forms)):
            if number not in kept:
                base = self._log_base(number, blocks[number])
                kept[number] = np.zeros(0) if base is None else base
            if kept[number].size:
                yield kept[number]

    def argmax(self, table: Table) -> np.ndarray:
        """Return the code of the most probable class of every row; ties go to the first class."""
        numbers, scorer, blocks = self._kernel_parts(table, whole=False)
        if len(numbers) < len(self.scored):
            joint = self.joint(table, whole=False)
            best = joint.argmax(axis=1)
            return settled_best(self, table, best, rows_without_precision(joint[np.arange(len(best)), best]))
        return settled_best(self, table, *self._run(scorer.argmax_and_lost, numbers, blocks, table.n_rows))

    def argmax_array(self, X: np.ndarray) -> np.ndarray | None:
        """Return `argmax` of a plain array with the model's columns; None if the kernels cannot read it directly."""
        if X.dtype not in _NATIVE:
            return None
        blocks = []
        forms = []
        for number, part in enumerate(self.scored):
            names = part.factor.columns
            first = names[0] if names else 0
            if not isinstance(first, int) or names != tuple(range(first, first + len(names))):
                return None
            if part.family.transforms:
                return None
            labels = isinstance(self.forms[number], LogTableForm)
            if not (self._reads_directly(number, X.dtype) if labels else self._dense_table(number) is not None):
                return None
            block = X if len(names) == X.shape[1] else X[:, first : first + len(names)]
            blocks.append(block.view(np.uint8) if labels and X.dtype.kind == "b" else block)
            forms.append("direct" if labels else "dense")
            self._check_rows(number, block)
        run = self._scorer(tuple(forms)).argmax_and_lost
        codes, lost = self._run(run, list(range(len(blocks))), blocks, len(X))
        return codes if lost is None else None

    def _run(self, score: Any, numbers: Sequence[int], blocks: Sequence[Any], n_rows: int, *arguments: Any) -> Any:
        try:
            return score(
                [block[:3] if isinstance(block, SparseRows) else block for block in blocks], n_rows, *arguments
            )
        except CellError as error:
            place = int(getattr(error, "factor", 0))
            factor = self.scored[numbers[place]].factor
            block = blocks[place]
            name = factor.column(error.column, n_columns(block))
            value = cell(block, error.row, error.column)
            raise DataError.bad_cell(value, error.row, name, factor.family.allowed_values) from None

    def _kernel_parts(
        self, table: Table, *, counted: bool = False, whole: bool = True
    ) -> tuple[list[int], kernels.Scorer, list[Any]]:
        """Return the factors that the kernels score, their scorer, and their blocks of the table.

        `counted` rows are valid and not checked. Unless `whole`, words are looked up while text is tokenized.
        """
        numbers: list[int] = []
        blocks: list[Any] = []
        forms: list[Any] = []
        for number, part in enumerate(self.scored):
            block: Any
            form: Any
            if part.family.cell_type == "codes" and isinstance(self.forms[number], LogTableForm):
                block, form = self._label_block(table, number)
            elif not whole and (found := self._word_scores(table, number)) is not None:
                block = found
                form = "words"
            else:
                block = table.numbers(part.factor.columns)
                form = "sparse" if isinstance(block, SparseRows) else "dense"
                if (self._sparse_table(number) if form == "sparse" else self._dense_table(number)) is None:
                    continue
                if isinstance(block, SparseRows) and not _is_whole(self.forms[number]) and block.has_missing:
                    continue
                if not counted:
                    self._check_rows(number, block)
                if part.family.transforms and form == "dense":
                    key = (part.factor.columns, part.family)
                    block = table.cache[key] if key in table.cache else transform(part.family, block)
                    table.cache[key] = block
            numbers.append(number)
            blocks.append(block)
            forms.append(form)
        return numbers, self._scorer(tuple(forms), numbers), blocks

    def _scorer(self, forms: tuple[Any, ...], numbers: Sequence[int] | None = None) -> kernels.Scorer:
        """Return the kernel scorer of some factors in some forms; it is cached unless a form depends on the table."""
        chosen = tuple(range(len(forms))) if numbers is None else tuple(numbers)
        own = any(not isinstance(form, str) for form in forms)
        key = (forms, chosen) if not own else None
        if key is not None and key in self._scorers:
            return self._scorers[key]
        start = self.log_prior.copy()
        factors = []
        for form, number in zip(forms, chosen, strict=True):
            if form in ("sparse", "words"):
                factor, extra = self._sparse_table(number)
                factor = ("terms",) if form == "words" else factor
                start = start + extra
            elif isinstance(form, str):
                factor = self._direct[number] if form == "direct" else self._dense_table(number)
            else:
                factor = form
            factors.append(factor)
        scorer = kernels.Scorer(start, [*factors, *self._more_factors(chosen)])
        if key is not None:
            self._scorers[key] = scorer
        return scorer

    def _more_factors(self, numbers: Sequence[int]) -> list[Any]:
        """Return additional factors that read the blocks of these factors again."""
        return []

    def _word_scores(self, table: Table, number: int) -> np.ndarray | None:
        """Return the contribution of words to every row, (n, classes).

        None if the column is not text or has missing rows.
        """
        texts = table.columns.get(self.scored[number].factor.columns[0])
        if not isinstance(texts, Texts) or self._sparse_table(number) is None:
            return None
        (_, weight, _), at_zero = self._sparse_table(number)
        if texts.missing is not None and at_zero.any():
            return None
        if number not in self._words:
            self._words[number] = np.ascontiguousarray(weight)
        return texts.scores(self._words[number])

    def _add_terms(self, out: np.ndarray, table: Table, number: int) -> None:
        """Add the log probabilities of a factor in NumPy, a chunk of rows at a time."""
        part = self.scored[number]
        rows = factor_cells(table, part.factor.columns, part.family, self.domains[number], self.unseen)
        cells = as_cells(self.forms[number]) if isinstance(rows, SparseRows) else None
        if cells is not None:
            check_cells(part, rows)
            out += cells.score(rows)
            return
        # Whitening rows needs no array of shape (rows, classes, columns), so an array is scored in one piece: NumPy's
        # threads then stay busy. An invalid cell shows in the result.
        light = part.family.full_moments
        step = chunk_rows((out.shape[1] + 1) * (4 if isinstance(rows, SparseRows) else 1), n_columns(rows))
        if light:
            step = max(table.n_rows, 1) if isinstance(rows, np.ndarray) and rows.dtype == np.float64 else 65536
        for start in range(0, table.n_rows, step):
            piece = chunk_of(rows, slice(start, start + step))
            if not light:
                check_cells(part, piece, start)
            with np.errstate(
                invalid="ignore" if light else "warn", over="ignore"
            ):  # rows far from every class are scored again
                terms = part.log_prob(piece)
            if light and not np.isfinite(terms).all():
                check_cells(part, piece, start)
            out[start : start + step] += terms.sum(axis=-1) if part.family.columnwise else terms

    def _check_rows(self, number: int, block: Any) -> None:
        """Raise DataError for missing or negative cells if rows have to be complete; the kernels check other cells."""
        if self.scored[number].family.transforms:  # the kernels see transformed cells
            check_cells(self.scored[number], chunk_of(_as_rows(block), slice(None)))
        elif _is_whole(self.forms[number]) and not isinstance(block, SparseRows) and n_columns(block):
            columns = [block] if isinstance(block, np.ndarray) else block
            if not all(column.size == 0 or column.min() >= 0 for column in columns):
                check_cells(self.scored[number], chunk_of(_as_rows(block), slice(None)))

    def _tables(self, number: int, *, sparse: bool) -> Any:
        """Return the kernel tables (columns, classes) of a numeric factor; None if NumPy scores it."""
        match self.forms[number]:
            case LinearLogForm(weight, bias, support) if sparse:
                return self._bounded(("sparse", weight.T, bias.T, support), sparse)
            case LinearLogForm(weight, bias, support):
                check = "finite" if support == "nonnegative" else support  # the kernels check only this
                return self._bounded(("linear", weight.T, np.broadcast_to(bias, weight.shape).T, check), sparse)
            case NormalForm(mean, precision, log_norm, _) if not sparse:
                return self._bounded(("normal", mean.T, precision.T, log_norm.T), sparse)
            case LogTableForm() if not sparse:
                log_table, segments = self._log_table(number)
                return ("codes", segments.sizes, log_table, "missing")
            case StudentTForm(location, inverse_spread, power, log_norm) if not sparse:
                return self._bounded(("student", location.T, inverse_spread.T, power.T, log_norm.T), sparse)
        return None

    def _log_base(self, number: int, block: Any) -> np.ndarray | None:
        """Return the terms of log p(row) that all classes share and forms leave out."""
        part = self.scored[number]
        if part.family.transforms:
            moved = chunk_of(_as_rows(block), slice(None))
            return log_jacobian(part.family, np.delete(moved, part.constant, axis=1) if len(part.constant) else moved)
        return _log_base(self.forms[number], block)

    def _bounded(self, found: Any, sparse: bool) -> Any:
        """Return the tables with zeros for impossible classes.

        None if they have values that a kernel cannot look up.
        """
        kind, *tables = found
        if self._impossible.any():
            tables = [np.where(self._impossible, 0.0, t) if isinstance(t, np.ndarray) else t for t in tables]
        arrays = [t for t in tables if isinstance(t, np.ndarray)]
        bounded = all(
            np.isfinite(t).all() or (sparse and (t < np.inf).all()) for t in arrays
        )  # −inf is allowed, NaN is not
        return (kind, *tables) if bounded else None

    def _dense_table(self, number: int) -> Any:
        """Return the kernel factor for dense rows; None if there is none."""
        if number not in self._dense:
            self._dense[number] = self._tables(number, sparse=False)
        return self._dense[number]

    def _sparse_table(self, number: int) -> Any:
        """Return the kernel factor for sparse rows, and the sum over a row of zeros; None if there is none."""
        if number not in self._sparse:
            found = self._tables(number, sparse=True)
            if found is not None:
                kind, weight, bias, check = found
                total = bias.sum(axis=0)
                found = ((kind, weight, check), total) if np.isfinite(total).all() else None
            self._sparse[number] = found
        return self._sparse[number]

    def _log_table(self, number: int) -> tuple[np.ndarray, Any]:
        """Return log p(level | class), (cells, classes), and the segments of the columns."""
        form = self.forms[number]
        assert isinstance(form, LogTableForm)
        return np.where(self._impossible, 0.0, form.log_p.T), form.segments

    def _direct_table(self, number: int) -> Any:
        """Return a log table that is indexed by the values of small integer columns; None for other columns."""
        domains = self.domains[number]
        if self.unseen != "missing" or not domains:
            return None
        if any(d.kind not in ("int", "bool") or min(d.levels) < 0 or max(d.levels) >= _DIRECT_LEVELS for d in domains):
            return None
        log_table, segments = self._log_table(number)
        sizes = [int(max(domain.levels)) + 1 for domain in domains]
        parts = []
        for domain, size, cells in zip(domains, sizes, segments.split(log_table.T), strict=True):
            table = np.zeros((size, log_table.shape[1]))  # an integer between the levels is unseen: it adds zero
            table[np.array(domain.levels, dtype=np.intp)] = cells.T
            parts.append(table)
        return ("codes", np.array(sizes), np.concatenate(parts), "missing")

    def _reads_directly(self, number: int, dtype: np.dtype) -> bool:
        """Return whether the integers of an array are the codes of a categorical factor."""
        kinds = {domain.kind for domain in self.domains[number]}
        same = kinds == {"int"} if dtype.kind in "iu" else kinds == {"bool"} and dtype.kind == "b"
        return same and self._direct[number] is not None

    def _label_block(self, table: Table, number: int) -> tuple[Dense, Any]:
        """Return categorical columns as codes, and the kernel factor for them; the table is permuted, not the rows."""
        names = self.scored[number].factor.columns
        domains = self.domains[number]
        matrix = table.matrix
        if matrix is not None and matrix.dtype in _NATIVE and self._reads_directly(number, matrix.dtype):
            block = table.numbers(names)
            if isinstance(block, np.ndarray):
                return (block.view(np.uint8) if matrix.dtype.kind == "b" else block), "direct"
        codes, found = table.levels(names, lambda _: False)
        log_table, segments = self._log_table(number)
        parts = []
        for place, (local, known) in enumerate(zip(found, domains, strict=True)):
            cells = log_table[segments.offsets[place] : segments.offsets[place + 1]]
            column = codes.columns[:, place] if isinstance(codes.columns, np.ndarray) else codes.columns[place]
            where = map_to_known_levels(np.asarray(column), local, known, names[place], self.unseen)
            parts.append(take_or_zero(cells, 0, where))
        return codes.columns, ("codes", codes.sizes, np.concatenate(parts), "missing")


def posterior_by_fold(
    plans: Iterator[RowScorer],
    n_parts: int,
    part: np.ndarray,
    table: Table,
    out: ClassPosterior,
    log_base: dict[int, np.ndarray],
) -> bool:
    """Compute `RowScorer.posterior_of` for all rows in one pass, with the scorer of their fold.

    Return False if not possible.

    ``part`` has shape (n,); −1 skips a row.
    """
    first = next(plans)
    if not first.uses_kernels(table):
        return False
    numbers, scorer, blocks = first._kernel_parts(table, counted=True)
    if n_parts * scorer.n_bytes > _TOGETHER:
        return False
    everyone = [first, *plans]
    scorers = [scorer, *(plan._kernel_parts(table, counted=True)[1] for plan in everyone[1:])]
    if len({each.shape for each in scorers}) > 1:  # some tables have values that a kernel cannot score
        return False
    log_prior = np.stack([plan.log_prior for plan in everyone])

    def score(blocks: Sequence[Any], n_rows: int) -> None:
        kernels.posterior_by_part(scorers, blocks, n_rows, part, log_prior, *out)

    first._run(score, numbers, blocks, table.n_rows)
    for base in first._log_bases(blocks, log_base):
        out.log_density[part >= 0] += base[part >= 0]
    return True


def check_cells(part: FactorScorer, rows: np.ndarray | SparseRows, start: int = 0) -> None:
    """Raise DataError for cells that the family cannot have."""
    wrong = first_invalid_cell(part.family, rows)
    if wrong is not None:
        row, column = wrong
        name = part.factor.column(column, n_columns(rows))
        raise DataError.bad_cell(cell(rows, row, column), start + row, name, part.family.allowed_values)


def _is_whole(form: Any) -> bool:
    """Return whether rows have to be complete."""
    return isinstance(form, LinearLogForm) and form.support == "nonnegative"


def _as_rows(block: Any) -> Any:
    return block if isinstance(block, np.ndarray) else list(block)


def _log_base(form: Any, block: Any) -> np.ndarray | None:
    """Return the terms of log p(row) that all classes share and the linear kernels leave out."""
    if not isinstance(form, LinearLogForm) or form.base is None:
        return None
    if isinstance(block, SparseRows):
        return log_base_csr(block.indptr, block.data, form.base)
    rows = chunk_of(_as_rows(block), slice(None))
    base = -np.where(np.isnan(rows), 0.0, log_factorials(rows)).sum(axis=1)
    return base + log_factorials(rows.sum(axis=1)) if form.base == "multinomial" else base
