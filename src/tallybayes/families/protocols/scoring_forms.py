"""Protocol of scoring forms: log probabilities as functional forms that kernels evaluate."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.log_gamma import (
    log_rising,
)
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal, NormalInverseWishart
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.blocks import (
    Dense,
    per_column,
)
from tallybayes.families._shared.log_prob_forms import (
    Form,
    LinearLogForm,
    LogTableForm,
    MultivariateNormalForm,
    MultivariateTForm,
    NormalForm,
    PolyaUrnForm,
    StudentTForm,
)
from tallybayes.families._shared.mahalanobis import (
    whiten,
)
from tallybayes.families.bernoulli import Bernoulli, codes_of
from tallybayes.families.binned import Binned
from tallybayes.families.binomial import Binomial
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.families.family import Family, Parameters
from tallybayes.families.gaussian import Gaussian, SphericalGaussian, TiedGaussian, TiedSphericalGaussian
from tallybayes.families.log_normal import LogNormal, log_cells
from tallybayes.families.multinomial import DirichletMultinomial, Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian, TiedMultivariateGaussian
from tallybayes.families.poisson import Poisson
from tallybayes.families.protocols.closed_form import ClosedForm
from tallybayes.statistics.counts import Segments

_MAX_TABLE_SUCCESSES = 256  # number of trials up to which log probabilities are tabulated


@singledispatch
def transform(family: Family, columns: Dense) -> Dense:
    """Return the input of the form: the cells or, if `transforms` is set, transformed cells or codes."""
    return columns


@transform.register(Binned)
def _(family: Binned, columns: Dense) -> Dense:
    """Return the bin indices."""
    return per_column(family.codes, columns)


@transform.register(Binomial)
def _(family: Binomial, columns: Dense) -> Dense:
    """Return numbers of successes as codes, −1 where missing."""
    return per_column(codes_of, columns)


@transform.register(LogNormal)
def _(family: LogNormal, columns: Dense) -> Dense:
    """Return logarithms; −inf, which kernels reject, for nonpositive cells."""
    return per_column(log_cells, columns)


@singledispatch
def log_jacobian(family: Family, transformed: np.ndarray) -> np.ndarray | None:
    """Return the log Jacobian of `transform` for every row, shape (n,), or None if it is 0."""
    return None


@log_jacobian.register(LogNormal)
def _(family: LogNormal, transformed: np.ndarray) -> np.ndarray:
    """Return −Σ log x."""
    return -np.nansum(transformed, axis=1)


@ClosedForm
def log_prob_form(family: Family, parameters: Parameters) -> Form | None:
    """Return the functional form of `log_prob`, or None."""
    return None


@log_prob_form.register(Bernoulli)
def _(family: Bernoulli, parameters: np.ndarray) -> LinearLogForm | None:
    """Return the form x · log(θ / (1 − θ)) + log(1 − θ)."""
    p = np.asarray(parameters, dtype=float)
    with np.errstate(divide="ignore"):
        return _log_odds_form(np.log(p), np.log1p(-p))


@log_prob_form.register(Binned, Categorical)
def _(family: Binned | Categorical, parameters: LevelProbabilities) -> LogTableForm:
    """Return the table of log probabilities, or of log densities of bins."""
    return family.table(parameters)


@log_prob_form.register(Binomial)
def _(family: Binomial, parameters: np.ndarray) -> LogTableForm | None:
    """Return the table of log p over all numbers of successes, or None for large n."""
    return _tabulate(family.n, family.log_prob, parameters, np.shape(parameters))


@log_prob_form.register(Gaussian, TiedGaussian, SphericalGaussian, TiedSphericalGaussian, LogNormal)
def _(family: Gaussian, parameters: Normal) -> NormalForm:
    """Return a normal density per column."""
    mean, variance = parameters
    with np.errstate(divide="ignore"):
        log_norm = -0.5 * np.log(2 * np.pi * variance)
        return NormalForm(mean, 1 / variance, log_norm, "groups" in family.tied_over)


@log_prob_form.register(Multinomial, DirichletMultinomial)
def _(family: Multinomial, parameters: np.ndarray) -> LinearLogForm:
    """Return the form Σ x_j log θ_j, in which zero counts contribute 0."""
    with np.errstate(divide="ignore"):
        log_p = np.log(np.asarray(parameters, dtype=float))
    zero = np.where(np.isnan(log_p[..., :1]), np.nan, 0.0)  # undefined for a group without tokens
    return LinearLogForm(log_p, zero, "nonnegative", "multinomial")


@log_prob_form.register(MultivariateGaussian, TiedMultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal) -> MultivariateNormalForm:
    """Return a multivariate normal density."""
    mean, covariance = parameters
    return MultivariateNormalForm(
        mean, covariance, "groups" in family.tied_over, lambda x: family.log_prob(parameters, x)
    )


@log_prob_form.register(Poisson)
def _(family: Poisson, parameters: np.ndarray) -> LinearLogForm:
    """Return the form x log λ − log x! − λ."""
    rate = np.asarray(parameters, dtype=float)
    with np.errstate(divide="ignore"):
        return LinearLogForm(np.log(rate), -rate, "count", "poisson")


@ClosedForm
def log_predictive_form(family: Family, posterior: ParameterDistribution) -> Form | None:
    """Return the functional form of `log_predictive`, or None."""
    return None


@log_predictive_form.register(Bernoulli)
def _(family: Bernoulli, posterior: Beta) -> LinearLogForm | None:
    """Return `log_prob_form` with θ at its posterior mean."""
    a, b = np.broadcast_arrays(posterior.alpha, posterior.beta)
    with np.errstate(divide="ignore"):
        return _log_odds_form(np.log(a / (a + b)), np.log(b / (a + b)))


@log_predictive_form.register(Binned, Categorical, Multinomial)
def _(family: Binned | Categorical | Multinomial, posterior: Dirichlet) -> Form | None:
    """Return `log_prob_form` with θ at its posterior mean."""
    return log_prob_form(family, family.point(posterior))


@log_predictive_form.register(Binomial)
def _(family: Binomial, posterior: Beta) -> LogTableForm | None:
    """Return the table of the beta-binomial log probabilities, or None for large n."""
    shape = np.broadcast_shapes(np.shape(posterior.alpha), np.shape(posterior.beta))
    return _tabulate(family.n, family.log_predictive, posterior, shape)


@log_predictive_form.register(Gaussian, TiedGaussian, LogNormal)
def _(family: Gaussian, posterior: NormalInverseGamma) -> StudentTForm | MultivariateTForm:
    """Return a Student's t density per column."""
    size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
    spread = np.broadcast_to(2 * posterior.scale * (1 + 1 / posterior.strength), size)
    location, shape = (np.broadcast_to(part, size) for part in (posterior.location, posterior.shape))
    log_norm = log_rising(shape, 0.5) - 0.5 * np.log(np.pi * spread)
    return StudentTForm(location, 1 / spread, shape + 0.5, log_norm)


@log_predictive_form.register(SphericalGaussian, TiedSphericalGaussian)
def _(family: SphericalGaussian, posterior: NormalInverseGamma) -> MultivariateTForm:
    """Return a multivariate t density of rows: the columns share the uncertainty of the variance."""
    size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
    root = np.sqrt(np.broadcast_to(2 * posterior.scale * (1 + 1 / posterior.strength), size))

    def whiten_rows(rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows[:, None, :] / root[:, known], 2 * np.log(root[:, known]).sum(axis=-1)

    location, shape = (np.broadcast_to(part, size) for part in (posterior.location, posterior.shape))
    return MultivariateTForm(location, shape[..., 0], whiten_rows, lambda x: family.log_predictive(posterior, x))


@log_predictive_form.register(DirichletMultinomial)
def _(family: DirichletMultinomial, posterior: Dirichlet) -> PolyaUrnForm:
    """Return the Pólya urn form; zero counts contribute 0, the normalizer depends on the row sum."""
    alpha = posterior.concentration
    zero = np.broadcast_to(0.0, alpha.shape)
    return PolyaUrnForm(zero, alpha, zero, alpha.sum(axis=-1, keepdims=True))


@log_predictive_form.register(MultivariateGaussian, TiedMultivariateGaussian)
def _(family: MultivariateGaussian, posterior: NormalInverseWishart) -> MultivariateTForm:
    """Return a multivariate t density."""
    location = posterior.location
    shape = np.broadcast_to((posterior.degrees_of_freedom - posterior.n_columns + 1) / 2, location.shape[:-1])

    def by_root(rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return whiten(rows, family.predictive_root(posterior, known))

    return MultivariateTForm(location, shape, by_root, lambda x: family.log_predictive(posterior, x))


@log_predictive_form.register(Poisson)
def _(family: Poisson, posterior: Gamma) -> PolyaUrnForm:
    """Return the negative binomial distribution as a Pólya urn form."""
    a, b = np.broadcast_arrays(posterior.shape, posterior.rate)
    return PolyaUrnForm(-a * np.log1p(1 / b), a, -np.log1p(b))


def form_of(family: Family, parameters: Parameters | ParameterDistribution, predictive: bool) -> Form | None:
    """Return the form of a family's log probability or log predictive, or None."""
    if not predictive:
        return log_prob_form(family, parameters)
    return log_predictive_form(family, parameters) if isinstance(parameters, family.conjugate_prior) else None


def _log_odds_form(log_one: np.ndarray, log_zero: np.ndarray) -> LinearLogForm:
    """Return the linear form with the log odds as weight."""
    return LinearLogForm(log_one - np.where(np.isneginf(log_zero), 0.0, log_zero), log_zero, "binary")


def _tabulate(
    n: int, log_prob: Callable[..., np.ndarray], parameters: np.ndarray | Beta, shape: tuple[int, ...]
) -> LogTableForm | None:
    """Return the table of a log probability over 0 to n successes, or None for large n."""
    if n >= _MAX_TABLE_SUCCESSES:
        return None
    successes = np.arange(n + 1.0)[:, None].repeat(shape[-1], axis=1)
    log_p = np.moveaxis(log_prob(parameters, successes), 0, -1)  # (*given, columns, successes)
    return LogTableForm(log_p.reshape(*shape[:-1], -1), Segments(np.full(shape[-1], n + 1)))
