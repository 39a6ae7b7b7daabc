"""Floors under the promises of RESULTS.md: a small, quick form of each, which fails when it is half as fast as it was.

Run it with ``make floors`` or ``python benchmarks/floors.py [word ...]``: words choose the floors whose names hold one.
Every figure is how many times faster ours is than its yardstick (a peer, NumPy, or the time to read the bytes), best
of rounds in which both take turns. A floor that fails is tried again, alone and longer, before it counts.
``--record`` prints the table of recorded figures to paste into `floor_values.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import floor_files  # noqa: F401 - adds its cases
import floor_text  # noqa: F401 - adds its cases
from floor_cases import CASES, Case
from floor_values import V3, V4
from harness import best_ratio

from tallybayes import kernels

ROUNDS, LONGER = 5, 25
RECORDED = V4 if kernels.implementation().endswith("v4") else V3


def measure(case: Case, rounds: int) -> float:
    """How many times faster than its yardstick a case is."""
    ours, yardstick = case()
    return best_ratio(ours, yardstick, rounds)


def report(name: str, found: float, note: str = "") -> None:
    recorded = RECORDED.get(name)
    held = "no record" if recorded is None else f"recorded {recorded:8.3g}  floor {recorded / 2:8.3g}"
    print(f"{name:<46} {found:8.3g} ×   {held}  {note}".rstrip(), flush=True)


def fails(name: str, found: float) -> bool:
    return name in RECORDED and found < RECORDED[name] / 2


def main() -> None:
    parser = argparse.ArgumentParser(description="Fail where a promise is kept less than half as well as recorded.")
    parser.add_argument("words", nargs="*", help="only the floors whose names hold one of these")
    parser.add_argument("--record", action="store_true", help="print the table of figures to paste")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = {name: case for name, case in CASES.items() if not options.words or any(w in name for w in options.words)}
    print(f"kernels: {kernels.implementation()}; × faster than the yardstick")
    start, figures, low = time.perf_counter(), {}, []
    for name, case in chosen.items():
        figures[name] = measure(case, options.rounds)
        report(name, figures[name])
        low += [name] if fails(name, figures[name]) else []
    failed = []
    for name in [] if options.record else low:
        again = max(figures[name], measure(chosen[name], LONGER))
        failed += [name] if fails(name, again) else []
        report(name, again, "BELOW ITS FLOOR" if fails(name, again) else "(tried again)")
    print(f"{len(chosen)} floors in {time.perf_counter() - start:.0f} s, {len(failed)} broken")
    if options.record:
        print("V4 = {" if RECORDED is V4 else "V3 = {")
        for name, figure in figures.items():
            print(f'    "{name}": {figure:.3g},')
        print("}")
    if failed:
        sys.exit("broken floors: " + "; ".join(failed))


if __name__ == "__main__":
    main()
