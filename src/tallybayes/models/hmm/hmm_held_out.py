"""Sequences held out of a hidden Markov model: whole ones, their states told and their density."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tallybayes.data.table import Table
from tallybayes.estimation.resampling.held_out import HoldOut, Split
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.fitting.hmm_fit import count_more, open_labeled, read_states
from tallybayes.models.hmm.inference.decoding import read_steps, run_kernel
from tallybayes.models.inputs.sequences import Sequences, step_weights
from tallybayes.tally.tally import Tally


class SequencePredictions(NamedTuple):
    """log p(state | whole sequence), (steps, states), log p(sequence), and every step's place on the best path."""

    log_proba: np.ndarray
    log_likelihood: np.ndarray
    path: np.ndarray


class HeldSequences(HoldOut):
    """Sequences of a hidden Markov model.

    Where there are states, sequences without any are learned from by all; without states, every one can be held out.
    """

    def __init__(self, model: Any, data: Any, target: Any, sample_weight: Any) -> None:
        self.full_model = clone(model).fit(data, target, sample_weight=sample_weight)
        sequences, self.labels = open_labeled(data, target, None, None, None)
        self.sequences = sequences.with_gaps(model.gaps)
        self.weight = step_weights(sample_weight, self.sequences)
        self.states = states_of(self.full_model, self.labels, self.sequences)
        self.codes = np.zeros(self.sequences.n_sequences, dtype=np.intp)
        if self.labels is not None:
            known = np.concatenate([[0], np.cumsum(self.states >= 0)])[self.sequences.offsets]
            absent = np.zeros(len(self.codes), bool) if self.weight is None else self.weight == 0
            self.codes[(np.diff(known) == 0) & (self.sequences.lengths > 0) & ~absent] = -1

    def count(self, chosen: np.ndarray) -> Tally:
        """The tally of some of the sequences."""
        steps, part = self.sequences.some(chosen)
        states = np.maximum(self.states[steps], 0)  # only sequences without weight lack any
        return count_more(
            self.full_model, part, states, self.full_model._estimated_hmm.states, self.some_weight(chosen)
        )

    def fit(self, model: Any, chosen: np.ndarray) -> Any:
        """The model fitted on some of the sequences."""
        steps, part = self.sequences.some(chosen)
        labels = None if self.labels is None else Table({"state": self.labels}).rows(steps).columns["state"]
        table = part.with_column_of_gaps(model.gaps)
        return model.fit(table, labels, part.lengths, sample_weight=self.some_weight(chosen))

    def score(self, splits: list[Split]) -> SequencePredictions:
        """The answers about every sequence by the model that has not seen it; NaN for those that were not held out."""
        n_steps, n_states = int(self.sequences.offsets[-1]), len(self.full_model.states_)
        out = SequencePredictions(
            np.full((n_steps, n_states), np.nan), np.full(len(self.codes), np.nan), np.zeros(n_steps, np.intp)
        )
        for test, model in self.models(splits):
            steps, part = self.sequences.some(test)
            out.log_proba[steps], out.log_likelihood[test], out.path[steps] = predict_sequences(model, part)
        return out


def predict_sequences(model: Any, sequences: Sequences) -> SequencePredictions:
    """What a model says of sequences; of the states of an impossible one, nothing: its path is the first one."""
    sequences = read_steps(model, sequences)
    shares, log_likelihood = run_kernel(model._estimated_hmm.checked_parameters, kernels.posterior, sequences)
    paths, _ = run_kernel(model._estimated_hmm.checked_parameters, kernels.viterbi, sequences)
    path = np.maximum(np.concatenate([np.zeros(0, dtype=np.int64), *paths]), 0)
    smoothed = np.concatenate([np.zeros((0, len(model.states_))), *shares])
    smoothed[~(smoothed.sum(axis=1) > 0)] = 1 / max(smoothed.shape[1], 1)
    with np.errstate(divide="ignore"):
        return SequencePredictions(np.log(smoothed / smoothed.sum(axis=1, keepdims=True)), log_likelihood, path)


def states_of(model: Any, labels: Any, sequences: Sequences) -> np.ndarray:
    """The state of every step, by number; −1 where it is not known, or not to the model."""
    codes, domain = read_states(labels)
    if codes is None:
        return np.full(int(sequences.offsets[-1]), -1)
    return np.append(model._estimated_hmm.states.positions_of(domain.levels), -1)[codes]
