"""Whole sequences held out: a hidden Markov model of the others is the tally of all less theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from tallybayes.errors import LabelError
from tallybayes.insight.evaluation import Evaluation
from tallybayes.insight.folds import group_folds
from tallybayes.kernels import chain as kernels
from tallybayes.models.chains.decoding import answers
from tallybayes.models.chains.hidden_markov import HiddenMarkovModel
from tallybayes.models.chains.learning import count_more, open_labelled, read_states
from tallybayes.progress import progress
from tallybayes.tally.tally import Tally


class SequenceValidation(Evaluation):
    """How well the states of sequences are told by a model of other sequences; made by `leave_one_out`.

    An `Evaluation` of the steps' smoothed probabilities.

    Attributes
    ----------
    model : HiddenMarkovModel
        Of all sequences.
    fold : ndarray of shape (sequences,)
    log_likelihood : ndarray of shape (sequences,)
        log p(sequence) by the model of the others.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3], [3, 3]]
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"], ["hot", "hot"]]
    >>> found = tb.leave_one_out(tb.HiddenMarkovModel(emission=tb.Categorical()), diary, weather)
    >>> round(found.accuracy.value, 3), found.log_likelihood.round(2).tolist()
    (0.727, [-3.27, -4.33, -3.63, -2.18])
    """

    def __init__(
        self,
        model: HiddenMarkovModel,
        codes: np.ndarray,
        log_proba: np.ndarray,
        weight: np.ndarray | None,
        fold: np.ndarray,
        log_likelihood: np.ndarray,
    ) -> None:
        super().__init__(model.states_, codes, log_proba, weight=weight)
        self.model, self.fold, self.log_likelihood = model, fold, log_likelihood


def validate_sequences(
    model: HiddenMarkovModel, X: Any, y: Any, sample_weight: Any, n_folds: int | None, groups: Any, random_state: Any
) -> SequenceValidation:
    """Hold every sequence out by itself, or folds of them; priors and levels are those of all."""
    whole = clone(model).fit(X, y, sample_weight=sample_weight)
    counted = whole._counted
    sequences, labels = open_labelled(X, y, None, None, None)
    codes, domain = read_states(labels)
    if codes is None or whole.tally_.soft:
        raise LabelError("every step needs its state to be held out.\n    Leave unlabelled sequences out.")
    # Steps of sequences without weight may have other states, or none: they count as the first.
    codes = np.maximum(np.append(counted.states.positions_of(domain.levels), -1)[codes], 0)
    n_sequences = sequences.n_sequences
    fold = np.arange(n_sequences)
    if n_folds is not None:
        fold = group_folds(np.arange(n_sequences) if groups is None else groups, n_sequences, n_folds, random_state)
    log_proba = np.empty((len(codes), len(whole.states_)))
    score = np.empty(n_sequences)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    for number in progress(range(int(fold.max(initial=-1)) + 1), "holding sequences out"):
        chosen = np.flatnonzero(fold == number)
        steps, part = sequences.some(chosen)
        some = None if weight is None else weight[chosen]
        gone = count_more(whole, part, codes[steps], counted.states, some).over(whole.tally_)
        pairs = zip(whole.tally_.statistics, gone.statistics, strict=True)
        rest = Tally(whole.tally_.factors, [a - b for a, b in pairs], whole.tally_.domains, whole.tally_.schema)
        shares, score[chosen] = answers(counted.over(rest).answering, kernels.posterior, part)
        smoothed = np.concatenate(shares)
        impossible = ~(smoothed.sum(axis=1) > 0)
        smoothed[impossible] = 1 / smoothed.shape[1]  # nothing is known of the states of an impossible sequence
        with np.errstate(divide="ignore"):
            log_proba[steps] = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
    per_step = None if weight is None else np.repeat(weight, sequences.lengths)
    return SequenceValidation(whole, codes, log_proba, per_step, fold, score)
