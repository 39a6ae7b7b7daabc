#!/usr/bin/env python3
"""Write docs/how-a-fit-works.md: all functions on the path of a plain ``NaiveBayes().fit(X, y)`` (``make fit-page``).

The functions are traced with `sys.setprofile`, the stages follow from their modules, the descriptions are the first
clauses of their docstrings. ``--print`` prints the page and writes nothing.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import tallybayes as tb

PACKAGE = Path(tb.__file__).parent
PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-a-fit-works.md"


class Function(NamedTuple):
    """A function of the package: its file, relative to the package, and its qualified name."""

    file: str
    name: str

    @property
    def module(self) -> str:
        """Return the dotted name of the module, without the package."""
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Stage(NamedTuple):
    """A stage of a fit: the functions whose ``file:name`` matches a pattern, and no pattern of a later stage."""

    title: str
    text: str
    patterns: tuple[str, ...]


STAGES = (
    Stage(
        "Fit the model",
        "`fit` runs the stages below in their order. It computes everything first and assigns last.",
        ("*",),
    ),
    Stage(
        "Validate the parameters",
        "The constructor stores its parameters as they are. `fit` checks them before it reads a row.",
        (
            "_utils/string_options.py:*",
            "estimation/em/*",
            "families/pseudo_counts.py:*",
            "models/classification/class_prior.py:*",
            "models/estimator.py:*",
            "models/inputs/column_priors.py:*",
            "models/name_hints.py:*",
            "*._check_prior",
            "*._check_settings",
        ),
    ),
    Stage(
        "Open the data source",
        "Files and databases become a `Source`; rows in memory become a `Table` of columns and blocks, without a copy.",
        ("data/*",),
    ),
    Stage(
        "Read features, labels and families",
        "X and y become one table with a target column. Each column of features gets the family of its type.",
        ("models/inputs/*",),
    ),
    Stage(
        "Encode the labels",
        "Levels become codes 0, 1, …; a `Domain` keeps the levels in order.",
        ("data/encoding.py:*", "tally/domain.py:*"),
    ),
    Stage(
        "Build the factors",
        "A model is a list of factors p(columns | given), each in a family.",
        (
            "families/*",
            "models/classification/independent_columns.py:*",
            "tally/factor.py:*",
            "tally/text_selection.py:*",
        ),
    ),
    Stage(
        "Count in the kernels",
        "Each family sums its sufficient statistics over the rows of each class in one call of a compiled kernel.",
        (
            "_utils/frozen_value.py:*",
            "data/counting.py:*",
            "families/*.collect",
            "families/_shared/*",
            "kernels/*",
            "statistics/*",
        ),
    ),
    Stage(
        "Set the tally",
        "The statistics and domains form a `Tally`, which becomes `tally_` by one assignment. No parameter is stored.",
        ("models/base.py:*", "tally/tally.py:*", "*._adopt", "*._settle", "*._take_from"),
    ),
)
DERIVED = Stage(
    "Derive the estimates",
    "`fit` ends here. Priors, estimates and scoring forms are computed from the tally at first use and kept until it "
    "changes. These functions run in the first `model.class_log_prior_`.",
    (),
)


def trace(call: Callable[[], Any]) -> list[Function]:
    """Return the functions of the package that a call enters, each once, in the order of their first calls."""
    root, found = f"{PACKAGE}/", {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and not code.co_name.startswith("<"):
            found[Function(code.co_filename[len(root) :], code.co_qualname)] = None

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(found)


def trace_fit() -> tuple[list[Function], list[Function]]:
    """Return the functions of a plain fit, and those of the first estimates that follow from it."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(2000, 5)), np.arange(2000) % 3
    _ = tb.NaiveBayes().fit(X, y).class_log_prior_  # imports modules and fills caches
    models: list[Any] = []
    in_fit = trace(lambda: models.append(tb.NaiveBayes().fit(X.copy(), y.copy())))
    return in_fit, [one for one in trace(lambda: models[0].class_log_prior_) if one not in in_fit]


def definitions(node: ast.AST, before: str = "", outer: str = "") -> Iterator[tuple[str, str]]:
    """Yield the qualified name and the summary line of every function below a node of a syntax tree.

    A constructor without a docstring has the line of its class, a nested function that of the function around it.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            text = ast.get_docstring(child) or ""
            yield from definitions(child, f"{before}{child.name}.", text)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inherits = child.name in ("__init__", "__post_init__") or before.endswith("<locals>.")
            text = ast.get_docstring(child) or (outer if inherits else "")
            yield f"{before}{child.name}", text.partition("\n\n")[0].replace("\n", " ")
            yield from definitions(child, f"{before}{child.name}.<locals>.", text)
        else:
            yield from definitions(child, before, outer)


@cache
def summaries(file: str) -> dict[str, str]:
    """Return the summary lines of the functions of a file by qualified name."""
    found: dict[str, str] = {}
    for name, text in definitions(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))):
        found[name] = text or found.get(name, "")
    return found


def described(function: Function) -> str:
    """Return the line of a function on the page: the first clause of its docstring, or what it returns."""
    text = summaries(function.file).get(function.name, "").replace("``", "`")
    text = re.sub(r"^Return (an? |the )?(\w)", lambda found: found[2].upper(), re.split(r"[;:.] ", text)[0].strip("."))
    name = function.name.replace(".<locals>.", ".")
    return f"- `{function.module}.{name}`" + (f": {text}" if text else "")


def stage_of(function: Function) -> Stage:
    """Return the last stage with a pattern that matches a function."""
    name = ":".join(function)
    return next(one for one in reversed(STAGES) if any(fnmatchcase(name, pattern) for pattern in one.patterns))


def page() -> str:
    """Return the text of the page."""
    in_fit, derived = trace_fit()
    parts = [
        "# How a fit works",
        "What happens in `tb.NaiveBayes().fit(X, y)`, where X is an array of numbers and y an array of labels: "
        f"{len(in_fit)} functions in {len({one.file for one in in_fit})} files, by stage, in the order of their first "
        "calls. [How it is built](design.md) has the ideas behind them.",
        "`make fit-page` writes this page from a trace and from docstrings. A test compares them.",
    ]
    for number, stage in enumerate((*STAGES, DERIVED), 1):
        lines = [
            described(one)
            for one in (derived if stage is DERIVED else in_fit)
            if stage is DERIVED or stage_of(one) is stage
        ]
        parts += [f"## {number}. {stage.title}", stage.text, "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    if "--print" in sys.argv[1:]:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), encoding="utf-8")
