"""SQL: the probabilities of a classifier's classes as one query, to be asked where the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallybayes.data.sql.databases import DuckDB, PostgreSQL, SQLite
from tallybayes.data.sql.dialects import Dialect
from tallybayes.data.sql.query_source import QUERY, as_rows
from tallybayes.data.sql.spark import SparkText
from tallybayes.data.sql.sql_names import truncated
from tallybayes.errors import DataError, ExportError
from tallybayes.export.portable_scorer import PortableScorer, Tree
from tallybayes.export.sql_one_dependence import SelectPairs, SelectTree
from tallybayes.export.sql_select import Select

DIALECTS: dict[str, type[Dialect]] = {
    "duckdb": DuckDB,
    "postgresql": PostgreSQL,
    "sqlite": SQLite,
    "spark": SparkText,
}


def dialect_named(name: Any) -> Dialect:
    """A dialect, by its name."""
    if not isinstance(name, str) or name not in DIALECTS:
        expected = " or ".join(map(repr, DIALECTS))
        raise DataError.wrong_type("dialect", repr(name), expected)
    return DIALECTS[name](None)


def source_of(dialect: Dialect, table: Any) -> str:
    """What stands after FROM: a query, or a name, whose parts are quoted."""
    if isinstance(table, str):
        if QUERY.match(table):
            return as_rows(dialect, table)
        table = table.split(".")
    parts = list(table) if isinstance(table, list | tuple) else []
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise DataError.wrong_type("table", repr(table), "the name of a table, a tuple of its parts, or a query")
    return ".".join(map(dialect.quote, parts))


def write_sql(scores: PortableScorer, dialect: Dialect, table: Any, keep: Sequence[str], proba: bool) -> str:
    """One SELECT: the columns kept, the prediction and, if asked for, the probability of every class."""
    for name in [*keep, *(cell.column for cell in scores.cells)]:
        if "\0" in str(name):
            raise ExportError(f"the column {name!r} holds the character NUL, which no name in SQL has.")
    whole: dict[str, Any] = {}
    for name in dict.fromkeys(str(name) for name in [*keep, *(cell.column for cell in scores.cells)]):
        other = whole.setdefault(truncated(name, dialect.most_bytes), name)
        if other != name:
            raise ExportError(
                f"the columns {other!r} and {name!r} begin with the same {dialect.most_bytes} bytes, after which the "
                "database cuts names; expected shorter names.\n    Rename the columns and fit the model again."
            )
    kind = Select if scores.pairs is None else SelectTree if isinstance(scores.pairs, Tree) else SelectPairs
    return kind(scores, dialect).text(source_of(dialect, table), keep, proba)
