"""What is wrong, in the words of the command: messages of the library speak of Python."""

from __future__ import annotations

import re

from tallybayes.errors import TallybayesError
from tallybayes.warnings import TallybayesWarning


class CommandError(Exception):
    """Something that cannot be done: what happened, what was found, what was expected, what to try."""


class UsageError(CommandError):
    """A command line that does not say what is to be done."""


# What a message of the library calls a setting is an option here.
_OPTIONS = "columns|delimiter|encoding|estimate|format|names|null_values|on_bad|order|prior|sequence|types|unlabeled"
_ROW = re.compile(r"\brow (\d+)\b")
_LIBRARIES = {"sqlite3", "duckdb", "_duckdb", "psycopg", "pyarrow"}


def user_message(error: object) -> str | None:
    """What an error of the library, of a file or of a database says; None for what nobody foresaw."""
    if isinstance(error, TallybayesError | TallybayesWarning):
        return _as_options(str(error))
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror[:1].lower()}{error.strerror[1:]}."
    if not _LIBRARIES.isdisjoint(kind.__module__.partition(".")[0] for kind in type(error).__mro__):
        return str(error).strip().replace("\n\t", "\n    ")  # a tab would be printed as \\t
    if isinstance(error, MemoryError):
        return "there is not enough memory.\n    Take fewer rows or columns, or a model that counts batch by batch."
    return None


def _as_options(text: str) -> str:
    """Settings of Python as options of the command line; rows, which Python counts from 0, from 1."""
    text = _ROW.sub(lambda found: f"row {int(found[1]) + 1}", text)

    def option(found: re.Match[str]) -> str:
        return f"--{found[1].replace('_', '-')} {found[2]}"

    text = re.sub(rf"tb\.table\([^()]*?\b({_OPTIONS})=['\"]([\w.-]+)['\"]\)", option, text)
    text = re.sub(r"tb\.table\([^()]*?\btypes=\{[^}]*\}\)", "--types NAME=TYPE", text)
    text = re.sub(rf"\b({_OPTIONS})='([\w.-]+)'", option, text)
    lines: list[str] = []
    for line in text.split("\n"):
        spoken = next((said for part, said in _SPOKEN.items() if part in line), None)
        spoken = _replaced(line) if spoken is None else spoken
        if lines and _PYTHON.search(spoken):
            continue  # a hint that speaks of Python helps nobody here
        lines.append(spoken)
    return "\n".join(lines)


def _replaced(line: str) -> str:
    """Short phrases of Python as those of the command."""
    for part, said in _PHRASES.items():
        line = line.replace(part, said)
    return line


# Hints of the library by a part of them, and what helps in the command instead.
_SPOKEN = {
    "To ignore them, leave these columns out": "    Leave the column out: --columns NAME=ignore.",
    "Turn dates into": "    Leave the column out: --columns NAME=ignore.",
    "Turn durations into": "    Leave the column out: --columns NAME=ignore.",
    "Turn times of day": "    Leave the column out: --columns NAME=ignore.",
    "Turn bytes into": "    Leave the column out: --columns NAME=ignore.",
    "Give every part of them": "    Leave the column out: --columns NAME=ignore.",
    "Expected a file written by save()": "    Expected a model of 'tally fit'.",
    "or import the module that defines it": "    Upgrade with pip install --upgrade tallybayes.",
    "Pass the columns the model was fitted on": "    DATA needs the columns that the model was fitted on.",
    "Name those to be read: tb.table": "    Give all files the same columns.",
    "Name them with one *": "    Name files of one kind, with one pattern.",
    "unlabeled='em'": "    Pass --unlabeled em to use such rows, or --unlabeled skip to leave them out.",
    "prior such as tb.": "    Pass --estimate bayes, or more rows.",
    "Learn it with partial_fit": "    'tally show' lists the classes.",
}
_PHRASES = {
    "Pass a path that": "Name a file that",
    "expected a line of names, or names=[...] and rows": "expected a line of names, or --names NAME … and rows",
    "names=[...]": "--names NAME …",
    "sample_weight": "--weight",
    "n_components is": "--components is",
    "n_states is": "--states is",
    "degree is": "--degree is",
    "what Receipt.save wrote": "a file of 'tally forget --receipt'",
    "columns=[...]": "--columns",
}
# What only Python's users know: calls, keyword arguments, attributes of the package.
_PYTHON = re.compile(
    r"\btb\.|\bpd\.|\bsklearn\b|\w=[\[{'\"(]|\w\(\)?\.|\.\w+\(|\w\(\.\.\.|\bpartial_fit\b|\bfit_tally\b|\w+_\b(?!=)|astype|=None|=True|=False"
)
