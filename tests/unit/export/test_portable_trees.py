"""Trees in SQL and ONNX have the probabilities and classes of the model in memory."""

import warnings

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tests.unit.export import test_sql_export
from tests.unit.export.test_sql_export import LABELS, QUICK, Database, spoiled

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
TIGHT = 1e-12
MODELS = {
    "forest": lambda: tb.CountForest(9),
    "forest of one kind": lambda: tb.CountForest(50, splits="best", min_leaf=20),
    "boosting": lambda: tb.CountBoosting(15, max_depth=3),
}


@pytest.fixture(params=[*QUICK, pytest.param("spark", marks=pytest.mark.slow)])
def database(request):
    return Database(request.param, request)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    n = 400
    target = rng.choice(["no", "it's", 'q"\\'], n)
    number = (target == "no") * 2.0
    rows = pd.DataFrame(
        {
            'a "quoted" column': rng.normal(number),
            "select": rng.poisson(1 + number),
            "label`": rng.choice(LABELS, n),
            "number": rng.integers(-3, 4, n),
            "yes": rng.random(n) < 0.3 + number / 5,
            "rare": [f"only {k}" for k in range(n)],
            "class": target,
        }
    )
    rows["rare"] = rows["rare"].where(rng.random(n) < 0.5, None)
    rows.loc[rng.random(n) < 0.2, "label`"] = None
    rows.loc[rng.random(n) < 0.2, "select"] = None
    return rows


def strange(frame):
    """Rows with missing cells, with levels and numbers that were not fitted."""
    columns = [name for name in frame if name != "class"]
    asked = spoiled(frame.iloc[:90], np.random.default_rng(5), columns)
    asked.loc[0:5, "label`"] = "not known"
    asked.loc[0, 'a "quoted" column'] = 1e300
    asked.loc[1, 'a "quoted" column'] = -1e-300
    asked.loc[2, columns] = None
    return asked.assign(id=np.arange(len(asked)))[["id", *columns]]


def check_sql(model, database, frame):
    test_sql_export.check(model, database, frame, tolerance=TIGHT)


def fed(one, rows):
    if one.name == "X":
        return rows
    kind, missing = {"double": (float, np.nan), "string": (object, ""), "int64": (np.int64, -(2**63))}[one.type[7:-1]]
    return np.array([missing if pd.isna(cell) else cell for cell in rows[one.name]], dtype=kind)


def check_onnx(model, rows):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx").checker.check_model(graph := model.to_onnx(), full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, classes = model.predict_proba(rows), model.predict(rows)
    label, p = session.run(None, {one.name: fed(one, rows) for one in session.get_inputs()})
    np.testing.assert_allclose(p, expected, rtol=0, atol=TIGHT)
    assert label.tolist() == classes.tolist()


@pytest.mark.parametrize("name", MODELS)
def test_sql_has_the_probabilities(name, database, frame):
    model = MODELS[name]().fit(frame, "class")
    check_sql(model, database, strange(frame))


@pytest.mark.parametrize("name", MODELS)
def test_onnx_has_the_probabilities(name, frame):
    columns = [one for one in frame if one != "label`"]  # whose level "" is a missing cell in ONNX
    check_onnx(MODELS[name]().fit(frame[columns], "class"), strange(frame)[columns[:-1]])


@pytest.mark.parametrize("name", MODELS)
def test_classes_that_came_later_and_weights(name, frame):
    rows, weight = frame.drop(columns="label`"), np.random.default_rng(2).random(len(frame)) * 3
    early = (rows["class"] != "it's").to_numpy()
    model = MODELS[name]().fit(rows[early], "class", weight[early]).partial_fit(rows[~early], "class", weight[~early])
    asked = strange(frame).drop(columns="label`")
    check_sql(model, Database("duckdb", None), asked)
    check_onnx(model, asked.drop(columns="id"))
    model.forget(rows[early][:30], "class", weight[early][:30])
    check_sql(model, Database("sqlite", None), asked)


@pytest.mark.parametrize("name", MODELS)
def test_an_array_with_infinite_cells(name):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 300)
    X = rng.normal(y[:, None], 1.0, (300, 45))
    X[rng.random(X.shape) < 0.1] = np.nan
    model = MODELS[name]().fit(X, y)
    check_onnx(model, X)
    asked = pd.DataFrame(X, columns=list(map(str, range(45)))).assign(id=range(300)).iloc[:20]
    asked.iloc[3, 7] = np.inf
    found = Database("duckdb", None).ask(model.to_sql("duckdb", "rows", keep="id"), asked)
    assert [row[0] for row in found if row[1] is None] == [3]
    kept = np.delete(np.arange(20), 3)
    np.testing.assert_allclose(
        [row[2:] for row in found if row[1] is not None], model.predict_proba(X[kept]), atol=TIGHT
    )


def test_dates_are_read_as_their_parts():
    days = pd.date_range("2024-01-01", periods=200)
    frame = pd.DataFrame({"day": days, "y": np.where(days.day_of_week > 4, "weekend", "work")})
    model = tb.CountForest(9).fit(frame, "y")
    asked = frame[["day"]].astype(str).assign(id=range(200))
    found = Database("sqlite", None).ask(model.to_sql("sqlite", "rows", keep="id"), asked)
    np.testing.assert_allclose([row[2:] for row in found], model.predict_proba(frame[["day"]]), atol=TIGHT)
    pytest.importorskip("onnx")
    with pytest.raises(tb.ExportError, match="'day' is a date column"):
        model.to_onnx()


def test_a_model_without_columns_or_classes():
    model = tb.CountForest(3).fit({"x": [1, 1, 1], "y": ["a", "b", "b"]}, "y")
    asked = pd.DataFrame({"x": [1.0, 2.0], "id": [0, 1]})
    check_sql(model, Database("duckdb", None), asked)
    with pytest.raises(tb.DataError, match="no rows and no classes"):
        model.without_rows().to_sql("duckdb", "rows")


def test_edges_out_of_range_raise(frame):
    rows = {"x": 1e110 * (1 + np.arange(40)), "y": np.arange(40) % 2}
    with pytest.raises(tb.ExportError, match="column 'x' has a cut point of"):
        tb.CountForest(3).fit(rows, "y").to_sql("duckdb", "rows")
