"""Models that several processes change at once, some of them killed: what was acknowledged is there, once."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.apps.cli.main import main
from tallybayes.apps.cli.model_files import locked

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="processes are killed by a signal")


def work(names, crash=None):
    """Update the model with one file after the other; what is acknowledged is written down."""
    with open(os.devnull, "w") as silent:
        sys.stdout = sys.stderr = silent
        if crash is not None:
            before, name = crash
            done = getattr(os, name)

            def killed(*arguments):
                if not before:
                    done(*arguments)
                os.kill(os.getpid(), signal.SIGKILL)

            setattr(os, name, killed)
        written = os.open("acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for one in names:
            code = main(["update", "m.tally", f"{one}.csv"])
            os.write(written, f"{one}\n".encode() if code == 0 else b"refused\n")
        os._exit(0)


@pytest.fixture
def start(done, tmp_path):
    """Processes that update a model, each a server's copy that has read the libraries already."""
    context = multiprocessing.get_context("forkserver")
    modules = ["run", "commands.update", "changing"]
    context.set_forkserver_preload(
        [
            *(f"tallybayes.apps.cli.{name}" for name in modules),
            "tallybayes.models.naive_bayes.naive_bayes",
            "pyarrow.csv",
        ]
    )
    (tmp_path / "first.csv").write_text("x,y\nold,a\nold,b\n")
    done("fit first.csv -t y -m naive-bayes -o m.tally")

    def begin(names, crash=None):
        for name in names:
            (tmp_path / f"{name}.csv").write_text(f"x,y\n{name},a\n")
        process = context.Process(target=work, args=(names, crash))
        process.start()
        return process

    return begin


@pytest.mark.slow
@needs_signals
def test_no_change_is_lost_and_none_is_half_made(start, done, tmp_path):
    rng, started = np.random.default_rng(0), 0
    for generation in range(2):
        names = [[f"{worker}{generation}.{number}" for number in range(10)] for worker in "abcd"]
        workers = [start(some) for some in names]
        started += 40
        begun = (tmp_path / "acknowledged").read_text().count("\n") if generation else 0
        while (
            not (tmp_path / "acknowledged").exists() or (tmp_path / "acknowledged").read_text().count("\n") < begun + 6
        ):
            time.sleep(0.005)
        for worker in workers[:3]:  # in the middle of it, wherever that is
            time.sleep(float(rng.uniform(0, 0.05)))
            os.kill(worker.pid, signal.SIGKILL)
            tb.load("m.tally")  # whole, at any moment
        for worker in workers:
            worker.join(60)
        assert workers[3].exitcode == 0
    acknowledged = set((tmp_path / "acknowledged").read_text().split())
    assert "refused" not in acknowledged
    model = tb.load("m.tally")
    there = set(model.tally_.domains["x"].levels) - {"old"}
    assert acknowledged <= there
    assert len(there - acknowledged) <= 6  # those who were killed had one in flight each, at most
    assert 20 <= len(there) < started
    assert model.n_rows_ == len(there) + 2  # each of them once
    (tmp_path / "all.csv").write_text("x,y\nold,a\nold,b\n" + "".join(f"{name},a\n" for name in there))
    assert model.tally_.isclose(tb.NaiveBayes({"x": tb.Categorical()}).fit(tmp_path / "all.csv", "y").tally_)
    done("forget m.tally all.csv")
    assert tb.load("m.tally").n_rows_ == 0
    assert not (tmp_path / ".m.tally.lock").exists()


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize(
    ("before", "name", "counted"), [(True, "fsync", 2), (True, "replace", 2), (False, "replace", 3)]
)
def test_killed_at_the_worst_moment_the_model_is_the_old_or_the_new_one(before, name, counted, start, done, tmp_path):
    worker = start(["new"], (before, name))
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL
    assert tb.load("m.tally").n_rows_ == counted
    assert (tmp_path / ".m.tally.lock").exists()  # it was killed while it held the lock
    done("update m.tally new.csv")
    assert tb.load("m.tally").n_rows_ == counted + 1
    assert not (tmp_path / ".m.tally.lock").exists()


def test_who_comes_second_waits_and_says_so(tmp_path, capfd):
    path, order = str(tmp_path / "m.tally"), []

    def second():
        with locked(path, patience=0.0):
            order.append("second")

    with locked(path):
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.1)
        order.append("first")
    waiting.join(10)
    assert order == ["first", "second"]
    assert "waiting for another process that changes" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_lock_file_left_behind_is_no_lock(tmp_path):
    (tmp_path / ".m.tally.lock").touch()
    with locked(str(tmp_path / "m.tally"), patience=60):
        pass
    assert not list(tmp_path.iterdir())


def test_links_are_locked_where_they_point_to(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link.tally").symlink_to(tmp_path / "a" / "m.tally")
    with locked(str(tmp_path / "link.tally")):
        assert [path.name for path in (tmp_path / "a").iterdir()] == [".m.tally.lock"]
    assert Path(tmp_path / "link.tally").is_symlink()
