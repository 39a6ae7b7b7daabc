"""Tables as text: cells in columns, for what an object shows of itself."""

from __future__ import annotations

from collections.abc import Container, Sequence

__all__ = ["text_table"]


def text_table(lines: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    r"""Lines of text, each cell below that above it.

    Parameters
    ----------
    lines : sequence of sequences of str
        The cells of every line, of all as many.
    right : places of columns, optional
        Which lean to the right.

    Returns
    -------
    list of str
        Two spaces before every line and between its cells, none after it.

    Examples
    --------
    >>> from tallybayes._utils.text_table import text_table
    >>> print("\n".join(text_table([["", "bits"], ["rain", "0.5"], ["sun", "12.25"]], right=[1])))
             bits
      rain    0.5
      sun   12.25
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = []
    for line in lines:
        places = enumerate(zip(line, widths, strict=True))
        cells = (f"{cell:>{width}}" if place in right else f"{cell:<{width}}" for place, (cell, width) in places)
        shown.append(("  " + "  ".join(cells)).rstrip())
    return shown
