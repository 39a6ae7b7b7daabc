"""Process many mails on all cores: this process reads them, others parse them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from tallybayes.apps.spam.store.backends import StoreError

Result = TypeVar("Result")
Named = tuple[str, bytes]
Grouped = tuple[str, list[Named]]

FEW = 64  # mails that are parsed before a process has started
_MAILS = 500  # maximum mails of a batch
_BYTES = 1 << 22  # maximum bytes of a batch
_WAITING = 8  # batches queued per core, so that no core is idle while results are written


def in_processes(
    groups: Iterable[tuple[str, Iterable[Named]]], work: Callable[[Grouped], Result], prepare: Callable[[], object]
) -> Iterator[tuple[str, Result]]:
    """Yield the results of a function of batches of mails, in order. A batch has mails of one group.

    Parameters
    ----------
    groups : iterable of (group, mails), where a mail is (name, bytes)
        Groups of mails, which are read lazily.
    work : callable
        Function of a module, of a group and a list of mails.
    prepare : callable
        Function that is called before other processes are forked, to import modules once.
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
        waiting: deque[tuple[str, Future[Result]]] = deque()
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
                "a process that parsed mails was killed, perhaps for lack of memory.\n"
                "    Learned mails remain learned; run the same command again to continue."
            ) from error
        finally:
            for _, future in waiting:
                future.cancel()


def _chunks(group: str, mails: Iterable[Named]) -> Iterator[Grouped]:
    """Yield batches of mails; the first is small."""
    chunk: list[Named] = []
    size = 0
    most = FEW
    for mail in mails:
        chunk.append(mail)
        size += len(mail[1])
        if len(chunk) >= most or size >= _BYTES:
            yield group, chunk
            chunk = []
            size = 0
            most = _MAILS
    if chunk:
        yield group, chunk
