"""Models in files: opened, and written so that nothing is ever lost."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import print_status
from tallybayes.apps.cli.stream_models import is_stream


def load(path: str, *kinds: type, whole: bool = False) -> Any:
    """The model of a file, one of these kinds or any.

    Parameters
    ----------
    path : str
        A file of `tally fit`; one that ends in .bif or .json is a network.
    *kinds : type
        The expected classes.
    whole : bool, default False
        Give a window, or a fading model, as such, and not the model in it, by which it answers.
    """
    import tallybayes as tb

    require(path)
    name = path.lower().removesuffix(".gz")
    readers: dict[str, Any] = {".bif": tb.BayesianNetwork.from_bif, ".json": tb.BayesianNetwork.from_json}
    model: Any = readers.get(os.path.splitext(name)[1], tb.load)(path)
    if is_stream(model):
        if whole:
            return model
        model = model.model_
    name = type(model).__name__
    if not hasattr(model, "fit"):
        raise CommandError(f"{path} holds a {name}; expected a model.\n    'tally fit' writes one.")
    if kinds and not isinstance(model, kinds):
        raise CommandError(f"{path} is a {name}; expected a {' or a '.join(kind.__name__ for kind in kinds)}.")
    return model


def target_of(model: Any) -> str | None:
    """The name of the column that a model predicts; None where it predicts none by itself."""
    import tallybayes as tb

    if not isinstance(model, tb.LinearRegression):
        return getattr(model, "target_", None)
    return next(str(one.column) for one in model.summary().columns if one.family.startswith("target"))


def read_by(model: Any, source: Any) -> Any:
    """The rows as a model takes them: a mixture has no name for columns that are not its own."""
    import tallybayes as tb

    if not isinstance(model, tb.Mixture):
        return source

    names = [str(one.column) for one in model.summary().columns]
    return tb.table(source, columns=[name for name in source.schema.names if name in names])


def require(path: str) -> None:
    """Refuse the name of a model that is not there."""
    if not os.path.exists(path):
        raise CommandError(f"there is no file {path!r}; expected a model.\n    'tally fit' writes one.")


def check_free(path: str, force: bool) -> None:
    """Refuse a place where no model can be written, or where something is that was not to be replaced."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise CommandError(f"there is no folder {folder!r} for {path}; nothing was written.\n    Make it first.")
    if os.path.lexists(path) and not force:
        raise CommandError(
            f"{path} is there already; nothing was written.\n    Name another with -o, or pass --force to replace it."
        )


def save(model: Any, path: str, *, force: bool = False) -> None:
    """Write a model to a new file, whole or not at all; one that is there is replaced only if that was said."""
    check_free(path, force)
    with locked(path):
        check_free(path, force)  # somebody else may have been quicker
        model.save(path)
    print_status(f"wrote {path}")


@contextlib.contextmanager
def locked(path: str, patience: float = 1.0) -> Iterator[None]:
    """Nobody else changes a model meanwhile: a lock file beside it, let go of also when its owner is killed."""
    place = os.path.realpath(path)
    name = os.path.join(os.path.dirname(place), f".{os.path.basename(place)}.lock")
    start, told = time.monotonic(), False
    while True:
        file = open(name, "ab")  # noqa: SIM115 - it is closed when the lock is let go of
        try:
            while not _lock(file):
                if not told and time.monotonic() - start > patience:
                    print_status(f"waiting for another tally that changes {path}")
                    told = True
                time.sleep(0.02)
            if _is_at(file, name):  # or its last owner has removed it, and others lock another
                break
        except BaseException:
            file.close()
            raise
        file.close()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)  # while it is locked; where an open file cannot be removed (Windows) it stays
        file.close()


def _lock(file: Any) -> bool:
    """Whether an open file is locked now."""
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


def _is_at(file: Any, name: str) -> bool:
    """Whether an open file is the one of this name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    return False
