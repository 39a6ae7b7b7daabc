"""A number as a prior: what is one, and what cannot be."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import PriorError
from tallybayes.families.pseudo_counts import is_amount, no_levels


@pytest.mark.parametrize("amount", [1, 0.5, np.float32(2), np.int64(3), 1e-300])
def test_numbers_above_0_are_amounts(amount):
    assert is_amount(amount)


@pytest.mark.parametrize("other", [None, "empirical", tb.Dirichlet(1), [1.0], {"a": 1}])
def test_other_priors_are_none(other):
    assert not is_amount(other)


@pytest.mark.parametrize("bad", [0, -1, np.inf, np.nan, True, False, np.bool_(True)])
def test_numbers_that_cannot_be_added_are_refused(bad):
    with pytest.raises(PriorError, match="positive, finite number of counts"):
        is_amount(bad)


def test_families_without_levels_are_named_once():
    text = str(no_levels(2, [tb.Gaussian(), tb.Gaussian(), tb.Poisson()]))
    assert text.startswith("prior is 2, counts to add to every level, but Gaussian(), Poisson() has no levels")
