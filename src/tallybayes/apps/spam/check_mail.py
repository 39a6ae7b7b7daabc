"""`tally spam check` without slow imports: a mail is classified while its delivery waits."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import tallybayes as tb
from tallybayes.apps.cli.console import print_status, printable
from tallybayes.apps.spam.header_pass_through import header_of, pass_on, read_start, split, with_header
from tallybayes.apps.spam.spam_score import Thresholds, thresholds_of_costs
from tallybayes.apps.spam.store.backends import StoreError
from tallybayes.apps.spam.store.spam_store import Store
from tallybayes.apps.spam.tokens.parallel import FEW, Grouped, in_processes
from tallybayes.apps.spam.unpacking import NotMailError, describe_skipped
from tallybayes.apps.spam.verdicts import CODES, Verdict, classify_mail, mails_or_errors

ERROR = 3


class CheckOptions(NamedTuple):
    """Options of `tally spam check`, by their names on the command line."""

    files: tuple[str, ...] = ()
    store: str | None = None
    header: bool = False
    json: bool = False
    thresholds: str | None = None
    costs: str | None = None


class CheckUsageError(tb.TallybayesError):
    """Invalid command line of `tally spam check`."""


def thresholds_of(thresholds: str | None, costs: str | None) -> Thresholds:
    """Return the thresholds of the options: two probabilities, or three costs."""
    if thresholds is not None and costs is not None:
        raise CheckUsageError("--thresholds and --costs exclude each other; pass one of them.")
    if costs is not None:
        false_positive, false_negative, unsure = _numbers(costs, "costs", 3, "FALSE-POSITIVE,FALSE-NEGATIVE,UNSURE")
        if min(false_positive, false_negative) <= 0 or unsure < 0:
            raise CheckUsageError(f"--costs is {costs}; expected positive numbers (UNSURE may be 0).")
        return thresholds_of_costs(false_positive, false_negative, unsure)
    if thresholds is None:
        return Thresholds()
    ham, spam = _numbers(thresholds, "thresholds", 2, "HAM,SPAM")
    if not 0 <= ham <= spam <= 1:
        raise CheckUsageError(
            f"--thresholds is {thresholds}; expected two probabilities with HAM at most SPAM, such as 0.2,0.9."
        )
    return Thresholds(ham, spam)


def _numbers(text: str, option: str, n: int, expected: str) -> list[float]:
    """Parse comma-separated finite numbers. Raise CheckUsageError unless there are `n`."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != n or any(value != value or value in (float("inf"), float("-inf")) for value in values):
        raise CheckUsageError(f"--{option} is {text!r}; expected {n} numbers: {expected}.")
    return values


def check(options: CheckOptions) -> int:
    """Classify mails and print the verdicts. Return the exit code: 0 ham, 1 spam, 2 unsure, 3 if one is unreadable."""
    thresholds = thresholds_of(options.thresholds, options.costs)
    if options.header:
        return _check_through(options, thresholds)
    files = options.files or ("-",)
    codes = set()
    for name, verdict in classify_files(options.store, files, thresholds):
        codes.add(_code(verdict))
        _write(name, verdict, options, alone=files == ("-",))
    sys.stdout.flush()
    if not codes:
        raise StoreError(f"{' '.join(files)} contains no mail; expected files or folders of mail.")
    return max(codes, key=(CODES["ham"], CODES["unsure"], CODES["spam"], ERROR).index)


def classify_files(
    location: str | None, files: Sequence[str], thresholds: Thresholds
) -> Iterator[tuple[str, Verdict | OSError]]:
    """Yield the name and verdict of each mail of the files; an OSError for a file that cannot be read."""
    failed: list[tuple[str, OSError]] = []
    skipped: list[NotMailError] = []
    try:
        groups = [("", _readable(files, failed, skipped))]
        for _, verdicts in in_processes(groups, partial(_classify_group, location, thresholds), _import_kernel):
            yield from verdicts
            while failed:
                yield failed.pop(0)
    finally:
        while _open:
            _open.popitem()[1].close()
    yield from failed
    if skipped:
        print_status(describe_skipped(skipped))


def _readable(
    files: Sequence[str], failed: list[tuple[str, OSError]], skipped: list[NotMailError]
) -> Iterator[tuple[str, bytes]]:
    """Yield the mails that can be read. Append the errors of the others to `failed`."""
    for name, raw in mails_or_errors(files, skipped):
        if isinstance(raw, OSError):
            failed.append((name, raw))
        else:
            yield name, raw


_open: dict[str | None, Store] = {}  # by location: a process opens a store once


def _classify_group(location: str | None, thresholds: Thresholds, group: Grouped) -> list[tuple[str, Verdict]]:
    """Return the name and verdict of each mail of a group."""
    store = _open.get(location) or _open.setdefault(location, Store(location, read_only=True))
    if len(group[1]) <= FEW:
        return [(name, classify_mail(store, raw, thresholds)) for name, raw in group[1]]
    from tallybayes.apps.spam.tokens.message_batches import classify_batch

    names, raws = zip(*group[1], strict=True)
    return list(zip(names, classify_batch(store, raws, thresholds), strict=True))


def _import_kernel() -> None:
    """Import the compiled kernels before processes are forked."""
    from tallybayes.apps.spam.tokens.message_batches import empty_batch

    empty_batch()


def _code(verdict: Verdict | OSError) -> int:
    """Return the exit code of one mail."""
    return ERROR if isinstance(verdict, OSError) else CODES[verdict.verdict]


def _write(name: str, verdict: Verdict | OSError, options: CheckOptions, alone: bool) -> None:
    """Print a verdict on standard output, or an error on standard error."""
    if isinstance(verdict, OSError):
        reason = (verdict.strerror or str(verdict)).lower()
        sys.stderr.write(f"error: {printable(name)}: {reason}.\n")
        return
    if options.json:
        import json

        document = {"file": name, "verdict": verdict.verdict, "probability": verdict.probability}
        document |= {"log_odds": verdict.log_odds, "words": verdict.words}
        sys.stdout.write(json.dumps(document, ensure_ascii=True) + "\n")
    else:
        line = f"{verdict.verdict:<6} {verdict.probability:.6f}"
        sys.stdout.write(f"{line}\n" if alone else f"{line}  {printable(name)}\n")


# ---- With a header ----------------------------------------------------------------------------------------------


def _check_through(options: CheckOptions, thresholds: Thresholds) -> int:
    """Copy the mail to standard output with a header. After an error, copy it unchanged and raise the error."""
    if len(options.files) > 1:
        raise CheckUsageError(f"--header passes one mail through; found {len(options.files)} files; expected one.")
    path = options.files[0] if options.files else "-"
    target = sys.stdout.buffer
    with open(path, "rb") if path != "-" else contextlib.nullcontext(sys.stdin.buffer) as source:
        raw = read_start(source)
        try:
            with Store(options.store, read_only=True) as store:
                verdict = classify_mail(store, split(raw)[1], thresholds)
            pieces = with_header(raw, header_of(verdict))
            failure = None
        except BaseException as error:
            pieces = [raw]
            failure = error
        for piece in pieces:
            target.write(piece)
        pass_on(source, target)
    if failure is not None:
        raise failure
    return CODES[verdict.verdict]


def pass_through(words: Sequence[str]) -> None:
    """Copy the mail to standard output if the other options could not be parsed."""
    if "--header" in words and not sys.stdin.isatty() and not any(map(os.path.exists, words[2:])):
        pass_on(sys.stdin.buffer, sys.stdout.buffer)
