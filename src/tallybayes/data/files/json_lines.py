"""Files with one JSON object a line, packed or not."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.dates import type_of_times
from tallybayes.data.files.arrow import check_same_type, known_types
from tallybayes.data.files.csv_chunks import TextChunk, check_utf8, row_chunks
from tallybayes.data.source import Source, in_order, with_location
from tallybayes.errors import DataError, short_repr

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 22  # bytes that are parsed together; the types of columns are those of the first four
_MOST_NESTED = 64  # levels of lists and objects, as Arrow allows in its own files
_ROW = re.compile(r"\.? in row (\d+)$")
_CHANGED = re.compile(r"Column\(/([^/)]+).*\) changed from (\w+) to (\w+)$")
_UNREAD = re.compile(r"Failed to convert JSON to .*, couldn't parse:(.*)$", re.DOTALL)
_NULL_FIRST = re.compile(rb"[ \t\r\n]*null")
_KINDS = np.zeros(256, np.int8)  # of the characters that structure is made of
_KINDS[list(b"[{")], _KINDS[list(b"]}")], _KINDS[ord('"')], _KINDS[ord("\n")] = 1, -1, 2, 3


class JsonFiles(Source):
    """Rows of files of JSON lines; a key that a line does not have is a missing cell.

    Parameters
    ----------
    paths : sequence of str
    types : mapping from name to an Arrow type, optional
        For others the first block of every file tells; whole numbers are read as numbers that need not be.
    """

    in_threads = False  # it has threads of its own

    def __init__(self, paths: Sequence[str], *, types: Mapping[str, Any] | None = None) -> None:
        super().__init__(paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more")
        self.paths, self.types, self._all_keys = list(paths), dict(types or {}), False

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of all files, and their types."""
        import pyarrow as pa

        found, is_whole = [], True
        for path in self.paths:
            pieces = list(islice(self._pieces(path), 2))
            if not pieces:
                raise DataError(f"{path} is empty; expected one JSON object a line.")
            reject_array(path, pieces[0].data)
            table = self._parsed(path, None, pieces[0])
            kinds = {name: self.types.get(name) or type_of_times(table.column(name)) for name in table.schema.names}
            found.append(pa.schema(list(kinds.items())))
            is_whole &= len(pieces) == 1
        try:
            schema = pa.unify_schemas(found, promote_options="permissive")
        except pa.ArrowTypeError:
            first: dict[str, tuple[str, pa.DataType]] = {}
            for path, one in zip(self.paths, found, strict=True):
                for field in one:
                    check_same_type(field.name, *first.setdefault(field.name, (path, field.type)), path, field.type)
            raise
        fields = {field.name: field for field in schema}
        for name, kind in self.types.items():
            if name not in fields and is_whole:
                raise DataError.unknown_column([name], schema.names)
            fields[name] = pa.field(name, kind)
        schema = pa.schema(fields.values())
        return known_types(schema)

    def first_batch(self) -> pa.Table:
        """The first batch, which decides what there is to count: later keys that it does not have are an error."""
        self._all_keys = True
        return super().first_batch()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        import pyarrow as pa

        self.check_columns(columns or ())
        wanted = self.schema.names if columns is None else list(columns)
        parsed, schema = self._with_known_keys, self.schema
        if columns is not None and not self._all_keys:  # other columns may be of any type
            parsed, schema = self._parsed, pa.schema([schema.field(name) for name in wanted])
        for path in self.paths:
            for table in in_order(partial(parsed, path, schema), self._pieces(path)):
                yield table.select(wanted)

    def _pieces(self, path: str) -> Iterator[TextChunk]:
        pieces = row_chunks(path, 4 * _BLOCK, _BLOCK, delimiter=None)
        return (piece for piece in pieces if not piece.data.isspace())

    def _with_known_keys(self, path: str, schema: pa.Schema, piece: TextChunk) -> pa.Table:
        """The rows of a piece, whose keys are all in the schema."""
        table = self._parsed(path, schema, piece, new="infer")
        known = set(schema.names)
        late = next((name for name in table.schema.names if name not in known), None)
        if late is not None:
            present = table.column(late).is_valid().to_pylist()
            where = f"{path}, line {_line_of(piece, present.index(True))}" if True in present else path
            raise DataError(
                f"{where}: found the key {late!r}, which the first rows do not have.\n"
                f"    Read it with tb.table(path, types={{{late!r}: 'float64'}}), or name others: columns=[...]."
            )
        same = table.schema.equals(schema)
        return table if same else self._parsed(path, schema, piece)  # records have more keys inside

    def _parsed(self, path: str, schema: pa.Schema | None, piece: TextChunk, new: str = "ignore") -> pa.Table:
        """The rows of a piece, and their lines; `new` says how keys are treated that the schema does not have."""
        import pyarrow as pa

        check_utf8(path, piece, "utf8")
        check_nesting(path, piece)
        null = _NULL_FIRST.match(piece.data)
        if null:  # Arrow reads null as a row without values, but ends the process if it is the first row
            piece = piece._replace(data=piece.data[: null.end() - 4] + b"{}" + piece.data[null.end() :])
        try:
            table = _parse(piece.data, schema, "infer" if schema is None else new)
        except pa.ArrowInvalid as error:
            raise _bad_row(path, schema, piece, str(error).rsplit("JSON parse error: ", 1)[-1]) from None
        return next(with_location([table], path, "line", piece.line))


def _parse(data: bytes, schema: pa.Schema | None, new: str = "ignore") -> pa.Table:
    import pyarrow as pa
    import pyarrow.json as json

    options = json.ParseOptions(explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior=new)
    read = json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    return json.read_json(pa.BufferReader(data), read_options=read, parse_options=options)


def _bad_row(path: str, schema: pa.Schema | None, piece: TextChunk, said: str) -> DataError:
    """The error for rows that Arrow cannot parse: the line, the column and the value, as far as they are known."""
    row = _ROW.search(said)
    line = None if row is None else _line_of(piece, int(row.group(1)))
    where, said = path if line is None else f"{path}, line {line}", _ROW.sub("", said)
    changed, unread = _CHANGED.match(said), _UNREAD.match(said)
    if changed:
        name, before, value = changed.groups()
        kind = before if schema is None or name not in schema.names else schema.field(name).type
        found, hint = f"a {value}", "Write values of one type in all lines"
        hint += "." if schema is None else ", or leave the column out: tb.table(..., columns=[...])."
    elif unread and schema is not None and (cell := _unread_cell(schema, piece)) is not None:
        name, line = cell
        where, kind, found = f"{path}, line {line}", schema.field(name).type, short_repr(unread.group(1))
        wider = "float64" if str(kind).startswith(("int", "uint")) else "string"
        hint = f"Set the type: tb.table(..., types={{{name!r}: {wider!r}}})."
    else:
        return DataError(
            f"{where}: {short_repr(said)}.\n"
            "    Expected one JSON object a line. Set the type of a column: tb.table(..., types={...: 'float64'})."
        )
    return DataError(
        f"{where}, column {name!r}: found {found}; expected {kind}, the type of the rows before.\n    {hint}"
    )


def _unread_cell(schema: pa.Schema, piece: TextChunk) -> tuple[str, int] | None:
    """The first column with a value that is not of its type, and the first line of one: Arrow names neither."""
    import pyarrow as pa

    lines = piece.data.split(b"\n")

    def fails(n_lines: int, field: pa.Field) -> bool:
        try:
            _parse(b"\n".join(lines[:n_lines]), pa.schema([field]))
        except pa.ArrowInvalid:
            return True
        return False

    field = next((field for field in schema if fails(len(lines), field)), None)
    if field is None:
        return None
    return field.name, piece.line + bisect_left(range(1, len(lines)), True, key=lambda n: fails(n, field))


def reject_array(name: str, text: bytes) -> None:
    """Raise DataError for a file that is one array of all rows, by its first bytes."""
    if text.lstrip()[:1] == b"[":
        raise DataError(
            f"{name} is one JSON array; expected JSON lines, one object a line, or CSV.\n"
            "    jq -c '.[]' makes lines of it."
        )


def check_nesting(path: str, piece: TextChunk) -> None:
    """Raise DataError where lists and objects are nested too deep for Arrow, which would end the process.

    Most pieces are settled by their lines: one that begins and ends as an object ends all that it opens, or is invalid.
    """
    cells = np.frombuffer(piece.data, np.uint8)
    ends = np.append(np.flatnonzero(cells == ord("\n")), len(cells))
    opened = np.flatnonzero((cells | 0x20) == ord("{"))  # [ and { differ by this bit
    starts, lasts = np.append(0, ends[:-1] + 1), ends - 1
    filled = lasts >= starts
    plain = (cells[starts[filled]] == ord("{")) & (cells[lasts[filled]] == ord("}"))
    if plain.all() and np.diff(np.searchsorted(opened, ends), prepend=0).max(initial=0) <= _MOST_NESTED:
        return
    data = piece.data.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    kinds = _KINDS[np.frombuffer(data, np.uint8)]
    places = np.flatnonzero(kinds)
    kinds = kinds[places]
    quotes = np.cumsum(kinds == 2)
    quotes -= np.maximum.accumulate(np.where(kinds == 3, quotes, 0))  # a string ends with its line, if not before
    depth = np.cumsum(np.where((kinds >= 2) | (quotes % 2 == 1), 0, kinds))
    depth -= np.minimum.accumulate(np.minimum(depth, 0))
    deep = np.flatnonzero(depth > _MOST_NESTED)
    if len(deep):
        line = piece.line + data.count(b"\n", 0, int(places[deep[0]]))
        raise DataError(
            f"{path}, line {line}: lists and objects are nested more than {_MOST_NESTED} deep; expected fewer levels.\n"
            "    Give the parts of nested values columns of their own."
        )


def _line_of(piece: TextChunk, row: int) -> int:
    """The line of a row: blank lines are none."""
    filled = [number for number, line in enumerate(piece.data.split(b"\n")) if line.strip()]
    return piece.line + (filled[row] if row < len(filled) else 0)
