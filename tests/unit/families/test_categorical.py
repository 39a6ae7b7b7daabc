"""Labels: counts, shares and scores of codes, against tables written out."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError
from tallybayes.families._shared.blocks import Codes
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import take_groups
from tallybayes.families.prior_rules import pseudo_count_prior
from tallybayes.families.protocols.degenerate_estimates import is_undefined
from tallybayes.statistics.counts import Segments

FAMILY = tb.Categorical()
SEGMENTS = Segments([2, 3])
CODES = np.array([[0, 2], [1, 0], [1, -1], [0, 2]])
TABLE = np.array([[0.25, 0.75, 0.5, 0.0, 0.5], [1.0, 0.0, 0.2, 0.3, 0.5]])
POINT = LevelProbabilities(TABLE, SEGMENTS)


def test_codes_are_counted_by_group_and_weight():
    block = Codes(CODES, np.array([2, 3]))
    assert FAMILY.collect(block).table.tolist() == [[2, 2, 1, 0, 2]]
    found = FAMILY.collect(block, np.array([0, 1, 1, 1]), 2, np.array([1.0, 2.0, 0.5, 1.0]))
    assert found.table.tolist() == [[1, 0, 0, 0, 1], [1, 2.5, 2, 0, 1]]
    with pytest.raises(DataError, match="not encoded"):
        FAMILY.collect(CODES)


def test_shares_and_their_likelihood():
    counts = tb.Counts([[1.0, 3.0, 2.0, 0.0, 2.0]], [2, 3])
    point = FAMILY.maximum_likelihood(counts)
    assert point.table.tolist() == [[0.25, 0.75, 0.5, 0.0, 0.5]]
    expected = [np.log(0.25) + 3 * np.log(0.75), 4 * np.log(0.5)]
    np.testing.assert_allclose(FAMILY.log_likelihood(point, counts), [expected])
    assert FAMILY.n_parameters(counts) == 1 + 2
    assert FAMILY.n_parameters(tb.Counts(np.zeros((3, 0)), [0])) == 0


def test_scores_are_looked_up_and_what_is_missing_adds_nothing():
    found = FAMILY.log_prob(POINT, CODES)
    with np.errstate(divide="ignore"):
        logs = np.log(TABLE)
    for row, codes in enumerate(CODES):
        for group in range(2):
            cells = [logs[group, codes[0]], 0.0 if codes[1] < 0 else logs[group, 2 + codes[1]]]
            assert found[row, group].tolist() == cells
    belief = tb.Dirichlet([[1.0, 3.0]])
    np.testing.assert_allclose(
        np.exp(FAMILY.log_predictive(belief, np.array([[1], [0], [-1]])))[:, 0, 0], [0.75, 0.25, 1]
    )


def test_default_priors_add_one():
    counts = tb.Counts([1.0, 2.0])
    assert FAMILY.default_prior(counts, "bayes") == tb.Dirichlet(1.0)
    assert FAMILY.default_prior(counts, "map") == tb.Dirichlet(2.0)
    assert pseudo_count_prior(FAMILY, 0.5, "map") == tb.Dirichlet(1.5)


def test_parameters_as_people_have_them():
    counts = tb.Counts([1.0, 2.0])
    assert FAMILY.as_parameters([0.4, 0.6], counts).table.tolist() == [0.4, 0.6]
    assert FAMILY.as_parameters(POINT, counts) is POINT
    for bad in ([-0.1, 1.1], [np.nan, 1.0]):
        with pytest.raises(EstimateError, match="probabilities of at least 0"):
            FAMILY.as_parameters(bad, counts)
    assert take_groups(POINT, [1]).table.tolist() == [TABLE[1].tolist()]


def test_groups_without_counts_are_unknown_by_column():
    holed = LevelProbabilities(np.array([[0.5, 0.5, np.nan, np.nan, np.nan], TABLE[1]]), SEGMENTS)
    assert is_undefined(holed).tolist() == [[False, True], [False, False]]


def test_draws_have_their_shares():
    drawn = FAMILY.sample(POINT, 20_000, np.random.default_rng(0))
    assert drawn.shape == (20_000, 2, 2)
    for group in range(2):
        for column, expected in enumerate(SEGMENTS.split(TABLE[group])):
            shares = np.bincount(drawn[:, group, column], minlength=len(expected)) / 20_000
            np.testing.assert_allclose(shares, expected, atol=4 * np.sqrt(0.25 / 20_000))
            assert not shares[expected == 0].any()


def test_a_family_that_counts_otherwise_is_no_table():
    class Other(tb.Categorical):
        def collect(self, *parts, **options):
            collected.append(self)
            return super().collect(*parts, **options)

    collected = []
    rows = {"x": ["a", "b", "a"], "y": [0, 1, 1]}
    both = [tb.count(rows, [tb.Factor("y", (), tb.Categorical()), tb.Factor("x", "y", f)]) for f in (FAMILY, Other())]
    assert collected == [Other()]
    assert both[0]["x"] == both[1]["x"]
    assert tb.Categorical(["a", "b"]).levels == ("a", "b")


def test_probabilities_of_0_and_of_no_groups():
    counts = tb.Counts([1.0, 2.0])
    assert FAMILY.as_parameters([0.0, 1.0], counts).table.tolist() == [0.0, 1.0]
    alone = LevelProbabilities(np.array([0.5, 0.5, np.nan, np.nan, np.nan]), SEGMENTS)
    assert is_undefined(alone).tolist() == [False, True]
    stacked = LevelProbabilities(np.broadcast_to(alone.table, (2, 3, 5)), SEGMENTS)
    assert is_undefined(stacked).tolist() == [[[False, True]] * 3] * 2
