"""What ``columns=`` may say: families, words, the rest; and what is said of what it may not."""

import warnings

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
import tallybayes.models.inputs.columns
from tallybayes.data.table import open_table
from tallybayes.errors import DataError
from tallybayes.models.inputs.columns import read_columns
from tallybayes.warnings import DataSourceWarning

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 120)
FRAME = pd.DataFrame(
    {
        "eggs": RNG.poisson(3 + Y),
        "weight": np.exp(RNG.normal(Y)),
        "sky": RNG.choice(["sun", "rain"], 120),
        "id": np.arange(120),
    }
)


def test_the_rest():
    model = tb.NaiveBayes({"eggs": tb.Poisson(), ...: "auto"}).fit(FRAME, Y)
    assert model.columns_ == {
        "eggs": tb.Poisson(),
        "weight": tb.Gaussian(),
        "id": tb.Gaussian(),
        "sky": tb.Categorical(),
    }
    assert model.dropped_columns_ == {}
    first = tb.NaiveBayes({...: "auto", "eggs": tb.Poisson()}).fit(FRAME, Y)
    assert first.columns_ == model.columns_
    np.testing.assert_array_equal(first.predict_proba(FRAME), model.predict_proba(FRAME))
    every = tb.NaiveBayes({"sky": tb.Categorical(), ...: tb.Gaussian()}).fit(FRAME, Y)
    assert every.columns_ == {"sky": tb.Categorical(), **dict.fromkeys(["eggs", "weight", "id"], tb.Gaussian())}
    chosen = tb.NaiveBayes({"eggs": tb.Gaussian(), ...: "suggest"}).fit(FRAME, Y)
    assert chosen.columns_ == {"eggs": tb.Gaussian(), "weight": tb.LogNormal(), "sky": tb.Categorical()}
    assert set(chosen.dropped_columns_) == {"id"}


def test_words_for_single_columns():
    model = tb.NaiveBayes({"eggs": "suggest", "weight": "auto", ("id", "sky"): "auto"}).fit(FRAME, Y)
    assert model.columns_ == {
        "eggs": tb.Poisson(),
        "weight": tb.Gaussian(),
        "id": tb.Gaussian(),
        "sky": tb.Categorical(),
    }
    assert tb.NaiveBayes({0: "suggest", 1: "auto"}).fit(FRAME[["eggs", "weight"]].to_numpy(), Y).columns_ == {
        0: tb.Poisson(),
        1: tb.Gaussian(),
    }


def test_a_mapping_without_the_rest_leaves_it_out():
    model = tb.NaiveBayes({"eggs": tb.Poisson()}).fit(FRAME, Y)
    assert model.columns_ == {"eggs": tb.Poisson()}
    assert model.dropped_columns_ == dict.fromkeys(["weight", "sky", "id"], "columns= does not name it")


def test_all_models_that_have_columns():
    blocks = {"x": RNG.normal(size=(120, 2)), "eggs": FRAME["eggs"].to_numpy()}
    joint = {("weight", "id"): tb.MultivariateGaussian(), ...: "auto"}
    model = tb.NaiveBayes(joint).fit(FRAME, Y)
    assert model.columns_[("weight", "id")] == tb.MultivariateGaussian()
    assert tb.NaiveBayes(model.columns_).fit(FRAME, Y).tally_ == model.tally_
    assert tb.NaiveBayes({"eggs": "auto", ...: "suggest"}).fit(blocks, Y).columns_ == {
        "eggs": tb.Gaussian(),
        "x": tb.Gaussian(),
    }
    mixture = tb.Mixture(2, {"eggs": tb.Poisson(), ...: "auto"}, random_state=0, tol=0.1).fit(FRAME)
    assert mixture.columns_["eggs"] == tb.Poisson()
    chain = tb.HiddenMarkovModel(columns={"eggs": tb.Poisson(), ...: "auto"}).fit([FRAME], [Y])
    assert chain.columns_["weight"] == tb.Gaussian()
    cells = FRAME.assign(y=Y.astype(str))[["y", "sky", "eggs", "weight"]]
    edges = [("y", "sky"), ("y", "eggs"), ("y", "weight")]
    network = tb.BayesianNetwork(edges, columns={"eggs": tb.Poisson(), "sky": "auto", ...: "auto"}).fit(cells)
    assert network.columns_ == {
        "y": tb.Categorical(),
        "sky": tb.Categorical(),
        "eggs": tb.Poisson(),
        "weight": tb.Gaussian(),
    }
    with pytest.raises(DataError, match="expected 'auto', a family"):
        tb.BayesianNetwork(edges, columns="suggest").fit(cells)


def test_the_rest_in_a_file(tmp_path):
    model = tb.NaiveBayes({"eggs": tb.Poisson(), ...: "suggest"}).fit(FRAME, Y)
    model.save(tmp_path / "model")
    back = tb.load(tmp_path / "model")
    assert back.columns == {"eggs": tb.Poisson(), ...: "suggest"}
    assert back.columns_ == model.columns_
    assert back.dropped_columns_ == model.dropped_columns_


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (tb.Poisson, r"Write tb\.Poisson\(\), with brackets"),
        ("poisson", r"Write tb\.Poisson\(\)\."),
        ("tb.Poisson()", r"Write tb\.Poisson\(\)\."),
        ("gausian", r"Write tb\.Gaussian\(\)\."),
        ("lognormal", r"Write tb\.LogNormal\(\)\."),
        ("sugest", "Write 'suggest'"),
        ("xyz", r"Families are .*tb\.Gaussian\(\)"),
        (3, r"expected .*'auto'"),
        (None, r"expected .*'auto'"),
    ],
)
def test_what_is_no_family(wrong, message):
    for columns in (wrong, {"eggs": wrong}, {"eggs": tb.Poisson(), ...: wrong}):
        with pytest.raises(DataError, match=message):
            tb.NaiveBayes(columns).fit(FRAME, Y)
    if wrong is not None:
        with pytest.raises(DataError, match=message):
            tb.BayesianNetwork([("sky", "eggs")], columns={"eggs": wrong}).fit(FRAME[["sky", "eggs"]])


def test_names_that_are_not_there():
    with pytest.raises(DataError, match="eggz"):
        tb.NaiveBayes({"eggz": tb.Poisson(), ...: "auto"}).fit(FRAME, Y)
    with pytest.raises(DataError, match="'eggs' has two families"):
        tb.NaiveBayes({"eggs": tb.Poisson(), ("eggs", "id"): "auto"}).fit(FRAME, Y)


# ---- Columns whose names are numbers ---------------------------------------------------------------------------------

NUMBERED = pd.DataFrame({3: [1.0, 2.0, 3.0, 4.0, 2.5], 0: [3, 1, 2, 5, 0], 1: list("uvuvu"), 2: list("abaab")})
NAMED = NUMBERED.rename(columns=str)


def test_frames_with_numbers_as_names(tmp_path):
    model, expected = tb.NaiveBayes().fit(NUMBERED, 2), tb.NaiveBayes().fit(NAMED, "2")
    answers = expected.predict(NAMED).tolist()
    assert model.predict(NUMBERED).tolist() == answers
    assert model.score(NUMBERED, 2) == expected.score(NAMED, "2")
    assert model.partial_fit(NUMBERED, 2).forget(NUMBERED, 2).predict(NUMBERED).tolist() == answers
    assert tb.evaluate(model, NUMBERED, 2, by=1).accuracy == tb.evaluate(expected, NAMED, "2", by="1").accuracy
    found = tb.cross_validate(tb.NaiveBayes(), NUMBERED, 2, folds=2)
    assert found.accuracy == tb.cross_validate(tb.NaiveBayes(), NAMED, "2", folds=2).accuracy
    model.save(tmp_path / "model")
    assert tb.load(tmp_path / "model").predict(NUMBERED).tolist() == answers


def test_keys_are_names_where_names_are_numbers():
    model = tb.NaiveBayes({0: tb.Poisson(), 3: tb.Gaussian()}).fit(NUMBERED, 2)
    assert model.columns_ == {0: tb.Poisson(), 3: tb.Gaussian()}
    for key in (4, -1):  # would be positions among names that are strings
        with pytest.raises(tb.DataError, match=f"no column {key} "):
            tb.NaiveBayes({key: tb.Gaussian()}).fit(NUMBERED, 2)
    with pytest.raises(tb.DataError, match="no column 9 "):
        tb.NaiveBayes().fit(NUMBERED, 9)


@pytest.mark.parametrize(
    ("column", "value", "columns"),
    [
        ("count", -1.0, "suggest"),
        ("count", 1.5, {"price": "suggest", ...: "suggest"}),
        ("price", 0.0, {"price": "suggest", ...: "suggest"}),
        ("flag", 2.0, "suggest"),
    ],
)
def test_a_family_chosen_from_a_sample_that_does_not_support_a_later_value(column, value, columns, tmp_path):
    rng, n = np.random.default_rng(0), 55_000
    y = rng.integers(0, 2, n)
    price, flag = np.exp(rng.normal(y)), (rng.random(n) < 0.2 + 0.5 * y).astype(float)
    rows = pd.DataFrame({"count": rng.poisson(2 + 2 * y).astype(float), "price": price, "flag": flag, "y": y})
    before = {"count": tb.Poisson(), "price": tb.LogNormal(), "flag": tb.Bernoulli()}
    rows.to_parquet(tmp_path / "rows.parquet")
    assert tb.NaiveBayes(columns).fit(tmp_path / "rows.parquet", "y").columns_ == before
    rows.assign(number=range(n)).to_parquet(tmp_path / "all.parquet")
    sampled = set(tb.table(tmp_path / "all.parquet").sample()[0]["number"].to_pylist())
    place = next(k for k in range(n) if k not in sampled)
    rows.loc[place, column] = value
    rows.to_parquet(tmp_path / "rows.parquet")
    model = tb.NaiveBayes(columns)
    found = rf"column '{column}': .* chosen from a sample .*found {value}.* row {place}"
    with pytest.warns(DataSourceWarning, match=found):
        model.fit(tmp_path / "rows.parquet", "y")
    assert model.columns_ == before | {column: tb.Gaussian()}
    assert model.columns == columns
    assert model.tally_[column].weight.sum() == n
    assert model.forget(rows[:10], "y").tally_["y"].table.sum() == n - 10
    fixed = tb.NaiveBayes({column: before[column], ...: "suggest"})
    with pytest.raises(DataError, match=rf"found {value} in .*rows\.parquet, row {place}, column '{column}'; expected"):
        fixed.fit(tmp_path / "rows.parquet", "y")


@pytest.mark.parametrize("n", [500, 4000])
def test_many_named_columns_take_time_of_their_number_not_its_square(n, monkeypatch):
    names = [f"c{k}" for k in range(n)]
    columns = dict.fromkeys([0, *names[1:]], tb.Gaussian())
    calls = []
    for name in ("is_number", "dates_of"):
        examined = getattr(tallybayes.models.inputs.columns, name)
        monkeypatch.setattr(
            f"tallybayes.models.inputs.columns.{name}", lambda x, examined=examined: calls.append(x) or examined(x)
        )
    found = read_columns(columns, open_table(dict.fromkeys(names, np.arange(4.0))), [])
    assert found.blocks == [(tuple(names), tb.Gaussian())]
    assert len(calls) <= 5 * n  # the square before


@pytest.mark.parametrize("model", [tb.NaiveBayes, tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
@pytest.mark.parametrize("key", ["customer", 1, ("customer",)])
def test_columns_are_ignored(model, key):
    sky, y = ["sun", "fog"] * 15, ["a", "a", "b"] * 10
    rows = {"x": RNG.normal(size=30), "customer": [f"c{k}" for k in range(30)], "sky": sky, "y": y}
    others = {name: column for name, column in rows.items() if name != "customer"}
    fitted = model(columns={key: "ignore", ...: "auto"}).fit(rows, "y")
    assert fitted.dropped_columns_ == {"customer": "columns= ignores it"}
    assert set(fitted.columns_) == {"x", "sky"}
    alone = model().fit(others, "y").predict_proba(others)
    np.testing.assert_array_equal(fitted.predict_proba(others), alone)
    np.testing.assert_array_equal(fitted.partial_fit(rows, "y").forget(others, "y").predict_proba(rows), alone)
    assert "columns= ignores it: customer" in repr(fitted)


def test_columns_of_mixtures_and_sequences_are_ignored():
    rows = {"x": RNG.normal(size=30), "customer": [f"c{k}" for k in range(30)]}
    mixture = tb.Mixture(columns={"customer": "ignore", ...: "auto"}, random_state=0).fit(rows)
    assert set(mixture.columns_) == {"x"}
    chain = tb.HiddenMarkovModel(columns={"customer": "ignore", ...: "auto"}).fit(
        [pd.DataFrame(rows)], [["u", "v"] * 15]
    )
    assert set(chain.columns_) == {"x"}


def test_ignored_columns_may_have_any_type():
    rows = {"x": [1.0, 2.0, 3.0], "when": np.array(["2024-01-01"] * 3, "M8[D]"), "tags": [["u"], ["v"], ["w"]]}
    y = ["a", "b", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = tb.NaiveBayes({"when": "ignore", "tags": "ignore", ...: tb.Gaussian()}).fit(pd.DataFrame(rows), y)
    assert set(fitted.columns_) == {"x"}
    rest = tb.NaiveBayes({"x": tb.Gaussian(), ...: "ignore"}).fit({"x": rows["x"], "z": [1, 2, 3]}, y)
    assert rest.dropped_columns_ == {"z": "columns= does not name it"}


def test_ignored_columns_that_are_an_error():
    rows, y = {"x": [1.0, 2.0, 3.0], "z": [1, 2, 3]}, ["a", "b", "b"]
    with pytest.raises(DataError, match="no column 'v'"):
        tb.NaiveBayes({"v": "ignore", ...: "auto"}).fit(rows, y)
    with pytest.raises(DataError, match="column 'x' has two families"):
        tb.NaiveBayes({"x": "ignore", 0: tb.Gaussian()}).fit(rows, y)
    with pytest.raises(DataError, match=r"'z' in columns= is None; expected .* 'suggest' or 'ignore'"):
        tb.NaiveBayes({"z": None, ...: "auto"}).fit(rows, y)
    with pytest.raises(DataError, match=r"columns is 'ignore'; expected 'auto', 'suggest', a family, or a mapping"):
        tb.NaiveBayes("ignore").fit(rows, y)
