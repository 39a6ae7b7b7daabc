"""What all statistics have in common: equality, sums, scales, groups, and what cannot be taken out."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, StatisticsError


def test_statistics_own_their_memory():
    table = np.array([1.0, 2.0])
    counts = tb.Counts(table)
    table[0] = 99.0
    assert counts.table[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        counts.table[0] = 5.0
    totals = tb.Totals([1.0], [1.0])
    with pytest.raises(ValueError, match="read-only"):
        totals.total[0] = 5.0


def test_other_numbers_of_groups():
    assert tb.Counts([[1.0], [1.0]]) != tb.Counts([[1.0]])
    assert tb.Totals([[1.0], [1.0]], [[1.0], [1.0]]) != tb.Totals([[1.0]], [[1.0]])


def test_other_numbers_of_columns():
    assert tb.Totals([5.0], [3.0, 3.0]) != tb.Totals([5.0], [3.0])
    assert tb.Counts([1.0, 1.0], [1, 1]) != tb.Counts([1.0, 1.0], [2])


def test_other_types():
    assert tb.Counts([1.0]) != tb.Totals([1.0], [1.0])
    assert tb.Counts([1.0]) != 1.0


def test_unlike_statistics_do_not_add():
    with pytest.raises(StatisticsError, match="numbers of levels"):
        tb.Counts([1.0, 2.0]) + tb.Counts([1.0])
    with pytest.raises(StatisticsError, match="numbers of groups"):
        tb.Counts([[1.0]]) + tb.Counts([[1.0], [2.0]])
    with pytest.raises(StatisticsError, match="numbers of columns"):
        tb.Totals([1.0], [1.0]) + tb.Totals([1.0], [1.0, 2.0])
    with pytest.raises(TypeError):
        tb.Counts([1.0]) + tb.Totals([1.0], [1.0])


def test_sum_starts_from_nothing():
    assert sum([tb.Counts([1.0]), tb.Counts([2.0])]) == tb.Counts([3.0])


@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
def test_scale_refuses_what_is_no_weight(factor):
    for statistic in (tb.Counts([1.0]), tb.Totals([1.0], [1.0]), tb.Moments.of([[1.0]])):
        with pytest.raises(DataError, match="factor"):
            statistic.scale(factor)


def test_scale_multiplies_every_part():
    assert tb.Totals([4.0], [2.0], [-1.0]).scale(2.5) == tb.Totals([10.0], [5.0], [-2.5])
    assert tb.Counts([4.0, 0.0]).scale(0.0) == tb.Counts([0.0, 0.0])


def test_pooled_sums_all_group_axes():
    table = np.arange(24.0).reshape(2, 3, 4)
    assert tb.Counts(table).pool_groups() == tb.Counts(table.sum(axis=(0, 1)))
    alone = tb.Counts([1.0])
    assert alone.pool_groups() is alone


def test_take_reorders_drops_and_inserts_groups():
    counts = tb.Counts([[1.0], [2.0], [3.0]])
    assert counts.take(0, np.array([2, -1, 0])) == tb.Counts([[3.0], [0.0], [1.0]])
    both = tb.Counts(np.arange(6.0).reshape(2, 3, 1))
    assert both.take(1, np.array([1, -1])) == tb.Counts([[[1.0], [0.0]], [[4.0], [0.0]]])


def test_take_from_no_groups_gives_empty_ones():
    assert tb.Counts(np.zeros((0, 2))).take(0, np.array([-1, -1])) == tb.Counts(np.zeros((2, 2)))


def test_nothing_is_changed():
    held = tb.Counts([2.0, 3.0])
    with pytest.raises(StatisticsError):
        held - tb.Counts([0.0, 4.0])
    assert held == tb.Counts([2.0, 3.0])


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_shrunk_groups_keep_their_weight_and_the_total(fraction):
    counts = tb.Counts([[3.0, 1.0], [0.0, 12.0]])
    totals = tb.Totals([[4.0], [12.0]], [[1.0], [6.0]])
    shrunk = counts.shrink_groups(fraction)
    assert shrunk.table == pytest.approx((1 - fraction) * counts.table + fraction * np.outer([4, 12], [3, 13]) / 16)
    assert shrunk.table.sum(axis=0) == pytest.approx(counts.table.sum(axis=0))
    mean = (shrunk := totals.shrink_groups(fraction)).total[:, 0] / shrunk.weight[:, 0]
    assert mean == pytest.approx((1 - fraction) * np.array([0.25, 0.5]) + fraction * 7 / 16)
    assert shrunk.weight[:, 0] == pytest.approx([4, 12])
