"""The empirical prior: hyperparameters that make the data most probable, found from the statistics alone."""

from __future__ import annotations

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
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.totals import Totals


def empirical_prior(family: Family, statistics: Any, estimate: str) -> ParameterDistribution:
    """The prior under which the statistics of all groups together are most probable: ``prior="empirical"``.

    The groups (classes) of a column are taken as draws from one prior, whose parameters maximize the sum of the groups'
    log evidences: type II maximum likelihood, or empirical Bayes. Groups that are alike make it strong, so that they
    lend each other their rows; groups that differ make it weak. Every column has its own; a family of whole rows has
    one for the row.

    ========================  =====================================================================================
    Bernoulli, Binomial       Beta(a, b): both, per column
    Categorical, Multinomial  Dirichlet(α): every α_k, per column, or over the vocabulary
    Poisson                   Gamma(a, b): both, per column
    Gaussian                  normal-inverse-gamma: κ, a and b, per column. m is the mean of the groups' means,
                              weighted n/(n + κ), the most probable one where they share a variance
    MultivariateGaussian      normal-inverse-Wishart: κ, ν and the size of Ψ = c·diag(s²), with s² the variances of
                              the default prior, so that no scale of a column matters; m as above
    ========================  =====================================================================================

    Tied families have one variance, which cannot tell how variances vary: only κ is found, the rest is the default's.
    A spherical family has one κ for all columns.

    Bounds keep it sensible where the evidence rises without end, as it does for groups that are alike:

    - No prior is worth more rows than were counted. A Dirichlet or Beta is worth 2/(number of groups) rows or more, and
      so is the shape of a Gamma.
    - Up to ten groups say too little about how variances vary: b/a is s² then, and a at least the default's 1.5. With G
      groups b/a may differ from s² by a factor G/10.
    - Levels no group has seen count as half a one, together.
    - A single group cannot tell how groups vary: its levels share one α, while rates and Gaussians take their default
      prior. So do columns without a known cell, an event, or any spread within groups.

    In classifiers, mixtures and the steps of hidden Markov models it is the default of labels and words under
    ``"bayes"``, with add-one in columns that fewer than two groups have counts of.

    Under ``"map"`` Dirichlets and Betas get one more for every level and Gammas one more event, so that the mode is the
    ``"bayes"`` mean; for Gaussians the prior's mode of the variance is the b/a of ``"bayes"``, as in the defaults.

    Parameters
    ----------
    family : Family
    statistics : Statistics
        Of every group.
    estimate : {"bayes", "map"}

    Returns
    -------
    Belief

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
    flat, more = _in_one_axis(statistics), 1.0 if read_estimate(estimate).takes_mode else 0.0
    if issubclass(family.conjugate_prior, Beta | Dirichlet):
        return _with_counts(family, fit_dirichlet(*_cells_of(family, flat)) + more)
    if issubclass(family.conjugate_prior, Gamma):
        shape, rate = _fit_gamma(flat, family.default_prior(statistics, "bayes"))
        return Gamma(shape + more, rate)
    if issubclass(family.conjugate_prior, NormalInverseGamma):
        return fit_gamma_of_variances(family, statistics, flat, estimate)
    if issubclass(family.conjugate_prior, NormalInverseWishart):
        return fit_wishart(family, statistics, flat, estimate)
    raise PriorError.wrong_prior(family, "empirical", f"a {family.conjugate_prior.__name__}")


class EmpiricalOrAddOne:
    """The default prior of labels and words in several groups: ``"empirical"``, and add-one where it has no say.

    A column that fewer than two groups have counts of tells nothing of how groups vary: every level has one then.
    """

    def resolve(self, family: Family, statistics: Any, estimate: str) -> ParameterDistribution:
        """The belief this rule stands for."""
        return self.resolve_all([(family, statistics)], estimate)[0]

    def resolve_all(self, asked: Sequence[tuple[Family, Any]], estimate: str) -> list[ParameterDistribution]:
        """The beliefs for columns of several families, in the same groups: found at once, each by itself."""
        cells = [_cells_of(family, _in_one_axis(statistics)) for family, statistics in asked]
        table = np.concatenate([part for part, _ in cells], axis=1)
        segments = Segments(np.concatenate([part.sizes for _, part in cells]))
        silent = ((segments.sum(table) > 0).sum(axis=0) < 2).reshape(-1)
        more = 1.0 if read_estimate(estimate).takes_mode else 0.0
        counts = np.ones(table.shape[1])
        if not silent.all():
            counts = np.where(segments.broadcast_to_cells(silent), 1.0, fit_dirichlet(table, segments))
        found, column, cell = [], 0, 0
        for (family, statistics), (part, own) in zip(asked, cells, strict=True):
            quiet = silent[column : column + own.n_columns].all()
            mine = counts[cell : cell + part.shape[1]]
            found.append(family.default_prior(statistics, estimate) if quiet else _with_counts(family, mine + more))
            column, cell = column + own.n_columns, cell + part.shape[1]
        return found


def default_group_prior(family: Family, estimate: str) -> EmpiricalOrAddOne | None:
    """The default prior of a family whose columns are compared between groups; None is the family's own."""
    has_levels = family.pseudo_count_prior(1.0, estimate) is not None
    return EmpiricalOrAddOne() if has_levels and not read_estimate(estimate).takes_mode else None


def is_data_dependent(prior: Any) -> bool:
    """Whether a prior is found from the counts."""
    return isinstance(prior, str | EmpiricalOrAddOne)


def _in_one_axis(statistics: Any) -> Any:
    """The statistics with all that is given in one axis."""
    return statistics.reshape_groups((int(np.prod(statistics.given_shape, dtype=np.int64)),))


def _cells_of(family: Family, flat: Any) -> tuple[np.ndarray, Segments]:
    """The counts of all levels (groups, cells), and how they fall into columns."""
    if issubclass(family.conjugate_prior, Beta):
        cells = np.stack([flat.total, flat.failures], axis=-1).reshape(len(flat.total), -1)
        return cells, Segments(np.full(flat.n_columns, 2))
    if isinstance(flat, Counts):
        return flat.table, flat.segments
    return flat.total, Segments([flat.total.shape[-1]])


def _with_counts(family: Family, counts: np.ndarray) -> ParameterDistribution:
    """The belief that has seen these counts of all levels."""
    if issubclass(family.conjugate_prior, Beta):
        return Beta(counts[::2], counts[1::2])
    return Dirichlet(counts)


def _distinct(*arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns that occur in the arrays (groups, columns), each once, and which of them every column is.

    Of a hundred thousand words most are rare, and rare words were counted alike.
    """
    stacked = np.stack(arrays) + 0.0  # −0 is 0
    if not stacked.size:
        return stacked, np.arange(stacked.shape[-1])
    by_column = np.ascontiguousarray(np.moveaxis(stacked, -1, 0).reshape(stacked.shape[-1], -1))
    keys = by_column.view(np.dtype((np.void, by_column.itemsize * by_column.shape[1]))).ravel()
    _, first, again = np.unique(keys, return_index=True, return_inverse=True)
    return stacked[..., first], again


def _fit_gamma(totals: Totals, default: Any) -> tuple[np.ndarray, np.ndarray]:
    """Shape and rate of every column: the largest Σ [log Γ(a + x)/Γ(a) + a log b − (a + x) log(b + n)]."""
    (x, n), again = _distinct(totals.total, np.broadcast_to(totals.weight, totals.total.shape))
    n_groups, rows, events = (n > 0).sum(axis=0), n.sum(axis=0), x.sum(axis=0)
    known = (n_groups > 1) & (events > 0)
    at = np.cumsum(known) - 1
    x, n, n_groups, rows, events = (part[..., known] for part in (x, n, n_groups, rows, events))

    mean = events / rows
    low = np.stack([np.log(2 / n_groups), np.full_like(mean, -60.0)], -1)
    high = np.log(np.stack([10 * events + 10, rows], -1))
    place = np.log(np.stack([mean, np.ones_like(mean)], -1))
    chosen = np.arange(len(place))
    for _ in range(4):  # most columns are done after the first steps
        evidence = _gamma_evidence(x[:, chosen], n[:, chosen])
        place[chosen], done = newton_maximize(evidence, place[chosen], low[chosen], high[chosen], 12)
        chosen = chosen[~done]
        if not len(chosen):
            break
    found = np.exp(place)
    fitted = known[again]
    which = at[again][fitted]
    shape, rate = (np.array(np.broadcast_to(part, again.shape)) for part in (default.shape, default.rate))
    shape[fitted], rate[fitted] = found[which, 0], found[which, 1]
    return shape, rate


def _gamma_evidence(x: np.ndarray, n: np.ndarray) -> Evaluate:
    """Its value, slope and second derivatives by log a and log b, for events and rows (groups, columns)."""

    def evaluate(place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, b = np.exp(place[:, 0]), np.exp(place[:, 1])
        grown, ratio = np.log1p(n / b), b / (b + n)
        value = (log_rising(a, x) - a * grown - x * np.log(b + n)).sum(axis=0)
        by_a = a * (digamma_rising(a, x) - grown).sum(axis=0)
        by_b = (a - (a + x) * ratio).sum(axis=0)
        by_aa = by_a + a**2 * trigamma_rising(a, x).sum(axis=0)
        by_ab = (a * (1 - ratio)).sum(axis=0)
        by_bb = -((a + x) * ratio * (1 - ratio)).sum(axis=0)
        second = np.stack([np.stack([by_aa, by_ab], -1), np.stack([by_ab, by_bb], -1)], -2)
        return value, np.stack([by_a, by_b], -1), second

    return evaluate
