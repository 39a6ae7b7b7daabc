"""Folds for cross-validation: random, by group, by time, or given by the user."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import is_integer_at_least, random_generator
from tallybayes.data.array_input import as_array
from tallybayes.data.encoding import encode
from tallybayes.errors import DataError
from tallybayes.typing import Labels, RandomState


class Folds(NamedTuple):
    """The fold of every row, or sequence.

    Attributes
    ----------
    fold : ndarray of int of shape (n,)
        −1 for training rows of every fold.
    known : ndarray of bool of shape (n,)
        The rows that are predicted; other rows are held out with their fold, but not predicted.
    ordered : bool, default False
        Whether each fold is predicted from earlier folds only.
    one_by_one : bool, default False
        Whether every row is a fold.
    """

    fold: np.ndarray
    known: np.ndarray
    ordered: bool = False
    one_by_one: bool = False

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.fold.max(initial=-1)) + 1

    @property
    def predicted(self) -> np.ndarray:
        """The fold in which every row is predicted; −1 for rows that are not predicted."""
        return np.where(self.known, self.fold, -1)

    def tests(self) -> list[np.ndarray]:
        """Return the numbers of the rows to predict, by fold."""
        return rows_by_code(self.predicted, self.n_folds)

    def held_out(self, number: int) -> np.ndarray:
        """Return the numbers of the rows that are no training rows of a fold."""
        return np.flatnonzero(self.fold >= number if self.ordered else self.fold == number)


def random_folds(codes: np.ndarray, n_folds: int, random_state: RandomState) -> np.ndarray:
    """Return a random fold for every row, stratified by class."""
    _check_number(n_folds, len(codes), "rows")
    rng = random_generator(random_state)
    n_rounds = -(-len(codes) // n_folds)
    deal = rng.permuted(np.tile(np.arange(n_folds, dtype=np.int32), (n_rounds, 1)), axis=1).ravel()[: len(codes)]
    fold = np.empty(len(codes), dtype=np.int32)
    by_class = np.concatenate(rows_by_code(codes, int(codes.max()) + 1))
    fold[by_class] = deal  # deals rows to the folds in turn
    return fold


def group_folds(groups: Labels, n_rows: int, n_folds: int, random_state: RandomState) -> np.ndarray:
    """Return a fold for every row: rows of one group share a fold, and folds have about equal size."""
    codes, n_groups = _codes(groups, n_rows, "groups")
    _check_number(n_folds, n_groups, "groups")
    sizes = np.bincount(codes, minlength=n_groups)
    shuffled = random_generator(random_state).permutation(n_groups)
    load = np.zeros(n_folds)
    fold_of = np.empty(n_groups, dtype=np.int32)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:  # the largest group first, to the smallest fold
        fold_of[group] = load.argmin()
        load[fold_of[group]] += sizes[group]
    return fold_of[codes]


def ordered_folds(order: Labels, n_rows: int, n_folds: int) -> np.ndarray:
    """Return consecutive time intervals 0 to `n_folds`: each is predicted from all earlier ones.

    The first is for training only.

    Rows with the same time are in the same interval.
    """
    values: np.ndarray = np.asarray(order)
    if values.shape != (n_rows,):
        raise DataError.wrong_shape("order", values.shape, f"({n_rows},), one for every row")
    if (
        values.dtype.kind in "fmM"
        and np.asarray(np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values)).any()
    ):
        raise DataError.wrong_type("order", "partly missing", "a time or a number for every row")
    times, place = np.unique(values, return_inverse=True)
    _check_number(n_folds, len(times) - 1, "times after the first")
    before = np.cumsum(np.bincount(place)) - np.bincount(place)  # number of rows earlier than each time
    stretch = np.minimum(before * (n_folds + 1) // n_rows, n_folds)
    return np.unique(stretch, return_inverse=True)[1].astype(np.int32)[place]


def given_folds(folds: Labels, n_rows: int) -> np.ndarray:
    """Return the user's folds as integers."""
    codes, n_folds = _codes(folds, n_rows, "folds")
    _check_number(n_folds, n_rows, "rows")
    return codes


def rows_by_code(codes: np.ndarray, n_codes: int) -> list[np.ndarray]:
    """Return the row numbers of every code from 0 up, in increasing order; code −1 is skipped."""
    kind = np.uint8 if n_codes < 2**8 else np.uint16 if n_codes < 2**16 else np.int64  # a counting sort for short types
    order = np.argsort(np.where(codes < 0, n_codes, codes).astype(kind), kind="stable")
    stops = np.cumsum(np.bincount(codes[codes >= 0].astype(np.intp), minlength=n_codes))
    return np.split(order, stops)[:-1]


def _codes(labels: Labels, n_rows: int, what: str) -> tuple[np.ndarray, int]:
    column: Any = labels if hasattr(labels, "to_numpy") or hasattr(labels, "type") else as_array(labels)
    if len(column) != n_rows:
        raise DataError.wrong_shape(what, (len(column),), f"({n_rows},), one for every row")
    codes = np.asarray(encode(column, what, ordered=True)[0]).astype(np.int32)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise DataError.wrong_type(f"the entry of {what} for row {row}", "missing", "a label for every row")
    used, place = np.unique(codes, return_inverse=True)
    return place.astype(np.int32), len(used)


def _check_number(n_folds: int, most: int, what: str) -> None:
    if not is_integer_at_least(n_folds, 2) or n_folds > most:
        hint = "tb.leave_one_out leaves every row out by itself." if what == "rows" else f"Pass folds={most}, or fewer."
        raise DataError.wrong_type(
            "folds", repr(n_folds), f"a whole number from 2 to {most}, the number of {what}", hint
        )
