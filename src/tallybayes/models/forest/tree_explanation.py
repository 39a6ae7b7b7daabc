"""Explanation of trees: the contributions of the columns on the paths of a row."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from tallybayes.models.classification.methods.explanation import (
    CALIBRATION,
    PRIOR,
    Explanation,
    ExplanationPart,
    compared,
)
from tallybayes.models.forest.coded_columns import CodedColumns
from tallybayes.models.forest.forest_counts import ForestCounts
from tallybayes.models.forest.grown_trees import GrownTrees


class _PathPart(ExplanationPart):
    """The contributions of all columns, of the classes without any column, and of the calibration."""

    def __init__(
        self, columns: CodedColumns, codes: np.ndarray, terms: np.ndarray, top: np.ndarray, other: np.ndarray
    ) -> None:
        super().__init__([PRIOR, *columns.names, CALIBRATION], top, other)
        self.columns, self.codes, self.terms = columns, codes, terms

    def log_ratios(self, rows: slice) -> np.ndarray:
        return self._between(self.terms[rows].transpose(0, 2, 1), rows)

    def cells(self, row: int) -> list[Any]:
        shown = [self.columns.shown(j, int(code)) for j, code in enumerate(self.codes[row])]
        return [None, *shown, None]


def explain_trees(
    grown: GrownTrees,
    counts: ForestCounts,
    leaf_values: np.ndarray,
    codes: np.ndarray,
    labels: np.ndarray,
    against: Hashable,
    frame: str | None,
) -> Explanation:
    """Return the contribution of each column to the log-odds of each row: they sum to the log-odds.

    A split changes the class scores from a node to its child; the change is the contribution of its column. The last
    term is the contamination by the class frequencies, which is not a product.
    """
    log_proba = grown.log_proba(counts, leaf_values, codes)
    top, other = compared(log_proba, counts.domain.levels, against)
    base, steps = grown.contributions(counts, codes)
    rest = log_proba - base - steps.sum(axis=1)
    terms = np.concatenate([base[:, None], steps, rest[:, None]], axis=1)
    part = _PathPart(grown.columns, codes, terms, top, other)
    rows = np.arange(len(codes))
    log_odds = log_proba[rows, top] - log_proba[rows, other]
    impossible = np.zeros(len(codes), dtype=bool)
    return Explanation(part.names, [part], log_odds, labels[top], labels[other], impossible, frame)


def tree_contributions(
    grown: GrownTrees, counts: ForestCounts, codes: np.ndarray, top: np.ndarray, other: np.ndarray
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the contributions of the classes without any column, and of each column, to given log-odds of each row."""
    base, steps = grown.contributions(counts, codes)
    rows = np.arange(len(codes))
    yield PRIOR, base[rows, top] - base[rows, other]
    for j, name in enumerate(grown.columns.names):
        yield name, steps[rows, j, top] - steps[rows, j, other]
