"""Domain: the levels of a categorical column or target. Schema: the domain of every categorical column."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.errors import LabelError
from tallybayes.families.with_missing import MISSING
from tallybayes.typing import Name

KINDS = {bool: "bool", int: "int", str: "string"}
_MAX_BOOLEANS = 3  # levels of a boolean column: False, True and None
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


class Domain:
    """The levels of one or several categorical columns, in the order of the tables' axes.

    A level exists if rows have it or if it was declared. Declared levels remain when their last row is forgotten.
    All levels are of one kind: bool, int or string. Equality ignores their order.

    Parameters
    ----------
    levels : iterable of bool, int or str
        The levels in order.
    name : str
        Name in error messages.
    declared : iterable, default ()
        Levels that exist even without rows.
    is_sorted : bool, default False
        Whether levels are kept sorted, as the classes of a target are. Otherwise new levels are appended.
    has_missing_level : bool, default False
        Whether None is a level, that of missing values. It is always declared.

    Examples
    --------
    >>> from tallybayes.tally.domain import Domain
    >>> Domain(["ham", "spam"], "y").union(Domain(["news"], "y")).levels
    ('ham', 'spam', 'news')
    """

    has_missing_level = False

    def __init__(
        self,
        levels: Iterable[Any],
        name: str,
        *,
        declared: Iterable[Any] = (),
        is_sorted: bool = False,
        has_missing_level: bool = False,
    ) -> None:
        self.name = name
        self.is_sorted = is_sorted
        self.has_missing_level = has_missing_level
        always = _plain_levels(declared, name, has_missing_level)
        always += [None] if has_missing_level else []
        self.declared = frozenset(always)
        plain = _plain_levels(levels, name, has_missing_level)
        unique = set(plain)
        if has_missing_level and MISSING in unique:
            raise LabelError(
                f"column {name!r} has the level {MISSING!r}, the name of the level of missing values.\n"
                "    Rename it, or make those values missing; or use tb.Categorical() without tb.WithMissing."
            )
        plain += dict.fromkeys(level for level in always if level not in unique)
        kinds = _kinds(plain)
        if is_sorted and len(kinds) < 2:
            plain.sort(key=lambda level: (level is None, level) if has_missing_level else level)
        self.levels: tuple[Any, ...] = tuple(plain)
        if len(kinds) > 1:
            raise LabelError.kinds_differ(name, *sorted(kinds)[:2])
        self.kind = kinds.pop() if kinds else None
        if self.kind == "int":
            integers = [level for level in self.levels if level is not None] if has_missing_level else self.levels
            low = min(integers)
            high = max(integers)
            if low < -(2**63) or high >= 2**64 or (low < 0 and high >= 2**63):
                raise LabelError.too_large(high if high >= 2**63 else low, name)
        if len(self.index) != len(self.levels):
            raise LabelError.repeated(next(x for x, n in Counter(self.levels).items() if n > 1), name)

    @classmethod
    def of_integers(cls, levels: Sequence[int], name: str, *, is_sorted: bool = False) -> Domain:
        """Create a domain of 64-bit integers, none declared. Only duplicates are checked."""
        domain = cls.__new__(cls)
        domain.name = name
        domain.is_sorted = is_sorted
        domain.declared = frozenset()
        domain.levels = tuple(sorted(levels) if is_sorted else levels)
        domain.kind = "int" if levels else None
        if not isinstance(levels, range) and len(domain.index) != len(levels):
            raise LabelError.repeated(next(x for x, n in Counter(levels).items() if n > 1), name)
        return domain

    @cached_property
    def index(self) -> dict[Any, int]:
        """Position of every level."""
        return dict(zip(self.levels, range(len(self.levels)), strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(repr(level) for level in self.levels[:8])
        return f"Domain({self.name!r}: {shown}{', …' if len(self.levels) > 8 else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        left, right = ((domain.name, domain.kind, domain.declared) for domain in (self, other))
        return left == right and set(self.levels) == set(other.levels)

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.levels), self.declared))

    def renamed(self, name: str) -> Domain:
        """Return the same levels under another name."""
        domain = copy.copy(self)
        domain.name = name
        return domain

    def union(self, other: Domain) -> Domain:
        """Return the union of the levels: sorted if either domain is sorted, otherwise this domain's levels first.

        Booleans may be written as 0 and 1, or as true and false: they become the levels of this domain.
        """
        other = other.in_kind_of(self)
        if other.levels == self.levels and other.declared <= self.declared and other.is_sorted <= self.is_sorted:
            return self
        levels = (*self.levels, *(level for level in other.levels if level not in self.index))
        declared = self.declared | other.declared
        return Domain(
            levels,
            self.name,
            declared=declared,
            is_sorted=self.is_sorted or other.is_sorted,
            has_missing_level=self.has_missing_level or other.has_missing_level,
        )

    def in_kind_of(self, known: Domain) -> Domain:
        """Convert the levels to the kind of `known`. Raise LabelError if the kinds differ and are not booleans."""
        if None in (self.kind, known.kind) or self.kind == known.kind:
            return self
        same = known.same_levels(self.levels)
        if same is None:
            raise LabelError.kinds_differ(known.name, str(known.kind), str(self.kind))
        declared = [new for new, old in zip(same, self.levels, strict=True) if old in self.declared]
        return self.with_levels(same, declared=declared)

    def same_levels(self, levels: Sequence[Any]) -> list[Any] | None:
        """Return levels of another kind as the equivalent levels of this domain, or None if there are none.

        Only booleans are equivalent across kinds: False and True, 0 and 1, and pairs of strings such as "false" and
        "true". Distinct levels stay distinct, and numbers are never equivalent to strings.
        """
        booleans = [level if level is None else _boolean(level) for level in levels]
        present = [boolean for boolean, level in zip(booleans, levels, strict=True) if level is not None]
        if None in present or len(set(present)) < len(present):
            return None
        kind = KINDS.get(type(next((level for level in levels if level is not None), None)))
        spelled: dict[bool, Any] = {}
        if self.kind == "bool":
            spelled = {False: False, True: True}
        elif kind == "bool" and self.kind == "string":
            spelled = boolean_levels(self.levels)
        elif kind == "bool" and {*self.levels} <= {0, 1, None}:
            spelled = {False: 0, True: 1}
        return [boolean if boolean is None else spelled[boolean] for boolean in booleans] if spelled else None

    def positions_of(self, levels: Iterable[Any]) -> np.ndarray:
        """Return the position of each of `levels` in this domain, −1 for levels it does not have."""
        levels = levels if isinstance(levels, Sequence) else list(levels)
        if 0 < len(levels) <= _MAX_BOOLEANS and self.kind is not None:
            kinds = set(map(type, levels)) - {type(None)}
            if len(kinds) == 1 and KINDS.get(kinds.pop(), self.kind) != self.kind:
                same = self.same_levels(levels)
                return self.positions_of(same) if same is not None else np.full(len(levels), -1, dtype=np.intp)
        return np.fromiter((self.index.get(level, -1) for level in levels), dtype=np.intp, count=len(levels))

    def filter(self, present: np.ndarray) -> Domain:
        """Keep only the levels that are present (a mask) or declared."""
        kept = [level for level, mask in zip(self.levels, present, strict=True) if mask or level in self.declared]
        return self.with_levels(kept)

    def with_levels(self, levels: Iterable[Any], *, declared: Iterable[Any] | None = None) -> Domain:
        """Return a domain of other levels with the same name and options; by default declared levels are kept."""
        declared = self.declared if declared is None else declared
        options = {"is_sorted": self.is_sorted, "has_missing_level": self.has_missing_level}
        return Domain(levels, self.name, declared=declared, **options)

    @property
    def display_levels(self) -> tuple[Any, ...]:
        """Levels as they are displayed."""
        return (
            tuple(MISSING if level is None else level for level in self.levels)
            if self.has_missing_level
            else self.levels
        )


@dataclass(frozen=True, eq=False, repr=False)
class Schema(FrozenValue):
    """Assignment of columns to domains. By default every column has its own domain, named after it.

    Parameters
    ----------
    domains : mapping or tuple of pairs
        From column to domain name, for columns that share a domain.
    sorted_domains : tuple of str
        Domains whose levels are kept sorted.
    missing_level_domains : tuple of str
        Domains with a level for missing values, which are counted instead of skipped.

    Examples
    --------
    >>> from tallybayes.tally.domain import Schema
    >>> Schema({"from": "state", "to": "state"}).domain("to")
    'state'
    """

    domains: Mapping[Any, str] | Iterable[tuple[Name, str]] = ()
    sorted_domains: tuple[str, ...] = ()
    missing_level_domains: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        pairs = self.domains.items() if hasattr(self.domains, "items") else self.domains
        object.__setattr__(self, "domains", tuple((column, str(domain)) for column, domain in pairs))
        object.__setattr__(self, "sorted_domains", tuple(self.sorted_domains))
        object.__setattr__(self, "missing_level_domains", tuple(self.missing_level_domains))
        object.__setattr__(self, "_domain_of", dict(self.domains))

    def domain(self, column: Name) -> str:
        """Return the name of the domain of a column."""
        return self._domain_of.get(column, str(column))  # type: ignore[attr-defined]


def _plain_levels(levels: Iterable[Any], name: str, has_missing_level: bool) -> list[Any]:
    """Return levels as plain bools, ints or strings, or None for the missing level."""
    levels = list(levels)
    kinds = set(map(type, levels))
    if kinds <= {int, bool} or (kinds == {str} and "".join(levels).isascii()):
        return levels
    return [level if level is None and has_missing_level else _plain_level(level, name) for level in levels]


def _plain_level(level: object, name: str) -> Any:
    """Return a level as a plain bool, int or str; floats with integer values become int."""
    if isinstance(level, np.generic):
        level = level.item()
    if isinstance(level, float) and level.is_integer():
        level = int(level)
    if type(level) not in KINDS:
        raise LabelError.bad_level(level, name)
    if type(level) is str and not is_text(level):
        raise LabelError.no_text(level, name)
    return level


def labels_of(levels: Sequence[Any], dtype: np.dtype | None) -> np.ndarray:
    """Return levels as an array of the target's dtype, or of another dtype if the target's cannot represent them."""
    plain = np.array(levels)
    if plain.dtype.kind == "f" and len(levels):  # NumPy converts 1 and 2⁶³ to floats
        plain = np.array(levels, dtype=np.uint64)
    as_objects = dtype is not None and dtype.kind == "O"
    if as_objects or (plain.dtype.kind == "U" and plain.tolist() != list(levels)):  # NumPy drops trailing NULs
        return np.fromiter(levels, dtype=object, count=len(levels))
    if dtype is None or dtype.kind in "US" or plain.dtype.kind == "U":
        return plain
    with np.errstate(over="ignore"):
        cast = plain.astype(dtype)
    return cast if cast.tolist() == list(levels) else plain  # a later label may not fit the dtype of the first batch


def labels_at(levels: Sequence[Any], codes: np.ndarray) -> np.ndarray:
    """Return the labels of codes; None if there are no levels."""
    return labels_of(levels, None)[codes] if len(levels) else np.full(len(codes), None)


def is_text(string: str) -> bool:
    """Return whether a string can be encoded as UTF-8, which excludes surrogates."""
    try:
        return string.isascii() or bool(string.encode())
    except UnicodeEncodeError:
        return False


def boolean_levels(levels: Iterable[Any]) -> dict[bool, str]:
    """Return the levels that mean False and True, in any case; empty unless exactly one level means each.

    Parameters
    ----------
    levels : iterable of levels

    Returns
    -------
    dict from bool to level
        Both levels, or empty.

    Examples
    --------
    >>> from tallybayes.tally.domain import boolean_levels
    >>> boolean_levels(["TRUE", "FALSE"])
    {False: 'FALSE', True: 'TRUE'}
    >>> boolean_levels(["yes", "perhaps"]), boolean_levels(["yes", "true", "no"])
    ({}, {})
    """
    words: dict[bool, list[str]] = {False: [], True: []}
    for level in levels:
        if isinstance(level, str) and (value := _boolean(level)) is not None:
            words[value].append(level)
    unique = all(len(candidates) == 1 for candidates in words.values())
    return {value: candidates[0] for value, candidates in words.items()} if unique else {}


def _boolean(level: object) -> bool | None:
    """Return the boolean that a level means, or None."""
    if isinstance(level, str):
        return _BOOLEANS.get(level.lower())
    return bool(level) if level in (0, 1) else None


def _kinds(levels: Iterable[Any]) -> set[str]:
    """Return the kinds of levels (int, bool, string), ignoring the missing level."""
    return {KINDS[kind] for kind in set(map(type, levels)) - {type(None)}}
