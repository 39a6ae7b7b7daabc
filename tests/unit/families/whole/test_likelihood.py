"""Log probabilities against scipy.stats, and maximum likelihood against NumPy and numerical optimization."""

import numpy as np
import pytest
from scipy import optimize, stats

import tallybayes as tb
from tallybayes.errors import DataError
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.statistics.counts import Segments
from tests.unit.families.family_cases import CASES, TIED, WHOLE_ROWS, of_group


@pytest.fixture(params=CASES)
def name(request):
    return request.param


def some_parameters(name):
    """Parameters of three groups, not the best ones."""
    case = CASES[name]
    learned = tb.fit_distribution(case.rows, case.family, group=case.groups)
    return case.family.parameters_from(
        case.family.resolve_prior(case.prior, learned.statistics, "bayes").update(learned.statistics), "mean"
    )


@pytest.mark.slow_after(5)
def test_log_prob_is_scipys(name):
    case, parameters = CASES[name], some_parameters(name)
    found = case.family.log_prob(parameters, case.rows.astype(float))
    assert found.shape == ((16, 3) if name in WHOLE_ROWS else (16, 3, 3))
    for i, row in enumerate(case.rows):
        for g in range(3):
            np.testing.assert_allclose(found[i, g], case.log_prob(of_group(parameters, g), row), rtol=1e-10, atol=1e-12)


def test_log_likelihood_is_the_weighted_sum_over_rows(name):
    case, parameters = CASES[name], some_parameters(name)
    weight = np.random.default_rng(2).uniform(0, 3, 16)
    weight[3] = 0
    learned = tb.fit_distribution(case.rows, case.family, group=case.groups, weight=weight)
    terms = case.family.log_prob(parameters, case.rows.astype(float))
    own = terms[np.arange(16), case.groups]
    expected = np.stack(
        [
            (weight[case.groups == g].reshape(-1, *(1,) * (own.ndim - 1)) * own[case.groups == g]).sum(0)
            for g in range(3)
        ]
    )
    if name in TIED:  # groups that share a parameter have one likelihood
        expected = expected.sum(axis=0)
    np.testing.assert_allclose(case.family.log_likelihood(parameters, learned.statistics), expected, rtol=1e-10)
    np.testing.assert_allclose(learned.log_likelihood(parameters), expected, rtol=1e-10)


def free_parameters(name, free):
    """Parameters of one group and three columns from unconstrained numbers."""
    if name in ("bernoulli", "binomial"):
        return 1 / (1 + np.exp(-free[:3]))
    if name == "poisson":
        return np.exp(free[:3])
    if "multinomial" in name:
        return np.exp(free[:3]) / np.exp(free[:3]).sum()
    if "multivariate" in name:
        root = np.zeros((3, 3))
        root[np.tril_indices(3)] = free[3:9]
        root[np.arange(3), np.arange(3)] = np.exp(root[np.arange(3), np.arange(3)])
        return tb.MultivariateGaussian().as_parameters((free[:3], root @ root.T), None)
    variance = np.exp(free[3:6]) if "spherical" not in name else np.full(3, np.exp(free[3]))
    return tb.Gaussian().as_parameters((free[:3], variance), None)


@pytest.mark.slow_after(2)
def test_maximum_likelihood_is_the_maximum(name):
    case = CASES[name]
    learned = tb.fit_distribution(case.rows, case.family)

    def cost(free):
        return -np.sum(learned.log_likelihood(free_parameters(name, free)))

    start = np.append(case.rows.mean(axis=0) if case.rows.dtype.kind == "f" else np.zeros(3), np.zeros(6))
    found = optimize.minimize(cost, start, tol=1e-8)
    best = free_parameters(name, found.x)
    parts = (
        zip(learned.estimate("mle"), best, strict=True)
        if isinstance(best, tuple)
        else [(learned.estimate("mle"), best)]
    )
    for ours, theirs in parts:
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)
    # and no parameter found by search beats it
    assert -np.sum(learned.log_likelihood(learned.estimate("mle"))) <= found.fun + 1e-9


def test_gaussian_estimates_are_numpys():
    rows, groups = CASES["gaussian"].rows, CASES["gaussian"].groups
    residual = rows - np.stack([rows[groups == g].mean(axis=0) for g in range(3)])[groups]
    for estimate, ddof in (("mle", 0), ("unbiased", 1)):
        plain = tb.fit_distribution(rows, tb.Gaussian(), group=groups).estimate(estimate)
        full = tb.fit_distribution(rows, tb.MultivariateGaussian(), group=groups).estimate(estimate)
        sphere = tb.fit_distribution(rows, tb.SphericalGaussian(), group=groups).estimate(estimate)
        for g in range(3):
            part = rows[groups == g]
            np.testing.assert_allclose(plain.mean[g], part.mean(axis=0), rtol=1e-14)
            np.testing.assert_allclose(plain.variance[g], part.var(axis=0, ddof=ddof), rtol=1e-13)
            np.testing.assert_allclose(full.covariance[g], np.cov(part.T, ddof=ddof), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(sphere.variance[g], part.var(axis=0, ddof=ddof).mean(), rtol=1e-13)
        freedom = len(rows) - 3 * ddof
        tied = tb.fit_distribution(rows, tb.TiedGaussian(), group=groups).estimate(estimate)
        np.testing.assert_allclose(tied.variance, np.tile((residual**2).sum(axis=0) / freedom, (3, 1)), rtol=1e-13)
        pooled = tb.fit_distribution(rows, tb.TiedMultivariateGaussian(), group=groups).estimate(estimate)
        np.testing.assert_allclose(pooled.covariance[1], residual.T @ residual / freedom, rtol=1e-12)
        single = tb.fit_distribution(rows, tb.TiedSphericalGaussian(), group=groups).estimate(estimate)
        np.testing.assert_allclose(single.variance, (residual**2).sum() / (3 * freedom), rtol=1e-13)


def test_weighted_gaussian_is_numpys():
    rows = CASES["gaussian"].rows
    weight = np.arange(16) % 4
    found = tb.fit_distribution(rows, tb.MultivariateGaussian(), weight=weight).estimate("mle")
    np.testing.assert_allclose(found.mean, np.average(rows, axis=0, weights=weight), rtol=1e-13)
    np.testing.assert_allclose(found.covariance, np.cov(rows.T, fweights=weight, ddof=0), rtol=1e-12)
    unbiased = tb.fit_distribution(rows, tb.MultivariateGaussian(), weight=weight).estimate("unbiased")
    np.testing.assert_allclose(unbiased.covariance, np.cov(rows.T, fweights=weight), rtol=1e-12)


def test_categorical_log_prob_and_likelihood():
    codes = np.array([[0, 2], [1, 0], [0, 1], [1, 1]])
    table = np.array([[0.3, 0.7, 0.2, 0.5, 0.3], [1.0, 0.0, 0.1, 0.1, 0.8]])
    family = tb.Categorical()
    found = family.log_prob(LevelProbabilities(table, Segments([2, 3])), codes)
    with np.errstate(divide="ignore"):
        for i, g in np.ndindex(4, 2):
            np.testing.assert_allclose(found[i, g], np.log([table[g, codes[i, 0]], table[g, 2 + codes[i, 1]]]))
    learned = tb.fit_distribution(codes, family)
    likelihood = learned.log_likelihood([{0: 0.3, 1: 0.7}, {0: 0.2, 1: 0.5, 2: 0.3}])
    np.testing.assert_allclose(likelihood, found[:, 0].sum(axis=0))
    assert learned.estimate("mle") == [{0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.5, 2: 0.25}]


def test_what_was_never_seen_is_impossible_and_costs_nothing():
    # 0 · log 0 = 0 for the data seen, −inf for what was not
    tails = tb.fit_distribution([0, 0, 0], tb.Bernoulli())
    assert tails.log_likelihood(tails.estimate("mle")) == 0
    np.testing.assert_array_equal(
        tb.Bernoulli().log_prob(np.array([0.0]), np.array([[1.0], [0.0]])), [[-np.inf], [0.0]]
    )
    assert tb.fit_distribution([1], tb.Bernoulli()).log_likelihood(0.0) == -np.inf
    assert tb.fit_distribution([0, 0], tb.Poisson()).log_likelihood(0.0) == 0
    assert tb.fit_distribution([0, 1], tb.Poisson()).log_likelihood(0.0) == -np.inf
    assert tb.fit_distribution(["a", "b"], tb.Categorical()).log_likelihood({"a": 1.0, "b": 0.0}) == -np.inf
    assert tb.fit_distribution(["a", "a"], tb.Categorical(("a", "b"))).log_likelihood({"a": 1.0, "b": 0.0}) == 0
    assert tb.fit_distribution([[2, 0]], tb.Multinomial()).log_likelihood([1.0, 0.0]) == 0


@pytest.mark.parametrize("n", [0, -1, 2.5, "3"])
def test_binomial_needs_trials(n):
    with pytest.raises(DataError, match="n of Binomial"):
        tb.Binomial(n)


def test_binomial_of_one_trial_is_bernoulli():
    coin, one = tb.fit_distribution([1, 0, 1], tb.Bernoulli()), tb.fit_distribution([1, 0, 1], tb.Binomial(1))
    assert one.log_evidence(tb.Beta(2, 3)) == pytest.approx(coin.log_evidence(tb.Beta(2, 3)), rel=1e-14)
    assert one.estimate("mle") == coin.estimate("mle")
    assert one.cross_entropy(0.4) == pytest.approx(coin.cross_entropy(0.4))


@pytest.mark.slow_after(4)
def test_samples_have_the_distribution_of_their_parameters(name):
    case, parameters = CASES[name], some_parameters(name)
    n = 3000
    draws = case.family.sample(parameters, n, np.random.default_rng(11))
    assert draws.shape == (n, 3, 3)
    for g, j in np.ndindex(3, 3):
        one, x = of_group(parameters, g), draws[:, g, j]
        if isinstance(one, tuple):
            variance = one.variance[j] if hasattr(one, "variance") else one.covariance[j, j]
            assert stats.kstest(x, stats.norm(one.mean[j], np.sqrt(variance)).cdf).pvalue > 1e-3
        else:
            trials = 6 if name == "binomial" else 1
            mean = one[j] * trials
            variance = mean if name == "poisson" else trials * one[j] * (1 - one[j])
            assert abs(x.mean() - mean) < 4 * np.sqrt(variance / n)
    if "multivariate" in name:
        centered = draws[:, 0] - parameters.mean[0]
        deviation = np.sqrt(np.diagonal(parameters.covariance[0]))
        correlation = parameters.covariance[0] / np.outer(deviation, deviation)
        np.testing.assert_allclose(np.corrcoef(centered.T), correlation, atol=4 / np.sqrt(n))


def test_categorical_samples_have_their_probabilities():
    table = np.array([[0.2, 0.8, 0.5, 0.1, 0.4], [1.0, 0.0, 0.3, 0.3, 0.4]])
    draws = tb.Categorical().sample(LevelProbabilities(table, Segments([2, 3])), 4000, np.random.default_rng(5))
    assert draws.shape == (4000, 2, 2)
    for g in range(2):
        for j, part in enumerate((table[g, :2], table[g, 2:])):
            counts = np.bincount(draws[:, g, j], minlength=len(part))
            assert (counts[part == 0] == 0).all()
            assert stats.chisquare(counts[part > 0], 4000 * part[part > 0]).pvalue > 1e-3 or (part == 1).any()
