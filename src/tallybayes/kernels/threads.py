"""How many threads work at a time: as many as there are cores, unless one says otherwise."""

from __future__ import annotations

import os

from tallybayes.errors import DataError

_most: int | None = None  # None: what the environment says, asked once; 0: all cores


def set_threads(n: int) -> None:
    """Let at most so many threads of this package work at a time. No result changes by it.

    The environment variable ``TALLYBAYES_THREADS`` says the same when Python starts. Neither touches the threads of
    NumPy's linear algebra, whose libraries have variables of their own (``OPENBLAS_NUM_THREADS``).

    Parameters
    ----------
    n : int
        0 for as many as there are cores.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.set_threads(1)
    >>> tb.set_threads(0)                                             # all cores again
    """
    global _most
    _most = _checked(n, "the number of threads")


def threads(n: int = 0) -> int:
    """How many threads to start where `n` are asked for, 0 for the most there may be; again 0 for all cores."""
    global _most
    if n < 0:
        raise ValueError(f"threads is {n}, expected 0 (as many as there are cores) or more")
    if _most is None:
        _most = _checked(os.environ.get("TALLYBAYES_THREADS") or 0, "the environment variable TALLYBAYES_THREADS")
    return n or _most


def _checked(n: int | str, what: str) -> int:
    try:
        found = int(n) if isinstance(n, str) else n
    except ValueError:
        found = -1
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise DataError(f"{what} is {n!r}; expected a whole number: 0 for all cores, or how many at most.")
    return found
