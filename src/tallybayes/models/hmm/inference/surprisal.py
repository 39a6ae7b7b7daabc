"""How strange every step of a sequence is, given the steps before it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of, chunk_rows, factor_cells
from tallybayes.families._shared.cdf import mixture_cdf
from tallybayes.kernels import hmm_messages
from tallybayes.models.hmm.inference.decoding import open_sequences_for_query, warn_impossible
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.typing import Rows

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
    from tallybayes.models.hmm.hmm_parameters import HMMParameters


@answering
def surprisal(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[np.ndarray]:
    """−log p(step | steps before it) of every step, in nats; inf from an impossible step on.

    A sequence's add up to −`score_samples`. Where the end is modeled, that it went on is part of a step, and what is
    left of the sum is −log p(end). A missing step is no surprise: 0.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of ndarray of shape (steps,)
    """
    sequences, chain = (
        open_sequences_for_query(model, X, lengths, sequence, order),
        model._estimated_hmm.checked_parameters,
    )
    _, told = _predicted(chain, sequences)
    _warn_lost(model, sequences, told)
    return [told[a:b] for a, b in pairwise(sequences.offsets.tolist())]


@answering
def tail_proba(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[np.ndarray]:
    """The probability, given the steps before it, of a cell as far out as the one that is there: small is strange.

    Of a number, twice the smaller of p(at most it) and p(at least it), at most 1; of a label, the probability of all
    labels that are no more probable. Under the model at most a share α of the cells has less than α, and of measured
    cells exactly that share: whatever the state was, so that one threshold does for all steps. Each column by itself.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of ndarray of shape (steps, columns)
        NaN for missing cells, for columns of text or of the counts of words, and from an impossible step on.
    """
    sequences, chain = (
        open_sequences_for_query(model, X, lengths, sequence, order),
        model._estimated_hmm.checked_parameters,
    )
    n_steps, (shares, told) = int(sequences.offsets[-1]), _predicted(chain, sequences)
    with np.errstate(invalid="ignore"):
        shares = np.exp(shares - shares.max(axis=1, keepdims=True, initial=-np.inf))
        shares /= shares.sum(axis=1, keepdims=True)  # that it went on is known; NaN after what could not be
    _warn_lost(model, sequences, told)
    shares, columns = chain.component_proba(shares), []
    for part, domains, (factor, statistics) in zip(
        chain.scored, chain.domains, model._estimated_hmm.emissions, strict=True
    ):
        family, names = part.family, factor.columns
        if names[0] in model._selected_words or family.is_bag_of_words:
            width = 1 if names[0] in model._selected_words else int(statistics.n_columns)
            columns.append(np.full((n_steps, width), np.nan))
            continue
        cells = (
            factor_cells(sequences.table, names, family, domains, chain.unseen)
            if n_steps
            else np.zeros((0, len(names)))
        )
        width = int(part.parameters.table.shape[-1]) if family.cell_type == "codes" else int(statistics.n_columns)
        alone = family.order > 0  # a step given those before it: of its own cells the last
        found = np.zeros((0, 1 if alone else len(names) if family.cell_type == "codes" else width))
        step = chunk_rows(chain.n_emission_groups, width)
        for start in range(0, n_steps, step):
            rows, mine = chunk_of(cells, slice(start, start + step)), shares[start : start + step]
            tails = (
                _tail_of_labels(part, mine, rows)
                if family.cell_type == "codes"
                else _tail(part, statistics, mine, rows)
            )
            found = np.concatenate([found, tails])
        columns.append(found)
    whole = np.concatenate(columns, axis=1)
    return [whole[a:b] for a, b in pairwise(sequences.offsets.tolist())]


def _tail(part: FactorScorer, statistics: Any, shares: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Twice the smaller tail of every number."""
    family = part.family
    at_most = mixture_cdf(family, part.parameters, shares, cells)
    if family.order:
        return np.minimum(2 * np.minimum(at_most, 1 - at_most), 1.0)
    below = at_most if family.is_continuous else mixture_cdf(family, part.parameters, shares, cells - 1)
    found = np.minimum(2 * np.minimum(at_most, 1 - below), 1.0)
    if len(part.constant):
        same = cells[:, part.constant] == family.pooled_value(statistics)[part.constant]
        found[:, part.constant] = np.where(np.isnan(shares[:, :1]), np.nan, same)
    return np.where(np.isnan(cells), np.nan, np.maximum(found, 0.0))


def _tail_of_labels(part: FactorScorer, shares: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """What all labels have together that are no more probable than the one that is there."""
    columns = []
    for place, table in enumerate(part.parameters.segments.split(part.parameters.table)):
        p, known = shares @ table, codes[:, place] >= 0
        mine = np.take_along_axis(p, np.maximum(codes[:, place], 0)[:, None], axis=1)
        # Labels that are equally probable may differ in their last digits.
        tail = np.where(p <= mine * (1 + 1e-12), p, 0.0).sum(axis=1) / p.sum(axis=1)
        columns.append(np.where(known, np.minimum(tail, 1.0), np.nan))
    return np.stack(columns, axis=-1)


def _predicted(chain: HMMParameters, sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
    """log p(state, and that it goes on | steps before) of every step, and −log p(step | steps before)."""
    parts = [hmm_messages.one_step_predictive(*asked) for asked in chain.kernel_arguments(sequences)]
    shares = np.concatenate([np.zeros((0, len(chain.start))), *(each for each, _ in parts)])
    return shares, -np.concatenate([np.zeros(0), *(each for _, each in parts)])


def _warn_lost(model: HiddenMarkovModel, sequences: Sequences, told: np.ndarray) -> None:
    """A warning names the first sequence that becomes impossible."""
    lost = np.concatenate([[0], np.cumsum(np.isposinf(told))])[sequences.offsets]
    warn_impossible(model, sequences, np.where(np.diff(lost) > 0, -np.inf, 0.0))
