"""The compiled kernels give what the reference gives, for every dtype, layout, grouping and weighting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.kernels.kernel_cases import (
    INTEGERS,
    Rows,
    assert_same,
    lay_out,
    layouts,
    outcome,
    row_groups,
    seeds,
    shapes,
)

drawn_examples = examples(60)


def scipy_free_csr(X: np.ndarray, index: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the non-zero cells and some zeros in compressed rows, the columns of a row in random order."""
    stored = (X != 0) | (rng.random(X.shape) < 0.1)
    indptr = np.concatenate(([0], np.cumsum(stored.sum(axis=1)))).astype(index)
    indices = [rng.permutation(np.flatnonzero(row)) for row in stored]
    columns = np.concatenate(indices).astype(index) if indices else np.zeros(0, index)
    rows = np.repeat(np.arange(len(X)), np.diff(indptr))
    return indptr, columns, X[rows, columns.astype(np.int64)]


@pytest.mark.slow_after(1)
@drawn_examples
@given(data=st.data(), n=st.integers(0, 5000))
def test_count_groups(tier: str, data: st.DataObject, n: int) -> None:
    rows = data.draw(row_groups(n))
    expected = outcome("reference", "count_groups", *rows.arguments, n_rows=n)
    assert_same(outcome(tier, "count_groups", *rows.arguments, n_rows=n), expected)


@pytest.mark.slow_after(1)
@drawn_examples
@given(data=st.data(), shape=shapes, seed=seeds, layout=layouts)
def test_count_codes(tier: str, data: st.DataObject, shape: tuple[int, int], seed: int, layout: str) -> None:
    rng = np.random.default_rng(seed)
    n, d = shape
    n *= data.draw(st.sampled_from([1, 1, 10, 40]))
    most = data.draw(st.sampled_from([2, 5, 12, 40, 127, 128, 254, 255, 256, 300]))
    dtype = np.dtype(data.draw(st.sampled_from((*INTEGERS, "?"))))
    fits = 2 if dtype == np.bool_ else min(int(np.iinfo(dtype).max), 10**6) + 1
    sizes = rng.integers(0 if data.draw(st.booleans()) else 1, most + 1, d)
    high = np.minimum(sizes, fits)
    low = 0 if dtype == np.bool_ else -1
    codes = np.stack([rng.integers(low, max(h, low + 1), n) for h in high], axis=1) if d else np.zeros((n, 0))
    # the missing code of an unsigned type is only missing where it is not valid, which the reference knows as well
    X = lay_out(codes.astype(dtype), layout)
    rows = data.draw(row_groups(n))
    expected = outcome("reference", "count_codes", X, sizes, *rows.arguments)
    assert_same(outcome(tier, "count_codes", X, sizes, *rows.arguments), expected)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("levels", [2, 10, 20, 100, 250, 1000])
@pytest.mark.parametrize("n_groups", [1, 5, 300])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i8"])
def test_every_way_of_counting(tier: str, levels: int, n_groups: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    levels = min(levels, np.iinfo(dtype).max)
    codes = rng.integers(0, levels, (6000, 7)).astype(dtype)
    group = rng.integers(0, n_groups, 6000)
    sizes = np.full(7, levels)
    for X in (codes, np.asfortranarray(codes)):
        expected = outcome("reference", "count_codes", X, sizes, group, n_groups)
        assert_same(outcome(tier, "count_codes", X, sizes, group, n_groups), expected)


def test_columns_of_different_types(tier: str) -> None:
    rng = np.random.default_rng(1)
    sizes = [3, 200, 5000, 7, 2]
    types = ["u1", "i2", "i4", "u8", "?"]
    columns = [rng.integers(0, size, 5000).astype(dtype) for size, dtype in zip(sizes, types, strict=True)]
    group = rng.integers(-1, 4, 5000)
    expected = outcome("reference", "count_codes", columns, sizes, group, 4)
    assert_same(outcome(tier, "count_codes", columns, sizes, group, 4), expected)
    for kind in ("poisson", "multinomial"):
        assert_same(
            outcome(tier, "sum_dense", columns, kind, group, 4),
            outcome("reference", "sum_dense", columns, kind, group, 4),
            rtol=1e-10,
        )


def cells(kind: str, dtype: np.dtype, shape: tuple[int, int], rng: np.random.Generator, missing: bool) -> np.ndarray:
    """Return cells that the kind allows, some of them NaN if wanted."""
    top = {"binary": 2, "poisson": 9, "multinomial": 5}[kind]
    X = rng.integers(0, 2 if dtype == np.bool_ else top, shape).astype(dtype)
    if dtype.kind == "f":
        if kind == "multinomial":
            X = (X * rng.choice([1.0, 0.5, 0.0], shape)).astype(dtype)
        else:
            if kind == "poisson":
                X[rng.random(shape) < 0.05] = 3000.0
            if missing:
                X[rng.random(shape) < 0.1] = np.nan
    return X


kinds = st.sampled_from(["binary", "poisson", "multinomial"])
number_types = st.sampled_from(["?", *INTEGERS, "f4", "f8", "f8"]).map(np.dtype)


@pytest.mark.slow_after(1)
@drawn_examples
@given(data=st.data(), shape=shapes, seed=seeds, layout=layouts, kind=kinds, dtype=number_types, missing=st.booleans())
def test_sum_dense(
    tier: str,
    data: st.DataObject,
    shape: tuple[int, int],
    seed: int,
    layout: str,
    kind: str,
    dtype: np.dtype,
    missing: bool,
) -> None:
    wide = data.draw(st.sampled_from([1, 1, 6]))
    X = lay_out(cells(kind, dtype, (shape[0], shape[1] * wide), np.random.default_rng(seed), missing), layout)
    rows = data.draw(row_groups(shape[0]))
    expected = outcome("reference", "sum_dense", X, kind, *rows.arguments)
    assert_same(outcome(tier, "sum_dense", X, kind, *rows.arguments), expected, rtol=1e-11)


@pytest.mark.slow_after(1)
@drawn_examples
@given(
    data=st.data(),
    shape=shapes,
    seed=seeds,
    kind=kinds,
    dtype=number_types,
    missing=st.booleans(),
    index=st.sampled_from(["i4", "i8"]),
)
def test_sum_csr(
    tier: str,
    data: st.DataObject,
    shape: tuple[int, int],
    seed: int,
    kind: str,
    dtype: np.dtype,
    missing: bool,
    index: str,
) -> None:
    rng = np.random.default_rng(seed)
    X = cells(kind, dtype, (shape[0], shape[1] * 8), rng, missing)
    X[rng.random(X.shape) < 0.5] = 0
    matrix = (*scipy_free_csr(X, index, rng), X.shape[1], kind)
    rows = data.draw(row_groups(shape[0]))
    expected = outcome("reference", "sum_csr", *matrix, *rows.arguments)
    assert_same(outcome(tier, "sum_csr", *matrix, *rows.arguments), expected, rtol=1e-10)
    dense = outcome("reference", "sum_dense", X, kind, *rows.arguments)
    if expected[0].shape == dense[0].shape:
        assert_same(expected, dense, rtol=1e-10)


def test_sparse_arrays_of_any_layout(tier: str) -> None:
    arrays = [np.array([0, 2, 3]), np.array([0, 3, 3], np.int32), np.array([1.0, 2.0, 5.0])]
    expected = outcome("reference", "sum_csr", *arrays, 4, "multinomial", None, 1)
    strided = [np.repeat(array, 2)[::2] for array in arrays]
    unaligned = [lay_out(array[:, None], "unaligned")[:, 0] for array in arrays]
    for matrix in (strided, unaligned):
        assert_same(outcome(tier, "sum_csr", *matrix, 4, "multinomial", None, 1), expected)


moment_types = st.sampled_from([*INTEGERS, "f4", "f8", "f8"]).map(np.dtype)


def values(dtype: np.dtype, shape: tuple[int, int], rng: np.random.Generator, missing: bool) -> np.ndarray:
    if dtype.kind != "f":
        return rng.integers(0, 100, shape).astype(dtype)
    X = (rng.normal(1e3, 1.0, shape)).astype(dtype)
    if missing:
        X[rng.random(shape) < 0.1] = np.nan
    return X


def as_pairs(sums: list[np.ndarray]) -> list[np.ndarray]:
    return [sums[0] + sums[1], sums[2] + sums[3], sums[4] + sums[5]]


@pytest.mark.slow_after(1)
@drawn_examples
@given(data=st.data(), shape=shapes, seed=seeds, layout=layouts, dtype=moment_types, missing=st.booleans())
def test_sum_moments(
    tier: str,
    data: st.DataObject,
    shape: tuple[int, int],
    seed: int,
    layout: str,
    dtype: np.dtype,
    missing: bool,
) -> None:
    rng = np.random.default_rng(seed)
    X = lay_out(values(dtype, shape, rng, missing), layout)
    anchor = rng.normal(1e3, 1.0, shape[1])
    rows = data.draw(row_groups(shape[0]))
    expected = outcome("reference", "sum_moments", X, anchor, *rows.arguments)
    found = outcome(tier, "sum_moments", X, anchor, *rows.arguments)
    assert [sums.shape for sums in found] == [sums.shape for sums in expected]
    if rows.weight is not None and rows.weight.ndim == 2:  # blocks of rows are summed in plain float64
        assert_same(as_pairs(found), as_pairs(expected), rtol=1e-13, atol=1e-12)
        return
    # the pairs agree far beyond float64: exactly, when the small halves are compared as well
    assert_same(as_pairs(found), as_pairs(expected), rtol=1e-15, atol=1e-15)
    for high in (0, 2, 4):
        difference = (found[high] - expected[high]) + (found[high + 1] - expected[high + 1])
        assert (np.abs(difference) <= 1e-29 * shape[0] * 1e6).all()


@pytest.mark.slow_after(1)
@drawn_examples
@given(data=st.data(), shape=shapes, seed=seeds, layout=layouts, dtype=moment_types)
def test_sum_scatter(
    tier: str, data: st.DataObject, shape: tuple[int, int], seed: int, layout: str, dtype: np.dtype
) -> None:
    rng = np.random.default_rng(seed)
    X = lay_out(values(dtype, shape, rng, missing=False), layout)
    anchor = rng.normal(1e3, 1.0, shape[1])
    rows = data.draw(row_groups(shape[0], most_groups=6))
    expected = outcome("reference", "sum_scatter", X, anchor, *rows.arguments)
    found = outcome(tier, "sum_scatter", X, anchor, *rows.arguments)
    assert_same(as_pairs(found), as_pairs(expected), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(found[4], found[4].swapaxes(1, 2))
    np.testing.assert_array_equal(found[5], found[5].swapaxes(1, 2))


@pytest.mark.parametrize("dtype", ["u1", "i2", "f8"])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 100_003])
def test_read_bytes(tier: str, dtype: str, n: int) -> None:
    array = np.random.default_rng(0).integers(0, 100, n).astype(dtype)
    assert outcome(tier, "read_bytes", array) == outcome("reference", "read_bytes", array)


def test_no_rows_no_columns_no_groups(tier: str) -> None:
    nothing = Rows(np.zeros(0, np.int8), 0, None)
    for name, arguments in {
        "count_codes": (np.zeros((0, 0), np.int8), []),
        "sum_dense": (np.zeros((0, 0)), "multinomial"),
        "sum_moments": (np.zeros((0, 0)), []),
        "sum_scatter": ([], []),
    }.items():
        for rows in (nothing, Rows(None, 1, None), Rows(None, 3, np.zeros((0, 3)))):
            expected = outcome("reference", name, *arguments, *rows.arguments)
            assert_same(outcome(tier, name, *arguments, *rows.arguments), expected)
