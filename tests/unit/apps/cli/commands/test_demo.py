"""The demo shows what it says, and pages are written from a shell."""

import pytest

pytest.importorskip("matplotlib")


@pytest.mark.slow
def test_the_demo_shows_what_it_says(done, tmp_path):
    told = done("demo -o page.html")
    assert told.count("True\n") == 3
    assert "an error      cannot forget" in told
    assert "What-if" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_a_report_from_the_shell(tally, done, files):
    done("fit penguins.csv --target species --model naive-bayes -o m.tally")
    done("report m.tally --data test.csv -o page.html --title", "<b>")
    assert "<title>&lt;b&gt;</title>" in (files / "page.html").read_text()
    missing = tally("report m.tally --data none.csv")
    assert missing.code == 1
    assert "there is no file" in missing.err
