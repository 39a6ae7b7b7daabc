"""Rows of files, databases and iterators are counted in batches, as rows in memory."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, LabelError
from tallybayes.models.forest import tree_classifier

pytestmark = pytest.mark.filterwarnings("ignore:the trees were grown from")
KINDS = {"forest": lambda: tb.CountForest(6), "boosting": lambda: tb.CountBoosting(5, max_depth=3)}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    n = 600
    size = rng.normal(size=n).round(3)
    sky = rng.choice(["sun", "rain", "fog"], n)
    y = np.where(size + (sky == "sun") + rng.normal(size=n) > 0.5, "yes", "no")
    y[-3:] = "late"
    return pd.DataFrame({"size": size, "sky": sky, "w": rng.integers(0, 4, n) / 2, "y": y})


def batches(frame, n):
    return lambda: (frame[start : start + n] for start in range(0, len(frame), n))


def written(frame, folder, kind):
    if kind == "csv":
        frame.to_csv(folder / "rows.csv", index=False)
        return folder / "rows.csv"
    if kind == "parquet":
        frame.to_parquet(folder / "rows.parquet")
        return str(folder / "rows.parquet")
    if kind == "iterator":
        return batches(frame, 70)()
    connection = sqlite3.connect(":memory:")
    frame.to_sql("rows", connection, index=False)
    return tb.table(connection, "rows")


@pytest.mark.parametrize("source", ["csv", "parquet", "iterator", "database"])
@every_kind
def test_small_sources_give_the_model_of_the_rows_in_memory(kind, source, frame, tmp_path):
    model = KINDS[kind]().fit(written(frame, tmp_path, source), "y", "w")
    expected = KINDS[kind]().fit(frame, "y", "w")
    assert model.counts_ == expected.counts_
    np.testing.assert_array_equal(model.predict_proba(frame[:50]), expected.predict_proba(frame[:50]))


@every_kind
def test_large_sources_are_counted_as_a_whole_in_any_batches(kind, frame, monkeypatch):
    monkeypatch.setattr(tree_classifier, "_MOST_GROWN", 250)
    model = KINDS[kind]().fit(batches(frame, 90)(), "y", "w")
    assert model.n_rows_ == frame["w"].sum()
    assert model.class_count_.tolist() == frame.groupby("y")["w"].sum().tolist()  # "late" has no row in the sample
    assert model.counts_ == KINDS[kind]().fit(tb.table(batches(frame, 250)), "y", "w").counts_
    assert model.counts_ == model.without_rows().partial_fit(frame, "y", "w").counts_
    assert model.score(tb.table(batches(frame, 70)), "y") == model.score(frame, "y") > 0.6


@every_kind
def test_sources_are_added_forgotten_and_predicted(kind, frame, tmp_path):
    path = written(frame, tmp_path, "csv")
    model = KINDS[kind]().fit(frame[:400], "y")
    before = model.counts_
    assert model.partial_fit(path, "y").counts_ == KINDS[kind]().fit(frame[:400], "y").partial_fit(frame, "y").counts_
    np.testing.assert_array_equal(model.predict_proba(path), model.predict_proba(frame))
    assert tb.write_predictions(model, path, tmp_path / "out.csv", keep=["size"]) == len(frame)
    assert pd.read_csv(tmp_path / "out.csv")["prediction"].tolist() == model.predict(frame).tolist()
    assert model.forget(batches(frame, 100)(), "y").counts_ == before
    assert KINDS[kind]().partial_fit(batches(frame, 100)(), "y").n_rows_ == len(frame)


@every_kind
def test_errors_of_sources_leave_the_model_as_it_was(kind, frame, tmp_path):
    model = KINDS[kind]().fit(frame, "y")
    before = model.counts_
    path = tmp_path / "bad.csv"
    frame.assign(y=frame["y"].where(frame.index != 500)).to_csv(path, index=False)
    for method in (model.fit, model.partial_fit, model.forget):
        with pytest.raises(LabelError, match="row"):
            method(path, "y")
        with pytest.raises(DataError, match="expected the name of a column"):
            method(path, frame["y"])
        with pytest.raises(DataError, match=r"unknown|no column"):
            method(path, "nothing")
    assert model.counts_ is before
