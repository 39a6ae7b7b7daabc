"""The compiled scorer gives what the reference gives, for every kind of factor, dtype, layout and number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.errors import CellError
from tests.examples import examples
from tests.unit.kernels.kernel_cases import INTEGERS, assert_same, lay_out, layouts, outcome, run, seeds
from tests.unit.kernels.scoring_cases import CLASSES, KINDS, make, scorer, starts

drawn_examples = examples(40)


def result(made: Any, method: str, *arguments: Any) -> Any:
    """Return the scores, or the exception's type and what it says of the position."""
    try:
        return getattr(made, method)(*arguments)
    except CellError as error:
        return CellError, error.row, error.column, error.factor  # type: ignore[attr-defined]
    except (ValueError, IndexError, TypeError) as error:
        return (type(error),)


@pytest.mark.slow_after(1)
@drawn_examples
@given(
    seed=seeds,
    n=st.integers(0, 200),
    d=st.integers(0, 70),
    n_classes=st.sampled_from(CLASSES),
    layout=layouts,
    kinds=st.lists(st.sampled_from(KINDS), max_size=3),
)
def test_same_as_reference(tier: str, seed: int, n: int, d: int, n_classes: int, layout: str, kinds: list[str]) -> None:
    rng = np.random.default_rng(seed)
    cases = [make(kind, rng, n, d, n_classes, layout) for kind in kinds]
    start, factors, blocks = starts(rng, n_classes), [case.factor for case in cases], [case.block for case in cases]
    compiled = scorer(tier, start, factors)
    found = compiled.joint(blocks, n)
    expected = scorer("reference", start, factors).joint(blocks, n)
    assert found.shape == (n, n_classes)
    magnitude = 1e-12 * (1.0 + 30.0 * max(1, len(kinds)) * max(1, d))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=magnitude * 1e-2)
    best = compiled.argmax(blocks, n)
    assert best.dtype == np.int64
    np.testing.assert_array_equal(best, found.argmax(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 5, 20, 130])
def test_same_bits_for_any_threads_and_chunks(tier: str, kind: str, n_classes: int) -> None:
    rng = np.random.default_rng(3)
    n, d = 6000, 50
    case = make(kind, rng, n, d, n_classes, "rows")
    made = scorer(tier, starts(rng, n_classes), [case.factor])
    scores, best = made.joint([case.block], n, 1), made.argmax([case.block], n, 1)
    for threads in (0, 2, 5):
        np.testing.assert_array_equal(made.joint([case.block], n, threads), scores)
        np.testing.assert_array_equal(made.argmax([case.block], n, threads), best)
    for first, last in ((0, 1), (1, 2), (17, 120), (63, 64), (100, 3000)):
        if kind == "sparse":
            part: Any = (case.block[0][first : last + 1], *case.block[1:])
        else:
            part = case.block[first:last]
        np.testing.assert_array_equal(made.joint([part], last - first), scores[first:last])


@pytest.mark.parametrize("kind", ["linear", "normal", "student", "student by column"])
def test_missing_cells_of_other_rows_change_nothing(tier: str, kind: str) -> None:
    rng = np.random.default_rng(4)
    factor = make(kind, rng, 0, 40, 5, "rows").factor
    X = rng.integers(0, 2, (300, 40)).astype(np.float64)
    made = scorer(tier, np.zeros(5), [factor])
    whole = made.joint([X], 300)
    with_gaps = X.copy()
    with_gaps[::2, 33] = np.nan
    np.testing.assert_array_equal(made.joint([with_gaps], 300)[1::2], whole[1::2])
    nothing = made.joint([np.full((3, 40), np.nan)], 3)
    np.testing.assert_array_equal(nothing, np.zeros((3, 5)))


def test_far_from_zero(tier: str) -> None:
    rng = np.random.default_rng(5)
    X, mean = rng.integers(-8, 8, (500, 10)) / 4.0, rng.integers(-8, 8, (10, 4)) / 4.0
    spread, norm = rng.gamma(2.0, size=(10, 4)), rng.normal(size=(10, 4))
    for tail in ((spread, norm), (spread, np.full((10, 4), 3.0), norm)):
        kind = "normal" if len(tail) == 2 else "student"
        near = scorer(tier, np.zeros(4), [(kind, mean, *tail)]).joint([X], 500)
        far = scorer(tier, np.zeros(4), [(kind, mean + 1e9, *tail)]).joint([X + 1e9], 500)
        np.testing.assert_array_equal(far, near)


def test_codes_of_every_type(tier: str) -> None:
    rng = np.random.default_rng(6)
    sizes = [3, 200, 255, 256, 300, 2]
    table = rng.normal(size=(sum(sizes), 3))
    for beyond in ("missing", "error"):
        for dtype in INTEGERS:
            largest = int(np.iinfo(dtype).max)
            columns = [rng.integers(0, min(size, largest + 1), 300).astype(dtype) for size in sizes]
            for column in columns[:2]:
                column[::7] = largest if dtype[0] == "u" else -1
            factor = ("codes", sizes, table, beyond)
            expected = scorer("reference", np.zeros(3), [factor]).joint([columns], 300)
            np.testing.assert_allclose(scorer(tier, np.zeros(3), [factor]).joint([columns], 300), expected, atol=1e-13)


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
@pytest.mark.parametrize(
    ("factor", "allowed", "refused"),
    [
        (("codes", [3, 3], np.zeros((6, 2)), "error"), [0, 2, -1], [3, -2, 100]),
        (("linear", np.ones((2, 2)), np.ones((2, 2)), "binary"), [0, 1, np.nan], [2, -1, 0.5, np.inf]),
        (("linear", np.ones((2, 2)), np.ones((2, 2)), "count"), [0, 7, 1e300, np.nan], [-1, 0.5, np.inf]),
        (("linear", np.ones((2, 2)), np.ones((2, 2)), "finite"), [-0.5, 1e300, np.nan], [np.inf, -np.inf]),
        (("normal", *[np.ones((2, 2))] * 3), [-0.5, 1e100, np.nan], [np.inf, -np.inf]),
        (("student", *[np.ones((2, 2))] * 4), [-0.5, 1e100, np.nan], [np.inf, -np.inf]),
    ],
)
def test_refused_cells(implementation: str, tier: str, factor: Any, allowed: list[float], refused: list[float]) -> None:
    made = scorer(tier if implementation == "compiled" else "reference", np.zeros(2), [factor, factor])
    dtype = np.int64 if factor[0] == "codes" else np.float64
    good = np.resize(np.array(allowed), (200, 2)).astype(dtype)
    assert made.joint([good, good], 200).shape == (200, 2)
    for value in refused:
        bad = good.copy()
        bad[150, 0] = bad[77, 1] = bad[78, 0] = value
        assert result(made, "joint", [good, bad], 200) == (CellError, 77, 1, 1)
        assert result(made, "argmax", [bad, bad], 200, 2) == (CellError, 77, 1, 0)


@pytest.mark.slow_after(13)
@pytest.mark.parametrize("layout", ["rows", "columns", "list", "sliced"])
@pytest.mark.parametrize("d", [1, 7, 8, 64, 200])
def test_binary_bytes(tier: str, d: int, layout: str) -> None:
    rng = np.random.default_rng(8)
    weight, bias = rng.normal(size=(d, 10)), rng.normal(size=(d, 10))
    made = scorer(tier, np.zeros(10), [("linear", weight, bias, "binary")])
    X = rng.integers(0, 2, (150, d)).astype(np.uint8)
    expected = X.astype(np.float64) @ weight + bias.sum(axis=0)
    for cells in (X, X.astype(np.int8), X.astype(bool), X.astype(np.float32)):
        np.testing.assert_allclose(made.joint([lay_out(cells, layout)], 150), expected, rtol=1e-12, atol=1e-12)
    X[140, 0] = 2
    X[141, :] = 255
    assert result(made, "argmax", [lay_out(X, layout)], 150) == (CellError, 140, 0, 0)


@pytest.mark.parametrize("check", ["binary", "count", "finite", "nonnegative"])
def test_refused_entries(tier: str, check: str) -> None:
    weight = -np.ones((5, 3))
    made, reference = (scorer(name, np.zeros(3), [("sparse", weight, check)]) for name in (tier, "reference"))
    indptr, indices = np.array([0, 2, 2, 5]), np.array([4, 0, 3, 1, 2])
    for value in (2.0, 0.5, -1.0, np.nan, np.inf, -np.inf):
        block = (indptr, indices, np.array([1.0, 1.0, value, value, 1.0]))
        found, expected = result(made, "argmax", [block], 3), result(reference, "argmax", [block], 3)
        assert np.array_equal(found, expected)
    wrong = [
        (np.array([0, 2, 1, 5]), indices, np.ones(5)),
        (np.array([0, 2, 2, 6]), indices, np.ones(5)),
        (np.array([-1, 2, 2, 5]), indices, np.ones(5)),
        (indptr, np.array([4, 0, 5, 1, 2]), np.ones(5)),
        (indptr, np.array([4, 0, -1, 1, 2], np.int32), np.ones(5)),
        (indptr[:-1], indices, np.ones(5)),
        (np.zeros(0, np.int64), indices, np.ones(5)),
        (indptr, indices[:-1], np.ones(5)),
        (indptr.astype(float), indices, np.ones(5)),
        (indptr, indices),
    ]
    for block in wrong:
        found, expected = result(made, "joint", [block], 3), result(reference, "joint", [block], 3)
        assert found == expected
        assert found[0] in (IndexError, ValueError, TypeError)


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
def test_blocks_that_do_not_fit(implementation: str, tier: str) -> None:
    name = tier if implementation == "compiled" else "reference"
    made = scorer(name, np.zeros(2), [("linear", np.ones((3, 2)), np.ones((3, 2)), "finite")])
    X = np.zeros((4, 3))
    for blocks, n in (
        ([X], 5),
        ([X[:, :2]], 4),
        ([], 4),
        ([X, X], 4),
        ([[X[:, 0], X[:, 1], X[:3, 2]]], 4),
        ([X[0]], 3),
    ):
        assert result(made, "joint", blocks, n) == (ValueError,)
        assert result(made, "argmax", blocks, n) == (ValueError,)
    assert result(made, "joint", [X], -1) == (ValueError,)
    assert result(made, "joint", [X], 4, -1) == (ValueError,)
    assert result(made, "joint", [X.astype(complex)], 4) == (TypeError,)
    assert result(made, "joint", [X.tolist()], 4)[0] in (TypeError, ValueError)
    assert result(made, "joint", [X.astype(">f8")], 4) == (TypeError,)
    codes = scorer(name, np.zeros(2), [("codes", [3], np.ones((3, 2)), "missing")])
    assert result(codes, "joint", [np.zeros((4, 1))], 4) == (TypeError,)


@pytest.mark.parametrize(
    "factors",
    [
        [("codes", [2], np.zeros((3, 2)), "missing")],
        [("codes", [2], np.zeros((2, 2)), "ignore")],
        [("codes", [2], np.full((2, 2), np.inf), "error")],
        [("codes", [-1], np.zeros((0, 2)), "error")],
        [("linear", np.zeros((2, 2)), np.zeros((3, 2)), "binary")],
        [("linear", np.zeros((2, 3)), np.zeros((2, 3)), "binary")],
        [("linear", np.zeros((2, 2)), np.zeros((2, 2)), "nonnegative")],
        [("linear", np.full((2, 2), -np.inf), np.zeros((2, 2)), "binary")],
        [("normal", np.zeros((2, 2)), np.full((2, 2), -1.0), np.zeros((2, 2)))],
        [("normal", np.zeros((2, 2)), np.ones((2, 2)))],
        [("sparse", np.full((2, 2), -np.inf), "finite")],
        [("sparse", np.full((2, 2), np.nan), "count")],
        [("cauchy", np.zeros((2, 2)))],
        [()],
    ],
)
def test_factors_that_do_not_fit(factors: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"factors|sizes"):
        run("reference", "Scorer", np.zeros(2), factors)


def test_starts_that_do_not_fit() -> None:
    for start in ([], [[0.0]], [np.nan], [0.0, np.inf]):
        with pytest.raises(ValueError, match="start"):
            run("reference", "Scorer", start, [])


@drawn_examples
@given(
    seed=seeds, n=st.integers(0, 3000), d=st.integers(0, 60), dtype=st.sampled_from((*INTEGERS, "?")), layout=layouts
)
def test_column_ranges(tier: str, seed: int, n: int, d: int, dtype: str, layout: str) -> None:
    rng = np.random.default_rng(seed)
    if dtype == "?":
        X = rng.random((n, d)) < 0.01
    else:
        limits = np.iinfo(dtype)
        X = rng.integers(limits.min, min(int(limits.max), 2**63 - 1), (n, d), dtype, endpoint=True)
        X[:, ::2] //= 3
    table = lay_out(X, layout)
    assert_same(outcome(tier, "column_ranges", table), outcome("reference", "column_ranges", table))


def test_strided_and_read_only_compressed_rows(tier: str) -> None:
    made = scorer(tier, np.zeros(2), [("sparse", np.array([[-1.0, -2.0], [-3.0, -1.0]]), "count")])
    indptr, indices, data = np.array([0, 1, 3]), np.array([0, 0, 1]), np.array([2.0, 1.0, 1.0])
    expected = made.joint([(indptr, indices, data)], 2)
    strided = tuple(np.repeat(part, 2)[::2] for part in (indptr, indices, data))
    for part in strided:
        part.flags.writeable = False
    np.testing.assert_array_equal(made.joint([strided], 2), expected)


def test_column_ranges_of_large_tables(tier: str) -> None:
    rng = np.random.default_rng(7)
    for dtype, d in (("u1", 30), ("i2", 7), ("i8", 1), ("u1", 5000)):
        X = rng.integers(2, 90, (1_000_000 // d, d)).astype(dtype)
        X[len(X) // 3, 0], X[-1, -1] = 91, 1
        for table in (X, np.asfortranarray(X)):
            low, high = run(tier, "column_ranges", table, 2)
            np.testing.assert_array_equal(low, X.min(axis=0))
            np.testing.assert_array_equal(high, X.max(axis=0))


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
def test_column_ranges_beyond_int64(implementation: str, tier: str) -> None:
    name = tier if implementation == "compiled" else "reference"
    X = np.array([[1], [2**63]], np.uint64)
    with pytest.raises(OverflowError):
        run(name, "column_ranges", X)
    with pytest.raises(TypeError):
        run(name, "column_ranges", X.astype(float))
