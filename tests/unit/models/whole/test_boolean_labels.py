"""Booleans, 0 and 1, and the strings true and false are the same levels, wherever rows meet a model or a tally."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb

RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=60).astype(bool)
BOOLS = pd.DataFrame({"f": RNG.random(60) < 0.3 + 0.4 * Y, "y": Y})
ROWS = {"bool": BOOLS, "int": BOOLS.astype(int), "float": BOOLS.astype(float), "str": BOOLS.astype(str)}
PAIRS = [("bool", other) for other in ("int", "float", "str")] + [("int", "bool"), ("str", "bool")]
MODELS = {
    "naive": lambda: tb.NaiveBayes({"f": tb.Categorical()}),
    "pairs": lambda: tb.AveragedOneDependence({"f": tb.Categorical()}),
    "network": lambda: tb.BayesianNetwork({"f": ["y"]}),
}


@pytest.mark.parametrize(("known", "other"), PAIRS)
@pytest.mark.parametrize("kind", MODELS)
def test_rows_of_another_kind_are_the_same_rows(known, other, kind):
    if (kind, other) == ("network", "float"):
        return  # its nodes are continuous
    mine, its = ROWS[known], ROWS[other]
    named = () if kind == "network" else ("y",)
    fitted = MODELS[kind]().fit(mine, *named)
    twice = MODELS[kind]().fit(mine, *named).partial_fit(mine, *named)
    model = MODELS[kind]().fit(mine, *named).partial_fit(its, *named)
    assert model.tally_ == twice.tally_
    assert model.forget(its, *named).tally_ == fitted.tally_
    assert (fitted + MODELS[kind]().fit(its, *named)).tally_ == twice.tally_
    assert repr(tb.evaluate(fitted, its, "y")) == repr(tb.evaluate(fitted, mine, "y"))
    assert repr(tb.audit(fitted, its, "y")) == repr(tb.audit(fitted, mine, "y"))
    features, expected = its[["f"]], mine[["f"]]
    asked = ("y",) if kind == "network" else ()
    assert fitted.predict(features, *asked).tolist() == fitted.predict(expected, *asked).tolist()
    moved = tb.difference(fitted, MODELS[kind]().fit(its, *named))
    assert [one.bits for one in moved.columns] == [0.0] * len(moved.columns)


def test_other_levels_are_never_taken_for_booleans():
    model = MODELS["naive"]().fit(BOOLS, "y")
    before = model.tally_
    for other in (ROWS["int"] + 1, BOOLS.replace({True: "true", False: "maybe"}).astype(str)):
        for method in (model.partial_fit, model.forget):
            with pytest.raises(tb.LabelError, match="'y' has bool levels on one side"):
                method(other, "y")
        with pytest.raises(tb.LabelError, match="labels that are not classes of the model"):
            tb.evaluate(model, other, "y")
    assert model.tally_ is before


def test_files_of_text_and_databases_write_booleans_in_their_own_way(tmp_path):
    import sqlite3

    model = MODELS["naive"]().fit(BOOLS, "y")
    expected = repr(tb.evaluate(model, BOOLS, "y"))
    ROWS["int"].to_csv(tmp_path / "rows.csv", index=False)
    with sqlite3.connect(":memory:") as db:
        BOOLS.to_sql("t", db, index=False)
        for source in (tmp_path / "rows.csv", tb.table(db, "t")):
            assert repr(tb.evaluate(model, source, "y")) == expected
            more = MODELS["naive"]().fit(BOOLS, "y").partial_fit(source, "y")
            assert more.n_rows_ == 120
            assert more.forget(source, "y").tally_ == model.tally_


def test_an_emptied_model_takes_labels_of_another_kind():
    rows = ROWS["int"].assign(f=["u", "v"] * 30)
    model = tb.NaiveBayes().fit(rows, "y")
    words = rows.assign(y=np.where(Y, "a", "b"))
    assert model.without_rows().partial_fit(words, "y").classes_.tolist() == ["a", "b"]
    assert any("labels that were never counted: 'a'" in said for said in tb.audit(model, words, "y").findings)
