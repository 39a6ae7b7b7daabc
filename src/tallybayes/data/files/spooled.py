"""Pipes and open files: copies in temporary files, since sources read their files more than once."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from tallybayes.data.files.json_lines import reject_array
from tallybayes.errors import DataError

if TYPE_CHECKING:
    from typing import IO

_MAGIC = {b"PAR1": "parquet", b"ARRO": "ipc", b"\xff\xff\xff\xff": "ipc"}
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst", b"\x04\x22\x4d\x18": ".lz4"}


class Spooled(NamedTuple):
    """A temporary copy of a stream, with its format."""

    folder: str
    path: str
    format: str

    def remove(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)


def is_stream(data: object) -> bool:
    """Return whether this is an open file, or the path of a pipe or device, which can be read only once."""
    if not isinstance(data, str):
        return isinstance(data, io.IOBase)
    device = data.startswith(("/dev/", "/proc/")) and not data.startswith("/dev/shm/")  # files in memory
    return device or (os.path.exists(data) and Path(data).is_fifo())


def spool(data: str | IO[str] | IO[bytes]) -> Spooled:
    """Copy a pipe or an open file to a temporary file, whose name shows the original name in messages.

    Parameters
    ----------
    data : str or open file
        A text or binary file; it is read from its current position.
    """
    if isinstance(data, str):
        with open(data, "rb") as file:
            return _copied(file, data)
    of_input = data is sys.stdin or data is getattr(sys.stdin, "buffer", None)
    return _copied(data, "standard input" if of_input else str(getattr(data, "name", "") or "the open file"))


def _copied(stream: IO[str] | IO[bytes], name: str) -> Spooled:
    """Copy a stream to a temporary file, and detect its format and compression."""
    folder = tempfile.mkdtemp(prefix="tally-spool-")
    try:
        path = os.path.join(folder, quote(name, safe="").replace(".", "%2E"))
        with open(path, "wb") as file:
            while block := stream.read(1 << 20):
                file.write(block.encode() if isinstance(block, str) else block)
        with open(path, "rb") as file:
            magic = file.read(4)
        ending = next((ending for start, ending in _PACKED.items() if magic.startswith(start)), "")
        os.rename(path, path + ending)
        return Spooled(folder, path + ending, _MAGIC.get(magic) or _format_of_text(path + ending, name))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _format_of_text(path: str, name: str) -> str:
    """Return "json" or "csv" by the first bytes of a text file."""
    import pyarrow as pa

    try:
        with pa.input_stream(path, compression="detect") as stream:
            # `read` of a compressed file does not free memory after an error.
            text = stream.read_buffer(1 << 16).to_pybytes().lstrip(b"\xef\xbb\xbf \t\r\n\0")
    except OSError as error:
        raise DataError(
            f"{name} cannot be decompressed: {error}.\n    Restore the file, or decompress it first."
        ) from None
    if not text:
        raise DataError(f"{name} is empty; expected CSV with a line of names, or JSON lines.")
    reject_array(name, text)
    return "json" if text[:1] == b"{" else "csv"
