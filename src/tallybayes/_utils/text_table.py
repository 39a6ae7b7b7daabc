"""Text tables with aligned columns."""

from __future__ import annotations

from collections.abc import Container, Sequence

__all__ = ["text_table"]


def text_table(lines: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    r"""Return lines of text with aligned columns.

    Parameters
    ----------
    lines : sequence of sequences of str
        The cells of every line, equally many in each.
    right : container of int, optional
        Positions of right-aligned columns.

    Returns
    -------
    list of str
        With two spaces before every line and between cells, and no trailing spaces.

    Examples
    --------
    >>> from tallybayes._utils.text_table import text_table
    >>> print("\n".join(text_table([["", "bits"], ["rain", "0.5"], ["sun", "12.25"]], right=[1])))
             bits
      rain    0.5
      sun   12.25
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = []
    for line in lines:
        columns = enumerate(zip(line, widths, strict=True))
        cells = (f"{cell:>{width}}" if position in right else f"{cell:<{width}}" for position, (cell, width) in columns)
        aligned.append(("  " + "  ".join(cells)).rstrip())
    return aligned
