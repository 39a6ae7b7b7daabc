"""The laws of beliefs and of samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes import testing
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.statistics.counts import Segments
from tallybayes.testing import strategies
from tests.laws.catalog import BELIEFS, BOUNDARIES

JOINTLY = ("NormalInverseWishart", "LinearNormalInverseGamma")  # beliefs about whole rows


@pytest.mark.slow
@pytest.mark.parametrize("name", BELIEFS)
@given(data=st.data())
def test_learning_in_steps_is_learning_at_once(name, data):
    belief, family = BELIEFS[name]
    rows = data.draw(strategies.rows(family, moderate=True, missing=not name.startswith(JOINTLY)))
    if name.startswith(JOINTLY):  # their matrices say how many columns there are
        n = len(rows)
        pair = {key: data.draw(strategies.columns(strategies.numbers(moderate=True), n, missing=False)) for key in "uv"}
        factor = rows.factors[0].replace(columns=("u", "v"))
        given = {key: rows.columns[key] for key in factor.given}
        rows = testing.WeightedRows({**pair, **given}, (factor,), rows.weight, rows.schema)
    parts = data.draw(strategies.splits(len(rows), 2))
    domains = rows.count().domains
    first, second = (rows.take(part).count().align(domains).statistics[0] for part in parts)
    prior = family.resolve_prior(belief, rows.count().statistics[0], "bayes")
    testing.check_posterior(prior, first, second)


SAMPLED = {
    "Beta": tb.Beta([0.7, 3.0], [2.0, 9.0]),
    "Dirichlet": tb.Dirichlet([[0.6, 2.0, 0.3], [5.0, 1.0, 1.0]]),
    "Dirichlet of two columns": tb.Dirichlet([0.6, 2.0, 0.3, 4.0, 1.0], sizes=(3, 2)),
    "Gamma": tb.Gamma([0.4, 20.0], [2.0, 0.1]),
    "NormalInverseGamma": tb.NormalInverseGamma([0.0, -3.0], 2.0, 4.0, [1.0, 9.0]),
    "NormalInverseGamma, shared": tb.NormalInverseGamma(
        [[0.0, 4.0], [1.0, 1.0]], 2.0, 4.0, 1.0, tied_over=("groups", "columns")
    ),
    "NormalInverseWishart": tb.NormalInverseWishart([0.0, 5.0], 2.0, 9.0, [[2.0, 0.6], [0.6, 1.0]]),
    "NormalInverseWishart, shared": tb.NormalInverseWishart(
        [[0.0, 5.0], [1.0, 1.0], [2.0, 0.0]], 2.0, 9.0, [[2.0, 0.6], [0.6, 1.0]], tied_over=("groups",)
    ),
    "LinearNormalInverseGamma": tb.LinearNormalInverseGamma(
        [[0.0, 5.0], [1.0, 1.0]],
        [[2.0, 0.6], [0.6, 1.0]],
        4.0,
        3.0,
        intercept_location=[1.0, -2.0],
        strength=2.0,
        input_center=[0.5, 3.0],
    ),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_belief_samples(name):
    testing.check_posterior_samples(SAMPLED[name])


@pytest.mark.parametrize("name", ["Beta", "Dirichlet", "Dirichlet of two columns", "Gamma"])
def test_the_variance_is_that_of_samples(name):
    belief = SAMPLED[name]
    squares = (belief.sample(40_000, random_state=0) - belief.mean()) ** 2
    error = squares.std(axis=0) / np.sqrt(len(squares))
    assert (np.abs(squares.mean(axis=0) - belief.variance()) < 6.5 * error).all()
    with pytest.raises(tb.PriorError, match="has no variance"):
        {"Beta": tb.Beta(0, 0), "Gamma": tb.Gamma(0, 0)}.get(name, tb.Dirichlet([0, 0])).variance()


def test_hypotheses_are_drawn_by_their_probability():
    n = 20_000
    drawn = BOUNDARIES.sample(n, random_state=0)
    for name, probability in BOUNDARIES.probabilities.items():
        share = np.mean([value == BOUNDARIES.hypotheses[name] for value in drawn])
        assert abs(share - probability) < 6.5 * np.sqrt(probability * (1 - probability) / n)
    assert BOUNDARIES.mean() == pytest.approx((3 * 0.5 + 0.9 + 2 * 1e-3) / 6, rel=1e-12)


COVARIANCE = np.array([[2.0, -0.7], [-0.7, 0.5]])
NORMAL = tb.NormalInverseGamma(0, 1, 2, 1).mean()._replace(mean=np.array([-1.0, 30.0]), variance=np.array([0.25, 9.0]))
SAME = NORMAL._replace(variance=np.array([4.0, 4.0]))
LINE = LinearParameters(np.array([2.0]), -1.0, 0.25)  # of an input that is standard normal
JOINT = (
    tb.NormalInverseWishart([0, 0], 1, 4, np.eye(2)).mean()._replace(mean=np.array([1.0, -2.0]), covariance=COVARIANCE)
)
THETA = np.array([0.1, 0.6])
SHARES = np.array([0.2, 0.45, 0.35])
LOGS = NORMAL._replace(mean=np.array([0.2, -1.0]), variance=np.array([0.1, 0.25]))
BINS = LevelProbabilities(np.array([0.2, 0.5, 0.3, 0.6, 0.2, 0.2]), Segments([3, 3]))
TABLE = LevelProbabilities(np.array([0.2, 0.5, 0.3, 0.9, 0.1]), Segments([3, 2]))

# Family, parameters, and the mean and (co)variance of a row that textbooks give; of codes for labels.
CLAIMS = {
    "Bernoulli": (tb.Bernoulli(), THETA, THETA, THETA * (1 - THETA)),
    "Binomial": (tb.Binomial(7), THETA, 7 * THETA, 7 * THETA * (1 - THETA)),
    "Poisson": (tb.Poisson(), np.array([0.3, 12.0]), np.array([0.3, 12.0]), np.array([0.3, 12.0])),
    "Categorical": (tb.Categorical(), TABLE, np.array([1.1, 0.1]), np.array([0.5 + 4 * 0.3 - 1.1**2, 0.09])),
    "Multinomial": (tb.Multinomial(), SHARES, SHARES, np.diag(SHARES) - np.outer(SHARES, SHARES)),
    "DirichletMultinomial": (tb.DirichletMultinomial(), SHARES, SHARES, np.diag(SHARES) - np.outer(SHARES, SHARES)),
    "Gaussian": (tb.Gaussian(), NORMAL, NORMAL.mean, NORMAL.variance),
    "LogNormal": (
        tb.LogNormal(),
        LOGS,
        np.exp(LOGS.mean + LOGS.variance / 2),
        np.expm1(LOGS.variance) * np.exp(2 * LOGS.mean + LOGS.variance),
    ),
    # bins around ½, 2 and 5, of widths 1, 2 and 4: E[x²] = middle² + width²/12 is 1/3, 13/3 and 79/3
    "Binned": (
        tb.Binned((0, 1, 3, 7)),
        BINS,
        np.array([0.1 + 1.0 + 1.5, 0.3 + 0.4 + 1.0]),
        np.array(
            [0.2 * 1 / 3 + 0.5 * 13 / 3 + 0.3 * 79 / 3 - 2.6**2, 0.6 * 1 / 3 + 0.2 * 13 / 3 + 0.2 * 79 / 3 - 1.7**2]
        ),
    ),
    "TiedGaussian": (tb.TiedGaussian(), NORMAL, NORMAL.mean, NORMAL.variance),
    "SphericalGaussian": (tb.SphericalGaussian(), SAME, SAME.mean, SAME.variance),
    "TiedSphericalGaussian": (tb.TiedSphericalGaussian(), SAME, SAME.mean, SAME.variance),
    "MultivariateGaussian": (tb.MultivariateGaussian(), JOINT, JOINT.mean, COVARIANCE),
    "TiedMultivariateGaussian": (tb.TiedMultivariateGaussian(), JOINT, JOINT.mean, COVARIANCE),
    "LinearGaussian": (tb.LinearGaussian(), LINE, np.array([0.0, -1.0]), np.array([[1.0, 2.0], [2.0, 4.25]])),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_samples_have_the_moments_they_claim(name):
    family, parameters, mean, variance = CLAIMS[name]
    testing.check_samples(family, parameters)
    n = 40_000
    rows = np.asarray(family.sample(parameters, n, np.random.default_rng(1)), dtype=float)
    claimed = np.diag(variance) if np.ndim(variance) == 1 else variance
    deviation = np.sqrt(np.diag(claimed))
    assert np.all(np.abs(rows.mean(axis=0) - mean) < 6.5 * deviation / np.sqrt(n))
    centered = rows - mean
    products = centered[:, :, None] * centered[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(axis=0) - claimed) < 6.5 * error)


@pytest.mark.parametrize("name", CLAIMS)
def test_samples_of_other_parameters_are_told_apart(name):
    family, parameters, _, _ = CLAIMS[name]
    if isinstance(parameters, LevelProbabilities):
        wrong = parameters._replace(table=np.append([0.3, 0.4, 0.3], parameters.table[3:]))
    elif isinstance(parameters, LinearParameters):
        wrong = parameters._replace(slope=parameters.slope + 0.1)
    elif isinstance(parameters, tuple):
        wrong = parameters._replace(mean=parameters.mean + np.sqrt(np.array([0.02, 0.0])))
    elif family.conjugate_prior is tb.Dirichlet:
        wrong = np.array([0.3, 0.4, 0.3])
    else:
        wrong = parameters * 1.2

    class Liar(type(family)):
        def sample(self, _, n, rng):
            return super().sample(wrong, n, rng)

    with pytest.raises(AssertionError, match="do not look like"):
        testing.check_samples(Liar(**family._fields()), parameters)
