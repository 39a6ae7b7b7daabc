"""Evidence of rows, as codes, cells and likelihoods for a Bayesian network."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from tallybayes.families.family import Family
from tallybayes.families.protocols.cell_checks import first_invalid_cell
from tallybayes.families.with_missing import MISSING
from tallybayes.messages import did_you_mean
from tallybayes.tally.domain import Domain, boolean_levels
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.models.network.inference.network_inference import NetworkInference

_CATEGORICAL = Categorical()

Cells = np.ndarray | SparseRows  # of a continuous node


class Evidence(NamedTuple):
    """Evidence of some rows.

    Attributes
    ----------
    n_rows : int
    codes : dict from discrete node to an array of int of shape (n,)
        −1 for unobserved cells.
    likelihoods : dict from discrete node to an array of shape (levels,)
        Soft evidence, the same for all rows.
    cells : dict from continuous node to its cells
        NaN for unobserved cells.
    """

    n_rows: int
    codes: dict[Name, np.ndarray]
    likelihoods: dict[Name, np.ndarray]
    cells: dict[Name, Any]

    def is_observed(self, node: Name, rows: slice) -> np.ndarray | bool:
        """Return the rows with evidence on a node."""
        if node in self.codes:
            return self.codes[node][rows] >= 0
        if node not in self.cells:
            return node in self.likelihoods
        cells = self.cells[node]
        if isinstance(cells, SparseRows):
            block = cells.rows(rows)
            observed = block.sum_rows(np.isnan(block.data)) < max(block.n_columns, 1)
            return observed if block.missing_rows is None else observed & ~block.missing_rows
        cells = chunk_of(cells, rows)
        return ~np.isnan(cells).reshape(len(cells), -1).all(axis=1)

    def complete_rows(self, nodes: Iterable[Name]) -> np.ndarray:
        """Return the rows in which all of these nodes are observed."""
        complete = np.full(self.n_rows, not self.likelihoods)
        for node in nodes:
            complete &= self.is_observed(node, slice(None))
        return complete

    def take(self, rows: np.ndarray) -> Evidence:
        """Return the evidence of some of the rows."""
        codes = {node: codes[rows] for node, codes in self.codes.items()}
        cells = {
            node: cells.rows(rows) if isinstance(cells, SparseRows) else cells[rows]
            for node, cells in self.cells.items()
        }
        return Evidence(len(rows), codes, self.likelihoods, cells)

    def with_codes(self, codes: Mapping[Name, np.ndarray]) -> Evidence:
        """Return the evidence with other codes of some discrete nodes."""
        return Evidence(self.n_rows, {**self.codes, **codes}, self.likelihoods, self.cells)


def read_rows(inference: NetworkInference, table: Table, unseen: str, without: Iterable[Name] = ()) -> Evidence:
    """Read the rows of a table as evidence; missing columns are unobserved, missing cells may be a level."""
    excluded = {*without, *(inference.presence[node] for node in without if node in inference.presence)}
    table = with_missing_levels(inference.domains, table)
    codes = {}
    for node in inference.levels:
        if node in table.columns and node not in excluded:
            column = factor_cells(table, [node], _CATEGORICAL, [inference.domains[node]], unseen)[:, 0]
            if (column >= 0).any():
                codes[node] = column
    cells: dict[Name, Any] = {}
    has_unknown = inference.presence and table.invalid_cells
    continuous = with_unknown(table, inference.presence.values(), {}) if has_unknown else table
    for node, scorer in inference.leaves.items():
        if node in inference.components:
            component_cells = _read_component(inference, node, continuous, excluded, unseen)
            if component_cells is not None:
                cells[node] = component_cells
        elif continuous.has(node) and node not in excluded:
            reader = inference.readers.get(node)
            rows = continuous if reader is None else table.replaced({node: reader.read(table.columns[node], node)})
            cells[node] = _read_leaf(inference, node, factor_cells(rows, [node], scorer.family, [], unseen))
    return Evidence(table.n_rows, codes, {}, cells)


def with_missing_levels(domains: Mapping[Name, Domain], table: Table) -> Table:
    """Return the rows with "missing" as a level of the nodes that have it."""
    return with_missing_level(
        table, [node for node, domain in domains.items() if domain.has_missing_level and node in table.columns]
    )


def _read_component(
    inference: NetworkInference, leaf: Name, table: Table, excluded: Collection[Name], unseen: str
) -> np.ndarray | None:
    """Return the cells of connected continuous nodes as columns, NaN for missing columns; None without any."""
    nodes, family = inference.components[leaf].nodes, inference.leaves[leaf].family
    present = [node for node in nodes if table.has(node) and node not in excluded]
    if not present:
        return None
    columns = np.full((table.n_rows, len(nodes)), np.nan)
    for node in present:
        cells = chunk_of(factor_cells(table, [node], family, [], unseen), slice(None))
        _check_width(node, math.prod(np.shape(cells)[1:]), 1)
        columns[:, nodes.index(node)] = np.asarray(cells, dtype=float).reshape(len(cells))
    _check_support(family, columns, nodes)
    return columns


def _read_leaf(inference: NetworkInference, node: Name, cells: Cells | list[np.ndarray]) -> Cells:
    """Return the cells of a continuous node; raise DataError if they differ in kind from the fitted ones."""
    cells = chunk_of(cells, slice(None)) if isinstance(cells, list) else cells
    width = cells.n_columns if isinstance(cells, SparseRows) else math.prod(np.shape(cells)[1:])
    _check_width(node, width, inference.widths.get(node, width))
    rows = cells if isinstance(cells, SparseRows) else np.asarray(cells, dtype=float).reshape(len(cells), width)
    _check_support(inference.leaves[node].family, rows, [node])
    return cells


def _check_width(node: Name, width: int, expected: int) -> None:
    if width != expected:
        raise DataError(f"node {node!r} has {width} columns; expected {expected}, as in fit.")


def _check_support(family: Family, cells: np.ndarray | SparseRows, names: Sequence[Name]) -> None:
    """Raise DataError for a value out of the support of a family."""
    invalid = first_invalid_cell(family, cells)
    if invalid is not None:
        row, column = invalid
        name = names[column] if len(names) > 1 else names[0]
        raise DataError.bad_cell(cell(cells, row, column), row, name, family.allowed_values)


def read_evidence(
    inference: NetworkInference, given: Mapping[Any, Any] | None, do: Mapping[Name, Any] | None = None
) -> Evidence:
    """Read evidence: a mapping from nodes to levels, to likelihoods of levels, or to values of continuous nodes.

    A missing value, if it is a level, is written as in rows (None, NaN) or as it is printed.
    """
    for name, value in (("given", given), ("do", do)):
        if value is not None and not isinstance(value, Mapping):
            raise DataError.wrong_type(name, repr(value)[:60], "a mapping, as in {'fire': True}")
    observed, interventions = dict(given or {}), dict(do or {})
    inference.structure.require([*observed, *interventions])
    both = [node for node in interventions if node in observed]
    if both:
        raise DataError(f"node {both[0]!r} is both observed and set by do=; expected one of them.")
    evidence = Evidence(1, {}, {}, {})
    for node, value in (observed | interventions).items():
        if inference.is_continuous(node):
            _read_value(inference, node, value, evidence, is_set=node in interventions)
        elif isinstance(value, Mapping):
            if node in interventions:
                raise DataError(f"do= sets {node!r} to {value!r}; expected one level.")
            evidence.likelihoods[node] = _read_likelihood(inference, node, value)
        else:
            evidence.codes[node] = np.array([_code(inference, node, value)])
    return evidence


def _read_value(inference: NetworkInference, node: Name, value: object, evidence: Evidence, *, is_set: bool) -> None:
    """Add the value of a continuous node to the evidence."""
    indicator = inference.presence.get(node)
    is_absent = indicator is not None and _is_missing_value(value)
    if isinstance(value, Mapping) or (is_missing(value) and not is_absent):
        raise DataError(f"node {node!r} is continuous, and its value is {value!r}; expected a number.")
    cells = read_rows(inference, Table({node: np.asarray([np.nan if is_absent else value])}), "error").cells
    for leaf, leaf_cells in cells.items():
        evidence.cells[leaf] = merge_cells(evidence.cells.get(leaf), leaf_cells)
    if is_set and indicator is not None:  # interventions carry no evidence
        del evidence.cells[indicator]


def merge_cells(cells: np.ndarray | None, new: np.ndarray) -> np.ndarray:
    """Merge cells of a leaf with evidence on other columns of it."""
    return new if cells is None else np.where(np.isnan(new), cells, new)


def _code(inference: NetworkInference, node: Name, level: object) -> int:
    """Return the position of a level; raise LabelError if the node has no such level."""
    domain = inference.domains[node]
    if domain.has_missing_level and _is_missing_value(level):
        return domain.index[None]
    plain: Any = level.item() if isinstance(level, np.generic) else level
    plain = int(plain) if isinstance(plain, float) and plain.is_integer() else plain
    if isinstance(plain, bool) and domain.kind == "string":
        plain = boolean_levels(domain.levels).get(plain, plain)
    code = domain.index.get(plain) if isinstance(plain, bool | int | float | str) else None
    if code is None or type(domain.levels[code]) is not type(plain):
        hint = "Check its spelling and type, or remove the node if it is not observed."
        raise LabelError(
            f"node {node!r} has no level {level!r} (known: {', '.join(map(repr, domain.display_levels[:8]))}).\n"
            f"    {did_you_mean([plain] if isinstance(plain, str) else [], domain.display_levels, hint)}"
        )
    return code


def _is_missing_value(value: object) -> bool:
    """Return whether the evidence on a node is that it is missing."""
    return is_missing(value) or (isinstance(value, str) and value == MISSING)


def _read_likelihood(inference: NetworkInference, node: Name, value: Mapping[Any, Any]) -> np.ndarray:
    """Return the likelihood of every level; raise DataError unless all are given."""
    by_code = {_code(inference, node, level): number for level, number in value.items()}
    levels = inference.levels[node]
    try:
        likelihood = np.array([float(by_code[code]) for code in range(len(levels))])
    except (KeyError, TypeError, ValueError):
        likelihood = np.full(1, np.nan)
    if not (np.isfinite(likelihood) & (likelihood >= 0)).all():
        raise DataError.wrong_type(
            f"the soft evidence on {node!r}",
            repr(dict(value)),
            f"a likelihood of at least 0 for each of {', '.join(map(repr, levels[:8]))}",
        )
    return likelihood
