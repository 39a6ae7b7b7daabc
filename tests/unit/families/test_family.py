"""What every family says of itself is so, and what the protocol does where a family says nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.errors import CellError, DataError
from tallybayes.families._shared.blocks import Codes, compressed
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian
from tallybayes.families.family import (
    Family,
    broadcast_over_groups,
    ratio,
    take_groups,
    zero_where_missing,
)
from tallybayes.families.protocols.cell_checks import first_invalid_cell, out_of_support, out_of_support_cells
from tallybayes.families.protocols.counting import aggregates
from tallybayes.families.protocols.degenerate_estimates import constant_columns, is_undefined, pooled_value
from tallybayes.families.protocols.display import plot_grid
from tallybayes.families.protocols.distribution_functions import cdf, conditional_means, kl_divergence
from tallybayes.families.protocols.leave_one_out import leave_one_out_changes_all_groups
from tallybayes.families.protocols.linear_nodes import family_given_continuous_parents
from tallybayes.families.protocols.memory_use import memory_use
from tallybayes.families.protocols.scoring_forms import log_prob_form

COUNTS = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [3.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 2.0, 4.0]])
NUMBERS = np.random.default_rng(0).normal(size=(9, 3)) + 9.0
ROWS = {
    tb.Bernoulli(): (COUNTS > 1).astype(float),
    tb.Binomial(5): COUNTS,
    tb.Poisson(): COUNTS,
    tb.Multinomial(): COUNTS,
    tb.DirichletMultinomial(): COUNTS,
    tb.Gaussian(): NUMBERS,
    tb.TiedGaussian(): NUMBERS,
    tb.SphericalGaussian(): NUMBERS,
    tb.TiedSphericalGaussian(): NUMBERS,
    tb.MultivariateGaussian(): NUMBERS,
    tb.TiedMultivariateGaussian(): NUMBERS,
    tb.LogNormal(): NUMBERS,
    tb.LinearGaussian(): NUMBERS,
    tb.LinearGaussianThroughOrigin(): NUMBERS,
    ConditionalLinearGaussian(): NUMBERS,
    tb.Autoregressive(2): NUMBERS,
}
each_family = pytest.mark.parametrize("family", ROWS, ids=repr)


def learned(family, rows=None):
    return family.collect(ROWS[family] if rows is None else rows, None, 1)


def accepts(family, rows):
    try:
        family.collect(rows)
    except (CellError, DataError):
        return False
    return True


@each_family
def test_a_row_has_a_term_for_every_column_if_columns_are_by_themselves(family):
    statistics, rows = learned(family), ROWS[family]
    shape = (len(rows), 1, 3) if family.columnwise else (len(rows), 1)
    assert family.log_prob(family.maximum_likelihood(statistics), rows).shape == shape
    posterior = family.resolve_prior(None, statistics, "bayes").update(statistics)
    expected = (len(rows), 1, 3) if family.columnwise else (len(rows), 1)
    assert family.log_predictive(posterior, rows).shape == expected


@each_family
def test_what_is_counted_is_what_is_said_to_be(family):
    rows = ROWS[family].copy()
    assert accepts(family, compressed(rows)) == family.accepts_sparse
    below = rows.copy()
    below[1, 1] = -1.0
    counts = isinstance(family, tb.Bernoulli | tb.Poisson | tb.Multinomial)
    assert family.nonnegative_cells == counts
    assert not (accepts(family, below) and counts)
    holed = rows.copy()
    holed[1, 1] = np.nan
    left_out = isinstance(family, ConditionalLinearGaussian)  # which leaves such rows out itself
    assert accepts(family, holed) == (family.accepts_missing and (left_out or not family.requires_complete_rows))


@each_family
def test_cells_of_columns_that_are_summed_add_up(family):
    """Σx can be read from the statistics, of every column, where a family says that its statistics sum cells."""
    statistics, rows = learned(family), ROWS[family]
    if isinstance(statistics, tb.Moments):
        total = (statistics.first_sum.value + statistics.anchor * statistics.weight)[0]
    else:
        total = statistics.total[0]
    if family.sums_cells:
        np.testing.assert_allclose(total, rows.sum(axis=0), rtol=1e-12)
    else:
        assert isinstance(
            family, tb.LogNormal | tb.Binomial | tb.Bernoulli | ConditionalLinearGaussian | tb.Autoregressive
        )


@each_family
def test_what_is_measured_has_densities(family):
    """Which scale with the unit of a column; probabilities have none."""
    assert family.is_continuous == isinstance(learned(family), tb.Moments)
    assert family.is_bag_of_words == isinstance(family, tb.Multinomial)
    assert family.is_conditional == isinstance(family, tb.LinearGaussian)


@pytest.mark.parametrize("family", ROWS, ids=repr)
def test_numbers_that_are_kept_grow_as_the_statistics_do(family):
    """So that too much is refused in time: at least as many are reckoned with as a group has, and not many more."""
    for d in (20, 60):
        some = tb.Autoregressive(d - 1) if isinstance(family, tb.Autoregressive) else family
        statistics = some.collect(np.resize(ROWS[family], (12, d)))
        kept = sum(
            np.size(part.high) + np.size(part.low) if hasattr(part, "high") else np.size(part)
            for part in vars(statistics).values()
            if hasattr(part, "shape")
        )
        reckoned, besides, _ = memory_use(some, d)
        assert 0.9 * kept < reckoned < 4 * kept
        assert reckoned <= besides < 10 * reckoned


class Plain(tb.Gaussian):
    """A Gaussian without closed forms."""


def test_what_is_not_said_is_drawn():
    point = tb.Gaussian().as_parameters((np.array([[1.0, 3.0]]), np.array([[4.0, 0.25]])), None)
    other = tb.Gaussian().as_parameters((np.array([[2.0, 3.0]]), np.array([[1.0, 0.25]])), None)
    x = np.array([[0.0, 3.0], [2.5, 2.9]])
    np.testing.assert_allclose(cdf(Plain(), point, x), cdf(tb.Gaussian(), point, x), atol=0.03)
    assert cdf(Plain(), point, x[:0]).shape == (0, 1, 2)
    closed = kl_divergence(tb.Gaussian(), point, other)
    found = kl_divergence(Plain(), point, other)
    np.testing.assert_allclose(found, closed, rtol=0.1, atol=0.01)
    assert (kl_divergence(Plain(), point, point) == 0).all()

    class Own(tb.Gaussian):
        def log_prob(self, parameters, x):
            return super().log_prob(parameters, x)

    np.testing.assert_array_equal(kl_divergence(Own(), point, other), found)  # which scores anew
    np.testing.assert_array_equal(kl_divergence(tb.Gaussian(), point, other), closed)


def test_pictures_span_what_is_drawn_or_all_numbers_that_are_likely():
    point = tb.Gaussian().as_parameters((np.array([[1.0, 3.0]]), np.array([[4.0, 0.25]])), None)
    grid = plot_grid.dispatch(object)(Plain(), point, 1)
    assert (np.diff(grid) > 0).all()
    assert 0 < grid[0] < 2
    assert 4 < grid[-1] < 6
    belief = tb.NormalInverseGamma(np.array([[3.0]]), 1.0, 30.0, 30.0)
    grid = plot_grid.dispatch(object)(Plain(), belief, 0)
    assert grid.mean() == pytest.approx(3.0, abs=0.7)
    for rate in (0.2, 4.0, 100.0):
        counts = plot_grid(tb.Poisson(), np.array([[rate], [0.1]]), 0)
        np.testing.assert_array_equal(counts, np.arange(len(counts)))
        assert stats.poisson.sf(counts[-1], rate) < 1e-4
        assert counts[-1] < rate + 7 * np.sqrt(rate) + 6
    assert plot_grid(tb.Poisson(), np.array([[np.nan]]), 0).tolist() == [0, 1, 2, 3, 4, 5]


def test_cells_that_cannot_be_counted_are_found_by_halves_where_nothing_is_said():
    class Own(tb.Poisson):
        def collect(self, block, *parts, **options):
            return super().collect(block, *parts, **options)

    x = np.array([[0.0, 2.0, -1.0], [0.5, np.nan, np.inf], [7.0, -1.0, 3.25]])
    expected = [[False, False, True], [True, False, False], [False, True, True]]
    assert out_of_support_cells(tb.Poisson(), x).tolist() == expected
    assert out_of_support(Own(), x) is None
    assert out_of_support_cells(Own(), x).tolist() == expected
    assert out_of_support_cells(Own(), np.zeros((0, 2))).shape == (0, 2)
    assert first_invalid_cell(tb.Gaussian(), np.array([[1.0, 2.0], [3.0, -np.inf]])) == (1, 1)
    assert first_invalid_cell(tb.Poisson(), np.array([[1.0, 2.0], [3.0, 0.5]])) == (1, 1)
    assert first_invalid_cell(tb.Poisson(), np.array([[1.0, 2.0]])) is None


def test_axes_ratios_and_missing_terms():
    x = np.arange(6.0).reshape(3, 2)
    assert broadcast_over_groups(x, 2).shape == (3, 1, 1, 2)
    assert broadcast_over_groups(x[:, None], 2).shape == (3, 1, 2)
    assert zero_where_missing(np.array([5.0, 6.0]), np.array([np.nan, 1.0])).tolist() == [0.0, 6.0]
    np.testing.assert_array_equal(ratio(np.array([3.0, 0.0, 0.0]), np.array([2.0, 0.0, 4.0])), [1.5, np.nan, 0.0])


def test_values_parameters_and_rows_of_all_groups():
    statistics = tb.Poisson().collect(COUNTS, np.array([0, 1, 0, 1, 0]), 3)
    moments = tb.Gaussian().collect(NUMBERS[:, :2], np.arange(9) % 2, 3)
    np.testing.assert_allclose(pooled_value(tb.Gaussian(), moments), NUMBERS[:, :2].mean(axis=0))
    assert np.isnan(pooled_value(tb.Gaussian(), tb.Gaussian().collect(NUMBERS[:0]))).all()
    light = tb.Gaussian().collect(NUMBERS[:1], weight=np.array([0.25]))
    np.testing.assert_allclose(pooled_value(tb.Gaussian(), light), NUMBERS[0])
    alone = tb.Gaussian().unbiased(tb.Gaussian().collect(NUMBERS[:1]))  # a mean without a variance is known
    assert is_undefined(alone).tolist() == [[False] * 3]
    assert tb.Poisson().n_parameters(statistics) == 9
    assert tb.Poisson().row_weight(statistics).tolist() == [[3.0] * 3, [2.0] * 3, [0.0] * 3]
    point = tb.Poisson().maximum_likelihood(statistics)
    assert is_undefined(point).tolist() == [[False] * 3, [False] * 3, [True] * 3]
    assert take_groups(point, [1]).tolist() == [point[1].tolist()]
    pair = tb.Gaussian().maximum_likelihood(tb.Gaussian().collect(NUMBERS, np.arange(9) % 2, 3))
    assert take_groups(pair, [2, 0]).mean.tolist()[1] == pair.mean[0].tolist()
    assert is_undefined(pair).all(axis=1).tolist() == [False, False, True]
    means = conditional_means(tb.Poisson(), point, COUNTS)
    assert means.shape == (5, 3, 3)
    np.testing.assert_array_equal(means[3], point)


def test_a_bare_family_says_only_what_all_have_in_common():
    @dataclass(frozen=True, eq=False, repr=False)
    class Bare(Family):
        belief = tb.Beta

    family = Bare()
    assert not family.is_binary
    assert not leave_one_out_changes_all_groups(family)
    assert family.columnwise
    assert family.accepts_missing
    flags = (
        "full_moments",
        "requires_complete_rows",
        "accepts_sparse",
        "nonnegative_cells",
        "is_continuous",
        "sums_cells",
        "is_conditional",
    )
    assert not any(
        getattr(family, name)
        for name in (*flags, "number_is_weight_decay", "has_vocabulary", "is_bag_of_words", "transforms")
    )
    assert (family.order, family.bins, family.present_family, family.word_family) == (0, (), None, None)
    assert family.statistics_key == ("Bare",)
    nothing = (
        family_given_continuous_parents(family),
        aggregates(family, 2, np.zeros(2)),
        log_prob_form(family, None),
        out_of_support(family, NUMBERS),
    )
    assert nothing == (None, None, None, None)
    assert constant_columns(family, None).tolist() == []
    with pytest.raises(tb.PriorError):
        family.resolve_prior(2.0, None, "bayes")


def test_labels_take_codes_and_nothing_else():
    family = tb.Categorical()
    codes = Codes(np.array([[0], [1], [-1]]), np.array([2]))
    assert (family.cell_type, family.columnwise, family.accepts_missing) == ("codes", True, True)
    point = family.maximum_likelihood(family.collect(codes))
    assert family.log_prob(point, codes.columns).shape == (3, 1, 1)


def test_a_belief_about_something_else_is_refused():
    for family, belief in ((tb.Poisson(), tb.Beta(1, 1)), (tb.Gaussian(), tb.Gamma(1, 1)), (tb.Bernoulli(), "flat")):
        with pytest.raises(tb.PriorError):
            family.resolve_prior(belief, learned(family), "bayes")
