"""Unlabeled sequences in large files: EM reads them in blocks of whole sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.counting import count
from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.source_batches import grouped_batches
from tallybayes.data.table import open_table
from tallybayes.families.protocols.em_support import columnwise_family
from tallybayes.models.hmm.chain_names import ChainNames
from tallybayes.models.hmm.fitting.training_sequences import SequenceInput, TrainingSequences, sampled_sequences
from tallybayes.models.hmm.lagged_columns import emission_factors, with_lags
from tallybayes.models.inputs.columns import first_rows, read_columns
from tallybayes.models.inputs.sequences import Sequences, concatenated, open_sequences
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

_IN_MEMORY = 1 << 28  # bytes of rows that are read once and kept


class StoredSequences(NamedTuple):
    """Sequences in a file, each in consecutive rows. Iteration reads them in blocks.

    Attributes
    ----------
    source : Source
    sequence : str
    order : str, optional
        The columns of the sequence identifier, and of the position in the sequence.
    gaps : name, optional
        The column of gap lengths.
    lengths : ndarray of int of shape (sequences,)
    emissions : list of Factor
    """

    source: Source
    sequence: str
    order: str | None
    gaps: Name | None
    lengths: np.ndarray
    emissions: list[Factor]

    def __iter__(self) -> Iterator[Sequences]:  # type: ignore[override]
        """Yield blocks of whole sequences, in the order of the rows."""
        for rows in grouped_batches(self.source, self.sequence):
            sequences = open_sequences(rows, None, self.sequence, self.order).with_gaps(self.gaps)
            yield with_lags(sequences.with_table(with_parts_of_dates(sequences.table)), self.emissions)

    def pooled(self) -> Tally:
        """Return the emission statistics of all sequences in one group, without products of columns."""
        factors = [Factor(factor.columns, (), columnwise_family(factor.family)) for factor in self.emissions]
        total: Any = None
        for sequences in self:
            tally = count(sequences.table, factors, like=total)
            total = tally if total is None else total + tally
        return total

    def sample(self) -> Sequences:
        """Return the sequences from which EM is initialized."""
        chosen = sampled_sequences(self.lengths)
        parts = []
        first = 0
        for sequences in self:
            last = first + sequences.n_sequences
            parts.append(sequences.some(chosen[(chosen >= first) & (chosen < last)] - first)[1])
            first = last
        return concatenated(parts)


def open_stored(model: HiddenMarkovModel, given: SequenceInput) -> TrainingSequences | None:
    """Return unlabeled sequences that are too large for memory; None if `read_training_sequences` should read them.

    It also reads those with mixture or text emissions, and those that are not in consecutive rows.
    """
    X, y, lengths, sequence, order, weight = given
    if sequence is None or any(part is not None for part in (y, lengths, weight, model.components)):
        return None
    source = open_source(X)
    if source is None or source.counts:
        return None
    source.keep()
    found = _lengths(source, sequence)
    rows = source.first_batch()
    if found is None or found.sum() * rows.nbytes < _IN_MEMORY * len(rows):
        return None
    table = open_table(first_rows(model, source))
    for name in (sequence, order, model.gaps):
        table = table if name is None else table.without(name)
    names = ChainNames.unused(table.columns)
    choice = read_columns(model.columns, with_parts_of_dates(table), [])
    emissions = emission_factors(choice.blocks, names.given)
    if any(factor.family.word_family is not None for factor in emissions):
        return None
    stored = StoredSequences(source, sequence, order, model.gaps, found, emissions)
    sample = stored.sample()
    codes, states = np.full(sample.table.n_rows, -1), Domain([], "state", is_sorted=True)
    dropped = choice.dropped_columns
    return TrainingSequences(sample, codes, states, None, names, emissions, dropped, stored, stored.pooled())


def _lengths(source: Source, sequence: str) -> np.ndarray | None:
    """Return the length of every sequence; None if one is not in consecutive rows."""
    lengths = []
    known = set[object]()
    source.check_columns([sequence])
    for rows in grouped_batches(source, sequence, [sequence]):
        codes, domain = open_table(rows).observed(sequence)
        if not known.isdisjoint(domain.levels):
            return None
        known.update(domain.levels)
        lengths.append(np.bincount(codes + 1)[1:])
    return np.concatenate(lengths)
