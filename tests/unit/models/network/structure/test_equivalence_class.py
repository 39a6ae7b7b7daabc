"""Equivalence classes and distances, against all structures of four nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import tallybayes as tb
from tallybayes.models.network.structure.equivalence_class import consistent_extension, cpdag
from tests.unit.models.network.structure.structures import GRAPHS, graphs, is_acyclic, named, skeleton_and_colliders

CLASSES: dict[object, list[np.ndarray]] = {}
for graph in GRAPHS:
    CLASSES.setdefault(skeleton_and_colliders(graph), []).append(graph)


def test_number_of_equivalence_classes():
    assert len(GRAPHS) == 543  # Robinson, 1973
    assert len(CLASSES) == 185  # Gillispie and Perlman, 2002


def test_directed_edges_are_those_of_all_members():
    for members in CLASSES.values():
        expected = np.logical_or.reduce(members)  # both ways where members differ
        for edges in members:
            assert (cpdag(edges) == expected).all()


def test_consistent_extension_is_a_member():
    for key, members in CLASSES.items():
        edges = consistent_extension(cpdag(members[-1]))
        assert is_acyclic(edges)
        assert skeleton_and_colliders(edges) == key


def test_contradictory_marks_extend_to_a_dag():
    rng = np.random.default_rng(0)
    for _ in range(50):
        marks = rng.random((6, 6)) < 0.5
        np.fill_diagonal(marks, False)
        edges = consistent_extension(marks)
        assert is_acyclic(edges)
        assert ((edges | edges.T) == (marks | marks.T)).all()


def test_the_asia_network():
    # Lauritzen and Spiegelhalter's: its class is printed in many books.
    edges = [
        "asia>tub",
        "smoke>lung",
        "smoke>bronc",
        "tub>either",
        "lung>either",
        "either>xray",
        "either>dysp",
        "bronc>dysp",
    ]
    found = tb.equivalence_class([tuple(edge.split(">")) for edge in edges])
    assert set(found.directed) == {
        ("tub", "either"),
        ("lung", "either"),
        ("either", "xray"),
        ("either", "dysp"),
        ("bronc", "dysp"),
    }
    assert {frozenset(edge) for edge in found.undirected} == {
        frozenset({"asia", "tub"}),
        frozenset({"smoke", "lung"}),
        frozenset({"smoke", "bronc"}),
    }


@given(first=graphs, second=graphs)
def test_distance_counts_differing_pairs(first, second):
    def expected(one, other):
        return sum((one[a, b], one[b, a]) != (other[a, b], other[b, a]) for a in range(4) for b in range(a))

    assert tb.structural_hamming_distance(named(first), named(second)) == expected(first, second)
    classes = [tb.equivalence_class(named(edges)) for edges in (first, second)]
    assert tb.structural_hamming_distance(*classes) == expected(cpdag(first), cpdag(second))


def test_distance_accepts_all_kinds_of_graphs():
    rows = {"a": [0, 1] * 10, "b": [0, 1] * 10}
    model = tb.BayesianNetwork({"b": ["a"]}).fit(rows)
    assert tb.structural_hamming_distance(model, tb.learn_structure(rows)) == 0
    assert tb.structural_hamming_distance(model.graph_, [("b", "a")]) == 1


def test_invalid_graphs_raise():
    chain = [("a", "b"), ("b", "c")]
    with pytest.raises(tb.DataError, match="expected two of one kind"):
        tb.structural_hamming_distance(chain, tb.equivalence_class(chain))
    with pytest.raises(tb.DataError, match="no node in common"):
        tb.structural_hamming_distance(chain, [("x", "y")])
    with pytest.raises(tb.DataError, match="a cycle"):
        tb.equivalence_class([("a", "b"), ("b", "a")])
