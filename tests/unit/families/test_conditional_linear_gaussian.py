"""A measured node given measured parents: rows that lack cells are left out, and noise is expected as is usual."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian, weight_name
from tallybayes.families.protocols.degenerate_estimates import first_degenerate_group, mask_degenerate_groups
from tallybayes.families.protocols.display import named_parameters
from tallybayes.families.protocols.linear_nodes import family_given_continuous_parents

FAMILY = ConditionalLinearGaussian()
RNG = np.random.default_rng(2)
GROUP = np.arange(30) % 2
X = RNG.normal(size=(30, 2)) + 4.0
ROWS = np.c_[X, X @ [1.0, -2.0] + 3 * GROUP + 0.5 * RNG.normal(size=30)]
HOLED = ROWS.copy()
HOLED[3, 0] = HOLED[8, 2] = HOLED[11, 1] = np.nan
WHOLE = ~np.isnan(HOLED).any(axis=1)


@pytest.mark.parametrize("form", [np.asarray, lambda rows: list(rows.T)], ids=["array", "list"])
def test_rows_that_lack_a_cell_are_left_out(form):
    expected = FAMILY.collect(ROWS[WHOLE])
    assert FAMILY.collect(form(HOLED), like=expected).isclose(expected, 1e-13)
    by_group = FAMILY.collect(ROWS[WHOLE], GROUP[WHOLE], 2)
    assert FAMILY.collect(form(HOLED), GROUP, 2, like=by_group).isclose(by_group, 1e-13)
    weight = np.linspace(0.5, 2.0, 30)
    weighted = FAMILY.collect(ROWS[WHOLE], GROUP[WHOLE], 2, weight[WHOLE])
    assert FAMILY.collect(form(HOLED), GROUP, 2, weight, like=weighted).isclose(weighted, 1e-13)
    shares = np.c_[weight, 3 - weight]
    soft = FAMILY.collect(ROWS[WHOLE], None, 2, shares[WHOLE])
    assert FAMILY.collect(form(HOLED), None, 2, shares, like=soft).isclose(soft, 1e-13)
    assert FAMILY.collect(form(np.round(ROWS).astype(int))).weight[0, 0] == 30


def test_rows_that_lack_a_cell_say_nothing():
    line = LinearParameters(np.array([[1.0, -2.0], [0.5, 0.0]]), np.array([0.0, 3.0]), np.array([0.25, 2.0]))
    found = FAMILY.log_prob(line, HOLED)
    gaps = ROWS[:, 2:] - X @ line.slope.T - line.intercept
    expected = np.where(WHOLE[:, None], stats.norm.logpdf(gaps, scale=np.sqrt(line.variance)), 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_noise_is_expected_as_wide_as_is_usual_about_the_lines(estimate):
    """Between what is left about the lines of groups and the spread of all rows: s² of default priors."""
    counted = FAMILY.collect(ROWS, GROUP, 2)
    left = sum(
        np.linalg.lstsq(np.c_[X[k == GROUP], np.ones(15)], ROWS[k == GROUP, 2], rcond=None)[1][0] for k in range(2)
    )
    freedom = 30 - 2 * 3
    v = left / freedom
    usual = v * min(ROWS[:, 2].var() / v, 1000) ** (8 / (freedom + 8))
    prior = FAMILY.resolve_prior(None, counted, estimate)
    assert 2 * prior.shape == 3.0  # worth three rows
    # The mode of the noise beside the line's three weights, b/(a + 1 + 3/2), or the b/a of the t.
    expected = prior.scale / (prior.shape + 1 + 3 / 2 if estimate == "map" else prior.shape)
    assert expected == pytest.approx(usual, rel=1e-9)
    again = FAMILY.resolve_prior("empirical", counted, estimate)
    assert float(again.scale) == float(prior.scale)


def test_noise_where_there_is_nothing_to_go_by():
    nothing = FAMILY.collect(ROWS[:0])
    found = FAMILY.resolve_prior(1.0, nothing, "bayes")
    assert found.scale / found.shape == pytest.approx(1.0)
    flat = FAMILY.resolve_prior(1.0, FAMILY.collect(np.c_[X, np.full(30, 5.0)]), "bayes")
    assert flat.scale / flat.shape == pytest.approx(25e-12)  # what is rounding of its level
    zero = FAMILY.resolve_prior(1.0, FAMILY.collect(np.c_[X, np.zeros(30)]), "bayes")
    assert zero.scale / zero.shape == pytest.approx(1.0)
    two = FAMILY.resolve_prior(1.0, FAMILY.collect(ROWS[:2]), "bayes")  # that meet their line: the spread of all
    assert two.scale / two.shape == pytest.approx(ROWS[:2, 2].var())


def test_groups_whose_rows_lie_on_their_line_have_no_density():
    rows = ROWS.copy()
    rows[GROUP == 1, 2] = X[GROUP == 1] @ [1.0, 1.0]
    counted = FAMILY.collect(rows, GROUP, 3)
    line = FAMILY.maximum_likelihood(counted)
    assert first_degenerate_group(FAMILY, line, counted) == (1, 2)
    usual = FAMILY.collect(ROWS, GROUP, 2)
    assert first_degenerate_group(FAMILY, FAMILY.maximum_likelihood(usual), usual) is None
    known = mask_degenerate_groups(FAMILY, line)
    for part in (known.slope, known.intercept[:, None], known.variance[:, None]):
        assert np.isnan(part).all(axis=1).tolist() == [False, True, True]
    np.testing.assert_array_equal(known.slope[0], line.slope[0])
    assert (known.intercept[0], known.variance[0]) == (line.intercept[0], line.variance[0])


def test_a_line_is_told_by_its_intercept_weights_and_noise():
    line = LinearParameters(np.array([[1.0, -2.0]]), np.array([0.5]), np.array([0.25]))
    found = {name: part.tolist() for name, part in named_parameters(FAMILY, line).items()}
    names = ["intercept", weight_name(0), weight_name(1), "variance", "std"]
    assert found == dict(zip(names, [[[0.5]], [[1.0]], [[-2.0]], [[0.25]], [[0.5]]], strict=True))
    counted = FAMILY.collect(ROWS)
    posterior = FAMILY.resolve_prior(1.0, counted, "bayes").update(counted)
    np.testing.assert_allclose(named_parameters(FAMILY, posterior)["intercept"][..., 0], posterior.mean().intercept)
    assert family_given_continuous_parents(FAMILY) is FAMILY
    assert FAMILY.number_is_weight_decay


def test_a_density_goes_by_the_node_not_by_its_parents():
    counted = FAMILY.collect(ROWS * np.array([1e12, 1e12, 1.0]))
    assert first_degenerate_group(FAMILY, FAMILY.maximum_likelihood(counted), counted) is None


def test_other_words_are_no_priors():
    with pytest.raises(tb.PriorError):
        FAMILY.resolve_prior("flat", FAMILY.collect(ROWS), "bayes")


def test_weights_of_less_than_a_row_have_their_spread():
    counted = FAMILY.collect(ROWS, None, 1, np.full(30, 0.02))
    found = FAMILY.resolve_prior(1.0, counted, "bayes")
    assert found.scale / found.shape == pytest.approx(ROWS[:, 2].var(), rel=1e-9)
