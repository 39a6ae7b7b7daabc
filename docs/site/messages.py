"""The messages of every class of errors and warnings, read from the source: what is wrong, and what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tallybayes as tb
from tallybayes import messages as texts

SOURCE = Path(tb.__file__).parent
ERRORS = {
    name for name in tb._PUBLIC if isinstance(getattr(tb, name), type) and issubclass(getattr(tb, name), Exception)
}


def template(node: ast.expr) -> str | None:
    """Return the text of a message with … for its values; None if it is not written at this place."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else constant(part.value) for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (template(node.left) or "…") + (template(node.right) or "…")
    return None


def constant(node: ast.expr) -> str:
    """Return the text of a constant that messages share; … for another value."""
    return str(getattr(texts, node.id, "…")) if isinstance(node, ast.Name) and node.id.isupper() else "…"


def raised(tree: ast.AST, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the class and the template of every message; `name` is the error class whose methods are read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and node.name in ERRORS:
            yield from raised(node, node.name)
            continue
        if isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            text = template(node.args[0])
            if called == "warn":
                called = getattr(node.args[1], "id", "") if len(node.args) > 1 else "TallybayesWarning"
            if text and (called in ERRORS or (called == "cls" and name)):
                yield called if called in ERRORS else name, text
        yield from raised(node, name)


def warned() -> Iterator[tuple[str, str | None]]:
    """Yield the place and the template of every warning, except those in the words of other libraries."""
    for file in sorted(SOURCE.rglob("*.py")):
        if file.parent.name not in ("sklearn", "hmmlearn") and file != SOURCE / "warnings.py":
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "warn":
                    yield f"{file.relative_to(SOURCE)}:{node.lineno}", template(node.args[0])


@cache
def messages() -> dict[str, list[tuple[str, str]]]:
    """Return the messages of every class, each with what to do: its later lines, or what was expected."""
    found: dict[str, set[tuple[str, str]]] = {name: set() for name in ERRORS}
    for file in sorted(SOURCE.rglob("*.py")):
        for name, text in raised(ast.parse(file.read_text(encoding="utf-8"))):
            problem, _, advice = text.partition("\n")
            if not advice:
                problem, _, expected = problem.partition("; expected ")
                advice = f"Expected: {expected}" if expected else ""
            if name == "FileError" and file.parent.name != "io":  # raised while `tb.load` reads a file
                advice = advice or "Restore it from a copy; nothing was loaded."
            if len(problem.replace("…", "").split()) > 2:
                found[name].add((problem, " ".join(advice.split())))
    return {name: sorted(every, key=lambda pair: pair[0].lstrip("…'\" ").lower()) for name, every in found.items()}


def table(name: str) -> list[str]:
    """Return the lines of the closed list of the messages of a class; none if it has none."""
    listed = messages()[name]
    if not listed:
        return []
    lines = [
        f"<details markdown><summary>{len(listed)} message{'s' * (len(listed) > 1)}</summary>",
        "",
        "| message | what to do |",
        "|---|---|",
    ]
    lines += [f"| {cell(problem)} | {cell(advice)} |" for problem, advice in listed]
    return [*lines, "", "</details>", ""]


def cell(text: str) -> str:
    """Return a text as a cell of a Markdown table, with nothing in it that is markup."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}" if mark not in "<>|" else f"&#{ord(mark)};")
    return text
