"""Networks of measured columns are asked by the shell, from files of `tally fit` and of plain text."""

import json


def test_measured_columns_are_told(done, files):
    arrows = "--structure species->mass_g bill_mm->mass_g species->bill_mm"
    done(f"fit penguins.csv --model network {arrows} -o n.tally")
    shown = done("query n.tally --nodes mass_g --given bill_mm=45")
    assert shown.startswith("p(mass_g | bill_mm = 45.0): mean ")
    told = json.loads(done("query n.tally --nodes mass_g --given bill_mm=45 --json"))
    assert told["interval_90"][0] < told["mean"] < told["interval_90"][1]
    both = json.loads(done("query n.tally --nodes mass_g bill_mm --json"))
    assert len(both["mean"]) == len(both["std"]) == len(both["covariance"]) == 2
    mixed = json.loads(done("query n.tally --nodes species mass_g bill_mm --json"))["probabilities"]
    assert abs(sum(row["probability"] for row in mixed) - 1) < 1e-12
    assert [len(row["mean"]) for row in mixed] == [2] * len(mixed)


def test_plain_text_is_a_network(done, files):
    nodes = [
        {"name": "x", "intercept": 1, "std": 1},
        {"name": "y", "parents": ["x"], "intercept": 0, "coefficients": {"x": 2}, "std": 1},
    ]
    text = json.dumps({"format": "tallybayes network", "version": 2, "nodes": nodes})
    (files / "n.json").write_text(text, encoding="utf-8")
    assert json.loads(done("query n.json --nodes y --do x=3 --json"))["mean"] == 6.0


def test_other_models_and_words_without_an_option_are_rejected(done, tally, files):
    done("fit penguins.csv --model naive-bayes -t species -o m.tally")
    for words in ("query m.tally", "query m.tally mass_g=4000", "query m.tally --nodes species"):
        code, _, problem = tally(words)
        assert (code, problem) == (1, "error: m.tally is a NaiveBayes; expected a BayesianNetwork.\n")
    done("fit penguins.csv --model network --structure species->mass_g -o n.tally")
    code, _, problem = tally("query n.tally mass_g=4000")
    assert code == 2
    assert "'mass_g=4000' has no option before it; expected --nodes COLUMN, --given or --do COLUMN=LEVEL." in problem
