"""Pipes and open files are read as the files they come from, and leave nothing behind."""

import gc
import gzip
import io
import os
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import tallybayes as tb

ROWS = {"x": [1.0, 2.0, 7.0, 9.0] * 5, "y": ["a", "a", "b", "b"] * 5}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def contents():
    table = pa.table(ROWS)
    csv = "x,y\n" + "".join(f"{x},{y}\n" for x, y in zip(ROWS["x"], ROWS["y"], strict=True))
    lines = "".join(f'{{"x": {x}, "y": "{y}"}}\n' for x, y in zip(ROWS["x"], ROWS["y"], strict=True))
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    feather.write_feather(table, arrow)
    return {
        "csv": csv.encode(),
        "csv.gz": gzip.compress(csv.encode()),
        "json": lines.encode(),
        "parquet": parquet.getvalue(),
        "ipc": arrow.getvalue(),
    }


def piped(data, path):
    """A pipe that somebody writes into."""
    os.mkfifo(path)

    def write():
        with open(path, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", contents())
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_read_as_its_file(kind, tmp_path):
    expected = tb.NaiveBayes().fit(ROWS, "y")
    writer = piped(contents()[kind], tmp_path / "pipe")
    model = tb.NaiveBayes().fit(tmp_path / "pipe", "y")
    writer.join()
    assert model.tally_ == expected.tally_
    assert tb.NaiveBayes().fit(io.BytesIO(contents()[kind]), "y").tally_ == expected.tally_
    writer = piped(contents()[kind], tmp_path / "again")
    assert model.predict(tmp_path / "again").tolist() == expected.predict(ROWS).tolist()
    writer.join()


def test_open_text_and_several_files():
    text = contents()["csv"].decode()
    found = tb.table([io.StringIO(text), io.BytesIO(contents()["csv.gz"])]).read("a test")
    assert found.num_rows == 40


def test_copies_are_removed(tmp_path):
    source = tb.table(io.BytesIO(contents()["csv"]))
    (copy,) = tmp_path.iterdir()
    assert copy.name.startswith("tally-spool-")
    source.read("a test")
    del source
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    for wrong in (b"", b"[1]", b"\x1f\x8bno", b"x,y\n1\n"):
        with pytest.raises(tb.DataError):
            tb.table(io.BytesIO(wrong)).read("a test")
        gc.collect()
        assert list(tmp_path.iterdir()) == []


def test_messages_name_the_pipe_and_not_its_copy(tmp_path):
    with open(tmp_path / "torn.part-1", "wb") as file:
        file.write(b"x,y\n1,a\n2,b,c\n")
    with open(tmp_path / "torn.part-1", "rb") as file, pytest.raises(tb.DataError) as found:
        tb.NaiveBayes().fit(file, "y")
    assert str(found.value).startswith(f"{tmp_path / 'torn.part-1'}, line 3: ")
    assert tb.table(io.BytesIO(b"x\n1\n")).name == "the open file"


def test_damaged_packed_files_keep_no_memory():
    data = contents()["csv.gz"][:-20]
    tracemalloc.start()
    try:
        for _ in range(20):
            with pytest.raises(tb.DataError, match="the open file cannot be decompressed: Truncated compressed stream"):
                tb.table(io.BytesIO(data))
        assert tracemalloc.get_traced_memory()[0] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="this system has no files in memory")
def test_files_in_memory_are_read_where_they_are(tmp_path):
    with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".csv") as file:
        file.write(contents()["csv"])
        file.flush()
        assert len(tb.table(file.name).read("a test")) == 20
        assert tb.table(file.name).paths == [file.name]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
@pytest.mark.parametrize("rows", ["<(zcat r.csv.gz)", "/dev/stdin"])
def test_the_command_reads_pipes(rows, tmp_path):
    (tmp_path / "r.csv.gz").write_bytes(contents()["csv.gz"])
    line = f"'{sys.executable}' -m tallybayes fit {rows} -t y -m naive-bayes -o n.tally < r.csv.gz"
    ran = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert tb.load(tmp_path / "n.tally").tally_ == tb.NaiveBayes().fit(ROWS, "y").tally_


def test_an_open_file_whose_name_is_empty():
    with gzip.open(io.BytesIO(contents()["csv.gz"])) as file:  # named ""
        assert tb.NaiveBayes().fit(file, "y").tally_ == tb.NaiveBayes().fit(ROWS, "y").tally_
