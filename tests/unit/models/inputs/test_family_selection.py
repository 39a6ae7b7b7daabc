"""Families chosen by evidence at the first fit, and kept: columns="suggest"."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tallybayes as tb
from tallybayes.data.sampling import sampled_rows
from tallybayes.errors import StatisticsError
from tallybayes.models.inputs import family_evidence


def draw(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    color = rng.choice(["red", "green", "blue"], n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(
        {
            "size": np.exp(rng.normal(y, 1.0)),
            "age": rng.normal(40.0 + 5 * y, 9.0),
            "calls": rng.poisson(2 + y),
            "spend": np.where(rng.random(n) < 0.7, 0.0, np.exp(rng.normal(3 + y, 1, n))),
            "color": color,
            "farbe": pd.Series(color).map({"red": "rot", "green": "gruen", "blue": "blau"}),
            "number": np.arange(n) + 1000,
            "name": [f"row {k}" for k in rng.permutation(n)],
            "country": "here",
            "nothing": np.nan,
        }
    )
    return frame, np.where(y, "yes", "no")


LEFT_OUT = {
    "number": "an identifier: whole numbers, one after the other",
    "name": "an identifier: nearly every label is another",
    "country": "constant",
    "nothing": "no known cell",
    "farbe": "repeats 'color'",
}


def test_it_is_what_suggest_columns_says():
    frame, y = draw()
    model = tb.NaiveBayes("suggest").fit(frame, y)
    found = tb.suggest_families(frame, y)
    assert model.columns_ == found.columns
    assert model.dropped_columns_ == found.dropped_columns == LEFT_OUT
    kinds = {name: type(family).__name__ for name, family in model.columns_.items()}
    wanted = {"size": "LogNormal", "age": "Gaussian", "calls": "Poisson", "spend": "Binned", "color": "Categorical"}
    assert kinds == wanted
    fixed = tb.NaiveBayes(model.columns_).fit(frame, y)
    assert fixed.tally_ == model.tally_
    np.testing.assert_array_equal(fixed.predict_proba(frame), model.predict_proba(frame))


def test_the_word_stays_and_so_does_the_choice(tmp_path):
    frame, y = draw()
    model = tb.NaiveBayes("suggest").fit(frame[:300], y[:300])
    chosen, left_out = model.columns_, model.dropped_columns_
    assert clone(model).columns == "suggest"
    whole = tb.NaiveBayes(chosen).fit(frame, y)
    model.partial_fit(frame[300:], y[300:])
    assert model.columns_ == chosen
    assert model.tally_.isclose(whole.tally_)
    model.forget(frame[:300], y[:300])
    assert model.columns_ == chosen
    assert model.tally_.isclose(tb.NaiveBayes(chosen).fit(frame[300:], y[300:]).tally_)
    model.save(tmp_path / "model")
    for back in (tb.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model.reestimate(estimate="map")):
        assert back.columns == "suggest"
        assert back.columns_ == chosen
        assert back.dropped_columns_ == left_out
    np.testing.assert_array_equal(tb.load(tmp_path / "model").predict_proba(frame), model.predict_proba(frame))
    assert model.fit(frame[::2], y[::2]).columns_ == tb.suggest_families(frame[::2], y[::2]).columns


def test_models_that_chose_otherwise_do_not_add():
    frame, y = draw()
    one, other = (tb.NaiveBayes("suggest").fit(frame[part], y[part]) for part in (slice(0, 200), slice(200, None)))
    assert one.columns_["spend"] != other.columns_["spend"]
    with pytest.raises(StatisticsError, match=r"(?s)column 'spend' is Binned.*columns=one\.columns_"):
        one + other
    fixed = [tb.NaiveBayes(one.columns_).fit(frame[part], y[part]) for part in (slice(0, 200), slice(200, None))]
    assert (fixed[0] + fixed[1]).tally_.isclose(tb.NaiveBayes(one.columns_).fit(frame, y).tally_)
    same = tb.NaiveBayes("suggest").fit(frame[:200], y[:200])
    assert (one + same).columns_ == one.columns_
    assert (one + same).dropped_columns_ == one.dropped_columns_
    parts = [frame[:200][["age", "country"]], frame[200:][["age"]].assign(country=["here", "there"] * 100)]
    here, there = (tb.NaiveBayes("suggest").fit(part, y[:200]) for part in parts)
    with pytest.raises(StatisticsError, match="column 'country' is left out here and Categorical"):
        here + there


def test_scikit_learn_chooses_again_in_every_fold():
    frame, y = draw()
    numbers = frame[["size", "age", "calls", "spend"]]
    scores = cross_val_score(tb.NaiveBayes("suggest"), numbers, y, cv=3, scoring="neg_log_loss")
    assert np.isfinite(scores).all()
    line = make_pipeline(FunctionTransformer(), tb.NaiveBayes("suggest")).fit(numbers, y)
    assert line[-1].columns_ == tb.suggest_families(numbers, y).columns
    search = GridSearchCV(tb.NaiveBayes(), {"columns": ["auto", "suggest"]}, cv=3, scoring="neg_log_loss")
    assert search.fit(numbers, y).best_params_ == {"columns": "suggest"}


def test_cross_validation_holds_the_choice():
    frame, y = draw()
    left = tb.leave_one_out(tb.NaiveBayes("suggest").fit(frame, y), frame, y)
    held = tb.leave_one_out(tb.NaiveBayes(tb.suggest_families(frame, y).columns).fit(frame, y), frame, y)
    assert left.log_loss.value == held.log_loss.value


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
def test_order_does_not_matter_and_weights_are_repetitions(seed):
    rng = np.random.default_rng(seed)
    frame, y = draw(60, seed)
    order, times = rng.permutation(60), rng.integers(0, 3, 60)
    expected = tb.NaiveBayes("suggest").fit(frame, y)
    shuffled = tb.NaiveBayes("suggest").fit(frame.iloc[order], y[order])
    assert shuffled.columns_ == expected.columns_
    assert shuffled.dropped_columns_ == expected.dropped_columns_
    if len(set(y[times > 0])) == 2:
        weighed = tb.NaiveBayes("suggest").fit(frame, y, sample_weight=times)
        repeated = tb.NaiveBayes("suggest").fit(frame.loc[np.repeat(np.arange(60), times)], np.repeat(y, times))
        assert weighed.columns_ == repeated.columns_
        assert weighed.dropped_columns_ == repeated.dropped_columns_


@given(st.integers(0, 2**32 - 1))
def test_whatever_the_numbers(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    scale = 10.0 ** rng.integers(-6, 7)
    columns = {
        "spikes": np.where(rng.random(n) < 0.5, rng.choice([-1.0, 0.0, 1.0], n), rng.uniform(-1, 1, n)) * scale,
        "rounded": np.round(rng.normal(size=n), int(rng.integers(0, 4))) * scale,
        "few": rng.choice([0.1, 0.25, 7.0], n),
        "holes": np.where(rng.random(n) < 0.5, np.nan, np.exp(rng.normal(0, 5, n))),
        "whole": rng.integers(-3, 4, n) * int(rng.integers(1, 1000)),
    }
    model = tb.NaiveBayes("suggest").fit(columns, rng.integers(0, 2, n))
    assert np.isfinite(model.predict_log_proba(columns)).all()


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr(family_evidence, "MOST_ROWS", 100)
    frame, y = draw(1000)
    model = tb.NaiveBayes("suggest").fit(frame, y)
    some = sampled_rows(1000, 100)
    fewer = tb.NaiveBayes("suggest").fit(frame.iloc[some].drop(columns="number"), y[some])
    assert model.columns_ == fewer.columns_
    assert model.dropped_columns_ == LEFT_OUT  # a tenth of consecutive numbers, too


@pytest.mark.parametrize(
    ("cells", "strange"),
    [
        (lambda rng, n: np.exp(rng.normal(size=n)), 0.0),
        (lambda rng, n: rng.poisson(3, n) * 1.0, 2.5),
        (lambda rng, n: rng.poisson(3, n) * 1.0, -1.0),
        (lambda rng, n: rng.integers(0, 2, n) * 1.0, 7.0),
        (lambda rng, n: rng.choice([1.0, 2.0, 5.0, 9.0, 40.0], n), 2.5),
    ],
)
def test_a_family_is_one_that_rows_not_looked_at_allow_too(monkeypatch, cells, strange):
    monkeypatch.setattr(family_evidence, "MOST_ROWS", 500)
    rng = np.random.default_rng(0)
    column, y = cells(rng, 5000), rng.integers(0, 2, 5000)
    column[7] = np.nan
    usual = tb.NaiveBayes("suggest").fit({"x": column}, y).columns_
    column[3] = strange  # not one of every tenth
    model = tb.NaiveBayes("suggest").fit({"x": column}, y)
    assert model.columns_ != usual
    weight = np.ones(5000)
    weight[3] = 0
    keep = np.arange(5000) != 3
    without = tb.NaiveBayes("suggest").fit({"x": column[keep]}, y[keep])
    assert tb.NaiveBayes("suggest").fit({"x": column}, y, weight).columns_ == without.columns_


def test_truth_values_may_be_missing():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"b": pd.array(rng.choice([True, False, None], 100), dtype="boolean")})
    found = tb.suggest_families(frame, rng.integers(0, 2, 100)).details["b"]
    assert {type(candidate.family) for candidate in found.candidates} == {tb.Categorical, tb.Bernoulli}


@pytest.mark.slow
def test_a_mixture_judges_columns_by_themselves():
    frame, _ = draw()
    model = tb.Mixture(2, "suggest", random_state=0, n_init=1).fit(frame)
    assert model.columns_ == tb.suggest_families(frame, np.zeros(400, int)).columns
    assert model.dropped_columns_ == LEFT_OUT
    model.sample(3)


def test_rows_without_a_label_take_no_part():
    frame, y = draw()
    frame = frame.drop(columns=["number", "name"])
    known = np.arange(400) % 3 == 0
    model = tb.NaiveBayes("suggest", unlabeled="em").fit(frame, np.where(known, y, None))
    assert model.columns_ == tb.suggest_families(frame[known], y[known]).columns


def test_steps_of_sequences():
    frame, y = draw()
    frame = frame.drop(columns="nothing")
    steps = [frame[:200], frame[200:]]
    model = tb.HiddenMarkovModel(columns="suggest").fit(steps, [y[:200], y[200:]])
    expected = tb.suggest_families(frame, y)
    assert model.columns_ == expected.columns
    assert model.dropped_columns_ == {name: reason for name, reason in LEFT_OUT.items() if name != "nothing"}
    model.predict(steps)
    unlabeled = tb.HiddenMarkovModel(2, columns="suggest", random_state=0, tol=0.1).fit(steps)
    assert set(unlabeled.columns_) == set(expected.columns)


# ---- What says nothing ---------------------------------------------------------------------------------------------


def left_out(columns, n=200):
    y = np.random.default_rng(1).integers(0, 2, n)
    return (
        tb.NaiveBayes("suggest").fit({**columns, "other": np.random.default_rng(2).normal(size=n)}, y).dropped_columns_
    )


def test_identifiers():
    rng = np.random.default_rng(3)
    assert set(left_out({"id": rng.permutation(200), "id2": 7 * np.ones(200) + rng.permutation(200)})) == {"id", "id2"}
    assert set(left_out({"name": np.array([f"{k}" for k in range(200)])})) == {"name"}
    nearly = np.array([f"{k}" for k in range(200)])
    nearly[:10] = "same"
    assert set(left_out({"name": nearly})) == {"name"}
    assert not left_out({"income": rng.integers(0, 10**6, 200), "grade": rng.integers(0, 150, 200)})
    assert not left_out({"town": np.array([f"{k}" for k in rng.integers(0, 120, 200)])})
    few = {"id": np.arange(12), "name": np.array(list("abcdefghijkl"))}
    assert not left_out(few, 12)


@pytest.mark.parametrize("part", [slice(None, None, 2), np.random.default_rng(0).choice(300, 150, replace=False)])
def test_running_numbers_are_recognized_in_part_of_the_rows(part):
    frame = pd.DataFrame({"number": np.arange(300), "age": np.arange(300) % 50}).iloc[part]
    y = (np.arange(300) < 150)[part]  # the rows are sorted by class
    assert tb.NaiveBayes("suggest").fit(frame, y).dropped_columns_ == {
        "number": "an identifier: whole numbers, one after the other"
    }


def test_columns_that_repeat_others():
    rng = np.random.default_rng(4)
    x, level = rng.normal(size=200), rng.integers(0, 4, 200)
    assert left_out({"x": x, "y": 3 - 2.5 * x}) == {"y": "repeats 'x'"}
    assert left_out({"x": x, "log": np.exp(x), "z": x}) == {"log": "repeats 'x'", "z": "repeats 'x'"}
    assert left_out({"level": level, "word": np.array(list("dbac"))[level]}) == {"word": "repeats 'level'"}
    almost = level.copy()
    almost[0] = (almost[0] + 1) % 4
    assert not left_out({"level": level, "almost": almost, "y": x + 1e-3 * rng.normal(size=200)})
    holes = np.where(np.arange(200) < 5, np.nan, x)  # what is missing in one of them is known by the other
    assert not left_out({"x": x, "holes": holes})
    assert left_out({"holes": holes, "again": 2 * holes}) == {"again": "repeats 'holes'"}
    rare = np.zeros(200)
    rare[7] = 1  # two such columns are alike by chance soon enough
    assert not left_out({"a": rare, "b": rare.copy()})
    assert not left_out({"a": x, "b": rng.normal(size=200)})


def test_when_nothing_says_anything():
    y = np.array([0, 1, 1] * 20)
    model = tb.NaiveBayes("suggest").fit({"x": [1.0] * 60, "z": [None] * 60}, y)
    assert model.columns_ == {}
    np.testing.assert_allclose(model.predict_proba({"x": [1.0], "z": [None]}), [[21 / 62, 41 / 62]], atol=0.02)


@pytest.mark.parametrize("dtype", ["boolean", object])
def test_yes_or_no_with_cells_that_lack(dtype):
    y = np.arange(60) % 2
    known = np.flatnonzero(np.arange(60) % 5)
    flag = pd.Series(y == 1, dtype=dtype)
    flag[::5] = None
    found = tb.suggest_families(pd.DataFrame({"flag": flag}), y)
    alone = tb.suggest_families(pd.DataFrame({"flag": (y == 1)[known]}), y[known])
    assert [one.bits for one in found.details["flag"].candidates] == [
        one.bits for one in alone.details["flag"].candidates
    ]
    assert tb.NaiveBayes("suggest").fit(pd.DataFrame({"flag": flag}), y).predict(pd.DataFrame({"flag": [True]})) == [1]


@pytest.mark.parametrize("value", [np.inf, 1e300])
def test_numbers_without_moments_are_refused_by_their_row(value, monkeypatch):
    monkeypatch.setattr(family_evidence, "MOST_ROWS", 30)
    size = np.sqrt(np.arange(60.0))
    size[2 * 17] = value  # the 17th of the rows that are looked at
    with pytest.raises(tb.DataError, match="in row 34, column 'size'"):
        tb.NaiveBayes("suggest").fit(pd.DataFrame({"age": size[::-1].clip(0, 7), "size": size}), np.arange(60) % 2)
