"""Edges found in the data: quantiles, and where the groups change."""

import math

import numpy as np
import pytest

from tallybayes.families._shared.bin_edges import (
    ValueCounts,
    mdl_edges,
    mdl_edges_by_fold,
    quantile_edges,
    with_outer_edges,
)


def counts(values, cuts):
    return np.bincount(np.searchsorted(cuts, values, side="right"), minlength=len(cuts) + 1)


def test_quantile_edges_share_the_weight():
    values = np.random.default_rng(0).normal(size=1000)
    for n_bins in (4, 8, 16):
        cuts = quantile_edges(values, None, n_bins)
        assert len(cuts) == n_bins - 1
        assert np.ptp(counts(values, cuts)) <= 12  # they are rounded
        np.testing.assert_allclose(cuts, np.quantile(values, np.arange(1, n_bins) / n_bins), atol=0.01)


def test_edges_have_three_digits_of_the_spread():
    rng = np.random.default_rng(1)
    for scale in (1e-300, 1e-9, 1.0, 250.0, 1e12):
        values = rng.normal(3, 1, 500) * scale
        step = 10.0 ** (math.floor(math.log10(np.subtract(*np.quantile(values, [0.75, 0.25])))) - 2)
        for cuts in (quantile_edges(values, None, 8), mdl_edges(values, (values > values.mean()).astype(int), 2)):
            np.testing.assert_allclose(np.array(cuts) / step, np.round(np.array(cuts) / step), atol=1e-6)
    far = quantile_edges(1e9 + rng.normal(size=500), None, 4)
    assert len(far) == 3
    assert not set(far) & set(values)


def test_heavy_values_have_bins_of_their_own():
    values = np.array([0.0] * 90 + list(range(101, 111)))
    cuts = quantile_edges(values, None, 4)
    assert cuts[0] == 0.5
    assert len(cuts) == 3
    inside = counts(values, cuts).tolist()
    assert inside[0] == 90
    assert max(inside[1:]) <= 4
    measured = quantile_edges(np.concatenate([np.zeros(90), np.linspace(2.25, 3.0, 10)]), None, 4)
    assert measured[0] == 1.12  # halfway to the next value, rounded
    assert quantile_edges(np.array([1, 2, 2, 2, 3]), None, 4) == (1.5, 2.5)


def test_edges_of_whole_numbers_are_halves_so_that_widths_count_values():
    rng = np.random.default_rng(4)
    for _ in range(50):
        values = np.round(np.exp(rng.normal(2, 2, 60)))
        groups = rng.integers(0, 2, 60) + (values > 9)
        for cuts in (*(quantile_edges(values, None, n) for n in (4, 8, 16)), mdl_edges(values, groups, 3)):
            assert (np.array(cuts) % 1 == 0.5).all()
            assert (counts(values, cuts)[[0, -1]] > 0).all()


def by_hand(values, groups):
    """Fayyad and Irani's cuts, as places in the sorted values, one class at a time."""

    def entropy(labels):
        shares = np.bincount(labels) / len(labels)
        return -sum(share * math.log2(share) for share in shares if share)

    order = np.argsort(values, kind="stable")
    values, groups = values[order], groups[order]

    def within(first, last):
        here, best = groups[first:last], None
        for cut in range(first + 1, last):
            if values[cut] > values[cut - 1]:
                left, right = groups[first:cut], groups[cut:last]
                rest = (len(left) * entropy(left) + len(right) * entropy(right)) / len(here)
                if best is None or rest < best[0] - 1e-12:
                    best = rest, cut, left, right
        if best is None:
            return []
        rest, cut, left, right = best
        k, n = [len(set(part.tolist())) for part in (here, left, right)], len(here)
        price = math.log2(3 ** k[0] - 2) - (k[0] * entropy(here) - k[1] * entropy(left) - k[2] * entropy(right))
        if entropy(here) - rest <= (math.log2(n - 1) + price) / n:
            return []
        return [*within(first, cut), (values[cut - 1] + values[cut]) / 2, *within(cut, last)]

    return within(0, len(values)) if len(values) > 2 else []


@pytest.mark.parametrize("apart", [0.0, 0.5, 1.0, 3.0])
def test_cuts_are_those_of_fayyad_and_irani(apart):
    rng = np.random.default_rng(round(10 * apart))
    for n in (1, 2, 3, 40, 150):
        groups = rng.integers(0, 3, n)
        values = rng.normal(groups * apart) if n < 150 else rng.poisson(3 + 5 * apart * groups).astype(float)
        found, expected = mdl_edges(values, groups, 4), by_hand(values, groups)
        np.testing.assert_allclose(found, expected, atol=0.01 if n < 150 else 0.5)
        assert np.searchsorted(np.sort(values), found).tolist() == np.searchsorted(np.sort(values), expected).tolist()


def test_weights_are_repetitions_and_order_does_not_matter():
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 3, 200)
    values, times = np.round(rng.normal(groups), 2), rng.integers(0, 3, 200)
    order = rng.permutation(200)
    repeated, their = np.repeat(values, times), np.repeat(groups, times)
    found = mdl_edges(values, groups, 3, times.astype(float))
    assert len(found) > 0
    assert found == mdl_edges(repeated, their, 3) == mdl_edges(values[order], groups[order], 3, times[order])
    parts = mdl_edges(values, groups, 3, times * 0.999999)  # no whole counts: the logarithms are not looked up
    assert found == parts
    assert quantile_edges(values, times, 8) == quantile_edges(repeated, None, 8)


def test_many_values_are_cut_where_the_groups_change():
    rng = np.random.default_rng(6)
    values = rng.random(20_000)
    groups = np.searchsorted([0.123, 0.5, 0.87], values)
    np.testing.assert_allclose(mdl_edges(values, groups, 4), (0.123, 0.5, 0.87), atol=0.001)
    assert mdl_edges(values, rng.integers(0, 4, 20_000), 4) == ()


@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0, 2.0]])
def test_nothing_to_cut(values):
    assert quantile_edges(np.array(values), None, 4) == ()
    assert mdl_edges(np.array(values), np.arange(len(values)), 3) == ()


def test_very_many_groups():
    values = np.arange(2000.0)
    assert len(mdl_edges(values, (values // 2).astype(int), 1000)) < 1000


def test_outer_bins_are_open_but_at_values_that_many_share():
    def cells(values):
        return ValueCounts(*(part.astype(float) for part in np.unique(values, return_counts=True)))

    assert with_outer_edges(cells(np.random.default_rng(0).normal(size=100)), (0.0,)) == (None, 0.0, None)
    assert with_outer_edges(cells([0] * 90 + list(range(1, 11))), (0.5, 4.5)) == (-0.5, 0.5, 4.5, None)
    assert with_outer_edges(cells([0.25] * 90 + [0.5, 1.5] + [2.5] * 10), (1.0,)) == (0.25, 1.0, 2.5)
    assert with_outer_edges(cells([0.25] * 9 + [2.5] * 10), (2.5,)) == (
        0.25,
        2.5,
        None,
    )  # the cut was rounded to the value


def test_folds_are_cut_as_if_they_were_alone():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 200)
    values = np.round(rng.normal(groups * 3.0, 1.0), 1)
    fold, weight = np.arange(200) % 4, np.where(np.arange(200) % 7 == 0, 0.0, 2.0)
    for weights in (None, weight):
        *without, whole = mdl_edges_by_fold(values, groups, 2, fold, weights)
        there = np.ones(200, bool) if weights is None else weights > 0
        assert whole == mdl_edges(values, groups, 2, weights)
        for k, cuts in enumerate(without):
            kept = there & (fold != k)
            own = None if weights is None else weights[kept]
            assert cuts == mdl_edges(values[kept], groups[kept], 2, own)
    (alone,) = mdl_edges_by_fold(values, groups, 2, np.zeros(200, int))
    assert alone == mdl_edges(values, groups, 2)


def shared_by_hand(weight, n_bins):
    """Where weights are cut: heavy values apart, and the others, one by one, at the nearer end of every quantile."""
    total, last = sum(weight), len(weight) - 1
    heavy = [one > total / n_bins for one in weight]
    light = [0.0 if is_heavy else one for one, is_heavy in zip(weight, heavy, strict=True)]
    cuts = {place + side for place, is_heavy in enumerate(heavy) if is_heavy for side in (0, 1)}
    n_light = n_bins - sum(heavy)
    for k in range(1, n_light):
        wanted, before = sum(light) * k / n_light, 0.0
        for place, one in enumerate(light):
            if before + one >= wanted and sum(light) > 0:
                cuts.add(place if wanted - before < before + one - wanted else place + 1)
                break
            before += one
    return sorted(cut for cut in cuts if 0 < cut <= last)


@pytest.mark.parametrize("unit", [1.0, 0.0625])
@pytest.mark.parametrize("n_bins", [2, 3, 4, 6])
def test_weight_is_shared_as_by_hand(n_bins, unit):
    rng = np.random.default_rng(n_bins)
    for _ in range(60):
        weight = rng.integers(1, 6, rng.integers(1, 9)) * rng.choice([1, 1, 1, 7], 1)
        weight[rng.integers(len(weight))] += rng.choice([0, 0, 9, 40])
        weight = weight * unit
        expected = shared_by_hand(weight.tolist(), n_bins)
        places = np.arange(len(weight), dtype=float)
        assert quantile_edges(places, weight, n_bins) == tuple(cut - 0.5 for cut in expected)
        assert quantile_edges(places + 0.25, weight, n_bins) == tuple(cut - 0.25 for cut in expected)


def test_the_nearer_end_of_a_value_is_cut():
    for weight, cut in (([4, 4, 2], 1.5), ([2, 4, 4], 2.5), ([3, 4, 3], 2.5), ([5, 1, 2, 2], 1.5), ([1, 3, 3, 3], 2.5)):
        assert quantile_edges(np.arange(1.0, len(weight) + 1), np.array(weight, float), 2) == (cut,)


def test_the_middle_half_tells_the_spread():
    def spread(values, weight):
        return ValueCounts(np.array(values, float), np.array(weight, float)).interquartile_range

    assert spread(range(8), [1] * 8) == 4.0  # of 8, the second and the sixth
    assert spread([0, 1, 3, 10], [1, 1, 1, 1]) == 3.0
    assert spread([0, 1, 3, 10], [1, 1, 1, 9]) == 7.0
    assert spread([0, 1, 3, 10], [4, 9, 1, 1]) == 1.0
    assert spread([0, 1, 3, 10], [4, 5, 4, 5]) == 9.0  # of 18, four and a half and thirteen and a half
    assert spread([2, 5, 9], [1, 8, 1]) == 7.0  # one value has half of the weight: from end to end
    assert spread([-3, 5, 9, 10], [1, 8, 0.5, 0.5]) == 13.0


def test_whole_numbers_are_those_whose_halves_can_be_told():
    def whole(*values):
        return ValueCounts(np.array(values, float), np.ones(len(values))).is_integer

    assert whole(3.0)
    assert whole(-4.0, 0.0, 2.0**50 - 1)
    assert not whole(0.0, 2.0**50)
    assert not whole(-(2.0**50), 0.0, 1.0)
    assert not whole(0.5, 1.0)
    assert not whole(1.0, 1.5, 2.0)
    assert not whole()


def test_ends_are_closed_where_a_sixteenth_lies_at_them():
    def cells(values, weight):
        return ValueCounts(np.array(values, float), np.array(weight, float))

    sixteen = cells(range(16), [1] * 16)
    assert with_outer_edges(sixteen, (4.5,)) == (-0.5, 4.5, 15.5)
    assert with_outer_edges(cells(range(17), [1] * 17), (4.5,)) == (None, 4.5, None)
    assert with_outer_edges(cells([0, 1, 2], [1, 14.5, 1]), (0.5,)) == (
        None,
        0.5,
        None,
    )  # a little less than a sixteenth
    assert with_outer_edges(cells([0, 1, 20], [1, 1, 30]), (0.5,)) == (None, 0.5, 20.5)
    assert with_outer_edges(cells([0.25, 1, 2.5], [5, 5, 5]), (0.25, 1.5)) == (
        None,
        0.25,
        1.5,
        2.5,
    )  # no bin without width


def test_rows_of_no_weight_move_no_cut():
    values = np.array([1.0, 1.2, 1.4, 1.1, 2.5, 2.6, 2.4, 2.2, 1.9])
    groups, weight = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1]), np.array([1.0] * 8 + [0.0])
    assert mdl_edges(values, groups, 2, weight) == (1.8,)
    assert quantile_edges(values, weight, 2) == (1.8,)


def test_two_folds_are_cut_without_each_other():
    values = np.concatenate([np.linspace(0.05, 1.0, 20), np.linspace(3.05, 4.0, 20)])
    groups = (values > (2.0)).astype(int)
    values = np.concatenate([values, values + 10])
    fold = np.repeat([0, 1], 40)
    first, second, both = mdl_edges_by_fold(values, np.tile(groups, 2), 2, fold)
    assert first == pytest.approx((12.0,), abs=0.1)
    assert second == pytest.approx((2.0,), abs=0.1)
    assert len(both) == 3


def test_cuts_that_fall_on_a_value_leave_something_on_both_sides():
    assert quantile_edges(np.array([1.0, 1.0001, 2.5, 9.5]), None, 4) == (
        1.75,
        6.0,
    )  # 1.00005 is 1, below which is none
    assert quantile_edges(np.array([0.5, 5.25, 9.9999, 10.0]), None, 4)[-1] == 10.0
    (zero,) = quantile_edges(np.array([-1.5, -0.001, 0.0005, 1.5]), None, 2)
    assert math.copysign(1.0, zero) == 1.0  # 0, not −0
