"""Moments: anchors, exactness, and what may be taken out."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes import kernels
from tallybayes.errors import DataError, StatisticsError
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import choose_anchor
from tests.unit.kernels.kernel_cases import needs_compiled


def exact_moments(values) -> tuple[float, float]:
    """Mean and scatter of some floats in exact arithmetic, rounded once."""
    numbers = [Fraction(float(value)) for value in values]
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return float(mean), float(sum(((x - mean) ** 2 for x in numbers), Fraction(0)))


class TestAnchor:
    def test_near_zero_there_is_none(self):
        rng = np.random.default_rng(0)
        np.testing.assert_array_equal(choose_anchor(rng.normal(5.0, 1.0, (100, 3))), np.zeros(3))

    @pytest.mark.parametrize("offset", [1e9, -1e9, 1e150, -1e150, 1e-250, 2.0**40])
    def test_far_from_zero_it_is_within_a_thousandth(self, offset):
        column = offset * (1 + 1e-9 * np.random.default_rng(1).standard_normal((500, 1)))
        anchor = choose_anchor(column)[0]
        assert abs(anchor - offset) <= abs(offset) / 1024
        mantissa, _ = np.frexp(anchor)
        assert mantissa * 2**11 == np.round(mantissa * 2**11)  # on a grid of powers of two: eleven bits at most

    def test_shards_of_one_table_choose_the_same(self):
        column = 1e9 + np.random.default_rng(2).standard_normal((4000, 1))
        chosen = {float(choose_anchor(part)[0]) for part in np.array_split(column, 40)}
        assert len(chosen) == 1
        assert chosen != {0.0}

    def test_only_the_first_rows_matter(self):
        column = np.concatenate([np.full(1024, 1e6), np.zeros(5000)])[:, None]
        assert choose_anchor(column)[0] != 0.0

    def test_a_constant_column_is_far_a_zero_one_is_not(self):
        np.testing.assert_array_equal(choose_anchor(np.array([[3.0, 0.0]] * 5)), [3.0, 0.0])

    def test_missing_and_infinite_cells_are_passed_over(self):
        column = np.array([[np.nan], [1e9], [np.inf], [1e9], [-np.inf], [np.nan], [1e9]])
        assert abs(choose_anchor(column)[0] - 1e9) <= 1e9 / 1024
        np.testing.assert_array_equal(choose_anchor(np.full((4, 2), np.nan)), np.zeros(2))
        np.testing.assert_array_equal(choose_anchor(np.full((4, 2), np.inf)), np.zeros(2))

    def test_no_rows_give_none_and_one_row_its_own(self):
        np.testing.assert_array_equal(choose_anchor(np.zeros((0, 2))), np.zeros(2))
        np.testing.assert_allclose(choose_anchor(np.array([[1e12, 0.0]])), [1e12, 0.0], rtol=1 / 1024)

    def test_rows_left_out_are_not_looked_at(self):
        column = np.array([[1e9], [5.0], [1e9], [-3.0], [4.0]])
        np.testing.assert_array_equal(choose_anchor(column, weight=np.array([0.0, 1, 0, 1, 1])), [0.0])
        np.testing.assert_array_equal(choose_anchor(column, group=np.array([-1, 0, -1, 1, 0])), [0.0])
        far = choose_anchor(column, weight=np.array([1.0, 0, 1, 0, 0]))
        np.testing.assert_array_equal(far, choose_anchor(column[[0, 2]]))

    @pytest.mark.parametrize("size", [np.finfo(float).max, 5e-324, np.finfo(float).tiny])
    def test_the_ends_of_the_range_give_a_finite_anchor(self, size):
        assert np.isfinite(choose_anchor(np.array([[size], [size], [size]]))).all()
        assert np.isfinite(choose_anchor(np.array([[size], [-size], [size]]))).all()

    def test_columns_apart_or_in_one_array(self):
        table = np.array([[1e9, 1.0], [1e9 + 1, 2.0], [1e9 + 2, 3.0]])
        np.testing.assert_array_equal(choose_anchor(list(table.T)), choose_anchor(table))
        np.testing.assert_array_equal(choose_anchor([]), np.zeros(0))
        np.testing.assert_array_equal(choose_anchor([np.zeros(0), np.zeros(0)]), np.zeros(2))


class TestConstruction:
    def test_of_agrees_with_exact_arithmetic(self):
        rng = np.random.default_rng(3)
        values = 1e9 + rng.standard_normal(200) * [[1.0], [1e-3]]
        moments = tb.Moments.of(values.T)
        for column, (mean, scatter) in enumerate(map(exact_moments, values)):
            assert moments.mean[column] == pytest.approx(mean, rel=1e-16)
            assert moments.scatter[column] == pytest.approx(scatter, rel=1e-15)

    def test_of_needs_two_axes(self):
        with pytest.raises(DataError, match=r"\(rows, columns\)"):
            tb.Moments.of([1.0, 2.0])

    def test_full_moments_have_their_diagonal(self):
        values = np.random.default_rng(4).normal(size=(30, 3))
        full = tb.Moments.of(values, full=True)
        assert full.full
        np.testing.assert_allclose(full.scatter, np.cov(values.T, bias=True) * 30, rtol=1e-13)
        assert full.diagonal().isclose(tb.Moments.of(values), 1e-13)
        assert tb.Moments.of(values).diagonal().full is False

    @pytest.mark.parametrize(("n_groups", "d"), [(1, 130), (40, 3), (2, 100), (3, 0)])
    def test_full_scatter_is_exact_and_symmetric_in_groups_of_any_size(self, n_groups, d):
        """Matrices are computed a few groups or a few rows at a time: every cell is, and both triangles agree."""
        rng = np.random.default_rng(5)
        group = np.arange(3 * n_groups) % n_groups
        rows = 1e6 + rng.standard_normal((len(group), d)) * 10.0 ** rng.integers(-3, 3, d)
        anchor = choose_anchor(rows)
        moments = tb.Moments.from_kernel(anchor, kernels.sum_scatter(rows, anchor, group, n_groups))
        scatter, fine = moments.scatter, moments.scatter_double_double()
        assert scatter.shape == (n_groups, d, d)
        for part in (scatter, fine.high, fine.low):
            np.testing.assert_array_equal(part, np.swapaxes(part, -1, -2))
        for cell in zip(*(rng.integers(0, size, 30 if d else 0) for size in (n_groups, d or 1, d or 1)), strict=True):
            one, other = ([Fraction(float(x)) for x in rows[group == cell[0], j]] for j in cell[1:])
            exact = sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0)) - sum(one) * sum(other) / len(
                one
            )
            size = float(sum((a - one[0]) ** 2 for a in one) * sum((b - other[0]) ** 2 for b in other)) ** 0.5
            assert scatter[cell] == pytest.approx(float(exact), rel=1e-15, abs=1e-15 * size)

    def test_full_scatter_takes_little_memory_beside_its_own(self):
        moments = tb.Moments.of(np.random.default_rng(6).normal(size=(50, 400)), full=True)
        moments = tb.Moments(moments.anchor, moments.weight_sum, moments.first_sum, moments.second_sum)
        tracemalloc.start()
        scatter = moments.scatter
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 * scatter.nbytes + 2**21  # two parts and their sum; everything else is in small pieces

    @pytest.mark.parametrize(
        ("anchor", "weight", "first", "second", "name"),
        [
            ((3,), (2, 1), (2, 2), (2, 2), "anchor"),
            ((2,), (2, 3), (2, 2), (2, 2), "weight_sum"),
            ((2,), (1, 1), (2, 2), (2, 2), "weight_sum"),
            ((2,), (2, 1), (2, 2), (2, 3), "second_sum"),
        ],
    )
    def test_shapes_must_fit(self, anchor, weight, first, second, name):
        with pytest.raises(DataError, match=name):
            tb.Moments(np.zeros(anchor), *(DoubleDouble.zeros(shape) for shape in (weight, first, second)))

    def test_nobody_can_change_them(self):
        anchor = np.zeros(1)
        moments = tb.Moments(anchor, *(DoubleDouble.zeros((1,)) for _ in range(3)))
        anchor[0] = 7.0
        assert moments.anchor[0] == 0.0
        for array in (moments.anchor, moments.first_sum.high, moments.second_sum.low, moments.weight_sum.high):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0

    def test_of_nothing(self):
        empty = tb.Moments.of(np.zeros((0, 2)))
        assert empty == tb.Moments.zeros((), 2)
        np.testing.assert_array_equal(empty.mean, np.zeros(2))


class TestRebase:
    @pytest.mark.parametrize("full", [False, True])
    def test_there_and_back_is_exact_to_the_last_bits(self, full):
        values = 1e6 + np.random.default_rng(5).normal(size=(50, 2))
        moments = tb.Moments.of(values, full=full)
        moved = moments.rebase(np.array([123.456, -1e7]))
        np.testing.assert_allclose(moved.mean, moments.mean, rtol=1e-16)
        np.testing.assert_allclose(moved.scatter, moments.scatter, rtol=1e-14)
        back = moved.rebase(moments.anchor)
        np.testing.assert_allclose(back.second_sum.value, moments.second_sum.value, rtol=1e-14)

    def test_small_sums_move_exactly(self):
        moved = tb.Moments.of([[1.0], [2.0]]).rebase(np.array([-3.0]))
        assert (moved.first_sum.value[0], moved.second_sum.value[0]) == (4.0 + 5.0, 16.0 + 25.0)

    def test_the_same_anchor_is_no_work(self):
        moments = tb.Moments.of([[1.0]])
        assert moments.rebase(moments.anchor) is moments

    @pytest.mark.parametrize("full", [False, True])
    def test_other_anchors_add_and_subtract_right(self, full):
        rng = np.random.default_rng(6)
        near, far = rng.normal(0, 1, (20, 2)), rng.normal(1e8, 1, (30, 2))
        a, b = tb.Moments.of(near, full=full), tb.Moments.of(far, full=full)
        assert not np.array_equal(a.anchor, b.anchor)
        together = tb.Moments.of(np.concatenate([near, far]), full=full)
        assert (a + b).isclose(together, 1e-15)
        assert (b + a).isclose(together, 1e-15)
        assert ((a + b) - b).isclose(a, 1e-9 if full else 1e-12)
        assert ((a + b) - a).isclose(b, 1e-12)

    def test_an_empty_side_keeps_the_anchor(self):
        far = tb.Moments.of(1e9 + np.array([[0.0], [1.0], [2.0]]))
        assert (tb.Moments.zeros((), 1) + far).anchor == far.anchor
        assert tb.Moments.zeros((), 1) + far == far


class TestForgetting:
    def test_too_much_weight(self):
        with pytest.raises(StatisticsError, match=r"weight -1 \(1 counted, 2 to remove\)"):
            tb.Moments.of([[1.0]]) - tb.Moments.of([[1.0], [1.0]])

    def test_too_much_scatter(self):
        with pytest.raises(StatisticsError, match="scatter"):
            tb.Moments.of([[1.0], [2.0], [3.0]]) - tb.Moments.of([[100.0]])

    def test_all_the_weight_but_other_rows(self):
        with pytest.raises(StatisticsError, match="scatter"):
            tb.Moments.of([[1.0], [2.0]]) - tb.Moments.of([[1.0], [3.0]])

    def test_the_last_row_leaves_exact_zeros(self):
        rest = tb.Moments.of([[1e9 + 0.1]]) - tb.Moments.of([[1e9 + 0.1]])
        assert rest == tb.Moments.zeros((), 1)
        assert not rest.second_sum.value.any()

    def test_an_outlier_leaves_no_trace(self):
        values = np.random.default_rng(7).normal(size=(100, 1))
        held = tb.Moments.of(np.concatenate([values, [[1e9]]]))
        rest = held - tb.Moments.of([[1e9]])
        mean, scatter = exact_moments(values[:, 0])
        assert rest.mean[0] == pytest.approx(mean, rel=1e-12)
        assert rest.scatter[0] == pytest.approx(scatter, rel=1e-12)

    def test_columns_with_missing_cells_forget_apart(self):
        values = np.array([[1.0, np.nan], [2.0, 5.0], [4.0, 7.0]])
        rest = tb.Moments.of(values) - tb.Moments.of(values[1:])
        np.testing.assert_array_equal(rest.weight, [1.0, 0.0])
        np.testing.assert_array_equal(rest.mean, [1.0, 0.0])

    def test_unlike_moments_do_not_combine(self):
        with pytest.raises(StatisticsError, match="2 full"):
            tb.Moments.of(np.eye(2)) + tb.Moments.of(np.eye(2), full=True)


def test_equality_looks_at_groups_and_columns():
    one = tb.Moments.zeros((1,), 1)
    assert one != tb.Moments.zeros((2,), 1)
    assert one != tb.Moments.zeros((1,), 2)
    assert one != tb.Moments.zeros((1,), 1, full=True)


def test_pooling_many_groups_is_one_table():
    rng = np.random.default_rng(8)
    values, group = rng.normal(size=(300, 2)), rng.integers(0, 7, 300)
    apart = tb.count({"x": values, "g": group}, [tb.Factor("x", "g", tb.Gaussian())])["x"]
    assert apart.pool_groups().isclose(tb.Moments.of(values), 1e-14)
    assert apart.take(0, np.arange(6, -1, -1)).pool_groups().isclose(apart.pool_groups(), 1e-15)


def test_fractions_of_a_row_leave_nothing_behind():
    row = tb.Moments.of([[5.0], [7.0]])
    held = row.scale(0.1) + row.scale(0.1) + row.scale(0.1)
    rest = held - row.scale(0.3)  # 0.1 + 0.1 + 0.1 is not 0.3 in binary
    assert rest == tb.Moments.zeros((), 1)
    with pytest.raises(StatisticsError, match="scatter"):
        held - tb.Moments.of([[5.0], [8.0]]).scale(0.3)


class TestExtremeWeights:
    ROWS = np.random.default_rng(6).normal(3.0, 2.0, (50, 3))

    @pytest.mark.parametrize("weight", [1e-150, 1e-100, 1e100, 1e150])
    def test_the_spread_is_that_of_weight_one(self, weight):
        each = np.full(50, weight)
        one = tb.fit_distribution(self.ROWS, tb.Gaussian(), weight=each).estimate("mle")
        np.testing.assert_allclose(one.variance, self.ROWS.var(axis=0), rtol=1e-14)
        full = tb.fit_distribution(self.ROWS, tb.MultivariateGaussian(), weight=each).estimate("mle")
        np.testing.assert_allclose(full.covariance, np.cov(self.ROWS.T, bias=True), rtol=1e-13)
        np.testing.assert_array_equal(full.covariance, full.covariance.T)

    @pytest.mark.parametrize("weight", [1e-150, 1e150])
    def test_rows_are_forgotten(self, weight):
        held, gone = (
            tb.fit_distribution(rows, tb.Gaussian(), weight=np.full(len(rows), weight))
            for rows in (self.ROWS, self.ROWS[5:])
        )
        np.testing.assert_allclose((held - gone).estimate("mle").variance, self.ROWS[:5].var(axis=0), rtol=1e-13)

    @pytest.mark.parametrize("weight", [1e-160, 1e152, np.inf])
    def test_others_are_refused_by_their_range(self, weight):
        with pytest.raises(tb.errors.DataError, match="from 1e-150 to 1e150"):
            tb.fit_distribution(self.ROWS, tb.Gaussian(), weight=np.full(50, weight))

    def test_shares_next_to_nothing_are_legitimate(self):
        for share in (1e-200, 1e-280):
            shares = np.stack([np.ones(50), np.full(50, share)], axis=1)
            found = tb.fit_distribution(self.ROWS, tb.Gaussian(), group=shares).estimate("mle")
            np.testing.assert_allclose(found.variance, np.tile(self.ROWS.var(axis=0), (2, 1)), rtol=1e-12)

    @pytest.mark.parametrize("full", [False, True])
    def test_shares_at_the_end_of_floating_point_are_none(self, full):
        family = tb.MultivariateGaussian() if full else tb.Gaussian()
        shares = np.stack([np.ones(50), np.full(50, 1e-315)], axis=1)
        found = tb.fit_distribution(self.ROWS, family, group=shares).statistics
        assert not any(part[1].any() for part in (found.weight, found.mean, found.scatter))


ANCHORED = [3.0, 0.1, 1 / 3, 1e9 + 0.125, 1e-100, 1e120]


class TestConstantColumnsWithFractionalWeights:
    @staticmethod
    def table(family, constant, seed=0):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([np.full(40, constant), rng.normal(size=40)])
        weight = 3.0 * rng.random(40)
        return rows, weight, family.collect(rows, weight=weight)

    @pytest.mark.parametrize("constant", ANCHORED)
    @pytest.mark.parametrize("full", [False, True])
    def test_rows_are_forgotten_in_parts(self, full, constant):
        family = tb.MultivariateGaussian() if full else tb.Gaussian()
        for seed in range(5):
            rows, weight, rest = self.table(family, constant, seed)
            for part in (slice(0, 3), slice(3, 4), slice(4, 39)):
                rest = rest - family.collect(rows[part], weight=weight[part], like=rest)
            last = family.collect(rows[39:], weight=weight[39:])
            np.testing.assert_allclose(rest.mean, last.mean, rtol=1e-10)
            assert rest - last == tb.Moments.zeros((1,), 2, full=full)

    @pytest.mark.parametrize("full", [False, True])
    def test_part_of_every_weight_is_forgotten(self, full):
        family = tb.MultivariateGaussian() if full else tb.Gaussian()
        rows, weight, held = self.table(family, 3.0)
        rest = held - family.collect(rows, weight=0.7 * weight)
        np.testing.assert_allclose(rest.weight, [[0.3 * weight.sum()]])
        np.testing.assert_allclose(rest.mean, held.mean, rtol=1e-12)

    @pytest.mark.parametrize("wrong", [3.0 + 1e-9, 3.0 - 1e-13, 2.0])
    @pytest.mark.parametrize("full", [False, True])
    @pytest.mark.parametrize("part", [slice(0, 20), slice(0, 40)])
    def test_other_values_are_rejected(self, part, full, wrong):
        family = tb.MultivariateGaussian() if full else tb.Gaussian()
        rows, weight, held = self.table(family, 3.0)
        rows[:, 0] = wrong
        with pytest.raises(StatisticsError, match="scatter"):
            held - family.collect(rows[part], weight=weight[part])

    @pytest.mark.parametrize("constant", ANCHORED)
    def test_the_sums_of_products_about_the_value_itself_are_zero(self, constant):
        rows, weight, _ = self.table(tb.MultivariateGaussian(), constant)
        moments = tb.MultivariateGaussian().collect(rows, weight=weight)
        if moments.anchor[0] == constant:
            assert not moments.second_sum.high[0, 0].any()
        assert moments.scatter[0, 0, 0] == pytest.approx(0.0, abs=1e-30 * constant**2)


@needs_compiled  # the products of NumPy have sixteen digits
def test_what_rounding_leaves_of_a_single_row_is_no_difference():
    rows, weight = np.array([[1e6 + 0.3, 3.0], [1e6 + 7.1, 5.0]]), np.array([0.7, 1.3])
    family = tb.MultivariateGaussian()
    both, first = family.collect(rows, weight=weight), family.collect(rows[:1], weight=weight[:1])
    assert (both - family.collect(rows[1:], weight=weight[1:], like=both)).isclose(first, 1e-9)
    assert not both.isclose(first, 1e-9)


class TestForgettingFullMoments:
    """What remains after most rows were forgotten, for any offset, scale, weights and numbers of rows."""

    CASES = (
        st.integers(0, 2**32 - 1),
        st.integers(2, 300),
        st.sampled_from([0.0, 0.3, -5.0, 1e3, 1e6, -1e9]),
        st.sampled_from([1e-3, 1.0, 1e4]),
        st.booleans(),
    )

    @staticmethod
    def rows(seed, n, offset, scale, fractional):
        rng = np.random.default_rng(seed)
        rows = offset + scale * rng.normal(size=(n, 3))
        weight = rng.uniform(0.25, 4.0, n) if fractional else rng.integers(1, 4, n).astype(float)
        return rng, rows, weight

    @given(*CASES, st.sampled_from([tb.LinearGaussian(), tb.MultivariateGaussian()]))
    @settings(max_examples=50)
    def test_a_single_row_has_no_scatter(self, seed, n, offset, scale, fractional, family):
        _, rows, weight = self.rows(seed, n, offset, scale, fractional)
        if not fractional:
            weight[0] = 1.0
        held = family.collect(rows, weight=weight)
        rest = held - family.collect(rows[1:], weight=weight[1:], like=held)
        assert not rest.scatter.any()
        assert rest.isclose(family.collect(rows[:1], weight=weight[:1]), 1e-9)

    @given(*CASES)
    @settings(max_examples=50)
    def test_a_constant_column_has_no_scatter(self, seed, n, offset, scale, fractional):
        rng, rows, weight = self.rows(seed, n, offset, scale, fractional)
        kept = int(rng.integers(1, n))
        rows[:kept, 1] = rows[0, 1]
        family = tb.LinearGaussian()
        held = family.collect(rows, weight=weight)
        rest = held - family.collect(rows[kept:], weight=weight[kept:], like=held)
        assert not rest.scatter[0, 1].any()
        assert not rest.scatter[0, :, 1].any()
        assert (np.diagonal(rest.scatter[0])[[0, 2]] > 0).all() or kept == 1

    @given(*CASES, st.sampled_from([1e-5, 1e-3]))
    @settings(max_examples=50)
    def test_a_small_scatter_remains(self, seed, n, offset, scale, fractional, ratio):
        # Products of integer weights have 22 digits, others 16. The offset limits the digits of the rows themselves.
        _, rows, weight = self.rows(seed, n + 3, offset, scale, fractional)
        rows[:3] = offset + ratio * (rows[:3] - offset)
        family = tb.LinearGaussian()
        held = family.collect(rows, weight=weight)
        rest = held - family.collect(rows[3:], weight=weight[3:], like=held)
        alone = family.collect(rows[:3], weight=weight[:3])
        error = 2.0 ** (-50 if fractional else -70) * held.scatter[0] + 1e-30 * held.second_sum.value[0]
        error = np.sqrt(np.maximum(held.weight[0], 1.0)) * np.diagonal(error)
        found, expected = (np.diagonal(moments.scatter[0]) for moments in (rest, alone))
        assert (np.abs(found - expected) <= error + 1e-9 * expected).all()
