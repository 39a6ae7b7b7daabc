"""Chow-Liu trees and TAN, against every spanning tree."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, TooLargeError
from tests.examples import examples


def _trees(n):
    """All undirected trees over n nodes, as lists of edges."""
    edges = list(combinations(range(n), 2))
    for chosen in combinations(edges, n - 1):
        joined = {0}
        for _ in range(n):
            joined |= {k for edge in chosen if joined & set(edge) for k in edge}
        if len(joined) == n:
            yield chosen


def _directed(chosen, n):
    parents, waiting = {0: ()}, [0]
    for node in waiting:
        for edge in chosen:
            if node in edge:
                other = edge[0] if edge[1] == node else edge[1]
                if other not in parents:
                    parents[other] = (node,)
                    waiting.append(other)
    return parents


@examples(30)
@hypothesis_given(st.integers(0, 10**6), st.integers(1, 4))
def test_no_other_tree_is_more_likely(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (40, n))
    if n > 1:
        X[:, -1] = np.where(rng.random(40) < 0.7, X[:, 0], X[:, -1])

    def likelihood(model):
        return model.reestimate(estimate="mle").score_samples(X).sum()

    found = tb.learn_tree(X)
    best = max(likelihood(tb.BayesianNetwork(_directed(chosen, n)).fit(X)) for chosen in _trees(n)) if n > 1 else None
    if best is not None:
        assert likelihood(found) == pytest.approx(best)
    again = tb.BayesianNetwork(found.graph_.parents).fit(X)
    assert {node: again.cpt(node).values.tolist() for node in range(n)} == {
        node: found.cpt(node).values.tolist() for node in range(n)
    }


@pytest.mark.slow
@examples(20)
@hypothesis_given(st.integers(0, 10**6))
def test_no_other_augmented_tree_is_more_likely(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 60)
    X = {f"x{k}": (rng.integers(0, 2, 60) + y * k) % 2 for k in range(4)}
    X["x3"] = np.where(rng.random(60) < 0.7, X["x1"] ^ y, X["x3"])
    rows = {"y": y, **X}
    found = tb.learn_tree(rows, "y")
    names = list(X)

    def likelihood(model):
        return model.reestimate(estimate="mle").score_samples(rows).sum()

    best = -np.inf
    for chosen in _trees(4):
        parents = {names[k]: ("y", *(names[p] for p in up)) for k, up in _directed(chosen, 4).items()}
        best = max(best, likelihood(tb.BayesianNetwork(parents).fit(rows)))
    assert likelihood(found) == pytest.approx(best)
    assert all("y" in parents for node, parents in found.graph_.parents.items() if node != "y")


def test_weights_missing_cells_and_continuous_columns():
    rows = {"y": [0, 0, 1, 1, 1], "a": [0, 1, None, 1, 0], "b": [0, 1, 1, 1, 0], "x": [0.5, 1.5, 2.5, np.nan, 0.0]}
    model = tb.learn_tree(rows, "y", sample_weight=[1, 2, 1, 1, 0], estimate="map")
    assert model.estimate == "map"
    assert model.graph_.parents["x"] == ("y",)
    assert model.tally_[("x",)].weight.sum() == 4.0
    again = tb.BayesianNetwork(model.graph_.parents).fit(rows, sample_weight=[1, 2, 1, 1, 0])
    for node in ("y", "a", "b"):
        np.testing.assert_allclose(model.reestimate(estimate="bayes").cpt(node).values, again.cpt(node).values)
    model.partial_fit(rows).forget(rows)
    assert tb.learn_tree({"only": [0, 1]}).graph_.parents == {"only": ()}
    alone = tb.learn_tree({"y": [0, 1], "x": [0.5, 1.5]}, "y")
    assert alone.graph_.parents == {"y": (), "x": ("y",)}


def test_invalid_columns_of_trees_raise():
    with pytest.raises(DataError, match=r"column 'x' is continuous; a tree without a target needs categorical columns"):
        tb.learn_tree({"a": [0, 1], "x": [0.5, 1.5]})
    with pytest.raises(DataError, match=r"no column 'z'"):
        tb.learn_tree({"a": [0, 1]}, "z")
    with pytest.raises(DataError, match=r"the data have no columns"):
        tb.learn_tree({})
    many = {f"x{k}": np.arange(200_000) for k in range(4)}
    with pytest.raises(TooLargeError, match=r"all pairs of 4 columns"):
        tb.learn_tree(many)


def test_trees_accept_parameters_of_networks():
    rng = np.random.default_rng(0)
    rows = {"y": rng.integers(0, 2, 60), "a": rng.integers(0, 2, 60), "n": rng.poisson(2.0, 60), "w": np.ones(60)}
    columns = {"a": tb.Categorical(levels=(0, 1, 2)), "n": tb.Poisson()}
    some = {name: rows[name] for name in ("y", "a", "n")}
    model = tb.learn_tree(some, "y", columns=columns)
    assert model.levels_["a"] == (0, 1, 2)
    assert model._estimated_network.nodes["n"].family == tb.Poisson()
    holed = {"a": [0, 1, None, 1] * 5, "b": [0, 1, 1, None] * 5}
    assert tb.learn_tree(holed, missing="em").tally_.soft
    halved = tb.learn_tree({"y": rows["y"], "a": rows["a"]}, "y", sample_weight=np.full(60, 0.5))
    assert halved.tally_[("y",)].table.sum() == 30
    named = tb.learn_tree({"y": rows["y"], "a": rows["a"], "w": np.full(60, 0.5)}, "y", sample_weight="w")
    assert named.tally_ == halved.tally_
    with pytest.raises(EstimateError, match=r"missing is 'drop'"):
        tb.learn_tree(holed, missing="drop")
    with pytest.raises(EstimateError, match=r"estimate is 'ml'"):
        tb.learn_tree(holed, estimate="ml")
    with pytest.raises(DataError, match=r"column 'b' has no cell that counts"):
        tb.learn_tree({"a": [0, 1], "b": [None, None]})
    with pytest.raises(DataError, match=r"has no cell that counts"):
        tb.learn_tree({"a": [0, 1], "b": [0, 1]}, sample_weight=[0.0, 0.0])
