"""What Spark has of its own: frames, their types and names, and rows that are read a partition at a time."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.open_source import open_source
from tallybayes.data.sql.spark import SparkFrame
from tallybayes.warnings import DataSourceWarning

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
NAME = "o`dd {rows}; --"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(6)
    n = 300
    price = [None if k % 9 == 0 else decimal.Decimal(int(cent)) / 100 for k, cent in enumerate(rng.integers(0, 999, n))]
    return pa.table(
        {
            "price": pa.array(price, pa.decimal128(9, 2)),
            "member": pa.array(rng.random(n) < 0.5),
            NAME: rng.choice(["a", "b"], n),
            "level": rng.choice([1.0, np.nan, 3.0], n),
            "y": rng.choice([1, 2], n),
        }
    )


@pytest.mark.slow
def test_frames_are_sources_whatever_their_columns_are_called(spark, rows):
    frame = spark.createDataFrame(rows)
    columns = {"level": tb.Categorical(), ...: "auto"}
    model = tb.NaiveBayes(columns).fit(frame, "y")
    numbers = rows.set_column(0, "price", rows["price"].cast("float64"))
    expected = tb.NaiveBayes(columns).fit(numbers, "y")
    assert model.tally_.isclose(expected.tally_, 1e-9)
    assert model.tally_["y"].table.tolist() == expected.tally_["y"].table.tolist()
    np.testing.assert_array_equal(model.predict(frame), expected.predict(numbers))
    assert spark.sql("SHOW TABLES").where("tableName LIKE '%pyspark%'").collect() == []  # views that a query needs


COLUMNS = """SELECT id % 7 AS k, CAST(id % 5 AS DOUBLE) AS x, IF(id % 3 = 0, 'a', 'b') AS y,
  CAST(id % 4 AS DECIMAL(9, 2)) AS price, timestamp_seconds(id * 86400) AS at, CAST(NULL AS TIMESTAMP_NTZ) AS plain,
  named_struct('r', id, 's', 'u') AS place, array(id, 2) AS tags, map('u', id) AS words, CAST('x' AS BINARY) AS raw,
  INTERVAL '1-2' YEAR TO MONTH AS span, INTERVAL '1 02:00:00' DAY TO SECOND AS wait
FROM range(60)"""


@pytest.mark.slow
def test_columns_of_every_type_beside_those_that_are_read(any_spark):
    """Decimals, times, structs and bytes, in classic sessions and in those of Spark Connect."""
    frame = any_spark.sql(COLUMNS)
    columns = {"k": tb.Categorical(), "x": tb.Gaussian(), "price": tb.Gaussian()}
    model = tb.NaiveBayes(columns).fit(frame, "y")
    rows = frame.select("k", "x", "price", "y").toArrow().to_pandas().astype({"price": float})
    expected = tb.NaiveBayes(columns).fit(rows, "y")
    assert model.tally_.isclose(expected.tally_, 1e-9)
    assert sorted(model.predict(frame)) == sorted(expected.predict(rows))
    assert model.score(frame, "y") == expected.score(rows, "y")
    told = tb.write_predictions(model, frame, "spark", keep=["k", "at", "span"])
    assert sorted(row[3] for row in told.collect()) == sorted(expected.predict(rows))
    assert {row[2] for row in told.collect()} == {"INTERVAL '1-2' YEAR TO MONTH"}
    by_type = pytest.warns(DataSourceWarning, match="raw, span, wait: dropped")
    with by_type, pytest.warns(DataSourceWarning, match="place, tags, words: dropped"):
        model = tb.NaiveBayes().fit(frame, "y")
    assert set(model.dropped_columns_) == {"place", "tags", "words", "raw", "span", "wait"}
    assert model.dropped_columns_["span"] == "its type is interval year to month"
    assert len(model.predict(frame)) == 60
    with pytest.raises(tb.DataError, match=r"column .span.: found cells of type interval.*\n.*To ignore them"):
        tb.NaiveBayes({"span": tb.Categorical()}).fit(frame, "y")
    with pytest.raises(tb.DataError, match="columns 'place', 'tags': found lists, structs or maps"):
        tb.NaiveBayes({"place": tb.Categorical(), "tags": "auto"}).fit(frame, "y")


def test_a_frame_without_decimals(any_spark):
    frame = any_spark.sql("SELECT CAST(id AS DOUBLE) AS x, IF(id > 4, 'a', 'b') AS y FROM range(9)")
    assert tb.NaiveBayes().fit(frame, "y").score(frame, "y") == 1
    frame.createOrReplaceTempView("nine")
    assert tb.NaiveBayes().fit(tb.table(any_spark, "nine"), "y").tally_["y"].table.sum() == 9
    query = tb.table(any_spark, "SELECT * FROM nine WHERE x > 2")
    assert tb.NaiveBayes().fit(query, "y").tally_["y"].table.sum() == 6


def test_errors_of_spark_name_the_cause(any_spark):
    """A frame is computed when it is read, and may fail then."""
    whole = any_spark.range(2000).selectExpr("CASE WHEN id % 2 = 0 THEN 'a' ELSE 'b' END AS y", "id")
    overflow = whole.selectExpr("y", "CAST(id AS TINYINT) AS x")
    with pytest.raises(tb.DataError, match=r"Spark cannot answer the query: .*CAST_OVERFLOW"):
        tb.NaiveBayes().fit(overflow, "y")
    model = tb.NaiveBayes({"x": tb.Gaussian()}).fit(whole.selectExpr("y", "id AS x"), "y")
    with pytest.raises(tb.DataError, match=r"Spark cannot answer the query: "):
        model.predict(overflow)


def test_rows_are_read_in_order_and_in_parts(spark, monkeypatch):
    monkeypatch.setattr("tallybayes.data.source.in_batches.__defaults__", (500,))
    source = open_source(spark.range(2_000, numPartitions=4).withColumnRenamed("id", "a.b"))
    batches = list(source.batches(["a.b"]))
    assert len(batches) == 4  # partitions
    assert pa.concat_tables(batches)["a.b"].to_pylist() == list(range(2_000))
    assert source.schema == batches[0].schema
    with pytest.raises(tb.DataError, match="no column 'b'"):
        list(source.batches(["b"]))


@pytest.mark.slow
def test_what_there_is_not(spark):
    for query in ("nope", "no.where", "select * from nope", "with a as (select 1) insert into t select * from a"):
        with pytest.raises(tb.DataError, match=r"the table 'no.*' cannot be read|the query cannot be run"):
            tb.table(spark, query)
    twice = spark.sql("SELECT 1 AS x, 2 AS x, 'a' AS y")
    with pytest.raises(tb.DataError, match="two columns 'x'"):
        tb.NaiveBayes().fit(twice, "y")
    none = spark.createDataFrame(pd.DataFrame({"x": [1.0], "y": ["a"]})).limit(0)
    with pytest.raises(tb.DataError):
        tb.NaiveBayes().fit(none, "y")


@pytest.mark.slow
def test_pairs_of_bins_are_counted_there(spark, monkeypatch):
    rng = np.random.default_rng(7)
    rows = pd.DataFrame(
        {"x": rng.normal(size=60), "word": rng.choice(["a", "b"], 60), "tag": rng.choice(["D", "N"], 60)}
    )
    monkeypatch.setattr(SparkFrame, "batches", None)
    columns = {"x": tb.Binned((None, 0.0, None)), "word": tb.Categorical()}
    found, expected = (
        tb.AveragedOneDependence(columns=columns).fit(one, "tag").tally_
        for one in (spark.createDataFrame(pa.Table.from_pandas(rows)), rows)
    )
    assert found.isclose(expected)
