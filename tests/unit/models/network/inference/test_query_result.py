"""Results of queries about continuous nodes, with discrete ones and without: against sums over all combinations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError
from tests.unit.models.network.linear_cases import labels_of, line_networks, measured_of, weigh


@given(line_networks(), st.integers(0, 2**32 - 1))
def test_queries_equal_enumeration(nodes, seed):
    rng = np.random.default_rng(seed)
    assume(labels_of(nodes))
    shuffled = [list(nodes)[k] for k in rng.permutation(len(nodes))]
    target, label = (
        next(n for n in shuffled if n in measured_of(nodes)),
        next(n for n in shuffled if n in labels_of(nodes)),
    )
    others = [node for node in labels_of(nodes) if node != label and rng.random() < 0.5]
    known = {
        node: nodes[node]["levels"][0] if node in labels_of(nodes) else float(rng.normal())
        for node in nodes
        if node not in {target, label, *others} and rng.random() < 0.4
    }
    answer = tb.BayesianNetwork.from_parameters(nodes).query([target, label, *others], known)
    weights, k = weigh(nodes, known, {}), measured_of(nodes).index(target)
    total = sum(p for _, p, _, _ in weights)
    assert answer.nodes == (target, label, *others)
    assert answer.discrete_nodes == (label, *others)
    discrete = answer.marginal(*answer.discrete_nodes)
    for level in discrete:
        levels = level if others else (level,)
        mine = [
            one for one in weights if all(one[0][n] == v for n, v in zip(answer.discrete_nodes, levels, strict=True))
        ]
        share = sum(p for _, p, _, _ in mine)
        assert discrete[level] == pytest.approx(share / total, abs=1e-9)
        if share < 1e-12 * total:
            continue
        mean = sum(p * m[k] for _, p, m, _ in mine) / share
        assert answer[level].mean == pytest.approx(mean, abs=1e-7)
        density = sum(p * stats.norm(m[k], math.sqrt(s[k, k])).pdf(mean + 0.2) for _, p, m, s in mine) / share
        assert answer[level].pdf(mean + 0.2) == pytest.approx(density, rel=1e-6)
    assert answer.mean == pytest.approx(sum(p * m[k] for _, p, m, _ in weights) / total, abs=1e-7)


def test_display_and_impossible_levels():
    model = tb.BayesianNetwork.from_parameters(
        {
            "k": {"levels": ["no", "yes", "other"], "probabilities": [0.5, 0.5, 0.0]},
            "x": {"parents": ["k"], "intercept": [0, 1, 2], "std": 1},
            "y": {"parents": ["x"], "intercept": 0, "coefficients": {"x": 1}, "std": 1},
        }
    )
    answer = model.query(["x", "k", "y"], {})
    assert list(answer) == ["no", "yes"]
    assert len(answer) == 2
    assert answer.marginal("k")["other"] == 0
    for absent in ("other", True, ("no",), "none"):
        with pytest.raises(KeyError):
            answer[absent]
    assert answer["yes"].given == {"k": "yes"}
    np.testing.assert_allclose(answer["yes"].mean, [1.0, 1.0])
    np.testing.assert_allclose(answer.covariance, model.query(["x", "y"]).covariance)
    frame = answer.to_frame()
    assert list(frame) == ["k", "probability", "x: mean", "x: std", "y: mean", "y: std"]
    assert frame["probability"].tolist() == [0.5, 0.5]
    assert "<table" in answer._repr_html_()
    with pytest.raises(DataError, match=r"inference='sampling' is for discrete nodes, and 'x' is continuous"):
        model.query(["k", "x"], inference="sampling")
    with pytest.raises(DataError, match=r"node 'k' is in the query and in the evidence"):
        model.query(["k", "x"], {"k": "yes"})
    given_y = model.query(["k", "x"], {"y": 3.0})
    assert given_y.marginal("k")["yes"] == pytest.approx(model.query("k", {"y": 3.0})["yes"])
    assert repr(given_y).startswith("p(k, x | y = 3.0)")
    assert repr(model.query(["k", "x"], {"y": np.float32(3)})) == repr(given_y)


def test_display_of_many_combinations():
    levels = list(range(30))
    shares = np.arange(1.0, 31.0) / 465
    model = tb.BayesianNetwork.from_parameters(
        {
            "k": {"levels": levels, "probabilities": shares},
            "x": {"parents": ["k"], "intercept": np.arange(30.0), "std": 1},
        }
    )
    shown = repr(model.query(["k", "x"])).splitlines()
    assert len(shown) == 15
    assert shown[2].split()[0] == "29"
    assert shown[-1] == "  … 18 less probable, 0.3677 together"


def test_fitted_gaussian_nodes_have_student_t_posteriors():
    rng = np.random.default_rng(0)
    k = rng.integers(0, 2, 40)
    model = tb.BayesianNetwork({"x": ["k"]}, columns={"x": tb.Gaussian()}).fit({"k": k, "x": rng.normal(k, 1.0)})
    answer = model.query(["k", "x"])
    for level in (0, 1):
        alone = model.query("x", {"k": level})
        assert answer[level].quantile(0.99) == pytest.approx(alone.quantile(0.99))


def test_invalid_queries_raise():
    model = tb.BayesianNetwork.from_parameters(
        {
            "k": {"levels": [0, 1], "probabilities": [0.5, 0.5]},
            "x": {"parents": ["k"], "intercept": [0, 1], "std": 1},
            "y": {"parents": ["x"], "intercept": 0, "coefficients": {"x": 1}, "std": 1},
        }
    )
    with pytest.raises(DataError, match=r"node 'x' is in the query and in the evidence"):
        model.query("x", {"x": 1.0})
    with pytest.raises(DataError, match=r"node 'x' is continuous, so it has no probabilities of levels"):
        model.predict_proba({"y": [1.0]}, "x")
    with pytest.raises(DataError, match=r"node 'y' is continuous"):
        model.most_probable(nodes="y")
    with pytest.raises(DataError, match=r"inference='sampling' is for discrete nodes"):
        model.query("x", inference="sampling")
    with pytest.raises(DataError, match=r"the network has no node 'z'"):
        model.query("z")
    with pytest.raises(DataError, match=r"node 'y' is continuous, and its value is .*; expected a number"):
        model.query("k", {"y": None})
    with pytest.raises(DataError, match=r"found inf in row 0, column 'y'"):
        model.query("k", {"y": np.inf})
    with pytest.raises(DataError, match=r"node 'y' has 2 columns; expected 1"):
        model.query("k", {"y": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"is continuous; a BIF file has discrete nodes only.\n    Use to_json"):
        model.to_bif("nowhere.bif")
    answer = model.query(["x", "y"])
    with pytest.raises(
        DataError, match=r"quantile needs one continuous node, and the result has 2(.|\n)*marginal\('x'\)"
    ):
        answer.quantile(0.5)
    with pytest.raises(DataError, match=r"q is 1.0; expected numbers between 0 and 1"):
        model.query("x").quantile(1.0)
    with pytest.raises(DataError, match=r"mass is 2"):
        model.query("x").interval(2)
    with pytest.raises(DataError, match=r"expected some of these, each once"):
        answer.marginal("k")
    assert model.most_probable({"y": 3.0})["k"] == 1
    assert "correlations" in repr(answer)
    assert "<table" in answer._repr_html_()
    assert list(model.query("x").to_frame()["mean"]) == [0.5]


def test_attributes_that_do_not_apply_raise():
    model = tb.BayesianNetwork.from_parameters(
        {
            "k": {"levels": [0, 1], "probabilities": [0.5, 0.5]},
            "x": {"parents": ["k"], "intercept": [0, 1], "std": 1},
        }
    )
    discrete, continuous, both = model.query("k"), model.query("x"), model.query(["k", "x"])
    for call in (
        lambda: discrete.mean,
        lambda: discrete.std,
        lambda: discrete.covariance,
        lambda: discrete.pdf(0.0),
        lambda: discrete.cdf(0.0),
        lambda: discrete.quantile(0.5),
        lambda: discrete.interval(),
    ):
        with pytest.raises(DataError, match=r"needs a continuous node, and p\(k\) has none"):
            call()
    for call in (lambda: continuous[0], lambda: list(continuous), lambda: continuous.best):
        with pytest.raises(DataError, match=r"needs a discrete node, and p\(x\) has none"):
            call()
    assert discrete.standard_errors is None
    assert both.best == 0
    assert both.pdf(0.3) == pytest.approx(continuous.pdf(0.3), rel=1e-12)
    assert both.marginal("k") == discrete
    swapped = model.query(["x", "k"]).marginal("k", "x")
    assert (swapped.nodes, swapped[1].mean) == (("k", "x"), 1.0)
    assert continuous == continuous
    assert continuous != model.query("x")
