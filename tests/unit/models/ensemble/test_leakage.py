"""Target leakage: a copy of the target is found, and no good predictor is taken for one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import tallybayes as tb
from tests.shared import DATA, needs

rng = np.random.default_rng(0)


def passengers(n=600):
    """Rows such as seaborn's titanic: the target is there twice."""
    survived = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "survived": survived,
            "sex": np.where(rng.random(n) < 0.75, np.where(survived, "female", "male"), "male"),
            "age": rng.normal(30, 10, n),
            "alive": np.where(survived, "yes", "no"),
        }
    )


def test_a_copy_of_the_target_is_one_warning():
    rows = passengers()
    (leak,) = tb.find_leakage(rows, "survived")
    assert (leak.column, leak.target) == ("alive", "survived")
    assert leak.accuracy == 1
    assert leak.others < 0.9
    assert "Possible target leakage: column 'alive' alone predicts 'survived' with accuracy 100.0%" in str(leak)
    assert tb.find_leakage(rows.drop(columns="alive"), "survived") == []
    assert tb.find_leakage(rows.drop(columns="survived"), rows["survived"]) == [leak]
    report = tb.AutoClassifier(folds=3).fit(rows, "survived").leaderboard_
    assert [one.column for one in report.leaks] == ["alive"]
    assert repr(report).count("Possible target leakage") == 1
    assert "Possible target leakage" in report._repr_html_()
    assert tb.AutoClassifier(folds=3).fit(rows.drop(columns="alive"), "survived").leaderboard_.leaks == []


def test_a_copy_with_gaps_or_as_a_number_is_found():
    rows = passengers(1000)
    gaps = rows.assign(alive=rows["alive"].where(rng.random(len(rows)) > 0.03))
    assert [leak.column for leak in tb.find_leakage(gaps, "survived")] == ["alive"]
    paid = rows.assign(alive=rng.normal(1000.0 * rows["survived"], 5))
    assert [leak.column for leak in tb.find_leakage(paid, "survived")] == ["alive"]


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_no_false_alarm(load):
    X, y = load(return_X_y=True, as_frame=True)
    assert tb.find_leakage(X, y) == []


def test_few_rows_and_many():
    with pytest.raises(tb.DataError, match="data has 1 rows; expected at least 2"):
        tb.find_leakage({"a": [1.0], "b": ["x"]}, [0])
    assert tb.find_leakage({"a": [1.0, 2.0], "b": ["x", "y"]}, [0, 1]) == []
    many = passengers(21_000)
    (leak,) = tb.find_leakage(many, "survived")
    assert leak.column == "alive"
    assert leak == tb.find_leakage(many, "survived")[0]


def test_no_alarm_where_every_column_tells_the_class_or_there_is_one():
    y = np.arange(300) % 2
    easy = {name: rng.normal(20.0 * y, 1) for name in "abc"}
    assert tb.find_leakage(easy, y) == []
    assert tb.find_leakage({"a": easy["a"]}, y) == []
    assert tb.find_leakage({"a": easy["a"], "b": easy["b"]}, np.zeros(300, int)) == []  # one class


@needs("tables/titanic.csv", "tables/agaricus-lepiota.data")
def test_titanic_has_one_and_the_odor_of_mushrooms_is_none():
    titanic = pd.read_csv(DATA / "tables" / "titanic.csv")
    assert [leak.column for leak in tb.find_leakage(titanic, "survived")] == ["alive"]
    assert [leak.column for leak in tb.AutoClassifier().fit(titanic, "survived").leaderboard_.leaks] == ["alive"]
    mushrooms = pd.read_csv(DATA / "tables" / "agaricus-lepiota.data", header=None).rename(columns=str)
    assert tb.find_leakage(mushrooms, "0") == []
