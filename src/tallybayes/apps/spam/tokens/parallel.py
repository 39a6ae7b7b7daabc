"""Many mails on all cores: read here, and taken apart in processes of their own once there are more than a few."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from tallybayes.apps.spam.store.backends import StoreError

Found = TypeVar("Found")
Named = tuple[str, bytes]
Grouped = tuple[str, list[Named]]

FEW = 64  # mails that are done before a process could have been started
_MAILS, _BYTES = 500, 1 << 22  # that are handed over at a time
_WAITING = 8  # of these for each core, so that nobody is idle while the results are written


def in_processes(
    groups: Iterable[tuple[str, Iterable[Named]]], work: Callable[[Grouped], Found], prepare: Callable[[], object]
) -> Iterator[tuple[str, Found]]:
    """What some work makes of mails, some of one group at a time and in their order.

    Parameters
    ----------
    groups : iterable of (group, mails), where a mail is (name, bytes)
        Read as the work goes on: few are held.
    work : callable
        A function of a module, which other processes find, of a group and a list of mails.
    prepare : callable
        Called before there are other processes: what is imported once here is not imported in each of them.
    """
    left = (chunk for group, mails in groups for chunk in _chunks(group, mails))
    first = next(left, None)
    if first is None:
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    second = next(left, None)
    if second is None or cores < 2 or not hasattr(os, "fork"):
        for chunk in chain([first], [] if second is None else [second], left):
            yield chunk[0], work(chunk)
        return
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    prepare()
    with ProcessPoolExecutor(cores, multiprocessing.get_context("fork")) as pool:
        waiting: deque[tuple[str, Future[Found]]] = deque()
        try:
            for chunk in chain([first, second], left):
                waiting.append((chunk[0], pool.submit(work, chunk)))
                while waiting and (len(waiting) > _WAITING * cores or waiting[0][1].done()):
                    group, future = waiting.popleft()
                    yield group, future.result()
            while waiting:
                group, future = waiting.popleft()
                yield group, future.result()
        except BrokenProcessPool as error:
            raise StoreError(
                "a process that took mails apart was killed, perhaps for want of memory.\n"
                "    What was learned before stays learned; the same command again goes on."
            ) from error
        finally:
            for _, future in waiting:
                future.cancel()


def _chunks(group: str, mails: Iterable[Named]) -> Iterator[Grouped]:
    chunk: list[Named] = []
    size, most = 0, FEW
    for mail in mails:
        chunk.append(mail)
        size += len(mail[1])
        if len(chunk) >= most or size >= _BYTES:
            yield group, chunk
            chunk, size, most = [], 0, _MAILS
    if chunk:
        yield group, chunk
