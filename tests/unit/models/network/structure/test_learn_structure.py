"""Structure search: against all structures of four columns, with constraints, from any kind of rows."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.models.network.structure.encoded_rows import read_rows
from tallybayes.models.network.structure.structure_scores import ScoreCache, read_score
from tests.examples import examples
from tests.unit.models.network.structure.structures import GRAPHS, NODES, graphs, named, rows_of

SCORES = ["bdeu", "k2", "bic", "aic", tb.BDeu(8), tb.Dirichlet(0.3)]
SCORE_IDS = [str(score) for score in SCORES]


def best_by_enumeration(data, score, keep=lambda edges: True, missing="error"):
    families = ScoreCache(read_rows(data, "auto", None, None, missing), read_score(score))
    masks = [[(c, int(sum(1 << k for k in np.flatnonzero(e[:, c])))) for c in range(4)] for e in GRAPHS if keep(e)]
    return max(sum(families.scores(one)) for one in masks)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("score", SCORES, ids=SCORE_IDS)
def test_exact_search_equals_enumeration(score):
    for seed in range(3):
        data = rows_of(seed, 200)
        found = tb.learn_structure(data, score=score, method="exact")
        assert found.score == pytest.approx(best_by_enumeration(data, score), rel=1e-12)
        climbed = tb.learn_structure(data, score=score)
        assert climbed.score <= found.score + 1e-6


def test_exact_search_with_bde_and_missing_cells_equals_enumeration():
    data = rows_of(5, 150)
    score = tb.BDe(tb.BayesianNetwork({"b": ["a"]}).fit(rows_of(6, 300)), 4)
    found = tb.learn_structure(data, score=score, method="exact")
    assert found.score == pytest.approx(best_by_enumeration(data, score), rel=1e-12)
    data["b"] = np.where(np.random.default_rng(0).random(150) < 0.3, None, data["b"])
    found = tb.learn_structure(data, method="exact", missing="available")
    assert found.score == pytest.approx(best_by_enumeration(data, "bdeu", missing="available"), rel=1e-12)


@pytest.mark.parametrize("method", ["exact", "hill"])
@examples(12)
@given(
    seed=st.integers(0, 50),
    forbidden=st.lists(st.sampled_from(list(itertools.permutations(NODES, 2))), max_size=5),
    required=graphs.map(lambda edges: [(NODES[a], NODES[b]) for a, b in np.argwhere(edges)[:1]]),
    most=st.integers(1, 3),
)
def test_structures_satisfy_constraints(method, seed, forbidden, required, most):
    forbidden = [edge for edge in forbidden if edge not in required]
    data = rows_of(seed, 120)
    settings = {"forbidden": forbidden, "required": required, "max_parents": most}
    found = tb.learn_structure(data, method=method, **settings)
    assert not set(found.graph_.edges) & set(forbidden)
    assert set(required) <= set(found.graph_.edges)
    assert max(map(len, found.graph_.parents.values())) <= most

    def keep(edges):
        arrows = {(NODES[a], NODES[b]) for a, b in np.argwhere(edges)}
        return set(required) <= arrows and not arrows & set(forbidden) and edges.sum(axis=0).max() <= most

    best = best_by_enumeration(data, "bdeu", keep)
    if method == "exact":
        assert found.score == pytest.approx(best, rel=1e-12)
    else:
        assert found.score <= best + 1e-6


@pytest.mark.parametrize("method", ["exact", "hill", "pc"])
def test_structures_satisfy_tiers(method):
    data = rows_of(2, 500)
    found = tb.learn_structure(data, method=method, tiers=[["d"], ["c", "b"], ["a"]])
    rank = {"d": 0, "c": 1, "b": 1, "a": 2}
    assert found.graph_.edges
    assert all(rank[parent] <= rank[child] for parent, child in found.graph_.edges)


@examples(25)
@given(start=graphs, seed=st.integers(0, 50), score=st.sampled_from(["bdeu", "k2", "bic"]), tabu=st.integers(0, 5))
def test_hill_climbing_never_ends_below_its_initial_score(start, seed, score, tabu):
    data = rows_of(seed, 60)
    families = ScoreCache(read_rows(data, "auto", None, None, "error"), read_score(score))
    masks = [(c, int(sum(1 << k for k in np.flatnonzero(start[:, c])))) for c in range(4)]
    found = tb.learn_structure(data, score=score, start=named(start), tabu_length=tabu, n_restarts=1)
    assert found.score >= sum(families.scores(masks)) - 1e-9


@pytest.mark.slow
@examples(10)
@given(seed=st.integers(0, 50), shuffle=st.randoms(use_true_random=False))
def test_order_and_weights_of_rows(seed, shuffle):
    data = rows_of(seed, 90)
    order = list(range(90))
    shuffle.shuffle(order)
    whole = tb.learn_structure(data)
    moved = tb.learn_structure({name: column[order] for name, column in data.items()})
    assert moved.graph_ == whole.graph_
    assert moved.score == pytest.approx(whole.score, rel=1e-12)
    frame = pd.DataFrame(data)
    counted = frame.value_counts().rename("n").reset_index()[[*NODES, "n"]]
    weighed = tb.learn_structure(counted, sample_weight="n")
    assert weighed.score == pytest.approx(whole.score, rel=1e-12)
    assert tb.structural_hamming_distance(weighed.equivalence_class, whole.equivalence_class) == 0
    more = pd.concat([frame, frame.iloc[:5]])
    absent = tb.learn_structure(more, sample_weight=np.r_[np.ones(90), np.zeros(5)])
    assert absent.graph_ == whole.graph_


def test_all_kinds_of_data():
    data = rows_of(1, 300)
    expected = tb.learn_structure(data)
    words = {name: np.array(["no", "yes", "perhaps"])[column] for name, column in data.items()}
    for table in (pd.DataFrame(data), pl.DataFrame(data), pd.DataFrame(words), pd.DataFrame(words).astype("category")):
        assert tb.structural_hamming_distance(tb.learn_structure(table), expected) == 0
    array = np.stack(list(data.values()), axis=1)
    assert tb.learn_structure(array, names=list(data)).graph_ == expected.graph_
    assert tb.learn_structure(array.astype(np.uint8)).graph_.nodes[0] in range(4)
    years = data | {"a": data["a"] * 40 + 1950}  # levels that never occur are none
    assert tb.learn_structure(years).score == pytest.approx(expected.score, rel=1e-12)
    floats = data | {"a": data["a"].astype(float)}
    assert tb.learn_structure(floats, columns={"a": tb.Categorical()}).score == pytest.approx(expected.score, rel=1e-12)


def test_declared_levels_are_used():
    data = {"x": [0, 1] * 10, "y": [0, 1] * 10}
    declared = {"x": tb.Categorical(levels=[0, 1, 2])}
    found = tb.learn_structure(data, columns=declared, start=[("x", "y")], n_restarts=0, tabu_length=0)
    model = tb.BayesianNetwork(found, columns=declared, prior=tb.BDeu(1)).fit(data)
    assert found.score == pytest.approx(model.log_evidence(), rel=1e-12)


def test_structure_is_accepted_by_a_network():
    data = rows_of(4, 400)
    found = tb.learn_structure(data)
    for given_ in (found, found.graph_, found.graph_.parents, found.graph_.edges):
        model = tb.BayesianNetwork(given_, prior=tb.BDeu(1)).fit(data)
        if given_ is not found.graph_.edges:  # which do not name columns that stand alone
            assert model.log_evidence() == pytest.approx(found.score, rel=1e-12)
    for edge in found.edges:
        less = {node: [p for p in ps if (p, node) != edge[:2]] for node, ps in found.graph_.parents.items()}
        without = tb.BayesianNetwork(less, prior=tb.BDeu(1)).fit(data).log_evidence()
        assert edge.score_gain == pytest.approx(found.score - without, rel=1e-6)


@pytest.mark.slow
def test_searches_are_reproducible():
    data = rows_of(7, 300)
    first, second = (tb.learn_structure(data, n_bootstrap=4, random_state=3) for _ in range(2))
    assert first.edges == second.edges
    assert first.strengths == second.strengths


def test_bootstrap_strengths():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400)
    data = {"a": a, "b": np.where(rng.random(400) < 0.9, a, 1 - a), "c": rng.integers(0, 2, 400)}
    data["d"] = np.where(rng.random(400) < 0.9, data["b"] | data["c"], rng.integers(0, 2, 400))
    found = tb.learn_structure(data, n_bootstrap=20, n_restarts=1)
    shown = {edge[:2]: edge for edge in found.edges}
    assert found.strengths["a", "b"][0] == 1.0
    assert shown["b", "d"].strength > 0.9
    assert shown["b", "d"].direction > 0.9
    assert ("b", "d") in found.averaged(0.5).edges
    assert found.averaged(1.0).edges == []
    assert "strength" in repr(found)
    assert "direction" in found._repr_html_()
    assert list(found.to_frame()) == ["parent", "child", "score_gain", "reversible", "strength", "direction"]
    with pytest.raises(tb.DataError, match="n_bootstrap=100"):
        tb.learn_structure(data).averaged()


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("method", ["hill", "exact", "pc"])
def test_one_or_two_columns(n, method):
    data = dict(itertools.islice(rows_of(0, 20).items(), n))
    found = tb.learn_structure(data, method=method, n_bootstrap=2)
    assert len(found.graph_.nodes) == n
    assert "Structure of" in repr(found)


def test_uninformative_columns():
    data = rows_of(0, 50) | {"constant": np.zeros(50, int), "rows": np.arange(50)}
    found = tb.learn_structure(data)
    assert not [edge for edge in found.graph_.edges if "constant" in edge]
    tb.BayesianNetwork(found).fit(data)


@pytest.mark.parametrize("method", ["hill", "exact"])
def test_edges_without_gain_are_not_added(method):
    """Scores that differ by rounding are equal: of a constant, and of columns that determine each other."""
    constant = {"a": ["x", "y"], "b": ["x", "y"]}
    assert not tb.learn_structure(constant, sample_weight=[3.5, 0], method=method).graph_.edges
    two = tb.learn_structure({"a": [1, 2], "b": ["x", "y"], "c": [True, False]}, method=method, n_bootstrap=3)
    assert len(two.graph_.edges) == 2
    assert len(two.averaged(0.99).edges) <= 2
    same = {name: np.arange(30) % 3 for name in "abcd"}
    assert len(tb.learn_structure(same, method=method, score="bic").graph_.edges) == 3  # BDeu would have all six


def test_pc_on_a_collider():
    rng = np.random.default_rng(1)
    data = {"a": rng.integers(0, 2, 3000), "b": rng.integers(0, 2, 3000), "d": rng.integers(0, 2, 3000)}
    data["c"] = np.where(rng.random(3000) < 0.85, data["a"] | data["b"], rng.integers(0, 2, 3000))
    data["e"] = np.where(rng.random(3000) < 0.85, data["c"], rng.integers(0, 2, 3000))
    found = tb.learn_structure(data, method="pc")
    assert set(found.graph_.edges) == {("a", "c"), ("b", "c"), ("c", "e")}
    assert not found.equivalence_class.undirected
    kept = tb.learn_structure(data, method="pc", required=[("d", "a")], forbidden=[("c", "e"), ("e", "c")])
    assert {("d", "a"), ("a", "c"), ("b", "c")} <= set(kept.graph_.edges)
    assert not {("c", "e"), ("e", "c")} & set(kept.graph_.edges)


# ---- Errors -----------------------------------------------------------------------------------------------------

ROWS = rows_of(0, 30)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"required": [("a", "b"), ("b", "a")]}, "a cycle: 'a' → 'b' → 'a'|a cycle: 'b' → 'a' → 'b'"),
        ({"required": [("a", "x")]}, "no column 'x'"),
        ({"forbidden": [("x", "a")]}, "no column 'x'"),
        ({"required": ["ab"]}, "a pair \\(parent, child\\)"),
        ({"required": 3}, "a list of edges"),
        ({"required": [("a", "a")]}, "from 'a' to itself"),
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, "required, and forbidden in forbidden="),
        ({"required": [("a", "b")], "tiers": [["b"], ["a"]]}, "forbidden by the tiers"),
        ({"required": [("a", "b"), ("c", "b")], "max_parents": 1}, "at most max_parents=1"),
        ({"tiers": [["a", "b"], ["b"]]}, "in two tiers"),
        ({"tiers": ["ab"]}, "a list of columns"),
        ({"tiers": [["x"]]}, "no column 'x'"),
        ({"max_parents": -1}, "max_parents is -1"),
        ({"max_parents": 1.5}, "a whole number"),
        ({"start": [("a", "b")], "forbidden": [("a", "b")]}, "start= violates"),
        ({"start": [("a", "x")]}, "no column 'x'"),
        ({"n_restarts": -1}, "n_restarts is -1"),
        ({"n_bootstrap": 1.5}, "n_bootstrap is 1.5"),
        ({"alpha": 2.0, "method": "pc"}, "between 0 and 1"),
    ],
)
def test_invalid_constraints_raise(settings, message):
    with pytest.raises(tb.DataError, match=message):
        tb.learn_structure(ROWS, **settings)


def test_parameters_of_other_methods_raise():
    with pytest.raises(tb.EstimateError, match="alpha is a parameter of method='pc', found method='hill'"):
        tb.learn_structure(ROWS, alpha=0.05)
    with pytest.raises(tb.EstimateError, match="n_restarts is a parameter of method='hill'"):
        tb.learn_structure(ROWS, method="exact", n_restarts=3)
    with pytest.raises(tb.EstimateError, match=r"method is 'hil'.*\n.*'hill'"):
        tb.learn_structure(ROWS, method="hil")


def test_invalid_rows_raise():
    lacking = ROWS | {"b": np.where(np.arange(30) < 4, None, ROWS["b"])}
    with pytest.raises(tb.DataError, match=r"'b' lacks 4 of 30 cells.*\n.*missing='available'"):
        tb.learn_structure(lacking)
    tb.learn_structure(lacking, missing="available")
    with pytest.raises(tb.DataError, match=r"'b' is continuous.*\n.*tb.Categorical"):
        tb.learn_structure(ROWS | {"b": ROWS["b"] / 2})
    for nothing in ({"a": np.zeros(0, int)}, pd.DataFrame({"a": []})):  # which pandas takes for measured
        with pytest.raises(tb.DataError, match="0 rows"):
            tb.learn_structure(nothing)
    with pytest.raises(tb.DataError, match="0 rows"):
        tb.learn_structure(ROWS, sample_weight=np.zeros(30))
    with pytest.raises(tb.DataError, match="the data have no columns"):
        tb.learn_structure({})
    with pytest.raises(tb.DataError, match="no cell that counts"):
        tb.learn_structure(ROWS | {"b": [None] * 30}, missing="available")
    with pytest.raises(tb.TooLargeError, match="method='hill'"):
        tb.learn_structure(np.zeros((3, 40), int), method="exact")
    wide = {f"x{k}": np.arange(100) for k in range(6)}
    with pytest.raises(tb.TooLargeError, match="'x5'"):
        tb.learn_structure(wide, required=[(f"x{k}", "x5") for k in range(5)], columns=tb.Categorical())


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tb.learn_structure(ROWS, n_bootstrap=2).plot()


def test_constraints_orient_edges():
    # Two columns can be turned, unless a tier or an arrow that must not be there says otherwise; so can what follows.
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 400)
    y = np.where(rng.random(400) < 0.9, x, 1 - x)
    data = {"x": x, "y": y, "z": np.where(rng.random(400) < 0.9, y, 1 - y)}
    assert [edge.reversible for edge in tb.learn_structure(data).edges] == [True, True]
    for constraints in ({"tiers": [["x"], ["y", "z"]]}, {"required": [("x", "y")]}, {"forbidden": [("y", "x")]}):
        found = tb.learn_structure(data, n_bootstrap=5, **constraints)
        assert set(found.graph_.edges) == {("x", "y"), ("y", "z")}
        assert [edge.reversible for edge in found.edges] == [False, False]  # z → y ← x would say something else
        assert found.strengths["x", "y"] == (1.0, 1.0)
        assert found.equivalence_class.directed == ()


@pytest.mark.slow
def test_bootstrap_of_weighted_rows():
    data = pd.DataFrame(rows_of(9, 500))
    counted = data.value_counts().rename("n").reset_index()
    long = tb.learn_structure(data, n_bootstrap=40, n_restarts=0)
    short = tb.learn_structure(counted, sample_weight="n", n_bootstrap=40, n_restarts=0)
    assert "from 500 rows" in repr(short)
    for pair, (strength, _) in long.strengths.items():
        other, _ = short.strengths.get(pair) or short.strengths.get(pair[::-1], (0.0, 0.5))
        assert abs(strength - other) < 0.35


def test_missing_value_as_a_level():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 300)
    data = {"x": x, "y": np.where((x == 1) & (rng.random(300) < 0.7), None, rng.integers(0, 2, 300))}
    columns = {"y": tb.WithMissing(tb.Categorical())}
    found = tb.learn_structure(data, columns=columns)
    assert len(found.edges) == 1  # its missing values depend on x
    model = tb.BayesianNetwork(found, columns=columns, prior=tb.BDeu(1)).fit(data)
    assert found.score == pytest.approx(model.log_evidence(), rel=1e-12)


@pytest.mark.parametrize(("n_more", "text"), [(1, "1 more column has missing"), (2, "2 more columns have missing")])
def test_the_number_of_other_columns_with_missing_cells(n_more, text):
    rows = {name: ["u", "v", None] * 5 for name in "abc"[: n_more + 1]} | {"d": ["u", "v", "v"] * 5}
    with pytest.raises(tb.DataError, match=text):
        tb.learn_structure(rows)


def test_continuous_columns_are_an_error_that_names_bins():
    with pytest.raises(tb.DataError, match=r"'x' is continuous.*\n.*Bin its numbers.*columns=\{'x': tb\.Categorical"):
        tb.learn_structure({"x": [0.5, 1.5, 2.5], "y": ["u", "v", "v"]})
