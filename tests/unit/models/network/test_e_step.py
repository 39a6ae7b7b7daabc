"""EM with missing connected continuous nodes, against EM of a multivariate normal and sums over levels."""

from __future__ import annotations

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError


def _dense_em(x, n_steps=150):
    """Mean and covariance of a multivariate normal by EM, row by row."""
    n, d = x.shape
    mean, covariance = np.nanmean(x, axis=0), np.diag(np.nanvar(x, axis=0))
    for _ in range(n_steps):
        first, second = np.zeros(d), np.zeros((d, d))
        for row in x:
            o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
            gain = covariance[np.ix_(m, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
            filled, extra = row.copy(), np.zeros((d, d))
            filled[m] = mean[m] + gain @ (row[o] - mean[o])
            extra[np.ix_(m, m)] = covariance[np.ix_(m, m)] - gain @ covariance[np.ix_(o, m)]
            first += filled
            second += np.outer(filled, filled) + extra
        mean, covariance = first / n, second / n - np.outer(first / n, first / n)
    return mean, covariance


@pytest.mark.slow
def test_complete_graph_is_a_multivariate_normal():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)) @ np.array([[1.0, 0.5, 0.2], [0, 1, -0.7], [0, 0, 0.6]]) + [1, 2, 3]
    x[rng.random(x.shape) < 0.25] = np.nan
    x[0] = np.nan  # a row of nothing
    graph = [("a", "b"), ("a", "c"), ("b", "c")]
    model = tb.BayesianNetwork(graph, estimate="mle", missing="em", tol=1e-12, max_iter=2000)
    model.fit(dict(zip("abc", x.T, strict=True)))
    mean, covariance = _dense_em(x)
    answer = model.query(["a", "b", "c"])
    np.testing.assert_allclose(answer.mean, mean, atol=1e-5)
    np.testing.assert_allclose(answer.covariance, covariance, atol=1e-5)
    assert (np.diff(model.history_) > -1e-9).all()
    assert model.history_[-1] == pytest.approx(model.log_likelihood(dict(zip("abc", x.T, strict=True))), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
def test_missing_discrete_and_continuous_cells(estimate):
    rng = np.random.default_rng(1)
    n = 150
    k = rng.integers(0, 2, n)
    x = rng.normal(2.0 * k, 1.0)
    rows = {
        "k": k.astype(object),
        "x": x,
        "y": np.where(k == 1, 2 * x, 1 - x) + rng.normal(0, 0.5, n),
        "b": np.where(rng.random(n) < 0.2 + 0.6 * k, "u", "v").astype(object),
        "z": rng.normal(k, 1.0),
    }
    for name, column in rows.items():
        column[rng.random(n) < 0.2] = None if name in "kb" else np.nan
    parents = {"x": ["k"], "y": ["k", "x"], "b": ["k"], "z": ["k"]}
    model = tb.BayesianNetwork(parents, estimate=estimate, missing="em", tol=1e-9).fit(rows)
    assert (np.diff(model.history_) > -1e-8).all()
    if estimate == "mle":
        assert model.history_[-1] == pytest.approx(model.log_likelihood(rows), abs=1e-5)
        again = model.fit(rows, initial=model)
        assert len(again.history_) < 5
    found = model.cpt("y").values
    np.testing.assert_allclose(found[:, 1].ravel() if found.ndim == 2 else found[..., 1].ravel(), [-1, 2], atol=0.25)
    with pytest.raises(DataError, match=r"column 'x' has missing cells"):
        model.partial_fit({"k": [1], "x": [np.nan], "y": [1.0], "b": ["u"], "z": [0.0]})


def test_complete_rows_are_counted_with_weights():
    rng = np.random.default_rng(2)
    rows = {"a": rng.normal(size=40), "b": rng.normal(size=40)}
    hard = tb.BayesianNetwork([("a", "b")], missing="em").fit(rows)
    assert not hard.tally_.soft
    assert hard.tally_ == tb.BayesianNetwork([("a", "b")]).fit(rows).tally_
    rows["b"][::4] = np.nan
    weight = rng.integers(0, 3, 40)
    twice = {name: np.repeat(column, weight) for name, column in rows.items()}
    settings = {"missing": "em", "estimate": "mle", "tol": 1e-11}
    first = tb.BayesianNetwork([("a", "b")], **settings).fit(rows, sample_weight=weight)
    second = tb.BayesianNetwork([("a", "b")], **settings).fit(twice)
    assert first.tally_.soft
    np.testing.assert_allclose(first.cpt("b").values, second.cpt("b").values, rtol=1e-6)


@pytest.mark.slow
def test_hidden_discrete_parent_of_linear_nodes():
    rng = np.random.default_rng(3)
    k = rng.integers(0, 2, 400)
    x = rng.normal(0, 1.0, 400)
    rows = {"x": x, "y": np.where(k == 1, 3 + 2 * x, -3 - x) + rng.normal(0, 0.3, 400)}
    columns = {"k": tb.Categorical(levels=[0, 1])}
    model = tb.BayesianNetwork({"y": ["k", "x"]}, columns=columns, missing="em", n_init=3, random_state=0, tol=1e-8)
    model.fit(rows)
    slopes = np.sort(np.ravel(model.cpt("y").values[..., 1]))
    np.testing.assert_allclose(slopes, [-1, 2], atol=0.1)
