"""Errors of BIF files: problem, line and hint."""

import pytest

from tallybayes.errors import FileError
from tallybayes.models.network.io.bif import read_bif
from tests.unit.models.network.io.bif_examples import CHILD, ROOT, START, WHOLE, read

DOUBLE = "variable A {\n  type discrete [ 2 ] { x, y };\n}\n"
WRONG = {
    "nothing": ("", 1, "found the end of the file; expected 'network'"),
    "another format": ('<?xml version="1.0"?>\n<BIF>', 1, "expected 'network'.\n    BIF begins with"),
    "network twice": (START + "network again {\n}\n", 9, "found 'network'; expected 'variable' or 'probability'"),
    "no variables": ("network n {\n}\n\n", 4, "expected at least one variable"),
    "in the network": ("network n {\n\ntable 1;\n}", 3, "found 'table'; expected 'property' or '}'"),
    "garbage": (WHOLE + "\ngarbage", 17, "found 'garbage'; expected 'variable' or 'probability' or the end"),
    "symbol at the end": (WHOLE + "}", 16, "found '}'"),
    "variable twice": (START + DOUBLE, 9, "found the variable 'A' again; expected it once, as in line 3"),
    "no name": ("network n { }\nvariable { }", 2, "found '{'; expected the name of a variable"),
    "no type": ("network n { }\nvariable A {\n}", 3, "found no type of the variable 'A'"),
    "type twice": (START.replace("};\n}", "};\ntype discrete [ 1 ] { x };\n}"), 5, "found another type of 'A'"),
    "continuous": (START.replace("discrete", "continuous"), 4, "found 'continuous'; expected 'discrete'"),
    "too few levels": (START.replace("[ 2 ]", "[ 3 ]"), 4, "found 2 levels of 'A'; expected 3"),
    "too many levels": (
        START.replace("a0, a1", "a0, a1, No change"),
        4,
        "found 4 levels of 'A'; expected 2(.|\n)*quote",
    ),
    "no levels": (START.replace("[ 2 ] { a0, a1 }", "[ 0 ] { }"), 4, "found 0 levels of 'A'; expected 1"),
    "level twice": (START.replace("a0, a1", "a0, a0"), 4, "found the level 'a0' of 'A' again"),
    "empty level": (START.replace("a0, a1", "a0,, a1"), 4, "found ','; expected a level; an empty one"),
    "empty last level": (START.replace("a0, a1", "a0, a1,"), 4, "found '}'; expected a level; an empty one"),
    "empty first level": (START.replace("a0, a1", ", a0, a1"), 4, "found ','; expected a level or '}'"),
    "number of levels": (START.replace("[ 2 ]", "[ two ]"), 4, "found 'two'; expected a whole number"),
    "negative number of levels": (START.replace("[ 2 ]", "[ -2 ]"), 4, "found '-2'; expected a whole number"),
    "no semicolon": (START.replace("};", "}"), 5, "found '}'; expected ';'"),
    "open quote": (START.replace("a0", '"a0'), 4, "found a quote without a closing quote on its line"),
    "open quote at the end": ('network "n', 1, "found a quote without a closing quote"),
    "quote ends in a backslash": ('network "n\\', 1, "found a quote without a closing quote"),
    "quote over two lines": (START.replace("a0", '"a\\\n0"'), 4, "found a quote without a closing quote"),
    "open comment": (WHOLE + "\n/* and", 17, "found '/\\*' without"),
    "property to the end": ("network n {\nproperty x }", 2, "found a property without ';'"),
    "unknown variable": (START + "probability ( X ) {", 9, "found the variable 'X'; expected one of 'A', 'B'"),
    "unknown parent": (START + "probability ( A | X ) {", 9, "found the variable 'X'; expected one of 'A', 'B'"),
    "declared too late": ("network n { }\nprobability ( A ) {", 2, "expected it to be declared first"),
    "two nodes": (START + "probability ( A, B | A ) {", 9, "found '|'; expected the name of a parent"),
    "no parent": (START + "probability ( A | ) {", 9, "found '\\)'; expected the name of a parent"),
    "empty parent": (START + "probability ( A | , B ) {", 9, "found ','; expected the name of a parent"),
    "no node": (START + "probability ( ) {", 9, "found '\\)'; expected the name of a variable"),
    "parent twice": (START + "probability ( A |\n B, B ) {", 10, "found the parent 'B' of 'A' again"),
    "block twice": (WHOLE + ROOT, 16, "found another block of 'A'; expected one, as in line 9"),
    "no block": (START + ROOT, 6, "found no block for the variable 'B'"),
    "empty block": (START + "probability ( A ) {\n}", 9, "found no numbers for the table of 'A'"),
    "row missing": (WHOLE.replace("  (a1) 0.0, 0.0, 1.0;\n", ""), 12, "found no numbers for the row \\('a1'\\) of 'B'"),
    "first row missing": (
        WHOLE.replace("  (a0) 0.5, 0.25, 0.25;\n", ""),
        12,
        "found no numbers for the row \\('a0'\\)",
    ),
    "row twice": (WHOLE.replace("(a1)", "(a0)"), 14, "found the row \\('a0'\\) of 'B' again; expected it once"),
    "two rows twice": (
        WHOLE.replace("(a1) 0.0, 0.0, 1.0;", "(a1) 0, 0, 1;\n(a1) 0, 0, 1;\n(a0) 1, 0, 0;"),
        15,
        "found the row \\('a1'\\) of 'B' again",
    ),
    "default twice": (
        WHOLE.replace("(a0)", "default").replace("(a1)", "default"),
        14,
        "found the default of 'B' again",
    ),
    "unknown level": (WHOLE.replace("(a1)", "(x)"), 14, "found the level 'x' of 'A'; expected one of 'a0', 'a1'"),
    "too many labels": (WHOLE.replace("(a1)", "(a1, a1)"), 14, "found 2 levels for a row of 'B'; expected 1"),
    "too few labels": (WHOLE.replace("(a1)", "()"), 14, "found 0 levels for a row of 'B'; expected 1"),
    "too few numbers": (
        WHOLE.replace("0.0, 1.0", "1.0"),
        14,
        "found 2 numbers in the row \\('a1'\\) of 'B'; expected 3",
    ),
    "too many numbers": (
        WHOLE.replace("1.0", "1.0, 0"),
        14,
        "found 4 numbers in the row \\('a1'\\) of 'B'; expected 3",
    ),
    "one number": (WHOLE.replace("0.25, 0.75", "\n1"), 10, "found 1 number in the table of 'A'; expected 2"),
    "table and rows": (WHOLE.replace("(a1)", "table"), 14, "found rows of 'B' besides a table of all"),
    "rows and table": (WHOLE.replace("(a0) 0.5, 0.25, 0.25", "table 1 1 0 0 0 0"), 14, "besides a table of all"),
    "table twice": (WHOLE.replace("0.75;", "0.75;\ntable 1, 0;"), 11, "besides a table of all"),
    "size of the table": (WHOLE.replace("(a0)", "table"), 13, "found 3 numbers in the table of 'B'; expected 6"),
    "negative": (WHOLE.replace("0.0, 0.0, 1.0", "-0.5, 0.5, 1.0"), 14, "found '-0.5'; expected a probability"),
    "above 1": (WHOLE.replace("0.0, 0.0, 1.0", "0, 0, 1.1"), 14, "found '1.1'; expected a probability"),
    "overflow": (WHOLE.replace("0.0, 0.0, 1.0", "0, 0,\n1e999"), 15, "found '1e999'; expected a probability"),
    "NaN": (WHOLE.replace("0.0, 0.0, 1.0", "nan, 0, 1"), 14, "found 'nan'; expected a number or ';'"),
    "infinity": (WHOLE.replace("0.0, 0.0, 1.0", "inf, 0, 1"), 14, "found 'inf'; expected a number"),
    "underscore": (WHOLE.replace("0.0, 0.0, 1.0", "0_0, 0, 1"), 14, "found '_0'; expected a number"),
    "no number": (WHOLE.replace("0.0, 0.0, 1.0", "0.0.0, 0, 1"), 14, "found '0.0.0'; expected a number"),
    "other digits": (WHOLE.replace("0.0, 0.0, 1.0", "٠, 0, 1"), 14, "expected a number"),
    "a sum": (
        WHOLE.replace("0.0, 0.0, 1.0", "0, 0.5, 0.498"),
        14,
        "the row \\('a1'\\) of 'B' sums to 0.998; expected 1",
    ),
    "the sum of a table": (WHOLE.replace("0.75", "0.76"), 10, "the table of 'A' sums to 1.01; expected 1"),
    "the sum of a default": (WHOLE.replace("(a1) 0.0, 0.0, 1.0", "default 0 0 0"), 14, "the default of 'B' sums to 0"),
    "a sum in a table": (
        START + ROOT + "probability ( B | A ) {\ntable 0.5 1 0.5 0 0 0.5; }",
        13,
        "the row \\('a1'\\) of 'B' sums to 1.5",
    ),
    "cycle": (
        START + "probability ( A | B ) {\ndefault 1, 0;\n}\nprobability ( B | A ) {\ndefault 1, 0, 0;\n}",
        9,
        "found the cycle 'A' → 'B' → 'A'",
    ),
    "own parent": (
        START + "probability ( A | A ) {\ndefault 1, 0;\n}\n" + CHILD,
        9,
        "found the cycle 'A' → 'A'; expected",
    ),
    "in a block": (
        WHOLE.replace("(a1)", "entry (a1)"),
        14,
        "found 'entry'; expected 'table' or 'default' or 'property'",
    ),
    "row runs on": (WHOLE.replace("0.25;\n", "0.25\n"), 14, "found '\\('; expected a number or ';'"),
    "cut short": (WHOLE[: WHOLE.index("1.0;")], 14, "found the end of the file; expected a number or ';'"),
    "a long word": (START.replace("variable B", "x" * 10_000), 6, "found 'x{40}…'; expected"),
}


@pytest.mark.parametrize(("text", "line", "what"), WRONG.values(), ids=WRONG)
def test_errors_name_problem_and_line(text, line, what):
    with pytest.raises(FileError, match=what) as error:
        read(text)
    assert str(error.value).startswith(f"the text, line {line}: found ")
    assert "expected" in str(error.value)
    assert "\n    " in str(error.value)  # and what to try
    assert len(str(error.value)) < 500
    # the same wherever the lines end
    with pytest.raises(FileError) as other:
        read(text.replace("\n", "\r\n"))
    assert str(other.value) == str(error.value)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "broken.bif"
    path.write_text(START)
    for source in (path, str(path), path.open("rb"), path.open(encoding="utf-8")):
        with pytest.raises(FileError, match=r"broken\.bif, line 3: found no block"):
            read_bif(source)
        if hasattr(source, "close"):
            source.close()
    with pytest.raises(FileNotFoundError):
        read_bif(tmp_path / "absent.bif")
