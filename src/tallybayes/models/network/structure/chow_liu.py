"""Tree-structured networks: Chow–Liu trees and tree-augmented naive Bayes (TAN)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy

from tallybayes._utils.memory import available_memory
from tallybayes._utils.spanning_tree import maximum_spanning_tree
from tallybayes.data.counting import count
from tallybayes.data.table import Table
from tallybayes.errors import DataError, TooLargeError, short_int
from tallybayes.families.categorical import Categorical
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.network_factors import has_levels, node_families, warn_many_levels
from tallybayes.models.network.network_fit import open_training_table
from tallybayes.statistics.counts import Counts
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.typing import Rows, SampleWeights

Given = tuple[Name, ...]  # the target, if there is one


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
    Geiger and Goldszmidt, 1997). Continuous columns (floats) depend on the target only. All pairs of columns are
    counted in one pass; the CPTs are among these counts.

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
    model = BayesianNetwork(dict.fromkeys(table.columns, ()), **parameters)
    families = {} if not table.columns else node_families(Graph.read(model.parents), model.columns, table)
    continuous = [name for name in table.columns if name != target and not has_levels(families[name])]
    discrete = [name for name in table.columns if name not in continuous and name != target]
    _check_columns(target, continuous, discrete)
    given = () if target is None else (target,)
    factors = _pair_factors(given, discrete)
    factors += [Factor(name, given, families[name].present_family or families[name]) for name in continuous]
    names_of_levels = (*given, *discrete)
    _check_size(table, factors, names_of_levels)
    with_missing = tuple(str(name) for name in names_of_levels if families[name].present_family is not None)
    schema = Schema(sorted_domains=tuple(map(str, names_of_levels)), missing_level_domains=with_missing)
    tally = count(table, factors, weight=sample_weight, schema=schema)
    parents = _tree_parents(tally, given, discrete) | dict.fromkeys(continuous, given)
    model = BayesianNetwork(parents, **parameters)
    if set(parameters) & {"columns", "missing"}:  # these change the counts
        return model.fit(table, sample_weight=sample_weight)
    kept = [
        Factor(name, above, families[name] if name in continuous else Categorical()) for name, above in parents.items()
    ]
    network_tally = _tree_tally(tally, kept)
    empty = [name for name, domain in network_tally.domains.items() if not domain.levels]
    if empty:
        raise DataError(f"column {empty[0]!r} has no cell that counts; expected at least 1.")
    warn_many_levels(model.columns, table, {name: network_tally.domains[str(name)].levels for name in names_of_levels})
    return model.fit_tally(network_tally)


def _check_columns(target: Name | None, continuous: list[Name], discrete: list[Name]) -> None:
    """Raise DataError without discrete columns, or for continuous columns without a target."""
    if target is not None:
        return
    if continuous:
        raise DataError(
            f"column {continuous[0]!r} is continuous; a tree without a target needs categorical columns.\n"
            "    Discretize or drop it, or pass a target, on which continuous columns can depend."
        )
    if not discrete:
        raise DataError("the data have no columns; expected at least 1.")


def _pair_factors(given: Given, discrete: Sequence[Name]) -> list[Factor]:
    """Return the factors of all columns and of all pairs of columns, given the target."""
    pairs = [(first, second) for k, second in enumerate(discrete) for first in discrete[:k]]
    return [
        *(Factor(name, given, Categorical()) for name in discrete),
        *(Factor(second, (*given, first), Categorical()) for first, second in pairs),
        *(Factor(name, (), Categorical()) for name in given),
    ]


def _check_size(table: Table, factors: Sequence[Factor], names: Sequence[Name]) -> None:
    """Raise TooLargeError if the tables of all pairs do not fit into memory."""
    sizes = {name: len(table.levels([name], lambda _: True)[1][0].levels) for name in names}
    n_cells = sum(int(np.prod([sizes.get(name, 1) for name in (*f.given, *f.columns)], dtype=object)) for f in factors)
    if 32 * n_cells > available_memory():
        n_columns = sum(len(factor.columns) == 1 and factor.given == factors[0].given for factor in factors)
        raise TooLargeError(
            f"the tables of all pairs of {n_columns} columns would have {short_int(n_cells)} cells: too many.\n"
            "    Merge rare levels, or drop columns with very many levels."
        )


def _tree_parents(tally: Tally, given: Given, discrete: Sequence[Name]) -> dict[Name, tuple[Name, ...]]:
    """Return the parents of the target and the discrete columns in the maximum spanning tree."""
    information = np.full((len(discrete), len(discrete)), -np.inf)
    for k, factor in enumerate(tally.factors):
        if len(factor.given) > len(given):
            counts: Any = tally.statistics[k]
            table = counts.table
            ends = discrete.index(factor.given[-1]), discrete.index(factor.columns[0])
            value = conditional_information(table if given else table[None])
            information[ends] = information[ends[::-1]] = value
    tree = maximum_spanning_tree(information)
    parents: dict[Name, tuple[Name, ...]] = dict.fromkeys(given, ())
    for k in tree.order:
        parents[discrete[k]] = given if tree.parents[k] < 0 else (*given, discrete[tree.parents[k]])
    return parents


def _tree_tally(tally: Tally, factors: Sequence[Factor]) -> Tally:
    """Return the tally of the factors of a tree, from that of all pairs of columns."""
    position = {(factor.given, factor.columns[0]): k for k, factor in enumerate(tally.factors)}
    statistics: list[Any] = []
    for factor in factors:
        name, given = factor.columns[0], factor.given
        if (given, name) in position:
            statistics.append(tally.statistics[position[given, name]])
        else:  # the pair was counted with its columns in the other order
            reverse: Any = tally.statistics[position[(*given[:-1], name), given[-1]]]
            statistics.append(Counts(np.swapaxes(reverse.table, -1, -2)))
    return Tally(factors, statistics, tally.domains, tally.schema).drop_unseen_levels()


def conditional_information(table: np.ndarray) -> float:
    """Return the conditional mutual information of two columns in nats, from counts (given, first, second)."""
    rows, columns, total = table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))
    terms = xlogy(table, table).sum() - xlogy(rows, rows).sum() - xlogy(columns, columns).sum()
    return float(terms + xlogy(total, total).sum()) / max(float(total.sum()), 1.0)
