"""tools/fit_page.py: docs/how-a-fit-works.md has every function that a plain fit calls, and no other."""

from __future__ import annotations

import ast
import importlib.util
from difflib import unified_diff
from pathlib import Path
from types import ModuleType

import pytest

from tallybayes import kernels

FILE = Path(__file__).resolve().parents[2] / "tools" / "fit_page.py"


@pytest.fixture(scope="module")
def fit_page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_fit_page", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(
    kernels.implementation() == "reference", reason="the page has the path through the compiled kernels"
)
def test_the_page_is_what_a_trace_of_a_fit_gives(fit_page: ModuleType) -> None:
    written = fit_page.PAGE.read_text(encoding="utf-8").splitlines()
    lines = list(unified_diff(written, fit_page.page().splitlines(), "page", "trace", "", "", 0, ""))
    assert not lines, "run `make fit-page`, or change these lines of docs/how-a-fit-works.md:\n" + "\n".join(lines)


def test_each_function_on_the_page_has_a_description(fit_page: ModuleType) -> None:
    lines = [line for line in fit_page.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]
    assert [line for line in lines if "`: " not in line] == [], "please give them a docstring, and run `make fit-page`"


def test_a_trace_has_each_function_of_the_package_once(fit_page: ModuleType) -> None:
    def call() -> None:
        for _ in range(2):
            kernels.arguments.threads(1)

    assert fit_page.trace(call) == [("kernels/arguments.py", "threads")]


def test_descriptions_are_the_first_lines_of_docstrings(fit_page: ModuleType) -> None:
    code = '''
class Table:
    """Rows
    in memory.

    Parameters
    """

    def __init__(self): ...

    def width(self):
        """Return the number of columns."""

    def none(self):
        def inner(): ...

if True:
    def outer():
        """Return a decorator."""
        def inner(): ...
'''
    assert dict(fit_page.definitions(ast.parse(code))) == {
        "Table.__init__": "Rows in memory.",
        "Table.width": "Return the number of columns.",
        "Table.none": "",
        "Table.none.<locals>.inner": "",
        "outer": "Return a decorator.",
        "outer.<locals>.inner": "Return a decorator.",
    }


def test_each_stage_has_functions_and_each_function_has_a_stage(fit_page: ModuleType) -> None:
    functions, derived = fit_page.trace_fit()
    assert [
        stage.title for stage in fit_page.STAGES if not any(fit_page.stage_of(one) is stage for one in functions)
    ] == []
    assert derived
    assert len(set(functions)) == len(functions)
