"""`tally spam check`, without what takes long to import: a mail is judged while somebody waits for its delivery."""

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
from tallybayes.apps.spam.unpacking import NotMailError, listed
from tallybayes.apps.spam.verdicts import CODES, Verdict, classify_mail, mails_or_reasons

REFUSED = 3


class CheckOptions(NamedTuple):
    """What stands on the command line; the options of `check` are the names here."""

    files: tuple[str, ...] = ()
    store: str | None = None
    header: bool = False
    json: bool = False
    thresholds: str | None = None
    costs: str | None = None


class CheckUsageError(tb.TallybayesError):
    """A command line that does not say what is to be done."""


def thresholds_of(thresholds: str | None, costs: str | None) -> Thresholds:
    """Where mail is ham, spam or neither, as it was typed: two probabilities, or three costs."""
    if thresholds is not None and costs is not None:
        raise CheckUsageError("--thresholds and --costs both say where a mail is spam; expected one of them.")
    if costs is not None:
        false_positive, false_negative, unsure = _numbers(costs, "costs", 3, "FALSE-POSITIVE,FALSE-NEGATIVE,UNSURE")
        if min(false_positive, false_negative) <= 0 or unsure < 0:
            raise CheckUsageError(f"--costs is {costs}; expected numbers above 0 (what UNSURE costs may be 0).")
        return thresholds_of_costs(false_positive, false_negative, unsure)
    if thresholds is None:
        return Thresholds()
    ham, spam = _numbers(thresholds, "thresholds", 2, "HAM,SPAM")
    if not 0 <= ham <= spam <= 1:
        raise CheckUsageError(f"--thresholds is {thresholds}; expected probabilities, HAM at most SPAM: 0.2,0.9.")
    return Thresholds(ham, spam)


def _numbers(text: str, option: str, n: int, form: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != n or any(one != one or one in (float("inf"), float("-inf")) for one in found):
        raise CheckUsageError(f"--{option} is {text!r}; expected {n} numbers: {form}.")
    return found


def check(asked: CheckOptions) -> int:
    """Judge mails, and write the verdicts; the exit code: 0 ham, 1 spam, 2 unsure, 3 where a mail was not judged."""
    thresholds = thresholds_of(asked.thresholds, asked.costs)
    if asked.header:
        return _check_through(asked, thresholds)
    files = asked.files or ("-",)
    codes = set()
    for name, verdict in classify_files(asked.store, files, thresholds):
        codes.add(_code(verdict))
        _write(name, verdict, asked, alone=files == ("-",))
    sys.stdout.flush()
    if not codes:
        raise StoreError(f"there is no mail in {' '.join(files)}, so there is no verdict.")
    return max(codes, key=(CODES["ham"], CODES["unsure"], CODES["spam"], REFUSED).index)


def classify_files(
    place: str | None, files: Sequence[str], thresholds: Thresholds
) -> Iterator[tuple[str, Verdict | OSError]]:
    """Names and verdicts of all mails of some files; why, of a file that cannot be read."""
    failed: list[tuple[str, OSError]] = []
    skipped: list[NotMailError] = []
    try:
        groups = [("", _readable(files, failed, skipped))]
        for _, found in in_processes(groups, partial(judge_some, place, thresholds), _import_kernel):
            yield from found
            while failed:
                yield failed.pop(0)
    finally:
        while _open:
            _open.popitem()[1].close()
    yield from failed
    if skipped:
        print_status(listed(skipped))


def _readable(
    files: Sequence[str], failed: list[tuple[str, OSError]], skipped: list[NotMailError]
) -> Iterator[tuple[str, bytes]]:
    for name, raw in mails_or_reasons(files, skipped):
        if isinstance(raw, OSError):
            failed.append((name, raw))
        else:
            yield name, raw


_open: dict[str | None, Store] = {}  # by place: processes that judge many mails look into their store once


def judge_some(place: str | None, thresholds: Thresholds, group: Grouped) -> list[tuple[str, Verdict]]:
    """The verdicts of some mails, each with its name."""
    store = _open.get(place) or _open.setdefault(place, Store(place, read_only=True))
    if len(group[1]) <= FEW:
        return [(name, classify_mail(store, raw, thresholds)) for name, raw in group[1]]
    from tallybayes.apps.spam.tokens.message_batches import judge_batch

    names, raws = zip(*group[1], strict=True)
    return list(zip(names, judge_batch(store, raws, thresholds), strict=True))


def _import_kernel() -> None:
    from tallybayes.apps.spam.tokens.message_batches import empty_batch

    empty_batch()


def _code(verdict: Verdict | OSError) -> int:
    """The exit code of one mail."""
    return REFUSED if isinstance(verdict, OSError) else CODES[verdict.verdict]


def _write(name: str, verdict: Verdict | OSError, asked: CheckOptions, alone: bool) -> None:
    if isinstance(verdict, OSError):
        reason = (verdict.strerror or str(verdict)).lower()
        sys.stderr.write(f"error: {printable(name)}: {reason}.\n")
        return
    if asked.json:
        import json

        told = {"file": name, "verdict": verdict.verdict, "probability": verdict.probability}
        told |= {"log_odds": verdict.log_odds, "words": verdict.words}
        sys.stdout.write(json.dumps(told, ensure_ascii=True) + "\n")
    else:
        line = f"{verdict.verdict:<6} {verdict.probability:.6f}"
        sys.stdout.write(f"{line}\n" if alone else f"{line}  {printable(name)}\n")


# ---- With a header ----------------------------------------------------------------------------------------------


def _check_through(asked: CheckOptions, thresholds: Thresholds) -> int:
    """Write the mail with a header; whatever fails, the mail is written as it came, and the code is no verdict."""
    if len(asked.files) > 1:
        raise CheckUsageError(f"--header passes one mail through; found {len(asked.files)} files.")
    path = asked.files[0] if asked.files else "-"
    target = sys.stdout.buffer
    with open(path, "rb") if path != "-" else contextlib.nullcontext(sys.stdin.buffer) as source:
        raw = read_start(source)
        try:
            with Store(asked.store, read_only=True) as store:
                verdict = classify_mail(store, split(raw)[1], thresholds)
            pieces, failure = with_header(raw, header_of(verdict)), None
        except BaseException as error:
            pieces, failure = [raw], error
        for piece in pieces:
            target.write(piece)
        pass_on(source, target)
    if failure is not None:
        raise failure
    return CODES[verdict.verdict]


def pass_through(words: Sequence[str]) -> None:
    """Let a mail through, where what to do with it was not understood."""
    if "--header" in words and not sys.stdin.isatty() and not any(map(os.path.exists, words[2:])):
        pass_on(sys.stdin.buffer, sys.stdout.buffer)
