"""Models by their names: regressions and mixtures in every command, targets that are not classes."""

import json

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb


@pytest.fixture
def numbers(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=200), "kind": rng.choice(["a", "b"], 200)})
    rows["y"] = (2 * rows.x + (rows.kind == "b") + 0.1 * rng.normal(size=200)).round(4)
    rows["count"] = rng.integers(1000, 9000, 200)
    rows["grade"] = rng.integers(1, 6, 200)
    rows.to_csv(tmp_path / "n.csv", index=False)
    rows[:50].to_csv(tmp_path / "part.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("target", ["y", "count"])
@pytest.mark.parametrize("model", ["auto", "naive-bayes", "discriminant"])
def test_a_continuous_target_is_an_error(target, model, numbers, tally):
    found = tally(f"fit n.csv -t {target} -m {model} -o m.tally")
    assert found.code == 2
    assert found.err.startswith(f"error: column '{target}' is continuous (")
    assert f"--model regression to predict the number, or --types {target}=string to use" in found.err
    assert not (numbers / "m.tally").exists()


def test_whole_numbers_can_be_classes(numbers, done):
    done("fit n.csv -t grade -m naive-bayes -o grade.tally")
    assert tb.load("grade.tally").classes_.tolist() == [1, 2, 3, 4, 5]
    done("fit n.csv -t count -m naive-bayes -o forced.tally --types count=string")
    assert tb.load("forced.tally").classes_.dtype.kind == "U"


def test_a_regression_in_every_command(numbers, done, tally):
    done("fit n.csv -t y -m regression --degree 2 -o r.tally")
    shown = done("show r.tally")
    assert "Regression of 200 rows, degree 2" in shown
    assert "weights of 200 rows" in shown
    assert tally("show r.tally --column x").code == 2
    expected = tb.load("r.tally").predict(numbers / "n.csv")
    lines = done("predict r.tally n.csv --keep kind").splitlines()
    assert lines[0] == '"kind","prediction"'
    assert float(lines[1].split(",")[1]) == pytest.approx(expected[0])
    assert tally("predict r.tally n.csv --proba").code == 2
    assert json.loads(done("evaluate r.tally n.csv --json"))["r2"]["value"] > 0.9
    assert "R²" in done("evaluate r.tally n.csv --by kind")
    before = tb.load("r.tally").tally_
    assert "r.tally now has 250" in done("update r.tally part.csv")
    assert "r.tally now has 200" in done("forget r.tally part.csv")
    assert tb.load("r.tally").tally_.isclose(before, 1e-9)
    done("fit part.csv --like r.tally -o part.tally")
    assert "250 rows" in done("merge r.tally part.tally -o both.tally")
    assert "the last 100 rows" in done("window r.tally n.csv --rows 100 -o w.tally")
    for words in ("explain r.tally n.csv", "audit r.tally n.csv", "sample r.tally", "diff r.tally r.tally"):
        found = tally(words)
        assert (found.code, "LinearRegression" in found.err) == (1, True)
    assert tally("report r.tally -d n.csv").code == 2
    assert "missing option --target" in tally("fit n.csv -m regression").err


def test_a_mixture_in_every_command(numbers, done, tally):
    done("fit n.csv -m mixture --components 3 --columns kind=ignore --seed 1 -o m.tally")
    shown = done("show m.tally")
    assert "Mixture of 200 rows, components 0: " in shown
    assert "p(component)" in shown
    assert "mean" in done("show m.tally --column x")
    assert done("predict m.tally n.csv --proba").splitlines()[0] == '"prediction","p(0)","p(1)","p(2)"'
    assert "bits per row" in done("evaluate m.tally n.csv")
    assert done("sample m.tally -n 2 --seed 0").splitlines()[0].endswith(',"component"')
    assert "log-odds" in done("explain m.tally n.csv")
    assert "numbered from 1" in tally("audit m.tally n.csv").out
    assert "SELECT" in done("export m.tally --sql duckdb --table n")
    for words in ("update m.tally part.csv", "forget m.tally part.csv", "window m.tally n.csv --rows 9 -o w.tally"):
        found = tally(words)
        assert (found.code, "Mixture" in found.err) == (1, True)
    assert tally("fit n.csv --like m.tally").code == 2
    assert "--columns kind=ignore" in tally("fit n.csv -m mixture -t kind").err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("fit n.csv -t knd -m naive-bayes -o new", "kind"),
        ("fit n.csv -t kind -m naive-bayes --weight cuont -o new", "count"),
        ("fit n.csv -t kind -m naive-bayes --columns gade=label -o new", "grade"),
        ("evaluate k.tally n.csv --by grad", "grade"),
        ("predict k.tally n.csv --keep grad -o new", "grade"),
        ("audit k.tally n.csv -t kin", "kind"),
        ("report k.tally -d n.csv --by grad -o new", "grade"),
        ("update k.tally n.csv -t kinds -o new", "kind"),
        ("forget k.tally n.csv --weight grad -o new", "grade"),
        ("window k.tally n.csv --rows 9 -t kinds -o new", "kind"),
        ("show k.tally -c grad", "grade"),
    ],
)
def test_misspelt_columns_are_found_before_anything_is_written(words, near, numbers, tally):
    tb.NaiveBayes().fit(numbers / "n.csv", "kind").save(numbers / "k.tally")
    found = tally(words)
    assert found.code == 1, found
    assert f"Did you mean '{near}'?" in found.err
    assert not (numbers / "new").exists()


def test_a_column_of_distinct_values_is_named_with_the_option(files, tally):
    rows = [f"film no {k} is good,c{k},{'ab'[k % 2]}" for k in range(40)]
    (files / "reviews.csv").write_text("\n".join(["review,customer,kind", *rows]))
    found = tally("fit reviews.csv -t kind -m naive-bayes")
    assert found.code == 0
    assert "warning: columns review, customer: categorical by 'auto'" in found.err
    assert "Pass --columns review=text customer=ignore: Text counts words, 'ignore' drops a column." in found.err
    assert "warning" not in tally("fit reviews.csv -t kind -m naive-bayes --columns review=text customer=ignore").err
