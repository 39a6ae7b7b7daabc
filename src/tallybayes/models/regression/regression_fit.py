"""Fitting a linear regression: reading rows and updating its tally."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.array_input import as_array
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.dates import origins, with_dates_whole, with_parts_of_dates
from tallybayes.data.numeric_columns import numeric
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
    open_features,
    target_name,
)
from tallybayes.models.inputs.input_format import dates_among, with_weight
from tallybayes.models.receipt import with_receipt
from tallybayes.models.regression.design_matrix import Design
from tallybayes.models.regression.regression_counts import (
    check_counted,
    count_rows,
    merge_tallies,
    subtract_tally_columns,
)
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

Model = TypeVar("Model", bound=Any)


def fit(model: Model, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> Model:
    """Fit the model to the rows, replacing any earlier counts.

    Parameters
    ----------
    X : array, data frame, mapping of columns, list of dicts; path, source or table of a database
        Numeric, categorical and date columns. Categorical columns become indicators; dates are split into their parts.
        Rows with a missing input are not counted, with a warning.
    y : array-like of shape (n,) or (n, targets), column name of X, or list of column names
        The targets. A missing target (NaN) is skipped, for that target only.
    sample_weight : array-like of shape (n,), or column name of X, optional

    Returns
    -------
    self
    """
    source = open_source(X)
    fresh = clone(model)
    fresh._check_settings()
    if source is None:
        table, weight, fresh._design = _read_first(fresh, X, y, sample_weight)
        tally = count_rows(fresh, table, weight, None)
    else:
        _check_source(source, y, sample_weight)
        with source.snapshot():
            first, _, fresh._design = _read_first(fresh, source.first_batch(), y, sample_weight)
            _check_has_rows(first.n_rows)
            tally = _count_source(fresh, source, sample_weight, None)
    check_counted(fresh._design, tally)
    model._copy_input_format(fresh)._frame_library = frame_kind(X)
    return model._set_tally(tally)


def partial_fit(model: Model, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> Model:
    """Count more rows, possibly with new levels. Any order and any split of the rows gives the same model as `fit`.

    Parameters
    ----------
    X, y, sample_weight
        As for `fit`.

    Returns
    -------
    self
    """
    if not hasattr(model, "tally_"):
        return fit(model, X, y, sample_weight)
    counted, more = merge_tallies(model._design, model.tally_, _count_more(model, X, y, sample_weight))
    return model._set_tally(counted + more)


@with_receipt
def forget(model: Model, X: Rows, y: Labels | None = None, sample_weight: SampleWeights = None) -> Model:
    """Remove training rows exactly: the model becomes as if they had never been counted.

    Parameters
    ----------
    X, y, sample_weight
        Rows that were counted, as for `fit`.

    Returns
    -------
    self
    """
    check_is_fitted(model, "tally_")
    return model._set_tally(
        subtract_tally_columns(model._design, model.tally_, _count_more(model, X, y, sample_weight))
    )


def _check_has_rows(n_rows: int) -> None:
    """Raise DataError if there are no rows."""
    if n_rows == 0:
        raise DataError("Found array with 0 sample(s): there are 0 rows to learn from; expected at least 1.")


# ---- Reading ---------------------------------------------------------------------------------------------------------


def _read_first(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Any, Design]:
    """Return the first rows, their weights and the design, which these rows determine."""
    table, weight = with_weight(open_features(X), sample_weight)
    _check_has_rows(table.n_rows)
    named = named_targets(y)
    unsplit = table
    by = model.by
    by_name = bool(named)
    table = with_parts_of_dates(table, keep=[by, *named])
    if by_name:
        targets: tuple[Name, ...] = tuple(named)
        for name in targets:
            table.column(name)
        rows = table
        single = is_name(y)
    else:
        columns, single = _targets(y, table.n_rows)
        targets = tuple(target_name(y if single else None, str(name), table) for name in columns)
        rows = _with_targets(table, dict(zip(targets, columns.values(), strict=True)))
    if by is not None and by not in table.columns:
        raise DataError.unknown_column([by], table.columns)
    inputs = [name for name in table.columns if name not in (*targets, by)]
    declared = model.levels or {}
    unknown = [name for name in declared if name not in inputs]
    if unknown:
        raise DataError.unknown_column(unknown, inputs)
    for name in inputs:
        if table.kind(name) in ("sparse", "text") or table.is_block(name):
            kind = f"{table.kind(name)} or a block"
            raise DataError.wrong_type(f"column {name!r}", kind, "one number or level in every row", "Make it dense.")
    labels = tuple(name for name in inputs if name in declared or (table.kind(name) == "label" and _shows(table, name)))
    numbers = tuple(name for name in inputs if name not in labels)
    names_in = feature_names(X, unsplit)
    design = Design(
        targets,
        numbers,
        labels,
        by,
        max(model._degrees()),
        by_name,
        single,
        None if by_name else len(unsplit.columns),
        None if by_name or names_in is None else tuple(names_in),
        dates_among(unsplit, table),
    )
    design.check_size()
    return rows, weight, design


def _shows(table: Table, name: Name) -> bool:
    """Return whether a categorical column has any level; a column of missing cells only may be numeric."""
    return bool((table.levels([name], lambda _: True)[0].columns[0] >= 0).any())


def named_targets(y: Any) -> list[Name]:
    """Return the target names if y names columns of the rows; an empty list if y holds values."""
    if is_name(y):
        return [y if isinstance(y, str) else int(y)]
    return list(y) if isinstance(y, list | tuple) and all(isinstance(one, str) for one in y) else []


def _targets(y: Any, n_rows: int) -> tuple[dict[Any, np.ndarray], bool]:
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


def read_rows(model: Any, X: Rows, y: Any, sample_weight: SampleWeights) -> tuple[Table, Any]:
    """Return X and y as one table, and the weights, checked against the design of a fitted model."""
    design: Design = model._design
    X = as_rows(X, model)
    table, weight = with_weight(open_features(X), sample_weight)
    if names := named_targets(y):
        columns: dict[Any, Any] = {name: table.column(name) for name in names}
    else:
        columns, _ = _targets(y, table.n_rows)
        check_features(model, X, table)
    table = with_parts_of_dates(table, design.inputs)
    if len(columns) != len(design.targets):
        raise DataError(
            f"y has {len(columns)} targets; expected {len(design.targets)}, as in fit: "
            f"{', '.join(map(repr, design.targets))}."
        )
    renamed = dict(zip(design.targets, columns.values(), strict=True))
    return _with_targets(table, renamed), weight


def with_targets(model: Model, names: tuple[Name, ...]) -> Model:
    """Return a copy of the model with other target names, if its own are the default ones."""
    design: Design = model._design
    if not design.unnamed or len(names) != len(design.targets) or {*names} & {*design.inputs}:
        return model
    tally = model.tally_
    for old, new in zip(design.targets, names, strict=True):
        tally = tally.renamed(old, new)
    renamed = copy.copy(model)
    renamed._design = design._replace(targets=names)
    return renamed._set_tally(tally)


def check_features(model: Any, X: Rows, table: Table) -> None:
    """Raise an error if the columns of X are not those of `fit`."""
    design: Design = model._design
    known = list(with_dates_whole({n: 1 for n in table.columns if n not in design.targets}, design.dates))
    absent = [name for name in design.inputs if not table.has(name)]
    if design.feature_names is not None and hasattr(X, "columns") and known != list(design.feature_names):
        check_feature_names(model, X, known)
    if design.n_features is not None and len(known) != design.n_features:
        raise DataError(
            f"X has {len(known)} features, but {type(model).__name__} is expecting {design.n_features} features "
            "as input.\n    Pass the columns the model was fitted on."
        )
    if absent:
        raise DataError.unknown_column(absent, table.columns)


# ---- Counting --------------------------------------------------------------------------------------------------------


def _count_more(model: Any, X: Any, y: Any, sample_weight: Any) -> Tally:
    """Return the tally of more rows, in memory or in a data source."""
    source = open_source(X)
    if source is None:
        return count_rows(model, *read_rows(model, X, y, sample_weight), model.tally_)
    _check_source(source, y, sample_weight)
    if tuple(named_targets(y)) != model._design.targets:
        raise DataError.wrong_type("y", repr(y), f"{list(model._design.targets)}, the targets of fit")
    with source.snapshot():
        return _count_source(model, source, sample_weight, model.tally_)


def _check_source(source: Source, y: Any, sample_weight: Any) -> None:
    """Raise an error if targets or weights are not columns of the source."""
    for name in named_targets(y) or [y]:
        check_names(source, y=name)
    if y is None:
        _targets(None, 0)
    check_names(source, sample_weight=sample_weight)


def _count_source(model: Any, source: Source, sample_weight: Any, like: Tally | None) -> Tally:
    """Return the tally of the rows of a data source, counted in the database or batch by batch."""
    from tallybayes.models.regression.regression_sql import count_there

    design: Design = model._design
    names = [*design.inputs, *design.targets]
    read = {origin for name in names for origin in origins(name)}
    known = set(source.schema.names)
    source.check_columns(name for name in names if known.isdisjoint(origins(name)))
    counted_there = count_there(model, source, sample_weight)
    if counted_there is not None:
        return counted_there
    wanted = [name for name in source.schema.names if name in read or name == sample_weight]
    total: Tally | None = None
    for table in tables_of_batches(source, "learning", wanted):
        rows, weight = with_weight(table, sample_weight)
        with with_file_location(table):
            part = count_rows(model, rows, weight, like)
        if total is None:
            total = part
        else:
            left, right = merge_tallies(design, total, part)
            total = left + right
    if total is None:
        _check_has_rows(0)
    assert total is not None
    return total
