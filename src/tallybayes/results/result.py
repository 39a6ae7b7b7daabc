"""Base class of results: objects that print as tables, in a terminal and in a notebook, and become data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain, repeat
from string import Formatter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

FrameData = Mapping[str, Sequence[object] | np.ndarray] | Sequence[Mapping[str, object]]


class _CellFormatter(Formatter):
    """Formats the cells of tables, see `ResultTable.of`."""

    def format_field(self, value: object, format_spec: str) -> str:
        """Return the text of a cell."""
        if value is None or value != value:  # NaN
            return "—"
        if isinstance(value, bool) and format_spec:
            return format_spec if value else ""
        if type(value) is tuple:
            shown = ", ".join(map(printable, value[: int(format_spec or len(value))]))
            n_more = len(value) - int(format_spec or len(value))
            return f"{shown} … {n_more} more" if n_more > 0 else shown
        return format(value, format_spec) if format_spec else printable(value)


_CELLS = _CellFormatter()


class ResultTable(NamedTuple):
    r"""A table of a result: text cells under a title and column names.

    Parameters
    ----------
    rows : sequence of sequences of str
        The cells, all rows of one length.
    head : sequence of str, optional
        The column names.
    title : str, optional
        The line above the table; it may consist of several lines.
    align : str, optional
        The alignment of every column in text: ``"l"`` for left, ``"r"`` for right. Columns without a letter are
        aligned like the last one; the default is left. In HTML numbers are aligned right and text left.
    best : int, optional
        The index of the row that text marks with ``*``.
    max_rows : int, optional
        The number of rows that text shows. HTML shows 40.
    n_rows : int, optional
        The number of all rows, if `rows` are only the first of them.

    Examples
    --------
    >>> from tallybayes.results.result import ResultTable
    >>> print("\n".join(ResultTable([["sun", "0.5"], ["rain", "12.25"]], ["sky", "bits"], align="lr", best=0).lines()))
      sky    bits
    * sun     0.5
      rain  12.25
    """

    rows: Sequence[Sequence[str]]
    head: Sequence[str] = ()
    title: str = ""
    align: str = "l"
    best: int | None = None
    max_rows: int | None = None
    n_rows: int | None = None

    @classmethod
    def of(
        cls,
        data: FrameData | Sequence[NamedTuple],
        formats: Mapping[str, str],
        title: str = "",
        align: str = "l",
        **options: int | None,
    ) -> ResultTable:
        """Return the table of some data: for every column name, the format of its cells, such as ``"{bits:.3f}"``.

        Parameters
        ----------
        data : mapping from names to columns, or sequence of mappings or named tuples
            The fields of the formats.
        formats : mapping from column name to format
            As for `str.format`, with additions: names and labels are made printable, None and NaN a dash, a tuple is
            joined by commas (at most its format specification of items), and True is its format specification.
        title, align, **options
            As for the class.

        Examples
        --------
        >>> ResultTable.of({"sky": ["sun"], "bits": [0.25]}, {"sky": "{sky}", "bits": "{bits:.3f}"}).rows
        [['sun', '0.250']]
        """
        if isinstance(data, Mapping):
            rows_of_columns = zip(*data.values(), strict=True)
            records: list[Mapping[str, object]] = [dict(zip(data, row, strict=True)) for row in rows_of_columns]
        else:
            records = [record if isinstance(record, Mapping) else record._asdict() for record in data]
        rows = [[_CELLS.vformat(cell, (), record) for cell in formats.values()] for record in records]
        return cls(rows, list(formats), title, align, **options)

    def lines(self) -> list[str]:
        """Return the title and the table as lines of text."""
        shown = self.rows[: self.max_rows]
        table = [list(self.head)] * bool(self.head) + list(shown)
        width = len(table[0]) if table else 0
        align = self.align + self.align[-1] * width
        lines = text_table(table, right=[k for k in range(width) if align[k] == "r"]) if table else []
        if self.best is not None and self.best < len(shown):
            row = self.best + bool(self.head)
            lines[row] = f"*{lines[row][1:]}"
        if self._n_rows > len(shown):
            lines.append(f"  … {self._n_rows - len(shown)} more")
        return [self.title, *lines] if self.title else lines

    @property
    def _n_rows(self) -> int:
        return len(self.rows) if self.n_rows is None else self.n_rows

    def html_part(self) -> tuple[str, Sequence[str], Iterable[Sequence[str]]]:
        """Return title, column names and cells as `html_parts` takes them."""
        rows = ([cell.strip() for cell in row] for row in self.rows)
        missing: Iterator[list[str]] = repeat([], self._n_rows - len(self.rows))
        return self.title, self.head, chain(rows, missing)


class Result:
    """What an evaluation or a model returns: it prints as text, shows as HTML in a notebook and has `to_frame`.

    A subclass defines two methods: ``_content``, the text and tables that are shown, and ``_frame_data``, the columns
    or rows of the data frame.

    Examples
    --------
    >>> from tallybayes.results.result import Result, ResultTable
    >>> class Toss(Result):
    ...     def _content(self):
    ...         return [ResultTable([["heads", "3"], ["tails", "5"]], ["side", "count"], "8 tosses", align="lr")]
    ...
    ...     def _frame_data(self):
    ...         return {"side": ["heads", "tails"], "count": [3, 5]}
    >>> Toss()
    8 tosses
      side   count
      heads      3
      tails      5
    >>> Toss().to_frame().shape
    (2, 2)
    """

    _separator: ClassVar[str] = "\n"  # between the parts of the text

    def _content(self) -> Iterable[str | ResultTable]:
        """Return the shown parts in order: text and tables."""
        raise NotImplementedError

    def _frame_data(self) -> FrameData:
        """Return the columns of the data frame by name, or its rows as mappings."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self._frame_data())

    def content(self) -> list[str | ResultTable]:
        """Return the text and the tables that are shown, in order, for programs that lay them out themselves.

        Returns
        -------
        list of str or ResultTable
        """
        return list(self._content())

    def __repr__(self) -> str:
        parts = (part if isinstance(part, str) else "\n".join(part.lines()) for part in self._content())
        return self._separator.join(parts)

    def _repr_html_(self) -> str:
        return html_parts(*(part if isinstance(part, str) else part.html_part() for part in self._content()))


class PlottedResult(Result):
    """A result with a plot: a subclass names the function of `tallybayes.plotting` that draws it.

    The function is called with the result and the axes; its module is imported when a plot is requested.
    """

    _plot_function: ClassVar[str]  # such as "evaluation.audit.plot_audit"

    def plot(self, ax: Axes | None = None) -> Plot:
        """Plot the result. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, or several where the plot has several panels, optional
            The axes to draw on; a new figure if left out.

        Returns
        -------
        Plot
        """
        module, _, name = self._plot_function.rpartition(".")
        drawn: Plot = getattr(import_module(f"tallybayes.plotting.{module}"), name)(self, ax)
        return drawn


def columns_of(kind: type[NamedTuple], rows: Sequence[tuple[object, ...]]) -> dict[str, list[object]]:
    """Return the fields of named tuples as columns, by name; also of no rows.

    Parameters
    ----------
    kind : class of the named tuples
    rows : sequence of named tuples

    Returns
    -------
    dict
    """
    fields: tuple[str, ...] = kind._fields
    return {name: [row[k] for row in rows] for k, name in enumerate(fields)}


def shortened(text: str, widest: int) -> str:
    """Return a text; a long one without its middle, since labels often differ at their ends."""
    tail = (widest - 1) // 2
    return text if len(text) <= widest else f"{text[: widest - 1 - tail]}…{text[-tail:]}"
