"""TreeClassifier: the base class of classifiers by trees whose leaves are counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.data.counting import check_weight
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.source_batches import tables_of_batches, with_file_location
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, StatisticsError
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.methods import export
from tallybayes.models.estimator import Estimator
from tallybayes.models.forest.coded_columns import CodedColumns
from tallybayes.models.forest.counted_rows import WEIGHT_UNIT, CountedRows
from tallybayes.models.forest.forest_counts import ForestCounts, known_classes
from tallybayes.models.forest.forest_io import forest_from_parts, forest_to_parts
from tallybayes.models.forest.grown_trees import Grown, GrownTrees
from tallybayes.models.forest.tree_explanation import explain_trees
from tallybayes.models.inputs.batching import check_names, predict_in_batches
from tallybayes.models.inputs.columns import warn_unread
from tallybayes.models.inputs.input_format import InputFormat, open_columns, read_initial_rows, read_more_rows
from tallybayes.models.inputs.invalid_cells import mask_invalid_cells
from tallybayes.models.inputs.labels import read_labels
from tallybayes.models.inspection.model_summary import Summary, title_by_class
from tallybayes.models.io import save_model
from tallybayes.models.receipt import with_receipt
from tallybayes.models.sklearn_bases import ClassifierMixin
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.typing import Labels, Name, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.export.portable_scorer import PortableScorer
    from tallybayes.models.classification.methods.explanation import Explanation

_MOST_GROWN = 200_000  # rows of a source that trees are grown from
_UNLABELED = "Drop the unlabeled rows, or use tb.NaiveBayes(unlabeled='em')."


class _Labeled(NamedTuple):
    """Rows that were read: their codes in the columns of the trees, the classes, and which rows have weight."""

    rows: CountedRows
    classes: Domain
    numbers: np.ndarray
    n_rows: int


class TreeClassifier(ClassifierMixin, Estimator):
    """Base class of classifiers by trees whose leaves are counts.

    The trees, the columns' codes and the calibration are fixed when the model is fitted. The counts in the leaves are
    integers: `partial_fit`, `forget` and ``+`` change them exactly, in any order.
    """

    _text_readers: ClassVar[dict[Any, Any]] = {}  # no column is read as text

    structure_: GrownTrees
    counts_: ForestCounts
    input_format_: InputFormat
    _frame_library: str | None = None

    # ---- Fitting ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def _grow(self, columns: CodedColumns, classes: tuple[Any, ...], rows: CountedRows) -> Grown:
        """Return trees grown from rows."""

    def fit(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Grow the trees, and count the rows in their leaves.

        Parameters
        ----------
        X : array, data frame, list of dicts, mapping of columns, or data source
            Numbers, categories, booleans and dates. Missing cells are allowed, infinite numbers are not. Of a file, a
            database table or an iterator of batches, the trees are grown from a random sample of 200,000 rows; then
            all rows are counted, batch by batch. Their classes may be missing from the sample.
        y : array-like of shape (n,), or column name of X
        sample_weight : array-like of shape (n,), or column name of X, optional
            The number of repetitions of each row, rounded to multiples of 2⁻¹⁶. Repetitions are held out one at a time:
            with weights above 1 the held-out predictions, and so the calibration, are too optimistic. Divide such
            weights by the largest.

        Returns
        -------
        self
        """
        source = None if isinstance(X, np.ndarray) else open_source(X)
        if source is not None:
            return self._fit_source(source, y, sample_weight)
        self._check_settings()
        input_format, table, weight = read_initial_rows(X, y, sample_weight)
        if table.n_rows == 0:
            raise DataError("X has 0 rows; expected at least 1.")
        target = input_format.target
        labels = read_labels(table, target)
        labels.check_complete(_UNLABELED)
        labels.check_categorical(target)
        weights = check_weight(weight, table.n_rows)
        warn_unread({name: reason for name in table.columns if (reason := table.unread(name))})
        present = np.bincount(labels.codes, weights, minlength=len(labels.domain.levels)) > 0
        levels = labels.domain.filter(present).levels
        if not levels:
            raise DataError("sample_weight is zero for every row; expected at least one positive weight.")
        heavy = np.arange(table.n_rows) if weights is None else np.flatnonzero(weights > 0)
        if weights is not None and len(heavy) < table.n_rows:
            table, weights = table.rows(heavy), weights[heavy]
        columns = CodedColumns.of_table(table, target, weights)
        classes = Domain(levels, str(target), is_sorted=True)
        codes = classes.positions_of(labels.domain.levels)[labels.codes[heavy]]
        rows, _ = CountedRows.of(columns.encode(table), codes, weights, classes.levels)
        structure, sums, held_out = self._grow(columns, classes.levels, rows.by_copy())
        class_weight = np.zeros(len(classes.levels), dtype=np.int64)
        np.add.at(class_weight, rows.y, rows.weight)
        known = known_classes(classes.levels, classes)
        self.input_format_, self._frame_library = input_format, frame_kind(X)
        self._set(structure, ForestCounts(structure.digest, classes.levels, known, class_weight, sums))
        self._cache["held out"] = held_out  # until the first prediction
        return self

    def _fit_source(self, source: Source, y: Labels, sample_weight: SampleWeights) -> Self:
        """Grow the trees from a random sample of a source, and count all rows."""
        check_names(source, y=y, sample_weight=sample_weight)
        with source.snapshot():
            rows, n_rows = source.sample(_MOST_GROWN)
            fitted = clone(self).fit(open_table(rows), y, sample_weight)
            counts, structure = fitted.counts_, fitted.structure_
            if n_rows > len(rows):
                counts = fitted._count_source(source, y, sample_weight)
                structure = replace(structure, grown_weight=counts.n_rows)
        self.input_format_, self._frame_library = fitted.input_format_, fitted._frame_library
        return self._set(structure, replace(counts, structure=structure.digest))

    def fit_to_trees(self, trees: GrownTrees, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Count rows in trees that another model has grown, its ``structure_``, so that both can be added.

        Parameters
        ----------
        trees : GrownTrees
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        self._check_settings()
        self.input_format_, self._frame_library = read_initial_rows(X, y, sample_weight)[0], frame_kind(X)
        self._set(trees, ForestCounts.none(trees.digest, trees.classes, str(self._target), trees.sums_shape))
        return self._set(trees, self.counts_ + self._count(X, y, sample_weight))

    def regrow(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Grow new trees from rows, and count these rows: the same as `fit`.

        Trees are fixed between two calls, so they know nothing of the rows that were counted since. Regrow once the
        rows have about doubled.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        return self.fit(X, y, sample_weight)

    def partial_fit(
        self, X: Rows, y: Labels, sample_weight: SampleWeights = None, classes: Iterable[Hashable] | None = None
    ) -> Self:
        """Count more rows in the trees, which stay fixed. The first call is `fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. Classes that the trees were not grown from are counted, too; `regrow` to separate them well.
        classes : array-like, optional
            Further classes to declare, with or without rows.

        Returns
        -------
        self
        """
        X = X if isinstance(X, np.ndarray) else open_source(X) or X  # once: an iterator yields its batches once
        if not hasattr(self, "counts_"):
            self.fit(X, y, sample_weight)
        else:
            self._set(self.structure_, self.counts_ + self._count(X, y, sample_weight))
        return self if classes is None else self._set(self.structure_, self.counts_.declare(list(classes)))

    @with_receipt
    def forget(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Remove rows from the counts exactly: as if they had never been counted.

        The structure of the trees, the bins, the frozen scores and the calibration were chosen from the training rows,
        and may still depend on removed rows; `regrow` chooses them again. StatisticsError is raised if a count would
        become negative.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were counted, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "counts_")
        return self._set(self.structure_, self.counts_ - self._count(X, y, sample_weight))

    def add_class(self, label: Hashable, X: Rows, sample_weight: SampleWeights = None) -> Self:
        """Add a class from its rows. The trees stay fixed; `regrow` to separate it well.

        Parameters
        ----------
        label : bool, int or str
        X : as for `fit`, without the target
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        return classifier_fit.add_class(self, label, X, sample_weight)

    def without_rows(self) -> Self:
        """Return a model with the same trees and no counts, to count other rows and to be added.

        Returns
        -------
        A model of the same class
        """
        check_is_fitted(self, "counts_")
        return self._with_counts(self.counts_.empty())

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for model in (self, other):
            check_is_fitted(model, "counts_")
        if self.structure_.digest != other.structure_.digest:
            raise StatisticsError(
                "cannot add models with different trees.\n"
                "    Grow the trees once: fit one model, and count the other rows with "
                "model.without_rows().partial_fit(X, y)."
            )
        name = other._target if self.input_format_.unnamed else self._target
        merged = self._with_counts(self.counts_.renamed(str(name)))
        merged.input_format_ = self.input_format_._replace(target=name)
        return merged._set(merged.structure_, merged.counts_ + other.counts_.renamed(str(name)))

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def _count_source(self, source: Source, y: Labels, sample_weight: SampleWeights) -> ForestCounts:
        """Return the counts of the rows of a source, batch by batch."""
        check_names(source, y=y, sample_weight=sample_weight)
        total = self.counts_.empty()
        for table in tables_of_batches(source, "counting"):
            with with_file_location(table):
                total += self._count(table, y, sample_weight)
        return total

    def _count(self, X: Rows, y: Labels, sample_weight: SampleWeights) -> ForestCounts:
        """Return the counts of rows in the trees."""
        source = None if isinstance(X, np.ndarray | Table) else open_source(X)
        if source is not None:
            return self._count_source(source, y, sample_weight)
        rows, classes, *_ = self._read(X, y, sample_weight)
        weight = np.zeros(len(classes.levels), dtype=np.int64)
        np.add.at(weight, rows.y, rows.weight)
        sums = self.structure_.count(rows)
        return ForestCounts(self.structure_.digest, self.structure_.classes, classes, weight, sums)

    def _read(self, X: Rows, y: Labels, sample_weight: SampleWeights) -> _Labeled:
        """Return labeled rows in the codes of the trees; their classes may be new."""
        table, weight = read_more_rows(self, X, y, sample_weight)
        labels = read_labels(table, self._target)
        labels.check_complete(_UNLABELED)
        weights = check_weight(weight, table.n_rows, any_size=True)
        heavy = np.bincount(labels.codes, weights, minlength=len(labels.domain.levels)) > 0
        known = Domain((*self.structure_.classes, *self.counts_.classes.levels[len(self.structure_.classes) :]), "")
        found = labels.domain.filter(heavy).in_kind_of(known)
        classes = known_classes(self.structure_.classes, known.renamed(str(self._target)).union(found))
        codes = np.maximum(classes.positions_of(labels.domain.levels), 0)[labels.codes]
        table = mask_invalid_cells(table, self._column_specs(), None)
        rows, numbers = CountedRows.of(self.structure_.columns.encode(table), codes, weights, classes.levels)
        return _Labeled(rows, classes, numbers, table.n_rows)

    def _set(self, structure: GrownTrees, counts: ForestCounts) -> Self:
        """Set the fitted state. Mutating methods call this last."""
        self.structure_, self.counts_ = structure, counts
        self._cache: dict[str, Any] = {}
        return self

    def _with_counts(self, counts: ForestCounts) -> Self:
        """Return a model with the same trees and other counts."""
        other = clone(self)
        other.input_format_, other._frame_library = self.input_format_, self._frame_library
        return other._set(self.structure_, counts)

    # ---- Prediction ------------------------------------------------------------------------------------------------

    @property
    def _leaf_values(self) -> np.ndarray:
        """The values of the leaves, computed on first use."""
        check_is_fitted(self, "counts_")
        if "leaf values" not in self._cache:
            self._cache.pop("held out", None)
            self._cache["leaf values"] = self.structure_.leaf_values(self.counts_)
            if self.counts_.n_rows >= 2 * self.structure_.grown_weight > 0:
                warn(
                    f"the trees were grown from {self.structure_.grown_weight:g} rows, and twice as many are counted: "
                    "trees grown from all of them would predict better.\n    Call fit with all rows."
                )
        values: np.ndarray = self._cache["leaf values"]
        return values

    def _codes(self, X: Rows) -> np.ndarray:
        """Return the codes of rows without labels."""
        check_is_fitted(self, "counts_")
        table: Table = X if isinstance(X, Table) and self._is_read(X) else open_columns(self, X)
        return self.structure_.columns.encode(mask_invalid_cells(table, self._column_specs(), None))

    def _is_read(self, table: Table) -> bool:
        """Return whether a table has all columns of the trees, so that it needs no checks."""
        return all(name in table.columns for name in self.structure_.columns.names)

    def _check_classes(self) -> None:
        """Raise DataError if the model has no classes."""
        check_is_fitted(self, "counts_")
        if not len(self.counts_.present):
            raise DataError("the model has no rows and no classes.\n    Count rows with partial_fit first.")

    @predict_in_batches
    def predict_log_proba(self, X: Rows) -> np.ndarray:
        """Return the log class probabilities of rows, (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        """
        codes = self._codes(X)
        self._check_classes()
        return self.structure_.log_proba(self.counts_, self._leaf_values, codes)

    @predict_in_batches
    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return the class probabilities of rows, (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        """
        return np.exp(self.predict_log_proba(X))

    @predict_in_batches
    def predict(self, X: Rows) -> np.ndarray:
        """Return the most probable class of each row; ties go to the first class.

        Parameters
        ----------
        X : as for `fit`, without the target

        Returns
        -------
        ndarray of shape (n,)
        """
        best = self.predict_log_proba(X).argmax(axis=1)  # raises NotFittedError before classes_ is read
        return self.classes_[best]

    def score(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> float:
        """Return the accuracy on rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return classifier_fit.score(self, X, y, sample_weight)

    def held_out_proba(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> np.ndarray:
        """Return the class probabilities of the training rows, each without itself, (n, classes).

        A row is predicted by the trees that were not grown from it, with its own counts removed: no refitting is
        needed. The calibration was estimated from such predictions of all rows.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the trees were grown from, as for `fit`.

        Returns
        -------
        ndarray of shape (n, classes)
            NaN for rows of weight 0, and for rows that every tree was grown from.
        """
        check_is_fitted(self, "counts_")
        rows, classes, numbers, n_rows = self._read(X, y, sample_weight)
        if len(classes.levels) > len(self.structure_.classes):
            raise StatisticsError(
                "the trees were not grown from all classes, so they have no held-out predictions.\n"
                "    Use regrow(X, y)."
            )
        structure, kept = self.structure_, self._cache.pop("held out", None)
        found = None if kept is None else kept.find(rows)
        proba = (structure.held_out(self.counts_, rows) if found is None else found)[:, :, self.counts_.present]
        known = (proba.sum(axis=2) > 0).all(axis=1)
        log_proba = structure.pool.log_proba(proba, structure.bias(self.counts_), structure.base_rates(self.counts_))
        out = np.full((n_rows, proba.shape[2]), np.nan)
        out[numbers[known]] = np.exp(log_proba[known])
        return out

    def explain(self, X: Rows, against: Hashable = None) -> Explanation:
        """Return the contribution of each column to the log-odds of each row.

        A split of a tree changes the class scores from a node to its child. The sum of these changes over all splits of
        a column is its contribution. The contributions, that of the classes without any column and that of the
        calibration sum to the log-odds.

        Parameters
        ----------
        X : as for `fit`, without the target
        against : label, optional
            The class to compare with; by default the runner-up.

        Returns
        -------
        Explanation
        """
        codes = self._codes(X)
        parts = self.structure_, self.counts_, self._leaf_values, codes, self.classes_
        return explain_trees(*parts, against, self._frame_library)

    to_sql = export.to_sql
    to_onnx = export.to_onnx

    def _portable_scores(self) -> PortableScorer:
        """Return the scores for export."""
        from tallybayes.export.portable_trees import tree_scores_of

        self._check_classes()
        return tree_scores_of(self)

    # ---- State -----------------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> np.ndarray:
        """The sorted classes, in the data type of the target."""
        return labels_of(self._class_domain.levels, self.input_format_.y_dtype)

    @property
    def n_rows_(self) -> float:
        """The total weight of the counted rows."""
        check_is_fitted(self, "counts_")
        return self.counts_.n_rows

    @property
    def class_count_(self) -> np.ndarray:
        """The total weight of the counted rows of each class."""
        check_is_fitted(self, "counts_")
        return np.asarray(self.counts_.class_weight[self.counts_.present] / WEIGHT_UNIT)

    def summary(self) -> Summary:
        """Return a summary of the columns: the number of levels or bins.

        Returns
        -------
        Summary
        """
        rows, levels = self.n_rows_, self._class_domain.levels
        title = title_by_class(type(self).__name__, rows, "classes", levels, self.class_count_)
        return Summary(title, self.structure_.columns.summaries(), self.dropped_columns_)

    @property
    def target_(self) -> Name:
        """The name of the target column."""
        return classifier_fit.target(self)

    @property
    def dropped_columns_(self) -> dict[Name, str]:
        """From dropped column to the reason."""
        check_is_fitted(self, "counts_")
        return dict(self.structure_.columns.dropped_columns)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The column names of the data frame that was fitted."""
        return classifier_fit.feature_names_in(self)

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        return classifier_fit.n_features_in(self)

    @property
    def _target(self) -> Name:
        """The name of the target column."""
        return classifier_fit.target(self)

    @property
    def _class_domain(self) -> Domain:
        """The present classes, sorted."""
        if not hasattr(self, "counts_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self.counts_.domain

    @property
    def _required_columns(self) -> list[Any]:
        """The columns that rows must have."""
        return list(self.structure_.columns.names)

    def _column_specs(self) -> list[Any]:
        """Return the columns with the family and the levels of each."""
        return self.structure_.columns.specs()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a sealed file that `tb.load` reads; no pickle is involved.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self, "counts_")
        save_model(self, path)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the fitted state as JSON and arrays."""
        state, arrays = forest_to_parts(self.structure_, self.counts_)
        return state | {"shape": self.input_format_.to_json(), "frame": self._frame_library}, arrays

    def _from_file(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore the fitted state from JSON and arrays, after validation."""
        shape, frame = state.pop("shape"), state.pop("frame")
        structure, counts = forest_from_parts(self._structure_type, state, arrays)
        tally: Any = counts  # as far as the format asks for it
        self.input_format_ = InputFormat.from_json(shape, tally)
        check_no_unknown_entries("the shape of the rows", shape)
        self._frame_library = frame if isinstance(frame, str) else None
        self._set(structure, counts)

    _structure_type: ClassVar[type[GrownTrees]]

    def __copy__(self) -> Self:
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        if "_cache" in vars(self):
            other._cache = {}
        return other

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_property_error", None)
        return state | {"_cache": {}} if "_cache" in state else state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "counts_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: missing cells are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
