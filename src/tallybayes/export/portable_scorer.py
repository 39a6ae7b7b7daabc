"""Scores: what a classifier adds up for a row, as plain tables and forms, to be written in other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.dates import dates_of
from tallybayes.data.indicator_columns import is_presence
from tallybayes.data.missing_indicators import sources_of
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.errors import ExportError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families._shared.log_prob_forms import (
    LinearLogForm,
    LogTableForm,
    MultivariateNormalForm,
    MultivariateTForm,
    NormalForm,
    PolyaUrnForm,
    StudentTForm,
    form_of,
)
from tallybayes.families._shared.sql_aggregates import BinIndex, Expression, SqlColumn
from tallybayes.families.family import Family, is_not_overridden
from tallybayes.models.one_dependence.pair_scorer import PairScorer, TreeScorer
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

IMPOSSIBLE = -1e300  # log 0, as a number that can be added up: sums of it are far below all others
LARGEST = 1e100  # numbers beyond are read as this one: their squares are finite
SMALLEST = 1e-150  # numbers nearer to 0 are read as 0: PostgreSQL has no squares of them
_MOST_WEIGHTS = 1_000_000  # of pairs of levels
_ALIKE = 1e-12  # roots of covariances that differ by less, but for a factor, are one


class Cell(NamedTuple):
    """What is read of a column: the label (no reading), or an expression of the number."""

    column: Name
    reading: Expression | None
    support: str | None  # of numbers, as `Linear` has it; None for all that are finite


class Lookup(NamedTuple):
    """Weights by level, (levels, classes), and those of a level that nobody has seen; None where it adds nothing."""

    cell: Cell
    levels: tuple[Any, ...]
    table: np.ndarray
    unseen: np.ndarray | None


class Term(NamedTuple):
    """A form of one column, its arrays (classes,): of what a cell holds, or of whether it is there, 1 or 0."""

    cell: Cell
    form: LinearLogForm | NormalForm | StudentTForm | PolyaUrnForm
    there: bool = False


class Total(NamedTuple):
    """−log Γ(start + N) + log Γ(start) of the sum N of a row's cells."""

    cells: tuple[Cell, ...]
    start: np.ndarray


class PatternScore(NamedTuple):
    """How rows with some cells are scored: log_norm − power · (length or log(1 + length)).

    The length is scale · |inverse (x − center) − shift|²; ``inverse`` is (1 or classes, d, d), ``shift`` (classes, d).
    """

    center: np.ndarray
    inverse: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    power: np.ndarray
    log_norm: np.ndarray


class RowDensity(NamedTuple):
    """A density of several columns together; the cells that a row lacks are integrated out."""

    cells: tuple[Cell, ...]
    form: MultivariateNormalForm | MultivariateTForm
    places: np.ndarray  # of the cells among the form's columns
    possible: np.ndarray  # which classes there may be

    @property
    def bent(self) -> bool:
        """Whether the logarithm of 1 + the length counts, rather than the length."""
        return isinstance(self.form, MultivariateTForm)

    def patterns(self, most: int) -> tuple[list[int], list[PatternScore]]:
        """Which cells a row has, as the bits of a number, and how it is then scored, all (d, …) with zeros for others.

        Only of rows that lack none, where tables for all would hold more than so many numbers.
        """
        d = len(self.cells)
        whole = self._known(np.arange(d), alike=None)
        every = d < 20 and 2**d * (whole.inverse.size + whole.shift.size) <= most
        codes = list(range(2**d)) if every else [2**d - 1]
        return codes, [self._padded(code, alike=len(whole.inverse) == 1) for code in codes]

    def _padded(self, code: int, *, alike: bool) -> PatternScore:
        d, n_classes = len(self.cells), len(self.possible)
        some = np.flatnonzero([(code >> i) & 1 for i in range(d)])
        inverse, shift = np.zeros((1 if alike else n_classes, d, d)), np.zeros((n_classes, d))
        if not len(some):
            nothing = np.zeros(n_classes)
            return PatternScore(np.zeros(d), inverse, shift, nothing, nothing, nothing)
        found, center = self._known(some, alike=alike), np.zeros(d)
        center[some], shift[:, some] = found.center, found.shift
        inverse[:, some[:, None], some] = found.inverse
        return found._replace(center=center, inverse=inverse, shift=shift)

    def _known(self, some: np.ndarray, *, alike: bool | None) -> PatternScore:
        """How rows are scored that have some of the cells; `alike` says whether one root serves all classes."""
        form, columns = self.form, self.places[some]
        mean = (form.mean if isinstance(form, MultivariateNormalForm) else form.location)[:, columns]
        mean = np.where(self.possible[:, None], mean, 0.0)
        center, k = mean[self.possible].mean(axis=0), len(columns)
        turned, log_det = form.whitened(np.eye(k), columns)
        inverse = turned.transpose(1, 2, 0)
        ratio = np.broadcast_to(inverse[:, 0, 0] / inverse[0, 0, 0], len(mean))
        if alike is None:
            alike = np.allclose(inverse, ratio[: len(inverse), None, None] * inverse[0], rtol=_ALIKE, atol=0.0)
        inverse, scale = (inverse[:1], ratio**2) if alike else (inverse, np.ones(len(mean)))
        shift = np.einsum("gij,gj->gi", np.broadcast_to(inverse, (len(mean), k, k)), mean - center)
        power, log_norm = np.full(len(mean), 0.5), -0.5 * log_det - k / 2 * np.log(2 * np.pi)
        if isinstance(form, MultivariateTForm):
            power = form.shape + k / 2
            log_norm = log_rising(form.shape, k / 2) - k / 2 * np.log(np.pi) - log_det / 2
        log_norm = np.where(self.possible, np.broadcast_to(log_norm, len(mean)), 0.0)
        return PatternScore(center, inverse, shift, scale, np.where(self.possible, power, 0.0), log_norm)


class Parents(NamedTuple):
    """Every column in turn the parent of all others; a column's own levels are among all, one after the other.

    The score of a row is the log of a sum over parents: the levels that its cells have, and all those of a column whose
    cell is missing. A parent's part is ``own`` and, for every other cell that there is, ``given``.
    """

    cells: tuple[Cell, ...]
    levels: tuple[tuple[Any, ...], ...]
    column: np.ndarray  # of every level
    own: np.ndarray  # log p(level | class): (levels, classes)
    given: np.ndarray  # log p(level | parent, class): (parents, levels, classes)


class Tree(NamedTuple):
    """Every column given the class and its parent in a tree; missing cells are summed over.

    The score of a row is Σⱼ log p(xⱼ | class, parent of xⱼ). Tables are (parent's levels, levels, classes), those of
    roots (1, levels, classes).
    """

    cells: tuple[Cell, ...]
    levels: tuple[tuple[Any, ...], ...]
    column: np.ndarray  # of every level
    parents: tuple[int, ...]  # of every column, −1 for a root
    order: tuple[int, ...]  # of the columns, parents first
    tables: tuple[np.ndarray, ...]  # log p(level | parent's level, class)


class CalibrationTable(NamedTuple):
    """How probabilities are calibrated: (1 − doubt) · softmax(sharpness · score) + doubt · base; or by steps.

    Steps are the corners of every class's probability against the rest, at some log-odds; what lies between is on a
    line, and all are made to sum to 1.
    """

    sharpness: float
    contamination: float
    base_rates: np.ndarray
    steps: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    @property
    def reorders(self) -> bool:
        """Whether the most probable class may be another one than that of the highest score."""
        return bool(self.contamination or self.steps)


class PortableScorer(NamedTuple):
    """log p(class, row) but for what all classes have in common: the log prior, and what every column adds."""

    classes: list[Any]
    log_prior: np.ndarray
    lookups: list[Lookup]
    terms: list[Term]
    totals: list[Total]
    rows: list[RowDensity]
    mended: CalibrationTable
    unseen: str
    pairs: Parents | Tree | None = None
    dates: tuple[Name, ...] = ()  # columns that are read as the parts of their dates

    def date_of(self, name: Name) -> Name | None:
        """The column of dates that a name is a part of, or None."""
        return next((date for date in dates_of(name) if date in self.dates), None)

    @property
    def cells(self) -> list[Cell]:
        """All that is read, once each."""
        every = [lookup.cell for lookup in self.lookups] + [term.cell for term in self.terms]
        every += [cell for total in self.totals for cell in total.cells]
        every += [cell for rows in self.rows for cell in rows.cells]
        every += [] if self.pairs is None else self.pairs.cells
        return list(dict.fromkeys(every))


def scores_of(model: Any) -> PortableScorer:
    """What a fitted classifier adds up; what cannot be said in plain arithmetic is refused by name."""
    plan: RowScorer | PairScorer = model._row_scorer
    found = PortableScorer(
        model.classes_.tolist(), bounded(plan.log_prior), [], [], [], [], mended_by(model), model.unseen
    )
    found = found._replace(dates=model._shape.dates)
    if isinstance(plan, PairScorer):
        return found._replace(pairs=_pairs(model._columns.families, plan))
    names = {name for part in plan.scored for name in part.factor.columns}
    cells: dict[Name, Cell] = {}
    for part, domains in zip(plan.scored, plan.domains, strict=True):
        if not (sources_of(part.factor.columns[0]) and is_presence(part.factor.columns[0], names)):
            cells |= _add(found, part, domains, np.isneginf(plan.log_prior))
    for part in plan.scored:  # whether cells are there goes by how they are read
        if part.factor.columns[0] not in cells:
            form: Any = _form(part)
            for place, name in enumerate(part.factor.columns):
                source = next(name for name in sources_of(name) if name in cells)
                found.terms.append(Term(cells[source], _column(form, place, np.isneginf(plan.log_prior)), there=True))
    return found


def mended_by(model: Any) -> CalibrationTable:
    """How the probabilities of a model are calibrated, if they are."""
    found, n_classes = model._calibration, len(model.classes_)
    if found is None:
        if model._calibration_pending:
            model._warn_uncalibrated()
        return CalibrationTable(1.0, 0.0, np.zeros(n_classes))
    base = found.base_rates if found.contamination else np.zeros(n_classes)
    return CalibrationTable(
        1 / found.temperature, found.contamination, base, tuple(zip(found.log_odds, found.values, strict=True))
    )


def bounded(log_p: np.ndarray, impossible: np.ndarray | None = None) -> np.ndarray:
    """Log probabilities with a number for log 0; classes that cannot be, which may have none, add nothing."""
    log_p = log_p if impossible is None else np.where(impossible, 0.0, log_p)
    return np.asarray(np.where(np.isneginf(log_p), IMPOSSIBLE, log_p))


def _form(part: FactorScorer) -> Any:
    form = form_of(part.family, part.parameters, part.predictive)
    if isinstance(
        form,
        LogTableForm
        | LinearLogForm
        | NormalForm
        | StudentTForm
        | PolyaUrnForm
        | MultivariateNormalForm
        | MultivariateTForm,
    ):
        return form
    columns = ", ".join(map(repr, part.factor.columns[:3]))
    raise ExportError(
        f"the log probability of {part.family!r} columns ({columns}) has no form that can be written.\n"
        "    Leave the columns out, or count them in another family, such as tb.Gaussian() or tb.Binned(...)."
    )


def _add(scores: PortableScorer, part: FactorScorer, domains: list[Domain], impossible: np.ndarray) -> dict[Name, Cell]:
    """Add what one factor says, and how its columns are read."""
    form, names = _form(part), part.factor.columns
    if _width(form) != len(names):
        raise ExportError(
            f"the block {names[0]!r} has {_width(form)} columns without names; expected a name for each.\n"
            "    Fit the model on a data frame, or on an array of one column each; text is not written."
        )
    cells = [_cell(part, form, name) for name in names]
    kept = [place for place in range(len(names)) if place not in part.constant]
    for place in kept:
        _check_range(form, cells[place], place, ~impossible)
    if isinstance(form, LogTableForm):
        for cell, table, place in zip(cells, form.segments.split(form.log_p), range(len(names)), strict=True):
            scores.lookups.append(_lookup(cell, bounded(table.T, impossible), domains, place, scores.unseen))
    elif isinstance(form, MultivariateNormalForm | MultivariateTForm):
        scores.rows.append(
            RowDensity(tuple(cells[place] for place in kept), form, np.array(kept, dtype=int), ~impossible)
        )
    else:
        scores.terms.extend(Term(cells[place], _column(form, place, impossible)) for place in kept)
        if isinstance(form, PolyaUrnForm) and form.total is not None:
            scores.totals.append(Total(tuple(cells), np.where(impossible, 1.0, form.total[:, 0])))
    return dict(zip(names, cells, strict=True))


def _check_range(form: Any, cell: Cell, place: int, possible: np.ndarray) -> None:
    """Raise ExportError where a column's mean, scale or cut points are out of range."""
    found: dict[str, np.ndarray] = {}
    if isinstance(cell.reading, BinIndex):
        found["cut point"] = np.asarray(cell.reading.cuts)
    if isinstance(form, NormalForm | StudentTForm):
        mean, precision = (
            (form.mean, form.precision) if isinstance(form, NormalForm) else (form.location, form.inverse_spread)
        )
        with np.errstate(divide="ignore"):
            found["scale"] = precision[..., min(place, precision.shape[-1] - 1)] ** -0.5
        found["mean"] = mean[..., place]
    elif isinstance(form, MultivariateNormalForm | MultivariateTForm):
        found["scale"] = 1.0 / np.abs(form.whitened(np.ones((1, 1)), np.array([place]))[0][0, :, 0])
        found["mean"] = (form.mean if isinstance(form, MultivariateNormalForm) else form.location)[..., place]
    for what, each in found.items():
        numbers = each[possible] if each.shape == possible.shape else np.atleast_1d(each)
        wrong = (np.abs(numbers) > LARGEST) | ((numbers < SMALLEST) if what == "scale" else False)
        if wrong.any():
            raise ExportError(
                f"column {cell.column!r} has a {what} of {numbers[wrong][0]:.6g}; exported numbers are at most "
                f"{LARGEST:g}, scales at least {SMALLEST:g}.\n    Rescale the column and fit the model again."
            )


def _width(form: Any) -> int:
    match form:
        case LogTableForm():
            return form.segments.n_columns
        case LinearLogForm():
            return form.weight.shape[-1]
        case PolyaUrnForm():
            return form.start.shape[-1]
        case NormalForm() | MultivariateNormalForm():
            return form.mean.shape[-1]
    return int(form.location.shape[-1])


def _cell(part: FactorScorer, form: Any, name: Name) -> Cell:
    if part.family.cell_type == "codes":
        return Cell(name, None, None)
    reading = (
        part.family.sql_expression(SqlColumn(0))
        if is_not_overridden(part.family, "sql_expression", "transform")
        else None
    )
    if reading is None:
        raise ExportError(
            f"{part.family!r} does not say what it makes of column {name!r}; expected a method `written`.\n"
            "    Leave the column out, or count it in a family of this package."
        )
    if isinstance(form, PolyaUrnForm):
        return Cell(name, reading, "count" if form.total is None else "nonnegative")
    return Cell(name, reading, form.support if isinstance(form, LinearLogForm) else None)


def _lookup(cell: Cell, table: np.ndarray, domains: Sequence[Domain], place: int, unseen: str) -> Lookup:
    """The levels of one column; numbers are looked up by their bins, or are small whole numbers themselves."""
    if cell.reading is not None:
        size = len(cell.reading.cuts) + 1 if isinstance(cell.reading, BinIndex) else len(table)
        return Lookup(cell, tuple(range(size)), table[:size], None)
    levels = domains[place].levels
    return Lookup(cell, levels, table[: len(levels)], table[len(levels)] if unseen == "smooth" else None)


def _column(form: Any, place: int, impossible: np.ndarray) -> Any:
    """A form of one column."""

    def of(array: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
        wide = np.broadcast_to(array, (len(impossible), array.shape[-1]))
        return np.where(impossible, otherwise, wide[:, place if wide.shape[1] > 1 else 0])

    match form:
        case LinearLogForm():
            return LinearLogForm(of(form.weight), of(form.bias), form.support)
        case NormalForm():
            return NormalForm(of(form.mean), of(form.precision), of(form.log_norm))
        case StudentTForm():
            return StudentTForm(of(form.location), of(form.inverse_spread), of(form.power), of(form.log_norm))
    return PolyaUrnForm(of(form.at_zero), of(form.start, 1.0), of(form.slope))


def _pairs(families: Mapping[Name, Family], plan: PairScorer) -> Parents | Tree:
    """The tables of a classifier that counts pairs, if they are not too many."""
    pairs, tables = plan.pairs, plan.tables if isinstance(plan, TreeScorer) else []
    n_pairs = int(pairs.sizes.sum() ** 2 - (pairs.sizes**2).sum())
    n_weights = sum(table.size for table in tables) if tables else n_pairs * len(plan.log_prior)
    if n_weights > _MOST_WEIGHTS:
        raise ExportError(
            f"the pairs of {pairs.sizes.sum()} levels in {len(plan.log_prior)} classes are {n_weights} weights; "
            f"expected at most {_MOST_WEIGHTS}.\n"
            "    Leave columns with many levels out, cut numbers into fewer bins, or write a tb.NaiveBayes."
        )
    if not pairs.names:
        raise ExportError("the model reads no column; expected one.")
    absent = [name for name in pairs.names if families[name].present_family is not None]
    if absent:
        raise ExportError(
            f"absence is a level of column {absent[0]!r}, which is not written of pairs of columns.\n"
            "    Write a tb.NaiveBayes, or fit without tb.WithMissing."
        )
    read = [families[name].sql_expression(SqlColumn(0)) if families[name].bins else None for name in pairs.names]
    cells = tuple(Cell(name, reading, None) for name, reading in zip(pairs.names, read, strict=True))
    for cell in cells:
        _check_range(None, cell, 0, np.ones(len(plan.log_prior), dtype=bool))
    levels = tuple(domain.levels for domain in pairs.domains)
    if isinstance(plan, TreeScorer):
        return Tree(cells, levels, pairs.column, tuple(plan.parents), tuple(plan.order), tuple(tables))
    own, given = np.log(pairs.level_proba).T, np.log(pairs.conditional(plan.strength)).transpose(1, 2, 0)
    return Parents(cells, levels, pairs.column, own, given)
