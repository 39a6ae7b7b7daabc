"""The scores of a classifier by trees as portable scores, and its nodes as decisions on codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tallybayes.estimation.calibration.calibration import Calibration
from tallybayes.estimation.calibration.log_linear_pool import LEAST
from tallybayes.export.portable_scorer import Cell, Leaves, Part, Pool, PortableScorer, check_numbers
from tallybayes.families._shared.sql_aggregates import SqlColumn
from tallybayes.models.forest.grown_chains import GrownChains
from tallybayes.models.forest.grown_forest import GrownForest

if TYPE_CHECKING:
    from tallybayes.kernels.forest import Trees
    from tallybayes.models.forest.tree_classifier import TreeClassifier


class Decisions(NamedTuple):
    """Nodes of trees, numbered from 0, as are their leaves.

    Attributes
    ----------
    roots : int array of shape (trees,)
    column : int array of shape (nodes,)
        0 for leaves.
    rule : int array of shape (nodes,)
    goes_right : bool array of shape (rules, 256)
        The codes that go right, by rule.
    children : int array of shape (nodes, 2)
        The left and the right child; a leaf is its own child.
    leaf : int array of shape (nodes,)
        −1 for inner nodes.
    """

    roots: np.ndarray
    column: np.ndarray
    rule: np.ndarray
    goes_right: np.ndarray
    children: np.ndarray
    leaf: np.ndarray

    @property
    def depth(self) -> int:
        """The largest number of splits from a root to a leaf."""
        depth, nodes = 0, self.roots[self.leaf[self.roots] < 0]
        while len(nodes):
            nodes = self.children[nodes].ravel()
            nodes = nodes[self.leaf[nodes] < 0]
            depth += 1
        return depth


def decisions_of(trees: Trees, first: int, last: int) -> Decisions:
    """Return the nodes of the trees from `first` up to `last`."""
    start, end = trees.roots[[first, last]].tolist()
    roots, sizes = trees.roots[first:last] - start, np.diff(trees.roots[first : last + 1])
    column, following, cut = trees.nodes[start:end].T.astype(np.int64)
    is_leaf = column < 0
    cuts, rule = np.unique(np.where(is_leaf, 0, cut), return_inverse=True)
    codes = np.arange(256)
    shift = np.where(cuts >= 0, cuts >> 8, 0)[:, None]  # 1 if missing cells go right
    goes_left = (codes - shift) % 256 <= ((cuts[:, None] & 255) - shift) % 256
    if (cuts < 0).any():
        masks = np.unpackbits(trees.masks, axis=1, bitorder="little").astype(bool)
        goes_left[cuts < 0] = masks[~cuts[cuts < 0]]
    node = np.arange(len(column))
    children = np.stack([node + 1, np.repeat(roots, sizes) + following], axis=1)
    children[is_leaf] = node[is_leaf, None]
    leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)  # leaves are in preorder, too
    return Decisions(roots, np.where(is_leaf, 0, column), rule, ~goes_left, children, leaf)


def tree_scores_of(model: TreeClassifier) -> PortableScorer:
    """Return the portable scores of a fitted classifier by trees."""
    structure, counts, values = model.structure_, model.counts_, model._leaf_values
    columns, pool = structure.columns, structure.pool
    classes = model.classes_.tolist()
    cells = []
    for name, edges, levels in zip(columns.names, columns.edges, columns.levels, strict=True):
        cells.append(Cell(name, SqlColumn(0) if levels is None else None, None))
        check_numbers(name, "cut point", np.array(edges))
    read = tuple(cells), columns.edges, columns.levels, structure.trees, values
    member: Leaves | PortableScorer
    if isinstance(structure, GrownForest):
        member = Leaves(*read, structure.groups, 1.0 / np.diff(structure.groups))
    else:
        assert isinstance(structure, GrownChains)
        groups = np.array([0, len(structure.trees)], dtype=np.int64)
        leaves = Leaves(*read, groups, np.array([1.0 / structure.scores.n_chains]))
        chains: list[Part] = [leaves] if len(structure.trees) else []
        member = PortableScorer(classes, structure.base(counts), chains, Calibration("none", 0.0, 0.0, 0.0), "missing")
    temperature, base_rates = 1 / pool.inverse_temperature, structure.base_rates(counts)
    calibration = Calibration("temperature", 0.0, 0.0, 0.0, temperature, pool.contamination, base_rates)
    parts: list[Part] = [Pool((member,), pool.weights, LEAST)]
    return PortableScorer(classes, structure.bias(counts), parts, calibration, "missing", model.input_format_.dates)
