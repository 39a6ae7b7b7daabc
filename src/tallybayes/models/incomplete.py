"""IncompleteClassifier: learning from rows that lack their label, or cells that a covariance needs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import count
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tallybayes.errors import DataError, LabelError
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.models.classifier import FactoredClassifier
from tallybayes.models.expectation import Climbed, Expectation
from tallybayes.models.factored import FactoredModel
from tallybayes.models.features import continuous_target
from tallybayes.models.scoring import chunk_of
from tallybayes.sources.collect import check_weight
from tallybayes.sources.encode import is_missing
from tallybayes.sources.table import Table
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally


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
    _climb: Climbed | None = None

    @property
    def history_(self) -> list[float]:
        """The objective after every step of EM, in nats; empty where `fit` only had to count."""
        return [] if self._climb is None else list(self._climb.history)

    @property
    def objective_(self) -> str | None:
        """What ``history_`` is: the "log posterior" of all that was observed, or its "log likelihood" under mle."""
        return None if self._climb is None else self._climb.objective

    @property
    def converged_(self) -> bool:
        """Whether EM stopped because the objective hardly rose any more; True where there was nothing to expect."""
        return self._climb is None or self._climb.converged

    def _check_labels(self, table: Table, target: Name, first: bool) -> None:
        if self.unlabelled not in (None, "em", "skip"):
            raise DataError(f"unlabelled is {self.unlabelled!r}; expected 'em', 'skip' or None.")
        if self.unlabelled == "skip" or (first and self.unlabelled == "em"):
            return
        missing = np.flatnonzero(self._labels(table, target)[0] < 0)
        if len(missing):
            marker = "" if self.missing_label is None else f", or {self.missing_label!r}"
            hint = "Use fit with all rows at once" if self.unlabelled == "em" else "Pass unlabelled='em' or 'skip'"
            raise LabelError(
                f"Input y contains NaN{marker}: the label of row {int(missing[0])} is missing ({len(missing)} of "
                f"{table.n_rows} are); expected a label for every row.\n    {hint}, or leave the unlabelled rows out."
            )

    def _labels(self, table: Table, target: Name) -> tuple[np.ndarray, Domain]:
        """The labels as codes, −1 where missing, and what they stand for."""
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
        codes = np.asarray(found.columns[0]).astype(np.intp)
        marked = [code for code, level in enumerate(local.levels) if _is_same(level, marker)]
        return np.where(np.isin(codes, marked), -1, codes) if marked else codes, local

    def _count_first(self, table: Table, weight: Any, factors: list[Factor]) -> Tally:
        codes, local = self._labels(table, self._target)
        if (codes < 0).any() and self._y_dtype is not None and self._y_dtype.kind == "O":
            self._y_dtype = None  # only because None is among them
        weights = check_weight(weight, table.n_rows)
        counts = np.ones(len(codes), dtype=bool) if weights is None else weights > 0
        if not counts.any():
            raise DataError("the weight of every row is zero; expected at least one row that counts.")
        if self.unlabelled == "skip":
            counts &= codes >= 0
            if not (codes >= 0).any():
                raise DataError("no row has a label; expected at least one that does.\n    Pass unlabelled='em'.")
        if not counts.all():
            kept = np.flatnonzero(counts)
            table, codes, weights = table.rows(kept), codes[kept], None if weights is None else weights[kept]
        named = np.unique(codes[codes >= 0])
        n_more = self._n_unnamed(len(named), int((codes < 0).sum()))
        if (codes >= 0).all():
            try:
                return self._count(table, weights, factors)
            except DataError:
                if not self._has_holes(table, factors):
                    raise
        levels = [local.levels[k] for k in named]
        names = new_names(levels, n_more, self.missing_label)
        domain = Domain([*levels, *names], str(self._target), ordered=True)
        where = np.full(len(local.levels) + 1, -1)
        where[named] = domain.positions_of(levels)
        self._check_settings()
        has_rows = np.isin(np.arange(len(domain.levels)), where[named])
        tally, done = Expectation(self, table, where[codes], domain, has_rows, weights, factors).run()
        if not done.converged:
            warnings.warn(
                f"EM was still climbing after {len(done.history)} steps.\n"
                "    Raise n_iter, or tol if this is good enough.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._climb = done
        return tally

    def _check_settings(self) -> None:
        for name in ("n_iter", "n_init"):
            if not _is_whole(getattr(self, name)) or getattr(self, name) < 1:
                raise DataError(f"{name} is {getattr(self, name)!r}; expected a whole number of at least 1.")
        for name in ("unlabelled_weight", "tol"):
            number = getattr(self, name)
            if not isinstance(number, int | float | np.integer | np.floating) or not 0 < number < np.inf:
                raise DataError(f"{name} is {number!r}; expected a positive number.")

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
        if not _is_whole(self.n_classes) or self.n_classes < max(n_named, 1):
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

    def _has_holes(self, table: Table, factors: list[Factor] | tuple[Factor, ...]) -> bool:
        """Whether cells are missing that a covariance needs."""
        blocks = [f.columns for f in factors if isinstance(f.family, MultivariateGaussian)]
        cells = [chunk_of(table.numbers(names), slice(None)) for names in blocks]
        return any(np.isnan(part).any() for part in cells)

    def _count(self, table: Table, weight: Any, factors: list[Factor] | None = None) -> Tally:
        if factors is None and self.unlabelled == "skip":
            known = np.flatnonzero(self._labels(table, self._target)[0] >= 0)
            weights = check_weight(weight, table.n_rows)
            table, weight = table.rows(known), None if weights is None else weights[known]
        try:
            return super()._count(table, weight, factors)
        except DataError:
            if factors is not None or not self._has_holes(table, self.tally_.factors):
                raise
            raise DataError(
                "some of these rows have missing cells, which under a full covariance are filled in by EM over all "
                "rows at once.\n    Use fit on all rows, or leave the incomplete ones out."
            ) from None

    def _update(self, tally: Tally) -> Self:
        super()._update(tally)
        self._climb = None  # it was of other rows
        return self

    def __add__(self, other: Self) -> Self:
        total = super().__add__(other)
        if total is not NotImplemented:
            total._climb = None
        return total

    def drop_class(self, label: Any) -> Self:
        """Forget a class and all its rows.

        Parameters
        ----------
        label : bool, int or str

        Returns
        -------
        self
        """
        super().drop_class(label)._climb = None
        return self

    def _clear(self) -> None:
        super()._clear()
        self._climb = None

    def _to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._to_parts()
        if self._climb is None:
            return state, arrays
        how, history = self._climb.to_parts()
        return state | how, arrays | history

    def _from_parts(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._from_parts(state, arrays)
        self._climb = Climbed.from_parts(state, arrays)

    def _take_from(self, other: FactoredModel) -> Self:
        self._climb = getattr(other, "_climb", None)
        return super()._take_from(other)

    def _reading(self, factor: Factor) -> Factor:
        """The factor as the model reads its statistics."""
        return factor


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


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
