"""FactoredModel: factors counted into a tally, which adds, subtracts and is re-estimated. The base of the models."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, FileError, LabelError, StatisticsError
from tallybayes.families.block import Sparse
from tallybayes.families.categorical import Categorical
from tallybayes.inference.em import Climbed
from tallybayes.models.inputs.features import (
    check_target,
    continuous_target,
    feature_names,
    free_name,
    is_rows_of_mappings,
    open_features,
    target_dtype,
)
from tallybayes.models.model import Tallied
from tallybayes.sources.collect import check_size, count
from tallybayes.sources.table import Table, as_array
from tallybayes.tally.factor import Factor, Name, Schema
from tallybayes.tally.tally import Tally
from tallybayes.value import from_json, to_json

_DTYPE = re.compile(r"[<>|=][biufOSU][0-9]{0,9}")  # of labels, in a file


class FactoredModel(ClassifierMixin, Tallied):
    """A joint distribution p(class) Π p(block | class), learnt by counting.

    A subclass says which factors there are (`_make_factors`). All that is learnt is ``tally_``; everything else is
    derived from it when first asked for.
    """

    classes_: Any

    def _make_factors(self, table: Table, target: Name) -> list[Factor]:
        """The factors of the features, each given the target."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows, forgetting any counted before.

        Parameters
        ----------
        X : array, sparse matrix, data frame, list of dicts, or mapping of columns and blocks
        y : array-like of shape (n,), or the name of a column of X
        sample_weight : array-like of shape (n,), or the name of a column of X, optional

        Returns
        -------
        self
        """
        return self._learn(X, y, sample_weight, None)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Self:
        """Count more rows; new classes and levels may appear. Any order, any split gives what `fit` on all gives.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like, optional
            Classes that shall exist even before a row of them is seen.

        Returns
        -------
        self
        """
        if not hasattr(self, "tally_"):
            return self._learn(X, y, sample_weight, classes)
        more = self._count(*self._read(X, y, sample_weight))
        total = self.tally_ + more
        return self._update(total if classes is None else total.declare(self._target, list(classes)))

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again, exactly: as if they had never been seen.

        Rows that were never learned are refused where a count would turn negative; rows never learned that happen to
        fit cannot be told apart.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were learned, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        return self._update(self.tally_ - self._count(*self._read(X, y, sample_weight)))

    def fit_tally(self, tally: Tally) -> Self:
        """Learn from a tally counted elsewhere: in a file, a shard, a database.

        Parameters
        ----------
        tally : Tally
            Its first factor without ``given`` is the class; the others are the features.

        Returns
        -------
        self
        """
        target = [f for f in tally.factors if not f.given and f.family.reads == "codes" and len(f.columns) == 1]
        features = self._with_prior(tally)
        if len(target) != 1 or any(f.given != target[0].columns for f in features):
            raise StatisticsError(
                "this tally is not a classifier's: expected one factor p(class) and factors p(columns | class), found\n"
                + "\n".join("    " + line for line in repr(tally).splitlines())
            )
        self._check_prior(features)
        self._clear()
        self._target, self._by_name = target[0].columns[0], True
        self._y_dtype: np.dtype | None = None
        names = [name for f in features for name in f.columns]
        if sorted(names, key=str) == sorted(range(len(names)), key=str):  # the columns of an array, all of them
            self._by_name = False
            self.n_features_in_ = len(names)
        return self._adopt(tally)

    def add_class(self, label: Any, X: Any, sample_weight: Any = None) -> Self:
        """Learn a class that was not there, from its rows alone.

        Parameters
        ----------
        label : bool, int or str
        X : as for `fit`, without the target
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        if label in self.tally_.domains[str(self._target)].index:
            raise LabelError(
                f"class {label!r} is there already; expected a new one.\n    Use partial_fit to add rows to it."
            )
        n_rows = open_features(X).n_rows
        y = np.empty(n_rows, dtype=object)
        y[:] = [label] * n_rows
        return self.partial_fit(X, y, sample_weight)

    def drop_class(self, label: Any) -> Self:
        """Forget a class and all its rows.

        Parameters
        ----------
        label : bool, int or str

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        domain = self.tally_.domains[str(self._target)]
        if label not in domain.index:
            raise LabelError.no_such_class(label, domain.levels)
        return self._adopt(self.tally_.drop_level(str(self._target), label))

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Self:
        fresh = clone(self)
        table, weight = fresh._read(X, y, sample_weight, first=True)
        if table.n_rows == 0:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        factors = [Factor(fresh._target, (), Categorical()), *fresh._make_factors(table, fresh._target)]
        fresh._check_prior(factors[1:])
        tally, climbed = fresh._count_first(table, weight, factors)
        if not tally.domains[str(fresh._target)].levels:
            raise DataError("the weight of every row is zero; expected at least one row that counts.")
        if classes is not None:
            tally = tally.declare(fresh._target, list(classes))
        self._clear()
        return self._take_from(fresh)._adopt(tally, climbed)

    def _count_first(self, table: Table, weight: Any, factors: list[Factor]) -> tuple[Tally, Climbed | None]:
        """The tally of the first rows, which decide what there is to count; and how EM ended, if it was needed."""
        return self._count(table, weight, factors), None

    def _count(self, table: Table, weight: Any, factors: list[Factor] | None = None) -> Tally:
        like = getattr(self, "tally_", None)
        factors = list(like.factors) if factors is None and like is not None else factors
        assert factors is not None
        schema = Schema(ordered=(str(self._target),))
        self._check_sizes(table, factors)
        try:
            return count(table, factors, weight=weight, schema=schema, like=like)
        except LabelError as error:
            column = table.columns[self._target]
            if isinstance(column, np.ndarray) and column.dtype.kind == "f":
                raise continuous_target(error) from None
            raise

    def _check_sizes(self, table: Table, factors: list[Factor]) -> None:
        """Refuse what memory cannot hold when rows are scored; what counting needs is looked at when it is counted."""
        try:
            n_classes = len(table.levels([self._target], lambda _: True)[1][0].levels)
        except LabelError:
            return  # counting says what is wrong with them
        for factor in factors:
            if factor.given and not isinstance(factor.family, Categorical):
                width = table.width(factor.columns[0]) if len(factor.columns) == 1 else len(factor.columns)
                check_size(factor, n_classes, width, model=type(self).__name__, scored=self._reading(factor).family)

    def _reading(self, factor: Factor) -> Factor:
        """The factor in the family that rows are scored by."""
        return factor

    def _read(self, X: Any, y: Any, sample_weight: Any, *, first: bool = False) -> tuple[Table, Any]:
        """X, y and weights as one table with the target among its columns, checked against what was fitted."""
        table = open_features(X)
        if isinstance(sample_weight, str):
            name, sample_weight = sample_weight, table._column(sample_weight)
            table = table.without(name)  # a weight is no feature
        table = table if first else self._as_fitted(X, table)
        if isinstance(y, str) and y in table.columns:
            target, by_name, column = y, True, table.columns[y]
        else:
            if isinstance(y, str):
                raise DataError.unknown_column([y], table.columns)
            by_name, column = False, check_target(y, table.n_rows)
            target = free_name("class", list(table.columns)) if first else str(self._target)
            table = table.with_column(target, column)
        if first:
            self._target, self._by_name = target, by_name
            typed = by_name or hasattr(y, "dtype") or not isinstance(column, np.ndarray) or column.dtype.kind != "O"
            self._y_dtype = target_dtype(column) if typed else None  # a list has no type of its own
            if not by_name:
                names = feature_names(X, table)
                if names is not None:
                    self.feature_names_in_ = names[1:] if names[0] == target else names
                self.n_features_in_ = self._n_features(table)
        else:
            self._check_features(X, table)
        self._check_labels(table, target, first)
        return table, sample_weight

    def _as_fitted(self, X: Any, table: Table) -> Table:
        """The features in the form they were fitted in: sparse or dense, absent keys of rows as missing cells."""
        names = [name for factor in self.tally_.factors if factor.given for name in factor.columns]
        absent = [name for name in names if name not in table.columns]
        if not absent:
            return table
        if is_rows_of_mappings(X):
            return Table({**table.columns, **{name: [None] * table.n_rows for name in absent}})
        blocks = list(table.columns.values())
        if not self._by_name and len(names) == 1 and table.matrix is not None:
            return Table({names[0]: table.matrix})
        if not self._by_name and len(blocks) == 1 and isinstance(blocks[0], Sparse):
            return open_features(blocks[0].dense())
        return table

    def _n_features(self, table: Table) -> int:
        others = [name for name in table.columns if name != self._target]
        return sum(table.width(name) for name in others)

    def _check_features(self, X: Any, table: Table) -> None:
        if self._by_name:
            return
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns"):
            found = [name for name in table.columns if name != self._target]
            if found != list(names):
                from sklearn.utils.validation import _check_feature_names

                _check_feature_names(self, X, reset=False)
        n_features = self._n_features(table)
        if n_features != self.n_features_in_:
            raise DataError(
                f"X has {n_features} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input.\n    Pass the columns the model was fitted on."
            )

    def _check_labels(self, table: Table, target: Name, first: bool) -> None:
        """Refuse rows without a label."""
        try:
            rows = table.rows_of_levels(target, ordered=True)
        except LabelError as error:
            raise continuous_target(error) from None
        if rows.sum() < table.n_rows:
            missing = np.flatnonzero(np.asarray(table.levels([target], lambda _: True)[0].columns[0]) < 0)
            raise LabelError(
                f"Input y contains NaN: the label of row {int(missing[0])} is missing ({len(missing)} of "
                f"{table.n_rows} are); expected a label for every row.\n    Leave the unlabelled rows out."
            )

    def _with_prior(self, tally: Tally) -> list[Factor]:
        return [factor for factor in tally.factors if factor.given]

    def _take_from(self, other: FactoredModel) -> Self:
        """What was learnt about the shape of the input."""
        for name in ("_target", "_by_name", "_y_dtype", "feature_names_in_", "n_features_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """What was learnt about the shape of the input, for a file."""
        names = getattr(self, "feature_names_in_", None)
        return {
            "target": to_json(self._target),
            "by_name": self._by_name,
            "y_dtype": None if self._y_dtype is None else self._y_dtype.str,
            "feature_names": None if names is None else list(names),
            "n_features": getattr(self, "n_features_in_", None),
        }

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        self._target, self._by_name = from_json(state.pop("target")), state.pop("by_name") is True
        dtype, names, n_features = state.pop("y_dtype"), state.pop("feature_names"), state.pop("n_features")
        if dtype is not None and not _DTYPE.fullmatch(dtype):
            raise FileError(f"the labels of the model are of type {dtype!r:.60}; expected bool, numbers or text.")
        self._y_dtype = None if dtype is None else np.dtype(dtype)
        if names is not None:
            self.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
        if n_features is not None:
            self.n_features_in_ = int(n_features)
        if str(self._target) not in tally.domains:
            raise FileError(f"the model's target {self._target!r} is not in its tally.")

    def _check_loaded(self) -> None:
        """Refuse labels that are not of the type a file names."""
        _ = self.classes_

    def _clear(self) -> None:
        for name in ("tally_", "_target", "_by_name", "_y_dtype", "feature_names_in_", "n_features_in_"):
            self.__dict__.pop(name, None)

    def _open(self, X: Any) -> Table:
        """The features of some rows, checked against those that were fitted."""
        table = self._as_fitted(X, open_features(X))
        self._check_features(X, table)
        return table

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        y = np.asarray(open_features(X)._column(y)) if isinstance(y, str) else as_array(y)
        if isinstance(sample_weight, str):
            sample_weight = np.asarray(open_features(X)._column(sample_weight))
        return float(super().score(X, y, sample_weight))
