"""Networks of measured columns are asked by the shell, from files of `tally fit` and of plain text."""

import json


def test_measured_columns_are_told(done, files):
    arrows = "--structure species->mass_g bill_mm->mass_g species->bill_mm"
    done(f"fit penguins.csv --model network {arrows} -o n.tally")
    shown = done("query n.tally --ask mass_g --given bill_mm=45")
    assert shown.startswith("p(mass_g | bill_mm = 45.0): mean ")
    told = json.loads(done("query n.tally --ask mass_g --given bill_mm=45 --json"))
    assert told["interval_90"][0] < told["mean"] < told["interval_90"][1]
    both = json.loads(done("query n.tally --ask mass_g bill_mm --json"))
    assert len(both["mean"]) == len(both["covariance"]) == 2


def test_plain_text_is_a_network(done, files):
    nodes = [
        {"name": "x", "intercept": 1, "deviation": 1},
        {"name": "y", "parents": ["x"], "intercept": 0, "weights": {"x": 2}, "deviation": 1},
    ]
    text = json.dumps({"format": "tallybayes network", "version": 1, "nodes": nodes})
    (files / "n.json").write_text(text, encoding="utf-8")
    assert json.loads(done("query n.json --ask y --do x=3 --json"))["mean"] == 6.0
