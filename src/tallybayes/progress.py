"""Progress of long work, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
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
