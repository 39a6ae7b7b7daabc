"""Input of queries: sequences as a fitted hidden Markov model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.indicator_columns import with_unknown
from tallybayes.errors import DataError
from tallybayes.families.family import Family
from tallybayes.models.hmm.fitting.training_sequences import open_labeled
from tallybayes.models.hmm.lagged_columns import with_lags
from tallybayes.models.inputs.features import as_rows
from tallybayes.models.inputs.input_format import bound_texts
from tallybayes.models.inputs.invalid_cells import mask_invalid_cells
from tallybayes.models.inputs.sequences import Sequences, open_sequences
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name
from tallybayes.typing import Labels, Rows

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


def open_sequences_for_query(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None,
    sequence: str | None,
    order: str | None,
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
    sequences = open_sequences(as_rows(X, model), lengths, sequence, order, requested=True).with_gaps(model.gaps)
    if sequences.gaps is not None and not allow_gaps:
        raise DataError(
            f"column {model.gaps!r} has unobserved time steps, and this method needs every time step.\n"
            "    Insert the unobserved steps as missing values."
        )
    table = sequences.table
    if not table.n_rows:  # sequences without time steps have no columns either
        return sequences
    hmm = model._estimated_hmm
    names = [name for factor, _ in hmm.emissions for name in factor.columns]
    absent = [name for name in names if not table.has(name)]
    if absent:
        raise DataError.unknown_column(absent, table.names)
    sequences = read_steps(model, sequences._replace(table=with_parts_of_dates(table, names)))
    table = sequences.table
    indicators = [name for name in names if name not in table.names]
    if indicators and hmm.meaning_of_unseen != "error":
        levels = {name: model.tally_.domains[str(name)] for factor, _ in hmm.emissions for name in factor.level_columns}
        table = with_unknown(table, indicators, levels if hmm.meaning_of_unseen == "missing" else {})
    return sequences if table is sequences.table else sequences._replace(table=table)


def open_labeled_query(
    model: HiddenMarkovModel,
    X: Rows,
    y: Labels,
    lengths: npt.ArrayLike | None,
    sequence: str | None,
    order: str | None,
) -> tuple[Sequences, Any]:
    """Return the sequences of a query, and the given states of all time steps as one column."""
    sequences, labels = open_labeled(X, y, lengths, sequence, order)
    return read_steps(model, sequences.with_gaps(model.gaps)), labels


def read_steps(model: HiddenMarkovModel, sequences: Sequences) -> Sequences:
    """Return the sequences with word counts of text columns, and with lagged values of autoregressive columns."""
    if not sequences.table.n_rows:
        return sequences
    hmm = model._estimated_hmm
    columns = _emission_columns(hmm)
    table = mask_invalid_cells(bound_texts(model, sequences.table), columns, model.unseen)
    read = sequences if table is sequences.table else sequences._replace(table=table)
    return with_lags(read, [factor for factor, _ in hmm.emissions])


def _emission_columns(hmm: EstimatedHMM) -> list[tuple[tuple[Name, ...], Family, Sequence[Domain]]]:
    """Return columns, family and domains of every emission factor."""
    parameters = hmm.checked_parameters
    pairs = zip(parameters.scored, parameters.domains, strict=True)
    return [(scorer.factor.columns, scorer.family, domains) for scorer, domains in pairs]
