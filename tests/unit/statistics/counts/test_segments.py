"""The flat axis of levels."""

import numpy as np
import pytest

from tallybayes.statistics.counts import Segments


def test_empty_columns_in_every_place():
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
def test_no_cells_at_all(sizes):
    segments = Segments(sizes)
    assert segments.n_cells == 0
    np.testing.assert_array_equal(segments.sum(np.zeros((4, 0))), np.zeros((4, len(sizes))))
    np.testing.assert_array_equal(segments.max(np.zeros((4, 0))), np.full((4, len(sizes)), -np.inf))


def test_spread_undoes_the_split():
    segments = Segments([1, 0, 3])
    np.testing.assert_array_equal(segments.broadcast_to_cells(np.array([5.0, 6.0, 7.0])), [5, 7, 7, 7])


def test_sums_agree_with_a_loop():
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 5, 40)
    segments, cells = Segments(sizes), rng.random((3, int(sizes.sum())))
    loop = np.stack([part.sum(axis=-1) for part in segments.split(cells)], axis=-1)
    np.testing.assert_allclose(segments.sum(cells), loop, rtol=1e-14)


def test_equality_and_hash_go_by_sizes():
    assert Segments([1, 2]) == Segments((1, 2))
    assert hash(Segments([1, 2])) == hash(Segments((1, 2)))
    assert Segments([1, 2]) != Segments([2, 1])
