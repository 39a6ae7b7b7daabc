"""Counts: what they refuse, and what is left when some are taken out."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, StatisticsError
from tallybayes.statistics.counts import Segments


@pytest.mark.parametrize("table", [[-1.0, 2.0], [np.nan], [np.inf, 1.0]])
def test_counts_refuse_what_is_no_count(table):
    with pytest.raises(DataError, match="counts of at least 0"):
        tb.Counts(table)


def test_counts_refuse_sizes_that_do_not_add_up():
    with pytest.raises(DataError, match=r"\(\*given, 4\)"):
        tb.Counts([1.0, 2.0, 3.0], [2, 2])


def test_counts_refuse_a_single_number():
    with pytest.raises(DataError, match="at least one axis"):
        tb.Counts(3.0)


def test_take_cells_moves_levels():
    counts = tb.Counts([[1.0, 2.0, 3.0]], [2, 1])
    moved = counts.take_cells(np.array([1, -1, 0, 2]), Segments([3, 1]))
    assert moved == tb.Counts([[2.0, 0.0, 1.0, 3.0]], [3, 1])


def test_the_message_names_group_and_amounts():
    with pytest.raises(StatisticsError, match=r"group 1 would have count -3 \(2 counted, 5 to remove\)"):
        tb.Counts([[4.0], [2.0]]) - tb.Counts([[4.0], [5.0]])


def test_fractional_cells_snap_to_zero():
    held = tb.Counts([0.1]) + tb.Counts([0.2])
    assert held.table[0] != 0.3  # the rounding that snapping is for
    assert (held - tb.Counts([0.3])).table[0] == 0.0
    assert (held - tb.Counts([0.1]) - tb.Counts([0.2])).table[0] == 0.0


def test_whole_cells_never_snap():
    assert (tb.Counts([1e12 + 1]) - tb.Counts([1e12])).table[0] == 1.0


def test_a_fraction_well_above_rounding_stays():
    assert (tb.Counts([0.5]) - tb.Counts([0.25])).table[0] == 0.25
