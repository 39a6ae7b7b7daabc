"""How exact the sums are, and that threads change nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.unit.kernels.kernel_cases import TIERS, assert_same_bits, outcome, run

IMPLEMENTATIONS = ["reference", *TIERS]
every_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)


def as_fraction(high: np.ndarray, low: np.ndarray, *index: int) -> Fraction:
    return Fraction(float(high[index])) + Fraction(float(low[index]))


def distance(found: Fraction, expected: Fraction, scale: Fraction) -> float:
    return float(abs(found - expected) / scale)


@pytest.mark.slow_after(1)
@every_implementation
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_moments_against_fractions(implementation: str, weighted: bool, offset: float) -> None:
    rng = np.random.default_rng(0)
    n, d = 3000, 9
    X = rng.normal(offset, 1.0, (n, d))
    anchor = np.full(d, 0.25)
    group = rng.integers(0, 2, n)
    weight = rng.random(n) if weighted else None
    sums = run(implementation, "sum_moments", X, anchor, group, 2, weight)
    for g in range(2):
        w = [Fraction(float(x)) for x in (weight if weighted else np.ones(n))[group == g]]
        assert distance(as_fraction(*sums[0:2], g, 0), sum(w), sum(w)) < 1e-30
        for j in (0, d - 1):
            v = [Fraction(float(x)) for x in (X[:, j] - anchor[j])[group == g]]
            first = [a * b for a, b in zip(w, v, strict=True)]
            second = [a * b * b for a, b in zip(w, v, strict=True)]
            assert distance(as_fraction(*sums[2:4], g, j), sum(first), sum(map(abs, first))) < 1e-29
            assert distance(as_fraction(*sums[4:6], g, j), sum(second), sum(second)) < 1e-29


def scatter_about_mean(sums: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return Σ(x − mean)(x − mean)ᵀ of group 0 from the pairs, in exact arithmetic."""
    d = sums[2].shape[1]
    weight = as_fraction(*sums[0:2], 0, 0)
    first = [as_fraction(*sums[2:4], 0, j) for j in range(d)]
    result = [
        [float(as_fraction(*sums[4:6], 0, i, j) - first[i] * first[j] / weight) for j in range(d)] for i in range(d)
    ]
    return np.array(result)


@every_implementation
@pytest.mark.parametrize("weighted", [False, True])
def test_scatter_far_from_the_anchor(implementation: str, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    n, d = 20_000, 5
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 1000.0
    weight = rng.random(n) if weighted else None
    sums = run(implementation, "sum_scatter", X, np.zeros(d), None, 1, weight)
    w = np.ones(n) if weight is None else weight
    centered = (X - 1000.0) - ((X - 1000.0) * w[:, None]).sum(axis=0) / w.sum()
    expected = (centered * w[:, None]).T @ centered
    assert np.abs(scatter_about_mean(sums) - expected).max() / np.abs(expected).max() < 1e-12


@every_implementation
def test_scatter_merges_and_forgets(implementation: str) -> None:
    rng = np.random.default_rng(2)
    n, d, kept = 20_000, 4, 2
    X = rng.normal(size=(n, d)) * [1.0, 1e-3, 1e3, 1.0] + 1000.0
    every = run(implementation, "sum_scatter", X, np.zeros(d), None, 1)
    forgotten = run(implementation, "sum_scatter", X[kept:], np.zeros(d), None, 1)
    left = run(implementation, "sum_scatter", X[:kept], np.zeros(d), None, 1)
    for pair in (2, 4):
        for index in np.ndindex(left[pair].shape):
            difference = as_fraction(*every[pair : pair + 2], *index) - as_fraction(*forgotten[pair : pair + 2], *index)
            scale = abs(as_fraction(*left[pair : pair + 2], *index))
            assert distance(difference, as_fraction(*left[pair : pair + 2], *index), scale) < 1e-9


@every_implementation
def test_whole_counts_are_exact_whatever_the_split(implementation: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.poisson(3.0, (5000, 12)).astype(np.int32)
    whole = run(implementation, "sum_dense", X, "poisson", None, 1)[1]
    parts = sum(run(implementation, "sum_dense", part, "poisson", None, 1)[1] for part in np.array_split(X, 7))
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(whole[0], X.sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("grouping", ["none", "hard", "weighted", "soft"])
def test_threads_change_no_bit(tier: str, grouping: str) -> None:
    rng = np.random.default_rng(4)
    n, d, n_groups = 150_000, 20, 1 if grouping == "none" else 3
    rows = {
        "none": (None, 1, None),
        "hard": (rng.integers(-1, 3, n), 3, None),
        "weighted": (rng.integers(-1, 3, n), 3, rng.random(n)),
        "soft": (None, 3, rng.random((n, 3))),
    }[grouping]
    X = rng.normal(size=(n, d))
    X[rng.random(n) < 0.001, 3] = np.nan
    counts = rng.poisson(1.0, (n, d)).astype(np.float64)
    half = counts * 0.3
    indptr, indices = np.arange(0, n * 5 + 1, 5), np.sort(rng.random((n, 40)).argpartition(5)[:, :5]).ravel()
    calls = {
        "count_codes": (rng.integers(-1, 6, (n, d)).astype(np.int16), [6] * d),
        "sum_moments": (X, np.zeros(d)),
        "sum_csr": (indptr, indices, rng.random(n * 5), 40, "multinomial"),
    }
    for name, arguments in calls.items():
        one = outcome(tier, name, *arguments, *rows, threads=1)
        for threads in (2, 3, 7):
            assert_same_bits(outcome(tier, name, *arguments, *rows, threads=threads), one)
    for kind, cells in (("binary", counts > 0), ("poisson", counts), ("multinomial", half)):
        one = outcome(tier, "sum_dense", cells, kind, *rows, threads=1)
        assert_same_bits(outcome(tier, "sum_dense", cells, kind, *rows, threads=3), one)
    smaller = tuple(part[:60_000] if isinstance(part, np.ndarray) else part for part in rows)
    one = outcome(tier, "sum_scatter", half[:60_000], np.zeros(d), *smaller, threads=1)
    assert one[4].shape == (n_groups, d, d)
    assert_same_bits(outcome(tier, "sum_scatter", half[:60_000], np.zeros(d), *smaller, threads=4), one)


@pytest.mark.slow_after(1)
def test_wide_tables_and_many_groups(tier: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (40, 3000)).astype(np.int16)
    group = rng.integers(0, 5000, 40)
    for name, arguments in {
        "count_codes": (X, np.full(3000, 3)),
        "sum_dense": (X, "poisson"),
        "sum_moments": (X, np.zeros(3000)),
    }.items():
        expected = outcome("reference", name, *arguments, group % 7, 7)
        for found, wanted in zip(outcome(tier, name, *arguments, group % 7, 7), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    few = X[:, :9]
    for name, arguments in {
        "count_codes": (few, np.full(9, 3)),
        "sum_dense": (few, "poisson"),
        "sum_moments": (few, np.zeros(9)),
    }.items():
        expected = outcome("reference", name, *arguments, group, 5000)
        for found, wanted in zip(outcome(tier, name, *arguments, group, 5000), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
