"""The command, run in this process: what it wrote, what it said, and its exit code."""

import io
import sys
from typing import NamedTuple

import pandas as pd
import pytest

from tallybayes.apps.cli.main import main
from tallybayes.datasets import make_penguins


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def tally(capfdbinary, tmp_path, monkeypatch):
    """Run the command in a folder of its own; words are split at spaces, unless they come one by one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(words, *more, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([*words.split(), *more])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Ran(code, out.decode(), err.decode())

    return run


@pytest.fixture
def done(tally):
    """The same, for what must succeed: what it wrote."""

    def run(words, *more, stdin=b""):
        found = tally(words, *more, stdin=stdin)
        assert found.code == 0, found.err
        return found.out

    return run


@pytest.fixture(scope="session")
def frame():
    return pd.DataFrame(make_penguins(300, 3))


@pytest.fixture
def files(frame, tmp_path):
    """Rows to learn from, rows to ask about, and a part of the first."""
    frame[:200].to_csv(tmp_path / "penguins.csv", index=False)
    frame[200:].to_csv(tmp_path / "test.csv", index=False)
    frame[:50].to_csv(tmp_path / "part.csv", index=False)
    return tmp_path
