"""InputFormat: the target and the features of the training rows, and reading of X, y and weights in that format."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes.data.array_input import unmerged
from tallybayes.data.counting import check_weight
from tallybayes.data.data_frames import as_frame
from tallybayes.data.dates import dates_of, origins, with_dates_whole, with_parts_of_dates
from tallybayes.data.indicator_columns import is_presence, with_unknown
from tallybayes.data.missing_indicators import sources_of
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table, table_of_array
from tallybayes.data.text_columns import WordReader
from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.inputs.features import (
    as_rows,
    check_feature_names,
    check_target,
    feature_names,
    is_name,
    is_rows_of_mappings,
    open_features,
    read_target,
    target_dtype,
    target_name,
    with_absent_keys,
)
from tallybayes.models.inputs.invalid_cells import ColumnSpec, mask_invalid_cells
from tallybayes.models.inputs.labels import read_labels
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

_DTYPE = re.compile(r"[<>|=][biufOSU][0-9]{0,9}")  # data types of labels, in a file


class InputFormat(NamedTuple):
    """The format of the training rows: the target, its data type, and the features as scikit-learn describes them."""

    target: Name
    by_name: bool = True  # whether the target is a column of X; then features are found by name, too
    y_dtype: np.dtype | None = None
    feature_names: np.ndarray | None = None
    n_features: int | None = None
    dates: tuple[Name, ...] = ()  # date columns, which are replaced by their parts
    columns: tuple[str, ...] | None = None  # the names of the features, if they have names

    @property
    def unnamed(self) -> bool:
        """Whether the target has the default name, because y had no name."""
        return not self.by_name and str(self.target).rstrip("_") == "class"

    def without_object_labels(self) -> Self:
        """Return the format without the data type of the labels if that is object."""
        is_object = self.y_dtype is not None and self.y_dtype.kind == "O"
        return self._replace(y_dtype=None) if is_object else self

    @classmethod
    def of_tally(cls, target: Name, names: list[Name]) -> Self:
        """Return the format of rows that were counted elsewhere: by name, unless they are all columns of an array."""
        if sorted(names, key=str) == sorted(range(len(names)), key=str):
            return cls(target, by_name=False, n_features=len(names))
        named = tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None
        return cls(target, n_features=len(names), columns=named)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON, by their names."""
        names = None if self.feature_names is None else list(self.feature_names)
        plain = self._replace(y_dtype=None if self.y_dtype is None else self.y_dtype.str, feature_names=names)  # type: ignore[arg-type]
        return {name: to_json(value) for name, value in plain._asdict().items()}

    @classmethod
    def from_json(cls, state: dict[str, Any], tally: Tally) -> Self:
        """Return the format from JSON; every field is checked, because files are untrusted."""
        found: Any = cls(*(from_json(state.pop(name)) for name in cls._fields))
        dtype = found.y_dtype
        names = found.feature_names
        n_features = found.n_features
        columns = found.columns
        if dtype is not None and not _DTYPE.fullmatch(dtype):
            raise FileError(f"the labels of the model are of type {dtype!r:.60}; expected bool, numbers or text.")
        if str(found.target) not in tally.domains:
            raise FileError(f"the model's target {found.target!r} is not in its tally.")
        return cls(
            target=found.target,
            by_name=found.by_name is True,
            y_dtype=None if dtype is None else np.dtype(dtype),
            feature_names=None if names is None else np.array([str(name) for name in names], dtype=object),
            n_features=None if n_features is None else int(n_features),
            dates=tuple(found.dates),
            columns=None if columns is None else tuple(map(str, columns)),
        )


class FeatureReader(Protocol):
    """What reading the features of rows needs of a fitted model."""

    @property
    def input_format_(self) -> InputFormat:
        """The format of the training rows."""

    @property
    def _required_columns(self) -> list[Any]: ...
    @property
    def _text_readers(self) -> Mapping[Any, WordReader]: ...


class LabeledRowReader(FeatureReader, Protocol):
    """What reading labeled rows needs of a fitted classifier."""

    @property
    def _target(self) -> Name: ...
    @property
    def _class_domain(self) -> Domain: ...


class RowReader(FeatureReader, Protocol):
    """What reading rows to predict needs of a fitted model."""

    tally_: Tally

    @property
    def _n_float_columns(self) -> int | None: ...
    @property
    def _is_text_only(self) -> bool: ...
    def _column_specs(self) -> list[ColumnSpec]: ...


def read_initial_rows(X: Rows, y: Labels | None, sample_weight: SampleWeights) -> tuple[InputFormat, Table, Any]:
    """Return the format of the first rows, X and y as one table, and the weights."""
    table, weight = with_weight(open_features(X), sample_weight)
    target = y if is_name(y) else None
    parts = table
    if table.matrix is None:
        parts = with_parts_of_dates(table, keep=() if target is None else (target,))
    dates = () if parts is table else dates_among(table, parts)
    n_features, columns = _describe_features(X, table, target)
    if target is not None:
        dtype = target_dtype(table.column(target))
        return InputFormat(target, True, dtype, None, n_features, dates, columns), parts, weight
    y, column = read_target(y, table.n_rows)
    typed = hasattr(y, "dtype") or not isinstance(column, np.ndarray) or column.dtype.kind != "O"
    dtype = target_dtype(column) if typed else None  # a list has no data type
    names = feature_names(X, table) if hasattr(X, "columns") else None
    target = target_name(y, "class", table)
    input_format = InputFormat(target, False, dtype, names, n_features, dates, columns)
    return input_format, parts.with_column(target, column), weight


def _describe_features(X: Rows, table: Table, target: Name | None) -> tuple[int, tuple[str, ...] | None]:
    """Return the number of features, and their names if X is a frame, a mapping, a list of mappings, or a source."""
    if target is None and table.matrix is not None:
        return table.matrix.shape[1], None
    features = [name for name in table.columns if target is None or name != target]
    n_features = len(features) if table.matrix is not None else sum(map(table.width, features))
    if target is not None:
        is_named = True
    elif isinstance(X, np.ndarray) or hasattr(X, "tocsr"):
        is_named = False
    else:
        is_named = isinstance(X, Mapping | Table) or is_rows_of_mappings(X) or hasattr(X, "columns")
        is_named = is_named or open_source(X) is not None
    is_named = is_named and n_features == len(features) and all(isinstance(name, str) for name in features)
    return n_features, tuple(map(str, features)) if is_named else None


def dates_among(table: Table, parts: Table) -> tuple[Name, ...]:
    """Return the date columns of a table that are replaced by their parts."""
    return () if parts is table else tuple(name for name in table.columns if name not in parts.columns)


def read_more_rows(model: FeatureReader, X: Rows, y: Labels | None, sample_weight: SampleWeights) -> tuple[Table, Any]:
    """Return more rows for a fitted model: X and y as one table in its format, and the weights."""
    X = as_rows(X, model)
    table, weight = with_weight(open_features(X), sample_weight)
    table = _as_fitted(model, X, table)
    target = model.input_format_.target
    if not is_name(y):
        table = table.with_column(target, check_target(y, table.n_rows))
    elif y not in table.columns:
        raise DataError.unknown_column([y], table.columns)
    elif y != target:
        table = table.with_column(target, table.columns[y])
    _check_features(model, X, table)
    return with_parts_of_dates(table, _parts_of_dates(model)), weight


def read_codes(
    model: LabeledRowReader, X: Rows, y: Labels, sample_weight: SampleWeights = None
) -> tuple[np.ndarray, Table, np.ndarray | None]:
    """Return labeled rows for a fitted classifier: the class codes, the rows without the target, and the weights."""
    table, weight = read_more_rows(model, X, y, sample_weight)
    if table.n_rows == 0:
        raise DataError("X has 0 rows; expected at least 1 labeled row.")
    labels = read_labels(table, model._target)
    domain = model._class_domain
    unknown = [
        level for level, n in zip(labels.domain.levels, labels.rows, strict=True) if n and level not in domain.index
    ]
    if unknown:
        raise LabelError.no_such_class(unknown[0], domain.levels)
    if labels.n_missing:
        row = int(np.flatnonzero(labels.codes < 0)[0])
        raise LabelError(f"y is missing in row {row}; expected a label for every row.")
    codes = domain.positions_of(labels.domain.levels)[labels.codes]
    return codes, table.without(model._target), check_weight(weight, table.n_rows, any_size=True)


def is_array(model: FeatureReader) -> bool:
    """Return whether a model was fitted on an array, so that its columns are numbered."""
    return not model.input_format_.by_name and all(isinstance(name, int) for name in model._required_columns)


def open_columns(model: FeatureReader, X: Rows) -> Table:
    """Return the features of rows in the format of the model."""
    if isinstance(X, list | tuple) and not X and model._text_readers and not model.input_format_.by_name:
        X = np.zeros(0, dtype=str)  # no texts
    X = as_rows(X, model)
    table = _as_fitted(model, X, open_features(X))
    _check_features(model, X, table)
    return with_parts_of_dates(table, _parts_of_dates(model))


def open_rows(model: RowReader, X: Rows) -> Table:
    """Return the features of rows, with invalid cells masked and with missing-value indicators."""
    n_columns = model._n_float_columns  # raises NotFittedError before the model is fitted
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind == "f" and n_columns == X.shape[1]:
        return table_of_array(X)  # without any conversion or check
    if type(X) is list and X and type(X[0]) is str and model._is_text_only:  # texts without names need no table
        ((name, reader),) = model._text_readers.items()
        return Table({name: reader.read(X, name)})
    table = bound_texts(model, open_columns(model, X))
    specs = model._column_specs()
    unseen = getattr(model, "unseen", "error")
    kept = mask_invalid_cells(table, specs, vars(model).get("unseen"))
    factors = model.tally_.factors
    beside = [
        factor for factor in factors if factor.given and sources_of(factor.columns[0])
    ]  # indicators are one factor
    absence = [name for factor in beside for name in factor.columns if name not in kept.columns]
    if not absence or unseen == "error":
        return kept
    domains = model.tally_.domains
    levels = {name: domains[str(name)] for factor in factors for name in factor.level_columns if str(name) in domains}
    return with_unknown(kept, absence, levels if unseen == "missing" else {})


def bound_texts(model: FeatureReader, table: Table) -> Table:
    """Return the rows with text columns as counts of the words of the model."""
    readers = model._text_readers
    if not readers:
        return table
    read = {name: reader.read(table.column(name), name) for name, reader in readers.items()}
    return table.replaced({**table.columns, **read})


def shaped(
    shape: InputFormat,
    columns: dict[Name, Any],
    frame: str | None = None,
    like: Any = None,
    changed: Collection[Name] = (),
) -> Any:
    """Return columns in the form of the input: one array, a frame of that library, or a dictionary; see `as_frame`."""
    if shape.dates and like is not None:  # missing dates stay missing: their parts do not determine them
        columns = {name: columns.get(name, column) for name, column in open_features(like).columns.items()}
    if frame is not None:
        order = [] if shape.feature_names is None else shape.feature_names.tolist()
        if shape.dates:
            order = [column for name in order for column in columns if name == column or name in dates_of(column)]
        return as_frame({name: columns[name] for name in (*order, *columns) if name in columns}, frame, like, changed)
    if not shape.by_name and all(isinstance(name, int) for name in columns):
        return np.stack(unmerged([columns[name] for name in sorted(columns)]), axis=-1)
    alone = len(columns) == 1 and not shape.by_name
    if alone and ("text" in columns or next(iter(columns.values())).ndim == 2):
        return next(iter(columns.values()))
    return columns


def with_weight(table: Table, sample_weight: SampleWeights) -> tuple[Table, Any]:
    """Return the table without the column of the weights, and the weights."""
    if not is_name(sample_weight):
        return table, sample_weight
    weight = table.column(sample_weight)
    return table.without(sample_weight), weight


def _as_fitted(model: FeatureReader, X: Rows, table: Table) -> Table:
    """Return the features as they were fitted: sparse or dense, absent keys of rows as missing cells."""
    names = model._required_columns
    absent = [name for name in names if name not in table.columns]
    if absent:
        known = set(names)
        absent = [name for name in absent if not is_presence(name, known) and not table.has(name)]
    if not absent:
        return table
    dates = [date for date in model.input_format_.dates if date not in table.columns and isinstance(date, str)]
    if dates and any(date in dates_of(name) for date in dates for name in absent) and not is_rows_of_mappings(X):
        raise DataError.unknown_column(dates, table.columns)
    if is_rows_of_mappings(X):
        read = {origin for name in names for origin in origins(name)} | {model.input_format_.target}
        return with_absent_keys(X, table, absent, read | {*dict(getattr(model, "_dropped_columns", ()))})
    return table if model.input_format_.by_name else _as_fitted_blocks(table, names, is_text=bool(model._text_readers))


def _as_fitted_blocks(table: Table, names: list[Name], *, is_text: bool) -> Table:
    """Return features without names as the model has them: as one block, or a sparse block as dense columns."""
    blocks = list(table.columns.values())
    if len(names) == 1 and table.matrix is not None:
        return Table({names[0]: table.matrix})
    if len(names) == len(blocks) == 1 and is_text:
        return Table({names[0]: blocks[0]})
    if len(blocks) == 1 and isinstance(blocks[0], SparseRows):
        return open_features(blocks[0].dense())
    return table


def _parts_of_dates(model: FeatureReader) -> list[Name]:
    """Return the columns of the model that may be parts of dates."""

    def make() -> list[Name]:
        return [name for name in model._required_columns if dates_of(name)]

    return model._cached("parts of dates", make) if hasattr(model, "_cached") else make()


def _check_features(model: FeatureReader, X: Rows, table: Table) -> None:
    shape: InputFormat = model.input_format_
    if shape.by_name:
        return
    columns = {name: table.width(name) for name in table.columns if name != shape.target}
    columns = with_dates_whole(columns, shape.dates)
    if shape.feature_names is not None and hasattr(X, "columns"):
        found = list(columns)
        if found != list(shape.feature_names):
            check_feature_names(model, X, found)
    n_features = sum(columns.values())
    if n_features != shape.n_features:
        raise DataError.wrong_number(n_features, type(model).__name__, shape.n_features, shape.feature_names)
