"""Entry point of the command `tally`. Errors become an exit code and a message, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after `tally`; by default those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    is_spam = words[:1] == ["spam"]  # its exit codes below 3 are verdicts
    if words in (["--help"], ["-h"]):
        from tallybayes.apps.cli.help_text import overview

        text = overview()
        if text is not None:
            sys.stdout.write(f"{text}\n")
            return 0
    try:
        if is_spam:
            from tallybayes.apps.cli.fast_spam import run_fast_spam

            return run_fast_spam(words)
        from tallybayes.apps.cli.runner import run
    except ModuleNotFoundError as error:
        if (error.name or "tallybayes").startswith("tallybayes"):
            raise
        sys.stderr.write(
            f"error: the command needs {error.name}, which is not installed.\n"
            "    Install its requirements: pip install cyclopts rich\n"
        )
        return 3 if is_spam else 1
    return run(words)
