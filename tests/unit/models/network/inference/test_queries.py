"""Queries of a network, against its joint distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, ImpossibleError, LabelError
from tallybayes.models.network.inference import network_inference as network_inference
from tests.examples import examples
from tests.unit.models.network.network_cases import given, joint, networks, questions, weigh


def _sums(weights, nodes, query_nodes):
    """p(query_nodes, observed) from p(all, observed)."""
    found = {}
    for levels, p in weights.items():
        key = tuple(levels[nodes.index(node)] for node in query_nodes)
        found[key] = found.get(key, 0.0) + p
    return found


@pytest.mark.slow
@examples(150)
@hypothesis_given(st.data())
def test_queries_equal_enumeration(data):
    tables = data.draw(networks())
    observed, do = data.draw(questions(tables))
    nodes = list(tables.parents)
    weights = weigh(tables, observed, do)
    total = math.fsum(weights.values())
    model = given(tables)
    assert model.probability(observed, do=do) == pytest.approx(total, rel=1e-9, abs=1e-15)
    query_nodes = data.draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3, unique=True))
    if total == 0:
        with pytest.raises(ImpossibleError):
            model.query(query_nodes, observed, do=do)
        return
    answer = model.query(query_nodes, observed, do=do)
    for key, p in _sums(weights, nodes, query_nodes).items():
        assert answer[key if len(query_nodes) > 1 else key[0]] == pytest.approx(p / total, abs=1e-12)
    assert sum(answer.values()) == pytest.approx(1.0)


@pytest.mark.slow
@examples(100)
@hypothesis_given(st.data())
def test_most_probable_equals_enumeration(data):
    tables = data.draw(networks())
    observed, do = data.draw(questions(tables))
    weights = weigh(tables, observed, do)
    total = math.fsum(weights.values())
    assume(total > 0)
    found = given(tables).most_probable(observed, do=do)
    best = weights[tuple(found[node] for node in tables.parents)]
    assert best == pytest.approx(max(weights.values()), rel=1e-9)
    assert math.exp(found.log_probability) == pytest.approx(best / total, rel=1e-9)


@pytest.mark.slow
@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@hypothesis_given(data=st.data())
def test_predictions_of_incomplete_rows_equal_enumeration(data):
    tables = data.draw(networks())
    nodes = list(tables.parents)
    n_rows = data.draw(st.integers(1, 6))
    rows = {node: [data.draw(st.sampled_from([None, *tables.levels[node]])) for _ in range(n_rows)] for node in nodes}
    model = given(tables)
    logs = model.score_samples(rows)
    impossible = np.isneginf(logs)
    if impossible.any():
        with pytest.warns(UserWarning, match=r"impossible under this network"):
            posteriors = model.predict_proba(rows)
    else:
        posteriors = model.predict_proba(rows)
    np.testing.assert_array_equal(posteriors.impossible, impossible)
    prior = joint(tables)
    for row in range(n_rows):
        observed = {node: rows[node][row] for node in nodes if rows[node][row] is not None}
        weights = weigh(tables, observed)
        total = math.fsum(weights.values())
        if total == 0:
            assert impossible[row]
            weights, total = prior, 1.0
        else:
            assert logs[row] == pytest.approx(math.log(total), rel=1e-9, abs=1e-12)
            assert posteriors.log_likelihood[row] == pytest.approx(logs[row], rel=1e-9, abs=1e-12)
        for node in nodes:
            expected = [_sums(weights, nodes, [node])[(level,)] / total for level in tables.levels[node]]
            np.testing.assert_allclose(posteriors[node][row], expected, atol=1e-12)


def test_predicted_columns_are_ignored_as_evidence():
    model = tb.BayesianNetwork({"wet": ["rain"]}, estimate="mle").fit({"rain": [0, 0, 1, 1], "wet": [0, 1, 1, 1]})
    rows = {"rain": [0, 0], "wet": [1, 0]}
    np.testing.assert_allclose(model.predict_proba(rows, "rain"), [[1 / 3, 2 / 3], [1.0, 0.0]])
    np.testing.assert_array_equal(model.predict(rows, "rain"), [1, 0])
    filled = model.impute({"rain": [None, 0], "wet": [0, None]})
    np.testing.assert_array_equal(filled["rain"], [0, 0])
    np.testing.assert_array_equal(filled["wet"], [0, 0])  # a tie goes to the first level
    several = model.predict_proba(rows, ["rain", "wet"])
    np.testing.assert_allclose(several["rain"], [[0.5, 0.5]] * 2)


def test_samples_given_evidence_follow_the_posterior():
    tables = {"a": [0.3, 0.7], "b": [[0.9, 0.1], [0.2, 0.8]], "c": [[[1.0, 0.0], [0.5, 0.5]], [[0.4, 0.6], [0.1, 0.9]]]}
    levels = {"a": [False, True], "b": ["x", "y"], "c": [0, 1]}
    model = tb.BayesianNetwork.from_tables({"b": ["a"], "c": ["a", "b"]}, levels, tables)
    drawn = model.sample(40_000, {"c": 1}, random_state=0)
    assert (drawn["c"] == 1).all()
    answer = model.query(["a", "b"], {"c": 1})
    for (a, b), p in answer.items():
        assert np.mean((drawn["a"] == a) & (drawn["b"] == b)) == pytest.approx(p, abs=0.01)
    assert answer[False, "x"] == 0
    assert not ((drawn["a"] == False) & (drawn["b"] == "x")).any()  # noqa: E712
    again = model.sample(5, {"c": 1}, random_state=0)
    assert all((again[node] == model.sample(5, {"c": 1}, random_state=0)[node]).all() for node in again)
    done = model.sample(40_000, do={"b": "y"}, random_state=1)
    assert np.mean(done["a"]) == pytest.approx(0.7, abs=0.01)
    assert len(model.sample(0)["a"]) == 0


def test_impossible_evidence_is_reduced_to_a_minimal_contradiction():
    model = tb.BayesianNetwork.from_tables(
        {"b": ["a"], "c": []},
        {"a": [0, 1], "b": [0, 1], "c": [0, 1]},
        {"a": [0.5, 0.5], "b": [[1.0, 0.0], [0.5, 0.5]], "c": [0.5, 0.5]},
    )
    with pytest.raises(ImpossibleError, match=r"a = 0, b = 1 has probability 0; these values contradict each other"):
        model.query("c", {"a": 0, "b": 1, "c": 1})
    with pytest.raises(ImpossibleError, match=r"these values contradict each other"):
        model.sample(3, {"a": 0, "b": 1})
    with pytest.raises(ImpossibleError, match=r"c = \{0: 0.0, 1: 0.0\} has probability 0"):
        model.most_probable({"c": {0: 0.0, 1: 0.0}})
    assert model.probability({"a": 0, "b": 1}) == 0.0


@pytest.mark.slow
def test_much_evidence_does_not_underflow():
    # Half of the witnesses speak a thousand orders of magnitude for one side, half for the other.
    names = [f"x{k}" for k in range(800)]
    sure = np.array([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]])
    levels = dict.fromkeys(["y", *names], (0, 1))
    model = tb.BayesianNetwork.from_tables(
        {name: ["y"] for name in names}, levels, {"y": [0.25, 0.75]} | dict.fromkeys(names, sure)
    )
    observed = {name: int(k < 400) for k, name in enumerate(names)}
    assert model.query("y", observed)[1] == pytest.approx(0.75)
    lean = observed | {"x0": 0}
    assert model.query("y", lean)[0] == pytest.approx(1.0)
    log_p = model.score_samples([observed])[0]
    assert log_p == pytest.approx(400 * (math.log(1e-6) + math.log1p(-1e-6)), rel=1e-9)
    chain = tb.BayesianNetwork.from_tables(
        {f"x{k}": [f"x{k - 1}"] for k in range(1, 800)},
        dict.fromkeys(names, (0, 1)),
        {"x0": [0.5, 0.5]} | dict.fromkeys(names[1:], sure),
    )
    rows = [{name: k % 2 for k, name in enumerate(names)}]
    expected = math.log(0.5) + 799 * math.log(1e-6)
    assert chain.score_samples(rows)[0] == pytest.approx(expected, rel=1e-12)
    assert chain.score_samples([{k: v for k, v in rows[0].items() if k != "x7"}])[0] > expected


def test_invalid_evidence_raises():
    model = tb.BayesianNetwork.from_tables(
        {"b": ["a"]}, {"a": [0, 1], "b": ["u", "v"]}, {"a": [0.5, 0.5], "b": [[0.1, 0.9], [0.5, 0.5]]}
    )
    with pytest.raises(DataError, match=r"no node 'z'"):
        model.query("a", {"z": 1})
    with pytest.raises(DataError, match=r"no node 'z'"):
        model.query(["z"])
    with pytest.raises(LabelError, match=r"no level True"):
        model.query("b", {"a": True})
    with pytest.raises(LabelError, match=r"no level 'w'"):
        model.query("a", {"b": "w"})
    with pytest.raises(DataError, match=r"the soft evidence on 'b'"):
        model.query("a", {"b": {"u": 1.0}})
    with pytest.raises(DataError, match=r"the soft evidence on 'b'"):
        model.query("a", {"b": {"u": -1.0, "v": 1.0}})
    with pytest.raises(DataError, match=r"both observed and set"):
        model.query("a", {"b": "u"}, do={"b": "u"})
    with pytest.raises(DataError, match=r"expected one level"):
        model.query("a", do={"b": {"u": 1.0, "v": 0.0}})
    with pytest.raises(DataError, match=r"each once"):
        model.query(["a", "a"])
    with pytest.raises(DataError, match=r"at least one"):
        model.query([])
    with pytest.raises(DataError, match=r"n is -1"):
        model.sample(-1)


def test_unseen_levels_are_missing_or_raise():
    rows = {"a": [0, 0, 1], "b": ["u", "v", "v"]}
    model = tb.BayesianNetwork({"b": ["a"]}).fit(rows)
    strange = {"a": [5], "b": ["v"]}
    np.testing.assert_allclose(model.predict_proba(strange)["a"], model.predict_proba({"b": ["v"]})["a"])
    with pytest.raises(LabelError, match=r"was not seen when fitting"):
        model.reestimate(unseen="error").predict_proba(strange)
    with pytest.raises(EstimateError, match=r"unseen is 'smooth'"):
        model.reestimate(unseen="smooth")


def test_query_results_are_mappings():
    model = tb.BayesianNetwork.from_tables(
        {"b": ["a"]}, {"a": [0, 1], "b": ["u", "v"]}, {"a": [0.5, 0.5], "b": [[0.1, 0.9], [0.5, 0.5]]}
    )
    answer = model.query(["a", "b"])
    assert dict(answer) == pytest.approx({(0, "u"): 0.05, (0, "v"): 0.45, (1, "u"): 0.25, (1, "v"): 0.25})
    assert answer.best == (0, "v")
    assert dict(answer.marginal("b")) == pytest.approx({"u": 0.3, "v": 0.7})
    assert answer.marginal("b", "a")["v", 0] == pytest.approx(0.45)
    assert list(answer.to_frame().columns) == ["a", "b", "probability"]
    assert len(answer) == 4
    with pytest.raises(KeyError):
        answer["v", 0]
    with pytest.raises(KeyError):
        model.query("a")[True]
    with pytest.raises(DataError, match=r"expected some of these"):
        answer.marginal("c")
    assert repr(model.query("b", {"a": 0})).splitlines()[0] == "p(b | a = 0)"
    assert "(evidence)" in repr(model.most_probable({"a": 0}))


@pytest.mark.slow
def test_empty_rows_and_queries():
    rng = np.random.default_rng(0)
    model = tb.BayesianNetwork(
        {"b": ["a"], "x": ["a"]}, columns={"b": tb.Categorical(levels=(0, 1, 2))}, estimate="mle"
    )
    model.fit({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "x": [0.0, 1.0, 5.0, 6.0]})
    empty = model.impute({"a": [], "x": []})
    assert [len(cells) for cells in empty.values()] == [0, 0, 0]
    assert model.predict_proba({"a": []}, "b").shape == (0, 3)
    assert model.score_samples({"a": []}).shape == (0,)
    with pytest.warns(UserWarning, match=r"row 1 is impossible under this network \(in total 1 of 2 rows\)"):
        filled = model.impute({"a": [0, 0], "b": [None, 1]})
    assert filled["x"].tolist() == [0.5, 3.0]  # the mean of all, where nothing follows
    with pytest.raises(DataError, match=r"given is \['a'\]; expected a mapping"):
        model.query("a", ["a"])
    with pytest.raises(DataError, match=r"do is 'a'; expected a mapping"):
        model.query("a", do="a")
    lonely = tb.BayesianNetwork({"x": []}).fit({"x": rng.normal(size=50)})
    assert lonely.levels_ == {}
    assert np.isfinite(lonely.score_samples({"x": [0.1, np.nan]})).all()
    assert lonely.impute({"x": [np.nan]})["x"][0] == pytest.approx(lonely.cpt("x").values[0])
    one = tb.BayesianNetwork({"a": []}).fit({"a": ["only"]})
    assert dict(one.query("a")) == {"only": 1.0}
    many = tb.BayesianNetwork({f"x{k}": ["y"] for k in range(2000)}).fit(
        {"y": [0, 1, 1], **{f"x{k}": [0, 1, k % 2] for k in range(2000)}}
    )
    assert "about 10^60" in repr(many)
    assert many.predict({f"x{k}": [1] for k in range(2000)}, "y").tolist() == [1]


def test_observed_cells_are_not_imputed():
    model = tb.BayesianNetwork({"b": ["a"]}, estimate="mle").fit({"a": ["x", "y"], "b": [0, 1]})
    filled = model.impute({"a": ["z", "x", None], "b": [0, None, 1]})
    assert filled["a"].tolist() == ["z", "x", "y"]  # a level never seen, too
    assert filled["b"].tolist() == [0, 0, 1]
    with pytest.warns(UserWarning, match=r"impossible"):
        assert model.impute({"a": ["x"], "b": [1]})["a"].tolist() == ["x"]


def test_invalid_arguments_raise():
    model = tb.BayesianNetwork({"b": ["a"]}).fit({"a": [0, 1], "b": [0, 1]})
    for call in (lambda: model.query(None), lambda: model.query(3.5), lambda: model.predict_proba({"a": [0]}, 1.5)):
        with pytest.raises(DataError, match=r"nodes is .*; expected the name of a node"):
            call()
    with pytest.raises(DataError, match=r"no node \['a'\]"):
        model.cpt(["a"])
    with pytest.raises(NotFittedError):
        _ = tb.BayesianNetwork({"b": ["a"]}).levels_
    by_number = tb.BayesianNetwork({1: [0]}).fit(np.array([[0, 1], [1, 0]]))
    assert by_number.query(np.int64(1)) == by_number.query(1)
    with pytest.raises(ImpossibleError, match=r"b = 1, do\(a\) = 0 has probability 0"):
        model.reestimate(estimate="mle").query("a", {"b": 1}, do={"a": 0})
    assert "(intervention)" in repr(model.most_probable(do={"a": 0}))


def test_old_elimination_orders_are_dropped():
    names = [f"x{k}" for k in range(12)]
    model = tb.BayesianNetwork({name: [] for name in names}).fit({name: [0, 1] for name in names})
    for first in names:
        for second in names:
            if first != second:
                assert model.query([first, second])[0, 0] == 0.25
    assert len(model._estimated_network.inference.orders) < 12


def test_undefined_rows_are_checked_by_pattern_of_evidence():
    rng = np.random.default_rng(0)
    rows = {"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 1], "d": [0, 1, 0]}
    model = tb.BayesianNetwork({"c": ["a", "b"], "d": ["c"]}, estimate="mle").fit(rows)
    many = {"c": rng.integers(0, 2, 3000), "b": rng.choice([0, None], 3000)}
    assert model.predict_proba(many, "d").shape == (3000, 2)
