"""Source: rows that are read in batches."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from itertools import chain, repeat, takewhile
from os import cpu_count
from typing import TYPE_CHECKING, Any, TypeVar

from tallybayes._utils.memory import require_memory
from tallybayes.data.sampling import SAMPLE, Reservoir
from tallybayes.errors import DataError, TallybayesError
from tallybayes.kernels.arguments import threads
from tallybayes.messages import redacted
from tallybayes.tally.domain import Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.warnings import DataSourceWarning, warn

if TYPE_CHECKING:
    import pyarrow as pa

    from tallybayes.data.sql.dialects import Dialect
    from tallybayes.families.family import Family

BATCH = 2**18  # rows of a batch if the width of rows is unknown: enough for the kernels
BYTES = 2**25  # of a batch, otherwise
FEWEST = 2**12  # rows of such a batch, at least
MOST = 2**20  # and at most
_AHEAD = 1  # batches that are kept beyond the next one while another one is counted
_THREADS = 8  # that parse in parallel; more would wait for the thread that counts
S = TypeVar("S")
T = TypeVar("T")


class Source:
    """Base class of data sources: rows that are read in batches as Arrow tables of one schema.

    Every kind of source is a subclass in a file of its own, which alone imports the library that it needs. A subclass
    defines `schema` and `batches`.

    Parameters
    ----------
    name : str
        The name of the source in messages. Passwords are redacted.

    Examples
    --------
    >>> import pandas as pd
    >>> import tallybayes as tb
    >>> source = tb.table(iter([pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": [3]})]))
    >>> [batch["x"].to_pylist() for batch in source.batches()]
    [[1, 2, 3]]
    """

    counts = False  # whether the source counts rows itself
    in_threads = True  # whether another thread may read it

    def __init__(self, name: str) -> None:
        self.name = redacted(name)
        self._first: pa.Table | None = None
        self._begun: Iterator[pa.Table] | None = None  # the batches after the first, until they are read

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        raise NotImplementedError

    @property
    def n_rows(self) -> int | None:
        """Return the number of rows if it is known without reading them, for progress bars; else None."""
        return None

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows in batches, with some columns or all."""
        raise NotImplementedError

    def count(
        self, factors: Sequence[Factor], weight: str | None, schema: Schema | None, like: Tally | None
    ) -> Tally | None:
        """Return the tally of all rows if the source counts them itself; None if its batches are to be counted."""
        return None

    def n_missing(self, column: str, weight: str | None) -> int:
        """Return the number of rows in which a column is missing, for a source that counts."""
        raise NotImplementedError

    def binned(self, families: Mapping[Name, Family]) -> Source:
        """Return the same rows with some numeric columns discretized, for a source that counts."""
        raise NotImplementedError

    def select(self, columns: Sequence[str]) -> Source:
        """Return the same rows with some of the columns, for a source that counts."""
        raise NotImplementedError

    def exact(self, columns: Sequence[Name]) -> Source:
        """Return the same rows with all digits of some columns that are read as doubles otherwise."""
        return self

    def keeping(self, columns: Sequence[Name], to: Dialect | None = None) -> tuple[Source, list[str], pa.Schema]:
        """Return the same rows with some columns in the form in which they are written unchanged.

        Parameters
        ----------
        columns : sequence of names
        to : Dialect, optional
            Of the database to which they are written.

        Returns
        -------
        source : Source
        names : list of str
            What the columns are called there.
        schema : pyarrow.Schema
            Their types, by their own names. Types of a database are among the metadata.
        """
        import pyarrow as pa

        source = self.exact(columns)
        names = list(map(str, columns))
        return source, names, pa.schema([source.schema.field(name).remove_metadata() for name in names])

    def first_batch(self) -> pa.Table:
        """Return the first batch, from which column types are determined; a table without rows if there are none."""
        if self._first is None:
            batches = iter(self.batches())
            self._first = next(batches, None)
            if self._first is None:
                self._first = self.schema.empty_table()
            else:
                self._begun = batches
        return self._first

    def sample(self, n: int = SAMPLE) -> tuple[pa.Table, int]:
        """Return a random sample of the rows, with a fixed seed and in their order, and the number of all rows.

        Rows that can be read only once are first copied to a temporary file.

        Parameters
        ----------
        n : int, optional
            The approximate size of the sample; all rows if there are no more.

        Examples
        --------
        >>> import pandas as pd
        >>> import tallybayes as tb
        >>> rows, n_rows = tb.table(lambda: [pd.DataFrame({"x": range(1000)})] * 3).sample(10)
        >>> len(rows), n_rows
        (10, 3000)
        """
        self.keep()
        reservoir = Reservoir(n)
        for batch in self.read_ahead():
            reservoir.add(batch)
        sample = reservoir.table()
        return (self.schema.empty_table() if sample is None else sample), reservoir.n_rows

    def keep(self) -> None:
        """Copy rows that can be read only once to a temporary file."""

    def read_ahead(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the same as `batches`; the next batches are read in another thread if that is possible."""
        batches = self._going_on(columns)
        return ahead(batches) if self.in_threads else batches

    def _going_on(self, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        """Yield the same as `batches`; reuse the first batch if it was read last and with the same columns."""
        begun = self._begun
        self._begun = None
        if begun is None or (columns is not None and set(columns) != set(self.schema.names)):
            return self.batches(columns)
        batches = chain([self.first_batch()], begun)
        return batches if columns is None else (batch.select(list(columns)) for batch in batches)

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a context in which the rows are the same at every read."""
        return nullcontext()

    def read(self, why: str) -> pa.Table:
        """Return all rows in memory, with a warning if they are many.

        Parameters
        ----------
        why : str
            The computation that needs all rows at once, for the warning.
        """
        import pyarrow as pa

        batches = []
        size = 0
        for batch in self.read_ahead():
            batches.append(batch)
            size += batch.nbytes
            if self.n_rows and len(batches) == 1:
                require_memory(2 * size * self.n_rows // max(1, len(batch)), f"all rows of {self.name}", _FEWER)
        require_memory(size, f"all rows of {self.name}, a second time", _FEWER)
        if size > _LARGE:
            warn(
                f"{why} needs all rows at once: {self.name} is read into memory ({size / 1e9:.1f} GB).\n    {_FEWER}",
                DataSourceWarning,
            )
        return pa.concat_tables(batches) if batches else self.schema.empty_table()

    def check_columns(self, names: Iterable[Name]) -> None:
        """Raise DataError if a name is not the name of a column."""
        columns = set(self.schema.names)
        unknown = [name for name in names if name not in columns]
        if unknown:
            raise DataError.unknown_column(unknown, self.schema.names)


class Files(Source):
    """Rows of several files, in the order of the files.

    Parameters
    ----------
    paths : sequence of str
    types : mapping from name to an Arrow type, optional
        Types of columns; other types are those in the files, or are inferred.
    """

    def __init__(self, paths: Sequence[str], types: Mapping[str, Any] | None = None) -> None:
        super().__init__(paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more")
        self.paths = list(paths)
        self.types = dict(types or {})


_FEWER = "Use a model that is fitted in batches, or select some of the rows: tb.table(..., where=...)."
_LARGE = 1 << 30


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield the same items; the next ones are computed in another thread."""
    iterator = iter(items)
    end: Any = object()
    with closing(in_order(lambda _: next(iterator, end), repeat(None), 1, _AHEAD)) as results:
        yield from takewhile(lambda item: item is not end, results)


@contextmanager
def reading(name: str, what: str = "") -> Iterator[None]:
    """Convert errors of the libraries that read a source to DataError, which names the source.

    Every file is opened, decoded and converted in this context, so that no other exception reaches users.
    """
    import pyarrow as pa

    try:
        yield
    except TallybayesError:
        raise
    except (pa.ArrowException, OSError, EOFError, UnicodeError, OverflowError, RecursionError, zlib.error) as error:
        message = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DataError(
            f"{name} cannot be read{what and f' {what}'}: {message[:300]}.\n    Correct the data, or restore them."
        ) from error


def n_threads() -> int:
    """Return the number of threads that read in parallel."""
    return min(threads() or cpu_count() or 1, _THREADS)


def in_order(
    work: Callable[[S], T], items: Iterable[S], n_workers: int | None = None, n_ahead: int = 0
) -> Generator[T, None, None]:
    """Yield the result of `work` for every item, in their order; threads compute the next ones.

    Parameters
    ----------
    work : callable
    items : iterable
    n_workers : int, optional
        The number of threads; default that of the kernels, at most 8.
    n_ahead : int, default 0
        The number of results beyond one for every thread that are computed ahead.
    """
    n_workers = n_workers or n_threads()
    futures: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_workers) as pool:
        try:
            for item in items:
                futures.append(pool.submit(work, item))
                if len(futures) > n_workers + n_ahead:
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()


def rows_of(schema: pa.Schema, n_bytes: int = BYTES, fewest: int = FEWEST) -> int:
    """Return the number of rows of a batch of about `n_bytes`: fewer rows if there are many or wide columns."""
    bits = 0
    for field in schema:
        try:
            bits += field.type.bit_width
        except ValueError:  # text and other types of variable length
            bits += 128
    return int(min(MOST, max(fewest, n_bytes * 8 // max(1, bits))))


def with_location(batches: Iterable[pa.Table], file: str, word: str, first: int) -> Iterator[pa.Table]:
    """Yield the batches of a file with the location of their first row: its line or row number."""
    for batch in batches:
        yield batch.replace_schema_metadata({"file": file, "word": word, "first": str(first)})
        first += len(batch)


def location_of(batch: pa.Table) -> tuple[str, str, int] | None:
    """Return the file, "line" or "row", and the number of the first row of a batch from `with_location`; else None."""
    metadata = batch.schema.metadata or {}
    if b"first" not in metadata or b"file" not in metadata:
        return None
    return metadata[b"file"].decode(), metadata[b"word"].decode(), int(metadata[b"first"])


def in_batches(parts: Iterable[pa.RecordBatch | pa.Table], n: int = BATCH) -> Iterator[pa.Table]:
    """Concatenate or split parts so that all but the last have about `n` rows."""
    import pyarrow as pa

    tables: list[pa.Table] = []
    for part in parts:
        table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
        if tables and table.schema != tables[0].schema:  # parts may have different categories
            yield pa.concat_tables(tables)
            tables = []
        tables += [table] if len(table) else []
        if sum(map(len, tables)) >= n // 2:
            joined = pa.concat_tables(tables) if len(tables) > 1 else tables[0]
            yield from (joined.slice(start, 2 * n) for start in range(0, len(joined), 2 * n))
            tables = []
    if tables:
        yield pa.concat_tables(tables)
