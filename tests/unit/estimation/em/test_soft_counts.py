"""Soft counting: where groups start, and which rows lack what a covariance needs."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.data.table import open_table
from tallybayes.estimation.em import soft_counts
from tallybayes.estimation.em.soft_counts import SoftCounter, rows_with_missing
from tallybayes.tally.factor import Factor

GAUSSIAN = [Factor((0, 1), ("k",), tb.Gaussian())]
LABELS = {"a": ["y", None, "x", "y"]}


def seeds(rows, n_groups, codes=None, weight=None, n_starts=1, seed=0, factors=GAUSSIAN):
    table = open_table(rows)
    codes = np.full(len(rows), -1) if codes is None else codes
    weight = np.ones(len(rows)) if weight is None else weight
    counter = SoftCounter(factors, table, n_groups)
    found = counter.kmeans_assigners(table, codes, weight, n_starts, np.random.default_rng(seed))
    return [nearest(table) for nearest in found]


def squares(rows, groups, weight=None):
    """The sum of squares within groups, of columns of one spread."""
    weight = np.ones(len(rows)) if weight is None else weight
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    total = 0.0
    for k in np.unique(groups):
        mine, w = scaled[groups == k], weight[groups == k]
        total += w @ ((mine - np.average(mine, axis=0, weights=w)) ** 2).sum(axis=1)
    return total


class TestSeeds:
    rows = np.random.default_rng(0).normal(size=(200, 2))

    def test_the_tightest_first(self):
        found = [squares(self.rows, groups) for groups in seeds(self.rows, 5, n_starts=8)]
        assert len(found) == 8
        assert found[0] < found[-1] - 1  # there are several
        assert (np.diff(found) > -1e-3).all()  # the last step of k-means may still move a row

    def test_known_groups_keep_their_names(self):
        heaps = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 20, axis=0)
        rows = heaps + 0.1 * np.random.default_rng(1).normal(size=heaps.shape)
        codes = np.full(60, -1)
        codes[[0, 3]], codes[[25, 30]] = 2, 0
        for seed in range(3):
            (groups,) = seeds(rows, 3, codes, seed=seed)
            assert groups.tolist() == [2] * 20 + [0] * 20 + [1] * 20

    def test_a_column_that_no_row_of_a_known_group_has(self):
        rows = np.r_[self.rows[:6], [[1.0, np.nan], [2.0, np.nan]]]
        codes = np.array([-1] * 6 + [1, 1])
        for seed in range(3):
            (groups,) = seeds(rows, 3, codes, seed=seed)  # others have it
            assert set(groups.tolist()) == {0, 1, 2}
            assert groups[7] == 1
            (groups,) = seeds(np.c_[rows[:, 0], np.full(8, np.nan)], 3, codes, seed=seed)  # nobody has it
            (alone,) = seeds(rows[:, :1], 3, codes, seed=seed, factors=[Factor(0, ("k",), tb.Gaussian())])
            assert groups.tolist() == alone.tolist()
            assert groups[[3, 6, 7]].tolist() == [1, 1, 1]  # of 1.3, 1 and 2, where the known ones are

    def test_weights_are_repeats(self):
        times = np.random.default_rng(2).integers(1, 4, 200)
        codes = np.where(np.arange(200) < 10, 3, -1)
        for seed in range(3):
            (weighted,) = seeds(self.rows, 4, codes, times.astype(float), seed=seed)
            (repeated,) = seeds(np.repeat(self.rows, times, axis=0), 4, np.repeat(codes, times), seed=seed)
            np.testing.assert_array_equal(np.repeat(weighted, times), repeated)

    def test_a_sample_of_many_rows_serves(self, monkeypatch):
        heaps = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 50, axis=0)
        rows = heaps + 0.1 * np.random.default_rng(1).normal(size=heaps.shape)
        codes = np.where(np.arange(150) < 40, 1, -1)
        monkeypatch.setattr(soft_counts, "_SEEDING_ROWS", 30)
        (groups,) = seeds(rows, 3, codes)
        assert len({*zip(groups.tolist(), np.repeat([0, 1, 2], 50).tolist(), strict=True)}) == 3
        assert groups[0] == 1


def test_holes_are_those_that_a_covariance_needs():
    table = open_table(
        {"a": [1.0, np.nan, 3.0], "b": [1.0, 2.0, np.nan], "c": [np.nan, 1.0, 2.0], "d": ["x", None, "y"]}
    )
    full, plain = tb.MultivariateGaussian(), tb.Gaussian()
    both = [Factor(("a", "b"), ("k",), full), Factor("c", ("k",), plain), Factor("d", ("k",), tb.Categorical())]
    assert rows_with_missing(table, both).tolist() == [False, True, True]
    assert rows_with_missing(table, both[1:]).tolist() == [False] * 3
    tied = Factor("c", ("k",), tb.TiedMultivariateGaussian())
    assert rows_with_missing(table, [tied]).tolist() == [True, False, False]
    assert rows_with_missing(table, [tied, *both]).tolist() == [True] * 3
    assert rows_with_missing(table.rows(slice(0, 0)), both).shape == (0,)


class TestLevels:
    def test_declared_levels_are_kept(self):
        factors = [Factor("a", ("k",), tb.Categorical(levels=["x", "y", "z"]))]
        counter = SoftCounter(factors, open_table(LABELS), 2)
        assert counter.domains["a"].levels == ("x", "y", "z")
        assert counter.cells(counter.table, 0).ravel().tolist() == [1, -1, 0, 1]
        (counts,) = counter.count_hard(counter.table, np.array([0, 0, 1, 1]), None)
        assert counts.table.tolist() == [[0, 1, 0], [1, 1, 0]]

    def test_undeclared_levels_raise(self):
        factors = [Factor("a", ("k",), tb.Categorical(levels=["x", "z"]))]
        with pytest.raises(tb.LabelError, match="'y'"):
            SoftCounter(factors, open_table(LABELS), 2)

    def test_invalid_cells_are_named(self):
        with pytest.raises(tb.DataError, match="in row 1, column 'n'"):
            SoftCounter([Factor("n", ("k",), tb.Poisson())], open_table({"n": [3.0, -1.0]}), 2)


class TestHardCounts:
    rows = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0], [7.0, 9.0]])
    factors = (Factor((0, 1), ("k",), tb.MultivariateGaussian()),)

    def test_rows_without_a_group_are_not_counted(self):
        counter = SoftCounter(GAUSSIAN, open_table(self.rows), 2)
        (moments,) = counter.count_hard(counter.table, np.array([0, -1, 1, 1]), np.array([1.0, 9.0, 2.0, 1.0]))
        np.testing.assert_allclose(moments.mean, [[1, 2], [17 / 3, 7]])
        np.testing.assert_allclose(np.broadcast_to(moments.weight, (2, 2)), [[1, 1], [3, 3]])

    def test_observed_cells_of_incomplete_rows(self):
        counter = SoftCounter(list(self.factors), open_table(self.rows), 1)
        (moments,) = counter.count_hard(counter.table, np.zeros(4, dtype=int), None, columnwise=True)
        np.testing.assert_allclose(moments.weight, [[4, 3]])
        np.testing.assert_allclose(moments.mean, [[4, 17 / 3]])
