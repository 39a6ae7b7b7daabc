"""Fitting a Bayesian network: CPTs by counting, missing cells by EM if requested.

The functions return the tally of rows; the model adopts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.parameter_checks import read_list
from tallybayes.data.counting import check_weight, count
from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, LabelError
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.families.categorical import Categorical
from tallybayes.models.inputs.batching import check_names
from tallybayes.models.inputs.features import as_rows
from tallybayes.models.network.bde_prior import BDe
from tallybayes.models.network.boolean_levels import booleans_to_levels
from tallybayes.models.network.estimated_network import check_prior, is_linear
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.network_factors import check_sizes, continuous_parent, make_factors, warn_many_levels
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.vocabulary import Vocabulary
from tallybayes.typing import Priors, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork

ColumnNames = Iterable[Name] | None


def count_training_rows(
    model: BayesianNetwork, X: Rows, sample_weight: SampleWeights, names: ColumnNames, initial: BayesianNetwork | None
) -> tuple[Tally, EMSummary | None]:
    """Return the tally of the training rows, and the result of EM if it was needed."""
    source = None if model.missing == "em" else open_source(X)
    graph = Graph.read(model.parents)
    if source is not None:
        check_names(source, sample_weight=sample_weight)
        with source.snapshot():
            first = open_table(source.first_batch())
            return _count_training_rows(model, graph, source, first, sample_weight), None
    table = open_rows(model, X, names, refit=True)
    weight = check_weight(column_weights(table, sample_weight), table.n_rows)
    table = _with_hidden_nodes(model, graph, table)
    tally = _count_training_rows(model, graph, table, table, weight)
    if model.missing != "em":
        return tally, None
    from tallybayes.models.network.network_em import fit_by_em

    return fit_by_em(model, table, weight, with_prior_levels(model.prior, tally), initial)


def _count_training_rows(
    model: BayesianNetwork, graph: Graph, rows: Table | Source, table: Table, weight: SampleWeights
) -> Tally:
    """Return the tally of rows in memory, or of a data source; `table` has all or the first of them."""
    if table.n_rows == 0 or (isinstance(weight, np.ndarray) and not (weight > 0).any()):
        reason = "there are 0 rows" if table.n_rows == 0 else "the weight of every row is zero"
        raise DataError(f"{reason}; expected at least 1 row of positive weight.")
    if isinstance(rows, Source):
        rows.check_columns(graph.nodes)
    factors, missing_level_domains = make_factors(graph, model.columns, table)
    check_prior(model.prior, factors, model.estimate)
    nodes = [name for factor in factors if factor.given for name in factor.level_columns]
    may_miss = isinstance(rows, Source) or any(
        _may_miss(table.column(name)) for f in factors for name in f.level_columns
    )
    # discrete nodes with parents are counted whether or not the parents are observed
    alone = [Factor(tuple(nodes), (), Categorical())] if nodes and may_miss else []
    try:
        both = _count(rows, table, weight, [*factors, *alone], missing_level_domains)
    except LabelError as error:
        discrete = [child for child in nodes if error.column in graph.parents.get(child, ())]
        if not isinstance(error.level, float) or not discrete:
            raise
        raise continuous_parent(str(error.column), f"continuous (found {error.level!r})", discrete[0]) from None
    tally = Tally(tuple(factors), both.statistics[: len(factors)], both.domains, both.schema).drop_unseen_levels()
    tally = _with_all_levels(model, tally, both)
    warn_many_levels(model.columns, table, _levels_of(tally))
    return tally


def count_more_rows(model: BayesianNetwork, X: Rows, sample_weight: SampleWeights, names: ColumnNames = None) -> Tally:
    """Return the tally of more rows, in memory or from a data source, for a fitted model."""
    source = None if model.missing == "em" else open_source(X)
    if source is None:
        return count_more_table(model, open_rows(model, X, names), sample_weight)
    check_names(source, sample_weight=sample_weight)
    with source.snapshot():
        first = open_table(source.first_batch())
        return _count(source, first, sample_weight, model.tally_.factors, like=model.tally_)


def open_rows(model: BayesianNetwork, X: Rows, names: ColumnNames = None, *, refit: bool = False) -> Table:
    """Open rows as a table with the names of nodes as columns; booleans become levels that are words.

    With `refit`, the levels are the declared ones; otherwise those of the fitted model.
    """
    is_fitted = hasattr(model, "tally_")
    nodes = Graph.read(model.parents).nodes
    table = open_table(as_rows(X, model if is_fitted else None), None if names is None else list(names))
    if names is None and list(table.columns) == list(range(len(table.columns))):
        named = [node for node in nodes if isinstance(node, str)]
        if named:
            raise DataError(
                f"the data have no column names; expected a column {named[0]!r}.\n"
                "    Pass names=[...], one for every column, or a data frame or mapping of columns."
            )
    table = with_parts_of_dates(table, nodes)
    return booleans_to_levels(
        table, _levels_of(model.tally_) if is_fitted and not refit else _declared_levels(model, nodes)
    )


def open_training_table(data: Rows, sample_weight: SampleWeights, names: ColumnNames) -> tuple[Table, SampleWeights]:
    """Open rows as a table; weights in a column of the data are removed from the table."""
    table = open_table(data, None if names is None else read_list("names", names))
    if isinstance(sample_weight, str):
        column = sample_weight
        sample_weight = column_weights(table, column)
        table = table.without(column)
    return with_parts_of_dates(table), sample_weight


def column_weights(table: Table, sample_weight: SampleWeights) -> SampleWeights:
    """Return the sample weights, from a column of the table if they are given by name."""
    return np.asarray(table.column(sample_weight)) if isinstance(sample_weight, str) else sample_weight


def _declared_levels(model: BayesianNetwork, nodes: Iterable[Name]) -> dict[Name, tuple[Any, ...]]:
    """Return the levels of nodes that `columns` or a prior declares."""
    declared: dict[Name, tuple[Any, ...]] = dict(model.prior.tables.levels) if isinstance(model.prior, BDe) else {}
    for node in nodes:
        family = model.columns.get(node) if isinstance(model.columns, Mapping) else model.columns
        levels = getattr(getattr(family, "present_family", None) or family, "levels", None)
        if levels is not None:
            declared[node] = tuple(levels)
    return declared


def _levels_of(tally: Tally) -> dict[Name, tuple[Any, ...]]:
    """Return the levels of the discrete nodes."""
    return {name: tally.domains[str(name)].levels for factor in tally.factors for name in factor.level_columns}


# ---- Nodes and levels that are not in the counts ----------------------------------------------------------------


def _with_hidden_nodes(model: BayesianNetwork, graph: Graph, table: Table) -> Table:
    """Return the table with empty columns for nodes that are never observed, if EM can estimate them."""
    declared = model.columns if isinstance(model.columns, Mapping) else {}
    for node in graph.nodes if model.missing == "em" else ():
        if node not in table.columns and getattr(declared.get(node), "levels", None) is not None:
            table = table.with_column(node, np.full(table.n_rows, None))
    absent = [node for node in graph.nodes if node not in table.columns]
    if absent:
        error = DataError.unknown_column(absent, table.columns)
        raise DataError(f"{error}\n    A node that is never observed needs missing='em' and {_declaration(absent[0])}.")
    return table


def _with_all_levels(model: BayesianNetwork, tally: Tally, all_levels: Tally) -> Tally:
    """Return the tally with levels that occur only in rows with missing parents: EM counts them, CPTs do not."""
    domains = dict(tally.domains)
    for name, domain in all_levels.domains.items():
        if isinstance(domain, Vocabulary):
            continue
        is_sorted = tally.domains[name].is_sorted
        observed = Domain(domain.levels, name, is_sorted=is_sorted, has_missing_level=domain.has_missing_level)
        domains[name] = tally.domains[name].union(observed)
    if model.missing == "em":
        tally = tally.align(domains)
    for name, domain in domains.items():
        if isinstance(domain, Vocabulary):
            continue
        counted = tally.domains[name]
        if not counted.levels:
            together, option = (
                ("", "") if model.missing == "em" else (" together with its parents", ", or missing='em'")
            )
            raise DataError(
                f"no row has {name!r}{together}, so its levels are unknown.\n    Pass {_declaration(name)}{option}."
            )
        uncounted = [level for level in domain.levels if level not in counted.index]
        if uncounted:
            warn(
                f"level {uncounted[0]!r} of {name!r} occurs only with missing parents: no CPT counts it.\n"
                f"    Pass {_declaration(name)}, or missing='em'."
            )
    return tally


def with_prior_levels(prior: Priors, tally: Tally) -> Tally:
    """Return the tally with the levels of a BDe prior declared."""
    return prior.declare(tally) if isinstance(prior, BDe) else tally


def _declaration(node: Name) -> str:
    """Return the code that declares levels, for messages."""
    return f"columns={{{node!r}: tb.Categorical(levels=[...])}}"


def _may_miss(column: object) -> bool:
    """Return whether the type of a column allows missing cells."""
    return not isinstance(column, np.ndarray) or column.dtype.kind not in "biu"


# ---- Counting ---------------------------------------------------------------------------------------------------


def _count(
    rows: Table | Source,
    table: Table,
    weight: SampleWeights,
    factors: Sequence[Factor],
    missing_level_domains: tuple[str, ...] = (),
    like: Tally | None = None,
) -> Tally:
    """Return the tally of rows; `table` has all or the first of them. Levels are sorted unless declared."""
    declared: dict[Name, tuple[Any, ...] | None] = {}
    for factor in factors:  # the first factor of a node has its family
        for name in factor.level_columns:
            declared.setdefault(name, getattr(factor.family, "levels", None))
    free = {name for name, levels in declared.items() if levels is None}
    missing_level_domains = missing_level_domains if like is None else like.schema.missing_level_domains
    sorted_domains = tuple(str(name) for name in table.columns if name in free)
    schema = Schema(sorted_domains=sorted_domains, missing_level_domains=missing_level_domains)
    table = _checked_table(table, factors, declared)
    return count(rows if isinstance(rows, Source) else table, factors, weight=weight, schema=schema, like=like)


def count_more_table(model: BayesianNetwork, table: Table, sample_weight: SampleWeights) -> Tally:
    """Return the tally of rows in memory that are added to others, or removed; EM rejects missing cells."""
    tally = model.tally_
    if model.missing == "em":
        exempt = tally.schema.missing_level_domains
        for name in (n for factor in tally.factors for n in factor.level_columns if str(n) not in exempt):
            if (table.encoded(name, True)[0] < 0).any():
                raise _missing_cells(name)
        for name in dict.fromkeys(n for factor in filter(is_linear, tally.factors) for n in factor.columns):
            if np.isnan(np.asarray(table.numbers([name]), dtype=float)).any():
                raise _missing_cells(name)
    return _count(table, table, column_weights(table, sample_weight), tally.factors, like=tally)


def _missing_cells(name: Name) -> DataError:
    """Return the error for missing cells, which EM estimates from all rows."""
    return DataError(
        f"column {name!r} has missing cells; missing='em' estimates them from all rows at once.\n"
        "    Use fit on all rows, or drop the incomplete ones."
    )


def _checked_table(table: Table, factors: Sequence[Factor], declared: Mapping[Name, tuple[Any, ...] | None]) -> Table:
    """Return the rows with compact codes; raise TooLargeError before allocating tables that do not fit into memory."""
    absent = [name for name in declared if name not in table.columns]
    if absent:
        raise DataError.unknown_column(absent, table.columns)
    names = [name for name in table.columns if name in declared]
    sets = [(*f.given, column) for f in factors for column in f.level_columns or f.given[:1] if f.given]
    ordered = [name for name in names if declared[name] is None]
    table = table.compacted(sets, ordered)
    domains = table.levels(names, ordered)[1]
    sizes = {name: max(1, len(d.levels), len(declared[name] or ())) for name, d in zip(names, domains, strict=True)}
    check_sizes(factors, sizes)
    return table
