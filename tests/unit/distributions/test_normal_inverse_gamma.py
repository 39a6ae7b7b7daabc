"""Normal-inverse-gamma beliefs, plain and with shared variances, against scipy.stats and numerical optimization."""

import numpy as np
import pytest
from scipy import optimize, stats

import tallybayes as tb
from tallybayes.errors import PriorError

CASES = [(0, 1, 2, 3), (-3.5, 0.01, 1.5, 40), (1e6, 50, 400, 2), (2, 7, 0.4, 0.1)]


def scipy_log_density(mean, variance, location, strength, shape, scale):
    """The joint density of means that share one variance."""
    normal = stats.norm.logpdf(mean, location, np.sqrt(variance / np.asarray(strength)))
    return np.sum(normal) + stats.invgamma.logpdf(variance, shape, scale=scale)


@pytest.mark.parametrize("parameters", CASES)
def test_density_mean_and_interval_are_scipys(parameters):
    belief = tb.NormalInverseGamma(*parameters)
    location, strength, shape, scale = parameters
    spread = np.sqrt(scale / shape / strength)
    for gap in (-2, 0, 0.7):
        for factor in (0.3, 1, 5):
            mean, variance = location + gap * spread, scale / shape * factor
            expected = scipy_log_density(mean, variance, *parameters)
            assert belief.log_prob((mean, variance)) == pytest.approx(expected, rel=1e-10)
    assert belief.mean().mean == location
    expected = stats.invgamma.mean(shape, scale=scale) if shape > 1 else np.inf
    assert belief.mean().variance == pytest.approx(expected, rel=1e-12)
    for mass in (0.5, 0.95):
        low, high = belief.interval(mass)
        marginal = stats.t(2 * shape, location, spread)
        assert (low.mean, high.mean) == pytest.approx(marginal.interval(mass), rel=1e-9)
        variances = stats.invgamma.interval(mass, shape, scale=scale)
        assert (low.variance, high.variance) == pytest.approx(variances, rel=1e-9)


def test_density_integrates_to_one():
    belief = tb.NormalInverseGamma(0.3, 2, 3, 2)
    # σ² = exp(u), μ = 0.3 + σ z: a smooth integrand that dies out quickly, so the trapezoid rule is exact
    u, z = np.linspace(-6, 12, 721)[:, None], np.linspace(-8, 8, 321)
    variance = np.exp(u) + 0 * z
    mean = 0.3 + np.sqrt(variance) * z
    density = np.exp(belief.log_prob((mean, variance))) * variance * np.sqrt(variance)
    assert density.sum() * (u[1, 0] - u[0, 0]) * (z[1] - z[0]) == pytest.approx(1, abs=1e-8)


def test_no_density_without_variance():
    belief = tb.NormalInverseGamma([0, 0, 0], 1, 2, 3)
    np.testing.assert_array_equal(belief.log_prob(([0, 1, 0], [0, -1, 1])) > -np.inf, [False, False, True])


SHARED = {
    (): ((2, 3), (2, 3)),
    ("groups",): ((1, 3), (3,)),
    ("columns",): ((2, 1), (2,)),
    ("groups", "columns"): ((1, 1), ()),
}


def shared_belief(shared):
    rng = np.random.default_rng(4)
    size = SHARED[shared][0]
    return tb.NormalInverseGamma(
        rng.normal(size=(2, 3)), rng.uniform(0.5, 3, (2, 3)), rng.uniform(1.5, 4, size), rng.uniform(1, 5, size),
        tied_over=shared,
    )  # fmt: skip


def cells_of(shared):
    """For every variance: the index of its results, and of the means that share it."""
    if shared == ():
        return [((g, j), (slice(g, g + 1), slice(j, j + 1))) for g in range(2) for j in range(3)]
    if shared == ("groups",):
        return [((j,), (slice(None), slice(j, j + 1))) for j in range(3)]
    if shared == ("columns",):
        return [((g,), (slice(g, g + 1), slice(None))) for g in range(2)]
    return [((), (slice(None), slice(None)))]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("shared", SHARED)
def test_shared_density_and_mode(shared):
    belief = shared_belief(shared)
    rng = np.random.default_rng(5)
    mean = rng.normal(size=(2, 3))
    variance = np.broadcast_to(rng.uniform(0.5, 2, SHARED[shared][0]), (2, 3))
    density = belief.log_prob((mean, variance))
    assert np.shape(density) == SHARED[shared][1]
    mode = belief.mode()
    for index, cells in cells_of(shared):
        parts = [np.broadcast_to(p, (2, 3))[cells] for p in (belief.location, belief.strength)]
        last = [np.broadcast_to(p, (2, 3))[cells].flat[0] for p in (belief.shape, belief.scale)]
        expected = scipy_log_density(mean[cells], variance[cells].flat[0], *parts, *last)
        assert np.asarray(density)[index] == pytest.approx(expected, rel=1e-11)

        def cost(free, parts=parts, last=last):
            return -scipy_log_density(free[:-1].reshape(parts[0].shape), np.exp(free[-1]), *parts, *last)

        start = np.append(parts[0].ravel() + 0.1, 0.0)
        found = optimize.minimize(cost, start, tol=1e-9).x
        np.testing.assert_allclose(mode.mean[cells].ravel(), found[:-1], atol=1e-4)
        np.testing.assert_allclose(mode.variance[cells], np.exp(found[-1]), rtol=1e-4)


@pytest.mark.parametrize("shared", SHARED)
def test_density_of_many_parameters_at_once(shared):
    belief = shared_belief(shared)
    draws = belief.sample(4, random_state=0)
    together = belief.log_prob(draws)
    assert together.shape == (4, *SHARED[shared][1])
    for i in range(4):
        np.testing.assert_allclose(together[i], belief.log_prob((draws.mean[i], draws.variance[i])), rtol=1e-14)


def test_variances_that_differ_where_they_are_shared():
    belief = shared_belief(("groups",))
    with pytest.raises(PriorError, match="differ along the shared groups"):
        belief.log_prob((np.zeros((2, 3)), np.arange(1.0, 7).reshape(2, 3)))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("shared", SHARED)
def test_samples_follow_the_belief(shared):
    belief = shared_belief(shared)
    draws = belief.sample(3000, random_state=1)
    assert draws.mean.shape == draws.variance.shape == (3000, 2, 3)
    location, strength, shape, scale = (
        np.broadcast_to(p, (2, 3)) for p in (belief.location, belief.strength, belief.shape, belief.scale)
    )
    for g, j in np.ndindex(2, 3):
        variance = stats.invgamma(shape[g, j], scale=scale[g, j])
        mean = stats.t(2 * shape[g, j], location[g, j], np.sqrt(scale[g, j] / shape[g, j] / strength[g, j]))
        assert stats.kstest(draws.variance[:, g, j], variance.cdf).pvalue > 1e-3
        assert stats.kstest(draws.mean[:, g, j], mean.cdf).pvalue > 1e-3
    for _, cells in cells_of(shared):  # one draw of the variance for all that share it, and means apart
        variances = draws.variance[(slice(None), *cells)].reshape(3000, -1)
        np.testing.assert_array_equal(variances, np.broadcast_to(variances[:, :1], variances.shape))
    assert len(np.unique(draws.mean[0])) == 6


def test_from_mean_states_mean_variance_and_rows():
    belief = tb.NormalInverseGamma.from_mean([5.0, -1.0], [4.0, 0.5], 6)
    np.testing.assert_allclose(belief.mean().mean, [5, -1])
    np.testing.assert_allclose(belief.mean().variance, [4, 0.5])
    np.testing.assert_array_equal(belief.strength, 6)
    for strength in (2, 0, -1, np.nan):
        with pytest.raises(PriorError, match=r"strength of .* is .*; expected numbers above 2"):
            tb.NormalInverseGamma.from_mean(0, 1, strength)
    with pytest.raises(PriorError, match=r"scale of .*; expected finite numbers above 0"):
        tb.NormalInverseGamma.from_mean(0, 0, 5)


@pytest.mark.parametrize(
    "parameters", [(0, 0, 1, 1), (0, 1, -1, 1), (0, 1, 1, np.nan), (np.inf, 1, 1, 1), (0, [1, 0], 1, 1)]
)
def test_parameters_are_checked(parameters):
    with pytest.raises(PriorError, match=r"of NormalInverseGamma is .*; expected"):
        tb.NormalInverseGamma(*parameters)


def test_arrays_equal_a_loop_over_numbers():
    belief = shared_belief(())
    parts = [np.broadcast_to(p, (2, 3)) for p in (belief.location, belief.strength, belief.shape, belief.scale)]
    for g, j in np.ndindex(2, 3):
        one = tb.NormalInverseGamma(*(p[g, j] for p in parts))
        for question in ("mean", "mode"):
            both = getattr(belief, question)()
            assert (both.mean[g, j], both.variance[g, j]) == getattr(one, question)()
        assert belief.interval(0.8).low.mean[g, j] == one.interval(0.8).low.mean
        assert belief.column(j).mode().variance[g] == one.mode().variance


def test_column_of_a_shared_belief_is_its_marginal():
    tied = shared_belief(("columns",))
    one = tied.column(1)
    low, high = tied.interval(0.9)
    np.testing.assert_allclose(one.interval(0.9).low.mean, low.mean[:, 1])
    np.testing.assert_allclose(one.interval(0.9).high.variance, high.variance[:, 1])


@pytest.mark.parametrize("shared", SHARED)
def test_update_by_brute_force(shared):
    """The posterior density is prior × likelihood, up to one constant, at every parameter."""
    rng = np.random.default_rng(6)
    belief = shared_belief(shared)
    rows, groups = rng.normal(1, 2, size=(9, 3)), np.array([0, 1] * 4 + [0])
    family = {
        (): tb.Gaussian(), ("groups",): tb.TiedGaussian(), ("columns",): tb.SphericalGaussian(),
        ("groups", "columns"): tb.TiedSphericalGaussian(),
    }[shared]  # fmt: skip
    statistics = tb.fit_distribution(rows, family, group=groups).statistics
    posterior = belief.update(statistics)
    ratios = []
    for _ in range(4):
        mean = rng.normal(size=(2, 3))
        variance = np.broadcast_to(rng.uniform(0.5, 4, SHARED[shared][0]), (2, 3))
        likelihood = np.zeros((2, 3))
        for row, g in zip(rows, groups, strict=True):
            likelihood[g] += stats.norm.logpdf(row, mean[g], np.sqrt(variance[g]))
        summed = np.array([likelihood[cells].sum() for _, cells in cells_of(shared)]).reshape(SHARED[shared][1])
        ratios.append(belief.log_prob((mean, variance)) + summed - posterior.log_prob((mean, variance)))
    for ratio in ratios:  # the constant is the evidence
        np.testing.assert_allclose(ratio, belief.log_evidence(statistics), rtol=1e-11)


@pytest.mark.parametrize(("shape", "expected"), [(0.5, np.inf), (1.0, np.inf), (1.5, 6.0), (2.0, 3.0), (4.0, 1.0)])
def test_the_expected_variance_is_finite_above_a_shape_of_1(shape, expected):
    assert tb.NormalInverseGamma(0, 1, shape, 3.0).mean().variance == expected


def test_deviations_are_roots_of_variances():
    assert tb.NormalInverseGamma(0, 1, 2, 9.0).mean().std == 3.0
    np.testing.assert_allclose(tb.NormalInverseGamma([0, 1], 1, 2, [9.0, 4.0]).mean().std, [3, 2])


def test_worth_more_rows_all_but_the_location_grow():
    belief = shared_belief(("columns",))
    more = belief.scaled(4.0)
    np.testing.assert_array_equal(more.location, belief.location)
    for name in ("strength", "shape", "scale"):
        np.testing.assert_allclose(getattr(more, name), 4 * getattr(belief, name), rtol=1e-15)
    assert more.tied_over == ("columns",)


def test_sharing_what_is_shared_already_is_the_same():
    belief = shared_belief(("groups",))
    assert belief.tied(("groups",)) is belief
    assert belief.tied(()).tied_over == ()
    np.testing.assert_array_equal(belief.tied(()).scale, belief.scale)


@pytest.mark.parametrize("shared", SHARED)
def test_a_column_is_about_its_own_mean_and_variance(shared):
    belief = shared_belief(shared)
    location, strength, shape, scale = (
        np.broadcast_to(part, (2, 3)) for part in (belief.location, belief.strength, belief.shape, belief.scale)
    )
    for j in range(3):
        one = belief.column(j)
        assert one.tied_over == (("groups", "columns") if len(shared) == 2 else shared if shared == ("groups",) else ())
        for name, part in (("location", location), ("strength", strength), ("shape", shape), ("scale", scale)):
            np.testing.assert_array_equal(np.ravel(getattr(one, name)), part[:, j])
        assert one.location.ndim == (2 if "groups" in shared else 1)


def test_a_single_number_has_neither_groups_nor_columns():
    for shared in SHARED:
        one = tb.NormalInverseGamma(0.5, 2.0, 3.0, 4.0, tied_over=shared)
        assert one.n_means == 1
        assert one.mode().variance == pytest.approx(4 / (3 + 1 + 0.5))
        expected = scipy_log_density(1.0, 0.7, 0.5, 2.0, 3.0, 4.0)
        assert one.log_prob((1.0, 0.7)) == pytest.approx(expected, rel=1e-12)
        assert isinstance(one.sample(random_state=0).mean, float)


@pytest.mark.parametrize("shared", SHARED)
def test_no_rows_are_no_evidence(shared):
    belief = shared_belief(shared)
    empty = tb.Gaussian().collect(np.zeros((0, 3)), np.zeros(0, dtype=int), 2)
    np.testing.assert_allclose(belief.log_evidence(empty), np.zeros(SHARED[shared][1]), atol=1e-13)
    after = belief.update(empty)
    for name in ("location", "strength"):
        np.testing.assert_array_equal(getattr(after, name), getattr(belief, name))
    np.testing.assert_allclose(after.scale, belief.scale, rtol=1e-15)


def test_no_density_of_a_shared_variance_of_0():
    belief = shared_belief(("groups",))
    variance = np.array([[0.0, 1.0, -1.0]] * 2)
    found = belief.log_prob((np.zeros((2, 3)), variance))
    np.testing.assert_array_equal(np.isfinite(found), [False, True, False])


def test_draws_of_a_tiny_shape_are_finite():
    drawn = tb.NormalInverseGamma(0, 1, 1e-4, 1).sample(200, random_state=0)
    assert np.isfinite(drawn.variance).all()
    assert np.isfinite(drawn.mean).all()
    assert drawn.variance.max() > 1e100


def test_a_little_more_than_two_rows_expect_a_variance():
    belief = tb.NormalInverseGamma.from_mean(1.0, 4.0, 2.5)
    assert belief.mean().variance == pytest.approx(4.0)
    assert float(belief.shape) == 1.25
