"""Sequences: time steps of all sequences in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import read_numbers
from tallybayes.data.array_input import unmerged
from tallybayes.data.concatenated_table import ConcatenatedTable
from tallybayes.data.counting import check_weight_range
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, short_repr
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.kernels.concatenate import join_arrays
from tallybayes.kernels.hmm import GappedTransitions
from tallybayes.models.inputs.features import as_rows, is_rows_of_mappings, only_column
from tallybayes.tally.factor import Name
from tallybayes.typing import SampleWeights

_CACHED_BYTES = 1 << 21  # bytes of time steps that are concatenated in advance


class Sequences(NamedTuple):
    """Time steps of all sequences as one table, and where each sequence begins.

    ``offsets`` has one more element than sequences.
    """

    table: Table
    offsets: np.ndarray
    order: np.ndarray | None  # position of each time step among the rows of a frame
    gaps: np.ndarray | None = None  # number of unobserved time steps before each; None without gaps

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """The number of time steps of each sequence."""
        return np.diff(self.offsets)

    @property
    def positions(self) -> np.ndarray:
        """The position of each time step in its sequence, from 0."""
        return np.arange(int(self.offsets[-1])) - np.repeat(self.offsets[:-1], self.lengths)

    def split(self, steps: np.ndarray) -> list[np.ndarray]:
        """Return an array with a row for each time step as one array for each sequence."""
        return [steps[first:last] for first, last in pairwise(self.offsets.tolist())]

    def with_table(self, table: Table) -> Sequences:
        """Return the same sequences with other columns."""
        return self._replace(table=table)

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return whether each time step is the first of a sequence, the last, and whether it follows another."""
        some = self.lengths > 0
        follows = np.ones(int(self.offsets[-1]), dtype=bool)
        first = self.offsets[:-1][some]
        last = self.offsets[1:][some] - 1
        follows[first] = False
        return first, last, np.flatnonzero(follows)

    def some(self, chosen: np.ndarray) -> tuple[np.ndarray, Sequences]:
        """Return the positions of the time steps of some sequences, and these sequences."""
        parts = [np.arange(*self.offsets[k : k + 2], dtype=np.intp) for k in chosen]
        steps = np.concatenate([np.zeros(0, dtype=np.intp), *parts])
        offsets = np.concatenate([[0], np.cumsum(self.lengths[chosen])]).astype(np.int64)
        gaps = None if self.gaps is None else self.gaps[steps]
        return steps, Sequences(self.table.rows(steps), offsets, None, gaps)

    def moves(self, transition: np.ndarray, first: int = 0, last: int | None = None) -> Any:
        """Return the transitions of some time steps as arguments of the kernels."""
        return transition if self.gaps is None else GappedTransitions(transition, self.gaps[first:last])

    def with_gaps(self, column: Name | None) -> Sequences:
        """Return the sequences with a column of gap lengths as `gaps`."""
        if column is None or not self.table.n_rows:
            return self
        cells = np.asarray(self.table.column(column))
        numbers = np.array([_number(cell) for cell in cells]) if cells.dtype.kind not in "biuf" else cells.astype(float)
        wrong = np.flatnonzero(~((numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53)))
        if len(wrong):
            raise DataError.wrong_type(
                f"column {column!r}, the silent steps before each,",
                f"{cells[wrong[0]]!r} at step {int(wrong[0])} of all",
                "an integer of at least 0; 0 without a gap",
            )
        gaps = numbers.astype(np.int64)
        return self._replace(table=self.table.without(column), gaps=gaps if gaps.any() else None)

    def with_column_of_gaps(self, column: Name | None) -> Table:
        """Return the time steps with the column of gap lengths."""
        if column is None:
            return self.table
        return self.table.with_column(column, np.zeros(self.table.n_rows, np.int64) if self.gaps is None else self.gaps)


def open_sequences(
    X: Any, lengths: Any = None, sequence: str | None = None, order: str | None = None, *, requested: bool = False
) -> Sequences:
    """Return sequences from a list, from one array and their lengths, or from a frame of time steps.

    Parameters
    ----------
    X : list of arrays, lists, frames or dictionaries of columns; or one array; or a frame of time steps
        Time steps are values, or rows of several columns. One array without `lengths` is one sequence.
    lengths : array-like of int, optional
        The lengths of the sequences in one array.
    sequence, order : str, optional
        The columns of a frame with the sequence identifier and the time order; by default the order of the rows.
    requested : bool, default False
        Whether the sequences are only predicted: integers of a list of arrays may then be stored in fewer bytes.
    """
    X = as_rows(X)
    if sequence is not None:
        if lengths is not None:
            raise DataError("lengths and sequence are both given; expected one of them.")
        return _from_frame(open_table(X), sequence, order)
    if lengths is not None:
        table = open_table(X)
        return Sequences(table, _offsets(lengths, table.n_rows), None)
    if not _is_list(X):
        table = open_table(X)
        return Sequences(table, np.array([0, table.n_rows], dtype=np.int64), None)
    # arrays of numbers need no table each
    joined = join_arrays(X, shorter=requested, at_most=_most_bytes(X) if requested else None) if len(X) > 1 else None
    if joined is None:
        n_steps: Any = [_length(part) for part in X]
        table = _joined([open_table(part) for part, length in zip(X, n_steps, strict=True) if length])
    else:
        n_steps = joined.lengths
        table = ConcatenatedTable(X, n_steps) if joined.array is None else open_table(joined.array)
    return Sequences(table, np.concatenate([[0], np.cumsum(n_steps, dtype=np.int64)]).astype(np.int64), None)


def concatenated(parts: Sequence[Sequences]) -> Sequences:
    """Return the sequences of several parts, each from `Sequences.some`."""
    lengths = np.concatenate([part.lengths for part in parts])
    gaps = None
    if any(part.gaps is not None for part in parts):
        n_steps = [part.table.n_rows for part in parts]
        gaps = np.concatenate(
            [np.zeros(n, np.int64) if part.gaps is None else part.gaps for n, part in zip(n_steps, parts, strict=True)]
        )
    return Sequences(_joined([part.table for part in parts]), np.append(0, np.cumsum(lengths)), None, gaps)


def open_labels(y: Any, sequences: Sequences, X: object) -> Any:
    """Return the labels of all time steps as one column.

    From a list of sequences, one array, or a column of a frame.
    """
    if isinstance(y, str):
        return sequences.table.column(y)
    n_steps = int(sequences.offsets[-1])
    y = only_column(y)
    if _is_list(y) and len(y) == sequences.n_sequences:
        for number, (part, length) in enumerate(zip(y, sequences.lengths, strict=True)):
            if _length(part) != length:
                raise DataError(
                    f"sequence {number} has {length} steps and {_length(part)} labels; expected one for every step."
                )
        joined = join_arrays(y)
        if joined is not None and joined.array is not None and joined.array.ndim == 1:
            return joined.array
        flat = np.empty(n_steps, dtype=object)
        flat[:] = [label for part in y for label in (part.tolist() if isinstance(part, np.ndarray) else part)]
        return flat
    column = y if hasattr(y, "to_numpy") else np.asarray(y, dtype=None if isinstance(y, np.ndarray) else object)
    if not np.ndim(column):
        raise DataError.wrong_type("y", short_repr(y), "the states of every sequence, or the name of their column")
    if len(column) != n_steps:
        raise DataError.lengths_differ({"the steps of X": n_steps, "y": len(column)})
    if sequences.order is not None:
        column = (column.to_numpy() if hasattr(column, "to_numpy") else column)[sequences.order]
    return column


def step_weights(weight: SampleWeights, sequences: Sequences) -> np.ndarray | None:
    """Return one valid weight per sequence."""
    if weight is None:
        return None
    array = read_numbers("sample_weight", weight, "one number for every sequence")
    if array.shape != (sequences.n_sequences,):
        raise DataError.wrong_shape("sample_weight", array.shape, f"({sequences.n_sequences},), one for every sequence")
    return check_weight_range(array)


def _most_bytes(arrays: Sequence[Any]) -> int | None:
    """Return the maximum number of bytes to concatenate at once: numbers a few sequences at a time, codes all."""
    return _CACHED_BYTES if getattr(arrays[0], "dtype", np.dtype(int)).kind == "f" else None


def _number(cell: object) -> float:
    """Return a cell as a number; NaN if it is not one."""
    return float(cell) if isinstance(cell, int | float | np.integer | np.floating) else np.nan


def _is_list(X: object) -> bool:
    """Return whether X is a list of sequences, not of time steps."""
    if not isinstance(X, list | tuple) or (is_rows_of_mappings(X) and not _holds_columns(X[0])):
        return False
    return not len(X) or _has_steps(X[0])


def _has_steps(value: object) -> bool:
    """Return whether a value is a list, an array or a frame, and not a cell."""
    return hasattr(value, "__len__") and not np.isscalar(value)


def _holds_columns(part: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary has columns, rather than the cells of one time step."""
    return _has_steps(next(iter(part.values()), None))


def _length(part: Any) -> int:
    if hasattr(part, "shape"):
        return int(part.shape[0])
    if isinstance(part, Mapping):
        return max((_length(column) for column in part.values()), default=0)
    return len(part)


def _offsets(lengths: Any, n_steps: int) -> np.ndarray:
    array = np.asarray(lengths)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size) or (array < 0).any():
        raise DataError.wrong_type("lengths", repr(lengths)[:60], "integers of at least 0, one per sequence")
    if array.sum() != n_steps:
        raise DataError(f"the lengths sum to {int(array.sum())}, but there are {n_steps} steps; expected as many.")
    return np.concatenate([[0], np.cumsum(array)]).astype(np.int64)


def _from_frame(table: Table, sequence: str, order: str | None) -> Sequences:
    """Return time steps sorted by sequence, in order of appearance, and by time."""
    codes, domain = table.encoded(sequence)
    which = codes.astype(np.int64)
    if (which < 0).any():
        raise DataError(f"row {int(np.flatnonzero(which < 0)[0])} has no {sequence!r}; expected one for every step.")
    first = np.full(len(domain.levels), table.n_rows, dtype=np.int64)
    np.minimum.at(first, which, np.arange(table.n_rows))
    rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")[which]
    keys: list[np.ndarray] = [rank]
    if order is not None:
        keys.insert(0, np.asarray(table.column(order)))
    sorted_rows = np.lexsort(keys)
    counts = np.bincount(rank, minlength=0)
    rest = table.rows(sorted_rows).without(sequence)
    rest = rest.without(order) if order is not None else rest
    return Sequences(rest, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), sorted_rows)


def _joined(tables: list[Table]) -> Table:
    """Concatenate the time steps of several tables."""
    if not tables:
        return Table({0: np.zeros(0)})
    if len(tables) == 1:
        return tables[0]
    names = list(tables[0].columns)
    for number, table in enumerate(tables):
        if list(table.columns) != names:
            raise DataError(
                f"sequence {number} has the columns {list(table.columns)}, the first one {names}; expected the same."
            )
    matrices = unmerged([table.matrix for table in tables if table.matrix is not None])
    if len(matrices) == len(tables) and matrices[0].dtype.kind != "O":
        matrix = np.concatenate(matrices)
        return Table({name: matrix[:, place] for place, name in enumerate(names)}, matrix)
    return Table({name: _stacked([table.columns[name] for table in tables], name) for name in names})


def _stacked(columns: Sequence[Any], name: Name) -> Any:
    if any(isinstance(column, SparseRows) for column in columns):
        raise DataError.wrong_type(f"column {name!r}", "sparse", "dense columns", "Pass one matrix and lengths.")
    return np.concatenate(unmerged([np.asarray(column) for column in columns]))
