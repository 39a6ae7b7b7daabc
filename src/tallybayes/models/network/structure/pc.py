"""PC: edges that no test of independence removes, and the arrows that follow (Spirtes and Glymour, 1991)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import chdtrc

from tallybayes._utils.progress import progress
from tallybayes.kernels.contingency_tables import count_joint
from tallybayes.models.network.structure.chow_liu import conditional_information
from tallybayes.models.network.structure.constraints import Constraints
from tallybayes.models.network.structure.encoded_rows import EncodedRows
from tallybayes.models.network.structure.equivalence_class import oriented
from tallybayes.models.network.structure.structure_scores import n_cells_of

_CHUNK = 256  # tables counted together
_LARGE = 1 << 22  # cells of a table that is not tested: it says nothing


def pc_marks(rows: EncodedRows, constraints: Constraints, alpha: float) -> tuple[np.ndarray, int]:
    """The class that the tests leave, as marks [a, b] where b may be the child, and how many tests there were.

    Edges are removed only after all tests of a level, so that the order of the columns does not matter (PC-stable;
    Colombo and Maathuis, 2014).
    """
    n = len(rows.names)
    allowed, required = constraints.allowed, constraints.required
    joined = allowed | allowed.T
    kept = required | required.T
    apart: dict[tuple[int, int], tuple[int, ...]] = {}
    n_tests = 0
    for level in range(n - 1):
        if level > constraints.most or joined.sum(axis=1).max() <= level:
            break
        before = joined.copy()
        pairs = [(a, b) for a, b in np.argwhere(np.triu(before) & ~kept).tolist()]
        for a, b in progress(pairs, f"tests given {level}"):
            sets = dict.fromkeys(
                given
                for one, other in ((a, b), (b, a))
                for given in combinations(np.flatnonzero(before[one] & (np.arange(n) != other)).tolist(), level)
            )
            found, tested = _separating(rows, a, b, list(sets), alpha)
            n_tests += tested
            if found is not None:
                joined[a, b] = joined[b, a] = False
                apart[a, b] = found
    marks = joined & allowed & ~required.T
    for a, b in sorted(apart):
        for middle in np.flatnonzero(joined[a] & joined[b]).tolist():
            if middle not in apart[a, b] and marks[a, middle] and marks[b, middle]:
                for end in (a, b):  # a → middle ← b, unless arrows say otherwise by now
                    if marks[end, middle] and not required[middle, end]:
                        marks[middle, end] = False
    return oriented(marks), n_tests


def _separating(
    rows: EncodedRows, a: int, b: int, sets: list[tuple[int, ...]], alpha: float
) -> tuple[tuple[int, ...] | None, int]:
    """The columns given which two are independent by the test, with the largest p-value; None if there are none."""
    best, most, n_tests = None, alpha, 0
    able = [given for given in sets if n_cells_of(rows, (*given, a, b)) <= _LARGE]
    for first in range(0, len(able), _CHUNK):
        some = able[first : first + _CHUNK]
        tables = count_joint(rows.codes, rows.sizes, [(*given, a, b) for given in some], rows.weight)
        for given, table in zip(some, tables, strict=True):
            p = p_independent(table.reshape(-1, *table.shape[-2:]))
            if p > most:
                best, most = given, p
        n_tests += len(some)
        if best is not None:
            break
    return best, n_tests


def p_independent(table: np.ndarray) -> float:
    """The p-value of independence of two columns given others, from counts (given, first, second), by G².

    Twice the rows times the conditional mutual information in nats; lines and columns without a row take no freedom.
    """
    statistic = 2.0 * float(table.sum()) * conditional_information(table)
    first, second = table.sum(axis=2), table.sum(axis=1)
    freedom = float((np.maximum((first > 0).sum(axis=1) - 1, 0) * np.maximum((second > 0).sum(axis=1) - 1, 0)).sum())
    return 1.0 if freedom == 0 else float(chdtrc(freedom, max(statistic, 0.0)))
