"""Gaussians of independent columns: variances that groups and columns share, against NumPy and scipy."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.errors import EstimateError
from tallybayes.families.continuous import pooled_scale
from tallybayes.families.protocols.counting import aggregates, from_aggregates
from tallybayes.families.protocols.degenerate_estimates import first_degenerate_group, mask_degenerate_groups
from tallybayes.families.protocols.display import column_contributions, named_parameters, plot_grid
from tallybayes.families.protocols.distribution_functions import cdf, kl_divergence
from tallybayes.families.protocols.em_support import zero_small_variances
from tallybayes.families.protocols.leave_one_out import leave_one_out_tables
from tallybayes.families.protocols.linear_nodes import as_linear_model, family_given_continuous_parents
from tallybayes.families.protocols.scoring_forms import log_predictive_form, log_prob_form

RNG = np.random.default_rng(2)
GROUP = np.repeat([0, 1], [6, 9])
ROWS = RNG.normal(size=(15, 3)) * [1.0, 2.0, 5.0] + 4 * GROUP[:, None]
PARTS = [ROWS[k == GROUP] for k in (0, 1)]
WITHIN = np.stack([((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in PARTS])
FREE = np.array([[6.0], [9.0]])
SHARED = {  # the sum of squares, the rows behind it, and the means it is about
    "each its own": (tb.Gaussian(), WITHIN, FREE, 1),
    "groups": (tb.TiedGaussian(), WITHIN.sum(axis=0, keepdims=True), 15.0, 2),
    "columns": (tb.SphericalGaussian(), WITHIN.sum(axis=1, keepdims=True), 3 * FREE, 3),
    "both": (tb.TiedSphericalGaussian(), WITHIN.sum(), 45.0, 6),
}


def counted(family):
    return family.collect(ROWS, GROUP, 2)


@pytest.mark.parametrize("name", SHARED)
def test_variances_of_all_that_share_one(name):
    family, squares, rows, means = SHARED[name]
    found, unbiased = family.maximum_likelihood(counted(family)), family.unbiased(counted(family))
    np.testing.assert_allclose(found.mean, [part.mean(axis=0) for part in PARTS])
    np.testing.assert_allclose(found.variance, np.broadcast_to(squares / rows, (2, 3)))
    np.testing.assert_allclose(unbiased.variance, np.broadcast_to(squares / (rows - means), (2, 3)))
    assert family.n_parameters(counted(family)) == 6 + 6 // means
    assert family.n_parameters(family.collect(np.zeros((2, 0)))) == 0


@pytest.mark.parametrize("name", SHARED)
def test_log_probabilities_are_scipys_and_add_up_to_the_likelihood(name):
    family, *_ = SHARED[name]
    point = family.maximum_likelihood(counted(family))
    found = family.log_prob(point, ROWS)
    cells = stats.norm.logpdf(ROWS[:, None, :], point.mean, np.sqrt(point.variance))
    by_row = "columns" in family.tied_over
    np.testing.assert_allclose(found, cells.sum(axis=-1) if by_row else cells, rtol=1e-12)
    own = cells[np.arange(15), GROUP]
    assert family.log_likelihood(point, counted(family)).sum() == pytest.approx(own.sum())


def test_a_missing_cell_adds_nothing_and_a_group_without_rows_is_unknown():
    family = tb.Gaussian()
    point = Normal(np.array([[0.0, 1.0]]), np.array([[1.0, 4.0]]))
    assert family.log_prob(point, np.array([[np.nan, 1.0]]))[0, 0].tolist() == [0.0, stats.norm.logpdf(0, 0, 2)]
    found = family.maximum_likelihood(family.collect(ROWS, GROUP, 3))
    assert np.isnan(found.mean[2]).all()
    assert np.isnan(found.variance[2]).all()


@pytest.mark.parametrize("far", [0.0, 3.0, 1e200])
def test_predictions_are_a_t_however_far(far):
    belief = tb.NormalInverseGamma([1.0, 2.0], 3.0, 2.5, [4.0, 0.5])
    found = tb.Gaussian().log_predictive(belief, np.array([[far, -far]]))[0]
    scale = np.sqrt(belief.scale * (1 + 1 / 3) / 2.5)
    if far < 1e100:
        np.testing.assert_allclose(found, stats.t.logpdf([far, -far], 5, belief.location, scale), rtol=1e-12)
    else:  # the tail alone: a power of the distance
        tail = stats.t.logpdf(1e6, 5) - 6 * np.log(far / (1e6 * scale)) - np.log(scale)
        np.testing.assert_allclose(found, tail, rtol=1e-9)


def test_no_variance_is_no_density():
    flat = Normal(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    with pytest.raises(EstimateError, match="column 1"):
        tb.Gaussian().log_prob(flat, np.zeros((1, 2)))
    gone = mask_degenerate_groups(tb.Gaussian(), Normal(np.zeros((2, 2)), np.array([[1.0, 0.0], [1.0, 1.0]])))
    assert np.isnan(gone.mean).tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(("estimate", "share"), [("bayes", 1.5), ("map", 3.0)])
def test_the_mean_and_the_mode_of_default_priors(estimate, share):
    family = tb.Gaussian()
    prior = family.default_prior(counted(family), estimate)
    expected = pooled_scale(counted(family))
    np.testing.assert_allclose(prior.location, expected.mean)
    np.testing.assert_allclose(prior.scale, share * expected.spread)
    assert float(np.ravel(prior.shape)[0]) == 1.5


def test_distances_shares_and_draws():
    one, other = Normal(np.array([0.0]), np.array([1.0])), Normal(np.array([2.0]), np.array([4.0]))
    assert kl_divergence(tb.Gaussian(), one, other)[0] == pytest.approx(np.log(2) + (1 + 4) / 8 - 0.5)
    np.testing.assert_allclose(cdf(tb.Gaussian(), other, np.array([[0.0], [2.0]]))[:, 0], stats.norm.cdf([-1, 0]))
    drawn = tb.Gaussian().sample(other, 20_000, np.random.default_rng(0))
    assert stats.kstest(drawn[:, 0], stats.norm(2, 2).cdf).pvalue > 0.01


def test_columns_share_what_a_row_is_worth():
    rng = np.random.default_rng(0)
    family, rows = tb.SphericalGaussian(), rng.normal(size=(30, 3))
    posterior = tb.fit_distribution(rows, family).posterior()
    asked = np.array([[0.5, -1.0, 2.0], [0.5, np.nan, 2.0], [np.nan, np.nan, 1.0], [np.nan] * 3])
    asked = np.concatenate([asked, np.broadcast_to(posterior.location, (1, 3))])  # no length to be shared
    shares, whole = column_contributions(family, posterior, asked), family.log_predictive(posterior, asked)
    np.testing.assert_allclose(shares.sum(axis=-1), whole, rtol=1e-12, atol=1e-15)
    assert (shares[np.isnan(asked)] == 0).all()
    assert shares[0].argmin() == 2  # the farthest costs most
    np.testing.assert_allclose(shares[-1], whole[-1] / 3, rtol=1e-12)


FOUR = {name: SHARED[name][0] for name in SHARED}
ASKED = np.array([[0.5, -1.0, 2.0], [0.5, np.nan, 7.0], [np.nan] * 3, [4.0, 4.0, 4.0]])


def row_t(posterior, group, rows):
    """The density of whole rows whose columns share one variance."""
    location = np.broadcast_to(posterior.location, (2, 3))[group]
    widen = np.broadcast_to(1 + 1 / posterior.strength, (2, 3))[group]
    shape, scale = (np.broadcast_to(part, (2, 3))[group, 0] for part in (posterior.shape, posterior.scale))
    found = []
    for row in rows:
        known = ~np.isnan(row)
        spread = np.diag(widen[known]) * scale / shape
        reference = stats.multivariate_t(location[known], spread, df=2 * shape) if known.any() else None
        found.append(0.0 if reference is None else reference.logpdf(row[known]))
    return np.array(found)


@pytest.mark.parametrize("name", FOUR)
def test_predictions_are_ts_of_columns_or_rows(name):
    family = FOUR[name]
    belief = family.default_prior(counted(family), "bayes").update(counted(family))
    found = family.log_predictive(belief, ASKED)
    for group in range(2):
        if "columns" in family.tied_over:
            np.testing.assert_allclose(found[:, group], row_t(belief, group, ASKED), rtol=1e-10, atol=1e-14)
            continue
        location, strength, shape, scale = (
            np.broadcast_to(part, (2, 3))[group]
            for part in (belief.location, belief.strength, belief.shape, belief.scale)
        )
        spread = np.sqrt(scale / shape * (1 + 1 / strength))
        cells = stats.t.logpdf(ASKED, 2 * shape, location, spread)
        np.testing.assert_allclose(found[:, group], np.where(np.isnan(ASKED), 0.0, cells), rtol=1e-10)
        np.testing.assert_allclose(
            log_predictive_form(family, belief).evaluate(ASKED)[:, group], found[:, group], rtol=1e-9
        )
        told = family.student(belief)
        np.testing.assert_allclose(np.broadcast_to(told.scale, (2, 3))[group], spread, rtol=1e-13)
        np.testing.assert_allclose(np.broadcast_to(told.degrees_of_freedom, (2, 3))[group], 2 * shape, rtol=1e-13)


@pytest.mark.parametrize("name", ["columns", "both"])
def test_rows_are_turned_into_lengths_of_their_t(name):
    family = FOUR[name]
    belief = family.default_prior(counted(family), "bayes").update(counted(family))
    form = log_predictive_form(family, belief)
    np.testing.assert_allclose(form.evaluate(ROWS[:4]), family.log_predictive(belief, ROWS[:4]), rtol=1e-13)
    known = np.array([0, 2])
    rows, log_det = form.whitened(ROWS[:4][:, known], known)
    for group in range(2):
        location, strength, scale = (
            np.broadcast_to(part, (2, 3))[group][known] for part in (belief.location, belief.strength, belief.scale)
        )
        spread = 2 * scale * (1 + 1 / strength)
        np.testing.assert_allclose(rows[:, group], ROWS[:4][:, known] / np.sqrt(spread), rtol=1e-12)
        assert np.ravel(log_det)[group] == pytest.approx(np.log(spread).sum(), rel=1e-12)
        assert location.shape == (2,)


@pytest.mark.parametrize("name", FOUR)
@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_default_priors_expect_the_pooled_spread_whatever_is_shared(name, estimate):
    family, _, _, means = SHARED[name]
    prior = family.default_prior(counted(family), estimate)
    pooled = pooled_scale(counted(family), together="columns" in family.tied_over)
    typical = prior.scale / (1.5 if estimate == "bayes" else 1.5 + 1 + means / 2)
    np.testing.assert_allclose(typical, pooled.spread[: len(np.atleast_1d(prior.scale))], rtol=1e-13)
    assert prior.scale.shape == ((1,) if "columns" in family.tied_over else (3,))


@pytest.mark.parametrize("name", FOUR)
def test_rows_behind_every_column(name):
    family = FOUR[name]
    rows = np.where(np.arange(45).reshape(15, 3) % 7 == 0, np.nan, ROWS)
    weight = family.row_weight(family.collect(rows, GROUP, 2))
    there = np.stack([(~np.isnan(rows[k == GROUP])).sum(axis=0) for k in (0, 1)]).astype(float)
    if "columns" in family.tied_over:
        there = there.max(axis=1)
    np.testing.assert_array_equal(weight, there.sum(axis=0) if "groups" in family.tied_over else there)


def test_unbiased_variances_need_two_rows():
    family = tb.Gaussian()
    statistics = family.collect(np.array([[1.0, 2.0], [np.nan, 4.0]]))
    found = family.unbiased(statistics)
    assert np.ravel(found.variance)[1] == pytest.approx(2.0)
    assert not np.isfinite(np.ravel(found.variance)[0])
    np.testing.assert_array_equal(np.ravel(found.mean), [1.0, 3.0])


def test_likelihoods_of_groups_without_rows_are_nothing():
    family, point = tb.Gaussian(), Normal(np.zeros((3, 3)), np.ones((3, 3)))
    found = family.log_likelihood(point, family.collect(ROWS, GROUP, 3))
    np.testing.assert_array_equal(found[2], 0.0)
    np.testing.assert_allclose(found[0], stats.norm.logpdf(PARTS[0]).sum(axis=0), rtol=1e-12)
    tied = tb.TiedGaussian()
    together = tied.log_likelihood(point, tied.collect(ROWS, GROUP, 3))
    np.testing.assert_allclose(together, stats.norm.logpdf(ROWS).sum(axis=0), rtol=1e-12)


def test_pictures_reach_four_deviations_about_every_mean():
    point = Normal(np.array([[0.0, 1.0], [10.0, 1.0]]), np.array([[1.0, 4.0], [9.0, 4.0]]))
    places = plot_grid(tb.Gaussian(), point, 0)
    assert (places[0], places[-1], len(places)) == (-4.0, 22.0, 400)
    places = plot_grid(tb.Gaussian(), point, 1, 2.0)
    assert (places[0], places[-1]) == (-3.0, 5.0)
    belief = tb.NormalInverseGamma([[0.0, 5.0]], 4.0, 2.0, [[8.0, 2.0]])
    places = plot_grid(tb.Gaussian(), belief, 0)
    assert (places[0], places[-1]) == pytest.approx((-4 * np.sqrt(5), 4 * np.sqrt(5)))


def test_what_is_told_of_parameters_and_posteriors():
    told = named_parameters(tb.Gaussian(), Normal(np.zeros((2, 2)), np.array([4.0, 9.0])))
    np.testing.assert_array_equal(told["std"], [[2.0, 3.0]] * 2)
    belief = tb.NormalInverseGamma([[0.0, 5.0]], 4.0, 2.0, [[8.0, 2.0]])
    told = named_parameters(tb.Gaussian(), belief)
    np.testing.assert_allclose(told["scale"], np.sqrt([[5.0, 1.25]]))
    np.testing.assert_allclose(told["degrees_of_freedom"], [[4.0, 4.0]])
    assert "std" not in told


def test_the_first_column_without_a_density_is_named():
    family, statistics = tb.Gaussian(), counted(tb.Gaussian())
    variance = np.array([[1.0, 2.0, 3.0], [1.0, 0.0, 0.0]])
    assert first_degenerate_group(family, Normal(np.zeros((2, 3)), variance), statistics) == (1, 1)
    assert first_degenerate_group(family, Normal(np.zeros((2, 3)), variance + 1), statistics) is None
    three = family.collect(ROWS, GROUP, 3)  # a group without rows has no density, and needs none
    point = family.maximum_likelihood(three)
    assert first_degenerate_group(family, point, three) is None
    gone = mask_degenerate_groups(family, Normal(np.zeros((2, 3)), variance))
    assert np.isnan(gone.variance).tolist() == [[False] * 3, [True] * 3]


def test_variances_next_to_nothing_are_nothing():
    family = tb.Gaussian()
    point = family.maximum_likelihood(counted(family))
    np.testing.assert_array_equal(zero_small_variances(family, point, counted(family)).variance, point.variance)
    tiny = point._replace(variance=np.where(np.arange(3) == 1, 1e-30, point.variance))
    assert (zero_small_variances(family, tiny, counted(family)).variance == 0).tolist() == [[False, True, False]] * 2


def test_a_column_alone_is_a_line_in_nothing():
    line = as_linear_model(tb.Gaussian(), Normal(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])))
    assert line.slope.shape == (2, 0)
    assert line.intercept.tolist() == [1.0, 2.0]
    assert line.variance.tolist() == [3.0, 4.0]
    assert family_given_continuous_parents(tb.TiedGaussian()) is None
    assert family_given_continuous_parents(tb.Gaussian()) is not None


def test_sums_of_a_database_are_the_moments():
    family, anchor = tb.Gaussian(), np.array([1.0, 2.0, 3.0])
    asked = aggregates(family, 3, anchor)
    gaps = ROWS - anchor
    sums = np.array([[15.0] * 3 + gaps.sum(axis=0).tolist() + (gaps**2).sum(axis=0).tolist()])
    assert len(asked) == sums.shape[1]
    found, expected = from_aggregates(family, sums, anchor), family.collect(ROWS)
    np.testing.assert_allclose(found.mean, expected.mean.reshape(found.mean.shape), rtol=1e-12)
    np.testing.assert_allclose(found.scatter, expected.scatter.reshape(found.scatter.shape), rtol=1e-11)


def test_rows_of_one_variance_share_their_length_by_column():
    family = tb.SphericalGaussian()
    belief = family.default_prior(counted(family), "bayes").update(counted(family))
    shares = column_contributions(family, belief, ASKED)
    np.testing.assert_allclose(shares.sum(axis=-1), family.log_predictive(belief, ASKED), rtol=1e-11, atol=1e-13)
    # What bends is shared by squared lengths, the rest evenly: so two columns differ by their lengths alone.
    for group in range(2):
        location, strength, scale, shape = (
            np.broadcast_to(part, (2, 3))[group]
            for part in (belief.location, belief.strength, belief.scale, belief.shape)
        )
        t = (ASKED[0] - location) ** 2 / (1 + 1 / strength) / (2 * scale)
        bend = -(shape[0] + 3 / 2) * np.log1p(t.sum())
        assert shares[0, group, 2] - shares[0, group, 0] == pytest.approx(bend * (t[2] - t[0]) / t.sum(), rel=1e-9)
    point = family.maximum_likelihood(counted(family))
    cells = column_contributions(family, point, ASKED)
    np.testing.assert_allclose(cells.sum(axis=-1), family.log_prob(point, ASKED), rtol=1e-12, atol=1e-15)


def test_light_rows_count_too():
    family, point = tb.Gaussian(), Normal(np.zeros((1, 3)), np.ones((1, 3)))
    light = family.collect(ROWS[:1], weight=np.array([0.25]))
    np.testing.assert_allclose(
        family.log_likelihood(point, light)[..., :], 0.25 * stats.norm.logpdf(ROWS[:1]), rtol=1e-12
    )
    flat = Normal(np.zeros((1, 3)), np.array([[1.0, 0.0, 1.0]]))
    grouped = family.collect(ROWS[:1], np.array([0]), 1, np.array([0.25]))
    assert first_degenerate_group(family, flat, grouped) == (0, 1)
    assert first_degenerate_group(family, flat._replace(variance=np.array([[1.0, 1.0, 0.0]])), grouped) == (0, 2)


def test_bells_say_whether_groups_share_their_width():
    for name, family in FOUR.items():
        form = log_prob_form(family, family.maximum_likelihood(counted(family)))
        assert form.shared == (name in ("groups", "both"))
        point = family.maximum_likelihood(counted(family))
        cells = np.where(
            np.isnan(ASKED[:, None]), 0.0, stats.norm.logpdf(ASKED[:, None], point.mean, np.sqrt(point.variance))
        )
        np.testing.assert_allclose(form.evaluate(ASKED), cells, rtol=1e-12)


@pytest.mark.parametrize("name", FOUR)
def test_only_ts_of_their_own_have_tables(name):
    from tallybayes.families._shared.leave_one_out_counts import GroupStatistics
    from tallybayes.families.estimates import read_estimate

    family = FOUR[name]
    prior = family.default_prior(counted(family), "bayes")
    for estimate in ("bayes", "map"):
        tables = leave_one_out_tables(
            family, GroupStatistics(counted(family), prior, read_estimate(estimate)), np.zeros(3, bool)
        )
        assert (tables is not None) == (name == "each its own" and estimate == "bayes")


def test_rows_of_one_group_without_an_axis_for_it():
    family, statistics = tb.Gaussian(), tb.fit_distribution(ROWS, tb.Gaussian()).statistics
    point = family.maximum_likelihood(statistics)
    np.testing.assert_allclose(point.variance, ROWS.var(axis=0), rtol=1e-12)
    gone = mask_degenerate_groups(family, Normal(np.zeros(3), np.array([1.0, 0.0, 1.0])))
    assert np.isnan(gone.mean).all()
    spherical = tb.SphericalGaussian()
    alone = tb.fit_distribution(ROWS, spherical).statistics
    assert float(spherical.row_weight(alone)) == 15.0
    assert float(spherical.log_likelihood(spherical.maximum_likelihood(alone), alone)) == pytest.approx(
        stats.norm.logpdf(ROWS, ROWS.mean(axis=0), np.sqrt(ROWS.var(axis=0).mean())).sum()
    )


@pytest.mark.parametrize("name", FOUR)
def test_a_group_without_rows_spends_none(name):
    family = FOUR[name]
    two, three = family.unbiased(counted(family)), family.unbiased(family.collect(ROWS, GROUP, 3))
    np.testing.assert_allclose(three.variance[:2], two.variance, rtol=1e-13)
    assert np.isnan(three.variance[2]).all()
