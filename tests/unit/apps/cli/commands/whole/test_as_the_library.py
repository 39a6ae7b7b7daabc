"""What the command learns, asks and changes is what the library does."""

import json
import sqlite3
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.models.ensemble.members import counts_of
from tests.shared import DATA, needs


def read(text):
    return pd.read_csv(StringIO(text))


@pytest.mark.slow
def test_by_default_a_model_is_chosen_and_everything_works_with_it(files, frame, done, tally):
    told = tally("fit penguins.csv --target species")
    assert told.code == 0
    assert "Selected from" in told.out
    assert "held-out log loss of the ensemble: " in told.out
    assert told.err == "wrote penguins-auto.tally\n"
    model, test = tb.load("penguins-auto.tally"), frame[200:]
    assert model.leaderboard_ is None
    found = read(done("predict penguins-auto.tally test.csv --proba --keep sex"))
    assert list(found) == ["sex", "prediction", "p(Adelie)", "p(Chinstrap)", "p(Gentoo)"]
    np.testing.assert_allclose(found.iloc[:, 2:], model.predict_proba(test.drop(columns="species")), rtol=1e-12)
    shown = done("evaluate penguins-auto.tally test.csv")
    assert repr(tb.evaluate(model, test, "species").accuracy) in shown
    measured = json.loads(done("evaluate penguins-auto.tally test.csv --json --by sex"))
    assert measured["accuracy"]["value"] == tb.evaluate(model, test, "species").accuracy.value
    assert [group["group"] for group in measured["groups"]] == ["female", "male", None]
    assert np.sum(measured["confusion_matrix"]) == 100
    why = done("explain penguins-auto.tally test.csv --row 2 7")
    assert why.startswith("row 2: ")
    assert "\nrow 7: " in why
    weights = json.loads(done("explain penguins-auto.tally test.csv --row 7 --json"))[0]
    assert sum(one["weight"] for one in weights["weights"]) == pytest.approx(weights["log_odds"])
    assert weights["row"] == 7
    refused = tally("sample penguins-auto.tally")
    assert refused.code == 1
    assert "is an AutoClassifier" in refused.err


@pytest.mark.slow
def test_update_forget_and_merge_are_exact_and_say_what_is_kept(files, frame, done, tally):
    done("fit penguins.csv -t species -o all.tally")
    before = Path("all.tally").read_bytes()
    more = tally("update all.tally test.csv")
    assert more.out == "added 100 rows: all.tally now has 300, 200 before\n"
    assert "unchanged model choices: ensemble members" in more.err
    less = json.loads(done("forget all.tally test.csv --json"))
    assert (less["rows_before"], less["rows"]) == (300, 200)
    assert less["kept"][-1] == "calibration"
    first, second = (tb.load(path) for path in ("all.tally", _written(before)))
    for mine, its in zip(first.members_, second.members_, strict=True):
        assert counts_of(mine.model).isclose(counts_of(its.model))
    done("forget all.tally part.csv -o rest.tally")
    done("fit part.csv --like all.tally -o part.tally")
    told = json.loads(done("merge part.tally rest.tally -o both.tally --json"))
    assert told["rows"] == 200
    assert told["rows_of"] == {"part.tally": 50, "rest.tally": 150}
    for mine, its in zip(tb.load("both.tally").members_, first.members_, strict=True):
        assert counts_of(mine.model).isclose(counts_of(its.model))
    assert sorted(path.name for path in Path().iterdir() if path.name.startswith(".")) == []


def _written(content):
    Path("before.tally").write_bytes(content)
    return "before.tally"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("naive-bayes", tb.NaiveBayes()),
        (
            "naive-bayes --estimate map --prior dirichlet:2 --class-prior uniform",
            tb.NaiveBayes(estimate="map", prior=tb.Dirichlet(2), class_prior="uniform"),
        ),
        ("naive-bayes --columns ...=suggest", tb.NaiveBayes({...: "suggest"})),
        (
            "naive-bayes --columns eggs=count mass_g=log-normal sex=label+missing island=ignore",
            tb.NaiveBayes(
                {
                    "eggs": tb.Poisson(),
                    "mass_g": tb.LogNormal(),
                    "sex": tb.WithMissing(tb.Categorical()),
                    "bill_mm": "auto",
                }
            ),
        ),
        ("naive-bayes --columns bill_mm=normal ...=ignore", tb.NaiveBayes({"bill_mm": tb.Gaussian()})),
        (
            "naive-bayes --prior empirical --calibration temperature",
            tb.NaiveBayes(prior="empirical", calibration="temperature"),
        ),
        ("one-dependence", tb.AveragedOneDependence()),
        ("tree-augmented", tb.TreeAugmentedNaiveBayes()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_model_is_what_the_library_learns(words, made, files, frame, done):
    done(f"fit penguins.csv -t species -o m.tally -m {words}")
    expected, test = made.fit(files / "penguins.csv", "species"), frame[200:]
    found = read(done("predict m.tally test.csv --proba"))
    np.testing.assert_array_equal(found["prediction"], expected.predict(files / "test.csv"))
    np.testing.assert_allclose(found.iloc[:, 1:], expected.predict_proba(files / "test.csv"), rtol=1e-9)
    assert json.loads(done("show m.tally --json"))["model"] == type(made).__name__
    assert len(test) == len(found)


@pytest.mark.slow
def test_what_was_learned_is_shown_with_intervals(files, frame, done, tally):
    done("fit penguins.csv -t species -m naive-bayes -o m.tally")
    model = tb.load("m.tally")
    told = json.loads(done("show m.tally --column island bill_mm --json --mass 0.8"))["columns"]
    low, high = model.parameter_table("island").interval(0.8)
    lines = told[0]["lines"]
    np.testing.assert_allclose([one["value"] for one in lines], model.parameter_table("island").values.ravel())
    np.testing.assert_allclose([one["low"] for one in lines], low.ravel())
    np.testing.assert_allclose([one["high"] for one in lines], high.ravel())
    rows = frame[:200]
    counts = [
        ((rows["species"] == one["given"]["species"]) & (rows["island"] == one["parameter"])).sum() for one in lines
    ]
    assert [one["counted"] for one in lines] == counts
    assert [one["parameter"] for one in told[1]["lines"][:3]] == ["mean", "variance", "std"]
    known = rows["bill_mm"].notna() & (rows["species"] == "Adelie")
    assert told[1]["lines"][0]["counted"] == known.sum()
    shown = done("show m.tally -c bill_mm")
    assert "p(bill_mm | species)" in shown
    assert "95% interval" in shown
    whole = done("show m.tally")
    assert "NaiveBayes of 200 rows" in whole
    assert "Gaussian()" in whole
    assert "p(species)" in whole
    numbers = rows[["bill_mm", "mass_g", "species"]].dropna()
    numbers.to_csv("numbers.csv", index=False)
    done("fit numbers.csv -t species -m discriminant -o d.tally")
    covariances = json.loads(done("show d.tally -c mass_g --json"))["columns"][0]["covariances"]
    expected = tb.load("d.tally").covariances_[:, 0, 1]
    np.testing.assert_allclose([one["value"] for one in covariances], expected)
    assert "covariance with" in done("show d.tally -c mass_g")
    assert tally("show m.tally -c bil").err == "error: no column 'bil' in this model.\n    Did you mean 'bill_mm'?\n"
    done("fit penguins.csv -t species -o c.tally")
    assert ", one of " in done("show c.tally -c bill_mm")


def test_weights_count_rows_several_times_and_are_no_column(files, frame, done):
    weighted = frame[:200].assign(times=np.arange(200) % 3)
    weighted.to_csv("weighted.csv", index=False)
    weighted.loc[weighted.index.repeat(weighted["times"])].drop(columns="times").to_csv("repeated.csv", index=False)
    for words in ("-m naive-bayes", "-m one-dependence --columns bill_mm=ignore mass_g=ignore"):
        done(f"fit weighted.csv -t species --weight times {words} -o w.tally --force")
        done(f"fit repeated.csv -t species {words} -o r.tally --force")
        assert tb.load("w.tally").tally_.isclose(tb.load("r.tally").tally_)
    done("forget w.tally weighted.csv --weight times")
    assert tb.load("w.tally").n_rows_ == 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("words", ["naive-bayes --columns eggs=count ...=suggest", "one-dependence", "tree-augmented"])
def test_a_model_like_another_adds_up_with_it(words, files, done, tally):
    done(f"fit penguins.csv -t species -m {words} -o a.tally")
    done("fit test.csv --like a.tally -o b.tally")
    done("merge a.tally b.tally -o c.tally")
    done("update a.tally test.csv")
    assert tb.load("c.tally").tally_.isclose(tb.load("a.tally").tally_)
    assert tally("fit test.csv --like a.tally -o d.tally --prior 1").code == 2


def test_what_changed_between_two_models(files, done, tally):
    done("fit penguins.csv -t species -m naive-bayes -o a.tally")
    done("update a.tally test.csv -o b.tally")
    first, second = tb.load("a.tally"), tb.load("b.tally")
    assert (first.n_rows_, second.n_rows_) == (200, 300)
    expected = tb.difference(first, second)
    told = json.loads(done("diff a.tally b.tally --json"))
    assert told["rows"] == {"before": 200, "after": 300}
    assert [one["bits"] for one in told["columns"]] == [one.bits for one in expected.columns]
    shown = done("diff a.tally b.tally")
    assert "NaiveBayes: 200 rows before, 300 after" in shown
    assert "p(class) moved by " in shown
    done("fit penguins.csv -t species -m one-dependence -o c.tally")
    wrong = tally("diff a.tally c.tally")
    assert wrong.code == 1
    assert "a.tally is a NaiveBayes and c.tally an AveragedOneDependence; expected two models of one kind" in wrong.err


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("words", ["discriminant --covariance tied-diagonal --estimate mle", "nearest-mean"])
def test_models_of_numbers(words, files, frame, done):
    rows = frame[["bill_mm", "mass_g", "species"]].dropna()
    rows[:150].to_parquet("rows.parquet", index=False)
    rows[150:].to_parquet("more.parquet", index=False)
    done(f"fit rows.parquet -t species -m {words} -o m.tally")
    made = tb.GaussianDiscriminant("tied_diagonal", estimate="mle") if "disc" in words else tb.NearestClassMean()
    made.fit(rows[:150], "species")
    np.testing.assert_array_equal(
        read(done("predict m.tally more.parquet"))["prediction"], made.predict(rows[150:].drop(columns="species"))
    )
    done("update m.tally more.parquet")
    assert tb.load("m.tally").n_rows_ == len(rows)


@pytest.mark.slow
def test_networks(tmp_path, done, tally):
    rng = np.random.default_rng(0)
    rain = rng.random(400) < 0.3
    wet = np.where(rng.random(400) < 0.9, rain, ~rain)
    pd.DataFrame({"rain": rain, "wet": wet, "day": rng.integers(0, 3, 400)}).to_csv("days.csv", index=False)
    done("fit days.csv -m network -o n.tally --structure", "rain->wet; day")
    model = tb.load("n.tally")
    assert model.graph_.parents == {"rain": (), "wet": ("rain",), "day": ()}
    expected = model.query("rain", {"wet": True})
    assert done("query n.tally --given wet=true --nodes rain") == f"{expected!r}\n"
    told = json.loads(done("query n.tally --given wet=true day=2 --nodes rain --json"))
    assert told["probabilities"][1] == {"rain": True, "probability": pytest.approx(expected[True])}
    assert told["given"] == {"wet": True, "day": 2}
    assert "wet" in done("query n.tally --do rain=true")
    assert "day" in done("query n.tally --nodes wet day")
    assert len(read(done("sample n.tally -n 30 --seed 1"))) == 30
    assert set(read(done("predict n.tally days.csv -t rain --keep day"))) == {"day", "prediction"}
    assert "bits per row" in done("evaluate n.tally days.csv")
    assert "accuracy" in done("evaluate n.tally days.csv --target rain")
    done("fit days.csv -m network --structure tree -t rain -o tree.tally --prior bdeu:5")
    assert tb.load("tree.tally").prior == tb.BDeu(5.0)
    assert tb.load("tree.tally").graph_.parents["wet"] == ("rain",)
    done("update n.tally days.csv")
    assert tb.load("n.tally").n_rows_ == 800
    model.to_bif("n.bif")
    assert "p(rain | wet = 'True')" in done("query n.bif --given wet=True --nodes rain")
    wrong = tally("query n.tally --given wet=maybe --nodes rain")
    assert wrong.code == 1
    assert "maybe" in wrong.err
    assert tally("query n.tally --given wet --nodes rain").code == 2
    assert tally("query n.tally --nodes rainn").code == 1


def test_hidden_markov_models_in_any_order_of_rows(tmp_path, done, tally):
    rng = np.random.default_rng(0)
    lines = []
    for sentence in range(30):
        state = "D"
        for place in range(int(rng.integers(1, 6))):
            lines.append((sentence, place, str(rng.choice(["the", "a"] if state == "D" else ["dog", "cat"])), state))
            state = "N" if state == "D" else str(rng.choice(["D", "N"]))
    rows = pd.DataFrame(lines, columns=["sentence", "place", "word", "tag"]).sample(frac=1, random_state=1)
    rows.to_csv("words.csv", index=False)
    done("fit words.csv -m hidden-markov -t tag --sequence sentence --order place -o m.tally")
    told = read(done("predict m.tally words.csv --sequence sentence --order place --keep tag word --proba"))
    assert list(told) == ["sentence", "place", "tag", "word", "prediction", "p(D)", "p(N)"]
    np.testing.assert_array_equal(told["word"], rows["word"])
    assert (told["prediction"] == told["tag"]).all()
    assert "accuracy           1.00" in done("evaluate m.tally words.csv -t tag --sequence sentence --order place")
    steps = tb.load("m.tally").n_rows_
    done("update m.tally words.csv -t tag --sequence sentence --order place")
    assert tb.load("m.tally").n_rows_ == 2 * steps
    drawn = read(done("sample m.tally -n 3 --length 4 --seed 0"))
    assert drawn["sequence"].tolist() == [1] * 4 + [2] * 4 + [3] * 4
    assert tally("predict m.tally words.csv").code == 2


def test_samples_go_where_they_are_wanted(files, done, tally):
    done("fit penguins.csv -t species -m naive-bayes -o m.tally")
    one, two = done("sample m.tally -n 20 --seed 3"), done("sample m.tally -n 20 --seed 3")
    assert one == two
    assert set(read(one)) == {"island", "bill_mm", "mass_g", "sex", "eggs", "species"}
    said = tally("sample m.tally -n 20 --class Gentoo -o drawn.parquet")
    assert said.err == "wrote 20 rows to drawn.parquet\n"
    assert set(pd.read_parquet("drawn.parquet")["species"]) == {"Gentoo"}
    lines = done("sample m.tally -n 2 --json").splitlines()
    assert set(json.loads(lines[1])) == set(read(one))
    done("sample m.tally -n 5 -o sqlite:drawn.db --to-table rows")
    connection = sqlite3.connect("drawn.db")
    assert connection.execute("SELECT count(*) FROM rows").fetchone() == (5,)
    connection.close()


@needs("tables", "networks")
def test_real_files_as_they_come(done, tmp_path):
    done(f"fit {DATA}/tables/penguins.csv -t species -m naive-bayes --null-values NA -o p.tally")
    told = json.loads(done(f"evaluate p.tally {DATA}/tables/penguins.csv --null-values NA --json"))
    assert told["accuracy"]["value"] > 0.9
    answer = json.loads(done(f"query {DATA}/networks/asia.bif.gz --given xray=yes --nodes lung --json"))
    assert answer["probabilities"][0]["probability"] == pytest.approx(0.4887, abs=1e-3)
