"""HTML tables for notebooks, for light and dark themes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from numbers import Integral, Real
from typing import Any

from tallybayes.errors import printable

_MAX_ROWS = 40  # as in printed tables
# Lines have the text color, which works in light and dark themes.
_TABLE = "border-collapse:collapse;margin:0.3em 0;font-variant-numeric:tabular-nums"
_TITLE = "caption-side:top;text-align:left;font-weight:bold;padding:0.2em 0;white-space:pre-line;color:inherit"
_HEAD = "border-bottom:1px solid currentColor;padding:0.15em 0.6em"
_CELL = "padding:0.15em 0.6em"
_NUMBER = re.compile(r"([<+−-]? ?[\d.,]+(e[+-]?\d+)?( %)?|[+-]?inf|nan|—|·)?")


def html_table(title: str, head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table for a notebook.

    Parameters
    ----------
    title : str
        Caption; "" for none. It may have several lines.
    head : sequence
        Column names; empty for a table without a header.
    rows : iterable of sequences
        The cells. Numbers have four digits and are right-aligned, as is numeric text; other text is left-aligned; None
        is empty. Only the first 40 rows are shown, followed by the number of remaining ones.

    Returns
    -------
    str
        All text is escaped, including unprintable characters.

    Examples
    --------
    >>> from tallybayes._utils.html import html_table
    >>> table = html_table("p(sky | picnic)", ["picnic", "sun"], [["yes", 2 / 3], ["<no>", 1 / 3]])
    >>> "&lt;no&gt;" in table, "0.6667" in table
    (True, True)
    """
    remaining = iter(rows)
    shown = [list(row) for row in islice(remaining, _MAX_ROWS)]
    n_more = sum(1 for _ in remaining)
    width = max([len(head), *(len(row) for row in shown)])
    right = [
        all(_is_right_aligned(row[column]) for row in shown if column < len(row)) and bool(shown)
        for column in range(width)
    ]
    parts = [f'<table style="{_TABLE}">']
    if title:
        parts.append(f'<caption style="{_TITLE}">{_lines(title)}</caption>')
    if head:
        cells = "".join(_cell("th", _HEAD, name, right[column]) for column, name in enumerate(head))
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    parts += [
        f"<tr>{''.join(_cell('td', _CELL, value, right[column]) for column, value in enumerate(row))}</tr>"
        for row in shown
    ]
    if n_more:
        parts.append(f'<tr><td colspan="{width}" style="{_CELL};text-align:left">… and {n_more:,} more</td></tr>')
    return "".join([*parts, "</tbody></table>"])


def html_parts(*parts: Any) -> str:
    """Return several parts below each other: text, or the title, header and rows of a table.

    Parameters
    ----------
    *parts : str or tuple

    Returns
    -------
    str
    """
    return "".join(html_text(part) if isinstance(part, str) else html_table(*part) for part in parts)


def html_text(text: str) -> str:
    """Return preformatted text for a notebook.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    return f'<pre style="color:inherit;background:none;margin:0.3em 0">{_lines(text)}</pre>'


def _cell(tag: str, style: str, value: Any, right: bool) -> str:
    """Return one table cell."""
    text = "" if value is None else str(value)
    if _is_number(value):
        text = f"{int(value):,}" if isinstance(value, Integral) else f"{float(value):.4g}"
    return f'<{tag} style="{style};text-align:{"right" if right else "left"}">{escape(printable(text))}</{tag}>'


def _lines(text: str) -> str:
    """Return escaped lines."""
    return "\n".join(escape(printable(line)) for line in text.split("\n"))


def _is_right_aligned(value: object) -> bool:
    """Return whether a value is right-aligned."""
    text = "" if value is None else value
    return _is_number(value) or (isinstance(text, str) and _NUMBER.fullmatch(text) is not None)


def _is_number(value: object) -> bool:
    """Return whether a value is a number and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)
