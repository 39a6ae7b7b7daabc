"""Audits and receipts, for pipelines: exit codes, tables and JSON."""

import json

import pandas as pd
import pytest


@pytest.mark.slow
def test_an_audit_ends_with_1_where_something_was_found(files, frame, done, tally):
    done("fit penguins.csv --target species --model naive-bayes -o naive.tally")
    late = frame[200:].copy()
    late.loc[late.index[5], "island"] = "Atlantis"
    late.to_csv("late.csv", index=False)
    found = tally("audit naive.tally late.csv --target species --by sex --json")
    assert found.code == 1, found.err
    told = json.loads(found.out)
    assert any("Atlantis" in said for said in told["findings"])
    assert told["cells"][0]["value"] == "Atlantis"
    assert (told["first_row"], told["cells"][0]["first"]) == (1, 6)
    shown = tally("audit naive.tally late.csv").out
    assert "'Atlantis' (1 row, first 6)" in shown
    assert "first in row (from 1)" in shown
    clean = tally("audit naive.tally penguins.csv --json --target species --in-training-data")
    assert clean.code == bool(json.loads(clean.out)["findings"])
    assert tally("audit naive.tally nowhere.csv").code == 1
    assert tally("audit naive.tally").code == 2


def test_what_was_forgotten_has_a_receipt_that_is_checked(files, frame, done, tally):
    done("fit penguins.csv --target species --model naive-bayes -o naive.tally")
    frame[50:200].to_csv("rest.csv", index=False)
    done("fit rest.csv --like naive.tally -o never.tally")
    done("forget naive.tally part.csv --receipt part.json -o without.tally")
    assert json.loads((files / "part.json").read_text())["rows"] == 50
    assert "yes" in done("receipt part.json without.tally --retrained never.tally")
    assert json.loads(done("receipt part.json without.tally --json"))["ok"]
    wrong = tally("receipt part.json naive.tally")
    assert (wrong.code, "NO" in wrong.out) == (1, True)
    again = tally("forget naive.tally part.csv --receipt part.json")
    assert again.code == 1
    assert "exists; nothing was written" in again.err
    assert json.loads(done("show naive.tally --json"))["rows"] == 200
    assert tally("receipt nowhere.json naive.tally").code == 1
    pd.DataFrame({"a": [1]}).to_csv("none.csv", index=False)
    assert "is not a receipt" in tally("receipt none.csv naive.tally").err
