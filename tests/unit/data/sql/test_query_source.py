"""Databases count by themselves what an array is counted as; what they cannot do is read."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.sql import dialects
from tallybayes.data.sql.query_source import Query
from tallybayes.data.sql.spark import SparkFrame
from tallybayes.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")

NAMES = ["far", "kids", 'a "job"', "select", "x.y", "size", "at", "weight", "y"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(5)
    y = rng.choice(["no", "yes", "perhaps"], 500)
    found = pd.DataFrame(
        {
            "far": 1e9 + rng.normal(size=500) + (y == "yes"),
            "kids": rng.poisson(2, 500),
            'a "job"': rng.choice(["cook", "it's; DROP TABLE t", "søn"], 500),
            "select": rng.integers(0, 2, 500),
            "x.y": 2**60 + rng.integers(0, 3, 500),
            "size": rng.lognormal(size=500),
            "at": rng.normal(size=500),
            "weight": rng.integers(1, 4, 500),
            "y": y,
        }
    )
    found.loc[::11, "far"] = np.nan
    found.loc[::7, 'a "job"'] = None
    return found


def _insert(connection, table, frame, mark):
    if type(connection).__module__.startswith(("duckdb", "_duckdb")):  # whose `executemany` takes a fifth of a second
        connection.register("given", pa.Table.from_pandas(frame, preserve_index=False))
        connection.execute(f'INSERT INTO "{table}" SELECT * FROM given')
        connection.unregister("given")
    else:
        marks = ", ".join([mark] * frame.shape[1])
        connection.cursor().executemany(f'INSERT INTO "{table}" VALUES ({marks})', _tuples(frame))


def _tuples(frame):
    return [
        tuple(None if pd.isna(cell) else cell for cell in row) for row in frame.astype(object).itertuples(index=False)
    ]


_TYPES = [
    "double precision",
    "integer",
    "text",
    "integer",
    "bigint",
    "double precision",
    "double precision",
    "integer",
    "text",
]


DATABASES = ["duckdb", "sqlite", "postgresql"]
everywhere = pytest.mark.parametrize("connect", [*DATABASES, "spark"], indirect=True)


@pytest.fixture(params=DATABASES)
def connect(request, frame):
    """A connection to a database that has the rows as a table "my.rows"."""
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        session.createDataFrame(pa.Table.from_pandas(frame)).createOrReplaceTempView("`my.rows`")
        yield session
        assert [row.tableName for row in session.sql("SHOW TABLES").collect()] == ["my.rows"]  # no view of ours is left
        return
    columns = ", ".join(
        f"{dialects.Dialect(None).quote(name)} {kind}" for name, kind in zip(NAMES, _TYPES, strict=True)
    )
    if request.param == "duckdb":
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
        connection, mark = duckdb.connect(), "?"
    elif request.param == "sqlite":
        connection, mark = sqlite3.connect(":memory:"), "?"
    else:
        import psycopg

        connection, mark = psycopg.connect(request.getfixturevalue("postgresql_server"), autocommit=True), "%s"
    connection.execute(f'CREATE TABLE "my.rows" ({columns})')
    _insert(connection, "my.rows", frame, mark)
    if request.param == "sqlite":
        connection.commit()
    yield connection
    connection.close()


COLUMNS = {"kids": tb.Poisson(), "size": tb.LogNormal(), "at": tb.Binned((None, -1.0, 0.0, 1.0, None))}
COLUMNS |= {"x.y": tb.Categorical(), "select": tb.Bernoulli(), ...: "auto"}


def _assert_same(found, expected):
    assert found.tally_.factors == expected.tally_.factors
    assert found.tally_.domains == expected.tally_.domains
    mine = found.tally_.reindex_like(expected.tally_)  # levels in the same order
    for one, other in zip(mine.statistics, expected.tally_.statistics, strict=True):
        assert one.isclose(other, {tb.Moments: 1e-9, tb.Totals: 1e-13}.get(type(one), 0.0))


@pytest.fixture
def never_read(monkeypatch):
    """Rows that leave the database are an error."""

    def read(*_):
        raise AssertionError("rows were read")

    for kind in (Query, SparkFrame):
        monkeypatch.setattr(kind, "batches", read)


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize(
    ("query", "weight"), [("my.rows", "weight"), (' with a as (select * from "my.rows") select * from a;', None)]
)
def test_a_database_counts_what_an_array_is_counted_as(connect, frame, query, weight, never_read):
    model = tb.NaiveBayes(COLUMNS).fit(tb.table(connect, query), "y", sample_weight=weight)
    _assert_same(model, tb.NaiveBayes(COLUMNS).fit(frame, "y", sample_weight=weight))


@pytest.mark.slow
@everywhere
def test_more_rows_and_fewer(connect, frame, never_read):
    columns = {"kids": tb.Poisson(), "far": tb.Gaussian(), 'a "job"': tb.Categorical()}
    some = 'SELECT * FROM "my.rows" WHERE kids < 3'
    model = tb.NaiveBayes(columns).fit(tb.table(connect, some), "y")
    model.partial_fit(tb.table(connect, 'SELECT * FROM "my.rows" WHERE kids >= 3'), "y")
    _assert_same(model, tb.NaiveBayes(columns).fit(frame, "y"))
    model.forget(tb.table(connect, some), "y")
    _assert_same(model, tb.NaiveBayes(columns).fit(frame[frame["kids"] >= 3], "y"))
    model.forget(frame[frame["kids"] >= 3], "y")
    assert list(model.classes_) == []


@pytest.mark.slow
@everywhere
def test_covariances(connect, frame, never_read):
    query = 'SELECT far - 1e9 AS far, size, "at", y FROM "my.rows" WHERE far IS NOT NULL'
    some = frame.dropna(subset=["far"]).assign(far=lambda one: one["far"] - 1e9)[["far", "size", "at", "y"]]
    for covariance in ("full", "tied", "diagonal"):
        model = tb.GaussianDiscriminant(covariance=covariance).fit(tb.table(connect, query), "y")
        expected = tb.GaussianDiscriminant(covariance=covariance).fit(some, "y")
        np.testing.assert_allclose(
            model.predict_proba(some.drop(columns="y")), expected.predict_proba(some.drop(columns="y")), atol=1e-9
        )


@pytest.mark.slow_after(2)
@everywhere
def test_absence_as_a_value(connect, frame, never_read):
    columns = {"far": tb.WithMissing(tb.Gaussian()), 'a "job"': tb.WithMissing(tb.Categorical())}
    model = tb.NaiveBayes(columns).fit(tb.table(connect, "my.rows"), "y")
    _assert_same(model, tb.NaiveBayes(columns).fit(frame, "y"))


@pytest.mark.slow_after(2)
@everywhere
def test_pairs_of_labels(connect, frame, never_read):
    if str(getattr(connect, "version", "")).startswith("4.0."):
        pytest.skip("Spark 4.0 has no quotation marks within quoted names")
    query, names = 'SELECT "select", "a ""job""", y FROM "my.rows"', ["select", 'a "job"', "y"]
    columns = {"select": tb.Categorical(), 'a "job"': tb.Categorical()}
    model = tb.AveragedOneDependence(columns=columns).fit(tb.table(connect, query), "y")
    _assert_same(model, tb.AveragedOneDependence(columns=columns).fit(frame[names], "y"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
@pytest.mark.parametrize(("bins", "weight"), [(4, None), ("mdl", None), (3, "weight")])
def test_pairs_of_bins(connect, frame, kind, bins, weight, never_read):
    columns = {"select": tb.Categorical(), "kids": tb.Binned((0, 2, 4, 30)), ...: "auto"}
    model = kind(columns, bins=bins).fit(tb.table(connect, "my.rows"), "y", sample_weight=weight)
    expected = kind(columns, bins=bins).fit(frame, "y", sample_weight=weight)
    assert model.columns_ == expected.columns_
    _assert_same(model, expected)
    np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(frame), rtol=1e-12)
    model.forget(tb.table(connect, 'SELECT * FROM "my.rows" WHERE kids < 3'), "y", sample_weight=weight)
    expected.forget(frame[frame["kids"] < 3], "y", sample_weight=weight)
    _assert_same(model, expected)


@pytest.mark.parametrize(
    "model", [tb.NaiveBayes({"x": tb.Binned((0, 1, 2))}), tb.AveragedOneDependence({"x": tb.Binned((0, 1, 2))})]
)
def test_infinity_is_in_no_bin(connect, model):
    infinity = "9e999" if isinstance(connect, sqlite3.Connection) else "CAST('Infinity' AS double precision)"
    query = f'SELECT CASE WHEN kids > 3 THEN {infinity} ELSE 1.5 END AS x, y FROM "my.rows"'
    with pytest.raises(tb.DataError, match=r"inf.*; expected a finite number"):
        model.fit(tb.table(connect, query), "y")


@pytest.mark.slow
@everywhere
def test_tables_of_networks(connect, frame, never_read):
    columns = {"kids": tb.Categorical(), "select": tb.Categorical(), "at": tb.Gaussian()}
    network = tb.BayesianNetwork({"y": ["kids", "select"], "at": ["y"], "kids": ['a "job"']}, columns=columns)
    found, expected = (
        tb.BayesianNetwork(**network.get_params()).fit(rows) for rows in (tb.table(connect, "my.rows"), frame)
    )
    assert found.tally_.domains == expected.tally_.domains
    for one, other in zip(found.tally_.statistics, expected.tally_.statistics, strict=True):
        assert one.isclose(other, 1e-9)
    found.partial_fit(tb.table(connect, "my.rows"))
    assert found.tally_["y"].table.sum() == 1000
    found.forget(tb.table(connect, "my.rows"))
    assert found.tally_.statistics[0].isclose(expected.tally_.statistics[0], 1e-9)


@pytest.mark.slow
@everywhere
def test_predicting_reads(connect, frame):
    model = tb.NaiveBayes(COLUMNS).fit(frame, "y")
    np.testing.assert_array_equal(model.predict(tb.table(connect, "my.rows")), model.predict(frame))


def test_what_a_database_cannot_do_is_read(connect, frame):
    source = tb.table(connect, "my.rows")
    holes = tb.table(connect, 'SELECT far - 1e9 AS far, size, y FROM "my.rows"')  # a covariance expects them
    assert tb.GaussianDiscriminant().fit(holes, "y").converged_
    assert 0 < tb.cross_validate(tb.NaiveBayes(COLUMNS), source, "y").accuracy.value < 1


@everywhere
def test_labels_that_are_missing(connect, frame):
    query = 'SELECT kids, CASE WHEN kids < 3 THEN y END AS y FROM "my.rows"'
    with pytest.raises(tb.LabelError, match=r"\d+ rows of the query have no 'y'"):
        tb.NaiveBayes().fit(tb.table(connect, query), "y")
    model = tb.NaiveBayes(unlabeled="skip").fit(tb.table(connect, query), "y")
    some = frame.loc[frame["kids"] < 3, ["kids", "y"]]
    _assert_same(model, tb.NaiveBayes(unlabeled="skip").fit(some, "y"))


@pytest.mark.parametrize(("family", "column"), [(tb.LogNormal(), "far - far"), (tb.Poisson(), "kids - 3")])
def test_cells_that_a_family_refuses(connect, family, column):
    query = f'SELECT {column} AS x, y FROM "my.rows"'
    with pytest.raises(tb.DataError, match=r"found (0\.0|-\d) in .*column 'x'.*; expected"):
        tb.NaiveBayes({"x": family}).fit(tb.table(connect, query), "y")


def test_weights_that_are_none(connect):
    query = "SELECT 1 AS x, 'a' AS y, -1 AS w"
    with pytest.raises(tb.DataError, match=r"weight.* is -1.* in .*row.*; expected"):
        tb.NaiveBayes().fit(tb.table(connect, query), "y", sample_weight="w")


@pytest.mark.parametrize("name", ["nope", "no.such.table", 'x"; DROP TABLE "my.rows"; --', "select * from nope"])
def test_tables_that_are_none(connect, name, frame):
    with pytest.raises(tb.DataError, match=r"no table|cannot answer the query"):
        tb.NaiveBayes().fit(tb.table(connect, name), "y")
    assert connect.execute('SELECT count(*) FROM "my.rows"').fetchone()[0] == len(frame)


def test_names_that_would_be_commands(connect):
    connect.execute('CREATE TABLE odd ("x""; DROP TABLE odd; --" integer, "y\'s" text)')
    connect.execute("INSERT INTO odd VALUES (1, 'a'), (2, 'b'' OR 1=1')")
    if isinstance(connect, sqlite3.Connection):
        connect.commit()
    model = tb.NaiveBayes().fit(tb.table(connect, "odd"), "y's")
    assert list(model.classes_) == ["a", "b' OR 1=1"]
    assert connect.execute("SELECT count(*) FROM odd").fetchone()[0] == 2


def test_a_fit_writes_nothing_and_sees_one_snapshot(connect, frame):
    asked = []
    source = tb.table(connect, "my.rows")
    run = source.dialect.run
    source.dialect.run = lambda query: asked.append(query) or run(query)
    tb.NaiveBayes(COLUMNS).fit(source, "y")
    assert all(query.startswith("SELECT") for query in asked)
    in_transaction = source.dialect.in_transaction()
    assert not in_transaction  # it has ended
    connect.execute('DELETE FROM "my.rows" WHERE kids > 100')  # and the user's own work goes on


def test_in_the_users_own_transaction(connect, frame):
    connect.execute("BEGIN")
    connect.execute('DELETE FROM "my.rows" WHERE kids > 2')
    model = tb.NaiveBayes({"kids": tb.Poisson()}).fit(tb.table(connect, "my.rows"), "y")
    assert model.tally_["y"].table.sum() == (frame["kids"] <= 2).sum()
    connect.execute("ROLLBACK")
    assert connect.execute('SELECT count(*) FROM "my.rows"').fetchone()[0] == len(frame)


def test_no_right_to_write_is_needed(postgresql_server, frame):
    import psycopg

    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN")
        connection.execute(
            "CREATE TABLE t (x double precision, y text); INSERT INTO t VALUES (1, 'a'), (2, 'b'), ('NaN', 'b')"
        )
        connection.execute("GRANT USAGE ON SCHEMA public TO guest; GRANT SELECT ON t TO guest")
    with psycopg.connect(postgresql_server.replace("user=tests", "user=guest")) as connection:
        model = tb.NaiveBayes().fit(tb.table(connection, "public.t"), "y")
        assert model.tally_["x"].weight.tolist() == [[1.0], [1.0]]  # NaN is missing


def test_a_relation_of_duckdb(frame, never_read):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    connection = duckdb.connect()
    connection.register("rows", frame)
    relation = connection.sql("SELECT * FROM rows WHERE kids < 3")
    model = tb.NaiveBayes(COLUMNS).fit(relation, "y")
    _assert_same(model, tb.NaiveBayes(COLUMNS).fit(frame[frame["kids"] < 3], "y"))


def test_duckdb_reads_files(frame, tmp_path, never_read):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    frame.to_parquet(tmp_path / "rows.parquet")
    model = tb.NaiveBayes(COLUMNS).fit(tb.table(duckdb.connect(), f"SELECT * FROM '{tmp_path}/rows.parquet'"), "y")
    _assert_same(model, tb.NaiveBayes(COLUMNS).fit(frame, "y"))


@everywhere
def test_counting_without_a_model(connect, frame):
    factors = [tb.Factor("kids", ("y", "select"), tb.Categorical()), tb.Factor(("at", "size"), (), tb.Gaussian())]
    found, expected = tb.count(tb.table(connect, "my.rows"), factors), tb.count(frame, factors)
    assert found.domains == expected.domains
    for one, other in zip(found.reindex_like(expected).statistics, expected.statistics, strict=True):
        assert one.isclose(other, 1e-9)


def test_numbers_far_from_those_of_the_first_rows(connect, monkeypatch):
    """Sums are made about a point that the first rows tell; the others may be elsewhere."""
    monkeypatch.setattr("tallybayes.data.sql.query_source.FIRST", 3)
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"x": np.r_[0.0, 0.5, 0.25, 3e9 + rng.normal(size=200)], "y": ["a"] * 3 + ["b"] * 200})
    connect.execute("CREATE TABLE late (x double precision, y text)")
    values = ", ".join(f"({x!r}, '{y}')" for x, y in zip(rows["x"].tolist(), rows["y"], strict=True))
    connect.execute(f"INSERT INTO late VALUES {values}")
    for some, n in (("SELECT * FROM late WHERE y = 'b' OR x > 1", 200), ("SELECT * FROM late", 203)):
        source = tb.table(connect, some)
        source._first = pa.table({"x": [0.0, 0.5, 0.25], "y": ["a", "a", "a"]})
        model = tb.NaiveBayes(estimate="mle").fit(source, "y")
        assert model.tally_["y"].table.sum() == n
        found = model.tally_["x"].scatter[-1] / 200
        assert found == pytest.approx(rows["x"][3:].var(ddof=0), rel=1e-9)


def test_a_table_may_be_called_as_a_query_begins(connect):
    connect.execute('CREATE TABLE "values" (x integer, y text); ')
    connect.execute("INSERT INTO \"values\" VALUES (1, 'a'), (2, 'b')")
    assert list(tb.NaiveBayes().fit(tb.table(connect, "values"), "y").classes_) == ["a", "b"]
    query = '-- the rows\n(SELECT * FROM "values" -- all of them\n) -- no more'
    assert tb.table(connect, query.replace("(", "").replace("\n)", "")).names == ["x", "y"]


def test_some_columns_are_counted_where_they_are(connect, frame):
    some = tb.table(connect, "my.rows", columns=["kids", "y"])
    assert some.counts
    assert some.names == ["kids", "y"]
    model = tb.NaiveBayes({"kids": tb.Poisson()}).fit(some, "y")
    assert model.tally_["y"].table.sum() == len(frame)
    with pytest.raises(tb.DataError, match="no column 'nope'"):
        tb.table(connect, "my.rows", columns=["nope"])


@pytest.mark.parametrize("option", [{"types": {"kids": "string"}}, {"null_values": ["?"]}, {"format": "csv"}])
def test_options_of_files_are_refused(connect, option):
    with pytest.raises(tb.DataError, match=f"{next(iter(option))}=.* is an option of"):
        tb.table(connect, "my.rows", **option)


def test_what_is_no_connection():
    with pytest.raises(tb.DataError, match="the connection is 7; expected a connection of DuckDB"):
        tb.table(7, "t")


# ---- Labeled sequences -----------------------------------------------------------------------------------------


def _steps():
    """Labeled sequences, their rows in no order; one of them has a single step."""
    rng = np.random.default_rng(8)
    n = 300
    found = pd.DataFrame(
        {
            "s": np.sort(rng.integers(0, 25, n)).astype(str),
            "t": np.arange(n) * 3,
            "word": rng.choice(["the", "dog", 'a "cat"', None], n),
            "start": rng.normal(size=n),
            "tag": rng.choice(["D", "N", "V"], n),
        }
    )
    found.loc[n] = ["alone", 5, "dog", 1.5, "X"]
    found.loc[::9, "start"] = np.nan
    return found.sample(frac=1, random_state=1).reset_index(drop=True)


@pytest.fixture
def steps(connect):
    """A table "steps" of labeled sequences."""
    found = _steps()
    connect.execute('CREATE TABLE steps (s text, t integer, word text, "start" double precision, tag text)')
    mark = "%s" if hasattr(connect, "info") else "?"
    _insert(connect, "steps", found, mark)
    if isinstance(connect, sqlite3.Connection):
        connect.commit()
    return found


COLUMNS_OF_STEPS = {"word": tb.Categorical(), "start": tb.Gaussian()}


@pytest.mark.parametrize("end_state", [False, True])
def test_a_database_counts_labeled_sequences(connect, steps, end_state, never_read):
    model = tb.HiddenMarkovModel(columns=COLUMNS_OF_STEPS, end_state=end_state)
    found, expected = (
        tb.HiddenMarkovModel(**model.get_params(deep=False)).fit(rows, "tag", sequence="s", order="t")
        for rows in (tb.table(connect, "steps"), steps)
    )
    _assert_same(found, expected)
    np.testing.assert_array_equal(found.states_, expected.states_)
    sequence = [{"word": "dog", "start": 0.5}, {"word": None, "start": -1.0}]
    np.testing.assert_allclose(found.predict_proba([sequence])[0], expected.predict_proba([sequence])[0], rtol=1e-9)


def test_a_relation_counts_labeled_sequences(steps, connect, never_read):
    if not hasattr(connect, "sql"):
        pytest.skip("relations are DuckDB's")
    found = tb.HiddenMarkovModel().fit(connect.sql("FROM steps"), "tag", sequence="s", order="t")
    _assert_same(found, tb.HiddenMarkovModel().fit(steps, "tag", sequence="s", order="t"))


@pytest.mark.slow
def test_spark_counts_labeled_sequences(spark, never_read):
    steps = _steps()
    found = tb.HiddenMarkovModel(columns=COLUMNS_OF_STEPS, end_state=True)
    found.fit(spark.createDataFrame(pa.Table.from_pandas(steps)), "tag", sequence="s", order="t")
    expected = tb.HiddenMarkovModel(columns=COLUMNS_OF_STEPS, end_state=True)
    _assert_same(found, expected.fit(steps, "tag", sequence="s", order="t"))


def test_more_sequences_and_fewer_in_a_database(connect, steps, never_read):
    model = tb.HiddenMarkovModel(columns=COLUMNS_OF_STEPS, end_state=True)
    some, rest = (tb.table(connect, f"SELECT * FROM steps WHERE s {how} '14'") for how in ("<", ">="))
    model.fit(some, "tag", sequence="s", order="t")
    model.partial_fit(rest, "tag", sequence="s", order="t")
    settings = model.get_params(deep=False)
    expected = tb.HiddenMarkovModel(**settings).fit(steps, "tag", sequence="s", order="t")
    _assert_same(model, expected)
    model.forget(some, "tag", sequence="s", order="t")
    _assert_same(model, tb.HiddenMarkovModel(**settings).fit(steps[steps["s"] >= "14"], "tag", sequence="s", order="t"))


def test_sequences_that_a_database_does_not_count(connect, steps):
    def fitted(query, **more):
        model = tb.HiddenMarkovModel(columns={"word": tb.Categorical()}, **more)
        return model.fit(tb.table(connect, query), "tag", sequence="s", order="t")

    with pytest.raises(tb.DataError, match=r"column 't' has .* twice in sequence .*\n.*have no order"):
        fitted("SELECT s, t, word, tag FROM steps UNION ALL SELECT s, t, word, tag FROM steps")
    with pytest.raises(tb.DataError, match=r"column 's' is missing in 301 rows of the query"):
        fitted("SELECT CASE WHEN t < 0 THEN s END AS s, t, word, tag FROM steps")
    with pytest.raises(tb.DataError, match="n_states is 7, but all time steps have known states, of which there are 4"):
        fitted("steps", n_states=7)
    with pytest.raises(tb.DataError, match="no column 'nope'"):
        tb.HiddenMarkovModel().fit(tb.table(connect, "steps"), "nope", sequence="s", order="t")
    expected = tb.HiddenMarkovModel().fit(steps[["s", "t", "word", "tag"]], "tag", sequence="s", order="t")
    text = fitted("SELECT s, CAST(10000 + t AS text) AS t, word, tag FROM steps")  # how text is sorted differs
    _assert_same(text, expected)
    capital = tb.HiddenMarkovModel(columns={"State": tb.Categorical()}).fit(
        tb.table(connect, 'SELECT s, t, word AS "State", tag FROM steps'), "tag", sequence="s", order="t"
    )
    assert capital.tally_["start"].isclose(expected.tally_["start"])
    aside = 'SELECT s, t, word, tag, t AS "State" FROM steps'
    _assert_same(fitted(aside), expected)
    some = fitted("SELECT s, t, word, CASE WHEN t > 9 THEN tag END AS tag FROM steps")
    assert some.converged_  # a state that is not known is expected, from all rows


@pytest.mark.parametrize("method", ["partial_fit", "forget"])
def test_a_missing_column_is_named_when_the_database_counts(method):
    rows = pd.DataFrame({"a": ["x", "y"] * 5, "b": [1.5, 2.5] * 5, "y": ["p", "q"] * 5})
    model = tb.NaiveBayes().fit(rows, "y")
    with closing(sqlite3.connect(":memory:")) as connection:
        rows[["a", "y"]].to_sql("some", connection, index=False)
        with pytest.raises(DataError, match=r"no column 'b' in the data \(found: 'a', 'y'\)"):
            getattr(model, method)(tb.table(connection, "some"), "y")
