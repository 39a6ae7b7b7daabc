"""Totals: weights, sums and bases, and what may not be left of them."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, StatisticsError


@pytest.mark.parametrize(
    ("weight", "total", "text"),
    [
        ([-1.0], [0.0], "weight"),
        ([1.0], [np.nan], "total"),
        ([1.0, 1.0], [1.0, 1.0, 1.0], "3 columns, or 1 for all"),
        ([[1.0]], [1.0], "groups"),
        (1.0, [1.0], "weight"),
    ],
)
def test_totals_refuse(weight, total, text):
    with pytest.raises(DataError, match=text):
        tb.Totals(weight, total)


def test_a_log_base_may_be_negative_but_not_infinite():
    assert tb.Totals([1.0], [1.0], [-3.0]).log_base_measure == [-3.0]
    with pytest.raises(DataError, match="log_base"):
        tb.Totals([1.0], [1.0], [-np.inf])


def test_one_weight_for_all_columns_is_the_same_as_each_written_out():
    assert tb.Totals([5.0], [3.0, 2.0]) == tb.Totals([5.0, 5.0], [3.0, 2.0])


def test_shortage_of_totals_counts_the_weight_first():
    index, what, held, removed = tb.Totals([2.0], [9.0]).first_deficit(tb.Totals([3.0], [1.0]))
    assert (index, what, held, removed) == ((0,), "weight", 2.0, 3.0)


def test_a_total_may_not_outlive_its_weight():
    short = tb.Totals([2.0, 2.0], [5.0, 5.0]).first_deficit(tb.Totals([2.0, 2.0], [5.0, 4.0]))
    assert short == ((1,), "weight 0 but total", 5.0, 4.0)


def test_enough_is_no_shortage():
    assert tb.Totals([2.0], [5.0]).first_deficit(tb.Totals([1.0], [5.0])) is None


def test_no_base_is_left_without_weight():
    rest = tb.Totals([3.0], [2.0], [-1.5]) - tb.Totals([3.0], [2.0], [-1.5000001])
    assert not rest.log_base_measure.any()


def test_no_total_is_left_without_weight_in_its_own_group_only():
    held = tb.Totals([[3.0], [3.0]], [[2.0, 0.3], [2.0, 0.3]], [[-1.5], [-1.5]])
    gone = tb.Totals([[3.0], [1.0]], [[2.0, 0.1 + 0.2], [1.0, 0.1]], [[-1.5], [-0.5]])
    rest = held - gone
    np.testing.assert_allclose(rest.total, [[0.0, 0.0], [1.0, 0.2]], atol=1e-15)
    assert rest.total[0].tolist() == [0.0, 0.0]
    assert rest.log_base_measure.tolist() == [[0.0], [-1.0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_totals_are_finite(bad):
    for parts in (([bad], [1.0], [0.0]), ([1.0], [bad], [0.0]), ([1.0], [1.0], [bad])):
        with pytest.raises(DataError, match="partly negative or not finite"):
            tb.Totals(*parts)
    with pytest.raises(DataError, match="partly negative or not finite"):
        tb.Totals([1.0], [-1.0])
    assert tb.Totals([1.0], [1.0], [-7.0]).log_base_measure[0] == -7.0
    assert tb.Totals(np.zeros((2, 1)), np.zeros((2, 0))).n_columns == 0


def test_failures_that_only_one_side_stores():
    stored, derived = tb.Totals([5.0], [3.0], failures=[2.0]), tb.Totals([4.0], [3.0])
    np.testing.assert_array_equal((stored - derived).failures, [1.0])
    np.testing.assert_array_equal((tb.Totals([5.0], [3.0]) - tb.Totals([4.0], [3.0], failures=[1.0])).failures, [1.0])
    with pytest.raises(StatisticsError, match=r"failures -1 \(2 counted, 3 to remove\)"):
        stored - tb.Totals([5.0], [2.0])
