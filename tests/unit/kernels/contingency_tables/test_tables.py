"""Joint counts: against brute force, on every implementation, dtype and layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.errors import CellError
from tallybayes.kernels import active, contingency_tables
from tallybayes.kernels.reference import sums as reference_sums
from tests.examples import examples
from tests.unit.kernels.kernel_cases import INTEGERS, LAYOUTS, TIERS, lay_out, layouts, needs_compiled, seeds

IMPLEMENTATIONS = ["reference", *TIERS]
every_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)


def run(implementation: str, *arguments: Any, **options: Any) -> list[np.ndarray]:
    """Call `count_joint` on "reference" or one tier of the compiled module."""
    before = active.module
    if implementation == "reference":
        active.module = reference_sums
    else:
        from tallybayes.kernels import _compiled

        _compiled.use_tier(implementation)
        active.module = _compiled
    try:
        return contingency_tables.count_joint(*arguments, **options)
    finally:
        active.module = before
        if implementation != "reference":
            _compiled.use_tier(TIERS[-1])


def brute_force(
    codes: np.ndarray, sizes: Sequence[int], sets: Sequence[Sequence[int]], weight: np.ndarray | None = None
) -> list[np.ndarray]:
    """Add every row to its cell; negative codes are missing."""
    weights = np.ones(len(codes)) if weight is None else weight
    tables = []
    for members in sets:
        table = np.zeros([sizes[j] for j in members])
        known = (codes[:, members] >= 0).all(axis=1)
        np.add.at(table, tuple(codes[known][:, j] for j in members), weights[known])
        tables.append(table)
    return tables


def assert_tables(found: list[np.ndarray], expected: list[np.ndarray], exact: bool = True) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.float64
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0.0 if exact else 1e-13, atol=0.0)


def draw_codes(rng: np.random.Generator, n: int, sizes: Sequence[int], missing: float) -> np.ndarray:
    """Codes of every column, skewed to the low ones as real ones are, a share of them missing."""
    codes = np.zeros((n, len(sizes)), np.int64)
    for j, size in enumerate(sizes):
        codes[:, j] = (rng.random(n) ** 2 * size).astype(np.int64)
        codes[(rng.random(n) < missing) | (size == 0), j] = -1
    return codes


@st.composite
def set_lists(draw: st.DrawFn, n_columns: int, most: int) -> list[tuple[int, ...]]:
    members = st.lists(st.integers(0, n_columns - 1), min_size=1, max_size=most, unique=True).map(tuple)
    return draw(st.lists(members, max_size=12)) if n_columns else []


@pytest.mark.slow
@examples(100)
@given(data=st.data(), seed=seeds, layout=layouts, missing=st.sampled_from([0.0, 0.0, 0.01, 0.5, 1.0]))
def test_against_brute_force(data: st.DataObject, seed: int, layout: str, missing: float) -> None:
    rng = np.random.default_rng(seed)
    n = data.draw(st.sampled_from([0, 1, 63, 64, 65, 500, 2047, 2048, 2049, 5000]))
    most = data.draw(st.sampled_from([2, 4, 9, 40, 120]))
    dtype = np.dtype(data.draw(st.sampled_from((*INTEGERS, "?"))))
    if dtype == np.bool_:
        most, missing = 2, 0.0
    low = 1 if dtype == np.bool_ else data.draw(st.integers(0, 1))
    sizes = rng.integers(low, most + 1, data.draw(st.integers(0, 9)))
    codes = draw_codes(rng, n, sizes, missing)
    sets = data.draw(set_lists(len(sizes), 6 if most <= 9 else 2))
    weight = None
    if data.draw(st.booleans()):
        weight = rng.random(n) * (rng.random(n) < 0.8)
        if data.draw(st.booleans()):
            weight = np.stack([weight, weight], axis=1)[:, 0]  # not contiguous
    columns = lay_out(codes.astype(dtype), layout)
    expected = brute_force(codes, sizes, sets, weight)
    for implementation in IMPLEMENTATIONS:
        assert_tables(run(implementation, columns, sizes, sets, weight), expected, exact=weight is None)


# Every way a set can be counted: as bits, through short keys with four tables or one, through long keys.
SIZES = [1, 2, 3, 4, 4, 5, 6, 40, 200, 254, 255, 256, 1000]
SETS = {
    "one": [(1,), (6,), (9,), (10,), (11,), (12,)],
    "bits": [(1, 2), (2, 1), (3, 4, 1), (1, 2, 3, 4), (0, 1, 2)],
    "short keys": [(3, 4, 5), (5, 6, 7), (1, 2, 3, 4, 5, 6), (7, 8), (8, 9), (6, 7, 8)],
    "long keys": [(10, 1), (1, 11), (2, 12, 3), (7, 8, 9), (12, 10)],
    "all": [(1, 2), (5, 6, 7), (7, 8, 9), (0,), (12, 3), (1, 2)],
}


@pytest.mark.slow
@every_implementation
@pytest.mark.parametrize("way", SETS)
@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_way(implementation: str, way: str, missing: float, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    codes = draw_codes(rng, 5000, SIZES, missing)
    weight = rng.integers(0, 9, 5000) / 4.0 if weighted else None  # sums of these are exact
    expected = brute_force(codes, SIZES, SETS[way], weight)
    for columns in (codes, np.asfortranarray(codes.astype(np.int16)), lay_out(codes.astype(np.uint32), "list")):
        assert_tables(run(implementation, columns, SIZES, SETS[way], weight), expected)


@pytest.mark.slow_after(2)
@every_implementation
@pytest.mark.parametrize("layout", LAYOUTS)
def test_byte_columns_of_every_layout(implementation: str, layout: str) -> None:
    rng = np.random.default_rng(1)
    sizes = [2, 3, 4, 2, 30, 100, 250]
    codes = draw_codes(rng, 9001, sizes, 0.02)
    sets = [(0,), (0, 1), (3, 2, 1, 0), (4, 2), (5, 6), (6, 4, 5)]
    columns = lay_out(codes.astype(np.uint8), layout)
    assert_tables(run(implementation, columns, sizes, sets), brute_force(codes, sizes, sets))


@every_implementation
def test_columns_of_different_types(implementation: str) -> None:
    rng = np.random.default_rng(2)
    sizes, types = [3, 200, 5000, 7, 2], ["u1", "i2", "i4", "u8", "?"]
    codes = draw_codes(rng, 5000, sizes, 0.0)
    columns = [codes[:, j].astype(dtype) for j, dtype in enumerate(types)]
    for column in columns:
        column.flags.writeable = False
    sets = [(0, 4), (4, 3, 0), (1, 0), (2, 4), (1, 3, 4)]
    assert_tables(run(implementation, columns, sizes, sets), brute_force(codes, sizes, sets))


@pytest.mark.slow
@every_implementation
def test_a_large_table(implementation: str) -> None:
    rng = np.random.default_rng(3)
    sizes = [250, 200, 210]  # more than ten million cells
    codes = draw_codes(rng, 3000, sizes, 0.01)
    (table,) = run(implementation, codes.astype(np.int16), sizes, [(2, 0, 1)])
    assert table.shape == (210, 250, 200)
    (expected,) = brute_force(codes, sizes, [(2, 0, 1)])
    np.testing.assert_array_equal(table, expected)


@pytest.mark.slow_after(1)
@every_implementation
def test_many_columns_and_sets(implementation: str) -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 5, 300).tolist()
    codes = draw_codes(rng, 700, sizes, 0.01)
    sets = [tuple(rng.choice(300, rng.integers(1, 7), replace=False).tolist()) for _ in range(400)]
    sets.append(tuple(j for j in range(300) if sizes[j] == 1)[:64])  # one cell, many members
    expected = brute_force(codes, sizes, sets)
    for columns in (codes.astype(np.int8), np.asfortranarray(codes.astype(np.uint8))):
        assert_tables(run(implementation, columns, sizes, sets), expected)


@every_implementation
def test_nothing_to_count(implementation: str) -> None:
    assert run(implementation, np.zeros((5, 2), np.int8), [1, 1], []) == []
    assert run(implementation, [], [], []) == []
    assert run(implementation, [], [], [], np.ones(3)) == []
    (table,) = run(implementation, np.zeros((0, 2), np.int8), [2, 3], [(1, 0)])
    assert table.tolist() == [[0.0, 0.0]] * 3
    empty, other = run(implementation, np.array([[-1, 0], [-1, 1]]), [0, 2], [(1, 0), (1,)])
    assert empty.shape == (2, 0)
    assert other.tolist() == [1.0, 1.0]
    huge = [2**31 - 2, 0]
    assert run(implementation, np.full((1, 2), -1), huge, [(0, 1)])[0].shape == tuple(huge)
    assert run(implementation, np.full((9, 2), -1, np.int8), [2, 2], [(0, 1)])[0].sum() == 0.0


@every_implementation
def test_a_missing_cell_leaves_its_row_in_other_sets(implementation: str) -> None:
    codes = np.array([[0, 255, 1], [1, 1, 255], [1, 0, 0]], np.uint8)
    first, second, pair = run(implementation, codes, [2, 2, 2], [(0,), (0, 1), (1, 2)])
    assert first.tolist() == [1.0, 2.0]
    assert second.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert pair.tolist() == [[1.0, 0.0], [0.0, 0.0]]


@every_implementation
def test_the_largest_code_is_a_level_where_there_are_enough(implementation: str) -> None:
    codes = np.array([[0, 255], [1, 254], [1, 255]], np.uint8)
    (pair,) = run(implementation, codes, [2, 256], [(0, 1)])
    assert pair[:, 254:].tolist() == [[0.0, 1.0], [1.0, 1.0]]
    (pair,) = run(implementation, codes, [2, 255], [(0, 1)])
    assert pair[1, 254] == pair.sum() == 1.0
    (pair,) = run(implementation, np.array([[0, 127], [1, -1]], np.int8), [2, 200], [(0, 1)])
    assert pair[0, 127] == pair.sum() == 1.0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_change_no_bit(tier: str, weighted: bool) -> None:
    rng = np.random.default_rng(5)
    n, sizes = 200_000, [2, 3, 4, 5, 300, 2, 40]
    codes = draw_codes(rng, n, sizes, 0.01).astype(np.int16)
    sets = [(0,), (0, 1, 2), (3, 6, 2), (4, 0), (5, 1), (1, 2, 3, 5, 0)]
    weight = rng.random(n) if weighted else None
    alone = run(tier, codes, sizes, sets, weight, threads=1)
    for threads in (2, 3, 0):
        for one, other in zip(run(tier, codes, sizes, sets, weight, threads=threads), alone, strict=True):
            np.testing.assert_array_equal(one, other)
    assert_tables(alone, run("reference", codes, sizes, sets, weight), exact=not weighted)


@every_implementation
def test_weight_zero_is_absent(implementation: str) -> None:
    codes = np.array([[0, 7], [1, 1], [-9, 0]])
    weight = np.array([0.0, 2.5, 0.0])
    tables = run(implementation, codes, [2, 2], [(0, 1), (1,)], weight)
    assert_tables(tables, [np.array([[0.0, 0.0], [0.0, 2.5]]), np.array([0.0, 2.5])])
    assert run(implementation, codes[:1], [2, 2], [(0, 1)], np.zeros(1))[0].sum() == 0.0


@pytest.mark.slow_after(14)
@every_implementation
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", [3, 100])
def test_code_outside(implementation: str, dtype: str, size: int) -> None:
    codes = np.zeros((6000, 4), dtype)
    codes[4500, 1] = codes[4500, 2] = codes[5000, 0] = size
    sets: list[tuple[int, ...]] = [(0, 1), (2,)]
    for columns in (codes, np.asfortranarray(codes), list(codes.T)):
        with pytest.raises(CellError) as caught:
            run(implementation, columns, [size] * 4, sets)
        assert (caught.value.row, caught.value.column) == (4500, 1)
        weight = np.ones(6000)
        weight[4500] = 0.0
        with pytest.raises(CellError) as caught:
            run(implementation, columns, [size] * 4, sets, weight)
        assert (caught.value.row, caught.value.column) == (5000, 0)
    codes[:, :3] = 0
    codes[2, 3] = size  # a column of no set
    with pytest.raises(CellError) as caught:
        run(implementation, codes, [size] * 4, sets)
    assert (caught.value.row, caught.value.column) == (2, 3)


@every_implementation
@pytest.mark.parametrize("code", [-2, -128, 3, 100])
def test_code_outside_in_every_way(implementation: str, code: int) -> None:
    codes = np.zeros((3000, 2), np.int8)
    codes[2999, 1] = code
    for first, column in ((2, codes), (254, codes), (300, codes), (300, codes.astype(np.int64))):
        with pytest.raises(CellError) as caught:
            run(implementation, column, [first, 3], [(0, 1)])
        assert (caught.value.row, caught.value.column) == (2999, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((np.zeros((4, 2)), [1, 1], [(0,)]), TypeError, "columns has dtype float64"),
        ((np.zeros((4, 2), int), [1], [(0,)]), ValueError, "sizes has shape (1,), expected (2,)"),
        ((np.zeros((4, 2), int), [1, -1], [(0,)]), ValueError, "sizes run from -1 to 1"),
        ((np.zeros((4, 2), int), [1, 1], [(0,), ()]), ValueError, "set 1 has 0 columns, expected 1 to 64"),
        ((np.zeros((4, 65), int), [1] * 65, [range(65)]), ValueError, "set 0 has 65 columns, expected 1 to 64"),
        ((np.zeros((4, 2), int), [1, 1], [(0, 2)]), ValueError, "set 0 is (0, 2), expected columns from 0 to 1"),
        ((np.zeros((4, 2), int), [1, 1], [(-1,)]), ValueError, "set 0 is (-1,), expected columns from 0 to 1"),
        ((np.zeros((4, 2), int), [1, 1], [(1, 0, 1)]), ValueError, "set 0 is (1, 0, 1), expected every column at most"),
        ((np.zeros((4, 2), int), [1, 1], [(0.5,)]), TypeError, "float"),
        ((np.zeros((4, 2), int), [2**16, 2**15], [(0, 1)]), ValueError, "2147483648 combinations of levels (65536 × "),
        ((np.zeros((4, 2), int), [1, 1], [(0,)], np.ones(3)), ValueError, "weight has shape (3,), expected (4,)"),
        (
            (np.zeros((4, 2), int), [1, 1], [(0,)], np.ones((4, 1))),
            ValueError,
            "weight has shape (4, 1), expected (4,)",
        ),
        ((np.zeros((4, 2), int), [1, 1], [(0,)], np.ones(4, "f4")), TypeError, "weight has dtype float32"),
        ((np.zeros((4, 2), int), [1, 1], [(0,)], None, -1), ValueError, "threads is -1"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        run(IMPLEMENTATIONS[-1], *arguments)
    assert text in str(caught.value)


@needs_compiled
@pytest.mark.parametrize(
    ("sizes", "sets", "text"),
    [
        ([2, 2], [()], "at least one column"),
        ([2, 2], [(2,)], "does not exist"),
        ([2], [(0,)], "a size for every column"),
        ([2**16, 2**15], [(0, 1)], "fewer than 2147483648 cells"),
        ([2**30, 2**30], [(0, 1)], "fewer than 2147483648 cells"),
        ([2**30, 2**30, 0], [(0, 1, 2)], "fewer than 2147483648 cells"),
        ([-1, 2], [(0, 1)], "sizes from 0"),
    ],
)
def test_the_module_checks_what_could_crash_it(sizes: list[int], sets: list[tuple[int, ...]], text: str) -> None:
    from tallybayes.kernels import _compiled

    with pytest.raises(ValueError, match=text):
        _compiled.count_joint(np.zeros((3, max(2, len(sizes))), np.int8), np.array(sizes), sets, None, 1)
    with pytest.raises(ValueError, match="one weight for every row"):
        _compiled.count_joint(np.zeros((3, 1), np.int8), np.array([2]), [(0,)], np.ones((3, 1)), 1)
