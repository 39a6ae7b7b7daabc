"""The laws of counting: tallies add, subtract, and do not depend on how the rows came."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes import kernels
from tallybayes.errors import StatisticsError
from tallybayes.models.io import load
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally
from tallybayes.testing.assert_close import Counted, assert_statistics_close
from tallybayes.testing.weighted_rows import WeightedRows, rename_tally


def check_addition(a: Counted, b: Counted, c: Counted, zero: Counted, *, exact: bool | Sequence[bool] = False) -> None:
    """Addition: a + b = b + a, (a + b) + c = a + (b + c), a + 0 = a, and sum() works.

    Parameters
    ----------
    a, b, c, zero : Statistics or Tally
        Three of a kind, and that of no rows.
    exact : bool, or one for every factor, default False
        Whether counts are whole, so that not a bit may differ.

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
    in_order: Any = sum([a, b, c])
    assert_statistics_close(in_order, total, exact=exact, law="sum() adds in order")


def check_forgetting(a: Counted, b: Counted, zero: Counted, *, exact: bool | Sequence[bool] = False) -> None:
    """Forgetting: (a + b) − b = a, (a + b) − a = b, (a + b) − (a + b) = 0, a − 0 = a.

    Parameters
    ----------
    a, b, zero : Statistics or Tally
        Two of a kind, and that of no rows.
    exact : bool, or one for every factor, default False
        Whether counts are whole, so that not a bit may differ.

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
    """Taking out more than was put in is refused, and changes neither side.

    Parameters
    ----------
    small, more : Statistics or Tally
        ``more`` must hold some weight.

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
            raise AssertionError(f"the refusal does not say what happened: {error}") from error
    else:
        raise AssertionError(f"more was taken out than was put in, and not refused: {small!r} − {large!r}")
    if before != (_bits(small), _bits(large)):
        raise AssertionError("a refused subtraction changed a statistic")


def check_split(rows: WeightedRows, parts: Sequence[Any]) -> None:
    """The tally of all rows is the sum of the tallies of any parts, whatever levels each has seen.

    Parameters
    ----------
    rows : Rows
    parts : sequence of arrays of row numbers
        Every row once, in any order.
    """
    pieces = [rows.take(part).count() for part in parts]
    total: Any = sum(pieces)
    assert_statistics_close(total, rows.count(), held=total, exact=rows.exact, law="split")


def check_weights(rows: WeightedRows, times: npt.ArrayLike) -> None:
    """A row of weight 2 is the row twice, of weight 0 none at all.

    Parameters
    ----------
    rows : Rows
    times : array of int of shape (n,)
    """
    times = np.asarray(times)
    repeated = rows.weighted(None).take(np.repeat(np.arange(len(rows)), times))
    assert_statistics_close(
        rows.weighted(times).count(), repeated.count(), exact=rows.weighted(times).exact, law="weight"
    )


def check_absent(rows: WeightedRows, junk: Mapping[Name, np.ndarray]) -> None:
    """Rows of weight 0 are absent, whatever they hold: infinities, missing cells, labels never seen.

    Parameters
    ----------
    rows : Rows
    junk : mapping from name to array of shape (m,) or (m, columns)
        The columns of the rows that are not to count.
    """
    n_junk = next(len(column) for column in junk.values())
    padded = rows.followed_by(junk, np.zeros(n_junk))
    assert_statistics_close(
        padded.count(), rows.count(), held=padded.count(), exact=rows.exact, law="weight 0 = absent"
    )


def check_order(rows: WeightedRows, order: npt.ArrayLike) -> None:
    """Permuting the rows changes nothing.

    Parameters
    ----------
    rows : Rows
    order : array of row numbers, every one once
    """
    moved = rows.take(order).count()
    assert_statistics_close(moved, rows.count(), held=moved, exact=rows.exact, law="permutation")


def check_names(rows: WeightedRows, names: Mapping[str, Mapping[Any, Any]]) -> None:
    """Renaming groups and levels changes nothing but the names; the counts follow them.

    Parameters
    ----------
    rows : Rows
    names : mapping
        For some domains, the new label of every old one.
    """
    found = rows.renamed(names).count()
    assert_statistics_close(found, rename_tally(rows.count(), names), exact=rows.exact, law="renaming labels")


def check_soft_groups(rows: WeightedRows) -> None:
    """Hard groups are soft groups with a share of 1 in one of them.

    Parameters
    ----------
    rows : Rows
        With factors given one and the same single column.
    """
    (group,) = {factor.given for factor in rows.factors}
    (name,) = group
    hard = rows.count()
    key = rows.domain(name)
    levels = hard.domains[key].levels
    shares = np.array([[label == level for level in levels] for label in rows.columns[name]], dtype=np.float64)
    columns = {**rows.columns, name: shares.reshape(len(rows), len(levels))}
    soft = WeightedRows(columns, rows.factors, rows.weight, rows.schema).count()
    domains = {**soft.domains, key: Domain(levels, key)}
    assert_statistics_close(
        Tally(soft.factors, soft.statistics, domains, soft.schema), hard, exact=rows.exact, law="hard = one-hot soft"
    )


def check_kernels(rows: WeightedRows, one: ModuleType, other: ModuleType) -> None:
    """Two implementations of the kernels count alike.

    Parameters
    ----------
    rows : Rows
    one, other : modules with the functions of `tallybayes.kernels`
    """
    tallies = []
    running = kernels._kernels
    for module in (one, other):
        kernels._kernels = module
        try:
            tallies.append(rows.count())
        finally:
            kernels._kernels = running
    assert_statistics_close(tallies[1], tallies[0], exact=rows.exact, law="compiled kernels = reference kernels")


def check_file(tally: Tally) -> None:
    """load(save(t)) = t, bit by bit.

    Parameters
    ----------
    tally : Tally
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tally")
        tally.save(path)
        back = load(path)
    if _bits(back) != _bits(tally) or back.factors != tally.factors or back.schema != tally.schema:
        raise AssertionError(f"a file does not give back what was saved: {tally!r} became {back!r}")
    for key, domain in tally.domains.items():
        kept = back.domains[key]
        if (kept.levels, kept.declared, kept.is_sorted) != (domain.levels, domain.declared, domain.is_sorted):
            raise AssertionError(f"a file does not give back the levels {domain!r}, but {kept!r}")


def _bits(thing: Any) -> list[tuple[Any, bytes]]:
    """Every number of a statistic or tally, to the last bit."""
    arrays: list[np.ndarray] = []
    for statistic in thing.statistics if isinstance(thing, Tally) else [thing]:
        for part in statistic._parts().values():
            arrays += [part.high, part.low] if isinstance(part, DoubleDouble) else [part]
        arrays.append(getattr(statistic, "anchor", np.zeros(0)))
    return [(array.shape, np.ascontiguousarray(array).tobytes()) for array in arrays]
