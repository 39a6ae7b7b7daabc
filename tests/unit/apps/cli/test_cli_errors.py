"""What goes wrong is told in words, on standard error, with an exit code; never a traceback."""

import ast
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.apps.cli import cli_errors, runner
from tallybayes.apps.cli.cli_errors import user_message

HERE = {**os.environ, "PYTHONPATH": str(Path(tb.__file__).parents[1])}


@pytest.fixture(scope="module")
def fitted(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    frame[:200].to_csv(folder / "rows.csv", index=False)
    tb.NaiveBayes().fit(folder / "rows.csv", "species").save(folder / "m.tally")
    tb.AveragedOneDependence().fit(folder / "rows.csv", "species").save(folder / "one.tally")
    return folder


@pytest.fixture
def model(files, fitted):
    for name in ("m.tally", "one.tally"):
        (files / name).write_bytes((fitted / name).read_bytes())
    return "m.tally"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("fit none.csv -t species", 1, "there is no file 'none.csv'"),
        ("fit penguins.csv -t specis", 1, "no column 'specis' in the data (found: 'island'"),
        ("fit penguins.csv", 2, "missing option --target: the column to predict; expected one of 'island', 'bill_mm'"),
        ("fit penguins.csv -t species -o m.tally", 1, "nothing was written.\n    Pass another name with -o"),
        ("fit penguins.csv -t species -o none/m.tally", 1, "folder 'none' of none/m.tally does not exist"),
        ("update none/m.tally test.csv", 1, "file 'none/m.tally' does not exist; expected a model"),
        ("fit penguins.csv -t species -m bayes", 2, "naive-bayes"),
        ("fit penguins.csv -t species --covariance tied", 2, "of --model auto; expected --model discriminant"),
        ("fit penguins.csv -t species --columns eggs=count", 1, "selects the families of all other columns"),
        ("fit penguins.csv -t species -m naive-bayes --columns eggs=cuont", 2, "Did you mean 'count'?"),
        ("fit penguins.csv -t species -m naive-bayes --columns eggs", 2, "--columns has 'eggs'; expected NAME=FAMILY"),
        ("fit penguins.csv -t species -m naive-bayes --columns egs=count -o x.tally", 1, "egs"),
        ("fit penguins.csv -t species -m naive-bayes --prior much", 2, "--prior is 'much'; expected a number"),
        ("fit penguins.csv -m network", 2, "missing option --structure: edges such as 'a->b'"),
        ("fit penguins.csv -m network --structure a-> -o x.tally", 2, "--structure has 'a->'; expected edges"),
        ("fit penguins.csv -t species -m hidden-markov", 2, "missing option --sequence COL"),
        ("fit penguins.csv -t species --sequence sex", 2, "--sequence and --order apply to hidden Markov models"),
        ("fit penguins.csv -t species --table x", 2, "--table applies to databases"),
        ("fit penguins.csv -t species --states x", 2, "x"),
        ("fit empty.csv -t species", 1, "empty"),
        ("fit binary.csv -t species", 1, "binary.csv"),
        ("fit odd -t species", 1, "Pass the format: --format csv."),
        ("fit ragged.csv -t y -m naive-bayes", 1, "Expected 2 columns, got 3: 2,b,c'.\n    Pass --on-bad skip"),
        ("fit names.csv -t y -m naive-bayes", 1, "0 rows"),
        ("predict none.tally test.csv", 1, "file 'none.tally' does not exist; expected a model"),
        ("predict penguins.csv test.csv", 1, "penguins.csv is not a Tallybayes file"),
        ("predict torn.tally test.csv", 1, "torn.tally"),
        ("predict tally.tally test.csv", 1, "contains a Tally; expected a model"),
        ("predict m.tally other.csv", 1, "no column"),
        ("predict m.tally test.csv --keep nothing", 1, "no column 'nothing'"),
        ("predict m.tally test.csv --sequence sex", 2, "found a NaiveBayes"),
        ("predict m.tally test.csv --to-table x", 2, "--to-table requires a database"),
        ("explain m.tally test.csv --row 0", 2, "the first row is 1"),
        ("explain m.tally test.csv --row 101", 1, "--row is 101; "),
        ("explain m.tally test.csv --against Emu", 1, "there is no class 'Emu'"),
        ("evaluate m.tally test.csv --target sex", 1, "the label of row"),
        ("query m.tally --nodes sex", 1, "m.tally is a NaiveBayes; expected a BayesianNetwork"),
        ("forget m.tally twice.csv", 1, "cannot forget"),
        ("update m.tally other.csv", 1, "no column"),
        ("merge m.tally -o x.tally", 2, "1 models to merge"),
        ("merge m.tally one.tally -o x.tally", 1, "m.tally is a NaiveBayes and one.tally an AveragedOneDependence"),
        ("merge m.tally m.tally -o m.tally", 1, "exists; nothing was written"),
        ("sample m.tally -n -3", 2, "--rows is -3"),
        ("sample m.tally --class Emu", 1, "Emu"),
        ("fit sqlite:none.db --table x -t y", 1, "database 'none.db' does not exist"),
        ("nonsense", 2, "nonsense"),
        ("predict m.tally", 2, "DATA"),
        ("show m.tally --color", 2, "--color"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(words, code, told, model, files, tally):
    (files / "empty.csv").write_text("")
    (files / "binary.csv").write_bytes(bytes(range(256)) * 40)
    (files / "odd").write_text("x,species\n1,2\n")
    (files / "ragged.csv").write_text("x,y\n1,a\n2,b,c\n")
    (files / "names.csv").write_text("x,y\n")
    (files / "twice.csv").write_text(
        (files / "part.csv").read_text() + (files / "penguins.csv").read_text().partition("\n")[2]
    )
    (files / "other.csv").write_text("x,species\n1,Adelie\n")
    (files / "torn.tally").write_bytes((files / model).read_bytes()[:-500])
    tb.count({"x": [1, 0]}, [tb.Factor("x", (), tb.Bernoulli())]).save("tally.tally")
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    found = tally(words)
    assert found.code == code, found
    assert told in found.err
    assert found.err.startswith("error: ")
    assert found.out == ""
    assert "Traceback" not in found.err
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_what_nobody_foresaw_asks_for_a_report(model, files, tally, monkeypatch):
    monkeypatch.setattr(tb.NaiveBayes, "summary", lambda self: 1 // 0)
    found = tally("show m.tally")
    assert found.code == 70
    assert "internal error: ZeroDivisionError" in found.err
    assert "Please report it" in found.err
    assert "Traceback" not in found.err
    monkeypatch.setenv("TALLY_TRACEBACK", "1")
    assert "Traceback" in tally("show m.tally").err


def test_articles_before_names_of_models(files, done, tally):
    done("fit penguins.csv -t species --seed 1 -o auto.tally")
    assert "auto.tally is an AutoClassifier; expected a BayesianNetwork." in tally("query auto.tally --nodes sex").err
    assert "auto.tally is an AutoClassifier, which has no export" in tally("export auto.tally --bif x.bif").err


def test_warnings_name_the_options_of_the_command(files, tally):
    cells = [f"{k},{'ab'[k % 2]}" for k in range(60)]
    (files / "whole.csv").write_text("\n".join(["mass_g,kind", *cells]))
    found = tally("fit whole.csv -m network --structure tree")
    assert found.code == 0
    assert "column 'mass_g' has 60 different whole numbers" in found.err
    assert "--columns mass_g=gaussian" in found.err
    assert "tb." not in found.err


def test_an_interruption_changes_nothing(model, files, tally, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    before = (files / model).read_bytes()
    monkeypatch.setattr(tb.NaiveBayes, "partial_fit", interrupted)
    found = tally("update m.tally test.csv")
    assert (found.code, found.err) == (130, "error: interrupted; nothing was changed.\n")
    assert (files / model).read_bytes() == before


def test_warnings_are_lines_and_standard_output_is_for_answers(files, done, tally):
    (files / "ragged.csv").write_text("x,y\n1,a\n2,b,c\n3,b\n")
    found = tally("fit ragged.csv -t y -m naive-bayes --on-bad skip --json")
    assert found.code == 0
    assert found.err.startswith("warning: ")
    assert ".py" not in found.err
    assert found.out.startswith("{")


def test_messages_speak_of_options():
    assert (
        user_message(tb.DataError("Pass on_bad='skip' to leave them out.")) == "Pass --on-bad skip to leave them out."
    )
    assert (
        user_message(tb.DataError("Say which: tb.table(files, types={...: 'string'})."))
        == "Say which: --types NAME=TYPE."
    )
    assert (
        user_message(FileNotFoundError(2, "No such file or directory", "x.csv")) == "x.csv: no such file or directory."
    )
    refused = sqlite3.OperationalError("connection failed\n\tIs the server running?\n")
    assert user_message(refused) == "connection failed\n    Is the server running?"
    assert user_message(ZeroDivisionError()) is None
    assert runner.DONE == 0


def test_rows_are_numbered_from_1(files, tally):
    assert user_message(tb.DataError("found 'x' in row 0, column 'a'.")) == "found 'x' in row 1, column 'a'."
    (files / "lost.csv").write_text("x,y\n1,a\n2,\n")
    assert "the label of row 2 is missing" in tally("fit lost.csv -t y -m naive-bayes").err


def test_names_from_the_data_do_not_steer_the_terminal(files, tally):
    (files / "evil.csv").write_text("a\x1b[31mb,y\n1,x\n2,z\n")
    found = tally("fit evil.csv -t species -m naive-bayes")
    assert "\x1b" not in found.err
    found = tally("fit evil.csv -t y -m naive-bayes")
    assert found.code == 0
    assert "\x1b" not in found.out


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(files, frame, done):
    done("fit penguins.csv -t species -m naive-bayes -o m.tally")
    frame.loc[frame.index.repeat(100)].to_csv("long.csv", index=False)
    words = f"{sys.executable} -m tallybayes predict m.tally - --proba < long.csv | head -2; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", words], capture_output=True, env=HERE, text=True)
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[0] == '"prediction","p(Adelie)","p(Chinstrap)","p(Gentoo)"'
    assert ran.stdout.splitlines()[-1] == "141"


def test_without_its_libraries_one_line_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['cyclopts'] = None\n"
        "from tallybayes.apps.cli.main import main\nsys.exit(main(['fit', 'x.csv']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=HERE, text=True)
    assert ran.returncode == 1
    assert "pip install cyclopts rich" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert len(ran.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    "error",
    [
        tb.LabelError.bad_level(b"x", "at"),
        tb.LabelError.bad_level([1], "at"),
        tb.DataError("found 1 in column 'a'.\n    Convert dates to numbers or labels, such as column.dt.month."),
    ],
)
def test_columns_of_other_types_can_be_left_out(error):
    assert user_message(error).endswith("\n    Leave the column out: --columns NAME=ignore.")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (tb.FileError.not_ours("x", "no"),
         "x is not a Tallybayes file: no.\n    Expected a model written by 'tally fit'."),
        (tb.DataError("x is empty; expected a line of names, or names=[...] and rows."),
         "x is empty; expected a line of names, or --names NAME … and rows."),
        (tb.EstimateError("n_components is 0; expected more."), "--components is 0; expected more."),
        (tb.DataError("it differs.\n    Pass tb.NormalInverseGamma(0, 1, 2, 1)."), "it differs."),
        (tb.DataError("it differs.\n    Convert one side, for example with astype(str)."), "it differs."),
        (tb.DataError("it differs.\n    Pass --delimiter ';'."), "it differs.\n    Pass --delimiter ';'."),
        (tb.LabelError.no_such_class("x", ["a"]),
         "there is no class 'x' (known: 'a').\n    'tally show' lists the classes."),
        (tb.TallybayesWarning("it has 60 numbers.\n    Pass columns={'mass_g': tb.Gaussian()}, or tb.Categorical()."),
         "it has 60 numbers.\n    Pass --columns mass_g=gaussian, or categorical."),
        (tb.DataError("it differs.\n    Pass columns={'a b': tb.Text(), ...: 'auto'}, or columns={...: 'suggest'}."),
         "it differs.\n    Pass --columns 'a b=text', or --columns ...=suggest."),
    ],
)  # fmt: skip
def test_no_message_speaks_python(error, told):
    assert user_message(error) == told


def test_replaced_phrases_are_in_messages_of_the_library():
    constants = [
        node.value
        for path in Path(tb.__file__).parent.rglob("*.py")
        if path.name != "cli_errors.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [
        phrase
        for phrase in [*cli_errors._HINTS, *cli_errors._PHRASES]
        if not any(phrase in constant for constant in constants)
    ] == []


def test_files_with_other_columns(files, tally):
    (files / "one.csv").write_text("x,y\n1,a\n2,b\n")
    (files / "two.csv").write_text("z,y\n1,a\n2,b\n")
    wrong = tally("fit [ot][nw][eo].csv -t y -o m.tally")
    assert wrong.code == 1
    assert "has no column" in wrong.err
    assert "Give all files the same columns." in wrong.err


def test_merging_models_of_other_columns(model, files, tally):
    pd.read_csv(files / "penguins.csv").drop(columns="sex").to_csv(files / "less.csv", index=False)
    assert tally("fit less.csv -t species -m naive-bayes -o less.tally").code == 0
    assert (
        "Fit one with 'tally fit --like' and the other model." in tally(f"merge {model} less.tally -o both.tally").err
    )
