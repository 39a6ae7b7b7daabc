"""Causal effects of continuous nodes, against normal algebra and regression on the adjustment set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError
from tests.unit.models.network.linear_cases import line_networks, measured_of, weigh
from tests.unit.models.network.linear_cases import settings as combinations


def linked(model, nodes):
    return [node for node in measured_of(nodes) if node in model._estimated_network.inference.component_index]


@given(line_networks(), st.integers(0, 2**32 - 1))
def test_slope_is_the_change_by_intervention(nodes, seed):
    model, rng = tb.BayesianNetwork.from_parameters(nodes), np.random.default_rng(seed)
    some = linked(model, nodes)
    assume(len(some) > 1)
    of, on = (some[k] for k in rng.permutation(len(some))[:2])
    found = model.causal_effect(of, on)
    place, k = measured_of(nodes).index(of), measured_of(nodes).index(on)
    means = [sum(p * m[k] for _, p, m, _ in weigh(nodes, {}, {of: x})) for x in (0.0, 1.0)]
    mass = sum(p for _, p, _, _ in weigh(nodes, {}, {of: 0.0}))
    assert found.interventional == pytest.approx((means[1] - means[0]) / mass, abs=1e-7)
    mean = sum(p * m for _, p, m, _ in combinations(nodes))
    second = sum(p * (s + np.outer(m, m)) for _, p, m, s in combinations(nodes)) - np.outer(mean, mean)
    assert found.observational == pytest.approx(second[place, k] / second[place, place], abs=1e-7)
    assert (found.criterion == "none") == (on not in model.graph_.descendants(of))


@given(line_networks(most_labels=0, most_measured=6), st.integers(0, 2**32 - 1))
def test_slope_is_that_of_a_regression_on_the_adjustment_set(nodes, seed):
    model, rng = tb.BayesianNetwork.from_parameters(nodes), np.random.default_rng(seed)
    some = linked(model, nodes)
    assume(len(some) > 1)
    of, on = (some[k] for k in rng.permutation(len(some))[:2])
    found = model.causal_effect(of, on)
    assume(found.criterion == "back-door")
    ((_, _, _, covariance),) = combinations(nodes)
    inputs = [measured_of(nodes).index(name) for name in (of, *found.adjusted)]
    k = measured_of(nodes).index(on)
    weights = np.linalg.solve(covariance[np.ix_(inputs, inputs)], covariance[inputs, k])
    assert found.interventional == pytest.approx(weights[0], abs=1e-7)
    again = model.causal_effect(of, on, adjust=found.adjusted)
    assert again.interventional == found.interventional


CONFOUNDED = {
    "u": {"intercept": 0, "std": 1},
    "x": {"parents": ["u"], "intercept": 0, "coefficients": {"u": 1}, "std": 1},
    "m": {"parents": ["x"], "intercept": 1, "coefficients": {"x": 2}, "std": 0.5},
    "y": {"parents": ["m", "u"], "intercept": 0, "coefficients": {"m": 3, "u": 5}, "std": 1},
    "after": {"parents": ["y"], "intercept": 0, "coefficients": {"y": 1}, "std": 1},
}


def test_back_door_front_door_and_neither():
    model = tb.BayesianNetwork.from_parameters(CONFOUNDED)
    back = model.causal_effect("x", "y")
    assert (back.criterion, back.adjusted) == ("back-door", ("u",))
    assert back.interventional == pytest.approx(6.0)
    assert back.observational == pytest.approx(6.0 + 5 / 2)
    assert back.difference == pytest.approx(-2.5)
    front = model.causal_effect("x", "y", unobserved="u")
    assert (front.criterion, front.adjusted) == ("front-door", ("m",))
    assert front.interventional == pytest.approx(6.0)
    assert front.marks == {"treatment": ("x",), "outcome": ("y",), "mediators": ("m",), "unobserved": ("u",)}
    with pytest.raises(EstimateError, match=r"is not identifiable: x ← u → y stays open"):
        model.causal_effect("x", "y", unobserved=["u", "m"])
    with pytest.raises(DataError, match=r"adjust= has 'm', which is on or below a causal path"):
        model.causal_effect("x", "y", adjust=["u", "m"])
    with pytest.raises(DataError, match=r"adjust= leaves a non-causal path open: x ← u → y"):
        model.causal_effect("x", "y", adjust=[])
    none = model.causal_effect("y", "x")
    assert (none.criterion, none.interventional) == ("none", 0.0)
    assert none.observational > 0


def test_display():
    found = tb.BayesianNetwork.from_parameters(CONFOUNDED).causal_effect("x", "y")
    assert repr(found).splitlines() == [
        "effect of x on y, adjusted for u: per unit of x",
        "  interventional  observational  difference",
        "  6               8.5            -2.5",
    ]
    assert found.to_frame().to_numpy().tolist() == [pytest.approx([6.0, 8.5, -2.5])]
    assert "<table" in found._repr_html_()


def test_slope_in_a_subpopulation():
    model = tb.BayesianNetwork.from_parameters(
        {
            "k": {"levels": ["a", "b"], "probabilities": [0.25, 0.75]},
            "x": {"parents": ["k"], "intercept": [0, 1], "std": 1},
            "y": {"parents": ["k", "x"], "intercept": [0, 0], "coefficients": {"x": [1, 5]}, "std": 1},
        }
    )
    assert model.causal_effect("x", "y").interventional == pytest.approx(4.0)
    assert model.causal_effect("x", "y").adjusted == ("k",)
    assert model.causal_effect("x", "y", {"k": "a"}).interventional == pytest.approx(1.0)
    with pytest.raises(DataError, match=r"'x' is continuous, and no edge leads from it to 'k'"):
        model.causal_effect("x", "k")


def test_large_offsets_and_constant_columns():
    rng = np.random.default_rng(1)
    u = rng.normal(size=2000)
    x = 1e6 + u + rng.normal(size=2000)
    rows = {"u": u, "x": x, "y": 2 * x - 3 * u + rng.normal(size=2000), "c": np.full(2000, 7.0)}
    graph = {"x": ["u"], "y": ["x", "u", "c"]}
    model = tb.BayesianNetwork(graph, columns=dict.fromkeys("uxyc", tb.Gaussian())).fit(rows)
    least = np.linalg.lstsq(np.column_stack([x - 1e6, u, np.ones(2000)]), rows["y"] - 2e6, rcond=None)[0]
    assert model.causal_effect("x", "y").interventional == pytest.approx(least[0], rel=2e-3)
    with pytest.raises(EstimateError, match=r"'c' is the same in every row"):
        model.causal_effect("c", "y")
