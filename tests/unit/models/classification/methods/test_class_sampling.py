"""Rows drawn from a model have the moments they claim; missing cells are filled by what the model believes."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import tallybayes as tb
from tallybayes.errors import DataError, LabelError, PriorError

N = 40_000


def close(found, expected, deviation, n=N):
    """Within five standard errors."""
    np.testing.assert_allclose(found, expected, atol=5 * np.max(deviation) / math.sqrt(n))


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["mle", "unbiased", "map", "bayes"])
def test_samples_have_the_moments_of_their_class(estimate):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [30, 10])
    columns = {
        "sky": rng.choice(["sun", "rain", "snow"], 40, p=[0.6, 0.3, 0.1]).tolist(),
        "windy": rng.integers(0, 2, 40),
        "calls": rng.poisson(4, 40),
        "hits": rng.binomial(5, 0.3, 40),
        "warmth": rng.normal(15, 4, 40) + 10 * (y == "b"),
    }
    families = {"sky": tb.Categorical(), "windy": tb.Bernoulli(), "calls": tb.Poisson(), "hits": tb.Binomial(5)}
    model = tb.NaiveBayes({**families, "warmth": tb.Gaussian()}, estimate=estimate).fit(columns, y)
    _, labels = model.sample(N, random_state=1)
    close((labels == "b").mean(), 0.25, 0.5)
    only, same = model.sample(N, given="b", random_state=2)
    assert (same == "b").all()
    assert list(only) == list(columns)

    def density(name, values):
        """p(value | b) from the model itself: its joint with all other cells missing, less the prior."""
        rows = {other: [None] * len(values) for other in columns} | {name: values}
        return np.exp(model.predict_joint_log_proba(rows)[:, 1] - model.class_log_prior_[1])

    for name, values in (("sky", ["sun", "rain", "snow"]), ("windy", [0, 1]), ("hits", list(range(6)))):
        expected = density(name, values)
        assert expected.sum() == pytest.approx(1.0)
        close([(only[name] == value).mean() for value in values], expected, 0.5)
    counts = np.arange(200)
    expected = density("calls", counts.tolist())
    mean = (counts * expected).sum()
    spread = math.sqrt(((counts - mean) ** 2 * expected).sum())
    close(only["calls"].mean(), mean, spread)
    assert only["calls"].std() == pytest.approx(spread, rel=0.05)
    grid = np.linspace(-200, 250, 90_001)
    expected = density("warmth", grid.tolist())
    cumulative = np.cumsum(expected) * (grid[1] - grid[0])
    for share in (0.1, 0.5, 0.9):
        edge = grid[np.searchsorted(cumulative, share)]
        close((only["warmth"] <= edge).mean(), share, 0.5)


def test_samples_of_words_and_of_joint_gaussians():
    rng = np.random.default_rng(3)
    words = rng.multinomial(20, [0.5, 0.3, 0.2], 30)
    model = tb.NaiveBayes(tb.Multinomial(), estimate="mle").fit(sparse.csr_array(words), [0] * 30)
    drawn, _ = model.sample(5000, random_state=0)
    assert (drawn.sum(axis=1) == 20).all()
    close(drawn.mean(axis=0), words.mean(axis=0), math.sqrt(5), 5000)
    X = rng.normal(size=(50, 2)) @ np.array([[2.0, 1.0], [0.0, 1.0]]) + 7
    model = tb.NaiveBayes(tb.MultivariateGaussian(), estimate="mle").fit(X, [0] * 50)
    drawn, _ = model.sample(N, random_state=0)
    close(drawn.mean(axis=0), X.mean(axis=0), X.std())
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T, bias=True), rtol=0.06)


def test_samples_can_be_repeated_and_learned_from():
    model = tb.NaiveBayes().fit(np.arange(12.0).reshape(6, 2), [0, 1] * 3)
    first, labels = model.sample(10, random_state=5)
    again, _ = model.sample(10, random_state=np.random.default_rng(5))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (10, 2)
    assert not np.array_equal(first, model.sample(10, random_state=6)[0])
    model.partial_fit(first, labels)
    assert model.sample(0)[0].shape == (0, 2)
    with pytest.raises(LabelError, match="7"):
        model.sample(1, given=7)
    smooth = tb.NaiveBayes(unseen="smooth").fit({"c": list("aab")}, [0, 1, 1])
    assert set(smooth.sample(200, random_state=0)[0]["c"]) == {"a", "b"}  # only levels that exist
    unknown = tb.NaiveBayes(estimate="mle").partial_fit([[0.0], [1.0]], [0, 0], classes=[0, 1])
    assert unknown.sample(3, random_state=0)[1].tolist() == [0, 0, 0]
    with pytest.raises(DataError, match="nothing was counted"):
        unknown.sample(3, given=1)


def weather():
    frame = pd.DataFrame(
        {
            "sky": ["sun", "rain", "sun", "snow", "rain", "sun", "snow", "rain"],
            "wind": ["hi", "lo", "lo", "hi", "lo", "lo", "hi", "hi"],
            "warmth": [20.0, 12.0, 25.0, -2.0, 9.0, 18.0, 1.0, 14.0],
            "calls": [1, 4, 2, 0, 3, 5, 1, 2],
        }
    )
    families = {"sky": tb.Categorical(), "wind": tb.Categorical(), "warmth": tb.Gaussian(), "calls": tb.Poisson()}
    return tb.NaiveBayes(families).fit(frame, [1, 0, 1, 0, 0, 1, 0, 1]), frame


def test_filling_labels_against_enumeration():
    model, frame = weather()
    holes = frame.assign(sky=None)
    belief = model.impute(holes, how="distribution")["sky"]
    assert belief.rows.tolist() == list(range(8))
    # p(sky = s | the rest) = p(s, rest) / Σ p(s', rest)
    joint = np.exp([model.score_samples(frame.assign(sky=level)) for level in belief.levels]).T
    np.testing.assert_allclose(belief.probabilities, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(belief.weights, model.predict_proba(holes), rtol=1e-13)
    best = [belief.levels[k] for k in joint.argmax(axis=1)]
    for how in ("mean", "mode"):
        assert model.impute(holes, how)["sky"].tolist() == best
    assert model.impute(holes)["wind"].tolist() == frame["wind"].tolist()


def test_filling_several_cells_of_a_row():
    model, frame = weather()
    holes = frame.assign(sky=None, wind=None)
    belief = model.impute(holes, how="distribution")
    marginal = {}
    for sky, wind in itertools.product(belief["sky"].levels, belief["wind"].levels):
        joint = np.exp(model.score_samples(frame.assign(sky=sky, wind=wind)))
        marginal[sky] = marginal.get(sky, 0) + joint
    found = np.column_stack([marginal[sky] for sky in belief["sky"].levels])
    np.testing.assert_allclose(belief["sky"].probabilities, found / found.sum(axis=1, keepdims=True), rtol=1e-12)


def test_filling_numbers_against_integration():
    model, frame = weather()
    holes = frame.assign(warmth=np.nan)
    grid = np.linspace(-3000.0, 3000.0, 120_001)
    for row in (0, 3):
        one = {name: [value] * len(grid) for name, value in frame.iloc[row].items()} | {"warmth": grid}
        density = np.exp(model.score_samples(one))
        expected = (grid * density).sum() / density.sum()
        assert model.impute(holes)["warmth"][row] == pytest.approx(expected, abs=0.02)
    counts = np.arange(400)
    one = {name: [value] * 400 for name, value in frame.iloc[2].items()} | {"calls": counts}
    density = np.exp(model.score_samples(one))
    filled = model.impute(frame.astype({"calls": object}).assign(calls=None))["calls"]
    assert filled[2] == pytest.approx((counts * density).sum() / density.sum(), rel=1e-9)
    # the mode takes the most probable class's mean
    mode, belief = model.impute(holes, "mode")["warmth"], model.impute(holes, "distribution")["warmth"]
    top = model.predict_proba(holes).argmax(axis=1)
    np.testing.assert_allclose(mode, np.broadcast_to(belief.means, (8, 2))[np.arange(8), top], rtol=1e-13)
    np.testing.assert_allclose(model.impute(holes)["warmth"], (belief.weights * belief.means).sum(axis=1), rtol=1e-12)


def test_filling_keeps_the_rest_and_the_input():
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, np.nan], [3.0, 1.0]])
    before = X.copy()
    filled = tb.NaiveBayes().fit(X, [0, 1, 1, 0]).impute(X)
    np.testing.assert_array_equal(X, before)
    assert isinstance(filled, np.ndarray)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    whole = tb.NaiveBayes().fit(X, [0, 1, 1, 0]).impute(X[:1])
    np.testing.assert_array_equal(whole, X[:1])
    mixed = {"block": X, "words": sparse.csr_array(np.eye(4)), "kind": ["a", None, "b", "a"]}
    model = tb.NaiveBayes().fit(mixed, [0, 1, 1, 0])
    found = model.impute(mixed)
    np.testing.assert_array_equal(found["words"].toarray(), np.eye(4))
    assert not np.isnan(found["block"]).any()
    np.testing.assert_array_equal(found["block"][~np.isnan(X)], X[~np.isnan(X)])
    assert set(model.impute(mixed, "distribution")) == {("block", 0), ("block", 1), "kind"}
    with pytest.raises(DataError, match="'median'"):
        model.impute(mixed, how="median")


def test_filling_a_joint_gaussian_uses_the_other_columns_of_the_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ np.array([[1.0, 0.9], [0.0, 0.3]])
    model = tb.NaiveBayes(tb.MultivariateGaussian(), estimate="mle").fit(X, [0] * 60)
    holes = np.array([[2.0, np.nan]])
    covariance, mean = np.cov(X.T, bias=True), X.mean(axis=0)
    expected = mean[1] + covariance[1, 0] / covariance[0, 0] * (2.0 - mean[0])
    assert model.impute(holes)[0, 1] == pytest.approx(expected, rel=1e-10)


def test_filling_leaves_a_level_that_was_never_seen() -> None:
    model = tb.NaiveBayes().fit({"x": ["a", "b", "a"], "z": [1.0, 2.0, 1.5], "y": [0, 1, 0]}, "y")
    filled = model.impute({"x": ["strange", None], "z": [1.0, 1.0]})
    assert list(filled["x"]) == ["strange", "a"]


def test_a_prior_that_no_column_uses_is_refused() -> None:
    model = tb.NaiveBayes(prior=[tb.Gamma(2, 2), tb.Dirichlet(0.5)])
    with pytest.raises(PriorError, match="Gamma"):
        model.fit({"x": ["a", "b"], "y": [0, 1]}, "y")
