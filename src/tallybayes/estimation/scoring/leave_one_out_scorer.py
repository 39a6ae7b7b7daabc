"""LeaveOneOutScorer: score the rows of one class, each without its own counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallybayes.estimation.scoring.factor_tables import FactorTables, KernelFactor
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families._shared.log_prob_forms import LinearLogForm, StudentTForm


class LeftOutTables(FactorTables):
    """The tables of one factor; every row is left out of the statistics of its class.

    Parameters
    ----------
    whole : FactorTables
        The tables from all rows.
    impossible
        As for `FactorTables`.
    own : tuple of arrays
        The tables of the class from which a row is left out, as `leave_one_out_tables` returns them.
    code : int
        The class.
    """

    def __init__(self, whole: FactorTables, impossible: np.ndarray, own: tuple[np.ndarray, ...], code: int) -> None:
        super().__init__(whole.scorer, whole.domains, whole.unseen, impossible, whole.form)
        self.own = [table[:, code] for table in own]
        self.code = code
        if isinstance(self.form, StudentTForm):  # the leave-one-out Student t of the class
            self.extra_factor = ("left_out", code, *self.own)

    @property
    def log_table(self) -> np.ndarray:
        """log p(level | class), (cells, classes)."""
        log_table = super().log_table.copy()
        log_table[:, self.code] = self.own[0]
        return log_table

    def tables(self, *, sparse: bool) -> KernelFactor | None:
        """Return the kernel tables (columns, classes) of numbers; None if NumPy scores the factor."""
        found = super().tables(sparse=sparse)
        if found is None or not isinstance(self.form, LinearLogForm | StudentTForm):
            return found
        kind = found[0]
        tables = [np.array(part) if isinstance(part, np.ndarray) else part for part in found[1:]]
        if isinstance(self.form, LinearLogForm):
            log_p, log_q = self.own
            tables[0][:, self.code], tables[1][:, self.code] = log_p - log_q, log_q
            return self.bounded(kind, *tables, sparse=sparse)
        tables[1][:, self.code], tables[3][:, self.code] = 0.0, 0.0  # the class has a factor of its own
        return (kind, *tables)


class LeaveOneOutScorer(RowScorer):
    """Scores rows of one class by the kernels; every row is left out of the statistics of its class.

    Leaving a row out of its own class gives another table; the tables of other classes stay.

    Parameters
    ----------
    whole : RowScorer
        The scorer with the counts of all rows.
    log_prior : ndarray of shape (classes,)
        log p(class) without one row of the class.
    own : list of tuples of arrays
        The tables of every factor, as `leave_one_out_tables` returns them.
    code : int
        The class.
    """

    def __init__(
        self, whole: RowScorer, log_prior: np.ndarray, own: Sequence[tuple[np.ndarray, ...]], code: int
    ) -> None:
        super().__init__([], log_prior, [], "missing")
        pairs = zip(whole.factors, own, strict=True)
        self.factors = [LeftOutTables(factor, self.impossible, tables, code) for factor, tables in pairs]
