"""The types of what models take, for annotations of your own: ``def train(rows: Rows) -> tb.NaiveBayes: ...``.

`Rows` is anything with rows: arrays, sparse matrices, data frames of any library, mappings of columns, lists, paths of
files, and what `tallybayes.table` opens. `Labels` are one for every row, or the name of the column that has them; so
are `Weights`, where there are any. `RandomState` is a seed, or what draws (None: another one every time).
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame, IntoLazyFrame

    from tallybayes.sources.source import Source
    from tallybayes.sources.table import Table

__all__ = ["Labels", "RandomState", "Rows", "SparseMatrix", "Weights"]


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy, which has no types of its own."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """The same, row by row."""


# A str is the path of a file, or the name of a column.
Rows: TypeAlias = (
    "npt.NDArray[Any] | SparseMatrix | IntoDataFrame | IntoLazyFrame | Iterable[Any] | PathLike[str] | Source | Table"
)
Labels: TypeAlias = str | int | npt.NDArray[Any] | Iterable[Any]
Weights: TypeAlias = str | int | npt.NDArray[Any] | Iterable[float] | None
RandomState: TypeAlias = int | np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | None
