"""Empirical Dirichlets: compiled against NumPy, step by step, and what is refused."""

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from tallybayes.kernels.dirichlet_fit import fit_dirichlet_newton
from tallybayes.kernels.reference import dirichlet_fit as reference_dirichlet_fit
from tests.unit.kernels.kernel_cases import _compiled, needs_compiled


def columns(n_groups, scale, *, whole, seed=0):
    """Counts of columns of all sizes, of which some have a single group or none."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([[0, 1, 1, 2, 0], rng.integers(1, 12, 30)])
    counts = rng.gamma(0.5, scale, (sizes.sum(), n_groups))
    counts = np.floor(counts) if whole else counts
    counts[:1], counts[2:4, 1:], many = 0, 0, rng.integers(1, 4, sizes.sum()).astype(float)
    column = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.zeros((len(sizes), n_groups))
    np.add.at(rows, column, many[:, None] * counts)
    n_levels = np.bincount(column, many, len(sizes)).astype(np.int64)
    return np.sort(counts, axis=1), np.sort(rows, axis=1), many, sizes, n_levels


@needs_compiled
@pytest.mark.slow_after(6)
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0, 1e4])
@pytest.mark.parametrize("n_groups", [1, 2, 3, 26])
def test_compiled_and_numpy_climb_alike(n_groups, scale, whole):
    given = columns(n_groups, scale, whole=whole)
    flat = *(part.reshape(-1) for part in given), n_groups
    slow, fast = reference_dirichlet_fit.climb_dirichlet(*flat), _compiled.climb_dirichlet(*flat)
    unit = 2.0**-50 * given[1].sum(axis=1).max()  # of what they are rounded to
    np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=unit)
    np.testing.assert_array_equal(fit_dirichlet_newton(*given), fast)


def test_no_column_depends_on_others_to_the_bit():
    counts, rows, many, sizes, n_levels = columns(7, 5.0, whole=True)
    found = fit_dirichlet_newton(counts, rows, many, sizes, n_levels)
    ends = np.cumsum(sizes)
    for j, (first, last) in enumerate(zip(ends - sizes, ends, strict=True)):
        here = slice(j, j + 1)
        alone = fit_dirichlet_newton(counts[first:last], rows[here], many[first:last], sizes[here], n_levels[here])
        np.testing.assert_array_equal(alone, found[first:last])


def test_of_a_single_level_every_concentration_is_as_good():
    one = np.array([1])
    for counts in ([3.0, 5.0], [2.5, 700.25], [1.0, 1e6]):  # the evidence is 1 whatever it is: no rounding moves it
        given = np.array([counts]), np.array([counts]), np.ones(1), one, one
        assert (
            fit_dirichlet_newton(*given) == reference_dirichlet_fit.climb_dirichlet(*map(np.ravel, given), 2) == [1.0]
        )


def test_slopes():
    start = np.array([1e-3, 0.5, 3.0, 7.9, 8.0, 19.0, 51.0, 400.0])
    for steps in (0.0, 0.3, 1.0, 25.0, 3000.0):
        first, second = reference_dirichlet_fit._digamma_differences(start, np.full(8, steps))
        np.testing.assert_allclose(first, digamma(start + steps) - digamma(start), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(second, polygamma(1, start + steps) - polygamma(1, start), rtol=1e-6, atol=1e-14)
    big = np.array([1e6, 1e9, 1e13])  # where the difference of two digammas has lost its digits
    first, second = reference_dirichlet_fit._digamma_differences(big, np.full(3, 2.0))
    np.testing.assert_allclose(first, 1 / big + 1 / (big + 1), rtol=1e-13)
    np.testing.assert_allclose(second, -1 / big**2 - 1 / (big + 1) ** 2, rtol=1e-13)


@needs_compiled
def test_what_does_not_fit_is_refused():
    given = columns(3, 4.0, whole=True)
    for place in (1, 2, 3):
        with pytest.raises(ValueError, match="expected"):
            fit_dirichlet_newton(*given[:place], given[place][1:], *given[place + 1 :])
    flat = [part.reshape(-1) for part in given]
    for place in range(5):
        with pytest.raises(ValueError, match="expected"):
            _compiled.climb_dirichlet(*flat[:place], flat[place][1:], *flat[place + 1 :], 3)
    with pytest.raises(ValueError, match="sizes"):
        _compiled.climb_dirichlet(*flat[:3], flat[3] - 1, flat[4], 3)
    with pytest.raises(TypeError):
        _compiled.climb_dirichlet(flat[0].astype(np.float32), *flat[1:], 3)
