"""IncompleteClassifier: learning from rows that lack their label, or cells that a covariance needs."""

from __future__ import annotations

import warnings
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
        if not first or self.unlabelled is None:
            codes, _ = self._labels(table, target)
            if (codes < 0).any() and self.missing_label is not None:
                row = int(np.flatnonzero(codes < 0)[0])
                raise LabelError(
                    f"the label of row {row} is missing ({self.missing_label!r}); expected a label for every row.\n"
                    + ("    Use fit with all rows at once." if not first else "    Pass unlabelled='em' or 'skip'.")
                )
            super()._check_labels(table, target, first)

    def _labels(self, table: Table, target: Name) -> tuple[np.ndarray, Domain]:
        """The labels as codes, −1 where missing, and what they stand for."""
        try:
            found, (local,) = table.levels([target], lambda _: True)
        except LabelError as error:
            raise continuous_target(error) from None
        codes = np.asarray(found.columns[0]).astype(np.intp)
        if self.missing_label is not None and self.missing_label in local.index:
            codes = np.where(codes == local.index[self.missing_label], -1, codes)
        return codes, local

    def _count_first(self, table: Table, weight: Any, factors: list[Factor]) -> Tally:
        codes, local = self._labels(table, self._target)
        if (codes < 0).any() and self._y_dtype == object:  # only because None is among them
            self._y_dtype = None
        weights = check_weight(weight, table.n_rows)
        counts = np.ones(len(codes), dtype=bool) if weights is None else weights > 0
        if self.unlabelled == "skip":
            counts &= codes >= 0
        if not counts.all():
            kept = np.flatnonzero(counts)
            table, codes, weights = table.rows(kept), codes[kept], None if weights is None else weights[kept]
        named = np.unique(codes[codes >= 0])
        n_more = self._n_unnamed(len(named), len(codes))
        if (codes >= 0).all() and not n_more:
            try:
                return self._count(table, weights, factors)
            except DataError:
                if not self._has_holes(table, factors):
                    raise
        levels = [local.levels[k] for k in named]
        domain = Domain([*levels, *_new_names(levels, n_more)], str(self._target), ordered=True)
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
        for name, least in (("n_iter", 1), ("n_init", 1)):
            if not getattr(self, name) >= least:
                raise DataError(f"{name} is {getattr(self, name)!r}; expected at least {least}.")
        if not 0 < self.unlabelled_weight < np.inf:
            raise DataError(f"unlabelled_weight is {self.unlabelled_weight!r}; expected a positive number.")

    def _n_unnamed(self, n_named: int, n_rows: int) -> int:
        """How many classes there are besides those that have labels."""
        if self.n_classes is None:
            if n_rows and not n_named:
                raise DataError(
                    "no row has a label, so how many classes there are is not known.\n"
                    "    Pass n_classes, or use tb.Mixture."
                )
            return 0
        if self.unlabelled != "em":
            raise DataError(f"n_classes={self.n_classes!r} needs rows without labels.\n    Pass unlabelled='em'.")
        if not n_named <= self.n_classes <= max(n_rows, 1):
            raise DataError(
                f"n_classes is {self.n_classes!r}; expected at least {n_named}, the classes that have labels."
            )
        return int(self.n_classes) - n_named

    def _has_holes(self, table: Table, factors: list[Factor] | tuple[Factor, ...]) -> bool:
        """Whether cells are missing that a covariance needs."""
        blocks = [f.columns for f in factors if isinstance(f.family, MultivariateGaussian)]
        cells = [chunk_of(table.numbers(names), slice(None)) for names in blocks]
        return any(np.isnan(part).any() for part in cells)

    def _count(self, table: Table, weight: Any, factors: list[Factor] | None = None) -> Tally:
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

    def _clear(self) -> None:
        super()._clear()
        self._climb = None

    def _to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._to_parts()
        if self._climb is None:
            return state, arrays
        state["em"] = {name: value for name, value in self._climb._asdict().items() if name != "history"}
        return state, arrays | {"em/history": np.array(self._climb.history)}

    def _from_parts(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._from_parts(state, arrays)
        if "em" in state:
            kept = state["em"]
            numbers = float(kept["log_likelihood"]), float(kept["entropy"])
            history = [float(value) for value in arrays["em/history"]]
            self._climb = Climbed(history, str(kept["objective"]), bool(kept["converged"]), *numbers)

    def _take_from(self, other: FactoredModel) -> Self:
        self._climb = getattr(other, "_climb", None)
        return super()._take_from(other)

    def _reading(self, factor: Factor) -> Factor:
        """The factor as the model reads its statistics."""
        return factor


def _new_names(levels: list[Any], n_more: int) -> list[Any]:
    """Names for classes that have none: the next whole numbers or, among strings, "new 1", "new 2" and so on."""
    if not n_more:
        return []
    if levels and isinstance(levels[0], bool):
        raise DataError("there are no classes besides False and True.\n    Label the rows with numbers or strings.")
    if levels and isinstance(levels[0], str):
        free = (name for name in (f"new {k}" for k in range(1, len(levels) + n_more + 1)) if name not in levels)
        return [next(free) for _ in range(n_more)]
    first = max(levels, default=-1) + 1
    return list(range(first, first + n_more))
