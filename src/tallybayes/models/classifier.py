"""FactoredClassifier: p(class) times factors p(block | class), fitted by counting. The base of the classifiers."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from tallybayes.beliefs.dirichlet import Dirichlet
from tallybayes.errors import DataError, LabelError, PriorError, StatisticsError
from tallybayes.families.block import Sparse
from tallybayes.families.categorical import Categorical
from tallybayes.families.estimates import check_estimate
from tallybayes.models.features import (
    check_target,
    continuous_target,
    feature_names,
    free_name,
    labels_of,
    open_features,
    target_dtype,
)
from tallybayes.models.scoring import Scored, check_spread_within, chunk_of, chunk_rows, prepare, rows_of
from tallybayes.sources.collect import count
from tallybayes.sources.table import Table
from tallybayes.statistics.statistics import Statistics
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name, Schema
from tallybayes.tally.tally import Tally


class FactoredClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose joint distribution is p(class) Π p(block | class).

    A subclass says which factors there are (`_make_factors`) and has the parameters ``estimate``, ``prior`` and
    ``class_prior``. All that is learnt is ``tally_``; everything else is derived from it when first asked for.
    """

    estimate: str
    prior: Any
    class_prior: Any
    unseen: str = "missing"

    def _make_factors(self, table: Table, target: Name) -> list[Factor]:
        """The factors of the features, each given the target."""
        raise NotImplementedError

    # ---------------------------------------------------------------- learning

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
        return self._adopt(total if classes is None else total.declare(self._target, list(classes)))

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
        return self._adopt(self.tally_ - self._count(*self._read(X, y, sample_weight)))

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
        target = [f for f in tally.factors if not f.given and isinstance(f.family, Categorical) and len(f.columns) == 1]
        features = [f for f in tally.factors if f.given]
        if len(target) != 1 or any(f.given != target[0].columns for f in features):
            raise StatisticsError(
                "this tally is not a classifier's: expected one factor p(class) and factors p(columns | class), found\n"
                + "\n".join("    " + line for line in repr(tally).splitlines())
            )
        self._clear()
        self._target, self._by_name, self._y_dtype = target[0].columns[0], True, None
        names = [name for f in features for name in f.columns]
        if all(isinstance(name, int) for name in names):
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
            raise LabelError(f"class {label!r} is there already; expected a new one.\n    Use partial_fit to add rows to it.")
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
            raise LabelError.unseen(label, str(self._target), domain.levels)
        return self._adopt(self.tally_.drop_level(str(self._target), label))

    def reestimate(self, **parameters: Any) -> Self:
        """A new classifier from the same tally under other parameters; no data are needed.

        Parameters
        ----------
        **parameters
            Any parameters of the constructor, such as ``estimate="map"`` or ``prior=...``.

        Returns
        -------
        A fitted classifier of the same class
        """
        check_is_fitted(self, "tally_")
        other = clone(self).set_params(**parameters)
        return other._take_from(self)._adopt(self._retally(other))

    def _retally(self, other: Self) -> Tally:
        """This tally as the other model reads it."""
        return self.tally_

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for model in (self, other):
            check_is_fitted(model, "tally_")
        mine, its = self.get_params(deep=False), other.get_params(deep=False)
        if mine.keys() != its.keys() or any(not _same(mine[name], its[name]) for name in mine):
            raise StatisticsError.incompatible("the models' parameters", mine, its)
        return clone(self)._take_from(self)._adopt(self.tally_ + other.tally_)

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Self:
        fresh = clone(self)
        table, weight = fresh._read(X, y, sample_weight, first=True)
        if table.n_rows == 0:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        factors = [Factor(fresh._target, (), Categorical()), *fresh._make_factors(table, fresh._target)]
        tally = fresh._count(table, weight, factors)
        if not tally.domains[str(fresh._target)].levels:
            raise DataError("the weight of every row is zero; expected at least one row that counts.")
        if classes is not None:
            tally = tally.declare(fresh._target, list(classes))
        self._clear()
        return self._take_from(fresh)._adopt(tally)

    def _count(self, table: Table, weight: Any, factors: list[Factor] | None = None) -> Tally:
        like = getattr(self, "tally_", None)
        factors = list(like.factors) if factors is None and like is not None else factors
        assert factors is not None
        schema = Schema(ordered=(str(self._target),))
        try:
            return count(table, factors, weight=weight, schema=schema, like=like)
        except LabelError as error:
            column = table.columns[self._target]
            if isinstance(column, np.ndarray) and column.dtype.kind == "f":
                raise continuous_target(error) from None
            raise

    def _read(self, X: Any, y: Any, sample_weight: Any, *, first: bool = False) -> tuple[Table, Any]:
        """X, y and weights as one table with the target among its columns, checked against what was fitted."""
        table = open_features(X)
        if isinstance(sample_weight, str):
            sample_weight = table._column(sample_weight)
        if isinstance(y, str) and y in table.columns:
            target, by_name, column = y, True, table.columns[y]
        else:
            if isinstance(y, str):
                raise DataError.unknown_column([y], table.columns)
            by_name, column = False, check_target(y, table.n_rows)
            target = free_name("class", list(table.columns)) if first else str(self._target)
            table = table.with_column(target, column)
        if first:
            self._target, self._by_name, self._y_dtype = target, by_name, target_dtype(column)
            if not by_name:
                names = feature_names(X, table)
                if names is not None:
                    self.feature_names_in_ = names[1:] if names[0] == target else names
                self.n_features_in_ = self._n_features(table)
        else:
            self._check_features(X, table)
        self._check_labels(table, target)
        return table, sample_weight

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

    def _check_labels(self, table: Table, target: Name) -> None:
        try:
            codes, _ = table.levels([target], lambda _: True)
        except LabelError as error:
            raise continuous_target(error) from None
        column = np.asarray(codes.columns[0])
        missing = np.flatnonzero(column < 0) if column.dtype.kind == "i" else ()
        if len(missing):
            raise LabelError(
                f"the label of row {int(missing[0])} is missing ({len(missing)} of {table.n_rows} are; Input y contains "
                "NaN); expected a label for every row.\n    Leave the unlabelled rows out."
            )

    def _take_from(self, other: FactoredClassifier) -> Self:
        """What was learnt about the shape of the input."""
        for name in ("_target", "_by_name", "_y_dtype", "feature_names_in_", "n_features_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        return self

    def _clear(self) -> None:
        for name in ("tally_", "_target", "_by_name", "_y_dtype", "feature_names_in_", "n_features_in_"):
            self.__dict__.pop(name, None)

    def _adopt(self, tally: Tally) -> Self:
        """Make a tally this model's own: the last step of every change, so that an error changes nothing."""
        self.tally_ = tally
        self._derived: dict[str, Any] = {}  # what was made of the tally so far
        return self

    # ---------------------------------------------------------------- what is derived from the tally

    @property
    def classes_(self) -> np.ndarray:
        """The classes, sorted, in the target's own type."""
        return self._derive("classes", lambda: labels_of(self._class_domain.levels, self._y_dtype))

    @property
    def _class_domain(self) -> Domain:
        if not hasattr(self, "tally_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self.tally_.domains[str(self._target)]

    @property
    def class_log_prior_(self) -> np.ndarray:
        """log p(class), in the order of ``classes_``; −inf for a class without weight."""
        return self._derive("log_prior", lambda: self._log_prior(self.class_prior))

    @property
    def constant_columns_(self) -> list[Name]:
        """Columns that were the same in every row: they add nothing to any score."""
        found = []
        for scored in self._scored:
            names = scored.factor.columns
            found += [names[i] if len(names) > 1 else (names[0] if not i else (names[0], int(i))) for i in scored.constant]
        return found

    @property
    def prior_(self) -> dict[tuple[Name, ...], Any]:
        """The prior of every factor as it was resolved from the tally."""
        return {
            factor.columns: factor.family.prior(self._prior_of(factor), statistics, self.estimate)
            for factor, statistics in self._feature_factors()
        }

    def _derive(self, name: str, make: Any) -> Any:
        if name not in self._derived:
            self._derived[name] = make()
        return self._derived[name]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        return state | {"_derived": {}} if "_derived" in state else state

    def _feature_factors(self) -> list[tuple[Factor, Statistics]]:
        pairs = zip(self.tally_.factors, self.tally_.statistics, strict=True)
        return [(factor, statistics) for factor, statistics in pairs if factor.given]

    def _prior_of(self, factor: Factor) -> Any:
        return self.prior

    @property
    def _scored(self) -> list[Scored]:
        def make() -> list[Scored]:
            check_estimate(self.estimate)
            out = []
            for factor, statistics in self._feature_factors():
                scored = prepare(factor, statistics, self._prior_of(factor), self.estimate, self.unseen == "smooth")
                check_spread_within(scored, statistics, self._class_domain.levels)
                out.append(scored)
            return out

        return self._derive("scored", make)

    def _log_prior(self, class_prior: Any) -> np.ndarray:
        levels = self._class_domain.levels
        counts = self.tally_[self._target].table  # type: ignore[attr-defined]
        if class_prior is None:
            weights = counts / counts.sum() if counts.sum() > 0 else np.full(len(levels), 1 / max(len(levels), 1))
        elif isinstance(class_prior, str) and class_prior == "uniform":
            weights = np.full(len(levels), 1.0 / len(levels))
        elif isinstance(class_prior, Dirichlet):
            posterior = class_prior.update(self.tally_[self._target])  # type: ignore[arg-type]
            weights = posterior.mode() if self.estimate == "map" else posterior.mean()
        else:
            weights = self._given_prior(class_prior, levels)
        with np.errstate(divide="ignore"):
            return np.log(weights)

    def _given_prior(self, class_prior: Any, levels: tuple[Any, ...]) -> np.ndarray:
        if hasattr(class_prior, "items"):
            missing = [level for level in levels if level not in class_prior]
            if missing:
                raise PriorError(f"class_prior has no probability for class {missing[0]!r}; expected one for each class.")
            weights = np.array([float(class_prior[level]) for level in levels])
        else:
            weights = np.asarray(class_prior, dtype=float)
        if weights.shape != (len(levels),) or (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
            raise PriorError(
                f"class_prior is {class_prior!r}; expected probabilities for the {len(levels)} classes that sum to 1,\n"
                "    'uniform', a tb.Dirichlet, or None for the classes' share of the rows."
            )
        return weights

    # ---------------------------------------------------------------- answers

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row; ties go to the first.

        Parameters
        ----------
        X : as for `fit`, without the target

        Returns
        -------
        ndarray of shape (n,)
        """
        joint = self._joint(X)
        return self.classes_[joint.argmax(axis=1)]

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """log p(class, row), shape (n, classes); −inf where a row is impossible in a class."""
        return self._joint(X)

    def predict_log_proba(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """log p(class | row), shape (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The share of the classes where the model is used, if it differs.
        """
        joint, prior = self._joint(X), self.class_log_prior_
        if class_prior is not None:
            prior = self._log_prior(class_prior)
            with np.errstate(invalid="ignore"):
                shift = prior - self.class_log_prior_
            joint = joint + np.where(np.isneginf(self.class_log_prior_), -np.inf, shift)
        total = logsumexp(joint, axis=1, keepdims=True)
        impossible = np.isneginf(total[:, 0])
        if impossible.any():
            self._warn_impossible(X, int(np.flatnonzero(impossible)[0]), int(impossible.sum()))
            joint, total = np.where(impossible[:, None], prior, joint), np.where(impossible[:, None], 0.0, total)
        return joint - total

    def predict_proba(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """p(class | row), shape (n, classes). A row impossible in every class gets the class prior, with a warning.

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The share of the classes where the model is used, if it differs.
        """
        return np.exp(self.predict_log_proba(X, class_prior))

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(row), whatever its class, shape (n,); −inf for an impossible row."""
        return logsumexp(self._joint(X), axis=1)

    def _joint(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "tally_")
        table = self._open(X)
        prior = self.class_log_prior_
        out = np.tile(prior, (table.n_rows, 1))
        for scored in self._scored:
            rows = self._rows(table, scored)
            step = chunk_rows(len(prior), 64)
            for start in range(0, table.n_rows, step):
                part = slice(start, start + step)
                terms = scored.log_prob(self._checked(chunk_of(rows, part), scored, start))
                out[part] += terms.sum(axis=-1) if scored.family.columnwise else terms
        return out

    def _rows(self, table: Table, scored: Scored) -> Any:
        names = scored.factor.columns
        domains = []
        if isinstance(scored.family, Categorical):
            domains = [self.tally_.domains[self.tally_.schema.domain(name)] for name in names]
        return rows_of(table, names, scored.family, domains, self.unseen)

    def _checked(self, rows: np.ndarray, scored: Scored, start: int) -> np.ndarray:
        if rows.dtype.kind == "f" and np.isinf(rows).any():
            row, column = (int(i) for i in np.argwhere(np.isinf(rows))[0])
            names = scored.factor.columns
            name = names[column] if column < len(names) else column
            raise DataError.bad_cell(float(rows[row, column]), start + row, name, scored.family.expects)
        return rows

    def _open(self, X: Any) -> Table:
        """The features of some rows, checked against those that were fitted."""
        table = open_features(X)
        names = [name for factor, _ in self._feature_factors() for name in factor.columns]
        if not self._by_name and any(name not in table.columns for name in names):
            table = _as_fitted(table, names)
        self._check_features(X, table)
        return table

    def _warn_impossible(self, X: Any, row: int, n_rows: int) -> None:
        """Name the first row that no class allows, and a column to blame."""
        table, blame = self._open(X), None
        for scored in self._scored:
            terms = scored.log_prob(chunk_of(self._rows(table, scored), slice(row, row + 1)))[0]
            if scored.family.columnwise:
                bad = np.flatnonzero(np.isneginf(terms).any(axis=0))
                if len(bad) and blame is None:
                    names = scored.factor.columns
                    blame = names[int(bad[0])] if len(names) > 1 else names[0]
        where = f" (column {blame!r})" if blame is not None else ""
        more = f", and {n_rows - 1} more rows," if n_rows > 1 else ""
        warnings.warn(
            f"row {row}{where}{more} is impossible in every class, so its class prior is returned. Use estimate='bayes' "
            "or a prior, under which nothing that was not seen is impossible.",
            UserWarning,
            stacklevel=4,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tally_")


def _as_fitted(table: Table, names: list[Name]) -> Table:
    """A sparse matrix where dense columns were fitted, or the other way round."""
    blocks = list(table.columns.values())
    if len(names) == 1 and table.matrix is not None:
        return Table({names[0]: table.matrix})
    if len(blocks) == 1 and isinstance(blocks[0], Sparse):
        return open_features(blocks[0].dense())
    return table


def _same(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except ValueError:
        return bool(np.array_equal(first, second))
