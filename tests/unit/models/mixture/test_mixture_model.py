"""Mixtures: clusters of any columns, their evidence bounded and their measures those of the textbook."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import betaln, gammaln, logsumexp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, PriorError, StatisticsError

RNG = np.random.default_rng(0)
K = np.repeat([0, 1], 30)
X = RNG.normal(5.0 * K[:, None], 1.0, (60, 2))
MIXED = {
    "length": np.where(RNG.random(60) < 0.2, np.nan, RNG.normal(5.0 * K)),
    "color": np.where(RNG.random(60) < 0.2, None, np.array(["red", "blue"])[K]),
    "number": RNG.poisson(1 + 8 * K),
    "words": sparse.csr_array(RNG.poisson(np.where(np.arange(20) < 10, 1 - 0.9 * K[:, None], 0.1 + 0.9 * K[:, None]))),
}
COLUMNS = {"length": tb.Gaussian(), "color": tb.Categorical(), "number": tb.Poisson(), "words": tb.Multinomial()}


def mixture(n_components=2, columns="auto", **options):
    return tb.Mixture(n_components, columns, **({"random_state": 0} | options))


def is_parted(found, k=K):
    """Whether the components are the heaps, whichever is called 0."""
    return len({*zip(found.tolist(), k.tolist(), strict=True)}) == len(set(k.tolist()))


def quiet(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


class TestFinds:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("estimate", ["bayes", "map", "mle", "unbiased"])
    def test_heaps(self, estimate):
        model = mixture(estimate=estimate).fit(X)
        assert is_parted(model.predict(X))
        assert model.classes_.tolist() == [0, 1]
        assert model.predict(X).dtype == np.int64
        assert model.converged_

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize(
        "rows",
        [X, X.tolist(), pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})],
        ids=["array", "list", "pandas", "polars"],
    )
    def test_in_any_form(self, rows):
        model = mixture().fit(rows)
        assert is_parted(model.predict(rows))
        assert model.history_ == pytest.approx(mixture().fit(X).history_, rel=1e-12)

    def test_in_mixed_columns_with_missing_cells(self):
        model = mixture(2, COLUMNS).fit(MIXED)
        assert is_parted(model.predict(MIXED))
        assert np.isfinite(model.score_samples(MIXED)).all()
        drawn, of = model.sample(5, random_state=0)
        assert set(drawn) == set(MIXED)
        assert drawn["words"].shape == (5, 20)
        assert of.shape == (5,)
        filled = model.impute(MIXED)
        gone = np.isnan(MIXED["length"])
        np.testing.assert_array_equal(filled["length"][~gone], MIXED["length"][~gone])
        assert np.abs(filled["length"][gone] - 5.0 * K[gone]).max() < 1.0  # the mean of its heap
        assert not any(color is None for color in filled["color"])

    def test_in_sparse_rows(self):
        model = mixture().fit(MIXED["words"])
        assert is_parted(model.predict(MIXED["words"]))
        dense = mixture(2, tb.Multinomial()).fit(MIXED["words"].toarray())
        assert model.history_ == pytest.approx(dense.history_, rel=1e-10)

    def test_in_many_columns(self):
        rows = np.random.default_rng(1).normal(K[:, None], 1.0, (60, 500))
        assert is_parted(mixture().fit_predict(rows))

    @pytest.mark.parametrize("columns", ["auto", tb.MultivariateGaussian()], ids=["diagonal", "full"])
    def test_the_same_far_from_zero(self, columns):
        near, far = mixture(2, columns).fit(X), mixture(2, columns).fit(X + 1e9)
        np.testing.assert_allclose(far.predict_proba(X + 1e9), near.predict_proba(X), atol=1e-6)

    @pytest.mark.slow
    def test_the_best_of_its_starts(self):
        rows = np.random.default_rng(2).normal(size=(60, 3)) * [1, 2, 3]
        one = [quiet(mixture(4, n_init=1, random_state=seed), rows).history_[-1] for seed in range(4)]
        many = quiet(mixture(4, n_init=8), rows)
        assert many.history_[-1] >= min(one)
        assert len({round(value, 3) for value in one}) > 1  # there are several tops

    def test_one_component_is_no_mixture(self):
        model = mixture(1).fit(X)
        np.testing.assert_allclose(model.score_samples(X), tb.NaiveBayes().fit(X, np.zeros(60, int)).score_samples(X))


class TestNobodyDies:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize(
        "rows",
        [X[:1], np.repeat(X[:1], 8, axis=0), np.repeat(X[:2], 10, axis=0), X[:3], np.full((5, 2), 0.1)],
        ids=["one row", "one row often", "two rows often", "three rows", "constant"],
    )
    @pytest.mark.parametrize("columns", ["auto", tb.MultivariateGaussian(), tb.TiedGaussian()], ids=repr)
    @pytest.mark.parametrize("estimate", ["bayes", "map"])
    def test_with_more_components_than_different_rows(self, rows, columns, estimate):
        model = quiet(mixture(5, columns, estimate=estimate), rows)
        weights = np.exp(model.class_log_prior_)
        assert (weights > 0).all()
        assert weights.sum() == pytest.approx(1.0)
        assert np.isfinite(model.history_).all()
        assert np.isfinite(model.predict_proba(rows)).all()
        assert np.isfinite([model.bic_, model.evidence_lower_bound_]).all()
        again = tb.Mixture(5, columns).fit_tally(model.tally_)
        assert len(again.classes_) == 5

    def test_in_labels_and_counts(self):
        rows = {"a": ["x", "x", "y"], "b": [0, 0, 3]}
        model = quiet(mixture(6, {"a": tb.Categorical(), "b": tb.Poisson()}), rows)
        assert (np.exp(model.class_log_prior_) > 0).all()
        assert np.isfinite(model.predict_proba(rows)).all()


class TestColumnsThatSayNothing:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("value", [0.1, 1e9 + 0.1, np.nan])
    @pytest.mark.parametrize("columns", ["auto", tb.MultivariateGaussian()], ids=["diagonal", "full"])
    def test_change_nothing(self, value, columns):
        wide = np.c_[X, np.full(60, value)]
        plain, model = mixture(2, columns).fit(X), mixture(2, columns).fit(wide)
        assert model.constant_columns_ == [2]
        np.testing.assert_allclose(model.predict_proba(wide), plain.predict_proba(X), atol=1e-4)
        if columns == "auto":
            assert model.evidence_lower_bound_ == pytest.approx(plain.evidence_lower_bound_, rel=1e-9)
            assert model.history_ == pytest.approx(plain.history_, rel=1e-9)

    def test_whatever_the_weights(self):
        rng = np.random.default_rng(8)
        for value in (0.1, -3e5, 1e9 + 0.1):
            weight = rng.random(60)
            assert tb.NaiveBayes().fit(np.full((60, 1), value), K, weight).constant_columns_ == [0]
            with pytest.raises(EstimateError, match="variance of column 0 in class 0 is 0"):
                tb.NaiveBayes(estimate="mle").fit(np.full((60, 1), value), K, weight).predict([[value]])

    def test_labels_that_nobody_has(self):
        plain, model = mixture().fit({"a": X[:, 0]}), mixture().fit({"a": X[:, 0], "b": np.full(60, None)})
        assert model.history_ == pytest.approx(plain.history_, rel=1e-12)
        assert model.evidence_lower_bound_ == pytest.approx(plain.evidence_lower_bound_, rel=1e-12)

    @pytest.mark.parametrize("columns", ["auto", tb.MultivariateGaussian()], ids=["diagonal", "full"])
    def test_rows_without_any_cell(self, columns):
        rows = X.copy()
        rows[3], rows[7, 1] = np.nan, np.nan
        model = mixture(2, columns, tol=1e-10).fit(rows)
        np.testing.assert_allclose(model.predict_proba(rows[3:4])[0], np.exp(model.class_log_prior_), rtol=1e-12)
        assert model.score_samples(rows[3:4])[0] == pytest.approx(0.0, abs=1e-12)

    def test_nothing_at_all(self):
        model = quiet(mixture(), np.full((5, 2), np.nan))
        np.testing.assert_allclose(model.predict_proba(np.full((1, 2), np.nan)), [[0.5, 0.5]], atol=0.05)
        with pytest.raises(DataError, match="found inf in row 0, column 0"):
            mixture().fit([[np.inf], [1.0]])


class TestRows:
    @pytest.mark.slow
    def test_weights_are_repeats(self):
        times = np.random.default_rng(4).integers(0, 3, 60)
        weighted, repeated = mixture(3).fit(X, None, times), mixture(3).fit(np.repeat(X, times, axis=0))
        assert weighted.history_ == pytest.approx(repeated.history_, rel=1e-11)
        assert weighted.tally_.isclose(repeated.tally_, 1e-9)
        assert weighted.bic_ == pytest.approx(repeated.bic_, rel=1e-11)
        assert weighted.score(X, sample_weight=times) == pytest.approx(
            repeated.score(np.repeat(X, times, axis=0)), rel=1e-11
        )

    def test_weights_by_name(self):
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "w": 1.0 + K})
        model = mixture().fit(frame, sample_weight="w")
        assert model.tally_ == mixture().fit(frame[["a", "b"]], sample_weight=frame["w"]).tally_
        assert model.score(frame, sample_weight="w") == model.score(frame[["a", "b"]], sample_weight=1.0 + K)

    @pytest.mark.slow
    def test_order_does_not_matter(self):
        order = np.random.default_rng(5).permutation(60)
        rows = np.random.default_rng(6).normal(size=(60, 2))  # no heaps: many tops, the same one is found
        first, again = (quiet(mixture(3), some) for some in (rows, rows[order]))
        np.testing.assert_allclose(again.predict_proba(rows), first.predict_proba(rows), atol=1e-9)

    @pytest.mark.slow
    def test_same_seed_same_bits(self):
        assert mixture(3, COLUMNS).fit(MIXED).tally_ == mixture(3, COLUMNS).fit(MIXED).tally_

    def test_none_that_count(self):
        with pytest.raises(DataError, match="weight of every row is zero"):
            mixture().fit(X, None, np.zeros(60))


# ---- Measures ---------------------------------------------------------------------------------------------------


def exact_evidence(rows, log_evidence):
    """log p(rows): the sum over every way to put the rows into two components, each weight under Dirichlet(1)."""
    terms = []
    for z in itertools.product([0, 1], repeat=len(rows)):
        z = np.array(z)
        n = np.bincount(z, minlength=2)
        terms.append(gammaln(n + 1).sum() - gammaln(len(z) + 2) + sum(log_evidence(rows[z == c]) for c in (0, 1)))
    return logsumexp(terms)


def bernoulli_evidence(rows):
    heads = rows.sum(axis=0)
    return (betaln(heads + 1, len(rows) - heads + 1) - betaln(1, 1)).sum()


def poisson_evidence(rows):
    total, n = rows.sum(axis=0), len(rows)
    log_base = -gammaln(rows + 1).sum(axis=0)
    return (gammaln(total + 2) - gammaln(2) + 2 * np.log(0.5) - (total + 2) * np.log(n + 0.5) + log_base).sum()


def gaussian_evidence(rows):
    """Under the normal-inverse-gamma (0, 0.1, 2, 2)."""
    n = len(rows)
    if not n:
        return 0.0
    mean, strength, shape = rows.mean(axis=0), 0.1 + n, 2 + n / 2
    scale = 2 + ((rows - mean) ** 2).sum(axis=0) / 2 + 0.1 * n * mean**2 / (2 * strength)
    values = gammaln(shape) - gammaln(2) + 2 * np.log(2) - shape * np.log(scale) + np.log(0.1 / strength) / 2
    return (values - n / 2 * np.log(2 * np.pi)).sum()


EVIDENCE = {
    "Bernoulli": (
        np.tile([[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], 3),
        tb.Bernoulli(),
        tb.Beta(1, 1),
        bernoulli_evidence,
    ),
    "Poisson": (
        np.array([[0, 1], [1, 0], [9, 12], [11, 8], [0, 2]]),
        tb.Poisson(),
        tb.Gamma(2, 0.5),
        poisson_evidence,
    ),
    "Gaussian": (
        np.array([[-4.0], [-3.5], [-4.2], [5.0], [4.4], [5.3]]),
        tb.Gaussian(),
        tb.NormalInverseGamma(0.0, 0.1, 2.0, 2.0),
        gaussian_evidence,
    ),
}


class TestMeasures:
    @pytest.mark.parametrize("case", EVIDENCE)
    def test_the_evidence_bound_lies_below_the_evidence_and_near_it(self, case):
        rows, family, prior, log_evidence = EVIDENCE[case]
        exact = exact_evidence(rows, log_evidence)
        bound = mixture(2, family, prior=prior).fit(rows).evidence_lower_bound_
        assert bound <= exact - np.log(2) + 1e-9  # the two names of every solution count as two
        assert bound > exact - np.log(2) - 0.7

    @pytest.mark.slow
    def test_the_evidence_bound_prefers_as_many_components_as_there_are_heaps(self):
        rng = np.random.default_rng(7)
        rows = rng.normal(np.repeat([0.0, 8.0, 16.0], 40)[:, None], 1.0, (120, 2))
        bounds = [quiet(mixture(n), rows).evidence_lower_bound_ for n in (1, 2, 3, 4, 5)]
        measures = [quiet(mixture(n), rows).bic_ for n in (1, 2, 3, 4, 5)]
        assert np.argmax(bounds) == np.argmin(measures) == 2

    @pytest.mark.slow
    def test_missing_cells_are_in_the_bound(self):
        """Under a full covariance the bound of rows with unknown cells is below that of the rows without them."""
        prior = tb.NormalInverseWishart(np.zeros(2), 0.1, 5.0, np.eye(2))
        rows = np.array([[0.0, 0.3], [0.5, 0.1], [9.0, 9.3], [9.2, np.nan], [8.8, 9.1]])
        model = mixture(1, tb.MultivariateGaussian(), prior=prior, max_iter=3000, tol=1e-12).fit(rows)
        values = np.linspace(-40, 60, 301)
        joint = []
        for value in values:
            whole = np.where(np.isnan(rows), value, rows)
            hard = tb.NaiveBayes(tb.MultivariateGaussian(), prior=prior).fit(whole, np.zeros(5, int))
            joint.append(hard.log_evidence())
        exact = logsumexp(joint) + np.log(values[1] - values[0])
        assert exact - 0.5 < model.evidence_lower_bound_ <= exact + 1e-9

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize(
        ("kind", "family"),
        [("diag", tb.Gaussian()), ("full", tb.MultivariateGaussian()), ("tied", tb.TiedMultivariateGaussian())],
        ids=["diag", "full", "tied"],
    )
    def test_the_information_criterion_is_that_of_scikit_learn(self, kind, family):
        model = mixture(2, family, estimate="mle", tol=1e-12).fit(X)
        peer = GaussianMixture(2, covariance_type=kind, tol=1e-12, random_state=0, reg_covar=0.0).fit(X)
        assert model.bic_ == pytest.approx(peer.bic(X), rel=1e-8)
        assert model.n_parameters_ == peer._n_parameters()
        assert model.score(X) == pytest.approx(peer.score(X), rel=1e-8)

    def test_are_gone_when_the_counts_change(self):
        model = mixture().fit(X)
        for changed in (mixture().fit(X).drop_class(0), tb.Mixture(2).fit_tally(model.tally_)):
            assert changed.history_ == []
            for measure in ("bic_", "evidence_lower_bound_"):
                with pytest.raises(EstimateError, match="counts have changed since EM ended"):
                    getattr(changed, measure)


class TestAsAModel:
    def test_kept_in_files_pickles_and_clones(self, tmp_path):
        model = mixture(2, COLUMNS).fit(MIXED)
        model.save(tmp_path / "mixture")
        for other in (tb.load(tmp_path / "mixture"), pickle.loads(pickle.dumps(model))):
            assert isinstance(other, tb.Mixture)
            assert other.tally_ == model.tally_
            assert other.tally_.soft
            assert (other.history_, other.objective_, other.bic_) == (model.history_, "log posterior", model.bic_)
            assert other.evidence_lower_bound_ == model.evidence_lower_bound_
            np.testing.assert_array_equal(other.predict_proba(MIXED), model.predict_proba(MIXED))
            assert other.predict(MIXED).dtype == np.int64
        assert clone(model).get_params() == model.get_params()
        assert set(model.get_params()) == {
            *("n_components", "columns", "estimate", "prior", "class_prior", "unseen"),
            *("max_iter", "tol", "n_init", "warm_start", "random_state"),
        }

    def test_is_read_by_other_estimates(self):
        model = mixture().fit(X)
        other = model.reestimate(estimate="mle")
        assert other.history_ == model.history_
        assert is_parted(other.predict(X))

    def test_neither_adds_nor_gives_back(self):
        model = mixture().fit(X)
        with pytest.raises(StatisticsError, match="components do not correspond"):
            _ = model + mixture().fit(X)
        for look in (tb.cross_validate, tb.leave_one_out):
            with pytest.raises(DataError, match="the model is a Mixture, whose components are not classes"):
                look(model, X, model.predict(X))
        with pytest.raises(EstimateError, match="evidence_lower_bound_"):
            model.log_evidence()
        for name in ("forget", "partial_fit", "add_class", "calibrate"):  # they need labels
            assert not hasattr(model, name)

    def test_is_no_classifier_and_needs_no_labels(self):
        assert not is_classifier(mixture())
        model = make_pipeline(StandardScaler(), mixture()).fit(X, np.arange(60))
        assert is_parted(model.predict(X))
        assert model.score(X) == pytest.approx(model.score_samples(X).mean())

    def test_samples_have_its_moments(self):
        model = mixture().fit(X)
        drawn, of = model.sample(20_000, random_state=0)
        for k in (0, 1):
            mine = X[model.predict(X) == k]
            np.testing.assert_allclose(drawn[of == k].mean(axis=0), mine.mean(axis=0), atol=0.1)

    @pytest.mark.parametrize("n_components", [0, -1, 2.0, True, "2", None])
    def test_a_number_of_components(self, n_components):
        with pytest.raises(DataError, match=r"n_components is .*expected a whole number of at least 1"):
            tb.Mixture(n_components).fit(X)

    def test_given_shares(self):
        model = mixture(2, class_prior={0: 0.3, 1: 0.7}).fit(X)
        np.testing.assert_allclose(np.exp(model.class_log_prior_), [0.3, 0.7])
        assert (np.diff(model.history_) >= -1e-9).all()
        with pytest.raises(PriorError, match="no probability for class 1"):
            mixture(2, class_prior={0: 1.0}).fit(X)

    def test_a_prior_of_counts(self):
        before = mixture().fit(X).tally_.scale(0.1)
        assert is_parted(mixture(prior=before).fit(X).predict(X))


ROUGH = {"tol": 1e-3, "n_init": 1}  # rows of noise, which the checks like, have no clear tops
FULL = tb.MultivariateGaussian()


@pytest.mark.slow_after(1)
@parametrize_with_checks([mixture(4, **ROUGH), mixture(2, FULL, estimate="map", **ROUGH)])
def test_keeps_the_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_components", [1, 3])
def test_the_number_of_components_by_bic(n_components):
    rng = np.random.default_rng(n_components)
    rows = rng.normal(size=(300, 2)) + 8.0 * rng.integers(0, n_components, 300)[:, None]
    model = tb.Mixture("auto", random_state=0).fit(rows)
    assert model.get_params()["n_components"] == "auto"
    assert len(model.classes_) == model.n_classes == n_components
    others = [tb.Mixture(k, random_state=0).fit(rows).bic_ for k in range(1, 5)]
    assert model.bic_ == min(others)
    np.testing.assert_allclose(model.weights_, np.exp(model.class_log_prior_))
    with pytest.raises(DataError, match="n_components is 'few'; expected a whole number of at least 1, or 'auto'"):
        tb.Mixture("few").fit(rows)


def test_an_automatic_number_of_components_says_what_it_cannot_start_from():
    rows = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(tb.DataError, match="X has 0 rows"):
        tb.Mixture("auto").fit(rows[:0])
    with pytest.raises(tb.DataError, match=r"initial is a model with a fixed number of components.*'auto'"):
        tb.Mixture("auto").fit(rows, initial=tb.Mixture(2, random_state=0).fit(rows))
