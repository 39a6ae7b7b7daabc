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
from typing import Any

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


def best_ratio(ours: Contender, yardstick: Contender, rounds: int) -> float:
    """How many times faster ours is at its best than the yardstick at its own, the two taking turns."""
    both = {"ours": ours, "yardstick": yardstick}
    found = {timing.name: min(timing.seconds) for timing in race(both, rounds)}
    return found["yardstick"] / found["ours"]


class Timed:
    """Stands for the kernels, or for an object of theirs, and adds up the time within their calls."""

    def __init__(self, target: Any, spent: list[float]) -> None:
        self._target, self._spent = target, spent

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            plain = [one._target if isinstance(one, Timed) else one for one in arguments]
            start = time.perf_counter()
            try:
                result = found(*plain, **options)
            finally:
                self._spent[0] += time.perf_counter() - start
            return Timed(result, self._spent) if type(result).__module__.startswith("tallybayes.") else result

        return call


def serial_share(contender: Contender, prepare: Contender | None = None, rounds: int = 5) -> float:
    """The share of a contender's time that is not spent in calls of the kernels: what more cores do not shorten.

    `prepare` makes anew what holds objects of the kernels, such as a fitted model that shall predict.
    """
    from tallybayes.kernels import active

    before, shares = active.module, []
    for _ in range(rounds):
        spent = [0.0]
        active.module = Timed(before, spent)  # type: ignore[assignment]
        try:
            if prepare is not None:
                prepare()
                spent[0] = 0.0
            whole = _seconds(contender)
        finally:
            active.module = before
        shares.append(1 - spent[0] / whole)
    return statistics.median(shares)


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
