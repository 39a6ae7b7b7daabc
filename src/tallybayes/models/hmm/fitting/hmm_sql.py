"""Sequences in a database: it counts initial states, transitions, ends and emissions of labeled sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.open_source import open_source
from tallybayes.data.table import open_table
from tallybayes.errors import DataError
from tallybayes.models.hmm.chain_names import PARTS, ChainNames, in_tally_order
from tallybayes.models.hmm.fitting.training_sequences import SequenceInput
from tallybayes.models.hmm.lagged_columns import orders_of
from tallybayes.models.inputs.columns import Columns, first_rows, read_columns
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.data.sql.query_source import Query
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

T = TypeVar("T")


class DatabaseSteps(NamedTuple):
    """Rows of a database as time steps of sequences, all with known states.

    Attributes
    ----------
    query : Query
    state, sequence, order : str
        The columns of the state, of the sequence identifier, and of the position in the sequence.
    """

    query: Query
    state: str
    sequence: str
    order: str

    def columns_of(self, model: HiddenMarkovModel) -> tuple[ChainNames, Columns]:
        """Return the names of the parts, and the columns with their families."""
        table = open_table(first_rows(model, self.query)).without(self.sequence).without(self.order)
        labels = table.column(self.state)
        table = table.without(self.state)
        names = ChainNames.unused(table.columns)
        table = with_parts_of_dates(table.with_column(names.state, labels), keep=[names.state])
        return names, read_columns(model.columns, table, [names.state], names.state)

    def counted(self, end_state: bool, names: ChainNames, emissions: list[Factor]) -> Tally | None:
        """Return the tally of all time steps; None if the database cannot count them."""
        columns = [name for factor in emissions for name in factor.columns]
        if orders_of(emissions):
            return None  # lagged values are added in memory
        if {str(name).lower() for name in columns} & {name.lower() for name in names[: len(PARTS)] if name}:
            return None  # column names of databases are not case-sensitive
        pairs, steps = self.query.in_sequences(self.state, self.sequence, self.order, names.to_dict())
        chain = names.factors(ends=end_state)
        tally = pairs.count(chain, None, names.schema, None)
        if tally is not None and emissions:
            emitted = steps.count(emissions, None, names.schema, None)
            tally = None if emitted is None else tally | emitted
        return None if tally is None else in_tally_order(tally, len(chain))


def in_database(given: SequenceInput, count: Callable[[DatabaseSteps], T | None]) -> T | None:
    """Return a function of the time steps if a database can count them: known states, distinct positions; else None."""
    X, y, lengths, sequence, order, sample_weight = given
    if not (isinstance(y, str) and isinstance(sequence, str) and isinstance(order, str)):
        return None
    query: Any = open_source(X) if lengths is None and sample_weight is None else None
    if query is None or not query.counts:
        return None
    with query.snapshot():
        return count(DatabaseSteps(query, y, sequence, order)) if _are_complete(query, y, sequence, order) else None


def _are_complete(query: Query, state: str, sequence: str, order: str) -> bool:
    """Return whether states and positions are known. Raise DataError for rows without a sequence or equal positions."""
    query.check_columns((state, sequence, order))
    n_rows, n_sequences, n_orders, n_states, is_text = query.count_complete_steps(state, sequence, order)
    if n_sequences < n_rows:
        raise DataError(
            f"column {sequence!r} is missing in {n_rows - n_sequences} rows of {query.name}; expected a sequence for "
            "every row.\n    Exclude those rows in the query."
        )
    if not n_rows or n_orders < n_rows or n_states < n_rows or is_text:
        return False
    duplicate = query.first_duplicate_step(sequence, order)
    if duplicate is not None:
        raise DataError(
            f"column {order!r} has {duplicate[1]!r} twice in sequence {duplicate[0]!r}; expected distinct positions.\n"
            "    Rows of a database have no order: name a column that determines it."
        )
    return True
