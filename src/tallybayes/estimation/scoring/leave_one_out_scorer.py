"""LeftOutPlan: how rows of one class are scored, each by the counts of all other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes import kernels
from tallybayes.data.table import Table
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families._shared.log_prob_forms import LinearLogForm, LogTableForm, StudentTForm
from tallybayes.tally.domain import Domain


class LeaveOneOutScorer(RowScorer):
    """The factors of a classifier, prepared to score rows of one class, none of which counts itself.

    What a row's absence does to its own class is again a table; the other classes are as they were.

    Parameters
    ----------
    scored, log_prior, domains, unseen
        As for `RowScorer`; ``log_prior`` without one row of the class.
    own : list of tuples of arrays
        The tables of every factor, as `leave_one_out_tables` makes them.
    code : int
        The class.
    """

    def __init__(
        self,
        scored: list[FactorScorer],
        log_prior: np.ndarray,
        domains: list[list[Domain]],
        unseen: str,
        own: Sequence[tuple[np.ndarray, ...]],
        code: int,
    ) -> None:
        self._own = own
        self._code = code
        super().__init__(scored, log_prior, domains, unseen)

    def _log_table(self, number: int) -> tuple[np.ndarray, Any]:
        log_table, segments = super()._log_table(number)
        log_table[:, self._code] = self._own[number][0][:, self._code]
        return log_table, segments

    def _tables(self, number: int, *, sparse: bool) -> Any:
        found = super()._tables(number, sparse=sparse)
        if found is None or isinstance(self.forms[number], LogTableForm):
            return found
        kind, *parts = found
        tables = [np.array(part) if isinstance(part, np.ndarray) else part for part in parts]
        if isinstance(self.forms[number], LinearLogForm):
            log_p, log_q = (part[:, self._code] for part in self._own[number])
            tables[0][:, self._code], tables[1][:, self._code] = log_p - log_q, log_q
            return self._bounded((kind, *tables), sparse)
        tables[1][:, self._code], tables[3][:, self._code] = 0.0, 0.0  # the class has a factor of its own
        return (kind, *tables)

    def _bells(self, numbers: Sequence[int]) -> list[int]:
        """Those of the factors that have bells: what is left of one is scored apart."""
        return [number for number in numbers if isinstance(self.forms[number], StudentTForm)]

    def _more_factors(self, numbers: Sequence[int]) -> list[Any]:
        return [
            ("left_out", self._code, *(table[:, self._code] for table in self._own[number]))
            for number in self._bells(numbers)
        ]

    def _kernel_parts(
        self, table: Table, *, counted: bool = False, whole: bool = True
    ) -> tuple[list[int], kernels.Scorer, list[Any]]:
        numbers, scorer, blocks = super()._kernel_parts(table, counted=counted, whole=whole)
        if len(numbers) < len(self.scored):
            return numbers, scorer, blocks
        again = self._bells(numbers)
        return [*numbers, *again], scorer, [*blocks, *(blocks[number] for number in again)]
