"""All laws of a family in one function, for user-defined families."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tallybayes._utils.frozen_value import is_storable
from tallybayes.families.family import Family
from tallybayes.tally.factor import Factor
from tallybayes.testing.posterior_laws import check_posterior, check_samples, check_value
from tallybayes.testing.protocol_laws import check_protocols
from tallybayes.testing.tally_laws import (
    check_addition,
    check_file,
    check_forgetting,
    check_names,
    check_order,
    check_refusal,
    check_soft_groups,
    check_split,
    check_weights,
)
from tallybayes.testing.weighted_rows import WeightedRows


def check_family(
    family: Family,
    draw_rows: Callable[[np.random.Generator, int], Any],
    *,
    parameters: Any = None,
    n_examples: int = 10,
    seed: int = 0,
) -> None:
    """Check every law that a family must satisfy, on generated rows.

    Parameters
    ----------
    family : Family
    draw_rows : callable
        ``draw_rows(rng, n)`` returns n rows that the family can count: an array of shape (n,) or (n, columns), or a
        mapping from name to column. Cells may be missing (NaN, None) if the family accepts them.
    parameters : the family's parameters without groups, optional
        If given, samples with these parameters are checked as well.
    n_examples : int, default 10
        Number of random tables, each with splits, weights and groups.
    seed : int, default 0

    Raises
    ------
    AssertionError
        With the law and the numbers that differ.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> from tallybayes.testing import check_family
    >>> check_family(tb.Poisson(), lambda rng, n: rng.poisson(3.0, (n, 2)), parameters=np.array([3.0, 0.5]))
    """
    for example in range(n_examples):
        rng = np.random.default_rng([seed, example])
        _check_table(family, _rows(family, draw_rows, rng, int(rng.integers(4, 30))), rng)
    _check_complete_rows(family, _rows(family, draw_rows, np.random.default_rng(seed), 12))
    if parameters is not None:
        check_samples(family, parameters, rng=seed)
    if is_storable(family):
        check_value(family)
        check_file(_rows(family, draw_rows, np.random.default_rng(seed), 8).count())


def _rows(family: Family, draw_rows: Callable[..., Any], rng: np.random.Generator, n: int) -> WeightedRows:
    """Return generated rows as a table with a group column and one factor."""
    values = draw_rows(rng, n)
    if not isinstance(values, Mapping):
        array = np.asarray(values)
        values = {f"x{i}": array.reshape(n, -1)[:, i] for i in range(array[:1].size)}
    columns = {name: np.asarray(column) for name, column in values.items()}
    group = np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, n)]
    return WeightedRows({**columns, "group": group}, (Factor(tuple(columns), "group", family),))


def _check_complete_rows(family: Family, rows: WeightedRows) -> None:
    """Check the optional protocols on the complete rows of a family of numbers."""
    if family.cell_type == "numbers":
        block = np.stack([np.asarray(rows.columns[name], dtype=float) for name in rows.factors[0].columns], axis=1)
        block = block[~np.isnan(block).any(axis=1)]
        if len(block) > 1:
            check_protocols(family, block)


def _check_table(family: Family, rows: WeightedRows, rng: np.random.Generator) -> None:
    """Check all laws on one table."""
    n = len(rows)
    part_of_row = rng.integers(0, 3, n)
    parts = [np.flatnonzero(part_of_row == part) for part in range(3)]
    for weight in (None, rng.uniform(0.0, 3.0, n)):
        weighted = rows.weighted(weight)
        a, b, c = (weighted.take(part).count() for part in parts)
        zero = weighted.take([]).count()
        check_addition(a, b, c, zero, exact=weighted.exact)
        check_forgetting(a, b, zero, exact=weighted.exact)
        check_split(weighted, parts)
        check_order(weighted, rng.permutation(n))
        check_soft_groups(weighted)
        check_names(weighted, {"group": {"a": "z", "b": "a", "c": "m"}})
    check_refusal(rows.take(parts[0]).count(), rows.take(np.arange(n)).count())
    check_weights(rows, rng.integers(0, 3, n))
    tally = rows.count()
    first, rest = (
        rows.take(indices).count().align(tally.domains).statistics[0] for indices in (range(n // 2), range(n // 2, n))
    )
    check_posterior(family.resolve_prior(None, tally.statistics[0], "bayes"), first, rest)
