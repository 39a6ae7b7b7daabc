"""What a fitted model says of itself: its summary, and its repr where something was chosen or left out."""

import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import tallybayes as tb

RNG = np.random.default_rng(0)
Y = np.where(RNG.integers(0, 2, 200) == 1, "yes", "no")
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(200) < 0.2, np.nan, RNG.normal(40, 9, 200)),
        "sky": RNG.choice(["sun", "rain", None], 200),
        "calls": RNG.poisson(3, 200),
        "size": np.exp(RNG.normal(size=200)),
        "number": np.arange(200),
    }
)


def by_name(found):
    return {one.column: one for one in found.columns}


def test_every_column_with_family_levels_missing_cells_and_prior():
    model = tb.NaiveBayes(
        {"age": tb.Gaussian(), "sky": tb.Categorical(), "calls": tb.Poisson()}, prior=[tb.Gamma(2, 1)]
    )
    found = model.fit(FRAME, Y).summary()
    columns = by_name(found)
    assert list(columns) == ["age", "sky", "calls"]
    assert columns["age"].missing == pytest.approx(FRAME["age"].isna().mean())
    assert columns["sky"].missing == pytest.approx(FRAME["sky"].isna().mean())
    assert columns["calls"].missing == 0
    assert [columns[name].levels for name in columns] == [None, 2, None]
    assert columns["calls"].prior == "Gamma(2, 1)"
    assert columns["age"].prior.startswith("NormalInverseGamma(")
    assert found.dropped_columns == dict.fromkeys(["size", "number"], "columns= does not name it")
    assert (
        repr(found).splitlines()[0]
        == f"NaiveBayes of 200 rows, classes no: {(Y == 'no').sum()}, yes: {(Y == 'yes').sum()}"
    )
    frame = found.to_frame()
    assert frame["column"].tolist() == ["age", "sky", "calls"]


def test_a_block_of_columns_shares_one_prior_but_not_its_numbers():
    found = by_name(tb.NaiveBayes().fit(FRAME[["age", "size"]], Y).summary())
    assert found["age"].prior != found["size"].prior
    assert float(found["age"].prior.split("(")[1].split(",")[0]) == pytest.approx(FRAME["age"].mean(), rel=1e-3)


def test_all_kinds_of_models():
    numbers = FRAME[["size", "calls"]]
    assert "classes" in repr(tb.GaussianDiscriminant().fit(numbers, Y).summary())
    mixture = tb.Mixture(2, random_state=0, tol=0.1).fit(FRAME[["age", "size"]]).summary()
    assert by_name(mixture)["age"].missing == pytest.approx(FRAME["age"].isna().mean())
    assert "components 0: " in repr(mixture)
    chain = tb.HiddenMarkovModel().fit([FRAME[["age", "sky"]][:120], FRAME[["age", "sky"]][120:]], [Y[:120], Y[120:]])
    assert repr(chain.summary()).startswith("HiddenMarkovModel of 200 steps, states no, yes")
    assert by_name(chain.summary())["sky"].missing == pytest.approx(FRAME["sky"].isna().mean())
    words = scipy.sparse.random(200, 5000, 0.01, format="csr", random_state=0)
    block = tb.NaiveBayes().fit({"words": words, "age": FRAME["age"]}, Y).summary()
    assert by_name(block)["words"].family == "Multinomial(), 5,000 columns"
    many = tb.NaiveBayes().fit(RNG.normal(size=(50, 300)), Y[:50]).summary()
    assert len(repr(many).splitlines()) < 50
    assert "… 260 more" in repr(many)
    with pytest.raises(NotFittedError):
        tb.NaiveBayes().summary()


def test_networks_and_nearest_means_have_a_summary():
    rows = FRAME[["sky", "age", "calls"]].assign(y=Y)
    network = tb.BayesianNetwork({"sky": ["y"], "age": ["y"], "calls": ["y", "sky"]}, columns={"calls": tb.Poisson()})
    found = network.fit(rows).summary()
    assert repr(found).splitlines()[0] == "BayesianNetwork of 200 rows, 4 nodes, 4 edges"
    columns = by_name(found)
    assert list(columns) == list(network.graph_.nodes)
    assert columns["sky"].family == "Categorical(), given y"
    assert columns["calls"].family == "Poisson(), given y, sky"
    assert (columns["y"].levels, columns["age"].levels) == (2, None)
    assert columns["age"].missing == pytest.approx(FRAME["age"].isna().mean())
    assert columns["y"].prior == "Dirichlet(1)"  # it was "Dirichlet(1, nan)"
    given = tb.BayesianNetwork.from_tables({"a": []}, {"a": [True, False]}, {"a": [0.3, 0.7]}).summary()
    assert repr(given).startswith("BayesianNetwork of given tables, 1 node, 0 edges")
    nearest = tb.NearestClassMean("euclidean").fit(FRAME[["size", "calls"]], Y).summary()
    assert repr(nearest).splitlines()[0].endswith(", metric euclidean")
    assert [one.column for one in nearest.columns] == ["size", "calls"]
    assert all(one.prior == "" and one.missing == 0 for one in nearest.columns)


def test_emptied_models_have_a_summary():
    rows = {"x": [1.0, 2.0, 4.0]}
    for model in (tb.NaiveBayes(), tb.GaussianDiscriminant(), tb.NearestClassMean("euclidean")):
        empty = model.fit(rows, ["a", "b", "b"]).forget(rows, ["a", "b", "b"])
        assert " of 0 rows" in repr(empty.summary())
    network = tb.BayesianNetwork({"x": ["y"]}).fit(rows | {"y": [0, 1, 1]}).forget(rows | {"y": [0, 1, 1]})
    assert " of 0 rows" in repr(network.summary())


def test_the_repr_says_what_was_chosen_and_left_out():
    assert repr(tb.NaiveBayes("suggest")) == "NaiveBayes(columns='suggest')"
    lines = repr(tb.NaiveBayes("suggest").fit(FRAME, Y)).splitlines()
    assert lines[0] == "NaiveBayes(columns='suggest')"
    assert "    Poisson(): calls" in lines
    assert "    left out, an identifier: whole numbers, one after the other: number" in lines
    named = repr(tb.NaiveBayes({"age": tb.Gaussian()}).fit(FRAME, Y))
    assert named.splitlines()[1:] == ["    left out, columns= does not name it: sky, calls, size, number"]
    assert repr(tb.NaiveBayes().fit(FRAME, Y)) == "NaiveBayes()"
    assert "Gaussian" in repr(tb.NaiveBayes({"age": "suggest", ...: "auto"}).fit(FRAME, Y)).splitlines()[1]


def test_series_beside_blocks_are_read_by_their_types():
    rows = {"age": FRAME["age"], "sky": FRAME["sky"], "kind": pd.Series(Y).astype("category")}
    model = tb.NaiveBayes().fit(rows, Y)
    assert model.columns_ == {"age": tb.Gaussian(), "sky": tb.Categorical(), "kind": tb.Categorical()}
    expected = tb.NaiveBayes().fit(pd.DataFrame(rows), Y)
    np.testing.assert_array_equal(model.predict_proba(rows), expected.predict_proba(pd.DataFrame(rows)))


@pytest.mark.slow
def test_many_columns_of_labels_do_not_take_the_square_of_their_number():
    model = tb.NaiveBayes(tb.Categorical()).fit(RNG.integers(0, 3, (40, 2000)), Y[:40])
    few = tb.NaiveBayes(tb.Categorical()).fit(RNG.integers(0, 3, (40, 250)), Y[:40])

    def best(one):
        times = []
        for _ in range(3):
            start = time.process_time()
            one.summary()
            times.append(time.process_time() - start)
        return min(times)

    assert best(model) < 20 * best(few)  # eight times the columns; it took 33 times as long
