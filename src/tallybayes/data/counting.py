"""Counting: the sufficient statistics of a list of factors, in one pass over a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tallybayes._utils.memory import SMALL, require_memory
from tallybayes._utils.parameter_checks import read_list
from tallybayes.data.dates import origins, with_parts_of_dates
from tallybayes.data.encoding import is_missing, is_number
from tallybayes.data.missing_indicators import check_absence, indicator_name, with_missing_level
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.source_batches import tables_of_batches, with_file_location
from tallybayes.data.table import Table, open_table
from tallybayes.data.text_columns import FEW_GROUPS
from tallybayes.errors import CellError, DataError, LabelError, short_repr
from tallybayes.families._shared.blocks import Block, Codes, Dense, SparseRows, cell, n_columns
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.protocols.memory_use import memory_use
from tallybayes.kernels.contingency_tables import MOST_CELLS, count_joint
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally, factors_differ, realign, weights_of_levels
from tallybayes.tally.text_selection import as_word_factor
from tallybayes.typing import Rows, SampleWeights

if TYPE_CHECKING:
    import numpy.typing as npt

    from tallybayes.families.text import Text

# Up to so many columns of a factor, with or without groups, are counted as joint tables; more are counted as a block.
_FEW = 8
_FEW_ALONE = 64
_CATEGORICAL = Categorical().statistics_key
_NUMBERS_PER_PAIR = 64  # of columns: an upper bound of `memory_use`, copies included


# Bounds of the weight of a row, such that its products with squares are in the range of float64.
LEAST_WEIGHT = 1e-150
LARGEST_WEIGHT = 1e150


def count(
    data: Rows,
    factors: Iterable[Factor],
    *,
    weight: SampleWeights = None,
    schema: Schema | None = None,
    like: Tally | None = None,
) -> Tally:
    """Count a table: return the sufficient statistics of every factor, in one pass.

    A row with a missing cell is skipped by the factors that need the cell, and by no other. With
    ``Schema(absent=...)``, a missing value is a level of its column instead.

    Parameters
    ----------
    data : array, sparse matrix, data frame, mapping of columns or blocks, list of dicts, rows or values; path or source
    factors : iterable of Factor
        A factor with `WithMissing` becomes two factors: of the values, and of missing-value indicators, which are
        columns named ``"age (present)"``.
    weight : array-like of shape (n,), optional
        Sample weights; for a source, the name of a column.
    schema : Schema, optional
        The columns that share a domain of levels, the domains that are kept sorted, and the domains in which a missing
        value is a level.
    like : Tally, optional
        A tally that this one will be added to or subtracted from; its numeric anchors are used.

    Returns
    -------
    Tally

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.count({"x": ["a", "b", "a"]}, [tb.Factor("x", (), tb.Categorical())])["x"]
    Counts([2., 1.])
    >>> tb.count({"x": [3.0, None, 4.0]}, [tb.Factor("x", (), tb.WithMissing(tb.Gaussian()))])["x (present)"]
    Totals(weight=[3.], total=[2.])
    """
    if isinstance(data, Table) or (source := open_source(data)) is None:
        table = open_table(data)
        return TallyBuilder(table, _with_indicators(factors, table), weight, schema, like).collect()
    factors = _with_indicators(factors, source)
    if weight is not None and not isinstance(weight, str):
        raise DataError.wrong_type("weight", "values beside a source", f"the name of a column of {source.name}")
    used = _columns_of(factors, weight, source)
    total = source.count(factors, weight, schema, like)
    return _count_batches(source, used, factors, weight, schema, like) if total is None else total


def _columns_of(factors: Sequence[Factor], weight: str | None, source: Source) -> list[str]:
    """Return the columns of a source that are read for some factors; raise DataError if one does not exist."""
    names = source.schema.names
    requested = [name for factor in factors for name in (*factor.given, *factor.columns)] + ([weight] if weight else [])
    requested = [next((origin for origin in origins(name) if origin in names), name) for name in requested]
    source.check_columns(requested)
    return [name for name in names if name in set(requested)]


def _count_batches(
    source: Source,
    columns: Sequence[str],
    factors: tuple[Factor, ...],
    weight: str | None,
    schema: Schema | None,
    like: Tally | None,
) -> Tally:
    """Return the sum of the tallies of the batches of a source."""
    total = None
    for table in tables_of_batches(source, "counting", columns):
        weights = None if weight is None else np.asarray(table.columns[weight])
        with with_file_location(table):
            tally = TallyBuilder(table, factors, weights, schema, like if total is None else total).collect()
        total = tally if total is None else total + tally
    if total is None:
        total = TallyBuilder(open_table(source.first_batch()), factors, None, schema, like).collect()
    return total


def _with_indicators(factors: Iterable[Factor], data: Table | Source) -> tuple[Factor, ...]:
    """Return the factors, each with `WithMissing` split into that of its values and that of its indicators."""
    several = read_list("factors", factors, "a list of tb.Factor")
    for other in several:
        if not isinstance(other, Factor):
            hint = "Such as [tb.Factor('x', (), tb.Gaussian())]."
            raise DataError.wrong_type("factors", f"a list with {short_repr(other)}", "a list of tb.Factor", hint)
    factors = tuple(several)
    if all(factor.family.present_family is None for factor in factors):
        return factors
    table = open_table(data.first_batch() if isinstance(data, Source) else data)
    split: list[Factor] = []
    for factor in factors:
        if factor.family.present_family is None:
            split.append(factor)
            continue
        for name in factor.columns:
            check_absence(table, name)
        split.append(factor.replace(family=factor.family.present_family))
        split.append(Factor(tuple(map(indicator_name, factor.columns)), factor.given, Bernoulli()))
    return tuple(split)


def numbers_of(table: Table, names: Sequence[Name], family: Family) -> Dense | SparseRows:
    """Return numeric cells; 0 and 1 for a categorical column if the family has a success level."""
    if family.success is None:
        return table.numbers(names)
    columns = []
    for code, domain in map(table.encoded, names):
        (success,) = domain.positions_of((family.success,)) if len(domain.levels) else (-1,)
        missing = (code < 0) | (code >= len(domain.levels))
        columns.append(np.where(missing, np.nan, (code == success).astype(float)))
    return columns


class TallyBuilder:
    """The computation of one tally.

    Rows are counted in the codes of each column's own encoding. The tables of counts are then aligned to the domains.
    """

    def __init__(
        self,
        table: Table,
        factors: tuple[Factor, ...],
        weight: SampleWeights,
        schema: Schema | None,
        like: Tally | None,
    ) -> None:
        derived = [name for f in factors for name in (*f.given, *f.columns) if name not in table.columns]
        self.table = with_parts_of_dates(table, derived) if derived else table
        self.factors = factors
        self.like = like
        self.schema = Schema() if schema is None else schema
        is_sorted = set(self.schema.sorted_domains)  # of domains; the levels of these columns are kept sorted
        columns = {name for factor in factors for name in self._level_columns(factor)} if is_sorted else ()
        self._ordered = {name for name in columns if self.schema.domain(name) in is_sorted}
        if like is not None and [f.statistics_key for f in like.factors] != [f.statistics_key for f in factors]:
            raise factors_differ(like.factors, factors)
        self.weight = check_weight(weight, table.n_rows)
        self.local: dict[Name, Domain] = {}  # the levels of each column's own encoding
        self.together: dict[int, tuple[Counts, dict[Name, Domain]]] = {}  # by factor: counts of `_count_together`
        self._single: set[Name] = set()  # columns that are known not to be blocks

    def collect(self) -> Tally:
        """Return the tally over the united levels of every domain."""
        if self.schema.missing_level_domains:
            self._add_missing_levels()
        if any(len(factor.given) > 1 for factor in self.factors):
            self._drop_unobserved_levels()
        if any(factor.given and factor.level_columns for factor in self.factors):
            self._count_together()
        counted = [self._count(factor, number) for number, factor in enumerate(self.factors)]
        domains = {domain.name: domain for domain in self.local.values()}
        if self._columns_share_levels():
            domains = self._united_domains(counted)
            counted = [self._realigned(f, part, domains) for f, part in zip(self.factors, counted, strict=True)]
        return Tally(self.factors, counted, domains, self.schema).drop_unseen_levels()

    def _columns_share_levels(self) -> bool:
        """Return whether the levels of a domain are not those of one column's encoding: shared or declared."""
        is_separate = not self.schema.domains and all(str(name) == d.name for name, d in self.local.items())
        is_separate &= len({str(name) for name in self.local}) == len(self.local)
        return not is_separate or any(getattr(factor.family, "levels", None) is not None for factor in self.factors)

    def _add_missing_levels(self) -> None:
        """Add missing values as levels where the schema has them."""
        names = dict.fromkeys(name for factor in self.factors for name in self._level_columns(factor))
        with_level = [name for name in names if self.schema.domain(name) in self.schema.missing_level_domains]
        self.table = with_missing_level(self.table, with_level, self._ordered)

    def _drop_unobserved_levels(self) -> None:
        """Drop the unobserved levels of columns with large joint tables."""
        joint = [f for f in self.factors if len(f.given) > 1 and self._are_single(self._level_columns(f))]
        sets = [(*f.given, column) for f in joint for column in f.level_columns or f.given[:1]]
        self.table = self.table.compacted(sets, self._ordered)

    def _united_domains(self, counted: list[Statistics]) -> dict[str, Domain]:
        """Return the domains of the schema: the union of the levels of their columns, or the declared levels."""
        domains: dict[str, Domain] = {}
        for column, local in self.local.items():
            name = self.schema.domain(column)
            if name not in domains and local.name != name:  # several columns share it
                domains[name] = Domain([], name, is_sorted=local.is_sorted)
            domains[name] = domains[name].union(local) if name in domains else local
        if all(getattr(factor.family, "levels", None) is None for factor in self.factors):
            return domains
        weights = self._weights_of_levels(counted)
        for name, levels in self._declared().items():
            counted_levels = [(column, self.local[column], weight) for column, weight in weights.get(name, [])]
            domains[name] = declared_domain(domains[name], levels, counted_levels)
        return domains

    def _realigned(self, factor: Factor, statistic: Statistics, domains: dict[str, Domain]) -> Statistics:
        """Return the statistics of a factor over the levels of the domains."""
        columns = (*self._level_columns(factor), *factor.word_columns)
        positions = {column: self._positions(column, domains) for column in columns}
        is_same = all(indices is None for indices in positions.values())
        return statistic if is_same else realign(factor, statistic, positions)

    def _level_columns(self, factor: Factor) -> tuple[Name, ...]:
        """Return the columns of a factor that have levels: its groups, and its categorical columns."""
        return (*factor.given, *factor.level_columns)

    def _positions(self, column: Name, domains: dict[str, Domain]) -> np.ndarray | None:
        """Return the positions of the united levels among those of a column; None if they are the same."""
        levels = domains[self.schema.domain(column)].levels
        return None if levels == self.local[column].levels else self.local[column].positions_of(levels)

    def _count(self, factor: Factor, number: int) -> Statistics:
        """Return the statistics of one factor, over the levels of each column's own encoding."""
        if number in self.together:
            counts, domains_here = self.together[number]
            self.local.update(domains_here)
            return counts
        group, sizes, weight = self._groups(factor)
        block: Block
        if factor.family.word_family is not None:
            return self._count_words(factor, group, sizes, weight)
        if factor.family.cell_type == "codes":
            block, domains = self.table.levels(factor.columns, self._ordered)
            self.local.update(zip(factor.columns, domains, strict=True))
        else:
            block = numbers_of(self.table, factor.columns, factor.family)
        like = None if self.like is None else self.like.statistics[number]
        n_groups = math.prod(sizes)
        if n_groups >= 2**31 - 1:
            n_combinations = f"{n_groups} combinations of levels ({' × '.join(map(str, sizes))})"
            raise DataError.wrong_type(
                f"given of {factor.columns}", n_combinations, "fewer than 2**31", "Give fewer columns."
            )
        check_size(factor, n_groups, width_of(block))
        return collect_block(factor, block, group, n_groups, weight, like).reshape_groups(tuple(sizes))

    def _count_words(
        self, factor: Factor, group: np.ndarray | None, sizes: list[int], weight: np.ndarray | None
    ) -> Statistics:
        """Return the statistics of a text column, over the words that occur in it."""
        name = factor.columns[0]
        family = cast("Text", factor.family)
        n_groups = math.prod(sizes)
        texts = self.table.texts(name, family)
        if n_groups > FEW_GROUPS:  # tables of few groups are not larger than the text
            read = as_word_factor(factor)
            check_size(read, n_groups, texts.n_words, scored=read.family)
        statistic, vocabulary = texts.count(group, n_groups, weight)
        if vocabulary is not None:
            self.local[name] = vocabulary
        return statistic.reshape_groups(tuple(sizes))

    def _count_together(self) -> None:
        """Count the contingency tables of a network, p(column | given) of categorical columns, in one pass."""
        factors = {number: factor for number, factor in enumerate(self.factors) if self._is_table(factor)}
        if not any(factor.given for factor in factors.values()):
            return
        used = set().union(*map(self._level_columns, factors.values()))
        names = [name for name in self.table.columns if name in used]  # in this order, arrays are not copied
        block, domains = self.table.levels(names, self._ordered)
        local = dict(zip(names, domains, strict=True))
        factors = {number: factor for number, factor in factors.items() if _fits_table(factor, local)}
        index = dict(zip(names, range(len(names)), strict=True))
        sets = [[index[name] for name in (*f.given, column)] for f in factors.values() for column in f.columns]
        tables = self._joint_tables(block, names, sets)
        for number, factor in factors.items():
            counts = _joined_counts([next(tables) for _ in factor.columns])
            self.together[number] = counts, {name: local[name] for name in self._level_columns(factor)}

    def _joint_tables(self, block: Codes, names: list[Name], sets: list[list[int]]) -> Iterator[np.ndarray]:
        """Return the joint tables of some sets of columns."""
        try:
            return iter(count_joint(block.columns, block.sizes, sets, self.weight))
        except CellError as error:
            value = cell(block, error.row, error.column)
            raise DataError.bad_cell(value, error.row, names[error.column], Categorical.allowed_values) from None

    def _is_table(self, factor: Factor) -> bool:
        """Return whether a factor is counted with others: few categorical columns, or several columns given."""
        if factor.family.statistics_key != _CATEGORICAL:  # a subclass may count otherwise
            return False
        names = self._level_columns(factor)
        few = len(factor.given) > 1 or 1 <= len(factor.columns) <= (_FEW if factor.given else _FEW_ALONE)
        return few and len(set(names)) == len(names) and self._are_single(names)

    def _are_single(self, names: tuple[Name, ...]) -> bool:
        """Return whether no name refers to a block. Results are cached, since factors share columns."""
        if not self._single.issuperset(names):
            if any(map(self.table.is_block, names)):
                return False
            self._single.update(names)
        return True

    def _groups(self, factor: Factor) -> tuple[np.ndarray | None, list[int], np.ndarray | None]:
        """Return the group of every row, the number of groups along each axis, and the weights.

        Soft groups are returned as weights.
        """
        if not factor.given:
            return None, [], self.weight
        soft = self.table.columns.get(factor.given[0])
        if len(factor.given) == 1 and isinstance(soft, np.ndarray) and soft.ndim == 2:
            name = factor.given[0]
            n_groups = soft.shape[1]
            self.local[name] = Domain(range(n_groups), str(name), declared=range(n_groups))
            responsibilities = check_soft_groups(soft)
            weights = responsibilities if self.weight is None else responsibilities * self.weight[:, None]
            return None, [n_groups], weights
        block, domains = self.table.levels(factor.given, self._ordered)
        self.local.update(zip(factor.given, domains, strict=True))
        codes = [np.asarray(column) for column in block.columns]
        sizes = [len(domain.levels) for domain in domains]
        if len(codes) == 1:
            return codes[0], sizes, self.weight
        group = np.zeros(self.table.n_rows, dtype=np.int64)
        for column, size in zip(codes, sizes, strict=True):
            codes_here = column.astype(np.int64)  # products of unsigned and signed codes would be floats
            group = np.where((group < 0) | (codes_here < 0), -1, group * size + codes_here)
        return group, sizes, self.weight

    def _declared(self) -> dict[str, tuple[Any, ...]]:
        """Return the levels that families declare, by domain."""
        declared_levels: dict[str, tuple[Any, ...]] = {}
        for factor in self.factors:
            declared = getattr(factor.family, "levels", None)
            if declared is not None:
                for name in {self.schema.domain(column) for column in factor.columns}:
                    previous = declared_levels.get(name, ())
                    declared_levels[name] = (*previous, *(x for x in declared if x not in previous))
        return declared_levels

    def _weights_of_levels(self, counted: list[Statistics]) -> dict[str, list[tuple[Name, np.ndarray]]]:
        """Return, by domain, the columns of the domain with the weight of each of their levels."""
        weights: dict[str, list[tuple[Name, np.ndarray]]] = {}
        for factor, statistic in zip(self.factors, counted, strict=True):
            for column, weight in weights_of_levels(factor, statistic):
                weights.setdefault(self.schema.domain(column), []).append((column, weight))
        return weights


def collect_block(
    factor: Factor,
    block: Block,
    group: np.ndarray | None = None,
    n_groups: int = 1,
    weight: np.ndarray | None = None,
    like: Statistics | None = None,
) -> Statistics:
    """Return the statistics of the cells of a factor. Raise DataError for an invalid cell, with its row and column."""
    try:
        return factor.family.collect(block, group, n_groups, weight, like=like)
    except CellError as error:
        name = factor.column(error.column, n_columns(block))
        value = cell(block, error.row, error.column)
        raise DataError.bad_cell(value, error.row, name, factor.family.allowed_values) from None


def declared_domain(seen: Domain, levels: Sequence[Any], columns: Iterable[tuple[Name, Domain, np.ndarray]]) -> Domain:
    """Return the domain of declared levels. Raise LabelError if another level has weight.

    Parameters
    ----------
    seen : Domain
        The observed levels.
    levels : sequence of levels
    columns : iterable of tuples
        The columns of the domain, with the levels of their own encoding and the weight of each.
    """
    domain = Domain(
        levels, seen.name, declared=levels, is_sorted=seen.is_sorted, has_missing_level=seen.has_missing_level
    )
    domain.union(seen)  # raises if the kinds differ
    for column, local, weight in columns:
        for level, position, count in zip(local.levels, domain.positions_of(local.levels), weight, strict=True):
            if count > 0 and position < 0:
                raise LabelError.undeclared(level, str(column), domain.levels)
    return domain


def _joined_counts(tables: list[np.ndarray]) -> Counts:
    """Return the counts of several columns, from the table of each."""
    joined = tables[0] if len(tables) == 1 else np.concatenate(tables, axis=-1)
    return Counts(joined, [table.shape[-1] for table in tables])


def _fits_table(factor: Factor, domains: dict[Name, Domain]) -> bool:
    """Return whether the joint tables of a factor are small; raise an error if memory cannot hold them together."""
    n_groups = math.prod(len(domains[name].levels) or 1 for name in factor.given)
    widths = [len(domains[column].levels) or 1 for column in factor.columns]
    is_small = n_groups * max(widths) <= MOST_CELLS
    if is_small:  # otherwise `check_size` raises when it is counted alone
        check_size(factor, n_groups, sum(widths))
    return is_small


def width_of(block: Block) -> int:
    """Return the number of columns, or of the levels of all categorical columns."""
    return int(np.sum(block.sizes)) if isinstance(block, Codes) else n_columns(block)


def is_small(n_groups: int, width: int) -> bool:
    """Return whether the statistics of any family take little memory: a few numbers per pair of columns at most."""
    return 8 * n_groups * _NUMBERS_PER_PAIR * int(width) ** 2 <= SMALL


def check_size(
    factor: Factor,
    n_groups: int,
    width: int,
    *,
    model: str = "",
    scored: Family | None = None,
    copies: int = 1,
    hint: str = "",
) -> None:
    """Raise an error if statistics do not fit into memory, before they are allocated.

    Parameters
    ----------
    factor : Factor
    n_groups : int
    width : int
        The number of columns, or of the levels of all categorical columns.
    model : str, optional
        The model of the factor, for the message.
    scored : Family, optional
        The family in which rows will be scored by the statistics.
    copies : int, default 1
        The number of copies of the statistics that exist at the same time.
    hint : str, optional
        What to try; default the hint of the family.
    """
    if is_small(n_groups, width):
        return
    use = memory_use(factor.family, width)
    numbers = copies * use.statistics + (0 if scored is None else memory_use(scored, width).scoring)
    if 8 * n_groups * numbers <= SMALL:
        return
    names = ", ".join([repr(name) for name in factor.columns[:3]] + ["…"] * (len(factor.columns) > 3))
    kind = "levels" if factor.family.cell_type == "codes" else "columns"
    groups = f" in {n_groups} groups by {', '.join(map(repr, factor.given))}" if factor.given else ""
    what = f"{factor.family!r} of {names} ({width} {kind}){groups}"
    require_memory(8 * n_groups * numbers, f"{model}: {what}" if model else what, hint or use.hint)


def check_weight(weight: SampleWeights | npt.ArrayLike, n_rows: int, *, any_size: bool = False) -> np.ndarray | None:
    """Return sample weights as float64, or None; raise DataError if one is negative, not finite, or too small or large.

    With `any_size`, only the proportions of weights matter, and every finite weight of at least 0 is valid.
    """
    if weight is None:
        return None
    try:
        array = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        cells = (
            weight.to_pylist() if hasattr(weight, "to_pylist") else np.asarray(weight, dtype=object).ravel().tolist()
        )
        wrong = (f"{short_repr(v)} in row {i}" for i, v in enumerate(cells) if not (is_missing(v) or is_number(v)))
        expected = "finite numbers of at least 0, one per row"
        raise DataError.wrong_type(
            "weight", next(wrong, short_repr(weight)), expected, "Pass a numeric column."
        ) from None
    if array.shape != (n_rows,):
        raise DataError.wrong_shape("weight", array.shape, f"({n_rows},), one number for every row")
    return check_weight_range(array, *((0.0, np.finfo(float).max) if any_size else ()))


def check_weight_range(array: np.ndarray, least: float = LEAST_WEIGHT, largest: float = LARGEST_WEIGHT) -> np.ndarray:
    """Return weights; raise DataError with the row if one is neither 0 nor between `least` and `largest`."""
    if len(array) and not least <= array.min() <= array.max() <= largest:  # NaN is neither
        is_invalid = ~((array >= least) & (array <= largest) | (array == 0))
        if is_invalid.any():
            row = int(np.flatnonzero(is_invalid)[0])
            raise DataError.bad_weight(float(array[row]), row)
    return array


def check_soft_groups(responsibilities: np.ndarray) -> np.ndarray:
    """Return soft groups as float64; raise DataError if a responsibility is negative or not finite."""
    try:
        array = np.asarray(responsibilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError.wrong_type("group", "two axes of labels", "labels on one axis, or numeric weights") from None
    is_invalid = ~((array >= 0) & (array <= LARGEST_WEIGHT))  # unlike weights, responsibilities may be tiny
    if is_invalid.any():
        row, column = (int(i) for i in np.argwhere(is_invalid)[0])
        raise DataError.bad_weight(float(array[row, column]), row)
    return array
