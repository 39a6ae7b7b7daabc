"""The belief about a line, against Bayes' rule for all its weights at once, SciPy's densities and integration."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.beliefs.linear_normal_inverse_gamma import Line
from tallybayes.errors import PriorError

RNG = np.random.default_rng(5)
ROWS = np.c_[RNG.normal(3, 2, (12, 2)), RNG.normal(size=12)]
ROWS[:, 2] += 1.5 * ROWS[:, 0] - 0.5 * ROWS[:, 1] + 4
PRECISION = np.array([[2.0, 0.6], [0.6, 1.0]])
PRIORS = {
    "level": tb.LinearNormalInverseGamma([1.0, -1.0], PRECISION, 2.5, 1.5, level=2.0, strength=0.7, centre=[1.0, 3.0]),
    "origin": tb.LinearNormalInverseGamma([1.0, -1.0], PRECISION, 2.5, 1.5, strength=None),
    "decay": tb.LinearNormalInverseGamma([0.0, 0.0], 0.3 * np.eye(2), 3, 2, strength=0.1, centre=[2.0, 2.0]),
}


def whole(belief):
    """Mean and precision of (level, *slopes), or of the slopes alone where the line goes through the origin."""
    if belief.strength is None:
        return belief.location, belief.precision
    precision = np.zeros((3, 3))
    precision[0, 0], precision[1:, 1:] = belief.strength, belief.precision
    return np.r_[belief.level, belief.location], precision


def design(belief, x):
    moved = x - belief.centre
    return moved if belief.strength is None else np.c_[np.ones(len(x)), moved]


def moments(rows=ROWS):
    return tb.Moments.of(rows, full=True)


@pytest.mark.parametrize("name", PRIORS)
def test_updates_are_those_of_all_weights_at_once(name):
    prior = PRIORS[name]
    mean, precision = whole(prior)
    X, y = design(prior, ROWS[:, :2]), ROWS[:, 2]
    after = precision + X.T @ X
    weights = np.linalg.solve(after, precision @ mean + X.T @ y)
    scale = prior.scale + 0.5 * (y @ y + mean @ precision @ mean - weights @ after @ weights)
    posterior = prior.update(moments())
    slope = weights[-2:]
    intercept = 0.0 if name == "origin" else weights[0] - slope @ prior.centre
    found = posterior.mean()
    np.testing.assert_allclose(found.slope, slope, rtol=1e-10)
    assert found.intercept == pytest.approx(intercept, rel=1e-10, abs=1e-10)
    assert found.variance == pytest.approx(scale / (prior.shape + 6 - 1), rel=1e-10)
    assert found.deviation == pytest.approx(np.sqrt(found.variance))
    assert posterior.mode().variance == pytest.approx(scale / (prior.shape + 6 + 1 + len(mean) / 2), rel=1e-10)
    np.testing.assert_allclose(posterior.mode().slope, slope, rtol=1e-10)
    # how sure the line is, at any inputs
    x = np.array([[0.0, 0.0], [3.0, 3.0], [10.0, -5.0]])
    at = design(prior, x)
    np.testing.assert_allclose(
        posterior.leverage(x), np.einsum("ni,ni->n", at, np.linalg.solve(after, at.T).T), rtol=1e-9
    )
    np.testing.assert_allclose(posterior.at(x), at @ weights, rtol=1e-10)


@pytest.mark.parametrize("name", PRIORS)
def test_the_evidence_is_a_t_of_all_rows(name):
    prior = PRIORS[name]
    mean, precision = whole(prior)
    X, y = design(prior, ROWS[:, :2]), ROWS[:, 2]
    spread = (np.eye(12) + X @ np.linalg.solve(precision, X.T)) * prior.scale / prior.shape
    expected = stats.multivariate_t.logpdf(y, X @ mean, spread, df=2 * prior.shape)
    assert prior.log_evidence(moments()) == pytest.approx(expected, rel=1e-10)
    assert prior.log_evidence(moments(ROWS[:0])) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", PRIORS)
def test_densities_are_scipys(name):
    prior = PRIORS[name]
    for slope, intercept, variance in [([0.3, -0.2], 0.0, 0.8), ([1.0, -1.0], 5.0, 2.0)]:
        expected = stats.invgamma.logpdf(variance, prior.shape, scale=prior.scale)
        covariance = variance * np.linalg.inv(prior.precision)
        expected += stats.multivariate_normal.logpdf(slope, prior.location, covariance)
        if prior.strength is not None:
            level = intercept + np.dot(slope, prior.centre)
            expected += stats.norm.logpdf(level, prior.level, np.sqrt(variance / prior.strength))
        assert prior.log_prob(Line(slope, intercept, variance)) == pytest.approx(expected, rel=1e-12)
    assert prior.log_prob(Line([0.0, 0.0], 0.0, 0.0)) == -np.inf


@pytest.mark.parametrize("name", PRIORS)
def test_intervals_hold_their_share_of_draws(name):
    belief = PRIORS[name].update(moments())
    drawn = belief.sample(20_000, random_state=0)
    low, high = belief.interval(0.8)
    assert drawn.slope.shape == (20_000, 2)
    parts = zip(drawn, low, high, strict=True)
    for place, (part, below, above) in enumerate(parts):
        if place == 1 and name == "origin":
            assert below == above == 0  # the intercept is known
            continue
        np.testing.assert_allclose((part < below).mean(axis=0), 0.1, atol=0.01)
        np.testing.assert_allclose((part > above).mean(axis=0), 0.1, atol=0.01)
    spread = np.linalg.inv(belief.precision)
    np.testing.assert_allclose(np.cov(drawn.slope.T) / drawn.variance.mean(), spread, atol=0.05 * spread.max())


def test_one_slope_of_several():
    belief = PRIORS["level"]
    found = belief.column(1)
    assert isinstance(found, tb.NormalInverseGamma)
    assert float(found.location) == -1.0
    assert float(found.strength) == pytest.approx(1 / np.linalg.inv(PRECISION)[1, 1])
    assert float(found.shape) == 2.5
    low, high = belief.interval(0.5)
    single = found.interval(0.5)
    assert (single.low.mean, single.high.mean) == pytest.approx((low.slope[1], high.slope[1]))


def test_what_it_is_worth_is_scaled():
    prior, half = PRIORS["level"], PRIORS["level"].scaled(0.5)
    assert half.mean().slope.tolist() == prior.mean().slope.tolist()
    np.testing.assert_allclose(half.precision, prior.precision / 2)
    np.testing.assert_allclose(half.root @ half.root.T, prior.precision / 2)
    assert (float(half.shape), float(half.scale), float(half.strength)) == (1.25, 0.75, 0.35)
    assert PRIORS["origin"].scaled(3.0).strength is None
    np.testing.assert_allclose(half.leverage(np.ones((1, 2))), 2 * prior.leverage(np.ones((1, 2))))


def test_groups_are_beliefs_of_their_own():
    prior = PRIORS["level"]
    both = tb.MultivariateGaussian().collect(np.r_[ROWS, ROWS + 1], np.repeat([0, 1], 12), 2)
    found = prior.update(both)
    for group, rows in enumerate((ROWS, ROWS + 1)):
        alone = prior.update(moments(rows))
        np.testing.assert_allclose(found.mean().slope[group], alone.mean().slope, rtol=1e-12)
        np.testing.assert_allclose(found.mean().intercept[group], alone.mean().intercept, rtol=1e-12)
        np.testing.assert_allclose(found.at(ROWS[:3, :2])[:, group], alone.at(ROWS[:3, :2]), rtol=1e-12)
        np.testing.assert_allclose(found.leverage(ROWS[:3, :2])[:, group], alone.leverage(ROWS[:3, :2]), rtol=1e-12)
        assert prior.log_evidence(both)[group] == pytest.approx(prior.log_evidence(moments(rows)))


def test_limits_need_data():
    flat = tb.LinearNormalInverseGamma([0.0, 0.0], np.zeros((2, 2)), 1, 1)
    assert flat.improper
    for ask in (flat.interval, flat.sample, lambda: flat.log_evidence(moments()), lambda: flat.log_prob(flat.mean())):
        with pytest.raises(PriorError, match="improper"):
            ask()
    found = flat.update(moments())
    assert not found.improper
    least = np.linalg.lstsq(np.c_[np.ones(12), ROWS[:, :2]], ROWS[:, 2], rcond=None)[0]
    np.testing.assert_allclose([found.mean().intercept, *found.mean().slope], least, rtol=1e-9)
    assert PRIORS["level"].mean().variance == pytest.approx(1.5 / 1.5)
    assert tb.LinearNormalInverseGamma([0.0], [[1.0]], 1, 1).mean().variance == np.inf
    assert not PRIORS["origin"].improper
    assert tb.LinearNormalInverseGamma([0.0], [[1.0]], 1, 1).improper  # nothing is known of the level


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (([0.0], [[1.0]], 0, 1), "shape"),
        (([0.0], [[1.0]], 1, -1), "scale"),
        (([0.0], [1.0], 1, 1), "shape"),
        ((0.0, [[1.0]], 1, 1), "shape"),
        (([0.0], np.eye(2), 1, 1), "shape"),
        (([np.inf], [[1.0]], 1, 1), "finite"),
        (([0.0, 0.0], [[1.0, 0.5], [0.2, 1.0]], 1, 1), "symmetric"),
        (([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], 1, 1), "negative eigenvalue"),
        (([0.0, 0.0], [[-1.0, 0.0], [0.0, 1.0]], 1, 1), "negative eigenvalue"),
    ],
)
def test_what_is_no_belief_is_refused(parts, text):
    with pytest.raises(PriorError, match=text):
        tb.LinearNormalInverseGamma(*parts)


def test_a_strength_below_zero_and_rows_of_other_columns_are_refused():
    with pytest.raises(PriorError, match="strength of at least 0"):
        tb.LinearNormalInverseGamma([0.0], [[1.0]], 1, 1, strength=-1.0)
    with pytest.raises(PriorError, match="shape"):
        PRIORS["level"].update(moments(ROWS[:, :2]))
