"""Rows of arrays that lie apart: the same as of one array, however they are asked for."""

from __future__ import annotations

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.data.concatenated_table import ConcatenatedTable
from tallybayes.data.table import open_table
from tallybayes.models.inputs import sequences

LENGTHS = np.array([0, 3, 0, 0, 4, 1, 0])
ARRAYS = [np.arange(3.0 * n).reshape(n, 3) + 100 * place for place, n in enumerate(LENGTHS)]
WHOLE = np.concatenate(ARRAYS)


def apart() -> ConcatenatedTable:
    return ConcatenatedTable(ARRAYS, LENGTHS)


@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("stop", range(9))
def test_every_stretch_is_that_of_one_array(start: int, stop: int) -> None:
    found = apart().rows(slice(start, stop))
    np.testing.assert_array_equal(found.numbers([0, 1, 2]), WHOLE[start:stop])
    assert found.n_rows == max(stop - start, 0)


def test_whole_arrays_are_put_together_without_the_others() -> None:
    table = apart()
    assert list(table.names) == [0, 1, 2]
    assert table.has(1)
    assert not table.has(3)
    for start, stop in ((0, 3), (3, 7), (0, 7), (7, 8), (3, 3), (0, 8)):
        table.rows(slice(start, stop))
    assert "columns" not in vars(table)
    table.rows(slice(1, 3))  # which begins within one
    assert "columns" in vars(table)


def test_rows_by_number_and_columns_are_those_of_one_array() -> None:
    whole = open_table(WHOLE)
    np.testing.assert_array_equal(
        apart().rows(np.array([7, 0, 2])).numbers([0, 2]), whole.rows(np.array([7, 0, 2])).numbers([0, 2])
    )
    np.testing.assert_array_equal(apart().numbers([2]), whole.numbers([2]))
    assert apart().kind(0) == "number"
    assert apart().n_rows == 8
    with pytest.raises(AttributeError, match="no attribute 'colums'"):
        apart().colums  # noqa: B018


@pytest.mark.parametrize("columns", [1, 3])
def test_sequences_that_lie_apart_are_answered_as_those_of_one_array(columns: int, monkeypatch) -> None:
    monkeypatch.setattr(sequences, "_CACHED_BYTES", 0)
    rng = np.random.default_rng(0)
    steps, lengths = rng.normal(size=(400, columns)), [0, 150, 1, 0, 199, 50]
    states = np.arange(400) % 2
    model = tb.HiddenMarkovModel(columns=tb.Gaussian()).fit(steps, states, lengths)
    arrays = [part.copy() for part in np.split(steps, np.cumsum(lengths)[:-1])]
    assert isinstance(sequences.open_sequences(arrays, requested=True).table, ConcatenatedTable)
    np.testing.assert_array_equal(model.score_samples(arrays), model.score_samples(steps, lengths))
    for one, other in zip(model.predict(arrays), model.predict(steps, lengths), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(model.predict_proba(arrays), model.predict_proba(steps, lengths), strict=True):
        np.testing.assert_array_equal(one, other)
    arrays[4][7, 0] = np.inf
    with pytest.raises(tb.DataError, match=r"inf.*row 158"):
        model.score_samples(arrays)
