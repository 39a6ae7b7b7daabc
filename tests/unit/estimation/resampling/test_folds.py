"""The fold of every row: which rows are predicted, and which are no training rows."""

import numpy as np

from tallybayes.estimation.resampling.folds import Folds

FOLD = np.array([0, 1, -1, 1, 0, 2])
KNOWN = np.array([True, True, True, False, True, True])  # row 3 has no label


def test_rows_are_held_out_with_their_fold_and_predicted_if_they_are_known():
    folds = Folds(FOLD, KNOWN)
    assert folds.n_folds == 3
    assert [rows.tolist() for rows in folds.tests()] == [[0, 4], [1], [5]]
    assert [folds.held_out(number).tolist() for number in range(3)] == [[0, 4], [1, 3], [5]]
    assert folds.predicted.tolist() == [0, 1, -1, -1, 0, 2]


def test_ordered_folds_are_predicted_from_earlier_rows():
    folds = Folds(FOLD, KNOWN, ordered=True)
    assert [folds.held_out(number).tolist() for number in range(3)] == [[0, 1, 3, 4, 5], [1, 3, 5], [5]]
    assert [rows.tolist() for rows in folds.tests()] == [[0, 4], [1], [5]]


def test_no_rows_have_no_folds():
    folds = Folds(np.zeros(0, dtype=int), np.zeros(0, dtype=bool))
    assert folds.n_folds == 0
    assert folds.tests() == []
