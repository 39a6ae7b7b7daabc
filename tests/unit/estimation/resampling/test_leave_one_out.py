"""Rows left out in closed form: what a family says of itself holds until one made from it counts or scores anew."""

import numpy as np
import pytest
import scipy.sparse as sp

import tallybayes as tb
from tallybayes.estimation.resampling.leave_one_out import is_cellwise
from tallybayes.families.protocols.leave_one_out import has_closed_form, leave_one_out_log_prob

Y = np.arange(30) % 3
RNG = np.random.default_rng(0)
ROWS = {
    "yes": (RNG.random((30, 4)) < 0.3 + 0.2 * Y[:, None]).astype(float),
    "counts": RNG.poisson(1.0 + Y[:, None], (30, 4)).astype(float),
    "numbers": RNG.normal(Y[:, None], 1.0, (30, 4)),
}
FAMILIES = {
    tb.Bernoulli: "yes",
    tb.Poisson: "counts",
    tb.Multinomial: "counts",
    tb.DirichletMultinomial: "counts",
    tb.Gaussian: "numbers",
    tb.TiedGaussian: "numbers",
    tb.SphericalGaussian: "numbers",
    tb.MultivariateGaussian: "numbers",
    tb.TiedMultivariateGaussian: "numbers",
}


class Halved:
    """Half the log probability of another family, in everything that says it."""

    def log_prob(self, parameters, x):
        return super().log_prob(parameters, x) / 2

    def log_predictive(self, posterior, x):
        return super().log_predictive(posterior, x) / 2

    def log_likelihood(self, parameters, statistics):
        return super().log_likelihood(parameters, statistics) / 2

    def log_evidence(self, belief, statistics):
        return super().log_evidence(belief, statistics) / 2


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
@pytest.mark.parametrize(
    ("parent", "form"),
    [(one, "dense") for one in FAMILIES] + [(one, "sparse") for one in FAMILIES if one.accepts_sparse],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_family_that_scores_otherwise_is_not_left_out_as_its_parent(parent, form, estimate):
    family = type("Own", (Halved, parent), {})()
    rows = ROWS[FAMILIES[parent]] if form == "dense" else sp.csr_array(ROWS[FAMILIES[parent]])
    model = tb.NaiveBayes(family, estimate=estimate)
    found, expected = tb.leave_one_out(model, rows, Y), tb.cross_validate(model, rows, Y, folds=np.arange(30))
    np.testing.assert_allclose(found.log_proba, expected.log_proba, rtol=1e-9, atol=1e-12)
    plain = tb.leave_one_out(tb.NaiveBayes(parent(), estimate=estimate), rows, Y)
    assert np.abs(found.log_proba - plain.log_proba)[np.isfinite(plain.log_proba)].max() > 0.1


@pytest.mark.parametrize("parent", FAMILIES, ids=lambda parent: parent.__name__)
def test_a_family_that_only_has_another_name_is_left_out_as_its_parent(parent):
    family, rows = type("Own", (parent,), {"allowed_values": "anything"})(), ROWS[FAMILIES[parent]]
    assert has_closed_form(parent())
    assert not has_closed_form(family)
    assert is_cellwise(family, sparse=True) != parent.full_moments
    found, expected = (tb.leave_one_out(tb.NaiveBayes(one), rows, Y) for one in (family, parent()))
    np.testing.assert_allclose(found.log_proba, expected.log_proba, rtol=1e-9, atol=1e-12)


def test_a_family_may_say_its_own():
    class Louder(tb.Poisson):
        def log_prob(self, parameters, x):
            return super().log_prob(parameters, x)

    @leave_one_out_log_prob.register(Louder)
    def _(family, counted, rows):
        return np.full((len(rows.group), 1), np.log(0.25))

    found = tb.leave_one_out(tb.NaiveBayes(Louder(), class_prior="uniform"), ROWS["counts"], Y)
    other = tb.NaiveBayes(tb.Poisson(), class_prior="uniform").fit(ROWS["counts"], Y)
    joint = other.predict_joint_log_proba(ROWS["counts"])
    joint[np.arange(30), Y] = np.log(0.25) - np.log(3)
    expected = joint - np.logaddexp.reduce(joint, axis=1)[:, None]
    np.testing.assert_allclose(found.log_proba, expected, rtol=1e-9)
