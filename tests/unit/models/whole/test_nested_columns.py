"""Columns that no family reads (nested, bytes, times of day): dropped with the reason, or rejected if named."""

import json
import sqlite3
import uuid
import warnings
from datetime import time, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.warnings import DataSourceWarning

N = 60
RNG = np.random.default_rng(0)
Y = RNG.choice(["a", "b"], N)
ROWS = pa.table(
    {
        "x": RNG.normal(size=N) + (Y == "a"),
        "tags": pa.array([None] + [["u", "v"][: k % 3] for k in range(1, N)]),
        "sky": RNG.choice(["sun", "rain"], N),
        "place": [{"lat": float(k), "more": [k]} for k in range(N)],
        "y": Y,
    }
)
MAPS = pa.array([[("k", k)] for k in range(N)], pa.map_(pa.string(), pa.int64()))
PLAIN = ROWS.select(["x", "sky", "y"])
NESTED = {"tags": "its cells are lists, structs or maps", "place": "its cells are lists, structs or maps"}


def _json(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS.to_pylist()))
    return path


def _parquet(path):
    pq.write_table(ROWS, path)
    return path


def _ipc(path):
    with pa.ipc.new_file(path, ROWS.schema) as file:
        file.write_table(ROWS)
    return path


def _duckdb(path):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("given", ROWS)
    connection.execute("CREATE TABLE rows AS SELECT * FROM given")
    return tb.table(connection, "rows")


KINDS = {
    "arrow": lambda path: ROWS,
    "polars": lambda path: pl.from_arrow(ROWS),
    "lazy": lambda path: pl.from_arrow(ROWS).lazy(),
    "pandas": lambda path: ROWS.to_pandas(),
    "rows": lambda path: ROWS.to_pylist(),
    "json": lambda path: _json(path / "rows.jsonl"),
    "parquet": lambda path: _parquet(path / "rows.parquet"),
    "ipc": lambda path: _ipc(path / "rows.arrow"),
    "duckdb": _duckdb,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "columns", ["auto", "suggest", {"x": tb.Gaussian(), ...: "auto"}], ids=["auto", "suggest", "rest"]
)
def test_nested_columns_are_left_out(kind, columns, tmp_path):
    rows = KINDS[kind](tmp_path)
    with pytest.warns(DataSourceWarning, match=r"tags, place: dropped, because .* lists.*\n.*columns={...}"):
        model = tb.NaiveBayes(columns).fit(rows, "y")
    assert model.dropped_columns_ == NESTED
    assert model.tally_.isclose(tb.NaiveBayes(columns).fit(PLAIN, "y").tally_, 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.predict(KINDS[kind](tmp_path))) == N
        model.partial_fit(KINDS[kind](tmp_path), "y")
    assert "left out, its cells are lists, structs or maps: tags, place" in repr(model)


@pytest.mark.parametrize("kind", KINDS)
def test_nested_columns_that_are_named_are_refused_together(kind, tmp_path):
    columns = {"x": "auto", "place": tb.Categorical(), "tags": "suggest"}
    with pytest.raises(tb.DataError, match=r"columns 'tags', 'place': found lists, structs or maps; .*\n.*drop these"):
        tb.NaiveBayes(columns).fit(KINDS[kind](tmp_path), "y")
    for family in (tb.Categorical(), {"x": "auto", ...: tb.Categorical()}):
        with pytest.raises(tb.DataError, match=r"columns 'tags', 'place': found lists"):
            tb.NaiveBayes(family).fit(KINDS[kind](tmp_path), "y")
    model = tb.NaiveBayes({"x": "auto"}).fit(KINDS[kind](tmp_path), "y")  # without a warning
    assert model.dropped_columns_ == dict.fromkeys(["tags", "sky", "place"], "columns= does not name it")


def test_maps():
    with pytest.warns(DataSourceWarning, match="place, map: dropped"):
        tb.NaiveBayes().fit(ROWS.drop_columns("tags").append_column("map", MAPS), "y")


@pytest.mark.parametrize(
    "model", [tb.AveragedOneDependence(), tb.TreeAugmentedNaiveBayes(), tb.Mixture(2, random_state=0)]
)
def test_other_models_that_choose_their_columns(model):
    rows, plain = (ROWS.drop_columns("y"), PLAIN.drop_columns("y")) if isinstance(model, tb.Mixture) else (ROWS, PLAIN)
    target = () if isinstance(model, tb.Mixture) else ("y",)
    with pytest.warns(DataSourceWarning, match="tags, place: dropped"):
        model.fit(rows, *target)
    assert model.dropped_columns_ == NESTED
    assert model.tally_.isclose(type(model)(**model.get_params()).fit(plain, *target).tally_)


def test_choosing():
    with pytest.warns(DataSourceWarning, match="tags, place: dropped"):
        model = tb.AutoClassifier(random_state=0).fit(ROWS, "y")
    assert model.predict(ROWS).tolist() == tb.AutoClassifier(random_state=0).fit(PLAIN, "y").predict(PLAIN).tolist()


@pytest.mark.parametrize(
    "fit",
    [
        lambda: tb.GaussianDiscriminant().fit(ROWS, "y"),
        lambda: tb.NearestClassMean().fit(ROWS, "y"),
        lambda: tb.BayesianNetwork({"y": [], "tags": ["y"], "place": ["y"]}).fit(ROWS),
        lambda: tb.LinearRegression().fit(ROWS.drop_columns(["y", "sky"]), "x"),
        lambda: tb.learn_tree(ROWS.drop_columns("x").to_pandas()),
        lambda: tb.count(ROWS, [tb.Factor(("tags",), (), tb.Categorical())]),
        lambda: tb.NaiveBayes().fit(ROWS, "tags"),
    ],
    ids=["discriminant", "means", "network", "regression", "tree", "count", "target"],
)
def test_models_without_such_a_choice_name_all_of_them_at_once(fit):
    with pytest.raises((tb.DataError, tb.LabelError), match=r"'tags', 'place': found lists, structs or maps"):
        fit()


# ---- Bytes, times of day, durations -----------------------------------------------------------------------------

UNREAD = pa.table(
    {
        "x": ROWS["x"],
        "raw": pa.array([None] + [bytes([k % 3]) for k in range(1, N)]),
        "hour": pa.array([time(k % 24) for k in range(N)]),
        "span": pa.array([timedelta(k) for k in range(N)]),
        "y": Y,
    }
)


def _database(connection):
    tb.write_rows(UNREAD, (connection, "unread"))
    return tb.table(connection, "unread")


def _postgresql(request):
    psycopg = pytest.importorskip("psycopg")
    connection = psycopg.connect(request.getfixturevalue("postgresql_server"), autocommit=True)
    request.addfinalizer(connection.close)
    return _database(connection)


UNREAD_KINDS = {
    "arrow": lambda request, path: UNREAD,
    "polars": lambda request, path: pl.from_arrow(UNREAD),
    "pandas": lambda request, path: UNREAD.to_pandas(),
    "pandas categories": lambda request, path: UNREAD.to_pandas().astype({"raw": "category", "hour": "category"}),
    "rows": lambda request, path: UNREAD.to_pylist(),
    "mapping": lambda request, path: {
        **UNREAD.to_pydict(),
        "raw": np.array([bytes([1 + k % 3]) for k in range(N)]),
        "span": np.arange(N).astype("timedelta64[s]"),
    },
    "parquet": lambda request, path: pq.write_table(UNREAD, path) or path,
    "duckdb": lambda request, path: _database(pytest.importorskip("duckdb").connect()),
    "sqlite": lambda request, path: _database(sqlite3.connect(":memory:")),
    "postgresql": lambda request, path: _postgresql(request),
}


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.parametrize("kind", UNREAD_KINDS)
def test_columns_of_unread_types_are_dropped(kind, tmp_path, request):
    rows, expected = UNREAD_KINDS[kind](request, tmp_path / "rows.parquet"), ["raw", "hour", "span"]
    if kind == "sqlite":  # which has text for times and durations
        rows, expected = tb.table(rows.dialect.connection, "SELECT x, raw, y FROM unread"), ["raw"]
    for columns in ("auto", "suggest", {"x": tb.Gaussian(), ...: "auto"}):
        with pytest.warns(DataSourceWarning, match=rf"{', '.join(expected)}: dropped"):
            model = tb.NaiveBayes(columns).fit(rows, "y")
        assert list(model.dropped_columns_) == expected
        assert all(reason.startswith("its type is ") for reason in model.dropped_columns_.values())
        assert model.tally_.isclose(tb.NaiveBayes(columns).fit(PLAIN.select(["x", "y"]), "y").tally_, 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.predict(rows)) == N
        tb.NaiveBayes({"x": tb.Gaussian()}).fit(rows, "y")
    with pytest.raises(tb.DataError, match=r"column 'raw': found cells .*\n.*Convert bytes to .*To ignore them, "):
        tb.NaiveBayes({"x": "auto", "raw": "auto"}).fit(rows, "y")


@pytest.mark.parametrize("cell", [uuid.UUID(int=1), 1j, pd.Period("2020-01"), object()])
def test_objects_that_no_family_reads_are_dropped(cell):
    rows = {"x": PLAIN["x"], "cell": [None, *[cell] * (N - 1)], "y": Y}
    with pytest.warns(DataSourceWarning, match="cell: dropped"):
        model = tb.NaiveBayes().fit(rows, "y")
    assert model.dropped_columns_ == {"cell": f"its type is {type(cell).__name__}"}


def test_a_table_of_unread_columns_alone_is_rejected():
    with pytest.raises(tb.DataError, match=r"columns 'raw', 'span': found cells of type binary"):
        tb.NaiveBayes().fit(UNREAD.select(["raw", "span", "y"]), "y")


def test_choosing_drops_columns_of_unread_types():
    with pytest.warns(DataSourceWarning, match="raw, hour, span: dropped"):
        model = tb.AutoClassifier(random_state=0).fit(UNREAD, "y")
    assert len(model.predict(UNREAD)) == N
