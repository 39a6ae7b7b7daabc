"""Columns that vary together: against scipy's normal and t of several columns, and what follows of matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
from tallybayes.errors import EstimateError
from tallybayes.families.protocols.degenerate_estimates import first_degenerate_group, mask_degenerate_groups
from tallybayes.families.protocols.display import column_contributions, named_parameters
from tallybayes.families.protocols.distribution_functions import cdf, conditional_means, kl_divergence
from tallybayes.families.protocols.em_support import zero_small_variances
from tallybayes.families.protocols.scoring_forms import log_predictive_form

FREE, TIED = tb.MultivariateGaussian(), tb.TiedMultivariateGaussian()
RNG = np.random.default_rng(11)
GROUP = np.repeat([0, 1, 2], [7, 9, 6])
MIX = np.array([[1.0, 0.5, 0.0], [0.0, 0.8, -0.4], [0.0, 0.0, 1.5]])
ROWS = RNG.normal(size=(22, 3)) @ MIX + GROUP[:, None] * [1.0, -2.0, 0.5]
HOLED = np.array([[0.3, 1.0, np.nan], [np.nan, 0.1, 2.0], [1.0, np.nan, np.nan], [0.5, -1.0, 2.0]])


def counted(family=FREE, rows=ROWS, group=GROUP, n_groups=3):
    return family.collect(rows, group, n_groups)


@pytest.mark.parametrize("spent", [0, 1])
def test_estimates_are_numpys(spent):
    moments = counted(n_groups=4)
    found = (FREE.unbiased if spent else FREE.maximum_likelihood)(moments)
    parts = [ROWS[k == GROUP] for k in range(3)]
    for k, part in enumerate(parts):
        np.testing.assert_allclose(found.mean[k], part.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.covariance[k], np.cov(part.T, ddof=spent), rtol=1e-11)
    assert np.isnan(found.mean[3]).all()
    assert np.isnan(found.covariance[3]).all()
    tied = (TIED.unbiased if spent else TIED.maximum_likelihood)(moments)
    within = sum(np.cov(part.T, ddof=0) * len(part) for part in parts)
    for k in range(4):  # even of a group without rows
        np.testing.assert_allclose(tied.covariance[k], within / (22 - 3 * spent), rtol=1e-11)
    assert np.isnan(tied.mean[3]).all()


def test_one_row_has_no_unbiased_covariance():
    single = FREE.unbiased(counted(rows=ROWS[:1], group=GROUP[:1], n_groups=1))
    assert np.isnan(single.covariance).all()
    assert FREE.maximum_likelihood(counted(rows=ROWS[:1], group=GROUP[:1], n_groups=1)).covariance.tolist() == [
        [[0.0] * 3] * 3
    ]


def test_numbers_of_parameters_and_of_rows():
    moments = counted()
    assert FREE.n_parameters(moments) == 3 * 3 + 3 * 6
    assert TIED.n_parameters(moments) == 3 * 3 + 6
    assert FREE.row_weight(moments).tolist() == [7, 9, 6]
    assert TIED.row_weight(moments) == 22


@pytest.mark.parametrize("family", [FREE, TIED], ids=["free", "tied"])
def test_likelihood_is_the_sum_over_rows(family):
    moments = counted(family, n_groups=4)
    point = family.unbiased(moments)
    own = np.array(
        [stats.multivariate_normal(point.mean[k], point.covariance[k]).logpdf(ROWS[k == GROUP]).sum() for k in range(3)]
        + [0.0]
    )
    expected = own.sum() if family is TIED else own
    np.testing.assert_allclose(family.log_likelihood(point, moments), expected, rtol=1e-10)
    off = point._replace(mean=np.nan_to_num(point.mean) + np.array([0.3, -0.2, 0.1]))
    own = sum(
        stats.multivariate_normal(off.mean[k], off.covariance[k]).logpdf(ROWS[k == GROUP]).sum() for k in range(3)
    )
    assert np.sum(family.log_likelihood(off, moments)) == pytest.approx(own, rel=1e-10)


@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_default_priors_expect_the_spread_of_columns(estimate):
    """Ψ/(ν − d + 1) of the t, or Ψ/(ν + d + 1 + means) of the joint mode, is the usual variance."""
    for family, n_means in ((FREE, 1), (TIED, 3)):
        prior = family.resolve_prior(None, counted(family), estimate)
        usual = tb.Gaussian().resolve_prior(None, tb.Gaussian().collect(ROWS, GROUP, 3), "bayes")
        divisor = (
            prior.degrees_of_freedom - 3 + 1 if estimate == "bayes" else prior.degrees_of_freedom + 3 + 1 + n_means
        )
        np.testing.assert_allclose(np.diagonal(prior.scale) / divisor, usual.scale / usual.shape, rtol=1e-12)
        assert not (prior.scale - np.diag(np.diagonal(prior.scale))).any()
        assert prior.degrees_of_freedom == 5
        np.testing.assert_allclose(prior.location, ROWS.mean(axis=0), rtol=1e-12)
        assert prior.strength == usual.strength.min()


@pytest.mark.parametrize("family", [FREE, TIED], ids=["free", "tied"])
def test_densities_are_scipys_whatever_cells_are_known(family):
    moments = counted(family)
    point = family.maximum_likelihood(moments)
    posterior = family.resolve_prior(None, moments, "bayes").update(moments)
    logs, predicted = family.log_prob(point, HOLED), family.log_predictive(posterior, HOLED)
    shape = np.broadcast_to(posterior.scale, (3, 3, 3))
    for row, cells in enumerate(HOLED):
        known = np.flatnonzero(~np.isnan(cells))
        for k in range(3):
            among = np.ix_(known, known)
            normal = stats.multivariate_normal(point.mean[k, known], point.covariance[k][among])
            assert logs[row, k] == pytest.approx(normal.logpdf(cells[known]), rel=1e-10)
            freedom = float(np.broadcast_to(posterior.degrees_of_freedom, 3)[k]) - 3 + 1
            wide = shape[k][among] * (1 + 1 / np.broadcast_to(posterior.strength, 3)[k]) / freedom
            t = stats.multivariate_t(posterior.location[k, known], wide, freedom)
            assert predicted[row, k] == pytest.approx(t.logpdf(cells[known]), rel=1e-10)


@pytest.mark.parametrize("predictive", [False, True])
@pytest.mark.parametrize("family", [FREE, TIED], ids=["free", "tied"])
def test_shares_of_columns_sum_to_the_row(family, predictive):
    moments = counted(family)
    point = family.maximum_likelihood(moments)
    if predictive:
        point = family.resolve_prior(None, moments, "bayes").update(moments)
    terms = column_contributions(family, point, HOLED)
    whole = (family.log_predictive if predictive else family.log_prob)(point, HOLED)
    np.testing.assert_allclose(terms.sum(axis=-1), whole, rtol=1e-10)
    assert not terms[np.broadcast_to(np.isnan(HOLED)[:, None], terms.shape)].any()


@pytest.mark.parametrize("predictive", [False, True])
def test_uncorrelated_columns_have_shares_by_their_own_squares(predictive):
    """Of the differences between rows: what a row has in common with others is spread evenly."""
    spread = np.diag([1.0, 4.0])
    x = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    if predictive:
        posterior = tb.NormalInverseWishart(np.zeros((1, 2)), np.ones(1), np.full(1, 5.0), spread[None])
        terms = column_contributions(FREE, posterior, x)[:, 0]
        bend = -(5 - 2 + 1 + 2) / 2 * np.log1p(np.array([0.0, 4.0, 1.0, 5.0]) / 2)
        shares = bend[:, None] * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.8, 0.2]])
    else:
        terms = column_contributions(FREE, MultivariateNormal(np.zeros((1, 2)), spread[None]), x)[:, 0]
        shares = -0.5 * x**2 / [1.0, 4.0]
    np.testing.assert_allclose(terms - terms[0], shares, atol=1e-12)


def test_conditional_means_are_those_of_regression():
    point = FREE.maximum_likelihood(counted())
    posterior = FREE.resolve_prior(None, counted(), "bayes").update(counted())
    for parameters, mean, spread in (
        (point, point.mean, point.covariance),
        (posterior, posterior.location, posterior.scale),
    ):
        found = conditional_means(FREE, parameters, HOLED)
        for row, cells in enumerate(HOLED):
            o, m = np.flatnonzero(~np.isnan(cells)), np.flatnonzero(np.isnan(cells))
            for k in range(3):
                gain = spread[k][np.ix_(m, o)] @ np.linalg.inv(spread[k][np.ix_(o, o)])
                np.testing.assert_allclose(found[row, k, m], mean[k, m] + gain @ (cells[o] - mean[k, o]), rtol=1e-9)
                np.testing.assert_array_equal(found[row, k, o], cells[o])


def test_divergence_is_the_mean_of_log_ratios():
    """tr, determinants and distances, by hand of two columns; 0 of itself; NaN where there is no inverse."""
    one = MultivariateNormal(np.array([[0.0, 1.0]]), np.array([[[2.0, 0.5], [0.5, 1.0]]]))
    two = MultivariateNormal(np.array([[1.0, -1.0]]), np.array([[[1.0, -0.3], [-0.3, 3.0]]]))
    inverse, gap = np.linalg.inv(two.covariance[0]), np.array([1.0, -2.0])
    expected = 0.5 * (
        np.log(np.linalg.det(two.covariance[0]) / np.linalg.det(one.covariance[0]))
        + np.trace(inverse @ one.covariance[0])
        + gap @ inverse @ gap
        - 2
    )
    assert kl_divergence(FREE, one, two)[0] == pytest.approx(expected, rel=1e-12)
    assert kl_divergence(FREE, one, one)[0] == pytest.approx(0.0, abs=1e-14)
    flat = MultivariateNormal(np.zeros((1, 2)), np.zeros((1, 2, 2)))
    assert np.isnan(kl_divergence(FREE, one, flat)).all()


def test_cumulative_of_every_column():
    point = FREE.maximum_likelihood(counted())
    x = np.array([[0.3, 1.0, -1.0], [2.0, 0.0, 0.1]])
    deviation = np.sqrt(np.diagonal(point.covariance, axis1=1, axis2=2))
    expected = stats.norm.cdf(x[:, None, :], point.mean, deviation)
    np.testing.assert_allclose(cdf(FREE, point, x), expected, rtol=1e-12)


@pytest.mark.parametrize("n_groups", [None, 2])
def test_draws_have_their_mean_and_covariance(n_groups):
    mean, spread = np.array([1.0, -3.0]), np.array([[2.0, 1.2], [1.2, 1.0]])
    if n_groups:
        mean, spread = np.stack([mean, -mean]), np.stack([spread, np.diag([0.0, 4.0])])
    drawn = FREE.sample(MultivariateNormal(mean, spread), 8000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.1)
    for k in range(n_groups or 1):
        part, wanted = (drawn[:, k], spread[k]) if n_groups else (drawn, spread)
        np.testing.assert_allclose(np.cov(part.T), wanted, atol=0.2)
    if n_groups:
        assert np.abs(drawn[:, 1, 0] + 1).max() < 1e-12  # no variance, nothing but the mean


def test_a_singular_covariance_is_named_by_its_group():
    flat = np.array([[[1.0, 0.5], [0.5, 1.0]], [[1.0, 1.0], [1.0, 1.0]]])
    point = MultivariateNormal(np.zeros((2, 2)), flat)
    with pytest.raises(EstimateError, match="group 1"):
        FREE.log_prob(point, np.zeros((1, 2)))
    with pytest.raises(EstimateError, match="the data"):
        FREE.log_prob(MultivariateNormal(np.zeros(2), flat[1]), np.zeros((1, 2)))
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    moments = FREE.collect(rows)
    with pytest.raises(EstimateError, match="3 rows"):
        FREE.log_likelihood(FREE.maximum_likelihood(moments), moments)


def test_groups_without_density_are_found():
    rows = np.vstack([ROWS[:7, :2], [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]])
    group = np.array([0] * 7 + [2] * 3)
    moments = counted(rows=rows, group=group, n_groups=3)
    point = FREE.maximum_likelihood(moments)
    assert first_degenerate_group(FREE, point, moments) == (2, None)
    known = mask_degenerate_groups(FREE, point)
    assert np.isnan(known.mean).all(axis=1).tolist() == [False, True, True]
    assert np.isnan(known.covariance).all(axis=(1, 2)).tolist() == [False, True, True]
    np.testing.assert_array_equal(known.covariance[0], point.covariance[0])
    whole = counted(rows=rows[:7], group=group[:7], n_groups=3)
    assert first_degenerate_group(FREE, FREE.maximum_likelihood(whole), whole) is None
    tied = TIED.maximum_likelihood(moments)
    assert first_degenerate_group(TIED, tied, moments) is None
    line = counted(TIED, rows[7:], group[7:], 3)
    assert first_degenerate_group(TIED, TIED.maximum_likelihood(line), line) == (None, None)
    nothing = counted(TIED, rows[:0], group[:0], 3)
    assert first_degenerate_group(TIED, TIED.maximum_likelihood(nothing), nothing) is None


def test_covariances_that_fall_in_are_0():
    moments = counted(rows=ROWS[:, :2])
    point = FREE.maximum_likelihood(moments)
    kept = zero_small_variances(FREE, point, moments)
    np.testing.assert_array_equal(kept.covariance, point.covariance)
    spread = np.array(point.covariance)
    spread[0] = [[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]]  # on a line, all but
    spread[1] = np.diag([1e-30, 1.0])  # one column next to flat
    spread[2] = [[1e-6, 0.5e-3], [0.5e-3, 1.0]]  # unlike, but of correlation ½
    found = zero_small_variances(FREE, point._replace(covariance=spread), moments).covariance
    assert not found[:2].any()
    np.testing.assert_array_equal(found[2], spread[2])


def test_columns_are_described_by_themselves():
    point = FREE.maximum_likelihood(counted())
    found = named_parameters(FREE, point)
    variance = np.stack([ROWS[k == GROUP].var(axis=0) for k in range(3)])
    np.testing.assert_allclose(found["variance"], variance, rtol=1e-11)
    np.testing.assert_allclose(found["std"] ** 2, variance, rtol=1e-11)
    posterior = FREE.resolve_prior(None, counted(), "bayes").update(counted())
    np.testing.assert_allclose(
        named_parameters(FREE, posterior)["variance"], np.diagonal(posterior.mean().covariance, axis1=1, axis2=2)
    )


def several(shape):
    """Means and covariances of groups along any axes, unlike each other."""
    rng = np.random.default_rng(3)
    half = rng.normal(size=(*shape, 2, 2)) + 2 * np.eye(2)
    return MultivariateNormal(5 + rng.normal(size=(*shape, 2)), half @ np.swapaxes(half, -1, -2))


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)], ids=str)
def test_groups_may_have_any_axes(shape):
    """What is said of all at once is what is said of each."""
    point, other = several(shape), several((*shape, 2))
    other = MultivariateNormal(*(np.asarray(part)[(slice(None),) * len(shape) + (1,)] for part in other))
    rows = np.array([[4.0, 6.0], [5.0, np.nan], [np.nan, np.nan], [7.0, 5.5]])
    posterior = tb.NormalInverseWishart(point.mean, np.full(shape, 2.5), np.full(shape, 6.0), point.covariance * 4)
    rooted = posterior.replace(root=np.linalg.cholesky(posterior.scale))  # as where it is too flat for products
    found = {
        "log_prob": FREE.log_prob(point, rows),
        "log_predictive": FREE.log_predictive(posterior, rows),
        "terms": column_contributions(FREE, point, rows),
        "predictive terms": column_contributions(FREE, posterior, rows),
        "means": conditional_means(FREE, point, rows),
        "cumulative": cdf(FREE, point, rows),
    }
    np.testing.assert_allclose(FREE.log_predictive(rooted, rows), found["log_predictive"], rtol=1e-10)
    known = np.array([0, 1])
    np.testing.assert_allclose(
        FREE.predictive_root(rooted, known), FREE.predictive_root(posterior, known), rtol=1e-10, atol=1e-12
    )
    apart = kl_divergence(FREE, point, other)
    assert apart.shape == shape
    form = log_predictive_form(FREE, posterior)
    assert form.shape.shape == shape
    for index in np.ndindex(shape):
        mean, covariance = point.mean[index], point.covariance[index]
        normal = stats.multivariate_normal(mean, covariance)
        assert found["log_prob"][(0, *index)] == pytest.approx(normal.logpdf(rows[0]))
        assert found["log_prob"][(1, *index)] == pytest.approx(
            stats.norm.logpdf(5.0, mean[0], np.sqrt(covariance[0, 0]))
        )
        t = stats.multivariate_t(mean, covariance * 4 * (1 + 1 / 2.5) / 5, 5)
        assert found["log_predictive"][(0, *index)] == pytest.approx(t.logpdf(rows[0]))
        assert form.shape[index] == 2.5
        single, its = (
            MultivariateNormal(mean, covariance),
            MultivariateNormal(other.mean[index], other.covariance[index]),
        )
        assert apart[index] == pytest.approx(float(kl_divergence(FREE, single, its)))
        alone = tb.NormalInverseWishart(mean, 2.5, 6.0, covariance * 4)
        for name, one in (
            ("terms", column_contributions(FREE, single, rows)),
            ("predictive terms", column_contributions(FREE, alone, rows)),
            ("means", conditional_means(FREE, single, rows)),
            ("cumulative", cdf(FREE, single, rows)),
        ):
            np.testing.assert_allclose(found[name][(slice(None), *index)], one, rtol=1e-10, atol=1e-12)
    assert np.isfinite(found["log_prob"]).all()
    assert not found["log_prob"][2].any()


def test_a_shared_scale_that_is_kept_as_its_root():
    moments = counted(TIED)
    posterior = TIED.resolve_prior(None, moments, "bayes").update(moments)
    rooted = posterior.replace(root=np.linalg.cholesky(posterior.scale))
    np.testing.assert_allclose(TIED.log_predictive(rooted, HOLED), TIED.log_predictive(posterior, HOLED), rtol=1e-10)


@pytest.mark.parametrize("predictive", [False, True])
def test_shares_go_by_distances_from_the_mean(predictive):
    """A column at its mean, uncorrelated with the others, has no share of the squared length."""
    spread, mean = np.diag([1.0, 4.0])[None], np.array([[10.0, -3.0]])
    x = np.array([[10.0, -3.0], [12.0, -3.0], [10.0, 0.0]])
    if predictive:
        parameters = tb.NormalInverseWishart(mean, np.full(1, 4.0), np.full(1, 5.0), spread)
        squares = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9 / 4]]) / 1.25
        shares = -6 / 2 * np.log1p(squares)
    else:
        parameters = MultivariateNormal(mean, spread)
        shares = -0.5 * np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9 / 4]])
    terms = column_contributions(FREE, parameters, x)[:, 0]
    np.testing.assert_allclose(terms - terms[0], shares, atol=1e-12)


def test_covariances_of_columns_of_any_unit_fall_in_alike():
    unit = np.array([1e-5, 1e5])
    moments = counted(rows=ROWS[:, :2] * unit)
    point = FREE.maximum_likelihood(moments)
    np.testing.assert_array_equal(zero_small_variances(FREE, point, moments).covariance, point.covariance)
    flat = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]]) * unit[:, None] * unit
    found = zero_small_variances(FREE, point._replace(covariance=np.stack([flat] * 3)), moments).covariance
    assert not found.any()
    nothing = zero_small_variances(FREE, point._replace(covariance=np.zeros((3, 2, 2))), moments).covariance
    assert not nothing.any()


def test_rows_that_weigh_less_than_one_are_rows():
    moments = FREE.collect(ROWS, GROUP, 3, np.full(22, 0.05))
    point = FREE.maximum_likelihood(counted())
    whole = FREE.log_likelihood(point, counted())
    np.testing.assert_allclose(FREE.log_likelihood(point, moments), 0.05 * whole, rtol=1e-9)
    line = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    light = FREE.collect(line, None, 1, np.full(3, 0.1))
    assert first_degenerate_group(FREE, FREE.maximum_likelihood(light), light) == (0, None)
    assert first_degenerate_group(TIED, TIED.maximum_likelihood(light), light) == (None, None)


@pytest.mark.parametrize("shape", [(1,), (2, 3)], ids=str)
def test_flat_groups_along_any_axes(shape):
    spread = np.broadcast_to(np.diag([1.0, 2.0]), (*shape, 2, 2)).copy()
    spread[(-1,) * len(shape)] = 1.0  # the last one, on a line
    mean, moments = np.zeros((*shape, 2)), counted(rows=ROWS[:, :2])
    found = zero_small_variances(FREE, MultivariateNormal(mean, spread), moments).covariance
    flat = np.zeros(shape, dtype=bool)
    flat[(-1,) * len(shape)] = True
    np.testing.assert_array_equal(found, np.where(flat[..., None, None], 0.0, spread))
    nowhere = kl_divergence(FREE, MultivariateNormal(mean, spread), MultivariateNormal(mean, np.zeros_like(spread)))
    assert nowhere.shape == shape
    assert np.isnan(nowhere).all()
