"""How much memory there is, so that too much is refused before it is asked for."""

from __future__ import annotations

import os
from pathlib import Path

from tallybayes.errors import TooLargeError

SMALL = 1 << 26  # bytes that are always had: asking what is free takes longer than a small fit
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_memory() -> int:
    """The bytes that can be had without swapping: the least of what the system has free and a container may use.

    Examples
    --------
    >>> from tallybayes._utils.memory import available_memory
    >>> available_memory() > 0
    True
    """
    found = [_free(), *(_number(Path(name)) for name in _CGROUPS)]
    return min((number for number in found if number is not None), default=4 << 30)


def require_memory(needed: int, what: str, hint: str) -> None:
    """Refuse what memory cannot hold, before anything of it is made.

    Parameters
    ----------
    needed : int
        Bytes, all that is there at a time.
    what : str
        What needs them, for the message.
    hint : str
        What to try instead.

    Examples
    --------
    >>> from tallybayes._utils.memory import require_memory
    >>> require_memory(8 * 1000, "a thousand numbers", "Take fewer.")
    """
    if needed > SMALL:
        available = available_memory()
        if needed > available:
            raise TooLargeError.of(what, needed, available, hint)


def _free() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return None
