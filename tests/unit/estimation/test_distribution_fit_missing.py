"""Values that are sometimes not there: a pair of what is learned otherwise, against sums and shares by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError, PriorError

X = np.array([20.0, np.nan, np.nan, 31.0, 24.0, 27.5])
THERE = (~np.isnan(X)).astype(float)
LABELS = ["a", None, "b", "a", None, "a"]


@pytest.mark.parametrize(
    ("family", "values"),
    [
        (tb.Gaussian(), X),
        (tb.LogNormal(), X),
        (tb.Binned((None, 25.0, None)), X),
        (tb.Poisson(), np.floor(X)),
        (tb.Bernoulli(), np.where(X > 25, 1.0, X * 0)),
        (tb.Categorical(), LABELS),
        (tb.Categorical(("a", "b", "c")), LABELS),
        (tb.Bernoulli(success="a"), LABELS),
    ],
    ids=repr,
)
def test_it_is_what_both_halves_say(family, values):
    missing = pd.isna(np.array(values, dtype=object))
    both = tb.fit_distribution(values, tb.WithMissing(family))
    there, cells = tb.fit_distribution((~missing).astype(float), tb.Bernoulli()), tb.fit_distribution(values, family)
    assert both.family == tb.WithMissing(family)
    for estimate in ("bayes", "map", "mle"):
        found = both.estimate(estimate)
        assert found.there == there.estimate(estimate)
        assert repr(found.values) == repr(cells.estimate(estimate))
    assert both.posterior() == (there.posterior(), cells.posterior())
    assert both.log_evidence() == pytest.approx(there.log_evidence() + cells.log_evidence())
    best = both.estimate("mle")
    assert both.log_likelihood(best) == pytest.approx(there.log_likelihood(best[0]) + cells.log_likelihood(best[1]))
    assert both.divergence(best) == pytest.approx(0.0)
    assert both.description_length().evidence == pytest.approx(-both.log_evidence() / np.log(2))
    told = both.predictive().log_prob(values)
    expected = there.predictive().log_prob((~missing).astype(float)) + cells.predictive().log_prob(values)
    np.testing.assert_allclose(told, expected)
    assert told[1 if isinstance(values, list) else 2] == pytest.approx(np.log(1 - there.estimate("bayes")))
    assert both.levels == cells.levels
    assert f"FittedWithMissing: {tb.WithMissing(family)!r}, weight 6" in repr(both)
    assert "there 0.66" in both._repr_html_()


def test_evidence_follows_the_chain_rule():
    """One value after the other, each by the predictive of those before."""
    prior, total, seen = {"there": tb.Beta(1, 2), "values": tb.NormalInverseGamma(20, 1, 2, 30)}, 0.0, None
    for value in X:
        before = tb.fit_distribution(X[:0], tb.WithMissing(tb.Gaussian())) if seen is None else seen
        total += before.predictive(prior).log_prob(value)
        one = tb.fit_distribution([value], tb.WithMissing(tb.Gaussian()))
        seen = one if seen is None else seen + one
    assert seen.log_evidence(prior) == pytest.approx(total, rel=1e-10)
    assert seen.isclose(tb.fit_distribution(X, tb.WithMissing(tb.Gaussian())))


@given(st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=12), st.integers(0, 12))
def test_the_laws_of_counting(values, cut):
    family = tb.WithMissing(tb.Poisson())
    groups = np.arange(len(values)) % 3
    column = np.array(values, dtype=float)

    def learn(part):
        return tb.fit_distribution(column[part], family, group=groups[part])

    whole, one, other = learn(slice(None)), learn(slice(cut)), learn(slice(cut, None))
    if 0 < cut < len(values):
        assert (one + other).isclose(whole)
        assert (whole - other).isclose(one)
        assert whole - other + other == whole
    assert learn(np.arange(len(values))[::-1]).isclose(whole)
    assert tb.fit_distribution(column, family, group=groups, weight=np.full(len(values), 2.0)).isclose(whole + whole)


def test_groups_and_columns():
    found = tb.fit_distribution([1.0, None, None, 3.0], tb.WithMissing(tb.Poisson()), group=["u", "u", "v", "w"])
    assert found.groups == ("u", "v", "w")  # v has no value, but is a group
    np.testing.assert_allclose(found.estimate().there, [0.5, 1 / 3, 2 / 3])
    assert found.predictive().log_prob([None]).shape == (1, 3)
    frame = pd.DataFrame({"x": pd.array([1, None, 2], dtype="Int64"), "y": [np.nan, 7.0, 3.0]})
    both = tb.fit_distribution(frame, tb.WithMissing(tb.Gaussian()))
    logs = both.predictive().log_prob(frame)
    np.testing.assert_allclose(both.predictive().log_prob(frame[["y", "x"]]), logs)
    np.testing.assert_allclose(logs[1, 0], np.log(0.4))
    np.testing.assert_allclose(
        tb.fit_distribution(frame.to_numpy(dtype=float), both.family).predictive().log_prob(frame), logs
    )
    counted = tb.fit_distribution(counts={"H": 3, "T": 0, None: 5}, family=tb.WithMissing(tb.Categorical()))
    assert counted.estimate("mle") == (3 / 8, {"H": 1.0, "T": 0.0})


@pytest.mark.slow
def test_samples_have_absences():
    drawn = tb.fit_distribution(X, tb.WithMissing(tb.Gaussian())).predictive().sample(2000, random_state=0)
    assert np.isnan(drawn).mean() == pytest.approx(3 / 8, abs=4 * np.sqrt(3 / 8 * 5 / 8 / 2000))
    belief = tb.fit_distribution(X[~np.isnan(X)], tb.Gaussian()).posterior()
    scale = np.sqrt(belief.scale * (belief.strength + 1) / (belief.shape * belief.strength))
    known = np.sort(drawn[~np.isnan(drawn)])
    assert stats.kstest(known, stats.t(2 * belief.shape, belief.location, scale).cdf).pvalue > 0.01
    labels = tb.fit_distribution(LABELS, tb.WithMissing(tb.Categorical())).predictive().sample(500, random_state=0)
    assert set(labels) == {"a", "b", None}


def test_pictures_and_refusals():
    found = tb.fit_distribution(X, tb.WithMissing(tb.Gaussian()))
    assert len(found.plot(prior={"values": tb.NormalInverseGamma(20, 1, 2, 30)}).axes) == 2
    found.there.plot()
    with pytest.raises(PriorError, match="a mapping with 'there', 'values' or both"):
        found.estimate(prior=tb.Beta(1, 1))
    with pytest.raises(PriorError, match="a mapping with 'there', 'values' or both"):
        found.log_evidence({"absent": tb.Beta(1, 1)})
    with pytest.raises(DataError, match=r"beside a column 'x \(present\)'"):
        tb.fit_distribution({"x": [1.0], "x (present)": [1.0]}, tb.WithMissing(tb.Gaussian()))


def test_counts_serve_models():
    rng = np.random.default_rng(0)
    rows = {"y": rng.integers(0, 2, 60), "x": np.where(rng.random(60) < 0.4, np.nan, rng.normal(size=60))}
    family = tb.WithMissing(tb.Gaussian())
    factors = [tb.Factor("y", (), tb.Categorical()), tb.Factor("x", "y", family)]
    tally = tb.count(rows, factors)
    assert tally["x (present)"].weight.sum() == 60
    naive = tb.NaiveBayes({"x": family}).fit(rows, "y")
    counted = tb.NaiveBayes().fit_tally(tb.count(rows, factors, schema=tb.Schema(sorted_domains=("y",))))
    assert counted.columns_ == {"x": family}
    np.testing.assert_allclose(counted.predict_proba({"x": rows["x"]}), naive.predict_proba({"x": rows["x"]}))
    network = tb.BayesianNetwork({"x": ["y"]}).fit_tally(tally)
    assert network.columns_["x"] == family
    fitted = tb.BayesianNetwork({"x": ["y"]}, columns={"x": family}).fit(rows)
    np.testing.assert_array_equal(network.predict_proba(rows, "y"), fitted.predict_proba(rows, "y"))
    with pytest.raises(DataError, match="a block of columns"):
        tb.count({"b": np.ones((2, 2))}, [tb.Factor("b", (), family)])
