"""Hypothesis strategies that generate tables for the laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "tallybayes.testing.strategies requires Hypothesis, which is not installed.\n"
        "    Install it with pip install hypothesis, or use tallybayes.testing.check_family, which does not need it."
    ) from error

from collections.abc import Sequence

from hypothesis.strategies import DrawFn

from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.binned import Binned
from tallybayes.families.binomial import Binomial
from tallybayes.families.family import Family
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.multinomial import Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.families.poisson import Poisson
from tallybayes.tally.domain import Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.testing.weighted_rows import WeightedRows

Strategy = st.SearchStrategy

LABELS: dict[str, list[Any]] = {
    "string": ["a", "b", "", "Zürich", "a b", "0"],
    "int": [0, 1, 2, 7, -3, 10**12],
    "bool": [False, True],
}


def numbers(*, moderate: bool = False) -> Strategy[float]:
    """Generate numbers: integers, fractions, far from 0, and (unless `moderate`) very large and very small.

    Parameters
    ----------
    moderate : bool, default False
        Whether to exclude very large and very small numbers.

    Returns
    -------
    SearchStrategy
    """
    usual = [st.floats(-100.0, 100.0).map(lambda x: round(x, 6) + 0.0), st.integers(-5, 5).map(float)]
    extreme = st.sampled_from([1e9, 1e9 + 0.125, -1e9, 1e100, -1e-100, 3e-9, 1e-3, 2.0**53])
    return st.one_of(*usual) if moderate else st.one_of(*usual, extreme)


def cells(family: Family, *, moderate: bool = False) -> Strategy[Any]:
    """Generate cells of a family of this package; for levels see `labels`.

    Parameters
    ----------
    family : Family
    moderate : bool, default False
        Whether to exclude very large and very small numbers.

    Returns
    -------
    SearchStrategy
    """
    if isinstance(family, Binomial):
        return st.integers(0, int(family.n)).map(float)
    if isinstance(family, Bernoulli):
        return st.sampled_from([0.0, 1.0])
    if isinstance(family, Poisson):
        return st.one_of(st.integers(0, 9), st.sampled_from([0, 0, 1, 200, 10**6])).map(float)
    if isinstance(family, LogNormal):
        usual = st.one_of(st.floats(0.001, 100.0).map(lambda x: round(x, 6)), st.integers(1, 5).map(float))
        extreme = st.sampled_from([1e9, 1e9 + 0.125, 1e100, 1e-100, 3e-9, 1e300])
        return usual if moderate else st.one_of(usual, extreme)
    if isinstance(family, Binned):  # on the edges, within, and beyond
        return st.one_of(st.sampled_from(family.ends.tolist()), numbers(moderate=moderate))
    if isinstance(family, Multinomial):
        return st.one_of(st.integers(0, 9).map(float), st.sampled_from([0.0, 0.0, 1.0, 300.0]))
    return numbers(moderate=moderate)


@st.composite
def columns(draw: DrawFn, elements: Strategy[Any], n: int, *, missing: bool = True) -> np.ndarray:
    """Generate a column of `n` cells: floats with NaN, or objects with None, if missing. Some are constant.

    Parameters
    ----------
    elements : SearchStrategy
    n : int
    missing : bool, default True
        Whether cells may be missing.

    Returns
    -------
    SearchStrategy
    """
    if draw(st.integers(0, 3)) == 3:
        elements = st.just(draw(elements))
    cell = st.one_of(elements, elements, elements, st.none()) if missing and draw(st.booleans()) else elements
    values = draw(st.lists(cell, min_size=n, max_size=n))
    if all(value is None or type(value) is float for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    out = np.empty(n, dtype=object)
    out[:] = values
    return out


@st.composite
def labels(draw: DrawFn, n: int, levels: Sequence[object] | None = None, *, missing: bool = True) -> np.ndarray:
    """Generate a column of `n` labels of one type, as objects with None if missing.

    Parameters
    ----------
    n : int
    levels : sequence, optional
        The possible labels; by default strings, integers or booleans.
    missing : bool, default True
        Whether labels may be missing.

    Returns
    -------
    SearchStrategy
    """
    pool = LABELS[draw(st.sampled_from(list(LABELS)))] if levels is None else list(levels)
    column = draw(columns(st.sampled_from(pool), n, missing=missing)).astype(object)
    column[[label != label for label in column]] = None  # an entirely missing column has NaN
    return column


@st.composite
def rows(
    draw: DrawFn,
    family: Family,
    *,
    elements: Strategy[Any] | None = None,
    n_given: int | None = None,
    max_rows: int = 12,
    max_columns: int = 3,
    moderate: bool = False,
    weighted: bool = True,
    missing: bool = True,
) -> WeightedRows:
    """Generate tables of like columns of one family, with zero to two grouping columns.

    Parameters
    ----------
    family : Family
    elements : SearchStrategy, optional
        Cells, for a user-defined family.
    n_given : int, optional
        Number of grouping columns; random by default.
    max_rows, max_columns : int
    moderate : bool, default False
        Whether to exclude very large and very small numbers.
    weighted : bool, default True
        Whether rows may have weights.
    missing : bool, default True
        Whether cells may be missing, if the family accepts it.

    Returns
    -------
    SearchStrategy of WeightedRows

    Examples
    --------
    >>> import tallybayes as tb
    >>> from hypothesis import given
    >>> from tallybayes.testing import check_order, strategies
    >>> @given(strategies.rows(tb.Poisson()))
    ... def test_order(rows):
    ...     check_order(rows, range(len(rows))[::-1])
    >>> test_order()
    """
    n = draw(st.integers(0, max_rows))
    n_given = draw(st.integers(0, 2)) if n_given is None else n_given
    names = tuple(f"x{i}" for i in range(draw(st.integers(1, max_columns))))
    given = ("group", "other")[:n_given]
    missing = missing and not isinstance(family, Multinomial | MultivariateGaussian | LinearGaussian)
    values: dict[Name, Any]
    if family.cell_type == "codes":
        values = {name: draw(labels(n, getattr(family, "levels", None), missing=missing)) for name in names}
    else:
        cell = cells(family, moderate=moderate) if elements is None else elements
        values = {name: draw(columns(cell, n, missing=missing)) for name in names}
    values |= {name: draw(labels(n)) for name in given}
    ordered = draw(st.sampled_from([(), ("group",)]))
    weight = draw(weights(n)) if weighted else None
    return WeightedRows(values, (Factor(names, given, family),), weight, Schema(sorted_domains=ordered))


def weights(n: int) -> Strategy[np.ndarray | None]:
    """Generate weights of `n` rows: none, integers or fractions, including 0.

    Parameters
    ----------
    n : int

    Returns
    -------
    SearchStrategy
    """
    special = st.sampled_from([0.0, 0.1, 1 / 3, 0.25, 2.5, 7.0, 100.0])
    choices = [st.integers(0, 3).map(float), special, st.floats(0.001, 3.0)]
    lists = [st.lists(choice, min_size=n, max_size=n).map(np.array) for choice in choices]
    return st.one_of(st.none(), *(weight.map(lambda w: w.astype(np.float64)) for weight in lists))


def splits(n: int, n_parts: int = 3) -> Strategy[list[np.ndarray]]:
    """Generate a partition of the rows 0 to n − 1 into `n_parts` parts, possibly empty.

    Parameters
    ----------
    n, n_parts : int

    Returns
    -------
    SearchStrategy
    """
    assignment = st.lists(st.integers(0, n_parts - 1), min_size=n, max_size=n)
    return assignment.map(lambda part: [np.flatnonzero(np.array(part) == number) for number in range(n_parts)])


@st.composite
def junk(draw: DrawFn, table: WeightedRows) -> Mapping[Name, np.ndarray]:
    """Generate invalid rows: infinities, missing cells, numbers out of range, unseen labels.

    Parameters
    ----------
    table : Rows

    Returns
    -------
    SearchStrategy
    """
    n = draw(st.integers(1, 3))
    out: dict[Name, np.ndarray] = {}
    known = table.label_columns()
    texts = {name for factor in table.factors if factor.family.cell_type == "text" for name in factor.columns}
    for name, column in table.columns.items():
        if name in known:
            kinds = {type(label) for label in [*column, *_declared(table, name)] if label is not None}
            unseen = {str: "never seen", int: 424242, bool: True}.get(next(iter(kinds), str))
            out[name] = draw(labels(n, [unseen]))
        elif name in texts:
            out[name] = draw(labels(n, ["words never seen"]))
        else:
            invalid = st.sampled_from([np.inf, -np.inf, np.nan, -1.0, 0.5, 1e200])
            shape = (n, *column.shape[1:])
            size = int(np.prod(shape))
            out[name] = np.array(draw(st.lists(invalid, min_size=size, max_size=size))).reshape(shape)
    return out


@st.composite
def renamings(draw: DrawFn, table: WeightedRows) -> dict[str, dict[Any, Any]]:
    """Generate new labels, distinct and of one type, for every level of every domain.

    Parameters
    ----------
    table : Rows

    Returns
    -------
    SearchStrategy
    """
    levels: dict[str, set[Any]] = {}
    for name in table.label_columns():
        column_levels = {label for label in table.columns[name] if label is not None}
        levels.setdefault(table.domain(name), set()).update(column_levels, _declared(table, name))
    out = {}
    shared: dict[Any, Any] = {}  # columns of one declared family have the same new labels
    for domain, old in levels.items():
        new = [*range(100, 100 + len(old))] if draw(st.booleans()) else [f"new {i}" for i in range(len(old))]
        out[domain] = dict(zip(sorted(old), draw(st.permutations(new)), strict=True))
    for factor in table.factors:
        for name in factor.columns if _declared(table, factor.columns[0]) else ():
            out[table.domain(name)] = shared.setdefault(factor.columns, out[table.domain(name)])
    return out


def _declared(table: WeightedRows, column: Name) -> tuple[Any, ...]:
    """Return the declared levels of a column."""
    families = [factor.family for factor in table.factors if column in factor.columns]
    declared = (getattr(family, "levels", None) for family in families)
    return next((levels for levels in declared if levels is not None), ())
