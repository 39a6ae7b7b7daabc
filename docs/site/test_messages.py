"""The reference lists the messages of every error class with what to do."""

import ast
import inspect
import re

import api
import messages
import pytest

import tallybayes as tb

VERBS = "Call Check Correct Discretize Drop Fetch Impute Increase Install Pass Reinstall Rename Set Use"
ADVICE = f"    ({'|'.join([*VERBS.split(), '…'])})"


def test_templates_have_ellipses_for_values():
    tree = ast.parse(
        'raise DataError(f"x is {x}; expected {y} or 2." + hint)\nraise tb.LabelError("no such\\n    Add it.")'
    )
    assert list(messages.raised(tree)) == [
        ("DataError", "x is …; expected … or 2.…"),
        ("LabelError", "no such\n    Add it."),
    ]


def test_later_lines_and_expectations_are_what_to_do():
    listed = dict(messages.messages()["DataError"])
    assert listed["the data have 0 rows"] == "Expected: at least 1."
    advice = next(listed[problem] for problem in listed if problem.startswith("the parts of the data have different"))
    assert advice == "Every column, label and weight must describe the same rows."


def test_every_message_says_what_to_do():
    """A message that ends with the message of another error has its advice."""
    listed = [problem for listed in messages.messages().values() for problem, advice in listed if not advice]
    assert [problem for problem in listed if not problem.endswith("…")] == []


def test_every_warning_names_its_consequence_and_what_to_do():
    """The first line is what was found and what follows from it, the second one a call, a parameter or an option."""
    found = dict(messages.warned())
    assert len(found) > 25
    for place, text in found.items():
        assert text is not None, f"{place}: write the message in the call of warn"
        problem, _, advice = text.partition("\n")
        assert problem[-1:] in (".", "…"), place
        assert re.search(r"[:;,.] | and | treated as ", problem), f"{place}: the consequence is missing"
        assert re.match(ADVICE, advice), f"{place}: the second line does not say what to do"


@pytest.mark.parametrize("name", sorted(messages.ERRORS))
def test_every_class_says_what_to_do(name):
    summary, _, advice = inspect.getdoc(getattr(tb, name)).partition("\n\n")
    assert summary
    assert advice.endswith(".")


def test_the_reference_lists_the_messages():
    text = api.reference()["reference/TallybayesError.md"]
    assert sum(map(len, messages.messages().values())) > 400
    for name, listed in messages.messages().items():
        assert f"## tb.{name} " in text
        assert not listed or f"<summary>{len(listed)} message" in text
    assert "| the data have 0 rows | Expected: at least 1. |" in text
