"""What default priors of measurements go by: the pooled spread, computed again from the rows."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError
from tallybayes.families.continuous import check_variance, least_variance, pooled_scale
from tallybayes.families.protocols.degenerate_estimates import add_unit_variance, constant_columns, remove_unit_variance

RNG = np.random.default_rng(1)
GROUP = np.repeat([0, 1, 2], [4, 5, 3])
ROWS = RNG.normal(size=(12, 2)) + 3 * GROUP[:, None]


def counted(rows, group=GROUP, n_groups=3):
    return tb.Gaussian().collect(rows, group, n_groups)


@pytest.mark.parametrize("together", [False, True])
def test_between_the_spread_of_all_rows_and_that_within_groups(together):
    found = pooled_scale(counted(ROWS), together=together)
    parts = [ROWS[k == GROUP] for k in range(3)]
    within = sum(((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in parts)
    total, freedom = ROWS.var(axis=0), 12 - 3
    far = np.max([(part.mean(axis=0) - ROWS.mean(axis=0)) ** 2 for part in parts], axis=0)
    if together:
        within, total = np.full(2, within.mean()), np.full(2, total.mean())
        far = np.max([((part.mean(axis=0) - ROWS.mean(axis=0)) ** 2).mean() for part in parts])
    v = within / freedom
    spread = v * np.minimum(total / v, 1000) ** (8 / (freedom + 8))
    np.testing.assert_allclose(found.mean, ROWS.mean(axis=0))
    np.testing.assert_allclose(found.spread, spread)
    np.testing.assert_allclose(found.strength, np.minimum(0.01, spread / far))


def test_groups_of_one_row_and_groups_far_apart():
    single = pooled_scale(counted(ROWS[:3], np.arange(3)))
    np.testing.assert_allclose(single.spread, ROWS[:3].var(axis=0))
    apart = ROWS + 1e5 * GROUP[:, None]
    found = pooled_scale(counted(apart))
    parts = [apart[k == GROUP] for k in range(3)]
    v = sum(((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in parts) / 9
    np.testing.assert_allclose(found.spread, v * 1000 ** (8 / 17), rtol=1e-9)
    far = np.max([(part.mean(axis=0) - apart.mean(axis=0)) ** 2 for part in parts], axis=0)
    np.testing.assert_allclose(found.strength, found.spread / far, rtol=1e-9)
    assert (found.strength < 0.01).all()


def test_columns_without_spread():
    rows = np.c_[ROWS[:, 0], np.full(12, 7.5)]
    moments = counted(rows)
    family = tb.Gaussian()
    assert constant_columns(family, moments).tolist() == [1]
    assert constant_columns(family, counted(ROWS)).tolist() == []
    assert family.is_continuous  # so that columns without spread have no density
    grown = add_unit_variance(family, moments, np.array([1]))
    np.testing.assert_allclose(grown.scatter - moments.scatter, [[0.0, 1.0]] * 3)
    assert add_unit_variance(family, moments, np.array([], dtype=int)) is moments
    # of a shared variance it would count among those of the others, unless there are none
    assert add_unit_variance(tb.SphericalGaussian(), moments, np.array([1])) is moments
    assert add_unit_variance(tb.SphericalGaussian(), moments, np.array([0, 1])) is not moments
    full = tb.MultivariateGaussian().collect(rows, GROUP, 3)
    added = add_unit_variance(tb.MultivariateGaussian(), full, np.array([1])).scatter - full.scatter
    np.testing.assert_allclose(added, np.broadcast_to([[0.0, 0.0], [0.0, 1.0]], (3, 2, 2)), atol=1e-12)
    within = np.where(GROUP == 1, 2.0, 5.0)[:, None]
    assert pooled_scale(counted(within)).spread[0] == pytest.approx(within.var() / 10)  # nothing varies within groups


def test_parameters_are_told_without_the_unit():
    family, full = tb.Gaussian(), tb.MultivariateGaussian()
    point = family.maximum_likelihood(counted(ROWS))
    assert remove_unit_variance(family, point, np.array([1])).variance[:, 1].tolist() == [0, 0, 0]
    assert remove_unit_variance(family, point, np.array([], dtype=int)) is point
    point = full.maximum_likelihood(full.collect(ROWS, GROUP, 3))
    found = remove_unit_variance(full, point, np.array([1])).covariance
    assert not found[:, 1, :].any()
    assert not found[:, :, 1].any()
    np.testing.assert_array_equal(found[:, 0, 0], point.covariance[:, 0, 0])


def test_refusals_name_the_column():
    moments = counted(np.c_[ROWS[:, 0], np.full(12, 7.5)])
    with pytest.raises(EstimateError, match="column 1"):
        check_variance(np.array([1.0, 0.0]), moments)
    with pytest.raises(DataError, match="column 0"):
        check_variance(np.array([0.0]), counted(np.zeros((0, 1)), np.zeros(0, dtype=int)))
    check_variance(np.array([1.0, 2.0]), moments)
    np.testing.assert_allclose(least_variance(counted(ROWS)), 1e-20 * ROWS.var(axis=0))


@pytest.mark.parametrize("mean", [1e9, 1.0, -1e-6])
def test_what_numbers_can_show_beside_their_mean_is_spread(mean):
    """Two numbers next to each other are; one of very many rows that is the next number to all others is not."""
    pair = np.array([[mean], [np.nextafter(mean, np.inf)]])
    group = np.zeros(2, dtype=int)
    assert constant_columns(tb.Gaussian(), tb.Gaussian().collect(pair, group, 1)).tolist() == []
    rare = tb.Gaussian().collect(pair, group, 1, np.array([1.0, 1e-10]))
    assert constant_columns(tb.Gaussian(), rare).tolist() == [0]


def test_a_variance_that_columns_share_is_told_unless_none_has_spread():
    family = tb.SphericalGaussian()
    point = family.maximum_likelihood(counted(ROWS))
    assert remove_unit_variance(family, point, np.array([1])) is point
    assert not remove_unit_variance(family, point, np.array([0, 1])).variance.any()


def test_groups_without_rows_change_nothing():
    for scale in (1.0, 1e-3):
        three, five = (pooled_scale(counted(scale * ROWS, n_groups=n)) for n in (3, 5))
        for one, other in zip(three, five, strict=True):
            np.testing.assert_array_equal(one, other)


def test_weights_of_less_than_a_row():
    light = pooled_scale(tb.Gaussian().collect(ROWS, GROUP, 3, np.full(12, 0.05)))
    np.testing.assert_allclose(light.spread, ROWS.var(axis=0))  # no freedom within groups: that of all rows
    some = pooled_scale(tb.Gaussian().collect(ROWS, GROUP, 3, np.full(12, 0.3)))  # 3.6 rows in 3 groups
    within = 0.3 * sum(((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in (ROWS[k == GROUP] for k in range(3)))
    v = within / 0.6
    np.testing.assert_allclose(some.spread, v * np.minimum(ROWS.var(axis=0) / v, 1000) ** (8 / 8.6))
    half = tb.Gaussian().collect(ROWS[:3], GROUP[:3], 1, np.full(3, 0.5))
    np.testing.assert_allclose(least_variance(half), 1e-20 * ROWS[:3].var(axis=0))


def test_rounding_of_products_is_no_spread_within_groups():
    """It is left by float64 products where a group of one row remains, once its other rows are forgotten."""
    alone = tb.MultivariateGaussian().collect(ROWS[::4], np.array([0, 1, 2]), 3)
    left = alone.with_scatter(np.broadcast_to(3e-16 * np.eye(2), (3, 2, 2)))
    for expected, found in zip(pooled_scale(alone), pooled_scale(left), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
