"""Columns of labels in every form a user may have them: the same levels, counts and refusals."""

import array
import collections
import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.encoding import encode
from tallybayes.errors import DataError, LabelError


def counts(column) -> dict:
    """Level → weight, as counted from a mapping."""
    tally = tb.count({"x": column}, [tb.Factor("x", (), tb.Categorical())])
    return dict(zip(tally.domains["x"].levels, tally["x"].table.tolist(), strict=True))


def decoded(column) -> list:
    """The labels that codes and levels stand for, None where missing."""
    codes, domain = encode(column, "x")
    return [domain.levels[int(code)] if code >= 0 else None for code in codes]


ONE_AND_TWO = {
    **{name: np.array([1, 2, 1], dtype=name) for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")},
    **{name: np.array([1, 2, 1], dtype=name) for name in ("f2", "f4", "f8", "g", ">i4", ">f8", ">u2")},
    "object": np.array([1, 2, 1], dtype=object),
    "object with whole floats": np.array([1, 2.0, 1.0], dtype=object),
    "list": [1, 2, 1],
    "list of floats": [1.0, 2.0, 1.0],
    "list of NumPy scalars": [np.int64(1), np.int64(2), np.int64(1)],
    "tuple": (1, 2, 1),
    "deque": collections.deque([1, 2, 1]),
    "array.array": array.array("h", [1, 2, 1]),
    "strided": np.array([[1, 9], [2, 9], [1, 9]])[:, 0],
    "reversed": np.array([1, 2, 1])[::-1],
    "unaligned": np.frombuffer(b"\0" + np.array([1, 2, 1]).tobytes(), dtype=np.uint8)[1:].view("i8"),
    "a packed field": np.array([(0, 1), (0, 2), (0, 1)], dtype=[("pad", "u1"), ("x", "i8")])["x"],
    "pandas": pd.Series([1, 2, 1]),
    "pandas floats": pd.Series([1.0, 2.0, 1.0]),
    "pandas Int64": pd.Series([1, 2, 1], dtype="Int64"),
    "pandas Arrow": pd.Series([1, 2, 1], dtype="int64[pyarrow]"),
    "pandas category": pd.Series([1, 2, 1], dtype="category"),
    "pandas category of floats": pd.Series([1.0, 2.0, 1.0], dtype="category"),
    "pandas array": pd.array([1, 2, 1], dtype="Int64"),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([1, 2, 1])),
    "pandas index": pd.Index([1, 2, 1]),
    "Polars": pl.Series([1, 2, 1]),
    "Polars floats": pl.Series([1.0, 2.0, 1.0]),
    "Arrow": pa.array([1, 2, 1], pa.int8()),
    "Arrow chunks": pa.chunked_array([[1], [2, 1]]),
    "Arrow half floats": pa.array(np.array([1, 2, 1], dtype=np.float16)),
    "Arrow dictionary": pa.array([1, 2, 1]).dictionary_encode(),
}


@pytest.mark.parametrize("name", ONE_AND_TWO)
def test_whole_numbers(name):
    assert counts(ONE_AND_TWO[name]) == {1: 2.0, 2: 1.0}


WITH_MISSING = {
    "object None": np.array(["a", None, "b", "a"], dtype=object),
    "object NaN": np.array(["a", np.nan, "b", "a"], dtype=object),
    "object NA": np.array(["a", pd.NA, "b", "a"], dtype=object),
    "object NaT": np.array(["a", pd.NaT, "b", "a"], dtype=object),
    "list": ["a", None, "b", "a"],
    "list NaN": ["a", float("nan"), "b", "a"],
    "list NA": ["a", pd.NA, "b", "a"],
    "pandas": pd.Series(["a", None, "b", "a"]),
    "pandas objects": pd.Series(["a", None, "b", "a"], dtype=object),
    "pandas string": pd.Series(["a", None, "b", "a"], dtype="string"),
    "pandas category": pd.Series(["a", None, "b", "a"], dtype="category"),
    "pandas ordered": pd.Series(pd.Categorical(["a", None, "b", "a"], categories=["b", "a"], ordered=True)),
    "pandas Categorical": pd.Categorical(["a", None, "b", "a"]),
    "pandas Arrow": pd.Series(["a", None, "b", "a"], dtype=pd.ArrowDtype(pa.string())),
    "pandas Arrow dictionary": pd.Series(
        ["a", None, "b", "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    ),
    "Polars": pl.Series(["a", None, "b", "a"]),
    "Polars Categorical": pl.Series(["a", None, "b", "a"], dtype=pl.Categorical),
    "Polars Enum": pl.Series(["a", None, "b", "a"], dtype=pl.Enum(["z", "b", "a"])),
    "Arrow": pa.array(["a", None, "b", "a"]),
    "Arrow large": pa.array(["a", None, "b", "a"], pa.large_string()),
    "Arrow view": pa.array(["a", None, "b", "a"], pa.string_view()),
    "Arrow chunks": pa.chunked_array([["a", None], ["b", "a"]]),
    "Arrow dictionary": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "Arrow unsigned dictionary": pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.uint8()), ["a", "b"]),
    "Arrow dictionary with a null": pa.DictionaryArray.from_arrays([0, 1, 2, 0], ["a", None, "b"]),
    "Arrow dictionary with a level twice": pa.DictionaryArray.from_arrays([0, None, 1, 2], ["a", "b", "a"]),
    "Arrow chunks of dictionaries": pa.chunked_array(
        [pa.array(["a", None]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()]
    ),
}


@pytest.mark.parametrize("name", WITH_MISSING)
def test_strings_and_missing_cells(name):
    assert counts(WITH_MISSING[name]) == {"a": 2.0, "b": 1.0}
    assert decoded(WITH_MISSING[name]) == ["a", None, "b", "a"]


NUMBERS_WITH_MISSING = {
    "NumPy NaN": np.array([7, np.nan, -3]),
    "float32 NaN": np.array([7, np.nan, -3], dtype=np.float32),
    "masked ints": np.ma.array([7, 5, -3], mask=[False, True, False]),
    "masked floats": np.ma.array([7.0, 5.0, -3.0], mask=[False, True, False]),
    "list": [7, None, -3],
    "list NA": [7, pd.NA, -3],
    "pandas Int64": pd.Series([7, None, -3], dtype="Int64"),
    "pandas Float64": pd.Series([7, None, -3], dtype="Float64"),
    "pandas Arrow": pd.Series([7, None, -3], dtype="int64[pyarrow]"),
    "pandas category": pd.Series(pd.Categorical([7, None, -3])),
    "Polars": pl.Series([7, None, -3]),
    "Polars floats": pl.Series([7.0, None, -3.0]),
    "Arrow": pa.array([7, None, -3]),
    "Arrow floats": pa.array([7.0, None, -3.0]),
}


@pytest.mark.parametrize("name", NUMBERS_WITH_MISSING)
def test_numbers_and_missing_cells(name):
    assert decoded(NUMBERS_WITH_MISSING[name]) == [7, None, -3]


@pytest.mark.parametrize(
    "column",
    [
        np.array([True, False]),
        np.array([[True, 0], [False, 0]])[:, 0].astype(bool),
        np.array([True, False], dtype=object),
        [True, False],
        [np.True_, np.False_],
        pd.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
        pd.Series([True, False], dtype="bool[pyarrow]"),
        pd.Series([True, False], dtype="category"),
        pl.Series([True, False]),
        pa.array([True, False]),
    ],
)
def test_booleans_stay_booleans(column):
    found = counts(column)
    assert found == {True: 1.0, False: 1.0}
    assert {type(level) for level in found} == {bool}


@pytest.mark.parametrize("column", [[True, None], pd.Series([True, None], dtype="boolean"), pl.Series([True, None])])
def test_booleans_with_missing_cells(column):
    assert decoded(column) == [True, None]


@pytest.mark.parametrize(
    "column",
    [
        [],
        np.array([]),
        np.array([], dtype=int),
        np.array([], dtype=bool),
        np.array([], dtype=str),
        np.array([], dtype=object),
        pd.Series([], dtype="category"),
        pl.Series([], dtype=pl.String),
        pa.array([], pa.string()),
        pa.chunked_array([], pa.string()),
        [None, None],
        [float("nan")],
        np.array([np.nan, np.nan]),
        pa.nulls(3),
        pl.Series([None, None]),
        pd.Series(pd.Categorical([None, None], categories=["a"])),
    ],
)
def test_empty_and_all_missing_columns_have_no_level(column):
    assert counts(column) == {}


@pytest.mark.parametrize(
    "values",
    [
        [0, 255, 255],
        [0, 256],
        [0, 4095, 4096],
        [-128, 127],
        [-(2**63), 2**63 - 1, 0],
        [2**63, 2**64 - 1, 2**63],
        [2**63 + 1, 2**63 + 3],
        [-(10**12), 5, 10**12],
        [10**9, 10**9 + 3, 10**9],
        [65535, 1, 65535],
    ],
    ids=str,
)
@pytest.mark.parametrize("as_object", [False, True])
def test_integer_labels_of_any_range(values, as_object):
    expected = collections.Counter(values)
    column = np.array(values, dtype=object if as_object else None)
    assert counts(column) == expected
    assert decoded(column) == values


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64])
def test_the_ends_of_every_type_are_labels(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    assert counts(np.array([low, high, high], dtype=dtype)) == {low: 1.0, high: 2.0}


def test_gaps_take_no_memory():
    # two parents and a child with levels far apart: eight cells, not 4000 cubed
    columns = {name: np.array([0, 4000]) for name in "abc"}
    tally = tb.count(columns, [tb.Factor("c", ("a", "b"), tb.Categorical())])
    assert tally["c"].table.shape == (2, 2, 2)
    codes, domain = encode(columns["a"], "a")
    assert domain.levels == (0, 4000)
    np.testing.assert_array_equal(codes, [0, 1])


def test_strings_that_look_alike_are_apart():
    assert counts(["é", "e\u0301", "", " ", "A", "a", "a\0"]) == dict.fromkeys(
        ["é", "e\u0301", "", " ", "A", "a", "a\0"], 1.0
    )


def test_minus_zero_is_zero():
    assert counts(np.array([-0.0, 0.0])) == {0: 2.0}


def test_order_of_levels():
    assert encode(["b", "a"], "x")[1].levels == ("b", "a")
    codes, domain = encode(["b", None, "a"], "x", ordered=True)
    assert domain.levels == ("a", "b")
    np.testing.assert_array_equal(codes, [1, -1, 0])


def test_read_only_and_direct_codes_are_not_copied():
    column = np.array([3, 1, 2])
    column.setflags(write=False)
    assert np.shares_memory(encode(column, "x")[0], column)
    flags = np.array([True, False])
    assert np.shares_memory(encode(flags, "x")[0], flags)


REFUSED = {
    "halves": (np.array([0.5]), "0.5"),
    "infinity": (np.array([np.inf]), "inf"),
    "halves in a list": ([1, 2.5], "2.5"),
    "halves with null": (pa.array([1.5, None]), "1.5"),
    "halves as category": (pd.Series(pd.Categorical([0.5])), "0.5"),
    "bytes": (np.array([b"a"]), "bytes"),
    "bytes in a list": ([b"a"], "bytes"),
    "dates": (np.array(["2024-01-01"], dtype="M8[D]"), "date"),
    "dates in a list": ([datetime.date(2024, 1, 1)], "date"),
    "pandas dates": (pd.Series(pd.to_datetime(["2024-01-01"])), "datetime|Timestamp"),
    "pandas category of dates": (pd.Series(pd.Categorical(pd.to_datetime(["2024-01-01"]))), "Timestamp"),
    "Polars dates": (pl.Series([datetime.date(2024, 1, 1)]), "date"),
    "Arrow dates": (pa.array([datetime.date(2024, 1, 1)]), "date"),
    "durations": (np.array([1], dtype="m8[s]"), "timedelta"),
    "complex": (np.array([1j]), "complex"),
    "decimals": ([decimal.Decimal("1.5")], "Decimal"),
    "lists": (pl.Series([[1], [2]]), "list"),
    "numbers and strings": (np.array([1, "a"], dtype=object), "int levels .* string levels"),
    "numbers, strings and NA": ([1, pd.NA, "a"], "int levels .* string levels"),
    "numbers and strings in a list": ([1, "a"], "int levels .* string levels"),
    "booleans and numbers": (np.array([True, 2], dtype=object), "bool levels .* int levels"),
    "lists and strings": (np.array([["a"], "b"], dtype=object), "list"),
    "huge numbers": ([1, 2**70], "1180591620717411303424 .* 64 bits"),
    "huge floats": (np.array([2.0**53]), r"2\*\*53"),
    "surrogates": (["a", "\ud800"], "surrogates"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_label_is_refused(name):
    column, text = REFUSED[name]
    with pytest.raises(LabelError, match=text) as caught:
        counts(column)
    assert "'x'" in str(caught.value)


@pytest.mark.parametrize(
    "column",
    [
        (i for i in range(3)),
        {1, 2},
        {"a": 1},
        "abc",
        5,
        None,
        np.array(3),
        np.array([(1, 2)], dtype=[("a", int), ("b", int)]),
        np.array([[1], [2]]),
        [[1, 2], [3]],
    ],
    ids=["generator", "set", "dict", "string", "number", "None", "no axis", "structured", "two axes", "ragged"],
)
def test_what_is_no_column_is_refused(column):
    with pytest.raises(DataError, match="expected"):
        counts(column)
