"""Bayes' rule by rows: against logarithms written out, and rows that no class allows."""

import numpy as np
import pytest
from scipy.special import logsumexp

from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule

JOINT = np.log(np.random.default_rng(0).random((7, 3)))
PRIOR = np.log([0.2, 0.3, 0.5])


def test_shares_and_sums():
    found = apply_bayes_rule(JOINT.copy(), PRIOR)
    np.testing.assert_allclose(found.log_density, logsumexp(JOINT, axis=1), rtol=1e-14)
    np.testing.assert_allclose(found.log_proba, JOINT - logsumexp(JOINT, axis=1, keepdims=True), rtol=1e-13)
    assert not found.impossible.any()


@pytest.mark.parametrize("own", [False, True], ids=["one prior", "one for every row"])
def test_what_no_class_allows_has_the_prior(own):
    joint = JOINT.copy()
    joint[2], joint[4, :2] = -np.inf, -np.inf
    prior = PRIOR + np.arange(7)[:, None] * [0.0, 0.1, 0.0] if own else PRIOR
    found = apply_bayes_rule(joint.copy(), prior)
    assert np.flatnonzero(found.impossible).tolist() == [2]
    assert found.log_density[2] == -np.inf
    given = prior[2] if own else prior
    np.testing.assert_allclose(np.exp(found.log_proba[2]), np.exp(given - logsumexp(given)), rtol=1e-13)
    np.testing.assert_allclose(np.exp(found.log_proba[4]), [0, 0, 1], atol=1e-300)
    assert apply_bayes_rule(np.zeros((0, 3)), PRIOR).log_proba.shape == (0, 3)
