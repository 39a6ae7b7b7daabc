"""Input of queries: sequences as a fitted hidden Markov model reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.indicator_columns import with_unknown
from tallybayes.data.text_columns import WordReader
from tallybayes.errors import DataError
from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
from tallybayes.models.hmm.fitting.training_sequences import SequenceInput
from tallybayes.models.hmm.lagged_columns import with_lags
from tallybayes.models.inputs.features import as_rows
from tallybayes.models.inputs.invalid_cells import mask_invalid_cells
from tallybayes.models.inputs.sequences import Sequences, open_sequences
from tallybayes.tally.factor import Name
from tallybayes.typing import Labels, Rows

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


@dataclass(frozen=True, eq=False)
class SequenceReader:
    """The reader of sequences for queries about a fitted model.

    Parameters
    ----------
    model : HiddenMarkovModel
    hmm : EstimatedHMM
    word_readers : mapping from column to WordReader
        The readers of the columns of text.
    """

    model: HiddenMarkovModel
    hmm: EstimatedHMM
    word_readers: Mapping[Name, WordReader]

    @classmethod
    def of(cls, model: HiddenMarkovModel) -> SequenceReader:
        """Return the reader of a model, with its current estimates."""
        return cls(model, model._estimated_hmm, model._text_readers)

    def open(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        sequence: str | None = None,
        order: str | None = None,
        *,
        allow_gaps: bool = True,
    ) -> Sequences:
        """Return the sequences of a query.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `HiddenMarkovModel.fit`.
        allow_gaps : bool, default True
            Whether unobserved time steps (``gaps=``) are allowed. If not, they raise DataError.
        """
        gaps = self.model.gaps
        rows = as_rows(X, self.model)
        sequences = open_sequences(rows, lengths, sequence, order, requested=True).with_gaps(gaps)
        if sequences.gaps is not None and not allow_gaps:
            raise DataError(
                f"column {gaps!r} has unobserved time steps, and this method needs every time step.\n"
                "    Insert the unobserved steps as missing values."
            )
        table = sequences.table
        if not table.n_rows:  # sequences without time steps have no columns either
            return sequences
        emissions = self.hmm.emission_factors
        names = [name for factor in emissions for name in factor.columns]
        absent = [name for name in names if not table.has(name)]
        if absent:
            raise DataError.unknown_column(absent, table.names)
        sequences = self.read(sequences.with_table(with_parts_of_dates(table, names)))
        indicators = [name for name in names if name not in sequences.table.names]
        unseen = self.hmm.meaning_of_unseen
        if not indicators or unseen == "error":
            return sequences
        levels = {name: self.hmm.tally.domains[str(name)] for factor in emissions for name in factor.level_columns}
        return sequences.with_table(with_unknown(sequences.table, indicators, levels if unseen == "missing" else {}))

    def open_labeled(
        self, X: Rows, y: Labels, lengths: npt.ArrayLike | None, sequence: str | None, order: str | None
    ) -> tuple[Sequences, Any]:
        """Return the sequences of a query, and the given states of all time steps as one column."""
        sequences, labels = SequenceInput(X, y, lengths, sequence, order).open(self.model.gaps)
        return self.read(sequences), labels

    def read(self, sequences: Sequences) -> Sequences:
        """Return the sequences with word counts of text columns, and with lagged values of autoregressive columns."""
        table = sequences.table
        if not table.n_rows:
            return sequences
        if self.word_readers:
            words = {name: reader.read(table.column(name), name) for name, reader in self.word_readers.items()}
            table = table.replaced({**table.columns, **words})
        self.hmm.checked_parameters  # noqa: B018 raises an error if a state has no data
        specs = [(e.columns, e.family, e.domains) for e in self.hmm.estimated_emissions]
        table = mask_invalid_cells(table, specs, self.model.unseen)
        return with_lags(sequences.with_table(table), self.hmm.emission_factors)
