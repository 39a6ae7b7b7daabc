"""The scores of a classifier as plain tables and forms, for export to other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from tallybayes.data.dates import dates_of
from tallybayes.data.indicator_columns import is_presence
from tallybayes.data.missing_indicators import sources_of
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.errors import ExportError
from tallybayes.estimation.calibration.calibration import Calibration
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
)
from tallybayes.families._shared.sql_aggregates import BinIndex, Expression, SqlColumn
from tallybayes.families.family import Family
from tallybayes.families.protocols.counting import sql_expression
from tallybayes.families.protocols.scoring_forms import form_of
from tallybayes.models.one_dependence.estimated_one_dependence import EstimatedOneDependence
from tallybayes.models.one_dependence.pair_scorer import PairScorer, TreeScorer
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.kernels.forest import Trees
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier

IMPOSSIBLE = -1e300  # log 0 as a finite number: its sums are far below all other scores
LARGEST = 1e100  # larger numbers are clipped to it, so that squares are finite
SMALLEST = 1e-150  # smaller numbers are read as 0, since their squares underflow, an error in PostgreSQL
_NO_BLOCKS: Mapping[Name, Sequence[Any]] = {}
_MOST_WEIGHTS = 1_000_000  # of pairs of levels
_ALIKE = 1e-12  # relative tolerance for roots of covariances that are equal up to a factor


ColumnForm: TypeAlias = LinearLogForm | NormalForm | StudentTForm | PolyaUrnForm
ExportedForm: TypeAlias = ColumnForm | LogTableForm | MultivariateNormalForm | MultivariateTForm
_PARAMETERS: dict[type, tuple[str, ...]] = {  # arrays by class and column
    LinearLogForm: ("weight", "bias"),
    NormalForm: ("mean", "precision", "log_norm"),
    StudentTForm: ("location", "inverse_spread", "power", "log_norm"),
    PolyaUrnForm: ("start", "at_zero", "slope"),
    MultivariateNormalForm: ("mean",),
    MultivariateTForm: ("location",),
}


class Derived(NamedTuple):
    """A column that is computed from a column of the rows.

    It is the number with a ``value`` for missing cells, or a flag: whether the cell has a ``level``, or, if there is
    neither, whether it is missing.
    """

    source: Name
    levels: tuple[Any, ...] | None  # of the source; None for numbers
    value: float | None = None
    level: Any = None


class Cell(NamedTuple):
    """A column as it is read: its category (no `reading`), or an expression of its number."""

    column: Name | Derived
    reading: Expression | None
    support: str | None  # of numbers, as in `LinearLogForm`; None for all finite numbers

    @property
    def source(self) -> Name:
        """The column of the rows."""
        return self.column.source if isinstance(self.column, Derived) else self.column


class Lookup(NamedTuple):
    """Log probabilities by level, of shape (levels, classes), and those of an unseen level; None if these are 0."""

    cell: Cell
    levels: tuple[Any, ...]
    table: np.ndarray
    unseen: np.ndarray | None

    @property
    def cells(self) -> tuple[Cell]:
        """The cell."""
        return (self.cell,)


class Terms(NamedTuple):
    """The form of some columns or missing-value indicators, with arrays of shape (columns, classes).

    ``total`` adds the term −log Γ(total + N) + log Γ(total) of the sum N of the cells of a row.
    """

    cells: tuple[Cell, ...]
    form: ColumnForm
    total: np.ndarray | None = None
    is_indicator: bool = False


class PatternScore(NamedTuple):
    """The parameters for scoring rows with one pattern of observed cells.

    The score is log_norm − power · length, or log_norm − power · log(1 + length), where the length is
    scale · |inverse (x − center) − shift|². ``inverse`` has shape (1 or classes, d, d), ``shift`` (classes, d).
    """

    center: np.ndarray
    inverse: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    power: np.ndarray
    log_norm: np.ndarray


class RowDensity(NamedTuple):
    """A joint density of several columns; missing cells are integrated out."""

    cells: tuple[Cell, ...]
    form: MultivariateNormalForm | MultivariateTForm
    places: np.ndarray  # of the cells among the form's columns
    possible: np.ndarray  # whether each class has a positive prior

    @property
    def bent(self) -> bool:
        """Whether the score is linear in log(1 + length), rather than in the length."""
        return isinstance(self.form, MultivariateTForm)

    def patterns(self, most: int) -> tuple[list[int], list[PatternScore]]:
        """Return the patterns of observed cells, as bit masks, and their scores padded with zeros to d columns.

        Only the complete pattern is returned if tables of all patterns would have more than `most` numbers.
        """
        d = len(self.cells)
        complete = self._known(np.arange(d), alike=None)
        is_small = d < 20 and 2**d * (complete.inverse.size + complete.shift.size) <= most
        codes = list(range(2**d)) if is_small else [2**d - 1]
        return codes, [self._padded(code, alike=len(complete.inverse) == 1) for code in codes]

    def _padded(self, code: int, *, alike: bool) -> PatternScore:
        """Return the score of a pattern, padded with zeros for missing cells."""
        d = len(self.cells)
        n_classes = len(self.possible)
        observed = np.flatnonzero([(code >> i) & 1 for i in range(d)])
        inverse = np.zeros((1 if alike else n_classes, d, d))
        shift = np.zeros((n_classes, d))
        if not len(observed):
            zeros = np.zeros(n_classes)
            return PatternScore(np.zeros(d), inverse, shift, zeros, zeros, zeros)
        score = self._known(observed, alike=alike)
        center = np.zeros(d)
        center[observed] = score.center
        shift[:, observed] = score.shift
        inverse[:, observed[:, None], observed] = score.inverse
        return PatternScore(center, inverse, shift, score.scale, score.power, score.log_norm)

    def _known(self, observed: np.ndarray, *, alike: bool | None) -> PatternScore:
        """Return the score of rows with some of the cells observed; with `alike`, one root serves all classes."""
        form = self.form
        columns = self.places[observed]
        mean = np.where(self.possible[:, None], _first_parameter(form)[:, columns], 0.0)
        center = mean[self.possible].mean(axis=0)
        k = len(columns)
        whitened, log_det = form.whitened(np.eye(k), columns)
        inverse = whitened.transpose(1, 2, 0)
        ratio = np.broadcast_to(inverse[:, 0, 0] / inverse[0, 0, 0], len(mean))
        if alike is None:
            alike = np.allclose(inverse, ratio[: len(inverse), None, None] * inverse[0], rtol=_ALIKE, atol=0.0)
        inverse, scale = (inverse[:1], ratio**2) if alike else (inverse, np.ones(len(mean)))
        shift = np.einsum("gij,gj->gi", np.broadcast_to(inverse, (len(mean), k, k)), mean - center)
        power = np.full(len(mean), 0.5)
        log_norm = -0.5 * log_det - k / 2 * np.log(2 * np.pi)
        if isinstance(form, MultivariateTForm):
            power = form.shape + k / 2
            log_norm = log_rising(form.shape, k / 2) - k / 2 * np.log(np.pi) - log_det / 2
        log_norm = np.where(self.possible, np.broadcast_to(log_norm, len(mean)), 0.0)
        return PatternScore(center, inverse, shift, scale, np.where(self.possible, power, 0.0), log_norm)


class Parents(NamedTuple):
    """The tables of averaged one-dependence: every column in turn is the parent of all others.

    The score of a row is the log of a sum over parents: the levels of its cells, and all levels of columns whose cell
    is missing. The term of a parent is ``own`` plus ``given`` of every other observed cell.
    """

    cells: tuple[Cell, ...]
    levels: tuple[tuple[Any, ...], ...]
    column: np.ndarray  # of every level
    own: np.ndarray  # log p(level | class): (levels, classes)
    given: np.ndarray  # log p(level | parent, class): (parents, levels, classes)


class Tree(NamedTuple):
    """The tables of a tree of columns: every column given the class and its parent. Missing cells are summed over.

    The score of a row is Σⱼ log p(xⱼ | class, parent of xⱼ). Tables have shape (parent's levels, levels, classes),
    those of roots (1, levels, classes).
    """

    cells: tuple[Cell, ...]
    levels: tuple[tuple[Any, ...], ...]
    column: np.ndarray  # of every level
    parents: tuple[int, ...]  # of every column, −1 for a root
    order: tuple[int, ...]  # of the columns, parents first
    tables: tuple[np.ndarray, ...]  # log p(level | parent's level, class)


class Leaves(NamedTuple):
    """Sums of the values of a row's leaves over groups of trees, which read the codes of `CodedColumns`.

    As a part of a scorer, the sum over the groups is a term of the score.
    """

    cells: tuple[Cell, ...]
    edges: tuple[tuple[float, ...], ...]
    levels: tuple[tuple[Any, ...] | None, ...]  # None for numbers
    trees: Trees
    values: np.ndarray  # float32 of shape (leaves, classes)
    groups: np.ndarray  # the first tree of every group, and the end
    scale: np.ndarray  # factors of the sums of the groups


class Pool(NamedTuple):
    """The weighted sum of the logarithms of the members' class probabilities, which are bounded below.

    Every group of the trees of a member is a member with the probabilities of its sums.
    """

    members: tuple[Leaves | PortableScorer, ...]
    weights: np.ndarray
    least: float

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of the members that are trees; scorers read their own cells."""
        return tuple(chain.from_iterable(one.cells for one in self.members if isinstance(one, Leaves)))

    @property
    def scorers(self) -> list[PortableScorer]:
        """The members that are scorers."""
        return [one for one in self.members if isinstance(one, PortableScorer)]


Part: TypeAlias = Lookup | Terms | RowDensity | Parents | Tree | Leaves | Pool


class PortableScorer(NamedTuple):
    """log p(class, row) up to a constant: the log prior, and the terms of all columns."""

    classes: list[Any]
    log_prior: np.ndarray
    parts: list[Part]
    calibration: Calibration
    unseen: str
    dates: tuple[Name, ...] = ()  # columns that are read as the parts of their dates
    least: float | None = None  # log probabilities are bounded below before they are calibrated

    @property
    def reorders(self) -> bool:
        """Whether calibration may change the most probable class."""
        return bool(self.calibration.contamination or self.calibration.log_odds)

    def date_of(self, name: Name) -> Name | None:
        """Return the date column of which a name is a part, or None."""
        return next((date for date in dates_of(name) if date in self.dates), None)

    @property
    def own_cells(self) -> list[Cell]:
        """The cells that are read for its own parts, without duplicates: those that are looked up, then others."""
        parts = sorted(self.parts, key=lambda part: not isinstance(part, Lookup))
        return list(dict.fromkeys(chain.from_iterable(part.cells for part in parts)))

    @property
    def scorers(self) -> list[PortableScorer]:
        """The scorer itself, and all scorers that it pools."""
        pooled = chain.from_iterable(part.scorers for part in self.parts if isinstance(part, Pool))
        return [self, *chain.from_iterable(one.scorers for one in pooled)]

    @property
    def cells(self) -> list[Cell]:
        """All cells that are read, without duplicates."""
        return list(dict.fromkeys(chain.from_iterable(one.own_cells for one in self.scorers)))

    @property
    def levels(self) -> dict[Cell, tuple[Any, ...]]:
        """The levels of the cells that are looked up, or counted in pairs, or coded for trees."""
        levels: dict[Cell, tuple[Any, ...]] = {}
        for part in chain.from_iterable(one.parts for one in self.scorers):
            if isinstance(part, Lookup):
                levels[part.cell] = part.levels
            elif isinstance(part, Parents | Tree):
                levels |= zip(part.cells, part.levels, strict=True)
            for trees in [part] if isinstance(part, Leaves) else part.members if isinstance(part, Pool) else []:
                if isinstance(trees, Leaves):
                    coded = zip(trees.cells, trees.levels, strict=True)
                    levels |= {cell: known for cell, known in coded if known is not None}
        return levels

    @property
    def with_indicator(self) -> set[Cell]:
        """The cells whose missing-value indicators are read."""
        parts = chain.from_iterable(one.parts for one in self.scorers)
        return {part.cells[0] for part in parts if isinstance(part, Terms) and part.is_indicator}


def scores_of(
    estimates: EstimatedClassifier,
    calibration: Calibration | None,
    dates: Sequence[Name],
    blocks: Mapping[Name, Sequence[Any]] = _NO_BLOCKS,
) -> PortableScorer:
    """Return the portable scores of a fitted classifier; raise ExportError if a term cannot be written.

    Parameters
    ----------
    estimates : EstimatedClassifier
    calibration : Calibration or None
        The calibration of its probabilities.
    dates : sequence of names
        The date columns, which are read as their parts.
    blocks : mapping, optional
        The columns of blocks.
    """
    plan: RowScorer = estimates.row_scorer
    scorer = PortableScorer(
        estimates.labels.tolist(),
        bounded(plan.log_prior),
        [],
        calibration or Calibration("none", weight=0.0, before=0.0, after=0.0),
        estimates.unseen,
        tuple(dates),
    )
    if isinstance(estimates, EstimatedOneDependence):
        scorer.parts.append(_pairs(estimates.columns.families, estimates.pair_scorer))
        return scorer
    columns = {name for factor in plan.factors for name in factor.scorer.factor.columns}
    cells: dict[Name, Cell] = {}
    impossible = np.isneginf(plan.log_prior)
    for part, domains in ((factor.scorer, factor.domains) for factor in plan.factors):
        if not (sources_of(part.factor.columns[0]) and is_presence(part.factor.columns[0], columns)):
            cells |= _add(scorer, part, domains, impossible, blocks)
    for part in (factor.scorer for factor in plan.factors):  # indicators use the cells of their columns
        if part.factor.columns[0] not in cells:
            form = _form(part)
            for position, name in enumerate(part.factor.columns):
                source = next(name for name in sources_of(name) if name in cells)
                terms = Terms((cells[source],), _columns(form, [position], impossible), is_indicator=True)
                scorer.parts.append(terms)
    return scorer


def bounded(log_p: np.ndarray, impossible: np.ndarray | None = None) -> np.ndarray:
    """Return log probabilities with a finite number for log 0; impossible classes, which may be undefined, are 0."""
    log_p = log_p if impossible is None else np.where(impossible, 0.0, log_p)
    return np.asarray(np.where(np.isneginf(log_p), IMPOSSIBLE, log_p))


def _form(part: FactorScorer) -> ExportedForm:
    """Return the form of a factor; raise ExportError if it cannot be written."""
    form = form_of(part.family, part.parameters, part.predictive)
    if isinstance(form, ExportedForm):
        return form
    columns = ", ".join(map(repr, part.factor.columns[:3]))
    raise ExportError(
        f"the log probability of {part.family!r} columns ({columns}) cannot be exported.\n"
        "    Remove the columns, or use another family, such as tb.Gaussian() or tb.Binned(...)."
    )


def _add(
    scores: PortableScorer,
    part: FactorScorer,
    domains: Sequence[Domain],
    impossible: np.ndarray,
    blocks: Mapping[Name, Sequence[Any]],
) -> dict[Name, Cell]:
    """Add the terms of one factor; return its cells by column."""
    form = _form(part)
    names = blocks.get(part.factor.columns[0], part.factor.columns)
    width = form.segments.n_columns if isinstance(form, LogTableForm) else _first_parameter(form).shape[-1]
    if width != len(names):
        raise ExportError(
            f"the block {names[0]!r} has {width} columns without names; expected a name for each.\n"
            "    Fit the model on a data frame, or on columns. Text is not exported."
        )
    cells = [_cell(part, form, name) for name in names]
    positions = [position for position in range(len(names)) if position not in part.constant]
    varied = tuple(cells[position] for position in positions)
    for position in positions:
        _check_range(form, cells[position], position, ~impossible)
    if isinstance(form, LogTableForm):
        for position, table in enumerate(form.segments.split(form.log_p)):
            log_p = bounded(table.T, impossible)
            scores.parts.append(_lookup(cells[position], log_p, domains, position, scores.unseen))
    elif isinstance(form, MultivariateNormalForm | MultivariateTForm):
        scores.parts.append(RowDensity(varied, form, np.array(positions, dtype=int), ~impossible))
    elif varied:
        total = getattr(form, "total", None)
        total = None if total is None else np.where(impossible, 1.0, total[:, 0])
        scores.parts.append(Terms(varied, _columns(form, positions, impossible), total))
    return {part.factor.columns[0]: cells[0], **dict(zip(names, cells, strict=True))}


def _check_range(form: ExportedForm | None, cell: Cell, position: int, possible: np.ndarray) -> None:
    """Raise ExportError if a mean, scale or cut point of a column is out of range."""
    checked: dict[str, np.ndarray] = {}
    if isinstance(cell.reading, BinIndex):
        checked["cut point"] = np.asarray(cell.reading.cuts)
    if isinstance(form, NormalForm | StudentTForm):
        precision = form.precision if isinstance(form, NormalForm) else form.inverse_spread
        with np.errstate(divide="ignore"):
            checked["scale"] = precision[..., min(position, precision.shape[-1] - 1)] ** -0.5
    elif isinstance(form, MultivariateNormalForm | MultivariateTForm):
        checked["scale"] = 1.0 / np.abs(form.whitened(np.ones((1, 1)), np.array([position]))[0][0, :, 0])
    if form is not None and "scale" in checked:
        checked["mean"] = _first_parameter(form)[..., position]
    for what, values in checked.items():
        numbers = values[possible] if values.shape == possible.shape else np.atleast_1d(values)
        check_numbers(cell.source, what, numbers)


def check_numbers(name: Name, what: str, numbers: np.ndarray) -> None:
    """Raise ExportError if numbers of a column are too large, or scales too small."""
    is_invalid = (np.abs(numbers) > LARGEST) | ((numbers < SMALLEST) if what == "scale" else False)
    if is_invalid.any():
        raise ExportError(
            f"column {name!r} has a {what} of {numbers[is_invalid][0]:.6g}; exported numbers are at most "
            f"{LARGEST:g}, scales at least {SMALLEST:g}.\n    Rescale the column and fit the model again."
        )


def _first_parameter(form: ExportedForm) -> np.ndarray:
    """Return the parameter of a form that has one number for every class and column, or cell of a table."""
    return np.asarray(getattr(form, _PARAMETERS[type(form)][0]))


def _cell(part: FactorScorer, form: ExportedForm, name: Name) -> Cell:
    """Return a column of a factor as it is read."""
    if part.family.cell_type == "codes":
        return Cell(name, None, None)
    reading = sql_expression(part.family, SqlColumn(0))
    if reading is None:
        raise ExportError(
            f"{part.family!r} of column {name!r} has no method `sql_expression`, which export needs.\n"
            "    Define it, or remove the column, or use a family of this package."
        )
    if isinstance(form, PolyaUrnForm):
        return Cell(name, reading, "count" if form.total is None else "nonnegative")
    return Cell(name, reading, form.support if isinstance(form, LinearLogForm) else None)


def _lookup(cell: Cell, table: np.ndarray, domains: Sequence[Domain], position: int, unseen: str) -> Lookup:
    """Return the log probabilities of the levels of one column; numbers are looked up by bin, or as small integers."""
    if cell.reading is not None:
        size = len(cell.reading.cuts) + 1 if isinstance(cell.reading, BinIndex) else len(table)
        return Lookup(cell, tuple(range(size)), table[:size], None)
    levels = domains[position].levels
    return Lookup(cell, levels, table[: len(levels)], table[len(levels)] if unseen == "smooth" else None)


def _columns(form: ExportedForm, positions: Sequence[int], impossible: np.ndarray) -> ColumnForm:
    """Return the form of some columns, with arrays of shape (columns, classes)."""

    def by_column(name: str) -> np.ndarray:
        array = getattr(form, name)
        by_class = np.broadcast_to(array, (len(impossible), array.shape[-1]))
        columns = by_class[:, positions] if array.shape[-1] > 1 else by_class.repeat(len(positions), axis=1)
        return np.where(impossible[:, None], float(name == "start"), columns).T

    kind: Any = type(form)
    options = {"support": form.support} if isinstance(form, LinearLogForm) else {}
    return cast("ColumnForm", kind(**{name: by_column(name) for name in _PARAMETERS[kind]}, **options))


def _pairs(families: Mapping[Name, Family], plan: PairScorer) -> Parents | Tree:
    """Return the tables of a classifier that counts pairs of columns; raise ExportError if they are too many."""
    pairs = plan.pairs
    tables = plan.tables if isinstance(plan, TreeScorer) else []
    n_pairs = int(pairs.sizes.sum() ** 2 - (pairs.sizes**2).sum())
    n_weights = sum(table.size for table in tables) if tables else n_pairs * len(plan.log_prior)
    if n_weights > _MOST_WEIGHTS:
        raise ExportError(
            f"the pairs of {pairs.sizes.sum()} levels in {len(plan.log_prior)} classes are {n_weights} weights; "
            f"expected at most {_MOST_WEIGHTS}.\n"
            "    Remove columns with many levels, use fewer bins, or export a tb.NaiveBayes."
        )
    if not pairs.names:
        raise ExportError("the model reads no column; expected one.")
    with_missing = [name for name in pairs.names if families[name].present_family is not None]
    if with_missing:
        raise ExportError(
            f"column {with_missing[0]!r} has missing values as a level, which is not exported for pairs of columns.\n"
            "    Export a tb.NaiveBayes, or fit without tb.WithMissing."
        )
    readings = [sql_expression(families[name], SqlColumn(0)) if families[name].bins else None for name in pairs.names]
    cells = tuple(Cell(name, reading, None) for name, reading in zip(pairs.names, readings, strict=True))
    for cell in cells:
        _check_range(None, cell, 0, np.ones(len(plan.log_prior), dtype=bool))
    levels = tuple(domain.levels for domain in pairs.domains)
    if isinstance(plan, TreeScorer):
        return Tree(cells, levels, pairs.column, tuple(plan.parents), tuple(plan.order), tuple(tables))
    own = np.log(pairs.level_proba).T
    given = np.log(pairs.conditional(plan.strength)).transpose(1, 2, 0)
    return Parents(cells, levels, pairs.column, own, given)


def has_leaves(scores: PortableScorer) -> bool:
    """Return whether trees are a part of the scores, or of a member of a pool."""
    pools = [part for part in scores.parts if isinstance(part, Pool)]
    members = [member for pool in pools for member in pool.members]
    inner = [has_leaves(member) for member in members if isinstance(member, PortableScorer)]
    return any(inner) or any(isinstance(part, Leaves) for part in [*scores.parts, *members])
