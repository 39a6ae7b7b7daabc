"""Rows of counts over one vocabulary: against scipy's multinomial and its compound."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import tallybayes as tb
from tallybayes.families._shared.blocks import compressed
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
from tallybayes.families.estimates import read_estimate
from tallybayes.families.protocols.display import column_contributions, named_parameters
from tallybayes.families.protocols.distribution_functions import kl_divergence, sampling_options
from tallybayes.families.protocols.em_support import distance_features
from tallybayes.families.protocols.leave_one_out import leave_one_out_log_prob

PLAIN, URN = tb.Multinomial(), tb.DirichletMultinomial()
ROWS = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
SHARES = np.array([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]])
BELIEF = tb.Dirichlet([[1.5, 2.0, 0.5]])


def test_log_probabilities_are_scipys():
    found = PLAIN.log_prob(SHARES, ROWS)
    for row, counts in enumerate(ROWS):
        for group, p in enumerate(SHARES):
            with np.errstate(all="ignore"):
                assert found[row, group] == pytest.approx(stats.multinomial.logpmf(counts, counts.sum(), p))
    mean = BELIEF.concentration / BELIEF.concentration.sum()
    np.testing.assert_allclose(PLAIN.log_predictive(BELIEF, ROWS), PLAIN.log_prob(mean, ROWS))


def test_the_compound_is_scipys():
    found = URN.log_predictive(BELIEF, ROWS)[:, 0]
    alpha = BELIEF.concentration[0]
    expected = [stats.dirichlet_multinomial.logpmf(row.astype(int), alpha, int(row.sum())) for row in ROWS[:2]]
    np.testing.assert_allclose(found, [*expected, 0.0], atol=1e-12)
    terms = column_contributions(URN, BELIEF, ROWS)[:, 0].sum(axis=-1)
    base = [np.log(3), 0.0, 0.0]  # the orders of the words, the same in all groups
    np.testing.assert_allclose(terms + base, found, atol=1e-12)
    np.testing.assert_allclose(column_contributions(URN, SHARES, ROWS), column_contributions(PLAIN, SHARES, ROWS))


def test_counting_shares_and_likelihood():
    counted = PLAIN.collect(ROWS, weight=np.array([1.0, 2.0, 1.0]))
    assert counted.total.tolist() == [[2.0, 1.0, 8.0]]
    assert PLAIN.collect(compressed(ROWS), weight=np.array([1.0, 2.0, 1.0])) == counted
    point = PLAIN.maximum_likelihood(counted)
    np.testing.assert_allclose(point, [[2 / 11, 1 / 11, 8 / 11]])
    logs = [stats.multinomial.logpmf(row, row.sum(), point[0]) for row in ROWS[:2]]
    assert PLAIN.log_likelihood(point, counted)[0] == pytest.approx(logs[0] + 2 * logs[1])
    assert PLAIN.n_parameters(counted) == 2
    assert PLAIN.row_weight(counted).tolist() == [4.0]
    assert PLAIN.row_weight(PLAIN.collect(np.zeros((3, 2)))).tolist() == [0.0]  # rows without a word say nothing
    assert sampling_options(PLAIN, counted) == {"size": 3}  # 11 tokens in 4 rows
    assert sampling_options(PLAIN, PLAIN.collect(np.zeros((0, 2)))) == {"size": 1}
    assert PLAIN.statistics_key == URN.statistics_key


def test_default_priors_add_one():
    assert PLAIN.default_prior(None, "bayes") == tb.Dirichlet(1.0)
    assert PLAIN.default_prior(None, "map") == tb.Dirichlet(2.0)


def test_shares_of_words_whatever_the_length_of_their_row():
    cells, weight = distance_features(PLAIN, ROWS)
    np.testing.assert_allclose(cells.dense(), np.sqrt([[2 / 3, 1 / 3, 0], [0, 0, 1], [0, 0, 0]]))
    assert weight == pytest.approx(1 / np.sqrt(3))
    assert distance_features(PLAIN, compressed(np.ones((1, 100))))[1] == pytest.approx(1 / 8)


def test_divergence_and_draws():
    p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    assert kl_divergence(PLAIN, p, q).sum() == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3))
    drawn = PLAIN.sample(SHARES, 5000, np.random.default_rng(0), size=4)
    assert (drawn.sum(axis=-1) == 4).all()
    np.testing.assert_allclose(drawn.mean(axis=0) / 4, SHARES, atol=4 * np.sqrt(0.25 / 20_000))
    assert named_parameters(PLAIN, SHARES)["share"].tolist() == SHARES.tolist()


def test_shares_of_columns_written_out():
    found = column_contributions(PLAIN, SHARES[:1], ROWS)
    assert found.shape == (3, 1, 3)
    np.testing.assert_allclose(found[:, 0], ROWS * np.log(SHARES[0]), atol=1e-14)
    alpha = np.array([[1.5, 2.0, 0.5], [1.0, 4.0, 2.0]])
    rows = np.array([[2.0, 1.0, 0.0], [0.25, 0.0, 0.25], [0.0, 0.0, 0.0]])  # half a token is shared out, too
    terms = column_contributions(URN, tb.Dirichlet(alpha), rows)
    assert terms.shape == (3, 2, 3)
    whole = gammaln(alpha.sum(axis=1)) - gammaln(alpha.sum(axis=1) + rows.sum(axis=1)[:, None])
    cells = gammaln(alpha + rows[:, None, :]) - gammaln(alpha)
    np.testing.assert_allclose(terms.sum(axis=-1), whole + cells.sum(axis=-1), atol=1e-12)
    np.testing.assert_allclose(terms[0, :, 0] - cells[0, :, 0], whole[0] * 2 / 3, atol=1e-12)


def test_few_tokens():
    single = PLAIN.collect(np.array([[1.0, 0.0]]))
    assert PLAIN.row_weight(single).tolist() == [1.0]
    assert sampling_options(PLAIN, PLAIN.collect(np.zeros((3, 2)))) == {"size": 1}
    assert distance_features(PLAIN, np.zeros((2, 0)))[1] == 1.0
    half, _ = distance_features(PLAIN, np.array([[0.25, 0.25]]))
    np.testing.assert_allclose(half.dense(), np.sqrt([[0.5, 0.5]]))
    assert PLAIN.sample(SHARES[0], 5, np.random.default_rng(0)).shape == (5, 3)


@pytest.mark.parametrize("estimate", ["mle", "map"])
def test_rows_of_a_single_token_are_left_out_as_others(estimate):
    rows, group = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 0, 0])
    how = read_estimate(estimate)
    counted = GroupStatistics(PLAIN.collect(rows), tb.Dirichlet(2.0) if how.has_prior else None, how)
    removed = RemovedRows(rows, group, np.ones(3), np.zeros(0, dtype=int))
    with np.errstate(divide="ignore"):
        found = leave_one_out_log_prob(PLAIN, counted, removed)
    expected = [0.5, 0.5, 0.0] if estimate == "mle" else [2 / 4, 2 / 4, 1 / 4]
    np.testing.assert_allclose(np.exp(found[:, 0]), expected)
    two = GroupStatistics(PLAIN.collect(rows[:2]), None, read_estimate("mle"))
    assert leave_one_out_log_prob(PLAIN, two, RemovedRows(rows[:2], group[:2], np.ones(2), group[:0])).tolist() == [
        [0.0],
        [0.0],
    ]
    edge = GroupStatistics(PLAIN.collect(rows), tb.Dirichlet(0.5), read_estimate("map"))
    assert leave_one_out_log_prob(PLAIN, edge, removed).shape == (3, 1)
