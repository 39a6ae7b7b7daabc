"""Frames as people have them: intervals, labels in a frame, empty columns, other orders, rows without names."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import tallybayes as tb

N = 12
X = np.arange(N) * 1.0
Y = np.array(["a", "b"])[np.arange(N) % 2]
FRAME = pd.DataFrame({"x": X, "k": list("uvw") * 4})
KINDS = {"pandas": pd.DataFrame, "Polars": pl.DataFrame, "Arrow": pa.table}


# ---- Intervals ------------------------------------------------------------------------------------------------------


def test_intervals_are_labels_in_their_order():
    bins = pd.cut(X[::-1], [-1, 3, 7, 20])
    for column in (bins, pd.Series(list(bins), dtype=object)):
        frame = pd.DataFrame({"bin": column, "k": list("uvw") * 4})
        model = tb.NaiveBayes().fit(frame, Y)
        as_text = tb.NaiveBayes().fit(frame.assign(bin=[str(value) for value in bins]), Y)
        np.testing.assert_array_equal(model.predict_proba(frame), as_text.predict_proba(frame))
        assert set(model.tally_.domains["bin"].levels) == {"(-1, 3]", "(3, 7]", "(7, 20]"}
    ordered = tb.NaiveBayes().fit(pd.DataFrame({"bin": bins}), Y)
    assert ordered.tally_.domains["bin"].levels == ("(-1, 3]", "(3, 7]", "(7, 20]")  # not as they were met
    network = tb.BayesianNetwork({"bin": ["y"]}).fit(pd.DataFrame({"bin": bins, "y": Y}))
    assert network.predict(pd.DataFrame({"y": Y[:1]}), "bin")[0] in ordered.tally_.domains["bin"].levels
    assert tb.NaiveBayes().fit(FRAME, bins).predict(FRAME)[0] in ordered.tally_.domains["bin"].levels


def test_intervals_are_no_numbers():
    with pytest.raises(ValueError, match=r"(?s)'bin'.*bin\.mid"):
        tb.GaussianDiscriminant().fit(pd.DataFrame({"bin": pd.cut(X, 3)}), Y)


# ---- Labels in a frame ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_labels_may_be_the_only_column_of_a_frame(kind):
    rows, labels = KINDS[kind]({"x": X}), KINDS[kind]({"y": Y})
    for model in (tb.NaiveBayes(), tb.GaussianDiscriminant(), tb.NearestClassMean("euclidean")):
        found = model.fit(rows, labels)
        np.testing.assert_array_equal(found.predict(rows), model.fit(rows, Y).predict(rows))
        assert found.fit(rows, labels).score(rows, labels) == found.score(rows, Y)
        assert found.partial_fit(rows, labels).forget(rows, labels).classes_.tolist() == ["a", "b"]
        assert tb.evaluate(found, rows, labels).accuracy.value == found.score(rows, Y)
        assert tb.cross_validate(model, rows, labels, 3).accuracy == tb.cross_validate(model, rows, Y, 3).accuracy
    with pytest.raises(ValueError, match="y is a frame of 2 columns; expected one column"):
        tb.NaiveBayes().fit(rows, KINDS[kind]({"y": Y, "z": Y}))


# ---- Columns that no row shows, and of several kinds -----------------------------------------------------------------

EMPTY = {
    "None": [None] * N,
    "NaN": [np.nan] * N,
    "Int64": pd.array([pd.NA] * N, dtype="Int64"),
    "string": pd.array([pd.NA] * N, dtype="string"),
    "boolean": pd.array([pd.NA] * N, dtype="boolean"),
    "category": pd.Categorical([None] * N, categories=["p", "q"]),
    "NaT": pd.Series([pd.NaT] * N),
    "timedelta": pd.Series([pd.NaT] * N, dtype="timedelta64[ns]"),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", EMPTY)
def test_a_column_that_no_row_shows_says_nothing(name):
    frame = FRAME.assign(empty=EMPTY[name])
    model, without = tb.NaiveBayes().fit(frame, Y), tb.NaiveBayes().fit(FRAME, Y)
    np.testing.assert_array_equal(model.predict_proba(frame), without.predict_proba(FRAME))
    np.testing.assert_array_equal(model.explain(frame).log_odds, without.explain(FRAME).log_odds)
    model.partial_fit(frame, Y).forget(frame, Y)
    for ask in (model.predict_proba_interval, model.decide, model.predict_set, model.impute, model.score_samples):
        ask(frame)
    model.sample(3, random_state=0)
    tb.Mixture(2, random_state=0).fit(frame).predict(frame)
    tb.AveragedOneDependence().fit(frame, Y).predict(frame)
    tb.HiddenMarkovModel(2, random_state=0).fit([frame]).predict([frame])


def test_a_column_of_several_kinds_is_named_with_a_way_out():
    mixed = FRAME.assign(m=[1, "one"] * 6)
    for model in (tb.NaiveBayes(), tb.GaussianDiscriminant(), tb.Mixture(2)):
        with pytest.raises(ValueError, match=r"(?s)column 'm' .*'one' \(str\).*to_numeric.*astype\(str\)"):
            model.fit(mixed[["x", "m"]], Y)


# ---- Orders and names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        tb.NaiveBayes(),
        tb.NaiveBayes(estimate="map"),
        tb.GaussianDiscriminant(),
        tb.GaussianDiscriminant("tied"),
        tb.NearestClassMean("euclidean"),
    ],
    ids=repr,
)
def test_models_add_by_the_names_of_their_columns(model):
    from sklearn.base import clone

    frame = pd.DataFrame({"x": X, "z": X**2, "w": np.cos(X)})
    if isinstance(model, tb.NaiveBayes):
        frame = frame.assign(k=FRAME["k"], l=list("pq") * 6)
    turned = frame[list(frame.columns)[::-1]]
    one, other = clone(model).fit(frame, Y), clone(model).fit(turned[:8], Y[:8])
    np.testing.assert_allclose(
        (one + other).predict_proba(frame), (one + clone(model).fit(frame[:8], Y[:8])).predict_proba(frame), rtol=1e-12
    )
    np.testing.assert_array_equal((other + one).predict(turned), (one + other).predict(frame))
    rest = one.tally_ - other.tally_
    assert rest.isclose(one.tally_ - clone(model).fit(frame[:8], Y[:8]).tally_)
    with pytest.raises(tb.StatisticsError, match=r"'x'|factors"):
        one + clone(model).fit(frame.rename(columns={"x": "q"}), Y)


def test_rows_without_names_after_a_frame_and_the_other_way_round():
    frame = pd.DataFrame({"x": X, "z": X**2})
    by_name = frame.assign(y=Y)
    for model in (tb.NaiveBayes(), tb.GaussianDiscriminant()):
        for fitted in (model.fit(frame, Y), model.fit(by_name, "y")):
            with pytest.raises(
                ValueError, match=r"(?s)no column 'x'.*no column names\. Pass a data frame.*pd\.DataFrame"
            ):
                fitted.predict(frame.to_numpy())
    with pytest.raises(ValueError, match="no column names"):
        tb.HiddenMarkovModel(2, random_state=0).fit([frame]).predict([frame.to_numpy()])
    with pytest.raises(ValueError, match=r"no column 0(?s:.*)to_numpy"):
        tb.NaiveBayes().fit(frame.to_numpy(), Y).predict(frame)


def test_transformed_rows_have_names():
    rows = pd.DataFrame({"x": X, "z": np.sin(X)})
    model = tb.GaussianDiscriminant().fit(rows, Y)
    assert model.get_feature_names_out().tolist() == ["gaussiandiscriminant0"]
    framed = model.set_output(transform="pandas").transform(rows)
    assert list(framed.columns) == ["gaussiandiscriminant0"]
    np.testing.assert_array_equal(framed.to_numpy(), model.set_output(transform="default").transform(rows))
    assert isinstance(model.set_output(transform="polars").transform(rows), pl.DataFrame)


# ---- Frame in, frame out ---------------------------------------------------------------------------------------------


def listed(frame):
    """The columns of a frame of any kind, as lists."""
    columns = frame.to_pydict() if hasattr(frame, "to_pydict") else frame
    names = list(columns) if isinstance(columns, dict) else list(columns.columns)
    return {name: list(columns[name]) for name in names}


@pytest.mark.parametrize("kind", KINDS)
def test_frames_come_back_as_they_came(kind, tmp_path):
    rows = {"k": ["u", "v", None, "u"] * 3, "x": [1.0, 2.0, None, 4.0] * 3, "n": list(range(N))}
    frame, is_kind = KINDS[kind](rows), type(KINDS[kind]({"x": [1.0]}))
    for model in (tb.NaiveBayes(), tb.AveragedOneDependence()):
        filled = model.fit(frame, Y).impute(frame)
        plain = model.fit(rows, Y).impute(rows)
        assert isinstance(filled, is_kind)
        assert isinstance(plain, dict)
        assert list(listed(filled)) == ["k", "x", "n"]
        assert listed(filled) == {name: column.tolist() for name, column in plain.items()}
        drawn, labels = model.fit(frame, Y).sample(5, random_state=0)
        assert isinstance(drawn, is_kind)
        assert list(listed(drawn)) == ["k", "x", "n"]
        model.partial_fit(drawn, labels)  # they are what it takes
        model.save(tmp_path / "model.tally")
        back = tb.load(tmp_path / "model.tally")
        assert isinstance(back.sample(2)[0], is_kind)
        assert isinstance((back + model).reestimate().sample(2)[0], is_kind)
        found = model.explain(frame).to_frame()
        assert isinstance(found, is_kind)
        assert len(listed(found)["contribution"]) == N * (4 if isinstance(model, tb.NaiveBayes) else 5)
    mixture = tb.Mixture(2, random_state=0).fit(frame)
    assert isinstance(mixture.impute(frame), is_kind)
    assert isinstance(mixture.sample(2)[0], is_kind)
    chain = tb.HiddenMarkovModel(2, random_state=0).fit([frame])
    assert isinstance(chain.impute([frame])[0], is_kind)
    assert isinstance(chain.sample(3)[0][0], is_kind)


@pytest.mark.parametrize("kind", KINDS)
def test_networks_answer_in_frames(kind):
    rows = {"k": ["u", "v", None, "u"] * 3, "y": Y.tolist()}
    frame, is_kind = KINDS[kind](rows), type(KINDS[kind]({"x": [1.0]}))
    network, plain = (tb.BayesianNetwork({"k": ["y"]}).fit(data) for data in (frame, rows))
    for ask in (lambda model, data: model.impute(data), lambda model, data: model.predict(data, ["y", "k"])):
        found = ask(network, frame)
        assert isinstance(found, is_kind)
        assert listed(found) == {name: column.tolist() for name, column in ask(plain, rows).items()}
    assert isinstance(network.sample(3, random_state=0), is_kind)
    assert isinstance(network.predict(frame, "y"), np.ndarray)
    assert isinstance(plain.sample(3), dict)


def test_a_filled_frame_keeps_its_index_and_the_types_of_what_was_whole():
    frame = pd.DataFrame(
        {"x": [1.0, None, 3.0], "c": pd.Categorical(["u", "v", "u"]), "n": pd.array([1, 2, 3], dtype="Int64")},
        index=["one", "two", "three"],
    )
    filled = tb.NaiveBayes().fit(frame, ["a", "b", "a"]).impute(frame)
    assert filled.index.tolist() == ["one", "two", "three"]
    assert filled["c"].dtype == frame["c"].dtype
    assert filled["n"].dtype == frame["n"].dtype
    assert filled["x"].notna().all()
    assert frame["x"].isna().any()


# ---- Names of the columns of blocks ----------------------------------------------------------------------------------


def test_the_columns_of_a_sparse_block_may_have_names(tmp_path):
    counts = scipy.sparse.csr_array(np.random.default_rng(0).poisson(1.0, (N, 3)))
    words = ["free", "lunch", "offer"]
    plain = tb.NaiveBayes().fit(counts, Y)
    model = tb.NaiveBayes().fit(tb.NamedMatrix(counts, words), Y)
    np.testing.assert_array_equal(model.predict_proba(counts), plain.predict_proba(counts))
    np.testing.assert_array_equal(model.predict_proba(tb.NamedMatrix(counts, words)), plain.predict_proba(counts))
    assert plain.explain(counts).columns[1:] == [("x", 0), ("x", 1), ("x", 2)]
    model.save(tmp_path / "model.tally")
    both = model + plain
    for one in (model, tb.load(tmp_path / "model.tally"), model.reestimate(estimate="map"), both, plain + model):
        assert one.explain(counts).columns == ["(class prior)", *words]
    assert "lunch" in repr(model.explain(counts))
    mixed = {"size": X, "words": tb.NamedMatrix(counts, words), "y": Y}
    found = tb.NaiveBayes().fit(mixed, "y").explain(mixed)
    assert set(found.columns) == {"(class prior)", "size", *words}
    for bad in (words[:2], ["free", "free", "offer"]):
        with pytest.raises(ValueError, match="name"):
            tb.NamedMatrix(counts, bad)
