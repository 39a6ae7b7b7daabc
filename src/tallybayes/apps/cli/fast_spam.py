"""Fast path of `tally spam check` and `tally spam learn`: parse simple options without importing cyclopts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tallybayes.apps.spam.check_mail import CheckOptions, check, pass_through
from tallybayes.messages import redacted

_DEFAULTS = dict(CheckOptions()._asdict())
_FLAGS = {name for name, value in _DEFAULTS.items() if value is False}
_VALUES = {name for name, value in _DEFAULTS.items() if value is None}


def run_fast_spam(words: Sequence[str]) -> int:
    """Run `tally spam …`; the exit code, which is a verdict or at least 3."""
    try:
        asked = parse_simple_options(words[2:]) if words[1:2] == ["check"] else None
        if asked is not None:
            return check(asked)
        if words[1:2] == ["learn"] and (paths := read_paths(words[2:])) is not None:
            from tallybayes.apps.cli.commands.spam.learn import learn

            learn(**paths)
            sys.stdout.flush()
            return 0
    except BaseException as error:
        return _ended(error, words)
    from tallybayes.apps.cli.runner import USAGE_OF_SPAM, run

    code = run(words)
    if code == 0 and len(words) == 1:  # no command was named: its help was shown, and nothing was judged
        return USAGE_OF_SPAM
    if code == USAGE_OF_SPAM and words[1:2] == ["check"]:
        pass_through(words)
    return code


def parse_simple_options(words: Sequence[str]) -> CheckOptions | None:
    """What is asked, where it is plain; None where it is for the others to read, or to say what is wrong with it."""
    found = _plain(words, _FLAGS, _VALUES)
    return None if found is None else CheckOptions(tuple(found[0]), **found[1])


def read_paths(words: Sequence[str]) -> dict[str, Any] | None:
    """The options of `fit_distribution`, where each comes once, with one path; None where not."""
    files, found = _plain(words, {"json"}, {"ham", "spam", "store"}) or (["?"], {})
    paths: dict[str, Any] = {name: (found.pop(name),) for name in ("ham", "spam") if name in found}
    return None if files or not paths else {**paths, **found}


def _plain(words: Sequence[str], flags: set[str], values: set[str]) -> tuple[list[str], dict[str, Any]] | None:
    """Words that are no options, and options with what they are."""
    found: dict[str, Any] = {}
    files = []
    left = iter(words)
    for word in left:
        if not word.startswith("-") or word == "-":
            files.append(word)
            continue
        option, sign, value = word.partition("=")
        name = option.removeprefix("--")
        if not option.startswith("--") or name in found:
            return None
        if name in flags and not sign:
            found[name] = True
        elif name in values:
            value = value if sign else next(left, "")
            if not value or value.startswith("-"):
                return None
            found[name] = value
        else:
            return None
    return files, found


def _ended(error: BaseException, words: Sequence[str]) -> int:
    try:
        from tallybayes.apps.cli.runner import USAGE_OF_SPAM, ended
    except ModuleNotFoundError:
        sys.stderr.write(redacted(f"error: {error or type(error).__name__}\n"))
        return 3
    code = ended(error, words)
    if code == USAGE_OF_SPAM:
        pass_through(words)
    return code
