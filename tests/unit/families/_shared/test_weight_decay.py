"""Weight decay by evidence: against the evidence of every λ, by the belief about lines itself."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import tallybayes as tb
from tallybayes.families._shared.weight_decay import best_decay

SHAPE, SCALE = 1.5, 0.7


def drawn(seed, slopes, n=40, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(slopes)))
    rows = np.c_[X, X @ slopes + noise * rng.normal(size=n)]
    return rows - rows.mean(axis=0)


def parts(groups):
    """What is known of centered rows: weights, scatters of inputs, products with the target, its squares."""
    scatters = [rows.T @ rows for rows in groups]
    weight = np.array([float(len(rows)) for rows in groups])
    return (
        weight,
        np.stack([one[:-1, :-1] for one in scatters]),
        np.stack([one[:-1, -1] for one in scatters]),
        np.array([one[-1, -1] for one in scatters]),
    )


@pytest.mark.parametrize(
    "slopes", [[0.3, -0.2, 0.0], [2.0, 1.0, 0.5], [0.05, 0.4, 0.1]], ids=["weak", "strong", "mixed"]
)
@pytest.mark.parametrize("n_groups", [1, 3])
def test_no_other_decay_makes_the_rows_as_probable(slopes, n_groups):
    groups = [drawn(seed, slopes) for seed in range(n_groups)]

    def surprise(log_decay):
        prior = tb.LinearNormalInverseGamma(
            np.zeros(3), np.exp(log_decay) * np.eye(3), SHAPE, SCALE, strength=None
        )  # known at the means
        return -sum(prior.log_evidence(tb.Moments.of(rows, full=True)) for rows in groups)

    found = best_decay(*parts(groups), SHAPE, SCALE)
    expected = minimize_scalar(surprise, bounds=(-8, 12), method="bounded", options={"xatol": 1e-9})
    assert surprise(np.log(found)) <= expected.fun + 1e-9
    if expected.x < 10:
        assert np.log(found) == pytest.approx(expected.x, abs=1e-3)


def test_inputs_that_tell_nothing_are_held_at_0():
    rng = np.random.default_rng(0)
    rows = np.c_[rng.normal(size=(50, 2)), rng.normal(size=50)]
    rows -= rows.mean(axis=0)
    rows[:, 2] -= rows[:, :2] @ np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)[0]
    assert best_decay(*parts([rows]), SHAPE, SCALE) == pytest.approx(50 * 1e6)  # as high as it looks


def test_no_inputs_and_inputs_without_scatter():
    empty = np.zeros((1, 0, 0)), np.zeros((1, 0))
    assert best_decay(np.array([7.0]), *empty, np.array([3.0]), SHAPE, SCALE) == 7.0
    assert best_decay(np.array([0.0]), *empty, np.array([0.0]), SHAPE, SCALE) == 1.0
    flat = np.zeros((1, 2, 2)), np.full((1, 2), 1e-20)  # rounding of products of what does not vary
    assert np.isfinite(best_decay(np.array([7.0]), *flat, np.array([3.0]), SHAPE, SCALE))


def test_units_change_nothing_but_the_unit_of_decay():
    rows = drawn(1, [0.3, -0.2, 0.4])
    found = best_decay(*parts([rows]), SHAPE, SCALE)
    small = rows * [1e-4, 1e-4, 1e-4, 1.0]
    # On inputs of another unit λ is looked for in another stretch of the same logarithms.
    assert best_decay(*parts([small * [1e3, 1e3, 1e3, 1.0]]), SHAPE, SCALE) == pytest.approx(found / 100, rel=1e-9)
    target = rows * [1.0, 1.0, 1.0, 1e-3]
    assert best_decay(*parts([target]), SHAPE, SCALE * 1e-6) == pytest.approx(found, rel=1e-9)


def test_directions_without_scatter_change_nothing():
    rows = drawn(2, [0.3, -0.5])
    found = best_decay(*parts([rows]), SHAPE, SCALE)
    more = np.c_[rows[:, 0], np.zeros(40), rows[:, 1], rows[:, 2]]
    assert best_decay(*parts([more]), SHAPE, SCALE) == pytest.approx(found, rel=1e-9)
    weight, within, across, squares = parts([more])
    rounded = across + 1e-9 * np.array([0.0, 1.0, 0.0])  # which are no products
    assert best_decay(weight, within, rounded, squares, SHAPE, SCALE) == pytest.approx(found, rel=1e-9)


def test_targets_that_inputs_explain_in_full_decay_as_little_as_is_looked_for():
    rows = drawn(3, [5.0, -4.0], noise=0.0)
    found = best_decay(*parts([rows]), 0.005, 1e-14)
    assert found < 40 * 1e-6
