"""Progress lines on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def progress(items: Sequence[T], what: str, after: float = 2.0) -> Iterator[T]:
    """Yield the items; after `after` seconds, show the progress on the terminal."""
    start = last_shown = time.monotonic()
    for number, item in enumerate(items):
        now = time.monotonic()
        if now - start > after and now - last_shown > 0.5 and sys.stderr.isatty():
            last_shown, remaining = now, (now - start) / number * (len(items) - number)
            sys.stderr.write(f"\r{what}: {number} of {len(items)}, {remaining:.0f} s left ")
            sys.stderr.flush()
        yield item
    if last_shown > start:
        sys.stderr.write(f"\r{what}: done{' ' * 40}\n")


def progress_of(
    items: Iterable[T],
    what: str,
    size: Callable[[T], int],
    total: int | None = None,
    after: float = 1.0,
    unit: str = "rows",
) -> Iterator[T]:
    """Yield items (batches of rows); after `after` seconds, show the number of rows on the terminal.

    `size` returns the number of rows of an item; `total` is their sum, if known.
    """
    start = last_shown = time.monotonic()
    done = 0
    for item in items:
        yield item
        done += size(item)
        now = time.monotonic()
        if now - start > after and now - last_shown > 0.2 and sys.stderr.isatty():
            last_shown, rate = now, done / (now - start)
            if total:
                n_filled = min(24, 24 * done // total)
                remaining = f"{max(0, total - done) / rate:.0f} s left"
                bar = f"[{'█' * n_filled}{'░' * (24 - n_filled)}] {done:,} of {total:,} {unit}, {remaining}"
            else:
                bar = f"{done:,} {unit}, {rate:,.0f} a second"
            sys.stderr.write(f"\r{what}: {bar}   ")
            sys.stderr.flush()
    if last_shown > start:
        sys.stderr.write(f"\r{what}: {done:,} {unit} in {time.monotonic() - start:.1f} s{' ' * 60}\n")
