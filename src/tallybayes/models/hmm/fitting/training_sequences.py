"""Training data of a hidden Markov model: sequences of time steps and, where known, their states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.models.hmm.factor_names import emission_given, free_names
from tallybayes.models.hmm.lagged_columns import emission_factors, with_lags
from tallybayes.models.hmm.mixture_emissions import most_components
from tallybayes.models.inputs.columns import read_columns
from tallybayes.models.inputs.sequences import Sequences, open_labels, open_sequences, step_weights
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import Columns, Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


class TrainingSequences(NamedTuple):
    """Sequences with their known states.

    Attributes
    ----------
    sequences : Sequences
        Without the columns of states and gaps; lagged values beside autoregressive columns.
    codes : ndarray of int of shape (steps,), or None
        The index of the state of each time step, −1 if it is unknown; None if no states are given.
    states : Domain
        The known states.
    weight : ndarray of shape (sequences,), or None
    names : dict
        The names of the state and end columns in the tally; see `factor_names`.
    emissions : list of Factor
        The emission factors.
    """

    sequences: Sequences
    codes: np.ndarray | None
    states: Domain
    weight: np.ndarray | None
    names: dict[str, str]
    emissions: list[Factor]

    @property
    def is_labeled(self) -> bool:
        """Whether the states of all time steps are known."""
        return self.codes is not None and len(self.codes) > 0 and bool((self.codes >= 0).all())


def read_training_sequences(
    model: HiddenMarkovModel,
    X: Rows,
    y: Labels | None,
    lengths: npt.ArrayLike | None,
    sequence: str | None,
    order: str | None,
    sample_weight: SampleWeights,
    initial: HiddenMarkovModel | None,
) -> tuple[TrainingSequences, dict[Name, str]]:
    """Return the training data of `HiddenMarkovModel.fit`, and the dropped columns with the reasons."""
    sequences, labels = open_labeled(X, y, lengths, sequence, order)
    sequences = sequences.with_gaps(model.gaps)
    sequences = sequences._replace(table=with_parts_of_dates(sequences.table))
    weight = step_weights(sample_weight, sequences)
    if weight is not None and not weight.all():  # a sequence of weight 0 is ignored
        sequences, labels, weight = _positive_weight(sequences, labels, weight)
    names = free_names(sequences.table, components=most_components(model.components) > 1)
    table = sequences.table if labels is None else sequences.table.with_column(names["state"], labels)
    columns: Columns = model.columns
    if initial is not None:
        from tallybayes.estimation.em.em_objective import columns_from_initial

        columns = columns_from_initial(columns, initial, sequences.table.columns)
    given = None if labels is None else names["state"]
    choice = read_columns(columns, table, [names["state"]], given, weight)
    emissions = emission_factors(choice.blocks, emission_given(names))
    codes, states = read_states(labels)
    data = TrainingSequences(with_lags(sequences, emissions), codes, states, weight, names, emissions)
    return data, choice.dropped_columns


def _positive_weight(sequences: Sequences, labels: object, weight: np.ndarray) -> tuple[Sequences, Any, np.ndarray]:
    """Return the sequences of positive weight, their labels and their weights."""
    if not weight.any():
        raise DataError("sample_weight is 0 for every sequence; expected at least one positive weight.")
    steps, kept = sequences.some(np.flatnonzero(weight))
    if labels is not None:
        labels = Table({"state": labels}).rows(steps).columns["state"]
    return kept, labels, weight[weight > 0]


def open_labeled(
    X: Rows, y: Labels | None, lengths: npt.ArrayLike | None, sequence: str | None, order: str | None
) -> tuple[Sequences, Any]:
    """Return the sequences without the column of their states, and the states as one column; None without states."""
    sequences = open_sequences(X, lengths, sequence, order)
    if y is None:
        return sequences, None
    labels = open_labels(y, sequences, X)
    if isinstance(y, str):
        sequences = sequences._replace(table=sequences.table.without(y))
    return sequences, labels


def read_states(labels: object) -> tuple[np.ndarray | None, Domain]:
    """Return the index of the state of each time step, −1 if it is missing, and the states; None without labels."""
    if labels is None:
        return None, Domain([], "state", is_sorted=True)
    encoded, (local,) = Table({"state": labels}).levels(["state"], lambda _: True)
    codes = np.asarray(encoded.columns[0]).astype(np.int64)
    used = np.unique(codes[codes >= 0])
    domain = Domain([local.levels[k] for k in used], "state", is_sorted=True)
    positions = np.full(len(local.levels) + 1, -1)
    positions[used] = domain.positions_of([local.levels[k] for k in used])
    return positions[codes], domain
