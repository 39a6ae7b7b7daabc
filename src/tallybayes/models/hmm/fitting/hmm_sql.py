"""Labeled sequences that lie in a database, which counts their starts, transitions, ends and steps by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.open_source import open_source
from tallybayes.data.table import open_table
from tallybayes.errors import DataError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.models.hmm.factor_names import PARTS, free_names, state_schema
from tallybayes.models.hmm.lagged_columns import orders_of
from tallybayes.models.inputs.columns import Columns, first_rows, read_columns
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.data.sql.query_source import Query
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


class DatabaseSteps(NamedTuple):
    """The rows of a database that are the steps of sequences, every one with its state."""

    query: Query
    state: str
    sequence: str
    order: str

    def columns_of(self, model: HiddenMarkovModel) -> tuple[dict[str, str], Columns]:
        """What is called how, and which columns are read in which family."""
        table = open_table(first_rows(model, self.query)).without(self.sequence).without(self.order)
        labels = table._column(self.state)
        names = free_names(table.without(self.state))
        table = table.without(self.state).with_column(names["state"], labels)
        table = with_parts_of_dates(table, keep=[names["state"]])
        return names, read_columns(model.columns, table, [names["state"]], names["state"])

    def counted(self, model: HiddenMarkovModel, names: dict[str, str], emissions: list[Factor]) -> Tally | None:
        """The tally of all steps; None where the database cannot count them alone."""
        columns = [name for factor in emissions for name in factor.columns]
        if orders_of(emissions):
            return None  # what lies before a step is laid beside it here
        if {str(name).lower() for name in columns} & {names[part].lower() for part in PARTS}:
            return None  # databases do not tell capitals apart
        moves, steps = self.query.in_sequences(self.state, self.sequence, self.order, names)
        schema = state_schema(names)
        factors = [Factor(names["start"], (), Categorical()), Factor(names["to"], (names["from"],), Categorical())]
        ends = [Factor(names["end"], (names["state"],), Bernoulli())] if model.end_state else []
        moved = moves.count([*factors, *ends], None, schema, None)
        shown = steps.count(emissions, None, schema, None) if emissions else None
        if moved is None or (shown is None and emissions):
            return None
        found = moved if shown is None else moved | shown
        parts = dict(zip(found.factors, found.statistics, strict=True))
        ordered = [*factors, *emissions, *ends]
        return Tally(ordered, [parts[factor] for factor in ordered], found.domains, schema)


def steps_there(X: Any, y: Any, lengths: Any, sequence: Any, order: Any, sample_weight: Any) -> DatabaseSteps | None:
    """The steps, where a database can count them: each in its place, and every state known; None if they are read."""
    query: Any = open_source(X)
    if query is None or not query.counts or lengths is not None or sample_weight is not None:
        return None
    if not all(isinstance(name, str) for name in (y, sequence, order)):
        return None
    query.check_columns((y, sequence, order))
    n_rows, n_apart, n_orders, n_states, is_text = query.count_complete_steps(y, sequence, order)
    if n_apart < n_rows:
        raise DataError(
            f"{n_rows - n_apart} rows of {query.name} have no {sequence!r}; expected one for every step.\n"
            "    Leave those rows out in the query."
        )
    if not n_rows or n_orders < n_rows or n_states < n_rows or is_text:
        return None
    twice = query.first_duplicate_step(sequence, order)
    if twice is not None:
        raise DataError(
            f"two steps of sequence {twice[0]!r} have the same {order!r}, {twice[1]!r}; expected one place for each.\n"
            "    The rows of a database have no order of their own: name a column that tells all steps apart."
        )
    return DatabaseSteps(query, y, sequence, order)
