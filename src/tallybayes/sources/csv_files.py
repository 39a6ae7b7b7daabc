"""Files of text with one row a line: CSV, TSV and their like, packed or not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tallybayes.cautions import RowsWarning, warn
from tallybayes.errors import DataError, brief
from tallybayes.sources.arrow_files import united
from tallybayes.sources.source import Source, in_batches, placed

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 24  # bytes that are parsed together; the types of columns are those of the first
_DELIMITERS = (",", ";", "\t", "|")
_ROW = re.compile(r"Row #(\d+)")
_COLUMN = re.compile(r"In CSV column #(\d+)")
_NUMBER = re.compile(r"'[-+]?[\d.]+(e[-+]?\d+)?'", re.IGNORECASE)
ON_BAD = ("error", "missing", "skip")


class CsvFiles(Source):
    """Rows of text files that have the same columns, in the order of the files.

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
        self.n_bad: dict[str, int] = {}  # cells or lines of every file that were none, while it was read last

    @cached_property
    def delimiter(self) -> str:
        """What parts the cells of a line."""
        if self._delimiter is not None:
            return self._delimiter
        import pyarrow as pa

        with pa.input_stream(self.paths[0], compression="detect") as stream:
            line = stream.read(1 << 16).split(b"\n", 1)[0].decode("latin-1")
        outside = re.sub(r'"[^"]*"', "", line)
        return max(_DELIMITERS, key=lambda mark: (outside.count(mark), -_DELIMITERS.index(mark)))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types: those of the first block, unless they are said."""
        return united({path: self._first_schema(path) for path in self.paths})

    def _first_schema(self, path: str) -> pa.Schema:
        import pyarrow as pa

        with self._open(path, self.types) as reader:
            schema = reader.schema
        for place, field in enumerate(schema):
            if pa.types.is_binary(field.type):
                raise DataError(
                    f"column {field.name!r} of {path} is no text in {self.encoding}.\n"
                    "    Say how it is written: tb.table(path, encoding='latin-1')."
                )
            if pa.types.is_null(field.type):  # nothing to tell by
                schema = schema.set(place, pa.field(field.name, pa.string()))
        if field_twice := next((name for name in schema.names if schema.names.count(name) > 1), None):
            raise DataError(f"{path} has two columns {field_twice!r}; expected a name for every column.")
        absent = [name for name in self.types if name not in schema.names]
        if absent:
            raise DataError.unknown_column(absent, schema.names)
        return schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        self.n_bad = {}
        for path in self.paths:
            yield from placed(in_batches(self._file(path, columns)), path, "line", 1 if self.names else 2)
        for path, number in self.n_bad.items():
            what = "taken for missing" if self.on_bad == "missing" else "left out"
            kind = "bad cells" if self.on_bad == "missing" else "bad lines"
            warn(f"{path}: {number} {kind if number > 1 else kind[:-1]} {what}.", RowsWarning)

    def _file(self, path: str, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        import pyarrow as pa

        types = {field.name: self._fast(field.type) for field in self.schema}
        n_read = 0
        try:
            with self._open(path, types, columns) as reader:
                for batch in reader:
                    n_read += len(batch)
                    yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid as error:
            if _COLUMN.search(str(error)) is None or self.on_bad == "error":
                raise self._told(path, types, columns, error) from None
            yield from self._carefully(path, columns, n_read)

    def _fast(self, kind: pa.DataType) -> pa.DataType:
        """Labels are made codes where they are parsed."""
        import pyarrow as pa

        return pa.dictionary(pa.int32(), pa.string()) if pa.types.is_string(kind) else kind

    def _open(
        self, path: str, types: Mapping[str, Any], columns: Sequence[str] | None = None, *, threads: bool = True
    ) -> Any:
        import pyarrow as pa
        import pyarrow.csv as csv

        nulls: dict[str, Any] = {} if self.null_values is None else {"null_values": list(self.null_values)}

        def leave_out(row: Any) -> str:
            if self.on_bad == "error":
                return "error"
            self.n_bad[path] = self.n_bad.get(path, 0) + 1
            return "skip"

        try:
            return csv.open_csv(
                path,
                read_options=csv.ReadOptions(
                    block_size=_BLOCK, column_names=self.names, encoding=self.encoding, use_threads=threads
                ),
                parse_options=csv.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=leave_out
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict(types),
                    include_columns=None if columns is None else list(columns),
                    strings_can_be_null=True,
                    **nulls,
                ),
            )
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                raise DataError(f"{path} is empty; expected a line of names, or names=[...] and rows.") from None
            raise self._told(path, types, columns, error, again=threads) from None
        except pa.ArrowKeyError:
            raise DataError.unknown_column(
                [name for name in columns or () if name not in self.schema.names], self.schema.names
            ) from None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error}.") from error

    def _told(
        self, path: str, types: Mapping[str, Any], columns: Any, error: Exception, *, again: bool = True
    ) -> DataError:
        """What is wrong with a file, with the line: one thread that reads it again knows which."""
        import pyarrow as pa

        if again and _ROW.search(str(error)) is None:
            try:
                with self._open(path, types, columns, threads=False) as reader:
                    for _ in reader:
                        pass
            except DataError as known:
                return known
            except pa.ArrowInvalid as found:
                error = found
        text = str(error)
        line, column = _ROW.search(text), _COLUMN.search(text)
        where = f"{path}, line {line.group(1)}" if line else path
        said = text.rsplit("CSV parse error: ", 1)[-1].rsplit("CSV conversion error to ", 1)[-1]
        if column is None:
            said = re.sub(r"^Row #\d+: ", "", said)
            return DataError(f"{where}: {brief(said)}.\n    Pass on_bad='skip' to leave such lines out.")
        names = list(columns) if columns is not None else self.schema.names
        name = names[int(column.group(1))] if int(column.group(1)) < len(names) else column.group(1)
        kind, _, value = said.partition(": invalid value ")
        other = "float64" if _NUMBER.fullmatch(value) else "string"
        return DataError(
            f"{where}, column {name!r}: {value or said} is no {kind}, as which the column began.\n"
            f"    Say what it is: tb.table(..., types={{{name!r}: {other!r}}}); or pass on_bad='missing' or 'skip'."
        )

    def _carefully(self, path: str, columns: Sequence[str] | None, n_read: int) -> Iterator[pa.Table]:
        """The rows after those that were read, cell by cell where a column has some that are not of its type."""
        import pyarrow as pa

        kinds = {f.name: f.type for f in self.schema if columns is None or f.name in columns}
        before = self.n_bad.pop(path, 0)  # lines that are left out are met again
        with self._open(path, dict.fromkeys(self.schema.names, pa.string()), columns) as reader:
            for batch in reader:
                part = batch.slice(min(n_read, len(batch)))
                n_read -= len(batch) - len(part)
                if len(part):
                    yield self._converted(part, kinds, path)
        self.n_bad[path] = max(self.n_bad.get(path, 0), before)

    def _converted(self, batch: Any, kinds: Mapping[str, pa.DataType], path: str) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        arrays, bad = [], None
        for name in batch.schema.names:
            column = batch.column(name)
            try:
                arrays.append(column.cast(self._fast(kinds[name])))
            except pa.ArrowInvalid:
                known = column.dictionary_encode()
                made = pa.array([_one(value, kinds[name]) for value in known.dictionary.to_pylist()], kinds[name])
                arrays.append(made.take(known.indices))
                wrong = pc.and_(pc.is_null(arrays[-1]), pc.is_valid(column))
                self.n_bad[path] = self.n_bad.get(path, 0) + (pc.sum(wrong).as_py() if self.on_bad == "missing" else 0)
                bad = wrong if bad is None else pc.or_(bad, wrong)
        table = pa.Table.from_arrays(arrays, names=batch.schema.names)
        if bad is not None and self.on_bad == "skip":
            self.n_bad[path] = self.n_bad.get(path, 0) + pc.sum(bad).as_py()
            table = table.filter(pc.invert(bad))
        return table


def _one(value: str, kind: Any) -> Any:
    """One cell as its column's type, or None."""
    import pyarrow as pa

    try:
        return pa.scalar(value, pa.string()).cast(kind).as_py()
    except pa.ArrowInvalid:
        return None
