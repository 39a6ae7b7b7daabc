"""Murphy's foundations: linear regression, under- and overfitting, bias and variance, weight decay (M0.5 to M0.10)."""

import numpy as np
import pytest

import tallybayes as tb

# D11: five points of a parabola with noise, and two that were kept back
X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
Y = np.array([5.0, 0.0, 1.0, 1.0, 4.0])
KEPT_X, KEPT_Y = np.array([[-3.0], [3.0]]), np.array([9.0, 9.0])
ORIGIN = {"x": [1.0, 2.0, 3.0], "y": [2.0, 3.0, 7.0]}


def squares(model, x, y):
    return float(((model.predict(x) - y) ** 2).sum())


def test_M0_5_through_the_origin():
    model = tb.LinearRegression(estimate="mle", intercept=False).fit(ORIGIN, "y")
    assert model.coef_ == pytest.approx([29 / 14], rel=1e-12)
    assert model.intercept_ == 0
    assert squares(model, {"x": ORIGIN["x"]}, ORIGIN["y"]) == pytest.approx(1.928571, abs=5e-7)


@pytest.mark.parametrize(
    ("degree", "weights", "training", "kept"),
    [
        (1, [11 / 5, -1 / 10], 18.7, 46.33),
        (2, [2 / 35, -1 / 10, 15 / 14], 92 / 35, 0.58),
        (4, [1, 3 / 4, -23 / 24, -1 / 4, 11 / 24], 0.0, 440.5),
    ],
)
def test_M0_6_under_and_overfitting_from_one_tally(degree, weights, training, kept):
    model = tb.LinearRegression(4, estimate="mle").fit(X, Y).reestimate(degree=degree)
    assert [model.intercept_, *model.coef_] == pytest.approx(weights, abs=1e-12)
    assert squares(model, X, Y) == pytest.approx(training, abs=1e-12)
    assert squares(model, KEPT_X, KEPT_Y) / 2 == pytest.approx(kept, abs=5e-3)


@pytest.mark.slow
def test_M0_7_bias_falls_and_variance_rises_with_the_degree():
    """D11 refitted on 1,000 draws of noise: their sum is least at the parabola that is true."""
    rng = np.random.default_rng(0)
    draws = X[:, 0] ** 2 + rng.normal(size=(1000, 5))
    at = np.array([[-1.5], [0.5], [1.5]])
    model = tb.LinearRegression(4, estimate="mle").fit(X, draws.T)  # a thousand targets of the same inputs
    bias, variance = [], []
    for degree in (1, 2, 3, 4):
        told = model.reestimate(degree=degree).predict(at)
        bias.append(float(((told.mean(axis=1) - at[:, 0] ** 2) ** 2).mean()))
        variance.append(float(told.var(axis=1).mean()))
    assert bias[0] > 0.5
    assert max(bias[1:]) < 0.01
    assert variance == sorted(variance)
    assert int(np.argmin(np.add(bias, variance))) == 1


@pytest.mark.parametrize(("decay", "slope"), [(0, 29 / 14), (1, 29 / 15), (14, 29 / 28), (1e15, 0.0)])
def test_M0_10_E_M8_weight_decay_through_the_origin(decay, slope):
    model = tb.LinearRegression(estimate="map", prior=decay, intercept=False).fit(ORIGIN, "y")
    assert model.coef_ == pytest.approx([slope], abs=1e-12)


def test_M0_10_bayes_where_the_noise_is_known():
    """w ~ N(w_MAP, σ²/(14 + λ)); the predictive variance at x = 2 is 1 + 4/15 for σ² = λ = 1."""
    certain = 1e15  # rows by which the noise is known
    prior = tb.LinearNormalInverseGamma([0.0], [[1.0]], certain, certain, strength=None)
    model = tb.LinearRegression(prior=prior, intercept=False).fit(ORIGIN, "y")
    posterior = model.posterior_["y"]
    assert posterior.mean().slope == pytest.approx([29 / 15], rel=1e-12)
    assert posterior.precision == pytest.approx(np.array([[15.0]]), rel=1e-12)
    told = model.predictive({"x": [2.0]})
    assert told.std() ** 2 == pytest.approx([1 + 4 / 15], rel=1e-9)
    assert told.mean() == pytest.approx([58 / 15], rel=1e-12)


@pytest.mark.parametrize(
    ("decay", "training", "kept"), [(0, 0.0, 440.5), (1, 0.371395, 195.866), (100, 2.212855, 44.659)]
)
def test_M0_10_weight_decay_of_a_polynomial(decay, training, kept):
    model = tb.LinearRegression(4, estimate="map", prior=decay).fit(X, Y)
    assert squares(model, X, Y) == pytest.approx(training, abs=5e-7)
    assert squares(model, KEPT_X, KEPT_Y) / 2 == pytest.approx(kept, abs=5e-4)
