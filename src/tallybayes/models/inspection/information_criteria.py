"""Marginal likelihood, information criteria and description lengths of fitted models."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.counting import check_weight
from tallybayes.errors import EstimateError
from tallybayes.estimation.distribution_fit import DescriptionLength
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.estimated_factors import EstimatedFactors, LogEvidence
from tallybayes.typing import SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.base import Model


class LikelihoodMeasures(NamedTuple):
    """What the likelihood measures of a fitted model are computed from.

    Attributes
    ----------
    factors : EstimatedFactors
        All factors of the model.
    fixed_log_prob : float
        The part of the log-likelihood that has no estimated parameters.
    soft : bool
        Whether the statistics are expectations of EM.
    em_result : EMSummary or None
        The summary of EM; None without EM, or if the counts have changed since.
    none : str
        The beginning of the error of a measure that expectations do not have, and its hint.
    """

    factors: EstimatedFactors
    fixed_log_prob: float
    soft: bool
    em_result: EMSummary | None
    none: str

    @property
    def counted(self) -> EstimatedFactors:
        """The factors; raise EstimateError if their statistics are expectations of EM."""
        if self.soft:
            raise EstimateError(self.none)
        return self.factors

    @property
    def em(self) -> EMSummary | None:
        """The summary of EM; None if the rows were counted without EM."""
        if self.soft and self.em_result is None:
            raise EstimateError(
                "the counts have changed since EM ended, so its likelihood is unknown.\n    Fit all rows at once."
            )
        return self.em_result if self.soft else None

    def evidence(self, without: Collection[Any] = ()) -> LogEvidence:
        """Return the log evidence, and the excluded columns: constant ones and those of `without`."""
        log_evidence, excluded = self.counted.evidence(without)
        return LogEvidence(log_evidence + self.fixed_log_prob, excluded)

    def description_length(self) -> DescriptionLength:
        """Return the description lengths of the rows: given the MAP parameters, parameters, and by the evidence."""
        data, density, evidence = self.counted.description_length()
        fixed = -self.fixed_log_prob / np.log(2.0)
        return DescriptionLength(data + fixed, density, evidence + fixed)

    def evidence_bound(self) -> float:
        """Return a lower bound (ELBO) of the log evidence of the observed data, in nats: higher is better."""
        entropy = 0.0 if self.em is None else self.em.entropy
        return float(self.factors.evidence().log_evidence + self.fixed_log_prob + entropy)

    @property
    def max_log_likelihood(self) -> float:
        """log p(rows) at the maximum likelihood estimate, or at the end of EM."""
        if self.em is not None:
            return float(self.em.log_likelihood)
        return float(self.factors.max_log_likelihood + self.fixed_log_prob)

    @property
    def bic(self) -> float:
        """The Bayesian information criterion, −2 log p(rows) + parameters · log(weight): lower is better."""
        return -2.0 * self.max_log_likelihood + self.factors.bic_penalty

    @property
    def aic(self) -> float:
        """Akaike's information criterion, −2 log p(rows) + 2 · parameters: lower is better."""
        return -2.0 * self.max_log_likelihood + 2.0 * self.factors.n_parameters


def evidence_of(model: Model, without: Collection[Any] = ()) -> LogEvidence:
    """Return the log evidence of a fitted model, and the excluded columns: constant ones and those of `without`."""
    return model._likelihood_measures("evidence").evidence(without)


def weighted_sum(log_probs: np.ndarray, sample_weight: SampleWeights) -> float:
    """Return the weighted sum of log probabilities; rows of weight 0 are skipped, even if impossible."""
    weight = check_weight(sample_weight, len(log_probs))
    return float(log_probs.sum() if weight is None else (weight[weight > 0] * log_probs[weight > 0]).sum())
