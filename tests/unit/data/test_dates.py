"""Columns of dates: their parts are found by type, in every kind of column."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.dates import parts_of_type, with_parts_of_dates
from tallybayes.data.table import open_table

MOMENTS = [dt.datetime(2024, 2, 29, 23, 59, 59), None, dt.datetime(2023, 1, 1, 0, 30)]  # a Thursday, and a Sunday
EXPECTED = {
    "when.year": [2024, None, 2023],
    "when.month": [2, None, 1],
    "when.day_of_week": [3, None, 6],
    "when.hour": [23, None, 0],
}
ZONE = dt.timezone(dt.timedelta(hours=9))


def moments():
    local = [None if one is None else one.replace(tzinfo=ZONE) for one in MOMENTS]
    yield "datetime objects", MOMENTS
    yield "datetime objects with a zone", local
    yield "an array of objects", np.array(MOMENTS, dtype=object)
    for unit in ("s", "ms", "us", "ns", "m"):
        yield f"NumPy {unit}", np.array(MOMENTS, dtype=f"datetime64[{unit}]")
    for unit in ("s", "us", "ns"):
        yield f"pandas {unit}", pd.Series(MOMENTS, dtype=f"datetime64[{unit}]")
    yield "pandas objects", pd.Series(MOMENTS, dtype=object)
    yield "pandas zone", pd.Series(MOMENTS, dtype="datetime64[ns]").dt.tz_localize("Asia/Tokyo")
    yield "pandas Arrow", pd.Series(MOMENTS, dtype=pd.ArrowDtype(pa.timestamp("us")))
    yield "Polars", pl.Series(MOMENTS)
    yield "Polars zone", pl.Series(MOMENTS).dt.replace_time_zone("Asia/Tokyo")
    yield "Arrow", pa.array(MOMENTS, pa.timestamp("ms"))
    yield "Arrow zone", pa.array(local, pa.timestamp("us", "Asia/Tokyo"))
    yield "Arrow in pieces", pa.chunked_array([pa.array(MOMENTS[:1]), pa.array(MOMENTS[1:], pa.timestamp("us"))])


def days():
    whole = [None if one is None else one.date() for one in MOMENTS]
    yield "date objects", whole
    yield "NumPy D", np.array(whole, dtype="datetime64[D]")
    yield "pandas objects", pd.Series(whole)
    yield "pandas Arrow", pd.Series(whole, dtype=pd.ArrowDtype(pa.date32()))
    yield "Polars", pl.Series(whole)
    yield "Arrow", pa.array(whole)
    yield "Arrow date64", pa.array(whole, pa.date64())


def parts(column):
    table = with_parts_of_dates(open_table({"when": column}))
    found = {}
    for name in table.columns:
        cells = np.asarray(table.numbers([name])[0], dtype=float)
        found[name] = [None if np.isnan(cell) else int(cell) for cell in cells]
    return found


@pytest.mark.parametrize("column", [pytest.param(column, id=name) for name, column in moments()])
def test_a_column_of_times_has_four_parts_by_its_own_clock(column):
    assert parts(column) == EXPECTED


@pytest.mark.parametrize("column", [pytest.param(column, id=name) for name, column in days()])
def test_a_column_of_days_has_no_hour(column):
    assert parts(column) == {name: cells for name, cells in EXPECTED.items() if name != "when.hour"}


@pytest.mark.parametrize(("unit", "n"), [("Y", 1), ("M", 2), ("W", 3), ("D", 3), ("h", 4), ("25us", 4)])
def test_units_of_numpy_have_the_parts_that_they_tell_apart(unit, n):
    assert len(parts_of_type(str(np.dtype(f"datetime64[{unit}]")))) == n


@pytest.mark.parametrize("column", [["2024-02-29", "x"], [3, 4], pd.Series([1.5, None]), np.array([True, False])])
def test_other_columns_stay_as_they_are(column):
    table = open_table({"when": column})
    assert with_parts_of_dates(table) is table


def test_midnights_are_of_a_type_with_hours():
    """The type decides: no value does."""
    column = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[s]")
    assert parts(column)["when.hour"] == [0, 0]


def test_strings_are_read_where_a_part_is_wanted():
    table = open_table({"when": ["2024-02-29T23:59:59", "", "2023-01-01 00:30+09:00", "2023-01-01"]})
    table = with_parts_of_dates(table, ["when.day_of_week", "when.hour"])
    assert table.columns["when.day_of_week"].to_pylist() == [3, None, 6, 6]
    assert table.columns["when.hour"].to_pylist() == [23, None, 0, None]  # a day tells no hour


@pytest.mark.parametrize(("column", "found"), [(["31/12/2020"], "'31/12/2020'"), ([3], "3"), (np.array([3.5]), "3.5")])
def test_what_is_no_date_is_refused_by_its_cell(column, found):
    with pytest.raises(tb.DataError, match=f"(?s){found}.*column 'when'.*expected a date such as 2026-05-31"):
        with_parts_of_dates(open_table({"when": column}), ["when.year"])


def test_a_column_with_the_name_of_a_part_is_refused():
    rows = {"when": np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[s]"), "when.year": [1, 2]}
    with pytest.raises(tb.DataError, match=r"column 'when.year' has the name of a part of the dates in 'when'"):
        tb.NaiveBayes().fit(rows, [0, 1])
