"""What EM climbs: priors that are held, and default priors that are left again."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import EstimateError
from tallybayes.estimation.em.em_objective import EMObjective
from tallybayes.tally.factor import Factor

COUNTS = tb.Counts(np.array([[3.0, 0.0], [1.0, 4.0]]))


def hill(estimate):
    return EMObjective(tb.Mixture(2, estimate=estimate), [Factor("x", ("k",), tb.Categorical())], 8.0)


@pytest.mark.parametrize("estimate", ["mle", "unbiased", "map", "bayes"])
def test_without_a_prior_the_top_is_the_most_likely(estimate):
    found = hill(estimate)
    if found.has_prior:
        found.fix_priors([COUNTS], [tb.Dirichlet(3.0)])
    (scored,), log_prior = found.maximize([COUNTS], ["ab"])
    more = {"map": 2.0, "bayes": 3.0}.get(estimate, 0.0)  # the mode that smooths as the mean does has one more
    expected = (COUNTS.table + more) / (COUNTS.table + more).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scored.parameters.table, expected)
    assert (log_prior == 0.0) == (estimate in ("mle", "unbiased"))
    assert found.warm_up_iterations == ((1,) if found.has_prior else (1, 200))


def test_default_priors_are_left_however_a_start_ends():
    found = hill("mle")

    def start():
        with found.with_default_priors([COUNTS]):
            assert found.has_prior
            assert isinstance(found.prior_distributions[0], tb.Dirichlet)
            raise EstimateError("a start that fails; another one may not.")

    with pytest.raises(EstimateError):
        start()
    assert not found.has_prior
    assert found.prior_distributions == [None]
