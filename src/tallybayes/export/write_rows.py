"""tb.write_rows: write rows to a file or a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.export.row_writers import Output, database_of, writing_rows
from tallybayes.typing import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from tallybayes.data.source import Source
    from tallybayes.data.sql.dialects import Dialect
    from tallybayes.tally.factor import Name
    from tallybayes.typing import Column


def write_rows(data: Rows, to: Output, *, format: str | None = None) -> int:
    """Write rows to a file or a table of a database; after an error nothing is written.

    For rows that a model has sampled, or the rows of another source. Files and databases are read in batches.


    Parameters
    ----------
    data : a data frame, mapping of columns, list of dicts, path, or any other source
    to, format
        As for `write_predictions`: a path, an open file, or (connection, name of a table).

    Returns
    -------
    int
        The number of rows written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import tallybayes as tb
    >>> path = Path(mkdtemp()) / "days.csv"
    >>> tb.write_rows({"sky": ["sun", None], "degrees": [21, 12]}, path)
    2
    >>> print(path.read_text())
    "sky","degrees"
    "sun",21
    ,12
    <BLANKLINE>
    """
    import pyarrow as pa

    source = open_source(data)
    if source is None:
        table = open_table(data)
        rows = pa.table({str(name): column_to_write(data, name, table) for name in table.columns})
        with writing_rows(to, rows.schema, format) as write:
            write(rows)
        return len(rows)
    source, names, schema = source_to_write(source, source.schema.names, database_of(to))
    n_rows = 0
    batches: Any = source.read_ahead(names)
    with writing_rows(to, schema, format) as write, closing(batches):
        for batch in batches:
            write(pa.table([plain_column(column) for column in batch.columns], names=schema.names).cast(schema))
            n_rows += len(batch)
    return n_rows


def source_to_write(source: Source, columns: Sequence[Name], to: Dialect | None) -> tuple[Source, list[str], pa.Schema]:
    """Return a source with columns to be written unchanged, their names in it, and their names and types in the output.

    Parameters
    ----------
    source : Source
    columns : sequence of names
    to : Dialect, optional
        Of the database to which they are written.
    """
    import pyarrow as pa

    for name in columns:
        plain_type(source.schema.field(str(name)).type)  # raises an error if it cannot be written
    source, names, schema = source.keeping(columns, to)
    return source, names, pa.schema([field.with_type(plain_type(field.type)) for field in schema])


def column_to_write(data: object, name: Name, table: Table) -> Any:
    """Return a column of data in memory as an Arrow array, with its original type."""
    return plain_column(arrow_column(original_column(data, name, table)))


def original_column(data: object, name: Name, table: Table) -> Any:
    """Return a column of data in memory with its original type; a `Table` has decimals as doubles, for example."""
    import narwhals as nw

    column = table.column(name)
    frame = nw.from_native(data, pass_through=True, eager_only=True)
    values = frame[name] if isinstance(frame, nw.DataFrame) else data.get(name) if isinstance(data, Mapping) else None
    series = nw.from_native(values, pass_through=True, series_only=True)
    if not isinstance(series, nw.Series) or getattr(column, "ndim", 1) != 1:
        return column
    try:
        return series.to_arrow()
    except (ValueError, TypeError, OverflowError, NotImplementedError):  # objects without a common Arrow type
        return series.to_numpy()


def arrow_column(column: Column) -> Any:
    """Convert a column to an Arrow array."""
    import pyarrow as pa

    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if getattr(column, "ndim", 1) != 1 or hasattr(column, "nnz"):
        raise DataError.wrong_type("a column to be written", "a block of columns", "a column of one axis")
    for kind in (None, pa.uint64()):
        try:
            return pa.array(column, kind, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            continue
    return pa.array([None if cell is None else str(cell) for cell in column])


def plain_column(column: pa.Array) -> Any:
    """Return a column without dictionary encoding, since every batch may have its own dictionary."""
    kind = plain_type(column.type)
    return column if kind == column.type else column.cast(kind)


def plain_type(kind: pa.DataType) -> Any:
    """Return the value type of a dictionary type, and the string type for columns without values."""
    import pyarrow as pa

    if pa.types.is_union(kind):
        raise DataError.wrong_type(
            "a column to be written", f"a {kind}", "one type", "Convert it: CAST(column AS TEXT)."
        )
    return kind.value_type if pa.types.is_dictionary(kind) else pa.string() if pa.types.is_null(kind) else kind
