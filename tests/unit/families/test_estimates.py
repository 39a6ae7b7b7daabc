"""The estimates and what they mean: smoothing is a prior, maximum likelihood minimizes a divergence."""

import numpy as np
import pytest
from scipy import optimize, stats

import tallybayes as tb
from tallybayes.errors import EstimateError
from tallybayes.families.estimates import ESTIMATES, read_estimate

COUNTS = {"a": 7, "b": 0, "c": 2}
LETTERS = tb.fit_distribution(list("aaaaaaacc"), tb.Categorical(tuple("abc")))


@pytest.mark.parametrize("alpha", [0.01, 0.5, 1, 2, 10])
def test_add_alpha_is_a_mean_and_a_mode(alpha):
    smoothed = {level: (n + alpha) / (9 + 3 * alpha) for level, n in COUNTS.items()}
    assert LETTERS.estimate("bayes", prior=tb.Dirichlet(alpha)) == pytest.approx(smoothed, rel=1e-14)
    assert LETTERS.estimate("map", prior=tb.Dirichlet(alpha + 1)) == pytest.approx(smoothed, rel=1e-13)
    coin = tb.fit_distribution([1, 1, 0], tb.Bernoulli())
    assert coin.estimate("bayes", prior=tb.Beta(alpha, alpha)) == pytest.approx((2 + alpha) / (3 + 2 * alpha))
    assert coin.estimate("map", prior=tb.Beta(alpha + 1, alpha + 1)) == pytest.approx((2 + alpha) / (3 + 2 * alpha))
    words = tb.fit_distribution([[7, 0, 2]], tb.Multinomial())
    np.testing.assert_allclose(words.estimate("bayes", prior=tb.Dirichlet(alpha)), list(smoothed.values()))
    np.testing.assert_allclose(words.estimate("map", prior=tb.Dirichlet(alpha + 1)), list(smoothed.values()))


def test_under_a_flat_prior_the_mode_is_maximum_likelihood():
    assert LETTERS.estimate("map", prior=tb.Dirichlet(1)) == pytest.approx(LETTERS.estimate("mle"))
    for tosses in ([1, 1], [0, 0, 0], [1, 0, 0]):
        coin = tb.fit_distribution(tosses, tb.Bernoulli())
        assert coin.estimate("map", prior=tb.Beta(1, 1)) == pytest.approx(coin.estimate("mle"))
    # a Gamma of shape 1 and a rate of nothing is as flat as a rate's prior gets
    assert tb.fit_distribution([3, 5], tb.Poisson()).estimate("map", prior=tb.Gamma(1, 1e-12)) == pytest.approx(4)


def test_every_name_in_the_table():
    assert set(ESTIMATES) == {"mle", "unbiased", "map", "bayes"}
    for estimate in ESTIMATES:
        assert read_estimate(estimate) is ESTIMATES[estimate]
    for wrong in ("MLE", "", None, 3):
        with pytest.raises(EstimateError, match="expected 'mle', 'unbiased', 'map' or 'bayes'"):
            LETTERS.estimate(wrong)


def test_unbiased_is_maximum_likelihood_where_that_is_unbiased():
    assert LETTERS.estimate("unbiased") == LETTERS.estimate("mle")
    assert tb.fit_distribution([3, 5], tb.Poisson()).estimate("unbiased") == 4
    assert tb.fit_distribution([1, 0], tb.Bernoulli()).estimate("unbiased") == 0.5


def test_point_estimates_approach_each_other_as_data_grow():
    for n in (10, 1000, 100_000):
        coin = tb.fit_distribution([1, 0], tb.Bernoulli(), weight=[0.3 * n, 0.7 * n])
        likely, probable, mean = (coin.estimate(e, prior=tb.Beta(10, 10)) for e in ("mle", "map", "bayes"))
        assert likely == pytest.approx(0.3)
        # 20 pseudo-counts pull towards ½ by 20 · 0.2 / (n + 20), the 18 of the mode by 18 · 0.2 / (n + 18)
        assert mean - likely == pytest.approx(4 / (n + 20))
        assert probable - likely == pytest.approx(3.6 / (n + 18))


def test_maximum_likelihood_minimizes_the_divergence():
    """{1, e, π, 42}: the divergence from the four equal shares to p is least where p has them."""
    names = ("1", "e", "π", "42")
    data = tb.fit_distribution(list(names), tb.Categorical())
    best = data.estimate("mle")
    assert best == dict.fromkeys(names, 0.25)

    def divergence(p):
        """Σ q log(q / p), by hand, with q = ¼."""
        return float(np.sum(0.25 * np.log(0.25 / np.asarray(p))))

    rng = np.random.default_rng(0)
    for p in rng.dirichlet(np.ones(4), 20):
        found = data.divergence(dict(zip(names, p, strict=True)))
        assert found == pytest.approx(divergence(p), rel=1e-10)
        assert found > 0
    assert data.divergence(best) == 0

    def softmax(free):
        weights = np.exp(np.append(free, 0.0))
        return weights / weights.sum()

    found = optimize.minimize(lambda free: divergence(softmax(free)), [1.0, -1.0, 0.5], tol=1e-12)
    np.testing.assert_allclose(softmax(found.x), list(best.values()), atol=1e-5)


def test_gaussian_of_one_e_pi_and_42():
    """As numbers: the Gaussian nearest to {1, e, π, 42} has their mean and their 1/m variance."""
    values = np.array([1, np.e, np.pi, 42])
    data = tb.fit_distribution(values, tb.Gaussian())
    best = data.estimate("mle")
    assert best.mean == pytest.approx(values.mean(), rel=1e-14)
    assert best.variance == pytest.approx(values.var(), rel=1e-14)

    def cross_entropy(free):
        return -stats.norm.logpdf(values, free[0], np.exp(free[1] / 2)).mean()

    found = optimize.minimize(cross_entropy, [0.0, 1.0], tol=1e-10)
    np.testing.assert_allclose([best.mean, np.log(best.variance)], found.x, rtol=1e-4)
    assert data.cross_entropy(best) == pytest.approx(found.fun, rel=1e-9)
    for free in ([10, 3.0], [12, 6.0], [12.2, 5.6]):
        parameters = (free[0], np.exp(free[1]))
        assert data.cross_entropy(parameters) == pytest.approx(cross_entropy(free), rel=1e-12)
        assert data.divergence(parameters) == pytest.approx(cross_entropy(free) - found.fun, abs=1e-8)
        assert data.divergence(parameters) > 0


@pytest.mark.parametrize(
    ("rows", "family", "other"),
    [
        ([1, 0, 0], tb.Bernoulli(), 0.4),
        ([3, 0, 2], tb.Binomial(3), 0.5),
        ([3, 0, 2], tb.Poisson(), 1.5),
        ([[3, 1], [0, 2]], tb.Multinomial(), [0.4, 0.6]),
        ([[3.0, 1], [0, 2], [1, 1]], tb.MultivariateGaussian(), ([1, 1], np.eye(2))),
        ([[3.0, 1], [0, 2], [1, 1]], tb.SphericalGaussian(), ([1, 1], [2, 2])),
    ],
)
def test_maximum_likelihood_has_no_divergence_in_any_family(rows, family, other):
    data = tb.fit_distribution(rows, family)
    assert data.divergence(data.estimate("mle")) == pytest.approx(0, abs=1e-12)
    assert data.divergence(other) > 0
    assert data.cross_entropy(other) == pytest.approx(-data.log_likelihood(other) / len(rows))


def test_divergence_of_a_coin_by_hand():
    coin = tb.fit_distribution([1, 0, 0], tb.Bernoulli())
    by_hand = np.log((1 / 3) / 0.4) / 3 + 2 * np.log((2 / 3) / 0.6) / 3
    assert coin.divergence(0.4) == pytest.approx(by_hand, rel=1e-12)
    assert coin.cross_entropy(0.4) == pytest.approx(-(np.log(0.4) + 2 * np.log(0.6)) / 3)
    assert coin.divergence(0.0) == np.inf


def test_zero_variance_and_singular_covariance_are_named():
    flat = tb.fit_distribution([[1.0, 2.0], [3.0, 2.0]], tb.Gaussian())
    assert flat.estimate("mle").variance[1] == 0
    with pytest.raises(EstimateError, match="variance of column 1 is 0"):
        flat.log_likelihood(flat.estimate("mle"))
    with pytest.raises(EstimateError, match="variance of column 1 is 0"):
        flat.family.log_prob(flat.estimate("mle"), np.array([[1.0, 2.0]]))
    for rows in ([[1.0, 2.0], [2.0, 4.0], [5.0, 10.0]], [[1.0, 7.0], [2.0, 7.0], [5.0, 7.0]], [[1.0, 2.0]]):
        line = tb.fit_distribution(rows, tb.MultivariateGaussian())
        with pytest.raises(EstimateError, match=rf"singular \({len(rows)} rows, 2 columns\)"):
            line.log_likelihood(line.estimate("mle"))
    groups = tb.fit_distribution(
        [[1.0, 2], [2, 1], [4, 4], [1, 1], [2, 2], [3, 3]], tb.MultivariateGaussian(), group=list("aaabbb")
    )
    with pytest.raises(EstimateError, match=r"covariance of group 1 is singular \(3 rows"):
        groups.log_likelihood(groups.estimate("mle"))


def test_singular_data_are_no_trouble_for_a_prior_or_a_tie():
    rows = np.array([[1.0, 2], [2, 1], [4, 4], [1, 1], [2, 2], [3, 3]])
    for family in (tb.MultivariateGaussian(), tb.TiedMultivariateGaussian()):
        learned = tb.fit_distribution(rows, family, group=list("aaabbb"))
        for estimate in ("bayes", "map"):
            assert np.isfinite(family.log_prob(learned.estimate(estimate), rows)).all()
        assert np.isfinite(learned.predictive().log_prob(rows)).all()
    tied = tb.fit_distribution(rows, tb.TiedMultivariateGaussian(), group=list("aaabbb"))
    assert np.isfinite(tied.log_likelihood(tied.estimate("mle")))
