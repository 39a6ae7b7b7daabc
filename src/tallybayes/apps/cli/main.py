"""Where the command begins, and how it ends: an exit code, and never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What stands after `tally`; by default what was typed.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    of_spam = words[:1] == ["spam"]  # whose codes below 3 are verdicts
    if words in (["--help"], ["-h"]):
        from tallybayes.apps.cli.help_text import overview

        shown = overview()
        if shown is not None:
            sys.stdout.write(f"{shown}\n")
            return 0
    try:
        if of_spam:
            from tallybayes.apps.cli.fast_spam import run_fast_spam

            return run_fast_spam(words)
        from tallybayes.apps.cli.runner import run
    except ModuleNotFoundError as error:
        if (error.name or "tallybayes").startswith("tallybayes"):
            raise
        sys.stderr.write(
            f"error: the command needs {error.name}, which is not installed; expected cyclopts and rich.\n"
            "    Install what it needs: pip install 'tallybayes[command]'\n"
        )
        return 3 if of_spam else 1
    return run(words)
