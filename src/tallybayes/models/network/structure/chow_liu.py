"""Trees learned from rows: Chow and Liu's, and naive Bayes with a tree among its columns (TAN)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy

from tallybayes._utils.memory import available_memory
from tallybayes.data.counting import count
from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.table import open_table
from tallybayes.errors import DataError, TooLargeError, short_int
from tallybayes.families.categorical import Categorical
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.network_factors import caution_numbers, node_families, reads_labels
from tallybayes.models.network.network_fit import named_weights
from tallybayes.statistics.counts import Counts
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.typing import Rows, SampleWeights


def learn_tree(
    data: Rows,
    target: Name | None = None,
    *,
    sample_weight: SampleWeights = None,
    names: Iterable[Name] | None = None,
    **parameters: Any,
) -> BayesianNetwork:
    """The most likely tree over the columns, or with a target the most likely tree-augmented naive Bayes.

    Without a target: the network in which every column but one has a single parent and the rows are most probable
    (Chow and Liu, 1968): the spanning tree with most mutual information. With a target: every column depends on the
    target, and all but one on another column too, by the information they share given the target (TAN; Friedman, Geiger
    and Goldszmidt, 1997). Measured columns (floats) depend on the target alone. All pairs are counted in one pass, and
    the tables of the network are among these counts.

    Parameters
    ----------
    data : data frame, mapping of columns, list of dicts, or array
        A row with a missing cell is left out of the pairs that need it.
    target : name, optional
    sample_weight : array-like of shape (n,), or the name of a column, optional
    names : sequence, optional
        The names of an array's columns.
    **parameters
        Of `BayesianNetwork`, such as ``estimate="map"`` or ``prior=tb.BDeu(10)``.

    Returns
    -------
    BayesianNetwork
        Fitted. It goes on with `partial_fit`, `forget` and `reestimate` like any other; the tree stays.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"fire": [0, 0, 1, 1] * 5, "smoke": [0, 0, 1, 1] * 5, "day": [0, 1, 0, 1] * 5}
    >>> tb.learn_tree(rows).graph_.parents
    {'fire': (), 'smoke': ('fire',), 'day': ('fire',)}
    """
    table = open_table(data, None if names is None else list(names))
    if isinstance(sample_weight, str):
        weighing, sample_weight = sample_weight, named_weights(table, sample_weight)
        table = table.without(weighing)  # a weight is no node
    table = with_parts_of_dates(table)
    if target is not None and target not in list(table.columns):
        raise DataError.unknown_column([target], table.columns)
    model = BayesianNetwork(dict.fromkeys(table.columns, ()), **parameters)
    families = {} if not table.columns else node_families(Graph.read(model.parents), model.columns, table)
    measured = [name for name in table.columns if name != target and not reads_labels(families[name])]
    if measured and target is None:
        raise DataError(
            f"column {measured[0]!r} is measured, and a tree joins labels only.\n"
            "    Cut it into bins, leave it out, or name a target, on which measured columns can depend."
        )
    labels = [name for name in table.columns if name not in measured and name != target]
    if target is None and not labels:
        raise DataError("there is no column to learn from; expected at least 1.")
    given = () if target is None else (target,)
    pairs = [(first, second) for place, second in enumerate(labels) for first in labels[:place]]
    factors = [Factor(name, given, Categorical()) for name in labels]
    factors += [Factor(second, (*given, first), Categorical()) for first, second in pairs]
    factors += [Factor(name, (), Categorical()) for name in given] + [
        Factor(name, given, families[name].present_family or families[name]) for name in measured
    ]
    sizes = {name: len(table.levels([name], lambda _: True)[1][0].levels) for name in (*given, *labels)}
    cells = sum(int(np.prod([sizes.get(name, 1) for name in (*f.given, *f.columns)], dtype=object)) for f in factors)
    if 32 * cells > available_memory():
        raise TooLargeError(
            f"the tables of all pairs of {len(labels)} columns would have {short_int(cells)} cells: too many.\n"
            "    Merge rare levels, or leave columns with very many levels out."
        )
    absent = tuple(str(name) for name in (*given, *labels) if families[name].present_family is not None)
    schema = Schema(sorted_domains=tuple(str(name) for name in (*given, *labels)), missing_level_domains=absent)
    tally = count(table, factors, weight=sample_weight, schema=schema)
    found = {(factor.given, factor.columns[0]): place for place, factor in enumerate(tally.factors)}
    information = np.full((len(labels), len(labels)), -np.inf)
    for first, second in pairs:
        statistics: Any = tally.statistics[found[(*given, first), second]]
        shared = conditional_information(statistics.table if given else statistics.table[None])
        places = labels.index(first), labels.index(second)
        information[places] = information[places[::-1]] = shared
    joined = _spanning_tree(information)
    parents: dict[Name, tuple[Name, ...]] = dict.fromkeys(given, ())
    for place, up in joined.items():
        parents[labels[place]] = given if up is None else (*given, labels[up])
    parents |= dict.fromkeys(measured, given)
    model = BayesianNetwork(parents, **parameters)
    if set(parameters) & {"columns", "missing"}:  # counted otherwise than here
        return model.fit(table, sample_weight=sample_weight)
    kept = [
        Factor(name, above, families[name] if name in measured else Categorical()) for name, above in parents.items()
    ]
    whole = _tally_of_tree(tally, kept)
    empty = [name for name, domain in whole.domains.items() if not domain.levels]
    if empty:
        raise DataError(f"column {empty[0]!r} has no cell that counts; expected at least 1.")
    caution_numbers(model.columns, table, {name: whole.domains[str(name)].levels for name in (*given, *labels)})
    return model.fit_tally(whole)


def _tally_of_tree(tally: Tally, factors: Sequence[Factor]) -> Tally:
    """The tally of the factors of a tree, taken from that of all pairs of columns."""
    found = {(factor.given, factor.columns[0]): place for place, factor in enumerate(tally.factors)}
    kept: list[Any] = []
    for factor in factors:
        name, above = factor.columns[0], factor.given
        if (above, name) in found:
            kept.append(tally.statistics[found[above, name]])
        else:  # the pair was counted the other way round
            turned: Any = tally.statistics[found[(*above[:-1], name), above[-1]]]
            kept.append(Counts(np.swapaxes(turned.table, -1, -2)))
    return Tally(factors, kept, tally.domains, tally.schema).drop_unseen_levels()


def conditional_information(table: np.ndarray) -> float:
    """The mutual information of two columns given a third, in nats, from counts (given, first, second)."""
    rows, columns, total = table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))
    parts = xlogy(table, table).sum() - xlogy(rows, rows).sum() - xlogy(columns, columns).sum()
    return float(parts + xlogy(total, total).sum()) / max(float(total.sum()), 1.0)


def _spanning_tree(weight: np.ndarray) -> dict[int, int | None]:
    """The place every column hangs on, so that all edges together weigh most (Prim); None for the first."""
    joined: dict[int, int | None] = {}
    best = np.full(len(weight), -np.inf)
    nearest = np.zeros(len(weight), dtype=np.intp)
    left = list(range(len(weight)))
    while left:
        place = max(left, key=lambda k: best[k]) if joined else left[0]
        joined[place] = int(nearest[place]) if joined else None
        left.remove(place)
        closer = weight[place] > best
        best[closer], nearest[closer] = weight[place][closer], place
    return joined
