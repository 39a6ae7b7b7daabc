"""Normal-inverse-Wishart beliefs, plain and tied, against scipy.stats and numerical optimization."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

import tallybayes as tb
from tallybayes.errors import PriorError

LOCATION = np.array([0.5, -1.0])
SCALE = np.array([[2.0, 0.7], [0.7, 1.5]])


def scipy_log_density(means, covariance, locations, strengths, freedom, scale):
    """The joint density of mean vectors that share one covariance."""
    normal = [
        stats.multivariate_normal.logpdf(mean, location, covariance / strength)
        for mean, location, strength in zip(means, locations, strengths, strict=True)
    ]
    return sum(normal) + stats.invwishart.logpdf(covariance, freedom, scale)


@pytest.mark.parametrize(("strength", "freedom"), [(1, 4), (0.01, 1.5), (30, 200)])
def test_density_and_mean_are_scipys(strength, freedom):
    belief = tb.NormalInverseWishart(LOCATION, strength, freedom, SCALE)
    for covariance in stats.invwishart.rvs(5, SCALE, size=4, random_state=0):
        mean = LOCATION + covariance[0]
        expected = scipy_log_density([mean], covariance, [LOCATION], [strength], freedom, SCALE)
        assert belief.log_prob((mean, covariance)) == pytest.approx(expected, rel=1e-11)
    np.testing.assert_array_equal(belief.mean().mean, LOCATION)
    if freedom > 3:
        np.testing.assert_allclose(belief.mean().covariance, stats.invwishart.mean(freedom, SCALE))
    else:
        assert np.isinf(belief.mean().covariance).all()


def test_one_column_is_normal_inverse_gamma():
    wishart = tb.NormalInverseWishart([0.3], 2, 5, [[3.0]])
    gamma = tb.NormalInverseGamma(0.3, 2, 2.5, 1.5)
    assert wishart.log_prob(([1.0], [[0.7]])) == pytest.approx(gamma.log_prob((1.0, 0.7)), rel=1e-13)
    assert wishart.mode().covariance[0, 0] == pytest.approx(gamma.mode().variance)
    assert wishart.mean().covariance[0, 0] == pytest.approx(gamma.mean().variance)
    rows = [[1.0], [2.5], [0.0]]
    assert wishart.log_evidence(tb.Moments.of(rows, full=True)) == pytest.approx(
        gamma.log_evidence(tb.Moments.of(rows))[0], rel=1e-13
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [1, 3])
def test_mode_is_the_maximum_of_the_joint_density(n_groups):
    locations = np.arange(2.0 * n_groups).reshape(n_groups, 2)
    strengths = np.arange(1.0, n_groups + 1)
    belief = tb.NormalInverseWishart(locations, strengths, [5.0], SCALE[None], tied_over=("groups",))

    def cost(free):
        root = np.array([[np.exp(free[-3]), 0], [free[-2], np.exp(free[-1])]])
        means = free[:-3].reshape(n_groups, 2)
        return -scipy_log_density(means, root @ root.T, locations, strengths, 5.0, SCALE)

    found = optimize.minimize(cost, np.append(locations.ravel() + 0.1, [0, 0, 0]), tol=1e-9).x
    root = np.array([[np.exp(found[-3]), 0], [found[-2], np.exp(found[-1])]])
    mode = belief.mode()
    np.testing.assert_allclose(mode.mean.ravel(), found[:-3], atol=1e-4)
    for covariance in mode.covariance:
        np.testing.assert_allclose(covariance, root @ root.T, rtol=1e-3, atol=1e-4)
    density = belief.log_prob((mode.mean, mode.covariance))
    assert density == pytest.approx(-cost(found), abs=1e-6)


def test_interval_holds_its_share_of_scipys_draws():
    belief = tb.NormalInverseWishart(LOCATION, 2, 6, SCALE)
    rng = np.random.default_rng(3)
    n = 20_000
    covariances = stats.invwishart.rvs(6, SCALE, size=n, random_state=rng)
    noise = rng.standard_normal((n, 2, 1))
    means = LOCATION + (np.linalg.cholesky(covariances / 2) @ noise)[..., 0]
    low, high = belief.interval(0.8)
    error = np.sqrt(0.1 * 0.9 / n)
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    for draws, lower, upper in ((means, low.mean, high.mean), (variances, low.variance, high.variance)):
        np.testing.assert_allclose((draws < lower).mean(axis=0), 0.1, atol=4 * error)
        np.testing.assert_allclose((draws > upper).mean(axis=0), 0.1, atol=4 * error)


def test_column_is_the_marginal():
    belief = tb.NormalInverseWishart(LOCATION, 2, 6, SCALE)
    for j in range(2):
        low, high = belief.column(j).interval(0.9)
        both = belief.interval(0.9)
        assert (low.mean, low.variance) == pytest.approx((both.low.mean[j], both.low.variance[j]))
        assert high.variance == pytest.approx(both.high.variance[j])
        assert belief.column(j).mean().variance == pytest.approx(belief.mean().covariance[j, j])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("shared", [(), ("groups",)])
def test_samples_follow_the_belief(shared):
    freedom = np.array([9.0]) if shared else np.array([9.0, 12.0])
    belief = tb.NormalInverseWishart([LOCATION, LOCATION + 1], [1.0, 4.0], freedom, SCALE, tied_over=shared)
    n = 6000
    draws = belief.sample(n, random_state=2)
    assert draws.mean.shape == (n, 2, 2)
    assert draws.covariance.shape == (n, 2, 2, 2)
    other = np.random.default_rng(8)
    for g in range(2):
        nu = np.broadcast_to(freedom, 2)[g]
        reference = stats.invwishart.rvs(nu, SCALE, size=n, random_state=other)
        for i, j in ((0, 0), (0, 1), (1, 1)):  # two samples of one distribution
            assert stats.ks_2samp(draws.covariance[:, g, i, j], reference[:, i, j]).pvalue > 1e-3
        for j in range(2):
            spread = np.sqrt(SCALE[j, j] / (nu - 1) / belief.strength[g])
            marginal = stats.t(nu - 1, belief.location[g, j], spread)
            assert stats.kstest(draws.mean[:, g, j], marginal.cdf).pvalue > 1e-3
        # a mean vector leans with its covariance
        root = np.linalg.cholesky(draws.covariance[:, g] / belief.strength[g])
        whitened = np.linalg.solve(root, (draws.mean[:, g] - belief.location[g])[..., None])[..., 0]
        np.testing.assert_allclose(np.cov(whitened.T), np.eye(2), atol=5 / np.sqrt(n))
    same = np.array_equal(draws.covariance[:, 0], draws.covariance[:, 1])
    assert same == bool(shared)


def test_density_of_many_parameters_at_once():
    belief = tb.NormalInverseWishart([LOCATION, LOCATION + 1], 1, 5, SCALE, tied_over=("groups",))
    draws = belief.sample(3, random_state=0)
    together = belief.log_prob(draws)
    assert together.shape == (3,)
    for i in range(3):
        expected = scipy_log_density(draws.mean[i], draws.covariance[i, 0], belief.location, [1, 1], 5, SCALE)
        assert together[i] == pytest.approx(expected, rel=1e-11)


def test_no_density_without_a_covariance():
    belief = tb.NormalInverseWishart([LOCATION, LOCATION], 1, 5, SCALE)
    covariances = np.array([[[1.0, 2.0], [2.0, 1.0]], np.eye(2)])
    np.testing.assert_array_equal(belief.log_prob((np.zeros((2, 2)), covariances)) > -np.inf, [False, True])


def test_covariances_that_differ_where_they_are_shared():
    belief = tb.NormalInverseWishart([LOCATION, LOCATION], 1, 5, SCALE, tied_over=("groups",))
    with pytest.raises(PriorError, match="differ along the shared groups"):
        belief.log_prob((np.zeros((2, 2)), np.stack([np.eye(2), 2 * np.eye(2)])))


@pytest.mark.parametrize("shared", [(), ("groups",)])
def test_update_by_brute_force(shared):
    """The posterior density is prior × likelihood, up to the evidence, at every parameter."""
    rng = np.random.default_rng(1)
    freedom = [5.0] if shared else [5.0, 7.0]
    belief = tb.NormalInverseWishart([LOCATION, -LOCATION], [0.5, 2.0], freedom, SCALE, tied_over=shared)
    rows, groups = rng.normal(size=(9, 2)) @ [[2, 1], [0, 1]], np.array([0, 1] * 4 + [0])
    family = tb.TiedMultivariateGaussian() if shared else tb.MultivariateGaussian()
    statistics = tb.fit_distribution(rows, family, group=groups).statistics
    posterior = belief.update(statistics)
    for _ in range(3):
        means = rng.normal(size=(2, 2))
        covariances = stats.invwishart.rvs(5, SCALE, size=2, random_state=rng)
        if shared:
            covariances[1] = covariances[0]
        likelihood = np.zeros(2)
        for row, g in zip(rows, groups, strict=True):
            likelihood[g] += stats.multivariate_normal.logpdf(row, means[g], covariances[g])
        parameter = (means, covariances)
        found = (
            belief.log_prob(parameter) + (likelihood.sum() if shared else likelihood) - posterior.log_prob(parameter)
        )
        np.testing.assert_allclose(found, belief.log_evidence(statistics), rtol=1e-11)


def test_from_mean_states_mean_covariance_and_rows():
    belief = tb.NormalInverseWishart.from_mean(LOCATION, SCALE, 6)
    np.testing.assert_allclose(belief.mean().covariance, SCALE)
    np.testing.assert_allclose(belief.mean().mean, LOCATION)
    for strength in (3, 1, -2, np.nan):
        with pytest.raises(PriorError, match="expected a number above 3, the number of columns plus 1"):
            tb.NormalInverseWishart.from_mean(LOCATION, SCALE, strength)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ((LOCATION, 0, 4, SCALE), "strength of NormalInverseWishart is 0.0; expected finite numbers above 0"),
        ((LOCATION, 1, 1, SCALE), "degrees_of_freedom of .*; expected numbers above 1"),
        ((LOCATION, 1, 4, [2.0, 1.0]), "shape"),
        ((LOCATION, 1, 4, [[2.0, 1.0, 0.0], [1.0, 2.0, 0.0]]), "shape"),
        ((LOCATION, 1, 4, [[2.0, 1.0], [0.5, 2.0]]), "symmetric"),
        ((LOCATION, 1, 4, [[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        ((LOCATION, 1, 4, [[1.0, 1.0], [1.0, 1.0]]), "positive definite"),
        ((LOCATION, 1, 4, [[0.0, 0.0], [0.0, 1.0]]), "positive definite"),
        (([np.nan, 0], 1, 4, SCALE), "finite"),
        ((LOCATION, 1, 4, [[np.inf, 0], [0, 1]]), "finite"),
    ],
)
def test_parameters_are_checked(parameters, match):
    with pytest.raises(PriorError, match=match):
        tb.NormalInverseWishart(*parameters)


@pytest.mark.parametrize("smallest", [1e-3, 1e-7, 1e-12, 1e-17, -1e-12])
def test_how_near_to_singular_is_still_definite(smallest):
    """The line is drawn at the precision of the numbers, whether or not a root already proves the point."""
    n_columns = 5
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(n_columns, n_columns)))[0]
    scale = turn @ np.diag([smallest, 1.0, 2.0, 3.0, 4.0]) @ turn.T
    scale = (scale + scale.T) / 2
    deviation = np.sqrt(np.diag(scale))
    definite = np.linalg.eigvalsh(scale / np.outer(deviation, deviation))[0] > n_columns * np.finfo(float).eps
    assert definite == (smallest > 1e-13)
    if definite:
        tb.NormalInverseWishart(np.zeros(n_columns), 1, 7, scale)
        tb.NormalInverseWishart(np.zeros(n_columns), 1, 7, np.stack([scale, np.eye(n_columns)]))
    else:
        with pytest.raises(PriorError, match="positive definite"):
            tb.NormalInverseWishart(np.zeros(n_columns), 1, 7, np.stack([np.eye(n_columns), scale]))


def test_columns_of_very_different_units_are_fine():
    scale = np.diag([1e-12, 1e12]) + np.array([[0, 0.5], [0.5, 0]])
    assert tb.NormalInverseWishart(LOCATION, 1, 4, scale).mean().covariance[0, 1] == pytest.approx(0.5)


def test_update_refuses_a_prior_of_another_shape():
    statistics = tb.Moments.of(np.random.default_rng(0).normal(size=(5, 2)), full=True)
    for prior in (
        tb.NormalInverseWishart([0, 0, 0], 1, 4, np.eye(3)),
        tb.NormalInverseWishart(LOCATION, [1, 2], 4, SCALE),
    ):
        for act in (prior.update, prior.log_evidence):
            with pytest.raises(PriorError, match="do not broadcast"):
                act(statistics)


def of_groups(group=None):
    """Beliefs about three groups of three columns, or about one of them."""
    rng = np.random.default_rng(12)
    turn = rng.normal(size=(3, 3, 3))
    scale = turn @ np.swapaxes(turn, -1, -2) + 0.3 * np.eye(3)
    scale = (scale + np.swapaxes(scale, -1, -2)) / 2
    parts = (rng.normal(size=(3, 3)), np.array([0.4, 1.0, 5.0]), np.array([2.5, 6.0, 9.0]), scale)
    return tb.NormalInverseWishart(*(part if group is None else part[group] for part in parts))


def test_beliefs_about_several_groups_are_those_about_each():
    every, rng = of_groups(), np.random.default_rng(13)
    rows, group = rng.normal(1, 2, (14, 3)), np.resize([0, 1, 2, 1], 14)
    statistics = tb.MultivariateGaussian().collect(rows, group, 3)
    after, point = every.update(statistics), (np.array([0.1, 0.5, -1.0]), np.diag([1.0, 2.0, 0.5]))
    for place in range(3):
        one, own = of_groups(place), tb.Moments.of(rows[group == place], full=True)
        for together, alone in (
            (every.mean(), one.mean()),
            (every.mode(), one.mode()),
            (every.interval(0.7).low, one.interval(0.7).low),
            (after.mean(), one.update(own).mean()),
        ):
            for part, expected in zip(together, alone, strict=True):
                np.testing.assert_allclose(part[place], expected, rtol=1e-11)
        assert every.log_prob(point)[place] == pytest.approx(one.log_prob(point), rel=1e-12)
        expected = scipy_log_density(
            [point[0]], point[1], [one.location], [one.strength], float(one.degrees_of_freedom), one.scale
        )
        assert one.log_prob(point) == pytest.approx(expected, rel=1e-11)
        assert every.log_evidence(statistics)[place] == pytest.approx(one.log_evidence(own), rel=1e-11)
        assert every.column(2).scale[place] == pytest.approx(one.scale[2, 2] / 2)
        assert after.strength[place] == one.strength + len(rows[group == place])
        np.testing.assert_allclose(after.scale[place], one.update(own).scale, rtol=1e-11)


@pytest.mark.parametrize(("freedom", "finite"), [(2.5, False), (4.0, False), (4.5, True), (5.5, True)])
def test_the_expected_covariance_is_finite_above_columns_and_one(freedom, finite):
    belief = tb.NormalInverseWishart([0, 0, 0], 1, freedom, np.diag([1.0, 2.0, 3.0]))
    found = belief.mean().covariance
    if finite:
        np.testing.assert_allclose(found, np.diag([1.0, 2.0, 3.0]) / (freedom - 4), rtol=1e-13)
    else:
        assert np.isinf(found).all()


def test_every_column_of_a_mode_has_a_deviation():
    belief = tb.NormalInverseWishart([[0, 0], [1, 1]], 1, 5, np.array([[4.0, 1.0], [1.0, 9.0]]))
    np.testing.assert_allclose(belief.mode().std, np.sqrt([[4 / 9, 1.0]] * 2), rtol=1e-14)
    tied = tb.NormalInverseWishart(
        np.zeros((3, 2)), 1, [5.0], np.array([[[4.0, 1.0], [1.0, 9.0]]]), tied_over=("groups",)
    )
    assert tied.n_means == 3
    np.testing.assert_allclose(tied.mode().covariance[1], np.array([[4.0, 1.0], [1.0, 9.0]]) / 11, rtol=1e-14)


def test_worth_more_rows_it_expects_the_same_of_every_column():
    belief = tb.NormalInverseWishart(LOCATION, 2, 6, SCALE)
    for factor in (0.5, 3.0):
        more = belief.scaled(factor)
        for j in range(2):
            one, other = belief.column(j).scaled(factor), more.column(j)
            for name in ("location", "strength", "shape", "scale"):
                assert float(getattr(one, name)) == pytest.approx(float(getattr(other, name)), rel=1e-14)
    kept = tb.NormalInverseWishart(LOCATION, 2, 6, SCALE, root=np.linalg.cholesky(SCALE)).scaled(3.0)
    np.testing.assert_allclose(kept.root @ kept.root.T, kept.scale, rtol=1e-14)


def test_a_root_stands_for_its_scale():
    root = np.linalg.cholesky(SCALE)
    plain, rooted = (tb.NormalInverseWishart(LOCATION, 2, 6, SCALE, root=given) for given in (None, root))
    rows = np.random.default_rng(4).normal(3, 2, (7, 2))
    statistics = tb.Moments.of(rows, full=True)
    np.testing.assert_array_equal(rooted.scale_cholesky(), root)
    assert rooted.log_evidence(statistics) == pytest.approx(plain.log_evidence(statistics), rel=1e-12)
    after = rooted.update(statistics)
    np.testing.assert_allclose(after.root @ after.root.T, plain.update(statistics).scale, rtol=1e-12)
    np.testing.assert_array_equal(np.triu(after.root, 1), 0)
    point = (LOCATION + 1, np.eye(2))
    assert rooted.log_prob(point) == pytest.approx(plain.log_prob(point), rel=1e-13)
    np.testing.assert_allclose(
        rooted.sample(3, random_state=0).covariance, plain.sample(3, random_state=0).covariance, rtol=1e-12
    )
    for wrong in (np.eye(3), -root, np.diag([1.0, 0.0])):
        with pytest.raises(PriorError, match="root of NormalInverseWishart is"):
            tb.NormalInverseWishart(LOCATION, 2, 6, SCALE, root=wrong)


@pytest.mark.parametrize("shared", [(), ("groups",)])
def test_data_very_far_away_keep_the_other_directions(shared):
    """What a long pull leaves of the scale is told by its root, which has digits that the scale has not."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(8, 2)) + np.array([1e9, 1e9])
    family = tb.TiedMultivariateGaussian() if shared else tb.MultivariateGaussian()
    statistics = family.collect(rows, np.arange(8) % 2, 2)
    belief = tb.NormalInverseWishart(np.zeros((2, 2)), 1.0, [5.0], np.eye(2)[None], tied_over=shared)
    after = belief.update(statistics)
    assert after.root is not None
    for place in range(1 if shared else 2):
        groups = [rows[0::2], rows[1::2]] if shared else [rows[place::2]]
        exact = [[Fraction(int(i == j)) for j in range(2)] for i in range(2)]
        for part in groups:
            cells = [[Fraction(float(cell)) for cell in row] for row in part]
            mean = [sum(column) / len(cells) for column in zip(*cells, strict=True)]
            for i, j in np.ndindex(2, 2):
                exact[i][j] += sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in cells)
                exact[i][j] += Fraction(4, 5) * mean[i] * mean[j]  # κn/(κ + n), from a location of 0
        determinant = float(exact[0][0] * exact[1][1] - exact[0][1] ** 2)
        assert np.prod(np.diagonal(after.root[place])) ** 2 == pytest.approx(determinant, rel=1e-5)
        np.testing.assert_allclose(after.scale[place], np.array(exact, dtype=float), rtol=1e-12)
    again = after.update(statistics)
    assert again.root is not None
    assert np.isfinite(after.log_evidence(statistics)).all()


def test_no_rows_are_no_evidence():
    empty = tb.MultivariateGaussian().collect(np.zeros((0, 3)), np.zeros(0, dtype=int), 3)
    np.testing.assert_allclose(of_groups().log_evidence(empty), np.zeros(3), atol=1e-12)
    tied = tb.NormalInverseWishart(np.zeros((3, 3)), 1, [4.0], np.eye(3)[None], tied_over=("groups",))
    assert tied.log_evidence(empty) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["location", "strength", "degrees_of_freedom", "scale"])
def test_one_number_by_group_makes_a_belief_by_group(name):
    first = of_groups(1)
    mixed = first.replace(**{name: getattr(of_groups(), name)})
    point = (np.array([0.1, 0.5, -1.0]), np.diag([1.0, 2.0, 0.5]))
    assert mixed.mean().mean.shape == (3, 3)
    assert mixed.mean().covariance.shape == (3, 3, 3)
    drawn = mixed.sample(2, random_state=0)
    assert (drawn.mean.shape, drawn.covariance.shape) == ((2, 3, 3), (2, 3, 3, 3))
    for group in range(3):
        one = first.replace(**{name: getattr(of_groups(group), name)})
        for part, expected in zip(mixed.mode(), one.mode(), strict=True):
            np.testing.assert_allclose(part[group], expected, rtol=1e-12)
        for part, expected in zip(mixed.interval().high, one.interval().high, strict=True):
            np.testing.assert_allclose(part[group], expected, rtol=1e-12)
        assert np.broadcast_to(mixed.log_prob(point), 3)[group] == pytest.approx(one.log_prob(point), rel=1e-12)


def test_a_little_more_than_enough_rows_expect_a_covariance():
    for covariance in (SCALE, np.stack([SCALE, np.eye(2), 2 * SCALE])):
        belief = tb.NormalInverseWishart.from_mean(LOCATION, covariance, 3.5)
        np.testing.assert_allclose(belief.mean().covariance, covariance, rtol=1e-13)


def test_sharing_what_is_shared_already_is_the_same():
    belief = tb.NormalInverseWishart([LOCATION, LOCATION], 1, 5, SCALE, tied_over=("groups",))
    assert belief.tied(("groups",)) is belief
    assert belief.tied(()).tied_over == ()


def test_one_of_several_scales_that_is_not_symmetric_is_refused():
    with pytest.raises(PriorError, match="symmetric"):
        tb.NormalInverseWishart(LOCATION, 1, 5, [np.eye(2), [[1.0, 0.5], [0.2, 1.0]], np.eye(2)])
    with pytest.raises(PriorError, match="shape"):
        tb.NormalInverseWishart(LOCATION, 1, 5, np.ones((2, 2, 3)))


def test_roots_and_groups_of_them_may_be_small():
    scale = np.stack([0.01 * SCALE, SCALE, 0.1 * np.eye(2)])
    root = np.linalg.cholesky(scale)
    plain, rooted = (tb.NormalInverseWishart(LOCATION, 2, 6, scale, root=given) for given in (None, root))
    rows = np.random.default_rng(4).normal(3, 2, (9, 2))
    statistics = tb.MultivariateGaussian().collect(rows, np.arange(9) % 3, 3)
    after = rooted.update(statistics)
    np.testing.assert_allclose(after.root @ np.swapaxes(after.root, -1, -2), plain.update(statistics).scale, rtol=1e-11)
    np.testing.assert_allclose(rooted.log_evidence(statistics), plain.log_evidence(statistics), rtol=1e-11)
    assert plain.update(statistics).root is None  # nothing is flat, and no root is kept
