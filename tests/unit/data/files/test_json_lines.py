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
    _fails(
        path,
        many + '{"x": "2", "y": "a"}\n',
        r"line 199, column 'x': found a string; expected int64, the type .*\n.*columns=\[",
    )
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


@pytest.mark.parametrize(
    ("value", "found", "hint"),
    [
        ("1.5", "'1.5'; expected int64", "types={'x': 'float64'}"),
        ("99999999999999999999", "'99999999999999999999'; expected int64", "types={'x': 'float64'}"),
        ('"a"', "a string; expected int64", "columns=["),
        ("true", "a boolean; expected int64", "columns=["),
    ],
)
def test_a_value_of_another_type_than_in_the_first_rows(value, found, hint, tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.json_lines._BLOCK", 500)
    path = tmp_path / "rows.jsonl"
    lines = [f'{{"w": 0.5, "x": {k % 5}, "y": "{"ab"[k % 2]}"}}\n\n' for k in range(200)]
    lines[150] = f'{{"w": 0.5, "y": "a", "x": {value}}}\n'
    path.write_text("".join(lines))
    with pytest.raises(tb.DataError) as error:
        tb.NaiveBayes().fit(path, "y")
    assert f"rows.jsonl, line 301, column 'x': found {found}, the type of the rows before.\n    " in str(error.value)
    assert hint in str(error.value)
    if "types" in hint:
        assert tb.NaiveBayes().fit(tb.table(path, types={"x": "float64"}), "y").tally_["x"].weight.sum() == 200
    else:
        assert tb.NaiveBayes().fit(tb.table(path, columns=["w", "y"]), "y").tally_["w"].weight.sum() == 200


def test_two_types_in_the_first_rows(tmp_path):
    _fails(
        tmp_path / "rows.jsonl",
        PLAIN * 3 + '{"x": "2", "y": "a"}\n',
        "line 4, column 'x': found a string; expected number",
    )


def test_files_with_columns_of_two_types(tmp_path):
    (tmp_path / "1.jsonl").write_text('{"x": "2026-05-01T08:00:00", "y": "a"}\n')
    (tmp_path / "2.jsonl").write_text('{"x": "unknown", "y": "b"}\n')
    with pytest.raises(
        tb.DataError, match=r"column 'x' is timestamp.* in .*1.jsonl and string in .*2.jsonl.*\n.*types=\{'x'"
    ):
        tb.table(tmp_path / "*.jsonl").read("this")
    rows = tb.table(tmp_path / "*.jsonl", types={"x": "string"}).read("this")
    assert rows["x"].to_pylist() == ["2026-05-01T08:00:00", "unknown"]


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
@pytest.mark.parametrize("fraction", [".5", ".123", ".123456", ".123456789"])
def test_times_with_fractions_of_a_second_are_dates_as_in_csv(fraction, zone, tmp_path):
    times = [f"2026-05-{1 + k % 9:02d}T{k % 24:02d}:00:00{fraction}{zone}" for k in range(40)]
    rows = [{"when": time, "y": "ab"[k % 2]} for k, time in enumerate(times)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "rows.csv").write_text("when,y\n" + "".join(f"{row['when']},{row['y']}\n" for row in rows))
    by_kind = [tb.NaiveBayes().fit(tmp_path / f"rows.{kind}", "y") for kind in ("jsonl", "csv")]
    assert set(by_kind[0].columns_) == {f"when.{part}" for part in ("year", "month", "day_of_week", "hour")}
    assert by_kind[0].tally_ == by_kind[1].tally_


def test_fractions_of_a_second_that_appear_late(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.json_lines._BLOCK", 500)
    path = tmp_path / "rows.jsonl"
    times = [f"2026-05-01T{k % 24:02d}:00:00{'.25' if k > 150 else ''}Z" for k in range(200)]
    path.write_text("".join(json.dumps({"when": time, "y": "ab"[k % 2]}) + "\n" for k, time in enumerate(times)))
    assert tb.NaiveBayes().fit(path, "y").tally_["when.hour"].table.sum() == 200
    path.write_text(path.read_text() + '{"when": "soon", "y": "a"}\n')
    with pytest.raises(tb.DataError, match=r"line 201, column 'when': found 'soon'; expected timestamp.*\n.*'string'"):
        tb.NaiveBayes().fit(path, "y")


def test_strings_that_are_no_times_stay_labels(tmp_path):
    path = tmp_path / "rows.jsonl"
    for values in (["08:00:00.5", "09:00:00.5"], ["2026-05-01T08:00:00.5", "unknown"], ["", "2026-05-01T08:00:00.5"]):
        path.write_text("".join(json.dumps({"x": value, "y": "ab"[k]}) + "\n" for k, value in enumerate(values)))
        assert tb.table(path).read("this")["x"].to_pylist() == values
