"""Batches and samples of a source as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from tallybayes._utils.progress import progress_of
from tallybayes.data.source import Source, location_of
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def tables_of_batches(source: Source, what: str, columns: Sequence[str] | None = None) -> Iterator[Table]:
    """Yield the batches of a source as tables that have their file location. Batches are read ahead; progress is shown.

    Parameters
    ----------
    source : Source
    what : str
        Title of the progress bar.
    columns : sequence of names, optional
        The columns that are needed.
    """
    for batch in progress_of(source.read_ahead(columns), what, len, source.n_rows):
        table = open_table(batch)
        table.file_location = location_of(batch)
        yield table


def grouped_batches(source: Source, column: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the rows in tables that end where the value of a column changes.

    Parameters
    ----------
    source : Source
    column : str
    columns : sequence of names, optional
        The columns that are needed.
    """
    import pyarrow as pa

    rest = None
    for batch in source.read_ahead(columns):
        rows = batch if rest is None else pa.concat_tables([rest, batch])
        codes, _ = open_table(rows.select([column])).encoded(column)
        changes = np.flatnonzero(codes[1:] != codes[:-1])
        end = int(changes[-1]) + 1 if len(changes) else 0
        if end:
            yield rows.slice(0, end)
        rest = rows.slice(end)
    if rest is not None and len(rest):
        yield rest


def sample_of(source: Source) -> Table:
    """Return a random sample of the rows of a source as a table. Families and bins are chosen from it."""
    rows, n_rows = source.sample()
    table = open_table(rows)
    table.n_sampled_from = n_rows if n_rows > table.n_rows else None
    return table


@contextmanager
def with_file_location(table: Table) -> Iterator[None]:
    """Add the file and line of the cell to a DataError about a cell of a batch."""
    try:
        yield
    except DataError as error:
        if error.cell is None or table.file_location is None:
            raise
        file, word, first = table.file_location
        raise DataError.bad_cell(*error.cell, where=f"{file}, {word} {first + error.cell[1]}") from None
