"""Families that a user might write: the geometric of the design page, waiting times, and a Poisson from scratch."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, gammaln, xlog1py, xlogy

import tallybayes as tb
from tallybayes.families._shared.block_sums import sum_block
from tallybayes.families._shared.log_prob_forms import CellSumForm
from tallybayes.families.family import Family, broadcast_over_groups, zero_where_missing
from tallybayes.families.protocols.scoring_forms import log_predictive_form, log_prob_form


@dataclass(frozen=True, eq=False, repr=False)
class Geometric(tb.Bernoulli):
    """The number of failures before the first success, as the design page writes it: p(x) = θ(1 − θ)^x."""

    is_binary: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "a whole number of at least 0 (or missing)"

    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        rows, failures, _ = sum_block(block, "poisson", group, n_groups, weight)
        return tb.Totals(rows + failures, rows + np.zeros_like(failures))

    def row_weight(self, statistics):
        return statistics.total

    def mean(self, parameters):
        p = super().mean(parameters)
        return (1 - p) / p

    def log_prob(self, parameters, x):
        x = broadcast_over_groups(x, parameters.ndim - 1)
        return zero_where_missing(np.log(parameters) + xlog1py(x, -parameters), x)

    def log_predictive(self, posterior, x):
        a, b = posterior.alpha, posterior.beta
        x = broadcast_over_groups(x, a.ndim - 1)
        return zero_where_missing(betaln(a + 1, b + x) - betaln(a, b), x)

    def sample(self, parameters, n, rng):
        return rng.geometric(parameters, (n, *parameters.shape)) - 1


@dataclass(frozen=True, eq=False, repr=False)
class Exponential(Family):
    """Waiting times: p(x) = λ e^(−λx). Rows are the events, and their times what these were counted over."""

    conjugate_prior = tb.Gamma
    is_continuous: ClassVar[bool] = True
    accepts_sparse: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = False
    nonnegative_cells: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a time of at least 0"

    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        rows, time, _ = sum_block(block, "multinomial", group, n_groups, weight)
        return tb.Totals(time, rows + np.zeros_like(time))

    def row_weight(self, statistics):
        return statistics.total

    def maximum_likelihood(self, statistics):
        with np.errstate(invalid="ignore", divide="ignore"):
            return statistics.total / statistics.weight

    def default_prior(self, statistics, estimate):
        return tb.Gamma(1.0, 1.0)

    def mean(self, parameters):
        return 1 / super().mean(parameters)

    def log_likelihood(self, parameters, statistics):
        return xlogy(statistics.total, parameters) - parameters * statistics.weight

    def log_prob(self, parameters, x):
        x = broadcast_over_groups(x, parameters.ndim - 1)
        return zero_where_missing(np.log(parameters) - parameters * x, x)

    def log_predictive(self, posterior, x):
        a, b = np.broadcast_arrays(posterior.shape, posterior.rate)
        x = broadcast_over_groups(x, a.ndim - 1)
        return zero_where_missing(np.log(a / b) - (a + 1) * np.log1p(x / b), x)

    def sample(self, parameters, n, rng):
        return rng.exponential(1 / parameters, (n, *parameters.shape))


@dataclass(frozen=True, eq=False, repr=False)
class FormedExponential(Exponential):
    """The same, and what its log probability looks like."""


@log_prob_form.register(FormedExponential)
def _(family, parameters):
    rate = np.asarray(parameters)
    return CellSumForm(np.log(rate), lambda x, j: -rate[..., j] * x)


@log_predictive_form.register(FormedExponential)
def _(family, posterior):
    a, b = np.broadcast_arrays(posterior.shape, posterior.rate)
    return CellSumForm(np.log(a / b), lambda x, j: -(a[..., j] + 1) * np.log1p(x / b[..., j]))


@dataclass(frozen=True, eq=False, repr=False)
class Events(Family):
    """`tallybayes.Poisson`, from scratch: all that a family has to say, and nothing else."""

    conjugate_prior = tb.Gamma
    accepts_sparse: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a whole number of at least 0 (or missing)"

    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        return tb.Totals(*sum_block(block, "poisson", group, n_groups, weight))

    def maximum_likelihood(self, statistics):
        with np.errstate(invalid="ignore", divide="ignore"):
            return statistics.total / statistics.weight

    def default_prior(self, statistics, estimate):
        return tb.Poisson().default_prior(statistics, estimate)

    def log_likelihood(self, parameters, statistics):
        return xlogy(statistics.total, parameters) - statistics.weight * parameters + statistics.log_base_measure

    def log_prob(self, parameters, x):
        x = broadcast_over_groups(x, parameters.ndim - 1)
        return zero_where_missing(xlogy(x, parameters) - parameters - gammaln(x + 1), x)

    def log_predictive(self, posterior, x):
        a, b = np.broadcast_arrays(posterior.shape, posterior.rate)
        x = broadcast_over_groups(x, a.ndim - 1)
        terms = gammaln(a + x) - gammaln(a) - gammaln(x + 1) - a * np.log1p(1 / b) - x * np.log1p(b)
        return zero_where_missing(terms, x)

    def sample(self, parameters, n, rng):
        return rng.poisson(parameters, (n, *parameters.shape))


@dataclass(frozen=True, eq=False, repr=False)
class FormedEvents(Events):
    """The same, and what its log probability looks like."""


log_prob_form.register(FormedEvents)(log_prob_form.of(tb.Poisson))
log_predictive_form.register(FormedEvents)(log_predictive_form.of(tb.Poisson))
