"""Source: rows that are read batch by batch, wherever they lie."""

from __future__ import annotations

import queue
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from os import cpu_count
from typing import TYPE_CHECKING, Any, TypeVar

from tallybayes._utils.memory import require_memory
from tallybayes.data.sampling import SAMPLE, Reservoir
from tallybayes.errors import DataError, TallybayesError
from tallybayes.kernels.threads import threads
from tallybayes.messages import redacted
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.warnings import DataSourceWarning, warn

if TYPE_CHECKING:
    import pyarrow as pa

    from tallybayes.families.family import Family

BATCH = 2**18  # rows that are read together, where nothing is known of their width: enough for the kernels
BYTES, FEWEST, MOST = 2**25, 2**12, 2**20  # of a batch whose width is known: about so many bytes, and rows
_AHEAD = 2  # batches that are read while another one is counted
_THREADS = 8  # as many parse at a time: more of them would wait for the one that counts
S = TypeVar("S")
T = TypeVar("T")


class Source:
    """Rows in batches. Every kind of source is one class in one file, which alone knows the library that it needs.

    A subclass says what columns there are, and gives the batches as Arrow tables of one schema.

    Parameters
    ----------
    name : str
        What messages call it.

    Examples
    --------
    >>> import pandas as pd
    >>> import tallybayes as tb
    >>> source = tb.table(iter([pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": [3]})]))
    >>> [batch["x"].to_pylist() for batch in source.batches()]
    [[1, 2, 3]]
    """

    counts = False  # whether it counts rows itself
    in_threads = True  # whether another thread may read it

    def __init__(self, name: str) -> None:
        self.name = redacted(name)
        self._first: pa.Table | None = None
        self._begun: Iterator[pa.Table] | None = None  # the batches after the first, until they are asked for

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        raise NotImplementedError

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if that is known without reading them; for the progress that is shown."""
        return None

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, some at a time, with these columns or all."""
        raise NotImplementedError

    def count(
        self, factors: Sequence[Factor], weight: str | None, schema: Schema | None, like: Tally | None
    ) -> Tally | None:
        """The tally of all rows, where the source counts them itself; None where its batches are to be counted."""
        return None

    def n_missing(self, column: str, weight: str | None) -> int:
        """How many rows of a source that counts lack the cell of a column."""
        raise NotImplementedError

    def binned(self, families: Mapping[Name, Family]) -> Source:
        """The same rows with the numbers of some columns by their bins, of a source that counts."""
        raise NotImplementedError

    def select(self, columns: Sequence[str]) -> Source:
        """The same rows with some of the columns, of a source that counts."""
        raise NotImplementedError

    def exact(self, columns: Sequence[Name]) -> Source:
        """The same rows, with every digit of some columns that are otherwise read as doubles."""
        return self

    def keeping(self, columns: Sequence[Name], to: Any = None) -> tuple[Source, list[str], pa.Schema]:
        """The same rows with what is written of some columns, unchanged.

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

        found, names = self.exact(columns), list(map(str, columns))
        return found, names, pa.schema([found.schema.field(name).remove_metadata() for name in names])

    def first_batch(self) -> pa.Table:
        """The first batch, which decides what there is to count; a table without rows where there are none."""
        if self._first is None:
            begun = iter(self.batches())
            self._first = next(begun, None)
            if self._first is None:
                self._first = self.schema.empty_table()
            else:
                self._begun = begun
        return self._first

    def sample(self, n: int = SAMPLE) -> tuple[pa.Table, int]:
        """A random sample of the rows with a fixed seed, in their order, and the number of all rows.

        Rows that can be read again are read for it; those that cannot are copied to a temporary file first.

        Parameters
        ----------
        n : int, optional
            About how many rows; all of them, if there are no more.

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
        found = reservoir.table()
        return (self.schema.empty_table() if found is None else found), reservoir.n_rows

    def keep(self) -> None:
        """Make rows that come once readable again, by a temporary file."""

    def read_ahead(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """As `batches`; the next ones are read while one is used, where that can be."""
        found = self._going_on(columns)
        return ahead(found) if self.in_threads else found

    def _going_on(self, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        """As `batches`; where the first of them was just read, with the same columns, it is not read again."""
        begun, self._begun = self._begun, None
        if begun is None or (columns is not None and set(columns) != set(self.schema.names)):
            return self.batches(columns)
        found = chain([self.first_batch()], begun)
        return found if columns is None else (batch.select(list(columns)) for batch in found)

    def snapshot(self) -> AbstractContextManager[None]:
        """While it lasts, the rows are the same whenever they are asked for."""
        return nullcontext()

    def read(self, why: str) -> pa.Table:
        """All rows, in memory: for what cannot be done batch by batch, which the user is told.

        Parameters
        ----------
        why : str
            What needs all rows at a time.
        """
        import pyarrow as pa

        found, size = [], 0
        for batch in self.read_ahead():
            found.append(batch)
            size += batch.nbytes
            if self.n_rows and len(found) == 1:
                require_memory(2 * size * self.n_rows // max(1, len(batch)), f"all rows of {self.name}", _FEWER)
        require_memory(size, f"all rows of {self.name}, a second time", _FEWER)
        if size > _LARGE:
            warn(
                f"{why} needs all rows at a time: {self.name} is read into memory ({size / 1e9:.1f} GB).",
                DataSourceWarning,
            )
        return pa.concat_tables(found) if found else self.schema.empty_table()

    def check_columns(self, names: Iterable[Name]) -> None:
        """Refuse names that are none of its columns."""
        known = set(self.schema.names)
        absent = [name for name in names if name not in known]
        if absent:
            raise DataError.unknown_column(absent, self.schema.names)


_FEWER = "Fit it by counting (a plain fit reads batch by batch), or take some of the rows: tb.table(..., where=...)."
_LARGE = 1 << 30


def ahead(items: Iterable[T], n: int = _AHEAD) -> Iterator[T]:
    """The same items, the next ones made by another thread while one is used."""
    done, waiting, stop = object(), queue.Queue[Any](maxsize=n), threading.Event()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((done, None))
        except BaseException as error:
            put((done, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is done:
                return
            yield item
    finally:
        stop.set()
        thread.join()


@contextmanager
def reading(name: str, what: str = "") -> Iterator[None]:
    """Turn the errors of the libraries that read a source into DataError, which names the source.

    Every file is opened, decoded and converted within this context, so that no other exception reaches users.
    """
    import pyarrow as pa

    try:
        yield
    except TallybayesError:
        raise
    except (pa.ArrowException, OSError, EOFError, UnicodeError, OverflowError, RecursionError, zlib.error) as error:
        said = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DataError(f"{name} cannot be read{what and f' {what}'}: {said[:300]}.") from error


def n_threads() -> int:
    """How many threads read at once."""
    return min(threads() or cpu_count() or 1, _THREADS)


def in_order(work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """What is made of every item, in their order; threads work on the next ones while one is used."""
    most = n_threads()
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(most) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def rows_of(schema: pa.Schema) -> int:
    """How many rows make a batch: many of a few narrow columns, fewer of many."""
    bits = 0
    for field in schema:
        try:
            bits += field.type.bit_width
        except ValueError:  # text, and what else is of any length
            bits += 128
    return int(min(MOST, max(FEWEST, BYTES * 8 // max(1, bits))))


def with_location(batches: Iterable[pa.Table], file: str, word: str, first: int) -> Iterator[pa.Table]:
    """The batches of one file, each with where its first row is: its line, or its number."""
    for batch in batches:
        yield batch.replace_schema_metadata({"file": file, "word": word, "first": str(first)})
        first += len(batch)


def location_of(batch: pa.Table) -> tuple[str, str, int] | None:
    """What `placed` said of a batch."""
    said = batch.schema.metadata or {}
    if b"first" not in said or b"file" not in said:
        return None
    return said[b"file"].decode(), said[b"word"].decode(), int(said[b"first"])


def in_batches(parts: Iterable[pa.RecordBatch | pa.Table], n: int = BATCH) -> Iterator[pa.Table]:
    """Parts put together, or apart, so that each but the last has about so many rows."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for part in parts:
        table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
        if waiting and table.schema != waiting[0].schema:  # categories of a frame, of which each part has its own
            yield pa.concat_tables(waiting)
            waiting = []
        waiting += [table] if len(table) else []
        if sum(map(len, waiting)) >= n // 2:
            whole = pa.concat_tables(waiting) if len(waiting) > 1 else waiting[0]
            yield from (whole.slice(start, 2 * n) for start in range(0, len(whole), 2 * n))
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
