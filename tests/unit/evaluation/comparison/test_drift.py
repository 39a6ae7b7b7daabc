"""Columns that moved are found, those that did not are left alone."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.evaluation.comparison.drift import drift


def rows(n, rng, move=0.0, sky=(0.1, 0.2, 0.3, 0.4)):
    y = rng.choice(["a", "b"], n, p=[0.3, 0.7])
    return pd.DataFrame(
        {
            "size": rng.normal(size=n) + (y == "a") + move,
            "eggs": rng.poisson(3 + (y == "a"), n),
            "sky": rng.choice(list("pqrs"), n, p=sky),
            "y": y,
        }
    )


@pytest.fixture(scope="module")
def model():
    return tb.NaiveBayes(prior=1).fit(rows(20_000, np.random.default_rng(0)), "y")


@pytest.mark.slow
def test_what_did_not_move_is_rarely_called_a_drift(model):
    rng = np.random.default_rng(1)
    chances = [one.chance for _ in range(25) for one in drift(model, rows(400, rng), "y")]
    assert np.mean(np.array(chances) < 0.05) < 0.12
    assert min(chances) > 1e-5


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("labeled", [True, False])
def test_what_moved_is_found_with_its_bits(model, labeled):
    rng = np.random.default_rng(4)
    data = rows(1000, rng, move=0.5, sky=(0.3, 0.2, 0.3, 0.2))
    found = {one.column: one for one in drift(model, *((data, "y") if labeled else (data.drop(columns="y"),)))}
    assert found["size"].chance < 1e-6
    assert found["sky"].chance < 1e-6
    assert found["eggs"].chance > 1e-3
    kl = np.array([0.3, 0.2, 0.3, 0.2]) @ np.log2(np.array([0.3, 0.2, 0.3, 0.2]) / [0.1, 0.2, 0.3, 0.4])
    assert found["sky"].low < kl < found["sky"].high
    if labeled:
        assert found["size"].low < 0.125 / np.log(2) < found["size"].high


@pytest.mark.slow
def test_networks_covariances_and_mixtures_that_chose_themselves(model):
    rng = np.random.default_rng(3)
    before, after = rows(3000, rng), rows(600, rng, sky=(0.4, 0.3, 0.2, 0.1))
    network = tb.BayesianNetwork({"sky": ["y"]}).fit(before[["sky", "y"]])
    assert drift(network, after[["sky", "y"]])[0].column == "sky"
    full = tb.GaussianDiscriminant().fit(before[["size", "eggs", "y"]], "y")
    (one,) = drift(full, after[["size", "eggs", "y"]], "y")
    assert one.column == ("size", "eggs")
    assert one.chance > 1e-3
    chosen = tb.AutoClassifier().fit(before[:600], "y")
    assert drift(chosen, after, "y")[0].column == "sky"
    with pytest.raises(tb.DataError, match="Pass target="):
        drift(tb.AveragedOneDependence().fit(before, "y"), after.drop(columns="y"))
    with pytest.raises(tb.DataError, match="at least 2"):
        drift(model, before[:1], "y")


@pytest.mark.slow
def test_a_model_of_few_rows_differs_by_chance_itself():
    moved = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        small = tb.NaiveBayes(prior=1).fit(rows(200, rng), "y")
        moved += any(one.chance < 1e-3 / 3 for one in drift(small, rows(2000, rng), "y"))
    assert moved <= 1


def test_no_column_is_sure_to_have_moved_because_leaving_out_adds_nothing():
    def of(n, rng):
        y = rng.integers(2, size=n)
        return {"a": rng.normal(size=n) + y, "c": rng.choice(list("pqr"), n), "y": y}

    rng = np.random.default_rng(45)
    before = tb.NaiveBayes().fit(of(500, rng), "y")
    assert min(one.chance for one in drift(before, of(500, rng), "y")) > 1e-3
