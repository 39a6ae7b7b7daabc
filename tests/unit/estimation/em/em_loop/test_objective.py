"""EM's objective from the outside: what SciPy makes of the same rows, how shards add up, and where there is no top."""

import warnings

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, PriorError
from tallybayes.models.classification import class_em
from tallybayes.models.classification.class_em import ClassEM
from tallybayes.models.inputs.features import open_features
from tallybayes.models.inputs.input_format import InputFormat
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor


def quiet(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


def test_the_history_is_the_log_posterior_of_what_was_observed(climbs):
    """Labels, weights, λ, missing cells, four families: all of it summed by SciPy."""
    rng = np.random.default_rng(5)
    k = rng.integers(0, 2, 30)
    rows = {
        "length": np.where(rng.random(30) < 0.2, np.nan, rng.normal(2.0 * k)),
        "yes": np.where(rng.random(30) < 0.2, np.nan, rng.random(30) < 0.3 + 0.4 * k),
        "number": np.where(rng.random(30) < 0.2, np.nan, rng.poisson(2 + 3 * k)),
        "color": np.where(rng.random(30) < 0.2, None, np.array(["red", "blue"])[(rng.random(30) < 0.3 + 0.4 * k) * 1]),
    }
    columns = {"length": tb.Gaussian(), "yes": tb.Bernoulli(), "number": tb.Poisson(), "color": tb.Categorical()}
    prior = [tb.NormalInverseGamma(0.5, 2.0, 3.0, 2.0), tb.Beta(2, 2), tb.Gamma(3, 1), tb.Dirichlet(2)]
    labels, weight = np.where(rng.random(30) < 0.5, -1, k), rng.uniform(0.2, 2, 30)
    options = {"estimate": "map", "prior": prior, "class_prior": tb.Dirichlet(1.5), "unlabeled": "em"}
    model = tb.NaiveBayes(columns, missing_label=-1, unlabeled_weight=0.4, max_iter=4, tol=1e-300, **options)
    quiet(model, rows, labels, weight)
    shares = weight * np.where(labels < 0, 0.4, 1.0)
    for found, value in zip(climbs[-1], model.history_, strict=True):
        parts = {scored.factor.columns[0]: scored.parameters for scored in found.scored}
        mean, variance = (np.ravel(part) for part in parts["length"])
        p, rate, share = np.ravel(parts["yes"]), np.ravel(parts["number"]), parts["color"].table
        place = {level: index for index, level in enumerate(model.tally_.domains["color"].levels)}
        joint = np.tile(found.log_prior, (30, 1))
        for i in range(30):
            if not np.isnan(rows["length"][i]):
                joint[i] += stats.norm.logpdf(rows["length"][i], mean, np.sqrt(variance))
            if not np.isnan(rows["yes"][i]):
                joint[i] += stats.bernoulli.logpmf(rows["yes"][i], p)
            if not np.isnan(rows["number"][i]):
                joint[i] += stats.poisson.logpmf(rows["number"][i], rate)
            if rows["color"][i] is not None:
                joint[i] += np.log(share[:, place[rows["color"][i]]])
        log_p = np.where(labels < 0, logsumexp(joint, axis=1), joint[np.arange(30), labels])
        expected = shares @ log_p
        expected += stats.invgamma.logpdf(variance, 3.0, scale=2.0).sum()
        expected += stats.norm.logpdf(mean, 0.5, np.sqrt(variance / 2.0)).sum()
        expected += stats.beta.logpdf(p, 2, 2).sum() + stats.gamma.logpdf(rate, 3).sum()
        expected += sum(stats.dirichlet.logpdf(row / row.sum(), [2, 2]) for row in share)
        expected += stats.dirichlet.logpdf(np.exp(found.log_prior), [1.5, 1.5])
        assert value == pytest.approx(expected, rel=1e-12)


def half_labeled(seed=0, n=24):
    """Two correlated classes in two columns, a fifth of the cells and half of the labels missing."""
    rng = np.random.default_rng(seed)
    k = np.arange(n) % 2
    rows = rng.normal(size=(n, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + 2.5 * k[:, None]
    gone = rng.random(rows.shape) < 0.2
    gone[:4] = False
    return np.where(gone, np.nan, rows), np.where((rng.random(n) < 0.5) & (np.arange(n) > 5), -1, k)


@pytest.mark.slow
@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_missing_cells_and_missing_labels_against_brute_force(covariance):
    """The log posterior of known cells and labels, maximized by SciPy over all parameters at once."""
    rows, labels = half_labeled()
    scale, freedom, strength = np.array([[2.0, 0.3], [0.3, 1.0]]), 6.0, 2.0
    prior = tb.NormalInverseWishart(np.array([1.0, 1.0]), strength, freedom, scale)
    options = {"estimate": "map", "prior": prior, "class_prior": tb.Dirichlet(2.0), "unlabeled": "em"}
    model = tb.GaussianDiscriminant(covariance, missing_label=-1, max_iter=5000, tol=1e-15, **options)
    quiet(model, rows, labels)

    def unpack(flat):
        weight = 1 / (1 + np.exp(-flat[0]))
        roots = np.zeros((2, 2, 2))
        roots[:, [0, 1, 1], [0, 0, 1]] = flat[5:8] if covariance == "tied" else flat[5:].reshape(2, 3)
        return np.array([1 - weight, weight]), flat[1:5].reshape(2, 2), roots @ np.swapaxes(roots, 1, 2)

    def log_posterior(flat):
        weights, mean, spread = unpack(flat)
        value = stats.dirichlet.logpdf(weights, [2.0, 2.0])
        for c in (0, 1):
            value += stats.multivariate_normal.logpdf(mean[c], [1.0, 1.0], spread[c] / strength)
            value += stats.invwishart.logpdf(spread[c], freedom, scale) if c == 0 or covariance == "full" else 0.0
        for row, label in zip(rows, labels, strict=True):
            known, joint = ~np.isnan(row), np.log(weights)
            if known.any():
                spreads = spread[:, known][:, :, known]
                joint = joint + [
                    stats.multivariate_normal.logpdf(row[known], m, s)
                    for m, s in zip(mean[:, known], spreads, strict=True)
                ]
            value += logsumexp(joint) if label < 0 else joint[label]
        return value

    scored, shares = model._factor_scorers[0].parameters, np.exp(model.class_log_prior_)
    roots = np.linalg.cholesky(np.asarray(scored.covariance))[:, [0, 1, 1], [0, 0, 1]]
    roots = roots[0] if covariance == "tied" else roots.ravel()
    top = np.r_[np.log(shares[1] / shares[0]), np.ravel(scored.mean), roots]
    assert model.history_[-1] == pytest.approx(log_posterior(top), abs=1e-8)
    gradient = optimize.approx_fprime(top, log_posterior, 1e-6)
    elsewhere = optimize.approx_fprime(top + 0.05, log_posterior, 1e-6)
    assert np.abs(gradient).max() < 1e-4 * np.abs(elsewhere).max()
    near = optimize.minimize(lambda flat: -log_posterior(flat), top + 0.02, method="BFGS")
    assert -near.fun == pytest.approx(model.history_[-1], abs=1e-5)


# ---- The steps by themselves ------------------------------------------------------------------------------------


def expectation_of(model, rows, labels, weight=None):
    """EM as `fit` sets it up, for classes 0, 1, …, each of which has a label."""
    table = open_features(rows)
    model.input_format_ = InputFormat("class", by_name=False)
    factors = [Factor("class", (), tb.Categorical()), *model._make_factors(table, "class", None)]
    classes = Domain(range(int(labels.max()) + 1), "class", is_sorted=True)
    named = np.ones(len(classes.levels), dtype=bool)
    return ClassEM(model._em_model(factors), table, labels, classes, named, weight)


def test_the_shards_of_one_step_add_up():
    rng = np.random.default_rng(8)
    k = np.r_[0, 1, 0, 1, rng.integers(0, 2, 56)]
    rows = {
        "x": np.where(rng.random(60) < 0.2, np.nan, rng.normal(k) + 1e4),
        "y": np.where(rng.random(60) < 0.2, np.nan, rng.normal(2 * k) - 3.0),
        "letter": np.where(rng.random(60) < 0.2, None, np.array(["a", "b"])[(rng.random(60) < 0.3 + 0.4 * k) * 1]),
    }
    rows["letter"][:4] = ["a", "a", "b", "b"]  # both halves meet the levels in the same order
    labels, weight = np.where((rng.random(60) < 0.5) & (np.arange(60) > 3), -1, k), rng.uniform(0.5, 2, 60)
    columns = {("x", "y"): tb.MultivariateGaussian(), "letter": tb.Categorical()}

    def made(part):
        some = {name: column[part] for name, column in rows.items()}
        return expectation_of(tb.NaiveBayes(columns, unlabeled="em"), some, labels[part], weight[part])

    whole, first, second = made(slice(None)), made(np.arange(60) % 2 == 0), made(np.arange(60) % 2 == 1)
    found, _ = whole.maximize(whole._from_labels(1))
    expected, value = whole.expect(found)
    parts = [shard.expect(found) for shard in (first, second)]
    assert value == pytest.approx(sum(part for _, part in parts), rel=1e-12)
    assert expected.entropy == pytest.approx(sum(part.entropy for part, _ in parts), rel=1e-12)
    tallies = [shard._tally(part) for shard, (part, _) in zip((first, second), parts, strict=True)]
    assert whole._tally(expected).isclose(sum(tallies), 1e-10)
    assert sum(tallies).soft


def test_blocks_of_rows_make_no_difference(monkeypatch):
    rows, labels = half_labeled(3, 3000)
    options = {"unlabeled": "em", "missing_label": -1}
    whole = tb.GaussianDiscriminant(**options).fit(rows, labels)
    monkeypatch.setattr(class_em, "_CELLS", 1)  # blocks of 1024 rows
    parts = tb.GaussianDiscriminant(**options).fit(rows, labels)
    assert whole.tally_.isclose(parts.tally_, 1e-9)
    np.testing.assert_allclose(whole.history_, parts.history_, rtol=1e-11)


class TestWhatHasNoTop:
    rows = np.array([[0, 0], [0, 1], [0, 1], [0, 0]])

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize(
        ("family", "prior"),
        [(tb.Bernoulli(), tb.Beta(0.5, 0.5)), (tb.Poisson(), tb.Gamma(0.5, 1.0)), (tb.Categorical(), tb.BDeu(1))],
        ids=["Beta", "Gamma", "BDeu"],
    )
    def test_a_prior_that_prefers_zero(self, family, prior):
        model = tb.Mixture(2, family, prior=prior, estimate="map", random_state=0)
        with pytest.raises(PriorError, match=r"no maximum to converge to(.|\n)*Use estimate='bayes'"):
            model.fit(self.rows)
        history = quiet(model.set_params(estimate="bayes"), self.rows).history_
        assert np.isfinite(history).all()
        assert (np.diff(history) >= -1e-12).all()

    @pytest.mark.slow
    def test_a_class_that_falls_in_on_one_row(self):
        """Without a prior, the likelihood of a component on a single row has no bound."""
        rng = np.random.default_rng(0)
        x = np.r_[rng.normal(size=30), 1e3][:, None]
        with pytest.raises(EstimateError, match=r"variance of column 0 in class \d is 0"):
            tb.Mixture(3, estimate="mle", random_state=0, max_iter=5000).fit(x)
        assert tb.Mixture(3, random_state=0).fit(x).converged_

    @pytest.mark.slow
    def test_another_start_may_do_better(self):
        x = np.random.default_rng(9).normal(size=(25, 1))
        x[0] = 4.0
        model = tb.Mixture(3, estimate="mle", n_init=1, max_iter=300, random_state=0)
        with pytest.raises(EstimateError, match="is 0, so its density"):
            model.fit(x)
        assert np.isfinite(quiet(model.set_params(n_init=8), x).history_).all()

    def test_classes_far_apart_are_no_collapse(self):
        rng = np.random.default_rng(0)
        x = np.r_[rng.normal(0, 1e-3, 30), rng.normal(1e5, 1e-3, 30)][:, None]
        model = tb.Mixture(2, estimate="mle", random_state=0).fit(x)
        np.testing.assert_allclose(np.exp(model.class_log_prior_), 0.5)

    def test_a_column_nobody_of_a_class_can_have(self):
        rows = {"a": [0, 1, 0, 1, 1], "b": [1, 0, None, None, None]}
        model = tb.NaiveBayes({"a": tb.Bernoulli(), "b": tb.Bernoulli()}, estimate="mle", unlabeled="em")
        with pytest.raises(
            DataError, match="'mle' estimate of column 'b' in class 1 is undefined: nothing was counted"
        ):
            model.fit(rows, [0, 0, 1, 1, None])
