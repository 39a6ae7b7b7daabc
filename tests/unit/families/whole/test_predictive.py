"""Posterior predictives against scipy.stats, and against the evidence of one more row."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tests.unit.families.family_cases import CASES, TIED, WHOLE_ROWS

NEW_ROWS = {
    "bernoulli": np.array([[0, 1, 1], [1, 0, 0]]),
    "binomial": np.array([[0, 6, 2], [5, 1, 3]]),
    "poisson": np.array([[0, 9, 1], [3, 2, 0]]),
    "multinomial": np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]]),
    "dirichlet multinomial": np.array([[3, 0, 2], [0, 1, 0], [0, 0, 0]]),
}
NUMBERS = np.array([[0.3, 5.0, -3.0], [4.0, -2.0, 1.0], [0.0, 50.0, -2.0]])


@pytest.fixture(params=CASES)
def name(request):
    return request.param


def posterior_of(name):
    case = CASES[name]
    learned = tb.fit_distribution(case.rows, case.family, group=case.groups)
    return case.family.resolve_prior(case.prior, learned.statistics, "bayes").update(learned.statistics)


def scipy_predictive(name, posterior, group, row):
    """The log predictive of a row per column, or of the whole row."""
    if "multi" in name and "variate" not in name:
        alpha = posterior.concentration[group]
        if name == "multinomial":
            return stats.multinomial.logpmf(row, row.sum(), alpha / alpha.sum())
        if not row.any():
            return 0.0  # SciPy before 1.15 refuses rows without tokens
        return stats.dirichlet_multinomial.logpmf(row.astype(int), alpha, int(row.sum()))
    if name in ("bernoulli", "binomial"):
        trials = 6 if name == "binomial" else 1
        return stats.betabinom.logpmf(row, trials, posterior.alpha[group], posterior.beta[group])
    if name == "poisson":
        rate = posterior.rate[group]
        return stats.nbinom.logpmf(row, posterior.shape[group], rate / (1 + rate))
    if "multivariate" in name:
        freedom = np.broadcast_to(posterior.degrees_of_freedom, 3)[group] - 2
        scale = np.broadcast_to(posterior.scale, (3, 3, 3))[group] * (1 + 1 / posterior.strength[group]) / freedom
        return stats.multivariate_t.logpdf(row, posterior.location[group], scale, df=freedom)
    parts = (posterior.location, posterior.strength, posterior.shape, posterior.scale)
    location, strength, shape, scale = (np.broadcast_to(part, (3, 3))[group] for part in parts)
    spread = scale / shape * (1 + 1 / strength)
    if "spherical" in name:
        return stats.multivariate_t.logpdf(row, location, np.diag(spread), df=2 * shape[0])
    return stats.t.logpdf(row, 2 * shape, location, np.sqrt(spread))


def test_predictive_is_scipys(name):
    rows, posterior = NEW_ROWS.get(name, NUMBERS), posterior_of(name)
    found = CASES[name].family.log_predictive(posterior, rows.astype(float))
    assert found.shape == ((len(rows), 3) if name in WHOLE_ROWS else (len(rows), 3, 3))
    for i, g in np.ndindex(len(rows), 3):
        np.testing.assert_allclose(found[i, g], scipy_predictive(name, posterior, g, rows[i]), rtol=1e-10, atol=1e-12)


@pytest.mark.slow_after(2)
def test_predictive_is_the_evidence_of_one_more_row(name):
    """Exact for every family; the plug-in `Multinomial` agrees for rows of one token."""
    case = CASES[name]
    before = tb.fit_distribution(case.rows, case.family, group=case.groups)
    prior = case.family.resolve_prior(case.prior, before.statistics, "bayes")
    rows = NEW_ROWS.get(name, NUMBERS)
    predicted = before.predictive(prior).log_prob(rows)
    for i, g in np.ndindex(len(rows), 3):
        after = before + tb.fit_distribution(rows[i : i + 1], case.family, group=[g])
        gain = np.asarray(after.log_evidence(prior)) - np.asarray(before.log_evidence(prior))
        found = gain if name in TIED else gain[g]
        expected = predicted[i, g]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_multinomial_predictive_is_plug_in_for_longer_rows():
    urn = tb.fit_distribution([[2, 1], [1, 0]], tb.Multinomial())
    exact = tb.fit_distribution([[2, 1], [1, 0]], tb.DirichletMultinomial())
    assert urn.predictive(tb.Dirichlet(1)).log_prob([[2, 0]]) == pytest.approx(2 * np.log(4 / 6))
    assert exact.predictive(tb.Dirichlet(1)).log_prob([[2, 0]]) == pytest.approx(np.log(4 / 6 * 5 / 7))
    assert urn.log_evidence(tb.Dirichlet(1)) == exact.log_evidence(tb.Dirichlet(1))


def test_categorical_predictive_is_the_posterior_mean():
    letters = tb.fit_distribution(["a", "b", "a", "c"], tb.Categorical())
    alpha = np.array([0.5, 2.0, 1.0])
    predicted = letters.predictive(tb.Dirichlet(alpha)).log_prob(["a", "b", "c"])
    np.testing.assert_allclose(np.exp(predicted), np.array([2.5, 3.0, 2.0]) / 7.5)
    for level, log_prob in zip("abc", predicted, strict=True):
        after = letters + tb.fit_distribution([level], tb.Categorical())
        gain = after.log_evidence(tb.Dirichlet(alpha)) - letters.log_evidence(tb.Dirichlet(alpha))
        assert log_prob == pytest.approx(gain, rel=1e-12)


@pytest.mark.parametrize("name", ["bernoulli", "binomial", "poisson", "dirichlet multinomial", "multinomial"])
def test_discrete_predictives_sum_to_one(name):
    case = CASES[name]
    predictive = tb.fit_distribution(case.rows, case.family).predictive(case.prior)
    if "multinomial" in name:
        rows = np.array([[a, b, 4 - a - b] for a in range(5) for b in range(5 - a)])
        assert np.exp(predictive.log_prob(rows)).sum() == pytest.approx(1)
    else:
        top = {"bernoulli": 2, "binomial": 7, "poisson": 80}[name]
        rows = np.repeat(np.arange(top)[:, None], 3, axis=1)
        np.testing.assert_allclose(np.exp(predictive.log_prob(rows)).sum(axis=0), 1, rtol=1e-9)


@pytest.mark.parametrize("rows", [1e4, 1e8, 1e12, 1e15])
def test_student_t_of_great_freedom_is_normal(rows):
    """With n rows the t differs from the normal by about (1 + z⁴) / n in the log."""
    posterior = tb.NormalInverseGamma(np.array([2.0]), rows, rows / 2, rows / 2 * 9.0)
    x = 2 + 3 * np.array([[-3.0], [0.0], [0.5], [2.0]])
    found = tb.Gaussian().log_predictive(posterior, x)
    np.testing.assert_allclose(found, stats.norm.logpdf(x, 2, 3), rtol=0, atol=25 / rows + 3e-15)
    for family in (tb.SphericalGaussian(), tb.MultivariateGaussian()):
        if isinstance(family, tb.SphericalGaussian):
            both = tb.NormalInverseGamma([2.0, 2.0], rows, [rows / 2], [rows / 2 * 9.0], tied_over=("columns",))
        else:
            both = tb.NormalInverseWishart([2.0, 2.0], rows, rows + 1, rows * 9.0 * np.eye(2))
        pairs = np.repeat(x, 2, axis=1)
        expected = stats.norm.logpdf(pairs, 2, 3).sum(axis=1)
        np.testing.assert_allclose(family.log_predictive(both, pairs), expected, rtol=0, atol=400 / rows + 3e-15)


def test_predictive_of_huge_counts_and_tiny_priors():
    heads = tb.fit_distribution([1, 0], tb.Bernoulli(), weight=[1e12, 1])
    log_prob = heads.predictive(tb.Beta(1e-8, 1e-8)).log_prob([1, 0])
    assert log_prob[1] == pytest.approx(np.log((1 + 1e-8) / (1e12 + 1 + 2e-8)), rel=1e-12)
    assert log_prob[0] == pytest.approx(-1e-12, rel=1e-3)
    events = tb.fit_distribution([3], tb.Poisson(), weight=[1e12])
    expected = stats.poisson.logpmf([0, 3, 10], 3.0)  # the rate is known to 2e-6 of itself
    np.testing.assert_allclose(events.predictive().log_prob([0, 3, 10]), expected, atol=1e-10)
    nothing = tb.fit_distribution([], tb.Bernoulli()).predictive(tb.Beta(1e-8, 3e-8)).log_prob([1, 0])
    np.testing.assert_allclose(np.exp(nothing), [0.25, 0.75])


def test_one_level_and_one_row():
    only = tb.fit_distribution(["a"], tb.Categorical())
    assert only.predictive().log_prob("a") == 0
    assert only.log_evidence() == 0
    assert tb.fit_distribution([[5]], tb.DirichletMultinomial()).predictive().log_prob([[3]])[0] == pytest.approx(
        0, abs=1e-14
    )
    one = tb.fit_distribution([4.0], tb.Gaussian()).predictive(tb.NormalInverseGamma(0, 1, 2, 3))
    # by hand: κ = 2, m = 2, a = 2.5, b = 3 + ½ · ½ · 16 = 7
    assert one.log_prob(1.0) == pytest.approx(stats.t.logpdf(1.0, 5, 2, np.sqrt(7 / 2.5 * 1.5)), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3])
def test_predictive_samples_have_the_predictives_distribution(size):
    measured = tb.fit_distribution([1.0, 2.0, 2.5, 4.0], tb.Gaussian())
    prior = tb.NormalInverseGamma(1, 1, 4, 3)
    draws = measured.predictive(prior).sample(1500, random_state=3)
    posterior = measured.posterior(prior)
    spread = np.sqrt(posterior.scale / posterior.shape * (1 + 1 / posterior.strength))
    assert stats.kstest(draws, stats.t(2 * posterior.shape, posterior.location, spread).cdf).pvalue > 1e-3

    counts = tb.fit_distribution([size, 0, 2], tb.Poisson()).predictive(tb.Gamma(2, 1)).sample(1500, random_state=4)
    reference = stats.nbinom(4 + size, 4 / 5)
    assert abs(counts.mean() - reference.mean()) < 4 * reference.std() / np.sqrt(1500)
    excess = (counts - counts.mean()) ** 2
    assert abs(excess.mean() - reference.var()) < 4 * excess.std() / np.sqrt(1500)

    hits = tb.fit_distribution([size, 2], tb.Binomial(5)).predictive(tb.Beta(2, 2)).sample(1500, random_state=5)
    reference = stats.betabinom(5, 4 + size, 2 + 10 - 2 - size)
    observed = np.bincount(hits, minlength=6)
    assert stats.chisquare(observed, 1500 * reference.pmf(np.arange(6))).pvalue > 1e-3

    labels = (
        tb.fit_distribution(["a", "b", "a"], tb.Categorical()).predictive(tb.Dirichlet(1)).sample(1500, random_state=6)
    )
    assert set(labels) == {"a", "b"}
    assert abs((labels == "a").mean() - 0.6) < 4 * np.sqrt(0.24 / 1500)
