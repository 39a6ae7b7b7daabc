"""Dates: every kind of model that takes mixed columns reads them as year, month, day of the week and hour."""

import copy
import datetime as dt
import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import tallybayes as tb

N = 240
RNG = np.random.default_rng(0)
WHEN = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 94_000_000, N), unit="s"))
PLACE = np.where((WHEN.dt.hour < 9) | (WHEN.dt.day_of_week > 4) ^ (RNG.random(N) < 0.1), "home", "away")
WHEN[::17] = pd.NaT
ROWS = pd.DataFrame({"when": WHEN, "x": RNG.normal(size=N), "place": PLACE})
X = ROWS[["when", "x"]]
NAMES = ["when.year", "when.month", "when.day_of_week", "when.hour"]
BY_HAND = pd.DataFrame(
    {
        "when.year": WHEN.dt.year,
        **{
            name: pd.Series(getattr(WHEN.dt, name.partition(".")[2]), dtype="Int64").astype("category")
            for name in NAMES[1:]
        },
        "x": ROWS["x"],
        "place": PLACE,
    }
)
CLASSIFIERS = {
    "naive Bayes": tb.NaiveBayes(),
    "naive Bayes, suggested": tb.NaiveBayes("suggest"),
    "one-dependence": tb.AveragedOneDependence(),
    "tree": tb.TreeAugmentedNaiveBayes(),
    "by name": tb.NaiveBayes({"when": "auto", "x": tb.Gaussian()}),
    "a part": tb.NaiveBayes({"when.hour": tb.Categorical()}),
    "absence": tb.NaiveBayes({"when": tb.WithMissing(tb.Categorical()), ...: "auto"}),
}
REFERENCE = tb.NaiveBayes().fit(ROWS, "place")


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_dates_are_what_their_parts_are(kind):
    model = CLASSIFIERS[kind]
    by_hand = {} if not isinstance(model.columns, dict) else dict(model.columns)
    for key in [key for key in by_hand if key == "when"]:
        family = by_hand.pop(key)
        by_hand |= dict.fromkeys(NAMES, family)
    found = copy.deepcopy(model).fit(ROWS, "place")
    expected = copy.deepcopy(model).set_params(columns=by_hand or model.columns).fit(BY_HAND, "place")
    assert found.columns_ == expected.columns_
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(BY_HAND), rtol=1e-12)


def test_families_of_the_parts():
    year, *others = (REFERENCE.columns_[name] for name in NAMES)
    assert year == tb.Gaussian()
    assert others == [tb.Categorical()] * 3


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dates")
    table = pa.Table.from_pandas(ROWS)
    pa.parquet.write_table(table, folder / "rows.parquet")
    pa.feather.write_feather(table, folder / "rows.arrow")
    ROWS.to_csv(folder / "rows.csv", index=False)
    ROWS.to_json(
        folder / "rows.jsonl", orient="records", lines=True, date_format="iso", date_unit="s", double_precision=15
    )
    return folder


SOURCES = {
    "Polars": lambda _: pl.from_pandas(ROWS),
    "lazy Polars": lambda _: pl.from_pandas(ROWS).lazy(),
    "Arrow": lambda _: pa.Table.from_pandas(ROWS),
    "a dictionary": lambda _: {name: ROWS[name].to_numpy() for name in ROWS},
    "a list of dictionaries": lambda _: ROWS.to_dict("records"),
    "zone": lambda _: ROWS.assign(when=WHEN.dt.tz_localize("America/New_York", nonexistent="shift_forward")),
    "batches": lambda _: tb.table(lambda: iter([ROWS[:100], ROWS[100:]])),
    "Parquet": lambda folder: folder / "rows.parquet",
    "IPC": lambda folder: folder / "rows.arrow",
    "CSV": lambda folder: folder / "rows.csv",
    "JSON": lambda folder: folder / "rows.jsonl",
}


@pytest.mark.parametrize("source", SOURCES)
def test_all_sources_agree(source, files):
    rows = SOURCES[source](files)
    found = tb.NaiveBayes().fit(rows, "place")
    assert found.columns_ == REFERENCE.columns_
    np.testing.assert_allclose(found.predict_proba(rows), REFERENCE.predict_proba(ROWS), rtol=1e-12)
    np.testing.assert_allclose(REFERENCE.predict_proba(rows), REFERENCE.predict_proba(ROWS), rtol=1e-12)


def test_one_row_is_as_in_the_table():
    row = {"when": dt.datetime(2021, 3, 4, 5, 6), "x": 0.2}
    expected = REFERENCE.predict_proba(
        [{"when.year": 2021, "when.month": 3, "when.day_of_week": 3, "when.hour": 5, "x": 0.2}]
    )
    for when in (row["when"], "2021-03-04T05:06", np.datetime64("2021-03-04T05:06"), pd.Timestamp(row["when"])):
        np.testing.assert_array_equal(REFERENCE.predict_proba([{**row, "when": when}]), expected)
    day = REFERENCE.predict_proba([{**row, "when": dt.date(2021, 3, 4)}])
    np.testing.assert_array_equal(day, REFERENCE.predict_proba([{**row, "when": "2021-03-04"}]))
    assert day.tolist() != expected.tolist()  # of a day, the hour is missing


@pytest.mark.parametrize("kind", ["naive Bayes", "one-dependence"])
def test_learnt_elsewhere_kept_and_forgotten(kind, tmp_path):
    """With y apart, scikit-learn's attributes are of the columns as they were given."""
    whole = copy.deepcopy(CLASSIFIERS[kind]).fit(X, PLACE)
    assert whole.n_features_in_ == 2
    assert whole.feature_names_in_.tolist() == ["when", "x"]
    whole.save(tmp_path / "model.tally")
    loaded = tb.load(tmp_path / "model.tally")
    np.testing.assert_array_equal(loaded.predict_proba(X), whole.predict_proba(X))
    first, second = whole.without_rows(), loaded.without_rows()
    merged = first.partial_fit(X[:100], PLACE[:100]) + second.partial_fit(X[100:], PLACE[100:])
    np.testing.assert_allclose(merged.predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    merged.forget(X[100:], PLACE[100:])
    np.testing.assert_allclose(merged.predict_proba(X), first.predict_proba(X), rtol=1e-9)


def test_evaluations_read_dates():
    model = tb.NaiveBayes().fit(X, PLACE)
    assert tb.evaluate(model, X, PLACE).accuracy.value == tb.evaluate(REFERENCE, ROWS, "place").accuracy.value
    assert tb.audit(model, X, PLACE).ok
    assert tb.cross_validate(model, X, PLACE).accuracy.value > 0.8
    assert list(tb.suggest_families(ROWS, "place").columns) == [*NAMES, "x"]
    assert "when.hour" in str(model.explain(X[1:2]))


@pytest.mark.parametrize("kind", ["naive Bayes", "one-dependence", "tree"])
def test_filling_leaves_dates_as_they_are(kind):
    model, rows = copy.deepcopy(CLASSIFIERS[kind]).fit(ROWS, "place"), X.copy()
    rows.loc[:3, "x"] = np.nan
    filled = model.impute(rows)
    assert list(filled) == ["when", "x"]
    pd.testing.assert_series_equal(filled["when"], rows["when"])
    assert set(model.impute(rows, "distribution")) == {*NAMES, "x"}
    for row in (rows.iloc[1], rows.iloc[1].to_dict(), rows[1:2].to_dict("list")):
        one = model.impute(row)
        assert list(one) == ["when", "x"]
        assert [pd.Timestamp(cell) for cell in one["when"]] == [rows["when"][1]]
        assert float(one["x"][0]) == pytest.approx(filled["x"][1], rel=1e-12)


def test_other_kinds_of_models():
    mixture = tb.Mixture(2, random_state=0, n_init=1, max_iter=5, tol=1e9).fit(X)
    assert mixture.score_samples(X).shape == (N,)
    chain = tb.HiddenMarkovModel().fit(X, PLACE, [N - 40, 40])
    assert set(chain.columns_) == {*NAMES, "x"}
    assert len(chain.predict(X[:5])[0]) == 5
    network = tb.BayesianNetwork({"place": [], "when.month": ["place"], "when.hour": ["place"]}).fit(ROWS)
    assert len(network.predict(X, "place")) == N
    tree = tb.learn_tree(ROWS[["when", "place"]])
    assert set(tree.graph_.parents) == {*NAMES, "place"}


def test_the_automatic_classifier_reads_dates(tmp_path):
    chosen = tb.AutoClassifier().fit(ROWS, "place")
    expected = tb.AutoClassifier().fit(BY_HAND, "place")
    np.testing.assert_allclose(chosen.predict_proba(X), expected.predict_proba(BY_HAND), atol=1e-6)
    chosen.save(tmp_path / "chosen.tally")
    np.testing.assert_array_equal(tb.load(tmp_path / "chosen.tally").predict_proba(X), chosen.predict_proba(X))


@pytest.mark.parametrize("model", [tb.GaussianDiscriminant(), tb.NearestClassMean()])
def test_models_of_numbers_refuse_dates(model):
    with pytest.raises(tb.DataError, match=r"(?s)expected numbers.\n    Remove 'when'"):
        model.fit(X, PLACE)


def test_a_graph_of_onnx_has_no_dates():
    pytest.importorskip("onnx", reason="onnx is not installed")
    with pytest.raises(
        tb.ExportError, match=r"column 'when' is a date column, and ONNX has no parts of dates\.\n    Fit"
    ):
        REFERENCE.to_onnx()


def test_a_window_keeps_rows_with_dates(tmp_path):
    window = tb.Window(tb.NaiveBayes(), rows=100).partial_fit(ROWS, "place")
    window.save(tmp_path / "window.tally")
    window, loaded = (one.partial_fit(ROWS[:50], "place") for one in (window, tb.load(tmp_path / "window.tally")))
    expected = tb.NaiveBayes().fit(pd.concat([ROWS[-50:], ROWS[:50]]), "place").predict_proba(X)
    for one in (window, loaded):
        np.testing.assert_allclose(one.predict_proba(X), expected, rtol=1e-9)


def test_a_frame_without_the_dates_is_refused_by_their_column():
    with pytest.raises(tb.DataError, match=r"(?s)no column 'when' in the data.*Did you mean 'wen'"):
        REFERENCE.predict(X.rename(columns={"when": "wen"}))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_sql_writes_the_parts_as_expressions(dialect):
    if dialect == "duckdb":
        database = pytest.importorskip("duckdb", reason="DuckDB is not installed").connect()
        kind = "TIMESTAMP"
    else:
        database, kind = sqlite3.connect(":memory:"), "TEXT"
    database.execute(f'CREATE TABLE t (id INTEGER, "when" {kind}, x DOUBLE PRECISION)')
    when = [None if pd.isna(one) else str(one) for one in WHEN]
    database.executemany("INSERT INTO t VALUES (?, ?, ?)", list(zip(range(N), when, ROWS["x"].tolist(), strict=True)))
    for kind in ("naive Bayes, suggested", "one-dependence", "absence"):
        model = copy.deepcopy(CLASSIFIERS[kind]).fit(ROWS, "place")
        found = sorted(database.execute(model.to_sql(dialect, "t", keep="id")).fetchall())
        np.testing.assert_allclose(np.array([row[2:] for row in found]), model.predict_proba(X), atol=1e-12)
    database.close()


def check_database(table, rows):
    for kind in ("naive Bayes", "one-dependence", "absence"):
        expected, found = (copy.deepcopy(CLASSIFIERS[kind]).fit(one, "place") for one in (rows, table))
        assert found.columns_ == expected.columns_
        np.testing.assert_allclose(found.predict_proba(rows), expected.predict_proba(rows), rtol=1e-9)
        np.testing.assert_allclose(
            np.sort(found.predict_proba(table)[:, 0]), np.sort(expected.predict_proba(rows)[:, 0]), rtol=1e-9
        )


def test_duckdb_counts_the_parts_where_the_rows_are():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    rows = pa.Table.from_pandas(ROWS).append_column("day", pa.array(WHEN).cast("date32"))
    with duckdb.connect() as database:
        database.register("t", rows)
        check_database(tb.table(database, "t"), rows)


def test_infinite_dates_of_duckdb_are_missing_wherever_they_are_read():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE days AS SELECT CASE WHEN i % 5 = 0 THEN 'infinity'::TIMESTAMP "
            "ELSE TIMESTAMP '2020-01-31 05:00' + INTERVAL (i) DAY END AS t, "
            "CASE WHEN i % 7 = 0 THEN '-infinity'::DATE ELSE DATE '2020-01-01' END AS d, "
            "CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END AS y FROM range(50) AS r(i) ORDER BY i"
        )
        model = tb.NaiveBayes().fit(tb.table(database, "days"), "y")  # counted by DuckDB
        rows = database.sql("SELECT * FROM days").to_arrow_table()
        here = tb.NaiveBayes().fit(rows, "y")
        np.testing.assert_allclose(here.predict_proba(rows), model.predict_proba(rows), rtol=1e-12)
        exported = database.execute(model.to_sql("duckdb", "days")).fetchall()
    np.testing.assert_allclose(model.predict_proba(rows), [one[1:] for one in exported], rtol=1e-9)


def test_sqlite_counts_the_parts_where_the_rows_are():
    """By the types that a table declares, where its values are what these say."""
    database = sqlite3.connect(":memory:")
    database.execute('CREATE TABLE t ("when" TIMESTAMP, day DATE, x REAL, place TEXT)')
    texts = [None if pd.isna(one) else str(one) for one in WHEN]
    days = [None if one is None else one[:10] for one in texts]
    cells = list(zip(texts, days, ROWS["x"].tolist(), PLACE.tolist(), strict=True))
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", cells)
    rows = pa.Table.from_pandas(ROWS).append_column("day", pa.array(WHEN).cast("date32"))
    check_database(tb.table(database, "t"), rows.select(["when", "day", "x", "place"]))
    database.execute("UPDATE t SET day = 'some day' WHERE rowid = 7")
    assert tb.NaiveBayes().fit(tb.table(database, "t"), "place").columns_["day"] == tb.Categorical()
    database.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ"])
def test_postgresql_counts_the_parts_where_the_rows_are(kind, postgresql_server):
    """Times with a time zone have the local time of the session."""
    import psycopg

    with psycopg.connect(postgresql_server) as database:
        database.execute("SET TIME ZONE 'Asia/Tokyo'")
        database.execute(f'CREATE TEMP TABLE t ("when" {kind}, x DOUBLE PRECISION, place TEXT)')
        times = [None if pd.isna(one) else one.to_pydatetime() for one in WHEN]
        cells = list(zip(times, ROWS["x"].tolist(), PLACE.tolist(), strict=True))
        database.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s)", cells)
        check_database(tb.table(database, "t"), ROWS)
        found = database.execute(REFERENCE.to_sql("postgresql", "t", keep="x")).fetchall()
    found = np.array([row[2:] for row in sorted(found)])
    np.testing.assert_allclose(found, REFERENCE.predict_proba(X.sort_values("x")), atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")
def test_spark_counts_the_parts_where_the_rows_are(spark):
    frame = spark.createDataFrame(
        [(None if pd.isna(one) else one.to_pydatetime(), x, place) for one, x, place in ROWS.itertuples(index=False)],
        "`when` timestamp, x double, place string",
    )
    check_database(frame, ROWS)
    frame.createOrReplaceTempView("dated")
    found = spark.sql(REFERENCE.to_sql("spark", "dated", keep="x")).collect()
    spark.catalog.dropTempView("dated")
    found = np.array([row[2:] for row in sorted(found)])
    np.testing.assert_allclose(found, REFERENCE.predict_proba(X.sort_values("x")), atol=1e-12)
