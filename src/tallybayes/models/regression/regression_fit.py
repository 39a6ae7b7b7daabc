"""Fitting a linear regression: reading rows and updating its tally."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.array_input import as_array
from tallybayes.data.dates import origins, with_dates_whole, with_parts_of_dates
from tallybayes.data.encoding import numeric
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.source_batches import tables_of_batches, with_file_location
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.models.inputs.batching import check_names
from tallybayes.models.inputs.features import (
    as_rows,
    check_feature_names,
    feature_names,
    is_name,
    is_rows_of_mappings,
    open_features,
    target_name,
    with_absent_keys,
)
from tallybayes.models.inputs.input_format import dates_among, with_weight
from tallybayes.models.regression.design_matrix import Design
from tallybayes.models.regression.regression_counts import RegressionCounter, check_counted, merge_tallies
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.regression.linear_regression import LinearRegression


class FirstRows(NamedTuple):
    """The first rows of a regression, which determine its design."""

    table: Table
    weight: Any
    design: Design


def check_has_rows(n_rows: int) -> None:
    """Raise DataError if there are no rows."""
    if n_rows == 0:
        raise DataError("Found array with 0 sample(s): there are 0 rows to learn from; expected at least 1.")


# ---- Reading ---------------------------------------------------------------------------------------------------------


def read_first(
    X: Rows,
    y: Labels | None,
    sample_weight: SampleWeights,
    degree: int,
    by: Name | None,
    declared: Collection[Name],
) -> FirstRows:
    """Return the first rows and their design.

    Parameters
    ----------
    X, y, sample_weight
        As for `LinearRegression.fit`.
    degree : int
        The highest degree to count.
    by : name or None
        The column of the groups.
    declared : collection of names
        Columns that are categorical whatever their type.
    """
    given, weight = with_weight(open_features(X), sample_weight)
    check_has_rows(given.n_rows)
    named = named_targets(y)
    table = with_parts_of_dates(given, keep=[*named, *([] if by is None else [by])])
    if named:
        targets = tuple(named)
        for name in targets:
            table.column(name)
        rows = table
        single = is_name(y)
    else:
        columns, single = _target_columns(y, table.n_rows)
        targets = tuple(target_name(y if single else None, str(name), table) for name in columns)
        rows = _with_targets(table, dict(zip(targets, columns.values(), strict=True)))
    if by is not None and by not in table.columns:
        raise DataError.unknown_column([by], table.columns)
    inputs = [name for name in table.columns if name not in (*targets, by)]
    unknown = [name for name in declared if name not in inputs]
    if unknown:
        raise DataError.unknown_column(unknown, inputs)
    labels = tuple(name for name in inputs if _is_categorical(table, name) or name in declared)
    numbers = tuple(name for name in inputs if name not in labels)
    names_in = None if named else feature_names(X, given)
    design = Design(
        targets,
        numbers,
        labels,
        by,
        degree,
        bool(named),
        single,
        None if named else len(given.columns),
        None if names_in is None else tuple(names_in),
        dates_among(given, table),
    )
    design.check_size()
    return FirstRows(rows, weight, design)


def count_first(
    X: Rows,
    y: Labels | None,
    sample_weight: SampleWeights,
    degree: int,
    by: Name | None,
    declared: Mapping[Name, Iterable[Any] | None],
) -> tuple[Design, Tally]:
    """Return the design and the tally of the first rows; parameters as for `read_first`."""
    source = open_source(X)
    if source is None:
        table, weight, design = read_first(X, y, sample_weight, degree, by, declared)
        tally = RegressionCounter(design, declared).count(table, weight, None)
    else:
        weight_column = check_source(source, y, sample_weight)
        with source.snapshot():
            design = read_first(source.first_batch(), y, sample_weight, degree, by, declared).design
            tally = count_source(RegressionCounter(design, declared), source, weight_column, None)
    check_counted(design, tally)
    return design, tally


def _is_categorical(table: Table, name: Name) -> bool:
    """Return whether a column has levels; a column of missing cells only may be numeric. Raise DataError for blocks."""
    if table.kind(name) in ("sparse", "text") or table.is_block(name):
        kind = f"{table.kind(name)} or a block"
        raise DataError.wrong_type(f"column {name!r}", kind, "one number or level in every row", "Make it dense.")
    return table.kind(name) == "label" and bool((table.encoded(name, True)[0] >= 0).any())


def named_targets(y: Labels | None) -> list[Name]:
    """Return the target names if y names columns of the rows; an empty list if y holds values."""
    if is_name(y):
        return [y if isinstance(y, str) else int(y)]
    return list(y) if isinstance(y, list | tuple) and all(isinstance(name, str) for name in y) else []


def _target_columns(y: Labels | None, n_rows: int) -> tuple[dict[Any, np.ndarray], bool]:
    """Return the targets by name, as numbers, and whether y was one-dimensional."""
    if y is None:
        raise DataError(
            "this regression requires y to be passed, but the target y is None.\n"
            "    Pass a number for every row, or the name of a column of X."
        )
    if hasattr(y, "columns") and not isinstance(y, np.ndarray):
        frame = open_table(y)
        columns = {name: numeric(frame.column(name), name) for name in frame.columns}
        single = False
    else:
        array = y if isinstance(y, np.ndarray) else as_array(y)
        array = np.asarray(numeric(array, "y"))
        single = array.ndim == 1
        if array.ndim not in (1, 2):
            raise DataError.wrong_shape("y", array.shape, "(rows,) or (rows, targets)")
        columns = {"y": array} if single else {f"y{k}": array[:, k] for k in range(array.shape[1])}
    for column in columns.values():
        if len(column) != n_rows:
            raise DataError.lengths_differ({"X": n_rows, "y": len(column)})
    return columns, single


def _with_targets(table: Table, targets: dict[Name, np.ndarray]) -> Table:
    """Return the table with the targets as columns."""
    for name, column in targets.items():
        table = table.with_column(name, column)
    return table


def read_rows(
    model: LinearRegression, design: Design, X: Rows, y: Labels | None, sample_weight: SampleWeights
) -> tuple[Table, SampleWeights]:
    """Return X and y as one table, and the weights, checked against the design of a fitted model."""
    X = as_rows(X, model)
    table, weight = with_weight(open_features(X), sample_weight)
    if names := named_targets(y):
        columns: dict[Any, Any] = {name: table.column(name) for name in names}
    else:
        columns, _ = _target_columns(y, table.n_rows)
        _check_features(model, design, X, table)
    table = with_parts_of_dates(table, design.inputs)
    if len(columns) != len(design.targets):
        raise DataError(
            f"y has {len(columns)} targets; expected {len(design.targets)}, as in fit: "
            f"{', '.join(map(repr, design.targets))}."
        )
    return _with_targets(table, dict(zip(design.targets, columns.values(), strict=True))), weight


def open_inputs(model: LinearRegression, design: Design, X: Rows) -> Table:
    """Return rows without targets as a table, checked against the design of a fitted model."""
    X = as_rows(X, model)
    table = open_features(X)
    if is_rows_of_mappings(X):  # a key that a mapping lacks is a missing cell
        known = {origin for name in design.inputs for origin in origins(name)}
        absent = [name for name in design.inputs if not table.has(name)]
        table = with_absent_keys(X, table, absent, known.union(design.targets))
    _check_features(model, design, X, table)
    return with_parts_of_dates(table, design.inputs)


def _check_features(model: LinearRegression, design: Design, X: Rows, table: Table) -> None:
    """Raise an error if the columns of X are not those of `fit`."""
    known = list(with_dates_whole({n: 1 for n in table.columns if n not in design.targets}, design.dates))
    absent = [name for name in design.inputs if not table.has(name)]
    if design.feature_names is not None and hasattr(X, "columns") and known != list(design.feature_names):
        check_feature_names(model, X, known)
    if design.n_features is not None and len(known) != design.n_features:
        raise DataError.wrong_number(len(known), type(model).__name__, design.n_features)
    if absent:
        raise DataError.unknown_column(absent, table.columns)


# ---- Counting --------------------------------------------------------------------------------------------------------


def count_more(
    model: LinearRegression, counter: RegressionCounter, X: Rows, y: Labels | None, sample_weight: SampleWeights
) -> Tally:
    """Return the tally of more rows, in memory or in a data source."""
    design = counter.design
    source = open_source(X)
    if source is None:
        table, weight = read_rows(model, design, X, y, sample_weight)
        return counter.count(table, weight, model.tally_)
    weight_column = check_source(source, y, sample_weight)
    if tuple(named_targets(y)) != design.targets:
        raise DataError.wrong_type("y", repr(y), f"{list(design.targets)}, the targets of fit")
    with source.snapshot():
        return count_source(counter, source, weight_column, model.tally_)


def check_source(source: Source, y: Labels | None, sample_weight: SampleWeights) -> str | None:
    """Return the name of the weight column; raise an error if targets or weights are not columns of the source."""
    if y is None:
        _target_columns(None, 0)
    targets: list[Any] = list(named_targets(y)) or [y]
    for name in targets:
        check_names(source, y=name)
    check_names(source, sample_weight=sample_weight)
    return sample_weight if isinstance(sample_weight, str) else None


def count_source(counter: RegressionCounter, source: Source, sample_weight: str | None, like: Tally | None) -> Tally:
    """Return the tally of the rows of a data source, counted in the database or batch by batch."""
    from tallybayes.models.regression.regression_sql import count_in_database

    design = counter.design
    names = [*design.inputs, *design.targets]
    required = {origin for name in names for origin in origins(name)}
    available = set(source.schema.names)
    source.check_columns(name for name in names if available.isdisjoint(origins(name)))
    total = count_in_database(counter, source, sample_weight)
    if total is not None:
        return total
    columns = [name for name in source.schema.names if name in required or name == sample_weight]
    for table in tables_of_batches(source, "learning", columns):
        rows, weight = with_weight(table, sample_weight)
        with with_file_location(table):
            part = counter.count(rows, weight, like)
        total = part if total is None else merge_tallies(design, total, part)
    if total is None:
        check_has_rows(0)
    assert total is not None
    return total
