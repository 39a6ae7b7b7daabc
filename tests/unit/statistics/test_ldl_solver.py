"""Symmetric equations in double-double: as NumPy's where that is exact, and what depends on what."""

import numpy as np
import pytest

from tallybayes.statistics import ldl_solver
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.ldl_solver import minimum_norm_solution, solve_ldl


def solved(matrix, right):
    return solve_ldl(DoubleDouble.of(matrix), DoubleDouble.of(right))


@pytest.fixture(params=["double-double", "float64"])
def most(request, monkeypatch):
    if request.param == "float64":
        monkeypatch.setattr(ldl_solver, "_MAX_DOUBLE_DOUBLE", 0)


@pytest.mark.parametrize("p", [1, 2, 7])
def test_is_the_solution_in_every_group(p, most):
    rng = np.random.default_rng(p)
    rows = rng.normal(size=(3, 20, p)) * 10.0 ** rng.integers(-6, 6, p)
    matrix, right = np.swapaxes(rows, -1, -2) @ rows, rng.normal(size=(3, p, 2))
    found = solved(matrix, right)
    np.testing.assert_allclose(found.solution.value, np.linalg.solve(matrix, right), rtol=1e-10)
    np.testing.assert_allclose(found.root @ np.swapaxes(found.root, -1, -2), matrix, rtol=1e-12)
    assert not found.dependent.any()


def test_columns_that_depend_on_others_are_told_and_the_shortest_solution_is_lstsq(most):
    rng = np.random.default_rng(0)
    base = rng.normal(size=(50, 3))
    rows = np.c_[base[:, 0], 3 * base[:, 0], base[:, 1], base[:, 0] - base[:, 1], np.zeros(50), base[:, 2]]
    target = rng.normal(size=(50, 1))
    found = solved(rows.T @ rows, rows.T @ target)
    assert found.dependent.tolist() == [False, True, False, True, True, False]
    least = minimum_norm_solution(DoubleDouble.of(rows.T @ rows), found).value
    np.testing.assert_allclose(least, np.linalg.lstsq(rows, target, rcond=None)[0], atol=1e-12)


def test_nothing_to_solve():
    found = solved(np.zeros((2, 0, 0)), np.zeros((2, 0, 1)))
    assert found.solution.shape == (2, 0, 1)
    assert found.dependent.shape == (2, 0)
    empty = solved(np.zeros((2, 2)), np.zeros((2, 1)))
    assert empty.dependent.all()
    assert (empty.solution.value == 0).all()


def test_a_hilbert_matrix_keeps_its_digits():
    """Condition 1e13: float64 would have three digits left."""
    n = 10
    hilbert = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1)
    fine = DoubleDouble.of(np.ones((n, n))) / DoubleDouble.of(np.arange(n)[:, None] + np.arange(n) + 1.0)
    ones = DoubleDouble.of(np.ones((n, 1)))
    right = (fine * ones.map(lambda a: a.T)).sum((1,)).map(lambda a: a[:, None])
    found = solve_ldl(fine, right).solution.value
    np.testing.assert_allclose(found, 1.0, rtol=1e-9)
    assert np.abs(np.linalg.solve(hilbert, right.value) - 1).max() > 1e-6
