"""Which factors a Bayesian network has: p(node | parents), one for all nodes of the same parents and family."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sized
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
from tallybayes.models.inputs.columns import read_family
from tallybayes.models.inputs.family_evidence import MOST_LEVELS
from tallybayes.models.network.estimated_network import is_line, nodes_of, parents_in
from tallybayes.models.network.graph import Graph
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.warnings import warn

_MOST_PARENTS = 60  # NumPy's arrays have 64 axes at most


def make_factors(graph: Graph, columns: Any, table: Table) -> tuple[list[Factor], tuple[str, ...]]:
    """One factor for the nodes that have the same parents and family; and the labels of which absence is a level.

    Of measured nodes whose absence is a value, whether they are there is a yes or no given the same parents.
    """
    families = node_families(graph, columns, table)
    blocks: dict[Any, list[Name]] = {}
    linked = _linked(graph, [node for node in graph.nodes if not reads_labels(families[node])])
    for node, above in graph.parents.items():
        family = families[node].present_family or families[node]
        alone = not family.columnwise or table.is_block(node) or node in linked
        parents = tuple(name for name in above if reads_labels(families[name]))
        measured = [name for name in above if name not in parents]
        blocks.setdefault((parents, family, node if alone else None), []).extend([*measured, node])
    absence = [node for node, family in families.items() if family.present_family is not None]
    for node in absence:
        check_absence(table, node)
    levels = tuple(str(node) for node in absence if reads_labels(families[node]))
    for node in absence:
        if str(node) not in levels:
            blocks.setdefault((graph.parents[node], Bernoulli(), ...), []).append(indicator_name(node))
    return [Factor(tuple(nodes), parents, family) for (parents, family, _), nodes in blocks.items()], levels


def _linked(graph: Graph, measured: Iterable[Name]) -> set[Name]:
    """The measured nodes that have measured parents or children: each is a factor of its own."""
    some = set(measured)
    return {node for edge in graph.edges if some.issuperset(edge) for node in edge}


def reads_labels(family: Family) -> bool:
    """Whether a node of this family has levels, absence perhaps among them."""
    return (family.present_family or family).cell_type == "codes"


def node_families(graph: Graph, columns: Any, table: Table) -> dict[Name, Family]:
    """What every node is: as `columns` says; else by its type.

    Floats are Gaussian, unless a node of labels depends on them: no label may depend on what is measured. All else is
    labels.
    """
    given, other = (columns, columns.get(..., "auto")) if isinstance(columns, Mapping) else ({}, columns)
    read_family(other, "columns")
    graph.require([node for node in given if node is not ...])
    named = {node: read_family(given.get(node, other), f"the family of {node!r}") for node in graph.nodes}
    if "suggest" in named.values():
        raise DataError.wrong_type("columns", "'suggest'", "'auto', a family, or {node: family}: networks choose none")
    children = graph.children()
    found: dict[Name, Family] = {}
    for node in reversed(graph.nodes):
        labels_below = any(reads_labels(found[child]) for child in children[node])
        block = table.is_block(node)
        measured = not labels_below and (not children[node] if block else table.is_float(node))
        default = (Multinomial() if table.kind(node) == "sparse" else Gaussian()) if measured else Categorical()
        found[node] = default if named[node] == "auto" else named[node]
        if not reads_labels(found[node]):
            for child in children[node]:
                _check_line(node, found[node], child, found[child], block or table.is_block(child))
    for node in graph.nodes:
        above = [parent for parent in graph.parents[node] if not reads_labels(found[parent])]
        line = found[node].family_given_continuous_parents
        if above and line is not None:
            found[node] = line
        elif line is not None and found[node].is_conditional and not table.is_block(node):
            found[node] = Gaussian()  # a line in nothing
    return {node: found[node] for node in graph.nodes}


def _check_line(parent: Name, above: Family, child: Name, below: Family, block: bool) -> None:
    """Refuse a measured parent of what is no Gaussian, or that is none itself."""
    if reads_labels(below):
        raise DataError(
            f"node {child!r} has labels, and its parent {parent!r} is {above!r}; expected labels: no label may depend "
            f"on what is measured.\n    Cut {parent!r} into bins, with tb.Binned(...), or turn the edge round."
        )
    for node, family in ((parent, above), (child, below)):
        if block or family.present_family is not None or family.family_given_continuous_parents is None:
            what = "a block of several columns" if block else f"{family!r}"
            raise DataError(
                f"node {node!r} is {what}, and there is an edge from {parent!r} to {child!r}; expected tb.Gaussian() "
                "of both: only lines with Gaussian noise are answered exactly.\n    Make a column of its logarithm, "
                f"cut {parent!r} into bins, or leave the edge out."
            )


def caution_numbers(columns: Any, table: Table, levels: Mapping[Name, Sized]) -> None:
    """Say where whole numbers are labels though nobody said so, and are too many to be meant: as ages are.

    `NaiveBayes` takes them for measurements; a network's labels answer every question, but no level knows of the next.
    """
    for name, found in levels.items():
        said = columns.get(name, columns.get(..., "auto")) if isinstance(columns, Mapping) else columns
        if said == "auto" and len(found) > MOST_LEVELS and table.kind(name) == "number":
            warn(
                f"column {name!r} is of whole numbers, which are labels here: it has {len(found)} levels, each learned "
                f"by itself.\n    Cut it into bins; or say what it is: columns={{{name!r}: tb.Gaussian()}} where "
                "no label depends on it, tb.Categorical() if they are labels."
            )


def check_structure(graph: Graph, tally: Tally) -> None:
    """Refuse a tally of another structure."""
    wanted = {node: set(parents) for node, parents in graph.parents.items()}
    found = {name: set(above) for factor in tally.factors for name, above in parents_in(factor).items()}
    for node in graph.nodes:
        if indicator_name(node) in found:
            wanted.setdefault(indicator_name(node), wanted[node])
    whole = [factor.columns for factor in tally.factors if not factor.family.columnwise and not is_line(factor)]
    if found != wanted or any(len(columns) > 1 for columns in whole):
        raise StatisticsError(
            f"this tally is not that of the network {_shown(wanted)}: found\n"
            + "\n".join("    " + line for line in tally.summary().splitlines())
        )
    families = {name: factor.family for factor in tally.factors for name in parents_in(factor)}
    for name in dict.fromkeys(name for factor in tally.factors for name in factor.given):
        if families[name].cell_type != "codes":
            raise StatisticsError(f"the parent {name!r} is {families[name]!r} in this tally; expected labels.")
    for factor in filter(is_line, tally.factors):
        for name in factor.columns:
            if families[name].family_given_continuous_parents is None:
                raise StatisticsError(
                    f"{name!r} is {families[name]!r} in this tally, beside {factor.family!r} of {factor.columns}; "
                    "expected tb.Gaussian() or tb.LinearGaussian()."
                )


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
    above = {indicator_name(node): parents for node, parents in graph.parents.items()} | graph.parents
    lines = [factor for factor in tally.factors if is_line(factor)]
    linked = {name for factor in lines for name in factor.columns}
    for factor, counted in zip(tally.factors, tally.statistics, strict=True):
        alone = len(factor.columns) == 1 or not linked.intersection(factor.columns)
        if not is_line(factor) and alone and {above[name] for name in factor.columns} == {factor.given}:
            factors.append(factor)
            statistics.append(counted)
            continue
        for name, node in nodes_of([factor], [counted]).items():
            parents = tuple(parent for parent in above[name] if parent in factor.given)
            turned = node.statistics.transpose_groups([factor.given.index(parent) for parent in parents])
            columns = (*(parent for parent in above[name] if parent in node.inputs), name)
            if node.inputs:
                turned = turned.columns(np.array([factor.columns.index(column) for column in columns]))
            family = (factor.family.family_given_continuous_parents or factor.family) if node.inputs else factor.family
            factors.append(Factor(columns, parents, family))
            statistics.append(turned)
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
