"""Every family with data, scipy's log probability of a row, and a prior: what the tests of families run over."""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import tallybayes as tb


class Case(NamedTuple):
    """A family, its rows in three groups, scipy's log probability of a row, and a prior of its class."""

    family: Any
    rows: np.ndarray
    log_prob: Any  # (parameters of one group, row) -> log probability per column, or of the row
    prior: Any

    @property
    def groups(self):
        return np.array([0, 1, 2, 1] * (len(self.rows) // 4 + 1))[: len(self.rows)]


rng = np.random.default_rng(20)
SPREAD = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]])
NUMBERS = rng.normal([0, 5, -3], [1, 2, 0.5], size=(16, 3)) + rng.normal(size=(16, 1))


def normal_cells(parameters, row):
    return stats.norm.logpdf(row, parameters.mean, np.sqrt(parameters.variance))


def normal_row(parameters, row):
    return normal_cells(parameters, row).sum()


def multivariate_row(parameters, row):
    return stats.multivariate_normal.logpdf(row, parameters.mean, parameters.covariance)


GAMMA_PRIOR = tb.NormalInverseGamma([0.5, 4.0, -2.0], 0.7, 2.5, 3.0)
ONE_VARIANCE = tb.NormalInverseGamma([0.5, 4.0, -2.0], 0.7, [2.5], [3.0])
WISHART_PRIOR = tb.NormalInverseWishart([0.5, 4.0, -2.0], 0.7, 4.5, SPREAD)

CASES = {
    "bernoulli": Case(
        tb.Bernoulli(),
        rng.integers(0, 2, (16, 3)),
        lambda p, row: stats.bernoulli.logpmf(row, p),
        tb.Beta([2, 0.5, 1], [3, 0.5, 7]),
    ),
    "binomial": Case(
        tb.Binomial(6),
        rng.integers(0, 7, (16, 3)),
        lambda p, row: stats.binom.logpmf(row, 6, p),
        tb.Beta([2, 0.5, 1], [3, 0.5, 7]),
    ),
    "poisson": Case(
        tb.Poisson(),
        rng.poisson([1, 4, 0.3], (16, 3)),
        lambda p, row: stats.poisson.logpmf(row, p),
        tb.Gamma([2, 0.5, 1], [3, 0.5, 2]),
    ),
    "multinomial": Case(
        tb.Multinomial(),
        rng.integers(0, 4, (16, 3)),
        lambda p, row: stats.multinomial.logpmf(row, row.sum(), p),
        tb.Dirichlet([2, 0.5, 1]),
    ),
    "dirichlet multinomial": Case(
        tb.DirichletMultinomial(),
        rng.integers(0, 4, (16, 3)),
        lambda p, row: stats.multinomial.logpmf(row, row.sum(), p),
        tb.Dirichlet([2, 0.5, 1]),
    ),
    "gaussian": Case(tb.Gaussian(), NUMBERS, normal_cells, GAMMA_PRIOR),
    "tied": Case(tb.TiedGaussian(), NUMBERS, normal_cells, GAMMA_PRIOR),
    "spherical": Case(tb.SphericalGaussian(), NUMBERS, normal_row, ONE_VARIANCE),
    "tied spherical": Case(tb.TiedSphericalGaussian(), NUMBERS, normal_row, ONE_VARIANCE),
    "multivariate": Case(tb.MultivariateGaussian(), NUMBERS, multivariate_row, WISHART_PRIOR),
    "tied multivariate": Case(tb.TiedMultivariateGaussian(), NUMBERS, multivariate_row, WISHART_PRIOR),
}
TIED = ("tied", "tied spherical", "tied multivariate")
WHOLE_ROWS = (
    "multinomial",
    "dirichlet multinomial",
    "spherical",
    "tied spherical",
    "multivariate",
    "tied multivariate",
)


def of_group(parameters, group):
    """The parameters of one group."""
    if isinstance(parameters, tuple):
        return type(parameters)(*(part[group] for part in parameters))
    return parameters[group]
