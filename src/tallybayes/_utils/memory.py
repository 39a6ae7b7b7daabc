"""Available memory, checked before large allocations."""

from __future__ import annotations

import os
from pathlib import Path

from tallybayes.errors import TooLargeError

SMALL = 1 << 26  # bytes that are not checked: reading the free memory takes longer than a small fit
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_memory() -> int:
    """Return the bytes available without swapping, within the limit of the container.

    Examples
    --------
    >>> from tallybayes._utils.memory import available_memory
    >>> available_memory() > 0
    True
    """
    limits = [_free(), *(_number(Path(name)) for name in _CGROUPS)]
    return min((limit for limit in limits if limit is not None), default=4 << 30)


def require_memory(needed: int, what: str, hint: str) -> None:
    """Raise TooLargeError if an allocation would exceed the available memory.

    Parameters
    ----------
    needed : int
        Peak number of bytes.
    what : str
        Description of the allocation, for the message.
    hint : str
        Advice, for the message.

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
    """Return the free memory in bytes, or None if unknown."""
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
    """Return the number in a file, or None."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return None
