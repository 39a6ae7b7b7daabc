"""How well a model fits what it has counted: evidence, information criteria, code lengths.

A model takes these functions as its own. It has its factors after estimating, ``_all_factors``; what of its rows' log
probability is given and not estimated, ``_fixed``; and what to try where counts are expected, ``_counted_instead``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.counting import check_weight
from tallybayes.errors import EstimateError
from tallybayes.estimation.distribution_fit import DescriptionLength
from tallybayes.estimation.estimated_factors import EstimatedFactors, LogEvidence


def evidence_of(model: Any, without: Collection[Any] = ()) -> LogEvidence:
    """The log evidence of a fitted model, and the columns that have no part in it: those without spread, and these."""
    found = _of_rows(model, "evidence").evidence(without)
    return found._replace(log_evidence=found.log_evidence + model._fixed_log_prob)


def log_evidence(model: Any) -> float:
    """log p(all rows counted) in nats, with every parameter integrated out: the log marginal likelihood.

    It is the sum, row after row, of the log probability of each, its label or state included, under the model learned
    from those before it. The parameters are integrated under ``prior_``, whichever ``estimate`` predicts (``"map"`` has
    default priors of its own), and so are the class probabilities of a classifier: under ``class_prior`` where it is a
    `Dirichlet`, else under ``Dirichlet(1)`` (by default ``Dirichlet(2)`` for ``"map"``); those that are given are taken
    as they are. The levels of a column are taken as known, and so is what default priors read from the data. Columns
    that are the same in every row have no finite density and are left out. A missing cell leaves its row out of the
    factors that need it. `tb.compare` turns evidence into Bayes factors.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> model = tb.NaiveBayes(tb.Bernoulli(), prior=1).fit([[1], [1], [0]], ["a", "a", "b"])
    >>> labels, cells = 2 / 4 / 3 / 2, [1 / 3, 1 / 2]             # under Dirichlet(1) and Beta(1, 1)
    >>> bool(np.isclose(model.log_evidence(), np.log(labels * cells[0] * cells[1])))
    True
    """
    return evidence_of(model).log_evidence


def description_length(model: Any) -> DescriptionLength:
    """Code lengths of the rows: given the MAP parameters, of the density of these, and by the evidence.

    Returns
    -------
    Bits
        In bits; the density term may be negative, for a density is no probability.
    """
    data, density, evidence = _of_rows(model, "code length").description_length()
    fixed = -model._fixed_log_prob / np.log(2.0)
    return DescriptionLength(data + fixed, density, evidence + fixed)


def bic(model: Any) -> float:
    """The Bayesian information criterion, −2 log p(rows) + parameters · log(weight): lower is better.

    At the most likely parameters, or where EM ended.
    """
    return -2.0 * max_or_em_log_likelihood(model, "BIC") + model._all_factors.bic_penalty


def evidence_bound(model: Any) -> float:
    """A lower bound of the log evidence of what was observed, in nats: higher is better.

    With q what EM believes of what was not observed (components, states), log p(rows) ≥ log ∫ exp E_q[log p(all | θ)]
    p(θ) dθ + the entropy of q. The integral is the closed form that complete rows have, at the expected statistics,
    under ``prior_``. Where nothing was left to expect, it is the evidence itself.
    """
    check_is_fitted(model, "tally_")
    model._require_counts("the evidence")
    model._check_has_likelihood_measures("evidence")
    if model.tally_.soft and model._em_result is None:
        raise _counts_changed()
    entropy = 0.0 if model._em_result is None else model._em_result.entropy
    return float(model._all_factors.evidence().log_evidence + model._fixed_log_prob + entropy)


def aic(model: Any) -> float:
    """Akaike's information criterion, −2 log p(rows) + 2 · parameters: lower is better. Likelihood as for ``bic_``."""
    return -2.0 * max_or_em_log_likelihood(model, "AIC") + 2.0 * n_parameters(model)


def n_parameters(model: Any) -> int:
    """The number of free parameters, those of class or state probabilities included unless they are given."""
    check_is_fitted(model, "tally_")
    return int(model._all_factors.n_parameters)


def weighted_sum(each: np.ndarray, sample_weight: Any) -> float:
    """The sum of log probabilities; a row without weight may be impossible."""
    weight = check_weight(sample_weight, len(each))
    return float(each.sum() if weight is None else (weight[weight > 0] * each[weight > 0]).sum())


def resolved_priors(model: Any) -> dict[Any, Any]:
    """The prior of every column, or tuple of columns that are one block, as resolved; ``prior=`` takes it."""
    check_is_fitted(model, "tally_")
    model._require_counts("a prior")
    return model._resolved_priors()


def priors_by_column(fitted: EstimatedFactors) -> dict[Any, Any]:
    """The beliefs of factors by their columns."""
    names = [factor.columns for factor, _ in fitted.pairs]
    return {
        one if len(one) > 1 else one[0]: prior for one, prior in zip(names, fitted.prior_distributions, strict=True)
    }


def max_or_em_log_likelihood(model: Any, what: str) -> float:
    """log p(rows) at the most likely parameters, or at those where EM ended."""
    check_is_fitted(model, "tally_")
    if not model.tally_.soft:
        return float(_of_rows(model, what).max_log_likelihood + model._fixed_log_prob)
    if model._em_result is None:
        raise _counts_changed()
    return float(model._em_result.log_likelihood)


def _counts_changed() -> EstimateError:
    return EstimateError("the counts have changed since EM ended, so its measures are gone.\n    Fit all rows at once.")


def _of_rows(model: Any, what: str) -> EstimatedFactors:
    """The factors after estimating, if their statistics are of rows, not expected."""
    check_is_fitted(model, "tally_")
    model._require_counts(f"the {what}")
    model._check_has_likelihood_measures(what)
    if model.tally_.soft:
        raise EstimateError(
            f"this {type(model).__name__} has no {what}: EM filled in what was missing, so its counts are "
            f"expectations, not rows.\n    {model._soft_counts_hint}"
        )
    return model._all_factors
