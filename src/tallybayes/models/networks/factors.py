"""Which factors a Bayesian network has: p(node | parents), one for all nodes of the same parents and family."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tallybayes.errors import DataError, StatisticsError, TooLargeError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multinomial import Multinomial
from tallybayes.memory import available_memory
from tallybayes.models.inputs.columns import read_family
from tallybayes.models.networks.graph import Graph
from tallybayes.models.networks.parameters import nodes_of
from tallybayes.sources.absence import check_absence, presence_name
from tallybayes.sources.table import Table
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally

_MOST_PARENTS = 60  # NumPy's arrays have 64 axes at most


def make_factors(graph: Graph, columns: Any, table: Table) -> tuple[list[Factor], tuple[str, ...]]:
    """One factor for the nodes that have the same parents and family; and the labels of which absence is a level.

    Of measured nodes whose absence is a value, whether they are there is a yes or no given the same parents.
    """
    families = node_families(graph, columns, table)
    blocks: dict[Any, list[Name]] = {}
    for node, parents in graph.parents.items():
        family = families[node].inner or families[node]
        alone = not family.columnwise or table.is_block(node)
        blocks.setdefault((parents, family, node if alone else None), []).append(node)
    absence = [node for node, family in families.items() if family.inner is not None]
    for node in absence:
        check_absence(table, node)
    levels = tuple(str(node) for node in absence if reads_labels(families[node]))
    for node in absence:
        if str(node) not in levels:
            blocks.setdefault((graph.parents[node], Bernoulli(), ...), []).append(presence_name(node))
    return [Factor(tuple(nodes), parents, family) for (parents, family, _), nodes in blocks.items()], levels


def reads_labels(family: Family) -> bool:
    """Whether a node of this family has levels, absence perhaps among them."""
    return (family.inner or family).reads == "codes"


def node_families(graph: Graph, columns: Any, table: Table) -> dict[Name, Family]:
    """What every node is: as `columns` says; else floats without children are Gaussian, all else labels."""
    given, other = (columns, columns.get(..., "auto")) if isinstance(columns, Mapping) else ({}, columns)
    read_family(other, "columns")
    graph.require([node for node in given if node is not ...])
    named = {node: read_family(given.get(node, other), f"the family of {node!r}") for node in graph.nodes}
    if "suggest" in named.values():
        raise DataError.wrong_type("columns", "'suggest'", "'auto', a family, or {node: family}: networks choose none")
    children = graph.children()
    found: dict[Name, Family] = {}
    for node in graph.nodes:
        measured = not children[node] and (table.is_block(node) or table.is_float(node))  # whole numbers are labels
        default = (Multinomial() if table.kind(node) == "sparse" else Gaussian()) if measured else Categorical()
        found[node] = default if named[node] == "auto" else named[node]
        if children[node] and not reads_labels(found[node]):
            raise DataError(
                f"node {node!r} is {found[node]!r} and has the child {children[node][0]!r}; expected labels: only "
                "then are all questions answered exactly.\n    Cut it into bins, or turn the edge round."
            )
    return found


def check_structure(graph: Graph, tally: Tally) -> None:
    """Refuse a tally of another structure."""
    wanted = {node: set(parents) for node, parents in graph.parents.items()}
    found = {name: set(factor.given) for factor in tally.factors for name in factor.columns}
    for node in graph.nodes:
        if presence_name(node) in found:
            wanted.setdefault(presence_name(node), wanted[node])
    whole = [factor.columns for factor in tally.factors if not factor.family.columnwise]
    if found != wanted or any(len(columns) > 1 for columns in whole):
        raise StatisticsError(
            f"this tally is not that of the network {_shown(wanted)}: found\n"
            + "\n".join("    " + line for line in repr(tally).splitlines())
        )
    families = {name: factor.family for factor in tally.factors for name in factor.columns}
    for name in dict.fromkeys(name for factor in tally.factors for name in factor.given):
        if families[name].reads != "codes":
            raise StatisticsError(f"the parent {name!r} is {families[name]!r} in this tally; expected labels.")


def _shown(parents: Mapping[Name, set[Name]]) -> str:
    """A structure, for a message."""
    shown = [
        f"{node} | {', '.join(sorted(map(str, given))[:6])}{', …' * (len(given) > 6)}" if given else str(node)
        for node, given in list(parents.items())[:6]
    ]
    return "; ".join(shown) + ("; …" if len(parents) > 6 else "")


def in_order(graph: Graph, tally: Tally) -> Tally:
    """The same counts with the parents of every node in the order of the graph."""
    factors, statistics = [], []
    above = {presence_name(node): parents for node, parents in graph.parents.items()} | graph.parents
    for factor, counted in zip(tally.factors, tally.statistics, strict=True):
        if {above[name] for name in factor.columns} == {factor.given}:
            factors.append(factor)
            statistics.append(counted)
            continue
        for name, node in nodes_of([factor], [counted]).items():
            parents = above[name]
            factors.append(Factor(name, parents, factor.family))
            statistics.append(node.statistics.transpose_groups([factor.given.index(parent) for parent in parents]))
    return Tally(factors, statistics, tally.domains, tally.schema, soft=tally.soft)


def check_sizes(factors: Iterable[Factor], sizes: Mapping[Name, int]) -> None:
    """Refuse tables that memory cannot hold."""
    available = available_memory()
    for factor in factors:
        n_groups = math.prod(sizes[name] for name in factor.given)
        for name in factor.columns:
            n_cells = n_groups * sizes.get(name, 1)
            available -= 8 * n_cells * 4  # its counts, twice while they are laid out, and the probabilities
            if available < 0 or len(factor.given) > _MOST_PARENTS:
                raise TooLargeError.table(name, factor.given, n_cells)


def check_sum(mine: Tally, more: Tally) -> None:
    """Refuse to add counts where memory cannot hold the tables of all their levels."""
    united = {name: d.union(more.domains[name]) if name in more.domains else d for name, d in mine.domains.items()}
    names = {name for factor in mine.factors for name in (*factor.given, *factor.level_columns)}
    check_sizes(mine.factors, {name: max(1, len(united[str(name)].levels)) for name in names})
