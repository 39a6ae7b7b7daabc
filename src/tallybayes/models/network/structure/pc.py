"""The PC algorithm: structure search by tests of conditional independence (Spirtes and Glymour, 1991)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import chdtrc

from tallybayes._utils.progress import progress
from tallybayes.kernels.contingency_tables import count_joint
from tallybayes.models.network.structure.constraints import Constraints
from tallybayes.models.network.structure.encoded_rows import EncodedRows
from tallybayes.models.network.structure.equivalence_class import apply_meek_rules
from tallybayes.models.network.structure.structure_scores import conditional_information

_CHUNK = 256  # tables counted together
_MAX_CELLS = 1 << 22  # larger tables are not tested: the test has no power

Columns = tuple[int, ...]


def pc_marks(rows: EncodedRows, constraints: Constraints, alpha: float) -> tuple[np.ndarray, int]:
    """Return the marks of the class that the tests leave (see `equivalence_class`), and the number of tests.

    Edges are removed only after all tests with conditioning sets of one size, so that the order of the columns does not
    matter (PC-stable; Colombo and Maathuis, 2014).
    """
    n = len(rows.names)
    adjacent = constraints.allowed | constraints.allowed.T
    kept = constraints.required | constraints.required.T
    separating: dict[tuple[int, int], Columns] = {}
    n_tests = 0
    for size in range(n - 1):
        if size > constraints.max_parents or adjacent.sum(axis=1).max() <= size:
            break
        before = adjacent.copy()
        pairs = np.argwhere(np.triu(before) & ~kept).tolist()
        for a, b in progress(pairs, f"tests given {size}"):
            sets: dict[Columns, None] = {}
            for end, other in ((a, b), (b, a)):
                neighbors = np.flatnonzero(before[end] & (np.arange(n) != other)).tolist()
                sets |= dict.fromkeys(combinations(neighbors, size))
            separating_set, n_tested = _separating_set(rows, a, b, list(sets), alpha)
            n_tests += n_tested
            if separating_set is not None:
                adjacent[a, b] = adjacent[b, a] = False
                separating[a, b] = separating_set
    return apply_meek_rules(_orient_colliders(adjacent, constraints, separating)), n_tests


def _orient_colliders(
    adjacent: np.ndarray, constraints: Constraints, separating: dict[tuple[int, int], Columns]
) -> np.ndarray:
    """Return the marks of a skeleton, with a → c ← b where c is not in the separating set of a and b."""
    required = constraints.required
    marks = adjacent & constraints.allowed & ~required.T
    for (a, b), separating_set in sorted(separating.items()):
        for middle in np.flatnonzero(adjacent[a] & adjacent[b]).tolist():
            if middle not in separating_set and marks[a, middle] and marks[b, middle]:
                for end in (a, b):
                    marks[middle, end] &= required[middle, end] | ~marks[end, middle]
    return marks


def _separating_set(rows: EncodedRows, a: int, b: int, sets: list[Columns], alpha: float) -> tuple[Columns | None, int]:
    """Return the conditioning set with the largest p-value above alpha, or None; and the number of tests."""
    best = None
    largest = alpha
    n_tests = 0
    testable = [given for given in sets if rows.n_cells((*given, a, b)) <= _MAX_CELLS]
    for first in range(0, len(testable), _CHUNK):
        chunk = testable[first : first + _CHUNK]
        tables = count_joint(rows.codes, rows.sizes, [(*given, a, b) for given in chunk], rows.weight)
        for given, table in zip(chunk, tables, strict=True):
            p = p_independent(table.reshape(-1, *table.shape[-2:]))
            if p > largest:
                best, largest = given, p
        n_tests += len(chunk)
        if best is not None:
            break
    return best, n_tests


def p_independent(table: np.ndarray) -> float:
    """Return the p-value of the G² test of conditional independence, from counts (given, first, second).

    G² is twice the number of rows times the conditional mutual information in nats. Levels without rows have no degrees
    of freedom.
    """
    statistic = 2.0 * float(table.sum()) * conditional_information(table)
    n_first = (table.sum(axis=2) > 0).sum(axis=1)
    n_second = (table.sum(axis=1) > 0).sum(axis=1)
    freedom = float((np.maximum(n_first - 1, 0) * np.maximum(n_second - 1, 0)).sum())
    return 1.0 if freedom == 0 else float(chdtrc(freedom, max(statistic, 0.0)))
