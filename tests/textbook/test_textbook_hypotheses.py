"""Hypotheses that vote, and description lengths, as the textbooks reckon them: five bags of beads."""

from math import log2

import numpy as np
import pytest

import tallybayes as tb
from tests.textbook.course import digits

SHARES = {"none": 0.0, "¼": 0.25, "½": 0.5, "¾": 0.75, "all": 1.0}
BAGS = tb.Hypotheses(SHARES, prior=[0.1, 0.2, 0.4, 0.2, 0.1])


def green(n):
    return tb.fit_distribution([1] * n, tb.Bernoulli())


@pytest.mark.parametrize(("n", "expected"), [(0, 1 / 2), (1, 13 / 20), (2, 19 / 26), (3, 121 / 152)])
def test_B2_all_hypotheses_vote(n, expected):
    np.testing.assert_allclose(np.exp(green(n).predictive(BAGS).log_prob(1)), expected, rtol=1e-12)


def test_B3_the_most_probable_hypothesis():
    posterior = green(1).posterior(BAGS)
    np.testing.assert_allclose(list(posterior.probabilities.values()), [0, 0.1, 0.4, 0.3, 0.2], rtol=1e-12, atol=1e-15)
    assert [green(n).posterior(BAGS).best for n in (1, 2, 3)] == ["½", "¾", "all"]


def test_B4_the_most_likely_hypothesis():
    assert BAGS.most_likely(green(1)) == "all"


def test_B5_the_shortest_description():
    lengths = BAGS.code_lengths(green(1))
    totals = {name: sum(parts) for name, parts in lengths.items()}
    assert totals["none"] == np.inf
    digits([totals[name] for name in ("¼", "½", "¾", "all")], [4.321928, 2.321928, 2.736966, 3.321928])
    assert min(totals, key=totals.get) == green(1).posterior(BAGS).best
    np.testing.assert_allclose(green(1).description_length(BAGS).evidence, 1, rtol=1e-12)


def test_B5b_E_B2_a_density_is_no_length():
    digits(
        tb.fit_distribution([1, 1], tb.Bernoulli()).description_length(tb.Beta(2, 2)), (0.830075, -0.169925, 1.736966)
    )
    digits(
        tb.fit_distribution([0, 0, 0], tb.Bernoulli()).description_length(tb.Beta(2, 2)), (0.965784, 0.058894, 2.321928)
    )
    np.testing.assert_allclose(np.exp(tb.Beta(2, 2).log_prob(0.75)), 1.125, rtol=1e-12)
    assert -log2(1.125) < 0


def test_B2b_a_grid_of_hypotheses():
    grid = tb.Hypotheses.grid(np.linspace(0, 1, 101), prior=lambda theta: theta * (1 - theta))
    assert abs(np.exp(green(2).predictive(grid).log_prob(1)) - 2 / 3) < 0.00006
