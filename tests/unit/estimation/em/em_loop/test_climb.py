"""EM: it climbs the log posterior of what was observed, step by step as the textbook has it, and ends on top."""

import copy
import warnings

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError
from tallybayes.estimation.em.em_loop import run_em, run_em_restarts
from tests.examples import examples


def quiet(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="the prior of .* is worth")  # few labels, long rows of counts
        return model.fit(*data)


class TestClimb:
    @staticmethod
    def coin(max_iter, tol):
        """Five tosses, two of them not seen, the others two heads and a tail."""
        return run_em(
            1.0,
            lambda heads: (heads / 5, 0.0),
            lambda p: (2 + 2 * p, 2 * np.log(p) + np.log(1 - p)),
            max_iter=max_iter,
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
        done = run_em(0.0, lambda x: (x, -2.0), lambda p: (p, -5.0), max_iter=5, tol=1e-9)
        assert done.history == [-7.0, -7.0]

    def test_takes_a_step_at_least(self):
        with pytest.raises(EstimateError, match="max_iter is 0; expected at least 1"):
            self.coin(0, 1e-3)


class TestClimbBest:
    """Each start is the top of its own hill; those below 0 fail."""

    @staticmethod
    def ends(*tops):
        def expect(top):
            if top < 0:
                raise EstimateError(f"no way up from {top}")
            return top, top

        return run_em_restarts(
            [lambda top=top: top for top in tops], lambda top: (top, 0.0), expect, max_iter=9, tol=1e-9
        ).parameters

    def test_the_highest_counts(self):
        assert self.ends(2.0) == 2.0
        assert self.ends(1.0, 3.0, 2.0) == 3.0

    def test_some_may_fail(self):
        assert self.ends(-1.0, 2.0, -3.0) == 2.0
        with pytest.raises(EstimateError, match="no way up from -3"):
            self.ends(-1.0, -3.0)

    def test_other_errors_are_not_swallowed(self):
        with pytest.raises(DataError):
            run_em_restarts([self.no_data, lambda: 1.0], lambda x: (x, 0.0), lambda x: (x, 0.0), max_iter=9, tol=1e-9)

    @staticmethod
    def no_data():
        raise DataError("nothing there")


@pytest.mark.parametrize(
    "model",
    [
        tb.Mixture(2),
        tb.HiddenMarkovModel(2),
        tb.NaiveBayes(unlabeled="em"),
        tb.BayesianNetwork({"b": ["a"]}, missing="em"),
    ],
    ids=["mixture", "chain", "classifier", "network"],
)
def test_settings_are_those_a_model_has(model):
    model._check_settings()
    for name, values in {
        "max_iter": (0, 1.0, None),
        "n_init": (0, -1, True),
        "tol": (-1e-9, np.inf, np.nan, "x"),
    }.items():
        for value in values:
            wrong = copy.copy(model)
            setattr(wrong, name, value)
            with pytest.raises(
                EstimateError,
                match=f"{name} is .*; expected a (whole number of at least 1|positive number|number of at least 0)",
            ):
                wrong._check_settings()


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


@pytest.mark.slow
@examples(40)
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
    options = {"estimate": estimate, "prior": prior, "class_prior": class_prior, "random_state": 0, "max_iter": 60}
    if start != "one class more" and isinstance(class_prior, tb.Dirichlet):
        options["class_prior"] = tb.Dirichlet(class_prior.concentration.ravel()[0])
    if start == "mixture":
        model, data = tb.Mixture(3, columns, **options), (rows, None, weight if weighted else None)
    else:
        options |= {"unlabeled": "em", "missing_label": -1, "unlabeled_weight": share}
        options |= {"n_classes": 4} if start == "one class more" else {}
        model, data = tb.NaiveBayes(columns, **options), (rows, labels, weight if weighted else None)
    try:
        quiet(model, *data)
    except (EstimateError, DataError) as error:  # without a prior a class may fall in on a row, or have no cell
        clear = any(words in str(error) for words in ("is singular", "is 0, so its", "nothing was counted"))
        if not clear or estimate in ("map", "bayes"):
            raise
        reject()
    history = np.array(model.history_)
    assert np.isfinite(history).all()
    assert (np.diff(history) >= -1e-9 * max(1.0, np.abs(history[-1]))).all()
    assert len(history) >= 2
    assert (model.class_log_prior_ > -np.inf).all()  # nobody dies
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.slow
@examples(25)
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
    model = tb.GaussianDiscriminant(covariance, estimate=estimate, prior=prior, unlabeled="em", missing_label=-1)
    model.set_params(random_state=0, n_classes=3 if more else None, max_iter=60)
    try:
        quiet(model, np.where(gone, np.nan, rows), labels)
    except EstimateError:
        if estimate in ("map", "bayes"):
            raise
        reject()
    history = np.array(model.history_)
    assert (np.diff(history) >= -1e-9 * max(1.0, np.abs(history[-1]))).all()


# ---- The textbook's EM ------------------------------------------------------------------------------------------

STEPS = 6


def textbook(x, weights, parameters, density, maximize, log_prior):
    """Plain EM from given parameters: the objective after every step, and the last responsibilities."""
    history, shares = [], None
    for step in range(STEPS):
        if step:
            weights, parameters = maximize(x, shares)
        joint = np.log(weights) + density(x, parameters)
        history.append(logsumexp(joint, axis=1).sum() + log_prior(weights, parameters))
        shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return history, shares


def stepped(climbs, x, columns, **options):
    """A mixture of two after some steps; the weights and parameters of its first step."""
    model = tb.Mixture(2, columns, n_init=1, max_iter=STEPS, tol=1e-300, random_state=1, **options)
    quiet(model, x)
    first = climbs[-1][0]
    return model, np.exp(first.log_prior), first.scored[0].parameters


@pytest.mark.parametrize("estimate", ["map", "mle"])
def test_a_gaussian_mixture_step_by_step(climbs, estimate):
    rng = np.random.default_rng(0)
    x = rng.normal(3.0 * rng.integers(0, 2, 40))[:, None]
    location, strength, shape, scale = (1.0, 0.5, 2.0, 1.5) if estimate == "map" else (0.0, 0.0, -1.5, 0.0)
    pseudo = 1.0 if estimate == "map" else 0.0

    def maximize(x, shares):
        n, total = shares.sum(axis=0), shares.T @ x[:, 0]
        mean = (strength * location + total) / (strength + n)
        about = (shares * (x - mean) ** 2).sum(axis=0) + strength * (mean - location) ** 2
        return (n + pseudo) / (n + pseudo).sum(), (mean, (scale + about / 2) / (shape + n / 2 + 1.5))

    def density(x, parameters):
        return stats.norm.logpdf(x, parameters[0], np.sqrt(parameters[1]))

    def log_prior(weights, parameters):
        if estimate == "mle":
            return 0.0
        mean, variance = parameters
        value = stats.invgamma.logpdf(variance, shape, scale=scale).sum()
        value += stats.norm.logpdf(mean, location, np.sqrt(variance / strength)).sum()
        return value + stats.dirichlet.logpdf(weights, [2.0, 2.0])

    prior = tb.NormalInverseGamma(location, strength, shape, scale) if estimate == "map" else None
    model, weights, first = stepped(climbs, x, tb.Gaussian(), estimate=estimate, prior=prior)
    start = weights, tuple(np.ravel(part) for part in first)
    history, shares = textbook(x, *start, density, maximize, log_prior)
    np.testing.assert_allclose(model.history_, history, rtol=1e-12)
    assert model.objective_ == ("log posterior" if estimate == "map" else "log likelihood")
    np.testing.assert_allclose(model.tally_.statistics[0].table, shares.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(model.tally_.statistics[1].mean[:, 0], shares.T @ x[:, 0] / shares.sum(axis=0))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("estimate", ["map", "bayes"])
@pytest.mark.parametrize("family", ["Bernoulli", "Poisson", "Categorical"])
def test_mixtures_of_counts_step_by_step(climbs, family, estimate):
    rng = np.random.default_rng(2)
    k = rng.integers(0, 2, 40)
    more = 1.0 if estimate == "bayes" else 0.0  # the mode under one pseudo-count more is the mean
    if family == "Bernoulli":
        x = (rng.random((40, 5)) < np.where(k, 0.8, 0.2)[:, None]).astype(float)
        prior, columns = tb.Beta(2.0, 3.0), tb.Bernoulli()
    elif family == "Poisson":
        x, prior, columns = rng.poisson(1 + 6.0 * k)[:, None].astype(float), tb.Gamma(2.0, 0.5), tb.Poisson()
    else:
        x = np.where(rng.random((40, 4)) < 0.7, k[:, None], 2 - k[:, None])
        x[:3, 0] = 0, 1, 2  # the levels, in this order
        prior, columns = tb.Dirichlet(2.5), tb.Categorical()

    def hot(x):
        return np.eye(3)[x.astype(int)]

    def maximize(x, shares):
        n = shares.sum(axis=0)
        if family == "Bernoulli":
            found = (shares.T @ x + 1.0 + more) / (n[:, None] + 3.0 + 2 * more)
        elif family == "Poisson":
            found = (shares.T @ x + 1.0 + more) / (n[:, None] + 0.5)
        else:
            counts = np.einsum("nk,ncl->kcl", shares, hot(x)) + 1.5 + more
            found = counts / counts.sum(axis=-1, keepdims=True)
        return (n + 1) / (n + 1).sum(), found

    def density(x, found):
        if family == "Categorical":
            return np.log(np.einsum("ncl,kcl->nkc", hot(x), found)).sum(axis=-1)
        log_p = stats.bernoulli.logpmf if family == "Bernoulli" else stats.poisson.logpmf
        return log_p(x[:, None], found).sum(axis=-1)

    def log_prior(weights, found):
        value = stats.dirichlet.logpdf(weights, [2.0, 2.0])
        if family == "Bernoulli":
            return value + stats.beta.logpdf(found, 2.0 + more, 3.0 + more).sum()
        if family == "Poisson":
            return value + stats.gamma.logpdf(found, 2.0 + more, scale=2.0).sum()
        return value + sum(stats.dirichlet.logpdf(p / p.sum(), [2.5 + more] * 3) for p in found.reshape(-1, 3))

    x = x[:, :1] if family == "Categorical" else x
    model, weights, first = stepped(climbs, x, columns, estimate=estimate, prior=prior)
    if family == "Categorical":
        assert model.tally_.domains["0"].levels == (0, 1, 2)
        first = first.table.reshape(2, 1, 3)
    history, shares = textbook(x, weights, np.asarray(first), density, maximize, log_prior)
    np.testing.assert_allclose(model.history_, history, rtol=1e-12)
    np.testing.assert_allclose(model.tally_.statistics[0].table, shares.sum(axis=0), rtol=1e-10)
    if estimate == "bayes":  # what is predicted is the mean of what EM ended with
        weights, last = maximize(x, shares)
        joint = np.log(weights) + density(x, last)
        if family != "Poisson":  # whose predictive is no Poisson
            expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
            np.testing.assert_allclose(model.predict_proba(x), expected, rtol=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("diag", tb.Gaussian()),
        ("full", tb.MultivariateGaussian()),
        ("tied", tb.TiedMultivariateGaussian()),
        ("spherical", tb.SphericalGaussian()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_top_is_that_of_scikit_learn(climbs, kind, family):
    rng = np.random.default_rng(3)
    x = np.r_[rng.normal(0, 1, (60, 2)) @ [[1, 0.6], [0, 0.7]], rng.normal(4.0, 1.0, (40, 2))]
    model = tb.Mixture(2, family, estimate="mle", n_init=1, max_iter=5000, tol=1e-14, random_state=0)
    quiet(model, x)
    first = climbs[-1][0]
    mean, spread = (np.asarray(part) for part in first.scored[0].parameters)
    precision = np.linalg.inv(spread) if spread.ndim == 3 else 1 / spread
    precision = {"diag": precision, "full": precision, "tied": precision[0], "spherical": precision[:, 0]}[kind]
    peer = GaussianMixture(2, covariance_type=kind, tol=1e-13, max_iter=5000, reg_covar=0.0)
    peer.set_params(weights_init=np.exp(first.log_prior), means_init=mean, precisions_init=precision)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last bits go to and fro
        peer.fit(x)
    np.testing.assert_allclose(np.exp(model.class_log_prior_), peer.weights_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(x), peer.predict_proba(x), atol=1e-6)
    np.testing.assert_allclose(model.score_samples(x), peer.score_samples(x), atol=1e-6)
    assert model.history_[-1] == pytest.approx(peer.score(x) * len(x), abs=1e-8)
    assert model.bic_ == pytest.approx(peer.bic(x), abs=1e-6)
