"""Threads: one thread for linear algebra libraries, and items computed ahead in a second thread."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


def single_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS and LAPACK use one thread, which is faster for small matrices."""
    return _blas_libraries("scipy.linalg" in sys.modules).limit(limits=1)


@cache
def _blas_libraries(with_scipy: bool) -> ThreadpoolController:
    """Return the loaded BLAS libraries, found once with SciPy's and once without: finding them can take long."""
    return ThreadpoolController().select(user_api="blas")


def computed_ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield items, each computed in another thread while the one before is used."""
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1) as other:
        following = other.submit(next, iterator, end)
        while (item := following.result()) is not end:
            following = other.submit(next, iterator, end)
            yield item  # type: ignore[misc]  # not the end
