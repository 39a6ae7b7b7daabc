"""Files with one JSON object a line, packed or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tallybayes.errors import DataError, brief
from tallybayes.sources.source import Source, in_batches, placed

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 24


class JsonFiles(Source):
    """Rows of files of JSON lines; a key that a line does not have is a missing cell.

    Parameters
    ----------
    paths : sequence of str
    types : mapping from name to an Arrow type, optional
        For others the first block of every file tells; whole numbers are read as numbers that need not be.
    """

    def __init__(self, paths: Sequence[str], *, types: Mapping[str, Any] | None = None) -> None:
        super().__init__(paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more")
        self.paths, self.types = list(paths), dict(types or {})

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of all files, and their types."""
        import pyarrow as pa

        found = []
        for path in self.paths:
            with self._open(path, None) as reader:
                found.append(reader.schema)
        try:
            schema = pa.unify_schemas(found, promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise DataError(
                f"a column of {self.name} is not of one type in all files: {brief(str(error))}.\n"
                "    Say which: tb.table(files, types={...: 'string'})."
            ) from None
        for name, kind in self.types.items():
            place = schema.get_field_index(name)
            if place < 0:
                raise DataError.unknown_column([name], schema.names)
            schema = schema.set(place, pa.field(name, kind))
        for place, field in enumerate(schema):
            if pa.types.is_null(field.type):
                schema = schema.set(place, pa.field(field.name, pa.string()))
        return schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        import pyarrow as pa

        if columns is not None:
            self.check_columns(columns)
        for path in self.paths:
            try:
                with self._open(path, self.schema) as reader:
                    for table in placed(in_batches(reader), path, "line", 1):
                        yield table if columns is None else table.select(list(columns))
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"{path}: {brief(str(error))}.\n    Say what a column is: tb.table(..., types={{...: 'float64'}})."
                ) from None

    def _open(self, path: str, schema: Any) -> Any:
        import pyarrow as pa
        import pyarrow.json as json

        rest = "infer" if schema is None else "ignore"
        options = {
            "read_options": json.ReadOptions(block_size=_BLOCK),
            "parse_options": json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior=rest
            ),
        }
        try:
            stream = pa.input_stream(path, compression="detect")
            if hasattr(json, "open_json"):
                return json.open_json(stream, **options)
            return json.read_json(stream, **options).to_reader()  # an Arrow from before reads a file whole
        except pa.ArrowInvalid as error:
            if "Empty JSON" in str(error):
                raise DataError(f"{path} is empty; expected one JSON object a line.") from None
            raise DataError(f"{path}: {brief(str(error))}.") from None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
