"""Sensitivity analysis, against networks with changed CPTs and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, ImpossibleError, LabelError
from tallybayes.models.network.analysis.sensitivity import Entry
from tallybayes.models.network.io.network_tables import NetworkTables
from tests.examples import examples
from tests.unit.models.network.network_cases import given, networks, questions, weigh
from tests.unit.plotting.network_pictures import fire_alarm, mixed_network, random_network


def changed(tables, entry, value):
    """The network in which one entry is another number, and the others of its line keep their proportions."""
    node = entry.node
    place = tuple(tables.levels[parent].index(level) for parent, level in entry.given.items())
    table = np.array(tables.tables[node])
    k = tables.levels[node].index(entry.level)
    line = table[place]
    rest = np.delete(line, k)
    rest = rest / rest.sum() if rest.sum() > 0 else np.full(len(rest), 1 / len(rest))
    table[place] = np.insert(rest * (1 - value), k, value)
    return NetworkTables(tables.parents, tables.levels, {**tables.tables, node: table})


def event_probability(tables, event, observed, do):
    nodes = list(tables.parents)
    weights = weigh(tables, observed, do)
    total = math.fsum(weights.values())
    both = math.fsum(
        p for row, p in weights.items() if all(row[nodes.index(node)] == level for node, level in event.items())
    )
    return both / total if total > 0 else math.nan


@pytest.mark.slow
@examples(60)
@hypothesis_given(st.data())
def test_functions_equal_queries_of_changed_networks(data):
    tables = data.draw(networks())
    observed, do = data.draw(questions(tables))
    free = [node for node in tables.parents if node not in do and node not in observed]
    assume(free and math.fsum(weigh(tables, observed, do).values()) > 0)
    chosen = data.draw(st.lists(st.sampled_from(free), min_size=1, max_size=2, unique=True))
    event = {node: data.draw(st.sampled_from(tables.levels[node])) for node in chosen}
    found = given(tables).sensitivity(event, observed, do=do)
    assert found.probability == pytest.approx(event_probability(tables, event, observed, do), abs=1e-12)
    listed = {(entry.node, entry.level, tuple(entry.given.items())) for entry in found}
    for entry in found[:12]:
        for value in (0.0, 0.3, 0.85, 1.0):
            expected = event_probability(changed(tables, entry, value), event, observed, do)
            if not math.isnan(expected):  # else what is observed is impossible there
                assert entry.answer(value) == pytest.approx(expected, abs=1e-9)
        assert entry.answer(entry.value) == pytest.approx(found.probability, abs=1e-12)
    for node, above in tables.parents.items():  # what is left out does not move it
        if node in do:
            continue
        for place in np.ndindex(*(len(tables.levels[parent]) for parent in above)):
            line = {parent: tables.levels[parent][k] for parent, k in zip(above, place, strict=True)}
            level = tables.levels[node][-1]
            if (node, level, tuple(line.items())) not in listed and len(tables.levels[node]) > 1:
                entry = Entry(node, level, line, 0.0, 0.0, 0.0, 0.0, (0.0, 0.0, 0.0, 1.0))
                expected = event_probability(changed(tables, entry, 0.37), event, observed, do)
                assert math.isnan(expected) or expected == pytest.approx(found.probability, abs=1e-12)


@examples(60)
@hypothesis_given(st.data())
def test_slopes_and_ranges(data):
    tables = data.draw(networks(zeros=False))
    nodes = list(tables.parents)
    node = data.draw(st.sampled_from(nodes))
    observed = {other: tables.levels[other][0] for other in data.draw(st.sets(st.sampled_from(nodes))) - {node}}
    odds = data.draw(st.sampled_from([1.5, 2.0, 10.0, math.inf]))
    found = given(tables).sensitivity({node: tables.levels[node][-1]}, observed, odds=odds)
    for entry in found:
        step = 1e-6 * min(entry.value, 1 - entry.value)
        rise = entry.answer(entry.value + step) - entry.answer(entry.value - step)
        assert entry.slope == pytest.approx(rise / (2 * step), rel=1e-3, abs=1e-3)
        if math.isinf(odds):
            ends = (0.0, 1.0)
        else:
            ends = tuple(x / (1 + x) for x in (entry.value / (1 - entry.value) * k for k in (1 / odds, odds)))
        expected = sorted(entry.answer(end) for end in ends)
        assert [entry.low, entry.high] == pytest.approx(expected, abs=1e-9)
        assert entry.low - 1e-12 <= found.probability <= entry.high + 1e-12
        middle = (entry.low + entry.high) / 2
        if entry.high - entry.low > 1e-6:
            assert entry.answer(entry.value_for(middle)) == pytest.approx(middle, abs=1e-9)
    widths = [entry.high - entry.low for entry in found]
    assert widths == sorted(widths, reverse=True) or np.allclose(widths, sorted(widths, reverse=True), atol=1e-11)


def test_functions_of_entries_0_and_1():
    tables = {"a": [1.0, 0.0, 0.0], "b": [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]}
    levels = {"a": ("x", "y", "z"), "b": (False, True)}
    network = tb.BayesianNetwork.from_tables({"b": ["a"]}, levels, tables)
    found = network.sensitivity({"b": True}, odds=math.inf)
    assert found.probability == 0
    one = found.entry("a", "x")
    assert (one.value, one.low, one.high) == (1.0, 0.0, pytest.approx(0.75))  # what it gives up is shared equally
    assert found.entry("a", "y").answer(0.4) == pytest.approx(0.2)
    assert found.entry("b", True, {"a": "x"}).slope == 1
    assert found.entry("b", False, {"a": "x"}).slope == -1
    assert network.sensitivity({"b": True}).entry("a", "y").high == 0  # odds of 0 stay 0
    zero = network.sensitivity({"a": "y"}, {"b": False})
    assert zero.probability == 0
    assert zero.entry("a", "y").answer(0.5) == pytest.approx(0.25 / 0.75)


def test_value_for_a_given_probability():
    network = fire_alarm()
    found = network.sensitivity({"fire": True}, {"report": True})
    assert found.probability == pytest.approx(network.query("fire", {"report": True})[True], abs=1e-12)
    best = found[0]
    assert best == max(found, key=lambda entry: abs(entry.high - entry.low))
    prior = found.entry("fire", True)
    needed = prior.value_for(0.5)
    tables = {node: np.array(network.cpt(node).values) for node in network.levels_}
    tables["fire"] = [1 - needed, needed]
    again = tb.BayesianNetwork.from_tables(network.graph_.parents, network.levels_, tables)
    assert again.query("fire", {"report": True})[True] == pytest.approx(0.5)
    assert math.isnan(found.entry("leaving", True, {"alarm": True}).value_for(0.99))


def test_entries_without_influence_are_excluded():
    found = fire_alarm().sensitivity({"fire": True}, {"alarm": True})
    assert {entry.node for entry in found} == {"tampering", "fire", "alarm"}
    with pytest.raises(DataError, match=r"no entry p\('report' = True \| leaving = True\) has an influence"):
        found.entry("report", True, {"leaving": True})
    assert len(fire_alarm().sensitivity({"fire": True}, do={"smoke": True})) == 1
    lines = fire_alarm().sensitivity({"smoke": True}, {"fire": True})
    assert [(entry.name, entry.slope) for entry in lines] == [
        ("p(smoke = True | fire = True)", pytest.approx(1.0)),
        ("p(smoke = True | fire = False)", 0.0),
    ]


@pytest.mark.slow
def test_improbable_evidence_keeps_its_precision():
    parents = {f"x{k}": ["y"] for k in range(1500)}
    tables = {"y": [0.5, 0.5], **{name: [[0.6, 0.4], [0.4, 0.6]] for name in parents}}
    network = tb.BayesianNetwork.from_tables(parents, dict.fromkeys(tables, (0, 1)), tables)
    known = {f"x{k}": k % 2 for k in range(1500)}
    found = network.sensitivity({"y": 1}, known)
    assert found.probability == pytest.approx(0.5, abs=1e-9)
    assert found.entry("x3", 1, {"y": 1}).answer(0.3) == pytest.approx(1 / 3, abs=1e-9)


def test_continuous_and_soft_evidence():
    model = mixed_network()
    found = model.sensitivity({"kind": "b"}, {"weight": 1.4})
    assert found.probability == pytest.approx(model.query("kind", {"weight": 1.4})["b"], abs=1e-12)
    share = found.entry("kind", "b")
    odds = share.value / (1 - share.value) * 2
    ratio = found.probability / (1 - found.probability) * 2
    assert share.answer(odds / (1 + odds)) == pytest.approx(ratio / (1 + ratio), abs=1e-12)


def test_undefined_rows_have_no_entry():
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 0], "c": [0, 1, 1, 0]}
    unseen = tb.BayesianNetwork({"c": ["a", "b"]}, estimate="mle").fit(rows)
    with pytest.raises(EstimateError, match="no row has 'c' with a = 1, b = 1"):
        unseen.sensitivity({"c": 1})
    found = unseen.sensitivity({"c": 1}, {"a": 0})
    assert all(entry.given != {"a": 1, "b": 1} for entry in found)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"event": {}}, DataError, "event is {}"),
        ({"event": "fire"}, DataError, "expected a mapping from nodes to levels"),
        ({"event": {"flood": True}}, DataError, "no node 'flood'"),
        ({"event": {"fire": "yes"}}, LabelError, "no level 'yes'"),
        ({"event": {"fire": {True: 1, False: 2}}}, DataError, "one level for every node"),
        (
            {"event": {"fire": True}, "given": {"fire": True}},
            DataError,
            "node 'fire' is in the event and in the evidence",
        ),
        ({"event": {"fire": True}, "do": {"fire": True}}, DataError, "node 'fire' is in the event and in the evidence"),
        ({"event": {"fire": True}, "odds": 1}, DataError, "odds is 1; expected a number above 1"),
        ({"event": {"fire": True}, "given": {"smoke": {True: 0, False: 0}}}, ImpossibleError, "smoke"),
    ],
)
def test_invalid_arguments_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        fire_alarm().sensitivity(**arguments)


def test_display_and_plot():
    found = fire_alarm().sensitivity({"fire": True}, {"report": True})
    text = repr(found)
    assert text.startswith("p(fire = True | report = True) = 0.2305, if the odds of an entry are halved or doubled:")
    assert "p(fire = True)" in text
    assert "slope" in found._repr_html_()
    assert list(found.to_frame()) == ["node", "level", "given", "value", "low", "high", "slope"]
    assert [entry.node for entry in found[:2]] == found.to_frame()["node"].tolist()[:2]
    many = random_network(12, 0).sensitivity({"node 11": "level 2"}, {"node 3": "level 0"}, odds=math.inf)
    assert " more" in repr(many)
    assert "from 0 to 1" in repr(many)
    assert len(many.plot(most=5).to_frame()) == 5
    with pytest.raises(DataError, match="most is 0"):
        many.plot(most=0)
