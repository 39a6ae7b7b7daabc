"""A model as a graph of ONNX says in onnxruntime what it says in memory."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tests.unit.export.test_sql_export import FAMILIES, WORDS, mixed, strange  # noqa: F401

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def asked_of(model, rows):
    """The labels and probabilities that the graph gives, which other programs find sound."""
    graph = model.to_onnx()
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    return session.run(None, {one.name: fed(one, rows) for one in session.get_inputs()})


def fed(one, rows):
    if one.name == "X":
        return np.asarray(rows, dtype=np.float64)
    cells = [None if pd.isna(cell) else cell for cell in rows[one.name]]
    if "double" in one.type:
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    if "string" in one.type:
        return np.array(["no level" if cell is None else cell for cell in cells], dtype=object)
    return np.array([-(2**63) if cell is None else int(cell) for cell in cells], dtype=np.int64)


def check(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cells that cannot be, and rows that no class allows
        expected, told = model.predict_proba(rows), model.predict(rows)
    label, p = asked_of(model, rows)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-9)
    assert label.tolist() == told.tolist()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["mle", "map", "unbiased", "bayes"])
def test_every_family_under_every_estimate(estimate, mixed):  # noqa: F811
    columns = {name: family for name, family in FAMILIES.items() if name != "named"}
    model = tb.NaiveBayes({**columns, ("w 1", "w 2", "w 3"): WORDS[estimate]}, estimate=estimate)
    check(model.fit(mixed, "class"), strange(mixed))


@pytest.mark.parametrize("unseen", ["missing", "smooth"])
def test_an_empty_string_is_missing(unseen):
    rows = {"a": ["x", None, "y", "x"], "b": [1, 2, None, 1], "y": [True, False, True, False]}
    columns = {"a": tb.WithMissing(tb.Categorical()), "b": tb.Categorical()}
    model = tb.NaiveBayes(columns, unseen=unseen).fit(rows, "y")
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    given = {"a": np.array(["x", "", "new"]), "b": np.array([1, -(2**63), 7])}
    label, p = session.run(None, given)
    asked = {"a": ["x", None, "new"], "b": [1, None, 7]}
    np.testing.assert_allclose(p, model.predict_proba(asked), atol=1e-12)
    assert label.dtype == bool
    assert label.tolist() == model.predict(asked).tolist()


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("covariance", list(tb.GaussianDiscriminant.families))
@pytest.mark.parametrize("estimate", ["mle", "bayes"])
def test_discriminants_with_missing_cells(covariance, estimate):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) + y[:, None]
    if estimate == "bayes":
        X = np.insert(X, 2, 7.0, axis=1)  # a column that says nothing
    model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, y)
    asked = X[:50].copy()
    asked[rng.random(asked.shape) < 0.2] = np.nan
    asked[0] = 1e6
    check(model, asked)


@pytest.mark.parametrize("names", [["label`"], ["label`", "number", "member", "named", "cut", "size", "tied"]], ids=len)
@pytest.mark.parametrize("kind", [tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
def test_pairs_of_columns_with_missing_cells(kind, names, mixed):  # noqa: F811
    model = kind(calibration="temperature").fit(mixed[[*names, "class"]], "class")
    asked = strange(mixed)[names]
    asked.loc[20, names] = None
    for k, name in enumerate(names):  # each is missing beside others, and alone known
        asked.loc[21 + k :: 29, name] = None
        if len(names) > 1:
            asked.loc[22 + k :: 31, names[:k] + names[k + 1 :]] = None
    check(model, asked)


@pytest.mark.parametrize("kind", [tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
def test_pairs_of_an_array(kind):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 300)
    X = rng.normal(y[:, None], 1.0, (300, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    check(kind().fit(X, y), X)


def test_rows_with_too_many_patterns_have_no_answer_where_they_lack_a_cell():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(100, 21)), np.arange(100) % 2
    model = tb.GaussianDiscriminant("tied").fit(X, y)
    asked = X[:4].copy()
    check(model, asked)
    asked[0, 3] = np.nan
    _, p = asked_of(model, asked)
    assert np.isnan(p).all(axis=1).tolist() == [True, False, False, False]


def test_rows_that_are_refused_in_memory_are_not_answered():
    rows = {"n": [1, 2, 3], "w": [1, 0, 2], "v": [0, 1, 3], "y": ["p", "q", "p"]}
    model = tb.NaiveBayes({"n": tb.Poisson(), ("w", "v"): tb.Multinomial()}).fit(rows, "y")
    given = pd.DataFrame({"n": [1.0, np.inf, 1.0, 1.0], "w": [1.0, 1.0, np.nan, -1.0], "v": [1.0] * 4})
    _, p = asked_of(model, given)
    assert np.isnan(p).all(axis=1).tolist() == [False, True, True, True]


def test_temperature_impossible_classes_and_names_that_are_taken(mixed):  # noqa: F811
    rows = mixed.rename(columns={"select": "label", "size": "probabilities"})
    columns = {"label": tb.Poisson(), "probabilities": tb.LogNormal()}
    prior = {"no": 0.5, "it's": 0.5, "p(no)": 0.0, 'q"\\': 0.0}
    model = tb.NaiveBayes(columns, class_prior=prior).fit(rows, "class")
    check(model, rows)
    model.calibrate(rows[rows["class"].isin(["no", "it's"])], "class")
    assert model.calibration_.contamination > 0
    check(model, rows)
    assert [output.name for output in model.to_onnx().graph.output] == ["label_", "probabilities_"]


def test_calibration_by_steps(mixed):  # noqa: F811
    columns = {name: FAMILIES[name] for name in ("select", "number", "tied")}
    model = tb.NaiveBayes(columns, calibration="isotonic").fit(mixed, "class")
    check(model, strange(mixed))
    _, p = asked_of(model, mixed.iloc[:2].assign(tied=[np.inf, 0.0]))
    assert np.isnan(p).all(axis=1).tolist() == [True, False]


def test_what_cannot_be_written_is_refused_by_name(monkeypatch):
    rows = {"x": ["a", "b", "a", "b"], "y": [0, 1, 0, 1]}
    model = tb.NaiveBayes(unseen="error").fit(rows, "y")
    with pytest.raises(tb.ExportError, match=r"unseen is 'error'(.|\n)*reestimate\(unseen='missing'\)"):
        model.to_onnx()
    with pytest.raises(tb.ExportError, match="reads no column"):
        tb.NaiveBayes({}).fit(rows, "y").to_onnx()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install onnx"):
        model.reestimate(unseen="missing").to_onnx()


@pytest.mark.parametrize(
    "model", [tb.NaiveBayes(unseen="smooth"), tb.NaiveBayes({"word": tb.WithMissing(tb.Categorical())})]
)
def test_an_empty_string_that_is_a_level_is_no_missing_cell(model):
    rows = {"word": ["", "a", "b", None], "y": list("pqpq")}
    with pytest.raises(tb.ExportError, match=r"column 'word' has the level '', which represents a missing cell"):
        model.fit(rows, "y").to_onnx()
    plain = tb.NaiveBayes().fit(rows, "y")  # of which a level that is not known is as good as a missing cell
    session = onnxruntime.InferenceSession(plain.to_onnx().SerializeToString())
    _, p = session.run(None, {"word": np.array(["", "a", "?"], dtype=object)})
    np.testing.assert_allclose(p, plain.predict_proba({"word": ["", "a", None]}), atol=1e-12)
