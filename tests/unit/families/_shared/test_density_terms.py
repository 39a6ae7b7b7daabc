"""Densities of rows, taken apart: the parts add up to the log probability, and are those of a textbook."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.families._shared.density_terms import density_terms, is_joint, word_terms
from tallybayes.families.protocols.scoring_forms import log_predictive_form, log_prob_form

ROWS = np.random.default_rng(0).normal(size=(30, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 2.0]])
FAMILY = tb.MultivariateGaussian()
COUNTED = FAMILY.collect(ROWS, np.repeat([0, 1], 15), 2)


@pytest.mark.parametrize("row", [[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]], ids=["whole", "holed"])
def test_a_normal_by_its_quadratic_form(row):
    point = FAMILY.maximum_likelihood(COUNTED)
    row, known = np.array(row), ~np.isnan(row)
    found = density_terms(log_prob_form(FAMILY, point), row)
    assert found.note == f"N(x | μ, Σ) by its quadratic form, {known.sum()} columns together"
    np.testing.assert_array_equal(found.means, point.mean)
    norm, square = found.parts.values()
    for k in range(2):
        mean, covariance = point.mean[k][known], point.covariance[k][np.ix_(known, known)]
        gap = row[known] - mean
        assert square[k] == pytest.approx(-0.5 * gap @ np.linalg.solve(covariance, gap))
        assert norm[k] == pytest.approx(-0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1])


def test_a_t_by_its_quadratic_form():
    posterior = FAMILY.default_prior(COUNTED, "bayes").update(COUNTED)
    row = np.array([1.0, 2.0, 3.0])
    found = density_terms(log_predictive_form(FAMILY, posterior), row)
    norm, q, degrees, bent = found.parts.values()
    assert found.note.startswith("Student's t by its quadratic form, 3 columns together")
    np.testing.assert_allclose(norm + bent, FAMILY.log_predictive(posterior, row[None])[0], rtol=1e-12)
    np.testing.assert_allclose(bent, -(degrees + 3) / 2 * np.log1p(q), rtol=1e-12)
    assert list(found.parts)[3] == "−½ (ν + 3) log(1 + q)"
    strength, scale = np.broadcast_to(posterior.strength, 2), posterior.scale
    for k in range(2):
        spread = scale[k] * (strength[k] + 1) / strength[k] / degrees[k]
        t = stats.multivariate_t(posterior.location[k], spread, df=degrees[k])
        assert (norm + bent)[k] == pytest.approx(t.logpdf(row), rel=1e-10)


def test_nothing_known():
    found = density_terms(log_prob_form(FAMILY, FAMILY.maximum_likelihood(COUNTED)), np.full(3, np.nan))
    assert (found.note, found.parts) == ("no observed cells", {})


def test_words_that_make_themselves_likelier():
    family, rows = tb.DirichletMultinomial(), np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 2.0]])
    posterior = tb.Dirichlet([1.0, 2.0, 3.0]).update(family.collect(rows))
    form = log_predictive_form(family, posterior)
    found = word_terms(form, rows[0])
    total = found.terms.sum(axis=-1) + found.of_sum
    expected = stats.dirichlet_multinomial.logpmf(rows[0], np.ravel(posterior.concentration), 4)
    assert np.ravel(total)[0] == pytest.approx(expected)
    assert word_terms(log_prob_form(tb.Poisson(), np.ones((1, 2))), np.array([1.0, 2.0])) is None
    assert is_joint(log_prob_form(FAMILY, FAMILY.maximum_likelihood(COUNTED)))
    assert not is_joint(log_prob_form(tb.Poisson(), np.ones((1, 2))))
