"""Plot: the result of every plotting method, a figure and the plotted numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PlotAxes: TypeAlias = "Axes | Iterable[Axes] | None"  # argument `ax` of several panels; None for a new figure
PlotTable = Mapping[str, Any]  # columns; a scalar is repeated in every row


class Plot:
    """Figure of matplotlib and the table of its numbers. Every plotting method returns one.

    Attributes
    ----------
    axes : tuple of matplotlib Axes
        Axes of the figure, for further changes: ``plot.axes[0].set_title("Penguins")``.

    Examples
    --------
    >>> import tallybayes as tb
    >>> plot = tb.NaiveBayes().fit([[1.0], [2.0], [7.0], [9.0]], ["a", "a", "b", "b"]).plot_columns()
    >>> plot.save("columns.svg")                                                             # doctest: +SKIP
    >>> list(plot.to_frame())
    ['column', 'class', 'value', 'what', 'height']
    """

    def __init__(self, axes: Axes | Iterable[Axes], *tables: PlotTable) -> None:
        self.axes: tuple[Axes, ...] = tuple(np.ravel(np.asarray(axes, dtype=object)))
        self._tables = tables

    @property
    def figure(self) -> Figure:
        """Return the matplotlib Figure."""
        return self.axes[0].figure.canvas.figure

    def to_frame(self) -> pd.DataFrame:
        """Return the plotted numbers as a pandas data frame, one row for each bar, point, cell or curve position."""
        import pandas as pd

        return pd.concat([pd.DataFrame(dict(table)) for table in self._tables], ignore_index=True)

    def save(self, path: str | PathLike[str], **options: Any) -> None:
        """Write the figure to a file. The suffix sets the format: ``.svg`` and ``.pdf`` are vector, ``.png`` is raster.

        Parameters
        ----------
        path : str or path
        options : as for matplotlib's `savefig`, such as ``dpi=200``
        """
        self.figure.savefig(path, **options)

    def _repr_png_(self) -> bytes | None:
        """Return the image for notebooks, or None if the notebook shows the open figure itself."""
        import matplotlib as mpl
        from matplotlib import pyplot as plt

        number = getattr(self.figure, "number", None)
        if "inline" in mpl.get_backend() and number is not None and plt.fignum_exists(number):
            return None
        buffer = BytesIO()
        self.figure.savefig(buffer, format="png")
        return buffer.getvalue()

    def __repr__(self) -> str:
        n = len(self.axes)
        return f"<Plot of {n} panel{'s' * (n != 1)}: .save('plot.svg'), .to_frame(), .figure, .axes>"


def table_of(names: tuple[str, str, str], rows: Iterable[Any], columns: Iterable[Any], values: Any) -> dict[str, Any]:
    """Return a matrix as a table with the columns row, column and value."""
    pairs = [(row, column) for row in rows for column in columns]
    ends = [[row for row, _ in pairs], [column for _, column in pairs]]
    return dict(zip(names, [*ends, np.asarray(values, dtype=float).ravel()], strict=True))
