"""Windows by the command: made, filled, asked, and taken out of, as models are."""

import json

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.model_options import read_span


@pytest.fixture
def stream(frame, files, done):
    """Rows with times, in two files, and a model of other rows that lends its settings."""
    timed = frame.assign(at=pd.date_range("2026-03-28", periods=len(frame), freq="h"))
    timed[:200].to_csv("first.csv", index=False)
    timed[200:].to_csv("second.csv", index=False)
    done("fit part.csv --target species --model naive-bayes -o naive.tally")
    return timed


def alone(rows):
    """A model of some rows, as the one that lent its settings would have counted them."""
    return tb.load("naive.tally").without_rows().partial_fit(rows.drop(columns="at"), "species")


def test_a_window_of_time_is_made_filled_asked_and_taken_out_of(stream, done, tally):
    shown = done("window naive.tally first.csv --duration 2d --time at -o last.tally")
    assert shown == "the last 2d until 2026-04-05T07:00:00: 48 rows\n"
    assert tb.load("last.tally").model_.tally_.isclose(alone(stream[152:200]).tally_)
    assert ": the last 2d until 2026-04-09T11:00:00: 48 rows" in done("update last.tally second.csv")
    window = tb.load("last.tally")
    assert window.model_.tally_.isclose(alone(stream[-48:]).tally_)
    assert window.time_ == "at"
    assert done("show last.tally").startswith("the last 2d until 2026-04-09T11:00:00: 48 rows")
    state = json.loads(done("show last.tally --json"))
    assert (state["rows"], state["stream"]["kept"], state["stream"]["time"]) == (48, 48, "at")
    told = done("predict last.tally second.csv").split()[1:]
    assert [word.strip('"') for word in told] == window.predict(stream[200:].drop(columns=["at", "species"])).tolist()
    assert json.loads(done("evaluate last.tally second.csv --json"))["rows"] == 100
    assert done("explain last.tally second.csv --row 2").startswith("row 2:")
    done("diff naive.tally last.tally")
    stream[-3:].to_csv("withdrawn.csv", index=False)
    assert "forgot 3 rows: last.tally now has 45" in done("forget last.tally withdrawn.csv --receipt out.json")
    assert tb.load("last.tally").model_.tally_.isclose(alone(stream[-48:-3]).tally_)
    assert json.loads(done("receipt out.json last.tally --json"))["ok"]
    again = tally("forget last.tally withdrawn.csv")
    assert (again.code, "forgotten already" in again.err) == (1, True)
    assert tb.load("last.tally").n_kept_ == 45


def test_windows_of_rows_and_fading_models(stream, done, tally):
    told = json.loads(done("window naive.tally penguins.csv --rows 30 --json"))
    assert (told["file"], told["kept"], told["now"], told["rows"]) == ("naive-window.tally", 30, 200, 30)
    assert "exists; nothing was written" in tally("window naive.tally penguins.csv --rows 30").err
    assert done("update naive-window.tally part.csv") == "naive-window.tally: the last 30 rows: 30 rows\n"
    assert tb.load("naive-window.tally").now_ == 250
    fading = done("window naive.tally first.csv --half-life 1d --time at -o fading.tally")
    age = np.arange(200)[::-1] / 24
    assert fading.startswith("a half-life of 1d until 2026-04-05T07:00:00: total weight ")
    assert tb.load("fading.tally").n_rows_ == pytest.approx((0.5**age).sum())
    assert "half-life of 50 rows" in done("window naive.tally penguins.csv --half-life 50 -o by-rows.tally")
    assert "rows of a decayed model cannot be forgotten" in tally("forget by-rows.tally part.csv").err
    assert "window, which cannot be merged" in tally("merge naive-window.tally naive.tally -o x.tally").err
    assert (
        "time is dates; expected numbers" in tally("window naive.tally first.csv --duration 5 --time at -o x.tally").err
    )
    assert "--time applies to windows" in tally("update naive.tally first.csv --time at").err
    for wrong in ("", "--rows 5 --duration 2d --time at", "--rows 0", "--rows 5 --time at", "--duration 2d"):
        assert tally(f"window naive.tally first.csv -o x.tally {wrong}").code == 2, wrong


def test_a_window_of_sequences(done, tally, tmp_path):
    rng = np.random.default_rng(0)
    words = pd.DataFrame({"s": np.repeat(np.arange(12), 4), "word": rng.choice(list("abc"), 48)})
    words["tag"] = rng.choice(["x", "y"], 48)
    words[:24].to_csv("words.csv", index=False)
    words[24:].to_csv("more.csv", index=False)
    done("fit words.csv -m hidden-markov -t tag --sequence s -o tagger.tally")
    assert "missing option --sequence" in tally("window tagger.tally words.csv --rows 5 -o last.tally").err
    done("window tagger.tally words.csv --rows 5 -t tag --sequence s -o last.tally")
    assert "5 sequences" in done("update last.tally more.csv -t tag --sequence s")
    expected = tb.HiddenMarkovModel().fit(words[28:], "tag", sequence="s")
    assert tb.load("last.tally").model_.tally_.isclose(expected.tally_)
    assert len(done("predict last.tally more.csv --sequence s").splitlines()) == 25


def test_small_counts_are_shown_before_a_model_is_handed_on(stream, done):
    told = json.loads(done("show naive.tally --small-counts 3 --json"))
    expected = tb.load("naive.tally").tally_.small_counts(3)
    assert [(one["what"], one["count"]) for one in told["counts"]] == expected
    assert expected[0][0] in done("show naive.tally --small-counts 3 --all")
    assert "No count is below 1 rows" in done("show naive.tally --small-counts 1")
    done("window naive.tally first.csv --rows 20 -o last.tally")
    assert "contains the 20 rows" in done("show last.tally --small-counts 1")


@pytest.mark.parametrize(("text", "seconds"), [("30d", 2592000), ("1.5h", 5400), ("90 min", 5400), ("2W", 1209600)])
def test_spans_as_they_are_typed(text, seconds):
    assert read_span(text, "duration") == np.timedelta64(seconds, "s")


def test_spans_that_are_none():
    assert read_span("12.5", "duration") == 12.5
    for wrong in ("", "d", "0d", "-3d", "3 months", "1e3", "nan", "3dd"):
        with pytest.raises(UsageError, match="such as 30d"):
            read_span(wrong, "duration")
