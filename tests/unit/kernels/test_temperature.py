"""Sums over tempered rows: compiled against NumPy, and both against differences of the sum itself."""

import numpy as np
import pytest

from tallybayes.kernels import active
from tallybayes.kernels.reference import temperature as reference_temperature
from tallybayes.kernels.temperature import temperature_sums
from tests.unit.kernels.kernel_cases import TIERS, _compiled


def draw(n, k, seed=0):
    rng = np.random.default_rng(seed)
    scores = -rng.exponential(20.0, (k, n))
    scores[rng.integers(0, k, n), np.arange(n)] = 0.0
    scores[scores < -90] = -700.0
    truth = scores[rng.integers(0, k, n), np.arange(n)].copy()
    return scores, truth, rng.uniform(0.01, 1.0, n), rng.integers(0, 3, n).astype(float)


def slow(rows, sharpness, doubt):
    return reference_temperature.sum_tempered(rows[0].reshape(-1), *rows[1:], len(rows[0]), sharpness, doubt)


@pytest.mark.slow_after(15)
@pytest.mark.parametrize(("n", "k"), [(0, 2), (8, 1), (8, 2), (64, 3), (1000, 26)])
@pytest.mark.parametrize("sharpness", [0.01, 1.0, 3.0])
@pytest.mark.parametrize("doubt", [1e-12, 0.01, 0.9])
def test_compiled_sums_are_those_of_numpy(n, k, sharpness, doubt, monkeypatch):
    rows = draw(n, k, n + k)
    wanted = slow(rows, sharpness, doubt)
    scale = 1e-12 * (1 + np.abs(rows[3]).sum() * 700**2 * max(1.0, sharpness) ** 2)
    monkeypatch.setattr(active, "module", _compiled)
    for tier in TIERS:
        _compiled.use_tier(tier)
        try:
            found = temperature_sums(*rows, sharpness, doubt)
        finally:
            _compiled.use_tier(TIERS[-1])
        np.testing.assert_allclose(found[[0, 2, 5]], wanted[[0, 2, 5]], rtol=1e-12, atol=1e-12 * max(n, 1))
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=scale)


def test_derivatives_are_those_of_the_sum():
    rows, at, step = draw(80, 3), np.array([-0.3, -2.0]), 1e-4

    def height(place):
        return slow(rows, np.exp(place[0]), 1 / (1 + np.exp(-place[1])))

    sums = height(at)
    for axis, (slope, first, second) in enumerate([(1, sums[3], -sums[4]), (2, -sums[4], sums[5])]):
        move = step * np.eye(2)[axis]
        up, down = height(at + move), height(at - move)
        assert (up[0] - down[0]) / (2 * step) == pytest.approx(sums[slope], rel=1e-5)
        assert (up[1] - down[1]) / (2 * step) == pytest.approx(first, rel=1e-4)
        assert (up[2] - down[2]) / (2 * step) == pytest.approx(second, rel=1e-4)


def test_other_shapes_are_refused():
    scores, *rest = draw(8, 2)
    with pytest.raises(ValueError, match="multiple of eight"):
        temperature_sums(scores[:, :7].copy(), *(part[:7] for part in rest), 1.0, 0.1)
    with pytest.raises(ValueError, match="contiguous"):
        temperature_sums(np.asfortranarray(scores), *rest, 1.0, 0.1)
