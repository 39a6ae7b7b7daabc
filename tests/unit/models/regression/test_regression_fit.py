"""Targets of a regression: values, a Series, or the name of a column, which may be a whole number."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    return pd.DataFrame(np.column_stack([X, X @ [1, 2] + rng.normal(size=30)]))  # columns 0, 1 and 2


@pytest.mark.parametrize("target", [2, np.int64(2)])
@pytest.mark.parametrize("of", [lambda rows: rows, np.asarray], ids=["frame", "array"])
def test_a_target_is_named_by_a_whole_number(target, of, rows, tmp_path):
    data, expected = of(rows), tb.LinearRegression().fit(rows[[0, 1]], rows[2])
    model = tb.LinearRegression().fit(data, target)
    np.testing.assert_allclose(model.predict(rows), expected.predict(rows[[0, 1]]), rtol=1e-12)
    model.partial_fit(data[:5], target).forget(data[:5], target)
    assert model.n_rows_ == 30
    assert tb.evaluate(model, data, target).r2.value == tb.evaluate(expected, rows[[0, 1]], rows[2]).r2.value
    assert tb.cross_validate(tb.LinearRegression(), data, target).n_rows == 30
    model.save(tmp_path / "r.tally")
    np.testing.assert_array_equal(tb.load(tmp_path / "r.tally").predict(rows), model.predict(rows))


def test_a_whole_number_that_names_no_column_is_named(rows):
    with pytest.raises(tb.DataError, match="no column 7 in the data"):
        tb.LinearRegression().fit(rows, 7)
