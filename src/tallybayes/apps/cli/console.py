"""What is written where: answers on standard output, all else on standard error; colors on a terminal only."""

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
        """A string, for which shells complete file names: cyclopts does so for types that are paths."""

        def __new__(cls, text: str) -> str:  # noqa: D102
            return text


STANDARD_INPUT = "stdin:"  # what - stands for; and standard output, where something is written
_STYLES = {"error": "bold red", "warning": "bold yellow"}


def print_problem(kind: str, text: str) -> None:
    """Say what is wrong, or to be minded."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text.assemble((f"{kind}: ", _STYLES[kind]), printable_text(redacted(text))))


def print_status(text: str) -> None:
    """Tell a person what was done; a program does not read it."""
    sys.stderr.write(f"{printable_text(redacted(text))}\n")


def print_result(text: str) -> None:
    """Write what was asked for."""
    sys.stdout.write(f"{text}\n")


def answer_json(value: Any) -> None:
    """Write what was asked for as one JSON document: no NaN (null), no infinity (a string)."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def answer_table(heads: Sequence[str], lines: Iterable[Sequence[str]], right: Iterable[int] = ()) -> None:
    """Write a table as wide as the terminal: long cells are folded, none is lost."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False, padding=(0, 1, 0, 0))
    numbers = set(right)
    for place, head in enumerate(heads):
        leans = place in numbers
        table.add_column(Text(head), justify="right" if leans else "left", overflow="fold", no_wrap=leans)
    for line in lines:
        table.add_row(*(Text(printable(cell)) for cell in line))
    console = Console(highlight=False)
    with console.capture() as shown:
        console.print(table)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in shown.get().splitlines())


def width() -> int:
    """How many columns there are to write in."""
    from rich.console import Console

    return Console().width


def plain(value: Any) -> Any:
    """A value as JSON has it: labels and numbers as they are, what NumPy made of them as Python has it."""
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
    """Text that a terminal only shows: names and labels come from strangers."""
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable_text(text: str) -> str:
    """The same of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def number(value: float) -> str:
    """A number in few digits; a dash for none."""
    return "—" if math.isnan(value) else f"{value:.4g}"


def rows(weight: float) -> str:
    """A number of rows, which weights may make a fraction."""
    return f"{weight:,.0f}" if float(weight).is_integer() else f"{weight:,.6g}"
