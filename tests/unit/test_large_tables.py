"""The benchmark of classifiers on larger tables: its splits, its figures and its summary."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def large(monkeypatch):
    pytest.importorskip("resource", reason="benchmarks measure memory and limit time on Unix only")
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("tables", "large_tables"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import large_tables

    return large_tables


def mixed(n=240):
    """Rows with a number, a categorical column with missing values, and rare levels that training rows may lack."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "rare"], [n // 2, n - n // 2 - 4, 4])
    label = np.where(rng.random(n) < 0.7, y, "c").astype(object)
    label[::17], label[5::40] = None, [f"once {k}" for k in range(len(label[5::40]))]
    return pd.DataFrame({"x": rng.normal(y == "a"), "label": label}), y


def test_classes_of_fewer_than_ten_rows_are_dropped_and_the_others_are_numbered(large, monkeypatch):
    monkeypatch.setitem(large.LOADERS, "mixed", mixed)
    X, y = large.load("mixed")
    assert list(X) == ["c0", "c1"]
    assert np.bincount(y).tolist() == [120, 116]
    pd.testing.assert_series_equal(X["c0"], mixed()[0]["x"][:236], check_names=False)


def test_splits_are_stratified_and_differ_by_their_seeds(large):
    y = np.repeat([0, 1, 2], [300, 90, 30])
    splits = [large.split_rows("adult", y, seed) for seed in large.SPLITS]
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(420))
        assert np.bincount(y[test]).tolist() == [100, 30, 10]
    assert len({tuple(sorted(test)) for _, test in splits}) == len(large.SPLITS)


def test_mnist_keeps_its_own_test_images(large):
    y = np.resize(np.arange(10), 70_000)
    for name, size in (("mnist 14x14", 20_000), ("mnist 28x28", 60_000)):
        train, test = large.split_rows(name, y, 1)
        assert (len(train), train.max() < 60_000, test.tolist()) == (size, True, list(range(60_000, 70_000)))


def test_figures_of_a_prediction(large):
    P = np.repeat([[0.9, 0.1], [0.25, 0.75]], 150, axis=0)
    y = np.repeat([0, 1, 1, 0], [135, 15, 75, 75])
    found = large.judge(P, y)
    np.testing.assert_allclose(found["log loss"], -np.log([0.9, 0.1, 0.75, 0.25]) @ [0.45, 0.05, 0.25, 0.25])
    assert found["accuracy"] == 0.7
    assert found["calibration"] >= 0.125  # the average over all rows; |0.75 − 0.5| of one half of them
    sure = large.judge(np.eye(2)[[0, 1, 1]], np.array([0, 1, 0]))
    np.testing.assert_allclose(sure["log loss"], -np.log(large.SMALLEST) / 3)
    assert (sure["bound"], sure["calibration"]) == (0, pytest.approx(1 / 3))


def test_one_of_twenty_calibrated_models_is_beyond_the_bound(large):
    rng = np.random.default_rng(1)
    top = rng.uniform(0.5, 1, 1500)
    bound = large.calibration_bound(top)
    beyond = [large.calibration_error(top, rng.random(1500) < top, large.BINS) > bound for _ in range(600)]
    assert 0.02 < np.mean(beyond) < 0.09


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux only")
@pytest.mark.parametrize(
    "contender", ["logistic regression", "extra trees", "HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost"]
)
def test_a_peer_reads_missing_and_unseen_levels(large, monkeypatch, contender):
    package = large.OPTIONAL.get(contender)
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"no package {package}")
    monkeypatch.setitem(large.LOADERS, "mixed", mixed)
    record = large.measure("mixed", 1, contender)
    assert (record["train"], record["test"]) == (157, 79)
    assert record["accuracy"] > 0.6
    assert record["memory"] >= 0


def record(table, contender, split, loss, **others):
    keys = ("accuracy", "calibration", "bound", "fit", "fit cpu", "predict", "predict cpu", "memory", "train", "test")
    return {
        "table": table,
        "contender": contender,
        "split": split,
        "log loss": loss,
        **dict.fromkeys(keys, 1),
        **others,
    }


def test_the_summary_compares_splits_that_both_finished(large):
    text = large.summary(
        large.Results(
            [
                record("adult", "LightGBM", 1, 0.9),
                record("adult", "LightGBM", 1, 0.2),  # replaces the line before it
                record("adult", "LightGBM", 2, 0.6),
                record("letter", "LightGBM", 1, 0.8),
                {"table": "adult", "contender": "XGBoost", "split": 1, "failed": "more than 900 s of 2 cores"},
                record("adult", "AutoClassifier", 1, 0.1, claimed=0.11, low=0.09, high=0.12),
                record("letter", "AutoClassifier", 1, 0.4, claimed=0.3, low=0.25, high=0.35),
            ]
        )
    ).splitlines()
    assert "| adult | **0.4000** | nan | 0.1000 | 2/0/1 |" in text
    assert "| adult | 0.1000 | 0.2000 | LightGBM | -50.0 % | 0.1100 | 1 of 1 | 1 |" in text
    assert "| letter | 0.4000 | 0.8000 | LightGBM | -50.0 % | 0.3000 | 0 of 1 | 1 |" in text
    assert "Not finished: adult, XGBoost, split 1: more than 900 s of 2 cores" in text
    without = large.log_losses(
        large.Results(
            record(table, contender, 1, loss)
            for contender, losses in (("LightGBM", (0.2, 0.8)), ("AutoClassifier", (0.1, 0.4)))
            for table, loss in zip(("adult", "letter"), losses, strict=True)
        )
    )
    assert "| geometric mean of 2 | 0.4000 | 0.2000 |  |" in without


def test_a_run_continues_where_it_stopped(large, monkeypatch, tmp_path, capsys):
    ran = []

    def run(name, seed, contender, limit):
        ran.append((name, seed))
        return record(name, contender, seed, 0.5)

    monkeypatch.setattr(large, "run", run)
    path = tmp_path / "large.jsonl"
    for splits in (["1"], ["1", "2"]):
        command = ["--tables", "adult", "letter", "--splits", *splits, "--only", "CountForest", "--json", str(path)]
        monkeypatch.setattr(sys, "argv", ["large_tables.py", *command])
        large.main()
    assert ran == [("adult", 1), ("letter", 1), ("adult", 2), ("letter", 2)]
    assert [json.loads(line)["split"] for line in path.read_text().splitlines()] == [1, 1, 2, 2]
    assert "| letter | 0.5000 | 2 |" in capsys.readouterr().out
