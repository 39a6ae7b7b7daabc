"""Sums over joint tables: against the tables themselves, on every implementation, whole and sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, xlogy

from tallybayes.errors import CellError
from tallybayes.kernels import active, contingency_tables
from tallybayes.kernels.reference import sums as reference_sums
from tests.examples import examples
from tests.unit.kernels.kernel_cases import TIERS, lay_out, layouts, seeds

IMPLEMENTATIONS = ["reference", *TIERS]


def run(implementation: str, *arguments: Any, **options: Any) -> np.ndarray:
    """Call `sum_joint` on "reference" or one tier of the compiled module."""
    before = active.module
    if implementation == "reference":
        active.module = reference_sums
    else:
        from tallybayes.kernels import _compiled

        _compiled.use_tier(implementation)
        active.module = _compiled
    try:
        return contingency_tables.sum_joint(*arguments, **options)
    finally:
        active.module = before
        if implementation != "reference":
            _compiled.use_tier(TIERS[-1])


def term(counts: np.ndarray, start: float) -> float:
    if start == 0:
        return float(xlogy(counts, counts).sum())
    return float((gammaln(start + counts) - gammaln(start)).sum())


def by_table(columns: Any, sizes: Any, sets: Any, cells: Any, lines: Any, weight: Any) -> list[float]:
    """The sums of the tables that are counted whole."""
    tables = contingency_tables.count_joint(columns, sizes, sets, weight)
    found = [term(table, start) for table, start in zip(tables, cells, strict=True)]
    if lines is None:
        return found
    return [sum - term(t.sum(axis=-1), start) for sum, t, start in zip(found, tables, lines, strict=True)]


@pytest.mark.slow
@examples(60)
@given(data=st.data(), seed=seeds, layout=layouts)
def test_sums_are_those_of_the_tables(data: st.DataObject, seed: int, layout: str) -> None:
    rng = np.random.default_rng(seed)
    n = data.draw(st.sampled_from([0, 1, 2, 65, 700]))
    d, most = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([2, 5, 12, 300]))
    sizes = rng.integers(1, most + 1, d)
    codes = (rng.random((n, d)) ** 2 * sizes).astype(np.int64)
    codes[rng.random((n, d)) < data.draw(st.sampled_from([0.0, 0.1]))] = -1
    members = st.lists(st.integers(0, d - 1), min_size=1, max_size=3, unique=True).map(tuple)
    sets = data.draw(st.lists(members, max_size=8))
    starts = [rng.choice([0.0, 0.01, 0.5, 1.0, 7.3, 80.0], len(sets)) for _ in range(2)]
    lines = starts[1] if data.draw(st.booleans()) else None
    weight = rng.random(n) * 3 * (rng.random(n) < 0.8) if data.draw(st.booleans()) else None
    columns = lay_out(codes.astype("i2"), layout)
    expected = by_table(columns, sizes, sets, starts[0], lines, weight)
    for implementation in IMPLEMENTATIONS:
        found = run(implementation, columns, sizes, sets, starts[0], lines, weight)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_that_no_memory_holds(implementation: str, weighted: bool) -> None:
    # 3⁰·…: 39 columns of 3 levels have 4 · 10¹⁸ cells, of which at most the rows' occur.
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (500, 39)).astype(np.uint8)
    codes[250:] = codes[:250]
    weight = rng.integers(1, 5, 500).astype(float) if weighted else None
    total = np.full(250, 2.0) if weight is None else weight[:250] + weight[250:]
    sets = [tuple(range(39)), (*range(1, 39), 0)]
    found = run(implementation, codes, [3] * 39, sets, np.full(2, 0.25), np.full(2, 0.75), weight)
    expected = term(total, 0.25) - term(total, 0.75)
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-12)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("implementation", TIERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_change_nothing(implementation: str, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 9, (30_000, 8)).astype(np.uint8)
    weight = rng.random(30_000) if weighted else None
    sets = [(0, 1), (2, 3, 4), (1, 2, 3, 4, 5, 6, 7), (7, 6, 5, 4, 3, 0), (3,)] * 3
    starts = np.linspace(0.0, 2.0, len(sets))
    one, several = (run(implementation, codes, [9] * 8, sets, starts, starts, weight, threads=k) for k in (1, 4))
    assert one.tolist() == several.tolist()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_bad_input_is_refused(implementation: str) -> None:
    codes = np.array([[0, 1], [2, 0]])
    with pytest.raises(CellError):
        run(implementation, codes, [2, 2], [(0, 1)], np.ones(1))
    with pytest.raises(CellError):  # also where only a sparse table needs the column
        run(implementation, np.tile(codes, 20), [2] * 40, [tuple(range(40))], np.ones(1))
    with pytest.raises(ValueError, match="a start of 0 or more for each of the 1 sets"):
        run(implementation, codes, [3, 2], [(0, 1)], np.ones(2))
    with pytest.raises(ValueError, match="a start of 0 or more"):
        run(implementation, codes, [3, 2], [(0, 1)], np.array([-1.0]))
    with pytest.raises(ValueError, match=r"expected fewer than 2\*\*63"):
        run(implementation, np.zeros((1, 64), np.uint8), [2] * 64, [tuple(range(64))], np.ones(1))
