"""Squared lengths under covariances: against the inverse written out, and rows by what they lack."""

import tracemalloc

import numpy as np
import pytest

from tallybayes import kernels
from tallybayes.families._shared.mahalanobis import (
    by_missing_pattern,
    cholesky,
    invert_lower,
    log_determinants,
    missing_patterns,
    squared_distances,
    whiten,
    whitened_squared_norms,
)

RNG = np.random.default_rng(3)


def covariances(n_groups, k):
    roots = RNG.normal(size=(n_groups, k, k))
    return roots @ np.swapaxes(roots, -1, -2) + 0.1 * np.eye(k)


def test_roots_are_there_unless_a_column_is_made_of_others():
    covariance = covariances(2, 3)
    root = cholesky(covariance)
    np.testing.assert_allclose(root @ np.swapaxes(root, -1, -2), covariance, rtol=1e-12)
    np.testing.assert_allclose(invert_lower(root) @ root, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-12)
    assert invert_lower(np.zeros((2, 0, 0))).shape == (2, 0, 0)
    assert cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert cholesky(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-14]])) is None
    assert cholesky(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]])) is not None
    np.testing.assert_allclose(log_determinants(root), np.linalg.slogdet(covariance)[1], rtol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("k", [1, 4])
def test_lengths_are_those_of_the_inverse(shared, k):
    covariance = covariances(1 if shared else 3, k)
    mean, rows = RNG.normal(size=(3, k)) + 5, RNG.normal(size=(50, k)) + 5
    found, log_det = squared_distances(rows, mean, cholesky(covariance))
    gap = rows[:, None, :] - mean
    inverse = np.broadcast_to(np.linalg.inv(covariance), (3, k, k))
    np.testing.assert_allclose(found, np.einsum("ngi,gij,ngj->ng", gap, inverse, gap), rtol=1e-9)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(covariance)[1], rtol=1e-10)
    spread, again = whiten(rows, cholesky(covariance))
    np.testing.assert_allclose(
        (spread**2).sum(-1), np.einsum("ni,gij,nj->ng", rows, np.linalg.inv(covariance), rows), rtol=1e-9
    )
    np.testing.assert_array_equal(again, log_det)


def test_groups_without_rows_and_no_columns():
    mean = np.array([[0.0, 0.0], [np.nan, np.nan]])
    found, _ = squared_distances(np.array([[3.0, 4.0]]), mean, np.stack([np.eye(2)] * 2))
    assert found[0, 0] == 25
    assert np.isnan(found[0, 1])
    nothing, log_det = squared_distances(np.zeros((4, 0)), np.zeros((2, 0)), np.zeros((2, 0, 0)))
    assert nothing.tolist() == [[0, 0]] * 4
    assert log_det.tolist() == [0, 0]


def test_patterns_of_missing_cells():
    x = np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, np.nan], [4.0, np.nan]])
    found = {tuple(known.tolist()): rows.tolist() for known, rows in missing_patterns(x)}
    assert found == {(0,): [0, 3], (0, 1): [1]}
    found = {tuple(known.tolist()): rows.tolist() for known, rows in missing_patterns(x, empty=True)}
    assert found == {(): [2], (0,): [0, 3], (0, 1): [1]}
    assert [(a.tolist(), b.tolist()) for a, b in missing_patterns(np.ones((2, 2)))] == [([0, 1], [0, 1])]
    assert list(missing_patterns(np.ones((0, 2)))) == []


@pytest.mark.parametrize("first", [0, 2])
def test_every_row_is_scored_by_what_is_known_of_it(first):
    asked = []

    def density(rows, known):
        asked.append(tuple(known.tolist()))
        return rows.sum(axis=1)[:, None] + 10.0 * len(known)

    x = np.array([[1.0, 2.0], [3.0, np.nan], [np.nan, np.nan], [np.nan, 5.0]])
    order = [first, *(k for k in range(4) if k != first)]
    found = by_missing_pattern(x[order], (1,), density)
    assert found[np.argsort(order)].ravel().tolist() == [23, 13, 0, 15]
    asked.clear()
    assert by_missing_pattern(x[1:], (1,), density).ravel().tolist() == [13, 0, 15]
    assert (0, 1) not in asked  # nobody has both
    assert by_missing_pattern(np.zeros((3, 0)), (2,), density).tolist() == [[0, 0]] * 3


def test_rows_turned_by_one_root_are_turned_some_at_a_time():
    rng = np.random.default_rng(0)
    rows, shift, root = rng.normal(size=(5000, 40)), rng.normal(size=(3, 40)), np.tril(rng.normal(size=(1, 40, 40)))
    center = rng.normal(size=40)
    whole = ((rows - center) @ root[0].T)[:, None, :] - shift
    tracemalloc.start()
    found = whitened_squared_norms(rows, center, root, shift)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found, (whole**2).sum(axis=-1), rtol=1e-10)
    large = np.repeat(rows, 10, axis=0)
    tracemalloc.start()
    whitened_squared_norms(large, center, root, shift)
    assert tracemalloc.get_traced_memory()[1] < peak + 9 * found.nbytes + 2**20  # what is told, and nothing else, grows
    tracemalloc.stop()


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_what_is_definite_does_not_go_by_the_unit(unit):
    assert cholesky(unit * np.array([[1.0, 1.0], [1.0, 1.0 + 1e-14]])) is None
    assert cholesky(unit * np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]])) is not None


@pytest.mark.parametrize("given", [(), (2, 3)], ids=str)
def test_lengths_of_groups_of_any_axes(given):
    rng = np.random.default_rng(4)
    half = rng.normal(size=(*given, 2, 2)) + 2 * np.eye(2)
    covariance, mean, rows = half @ np.swapaxes(half, -1, -2), rng.normal(size=(*given, 2)), rng.normal(size=(5, 2))
    found, log_det = squared_distances(rows, mean, cholesky(covariance))
    assert found.shape == (5, *given)
    for index in np.ndindex(given):
        gap = rows - mean[index]
        np.testing.assert_allclose(
            found[(slice(None), *index)], (gap @ np.linalg.inv(covariance[index]) * gap).sum(axis=1), rtol=1e-10
        )
        assert log_det[index] == pytest.approx(np.linalg.slogdet(covariance[index])[1])


def test_no_group_has_a_mean():
    mean, root = np.full((2, 3), np.nan), np.stack([np.eye(3)] * 2)
    found, log_det = squared_distances(np.ones((4, 3)), mean, root)
    assert found.shape == (4, 2)
    assert np.isnan(found).all()
    assert log_det.tolist() == [0.0, 0.0]


def test_one_root_is_applied_once_for_all_groups(monkeypatch):
    """One pass over the triangle, whatever the number of groups; the means enter by a product of d numbers each."""
    rng = np.random.default_rng(1)
    rows, shift, root = rng.normal(size=(300, 30)), rng.normal(size=(7, 30)), np.tril(rng.normal(size=(1, 30, 30)))
    calls, compiled = [], kernels.squared_lengths

    def counted(X, center, roots, shifts, threads=0):
        calls.append(len(roots))
        return compiled(X, center, roots, shifts, threads)

    monkeypatch.setattr(kernels, "squared_lengths", counted)
    found = whitened_squared_norms(rows, rows.mean(axis=0), root, shift)
    assert calls == [1]
    expected = (((rows - rows.mean(axis=0)) @ root[0].T)[:, None, :] - shift) ** 2
    np.testing.assert_allclose(found, expected.sum(axis=-1), rtol=1e-10)
