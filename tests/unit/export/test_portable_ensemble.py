"""Ensembles in SQL and ONNX have the probabilities and classes of the model in memory."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.data.table import open_table
from tallybayes.models.ensemble.ensemble_spec import EnsembleSpec, MemberSpec, TemperatureSpec
from tallybayes.models.ensemble.feature_views import NumericBlock, RawColumns
from tests.unit.export import test_sql_export
from tests.unit.export.test_portable_trees import check_onnx
from tests.unit.export.test_sql_export import QUICK, Database, spoiled

pytestmark = pytest.mark.filterwarnings("ignore")
TIGHT = 1e-11


def rows(n=400):
    """Columns of all kinds; missing cells of "a" depend on the class."""
    rng = np.random.default_rng(1)
    target = rng.choice(["no", "it's", 'q"'], n)
    number = (target == "no") * 2.0
    frame = pd.DataFrame(
        {
            "a": rng.normal(number),
            "count": rng.poisson(1 + number),
            "select": rng.choice(["u", "V", "v'"], n),
            "yes": pd.array(rng.random(n) < 0.3 + number / 5, dtype="boolean"),
            "class": target,
        }
    )
    frame.loc[(target == "no") & (rng.random(n) < 0.4), "a"] = np.nan
    frame.loc[rng.random(n) < 0.2, "select"] = None
    return frame


def strange(frame):
    columns = [name for name in frame if name != "class"]
    asked = spoiled(frame.iloc[:60], np.random.default_rng(5), columns)
    asked.loc[0:3, "select"] = "not known"
    asked.loc[4, columns] = None
    return asked.assign(id=np.arange(len(asked)))[["id", *columns]]


@pytest.fixture(scope="module")
def frame():
    return rows()


NAMES = ("a", "count", "select", "yes")
BLOCK = NumericBlock((("a", 0.5), ("count", 1.0)), ("a", "select"), (("select", ("u", "V")), ("yes", (True,))))
MEMBERS = {  # the view and the parameters
    "NaiveBayes": (RawColumns(NAMES, ("a",)), {"columns": {"count": tb.Poisson(), ...: "auto"}}),
    "AveragedOneDependence": (RawColumns(NAMES, ("a", "select")), {}),
    "TreeAugmentedNaiveBayes": (RawColumns(NAMES, ("a",)), {"bins": 4}),
    "GaussianDiscriminant": (BLOCK, {"covariance": "tied"}),
    "CountForest": (RawColumns(NAMES[::-1], ("a",)), {"n_trees": 6}),
    "CountBoosting": (RawColumns(NAMES), {"max_trees": 5, "max_depth": 3}),
}


def ensemble(frame, names):
    """An ensemble with calibrated members, each with its temperature, contamination and weight."""
    classes = tuple(sorted(frame["class"].unique()))
    specs = []
    for k, name in enumerate(names):
        view, parameters = MEMBERS[name]
        calibration = TemperatureSpec(0.7 + k / 5, 0.01 * (k % 3), classes, (0.5, 0.3, 0.2))
        trees = None
        if name.startswith("Count"):
            table = view.apply(open_table(frame), "class")
            trees = getattr(tb, name)(**parameters).fit(table, "class").structure_
        specs.append(MemberSpec(name, name, view, name, parameters, calibration, 0.2 + k / 10, trees))
    return tb.AutoClassifier(spec=EnsembleSpec(tuple(specs))).fit(frame, "class")


@pytest.fixture(scope="module")
def model(frame):
    return ensemble(frame, MEMBERS)


@pytest.mark.parametrize("dialect", QUICK)
def test_sql_of_all_members(dialect, model, frame, request):
    test_sql_export.check(model, Database(dialect, request), strange(frame), TIGHT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [["CountForest"], ["NaiveBayes", "GaussianDiscriminant"], ["TreeAugmentedNaiveBayes"]]
)
def test_members_on_spark(names, frame, request):
    test_sql_export.check(ensemble(frame, names), Database("spark", request), strange(frame), TIGHT)


def test_onnx_has_the_probabilities(model, frame):
    check_onnx(model, strange(frame).drop(columns="id"))


@pytest.mark.parametrize("name", MEMBERS)
def test_single_members(name, frame, request):
    model = ensemble(frame, [name])
    test_sql_export.check(model, Database("sqlite", request), strange(frame), TIGHT)
    check_onnx(model, strange(frame).drop(columns="id"))


def test_extreme_probabilities_are_bounded_before_calibration(frame):
    rows = frame.assign(a=frame["a"].fillna(0.0) * 1e-5 + (frame["class"] == "no"))
    model = ensemble(rows, ["NaiveBayes", "GaussianDiscriminant"])
    asked = strange(rows).assign(a=np.linspace(-5, 5, 60))
    assert (
        min(
            member.model.predict_log_proba(member.spec.view.apply(open_table(asked))).min() for member in model.members_
        )
        < -700
    )
    test_sql_export.check(model, Database("duckdb", None), asked, TIGHT)


def test_a_selected_ensemble_of_an_array():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5)) + y[:, None]
    X[(rng.random(X.shape) < 0.1) & (y[:, None] > 0)] = np.nan
    model = tb.AutoClassifier().fit(X, y)
    check_onnx(model, X)
    asked = pd.DataFrame(X, columns=list("01234")).assign(id=range(300)).iloc[:50]
    found = Database("sqlite", None).ask(model.to_sql("sqlite", "rows", keep="id"), asked)
    np.testing.assert_allclose([row[2:] for row in found], model.predict_proba(X[:50]), rtol=0, atol=TIGHT)


def test_dates_are_read_as_their_parts(frame):
    rows = frame.assign(day=pd.date_range("2024-01-01", periods=len(frame)))
    model = tb.AutoClassifier().fit(rows, "class")
    asked = rows.drop(columns="class").iloc[:30].assign(id=range(30), day=rows["day"][:30].astype(str))
    found = Database("sqlite", None).ask(model.to_sql("sqlite", "rows", keep="id"), asked)
    np.testing.assert_allclose([row[2:] for row in found], model.predict_proba(rows[:30]), rtol=0, atol=TIGHT)
