"""Laws of tallies: addition, subtraction, and independence of the order and the source of the rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.errors import StatisticsError
from tallybayes.kernels import active
from tallybayes.models.io import load
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally
from tallybayes.testing.assert_close import Counted, assert_statistics_close
from tallybayes.testing.weighted_rows import WeightedRows, rename_tally


def check_addition(a: Counted, b: Counted, c: Counted, zero: Counted, *, exact: bool | Sequence[bool] = False) -> None:
    """Check a + b = b + a, (a + b) + c = a + (b + c), a + 0 = a, and sum().

    Parameters
    ----------
    a, b, c, zero : Statistics or Tally
        Three of one type, and one without rows.
    exact : bool, or one for every factor, default False
        Whether weights are integers, so that counts must be equal bit by bit.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_addition
    >>> check_addition(tb.Counts([1, 2]), tb.Counts([0, 5]), tb.Counts([3, 3]), tb.Counts([0, 0]), exact=True)
    """
    total = a + b + c
    assert_statistics_close(b + a, a + b, exact=exact, law="a + b = b + a")
    assert_statistics_close(a + (b + c), total, exact=exact, law="(a + b) + c = a + (b + c)")
    assert_statistics_close(a + zero, a, held=a + zero, exact=exact, law="a + 0 = a")
    assert_statistics_close(zero + a, a, held=a + zero, exact=exact, law="0 + a = a")
    total_of_sum: Any = sum([a, b, c])
    assert_statistics_close(total_of_sum, total, exact=exact, law="sum() adds in order")


def check_forgetting(a: Counted, b: Counted, zero: Counted, *, exact: bool | Sequence[bool] = False) -> None:
    """Check (a + b) − b = a, (a + b) − a = b, (a + b) − (a + b) = 0 and a − 0 = a.

    Parameters
    ----------
    a, b, zero : Statistics or Tally
        Two of one type, and one without rows.
    exact : bool, or one for every factor, default False
        Whether weights are integers, so that counts must be equal bit by bit.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_forgetting
    >>> check_forgetting(tb.Moments.of([[1.0], [4.0]]), tb.Moments.of([[1e9]]), tb.Moments.zeros((), 1))
    """
    both = a + b
    assert_statistics_close(both - b, a, held=both, exact=exact, law="(a + b) − b = a")
    assert_statistics_close(both - a, b, held=both, exact=exact, law="(a + b) − a = b")
    assert_statistics_close(both - both, zero + (a - a), held=both, exact=exact, law="a − a = 0")
    assert_statistics_close(a - zero, a, held=a + zero, exact=exact, law="a − 0 = a")


def check_refusal(small: Counted, more: Counted) -> None:
    """Check that removing more than was added raises StatisticsError and changes neither operand.

    Parameters
    ----------
    small, more : Statistics or Tally
        ``more`` must have a positive weight.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_refusal
    >>> check_refusal(tb.Counts([1, 2]), tb.Counts([0, 1]))
    """
    large = small + more
    before = _bits(small), _bits(large)
    try:
        small - large
    except StatisticsError as error:
        if "cannot forget" not in str(error):
            raise AssertionError(f"unexpected error message: {error}") from error
    else:
        raise AssertionError(f"removing more than was added raised no error: {small!r} − {large!r}")
    if before != (_bits(small), _bits(large)):
        raise AssertionError("a failed subtraction changed a statistic")


def check_split(rows: WeightedRows, parts: Sequence[Any]) -> None:
    """Check that the tally of all rows is the sum of the tallies of any partition.

    Parameters
    ----------
    rows : Rows
    parts : sequence of arrays of row numbers
        Every row exactly once, in any order.
    """
    tallies = [rows.take(part).count() for part in parts]
    total: Any = sum(tallies)
    assert_statistics_close(total, rows.count(), held=total, exact=rows.exact, law="split")


def check_weights(rows: WeightedRows, repetitions: npt.ArrayLike) -> None:
    """Check that a row of weight 2 equals the row twice, and a row of weight 0 none.

    Parameters
    ----------
    rows : Rows
    repetitions : array of int of shape (n,)
    """
    repetitions = np.asarray(repetitions)
    repeated = rows.weighted(None).take(np.repeat(np.arange(len(rows)), repetitions))
    assert_statistics_close(
        rows.weighted(repetitions).count(), repeated.count(), exact=rows.weighted(repetitions).exact, law="weight"
    )


def check_absent(rows: WeightedRows, junk: Mapping[Name, np.ndarray]) -> None:
    """Check that rows of weight 0 are ignored, whatever their cells: infinities, missing cells, unseen labels.

    Parameters
    ----------
    rows : Rows
    junk : mapping from name to array of shape (m,) or (m, columns)
        The columns of the rows of weight 0.
    """
    n_junk = next(len(column) for column in junk.values())
    padded = rows.followed_by(junk, np.zeros(n_junk))
    assert_statistics_close(
        padded.count(), rows.count(), held=padded.count(), exact=rows.exact, law="weight 0 = absent"
    )


def check_order(rows: WeightedRows, order: npt.ArrayLike) -> None:
    """Check that permuting the rows changes nothing.

    Parameters
    ----------
    rows : Rows
    order : array of row numbers, each once
    """
    permuted = rows.take(order).count()
    assert_statistics_close(permuted, rows.count(), held=permuted, exact=rows.exact, law="permutation")


def check_names(rows: WeightedRows, names: Mapping[str, Mapping[Any, Any]]) -> None:
    """Check that renaming groups and levels only renames them.

    Parameters
    ----------
    rows : Rows
    names : mapping
        For some domains, a mapping from old to new labels.
    """
    renamed = rows.renamed(names).count()
    assert_statistics_close(renamed, rename_tally(rows.count(), names), exact=rows.exact, law="renaming labels")


def check_soft_groups(rows: WeightedRows) -> None:
    """Check that hard groups equal one-hot soft groups.

    Parameters
    ----------
    rows : Rows
        With factors given the same single column.
    """
    (group,) = {factor.given for factor in rows.factors}
    (name,) = group
    hard = rows.count()
    key = rows.domain(name)
    levels = hard.domains[key].levels
    one_hot = np.array([[label == level for level in levels] for label in rows.columns[name]], dtype=np.float64)
    columns = {**rows.columns, name: one_hot.reshape(len(rows), len(levels))}
    soft = WeightedRows(columns, rows.factors, rows.weight, rows.schema).count()
    domains = {**soft.domains, key: Domain(levels, key)}
    assert_statistics_close(
        Tally(soft.factors, soft.statistics, domains, soft.schema), hard, exact=rows.exact, law="hard = one-hot soft"
    )


def check_kernels(rows: WeightedRows, first: ModuleType, second: ModuleType) -> None:
    """Check that two implementations of the kernels count alike.

    Parameters
    ----------
    rows : Rows
    first, second : modules with the functions of `tallybayes.kernels`
    """
    tallies = []
    running = active.module
    for module in (first, second):
        active.module = module
        try:
            tallies.append(rows.count())
        finally:
            active.module = running
    assert_statistics_close(tallies[1], tallies[0], exact=rows.exact, law="compiled kernels = reference kernels")


def check_file(tally: Tally) -> None:
    """Check load(save(t)) = t, bit by bit.

    Parameters
    ----------
    tally : Tally
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tally")
        tally.save(path)
        loaded = load(path)
    if _bits(loaded) != _bits(tally) or loaded.factors != tally.factors or loaded.schema != tally.schema:
        raise AssertionError(f"the file changed the tally: {tally!r} became {loaded!r}")
    for key, domain in tally.domains.items():
        loaded_domain = loaded.domains[key]
        if (loaded_domain.levels, loaded_domain.declared, loaded_domain.is_sorted) != (
            domain.levels,
            domain.declared,
            domain.is_sorted,
        ):
            raise AssertionError(f"the file changed the levels {domain!r} to {loaded_domain!r}")


def _bits(counted: Any) -> list[tuple[Any, bytes]]:
    """Return every number of a statistic or tally as bytes."""
    arrays: list[np.ndarray] = []
    for statistic in counted.statistics if isinstance(counted, Tally) else [counted]:
        for part in statistic.arrays().values():
            arrays += [part.high, part.low] if isinstance(part, DoubleDouble) else [part]
        arrays.append(getattr(statistic, "anchor", np.zeros(0)))
    return [(array.shape, np.ascontiguousarray(array).tobytes()) for array in arrays]
