"""Streams are told before they are learned, batch by batch, whatever they come in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

import tallybayes as tb
from tallybayes.errors import DataError, LabelError


def stream(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b"], n)
    moved = np.where(np.arange(n) < n // 2, y == "a", y == "b")
    return pd.DataFrame({"x": rng.normal(size=n) + 3 * moved, "z": rng.choice(list("pq"), n), "y": y})


def by_hand(model, frame, size):
    errors, losses = [], []
    for start in range(0, len(frame), size):
        part = frame[start : start + size]
        if start:
            proba = model.predict_proba(part.drop(columns="y"))
            codes = np.searchsorted(model.classes_, part["y"])
            errors.append(np.mean(proba.argmax(axis=1) != codes))
            losses.append(-np.log(proba[np.arange(len(part)), codes]).mean())
        model.partial_fit(part, "y")
    return np.array(errors), np.array(losses)


def test_it_is_what_one_would_do_by_hand():
    frame = stream()
    found = tb.prequential(tb.NaiveBayes(), frame, "y", batch_size=70)
    errors, losses = by_hand(tb.NaiveBayes(), frame, 70)
    np.testing.assert_array_equal(found.error[0, 1:], errors)
    np.testing.assert_allclose(found.log_loss[0, 1:], losses, rtol=1e-12)
    assert np.isnan(found.error[0, 0])
    assert found.rows.tolist() == [70] * 8 + [40]
    weight = np.r_[[70] * 7, 40]
    np.testing.assert_allclose(found.mean("log_loss"), np.average(losses, weights=weight))
    np.testing.assert_allclose(found.mean("log_loss", last=0.05), losses[-1])


@pytest.mark.slow
def test_whoever_forgets_follows_a_drift():
    models = {
        "all": tb.NaiveBayes(),
        "window": tb.Window(tb.NaiveBayes(), rows=100),
        "fading": tb.Decayed(tb.NaiveBayes(), half_life=40),
    }
    found = tb.prequential(models, stream(), "y", batch_size=20)
    everything, window, fading = found.mean("error", last=0.2)
    assert max(window, fading) < 0.15 < 0.3 < everything
    assert not hasattr(models["all"], "tally_")
    curve = found.decayed_mean("error")
    assert curve[0, -1] > curve[1, -1]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "mapping", "file", "pairs", "frames", "generator"])
def test_streams_as_people_have_them(kind, tmp_path):
    frame = stream(100).drop(columns="z")
    X, y = frame[["x"]].to_numpy(), frame["y"].to_numpy()
    target = "y"
    if kind == "array":
        data, target = X, y
    elif kind == "pandas":
        data = frame
    elif kind == "polars":
        data = pl.from_pandas(frame)
    elif kind == "mapping":
        data = {"x": frame["x"].to_numpy(), "y": y.tolist()}
    elif kind == "file":
        frame.to_csv(tmp_path / "stream.csv", index=False)
        data = str(tmp_path / "stream.csv")
    elif kind == "pairs":
        data, target = [(X[k : k + 30], y[k : k + 30]) for k in range(0, 100, 30)], None
    elif kind == "frames":
        data = [frame[k : k + 30] for k in range(0, 100, 30)]
    else:
        data = (frame[k : k + 30] for k in range(0, 100, 30))
    found = tb.prequential(tb.NaiveBayes(), data, target, batch_size=30)
    expected = tb.prequential(tb.NaiveBayes(), frame, "y", batch_size=30)
    np.testing.assert_allclose(found.log_loss, expected.log_loss, rtol=1e-9)


@pytest.mark.slow
def test_text_and_other_estimators_and_times():
    texts, y = ["win win", "lunch", "win a prize", "noon"] * 10, [1, 0, 1, 0] * 10
    assert tb.prequential(tb.NaiveBayes(tb.Text()), texts, y, batch_size=4).mean("error")[0] == 0
    frame = stream().assign(t=np.arange(600))
    models = {
        "theirs": GaussianNB(),
        "linear": SGDClassifier(loss="log_loss"),
        "window": tb.Window(tb.NaiveBayes(), duration=100),
    }
    found = tb.prequential(models, frame[["x", "t"]], frame["y"], time=frame["t"], classes=["a", "b"], batch_size=50)
    assert found.error.shape == (3, 12)
    by_name = tb.prequential(models["window"], frame, "y", time="t", batch_size=50)
    plain = tb.prequential(models["window"], frame[["x", "z", "y"]], "y", time=frame["t"], batch_size=50)
    np.testing.assert_array_equal(by_name.error, plain.error)
    ours = tb.prequential(tb.NaiveBayes(), frame, "y", time="t", batch_size=50)
    np.testing.assert_array_equal(
        ours.error, tb.prequential(tb.NaiveBayes(), frame[["x", "z", "y"]], "y", batch_size=50).error
    )


def test_a_class_that_comes_late_and_a_model_that_was_fitted():
    x, y = np.arange(9.0)[:, None], np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    found = tb.prequential(tb.NaiveBayes(), x, y, batch_size=3)
    assert found.unknown.tolist() == [[0, 0, 3]]
    assert found.error[0, 2] == 1
    assert found.log_loss[0, 2] == pytest.approx(np.log(6 + 1 + 1))
    assert "3 rows of classes that the models did not have yet" in repr(found)
    fitted = tb.NaiveBayes().fit([[0.0], [8.0]], [0, 1])
    assert not np.isnan(tb.prequential(fitted, x, y, batch_size=3).error[0, 0])
    assert fitted.n_rows_ == 2


def test_drift_says_which_column_moved_and_when():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.normal(size=800) for name in "abc"} | {"y": rng.choice(["p", "q"], 800)})
    frame.loc[400:, "b"] += 4
    found = tb.prequential({"one": tb.NaiveBayes(), "two": tb.Window(tb.NaiveBayes(), rows=80)}, frame, "y", drift=True)
    assert found.columns == ["a", "b", "c"]
    bits = found.drift[0]
    assert np.nanargmax(bits[:, 1]) == 4
    assert bits[4, 1] > 5 > 0.5 > np.nanmax(bits[:, [0, 2]])
    assert found.drift[1, 6, 1] < 0.5  # the window has followed
    assert list(found.to_frame()) == [
        "model",
        "rows",
        "error",
        "log_loss",
        "unknown",
        "seconds",
        "bits of a",
        "bits of b",
        "bits of c",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (({}, [[1.0]], [0]), "models is empty"),
        ((tb.NaiveBayes, [[1.0]], [0]), "Pass an instance"),
        ((tb.Mixture(2), [[1.0]], [0]), "partial_fit"),
        ((tb.NaiveBayes(), [[1.0]], None), "target is missing"),
        ((tb.HiddenMarkovModel(), [["a"]], [["p"]]), "a model of rows"),
        ((tb.Window(tb.HiddenMarkovModel(), rows=2), [["a"]], [["p"]]), "a model of rows"),
        ((tb.NaiveBayes(), [[1.0], [2.0]], [0]), "numbers of rows"),
        ((tb.NaiveBayes(), [[1.0], [2.0]], ["a", None]), "no label"),
        ((tb.NaiveBayes(), iter([]), "y"), "no rows"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, said):
    with pytest.raises(tb.TallybayesError, match=said):
        tb.prequential(*arguments)
    with pytest.raises(tb.DataError, match="at least 1"):
        tb.prequential(tb.NaiveBayes(), [[1.0]], [0], batch_size=0)


def rows_of_a_network(n=600):
    rng = np.random.default_rng(0)
    sky = rng.integers(0, 3, n)
    wet = rng.random(n) < np.array([0.1, 0.5, 0.9])[sky]
    slow = rng.random(n) < np.where(wet, 0.8, 0.2)
    return {"sky": np.array(["sun", "cloud", "rain"])[sky], "wet": wet.astype(int), "slow": slow.astype(int)}


def test_a_network_is_judged_as_a_classifier_of_one_of_its_nodes():
    rows = rows_of_a_network()
    network = tb.BayesianNetwork({"wet": ["sky"], "slow": ["wet"]})
    models = {"network": network, "window": tb.Window(network, rows=200), "naive": tb.NaiveBayes()}
    found = tb.prequential(models, rows, "wet", batch_size=50, drift=True)
    assert not hasattr(network, "tally_")
    assert np.isnan(found.error[:, 0]).all()
    by_hand = network.fit({name: column[:50] for name, column in rows.items()})
    proba = by_hand.predict_proba({name: rows[name][50:100] for name in ("sky", "slow")}, "wet")
    truth = rows["wet"][50:100]
    assert found.log_loss[0, 1] == pytest.approx(-np.log(proba[np.arange(50), truth]).mean())
    assert found.error[0, 1] == pytest.approx(np.mean(proba.argmax(axis=1) != truth))
    assert found.mean("error")[0] < 0.35
    assert set(found.columns) >= {"sky", "wet", "slow"}
    with pytest.raises(LabelError, match="name of a node's column"):
        tb.prequential(network, {"sky": rows["sky"], "slow": rows["slow"]}, rows["wet"])
    with pytest.raises(DataError, match="the network has no node 'other'"):
        tb.prequential(network, rows | {"other": rows["wet"]}, "other", batch_size=50)
    with pytest.raises(DataError, match="node 'size' is continuous"):
        tb.prequential(tb.BayesianNetwork({"size": ["sky"]}), rows | {"size": rows["wet"] + 0.5}, "size", batch_size=50)
