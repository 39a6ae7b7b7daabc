"""Read and write text files of networks: untrusted, of limited size, compressed or not."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from typing import IO, Any

from tallybayes._utils.atomic_write import atomic_write
from tallybayes._utils.sealed_zip import FilePath
from tallybayes.errors import DataError, FileError

MAX_SIZE = 2**28  # bytes or characters of a file, uncompressed
_GZIP = b"\x1f\x8b"
_CHUNK = 2**20

TextSource = str | os.PathLike[str] | IO[Any]


def write_text(target: FilePath, pieces: Iterable[str]) -> None:
    """Write text to a file, atomically; compressed if its name ends in ``.gz``."""
    with atomic_write(target) as file, ExitStack() as stack:
        out: Any = file
        if (
            os.fsdecode(target).lower().endswith(".gz")
        ):  # without name and time, so that equal networks give equal bytes
            out = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        for piece in pieces:
            out.write(piece.encode())


def read_text(source: TextSource, reader: str) -> tuple[str, str]:
    """Return the text of a source and its name in messages; `reader` is the public method, for hints."""
    if isinstance(source, str) and "\n" in source:
        hint = f"Wrap the text of a file: tb.BayesianNetwork.{reader}(io.StringIO(text))."
        raise DataError.wrong_type("source", "text of several lines", "a path or a file object", hint)
    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        raise DataError.wrong_type("source", f"a {type(source).__name__}", "a path or a file object")
    with ExitStack() as stack:
        if isinstance(source, str | os.PathLike):
            source = stack.enter_context(open(source, "rb"))
        own_name = getattr(source, "name", None)
        name = os.fsdecode(own_name) if isinstance(own_name, str | bytes | os.PathLike) else "the text"
        content = _read(source, name, reader)
    if isinstance(content, str):
        return content, name
    if content.startswith(_GZIP):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as unpacked:
                content = _read(unpacked, name, reader)
        except (OSError, EOFError, zlib.error) as error:
            raise FileError.damaged(name, f"it cannot be decompressed ({error})") from error
    try:
        return content.decode(), name
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _not_utf8(name, reader, line, f"the byte 0x{content[error.start]:02x}") from error


def _read(file: IO[Any] | gzip.GzipFile, name: str, reader: str) -> Any:
    """Return the content of a file, text or bytes; raise FileError if it is too large."""
    parts: list[Any] = []
    size = 0
    try:
        while part := file.read(_CHUNK):
            if not isinstance(part, str | bytes) or type(part) is not type([*parts[:1], part][0]):
                raise DataError.wrong_type("source", f"a file object that gives {part!r:.40}", "one of text or bytes")
            parts.append(part)
            size += len(part)
            if size > MAX_SIZE:
                raise FileError(
                    f"{name} holds more than {MAX_SIZE >> 20} MiB, uncompressed; expected less.\n"
                    "    Split the network, or check that this is the right file."
                )
    except UnicodeDecodeError as error:  # from a file opened as text
        raise _not_utf8(name, reader, sum(part.count("\n") for part in parts) + 1, error.reason) from error
    return type(parts[0])().join(parts) if parts else ""


def _not_utf8(name: str, reader: str, line: int, what: str) -> FileError:
    hint = f"Save it as UTF-8, or pass it opened with its encoding: {reader}(open(path, encoding='latin-1'))."
    return FileError.bad_line(name, line, f"found {what}; expected text in UTF-8", hint)
