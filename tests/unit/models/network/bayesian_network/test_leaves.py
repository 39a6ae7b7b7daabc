"""Continuous nodes with discrete parents: every family, against sums over all levels and densities of SciPy."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import sparse, stats

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, ImpossibleError

PARENTS = {"size": ["kind", "old"], "visits": ["old"], "kind": ["old"]}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    old = rng.integers(0, 2, 400)
    kind = np.where(rng.random(400) < 0.3 + 0.4 * old, "cat", "dog")
    size = rng.normal(3.0 * (kind == "dog") + old, 1.0 + old)
    size[rng.random(400) < 0.1] = np.nan
    return {"old": old, "kind": kind, "size": size, "visits": rng.poisson(1 + 4 * old)}


def _fit(rows, estimate="mle", **more):
    return tb.BayesianNetwork(PARENTS, columns={"visits": tb.Poisson()}, estimate=estimate, **more).fit(rows)


def _weights(model, rows, known):
    """p(old, kind, known) by enumeration, with parameters counted here."""
    found = {}
    old, kind, size, visits = (np.asarray(rows[name]) for name in ("old", "kind", "size", "visits"))
    for o, k in product((0, 1), ("cat", "dog")):
        here = (old == o) & (kind == k)
        p = np.mean(old == o) * np.mean(kind[old == o] == k)
        if "size" in known:
            mine = size[here & ~np.isnan(size)]
            p *= stats.norm(mine.mean(), mine.std()).pdf(known["size"])
        if "visits" in known:
            p *= stats.poisson(visits[old == o].mean()).pmf(known["visits"])
        for name, value in (("old", o), ("kind", k)):
            p *= float(known.get(name, value) == value)
        found[o, k] = p
    return found


@pytest.mark.parametrize(
    "known", [{}, {"size": 2.5}, {"visits": 4}, {"size": -1.0, "visits": 0, "kind": "dog"}, {"old": 1, "size": 7.0}]
)
def test_leaves_equal_enumeration(rows, known):
    model = _fit(rows)
    weights = _weights(model, rows, known)
    total = sum(weights.values())
    assert model.probability(known) == pytest.approx(total)
    answer = model.query(["old", "kind"], known)
    for key, p in weights.items():
        assert answer[key] == pytest.approx(p / total, abs=1e-12)
    table = {name: [value] for name, value in known.items()}
    table |= {"kind": [known.get("kind")]}  # at least one column
    assert model.score_samples(table)[0] == pytest.approx(math.log(total))
    best = max(weights, key=weights.get)
    found = model.most_probable(known)
    assert (found["old"], found["kind"]) == best
    means = {(o, k): np.nanmean(rows["size"][(rows["old"] == o) & (rows["kind"] == k)]) for o, k in weights}
    expected = known.get("size", sum(means[key] * p for key, p in weights.items()) / total)
    assert model.impute(table)["size"][0] == pytest.approx(expected)


def test_rows_with_observed_discrete_nodes_are_looked_up(rows):
    model = _fit(rows)
    logs = model.score_samples(rows)
    for row in (0, 1, 2):
        known = {name: cells[row] for name, cells in rows.items() if cells[row] == cells[row]}
        assert logs[row] == pytest.approx(math.log(sum(_weights(model, rows, known).values())))
    bare = {name: cells for name, cells in rows.items() if name != "kind"}
    some = model.score_samples(bare)
    known = {name: cells[5] for name, cells in bare.items() if cells[5] == cells[5]}
    assert some[5] == pytest.approx(math.log(sum(_weights(model, rows, known).values())))


def test_parameters_are_integrated_out_under_bayes(rows):
    model = _fit(rows, "bayes")
    prior = model.prior_["size"]
    alone = tb.fit_distribution(
        rows["size"], tb.Gaussian(), group=[f"{k}{o}" for k, o in zip(rows["kind"], rows["old"], strict=True)]
    )
    predictive = alone.posterior(prior)
    place = alone.groups.index("dog1")
    logs = alone.family.log_predictive(predictive, np.array([[2.0]]))
    both = model.probability({"kind": "dog", "old": 1, "size": 2.0})
    labels = model.probability({"kind": "dog", "old": 1})
    assert both / labels == pytest.approx(math.exp(np.ravel(logs[0])[place]))


def test_samples_of_leaves(rows):
    model = _fit(rows)
    drawn = model.sample(20_000, {"kind": "cat", "old": 0}, random_state=1)
    here = (rows["kind"] == "cat") & (rows["old"] == 0)
    assert np.mean(drawn["size"]) == pytest.approx(np.nanmean(rows["size"][here]), abs=0.05)
    assert np.mean(drawn["visits"]) == pytest.approx(rows["visits"][rows["old"] == 0].mean(), abs=0.05)
    assert (model.sample(3, {"size": 1.5}, random_state=1)["size"] == 1.5).all()
    again = _fit(model.sample(50_000, random_state=2))
    np.testing.assert_allclose(again.cpt("size").values, model.cpt("size").values, atol=0.15)
    np.testing.assert_allclose(again.cpt("kind").values, model.cpt("kind").values, atol=0.02)


def test_intervention_on_a_leaf_does_not_change_its_parents(rows):
    model = _fit(rows)
    assert dict(model.query("old", do={"size": 99.0})) == pytest.approx(dict(model.query("old")))
    assert model.impute({"old": [0]}, do={"size": 99.0})["size"][0] == 99.0
    assert model.sample(2, do={"size": 99.0}, random_state=0)["size"].tolist() == [99.0, 99.0]


def test_merging_and_forgetting_leaves(rows):
    first, second = ({name: cells[part] for name, cells in rows.items()} for part in (slice(0, 150), slice(150, None)))
    whole = _fit(rows)
    assert _fit(first).partial_fit(second).tally_.isclose(whole.tally_, 1e-12)
    assert (_fit(first) + _fit(second)).tally_.isclose(whole.tally_, 1e-12)
    assert whole.forget(second).tally_.isclose(_fit(first).tally_, 1e-12)


def test_blocks_of_columns_are_leaves():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    pixels = rng.normal(y[:, None], 1.0, (60, 3))
    words = sparse.csr_array(rng.poisson(1.0 + y[:, None] * [2, 0, 0, 1]))
    columns = {"pixels": tb.MultivariateGaussian(), "words": tb.Multinomial()}
    rows = {"y": y, "pixels": pixels, "words": words}
    model = tb.BayesianNetwork({"pixels": ["y"], "words": ["y"]}, columns=columns).fit(rows)
    naive = tb.NaiveBayes(columns=columns, prior=1).fit(rows, "y")
    np.testing.assert_allclose(model.predict_proba(rows, "y"), naive.predict_proba(rows), atol=1e-12)


@pytest.mark.parametrize(
    ("parents", "columns", "message"),
    [
        (
            {"y": ["x"]},
            {"x": tb.Gaussian(), "y": tb.Categorical()},
            r"'y' is discrete, and its parent 'x' is Gaussian\(\)",
        ),
        ({"y": ["x"]}, {"y": 3}, r"the family of 'y' is 3"),
    ],
)
def test_discrete_children_of_continuous_nodes_raise(parents, columns, message):
    with pytest.raises(DataError, match=message):
        tb.BayesianNetwork(parents, columns=columns).fit({"x": [0, 1], "y": [0, 1]})


def test_continuous_nodes_have_no_probabilities_of_levels(rows):
    model = _fit(rows)
    for call in (
        lambda: model.predict_proba(rows, "size"),
        lambda: model.predict_proba(rows, ["old", "size"]),
    ):
        with pytest.raises(DataError, match=r"node 'size' is continuous"):
            call()
    with pytest.raises(DataError, match=r"node 'visits' is continuous"):
        model.query("visits")
    with pytest.raises(DataError, match=r"found inf in row 0, column 'size'"):
        model.predict({"size": [np.inf]}, "old")
    with pytest.raises(DataError, match=r"found -1\.0 in row 0, column 'visits'|found -1 in row 0"):
        model.query("old", {"visits": -1})


def test_the_distribution_of_a_leaf(rows):
    model = _fit(rows)
    weights = _weights(model, rows, {"visits": 2})
    total = sum(weights.values())
    answer, density = model.query("size", {"visits": 2}), 0.0
    for (o, k), p in weights.items():
        mine = rows["size"][(rows["old"] == o) & (rows["kind"] == k)]
        density += p / total * stats.norm(np.nanmean(mine), np.nanstd(mine)).pdf(2.5)
    assert answer.pdf(2.5) == pytest.approx(density)
    assert answer.mean == pytest.approx(model.predict({"visits": [2]}, "size")[0])
    bayes = _fit(rows, "bayes")
    joint = bayes.probability({"size": 2.5, "visits": 2}) / bayes.probability({"visits": 2})
    assert bayes.query("size", {"visits": 2}).pdf(2.5) == pytest.approx(joint)
    spread = bayes.query("size")
    assert spread.cdf(spread.quantile([0.1, 0.9])) == pytest.approx([0.1, 0.9])


def test_undefined_leaves_raise():
    rows = {"a": [0, 0, 0, 1], "x": [1.0, 2.0, 4.0, np.nan]}
    model = tb.BayesianNetwork({"x": ["a"]}, estimate="mle").fit(rows)
    assert model.unseen_configurations_ == {"x": [{"a": 1}]}
    assert model.query("a")[1] == 0.25
    with pytest.raises(EstimateError, match=r"no row has 'x' with a = 1"):
        model.query("a", {"x": 2.0})
    with pytest.raises(EstimateError, match=r"no row has 'x' with a = 1"):
        model.score_samples({"a": [1], "x": [2.0]})
    assert np.isfinite(model.score_samples({"a": [1], "x": [np.nan]}))[0]
    with pytest.raises(EstimateError, match=r"no row has 'x' with a = 0, or no variation"):
        tb.BayesianNetwork({"x": ["a"]}, estimate="mle").fit({"a": [0, 1], "x": [1.0, 2.0]}).query("a", {"x": 1.0})
    assert math.isfinite(tb.BayesianNetwork({"x": ["a"]}).fit({"a": [0, 1], "x": [1.0, 2.0]}).log_evidence())


def test_huge_offsets_and_constant_columns():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 100)
    x = rng.normal(a, 1.0)
    near = tb.BayesianNetwork({"x": ["a"], "c": ["a"]}).fit({"a": a, "x": x, "c": np.full(100, 2.5)})
    far = tb.BayesianNetwork({"x": ["a"], "c": ["a"]}).fit({"a": a, "x": x + 1e9, "c": np.full(100, 2.5)})
    np.testing.assert_allclose(
        far.predict_proba({"x": x[:5] + 1e9}, "a"), near.predict_proba({"x": x[:5]}, "a"), atol=1e-6
    )
    alone = tb.BayesianNetwork({"x": ["a"]}).fit({"a": a, "x": x})
    np.testing.assert_allclose(
        near.predict_proba({"x": x[:5], "c": [2.5] * 5}, "a"), alone.predict_proba({"x": x[:5]}, "a"), atol=1e-12
    )


def test_continuous_evidence_of_wrong_shape_raises(rows):
    model = _fit(rows)
    for value in ([1.0, 2.0], [[1.0, 2.0]]):
        with pytest.raises(DataError, match=r"node 'size' has 2 columns; expected 1"):
            model.query("old", {"size": value})
    for value in (None, np.nan, {1.0: 0.5}):
        with pytest.raises(DataError, match=r"node 'size' is continuous, and its value is .*; expected a number"):
            model.query("old", {"size": value})
    rng = np.random.default_rng(0)
    block = tb.BayesianNetwork({"x": ["y"]}, columns={"x": tb.MultivariateGaussian()})
    block.fit({"y": [0, 1] * 10, "x": rng.normal(size=(20, 3))})
    with pytest.raises(DataError, match=r"node 'x' has 1 columns; expected 3"):
        block.query("y", {"x": 1.0})
    words = tb.BayesianNetwork({"x": ["y"]}).fit({"y": [0, 1], "x": sparse.csr_array(np.eye(2))})
    assert words.predict({"x": sparse.csr_array(np.eye(2))}, "y").tolist() == [0, 1]
    with pytest.raises(DataError, match=r"node 'x' has 3 columns; expected 2"):
        words.predict({"x": sparse.csr_array(np.eye(3))}, "y")
    with pytest.raises(DataError, match=r"found -1.0 in row 1"):
        words.predict({"x": sparse.csr_array(np.diag([1.0, -1.0]))}, "y")


def test_incomplete_rows_of_a_block_are_evidence():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 1)) + rng.normal(size=(500, 2)) * 0.01
    model = tb.BayesianNetwork({"x": ["y"]}, columns={"x": tb.MultivariateGaussian()}).fit({"y": [0, 1] * 250, "x": x})
    assert model.impute({"x": np.array([[2.0, np.nan]])})["x"] == pytest.approx(np.array([[2.0, 2.0]]), abs=0.1)


def test_floats_with_none_are_continuous():
    for cells in ([1.5, None, 2.0], [1.0, None, 2.0], np.array([1.0, None, 2.0], dtype=object), [1.0, np.nan, 2.0]):
        model = tb.BayesianNetwork({"x": []}).fit({"x": cells})
        assert model.levels_ == {}
    assert tb.BayesianNetwork({"x": []}).fit({"x": [1, None, 2]}).levels_ == {"x": (1, 2)}


def test_tied_leaves_have_a_bic(rows):
    some = {"old": rows["old"], "size": rows["size"]}
    tied = tb.BayesianNetwork({"size": ["old"]}, columns={"size": tb.TiedGaussian()}).fit(some)
    free = tb.BayesianNetwork({"size": ["old"]}).fit(some)
    assert free.bic_ < tied.bic_  # the spread differs between young and old
    known = ~np.isnan(some["size"])
    mle = free.reestimate(estimate="mle")
    labels = -2 * mle.score_samples({"old": some["old"]}).sum() + math.log(400)
    density = mle.score_samples(some)[known] - mle.score_samples({"old": some["old"]})[known]
    assert free.bic_ == pytest.approx(labels - 2 * density.sum() + 4 * math.log(known.sum()))


def test_impossible_continuous_values():
    model = tb.BayesianNetwork({"n": [], "a": []}, columns={"n": tb.Poisson()}, estimate="mle").fit(
        {"n": [0, 0], "a": [0, 1]}
    )
    assert model.probability({"n": 3}) == 0
    for call in (
        lambda: model.query("a", {"n": 3}),
        lambda: model.most_probable({"n": 3}),
        lambda: model.sample(1, {"n": 3}),
    ):
        with pytest.raises(ImpossibleError, match=r"n = 3 has probability 0"):
            call()
    with np.errstate(all="raise"):
        far = tb.BayesianNetwork({"x": ["a"]}, estimate="mle").fit({"a": [0, 0, 1, 1], "x": [0.0, 1.0, 2.0, 4.0]})
    assert far.score_samples({"x": [1e300]})[0] < -1e100
