"""LeaveOneOutScorer: score the rows of one class, each without its own counts."""

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
    """Scores rows of one class by the kernels; every row is left out of the statistics of its class.

    Leaving a row out of its own class gives another table; the tables of other classes stay.

    Parameters
    ----------
    scored, log_prior, domains, unseen
        As for `RowScorer`; ``log_prior`` is that without one row of the class.
    own : list of tuples of arrays
        The tables of every factor, as `leave_one_out_tables` returns them.
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
        """Return the numbers of factors with normal or Student t forms, which have their own leave-one-out tables."""
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
