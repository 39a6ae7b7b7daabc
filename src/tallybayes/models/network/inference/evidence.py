"""Evidence of rows, as codes, cells and likelihoods for a Bayesian network."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.encoding import is_missing
from tallybayes.data.indicator_columns import with_unknown
from tallybayes.data.missing_indicators import with_missing_level
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError
from tallybayes.estimation.scoring.factor_scorer import chunk_of, factor_cells
from tallybayes.families._shared.blocks import SparseRows, cell
from tallybayes.families.categorical import Categorical
from tallybayes.families.with_missing import MISSING
from tallybayes.messages import did_you_mean
from tallybayes.tally.domain import Domain, boolean_levels
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.models.network.inference.network_inference import NetworkInference

_LABELS = Categorical()


class Evidence(NamedTuple):
    """Evidence of some rows.

    Attributes
    ----------
    n_rows : int
    codes : dict from node to an array of int of shape (n,)
        −1 where the level is not known.
    likelihoods : dict from node to an array of shape (levels,)
        Of nodes that are only hinted at, the same for all rows.
    cells : dict from measured node to its cells
        NaN where they are not known.
    """

    n_rows: int
    codes: dict[Name, np.ndarray]
    likelihoods: dict[Name, np.ndarray]
    cells: dict[Name, Any]

    def is_known(self, node: Name, rows: slice) -> np.ndarray | bool:
        """Return the rows with evidence on a node."""
        if node in self.codes:
            return self.codes[node][rows] >= 0
        if node in self.cells:
            cells = self.cells[node]
            if isinstance(cells, SparseRows):
                some = cells.rows(rows)
                known = some.sum_rows(np.isnan(some.data)) < max(some.n_columns, 1)
                return known if some.missing_rows is None else known & ~some.missing_rows
            cells = chunk_of(cells, rows)
            return ~np.isnan(cells).reshape(len(cells), -1).all(axis=1)
        return node in self.likelihoods

    def whole(self, labels: Iterable[Name]) -> np.ndarray:
        """Return the rows whose discrete nodes are all observed."""
        found = np.full(self.n_rows, not self.likelihoods)
        for node in labels:
            found &= self.is_known(node, slice(None))
        return found

    def take(self, rows: np.ndarray) -> Evidence:
        """Return the evidence of some of the rows."""
        codes = {node: found[rows] for node, found in self.codes.items()}
        cells = {
            n: found.rows(rows) if isinstance(found, SparseRows) else found[rows] for n, found in self.cells.items()
        }
        return Evidence(len(rows), codes, self.likelihoods, cells)


def read_rows(network: NetworkInference, table: Table, unseen: str, without: Iterable[Name] = ()) -> Evidence:
    """Read the rows of a table as evidence; missing columns are unobserved, missing cells may be a level."""
    left_out = {*without, *(network.presence[node] for node in without if node in network.presence)}
    table = with_absent_levels(network.domains, table)
    labels = [node for node in network.levels if node in table.columns and node not in left_out]
    codes = {}
    for node in labels:
        found = factor_cells(table, [node], _LABELS, [network.domains[node]], unseen)[:, 0]
        if (found >= 0).any():
            codes[node] = found
    cells = {}
    measured = with_unknown(table, network.presence.values(), {}) if network.presence and table.invalid_cells else table
    for node, scored in network.leaves.items():
        if node in network.components:
            found = _read_linked(network, node, measured, left_out, unseen)
            if found is not None:
                cells[node] = found
        elif measured.has(node) and node not in left_out:
            reader = network.readers.get(node)
            rows = measured if reader is None else table.replaced({node: reader.read(table.columns[node], node)})
            cells[node] = _read_leaf(network, node, factor_cells(rows, [node], scored.family, [], unseen))
    return Evidence(table.n_rows, codes, {}, cells)


def with_absent_levels(domains: Mapping[Name, Domain], table: Table) -> Table:
    """Return the rows with "missing" as a level of the nodes that have it."""
    return with_missing_level(
        table, [node for node, domain in domains.items() if domain.has_missing_level and node in table.columns]
    )


def _read_linked(
    network: NetworkInference, leaf: Name, table: Table, left_out: Collection[Name], unseen: str
) -> np.ndarray | None:
    """Return the cells of connected continuous nodes as columns, NaN for missing columns; None without any."""
    nodes, family = network.components[leaf].nodes, network.leaves[leaf].family
    here = [node for node in nodes if table.has(node) and node not in left_out]
    if not here:
        return None
    out = np.full((table.n_rows, len(nodes)), np.nan)
    for node in here:
        cells = chunk_of(factor_cells(table, [node], family, [], unseen), slice(None))
        width = math.prod(np.shape(cells)[1:])
        if width != 1:
            raise DataError(f"node {node!r} has {width} columns here; expected 1, as at fitting.")
        out[:, nodes.index(node)] = np.asarray(cells, dtype=float).reshape(len(cells))
    wrong = family.first_invalid_cell(out)
    if wrong is not None:
        raise DataError.bad_cell(cell(out, *wrong), wrong[0], nodes[wrong[1]], family.allowed_values)
    return out


def _read_leaf(network: NetworkInference, node: Name, found: Any) -> Any:
    """Return the cells of a continuous node; raise DataError if they differ in kind from the fitted ones."""
    family, cells = network.leaves[node].family, chunk_of(found, slice(None)) if isinstance(found, list) else found
    width = cells.n_columns if isinstance(cells, SparseRows) else math.prod(np.shape(cells)[1:])
    if width != network.widths.get(node, width):
        raise DataError(f"node {node!r} has {width} columns here; expected {network.widths[node]}, as at fitting.")
    rows = cells if isinstance(cells, SparseRows) else np.asarray(cells, dtype=float).reshape(len(cells), width)
    wrong = family.first_invalid_cell(rows)
    if wrong is not None:
        raise DataError.bad_cell(cell(rows, *wrong), wrong[0], node, family.allowed_values)
    return cells


def read_evidence(
    network: NetworkInference, given: Mapping[Any, Any] | None, do: Mapping[Name, Any] | None = None
) -> Evidence:
    """Read evidence: a mapping from nodes to levels, to likelihoods of levels, or to values of continuous nodes.

    Absence, where it is a value, is spelled as in rows (None, NaN) or as it is shown.
    """
    for name, value in (("given", given), ("do", do)):
        if value is not None and not isinstance(value, Mapping):
            raise DataError.wrong_type(name, repr(value)[:60], "a mapping, as in {'fire': True}")
    seen, done = dict(given or {}), dict(do or {})
    network.structure.require([*seen, *done])
    both = [node for node in done if node in seen]
    if both:
        raise DataError(f"node {both[0]!r} is both observed and set by do=; expected one of them.")
    codes: dict[Name, np.ndarray] = {}
    likelihoods: dict[Name, np.ndarray] = {}
    cells: dict[Name, Any] = {}
    for node, value in (seen | done).items():
        if network.is_measured(node):
            beside = network.presence.get(node)
            absent = beside is not None and _is_absent(value)
            if isinstance(value, Mapping) or (is_missing(value) and not absent):
                raise DataError(f"node {node!r} is measured, and known as {value!r}; expected a number.")
            more = read_rows(network, Table({node: np.asarray([np.nan if absent else value])}), "error").cells
            cells |= {leaf: with_more(cells.get(leaf), found) for leaf, found in more.items()}
            if node in done and beside is not None:  # interventions carry no evidence
                del cells[beside]
        elif isinstance(value, Mapping):
            if node in done:
                raise DataError(f"do= sets {node!r} to {value!r}; expected one level.")
            likelihoods[node] = _likelihood(network, node, value)
        else:
            codes[node] = np.array([_code(network, node, value)])
    return Evidence(1, codes, likelihoods, cells)


def with_more(before: Any, found: Any) -> Any:
    """Merge cells of a leaf with evidence on other columns of it."""
    return found if before is None else np.where(np.isnan(found), before, found)


def _code(network: NetworkInference, node: Name, level: Any) -> int:
    domain = network.domains[node]
    if domain.has_missing_level and _is_absent(level):
        return domain.index[None]
    plain = level.item() if isinstance(level, np.generic) else level
    plain = int(plain) if isinstance(plain, float) and plain.is_integer() else plain
    if isinstance(plain, bool) and domain.kind == "string":
        plain = boolean_levels(domain.levels).get(plain, plain)
    known = domain.index.get(plain) if isinstance(plain, bool | int | float | str) else None
    if known is None or type(domain.levels[known]) is not type(plain):
        hint = "Check its spelling and type, or leave the node out where it is not known."
        raise LabelError(
            f"node {node!r} has no level {level!r} (known: {', '.join(map(repr, domain.display_levels[:8]))}).\n"
            f"    {did_you_mean([plain] if isinstance(plain, str) else [], domain.display_levels, hint)}"
        )
    return known


def _is_absent(value: Any) -> bool:
    """Return whether the evidence on a node is that it is missing."""
    return is_missing(value) or (isinstance(value, str) and value == MISSING)


def _likelihood(network: NetworkInference, node: Name, value: Mapping[Any, Any]) -> np.ndarray:
    places = {_code(network, node, level): number for level, number in value.items()}
    levels = network.levels[node]
    try:
        found = np.array([float(places[place]) for place in range(len(levels))])
    except (KeyError, TypeError, ValueError):
        found = np.full(1, np.nan)
    if not (np.isfinite(found) & (found >= 0)).all():
        raise DataError.wrong_type(
            f"what is given of {node!r}",
            repr(dict(value)),
            f"a likelihood of at least 0 for each of {', '.join(map(repr, levels[:8]))}",
        )
    return found
