"""The reference of the public names, made of their docstrings and signatures.

Models bind functions of other modules as methods, with the model first: they are shown as methods, without it.
"""

from __future__ import annotations

import inspect
import os
from functools import cache, cached_property
from typing import Any

import command
import messages
from docstrings import Link, cell, entries, markdown, sections
from subjects import Page, anchors, pages

WIDTH = 88
# The methods that every estimator inherits from scikit-learn.
FOREIGN = "`get_params`, `set_params` and the other methods of scikit-learn's estimators work as there."


INTRODUCTION = """
Every public name, by subject, after `import tallybayes as tb`. Models follow the interface of scikit-learn: fitted
attributes end in `_`, and `fit`, `predict`, `predict_proba` and `score` work as there. See [data
sources](../data-sources.md) for what `X` may be, and the [glossary](../glossary.md) for terms and formulas. The command
has [a page of its own](tally.md).
"""


@cache
def members(kind: type) -> dict[str, Any]:
    """Return the documented public members of a class, without those inherited from a public class.

    Members of the class that defines `fit` come first, plots last.
    """
    if issubclass(kind, Exception):
        return {}
    above = {name for base in public_bases(kind) for name in dir(base)}
    found: dict[str, Any] = {}
    for base in sorted(kind.__mro__, key=lambda base: "fit" not in vars(base)):
        if not base.__module__.startswith("tallybayes"):
            continue
        for name in vars(base):
            member = inspect.getattr_static(kind, name)
            if not name.startswith("_") and name not in above and name not in found and is_documented(member):
                found[name] = member
    return dict(sorted(found.items(), key=lambda item: item[0].startswith("plot")))


def attributes(kind: type) -> dict[str, tuple[str, str]]:
    """Return the type and the description of every attribute: those in the docstring, then the other properties."""
    found = {
        each.strip(): (type_, words)
        for names, type_, words in entries(sections(inspect.getdoc(kind) or "").get("Attributes", ""))
        for each in names.split(",")
    }
    for name, member in members(kind).items():
        if not is_method(member):
            found.setdefault(name, ("", summary(member)))
    return found


def every_anchor() -> dict[str, str]:
    """Return the page and anchor of every public name and member, by its full name."""
    found = anchors()
    for every in pages().values():
        for page in every:
            for name, thing in page.names.items():
                if isinstance(thing, type):
                    whole, place = page.prefix + name, f"{page.file}#{page.prefix}{name}"
                    found |= {f"{whole}.{each}": f"{place}.{each}" for each in (*members(thing), *attributes(thing))}
    for every in pages().values():
        for page in every:
            for name, thing in page.names.items():
                for base in public_bases(thing) if isinstance(thing, type) else ():
                    for each in (*members(base), *attributes(base)):
                        there = found.get(f"tb.{base.__name__}.{each}")
                        if there:
                            found.setdefault(f"{page.prefix}{name}.{each}", there)
    return found


def is_documented(member: Any) -> bool:
    """Return whether a member has a docstring of its own; fields and type aliases do not."""
    if isinstance(member, property | cached_property):
        return bool(inspect.getdoc(member))
    return is_method(member) and bool(inspect.getdoc(unwrapped(member)))


def unwrapped(member: Any) -> Any:
    """Return the function of a class method or static method."""
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


def is_method(member: Any) -> bool:
    return inspect.isfunction(unwrapped(member))


@cache
def public_bases(kind: type) -> list[type]:
    """Return the base classes that the reference documents."""
    public = {id(thing) for every in pages().values() for page in every for thing in page.names.values()}
    return [base for base in kind.__mro__[1:] if id(base) in public]


def signature(call: Any, shown: str, *, drop_first: bool = False) -> str:
    """Return the signature without types, which the table of parameters describes."""
    parameters = list(inspect.signature(call).parameters.values())[int(drop_first) :]
    parts, starred = [], False
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            starred = True
        if each.kind is each.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(one(each))
    line = f"{shown}({', '.join(parts)})"
    if len(line) <= WIDTH:
        return line
    return f"{shown}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def one(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    if parameter.default is parameter.empty:
        return stars + parameter.name
    default = repr(parameter.default)
    return f"{parameter.name}={default if len(default) <= 40 else '…'}"


def class_lines(name: str, kind: type, page: Page, link: Link) -> list[str]:
    """Return the description of a class, its attributes and its methods."""
    whole, text = page.prefix + name, inspect.getdoc(kind) or ""
    lines = []
    if not issubclass(kind, Exception):
        lines += ["```python", signature(kind, whole), "```", ""]
    lines += [markdown(text, link, skip=("Attributes",)), ""]
    above = [f"[`{base.__name__}`]({link(base.__name__)})" for base in public_bases(kind)]
    if above:
        how = "Subclass of" if issubclass(kind, Exception) else "Inherits the members of"
        lines += [f"{how} {', '.join(above)}.", ""]
    if name in messages.ERRORS:
        lines += messages.table(name)

    listed = attributes(kind)
    if listed:
        lines += ["| attribute | description |", "|---|---|"]
        for each, (type_, words) in listed.items():
            lines.append(f"| <a id='{whole}.{each}'></a>`{each}` | {cell(type_, words, link)} |")
        lines.append("")
    for each, member in members(kind).items():
        if is_method(member):
            lines += method_lines(each, member, kind, whole, link, "##" if len(page.names) == 1 else "###")
    if any(base.__module__.startswith("sklearn") for base in kind.__mro__):
        lines += [FOREIGN, ""]
    return lines


def method_lines(name: str, member: Any, kind: type, whole: str, link: Link, level: str) -> list[str]:
    """Return the signature and the docstring of a method."""
    bound = isinstance(member, classmethod | staticmethod)
    shown = f"{whole if bound else ''}.{name}"
    call = signature(getattr(kind, name), shown, drop_first=not bound)
    text = markdown(inspect.getdoc(unwrapped(member)) or "", link)
    return [f"{level} {name} {{ #{whole}.{name} .method }}", "", "```python", call, "```", "", text, ""]


def summary(thing: Any) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


class Linker:
    """Link targets of the names in docstrings: a member of the current class, or a public name."""

    def __init__(self, page: Page, places: dict[str, str]) -> None:
        self.page, self.places = page, places
        self.own: dict[str, str] = {}

    def set_class(self, whole: str, thing: Any) -> None:
        """Set the current class, whose members are found by their names alone."""
        self.own = {name: f"{whole}.{name}" for name in members(thing)} if inspect.isclass(thing) else {}

    def __call__(self, code: str) -> str | None:
        name = code.removeprefix("tb.").removesuffix("()")
        if name in self.own:
            return f"#{self.own[name]}"
        for whole in (code, self.page.prefix + name, f"tb.{name}", f"tb.results.{name}"):
            if whole in self.places:
                file, _, anchor = self.places[whole].partition("#")
                here = os.path.relpath(file, os.path.dirname(self.page.file))
                return f"#{anchor}" if file == self.page.file else f"{here}#{anchor}"
        return None


def page_text(page: Page, places: dict[str, str]) -> str:
    """Return a page of the reference."""
    link = Linker(page, places)
    alone = len(page.names) == 1
    lines = [] if alone else [f"# {page.title}", ""]
    if page.source.__name__ != "tallybayes":
        lines += [markdown(inspect.getdoc(page.source) or "", link), ""]
    for name, thing in page.names.items():
        link.set_class(page.prefix + name, thing)
        shown = f"tb.{name}" if page.prefix == "tb." else name
        lines += [f"{'#' if alone else '##'} {shown} {{ #{page.prefix}{name} }}", ""]
        if inspect.isclass(thing):
            lines += class_lines(name, thing, page, link)
        else:
            lines += [
                "```python",
                signature(thing, page.prefix + name),
                "```",
                "",
                markdown(inspect.getdoc(thing) or "", link),
                "",
            ]
    return "\n".join(lines)


def contents(places: dict[str, str]) -> str:
    """Return the first page of the reference: every name with its summary."""
    lines = ["# Reference", "", INTRODUCTION, ""]
    link = Linker(Page("reference/index.md", "Reference", "tb.", [], None), places)
    for subject, every in pages().items():
        lines += [f"## {subject}", "", "| name | description |", "|---|---|"]
        for page in every:
            if page.prefix == "tb.":
                listed = [(f"tb.{name}", link(f"tb.{name}"), thing) for name, thing in page.names.items()]
            else:
                listed = [(page.source.__name__, os.path.basename(page.file), page.source)]
            lines += [f"| [`{name}`]({place}) | {cell('', summary(thing), link)} |" for name, place, thing in listed]
        lines.append("")
    return "\n".join(lines)


def reference() -> dict[str, str]:
    """Return every page of the reference, by its file."""
    places = anchors()
    found = {"reference/index.md": contents(places), command.FILE: command.page()}
    return found | {page.file: page_text(page, places) for every in pages().values() for page in every}


def navigation() -> dict[str, list[tuple[str, str]]]:
    """Return the titles and files of the pages of every subject."""
    return {subject: [(page.title, page.file) for page in every] for subject, every in pages().items()}
