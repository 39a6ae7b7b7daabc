"""Soft weights, one for every row and group: their blocks and tiles, and how exact their sums are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.unit.kernels.kernel_cases import TIERS, assert_same, assert_same_bits, lay_out, outcome, run

IMPLEMENTATIONS = ["reference", *TIERS]
every_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
N_ROWS = 1300  # several blocks, the last one short


def responsibilities(rng: np.random.Generator, n: int, n_groups: int) -> np.ndarray:
    """Weights that add up to 1 in every row, some of them 0."""
    weight = rng.random((n, n_groups)) ** 4
    weight[weight < 0.02] = 0.0
    total = weight.sum(axis=1, keepdims=True)
    return np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)


def as_pairs(sums: list[np.ndarray]) -> list[np.ndarray]:
    return [sums[0] + sums[1], sums[2] + sums[3], sums[4] + sums[5]]


def exact(high: np.ndarray, low: np.ndarray, *index: int) -> Fraction:
    return Fraction(float(high[index])) + Fraction(float(low[index]))


def mean_and_scatter(sums: tuple[np.ndarray, ...], group: int, column: int, full: bool) -> tuple[Fraction, Fraction]:
    """Return what a group's sums say about a column, in rational arithmetic."""
    weight = exact(*sums[0:2], group, 0)
    first = exact(*sums[2:4], group, column)
    second = exact(*sums[4:6], group, column, *((column,) if full else ()))
    return first / weight, second - first * first / weight


def assert_exact(sums: tuple[np.ndarray, ...], X: np.ndarray, weight: np.ndarray, anchor: float, rtol: float) -> None:
    """Compare mean and scatter of every group and column with rational arithmetic, in units of the spread."""
    full = sums[4].ndim == 3
    for g in range(weight.shape[1]):
        w = [Fraction(float(each)) for each in weight[:, g]]
        total = sum(w)
        assert abs(exact(*sums[0:2], g, 0) - total) <= rtol * total
        for j in range(X.shape[1]):
            v = [Fraction(float(x)) - Fraction(anchor) for x in X[:, j]]
            mean = sum(a * b for a, b in zip(w, v, strict=True)) / total
            scatter = sum(a * (b - mean) ** 2 for a, b in zip(w, v, strict=True))
            found_mean, found_scatter = mean_and_scatter(sums, g, j, full)
            assert abs(found_scatter - scatter) <= rtol * scatter
            assert (found_mean - mean) ** 2 <= Fraction(rtol) ** 2 * scatter / total


@pytest.mark.slow_after(1)
@every_implementation
@pytest.mark.parametrize("name", ["sum_moments", "sum_scatter"])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
def test_moments_are_good_to_13_digits(implementation: str, name: str, offset: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(offset, 1.0, (N_ROWS, 3))
    weight = responsibilities(rng, N_ROWS, 2)
    sums = run(implementation, name, X, np.full(3, 0.25), None, 2, weight)
    # the reference rounds x − 0.25 once, which nothing can undo where x is large
    assert_exact(sums, X, weight, 0.25, 1e-13 if implementation != "reference" or offset < 1e6 else 1e-7)


@pytest.mark.slow_after(1)
@every_implementation
@pytest.mark.parametrize("name", ["sum_moments", "sum_scatter"])
@pytest.mark.parametrize("ordered", [False, True])
def test_groups_far_apart(implementation: str, name: str, ordered: bool) -> None:
    """A center between the groups would leave nothing of their small spreads."""
    rng = np.random.default_rng(1)
    side = np.sort(rng.integers(0, 2, N_ROWS)) if ordered else rng.integers(0, 2, N_ROWS)
    X = rng.normal(np.where(side, 1e8, -1e8)[:, None], 1.0, (N_ROWS, 2))
    weight = np.where(np.arange(2) == side[:, None], 1.0, 1e-30)
    sums = run(implementation, name, X, np.zeros(2), None, 2, weight)
    assert_exact(sums, X, weight, 0.0, 1e-12)


@every_implementation
@pytest.mark.parametrize("name", ["sum_moments", "sum_scatter"])
def test_a_constant_column_has_no_scatter(implementation: str, name: str) -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([np.full(N_ROWS, 1e9 / 3), rng.normal(size=N_ROWS)])
    sums = run(implementation, name, X, np.zeros(2), None, 2, responsibilities(rng, N_ROWS, 2))
    for g in range(2):
        _, scatter = mean_and_scatter(sums, g, 0, name == "sum_scatter")
        assert abs(scatter) <= 1e-25 * float(exact(*sums[4:6], g, *((0, 0) if name == "sum_scatter" else (0,))))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("n_groups", "d"), [(1, 1), (2, 5), (5, 20), (4, 13), (6, 3), (7, 17), (8, 8), (9, 33), (17, 32), (3, 40)]
)
def test_every_width_and_number_of_groups(tier: str, n_groups: int, d: int) -> None:
    rng = np.random.default_rng(3)
    weight = responsibilities(rng, N_ROWS, n_groups)
    counts = rng.poisson(1.2, (N_ROWS, d))
    counts[rng.random(counts.shape) < 0.01] = 40
    calls: dict[str, tuple[Any, ...]] = {
        "count_codes": (np.minimum(counts, 5).astype(np.uint8), np.full(d, 6)),
        "sum_moments": (rng.normal(3.0, 1.0, (N_ROWS, d)), np.zeros(d)),
        "sum_scatter": (rng.normal(3.0, 1.0, (N_ROWS, d)), np.zeros(d)),
    }
    for name, arguments in calls.items():
        expected, found = (outcome(each, name, *arguments, None, n_groups, weight) for each in ("reference", tier))
        if len(expected) == 6:
            expected, found = as_pairs(expected), as_pairs(found)
        assert_same(found, expected, rtol=1e-12)
    for kind, cells in (("binary", counts > 0), ("poisson", counts), ("multinomial", counts * 0.5)):
        arguments = (cells.astype(np.float64), kind, None, n_groups, weight)
        assert_same(outcome(tier, "sum_dense", *arguments), outcome("reference", "sum_dense", *arguments), rtol=1e-12)


@pytest.mark.slow_after(4)
@every_implementation
@pytest.mark.parametrize("layout", ["rows", "columns", "list"])
def test_shares_of_one_are_hard_groups(implementation: str, layout: str) -> None:
    rng = np.random.default_rng(4)
    group = rng.integers(0, 5, N_ROWS)
    shares = (group[:, None] == np.arange(5)).astype(np.float64)
    counts = rng.poisson(1.0, (N_ROWS, 11)).astype(np.float64)
    counts[rng.random(N_ROWS) < 0.2, 3] = np.nan
    cells = lay_out(counts, layout)
    codes = lay_out(np.nan_to_num(counts, nan=-1).astype(np.int16), layout)
    for name, arguments in {
        "count_codes": (codes, np.full(11, 12)),
        "sum_dense": (cells, "poisson"),
        "sum_moments": (cells, np.ones(11)),
    }.items():
        hard = outcome(implementation, name, *arguments, group, 5)
        soft = outcome(implementation, name, *arguments, None, 5, shares)
        if name == "sum_moments":
            hard, soft = as_pairs(hard), as_pairs(soft)
        assert_same(soft, hard)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.9])
def test_missing_cells(tier: str, share: float) -> None:
    rng = np.random.default_rng(5)
    weight = responsibilities(rng, N_ROWS, 3)
    X = rng.poisson(2.0, (N_ROWS, 9)).astype(np.float64)
    X[rng.random(X.shape) < share] = np.nan
    X[:, 7] = np.nan
    for name, arguments in {"sum_dense": (X, "poisson"), "sum_moments": (X, np.zeros(9))}.items():
        expected, found = (outcome(each, name, *arguments, None, 3, weight) for each in ("reference", tier))
        assert found[0].shape == (3, 9)
        assert (found[0][:, 7] == 0).all()
        if name == "sum_moments":
            expected, found = as_pairs(expected), as_pairs(found)
        assert_same(found, expected, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 6, 11])
def test_a_single_missing_cell(tier: str, d: int) -> None:
    """Pieces of rows with and without it take turns; nothing may be left over from one in the other."""
    rng = np.random.default_rng(10)
    weight = responsibilities(rng, N_ROWS, 3)
    weight[600] = [0.5, 0.0, 0.5]
    X = rng.poisson(2.0, (N_ROWS, d)).astype(np.float64)
    X[100:400] = rng.integers(0, 2, (300, d))
    X[600, d - 1] = np.nan
    for name, arguments in {
        "sum_dense": (X, "poisson"),
        "sum_dense ": (np.minimum(X, 1.0), "binary"),
        "sum_moments": (X, np.zeros(d)),
    }.items():
        expected, found = (outcome(each, name.strip(), *arguments, None, 3, weight) for each in ("reference", tier))
        if name == "sum_moments":
            expected, found = as_pairs(expected), as_pairs(found)
        assert_same(found, expected)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("garbage", [np.nan, np.inf, -1e300, 0.5])
def test_rows_without_weight_are_not_looked_at(tier: str, garbage: float) -> None:
    rng = np.random.default_rng(6)
    weight = responsibilities(rng, N_ROWS, 3)
    weight[::7] = 0.0
    X = rng.integers(0, 2, (N_ROWS, 9)).astype(np.float64)
    clean = X.copy()
    X[::7] = garbage
    calls: dict[str, tuple[Any, ...]] = {"sum_moments": (np.zeros(9),), "sum_scatter": (np.zeros(9),)}
    for name, rest in calls.items():
        found = outcome(tier, name, X, *rest, None, 3, weight)
        expected = outcome("reference", name, clean, *rest, None, 3, weight)
        assert found[0].shape == (3, 1)
        assert_same(as_pairs(found), as_pairs(expected))
    for kind in ("binary", "poisson", "multinomial"):
        found = outcome(tier, "sum_dense", X, kind, None, 3, weight)
        assert_same(found, outcome("reference", "sum_dense", clean, kind, None, 3, weight))
    # a value is looked at where any group has a weight for it
    weight[7, 1] = 1e-9
    if garbage != 0.5:
        assert outcome(tier, "sum_scatter", X, np.zeros(9), None, 3, weight)[0].__name__ == "CellError"
    if not np.isnan(garbage):
        assert outcome(tier, "sum_dense", X, "binary", None, 3, weight)[0].__name__ == "CellError"


@every_implementation
def test_large_sums_of_good_terms(implementation: str) -> None:
    X = np.full((2000, 9), 9e149)
    weight = np.ones((2000, 2))
    sums = outcome(implementation, "sum_moments", X, np.zeros(9), None, 2, weight)
    np.testing.assert_allclose(sums[4], 2000 * 0.81e300, rtol=1e-12)


def test_missing_codes_of_a_type_with_fewer_levels(tier: str) -> None:
    """200 levels are declared, a signed byte holds 128: the missing code must not fall on one of the others."""
    rng = np.random.default_rng(7)
    codes = rng.integers(-1, 128, (700, 3)).astype(np.int8)
    weight = responsibilities(rng, 700, 2)
    for X in (codes, np.asfortranarray(codes)):
        expected = outcome("reference", "count_codes", X, [200, 128, 250], None, 2, weight)
        assert_same(outcome(tier, "count_codes", X, [200, 128, 250], None, 2, weight), expected)
    codes[600, 1] = -5
    assert outcome(tier, "count_codes", codes, [200, 128, 250], None, 2, weight)[0].__name__ == "CellError"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", ["binary", "poisson", "multinomial"])
@pytest.mark.parametrize("n_groups", [1, 2, 3, 5, 20])
def test_sparse_rows_in_several_runs(tier: str, kind: str, n_groups: int) -> None:
    rng = np.random.default_rng(8)
    n, d, entries = 25_000, 12, 6
    indices = rng.random((n, d)).argpartition(entries)[:, :entries].ravel().astype(np.int32)
    data = (rng.random(n * entries) < 0.7) * (1.0 if kind == "binary" else rng.integers(1, 4, n * entries) * 1.0)
    matrix = (np.arange(0, n * entries + 1, entries), indices, data, d, kind)
    rows = (None, n_groups, responsibilities(rng, n, n_groups))
    one = outcome(tier, "sum_csr", *matrix, *rows, threads=1)
    assert_same(one, outcome("reference", "sum_csr", *matrix, *rows), rtol=1e-11)
    assert_same_bits(outcome(tier, "sum_csr", *matrix, *rows, threads=3), one)
    if kind != "multinomial":
        data[::50] = np.nan
        found, expected = (outcome(each, "sum_csr", *matrix, *rows) for each in (tier, "reference"))
        assert_same(found, expected, rtol=1e-11)


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i4", "u8", "f4"])
@pytest.mark.parametrize("n_columns", [1, 3, 8, 13, 70])
def test_every_type_is_widened(tier: str, dtype: str, n_columns: int) -> None:
    rng = np.random.default_rng(9)
    low, high = (0, 256) if dtype == "u1" else (-128, 128) if dtype in ("i1", "i4", "f4") else (0, 60_000)
    X = rng.integers(low, high, (N_ROWS, n_columns)).astype(dtype)
    weight = responsibilities(rng, N_ROWS, 2)
    expected, found = (
        outcome(each, "sum_moments", X, np.zeros(n_columns), None, 2, weight) for each in ("reference", tier)
    )
    assert_same(as_pairs(found), as_pairs(expected), rtol=1e-12, atol=1e-9)


def test_no_columns_and_no_groups(tier: str) -> None:
    for weight in (np.full((5, 3), 0.25), np.zeros((5, 0))):
        rows = (None, weight.shape[1], weight)
        for d in (0, 4):
            for name, arguments in {
                "count_codes": (np.zeros((5, d), np.int8), [2] * d),
                "sum_dense": (np.ones((5, d)), "multinomial"),
                "sum_moments": (np.ones((5, d)), np.zeros(d)),
                "sum_scatter": (np.ones((5, d)), np.zeros(d)),
            }.items():
                expected = outcome("reference", name, *arguments, *rows)
                assert_same(outcome(tier, name, *arguments, *rows), expected)
