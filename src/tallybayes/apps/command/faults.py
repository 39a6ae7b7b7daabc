"""What is wrong, in the words of the command: messages of the library speak of Python."""

from __future__ import annotations

import re


class CommandError(Exception):
    """Something that cannot be done: what happened, what was found, what was expected, what to try."""


class UsageError(CommandError):
    """A command line that does not say what is to be done."""


# What a message of the library calls a setting is an option here.
_OPTIONS = "columns|delimiter|encoding|estimate|format|names|null_values|on_bad|order|prior|sequence|types|unlabelled"
_ROW = re.compile(r"\brow (\d+)\b")
_DATABASES = {"sqlite3", "duckdb", "_duckdb", "psycopg"}


def in_words(error: object) -> str | None:
    """What an error of the library, of a file or of a database says; None for what nobody foresaw."""
    home = type(error).__module__.partition(".")[0]
    names = {kind.__name__ for kind in type(error).__mro__}
    if {"TallybayesError", "TallybayesWarning"} & names:
        return _as_options(str(error))
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror[:1].lower()}{error.strerror[1:]}."
    if home in _DATABASES or {"ArrowException", "ArrowInvalid"} & names:
        return f"{str(error).strip()}"
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
    text = text.replace(
        "such as column.dt.month or the days since one.", "or leave the column out: --columns NAME=ignore."
    )
    return text.replace("Pass a path that", "Name a file that")
