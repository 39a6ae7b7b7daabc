"""Tables for notebooks: small, escaped, and readable on light and on dark pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from numbers import Integral, Real
from typing import Any

from tallybayes.errors import printable

_MOST_ROWS = 40  # as many as a printed table has
# Colors are the page's own: lines are drawn in that of the text, so that they are seen on light and on dark pages.
_TABLE = "border-collapse:collapse;margin:0.3em 0;font-variant-numeric:tabular-nums"
_TITLE = "caption-side:top;text-align:left;font-weight:bold;padding:0.2em 0;white-space:pre-line;color:inherit"
_HEAD = "border-bottom:1px solid currentColor;padding:0.15em 0.6em"
_CELL = "padding:0.15em 0.6em"
_NUMBER = re.compile(r"([<+−-]? ?[\d.,]+(e[+-]?\d+)?( %)?|[+-]?inf|nan|—|·)?")


def html_table(title: str, head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A table for a notebook.

    Parameters
    ----------
    title : str
        Above the table; "" for none. It may have several lines.
    head : sequence
        The names of the columns; empty for a table without a head.
    rows : iterable of sequences
        The cells. Numbers are shown in four digits and stand to the right, as does text that is a number; other text to
        the left; None is empty. Of many rows the first 40 are shown, and how many more there are.

    Returns
    -------
    str
        All text is escaped, and what cannot be printed is written as an escape.

    Examples
    --------
    >>> from tallybayes._utils.html import html_table
    >>> table = html_table("p(sky | picnic)", ["picnic", "sun"], [["yes", 2 / 3], ["<no>", 1 / 3]])
    >>> "&lt;no&gt;" in table, "0.6667" in table
    (True, True)
    """
    remaining = iter(rows)
    shown = [list(row) for row in islice(remaining, _MOST_ROWS)]
    more = sum(1 for _ in remaining)
    width = max([len(head), *(len(row) for row in shown)])
    right = [
        all(_stands_right(row[place]) for row in shown if place < len(row)) and bool(shown) for place in range(width)
    ]
    out = [f'<table style="{_TABLE}">']
    if title:
        out.append(f'<caption style="{_TITLE}">{_lines(title)}</caption>')
    if head:
        cells = "".join(_cell("th", _HEAD, name, right[place]) for place, name in enumerate(head))
        out.append(f"<thead><tr>{cells}</tr></thead>")
    out.append("<tbody>")
    out += [
        f"<tr>{''.join(_cell('td', _CELL, value, right[place]) for place, value in enumerate(row))}</tr>"
        for row in shown
    ]
    if more:
        out.append(f'<tr><td colspan="{width}" style="{_CELL};text-align:left">… and {more:,} more</td></tr>')
    return "".join([*out, "</tbody></table>"])


def html_parts(*parts: Any) -> str:
    """Several parts below each other: a text, or the title, head and rows of a table.

    Parameters
    ----------
    *parts : str or tuple

    Returns
    -------
    str
    """
    return "".join(html_text(part) if isinstance(part, str) else html_table(*part) for part in parts)


def html_text(text: str) -> str:
    """Text for a notebook, its lines and columns as they are: for what is no table.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    return f'<pre style="color:inherit;background:none;margin:0.3em 0">{_lines(text)}</pre>'


def _cell(tag: str, style: str, value: Any, right: bool) -> str:
    text = "" if value is None else str(value)
    if _is_number(value):
        text = f"{int(value):,}" if isinstance(value, Integral) else f"{float(value):.4g}"
    return f'<{tag} style="{style};text-align:{"right" if right else "left"}">{escape(printable(text))}</{tag}>'


def _lines(text: str) -> str:
    return "\n".join(escape(printable(line)) for line in text.split("\n"))


def _stands_right(value: Any) -> bool:
    text = "" if value is None else value
    return _is_number(value) or (isinstance(text, str) and _NUMBER.fullmatch(text) is not None)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
