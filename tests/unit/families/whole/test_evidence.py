"""Evidences against numerical integration, Chib's identity and the chain rule, also where numbers are extreme."""

from fractions import Fraction
from math import comb, factorial, log

import numpy as np
import pytest
from scipy import integrate, stats

import tallybayes as tb
from tests.unit.families.family_cases import CASES, TIED, of_group


@pytest.fixture(params=CASES)
def name(request):
    return request.param


def test_chibs_identity(name):
    """Log p(data) = log p(data | θ) + log p(θ) − log p(θ | data) at any θ, with scipy's p(row | θ)."""
    case = CASES[name]
    learned = tb.fit_distribution(case.rows, case.family, group=case.groups)
    prior = case.family.resolve_prior(case.prior, learned.statistics, "bayes")
    shaped = prior.update(learned.statistics.scale(0.0))  # the prior, for three groups
    posterior = prior.update(learned.statistics)
    for parameters in (posterior.mean(), posterior.mode(), posterior.sample(random_state=9)):
        rows = [case.log_prob(of_group(parameters, g), row) for row, g in zip(case.rows, case.groups, strict=True)]
        likelihood = np.stack(
            [np.sum([r for r, g in zip(rows, case.groups, strict=True) if g == k], axis=0) for k in range(3)]
        )
        if name in TIED:
            likelihood = likelihood.sum(axis=0)
        expected = likelihood + shaped.log_prob(parameters) - posterior.log_prob(parameters)
        np.testing.assert_allclose(learned.log_evidence(case.prior), expected, rtol=1e-10)


@pytest.mark.slow_after(2)
def test_chain_rule_over_single_rows(name):
    """The evidence is the product of every row's predictive given the rows before it."""
    if name == "multinomial":
        name = "dirichlet multinomial"  # the same evidence, and a predictive that is exact for rows of many tokens
    case = CASES[name]
    total = 0.0
    seen = tb.fit_distribution(case.rows[:0], case.family)
    for i in range(len(case.rows)):
        total = total + seen.predictive(case.prior).log_prob(case.rows[i : i + 1])[0]
        seen = seen + tb.fit_distribution(case.rows[i : i + 1], case.family)
    np.testing.assert_allclose(seen.log_evidence(case.prior), total, rtol=1e-11)


def test_order_does_not_matter_and_nothing_is_certain(name):
    case = CASES[name]
    forward, backward = (tb.fit_distribution(rows, case.family) for rows in (case.rows, case.rows[::-1]))
    np.testing.assert_allclose(forward.log_evidence(case.prior), backward.log_evidence(case.prior), rtol=1e-12)
    nothing = tb.fit_distribution(case.rows[:0], case.family)
    np.testing.assert_array_equal(
        nothing.log_evidence(case.prior), np.zeros(np.shape(forward.log_evidence(case.prior)))
    )


@pytest.mark.parametrize(("a", "b"), [(2, 2), (1, 1), (0.5, 3), (10, 10)])
def test_coin_by_integration(a, b):
    tosses, hits = [1, 1, 0, 1, 1], [3, 0, 4]
    prior = stats.beta(a, b)

    def integral(likelihood):
        return np.log(integrate.quad(lambda p: likelihood(p) * prior.pdf(p), 0, 1, epsabs=1e-13)[0])

    found = tb.fit_distribution(tosses, tb.Bernoulli()).log_evidence(tb.Beta(a, b))
    assert found == pytest.approx(integral(lambda p: p**4 * (1 - p)), rel=1e-7)
    found = tb.fit_distribution(hits, tb.Binomial(4)).log_evidence(tb.Beta(a, b))
    assert found == pytest.approx(integral(lambda p: stats.binom.pmf(hits, 4, p).prod()), rel=1e-7)


@pytest.mark.parametrize(("shape", "rate"), [(3, 2), (0.5, 0.1), (40, 8)])
def test_rate_by_integration(shape, rate):
    counts = [3, 0, 7, 2]
    prior = stats.gamma(shape, scale=1 / rate)
    value = integrate.quad(
        lambda r: stats.poisson.pmf(counts, r).prod() * prior.pdf(r), 0, 60, limit=200, epsabs=1e-14
    )[0]
    found = tb.fit_distribution(counts, tb.Poisson()).log_evidence(tb.Gamma(shape, rate))
    assert found == pytest.approx(np.log(value), rel=1e-6)


def test_three_levels_by_integration():
    def integrand(second, first):
        third = 1 - first - second
        return first**2 * second * third**3 * stats.dirichlet.pdf([first, second, third], [2, 1, 1.5])

    value = integrate.dblquad(integrand, 1e-9, 1 - 1e-9, 1e-9, lambda first: max(1 - first - 1e-9, 1e-9), epsabs=1e-9)[
        0
    ]
    letters = tb.fit_distribution(list("aabccc"), tb.Categorical())
    assert letters.log_evidence(tb.Dirichlet([2, 1, 1.5])) == pytest.approx(np.log(value), rel=1e-4)
    rows = tb.fit_distribution(
        [[2, 1, 0], [0, 0, 3]], tb.Multinomial()
    )  # 3!/(2!1!) ways to order the first row, 1 for the second
    assert rows.log_evidence(tb.Dirichlet([2, 1, 1.5])) == pytest.approx(np.log(3 * value), rel=1e-4)


def test_measured_column_by_integration():
    values = np.array([1.0, 2.5, 0.2, 3.0])
    location, strength, shape, scale = 0.5, 0.8, 2.0, 1.5
    # σ² = exp(u), μ = mean + σ z: smooth and quickly dying out, so the trapezoid rule is exact
    u, z = np.linspace(-7, 12, 1141)[:, None], np.linspace(-8, 8, 321)
    variance = np.exp(u) + 0 * z
    mean = values.mean() + np.sqrt(variance) * z
    likelihood = stats.norm.pdf(values[:, None, None], mean, np.sqrt(variance)).prod(axis=0)
    prior = stats.norm.pdf(mean, location, np.sqrt(variance / strength)) * stats.invgamma.pdf(
        variance, shape, scale=scale
    )
    value = (likelihood * prior * variance**1.5).sum() * (u[1, 0] - u[0, 0]) * (z[1] - z[0])
    belief = tb.NormalInverseGamma(location, strength, shape, scale)
    assert tb.fit_distribution(values, tb.Gaussian()).log_evidence(belief) == pytest.approx(np.log(value), rel=1e-9)


def test_coin_exactly():
    """B(a + s, b + f) / B(a, b) of whole numbers is a fraction."""

    def beta(a, b):
        return Fraction(factorial(a - 1) * factorial(b - 1), factorial(a + b - 1))

    for a, b, heads, tails in ((2, 2, 55, 45), (1, 1, 300, 2), (30, 4, 0, 7)):
        exact = beta(a + heads, b + tails) / beta(a, b)
        data = tb.fit_distribution([1, 0], tb.Bernoulli(), weight=[heads, tails])
        logarithm = log(exact.numerator) - log(exact.denominator)  # math.log takes whole numbers of any length
        assert data.log_evidence(tb.Beta(a, b)) == pytest.approx(logarithm, rel=1e-12)
        n = heads + tails
        together = tb.fit_distribution([heads], tb.Binomial(n)).log_evidence(tb.Beta(a, b))
        assert together == pytest.approx(logarithm + log(comb(n, heads)), rel=1e-10)


@pytest.mark.parametrize("n", [1e3, 1e6, 1e9, 1e12])
def test_uniform_coin_of_huge_counts(n):
    """Under Beta(1, 1) every number of heads in n tosses has probability 1 / (n + 1)."""
    assert tb.fit_distribution([n], tb.Binomial(int(n))).log_evidence(tb.Beta(1, 1)) == pytest.approx(
        -np.log(n + 1), abs=1e-13 * n
    )
    # n heads in a row: ∫ θⁿ dθ = 1 / (n + 1)
    heads = tb.fit_distribution([1], tb.Bernoulli(), weight=[n])
    assert heads.log_evidence(tb.Beta(1, 1)) == pytest.approx(-np.log(n + 1), abs=1e-13 * n)
    letters = tb.fit_distribution(["a"], tb.Categorical(("a", "b")), weight=[n])
    assert letters.log_evidence(tb.Dirichlet(1)) == pytest.approx(-np.log(n + 1), abs=1e-13 * n)


@pytest.mark.parametrize("n", [1e6, 1e12])
def test_evidence_of_huge_counts_against_the_laplace_approximation(n):
    """−n H(p) + ½ log(2π p(1−p) / n), with an error of order 1/n, for a uniform prior."""
    p = 0.3
    data = tb.fit_distribution([1, 0], tb.Bernoulli(), weight=[p * n, (1 - p) * n])
    expected = n * (p * np.log(p) + (1 - p) * np.log(1 - p)) + 0.5 * np.log(2 * np.pi * p * (1 - p) / n)
    assert data.log_evidence(tb.Beta(1, 1)) == pytest.approx(expected, rel=1e-13, abs=1 / n)


def test_tiny_priors():
    """Beta(ε, ε) and Dirichlet(ε) put their mass on the corners: the first row chooses, the rest must follow."""
    tiny = 1e-8
    assert tb.fit_distribution([1], tb.Bernoulli()).log_evidence(tb.Beta(tiny, tiny)) == pytest.approx(
        np.log(0.5), rel=1e-12
    )
    assert tb.fit_distribution([1] * 9, tb.Bernoulli()).log_evidence(tb.Beta(tiny, tiny)) == pytest.approx(
        np.log(0.5), abs=1e-6
    )
    mixed = tb.fit_distribution([1, 0], tb.Bernoulli()).log_evidence(tb.Beta(tiny, tiny))
    assert mixed == pytest.approx(np.log(tiny * tiny / (2 * tiny * (2 * tiny + 1))), rel=1e-9)
    three = tb.fit_distribution(["a", "a"], tb.Categorical(("a", "b", "c"))).log_evidence(tb.Dirichlet(tiny))
    assert three == pytest.approx(np.log((1 + tiny) / (3 * (1 + 3 * tiny))), rel=1e-9)
    rate = tb.fit_distribution([2], tb.Poisson()).log_evidence(tb.Gamma(tiny, tiny))
    # by hand: Γ(a + 2)/Γ(a) · aᵃ / (a + 1)^(a + 2) / 2!
    by_hand = np.log(tiny * (tiny + 1)) + tiny * np.log(tiny) - (tiny + 2) * np.log1p(tiny) - np.log(2)
    assert rate == pytest.approx(by_hand, rel=1e-9)
    assert tb.fit_distribution([2], tb.Poisson()).posterior(tb.Gamma(tiny, tiny)).mean() == pytest.approx(2, rel=1e-7)


def test_huge_events():
    total = 1e12
    found = tb.fit_distribution([total], tb.Poisson()).log_evidence(tb.Gamma(3, 2))
    # one row under Gamma(3, 2) is negative binomial: (x + 1)(x + 2)/2 · (2/3)³ · 3^(−x)
    assert found == pytest.approx(2 * np.log(total) - np.log(2) + 3 * np.log(2 / 3) - total * np.log(3), rel=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "tied", "multivariate", "tied multivariate"])
def test_weight_of_a_million_million_rows(name):
    """Per row, the evidence of very many rows is the likelihood at the maximum."""
    case = CASES[name]
    many = tb.fit_distribution(case.rows, case.family, weight=np.full(16, 1e12))
    best = many.log_likelihood(many.estimate("mle"))
    np.testing.assert_allclose(many.log_evidence(case.prior), best, rtol=1e-9)
