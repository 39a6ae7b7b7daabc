"""Blocks: sparse rows cut, summed and made dense as their dense twins are."""

import numpy as np
import pytest

from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import (
    Codes,
    SparseRows,
    cell,
    compressed,
    dense,
    first_infinite_cell,
    n_columns,
    n_rows,
)

DENSE = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.0, 5.0]])
SPARSE = compressed(DENSE)
ABSENT = SPARSE._replace(missing_rows=np.array([False, True, False, False]))


@pytest.mark.parametrize(
    "part", [slice(None), slice(1, 3), slice(2, 2), slice(0, 9), np.array([3, 0, 0]), np.array([], dtype=int)], ids=str
)
def test_some_rows(part):
    np.testing.assert_array_equal(SPARSE.rows(part).dense(), DENSE[part])
    np.testing.assert_array_equal(SPARSE.dense(part), DENSE[part])
    expected = np.where(ABSENT.missing_rows[:, None], np.nan, DENSE)[part]
    np.testing.assert_array_equal(ABSENT.rows(part).dense(), expected)
    assert n_rows(SPARSE.rows(part)) == len(DENSE[part])


@pytest.mark.parametrize("places", [[0, 1, 2, 3], [3, 0], [2], []], ids=str)
def test_some_columns(places):
    found = SPARSE.take_columns(np.array(places, dtype=int))
    np.testing.assert_array_equal(found.dense(), DENSE[:, places])
    assert n_columns(found) == len(places)


def test_sums_of_rows():
    assert SPARSE.sum_rows(SPARSE.data).tolist() == [3, 0, 2, 5]
    assert SPARSE.sum_rows(np.ones(5, dtype=np.int8)).tolist() == [2, 0, 2, 1]
    assert compressed(np.zeros((2, 3))).sum_rows(np.zeros(0)).tolist() == [0, 0]
    many = SparseRows(np.array([0, 300]), np.arange(300), np.ones(300, dtype=np.int16), 300)
    assert many.sum_rows(many.data * 200).tolist() == [60_000]  # more than 16 bits hold


def test_zeros_that_are_stored():
    stored = SparseRows(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([0.0, 4.0, 0.0]), 2)
    found = stored.without_zeros()
    assert (found.indptr.tolist(), found.indices.tolist(), found.data.tolist()) == ([0, 1, 1], [1], [4.0])
    assert SPARSE.without_zeros() is SPARSE


def test_missing_cells_and_rows():
    assert not SPARSE.has_missing
    assert ABSENT.has_missing
    assert not SPARSE._replace(missing_rows=np.zeros(4, dtype=bool)).has_missing
    assert SPARSE._replace(data=np.array([1.0, np.nan, 1.0, 1.0, 1.0])).has_missing
    assert not SPARSE._replace(data=np.arange(5)).has_missing
    assert not compressed(np.zeros((1, 1))).has_missing


def test_one_cell_for_a_message():
    codes = Codes([np.array([4, 5]), np.array([6, 7])], np.array([9, 9]))
    listed = [np.array([1.5, 2.5]), np.array([3.5, 4.5])]
    assert [cell(SPARSE, 0, 1), cell(SPARSE, 2, 2), cell(SPARSE, 1, 1)] == [2.0, -1.0, 0]
    assert (cell(codes, 1, 0), cell(listed, 0, 1), cell(DENSE, 3, 3)) == (5, 3.5, 5.0)
    assert type(cell(DENSE, 0, 0)) is float
    assert [n_rows(block) for block in (codes, listed, DENSE, [])] == [2, 2, 4, 0]
    assert [n_columns(block) for block in (codes, listed, DENSE, [])] == [2, 2, 4, 0]
    assert first_infinite_cell(DENSE) is None
    assert first_infinite_cell(np.array([[1.0, 2.0], [np.nan, -np.inf], [np.inf, 0.0]])) == (1, 1)


def test_what_is_not_dense_is_refused_by_what_it_is():
    assert dense(DENSE, "Gaussian") is DENSE
    for block, text in ((SPARSE, "sparse"), (Codes([], np.zeros(0)), "codes of levels")):
        with pytest.raises(DataError, match=text):
            dense(block, "Gaussian")


def test_sums_of_short_numbers_are_made_of_long_ones():
    values = np.array([2.0**24, 1.0, 1.0, 1.0], dtype=np.float32)  # which four bytes would not tell from 2²⁴
    rows = SparseRows(np.array([0, 4]), np.arange(4), values, 4)
    assert rows.sum_rows(values).tolist() == [2.0**24 + 3]


def test_blocks_of_one_column():
    assert n_rows([np.zeros(3)]) == 3
    assert n_rows(Codes([np.zeros(3, dtype=int)], np.array([1]))) == 3
    assert n_columns([np.zeros(3)]) == 1
    stored = SparseRows(np.array([0, 1]), np.array([0]), np.array([np.nan]), 1)
    assert stored.has_missing
