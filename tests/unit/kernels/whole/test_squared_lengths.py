"""Squared Mahalanobis lengths: compiled as the reference has them, whatever the layout, type and number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from tallybayes import kernels
from tallybayes.kernels.reference import sums as reference_sums

SHAPES = [(1, 1, 1), (7, 3, 2), (100, 5, 3), (33, 100, 5), (1000, 13, 4), (2049, 8, 2), (513, 4, 1)]


def example(n: int, d: int, n_classes: int, dtype: type) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng([n, d, n_classes])
    rows = (rng.normal(size=(n, d)) * 10).astype(dtype)
    return rows, rng.normal(size=d), rng.normal(size=(n_classes, d, d)), rng.normal(size=(n_classes, d))


def expected(rows: np.ndarray, center: np.ndarray, roots: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    turned = np.einsum("kij,nj->nki", np.tril(roots), rows - center) - shifts
    return (turned**2).sum(axis=-1)


@pytest.mark.slow_after(9)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8])
def test_every_layout_gives_the_closed_form(shape: tuple[int, int, int], dtype: type) -> None:
    rows, *rest = example(*shape, dtype)
    wanted = expected(rows, *rest)
    for layout in (rows, np.asfortranarray(rows), list(rows.T), np.repeat(rows, 2, axis=0)[::2]):
        found = kernels.squared_lengths(layout, *rest)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        for threads in (1, 2, 3):
            np.testing.assert_array_equal(kernels.squared_lengths(layout, *rest, threads=threads), found)


def test_the_reference_agrees() -> None:
    rows, center, roots, shifts = example(5000, 9, 3, np.float64)
    found = reference_sums.squared_lengths(rows, center, roots.reshape(-1), shifts.reshape(-1), 3, 1)
    np.testing.assert_allclose(found, kernels.squared_lengths(rows, center, roots, shifts), rtol=1e-12)


def test_a_missing_cell_spoils_its_own_row_only() -> None:
    rows, *rest = example(100, 5, 3, np.float64)
    whole = kernels.squared_lengths(rows, *rest)
    rows[17, 2] = np.nan
    found = kernels.squared_lengths(rows, *rest)
    assert np.isnan(found[17]).all()
    np.testing.assert_array_equal(np.delete(found, 17, axis=0), np.delete(whole, 17, axis=0))


@pytest.mark.parametrize(("n", "d", "n_classes"), [(0, 3, 2), (4, 0, 2), (4, 3, 0)])
def test_nothing_to_turn(n: int, d: int, n_classes: int) -> None:
    rows, *rest = example(n, d, n_classes, np.float64)
    np.testing.assert_array_equal(kernels.squared_lengths(rows, *rest), np.zeros((n, n_classes)))


def test_shapes_are_checked() -> None:
    rows, center, roots, shifts = example(4, 3, 2, np.float64)
    with pytest.raises(ValueError, match="expected"):
        kernels.squared_lengths(rows, center[:2], roots, shifts)
    with pytest.raises(ValueError, match=r"\(2, 2, 3\)"):
        kernels.squared_lengths(rows, center, roots[:, :2], shifts)
    with pytest.raises(ValueError, match=r"\(1, 3\)"):
        kernels.squared_lengths(rows, center, roots, shifts[:1])
