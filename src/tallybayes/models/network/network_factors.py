"""Factors of a Bayesian network: p(node | parents), one factor for all nodes with the same parents and family."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sized
from typing import Any

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.data.missing_indicators import check_absence, indicator_name
from tallybayes.data.table import Table
from tallybayes.errors import DataError, StatisticsError, TooLargeError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multinomial import Multinomial
from tallybayes.families.protocols.linear_nodes import family_given_continuous_parents
from tallybayes.models.inputs.columns import read_family
from tallybayes.models.inputs.family_evidence import MOST_LEVELS
from tallybayes.models.network.estimated_network import EstimatedNode, is_linear, nodes_of, parents_in
from tallybayes.models.network.graph import Graph
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Columns
from tallybayes.warnings import warn

_MAX_PARENTS = 60  # NumPy arrays have at most 64 axes


def make_factors(graph: Graph, columns: Columns, table: Table) -> tuple[list[Factor], tuple[str, ...]]:
    """Return one factor for all nodes with the same parents and family, and the nodes with a level for missing values.

    A continuous node with informative missing values has a missing-value indicator with the same parents.
    """
    families = node_families(graph, columns, table)
    blocks: dict[tuple[tuple[Name, ...], Family, Hashable], list[Name]] = {}
    continuous = {node for node in graph.nodes if not has_levels(families[node])}
    connected = {node for edge in graph.edges if continuous.issuperset(edge) for node in edge}
    for node, parents in graph.parents.items():
        family = families[node].present_family or families[node]
        is_separate = not family.columnwise or table.is_block(node) or node in connected
        given = tuple(name for name in parents if name not in continuous)
        inputs = [name for name in parents if name in continuous]
        blocks.setdefault((given, family, node if is_separate else None), []).extend([*inputs, node])
    informative = [node for node, family in families.items() if family.present_family is not None]
    for node in informative:
        check_absence(table, node)
        if node in continuous:
            blocks.setdefault((graph.parents[node], Bernoulli(), ...), []).append(indicator_name(node))
    factors = [Factor(tuple(nodes), given, family) for (given, family, _), nodes in blocks.items()]
    return factors, tuple(str(node) for node in informative if node not in continuous)


def has_levels(family: Family) -> bool:
    """Return whether a node of this family is discrete; the missing value may be one of its levels."""
    return (family.present_family or family).cell_type == "codes"


def node_families(graph: Graph, columns: Columns, table: Table) -> dict[Name, Family]:
    """Return the family of every node: from `columns`, or the default for its type.

    Floats are Gaussian unless the node has discrete children, since a discrete node cannot have continuous parents.
    All other columns are categorical.
    """
    given, default = (columns, columns.get(..., "auto")) if isinstance(columns, Mapping) else ({}, columns)
    read_family(default, "columns")
    graph.require([node for node in given if node is not ...])
    chosen = {node: read_family(given.get(node, default), f"the family of {node!r}") for node in graph.nodes}
    if "suggest" in chosen.values():
        raise DataError.wrong_type("columns", "'suggest'", "'auto', a family, or {node: family} for networks")
    children = graph.children()
    families: dict[Name, Family] = {}
    for node in reversed(graph.nodes):
        below = {child: families[child] for child in children[node]}
        families[node] = _default_family(node, below.values(), table) if chosen[node] == "auto" else chosen[node]
        if not has_levels(families[node]):
            for child, family in below.items():
                is_block = table.is_block(node) or table.is_block(child)
                _check_continuous_edge(node, families[node], child, family, is_block)
    return {node: _given_parents(families, node, graph.parents[node], table) for node in graph.nodes}


def _given_parents(families: Mapping[Name, Family], node: Name, parents: tuple[Name, ...], table: Table) -> Family:
    """Return the family of a node, linear in its continuous parents if it has some, Gaussian without."""
    family = families[node]
    conditional = family_given_continuous_parents(family)
    if conditional is not None:
        if not all(has_levels(families[parent]) for parent in parents):
            return conditional
        if family.is_conditional and not table.is_block(node):
            return Gaussian()
    return family


def _default_family(node: Name, children: Collection[Family], table: Table) -> Family:
    """Return the default family of a node, given the families of its children."""
    is_continuous = not children if table.is_block(node) else table.is_float(node)
    if not is_continuous or any(map(has_levels, children)):
        return Categorical()
    return Multinomial() if table.kind(node) == "sparse" else Gaussian()


def continuous_parent(parent: Name, found: str, child: Name) -> DataError:
    """Return the error for a continuous parent of a discrete node."""
    return DataError(
        f"node {child!r} is discrete, and its parent {parent!r} is {found}; expected discrete parents.\n"
        f"    Discretize {parent!r} with tb.Binned(...), or reverse the edge."
    )


def _check_continuous_edge(parent: Name, above: Family, child: Name, below: Family, is_block: bool) -> None:
    """Raise DataError for an edge from a continuous node unless both nodes are Gaussian columns."""
    if has_levels(below):
        raise continuous_parent(parent, repr(above), child)
    for node, family in ((parent, above), (child, below)):
        if is_block or family.present_family is not None or family_given_continuous_parents(family) is None:
            what = "a block of several columns" if is_block else f"{family!r}"
            raise DataError(
                f"node {node!r} is {what}, and there is an edge from {parent!r} to {child!r}; expected tb.Gaussian() "
                "for both, since exact inference needs linear models with Gaussian noise.\n"
                f"    Use the logarithm of the column, discretize {parent!r}, or remove the edge."
            )


def warn_many_levels(columns: Columns, table: Table, levels: Mapping[Name, Sized]) -> None:
    """Warn of integer columns that are categorical by default and have many levels, such as ages."""
    for name, of_node in levels.items():
        chosen = columns.get(name, columns.get(..., "auto")) if isinstance(columns, Mapping) else columns
        if chosen == "auto" and len(of_node) > MOST_LEVELS and table.kind(name) == "number":
            warn(
                f"column {name!r} has {len(of_node)} different whole numbers, each a level with probabilities of its "
                f"own.\n    Discretize it; or pass columns={{{name!r}: tb.Gaussian()}} if it has no discrete children, "
                "tb.Categorical() if the numbers are levels."
            )


def check_structure(graph: Graph, tally: Tally) -> None:
    """Raise StatisticsError for a tally of another structure."""
    expected = {node: set(parents) for node, parents in graph.parents.items()}
    parents = {name: set(above) for factor in tally.factors for name, above in parents_in(factor).items()}
    for node in graph.nodes:
        if indicator_name(node) in parents:
            expected.setdefault(indicator_name(node), expected[node])
    joint = [f for f in tally.factors if len(f.columns) > 1 and not f.family.columnwise and not is_linear(f)]
    if parents != expected or joint:
        raise StatisticsError(
            f"this tally does not fit the network {_format_parents(expected)}: found\n"
            + "\n".join("    " + line for line in tally.summary().splitlines())
        )
    _check_families(tally)


def _check_families(tally: Tally) -> None:
    """Raise StatisticsError for a continuous parent of a discrete node, or a linear model of other families."""
    families = {name: factor.family for factor in tally.factors for name in parents_in(factor)}
    for factor in tally.factors:
        for name in factor.given:
            if families[name].cell_type != "codes":
                raise StatisticsError(
                    f"the parent {name!r} is {families[name]!r} in this tally; expected a discrete node."
                )
        for name in factor.columns if is_linear(factor) else ():
            if family_given_continuous_parents(families[name]) is None:
                raise StatisticsError(
                    f"{name!r} is {families[name]!r} in this tally, together with {factor.family!r} of "
                    f"{factor.columns}; expected tb.Gaussian() or tb.LinearGaussian()."
                )


def _format_parents(parents: Mapping[Name, set[Name]]) -> str:
    """Format a structure for a message."""
    shown = [
        f"{node} | {', '.join(sorted(map(str, given))[:6])}{', …' * (len(given) > 6)}" if given else str(node)
        for node, given in list(parents.items())[:6]
    ]
    return "; ".join(shown) + ("; …" if len(parents) > 6 else "")


def in_graph_order(graph: Graph, tally: Tally) -> Tally:
    """Return the same counts with the parents of every node in the order of the graph."""
    parents = {indicator_name(node): above for node, above in graph.parents.items()} | graph.parents
    connected = {name for factor in tally.factors if is_linear(factor) for name in factor.columns}
    pairs: list[tuple[Factor, Any]] = []
    for factor, statistics in zip(tally.factors, tally.statistics, strict=True):
        is_separate = len(factor.columns) == 1 or connected.isdisjoint(factor.columns)
        in_order = {parents[name] for name in factor.columns} == {factor.given}
        if in_order and is_separate and not is_linear(factor):
            pairs.append((factor, statistics))
        else:
            nodes = nodes_of([factor], [statistics])
            pairs += [_reordered(name, node, factor, parents[name]) for name, node in nodes.items()]
    factors, all_statistics = zip(*pairs, strict=True)
    return Tally(factors, all_statistics, tally.domains, tally.schema, soft=tally.soft)


def _reordered(name: Name, node: EstimatedNode, factor: Factor, parents: tuple[Name, ...]) -> tuple[Factor, Any]:
    """Return the factor of a node and its statistics with the parents in another order."""
    given = tuple(parent for parent in parents if parent in factor.given)
    statistics = node.statistics.transpose_groups([factor.given.index(parent) for parent in given])
    if not node.inputs:
        return Factor(name, given, factor.family), statistics
    columns = (*(parent for parent in parents if parent in node.inputs), name)
    statistics = statistics.columns(np.array([factor.columns.index(column) for column in columns]))
    return Factor(columns, given, family_given_continuous_parents(factor.family) or factor.family), statistics


def check_sizes(factors: Iterable[Factor], sizes: Mapping[Name, int]) -> None:
    """Raise TooLargeError for tables that do not fit into memory."""
    available = available_memory()
    for factor in factors:
        n_groups = math.prod(sizes[name] for name in factor.given)
        for name in factor.columns:
            n_cells = n_groups * sizes.get(name, 1)
            available -= 8 * n_cells * 4  # the counts, twice during alignment, and the probabilities
            if available < 0 or len(factor.given) > _MAX_PARENTS:
                raise TooLargeError.table(name, factor.given, n_cells)


def check_sum(first: Tally, second: Tally) -> None:
    """Raise TooLargeError if the tables of the sum of two tallies do not fit into memory."""
    union = {n: d.union(second.domains[n]) if n in second.domains else d for n, d in first.domains.items()}
    names = {name for factor in first.factors for name in (*factor.given, *factor.level_columns)}
    check_sizes(first.factors, {name: max(1, len(union[str(name)].levels)) for name in names})
