"""Spark asks a model about its rows where they are; it says what the model says here."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")


@pytest.mark.slow
def test_predictions_in_spark_are_those_here(spark):
    rng = np.random.default_rng(2)
    y = rng.choice(["no", "yes"], 300)
    rows = pd.DataFrame({"id": np.arange(300), "x.y": rng.normal(size=300) + (y == "yes"), "y": y})
    rows["Prediction"] = rng.choice(["a", None], 300)
    model = tb.NaiveBayes({"x.y": tb.Gaussian(), "Prediction": tb.Categorical()}).fit(rows, "y")
    frame = spark.createDataFrame(pa.Table.from_pandas(rows)).repartition(2)
    told = tb.write_predictions(model, frame, "spark", proba=True, keep=["id", "Prediction"])
    found = told.toArrow().to_pandas().sort_values("id", ignore_index=True)
    expected = tb.write_predictions(model, rows, "pandas", proba=True, keep=["id", "Prediction"])
    assert told.columns == ["id", "Prediction", "prediction_", "p(no)", "p(yes)"]
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-12)


@pytest.mark.slow
def test_a_node_of_a_network_and_labels_that_are_numbers(spark):
    rows = pa.table({"rain": [0, 0, 1, 1] * 5, "wet": [False, True, True, True] * 5, "id": list(range(20))})
    network = tb.BayesianNetwork({"rain": [], "wet": ["rain"]}).fit(rows.select(["rain", "wet"]))
    told = tb.write_predictions(network, spark.createDataFrame(rows).repartition(2), "spark", "rain", keep="id")
    found = dict(map(tuple, told.collect()))
    assert told.dtypes == [("id", "bigint"), ("prediction", "bigint")]
    assert [found[k] for k in range(20)] == network.predict(rows.select(["rain", "wet"]), "rain").tolist()


@pytest.mark.slow_after(1)
def test_kept_columns_are_unchanged(spark, tmp_path):
    price = pa.array([Decimal("123456789012345678.90"), Decimal("0.10"), None], pa.decimal128(20, 2))
    rows = pa.table({"x": [1.0, -1.0, 0.5], "price": price, "cost": price, "items": [[1, 2], [], None]})
    model = tb.NaiveBayes().fit({"x": [1.0, -1.0, 2.0], "cost": [1.0, 2.0, 3.0], "y": list("aba")}, "y")
    frame = spark.createDataFrame(rows)
    keep = ["price", "cost", "items"]
    found = tb.write_predictions(model, frame, "spark", keep=keep)
    assert dict(found.dtypes)["price"] == "decimal(20,2)"
    tb.write_predictions(model, frame, tmp_path / "told.parquet", keep=keep)
    for back in (found.toArrow(), pq.read_table(tmp_path / "told.parquet")):
        assert back.schema.field("price").type == pa.decimal128(20, 2)
        assert back.select(keep).to_pylist() == rows.select(keep).to_pylist()


def test_rows_that_are_not_in_spark():
    model = tb.NaiveBayes().fit({"x": [1, 2], "y": ["a", "b"]}, "y")
    with pytest.raises(tb.DataError, match="expected a Spark frame"):
        tb.write_predictions(model, {"x": [1]}, "spark")
