"""Steps given those before them: what is counted, said and drawn of them, beside lines in other columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.errors import DataError
from tallybayes.families.protocols.degenerate_estimates import first_degenerate_group
from tallybayes.families.protocols.display import named_parameters
from tallybayes.families.protocols.distribution_functions import cdf
from tallybayes.families.protocols.em_support import distance_features

RNG = np.random.default_rng(4)
STEPS = np.cumsum(RNG.normal(size=25)) * 0.3
PAIRS = np.c_[STEPS[1:-1], STEPS[:-2], STEPS[2:]]  # the last one first, one more, and the step itself
TWO = LinearParameters(np.array([[0.5, 0.2], [-0.4, 0.1]]), np.array([1.0, -2.0]), np.array([0.25, 4.0]))
FAMILY = tb.Autoregressive(2)


@pytest.mark.parametrize("order", [0, -1, 1.5, True, "two"])
def test_orders_that_are_none(order):
    with pytest.raises(DataError, match="order"):
        tb.Autoregressive(order)


def test_steps_are_counted_as_lines_are_and_those_that_lack_one_are_left_out():
    expected = tb.LinearGaussian().collect(PAIRS)
    assert FAMILY.collect(PAIRS) == expected
    assert FAMILY.collect(list(PAIRS.T)) == expected
    holed, group, weight = PAIRS.copy(), np.arange(len(PAIRS)) % 2, np.linspace(0.5, 1.5, len(PAIRS))
    holed[2, 0] = holed[5, 2] = np.nan
    whole = ~np.isnan(holed).any(axis=1)
    kept = FAMILY.collect(PAIRS[whole], group[whole], 2, weight[whole])
    assert FAMILY.collect(holed, group, 2, weight, like=kept).isclose(kept, 1e-13)
    for wrong in (PAIRS[:, :2], np.c_[PAIRS, PAIRS]):
        with pytest.raises(DataError, match="columns here; expected 3"):
            FAMILY.collect(wrong)
    assert FAMILY.collect(np.zeros((0, 3))).weight.sum() == 0


def test_steps_that_lack_one_before_them_say_nothing():
    holed = PAIRS[:6].copy()
    holed[1, 1] = holed[4, 2] = np.nan
    found = FAMILY.log_prob(TWO, holed)
    gaps = PAIRS[:6, 2:] - PAIRS[:6, :2] @ TWO.slope.T - TWO.intercept
    expected = stats.norm.logpdf(gaps, scale=np.sqrt(TWO.variance))
    expected[[1, 4]] = 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    below = cdf(FAMILY, TWO, holed)[..., 0]
    np.testing.assert_allclose(below[[0, 2]], stats.norm.cdf(gaps[[0, 2]], scale=np.sqrt(TWO.variance)), rtol=1e-12)
    assert np.isnan(below[[1, 4]]).all()


def test_what_comes_after_others():
    ahead = FAMILY.step_distribution(TWO, np.array([3.0, 10.0]))
    assert ahead.mean.tolist() == [[0.5 * 3 + 0.2 * 10 + 1.0], [-0.4 * 3 + 0.1 * 10 - 2.0]]
    assert ahead.variance.tolist() == [[0.25], [4.0]]


def test_paths_are_followed_step_by_step():
    still = LinearParameters(TWO.slope, TWO.intercept, np.zeros(2))
    found = FAMILY.sample_steps(still, np.array([0, 1, 0]), np.array([3.0, 10.0]), RNG)
    first = 0.5 * 3 + 0.2 * 10 + 1.0
    second = -0.4 * first + 0.1 * 3 - 2.0
    np.testing.assert_allclose(found, [first, second, 0.5 * second + 0.2 * first + 1.0], rtol=1e-12)
    level = LinearParameters(np.zeros((2, 2)), np.array([5.0, -5.0]), np.array([1.0, 9.0]))
    path = np.repeat([0, 1], 5000)
    drawn = FAMILY.sample_steps(level, path, np.zeros(2), RNG)
    assert [drawn[path == k].mean() for k in range(2)] == pytest.approx([5.0, -5.0], abs=0.2)
    assert [drawn[path == k].std() for k in range(2)] == pytest.approx([1.0, 3.0], rel=0.05)


def test_states_whose_steps_lie_on_a_line_have_no_density():
    rows, group = PAIRS.copy(), np.arange(len(PAIRS)) % 2
    rows[group == 1, 2] = rows[group == 1, :2] @ [0.5, 0.5] + 1.0
    counted = FAMILY.collect(rows, group, 2)
    assert first_degenerate_group(FAMILY, FAMILY.maximum_likelihood(counted), counted) == (1, 2)
    usual = FAMILY.collect(PAIRS, group, 2)
    assert first_degenerate_group(FAMILY, FAMILY.maximum_likelihood(usual), usual) is None


def test_seeds_go_by_level_and_by_how_far_a_step_went():
    cells, unit = distance_features(FAMILY, np.array([[1.0, 9.0, 4.0], [2.0, 0.0, -1.0]]))
    assert cells.tolist() == [[4.0, 3.0], [-1.0, 3.0]]
    assert unit is None


def test_a_line_is_told_by_steps_back():
    found = {name: part[..., 0].tolist() for name, part in named_parameters(FAMILY, TWO).items()}
    assert found == {
        "intercept": [1.0, -2.0],
        "weight of 1 before": [0.5, -0.4],
        "weight of 2 before": [0.2, 0.1],
        "variance": [0.25, 4.0],
        "std": [0.5, 2.0],
    }
    counted = FAMILY.collect(PAIRS)
    posterior = FAMILY.resolve_prior(1.0, counted, "bayes").update(counted)
    np.testing.assert_allclose(named_parameters(FAMILY, posterior)["variance"][..., 0], posterior.mean().variance)


def test_one_step_back_is_the_usual_order():
    assert tb.Autoregressive().order == 1
    assert tb.Autoregressive(1) == tb.Autoregressive()


def test_steps_further_back_move_on():
    line = LinearParameters(np.array([[0.0, 0.0, 1.0]]), np.zeros(1), np.zeros(1))  # each is the third before it
    found = tb.Autoregressive(3).sample_steps(line, np.zeros(7, dtype=int), np.array([3.0, 2.0, 1.0]), RNG)
    assert found.tolist() == [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]


def test_a_density_goes_by_the_steps_not_by_those_before():
    rows = PAIRS * np.array([1e12, 1e12, 1.0])
    counted = FAMILY.collect(rows)
    assert first_degenerate_group(FAMILY, FAMILY.maximum_likelihood(counted), counted) is None
