"""Counting inside a database: powers, products and indicators are SQL expressions; only their sums are transferred."""

from __future__ import annotations

from tallybayes.data.source import Source
from tallybayes.data.sql.query_source import Query
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.models.regression.design_matrix import Design, Levels, indicator
from tallybayes.models.regression.regression_counts import RegressionCounter, levels_of
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally


def count_in_database(counter: RegressionCounter, source: Source, sample_weight: str | None) -> Tally | None:
    """Return the tally of rows in a database, or None if the rows must be read, for example to skip missing inputs."""
    if not source.counts or not isinstance(source, Query):
        return None
    design = counter.design
    if any(source.n_missing(str(name), sample_weight) for name in (*design.labels, *design.given)):
        return None  # reading the rows raises an error that names the row
    factors = counter.label_factors
    counted = source.count(factors, sample_weight, counter.schema, None) if factors else None
    if factors and counted is None:
        return None
    total = counted or Tally((), (), {}, counter.schema)
    levels = levels_of(design, total)
    terms = _term_expressions(design, source, levels)
    quote = source.dialect.quote
    copied = {str(name): quote(name) for name in (*design.given, *([] if sample_weight is None else [sample_weight]))}
    for target in design.targets:
        expressions = {**terms, str(target): source.dialect.number(source.written(target)), **copied}
        view = source.selecting(expressions)
        known = Query(source.dialect, f"SELECT * FROM {view.table} WHERE {quote(target)} IS NOT NULL")
        known.name = source.name
        known.names = list(expressions)
        factor = Factor((*design.columns(levels), target), design.given, LinearGaussian())
        moments = known.count([factor], sample_weight, counter.schema, None)
        if moments is None:
            return None
        total = total | moments
    return total


def _term_expressions(design: Design, source: Query, levels: Levels) -> dict[str, str]:
    """Return the SQL expression of each term of the design matrix, by its name."""
    dialect = source.dialect
    numbers = [dialect.number(source.written(name)) for name in design.numbers]
    expressions = {}
    for term, name in zip(design.terms(design.degree), design.term_names(design.degree), strict=True):
        expressions[str(name)] = " * ".join(numbers[index] for index in term)
    for label in design.labels:
        for level in levels[label]:
            is_level = f"{source.written(label)} = {dialect.value(level)}"
            expressions[str(indicator(label, level))] = f"CASE WHEN {is_level} THEN 1.0 ELSE 0.0 END"
    return expressions
