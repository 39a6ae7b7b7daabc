"""A model as SQL says inside a database what it says in memory: every dialect, family and estimate in one test body."""

import sqlite3
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallybayes as tb

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
EVIL = 'x\'; DROP TABLE "rows"; --\\'
LABELS = [EVIL, "søn", "a\\'b", "", "${user}", "{rows} %s :a ?"]
CLASSES = ["no", "it's", "p(no)", 'q"\\']
TYPES = {"f": "double precision", "i": "bigint", "b": "boolean", "O": "text"}


class Database:
    """Where rows are put, and a query is asked."""

    def __init__(self, dialect, request):
        self.dialect, self.request = dialect, request

    def ask(self, query, frame):
        """The answers, in the order of their first column."""
        found = getattr(self, self.dialect)(query, frame)
        return sorted(found, key=lambda row: row[0])

    def duckdb(self, query, frame):
        import duckdb

        with duckdb.connect() as connection:
            connection.register("given", pa.Table.from_pandas(frame, preserve_index=False))
            connection.execute('CREATE TABLE "rows" AS SELECT * FROM given')
            return connection.execute(query).fetchall()

    def tuples(self, frame):
        cells = frame.astype(object).where(frame.notna(), None)
        return [tuple(row) for row in cells.itertuples(index=False)]

    def created(self, connection, frame, types, mark):
        columns = ", ".join('"' + name.replace('"', '""') + f'" {types[kind]}' for name, kind in kinds(frame).items())
        connection.execute(f'CREATE TABLE "rows" ({columns})')
        marks = ", ".join([mark] * frame.shape[1])
        connection.cursor().executemany(f'INSERT INTO "rows" VALUES ({marks})', self.tuples(frame))

    def sqlite(self, query, frame):
        connection = sqlite3.connect(":memory:")
        self.created(connection, frame, TYPES | {"b": "integer"}, "?")
        return connection.execute(query).fetchall()

    def postgresql(self, query, frame):
        import psycopg

        with psycopg.connect(self.request.getfixturevalue("postgresql_server")) as connection:
            self.created(connection, frame, TYPES, "%s")
            plain = connection.execute(query).fetchall()
            connection.execute("SET standard_conforming_strings = off; SET escape_string_warning = off")
            assert connection.execute(query).fetchall() == plain
            connection.rollback()
            return plain

    def spark(self, query, frame):
        session = self.request.getfixturevalue("spark")
        session.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False)).createOrReplaceTempView("rows")
        try:
            return [tuple(row) for row in session.sql(query).collect()]
        finally:
            session.catalog.dropTempView("rows")


def kinds(frame):
    kind = {name: getattr(dtype, "numpy_dtype", dtype).kind for name, dtype in frame.dtypes.items()}
    return {name: "i" if found == "u" else found if found in TYPES else "O" for name, found in kind.items()}


QUICK = ["duckdb", "sqlite", "postgresql"]
ESTIMATES = ["mle", "map", "unbiased", "bayes"]
SPARK = ("spark", "bayes")  # which takes seconds for a query


@pytest.fixture(params=QUICK)
def database(request):
    return Database(request.param, request)


def check(model, database, frame, tolerance=1e-9):
    """The same probabilities and the same classes; `frame` has a column "id" that the model does not know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cells that cannot be, and rows that no class allows
        expected = model.predict_proba(frame)
        told = model.predict(frame)
    found = database.ask(model.to_sql(database.dialect, "rows", keep="id"), frame)
    assert [row[0] for row in found] == frame["id"].tolist()
    np.testing.assert_allclose(np.array([row[2:] for row in found], dtype=float), expected, rtol=0, atol=tolerance)
    labels = [row[1] for row in found]
    assert labels == told.tolist()
    assert {type(label) for label in labels} <= {type(told.tolist()[0])} | (
        {int} if database.dialect == "sqlite" else set()
    )


def spoiled(frame, rng, columns, share=0.15):
    """Rows to be asked about: some cells are missing."""
    asked = frame.copy()
    for name in columns:
        if asked[name].dtype.kind in "iub":
            asked[name] = asked[name].astype({"b": "boolean"}.get(asked[name].dtype.kind, "Int64"))
        asked.loc[rng.random(len(asked)) < share, name] = None
    return asked


FAMILIES = {
    'a "quoted" column': tb.Gaussian(),
    "size": tb.LogNormal(),
    "select": tb.Poisson(),
    "yes": tb.Bernoulli(),
    "true": tb.Bernoulli(),
    "hits": tb.Binomial(7),
    "cut": tb.Binned((None, 0.1, 1 / 3, 2.0, None)),
    "label`": tb.Categorical(),
    "number": tb.Categorical(),
    "member": tb.Categorical(),
    "tied": tb.TiedGaussian(),
    "there": tb.WithMissing(tb.Gaussian()),
    "named": tb.WithMissing(tb.Categorical()),
    "bound": tb.WithMissing(tb.Poisson()),
}
WORDS = {
    "mle": tb.Multinomial(),
    "map": tb.Multinomial(),
    "unbiased": tb.Multinomial(),
    "bayes": tb.DirichletMultinomial(),
}


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(7)
    n = 500
    code = rng.integers(0, len(CLASSES), n)
    return pd.DataFrame(
        {
            'a "quoted" column': rng.normal(code, 1.0),
            "size": rng.lognormal(0.3 * code),
            "select": rng.poisson(3 + 2 * code),
            "yes": (rng.random(n) < 0.2 + 0.2 * code).astype(int),
            "true": rng.random(n) < 0.2 + 0.1 * code,
            "hits": rng.binomial(7, 0.2 + 0.1 * code),
            "cut": rng.normal(code, 2.0),
            "label`": rng.choice(LABELS, n),
            "number": np.where(code == 0, 1, rng.choice([-5, 0, 2**53 + 1, 2**62], n)),
            "member": rng.random(n) < 0.3 + 0.1 * code,
            "tied": rng.normal(code, 0.5),
            "there": np.where(rng.random(n) < 0.1 + 0.2 * code, np.nan, rng.normal(0, 1, n)),
            "named": np.where(rng.random(n) < 0.1 + 0.2 * code, None, rng.choice(["one", "two"], n)),
            "bound": rng.poisson(2, n).astype(float),
            "w 1": rng.poisson(1 + code),
            "w 2": rng.poisson(2, n),
            "w 3": rng.poisson(4 - code),
            "id": np.arange(n),
            "class": np.array(CLASSES, dtype=object)[code],
        }
    )


def strange(mixed):
    """Rows with missing cells, levels that nobody has seen, cells that cannot be, and far ones."""
    rng = np.random.default_rng(8)
    asked = spoiled(mixed.iloc[:120].drop(columns="class"), rng, list(FAMILIES))
    asked.loc[3, ["label`", "named"]] = "nobody has seen this"
    asked.loc[4, "number"] = 77
    asked.loc[5, 'a "quoted" column'] = 4e5
    asked.loc[6, "select"] = 30_000
    asked.loc[7, "w 1"] = 90_000
    asked.loc[8, ["size", "bound"]] = -3.0
    asked.loc[9, "bound"] = 0.5
    asked.loc[10, "hits"] = 9
    asked.loc[11, "cut"] = 1 / 3
    asked.loc[12, "yes"] = 3
    asked.loc[13, "there"] = -1e30
    return asked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database", "estimate"), [*((name, how) for name in QUICK for how in ESTIMATES), SPARK], indirect=["database"]
)
def test_every_family_under_every_estimate(database, estimate, mixed):
    columns = {**FAMILIES, ("w 1", "w 2", "w 3"): WORDS[estimate]}
    model = tb.NaiveBayes(columns, estimate=estimate).fit(mixed, "class")
    check(model, database, strange(mixed))


@pytest.mark.slow
@pytest.mark.parametrize("unseen", ["missing", "smooth"])
def test_levels_that_nobody_has_seen(database, unseen, mixed):
    columns = {name: FAMILIES[name] for name in ("label`", "number", "member", "named", "bound")}
    model = tb.NaiveBayes(columns, unseen=unseen).fit(mixed, "class")
    check(model, database, strange(mixed))


def test_fractions_among_whole_labels_are_missing_where_others_are_smoothed(database):
    rows = {"size": [1.0, 2.0, 2.0, 1.0], "y": [0, 1, 1, 1]}
    model = tb.NaiveBayes({"size": tb.Categorical()}, unseen="smooth").fit(rows, "y")
    check(model, database, pd.DataFrame({"size": [1.0, 0.5, 3.0, np.nan], "id": range(4)}))


def test_rows_that_are_refused_in_memory_have_no_answer(database):
    rows = {"sky": ["sun", "rain", "sun"], "n": [1, 2, 3], "w": [1, 0, 2], "v": [0, 1, 3], "y": [True, False, True]}
    columns = {"sky": tb.Categorical(), "n": tb.Poisson(), ("w", "v"): tb.Multinomial()}
    model = tb.NaiveBayes(columns, unseen="error").fit(rows, "y")
    asked = pd.DataFrame(
        {
            "sky": ["sun", "snow", "sun", None, "sun", "sun", "rain"],
            "n": [1.0, 2.0, 0.5, 1.0, np.inf, None, 1.0],
            "w": [1.0, 1.0, 1.0, 1.0, 1.0, None, -1.0],
            "v": 1.0,
            "id": range(7),
        }
    )
    found = database.ask(model.to_sql(database.dialect, "rows", keep="id"), asked)
    answered = [0, 3]
    assert [row[0] for row in found if row[1] is not None] == answered
    assert all(row[1:] == (None, None, None) for row in found if row[0] not in answered)
    expected = model.predict_proba(asked.iloc[answered])
    np.testing.assert_allclose(np.array([found[k][2:] for k in answered]), expected, atol=1e-12)
    assert [bool(found[k][1]) for k in answered] == model.predict(asked.iloc[answered]).tolist()
    for k in set(range(7)) - set(answered):
        with pytest.raises(tb.TallybayesError):
            model.predict_proba(asked.iloc[[k]])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "class_prior", [{k: 0.0 if k == 3 else 1 / 29 for k in range(30)}, "uniform"], ids=["given", "uniform"]
)
def test_thirty_classes_and_far_apart(database, class_prior):
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(30), 20)
    rows = pd.DataFrame({f"x{j}": rng.normal(50.0 * y, 0.5) for j in range(4)})
    rows["label"], rows["id"], rows["y"] = rng.choice(["a", "b", "c"], 600), np.arange(600), y
    columns = {**{f"x{j}": tb.Gaussian() for j in range(4)}, "label": tb.Categorical()}
    model = tb.NaiveBayes(columns, estimate="mle", class_prior=class_prior).fit(rows, "y")
    asked = spoiled(rows.iloc[::7].drop(columns="y"), rng, ["x0", "label"])  # log-odds of hundreds of thousands
    asked.loc[asked.index[:2], "x1"] = 25.0
    check(model, database, asked)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("labels", [[0, 1], [True, False], [1.0, 2.0], ["only"]], ids=str)
def test_the_types_of_classes(database, labels):
    y = np.array((labels * 6)[:6])
    model = tb.NaiveBayes().fit({"x": [1.0, 2.0, 3.0, 4.0, 5.0, 7.0], "y": y}, "y")
    check(model, database, pd.DataFrame({"x": [0.0, None, 9.0], "id": range(3)}))


@pytest.mark.slow_after(1)
def test_temperature_and_doubt(database, mixed):
    columns = {name: FAMILIES[name] for name in ("select", "number", "label`")}
    model = tb.NaiveBayes(columns, calibration="temperature").fit(mixed, "class")
    assert model.calibration_.contamination > 0
    check(model, database, strange(mixed))
    given = tb.NaiveBayes(columns, class_prior={"no": 0.5, "it's": 0.5, "p(no)": 0.0, 'q"\\': 0.0})
    check(
        given.fit(mixed, "class").calibrate(mixed[mixed["class"].isin(["no", "it's"])], "class"),
        database,
        strange(mixed),
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("method", ["isotonic", "auto"])
def test_calibration_by_steps(database, method, mixed):
    columns = {name: FAMILIES[name] for name in ("select", "number", "tied")}
    model = tb.NaiveBayes(columns, calibration=method).fit(mixed, "class")
    check(model, database, strange(mixed))
    two = mixed[mixed["class"].isin(["no", "it's"])]
    strict = tb.NaiveBayes(columns, calibration="isotonic", unseen="error").fit(two, "class")
    asked = two.drop(columns="class").iloc[:30].reset_index(drop=True).assign(id=range(30))
    check(strict, database, asked)
    asked.loc[2, "select"] = -1
    assert database.ask(strict.to_sql(database.dialect, "rows", keep="id"), asked)[2][1:] == (None, None, None)


@pytest.mark.slow
def test_more_columns_than_can_be_joined_and_more_levels_than_a_query_is_long(database):
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({f"c{j}": rng.integers(0, 3, 300) for j in range(90)})
    rows["many"] = [f"level {k}" for k in rng.integers(0, 3000, 300)]
    rows["id"], rows["y"] = np.arange(300), rng.integers(0, 3, 300)
    columns = {**{f"c{j}": tb.Categorical() for j in range(90)}, "many": tb.Categorical()}
    check(tb.NaiveBayes(columns).fit(rows, "y"), database, rows.drop(columns="y").iloc[:50])


def test_rows_that_no_class_allows_have_the_prior(database):
    rows = {"a": ["x", "y", "y"], "b": ["u", "v", "v"], "y": ["p", "q", "q"]}
    model = tb.NaiveBayes(estimate="mle").fit(rows, "y")
    check(model, database, pd.DataFrame({"a": ["x", "x"], "b": ["v", "u"], "id": range(2)}))


@pytest.mark.slow_after(1)
def test_nothing_in_a_name_or_a_label_is_asked(database, mixed):
    rows = pd.DataFrame({EVIL: [EVIL, "b", EVIL, "b"], "id": range(4), "y": [EVIL, "it's", EVIL, "it's"]})
    model = tb.NaiveBayes({EVIL: tb.Categorical()}).fit(rows, "y")
    check(model, database, rows.drop(columns="y"))
    query = model.to_sql(database.dialect, EVIL)
    with pytest.raises(Exception, match=r"(?i)no such table|does not exist"):
        database.ask(query, rows)
    found = database.ask(model.to_sql(database.dialect, 'SELECT * FROM "rows" WHERE id > 1 -- so', keep=["id"]), rows)
    assert [row[0] for row in found] == [2, 3]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "tied_spherical"])
@pytest.mark.parametrize("estimate", ["mle", "bayes"])
def test_discriminants_with_missing_cells(database, covariance, estimate):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)) + y[:, None]
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    if estimate == "bayes":
        rows["constant"] = 7.0
    model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(rows, y)
    asked = spoiled(rows.iloc[:40].copy(), rng, list(rows), 0.25)
    asked["a"] = np.where(np.arange(40) == 3, 1e5, asked["a"])
    expected = model.predict_proba(asked)
    asked["id"] = range(40)
    found = database.ask(model.to_sql(database.dialect, "rows", keep="id"), asked)
    np.testing.assert_allclose(np.array([row[2:] for row in found], dtype=float), expected, rtol=0, atol=1e-9)


def test_rows_with_too_many_patterns_have_no_answer_where_they_lack_a_cell():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(100, 21)), columns=[f"x{j}" for j in range(21)])
    model = tb.GaussianDiscriminant("tied").fit(rows, np.arange(100) % 2)
    asked = rows.iloc[:3].assign(x3=[None, 0.0, 1.0], id=range(3))
    found = Database("duckdb", None).ask(model.to_sql("duckdb", "rows", keep="id"), asked)
    assert found[0] == (0, None, None, None)
    expected = model.predict_proba(asked.iloc[1:].drop(columns="id"))
    np.testing.assert_allclose(np.array([row[2:] for row in found[1:]]), expected, rtol=0, atol=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("names", [["label`"], ["label`", "number", "member", "named", "cut", "size", "tied"]], ids=len)
@pytest.mark.parametrize("kind", [tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
def test_pairs_of_columns_with_missing_cells(database, kind, names, mixed):
    model = kind().fit(mixed[[*names, "class"]], "class")
    asked = strange(mixed)[[*names, "id"]]
    asked.loc[20, names] = None
    for k, name in enumerate(names):  # each is missing beside others, and alone known
        asked.loc[21 + k :: 29, name] = None
        if len(names) > 1:
            asked.loc[22 + k :: 31, names[:k] + names[k + 1 :]] = None
    expected = model.predict_proba(asked[names])
    found = database.ask(model.to_sql(database.dialect, "rows", keep="id"), asked)
    np.testing.assert_allclose(np.array([row[2:] for row in found], dtype=float), expected, rtol=0, atol=1e-9)
    assert [row[1] for row in found] == model.predict(asked[names]).tolist()
    strict = model.reestimate(unseen="error")
    found = database.ask(strict.to_sql(database.dialect, "rows", keep="id"), asked)
    assert [row[0] for row in found if row[1] is None] == [3]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("shape", ["chain", "star"])
def test_deep_and_wide_trees(database, shape):
    rng = np.random.default_rng(4)
    n, d = 400, 12
    cells = [rng.integers(0, 3, n)]
    for k in range(1, d):
        cells.append(np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), cells[k - 1 if shape == "chain" else 0]))
    rows = pd.DataFrame({f"x{k}": column for k, column in enumerate(cells)})
    labeled = rows.assign(**{"class": rng.choice(CLASSES, n)})
    model = tb.TreeAugmentedNaiveBayes(tb.Categorical()).fit(labeled, "class")
    parents = list(model.parents_.values())
    assert len(set(parents)) == (d if shape == "chain" else 2)
    asked = rows.iloc[:60].astype(object).where(rng.random((60, d)) < 0.6, None).astype("Int64").assign(id=range(60))
    check(model, database, asked)


def test_more_pairs_than_a_query_should_hold_are_refused():
    rng = np.random.default_rng(0)
    rows = {"a": rng.integers(0, 800, 5000), "b": rng.integers(0, 800, 5000), "y": rng.integers(0, 2, 5000)}
    columns = {"a": tb.Categorical(), "b": tb.Categorical()}
    model = tb.AveragedOneDependence(columns).fit(rows, "y")
    with pytest.raises(tb.ExportError, match=r"levels in 2 classes are 2\d{6} weights; expected at most 1000000"):
        model.to_sql("duckdb", "t")


@pytest.mark.slow_after(1)
def test_mixtures_and_models_that_were_given(database, mixed):
    columns = {"tied": tb.Gaussian(), "member": tb.Categorical(), "select": tb.Poisson()}
    rows = mixed[[*columns, "id"]].iloc[:100]
    check(
        tb.Mixture(3, columns=columns, max_iter=20, random_state=0).fit(rows),
        database,
        strange(mixed)[[*columns, "id"]],
    )
    sky = {"yes": {"sun": 0.75, "rain": 0.25}, "no": {"sun": 1.0, "rain": 0.0}}
    warmth = {"yes": {"mean": 24, "variance": 9}, "no": {"mean": 15, "variance": 16}}
    given = tb.NaiveBayes.from_parameters({"sky": sky, "warmth": warmth}, class_prior={"yes": 0.5, "no": 0.5})
    asked = pd.DataFrame({"sky": ["sun", "rain", None, "snow"], "warmth": [0.5, 1.0, None, None], "id": range(4)})
    check(given, database, asked)


def test_a_model_without_columns_has_the_prior(database):
    model = tb.NaiveBayes({}).fit({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "b"]}, "y")
    check(model, database, pd.DataFrame({"x": [0.0, 1.0], "id": range(2)}))


def test_names_that_are_taken_get_an_underscore():
    model = tb.NaiveBayes().fit({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b", "a", "b"]}, "y")
    database = sqlite3.connect(":memory:")
    database.execute('CREATE TABLE t (x REAL, Prediction TEXT, "p(a)" REAL)')
    database.execute("INSERT INTO t VALUES (1, 'mine', 0.5)")
    found = database.execute(model.to_sql("sqlite", "main.t", keep=["Prediction", "p(a)"]))
    assert [column[0] for column in found.description] == ["Prediction", "p(a)", "prediction_", "p(a)_", "p(b)"]
    assert found.fetchall()[0][:2] == ("mine", 0.5)
    found = database.execute(model.to_sql("sqlite", ("main", "t"), proba=False))
    assert [column[0] for column in found.description] == ["prediction"]


def test_what_cannot_be_written_is_refused_by_name(mixed):
    rows = {"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b", "a", "b"]}
    model = tb.NaiveBayes().fit(rows, "y")
    with pytest.raises(tb.DataError, match=r"dialect .*'oracle'.*'duckdb' or 'postgresql'"):
        model.to_sql("oracle", "t")
    with pytest.raises(tb.DataError, match=r"dialect .*'postgres'(.|\n)*Did you mean 'postgresql'"):
        model.to_sql("postgres", "t")
    with pytest.raises(tb.DataError, match=r"table .*expected the name of a table"):
        model.to_sql("duckdb", ())
    wide = tb.NaiveBayes(tb.Binomial(1000)).fit([[1], [900], [3], [800]], [0, 1, 0, 1])
    with pytest.raises(tb.ExportError, match=r"Binomial\(1000\) columns \(0\) cannot be exported"):
        wide.to_sql("duckdb", "t")
    block = tb.NaiveBayes().fit({"w": np.ones((4, 3)), "y": [0, 1, 0, 1]}, "y")
    with pytest.raises(tb.ExportError, match="block 'w' has 3 columns without names"):
        block.to_sql("duckdb", "t")
    null = tb.NaiveBayes().fit({"x": ["a\0b", "c"], "y": [0, 1]}, "y")
    with pytest.raises(tb.DataError, match="character NUL"):
        null.to_sql("duckdb", "t")
