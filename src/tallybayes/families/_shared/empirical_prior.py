"""The empirical prior: hyperparameters of maximum marginal likelihood (empirical Bayes), from the statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.log_gamma import digamma_rising, log_rising, trigamma_rising
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import PriorError
from tallybayes.families._shared.empirical_dirichlet import fit_dirichlet
from tallybayes.families._shared.empirical_gaussian import fit_gamma_of_variances, fit_wishart
from tallybayes.families._shared.newton import Evaluate, newton_maximize
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.statistics.totals import Totals


def empirical_prior(family: Family, statistics: Any, estimate: str) -> ParameterDistribution:
    """Return the prior of maximum marginal likelihood over all groups: ``prior="empirical"``.

    The groups (classes) of a column are draws from one prior, whose parameters maximize the sum of the groups' log
    evidences (type II maximum likelihood). Similar groups give a strong prior, so that they share information;
    different groups give a weak one. Every column has its own prior; families of whole rows have one for the row.

        ========================  =====================================================================================
        Bernoulli, Binomial       Beta(a, b): both, per column
        Categorical, Multinomial  Dirichlet(α): every α_k, per column, or over the vocabulary
        Poisson                   Gamma(a, b): both, per column
        Gaussian                  normal-inverse-gamma: κ, a and b, per column. m is the mean of the groups' means,
                                  weighted n/(n + κ), which is optimal if they share a variance
        MultivariateGaussian      normal-inverse-Wishart: κ, ν and the scale c of Ψ = c·diag(s²), with s² the
                                  variances of the default prior, which makes it invariant under scaling; m as above
        ========================  =====================================================================================

    Tied families have one variance, so only κ is estimated and the rest is the default's. A spherical family has one κ
    for all columns.

    Bounds regularize it where the evidence has no maximum, as for equal groups:

    - The prior strength is at most the number of rows. That of a Dirichlet or Beta, and the shape of a Gamma, is at
      least 2/(number of groups) rows.
    - With up to ten groups, b/a is fixed at s² and a is at least the default's 1.5. With G groups b/a may differ from
      s² by a factor G/10.
    - Unseen levels count as half a row, together.
    - With a single group, all levels share one α; rates and Gaussians use their default prior. So do columns without
      values, events or variance within groups.

    It is the default prior of categorical columns and words under ``"bayes"`` in classifiers, mixtures and hidden
    Markov models, with add-one smoothing for columns with counts in fewer than two groups.

    Under ``"map"``, Dirichlets and Betas get one more pseudo-count per level and Gammas one more event, so that the
    mode equals the ``"bayes"`` mean; for Gaussians the prior mode of the variance is the b/a of ``"bayes"``.

    Parameters
    ----------
    family : Family
    statistics : Statistics
        Of every group.
    estimate : {"bayes", "map"}

    Returns
    -------
    ParameterDistribution

    References
    ----------
    T. P. Minka (2000), Estimating a Dirichlet distribution. B. Levin and J. Reeds (1977), Compound multinomial
    likelihood functions are unimodal, Annals of Statistics 5. C. N. Morris (1983), Parametric empirical Bayes
    inference, JASA 78.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(1)
    >>> players = np.repeat(np.arange(500), 40)
    >>> hits = rng.random(20_000) < rng.beta(6, 14, 500)[players]
    >>> found = tb.fit_distribution(hits, tb.Bernoulli(), group=players)
    >>> prior = found.family.resolve_prior("empirical", found.statistics, "bayes")
    >>> prior.alpha.round(1), prior.beta.round(1)
    (array([6.6]), array([15.1]))
    """
    flat, more = _with_flat_groups(statistics), 1.0 if read_estimate(estimate).takes_mode else 0.0
    if issubclass(family.conjugate_prior, Beta | Dirichlet):
        return _distribution_of_counts(family, fit_dirichlet(*_level_counts(family, flat)) + more)
    if issubclass(family.conjugate_prior, Gamma):
        default = family.default_prior(statistics, "bayes")
        assert isinstance(default, Gamma)
        shape, rate = _fit_gamma(flat, default)
        return Gamma(shape + more, rate)
    if issubclass(family.conjugate_prior, NormalInverseGamma):
        return fit_gamma_of_variances(family, statistics, flat, estimate)
    if issubclass(family.conjugate_prior, NormalInverseWishart):
        return fit_wishart(family, statistics, flat, estimate)
    raise PriorError.wrong_prior(family, "empirical", f"a {family.conjugate_prior.__name__}")


class EmpiricalOrAddOne:
    """Default prior of categorical columns and words in several groups: ``"empirical"``, with add-one as fallback.

    Columns with counts in fewer than two groups have no information on the variation between groups: they use add-one.
    """

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> ParameterDistribution:
        """Return the prior for one family."""
        return self.resolve_all([(family, statistics)], estimate)[0]

    def resolve_all(self, columns: Sequence[tuple[Family, Statistics]], estimate: str) -> list[ParameterDistribution]:
        """Return the priors of several (family, statistics) in the same groups, computed in one call."""
        cells = [_level_counts(family, _with_flat_groups(statistics)) for family, statistics in columns]
        table = np.concatenate([part for part, _ in cells], axis=1)
        segments = Segments(np.concatenate([part.sizes for _, part in cells]))
        varied = ((segments.sum(table) > 0).sum(axis=0) >= 2).reshape(-1)
        counts = np.ones(table.shape[1])
        if varied.any():
            counts = np.where(segments.broadcast_to_cells(varied), fit_dirichlet(table, segments), 1.0)
        extra = 1.0 if read_estimate(estimate).takes_mode else 0.0
        varied_by_factor = np.split(varied, np.cumsum([own.n_columns for _, own in cells])[:-1])
        counts_by_factor = np.split(counts + extra, np.cumsum([part.shape[1] for part, _ in cells])[:-1])
        return [
            _distribution_of_counts(family, own) if is_varied.any() else family.default_prior(statistics, estimate)
            for (family, statistics), is_varied, own in zip(columns, varied_by_factor, counts_by_factor, strict=True)
        ]


def default_group_prior(family: Family, estimate: str) -> EmpiricalOrAddOne | None:
    """Return the default prior of a family whose columns are compared between groups; None for its own default."""
    has_levels = issubclass(getattr(family, "conjugate_prior", object), Beta | Dirichlet)
    return EmpiricalOrAddOne() if has_levels and not read_estimate(estimate).takes_mode else None


def is_data_dependent(prior: object) -> bool:
    """Return whether a prior is estimated from the data."""
    return isinstance(prior, str | EmpiricalOrAddOne)


def _with_flat_groups(statistics: Statistics) -> Any:
    """Return the statistics with all group axes flattened into one."""
    return statistics.reshape_groups((math.prod(statistics.given_shape),))


def _level_counts(family: Family, flat: Any) -> tuple[np.ndarray, Segments]:
    """Return the counts of all levels (groups, cells), and their segments by column."""
    if issubclass(family.conjugate_prior, Beta):
        cells = np.stack([flat.total, flat.failures], axis=-1).reshape(len(flat.total), -1)
        return cells, Segments(np.full(flat.n_columns, 2))
    if isinstance(flat, Counts):
        return flat.table, flat.segments
    return flat.total, Segments([flat.total.shape[-1]])


def _distribution_of_counts(family: Family, counts: np.ndarray) -> ParameterDistribution:
    """Return the distribution with these pseudo-counts."""
    if issubclass(family.conjugate_prior, Beta):
        return Beta(counts[::2], counts[1::2])
    return Dirichlet(counts)


def _distinct(*arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct columns of arrays (groups, columns), and the inverse index.

    Among a hundred thousand words most are rare and share their counts.
    """
    stacked = np.stack(arrays) + 0.0  # −0 is 0
    if not stacked.size:
        return stacked, np.arange(stacked.shape[-1])
    by_column = np.ascontiguousarray(np.moveaxis(stacked, -1, 0).reshape(stacked.shape[-1], -1))
    keys = by_column.view(np.dtype((np.void, by_column.itemsize * by_column.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return stacked[..., first], inverse


def _fit_gamma(totals: Totals, default: Gamma) -> tuple[np.ndarray, np.ndarray]:
    """Return shape and rate of every column, maximizing Σ [log Γ(a + x)/Γ(a) + a log b − (a + x) log(b + n)]."""
    weight = totals.column_weights()
    known = ((weight > 0).sum(axis=0) > 1) & (totals.total.sum(axis=0) > 0)
    (x, n), inverse = _distinct(totals.total[:, known], weight[:, known])
    n_groups, rows, events = (n > 0).sum(axis=0), n.sum(axis=0), x.sum(axis=0)
    mean = events / rows
    low = np.stack([np.log(2 / n_groups), np.full_like(mean, -60.0)], -1)
    high = np.log(np.stack([10 * events + 10, rows], -1))
    point = np.log(np.stack([mean, np.ones_like(mean)], -1))
    active = np.arange(len(point))
    for _ in range(4):  # most columns converge within the first steps
        evidence = _gamma_evidence(x[:, active], n[:, active])
        point[active], done = newton_maximize(evidence, point[active], low[active], high[active], 12)
        active = active[~done]
        if not len(active):
            break
    shape, rate = (np.array(np.broadcast_to(part, known.shape)) for part in (default.shape, default.rate))
    shape[known], rate[known] = np.exp(point)[inverse].T
    return shape, rate


def _gamma_evidence(x: np.ndarray, n: np.ndarray) -> Evaluate:
    """Return value, gradient and Hessian by log a and log b, for events and rows (groups, columns)."""

    def evaluate(point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, b = np.exp(point[:, 0]), np.exp(point[:, 1])
        log_growth, ratio = np.log1p(n / b), b / (b + n)
        value = (log_rising(a, x) - a * log_growth - x * np.log(b + n)).sum(axis=0)
        by_a = a * (digamma_rising(a, x) - log_growth).sum(axis=0)
        by_b = (a - (a + x) * ratio).sum(axis=0)
        by_aa = by_a + a**2 * trigamma_rising(a, x).sum(axis=0)
        by_ab = (a * (1 - ratio)).sum(axis=0)
        by_bb = -((a + x) * ratio * (1 - ratio)).sum(axis=0)
        second = np.stack([np.stack([by_aa, by_ab], -1), np.stack([by_ab, by_bb], -1)], -2)
        return value, np.stack([by_a, by_b], -1), second

    return evaluate
