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
    """Run `tally spam …` and return the exit code: a verdict below 3, else 3 or more."""
    try:
        options = parse_simple_options(words[2:]) if words[1:2] == ["check"] else None
        if options is not None:
            return check(options)
        if words[1:2] == ["learn"] and (paths := read_paths(words[2:])) is not None:
            from tallybayes.apps.cli.commands.spam.learn import learn

            learn(**paths)
            sys.stdout.flush()
            return 0
    except BaseException as error:
        return _ended(error, words)
    from tallybayes.apps.cli.runner import USAGE_OF_SPAM, run

    code = run(words)
    if code == 0 and len(words) == 1:  # without a command the help was shown and no mail was classified
        return USAGE_OF_SPAM
    if code == USAGE_OF_SPAM and words[1:2] == ["check"]:
        pass_through(words)
    return code


def parse_simple_options(words: Sequence[str]) -> CheckOptions | None:
    """Return the options of `check`, or None if cyclopts has to parse them or to report their error."""
    parsed = _plain(words, _FLAGS, _VALUES)
    return None if parsed is None else CheckOptions(tuple(parsed[0]), **parsed[1])


def read_paths(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the options of `learn` if each occurs once with one path, else None."""
    files, options = _plain(words, {"json"}, {"ham", "spam", "store"}) or (["?"], {})
    paths: dict[str, Any] = {name: (options.pop(name),) for name in ("ham", "spam") if name in options}
    return None if files or not paths else {**paths, **options}


def _plain(words: Sequence[str], flags: set[str], values: set[str]) -> tuple[list[str], dict[str, Any]] | None:
    """Return the positional arguments and the options by name, or None if the arguments are not simple."""
    options: dict[str, Any] = {}
    files = []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("-") or word == "-":
            files.append(word)
            continue
        option, sign, value = word.partition("=")
        name = option.removeprefix("--")
        if not option.startswith("--") or name in options:
            return None
        if name in flags and not sign:
            options[name] = True
        elif name in values:
            value = value if sign else next(remaining, "")
            if not value or value.startswith("-"):
                return None
            options[name] = value
        else:
            return None
    return files, options


def _ended(error: BaseException, words: Sequence[str]) -> int:
    """Print an error and return its exit code; pass the mail through if the options of `check` are invalid."""
    try:
        from tallybayes.apps.cli.runner import USAGE_OF_SPAM, ended
    except ModuleNotFoundError:
        sys.stderr.write(redacted(f"error: {error or type(error).__name__}\n"))
        return 3
    code = ended(error, words)
    if code == USAGE_OF_SPAM:
        pass_through(words)
    return code
