"""Domain: the labels of an axis."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tallybayes.errors import LabelError
from tallybayes.families.with_missing import MISSING

KINDS = {bool: "bool", int: "int", str: "string"}
_MOST_BOOLEANS = 3  # levels of a column of booleans: False, True and None
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


class Domain:
    """The levels (labels) that columns of one meaning may have, in the order of the tables.

    A level is here because it was seen, or because it was declared; declared levels stay when their last row is
    forgotten. Levels are of one kind: bool, int or string. Equality ignores their order.

    Parameters
    ----------
    levels : iterable of bool, int or str
    name : str
        What messages call it.
    declared : iterable, default ()
        The levels that exist whether seen or not.
    ordered : bool, default False
        Whether levels are kept sorted (a target's classes); otherwise new ones are appended.
    absent : bool, default False
        Whether None is a level, of any kind: that of cells that are not there. It is always declared.

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
        self.name, self.is_sorted, self.has_missing_level = name, is_sorted, has_missing_level
        stays = _plain_levels(declared, name, has_missing_level)
        stays += [None] if has_missing_level else []
        self.declared = frozenset(stays)
        found = _plain_levels(levels, name, has_missing_level)
        seen = set(found)
        if has_missing_level and MISSING in seen:
            raise LabelError(
                f"column {name!r} has the label {MISSING!r}, which is what absence is called; expected another.\n"
                "    Rename it, or make those cells missing; or take tb.Categorical() without tb.WithMissing."
            )
        found += dict.fromkeys(level for level in stays if level not in seen)
        kinds = _kinds(found)
        if is_sorted and len(kinds) < 2:
            found.sort(key=lambda level: (level is None, level) if has_missing_level else level)
        self.levels: tuple[Any, ...] = tuple(found)
        if len(kinds) > 1:
            raise LabelError.kinds_differ(name, *sorted(kinds)[:2])
        self.kind = kinds.pop() if kinds else None
        if self.kind == "int":
            whole = [level for level in self.levels if level is not None] if has_missing_level else self.levels
            low, high = min(whole), max(whole)
            if low < -(2**63) or high >= 2**64 or (low < 0 and high >= 2**63):
                raise LabelError.too_large(high if high >= 2**63 else low, name)
        if len(self.index) != len(self.levels):
            raise LabelError.repeated(next(x for x, n in Counter(self.levels).items() if n > 1), name)

    @classmethod
    def of_integers(cls, levels: list[int], name: str, *, ordered: bool = False) -> Domain:
        """Levels that are whole numbers of 64 bits, each once, none declared: nothing else is looked at."""
        found = cls.__new__(cls)
        found.name, found.is_sorted, found.declared = name, ordered, frozenset()
        found.levels, found.kind = tuple(sorted(levels) if ordered else levels), "int" if levels else None
        if len(found.index) != len(levels):
            raise LabelError.repeated(next(x for x, n in Counter(levels).items() if n > 1), name)
        return found

    @cached_property
    def index(self) -> dict[Any, int]:
        """The position of every level."""
        return dict(zip(self.levels, range(len(self.levels)), strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(repr(level) for level in self.levels[:8])
        return f"Domain({self.name!r}: {shown}{', …' if len(self.levels) > 8 else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        mine, its = (self.name, self.kind, self.declared), (other.name, other.kind, other.declared)
        return mine == its and set(self.levels) == set(other.levels)

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.levels), self.declared))

    def renamed(self, name: str) -> Domain:
        """The same levels under another name."""
        found = copy.copy(self)
        found.name = name
        return found

    def union(self, other: Domain) -> Domain:
        """All levels of both: sorted if either is kept sorted, else this one's first.

        Booleans are also written as 0 and 1, or as true and false: these are the same levels, as this domain has them.
        """
        other = other.in_kind_of(self)
        if other.levels == self.levels and other.declared <= self.declared and other.is_sorted <= self.is_sorted:
            return self
        levels = (*self.levels, *(level for level in other.levels if level not in self.index))
        declared = self.declared | other.declared
        ordered, absent = self.is_sorted or other.is_sorted, self.has_missing_level or other.has_missing_level
        return Domain(levels, self.name, declared=declared, is_sorted=ordered, has_missing_level=absent)

    def in_kind_of(self, known: Domain) -> Domain:
        """Return these levels as a known domain has them; raise LabelError if the kinds differ and are not booleans."""
        if None in (self.kind, known.kind) or self.kind == known.kind:
            return self
        same = known.same_levels(self.levels)
        if same is None:
            raise LabelError.kinds_differ(known.name, str(known.kind), str(self.kind))
        declared = [new for new, old in zip(same, self.levels, strict=True) if old in self.declared]
        return Domain(
            same, self.name, declared=declared, is_sorted=self.is_sorted, has_missing_level=self.has_missing_level
        )

    def same_levels(self, levels: Sequence[Any]) -> list[Any] | None:
        """Return levels of another kind as this domain has them, or None where they are other levels.

        Only booleans have several kinds: False and True, 0 and 1, and two strings such as "false" and "true". No two
        levels become one, and numbers and strings are never the same.
        """
        booleans = [level if level is None else _boolean(level) for level in levels]
        written = [boolean for boolean, level in zip(booleans, levels, strict=True) if level is not None]
        if None in written or len(set(written)) < len(written):
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
        """Where each of `levels` is here, −1 for those that are not."""
        levels = levels if isinstance(levels, Sequence) else list(levels)
        if 0 < len(levels) <= _MOST_BOOLEANS and self.kind is not None:
            kinds = set(map(type, levels)) - {type(None)}
            if len(kinds) == 1 and KINDS.get(kinds.pop(), self.kind) != self.kind:
                same = self.same_levels(levels)
                return self.positions_of(same) if same is not None else np.full(len(levels), -1, dtype=np.intp)
        return np.fromiter((self.index.get(level, -1) for level in levels), dtype=np.intp, count=len(levels))

    def filter(self, present: np.ndarray) -> Domain:
        """Only the levels that are present (a mask), or declared."""
        kept = [level for level, here in zip(self.levels, present, strict=True) if here or level in self.declared]
        return self.with_levels(kept)

    def with_levels(self, levels: Iterable[Any]) -> Domain:
        """Other levels of the same axis; those that were declared stay."""
        return Domain(
            levels,
            self.name,
            declared=self.declared,
            is_sorted=self.is_sorted,
            has_missing_level=self.has_missing_level,
        )

    @property
    def display_levels(self) -> tuple[Any, ...]:
        """The levels as they are shown."""
        return (
            tuple(MISSING if level is None else level for level in self.levels)
            if self.has_missing_level
            else self.levels
        )


def _plain_levels(levels: Iterable[Any], name: str, absent: bool) -> list[Any]:
    """Levels as plain bools, ints or strings, or None for `absent`; where all are, none is looked at by itself."""
    found = list(levels)
    kinds = set(map(type, found))
    if kinds <= {int, bool} or (kinds == {str} and "".join(found).isascii()):
        return found
    return [level if level is None and absent else _plain_level(level, name) for level in found]


def _plain_level(level: Any, name: str) -> Any:
    """A level as a plain bool, int or str; whole floats become int."""
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
    """Levels as an array of the target's own type, or of another where that one would not tell them apart."""
    plain = np.array(levels)
    if plain.dtype.kind == "f" and len(levels):  # NumPy makes floats of 1 and 2⁶³
        plain = np.array(levels, dtype=np.uint64)
    as_objects = dtype is not None and dtype.kind == "O"
    if as_objects or (plain.dtype.kind == "U" and plain.tolist() != list(levels)):  # which drops a NUL at the end
        return np.fromiter(levels, dtype=object, count=len(levels))
    if dtype is None or dtype.kind in "US" or plain.dtype.kind == "U":
        return plain
    with np.errstate(over="ignore"):
        cast = plain.astype(dtype)
    return cast if cast.tolist() == list(levels) else plain  # a later label may not fit the first batch's type


def labels_at(levels: Sequence[Any], codes: np.ndarray) -> np.ndarray:
    """The labels of codes; None where there are no levels."""
    return labels_of(levels, None)[codes] if len(levels) else np.full(len(codes), None)


def is_text(string: str) -> bool:
    """Whether UTF-8 can encode a string: surrogates it cannot."""
    try:
        return string.isascii() or bool(string.encode())
    except UnicodeEncodeError:
        return False


def boolean_levels(levels: Iterable[Any]) -> dict[bool, str]:
    """Return the strings that stand for False and True, in upper or lower case; none unless just one stands for each.

    Parameters
    ----------
    levels : iterable of labels

    Returns
    -------
    dict from bool to level, of both or of none

    Examples
    --------
    >>> from tallybayes.tally.domain import boolean_levels
    >>> boolean_levels(["TRUE", "FALSE"])
    {False: 'FALSE', True: 'TRUE'}
    >>> boolean_levels(["yes", "perhaps"]), boolean_levels(["yes", "true", "no"])
    ({}, {})
    """
    found: dict[bool, list[str]] = {False: [], True: []}
    for level in levels:
        if isinstance(level, str) and (value := _boolean(level)) is not None:
            found[value].append(level)
    alone = all(len(words) == 1 for words in found.values())
    return {value: words[0] for value, words in found.items()} if alone else {}


def _boolean(level: Any) -> bool | None:
    """The boolean that a level stands for, or None."""
    if isinstance(level, str):
        return _BOOLEANS.get(level.lower())
    return bool(level) if level in (0, 1) else None


def _kinds(levels: Iterable[Any]) -> set[str]:
    """Return the kinds of levels: int, bool, string; a missing level has none."""
    return {KINDS[kind] for kind in set(map(type, levels)) - {type(None)}}
