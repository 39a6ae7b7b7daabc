"""JSON lines: text files with one JSON object per line, also compressed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.dates import type_of_times
from tallybayes.data.files.arrow import check_same_type, known_types
from tallybayes.data.files.csv_chunks import TextChunk, check_utf8, row_chunks
from tallybayes.data.source import Files, in_order, with_location
from tallybayes.errors import DataError, short_repr

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 22  # bytes of a chunk; types of columns are inferred from the first four blocks
_MOST_NESTED = 64  # levels of lists and objects, as Arrow allows in its own files
_ROW = re.compile(r"\.? in row (\d+)$")
_CHANGED = re.compile(r"Column\(/([^/)]+).*\) changed from (\w+) to (\w+)$")
_UNREAD = re.compile(r"Failed to convert JSON to .*, couldn't parse:(.*)$", re.DOTALL)
_NULL_FIRST = re.compile(rb"[ \t\r\n]*null")
_OBJECTS = re.compile(rb"(?:(?:\{.*\})?\r?\n)*(?:\{.*\})?")  # one in every line
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"?')  # strings end with their line
_CHANGES = np.zeros(256, np.int32)  # of the nesting depth
_CHANGES[list(b"[{")] = 1
_CHANGES[list(b"]}")] = -1


class JsonFiles(Files):
    """Rows of JSON lines files; keys that a line does not have are missing values.

    Parameters
    ----------
    paths : sequence of str
    types : mapping from name to an Arrow type, optional
        Types of other columns are inferred from the first block of every file.
    """

    in_threads = False  # it uses threads itself

    def __init__(self, paths: Sequence[str], *, types: Mapping[str, Any] | None = None) -> None:
        super().__init__(paths, types)
        self._all_keys = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of all files and their types."""
        import pyarrow as pa

        schemas = []
        is_complete = True
        for path in self.paths:
            chunks = list(islice(self._chunks(path), 2))
            if not chunks:
                raise DataError(f"{path} is empty; expected one JSON object per line.")
            reject_array(path, chunks[0].data)
            table = self._parsed(path, None, chunks[0])
            kinds = {name: self.types.get(name) or type_of_times(table.column(name)) for name in table.schema.names}
            schemas.append(pa.schema(list(kinds.items())))
            is_complete &= len(chunks) == 1
        try:
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowTypeError:
            first: dict[str, tuple[str, pa.DataType]] = {}
            for path, file_schema in zip(self.paths, schemas, strict=True):
                for field in file_schema:
                    check_same_type(field.name, *first.setdefault(field.name, (path, field.type)), path, field.type)
            raise
        fields = {field.name: field for field in schema}
        for name, kind in self.types.items():
            if name not in fields and is_complete:
                raise DataError.unknown_column([name], schema.names)
            fields[name] = pa.field(name, kind)
        schema = pa.schema(fields.values())
        return known_types(schema)

    def first_batch(self) -> pa.Table:
        """Return the first batch, from which column types are determined; new keys in later rows then raise DataError.

        The first batch is usually read to choose families, and columns that appear later would be ignored.
        """
        self._all_keys = True
        return super().first_batch()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        import pyarrow as pa

        self.check_columns(columns or ())
        wanted = self.schema.names if columns is None else list(columns)
        parsed = self._with_known_keys
        schema = self.schema
        if columns is not None and not self._all_keys:  # the types of other columns do not matter
            parsed = self._parsed
            schema = pa.schema([schema.field(name) for name in wanted])
        for path in self.paths:
            for table in in_order(partial(parsed, path, schema), self._chunks(path)):
                yield table.select(wanted)

    def _chunks(self, path: str) -> Iterator[TextChunk]:
        """Yield the file in chunks of whole lines."""
        chunks = row_chunks(path, 4 * _BLOCK, _BLOCK, delimiter=None)
        return (chunk for chunk in chunks if not chunk.data.isspace())

    def _with_known_keys(self, path: str, schema: pa.Schema, chunk: TextChunk) -> pa.Table:
        """Return the rows of a chunk; raise DataError if a key is not in the schema."""
        table = self._parsed(path, schema, chunk, new="infer")
        known_keys = set(schema.names)
        new_key = next((name for name in table.schema.names if name not in known_keys), None)
        if new_key is not None:
            present = table.column(new_key).is_valid().to_pylist()
            where = f"{path}, line {_line_of(chunk, present.index(True))}" if True in present else path
            raise DataError(
                f"{where}: found the key {new_key!r}, which the first rows do not have.\n"
                f"    Pass its type, tb.table(path, types={{{new_key!r}: 'float64'}}), or select columns=[...]."
            )
        is_equal = table.schema.equals(schema)
        return table if is_equal else self._parsed(path, schema, chunk)  # nested objects have new keys

    def _parsed(self, path: str, schema: pa.Schema | None, chunk: TextChunk, new: str = "ignore") -> pa.Table:
        """Return the rows of a chunk with their location; `new` is Arrow's option for keys outside the schema."""
        import pyarrow as pa

        check_utf8(path, chunk, "utf8")
        check_nesting(path, chunk)
        null = _NULL_FIRST.match(chunk.data)
        if null:  # Arrow reads null as a row without values, but ends the process if it is the first row
            chunk = TextChunk(chunk.data[: null.end() - 4] + b"{}" + chunk.data[null.end() :], chunk.line)
        try:
            table = _parse(chunk.data, schema, "infer" if schema is None else new)
        except pa.ArrowInvalid as error:
            raise _bad_row(path, schema, chunk, str(error).rsplit("JSON parse error: ", 1)[-1]) from None
        return next(with_location([table], path, "line", chunk.line))


def _parse(data: bytes, schema: pa.Schema | None, new: str = "ignore") -> pa.Table:
    """Parse JSON lines with Arrow."""
    import pyarrow as pa
    import pyarrow.json as json

    options = json.ParseOptions(explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior=new)
    read = json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    return json.read_json(pa.BufferReader(data), read_options=read, parse_options=options)


def _bad_row(path: str, schema: pa.Schema | None, chunk: TextChunk, message: str) -> DataError:
    """Return the error for rows that Arrow cannot parse, with line, column and value as far as they are known."""
    row = _ROW.search(message)
    line = None if row is None else _line_of(chunk, int(row.group(1)))
    where = path if line is None else f"{path}, line {line}"
    message = _ROW.sub("", message)
    changed = _CHANGED.match(message)
    unread = _UNREAD.match(message)
    if changed:
        name, before, value = changed.groups()
        kind = before if schema is None or name not in schema.names else schema.field(name).type
        value_text = f"a {value}"
        hint = "Write values of one type in all lines"
        hint += "." if schema is None else ", or select other columns: tb.table(..., columns=[...])."
    elif unread and schema is not None and (cell := _unread_cell(schema, chunk)) is not None:
        name, line = cell
        where = f"{path}, line {line}"
        kind = schema.field(name).type
        value_text = short_repr(unread.group(1))
        wider = "float64" if str(kind).startswith(("int", "uint")) else "string"
        hint = f"Set the type: tb.table(..., types={{{name!r}: {wider!r}}})."
    else:
        return DataError(
            f"{where}: {short_repr(message)}.\n"
            "    Expected one JSON object per line. Set the type of a column: tb.table(..., types={...: 'float64'})."
        )
    return DataError(
        f"{where}, column {name!r}: found {value_text}; expected {kind}, the type of the rows before.\n    {hint}"
    )


def _unread_cell(schema: pa.Schema, chunk: TextChunk) -> tuple[str, int] | None:
    """Return the first column with a value of another type, and the first line with one; Arrow reports neither."""
    import pyarrow as pa

    lines = chunk.data.split(b"\n")

    def fails(data: bytes, field: pa.Field) -> bool:
        try:
            _parse(data, pa.schema([field]))
        except pa.ArrowInvalid:
            return True
        return False

    for field in schema:
        if fails(chunk.data, field):
            return field.name, chunk.line + next(
                n for n, line in enumerate(lines) if line.strip() and fails(line, field)
            )
    return None


def reject_array(name: str, text: bytes) -> None:
    """Raise DataError if a file begins as one JSON array of all rows."""
    if text.lstrip()[:1] == b"[":
        raise DataError(
            f"{name} is one JSON array; expected JSON lines, one object per line, or CSV.\n"
            "    Convert it with jq -c '.[]'."
        )


def check_nesting(path: str, chunk: TextChunk) -> None:
    """Raise DataError if lists and objects are nested too deep for Arrow, which would end the process.

    Most chunks are decided line by line: a line that begins and ends as an object closes all brackets, or is invalid.
    """
    is_flat = all(
        len(line) < 2 * _MOST_NESTED or line.count(b"{") + line.count(b"[") <= _MOST_NESTED
        for line in chunk.data.split(b"\n")
    )
    if is_flat and _OBJECTS.fullmatch(chunk.data):
        return
    data = _STRING.sub(b"", chunk.data)
    depth = np.cumsum(_CHANGES[np.frombuffer(data, np.uint8)])
    depth -= np.minimum.accumulate(np.minimum(depth, 0))
    too_deep = np.flatnonzero(depth > _MOST_NESTED)
    if len(too_deep):
        line = chunk.line + data.count(b"\n", 0, int(too_deep[0]))
        raise DataError(
            f"{path}, line {line}: lists and objects are nested more than {_MOST_NESTED} deep; expected fewer levels.\n"
            "    Store parts of nested values in separate columns."
        )


def _line_of(chunk: TextChunk, row: int) -> int:
    """Return the line number of a row; blank lines are not rows."""
    filled = [number for number, line in enumerate(chunk.data.split(b"\n")) if line.strip()]
    return chunk.line + (filled[row] if row < len(filled) else 0)
