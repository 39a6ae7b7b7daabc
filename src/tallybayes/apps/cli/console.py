"""Output of the command: results on standard output, all else on standard error; colors only on a terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybayes.messages import redacted

if TYPE_CHECKING:
    File = str
else:

    class File(Path):
        """String type whose values the shell completes as file names: cyclopts does so for path types."""

        def __new__(cls, text: str) -> str:  # noqa: D102
            return text


STANDARD_INPUT = "stdin:"  # replaces the argument -; standard output, if it is a target
_STYLES = {"error": "bold red", "warning": "bold yellow"}


def print_problem(kind: str, text: str) -> None:
    """Print an error or a warning on standard error."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text.assemble((f"{kind}: ", _STYLES[kind]), printable_text(redacted(text))))


def print_status(text: str) -> None:
    """Print a status message for people on standard error."""
    sys.stderr.write(f"{printable_text(redacted(text))}\n")


def print_result(text: str) -> None:
    """Print a line of the result on standard output."""
    sys.stdout.write(f"{text}\n")


def answer_json(value: object) -> None:
    """Print the result as one JSON document. NaN becomes null; infinity becomes a string."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def answer_table(heads: Sequence[str], lines: Iterable[Sequence[object]], right: Iterable[int] = ()) -> None:
    """Print a table as wide as the terminal. Long cells are folded, never truncated."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False, padding=(0, 1, 0, 0))
    number_columns = set(right)
    for position, head in enumerate(heads):
        is_number = position in number_columns
        table.add_column(Text(head), justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for line in lines:
        table.add_row(*(Text(printable(cell)) for cell in line))
    console = Console(highlight=False)
    with console.capture() as output:
        console.print(table)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in output.get().splitlines())


def width() -> int:
    """Return the width of the terminal in characters."""
    from rich.console import Console

    return Console().width


def plain(value: object) -> object:
    """Convert a value to types of JSON: mappings, lists, strings, numbers, booleans and None."""
    if isinstance(value, Mapping):
        return {name if isinstance(name, str) else str(name): plain(part) for name, part in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def printable(value: object) -> str:
    """Escape unprintable characters: names and labels come from untrusted data."""
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable_text(text: str) -> str:
    """Escape unprintable characters of each line."""
    return "\n".join(map(printable, text.split("\n")))


def by_text(values: Iterable[Any], text: str) -> Any:
    """Return the value that prints as a text of the command line, or the text if there is none; true is True."""
    same = (
        value
        for value in values
        if str(value) == text or (isinstance(value, bool) and str(value).lower() == text.lower())
    )
    return next(same, text)


def number(value: float) -> str:
    """Format a number with four significant digits; a dash for NaN."""
    return "—" if math.isnan(value) else f"{value:.4g}"


def rows(weight: float) -> str:
    """Format a number of rows, which is fractional if rows are weighted."""
    return f"{weight:,.0f}" if float(weight).is_integer() else f"{weight:,.6g}"
