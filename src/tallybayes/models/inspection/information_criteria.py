"""Marginal likelihood, information criteria and description lengths of fitted models."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.counting import check_weight
from tallybayes.errors import EstimateError
from tallybayes.estimation.distribution_fit import DescriptionLength
from tallybayes.estimation.estimated_factors import EstimatedFactors, LogEvidence


def evidence_of(model: Any, without: Collection[Any] = ()) -> LogEvidence:
    """Return the log evidence of a fitted model, and the excluded columns: constant ones and those of `without`."""
    evidence = _of_rows(model, "evidence").evidence(without)
    return evidence._replace(log_evidence=evidence.log_evidence + model._fixed_log_prob)


def log_evidence(model: Any) -> float:
    """Return the log marginal likelihood (log evidence) of the counted rows in nats, parameters integrated out."""
    return evidence_of(model).log_evidence


def description_length(model: Any) -> DescriptionLength:
    """Return the description lengths of the rows: data given the MAP parameters, parameters, and by the evidence."""
    data, density, evidence = _of_rows(model, "code length").description_length()
    fixed = -model._fixed_log_prob / np.log(2.0)
    return DescriptionLength(data + fixed, density, evidence + fixed)


def bic(model: Any) -> float:
    """Return the Bayesian information criterion, −2 log p(rows) + parameters · log(weight): lower is better."""
    return -2.0 * max_or_em_log_likelihood(model, "BIC") + model._all_factors.bic_penalty


def evidence_bound(model: Any) -> float:
    """Return a lower bound (ELBO) of the log evidence of the observed data, in nats: higher is better."""
    check_is_fitted(model, "tally_")
    model._require_counts("the evidence")
    model._check_has_likelihood_measures("evidence")
    if model.tally_.soft and model._em_result is None:
        raise _counts_changed()
    entropy = 0.0 if model._em_result is None else model._em_result.entropy
    return float(model._all_factors.evidence().log_evidence + model._fixed_log_prob + entropy)


def aic(model: Any) -> float:
    """Return Akaike's information criterion, −2 log p(rows) + 2 · parameters."""
    return -2.0 * max_or_em_log_likelihood(model, "AIC") + 2.0 * n_parameters(model)


def n_parameters(model: Any) -> int:
    """Return the number of free parameters, including class or state probabilities unless they are fixed."""
    check_is_fitted(model, "tally_")
    return int(model._all_factors.n_parameters)


def weighted_sum(log_probs: np.ndarray, sample_weight: Any) -> float:
    """Return the weighted sum of log probabilities; rows of weight 0 are skipped, even if impossible."""
    weight = check_weight(sample_weight, len(log_probs))
    return float(log_probs.sum() if weight is None else (weight[weight > 0] * log_probs[weight > 0]).sum())


def resolved_priors(model: Any) -> dict[Any, Any]:
    """Return the resolved prior of every column or block of columns; ``prior=`` accepts it."""
    check_is_fitted(model, "tally_")
    model._require_counts("a prior")
    return model._resolved_priors()


def priors_by_column(fitted: EstimatedFactors) -> dict[Any, Any]:
    """Return the prior distributions of factors by column."""
    names = [factor.columns for factor, _ in fitted.pairs]
    return {
        columns if len(columns) > 1 else columns[0]: prior
        for columns, prior in zip(names, fitted.prior_distributions, strict=True)
    }


def max_or_em_log_likelihood(model: Any, what: str) -> float:
    """Return log p(rows) at the maximum likelihood estimate, or at the end of EM."""
    check_is_fitted(model, "tally_")
    if not model.tally_.soft:
        return float(_of_rows(model, what).max_log_likelihood + model._fixed_log_prob)
    if model._em_result is None:
        raise _counts_changed()
    return float(model._em_result.log_likelihood)


def _counts_changed() -> EstimateError:
    """Return the error of counts that have changed since EM."""
    return EstimateError(
        "the counts have changed since EM ended, so its likelihood is unknown.\n    Fit all rows at once."
    )


def _of_rows(model: Any, what: str) -> EstimatedFactors:
    """Return the estimated factors; raise EstimateError if their statistics are expectations of EM."""
    check_is_fitted(model, "tally_")
    model._require_counts(f"the {what}")
    model._check_has_likelihood_measures(what)
    if model.tally_.soft:
        raise EstimateError(
            f"this {type(model).__name__} has no {what}: EM filled in unobserved values, so its counts are "
            f"expectations, not rows.\n    {model._soft_counts_hint}"
        )
    return model._all_factors
