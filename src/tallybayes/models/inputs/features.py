"""Features and target in the forms that scikit-learn accepts, read as one table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from numbers import Number
from types import NoneType
from typing import Any, TypeGuard

import numpy as np

from tallybayes.data.array_input import as_array
from tallybayes.data.dates import origins
from tallybayes.data.encoding import is_missing
from tallybayes.data.named_matrix import NamedMatrix
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table, open_table, table_of_array
from tallybayes.data.text_columns import plain_texts, read_texts
from tallybayes.errors import DataError, LabelError
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multinomial import Multinomial
from tallybayes.families.text import Text
from tallybayes.messages import closest_names, did_you_mean
from tallybayes.tally.factor import Name
from tallybayes.typing import Labels, Names, Rows
from tallybayes.warnings import warn

_TEXT = Text()
_DEFAULT_FAMILIES: dict[str, Family] = {
    "number": Gaussian(),
    "label": Categorical(),
    "date": Categorical(),  # as a whole; counting it raises an error
    "sparse": Multinomial(),
    "text": _TEXT,
}
# Types of cells that are labels, or dates; scikit-learn would convert them to numbers.
_LABELS = (str, bool, np.bool_, bytes, complex, date, time, timedelta, np.datetime64, np.timedelta64)


def open_features(X: Rows) -> Table:
    """Return X as a table; unusual arrays are checked by scikit-learn."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and X.ndim == 2 and X.shape[1] > 0:
        return table_of_array(X)
    X = as_rows(X)
    if isinstance(X, Table | Mapping | NamedMatrix) or _is_framed(X) or open_source(X) is not None:
        table = open_table(X)
        if not table.columns:
            raise DataError("X has no columns; expected at least 1.")
        return table
    if (texts := plain_texts(X, _TEXT, "text")) is not None:
        return Table({"text": texts})
    if is_texts(X):
        return Table({"text": read_texts(X, _TEXT, "text")})
    if is_rows_of_mappings(X) or getattr(getattr(X, "dtype", None), "kind", "") == "c":  # raises by column
        return open_table(X)
    from sklearn.utils import check_array

    widths = {len(row) for row in X if isinstance(row, list | tuple)} if isinstance(X, list | tuple) else set()
    if len(widths) > 1:
        raise DataError(
            f"the rows of X have {min(widths)} to {max(widths)} values; expected equal numbers.\n"
            "    Pass None for missing values."
        )
    labels = _holds_labels(X)  # scikit-learn would convert "007" and True to numbers
    checked = check_array(X, dtype=None if labels else "numeric", ensure_all_finite=False, ensure_min_samples=0)
    if labels:
        checked = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return open_table(checked)


def default_family(table: Table, name: Name) -> Family:
    """Return the default family of a column, by its type."""
    return _DEFAULT_FAMILIES[table.kind(name)]


def _holds_labels(X: Rows) -> bool:
    """Return whether an array of objects, or rows as lists, have non-numeric values.

    Such columns are read one by one.
    """
    if isinstance(X, np.ndarray):
        kinds = set(map(type, X.flat)) if X.dtype.kind == "O" else set()
        return X.dtype.kind in "US" or any(issubclass(kind, _LABELS) for kind in kinds)
    rows = X if isinstance(X, list | tuple) else ()
    kinds = {kind for row in rows if isinstance(row, list | tuple) for kind in set(map(type, row))}
    return any(issubclass(kind, _LABELS) for kind in kinds)


def is_texts(X: Rows) -> bool:
    """Return whether X is a single column of strings: a list, an array of one axis, or a series."""
    if isinstance(X, list | tuple):
        kinds = set(map(type, X))
        return str in kinds and kinds <= {str, np.str_, NoneType, float}
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind == "U" or (X.dtype.kind == "O" and is_texts(X.tolist())))
    if hasattr(X, "to_frame") and hasattr(X, "dtype"):  # a series of a data frame
        import narwhals as nw

        series = nw.from_native(X, pass_through=True, series_only=True)
        return isinstance(series, nw.Series) and (series.dtype == nw.String or is_texts(series.to_list()))
    return hasattr(X, "buffers") and str(getattr(X, "type", "")).removeprefix("large_") == "string"  # of Arrow


def _is_framed(X: Any) -> bool:
    """Return whether X has columns: a data frame or a sparse matrix."""
    return hasattr(type(X), "columns") or (hasattr(X, "tocsr") and hasattr(X, "nnz")) or hasattr(X, "schema")


def as_rows(X: Any, model: Any = None) -> Any:
    """Return one row, a mapping of scalars or a series indexed by columns, as a list of one mapping; else X."""
    if isinstance(X, np.ndarray | list) or not hasattr(X, "items") or hasattr(X, "tocsr"):
        return X
    if isinstance(X, Mapping):
        return [X] if X and all(map(is_scalar, X.values())) else X
    if model is not None and is_row(X):
        known = {origin for name in model._required_columns for origin in origins(name) if isinstance(origin, str)}
        if any(isinstance(name, str) and name in known for name in X.index):
            return [X.to_dict()]
    return X


def is_row(X: Rows) -> bool:
    """Return whether X is a pandas series, whose index may be column names."""
    return hasattr(X, "index") and hasattr(X, "to_dict") and not hasattr(X, "columns")


def is_scalar(value: Any) -> bool:
    """Return whether a value of a mapping is one cell rather than a column."""
    kinds = str | bytes | bool | Number | np.generic | date | time | timedelta
    return isinstance(value, kinds) or (value.ndim == 0 if isinstance(value, np.ndarray) else is_missing(value))


def one_row(given: Any) -> Any:
    """Return the evidence of one row as a mapping of scalars: from a series, or a mapping of lists of one cell."""
    if is_row(given):
        given = given.to_dict()
    if not isinstance(given, Mapping):
        return given
    single = {name: value[0] for name, value in given.items() if isinstance(value, list | tuple) and len(value) == 1}
    return {**given, **single}


def is_rows_of_mappings(X: Rows) -> bool:
    """Return whether X is a list of dictionaries, one for every row; an absent key is a missing cell."""
    return isinstance(X, Sequence) and len(X) > 0 and isinstance(X[0], Mapping)


def with_absent_keys(rows: Any, table: Table, absent: Iterable[Name], known: Collection[Name]) -> Table:
    """Return rows that were mappings, with missing cells for absent keys; raise DataError if a key is misspelled."""
    absent = list(absent)
    check_keys(table, absent, known)
    return Table({**table.columns, **{name: [None] * len(rows) for name in absent}})


def check_keys(table: Table, absent: Iterable[Name], known: Collection[Name]) -> None:
    """Raise DataError if an unknown column of the table has a name close to an absent column."""
    extra = [name for name in table.columns if name not in known]
    misspelt = [name for name in absent if closest_names(name, extra)]
    if misspelt:
        raise DataError.unknown_column(misspelt, extra)


def warn_unobserved(columns: Collection[Name], nodes: Collection[Name], predicted: Collection[Name] = ()) -> None:
    """Warn if a node is not among the columns of the rows, and another column has a similar name."""
    extra = [name for name in columns if isinstance(name, str) and name not in nodes]
    absent = [name for name in nodes if name not in columns and name not in predicted] if extra else []
    near = {name: close[0] for name in absent if isinstance(name, str) and (close := closest_names(name, extra))}
    if near:
        pairs = ", ".join(f"column {found!r} instead of {name!r}" for name, found in near.items())
        warn(
            f"nodes {', '.join(map(repr, near))} are not observed in any row; found {pairs}.\n"
            "    Rename the columns if they are misspelt; drop them if not."
        )


def check_feature_names(model: Any, X: Rows, found: Iterable[Name]) -> None:
    """Raise ValueError if a frame has other columns than were fitted, as scikit-learn does, with the closest names."""
    from sklearn.utils.validation import _check_feature_names

    try:
        _check_feature_names(model, X, reset=False)
    except ValueError as error:
        known = list(model.feature_names_in_)
        found = list(found)
        extra = [name for name in found if name not in known]
        absent = [name for name in known if name not in found]
        raise DataError(f"{error}{did_you_mean(absent, extra)}") from None


def is_name(value: Any) -> TypeGuard[Any]:
    """Return whether a value names a column: a string, or an integer, which names a column of a frame or an array."""
    return isinstance(value, str | int | np.integer) and not isinstance(value, bool)


def feature_names(X: Rows, table: Table) -> np.ndarray | None:
    """Return the column names of a data frame, if all are strings, as scikit-learn does."""
    if not hasattr(X, "columns") or isinstance(X, Mapping | Table) or hasattr(X, "nnz"):
        return None
    names = list(table.columns)
    if not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def check_target(y: Labels | None, n_rows: int) -> Any:
    """Return the column of the target, with one label for every row; the same object if it is valid."""
    return read_target(y, n_rows)[1]


def read_target(y: Labels | None, n_rows: int) -> tuple[Any, Any]:
    """Return the target as given, without a frame around it, and as a column with one label for every row."""
    if y is None:
        raise DataError(
            "this classifier requires y to be passed, but the target y is None.\n"
            "    Pass one label for every row, or the name of the column that holds them."
        )
    column = y = y if isinstance(y, np.ndarray) else only_column(y)
    if not hasattr(y, "to_arrow") and not hasattr(y, "to_numpy"):
        from sklearn.utils.validation import column_or_1d

        array = y if isinstance(y, np.ndarray) else as_array(y)
        if array.ndim == 2 and array.shape[1] == 1:
            from sklearn.exceptions import DataConversionWarning

            warn(
                f"A column-vector y was passed when a 1d array was expected: shape {array.shape}, read as "
                f"{array.shape[:1]}.\n    Pass y.ravel().",
                DataConversionWarning,
            )
        column = column_or_1d(array) if array.ndim != 1 else array
        if column.dtype.kind == "c":
            raise DataError(
                "Complex data not supported: the labels are complex numbers; expected whole ones or strings."
            )
    if len(column) != n_rows:
        raise DataError.lengths_differ({"X": n_rows, "y": len(column)})
    return y, column


def only_column(y: Any) -> Any:
    """Return the target; of a data frame with one column, the column."""
    if isinstance(y, list | tuple) or not _is_framed(y) or hasattr(y, "nnz"):
        return y
    import narwhals as nw

    frame = nw.from_native(y, eager_only=True)
    if len(frame.columns) != 1:
        found = f"a frame of {len(frame.columns)} columns"
        raise DataError.wrong_type("y", found, "one column", "Pass the column of the labels, y[name], or its name.")
    return frame[frame.columns[0]].to_native()


def target_dtype(y: Labels | None) -> np.dtype | None:
    """Return the data type of the target, for predictions."""
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype
    categories = getattr(dtype, "categories", None)
    return getattr(categories, "dtype", None) if isinstance(getattr(categories, "dtype", None), np.dtype) else None


def continuous_target(error: LabelError) -> LabelError:
    """Return the error for a continuous target, or one of mixed types, in scikit-learn's words."""
    if not isinstance(error.level, float):
        return LabelError(f"Unknown label type: {error}")
    return LabelError(
        f"Unknown label type: y is continuous (column {error.column!r}, found {error.level!r}); expected class labels: "
        "whole numbers, strings or booleans.\n"
        "    To predict numbers use tb.LinearRegression; for classes use pd.qcut(y, 4).astype(str) or y.astype(str)."
    )


def target_name(y: Labels | None, default: str, table: Table) -> str:
    """Return the name of a Series of targets, or the default, with underscores where X has a column of that name."""
    name = getattr(y, "name", None)
    if not isinstance(name, str) or not name:
        return free_name(default, table.columns)
    if name in table.columns and np.array_equal(as_array(table.columns[name]), as_array(y)):
        warn(f"column {name!r} of X equals y: the model predicts the target from itself.\n    Drop it from X.")
    return free_name(name, table.columns)


def free_name(wanted: str, taken: Collection[Name]) -> str:
    """Return an unused column name."""
    while wanted in taken:
        wanted += "_"
    return wanted


def node_list(nodes: Names | np.integer[Any]) -> list[Name]:
    """Return one name, or several, as a list."""
    names: Any = [nodes] if isinstance(nodes, str | int | np.integer) else nodes
    if not isinstance(names, Iterable):
        raise DataError.wrong_type("nodes", repr(nodes), "the name of a node, or several")
    return [int(node) if isinstance(node, np.integer) else node for node in names]
