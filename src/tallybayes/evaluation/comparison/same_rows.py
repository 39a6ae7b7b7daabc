"""Whether models of any kind have counted the same rows, as far as their tallies tell."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import StatisticsError
from tallybayes.families.family import is_not_overridden
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor


class ColumnTotals(NamedTuple):
    """What a model counted of a column, by class: the weight of its cells and, where it can be told, their mean.

    ``levels`` has the weight of every label, whatever the class.
    """

    weight: np.ndarray
    mean: np.ndarray | None
    deviation: float
    levels: dict[Any, float]

    def pooled(self) -> ColumnTotals:
        """The same, whatever the class."""
        total = self.weight.sum(keepdims=True)
        mean = None if self.mean is None else (self.weight * self.mean).sum(keepdims=True) / np.maximum(total, 1e-300)
        return ColumnTotals(total, mean, self.deviation, self.levels)


class CountedRows(NamedTuple):
    """The rows a model counted: classes, if it tells any, and columns, by class or by whatever they are given.

    ``target`` is the column of the classes; it has no name of its own where the labels came apart from the columns.
    """

    columns: dict[Any, ColumnTotals]
    classes: dict[Any, float] | None = None
    target: Any = None
    named: bool = True
    pairs: np.ndarray | None = None  # of states in a row

    @property
    def n_rows(self) -> float:
        """The weight of the rows."""
        if self.classes is not None:
            return float(sum(self.classes.values()))
        return max((float(column.weight.sum()) for column in self.columns.values()), default=0.0)

    def pooled(self) -> dict[Any, ColumnTotals]:
        """Every column whatever it is given, that of the classes among them."""
        found = {name: column.pooled() for name, column in self.columns.items()}
        if self.classes is None:
            return found
        return found | {self.target: ColumnTotals(np.array([self.n_rows]), None, 0.0, self.classes)}


def describe(model: Any) -> CountedRows:
    """The rows a fitted model has counted."""
    if isinstance(model, BayesianNetwork):
        nodes = model._estimated_network.nodes.values()
        return CountedRows(_columns(model, [(node.factor, node.own()) for node in nodes], None))
    if isinstance(model, HiddenMarkovModel):
        counted = model._estimated_hmm
        (_, start), (_, pairs) = counted.pairs[:2]
        steps = start.table + pairs.table.sum(axis=0)
        seen, components = counted.pairs[2:], counted.topology.components
        if components is not None:  # of which nothing was seen: what is compared are states
            owner, n = components.owner, len(components.states)
            ends = counted.pairs[2:3] if model.end_state else []
            seen = ends + [(factor, found.merge_groups(owner, n)) for factor, found in counted.emissions]
        columns = _columns(model, seen, steps > 0)
        classes = dict(zip(counted.states.levels, steps.tolist(), strict=True))
        return CountedRows(columns, classes, counted.names["state"], False, pairs.table)
    if isinstance(model, Mixture):
        return CountedRows(_columns(model, model._feature_factors(), None))
    levels, rows = model._class_domain.levels, model.tally_[model._target].table
    seen = rows > 0
    classes = {level: float(rows[code]) for code, level in enumerate(levels) if seen[code]}
    columns = _columns(model, model._feature_factors(), seen)
    return CountedRows(columns, classes, model._target, model._shape.by_name)


def _columns(model: Any, pairs: list[tuple[Factor, Any]], seen: np.ndarray | None) -> dict[Any, ColumnTotals]:
    """Every column of some factors, in the groups that were seen."""
    columns: dict[Any, ColumnTotals] = {}
    for factor, statistics in pairs:
        width, here = int(statistics.n_columns), slice(None) if seen is None else seen
        weight, mean, spread = _summary(model, factor, statistics)
        levels = _levels(model, factor, statistics)
        for place in range(width):
            middle = None if mean is None else mean[here, place]
            name = factor.column(place, width)
            columns[name] = ColumnTotals(
                weight[here, place], middle, float(spread[place]), levels[place] if levels else {}
            )
    return columns


def _summary(model: Any, factor: Any, statistics: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Weights and means (classes, columns) and a typical deviation (columns,) of the cells behind a factor."""
    shape, family = (*statistics.given_shape, int(statistics.n_columns)), factor.family
    rows = np.asarray(family.row_weight(statistics))
    weight = rows if rows.shape == shape else np.broadcast_to(statistics.weight, shape)
    if isinstance(statistics, Counts):
        return weight, _label_means(model, factor, statistics), np.zeros(shape[-1])
    if isinstance(statistics, Moments):
        spread = np.sqrt(statistics.diagonal().scatter.sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300))
        mean = statistics.mean
    else:
        mean, spread = statistics.total / np.where(weight > 0, weight, 1.0), np.zeros(shape[-1])
    known = family.sums_cells and is_not_overridden(family, "sums_cells", "collect")
    return weight, mean if known else None, spread


def _label_means(model: Any, factor: Any, statistics: Counts) -> np.ndarray | None:
    """The means (classes, columns) of labels that are numbers; None for other labels, absence and bins."""
    domains = [model.tally_.domains[model.tally_.schema.domain(name)] for name in factor.level_columns]
    if not domains or any(domain.has_missing_level or domain.kind not in ("int", "bool") for domain in domains):
        return None
    levels = np.concatenate([np.array(domain.levels, dtype=np.float64) for domain in domains])
    total = statistics.weight
    return np.asarray(statistics.segments.sum(statistics.table * levels) / np.where(total > 0, total, 1.0))


def _levels(model: Any, factor: Any, statistics: Any) -> list[dict[Any, float]]:
    """The weight of every label of every column; nothing for columns without labels, and for bins."""
    if not isinstance(statistics, Counts) or not factor.level_columns:
        return []
    domains = [model.tally_.domains[model.tally_.schema.domain(name)] for name in factor.level_columns]
    tables = statistics.segments.split(statistics.pool_groups().table)
    pairs = zip(domains, tables, strict=True)
    return [{level: float(n) for level, n in zip(d.levels, table, strict=True) if n > 0} for d, table in pairs]


def check_same(one: Any, mine: CountedRows, other: Any, its: CountedRows) -> None:
    """Refuse to compare models that did not count the same rows."""
    together = mine.classes is not None and its.classes is not None
    if together and (mine.target == its.target or not mine.named or not its.named):
        assert mine.classes is not None
        assert its.classes is not None
        _check_names(one, other, "classes", mine.classes, its.classes)
        _check_names(one, other, "columns", mine.columns, its.columns)
        for label, rows in mine.classes.items():
            if not math.isclose(rows, its.classes[label], rel_tol=1e-9):
                why = f"class {label!r} has weight {rows:.12g} and {its.classes[label]:.12g}"
                raise _not_same(one, other, why)
        _check_columns(one, mine.columns, other, its.columns)
        if mine.pairs is not None and its.pairs is not None and not np.allclose(mine.pairs, its.pairs, rtol=1e-9):
            raise _not_same(one, other, "their states follow each other in another order")
        return
    found, twins = mine.pooled(), its.pooled()  # what is given differs, so that only the columns can be compared
    _check_names(one, other, "columns", found, twins)
    hint = "\n    A network counts a cell only where its parents are known: leave rows with missing cells out of both."
    _check_columns(one, found, other, twins, hint)


def _check_names(one: Any, other: Any, what: str, a: dict[Any, Any], b: dict[Any, Any]) -> None:
    alone = [key for key in a if key not in b] or [key for key in b if key not in a]
    if alone:
        owner = one if alone[0] in a else other
        raise _not_same(one, other, f"only {owner!r} has the {what} {', '.join(map(repr, alone[:5]))}")


def _check_columns(
    one: Any, mine: dict[Any, ColumnTotals], other: Any, its: dict[Any, ColumnTotals], hint: str = ""
) -> None:
    for name, column in mine.items():
        twin = its[name]
        if not np.allclose(column.weight, twin.weight, rtol=1e-9, atol=0):
            found = f"{column.weight.sum():.12g} and {twin.weight.sum():.12g}"
            raise _not_same(one, other, f"the known cells of column {name!r} have weight {found}", hint)
        labels = {*column.levels, *twin.levels} if column.levels and twin.levels else set()
        if any(not math.isclose(column.levels.get(k, 0), twin.levels.get(k, 0), rel_tol=1e-9) for k in labels):
            raise _not_same(one, other, f"column {name!r} has other labels, or others as often")
        if column.mean is not None and twin.mean is not None:
            size = max(column.deviation, twin.deviation) + np.abs(column.mean).max(initial=0.0)
            if not np.allclose(column.mean, twin.mean, rtol=0, atol=1e-6 * size):
                raise _not_same(one, other, f"column {name!r} has other values: its means differ")


def _not_same(one: Any, other: Any, why: str, hint: str = "") -> StatisticsError:
    return StatisticsError(
        f"cannot compare models {one!r} and {other!r}: {why}.\n"
        "    Evidence is about data: fit both on the same rows, target, columns and weights; families may differ."
        + hint
    )
