"""Text columns of the automatic classifier: which columns are text, and the families that its candidates count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.text import Text
from tallybayes.models.inputs.distinct_values import text_columns
from tallybayes.tally.factor import Name

_TEXT = Text()
_FAMILIES = {
    "words": Text(binary=True),
    "frequent words": Text(min_count=3, binary=True),
    "presence of words": Text(Bernoulli()),
    "pairs of words": Text(ngram_range=(1, 2), binary=True),
    "characters": Text(ngram_range=(5, 5), characters=True, min_count=2, binary=True),
}


def with_texts(table: Table, target: Name, columns: Mapping[Any, Any] | None) -> Table:
    """Return the table with its text columns as texts: the declared ones, and strings of several words.

    Parameters
    ----------
    table : Table
    target : name
    columns : {name: Text}, optional
        The declared text columns. The key ``...`` with "auto" is ignored.
    """
    declared = {} if columns is None else dict(columns)
    if declared.get(..., "auto") == "auto":
        declared.pop(..., None)
    wrong = next((name for name, family in declared.items() if getattr(family, "cell_type", "") != "text"), None)
    if wrong is not None:
        raise DataError.wrong_type(
            f"the family of column {wrong!r}",
            repr(declared[wrong]),
            "tb.Text()",
            "AutoClassifier selects the families of all other columns.",
        )
    absent = [name for name in declared if name not in table.columns or name == target]
    if absent:
        raise DataError.unknown_column(absent, [name for name in table.columns if name != target])
    found = dict.fromkeys(text_columns(table, target), _TEXT) | declared
    return read_text_columns(table, found)


def read_text_columns(table: Table, families: Mapping[Name, Text]) -> Table:
    """Return the table with some columns as texts."""
    if not families:
        return table
    read = {name: table.texts(name, family) for name, family in families.items()}
    return table.replaced({**table.columns, **read})


def text_families(declared: Text) -> dict[str, Text]:
    """Return the families of the candidates of a text column, by what they count: one if it is declared in detail."""
    return _FAMILIES if declared == _TEXT else {"text": declared}
