"""Estimated factors: the priors, parameters, posteriors and likelihood measures of a model's factors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, EstimateError, NoCountsError
from tallybayes.estimation.distribution_fit import DescriptionLength
from tallybayes.estimation.scoring.factor_scorer import (
    NO_COLUMNS,
    FactorScorer,
    ResolvedPrior,
    check_nonzero_variance,
    make_factor_scorer,
    resolve_prior,
)
from tallybayes.families._shared.empirical_prior import EmpiricalOrAddOne, default_group_prior, is_data_dependent
from tallybayes.families.estimates import read_estimate
from tallybayes.families.protocols.degenerate_estimates import add_unit_variance
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.factor import Factor

Pair = tuple[Factor, Any]


class LogEvidence(NamedTuple):
    """The log evidence in nats, and the columns that are excluded from it."""

    log_evidence: float
    excluded_columns: list[Any]


class EstimatedFactors:
    """Factors with their sufficient statistics, priors and estimate; parameters and posteriors are computed from them.

    Objects are immutable.

    Parameters
    ----------
    pairs : iterable of (Factor, Statistics)
    priors : iterable
        The prior of each factor: a distribution, a rule, ``"empirical"``, or None for the default.
    estimate : {"bayes", "mle", "map", "unbiased"}
    groups : sequence, optional
        The names of the groups. With them, a group of zero variance raises EstimateError; else its density is NaN.
    plug_in : bool, default False
        Whether ``"bayes"`` scores rows by posterior means instead of the posterior predictive distribution.
    with_unseen_level : bool, default False
        Whether categorical columns have one more level, for unseen levels.
    resolved_priors : tuple of ResolvedPrior, optional
        Priors to use instead of resolving ``priors``.
    fixed_parameters : sequence, optional
        User-specified parameters, one for every pair; the statistics are then empty. See `from_fixed_parameters`.
    """

    def __init__(
        self,
        pairs: Iterable[Pair],
        priors: Iterable[Any],
        estimate: str,
        *,
        groups: Sequence[Any] | None = None,
        plug_in: bool = False,
        with_unseen_level: bool = False,
        resolved_priors: tuple[ResolvedPrior, ...] | None = None,
        fixed_parameters: Sequence[Any] | None = None,
    ) -> None:
        self._counted = pairs = tuple(pairs)
        self.pairs = pairs  # every factor and its statistics, with a level for unseen levels if requested
        if with_unseen_level:
            self.pairs = tuple((factor, part.with_unseen() if factor.level_columns else part) for factor, part in pairs)
        self.priors = tuple(priors)
        self.estimate = estimate
        self.groups = groups
        self.plug_in = plug_in
        self.with_unseen_level = with_unseen_level
        self.has_prior = read_estimate(estimate).has_prior
        self.fixed_parameters = fixed_parameters
        if resolved_priors is not None:
            self.__dict__["resolved_priors"] = resolved_priors

    @classmethod
    def from_fixed_parameters(
        cls, pairs: Iterable[Pair], parameters: Sequence[Any], groups: Sequence[Any] | None = None
    ) -> EstimatedFactors:
        """Return factors with user-specified parameters; methods that need counts raise NoCountsError."""
        pairs = tuple(pairs)
        return cls(pairs, [None] * len(pairs), "mle", groups=groups, plug_in=True, fixed_parameters=tuple(parameters))

    def _need_counts(self, what: str) -> None:
        if self.fixed_parameters is not None:
            raise NoCountsError(
                f"{what} needs counts, and these parameters are user-specified.\n    Use fit with training rows."
            )

    @cached_property
    def resolved_priors(self) -> tuple[ResolvedPrior, ...]:
        """The resolved prior of every factor, also for estimates that do not use it.

        Empirical priors of several factors are fitted together.
        """
        self._need_counts("a prior")
        requested = zip(self.pairs, self.priors, strict=True)
        rules = [n for n, prior in enumerate(self.priors) if isinstance(prior, EmpiricalOrAddOne)]
        if len(rules) < 2 or len({self.pairs[n][1].given_shape for n in rules}) > 1:
            return tuple(resolve_prior(factor, counted, prior, self.estimate) for (factor, counted), prior in requested)
        rule_pairs = [(self.pairs[n][0].family, self.pairs[n][1]) for n in rules]
        resolved = dict(zip(rules, EmpiricalOrAddOne().resolve_all(rule_pairs, self.estimate), strict=True))
        return tuple(
            resolve_prior(factor, counted, resolved.get(n, prior), self.estimate)
            for n, ((factor, counted), prior) in enumerate(requested)
        )

    @property
    def prior_distributions(self) -> list[Any]:
        """The prior distribution of every factor."""
        return [resolved.prior for resolved in self.resolved_priors]

    @property
    def priors_by_column(self) -> dict[Any, Any]:
        """The prior distributions by column, or by tuple of columns."""
        names = [factor.columns if len(factor.columns) > 1 else factor.columns[0] for factor, _ in self.pairs]
        return dict(zip(names, self.prior_distributions, strict=True))

    @cached_property
    def active_priors(self) -> tuple[ResolvedPrior, ...]:
        """The resolved prior of every factor; empty priors if the estimate does not use a prior."""
        return (
            self.resolved_priors
            if self.has_prior
            else (ResolvedPrior(None, np.zeros(0, dtype=np.intp)),) * len(self.pairs)
        )

    @cached_property
    def scorers(self) -> list[FactorScorer]:
        """The scorer of every factor, with its parameters or its posterior; variances may be zero."""
        if self.fixed_parameters is not None:
            fixed = zip(self.pairs, self.fixed_parameters, strict=True)
            return [FactorScorer(factor, parameters, False, NO_COLUMNS) for (factor, _), parameters in fixed]
        return [
            make_factor_scorer(factor, counted, resolved, self.estimate, plug_in=self.plug_in)
            for (factor, counted), resolved in zip(self.pairs, self.active_priors, strict=True)
        ]

    @property
    def counted_scorers(self) -> Iterator[tuple[FactorScorer, Any, ResolvedPrior]]:
        """Every checked scorer, with the statistics that score rows and the resolved prior."""
        for scorer, (_, counted), resolved in zip(self.checked_scorers, self.pairs, self.active_priors, strict=True):
            yield scorer, add_unit_variance(scorer.family, counted, resolved.constant), resolved

    @property
    def scorers_or_mle(self) -> list[FactorScorer]:
        """The `scorers`; maximum likelihood estimates (NaN) if no row is left from which a prior could be resolved."""
        try:
            return self.scorers
        except DataError:
            return [
                FactorScorer(factor, factor.family.maximum_likelihood(c), False, NO_COLUMNS) for factor, c in self.pairs
            ]

    @cached_property
    def checked_scorers(self) -> list[FactorScorer]:
        """The `scorers`; raise EstimateError if a named group has zero variance."""
        if self.groups is not None and self.fixed_parameters is None:
            for scorer, (_, counted) in zip(self.scorers, self.pairs, strict=True):
                if not scorer.predictive:
                    check_nonzero_variance(scorer, counted, self.groups)
        return self.scorers

    def posterior(self, number: int) -> Any:
        """Return the posterior distribution of a factor's parameters, for any estimate."""
        (factor, counted), (prior, constant) = self.pairs[number], self.resolved_priors[number]
        return prior.update(add_unit_variance(factor.family, counted, constant))

    def with_statistics(self, pairs: Iterable[Pair]) -> EstimatedFactors:
        """Return these factors with other statistics over the same levels and the same resolved priors."""
        self._need_counts("leaving rows out")
        return self._with(pairs, self.resolved_priors if self.has_prior else None)

    def with_unseen(self) -> EstimatedFactors:
        """Return these factors with one more level in every categorical column, for unseen levels."""
        self._need_counts("unseen='smooth'")
        options: Any = {"groups": self.groups, "plug_in": self.plug_in, "with_unseen_level": True}
        return EstimatedFactors(self._counted, self.priors, self.estimate, **options)

    def scaled(self, strength: float) -> EstimatedFactors:
        """Return these factors with the strength of every prior multiplied by ``strength``."""
        resolved_priors = tuple(
            ResolvedPrior(prior.scaled(strength), constant) for prior, constant in self.resolved_priors
        )
        return self._with(self._counted, resolved_priors)

    def _with(self, pairs: Iterable[Pair], resolved_priors: tuple[ResolvedPrior, ...] | None) -> EstimatedFactors:
        options = {"groups": self.groups, "plug_in": self.plug_in, "with_unseen_level": self.with_unseen_level}
        return EstimatedFactors(pairs, self.priors, self.estimate, **options, resolved_priors=resolved_priors)  # type: ignore[arg-type]

    # ---- Likelihood measures ----------------------------------------------------------------------------------------

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        return sum(factor.family.n_parameters(counted) for factor, counted in self.pairs)

    def evidence(self, without: Collection[Any] = ()) -> LogEvidence:
        """Return log p(data) with the parameters integrated out, without constant columns and those of ``without``."""
        total = 0.0
        excluded = list[Any]()
        for (factor, counted), (prior, constant) in zip(self.pairs, self.resolved_priors, strict=True):
            width = int(counted.n_columns)
            names = [factor.column(position, width) for position in range(width)]
            excluded += [names[position] for position in constant]
            dropped = {*constant.tolist(), *(position for position, name in enumerate(names) if name in without)}
            keep = np.array([position for position in range(width) if position not in dropped], dtype=np.intp)
            total += _evidence_of(factor, counted, prior, keep)
        return LogEvidence(total, excluded)

    @property
    def max_log_likelihood(self) -> float:
        """log p(data | maximum likelihood estimates)."""
        self._need_counts("the likelihood of the rows")
        total = 0.0
        for factor, counted in self.pairs:
            logs = factor.family.log_likelihood(factor.family.maximum_likelihood(counted), counted)
            total += float(np.nansum(np.asarray(logs)))  # NaN: no rows
        return total

    @property
    def bic_penalty(self) -> float:
        """The penalty of the BIC: Σ n_parameters · log(weight), the weight of the rows of every factor."""
        total = 0.0
        for factor, counted in self.pairs:
            rows = factor.family.row_weight(counted.pool_groups())
            if factor.level_columns and counted.n_columns > len(factor.columns):
                rows = np.sum(rows)  # the rows of one CPT, with different numbers of levels
            weight = float(np.max(rows, initial=1.0))
            total += factor.family.n_parameters(counted) * math.log(weight)
        return total

    def description_length(self) -> DescriptionLength:
        """Return −log₂ of the likelihood at the MAP estimates, of their prior density, and of the evidence."""
        data = model = 0.0
        for (factor, counted), requested, (prior, constant) in zip(
            self.pairs, self.priors, self.resolved_priors, strict=True
        ):
            if not len(constant):
                if is_data_dependent(requested) and default_group_prior(factor.family, self.estimate) is not None:
                    prior = prior.mode_matched()  # with counts below one, the density has no maximum
                posterior = prior.update(counted)
                mode = factor.family.parameters_from(posterior, "mode")
                data += float(np.sum(factor.family.log_likelihood(mode, counted)))
                model += float(np.sum(prior.update(counted.scale(0.0)).log_prob(posterior.mode_or_boundary())))
        return DescriptionLength(*(-part / math.log(2.0) for part in (data, model, self.evidence().log_evidence)))


def _evidence_of(factor: Factor, counted: Statistics, prior: ParameterDistribution, keep: np.ndarray) -> float:
    """Return the log evidence of the columns ``keep`` of a factor."""
    family = factor.family
    width = int(counted.n_columns)
    if len(keep) == 0:
        return 0.0
    if len(keep) == width:
        return float(np.sum(family.log_evidence(prior, counted)))
    if family.columnwise and not getattr(prior, "accepts_any_family", False):
        return float(np.asarray(family.log_evidence(prior, counted))[..., keep].sum())
    if isinstance(prior, NormalInverseWishart | NormalInverseGamma):
        marginal = _marginal_prior(prior, keep, width)
        return float(np.sum(family.log_evidence(marginal, counted.columns(keep))))
    raise EstimateError(
        f"the evidence of columns {factor.columns} of {family!r} is not a sum over columns, but some are excluded.\n"
        "    Fit the models without those columns."
    )


def _marginal_prior(prior: NormalInverseGamma | NormalInverseWishart, keep: np.ndarray, width: int) -> Any:
    """Return the marginal prior of the columns ``keep``."""

    def select(part: np.ndarray) -> np.ndarray:
        return part if part.ndim == 0 or part.shape[-1] == 1 else part[..., keep]

    if isinstance(prior, NormalInverseGamma):
        return prior.replace(
            **{name: select(getattr(prior, name)) for name in ("location", "strength", "shape", "scale")}
        )
    # A diagonal block of an inverse-Wishart matrix is inverse-Wishart; every removed column takes a degree of freedom.
    return prior.replace(
        location=select(prior.location),
        degrees_of_freedom=prior.degrees_of_freedom - (width - len(keep)),
        scale=prior.scale[..., keep[:, None], keep],
    )
