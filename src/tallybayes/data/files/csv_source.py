"""Text files with one row per line: CSV and TSV, also compressed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tallybayes.data.files.arrow import known_types, united
from tallybayes.data.files.csv_chunks import TextChunk, check_utf8, row_chunks, utf8_of
from tallybayes.data.named_matrix import check_unique_names
from tallybayes.data.source import Files, in_order, with_location
from tallybayes.errors import DataError, short_repr
from tallybayes.warnings import DataSourceWarning, warn

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

_BLOCK = 1 << 22  # bytes of a chunk; types of columns are inferred from the first two blocks
_DELIMITERS = (",", ";", "\t", "|")
_ROW = re.compile(r"Row #(\d+)")
_COLUMN = re.compile(r"In CSV column #(\d+)")
_EVIDENT = {"int64": re.compile(r"-?\d{1,18}"), "float64": re.compile(r"-?\d+\.\d+")}  # Arrow infers no other type
_NUMBER = re.compile(r"'[-+]?[\d.]+(e[-+]?\d+)?'", re.IGNORECASE)
ON_BAD = ("error", "missing", "skip")


class CsvFiles(Files):
    """Rows of text files with the same columns, in the order of the files.

    Arrow's streaming reader parses one block after the other. Here files are split at the ends of rows, and the chunks
    are parsed in parallel. Error messages contain the line.

    Parameters
    ----------
    paths : sequence of str
        Files that end in .gz, .bz2, .zst or .lz4 are decompressed during reading.
    delimiter : str, optional
        Default: the most frequent of comma, semicolon, tab and bar in the first line.
    names : sequence of str, optional
        The column names of files without a header line.
    types : mapping from name to an Arrow type, optional
        Types of other columns are inferred from the first block of the first file.
    null_values : sequence of str, optional
        Strings that represent a missing value; default the empty string, NA, NaN, null and similar ones.
    encoding : str, default "utf8"
    on_bad : {"error", "missing", "skip"}
        What to do with a cell that is not of its column's type: raise an error that names the line, treat it as
        missing, or skip its row. A line with too many or too few cells is an error, or is skipped.
    """

    in_threads = False  # it uses threads itself

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
        super().__init__(paths, types)
        self.names = names
        self.null_values = null_values
        self.encoding = encoding
        self.on_bad = on_bad
        self._delimiter = delimiter
        self._names: dict[str, list[str]] = {}  # the columns of every file, in its order
        self._head: tuple[pa.Table, int] | None = None  # first chunk, from which types were inferred, until it is read
        self.n_bad: dict[str, int] = {}  # by file, invalid cells or lines in the last read

    @cached_property
    def delimiter(self) -> str:
        """The delimiter of the cells in a line."""
        if self._delimiter is not None:
            return self._delimiter
        text = next(utf8_of(self.paths[0], 1 << 16, 1 << 16, self.encoding), b"")
        line = re.split(b"[\r\n]", text, maxsplit=1)[0].decode("latin-1")
        unquoted = re.sub(r'"[^"]*"', "", line)
        return max(_DELIMITERS, key=lambda candidate: (unquoted.count(candidate), -_DELIMITERS.index(candidate)))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types, as passed or inferred from the first block."""
        return united({path: self._first_schema(path) for path in self.paths})

    def _first_schema(self, path: str) -> pa.Schema:
        """Return the columns and types of one file, from its first chunk."""
        chunk = next(self._chunks(path), None)
        if chunk is None:
            raise DataError(f"{path} is empty; expected a header line, or names=[...] and rows.")
        check_utf8(path, chunk, self.encoding)
        # Every column of every block is one task. Its overhead exceeds the cost of its cells if rows are long.
        threads = chunk.data.find(b"\n") < _BLOCK // 1024
        types = self.types if threads else self._evident_types(chunk) | self.types
        try:
            table, n_bad = self._parsed(path, chunk, types, threads=threads)
        except DataError:  # without the line, or of the types of the first row
            table, n_bad = self._parsed(path, chunk, self.types)
        names = table.schema.names
        check_unique_names(names, path)
        unknown = [name for name in self.types if name not in names]
        if unknown:
            raise DataError.unknown_column(unknown, names)
        self._names[path] = names
        schema = known_types(table.schema)
        if path == self.paths[0]:
            self._head = table.cast(schema), n_bad
        return schema

    def _evident_types(self, chunk: TextChunk) -> dict[str, pa.DataType]:
        """Return the types of columns with a number in the first row. Arrow would try four other types before."""
        import pyarrow as pa

        lines = [chunk.data[start:end].removesuffix(b"\r").decode() for start, end in _first_lines(chunk.data)]
        header, row = (line.split(self.delimiter) for line in lines)
        if self.names:
            header, row = list(self.names), header
        if len(header) != len(row) or any('"' in line for line in lines):
            return {}
        nulls = frozenset(self.null_values or ())
        return {
            name: pa.type_for_alias(kind)
            for name, cell in zip(header, row, strict=True)
            for kind, pattern in _EVIDENT.items()
            if pattern.fullmatch(cell) and cell not in nulls
        }

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        self.n_bad = {}
        self.check_columns(columns or ())
        for path in self.paths:
            for table, n_bad, line in in_order(partial(self._read, path, columns), self._chunks(path)):
                if n_bad:
                    self.n_bad[path] = self.n_bad.get(path, 0) + n_bad
                if len(table):
                    yield from with_location([table], path, "line", line)
        for path, number in self.n_bad.items():
            action = "treated as missing" if self.on_bad == "missing" else "skipped"
            kind = "bad cells" if self.on_bad == "missing" else "bad lines"
            warn(
                f"{path}: {number} {kind if number > 1 else kind[:-1]} {action}.\n"
                "    Pass on_bad='error' to raise an error at the first one.",
                DataSourceWarning,
            )

    def _chunks(self, path: str) -> Iterator[TextChunk]:
        # The overhead of a column is that of some hundred cells, so a chunk has about 1 kB of every column.
        """Yield the file in chunks of whole rows."""
        size = max(_BLOCK, _BLOCK // 4096 * len(self._names.get(path, ())))
        return row_chunks(path, 2 * _BLOCK, size, delimiter=self.delimiter, encoding=self.encoding)

    def _read(self, path: str, columns: Sequence[str] | None, chunk: TextChunk) -> tuple[pa.Table, int, int]:
        """Return the rows of a chunk, its number of invalid cells or lines, and the line of its first row."""
        import pyarrow as pa

        kinds = {name: self.schema.field(name).type for name in (self.schema.names if columns is None else columns)}
        parsed_types = {name: _fast(kind) for name, kind in kinds.items()}
        is_head = chunk.line == 1
        line = chunk.line + (is_head and not self.names)
        if is_head and self._head is not None and path == self.paths[0]:
            table, n_bad = self._head
            self._head = None
            if table.schema.equals(self.schema):
                return table.select(list(kinds)).cast(pa.schema(list(parsed_types.items()))), n_bad, line
        try:
            return *self._parsed(path, chunk, parsed_types, list(kinds)), line
        except _BadCellError:
            if self.on_bad == "error":
                raise
        table, n_bad = self._parsed(path, chunk, dict.fromkeys(kinds, pa.string()), list(kinds))
        table, n_cells = _converted(table, kinds, self.on_bad)
        return table, n_bad + n_cells, line

    def _parsed(
        self,
        path: str,
        chunk: TextChunk,
        types: Mapping[str, Any],
        columns: list[str] | None = None,
        *,
        threads: bool = False,
    ) -> tuple[pa.Table, int]:
        """Return the rows of a chunk and the number of skipped lines. With threads, errors do not contain the line."""
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        nulls: dict[str, Any] = {} if self.null_values is None else {"null_values": list(self.null_values)}
        skipped = []

        def skip(row: arrow_csv.InvalidRow) -> str:
            skipped.append(row.number)
            return "skip"

        if self.on_bad != "error":
            check_utf8(path, chunk, self.encoding)  # Arrow decodes skipped rows
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(chunk.data),
                read_options=arrow_csv.ReadOptions(
                    block_size=_BLOCK // 8 if threads else len(chunk.data) + 1,
                    column_names=self.names if chunk.line == 1 else self._names[path],
                    use_threads=threads,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=None if self.on_bad == "error" else skip,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict(types), include_columns=columns, strings_can_be_null=True, **nulls
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._parse_error(path, chunk, error) from None
        return table, len(skipped)

    def _parse_error(self, path: str, chunk: TextChunk, error: Exception) -> DataError:
        """Return the error for a chunk that cannot be parsed, with the line."""
        try:
            check_utf8(path, chunk, self.encoding)
        except DataError as encoding_error:
            return encoding_error
        text = str(error)
        row = _ROW.search(text)
        column = _COLUMN.search(text)
        where = f"{path}, line {chunk.line + int(row.group(1)) - 1}" if row else path
        message = text.rsplit("CSV parse error: ", 1)[-1].rsplit("CSV conversion error to ", 1)[-1]
        if column is None:
            message = re.sub(r"^Row #\d+: ", "", message)
            return DataError(f"{where}: {short_repr(message)}.\n    Pass on_bad='skip' to skip such lines.")
        names = self._names.get(path, self.names) or next(
            csv.reader([chunk.data.splitlines()[0].decode()], delimiter=self.delimiter)
        )
        name = names[int(column.group(1))] if int(column.group(1)) < len(names) else column.group(1)
        kind, _, value = message.partition(": invalid value ")
        wider = "float64" if kind.startswith(("int", "uint")) and _NUMBER.fullmatch(value) else "string"
        return _BadCellError(
            f"{where}, column {name!r}: found {value or message}; expected {kind}, the type of the rows before.\n"
            f"    Set the type: tb.table(..., types={{{name!r}: {wider!r}}}); or pass on_bad='missing' or 'skip'."
        )


def _first_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of the first two lines."""
    start = 0
    for _ in range(2):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield start, end
        start = end + 1


class _BadCellError(DataError):
    """A cell is not of the type of its column."""


def _fast(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column is parsed: strings as dictionaries."""
    import pyarrow as pa

    return pa.dictionary(pa.int32(), pa.string()) if pa.types.is_string(kind) else kind


def _converted(table: pa.Table, kinds: Mapping[str, pa.DataType], on_bad: str) -> tuple[pa.Table, int]:
    """Return a table of strings converted to the types of its columns, and the number of invalid cells or lines."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrays = []
    is_bad = None
    n_bad = 0
    for name in table.schema.names:
        column = table.column(name).combine_chunks()
        try:
            arrays.append(column.cast(_fast(kinds[name])))
        except pa.ArrowInvalid:
            encoded = column.dictionary_encode()
            converted = pa.array([_one(value, kinds[name]) for value in encoded.dictionary.to_pylist()], kinds[name])
            arrays.append(converted.take(encoded.indices))
            is_invalid = pc.and_(pc.is_null(arrays[-1]), pc.is_valid(column))
            n_bad += pc.sum(is_invalid).as_py() if on_bad == "missing" else 0
            is_bad = is_invalid if is_bad is None else pc.or_(is_bad, is_invalid)
    table = pa.Table.from_arrays(arrays, names=table.schema.names)
    if is_bad is not None and on_bad == "skip":
        return table.filter(pc.invert(is_bad)), pc.sum(is_bad).as_py()
    return table, n_bad


def _one(value: str, kind: pa.DataType) -> Any:
    """Convert one cell; return None if it is invalid."""
    import pyarrow as pa

    try:
        return pa.scalar(value, pa.string()).cast(kind).as_py()
    except pa.ArrowInvalid:
        return None
