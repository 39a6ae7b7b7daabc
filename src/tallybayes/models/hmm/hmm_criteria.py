"""Model selection criteria of hidden Markov models: BIC, and the entropy term of the evidence lower bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.estimation.em.em_objective import varying_columns, without_columns

if TYPE_CHECKING:
    from tallybayes.models.hmm.hmm_parameters import HMMParameters
    from tallybayes.models.inspection.information_criteria import LikelihoodMeasures


def bic(measures: LikelihoodMeasures, n_steps: float) -> float:
    """Return the BIC, with the number of time steps as the sample size."""
    return -2.0 * measures.max_log_likelihood + measures.factors.n_parameters * math.log(max(n_steps, 1.0))


def entropy_of_states(parameters: HMMParameters, expected: Sequence[Any], log_likelihood: float) -> float:
    """Return the entropy of the unobserved states and cells given the sequences, in nats.

    With q = p(unobserved | sequences), the entropy is log p(sequences) − E_q[log p(all)]. The expectation is a function
    of the expected statistics.

    Parameters
    ----------
    expected : sequence of Statistics
        Of initial states, transitions, ends and components (if modeled), then of the emissions.
    """
    start, transition, end = parameters.arguments
    total = _expected_log(expected[0].table, start) + _expected_log(expected[1].table, transition)
    if end is not None:
        total += _expected_log(expected[2].total[:, 0], end)
    n_parts = len(expected) - len(parameters.scored)
    if parameters.mixed is not None:
        components, log_weight = parameters.mixed
        total += _expected_log(expected[n_parts - 1].table[components.exists], log_weight)
    for scorer, statistics in zip(parameters.scored, expected[n_parts:], strict=True):
        varying = varying_columns(statistics, scorer.constant)
        if varying.n_columns:
            point = without_columns(scorer, scorer.constant).parameters
            total += float(np.sum(scorer.family.log_likelihood(point, varying)))
    return max(log_likelihood - total, 0.0)


def _expected_log(counts: np.ndarray, log_prob: np.ndarray) -> float:
    """Return Σ n log p, with 0 · log 0 = 0."""
    positive = counts > 0
    return float(counts[positive] @ log_prob[positive])
