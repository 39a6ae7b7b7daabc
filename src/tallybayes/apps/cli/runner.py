"""Run one command: print warnings and errors on standard error, and return the exit code."""

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

DONE = 0
ERROR = 1
USAGE = 2
ERROR_OF_SPAM = 3  # exit codes of `tally spam check` below 3 are verdicts
USAGE_OF_SPAM = 64
FAULT = 70
INTERRUPTED = 130
PIPE_CLOSED = 141


def run(arguments: Sequence[str]) -> int:
    """Run the command in the arguments and return the exit code."""
    with _warnings_in_words():
        try:
            app = make_app(next((word for word in arguments if word in COMMANDS), None), arguments)
            words = [
                STANDARD_INPUT if word == "-" else word for word in arguments
            ]  # cyclopts would read - as an option
            command, bound, *_ = app.parse_args(words, exit_on_error=False, print_error=False)
            code = command(*bound.args, **bound.kwargs)
            sys.stdout.flush()
            return code if isinstance(code, int) else DONE
        except BaseException as error:
            return ended(error, arguments)


def ended(error: BaseException, arguments: Sequence[str]) -> int:
    """Print the message of an error and return its exit code."""
    if os.environ.get("TALLY_TRACEBACK") and not isinstance(error, BrokenPipeError | SystemExit):
        sys.stderr.write(redacted("".join(traceback.format_exception(error))))
    is_spam = list(arguments[:1]) == ["spam"]
    error_code, usage_code = (ERROR_OF_SPAM, USAGE_OF_SPAM) if is_spam else (ERROR, USAGE)
    if isinstance(error, BrokenPipeError):
        _close_standard_output()
        return PIPE_CLOSED
    if isinstance(error, KeyboardInterrupt):
        state = "changes committed before remain" if is_spam else "nothing was changed"
        print_problem("error", f"interrupted; {state}.")
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else DONE if error.code is None else error_code
    if isinstance(error, CycloptsError | _usage_errors(is_spam)):
        unused = error.unused_tokens if isinstance(error, UnusedCliTokensError) else []
        problem = f"unexpected arguments: {printable(' '.join(unused))}." if unused else printable_lines(error)
        print_problem("error", f"{problem}\n    See '{_help_of(arguments)}'.")
        return usage_code
    message = str(error) if isinstance(error, CommandError) else user_message(error)
    if message is not None:
        print_problem("error", message)
        return error_code
    print_problem(
        "error",
        f"internal error: {type(error).__name__}: {printable(error)}\n"
        "    This is a bug in Tallybayes. Please report it with the command line, the output with\n"
        "    TALLY_TRACEBACK=1 set, and the versions:\n"
        "    python -c 'import tallybayes; tallybayes.show_versions()'",
    )
    return FAULT


def _usage_errors(of_spam: bool) -> Any:
    """Return the classes of errors in a command line."""
    if not of_spam:
        return UsageError
    from tallybayes.apps.spam.check_mail import CheckUsageError

    return UsageError | CheckUsageError


def _help_of(arguments: Sequence[str]) -> str:
    """Return the command line that shows the help for some arguments."""
    names = [word for word in arguments[:1] if word in COMMANDS]
    if names == ["spam"]:
        from tallybayes.apps.cli.commands.spam import COMMANDS as OF_SPAM

        names += [word for word in arguments[1:2] if word in OF_SPAM]
    return " ".join(["tally", *names, "--help"])


def printable_lines(error: BaseException) -> str:
    """Return the message of a usage error with unprintable characters escaped."""
    return "\n".join(map(printable, str(error).strip().splitlines()))


@contextmanager
def _warnings_in_words() -> Iterator[None]:
    """Print each distinct warning once on standard error."""
    shown: set[str] = set()

    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if str(message) not in shown and not issubclass(category, DeprecationWarning | FutureWarning):
            shown.add(str(message))
            print_problem("warning", user_message(message) or str(message))

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("default")
        warnings.showwarning = show
        yield


def _close_standard_output() -> None:
    """Redirect standard output to the null device, so that Python does not fail when it flushes it at exit."""
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open until the end
