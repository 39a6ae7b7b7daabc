"""The target of a network: the name of a node, which may be a whole number, or a Series of that name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tallybayes as tb


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    a = rng.integers(2, size=40)
    b = np.where(rng.random(40) < 0.8, a, 1 - a)
    return pd.DataFrame({"a": a, "b": b, "c": np.where(rng.random(40) < 0.7, b, 1 - b)})


def test_target_as_a_series(rows):
    network = tb.BayesianNetwork({"b": ["a"], "c": ["b"]})
    model, X, y = network.fit(rows), rows[["a", "b"]], rows["c"]
    assert repr(tb.evaluate(model, X, y)) == repr(tb.evaluate(model, rows, "c"))
    assert repr(tb.evaluate(model, pl.from_pandas(X), pl.Series("c", y))) == repr(tb.evaluate(model, rows, "c"))
    assert repr(tb.cross_validate(network, X, y)) == repr(tb.cross_validate(network, rows, "c"))
    assert repr(tb.audit(model, X, y)) == repr(tb.audit(model, rows, "c"))
    with pytest.raises(tb.DataError, match="target is a ndarray"):
        tb.evaluate(model, X, y.to_numpy())
    with pytest.raises(tb.DataError, match="no node 'q'"):
        tb.evaluate(model, X, y.rename("q"))


def test_targets_named_by_integers(rows):
    named = tb.BayesianNetwork({"b": ["a"], "c": ["b"]}).fit(rows)
    rows = rows.set_axis([0, 1, 2], axis=1)
    network = tb.BayesianNetwork({1: [0], 2: [1]})
    model = network.fit(rows)
    expected = tb.evaluate(named, rows.set_axis(["a", "b", "c"], axis=1), "c").log_loss.value
    assert tb.evaluate(model, rows, 2).log_loss.value == expected
    assert tb.evaluate(model, rows[[0, 1]], rows[2]).log_loss.value == expected
    assert tb.cross_validate(network, rows, 2).n_rows == 40
    assert tb.prequential(network, rows, 2).to_frame()["rows"].tolist() == [40]
    assert tb.audit(model, rows, 2).labels == tb.audit(model, rows, np.int64(2)).labels
    assert isinstance(model.predict(rows, np.int64(2)), np.ndarray)
    assert model.predict_proba(rows, np.int64(2)).shape == (40, 2)
