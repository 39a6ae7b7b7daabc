"""scikit-learn's attributes of the features, however a model was fitted; and one row, however it is given."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallybayes as tb

N = 60
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
Y = pd.Series(np.where(X["a"] + 0.3 * RNG.normal(size=N) > 0, "yes", "no"), name="t")
ROWS = X.assign(t=Y)
MODELS = {
    "naive Bayes": tb.NaiveBayes(),
    "discriminant": tb.GaussianDiscriminant(),
    "nearest mean": tb.NearestClassMean(),
    "one-dependence": tb.AveragedOneDependence(),
    "tree": tb.TreeAugmentedNaiveBayes(),
    "chosen": lambda X, y: tb.AutoClassifier().fit(X, y),
    "mixture": tb.Mixture(2, random_state=0, n_init=1, max_iter=5, tol=1e9),
    "network": tb.BayesianNetwork({"t": [], "a": ["t"], "b": ["t"]}),
    "hidden Markov": tb.HiddenMarkovModel(),
    "regression": tb.LinearRegression(),
}
SOURCES = {
    "pandas": lambda rows, _: rows,
    "Polars": lambda rows, _: pl.from_pandas(rows),
    "Arrow": lambda rows, _: pa.Table.from_pandas(rows),
    "a dictionary": lambda rows, _: {name: rows[name].to_numpy() for name in rows},
    "a list of dictionaries": lambda rows, _: rows.to_dict("records"),
    "CSV": lambda rows, folder: written(rows, folder),
    "batches": lambda rows, _: tb.table(lambda: iter([rows])),
}


def written(rows, folder):
    rows.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def fitted(kind, rows, target="t"):
    """A model of its kind, whose target is a column of the rows or apart."""
    model = MODELS[kind]
    if kind == "chosen":
        return model(rows, target)
    model = copy.deepcopy(model)
    if kind in ("mixture", "network"):
        return model.fit(rows)
    return model.fit(rows, target)


def data(kind):
    if kind == "mixture":
        return X
    return X.assign(t=RNG.normal(size=N)) if kind == "regression" else ROWS


def features(kind):
    return ["t", "a", "b"] if kind == "network" else ["a", "b"]


def check(model, names):
    assert model.n_features_in_ == len(names)
    assert model.feature_names_in_.tolist() == names
    assert model.feature_names_in_.dtype == object


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", MODELS)
def test_of_every_source(kind, source, tmp_path):
    if kind == "hidden Markov" and source in ("CSV", "batches"):
        pytest.skip("steps of files need the column of their sequence")
    check(fitted(kind, SOURCES[source](data(kind), tmp_path)), features(kind))


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind not in ("mixture", "network", "hidden Markov")])
def test_of_a_target_apart_and_of_arrays(kind):
    y = data(kind)["t"]
    check(fitted(kind, X, y), ["a", "b"])
    check(fitted(kind, {"a": X["a"].to_numpy(), "b": X["b"].to_numpy()}, y), ["a", "b"])
    array = fitted(kind, X.to_numpy(), y)
    assert array.n_features_in_ == 2
    assert not hasattr(array, "feature_names_in_")


@pytest.mark.parametrize("kind", MODELS)
def test_of_models_that_were_loaded_copied_and_merged(kind, tmp_path):
    model = fitted(kind, data(kind))
    model.save(tmp_path / "model.tally")
    check(tb.load(tmp_path / "model.tally"), features(kind))
    check(copy.deepcopy(model), features(kind))
    if kind not in ("mixture",):
        check(model + model, features(kind))
    if hasattr(model, "fit_tally") and kind != "chosen":
        check(copy.deepcopy(MODELS[kind]).fit_tally(model.tally_), features(kind))


METHODS = (
    "predict predict_proba predict_log_proba score_samples explain show_work fill predict_interval decide predictive"
)


@pytest.mark.parametrize("kind", MODELS)
def test_one_row_in_every_form(kind):
    model = fitted(kind, data(kind))
    frame, row = X[:1], X.iloc[0]
    forms = [row.to_dict(), {name: [cell] for name, cell in row.items()}, row]
    asked = 0
    for name in METHODS.split():
        method = getattr(model, name, None) if (kind, name) != ("hidden Markov", "impute") else None  # as what came
        arguments = ["t"] if kind == "network" and name in ("predict", "predict_proba") else []
        try:
            expected = method(frame, *arguments)
        except (TypeError, tb.TallybayesError):  # it is not there, or says no such thing
            continue
        for form in forms:
            found, asked = method(form, *arguments), asked + 1
            if name == "impute":
                found, expected = ({name: np.asarray(one[name]) for name in frame} for one in (found, expected))
            assert repr(found) == repr(expected), name
    assert asked >= 2 * len(forms)


def test_a_row_with_fewer_cells_and_one_more():
    model = tb.NaiveBayes().fit(ROWS, "t")
    assert model.predict({"a": 1.0}).tolist() == model.predict([{"a": 1.0}]).tolist()
    assert model.partial_fit({"a": 1.0, "b": 2.0, "t": "yes"}, "t").n_rows_ == N + 1
    assert model.partial_fit(ROWS.iloc[0], "t").n_rows_ == N + 2
    assert model.forget(ROWS.iloc[0], "t").n_rows_ == N + 1


def test_evidence_of_a_network_is_a_row_too():
    network = fitted("network", ROWS.assign(a=np.where(ROWS["a"] > 0, "high", "low")))
    expected = network.query("t", {"a": "low"})["yes"]
    for given in ({"a": ["low"]}, pd.Series({"a": "low"})):
        assert network.query("t", given)["yes"] == expected
        assert network.probability(given) == network.probability({"a": "low"})
        assert network.most_probable(given) == network.most_probable({"a": "low"})
        assert len(network.sample(3, given, random_state=0)) == 3


def test_a_misspelt_key_of_a_row_is_no_missing_cell():
    renamed = X.rename(columns={"a": "alpha", "b": "beta"})
    for model in (tb.NaiveBayes().fit(renamed.assign(t=Y), "t"), tb.NaiveBayes().fit(renamed, Y)):
        for row in ({"alhpa": 1.0, "beta": 2.0}, [{"alhpa": 1.0, "beta": 2.0}]):
            with pytest.raises(tb.DataError, match=r"no column 'alpha' .*\n    Did you mean 'alhpa'"):
                model.predict(row)
        assert len(model.predict([{"alpha": 1.0}])) == 1


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "network"])  # rows of a network may lack nodes
def test_a_misspelt_column_is_answered_with_the_closest(kind, apart, tmp_path):
    rows = data(kind).rename(columns={"a": "alpha", "b": "beta"})
    model = fitted(kind, rows.drop(columns="t"), rows["t"]) if apart and "t" in rows else fitted(kind, rows)
    wrong = rows[["alpha", "beta"]].rename(columns={"alpha": "alhpa"})
    for form in (wrong, wrong.iloc[0], wrong.iloc[0].to_dict(), written(wrong, tmp_path)):
        if not (kind == "hidden Markov" and form is not wrong):  # steps of files need the column of their sequence
            with pytest.raises(tb.DataError, match=r"(?s)alpha.*\n *Did you mean 'alhpa'\?$"):
                model.predict(form)


def test_one_row_that_lacks_a_key_is_filled():
    for model in (tb.AveragedOneDependence(), tb.TreeAugmentedNaiveBayes()):
        filled = model.fit(ROWS, "t").impute({"a": 1.0})
        assert filled["a"].tolist() == [1.0]
        assert np.isfinite(np.asarray(filled["b"], dtype=float)).tolist() == [True]


def test_a_misspelt_node_of_a_row_is_not_unobserved():
    rows = {"sprinkler": ["on", "off", "on"], "sprinkled": [1.0, 0.0, 2.0], "grass": ["wet", "dry", "wet"]}
    network = tb.BayesianNetwork({"grass": ["sprinkler"], "sprinkled": ["sprinkler"]}).fit(rows)
    for row in ({"gras": "wet"}, [{"gras": "wet"}]):
        with pytest.raises(tb.DataError, match=r"no column 'grass' .*\n    Did you mean 'gras'\?"):
            network.predict(row, "sprinkler")
    assert network.predict({"sprinkle": 3.0, "grass": "wet"}, ["sprinkler", "sprinkled"])["sprinkler"].tolist() == [
        "on"
    ]


def test_numbers_that_are_texts_are_converted_by_the_user():
    with pytest.raises(tb.DataError, match=r"column 'a' is partly '1.5' \(str\); expected numbers.\n.*pd.to_numeric"):
        tb.NaiveBayes().fit(X, Y).predict(X.assign(a="1.5"))
    with pytest.raises(tb.DataError, match=r"column 'a' is partly 'much' \(str\); expected numbers.\n.*Categorical"):
        tb.NaiveBayes().fit(X, Y).predict(X.assign(a="much"))
