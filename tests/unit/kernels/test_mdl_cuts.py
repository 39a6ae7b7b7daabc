"""Cuts by class: compiled against NumPy, and what they are."""

import numpy as np
import pytest

from tallybayes.kernels import mdl_cuts
from tallybayes.kernels.mdl_cuts import best_cuts
from tallybayes.kernels.reference import mdl_cuts as reference_mdl_cuts
from tests.unit.kernels.kernel_cases import _compiled, needs_compiled


def tables():
    rng = np.random.default_rng(0)
    for n_classes in (1, 2, 3, 7, 40):
        for n_values in (1, 2, 5, 60, 700, 3000):  # of many borders some are tried first
            center = rng.random((n_classes, 1)) * n_values
            rate = 9 / (1 + ((np.arange(n_values) - center) / (0.1 * n_values + 1)) ** 2) / n_classes
            table = rng.poisson(rate)
            table[rng.integers(n_classes), table.sum(axis=0) == 0] = 1
            yield pytest.param(table, id=f"{n_classes} classes, {n_values} values")


@needs_compiled
@pytest.mark.slow_after(9)
@pytest.mark.parametrize("table", list(tables()))
def test_compiled_and_numpy_cut_alike(table):
    logs = mdl_cuts._n_log_n(int(table.sum()).bit_length())
    slow = reference_mdl_cuts.best_cuts(table.reshape(-1), len(table), logs)
    fast = _compiled.best_cuts(table.astype(np.int32).reshape(-1), len(table), logs)
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_array_equal(best_cuts(table), slow)
    np.testing.assert_array_equal(best_cuts(table.astype(float)), slow)
    halves = best_cuts(np.concatenate([table, table]) / 2)  # weights that are no whole numbers have a way of their own
    assert halves.dtype == np.int64


def test_a_cut_lies_where_the_classes_change():
    table = np.zeros((3, 90), dtype=np.int64)
    table[np.repeat([0, 1, 2], 30), np.arange(90)] = 2
    np.testing.assert_array_equal(best_cuts(table), [30, 60])
    np.testing.assert_array_equal(best_cuts(np.ones((2, 50), dtype=np.int64)), [])
    np.testing.assert_array_equal(best_cuts(np.zeros((2, 0), dtype=np.int64)), [])


@pytest.mark.parametrize(
    ("table", "message"),
    [(np.ones(3), "expected two"), (-np.ones((2, 2)), "negative"), (np.full((2, 2), np.inf), "infinite")],
)
def test_what_is_no_table_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        best_cuts(table)


@needs_compiled
def test_the_compiled_one_looks_for_itself():
    good = np.ones(6, dtype=np.int32), 2, np.zeros(7)
    assert len(_compiled.best_cuts(*good)) == 0
    for bad in [(good[0], 4, good[2]), (good[0], 2, np.zeros(6)), (-good[0], 2, good[2])]:
        with pytest.raises(ValueError, match="expected"):
            _compiled.best_cuts(*bad)
    with pytest.raises(TypeError):
        _compiled.best_cuts(good[0].astype(float), 2, good[2])
