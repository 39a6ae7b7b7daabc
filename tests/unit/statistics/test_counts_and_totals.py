"""Counts, Totals and the flat axis of levels."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, StatisticsError
from tallybayes.statistics.segments import Segments


class TestSegments:
    def test_empty_columns_in_every_place(self):
        segments = Segments([0, 2, 0, 0, 3, 0])
        cells = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [0.0, -1.0, 7.0, 1.0, 1.0]])
        np.testing.assert_array_equal(segments.sum(cells), [[0, 3, 0, 0, 12, 0], [0, -1, 0, 0, 9, 0]])
        np.testing.assert_array_equal(
            segments.max(cells),
            [[-np.inf, 2, -np.inf, -np.inf, 5, -np.inf], [-np.inf, 0, -np.inf, -np.inf, 7, -np.inf]],
        )
        assert [part.shape for part in segments.split(cells)] == [(2, 0), (2, 2), (2, 0), (2, 0), (2, 3), (2, 0)]
        assert (segments.n_columns, segments.n_cells) == (6, 5)

    @pytest.mark.parametrize("sizes", [[], [0], [0, 0]])
    def test_no_cells_at_all(self, sizes):
        segments = Segments(sizes)
        assert segments.n_cells == 0
        np.testing.assert_array_equal(segments.sum(np.zeros((4, 0))), np.zeros((4, len(sizes))))
        np.testing.assert_array_equal(segments.max(np.zeros((4, 0))), np.full((4, len(sizes)), -np.inf))

    def test_spread_undoes_the_split(self):
        segments = Segments([1, 0, 3])
        np.testing.assert_array_equal(segments.spread(np.array([5.0, 6.0, 7.0])), [5, 7, 7, 7])

    def test_sums_agree_with_a_loop(self):
        rng = np.random.default_rng(0)
        sizes = rng.integers(0, 5, 40)
        segments, cells = Segments(sizes), rng.random((3, int(sizes.sum())))
        loop = np.stack([part.sum(axis=-1) for part in segments.split(cells)], axis=-1)
        np.testing.assert_allclose(segments.sum(cells), loop, rtol=1e-14)

    def test_equality_and_hash_go_by_sizes(self):
        assert Segments([1, 2]) == Segments((1, 2))
        assert hash(Segments([1, 2])) == hash(Segments((1, 2)))
        assert Segments([1, 2]) != Segments([2, 1])


class TestConstructors:
    @pytest.mark.parametrize("table", [[-1.0, 2.0], [np.nan], [np.inf, 1.0]])
    def test_counts_refuse_what_is_no_count(self, table):
        with pytest.raises(DataError, match="counts of at least 0"):
            tb.Counts(table)

    def test_counts_refuse_sizes_that_do_not_add_up(self):
        with pytest.raises(DataError, match=r"\(\*given, 4\)"):
            tb.Counts([1.0, 2.0, 3.0], [2, 2])

    def test_counts_refuse_a_single_number(self):
        with pytest.raises(DataError, match="at least one axis"):
            tb.Counts(3.0)

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
    def test_totals_refuse(self, weight, total, text):
        with pytest.raises(DataError, match=text):
            tb.Totals(weight, total)

    def test_a_log_base_may_be_negative_but_not_infinite(self):
        assert tb.Totals([1.0], [1.0], [-3.0]).log_base == [-3.0]
        with pytest.raises(DataError, match="log_base"):
            tb.Totals([1.0], [1.0], [-np.inf])

    def test_statistics_own_their_memory(self):
        table = np.array([1.0, 2.0])
        counts = tb.Counts(table)
        table[0] = 99.0
        assert counts.table[0] == 1.0
        with pytest.raises(ValueError, match="read-only"):
            counts.table[0] = 5.0
        totals = tb.Totals([1.0], [1.0])
        with pytest.raises(ValueError, match="read-only"):
            totals.total[0] = 5.0


class TestEquality:
    """Broadcasting must not make unlike things equal."""

    def test_other_numbers_of_groups(self):
        assert tb.Counts([[1.0], [1.0]]) != tb.Counts([[1.0]])
        assert tb.Totals([[1.0], [1.0]], [[1.0], [1.0]]) != tb.Totals([[1.0]], [[1.0]])

    def test_other_numbers_of_columns(self):
        assert tb.Totals([5.0], [3.0, 3.0]) != tb.Totals([5.0], [3.0])
        assert tb.Counts([1.0, 1.0], [1, 1]) != tb.Counts([1.0, 1.0], [2])

    def test_one_weight_for_all_columns_is_the_same_as_each_written_out(self):
        assert tb.Totals([5.0], [3.0, 2.0]) == tb.Totals([5.0, 5.0], [3.0, 2.0])

    def test_other_types(self):
        assert tb.Counts([1.0]) != tb.Totals([1.0], [1.0])
        assert tb.Counts([1.0]) != 1.0


class TestAlgebra:
    def test_unlike_statistics_do_not_add(self):
        with pytest.raises(StatisticsError, match="numbers of levels"):
            tb.Counts([1.0, 2.0]) + tb.Counts([1.0])
        with pytest.raises(StatisticsError, match="numbers of groups"):
            tb.Counts([[1.0]]) + tb.Counts([[1.0], [2.0]])
        with pytest.raises(StatisticsError, match="numbers of columns"):
            tb.Totals([1.0], [1.0]) + tb.Totals([1.0], [1.0, 2.0])
        with pytest.raises(TypeError):
            tb.Counts([1.0]) + tb.Totals([1.0], [1.0])

    def test_sum_starts_from_nothing(self):
        assert sum([tb.Counts([1.0]), tb.Counts([2.0])]) == tb.Counts([3.0])

    @pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
    def test_scale_refuses_what_is_no_weight(self, factor):
        for statistic in (tb.Counts([1.0]), tb.Totals([1.0], [1.0]), tb.Moments.of([[1.0]])):
            with pytest.raises(DataError, match="factor"):
                statistic.scale(factor)

    def test_scale_multiplies_every_part(self):
        assert tb.Totals([4.0], [2.0], [-1.0]).scale(2.5) == tb.Totals([10.0], [5.0], [-2.5])
        assert tb.Counts([4.0, 0.0]).scale(0.0) == tb.Counts([0.0, 0.0])

    def test_pooled_sums_all_group_axes(self):
        table = np.arange(24.0).reshape(2, 3, 4)
        assert tb.Counts(table).pooled() == tb.Counts(table.sum(axis=(0, 1)))
        alone = tb.Counts([1.0])
        assert alone.pooled() is alone

    def test_take_reorders_drops_and_inserts_groups(self):
        counts = tb.Counts([[1.0], [2.0], [3.0]])
        assert counts.take(0, np.array([2, -1, 0])) == tb.Counts([[3.0], [0.0], [1.0]])
        both = tb.Counts(np.arange(6.0).reshape(2, 3, 1))
        assert both.take(1, np.array([1, -1])) == tb.Counts([[[1.0], [0.0]], [[4.0], [0.0]]])

    def test_take_from_no_groups_gives_empty_ones(self):
        assert tb.Counts(np.zeros((0, 2))).take(0, np.array([-1, -1])) == tb.Counts(np.zeros((2, 2)))

    def test_take_cells_moves_levels(self):
        counts = tb.Counts([[1.0, 2.0, 3.0]], [2, 1])
        moved = counts.take_cells(np.array([1, -1, 0, 2]), Segments([3, 1]))
        assert moved == tb.Counts([[2.0, 0.0, 1.0, 3.0]], [3, 1])


class TestForgetting:
    def test_the_message_names_group_and_amounts(self):
        with pytest.raises(StatisticsError, match=r"group 1 would have count -3 \(2 counted, 5 to remove\)"):
            tb.Counts([[4.0], [2.0]]) - tb.Counts([[4.0], [5.0]])

    def test_nothing_is_changed(self):
        held = tb.Counts([2.0, 3.0])
        with pytest.raises(StatisticsError):
            held - tb.Counts([0.0, 4.0])
        assert held == tb.Counts([2.0, 3.0])

    def test_shortage_of_totals_counts_the_weight_first(self):
        index, what, held, removed = tb.Totals([2.0], [9.0]).shortage(tb.Totals([3.0], [1.0]))
        assert (index, what, held, removed) == ((0,), "weight", 2.0, 3.0)

    def test_a_total_may_not_outlive_its_weight(self):
        short = tb.Totals([2.0, 2.0], [5.0, 5.0]).shortage(tb.Totals([2.0, 2.0], [5.0, 4.0]))
        assert short == ((1,), "weight 0 but total", 5.0, 4.0)

    def test_enough_is_no_shortage(self):
        assert tb.Totals([2.0], [5.0]).shortage(tb.Totals([1.0], [5.0])) is None

    def test_fractional_cells_snap_to_zero(self):
        held = tb.Counts([0.1]) + tb.Counts([0.2])
        assert held.table[0] != 0.3  # the rounding that snapping is for
        assert (held - tb.Counts([0.3])).table[0] == 0.0
        assert (held - tb.Counts([0.1]) - tb.Counts([0.2])).table[0] == 0.0

    def test_whole_cells_never_snap(self):
        assert (tb.Counts([1e12 + 1]) - tb.Counts([1e12])).table[0] == 1.0

    def test_a_fraction_well_above_rounding_stays(self):
        assert (tb.Counts([0.5]) - tb.Counts([0.25])).table[0] == 0.25

    def test_no_base_is_left_without_weight(self):
        rest = tb.Totals([3.0], [2.0], [-1.5]) - tb.Totals([3.0], [2.0], [-1.5000001])
        assert not rest.log_base.any()

    def test_no_total_is_left_without_weight_in_its_own_group_only(self):
        held = tb.Totals([[3.0], [3.0]], [[2.0, 0.3], [2.0, 0.3]], [[-1.5], [-1.5]])
        gone = tb.Totals([[3.0], [1.0]], [[2.0, 0.1 + 0.2], [1.0, 0.1]], [[-1.5], [-0.5]])
        rest = held - gone
        np.testing.assert_allclose(rest.total, [[0.0, 0.0], [1.0, 0.2]], atol=1e-15)
        assert rest.total[0].tolist() == [0.0, 0.0]
        assert rest.log_base.tolist() == [[0.0], [-1.0]]

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_totals_are_finite(self, bad):
        for parts in (([bad], [1.0], [0.0]), ([1.0], [bad], [0.0]), ([1.0], [1.0], [bad])):
            with pytest.raises(DataError, match="partly negative or not finite"):
                tb.Totals(*parts)
        with pytest.raises(DataError, match="partly negative or not finite"):
            tb.Totals([1.0], [-1.0])
        assert tb.Totals([1.0], [1.0], [-7.0]).log_base[0] == -7.0
        assert tb.Totals(np.zeros((2, 1)), np.zeros((2, 0))).n_columns == 0
