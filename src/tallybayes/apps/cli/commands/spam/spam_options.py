"""Shared helpers of the spam commands: paths, progress and numbers of mails."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import STANDARD_INPUT, answer_json, print_status, printable

if TYPE_CHECKING:
    from tallybayes.apps.spam.store.spam_store import State, Store
    from tallybayes.apps.spam.train import TrainingOutcome
    from tallybayes.apps.spam.unpacking import NotMailError

_MAX_NAMES = 5  # names shown of mails that keep the other class


def plain_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths as they were typed. Raise an error if one does not exist or cannot be read."""
    plain = tuple("-" if path == STANDARD_INPUT else path for path in paths)
    for path in plain:
        if path != "-" and not os.path.exists(path):
            raise CommandError(f"file {path!r} does not exist; expected mail.\n    Nothing was changed.")
        if path != "-" and not os.access(path, os.R_OK):
            raise CommandError(f"{path} cannot be read; expected mail.\n    Nothing was changed.")
    if plain.count("-") > 1:
        raise UsageError("standard input is passed twice; expected at most once.")
    return plain


def paths_unless_ids(files: tuple[str, ...], ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of mails, by default standard input, or none if ids are passed instead."""
    if files and ids:
        raise UsageError("mail and --id exclude each other; pass one of them.")
    return plain_paths(files or (() if ids else ("-",)))


def show_progress(outcomes: Iterable[TrainingOutcome], title: str) -> Iterator[TrainingOutcome]:
    """Yield the same results, and print the progress in the terminal after one second."""
    start = time.monotonic()
    n = 0
    shown = False
    for outcome in outcomes:
        yield outcome
        n += len(outcome.names)
        if sys.stderr.isatty() and time.monotonic() - start > 1:
            shown = True
            sys.stderr.write(f"\r{title}: {n:,} mails, {n / (time.monotonic() - start):,.0f} a second ")
            sys.stderr.flush()
    if shown:
        sys.stderr.write(f"\r{title}: {n:,} mails in {time.monotonic() - start:.1f} s{' ' * 40}\n")


def count_outcomes(batches: Iterable[TrainingOutcome]) -> dict[str, Counter[str]]:
    """Return the numbers of mails by class and outcome. Print the mails that keep the other class."""
    counts: dict[str, Counter[str]] = {"ham": Counter(), "spam": Counter()}
    unchanged: dict[str, list[str]] = {"ham": [], "spam": []}
    for batch in batches:
        counts[batch.label].update(batch.outcomes)
        pairs = zip(batch.names, batch.outcomes, strict=True)
        unchanged[batch.label] += [name for name, outcome in pairs if outcome == "other"]
    for label, names in unchanged.items():
        if names:
            other = "ham" if label == "spam" else "spam"
            tail = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
            print_status(
                f"already learned as {other}, unchanged: {', '.join(map(printable, names[:_MAX_NAMES]))}{tail}"
            )
            print_status(f"    'tally spam relearn --as {label} PATH' changes them to {label}")
    return counts


class StoreSummary(NamedTuple):
    """A store after a change."""

    location: str
    state: State
    calibrated: bool

    def __str__(self) -> str:
        return f"{self.location} now has {describe_store(self.state)}"

    def answer_json(self, **numbers: object) -> None:
        """Print the location, the numbers of the change and the totals as JSON."""
        answer_json({"store": self.location, **numbers, "total": {"ham": self.state.ham, "spam": self.state.spam}})


def finish_change(store: Store, skipped: list[NotMailError], *, always: bool = False) -> StoreSummary:
    """Recalibrate a store after a change, and print the files that are not mail."""
    from tallybayes.apps.spam.train import recalibrate
    from tallybayes.apps.spam.unpacking import describe_skipped

    calibrated = recalibrate(store, always=always)
    if skipped:
        print_status(describe_skipped(skipped))
    return StoreSummary(store.location, store.state(), calibrated)


def mails(n: int) -> str:
    """Format a number of mails."""
    return f"{n:,} mail" if n == 1 else f"{n:,} mails"


def describe_store(state: State) -> str:
    """Describe the contents of a store in one line."""
    return f"{state.ham:,} ham and {state.spam:,} spam, {state.words:,} words"
