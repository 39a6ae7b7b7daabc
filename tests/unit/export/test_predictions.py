"""Predictions go out batch by batch, to files, tables and frames, whole or not at all."""

import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.sources import source as source_module
from tallybayes.sources.source import Source

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
        "sources.source.BATCH",
        "sources.source.MOST",
        "sources.batches.BATCH",
        "sources.databases.BATCH",
        "export.predictions.BATCH",
    ):
        monkeypatch.setattr(f"tallybayes.{name}", 64)
    monkeypatch.setattr("tallybayes.sources.csv_files._BLOCK", 2000)
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
    with tb.sources.databases.dialect_of(connection).writing(["my.rows"], source.schema) as write:
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
    with pytest.raises(tb.DataError, match=r"cannot be written: .*already exists.*\n.*drop it first"):
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
        tb.table(connect, "told").first()
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
        tb.Chosen(single=True, random_state=0).fit(rows, "y"),
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
    with pytest.raises(tb.DataError, match=r"tells no kind of file.*\n.*told.parquet"):
        tb.write_predictions(model, frame, tmp_path / "told.xlsx")
    with pytest.raises(tb.DataError, match="to is 3; expected a path, \\(connection"):
        tb.write_predictions(model, frame, 3)
    with pytest.raises(tb.DataError, match="no column 'nope'"):
        tb.write_predictions(model, frame, "pandas", keep="nope")
    with pytest.raises(tb.DataError, match="which node is predicted is not said; expected one of"):
        tb.write_predictions(network, frame, "pandas")
    with pytest.raises(tb.DataError, match="node is 'y', and a NaiveBayes predicts its classes"):
        tb.write_predictions(model, frame, "pandas", "y")
    with pytest.raises(tb.DataError, match=r"Sequences are told by model.predict"):
        tb.write_predictions(chain, frame, "pandas")
    nested = pa.table({"size": [1.0], 'a "job", or': ["cook"], "list": [[1]]})
    with pytest.raises(tb.DataError, match=r"cannot be written to .*told.csv"):
        tb.write_predictions(model, nested, tmp_path / "told.csv", keep="list")
    assert not list(tmp_path.iterdir())
