"""Networks with fixed parameters: plain numbers, JSON files and untrusted files."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, TooLargeError
from tests.unit.models.network.linear_cases import line_networks


@pytest.mark.slow
@given(line_networks(), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_parameters_round_trip(nodes, seed):
    model = tb.BayesianNetwork.from_parameters(nodes)
    again = tb.BayesianNetwork.from_parameters(json.loads(json.dumps(model.to_parameters())))
    rows = model.sample(5, random_state=seed)
    np.testing.assert_allclose(again.score_samples(rows), model.score_samples(rows), rtol=1e-12)


def test_files(tmp_path):
    model = tb.BayesianNetwork.from_parameters(
        {
            "k": {"levels": [True, False, None], "probabilities": [0.5, 0.25, 0.25]},
            "x": {"parents": ["k"], "intercept": [0, 1, 2], "std": [1, 2, 3]},
            7: {"parents": ["x"], "intercept": 0.1, "coefficients": {"x": 1}, "std": 1},
        }
    )
    for path in (tmp_path / "n.json", tmp_path / "n.json.gz"):
        model.to_json(path)
        again = tb.BayesianNetwork.from_json(path)
        assert again.levels_ == model.levels_
        assert again.query(7).mean == pytest.approx(model.query(7).mean)
    assert (tmp_path / "n.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    model.save(tmp_path / "n.tally")
    assert tb.load(tmp_path / "n.tally").query("k", {7: 3.0})[True] == model.query("k", {7: 3.0})[True]
    counts = tb.BayesianNetwork({"n": ["k"]}, columns={"n": tb.Poisson()}).fit({"k": [0, 1, 0], "n": [1, 2, 3]})
    with pytest.raises(DataError, match=r"node 'n' is Poisson\(\); only discrete and Gaussian nodes"):
        counts.to_json(tmp_path / "n.json")
    flat = tb.BayesianNetwork({"x": ["k"]}).fit({"k": [0, 1], "x": [2.0, 2.0]})
    with pytest.raises(EstimateError, match=r"node 'x' has no standard deviation above 0"):
        flat.to_json(tmp_path / "n.json")


GOOD = {
    "format": "tallybayes network",
    "version": 2,
    "nodes": [
        {"name": "k", "levels": ["a", "b"], "probabilities": [0.5, 0.5]},
        {"name": "x", "parents": ["k"], "intercept": [0, 1], "std": 1},
        {"name": "y", "parents": ["x"], "intercept": 0, "coefficients": {"x": 1}, "std": 1},
    ],
}


def _changed(place, key, value):
    copy = json.loads(json.dumps(GOOD))
    target = copy if place is None else copy["nodes"][place]
    if value is ...:
        del target[key]
    else:
        target[key] = value
    return json.dumps(copy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON|deeply nested"),
        ("[]", "is no network"),
        ('{"format": "tallybayes network", "format": 1}', "'format' is there twice"),
        (_changed(None, "version", 1), "has version 1; this version of Tallybayes reads 2 only"),
        (_changed(None, "version", True), "has version True"),
        (_changed(None, "extra", 2), "has the key 'extra'"),
        (_changed(None, "nodes", {}), "no list of nodes"),
        (_changed(None, "nodes", []), "the network has no nodes"),
        (_changed(None, "nodes", [3]), "a node is 3"),
        (_changed(1, "name", "k"), "'k' is there twice"),
        (_changed(1, "name", "\ud800"), "lone surrogate"),
        (_changed(1, "name", ["k"]), "a node is"),
        (_changed(1, "parents", "k"), "the parents of 'x' is 'k'; expected a list"),
        (_changed(1, "parents", ["z"]), "'z' is a parent without parameters"),
        (_changed(1, "parents", ["y"]), "the network has a cycle"),
        (_changed(1, "parents", ["k", "k"]), "twice"),
        (_changed(1, "parents", [["k"]]), "a node is"),
        (_changed(0, "parents", ["x"]), "the network has a cycle|no label may depend on what is measured"),
        (_changed(0, "levels", "ab"), "the levels of 'k' is 'ab'; expected a list"),
        (_changed(0, "levels", []), "the levels of 'k' is none"),
        (_changed(0, "levels", [1.5, 2]), "the levels of 'k' is 1.5"),
        (_changed(0, "levels", ["a", 1]), "."),
        (_changed(0, "levels", ["a", "a"]), "."),
        (_changed(0, "probabilities", [0.5, 0.6]), "sum to 1"),
        (_changed(0, "probabilities", [0.5, "0.5"]), "the probabilities of 'k' is '0.5'"),
        (_changed(0, "probabilities", [[0.5], [0.5]]), "the probabilities of 'k'"),
        (_changed(0, "probabilities", [True, False]), "the probabilities of 'k' is True"),
        (_changed(0, "probabilities", ...), "without 'probabilities'"),
        (_changed(1, "std", -1), "the standard deviation of 'x' is -1"),
        (_changed(1, "std", 0), "the standard deviation of 'x' is 0"),
        (_changed(1, "std", [1, 2, 3]), "the standard deviation of 'x'"),
        (_changed(1, "std", 1e-200), "the standard deviation of 'x' is 1e-200"),
        (_changed(1, "std", ...), "without 'std'"),
        (_changed(1, "sd", 1), "with 'sd'"),
        (_changed(1, "intercept", None), "the intercept of 'x' is None"),
        (_changed(1, "coefficients", {"k": 1}), "the coefficients of 'x' is of \\['k'\\]"),
        (_changed(2, "coefficients", ...), "one for every continuous parent"),
        (_changed(2, "coefficients", [1]), "a mapping from continuous parents"),
        (_changed(2, "intercept", 10**400), "the intercept of 'y' is partly not finite"),
        (_changed(2, "intercept", 0).replace('"intercept": 0,', '"intercept": NaN,'), "found NaN"),
        (_changed(2, "intercept", 0).replace('"intercept": 0,', '"intercept": -Infinity,'), "found -Infinity"),
        (_changed(2, "intercept", 0).replace('"intercept": 0,', '"intercept": 1e999,'), "partly not finite"),
    ],
)
def test_invalid_files_raise(text, message):
    with pytest.raises(tb.FileError, match=message):
        tb.BayesianNetwork.from_json(io.StringIO(text))


def test_many_parents_in_a_small_file_raise():
    nodes = [{"name": f"l{k}", "levels": list(range(9)), "probabilities": [1 / 9] * 9} for k in range(50)]
    nodes.append({"name": "x", "parents": [f"l{k}" for k in range(50)], "intercept": 0, "std": 1})
    with pytest.raises(TooLargeError, match="'x'"):
        tb.BayesianNetwork.from_json(io.StringIO(json.dumps(GOOD | {"nodes": nodes})))


@pytest.mark.slow
@given(st.integers(0, 10**9), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_damaged_files_raise_or_are_read(seed, n_changes):
    rng = np.random.default_rng(seed)
    text = list(json.dumps(GOOD))
    for _ in range(n_changes):
        place = int(rng.integers(len(text)))
        text[place] = str(rng.choice(list('0123456789.-eE"[]{},:abxyk \\tnul')))
    try:
        found = tb.BayesianNetwork.from_json(io.StringIO("".join(text)))
    except (tb.FileError, TooLargeError):
        return
    assert set(found.graph_.nodes)
