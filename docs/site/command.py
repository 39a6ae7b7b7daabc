"""The reference of the command: the help of `tally` and of its subcommands."""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from io import StringIO
from unittest import mock

from tallybayes.apps.cli.commands.spam import COMMANDS as SPAM_COMMANDS
from tallybayes.apps.cli.help_text import COMMANDS
from tallybayes.apps.cli.main import main

FILE = "reference/tally.md"
WIDTH = 88
INTRODUCTION = """
The help of the command and of every subcommand, as `tally COMMAND --help` shows it. [Command line](../command-line.md)
has examples, and a [table of the exit codes](../command-line.md#json-and-exit-codes).
"""


def help_of(*words: str) -> str:
    """Return the help of a subcommand."""
    out = StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}), redirect_stdout(out):
        main([*words, "--help"])
    return "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines())


def page() -> str:
    """Return the page, with a section for every subcommand."""
    every = [[name] for name in COMMANDS] + [["spam", name] for name in SPAM_COMMANDS]
    lines = ["# Command: tally", "", INTRODUCTION, "", "```text", help_of(), "```", ""]
    for words in every:
        name = " ".join(["tally", *words])
        lines += [f"## {name} {{ #{'-'.join(words)} .method }}", "", "```text", help_of(*words), "```", ""]
    return "\n".join(lines)
