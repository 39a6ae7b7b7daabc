"""Pairs of columns, counted and scored: compiled against NumPy, and both against the sum written out."""

import itertools

import numpy as np
import pytest

from tallybayes.errors import CellError
from tallybayes.kernels import pair_counts
from tallybayes.kernels.pair_counts import count_pairs, score_pairs
from tallybayes.kernels.reference import pair_counts as reference_pair_counts
from tests.unit.kernels.kernel_cases import TIERS, _compiled, needs_compiled


def panels_of(terms):
    """The panels of terms (levels, levels, classes)."""
    panels = pair_counts.panels_of(len(terms), terms.shape[-1])
    panels[:, 1:, : terms.shape[-1]] = terms
    return panels


def written_out(codes, sizes, terms):
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    out = np.zeros((len(codes), terms.shape[-1]))
    for row, cells in enumerate(codes):
        known = [int(offsets[j] + code) for j, code in enumerate(cells) if 0 <= code < sizes[j]]
        for j, code in enumerate(cells):
            parents = [code] if 0 <= code < sizes[j] else range(sizes[j])
            for parent in parents:
                level = int(offsets[j] + parent)
                out[row] += np.exp(sum(terms[level, other] for other in {*known, level}))
    return np.log(out)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("n_classes", "d"), list(itertools.product([1, 2, 8, 9, 17], [1, 2, 5])))
def test_the_sum_over_all_parents(n_classes, d):
    rng = np.random.default_rng(10 * n_classes + d)
    sizes = rng.integers(1, 6, d)
    terms = rng.normal(-2, 3, (sizes.sum(), sizes.sum(), n_classes))
    codes = rng.integers(-1, 6, (300, d)).astype(np.int8)  # some beyond the last level: missing
    panels = panels_of(terms)
    wanted = written_out(codes, sizes, terms)
    slow = reference_pair_counts.score_pairs(codes, sizes.astype(np.int64), panels.reshape(-1), n_classes, 1)
    np.testing.assert_allclose(slow, wanted, rtol=1e-12, atol=1e-12)
    for tier in TIERS:
        _compiled.use_tier(tier)
        try:
            found = score_pairs(codes, sizes, panels, n_classes)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
            backwards = np.ascontiguousarray(codes[::-1])[::-1]
            for layout in (np.asfortranarray(codes), [c.astype(np.int64) for c in codes.T], backwards):
                np.testing.assert_array_equal(score_pairs(layout, sizes, panels, n_classes), found)
            for threads in (1, 3):
                np.testing.assert_array_equal(score_pairs(codes, sizes, panels, n_classes, threads), found)
        finally:
            _compiled.use_tier(TIERS[-1])


def test_many_rows_are_scored_as_few():
    rng = np.random.default_rng(5)
    sizes, terms = [3, 2, 4], rng.normal(size=(9, 9, 3))
    codes = rng.integers(-1, 4, (5000, 3))
    whole = score_pairs(codes, sizes, panels_of(terms), 3)
    parts = [score_pairs(codes[start : start + 7], sizes, panels_of(terms), 3) for start in range(0, 5000, 7)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_impossible_and_far_terms():
    terms = np.full((2, 2, 2), -1e6)
    terms[0, 0] = [-np.inf, -5e5]
    found = score_pairs(np.array([[0], [1], [-1]]), [2], panels_of(terms), 2)
    np.testing.assert_array_equal(found, [[-np.inf, -5e5], [-1e6, -1e6], [-1e6, -5e5]])


def test_no_rows_and_no_columns():
    assert score_pairs(np.zeros((0, 2), dtype=int), [1, 1], panels_of(np.zeros((2, 2, 3))), 3).shape == (0, 3)
    assert np.isneginf(score_pairs(np.zeros((2, 0), dtype=int), [], panels_of(np.zeros((0, 0, 3))), 3)).all()


@pytest.mark.parametrize(
    ("sizes", "panels", "match"),
    [
        ([2], panels_of(np.zeros((3, 3, 2))), "panels has shape"),
        ([0, 2], panels_of(np.zeros((2, 2, 2))), "at least one level"),
        ([2, 1], panels_of(np.zeros((3, 3, 2))).astype(np.float32), "float64"),
        ([2, 1], panels_of(np.zeros((3, 3, 9))), "panels has shape"),
    ],
)
def test_wrong_tables_are_refused(sizes, panels, match):
    with pytest.raises(ValueError, match=match):
        score_pairs(np.zeros((2, len(sizes)), dtype=int), sizes, panels, 2)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [[3, 2, 4, 1], [8, 0, 40, 300, 5], [254, 255, 2]])  # by bits, one by one, and both
def test_pairs_are_counted(sizes, weighted):
    rng = np.random.default_rng(len(sizes))
    n, n_groups, ends = 9000, 3, np.cumsum(sizes)  # more rows than are looked at together
    codes = np.stack([rng.integers(-1, size, n) for size in sizes], axis=1).astype(np.int16)
    group = rng.choice([-1, 0, 2, 2, 2], n)  # one group has no row
    weight = rng.choice([0.0, 0.25, 3.5], n) if weighted else None
    written = np.zeros((n_groups, ends[-1], ends[-1]))
    for (i, first), (j, second) in itertools.permutations(enumerate(ends - sizes), 2):
        there = (codes[:, i] >= 0) & (codes[:, j] >= 0) & (group >= 0)
        place = group[there], first + codes[there, i], second + codes[there, j]
        np.add.at(written, place, 1.0 if weight is None else weight[there])
    given = np.array(sizes), group, n_groups, weight
    slow = reference_pair_counts.count_pairs(codes, *given)
    assert slow.dtype == (np.float64 if weighted else np.float32)
    np.testing.assert_array_equal(slow, written)  # quarters add up exactly
    for tier in TIERS:
        _compiled.use_tier(tier)
        try:
            for layout in (codes, np.asfortranarray(codes), [column.astype(np.int64) for column in codes.T]):
                found = count_pairs(layout, *given)
                assert found.dtype == slow.dtype
                np.testing.assert_array_equal(found, written)
        finally:
            _compiled.use_tier(TIERS[-1])


@needs_compiled
def test_pairs_of_what_is_no_level_are_refused():
    codes = np.array([[0, 0], [1, 2], [0, 5]])
    for count in (reference_pair_counts.count_pairs, _compiled.count_pairs):
        with pytest.raises(CellError) as error:
            count(codes, np.array([2, 2]), None, 1, None)
        assert error.value.args == (1, 1)
        skipped = count(codes, np.array([2, 2]), np.array([0, -1, -1]), 1, None)  # rows that do not count may say it
        assert skipped.sum() == 2
    with pytest.raises(ValueError, match="expected"):
        count_pairs(codes, [2, 6], None, 1, np.ones((3, 1)))
    with pytest.raises(ValueError, match="agree"):
        count_pairs(codes, [2, 6], np.zeros(2, np.int64), 1)
    with pytest.raises(IndexError):
        count_pairs(codes, [2, 6], np.array([0, 1, 0]), 1)
    assert count_pairs(np.zeros((0, 2), np.int8), [2, 1], None, 1).tolist() == np.zeros((1, 3, 3)).tolist()
    assert count_pairs([], [], np.zeros(4, np.int64), 2).shape == (2, 0, 0)
