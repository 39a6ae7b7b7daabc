"""Pieces: a file of text, packed or not, cut where a row ends."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from tallybayes.data.source import reading
from tallybayes.errors import DataError

_MOST = 8  # times the size that was asked for: a row that is longer is none
_QUOTE = ord('"')
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

_BINARY = {b"\x1f\x8b": "gzip", b"PK\3\4": "a zip archive or a workbook", b"PAR1": "Parquet", b"ARROW1": "Arrow IPC"}


class TextChunk(NamedTuple):
    """Whole rows of a file, as UTF-8, and the line that the first of them is on."""

    data: bytes
    line: int


def row_chunks(
    path: str, first: int, size: int, *, delimiter: str | None = ",", encoding: str = "utf8"
) -> Iterator[TextChunk]:
    """The rows of a file in pieces of about so many bytes; a row may have line ends between its quotes.

    Parameters
    ----------
    path : str
        Unpacked as it is read, where its name ends in .gz, .bz2, .zst or .lz4.
    first, size : int
        How many bytes the first piece has, and how many the others.
    delimiter : str, optional
        What separates the cells of a row; None where every line is a row, whatever quotes it has.
    encoding : str
        A file that begins with the byte-order mark of UTF-16 or UTF-32 is read as that.
    """
    rest, line = b"", 1
    for text, following in pairwise(chain(utf8_of(path, first, size, encoding), [None])):
        data = rest + (text or b"")
        end = _last_end(path, line, data, delimiter)
        if following is None:  # the last row need not end in a line end
            rest = data
            break
        rest = data[end:]
        if end:
            yield TextChunk(data[:end], line)
            line += data.count(b"\n" if b"\n" in data else b"\r", 0, end)
        elif len(data) > _MOST * max(first, size):
            raise _unclosed(path, line, data, delimiter) or DataError(
                f"{path}, line {line}: no line end in {len(data):,} bytes; expected rows on lines of their own."
            )
    if rest:
        unclosed = _unclosed(path, line, rest, delimiter)
        if unclosed is not None:
            raise unclosed
        ended = line > 1 or rest.endswith((b"\n", b"\r"))  # Arrow does not read a line of names without its end
        yield TextChunk(rest if ended else rest + b"\n", line)


def utf8_of(path: str, first: int, size: int, encoding: str = "utf8") -> Iterator[bytes]:
    """The text of a file in UTF-8, without a byte-order mark, about so many bytes at a time."""
    import pyarrow as pa

    with reading(path), pa.input_stream(path, compression="detect") as stream:
        packed = isinstance(stream, pa.CompressedInputStream)  # whose `read` keeps its memory after an error

        def read(size: int) -> bytes:
            return stream.read_buffer(size).to_pybytes() if packed else stream.read(size)

        data = read(first)
        text = _as_utf8(path, next((name for mark, name in _MARKS.items() if data.startswith(mark)), encoding))
        found = text(data, False).removeprefix(codecs.BOM_UTF8)
        kind = next((kind for start, kind in _BINARY.items() if found.startswith(start) and b"\0" in found[:64]), "")
        if kind or b"\0" in found[: found.find(b"\n")]:
            other = "utf-16-be" if found.startswith(b"\0") else "utf-16-le"
            hint = f"UTF-16 without a byte-order mark is read with tb.table(path, encoding={other!r})."
            raise DataError(
                f"{path}, line 1: found {kind or 'NUL bytes'}; expected text.\n"
                f"    {'Unpack or rename the file: its name has to end in what it is.' if kind else hint}"
            )
        while data:
            yield found
            data = read(size)
            found = text(data, not data)
        if found:
            yield found


def check_utf8(path: str, piece: TextChunk, encoding: str) -> None:
    """Raise DataError, with the line, if a piece is not UTF-8."""
    try:
        piece.data.isascii() or piece.data.decode()
    except UnicodeDecodeError as error:
        line = piece.line + piece.data.count(b"\n" if b"\n" in piece.data else b"\r", 0, error.start)
        raise DataError(
            f"{path}, line {line}: found the byte 0x{piece.data[error.start]:02x}; expected text in {encoding}.\n"
            "    Say how it is written: tb.table(path, encoding='latin-1')."
        ) from None


def _as_utf8(path: str, encoding: str) -> Callable[[bytes, bool], bytes]:
    """What turns the next bytes of a file, perhaps its last, into UTF-8."""
    try:
        known = codecs.lookup(encoding)
    except LookupError:
        raise DataError(
            f"encoding is {encoding!r}; expected one that Python knows, such as 'utf8' or 'latin-1'."
        ) from None
    if known.name == "utf-8":  # is checked where it is parsed
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


def _last_end(path: str, line: int, data: bytes, delimiter: str | None) -> int:
    """Where the last whole row ends, of rows from a first one on; 0 where none does."""
    mark = b"\n" if b"\n" in data else b"\r"
    end = data.rfind(mark, 0, len(data) if mark == b"\n" else len(data) - 1)  # "\r" may be half of "\r\n"
    if delimiter is None or b'"' not in data:
        return end + 1
    quotes = _quotes(data, delimiter)
    _check_closed(path, line, data, quotes, delimiter)
    while end >= 0:
        n_before = int(np.searchsorted(quotes, end))
        if n_before % 2 == 0:
            break
        end = data.rfind(mark, 0, int(quotes[n_before - 1]))  # it is inside of a cell: look before the cell
    return end + 1


def _check_closed(path: str, line: int, data: bytes, quotes: np.ndarray, delimiter: str) -> None:
    """Raise DataError if the quote that ends a cell of several lines is followed by text: it opens another cell.

    The quote before it was never closed, so that the cells between them would be read as one.
    """
    cells = np.frombuffer(data, np.uint8)
    opened, closed = quotes[: len(quotes) - 1 : 2], quotes[1::2]
    after = cells[np.minimum(closed + 1, len(data) - 1)]
    stray = ~np.isin(after, np.frombuffer(b'"\r\n' + delimiter.encode(), np.uint8)) & (closed + 1 < len(data))
    if stray.any():
        ends = np.flatnonzero((cells == ord("\n")) | (cells == ord("\r")))
        long = stray & (np.searchsorted(ends, opened) < np.searchsorted(ends, closed))
        if long.any():
            raise _open_quote(path, line, data, int(opened[long][0]))


def _unclosed(path: str, line: int, data: bytes, delimiter: str | None) -> DataError | None:
    """The error for rows that end inside of a quoted cell, or None."""
    quotes = _quotes(data, delimiter) if delimiter is not None and b'"' in data else np.zeros(0, np.int64)
    return _open_quote(path, line, data, int(quotes[-1])) if len(quotes) % 2 else None


def _open_quote(path: str, line: int, data: bytes, place: int) -> DataError:
    line += data.count(b"\n" if b"\n" in data else b"\r", 0, place)
    found = data[place : place + 20].decode(errors="replace").splitlines()[0]
    return DataError(
        f"{path}, line {line}: a quote opens the cell {found!r} and is not closed; expected another quote at its end.\n"
        '    Close it, or double it where it is text: "5"" pipe".'
    )


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
