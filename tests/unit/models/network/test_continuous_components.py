"""Continuous nodes with continuous parents: queries against normal algebra and sums over all levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tallybayes as tb
from tallybayes.errors import ImpossibleError, TooLargeError
from tests.unit.models.network.linear_cases import labels_of, line_networks, measured_of, weigh


@st.composite
def cases(draw):
    """A network, what is known of it, what is set, and a measured node that is neither."""
    nodes = draw(line_networks())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    target = measured_of(nodes)[draw(st.integers(0, len(measured_of(nodes)) - 1))]
    known, do = {}, {}
    for node, said in nodes.items():
        what = draw(st.integers(0, 3)) if node != target else 0
        value = said["levels"][int(rng.integers(len(said["levels"])))] if "levels" in said else float(rng.normal(0, 2))
        if what == 1:
            known[node] = value
        elif what == 2:
            do[node] = value
    return nodes, known, do, target


@pytest.mark.slow
@given(cases())
@settings(max_examples=40, deadline=None)
def test_queries_equal_enumeration(case):
    nodes, known, do, target = case
    model = tb.BayesianNetwork.from_parameters(nodes)
    weights = weigh(nodes, known, do)
    total = sum(p for _, p, _, _ in weights)
    assert model.probability(known, do=do) == pytest.approx(total, rel=1e-8)
    for label in labels_of(nodes):
        if label not in known and label not in do:
            answer = model.query(label, known, do=do)
            for level in nodes[label]["levels"]:
                wanted = sum(p for row, p, _, _ in weights if row[label] == level) / total
                assert answer[level] == pytest.approx(wanted, abs=1e-8)
    k = measured_of(nodes).index(target)
    answer = model.query(target, known, do=do)
    mean = sum(p * m[k] for _, p, m, _ in weights) / total
    square = sum(p * (s[k, k] + m[k] ** 2) for _, p, m, s in weights) / total
    assert answer.mean == pytest.approx(mean, abs=1e-7)
    assert answer.std**2 == pytest.approx(square - mean**2, rel=1e-6, abs=1e-9)
    at = mean + 0.3
    density = sum(p * stats.norm(m[k], math.sqrt(s[k, k])).pdf(at) for _, p, m, s in weights) / total
    below = sum(p * stats.norm(m[k], math.sqrt(s[k, k])).cdf(at) for _, p, m, s in weights) / total
    assert answer.pdf(at) == pytest.approx(density, rel=1e-6, abs=1e-12)
    assert answer.cdf(at) == pytest.approx(below, abs=1e-9)
    assert answer.cdf(answer.quantile(0.3)) == pytest.approx(0.3, abs=1e-9)
    row = {node: [value] for node, value in known.items()} or {target: [np.nan]}
    assert model.predict(row, target, do=do)[0] == pytest.approx(mean, abs=1e-7)
    if not do:
        assert model.score_samples(row)[0] == pytest.approx(math.log(total), abs=1e-7)


@pytest.mark.slow
@given(line_networks())
@settings(max_examples=20, deadline=None)
def test_joint_queries_have_means_and_covariances(nodes):
    model, names = tb.BayesianNetwork.from_parameters(nodes), measured_of(nodes)
    weights = weigh(nodes, {})
    mean = sum(p * m for _, p, m, _ in weights)
    covariance = sum(p * (s + np.outer(m - mean, m - mean)) for _, p, m, s in weights)
    answer = model.query(names)
    np.testing.assert_allclose(answer.mean, mean if len(names) > 1 else mean[0], atol=1e-8)
    np.testing.assert_allclose(answer.covariance, covariance, atol=1e-7)
    one = answer.marginal(names[-1])
    assert one.mean == pytest.approx(mean[-1], abs=1e-8)
    assert one.std == pytest.approx(math.sqrt(covariance[-1, -1]), abs=1e-8)


@pytest.mark.slow
@given(line_networks(), st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_predictions_of_incomplete_rows_equal_single_queries(nodes, seed):
    model, rng = tb.BayesianNetwork.from_parameters(nodes), np.random.default_rng(seed)
    rows = model.sample(6, random_state=seed)
    for node in rows:
        column = np.array(rows[node], dtype=object)
        column[rng.random(6) < 0.4] = None
        rows[node] = column
    if all(value is None for column in rows.values() for value in column):
        return
    logs, filled = model.score_samples(rows), model.impute(rows)
    for place in range(6):
        known = {node: column[place] for node, column in rows.items() if column[place] is not None}
        assert logs[place] == pytest.approx(math.log(model.probability(known)), abs=1e-7)
        for node in measured_of(nodes):
            wanted = known[node] if node in known else model.query(node, known).mean
            assert filled[node][place] == pytest.approx(wanted, abs=1e-7)


def test_samples_have_the_moments_of_queries():
    nodes = {
        "sex": {"levels": ["f", "m"], "probabilities": [0.5, 0.5]},
        "height": {"parents": ["sex"], "intercept": [1.66, 1.78], "std": 0.06},
        "weight": {
            "parents": ["sex", "height"],
            "intercept": [-80, -60],
            "coefficients": {"height": [86, 80]},
            "std": 7,
        },
    }
    model = tb.BayesianNetwork.from_parameters(nodes)
    drawn = model.sample(40_000, {"weight": 75.0}, random_state=0)
    answer = model.query("height", {"weight": 75.0})
    assert (drawn["weight"] == 75.0).all()
    assert drawn["height"].mean() == pytest.approx(answer.mean, abs=0.002)
    assert drawn["height"].std() == pytest.approx(answer.std, abs=0.002)
    assert np.mean(drawn["sex"] == "m") == pytest.approx(model.query("sex", {"weight": 75.0})["m"], abs=0.01)
    set_to = model.sample(20_000, do={"height": 1.9}, random_state=1)
    assert set_to["weight"].mean() == pytest.approx(model.query("weight", do={"height": 1.9}).mean, abs=0.2)
    assert np.mean(set_to["sex"] == "m") == pytest.approx(0.5, abs=0.02)
    by_draws = model.query("sex", {"weight": 75.0}, inference="sampling", random_state=0)
    assert by_draws["m"] == pytest.approx(model.query("sex", {"weight": 75.0})["m"], abs=0.01)


def test_nearly_deterministic_nodes_keep_their_precision():
    said = {
        "a": {"intercept": 0, "std": 1e4},
        "b": {"parents": ["a"], "intercept": 1, "coefficients": {"a": 1}, "std": 1e-5},
    }
    model = tb.BayesianNetwork.from_parameters(said)
    answer = model.query("b", {"a": 123.0})
    assert answer.std == pytest.approx(1e-5, rel=1e-6)
    assert answer.mean == pytest.approx(124.0, abs=1e-9)
    wanted = stats.norm(0, 1e4).logpdf(123.0) + stats.norm(124.0, 1e-5).logpdf(124.00001)
    assert model.score_samples({"a": [123.0], "b": [124.00001]})[0] == pytest.approx(wanted, abs=1e-4)


def test_causal_effects_on_continuous_nodes_pass_through_mediators():
    nodes = {
        "c": {"levels": [0, 1], "probabilities": [0.4, 0.6]},
        "t": {"parents": ["c"], "levels": [0, 1], "probabilities": [[0.8, 0.2], [0.3, 0.7]]},
        "m": {"parents": ["t", "c"], "intercept": [[0, 1], [3, 5]], "std": 1},
        "y": {"parents": ["m"], "intercept": 1, "coefficients": {"m": 2}, "std": 1},
    }
    model = tb.BayesianNetwork.from_parameters(nodes)
    found = model.causal_effect("t", "y")
    assert found.adjusted == ("c",)
    for level in (0, 1):
        assert found[level] == pytest.approx(model.query("y", do={"t": level}).mean)
    assert model.d_separated("t", "y", ["m"])
    assert set(model.markov_blanket("m")) == {"t", "c", "y"}


def test_impossible_discrete_evidence_is_named():
    model = tb.BayesianNetwork.from_parameters(
        {
            "k": {"levels": [0, 1], "probabilities": [1.0, 0.0]},
            "x": {"parents": ["k"], "intercept": [0, 1], "std": 1},
            "y": {"parents": ["x"], "intercept": 0, "coefficients": {"x": 1}, "std": 1},
        }
    )
    with pytest.raises(ImpossibleError, match="k = 1"):
        model.query("x", {"k": 1, "y": 2.0})
    assert model.score_samples({"k": [1], "y": [2.0]})[0] == -np.inf
    with pytest.warns(UserWarning, match="impossible"):
        filled = model.predict({"k": [1], "y": [2.0]}, "x")
    assert filled[0] == pytest.approx(0.0)


def test_too_many_combinations_raise_before_allocation():
    names = [f"l{k}" for k in range(40)]
    nodes = {name: {"levels": list(range(4)), "probabilities": [0.25] * 4} for name in names}
    nodes["x0"] = {"parents": [names[0]], "intercept": [0] * 4, "std": 1}
    for k in range(1, 40):
        weights = {f"x{k - 1}": 1.0}
        nodes[f"x{k}"] = {"parents": [names[k], f"x{k - 1}"], "intercept": 0, "coefficients": weights, "std": 1}
    with pytest.raises(TooLargeError, match="combinations of levels"):
        tb.BayesianNetwork.from_parameters(nodes).query("x3")
