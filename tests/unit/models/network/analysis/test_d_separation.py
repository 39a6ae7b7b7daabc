"""D-separation, against independence in the joint distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError
from tallybayes.models.network.graph import Graph
from tests.examples import examples
from tests.unit.models.network.network_cases import graphs
from tests.unit.plotting.network_pictures import fire_alarm


def by_moral_graph(graph, first, second, known):
    """Lauritzen's criterion, another way to the same answer: separation among the ancestors, without arrows."""
    kept = graph.ancestors([first, second, *known])
    near = Graph({node: graph.parents[node] for node in graph.nodes if node in kept}).moral()
    seen, waiting = {first}, [first]
    while waiting:
        for other in near[waiting.pop()] - seen - set(known):
            seen.add(other)
            waiting.append(other)
    return second not in seen


@examples(200)
@hypothesis_given(st.data())
def test_d_separation_equals_separation_in_the_moral_graph(data):
    graph = data.draw(graphs())
    nodes = data.draw(st.permutations(graph.nodes))
    first, second, known = nodes[0], nodes[1], nodes[2 : 2 + data.draw(st.integers(0, len(nodes) - 2))]
    expected = by_moral_graph(graph, first, second, known)
    assert graph.d_separated(first, second, known) == expected
    assert graph.d_separated(second, first, known) == expected
    path = graph.active_path(first, second, known)
    assert (path is None) == expected
    if path is not None:  # every step of it is allowed
        assert (path.nodes[0], path.nodes[-1]) == (first, second)
        assert len(set(path.nodes)) == len(path.nodes)
        assert set(path.edges) <= set(graph.edges)
        for node, before, after in zip(path.nodes[1:-1], path.edges, path.edges[1:], strict=False):
            meets = before[1] == node == after[1]
            assert bool(graph.descendants(node) & set(known)) if meets else node not in known


@examples(100)
@hypothesis_given(st.data())
def test_relevant_nodes_are_those_that_influence_a_node(data):
    graph = data.draw(graphs())
    nodes = data.draw(st.permutations(graph.nodes))
    n_known = data.draw(st.integers(0, len(nodes) - 1))
    known, hinted = nodes[1 : 1 + n_known], data.draw(st.sets(st.sampled_from(nodes[:1] + nodes[1 + n_known :])))
    expected = {node for node in nodes if nodes[0] in graph.influenced_nodes(node, known, hinted)}
    assert graph.relevant_nodes([nodes[0]], known, hinted) == expected


@examples(60)
@hypothesis_given(st.data())
def test_d_separated_nodes_are_independent(data):
    graph = data.draw(graphs(5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    tables = {node: rng.dirichlet([1.0, 1.0], [2] * len(above)) for node, above in graph.parents.items()}
    model = tb.BayesianNetwork.from_tables(graph.parents, dict.fromkeys(graph.nodes, (0, 1)), tables)
    nodes = data.draw(st.permutations(graph.nodes))
    known = dict.fromkeys(nodes[2 : 2 + data.draw(st.integers(0, len(nodes) - 2))], 1)
    both = model.query(nodes[:2], known).probabilities
    alone = np.outer(both.sum(axis=1), both.sum(axis=0))
    if model.d_separated(nodes[0], nodes[1], known):
        np.testing.assert_allclose(both, alone, atol=1e-12)
    else:
        assert np.abs(both - alone).max() > 1e-13


@examples(100)
@hypothesis_given(graphs())
def test_markov_blanket_is_minimal(graph):
    for node in graph.nodes:
        blanket = graph.markov_blanket(node)
        others = [other for other in graph.nodes if other != node and other not in blanket]
        if others:
            assert graph.d_separated(node, others, blanket)
        for left_out in blanket:
            assert not graph.d_separated(node, left_out, blanket - {left_out})


def test_ancestors_descendants_and_the_moral_graph():
    graph = fire_alarm().graph_
    assert graph.ancestors("leaving") == {"leaving", "alarm", "tampering", "fire"}
    assert graph.descendants("fire") == {"fire", "alarm", "smoke", "leaving", "report"}
    assert graph.descendants(["smoke", "tampering"]) == {"smoke", "tampering", "alarm", "leaving", "report"}
    assert graph.moral()["tampering"] == {"alarm", "fire"}
    with pytest.raises(DataError, match="no node 'flood'"):
        graph.descendants("flood")


def test_graph_of_an_unfitted_network():
    network = tb.BayesianNetwork({3: [1, 2], 4: [3]})
    assert network.d_separated(1, 2)
    assert not network.d_separated(1, 2, given=4)
    assert network.active_path(1, 2, 4).nodes == (1, 3, 2)
    assert network.markov_blanket(1) == {2, 3}
    assert network.d_separated(np.int64(1), 4, [np.int64(3)])


def test_soft_evidence_opens_colliders_and_blocks_nothing():
    network = fire_alarm()
    hint = {True: 2.0, False: 1.0}
    assert not network.d_separated("tampering", "fire", {"alarm": hint})
    assert not network.d_separated("tampering", "leaving", {"alarm": hint})
    assert network.d_separated("tampering", "leaving", {"alarm": True})
    assert "has soft evidence" in repr(network.active_path("tampering", "fire", {"alarm": hint}))


def test_sets_are_d_separated_if_all_pairs_are():
    network = fire_alarm()
    assert network.d_separated(["tampering"], ["fire", "smoke"])
    assert not network.d_separated(["tampering", "smoke"], ["fire", "report"], "alarm")
    assert network.active_path(["tampering", "smoke"], ["report"], "alarm") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fire", "fire"), "node 'fire' is in the query and on both sides"),
        (("fire", "smoke", "fire"), "node 'fire' is in the query and given"),
        (("fire", "smoke", ["smoke"]), "node 'smoke' is in the query and given"),
        (("fire", "flood"), "no node 'flood'"),
        (("fire", []), "second is empty"),
        (("fire", 2.5), "expected the name of a node, or several"),
        (("fire", "smoke", ["flood"]), "no node 'flood'"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(DataError, match=message):
        fire_alarm().d_separated(*arguments)


def test_display_of_paths_and_blankets():
    network = fire_alarm()
    path = network.active_path("tampering", "smoke", "report")
    assert repr(path).splitlines()[0] == "tampering → alarm ← fire → smoke"
    assert "because report is observed" in repr(path)
    assert "tampering → alarm" in path._repr_html_()
    assert repr(network.active_path("fire", "smoke")) == "fire → smoke"
    blanket = network.markov_blanket("fire")
    assert blanket == {"alarm", "smoke", "tampering"}
    assert blanket | {"report"} == {"alarm", "smoke", "tampering", "report"}
    assert "spouses   tampering" in blanket._repr_html_()
    assert repr(tb.BayesianNetwork({"a": []}).markov_blanket("a")).startswith("Markov blanket of a: 0 nodes")
