"""Check that models have counted the same rows, as far as their tallies determine it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import StatisticsError
from tallybayes.evaluation.named_columns import class_domain
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.estimated_network import network_of
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.totals import Totals
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally

ColumnStatistics = Counts | Totals | Moments


class ColumnTotals(NamedTuple):
    """Statistics of a column, by class: the weight of its cells and, if the tally has it, their mean.

    ``levels`` is the weight of every level, over all classes.
    """

    weight: np.ndarray
    mean: np.ndarray | None
    std: float
    levels: dict[Any, float]

    def pooled(self) -> ColumnTotals:
        """Return the statistics over all classes."""
        total = self.weight.sum(keepdims=True)
        mean = None if self.mean is None else (self.weight * self.mean).sum(keepdims=True) / np.maximum(total, 1e-300)
        return ColumnTotals(total, mean, self.std, self.levels)


class CountedRows(NamedTuple):
    """The rows that a model counted: the weights of classes, if it has any, and statistics of columns by class.

    ``target`` is the column of the classes; ``named`` is false if the labels were given apart from the columns.
    """

    columns: dict[Any, ColumnTotals]
    classes: dict[Any, float] | None = None
    target: Any = None
    named: bool = True
    transitions: np.ndarray | None = None  # counts of consecutive states

    @property
    def n_rows(self) -> float:
        """The weight of the rows."""
        if self.classes is not None:
            return float(sum(self.classes.values()))
        return max((float(column.weight.sum()) for column in self.columns.values()), default=0.0)

    def pooled(self) -> dict[Any, ColumnTotals]:
        """Return the statistics of every column over all classes, that of the classes included."""
        columns = {name: column.pooled() for name, column in self.columns.items()}
        if self.classes is None:
            return columns
        return columns | {self.target: ColumnTotals(np.array([self.n_rows]), None, 0.0, self.classes)}


def counted_rows(model: ClassConditionalModel | BayesianNetwork | HiddenMarkovModel) -> CountedRows:
    """Return what a fitted model has counted."""
    if isinstance(model, BayesianNetwork):
        nodes = network_of(model).nodes.values()
        return CountedRows(_columns(model.tally_, [(node.factor, node.marginal()) for node in nodes], None))
    if isinstance(model, HiddenMarkovModel):
        return _counted_sequences(model)
    factors = estimates_of(model).feature_factors
    if isinstance(model, Mixture):
        return CountedRows(_columns(model.tally_, factors, None))
    target = model.target_
    counts = model.tally_[target]
    assert isinstance(counts, Counts)
    seen = counts.table > 0
    classes = {level: float(counts.table[code]) for code, level in enumerate(class_domain(model).levels) if seen[code]}
    return CountedRows(_columns(model.tally_, factors, seen), classes, target, model.input_format_.by_name)


def _counted_sequences(model: HiddenMarkovModel) -> CountedRows:
    """Return what a hidden Markov model has counted: states are its classes."""
    counted = model._estimated_hmm
    (_, start), (_, transitions) = counted.pairs[:2]
    steps = start.table + transitions.table.sum(axis=0)
    emissions = counted.pairs[2:]
    components = counted.topology.components
    if components is not None:  # components are hidden: pool them by state
        owner, n_states = components.owner, len(components.states)
        ends = counted.pairs[2:3] if model.end_state else []
        emissions = ends + [(factor, part.merge_groups(owner, n_states)) for factor, part in counted.emissions]
    columns = _columns(model.tally_, emissions, steps > 0)
    classes = dict(zip(counted.states.levels, steps.tolist(), strict=True))
    return CountedRows(columns, classes, counted.names.state, False, transitions.table)


def _columns(tally: Tally, pairs: Sequence[tuple[Factor, Any]], seen: np.ndarray | None) -> dict[Any, ColumnTotals]:
    """Return the statistics of every column of some factors, in the groups that were seen."""
    columns: dict[Any, ColumnTotals] = {}
    groups = slice(None) if seen is None else seen
    for factor, statistics in pairs:
        width = int(statistics.n_columns)
        domains = [tally.domains[tally.schema.domain(name)] for name in factor.level_columns]
        weight, mean, std = _summary(factor, statistics, domains)
        levels = _level_weights(statistics, domains)
        for position in range(width):
            columns[factor.column(position, width)] = ColumnTotals(
                weight[groups, position],
                None if mean is None else mean[groups, position],
                float(std[position]),
                levels[position] if levels else {},
            )
    return columns


def _summary(
    factor: Factor, statistics: ColumnStatistics, domains: list[Domain]
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return weights and means (classes, columns) and a typical standard deviation (columns,) of a factor's cells."""
    shape = (*statistics.given_shape, int(statistics.n_columns))
    family = factor.family
    rows = np.asarray(family.row_weight(statistics))
    weight = rows if rows.shape == shape else np.broadcast_to(statistics.weight, shape)
    std = np.zeros(shape[-1])
    if isinstance(statistics, Counts):
        return weight, _level_means(statistics, domains), std
    if isinstance(statistics, Moments):
        std = np.sqrt(statistics.diagonal().scatter.sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300))
        mean = statistics.mean
    else:
        mean = statistics.total / np.where(weight > 0, weight, 1.0)
    known = family.sums_cells
    return weight, mean if known else None, std


def _level_means(statistics: Counts, domains: list[Domain]) -> np.ndarray | None:
    """Return the means (classes, columns) of numeric levels; None for other levels, missing levels and bins."""
    if not domains or any(domain.has_missing_level or domain.kind not in ("int", "bool") for domain in domains):
        return None
    levels = np.concatenate([np.array(domain.levels, dtype=np.float64) for domain in domains])
    total = statistics.weight
    return np.asarray(statistics.segments.sum(statistics.table * levels) / np.where(total > 0, total, 1.0))


def _level_weights(statistics: ColumnStatistics, domains: list[Domain]) -> list[dict[Any, float]]:
    """Return the weight of every level of every column; an empty list for columns without levels, and for bins."""
    if not isinstance(statistics, Counts) or not domains:
        return []
    tables = statistics.segments.split(statistics.pool_groups().table)
    return [
        {level: float(n) for level, n in zip(domain.levels, table, strict=True) if n > 0}
        for domain, table in zip(domains, tables, strict=True)
    ]


def check_same_rows(first: object, first_rows: CountedRows, second: object, second_rows: CountedRows) -> None:
    """Raise StatisticsError if two models, given by name and counted rows, did not count the same rows."""
    for reason, hint in _differences((first, second), first_rows, second_rows):
        raise StatisticsError(
            f"cannot compare models {first!r} and {second!r}: {reason}.\n"
            f"    Fit both on the same rows, target, columns and weights; families may differ.{hint}"
        )


def _differences(names: tuple[object, object], left: CountedRows, right: CountedRows) -> Iterator[tuple[str, str]]:
    """Yield the differences of what two models have counted, each with an additional hint or ""."""
    classes = left.classes
    others = right.classes
    if classes is None or others is None or (left.target != right.target and left.named and right.named):
        # The classes are different columns: compare the columns over all classes.
        yield from _different_names(names, "columns", left.pooled(), right.pooled())
        hint = "\n    A network counts a cell only if its parents are known: leave rows with missing cells out of both."
        yield from _different_columns(left.pooled(), right.pooled(), hint)
        return
    yield from _different_names(names, "classes", classes, others)
    yield from _different_names(names, "columns", left.columns, right.columns)
    for label, rows in classes.items():
        if not math.isclose(rows, others[label], rel_tol=1e-9):
            yield f"class {label!r} has weight {rows:.12g} and {others[label]:.12g}", ""
    yield from _different_columns(left.columns, right.columns)
    moves = (left.transitions, right.transitions)
    if moves[0] is not None and moves[1] is not None and not np.allclose(moves[0], moves[1], rtol=1e-9):
        yield "their states occur in another order", ""


def _different_names(
    models: tuple[object, object], what: str, left: Mapping[Any, object], right: Mapping[Any, object]
) -> Iterator[tuple[str, str]]:
    """Yield the classes or columns that only one of two models has."""
    for owner, own, other in ((models[0], left, right), (models[1], right, left)):
        only = [repr(key) for key in own if key not in other]
        if only:
            yield f"only {owner!r} has the {what} {', '.join(only[:5])}", ""


def _different_columns(
    left: dict[Any, ColumnTotals], right: dict[Any, ColumnTotals], hint: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the columns that have other weights, levels or means."""
    for name, column in left.items():
        other = right[name]
        if not np.allclose(column.weight, other.weight, rtol=1e-9, atol=0):
            weights = f"{column.weight.sum():.12g} and {other.weight.sum():.12g}"
            yield f"the known cells of column {name!r} have weight {weights}", hint
        levels = {*column.levels, *other.levels} if column.levels and other.levels else set()
        if any(not math.isclose(column.levels.get(k, 0), other.levels.get(k, 0), rel_tol=1e-9) for k in levels):
            yield f"column {name!r} has other levels, or other weights of them", ""
        if column.mean is not None and other.mean is not None:
            size = max(column.std, other.std) + np.abs(column.mean).max(initial=0.0)
            if not np.allclose(column.mean, other.mean, rtol=0, atol=1e-6 * size):
                yield f"column {name!r} has other values: its means differ", ""
