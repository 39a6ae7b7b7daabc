"""What the kernels must refuse, by both implementations with the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.errors import CellError
from tests.examples import examples
from tests.unit.kernels.kernel_cases import INTEGERS, TIERS, lay_out, layouts, outcome, seeds

IMPLEMENTATIONS = ["reference", *TIERS]
KERNELS: dict[str, tuple[Any, ...]] = {
    "count_codes": (np.zeros((4, 2), np.int8), [1, 1]),
    "sum_dense": (np.zeros((4, 2)), "binary"),
    "sum_moments": (np.zeros((4, 2)), [0.0, 0.0]),
    "sum_scatter": (np.zeros((4, 2)), [0.0, 0.0]),
    "sum_csr": (np.array([0, 1, 1, 1, 1]), np.array([0]), np.array([1.0]), 2, "poisson"),
}
every_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
every_kernel = pytest.mark.parametrize("name", KERNELS)


def cell(row: int, column: int) -> tuple[type, str]:
    return CellError, str(CellError(row, column))


@pytest.mark.slow_after(24)
@every_implementation
@every_kernel
@pytest.mark.parametrize("code", [3, 120, -2, -128])
def test_group_code_outside(implementation: str, name: str, code: int) -> None:
    for dtype in ("i1", "i8"):
        group = np.array([0, -1, code, 9], dtype)
        kind, text = outcome(implementation, name, *KERNELS[name], group, 3)
        assert kind is IndexError
        assert text == f"row 2 has group code {code}, expected 0 to 2, or -1 to skip the row"


@every_implementation
def test_unsigned_group_codes(implementation: str) -> None:
    group = np.array([0, 255, 2, 200], np.uint8)
    assert outcome(implementation, "count_groups", group, 3)[0] is IndexError
    assert outcome(implementation, "count_groups", group[:3], 3)[0].tolist() == [1, 0, 1]
    assert outcome(implementation, "count_groups", group, 256)[0].sum() == 4
    huge = np.array([2**64 - 2], np.uint64)
    assert outcome(implementation, "count_groups", huge, 3)[1].startswith(f"row 0 has group code {2**64 - 2},")


@pytest.mark.slow_after(12)
@every_implementation
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", [3, 10, 100])
def test_code_outside(implementation: str, dtype: str, size: int) -> None:
    codes = np.zeros((3000, 3), dtype)
    codes[2000, 1] = size
    codes[2000, 2] = size + 1
    codes[2500, 0] = size
    for X in (codes, np.asfortranarray(codes), list(codes.T)):
        assert outcome(implementation, "count_codes", X, [size] * 3, None, 1) == cell(2000, 1)
        group = np.zeros(3000, np.int16)
        group[2000] = -1
        assert outcome(implementation, "count_codes", X, [size] * 3, group, 2) == cell(2500, 0)
        weight = np.ones(3000)
        weight[[2000, 2500]] = 0.0
        assert outcome(implementation, "count_codes", X, [size] * 3, None, 1, weight)[0].sum() == 3 * 2998


@every_implementation
def test_negative_codes_are_not_large_ones(implementation: str) -> None:
    codes = np.array([[-100]], np.int8)
    assert outcome(implementation, "count_codes", codes, [200], None, 1) == cell(0, 0)
    assert outcome(implementation, "count_codes", np.array([[-1]], np.int8), [256], None, 1)[0].sum() == 0
    assert outcome(implementation, "count_codes", np.array([[255]], np.uint8), [256], None, 1)[0][0, 255] == 1


@pytest.mark.slow_after(16)
@every_implementation
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("binary", 2.0),
        ("binary", 0.5),
        ("binary", -1.0),
        ("binary", np.inf),
        ("poisson", 0.5),
        ("poisson", -1.0),
        ("poisson", np.inf),
        ("multinomial", -0.5),
        ("multinomial", np.nan),
        ("multinomial", np.inf),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_forbidden_cells(implementation: str, kind: str, value: float, dtype: str) -> None:
    X = np.zeros((500, 11), dtype)
    X[100, 10] = X[100, 7] = X[300, 0] = value
    for layout in ("rows", "columns", "list"):
        assert outcome(implementation, "sum_dense", lay_out(X, layout), kind, None, 1) == cell(100, 7)
    weight = np.ones(500)
    weight[[100, 300]] = 0.0
    assert outcome(implementation, "sum_dense", X, kind, None, 1, weight)[1].sum() == 0.0
    group = np.zeros(500, np.int64)
    group[100] = -1
    assert outcome(implementation, "sum_dense", X, kind, group, 1) == cell(300, 0)
    indptr = np.arange(0, 5501, 11)
    indices = np.tile(np.arange(11)[::-1], 500)
    data = np.ascontiguousarray(X[:, ::-1]).ravel()
    assert outcome(implementation, "sum_csr", indptr, indices, data, 11, kind, None, 1) == cell(100, 7)
    assert outcome(implementation, "sum_csr", indptr, indices, data, 11, kind, None, 1, weight)[1].sum() == 0.0


@every_implementation
@pytest.mark.parametrize("dtype", ["u1", "i1", "i4", "u8"])
def test_forbidden_integers(implementation: str, dtype: str) -> None:
    X = np.zeros((300, 70), dtype)
    X[200, 69] = 2
    assert outcome(implementation, "sum_dense", X, "binary", None, 1) == cell(200, 69)
    assert outcome(implementation, "sum_dense", X, "poisson", None, 1)[1].sum() == 2
    if dtype.startswith("i"):
        X[100, 3] = -1
        assert outcome(implementation, "sum_dense", X, "poisson", None, 1) == cell(100, 3)


@every_implementation
@pytest.mark.parametrize("name", ["sum_moments", "sum_scatter"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e151, 1e200])
def test_infinite_and_overflowing_values(implementation: str, name: str, value: float) -> None:
    X = np.zeros((700, 9))
    X[650, 8] = X[650, 2] = X[680, 0] = value
    for layout in ("rows", "columns"):
        assert outcome(implementation, name, lay_out(X, layout), np.zeros(9), None, 1) == cell(650, 2)
    weight = np.ones((700, 2))
    weight[[650, 680]] = 0.0
    assert outcome(implementation, name, X, np.zeros(9), None, 2, weight)[2].sum() == 0.0
    weight[650, 1] = 0.5
    assert outcome(implementation, name, X, np.zeros(9), None, 2, weight) == cell(650, 2)


@every_implementation
def test_nan_is_missing_for_moments_and_refused_for_scatter(implementation: str) -> None:
    X = np.arange(30.0).reshape(10, 3)
    X[4, 1] = np.nan
    assert outcome(implementation, "sum_scatter", X, np.zeros(3), None, 1) == cell(4, 1)
    moments = outcome(implementation, "sum_moments", X, np.zeros(3), None, 1)
    assert moments[0].tolist() == [[10.0, 9.0, 10.0]]
    X[4, 1] = 0.0
    assert outcome(implementation, "sum_moments", X, np.zeros(3), None, 1)[0].tolist() == [[10.0]]
    X[:, 2] = np.nan
    assert outcome(implementation, "sum_moments", X, np.zeros(3), None, 1)[0].tolist() == [[10.0, 10.0, 0.0]]


@every_implementation
@pytest.mark.parametrize(
    ("indptr", "indices", "text"),
    [
        ([0, 2, 1], [0, 1], "indptr gives row 1 the entries 2 to 1, expected a rising range within 0 to 2"),
        ([-1, 1, 2], [0, 1], "indptr gives row 0 the entries -1 to 1, expected a rising range within 0 to 2"),
        ([0, 1, 3], [0, 1], "indptr gives row 1 the entries 1 to 3, expected a rising range within 0 to 2"),
        ([0, 1, 2], [0, 5], "row 1 has column index 5, expected 0 to 4"),
        ([0, 1, 2], [-1, 0], "row 0 has column index -1, expected 0 to 4"),
    ],
)
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_broken_matrix(implementation: str, indptr: list[int], indices: list[int], text: str, dtype: str) -> None:
    matrix = (np.array(indptr, dtype), np.array(indices, dtype), np.array([1.0, 2.0]), 5)
    for kind in ("poisson", "multinomial"):
        assert outcome(implementation, "sum_csr", *matrix, kind, None, 1) == (IndexError, text)
        soft = np.ones((2, 3))
        assert outcome(implementation, "sum_csr", *matrix, kind, None, 3, soft) == (IndexError, text)


@every_kernel
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((np.zeros(3, int), 1), ValueError, "group has 3 rows, the columns have 4"),
        ((np.zeros(4), 1), TypeError, "group has dtype float64"),
        ((np.zeros((4, 1), int), 1), ValueError, "group has 2 dimensions"),
        (([0, 0, 0, 0], 1), TypeError, "group must be a NumPy array, found list"),
        ((None, 2), ValueError, "n_groups is 2 without group codes"),
        ((None, -1), ValueError, "n_groups is -1"),
        ((None, 1, np.ones(3)), ValueError, "weight has shape (3,), expected (4,)"),
        ((None, 2, np.ones((4, 3))), ValueError, "weight has shape (4, 3), expected (4,) or (4, 2)"),
        ((None, 1, np.ones(4, np.float32)), TypeError, "weight has dtype float32"),
        ((np.zeros(4, int), 2, np.ones((4, 2))), ValueError, "pass only one of them"),
        ((None, 1, None, -1), ValueError, "threads is -1"),
    ],
)
def test_wrong_rows(name: str, arguments: tuple[Any, ...], error: type, text: str) -> None:
    kind, found = outcome(IMPLEMENTATIONS[-1], name, *KERNELS[name], *arguments)
    assert kind is error
    assert text in found


@pytest.mark.parametrize(
    ("name", "arguments", "error", "text"),
    [
        ("count_codes", (np.zeros((4, 2)), [1, 1]), TypeError, "columns has dtype float64"),
        ("count_codes", (np.zeros((4, 2), int), [1]), ValueError, "sizes has shape (1,), expected (2,)"),
        ("count_codes", (np.zeros((4, 2), int), [1, -1]), ValueError, "sizes run from -1 to 1"),
        ("count_codes", (np.zeros((4, 2), int), [1.5, 1]), TypeError, "sizes has dtype float64"),
        ("count_codes", ([np.zeros(4, int), np.zeros(3, int)], [1, 1]), ValueError, "columns[1] has 3 rows"),
        ("count_codes", ("abc", [1]), TypeError, "found str"),
        ("count_codes", (np.zeros(4, ">i4"), [1]), TypeError, "dtype >i4"),
        ("sum_dense", (np.zeros((4, 2), complex), "binary"), TypeError, "X has dtype complex128"),
        ("sum_dense", (np.zeros(4), "binary"), ValueError, "X has 1 dimensions (shape (4,)), expected 2"),
        ("sum_dense", (np.zeros((4, 2)), "gaussian"), ValueError, "kind is 'gaussian'"),
        ("sum_moments", (np.zeros((4, 2)), [0.0]), ValueError, "anchor has shape (1,), expected (2,)"),
        ("sum_moments", (np.zeros((4, 2)), [0.0, np.nan]), ValueError, "not finite"),
        ("sum_moments", (np.zeros((4, 2), bool), [0.0, 0.0]), TypeError, "X has dtype bool"),
        ("sum_scatter", (np.zeros((4, 2), np.float16), [0.0, 0.0]), TypeError, "X has dtype float16"),
        ("sum_csr", (np.zeros(0, int), np.zeros(0, int), np.zeros(0), 1, "binary"), ValueError, "indptr is empty"),
        ("sum_csr", (np.zeros(5, int), np.zeros(1, int), np.zeros(0), 1, "binary"), ValueError, "they must agree"),
        ("sum_csr", (np.zeros(5), np.zeros(0, int), np.zeros(0), 1, "binary"), TypeError, "indptr has dtype"),
    ],
)
def test_wrong_columns(name: str, arguments: tuple[Any, ...], error: type, text: str) -> None:
    kind, found = outcome(IMPLEMENTATIONS[-1], name, *arguments, None, 1)
    assert kind is error
    assert text in found


def test_number_of_rows_must_be_known() -> None:
    assert outcome(IMPLEMENTATIONS[-1], "count_groups", None, 1)[0] is ValueError
    assert outcome(IMPLEMENTATIONS[-1], "count_groups", None, 1, n_rows=-1)[0] is ValueError
    assert outcome(IMPLEMENTATIONS[-1], "count_groups", np.zeros(2, int), 1, n_rows=3)[0] is ValueError
    assert outcome(IMPLEMENTATIONS[-1], "count_groups", None, 1, n_rows=7)[0].tolist() == [7]


@pytest.mark.slow_after(1)
@examples(60)
@given(data=st.data(), seed=seeds, layout=layouts, name=st.sampled_from(["count_codes", "sum_dense", "sum_moments"]))
def test_the_same_culprit(tier: str, data: st.DataObject, seed: int, layout: str, name: str) -> None:
    """Several bad cells and codes: both implementations blame the same one."""
    rng = np.random.default_rng(seed)
    n, d = data.draw(st.integers(1, 300)), data.draw(st.integers(1, 20))
    bad = rng.random((n, d)) < data.draw(st.sampled_from([0.001, 0.01, 0.2]))
    if name == "count_codes":
        X, more = np.where(bad, 7, rng.integers(-1, 5, (n, d))), (np.full(d, 5),)
    elif name == "sum_dense":
        X, more = np.where(bad, 0.5, rng.choice([0.0, 1.0, np.nan], (n, d))), ("binary",)
    else:
        X, more = np.where(bad, np.inf, rng.choice([0.0, 1.0, np.nan], (n, d))), (np.zeros(d),)
    group = rng.integers(-1, 3, n)
    weight = rng.random(n).round()
    arguments = (lay_out(X, layout), *more, group, 3, weight)
    expected, found = outcome("reference", name, *arguments), outcome(tier, name, *arguments)
    if isinstance(expected, tuple):
        assert found == expected
    else:
        assert [sums.shape for sums in found] == [sums.shape for sums in expected]
