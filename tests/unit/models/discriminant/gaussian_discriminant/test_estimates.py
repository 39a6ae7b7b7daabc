"""Every covariance under every estimate, against closed forms and SciPy's densities."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.covariance import OAS

import tallybayes as tb
from tallybayes.errors import EstimateError, PriorError
from tests.unit.models.classification.discriminant_textbook import (
    COVARIANCES,
    ESTIMATES,
    default_prior,
    joint_log_prob,
    made,
    moments,
    with_holes,
)

X, Y, NEW = made()
HOLED = with_holes(NEW)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("covariance", COVARIANCES)
class TestDensities:
    @pytest.mark.slow_after(3)
    def test_joint_log_probability_is_the_textbook_s(self, covariance, estimate):
        model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y)
        expected = joint_log_prob(X, Y, NEW, covariance, estimate)
        np.testing.assert_allclose(model.predict_joint_log_proba(NEW), expected, rtol=1e-11)
        np.testing.assert_allclose(model.predict_proba(NEW), softmax(expected, axis=1), rtol=1e-9)
        np.testing.assert_allclose(model.score_samples(NEW), np.log(np.exp(expected).sum(axis=1)), rtol=1e-11)
        assert model.predict(NEW).tolist() == expected.argmax(axis=1).tolist()

    @pytest.mark.slow_after(3)
    def test_missing_cells_are_marginalized(self, covariance, estimate):
        model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y)
        expected = joint_log_prob(X, Y, HOLED, covariance, estimate)
        assert len({tuple(row) for row in np.isnan(HOLED)}) >= 5
        np.testing.assert_allclose(model.predict_joint_log_proba(HOLED), expected, rtol=1e-11)
        rows = np.bincount(Y) + (estimate in ("map", "bayes"))
        np.testing.assert_allclose(model.predict_proba(HOLED)[-1], rows / rows.sum(), rtol=1e-14)  # the class prior

    @pytest.mark.slow_after(5)
    def test_weights_count_rows(self, covariance, estimate):
        weight = np.random.default_rng(5).uniform(0.3, 2.5, len(X))
        model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y, weight)
        expected = joint_log_prob(X, Y, HOLED, covariance, estimate, weight)
        np.testing.assert_allclose(model.predict_joint_log_proba(HOLED), expected, rtol=1e-10)

    @pytest.mark.slow_after(2)
    def test_reestimate_is_fitting_anew(self, covariance, estimate):
        fitted = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y)
        for first in ("full", "tied_spherical"):
            seen = tb.GaussianDiscriminant(first, estimate="map").fit(X, Y)
            other = seen.reestimate(covariance=covariance, estimate=estimate)
            np.testing.assert_array_equal(other.predict_joint_log_proba(HOLED), fitted.predict_joint_log_proba(HOLED))
            assert other.get_params() == fitted.get_params()
            assert seen.covariance == first

    @pytest.mark.slow_after(1)
    def test_the_class_prior_never_touches_the_densities(self, covariance, estimate):
        """scikit-learn's LDA weights its pooled covariance by the class prior: issue 22411 there."""
        plain = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y)
        shares = {0: 0.7, 1: 0.25, 2: 0.05}
        for class_prior, log_prior in [
            ("uniform", np.log([1 / 3] * 3)),
            (shares, np.log(list(shares.values()))),
            (tb.Dirichlet([5.0, 1.0, 1.0]), None),
        ]:
            model = tb.GaussianDiscriminant(covariance, estimate=estimate, class_prior=class_prior).fit(X, Y)
            assert model.tally_ == plain.tally_
            if log_prior is None:
                counts = np.bincount(Y) + np.array([5.0, 1.0, 1.0]) - (estimate == "map")
                log_prior = np.log(counts / counts.sum())
            np.testing.assert_allclose(model.class_log_prior_, log_prior, rtol=1e-12)
            np.testing.assert_allclose(
                model.predict_joint_log_proba(NEW) - log_prior,
                plain.predict_joint_log_proba(NEW) - plain.class_log_prior_,
                rtol=1e-12,
            )
            np.testing.assert_allclose(
                plain.predict_proba(NEW, class_prior=class_prior), model.predict_proba(NEW), rtol=1e-12
            )

    @pytest.mark.slow_after(1)
    def test_the_kind_of_numbers_and_the_form_of_the_table_do_not_matter(self, covariance, estimate):
        whole = np.round(4 * X).astype(np.int32)
        expected = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(whole.astype(float), Y)
        for form in (whole, np.asfortranarray(whole), whole.astype(np.float32), whole.tolist()):
            model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(form, Y)
            np.testing.assert_allclose(model.predict_proba(whole), expected.predict_proba(whole), rtol=1e-10)


@pytest.mark.parametrize("estimate", ["map", "bayes"])
@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_a_given_prior(covariance, estimate):
    rng = np.random.default_rng(7)
    root = rng.normal(size=(3, 3))
    scale, location = root @ root.T + np.eye(3), rng.normal(size=3)
    prior = tb.NormalInverseWishart(location, 2.5, 6.5, scale)
    model = tb.GaussianDiscriminant(covariance, estimate=estimate, prior=prior).fit(X, Y)
    expected = joint_log_prob(X, Y, HOLED, covariance, estimate, prior=(location, 2.5, 6.5, scale))
    np.testing.assert_allclose(model.predict_joint_log_proba(HOLED), expected, rtol=1e-11)
    (resolved,) = model.prior_.values()
    np.testing.assert_array_equal(resolved.scale, scale)


@pytest.mark.parametrize("estimate", ["map", "bayes"])
@pytest.mark.parametrize("covariance", ["diagonal", "tied_diagonal", "spherical", "tied_spherical"])
def test_a_given_prior_of_one_variance(covariance, estimate):
    # a normal-inverse-gamma of shape a and scale b is a normal-inverse-Wishart of one column, ν = 2a and Ψ = 2b
    prior = tb.NormalInverseGamma([0.5, 0.0, -1.0], 1.5, 2.0, 0.75)
    model = tb.GaussianDiscriminant(covariance, estimate=estimate, prior=prior).fit(X, Y)
    same = (np.array([0.5, 0.0, -1.0]), 1.5, 4.0, 1.5 * np.eye(3))
    expected = joint_log_prob(X, Y, HOLED, covariance, estimate, prior=same)
    np.testing.assert_allclose(model.predict_joint_log_proba(HOLED), expected, rtol=1e-11)


def test_the_default_prior_is_shown():
    center, typical = default_prior(moments(X, Y), spherical=False)
    for covariance, estimate, factor in [
        ("full", "bayes", 3),
        ("tied", "bayes", 3),
        ("full", "map", 2 * 3 + 4),
        ("tied", "map", 2 * 3 + 3 + 3),
    ]:
        (prior,) = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y).prior_.values()
        np.testing.assert_allclose(prior.location, center, rtol=1e-12)
        np.testing.assert_allclose(prior.scale, factor * np.diag(typical), rtol=1e-12)
        assert (float(prior.strength), float(prior.degrees_of_freedom)) == (0.01, 5.0)


def test_wrong_parameters_are_refused_in_words():
    for bad, words in [
        ({"covariance": "round"}, r"covariance is 'round'; expected 'auto', 'full', 'tied'"),
        ({"shrinkage": 1.5}, r"shrinkage is 1\.5; expected a number from 0 to 1, 'auto' or None"),
        ({"shrinkage": -0.1}, "expected a number from 0 to 1"),
        ({"shrinkage": float("nan")}, "expected a number from 0 to 1"),
        ({"shrinkage": True}, "expected a number from 0 to 1"),
        ({"shrinkage": "some"}, "expected a number from 0 to 1"),
        ({"shrinkage": np.array([0.1, 0.2, 0.3])}, "expected a number from 0 to 1"),
        ({"covariance": "diagonal", "shrinkage": 0.5}, "has no effect on a 'diagonal' covariance"),
    ]:
        with pytest.raises(EstimateError, match=words):
            tb.GaussianDiscriminant(**bad).fit(X, Y)
    with pytest.raises(EstimateError, match="estimate is 'best'; expected 'mle'"):
        tb.GaussianDiscriminant(estimate="best").fit(X, Y).predict(X)
    with pytest.raises(PriorError, match="NormalInverseWishart"):
        tb.GaussianDiscriminant(prior=tb.NormalInverseGamma(0, 1, 2, 1)).fit(X, Y).predict(X)
    with pytest.raises(PriorError, match="NormalInverseGamma"):
        tb.GaussianDiscriminant("diagonal", prior=tb.Beta(1, 1)).fit(X, Y).predict(X)
    with pytest.raises(PriorError, match="sum to 1"):
        tb.GaussianDiscriminant(class_prior=[0.5, 0.5, 0.5]).fit(X, Y).predict(X)
    with pytest.raises(PriorError, match="no probability for class 2"):
        tb.GaussianDiscriminant(class_prior={0: 0.5, 1: 0.5}).fit(X, Y).predict(X)


class TestShrinkage:
    @pytest.mark.slow_after(3)
    @pytest.mark.parametrize("estimate", ESTIMATES)
    @pytest.mark.parametrize("covariance", ["full", "tied"])
    @pytest.mark.parametrize("amount", [0, 0.3, np.float32(0.75), 1])
    def test_correlations_shrink_and_variances_stay(self, covariance, estimate, amount):
        model = tb.GaussianDiscriminant(covariance, shrinkage=amount, estimate=estimate).fit(X, Y)
        expected = joint_log_prob(X, Y, HOLED, covariance, estimate, amount=float(amount))
        np.testing.assert_allclose(model.predict_joint_log_proba(HOLED), expected, rtol=1e-10)
        assert model.shrinkage_ == float(amount)

    @pytest.mark.parametrize("covariance", ["full", "tied"])
    def test_from_none_to_independent_columns(self, covariance):
        model = tb.GaussianDiscriminant(covariance, estimate="mle").fit(X, Y)
        none, all_of_it = model.shrinkage_path([0, 1])
        np.testing.assert_allclose(none.predict_proba(NEW), model.predict_proba(NEW), rtol=1e-12)
        alone = model.reestimate(covariance={"full": "diagonal", "tied": "tied_diagonal"}[covariance])
        np.testing.assert_allclose(all_of_it.predict_proba(NEW), alone.predict_proba(NEW), rtol=1e-10)

    def test_path_is_fitting_anew(self):
        model = tb.GaussianDiscriminant("tied").fit(X, Y)
        lambdas = [0.0, 0.25, 1.0]
        path = model.shrinkage_path(iter(lambdas))
        assert [m.shrinkage_ for m in path] == lambdas
        for found, amount in zip(path, lambdas, strict=True):
            fresh = tb.GaussianDiscriminant("tied", shrinkage=amount).fit(X, Y)
            np.testing.assert_array_equal(found.predict_proba(NEW), fresh.predict_proba(NEW))
        assert model.shrinkage is None
        with pytest.raises(EstimateError, match="from 0 to 1"):
            model.shrinkage_path([2.0])[0].predict(NEW)

    @pytest.mark.parametrize("seed", range(3))
    def test_auto_is_scikit_learn_s_oas_of_standardized_columns(self, seed):
        rows, labels, new = made(seed, sizes=(6, 20, 11), d=4)
        rows = rows * [1.0, 100.0, 0.1, 5.0]
        per_class, residuals = [], np.zeros_like(rows)
        for label in range(3):
            mine = rows[labels == label]
            centered = mine - mine.mean(axis=0)
            residuals[labels == label] = centered
            per_class.append(OAS(assume_centered=True).fit(centered / centered.std(axis=0)).shrinkage_)
        pooled = OAS(assume_centered=True).fit(residuals / np.sqrt((residuals**2).mean(axis=0))).shrinkage_
        full = tb.GaussianDiscriminant("full", shrinkage="auto", estimate="mle").fit(rows, labels)
        np.testing.assert_allclose(full.shrinkage_, per_class, rtol=1e-9)
        assert len(set(per_class)) == 3
        tied = full.reestimate(covariance="tied")
        assert tied.shrinkage_ == pytest.approx(pooled, rel=1e-9)
        for model, amount in ((full, per_class), (tied, pooled)):
            expected = joint_log_prob(rows, labels, new, model.covariance, "mle", amount=amount)
            np.testing.assert_allclose(model.predict_joint_log_proba(new), expected, rtol=1e-8)

    def test_auto_shrinks_fully_where_there_is_nothing_to_go_by(self):
        model = tb.GaussianDiscriminant("full", shrinkage="auto").fit(
            [[0.0, 1.0], [2.0, 0.5]], [0, 1]
        )  # one row per class
        assert model.shrinkage_.tolist() == [1.0, 1.0]
        assert np.isfinite(model.predict_joint_log_proba(HOLED[:, :2])).all()

    def test_rescues_a_singular_covariance(self):
        rows, labels, new = made(3, sizes=(4, 4), d=6)
        singular = tb.GaussianDiscriminant("full", estimate="mle").fit(rows, labels)
        with pytest.raises(EstimateError, match="singular"):
            singular.predict(new)
        expected = joint_log_prob(rows, labels, new, "full", "mle", amount=0.5)
        np.testing.assert_allclose(singular.reestimate(shrinkage=0.5).predict_joint_log_proba(new), expected, rtol=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("covariance", ["diagonal", "spherical", "tied_diagonal"])
def test_em_climbs_under_the_prior_that_was_given(covariance):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
    X[::9, 1] = np.nan
    prior = tb.NormalInverseGamma(5.0, 30.0, 3.0, 2.0)
    given = tb.GaussianDiscriminant(covariance, prior=prior).fit(X, y)
    named = tb.GaussianDiscriminant(covariance, prior={(0, 1): prior}).fit(X, y)
    assert given.history_ == named.history_
    assert given.history_ != tb.GaussianDiscriminant(covariance).fit(X, y).history_
