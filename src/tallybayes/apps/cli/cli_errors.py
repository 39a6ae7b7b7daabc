"""Errors of the command line, and messages of the library with options in place of Python parameters."""

from __future__ import annotations

import re
import shlex

import tallybayes as tb
from tallybayes.apps.cli.family_names import FAMILY_WORDS


class CommandError(Exception):
    """Base class of errors of the command, with a message for the user."""


class UsageError(CommandError):
    """Invalid or missing argument of the command line."""


# Parameters of the library that are options of the command.
_OPTIONS = "columns|delimiter|encoding|estimate|format|names|null_values|on_bad|order|prior|sequence|types|unlabeled"
_FAMILY_OF_COLUMN = re.compile(r"('[^']*'|\.\.\.): (tb\.\w+\(\)|'\w+')")
_COLUMNS = re.compile(rf"\bcolumns=\{{((?:{_FAMILY_OF_COLUMN.pattern}(?:, )?)+)\}}")
_ROW = re.compile(r"\brow (\d+)\b")
_LIBRARIES = {"sqlite3", "duckdb", "_duckdb", "psycopg", "pyarrow"}


def user_message(error: object) -> str | None:
    """Return the message of an error of the library, a file or a database; None for an unexpected error."""
    if isinstance(error, tb.TallybayesError | tb.TallybayesWarning):
        return _as_options(str(error))
    if isinstance(error, OSError) and error.strerror:
        prefix = f"{error.filename}: " if error.filename else ""
        return f"{prefix}{error.strerror[:1].lower()}{error.strerror[1:]}."
    if not _LIBRARIES.isdisjoint(kind.__module__.partition(".")[0] for kind in type(error).__mro__):
        return str(error).strip().replace("\n\t", "\n    ")  # a tab would be printed as \\t
    if isinstance(error, MemoryError):
        return "not enough memory.\n    Use fewer rows or columns, or a model that is fitted batch by batch."
    return None


def _as_options(text: str) -> str:
    """Replace Python parameters by options of the command, and row numbers from 0 by row numbers from 1."""
    text = _ROW.sub(lambda match: f"row {int(match[1]) + 1}", text)

    def option(match: re.Match[str]) -> str:
        return f"--{match[1].replace('_', '-')} {match[2]}"

    text = re.sub(rf"tb\.table\([^()]*?\b({_OPTIONS})=['\"]([\w.-]+)['\"]\)", option, text)
    text = re.sub(r"tb\.table\([^()]*?\btypes=\{[^}]*\}\)", "--types NAME=TYPE", text)
    text = re.sub(rf"\b({_OPTIONS})='([\w.-]+)'", option, text)
    text = "\n".join(map(_with_families, text.split("\n")))
    lines: list[str] = []
    for line in text.split("\n"):
        hint = next((hint for part, hint in _HINTS.items() if part in line), None)
        hint = _replace_phrases(line) if hint is None else hint
        if lines and _PYTHON.search(hint):
            continue  # hints with Python code are dropped
        lines.append(hint)
    return "\n".join(lines)


def _with_families(line: str) -> str:
    """Replace ``columns={'a': tb.Gaussian()}`` by ``--columns a=gaussian``, and then other families of the line."""

    def word(family: str) -> str:
        word = next((word for word, name in FAMILY_WORDS.items() if family == f"tb.{name}()"), None)
        return word or family.strip("'")

    def option(match: re.Match[str]) -> str:
        families = dict(_FAMILY_OF_COLUMN.findall(match[1]))
        if families.get("...") == "'auto'":
            del families["..."]  # the default of the command
        named = [name.strip("'") + "=" + word(family) for name, family in families.items()]
        return f"--columns {shlex.join(named)}" if named else match[0]

    with_options = _COLUMNS.sub(option, line)
    return line if with_options == line else re.sub(r"tb\.\w+\(\)", lambda match: word(match[0]), with_options)


def _replace_phrases(line: str) -> str:
    """Replace short Python phrases by those of the command."""
    for part, phrase in _PHRASES.items():
        line = line.replace(part, phrase)
    return line


# Part of a hint of the library -> hint of the command. A test finds each part in a message of the library.
_HINTS = {
    **dict.fromkeys(
        (
            "To ignore them, drop these columns",
            "Convert dates to",
            "Convert durations to",
            "Convert times of day",
            "Convert bytes to",
            "Split them into",
        ),
        "    Leave the column out: --columns NAME=ignore.",
    ),
    "Expected a file written by save()": "    Expected a model written by 'tally fit'.",
    "or import the module that defines it": "    Upgrade with pip install --upgrade tallybayes.",
    "Pass the columns the model was fitted on": "    DATA needs the columns that the model was fitted on.",
    "Select the columns to read: tb.table": "    Give all files the same columns.",
    "unlabeled='em'": "    Pass --unlabeled em to use such rows, or --unlabeled skip to leave them out.",
    "prior such as tb.": "    Pass --estimate bayes, or more rows.",
    **dict.fromkeys(
        ("Fit one with the spec of the other", "Fix the choice first"),
        "    Fit one with 'tally fit --like' and the other model.",
    ),
    "Add it with partial_fit": "    'tally show' lists the classes.",
}
_PHRASES = {
    "names=[...]": "--names NAME …",
    "sample_weight": "--weight",
    "n_components": "--components",
    "n_states is": "--states is",
    "degree is": "--degree is",
    "a file written by Receipt.save": "a file of 'tally forget --receipt'",
    "columns=[...]": "--columns",
}
# Python code: calls, keyword arguments, attributes of the package.
_PYTHON = re.compile(
    r"\btb\.|\bpd\.|\bsklearn\b|\w=[\[{'\"(]|\w\(\)?\.|\.\w+\(|\w\(\.\.\.|\bpartial_fit\b|\bfit_tally\b|\w+_\b(?!=)|astype|=None|=True|=False"
)
