"""Export of a classifier to SQL: one query that returns the class probabilities of every row."""

from __future__ import annotations

from typing import Any

from tallybayes.data.sql.databases import DuckDB, PostgreSQL, SQLite
from tallybayes.data.sql.dialects import Dialect
from tallybayes.data.sql.query_source import QUERY, as_rows
from tallybayes.data.sql.spark import SparkText
from tallybayes.data.sql.sql_names import truncated
from tallybayes.errors import DataError, ExportError
from tallybayes.export.portable_scorer import PortableScorer
from tallybayes.export.sql_query import SqlQuery
from tallybayes.messages import did_you_mean
from tallybayes.typing import Names

DIALECTS: dict[str, type[Dialect]] = {
    "duckdb": DuckDB,
    "postgresql": PostgreSQL,
    "sqlite": SQLite,
    "spark": SparkText,
}


def dialect_named(name: object) -> Dialect:
    """Return the dialect of a name."""
    if not isinstance(name, str) or name not in DIALECTS:
        expected = " or ".join(map(repr, DIALECTS))
        raise DataError.wrong_type("dialect", repr(name), expected, did_you_mean([name], DIALECTS))
    return DIALECTS[name](None)


def source_of(dialect: Dialect, table: object) -> str:
    """Return the FROM clause of a table or query; the parts of a table name are quoted."""
    if isinstance(table, str):
        if QUERY.match(table):
            return as_rows(dialect, table)
        table = table.split(".")
    parts = list(table) if isinstance(table, list | tuple) else []
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise DataError.wrong_type("table", repr(table), "the name of a table, a tuple of its parts, or a query")
    return ".".join(map(dialect.quote, parts))


def write_sql(scores: PortableScorer, dialect_name: str, table: object, keep: Names, proba: bool) -> str:
    """Return one SELECT statement: the columns in `keep`, the prediction and, if `proba`, the class probabilities."""
    dialect = dialect_named(dialect_name)
    kept = [str(name) for name in ([keep] if isinstance(keep, str | int) else keep)]
    for name in [*kept, *(cell.source for cell in scores.cells)]:
        if "\0" in str(name):
            raise ExportError(
                f"the column name {name!r} contains the character NUL, which SQL does not allow.\n"
                "    Rename the column before fitting."
            )
    by_prefix: dict[str, Any] = {}
    for name in dict.fromkeys(str(name) for name in [*kept, *(cell.source for cell in scores.cells)]):
        previous = by_prefix.setdefault(truncated(name, dialect.most_bytes), name)
        if previous != name:
            raise ExportError(
                f"the columns {previous!r} and {name!r} begin with the same {dialect.most_bytes} bytes, after which "
                "the database truncates names.\n    Rename the columns and fit the model again."
            )
    return SqlQuery(scores, dialect).text(source_of(dialect, table), kept, proba)
