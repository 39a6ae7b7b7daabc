"""Continuous nodes with continuous parents, fitted by moments: estimates, merging, data sources and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, PriorError, StatisticsError

PARENTS = {"x": ["k"], "y": ["x", "k", "z"], "z": []}


def _rows(n, seed=0):
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 2, n)
    x, z = rng.normal(2 * k, 1.0), rng.normal(5, 2, n)
    y = np.where(k == 1, 2 * x - z, 1 - x + 0.5 * z) + rng.normal(0, 0.5, n)
    return {"k": np.array(["no", "yes"])[k], "x": x, "z": z, "y": y}


def _part(rows, part):
    return {name: column[part] for name, column in rows.items()}


def test_linear_models_are_least_squares_by_level():
    rows = _rows(300)
    model = tb.BayesianNetwork(PARENTS, estimate="mle").fit(rows)
    assert model.columns_["y"] == tb.ConditionalLinearGaussian()
    table = model.cpt("y")
    assert table.columns == ("intercept", "weight of x", "weight of z", "variance", "std")
    for place, level in enumerate(("no", "yes")):
        here = rows["k"] == level
        inputs = np.stack([np.ones(here.sum()), rows["x"][here], rows["z"][here]], axis=1)
        weights, *_ = np.linalg.lstsq(inputs, rows["y"][here], rcond=None)
        variance = np.mean((rows["y"][here] - inputs @ weights) ** 2)
        np.testing.assert_allclose(np.ravel(table.values[place])[:4], [*weights, variance], rtol=1e-9)
    assert model.n_parameters_ == 1 + 4 + 2 + 2 * 4
    logs = model.log_likelihood(rows)
    assert model.bic_ == pytest.approx(-2 * logs + model.n_parameters_ * math.log(300))
    unbiased = model.reestimate(estimate="unbiased").cpt("y").values[..., 3].ravel()
    np.testing.assert_allclose(
        unbiased / table.values[..., 3].ravel(), [n / (n - 3) for n in np.unique(rows["k"], return_counts=True)[1]]
    )


def test_log_evidence_is_that_of_the_linear_models():
    rows = _rows(40)
    prior = {"y": tb.LinearNormalInverseGamma([0.0, 0.0], np.eye(2), 2, 1, intercept_location=1.0, strength=1.0)}
    model = tb.BayesianNetwork(PARENTS, prior=prior).fit(rows)
    alone = tb.BayesianNetwork({"x": ["k"], "z": []}).fit(rows)
    lines = 0.0
    for level in ("no", "yes"):
        here = rows["k"] == level
        moments = tb.Moments.of(np.stack([rows["x"][here], rows["z"][here], rows["y"][here]], axis=1), full=True)
        lines += float(prior["y"].log_evidence(moments))
    assert model.log_evidence() == pytest.approx(alone.log_evidence() + lines)
    assert model.prior_["y"] == prior["y"]


def test_priors_of_linear_models():
    rows = _rows(12)
    free = tb.BayesianNetwork(PARENTS, estimate="mle").fit(rows)
    held = tb.BayesianNetwork(PARENTS, prior={"y": 1e9}, estimate="map").fit(rows)
    assert np.abs(held.cpt("y").values[..., 1:3]).max() < 1e-3 < np.abs(free.cpt("y").values[..., 1:3]).max()
    one = tb.BayesianNetwork(PARENTS, prior=1).fit(rows)  # counts of labels; lines have none to add to
    assert one.cpt("k").values.sum() == pytest.approx(1)
    found = tb.BayesianNetwork(PARENTS, prior="empirical").fit(rows).prior_["y"]
    assert found == tb.BayesianNetwork(PARENTS).fit(rows).prior_["y"]
    with pytest.raises(PriorError):
        tb.BayesianNetwork(PARENTS, prior={"y": tb.Beta(1, 1)}).fit(rows)
    with pytest.raises(PriorError):
        tb.BayesianNetwork(PARENTS, prior={"x": 1.0}).fit(rows)
    scaled = tb.BayesianNetwork(PARENTS).fit(rows)
    units = {"k": rows["k"], "x": rows["x"] * 1000 - 7, "z": rows["z"], "y": rows["y"] * 0.01 + 3}
    other = tb.BayesianNetwork(PARENTS).fit(units)
    np.testing.assert_allclose(
        other.query("k", {"x": 500 - 7.0, "y": 0.01 + 3})["yes"],
        scaled.query("k", {"x": 0.5, "y": 1.0})["yes"],
        rtol=1e-6,
    )


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(1, 29))
@settings(max_examples=15, deadline=None)
def test_merging_and_forgetting_moments(seed, cut):
    rows = _rows(30, seed)
    rows["y"][::7] = np.nan
    rows["x"][3] = np.nan
    first, second = _part(rows, slice(0, cut)), _part(rows, slice(cut, None))
    network = tb.BayesianNetwork(PARENTS)
    whole = tb.BayesianNetwork(PARENTS).fit(rows)
    assert tb.BayesianNetwork(PARENTS).fit(first).partial_fit(second).tally_.isclose(whole.tally_, 1e-12)
    assert tb.BayesianNetwork(PARENTS).fit(second).partial_fit(first).tally_.isclose(whole.tally_, 1e-12)
    both = tb.BayesianNetwork(PARENTS).fit(first) + tb.BayesianNetwork(PARENTS).fit(second)
    assert both.tally_.isclose(whole.tally_, 1e-12)
    order = np.random.default_rng(seed).permutation(30)
    assert tb.BayesianNetwork(PARENTS).fit(_part(rows, order)).tally_.isclose(whole.tally_, 1e-12)
    weight = np.random.default_rng(seed).integers(0, 3, 30)
    if weight.sum():
        repeated = tb.BayesianNetwork(PARENTS).fit(_part(rows, np.repeat(np.arange(30), weight)))
        assert network.fit(rows, sample_weight=weight).tally_.isclose(repeated.tally_, 1e-12)
    assert whole.forget(second).tally_.isclose(tb.BayesianNetwork(PARENTS).fit(first).tally_, 1e-9)


def test_all_data_sources_give_equal_counts(tmp_path):
    pd, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    frame = pd.DataFrame(_rows(200))
    whole = tb.BayesianNetwork(PARENTS).fit(frame)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for name in ("rows.parquet", "rows.csv"):
        assert tb.BayesianNetwork(PARENTS).fit(tmp_path / name).tally_.isclose(whole.tally_, 1e-9)
    con = duckdb.connect()
    con.register("t", frame)
    assert tb.BayesianNetwork(PARENTS).fit(tb.table(con, "t")).tally_.isclose(whole.tally_, 1e-9)
    frame.loc[5, "y"] = None  # then rows are read, and those that lack a cell left out
    con.register("gaps", frame)
    assert (
        tb.BayesianNetwork(PARENTS)
        .fit(tb.table(con, "gaps"))
        .tally_.isclose(tb.BayesianNetwork(PARENTS).fit(frame).tally_, 1e-9)
    )
    pl = pytest.importorskip("polars")
    assert (
        tb.BayesianNetwork(PARENTS)
        .fit(pl.from_pandas(frame))
        .tally_.isclose(tb.BayesianNetwork(PARENTS).fit(frame).tally_)
    )
    whole.save(tmp_path / "n.tally")
    again = tb.load(tmp_path / "n.tally")
    assert again.tally_ == whole.tally_
    assert again.score_samples(frame) == pytest.approx(whole.score_samples(frame))


def test_tallies_of_other_counts():
    rows = _rows(50)
    counted = tb.count(
        rows,
        [
            tb.Factor("k", (), tb.Categorical()),
            tb.Factor(("z",), (), tb.Gaussian()),
            tb.Factor("x", "k", tb.Gaussian()),
            tb.Factor(("z", "x", "y"), "k", tb.LinearGaussian()),
        ],
    )
    model = tb.BayesianNetwork(PARENTS).fit_tally(counted)
    found, wanted = model.cpt("y"), tb.BayesianNetwork(PARENTS).fit(rows).cpt("y")
    for level in ("no", "yes"):
        assert dict(found[level]) == pytest.approx(dict(wanted[level]))
    other = tb.count(
        rows,
        [
            tb.Factor("k", (), tb.Categorical()),
            tb.Factor("z", (), tb.Gaussian()),
            tb.Factor("x", "k", tb.TiedGaussian()),
            tb.Factor(("z", "x", "y"), "k", tb.LinearGaussian()),
        ],
    )
    with pytest.raises(StatisticsError, match=r"'x' is TiedGaussian\(\) in this tally"):
        tb.BayesianNetwork(PARENTS).fit_tally(other)


def test_types_decide_which_nodes_are_continuous():
    floats = {"a": [1.0, 2.0, 4.0], "b": [2.0, 4.5, 7.0]}
    assert tb.BayesianNetwork([("a", "b")]).fit(floats).levels_ == {}
    whole = {"a": [1, 2, 1], "b": [2.0, 4.5, 7.0]}
    assert tb.BayesianNetwork([("a", "b")]).fit(whole).levels_ == {"a": (1, 2)}
    named = tb.BayesianNetwork([("a", "b")], columns={"a": tb.Gaussian()}).fit(whole)
    assert named.levels_ == {}
    assert named.columns_["b"] == tb.ConditionalLinearGaussian()
    # A label depends on them, so they are labels, as whole numbers are that pandas made floats.
    labels = tb.BayesianNetwork([("a", "b")]).fit({"a": [1.0, np.nan, 2.0, 1.0], "b": ["u", "v", "v", "u"]})
    assert labels.levels_["a"] == (1, 2)
    with pytest.raises(
        DataError, match=r"'c' is discrete, and its parent 'b' is continuous \(found 4.5\)(.|\n)*Binned"
    ):
        tb.BayesianNetwork([("a", "b"), ("b", "c")]).fit({**floats, "c": ["u", "v", "u"]})
    every = tb.BayesianNetwork([("a", "b")], columns=tb.LinearGaussian()).fit(floats)
    assert every.columns_ == {"a": tb.Gaussian(), "b": tb.ConditionalLinearGaussian()}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"a": tb.Gaussian(), "b": tb.Categorical()},
            r"node 'b' is discrete, and its parent 'a' is Gaussian\(\)(.|\n)*tb.Binned",
        ),
        ({"a": tb.Gaussian(), "b": tb.Poisson()}, r"node 'b' is Poisson\(\), and there is an edge from 'a' to 'b'"),
        ({"a": tb.LogNormal(), "b": tb.Gaussian()}, r"node 'a' is LogNormal\(\)(.|\n)*logarithm"),
        ({"a": tb.Gaussian(), "b": tb.TiedGaussian()}, r"node 'b' is TiedGaussian\(\)"),
        ({"a": tb.WithMissing(tb.Gaussian()), "b": tb.Gaussian()}, r"node 'a' is WithMissing"),
        ({"a": tb.Gaussian(), "b": tb.LinearGaussianThroughOrigin()}, r"node 'b' is LinearGaussianThroughOrigin"),
    ],
)
def test_other_families_with_continuous_parents_raise(columns, message):
    with pytest.raises(DataError, match=message):
        tb.BayesianNetwork([("a", "b")], columns=columns).fit({"a": [1, 2, 3], "b": [2, 1, 3]})


def test_few_and_unusual_rows():
    one = tb.BayesianNetwork([("a", "b")]).fit({"a": [1.0], "b": [2.0]})
    assert math.isfinite(one.query("b", {"a": 1.5}).mean)
    assert one.query("b").std > 0
    flat = tb.BayesianNetwork([("a", "b")]).fit({"a": [3.0] * 5, "b": [1.0, 2, 3, 4, 5]})
    assert flat.query("b", {"a": 3.0}).mean == pytest.approx(3.0)
    assert flat.query("a").std < 1e-9
    assert np.isfinite(flat.score_samples({"a": [3.0], "b": [2.0]})).all()
    same = tb.BayesianNetwork([("a", "b")]).fit({"a": [1.0, 2, 3, 4, 5], "b": [7.0] * 5})
    assert same.query("b", {"a": 9.0}).mean == pytest.approx(7.0)
    apart = tb.BayesianNetwork({"a": []}).fit({"a": [1.0, 2, 3, 4, 5]})  # a constant node is no evidence
    assert same.score_samples({"a": [2.0], "b": [8.0]})[0] == pytest.approx(
        float(stats.norm(apart.cpt("a").values[..., 0].item(), apart.cpt("a").values[..., 2].item()).logpdf(2.0))
    )
    never = {"a": [1.0, 2.0, 3.0], "b": [np.nan] * 3}
    with pytest.raises(EstimateError, match=r"no row has 'b' and its continuous parents"):
        tb.BayesianNetwork([("a", "b")]).fit(never).query("b")
    with pytest.raises(DataError, match=r"no row has 'b', so its mean and variance are unknown"):
        tb.BayesianNetwork([("a", "b")], missing="em").fit(never)
    with pytest.raises(EstimateError, match=r"no row has 'a', so its distribution is undefined"):
        one.forget({"a": [1.0], "b": [2.0]}).query("a")
    with pytest.raises(EstimateError, match=r"no row has 'a' or 'b'"):
        tb.BayesianNetwork([("a", "b")], estimate="mle").fit({"a": [1.0, 2, 3], "b": [2.0, 4, 6]}).query("a")
    with pytest.raises(DataError, match=r"found inf in row 1, column 'b'"):
        tb.BayesianNetwork([("a", "b")]).fit({"a": [1.0, 2.0, np.nan], "b": [1.0, np.inf, 1.0]})
    far = {"a": 1e9 + np.arange(20.0), "b": 1e9 + 2 * np.arange(20.0) + np.tile([0.1, -0.1], 10)}
    model = tb.BayesianNetwork([("a", "b")], estimate="mle").fit(far)
    assert model.query("b", {"a": 1e9 + 4.5}).mean == pytest.approx(1e9 + 9, abs=0.05)
    rare = {"k": [0] * 20 + [1], "a": np.arange(21.0), "b": 2 * np.arange(21.0) + np.tile([0.1, -0.1, 0.0], 7)}
    lone = tb.BayesianNetwork({"a": ["k"], "b": ["k", "a"]}).fit(rare)
    assert 0 < lone.cpt("b")[1]["std"] < 10
    mle = tb.BayesianNetwork({"a": ["k"], "b": ["k", "a"]}, estimate="mle").fit(rare)
    with pytest.raises(EstimateError, match=r"with k = 1"):
        mle.query("k", {"b": 3.0})
    assert mle.query("b", {"k": 0}).mean == pytest.approx(np.mean(rare["b"][:20]))
    assert lone.forget(rare).tally_.domains["k"].levels == ()


@pytest.mark.slow
def test_evaluation_and_plots_of_linear_networks():
    rows = _rows(120)
    model = tb.BayesianNetwork(PARENTS).fit(rows)
    smaller = tb.BayesianNetwork({"x": ["k"], "y": ["k"], "z": []}).fit(rows)
    assert model.log_evidence() > smaller.log_evidence()
    assert tb.compare({"lines": model, "apart": smaller}) is not None
    found = tb.cross_validate(tb.BayesianNetwork(PARENTS), rows, "k", folds=4)
    assert found.accuracy.value > 0.8
    assert tb.evaluate(model, rows, "k").accuracy.value > 0.8
    assert tb.predictive_check(model, rows, n_draws=20) is not None
    assert "weight of x" in repr(model.cpt("y"))
    assert "ConditionalLinearGaussian" in repr(model.summary())
    half = tb.BayesianNetwork(PARENTS).fit(_part(rows, slice(0, 60)))
    moved = {column.column: column.bits for column in tb.difference(half, model).columns}
    assert 0 < moved["y"] < 1
    assert tb.audit(model, rows, "k").ok
    assert tb.Window(tb.BayesianNetwork(PARENTS), rows=60).partial_fit(rows).model_.n_parameters_ == model.n_parameters_
    posterior = model.posterior_["y"]
    assert posterior.mean().slope.shape == (2, 2)
    assert model.to_networkx().number_of_edges() == 4
    assert model.reestimate(estimate="map").query("y").mean == pytest.approx(model.query("y").mean, abs=0.05)
