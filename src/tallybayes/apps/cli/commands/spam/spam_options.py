"""What commands of the filter have in common: paths that are there, thresholds, counts of what was done."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import STANDARD_INPUT, print_status, printable

if TYPE_CHECKING:
    from tallybayes.apps.spam.train import TrainingOutcome

_TOLD = 5  # names that are told of mails that were left alone


def plain_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths as they were typed, which are all there."""
    found = tuple("-" if path == STANDARD_INPUT else path for path in paths)
    for path in found:
        if path != "-" and not os.path.exists(path):
            raise CommandError(f"there is no file {path!r}; expected mail.\n    Nothing was changed.")
        if path != "-" and not os.access(path, os.R_OK):
            raise CommandError(f"{path} cannot be read; expected mail.\n    Nothing was changed.")
    if found.count("-") > 1:
        raise UsageError("standard input is named twice; expected once.")
    return found


def counting(parts: Iterable[TrainingOutcome], what: str) -> Iterator[TrainingOutcome]:
    """The same, with a line on the terminal that says how far it is, where it takes long."""
    start, n, told = time.monotonic(), 0, False
    for part in parts:
        yield part
        n += len(part.names)
        if sys.stderr.isatty() and time.monotonic() - start > 1:
            told = True
            sys.stderr.write(f"\r{what}: {n:,} mails, {n / (time.monotonic() - start):,.0f} a second ")
            sys.stderr.flush()
    if told:
        sys.stderr.write(f"\r{what}: {n:,} mails in {time.monotonic() - start:.1f} s{' ' * 40}\n")


def summed(parts: Iterable[TrainingOutcome]) -> dict[str, Counter[str]]:
    """How many mails of each class became what; those that were left as the other class are named."""
    found: dict[str, Counter[str]] = {"ham": Counter(), "spam": Counter()}
    left: dict[str, list[str]] = {"ham": [], "spam": []}
    for part in parts:
        found[part.label].update(part.outcomes)
        pairs = zip(part.names, part.outcomes, strict=True)
        left[part.label] += [name for name, outcome in pairs if outcome == "other"]
    for label, names in left.items():
        if names:
            other = "ham" if label == "spam" else "spam"
            more = f" and {len(names) - _TOLD:,} more" if len(names) > _TOLD else ""
            print_status(f"learned as {other} before, and left so: {', '.join(map(printable, names[:_TOLD]))}{more}")
            print_status(f"    'tally spam relearn --as {label} PATH' makes them {label}")
    return found


def mails(n: int) -> str:
    """So many mails, in words."""
    return f"{n:,} mail" if n == 1 else f"{n:,} mails"


def described(state: Any) -> str:
    """What a store has, in a line."""
    return f"{state.ham:,} ham and {state.spam:,} spam, {state.words:,} words"
