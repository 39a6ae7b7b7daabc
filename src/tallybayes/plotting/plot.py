"""Picture: what every plot gives: a figure, and the numbers that are drawn in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PlotTable = Mapping[str, Any]  # columns of numbers or labels; what is not a list is the same in every line


class Plot:
    """A picture, as a figure of matplotlib and as a table. Every method that draws gives one.

    Attributes
    ----------
    axes : tuple of matplotlib Axes
        What was drawn on, to change what you like: ``picture.axes[0].set_title("Penguins")``.

    Examples
    --------
    >>> import tallybayes as tb
    >>> picture = tb.NaiveBayes().fit([[1.0], [2.0], [7.0], [9.0]], ["a", "a", "b", "b"]).plot_columns()
    >>> picture.save("columns.svg")                                                             # doctest: +SKIP
    >>> list(picture.to_frame())
    ['column', 'class', 'value', 'what', 'height']
    """

    def __init__(self, axes: Axes | Iterable[Axes], *parts: PlotTable) -> None:
        self.axes: tuple[Axes, ...] = tuple(np.ravel(np.asarray(axes, dtype=object)))
        self._parts = parts

    @property
    def figure(self) -> Figure:
        """The matplotlib Figure."""
        return self.axes[0].figure.canvas.figure

    def to_frame(self) -> pd.DataFrame:
        """What is drawn, as a pandas data frame: a line for every bar, point, cell, or place on a curve."""
        import pandas as pd

        columns: dict[str, list[Any]] = {name: [] for part in self._parts[:1] for name in part}
        for part in self._parts:
            n = max((len(column) for column in part.values() if _is_list(column)), default=1)
            for name, column in part.items():
                columns[name] += list(column) if _is_list(column) else [column] * n
        return pd.DataFrame(columns)

    def save(self, path: str | PathLike[str], **options: Any) -> None:
        """Write it into a file; the ending says of which kind: ``.svg`` and ``.pdf`` are vectors, ``.png`` is pixels.

        Parameters
        ----------
        path : str or path
        options : as for matplotlib's `savefig`, such as ``dpi=200``
        """
        self.figure.savefig(path, **options)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: nothing where they show the figure themselves at the end of the cell that drew it."""
        import matplotlib as mpl
        from matplotlib import pyplot as plt

        number = getattr(self.figure, "number", None)
        if "inline" in mpl.get_backend() and number is not None and plt.fignum_exists(number):
            return None
        drawn = BytesIO()
        self.figure.savefig(drawn, format="png")
        return drawn.getvalue()

    def __repr__(self) -> str:
        n = len(self.axes)
        return f"<Picture of {n} panel{'s' * (n != 1)}: .save('picture.svg'), .to_frame(), .figure, .axes>"


def table_of(names: tuple[str, str, str], rows: Iterable[Any], columns: Iterable[Any], values: Any) -> PlotTable:
    """A matrix as lines: its row, its column and the number there."""
    rows, columns = list(rows), list(columns)
    return {
        names[0]: [row for row in rows for _ in columns],
        names[1]: columns * len(rows),
        names[2]: np.asarray(values, dtype=float).ravel(),
    }


def _is_list(column: Any) -> bool:
    return isinstance(column, list | tuple | range) or (isinstance(column, np.ndarray) and column.ndim == 1)
