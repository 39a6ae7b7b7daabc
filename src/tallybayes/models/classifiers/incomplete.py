"""IncompleteClassifier: learning from rows that lack their label, or cells that a covariance needs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError, LabelError
from tallybayes.inference.em import Climbed, check_settings, is_whole, warn_unless_converged
from tallybayes.models.classifiers.classifier import FactoredClassifier
from tallybayes.models.classifiers.expectation import Expectation
from tallybayes.models.fitted.soft_counting import with_holes
from tallybayes.models.inputs.features import continuous_target
from tallybayes.sources.collect import check_weight
from tallybayes.sources.encode import count_levels, is_missing
from tallybayes.sources.table import Table
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally


class Labels(NamedTuple):
    """The labels of rows: codes, −1 where missing, the levels they stand for, and how many rows have each."""

    codes: np.ndarray
    domain: Domain
    rows: np.ndarray

    @property
    def n_missing(self) -> int:
        """How many rows have no label."""
        return len(self.codes) - int(self.rows.sum())


class IncompleteClassifier(FactoredClassifier):
    """A classifier that counts what is there and, by EM, expects the rest."""

    unlabelled: str | None = None
    missing_label: Any = None
    unlabelled_weight: float = 1.0
    n_classes: int | None = None
    n_iter: int = 200
    tol: float = 1e-6
    n_init: int = 1
    random_state: Any = None

    def _check_labels(self, table: Table, target: Name, first: bool) -> None:
        if self.unlabelled not in (None, "em", "skip"):
            raise DataError(f"unlabelled is {self.unlabelled!r}; expected 'em', 'skip' or None.")
        if self.unlabelled == "skip" or (first and self.unlabelled == "em"):
            return
        labels = self._labels(table, target)
        if labels.n_missing:
            missing = np.flatnonzero(labels.codes < 0)
            marker = "" if self.missing_label is None else f", or {self.missing_label!r}"
            hint = "Use fit with all rows at once" if self.unlabelled == "em" else "Pass unlabelled='em' or 'skip'"
            raise LabelError(
                f"Input y contains NaN{marker}: the label of row {int(missing[0])} is missing ({len(missing)} of "
                f"{table.n_rows} are); expected a label for every row.\n    {hint}, or leave the unlabelled rows out."
            )

    def _labels(self, table: Table, target: Name) -> Labels:
        """The labels of the rows; the table encodes and counts them once, however often it is asked."""
        marker, column = self.missing_label, table.columns[target]
        if not is_missing(marker) and not isinstance(marker, bool | int | float | str | np.generic):
            raise DataError(f"missing_label is {marker!r}; expected a label, such as -1 or '?', or None.")
        if not is_missing(marker) and isinstance(column, np.ndarray) and column.dtype == object:
            shown = [None if _is_same(label, marker) else label for label in column]  # it may be of another kind
            table = Table({target: np.array([*shown, None], dtype=object)[:-1]})
        try:
            found, (local,) = table.levels([target], lambda _: True)
        except LabelError as error:
            raise continuous_target(error) from None
        codes, rows = np.asarray(found.columns[0]), table.rows_of_levels(target, ordered=True)
        marked = [code for code, level in enumerate(local.levels) if _is_same(level, marker)]
        if marked:
            codes, rows = np.where(np.isin(codes, marked), -1, codes.astype(np.intp)), rows.copy()
            rows[marked] = 0
        return Labels(codes, local, rows)

    def _count_first(self, table: Table, weight: Any, factors: list[Factor]) -> tuple[Tally, Climbed | None]:
        check_settings(self)
        codes, local, rows = labels = self._labels(table, self._target)
        if labels.n_missing and self._y_dtype is not None and self._y_dtype.kind == "O":
            self._y_dtype = None  # only because None is among them
        weights = check_weight(weight, table.n_rows)
        if weights is not None and not weights.any():
            raise DataError("the weight of every row is zero; expected at least one row that counts.")
        skip = self.unlabelled == "skip" and labels.n_missing > 0
        if skip and not rows.any():
            raise DataError("no row has a label; expected at least one that does.\n    Pass unlabelled='em'.")
        if skip or (weights is not None and not weights.all()):
            counts = np.ones(len(codes), dtype=bool) if weights is None else weights > 0
            kept = np.flatnonzero(counts & (codes >= 0) if skip else counts)
            table, codes, weights = table.rows(kept), codes[kept], None if weights is None else weights[kept]
            labels = Labels(codes, local, count_levels(codes, len(local.levels)))
        named = np.flatnonzero(labels.rows)
        n_more = self._n_unnamed(len(named), labels.n_missing)
        if not labels.n_missing:
            try:
                return self._count(table, weights, factors), None
            except DataError:
                if not with_holes(table, factors).any():
                    raise
        levels = [local.levels[k] for k in named]
        names = new_names(levels, n_more, self.missing_label)
        domain = Domain([*levels, *names], str(self._target), ordered=True)
        where = np.full(len(local.levels) + 1, -1)
        where[named] = domain.positions_of(levels)
        has_rows = np.isin(np.arange(len(domain.levels)), where[named])
        tally, done = Expectation(self, table, where[codes], domain, has_rows, weights, factors).run()
        warn_unless_converged(done, stacklevel=4)
        return tally, done

    def _n_unnamed(self, n_named: int, n_unlabelled: int) -> int:
        """How many classes there are besides those that have labels."""
        if self.n_classes is None:
            if n_unlabelled and not n_named:
                raise DataError(
                    "no row has a label, so how many classes there are is not known.\n"
                    "    Pass n_classes, or use tb.Mixture."
                )
            return 0
        if self.unlabelled != "em":
            raise DataError(f"n_classes={self.n_classes!r} needs rows without labels.\n    Pass unlabelled='em'.")
        if not is_whole(self.n_classes, max(n_named, 1)):
            raise DataError(
                f"n_classes is {self.n_classes!r}; expected a whole number of at least {max(n_named, 1)}"
                + (", the classes that have labels." if n_named else ".")
            )
        if self.n_classes > n_named and not n_unlabelled:
            raise DataError(
                f"n_classes is {self.n_classes!r}, but every row has a label and these show {n_named} classes.\n"
                "    Leave n_classes out, or declare the others: partial_fit(..., classes=...)."
            )
        return int(self.n_classes) - n_named

    def _count(self, table: Table, weight: Any, factors: list[Factor] | None = None) -> Tally:
        if factors is None and self.unlabelled == "skip":
            labels, weights = self._labels(table, self._target), check_weight(weight, table.n_rows)
            if labels.n_missing:
                known = np.flatnonzero(labels.codes >= 0)
                table, weight = table.rows(known), None if weights is None else weights[known]
        try:
            return super()._count(table, weight, factors)
        except DataError:
            if factors is not None or not with_holes(table, self.tally_.factors).any():
                raise
            raise DataError(
                "some of these rows have missing cells, which under a full covariance are filled in by EM over all "
                "rows at once.\n    Use fit on all rows, or leave the incomplete ones out."
            ) from None


def new_names(levels: list[Any], n_more: int, taken: Any = None) -> list[Any]:
    """Names for classes that have none: the next whole numbers or, among strings, "new 1", "new 2" and so on.

    None of them is `taken`, which means something else.
    """
    names: Iterator[Any]
    if levels and isinstance(levels[0], bool):
        if len(levels) + isinstance(taken, bool | np.bool_) + n_more > 2:
            raise DataError("there are no classes besides False and True.\n    Label the rows with numbers or strings.")
        names = iter([False, True])
    elif levels and isinstance(levels[0], str):
        names = (f"new {k}" for k in count(1))
    else:
        names = count(max(levels, default=-1) + 1)
    free = (name for name in names if name not in levels and not _is_same(name, taken))
    return [next(free) for _ in range(n_more)]


def _is_same(label: Any, marker: Any) -> bool:
    """Whether a label is the marker; True is another label than 1."""
    if isinstance(label, bool | np.bool_) != isinstance(marker, bool | np.bool_):
        return False
    return not is_missing(label) and not is_missing(marker) and bool(label == marker)
