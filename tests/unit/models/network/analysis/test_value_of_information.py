"""Value of information, against the joint distribution."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, ImpossibleError, LabelError
from tests.examples import examples
from tests.unit.models.network.network_cases import given, networks, questions, weigh
from tests.unit.plotting.network_pictures import fire_alarm, mixed_network


def entropy(shares):
    return -math.fsum(p * math.log2(p) for p in shares if p > 0)


@pytest.mark.slow
@examples(150)
@hypothesis_given(st.data())
def test_bits_and_costs_equal_enumeration(data):
    tables = data.draw(networks())
    nodes = list(tables.parents)
    target = data.draw(st.sampled_from(nodes))
    observed, do = data.draw(questions(tables))
    observed, do = ({node: value for node, value in part.items() if node != target} for part in (observed, do))
    weights = weigh(tables, observed, do)
    total = math.fsum(weights.values())
    assume(total > 0)
    levels = tables.levels[target]
    costs = np.array(data.draw(st.lists(st.integers(-3, 9), min_size=len(levels) ** 2, max_size=len(levels) ** 2)))
    costs = costs.reshape(len(levels), -1).astype(float)
    found = given(tables).value_of_information(target, observed, cost=costs, do=do)

    def least(shares):  # of p(target, answer)
        return min(math.fsum(shares[k] * costs[k, d] for k in range(len(levels))) for d in range(len(levels)))

    place = nodes.index(target)
    prior = [math.fsum(p for row, p in weights.items() if row[place] == level) / total for level in levels]
    assert found.entropy == pytest.approx(entropy(prior), abs=1e-9)
    assert found.expected_cost == pytest.approx(least(prior), abs=1e-9)
    hard = {node for node, value in observed.items() if not isinstance(value, dict)} | set(do)
    assert set(found) == set(nodes) - hard - {target}
    for node in found:
        by_answer = defaultdict(lambda: np.zeros(len(levels)))
        for row, p in weights.items():
            by_answer[row[nodes.index(node)]][levels.index(row[place])] += p / total
        after = math.fsum(sum(shares) * entropy(shares / sum(shares)) for shares in by_answer.values() if sum(shares))
        assert found.bits[node] == pytest.approx(entropy(prior) - after, abs=1e-9)
        saved = least(prior) - math.fsum(least(shares) for shares in by_answer.values())
        assert found.saved[node] == pytest.approx(saved, abs=1e-9)
        assert found[node] == found.saved[node]
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_bits_without_costs_and_unit_costs_of_errors():
    network = fire_alarm()
    found = network.value_of_information("fire", {"report": True})
    assert found.best == "smoke"
    assert found["smoke"] == found.bits["smoke"]
    assert found.decision is found.expected_cost is None
    priced = network.value_of_information("fire", {"report": True}, observation_costs={"smoke": 0.05, "alarm": 0.5})
    assert priced.decision is False
    assert priced.expected_cost == pytest.approx(network.query("fire", {"report": True})[True])
    assert priced["smoke"] == pytest.approx(priced.saved["smoke"] - 0.05)
    assert priced.observation_costs == {node: {"smoke": 0.05, "alarm": 0.5}.get(node, 0.0) for node in priced}
    assert network.value_of_information("fire", observation_costs=5).best is None
    assert "no node is worth observing" in repr(network.value_of_information("fire", observation_costs=5))


def test_decisions_need_not_be_levels():
    network = fire_alarm()
    cost = {True: {"call": 10, "wait": 1000}, False: {"call": 10, "wait": 0}}
    found = network.value_of_information("fire", {"report": True}, cost=cost, observation_costs=1)
    assert (found.decision, found.expected_cost) == ("call", pytest.approx(10))
    assert list(found.to_frame()) == ["node", "bits", "saved", "observation_costs", "value"]
    assert list(network.value_of_information("fire").to_frame()) == ["node", "bits"]


def test_no_best_node_if_all_observation_costs_are_too_high():
    network = fire_alarm()
    truth = network.sample(1, {"fire": True, "smoke": True}, random_state=0)
    cost = {True: {"call": 10, "wait": 1000}, False: {"call": 10, "wait": 0}}
    known, queried = {"report": True}, []
    while (question := network.value_of_information("fire", known, cost=cost, observation_costs=0.5).best) is not None:
        queried.append(question)
        known[question] = truth[question][0]
    assert 1 <= len(queried) == len(set(queried)) < 5
    end = network.value_of_information("fire", known, cost=cost, observation_costs=0.5)
    assert end.decision == "call"
    assert max(end.values()) <= 0


def test_uninformative_nodes_have_no_value():
    network = fire_alarm()
    found = network.value_of_information("tampering", candidates=["fire", "smoke", "report"])
    assert found["fire"] == found["smoke"] == 0.0
    assert list(found) == ["report", "fire", "smoke"]
    assert network.value_of_information("fire", {node: True for node in network.levels_ if node != "fire"}).best is None


def test_soft_and_continuous_evidence():
    model = mixed_network()
    found = model.value_of_information("kind", {"weight": 1.5})
    assert list(found) == ["shop"]
    assert found.entropy == pytest.approx(entropy(model.query("kind", {"weight": 1.5}).values()))
    assert set(fire_alarm().value_of_information("fire", {"smoke": {False: 1, True: 4}})) >= {"smoke"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"target": "flood"}, DataError, "no node 'flood'"),
        ({"target": ["fire", "smoke"]}, DataError, "no node"),
        ({"target": "fire", "given": {"fire": True}}, DataError, "target 'fire' is observed"),
        ({"target": "fire", "candidates": ["fire"]}, DataError, "candidate 'fire' is the target"),
        ({"target": "fire", "given": {"smoke": True}, "candidates": "smoke"}, DataError, "'smoke' is already observed"),
        ({"target": "fire", "observation_costs": {"flood": 1}}, DataError, "no node 'flood'"),
        (
            {"target": "fire", "observation_costs": {"smoke": -1}},
            DataError,
            "observation cost of 'smoke' is -1.0; expected at least 0",
        ),
        ({"target": "fire", "observation_costs": "much"}, DataError, "the observation cost of 'tampering' is 'much'"),
        ({"target": "fire", "cost": {True: {"call": 1}}}, DataError, "cost has no costs for the true class False"),
        ({"target": "fire", "cost": {"yes": {"call": 1}}}, LabelError, "'yes'"),
        ({"target": "fire", "given": {"smoke": {False: 0.0, True: 0.0}}}, ImpossibleError, "smoke"),
    ],
)
def test_invalid_arguments_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        fire_alarm().value_of_information(**arguments)


def test_continuous_target_and_undefined_rows_raise():
    with pytest.raises(DataError, match="node 'weight' is continuous"):
        mixed_network().value_of_information("weight")
    with pytest.raises(DataError, match="node 'weight' is continuous"):
        mixed_network().value_of_information("kind", candidates="weight")
    rows = {"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 1]}
    unseen = tb.BayesianNetwork({"c": ["a", "b"]}, estimate="mle").fit(rows)
    with pytest.raises(EstimateError, match="no row has 'c' with a = 1, b = 1"):
        unseen.value_of_information("a")
    assert unseen.value_of_information("a", candidates="b")["b"] == 0.0


def test_display():
    network = fire_alarm()
    text = repr(network.value_of_information("fire", {"report": True}))
    assert text.startswith("value of information about fire, given report = True: entropy 0.779 bits\n")
    assert text.splitlines()[2].split()[0] == "smoke"
    assert "value" in network.value_of_information("fire", observation_costs=0.1)._repr_html_()
    many = tb.BayesianNetwork({f"x{k}": ["y"] for k in range(20)}).fit(
        {"y": [0, 1], **{f"x{k}": [0, 1] for k in range(20)}}
    )
    assert "… 8 more" in repr(many.value_of_information("y"))


def test_continuous_nodes_are_listed_as_not_evaluated():
    model = tb.BayesianNetwork.from_parameters(
        {
            "ill": {"levels": ["no", "yes"], "probabilities": [0.9, 0.1]},
            "fever": {"parents": ["ill"], "intercept": [36.8, 38.5], "std": [0.4, 0.8]},
        }
    )
    value = model.value_of_information("ill")
    assert value.measured == ("fever",)
    assert repr(value).endswith("  no discrete node is worth observing\n  continuous nodes, not evaluated: fever")
    assert model.value_of_information("ill", {"fever": 37.0}).measured == ()
