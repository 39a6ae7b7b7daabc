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

    absent = False

    def __init__(
        self,
        levels: Iterable[Any],
        name: str,
        *,
        declared: Iterable[Any] = (),
        ordered: bool = False,
        absent: bool = False,
    ) -> None:
        self.name, self.ordered, self.absent = name, ordered, absent
        stays = _plain_levels(declared, name, absent)
        stays += [None] if absent else []
        self.declared = frozenset(stays)
        found = _plain_levels(levels, name, absent)
        seen = set(found)
        if absent and MISSING in seen:
            raise LabelError(
                f"column {name!r} has the label {MISSING!r}, which is what absence is called; expected another.\n"
                "    Rename it, or make those cells missing; or take tb.Categorical() without tb.WithMissing."
            )
        found += dict.fromkeys(level for level in stays if level not in seen)
        kinds = _kinds(found)
        if ordered and len(kinds) < 2:
            found.sort(key=lambda level: (level is None, level) if absent else level)
        self.levels: tuple[Any, ...] = tuple(found)
        if len(kinds) > 1:
            raise LabelError.kinds_differ(name, *sorted(kinds)[:2])
        self.kind = kinds.pop() if kinds else None
        if self.kind == "int":
            whole = [level for level in self.levels if level is not None] if absent else self.levels
            low, high = min(whole), max(whole)
            if low < -(2**63) or high >= 2**64 or (low < 0 and high >= 2**63):
                raise LabelError.too_large(high if high >= 2**63 else low, name)
        if len(self.index) != len(self.levels):
            raise LabelError.repeated(next(x for x, n in Counter(self.levels).items() if n > 1), name)

    @classmethod
    def of_integers(cls, levels: list[int], name: str, *, ordered: bool = False) -> Domain:
        """Levels that are whole numbers of 64 bits, each once, none declared: nothing else is looked at."""
        found = cls.__new__(cls)
        found.name, found.ordered, found.declared = name, ordered, frozenset()
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
        """All levels of both: sorted if either is kept sorted, else this one's first."""
        if None is not self.kind != other.kind is not None:
            raise LabelError.kinds_differ(self.name, str(self.kind), str(other.kind))
        if other.levels == self.levels and other.declared <= self.declared and other.ordered <= self.ordered:
            return self
        levels = (*self.levels, *(level for level in other.levels if level not in self.index))
        declared = self.declared | other.declared
        ordered, absent = self.ordered or other.ordered, self.absent or other.absent
        return Domain(levels, self.name, declared=declared, ordered=ordered, absent=absent)

    def positions_of(self, levels: Iterable[Any]) -> np.ndarray:
        """Where each of `levels` is here, −1 for those that are not."""
        return np.fromiter((self.index.get(level, -1) for level in levels), dtype=np.intp)

    def keep(self, present: np.ndarray) -> Domain:
        """Only the levels that are present (a mask), or declared."""
        kept = [level for level, here in zip(self.levels, present, strict=True) if here or level in self.declared]
        return self.having(kept)

    def having(self, levels: Iterable[Any]) -> Domain:
        """Other levels of the same axis; those that were declared stay."""
        return Domain(levels, self.name, declared=self.declared, ordered=self.ordered, absent=self.absent)

    @property
    def shown(self) -> tuple[Any, ...]:
        """The levels as they are shown."""
        return tuple(MISSING if level is None else level for level in self.levels) if self.absent else self.levels


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
    if dtype is None or dtype.kind in "US":
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


def _kinds(levels: Iterable[Any]) -> set[str]:
    return {KINDS[kind] for kind in set(map(type, levels)) - {type(None)}}
