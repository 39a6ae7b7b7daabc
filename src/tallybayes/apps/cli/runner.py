"""Running one command: warnings and errors in words, on standard error, and the exit code."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cyclopts import CycloptsError, UnusedCliTokensError

from tallybayes.apps.cli.app import make_app
from tallybayes.apps.cli.cli_errors import CommandError, UsageError, user_message
from tallybayes.apps.cli.console import STANDARD_INPUT, print_problem, printable
from tallybayes.apps.cli.help_text import COMMANDS
from tallybayes.messages import redacted

DONE, REFUSED, USAGE, FAULT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 70, 130, 141
REFUSED_BY_SPAM, USAGE_OF_SPAM = 3, 64  # below 3 are verdicts


def run(arguments: Sequence[str]) -> int:
    """Do what some words ask for; the exit code."""
    with _warnings_in_words():
        try:
            app = make_app(next((word for word in arguments if word in COMMANDS), None), arguments)
            words = [STANDARD_INPUT if word == "-" else word for word in arguments]  # which would be an option
            command, bound, *_ = app.parse_args(words, exit_on_error=False, print_error=False)
            code = command(*bound.args, **bound.kwargs)
            sys.stdout.flush()
            return code if isinstance(code, int) else DONE
        except BaseException as error:
            return ended(error, arguments)


def ended(error: BaseException, arguments: Sequence[str]) -> int:
    """The exit code after an error, which is told."""
    if os.environ.get("TALLY_TRACEBACK") and not isinstance(error, BrokenPipeError | SystemExit):
        sys.stderr.write(redacted("".join(traceback.format_exception(error))))
    of_spam = list(arguments[:1]) == ["spam"]
    refused, usage = (REFUSED_BY_SPAM, USAGE_OF_SPAM) if of_spam else (REFUSED, USAGE)
    if isinstance(error, BrokenPipeError):
        _close_standard_output()
        return PIPE_CLOSED
    if isinstance(error, KeyboardInterrupt):
        kept = "what was learned before stays learned" if of_spam else "nothing was changed"
        print_problem("error", f"interrupted; {kept}.")
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else DONE if error.code is None else refused
    if isinstance(error, CycloptsError | _usage_errors(of_spam)):
        unused = error.unused_tokens if isinstance(error, UnusedCliTokensError) else []
        found = f"unexpected arguments: {printable(' '.join(unused))}." if unused else printable_lines(error)
        print_problem("error", f"{found}\n    See '{_help_of(arguments)}'.")
        return usage
    told = str(error) if isinstance(error, CommandError) else user_message(error)
    if told is not None:
        print_problem("error", told)
        return refused
    print_problem(
        "error",
        f"this should not have happened: {type(error).__name__}: {printable(error)}\n"
        "    It is a fault of Tallybayes, not yours. Please report it with what you typed and what\n"
        "    TALLY_TRACEBACK=1 tally … shows; `python -c 'import tallybayes; tallybayes.show_versions()'`\n"
        "    tells the versions.",
    )
    return FAULT


def _usage_errors(of_spam: bool) -> Any:
    """Return the classes of errors in a command line."""
    if not of_spam:
        return UsageError
    from tallybayes.apps.spam.check_mail import CheckUsageError

    return UsageError | CheckUsageError


def _help_of(arguments: Sequence[str]) -> str:
    """What to type for the help that is needed."""
    names = [word for word in arguments[:1] if word in COMMANDS]
    if names == ["spam"]:
        from tallybayes.apps.cli.commands.spam import COMMANDS as OF_SPAM

        names += [word for word in arguments[1:2] if word in OF_SPAM]
    return " ".join(["tally", *names, "--help"])


def printable_lines(error: BaseException) -> str:
    """What a wrong command line is told, in lines that a terminal only shows."""
    return "\n".join(map(printable, str(error).strip().splitlines()))


@contextmanager
def _warnings_in_words() -> Iterator[None]:
    """Warnings are lines on standard error, each once."""
    told: set[str] = set()

    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if str(message) not in told and not issubclass(category, DeprecationWarning | FutureWarning):
            told.add(str(message))
            print_problem("warning", user_message(message) or str(message))

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("default")
        warnings.showwarning = show
        yield


def _close_standard_output() -> None:
    """Who reads has gone: nothing more is written, also when Python ends."""
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open until the end
