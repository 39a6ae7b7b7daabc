"""Successes and failures in fractions of rows: neither is ever the rounding of the other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.families.protocols.cell_checks import out_of_support
from tallybayes.families.protocols.display import plot_grid
from tallybayes.families.protocols.distribution_functions import cdf
from tallybayes.families.protocols.em_support import distance_features
from tallybayes.families.protocols.leave_one_out import leave_one_out_log_prob, leave_one_out_tables
from tallybayes.families.protocols.scoring_forms import log_predictive_form, log_prob_form, transform

FAMILIES = {"Bernoulli": (tb.Bernoulli(), 1), "Binomial": (tb.Binomial(3), 3)}


@pytest.mark.parametrize("name", FAMILIES)
class TestFractionsOfRows:
    def test_what_always_succeeds_is_certain_and_never_failed(self, name):
        family, n = FAMILIES[name]
        always = tb.fit_distribution([n, n, n], family, weight=[0.1, 0.2, 0.3])
        assert always.statistics.failures.tolist() == [0.0]
        assert always.estimate("mle") == 1.0
        assert always.log_likelihood(1.0) == pytest.approx(0.0, abs=1e-15)

    @pytest.mark.slow_after(1)
    def test_all_can_be_forgotten_in_other_portions(self, name):
        family, n = FAMILIES[name]
        rng = np.random.default_rng(4)
        for _ in range(50):
            x, weight = rng.integers(0, 2, 40) * n, rng.random(40) ** 4
            x[:35] = n  # few fail
            parts = np.array_split(rng.permutation(40), 7)
            rest = tb.fit_distribution(x, family, weight=weight)
            for part in parts[:-1]:
                rest = rest - tb.fit_distribution(x[part], family, weight=weight[part])
            last = tb.fit_distribution(x[parts[-1]], family, weight=weight[parts[-1]])
            for part in ("weight", "total", "failures"):
                np.testing.assert_allclose(*(getattr(s.statistics, part) for s in (rest, last)), rtol=0, atol=1e-13)
            assert (rest.statistics.failures == 0).tolist() == (last.statistics.failures == 0).tolist()
            assert not (rest - last).statistics.failures.any()

    def test_failures_are_what_exact_arithmetic_says(self, name):
        family, n = FAMILIES[name]
        weight = np.random.default_rng(5).random(1000)
        x = np.full(1000, n)
        x[[17, 800]] = 0
        found = tb.fit_distribution(x, family, weight=weight).statistics.failures[0]
        assert found == pytest.approx(float(n * (Fraction(weight[17]) + Fraction(weight[800]))), rel=1e-11)

    def test_scaling_and_adding_keep_certainty(self, name):
        family, n = FAMILIES[name]
        always = tb.fit_distribution([n] * 7, family, weight=np.arange(1, 8) / 10).statistics
        total = always.scale(0.1) + always.scale(1 / 3) + always
        assert total.failures.tolist() == [0.0]
        assert family.maximum_likelihood(total).tolist() == [1.0]


def test_one_failure_among_more_successes_than_a_share_can_tell():
    totals = tb.Totals([1e17 + 16], [1e17], failures=[16.0])
    share = tb.Bernoulli().maximum_likelihood(totals)
    assert share[0] < 1.0
    assert np.isfinite(tb.Bernoulli().log_likelihood(share, totals)).all()


def test_whole_counts_are_exact_up_to_two_to_the_53():
    held = tb.Totals([2.0**53 - 1], [2.0**53 - 2]).with_failures()
    assert held.failures.tolist() == [1.0]
    assert (held - tb.Totals([2.0**53 - 3], [2.0**53 - 3]).with_failures()).failures.tolist() == [1.0]
    with pytest.raises(tb.errors.StatisticsError, match="-2"):
        tb.Counts([1e12]) - tb.Counts([1e12 + 2])


@pytest.mark.parametrize("sparse", [False, True])
def test_naive_bayes_forgets_weighted_rows(sparse):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(1)
    x = (rng.random((60, 9)) < np.linspace(0.02, 1.0, 9)).astype(float)
    y, weight = rng.integers(0, 2, 60), rng.random(60) * 3
    rows = scipy_sparse.csr_array(x) if sparse else x
    model = tb.NaiveBayes(tb.Bernoulli()).fit(rows, y, sample_weight=weight)
    model.forget(rows[:55], y[:55], sample_weight=weight[:55])
    left = tb.NaiveBayes(tb.Bernoulli()).fit(rows[55:], y[55:], sample_weight=weight[55:])
    np.testing.assert_allclose(model.predict_proba(rows), left.predict_proba(rows), rtol=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", [8, 9, 10, 11])
def test_em_without_a_prior_ends_at_a_finite_top(seed):
    rng = np.random.default_rng(seed)
    p = rng.random((3, 6))
    p[:, 0] = p[0, 1] = 1  # always: what fails is the rounding of weights
    group = rng.integers(0, 3, 150)
    x = (rng.random((150, 6)) < p[group]).astype(float)
    weight = rng.random(150) * 10.0 ** rng.integers(-6, 2, 150)
    known = np.where(rng.random(150) < 0.3, group.astype(float), np.nan)
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="mle", unlabeled="em").fit(x, known, sample_weight=weight)
    assert np.isfinite(model.history_).all()
    assert (np.diff(model.history_) > -1e-8 * weight.sum()).all()


def test_totals_without_failures_go_through_a_file(tmp_path):
    tally = tb.count({"x": [1, 1, 1, 0]}, [tb.Factor("x", (), tb.Bernoulli())])
    made = tb.Tally(tally.factors, [tb.Totals(weight=[4.0], total=[3.0])], tally.domains, tally.schema)
    made.save(tmp_path / "a.tally")
    assert tb.load(tmp_path / "a.tally") == made == tally


def test_what_is_neither_yes_nor_no():
    assert out_of_support(tb.Bernoulli(), np.array([0.0, 1.0, 0.5, 2.0, -1.0])).tolist() == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_a_failure_that_was_seen_leaves_a_doubt():
    statistics = tb.Totals(weight=[1e20], total=[1e20], failures=[1.0])
    assert 0 < 1 - tb.Bernoulli().maximum_likelihood(statistics)[0] < 1e-15


RATES = np.array([[0.0, 0.2, 0.7], [1.0, 0.5, 0.05]])  # of two groups and three columns


def test_probabilities_of_yes_and_no_are_scipys():
    x = np.array([[0.0, 1.0, np.nan], [1.0, 0.0, 1.0]])
    found = tb.Bernoulli().log_prob(RATES, x)
    expected = np.where(np.isnan(x[:, None]), 0.0, stats.bernoulli.logpmf(np.nan_to_num(x)[:, None], RATES))
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(log_prob_form(tb.Bernoulli(), RATES).evaluate(x), expected, rtol=1e-12)
    belief = tb.Beta([[2.0, 1.0, 5.0], [3.0, 4.0, 1e12]], [1.0, 3.0, 0.5])
    mean = belief.alpha / (belief.alpha + belief.beta)
    rest = belief.beta / (belief.alpha + belief.beta)
    known = np.where(x[:, None] == 1, np.log(mean), np.log(rest))
    expected = np.where(np.isnan(x[:, None]), 0.0, known)
    np.testing.assert_allclose(tb.Bernoulli().log_predictive(belief, x), expected, rtol=1e-13)
    np.testing.assert_allclose(
        log_predictive_form(tb.Bernoulli(), belief).evaluate(x), expected, rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("x", [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 4.0, 5.0])
def test_shares_up_to_a_number_are_scipys(x):
    cells = np.full((1, 3), x)
    np.testing.assert_allclose(cdf(tb.Bernoulli(), RATES, cells)[0], stats.bernoulli.cdf(x, RATES), atol=1e-15)
    np.testing.assert_allclose(cdf(tb.Binomial(4), RATES, cells)[0], stats.binom.cdf(x, 4, RATES), atol=1e-14)


def test_draws_are_as_probable_as_they_should_be():
    rng = np.random.default_rng(0)
    for family, n in FAMILIES.values():
        drawn = family.sample(RATES, 4000, rng)
        assert drawn.shape == (4000, 2, 3)
        np.testing.assert_allclose(drawn.mean(axis=0), n * RATES, atol=4 * np.sqrt(n / 16000))
        assert drawn.min() == 0
        assert drawn.max() == n
        np.testing.assert_allclose(family.mean(RATES), n * RATES)


@pytest.mark.parametrize("bad", [-1e-9, 1 + 1e-9, np.nan])
def test_parameters_are_probabilities(bad):
    statistics = tb.Bernoulli().collect(np.array([[1.0], [0.0]]))
    with pytest.raises(tb.errors.EstimateError, match="from 0 to 1"):
        tb.Bernoulli().as_parameters(bad, statistics)
    for good in (0.0, 1.0):
        assert tb.Bernoulli().as_parameters(good, statistics).tolist() == [good]


def test_rows_that_are_missing_as_a_whole_count_nowhere():
    from tallybayes.families._shared.blocks import SparseRows

    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    indptr, indices = np.array([0, 1, 2, 4, 4]), np.array([0, 1, 0, 1])
    absent = np.array([False, True, False, False])
    rows = SparseRows(indptr, indices, np.ones(4), 2, absent)
    there, family = ~absent, tb.Bernoulli()
    group, weight = np.array([0, 1, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0])
    spread = np.stack([weight, weight[::-1]], axis=1)  # of every row, by group
    for asked, kept in (
        ({}, {}),
        ({"group": group, "n_groups": 2}, {"group": group[there], "n_groups": 2}),
        ({"weight": weight}, {"weight": weight[there]}),
        ({"n_groups": 2, "weight": spread}, {"n_groups": 2, "weight": spread[there]}),
    ):
        found, expected = family.collect(rows, **asked), family.collect(x[there], **kept)
        for part in ("total", "failures"):
            np.testing.assert_allclose(getattr(found, part), getattr(expected, part), rtol=1e-15)


def test_pictures_of_yes_and_no_have_two_places():
    assert plot_grid(tb.Bernoulli(), RATES, 0).tolist() == [0.0, 1.0]
    assert distance_features(tb.Bernoulli(), np.zeros((2, 1)))[1] == 0.5
    assert distance_features(tb.Binomial(3), np.zeros((2, 1)))[1] is None
    assert tb.Binomial(3).statistics_key != tb.Binomial(4).statistics_key
    assert tb.Bernoulli(success="H").statistics_key != tb.Bernoulli().statistics_key


@pytest.mark.parametrize("estimate", ["bayes", "mle"])
def test_a_row_left_out_is_predicted_by_the_others(estimate):
    from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
    from tallybayes.families.estimates import read_estimate

    rng, family, read = np.random.default_rng(6), tb.Bernoulli(), read_estimate(estimate)
    x, group = rng.integers(0, 2, (14, 3)).astype(float), np.arange(14) % 2
    x[2, 1] = np.nan
    weight, prior = np.where(np.arange(14) % 3 == 0, 2.0, 1.0), tb.Beta([0.5, 2.0, 1.0], [1.0, 0.25, 3.0])
    counted = GroupStatistics(family.collect(x, group, 2, weight), prior, read)
    removed = RemovedRows(x, group, weight, np.zeros(3, dtype=bool))
    with np.errstate(divide="ignore"):
        found = leave_one_out_log_prob(family, counted, removed)
    for row in range(14):
        others = np.arange(14) != row
        rest, cells = family.collect(x[others], group[others], 2, weight[others]), x[row : row + 1]
        if estimate == "bayes":
            terms = family.log_predictive(prior.update(rest), cells)
        else:
            terms = family.log_prob(family.maximum_likelihood(rest), cells)
        assert found[row, 0] == pytest.approx(terms[0, group[row]].sum(), rel=1e-12)
    held = counted._replace(estimate=read_estimate("map"), prior=tb.Beta(0.5, 0.5))
    assert leave_one_out_log_prob(family, held, removed) is None
    assert leave_one_out_tables(family, held, removed.constant) is None


def test_tables_of_rows_left_out_are_of_ones_and_zeros():
    from tallybayes.families._shared.leave_one_out_counts import GroupStatistics
    from tallybayes.families.estimates import read_estimate

    family, prior = tb.Bernoulli(), tb.Beta([0.5, 2.0, 1.0], [1.0, 0.25, 3.0])
    x, group = np.random.default_rng(6).integers(0, 2, (30, 3)).astype(float), np.arange(30) % 2
    statistics = family.collect(x, group, 2)
    ones, zeros = leave_one_out_tables(
        family, GroupStatistics(statistics, prior, read_estimate("bayes")), np.zeros(3, dtype=bool)
    )
    hits, misses = statistics.total, statistics.failures
    total = hits + misses + prior.alpha + prior.beta - 1
    np.testing.assert_allclose(ones.T, np.log((hits - 1 + prior.alpha) / total), rtol=1e-12)
    np.testing.assert_allclose(zeros.T, np.log((misses - 1 + prior.beta) / total), rtol=1e-12)


def test_what_counts_as_success_is_told_apart():
    assert tb.Bernoulli().statistics_key == ("Bernoulli",)
    assert tb.Bernoulli(success="H").statistics_key == ("Bernoulli", "'H'")


def test_one_group_without_an_axis_for_it_is_looked_up_too():
    family, cells = tb.Binomial(3), np.array([[0.0, 3.0], [2.0, 1.0]])
    rates, belief = np.array([0.2, 0.7]), tb.Beta([2.0, 1.0], 3.0)
    np.testing.assert_allclose(
        log_prob_form(family, rates).evaluate(transform(family, cells)), stats.binom.logpmf(cells, 3, rates), rtol=1e-12
    )
    np.testing.assert_allclose(
        log_predictive_form(family, belief).evaluate(transform(family, cells)),
        stats.betabinom.logpmf(cells, 3, belief.alpha, belief.beta),
        rtol=1e-11,
    )


def test_sums_of_blocks_are_not_written_to():
    from tallybayes.families._shared.block_sums import sum_block

    for part in sum_block(np.array([[1.0, 0.0]]), "binary", None, 1, None):
        assert not part.flags.writeable
