"""EM: it climbs the log posterior of what was observed, step by step as the textbook has it, and ends on top."""

import warnings

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, PriorError
from tallybayes.inference.em import climb
from tallybayes.models import expectation
from tallybayes.models.expectation import Expectation
from tallybayes.models.features import open_features
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor


@pytest.fixture
def climbs(monkeypatch):
    """Every climb there was: where it started, and how it ended."""
    found = []

    def recorded(start, *arguments, **options):
        done = climb(start, *arguments, **options)
        found.append((start, done))
        return done

    monkeypatch.setattr(expectation, "climb", recorded)
    return found


def quiet(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


class TestClimb:
    @staticmethod
    def coin(n_iter, tol):
        """Five tosses, two of them not seen, the others two heads and a tail."""
        return climb(
            1.0,
            lambda heads: (heads / 5, 0.0),
            lambda p: (2 + 2 * p, 2 * np.log(p) + np.log(1 - p)),
            n_iter=n_iter,
            tol=tol,
        )

    def test_stops_when_a_step_gains_little(self):
        done = self.coin(100, 1e-3)
        gains = np.diff(done.history)
        assert done.converged
        assert gains[-1] < 1e-3 <= gains[:-1].min()
        assert done.expected == pytest.approx(2 + 2 * done.parameters, rel=1e-15)  # under the last parameters

    def test_says_when_it_had_to_stop(self):
        done = self.coin(3, 1e-12)
        assert not done.converged
        assert len(done.history) == 3
        assert not self.coin(1, np.inf).converged  # one step shows no gain

    def test_adds_the_log_prior(self):
        done = climb(0.0, lambda x: (x, -2.0), lambda p: (p, -5.0), n_iter=5, tol=1e-9)
        assert done.history == [-7.0, -7.0]

    def test_takes_a_step_at_least(self):
        with pytest.raises(EstimateError, match="n_iter is 0; expected at least 1"):
            self.coin(0, 1e-3)


FAMILIES = {
    "Gaussian": lambda rng, k: (rng.normal(2 * k, 1 + k)[:, None], tb.Gaussian()),
    "TiedGaussian": lambda rng, k: (rng.normal(np.outer(k, [1, -1]), [1, 2]), tb.TiedGaussian()),
    "SphericalGaussian": lambda rng, k: (rng.normal(np.outer(k, [1, -1]), [1, 2]), tb.SphericalGaussian()),
    "TiedSphericalGaussian": lambda rng, k: (rng.normal(np.outer(k, [1, -1]), [1, 2]), tb.TiedSphericalGaussian()),
    "MultivariateGaussian": lambda rng, k: (_correlated(rng, k), tb.MultivariateGaussian()),
    "TiedMultivariateGaussian": lambda rng, k: (_correlated(rng, k), tb.TiedMultivariateGaussian()),
    "LogNormal": lambda rng, k: (np.exp(rng.normal(k))[:, None], tb.LogNormal()),
    "Bernoulli": lambda rng, k: ((rng.random((len(k), 3)) < 0.2 + 0.3 * k[:, None]) * 1.0, tb.Bernoulli()),
    "Binomial": lambda rng, k: (rng.binomial(5, 0.2 + 0.3 * k)[:, None] * 1.0, tb.Binomial(5)),
    "Poisson": lambda rng, k: (rng.poisson(1 + 3 * k)[:, None] * 1.0, tb.Poisson()),
    "Categorical": lambda rng, k: (np.array(list("abcd"))[(rng.integers(0, 2, len(k)) + k), None], tb.Categorical()),
    "Binned": lambda rng, k: (rng.normal(k)[:, None], tb.Binned([-1.0, 0.0, 1.0, 2.0])),
    "Multinomial": lambda rng, k: (rng.poisson(1 + np.outer(k, np.arange(4))) * 1.0, tb.Multinomial()),
    "DirichletMultinomial": lambda rng, k: (
        rng.poisson(1 + np.outer(k, np.arange(4))) * 1.0,
        tb.DirichletMultinomial(),
    ),
}


def _correlated(rng, k):
    return rng.normal(size=(len(k), 3)) @ rng.normal(size=(3, 3)) + k[:, None]


def incomplete(seed, names):
    """Rows of these families from three classes; a fifth of the cells and half of the labels are missing."""
    rng = np.random.default_rng(seed)
    k = np.r_[0, 1, 2, rng.integers(0, 3, int(rng.integers(8, 50)))]
    rows, columns = {}, {}
    for name in names:
        cells, family = FAMILIES[name](rng, k)
        gone = rng.random(cells.shape) < (0.0 if "Multinomial" in name else 0.2)
        cells = np.where(gone, None, cells) if cells.dtype.kind == "U" else np.where(gone, np.nan, cells)
        keys = tuple(f"{name} {j}" for j in range(cells.shape[1]))
        rows |= dict(zip(keys, cells.T, strict=True))
        columns[keys] = family
    labels = np.where((rng.random(len(k)) < 0.5) & (np.arange(len(k)) > 2), -1, k)
    return rows, columns, labels, rng.uniform(0.1, 3, len(k))


@settings(max_examples=60)
@given(
    st.integers(0, 10_000),
    st.lists(st.sampled_from(sorted(FAMILIES)), min_size=1, max_size=3, unique=True),
    st.sampled_from(["labels", "one class more", "mixture"]),
    st.sampled_from(["bayes", "map", "bayes", "map", "mle", "unbiased"]),
    st.sampled_from([None, "empirical"]),
    st.sampled_from([None, "uniform", tb.Dirichlet(1.5), tb.Dirichlet([3.0, 1.0, 2.0, 1.0])]),
    st.sampled_from([1.0, 0.3, 2.5]),
    st.booleans(),
)
def test_the_objective_never_falls(seed, names, start, estimate, prior, class_prior, share, weighted):
    rows, columns, labels, weight = incomplete(seed, names)
    options = {"estimate": estimate, "prior": prior, "class_prior": class_prior, "random_state": 0}
    if start != "one class more" and isinstance(class_prior, tb.Dirichlet):
        options["class_prior"] = tb.Dirichlet(class_prior.concentration.ravel()[0])
    if start == "mixture":
        model, data = tb.Mixture(3, columns, **options), (rows, None, weight if weighted else None)
    else:
        options |= {"unlabelled": "em", "missing_label": -1, "unlabelled_weight": share}
        options |= {"n_classes": 4} if start == "one class more" else {}
        model, data = tb.NaiveBayes(columns, **options), (rows, labels, weight if weighted else None)
    try:
        quiet(model, *data)
    except (EstimateError, DataError) as error:  # without a prior a class may fall in on a row, or have no cell
        assert estimate in ("mle", "unbiased")
        assert any(words in str(error) for words in ("is singular", "is 0, so its", "nothing was counted"))
        reject()
    history = np.array(model.history_)
    assert np.isfinite(history).all()
    assert (np.diff(history) >= -1e-9 * max(1.0, np.abs(history[-1]))).all()
    assert len(history) >= 2
    assert (model.class_log_prior_ > -np.inf).all()  # nobody dies
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0, rtol=1e-12)


@settings(max_examples=30)
@given(
    st.integers(0, 10_000),
    st.sampled_from(list(tb.GaussianDiscriminant.families)),
    st.sampled_from(["bayes", "map", "mle", "unbiased"]),
    st.sampled_from([None, "empirical"]),
    st.booleans(),
)
def test_the_objective_of_discriminants_never_falls(seed, covariance, estimate, prior, more):
    rng = np.random.default_rng(seed)
    k = np.r_[np.repeat([0, 1], 6), rng.integers(0, 2, 40)]
    rows = _correlated(rng, 4 * k) * 10.0 ** (seed % 7 - 3) + seed % 100
    gone = rng.random(rows.shape) < 0.2
    gone[:12] = False
    labels = np.where((rng.random(len(k)) < 0.5) & (np.arange(len(k)) >= 12), -1, k)
    model = tb.GaussianDiscriminant(covariance, estimate=estimate, prior=prior, unlabelled="em", missing_label=-1)
    model.set_params(random_state=0, n_classes=3 if more else None)
    try:
        quiet(model, np.where(gone, np.nan, rows), labels)
    except EstimateError:
        assert estimate in ("mle", "unbiased")
        reject()
    history = np.array(model.history_)
    assert (np.diff(history) >= -1e-9 * max(1.0, np.abs(history[-1]))).all()


# ---- The textbook's EM ------------------------------------------------------------------------------------------


def textbook(log_density, maximise, x, shares, n_steps, log_prior_of=lambda weights, parameters: 0.0):
    """Plain EM from responsibilities of shape (n, components): the objective after each step, and the last of them."""
    history = []
    for _ in range(n_steps):
        weights, parameters = maximise(x, shares)
        joint = np.log(weights) + log_density(x, parameters)
        history.append(logsumexp(joint, axis=1).sum() + log_prior_of(weights, parameters))
        shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return history, shares


def two_heaps(seed=0):
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 2, 40)
    return rng, k


def first_shares(start, x, k_of):
    """The responsibilities of a start that puts every row into one component, found by its means."""
    return np.eye(2)[k_of(x, start)]


STEPS = 6


def run_mixture(climbs, x, columns, **options):
    """Some steps of the mixture from one start whose every row lies in one component."""
    model = tb.Mixture(2, columns, n_init=1, n_iter=STEPS, tol=1e-300, random_state=1, **options)
    quiet(model, x)
    return model, *climbs[-1]


def test_a_gaussian_mixture_step_by_step(climbs):
    rng, k = two_heaps()
    x = rng.normal(3.0 * k, 1.0)[:, None]
    prior = tb.NormalInverseGamma(1.0, 0.5, 2.0, 1.5)
    model, start, _ = run_mixture(climbs, x, tb.Gaussian(), estimate="map", prior=prior)
    means = start.statistics[0].mean[:, 0]
    shares = np.eye(2)[np.abs(x - means).argmin(axis=1)]
    np.testing.assert_allclose(shares.sum(axis=0), start.classes)

    def maximise(x, shares):
        n, total = shares.sum(axis=0), shares.T @ x[:, 0]
        mean = (0.5 * 1.0 + total) / (0.5 + n)
        about = (shares * (x - mean) ** 2).sum(axis=0) + 0.5 * (mean - 1.0) ** 2
        variance = (1.5 + about / 2) / (2.0 + n / 2 + 1.5)
        return (n + 1) / (n + 1).sum(), (mean, variance)

    def log_prior(weights, parameters):
        mean, variance = parameters
        inverse = stats.invgamma.logpdf(variance, 2.0, scale=1.5)
        return (
            (inverse + stats.norm.logpdf(mean, 1.0, np.sqrt(variance / 0.5))).sum()
            + stats.dirichlet.logpdf(weights / weights.sum(), [2.0, 2.0])
        )

    def density(x, parameters):
        return stats.norm.logpdf(x, parameters[0], np.sqrt(parameters[1]))

    history, shares = textbook(density, maximise, x, shares, STEPS, log_prior)
    np.testing.assert_allclose(model.history_, history, rtol=1e-12)
    np.testing.assert_allclose(model.tally_.statistics[0].table, shares.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(model.tally_.statistics[1].mean[:, 0], shares.T @ x[:, 0] / shares.sum(axis=0))


@pytest.mark.parametrize("family", ["Bernoulli", "Poisson", "Categorical"])
def test_mixtures_of_counts_step_by_step(climbs, family):
    rng, k = two_heaps(2)
    if family == "Bernoulli":
        x = (rng.random((40, 5)) < np.where(k, 0.8, 0.2)[:, None]).astype(float)
        prior, columns = tb.Beta(2.0, 3.0), tb.Bernoulli()
    elif family == "Poisson":
        x, prior, columns = rng.poisson(1 + 6.0 * k)[:, None].astype(float), tb.Gamma(2.0, 0.5), tb.Poisson()
    else:
        x = np.where(rng.random((40, 4)) < 0.7, k[:, None], 2 - k[:, None])
        prior, columns = tb.Dirichlet(2.5), tb.Categorical()

    def maximise(x, shares):
        n = shares.sum(axis=0)
        if family == "Bernoulli":
            found = (shares.T @ x + 1.0) / (n[:, None] + 3.0)
        elif family == "Poisson":
            found = (shares.T @ x + 1.0) / (n[:, None] + 0.5)
        else:
            counts = np.einsum("nk,ncl->kcl", shares, np.eye(3)[x.astype(int)])
            found = (counts + 1.5) / (counts + 1.5).sum(axis=-1, keepdims=True)
        return (n + 1) / (n + 1).sum(), found

    def density(x, found):
        if family == "Bernoulli":
            return stats.bernoulli.logpmf(x[:, None], found).sum(axis=-1)
        if family == "Poisson":
            return stats.poisson.logpmf(x[:, None], found).sum(axis=-1)
        return np.log(np.einsum("ncl,kcl->nkc", np.eye(3)[x.astype(int)], found)).sum(axis=-1)

    def log_prior(weights, found):
        value = stats.dirichlet.logpdf(weights / weights.sum(), [2.0, 2.0])
        if family == "Bernoulli":
            return value + stats.beta.logpdf(found, 2.0, 3.0).sum()
        if family == "Poisson":
            return value + stats.gamma.logpdf(found, 2.0, scale=2.0).sum()
        return value + sum(stats.dirichlet.logpdf(p / p.sum(), [2.5] * 3) for p in found.reshape(-1, 3))

    model, start, done = run_mixture(climbs, x, columns, estimate="map", prior=prior)
    _, first = maximise(x, np.eye(2)[k])  # only for its shape
    begun = climb(start, *_steps(climbs, model, x, columns, prior), n_iter=1, tol=1e-300)
    assert first.shape[0] == 2
    shares = _shares_of(begun, x)
    history, shares = textbook(density, maximise, x, shares, STEPS - 1, log_prior)
    np.testing.assert_allclose(model.history_[1:], history, rtol=1e-12)
    np.testing.assert_allclose(model.tally_.statistics[0].table, shares.sum(axis=0), rtol=1e-10)
    assert done.history == model.history_
