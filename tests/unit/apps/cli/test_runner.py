"""The end of a command: what is written before its reader has gone, and what is never printed."""

import io
import json
import sys

import pytest

import tallybayes as tb
from tallybayes.apps.cli.main import main


class Gone(io.StringIO):
    """Standard output whose reader has gone."""

    def write(self, text):
        raise BrokenPipeError


@pytest.fixture
def unread(files, monkeypatch):
    """Run a command whose output nobody reads."""
    tb.NaiveBayes().fit(files / "penguins.csv", "species").save(files / "m.tally")
    monkeypatch.chdir(files)

    def run(words):
        monkeypatch.setattr(sys, "stdout", Gone())
        code = main(words.split())
        sys.stdout.close()
        return code

    return run


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("fit penguins.csv -t species -m naive-bayes -o new", "new"),
        ("fit penguins.csv -t species -m naive-bayes -o new --json", "new"),
        ("update m.tally test.csv -o new", "new"),
        ("forget m.tally part.csv -o new --receipt receipt", "new receipt"),
        ("window m.tally penguins.csv --rows 100 -o new", "new"),
        ("merge m.tally m.tally -o new", "new"),
        pytest.param("demo -o new", "new", marks=pytest.mark.slow),
    ],
)
def test_files_are_whole_when_the_reader_of_the_output_has_gone(words, written, unread, files):
    assert unread(words) == 141
    assert all((files / name).stat().st_size for name in written.split())


ADDRESS = "postgresql://ann:se@cr/et@127.0.0.1:1/shop"


@pytest.mark.parametrize(
    "words",
    [
        f"fit {ADDRESS} --table t -t y",
        f"fit {ADDRESS} -t y",
        f"fit {ADDRESS} --table t --delimiter ; -t y",
        f"fit penguins.csv -t species -m naive-bayes -o {ADDRESS}",
        f"predict m.tally test.csv -o {ADDRESS}",
        f"predict m.tally test.csv -o {ADDRESS} --to-table t",
        f"predict m.tally {ADDRESS} --table t",
        f"predict {ADDRESS} test.csv",
        f"nonsense {ADDRESS}",
        f"predict m.tally test.csv --{ADDRESS}",
        f"predict m.tally test.csv {ADDRESS}",
        f"spam stats --store {ADDRESS}",
        f"spam check m.tally --store {ADDRESS}",
        f"spam learn --ham {ADDRESS}",
        f"report m.tally -d {ADDRESS}",
        f"show {ADDRESS}",
        f"merge {ADDRESS} m.tally -o x",
    ],
)
@pytest.mark.parametrize("traceback", ["", "1"])
def test_no_password_is_printed(words, traceback, files, tally, monkeypatch):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    tb.NaiveBayes().fit(files / "penguins.csv", "species").save(files / "m.tally")
    monkeypatch.setenv("TALLY_TRACEBACK", traceback)
    found = tally(words)
    assert found.code != 0
    for part in ("se@", "cr/", "et@"):
        assert part not in found.out + found.err


def test_what_is_written_to_a_database_is_said_without_its_password(files, tally, monkeypatch):
    tb.NaiveBayes().fit(files / "penguins.csv", "species").save(files / "m.tally")
    monkeypatch.setattr("tallybayes.apps.cli.data_argument._connect", lambda address, writes: io.StringIO())
    monkeypatch.setattr(tb, "write_predictions", lambda *parts, **more: 3)
    found = tally(f"predict m.tally test.csv -o {ADDRESS} --to-table t")
    assert found.err == "wrote 3 rows to postgresql://…@127.0.0.1:1/shop\n"
    assert "se@cr/et" not in json.dumps(found)
