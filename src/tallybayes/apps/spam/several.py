"""Many mails on all cores: read here, and taken apart in processes of their own once there are more than a few."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Found = TypeVar("Found")
Named = tuple[str, bytes]

_FEW = 64  # mails that are done before a process could have been started
_MAILS, _BYTES = 250, 1 << 22  # that are handed over at a time


def in_processes(mails: Iterable[Named], work: Callable[[list[Named]], Found]) -> Iterator[Found]:
    """What some work makes of mails, some at a time and in their order.

    Parameters
    ----------
    mails : iterable of (name, bytes)
        Read as the work goes on: few are held.
    work : callable
        A function of a module, which other processes find.
    """
    left = _chunks(mails)
    first = next(left, None)
    if first is None:
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    second = next(left, None)
    if second is None or cores < 2 or not hasattr(os, "fork"):
        yield work(first)
        if second is not None:
            yield work(second)
            yield from map(work, left)
        return
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor

    with ProcessPoolExecutor(cores, multiprocessing.get_context("fork")) as pool:
        waiting: deque[Future[Found]] = deque([pool.submit(work, first), pool.submit(work, second)])
        try:
            for chunk in left:
                waiting.append(pool.submit(work, chunk))
                if len(waiting) > 2 * cores:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _chunks(mails: Iterable[Named]) -> Iterator[list[Named]]:
    chunk: list[Named] = []
    size, most = 0, _FEW
    for mail in mails:
        chunk.append(mail)
        size += len(mail[1])
        if len(chunk) >= most or size >= _BYTES:
            yield chunk
            chunk, size, most = [], 0, _MAILS
    if chunk:
        yield chunk
