"""Prior rules: what they resolve to for tables of any shape, and what they refuse."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import PriorError
from tallybayes.families.prior_rules import PriorRule, is_pseudo_count, no_levels_error


@pytest.mark.parametrize("equivalent_sample_size", [0.5, 1, 12])
def test_bdeu_spreads_its_rows_over_groups_and_levels(equivalent_sample_size):
    counts = tb.Counts(np.zeros((2, 3, 5)), [2, 3])
    found = tb.BDeu(equivalent_sample_size).resolve(tb.Categorical(), counts, "bayes")
    expected = np.repeat([equivalent_sample_size / 12, equivalent_sample_size / 18], [2, 3])
    np.testing.assert_allclose(np.broadcast_to(found.concentration, 5), expected, rtol=1e-15)


def test_without_groups_and_without_levels():
    found = tb.BDeu(3).resolve(tb.Categorical(), tb.Counts([1.0, 2.0, 0.0]), "bayes")
    np.testing.assert_allclose(np.broadcast_to(found.concentration, 3), [1, 1, 1])
    assert tb.BDeu(3).resolve(tb.Categorical(), tb.Counts(np.zeros((0, 2))), "bayes").concentration.tolist() == [
        1.5,
        1.5,
    ]
    assert tb.BDeu().resolve(tb.Categorical(), tb.Counts(np.zeros(0), [0]), "bayes").concentration.size == 0


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), "many", None])
def test_a_size_that_is_none_is_refused(bad):
    with pytest.raises(PriorError, match=r"equivalent_sample_size of BDeu is"):
        tb.BDeu(bad)


def test_rules_are_of_levels():
    with pytest.raises(PriorError, match="BDeu is for categorical columns"):
        tb.BDeu().resolve(tb.Poisson(), tb.Totals([1.0], [1.0]), "bayes")
    assert tb.K2().resolve(tb.Categorical(), tb.Counts([1.0]), "bayes") == tb.Dirichlet(1.0)
    with pytest.raises(NotImplementedError):
        PriorRule().resolve(tb.Categorical(), tb.Counts([1.0]), "bayes")


@pytest.mark.parametrize("amount", [1, 0.5, np.float32(2), np.int64(3), 1e-300])
def test_numbers_above_0_are_amounts(amount):
    assert is_pseudo_count(amount)


@pytest.mark.parametrize("other", [None, "empirical", tb.Dirichlet(1), [1.0], {"a": 1}])
def test_other_priors_are_none(other):
    assert not is_pseudo_count(other)


@pytest.mark.parametrize("bad", [0, -1, np.inf, np.nan, True, False, np.bool_(True)])
def test_numbers_that_cannot_be_added_are_refused(bad):
    with pytest.raises(PriorError, match="positive, finite number \\(pseudo-counts per level\\)"):
        is_pseudo_count(bad)


def test_families_without_levels_are_named_once():
    text = str(no_levels_error(2, [tb.Gaussian(), tb.Gaussian(), tb.Poisson()]))
    assert text.startswith("prior is 2, a pseudo-count, but Gaussian(), Poisson() has no levels")
