"""Seeds: far-off rows of any columns, whatever their order, weights and units."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import tallybayes as tb
from tallybayes.estimation.em.kmeans_init import (
    DistanceFeatures,
    kmeans_plus_plus,
    known_mean,
    squared_distances_to_centers,
)
from tallybayes.families._shared.blocks import SparseRows


def sparse(dense):
    rows = csr_array(dense)
    return SparseRows(rows.indptr, rows.indices, rows.data, dense.shape[1])


class TestSquaredGaps:
    def test_are_those_of_the_known_cells_as_if_the_others_were_like_them(self):
        rows = np.array([[1.0, 2.0], [np.nan, 5.0], [np.nan, np.nan]])
        centers = np.array([[0.0, 0.0], [1.0, 2.0]])
        np.testing.assert_allclose(
            squared_distances_to_centers(rows, centers), [[5.0, 0.0], [50.0, 18.0], [0.0, 0.0]], atol=1e-12
        )

    def test_are_none_without_columns(self):
        assert squared_distances_to_centers(np.empty((3, 0)), np.empty((2, 0))).tolist() == [[0.0, 0.0]] * 3


def test_known_mean():
    rows, weight = np.array([[1.0, np.nan], [4.0, np.nan]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(known_mean(rows, weight, np.array([9.0, 7.0])), [3.0, 7.0])
    np.testing.assert_array_equal(known_mean(rows[:0], weight[:0], np.array([9.0, 7.0])), [9.0, 7.0])


class TestRuler:
    def test_numbers_have_unit_spread_whatever_their_units(self):
        cells = np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]])
        for scale, offset in ((1.0, 0.0), (1e-6, 0.0), (1.0, 1e9)):
            found = DistanceFeatures(tb.Gaussian(), (), cells * scale + offset, 0)(cells * scale + offset)
            np.testing.assert_allclose(found, [[-1, 0], [1, 0], [np.nan, 0]], atol=1e-6)

    def test_weights_are_repeated_rows(self):
        cells, times = np.array([[1.0], [2.0], [7.0]]), np.array([1, 3, 2])
        weighted = DistanceFeatures(tb.Gaussian(), (), cells, 0, times.astype(float))
        repeated = DistanceFeatures(tb.Gaussian(), (), np.repeat(cells, times, axis=0), 0)
        np.testing.assert_allclose(weighted(cells), repeated(cells))

    def test_unlike_labels_are_two_apart(self):
        found = DistanceFeatures(tb.Categorical(), (3, 2), None, 0)(np.array([[0, 1], [2, 1], [-1, 0]]))
        gaps = squared_distances_to_centers(found, np.nan_to_num(found))
        assert gaps[0, 1] == pytest.approx(2.0)
        np.testing.assert_array_equal(np.isnan(found[2]), [True, True, True, False, False])

    def test_a_column_of_labels_without_levels_is_none(self):
        assert DistanceFeatures(tb.Categorical(), (0,), None, 0)(np.full((4, 1), -1)).shape == (4, 0)

    def test_rare_answers_part_few_rows(self):
        rare = np.zeros((100, 1))
        rare[0] = 1
        even = np.arange(100)[:, None] % 2.0
        apart = [np.ptp(DistanceFeatures(tb.Bernoulli(), (), cells, 0)(cells)) for cells in (rare, even)]
        assert apart[0] == pytest.approx(2.0)  # not 1/0.0995, as numbers would be
        assert apart[1] == pytest.approx(2.0)

    def test_counts_and_positive_numbers_by_their_own_scales(self):
        counts, sizes = np.array([[0.0], [4.0], [16.0]]), np.exp([[0.0], [1.0], [2.0]])
        np.testing.assert_allclose(
            np.diff(DistanceFeatures(tb.Poisson(), (), counts, 0)(counts), 2, axis=0), 0.0, atol=1e-12
        )
        np.testing.assert_allclose(
            np.diff(DistanceFeatures(tb.LogNormal(), (), sizes, 0)(sizes), 2, axis=0), 0.0, atol=1e-12
        )

    def test_a_family_made_from_yes_no_that_counts_numbers_is_measured_as_numbers(self):
        class Geometric(tb.Bernoulli):
            is_binary = False

            def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
                raise NotImplementedError

        cells = np.zeros((100, 2))
        cells[0] = 1.0, 7.0  # rare failures are as far from the others as any number
        expected = DistanceFeatures(tb.Gaussian(), (), cells, 0)(cells)
        np.testing.assert_allclose(DistanceFeatures(Geometric(), (), cells, 0)(cells), expected)

    @pytest.mark.parametrize("width", [5, 300])
    def test_sparse_rows_by_their_shares(self, width):
        rng = np.random.default_rng(0)
        dense = rng.poisson(0.5, (6, width)).astype(float)
        dense[3] = 5 * dense[0]  # the same shares, a longer row
        dense[4] = 0.0
        ruler = DistanceFeatures(tb.Multinomial(), (), dense, 7)
        found = ruler(sparse(dense))
        np.testing.assert_allclose(found, ruler(dense), atol=1e-12)
        np.testing.assert_allclose(found[3], found[0], atol=1e-9)
        lengths = ((np.delete(found, 4, axis=0) - found[4]) ** 2).sum(axis=1)  # from a row without words
        np.testing.assert_allclose(lengths, min(width, 64), rtol=1e-12 if width < 64 else 0.5)
        assert found.shape == (6, min(width, 64))


class TestSeedCenters:
    @staticmethod
    def heaps(seed=0, n=20):
        rng = np.random.default_rng(seed)
        middles = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
        return np.concatenate([rng.normal(middle, 1.0, (n, 2)) for middle in middles]), middles

    def test_find_the_middles_of_heaps(self):
        rows, middles = self.heaps()
        means = rows.reshape(3, 20, 2).mean(axis=1)
        for seed in range(5):
            found = kmeans_plus_plus(rows, 3, np.empty((0, 2)), np.random.default_rng(seed))
            order = [int(squared_distances_to_centers(found, middle[None])[:, 0].argmin()) for middle in middles]
            np.testing.assert_allclose(found[order], means)

    def test_fixed_ones_stay_and_come_first(self):
        rows, _ = self.heaps()
        fixed = np.array([[1.0, 1.0], [49.0, 2.0]])
        found = kmeans_plus_plus(rows, 1, fixed, np.random.default_rng(0))
        np.testing.assert_array_equal(found[:2], fixed)
        np.testing.assert_allclose(found[2], rows[40:].mean(axis=0))

    @pytest.mark.parametrize("share", [0.0, 0.3])
    def test_order_and_repeats_make_no_difference(self, share):
        rng = np.random.default_rng(3)
        rows = np.where(rng.random((40, 3)) < share, np.nan, rng.normal(size=(40, 3)))
        times = rng.integers(1, 4, 40)
        for seed in range(5):
            found = kmeans_plus_plus(rows, 4, np.empty((0, 3)), np.random.default_rng(seed), times.astype(float))
            again = np.repeat(rows, times, axis=0)
            again = again[rng.permutation(len(again))]
            np.testing.assert_allclose(kmeans_plus_plus(again, 4, np.empty((0, 3)), np.random.default_rng(seed)), found)

    def test_weightless_rows_are_no_seeds(self):
        rows, _ = self.heaps()
        weight = np.repeat([1.0, 1.0, 0.0], 20)
        for seed in range(5):
            found = kmeans_plus_plus(rows, 2, np.empty((0, 2)), np.random.default_rng(seed), weight)
            assert found[:, 1].max() < 10

    @pytest.mark.parametrize("rows", [np.ones((5, 2)), np.ones((1, 2)), np.full((3, 2), np.nan), np.empty((4, 0))])
    def test_more_seeds_than_there_are_different_rows(self, rows):
        found = kmeans_plus_plus(rows, 4, np.empty((0, rows.shape[1])), np.random.default_rng(0))
        assert found.shape == (4, rows.shape[1])
        assert np.isfinite(found).all()
