"""Pieces: a file of text, packed or not, cut where a row ends."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tallybayes.errors import DataError

_MOST = 8  # times the size that was asked for: a row that is longer is none
_QUOTE = ord('"')


class Piece(NamedTuple):
    """Whole rows of a file, as UTF-8, and the line that the first of them is on."""

    data: bytes
    line: int


def pieces_of(path: str, first: int, size: int, *, delimiter: str = ",", encoding: str = "utf8") -> Iterator[Piece]:
    """The rows of a file in pieces of about so many bytes; a row may have line ends between its quotes.

    Parameters
    ----------
    path : str
        Unpacked as it is read, where its name ends in .gz, .bz2, .zst or .lz4.
    first, size : int
        How many bytes the first piece has, and how many the others.
    delimiter : str
        What parts the cells of a row.
    encoding : str
    """
    import pyarrow as pa

    text = _as_utf8(path, encoding)
    rest, line, n_bytes = b"", 1, first
    try:
        with pa.input_stream(path, compression="detect") as stream:
            while packed := stream.read(n_bytes):
                data = rest + text(packed, False)
                data = data.removeprefix(codecs.BOM_UTF8) if line == 1 else data
                end = _last_end(data, delimiter)
                rest = data[end:]
                if end:
                    yield Piece(data[:end], line)
                    line += data.count(b"\n" if b"\n" in data else b"\r", 0, end)
                elif len(data) > _MOST * max(first, size):
                    raise DataError(
                        f"{path}, line {line}: the row goes on for {len(data):,} bytes, with no end; expected a line "
                        'end, and for every " that opens a cell another one.'
                    )
                n_bytes = size if end else len(data)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    rest += text(b"", True)
    if rest:
        yield Piece(rest.removeprefix(codecs.BOM_UTF8) if line == 1 else rest, line)


def _as_utf8(path: str, encoding: str) -> Callable[[bytes, bool], bytes]:
    """What turns the next bytes of a file, perhaps its last, into UTF-8."""
    try:
        known = codecs.lookup(encoding)
    except LookupError:
        raise DataError(
            f"encoding is {encoding!r}; expected one that Python knows, such as 'utf8' or 'latin-1'."
        ) from None
    if known.name == "utf-8":
        return lambda data, last: data
    decoder = known.incrementaldecoder()

    def text(data: bytes, last: bool) -> bytes:
        try:
            return decoder.decode(data, last).encode()
        except UnicodeError as error:
            raise DataError(
                f"{path} is no text in {encoding}: {error}.\n    Say how it is written: tb.table(path, encoding=...)."
            ) from None

    return text


def _last_end(data: bytes, delimiter: str) -> int:
    """Where the last whole row ends, of rows from a first one on; 0 where none does."""
    mark = b"\n" if b"\n" in data else b"\r"
    end = data.rfind(mark, 0, len(data) if mark == b"\n" else len(data) - 1)  # "\r" may be half of "\r\n"
    if b'"' not in data:
        return end + 1
    quotes = _quotes(data, delimiter)
    while end >= 0:
        n_before = int(np.searchsorted(quotes, end))
        if n_before % 2 == 0:
            break
        end = data.rfind(mark, 0, int(quotes[n_before - 1]))  # it is inside of a cell: look before the cell
    return end + 1


def _quotes(data: bytes, delimiter: str) -> np.ndarray:
    """Where quotes open and close cells, in turn; those in the middle of a cell do neither."""
    cells = np.frombuffer(data, np.uint8)
    found = np.flatnonzero(cells == _QUOTE)
    before = cells[found[::2] - 1]
    before[0] = before[0] if found[0] else ord("\n")
    # One that opens a cell is its first character; two side by side, in a cell, are one that is part of it.
    if np.isin(before, np.frombuffer(b'"\r\n' + delimiter.encode(), np.uint8)).all():
        return found
    start = rb"(?:\A|(?<=[\r\n" + re.escape(delimiter.encode()) + rb"]))"
    marks: list[int] = []
    for match in re.finditer(start + rb'"[^"]*(?:""[^"]*)*("|\Z)', data):
        marks += [match.start(), match.end() - 1] if match.group(1) else [match.start()]
    return np.array(marks, dtype=np.int64)
