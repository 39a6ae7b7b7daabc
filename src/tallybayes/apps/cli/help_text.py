"""What `tally --help` says: the commands there are. Written by hand, so that it comes before libraries are imported."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from textwrap import wrap

HELP = """\
Learn from tables by counting; ask, change, merge and compare what was learned.

DATA is a file (.csv, .tsv, .jsonl, .parquet, .arrow; text may be packed, .gz),
a pattern ('2026-*.csv', in quotes), - for standard input (CSV or JSON lines),
or a database with --table or --query: duckdb:FILE, sqlite:FILE, postgresql://…

  tally fit penguins.csv --target species
  tally predict penguins-auto.tally new.csv --proba
  tally evaluate penguins-auto.tally test.csv
  tally update penguins-auto.tally monday.csv

Answers go to standard output, all else to standard error. Exit codes: 0 done,
1 refused (the data, the model or a file), 2 the command line is wrong,
70 a fault of ours, 130 interrupted, 141 who reads the output has gone.\
"""

# In the order of the help; each is a function of a file of its name, imported when it is asked for.
COMMANDS = {
    "fit": "Learn a model from a table, and write it to a file.",
    "predict": "Say what a model predicts of every row.",
    "evaluate": "Measure a model's answers on rows whose answers are known.",
    "audit": "Say what is wrong with some rows, by what a model has counted.",
    "explain": "Say why a model predicts what it does, of some rows.",
    "show": "Show what a model has counted and learned.",
    "diff": "Show what changed from one model to another, in rows and in bits.",
    "update": "Count more rows into a model.",
    "forget": "Take rows out of a model again, as if never seen.",
    "window": "Keep a model of the last rows alone, or let old rows fade.",
    "receipt": "Check a receipt of 'tally forget' against a model.",
    "merge": "Add up models that were learned apart.",
    "sample": "Draw rows from a model.",
    "export": "Write a model for where the rows are: as SQL, ONNX or BIF.",
    "report": "Write a page about a classifier: what it counted, how good it is, and why.",
    "query": "Ask a Bayesian network what follows from what is known.",
    "spam": "A spam filter that learns from mail, judges it, says why, and forgets again.",
    "demo": "Show the main job on a made-up table.",
}
COMPLETION = "Let the shell complete commands and options."
_OPTIONS = {
    "--help (-h)": "Display this message and exit.",
    "--install-completion": COMPLETION,
    "--version": "Display application version.",
}


def overview() -> str | None:
    """The help of the whole, as cyclopts would show it; None where the terminal is too narrow for its lines."""
    width = shutil.get_terminal_size().columns
    if width < max(map(len, HELP.splitlines())):
        return None
    boxes = [*_box("Commands", COMMANDS, width), *_box("Options", _OPTIONS, width)]
    return "\n".join(["Usage: tally COMMAND", "", HELP, "", *boxes])


def _box(title: str, lines: Mapping[str, str], width: int) -> list[str]:
    names = max(map(len, lines))
    room = max(width - names - 6, 10)
    found = [f"╭─ {title} {'─' * (width - len(title) - 5)}╮"]
    for name, said in lines.items():
        for place, part in enumerate(wrap(said, room)):
            found.append(f"│ {name if not place else '':<{names}}  {part:<{room}} │")
    return [*found, f"╰{'─' * (width - 2)}╯"]
