"""Explanations of one-dependence classifiers: contributions of columns that act in pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.data.array_input import as_array
from tallybayes.data.encoding import is_missing
from tallybayes.data.table import Table
from tallybayes.estimation.scoring.factor_scorer import chunk_rows
from tallybayes.models.classification.methods.explanation import ExplanationPart, PriorPart
from tallybayes.models.one_dependence.estimated_pairs import EstimatedPairs
from tallybayes.models.one_dependence.pair_scorer import PairScorer

INTERACTION = "(together)"


class HeldOutColumnParts(ExplanationPart):
    """The log-odds of a row minus those without each column; the remainder is the interaction of the columns."""

    def __init__(
        self, pairs: EstimatedPairs, scorer: PairScorer, table: Table, prior: PriorPart, log_odds: np.ndarray
    ) -> None:
        super().__init__([*pairs.counts.names, INTERACTION], prior.top, prior.other)
        self.scorer = scorer
        self.prior = prior
        self.log_odds = log_odds
        self.codes = [np.asarray(column).astype(np.int32) for column in pairs.codes(table)]
        self.shown = [as_array(table.columns[name]).tolist() for name in pairs.counts.names]

    def log_ratios(self, rows: slice) -> np.ndarray:
        """Return the contributions to some rows, (rows, columns + 1)."""
        codes = [column[rows] for column in self.codes]
        top = self.top[rows]
        other = self.other[rows]
        log_odds = self.log_odds[rows]
        n = len(top)
        index = np.arange(n)
        out = np.zeros((n, len(codes) + 1))
        step = max(1, chunk_rows(1, len(codes)) // max(n, 1))  # columns at a time: few rows take as long as one
        for start in range(0, len(codes), step):
            removed = range(start, min(start + step, len(codes)))
            tiled = [np.tile(column, len(removed)) for column in codes]
            for number, j in enumerate(removed):
                tiled[j][number * n : (number + 1) * n] = -1
            joint = self.scorer.joint_of(tiled).reshape(len(removed), n, -1)
            out[:, list(removed)] = (log_odds - (joint[:, index, top] - joint[:, index, other])).T
        with np.errstate(invalid="ignore"):
            out[:, -1] = log_odds - self.prior.log_odds[rows] - out[:, :-1].sum(axis=1)
        return out

    def cells(self, row: int) -> list[Any]:
        """Return the cells of one row, and None for the interaction."""
        cells = [column[row] for column in self.shown]
        return [*(None if is_missing(cell) else cell for cell in cells), None]
