"""Predictions go out batch by batch, to files, tables and frames, whole or not at all."""

import base64
import json
import sqlite3
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.data import source as source_module
from tallybayes.data.source import Source

ENDINGS = ["parquet", "arrow", "feather", "csv", "tsv", "jsonl", "csv.gz", "csv.zst", "jsonl.gz", "tsv.bz2"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    y = rng.choice(["no", "yes"], 390)
    found = pd.DataFrame(
        {
            "id": np.arange(390),
            "size": rng.normal(size=390) + (y == "yes"),
            'a "job", or': rng.choice(["cook", "it's; DROP TABLE t", "søn"], 390),
            "prediction": rng.choice(["x", None], 390),
            "y": y,
        }
    )
    found.loc[::11, "size"] = np.nan
    found.loc[::7, 'a "job", or'] = None
    return found


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of some 64 rows, and no way to have all of them at a time."""
    for name in (
        "data.source.BATCH",
        "data.source.MOST",
        "data.batch_source.BATCH",
        "data.sql.databases.BATCH",
        "export.write_predictions.BATCH",
    ):
        monkeypatch.setattr(f"tallybayes.{name}", 64)
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 2000)
    monkeypatch.setattr(source_module.in_batches, "__defaults__", (64,))

    def read(*_):
        raise AssertionError("all rows were read")

    monkeypatch.setattr(Source, "read", read)


@pytest.fixture(params=["duckdb", "sqlite", "postgresql", "postgresql in transactions"])
def connect(request):
    if request.param == "duckdb":
        connection = pytest.importorskip("duckdb", reason="DuckDB is not installed").connect()
    elif request.param == "sqlite":
        connection = sqlite3.connect(":memory:")
    else:
        import psycopg

        autocommit = request.param == "postgresql"
        connection = psycopg.connect(request.getfixturevalue("postgresql_server"), autocommit=autocommit)
    yield connection
    connection.close()


KEEP = ["id", 'a "job", or', "prediction"]


def _model():
    return tb.NaiveBayes({"size": tb.Gaussian(), 'a "job", or': tb.Categorical()})


def _expected(model, frame):
    found = frame[KEEP].assign(prediction_=model.predict(frame))
    shares = model.predict_proba(frame)
    return found.assign(**{f"p({label})": shares[:, k] for k, label in enumerate(model.classes_)})


def _assert_same(found, expected):
    assert list(found.columns) == list(expected.columns)
    for name in expected:
        if name.startswith("p("):
            np.testing.assert_allclose(found[name].astype(float), expected[name], rtol=1e-12)
        else:
            mine, its = ([None if pd.isna(cell) else cell for cell in one[name]] for one in (found, expected))
            assert mine == its


def _read(path):
    return pd.DataFrame(pa.concat_tables(tb.table(path).batches()).to_pylist())


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_kind_of_file(ending, frame, tmp_path, small_batches):
    model = _model().fit(frame, "y")
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet", row_group_size=64)
    path = tmp_path / f"told.{ending}"
    path.write_text("what was there before is replaced")
    n_rows = tb.write_predictions(model, tmp_path / "rows.parquet", path, proba=True, keep=KEEP)
    assert n_rows == 390
    _assert_same(_read(path), _expected(model, frame))
    assert [other.name for other in tmp_path.iterdir() if other.suffix == ".tmp"] == []


DATA = {
    "pandas": lambda frame, path: frame,
    "categories": lambda frame, path: frame.astype({'a "job", or': "category"}),
    "polars": lambda frame, path: pl.from_pandas(frame),
    "lazy": lambda frame, path: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, path: pa.Table.from_pandas(frame, preserve_index=False),
    "dictionary": lambda frame, path: frame.to_dict("list"),
    "iterator": lambda frame, path: (
        frame.iloc[k : k + 77].astype({'a "job", or': "category"}) for k in range(0, len(frame), 77)
    ),
    "csv": lambda frame, path: frame.to_csv(path / "rows.csv", index=False) or path / "rows.csv",
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("to", ["pandas", "polars", "pyarrow", "told.parquet"])
def test_every_kind_of_data(kind, to, frame, tmp_path, small_batches):
    model = _model().fit(frame, "y")
    expected, data = _expected(model, frame), DATA[kind](frame, tmp_path)
    if to != "told.parquet":
        found = tb.write_predictions(model, data, to, proba=True, keep=KEEP)
        assert type(found).__module__.startswith(to)
        _assert_same(pd.DataFrame(pa.table(found).to_pylist()), expected)
    else:
        assert tb.write_predictions(model, data, tmp_path / to, proba=True, keep=KEEP) == 390
        _assert_same(_read(tmp_path / to), expected)


def _table(connection, name):
    cursor = connection.execute(f'SELECT * FROM {name} ORDER BY "id"')
    names = [column[0] for column in cursor.description]
    return pd.DataFrame(cursor.fetchall(), columns=names)


def _filled(connection, frame):
    """A table "my.rows" of the frame."""
    source = pa.Table.from_pandas(frame, preserve_index=False)
    with tb.data.sql.databases.dialect_of(connection).writing(["my.rows"], source.schema) as write:
        write(source)
    if not getattr(connection, "autocommit", True):
        connection.commit()
    return tb.table(connection, "my.rows")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["file", "database"])
def test_tables(connect, where, frame, tmp_path, small_batches):
    model = _model().fit(frame, "y")
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    data = _filled(connect, frame) if where == "database" else tmp_path / "rows.parquet"
    name = 'told"; DROP TABLE "my.rows"; --'
    assert tb.write_predictions(model, data, (connect, name), proba=True, keep=KEEP) == 390
    connect.rollback() if not hasattr(connect, "begin") else None  # it was committed
    quoted = '"told""; DROP TABLE ""my.rows""; --"'
    _assert_same(_table(connect, quoted), _expected(model, frame))
    with pytest.raises(tb.DataError, match=r"cannot be written: .*already exists.*\n.*drop the table"):
        tb.write_predictions(model, frame, (connect, name), keep=["id"])
    _assert_same(_table(connect, quoted), _expected(model, frame))


@pytest.mark.slow
def test_after_an_error_there_is_nothing(connect, frame, tmp_path, small_batches):
    model = _model().fit(frame, "y")

    def parts():
        for start in range(0, 256, 32):
            yield frame.iloc[start : start + 32]
        raise OSError("the disk is gone")

    before = tmp_path / "told.parquet"
    before.write_text("before")
    for to in [(connect, "told"), before]:
        with pytest.raises(OSError, match="the disk is gone"):
            tb.write_predictions(model, parts(), to, keep="id")
    assert before.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["told.parquet"]
    with pytest.raises(tb.DataError, match="no table 'told'"):
        tb.table(connect, "told").first_batch()
    assert tb.write_predictions(model, frame, (connect, "told"), keep="id") == 390


@pytest.mark.slow_after(1)
def test_in_the_users_own_transaction(connect, frame):
    model = _model().fit(frame, "y")
    connect.execute('CREATE TABLE mine ("id" integer)')
    if not getattr(connect, "autocommit", True):
        connect.commit()
    connect.execute("BEGIN") if not getattr(connect, "info", None) or connect.autocommit else None
    connect.execute("INSERT INTO mine VALUES (1)")
    tb.write_predictions(model, frame, (connect, "told"), keep="id")
    connect.execute("COMMIT")
    assert len(_table(connect, "told")) == 390
    assert len(_table(connect, "mine")) == 1


@pytest.mark.slow_after(1)
def test_a_schema_and_types_of_all_kinds(connect, frame):
    if isinstance(connect, sqlite3.Connection):
        connect.execute("ATTACH ':memory:' AS other")
    else:
        connect.execute("CREATE SCHEMA IF NOT EXISTS other; DROP TABLE IF EXISTS other.told")
    more = pa.table(
        {
            "size": [0.5, None],
            'a "job", or': ["cook", None],
            "id": pa.array([1, 2], "int16"),
            "large": pa.array([2**63 - 1, None], "int64"),
            "true": [True, None],
            "day": pa.array(pd.to_datetime(["2020-01-02", None])).cast("date32"),
            "at": pa.array(pd.to_datetime(["2020-01-02 03:04", None])).cast("timestamp[us]"),
            "price": pa.array([1, None]).cast(pa.decimal128(21, 2)),
            "nothing": pa.nulls(2),
        }
    )
    model = _model().fit(frame, "y")
    keep = more.column_names[2:]
    assert tb.write_predictions(model, more, (connect, "other", "told"), keep=keep) == 2
    found = _table(connect, "other.told")
    assert found["large"][0] == 2**63 - 1
    assert bool(found["true"][0]) is True
    assert str(found["day"][0])[:10] == "2020-01-02"
    assert str(found["at"][0])[:16] == "2020-01-02 03:04"
    assert float(found["price"][0]) == 1
    assert found.iloc[1].drop(["id", "prediction"]).isna().all()
    if not type(connect).__name__.startswith("DuckDB"):
        more = more.append_column("span", pa.nulls(2, pa.month_day_nano_interval()))
        with pytest.raises(tb.DataError, match=r"column 'span' is month_day_nano_interval, which cannot be written"):
            tb.write_predictions(model, more, (connect, "more"), keep=["span"])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("labels", [[0, 1, 2], [False, True], ["a", "A"]], ids=["int", "bool", "case"])
def test_labels_of_every_type(connect, labels, tmp_path):
    rng = np.random.default_rng(0)
    y = np.array(labels)[rng.integers(0, len(labels), 60)]
    X = pd.DataFrame({"x": rng.normal(size=60), "id": np.arange(60)})
    model = tb.NaiveBayes({"x": tb.Gaussian()}).fit(X.assign(y=y), "y")
    tb.write_predictions(model, X, tmp_path / "told.parquet", proba=True)
    found = pd.read_parquet(tmp_path / "told.parquet")
    assert found["prediction"].dtype == y.dtype or labels == ["a", "A"]
    assert found["prediction"].tolist() == model.predict(X).tolist()
    second = "p(A)_" if labels == ["a", "A"] else f"p({labels[1]})"
    place = list(model.classes_).index(labels[1])
    assert len({name.lower() for name in found}) == len(labels) + 1
    if labels != ["a", "A"]:
        np.testing.assert_array_equal(found[second], model.predict_proba(X)[:, place])
    tb.write_predictions(model, X, (connect, "told"), proba=True, keep="id")
    assert _table(connect, "told")["prediction"].tolist() == model.predict(X).tolist()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow"])
def test_no_rows(ending, frame, tmp_path):
    model = _model().fit(frame, "y")
    frame[:0].to_csv(tmp_path / "header.csv", index=False)
    for data in (frame[:0], tmp_path / "header.csv"):
        path = tmp_path / f"told.{ending}"
        assert tb.write_predictions(model, data, path, proba=True, keep="id") == 0
        if ending == "parquet":
            assert pq.read_table(path).column_names == ["id", "prediction", "p(no)", "p(yes)"]
        if ending == "csv":
            assert path.read_text() == '"id","prediction","p(no)","p(yes)"\n'
    assert len(tb.write_predictions(model, tmp_path / "header.csv", "pandas")) == 0


@pytest.mark.slow
def test_every_model(frame, tmp_path, small_batches):
    rows = frame[["id", "size", 'a "job", or', "y"]].dropna()
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    numbers = rows[["id", "size", "y"]]
    models = [
        tb.AutoClassifier(single=True, random_state=0).fit(rows, "y"),
        tb.NearestClassMean().fit(numbers, "y"),
        tb.GaussianDiscriminant().fit(numbers, "y"),
        tb.AveragedOneDependence().fit(rows, "y"),
        tb.Mixture(2, random_state=0).fit(rows[["size"]]),
        tb.NaiveBayes("suggest").fit(rows[["size", "id"]], rows["y"]),
    ]
    for model in models:
        asked = rows[list(getattr(model, "feature_names_in_", rows.columns))]
        for data in (rows, tmp_path / "rows.parquet"):
            found = tb.write_predictions(model, data, "pandas", proba=True, keep="id")
            np.testing.assert_array_equal(found["prediction"], model.predict(asked))
            np.testing.assert_allclose(found.iloc[:, 2:], model.predict_proba(asked), rtol=1e-12)
    network = tb.BayesianNetwork({"y": ['a "job", or'], "size": ["y"]}).fit(rows)
    found = tb.write_predictions(network, tmp_path / "rows.parquet", "pandas", "y", proba=True)
    np.testing.assert_array_equal(found["prediction"], network.predict(rows, "y"))
    np.testing.assert_allclose(found[["p(no)", "p(yes)"]], network.predict_proba(rows, "y"), rtol=1e-12)
    found = tb.write_predictions(network, tmp_path / "rows.parquet", "pandas", "size")
    np.testing.assert_allclose(found["prediction"], network.predict(rows, "size"), rtol=1e-12)


def test_what_is_refused(frame, tmp_path):
    model, network = _model().fit(frame, "y"), tb.BayesianNetwork({"y": ["prediction"]}).fit(frame)
    chain = tb.HiddenMarkovModel().fit([["a", "b"]], [["x", "y"]])
    with pytest.raises(tb.DataError, match=r"has the unknown ending .xlsx.*\n.*predictions.parquet"):
        tb.write_predictions(model, frame, tmp_path / "told.xlsx")
    with pytest.raises(tb.DataError, match="to is 3; expected a path, \\(connection"):
        tb.write_predictions(model, frame, 3)
    with pytest.raises(tb.DataError, match="no column 'nope'"):
        tb.write_predictions(model, frame, "pandas", keep="nope")
    with pytest.raises(tb.DataError, match="node is None; expected the node to predict, one of"):
        tb.write_predictions(network, frame, "pandas")
    with pytest.raises(tb.DataError, match="node is 'y', and a NaiveBayes predicts its classes"):
        tb.write_predictions(model, frame, "pandas", "y")
    with pytest.raises(tb.DataError, match=r"Use model.predict for sequences"):
        tb.write_predictions(chain, frame, "pandas")
    nested = pa.table({"size": [1.0], 'a "job", or': ["cook"], "list": [[1]]})
    with pytest.raises(tb.DataError, match=r"cannot be written to .*told.csv"):
        tb.write_predictions(model, nested, tmp_path / "told.csv", keep="list")
    assert not list(tmp_path.iterdir())


# ---- Columns that are kept --------------------------------------------------------------------------------------

KEPT = {
    "price": pa.array([Decimal("123456789012345678.90"), Decimal("0.10"), None], pa.decimal128(20, 2)),
    "huge": pa.array([Decimal("12345678901234567890123456789012345678"), Decimal(1), None], pa.decimal128(38, 0)),
    "at": pa.array([datetime(2026, 3, 29, 1, 59, 59, 999999, UTC), datetime(1900, 1, 1, tzinfo=UTC), None]),
    "local": pa.array([datetime(2026, 3, 29, 2, 30, 0, 1), None, datetime(1, 1, 1)]),
    "number": pa.array([2**63 - 1, -(2**63), 2**53 + 1], pa.int64()),
    "unsigned": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "raw": pa.array([b"\x00\xff'\\", b"", None], pa.binary()),
    "record": pa.array(
        [{"a": 1, "b": 'x"'}, {"a": None, "b": ""}, None], pa.struct({"a": pa.int64(), "b": pa.string()})
    ),
    "day": pa.array([date(2026, 2, 28), None, date(1, 1, 1)]),
    "time": pa.array([time(23, 59, 59, 999999), None, time(0)]),
    "half": pa.array([0.1, None, 1e-300]),
    "text": pa.array(["NULL", "\\N", None]),
    "list": pa.array([[1, None, 2**53 + 1], [], None], pa.list_(pa.int64())),
}
KEPT_TABLE = pa.table({"size": [1.0, -1.0, 0.5], **KEPT})


@pytest.fixture(scope="module")
def sizes():
    return tb.NaiveBayes().fit({"size": [1.0, -1.0, 0.9, -0.8], "y": list("abab")}, "y")


def _kept(found):
    return found.select(list(KEPT)).to_pylist()


def _source(kind, path, request):
    if kind in ("parquet", "arrow"):
        tb.write_rows(KEPT_TABLE, path / f"rows.{kind}")
        return path / f"rows.{kind}"
    if kind in ("duckdb", "postgresql"):
        import psycopg

        connection = (
            pytest.importorskip("duckdb", reason="DuckDB is not installed").connect()
            if kind == "duckdb"
            else psycopg.connect(request.getfixturevalue("postgresql_server"), autocommit=True)
        )
        request.addfinalizer(connection.close)
        tb.write_rows(KEPT_TABLE, (connection, "given"))
        return tb.table(connection, "given")
    makers = {"polars": pl.from_arrow, "iterator": lambda table: iter(table.to_batches()), "table": lambda table: table}
    makers |= {"dictionary": lambda table: {name: table.column(name).to_pylist() for name in table.column_names[:-1]}}
    makers |= {
        "rows": lambda table: table.to_pylist(),
        "pandas": lambda table: pd.DataFrame(table.to_pydict(), dtype=object),
    }
    return makers[kind](KEPT_TABLE)


@pytest.mark.parametrize(
    "kind",
    ["table", "polars", "pandas", "dictionary", "rows", "iterator", "parquet", "arrow", "duckdb", "postgresql"],
)
def test_kept_columns_are_unchanged(kind, sizes, tmp_path, request):
    data = _source(kind, tmp_path, request)
    names = list(KEPT)[:-1] if kind == "dictionary" else list(KEPT)  # lists of lists are blocks of columns
    found = tb.write_predictions(sizes, data, "pyarrow", keep=names)
    rows = found.select(names).to_pylist()
    if kind == "postgresql":  # which has records as JSON
        rows = [{**row, "record": row["record"] and json.loads(row["record"])} for row in rows]
    assert rows == KEPT_TABLE.select(names).to_pylist()
    if kind in ("table", "iterator", "parquet", "arrow"):
        assert [found.schema.field(name).type for name in KEPT] == [KEPT_TABLE.schema.field(name).type for name in KEPT]
    if kind in ("polars", "duckdb", "postgresql"):
        assert found.schema.field("price").type == pa.decimal128(20, 2)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "pyarrow", "polars"])
def test_files_and_frames_have_the_types_of_what_is_kept(ending, sizes, tmp_path):
    if ending in ("pyarrow", "polars"):
        found = pa.table(tb.write_predictions(sizes, KEPT_TABLE, ending, keep=list(KEPT)))
    else:
        tb.write_predictions(sizes, KEPT_TABLE, tmp_path / f"told.{ending}", keep=list(KEPT))
        found = (
            pq.read_table(tmp_path / "told.parquet")
            if ending == "parquet"
            else pa.feather.read_table(tmp_path / "told.arrow")
        )
        assert found.schema.field("price").type == pa.decimal128(20, 2)
    assert _kept(found) == _kept(KEPT_TABLE)


def test_json_lines_have_every_digit(sizes, tmp_path):
    tb.write_predictions(sizes, KEPT_TABLE, tmp_path / "told.jsonl", keep=list(KEPT))
    rows = [json.loads(line, parse_float=Decimal) for line in (tmp_path / "told.jsonl").read_text().splitlines()]
    for name in ("price", "huge", "number", "unsigned", "list", "record", "text"):
        assert [row[name] for row in rows] == KEPT[name].to_pylist()
    assert [row["raw"] and base64.b64decode(row["raw"]) for row in rows] == [b"\x00\xff'\\", "", None]


def test_databases_have_the_types_of_what_is_kept(connect, sizes):
    keep = [name for name in KEPT if name not in ("record", "list")]
    tb.write_predictions(sizes, KEPT_TABLE, (connect, "told"), keep=list(KEPT))
    if isinstance(connect, sqlite3.Connection):
        rows = connect.execute("SELECT price, huge, number, unsigned, raw, list FROM told").fetchall()
        assert rows[0] == (
            "123456789012345678.90",
            "12345678901234567890123456789012345678",
            2**63 - 1,
            str(2**64 - 1),
            b"\x00\xff'\\",
            "[1, null, 9007199254740993]",
        )
        return
    back = pa.concat_tables(tb.table(connect, "told").batches())
    assert back.select(keep).to_pylist() == KEPT_TABLE.select(keep).to_pylist()
    assert back["list"].to_pylist() == KEPT["list"].to_pylist()
    assert back.schema.field("price").type == pa.decimal128(20, 2)


def test_types_of_postgresql_alone_are_copied(postgresql_server, sizes, tmp_path):
    import psycopg

    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute("DROP TYPE IF EXISTS mood CASCADE; CREATE TYPE mood AS ENUM ('good', 'bad')")
        connection.execute(
            "CREATE TABLE given (size float, ip inet, j jsonb, u uuid, m mood, span interval, free numeric, "
            "r int4range)"
        )
        connection.execute(
            "INSERT INTO given VALUES (1, '10.0.0.1/8', '{\"a\": [1, 2.50]}', "
            "'00000000-0000-0000-0000-000000000001', 'bad', '1 mon 2 days', "
            "123456789012345678901234567890.5, '[1,5)'), "
            "(-1, NULL, NULL, NULL, NULL, NULL, 0.000000000000000000001, NULL)"
        )
        names = ["ip", "j", "u", "m", "span", "free", "r"]
        source = tb.table(connection, "given")
        tb.write_predictions(sizes, source, (connection, "told"), keep=names)
        listed = ", ".join(names)
        types = ", ".join(f"pg_typeof({name})" for name in names)
        for query in ("SELECT {} FROM {}", f"SELECT {types} FROM {{1}}"):
            one, other = (connection.execute(query.format(listed, name)).fetchall() for name in ("given", "told"))
            assert one == other
        tb.write_predictions(sizes, source, tmp_path / "told.parquet", keep=names)
        found = pq.read_table(tmp_path / "told.parquet").to_pylist()
        assert found[0]["free"] == Decimal("123456789012345678901234567890.5")
        assert found[1]["free"] == Decimal("1e-21")
        assert (found[0]["ip"], found[0]["m"], found[0]["r"]) == ("10.0.0.1/8", "bad", "[1,5)")


@pytest.mark.parametrize("to", ["told.parquet", "told.csv", "pandas", "duckdb"])
def test_unions_are_rejected(to, sizes, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        source = tb.table(connection, "SELECT 1.0 AS size, union_value(a := 1) AS u")
        places = {"pandas": "pandas", "duckdb": (connection, "told")}
        with pytest.raises(tb.DataError, match=r"a column to be written is a sparse_union.*\n.*CAST"):
            tb.write_predictions(sizes, source, places.get(to, tmp_path / to), keep=["u"])


@pytest.mark.parametrize("value", ["INTERVAL 3 MONTH", "'\\xFF'::BLOB"])
@pytest.mark.parametrize("opened", [False, True])
def test_cells_that_csv_does_not_have(value, opened, sizes, tmp_path):
    path = tmp_path / "told.csv"
    with pytest.importorskip("duckdb").connect() as connection, (tmp_path / "open.csv").open("wb") as file:
        source = tb.table(connection, f"SELECT 1.0 AS size, {value} AS v")
        with pytest.raises(tb.DataError, match=r"cannot be written to .*csv: .*\n.*another format"):
            tb.write_predictions(sizes, source, file if opened else path, keep="v", format="csv" if opened else None)
    assert not path.exists()


def test_values_that_only_postgresql_has_are_kept(postgresql_server, sizes):
    import psycopg

    values = {
        "nan": "'NaN'::float8",
        "small_nan": "'NaN'::real",
        "free_nan": "'NaN'::numeric",
        "never": "'infinity'::timestamp",
        "ever": "'-infinity'::timestamptz",
        "no_day": "'infinity'::date",
        "caesar": "date '0044-03-15 BC'",
        "late": "timestamp '99999-01-01 10:00'",
        "bits": "b'101'",
        "small": "1::smallint",
        "plain": "1::integer",
        "prices": "ARRAY[1.50, NULL]::numeric[]",
    }
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS odd, odd_told")
        listed = ", ".join(f"{value} AS {name}" for name, value in values.items())
        connection.execute(f"CREATE TABLE odd AS SELECT 1.0::float AS size, {listed}")
        tb.write_predictions(sizes, tb.table(connection, "odd"), (connection, "odd_told"), keep=list(values))
        for what in ("{}::text", "pg_typeof({})"):
            query = f"SELECT {', '.join(map(what.format, values))} FROM "
            one, other = (connection.execute(query + name).fetchone() for name in ("odd", "odd_told"))
            assert one == other


# ---- From a database to the same kind of database, types and all ------------------------------------------------

DUCKDB = {
    "bits": "'101'::BIT",
    "uuid": "'00000000-0000-0000-0000-000000000001'::UUID",
    "mood": "'it''s'::ENUM('it''s', 'a')",
    "moods": "['a']::ENUM('it''s', 'a')[]",
    "json": """'{"a": [1, 2.50]}'::JSON""",
    "huge": "170141183460469231731687303715884105727::HUGEINT",
    "unsigned": "1::UHUGEINT",
    "zoned": "'12:00:00+01'::TIMETZ",
    "many": "12345678901234567890123456789012345678901234567890::BIGNUM",
    "price": "1.50::DECIMAL(20, 2)",
    "small": "1::TINYINT",
    "span": "INTERVAL '1 month 2 days'",
    "never": "'infinity'::TIMESTAMP",
    "raw": "'\\x00a'::BLOB",
    "record": "{'a': 1, 'b': 'x'', y'}",
    "half": "0.1::FLOAT",
}


def _fill_duckdb(connection, values):
    listed = ", ".join(f"{value} AS {name}" for name, value in values.items())
    nothing = ", ".join(["0.5", *["NULL"] * len(values)])
    connection.execute(
        f"CREATE TABLE given AS SELECT 1.0::DOUBLE AS size, {listed}; INSERT INTO given VALUES ({nothing})"
    )


def _assert_equal_tables(connection, values, typeof):
    for what in ("CAST({} AS TEXT)", typeof + "({})"):
        query = f"SELECT {', '.join(map(what.format, values))} FROM "
        one, other = (connection.execute(query + f"{name} ORDER BY size").fetchall() for name in ("given", "told"))
        assert one == other


@pytest.mark.parametrize("kind", ["table", "query", "relation"])
@pytest.mark.parametrize("function", ["write_predictions", "write_rows"])
def test_duckdb_to_duckdb_keeps_types_and_values(kind, function, sizes):
    connection = pytest.importorskip("duckdb").connect()
    values = (
        DUCKDB if int(pytest.importorskip("duckdb").__version__.split(".")[0]) > 1 else dict(list(DUCKDB.items())[:8])
    )
    _fill_duckdb(connection, values)
    source = {
        "table": lambda: tb.table(connection, "given"),
        "query": lambda: tb.table(connection, "SELECT * FROM given"),
        "relation": lambda: connection.sql("SELECT * FROM given"),
    }[kind]()
    if function == "write_rows":
        assert tb.write_rows(source, (connection, "told")) == 2
    else:
        assert tb.write_predictions(sizes, source, (connection, "told"), keep=["size", *values]) == 2
        assert connection.execute("SELECT prediction FROM told ORDER BY size").fetchall() == [("a",), ("a",)]
    _assert_equal_tables(connection, values, "typeof")
    connection.close()


def test_types_of_duckdb_alone_are_text_elsewhere(sizes, tmp_path):
    connection = pytest.importorskip("duckdb").connect()
    _fill_duckdb(connection, {name: DUCKDB[name] for name in ("bits", "zoned", "uuid")})
    source = tb.table(connection, "given")
    tb.write_predictions(sizes, source, tmp_path / "told.parquet", keep=["bits", "zoned", "uuid"])
    found = pq.read_table(tmp_path / "told.parquet").to_pylist()
    assert (found[0]["bits"], found[0]["zoned"]) == ("101", "12:00:00+01")
    assert found[0]["uuid"] == "00000000-0000-0000-0000-000000000001"
    assert found[1]["bits"] is None
    connection.close()


POSTGRESQL = {
    "code": "'ab'::char(4)",
    "name": "'x'::varchar(7)",
    "whole": "ARRAY[1, NULL]::integer[]",
    "grid": "ARRAY[[1, 2], [3, 4]]::smallint[]",
    "amount": "1.50::positive",
    "nan": "'NaN'::numeric(9, 2)",
    "at": "'2020-01-02 03:04:05.678'::timestamp(3)",
    "zoned": "'12:00+01'::timetz",
    "bits": "b'101'::bit(3)",
    "varying": "b'10'::bit varying(5)",
    "letter": "'x'::\"char\"",
    "pair": "ROW(1, 'a, \"b')::pair",
    "mood": "'it''s'::other.mood",
    "word": "'it''s'::text COLLATE \"C\"",
    "late": "'infinity'::timestamptz(0)",
    "document": "'{\"b\":  1}'::json",
}


@pytest.mark.parametrize("kind", ["table", "query"])
@pytest.mark.parametrize("function", ["write_predictions", "write_rows"])
def test_postgresql_to_postgresql_keeps_types_and_values(kind, function, postgresql_server, sizes):
    import psycopg

    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(
            "SET client_min_messages = warning; DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other"
        )
        connection.execute("CREATE DOMAIN positive AS numeric(10, 2) CHECK (value > 0)")
        connection.execute("CREATE TYPE pair AS (a integer, b text); CREATE TYPE other.mood AS ENUM ('it''s', 'a')")
        listed = ", ".join(f"{value} AS {name}" for name, value in POSTGRESQL.items())
        connection.execute(f"CREATE TABLE given AS SELECT 1.0::float8 AS size, {listed}")
        connection.execute("INSERT INTO given (size) VALUES (0.5)")
        source = tb.table(connection, "given" if kind == "table" else "SELECT * FROM given")
        if function == "write_rows":
            assert tb.write_rows(source, (connection, "told")) == 2
        else:
            assert tb.write_predictions(sizes, source, (connection, "told"), keep=["size", *POSTGRESQL]) == 2
        _assert_equal_tables(connection, POSTGRESQL, "pg_typeof")
        one, other = (
            connection.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass "
                "AND attnum > 0 ORDER BY attnum",
                [name],
            ).fetchall()
            for name in ("given", "told")
        )
        assert other[: len(one)] == one
        connection.execute("DROP SCHEMA other CASCADE")


def test_types_that_another_postgresql_does_not_have(postgresql_server, sizes):
    """Labels become text, where the database of the destination has no such type."""
    import psycopg

    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
        connection.execute("CREATE TABLE given AS SELECT 1.0::float8 AS size, 'bad'::mood AS m, 'b'::varchar(3) AS v")
        connection.execute("DROP DATABASE IF EXISTS elsewhere")
        connection.execute("CREATE DATABASE elsewhere")
        with psycopg.connect(postgresql_server.replace("dbname=postgres", "dbname=elsewhere")) as other:
            tb.write_predictions(sizes, tb.table(connection, "given"), (other, "told"), keep=["m", "v"])
            query = "SELECT m, pg_typeof(m)::text, v, pg_typeof(v)::text FROM told"
            assert other.execute(query).fetchall() == [("bad", "text", "b", "character varying")]
        connection.execute("DROP DATABASE elsewhere")


def test_nan_among_decimals_of_postgresql(postgresql_server, sizes, tmp_path):
    """A kept column with NaN is text in files; the model still reads its numbers."""
    import psycopg

    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute("CREATE TABLE given (size numeric(25, 2), price numeric(25, 2), free numeric)")
        connection.execute("INSERT INTO given VALUES ('NaN', 1.5, 'NaN'), (12345678901234567890123.45, 2.5, 1e-21)")
        source = tb.table(connection, "given")
        assert tb.write_predictions(sizes, source, tmp_path / "told.parquet", keep=["size", "price", "free"]) == 2
        found = pq.read_table(tmp_path / "told.parquet")
        assert found["size"].to_pylist() == ["NaN", "12345678901234567890123.45"]
        assert found["free"].to_pylist() == ["NaN", "0.000000000000000000001"]
        assert found.schema.field("price").type == pa.decimal128(25, 2)
        assert found["prediction"].to_pylist() == sizes.predict({"size": [np.nan, 1.2345678901234567e22]}).tolist()


def test_files_do_not_name_types_of_databases(postgresql_server, sizes, tmp_path):
    """Metadata and opaque types of a file are not part of a statement."""
    import psycopg

    bad = "integer); DROP TABLE victim; --"
    opaque = pa.ExtensionArray.from_storage(pa.opaque(pa.string(), bad, "PostgreSQL"), pa.array(["x"]))
    fields = [pa.field("size", pa.float64()), pa.field("a", pa.int64(), metadata={"postgresql": bad, "duckdb": bad})]
    table = pa.Table.from_arrays(
        [pa.array([1.0]), pa.array([7]), opaque], schema=pa.schema([*fields, ("b", opaque.type)])
    )
    with pa.ipc.new_file(tmp_path / "rows.arrow", table.schema) as file:
        file.write_table(table)
    duckdb = pytest.importorskip("duckdb").connect()
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        for k, to in enumerate((connection, duckdb)):
            to.execute("CREATE TABLE victim (x integer)")
            for data in (table, tmp_path / "rows.arrow"):
                tb.write_predictions(sizes, data, (to, f"told{k}"), keep=["a", "b"])
                tb.write_rows(data, (to, f"rows{k}"))
                assert to.execute(f"SELECT a, b FROM told{k}").fetchall() == [(7, "x")]
                assert to.execute("SELECT * FROM victim").fetchall() == []
                to.execute(f"DROP TABLE told{k}; DROP TABLE rows{k}")


# ---- Names and booleans of databases ----------------------------------------------------------------------------


def test_long_names_in_postgresql(postgresql_server):
    import psycopg

    classes = ["a class with a very long name, whose beginning is that of another one: " + end for end in "xyz"]
    ids = ["é" * 40 + "1", "é" * 40 + "2"]
    rows = pd.DataFrame({"x": [1.0, 5.0, 9.0] * 10, "y": classes * 10, **dict.fromkeys(ids, range(30))})
    model = tb.NaiveBayes({"x": tb.Gaussian()}).fit(rows, "y")
    expected = model.predict_proba(rows)
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        tb.write_predictions(model, rows, (connection, "told"), proba=True, keep=ids)
        told = connection.execute("SELECT * FROM told").fetchall()
        np.testing.assert_allclose(np.array([row[3:] for row in told]), expected, rtol=1e-12)
        assert [row[:2] for row in told] == [(k, k) for k in range(30)]
        connection.execute("CREATE TABLE given (x double precision)")
        connection.execute("INSERT INTO given SELECT unnest(ARRAY[1.0, 5.0, 9.0])")
        cursor = connection.execute(model.to_sql("postgresql", "given", proba=True))
        assert len({column.name for column in cursor.description}) == 4
        np.testing.assert_allclose(np.array([row[1:] for row in cursor.fetchall()]), expected[:3], atol=1e-10)
    both = tb.NaiveBayes({name: tb.Gaussian() for name in ids}).fit(rows, "y")
    with pytest.raises(tb.ExportError, match="begin with the same 63 bytes"):
        both.to_sql("postgresql", "given")
    assert both.to_sql("duckdb", "given")


def test_booleans_of_sqlite():
    connection = sqlite3.connect(":memory:")
    rows = pd.DataFrame({"flag": [True, False, True, False, None] * 8, "y": list("ababa") * 8}).astype(
        {"flag": "boolean"}
    )
    for model in (tb.NaiveBayes(), tb.AveragedOneDependence(), tb.AutoClassifier(random_state=0)):
        model.fit(rows, "y")
        tb.write_rows(rows, (connection, type(model).__name__))
        source = tb.table(connection, type(model).__name__)
        found = tb.write_predictions(model, source, "pandas", proba=True)
        np.testing.assert_allclose(found.iloc[:, 1:], model.predict_proba(rows), rtol=1e-12)
        assert found["prediction"].tolist() == model.predict(rows).tolist()
    connection.execute("UPDATE NaiveBayes SET flag = 2")
    with pytest.raises(tb.LabelError, match="bool levels on one side and int levels"):
        tb.write_predictions(tb.NaiveBayes().fit(rows, "y"), tb.table(connection, "NaiveBayes"), "pandas")
    connection.close()
