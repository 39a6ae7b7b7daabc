"""The coin as the textbooks reckon it: likelihood, maximum likelihood, MAP and Bayes, and what they print amiss."""

from math import comb, exp, lgamma, log, sqrt

import numpy as np
import pytest

import tallybayes as tb
from tests.textbook.course import digits, near

COIN = tb.Bernoulli(success="H")
HH = tb.fit_distribution(counts={"H": 2, "T": 0}, family=COIN)
MANY = tb.fit_distribution(counts={"H": 55, "T": 45}, family=COIN)
TTT = tb.fit_distribution(["T", "T", "T"], COIN)
PRIOR = tb.Beta(2, 2)


def test_B1_counting_is_all_that_is_kept():
    assert (float(MANY.statistics.weight[0]), float(MANY.statistics.total[0])) == (100, 55)
    assert tb.fit_distribution(["H"] * 55 + ["T"] * 45, COIN) == MANY


def test_B6_P4_the_log_likelihood_is_a_sum():
    digits(MANY.log_likelihood(0.55), -68.813881)
    digits(MANY.log_likelihood(0.5), -69.314718)
    grid = np.linspace(0.01, 0.99, 99)
    scores = MANY.log_likelihood(grid)
    assert scores.shape == (99,)
    assert grid[np.argmax(scores)] == pytest.approx(0.55)


def test_C3_logs_do_not_underflow():
    assert 0.5**1075 == 0
    digits(tb.fit_distribution(counts={"H": 1075}, family=COIN).log_likelihood(0.5), -745.133219)


def test_C2_tosses_multiply_given_theta():
    for theta in (0.2, 0.7):
        near(exp(tb.fit_distribution(["H"], COIN).log_likelihood(theta)), theta)
        near(exp(tb.fit_distribution(["T"], COIN).log_likelihood(theta)), 1 - theta)
        near(exp(tb.fit_distribution(["H", "T"], COIN).log_likelihood(theta)), theta * (1 - theta))


def test_B7_C4_T8_maximum_likelihood():
    assert (HH.estimate("mle"), MANY.estimate("mle"), TTT.estimate("mle")) == (1.0, 0.55, 0.0)
    slope = 55 / 0.55 - 45 / 0.45
    assert slope == pytest.approx(0, abs=1e-12)


def test_C1_the_next_toss():
    near([MANY.estimate("mle"), MANY.estimate("map", prior=PRIOR)], [0.55, 56 / 102])
    near(exp(MANY.predictive(PRIOR).log_prob("H")), 57 / 104)


def test_C5_minimize_minus_log():
    digits(-MANY.log_likelihood(MANY.estimate("mle")), 68.813881)


def test_T9_an_estimate_is_not_the_truth():
    digits(sqrt(0.55 * 0.45 / 100), 0.049749)
    digits(MANY.posterior(PRIOR).interval(0.95), (0.452207, 0.642194))


def test_P6_sums_of_indicators():
    assert (float(HH.statistics.weight[0]), float(HH.statistics.total[0])) == (2, 2)


def test_P5_the_number_of_heads():
    heads = tb.fit_distribution([55], tb.Binomial(100))
    digits(exp(heads.log_likelihood(0.55)), 0.079988)
    digits(heads.log_likelihood(0.55) - MANY.log_likelihood(0.55), 66.287996)
    near(heads.log_likelihood(0.55) - MANY.log_likelihood(0.55), log(comb(100, 55)))
    assert heads.estimate("mle") == 0.55


def test_C19_too_few_data():
    assert HH.log_likelihood(1.0) == 0
    assert tb.fit_distribution(["T"], COIN).log_likelihood(HH.estimate("mle")) == -np.inf


def test_T23_E_T2_three_tails_are_certain_a_head_is_impossible():
    assert TTT.log_likelihood(0.0) == 0.0
    assert tb.fit_distribution(["H"], COIN).log_likelihood(TTT.estimate("mle")) == -np.inf
    near(exp(TTT.log_likelihood(0.1)), 0.9**3)


def test_T24_add_one_head_and_one_tail():
    near(TTT.estimate("map", prior=PRIOR), 1 / 5)


def test_C20_prior_and_likelihood_are_two_things():
    assert MANY.family == COIN
    assert MANY.posterior(tb.Beta(1, 1)) != MANY.posterior(PRIOR)


def test_C21_P14_E_P8_the_denominator_is_an_integral():
    near(exp(HH.log_evidence(PRIOR)), 3 / 10)
    theta = (np.arange(20000) + 0.5) / 20000
    near(np.mean(np.exp(PRIOR.log_prob(theta)) * theta**2), 3 / 10, rtol=1e-7)
    near(
        HH.posterior(PRIOR).log_prob(0.4),
        PRIOR.log_prob(0.4) + HH.log_likelihood(0.4) - HH.log_evidence(PRIOR),
    )


def test_C22_P16_the_density():
    near(1 / exp(PRIOR.log_prob(0.5)) * 0.25, 1 / 6)
    near(1 / exp(tb.Beta(4, 2).log_prob(0.5)) * 0.5**4, 1 / 20)
    near(exp(lgamma(2) + lgamma(2) - lgamma(4)), 1 / 6)
    densities = [exp(tb.Beta(a, b).log_prob(tb.Beta(a, b).mode())) for a, b in ((2, 2), (10, 10), (2, 3))]
    digits(densities[1], 3.523941)
    near([densities[0], densities[2]], [1.5, 16 / 9])


def test_C23_P17_E_P9_mean_and_mode():
    beliefs = [tb.Beta(1, 1), tb.Beta(2, 2), tb.Beta(10, 10), tb.Beta(2, 3)]
    near([belief.mode() for belief in beliefs], [1 / 2, 1 / 2, 1 / 2, 1 / 3])
    near([belief.mean() for belief in beliefs], [1 / 2, 1 / 2, 1 / 2, 2 / 5])
    near([belief.variance() for belief in beliefs], [1 / 12, 1 / 20, 1 / 84, 1 / 25])


def test_B8_conjugacy():
    found = [learned.posterior(PRIOR) for learned in (HH, MANY, TTT)]
    assert found == [tb.Beta(4, 2), tb.Beta(57, 47), tb.Beta(2, 5)]


def test_C24_the_posterior_mean():
    near([HH.estimate("bayes", prior=PRIOR), MANY.estimate("bayes", prior=PRIOR)], [4 / 6, 57 / 104])


def test_C25_pseudo_counts():
    assert tb.fit_distribution(["H", "T"], COIN).posterior(tb.Beta(1, 1)) == tb.Beta(2, 2)


def test_C26_many_rows_outweigh_the_prior():
    near(HH.estimate("mle") - HH.estimate("bayes", prior=PRIOR), 1 / 3)
    digits(MANY.estimate("mle") - MANY.estimate("bayes", prior=PRIOR), 0.001923)


def test_C27_M0_9_map_is_the_highest_point():
    theta = np.linspace(0.001, 0.999, 999)
    scores = [PRIOR.log_prob(t) + HH.log_likelihood(t) for t in theta]
    assert theta[np.argmax(scores)] == pytest.approx(HH.estimate("map", prior=PRIOR), abs=1e-9)


def test_B9_C28_T27_P19_map_of_the_coin():
    near([one.estimate("map", prior=PRIOR) for one in (HH, MANY, TTT)], [3 / 4, 56 / 102, 1 / 5])
    near([one.estimate("map", prior=tb.Beta(10, 10)) for one in (HH, TTT)], [11 / 20, 9 / 21])


def test_C29_the_table_of_all_three():
    found = [[one.estimate(how, prior=PRIOR) for one in (HH, MANY)] for how in ("mle", "bayes", "map")]
    near(found, [[1, 0.55], [4 / 6, 57 / 104], [3 / 4, 56 / 102]])


def test_C30_map_never_says_0():
    near(TTT.estimate("map", prior=tb.Beta(1.01, 1.01)), 0.01 / 3.02)


def test_T26_a_uniform_prior():
    near([one.estimate("map", prior=tb.Beta(1, 1)) for one in (HH, TTT, MANY)], [1, 0, 0.55])


def test_T25_tosses_are_independent_only_given_theta():
    near(exp(HH.log_evidence(PRIOR)), 2 / 4 * 3 / 5)
    more = tb.fit_distribution(["H", "H"], COIN)
    near(exp(more.log_evidence(HH.posterior(PRIOR))), 10 / 21)
    near(exp((HH + more).log_evidence(PRIOR) - HH.log_evidence(PRIOR)), 10 / 21)


def test_B10_prediction():
    near(np.exp(HH.predictive(PRIOR).log_prob(["H", "T"])), [2 / 3, 1 / 3])


def test_P18_E_P7_the_evidence_of_a_number_and_of_a_sequence():
    near(exp(HH.log_evidence(PRIOR)), (1 / 20) / (1 / 6))
    heads = tb.fit_distribution([55], tb.Binomial(100))
    digits(exp(heads.log_evidence(PRIOR)), 0.014566)
    digits(heads.log_evidence(PRIOR), -4.229070)
    digits(MANY.log_evidence(PRIOR), -70.517066)
    near(exp(tb.fit_distribution(["H", "H", "T"], COIN).log_likelihood(0.5)), 1 / 8)
    near(exp(tb.fit_distribution([2], tb.Binomial(3)).log_likelihood(0.5)), 3 / 8)


def test_P15_in_steps_or_all_at_once():
    after = TTT.posterior(HH.posterior(PRIOR))
    assert after == (HH + TTT).posterior(PRIOR) == tb.Beta(4, 5)
    near([after.mode(), (HH + TTT).estimate("map", prior=PRIOR)], [3 / 7, 3 / 7])


def test_T41_B18_bias_and_variance_of_five_tosses():
    for theta, expected in ((0.3, (0.042, 0.024694)), (0.1, (0.018, 0.022245))):
        errors, mean = np.zeros(2), 0.0
        for heads in range(6):
            p = comb(5, heads) * theta**heads * (1 - theta) ** (5 - heads)
            learned = tb.fit_distribution(counts={"H": heads, "T": 5 - heads}, family=COIN)
            found = np.array([learned.estimate("mle"), learned.estimate("map", prior=PRIOR)])
            errors, mean = errors + p * (found - theta) ** 2, mean + p * found[1]
        digits(errors, expected)
        near(mean - theta, (1 - 2 * theta) / 7)


def test_E_B1_add_alpha_is_a_mean_or_another_mode():
    learned = tb.fit_distribution(counts={"a": 2, "b": 1, "c": 0}, family=tb.Categorical())
    near(learned.estimate("bayes", prior=tb.Dirichlet(1))["c"], 1 / 6)
    near(learned.estimate("map", prior=tb.Dirichlet(2))["c"], 1 / 6)
    assert learned.estimate("map", prior=tb.Dirichlet(1))["c"] == 0


def test_E_B3_where_the_mode_exists():
    learned = tb.fit_distribution(counts={"H": 3, "T": 2}, family=COIN)
    assert learned.posterior(tb.Beta(0.5, 0.5)) == tb.Beta(3.5, 2.5)
    near(learned.estimate("map", prior=tb.Beta(0.5, 0.5)), 0.625)
    with pytest.raises(tb.PriorError, match="has no mode"):
        tb.Beta(0.5, 0.5).mode()


def test_E_C5_the_sum_is_over_both_parts():
    digits(tb.fit_distribution(["H", "T"], COIN).log_likelihood(0.25), -1.673976)


def test_E_P3_how_many_pseudo_observations():
    near(HH.estimate("map", prior=PRIOR), (2 + 1) / (2 + 2))
    near(HH.estimate("bayes", prior=PRIOR), (2 + 2) / (2 + 4))


def test_E_P11_the_joint_is_not_the_posterior():
    theta = (np.arange(20000) + 0.5) / 20000
    joint = np.exp(PRIOR.log_prob(theta)) * theta**2
    near(np.mean(joint), 3 / 10, rtol=1e-7)
    near(np.mean(np.exp(HH.posterior(PRIOR).log_prob(theta))), 1, rtol=1e-7)
