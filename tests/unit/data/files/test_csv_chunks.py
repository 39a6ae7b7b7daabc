"""Files of text in pieces: cut where rows end, each parsed by itself, as if all had been parsed together."""

import gzip
import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import tallybayes as tb
from tallybayes.data.files.csv_chunks import row_chunks
from tallybayes.warnings import DataSourceWarning

CELLS = ["plain", "", '"quoted"', '"two\nlines"', '"with "" in it"', '"a, b"', '"\n"', '""', '"""\n"""', '"x\r\ny"']
STRAY = ['5" pipe', 'x"', '"y"z', 'a""b', '"y"z"']


def _text(rng, n, cells, end="\n"):
    rows = [",".join(rng.choice(cells, 3)) + f",{k}" for k in range(n)]
    return ("a,b,c,k" + end + end.join(rows) + end).encode()


def _whole(text):
    options = csv.ParseOptions(newlines_in_values=True)
    read = csv.ReadOptions(block_size=len(text) + 1, use_threads=False)
    types = {"k": pa.int64(), **dict.fromkeys("abc", pa.string())}
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    return csv.read_csv(pa.BufferReader(text), parse_options=options, read_options=read, convert_options=convert)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("cells", [CELLS[:2], CELLS, CELLS + STRAY], ids=["plain", "quoted", "stray quotes"])
def test_pieces_are_whole_rows(cells, end, tmp_path):
    cells = [cell for cell in cells if end != "\r" or "\n" not in cell]
    text = _text(np.random.default_rng(len(cells)), 500, cells, end)
    path = tmp_path / "rows.csv"
    path.write_bytes(text)
    for size in (50, 333, 5000, 10**6):
        pieces = list(row_chunks(str(path), size, size))
        assert b"".join(piece.data for piece in pieces) == text
        assert len(pieces) > len(text) // (8 * size)
        mark = b"\r" if end == "\r" else b"\n"
        assert [piece.line for piece in pieces] == [
            1 + b"".join(piece.data for piece in pieces[:k]).count(mark) for k in range(len(pieces))
        ]
        names = b"a,b,c,k\n"
        parts = [_whole(piece.data if k == 0 else names + piece.data) for k, piece in enumerate(pieces)]
        assert pa.concat_tables(parts).combine_chunks().equals(_whole(text).combine_chunks())


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("threads", [0, 1])
def test_many_pieces_are_one_table(packed, threads, tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 1000)
    text = _text(np.random.default_rng(1), 2000, CELLS + STRAY)
    path = tmp_path / ("rows.csv.gz" if packed else "rows.csv")
    path.write_bytes(gzip.compress(text) if packed else text)
    tb.set_threads(threads)
    try:
        parts = list(tb.table(path).batches())
        some = list(tb.table(path).batches(["k", "b"]))
    finally:
        tb.set_threads(0)
    assert len(parts) > 20
    expected = _whole(text)
    for name in expected.schema.names:
        assert [cell for part in parts for cell in part[name].to_pylist()] == expected[name].to_pylist()
    assert some[0].schema.names == ["k", "b"]
    assert [cell for part in some for cell in part["b"].to_pylist()] == expected["b"].to_pylist()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1", "utf8"])
def test_encodings_in_pieces(encoding, tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 101)
    path = tmp_path / "rows.csv"
    path.write_bytes(("x;y\n" + "é;ja\nü;nein\n" * 300).encode(encoding))
    tally = tb.NaiveBayes().fit(tb.table(path, encoding=encoding), "y").tally_
    assert tally.domains["x"].levels == ("é", "ü")
    assert tally["y"].table.tolist() == [300, 300]


def test_what_is_no_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x,y\n\xff,a\n")
    with pytest.raises(tb.DataError, match="encoding is 'klingon'; expected an encoding of Python"):
        tb.NaiveBayes().fit(tb.table(path, encoding="klingon"), "y")
    with pytest.raises(tb.DataError, match=r"rows.csv is not text in ascii"):
        tb.NaiveBayes().fit(tb.table(path, encoding="ascii"), "y")


def test_a_quote_that_is_never_closed(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 1000)
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "1,a\n" * 1000 + '"2,b\n' + "3,c\n" * 10_000)
    with pytest.raises(tb.DataError, match=r"rows.csv, line 1002: a quote opens the cell '\"2,b' and is not closed"):
        tb.NaiveBayes().fit(path, "y")


def test_the_column_and_the_line_of_a_bad_cell_where_some_columns_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 500)
    lines = ['"two\nlines",1,2,a'] + [f"{k},{k},{k},{'ab'[k % 2]}" for k in range(1000)]
    lines[900] = "1,2,foo,a"
    path = tmp_path / "rows.csv"
    path.write_text("w,v,x,y\n" + "\n".join(lines) + "\n")
    with pytest.raises(tb.DataError, match=r"rows.csv, line 903, column 'x': found 'foo'; expected int64"):
        tb.NaiveBayes().fit(tb.table(path, columns=["x", "y"]), "y")
    with pytest.warns(DataSourceWarning, match=r"rows.csv: 1 bad line skipped"):
        model = tb.NaiveBayes().fit(tb.table(path, columns=["y", "x"], on_bad="skip"), "y")
    assert model.tally_["y"].table.sum() == 1000


def test_a_cell_that_is_no_text_in_a_later_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 500)
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x,y\n" + b"u,a\n" * 1000 + b"\xff,b\n")
    for on_bad in ("error", "skip", "missing"):
        with pytest.raises(tb.DataError, match=r"rows.csv, line 1002: found the byte 0xff; expected text in utf8"):
            tb.NaiveBayes().fit(tb.table(path, on_bad=on_bad), "y")


def test_blank_lines_and_lines_of_names_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 100)
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "1,a\n" * 100 + "\n" * 500 + "2,b\n" * 100)
    assert tb.NaiveBayes().fit(path, "y").tally_["y"].table.tolist() == [100, 100]
    path.write_text("x,y\n" + "\n" * 500 + "2,b\n" * 100)
    assert tb.NaiveBayes(tb.Categorical()).fit(path, "y").tally_["y"].table.tolist() == [100]


def test_files_whose_columns_have_another_order(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 100)
    (tmp_path / "1.csv").write_text("x,y\n" + "1,a\n" * 100)
    (tmp_path / "2.csv").write_text("y,x\n" + "b,2.5\n" * 100)
    model = tb.NaiveBayes().fit(str(tmp_path / "*.csv"), "y")
    assert model.tally_["y"].table.tolist() == [100, 100]
    assert model.tally_["x"].mean.ravel().tolist() == [1, 2.5]


@pytest.mark.parametrize(
    "rest",
    ["3,c\n" * 20, '3,"c"\n' * 20, '"3","c"\n' * 20, '3,"c, d"\n5" pipe,c\n' * 20, '3,"c\nd"\n' * 20, "3,c"],
    ids=["no quotes", "last cell quoted", "all quoted", "stray quotes", "cells of several lines", "no line end"],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("on_bad", ["error", "skip"])
def test_the_line_of_a_quote_that_is_not_closed(rest, end, on_bad, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    text = 'x,y\n"1",a\n"1\n0",a\n2,"b\n' + rest
    path.write_bytes(text.replace("\n", end).encode())
    for block in (50, 1 << 22):
        monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", block)
        with pytest.raises(tb.DataError, match=r"rows.csv, line 5: a quote opens the cell '\"b' and is not closed"):
            tb.table(path, on_bad=on_bad).read("this")


def test_text_after_a_quoted_cell_of_one_line_is_part_of_it(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('x,y\n"1" ,a\n"5" pipe,b\n"2\n3",c\n')
    assert tb.table(path).read("this").column("x").to_pylist() == ["1 ", "5 pipe", "2\n3"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_names_the_encoding(encoding, packed, tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 333)  # characters are cut
    path = tmp_path / ("rows.csv.gz" if packed else "rows.csv")
    raw = ("sky;y\n" + "søn;ja\n雨;nei\n" * 100).encode(encoding)
    path.write_bytes(gzip.compress(raw) if packed else raw)
    found = tb.table(path).read("this")
    assert found.column_names == ["sky", "y"]
    assert found["sky"].to_pylist() == ["søn", "雨"] * 100


def test_utf_16_without_a_mark(tmp_path):
    path = tmp_path / "rows.csv"
    for encoding in ("utf-16-le", "utf-16-be"):
        path.write_bytes("x,y\n1,a\n".encode(encoding))
        with pytest.raises(tb.DataError, match=rf"rows.csv, line 1: found NUL bytes.*\n.*encoding='{encoding}'"):
            tb.NaiveBayes().fit(path, "y")
        assert tb.NaiveBayes().fit(tb.table(path, encoding=encoding), "y").classes_ == ["a"]


@pytest.mark.parametrize("on_bad", ["error", "skip"])
def test_bytes_that_are_no_text(on_bad, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 500)
    path = tmp_path / "rows.csv"
    late, names = b"x,y\n" + b"1,a\n" * 999 + b"\xff,a\n", b"x\xff,y\n1,a\n"
    for raw, line in ((late, 1001), (names, 1), (b"x,y\n1,a\n1,\xff,2\n", 3), (random.Random(0).randbytes(5000), 1)):
        path.write_bytes(raw)
        with pytest.raises(tb.DataError, match=rf"rows.csv, line {line}: found the byte 0x..; expected text in utf8"):
            tb.table(path, on_bad=on_bad).read("this")
    assert capfd.readouterr().err == ""


def test_the_type_that_a_number_needs(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 500)
    path = tmp_path / "rows.csv"
    for cell, kind in (("1.5", "float64"), ("-2e3", "float64"), ("many", "string")):
        path.write_text("x,y\n" + "1,a\n" * 500 + cell + ",a\n")
        with pytest.raises(tb.DataError, match=rf"line 502, column 'x': found '{cell}'.*\n.*types={{'x': '{kind}'}}"):
            tb.NaiveBayes().fit(path, "y")
        tb.NaiveBayes().fit(tb.table(path, types={"x": kind}), "y")


def test_packed_files_that_are_cut_keep_no_memory(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,a\n" * 100_000)[:-20])
    tracemalloc.start()
    try:
        for _ in range(5):
            with pytest.raises(tb.DataError, match=r"rows.csv.gz cannot be read: Truncated compressed stream"):
                tb.table(path).read("this")
        assert tracemalloc.get_traced_memory()[0] < 2e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("start", "kind"),
    [(b"\x1f\x8b\x08\0", "gzip"), (b"PK\3\4\n\0", "a zip archive or a workbook"), (b"PAR1\0", "Parquet")],
)
def test_binary_files_named_as_text(start, kind, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(start + bytes(50))
    with pytest.raises(
        tb.DataError, match=rf"rows.csv, line 1: found {kind}; expected text.\n    Unpack the file, or rename"
    ):
        tb.NaiveBayes().fit(path, "y")


def test_names_in_errors_of_stated_types(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('k,"a,b",y\n1,1,u\n2,1.5,v\n')
    with pytest.raises(tb.DataError, match=r"line 3, column 'a,b': found '1.5'.*\n.*types=\{'a,b': 'float64'\}"):
        tb.NaiveBayes().fit(tb.table(path, types={"a,b": "int64"}), "y")


def test_names_alone_without_a_line_end(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y")
    assert tb.table(path).read("this").column_names == ["x", "y"]
    with pytest.raises(tb.DataError, match="has 0 rows"):
        tb.NaiveBayes().fit(path, "y")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_last_row_without_line_end_tells_the_types_too(end, tmp_path):
    (tmp_path / "rows.csv").write_text(end.join(["x,y", "1,a", "2.5,b"]), newline="")
    assert tb.table(tmp_path / "rows.csv").read("this").to_pydict() == {"x": [1.0, 2.5], "y": ["a", "b"]}
    (tmp_path / "rows.jsonl").write_text('{"x": 1}\n{"x": 2.5, "y": "b"}')
    assert tb.table(tmp_path / "rows.jsonl").read("this").to_pydict() == {"x": [1.0, 2.5], "y": [None, "b"]}


NUMBERS = ["7", "-2.5", "1e3", "007", "x", "", "NA", "2026-05-29", "true", "12345678901234567890", " 1", "0.5"]


@pytest.mark.parametrize("first", NUMBERS)
@pytest.mark.parametrize("nulls", [None, ["7", "0.5"]], ids=["default nulls", "some nulls"])
def test_types_of_many_columns_are_those_that_arrow_infers(first, nulls, tmp_path):
    names = [f"a column with a long name {k}" for k in range(len(NUMBERS) * 40)]  # a first line of more than 4 kB
    rows = [[first] * len(names), (NUMBERS * 40), [first] * len(names)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(",".join(row) for row in [names, *rows]) + "\n")
    convert = csv.ConvertOptions(strings_can_be_null=True, **({} if nulls is None else {"null_values": nulls}))
    expected = csv.read_csv(path, convert_options=convert)
    kinds = [pa.string() if pa.types.is_null(field.type) else field.type for field in expected.schema]
    source = tb.table(path, null_values=nulls)
    assert source.schema.types == kinds
    columns = [expected.column(k).cast(kind) for k, kind in enumerate(kinds)]
    assert pa.concat_tables(source.batches()).to_pydict() == pa.table(columns, names).to_pydict()
    longer = tmp_path / "longer.csv"  # its first row has too few cells and is skipped
    longer.write_text("\n".join(",".join(row) for row in [names, ["1.5"] * 9, *rows[1:2] * 2]) + "\n")
    assert tb.table(longer, on_bad="skip").schema.types == tb.table(longer, on_bad="missing").schema.types
    assert tb.table(longer, on_bad="skip").schema.field(0).type == pa.int64()
