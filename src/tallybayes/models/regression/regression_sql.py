"""Counting inside a database: powers, products and indicators are SQL expressions; only their sums are transferred."""

from __future__ import annotations

from typing import Any

from tallybayes.data.source import Source
from tallybayes.data.sql.query_source import Query
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.models.regression.design_matrix import Design, indicator
from tallybayes.models.regression.regression_counts import label_factors, levels_of, schema_of
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally


def count_there(model: Any, source: Source, sample_weight: str | None) -> Tally | None:
    """Return the tally of rows in a database, or None if the rows must be read, for example to skip missing inputs."""
    if not source.counts or not isinstance(source, Query):
        return None
    design: Design = model._design
    labels = label_factors(model)
    schema = schema_of(model)
    categorical = [*design.labels, *([] if design.by is None else [design.by])]
    if any(source.n_missing(str(name), sample_weight) for name in categorical):
        return None  # reading the rows raises an error that names the row
    counted = source.count(labels, sample_weight, schema, None) if labels else Tally((), (), {}, schema)
    if counted is None:
        return None
    levels = levels_of(design, counted)
    dialect = source.dialect
    number = {name: dialect.number(source.written(name)) for name in (*design.numbers, *design.targets)}
    written: dict[Name, str] = {}
    for term, name in zip(design.terms(design.degree), design.term_names(design.degree), strict=True):
        written[name] = " * ".join(number[design.numbers[place]] for place in term)
    for label in design.labels:
        for level in levels[label]:
            is_level = f"{source.written(label)} = {dialect.value(level)}"
            written[indicator(label, level)] = f"CASE WHEN {is_level} THEN 1.0 ELSE 0.0 END"
    columns = design.columns(levels)
    given = () if design.by is None else (design.by,)
    extra = [*given, *([] if sample_weight is None else [sample_weight])]
    for target in design.targets:
        expressions = {**written, target: number[target], **{name: dialect.quote(name) for name in extra}}
        view = source.selecting({str(name): text for name, text in expressions.items()})
        query = f"SELECT * FROM {view.table} WHERE {dialect.quote(target)} IS NOT NULL"
        observed = Query(dialect, query)
        observed.name = source.name
        observed.names = list(map(str, expressions))
        factor = Factor((*columns, target), given, LinearGaussian())
        sums = observed.count([factor], sample_weight, schema, None)
        if sums is None:
            return None
        counted = counted | sums
    return counted
