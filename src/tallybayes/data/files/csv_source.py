"""Files of text with one row a line: CSV, TSV and their like, packed or not."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tallybayes.data.files.arrow import known_types, united
from tallybayes.data.files.csv_chunks import TextChunk, check_utf8, row_chunks, utf8_of
from tallybayes.data.source import Source, in_order, with_location
from tallybayes.errors import DataError, short_repr
from tallybayes.warnings import DataSourceWarning, warn

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 22  # bytes that are parsed together; the types of columns are those of the first two
_DELIMITERS = (",", ";", "\t", "|")
_ROW = re.compile(r"Row #(\d+)")
_COLUMN = re.compile(r"In CSV column #(\d+)")
_NUMBER = re.compile(r"'[-+]?[\d.]+(e[-+]?\d+)?'", re.IGNORECASE)
ON_BAD = ("error", "missing", "skip")


class CsvFiles(Source):
    """Rows of text files that have the same columns, in the order of the files.

    Arrow's own reader of files larger than memory parses one block after the other. So files are cut where rows end,
    and every core parses a piece; an error in a piece knows its line.

    Parameters
    ----------
    paths : sequence of str
        Those that end in .gz, .bz2, .zst or .lz4 are unpacked as they are read.
    delimiter : str, optional
        By default what the first line has most of: a comma, a semicolon, a tab or a bar.
    names : sequence of str, optional
        For files without a line of names.
    types : mapping from name to an Arrow type, optional
        For others the first block of the first file tells.
    null_values : sequence of str, optional
        What stands for a missing cell; by default nothing at all, NA, NaN, null and their like.
    encoding : str, default "utf8"
    on_bad : {"error", "missing", "skip"}
        What becomes of a cell that is not of its column's type: an error that names the line, a missing cell, or the
        row is left out. A line with too many or too few cells is an error, or left out.
    """

    in_threads = False  # it has threads of its own

    def __init__(
        self,
        paths: Sequence[str],
        *,
        delimiter: str | None = None,
        names: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
        null_values: Sequence[str] | None = None,
        encoding: str = "utf8",
        on_bad: str = "error",
    ) -> None:
        super().__init__(paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more")
        self.paths, self.names, self.types = list(paths), names, dict(types or {})
        self.null_values, self.encoding, self.on_bad = null_values, encoding, on_bad
        self._delimiter = delimiter
        self._names: dict[str, list[str]] = {}  # the columns of every file, in its order
        self._head: tuple[pa.Table, int] | None = None  # of the first file what told the types, until it is used
        self.n_bad: dict[str, int] = {}  # cells or lines of every file that were none, while it was read last

    @cached_property
    def delimiter(self) -> str:
        """What parts the cells of a line."""
        if self._delimiter is not None:
            return self._delimiter
        text = next(utf8_of(self.paths[0], 1 << 16, 1 << 16, self.encoding), b"")
        line = re.split(b"[\r\n]", text, maxsplit=1)[0].decode("latin-1")
        outside = re.sub(r'"[^"]*"', "", line)
        return max(_DELIMITERS, key=lambda mark: (outside.count(mark), -_DELIMITERS.index(mark)))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types: those of the first block, unless they are said."""
        return united({path: self._first_schema(path) for path in self.paths})

    def _first_schema(self, path: str) -> pa.Schema:
        import pyarrow as pa

        piece = next(self._pieces(path), None)
        if piece is None:
            raise DataError(f"{path} is empty; expected a line of names, or names=[...] and rows.")
        # Every column of every block is a task of its own, which costs more than its cells where rows are long.
        threads = piece.data.find(b"\n") < _BLOCK // 1024
        try:
            table, n_bad = self._parsed(path, piece, self.types, threads=threads)
        except pa.ArrowInvalid:  # somewhere
            try:
                table, n_bad = self._parsed(path, piece, self.types)
            except pa.ArrowInvalid as error:
                raise self._told(path, piece, error) from None
        try:
            schema, names = table.schema, table.schema.names
        except UnicodeDecodeError:
            check_utf8(path, piece, self.encoding)
            raise
        if any(pa.types.is_binary(field.type) for field in schema):
            check_utf8(path, piece, self.encoding)
        schema = known_types(schema)
        known = set(names)
        if len(known) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{path} has two columns {twice!r}; expected a name for every column.")
        absent = [name for name in self.types if name not in known]
        if absent:
            raise DataError.unknown_column(absent, names)
        self._names[path] = names
        if path == self.paths[0]:
            self._head = table.cast(schema), n_bad
        return schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        self.n_bad = {}
        self.check_columns(columns or ())
        for path in self.paths:
            for table, n_bad, line in in_order(partial(self._read, path, columns), self._pieces(path)):
                if n_bad:
                    self.n_bad[path] = self.n_bad.get(path, 0) + n_bad
                if len(table):
                    yield from with_location([table], path, "line", line)
        for path, number in self.n_bad.items():
            what = "taken for missing" if self.on_bad == "missing" else "left out"
            kind = "bad cells" if self.on_bad == "missing" else "bad lines"
            warn(f"{path}: {number} {kind if number > 1 else kind[:-1]} {what}.", DataSourceWarning)

    def _pieces(self, path: str) -> Iterator[TextChunk]:
        # To begin a column takes as long as to parse some hundred cells: a piece has about 1 KB of each.
        size = max(_BLOCK, _BLOCK // 4096 * len(self._names.get(path, ())))
        return row_chunks(path, 2 * _BLOCK, size, delimiter=self.delimiter, encoding=self.encoding)

    def _read(self, path: str, columns: Sequence[str] | None, piece: TextChunk) -> tuple[pa.Table, int, int]:
        """The rows of a piece, how many cells or lines of it were none, and the line of the first row."""
        import pyarrow as pa

        kinds = {name: self.schema.field(name).type for name in (self.schema.names if columns is None else columns)}
        fast = {name: _fast(kind) for name, kind in kinds.items()}
        is_head = piece.line == 1
        line = piece.line + (is_head and not self.names)
        if is_head and self._head is not None and path == self.paths[0]:
            (table, n_bad), self._head = self._head, None
            if table.schema.equals(self.schema):
                return table.select(list(kinds)).cast(pa.schema(list(fast.items()))), n_bad, line
        try:
            return *self._parsed(path, piece, fast, list(kinds)), line
        except pa.ArrowInvalid as error:
            if _COLUMN.search(str(error)) is None or self.on_bad == "error":
                raise self._told(path, piece, error) from None
        try:
            table, n_bad = self._parsed(path, piece, dict.fromkeys(kinds, pa.string()), list(kinds))
        except pa.ArrowInvalid as error:
            raise self._told(path, piece, error) from None
        table, n_cells = _converted(table, kinds, self.on_bad)
        return table, n_bad + n_cells, line

    def _parsed(
        self,
        path: str,
        piece: TextChunk,
        types: Mapping[str, Any],
        columns: list[str] | None = None,
        *,
        threads: bool = False,
    ) -> tuple[pa.Table, int]:
        """The rows of a piece, and how many lines of it were left out. With threads no error knows its line."""
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        nulls: dict[str, Any] = {} if self.null_values is None else {"null_values": list(self.null_values)}
        left_out = []

        def leave_out(row: Any) -> str:
            left_out.append(row.number)
            return "skip"

        if self.on_bad != "error":
            check_utf8(path, piece, self.encoding)  # Arrow decodes the rows that it hands over to be left out
        table = arrow_csv.read_csv(
            pa.BufferReader(piece.data),
            read_options=arrow_csv.ReadOptions(
                block_size=_BLOCK // 8 if threads else len(piece.data) + 1,
                column_names=self.names if piece.line == 1 else self._names[path],
                use_threads=threads,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                invalid_row_handler=None if self.on_bad == "error" else leave_out,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict(types), include_columns=columns, strings_can_be_null=True, **nulls
            ),
        )
        return table, len(left_out)

    def _told(self, path: str, piece: TextChunk, error: Exception) -> DataError:
        """What is wrong with a piece of a file, with the line."""
        try:
            check_utf8(path, piece, self.encoding)
        except DataError as not_text:
            return not_text
        text = str(error)
        row, column = _ROW.search(text), _COLUMN.search(text)
        where = f"{path}, line {piece.line + int(row.group(1)) - 1}" if row else path
        said = text.rsplit("CSV parse error: ", 1)[-1].rsplit("CSV conversion error to ", 1)[-1]
        if column is None:
            said = re.sub(r"^Row #\d+: ", "", said)
            return DataError(f"{where}: {short_repr(said)}.\n    Pass on_bad='skip' to leave such lines out.")
        names = self._names.get(path, self.names) or next(
            csv.reader([piece.data.splitlines()[0].decode()], delimiter=self.delimiter)
        )
        name = names[int(column.group(1))] if int(column.group(1)) < len(names) else column.group(1)
        kind, _, value = said.partition(": invalid value ")
        wider = "float64" if kind.startswith(("int", "uint")) and _NUMBER.fullmatch(value) else "string"
        return DataError(
            f"{where}, column {name!r}: found {value or said}; expected {kind}, the type of the rows before.\n"
            f"    Set the type: tb.table(..., types={{{name!r}: {wider!r}}}); or pass on_bad='missing' or 'skip'."
        )


def _fast(kind: pa.DataType) -> pa.DataType:
    """Labels are made codes where they are parsed."""
    import pyarrow as pa

    return pa.dictionary(pa.int32(), pa.string()) if pa.types.is_string(kind) else kind


def _converted(table: pa.Table, kinds: Mapping[str, pa.DataType], on_bad: str) -> tuple[pa.Table, int]:
    """Text as the types of its columns, cell by cell where there are some that are not; and how many, or lines."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrays, bad, n_bad = [], None, 0
    for name in table.schema.names:
        column = table.column(name).combine_chunks()
        try:
            arrays.append(column.cast(_fast(kinds[name])))
        except pa.ArrowInvalid:
            known = column.dictionary_encode()
            made = pa.array([_one(value, kinds[name]) for value in known.dictionary.to_pylist()], kinds[name])
            arrays.append(made.take(known.indices))
            wrong = pc.and_(pc.is_null(arrays[-1]), pc.is_valid(column))
            n_bad += pc.sum(wrong).as_py() if on_bad == "missing" else 0
            bad = wrong if bad is None else pc.or_(bad, wrong)
    table = pa.Table.from_arrays(arrays, names=table.schema.names)
    if bad is not None and on_bad == "skip":
        return table.filter(pc.invert(bad)), pc.sum(bad).as_py()
    return table, n_bad


def _one(value: str, kind: Any) -> Any:
    """One cell as its column's type, or None."""
    import pyarrow as pa

    try:
        return pa.scalar(value, pa.string()).cast(kind).as_py()
    except pa.ArrowInvalid:
        return None
