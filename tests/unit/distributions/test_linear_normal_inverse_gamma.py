"""The belief about a line, against Bayes' rule for all its weights at once, SciPy's densities and integration."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.errors import PriorError

RNG = np.random.default_rng(5)
ROWS = np.c_[RNG.normal(3, 2, (12, 2)), RNG.normal(size=12)]
ROWS[:, 2] += 1.5 * ROWS[:, 0] - 0.5 * ROWS[:, 1] + 4
PRECISION = np.array([[2.0, 0.6], [0.6, 1.0]])
PRIORS = {
    "level": tb.LinearNormalInverseGamma(
        [1.0, -1.0], PRECISION, 2.5, 1.5, intercept_location=2.0, strength=0.7, input_center=[1.0, 3.0]
    ),
    "origin": tb.LinearNormalInverseGamma([1.0, -1.0], PRECISION, 2.5, 1.5, strength=None),
    "decay": tb.LinearNormalInverseGamma([0.0, 0.0], 0.3 * np.eye(2), 3, 2, strength=0.1, input_center=[2.0, 2.0]),
}


def whole(belief):
    """Mean and precision of (level, *slopes), or of the slopes alone where the line goes through the origin."""
    if belief.strength is None:
        return belief.location, belief.precision
    precision = np.zeros((3, 3))
    precision[0, 0], precision[1:, 1:] = belief.strength, belief.precision
    return np.r_[belief.intercept_location, belief.location], precision


def design(belief, x):
    moved = x - belief.input_center
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
    intercept = 0.0 if name == "origin" else weights[0] - slope @ prior.input_center
    found = posterior.mean()
    np.testing.assert_allclose(found.slope, slope, rtol=1e-10)
    assert found.intercept == pytest.approx(intercept, rel=1e-10, abs=1e-10)
    assert found.variance == pytest.approx(scale / (prior.shape + 6 - 1), rel=1e-10)
    assert found.std == pytest.approx(np.sqrt(found.variance))
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
            level = intercept + np.dot(slope, prior.input_center)
            expected += stats.norm.logpdf(level, prior.intercept_location, np.sqrt(variance / prior.strength))
        assert prior.log_prob(LinearParameters(slope, intercept, variance)) == pytest.approx(expected, rel=1e-12)
    assert prior.log_prob(LinearParameters([0.0, 0.0], 0.0, 0.0)) == -np.inf


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
    np.testing.assert_allclose(half.precision_cholesky @ half.precision_cholesky.T, prior.precision / 2)
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
    with pytest.raises(
        PriorError, match=r"strength of LinearNormalInverseGamma is -1.0; expected finite numbers of at least 0"
    ):
        tb.LinearNormalInverseGamma([0.0], [[1.0]], 1, 1, strength=-1.0)
    with pytest.raises(PriorError, match="shape"):
        PRIORS["level"].update(moments(ROWS[:, :2]))


def make(group=None):
    """Beliefs about the lines of three groups, or of one of them."""
    rng = np.random.default_rng(11)
    a = rng.normal(size=(3, 2, 2))
    parts = {
        "location": rng.normal(size=(3, 2)),
        "precision": a @ np.swapaxes(a, -1, -2) + 0.2 * np.eye(2),
        "shape": np.array([0.8, 2.0, 7.0]),
        "scale": np.array([1.0, 3.0, 0.4]),
        "intercept_location": np.array([0.0, -2.0, 5.0]),
        "strength": np.array([0.3, 1.0, 4.0]),
        "input_center": rng.normal(size=(3, 2)),
    }
    return tb.LinearNormalInverseGamma(**{name: part if group is None else part[group] for name, part in parts.items()})


def test_beliefs_about_several_lines_are_those_about_each():
    every, x = make(), np.array([[0.0, 1.0], [2.0, -3.0], [0.5, 0.5], [9.0, 1.0]])
    point = LinearParameters(np.array([0.3, -0.2]), 0.4, 0.8)
    three = tb.MultivariateGaussian().collect(np.r_[ROWS, ROWS[:5] + 1], np.r_[np.repeat([0, 1], 6), [2] * 5], 3)
    after = every.update(three)
    for group in range(3):
        one = make(group)
        rows = (ROWS[:6], ROWS[6:], ROWS[:5] + 1)[group]
        for together, alone in (
            (every.mean(), one.mean()),
            (every.mode(), one.mode()),
            (every.interval(0.7).low, one.interval(0.7).low),
            (every.interval(0.7).high, one.interval(0.7).high),
            (after.mean(), one.update(moments(rows)).mean()),
            (after.interval().low, one.update(moments(rows)).interval().low),
        ):
            for part, expected in zip(together, alone, strict=True):
                np.testing.assert_allclose(part[group], expected, rtol=1e-10)
        np.testing.assert_allclose(every.leverage(x)[:, group], one.leverage(x), rtol=1e-12)
        np.testing.assert_allclose(every.at(x)[:, group], one.at(x), rtol=1e-12)
        assert every.log_prob(point)[group] == pytest.approx(one.log_prob(point), rel=1e-12)
        assert every.log_evidence(three)[group] == pytest.approx(one.log_evidence(moments(rows)), rel=1e-12)
        assert every.column(0).strength[group] == pytest.approx(float(one.column(0).strength), rel=1e-12)
        assert every.column(1).location[group] == one.location[1]


def test_draws_of_several_lines_are_of_each():
    drawn, every = make().sample((4, 5000), random_state=1), make()
    assert drawn.slope.shape == (4, 5000, 3, 2)
    assert drawn.intercept.shape == drawn.variance.shape == (4, 5000, 3)
    low, high = every.interval(0.6)
    for part, below, above in zip(drawn, low, high, strict=True):
        np.testing.assert_allclose((part < below).mean(axis=(0, 1)), 0.2, atol=0.016)
        np.testing.assert_allclose((part > above).mean(axis=(0, 1)), 0.2, atol=0.016)
    one = PRIORS["level"].sample(random_state=2)
    assert one.slope.shape == (2,)
    assert isinstance(one.intercept, float)


@pytest.mark.parametrize("factor", [1.0, 1e-6, 1e6])
def test_a_precision_has_a_lower_root(factor):
    turn = np.random.default_rng(2).normal(size=(4, 3, 3))
    precision = factor * (turn @ np.swapaxes(turn, -1, -2))
    precision = (precision + np.swapaxes(precision, -1, -2)) / 2
    found = tb.LinearNormalInverseGamma(np.zeros(3), precision, 2, 1, strength=1.0)
    np.testing.assert_allclose(
        found.precision_cholesky @ np.swapaxes(found.precision_cholesky, -1, -2),
        precision,
        rtol=1e-9,
        atol=1e-12 * factor,
    )
    np.testing.assert_array_equal(np.triu(found.precision_cholesky, 1), 0)
    assert not found.improper
    for wrong in ([[1.0, 1.2], [1.2, 1.0]], [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.2]]):
        with pytest.raises(PriorError, match="without negative eigenvalues"):
            tb.LinearNormalInverseGamma(np.zeros(len(wrong)), factor * np.array(wrong), 2, 1)
    with pytest.raises(PriorError, match="symmetric"):
        tb.LinearNormalInverseGamma([0.0, 0.0], factor * np.array([[1.0, 0.5], [0.501, 1.0]]), 2, 1)


@pytest.mark.parametrize(
    "flat", [[[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]], np.ones((3, 3)), np.diag([1.0, 0.0, 2.0])]
)
def test_what_is_not_known_of_some_direction_is_a_limit(flat):
    found = tb.LinearNormalInverseGamma(np.zeros(3), flat, 2, 1, strength=1.0)
    assert found.improper
    np.testing.assert_allclose(found.precision_cholesky @ found.precision_cholesky.T, flat, atol=1e-12)


def test_a_line_in_one_input_is_a_sum_by_hand():
    prior = tb.LinearNormalInverseGamma([1.0], [[2.0]], 3, 4, intercept_location=1.0, strength=0.5, input_center=[2.0])
    # level ~ N(1, 2 σ²) at 2, slope ~ N(1, σ²/2): the intercept is level − 2·slope
    assert prior.leverage(np.array([[5.0]]))[0] == pytest.approx(2 + 9 / 2)
    assert prior.at(np.array([[5.0]]))[0] == pytest.approx(4.0)
    low, high = prior.interval(0.9)
    reference = stats.t(6, -1.0, np.sqrt(4 / 3 * (2 + 4 / 2)))
    assert (low.intercept, high.intercept) == pytest.approx(reference.interval(0.9), rel=1e-10)
    assert (low.variance, high.variance) == pytest.approx(stats.invgamma(3, scale=4).interval(0.9), rel=1e-10)
    slope = stats.t(6, 1.0, np.sqrt(4 / 3 / 2))
    assert (low.slope[0], high.slope[0]) == pytest.approx(slope.interval(0.9), rel=1e-10)


def test_no_rows_leave_everything_as_it_was():
    for prior in (*PRIORS.values(), tb.LinearNormalInverseGamma([1.0, 2.0], np.eye(2), 2, 1)):
        after = prior.update(moments(ROWS[:0]))
        np.testing.assert_allclose(after.location, prior.location, rtol=1e-15)
        np.testing.assert_allclose(after.precision, prior.precision, rtol=1e-14)
        assert after.mean().intercept == pytest.approx(prior.mean().intercept, rel=1e-14)
        assert float(after.scale) == float(prior.scale)
        assert float(after.shape) == float(prior.shape)


@pytest.mark.parametrize(("shape", "expected"), [(0.5, np.inf), (1.0, np.inf), (1.5, 6.0), (2.0, 3.0), (4.0, 1.0)])
def test_the_expected_noise_is_finite_above_a_shape_of_1(shape, expected):
    assert tb.LinearNormalInverseGamma([0.0], [[1.0]], shape, 3.0).mean().variance == expected


@pytest.mark.parametrize(
    "name", ["location", "precision", "shape", "scale", "intercept_location", "strength", "input_center"]
)
def test_one_number_by_group_makes_a_belief_by_group(name):
    every, first = make(), make(0)
    mixed = first.replace(precision_cholesky=None, **{name: getattr(every, name)})
    x, line = (
        np.array([[0.5, 2.0], [1.0, -1.0], [0.0, 0.0], [3.0, 3.0]]),
        LinearParameters(np.array([0.3, -0.2]), 0.4, 0.8),
    )
    assert mixed.mean().slope.shape == (3, 2)
    assert mixed.mean().intercept.shape == mixed.mode().variance.shape == (3,)
    assert mixed.leverage(x).shape[0] == 4
    assert mixed.sample(5, random_state=0).slope.shape == (5, 3, 2)
    assert mixed.interval().low.slope.shape == (3, 2)
    for group in range(3):
        one = first.replace(precision_cholesky=None, **{name: getattr(make(group), name)})
        for part, expected in zip(mixed.mode(), one.mode(), strict=True):
            np.testing.assert_allclose(part[group], expected, rtol=1e-12)
        for part, expected in zip(mixed.interval().high, one.interval().high, strict=True):
            np.testing.assert_allclose(part[group], expected, rtol=1e-12)
        np.testing.assert_allclose(np.broadcast_to(mixed.leverage(x), (4, 3))[:, group], one.leverage(x), rtol=1e-12)
        np.testing.assert_allclose(np.broadcast_to(mixed.at(x), (4, 3))[:, group], one.at(x), rtol=1e-12)
        assert np.broadcast_to(mixed.log_prob(line), 3)[group] == pytest.approx(one.log_prob(line), rel=1e-12)


def test_lines_go_through_the_origin_as_far_as_is_known():
    belief = tb.LinearNormalInverseGamma([2.0], [[1.0]], 2, 1)
    assert belief.mean().intercept == 0.0
    assert belief.at(np.array([[0.0], [3.0]])).tolist() == [0.0, 6.0]


def test_one_of_several_precisions_that_is_not_symmetric_is_refused():
    with pytest.raises(PriorError, match="symmetric"):
        tb.LinearNormalInverseGamma([0.0, 0.0], [np.eye(2), [[1.0, 0.5], [0.2, 1.0]], np.eye(2)], 2, 1)


@pytest.mark.parametrize("name", PRIORS)
def test_rows_may_be_light(name):
    family, prior = tb.MultivariateGaussian(), PRIORS[name]
    half = family.collect(ROWS[:3], weight=np.full(3, 0.25))
    steps = prior.update(half).update(half).update(half).update(half)
    once = prior.update(moments(ROWS[:3]))
    for part, expected in zip(steps.mean(), once.mean(), strict=True):
        np.testing.assert_allclose(np.reshape(part, np.shape(expected)), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(steps.leverage(ROWS[:2, :2])[:, 0], once.leverage(ROWS[:2, :2]), rtol=1e-9)
