"""Tables of numbers and mixed blocks in every form a user may have them."""

import datetime
import decimal
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import tallybayes as tb
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, LabelError
from tallybayes.statistics.counts import Counts

ROWS = [[1.0, 2.0], [4.0, 8.0], [3.0, 5.0]]


def moments(data, columns=(0, 1)):
    return tb.count(data, [tb.Factor(columns, (), tb.Gaussian())]).statistics[0]


WHOLE = {
    **{name: np.array(ROWS, dtype=name) for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")},
    **{name: np.array(ROWS, dtype=name) for name in ("f2", "f4", "f8", "g", ">f4", ">f8", ">i2")},
    "Fortran": np.asfortranarray(ROWS),
    "strided": np.repeat(np.repeat(ROWS, 2, axis=0), 3, axis=1)[::2, ::3],
    "objects": np.array(ROWS, dtype=object),
    "matrix": np.asmatrix(ROWS),
    "list of lists": ROWS,
    "list of tuples": [tuple(row) for row in ROWS],
    "list of arrays": [np.array(row) for row in ROWS],
    "pandas": pd.DataFrame(ROWS),
    "pandas nullable": pd.DataFrame(ROWS).astype("Int64"),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", WHOLE)
def test_one_array_of_any_type(name):
    assert moments(WHOLE[name]) == tb.Moments.of(ROWS)


GAPS = np.array([[1.0, np.nan], [np.nan, 8.0], [3.0, 5.0]])
WITH_MISSING = {
    "NaN": GAPS,
    "float32": GAPS.astype(np.float32),
    "masked": np.ma.masked_invalid(GAPS),
    "masked ints": np.ma.array([[1, 9], [9, 8], [3, 5]], mask=np.isnan(GAPS)),
    "None": [[1.0, None], [None, 8.0], [3.0, 5.0]],
    "objects": np.array([[1, None], [pd.NA, decimal.Decimal(8)], [3, 5]], dtype=object),
    "pandas": pd.DataFrame(GAPS),
    "mapping": {0: [1, None, 3], 1: np.array([np.nan, 8, 5])},
    "mapping of series": {0: pd.Series([1, None, 3], dtype="Int64"), 1: pl.Series([None, 8, 5])},
    "mapping of Arrow": {0: pa.array([1, None, 3]), 1: pa.chunked_array([[None, 8.0], [5.0]])},
    "dicts": [{0: 1}, {1: 8}, {0: 3, 1: 5}],
}


@pytest.mark.parametrize("name", WITH_MISSING)
def test_missing_cells_are_skipped(name):
    assert moments(WITH_MISSING[name]) == tb.Moments.of(GAPS)


def frames():
    columns = {
        "whole": [1, 2, 4],
        "gaps": [1, None, 3],
        "real": [0.5, None, 1.5],
        "flag": [True, False, True],
        "flaggaps": [True, None, False],
        "text": ["u", None, "v"],
        "level": ["p", "q", "p"],
    }
    plain = pd.DataFrame(columns).assign(level=lambda f: f["level"].astype("category"))
    arrow = pa.table(columns)
    return {
        "mapping": columns,
        "dicts": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        "pandas": plain,
        "pandas nullable": plain.convert_dtypes(),
        "pandas Arrow": plain.convert_dtypes(dtype_backend="pyarrow"),
        "pandas objects": pd.DataFrame(columns, dtype=object),
        "Polars": pl.DataFrame(columns).with_columns(pl.col("level").cast(pl.Categorical)),
        "Polars Enum": pl.DataFrame(columns).with_columns(pl.col("level").cast(pl.Enum(["z", "q", "p"]))),
        "Arrow": arrow.set_column(6, "level", arrow["level"].dictionary_encode()),
        "Arrow chunks": pa.concat_tables([arrow.slice(0, 1), arrow.slice(1)]),
    }


@pytest.mark.parametrize("name", frames())
def test_every_frame_gives_the_same_tally(name):
    factors = [
        tb.Factor("level", (), tb.Categorical()),
        tb.Factor(("whole", "gaps", "text"), "level", tb.Categorical()),
        tb.Factor(("real", "gaps"), "level", tb.Gaussian()),
        tb.Factor(("flag", "flaggaps"), "level", tb.Bernoulli()),
        tb.Factor("flag", "text", tb.Categorical()),
        tb.Factor("whole", (), tb.Poisson()),
    ]
    tally = tb.count(frames()[name], factors)
    assert tally == tb.count(frames()["mapping"], factors)
    assert tally.domains["flag"].kind == "bool"
    assert tally["whole"] == tb.Totals([3.0], [7.0], [-np.log(2.0) - np.log(24.0)])


def test_names_of_columns():
    assert list(open_table(pd.DataFrame(ROWS)).columns) == [0, 1]
    assert list(open_table(pd.DataFrame(ROWS, columns=["b", "a"])).columns) == ["b", "a"]
    assert list(open_table(np.array(ROWS), ["b", "a"]).columns) == ["b", "a"]
    assert list(open_table(pd.Series([1, 2], name="q")).columns) == [0]


def test_labels_beyond_53_bits_keep_their_last_digit_beside_a_null():
    big = 2**60
    for frame in (
        pl.DataFrame({"x": [big, None, big + 1]}),
        pa.table({"x": [big, None, big + 1]}),
        pd.DataFrame({"x": pd.Series([big, None, big + 1], dtype="Int64")}),
    ):
        tally = tb.count(frame, [tb.Factor("x", (), tb.Categorical())])
        assert set(tally.domains["x"].levels) == {big, big + 1}


# ---- Sparse matrices and blocks ---------------------------------------------------------------------------------

WORDS = np.array([[1, 0, 2], [0, 0, 3], [0, 4, 0]])
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("form", [f"{name}_{kind}" for name in FORMATS for kind in ("matrix", "array")])
@pytest.mark.parametrize("family", [tb.Multinomial(), tb.Poisson()], ids=repr)
def test_every_sparse_format(form, family):
    matrix = getattr(sp, form)(WORDS)
    assert tb.fit_distribution(matrix, family).statistics.isclose(tb.fit_distribution(WORDS, family).statistics, 1e-14)
    grouped = tb.fit_distribution(matrix, family, group=["a", "b", "a"]).statistics
    assert grouped.isclose(tb.fit_distribution(WORDS, family, group=["a", "b", "a"]).statistics, 1e-14)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32, np.longdouble])
def test_sparse_numbers_of_any_type(dtype):
    ones = (WORDS > 0).astype(dtype)
    assert (
        tb.fit_distribution(sp.csr_array(ones), tb.Bernoulli()).statistics
        == tb.fit_distribution(WORDS > 0, tb.Bernoulli()).statistics
    )


def test_duplicates_are_summed_without_touching_the_matrix():
    matrix = sp.csr_matrix((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 3))
    statistics = tb.fit_distribution(matrix, tb.Poisson()).statistics
    np.testing.assert_array_equal(statistics.total, [0, 3, 0])
    np.testing.assert_allclose(statistics.log_base_measure, [0, -np.log(6), 0])
    assert matrix.nnz == 2


def test_sparse_refusals():
    with pytest.raises(DataError, match="sparse; expected dense numbers"):
        tb.fit_distribution(sp.csr_matrix(WORDS), tb.Gaussian())
    with pytest.raises(DataError, match="sparse; expected categories"):
        tb.fit_distribution(sp.csr_matrix(WORDS), tb.Categorical())
    with pytest.raises(DataError, match="sparse matrix has shape"):
        open_table(sp.coo_array(np.array([1, 0, 2])))
    with pytest.raises(DataError, match="complex"):
        open_table(sp.csr_matrix(np.array([[1j]])))
    with pytest.raises(DataError, match=r"found -1\.0 in row 1, column \('x', 2\)"):
        tb.fit_distribution(sp.csr_matrix(np.array([[0, 0, 1.0], [0, 2, -1]])), tb.Multinomial())


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("indptr", [1, 1, 2, 3], "invalid indptr; expected 4 non-decreasing numbers that start at 0"),
        ("indptr", [0, 2, 1, 3], "invalid indptr"),
        ("indptr", [0, 1, 3], "invalid indptr"),
        ("indptr", [0, 1, 2, 9], "3 indices and 3 values; expected 9 of each"),
        ("indices", [0, 1, 3], "indices from 0 to 3; expected 0 to 2"),
        ("indices", [-1, 1, 2], "indices from -1 to 2; expected 0 to 2"),
    ],
)
def test_malformed_sparse_matrices_are_refused(form, part, values, message):
    matrix = form(np.eye(3))
    setattr(matrix, part, np.array(values, dtype=np.int32))
    with pytest.raises(DataError, match=f"the sparse matrix has .*{message}"):
        open_table(matrix)
    with pytest.raises(DataError, match="the sparse matrix has"):
        open_table({"words": matrix})


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_sparse_matrices(shape):
    statistics = tb.fit_distribution(sp.csr_matrix(shape), tb.Multinomial()).statistics
    assert statistics.total.shape == shape[1:]
    np.testing.assert_array_equal(statistics.weight, [shape[0]])


@pytest.mark.parametrize(
    "block",
    [np.array(ROWS), ROWS, pd.DataFrame(ROWS), pl.DataFrame(ROWS, orient="row"), np.array(ROWS, dtype=object)],
    ids=["array", "lists", "pandas", "Polars", "objects"],
)
def test_columns_and_blocks_mix(block):
    data = {"words": sp.csr_matrix(WORDS), "block": block, "y": ["a", "b", "a"], "n": pl.Series([1, 2, 3])}
    factors = [
        tb.Factor("y", (), tb.Categorical()),
        tb.Factor("words", "y", tb.Multinomial()),
        tb.Factor("block", "y", tb.Gaussian()),
        tb.Factor("n", "y", tb.Poisson()),
    ]
    tally = tb.count(data, factors)
    np.testing.assert_array_equal(tally["words"].total, [[1, 4, 2], [0, 0, 3]])
    assert tally["block"].pool_groups().isclose(tb.Moments.of(ROWS))
    np.testing.assert_array_equal(tally["n"].total, [[4], [2]])


def test_a_block_is_no_column_of_labels():
    with pytest.raises(DataError, match="expected one axis"):
        tb.count({"x": np.array([[1, 2]])}, [tb.Factor("x", (), tb.Categorical())])


# ---- Refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (["a", 1.0], "'a' .str."),
        (["1", "0"], "'1' .str."),
        (np.array(["1", "0"]), "'1'"),
        (pl.Series(["1"]), "'1'"),
        (pd.Series(["a"], dtype="category"), "'a'"),
        (pa.array(["a", None]), "'a'"),
        (np.array([1j]), "complex"),
        (np.array(["2024-01-01"], dtype="M8[D]"), "datetime64"),
        (np.array([5], dtype="m8[s]"), "timedelta64"),
        (pd.Series(pd.to_datetime(["2024-01-01"])), "datetime"),
        (pl.Series([datetime.date(2024, 1, 1)]), "date"),
        (pa.array([datetime.date(2024, 1, 1)]), "date"),
        (pl.Series([[1.0], [2.0]]), "array"),
        ([datetime.date(2024, 1, 1)], "date"),
        ([b"1"], "bytes"),
    ],
)
@pytest.mark.parametrize("family", [tb.Gaussian(), tb.Bernoulli(), tb.Poisson()], ids=repr)
def test_what_is_no_number_is_refused(column, text, family):
    with pytest.raises(DataError, match=f"column 'x' is partly.*{text}.*expected numbers"):
        tb.count({"x": column}, [tb.Factor("x", (), family)])


@pytest.mark.parametrize("name", ["pandas", "Polars", "Arrow"])
def test_dates_in_frames_are_refused(name):
    table = pa.table({"x": [datetime.date(2024, 1, 1), None]})
    frame = {"pandas": pd.DataFrame({"x": pd.to_datetime(["2024-01-01", None])}), "Polars": pl.from_arrow(table)}
    with pytest.raises(DataError, match="expected numbers"):
        tb.count(frame.get(name, table), [tb.Factor("x", (), tb.Gaussian())])
    with pytest.raises(LabelError, match="as a level of column 'x'"):
        tb.count(frame.get(name, table), [tb.Factor("x", (), tb.Categorical())])


@pytest.mark.parametrize(
    "data",
    [
        None,
        5,
        "abc",
        b"abc",
        {1, 2},
        (i for i in range(3)),
        np.array(1.0),
        np.zeros((2, 2, 2)),
        [[["a"]]],
        [[1, 2], [3]],
        [["a", "b"], ["c"]],
        ["a", ["b", "c"]],
        np.array([(1, 2)], dtype=[("a", int), ("b", int)]),
        np.rec.array([(1, 2)], dtype=[("a", int), ("b", int)]),
        [{"a": 1}, None],
        [{"a": 1}, [1]],
        pd.DataFrame(ROWS, columns=["a", "a"]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_is_no_table_is_refused(data):
    with pytest.raises(DataError, match="expected"):
        open_table(data)


def test_lengths_must_agree():
    with pytest.raises(DataError, match=r"\(words: 3, y: 2\)"):
        open_table({"words": sp.csr_matrix(WORDS), "y": ["a", "b"]})
    with pytest.raises(DataError, match="value: 2, group: 1"):
        tb.fit_distribution([1, 0], tb.Bernoulli(), group=["a"])
    with pytest.raises(DataError, match=r"weight has shape \(1,\); expected \(2,\)"):
        tb.fit_distribution([1, 0], tb.Bernoulli(), weight=[1.0])
    with pytest.raises(DataError, match="expected 3 columns, one for every name"):
        open_table(np.array(ROWS), ["a", "b", "c"])


def test_unknown_columns():
    for factor in (tb.Factor("z", (), tb.Gaussian()), tb.Factor("x", "z", tb.Gaussian())):
        with pytest.raises(DataError, match=r"no column 'z' in the data \(found: 'x'\)"):
            tb.count({"x": [1.0]}, [factor])


@pytest.mark.parametrize("weight", [["a", "b"], [-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0], [None, 1.0], 2.0])
def test_bad_weights(weight):
    with pytest.raises(DataError, match="weight"):
        tb.fit_distribution([1, 0], tb.Bernoulli(), weight=weight)


def test_too_many_groups_are_an_error_not_a_crash():
    columns = {name: np.arange(3000) for name in "abc"} | {"x": np.zeros(3000)}
    with pytest.raises(DataError, match="27000000000 combinations of levels"):
        tb.count(columns, [tb.Factor("x", ("a", "b", "c"), tb.Bernoulli())])


# ---- Sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [tb.Gaussian(), tb.Bernoulli(), tb.Poisson(), tb.Categorical()], ids=repr)
def test_empty_everything(family):
    assert open_table([]).n_rows == 0
    assert open_table({}).n_rows == 0
    assert open_table(np.zeros((3, 0))).n_rows == 3
    for data in ([], np.zeros((0, 3)), {"x": []}, pd.DataFrame({"x": []}), pl.DataFrame({"x": []})):
        learned = tb.fit_distribution(data, family)
        assert not learned.statistics.group_weights().any()
        assert learned + learned == learned


def test_rows_without_columns_still_have_a_weight():
    assert tb.fit_distribution(np.zeros((3, 0)), tb.Gaussian()).statistics.weight == [3.0]
    assert tb.fit_distribution(np.zeros((3, 0)), tb.Multinomial()).statistics.weight == [3.0]


def test_two_thousand_columns_of_labels():
    codes = np.random.default_rng(0).integers(0, 3, (20, 2000))
    tally = tb.fit_distribution(codes, tb.Categorical()).tally
    lists = tb.count({i: codes[:, i].tolist() for i in range(2000)}, tally.factors)
    assert lists == tally
    assert tally.statistics[0].table.sum() == 20 * 2000


def test_a_block_of_codes_is_counted_where_it_lies():
    codes = np.random.default_rng(1).integers(0, 200, (50, 4)).astype(np.uint8)
    block, domains = open_table(codes).levels((0, 1, 2, 3))
    assert np.shares_memory(block.columns, codes)
    assert [len(domain.levels) for domain in domains] == (codes.max(axis=0) + 1).tolist()


def test_negative_and_large_codes_in_a_block_are_labels_too():
    codes = np.array([[-1, 5000], [3, 70000], [-1, 5000]])
    tally = tb.fit_distribution(codes, tb.Categorical()).tally
    assert tally.domains["0"].levels == (-1, 3)
    assert tally.domains["1"].levels == (5000, 70000)
    assert tally.statistics[0] == Counts([2.0, 1.0, 2.0, 1.0], [2, 2])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_])
def test_numbers_are_not_copied(order, dtype):
    array = np.zeros((100, 4), dtype=dtype, order=order)
    array.setflags(write=False)
    assert np.shares_memory(open_table(array).numbers((0, 1, 2, 3)), array)
    assert np.shares_memory(open_table(array).numbers((1, 2)), array)
    picked = open_table(array).numbers((3, 0))
    assert all(np.shares_memory(column, array) for column in picked)


def test_columns_of_frames_are_not_copied():
    column = np.zeros(1000)
    for frame in (pd.DataFrame({"x": column}, copy=False), pl.DataFrame({"x": column}), pa.table({"x": column})):
        before = open_table(frame).numbers(("x",))[0]
        again = open_table(frame).numbers(("x",))[0]
        assert np.shares_memory(before, again)


def test_opening_a_large_array_takes_no_memory():
    array = np.zeros((200_000, 10))
    tracemalloc.start()
    try:
        table = open_table(array)
        table.numbers(range(10))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < array.nbytes / 20


def test_a_column_is_encoded_once_for_all_factors(monkeypatch):
    from tallybayes.data import table as module

    seen = []
    encode = module.encode
    monkeypatch.setattr(
        module, "encode", lambda values, name, **options: seen.append(name) or encode(values, name, **options)
    )
    factors = [
        tb.Factor("y", (), tb.Categorical()),
        tb.Factor("a", "y", tb.Gaussian()),
        tb.Factor("b", "y", tb.Poisson()),
    ]
    tb.count({"y": ["u", "v"], "a": [1.0, 2.0], "b": [1, 2]}, factors)
    assert seen == ["y"]


# ---- learn ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "group",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"]),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pl.Series(["b", "a", "b"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pa.array(["b", "a", "b"]),
        pa.chunked_array([["b"], ["a", "b"]]),
    ],
    ids=lambda group: f"{type(group).__module__}.{type(group).__name__}",
)
def test_groups_in_every_form(group):
    learned = tb.fit_distribution([1, 1, 0], tb.Bernoulli(), group=group)
    assert learned.groups == ("a", "b")
    np.testing.assert_array_equal(learned.estimate("mle"), [1.0, 0.5])


def test_missing_groups_are_left_out():
    for group in (["a", None], np.array(["a", np.nan], dtype=object), pl.Series(["a", None])):
        learned = tb.fit_distribution([1, 0], tb.Bernoulli(), group=group)
        assert learned.groups == ("a",)
        assert learned.statistics == tb.Totals([[1.0]], [[1.0]])


@pytest.mark.parametrize(
    "shares", [[[0.5, 0.5], [1.0, 0.0]], np.array([[0.5, 0.5], [1, 0]]), pd.DataFrame([[0.5, 0.5], [1.0, 0.0]])]
)
def test_soft_groups_in_every_form(shares):
    learned = tb.fit_distribution([1, 0], tb.Bernoulli(), group=shares)
    np.testing.assert_allclose(learned.estimate("mle"), [1 / 3, 1.0])


def test_bad_soft_groups():
    for shares in (np.array([[0.5, -0.5]]), np.array([["a", "b"]]), np.array([[np.nan, 1.0]])):
        with pytest.raises(DataError, match=r"weight|group|numbers"):
            tb.fit_distribution([1], tb.Bernoulli(), group=shares)


def test_a_column_called_group_is_kept():
    learned = tb.fit_distribution({"group": [1, 0], "b": [1, 1]}, tb.Bernoulli(), group=["u", "v"])
    assert learned.tally.factors[0].columns == ("group", "b")
    np.testing.assert_array_equal(learned.estimate("mle"), [[1, 1], [0, 1]])


def test_the_weight_shown_is_that_of_the_rows():
    assert repr(tb.fit_distribution([["a", "x"], ["b", "x"]], tb.Categorical())).startswith(
        "FittedDistribution: Categorical(), weight 2\n"
    )


def test_a_table_is_taken_as_it_is():
    table = Table({"x": np.array([1.0])})
    assert open_table(table) is table


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([-(2**62)] * 4, pa.timestamp("s")),
        pa.array([2**62] * 4, pa.timestamp("us")).dictionary_encode(),
        pa.array(range(4), pa.timestamp("us", "Nowhere/None")),
    ],
    ids=["years before all calendars", "dates as categories", "an unknown time zone"],
)
def test_cells_that_python_cannot_hold(cells):
    with pytest.raises(tb.DataError, match="column 'c' cannot be read: "):
        tb.NaiveBayes().fit(pa.table({"c": cells, "y": list("abab")}), "y")


def test_only_observed_levels_are_encoded():
    table = Table({"a": np.array([7, 300, 7, 2]), "b": np.array([0, 1, 2, 1]), "c": ["x", None, "y", "x"]})
    codes, domain = table.observed("a", ordered=True)
    assert domain.levels == (2, 7, 300)
    assert codes.tolist() == [1, 2, 1, 0]
    assert codes.dtype == np.int8
    codes, domain = table.observed("b", ordered=False)
    assert (codes.tolist(), codes.dtype, domain.levels) == ([0, 1, 2, 1], np.int8, (0, 1, 2))
    codes, domain = table.observed("c", ordered=False)
    assert (codes.tolist(), domain.levels) == ([0, -1, 1, 0], ("x", "y"))
