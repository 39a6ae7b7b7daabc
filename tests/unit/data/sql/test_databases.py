"""Connections as users have set them up: row factories, transactions, names and types of every database."""

import sqlite3
import warnings
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.sql.databases import dialect_of
from tallybayes.warnings import DataSourceWarning

DATABASES = ["duckdb", "sqlite", "postgresql"]


def _open(database, request, **options):
    if database == "duckdb":
        return pytest.importorskip("duckdb", reason="DuckDB is not installed").connect(**options)
    if database == "sqlite":
        return sqlite3.connect(":memory:", **options)
    import psycopg

    return psycopg.connect(request.getfixturevalue("postgresql_server"), **{"autocommit": True, **options})


@pytest.fixture(params=DATABASES)
def connect(request):
    connection = _open(request.param, request)
    yield connection
    connection.close()


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    kind = rng.choice(["adelie", "gentoo", "chinstrap"], 300)
    mass = np.round(rng.normal(4000, 400, 300) + 900 * (kind == "gentoo"))
    found = pd.DataFrame({"island": rng.choice(["biscoe", "dream"], 300), "mass": mass, "kind": kind})
    found.loc[::17, "island"] = None
    return found


def _fill(connection, frame, name="birds"):
    with dialect_of(connection).writing([name], pa.Schema.from_pandas(frame)) as write:
        write(pa.Table.from_pandas(frame, preserve_index=False))
    if not getattr(connection, "autocommit", True):
        connection.commit()


# ---- Row factories and other settings of connections ------------------------------------------------------------


@dataclass
class Bird:
    island: str | None = None
    mass: float | None = None
    kind: str | None = None


def _dict_row(cursor, row):
    return {column[0]: cell for column, cell in zip(cursor.description, row, strict=True)}


def _named_row(cursor, row):
    return namedtuple("Row", [f"c{k}" for k in range(len(row))])(*row)


class _Connection(sqlite3.Connection):
    """A subclass, whose cursors are its own."""

    def cursor(self, *_):
        raise AssertionError("the user's cursors are for the user")


def _sqlite(setting, request):
    options = {"factory": _Connection} if setting == "subclass" else {}
    connection = _open("sqlite", request, **options, detect_types=3 if setting == "types" else 0)
    factories = {"dict": _dict_row, "Row": sqlite3.Row, "namedtuple": _named_row}
    connection.row_factory = factories.get(setting)
    connection.text_factory = bytes if setting == "bytes" else str
    return connection


def _postgresql(setting, request):
    import psycopg
    from psycopg.rows import class_row, dict_row, namedtuple_row

    found = {"dict": {"row_factory": dict_row}, "namedtuple": {"row_factory": namedtuple_row}}
    found |= {"class": {"row_factory": class_row(Bird)}, "transactions": {"autocommit": False}}
    found |= {"client": {"cursor_factory": psycopg.ClientCursor}, "raw": {"cursor_factory": psycopg.RawCursor}}
    return _open("postgresql", request, **found[setting])


SETTINGS = [("sqlite", name) for name in ("dict", "Row", "namedtuple", "bytes", "types", "subclass")]
SETTINGS += [("postgresql", name) for name in ("dict", "namedtuple", "class", "transactions", "client", "raw")]


@pytest.mark.parametrize(("database", "setting"), SETTINGS)
def test_settings_of_the_users_connection_change_nothing(database, setting, request, rows):
    connection = (_sqlite if database == "sqlite" else _postgresql)(setting, request)
    before = (getattr(connection, "row_factory", None), getattr(connection, "text_factory", None))
    _fill(connection, rows)
    source = tb.table(connection, "birds")
    model, expected = tb.NaiveBayes().fit(source, "kind"), tb.NaiveBayes().fit(rows, "kind")
    pd.testing.assert_series_equal(
        pd.Series(model.predict(source)).value_counts(), pd.Series(expected.predict(rows)).value_counts()
    )
    np.testing.assert_allclose(model.predict_proba(source), expected.predict_proba(rows), rtol=1e-9)
    tb.write_predictions(model, source, (connection, "told"), keep=["island", "mass"])
    told = pa.concat_tables(tb.table(connection, "told").batches()).to_pydict()
    assert told["island"] == rows["island"].astype(object).where(rows["island"].notna(), None).tolist()
    assert told["prediction"] == expected.predict(rows).tolist()
    assert (getattr(connection, "row_factory", None), getattr(connection, "text_factory", None)) == before
    if database == "postgresql":
        assert connection.info.transaction_status == 0  # as before: no transaction is left open
    connection.close()


def test_a_cursor_of_the_users_goes_on(postgresql_server, rows):
    import psycopg

    with psycopg.connect(postgresql_server) as connection:
        _fill(connection, rows)
        with connection.cursor(name="mine") as mine:
            mine.execute("SELECT * FROM birds")
            first = mine.fetchmany(10)
            model = tb.NaiveBayes().fit(tb.table(connection, "birds"), "kind")
            model.predict(tb.table(connection, "birds"))
            with pytest.raises(tb.DataError, match="cannot answer the query"):
                tb.table(connection, "SELECT nope FROM birds").first_batch()
            assert len(first) + len(mine.fetchall()) == len(rows)  # the transaction goes on, after an error too


def test_errors_of_values_are_data_errors(request):
    connection = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
    request.addfinalizer(connection.close)
    connection.execute("CREATE TABLE t (at timestamp, y text)")
    connection.execute("INSERT INTO t VALUES ('tomorrow', 'a'), ('never', 'b')")
    with pytest.raises(tb.DataError, match="cannot answer the query"):
        tb.NaiveBayes().fit(tb.table(connection, "t"), "y")
    connection.execute("CREATE TABLE broken (x text, y text)")
    connection.execute("INSERT INTO broken VALUES (CAST(x'ff' AS text), 'a')")
    with pytest.raises(tb.DataError, match="cannot answer the query"):
        tb.table(connection, "broken").first_batch()


# ---- Names of tables --------------------------------------------------------------------------------------------


@pytest.fixture
def schemas(connect):
    """Tables in two schemas, with capitals, dots and quotes; all in a transaction of the user's."""
    if isinstance(connect, sqlite3.Connection):
        connect.execute("ATTACH ':memory:' AS Sales")
        connect.execute("ATTACH ':memory:' AS \"a.b\"")
    else:
        if hasattr(connect, "info"):
            connect.execute('DROP SCHEMA IF EXISTS "Sales" CASCADE; DROP SCHEMA IF EXISTS "a.b" CASCADE')
        connect.execute('CREATE SCHEMA "Sales"')
        connect.execute('CREATE SCHEMA "a.b"')
    connect.execute("BEGIN")
    names = ['"Sales"."Orders"', '"Sales".plain', '"a.b"."c.d"', '"s.r"', "plain", '"say ""hi"""']
    for number, name in enumerate(names):
        connect.execute(f"CREATE TABLE {name} (x integer, y text)")
        connect.execute(f"INSERT INTO {name} VALUES ({number}, 'a'), ({number}, 'b')")
    yield connect
    connect.execute("ROLLBACK")


NAMES = {'"Sales"."Orders"': 0, "Sales.Orders": 0, 'Sales."Orders"': 0, "Sales.plain": 1, '"a.b"."c.d"': 2, "s.r": 3}
NAMES |= {'"s.r"': 3, "plain": 4, "PLAIN": 4, '"plain"': 4, 'say "hi"': 5, '"say ""hi"""': 5}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_resolved_inside_a_transaction(schemas, name):
    assert set(tb.table(schemas, name).first_batch()["x"].to_pylist()) == {NAMES[name]}
    assert schemas.execute("SELECT count(*) FROM plain").fetchone()[0] == 2  # the transaction goes on


def test_unquoted_names_are_folded_as_the_database_does(schemas):
    if hasattr(schemas, "info"):
        with pytest.raises(tb.DataError, match=r"no table 'sales\.orders'"):
            tb.table(schemas, "sales.orders").first_batch()
    else:
        assert tb.table(schemas, "sales.orders").first_batch()["x"].to_pylist() == [0, 0]


@pytest.mark.parametrize("name", ["Order", "sales.order", "nope", '"s".r', "x'; DROP TABLE plain; --", '"', "."])
def test_names_of_an_error_message_can_be_typed(schemas, name):
    with pytest.raises(tb.DataError, match="there is no table") as error:
        tb.table(schemas, name).first_batch()
    listed = str(error.value).split("(found: ")[1].split(").\n")[0].split(" and ")[0].split(", ")
    assert len(listed) >= 6
    assert not any(one.startswith(("postgres.", "memory.")) for one in listed)
    for one in listed:
        assert tb.table(schemas, one).names
    assert schemas.execute("SELECT count(*) FROM plain").fetchone()[0] == 2


def test_what_duckdb_finds_by_itself(tmp_path, rows):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    rows.to_parquet(tmp_path / "rows.parquet")
    rows.to_csv(tmp_path / "rows.csv")
    connection = duckdb.connect()
    connection.execute("BEGIN")
    connection.register("frame", rows)
    connection.execute("CREATE TEMP TABLE birds AS SELECT * FROM frame LIMIT 5")
    connection.execute(f"ATTACH '{tmp_path}/other.db' AS other")
    connection.execute("CREATE TABLE other.birds AS SELECT * FROM frame LIMIT 7")
    names = {"frame": 300, "birds": 5, "temp.birds": 5, "other.birds": 7, "other.main.birds": 7}
    for name, n in {**names, f"{tmp_path}/rows.parquet": 300, f"{tmp_path}/rows.csv": 300}.items():
        assert tb.table(connection, name).first_batch().num_rows == n
    with pytest.raises(tb.DataError, match=r"there is no table 'nope\.parquet'"):
        tb.table(connection, "nope.parquet").first_batch()
    assert connection.execute("SELECT count(*) FROM birds").fetchone() == (5,)


# ---- Types ------------------------------------------------------------------------------------------------------


def test_a_column_that_is_null_at_first_is_a_number(connect, monkeypatch):
    monkeypatch.setattr("tallybayes.data.sql.query_source.FIRST", 5)
    connect.execute("CREATE TABLE late (x double precision, n numeric(8, 2), k integer, y text, never real)")
    connect.execute("INSERT INTO late VALUES " + ", ".join(["(NULL, NULL, NULL, 'a', NULL)"] * 6))
    connect.execute("INSERT INTO late VALUES (1.5, 2.25, 3, 'a', NULL), (2.5, 3, 4, 'b', NULL)")
    expected = {"x": tb.Gaussian(), "n": tb.Gaussian(), "k": tb.Gaussian(), "never": tb.Gaussian()}
    assert tb.NaiveBayes().fit(tb.table(connect, "late"), "y").columns_ == expected
    query = "SELECT x + 1 AS x, n, k, y FROM late"  # of which SQLite declares nothing
    columns = tb.NaiveBayes().fit(tb.table(connect, query), "y").columns_
    assert columns == {name: tb.Gaussian() for name in ("x", "n", "k")}


def test_the_types_of_postgresql(postgresql_server):
    import psycopg

    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
        connection.execute(
            "CREATE TABLE t (b boolean, i smallint, n numeric(20, 2), free numeric, m mood, c char(2), a integer[], "
            "ip inet, j jsonb, u uuid, at timestamptz, d date, raw bytea, span interval, y text)"
        )
        connection.execute(
            "INSERT INTO t VALUES (true, 1, 1.25, 1e-3, 'good', 'ab', '{1,NULL}', '10.0.0.1', '{\"a\": 1}', "
            "'00000000-0000-0000-0000-000000000001', 'infinity', '-infinity', '\\x00ff', '1 day', 'a'), "
            "(false, 2, 2.5, 'NaN', 'bad', 'cd', NULL, NULL, NULL, NULL, NULL, 'infinity', NULL, NULL, 'b')"
        )
        source = tb.table(connection, "t")
        kinds = {field.name: str(field.type) for field in source.schema}
        assert kinds["n"] == "decimal128(20, 2)"
        assert kinds["a"] == "list<item: int32>"
        assert kinds["at"] == f"timestamp[us, tz={connection.info.timezone}]"
        assert (kinds["m"], kinds["u"], kinds["raw"]) == ("string", "string", "binary")
        model = tb.NaiveBayes({"n": tb.Gaussian(), "m": tb.Categorical(), "i": tb.Poisson()}).fit(source, "y")
        assert model.predict(source).tolist() == ["a", "b"]
        (batch,) = source.batches(["at", "d"])  # infinite dates are missing, as in DuckDB
        assert batch["at"].to_pylist() == batch["d"].to_pylist() == [None, None]
        connection.execute("UPDATE t SET d = '0044-03-15 BC' WHERE i = 1")
        expected = "column 'd' of the table t holds '0044-03-15 BC'; expected a date.* of the years 1 to 9999"
        with pytest.raises(tb.DataError, match=expected):
            list(source.batches(["d"]))


# ---- DuckDB: an open result of the user's -----------------------------------------------------------------------


@pytest.fixture(params=["execute", "reader"])
def busy(request, rows):
    """A connection with a result of 50,000 rows of which some are fetched, and what fetches the others."""
    connection = pytest.importorskip("duckdb").connect()
    _fill(connection, rows)
    connection.execute("CREATE TEMP TABLE hidden AS SELECT * FROM birds; CREATE TABLE seen AS SELECT * FROM birds")
    connection.register("frame", rows)
    relation = connection.sql("SELECT * FROM birds")
    if request.param == "execute":
        found = connection.execute("SELECT * FROM range(50000)")
        found.fetchmany(10)
        rest = lambda: len(found.fetchall())  # noqa: E731
    else:
        query = connection.sql("SELECT * FROM range(50000)")
        reader = (getattr(query, "to_arrow_reader", None) or query.fetch_arrow_reader)(10)
        assert reader.read_next_batch().num_rows == 10
        rest = lambda: reader.read_all().num_rows  # noqa: E731
    yield connection, relation, rest
    connection.close()


def _needs_duckdb_2():
    if int(pytest.importorskip("duckdb").__version__.split(".")[0]) < 2:
        pytest.skip("DuckDB before 2 closes an open result without an error")


def test_an_open_result_of_duckdb_stays_open(busy, rows):
    _needs_duckdb_2()
    connection, _, rest = busy
    expected = tb.NaiveBayes().fit(rows, "kind")
    for name in ("birds", "SELECT * FROM birds"):
        with pytest.warns(DataSourceWarning, match="second connection(.|\n)*uncommitted rows"):
            model = tb.NaiveBayes().fit(tb.table(connection, name), "kind")
        assert model.tally_.isclose(expected.tally_, 1e-9)
    with pytest.warns(DataSourceWarning, match="second connection"):
        assert tb.write_predictions(model, tb.table(connection, "birds"), (connection, "told")) == len(rows)
    assert rest() == 49_990
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tb.NaiveBayes().fit(tb.table(connection, "hidden"), "kind").tally_ == model.tally_


@pytest.mark.filterwarnings("ignore:the connection has an open result")
def test_what_a_second_connection_does_not_have(busy):
    _needs_duckdb_2()
    connection, relation, rest = busy
    for name in ("hidden", "frame", "SELECT * FROM hidden"):
        with pytest.raises(tb.DataError, match=r"(?s)hidden|frame.*Fetch or close the open result.*temporary tables"):
            tb.NaiveBayes().fit(tb.table(connection, name), "kind")
    with pytest.raises(tb.DataError, match=r"the connection of the relation has an open result.*\n.*Fetch"):
        tb.NaiveBayes().fit(relation, "kind")
    assert rest() == 49_990


# ---- Columns that a model does not read ---------------------------------------------------------------------------


def _others(database, request):
    connection = _open(database, request)
    if database == "postgresql":
        connection.execute(
            "CREATE TABLE t (x float, at timestamptz, ip inet, j jsonb, raw bytea, span interval, r int4range, "
            "far timestamp, y text)"
        )
        row = "'-infinity', '10.0.0.1', '{\"a\": 1}', '\\x00', '1 day', '[1,2)', 'infinity'"
        return connection, row, {"ip": "inet", "j": "jsonb", "raw": "binary", "span": "interval", "r": "int4range"}
    connection.execute(
        'CREATE TABLE t (x double, "at" timestamptz, big hugeint, raw blob, span interval, bits bit, '
        "uuid uuid, far timestamp, y text)"
    )
    row = "'infinity', 170141183460469231731687303715884105727, '\\x00'::blob, interval 1 day, '101', uuid(), "
    return connection, row + "'infinity'", {"raw": "binary", "span": "month_day_nano_interval", "bits": "binary"}


@pytest.mark.filterwarnings("ignore:.*(dropped|column uuid. categorical):tallybayes.warnings.DataSourceWarning")
@pytest.mark.parametrize("database", ["duckdb", "postgresql"])
def test_columns_that_are_not_read_do_not_matter(database, request):
    connection, row, unread = _others(database, request)
    values = ", ".join(f"({k % 7}, {row}, '{'ab'[k % 2]}')" for k in range(40))
    connection.execute(f"INSERT INTO t VALUES {values}")
    source = tb.table(connection, "t")
    expected = {"x": [k % 7 * 1.0 for k in range(40)], "y": ["ab"[k % 2] for k in range(40)]}
    model = tb.NaiveBayes({"x": tb.Gaussian()}).fit(source, "y")
    assert model.predict(source).tolist() == tb.NaiveBayes().fit(expected, "y").predict(expected).tolist()
    names = ["x", *unread, *(["uuid"] if database == "duckdb" else []), "y"]
    some = tb.table(connection, "t", columns=names)
    model = tb.NaiveBayes().fit(some, "y")
    assert list(model.columns_) == [name for name in names if name not in unread and name != "y"]
    assert model.dropped_columns_ == {name: f"its type is {kind}" for name, kind in unread.items()}
    assert len(model.predict(some)) == 40
    name, kind = next(iter(unread.items()))
    with pytest.raises(tb.DataError, match=rf"column \['?{name}.*|column .*{name}.*found cells of type {kind}"):
        tb.NaiveBayes({name: tb.Categorical()}).fit(some, "y")
    model = tb.NaiveBayes().fit(source, "y")
    assert model.dropped_columns_ == {name: f"its type is {kind}" for name, kind in unread.items()}
    assert model.tally_["far.month"].table.sum() == 0  # infinite dates are missing
    assert len(model.predict(source)) == 40
    connection.close()
