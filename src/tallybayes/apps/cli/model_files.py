"""Read and write model files. Files are replaced atomically, and changes are serialized by lock files."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import print_status
from tallybayes.apps.cli.stream_models import is_stream
from tallybayes.messages import with_article

if TYPE_CHECKING:
    import tallybayes as tb
    from tallybayes.models.base import Model
    from tallybayes.models.streaming.stream_model import StreamModel


def load(path: str, *kinds: type, keep_stream: bool = False) -> Any:
    """Return the model of a file. Raise CommandError if it is not of the expected classes.

    Parameters
    ----------
    path : str
        A file of `tally fit`. A file name that ends in .bif or .json is a network.
    *kinds : type
        Expected classes; by default any.
    keep_stream : bool, default False
        Return a window or a decayed model itself, instead of its current model.
    """
    import tallybayes as tb

    require(path)
    name = path.lower().removesuffix(".gz")
    readers: dict[str, Any] = {".bif": tb.BayesianNetwork.from_bif, ".json": tb.BayesianNetwork.from_json}
    model: Any = readers.get(os.path.splitext(name)[1], tb.load)(path)
    if is_stream(model):
        if keep_stream:
            return model
        model = model.model_
    name = type(model).__name__
    if not hasattr(model, "fit"):
        raise CommandError(f"{path} contains {with_article(name)}; expected a model written by 'tally fit'.")
    if kinds and not isinstance(model, kinds):
        expected = " or ".join(with_article(kind.__name__) for kind in kinds)
        raise CommandError(f"{path} is {with_article(name)}; expected {expected}.")
    return model


def target_of(model: Model) -> str | None:
    """Return the name of the target column; None for a model without a target."""
    import tallybayes as tb

    if not isinstance(model, tb.LinearRegression):
        return getattr(model, "target_", None)
    return next(str(column.column) for column in model.summary().columns if column.family.startswith("target"))


def read_by(model: Model, source: tb.Source) -> tb.Source:
    """Return the rows with the columns of the model: a mixture raises an error for other columns."""
    import tallybayes as tb

    if not isinstance(model, tb.Mixture):
        return source

    names = [str(one.column) for one in model.summary().columns]
    return tb.table(source, columns=[name for name in source.schema.names if name in names])


def require(path: str) -> None:
    """Raise CommandError if a model file does not exist."""
    if not os.path.exists(path):
        raise CommandError(f"file {path!r} does not exist; expected a model written by 'tally fit'.")


def check_free(path: str, force: bool) -> None:
    """Raise CommandError if the folder does not exist, or if the file exists and `force` is False."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise CommandError(f"folder {folder!r} of {path} does not exist; nothing was written.\n    Create it first.")
    if os.path.lexists(path) and not force:
        raise CommandError(
            f"file {path} exists; nothing was written.\n    Pass another name with -o, or --force to replace it."
        )


def save(model: Model | StreamModel, path: str, *, force: bool = False) -> None:
    """Write a model to a file atomically. An existing file is replaced only with `force`."""
    check_free(path, force)
    with locked(path):
        check_free(path, force)  # another process may have written it meanwhile
        model.save(path)
    print_status(f"wrote {path}")


@contextlib.contextmanager
def locked(path: str, patience: float = 1.0) -> Iterator[None]:
    """Hold a lock file beside the model: no other process changes it. A dead process releases its lock."""
    target = os.path.realpath(path)
    name = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.lock")
    start = time.monotonic()
    shown = False
    while True:
        file = open(name, "ab")  # noqa: SIM115 - closed when the lock is released
        try:
            while not _lock(file):
                if not shown and time.monotonic() - start > patience:
                    print_status(f"waiting for another process that changes {path}")
                    shown = True
                time.sleep(0.02)
            if _is_at(file, name):  # else its last owner has removed it
                break
        except BaseException:
            file.close()
            raise
        file.close()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)  # while locked; Windows cannot remove an open file
        file.close()


def _lock(file: BinaryIO) -> bool:
    """Try to lock an open file, and return whether it is locked."""
    try:
        try:
            import fcntl
        except ModuleNotFoundError:  # Windows
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            return True
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except (BlockingIOError, PermissionError):
        return False


def _is_at(file: BinaryIO, name: str) -> bool:
    """Return whether an open file is the file of this name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    return False
