"""Marginal MAP, against the joint distribution."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, ImpossibleError, TooLargeError
from tallybayes.models.network.inference import triangulation
from tests.examples import examples
from tests.unit.models.network.network_cases import given, networks, questions, weigh
from tests.unit.plotting.network_pictures import fire_alarm, mixed_network


@pytest.mark.slow
@examples(200)
@hypothesis_given(st.data())
def test_marginal_map_equals_enumeration(data):
    tables = data.draw(networks(most_nodes=6))
    observed, do = data.draw(questions(tables))
    weights = weigh(tables, observed, do)
    total = math.fsum(weights.values())
    assume(total > 0)
    nodes = list(tables.parents)
    query_nodes = data.draw(st.lists(st.sampled_from(nodes), min_size=1, unique=True))
    summed = defaultdict(float)
    for levels, p in weights.items():
        summed[tuple(levels[nodes.index(node)] for node in query_nodes)] += p
    found = given(tables).most_probable(observed, query_nodes, do=do)
    assert list(found) == query_nodes
    best = summed[tuple(found.values())]
    assert best == pytest.approx(max(summed.values()), rel=1e-9)
    assert math.exp(found.log_probability) == pytest.approx(best / total, rel=1e-9)


def test_all_nodes_equal_mpe():
    network = fire_alarm()
    every = network.most_probable({"report": True})
    named = network.most_probable({"report": True}, list(network.levels_))
    assert dict(named) == {node: every[node] for node in named}
    assert named.log_probability == pytest.approx(every.log_probability, rel=1e-12)
    assert repr(named).splitlines()[0] == "most probable assignment, p = 0.391"


def test_marginal_map_may_differ_from_mpe():
    network = fire_alarm()
    found = network.most_probable({"smoke": True}, ["fire"])
    assert dict(found) == {"fire": network.query("fire", {"smoke": True}).best}
    pair = network.most_probable({"report": True}, ["fire", "tampering"])
    joint = network.query(["fire", "tampering"], {"report": True})
    assert tuple(pair.values()) == joint.best
    assert math.exp(pair.log_probability) == pytest.approx(joint[joint.best], rel=1e-12)
    assert "summed over the others" in repr(pair)
    assert "(evidence)" in repr(network.most_probable({"report": True}, ["report", "fire"]))


def test_continuous_evidence_and_continuous_query_nodes():
    model = mixed_network()
    for weight in (-1.0, 4.0):
        assert model.most_probable({"weight": weight}, "kind")["kind"] == model.query("kind", {"weight": weight}).best
    with pytest.raises(DataError, match="node 'weight' is continuous"):
        model.most_probable(nodes="weight")


def hidden_steps(n):
    """Steps that are hidden, each seen through another node: to sum over them joins all that is seen."""
    parents = {f"z{k}": [f"z{k - 1}"] if k else [] for k in range(n)} | {f"x{k}": [f"z{k}"] for k in range(n)}
    tables = {node: np.array([[0.7, 0.3], [0.4, 0.6]]) if above else [0.5, 0.5] for node, above in parents.items()}
    return tb.BayesianNetwork.from_tables(parents, dict.fromkeys(parents, (0, 1)), tables)


def test_too_large_queries_raise_with_their_size(monkeypatch):
    monkeypatch.setattr(triangulation, "available_memory", lambda: 2**44)  # whatever the machine has
    network, seen = hidden_steps(45), [f"x{k}" for k in range(45)]
    with pytest.raises(TooLargeError, match=r"assignment of 45 of 90 nodes: .* in one table of 7.04e\+13 cells"):
        network.most_probable(nodes=seen)
    assert len(network.most_probable()) == 90
    some = network.most_probable(dict.fromkeys(seen[10:], 1), seen)  # what is known takes no room
    assert some["x44"] == 1


@pytest.mark.slow
def test_improbable_long_chains_do_not_underflow():
    network = hidden_steps(1500)
    known = {f"x{k}": k % 2 for k in range(3, 1500)}
    found = network.most_probable(known, ["z0", "x0", "x1"])
    answer = network.query(["z0", "x0", "x1"], known)
    assert tuple(found.values()) == answer.best
    assert math.exp(found.log_probability) == pytest.approx(answer[answer.best], rel=1e-9)


@pytest.mark.parametrize("nodes", [[], ["fire", "fire"], "flood", 3.5])
def test_invalid_query_nodes_raise(nodes):
    with pytest.raises(DataError):
        fire_alarm().most_probable(nodes=nodes)


def test_impossible_or_undefined_queries_raise():
    network = tb.BayesianNetwork({"b": ["a"]}, estimate="mle").fit({"a": [0, 0, 1], "b": [0, 0, 1]})
    with pytest.raises(ImpossibleError, match="a = 0, b = 1"):
        network.most_probable({"a": 0, "b": 1}, "a")
    rows = {"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 1]}
    unseen = tb.BayesianNetwork({"c": ["a", "b"]}, estimate="mle").fit(rows)
    with pytest.raises(EstimateError, match="no row has 'c' with a = 1, b = 1"):
        unseen.most_probable(nodes="c")
    assert unseen.most_probable(nodes="a")["a"] == 0
