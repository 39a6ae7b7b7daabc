"""Fitted: factors after estimating. What every model derives from its counts, whatever it is asked, is here once."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
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
from tallybayes.tally.factor import Factor

Pair = tuple[Factor, Any]


class LogEvidence(NamedTuple):
    """A log evidence in nats, and the columns that have no part in it."""

    log_evidence: float
    excluded_columns: list[Any]


class EstimatedFactors:
    """Factors, what was counted of them, the priors meant for them, and the estimate: all else follows.

    It never changes. The same over other counts, or under other priors, is another one.

    Parameters
    ----------
    pairs : iterable of (Factor, Statistics)
    priors : iterable
        The prior meant for each: a belief, a rule, "empirical", or None for the default.
    estimate : {"bayes", "mle", "map", "unbiased"}
    groups : sequence, optional
        What the groups are called. Those without any spread are then refused by name; else their density is not known.
    plug_in : bool, default False
        Whether rows are scored by point estimates under ``"bayes"``, too: posterior means.
    smooth : bool, default False
        Whether columns of labels have one level more, which nobody has seen.
    stated : sequence, optional
        Parameters that were stated, not counted, one for every pair; the counts are of no rows. See `given`.
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
        stated: Sequence[Any] | None = None,
    ) -> None:
        self._counted, self.priors, self.estimate = tuple(pairs), tuple(priors), estimate
        self.groups, self.plug_in, self.with_unseen_level = groups, plug_in, with_unseen_level
        self.has_prior = read_estimate(estimate).has_prior
        self.stated = stated
        if resolved_priors is not None:
            self.__dict__["resolved_priors"] = resolved_priors

    @classmethod
    def from_fixed_parameters(
        cls, pairs: Iterable[Pair], parameters: Sequence[Any], groups: Sequence[Any] | None = None
    ) -> EstimatedFactors:
        """Factors whose parameters were stated, with counts of no rows: what needs any raises `NoCountsError`."""
        pairs = tuple(pairs)
        return cls(pairs, [None] * len(pairs), "mle", groups=groups, plug_in=True, stated=tuple(parameters))

    def _need_counts(self, what: str) -> None:
        if self.stated is not None:
            raise NoCountsError(
                f"{what} needs counts, and these parameters were given.\n    Use fit to learn from rows."
            )

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every factor and its statistics, with room for what nobody has seen if it is to be smooth."""
        if not self.with_unseen_level:
            return self._counted
        return tuple((factor, factor.family.with_unseen_level(counted)) for factor, counted in self._counted)

    @cached_property
    def resolved_priors(self) -> tuple[ResolvedPrior, ...]:
        """What every factor starts from, or would if the estimate had a prior."""
        self._need_counts("a prior")
        asked = zip(self.pairs, self.priors, strict=True)
        rules = [n for n, prior in enumerate(self.priors) if isinstance(prior, EmpiricalOrAddOne)]
        if len(rules) < 2 or len({self.pairs[n][1].given_shape for n in rules}) > 1:
            return tuple(resolve_prior(factor, counted, prior, self.estimate) for (factor, counted), prior in asked)
        together = [(self.pairs[n][0].family, self.pairs[n][1]) for n in rules]
        found = dict(zip(rules, EmpiricalOrAddOne().resolve_all(together, self.estimate), strict=True))
        return tuple(
            resolve_prior(factor, counted, found.get(n, prior), self.estimate)
            for n, ((factor, counted), prior) in enumerate(asked)
        )

    @property
    def beliefs(self) -> list[Any]:
        """The prior of every factor as resolved."""
        return [start.prior for start in self.resolved_priors]

    @cached_property
    def active_priors(self) -> tuple[ResolvedPrior, ...]:
        """What every factor starts from; nothing where the estimate has no prior."""
        return (
            self.resolved_priors
            if self.has_prior
            else (ResolvedPrior(None, np.zeros(0, dtype=np.intp)),) * len(self.pairs)
        )

    @cached_property
    def scorers(self) -> list[FactorScorer]:
        """Every factor's parameters, or its posterior, whether or not rows can be scored by them."""
        if self.stated is not None:
            given = zip(self.pairs, self.stated, strict=True)
            return [FactorScorer(factor, parameters, False, NO_COLUMNS) for (factor, _), parameters in given]
        return [
            make_factor_scorer(factor, counted, start, self.estimate, plug_in=self.plug_in)
            for (factor, counted), start in zip(self.pairs, self.active_priors, strict=True)
        ]

    @property
    def scorers_or_mle(self) -> list[FactorScorer]:
        """As `estimated`; where no row is left that a default prior could go by, nothing is known."""
        try:
            return self.scorers
        except DataError:
            return [
                FactorScorer(factor, factor.family.maximum_likelihood(c), False, NO_COLUMNS) for factor, c in self.pairs
            ]

    @cached_property
    def checked_scorers(self) -> list[FactorScorer]:
        """Every factor ready to score: plug-in parameters, or the posterior whose predictive is used."""
        if self.groups is not None and self.stated is None:
            for found, (_, counted) in zip(self.scorers, self.pairs, strict=True):
                check_nonzero_variance(found, counted, self.groups)
        return self.scorers

    def posterior(self, number: int) -> Any:
        """The belief about a factor's parameters after the data, whatever the estimate makes of it."""
        (factor, counted), (belief, constant) = self.pairs[number], self.resolved_priors[number]
        return belief.update(factor.family.add_unit_variance(counted, constant))

    def with_statistics(self, pairs: Iterable[Pair]) -> EstimatedFactors:
        """The same over other counts of the same levels, its beliefs held."""
        self._need_counts("leaving rows out")
        return self._with(pairs, self.resolved_priors if self.has_prior else None)

    def scaled(self, strength: float) -> EstimatedFactors:
        """The same under priors worth so many times as much."""
        starts = tuple(start._replace(prior=start.prior.scaled(strength)) for start in self.resolved_priors)
        return self._with(self._counted, starts)

    def _with(self, pairs: Iterable[Pair], starts: tuple[ResolvedPrior, ...] | None) -> EstimatedFactors:
        settings = {"groups": self.groups, "plug_in": self.plug_in, "with_unseen_level": self.with_unseen_level}
        return EstimatedFactors(pairs, self.priors, self.estimate, **settings, resolved_priors=starts)  # type: ignore[arg-type]

    # ---- Measures of the whole --------------------------------------------------------------------------------------

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        return sum(factor.family.n_parameters(counted) for factor, counted in self.pairs)

    def evidence(self, without: Collection[Any] = ()) -> LogEvidence:
        """log p(data) with every parameter integrated out; columns without spread, and these, are left out."""
        total, left_out = 0.0, list[Any]()
        for (factor, counted), (belief, constant) in zip(self.pairs, self.resolved_priors, strict=True):
            width = int(counted.n_columns)
            names = [factor.column(place, width) for place in range(width)]
            left_out += [names[place] for place in constant]
            dropped = {*constant.tolist(), *(place for place, name in enumerate(names) if name in without)}
            keep = np.array([place for place in range(width) if place not in dropped], dtype=np.intp)
            total += _evidence_of(factor, counted, belief, keep)
        return LogEvidence(total, left_out)

    @property
    def max_log_likelihood(self) -> float:
        """log p(data | the most likely parameters)."""
        self._need_counts("the likelihood of the rows")
        total = 0.0
        for factor, counted in self.pairs:
            logs = factor.family.log_likelihood(factor.family.maximum_likelihood(counted), counted)
            total += float(np.nansum(np.asarray(logs)))  # NaN: no row
        return total

    @property
    def bic_penalty(self) -> float:
        """Parameters · log(weight), of every factor by the rows it was counted from: what the BIC takes for them."""
        total = 0.0
        for factor, counted in self.pairs:
            rows = factor.family.row_weight(counted.pool_groups())
            if factor.level_columns and counted.n_columns > len(factor.columns):
                rows = np.sum(rows)  # the lines of one table, each of its own width
            weight = float(np.max(rows, initial=1.0))
            total += factor.family.n_parameters(counted) * math.log(weight)
        return total

    def description_length(self) -> DescriptionLength:
        """Code lengths: −log₂ of the likelihood and the density at the MAP parameters, and of the evidence."""
        data = model = 0.0
        for (factor, counted), prior, (belief, constant) in zip(
            self.pairs, self.priors, self.resolved_priors, strict=True
        ):
            if not len(constant):
                if is_data_dependent(prior) and default_group_prior(factor.family, self.estimate) is not None:
                    belief = belief.mode_matched()  # counts below one have no highest density to speak of
                posterior = belief.update(counted)
                mode = factor.family.parameters_from(posterior, "mode")
                data += float(np.sum(factor.family.log_likelihood(mode, counted)))
                model += float(np.sum(belief.update(counted.scale(0.0)).log_prob(posterior.mode_or_boundary())))
        return DescriptionLength(*(-part / math.log(2.0) for part in (data, model, self.evidence().log_evidence)))


def _evidence_of(factor: Factor, counted: Any, belief: ParameterDistribution, keep: np.ndarray) -> float:
    """The evidence of some of a factor's columns."""
    family, width = factor.family, int(counted.n_columns)
    if len(keep) == 0:
        return 0.0
    if len(keep) == width:
        return float(np.sum(family.log_evidence(belief, counted)))
    if family.columnwise and not getattr(belief, "accepts_any_family", False):
        return float(np.asarray(family.log_evidence(belief, counted))[..., keep].sum())
    if isinstance(belief, NormalInverseWishart | NormalInverseGamma):
        part = _marginal_belief(belief, keep, width)
        return float(np.sum(family.log_evidence(part, counted.columns(keep))))
    raise EstimateError(
        f"the evidence of the columns {factor.columns} of {family!r} cannot be told column by column, but some of them "
        "are left out.\n    Fit the models without those columns."
    )


def _marginal_belief(belief: Any, keep: np.ndarray, width: int) -> Any:
    """The belief about some of the columns."""

    def some(part: np.ndarray) -> np.ndarray:
        return part if part.ndim == 0 or part.shape[-1] == 1 else part[..., keep]

    if isinstance(belief, NormalInverseGamma):
        return belief.replace(
            **{name: some(getattr(belief, name)) for name in ("location", "strength", "shape", "scale")}
        )
    # The block of an inverse-Wishart matrix is inverse-Wishart with as many fewer degrees of freedom as columns went.
    return belief.replace(
        location=some(belief.location),
        degrees_of_freedom=belief.degrees_of_freedom - (width - len(keep)),
        scale=belief.scale[..., keep[:, None], keep],
    )
