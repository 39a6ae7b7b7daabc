"""ForestCounts: the sums of rows in the leaves of trees, which add and subtract exactly."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tallybayes.errors import LabelError, StatisticsError
from tallybayes.models.forest.counted_rows import WEIGHT_UNIT
from tallybayes.tally.domain import Domain

_FOREIGN = "Pass rows that were counted: forget, calibrate and leave_one_out subtract them. Nothing was changed."


@dataclass(frozen=True, eq=False)
class ForestCounts:
    """Sums of rows in the leaves of trees with the same structure: a tally of trees.

    All sums are integers in multiples of 2⁻¹⁶, so they are exact: ``a + b - b == a``, in any order.

    Attributes
    ----------
    structure : str
        Digest of the trees; only counts of the same trees are added and subtracted.
    grown_classes : tuple
        The classes of the rows that the trees were grown from.
    classes : Domain
        `grown_classes` first, then later ones, sorted.
    class_weight : int64 array of shape (classes,)
    sums : tuple of int64 arrays of shape (leaves, classes)
    """

    structure: str
    grown_classes: tuple[Any, ...]
    classes: Domain
    class_weight: np.ndarray
    sums: tuple[np.ndarray, ...]

    @classmethod
    def none(cls, structure: str, grown_classes: tuple[Any, ...], name: str, shape: tuple[int, int]) -> ForestCounts:
        """Return the counts of no rows; `shape` is the number of arrays of sums and of leaves."""
        classes = known_classes(grown_classes, Domain(grown_classes, name))
        n_sums, n_leaves = shape
        sums = tuple(np.zeros((n_leaves, len(grown_classes)), dtype=np.int64) for _ in range(n_sums))
        return cls(structure, grown_classes, classes, np.zeros(len(grown_classes), dtype=np.int64), sums)

    def scale(self, factor: float) -> ForestCounts:
        """Return the counts times a factor, rounded to multiples of 2⁻¹⁶."""
        weight, *sums = (np.rint(part * factor).astype(np.int64) for part in (self.class_weight, *self.sums))
        return replace(self, class_weight=weight, sums=tuple(sums))

    @property
    def n_rows(self) -> float:
        """The total weight of the rows."""
        return float(self.class_weight.sum()) / WEIGHT_UNIT

    @property
    def present(self) -> np.ndarray:
        """The positions of the classes with rows, or that were declared, sorted by class."""
        levels = self.classes.levels
        known = [k for k, n in enumerate(self.class_weight) if n > 0 or levels[k] in self.classes.declared]
        return np.array(sorted(known, key=lambda k: levels[k]), dtype=np.intp)

    @property
    def domain(self) -> Domain:
        """The present classes, sorted."""
        levels = [self.classes.levels[k] for k in self.present]
        return Domain(levels, self.classes.name, declared=self.classes.declared, is_sorted=True)

    @property
    def domains(self) -> dict[str, Domain]:
        """The present classes, by the name of the target, as a tally has them."""
        return {self.classes.name: self.domain}

    @property
    def weight_by_class(self) -> dict[Any, float]:
        """The total weight of the rows of each present class."""
        levels = self.classes.levels
        return {levels[k]: float(self.class_weight[k]) / WEIGHT_UNIT for k in self.present}

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the counts as JSON and arrays, from which a digest is computed."""
        known = {"structure": self.structure, "levels": list(self.classes.levels)}
        known |= {"declared": sorted(self.classes.declared)}
        sums = {f"sums{number}": part for number, part in enumerate(self.sums)}
        return known, {"class_weight": self.class_weight, **sums}

    def isclose(self, other: ForestCounts, _: float = 0.0) -> bool:
        """Return whether the counts are equal: they are exact, so no tolerance is needed."""
        return self == other

    def of_classes(self, classes: Domain) -> ForestCounts:
        """Return the counts with columns for more classes."""
        classes = known_classes(self.grown_classes, self.classes.union(classes))
        if classes.levels == self.classes.levels:
            return replace(self, classes=classes)
        places = classes.positions_of(self.classes.levels)

        def widened(array: np.ndarray) -> np.ndarray:
            out = np.zeros((*array.shape[:-1], len(classes.levels)), dtype=np.int64)
            out[..., places] = array
            return out

        sums = tuple(map(widened, self.sums))
        return replace(self, classes=classes, class_weight=widened(self.class_weight), sums=sums)

    def _combined(self, other: ForestCounts, combine: Callable[[Any, Any], Any]) -> ForestCounts:
        if not isinstance(other, ForestCounts):
            return NotImplemented
        if other.structure != self.structure:
            raise StatisticsError(
                "cannot combine the counts of different trees.\n"
                "    Grow the trees once: fit one model, and count other rows with "
                "model.without_rows().partial_fit(X, y)."
            )
        left, right = self.of_classes(other.classes), other.of_classes(self.classes)
        sums = tuple(map(combine, left.sums, right.sums))
        return replace(left, class_weight=combine(left.class_weight, right.class_weight), sums=sums)

    def __add__(self, other: ForestCounts) -> ForestCounts:
        return self._combined(other, np.add)

    def __sub__(self, other: ForestCounts) -> ForestCounts:
        left = self._combined(other, np.subtract)
        if left is NotImplemented:
            return left
        for level, n in zip(left.classes.levels, left.class_weight.tolist(), strict=True):
            if n < 0:
                have = float(self.of_classes(left.classes).class_weight[left.classes.index[level]]) / WEIGHT_UNIT
                raise StatisticsError(
                    f"cannot forget: class {level!r} would have weight {n / WEIGHT_UNIT:g} ({have:g} counted, "
                    f"{have - n / WEIGHT_UNIT:g} to remove).\n    {_FOREIGN}"
                )
        if any((part < 0).any() for part in left.sums):
            raise StatisticsError(f"cannot forget: a leaf of the trees would have a negative count.\n    {_FOREIGN}")
        return left._without_late_classes()

    def _without_late_classes(self) -> ForestCounts:
        """Return the counts without later classes that have no rows and are not declared."""
        kept = [
            k
            for k, level in enumerate(self.classes.levels)
            if k < len(self.grown_classes) or self.class_weight[k] or level in self.classes.declared
        ]
        if len(kept) == len(self.class_weight):
            return self
        classes = self.classes.with_levels([self.classes.levels[k] for k in kept])
        sums = tuple(np.ascontiguousarray(part[:, kept]) for part in self.sums)
        return replace(self, classes=classes, class_weight=self.class_weight[kept], sums=sums)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ForestCounts):
            return NotImplemented
        return (
            self.structure == other.structure
            and self.classes.levels == other.classes.levels
            and self.classes.declared == other.classes.declared
            and all(
                np.array_equal(left, right)
                for left, right in zip((self.class_weight, *self.sums), (other.class_weight, *other.sums), strict=True)
            )
        )

    def __hash__(self) -> int:
        return hash((self.structure, self.class_weight.tobytes()))

    def empty(self) -> ForestCounts:
        """Return the counts of no rows."""
        zeros = tuple(map(np.zeros_like, self.sums))
        return replace(self, class_weight=np.zeros_like(self.class_weight), sums=zeros)._without_late_classes()

    def declare(self, labels: Iterable[Hashable]) -> ForestCounts:
        """Return the counts with classes that exist even without rows."""
        return self.of_classes(Domain([], self.classes.name, declared=labels))

    def without_class(self, label: Hashable) -> ForestCounts:
        """Return the counts without the rows of a class."""
        if not isinstance(label, Hashable) or label not in self.domain.index:
            raise LabelError.no_such_class(label, self.domain.levels)
        place = self.classes.index[label]
        declared = [level for level in self.classes.declared if level != label]
        classes = self.classes.with_levels(self.classes.levels, declared=declared)
        sums = tuple(part.copy() for part in self.sums)
        weight = self.class_weight.copy()
        weight[place] = 0
        for part in sums:
            part[:, place] = 0
        return replace(self, classes=classes, class_weight=weight, sums=sums)._without_late_classes()

    def renamed(self, name: str) -> ForestCounts:
        """Return the counts under another name of the target."""
        return replace(self, classes=self.classes.renamed(name))


def known_classes(grown: tuple[Any, ...], classes: Domain) -> Domain:
    """Return the classes in the order of the sums: those of the grown trees, then others, sorted."""
    later = sorted(level for level in classes.levels if level not in grown)
    return Domain((*grown, *later), classes.name, declared=classes.declared)
