"""What speaks for a number of states: how unsure EM is of them, and the BIC of sequences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.estimation.em.em_objective import varying_columns
from tallybayes.models.inspection.information_criteria import max_or_em_log_likelihood, n_parameters

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
    from tallybayes.models.hmm.hmm_parameters import HMMParameters


def bic(model: HiddenMarkovModel) -> float:
    """The Bayesian information criterion, −2 log p(sequences) + parameters · log(steps): lower is better.

    At the most likely parameters, or where EM ended; with labels, of sequences and states. All parameters are taken to
    be learned from all steps, as other packages do, also those of the start, of which every sequence shows one.
    """
    return -2.0 * max_or_em_log_likelihood(model, "BIC") + n_parameters(model) * math.log(
        max(model._total_weight(), 1.0)
    )


def entropy_of_states(chain: HMMParameters, expected: Sequence[Any], log_likelihood: float) -> float:
    """How unsure a chain is of the states, and of the cells it had to expect, given the sequences, in nats.

    The entropy of q = p(all that was not seen | sequences) is log p(sequences) − E_q[log p(all)], and the latter
    follows from the statistics that the chain expects: of starts, transitions, perhaps ends and components, and of the
    emissions.
    """
    start, transition, end = chain.arguments
    total = _expected_log(expected[0].table, start) + _expected_log(expected[1].table, transition)
    if end is not None:
        total += _expected_log(expected[2].total[:, 0], end)
    n_parts = len(expected) - len(chain.scored)
    if chain.mixed is not None:
        owner, number, log_share = chain.mixed
        total += _expected_log(expected[n_parts - 1].table[owner, number], log_share)
    for scored, counted in zip(chain.scored, expected[n_parts:], strict=True):
        used, parameters = varying_columns(counted, scored.constant), scored.parameters
        if not used.n_columns:
            continue
        if len(scored.constant):  # only measured columns have no spread
            mean, spread = (np.asarray(part) for part in parameters)
            kept = np.setdiff1d(np.arange(mean.shape[-1]), scored.constant)
            narrow = spread[..., kept] if spread.ndim == mean.ndim else spread[..., kept[:, None], kept]
            parameters = type(parameters)(mean[..., kept], narrow)
        total += float(np.sum(scored.family.log_likelihood(parameters, used)))
    return max(log_likelihood - total, 0.0)


def _expected_log(counts: np.ndarray, log_share: np.ndarray) -> float:
    """Σ n log p, where nothing is expected of what cannot be."""
    return float(np.sum(np.where(counts > 0, counts * np.where(counts > 0, log_share, 0.0), 0.0)))
