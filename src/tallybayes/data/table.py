"""Table: rows in memory, as named columns and blocks of columns."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.array_input import as_array, read_sparse
from tallybayes.data.data_frames import column_of_series, columns_of_frame
from tallybayes.data.dates import dates_of, origins, part_of, parts_of_type, type_of_objects
from tallybayes.data.encoding import (
    count_levels,
    direct_levels,
    encode,
    is_interval,
    is_missing,
    is_number,
    numeric,
    plain_array,
)
from tallybayes.data.missing_indicators import sources_of
from tallybayes.data.named_matrix import NamedMatrix, check_unique_names
from tallybayes.data.open_source import open_source
from tallybayes.data.sql.sql_types import NESTED, unread_type
from tallybayes.data.text_columns import Texts, read_texts
from tallybayes.errors import DataError, LabelError, short_repr
from tallybayes.families._shared.blocks import Codes, Dense, SparseRows
from tallybayes.families.text import Text
from tallybayes.messages import conversion_hint
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.typing import Column

_FLOATS = ("float", "double", "halffloat", "decimal")
_NESTED = (list, tuple, dict, set, np.ndarray)
_READ = "biufUM"  # kinds of NumPy types of numbers, categories and dates
_CELLS = (str, Real, np.bool_, Decimal)  # objects that are numbers or categories
_LARGE = 4096  # cells of a joint table for which unobserved levels are dropped


def _is_all_null(column: Column) -> bool:
    """Return whether all cells of an Arrow column are null."""
    n_null = getattr(column, "null_count", None)
    return isinstance(n_null, int) and n_null == len(column) > 0


class Table:
    """Rows in memory: an array, a sparse matrix, a data frame, a list, or a mapping of columns and blocks.

    Parameters
    ----------
    columns : mapping from name to a column (one axis) or a block (an array of two axes, or `SparseRows`)
    matrix : ndarray of shape (n, columns), optional
        The array whose columns are the columns from `first` on, so that blocks need no copy.
    first : int, default 0
    """

    def __init__(self, columns: Mapping[Name, Any], matrix: np.ndarray | None = None, *, first: int = 0) -> None:
        self.columns = dict(columns)
        self.matrix = matrix
        apart = self.columns if matrix is None else list(self.columns)[:first]
        lengths = {str(name): _length(self.columns[name]) for name in apart}
        if matrix is not None:
            lengths |= {str(name): len(matrix) for name in list(self.columns)[first : first + 1]}
        if len(set(lengths.values())) > 1:
            raise DataError.lengths_differ(lengths)
        self.n_rows = len(matrix) if matrix is not None else next(iter(lengths.values()), 0)
        self._first = first
        self._order = {name: position - first for position, name in enumerate(self.columns)}
        self._encoded: dict[tuple[Name, bool], tuple[np.ndarray, Domain]] = {}
        self._highest: list[np.ndarray | None] = []  # maxima of the matrix, once they are computed
        self._derived: dict[Name, Any] = {}  # missing-value indicators and parts of dates
        self.invalid_cells: dict[Name, np.ndarray] = {}  # by column; they are not counted as missing by indicators
        self.file_location: tuple[str, str, int] | None = None  # file, "line" or "row", and the number of the first
        self.n_sampled_from: int | None = None  # number of rows of which these are a random sample
        self.cache: dict[Any, Any] = {}  # values that families derive from columns

    @property
    def names(self) -> KeysView[Name]:
        """The names of the columns."""
        return self.columns.keys()

    def kind(self, name: Name) -> str:
        """Return "number", "label", "date", "sparse" or "text", by the type of a column and not by its values."""
        column = self.columns.get(name)
        if type(column) is np.ndarray and column.dtype.kind in "iufbU":
            return "number" if column.dtype.kind in "iuf" else "label"
        kind = self.type_name(name)
        if kind in ("sparse", "text"):
            return kind
        if kind.startswith(("int", "uint", *_FLOATS)):
            return "number"
        return "date" if parts_of_type(kind) else "label"

    def is_float(self, name: Name) -> bool:
        """Return whether the type of a column is a floating-point or decimal type."""
        return self.type_name(name).startswith(_FLOATS)

    def type_name(self, name: Name) -> str:
        """Return the name of a column's type as Arrow or NumPy name it."""
        column = self.column(name)
        if isinstance(column, SparseRows | Texts):
            return "sparse" if isinstance(column, SparseRows) else "text"
        if isinstance(column, np.ndarray) and column.dtype.kind != "O":
            return str(column.dtype)
        arrow = getattr(column, "type", None)
        if arrow is None and isinstance(column, np.ndarray | list):
            import pyarrow as pa

            try:
                arrow = type_of_objects(np.ravel(column)) or pa.infer_type(np.ravel(column), from_pandas=True)
            except (ValueError, TypeError):  # objects without an Arrow type
                return "object"
        return str(arrow)

    def unread(self, name: Name) -> str:
        """Return why a column is neither numeric nor categorical, by its type or first cells; empty if it is."""
        column: Any = self.columns.get(name)
        if type(column) is np.ndarray and (column.dtype.kind in _READ or column.ndim != 1):
            return ""
        if isinstance(column, np.ndarray) and column.dtype.kind != "O":
            if column.dtype.kind in _READ or (column.dtype.kind == "m" and np.isnat(column).all()):
                return ""
            return f"its type is {column.dtype.type.__name__.rstrip('_')}"
        categories: Any = getattr(getattr(column, "cat", None), "categories", None)  # pandas
        if categories is None and not isinstance(column, np.ndarray | list):
            return "" if _is_all_null(column) else unread_type(getattr(column, "type", None))
        cells: Any = column[:_LARGE] if categories is None else categories[:1]
        first = next((cell for cell in cells if not is_missing(cell)), None)
        is_date = categories is None and isinstance(first, date | np.datetime64)
        if first is None or is_date or isinstance(first, _CELLS) or is_interval(first):
            return ""
        return NESTED if isinstance(first, _NESTED) else f"its type is {type(first).__name__}"

    def check_not_nested(self, names: Iterable[Name]) -> None:
        """Raise DataError if some columns are neither numeric nor categorical."""
        nested = {name: reason for name in names if (reason := self.unread(name))}
        if nested:
            raise DataError.nested(nested)

    def require_numbers(self, names: Iterable[Name]) -> None:
        """Raise DataError if a column is categorical, for models of numeric columns."""
        names = list(names)
        self.check_not_nested(names)
        for name in names:
            if self.kind(name) == "text":
                hint = "tb.NaiveBayes(tb.Text()) counts its words."
                raise DataError.wrong_type(f"column {name!r}", "a column of text", "numbers", hint)
            if self.kind(name) in ("label", "date"):
                column = self.column(name)
                cells = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
                value = next((value for value in cells if not is_missing(value)), None)
                if value is None:  # a column without values may be numeric
                    continue
                cast = "column.astype(float)" if is_number(value) else "pd.to_numeric(column, errors='coerce')"
                hint = conversion_hint(value) or (
                    f"Convert it with {cast}; tb.NaiveBayes is fitted to both numeric and categorical columns."
                )
                if dates_of(name):
                    hint = f"Remove {dates_of(name)[0]!r}, or use a model that reads dates, such as tb.NaiveBayes."
                found = f"a categorical column with values such as {short_repr(value)}"
                raise DataError.wrong_type(f"column {name!r}", found, "numbers", hint)

    def is_block(self, name: Name) -> bool:
        """Return whether a name refers to several columns."""
        column = self.column(name)
        return isinstance(column, SparseRows | Texts) or getattr(column, "ndim", 1) == 2

    def width(self, name: Name) -> int:
        """Return the number of columns that a name refers to."""
        column = self.column(name)
        column = column.sparse if isinstance(column, Texts) and column.is_bound else column
        if isinstance(column, SparseRows):
            return column.n_columns
        return int(column.shape[1]) if getattr(column, "ndim", 1) == 2 else 1

    def with_column(self, name: Name, values: Column) -> Table:
        """Return the table with one more column, as the first; it replaces a column of the same name."""
        if name in self.columns:
            return self.without(name).with_column(name, values)
        table = Table({name: values, **self.columns}, self.matrix, first=self._first + 1)
        table._encoded = {key: encoding for key, encoding in self._encoded.items() if key[0] != name}
        table._highest = self._highest
        table.invalid_cells = self.invalid_cells
        table.n_sampled_from = self.n_sampled_from
        return table

    def with_codes(self, name: Name, codes: np.ndarray, domain: Domain) -> Table:
        """Return the table with one more categorical column that is already encoded."""
        table = self.with_column(name, codes)
        table._encoded[name, True] = table._encoded[name, False] = codes, domain
        return table

    def recoded(self, encodings: Mapping[tuple[Name, bool], tuple[np.ndarray, Domain]]) -> Table:
        """Return the table with other encodings of some categorical columns, by name and whether levels are sorted."""
        table = Table(self.columns)  # without the matrix, whose numbers are no longer the codes
        table._encoded = {**self._encoded, **encodings}
        table.invalid_cells = self.invalid_cells
        table.file_location = self.file_location
        table.cache = self.cache
        return table

    def without(self, name: Name) -> Table:
        """Return the table without one column."""
        table = Table({other: column for other, column in self.columns.items() if other != name})
        table._encoded = {key: encoding for key, encoding in self._encoded.items() if key[0] != name}
        table.invalid_cells = self.invalid_cells
        table.n_sampled_from = self.n_sampled_from
        return table

    def replaced(self, columns: Mapping[Name, Any]) -> Table:
        """Return a table of the same rows with other columns of the same names; encodings are kept."""
        table = Table(columns)
        table._encoded = dict(self._encoded)
        table.n_sampled_from = self.n_sampled_from
        return table

    def rows(self, part: slice | np.ndarray) -> Table:
        """Return some rows, by a slice or by their numbers; encodings are kept."""
        matrix = None if self.matrix is None else self.matrix[part]
        columns = {
            name: _rows(column, part) if matrix is None or self._order[name] < 0 else matrix[:, self._order[name]]
            for name, column in self.columns.items()
        }
        table = Table(columns, matrix, first=self._first)
        table._encoded = {key: (codes[part], domain) for key, (codes, domain) in self._encoded.items()}
        table.invalid_cells = {name: cells[part] for name, cells in self.invalid_cells.items()}
        return table

    def column(self, name: Name) -> Any:
        """Return a column by its name; raise DataError if there is none."""
        if name not in self.columns:
            source = self.source_of(name)
            if source is not None:
                return self._there(name, source)
            if dates := [other for other in dates_of(name) if other in self.columns]:
                if name not in self._derived:
                    self._derived[name] = part_of(self.columns[dates[0]], name)
                return self._derived[name]
            raise DataError.unknown_column([name], self.columns)
        return self.columns[name]

    def has(self, name: Name) -> bool:
        """Return whether the table has a column, or the column from which it is derived."""
        return any(origin in self.names for origin in origins(name))

    def source_of(self, name: Name) -> Name | None:
        """Return the column of which a name is the missing-value indicator, or None."""
        return next((source for source in sources_of(name) if self.has(source)), None)

    def _there(self, name: Name, source: Name) -> np.ndarray:
        """Return the missing-value indicator of a column: 1 where its cell has a value, else 0."""
        if name not in self._derived:
            if self.kind(source) == "number":
                cells: Any = self.numbers([source])
                column = np.asarray(cells[:, 0] if isinstance(cells, np.ndarray) else cells[0])
                there = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(self.n_rows, dtype=bool)
            else:
                codes, domain = self.encoded(source)
                there = codes >= 0
                if domain.has_missing_level:  # a missing cell has a code
                    there &= codes != domain.index[None]
            self._derived[name] = there.astype(np.float64)
        return self._derived[name]

    def numbers(self, names: Sequence[Name]) -> Dense | SparseRows:
        """Return numeric columns as a block, without a copy where possible."""
        columns = [self.column(name) for name in names]
        if len(columns) == 1 and isinstance(columns[0], Texts):
            return columns[0].sparse
        if len(columns) == 1 and (isinstance(columns[0], SparseRows) or getattr(columns[0], "ndim", 1) == 2):
            block = columns[0]
            return block if isinstance(block, SparseRows) else numeric(block, names[0])
        adjacent = self._stretch(names)
        if adjacent is not None:
            return adjacent.view(np.uint8) if adjacent.dtype.kind == "b" else adjacent
        return [numeric(column, name) for column, name in zip(columns, names, strict=True)]

    def texts(self, name: Name, family: Text) -> Texts:
        """Return a string column as a text family reads it."""
        return read_texts(self.column(name), family, name)

    def _stretch(self, names: Sequence[Name]) -> np.ndarray | None:
        """Return the slice of the matrix with these columns, if they are adjacent in it; else None."""
        if self.matrix is None:
            return None
        positions = [self._order.get(name, -1) for name in names]
        first = positions[0] if positions else 0
        is_adjacent = first >= 0 and positions == list(range(first, first + len(positions)))
        return self.matrix[:, first : first + len(positions)] if is_adjacent else None

    def levels(self, names: Sequence[Name], ordered: Collection[Name] = ()) -> tuple[Codes, list[Domain]]:
        """Return categorical columns as codes, and the domain of each; the levels of `ordered` columns are sorted."""
        if self.matrix is not None and self.matrix.dtype.kind in "iu" and len(names) > 1:
            block = self._stretch(names)
            if block is not None:
                high = self._highest_codes()
                high = direct_levels(block) if high is None else high[[self._order[name] for name in names]]
                if high is not None:  # the columns of the array are codes
                    domains = [
                        Domain.of_integers(range(h + 1), str(n), is_sorted=n in ordered)
                        for h, n in zip(high, names, strict=True)
                    ]
                    return Codes(block, high + 1), domains
        encoded = [self.encoded(name, name in ordered) for name in names]
        sizes = np.array([len(domain.levels) for _, domain in encoded], dtype=np.int64)
        return Codes([codes for codes, _ in encoded], sizes), [domain for _, domain in encoded]

    def _highest_codes(self) -> np.ndarray | None:
        """Return the maximum of every column of the matrix if all columns are their own codes; else None.

        For row-major arrays, reading one column takes as long as reading all, so the result is cached.
        """
        if not self._highest:
            codes = self.matrix is not None and self.matrix.dtype.kind in "iu"
            self._highest.append(direct_levels(self.matrix) if codes and self.matrix is not None else None)
        return self._highest[0]

    def compacted(self, sets: Iterable[Sequence[Name]], ordered: Collection[Name] = ()) -> Table:
        """Return the table without unobserved levels in the encodings of columns whose joint table would be large.

        Integers are usually their own codes. A column of 18 and 65 then has 66 levels, and six such columns have 66⁶
        combinations.
        """
        large_sets = [list(members) for members in sets if len(members) > 2]
        needed = set().union(*large_sets)
        names = [name for name in self.columns if name in needed]
        domains = self.levels(names, ordered)[1] if names else []
        sizes = {name: len(domain.levels) or 1 for name, domain in zip(names, domains, strict=True)}
        large = {n for members in large_sets if math.prod(sizes[m] for m in members) > _LARGE for n in members}
        if not large:
            return self
        return self.recoded({(name, name in ordered): self.observed(name, name in ordered) for name in large})

    def observed(self, name: Name, ordered: bool = False) -> tuple[np.ndarray, Domain]:
        """Return the codes of a column in the smallest integer type, and a domain of the levels that occur only."""
        codes, domain = self.encoded(name, ordered)
        counts = count_levels(codes, len(domain.levels))
        if domain.has_missing_level:
            counts[domain.index[None]] += 1  # it is kept whether or not it occurs
        observed = np.flatnonzero(counts)
        smallest = np.min_scalar_type(-len(observed) - 1)
        if len(observed) == len(counts) and codes.dtype.kind == "i":
            return codes.astype(smallest, copy=False), domain
        new_codes = np.full(len(counts) + 1, -1, dtype=smallest)  # code −1 selects the last
        new_codes[observed] = np.arange(len(observed))
        return new_codes[codes.astype(np.intp)], domain.with_levels(domain.levels[k] for k in observed)

    def encoded(self, name: Name, ordered: bool = False) -> tuple[np.ndarray, Domain]:
        """Return the codes and the domain of a column. Computed once."""
        if isinstance(self.column(name), SparseRows | Texts):
            raise DataError.wrong_type(
                f"column {name!r}", "sparse", "categories", "Use Multinomial(), or pass an array."
            )
        if (name, ordered) not in self._encoded:
            position = self._order.get(name, -1)
            matrix = self.matrix
            high = self._highest_codes() if matrix is not None and 0 <= position < matrix.shape[1] else None
            if matrix is not None and high is not None:
                encoding = (
                    matrix[:, position],
                    Domain.of_integers(range(int(high[position]) + 1), str(name), is_sorted=ordered),
                )
            else:
                try:
                    encoding = encode(self.column(name), str(name), ordered=ordered)
                except (LabelError, TypeError) as error:
                    if not self.unread(name):
                        raise
                    nested = {other: reason for other in self.columns if (reason := self.unread(other))}
                    raise LabelError(str(DataError.nested(nested))) from error
            self._encoded[name, ordered] = encoding
        return self._encoded[name, ordered]


def open_table(data: object, names: Sequence[Name] | None = None) -> Table:
    """Return a `Table` of the data, without copies where possible.

    Parameters
    ----------
    data : array, sparse matrix, data frame, mapping, list of dicts, list of rows or list of values
    names : sequence of names, optional
        For data without column names; default 0, 1, 2, …

    Returns
    -------
    Table

    Examples
    --------
    >>> from tallybayes.data.table import open_table
    >>> open_table([{"a": 1, "b": "x"}, {"a": 2}]).columns["b"]
    ['x', None]
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, np.ndarray):
        return table_of_array(data, names)
    if not isinstance(data, Mapping):
        source = open_source(data)
        if source is not None:
            return open_table(source.read("this"), names)
    if isinstance(data, NamedMatrix):
        return Table({"x": _column(data, "x")})
    if hasattr(data, "tocsr") and hasattr(data, "nnz"):
        return Table({(names or ["x"])[0]: read_sparse(data)})
    if isinstance(data, Mapping):
        return Table({name: _column(value, name) for name, value in data.items()})
    if _is_frame(data):
        return Table(columns_of_frame(data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes) and len(data) and isinstance(data[0], Mapping):
        return _table_of_records(data)
    if hasattr(data, "to_numpy") or hasattr(data, "to_arrow"):
        return Table({(names or [0])[0]: _column(data, 0)})  # a series of a data frame, or an Arrow array
    return table_of_array(as_array(data), names)


def _table_of_records(rows: Sequence[Any]) -> Table:
    """Return a table of rows that are mappings; keys that a row does not have are missing values."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError.wrong_type(f"row {number}", repr(row)[:60], "a mapping, like the first row")
    keys = dict.fromkeys(key for row in rows for key in row)
    return Table({key: [row.get(key) for row in rows] for key in keys})


def table_of_array(array: np.ndarray, names: Sequence[Name] | None = None) -> Table:
    """Return a table of an array: one column if it has one axis, or its columns if it has two."""
    array = plain_array(array, 0)
    if array.ndim == 1:
        return Table({(names or [0])[0]: array})
    if array.ndim != 2:
        raise DataError.wrong_shape("the data", array.shape, "(rows,) or (rows, columns)")
    if names is None:
        names = range(array.shape[1])
    else:
        check_unique_names(names, "names=")
        if len(names) != array.shape[1]:
            raise DataError.wrong_shape("the data", array.shape, f"{len(names)} columns, one for every name")
    matrix = array if array.dtype.kind in "biuf" else None
    return Table({name: array[:, position] for position, name in enumerate(names)}, matrix)


def _column(value: object, name: Name) -> Any:
    """Return a column or block of a mapping in the form in which `Table` stores it."""
    value = value.matrix if isinstance(value, NamedMatrix) else value
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):
        return read_sparse(value)
    if hasattr(value, "columns") and hasattr(value, "__array__"):  # a frame as a block
        value = np.asarray(value)
    if isinstance(value, SparseRows):
        return value
    if hasattr(value, "to_numpy") or hasattr(value, "to_arrow"):  # a series of a data frame, or an Arrow array
        import narwhals as nw

        series = nw.from_native(value, pass_through=True, allow_series=True)
        return column_of_series(series) if isinstance(series, nw.Series) else value
    return as_array(value, name)


def _is_frame(data: object) -> bool:
    """Return whether the data are a data frame; raise DataError if column names are repeated."""
    if isinstance(data, list | tuple):
        return False
    import narwhals as nw

    try:
        return isinstance(nw.from_native(data, pass_through=True, eager_only=True), nw.DataFrame)
    except nw.exceptions.DuplicateError as error:
        check_unique_names(getattr(data, "column_names", getattr(data, "columns", ())), "the frame")
        raise DataError.wrong_type("the frame", "one with repeated names", "a name for every column") from error


def _rows(column: Column, part: slice | np.ndarray) -> Any:
    """Return some rows of a column or block, as a view if possible."""
    if isinstance(column, SparseRows | Texts):
        return column.rows(part)
    if hasattr(column, "iloc"):  # slices of pandas are by label
        return column.iloc[part]
    if isinstance(part, slice) or isinstance(column, np.ndarray):
        return column[part]
    if isinstance(column, list):
        return [column[row] for row in part]
    if str(getattr(column, "type", "")) == "string_view":  # `take` is not implemented for it
        column = column.cast("large_string")
    return column.take(part) if hasattr(column, "type") else column[part]


def _length(column: Column) -> int:
    """Return the number of rows of a column or block."""
    return len(column.indptr) - 1 if isinstance(column, SparseRows) else len(column)
