"""Training data of a hidden Markov model: sequences of time steps and, where known, their states."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.models.hmm.chain_names import ChainNames
from tallybayes.models.hmm.lagged_columns import emission_factors, with_lags
from tallybayes.models.inputs.columns import read_columns
from tallybayes.models.inputs.sequences import Sequences, open_labels, open_sequences, step_weights
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.statistics.totals import Totals
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import Columns, Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.hmm.fitting.stored_sequences import StoredSequences
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
    from tallybayes.tally.tally import Tally

_SAMPLE = 1 << 18  # time steps from which EM is initialized


class SequenceInput(NamedTuple):
    """Sequences as a user passes them to `HiddenMarkovModel.fit`."""

    X: Rows
    y: Labels | None = None
    lengths: npt.ArrayLike | None = None
    sequence: str | None = None
    order: str | None = None
    sample_weight: SampleWeights = None

    def open(self, gaps: Name | None) -> tuple[Sequences, Any]:
        """Return the sequences without the columns of states and of gap lengths, and the states as one column."""
        sequences = open_sequences(self.X, self.lengths, self.sequence, self.order)
        labels = None if self.y is None else open_labels(self.y, sequences, self.X)
        if isinstance(self.y, str):
            sequences = sequences.with_table(sequences.table.without(self.y))
        return sequences.with_gaps(gaps), labels


class TrainingSequences(NamedTuple):
    """Sequences with their known states, and the factors to fit to them.

    Attributes
    ----------
    sequences : Sequences
        Without the columns of states and gaps; with lagged values beside autoregressive columns.
    codes : ndarray of int of shape (steps,)
        The index of the state of each time step, −1 if it is unknown.
    states : Domain
    weight : ndarray of shape (sequences,), or None
    names : ChainNames
    emissions : list of Factor
        The emission factors.
    dropped_columns : mapping
        The columns that are not used, with the reasons.
    stored : StoredSequences, optional
        All sequences, in a file; `sequences` is then a sample of them.
    pooled : Tally, optional
        The emission statistics of all of these, in one group.
    """

    sequences: Sequences
    codes: np.ndarray
    states: Domain
    weight: np.ndarray | None
    names: ChainNames
    emissions: list[Factor]
    dropped_columns: Mapping[Name, str] = MappingProxyType({})
    stored: StoredSequences | None = None
    pooled: Tally | None = None

    @property
    def sequence_weight(self) -> np.ndarray:
        """The weight of each sequence."""
        return np.ones(self.sequences.n_sequences) if self.weight is None else self.weight

    @property
    def step_weight(self) -> np.ndarray:
        """The weight of each time step."""
        return np.repeat(self.sequence_weight, self.sequences.lengths)

    @property
    def is_labeled(self) -> bool:
        """Whether the states of all time steps are known."""
        return len(self.codes) > 0 and bool((self.codes >= 0).all())

    @property
    def is_complete(self) -> bool:
        """Whether nothing is unobserved that the factors need: no state, component, time step or cell."""
        is_observed = self.names.component is None and self.sequences.gaps is None
        return self.is_labeled and is_observed and not rows_with_missing(self.sequences.table, self.emissions).any()

    def codes_in(self, states: Domain) -> np.ndarray:
        """Return the index of the state of each time step in a domain that has all states."""
        return np.append(states.positions_of(self.states.levels), -1)[self.codes]

    def with_states(self, states: Domain) -> TrainingSequences:
        """Return the same sequences with a domain that has more states."""
        return self._replace(codes=self.codes_in(states), states=states)


def read_training_sequences(
    given: SequenceInput,
    columns: Columns,
    gaps: Name | None,
    initial: HiddenMarkovModel | None,
    *,
    components: bool,
) -> TrainingSequences:
    """Return the training data: columns with their families, known states, positive weights.

    Parameters
    ----------
    given : SequenceInput
    columns : value of the parameter of `HiddenMarkovModel`
    gaps : name, optional
        The column of gap lengths.
    initial : HiddenMarkovModel, optional
        The model whose columns are used if `columns` names none.
    components : bool
        Whether states have mixture components.
    """
    sequences, labels = given.open(gaps)
    sequences = sequences.with_table(with_parts_of_dates(sequences.table))
    weight = step_weights(given.sample_weight, sequences)
    if weight is not None and not weight.all():  # a sequence of weight 0 is ignored
        if not weight.any():
            raise DataError("sample_weight is 0 for every sequence; expected at least one positive weight.")
        steps, sequences = sequences.some(np.flatnonzero(weight))
        labels = take_labels(labels, steps)
        weight = weight[weight > 0]
    names = ChainNames.unused(sequences.table.columns, components=components)
    table = sequences.table if labels is None else sequences.table.with_column(names.state, labels)
    if initial is not None:
        from tallybayes.estimation.em.em_objective import columns_from_initial

        columns = columns_from_initial(columns, initial, sequences.table.columns)
    state = None if labels is None else names.state
    choice = read_columns(columns, table, [] if state is None else [state], state, weight)
    emissions = emission_factors(choice.blocks, names.given)
    codes, states = read_states(labels)
    codes = np.full(int(sequences.offsets[-1]), -1) if codes is None else codes
    sequences = with_lags(sequences, emissions)
    return TrainingSequences(sequences, codes, states, weight, names, emissions, choice.dropped_columns)


def sampled_sequences(lengths: np.ndarray) -> np.ndarray:
    """Return the sequences from which EM is initialized: all, or a random sample, by a fixed seed, of many steps."""
    if lengths.sum() <= _SAMPLE:
        return np.arange(len(lengths))
    order = np.random.default_rng(0).permutation(len(lengths))
    n_chosen = int(np.searchsorted(np.cumsum(lengths[order]), _SAMPLE)) + 1
    return np.sort(order[:n_chosen])


def take_labels(labels: object, steps: np.ndarray) -> Any:
    """Return the labels of some time steps; None without labels."""
    return None if labels is None else Table({"state": labels}).rows(steps).columns["state"]


def read_states(labels: object) -> tuple[np.ndarray | None, Domain]:
    """Return the index of the state of each time step, −1 if it is missing, and the states; None without labels."""
    if labels is None:
        return None, Domain([], "state", is_sorted=True)
    codes, domain = Table({"state": labels}).observed("state", True)
    return codes.astype(np.int64), domain


# ---- Statistics of the states -----------------------------------------------------------------------------------


def chain_statistics(
    start: np.ndarray, transition: np.ndarray, goes_on: np.ndarray, end: np.ndarray, *, ends: bool
) -> list[Statistics]:
    """Return the statistics of initial states, transitions and, if modeled, ends.

    Parameters
    ----------
    start, transition : ndarray of shape (states,), (states, states)
        The weights of first states and of transitions.
    goes_on, end : ndarray of shape (states,)
        The weights of the time steps that are not the last one of their sequence, and of those that are.
    """
    statistics: list[Statistics] = [Counts(start), Counts(transition)]
    return statistics + [Totals((goes_on + end)[:, None], end[:, None], failures=goes_on[:, None])] * ends


def count_path(
    path: np.ndarray, sequences: Sequences, step_weight: np.ndarray, n_states: int, *, ends: bool
) -> list[Statistics]:
    """Return the `chain_statistics` of the states of all time steps, −1 ignored."""
    first, last, _ = sequences.places()
    weight = np.where((path[:-1] >= 0) & (path[1:] >= 0), step_weight[1:], 0.0)  # of the transition to each next step
    weight[first[first > 0] - 1] = 0.0
    if sequences.gaps is not None:
        weight[sequences.gaps[1:] > 0] = 0.0

    def weights_of(steps: np.ndarray | slice) -> np.ndarray:
        """Return the total weight of some time steps by state."""
        return np.bincount(path[steps] + 1, step_weight[steps], n_states + 1)[1:]

    pairs = np.bincount(np.maximum(path[:-1] * n_states + path[1:], 0), weight, n_states**2)
    end = weights_of(last)
    goes_on = weights_of(slice(None)) - end if ends else end
    return chain_statistics(weights_of(first), pairs.reshape(n_states, n_states), goes_on, end, ends=ends)
