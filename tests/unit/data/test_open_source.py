"""Opening data by what they are: lists of paths, folders, and the errors about them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import tallybayes as tb

FRAME = pd.DataFrame({"x": [1.0, 2.0, 7.0, 9.0] * 5, "y": ["a", "a", "b", "b"] * 5})


@pytest.fixture
def files(tmp_path):
    for name in ("a", "b"):
        FRAME.to_parquet(tmp_path / f"{name}.parquet")
        FRAME.to_csv(tmp_path / f"{name}.csv.gz", index=False)
    return tmp_path


@pytest.mark.parametrize("kind", ["parquet", "csv.gz"])
@pytest.mark.parametrize("cast", [Path, str])
@pytest.mark.parametrize("several", [list, tuple])
def test_a_list_of_files_is_their_union(kind, cast, several, files):
    paths = several(cast(files / f"{name}.{kind}") for name in "ab")
    model = tb.NaiveBayes().fit(paths, "y")
    assert model.tally_ == tb.NaiveBayes().fit([FRAME, FRAME], "y").tally_
    assert model.predict(paths).tolist() == ["a", "a", "b", "b"] * 10
    assert tb.NaiveBayes().partial_fit(paths, "y").forget(paths[:1], "y").tally_["y"].table.tolist() == [10.0, 10.0]
    assert tb.evaluate(model, paths, "y").n_rows == 40


def test_a_list_of_patterns(files):
    assert tb.NaiveBayes().fit([str(files / "*.parquet")], "y").tally_["y"].table.sum() == 40


@pytest.mark.parametrize("cast", [Path, str])
def test_a_list_with_a_file_that_does_not_exist(cast, files):
    with pytest.raises(tb.DataError, match=r"there is no file '.*none\.parquet'; expected a path"):
        tb.NaiveBayes().fit([cast(files / "a.parquet"), cast(files / "none.parquet")], "y")


def test_texts_are_not_paths(files, monkeypatch):
    monkeypatch.chdir(files)
    names = ["a.parquet", "b.csv"]
    for texts in (["a b", "a.parquet"], ["none.csv", "c.csv"], ["a.parquet", "b"]):
        assert tb.NaiveBayes(tb.Text()).fit(texts, ["u", "v"]).predict(texts).tolist() == ["u", "v"]
    with pytest.raises(tb.DataError, match=r"there is no file 'b\.csv'"):
        tb.NaiveBayes().fit(names, "y")
    assert tb.NaiveBayes(tb.Text()).fit({"text": names}, ["u", "v"]).predict({"text": names}).tolist() == ["u", "v"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], "is empty"),
        (["_SUCCESS", ".part.parquet"], r"has no file of a known format \(found: .part.parquet, _SUCCESS\)"),
        (["notes.docx"], r"has no file of a known format \(found: notes.docx\)"),
    ],
)
def test_a_folder_without_a_file_to_read(names, found, tmp_path):
    for name in names:
        (tmp_path / name).write_text("x")
    with pytest.raises(tb.DataError, match=rf"folder '.*' {found}\.\n    Expected files that end in one of .*\.csv, "):
        tb.NaiveBayes().fit(tmp_path, "y")


def test_a_folder_of_files_whose_kind_is_given(tmp_path):
    FRAME.to_csv(tmp_path / "part-0", index=False)
    assert tb.NaiveBayes().fit(tb.table(tmp_path, format="csv"), "y").tally_["y"].table.sum() == 20


@pytest.mark.parametrize(
    ("address", "connect"),
    [
        ("postgresql://ann:secret@server/shop", "psycopg"),
        ("postgres://server/shop?password=secret", "psycopg"),
        ("postgresql+psycopg://ann:secret", "psycopg"),
        ("sqlite:secret.db", "sqlite3"),
        ("duckdb:///secret.db", "duckdb"),
    ],
)
def test_addresses_of_databases(address, connect):
    for opened in (lambda: tb.table(address, "t"), lambda: tb.NaiveBayes().fit(address, "y")):
        with pytest.raises(tb.DataError, match=rf"address of a database.*\n.*tb\.table\({connect}\.connect\(") as error:
            opened()
        assert "secret" not in str(error.value)


def test_a_connection_in_place_of_a_table():
    with closing(sqlite3.connect(":memory:")) as connection:
        for run in (lambda: tb.NaiveBayes().fit(connection, "y"), lambda: tb.suggest_families(connection, "y")):
            with pytest.raises(tb.DataError, match=r"a connection to a database(.|\n)*tb\.table\(connection, 'name"):
                run()
