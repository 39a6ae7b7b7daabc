"""Progress of long work, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def progress(items: Sequence[T], what: str, after: float = 2.0) -> Iterator[T]:
    """The items one by one; where that takes longer than `after` seconds, a line on the terminal says how far it is."""
    start = shown = time.monotonic()
    for number, item in enumerate(items):
        now = time.monotonic()
        if now - start > after and now - shown > 0.5 and sys.stderr.isatty():
            shown, left = now, (now - start) / number * (len(items) - number)
            sys.stderr.write(f"\r{what}: {number} of {len(items)}, {left:.0f} s left ")
            sys.stderr.flush()
        yield item
    if shown > start:
        sys.stderr.write(f"\r{what}: done{' ' * 40}\n")


def progress_of(
    items: Iterable[T],
    what: str,
    size: Callable[[T], int],
    total: int | None = None,
    after: float = 1.0,
    unit: str = "rows",
) -> Iterator[T]:
    """As `progress`, for batches of rows, of which it may not be known how many there are, or of something else."""
    start = shown = time.monotonic()
    done = 0
    for item in items:
        yield item
        done += size(item)
        now = time.monotonic()
        if now - start > after and now - shown > 0.2 and sys.stderr.isatty():
            shown, rate = now, done / (now - start)
            if total:
                filled = min(24, 24 * done // total)
                left = f"{max(0, total - done) / rate:.0f} s left"
                bar = f"[{'█' * filled}{'░' * (24 - filled)}] {done:,} of {total:,} {unit}, {left}"
            else:
                bar = f"{done:,} {unit}, {rate:,.0f} a second"
            sys.stderr.write(f"\r{what}: {bar}   ")
            sys.stderr.flush()
    if shown > start:
        sys.stderr.write(f"\r{what}: {done:,} {unit} in {time.monotonic() - start:.1f} s{' ' * 60}\n")
