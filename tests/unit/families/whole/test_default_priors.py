"""Default priors: their formulas computed again from the rows, and their indifference to units."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import EstimateError, PriorError

ROWS = np.random.default_rng(7).normal([10, -2, 0.5], [1, 3, 0.2], size=(11, 3))
GROUPS = np.array(list("aabbbccccca"))


def prior_of(family, rows, estimate, group=None, weight=None):
    learned = tb.fit_distribution(rows, family, group=group, weight=weight)
    return family.resolve_prior(None, learned.statistics, estimate)


@pytest.mark.parametrize(
    ("family", "rows"),
    [(tb.Bernoulli(), [1, 0, 1]), (tb.Binomial(4), [1, 0, 4])],
)
def test_one_pseudo_count_each(family, rows):
    assert prior_of(family, rows, "bayes") == tb.Beta(1, 1)
    assert prior_of(family, rows, "map") == tb.Beta(2, 2)


@pytest.mark.parametrize(
    ("family", "rows"),
    [(tb.Categorical(), ["a", "b"]), (tb.Multinomial(), [[1, 2]]), (tb.DirichletMultinomial(), [[1, 2]])],
)
def test_one_pseudo_count_per_level(family, rows):
    assert prior_of(family, rows, "bayes") == tb.Dirichlet(1)
    assert prior_of(family, rows, "map") == tb.Dirichlet(2)


def test_both_defaults_add_one():
    letters = tb.fit_distribution(list("aab"), tb.Categorical())
    assert letters.estimate("bayes") == pytest.approx({"a": 3 / 5, "b": 2 / 5})
    assert letters.estimate("map") == pytest.approx({"a": 3 / 5, "b": 2 / 5})
    coin = tb.fit_distribution([1, 1, 1], tb.Bernoulli())
    assert coin.estimate("bayes") == coin.estimate("map") == pytest.approx(4 / 5)


def test_poisson_default_is_one_row_at_the_pooled_mean():
    rows = np.array([[3, 0], [5, 1], [0, 0]])
    m = (rows.sum(axis=0) + 0.5) / 4
    for group in (None, ["x", "y", "y"]):
        bayes, mode = (prior_of(tb.Poisson(), rows, estimate, group) for estimate in ("bayes", "map"))
        np.testing.assert_allclose(bayes.shape, m)
        np.testing.assert_allclose(mode.shape, 1 + m)
        assert bayes.rate == mode.rate == 1
    estimates = [tb.fit_distribution(rows, tb.Poisson()).estimate(e) for e in ("bayes", "map")]
    np.testing.assert_allclose(estimates, [(rows.sum(axis=0) + m) / 4] * 2)


def spread_by_hand(rows, groups, weight, *, together=False):
    """s² = v · min(T/v, 1000)^(8/(f + 8)) with T = S_total/N, f = N − K, v = S_within/f, and the pooled mean."""
    mean = np.average(rows, axis=0, weights=weight)
    total = weight @ (rows - mean) ** 2
    within = np.zeros(rows.shape[1])
    for g in set(groups):
        here = groups == g
        within += weight[here] @ (rows[here] - np.average(rows[here], axis=0, weights=weight[here])) ** 2
    freedom = weight.sum() - len(set(groups))
    if together:  # one variance for all columns
        within, total = within.mean(), total.mean()
    if freedom <= 0:
        return mean, total / weight.sum()
    ratio = np.minimum(total / weight.sum() / (within / freedom), 1000)
    return mean, within / freedom * ratio ** (8 / (freedom + 8))


CASES = [
    (GROUPS, np.ones(11)),
    (np.array(["x"] * 11), np.ones(11)),
    (GROUPS, np.linspace(0.5, 3, 11)),
    (np.array(list("abcdefghijk")), np.ones(11)),  # one row per group: only the total scatter speaks
    (np.array(list("abcdefghijk")), np.full(11, 0.25)),
]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(("groups", "weight"), CASES)
@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_gaussian_defaults(groups, weight, estimate):
    d, n_groups = 3, len(set(groups))
    mean, spread = spread_by_hand(ROWS, groups, weight)
    for family, n_means in ((tb.MultivariateGaussian(), 1), (tb.TiedMultivariateGaussian(), n_groups)):
        prior = prior_of(family, ROWS, estimate, groups, weight)
        factor = 3 if estimate == "bayes" else 2 * d + 3 + n_means  # (2d + 4) D for one mean, (2d + 3 + K) D for K
        np.testing.assert_allclose(prior.scale, np.diag(factor * spread), rtol=1e-11)
        np.testing.assert_allclose(prior.location, mean, rtol=1e-13)
        assert (prior.strength, prior.degrees_of_freedom) == (0.01, d + 2)
    for family, n_means in ((tb.Gaussian(), 1), (tb.TiedGaussian(), n_groups)):
        prior = prior_of(family, ROWS, estimate, groups, weight)
        factor = 3 if estimate == "bayes" else 2 * 1 + 3 + n_means  # d = 1, with a = ν/2 and b = Ψ/2
        np.testing.assert_allclose(prior.scale, factor * spread / 2, rtol=1e-11)
        np.testing.assert_allclose(prior.location, mean, rtol=1e-13)
        assert prior.strength.tolist() == [0.01] * d
        assert prior.shape == 1.5
    for family, n_means in ((tb.SphericalGaussian(), 3), (tb.TiedSphericalGaussian(), 3 * n_groups)):
        prior = prior_of(family, ROWS, estimate, groups, weight)
        factor = 3 if estimate == "bayes" else 5 + n_means
        _, one = spread_by_hand(ROWS, groups, weight, together=True)
        np.testing.assert_allclose(prior.scale, factor * one / 2, rtol=1e-11)


@pytest.mark.parametrize(
    "family",
    [
        tb.Gaussian(), tb.TiedGaussian(), tb.SphericalGaussian(), tb.TiedSphericalGaussian(), tb.MultivariateGaussian(),
        tb.TiedMultivariateGaussian(),
    ],
)  # fmt: skip
def test_the_mode_of_the_map_default_is_the_typical_spread(family):
    _, spread = spread_by_hand(ROWS, GROUPS, np.ones(11))
    statistics = tb.fit_distribution(ROWS, family, group=GROUPS).statistics
    mode = family.resolve_prior(None, statistics, "map").update(statistics.scale(0.0)).mode()
    if hasattr(mode, "variance"):
        _, one = spread_by_hand(ROWS, GROUPS, np.ones(11), together=True)
        expected = np.full(3, one) if "columns" in family.tied_over else spread
        np.testing.assert_allclose(mode.variance, np.tile(expected, (3, 1)), rtol=1e-11)
    else:
        np.testing.assert_allclose(mode.covariance, np.tile(np.diag(spread), (3, 1, 1)), rtol=1e-11)


# Whole multiples of 1/64, so that shifting by 1e9 and scaling by powers of two lose nothing.
GRID = np.round(np.random.default_rng(3).normal(0, 4, size=(12, 2)) * 64) / 64
NEW = np.round(np.random.default_rng(4).normal(0, 6, size=(5, 2)) * 64) / 64


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("offset", [0.0, -3e3, 1e9])
@pytest.mark.parametrize("scale", [2.0**-10, 1.0, 2.0**20])
@pytest.mark.parametrize("estimate", ["bayes", "map"])
@pytest.mark.parametrize(
    "family", [tb.Gaussian(), tb.TiedGaussian(), tb.MultivariateGaussian(), tb.TiedMultivariateGaussian()]
)
def test_units_change_no_prediction(family, scale, offset, estimate):
    group = np.arange(12) % 3
    factors = np.array([scale, 1.0])

    def log_prob(rows, new):
        learned = tb.fit_distribution(rows, family, group=group)
        if estimate == "bayes":
            return learned.predictive().log_prob(new)
        return family.log_prob(learned.estimate("map"), new)

    plain = log_prob(GRID, NEW)
    moved = log_prob(GRID * factors + [offset, 0.0], NEW * factors + [offset, 0.0])
    jacobian = np.log(factors) if family.columnwise else np.log(factors).sum()
    # A mean near 1e9 is only known to half a unit in its last place: as a share of the deviation, times a z of up to 5.
    rounding = 20 * np.spacing(abs(offset)) / (GRID[:, 0].std() * scale)
    np.testing.assert_allclose(moved, plain - jacobian, rtol=1e-9, atol=1e-9 + rounding)


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("family", [tb.SphericalGaussian(), tb.TiedSphericalGaussian()])
def test_one_unit_for_all_columns_changes_no_spherical_prediction(family, offset):
    group = np.arange(12) % 3
    plain = tb.fit_distribution(GRID, family, group=group).predictive().log_prob(NEW)
    moved = tb.fit_distribution(GRID * 1024 + offset, family, group=group).predictive().log_prob(NEW * 1024 + offset)
    np.testing.assert_allclose(moved, plain - 2 * np.log(1024), rtol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e9 + 0.1])
@pytest.mark.parametrize("family", [tb.Gaussian(), tb.TiedGaussian(), tb.MultivariateGaussian()])
def test_no_default_without_any_spread(family, offset):
    rows = np.array([[1.0, offset], [2.0, offset], [4.0, offset]])
    for ask in ("estimate", "posterior", "predictive", "log_evidence"):
        with pytest.raises(EstimateError, match="variance of column 1 is 0"):
            getattr(tb.fit_distribution(rows, family), ask)()


def test_bdeu_spreads_one_strength_over_the_table():
    letters = tb.fit_distribution(list("aabc"), tb.Categorical(), group=[0, 0, 1, 1])
    posterior = letters.posterior(tb.BDeu(12))
    np.testing.assert_allclose(posterior.concentration, np.array([[2, 0, 0], [0, 1, 1]]) + 12 / 6)
    several = tb.fit_distribution([["a", "x"], ["b", "y"], ["c", "x"]], tb.Categorical())
    np.testing.assert_allclose(several.posterior(tb.BDeu(6)).concentration, [1 + 2, 1 + 2, 1 + 2, 2 + 3, 1 + 3])
    with pytest.raises(PriorError, match="BDeu is for categorical"):
        tb.fit_distribution([1, 0], tb.Bernoulli()).posterior(tb.BDeu(1))
    for size in (0, -1, float("nan")):
        with pytest.raises(PriorError, match=r"equivalent_sample_size of BDeu is .*; expected finite numbers above 0"):
            tb.BDeu(size)


class TestGroupsFarApart:
    """The scale comes from within the groups as soon as they have rows, however far apart they lie."""

    FAMILIES = (
        tb.Gaussian(), tb.TiedGaussian(), tb.SphericalGaussian(), tb.TiedSphericalGaussian(), tb.MultivariateGaussian(),
        tb.TiedMultivariateGaussian(),
    )  # fmt: skip

    @pytest.mark.slow_after(11)
    @pytest.mark.parametrize("family", FAMILIES)
    @pytest.mark.parametrize("estimate", ["bayes", "map"])
    @pytest.mark.parametrize("gap", [400.0, 1e6])
    def test_a_thousand_rows_a_group(self, family, estimate, gap):
        rng = np.random.default_rng(2)
        group = np.repeat([0, 1], 1000)
        rows = rng.normal(0.0, 0.15, (2000, 2)) + gap * group[:, None]
        learned = tb.fit_distribution(rows, family, group=group)
        found = learned.estimate(estimate)
        variance = found[1] if len(np.shape(found[1])) == 2 else np.diagonal(found[1], axis1=-2, axis2=-1)
        np.testing.assert_allclose(np.sqrt(variance), 0.15, rtol=0.04)

    def test_ten_rows_a_group(self):
        noise, group = np.random.default_rng(2).normal(0.0, 0.15, 20), np.repeat([0, 1], 10)
        near, far = (
            tb.fit_distribution(noise + gap * group, tb.Gaussian(), group=group).estimate() for gap in (1.0, 1e6)
        )
        assert (np.sqrt(far.variance) < 2 * np.sqrt(near.variance)).all()

    def test_a_single_row_beside_many(self):
        rng = np.random.default_rng(2)
        rows = np.append(rng.normal(0.0, 0.15, 500), 400.0)
        found = tb.fit_distribution(rows, tb.Gaussian(), group=np.append(np.zeros(500, int), 1)).estimate()
        assert found.variance[0] == pytest.approx(0.15**2, rel=0.1)
        assert found.variance[1] < 1.0  # as the other group is, not as far as they are apart

    def test_constant_within_groups_only(self):
        prior = prior_of(tb.Gaussian(), [[1.0], [1.0], [5.0], [5.0]], "bayes", [0, 0, 1, 1])
        assert prior.scale == pytest.approx(1.5 * 4.0 / 3)
        assert prior.strength == 0.01

    def test_fractions_that_hardly_exceed_the_number_of_groups(self):
        weight = np.array([0.1, 0.2, 0.7, 0.3, 0.7])  # two groups of weight 1, but for rounding
        rows, group = np.array([1.0, 2.0, 3.0, 8.0, 9.0]), np.array([0, 0, 0, 1, 1])
        prior = prior_of(tb.Gaussian(), rows, "bayes", group, weight)
        mean = np.average(rows, weights=weight)
        assert prior.scale == pytest.approx(1.5 * np.average((rows - mean) ** 2, weights=weight))
