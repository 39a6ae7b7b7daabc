"""Files of JSON lines: what is wrong with a line is named with its number, and no line ends the process."""

import json

import pytest

import tallybayes as tb

PLAIN = '{"x": 1, "y": "a"}\n'


def _fails(path, text, match, **options):
    path.write_text(text)
    with pytest.raises(tb.DataError, match=match):
        tb.table(path, **options).read("this")


@pytest.mark.parametrize("many", [500, 20_000])
@pytest.mark.parametrize(
    "deep",
    [
        '{"x": 1, "z": %s1%s}',
        '["]",' * 5 + "%s%s" + "]" * 5,
        '{"a": "\\\\\\"[", "z": "\\\\", "x": %s1%s}',
        '{"x": "\n%s%s',
        '{"x":\n%s%s}',
        '{"x": "]", %s',
    ],
    ids=["lists", "brackets in strings", "escapes", "a string without an end", "an object on two lines", "no end"],
)
def test_lists_that_are_nested_deep(many, deep, tmp_path):
    line = deep % (("[" * many, "]" * many) if deep.count("%s") == 2 else '["]",' * many)
    _fails(tmp_path / "rows.jsonl", PLAIN * 2 + line + "\n" + PLAIN, r"rows.jsonl, line [34]: .*nested more than 64")


def test_brackets_in_strings_and_wide_lists_are_not_deep(tmp_path):
    rows = [{"x": "[" * 500 + '"\\' + "{" * 500, "y": "a"}, {"x": "]" * 500, "y": "b"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert tb.table(path).read("this").to_pylist() == rows
    wide = {"x": [{"z": [k]} for k in range(500)]}
    path.write_text(json.dumps(wide) + "\n")
    assert tb.table(path).read("this").to_pylist() == [wide]


def test_the_line_of_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.json_lines._BLOCK", 100)
    path = tmp_path / "rows.jsonl"
    many = (PLAIN + "\n") * 99
    _fails(path, many + '{"x": 2, "y":\n', "line 199: 'Invalid value'")
    _fails(path, many + '{"x": "2", "y": "a"}\n', "line 199: .*changed from number to string.*\n.*types=")
    path.write_bytes(many.encode() + b'{"x": 1, "y": "\xff"}\n')
    with pytest.raises(tb.DataError, match="line 199: found the byte 0xff; expected text in utf8"):
        tb.table(path).read("this")
    path.write_text(PLAIN * 198 + '{"x": -1, "y": "b"}\n')
    with pytest.raises(tb.DataError, match=r"found -1.* in .*rows.jsonl, line 199, column 'x'"):
        tb.NaiveBayes({"x": tb.Poisson()}).fit(path, "y")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding(encoding, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes('{"x": "雨"}\n{"x": "søn"}\n'.encode(encoding))
    assert tb.table(path).read("this")["x"].to_pylist() == ["雨", "søn"]


def test_keys_that_appear_late(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.json_lines._BLOCK", 500)
    path = tmp_path / "rows.jsonl"
    lines = [{"x": k * 0.5, "r": {"a": 1}, "y": "ab"[k % 2]} for k in range(200)]
    lines[150] |= {"late": 7.5, "r": {"a": 1, "b": 2}}
    path.write_text("\n\n".join(map(json.dumps, lines)))
    where = r"rows.jsonl, line 301: found the key 'late', which the first rows do not have.*\n.*types=\{'late'"
    columns = {"x": tb.Gaussian(), ...: "auto"}
    for fit in (tb.NaiveBayes({"x": tb.Gaussian()}).fit, tb.NaiveBayes("suggest").fit):
        with pytest.raises(tb.DataError, match=where):
            fit(path, "y")
    named = tb.table(path, columns=["x", "y"])
    assert tb.NaiveBayes().fit(named, "y").tally_["y"].table.sum() == 200
    read = tb.table(path, types={"late": "float64"}, columns=["x", "y", "late"])
    model = tb.NaiveBayes(columns).fit(read, "y")
    assert model.tally_["late"].weight.sum() == 1
    assert len(tb.NaiveBayes({"x": tb.Gaussian()}).fit(named, "y").predict(path)) == 200  # it reads no other key
    short = tmp_path / "short.jsonl"
    short.write_text('{"x": 1, "y": "a"}\n{"x": 2, "y": "b", "late": 1}\n')
    assert tb.table(short).schema.names == ["x", "y", "late"]
    with pytest.raises(tb.DataError, match="no column 'lat'"):
        tb.NaiveBayes().fit(tb.table(short, types={"lat": "string"}), "y")


def test_a_first_row_that_is_null(tmp_path):
    # Arrow would end the process (apache/arrow#47409); elsewhere it reads such a row as missing cells.
    path = tmp_path / "rows.jsonl"
    for text in ('null\n{"y": "b"}\n', '\n null\n{"y": "b"}\n', 'null\nnull\n{"y": "b"}\n'):
        path.write_text(text)
        assert tb.table(path).read("this")["y"].to_pylist() == [None] * text.count("null") + ["b"]
    for text in ('null}], "b": 1}\n{"y": "b"}\n', "nullx\n", "null"):
        path.write_text(text)
        with pytest.raises(tb.DataError):
            tb.NaiveBayes().fit(path, "y")


@pytest.mark.parametrize("indent", [None, 1])
def test_one_array_of_all_rows(indent, tmp_path):
    path = tmp_path / "rows.json"
    path.write_text("\n" + json.dumps([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}], indent=indent))
    with pytest.raises(tb.DataError, match=r"rows.json is one JSON array; expected JSON lines"):
        tb.NaiveBayes().fit(path, "y")
