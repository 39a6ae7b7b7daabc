"""Opening what is no array: which source stands for which data."""

from __future__ import annotations

import glob
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

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
    from pyarrow.compute import Expression

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


def open_source(data: Any) -> Source | None:
    """The source that some data are or name; None for what is in memory already. Nothing is imported to know."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike) or is_stream(data):
        return _open_files([data], {})
    kind = type(data)
    library = kind.__module__.partition(".")[0]
    if library == "polars" and kind.__name__ == "LazyFrame":
        return lazy_frame(data)
    if library in ("duckdb", "_duckdb") and kind.__name__ == "DuckDBPyRelation":
        return _open_query(Relation(data), Relation.NAME)
    if library == "pyspark" and kind.__name__ == "DataFrame" and hasattr(data, "mapInArrow"):
        from tallybayes.data.sql.spark import SparkFrame

        return SparkFrame(data)
    if library == "pyarrow" and hasattr(data, "read_next_batch"):
        return Batches(lambda: _translated(iter(data), "the reader"), "the reader", once=True)
    if library == "pyarrow" and hasattr(data, "to_batches") and hasattr(data, "get_fragments"):
        return Batches(lambda: _translated(data.to_batches(), "the dataset"), "the dataset")
    if isinstance(data, Iterator):
        return Batches(lambda: data, "the iterator", once=True)
    if isinstance(data, list | tuple):
        if _are_paths(data):
            return _open_files(data, {})
        frames = bool(data) and all(hasattr(type(part), "columns") for part in data)
        return Batches(lambda: iter(data), "the list of frames") if frames else None
    if isinstance(data, Iterable) and not hasattr(data, "__len__") and not hasattr(data, "__array__"):
        return Batches(lambda: iter(data), "the batches")  # as Ray's iter_batches gives them
    return None


def _are_paths(values: Sequence[Any]) -> bool:
    """Whether a list holds paths, not texts: `Path` objects, or file names of known kinds, of which one exists."""
    if any(isinstance(value, os.PathLike) for value in values[:1]):
        return all(isinstance(value, str | os.PathLike) for value in values)
    named = bool(values) and all(isinstance(value, str) and _ending(value) in _KINDS for value in values)
    return named and any(glob.glob(os.path.expanduser(value), recursive=True) for value in values)


def _translated(batches: Iterable[Any], name: str) -> Iterator[Any]:
    """The same batches; errors of Arrow become DataError."""
    with reading(name):
        yield from batches


def table(
    data: Any,
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
    r"""Rows that are read batch by batch, wherever they lie: for `fit`, `predict` and all else that takes a table.

    A plain path or frame needs none of this; it is for what a file does not say by itself.

    Parameters
    ----------
    data : path, pattern, open file or list of them; iterator or function of batches; lazy or Spark frame; connection
        Paths may hold ``*``, and end in .parquet, .csv, .tsv, .jsonl, .arrow or .feather; text may be packed
        (.gz, .zst, .bz2). Pipes and open files are copied to a temporary file; their first bytes show the format.
        Connections are those of DuckDB, PostgreSQL (psycopg) and ``sqlite3``, and a Spark session.
    query : str, optional
        Of a connection: the name of a table, or a query. The database counts by itself what a plain `fit` needs, in a
        transaction that only reads; no row leaves it.
    columns : sequence of str, optional
        The columns to be read; all by default.
    where : pyarrow Expression, optional
        Which rows: ``pyarrow.compute.field("age") > 17``.
    types : mapping from column to a type, optional
        As Arrow calls them: ``{"zip": "string", "price": "float64"}``.
    null_values : sequence of str, optional
        What stands for a missing cell.
    names : sequence of str, optional
        The columns of text files without a line of names.
    delimiter : str, optional
        What parts the cells of text files; by default what their first line has most of.
    encoding : str, default "utf8"
        Of text files.
    format : {"parquet", "ipc", "csv", "json"}, optional
        By default what the name ends in.
    on_bad : {"error", "missing", "skip"}
        What becomes of a cell of a text file that is not of its column's type: an error that names the line, a missing
        cell, or its row is left out; how many is said in a warning.

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
    import pyarrow as pa

    if on_bad not in ON_BAD:
        raise DataError(f"on_bad is {on_bad!r}; expected one of {list(ON_BAD)}.")
    read = {name: pa.type_for_alias(kind) if isinstance(kind, str) else kind for name, kind in (types or {}).items()}
    text = {"names": names, "delimiter": delimiter, "encoding": encoding, "on_bad": on_bad}
    paths = [data] if isinstance(data, str | os.PathLike) or is_stream(data) else data
    named = isinstance(paths, list | tuple) and paths
    in_files = named and all(isinstance(path, str | os.PathLike) or is_stream(path) for path in paths)
    if in_files:
        options = {**text, "null_values": null_values}
        source: Source | None = _open_files(paths, options, format, read)
    elif query is not None:
        source = _open_query(data, query)
    elif callable(data) and not isinstance(data, Source):
        source = Batches(lambda: iter(data()), "the batches")
    else:
        source = open_source(data)
    if source is None:
        found = short_repr(data)
        raise DataError.wrong_type("the table", found, "a path, batches or a query", "Data in memory need no tb.table.")
    text = {name: None if value == _PLAIN.get(name) else value for name, value in text.items()}
    done = isinstance(source, CsvFiles)
    _refuse({} if done else text, f"of files of lines of cells, not of {source.name}")
    _refuse({"query": query} if in_files else {"format": format}, f"of {'databases' if in_files else 'files'}")
    if source.counts:
        told = {"where": where, "types": types, "null_values": null_values}
        _refuse(told, "of rows that are read, not of those in a database", "Say it in the query: WHERE, CAST, NULLIF.")
        return source if columns is None else source.select(columns)
    if columns is None and where is None and (done or (not read and null_values is None)):
        return source
    return View(source, columns, where, {} if done else read, None if done else null_values)


_PLAIN = {"encoding": "utf8", "on_bad": "error"}


def _refuse(options: Mapping[str, Any], what: str, hint: str = "Leave it out.") -> None:
    """Say which option would do nothing."""
    for name, value in options.items():
        if value is not None:
            raise DataError(f"{name}={short_repr(value)} is an option {what}.\n    {hint}")


def _open_query(connection: Any, query: str) -> Source:
    """A table of a database, or the answer to a query."""
    from tallybayes.data.sql.query_source import Query

    if type(connection).__module__.partition(".")[0] == "pyspark" and type(connection).__name__ == "SparkSession":
        from tallybayes.data.sql.spark import open_session

        return open_session(connection, query)
    dialect = connection if isinstance(connection, Dialect) else dialect_of(connection)
    if dialect is None:
        expected = "a connection of DuckDB, psycopg or sqlite3, or a Spark session"
        raise DataError.wrong_type("the connection", short_repr(connection), expected)
    return Query(dialect, query)


def _open_files(
    patterns: Sequence[Any], text: dict[str, Any], format: str | None = None, types: Mapping[str, Any] | None = None
) -> Source:
    """The source of some files, by their endings; pipes and open files are copied first, and known by their bytes."""
    hint = "Say which it is: tb.table(path, format='csv')."
    paths, kinds = list[str](), set[str]()
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


def _of_kind(kinds: set[str], paths: list[str], text: dict[str, Any], types: Mapping[str, Any] | None) -> Source:
    if len(kinds) > 1:
        raise DataError(f"the files are of several kinds, {sorted(kinds)}; expected one.\n    Name them with one *.")
    (kind,) = kinds
    if kind in ("parquet", "ipc"):
        return ArrowFiles(paths, kind)
    if kind == "json":
        return JsonFiles(paths, types=types)
    if kind != "csv":
        raise DataError(f"format is {kind!r}; expected 'parquet', 'ipc', 'csv' or 'json'.")
    return CsvFiles(paths, **text, types=types)


def _matching(pattern: str, format: str | None = None) -> list[str]:
    """The files that a path or pattern stands for; those of a folder, all that it holds."""
    path = os.path.expanduser(pattern)
    if os.path.isdir(path):
        found = [os.path.join(path, name) for name in sorted(os.listdir(path)) if not name.startswith((".", "_"))]
        found = [name for name in found if os.path.isfile(name)]
        if not any(format or _ending(name) in _KINDS for name in found):
            others = ", ".join(sorted(os.listdir(path))[:5])
            what = f"has no file of a known kind (found: {others})" if others else "is empty"
            raise DataError(
                f"folder {pattern!r} {what}.\n    Expected files that end in one of {', '.join(sorted(_KINDS))}."
            )
    elif os.path.exists(path):
        found = [path]
    else:
        found = sorted(glob.glob(path, recursive=True))
    if not found:
        near = os.path.dirname(path) or "."
        there = sorted(name for name in os.listdir(near) if name[0] != ".")[:5] if os.path.isdir(near) else []
        hint = f"\n    {near} holds {', '.join(there)}." if there else ""
        if path.isalnum():
            hint += f"\n    Labels one by one are a list: list({pattern!r})."
        elif " " in path and not os.path.dirname(path):
            hint = "\n    One text is a list of one: [text]."
        raise DataError(f"there is no file {pattern!r}; expected a path, or a pattern with *.{hint}")
    return found


def kind_of_file(path: str, hint: str) -> str:
    """What the name of a file tells of what it holds."""
    ending = _ending(path)
    if ending not in _KINDS:
        known = ", ".join(sorted(_KINDS))
        raise DataError(
            f"{path} ends in {ending or 'nothing'}, which tells no kind of file; expected one of {known}.\n    {hint}"
        )
    return _KINDS[ending]


def _ending(path: str) -> str:
    """The ending of a file name that tells its kind: that before .gz and the like."""
    stem, ending = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if ending in _PACKED else ending
