"""Timing that survives a noisy machine: contenders take turns, medians are compared, ratios are what counts.

Seconds measured in different runs (or minutes) must not be compared; the ratios within one table may.
"""

from __future__ import annotations

import gc
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Contender = Callable[[], object]
SLOW_SECONDS = 5.0


@dataclass(frozen=True)
class Timing:
    """What one contender took, round by round."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def _seconds(contender: Contender) -> float:
    start = time.perf_counter()
    contender()
    return time.perf_counter() - start


def race(contenders: dict[str, Contender], rounds: int = 5) -> list[Timing]:
    """Warm every contender up once, then time all of them in turn, `rounds` times.

    A contender that needs more than a few seconds is timed in its warm-up and left out of the rounds.
    """
    times: dict[str, list[float]] = {}
    slow: dict[str, float] = {}
    for name, contender in contenders.items():
        warm_up = _seconds(contender)
        if warm_up > SLOW_SECONDS:
            slow[name] = warm_up
        times[name] = [warm_up] if name in slow else []
    for _ in range(rounds):
        for name, contender in contenders.items():
            if name not in slow:
                gc.collect()
                times[name].append(_seconds(contender))
    return [Timing(name, tuple(seconds)) for name, seconds in times.items()]


def table(title: str, timings: list[Timing], reference: str, floor: str | None = None) -> str:
    """Return a markdown table: median, how much faster than `reference`, and how many times the `floor` it takes."""
    medians = {timing.name: timing.median for timing in timings}
    head = ["contender", "median ms", f"× faster than {reference}"]
    if floor is not None:
        head.append(f"× the time to {floor}")
    lines = [f"### {title}", "", "| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for timing in timings:
        cells = [timing.name, f"{1e3 * timing.median:.2f}", f"{medians[reference] / timing.median:.2f}"]
        if floor is not None:
            cells.append(f"{timing.median / medians[floor]:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return 1024 * int(line.split()[1])
    raise OSError("/proc/self/status does not tell VmRSS; peak_memory needs Linux")


def peak_memory(contender: Contender, interval: float = 0.0005) -> int:
    """Return by how many bytes the process grew while the contender ran, sampled by a second thread."""
    gc.collect()
    before = peak = _resident_bytes()
    running = True

    def watch() -> None:
        nonlocal peak
        while running:
            peak = max(peak, _resident_bytes())
            time.sleep(interval)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = contender()  # kept until the last sample
        peak = max(peak, _resident_bytes())
    finally:
        running = False
        watcher.join()
    del result
    return peak - before
