"""Chunks of whole rows of text files, also compressed ones."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from tallybayes.data.source import reading
from tallybayes.errors import DataError

_MOST = 8  # maximum length of a row, in multiples of the chunk size
_QUOTE = ord('"')
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

_BINARY = {b"\x1f\x8b": "gzip", b"PK\3\4": "a zip archive or a workbook", b"PAR1": "Parquet", b"ARROW1": "Arrow IPC"}


class TextChunk(NamedTuple):
    """Whole rows of a file as UTF-8, and the line number of the first."""

    data: bytes
    line: int


def row_chunks(
    path: str, first: int, size: int, *, delimiter: str | None = ",", encoding: str = "utf8"
) -> Iterator[TextChunk]:
    """Yield the rows of a file in chunks of a given size; quoted cells may contain line ends.

    Parameters
    ----------
    path : str
        Decompressed during reading if its name ends in .gz, .bz2, .zst or .lz4.
    first, size : int
        The number of bytes of the first chunk, and of the others.
    delimiter : str, optional
        The delimiter of cells; None if every line is a row, regardless of quotes.
    encoding : str
        The encoding; a byte-order mark of UTF-16 or UTF-32 takes precedence.
    """
    rest = b""
    line = 1
    for text, following in pairwise(chain(utf8_of(path, first, size, encoding), [None])):
        data = rest + (text or b"")
        end = _last_end(path, line, data, delimiter)
        if following is None:  # the last row may have no line end
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
        is_terminated = line > 1 or rest.endswith((b"\n", b"\r"))  # Arrow does not read a header without a line end
        yield TextChunk(rest if is_terminated else rest + b"\n", line)


def utf8_of(path: str, first: int, size: int, encoding: str = "utf8") -> Iterator[bytes]:
    """Yield the text of a file as UTF-8, without a byte-order mark, in blocks of about the given sizes."""
    import pyarrow as pa

    with reading(path), pa.input_stream(path, compression="detect") as stream:
        is_compressed = isinstance(stream, pa.CompressedInputStream)  # its `read` does not free memory after an error

        def read(size: int) -> bytes:
            return stream.read_buffer(size).to_pybytes() if is_compressed else stream.read(size)

        data = read(first)
        text = _as_utf8(path, next((name for mark, name in _MARKS.items() if data.startswith(mark)), encoding))
        converted = text(data, False).removeprefix(codecs.BOM_UTF8)
        kind = next(
            (kind for start, kind in _BINARY.items() if converted.startswith(start) and b"\0" in converted[:64]), ""
        )
        if kind or b"\0" in converted[: converted.find(b"\n")]:
            candidate = "utf-16-be" if converted.startswith(b"\0") else "utf-16-le"
            hint = f"UTF-16 without a byte-order mark is read with tb.table(path, encoding={candidate!r})."
            raise DataError(
                f"{path}, line 1: found {kind or 'NUL bytes'}; expected text.\n"
                f"    {'Unpack the file, or rename it with the ending of its format.' if kind else hint}"
            )
        while data:
            yield converted
            data = read(size)
            converted = text(data, not data)
        if converted:
            yield converted


def check_utf8(path: str, chunk: TextChunk, encoding: str) -> None:
    """Raise DataError, with the line, if a chunk is not UTF-8."""
    try:
        chunk.data.isascii() or chunk.data.decode()
    except UnicodeDecodeError as error:
        line = chunk.line + chunk.data.count(b"\n" if b"\n" in chunk.data else b"\r", 0, error.start)
        raise DataError(
            f"{path}, line {line}: found the byte 0x{chunk.data[error.start]:02x}; expected text in {encoding}.\n"
            "    Pass the encoding: tb.table(path, encoding='latin-1')."
        ) from None


def _as_utf8(path: str, encoding: str) -> Callable[[bytes, bool], bytes]:
    """Return the function that converts the next bytes of a file, and whether they are the last, to UTF-8."""
    try:
        codec = codecs.lookup(encoding)
    except LookupError:
        raise DataError(
            f"encoding is {encoding!r}; expected an encoding of Python, such as 'utf8' or 'latin-1'."
        ) from None
    if codec.name == "utf-8":  # it is checked during parsing
        return lambda data, last: data
    decoder = codec.incrementaldecoder()

    def text(data: bytes, last: bool) -> bytes:
        try:
            return decoder.decode(data, last).encode()
        except UnicodeError as error:
            raise DataError(
                f"{path} is not text in {encoding}: {error}.\n    Pass the encoding: tb.table(path, encoding=...)."
            ) from None

    return text


def _last_end(path: str, line: int, data: bytes, delimiter: str | None) -> int:
    """Return the position after the last complete row; 0 if there is none."""
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
        end = data.rfind(mark, 0, int(quotes[n_before - 1]))  # inside a cell: continue before the cell
    return end + 1


def _check_closed(path: str, line: int, data: bytes, quotes: np.ndarray, delimiter: str) -> None:
    """Raise DataError if text follows the quote that ends a cell of several lines.

    That quote then opens another cell, and the quote before it was never closed.
    """
    cells = np.frombuffer(data, np.uint8)
    opened = quotes[: len(quotes) - 1 : 2]
    closed = quotes[1::2]
    after = cells[np.minimum(closed + 1, len(data) - 1)]
    is_stray = ~np.isin(after, np.frombuffer(b'"\r\n' + delimiter.encode(), np.uint8)) & (closed + 1 < len(data))
    if is_stray.any():
        ends = np.flatnonzero((cells == ord("\n")) | (cells == ord("\r")))
        is_multiline = is_stray & (np.searchsorted(ends, opened) < np.searchsorted(ends, closed))
        if is_multiline.any():
            raise _open_quote(path, line, data, int(opened[is_multiline][0]))


def _unclosed(path: str, line: int, data: bytes, delimiter: str | None) -> DataError | None:
    """Return the error for rows that end inside a quoted cell, or None."""
    quotes = _quotes(data, delimiter) if delimiter is not None and b'"' in data else np.zeros(0, np.int64)
    return _open_quote(path, line, data, int(quotes[-1])) if len(quotes) % 2 else None


def _open_quote(path: str, line: int, data: bytes, position: int) -> DataError:
    """Return the error for a quoted cell without a closing quote."""
    line += data.count(b"\n" if b"\n" in data else b"\r", 0, position)
    cell = data[position : position + 20].decode(errors="replace").splitlines()[0]
    return DataError(
        f"{path}, line {line}: a quote opens the cell {cell!r} and is not closed; expected another quote at its end.\n"
        '    Close it, or double it where it is text: "5"" pipe".'
    )


def _quotes(data: bytes, delimiter: str) -> np.ndarray:
    """Return the positions of quotes that open and close cells, alternating, without quotes inside unquoted cells."""
    cells = np.frombuffer(data, np.uint8)
    positions = np.flatnonzero(cells == _QUOTE)
    before = cells[positions[::2] - 1]
    before[0] = before[0] if positions[0] else ord("\n")
    # An opening quote is the first character of a cell; two adjacent quotes in a cell are one quote of its text.
    if np.isin(before, np.frombuffer(b'"\r\n' + delimiter.encode(), np.uint8)).all():
        return positions
    start = rb"(?:\A|(?<=[\r\n" + re.escape(delimiter.encode()) + rb"]))"
    marks: list[int] = []
    for match in re.finditer(start + rb'"[^"]*(?:""[^"]*)*("|\Z)', data):
        marks += [match.start(), match.end() - 1] if match.group(1) else [match.start()]
    return np.array(marks, dtype=np.int64)
