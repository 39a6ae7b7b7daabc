"""Held-out sequences of a hidden Markov model: their states and log-likelihoods under models fitted on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.base import clone

from tallybayes.estimation.resampling.folds import Folds
from tallybayes.estimation.resampling.held_out import HoldOut
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.fitting.hmm_fit import count_states
from tallybayes.models.hmm.fitting.training_sequences import SequenceInput, TrainingSequences, read_states, take_labels
from tallybayes.models.hmm.hmm_options import TopologyOptions
from tallybayes.models.hmm.inference.decoding import run_kernel, viterbi_path
from tallybayes.models.hmm.query_sequences import SequenceReader
from tallybayes.models.inputs.sequences import Sequences, step_weights
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


class SequencePredictions(NamedTuple):
    """Predictions about sequences.

    Attributes
    ----------
    log_proba : ndarray of shape (steps, states)
        log p(state | whole sequence).
    log_likelihood : ndarray of shape (sequences,)
        log p(sequence).
    path : ndarray of int of shape (steps,)
        The indices of the states of the Viterbi path.
    """

    log_proba: np.ndarray
    log_likelihood: np.ndarray
    path: np.ndarray


class HeldSequences(HoldOut):
    """Held-out sequences of a hidden Markov model.

    If states are given, sequences without any state are training data of every fold. Otherwise every sequence can be
    held out.
    """

    def __init__(
        self, model: HiddenMarkovModel, data: Rows, target: Labels | None, sample_weight: SampleWeights
    ) -> None:
        self.full_model: HiddenMarkovModel = clone(model).fit(data, target, sample_weight=sample_weight)
        self.sequences, self.labels = SequenceInput(data, target).open(model.gaps)
        self.weight = step_weights(sample_weight, self.sequences)
        self.states = states_of(self.full_model, self.labels, self.sequences)
        self.codes = np.zeros(self.sequences.n_sequences, dtype=np.intp)
        if self.labels is not None:
            known = np.concatenate([[0], np.cumsum(self.states >= 0)])[self.sequences.offsets]
            ignored = np.zeros(len(self.codes), bool) if self.weight is None else self.weight == 0
            self.codes[(np.diff(known) == 0) & (self.sequences.lengths > 0) & ~ignored] = -1

    def count(self, chosen: np.ndarray) -> Tally:
        """Return the tally of the chosen sequences."""
        model = self.full_model
        hmm = SequenceReader.of(model).hmm
        steps, part = self.sequences.some(chosen)
        codes = np.maximum(self.states[steps], 0)  # only sequences of weight 0 have unknown states
        emissions = hmm.names.emissions_in(model.tally_)
        data = TrainingSequences(part, codes, hmm.states, self.some_weight(chosen), hmm.names, emissions)
        return count_states(TopologyOptions.of(model), data, model.tally_)

    def fit(self, model: HiddenMarkovModel, chosen: np.ndarray) -> HiddenMarkovModel:
        """Fit the model on the chosen sequences."""
        steps, part = self.sequences.some(chosen)
        table = part.with_column_of_gaps(model.gaps)
        labels = take_labels(self.labels, steps)
        return model.fit(table, labels, part.lengths, sample_weight=self.some_weight(chosen))

    def score(self, folds: Folds) -> SequencePredictions:
        """Return the predictions about every sequence by the model without its fold; NaN if it is not predicted."""
        n_steps = int(self.sequences.offsets[-1])
        out = SequencePredictions(
            np.full((n_steps, len(self.full_model.states_)), np.nan),
            np.full(len(self.codes), np.nan),
            np.zeros(n_steps, np.intp),
        )
        for test, model in self.models(folds):
            steps, part = self.sequences.some(test)
            out.log_proba[steps], out.log_likelihood[test], out.path[steps] = predict_sequences(model, part)
        return out


def predict_sequences(model: HiddenMarkovModel, sequences: Sequences) -> SequencePredictions:
    """Return the predictions of a model; uniform states, and a path in the first state, for an impossible sequence."""
    reader = SequenceReader.of(model)
    sequences = reader.read(sequences)
    parameters = reader.hmm.checked_parameters
    n_states = len(parameters.start)
    smoothed, log_likelihood = run_kernel(parameters, kernels.posterior, sequences)
    path = viterbi_path(parameters, sequences)
    proba = np.concatenate([np.zeros((0, n_states)), *smoothed])
    proba[~(proba.sum(axis=1) > 0)] = 1 / max(n_states, 1)
    with np.errstate(divide="ignore"):
        return SequencePredictions(np.log(proba / proba.sum(axis=1, keepdims=True)), log_likelihood, path)


def states_of(model: HiddenMarkovModel, labels: Labels | None, sequences: Sequences) -> np.ndarray:
    """Return the index of the given state of every time step; −1 if it is missing or no state of the model."""
    codes, domain = read_states(labels)
    if codes is None:
        return np.full(int(sequences.offsets[-1]), -1)
    return np.append(SequenceReader.of(model).hmm.states.positions_of(domain.levels), -1)[codes]
