"""Opening of data sources: paths, queries, lazy frames and iterators."""

from __future__ import annotations

import glob
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

from tallybayes._utils.parameter_checks import StringOptions, read_list
from tallybayes.data.batch_source import Batches, View, lazy_frame
from tallybayes.data.files.arrow import ArrowFiles
from tallybayes.data.files.csv_source import ON_BAD, CsvFiles
from tallybayes.data.files.json_lines import JsonFiles
from tallybayes.data.files.spooled import is_stream, spool
from tallybayes.data.source import Source, reading
from tallybayes.data.sql.databases import Relation, dialect_of
from tallybayes.data.sql.dialects import Dialect
from tallybayes.errors import DataError, short_repr

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyarrow.compute import Expression
    from pyspark.sql import DataFrame, SparkSession

_PACKED = (".gz", ".zst", ".bz2", ".lz4")
_KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".arrows": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_CONNECT = {  # the start of the address of a database: the function that connects to it
    "postgres": "psycopg.connect",
    "sqlite:": "sqlite3.connect",
    "duckdb:": "duckdb.connect",
}


def open_source(data: object) -> Source | None:
    """Return the source that some data are or refer to; None for data in memory. No library is imported."""
    if isinstance(data, Source):
        return data
    if isinstance(data, Mapping):  # of columns
        return None
    if _is_file(data):
        return _open_files([data], {})
    if dialect_of(data) is not None:
        raise DataError.wrong_type(
            "the data", "a connection to a database", "a table of it", "Pass tb.table(connection, 'name or query')."
        )
    return _open_library_object(data) or _open_batches(data)


def _open_library_object(data: object) -> Source | None:
    """Return the source of a lazy or Spark frame, a relation, a reader or a dataset; None for other objects."""
    kind = type(data)
    library = kind.__module__.partition(".")[0]
    if library == "polars" and kind.__name__ == "LazyFrame":
        return lazy_frame(cast("pl.LazyFrame", data))
    if library in ("duckdb", "_duckdb") and kind.__name__ == "DuckDBPyRelation":
        return _open_query(Relation(data), Relation.NAME)
    if library == "pyspark" and kind.__name__ == "DataFrame" and hasattr(data, "mapInArrow"):
        from tallybayes.data.sql.spark import SparkFrame

        return SparkFrame(cast("DataFrame", data))
    if library == "pyarrow" and hasattr(data, "read_next_batch"):
        return Batches(lambda: _translated(cast("pa.RecordBatchReader", data), "the reader"), "the reader", once=True)
    if library == "pyarrow" and hasattr(data, "to_batches") and hasattr(data, "get_fragments"):
        return Batches(lambda: _translated(data.to_batches(), "the dataset"), "the dataset")
    return None


def _open_batches(data: object) -> Source | None:
    """Return the source of an iterator, a list of paths or frames, an iterable or a function of batches; else None."""
    if isinstance(data, Iterator):
        return Batches(lambda: data, "the iterator", once=True)
    if isinstance(data, list | tuple):
        if _are_paths(data):
            return _open_files(data, {})
        are_frames = bool(data) and all(hasattr(type(part), "columns") for part in data)
        return Batches(lambda: iter(data), "the list of frames") if are_frames else None
    if hasattr(data, "__len__") or hasattr(data, "__array__"):
        return None
    if isinstance(data, Iterable):
        return Batches(lambda: iter(data), "the batches")  # such as Ray's iter_batches
    if callable(data) and not isinstance(data, type):
        return Batches(lambda: iter(data()), "the batches")
    return None


def _are_paths(values: Sequence[Any]) -> bool:
    """Return whether a list contains paths, not texts.

    It does if it has `Path` objects, or only file names with known endings of which one exists.
    """
    if any(isinstance(value, os.PathLike) for value in values[:1]):
        return all(isinstance(value, str | os.PathLike) for value in values)
    have_known_endings = bool(values) and all(isinstance(value, str) and _ending(value) in _KINDS for value in values)
    return have_known_endings and any(glob.glob(os.path.expanduser(value), recursive=True) for value in values)


def _translated(batches: Iterable[Any], name: str) -> Iterator[Any]:
    """Yield the same batches; errors of Arrow are converted to DataError."""
    with reading(name):
        yield from batches


def table(
    data: object,
    query: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: Expression | None = None,
    types: Mapping[str, Any] | None = None,
    null_values: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf8",
    format: str | None = None,
    on_bad: str = "error",
) -> Source:
    r"""Open rows that are read in batches, for `fit`, `predict` and every other function that takes a table.

    Plain paths and frames can be passed directly. This function is for options that a file or connection needs.

    Parameters
    ----------
    data : path, pattern, open file or list of them; iterator or function of batches; lazy or Spark frame; connection
        Paths may contain ``*``, and end in .parquet, .csv, .tsv, .jsonl, .arrow or .feather. Text may be compressed
        (.gz, .zst, .bz2). Pipes and open files are copied to a temporary file, and their format is detected.
        Connections are those of DuckDB, PostgreSQL (psycopg) and ``sqlite3``, and Spark sessions.
    query : str, optional
        The name of a table, or a query, if `data` is a connection. The database counts what a plain `fit` needs, in a
        read-only transaction, and sends no rows.
    columns : sequence of str, optional
        The columns to read; default all.
    where : pyarrow Expression, optional
        The rows to read: ``pyarrow.compute.field("age") > 17``.
    types : mapping from column to a type, optional
        Types by their Arrow names: ``{"zip": "string", "price": "float64"}``.
    null_values : sequence of str, optional
        Strings that represent a missing value.
    names : sequence of str, optional
        The columns of text files without a header line.
    delimiter : str, optional
        The delimiter of text files; default the candidate that is most frequent in the first line.
    encoding : str, default "utf8"
        The encoding of text files.
    format : {"parquet", "ipc", "csv", "json"}, optional
        The file format; default by the ending of the name.
    on_bad : {"error", "missing", "skip"}
        What to do with a cell of a text file that is not of its column's type: raise an error that names the line,
        treat it as missing, or skip its row. A warning gives the number of such cells.

    Returns
    -------
    Source

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import tallybayes as tb
    >>> path = Path(mkdtemp()) / "days.csv"
    >>> _ = path.write_text("sky;picnic\nsun;yes\nsun;yes\nrain;no\n?;no\n")
    >>> tb.NaiveBayes().fit(tb.table(path, null_values=["?"]), "picnic").predict([{"sky": "rain"}])
    array(['no'], dtype='<U3')
    """
    StringOptions(ON_BAD).check("on_bad", on_bad)
    for name, several in {"columns": columns, "names": names, "null_values": null_values}.items():
        if several is not None:
            read_list(name, several, "a list of strings")
    arrow_types = {name: _arrow_type(name, kind) for name, kind in (types or {}).items()}
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise DataError.wrong_type("delimiter", repr(delimiter), "one character, such as ';'")
    text = {"names": names, "delimiter": delimiter, "encoding": encoding, "on_bad": on_bad}
    paths: Any = [data] if _is_file(data) else data
    in_files = isinstance(paths, list | tuple) and paths and all(map(_is_file, paths))
    if in_files:
        source: Source | None = _open_files(paths, {**text, "null_values": null_values}, format, arrow_types)
    elif query is not None:
        source = _open_query(data, query)
    else:
        source = open_source(data)
    if source is None:
        found = short_repr(data)
        raise DataError.wrong_type("the table", found, "a path, batches or a query", "Data in memory need no tb.table.")
    is_csv = isinstance(source, CsvFiles)
    if not is_csv:
        text = {name: None if value == _PLAIN.get(name) else value for name, value in text.items()}
        _check_no_options(text, f"of CSV files, not of {source.name}")
    _check_no_options({"query": query} if in_files else {"format": format}, "of databases" if in_files else "of files")
    if source.counts:
        options = {"where": where, "types": types, "null_values": null_values}
        _check_no_options(options, "of files and batches, not of databases", "Use WHERE, CAST or NULLIF in the query.")
        return source if columns is None else source.select(columns)
    if is_csv:  # which reads types and missing values itself
        arrow_types, null_values = {}, None
    if columns is None and where is None and not arrow_types and null_values is None:
        return source
    return View(source, columns, where, arrow_types, null_values)


def _is_file(path: object) -> bool:
    """Return whether this is a path or an open file."""
    return isinstance(path, str | os.PathLike) or is_stream(path)


_PLAIN = {"encoding": "utf8", "on_bad": "error"}


def _check_no_options(options: Mapping[str, Any], scope: str, hint: str = "Leave it out.") -> None:
    """Raise DataError if an option that has no effect was passed."""
    for name, value in options.items():
        if value is not None:
            raise DataError(f"{name}={short_repr(value)} is an option {scope}.\n    {hint}")


def _open_query(connection: object, query: str) -> Source:
    """Open a table of a database, or the result of a query."""
    from tallybayes.data.sql.query_source import Query

    if type(connection).__module__.partition(".")[0] == "pyspark" and type(connection).__name__ == "SparkSession":
        from tallybayes.data.sql.spark import open_session

        return open_session(cast("SparkSession", connection), query)
    dialect = connection if isinstance(connection, Dialect) else dialect_of(connection)
    if dialect is None:
        expected = "a connection of DuckDB, psycopg or sqlite3, or a Spark session"
        raise DataError.wrong_type("the connection", short_repr(connection), expected)
    return Query(dialect, query)


def _open_files(
    patterns: Sequence[Any], text: dict[str, Any], format: str | None = None, types: Mapping[str, Any] | None = None
) -> Source:
    """Open files by their endings; pipes and open files are copied first, and their format is detected."""
    hint = "Pass the format: tb.table(path, format='csv')."
    paths = list[str]()
    kinds = set[str]()
    with ExitStack() as copies:
        for pattern in patterns:
            pattern = os.fspath(pattern) if isinstance(pattern, os.PathLike) else pattern
            for path in _matching(pattern, format) if isinstance(pattern, str) else [pattern]:
                copy = spool(path) if is_stream(path) else None
                if copy is not None:
                    copies.callback(copy.remove)
                paths.append(copy.path if copy else path)
                kinds.add(format or (copy.format if copy else kind_of_file(path, hint)))
        source = _of_kind(kinds, paths, text, types)
        weakref.finalize(source, copies.pop_all().close)
    return source


def _arrow_type(name: str, kind: Any) -> Any:
    """Return the Arrow type of a column by its name; raise DataError if there is no such type."""
    import pyarrow as pa

    try:
        return pa.type_for_alias(kind) if isinstance(kind, str) else kind
    except ValueError:
        expected = "a type of Arrow, such as 'string', 'int64' or 'float64'"
        raise DataError.wrong_type(f"the type of column {name!r}", repr(kind), expected) from None


def _of_kind(kinds: set[str], paths: list[str], text: dict[str, Any], types: Mapping[str, Any] | None) -> Source:
    """Return the source for files of one format; raise DataError if there are several formats."""
    if len(kinds) > 1:
        raise DataError(f"the files have several formats, {sorted(kinds)}; expected one.\n    Use one pattern with *.")
    (kind,) = kinds
    if kind in ("parquet", "ipc"):
        return ArrowFiles(paths, kind)
    if kind == "json":
        return JsonFiles(paths, types=types)
    if kind != "csv":
        raise DataError(f"format is {kind!r}; expected 'parquet', 'ipc', 'csv' or 'json'.")
    return CsvFiles(paths, **text, types=types)


def _matching(pattern: str, format: str | None = None) -> list[str]:
    """Return the files that match a path or pattern; of a folder, all files in it."""
    path = os.path.expanduser(pattern)
    folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    if folder == path:
        files = [os.path.join(path, name) for name in names if name[0] not in "._"]
        files = list(filter(os.path.isfile, files))
        if not any(format or _ending(name) in _KINDS for name in files):
            problem = f"has no file of a known format (found: {', '.join(names[:5])})" if names else "is empty"
            raise DataError(
                f"folder {pattern!r} {problem}.\n    Expected files that end in one of {', '.join(sorted(_KINDS))}."
            )
        return files
    files = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    if not files:
        _check_not_database(pattern)
        visible = [name for name in names if name[0] != "."]
        where = "this folder" if folder == "." else folder
        hint = f"\n    Files in {where}: {', '.join(visible[:5])}." if visible else ""
        if path.isalnum():
            hint += f"\n    Pass categories as a list: list({pattern!r})."
        elif " " in path and not os.path.dirname(path):
            hint = "\n    Pass one text as a list: [text]."
        raise DataError(f"there is no file {pattern!r}; expected a path, or a pattern with *.{hint}")
    return files


def _check_not_database(path: str) -> None:
    """Raise DataError for the address of a database; the message does not repeat it, since it may hold a password."""
    scheme = next((scheme for scheme in _CONNECT if path.lower().startswith(scheme)), None)
    if scheme is not None:
        raise DataError(
            f"the path is the address of a database ({scheme}…); expected a file or a connection.\n"
            f"    Pass a connection: tb.table({_CONNECT[scheme]}(...), 'name of the table')."
        )


def kind_of_file(path: str, hint: str) -> str:
    """Return the format of a file by its name."""
    ending = _ending(path)
    if ending not in _KINDS:
        endings = ", ".join(sorted(_KINDS))
        raise DataError(
            f"{path} has {f'the unknown ending {ending}' if ending else 'no ending'}; expected one of {endings}.\n"
            f"    {hint}"
        )
    return _KINDS[ending]


def _ending(path: str) -> str:
    """Return the ending of a file name, without that of a compression such as .gz."""
    stem, ending = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if ending in _PACKED else ending
