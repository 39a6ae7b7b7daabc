"""The reference of the public names, made of their docstrings and signatures.

Models bind functions of other modules as methods, with the model first: they are shown as methods, without it.
"""

from __future__ import annotations

import inspect
import os
from functools import cache, cached_property
from typing import Any

from docstrings import Link, cell, entries, markdown, sections
from subjects import Page, anchors, pages

WIDTH = 88
# What every estimator has of scikit-learn, which says it better.
FOREIGN = "`get_params`, `set_params` and what else scikit-learn asks of an estimator work as there."


INTRODUCTION = """
Every public name, by subject. `import tallybayes as tb` is meant throughout. Models have scikit-learn's contract: what
was learned ends in `_`; `fit`, `predict`, `predict_proba`, `score` are what they are there. What `X` may be is told in
[Data sources](../data-sources.md). Terms and formulas are in the [glossary](../glossary.md).
"""


@cache
def members(kind: type) -> dict[str, Any]:
    """The public members of a class that are told of: what a public class above it has is told there.

    Those beside `fit` come first, pictures last.
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
            if not name.startswith("_") and name not in above and name not in found and told(member):
                found[name] = member
    return dict(sorted(found.items(), key=lambda item: item[0].startswith("plot")))


def attributes(kind: type) -> dict[str, tuple[str, str]]:
    """The type and the meaning of every attribute: those that the docstring lists, then the other properties."""
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
    """Where every public name and every member of a public class is told of, by its name in full."""
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


def told(member: Any) -> bool:
    """Whether a member has words of its own: fields, and names of types, have not."""
    if isinstance(member, property | cached_property):
        return bool(inspect.getdoc(member))
    return is_method(member) and bool(inspect.getdoc(unwrapped(member)))


def unwrapped(member: Any) -> Any:
    """The function that a class method or static method is made of."""
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


def is_method(member: Any) -> bool:
    return inspect.isfunction(unwrapped(member))


@cache
def public_bases(kind: type) -> list[type]:
    """The classes above that have a place of their own in the reference."""
    public = {id(thing) for every in pages().values() for page in every for thing in page.names.values()}
    return [base for base in kind.__mro__[1:] if id(base) in public]


def signature(call: Any, shown: str, *, drop_first: bool = False) -> str:
    """How a thing is called: without types, which the table of parameters tells in words."""
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
    """What a class is, its attributes, its methods."""
    whole, text = page.prefix + name, inspect.getdoc(kind) or ""
    lines = []
    if not issubclass(kind, Exception):
        lines += ["```python", signature(kind, whole), "```", ""]
    lines += [markdown(text, link, skip=("Attributes",)), ""]
    above = [f"[`{base.__name__}`]({link(base.__name__)})" for base in public_bases(kind)]
    if above:
        how = "A kind of" if issubclass(kind, Exception) else "Besides, all of"
        lines += [f"{how} {', '.join(above)}.", ""]

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
    """A method: how it is called, and its docstring."""
    bound = isinstance(member, classmethod | staticmethod)
    shown = f"{whole if bound else ''}.{name}"
    call = signature(getattr(kind, name), shown, drop_first=not bound)
    text = markdown(inspect.getdoc(unwrapped(member)) or "", link)
    return [f"{level} {name} {{ #{whole}.{name} .method }}", "", "```python", call, "```", "", text, ""]


def summary(thing: Any) -> str:
    """The first paragraph of what is said of a thing, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


class Linker:
    """Where names in docstrings lead to: a member of the class that is told of, or a public name."""

    def __init__(self, page: Page, places: dict[str, str]) -> None:
        self.page, self.places = page, places
        self.own: dict[str, str] = {}

    def tell_of(self, whole: str, thing: Any) -> None:
        """From now on, names are looked for in this class, too."""
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
    """A page of the reference."""
    link = Linker(page, places)
    alone = len(page.names) == 1
    lines = [] if alone else [f"# {page.title}", ""]
    if page.source.__name__ != "tallybayes":
        lines += [markdown(inspect.getdoc(page.source) or "", link), ""]
    for name, thing in page.names.items():
        link.tell_of(page.prefix + name, thing)
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
    """The first page of the reference: every name with what it is."""
    lines = ["# Reference", "", INTRODUCTION, ""]
    link = Linker(Page("reference/index.md", "Reference", "tb.", [], None), places)
    for subject, every in pages().items():
        lines += [f"## {subject}", "", "| name | description |", "|---|---|"]
        for page in every:
            if page.prefix == "tb.":
                told = [(f"tb.{name}", link(f"tb.{name}"), thing) for name, thing in page.names.items()]
            else:
                told = [(page.source.__name__, os.path.basename(page.file), page.source)]
            lines += [f"| [`{name}`]({place}) | {cell('', summary(thing), link)} |" for name, place, thing in told]
        lines.append("")
    return "\n".join(lines)


def reference() -> dict[str, str]:
    """Every page of the reference, by its file."""
    places = anchors()
    found = {"reference/index.md": contents(places)}
    return found | {page.file: page_text(page, places) for every in pages().values() for page in every}


def navigation() -> dict[str, list[tuple[str, str]]]:
    """The titles and files of the pages of every subject."""
    return {subject: [(page.title, page.file) for page in every] for subject, every in pages().items()}
