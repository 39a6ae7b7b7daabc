"""Atomic replacement of files: all of the new content, or the old file unchanged."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import time
from collections.abc import Iterator
from io import BufferedWriter

from tallybayes.errors import FileError

_STALE = 24 * 3600  # seconds after which an unmodified temporary file counts as abandoned
_TEMPORARY = re.compile(r"\.tallybayes-[0-9a-f]{16}\.tmp")


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BufferedWriter]:
    """Open a temporary file for writing, which replaces `path` at the end or is deleted after an error.

    Temporary files abandoned for a day or longer by killed processes are removed.
    """
    path = os.path.realpath(os.fsdecode(path))  # a symbolic link is kept and its target replaced
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no such folder", folder)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "is a directory; expected a file", path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileError.not_replaceable(path, "a pipe, a socket or a device")
    _remove_stale(folder)
    temporary = os.path.join(folder, f".tallybayes-{secrets.token_hex(8)}.tmp")
    with open(temporary, "xb") as file:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, os.stat(path).st_mode & 0o777)  # keep the permissions
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()  # Windows cannot rename an open file
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def _remove_stale(folder: str) -> None:
    """Remove abandoned temporary files of a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE:
                        os.unlink(entry.path)
