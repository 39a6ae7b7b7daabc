"""Maximum number of threads of the kernels."""

from __future__ import annotations

import os

from tallybayes.errors import DataError

_most: int | None = None  # None: read from the environment at first use; 0: one thread per core


def set_threads(n: int) -> None:
    """Set the maximum number of threads of this package. Results do not depend on it.

    The environment variable ``TALLYBAYES_THREADS`` sets it when Python starts. Neither affects the threads of NumPy's
    linear algebra libraries, which have their own variables (``OPENBLAS_NUM_THREADS``).

    Parameters
    ----------
    n : int
        Maximum number of threads; 0 for one per core.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.set_threads(1)
    >>> tb.set_threads(0)                                             # one per core
    """
    global _most
    _most = _checked(n, "the number of threads")


def threads(n: int = 0) -> int:
    """Return the number of threads to start if `n` are requested: `n`, or the maximum for 0; 0 means one per core."""
    global _most
    if n < 0:
        raise ValueError(f"threads is {n}, expected 0 (one per core) or more")
    if _most is None:
        _most = _checked(os.environ.get("TALLYBAYES_THREADS") or 0, "the environment variable TALLYBAYES_THREADS")
    return n or _most


def _checked(n: int | str, name: str) -> int:
    """Return a number of threads as int, or raise DataError."""
    try:
        number = int(n) if isinstance(n, str) else n
    except ValueError:
        number = -1
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise DataError(f"{name} is {n!r}; expected a whole number: 0 for one thread per core, or the maximum.")
    return number
