"""Help of `tally --help`: the commands. It is shown without importing a library."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from textwrap import wrap

HELP = """\
Fit models to tables by counting; query, update, merge and compare them.

DATA is a file (.csv, .tsv, .jsonl, .parquet, .arrow; text may be gzipped),
a pattern ('2026-*.csv', in quotes), - for standard input (CSV or JSON lines),
or a database with --table or --query: duckdb:FILE, sqlite:FILE, postgresql://…

  tally fit penguins.csv --target species
  tally predict penguins-auto.tally new.csv --proba
  tally evaluate penguins-auto.tally test.csv
  tally update penguins-auto.tally monday.csv

Results go to standard output, all else to standard error. Exit codes:
0 success, 1 error in the data, the model or a file, 2 invalid command line,
70 internal error, 130 interrupted, 141 closed output pipe.\
"""

# In the order of the help. Each is a function of the module of its name, imported when the command is run.
COMMANDS = {
    "fit": "Fit a model to a table and write it to a file.",
    "predict": "Predict the target of every row.",
    "evaluate": "Compute the metrics of a model on rows with known targets.",
    "audit": "Check rows against a fitted model.",
    "explain": "Explain predictions by the contributions of the columns.",
    "show": "Show the columns, counts and parameters of a model.",
    "diff": "Show the differences between two models, in rows and in bits.",
    "update": "Add rows to a model.",
    "forget": "Remove rows from a model exactly.",
    "window": "Create a model of a sliding window, or with exponential decay.",
    "receipt": "Verify a receipt of 'tally forget' against a model.",
    "merge": "Merge models fitted on separate data.",
    "sample": "Draw rows from a model.",
    "export": "Export a model as SQL, ONNX or BIF.",
    "report": "Write an HTML report on a classifier and its predictions.",
    "query": "Compute posterior distributions of a Bayesian network.",
    "spam": "Train and run a spam filter.",
    "demo": "Demonstrate the library on a table of 569 tumors.",
}
COMPLETION = "Install completion of commands and options for the shell."
_OPTIONS = {
    "--help (-h)": "Display this message and exit.",
    "--install-completion": COMPLETION,
    "--version": "Display application version.",
}


def overview() -> str | None:
    """Return the help as cyclopts shows it, or None if the terminal is too narrow for its lines."""
    width = shutil.get_terminal_size().columns
    if width < max(map(len, HELP.splitlines())):
        return None
    boxes = [*_box("Commands", COMMANDS, width), *_box("Options", _OPTIONS, width)]
    return "\n".join(["Usage: tally COMMAND", "", HELP, "", *boxes])


def _box(title: str, lines: Mapping[str, str], width: int) -> list[str]:
    """Return a box with a title and a line for each name."""
    name_width = max(map(len, lines))
    text_width = max(width - name_width - 6, 10)
    box = [f"╭─ {title} {'─' * (width - len(title) - 5)}╮"]
    for name, text in lines.items():
        for position, line in enumerate(wrap(text, text_width)):
            box.append(f"│ {name if not position else '':<{name_width}}  {line:<{text_width}} │")
    return [*box, f"╰{'─' * (width - 2)}╯"]
