"""The columns that a model uses, and the family of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.counting import check_weight
from tallybayes.data.dates import dates_of
from tallybayes.data.encoding import is_number
from tallybayes.data.indicator_columns import is_presence
from tallybayes.data.missing_indicators import check_absence, indicator_name
from tallybayes.data.source import Source
from tallybayes.data.source_batches import sample_of
from tallybayes.data.sql.sql_types import NESTED
from tallybayes.data.table import Table
from tallybayes.errors import DataError, StatisticsError, printable, short_repr
from tallybayes.estimation.em.em_objective import InitialModel, columns_from_initial
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.family import Family
from tallybayes.families.with_missing import WithMissing
from tallybayes.messages import closest_names
from tallybayes.models.inputs.distinct_values import warn_dropped_text
from tallybayes.models.inputs.family_selection import ColumnSuggestion, select_families
from tallybayes.models.inputs.features import default_family
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import Columns as ColumnFamilies
from tallybayes.typing import SampleWeights
from tallybayes.warnings import DataSourceWarning, warn

Block = tuple[tuple[Name, ...], Family]
_MOST_NAMES = 8  # column names on one line
WORDS = ("auto", "suggest")  # options that stand for a family: by the type of a column, or by its values
_IGNORE = "ignore"  # in place of a family: the column is dropped
_REASONS = ("columns= does not name it", "columns= ignores it")


class Request(NamedTuple):
    """Columns for which the parameter ``columns`` has one family, ``"auto"``, ``"suggest"`` or ``"ignore"``."""

    names: tuple[Name, ...]
    family: Any
    is_named: bool = False  # whether a key of a mapping names these columns


class Columns(NamedTuple):
    """Blocks of like columns with their families, and the reasons of dropped columns."""

    blocks: list[Block]
    dropped_columns: dict[Name, str]


def read_columns(
    columns: Any, table: Table, target: Iterable[Name], given: Name | None = None, weight: np.ndarray | None = None
) -> Columns:
    """Return the columns to use, with their families.

    Parameters
    ----------
    columns : "auto", "suggest", a Family, or a mapping from names, positions or tuples of them to these
        ``"auto"`` depends on types, not on values: numbers are Gaussian; strings, categories and booleans Categorical;
        sparse blocks Multinomial. A date column is replaced by its parts, such as ``"when.month"``: the year is
        Gaussian, the others are Categorical. ``"suggest"`` selects families by evidence. The key ``...`` of a mapping
        stands for all columns that it does not name. A mapping may also have ``"ignore"``, which drops the columns.
    table : Table
    target : names
        Columns that are not features.
    given : name of the class column, optional
        The evidence is computed given the class.
    weight : array of shape (n,), optional

    Returns
    -------
    Columns
    """
    others = set(target)
    if any(map(table.unread, others)):
        table.check_not_nested(table.columns)
    features = [name for name in table.columns if name not in others]
    requested = requested_families(columns, features)
    left_out: dict[Name, str] = {}
    if isinstance(columns, Mapping):
        left_out = {name: _REASONS[r.is_named] for r in requested if r.family == _IGNORE for name in r.names}
    elif requested:
        family = requested[0].family
        is_joint = isinstance(family, Family) and not family.columnwise and family.cell_type != "text"
        if is_joint and not any(map(table.is_block, features)):
            requested = [Request(tuple(features), family)]
    if table.matrix is None:
        left_out = _unread([r for r in requested if left_out.keys().isdisjoint(r.names)], table) | left_out
    if left_out:
        requested = [r for r in requested if left_out.keys().isdisjoint(r.names)]
    return _resolve_options(requested, left_out, table, given, weight)


def _unread(requested: Sequence[Request], table: Table) -> dict[Name, str]:
    """Return the columns that are neither numeric, categorical nor text, with the reasons, and warn of them.

    Raise DataError if there is no other column, or if the user names such a column or a family for it.
    """
    read = [r for r in requested if not isinstance(r.family, Family) or r.family.cell_type != "text"]
    known = {name for r in read for name in r.names}
    reasons = {name: reason for name in table.columns if name in known and (reason := table.unread(name))}
    if reasons:
        named = {name for r in read if r.is_named or isinstance(r.family, Family) for name in r.names}
        is_alone = not any(reasons.keys().isdisjoint(r.names) for r in requested)
        table.check_not_nested(name for name in reasons if is_alone or name in named)
        warn_unread(reasons)
    return reasons


def column_factors(
    columns: ColumnFamilies, initial: InitialModel | None, table: Table, target: Name, weight: SampleWeights
) -> tuple[list[Factor], Mapping[Name, str]]:
    """Return a factor for every block of like columns given the class, and the dropped columns with the reason."""
    if initial is not None:
        columns = columns_from_initial(columns, initial, (name for name in table.columns if name != target))
    found = read_columns(columns, table, [target], target, check_weight(weight, table.n_rows))
    return [Factor(names, (target,), family) for names, family in found.blocks], found.dropped_columns


def requested_families(columns: Any, features: list[Name]) -> list[Request]:
    """Return the family or string option of all features, by the keys of ``columns``; those of the key ``...`` last."""
    if not isinstance(columns, Mapping):
        family = read_family(columns, "columns")
        return [Request((name,), family) for name in features]
    keys = _Keys(features)
    named = [(keys.columns(key), key) for key in columns if key is not ...]
    repeated = _repeated([name for names, _ in named for name in names])
    if repeated is not None:
        raise DataError(f"column {repeated!r} has two families in columns=; expected one.")
    requested = [Request(names, _read_entry(columns[key], short_repr(key)), True) for names, key in named]
    rest = _read_entry(columns.get(..., _IGNORE), "...")
    known = {name for names, _ in named for name in names}
    return requested + [Request((name,), rest) for name in features if name not in known]


def _read_entry(family: Any, key: str) -> Any:
    """Return a family, a string option or ``"ignore"`` from a mapping; raise DataError for other values."""
    return read_family(family, f"the family of {key} in columns=", (*WORDS, _IGNORE))


def has_option(columns: Any, *words: str) -> bool:
    """Return whether ``columns`` has one of some string options, for all columns or for one."""
    values = columns.values() if isinstance(columns, Mapping) else [columns]
    return any(isinstance(value, str) and value in words for value in values)


def chooses_from_values(model: Any) -> bool:
    """Return whether a model chooses families, bins or its covariance from the values of its first rows."""
    words = ("suggest", "auto") if hasattr(model, "bins") else ("suggest",)
    return has_option(getattr(model, "columns", "auto"), *words) or has_option(
        getattr(model, "covariance", None), "auto"
    )


def first_rows(model: Any, source: Source) -> Any:
    """Return the rows of a source that decide the columns of a model: the first batch, or a sample if values decide."""
    return sample_of(source) if chooses_from_values(model) else source.first_batch()


def warn_unread(reasons: Mapping[Name, str]) -> None:
    """Warn about dropped columns whose values are neither numbers nor labels."""
    by_type = {name: reason for name, reason in reasons.items() if reason != NESTED}
    for names, why, hint in (
        ([name for name in reasons if name not in by_type], "values are lists, structs or maps", "Give their parts"),
        (list(by_type), "values are neither numbers nor labels", "Give converted values"),
    ):
        if names:
            warn(
                f"{_listed(names)}: dropped, because {why}.\n"
                f"    {hint} as separate columns, or name the columns to use: columns={{...}}.",
                DataSourceWarning,
            )


def columns_with_option(columns: Any, features: list[Name], word: str) -> set[Name]:
    """Return the columns for which ``columns`` has a string option: ``"auto"`` or ``"suggest"``."""
    return {name for r in requested_families(columns, features) if r.family == word for name in r.names}


def _resolve_options(
    chosen: list[Request],
    left_out: dict[Name, str],
    table: Table,
    given: Name | None,
    weight: np.ndarray | None,
) -> Columns:
    """Replace the string options by families."""
    suggested: dict[Name, ColumnSuggestion] = {}
    if requested := [name for r in chosen if r.family == "suggest" for name in r.names]:
        suggested = {one.column: one for one in select_families(table, requested, given, weight)}
        left_out |= {name: one.remark for name, one in suggested.items() if one.dropped_columns}
        warn_dropped_text(table, left_out)
    families: list[Block] = []
    for names, family, _ in chosen:
        if isinstance(family, Family):
            families.append((names, family))
        elif family == "auto":
            families += [((name,), default_family(table, name)) for name in names]
        else:
            families += [((name,), suggested[name].family) for name in names if name not in left_out]
    blocks = _gathered([(names, family.present_family or family) for names, family in families], table)
    absence = [name for names, family in families if family.present_family is not None for name in names]
    for name in absence:
        check_absence(table, name)
    if absence:  # their indicators are binary
        blocks.append((tuple(map(indicator_name, absence)), Bernoulli()))
    return Columns(blocks, left_out)


def resolved(factors: Iterable[Factor]) -> dict[Any, Family]:
    """Return the family of every column, or of columns that one family models jointly."""
    found: dict[Any, Family] = {}
    for factor in factors:
        together = not factor.family.columnwise and len(factor.columns) > 1
        found |= {factor.columns: factor.family} if together else dict.fromkeys(factor.columns, factor.family)
    return {
        name: WithMissing(family) if indicator_name(name) in found and not isinstance(name, tuple) else family
        for name, family in found.items()
        if not is_presence(name, found)
    }


def columns_of(model: Any) -> dict[Any, Family]:
    """Return the family of every column in use, as given or selected; by tuple for columns of one block."""
    check_is_fitted(model, "tally_")
    return resolved(model._factors_with_prior(model.tally_))


def dropped_columns_of(model: Any) -> dict[Name, str]:
    """Return the reason of every dropped column."""
    check_is_fitted(model, "tally_")
    return dict(model._dropped_columns)


def repr_lines(model: Any) -> list[str]:
    """Return lines with the families that were selected by evidence, and the dropped columns."""
    return describe_columns(
        columns_of(model) if has_option(model.columns, "suggest") else {}, dict(model._dropped_columns)
    )


def describe_columns(families: Mapping[Any, Family], left_out: Mapping[Any, str]) -> list[str]:
    """Return lines with the columns of every family, and the dropped columns."""
    lines: dict[str, list[Any]] = {}
    for name, family in families.items():
        lines.setdefault(display_family(family), []).append(name)
    shown = [f"    {family}: {_listed(names)}" for family, names in lines.items()]
    reasons: dict[str, list[Any]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    return shown + [f"    left out, {reason}: {_listed(names)}" for reason, names in reasons.items()]


def display_family(family: Family, most: int = 60) -> str:
    """Return a family as short text."""
    if family.present_family is not None:
        return f"WithMissing({display_family(family.present_family, most)})"
    return f"Binned of {len(family.bins)}" if family.bins else short_repr(family, most)


def _listed(names: list[Any]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(printable, names[:_MOST_NAMES])) + more


def check_same_families(model: Any, other: Any) -> None:
    """Raise StatisticsError if two models have columns in different families, so that their counts cannot be added."""
    mine = model.columns_
    its = other.columns_
    for name in dict.fromkeys([*mine, *its]):
        if name not in mine or name not in its or mine[name].statistics_key != its[name].statistics_key:
            first, second = (repr(one[name]) if name in one else "left out" for one in (mine, its))
            raise StatisticsError(
                f"the models chose other families: column {name!r} is {first} here and {second} there.\n"
                "    Fix the choice first: fit one, and the others with columns=one.columns_."
            )


def _gathered(chosen: list[Block], table: Table) -> list[Block]:
    """Return one block per family; families of whole rows, and blocks of the data, stay separate."""
    together: dict[Family, list[Name]] = {}
    same: dict[int, list[Name]] = {}  # by identity: mostly one object for many columns, and hashing it is slow
    blocks: list[Block] = []
    may_have_blocks = table.matrix is None
    for names, family in chosen:
        if not names:
            continue
        if not family.columnwise or (may_have_blocks and any(table.is_block(name) for name in names)):
            blocks.append((names, family))
            continue
        if id(family) not in same:
            if family not in together:
                together[family] = []
                blocks.append(((), family))
            same[id(family)] = together[family]
        same[id(family)].extend(names)
    return [(names or tuple(together[family]), family) for names, family in blocks]


class _Keys:
    """The columns that a key of ``columns`` stands for: names, positions, or dates instead of their parts."""

    def __init__(self, features: Sequence[Name]) -> None:
        self.features = features
        self.known = set(features)

    @cached_property
    def are_positions(self) -> bool:
        """Whether integers that are not names are positions."""
        return list(self.features) == list(range(len(self.features))) or not any(map(is_number, self.features))

    @cached_property
    def parts_of_dates(self) -> dict[Name, list[Name]]:
        """The names that may denote parts of each date column."""
        parts: dict[Name, list[Name]] = {}
        for name in self.features:
            for date in dates_of(name):
                parts.setdefault(date, []).append(name)
        return parts

    def columns(self, key: Any) -> tuple[Name, ...]:
        """Return the columns of a key; raise DataError if it stands for none."""
        names: list[Name] = []
        for part in key if isinstance(key, tuple) else (key,):
            if part in self.known:
                names.append(part)
            elif part in self.parts_of_dates:
                names += self.parts_of_dates[part]
            elif isinstance(part, int) and self.are_positions and -len(self.features) <= part < len(self.features):
                names.append(self.features[part])
            else:
                raise DataError.unknown_column([part], self.features)
        return tuple(names)


def read_family(family: Any, what: str, words: Sequence[str] = WORDS) -> Any:
    """Return a family or string option; raise DataError for other values, with the options in `words`."""
    if isinstance(family, Family) and family.success is not None:
        hint = "Use tb.Categorical() for labels."
        raise DataError.wrong_type(
            what, repr(family), "a family without success=, which is for tb.fit_distribution", hint
        )
    if isinstance(family, Family) or (isinstance(family, str) and family in words):
        return family
    expected = f"a family such as tb.Gaussian(), {', '.join(map(repr, words[:-1]))} or {words[-1]!r}"
    if what == "columns":
        expected = "'auto', 'suggest', a family, or a mapping from columns to families"
    raise DataError.wrong_type(what, short_repr(family), expected, _spelling(family, words))


def _spelling(family: Any, words: Sequence[str]) -> str:
    """Return a hint with the closest family."""
    if isinstance(family, type) and issubclass(family, Family):
        return f"Write tb.{family.__name__}(), with brackets."
    if not isinstance(family, str):
        return "See tb.NaiveBayes."
    import tallybayes

    names = {name.lower(): f"tb.{name}()" for name, module in tallybayes._PUBLIC.items() if _is_family(name, module)}
    near = closest_names(family.lower().removeprefix("tb.").removesuffix("()"), [*names, *words])
    found = names.get(str(near[0]), repr(near[0])) if near else None
    return f"Write {found}." if found else f"Families are {', '.join(names.values())}."


def _is_family(name: str, module: str) -> bool:
    import tallybayes

    found = getattr(tallybayes, name) if module.startswith("families.") else None
    return isinstance(found, type) and issubclass(found, Family) and found is not Family


def _repeated(names: list[Name]) -> Name | None:
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
