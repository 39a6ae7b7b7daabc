"""Tree-structured networks: Chow–Liu trees and tree-augmented naive Bayes (TAN)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes._utils.spanning_tree import maximum_spanning_tree
from tallybayes.data.counting import check_weight
from tallybayes.errors import DataError, TooLargeError, short_int
from tallybayes.kernels.contingency_tables import count_joint
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.network_factors import has_levels
from tallybayes.models.network.network_fit import open_training_table
from tallybayes.models.network.structure.encoded_rows import (
    EncodedRows,
    column_families,
    encode_columns,
)
from tallybayes.models.network.structure.structure_scores import conditional_information
from tallybayes.tally.factor import Name
from tallybayes.typing import Rows, SampleWeights


def learn_tree(
    data: Rows,
    target: Name | None = None,
    *,
    sample_weight: SampleWeights = None,
    names: Iterable[Name] | None = None,
    **parameters: Any,
) -> BayesianNetwork:
    """Learn a tree-structured network: a Chow–Liu tree, or with a target a tree-augmented naive Bayes (TAN).

    Without a target, every column but one has a single parent. The tree maximizes the likelihood: it is the maximum
    spanning tree by mutual information (Chow and Liu, 1968). With a target, every column depends on the target, and all
    but one on another column too. That tree maximizes the conditional mutual information given the target (Friedman,
    Geiger and Goldszmidt, 1997). Continuous columns (floats) depend on the target only.

    Parameters
    ----------
    data : data frame, mapping of columns, list of dicts, or array
        Rows with a missing cell are left out of the pairs that have the column.
    target : name, optional
    sample_weight : array-like of shape (n,), or the name of a column, optional
    names : sequence, optional
        The names of an array's columns.
    **parameters
        Parameters of `BayesianNetwork`, such as ``estimate="map"`` or ``prior=tb.BDeu(10)``.

    Returns
    -------
    BayesianNetwork
        Fitted. `partial_fit`, `forget` and `reestimate` keep the tree.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"fire": [0, 0, 1, 1] * 5, "smoke": [0, 0, 1, 1] * 5, "day": [0, 1, 0, 1] * 5}
    >>> tb.learn_tree(rows).graph_.parents
    {'fire': (), 'smoke': ('fire',), 'day': ('fire',)}
    """
    table, sample_weight = open_training_table(data, sample_weight, names)
    if target is not None and target not in list(table.columns):
        raise DataError.unknown_column([target], table.columns)
    columns = BayesianNetwork(dict.fromkeys(table.columns, ()), **parameters).columns if table.columns else {}
    families = column_families(table, columns)
    continuous = [name for name in table.columns if name != target and not has_levels(families[name])]
    if target is None and continuous:
        raise DataError(
            f"column {continuous[0]!r} is continuous; a tree without a target needs categorical columns.\n"
            "    Discretize or drop it, or pass a target, on which continuous columns can depend."
        )
    given = () if target is None else (target,)
    discrete = [name for name in table.columns if name not in continuous and name != target]
    rows = encode_columns(table, [*given, *discrete], families, check_weight(sample_weight, table.n_rows))
    parents = dict.fromkeys(given, ()) | _tree_parents(rows, target) | dict.fromkeys(continuous, given)
    return BayesianNetwork(parents, **parameters).fit(table, sample_weight=sample_weight)


def _tree_parents(rows: EncodedRows, target: Name | None) -> dict[Name, tuple[Name, ...]]:
    """Return the parents of all columns but the target in the maximum spanning tree."""
    given = () if target is None else (0,)  # the target is the first column
    discrete = range(len(given), len(rows.names))
    pairs = list(combinations(discrete, 2))
    n_cells = sum(rows.n_cells((*given, *pair)) for pair in pairs)
    if 32 * n_cells > available_memory():
        raise TooLargeError(
            f"the tables of all pairs of {len(discrete)} columns would have {short_int(n_cells)} cells: too many.\n"
            "    Merge rare levels, or drop columns with very many levels."
        )
    information = np.full((len(rows.names), len(rows.names)), -np.inf)
    tables = count_joint(rows.codes, rows.sizes, [(*given, *pair) for pair in pairs], rows.weight) if pairs else []
    for pair, table in zip(pairs, tables, strict=True):
        information[pair] = information[pair[::-1]] = conditional_information(table if given else table[None])
    tree = maximum_spanning_tree(information[len(given) :, len(given) :])
    names = rows.names[len(given) :]
    root = () if target is None else (target,)
    return {names[k]: root if tree.parents[k] < 0 else (*root, names[tree.parents[k]]) for k in tree.order}
