"""Surprisal of every time step given the steps before it, and tail probabilities of its cells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.estimation.scoring.factor_scorer import chunk_of, chunk_rows, factor_cells
from tallybayes.families._shared.cdf import mixture_cdf
from tallybayes.families.protocols.degenerate_estimates import pooled_value
from tallybayes.kernels import hmm_messages
from tallybayes.models.hmm.inference.decoding import warn_impossible
from tallybayes.models.inputs.sequences import Sequences

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedEmission, EstimatedHMM
    from tallybayes.models.hmm.hmm_parameters import HMMParameters


def surprisal(hmm: EstimatedHMM, sequences: Sequences) -> list[np.ndarray]:
    """Return −log p(step | steps before it) of every time step, in nats."""
    _, values = _one_step_predictive(hmm, sequences)
    return sequences.split(values)


def tail_proba(hmm: EstimatedHMM, sequences: Sequences) -> list[np.ndarray]:
    """Return the tail probability of every cell, given the time steps before it."""
    log_proba, _ = _one_step_predictive(hmm, sequences)
    with np.errstate(invalid="ignore"):
        proba = np.exp(log_proba - log_proba.max(axis=1, keepdims=True, initial=-np.inf))
        proba /= proba.sum(axis=1, keepdims=True)  # given that the sequence continues; NaN after an impossible step
    proba = hmm.checked_parameters.component_proba(proba)
    columns = [
        _factor_tails(hmm.checked_parameters, sequences, replace(emission, scorer=scorer), proba)
        for scorer, emission in zip(hmm.checked_parameters.scored, hmm.estimated_emissions, strict=True)
    ]
    return sequences.split(np.concatenate(columns, axis=1))


def _factor_tails(
    parameters: HMMParameters, sequences: Sequences, emission: EstimatedEmission, proba: np.ndarray
) -> np.ndarray:
    """Return the tail probabilities of one factor, (steps, columns); NaN for text and bags of words."""
    family = emission.family
    n_steps = int(sequences.offsets[-1])
    width = len(emission.columns) if emission.is_coded else int(emission.statistics.n_columns)
    if emission.is_text or family.is_bag_of_words or not n_steps:
        return np.full((n_steps, 1 if emission.is_text or family.order else width), np.nan)
    cells = factor_cells(sequences.table, emission.columns, family, emission.domains, parameters.unseen)
    n_cells = int(emission.scorer.parameters.table.shape[-1]) if emission.is_coded else width
    chunk_size = chunk_rows(parameters.n_emission_groups, n_cells)
    tails = _categorical_tails if emission.is_coded else _numeric_tails
    chunks = [slice(start, start + chunk_size) for start in range(0, n_steps, chunk_size)]
    return np.concatenate([tails(emission, proba[chunk], chunk_of(cells, chunk)) for chunk in chunks])


def _numeric_tails(emission: EstimatedEmission, proba: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return twice the smaller tail of every number, under the mixture of the states."""
    scorer = emission.scorer
    family = emission.family
    at_most = mixture_cdf(family, scorer.parameters, proba, cells)
    if family.order:
        return np.minimum(2 * np.minimum(at_most, 1 - at_most), 1.0)
    below = at_most if family.is_continuous else mixture_cdf(family, scorer.parameters, proba, cells - 1)
    tails = np.minimum(2 * np.minimum(at_most, 1 - below), 1.0)
    if len(scorer.constant):
        equal = cells[:, scorer.constant] == pooled_value(family, emission.statistics)[scorer.constant]
        tails[:, scorer.constant] = np.where(np.isnan(proba[:, :1]), np.nan, equal)
    return np.where(np.isnan(cells), np.nan, np.maximum(tails, 0.0))


def _categorical_tails(emission: EstimatedEmission, proba: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the total probability of all levels that are at most as probable as the observed one."""
    columns = []
    for index, (_, _, table) in enumerate(emission.level_tables()):
        p = proba @ table
        observed = np.take_along_axis(p, np.maximum(codes[:, index], 0)[:, None], axis=1)
        # The tolerance keeps levels of equal probability together despite rounding.
        tail = np.where(p <= observed * (1 + 1e-12), p, 0.0).sum(axis=1) / p.sum(axis=1)
        columns.append(np.where(codes[:, index] >= 0, np.minimum(tail, 1.0), np.nan))
    return np.stack(columns, axis=-1)


def _one_step_predictive(hmm: EstimatedHMM, sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(state, sequence continues | steps before) and the surprisal of every step; warn if one is inf."""
    parameters = hmm.checked_parameters
    parts = [hmm_messages.one_step_predictive(block) for block in parameters.kernel_inputs(sequences)]
    log_proba = np.concatenate([np.zeros((0, len(parameters.start))), *(proba for proba, _ in parts)])
    values = -np.concatenate([np.zeros(0), *(log_prob for _, log_prob in parts)])
    n_impossible = np.concatenate([[0], np.cumsum(np.isposinf(values))])[sequences.offsets]
    warn_impossible(hmm, sequences, np.where(np.diff(n_impossible) > 0, -np.inf, 0.0))
    return log_proba, values
