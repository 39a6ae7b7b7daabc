"""Causal effects by adjustment, against interventions and against all other adjustment sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError
from tallybayes.models.network.graph import Graph
from tests.examples import examples
from tests.unit.models.network.network_cases import given, graphs, networks
from tests.unit.plotting.network_pictures import fire_alarm


def random_tables(graph, rng):
    tables = {node: rng.dirichlet([1.0, 1.0], [2] * len(above)) for node, above in graph.parents.items()}
    return tb.BayesianNetwork.from_tables(graph.parents, dict.fromkeys(graph.nodes, (0, 1)), tables)


def if_set(network, of, on, known=None):
    """p(on | do(of)) in the network in which the node's arrows are cut."""
    return np.array([list(network.query(on, known, do={of: level}).values()) for level in network.levels_[of]])


def adjusted(network, of, on, some):
    """Σ p(on | of, some) p(some), written out."""
    table = network.query([of, *some, on]).probabilities
    table = table.reshape(len(table), -1, table.shape[-1])
    weight = table.sum(axis=2, keepdims=True)
    return (weight.sum(axis=0) * table / weight).sum(axis=1)


@pytest.mark.slow
@examples(80)
@hypothesis_given(st.data())
def test_effects_equal_interventions_with_the_smallest_set(data):
    graph = data.draw(graphs(6))
    network = random_tables(graph, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))))
    of, on, *rest = data.draw(st.permutations(graph.nodes))
    hidden = data.draw(st.sets(st.sampled_from(rest))) if rest else set()
    seen = [node for node in rest if node not in hidden]
    truth = if_set(network, of, on)
    enough = [
        set(some)
        for size in range(len(seen) + 1)
        for some in combinations(seen, size)
        if np.allclose(adjusted(network, of, on, some), truth, atol=1e-9)
    ]
    try:
        found = network.causal_effect(of, on, unobserved=hidden)
    except EstimateError:
        assert not enough  # tables at random: what is no adjustment does not come out right by chance
        return
    np.testing.assert_allclose(found.interventional, truth, atol=1e-12)
    np.testing.assert_allclose(found.observational, [list(network.query(on, {of: x}).values()) for x in (0, 1)])
    np.testing.assert_allclose(found.difference, found.interventional - found.observational)
    assert not hidden & set(found.adjusted)
    if found.criterion == "back-door":
        assert set(found.adjusted) in enough
        assert len(found.adjusted) == min(map(len, enough))
        again = network.causal_effect(of, on, adjust=found.adjusted, unobserved=hidden)
        np.testing.assert_array_equal(again.interventional, found.interventional)
    elif found.criterion == "front-door":
        assert not enough


@pytest.mark.slow
@examples(80)
@hypothesis_given(st.data())
def test_given_adjustment_sets(data):
    graph = data.draw(graphs(5))
    network = random_tables(graph, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))))
    of, on, *rest = data.draw(st.permutations(graph.nodes))
    assume(on in graph.descendants(of))
    some = data.draw(st.lists(st.sampled_from(rest), unique=True)) if rest else []
    enough = np.allclose(adjusted(network, of, on, some), if_set(network, of, on), atol=1e-9)
    if enough:
        found = network.causal_effect(of, on, adjust=some)
        assert found.adjusted == tuple(some)
        np.testing.assert_allclose(found.interventional, if_set(network, of, on), atol=1e-12)
    else:
        with pytest.raises(DataError, match=r"adjust= (has|leaves)"):
            network.causal_effect(of, on, adjust=some)


@examples(80)
@hypothesis_given(st.data())
def test_effects_with_zero_probabilities(data):
    tables = data.draw(networks())
    nodes = list(tables.parents)
    assume(len(nodes) > 1)
    of, on, *rest = data.draw(st.permutations(nodes))
    network = given(tables)
    hidden = data.draw(st.sets(st.sampled_from(rest))) if rest else set()
    try:
        found = network.causal_effect(of, on, unobserved=hidden)
    except EstimateError:
        return
    is_defined = ~np.isnan(found.interventional).any(axis=1)
    np.testing.assert_allclose(found.interventional[is_defined], if_set(network, of, on)[is_defined], atol=1e-12)
    for level, one in zip(tables.levels[of], is_defined, strict=True):
        if one:
            assert list(found[level].values()) == pytest.approx(list(network.query(on, do={of: level}).values()))
        else:
            with pytest.raises(EstimateError, match="never occurs"):
                found[level]
            assert "never occurs" in repr(found)


@examples(60)
@hypothesis_given(st.data())
def test_effects_in_a_subpopulation(data):
    graph = data.draw(graphs(6))
    network = random_tables(graph, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))))
    of, on, *rest = data.draw(st.permutations(graph.nodes))
    before = [node for node in rest if node not in graph.descendants(of)]
    assume(before)
    known = dict.fromkeys(data.draw(st.sets(st.sampled_from(before), min_size=1)), 1)
    left = [node for node in rest if node not in known]
    hidden = data.draw(st.sets(st.sampled_from(left))) if left else set()
    try:
        found = network.causal_effect(of, on, known, unobserved=hidden)
    except EstimateError:
        assert hidden
        return
    np.testing.assert_allclose(found.interventional, if_set(network, of, on, known), atol=1e-12)
    assert "given" in repr(found)


def smoking():
    """Pearl's example: an unobserved gene causes smoking and cancer; tar is the mediator of smoking."""
    tables = {
        "gene": [0.7, 0.3],
        "smoking": [[0.8, 0.2], [0.1, 0.9]],
        "tar": [[0.95, 0.05], [0.1, 0.9]],
        "cancer": [[[0.95, 0.05], [0.8, 0.2]], [[0.6, 0.4], [0.3, 0.7]]],
    }
    parents = {"smoking": ["gene"], "tar": ["smoking"], "cancer": ["gene", "tar"]}
    return tb.BayesianNetwork.from_tables(parents, dict.fromkeys(tables, ("no", "yes")), tables)


def test_a_front_door():
    network = smoking()
    found = network.causal_effect("smoking", "cancer", unobserved="gene")
    assert (found.criterion, found.adjusted) == ("front-door", ("tar",))
    np.testing.assert_allclose(found.interventional, if_set(network, "smoking", "cancer"), rtol=1e-12)
    assert "identified by the front-door set tar" in repr(found)
    open_one = network.causal_effect("smoking", "cancer")
    assert (open_one.criterion, open_one.adjusted) == ("back-door", ("gene",))
    with pytest.raises(
        EstimateError, match=r"smoking ← gene → cancer stays open .*\n    Observe 'gene', or call query"
    ):
        network.causal_effect("smoking", "cancer", unobserved=["gene", "tar"])


def test_no_effect_without_directed_path():
    network = fire_alarm()
    found = network.causal_effect("smoke", "alarm", unobserved="fire")
    assert (found.criterion, found.adjusted) == ("none", ())
    np.testing.assert_allclose(found.interventional, [list(network.query("alarm").values())] * 2)
    assert found.difference[1, 1] < -0.3
    assert "no directed path" in repr(found)
    assert found.contrast(True, False) == {False: 0.0, True: 0.0}


def test_colliders_are_not_adjusted_for():
    bias = {"meet": ["u", "v"], "of": ["u"], "on": ["v", "of"]}
    network = random_tables(Graph.read(bias), np.random.default_rng(0))
    assert network.causal_effect("of", "on", unobserved=["u", "v"]).adjusted == ()
    with pytest.raises(DataError, match=r"leaves a non-causal path open: of ← u → meet ← v → on"):
        network.causal_effect("of", "on", adjust="meet")
    with pytest.raises(DataError, match=r"adjust= has 'u', which is unobserved"):
        network.causal_effect("of", "on", adjust="u", unobserved="u")


def test_mediators_are_not_adjusted_for():
    with pytest.raises(DataError, match=r"has 'tar', which is on or below a causal path from 'smoking' to 'cancer'"):
        smoking().causal_effect("smoking", "cancer", adjust=["gene", "tar"])


def test_adjustment_set_nearest_to_the_outcome_is_taken():
    # either = lung or tub: given lung the cause is known, given bronc it is not
    tables = {
        "smoke": [0.5, 0.5],
        "lung": [[0.99, 0.01], [0.9, 0.1]],
        "bronc": [[0.7, 0.3], [0.4, 0.6]],
        "tub": [0.99, 0.01],
        "either": [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
        "dysp": [[[0.9, 0.1], [0.3, 0.7]], [[0.2, 0.8], [0.1, 0.9]]],
    }
    parents = {"lung": ["smoke"], "bronc": ["smoke"], "either": ["lung", "tub"], "dysp": ["bronc", "either"]}
    network = tb.BayesianNetwork.from_tables(parents, dict.fromkeys(tables, ("no", "yes")), tables)
    found = network.causal_effect("either", "dysp")
    assert found.adjusted == ("bronc",)
    np.testing.assert_allclose(found.interventional, if_set(network, "either", "dysp"), rtol=1e-12)
    by_lung = network.causal_effect("either", "dysp", adjust="lung")
    assert np.isnan(by_lung.interventional[0]).all()
    assert "either = 'no' never occurs where lung = 'yes'" in repr(by_lung)
    assert "never occurs" in by_lung._repr_html_()
    np.testing.assert_allclose(by_lung.interventional[1], found.interventional[1])
    with pytest.raises(EstimateError, match=r"never occurs where lung = 'no', tub = 'yes'.*\n    Adjust for other"):
        network.causal_effect("either", "dysp", adjust=["lung", "tub"])


def test_effects_on_means_of_a_continuous_node():
    rng = np.random.default_rng(3)
    old = rng.random(4000) < 0.4
    drug = rng.random(4000) < np.where(old, 0.8, 0.2)
    sex = rng.choice(["f", "m"], 4000)
    days = rng.normal(5 + 4 * old - 2 * drug + (sex == "f"))
    rows = {"old": old, "drug": drug, "sex": sex, "days": days}
    network = tb.BayesianNetwork({"drug": ["old"], "days": ["drug", "old", "sex"]}).fit(rows)
    found = network.causal_effect("drug", "days")
    assert found.adjusted == ("old",)
    drawn = [network.sample(40_000, do={"drug": level}, random_state=0)["days"].mean() for level in (False, True)]
    np.testing.assert_allclose(found.interventional, drawn, atol=0.05)
    assert found.contrast(True, False) == pytest.approx(-2, abs=0.1)
    assert found.observational[1] > found.observational[0]  # the old got it
    assert "mean, interventional" in repr(found)
    assert list(found.to_frame()) == ["drug", "interventional", "observational", "difference"]
    among = network.causal_effect("drug", "days", {"sex": "f"})
    assert among.contrast(True, False) == pytest.approx(-2, abs=0.15)
    assert among[True] == pytest.approx(found[True] + 0.5, abs=0.1)
    same = network.causal_effect("drug", "days", {"old": True, "sex": "m"})
    assert same.adjusted == ()
    assert same[True] == pytest.approx(same.observational[1], rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"treatment": "fire", "outcome": "fire"}, "the effect of 'fire' on itself"),
        ({"treatment": "fire", "outcome": "flood"}, "no node 'flood'"),
        ({"treatment": "fire", "outcome": "alarm", "unobserved": "flood"}, "no node 'flood'"),
        ({"treatment": "fire", "outcome": "alarm", "adjust": "flood"}, "no node 'flood'"),
        ({"treatment": "fire", "outcome": "alarm", "unobserved": "alarm"}, "treatment or outcome and unobserved"),
        ({"treatment": "fire", "outcome": "alarm", "given": {"alarm": True}}, "is the treatment or outcome and given"),
        (
            {"treatment": "fire", "outcome": "alarm", "given": {"smoke": True}},
            "given= has 'smoke', which depends on 'fire'",
        ),
        ({"treatment": "fire", "outcome": "alarm", "given": {"tampering": {True: 1, False: 2}}}, "expected a level"),
        (
            {"treatment": "fire", "outcome": "alarm", "given": {"tampering": True}, "unobserved": "tampering"},
            "is unobserved and given",
        ),
        (
            {"treatment": "fire", "outcome": "alarm", "adjust": ["alarm"]},
            "adjust= has 'alarm', which is treatment or outcome",
        ),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(DataError, match=message):
        fire_alarm().causal_effect(**arguments)


def test_invalid_continuous_treatments_and_blocks_raise():
    rows = {"a": ["x", "y"] * 20, "size": np.arange(40.0), "words": np.arange(80).reshape(40, 2)}
    columns = {"words": tb.Poisson()}
    network = tb.BayesianNetwork({"size": ["a"], "words": ["a"]}, columns=columns).fit(rows)
    with pytest.raises(DataError, match="'size' is continuous, and no edge leads from it to"):
        network.causal_effect("size", "a")
    with pytest.raises(DataError, match="node 'words' has 2 columns"):
        network.causal_effect("a", "words")


def test_display():
    found = fire_alarm().causal_effect("alarm", "report")
    assert repr(found).splitlines()[0] == "effect of alarm on report, adjusted for nothing"
    assert "observational" in found._repr_html_()
    assert len(found.to_frame()) == 4
    assert len(found) == 2
    assert list(found) == [False, True]
    with pytest.raises(KeyError):
        found[1]
