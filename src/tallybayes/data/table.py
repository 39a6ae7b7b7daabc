"""Table: rows in memory, as named columns and blocks of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from tallybayes.data.array_input import as_array, read_sparse
from tallybayes.data.data_frames import column_of_series, columns_of_frame
from tallybayes.data.dates import dates_of, origins, part_of, parts_of_type, type_of_objects
from tallybayes.data.encoding import count_levels, direct_levels, encode, is_interval, is_missing
from tallybayes.data.missing_indicators import sources_of
from tallybayes.data.named_matrix import NamedMatrix, check_unique_names
from tallybayes.data.numeric_columns import is_number, numeric
from tallybayes.data.open_source import open_source
from tallybayes.data.source import reading
from tallybayes.data.sql.sql_types import NESTED, unread_type
from tallybayes.data.text_columns import Texts, read_texts
from tallybayes.errors import DataError, LabelError, short_repr
from tallybayes.families._shared.blocks import Codes, Dense, SparseRows
from tallybayes.families.text import Text
from tallybayes.messages import conversion_hint
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

_FLOATS = ("float", "double", "halffloat", "decimal")
_NESTED = (list, tuple, dict, set, np.ndarray)
_READ = "biufUM"  # kinds of NumPy's types that are numbers, labels or dates
_CELLS = (str, Real, np.bool_, Decimal)  # objects that are numbers or labels
_LARGE = 4096  # cells of a table that are worth finding out which labels occur


def _is_all_null(column: Any) -> bool:
    """Return whether no cell of an Arrow column has a value."""
    n_null = getattr(column, "null_count", None)
    return isinstance(n_null, int) and n_null == len(column) > 0


class Table:
    """Rows in memory: an array, a sparse matrix, a data frame, a list, or a mapping of columns and blocks.

    Parameters
    ----------
    columns : mapping from name to a column (one axis) or a block (an array of two axes, or `SparseRows`)
    matrix : ndarray of shape (n, columns), optional
        Where the columns from `first` on are those of one array: the array itself, so that blocks need no copy.
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
        self._rows_of_levels: dict[tuple[Name, bool], np.ndarray] = {}
        self._highest: list[np.ndarray | None] = []  # of the matrix, once it is asked for
        self._derived: dict[Name, Any] = {}  # whether cells are there, and parts of dates
        self.invalid_cells: dict[Name, np.ndarray] = {}  # cells that are missing here, but not absent, by column
        self.file_location: tuple[str, str, int] | None = (
            None  # of a part of a file: its name, "line" or "row", and the first
        )
        self.n_sampled_from: int | None = None  # of how many rows these are a random sample, if they are
        self.cache: dict[Any, Any] = {}  # what families made of its columns, kept for whoever asks again

    @property
    def names(self) -> KeysView[Name]:
        """What the columns are called."""
        return self.columns.keys()

    def kind(self, name: Name) -> str:
        """What a column's type says, whatever its values: "number", "label", "date", "sparse" or "text"."""
        column = self.columns.get(name)
        if type(column) is np.ndarray and column.dtype.kind in "iuf":
            return "number"
        found = self._type(name)
        if found in ("sparse", "text"):
            return found
        if found.startswith(("int", "uint", *_FLOATS)):
            return "number"
        return "date" if parts_of_type(found) else "label"

    def is_float(self, name: Name) -> bool:
        """Whether a column's type is that of numbers that need not be whole."""
        return self._type(name).startswith(_FLOATS)

    def _type(self, name: Name) -> str:
        """The type of a column, in Arrow's words."""
        column = self._column(name)
        if isinstance(column, SparseRows | Texts):
            return "sparse" if isinstance(column, SparseRows) else "text"
        if isinstance(column, np.ndarray) and column.dtype.kind != "O":
            return str(column.dtype)
        arrow = getattr(column, "type", None)
        if arrow is None and isinstance(column, np.ndarray | list):
            import pyarrow as pa

            try:
                arrow = type_of_objects(np.ravel(column)) or pa.infer_type(np.ravel(column), from_pandas=True)
            except (ValueError, TypeError):  # objects of which Arrow knows nothing
                return "object"
        return str(arrow)

    def unread(self, name: Name) -> str:
        """Why the cells of a column are neither numbers nor labels, as its type or first cells show; else empty."""
        column: Any = self.columns.get(name)
        if type(column) is np.ndarray and (column.dtype.kind in _READ or column.ndim != 1):
            return ""
        if isinstance(column, np.ndarray) and column.dtype.kind != "O":
            if column.dtype.kind in _READ or (column.dtype.kind == "m" and np.isnat(column).all()):
                return ""
            return f"its type is {column.dtype.type.__name__.rstrip('_')}"
        categories: Any = getattr(getattr(column, "cat", None), "categories", None)  # pandas'
        if categories is None and not isinstance(column, np.ndarray | list):
            return "" if _is_all_null(column) else unread_type(getattr(column, "type", None))
        cells: Any = column[:_LARGE] if categories is None else categories[:1]
        first = next((cell for cell in cells if not is_missing(cell)), None)
        is_date = categories is None and isinstance(first, date | np.datetime64)
        if first is None or is_date or isinstance(first, _CELLS) or is_interval(first):
            return ""
        return NESTED if isinstance(first, _NESTED) else f"its type is {type(first).__name__}"

    def check_not_nested(self, names: Iterable[Name]) -> None:
        """Raise DataError, which lists them, if some columns are neither numbers nor labels."""
        nested = {name: reason for name in names if (reason := self.unread(name))}
        if nested:
            raise DataError.nested(nested)

    def require_numbers(self, names: Iterable[Name]) -> None:
        """Refuse columns of labels, for a model that is of numbers alone."""
        names = list(names)
        self.check_not_nested(names)
        for name in names:
            if self.kind(name) == "text":
                hint = "tb.NaiveBayes(tb.Text()) counts its words."
                raise DataError.wrong_type(f"column {name!r}", "a column of text", "numbers", hint)
            if self.kind(name) in ("label", "date"):
                column = self._column(name)
                cells = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
                value = next((value for value in cells if not is_missing(value)), None)
                if value is None:  # a column that no row shows may be of numbers
                    continue
                cast = "Take them for numbers with column.astype(float); " if is_number(value) else ""
                hint = conversion_hint(value) or f"{cast}tb.NaiveBayes takes columns of both kinds."
                if dates_of(name):
                    hint = f"Leave {dates_of(name)[0]!r} out, or use a model that reads dates, such as tb.NaiveBayes."
                found = f"a column of labels, such as {short_repr(value)}"
                raise DataError.wrong_type(f"column {name!r}", found, "numbers", hint)

    def is_block(self, name: Name) -> bool:
        """Whether a name stands for several columns."""
        column = self._column(name)
        return isinstance(column, SparseRows | Texts) or getattr(column, "ndim", 1) == 2

    def width(self, name: Name) -> int:
        """How many columns a name stands for."""
        column = self._column(name)
        column = column.sparse if isinstance(column, Texts) and column.is_bound else column
        if isinstance(column, SparseRows):
            return column.n_columns
        return int(column.shape[1]) if getattr(column, "ndim", 1) == 2 else 1

    def with_column(self, name: Name, values: Any) -> Table:
        """The same rows with one more column, first; it takes the place of one that is called the same."""
        if name in self.columns:
            return self.without(name).with_column(name, values)
        table = Table({name: values, **self.columns}, self.matrix, first=self._first + 1)
        table._encoded = {key: found for key, found in self._encoded.items() if key[0] != name}
        table._highest, table.invalid_cells, table.n_sampled_from = (
            self._highest,
            self.invalid_cells,
            self.n_sampled_from,
        )
        return table

    def with_codes(self, name: Name, codes: np.ndarray, domain: Domain) -> Table:
        """The same rows with one more column of labels, encoded already."""
        table = self.with_column(name, codes)
        table._encoded[name, True] = table._encoded[name, False] = codes, domain
        return table

    def recoded(self, found: Mapping[tuple[Name, bool], tuple[np.ndarray, Domain]]) -> Table:
        """The same rows, where some columns of labels are encoded otherwise: by name, and whether levels are sorted."""
        table = Table(self.columns)  # without its matrix, which is not to be taken for their codes
        table._encoded = {**self._encoded, **found}
        table.invalid_cells, table.file_location, table.cache = self.invalid_cells, self.file_location, self.cache
        return table

    def without(self, name: Name) -> Table:
        """The same rows without one column."""
        table = Table({other: column for other, column in self.columns.items() if other != name})
        table._encoded = {key: found for key, found in self._encoded.items() if key[0] != name}
        table.invalid_cells, table.n_sampled_from = self.invalid_cells, self.n_sampled_from
        return table

    def replaced(self, columns: Mapping[Name, Any]) -> Table:
        """The same rows with other columns, of the same names; labels that were encoded stay so."""
        table = Table(columns)
        table._encoded, table.n_sampled_from = dict(self._encoded), self.n_sampled_from
        return table

    def rows(self, part: slice | np.ndarray) -> Table:
        """Some of the rows, a stretch of them or by their numbers; labels that were encoded stay so."""
        matrix = None if self.matrix is None else self.matrix[part]
        columns = {
            name: _rows(column, part) if matrix is None or self._order[name] < 0 else matrix[:, self._order[name]]
            for name, column in self.columns.items()
        }
        table = Table(columns, matrix, first=self._first)
        table._encoded = {key: (codes[part], domain) for key, (codes, domain) in self._encoded.items()}
        table.invalid_cells = {name: cells[part] for name, cells in self.invalid_cells.items()}
        return table

    def _column(self, name: Name) -> Any:
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
        """Whether a column is there, or the one whose presence the name stands for."""
        return any(origin in self.names for origin in origins(name))

    def source_of(self, name: Name) -> Name | None:
        """The column whose presence another name stands for, or None."""
        return next((source for source in sources_of(name) if self.has(source)), None)

    def _there(self, name: Name, source: Name) -> np.ndarray:
        """Whether every cell of a column is there: 1 or 0."""
        if name not in self._derived:
            if self.kind(source) == "number":
                cells: Any = self.numbers([source])
                column = np.asarray(cells[:, 0] if isinstance(cells, np.ndarray) else cells[0])
                there = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(self.n_rows, dtype=bool)
            else:
                codes, domain = self._encode(source, False)
                there = codes >= 0
                if domain.has_missing_level:  # a missing cell has a code, too
                    there &= codes != domain.index[None]
            self._derived[name] = there.astype(np.float64)
        return self._derived[name]

    def numbers(self, names: Sequence[Name]) -> Dense | SparseRows:
        """A block of numeric columns, without a copy where the data allow it."""
        found = [self._column(name) for name in names]
        if len(found) == 1 and isinstance(found[0], Texts):
            return found[0].sparse
        if len(found) == 1 and (isinstance(found[0], SparseRows) or getattr(found[0], "ndim", 1) == 2):
            block = found[0]
            return block if isinstance(block, SparseRows) else numeric(block, names[0])
        stretch = self._stretch(names)
        if stretch is not None:
            return numeric(stretch, names[0] if names else 0)
        return [numeric(column, name) for column, name in zip(found, names, strict=True)]

    def texts(self, name: Name, family: Text) -> Texts:
        """A column of strings, as a family of text reads it."""
        return read_texts(self._column(name), family, name)

    def _stretch(self, names: Sequence[Name]) -> np.ndarray | None:
        """The part of the array that is these columns, where they lie side by side in one."""
        if self.matrix is None:
            return None
        positions = [self._order.get(name, -1) for name in names]
        first = positions[0] if positions else 0
        found = first >= 0 and positions == list(range(first, first + len(positions)))
        return self.matrix[:, first : first + len(positions)] if found else None

    def levels(self, names: Sequence[Name], ordered: Callable[[Name], bool]) -> tuple[Codes, list[Domain]]:
        """Columns of labels as codes, and the domain of each."""
        if self.matrix is not None and self.matrix.dtype.kind in "iu" and len(names) > 1:
            block = self._stretch(names)
            if block is not None:
                high = self._highest_codes()
                high = direct_levels(block) if high is None else high[[self._order[name] for name in names]]
                if high is not None:  # the array's columns are codes already: count them where they lie
                    found = [
                        Domain(range(h + 1), str(n), is_sorted=ordered(n)) for h, n in zip(high, names, strict=True)
                    ]
                    return Codes(block, high + 1), found
        encoded = [self._encode(name, ordered(name)) for name in names]
        sizes = np.array([len(domain.levels) for _, domain in encoded], dtype=np.int64)
        return Codes([codes for codes, _ in encoded], sizes), [domain for _, domain in encoded]

    def _highest_codes(self) -> np.ndarray | None:
        """The largest number of every column of the matrix where all are their own codes, else None; asked once.

        The columns of rows that lie in one piece take as long one by one as all of them together.
        """
        if not self._highest:
            codes = self.matrix is not None and self.matrix.dtype.kind in "iu"
            self._highest.append(direct_levels(self.matrix) if codes and self.matrix is not None else None)
        return self._highest[0]

    def rows_of_levels(self, name: Name, *, ordered: bool) -> np.ndarray:
        """How many rows have each level of a column of labels; the others lack it. Counted once."""
        if (name, ordered) not in self._rows_of_levels:
            codes, domain = self._encode(name, ordered)
            self._rows_of_levels[name, ordered] = count_levels(codes, len(domain.levels))
        return self._rows_of_levels[name, ordered]

    def compacted(self, sets: Iterable[Sequence[Name]], ordered: Callable[[Name], bool]) -> Table:
        """The same rows, labels encoded without those that do not occur where a table of a whole set would be large.

        Whole numbers are mostly their own codes, so that 18 and 65 have 64 places; six such columns would have 64⁶.
        """
        wanted = [list(members) for members in sets if len(members) > 2]
        needed = set().union(*wanted)
        names = [name for name in self.columns if name in needed]
        domains = self.levels(names, ordered)[1] if names else []
        sizes = {name: len(domain.levels) or 1 for name, domain in zip(names, domains, strict=True)}
        large = {n for members in wanted if math.prod(sizes[m] for m in members) > _LARGE for n in members}
        if not large:
            return self
        found = {}
        for name in large:
            codes, domain = self._encode(name, ordered(name))
            counts = count_levels(codes, len(domain.levels))
            if domain.has_missing_level:
                counts[domain.index[None]] += 1  # it is there whether or not a row has it
            seen = np.flatnonzero(counts)
            where = np.full(len(counts) + 1, -1, dtype=np.int32)  # code −1 finds the last
            where[seen] = np.arange(len(seen))
            kept = domain.with_levels(domain.levels[k] for k in seen)
            found[name, ordered(name)] = where[codes.astype(np.intp)], kept
        return self.recoded(found)

    def _encode(self, name: Name, ordered: bool) -> tuple[np.ndarray, Domain]:
        """Codes of one column, made once however many factors need them."""
        if isinstance(self._column(name), SparseRows | Texts):
            raise DataError.wrong_type(f"column {name!r}", "sparse", "labels", "Use Multinomial(), or pass an array.")
        if (name, ordered) not in self._encoded:
            place, matrix = self._order.get(name, -1), self.matrix
            high = self._highest_codes() if matrix is not None and 0 <= place < matrix.shape[1] else None
            if matrix is not None and high is not None:
                found = matrix[:, place], Domain(range(int(high[place]) + 1), str(name), is_sorted=ordered)
            else:
                try:
                    with reading(f"column {name!r}"):
                        found = encode(self._column(name), str(name), ordered=ordered)
                except (LabelError, TypeError) as error:
                    if not self.unread(name):
                        raise
                    nested = {other: reason for other in self.columns if (reason := self.unread(other))}
                    raise LabelError(str(DataError.nested(nested))) from error
            self._encoded[name, ordered] = found
        return self._encoded[name, ordered]


def open_table(data: Any, names: Sequence[Name] | None = None) -> Table:
    """A `Table` over what the user has: nothing is copied that need not be.

    Parameters
    ----------
    data : array, sparse matrix, data frame, mapping, list of dicts, list of rows or list of values
    names : sequence of names, optional
        For data without column names; by default 0, 1, 2, …

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
    if not isinstance(data, np.ndarray | Mapping):
        source = open_source(data)
        if source is not None:
            return open_table(source.read("this"), names)
    if isinstance(data, NamedMatrix):
        return Table({"x": _column(data, "x")})
    if hasattr(data, "tocsr") and hasattr(data, "nnz"):
        return Table({(names or ["x"])[0]: read_sparse(data)})
    if isinstance(data, Mapping):
        return Table({name: _column(value, name) for name, value in data.items()})
    if not isinstance(data, np.ndarray) and _is_frame(data):
        return Table(columns_of_frame(data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes) and len(data) and isinstance(data[0], Mapping):
        return _table_of_records(data)
    if not isinstance(data, np.ndarray) and (hasattr(data, "to_numpy") or hasattr(data, "to_arrow")):
        return Table({(names or [0])[0]: _column(data, 0)})  # a series of a data frame, or an Arrow array
    return _table_of_array(as_array(data), names)


def _table_of_records(rows: Sequence[Any]) -> Table:
    """A table of rows that are mappings; a key that a row lacks is a missing cell."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError.wrong_type(f"row {number}", repr(row)[:60], "a mapping, like the first row")
    keys = dict.fromkeys(key for row in rows for key in row)
    return Table({key: [row.get(key) for row in rows] for key in keys})


def _table_of_array(array: np.ndarray, names: Sequence[Name] | None) -> Table:
    """A table of an array: one column of one axis, or the columns of two."""
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


def _column(value: Any, name: Name) -> Any:
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


def _is_frame(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return False
    import narwhals as nw

    try:
        return isinstance(nw.from_native(data, pass_through=True, eager_only=True), nw.DataFrame)
    except nw.exceptions.DuplicateError as error:
        check_unique_names(getattr(data, "column_names", data.columns), "the frame")
        raise DataError.wrong_type("the frame", "one with repeated names", "a name for every column") from error


def _rows(column: Any, part: slice | np.ndarray) -> Any:
    """Some rows of a column or block: a view of them where there can be one."""
    if isinstance(column, SparseRows | Texts):
        return column.rows(part)
    if hasattr(column, "iloc"):  # pandas' own slices go by label
        return column.iloc[part]
    if isinstance(part, slice) or isinstance(column, np.ndarray):
        return column[part]
    if isinstance(column, list):
        return [column[row] for row in part]
    if str(getattr(column, "type", "")) == "string_view":  # of which Arrow takes no rows yet
        column = column.cast("large_string")
    return column.take(part) if hasattr(column, "type") else column[part]


def _length(column: Any) -> int:
    """Return the number of rows of a column or block."""
    return len(column.indptr) - 1 if isinstance(column, SparseRows) else len(column)
