"""CPTs by counting: estimates, priors, merging and forgetting, structures and errors."""

from __future__ import annotations

import copy
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from sklearn.base import clone

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, FileError, PriorError, StatisticsError, TooLargeError
from tallybayes.models.network.graph import Graph
from tests.examples import examples
from tests.unit.models.network.network_cases import networks

ROWS = {
    "a": ["u", "u", "v", "v", "v", None],
    "b": [0, 1, 1, 1, 0, 1],
    "c": [True, False, True, None, True, True],
}
PARENTS = {"c": ["a", "b"], "b": ["a"]}


def _counted(rows, node, parents):
    """How often every level occurs for every combination of parents' levels, row by row."""
    names = [*parents, node]
    levels = [sorted({level for level in rows[name] if level is not None}) for name in names]
    table = np.zeros([len(found) for found in levels])
    for cells in zip(*(rows[name] for name in names), strict=True):
        if None not in cells:
            table[tuple(found.index(cell) for found, cell in zip(levels, cells, strict=True))] += 1
    return table


@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
def test_cpts_are_relative_counts(estimate):
    model = tb.BayesianNetwork(PARENTS, estimate=estimate).fit(ROWS)
    assert model.levels_ == {"a": ("u", "v"), "b": (0, 1), "c": (False, True)}
    more = 0 if estimate == "mle" else 1  # both defaults are add-one
    for node, parents in {"a": [], "b": ["a"], "c": ["a", "b"]}.items():
        counts = _counted(ROWS, node, parents) + more
        with np.errstate(invalid="ignore"):
            expected = counts / counts.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(model.cpt(node).values, expected)


def test_graph_of_a_network_as_parents():
    model = tb.BayesianNetwork({**PARENTS, "alone": []}).fit({**ROWS, "alone": [0, 1, 0, 1, 0, 1]})
    again = clone(tb.BayesianNetwork(model.graph_)).fit({**ROWS, "alone": [0, 1, 0, 1, 0, 1]})
    assert again.graph_ == model.graph_
    assert again.tally_ == model.tally_


def test_priors():
    counts = _counted(ROWS, "c", ["a", "b"])

    def table(prior, estimate="bayes"):
        return tb.BayesianNetwork(PARENTS, estimate=estimate, prior=prior).fit(ROWS).cpt("c").values

    def smoothed(alpha):
        return (counts + alpha) / (counts + alpha).sum(axis=-1, keepdims=True)

    np.testing.assert_allclose(table(tb.Dirichlet(0.5)), smoothed(0.5))
    np.testing.assert_allclose(table(tb.K2()), smoothed(1.0))
    np.testing.assert_allclose(table(tb.BDeu(4)), smoothed(4 / 8))
    np.testing.assert_allclose(table(tb.Dirichlet(3), "map"), smoothed(2.0))
    np.testing.assert_allclose(table({"c": tb.Dirichlet([1.0, 2.0])}), smoothed(np.array([1.0, 2.0])))
    np.testing.assert_allclose(table({"b": tb.Dirichlet(9)}), smoothed(1.0))  # the others have the default
    before = tb.BayesianNetwork(PARENTS).fit(ROWS).tally_.scale(0.5)
    np.testing.assert_allclose(table(before), (1.5 * counts + 1) / (1.5 * counts + 1).sum(axis=-1, keepdims=True))
    assert tb.BayesianNetwork(PARENTS, prior="empirical").fit(ROWS).prior_["c"].concentration.shape == (2,)
    with pytest.raises(PriorError, match=r"prior= has unknown columns"):
        table({"z": tb.Dirichlet(1)})
    with pytest.raises(PriorError, match=r"is conjugate to no column's family"):
        table(tb.Gamma(1, 1))


def test_nodes_with_the_same_parents_have_separate_priors():
    rows = {"y": ["a", "b"] * 3, "x": ["u", "v", "u"] * 2, "z": [0, 1, 1] * 2}
    prior = {"x": tb.Dirichlet(1.0), "z": tb.Dirichlet(2.0)}
    for missing in ("available", "em"):
        model = tb.BayesianNetwork({"x": ["y"], "z": ["y"]}, prior=prior, missing=missing).fit(rows)
        assert {name: model.prior_[name] for name in prior} == prior
        assert model.query("z", {"y": "a"})[0] == pytest.approx((1 + 2) / (3 + 4))


def test_bde_prior_has_its_equivalent_sample_size():
    expert = tb.BayesianNetwork.from_tables(
        {"a": ["b"]}, {"a": ["u", "v"], "b": [1, 0]}, {"b": [0.25, 0.75], "a": [[0.5, 0.5], [0.0, 1.0]]}
    )
    model = tb.BayesianNetwork({"b": ["a"]}, prior=tb.BDe(expert, 8)).fit({"a": ["u", "v"], "b": [0, 1]})
    joint = {("u", 0): 0.0, ("u", 1): 0.125, ("v", 0): 0.75, ("v", 1): 0.125}  # turned round, levels in another order
    alpha = np.array([[8 * joint[a, b] for b in (0, 1)] for a in ("u", "v")])
    np.testing.assert_allclose(model.prior_["b"].concentration, np.maximum(alpha, 1e-9))
    counts = alpha + np.eye(2)
    np.testing.assert_allclose(model.cpt("b").values, counts / counts.sum(axis=1, keepdims=True), atol=1e-8)
    assert clone(model).fit({"a": ["u", "v"], "b": [0, 1]}).cpt("b").values == pytest.approx(model.cpt("b").values)
    wider = tb.BayesianNetwork({"z": ["a"]}, prior=tb.BDe(expert, 8)).fit({"a": ["u", "w"], "z": [0, 1]})
    assert wider.levels_["a"] == ("u", "v", "w")  # "v" is known to the expert alone
    assert wider.prior_["a"].concentration.sum() == pytest.approx(8)
    for data in ({"a": ["U", "V"], "b": [0, 1]}, {"a": [False, True], "b": [0, 1]}):
        with pytest.raises(
            PriorError,
            match=r"BDe: node 'a' has the levels 'u', 'v' in the other network, and .* in the data; expected",
        ):
            tb.BayesianNetwork({"b": ["a"]}, prior=tb.BDe(expert, 8)).fit(data)
    np.testing.assert_allclose(wider.prior_["z"].concentration[:, 0], wider.prior_["z"].concentration[:, 1])
    with pytest.raises(PriorError, match=r"equivalent_sample_size of BDeu? is .*; expected finite numbers above 0"):
        tb.BDe(expert, 0)
    with pytest.raises(PriorError, match=r"network of BDe is .expert.; expected a fitted BayesianNetwork"):
        tb.BDe("expert", 1)
    with pytest.raises(PriorError, match=r"equivalent_sample_size of BDeu? is .*; expected finite numbers above 0"):
        tb.BDe(expert, "x")
    with pytest.raises(PriorError, match=r"equivalent_sample_size of BDeu? is .*; expected finite numbers above 0"):
        tb.BDeu("x")
    with pytest.raises(PriorError, match=r"prior is a model"):
        tb.BayesianNetwork({"b": ["a"]}).set_params(prior=model).fit({"a": ["u"], "b": [0]})


@st.composite
def _tables(draw):
    tables = draw(networks(4))
    n_rows = draw(st.integers(2, 12))
    rows = {
        node: [draw(st.sampled_from([None, *levels, *levels])) for _ in range(n_rows)]
        for node, levels in tables.levels.items()
    }
    for node, levels in tables.levels.items():
        rows[node][0] = levels[0]  # every column has a level
    weight = [draw(st.sampled_from([1.0, 2.0, 0.5, 0.0])) for _ in range(n_rows)]
    weight[0] = 1.0
    return tables.parents, rows, np.array(weight)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:level .* occurs only with missing parents")
@examples(100)
@hypothesis_given(_tables(), st.data())
def test_merging_and_forgetting_are_exact(case, data):
    parents, rows, weight = case
    n_rows = len(weight)
    part = data.draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
    part[0] = True
    halves = [[k for k in range(n_rows) if part[k] == here] for here in (True, False)]

    def take(chosen):
        return {node: [cells[k] for k in chosen] for node, cells in rows.items()}, weight[chosen]

    first_rows, first_weight = take(halves[0])
    whole = tb.BayesianNetwork(parents).fit(rows, sample_weight=weight)
    first = tb.BayesianNetwork(parents).fit(first_rows, sample_weight=first_weight)
    other, its_weight = take(halves[1])
    if halves[1]:
        grown = clone(first).fit(first_rows, sample_weight=first_weight).partial_fit(other, sample_weight=its_weight)
        assert grown.tally_ == whole.tally_
        if any(w > 0 and None not in row for w, *row in zip(its_weight, *other.values(), strict=True)):
            second = tb.BayesianNetwork(parents).fit(other, sample_weight=its_weight)
            assert (first + second).tally_ == whole.tally_
        whole.forget(other, sample_weight=its_weight)
    assert whole.tally_ == first.tally_
    again = tb.BayesianNetwork(parents).fit_tally(first.tally_)
    for node in rows:
        np.testing.assert_array_equal(again.cpt(node).values, first.cpt(node).values)


def test_forgetting_unknown_rows_changes_nothing():
    model = tb.BayesianNetwork(PARENTS).fit(ROWS)
    before = model.tally_
    with pytest.raises(StatisticsError, match=r"cannot forget"):
        model.forget({"a": ["u"] * 5, "b": [1] * 5, "c": [False] * 5})
    assert model.tally_ == before


def test_undefined_rows_under_maximum_likelihood():
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 0], "c": ["x", "x", "y", "x"]}
    parents = {"c": ["a", "b"]}
    mle = tb.BayesianNetwork(parents, estimate="mle").fit(rows)
    assert mle.unseen_configurations_ == {"c": [{"a": 1, "b": 1}]}
    assert np.isnan(mle.cpt("c").values[1, 1]).all()
    assert "unknown" in repr(mle.cpt("c"))
    assert mle.query("a")[0] == 0.5  # c says nothing here
    assert mle.query("c", {"b": 0})["x"] == pytest.approx(0.75)  # nor does the row that is not known
    for call in (
        lambda: mle.query("c"),
        lambda: mle.query("a", {"c": "x"}),
        lambda: mle.predict_proba({"a": [0, 1], "b": [0, 1]}, "c"),
        lambda: mle.score_samples({"a": [0, 1], "b": [0, 1], "c": ["x", "x"]}),
        lambda: mle.score_samples({"a": [None], "c": ["x"]}),
        lambda: mle.sample(1),
        lambda: mle.most_probable(),
    ):
        with pytest.raises(EstimateError, match=r"no row has 'c' with a = 1, b = 1"):
            call()
    with pytest.raises(EstimateError, match=r"rows without data"):
        mle.to_tables()
    assert np.isnan(mle.to_networkx().nodes["c"]["table"][1, 1]).all()
    with pytest.raises(EstimateError, match=r"no row has 'c'"):  # an impossible row has no prior to fall back on
        mle.predict_proba({"a": [0], "b": [0], "c": ["y"]})
    bayes = mle.reestimate(estimate="bayes")
    np.testing.assert_allclose(bayes.cpt("c").values[1, 1], [0.5, 0.5])
    assert bayes.unseen_configurations_ == mle.unseen_configurations_
    assert sum(bayes.query("c").values()) == pytest.approx(1.0)


def test_undefined_rows_raise_only_if_the_result_depends_on_them():
    rows = {"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 1], "d": [0, 1, 0]}
    mle = tb.BayesianNetwork({"c": ["a", "b"], "d": ["c"]}, estimate="mle").fit(rows)
    assert mle.unseen_configurations_ == {"c": [{"a": 1, "b": 1}]}
    assert mle.query("d", {"c": 1})[1] == pytest.approx(0.5)  # the table of c has no say
    assert mle.query("a", {"b": 1})[1] == pytest.approx(1 / 3)
    np.testing.assert_allclose(mle.predict_proba({"c": [1, None], "b": [None, 0]}, "d")[0], [0.5, 0.5])
    for call in (
        lambda: mle.query("b", {"a": 1, "c": 1}),
        lambda: mle.query("b", {"a": 1, "d": {0: 0.5, 1: 1.0}}),
        lambda: mle.predict_proba({"c": [1, None], "b": [None, None]}, "d"),
        lambda: mle.probability({"c": 1}),
    ):
        with pytest.raises(EstimateError, match=r"no row has 'c' with a = 1, b = 1"):
            call()
    assert mle.query("a", do={"c": 1})[1] == pytest.approx(1 / 3)
    assert mle.query("d", do={"c": 1})[1] == pytest.approx(0.5)


@examples(100)
@hypothesis_given(st.data())
def test_influenced_nodes_are_those_whose_posterior_changes(data):
    tables = data.draw(networks(5, zeros=False))
    node = data.draw(st.sampled_from(list(tables.parents)))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    changed = dict(tables.tables) | {
        node: rng.dirichlet(np.ones(len(tables.levels[node])), tables.tables[node].shape[:-1])
    }
    observed, hints = {}, {}
    for name, levels in tables.levels.items():
        what = data.draw(st.integers(0, 3))
        if what == 1:
            observed[name] = levels[-1]
        elif what == 2:
            hints[name] = {level: 1.0 + 0.7 * k for k, level in enumerate(levels)}
    before, after = (
        tb.BayesianNetwork.from_tables(tables.parents, tables.levels, found) for found in (tables.tables, changed)
    )
    reached = Graph(tables.parents).influenced_nodes(node, observed, hints)
    for other in tables.parents:
        first, second = (model.query(other, observed | hints).probabilities for model in (before, after))
        if other not in reached:
            np.testing.assert_allclose(first, second, atol=1e-12)
        elif other == node and other not in observed and len(tables.levels[node]) > 1:
            assert np.abs(first - second).max() > 0  # its own table always has


def test_naive_bayes_is_a_star():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    frame = pd.DataFrame(
        {"y": y, **{f"x{k}": list(map("uvw".__getitem__, (y + rng.integers(0, 2, 200)) % 3)) for k in range(4)}}
    )
    frame["size"] = rng.normal(y, 1.0)
    frame.loc[rng.random(200) < 0.2, "x1"] = None
    frame.loc[rng.random(200) < 0.2, "size"] = np.nan
    features = [name for name in frame if name != "y"]
    star = tb.BayesianNetwork({name: ["y"] for name in features}).fit(frame)
    naive = tb.NaiveBayes(prior=1).fit(frame, "y")
    assert star.tally_ == naive.tally_
    expected = naive.predict_proba(frame[features])
    np.testing.assert_allclose(star.predict_proba(frame, "y"), expected, atol=1e-12)
    np.testing.assert_array_equal(star.predict(frame[features], "y"), naive.predict(frame[features]))
    again = tb.BayesianNetwork({name: ["y"] for name in features}).fit_tally(naive.tally_)
    np.testing.assert_allclose(again.predict_proba(frame, "y"), expected, atol=1e-12)
    back = tb.NaiveBayes(prior=1).fit_tally(star.tally_)
    np.testing.assert_allclose(back.predict_proba(frame[features]), expected, atol=1e-12)


def test_structures_are_read_from_mappings_edges_and_graphs():
    edges = [("a", "c"), ("b", "c"), ("c", "d")]
    wanted = {"c": ("a", "b"), "d": ("c",), "a": (), "b": ()}
    for source in (edges, nx.DiGraph(edges), {"c": ["a", "b"], "d": "c"}, {"c": ("a", "b"), "d": ["c"], "a": None}):
        model = tb.BayesianNetwork(source)
        assert Graph.read(model.parents).parents == wanted
        assert clone(model).parents == model.parents
    fitted = tb.BayesianNetwork(nx.DiGraph(edges)).fit({name: [0, 1, 1] for name in "abcd"})
    assert fitted.graph_.parents == wanted
    back = fitted.to_networkx()
    assert set(back.edges) == set(edges)
    np.testing.assert_allclose(back.nodes["d"]["table"], fitted.cpt("d").values)
    lonely = nx.DiGraph()
    lonely.add_nodes_from(["x", "y"])
    assert Graph.read(lonely).parents == {"x": (), "y": ()}


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, r"cycle: 'a' → 'c' → 'b' → 'a'"),
        ({"a": ["a"]}, r"cycle: 'a' → 'a'"),
        ([("a", "b", "c")], r"expected a pair"),
        (["ab"], r"expected a pair"),
        ({"a": ["b", "b"]}, r"parent 'b' twice"),
        ({}, r"no nodes"),
        (3, r"parents is 3"),
        ({1: ["1"]}, r"read alike"),
        ({"a": [2.5]}, r"a node is 2.5"),
        ({"a": [True]}, r"a node is True"),
        ({"a": 1.5}, r"the parents of 'a' is 1.5"),
    ],
)
def test_invalid_structures_raise(parents, message):
    with pytest.raises(DataError, match=message):
        tb.BayesianNetwork(parents).fit({"a": [0], "b": [0], "c": [0]})


def test_arrays_have_names_or_numbers():
    X = np.array([[0, 1], [1, 1], [1, 0]])
    by_number = tb.BayesianNetwork({1: [0]}).fit(X)
    by_name = tb.BayesianNetwork({"b": ["a"]}).fit(X, names=["a", "b"])
    np.testing.assert_array_equal(by_number.cpt(1).values, by_name.cpt("b").values)
    np.testing.assert_array_equal(by_number.predict(X, 1), by_name.predict(X, "b", names=["a", "b"]))
    np.testing.assert_allclose(by_name.score_samples(X, names=["a", "b"]), by_number.score_samples(X))
    by_name.partial_fit(X, names=["a", "b"]).forget(X, names=["a", "b"])
    with pytest.raises(DataError, match=r"no column names; expected a column 'a'"):
        by_name.predict(X, "b")
    with pytest.raises(DataError, match=r"3 columns, one for every name"):
        by_name.predict(X, "b", names=["a", "b", "c"])
    with pytest.raises(DataError, match=r"names= has two columns 'a'"):
        by_name.predict(X, "b", names=["a", "a"])


def test_weights_in_a_column():
    rows = {"a": [0, 1, 1], "b": [1, 1, 0], "w": [1.0, 0.5, 2.0]}
    named = tb.BayesianNetwork({"b": ["a"]}).fit(rows, sample_weight="w")
    assert named.tally_ == tb.BayesianNetwork({"b": ["a"]}).fit(rows, sample_weight=rows["w"]).tally_
    assert (
        named.partial_fit(rows, sample_weight="w").forget(rows, sample_weight="w").tally_
        == tb.BayesianNetwork({"b": ["a"]}).fit(rows, sample_weight="w").tally_
    )


def test_invalid_training_rows_raise():
    model = tb.BayesianNetwork({"b": ["a"]})
    with pytest.raises(DataError, match=r"no column 'b'"):
        model.fit({"a": [0]})
    with pytest.raises(DataError, match=r"0 rows"):
        model.fit({"a": [], "b": []})
    with pytest.raises(DataError, match=r"weight of every row is zero"):
        model.fit({"a": [0], "b": [0]}, sample_weight=[0.0])
    with pytest.raises(DataError, match=r"no row has 'a' together"):
        model.fit({"a": [None], "b": [0]})
    with pytest.raises(EstimateError, match=r"missing is 'drop'"):
        tb.BayesianNetwork({"b": ["a"]}, missing="drop").fit({"a": [0], "b": [0]})
    with pytest.raises(EstimateError, match=r"unseen is 'smooth'"):
        tb.BayesianNetwork({"b": ["a"]}, unseen="smooth").fit({"a": [0], "b": [0]})
    with pytest.raises(TypeError, match=r"positional"):  # a target is no weight
        model.fit({"a": [0], "b": [0]}, [1])
    with pytest.raises(EstimateError, match=r"estimate is 'ml'"):
        tb.BayesianNetwork({"b": ["a"]}, estimate="ml").fit({"a": [0], "b": [0]})
    with pytest.raises(DataError, match=r"columns is 3"):
        tb.BayesianNetwork({"b": ["a"]}, columns=3).fit({"a": [0], "b": [0]})
    with pytest.raises(DataError, match=r"no node 'z'"):
        tb.BayesianNetwork({"b": ["a"]}, columns={"z": tb.Poisson()}).fit({"a": [0], "b": [0]})
    with pytest.raises(StatisticsError, match=r"does not fit the network"):
        model.fit_tally(tb.BayesianNetwork({"a": ["b"]}).fit({"a": [0], "b": [0]}).tally_)
    fitted = tb.BayesianNetwork({"b": ["a"]}).fit({"a": [0], "b": [0]})
    with pytest.raises(StatisticsError, match=r"does not fit the network"):
        fitted.reestimate(parents={"a": ["b"]})
    with pytest.raises(StatisticsError, match=r"parameters differ"):
        fitted + tb.BayesianNetwork({"b": ["a"]}, estimate="mle").fit({"a": [0], "b": [0]})


def test_declared_levels_keep_their_order():
    columns = {"a": tb.Categorical(levels=("low", "mid", "high"))}
    model = tb.BayesianNetwork({"b": ["a"]}, columns=columns).fit({"a": ["mid", "low"], "b": [1, 0]})
    assert model.levels_["a"] == ("low", "mid", "high")
    assert model.cpt("b").values.shape == (3, 2)
    model.forget({"a": ["mid"], "b": [1]})
    assert model.levels_["a"] == ("low", "mid", "high")
    assert model.levels_["b"] == (0,)


def test_log_evidence_bic_and_description_length():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 300)
    rows = {"a": a, "b": (a ^ (rng.random(300) < 0.2)).astype(int), "c": rng.integers(0, 3, 300)}
    right = tb.BayesianNetwork({"b": ["a"], "c": []}, prior=tb.BDeu(2)).fit(rows)
    turned = tb.BayesianNetwork({"a": ["b"], "c": []}, prior=tb.BDeu(2)).fit(rows)
    assert right.log_evidence() == pytest.approx(turned.log_evidence())  # the same independences
    none = tb.BayesianNetwork({"a": [], "b": [], "c": []}, prior=tb.BDeu(2)).fit(rows)
    full = tb.BayesianNetwork({"b": ["a"], "c": ["a", "b"]}, prior=tb.BDeu(2)).fit(rows)
    assert right.log_evidence() > full.log_evidence() > none.log_evidence()
    assert right.bic_ < full.bic_ < none.bic_
    expected = sum(
        math.lgamma(1) - math.lgamma(1 + sum(group)) + sum(math.lgamma(0.5 + n) - math.lgamma(0.5) for n in group)
        for group in _counted({k: v.tolist() for k, v in rows.items()}, "b", ["a"])
    )
    alone = tb.BayesianNetwork({"b": ["a"]}, prior=tb.BDeu(2)).fit(rows)
    root = tb.BayesianNetwork({"a": []}, prior=tb.BDeu(2)).fit(rows)
    assert alone.log_evidence() - root.log_evidence() == pytest.approx(expected)
    mle = right.reestimate(estimate="mle")
    assert right.bic_ == pytest.approx(-2 * mle.score_samples(rows).sum() + right.n_parameters_ * math.log(300))
    assert right.description_length().evidence == pytest.approx(-right.log_evidence() / math.log(2))
    assert right.description_length().data > 0
    assert (right.n_parameters_, right.n_parameters_joint_) == (1 + 2 + 2, 11)


@pytest.mark.slow
def test_too_large_networks_raise_before_allocation():
    names = [f"x{k}" for k in range(60)]
    with pytest.raises(TooLargeError, match=r"the table of 'y' would have 2.31e\+18 cells, .* it has the parents 'x0'"):
        tb.BayesianNetwork({"y": names}).fit({name: [0, 1] for name in [*names, "y"]})
    dense = {f"x{k}": [f"x{j}" for j in range(max(0, k - 2), k)] + [f"x{(7 * k) % k}"] * (k > 5) for k in range(1, 60)}
    dense = {node: list(dict.fromkeys(parents)) for node, parents in dense.items()}
    rng = np.random.default_rng(0)
    for k in range(20, 60):
        dense[f"x{k}"] = [f"x{j}" for j in sorted(rng.choice(k, 3, replace=False))]
    rows = {name: list(range(30)) for name in names}
    model = tb.BayesianNetwork(dense).fit(rows)
    with pytest.raises(TooLargeError, match=r"would need .* nodes have to be in one table of .*x"):
        model.query("x3")
    assert issubclass(TooLargeError, MemoryError)


@pytest.mark.slow
def test_too_large_queries_and_sums_raise_before_allocation():
    names = [f"p{k}" for k in range(40)]
    model = tb.BayesianNetwork({name: [] for name in names}).fit({name: [0, 1] for name in names})
    with pytest.raises(TooLargeError, match=r"40 nodes have to be in one table of 1.1e\+12 cells"):
        model.query(names)
    single = tb.BayesianNetwork({f"q{k}": [] for k in range(66)}).fit({f"q{k}": [0] for k in range(66)})
    with pytest.raises(TooLargeError, match=r"66 nodes"):
        single.query([f"q{k}" for k in range(66)])
    first = {"a": [f"a{k}" for k in range(200_000)], "b": ["x"] * 200_000, "c": [0] * 200_000}
    second = {"a": ["y"] * 200_000, "b": [f"b{k}" for k in range(200_000)], "c": [0] * 200_000}
    one, other = (tb.BayesianNetwork({"c": ["a", "b"]}).fit(rows) for rows in (first, second))
    with pytest.raises(TooLargeError, match=r"the table of 'c' would have 4e\+10 cells"):
        one + other
    with pytest.raises(TooLargeError, match=r"the table of 'c'"):
        one.partial_fit(second)
    with pytest.raises(TooLargeError, match=r"the table of 'y' would have 1 cells"):
        tb.BayesianNetwork({"y": [f"q{k}" for k in range(70)]}).fit({f"q{k}": [0] for k in range(70)} | {"y": [0]})


def test_integers_far_apart_have_few_levels():
    rng = np.random.default_rng(0)
    rows = {f"p{k}": rng.choice([18, 65], 100) for k in range(8)} | {"y": rng.integers(0, 2, 100)}
    parents = {"y": [f"p{k}" for k in range(8)]}
    model = tb.BayesianNetwork(parents).fit(rows)
    words = tb.BayesianNetwork(parents).fit({name: cells.astype(str) for name, cells in rows.items()})
    np.testing.assert_array_equal(model.cpt("y").values, words.cpt("y").values)
    matrix = np.stack(list(rows.values()), axis=1)
    by_array = tb.BayesianNetwork({8: list(range(8))}).fit(matrix)
    np.testing.assert_array_equal(model.cpt("y").values, by_array.cpt(8).values)


def test_tallies_with_parents_in_another_order():
    rng = np.random.default_rng(1)
    rows = {
        "a": rng.integers(0, 2, 50),
        "b": rng.integers(0, 3, 50),
        "c": rng.integers(0, 2, 50),
        "x": rng.normal(size=50),
    }
    prior = {"c": tb.Dirichlet(np.arange(1.0, 13.0).reshape(2, 3, 2))}
    parents = {"c": ["a", "b"], "x": ["a", "b"], "d": ["a", "b"]}
    rows["d"] = rng.integers(0, 2, 50)
    model = tb.BayesianNetwork(parents, prior=prior).fit(rows)
    turned = tb.BayesianNetwork({"c": ["b", "a"], "x": ["b", "a"], "d": ["b", "a"]}).fit(rows)
    again = tb.BayesianNetwork(parents, prior=prior).fit_tally(turned.tally_)
    for node in ("c", "d", "x"):
        np.testing.assert_allclose(again.cpt(node).values, model.cpt(node).values)
    assert again.graph_.parents["c"] == ("a", "b")
    with pytest.raises(DataError, match=r"tally is 'x'; expected a Tally"):
        again.fit_tally("x")


def test_structure_of_a_fitted_network_cannot_change():
    parents = {"b": ["a"]}
    model = tb.BayesianNetwork(parents).fit({"a": [0, 1], "b": [0, 1]})
    with pytest.raises(StatisticsError, match=r"does not fit the network"):
        model.set_params(parents={"q": []})
    assert model.parents == {"b": ["a"]}
    parents["z"] = ["b"]  # the caller's own
    assert model.query("b")[0] == 0.5
    assert "z" not in repr(model)
    back = model.to_networkx()
    back.nodes["b"]["table"][:] = 0.5
    assert model.cpt("b").values[0, 0] == pytest.approx(2 / 3)


def test_network_without_rows_raises():
    model = tb.BayesianNetwork({"b": ["a"]}).fit({"a": [1], "b": [1]})
    model.forget({"a": [1], "b": [1]})
    assert "0 parameters" in repr(model)
    with pytest.raises(DataError, match=r"'a' has no levels: the network has no rows"):
        model.query("b")
    model.partial_fit({"a": [2], "b": [3]})
    assert model.query("b")[3] == 1.0


def test_networks_with_fixed_parameters_can_be_fitted_but_not_updated():
    model = tb.BayesianNetwork.from_tables(
        {"b": ["a"]}, {"a": ["n", "y"], "b": ["n", "y"]}, {"a": [0.9, 0.1], "b": [[1.0, 0.0], [0.5, 0.5]]}
    )
    for change in (
        lambda: model.partial_fit({"a": ["n"], "b": ["n"]}),
        lambda: model.forget({"a": ["n"], "b": ["n"]}),
        lambda: model.log_evidence(),
    ):
        with pytest.raises(
            StatisticsError, match=r"needs counts, and the parameters of this BayesianNetwork are user-specified"
        ):
            change()
    with pytest.raises(StatisticsError, match=r"are user-specified"):
        model + model
    with pytest.raises(tb.NoCountsError, match=r"another estimate="):
        model.reestimate(estimate="mle")
    assert model.reestimate(unseen="error").query("b")["y"] == pytest.approx(0.05)
    assert model.unseen_configurations_ == {}
    assert not hasattr(model, "prior_")
    counted = tb.BayesianNetwork({"b": ["a"]}, estimate="mle").fit({"a": ["n", "n"], "b": ["n", "y"]})
    assert copy.copy(model).fit_tally(counted.tally_).n_parameters_ == 1  # what was given is gone
    model.fit({"a": ["n", "n"], "b": ["n", "n"]})
    assert model.levels_ == {"a": ("n", "y"), "b": ("n", "y")}
    np.testing.assert_allclose(model.cpt("a").values, [0.75, 0.25])
    assert math.isfinite(model.log_evidence())


@pytest.mark.parametrize(
    ("parents", "levels", "tables", "message"),
    [
        ({"b": ["a"]}, {"a": [0, 1]}, {}, r"levels is without 'b'"),
        ({"b": ["a"]}, {"a": [0], "b": [0]}, {"a": [1.0]}, r"tables is without 'b'"),
        ({"a": []}, {"a": [0, 1]}, {"a": [[0.5], [0.5, 1]]}, r"table of 'a' is ragged, or not numeric"),
        ({"a": []}, {"a": [0, 1]}, {"a": ["x", "y"]}, r"table of 'a' is ragged, or not numeric"),
        (
            {"a": []},
            {"a": [0, 1]},
            {"a": [0.5, 0.4]},
            r"the sum of the table of 'a' is 0.9; expected rows that sum to 1",
        ),
        ({"a": []}, {"a": [0, 1]}, {"a": [1.5, -0.5]}, r"partly negative"),
        ({"a": []}, {"a": [0, 1]}, {"a": [1.0]}, r"the table of 'a' has shape \(1,\); expected \(2,\)"),
        (
            {"b": ["a"]},
            {"a": [0, 1], "b": [0, 1]},
            {"a": [0.5, 0.5], "b": [[1.0, 0.0], [0.5, 0.6]]},
            r"the sum of the table of 'b' is 1.1 for a = 1",
        ),
    ],
)
def test_invalid_tables_raise(parents, levels, tables, message):
    with pytest.raises(DataError, match=message):
        tb.BayesianNetwork.from_tables(parents, levels, tables)


def test_files(tmp_path):
    rows = {"a": ["u", "v", None], "b": [0, 1, 1], "c": [0.5, 1.5, 2.5]}
    fitted = tb.BayesianNetwork(
        [("a", "b"), ("b", "c")], prior={"a": tb.Dirichlet(2)}, columns={"b": tb.Categorical(levels=(0, 1, 2))}
    ).fit(rows)
    given_one = tb.BayesianNetwork.from_tables(
        {"b": ["a"]}, {"a": ["n", "y"], "b": [1, 2]}, {"a": [0.9, 0.1], "b": [[1.0, 0.0], [1 / 3, 2 / 3]]}
    )
    expert = tb.BayesianNetwork({"b": ["a"]}, prior=tb.BDe(given_one, 3)).fit({"a": ["n", "y"], "b": [1, 2]})
    em = tb.BayesianNetwork({"b": ["a"]}, missing="em").fit({"a": ["n", "y", None], "b": [1, 2, 2]})
    for model in (fitted, given_one, expert, em):
        model.save(tmp_path / "network.tally")
        loaded = tb.load(tmp_path / "network.tally")
        assert loaded.tally_ == model.tally_
        assert loaded.graph_ == model.graph_
        for node in model.levels_:
            np.testing.assert_array_equal(loaded.cpt(node).values, model.cpt(node).values)
        assert loaded.history_ == model.history_
        assert repr(loaded) == repr(model)
    with pytest.raises(DataError, match=r"a BIF file has discrete nodes only"):
        fitted.to_bif(tmp_path / "network.bif")


def test_damaged_model_files_raise(tmp_path):
    from tallybayes._utils import sealed_file

    model = tb.BayesianNetwork({"b": ["a"]}).fit({"a": [0, 1], "b": [0, 1]})
    path = tmp_path / "network.tally"
    model.save(path)
    kind, manifest, arrays = sealed_file.read(path)
    manifest["parameters"]["parents"] = {"type": "mapping", "items": [["a", ["b"]]]}
    sealed_file.write(path, kind, manifest, arrays)
    with pytest.raises((FileError, StatisticsError), match=r"does not fit the network"):
        tb.load(path)


def test_representations():
    model = tb.BayesianNetwork({"b": ["a"]}).fit({"a": [0, 1], "b": ["x", "y"]})
    assert repr(model).splitlines() == [
        "BayesianNetwork: 2 nodes, 1 edge, 3 parameters (joint table: 3)",
        "  p(a)  2 levels",
        "  p(b | a)  2 levels",
    ]
    assert "BayesianNetwork(" in repr(tb.BayesianNetwork({"b": ["a"]}))
    assert model.cpt("b")[0] == pytest.approx({"x": 2 / 3, "y": 1 / 3})
    frame = model.cpt("b").to_frame()
    assert (list(frame.columns), frame.index.names, frame.loc[(0,), "x"]) == (["x", "y"], ["a"], pytest.approx(2 / 3))
    assert len(model.cpt("a").to_frame()) == 1
    with pytest.raises(KeyError):
        model.cpt("b")[False]
    with pytest.raises(ValueError, match=r"read-only"):
        model.cpt("b").values[0] = 1.0
    with pytest.raises(KeyError):
        model.cpt("b")[7]
    with pytest.raises(DataError, match=r"no node 'z'"):
        model.cpt("z")
