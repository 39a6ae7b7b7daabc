"""Learning a Bayesian network: its tables by counting and, where cells are missing, perhaps by EM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.counting import check_weight, count
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_objective import initial_model
from tallybayes.families.categorical import Categorical
from tallybayes.models.inputs.batching import check_names
from tallybayes.models.inputs.features import as_rows
from tallybayes.models.network.bde_prior import BDe
from tallybayes.models.network.boolean_levels import booleans_to_levels
from tallybayes.models.network.estimated_network import is_line
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.network_factors import (
    caution_numbers,
    check_sizes,
    check_structure,
    check_sum,
    in_order,
    make_factors,
)
from tallybayes.models.receipt import with_receipt
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.tally.vocabulary import Vocabulary
from tallybayes.typing import Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork

    N = TypeVar("N", bound=BayesianNetwork)


def fit(
    model: N,
    X: Rows,
    *,
    sample_weight: SampleWeights = None,
    names: Iterable[Name] | None = None,
    initial: BayesianNetwork | None = None,
) -> N:
    """Count the rows, forgetting any counted before.

    Parameters
    ----------
    X : data frame, mapping of columns, list of dicts, or array
        Columns that are no nodes are ignored. None and NaN are missing. Booleans are words where the levels of a
        node are, as for `query`.
    sample_weight : array-like of shape (n,), or the name of a column, optional
    names : sequence, optional
        The names of an array's columns; without, its nodes are called 0, 1, 2, …
    initial : BayesianNetwork, optional
        Where EM starts, and from nowhere else: at the tables of this one, fitted or from tables, of the same structure.
        Where nothing is expected (``missing="available"``) it is not needed.

    Returns
    -------
    self
    """
    source, initial = None if model.missing == "em" else open_source(X), initial_model(model, initial)
    if source is None:
        _learn(model, open_rows(model, X, names, anew=True), sample_weight, initial)._frame_library = frame_kind(X)
        return model
    check_names(source, sample_weight=sample_weight)
    with source.snapshot():
        return _learn_there(model, source, sample_weight)


def partial_fit(model: N, X: Rows, *, sample_weight: SampleWeights = None, names: Iterable[Name] | None = None) -> N:
    """Count more rows; new levels may appear. Any order, any split gives what `fit` on all gives.

    Parameters
    ----------
    X, sample_weight, names
        As for `fit`. With ``missing="em"`` no cell may be missing here.

    Returns
    -------
    self
    """
    if not hasattr(model, "tally_"):
        return fit(model, X, sample_weight=sample_weight, names=names)
    model._require_counts("adding rows")
    more = _count_all(model, X, sample_weight, names)
    check_sum(model.tally_, more)
    return model._set_tally(model.tally_ + more)


@with_receipt
def forget(model: N, X: Rows, *, sample_weight: SampleWeights = None, names: Iterable[Name] | None = None) -> N:
    """Take rows out again, exactly: as if they had never been seen.

    Parameters
    ----------
    X, sample_weight, names
        Rows that were learned, as for `fit`.

    Returns
    -------
    self
    """
    check_is_fitted(model, "tally_")
    model._require_counts("taking rows out")
    return model._set_tally(model.tally_ - _count_all(model, X, sample_weight, names))


def fit_tally(model: N, tally: Tally) -> N:
    """Learn from a tally counted elsewhere: by another model, in a file, a shard, a database.

    Parameters
    ----------
    tally : Tally
        A factor p(columns | parents) for every node; several nodes with the same parents may be in one.

    Returns
    -------
    self
    """
    if not isinstance(tally, Tally):
        raise DataError.wrong_type("tally", repr(tally)[:60], "a Tally, as tb.count or a fitted model has it")
    graph = Graph.read(model.parents)
    check_structure(graph, tally)
    model._check_settings()
    model._check_prior(list(tally.factors))
    return model._set_tally(in_order(graph, tally))


def _learn(model: N, table: Table, sample_weight: Any, initial: Any = None) -> N:
    """Learn from all rows at once."""
    model._check_settings()
    weight = check_weight(named_weights(table, sample_weight), table.n_rows)
    if table.n_rows == 0 or (weight is not None and not (weight > 0).any()):
        found = "there are 0 rows to learn from" if table.n_rows == 0 else "the weight of every row is zero"
        raise DataError(f"{found}; expected at least 1 that counts.")
    graph = Graph.read(model.parents)
    table = _with_hidden(model, graph, table)
    factors, absent = make_factors(graph, model.columns, table)
    model._check_prior(factors)
    tally, climbed = _count(table, table, weight, factors, absent), None
    may_miss = any(_may_miss(table.column(name)) for factor in factors for name in factor.level_columns)
    tally = _with_all_levels(model, tally, count(table, _labels_of(factors) if may_miss else [], weight=weight))
    caution_numbers(model.columns, table, _levels_of(tally))
    if model.missing == "em":
        from tallybayes.models.network.network_em import learn_network

        tally, climbed = learn_network(model, table, weight, with_prior_levels(model, tally), initial)
    return model._set_tally(tally, climbed)


def _learn_there(model: N, source: Source, sample_weight: Any) -> N:
    """Learn from rows that are counted batch by batch, or where they lie."""
    model._check_settings()
    table, graph = open_table(source.first_batch()), Graph.read(model.parents)
    if table.n_rows == 0:
        raise DataError("there are 0 rows to learn from; expected at least 1 that counts.")
    source.check_columns(graph.nodes)
    factors, absent = make_factors(graph, model.columns, table)
    model._check_prior(factors)
    seen = _count(source, table, sample_weight, [*factors, *_labels_of(factors)], absent)  # in one pass
    tally = Tally(tuple(factors), seen.statistics[: len(factors)], seen.domains, seen.schema).drop_unseen_levels()
    caution_numbers(model.columns, table, _levels_of(tally))
    return model._set_tally(_with_all_levels(model, tally, seen))


def _count_all(model: BayesianNetwork, X: Any, sample_weight: Any, names: Any) -> Tally:
    """The tally of more rows, whether in memory or not."""
    source = None if model.missing == "em" else open_source(X)
    if source is None:
        return count_more(model, open_rows(model, X, names), sample_weight)
    check_names(source, sample_weight=sample_weight)
    with source.snapshot():
        first = open_table(source.first_batch())
        return _count(source, first, sample_weight, model.tally_.factors, like=model.tally_)


def open_rows(model: BayesianNetwork, X: Any, names: Any = None, *, anew: bool = False) -> Table:
    """The rows as a table whose columns have the names of nodes, booleans in words where the levels are words.

    `anew`: levels are those that are declared, not those that were learnt before.
    """
    table = open_table(as_rows(X, model if hasattr(model, "tally_") else None), None if names is None else list(names))
    if names is None and list(table.columns) == list(range(len(table.columns))):
        unnamed = [node for node in Graph.read(model.parents).nodes if isinstance(node, str)]
        if unnamed:
            raise DataError(
                f"the data have no column names, so which column is {unnamed[0]!r} is not known.\n"
                "    Pass names=[...], one for every column, or a data frame or mapping of columns."
            )
    table = with_parts_of_dates(table, Graph.read(model.parents).nodes)
    learnt = not anew and hasattr(model, "tally_")
    return booleans_to_levels(table, _levels_of(model.tally_) if learnt else _declared_levels(model))


def _declared_levels(model: BayesianNetwork) -> dict[Name, tuple[Any, ...]]:
    """The levels of nodes that `columns` or a prior declares."""
    known: dict[Name, tuple[Any, ...]] = dict(model.prior.network.levels) if isinstance(model.prior, BDe) else {}
    for node in Graph.read(model.parents).nodes:
        family = model.columns.get(node) if isinstance(model.columns, Mapping) else model.columns
        levels = getattr(getattr(family, "present_family", None) or family, "levels", None)
        if levels is not None:
            known[node] = tuple(levels)
    return known


def _levels_of(tally: Tally) -> dict[Name, tuple[Any, ...]]:
    """The levels of nodes that have any."""
    return {name: tally.domains[str(name)].levels for factor in tally.factors for name in factor.level_columns}


def named_weights(table: Table, sample_weight: Any) -> Any:
    """Weights, which may be a column of the table."""
    return np.asarray(table.column(sample_weight)) if isinstance(sample_weight, str) else sample_weight


# ---- Nodes and levels that the counts alone do not show ---------------------------------------------------------


def _with_hidden(model: BayesianNetwork, graph: Graph, table: Table) -> Table:
    """The table with columns for nodes that are never seen, if EM can expect them."""
    absent = [node for node in graph.nodes if node not in table.columns]
    declared = model.columns if isinstance(model.columns, Mapping) else {}
    for node in absent if model.missing == "em" else ():
        if getattr(declared.get(node), "levels", None) is not None:
            table = table.with_column(node, np.full(table.n_rows, None))
    absent = [node for node in absent if node not in table.columns]
    if absent:
        error = DataError.unknown_column(absent, table.columns)
        raise DataError(f"{error}\n    A node that is never seen needs missing='em' and {_declared(absent[0])}.")
    return table


def _labels_of(factors: list[Factor]) -> list[Factor]:
    """Labels of nodes with parents, counted whether those are known or not; none where no node has any."""
    names = tuple(name for factor in factors if factor.given for name in factor.level_columns)
    return [Factor(names, (), Categorical())] if names else []


def _with_all_levels(model: BayesianNetwork, tally: Tally, seen: Tally) -> Tally:
    """The tally with levels that only rows with missing parents have: EM counts them, otherwise no table does."""
    known = {
        n: Domain(domain.levels, n, is_sorted=tally.domains[n].is_sorted, has_missing_level=domain.has_missing_level)
        for n, domain in seen.domains.items()
    }
    more = tally.domains | {n: tally.domains[n].union(domain) for n, domain in known.items()}
    if model.missing == "em":
        tally = tally.align(more)
    levels = {name: domain for name, domain in more.items() if not isinstance(domain, Vocabulary)}
    for name, domain in levels.items():
        lost = [level for level in domain.levels if level not in tally.domains[name].index]
        if lost and tally.domains[name].levels:
            warn(
                f"level {lost[0]!r} of {name!r} occurs only where a parent is missing: no table counts it.\n"
                f"    Pass {_declared(name)}, or missing='em'.",
                UserWarning,
            )
    empty = [name for name in levels if not tally.domains[name].levels]
    if empty:
        beside, other = ("", "") if model.missing == "em" else (" together with its parents", ", or missing='em'")
        raise DataError(
            f"no row shows {empty[0]!r}{beside}, so its levels are not known.\n    Pass {_declared(empty[0])}{other}."
        )
    return tally


def with_prior_levels(model: BayesianNetwork, tally: Tally) -> Tally:
    """The tally with the levels that a prior knows, whether seen or not."""
    return model.prior.declare(tally) if isinstance(model.prior, BDe) else tally


def _declared(node: Name) -> str:
    """How to declare levels, for messages."""
    return f"columns={{{node!r}: tb.Categorical(levels=[...])}}"


def _may_miss(column: Any) -> bool:
    """Whether a column's type has room for missing cells."""
    return not isinstance(column, np.ndarray) or column.dtype.kind not in "biu"


# ---- Counting ---------------------------------------------------------------------------------------------------


def _count(
    rows: Table | Source,
    table: Table,
    weight: Any,
    factors: Sequence[Factor],
    absent: tuple[str, ...] = (),
    like: Tally | None = None,
) -> Tally:
    """The tally of rows, of which `table` is all or the first; labels without declared levels are sorted."""
    free = {name for f in factors if getattr(f.family, "levels", None) is None for name in f.level_columns}
    absent = absent if like is None else like.schema.missing_level_domains
    schema = Schema(
        sorted_domains=tuple(str(name) for name in table.columns if name in free), missing_level_domains=absent
    )
    table = _check_tables(table, factors, free)
    return count(rows if isinstance(rows, Source) else table, factors, weight=weight, schema=schema, like=like)


def count_more(model: BayesianNetwork, table: Table, sample_weight: Any) -> Tally:
    """The tally of rows that are added to others, or taken out of them."""
    if model.missing == "em":
        absent = model.tally_.schema.missing_level_domains
        for name in (n for factor in model.tally_.factors for n in factor.level_columns if str(n) not in absent):
            if (np.asarray(table.levels([name], lambda _: True)[0].columns[0]) < 0).any():
                raise _not_alone(name)
        for name in dict.fromkeys(n for factor in filter(is_line, model.tally_.factors) for n in factor.columns):
            if np.isnan(np.asarray(table.numbers([name]), dtype=float)).any():
                raise _not_alone(name)
    return _count(table, table, named_weights(table, sample_weight), model.tally_.factors, like=model.tally_)


def _not_alone(name: Name) -> DataError:
    """That rows cannot be expected without all others."""
    return DataError(
        f"column {name!r} has missing cells, which under missing='em' are expected from all rows at once.\n"
        "    Use fit on all rows, or leave the incomplete ones out."
    )


def _check_tables(table: Table, factors: Sequence[Factor], free: set[Name]) -> Table:
    """Refuse tables that memory cannot hold, before they are made; the rows, with labels ready to be counted."""
    labels = {name: factor.family for factor in factors for name in factor.level_columns}
    absent = [name for name in labels if name not in table.columns]
    if absent:
        raise DataError.unknown_column(absent, table.columns)
    names = [name for name in table.columns if name in labels]
    sets = [(*f.given, column) for f in factors for column in f.level_columns or f.given[:1] if f.given]
    table = table.compacted(sets, lambda name: name in free)
    domains = table.levels(names, lambda name: name in free)[1]
    declared = {name: len(getattr(labels[name], "levels", None) or ()) for name in names}
    check_sizes(factors, {name: max(1, len(d.levels), declared[name]) for name, d in zip(names, domains, strict=True)})
    return table
