"""NamedMatrix: a matrix with column names, such as a sparse matrix of word counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from tallybayes.errors import DataError
from tallybayes.tally.factor import Name
from tallybayes.typing import SparseMatrix


class NamedMatrix:
    """A matrix with a name for every column, such as word counts with the words.

    It is accepted wherever a matrix is: as X, or in a mapping of columns. A model stores the names, and `explain` and
    plots show them.

    Parameters
    ----------
    matrix : sparse matrix or array of shape (n, columns)
    names : sequence of str, one for every column

    Examples
    --------
    >>> import scipy.sparse, tallybayes as tb
    >>> counts = scipy.sparse.csr_array([[2, 0], [0, 1]])
    >>> model = tb.NaiveBayes().fit(tb.NamedMatrix(counts, ["free", "lunch"]), ["spam", "ham"])
    >>> model.explain(counts[[0]]).columns
    ['(class prior)', 'free', 'lunch']
    """

    def __init__(self, matrix: SparseMatrix | npt.NDArray[Any], names: Sequence[str]) -> None:
        self.matrix = matrix
        self.names = tuple(map(str, names))
        if len(getattr(matrix, "shape", ())) != 2 or matrix.shape[1] != len(self.names):
            shape = getattr(matrix, "shape", type(matrix).__name__)
            raise DataError(f"names has {len(self.names)} names for a matrix of {shape}; expected one per column.")
        check_unique_names(self.names, "the matrix")

    def __repr__(self) -> str:
        return f"Named({self.matrix!r}, {len(self.names)} names)"


def check_unique_names(names: Iterable[Name], what: str) -> None:
    """Raise DataError if a column name occurs twice."""
    repeated = next((name for name, n in Counter(names).items() if n > 1), None)
    if repeated is not None:
        raise DataError(f"{what} has two columns {repeated!r}; expected unique names.\n    Rename one of them.")


def names_of_blocks(data: object) -> dict[Name, tuple[str, ...]]:
    """Return the column names of every `NamedMatrix` in the data."""
    if isinstance(data, NamedMatrix):
        return {"x": data.names}
    if not isinstance(data, Mapping):
        return {}
    return {name: value.names for name, value in data.items() if isinstance(value, NamedMatrix)}
