"""Which columns a model reads, and in which family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tallybayes.errors import DataError
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multinomial import Multinomial
from tallybayes.sources.table import Table
from tallybayes.tally.factor import Name

Block = tuple[tuple[Name, ...], Family]


def read_columns(columns: Any, table: Table, target: Iterable[Name]) -> list[Block]:
    """Blocks of like columns, each with its family.

    Parameters
    ----------
    columns : "auto", a Family, or a mapping from names, positions or tuples of them to families
        ``"auto"`` looks at types, never at values: numbers are Gaussian, labels (strings, categories, booleans)
        Categorical, sparse blocks Multinomial.
    table : Table
    target : names
        Columns that are not features.

    Returns
    -------
    list of (names, family)
    """
    others = set(target)
    features = [name for name in table.columns if name not in others]
    if isinstance(columns, Family):
        chosen: list[tuple[tuple[Name, ...], Family]] = [((name,), columns) for name in features]
        if not columns.columnwise and not any(table.is_block(name) for name in features):
            chosen = [(tuple(features), columns)]
    elif isinstance(columns, Mapping):
        known = set(features)
        chosen = [(_named(key, features, known), _family(family)) for key, family in columns.items()]
        twice = _repeated([name for names, _ in chosen for name in names])
        if twice is not None:
            raise DataError(f"column {twice!r} is given a family twice; expected once.")
    elif columns == "auto":
        by_kind = {"number": Gaussian(), "label": Categorical(), "sparse": Multinomial()}
        chosen = [((name,), by_kind[table.kind(name)]) for name in features]
    else:
        raise DataError.wrong_type(
            "columns", repr(columns), "'auto', a family, or a mapping from columns to families", "See tb.NaiveBayes."
        )
    return _gathered(chosen, table)


def _gathered(chosen: list[Block], table: Table) -> list[Block]:
    """One block per family; rows that a family describes whole, and blocks of the data, stay apart."""
    together: dict[Family, list[Name]] = {}
    same: dict[int, list[Name]] = {}  # by the object: mostly one for many columns, whose hash takes its time
    blocks: list[Block] = []
    for names, family in chosen:
        if not names:
            continue
        if not family.columnwise or any(table.is_block(name) for name in names):
            blocks.append((names, family))
            continue
        if id(family) not in same:
            if family not in together:
                together[family] = []
                blocks.append(((), family))
            same[id(family)] = together[family]
        same[id(family)].extend(names)
    return [(names or tuple(together[family]), family) for names, family in blocks]


def _named(key: Any, features: list[Name], known: set[Name]) -> tuple[Name, ...]:
    """A key of ``columns=`` as names: a position stands for the name found there."""
    names = []
    for part in key if isinstance(key, tuple) else (key,):
        if part in known:
            names.append(part)
        elif isinstance(part, int) and -len(features) <= part < len(features):
            names.append(features[part])
        else:
            raise DataError.unknown_column([part], features)
    return tuple(names)


def _family(family: Any) -> Family:
    if not isinstance(family, Family):
        raise DataError.wrong_type("a family in columns", repr(family), "a family such as tb.Gaussian()")
    return family


def _repeated(names: list[Name]) -> Name | None:
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
